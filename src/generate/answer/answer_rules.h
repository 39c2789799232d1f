// SPDX-License-Identifier: Apache-2.0
// AnswerRules: what a chat session does with answers: which calls of tools are wanted, how they are
// read, and how long the model may reason. Plain data, part of a conversation.
#pragma once

#include <cstdint>
#include <string>

namespace gen::generate {

struct AnswerRules {
  enum class Calls : uint8_t { kAuto, kNone, kRequired, kNamed };
  enum class Reasoning : uint8_t { kTemplate, kOn, kOff };

  Calls calls = Calls::kAuto;
  std::string tool = {};    // with kNamed
  bool parallel = true;     // an answer may have several calls
  bool constrained = true;  // a grammar makes calls valid
  std::string format =
      "auto";                 // of calls, by name; "auto": by the template; "off": answers are text
  std::string response = {};  // JSON Schema of the text of answers; empty: any text
  Reasoning reasoning = Reasoning::kTemplate;
  std::string effort = {};  // "low", "medium", …; empty: the template's own
  int32_t budget = -1;      // tokens of reasoning in an answer; -1: any number
  std::string budget_text = " I have thought long enough and answer now.";
  bool may_end = false;        // another thread may end the reasoning
  bool keep_reasoning = true;  // in the conversation; templates decide what they show of it
  friend bool operator==(const AnswerRules&, const AnswerRules&) = default;
};

}  // namespace gen::generate

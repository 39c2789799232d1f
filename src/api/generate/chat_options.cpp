// SPDX-License-Identifier: Apache-2.0
// The options of a conversation's answers: gen_chat_set of chat.h.
#include <generate/chat.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "api/boundary/boundary.h"
#include "api/boundary/option_table.h"
#include "api/generate/handles.h"
#include "base/utf8.h"
#include "calls/format_table.h"

namespace {

using gen::Code;
using gen::InUseGuard;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::SwitchOption;
using gen::api::TextOption;
using gen::api::WholeOption;
using Rules = gen::generate::AnswerRules;

constexpr size_t kMostText = size_t{1} << 20U;

Status no_such(const char* value, const std::string& known) {
  return gen::error(Code::kInvalidArgument, "%.64s is none of %s", value, known.c_str());
}

Status set_choice(Rules& rules, const char* value) {
  const std::string_view choice = value;
  if (choice.empty()) return no_such("an empty text", "auto, none, required or a tool's name");
  rules.tool.clear();
  rules.calls = choice == "auto"       ? Rules::Calls::kAuto
                : choice == "none"     ? Rules::Calls::kNone
                : choice == "required" ? Rules::Calls::kRequired
                                       : Rules::Calls::kNamed;
  if (rules.calls == Rules::Calls::kNamed) rules.tool = choice;
  return {};
}

std::string choice_of(const Rules& rules) {
  switch (rules.calls) {
    case Rules::Calls::kNone:
      return "none";
    case Rules::Calls::kRequired:
      return "required";
    case Rules::Calls::kNamed:
      return rules.tool;
    default:
      return "auto";
  }
}

std::string formats() { return "auto, off or one of " + gen::calls::format_names(); }

Status set_format(Rules& rules, const char* value) {
  const std::string_view name = value;
  if (name != "auto" && name != "off" && gen::calls::format_named(name) == nullptr) {
    return no_such(value, formats());
  }
  rules.format = name;
  return {};
}

Status set_reasoning(Rules& rules, const char* value) {
  const std::string_view word = value;
  if (word != "template" && word != "on" && word != "off") {
    return no_such(value, "template, on or off");
  }
  rules.reasoning = word == "on"    ? Rules::Reasoning::kOn
                    : word == "off" ? Rules::Reasoning::kOff
                                    : Rules::Reasoning::kTemplate;
  return {};
}

std::string reasoning_of(const Rules& rules) {
  return rules.reasoning == Rules::Reasoning::kOn    ? "on"
         : rules.reasoning == Rules::Reasoning::kOff ? "off"
                                                     : "template";
}

template <std::string Rules::*kField>
Status set_text(Rules& rules, const char* value) {
  const std::string_view text = value;
  if (text.size() > kMostText) {
    return gen::error(Code::kInvalidArgument, "%zu bytes are above %zu", text.size(), kMostText);
  }
  if (!gen::utf8_valid(text)) return gen::error(Code::kInvalidArgument, "the value is not UTF-8");
  rules.*kField = text;
  return {};
}

template <std::string Rules::*kField>
std::string text_of(const Rules& rules) {
  return rules.*kField;
}

std::span<const OptionRow<Rules>> rows() {
  static const std::array<OptionRow<Rules>, 11> kRows = {{
      {"tool_choice",
       TextOption<Rules>{[] { return std::string("auto, none, required or a tool's name"); },
                         set_choice, choice_of},
       "which tools an answer calls; auto: as the model wants; required: at least one; a name: that "
       "tool"},
      {"parallel_calls", SwitchOption<Rules>{[](Rules& r) -> bool& { return r.parallel; }},
       "an answer may have several calls"},
      {"constrain_calls", SwitchOption<Rules>{[](Rules& r) -> bool& { return r.constrained; }},
       "only valid calls of the tools can be generated, from the mark on that opens a call"},
      {"call_format", TextOption<Rules>{formats, set_format, text_of<&Rules::format>},
       "how calls are written; auto: as the template writes them; off: answers are not read"},
      {"response_schema",
       TextOption<Rules>{[] { return std::string("a JSON Schema"); }, set_text<&Rules::response>,
                         text_of<&Rules::response>},
       "the text of answers is JSON that is valid under it; empty: any text"},
      {"reasoning",
       TextOption<Rules>{[] { return std::string("template, on or off"); }, set_reasoning,
                         reasoning_of},
       "whether the model reasons before its answer, where its template has a variable for that; off "
       "without one: its reasoning ends at once"},
      {"reasoning_effort",
       TextOption<Rules>{[] { return std::string("low, medium, high, …"); },
                         set_text<&Rules::effort>, text_of<&Rules::effort>},
       "the template's variable of that name; empty: not set"},
      {"reasoning_budget",
       WholeOption<Rules>{[](Rules& r) -> int32_t& { return r.budget; }, -1, gen::api::kAnyMost},
       "most tokens of reasoning in an answer, before reasoning_end; -1: any number"},
      {"reasoning_end",
       TextOption<Rules>{[] { return std::string("text"); }, set_text<&Rules::budget_text>,
                         text_of<&Rules::budget_text>},
       "what the model is made to write where reasoning ends before it ended it"},
      {"reasoning_control", SwitchOption<Rules>{[](Rules& r) -> bool& { return r.may_end; }},
       "gen_chat_session_end_reasoning() can be called"},
      {"keep_reasoning", SwitchOption<Rules>{[](Rules& r) -> bool& { return r.keep_reasoning; }},
       "answers keep their reasoning in the conversation, of which templates show what they want"},
  }};
  return kRows;
}

/// Runs `body` on the rules while no other call uses the conversation.
template <typename F>
gen_status with_rules(const gen_chat* chat, gen_error* error, F body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(chat, "chat"));
    const std::shared_ptr<gen::generate::Chat> kept = chat->impl;
    const InUseGuard in_use(&kept->in_use);
    GEN_TRY(in_use.entered("the conversation"));
    return body(kept->rules);
  });
}

}  // namespace

gen_status gen_chat_set(gen_chat* chat, const char* key, const char* value, gen_error* error) {
  return with_rules(chat, error, [&](Rules& rules) -> Status {
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    Rules changed = rules;
    GEN_TRY(gen::api::set_by_name(rows(), changed, key, value));
    rules = std::move(changed);
    return {};
  });
}

gen_status gen_chat_describe_options(const gen_chat* chat, char* buf, size_t capacity, size_t* n,
                                     gen_error* error) {
  if (n != nullptr) *n = 0;
  return with_rules(chat, error, [&](const Rules& rules) -> Status {
    GEN_TRY(not_null(n, "n"));
    return gen::api::text_out(gen::api::describe_options(rows(), rules), buf, capacity, n);
  });
}

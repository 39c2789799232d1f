// SPDX-License-Identifier: Apache-2.0
// Conversations with unmistakable words, and what a template writes of their answers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/derive.h"
#include "calls/tool.h"
#include "chat/conversation.h"

namespace gen::calls::derivation {

inline constexpr std::string_view kFirstName = "zqalpha";
inline constexpr std::string_view kSecondName = "zqbeta";
inline constexpr std::string_view kQuestionWord = "zqquestion";
inline constexpr std::string_view kTextWord = "zqtext";
inline constexpr std::string_view kThoughtWord = "zqthought";
inline constexpr std::string_view kIdWord = "zqid11111";
inline constexpr std::string_view kKeyWord = "zqkey";
inline constexpr std::string_view kValueWord = "zqvalue";
inline constexpr std::string_view kOtherKeyWord = "zqother";
inline constexpr std::string_view kOtherValueWord = "zqsecond";

std::vector<chat::ToolCall> one_call();
std::vector<chat::ToolCall> two_calls();
/// One call with other arguments.
std::vector<chat::ToolCall> with_arguments(std::string arguments);
/// Of all types, with characters that are some syntax's own.
std::vector<chat::ToolCall> with_types();

/// An answer as the template writes it.
struct Written {
  std::string before;  // the conversation, with what the prompt writes of the answer
  std::string text;    // with what ends the answer
};

class Probes {
 public:
  explicit Probes(const Render& render) : render_(render) {}

  /// False if the template does not take a conversation at all.
  bool begin();
  /// Nothing if the template does not take it. `with_last_word`: the word that the prompt ends with
  /// belongs to the answer.
  [[nodiscard]] std::optional<Written> answer(std::string_view text, std::string_view reasoning,
                                              std::vector<chat::ToolCall> calls,
                                              bool with_last_word) const;
  /// What the template writes before an answer.
  [[nodiscard]] const std::string& prompt() const noexcept { return prompt_; }
  [[nodiscard]] const std::shared_ptr<const Tools>& tools() const noexcept { return tools_; }

 private:
  bool without_answer();

  const Render& render_;
  chat::Conversation conversation_;
  std::shared_ptr<const Tools> tools_;
  std::string question_;  // the conversation without an answer
  std::string prompt_;
};

/// Whether the format reads what was written as it was given. Nothing written is read.
bool reads(const CallFormat& format, const std::shared_ptr<const Tools>& tools,
           const std::optional<Written>& written, std::string_view text, std::string_view reasoning,
           const std::vector<chat::ToolCall>& calls);

}  // namespace gen::calls::derivation

// SPDX-License-Identifier: Apache-2.0
// What a template writes as the assistant's turn, and what the parser reads of it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/answers.h"
#include "calls/derive.h"
#include "chat/chat_form.h"
#include "chat/conversation.h"
#include "tokenizer/vocabularies.h"

namespace gen::calls::test {

struct Turn {
  std::string opening;  // what the prompt for an answer writes of it
  std::string text;     // the rest, without the token that ends it
};

class TemplateAnswers {
 public:
  explicit TemplateAnswers(std::string source) {
    tokenizer::VocabSpec spec = tokenizer::test::bpe_vocab({"h i"});
    spec.chat_template = std::move(source);
    tokenizer_ = tokenizer::test::must_create(spec);
    for (const char* const tool :
         {R"({"type": "function", "function": {"name": "get_weather", "description": "Weather.",
              "parameters": {"type": "object", "properties": {
                "city": {"type": "string", "description": "d"},
                "days": {"type": "integer", "description": "d"},
                "on": {"type": "boolean", "description": "d"},
                "where": {"type": "object", "description": "d",
                          "properties": {"zip": {"type": "string", "description": "d"}}}},
              "required": ["city"]}}})",
          R"({"type": "function", "function": {"name": "find", "description": "Search.",
              "parameters": {"type": "object", "properties": {
                "words": {"type": "array", "description": "d", "items": {"type": "string"}},
                "how": {"type": "number", "description": "d"}}, "required": ["words"]}}})"}) {
      tools_.emplace_back(tool);
    }
  }

  [[nodiscard]] std::shared_ptr<const Tools> tools() const { return tools_of(tools_); }

  /// kUnsupported or kInvalidArgument as the template refuses.
  [[nodiscard]] Result<Turn> turn(const chat::ChatMessage& answer) const {
    chat::Conversation conversation;
    conversation.messages = {{"user", "Hello there"}};
    conversation.tools = tools_;
    auto base = render(conversation, false);
    auto prompt = render(conversation, true);
    conversation.messages.push_back(answer);
    auto whole = render(conversation, false);
    if (!whole.ok()) {  // some templates show calls, but no descriptions of tools
      conversation.tools.clear();
      whole = render(conversation, false);
      conversation.messages.pop_back();
      base = render(conversation, false);
      prompt = render(conversation, true);
    }
    if (!base.ok()) return base.status();
    if (!prompt.ok()) return prompt.status();
    if (!whole.ok()) return whole.status();
    size_t begin = border(*base, *whole);
    size_t opened = std::max(begin, border(*prompt, *whole));
    // Command R's ends each prompt with words that no history has.
    constexpr std::string_view kBot = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>";
    if (begin < base->size() && prompt->ends_with(kBot)) {
      begin = opened = std::max(begin, whole->rfind(kBot) + kBot.size());
    }
    // A template that always writes a prompt tells nothing of its beginning.
    constexpr std::string_view kQuestion = "Hello there";
    if (*base == *prompt) begin = std::min(begin, whole->rfind(kQuestion) + kQuestion.size());
    Turn turn{whole->substr(begin, opened - begin), whole->substr(opened)};
    for (const std::string_view end :
         {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|end_of_text|>", "<turn|>",
          "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>",
          "<|assistant_end|>", "[EOS]", "<seed:eos>"}) {
      turn.text.resize(std::min(turn.text.size(), turn.text.find(end)));
    }
    if (turn.text.ends_with("<|message_sep|>\n\n")) turn.text.resize(turn.text.size() - 17);
    return turn;
  }

  [[nodiscard]] Render render() const {
    return [this](const chat::Conversation& conversation, bool prompt) {
      return render(conversation, prompt);
    };
  }

 private:
  [[nodiscard]] Result<std::string> render(const chat::Conversation& given, bool prompt) const {
    // FireFunction's wants these in the place of tools.
    chat::Conversation conversation = given;
    for (const char* const name : {"functions", "datetime"}) {
      GEN_TRY(conversation.set_variable(name, R"("-")"));
    }
    GEN_ASSIGN(const auto form, chat::ChatForm::of(*tokenizer_));
    GEN_ASSIGN(const auto segments, form->segments(conversation, prompt));
    std::string text;
    for (const auto& segment : segments) text += segment.text;
    return text;
  }

  // Up to where both are the same. Where they part inside a mark, before it.
  static size_t border(std::string_view prompt, std::string_view whole) {
    const auto ends = std::mismatch(prompt.begin(), prompt.end(), whole.begin(), whole.end());
    const auto same = static_cast<size_t>(ends.first - prompt.begin());
    const size_t mark = prompt.substr(0, same).find_last_of("<>]");
    const bool inside = same < prompt.size() && mark != prompt.npos && prompt[mark] == '<';
    return inside ? mark : same;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::vector<std::string> tools_;
};

inline std::vector<chat::ToolCall> some_calls(size_t n) {
  const std::vector<chat::ToolCall> all = {
      {"call00001", "get_weather",
       R"({"city": "O's \"lo\" {a}, [b]\n\u00e9 <c>", "days": 3, "on": true, "where": {"zip": "01"}})"},
      {"call00002", "find", R"({"words": ["x", "y z"], "how": 0.5})"}};
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
}

/// Empty, or how the answer differs from the calls.
inline std::string difference(const Answer& read, const std::vector<chat::ToolCall>& calls) {
  std::string wrong;
  for (const Fault& fault : read.faults) {
    wrong += "fault at " + std::to_string(fault.at) + ": " + fault.what + "; ";
  }
  if (read.calls.size() != calls.size()) {
    return wrong + std::to_string(read.calls.size()) + " calls of " + std::to_string(calls.size());
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    if (read.calls[i].name != calls[i].name) wrong += "name " + read.calls[i].name + "; ";
    if (!same_json(read.calls[i].arguments, calls[i].arguments)) {
      wrong += "arguments " + read.calls[i].arguments + "; ";
    }
  }
  return wrong;
}

}  // namespace gen::calls::test

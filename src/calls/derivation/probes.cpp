// SPDX-License-Identifier: Apache-2.0
// See probes.h.
#include "calls/derivation/probes.h"

#include <algorithm>
#include <utility>

#include "calls/call_parser.h"
#include "calls/derivation/texts.h"
#include "calls/text.h"

namespace gen::calls::derivation {
namespace {

bool same_calls(const std::vector<Call>& read, const std::vector<chat::ToolCall>& calls) {
  const auto same = [](const Call& one, const chat::ToolCall& other) {
    auto left = grammar::read_json(one.arguments);
    auto right = grammar::read_json(other.arguments);
    return one.name == other.name && left.ok() && right.ok() && grammar::json_equal(*left, *right);
  };
  return std::equal(read.begin(), read.end(), calls.begin(), calls.end(), same);
}

}  // namespace

std::vector<chat::ToolCall> one_call() { return with_arguments(R"({"zqkey": "zqvalue"})"); }

std::vector<chat::ToolCall> two_calls() {
  return {one_call()[0], {"zqid22222", std::string(kSecondName), R"({"zqother": "zqsecond"})"}};
}

std::vector<chat::ToolCall> with_arguments(std::string arguments) {
  return {{std::string(kIdWord), std::string(kFirstName), std::move(arguments)}};
}

std::vector<chat::ToolCall> with_types() {
  return with_arguments(
      R"({"zqkey": "a \"b\" {c}\n<d>", "zqnumber": 3, "zqtruth": true, "zqlist": [1, {"a": "b"}]})");
}

bool Probes::begin() {
  conversation_.messages = {{"user", std::string(kQuestionWord)}};
  auto tools = std::make_shared<Tools>();
  for (const std::string_view name : {kFirstName, kSecondName}) {
    const std::string parameters =
        R"({"type": "object", "properties": {"zqkey": {"type": "string", "description": "d"}, )"
        R"("zqother": {"type": "string", "description": "d"}, )"
        R"("zqnumber": {"type": "integer", "description": "d"}, )"
        R"("zqtruth": {"type": "boolean", "description": "d"}, )"
        R"("zqlist": {"type": "array", "description": "d"}}, "required": []})";
    auto tool = make_tool(name, "d", parameters);
    if (!tool.ok()) return false;
    conversation_.tools.push_back(describe_tool(*tool));
    tools->push_back(std::move(*tool));
  }
  tools_ = std::move(tools);
  if (!without_answer()) {
    conversation_.tools.clear();
    return without_answer();
  }
  return true;
}

bool Probes::without_answer() {
  auto base = render_(conversation_, false);
  auto prompt = render_(conversation_, true);
  if (!base.ok() || !prompt.ok()) return false;
  question_ = std::move(*base);
  prompt_ = std::move(*prompt);
  return true;
}

std::optional<Written> Probes::answer(std::string_view text, std::string_view reasoning,
                                      std::vector<chat::ToolCall> calls,
                                      bool with_last_word) const {
  chat::Conversation conversation = conversation_;
  chat::ChatMessage message{"assistant", std::string(text), std::string(reasoning)};
  message.tool_calls = std::move(calls);
  conversation.messages.push_back(std::move(message));
  auto whole = render_(conversation, false);
  if (!whole.ok() && !conversation.tools.empty()) {
    conversation.tools.clear();
    whole = render_(conversation, false);
  }
  if (!whole.ok()) return std::nullopt;
  const size_t question = whole->rfind(kQuestionWord);
  size_t from = common_begin(*whole, prompt_).size();
  from = std::max(from, common_begin(*whole, question_).size());
  // Prompts that are no beginning of the conversation: what follows the question.
  if (question != kNowhere && from < question) from = question + kQuestionWord.size();
  if (with_last_word) from = before_word(*whole, from);
  return Written{whole->substr(0, from), whole->substr(from)};
}

bool reads(const CallFormat& format, const std::shared_ptr<const Tools>& tools,
           const std::optional<Written>& written, std::string_view text, std::string_view reasoning,
           const std::vector<chat::ToolCall>& calls) {
  if (!written) return true;
  std::string_view opening;
  if (!format.reasoning.empty()) opening = mark_of(format.reasoning[0].open);
  if (!mark_of(written->before).ends_with(opening)) opening = {};
  CallParser parser(std::make_shared<const CallFormat>(format), tools, opening);
  std::vector<Piece> pieces;
  parser.feed(written->text, &pieces);
  parser.finish(&pieces);
  const Answer& read = parser.answer();
  std::string before;  // text before the first call
  for (const Piece& piece : pieces) {
    if (piece.kind == PieceKind::kCallName) break;
    if (piece.kind == PieceKind::kText) before += piece.text;
  }
  if (!same_calls(read.calls, calls)) return false;
  // Templates drop texts beside calls and older reasoning, and some write texts as reasoning or
  // behind the calls. What ends an answer comes as text here.
  const std::string_view said = mark_of(calls.empty() ? read.text : before);
  if (!said.starts_with(text) && !said.empty()) return false;
  if (!calls.empty() && said.size() > text.size()) return false;
  const bool has_text = !text.empty() && written->text.find(text) != kNowhere;
  if (has_text && (read.text + read.reasoning).find(text) == kNowhere) return false;
  const bool has_thought = !reasoning.empty() && written->text.find(reasoning) != kNowhere;
  return !has_thought || mark_of(read.reasoning) == reasoning;
}

}  // namespace gen::calls::derivation

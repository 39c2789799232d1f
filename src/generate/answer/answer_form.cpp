// SPDX-License-Identifier: Apache-2.0
// See answer_form.h.
#include "generate/answer/answer_form.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/json_text.h"
#include "base/log.h"
#include "calls/call_grammar.h"
#include "calls/derive.h"
#include "calls/format_table.h"
#include "chat/chat_form.h"

namespace gen::generate {
namespace {

using calls::CallFormat;

std::string_view source_of(const tokenizer::Tokenizer& tokenizer,
                           const chat::Conversation& conversation) {
  return conversation.form != nullptr ? std::string_view(conversation.source)
                                      : std::string_view(tokenizer.spec().chat_template);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The format without its calls: what it has to say of text and reasoning.
std::shared_ptr<const CallFormat> without_calls(const CallFormat& format, std::string_view source) {
  CallFormat plain = format;
  plain.section = {};
  plain.openings.clear();
  plain.call.clear();
  if (plain.messages) plain.messages->names_are_text = true;
  std::erase_if(plain.reasoning, [&](const calls::Marks& marks) {
    const std::string_view open = marks.open;
    return !contains(source, open.substr(0, open.find_last_not_of(" \n") + 1));
  });
  if (plain.reasoning.empty() && plain.wrappers.empty() && !plain.messages) return nullptr;
  return std::make_shared<const CallFormat>(std::move(plain));
}

// What the template says of an unknown family's calls.
std::shared_ptr<const CallFormat> derived_format(const tokenizer::Tokenizer& tokenizer,
                                                 const chat::Conversation& conversation,
                                                 DerivedFormat* derived) {
  const std::string_view source = source_of(tokenizer, conversation);
  if (derived->known && derived->source == source) return derived->format;
  auto found = calls::derive_format(
      [&](const chat::Conversation& probe, bool add_generation_prompt) -> Result<std::string> {
        chat::Conversation shown = probe;
        shown.source = conversation.source;
        shown.form = conversation.form;
        shown.now = conversation.now;
        GEN_ASSIGN(const auto form, chat::ChatForm::of(tokenizer, shown));
        GEN_ASSIGN(const auto segments, form->segments(shown, add_generation_prompt));
        std::string text;
        for (const chat::ChatSegment& segment : segments) text += segment.text;
        return text;
      });
  derived->known = false;
  derived->source = source;
  derived->format = found;
  derived->known = true;
  return found;
}

// The variables with which templates turn reasoning on and off.
constexpr std::string_view kSwitches[] = {"enable_thinking", "thinking"};
constexpr std::string_view kEffort = "reasoning_effort";

}  // namespace

Result<AnswerForm> answer_form(const tokenizer::Tokenizer& tokenizer,
                               const chat::Conversation& conversation, const AnswerRules& rules,
                               DerivedFormat* derived) {
  AnswerForm form;
  form.described = conversation.tools;
  if (rules.format == "off") return form;
  const std::string_view source = source_of(tokenizer, conversation);
  std::shared_ptr<const CallFormat> format;
  if (rules.format != "auto") {
    format = calls::format_named(rules.format);
    if (format == nullptr) {
      return error(Code::kInvalidArgument, "no format of calls is named %.40s, known are %s",
                   rules.format.c_str(), calls::format_names().c_str());
    }
  } else {
    format = calls::format_of_source(source);
  }
  if (conversation.tools.empty()) {
    const auto& known = format != nullptr ? format : calls::generic_format();
    if (derived->plain_of != known || derived->plain_source != source) {
      derived->plain_of.reset();
      derived->plain = without_calls(*known, source);
      derived->plain_source = source;
      derived->plain_of = known;
    }
    form.format = derived->plain;
    return form;
  }
  if (format == nullptr) format = derived_format(tokenizer, conversation, derived);
  form.format = format != nullptr ? std::move(format) : calls::generic_format();
  auto tools = std::make_shared<calls::Tools>();
  for (const std::string& json : conversation.tools) {
    auto tool = calls::read_tool(json);
    if (tool.ok()) {
      tools->push_back(std::move(*tool));
      continue;
    }
    if (tool.status().code() != Code::kInvalidArgument ||
        rules.calls == AnswerRules::Calls::kRequired || rules.calls == AnswerRules::Calls::kNamed) {
      return tool.status();
    }
    log(LogLevel::kWarning, "calls are not constrained: %s", tool.status().message());
    return form;
  }
  form.tools = std::move(tools);
  return form;
}

Result<std::shared_ptr<const grammar::Grammar>> answer_grammar(
    const AnswerForm& form, const AnswerRules& rules, const tokenizer::Tokenizer& tokenizer,
    bool opened) {
  using Made = std::shared_ptr<const grammar::Grammar>;
  const bool demanded =
      rules.calls == AnswerRules::Calls::kRequired || rules.calls == AnswerRules::Calls::kNamed;
  const bool has_tools = form.format != nullptr && form.tools != nullptr && !form.tools->empty();
  if (demanded && rules.format == "off") {
    return error(Code::kInvalidArgument, "a call is demanded, but call_format is off");
  }
  if (demanded && !has_tools) {
    return error(Code::kInvalidArgument, "a call is demanded, but the conversation has no tools");
  }
  if ((!has_tools || !rules.constrained) && !demanded && rules.response.empty()) return Made();
  calls::CallGrammarOptions options;
  options.choice = demanded ? calls::ToolChoice::kRequired
                   : rules.calls == AnswerRules::Calls::kNone || !has_tools
                       ? calls::ToolChoice::kNone
                       : calls::ToolChoice::kAuto;
  if (rules.calls == AnswerRules::Calls::kNamed) options.named = rules.tool;
  options.parallel = rules.parallel;
  options.in_reasoning = opened;
  options.may_reason = rules.reasoning != AnswerRules::Reasoning::kOff;
  options.response = rules.response;
  options.schemas.style = grammar::JsonStyle::of_models();
  const std::shared_ptr<const CallFormat> used =
      form.format != nullptr ? form.format : calls::generic_format();
  const CallFormat& format = *used;
  auto made = calls::call_grammar(format, has_tools ? *form.tools : calls::Tools(),
                                  tokenizer.spec(), options);
  const bool refused =
      made.status().code() == Code::kGrammar || made.status().code() == Code::kUnsupported;
  if (made.ok() || !refused || demanded || !has_tools) return made;
  // One tool that cannot be enforced does not free the others.
  calls::Tools tools = *form.tools;
  calls::CallGrammarOptions alone = options;
  alone.response.clear();
  for (calls::Tool& tool : tools) {
    const auto one = calls::call_grammar(format, {&tool, 1}, tokenizer.spec(), alone);
    if (one.ok() || one.status().code() != Code::kGrammar) continue;
    log(LogLevel::kWarning, "arguments are not constrained: %s", one.status().message());
    GEN_ASSIGN(tool, calls::make_tool(tool.name, tool.description, R"({"type": "object"})"));
  }
  made = calls::call_grammar(format, tools, tokenizer.spec(), options);
  if (made.ok() || made.status().code() != Code::kGrammar || !rules.response.empty()) return made;
  log(LogLevel::kWarning, "calls are not constrained: %s", made.status().message());
  return Made();
}

chat::Conversation with_reasoning(chat::Conversation conversation, const AnswerRules& rules,
                                  const tokenizer::Tokenizer& tokenizer) {
  const std::string_view source = source_of(tokenizer, conversation);
  const auto set = [&](std::string_view name, std::string value) {
    if (!contains(source, name)) return;
    // What the program set itself counts.
    for (const auto& [known, json] : conversation.variables) {
      if (known == name) return;
    }
    conversation.variables.emplace_back(name, std::move(value));
  };
  if (rules.reasoning != AnswerRules::Reasoning::kTemplate) {
    const bool on = rules.reasoning == AnswerRules::Reasoning::kOn;
    for (const std::string_view name : kSwitches) set(name, on ? "true" : "false");
  }
  if (!rules.effort.empty()) set(kEffort, json_quote(rules.effort));
  return conversation;
}

std::string reasoning_end(const CallFormat& format) {
  if (format.messages && !format.messages->text_header.empty()) {
    const auto& ends = format.messages->ends;
    return (ends.empty() ? "" : ends.front()) + format.messages->text_header;
  }
  return format.reasoning.empty() ? "" : format.reasoning.front().close;
}

void give_ids(const CallFormat& format, std::span<const chat::ChatMessage> before,
              std::vector<chat::ToolCall>* calls) {
  std::unordered_set<std::string> known;
  size_t number = 0;
  for (const chat::ChatMessage& message : before) {
    for (const chat::ToolCall& call : message.tool_calls) known.insert(call.id);
    number += message.tool_calls.size();
  }
  for (chat::ToolCall& call : *calls) {
    // A model may write an id twice; the second call gets another one.
    if (!call.id.empty() && known.insert(call.id).second) continue;
    do {
      const size_t n = number++;
      char text[32];
      switch (format.ids) {
        case calls::IdForm::kNine:
          std::snprintf(text, sizeof text, "call%05zu", n);
          break;
        case calls::IdForm::kNumber:
          std::snprintf(text, sizeof text, "%zu", n);
          break;
        case calls::IdForm::kIndexed:
          std::snprintf(text, sizeof text, ":%zu", n);
          break;
        default:
          std::snprintf(text, sizeof text, "call_%zu", n);
          break;
      }
      call.id = format.ids == calls::IdForm::kIndexed ? "functions." + call.name + text : text;
    } while (!known.insert(call.id).second);
  }
}

}  // namespace gen::generate

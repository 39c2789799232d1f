// SPDX-License-Identifier: Apache-2.0
// Conversations through templates, see chat.h.
#include "tokenizer/chat.h"

#include <algorithm>

#include "base/log.h"
#include "base/utf8.h"
#include "tokenizer/chat_forms.h"

namespace gen::tokenizer {
namespace {

using templates::Heap;
using templates::Value;
using templates::Writer;

// Templates write these between the marks of a turn (<|user|>), so they count as its own words.
constexpr std::string_view kRoles[] = {"assistant", "developer", "function", "ipython",
                                       "model",     "system",    "tool",     "user"};

Status check_role(std::string_view role) {
  const bool plain = role.find_first_of("\r\n") == std::string_view::npos &&
                     role.find("<|") == std::string_view::npos;
  if (!role.empty() && plain) return {};
  return error(Code::kInvalidArgument, "'%.*s' is not a chat role",
               static_cast<int>(std::min<size_t>(role.size(), 64)), role.data());
}

Status check_controls(const Tokenizer& tokenizer, const std::string& role,
                      std::string_view written) {
  std::vector<int32_t> ids;
  GEN_TRY(tokenizer.encode(written, kParseSpecial, &ids));
  for (const int32_t id : ids) {
    if (!tokenizer.is_control(id)) continue;
    const std::string& text = tokenizer.spec().tokens[static_cast<size_t>(id)];
    return error(Code::kInvalidArgument, "a message of role %.40s holds the special text %.80s",
                 role.c_str(), text.c_str());
  }
  return {};
}

// A role that is no word of the form must not become a token with what templates put around it.
Status check_message(const Tokenizer& tokenizer, const ChatMessage& message) {
  GEN_TRY(check_role(message.role));
  const bool known =
      std::find(std::begin(kRoles), std::end(kRoles), message.role) != std::end(kRoles);
  if (!known) {
    for (const char* open : {"", "<|", "<", "["}) {
      const char* const close = *open == '\0'    ? ""
                                : *open == '['   ? "]"
                                : open[1] == '|' ? "|>"
                                                 : ">";
      GEN_TRY(check_controls(tokenizer, message.role, open + message.role + close));
    }
  }
  return check_controls(tokenizer, message.role, message.content);
}

std::string token_text(const Tokenizer& tokenizer, Special kind) {
  const int32_t id = tokenizer.special(kind);
  return id < 0 ? std::string() : tokenizer.spec().tokens[static_cast<size_t>(id)];
}

}  // namespace

Result<ChatMessage> chat_message(std::string_view role, std::string_view content) {
  if (role.empty()) return error(Code::kInvalidArgument, "role is empty");
  if (!utf8_valid(role)) return error(Code::kInvalidArgument, "role is not UTF-8");
  if (const size_t valid = utf8_valid_prefix(content); valid != content.size()) {
    return error(Code::kInvalidArgument, "text is not UTF-8 at byte %zu of %zu", valid,
                 content.size());
  }
  return ChatMessage{std::string(role), std::string(content)};
}

Result<std::shared_ptr<const ChatForm>> ChatForm::of(const Tokenizer& tokenizer) {
  if (auto kept = tokenizer.derived(Kept::kChat)) {
    return std::static_pointer_cast<const ChatForm>(std::move(kept));
  }
  std::string_view source = tokenizer.spec().chat_template;
  if (source.empty()) {
    const BuiltinForm* const form = recognise_form(tokenizer.spec());
    if (form == nullptr) return error(Code::kUnsupported, "the model has no chat template");
    log(LogLevel::kWarning, "the model has no chat template; by its tokens the form %.*s is taken",
        static_cast<int>(form->name.size()), form->name.data());
    source = form->source;
  }
  auto compiled = templates::Template::compile(source);
  if (!compiled.ok()) {
    return error(Code::kUnsupported, "the model's chat template cannot be used: %s",
                 compiled.status().message());
  }
  auto made = std::make_shared<ChatForm>();
  made->template_ = std::move(*compiled);
  made->bos_ = token_text(tokenizer, Special::kBos);
  made->eos_ = token_text(tokenizer, Special::kEos);
  return std::static_pointer_cast<const ChatForm>(
      tokenizer.keep_derived(std::move(made), Kept::kChat));
}

Result<std::vector<ChatSegment>> ChatForm::segments(std::span<const ChatMessage> messages,
                                                    bool add_generation_prompt) const {
  Heap heap;
  const auto word = [&](std::string_view text) { return heap.string(text, Writer::kTemplate); };
  GEN_ASSIGN(const Value role_key, word("role"));
  GEN_ASSIGN(const Value content_key, word("content"));
  std::vector<Value> rows;
  for (const ChatMessage& message : messages) {
    const bool known =
        std::find(std::begin(kRoles), std::end(kRoles), message.role) != std::end(kRoles);
    GEN_ASSIGN(const Value role,
               heap.string(message.role, known ? Writer::kTemplate : Writer::kUser));
    GEN_ASSIGN(const Value content, heap.string(message.content, Writer::kUser));
    auto* const row = heap.make<templates::Dict>();
    row->set(role_key, role);
    row->set(content_key, content);
    rows.push_back(Value::of(templates::Kind::kDict, row));
  }
  GEN_ASSIGN(const Value list, heap.sequence(templates::Form::kList, std::move(rows)));
  GEN_ASSIGN(const Value bos, word(bos_));
  GEN_ASSIGN(const Value eos, word(eos_));
  // As transformers gives them: tools and documents are none, not undefined.
  const templates::Variables variables = {
      {"messages", list},           {"tools", Value::none()},
      {"documents", Value::none()}, {"add_generation_prompt", Value::of(add_generation_prompt)},
      {"bos_token", bos},           {"eos_token", eos}};
  auto text = template_->render(variables);
  if (!text.ok()) {
    const Status status = text.status();
    if (status.code() == Code::kInvalidArgument) return status;
    return error(Code::kUnsupported, "the model's chat template cannot be used: %s",
                 status.message());
  }
  std::vector<ChatSegment> segments;
  text->runs(0, text->size(), [&](std::string_view run, Writer writer) {
    segments.push_back({std::string(run), writer == Writer::kTemplate});
  });
  return segments;
}

Result<std::string> format_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                bool add_generation_prompt) {
  GEN_ASSIGN(const auto form, ChatForm::of(tokenizer));
  for (const ChatMessage& message : messages) GEN_TRY(check_message(tokenizer, message));
  GEN_ASSIGN(const auto segments, form->segments(messages, add_generation_prompt));
  std::string text;
  for (const ChatSegment& segment : segments) text.append(segment.text);
  return text;
}

}  // namespace gen::tokenizer

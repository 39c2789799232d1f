// SPDX-License-Identifier: Apache-2.0
// Renders conversations with templates, see chat_form.h.
#include "chat/chat_form.h"

#include <algorithm>

#include "base/log.h"
#include "template/json.h"
#include "template/roles.h"
#include "chat/builtin_forms.h"
#include "chat/template_faults.h"

namespace gen::chat {

using tokenizer::kAddBos;
using tokenizer::Kept;
using tokenizer::kParseSpecial;
using tokenizer::kTextStart;
using tokenizer::Special;
using tokenizer::TextSegment;
using tokenizer::Tokenizer;
using tokenizer::TokenType;
using tokenizer::VocabSpec;

namespace {

using templates::Heap;
using templates::Value;
using templates::Writer;

Status check_role(std::string_view role) {
  const bool plain = role.find_first_of("\r\n") == std::string_view::npos &&
                     role.find("<|") == std::string_view::npos;
  if (!role.empty() && plain) return {};
  return error(Code::kInvalidArgument, "'%.*s' is not a chat role",
               static_cast<int>(std::min<size_t>(role.size(), 64)), role.data());
}

// `where` names the owner of the text.
Status check_controls(const Tokenizer& tokenizer, const std::string& where,
                      std::string_view written) {
  std::vector<int32_t> ids;
  GEN_TRY(tokenizer.encode(written, kParseSpecial, &ids));
  for (const int32_t id : ids) {
    if (!tokenizer.is_control(id)) continue;
    const std::string& text = tokenizer.spec().tokens[static_cast<size_t>(id)];
    return error(Code::kInvalidArgument, "%.60s holds the special text %.80s", where.c_str(),
                 text.c_str());
  }
  return {};
}

// A role that the form does not know must not merge into a token with the template's text around
// it.
Status check_message(const Tokenizer& tokenizer, const ChatMessage& message) {
  GEN_TRY(check_role(message.role));
  const std::string where = "a message of role " + message.role.substr(0, 40);
  const bool known = templates::is_known_role(message.role);
  if (!known) {
    for (const char* open : {"", "<|", "<", "["}) {
      const char* const close = *open == '\0'    ? ""
                                : *open == '['   ? "]"
                                : open[1] == '|' ? "|>"
                                                 : ">";
      GEN_TRY(check_controls(tokenizer, where, open + message.role + close));
    }
  }
  return check_controls(tokenizer, where, message.content);
}

std::string token_text(const Tokenizer& tokenizer, Special kind) {
  const int32_t id = tokenizer.special(kind);
  return id < 0 ? std::string() : tokenizer.spec().tokens[static_cast<size_t>(id)];
}

bool is_name_byte(char byte) noexcept {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_';
}

// Whether a template names it as a member: message.key, message['key'], "key" in message.
bool names_member(std::string_view source, std::string_view key) noexcept {
  for (size_t at = source.find(key); at != std::string_view::npos; at = source.find(key, at + 1)) {
    const char before = at > 0 ? source[at - 1] : ' ';
    const size_t end = at + key.size();
    if ((before == '.' || before == '\'' || before == '"') &&
        (end == source.size() || !is_name_byte(source[end]))) {
      return true;
    }
  }
  return false;
}

// The key under which templates expect the assistant's reasoning.
std::string_view reasoning_key(std::string_view source) noexcept {
  for (const std::string_view key : {"reasoning_content", "thinking", "reasoning"}) {
    if (names_member(source, key)) return key;
  }
  return "reasoning_content";
}

// A user-defined token whose text looks like a mark.
bool looks_like_mark(const Tokenizer& tokenizer, int32_t id) {
  const VocabSpec& spec = tokenizer.spec();
  if (spec.types[static_cast<size_t>(id)] != TokenType::kUserDefined) return false;
  const std::string_view text = spec.tokens[static_cast<size_t>(id)];
  return text.size() >= 3 && (text.front() == '<' || text.front() == '[');
}

// A user-defined token that delimits turns, as control tokens do elsewhere.
bool is_user_mark(const Tokenizer& tokenizer, int32_t id) {
  if (!looks_like_mark(tokenizer, id)) return false;
  const std::string_view text = tokenizer.spec().tokens[static_cast<size_t>(id)];
  const auto ends = tokenizer.end_tokens();
  return text.find('|') != std::string_view::npos || is_form_mark(text) ||
         std::binary_search(ends.begin(), ends.end(), id);
}

Status unusable(const Status& status) {
  return error(Code::kUnsupported, "the chat template cannot be used: %s", status.message());
}

/// Builds the template values of one conversation.
class Filler {
 public:
  explicit Filler(Heap* heap) : heap_(heap) {}

  Result<Value> word(std::string_view text) { return heap_->string(text, Writer::kTemplate); }
  Result<Value> text(std::string_view text) { return heap_->string(text, Writer::kUser); }
  Result<Value> json(std::string_view text) {
    return templates::read_json(text, heap_, Writer::kUser);
  }
  templates::Dict* dict() { return heap_->make<templates::Dict>(); }
  static Value of(templates::Dict* dict) { return Value::of(templates::Kind::kDict, dict); }

  Status set(templates::Dict* dict, std::string_view key, Result<Value> value) {
    GEN_TRY(value.status());
    GEN_ASSIGN(const Value name, word(key));
    dict->set(name, *value);
    return {};
  }

  Result<Value> calls(const std::vector<ToolCall>& calls, bool as_text) {
    std::vector<Value> rows;
    for (const ToolCall& call : calls) {
      auto* const function = dict();
      GEN_TRY(set(function, "name", text(call.name)));
      GEN_TRY(set(function, "arguments", as_text ? text(call.arguments) : json(call.arguments)));
      auto* const row = dict();
      if (!call.id.empty()) GEN_TRY(set(row, "id", text(call.id)));
      GEN_TRY(set(row, "type", word("function")));
      GEN_TRY(set(row, "function", of(function)));
      rows.push_back(of(row));
    }
    return heap_->sequence(templates::Form::kList, std::move(rows));
  }

  // Of an answer as it was written, control tokens are the model's own.
  Result<Value> content(const ChatMessage& message) {
    if (!message.written.empty() || message.controls.empty()) return text(message.content);
    templates::Text all;
    size_t at = 0;
    const std::string_view bytes = message.content;
    for (size_t i = 0; i + 1 < message.controls.size(); i += 2) {
      all.append(bytes.substr(at, message.controls[i] - at), Writer::kUser);
      at = message.controls[i + 1];
      all.append(bytes.substr(message.controls[i], at - message.controls[i]), Writer::kTemplate);
    }
    all.append(bytes.substr(at), Writer::kUser);
    return heap_->string(std::move(all));
  }

  Result<Value> message(const ChatMessage& message, std::string_view reasoning,
                        bool without_content, bool as_text) {
    const bool known = templates::is_known_role(message.role);
    auto* const row = dict();
    GEN_TRY(set(row, "role", known ? word(message.role) : text(message.role)));
    const bool none = without_content && message.content.empty() && !message.tool_calls.empty();
    GEN_TRY(set(row, "content", none ? Result<Value>(Value::none()) : content(message)));
    if (!message.reasoning.empty()) GEN_TRY(set(row, reasoning, text(message.reasoning)));
    if (!message.name.empty()) GEN_TRY(set(row, "name", text(message.name)));
    if (!message.tool_call_id.empty()) {
      GEN_TRY(set(row, "tool_call_id", text(message.tool_call_id)));
    }
    if (!message.tool_calls.empty()) {
      GEN_TRY(set(row, "tool_calls", calls(message.tool_calls, as_text)));
    }
    return of(row);
  }

  Result<Value> tools(const std::vector<std::string>& tools) {
    std::vector<Value> rows;
    for (const std::string& tool : tools) {
      GEN_ASSIGN(const Value row, json(tool));
      rows.push_back(row);
    }
    return heap_->sequence(templates::Form::kList, std::move(rows));
  }

 private:
  Heap* heap_;
};

}  // namespace

Result<std::shared_ptr<const ChatForm>> ChatForm::make(
    const Tokenizer& tokenizer, std::string_view source,
    std::shared_ptr<const templates::Template> compiled) {
  auto made = std::make_shared<ChatForm>();
  made->template_ = std::move(compiled);
  made->bos_ = token_text(tokenizer, Special::kBos);
  made->eos_ = token_text(tokenizer, Special::kEos);
  made->reasoning_key_ = reasoning_key(source);
  made->knows_tools_ = source.find("tools") != std::string_view::npos;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!looks_like_mark(tokenizer, id)) continue;
    const std::string& text = tokenizer.spec().tokens[static_cast<size_t>(id)];
    // Marks that the template itself writes, such as <tool_response>, are reserved for it.
    if (is_user_mark(tokenizer, id) || source.find(text) != std::string_view::npos) {
      made->mark_texts_.push_back(text);
    }
  }
  for (const std::string& text : made->mark_texts_) made->marks_.add(text, 0);
  made->marks_.finish();
  return std::shared_ptr<const ChatForm>(std::move(made));
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
  if (!compiled.ok()) return unusable(compiled.status());
  if (const std::string_view mark = missing_mark(tokenizer.spec(), source); !mark.empty()) {
    log(LogLevel::kWarning,
        "the chat template writes %.*s, which is no special token of the vocabulary",
        static_cast<int>(std::min<size_t>(mark.size(), 64)), mark.data());
  }
  if (const std::string_view fault = template_fault(source); !fault.empty()) {
    log(LogLevel::kWarning, "the chat template %.*s", static_cast<int>(fault.size()), fault.data());
  }
  GEN_ASSIGN(auto made, make(tokenizer, source, std::move(*compiled)));
  return std::static_pointer_cast<const ChatForm>(
      tokenizer.keep_derived(std::move(made), Kept::kChat));
}

Result<std::shared_ptr<const ChatForm>> ChatForm::of(const Tokenizer& tokenizer,
                                                     const Conversation& conversation) {
  return conversation.form == nullptr ? of(tokenizer)
                                      : make(tokenizer, conversation.source, conversation.form);
}

// A template silently drops a call that is not in the style it expects, such as "content" set to
// none beside calls, or arguments as text. The styles are therefore tried on a small conversation,
// the most common one first.
std::optional<ChatForm::CallStyle> ChatForm::call_style(const Conversation& conversation) const {
  constexpr int kStyles = 4;
  const auto style_of = [](int n) { return CallStyle{n % 2 == 1, n >= 2}; };
  const int known = call_style_.load(std::memory_order_relaxed);
  if (known >= 0) return style_of(known);
  Conversation probe;
  probe.variables = conversation.variables;
  probe.now = conversation.now;
  probe.messages = {{"user", "a"}, {"assistant", ""}, {"tool", "b"}};
  probe.messages[1].tool_calls = {{"call12345", "probed", R"({"key": "probed value"})"}};
  probe.messages[2].name = "probed";
  probe.messages[2].tool_call_id = "call12345";
  if (knows_tools_) {
    probe.tools = {R"({"type": "function", "function": {"name": "probed", "description": "d",)"
                   R"("parameters": {"type": "object", "properties": {}}}})"};
  }
  for (int n = 0; n < kStyles; ++n) {
    Heap heap;
    auto text = render(probe, style_of(n), false, &heap);
    if (!text.ok() || text->view().find("probed value") == std::string_view::npos) continue;
    call_style_.store(n, std::memory_order_relaxed);
    return style_of(n);
  }
  return std::nullopt;
}

Status ChatForm::fill(const Conversation& conversation, const CallStyle& style, Heap* heap,
                      templates::Variables* out) const {
  Filler filler(heap);
  const auto set = [out](std::string_view name, Result<Value> value) -> Status {
    GEN_TRY(value.status());
    out->emplace_back(name, *value);
    return {};
  };
  for (const auto& [name, json] : conversation.variables) GEN_TRY(set(name, filler.json(json)));
  std::vector<Value> rows;
  for (const ChatMessage& message : conversation.messages) {
    GEN_ASSIGN(const Value row,
               filler.message(message, reasoning_key_, style.without_content, style.as_text));
    rows.push_back(row);
  }
  GEN_TRY(set("messages", heap->sequence(templates::Form::kList, std::move(rows))));
  if (!conversation.tools.empty()) GEN_TRY(set("tools", filler.tools(conversation.tools)));
  GEN_TRY(set("bos_token", filler.word(bos_)));
  return set("eos_token", filler.word(eos_));
}

void ChatForm::add_user_text(std::string_view text, std::vector<ChatSegment>* out) const {
  size_t begin = 0;
  for (size_t from = 0; const auto match = marks_.find(text, from); from = begin) {
    out->push_back({std::string(text.substr(begin, match->begin + 1 - begin)), false});
    begin = match->begin + 1;
  }
  if (begin < text.size()) out->push_back({std::string(text.substr(begin)), false});
}

Result<templates::Text> ChatForm::render(const Conversation& conversation, const CallStyle& style,
                                         bool add_generation_prompt, Heap* heap) const {
  // Transformers passes none to templates if there are no tools or documents. Some templates
  // iterate over them without a check, which works if they are undefined.
  templates::Variables variables = {{"tools", Value::none()}, {"documents", Value::none()}};
  const auto absent = static_cast<ptrdiff_t>(variables.size());
  GEN_TRY(fill(conversation, style, heap, &variables));
  variables.emplace_back("add_generation_prompt", Value::of(add_generation_prompt));
  templates::RenderOptions options;
  options.now = conversation.now;
  auto text = template_->render(variables, options);
  if (text.ok() || text.status().code() != Code::kInvalidArgument) return text;
  variables.erase(variables.begin(), variables.begin() + absent);
  return template_->render(variables, options);
}

// Answers with calls become the text that the model wrote. False if that is not known.
static bool write_calls(Conversation* conversation) {
  for (ChatMessage& message : conversation->messages) {
    if (message.tool_calls.empty()) continue;
    if (message.written.empty()) return false;
    message.content = std::move(message.written);
    message.written.clear();
    message.tool_calls.clear();
    message.reasoning.clear();
  }
  return true;
}

Result<std::vector<ChatSegment>> ChatForm::segments(const Conversation& conversation,
                                                    bool add_generation_prompt) const {
  if (!conversation.tools.empty() && !knows_tools_) {
    return error(Code::kUnsupported, "the chat template does not show tools");
  }
  const bool calls =
      std::any_of(conversation.messages.begin(), conversation.messages.end(),
                  [](const ChatMessage& message) { return !message.tool_calls.empty(); });
  const std::optional<CallStyle> style = calls ? call_style(conversation) : CallStyle();
  if (!style.has_value()) {
    Conversation written = conversation;
    if (write_calls(&written)) return segments(written, add_generation_prompt);
  }
  Heap heap;
  auto text = render(conversation, style.value_or(CallStyle()), add_generation_prompt, &heap);
  if (text.ok() && !style.has_value()) {
    return error(Code::kUnsupported, "the chat template does not show the tool calls of messages");
  }
  if (!text.ok()) {
    if (text.status().code() == Code::kInvalidArgument) return text.status();
    return unusable(text.status());
  }
  std::vector<ChatSegment> segments;
  text->runs(0, text->size(), [&](std::string_view run, Writer writer) {
    if (writer == Writer::kTemplate) {
      segments.push_back({std::string(run), true});
    } else {
      add_user_text(run, &segments);
    }
  });
  return segments;
}

Status encode_chat(const Tokenizer& tokenizer, const Conversation& conversation,
                   bool add_generation_prompt, std::vector<int32_t>* out) {
  GEN_ASSIGN(const auto form, ChatForm::of(tokenizer, conversation));
  GEN_ASSIGN(const auto segments, form->segments(conversation, add_generation_prompt));
  std::vector<TextSegment> views;
  views.reserve(segments.size());
  for (const ChatSegment& segment : segments)
    views.push_back({segment.text, segment.parse_special});
  if (views.empty()) return {};
  return tokenizer.encode_segments(views, tokenizer.spec().add_bos ? kAddBos : 0U, kTextStart, out);
}

Result<std::string> chat_opening(const Tokenizer& tokenizer, const Conversation& conversation) {
  GEN_ASSIGN(const auto form, ChatForm::of(tokenizer, conversation));
  GEN_ASSIGN(const auto segments, form->segments(conversation, true));
  const bool written = !segments.empty() && segments.back().parse_special;
  return written ? segments.back().text : std::string();
}

ChatMatch match_chat(const Tokenizer& tokenizer, std::span<const int32_t> held,
                     std::span<const int32_t> wanted) {
  const auto atomic = [&](int32_t id) {
    return tokenizer.is_control(id) || is_user_mark(tokenizer, id);
  };
  const auto before = [](std::span<const int32_t> ids, size_t at) {
    return at > 0 ? ids[at - 1] : kTextStart;
  };
  const auto known = [&](int32_t id) { return id >= 0 && id < tokenizer.vocab_size(); };
  // A piece depends on the token before it, which may differ although the texts are equal.
  const auto alike_behind = [&](int32_t id, int32_t left, int32_t right) {
    if (left == right || atomic(id)) return true;
    std::string pieces[2];
    return tokenizer.append_piece(id, left, true, &pieces[0]).ok() &&
           tokenizer.append_piece(id, right, true, &pieces[1]).ok() && pieces[0] == pieces[1];
  };
  ChatMatch match;
  size_t left = 0;
  size_t right = 0;
  std::string left_text;  // the part of one side that is ahead of the other
  std::string right_text;
  for (;;) {
    if (left_text.empty() && right_text.empty()) {
      const bool goes_on = right < wanted.size();
      if (goes_on && !known(wanted[right])) return match;
      const bool alike =
          !goes_on || alike_behind(wanted[right], before(held, left), before(wanted, right));
      if (alike) match = {left, right};
      if (left == held.size() || !goes_on) return match;
      if (alike && held[left] == wanted[right]) {
        ++left;
        ++right;
        continue;
      }
    }
    // The shorter side advances by a token.
    const bool go_left = left_text.size() <= right_text.size();
    if (go_left ? left == held.size() : right == wanted.size()) return match;
    const int32_t previous = go_left ? before(held, left) : before(wanted, right);
    const int32_t id = go_left ? held[left++] : wanted[right++];
    if (!known(id) || atomic(id)) return match;
    if (!tokenizer.append_piece(id, previous, true, go_left ? &left_text : &right_text).ok()) {
      return match;
    }
    const size_t same = std::min(left_text.size(), right_text.size());
    if (left_text.compare(0, same, right_text, 0, same) != 0) return match;
    left_text.erase(0, same);
    right_text.erase(0, same);
  }
}

Result<std::string> format_chat(const Tokenizer& tokenizer, const Conversation& conversation,
                                bool add_generation_prompt) {
  GEN_ASSIGN(const auto form, ChatForm::of(tokenizer, conversation));
  for (const ChatMessage& message : conversation.messages)
    GEN_TRY(check_message(tokenizer, message));
  GEN_ASSIGN(const auto segments, form->segments(conversation, add_generation_prompt));
  std::string text;
  for (const ChatSegment& segment : segments) {
    if (!segment.parse_special)
      GEN_TRY(check_controls(tokenizer, "the conversation", segment.text));
    text.append(segment.text);
  }
  return text;
}

}  // namespace gen::chat

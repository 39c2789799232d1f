// SPDX-License-Identifier: Apache-2.0
// AnswerForm: how the answers of a conversation are read and constrained: the format of calls that
// its template writes, its tools, and the grammar of their calls.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "calls/call_format.h"
#include "calls/tool.h"
#include "chat/conversation.h"
#include "generate/answer/answer_rules.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

struct AnswerForm {
  /// Null: answers are text as they are. Without tools, only reasoning is read.
  std::shared_ptr<const calls::CallFormat> format;
  std::shared_ptr<const calls::Tools> tools;  // null: none
  std::vector<std::string> described;         // the conversation's tools, as it has them
};

/// What follows from a template: the format that was derived from it (calls/derive.h), since that
/// takes ten renderings, and its format without calls.
struct DerivedFormat {
  bool known = false;
  std::string source;                               // of the template
  std::shared_ptr<const calls::CallFormat> format;  // null: none was found
  /// Of conversations without tools: the same object while neither of both changes, so that
  /// grammars made for it can be used again.
  std::shared_ptr<const calls::CallFormat> plain_of;
  std::string plain_source;
  std::shared_ptr<const calls::CallFormat> plain;
};

/// The form for a conversation. kInvalidArgument for a format that does not exist, and for tools
/// that cannot be read where the rules demand a call.
Result<AnswerForm> answer_form(const tokenizer::Tokenizer& tokenizer,
                               const chat::Conversation& conversation, const AnswerRules& rules,
                               DerivedFormat* derived);

/// The grammar of an answer; null if nothing constrains it. `opened`: it begins inside reasoning.
/// Tools whose schemas cannot be enforced leave answers free, with a warning in the log, unless the
/// rules demand a call. Errors as calls::call_grammar.
Result<std::shared_ptr<const grammar::Grammar>> answer_grammar(
    const AnswerForm& form, const AnswerRules& rules, const tokenizer::Tokenizer& tokenizer,
    bool opened);

/// The conversation with the variables of its template that say what the rules want of reasoning.
chat::Conversation with_reasoning(chat::Conversation conversation, const AnswerRules& rules,
                                  const tokenizer::Tokenizer& tokenizer);

/// What ends reasoning, as the model would write it; empty if the format has none.
std::string reasoning_end(const calls::CallFormat& format);

/// Gives calls without an id one that no call of the messages before has, in the format's form.
void give_ids(const calls::CallFormat& format, std::span<const chat::ChatMessage> before,
              std::vector<chat::ToolCall>* calls);

}  // namespace gen::generate

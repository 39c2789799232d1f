// SPDX-License-Identifier: Apache-2.0
// Where messages begin and end among the tokens of a conversation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chat/conversation.h"
#include "tokenizer/tokenizer.h"

namespace gen::chat {

/// Positions in `ids`, which encode_chat() made of the conversation, ascending: those up to which
/// the ids stay when the last message is another, or what follows it; the same of the last message
/// of the user, since templates lay out anew what follows it (the reasoning of earlier answers
/// goes). Found by rendering conversations that differ so, so nothing is assumed of the template;
/// what it refuses is left out. Up to four renderings.
std::vector<int32_t> chat_borders(const tokenizer::Tokenizer& tokenizer,
                                  const Conversation& conversation, std::span<const int32_t> ids);

}  // namespace gen::chat

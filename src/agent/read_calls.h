// SPDX-License-Identifier: Apache-2.0
// Calls in a text that the caller's own model wrote.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "calls/call_format.h"
#include "calls/call_parser.h"
#include "chat/conversation.h"

namespace gen::agent {

/// By name; an empty one is "json". kInvalidArgument for an unknown one.
Result<std::shared_ptr<const calls::CallFormat>> call_format(std::string_view name);

/// An answer as a message of the assistant. Calls without an id get one, in the form of the format,
/// that no call of the conversation has.
chat::ChatMessage answer_message(const calls::Answer& answer, const calls::CallFormat& format,
                                 const chat::Conversation& before);

/// {"text","reasoning","calls":[{"id","name","arguments":{…}}],"faults":[{"at","what"}]}; calls
/// without an id get call_0, call_1, …
std::string parsed_calls(const std::shared_ptr<const calls::CallFormat>& format,
                         std::string_view text);

}  // namespace gen::agent

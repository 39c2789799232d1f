// SPDX-License-Identifier: Apache-2.0
// The format of calls of a template that no row of the table fits: found from what the template
// writes of a few conversations with unmistakable words.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "calls/call_format.h"
#include "chat/conversation.h"

namespace gen::calls {

/// Renders a conversation, with or without the opening of an answer behind it.
using Render =
    std::function<Result<std::string>(const chat::Conversation&, bool add_generation_prompt)>;

/// Known shapes: a JSON object with its keys, alone, in a list or between marks; the name between
/// marks and the arguments as JSON, in tags with or without their names in them, as in Python, or
/// as a dictionary. Null if the template shows no calls, or if what was found does not read back
/// what the template wrote. Fifteen to forty renderings.
std::shared_ptr<const CallFormat> derive_format(const Render& render);

}  // namespace gen::calls

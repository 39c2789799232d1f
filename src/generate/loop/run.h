// SPDX-License-Identifier: Apache-2.0
// Whole calls: a generation pulled to its end, its events pushed to a callback.
// Generator::generate, Session::generate and Session::open are defined here, too: what they need
// stands above them.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "generate/request/call_params.h"
#include "generate/request/prompt.h"
#include "generate/request/result.h"

namespace gen::generate {

class Generation;
class Session;

/// What a callback's exception means, kInternal or kOutOfMemory. Call in a catch block only.
Status callback_failure() noexcept;

/// Pulls a generation to its end, each event handed to `callback` (may be null); how it ended, or
/// why it could not be pulled on.
Status pull_all(Generation* generation, EventCallback callback, void* user);

/// Runs a whole call: opens, pulls, hands every event to `callback` (may be null). `*result` is
/// filled once generation has begun, whatever the status, and left empty if open() failed.
Status run(std::shared_ptr<Session> session, const Prompt& prompt, const CallParams& params,
           EventCallback callback, void* user, std::optional<GenResult>* result);

}  // namespace gen::generate

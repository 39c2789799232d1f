// SPDX-License-Identifier: Apache-2.0
// Whole calls: a generation is pulled to its end and its events are pushed to a callback. run.cpp
// also defines Generator::generate, Session::generate and Session::open, which need Generation.
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

/// The status for an exception thrown by a callback, kInternal or kOutOfMemory. Call it in a catch
/// block only.
Status callback_failure() noexcept;

/// Pulls a generation to its end and hands each event to `callback` (may be null). Returns how it
/// ended, or why it could not continue.
Status pull_all(Generation* generation, EventCallback callback, void* user);

/// Runs a whole call: opens a generation, pulls it and hands every event to `callback` (may be
/// null). `*result` is filled once generation has begun, whatever the status, and left empty if
/// open() failed.
Status run(std::shared_ptr<Session> session, const Prompt& prompt, const CallParams& params,
           EventCallback callback, void* user, std::optional<GenResult>* result);

}  // namespace gen::generate

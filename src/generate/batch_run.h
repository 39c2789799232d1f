// SPDX-License-Identifier: Apache-2.0
// Runs many requests from one thread. Each request is a generation on its own session; their rows
// run in common steps. Streams driven by several threads meet in the scheduler instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/loop/generation.h"

namespace gen::generate {

class Generator;

class Session;

struct BatchRequest {
  Prompt prompt;
  CallParams params;
  Urgency urgency;                           // the priority also decides which requests begin first
  std::shared_ptr<const Session> from = {};  // continues a fork of it; null: a new session
};

/// EventCallback for the request at `index`. A non-zero return value stops that request only.
using BatchCallback = int32_t (*)(void* user, size_t index, const Event& event);

/// Runs all requests and returns one result each, in the same order. A result holds the status of
/// its request; a request that could not begin has the status alone. Each request gets exactly one
/// done event. At most as many requests as fit into one step run at once. Throws std::bad_alloc
/// only before the first request begins.
std::vector<GenResult> run_batch(const Generator& generator, std::span<const BatchRequest> requests,
                                 BatchCallback callback, void* user);

}  // namespace gen::generate

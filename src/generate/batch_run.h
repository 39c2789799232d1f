// SPDX-License-Identifier: Apache-2.0
// Many requests from one thread: each is a generation on a session of its own, and what they want
// next runs in common steps. Streams that several threads drive meet in the scheduler instead.
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
  Urgency urgency;  // a priority also decides who begins where not all can at once
  std::shared_ptr<const Session> from = {};  // goes on from what this holds; null: a new session
};

/// As EventCallback, for the request at `index`; a non-zero answer stops that request alone.
using BatchCallback = int32_t (*)(void* user, size_t index, const Event& event);

/// Runs all requests and gives one result each, in their order; how a request ended is in its
/// result, also where it could not begin (then nothing is in it but the status). Each request gets
/// exactly one done event. At most as many as fit into one step are under way at once.
/// Throws std::bad_alloc before anything has begun, and then nothing has.
std::vector<GenResult> run_batch(const Generator& generator, std::span<const BatchRequest> requests,
                                 BatchCallback callback, void* user);

}  // namespace gen::generate

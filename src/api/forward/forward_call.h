// SPDX-License-Identifier: Apache-2.0
// Forward passes requested by C callers over their own caches.
#pragma once

#include <span>

#include "api/forward/kv_cache_trial.h"

namespace gen::api {

/// Evaluates tokens of one sequence in as many passes as needed; returns the logits [V] of the last
/// token.
Status forward_one(const ModelInCall& of, std::span<const int32_t> tokens, kv_cache& cache,
                   float* logits, size_t capacity);

/// The same, for hidden states [layers, T, D]; a layer may be GEN_HIDDEN_NORMED.
Status forward_hidden(const ModelInCall& of, std::span<const int32_t> tokens, kv_cache& cache,
                      std::span<const int32_t> layers, float* hidden, size_t capacity);

/// Runs one pass over rows of several sequences. `sequences` and `wants_logits` may be null, see
/// experimental.h. `tracer` may be null; it sees the pass.
Status forward_rows(const ModelInCall& of, std::span<const int32_t> tokens,
                    const int32_t* sequences, const uint8_t* wants_logits,
                    std::span<kv_cache* const> caches, float* logits, size_t capacity,
                    engine::Tracer* tracer = nullptr);

}  // namespace gen::api

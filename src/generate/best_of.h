// SPDX-License-Identifier: Apache-2.0
// Generates several texts from one prompt and returns the most likely ones.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "generate/batch_run.h"

namespace gen::generate {

class Generator;

/// Generates `best_of` texts, text i with the seed of the parameters + i. Returns the `n` texts
/// with the highest mean log-probability, best first; if n equals best_of, all of them in order of
/// i. Each text is the same as from a separate call. The prompt is evaluated once. Failed texts
/// take the last of the n places, up to all of them, because the ranking is incomplete without
/// them. Errors: kInvalidArgument unless 1 <= n <= best_of <= kMaxTexts and for a prompt without
/// tokens; otherwise as Session::append().
constexpr int32_t kMaxTexts = 128;
Result<std::vector<GenResult>> best_of(const Generator& generator, const Prompt& prompt,
                                       const CallParams& params, int32_t n, int32_t best_of);

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Several texts from one prompt, of which the likeliest are given.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "generate/batch_run.h"

namespace gen::generate {

class Generator;

/// Generates `best_of` texts, text i with the seed of the parameters + i, and gives the `n` whose
/// tokens have the highest mean log-probability, best first; all of them in their order where n is
/// best_of. Each is what a call of its own gives. The prompt is evaluated once. Texts that
/// failed take the last of the n places, all of them if need be: nobody knows then which were the
/// best of all. Errors: kInvalidArgument unless 1 <= n <= best_of <= kMaxTexts, and for a prompt
/// without tokens; as Session::append().
constexpr int32_t kMaxTexts = 128;
Result<std::vector<GenResult>> best_of(const Generator& generator, const Prompt& prompt,
                                       const CallParams& params, int32_t n, int32_t best_of);

}  // namespace gen::generate

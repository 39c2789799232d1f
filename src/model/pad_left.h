// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths as a rectangle, for the caller's models that need one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace gen::model {

/// `tokens` holds the sequences one after another. Writes rows as long as the longest, each filled
/// up with `pad` in front. kOutOfRange if `out` is too small.
Status pad_left(const int32_t* tokens, std::span<const size_t> lengths, int32_t pad,
                std::span<int32_t> out);

}  // namespace gen::model

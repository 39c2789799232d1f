// SPDX-License-Identifier: Apache-2.0
// Left-pads sequences of different lengths to a rectangle, for caller's models that need one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace gen::model {

/// `tokens` holds the sequences one after another. Writes rows of the longest length, each padded
/// with `pad` in front. kOutOfRange if `out` is too small.
Status pad_left(const int32_t* tokens, std::span<const size_t> lengths, int32_t pad,
                std::span<int32_t> out);

}  // namespace gen::model

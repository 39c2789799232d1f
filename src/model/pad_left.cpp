// SPDX-License-Identifier: Apache-2.0
// See pad_left.h.
#include "model/pad_left.h"

#include <algorithm>

#include "base/checked.h"

namespace gen::model {

Status pad_left(const int32_t* tokens, std::span<const size_t> lengths, int32_t pad,
                std::span<int32_t> out) {
  if (lengths.empty()) return {};
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  size_t needed = 0;
  if (!checked_mul(longest, lengths.size(), &needed) || needed > out.size()) {
    return error(Code::kOutOfRange, "%zu sequences of up to %zu tokens do not fit a buffer of %zu",
                 lengths.size(), longest, out.size());
  }
  auto* to = out.data();
  for (const size_t length : lengths) {
    to = std::fill_n(to, longest - length, pad);
    to = std::copy_n(tokens, length, to);
    tokens += length;
  }
  return {};
}

}  // namespace gen::model

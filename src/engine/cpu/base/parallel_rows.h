// SPDX-License-Identifier: Apache-2.0
// Splits the rows of an operation over the pool's threads. Rows are independent of one another, so
// the result does not depend on the split.
#pragma once

#include <cstdint>

#include "engine/cpu/base/context.h"

namespace gen::engine::cpu {

/// With fewer elements, waking the pool costs more than it saves.
constexpr int64_t kElementsWorthAThread = 16384;

/// The largest number of ranges that parallel_rows makes; each needs scratch of its own.
inline int32_t threads_for_rows(const CpuContext& context, int64_t rows,
                                int64_t elements_per_row) noexcept {
  return rows > 1 && rows * elements_per_row >= kElementsWorthAThread ? context.pool.size() : 1;
}

/// Calls work(begin, end, index) for ranges that cover [0, rows), index < threads_for_rows(). Calls
/// with the same index never overlap.
template <typename Work>
void parallel_rows(CpuContext& context, int64_t rows, int64_t elements_per_row,
                   const Work& work) noexcept {
  const int32_t threads = threads_for_rows(context, rows, elements_per_row);
  if (threads == 1) {
    work(int64_t{0}, rows, 0);
    return;
  }
  context.pool.share([&](int32_t index, int32_t shares) {
    const IndexRange part = split_range(rows, 1, shares, index);
    if (part.begin < part.end) work(part.begin, part.end, index);
  });
}

}  // namespace gen::engine::cpu

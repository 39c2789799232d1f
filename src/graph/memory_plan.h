// SPDX-License-Identifier: Apache-2.0
// The addresses of intermediate values: each gets an offset in one arena such that values alive at
// the same time never overlap. Sizes and offsets are bytes for one row; at run time both are
// multiplied by the number of rows, so one placement serves every batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gen::graph {

/// A value is written by instruction `first` and last read by instruction `last` (inclusive: an
/// instruction's inputs never share bytes with its outputs).
struct Lifetime {
  int32_t first = 0;
  int32_t last = 0;
  size_t row_bytes = 0;  // a multiple of 64
};

struct Placement {
  std::vector<size_t> offsets;  // one for each lifetime, multiples of 64
  size_t row_bytes = 0;         // of the whole arena
};

/// Places the largest first, each at the lowest offset that is free during its lifetime.
Placement place(std::span<const Lifetime> lifetimes);

}  // namespace gen::graph

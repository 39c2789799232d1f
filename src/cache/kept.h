// SPDX-License-Identifier: Apache-2.0
// Which rows of a plan become real, for caches and for states beside them.
#pragma once

#include <cstdint>

namespace gen::cache {

/// What becomes real of a plan: its first `n` rows, or, with `rows`, these n, ascending, as entries
/// one after another: a path of a tree, whose rows came at the positions that they then have.
struct Kept {
  int32_t n = 0;
  const int32_t* rows = nullptr;
};

}  // namespace gen::cache

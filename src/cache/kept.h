// SPDX-License-Identifier: Apache-2.0
// Which rows of a plan are committed, for caches and the states beside them.
#pragma once

#include <cstdint>

namespace gen::cache {

/// The committed rows of a plan: its first `n` rows or, with `rows`, these n, ascending, as
/// consecutive entries: a path of a tree, whose rows were planned at the positions that they then
/// have.
struct Kept {
  int32_t n = 0;
  const int32_t* rows = nullptr;
};

}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Rotary embedding of one head outside of a forward pass, in double precision, for caches that move
// keys to other positions. Forward passes use rope_append (ops.h).
#pragma once

#include <vector>

#include "engine/ops.h"

namespace gen::engine {

/// Rotates the first table.n_dims elements of x in place by `by` positions, which may be negative
/// or fractional. The table's magnitude is not applied: the first rotation of the key has already
/// done so.
void rope_turn(const RopeTable& table, double by, double* x) noexcept;

/// The same rotation for many heads: cosines and sines are computed once.
class RopeTurn {
 public:
  RopeTurn(const RopeTable& table, double by);
  void apply(double* x) const noexcept;

 private:
  struct Pair {
    double cosine;
    double sine;
  };
  bool adjacent_;
  std::vector<Pair> pairs_;
};

}  // namespace gen::engine

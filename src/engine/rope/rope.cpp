// SPDX-License-Identifier: Apache-2.0
// See rope.h.
#include "engine/rope/rope.h"

#include "engine/rope/rope_sincos.h"

namespace gen::engine {
namespace {

void turn(double cosine, double sine, double* a, double* b) noexcept {
  const double turned = *a * cosine - *b * sine;
  *b = *a * sine + *b * cosine;
  *a = turned;
}

}  // namespace

void rope_turn(const RopeTable& table, double by, double* x) noexcept {
  if (table.kind == RopeKind::kNone) return;
  const int32_t pairs = table.n_dims / 2;
  const bool adjacent = table.kind == RopeKind::kAdjacent;
  for (int32_t i = 0; i < pairs; ++i) {
    double sine = 0.0;
    double cosine = 0.0;
    rope_sincos(by * static_cast<double>(table.inv_freq[i]), &sine, &cosine);
    turn(cosine, sine, &x[adjacent ? 2 * i : i], &x[adjacent ? 2 * i + 1 : i + pairs]);
  }
}

RopeTurn::RopeTurn(const RopeTable& table, double by)
    : adjacent_(table.kind == RopeKind::kAdjacent) {
  if (table.kind == RopeKind::kNone) return;
  pairs_.resize(static_cast<size_t>(table.n_dims / 2));
  for (size_t i = 0; i < pairs_.size(); ++i) {
    rope_sincos(by * static_cast<double>(table.inv_freq[i]), &pairs_[i].sine, &pairs_[i].cosine);
  }
}

void RopeTurn::apply(double* x) const noexcept {
  const size_t n = pairs_.size();
  for (size_t i = 0; i < n; ++i) {
    turn(pairs_[i].cosine, pairs_[i].sine, &x[adjacent_ ? 2 * i : i],
         &x[adjacent_ ? 2 * i + 1 : i + n]);
  }
}

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// See rope.h.
#include "engine/rope.h"

#include "engine/cpu/rope_sincos.h"

namespace gen::engine {

void rope_turn(const RopeTable& table, double by, double* x) noexcept {
  if (table.kind == RopeKind::kNone) return;
  const int32_t pairs = table.n_dims / 2;
  const bool adjacent = table.kind == RopeKind::kAdjacent;
  for (int32_t i = 0; i < pairs; ++i) {
    double sine = 0.0;
    double cosine = 0.0;
    cpu::rope_sincos(by * static_cast<double>(table.inv_freq[i]), &sine, &cosine);
    double& a = x[adjacent ? 2 * i : i];
    double& b = x[adjacent ? 2 * i + 1 : i + pairs];
    const double turned = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = turned;
  }
}

}  // namespace gen::engine

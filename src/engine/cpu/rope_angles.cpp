// SPDX-License-Identifier: Apache-2.0
// rope_angles: cosines and sines of a step's positions, once for all layers. The product of
// position and frequency is made in double: in float it would be off by 1e-2 at position 1e5.
#include "engine/cpu/ops_run.h"
#include "engine/cpu/parallel_rows.h"
#include "engine/cpu/rope_sincos.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const RopeAnglesArgs& args) {
  if (context.dry_run) return {};
  constexpr int64_t kElementsPerPair = 64;  // an angle costs about as much as these
  const RopeTable& table = *args.table;
  const int32_t pairs = table.n_dims / 2;
  const auto rows = static_cast<int64_t>(args.positions.size());
  const double magnitude = table.magnitude;
  parallel_rows(context, rows, pairs * kElementsPerPair, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      const double position = args.positions[static_cast<size_t>(t)];
      float* cs = args.cs.data + t * args.cs.stride;
      for (int32_t i = 0; i < pairs; ++i) {
        double sine = 0.0;
        double cosine = 0.0;
        rope_sincos(position * static_cast<double>(table.inv_freq[i]), &sine, &cosine);
        cs[2 * i] = static_cast<float>(cosine * magnitude);
        cs[2 * i + 1] = static_cast<float>(sine * magnitude);
      }
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

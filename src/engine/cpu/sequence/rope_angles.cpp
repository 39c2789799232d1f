// SPDX-License-Identifier: Apache-2.0
// rope_angles: cosines and sines of a step's positions, once for all layers. The product of
// position and frequency is computed in double: in float its error is 1e-2 at position 1e5.
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/rope/rope_sincos.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const RopeAnglesArgs& args) {
  if (context.dry_run) return {};
  constexpr int64_t kElementsPerPair = 64;  // an angle costs about as much as these
  const auto pairs = static_cast<int32_t>(args.cs.cols / 2);
  const float* const inv_freq = context.at(args.inv_freq);
  const int32_t* const positions = context.at(args.positions);
  const Rows out = context.at(args.cs);
  const double magnitude = args.magnitude;
  parallel_rows(context, out.rows, pairs * kElementsPerPair,
                [&](int64_t begin, int64_t end, int32_t) {
                  for (int64_t t = begin; t < end; ++t) {
                    const double position = positions[t];
                    float* cs = out.row(t);
                    for (int32_t i = 0; i < pairs; ++i) {
                      double sine = 0.0;
                      double cosine = 0.0;
                      rope_sincos(position * static_cast<double>(inv_freq[i]), &sine, &cosine);
                      cs[2 * i] = static_cast<float>(cosine * magnitude);
                      cs[2 * i + 1] = static_cast<float>(sine * magnitude);
                    }
                  }
                });
  return {};
}

}  // namespace gen::engine::cpu

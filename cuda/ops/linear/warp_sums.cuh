// SPDX-License-Identifier: Apache-2.0
// Moves a warp's sums from tensor-core fragments (cuda/device/mma.cuh) to rows in shared memory.
// The epilogue of a product is then a loop: its code is generated once instead of once per sum, and
// adjacent lanes write adjacent outputs.
#pragma once

#include "cuda/ops/device.cuh"

namespace gen::cuda {

/// Rows of kOutputs sums of one warp, padded by four to reduce bank conflicts.
template <int32_t kOutputs>
class WarpSums {
 public:
  static constexpr int32_t kStride = kOutputs + 4;
  static constexpr size_t bytes(int32_t rows) noexcept {
    return static_cast<size_t>(rows * kStride) * sizeof(float);
  }

  /// Of warp `warp` of a block whose warps have `rows` rows each, in its dynamic shared memory.
  GEN_DEVICE WarpSums(int32_t warp, int32_t rows)
      : at_(dynamic_shared<float>(static_cast<size_t>(warp) * bytes(rows),
                                  static_cast<size_t>(rows * kStride))) {}

  /// A product of rows [row, row + 16) and outputs [output, output + 8).
  GEN_DEVICE void put(int32_t row, int32_t output, const float (&sums)[4]) const {
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      at_[(row + i / 2 * 8 + lane_of_warp() / 4) * kStride + output + lane_of_warp() % 4 * 2 +
          i % 2] = sums[i];
    }
  }
  /// A sum of any lane; valid after a barrier.
  [[nodiscard]] GEN_DEVICE float get(int32_t row, int32_t output) const {
    return at_[row * kStride + output];
  }

 private:
  Shared<float> at_;
};

}  // namespace gen::cuda

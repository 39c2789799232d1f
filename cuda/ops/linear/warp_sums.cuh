// SPDX-License-Identifier: Apache-2.0
// Sums that the lanes of a warp have as fragments of tensor cores (cuda/device/mma.cuh), laid out
// as rows in shared memory. The last step of a product is then a loop: it is in the code once, not
// once for each sum, and neighbouring lanes write neighbouring outputs.
#pragma once

#include "cuda/ops/device.cuh"

namespace gen::cuda {

/// Rows of kOutputs sums of one warp; four apart, so that fewer rows lie in the same bank.
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
  /// Of any lane, when all have passed a barrier.
  [[nodiscard]] GEN_DEVICE float get(int32_t row, int32_t output) const {
    return at_[row * kStride + output];
  }

 private:
  Shared<float> at_;
};

}  // namespace gen::cuda

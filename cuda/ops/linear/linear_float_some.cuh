// SPDX-License-Identifier: Apache-2.0
// Products of F16 and BF16 weights for two to eight rows and enough outputs to fill a device: the
// sums of linear_floats.cu in the same order, with fewer reads of x.
//   Work    A block is eight warps of kOutputs outputs each; in a gated product gates and ups
//           alternate. In a round a lane has a piece of 16 bytes of each output and multiplies it
//           with the matching eight elements of every row.
//   Bytes   W once, x once for the outputs of a block. Both are staged in shared memory, two rounds
//           ahead: up to 80 KiB are in flight per multiprocessor.
//   Shared  three rounds, of up to 40 KiB each.
//   Bound   of eight rows and outputs a lane has 512 multiply-adds for 24 loads from shared memory
//           and 64 conversions: sm_90 issues that in two thirds of the time in which an H200 reads.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/linear/linear_floats.cuh"

namespace gen::cuda {

constexpr int32_t kSomeThreads = 256;
constexpr int32_t kSomeWarps = kSomeThreads / 32;
constexpr int32_t kSomeStages = 3;
constexpr int32_t kSomeRoundColumns = 32 * 8;  // a piece of each lane

/// A round in shared memory: pieces of weights, [warps][outputs][lanes]; then for each row the
/// first four elements of all lanes, followed by the other four.
struct SomeStage {
  int32_t x;
  int32_t bytes;
};
constexpr SomeStage some_stage(int32_t rows, int32_t outputs) noexcept {
  const int32_t weights = kSomeWarps * outputs * 32 * 16;
  return {weights, weights + rows * kSomeRoundColumns * 4};
}

struct SomeView {
  PackedRows x;
  LinearEnd end;
  const uint8_t* weight;
  const uint8_t* up_weight;
  size_t row_bytes;
};

template <typename Type, int32_t kRows, int32_t kOutputs>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kSomeThreads, kOutputs == 8 ? 1 : 2)
    linear_float_some_kernel(SomeView of) {
  static_assert(Type::kElements == 8);
  constexpr int32_t kRowsAt = some_stage(kRows, kOutputs).x;
  constexpr int32_t kBytes = some_stage(kRows, kOutputs).bytes;
  const bool gated = of.end.gated;
  const int32_t lane = lane_of_warp();
  const int64_t first_output =
      (int64_t{block_x()} * kSomeWarps + warp_of_block()) * (gated ? kOutputs / 2 : kOutputs);
  const uint8_t* from[static_cast<size_t>(kOutputs)];
  GEN_UNROLL
  for (int32_t slot = 0; slot < kOutputs; ++slot) {
    int64_t output = first_output + (gated ? slot / 2 : slot);
    if (output >= of.end.rows) output = of.end.rows - 1;  // its sum is not used
    from[slot] = (gated && slot % 2 != 0 ? of.up_weight : of.weight) +
                 static_cast<size_t>(output) * of.row_bytes + lane * 16;
  }
  const auto cols = static_cast<int32_t>(of.x.cols);
  const int32_t pieces = (cols + 7) / 8;
  const int32_t rounds = (pieces + 31) / 32;
  const auto n = static_cast<int32_t>(of.end.y.rows);
  const auto stage = [](int32_t i) {
    return dynamic_shared<uint8_t>(static_cast<size_t>(i % kSomeStages * kBytes),
                                   static_cast<size_t>(kBytes));
  };
  const int32_t own = warp_of_block() * kOutputs * 512 + lane * 16;
  const auto copy_weights = [&](int32_t round) {
    const Shared<uint8_t> to = stage(round);
    const bool valid = round * 32 + lane < pieces;
    GEN_UNROLL
    for (int32_t slot = 0; slot < kOutputs; ++slot) {
      device::copy_async16(to, own + slot * 512, valid ? from[slot] + round * 512 : of.weight,
                           valid);
    }
  };
  const auto copy_rows = [&](int32_t round) {
    const Shared<uint8_t> to = stage(round);
    constexpr int32_t kQuads = kSomeRoundColumns / 4;
    for (int32_t i = thread_x(); i < kRows * kQuads; i += kSomeThreads) {
      const int32_t row = i / kQuads;
      const int32_t quad = i % kQuads;
      const int32_t column = round * kSomeRoundColumns + quad * 4;
      const bool valid = row < n && column < cols;
      const uint8_t* const at = of.x.data + (valid ? static_cast<size_t>(row) * of.x.at.bytes +
                                                         static_cast<size_t>(column) * sizeof(float)
                                                   : 0);
      device::copy_async16(
          to, kRowsAt + row * kSomeRoundColumns * 4 + quad % 2 * 512 + quad / 2 * 16, at, valid);
    }
  };
  for (int32_t i = 0; i < kSomeStages - 1 && i < rounds; ++i) copy_weights(i);
  after_predecessor();
  for (int32_t i = 0; i < kSomeStages - 1; ++i) {
    if (i < rounds) copy_rows(i);
    device::commit_copies();  // the first group includes the weights of all these rounds
  }

  float sums[static_cast<size_t>(kOutputs)][static_cast<size_t>(kRows)] = {};
  for (int32_t round = 0; round < rounds; ++round) {
    device::wait_copies<kSomeStages - 2>();
    sync_threads();  // all have used the round before, so it may be overwritten
    if (round + kSomeStages - 1 < rounds) {
      copy_weights(round + kSomeStages - 1);
      copy_rows(round + kSomeStages - 1);
    }
    device::commit_copies();
    const int32_t piece = round * 32 + lane;
    if (piece >= pieces) continue;
    const Shared<uint8_t> both = stage(round);
    device::UInt4 words[static_cast<size_t>(kOutputs)];
    GEN_UNROLL
    for (int32_t slot = 0; slot < kOutputs; ++slot) {
      words[slot] = both.template as<device::UInt4>()[(own + slot * 512) / 16];
    }
    GEN_UNROLL
    for (int32_t half = 0; half < 2; ++half) {
      float x[static_cast<size_t>(kRows)][4];
      GEN_UNROLL
      for (int32_t row = 0; row < kRows; ++row) {
        const device::UInt4 four = both.template as<
            device::UInt4>()[(kRowsAt + row * kSomeRoundColumns * 4 + half * 512) / 16 + lane];
        x[row][0] = float_from_bits(four.x);
        x[row][1] = float_from_bits(four.y);
        x[row][2] = float_from_bits(four.z);
        x[row][3] = float_from_bits(four.w);
        drop_beyond<4>(cols - piece * 8 - half * 4, x[row]);
      }
      GEN_UNROLL
      for (int32_t slot = 0; slot < kOutputs; ++slot) {
        float w[8];
        Type::decode(words[slot], w);
        GEN_UNROLL
        for (int32_t row = 0; row < kRows; ++row) {
          GEN_UNROLL
          for (int32_t k = 0; k < 4; ++k) {
            sums[slot][row] = multiply_add(x[row][k], w[half * 4 + k], sums[slot][row]);
          }
        }
      }
    }
  }

  // Four outputs at a time: as many sums as lanes, or half as many.
  constexpr int32_t kSlots = 4;
  constexpr int32_t kLanes = 32 / (kRows * kSlots);  // that have the same sum
  GEN_UNROLL
  for (int32_t slots = 0; slots < kOutputs; slots += kSlots) {
    float some[static_cast<size_t>(kRows * kSlots)];
    GEN_UNROLL
    for (int32_t i = 0; i < kRows * kSlots; ++i) some[i] = sums[slots + i % kSlots][i / kSlots];
    const float sum = sum_lanes(some);
    const float up = shuffle_xor(sum, kLanes);
    const int32_t row = lane / kLanes / kSlots;
    const int32_t slot = slots + lane / kLanes % kSlots;
    const int64_t output = first_output + (gated ? slot / 2 : slot);
    if (lane % kLanes != 0 || row >= n || output >= of.end.rows) continue;
    if (gated && slot % 2 != 0) continue;
    finish_output(of.end, row, output, sum, up);
  }
}

/// Blocks for so many outputs of a warp; of a device they are to occupy three quarters.
inline int64_t some_blocks(const LinearEnd& end, int32_t outputs) noexcept {
  const int64_t each = int64_t{kSomeWarps} * outputs / (end.gated ? 2 : 1);
  return (end.rows + each - 1) / each;
}
template <int32_t kRows>
int32_t some_outputs(const OpContext& context, const LinearEnd& end) noexcept {
  for (const int32_t outputs : {8, 4}) {
    const auto shared = static_cast<size_t>(kSomeStages * some_stage(kRows, outputs).bytes);
    if (4 * some_blocks(end, outputs) >= 3 * int64_t{context.processors} &&
        shared * (outputs == 8 ? 1 : 2) <= context.shared_bytes) {
      return outputs;
    }
  }
  return 0;
}

template <typename Type, int32_t kRows>
Status launch_float_some(const OpContext& context, const SomeView& of, int32_t outputs) {
  const auto launch = [&]<int32_t kOutputs>() {
    return run_kernel(context, "linear_some", linear_float_some_kernel<Type, kRows, kOutputs>,
                      {static_cast<unsigned>(some_blocks(of.end, kOutputs)), 1, 1}, kSomeThreads,
                      static_cast<size_t>(kSomeStages * some_stage(kRows, kOutputs).bytes), of);
  };
  return outputs == 8 ? launch.template operator()<8>() : launch.template operator()<4>();
}

}  // namespace gen::cuda

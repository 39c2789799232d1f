// SPDX-License-Identifier: Apache-2.0
// Products of float weights for one row, whose time is that of reading W: with the sums of
// linear_floats.cu, in their order.
//   Work    A block of eight warps keeps x in shared memory; there are two blocks a multiprocessor
//           at most, and outputs w, w + all warps, … are warp w's. A gated output is two rows of
//           weights, one after the other.
//   Bytes   W once, x once for each block. A warp has eight pieces of 512 bytes under way, from one
//           output to the next without a gap; the first ones before the predecessor has ended.
//   Shared  x, 4 bytes a column; where that is too much, x is read where it lies.
#pragma once

#include "cuda/ops/linear_end.cuh"
#include "cuda/ops/linear_floats.cuh"

namespace gen::cuda {

constexpr int32_t kRowThreads = 256;
constexpr int32_t kRowWarps = kRowThreads / 32;
constexpr int32_t kRowBlocks = 2;  // of a multiprocessor
constexpr int32_t kRowPieces = 8;  // of a lane, under way
constexpr size_t kMostStaged = size_t{96} << 10;

struct FloatRowView {
  const uint8_t* weight;
  const uint8_t* up_weight;
  size_t row_bytes;
  const float* x;
  int32_t cols;
  LinearEnd end;
};

/// The rows of weights of a warp, in the order in which it takes them.
struct RowsOfWarp {
  const FloatRowView& of;
  int32_t output;  // of the row; behind the last where there is none
  bool up;         // the row is that of the gate's other half

  GEN_DEVICE void next() {
    if (of.end.gated && !up) {
      up = true;
      return;
    }
    up = false;
    output += static_cast<int32_t>(device::grid_size().x) * kRowWarps;
  }
  [[nodiscard]] GEN_DEVICE bool any() const { return output < of.end.rows; }
  /// The lane's first piece.
  [[nodiscard]] GEN_DEVICE const uint8_t* pieces() const {
    return (up ? of.up_weight : of.weight) + static_cast<size_t>(output) * of.row_bytes +
           lane_of_warp() * 16;
  }
};

template <typename Type, bool kStaged>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowThreads, kRowBlocks) linear_float_row_kernel(FloatRowView of) {
  constexpr int32_t kElements = Type::kElements;
  const int32_t pieces = (of.cols + kElements - 1) / kElements;
  RowsOfWarp rows = {of, block_x() * kRowWarps + warp_of_block(), false};
  RowsOfWarp ahead = rows;  // that pieces are fetched of
  const uint8_t* from = ahead.any() ? ahead.pieces() : nullptr;
  device::UInt4 fetched[static_cast<size_t>(kRowPieces)];
  const auto fetch = [&](int32_t i, int32_t round) {
    if (from != nullptr && round * 32 + lane_of_warp() < pieces) {
      fetched[i] = device::load_once16(from + static_cast<size_t>(round) * 512);
    }
  };
  GEN_UNROLL
  for (int32_t i = 0; i < kRowPieces; ++i) fetch(i, i);
  after_predecessor();
  const Shared<float> staged =
      dynamic_shared<float>(0, kStaged ? static_cast<size_t>(pieces * kElements) : 0);
  if constexpr (kStaged) {
    for (int32_t i = thread_x(); i < pieces * kElements / 4; i += kRowThreads) {
      staged.template as<device::UInt4>()[i] = device::load16(of.x + 4 * i);
    }
    sync_threads();
  }

  float gate = 0.0F;
  for (; rows.any(); rows.next()) {
    float sums[1] = {};
    for (int32_t first = 0; first * 32 < pieces; first += kRowPieces) {
      const bool last = (first + kRowPieces) * 32 >= pieces;
      if (last) {
        ahead.next();
        from = ahead.any() ? ahead.pieces() : nullptr;
      }
      GEN_UNROLL
      for (int32_t i = 0; i < kRowPieces; ++i) {
        const int32_t piece = (first + i) * 32 + lane_of_warp();
        if (piece < pieces) {
          float w[static_cast<size_t>(kElements)];
          Type::decode(fetched[i], w);
          const int32_t column = piece * kElements;
          float x[static_cast<size_t>(kElements)];
          if constexpr (kStaged) {
            GEN_UNROLL
            for (int32_t k = 0; k < kElements; k += 4) {
              const device::UInt4 four = staged.template as<device::UInt4>()[(column + k) / 4];
              x[k] = float_from_bits(four.x);
              x[k + 1] = float_from_bits(four.y);
              x[k + 2] = float_from_bits(four.z);
              x[k + 3] = float_from_bits(four.w);
            }
            drop_beyond<kElements>(of.cols - column, x);
          } else {
            load_elements<kElements>(of.x + column, of.cols - column, x);
          }
          sums[0] = add_products(x, w, sums[0]);
        }
        fetch(i, last ? i : first + kRowPieces + i);
      }
    }
    const float sum = sum_lanes(sums);
    if (of.end.gated && !rows.up) {
      gate = sum;
    } else if (lane_of_warp() == 0) {
      finish_output(of.end, 0, rows.output, of.end.gated ? gate : sum, sum);
    }
  }
}

template <typename Type>
Status launch_float_row(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                        const WeightSegment& weight, const WeightSegment* up) {
  const auto cols = static_cast<int32_t>(x.cols);
  const FloatRowView of = {weight.data,
                           up != nullptr ? up->data : nullptr,
                           weight.row_bytes,
                           reinterpret_cast<const float*>(x.data),
                           cols,
                           end};
  const size_t bytes = static_cast<size_t>((cols + Type::kElements - 1) / Type::kElements) *
                       Type::kElements * sizeof(float);
  const bool staged = bytes <= kMostStaged && bytes <= context.shared_bytes / kRowBlocks;
  // As many outputs for each warp as for any other.
  const int64_t most = int64_t{context.processors} * kRowBlocks * kRowWarps;
  const int64_t each = (end.rows + most - 1) / most;
  return run_kernel(
      context, "linear",
      staged ? linear_float_row_kernel<Type, true> : linear_float_row_kernel<Type, false>,
      grid_of(end.rows, static_cast<int32_t>(kRowWarps * each)), kRowThreads, staged ? bytes : 0,
      of);
}

}  // namespace gen::cuda

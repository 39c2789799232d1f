// SPDX-License-Identifier: Apache-2.0
// Products of float weights for one row, whose time is that of reading W: with the sums of
// linear_floats.cu, in their order.
//   Work    A block of eight warps keeps x in shared memory; there are two blocks a multiprocessor
//           at most. Warp w of block b has every output that is b + w * blocks modulo all warps, so
//           those with one more are spread over all blocks, and multiprocessors end together. A
//           gated output is two rows of weights, one after the other.
//   Bytes   W once, x once for each block. A warp has 4 to 6 KiB under way into a ring of shared
//           memory, from one row to the next without a gap; the first ones before the predecessor
//           has ended. Two blocks have 64 KiB under way on a multiprocessor.
//   Shared  48 KiB of rings, and x, 4 bytes a column; where that is too much, x is read where it
//           lies. With 64 registers a thread and 2048 columns the next product's blocks find room
//           beside those of this one on a multiprocessor of 228 KiB, and fetch their first weights.
#pragma once

#include <algorithm>

#include "cuda/device/async_copy.cuh"
#include "cuda/ops/linear_end.cuh"
#include "cuda/ops/linear_floats.cuh"

namespace gen::cuda {

constexpr int32_t kRowThreads = 256;
constexpr int32_t kRowWarps = kRowThreads / 32;
constexpr int32_t kRowBlocks = 2;  // of a multiprocessor
/// Pieces of a lane that are fetched at once, and groups of them in a warp's ring.
constexpr int32_t kRowPieces = 4;
constexpr int32_t kRowGroups = 3;
constexpr int32_t kRowRoundBytes = 512;  // a piece for each lane
constexpr int32_t kRowGroupBytes = kRowPieces * kRowRoundBytes;
constexpr size_t kRowRingBytes = size_t{kRowWarps} * kRowGroups * kRowGroupBytes;
constexpr size_t kMostStaged = size_t{64} << 10;

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
  /// What is added to the sum of the row's output; on its way while that is made.
  [[nodiscard]] GEN_DEVICE float residual() const {
    return any() && lane_of_warp() == 0 ? residual_of(of.end, 0, output) : 0.0F;
  }
  /// The lane's first piece.
  [[nodiscard]] GEN_DEVICE const uint8_t* pieces() const {
    return (up ? of.up_weight : of.weight) + static_cast<size_t>(output) * of.row_bytes +
           lane_of_warp() * 16;
  }
};

/// x in shared memory, as lanes read it side by side: the first four elements of all pieces, then
/// the next four.
template <int32_t kElements>
struct StagedRow {
  Shared<float> at;
  int32_t pieces;

  GEN_DEVICE void fill(const float* x) const {
    constexpr int32_t kQuads = kElements / 4;
    for (int32_t i = thread_x(); i < pieces * kQuads; i += kRowThreads) {
      at.template as<device::UInt4>()[i % kQuads * pieces + i / kQuads] = device::load16(x + 4 * i);
    }
  }
  GEN_DEVICE void load(int32_t piece, int32_t left,
                       float (&x)[static_cast<size_t>(kElements)]) const {
    GEN_UNROLL
    for (int32_t k = 0; k < kElements; k += 4) {
      const device::UInt4 four = at.template as<device::UInt4>()[k / 4 * pieces + piece];
      x[k] = float_from_bits(four.x);
      x[k + 1] = float_from_bits(four.y);
      x[k + 2] = float_from_bits(four.z);
      x[k + 3] = float_from_bits(four.w);
    }
    drop_beyond<kElements>(left, x);
  }
};

/// The pieces of a warp's rows on their way into its ring, row after row. Registers would do as
/// well, but a warp waits for loads into them by counters, of which it has six.
class RowPieces {
 public:
  GEN_DEVICE RowPieces(const RowsOfWarp& first, int32_t pieces)
      : rows_(first),
        pieces_(pieces),
        ring_(dynamic_shared<uint8_t>(
            static_cast<size_t>(warp_of_block() * kRowGroups * kRowGroupBytes),
            static_cast<size_t>(kRowGroups * kRowGroupBytes))) {
    from_ = rows_.any() ? rows_.pieces() : nullptr;
    for (int32_t i = 0; i < kRowGroups - 1; ++i) issue();
  }
  /// The lane's next ones; zeros behind the row's last.
  GEN_DEVICE void next(device::UInt4 (&pieces)[kRowPieces]) {
    issue();
    device::wait_copies<kRowGroups - 1>();
    const int32_t first = (group_ * kRowGroupBytes + lane_of_warp() * 16) / 16;
    GEN_UNROLL
    for (int32_t i = 0; i < kRowPieces; ++i) {
      pieces[i] = ring_.as<device::UInt4>()[first + i * (kRowRoundBytes / 16)];
    }
    group_ = group_ + 1 < kRowGroups ? group_ + 1 : 0;
  }

 private:
  GEN_DEVICE void issue() {
    if (from_ != nullptr) {
      const int32_t to = next_group_ * kRowGroupBytes + lane_of_warp() * 16;
      GEN_UNROLL
      for (int32_t i = 0; i < kRowPieces; ++i) {
        const bool valid = first_ + i * 32 + lane_of_warp() < pieces_;
        device::copy_async16(ring_, to + i * kRowRoundBytes,
                             valid ? from_ + i * kRowRoundBytes : rows_.of.weight, valid);
      }
      from_ += kRowGroupBytes;
      first_ += kRowPieces * 32;
      if (first_ >= pieces_) {
        rows_.next();
        from_ = rows_.any() ? rows_.pieces() : nullptr;
        first_ = 0;
      }
    }
    device::commit_copies();
    next_group_ = next_group_ + 1 < kRowGroups ? next_group_ + 1 : 0;
  }

  RowsOfWarp rows_;
  int32_t pieces_;
  const Shared<uint8_t> ring_;
  const uint8_t* from_ = nullptr;
  int32_t first_ = 0;       // piece of the row that is fetched next
  int32_t next_group_ = 0;  // that is filled
  int32_t group_ = 0;       // that is taken
};

template <typename Type, bool kStaged>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowThreads, 2 * kRowBlocks) linear_float_row_kernel(FloatRowView of) {
  constexpr int32_t kElements = Type::kElements;
  const int32_t pieces = (of.cols + kElements - 1) / kElements;
  const auto blocks = static_cast<int32_t>(device::grid_size().x);
  RowsOfWarp rows = {of, warp_of_block() * blocks + block_x(), false};
  RowPieces stream(rows, pieces);
  after_predecessor();
  float residual = rows.residual();
  const StagedRow<kElements> staged = {
      dynamic_shared<float>(kRowRingBytes, kStaged ? static_cast<size_t>(pieces * kElements) : 0),
      pieces};
  if constexpr (kStaged) {
    staged.fill(of.x);
    sync_threads();
  }

  float gate = 0.0F;
  while (rows.any()) {
    float sums[1] = {};
    for (int32_t first = 0; first < pieces; first += kRowPieces * 32) {
      device::UInt4 fetched[kRowPieces];
      stream.next(fetched);
      GEN_UNROLL
      for (int32_t i = 0; i < kRowPieces; ++i) {
        const int32_t piece = first + i * 32 + lane_of_warp();
        if (piece >= pieces) continue;
        const int32_t column = piece * kElements;
        float w[static_cast<size_t>(kElements)];
        float x[static_cast<size_t>(kElements)];
        Type::decode(fetched[i], w);
        if constexpr (kStaged) {
          staged.load(piece, of.cols - column, x);
        } else {
          load_elements<kElements>(of.x + column, of.cols - column, x);
        }
        sums[0] = add_products(x, w, sums[0]);
      }
    }
    const float sum = sum_lanes(sums);
    if (of.end.gated && !rows.up) {
      gate = sum;
      rows.next();
      continue;
    }
    if (lane_of_warp() == 0) {
      finish_output(of.end, 0, rows.output, of.end.gated ? gate : sum, sum, residual);
    }
    rows.next();
    residual = rows.residual();
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
  const bool staged =
      bytes <= kMostStaged && bytes + kRowRingBytes <= context.shared_bytes / kRowBlocks;
  device::Dim3 grid = grid_of(end.rows, kRowWarps);
  grid.x = std::min(grid.x, static_cast<unsigned>(context.processors * kRowBlocks));
  return run_kernel(
      context, "linear",
      staged ? linear_float_row_kernel<Type, true> : linear_float_row_kernel<Type, false>, grid,
      kRowThreads, kRowRingBytes + (staged ? bytes : 0), of);
}

}  // namespace gen::cuda

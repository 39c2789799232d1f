// SPDX-License-Identifier: Apache-2.0
// Products of float weights for one row, bound by the bandwidth of reading W, with the sums of
// linear_floats.cu in the same order.
//   Work    A block of eight warps keeps x in shared memory, with at most two blocks per
//           multiprocessor. Warp w of block b has the outputs that are b + w * blocks modulo the
//           number of warps, so warps with one more output are spread over all blocks, and
//           multiprocessors finish together. A gated output is two rows of weights in turn.
//           If the row is to be normalised first, each block does so while its first weights are
//           being loaded.
//   Bytes   W once, x once for each block. A warp keeps 4 to 6 KiB in flight into a ring in shared
//           memory, across rows without a gap; the first loads start before the predecessor has
//           ended. Two blocks have 64 KiB in flight per multiprocessor.
//   Shared  48 KiB of rings, and x, 4 bytes a column; if that is too much, x is read from global
//           memory. With 64 registers a thread and 2048 columns the next product's blocks fit
//           beside those of this one on a multiprocessor of 228 KiB and fetch their first weights.
#pragma once

#include <algorithm>

#include "cuda/device/async_copy.cuh"
#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/linear/linear_floats.cuh"
#include "cuda/ops/norm/rms_norm.cuh"

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
constexpr size_t kMaxStaged = size_t{64} << 10;

struct FloatRowView {
  const uint8_t* weight;
  const uint8_t* up_weight;
  size_t row_bytes;
  const float* x;
  int32_t cols;
  LinearEnd end;
  RowNorm norm;
};

/// The rows of weights of a warp, in the order in which it takes them.
struct RowsOfWarp {
  const FloatRowView& of;
  int32_t output;  // of the row; behind the last where there is none
  bool up;         // the row is of the up matrix of a gated product

  GEN_DEVICE void next() {
    if (of.end.gated && !up) {
      up = true;
      return;
    }
    up = false;
    output += static_cast<int32_t>(device::grid_size().x) * kRowWarps;
  }
  [[nodiscard]] GEN_DEVICE bool any() const { return output < of.end.rows; }
  /// The residual of the row's output, loaded while the sum is computed.
  [[nodiscard]] GEN_DEVICE float residual() const {
    return any() && lane_of_warp() == 0 ? residual_of(of.end, 0, output) : 0.0F;
  }
  /// The lane's first piece.
  [[nodiscard]] GEN_DEVICE const uint8_t* pieces() const {
    return (up ? of.up_weight : of.weight) + static_cast<size_t>(output) * of.row_bytes +
           lane_of_warp() * 16;
  }
};

/// Quads of norm weights that a thread loads before the row; the others are loaded after it.
constexpr int32_t kNormQuads = 4;
struct NormWeights {
  device::UInt4 quads[kNormQuads] = {};

  GEN_DEVICE void load(const float* w, int32_t cols) {
    GEN_UNROLL
    for (int32_t k = 0; k < kNormQuads; ++k) {
      const int32_t quad = k * kRowThreads + thread_x();
      if (quad < cols / 4) quads[k] = device::load_constant16(w + 4 * quad);
    }
  }
};

/// x in shared memory, in an order without bank conflicts: the first four elements of all pieces,
/// then the next four.
template <int32_t kElements>
struct StagedRow {
  static constexpr int32_t kQuads = kElements / 4;
  Shared<float> at;
  int32_t pieces;

  /// Where quad i of x is, in quads.
  [[nodiscard]] GEN_DEVICE int32_t place(int32_t i) const {
    return i % kQuads * pieces + i / kQuads;
  }
  GEN_DEVICE void fill(const float* x) const {
    for (int32_t i = thread_x(); i < pieces * kQuads; i += kRowThreads) {
      at.template as<device::UInt4>()[place(i)] = device::load16(x + 4 * i);
    }
  }
  /// The same with the normalised row, by the operations of rms_norm.cuh, for rows of whole pieces.
  /// Each warp computes the sum for itself, so that none waits for another.
  GEN_DEVICE void fill_normed(const RowNorm& norm, const NormWeights& weights) const {
    fill(norm.x);
    sync_threads();
    const int32_t cols = pieces * kElements;
    const int32_t lane = lane_of_warp();
    float squares = 0.0F;
    if (lane < kSquareLanes) {
      // Sixteen columns further on is some pieces further on.
      squares = sum_squares<kSquareLanes / kElements * 4>(
          at, place(lane / 4) * 4 + lane % 4, (cols - lane + kSquareLanes - 1) / kSquareLanes);
    }
    const float factor = norm_factor(shuffle(sum_sixteen(squares), 0), cols, norm.eps);
    sync_threads();  // all have read the row
    const Shared<device::UInt4> quads = at.template as<device::UInt4>();
    const auto put = [&](int32_t quad, const device::UInt4& w) {
      const auto normed = [&](uint32_t x, uint32_t weight) {
        return float_bits(float_from_bits(x) * factor * float_from_bits(weight));
      };
      const device::UInt4 x = quads[place(quad)];
      const device::UInt4 y = {normed(x.x, w.x), normed(x.y, w.y), normed(x.z, w.z),
                               normed(x.w, w.w)};
      quads[place(quad)] = y;
      if (block_x() == 0) device::store16(norm.y + 4 * quad, y);
    };
    GEN_UNROLL
    for (int32_t k = 0; k < kNormQuads; ++k) {
      const int32_t quad = k * kRowThreads + thread_x();
      if (quad < cols / 4) put(quad, weights.quads[k]);
    }
    for (int32_t quad = kNormQuads * kRowThreads + thread_x(); quad < cols / 4;
         quad += kRowThreads) {
      put(quad, device::load_constant16(norm.w + 4 * quad));
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

/// The asynchronous copies of a warp's rows to its ring, row after row. Loads to registers would
/// work as well, but a warp has only six scoreboards to wait for them.
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

/// The memory of the row while it is multiplied.
enum class RowInput { kFar, kStaged, kNormed };

template <typename Type, RowInput kInput>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowThreads, 2 * kRowBlocks) linear_float_row_kernel(FloatRowView of) {
  constexpr int32_t kElements = Type::kElements;
  constexpr bool kStaged = kInput != RowInput::kFar;
  const int32_t pieces = (of.cols + kElements - 1) / kElements;
  const auto blocks = static_cast<int32_t>(device::grid_size().x);
  RowsOfWarp rows = {of, warp_of_block() * blocks + block_x(), false};
  RowPieces stream(rows, pieces);
  NormWeights norm_weights;
  if constexpr (kInput == RowInput::kNormed) norm_weights.load(of.norm.w, of.cols);
  after_predecessor();
  float residual = rows.residual();
  const StagedRow<kElements> staged = {
      dynamic_shared<float>(kRowRingBytes, kStaged ? static_cast<size_t>(pieces * kElements) : 0),
      pieces};
  if constexpr (kInput == RowInput::kNormed) {
    staged.fill_normed(of.norm, norm_weights);
  } else if constexpr (kStaged) {
    staged.fill(of.x);
  }
  if constexpr (kStaged) sync_threads();

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
      finish_output(of.end, 0, rows.output, of.end.gated ? gate : sum, sum,
                    [&] { return residual; });
    }
    rows.next();
    residual = rows.residual();
  }
}

/// Whether a row of this many floats fits in shared memory.
inline bool row_is_staged(const OpContext& context, int64_t n) noexcept {
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  return bytes <= kMaxStaged && bytes + kRowRingBytes <= context.shared_bytes / kRowBlocks;
}

template <typename Type>
Status launch_float_row(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                        const WeightSegment& weight, const WeightSegment* up, const RowNorm& norm) {
  const auto cols = static_cast<int32_t>(x.cols);
  const FloatRowView of = {weight.data,
                           up != nullptr ? up->data : nullptr,
                           weight.row_bytes,
                           reinterpret_cast<const float*>(x.data),
                           cols,
                           end,
                           norm};
  const int64_t floats = int64_t{(cols + Type::kElements - 1) / Type::kElements} * Type::kElements;
  const bool staged = row_is_staged(context, floats);
  auto* kernel = staged ? linear_float_row_kernel<Type, RowInput::kStaged>
                        : linear_float_row_kernel<Type, RowInput::kFar>;
  if constexpr (Type::kElements == 8) {
    if (norm.x != nullptr) kernel = linear_float_row_kernel<Type, RowInput::kNormed>;
  }
  device::Dim3 grid = grid_of(end.rows, kRowWarps);
  grid.x = std::min(grid.x, static_cast<unsigned>(context.processors * kRowBlocks));
  const size_t bytes = staged ? static_cast<size_t>(floats) * sizeof(float) : 0;
  return run_kernel(context, "linear", kernel, grid, kRowThreads, kRowRingBytes + bytes, of);
}

}  // namespace gen::cuda

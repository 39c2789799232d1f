// SPDX-License-Identifier: Apache-2.0
// Products of F16 and BF16 weights for up to eight rows with `deterministic`. The bits are those of
// linear_float_rows.cu: the same products of 16 columns are added in the same order.
//
//   Work    A warp computes all rows of a tile of eight outputs, then takes the tile that is the
//           number of all warps further on. In a gated product it computes the tile's gates first,
//           then the values that they gate. Consecutive tiles go to different blocks, so that a
//           small product uses many multiprocessors. The upper half of each tensor-core product is
//           zeros.
//           A single row is read in float32. Each block rounds it itself, after the norm if the
//           product includes one.
//   Bytes   W once. A single row once for each block, more rows once for each tile.
//   Shared  One row: 48 KiB of rings and the row in 16 bits, with a norm also in 32. Each warp has
//           five steps of 128 columns in flight in its own ring, also from one tile to the next,
//           and waits for no other warp. Several rows: 64 KiB of rings, three steps in flight.
#include <algorithm>

#include "cuda/ops/linear/linear_float_rows.cuh"
#include "cuda/ops/linear/linear_floats.cuh"
#include "cuda/ops/norm/rms_norm.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kFewWarps = 4;
constexpr int32_t kFewThreads = 32 * kFewWarps;
constexpr int32_t kFewBlocks = 2;  // of a multiprocessor
constexpr int32_t kFewOutputs = 8;
constexpr int32_t kFewColumns = 128;  // of a step
constexpr int32_t kFewPieces = kFewColumns / 8;
constexpr int32_t kFewTile = kFewOutputs * kFewColumns;

/// The form of the rows.
enum class FewInput {
  kRounded,  // in 16 bits, up to eight
  kRow,      // one, in float32
  kNormed    // one, to be normalised first
};

/// A ring of steps for each warp. With several rows a step holds the rows, then the weights.
template <FewInput kInput>
struct FewRing {
  static constexpr bool kOne = kInput != FewInput::kRounded;
  static constexpr int32_t steps = kOne ? 6 : 4;
  static constexpr int32_t weights = kOne ? 0 : kFewTile;  // where they begin in a step
  static constexpr int32_t step = weights + kFewTile;
  static constexpr size_t bytes = size_t{kFewWarps} * steps * step * sizeof(uint16_t);
};

struct FewView {
  const uint8_t* weight;
  const uint8_t* up_weight;
  size_t row_bytes;
  RoundedRows rows;  // of others than kRounded only cols and stride, of shared memory
  const float* row;  // of kRow
  RowNorm norm;      // of kNormed
  LinearEnd end;
};

/// The tiles of a warp, in the order in which it takes them.
struct FewTiles {
  const FewView& of;
  int32_t tile;
  bool up;  // of a gated product: what the gates are for

  GEN_DEVICE void next() {
    if (of.end.gated && !up) {
      up = true;
      return;
    }
    up = false;
    tile += static_cast<int32_t>(device::grid_size().x) * kFewWarps;
  }
  [[nodiscard]] GEN_DEVICE bool any() const { return int64_t{tile} * kFewOutputs < of.end.rows; }
  [[nodiscard]] GEN_DEVICE const uint8_t* weights() const {
    return (up ? of.up_weight : of.weight) +
           static_cast<size_t>(tile) * (kFewOutputs * of.row_bytes);
  }
  [[nodiscard]] GEN_DEVICE int32_t outputs() const {
    const int64_t left = of.end.rows - int64_t{tile} * kFewOutputs;
    return left < kFewOutputs ? static_cast<int32_t>(left) : kFewOutputs;
  }
};

/// The offset of a piece of eight columns of one of eight rows in a step. Rows are 256 bytes apart;
/// pieces are swizzled so that the same piece of all rows is in different banks.
GEN_DEVICE int32_t few_place(int32_t row, int32_t piece) {
  return row * kFewColumns + (piece ^ row) * 8;
}

/// The asynchronous copies of a warp's steps to its ring, tile after tile.
template <FewInput kInput>
class FewStream {
  using Ring = FewRing<kInput>;

 public:
  GEN_DEVICE explicit FewStream(const FewTiles& first)
      : tiles_(first),
        ring_(dynamic_shared<uint16_t>(
            static_cast<size_t>(warp_of_block()) * (Ring::bytes / kFewWarps),
            static_cast<size_t>(Ring::steps * Ring::step))) {
    enter_tile();
  }
  /// Starts the first steps; with several rows, only their weights.
  GEN_DEVICE void begin() {
    for (int32_t i = 0; i < Ring::steps - 1; ++i) {
      if (copy_weights(i)) ++begun_;
      if constexpr (Ring::kOne) device::commit_copies();
    }
    filled_ = Ring::steps - 1;
  }
  /// Starts the rows of the first steps.
  GEN_DEVICE void begin_rows() {
    if constexpr (!Ring::kOne) {
      for (int32_t i = 0; i < Ring::steps - 1; ++i) {
        if (i < begun_) copy_rows(i);
        device::commit_copies();  // the first group includes the weights of all these steps
      }
    }
  }
  /// The next step, valid until the next call.
  GEN_DEVICE Shared<uint16_t> next() {
    device::wait_copies<Ring::steps - 2>();
    sync_warp();  // all have what they copied, and have read the step before this one
    const bool any = copy_weights(filled_);
    if constexpr (!Ring::kOne) {
      if (any) copy_rows(filled_);
    }
    device::commit_copies();
    filled_ = filled_ + 1 < Ring::steps ? filled_ + 1 : 0;
    const int32_t now = filled_;  // all slots are filled except one, so the next is the oldest
    return ring_.subspan(now * Ring::step, Ring::step);
  }

 private:
  GEN_DEVICE void enter_tile() {
    left_ = 0;
    if (!tiles_.any()) return;
    left_ = tiles_.of.rows.cols;
    outputs_ = tiles_.outputs();
    from_ =
        tiles_.weights() + static_cast<size_t>(own_row()) * tiles_.of.row_bytes + own_piece() * 16;
  }
  /// Two rows at a time by the lanes of a warp; zeros behind the last row and column. False: there
  /// are no more steps.
  GEN_DEVICE bool copy_weights(int32_t step) {
    if (left_ <= 0) return false;
    const uint8_t* from = from_;
    GEN_UNROLL
    for (int32_t i = 0; i < kFewOutputs; i += kAtOnce) {
      const int32_t row = own_row() + i;
      device::copy_async16(ring_, step * Ring::step + Ring::weights + few_place(row, own_piece()),
                           from, row < outputs_ && own_piece() * 8 < left_);
      from += kAtOnce * tiles_.of.row_bytes;
    }
    from_ += kFewColumns * sizeof(uint16_t);
    left_ -= kFewColumns;
    if (left_ <= 0) {
      tiles_.next();
      enter_tile();
    }
    return true;
  }
  GEN_DEVICE void copy_rows(int32_t step) {
    const RoundedRows& rows = tiles_.of.rows;
    GEN_UNROLL
    for (int32_t i = 0; i < kMatvecRows; i += kAtOnce) {
      const int32_t row = own_row() + i;
      const int32_t column = row_column_ + own_piece() * 8;
      device::copy_async16_again(ring_, step * Ring::step + few_place(row, own_piece()),
                                 rows.data + row * rows.stride + column,
                                 row < tiles_.of.end.y.rows && column < rows.cols);
    }
    row_column_ = row_column_ + kFewColumns < rows.cols ? row_column_ + kFewColumns : 0;
  }
  static constexpr int32_t kAtOnce = 32 / kFewPieces;
  GEN_DEVICE static int32_t own_row() { return lane_of_warp() / kFewPieces; }
  GEN_DEVICE static int32_t own_piece() { return lane_of_warp() % kFewPieces; }

  FewTiles tiles_;  // the tile being copied
  const Shared<uint16_t> ring_;
  const uint8_t* from_ = nullptr;
  int32_t left_ = 0;        // columns of the tile not yet in flight
  int32_t outputs_ = 0;     // of the tile
  int32_t row_column_ = 0;  // of the rows, that is copied next
  int32_t begun_ = 0;       // steps of begin()
  int32_t filled_ = 0;      // the step that is copied next
};

/// Stores a single row in 16 bits in shared memory, padded with zeros, and returns its divisor.
/// Called by all threads of a block; the row is valid after the next barrier.
template <typename Type, FewInput kInput>
GEN_DEVICE float stage_row(const FewView& of, const Shared<uint16_t>& to) {
  const int32_t cols = of.rows.cols;
  constexpr bool kNorm = kInput == FewInput::kNormed;
  const Shared<float> held = dynamic_shared<float>(
      FewRing<kInput>::bytes + static_cast<size_t>(of.rows.stride) * sizeof(uint16_t),
      kNorm ? static_cast<size_t>(cols) : 0);
  float norm = 0.0F;
  if constexpr (kNorm) {
    for (int32_t i = thread_x() * 4; i < cols; i += kFewThreads * 4) {
      held.template as<device::UInt4>()[i / 4] = device::load16(of.norm.x + i);
    }
    sync_threads();
    norm = norm_factor(shuffle(sum_of_squares(held, cols, of.norm.x, cols), 0), cols, of.norm.eps);
  }
  // Eight columns, by the operations of the norm (rms_norm.cuh).
  const auto load = [&](int32_t column, float(&x)[8]) {
    if constexpr (kNorm) {
      float w[8];
      load_elements<8>(of.norm.w + column, 8, w);
      GEN_UNROLL
      for (int32_t i = 0; i < 8; ++i) {
        const float value = held[column + i];
        x[i] = value * norm * w[i];
      }
    } else {
      load_elements<8>(of.row + column, cols - column, x);
    }
  };
  RowRounding rounding;
  if constexpr (Type::kFactors) {
    GEN_SHARED(float, largest, kFewWarps);
    float most = 0.0F;
    for (int32_t column = thread_x() * 8; column < cols; column += kFewThreads * 8) {
      float x[8];
      load(column, x);
      GEN_UNROLL
      for (int32_t i = 0; i < 8; ++i) most = device::greatest(device::magnitude(x[i]), most);
    }
    rounding = row_rounding<kFewWarps>(most, largest);
  }
  for (int32_t column = thread_x() * 8; column < of.rows.stride; column += kFewThreads * 8) {
    float x[8] = {};
    if (column < cols) load(column, x);
    to.template as<device::UInt4>()[column / 8] = round_piece<Type>(x, rounding.inverse);
    if constexpr (kNorm) {
      if (block_x() != 0 || column >= cols) continue;
      GEN_UNROLL
      for (int32_t i = 0; i < 8; i += 4) {
        device::store16(of.norm.y + column + i, {float_bits(x[i]), float_bits(x[i + 1]),
                                                 float_bits(x[i + 2]), float_bits(x[i + 3])});
      }
    }
  }
  return rounding.factor;
}

template <typename Type, FewInput kInput>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kFewThreads, 2 * kFewBlocks) linear_float_few_kernel(FewView of) {
  using Ring = FewRing<kInput>;
  FewTiles tiles = {of, warp_of_block() * static_cast<int32_t>(device::grid_size().x) + block_x(),
                    false};
  FewStream<kInput> stream(tiles);
  stream.begin();
  if constexpr (kInput == FewInput::kNormed) {
    const int32_t column = thread_x() * 32;
    if (column < of.rows.cols) device::prefetch(of.norm.w + column);
  }
  after_predecessor();
  stream.begin_rows();
  const int32_t lane = lane_of_warp();
  const int32_t t = lane / 4;  // the row whose sums the lane gets, of outputs 2 * (lane % 4) on
  const bool finishes = t < of.end.y.rows;
  const auto output = [&](int32_t i) {
    return int64_t{tiles.tile} * kFewOutputs + lane % 4 * 2 + i;
  };
  float residuals[2] = {};
  const auto load_residuals = [&] {
    if (!finishes) return;
    GEN_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      if (output(i) < of.end.rows) residuals[i] = residual_of(of.end, t, output(i));
    }
  };
  load_residuals();
  const Shared<uint16_t> row =
      dynamic_shared<uint16_t>(Ring::bytes, Ring::kOne ? static_cast<size_t>(of.rows.stride) : 0);
  float factor = 1.0F;
  if constexpr (Ring::kOne) {
    factor = stage_row<Type, kInput>(of, row);
    sync_threads();
  } else if constexpr (Type::kFactors) {
    if (finishes) factor = of.rows.factors[t];
  }

  float gates[2] = {};
  while (tiles.any()) {
    float sums[4] = {};
    for (int32_t first = 0; first < of.rows.cols; first += kFewColumns) {
      const Shared<uint16_t> step = stream.next();
      // Of four matrices of eight rows a piece each; of a single row it is the same one for all.
      const auto load = [&](int32_t piece, uint32_t(&x)[4], uint32_t(&w)[4]) {
        const int32_t place = few_place(lane % 8, piece + lane / 8);
        device::load_matrices(w, step, Ring::weights + place);
        if constexpr (Ring::kOne) {
          device::load_matrices(x, row, first + (piece + lane / 8) * 8);
        } else {
          device::load_matrices(x, step, place);
        }
      };
      const auto multiply = [&](int32_t half, const uint32_t(&x)[4], const uint32_t(&w)[4]) {
        Type::multiply(sums, {x[2 * half], 0, x[2 * half + 1], 0}, {w[2 * half], w[2 * half + 1]});
      };
      const int32_t left = of.rows.cols - first;
      if (left >= kFewColumns) {
        // Products depend on one another, so their operands are loaded first.
        uint32_t x[kFewPieces / 4][4];
        uint32_t w[kFewPieces / 4][4];
        GEN_UNROLL
        for (int32_t i = 0; i < kFewPieces / 4; ++i) load(4 * i, x[i], w[i]);
        GEN_UNROLL
        for (int32_t i = 0; i < kFewPieces / 2; ++i) multiply(i % 2, x[i / 2], w[i / 2]);
        continue;
      }
      GEN_NO_UNROLL
      for (int32_t column = 0; column < left; column += 32) {
        uint32_t x[4];
        uint32_t w[4];
        load(column / 8, x, w);
        multiply(0, x, w);
        if (column + 16 < left) multiply(1, x, w);
      }
    }
    if (of.end.gated && !tiles.up) {
      gates[0] = sums[0];
      gates[1] = sums[1];
      tiles.next();
      continue;
    }
    GEN_NO_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      if (!finishes || output(i) >= of.end.rows) continue;
      const float up = (i == 0 ? sums[0] : sums[1]) * factor;
      const float gate = (i == 0 ? gates[0] : gates[1]) * factor;
      finish_output(of.end, t, output(i), of.end.gated ? gate : up, up,
                    [&] { return i == 0 ? residuals[0] : residuals[1]; });
    }
    tiles.next();
    load_residuals();
  }
}

template <typename Type, FewInput kInput>
Status launch_few(const OpContext& context, const FewView& of, size_t row_bytes) {
  device::Dim3 grid = grid_of(of.end.rows, kFewOutputs);
  grid.x = std::min(grid.x, static_cast<unsigned>(context.processors * kFewBlocks));
  return run_kernel(context, "linear_few", linear_float_few_kernel<Type, kInput>, grid, kFewThreads,
                    FewRing<kInput>::bytes + row_bytes, of);
}

/// Elements of a single row in shared memory, and all bytes that it needs there.
constexpr int64_t few_stride(int64_t cols) noexcept {
  return (cols + kFewColumns - 1) / kFewColumns * kFewColumns;
}
constexpr size_t few_row_bytes(int64_t cols, bool norm) noexcept {
  return static_cast<size_t>(few_stride(cols)) * sizeof(uint16_t) +
         (norm ? static_cast<size_t>(cols) * sizeof(float) : 0);
}

}  // namespace

Status linear_float_few(const OpContext& context, DType type, const FloatRowsView& of) {
  const FewView view = {of.weight, of.up_weight, of.row_bytes, of.x, nullptr, {}, of.end};
  return type == DType::kF16 ? launch_few<TypeF16, FewInput::kRounded>(context, view, 0)
                             : launch_few<TypeBF16, FewInput::kRounded>(context, view, 0);
}

Status linear_float_one(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                        const WeightSegment& weight, const WeightSegment* up, const RowNorm& norm) {
  const FewView view = {
      weight.data,
      up != nullptr ? up->data : nullptr,
      weight.row_bytes,
      {nullptr, nullptr, static_cast<int32_t>(few_stride(x.cols)), static_cast<int32_t>(x.cols)},
      reinterpret_cast<const float*>(x.data),
      norm,
      end};
  const auto launch = [&]<typename Type>(Type) {
    const size_t bytes = few_row_bytes(x.cols, norm.x != nullptr);
    return norm.x != nullptr ? launch_few<Type, FewInput::kNormed>(context, view, bytes)
                             : launch_few<Type, FewInput::kRow>(context, view, bytes);
  };
  return weight.type == DType::kF16 ? launch(TypeF16()) : launch(TypeBF16());
}

bool linear_float_one_can(const OpContext& context, int64_t cols, const RowNorm& norm) {
  const auto in_quads = [](const float* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; };
  if (norm.x != nullptr && (cols % 8 != 0 || !in_quads(norm.x) || !in_quads(norm.w))) return false;
  return FewRing<FewInput::kRow>::bytes + few_row_bytes(cols, norm.x != nullptr) <=
         context.shared_bytes;
}

}  // namespace gen::cuda

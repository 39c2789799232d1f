// SPDX-License-Identifier: Apache-2.0
// Products of F16 and BF16 weights for many rows, on tensor cores.
//   x is rounded to the weights' type first, by a kernel of its own: to BF16 as it is; to F16 after
//   a power of two that brings the row's largest element to [1, 2), so that nothing overflows and
//   no error exceeds 2^-24 of that. The sum is multiplied with the inverse of this power.
//   sum_c x[t, c] W[n, c] is added in products of 16 columns, ascending, to one float32; within a
//   product the order is up to the tensor core. The result depends only on the type and C: this
//   kernel gives a row one result for any number of rows. linear_floats.cu, for few rows in
//   float32, gives another. Error: |x w| times 2^-9 (BF16) or 2^-12 and 2^-24 max|x| |w| (F16),
//   plus a rounding for each product of 16. Up to eight rows go to linear_float_few.cu, which has
//   the same bits.
//
//   Work    A block of threads is 128 rows by 128 outputs, 64 by 64 or 32 by 64; of a gated product
//           half of these and their gates. Both factors come through shared memory, two or three
//           steps of 64 columns ahead of the products.
//   Bytes   W once for the rows of a block, x once for its outputs.
//   Shared  55 to 108 KiB.
//
//   If cuBLASLt is available (matrix_products.h), it computes the sums, and another kernel applies
//   the epilogue. Its order of additions depends on the number of rows. If rows must have one
//   result, only algorithms are used that trials have shown to have our own kernel's bits.
#include <utility>

#include "cuda/ops/linear/linear_float_rows.cuh"
#include "cuda/ops/linear/linear_floats.cuh"
#include "cuda/ops/linear/linear_rows_product.h"
#include "cuda/ops/linear/linear_rows_trial.h"
#include "cuda/ops/linear/warp_sums.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
/// Products of 16 rows by 8 outputs that a warp has; of a block two warps have all rows between
/// them, four all outputs. kSteps of columns are in shared memory, all but one under way.
template <int32_t kGroups, int32_t kOutputGroups, int32_t kSteps>
struct TileShape {
  static constexpr int32_t groups = kGroups;
  static constexpr int32_t output_groups = kOutputGroups;
  static constexpr int32_t steps = kSteps;
  static constexpr int32_t rows = 2 * 16 * kGroups;
  static constexpr int32_t outputs = 4 * 8 * kOutputGroups;
  static constexpr size_t stage = static_cast<size_t>((rows + outputs) * kFactorStride);
};
/// Blocks per multiprocessor: sm_75 has shared memory for one.
[[maybe_unused]] constexpr int32_t kResidentTiles = GEN_CUDA_ARCH < 800 ? 1 : 2;
using LargeTile = TileShape<4, 4, 3>;
static_assert(LargeTile::outputs == kLargestTileOutputs);
using MiddleTile = TileShape<2, 2, 4>;
using SmallTile = TileShape<1, 2, 4>;
constexpr int32_t kRoundThreads = 256;

/// A block is a row. Padding rows repeat the first rows, so that a library's product reads valid
/// numbers.
template <typename Type>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRoundThreads) round_rows_kernel(PackedRows x, RoundedRows to) {
  after_predecessor();
  GEN_SHARED(float, largest, kRoundThreads / 32);
  const int64_t t = block_x();
  const auto* const row =
      reinterpret_cast<const float*>(x.data + static_cast<size_t>(t % x.rows) * x.at.bytes);
  const auto cols = static_cast<int32_t>(x.cols);
  RowRounding rounding;
  if constexpr (Type::kFactors) {
    float most = 0.0F;
    for (int32_t c = thread_x(); c < cols; c += kRoundThreads) {
      most = device::greatest(device::magnitude(row[c]), most);
    }
    rounding = row_rounding<kRoundThreads / 32>(most, largest);
    if (thread_x() == 0) to.factors[t] = rounding.factor;
  }
  uint16_t* const out = to.data + t * to.stride;
  constexpr int32_t kPiece = 8;  // to.stride is a multiple of it
  for (int32_t first = thread_x() * kPiece; first < to.stride; first += kRoundThreads * kPiece) {
    float piece[kPiece];
    load_elements<kPiece>(row + first, cols - first, piece);
    device::store16(out + first, round_piece<Type>(piece, rounding.inverse));
  }
}

template <typename Type, typename Tile>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, kResidentTiles) linear_float_rows_kernel(FloatRowsView of) {
  constexpr int32_t kGroups = Tile::groups;
  constexpr int32_t kOutputGroups = Tile::output_groups;
  constexpr int32_t kHalf = Tile::outputs / 2;  // gates come first
  constexpr int32_t kSteps = Tile::steps;
  const bool gated = of.end.gated;
  const int64_t first = int64_t{block_x()} * Tile::rows;
  const int64_t first_output = int64_t{block_y()} * (gated ? kHalf : Tile::outputs);
  const int32_t lane = lane_of_warp();
  const int32_t side = warp_of_block() % 4;
  const int32_t own_rows = warp_of_block() / 4 * 16 * kGroups;
  const int64_t left = of.end.y.rows - first - own_rows;
  const auto stage = [](int32_t i) {
    return dynamic_shared<uint16_t>(static_cast<size_t>(i) * Tile::stage * sizeof(uint16_t),
                                    Tile::stage);
  };
  const size_t x_bytes = static_cast<size_t>(of.x.stride) * sizeof(uint16_t);
  const int64_t second = gated ? first_output : first_output + kHalf;
  FactorCopy<kHalf, kThreads> weights(of.weight + static_cast<size_t>(first_output) * of.row_bytes,
                                      of.row_bytes, of.end.rows - first_output, of.x.cols);
  FactorCopy<kHalf, kThreads> others(
      (gated ? of.up_weight : of.weight) + static_cast<size_t>(second) * of.row_bytes, of.row_bytes,
      of.end.rows - second, of.x.cols);
  FactorCopy<Tile::rows, kThreads> rows(of.x.data + first * of.x.stride, x_bytes,
                                        of.end.y.rows - first, of.x.cols);
  const auto copy_weights = [&](const Shared<uint16_t>& to) {
    weights.copy(to, Tile::rows);
    others.copy(to, Tile::rows + kHalf);
  };
  const int32_t n = (of.x.cols + kFactorColumns - 1) / kFactorColumns;
  if (of.fresh_weights) after_predecessor();
  for (int32_t i = 0; i < kSteps - 1 && i < n; ++i) copy_weights(stage(i));
  after_predecessor();
  for (int32_t i = 0; i < kSteps - 1; ++i) {
    if (i < n) rows.copy(stage(i), 0);
    device::commit_copies();  // the first group includes the weights of all these steps
  }

  // Matrices of x: of 16 rows their columns k, then k + 8. Of weights: of a group of outputs its
  // columns k and k + 8, then of the next one.
  const int32_t x_at = (own_rows + lane % 16) * kFactorStride + lane / 16 * 8;
  int32_t w_at[static_cast<size_t>(kOutputGroups / 2)];
  GEN_UNROLL
  for (int32_t pair = 0; pair < kOutputGroups / 2; ++pair) {
    const int32_t group = 2 * pair + lane / 16;
    const int32_t row = !gated ? (side * kOutputGroups + group) * 8
                        : group < kOutputGroups / 2
                            ? (side * kOutputGroups / 2 + group) * 8
                            : kHalf + (side * kOutputGroups / 2 + group - kOutputGroups / 2) * 8;
    w_at[pair] = (Tile::rows + row + lane % 8) * kFactorStride + lane / 8 % 2 * 8;
  }
  float sums[static_cast<size_t>(kGroups)][static_cast<size_t>(kOutputGroups)][4] = {};
  const auto multiply = [&](const Shared<uint16_t>& both, int32_t k) {
    uint32_t b[static_cast<size_t>(kOutputGroups / 2)][4];
    GEN_UNROLL
    for (int32_t pair = 0; pair < kOutputGroups / 2; ++pair) {
      device::load_matrices(b[pair], both, w_at[pair] + k);
    }
    GEN_UNROLL
    for (int32_t m = 0; m < kGroups; ++m) {
      uint32_t a[4];
      device::load_matrices(a, both, x_at + m * 16 * kFactorStride + k);
      GEN_UNROLL
      for (int32_t j = 0; j < kOutputGroups; ++j) {
        Type::multiply(sums[m][j], a, {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
      }
    }
  };
  int32_t now = 0;
  for (int32_t i = 0; i < n; ++i) {
    device::wait_copies<kSteps - 2>();
    sync_threads();  // all have used the step before, so it may be overwritten
    if (i + kSteps - 1 < n) {
      const Shared<uint16_t> to = stage(now == 0 ? kSteps - 1 : now - 1);
      copy_weights(to);
      rows.copy(to, 0);
    }
    device::commit_copies();
    const Shared<uint16_t> both = stage(now);
    now = now + 1 == kSteps ? 0 : now + 1;
    const int32_t columns = of.x.cols - i * kFactorColumns;
    if (left <= 0) continue;
    if (columns >= kFactorColumns) {
      GEN_UNROLL
      for (int32_t k = 0; k < kFactorColumns; k += 16) multiply(both, k);
    } else {
      GEN_NO_UNROLL
      for (int32_t k = 0; k < columns; k += 16) multiply(both, k);
    }
  }

  sync_threads();  // the sums overwrite both factors
  const WarpSums<kOutputGroups * 8> ordered(warp_of_block(), kGroups * 16);
  GEN_UNROLL
  for (int32_t m = 0; m < kGroups; ++m) {
    GEN_UNROLL
    for (int32_t j = 0; j < kOutputGroups; ++j) ordered.put(m * 16, j * 8, sums[m][j]);
  }
  sync_warp();
  const int32_t outputs = kOutputGroups * 8 / (gated ? 2 : 1);
  const int64_t own_output = first_output + side * outputs;
  GEN_NO_UNROLL
  for (int32_t i = lane; i < kGroups * 16 * outputs; i += 32) {
    const int32_t row = i / outputs;
    const int32_t within = i % outputs;
    const int64_t t = first + own_rows + row;
    if (row >= left || own_output + within >= of.end.rows) continue;
    float factor = 1.0F;
    if constexpr (Type::kFactors) factor = of.x.factors[t];
    const float up = gated ? ordered.get(row, outputs + within) * factor : 0.0F;
    finish_many(of.end, t, own_output + within, ordered.get(row, within) * factor, up);
  }
}

template <typename Tile>
device::Dim3 grid_of_tiles(const FloatRowsView& of) {
  const int32_t outputs = of.end.gated ? Tile::outputs / 2 : Tile::outputs;
  device::Dim3 grid = grid_of(of.end.y.rows, Tile::rows);
  grid.y = static_cast<unsigned>((of.end.rows + outputs - 1) / outputs);
  return grid;
}

/// The largest tiles that fill the device, with no more rows than needed.
template <typename Type, typename Tile, typename Smaller, typename... More>
Status launch_tiles(const OpContext& context, const FloatRowsView& of);
template <typename Type, typename Tile>
Status launch_tiles(const OpContext& context, const FloatRowsView& of) {
  constexpr size_t kShared = Tile::steps * Tile::stage * sizeof(uint16_t);
  static_assert(kShared >=
                kThreads / 32 * WarpSums<Tile::output_groups * 8>::bytes(Tile::groups * 16));
  return run_kernel(context, "linear_rows", linear_float_rows_kernel<Type, Tile>,
                    grid_of_tiles<Tile>(of), kThreads, kShared, of);
}
template <typename Type, typename Tile, typename Smaller, typename... More>
Status launch_tiles(const OpContext& context, const FloatRowsView& of) {
  const device::Dim3 grid = grid_of_tiles<Tile>(of);
  if (of.end.y.rows <= Smaller::rows || int64_t{grid.x} * grid.y < context.processors ||
      Tile::steps * Tile::stage * sizeof(uint16_t) > context.shared_bytes) {
    return launch_tiles<Type, Smaller, More...>(context, of);
  }
  return launch_tiles<Type, Tile>(context, of);
}

/// The epilogue after a library's sums: a thread is four outputs, a block's y a row.
constexpr int32_t kFinishEach = 4;
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRoundThreads)
    finish_rows_kernel(LinearEnd end, const float* sums, const float* ups, const float* factors) {
  after_predecessor();
  const int64_t t = block_y();
  const int64_t first = int64_t{block_x()} * kRoundThreads * kFinishEach + thread_x();
  const float factor = factors != nullptr ? factors[t] : 1.0F;
  float sum[kFinishEach];
  float up[kFinishEach];
  GEN_UNROLL
  for (int32_t k = 0; k < kFinishEach; ++k) {
    const int64_t output = first + k * kRoundThreads;
    const int64_t i = t * end.rows + output;
    sum[k] = output < end.rows ? sums[i] * factor : 0.0F;
    up[k] = output < end.rows && ups != nullptr ? ups[i] * factor : 0.0F;
  }
  GEN_UNROLL
  for (int32_t k = 0; k < kFinishEach; ++k) {
    const int64_t output = first + k * kRoundThreads;
    if (output < end.rows) finish_many(end, t, output, sum[k], up[k]);
  }
}

/// The same if the epilogue is only a gate: a thread is four adjacent outputs of each of two ranges
/// of a row.
constexpr int32_t kGateEach = 2;
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRoundThreads)
    gate_rows_kernel(LinearEnd end, const float* sums, const float* ups) {
  after_predecessor();
  const int64_t t = block_y();
  const int64_t first = (int64_t{block_x()} * kGateEach * kRoundThreads + thread_x()) * 4;
  device::UInt4 gates[kGateEach] = {};
  device::UInt4 others[kGateEach] = {};
  GEN_UNROLL
  for (int32_t k = 0; k < kGateEach; ++k) {
    const int64_t output = first + k * kRoundThreads * 4;
    if (output >= end.rows) continue;
    gates[k] = device::load16(sums + t * end.rows + output);
    others[k] = device::load16(ups + t * end.rows + output);
  }
  GEN_UNROLL
  for (int32_t k = 0; k < kGateEach; ++k) {
    const int64_t output = first + k * kRoundThreads * 4;
    if (output >= end.rows) continue;
    const uint32_t gate[4] = {gates[k].x, gates[k].y, gates[k].z, gates[k].w};
    const uint32_t other[4] = {others[k].x, others[k].y, others[k].z, others[k].w};
    float y[4];
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      y[i] = gated(end.activation, float_from_bits(gate[i]), float_from_bits(other[i]));
    }
    float* const row = end.y.data + t * end.y.stride;
    const int64_t column = end.first_row + output;
    if (end.bf16) {
      device::store8(reinterpret_cast<uint16_t*>(row) + column,
                     {device::pack_bf16(y[0], y[1]), device::pack_bf16(y[2], y[3])});
    } else {
      device::store16(row + column,
                      {float_bits(y[0]), float_bits(y[1]), float_bits(y[2]), float_bits(y[3])});
    }
  }
}
bool ends_with_gate(const LinearEnd& end) {
  const auto in_fours = [](int64_t n) { return n % 4 == 0; };
  return end.gated && end.bias == nullptr && end.low_rank.table == nullptr &&
         end.residual.data == nullptr && in_fours(end.rows) && in_fours(end.first_row) &&
         in_fours(end.y.stride) && reinterpret_cast<uintptr_t>(end.y.data) % 16 == 0;
}

/// Whether the epilogue is at most a residual, so that the library can write its sums to y.
bool ends_with_sums(DType type, const LinearEnd& end) {
  const bool bare = end.bias == nullptr && end.activation.kind == engine::Act::kNone &&
                    end.low_rank.table == nullptr && !end.gated;
  const auto aligned = [&](const float* rows, int64_t stride) {
    return reinterpret_cast<uintptr_t>(rows + end.first_row) % 16 == 0 && stride % 4 == 0;
  };
  const bool residual =
      end.residual.data == nullptr ||
      (end.residual.stride == end.y.stride && aligned(end.residual.data, end.residual.stride));
  return bare && residual && type != DType::kF16 && !end.bf16 && aligned(end.y.data, end.y.stride);
}

/// The padded number of rows for library products that must have one result: few values, so that
/// each can be tried, and little padding.
int64_t filled_up(int64_t rows) {
  const auto to = [&](int64_t n) { return (rows + n - 1) / n * n; };
  if (rows <= 32) return to(16);
  if (rows <= 128) return to(32);
  if (rows <= 256) return to(64);
  return to(rows <= 1024 ? 128 : 256);
}

/// Memory of an operation, piece by piece.
class Pieces {
 public:
  /// Where a piece begins, in bytes.
  size_t add(size_t bytes) {
    const size_t at = end_;
    end_ += (bytes + 255) / 256 * 256;
    return at;
  }
  [[nodiscard]] size_t end() const { return end_; }

 private:
  size_t end_ = 0;
};

}  // namespace

Status multiply_float_rows(const OpContext& context, DType type, const FloatRowsView& of) {
  if (of.end.y.rows <= kMatvecRows) return linear_float_few(context, type, of);
  const auto launch = [&]<typename Type>(Type) {
    return launch_tiles<Type, LargeTile, MiddleTile, SmallTile>(context, of);
  };
  return type == DType::kF16 ? launch(TypeF16()) : launch(TypeBF16());
}

RowsProduct::RowsProduct(const OpContext& context, DType type, const PackedRows& x,
                         bool own) noexcept
    : context_(context),
      type_(type),
      x_(x),
      own_bits_(own),
      rounded_(x.rows),
      library_(context.products) {
  if (own && (x.rows <= kMatvecRows || x.bf16)) library_ = nullptr;
  if (library_ != nullptr) workspace_bytes_ = library_->workspace_bytes(context.compute);
  if (workspace_bytes_ == 0) library_ = nullptr;
  rows_.cols = static_cast<int32_t>((x.cols + 7) / 8 * 8);
  rows_.stride = x.bf16 ? static_cast<int32_t>(x.at.bytes / sizeof(uint16_t)) : rows_.cols;
}

void RowsProduct::drop_library() noexcept {
  library_ = nullptr;
  workspace_bytes_ = 0;
  trial_ = false;
  rounded_ = x_.rows;
}

void RowsProduct::choose(const LinearEnd& end, const WeightSegment& weight) {
  if (!own_bits_ || library_ == nullptr) return;
  rounded_ = filled_up(x_.rows);
  if (!RowsTrial::tells(rounded_, weight.rows, workspace_bytes_)) return drop_library();
  // A dry run allocates what a trial would.
  const MatrixProducts::Ways ways = context_.dry_run
                                        ? MatrixProducts::Ways::kToTry
                                        : library_->ways(library_product(end, weight, false));
  trial_ = ways == MatrixProducts::Ways::kToTry;
  if (ways == MatrixProducts::Ways::kNone || (trial_ && context_.capturing)) drop_library();
}

bool RowsProduct::direct(const LinearEnd& end) const {
  return ends_with_sums(type_, end) && rounded_ == x_.rows;
}

Status RowsProduct::take_memory(const LinearEnd& end, int64_t outputs, size_t weight_bytes) {
  const bool straight = direct(end);
  const auto stride = straight ? end.y.stride : outputs;
  const auto all = static_cast<size_t>(rounded_ * stride) * sizeof(float);
  // A trial writes its sums elsewhere if they would overwrite the residual.
  const bool sums = library_ != nullptr && (!straight || (trial_ && end.residual.data != nullptr));
  Pieces pieces;
  const size_t rows_at =
      pieces.add(x_.bf16 ? 0 : static_cast<size_t>(rounded_ * rows_.cols) * sizeof(uint16_t));
  const size_t factors_at = pieces.add(static_cast<size_t>(rounded_) * sizeof(float));
  const size_t sums_at = pieces.add(sums ? all : 0);
  const size_t ups_at = pieces.add(library_ != nullptr && end.gated ? all : 0);
  const size_t weights_at = pieces.add(weight_bytes);
  const size_t workspace_at = pieces.add(workspace_bytes_);
  uint8_t* scratch = nullptr;
  GEN_TRY(context_.scratch->take_scratch(pieces.end(), &scratch));
  sums_ = reinterpret_cast<float*>(scratch + sums_at);
  ups_ = reinterpret_cast<float*>(scratch + ups_at);
  weights_ = scratch + weights_at;
  workspace_ = scratch + workspace_at;
  rows_.data = reinterpret_cast<uint16_t*>(x_.bf16 ? x_.data : scratch + rows_at);
  rows_.factors = reinterpret_cast<float*>(scratch + factors_at);
  return {};
}

Status RowsProduct::prepare(const LinearEnd& end, int64_t outputs, size_t weight_bytes) {
  const auto take = [&] { return take_memory(end, outputs, weight_bytes); };
  // Our own kernel needs less memory.
  if (own_bits_ && library_ != nullptr && !take().ok()) drop_library();
  GEN_TRY(take());
  if (x_.bf16) return {};
  return run_kernel(context_, "round_rows",
                    type_ == DType::kF16 ? round_rows_kernel<TypeF16> : round_rows_kernel<TypeBF16>,
                    {static_cast<unsigned>(rounded_), 1, 1}, kRoundThreads, 0, x_, rows_);
}

MatrixProduct RowsProduct::library_product(const LinearEnd& end, const WeightSegment& by,
                                           bool up) const {
  const bool straight = direct(end);
  MatrixProduct product;
  product.type = type_;
  product.w = by.data;
  product.x = rows_.data;
  product.y = straight ? end.y.data + end.first_row : up ? ups_ : sums_;
  product.rows = rounded_;
  product.outputs = by.rows;
  product.cols = x_.cols;
  product.w_stride = static_cast<int64_t>(by.row_bytes / sizeof(uint16_t));
  product.x_stride = rows_.stride;
  product.y_stride = straight ? end.y.stride : by.rows;
  if (straight && end.residual.data != nullptr) {
    product.residual = end.residual.data + end.first_row;
  }
  product.workspace = workspace_;
  product.workspace_bytes = workspace_bytes_;
  product.own_bits = own_bits_;
  return product;
}

bool RowsProduct::sum(const LinearEnd& end, const WeightSegment& by, bool up) {
  const MatrixProduct product = library_product(end, by, up);
  if (context_.dry_run) return true;
  if (own_bits_ && library_->ways(product) != MatrixProducts::Ways::kFound) return false;
  return library_->multiply(product, context_.stream);
}

Status RowsProduct::try_ways(const LinearEnd& end, const WeightSegment& weight) {
  if (!trial_) return {};
  MatrixProduct product = library_product(end, weight, false);
  if (product.residual != nullptr) product.y = sums_;
  MatrixProducts& library = *std::exchange(library_, nullptr);
  return context_.dry_run ? Status() : RowsTrial(context_, rows_, weight).run(library, product);
}

Status RowsProduct::finish(const LinearEnd& end) {
  if (direct(end)) return {};
  if (ends_with_gate(end) && type_ == DType::kBF16) {
    device::Dim3 grid = grid_of(end.rows, kRoundThreads * 4 * kGateEach);
    grid.y = static_cast<unsigned>(x_.rows);
    return run_kernel(context_, "gate_rows", gate_rows_kernel, grid, kRoundThreads, 0, end, sums_,
                      ups_);
  }
  device::Dim3 grid = grid_of(end.rows, kRoundThreads * kFinishEach);
  grid.y = static_cast<unsigned>(x_.rows);
  return run_kernel(context_, "finish_rows", finish_rows_kernel, grid, kRoundThreads, 0, end, sums_,
                    end.gated ? ups_ : nullptr, type_ == DType::kF16 ? rows_.factors : nullptr);
}

Status RowsProduct::multiply(const LinearEnd& end, const WeightSegment& weight,
                             const WeightSegment* up, bool fresh_weights) {
  const FloatRowsView of = {
      rows_, end, weight.data, up != nullptr ? up->data : nullptr, weight.row_bytes, fresh_weights};
  return multiply_float_rows(context_, type_, of);
}

bool linear_float_rows_can(const OpContext& context, DType type) {
  return type == DType::kF16 || (type == DType::kBF16 && context.compute >= 80);
}

Status linear_float_rows(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                         const WeightSegment& weight, const WeightSegment* up, bool own) {
  RowsProduct product(context, weight.type, x, own);
  product.choose(end, weight);
  GEN_TRY(product.prepare(end, weight.rows));
  GEN_TRY(product.try_ways(end, weight));
  if (product.has_library() && product.sum(end, weight, false) &&
      (up == nullptr || product.sum(end, *up, true))) {
    return product.finish(end);
  }
  return product.multiply(end, weight, up, false);
}

}  // namespace gen::cuda

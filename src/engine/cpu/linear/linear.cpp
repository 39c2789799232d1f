// SPDX-License-Identifier: Apache-2.0
// linear: splits the output tiles of a product over the pool's threads and calls the kernels of
// linear_kernels.h. Columns are never split, so the result does not depend on the number of threads
// or the grouping of rows and tiles.
#include <algorithm>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/linear/weight.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu/weight/weight_layout.h"

namespace gen::engine::cpu {
namespace {

// Rows and tiles per kernel call: the sums and the rows of x stay in the L2 cache while the tiles
// are read.
constexpr int64_t kRowChunk = 128;
constexpr int64_t kTileGroup = 8;
// Kernels of float weights process columns in runs, so that only a run of each row must stay in the
// cache. They gain from larger chunks, since they convert weights once per chunk.
constexpr int64_t kFloatRowChunk = 256;
constexpr int64_t kFloatTileGroup = 16;
// A single row needs few sums, and each start of a kernel waits for memory.
constexpr int64_t kTileGroupOfOneRow = 64;
// With fewer bytes of weights times rows, waking the pool costs more than it saves.
constexpr size_t kBytesWorthAThread = 32768;

/// LinearArgs with pointers instead of addresses.
struct Operands {
  PackedView x;
  const float* bias;
  Activation activation;
  ConstRows residual;
  Rows y;
  const LowRankView* low_rank;  // null if no row has an adapter
  ConstRows u;
};

struct Product {
  const CpuWeight& weight;
  const Operands& args;
  const KernelTable& kernels;
  size_t x_stride;
  size_t scratch_bytes;  // of one thread
  int64_t chunk;         // rows and tiles in one kernel call
  int64_t group;
  size_t tile_bytes;  // size of the largest tile that is packed on use; 0 for none

  [[nodiscard]] int64_t rows() const noexcept { return args.y.rows; }
};

// Sums of `n` tiles of `segment` from `tile` on times `rows` rows of x from `row` on. `scratch` is
// room for one tile followed by the kernels' own scratch.
void sum_tiles(const Product& product, const WeightSegment& segment, int64_t tile, int64_t n,
               int64_t row, int64_t rows, float* acc, std::byte* scratch) noexcept {
  const PackedView& x = product.args.x;
  const TileKernel kernel = find_tile_kernel(product.kernels, segment.type);
  TileJob job;
  job.tile_bytes = segment.tile_bytes;
  job.n_tiles = n;
  job.cols = product.weight.in_features();
  job.x = x.data + static_cast<size_t>(row) * product.x_stride +
          packed_form_offset(x.forms, activation_form(product.kernels, segment.type), x.cols);
  job.x_stride = product.x_stride;
  job.rows = rows;
  job.acc = acc;
  job.acc_stride = product.group * kTileRows;
  job.scratch = scratch + product.tile_bytes;
  if (segment.tiles != nullptr) {
    job.tiles = segment.tiles + static_cast<size_t>(tile) * segment.tile_bytes;
    kernel(job);
    return;
  }
  job.n_tiles = 1;
  job.tiles = scratch;
  for (int64_t i = 0; i < n; ++i, job.acc += kTileRows) {
    pack_tile(segment.type, segment.source, segment.rows, job.cols, tile + i, scratch);
    kernel(job);
  }
}

const float* offset_or_null(const float* p, int64_t offset) noexcept {
  return p != nullptr ? p + offset : nullptr;
}

const float* residual_at(const Operands& args, int64_t row, int64_t col) noexcept {
  return offset_or_null(args.residual.data, row * args.residual.stride + col);
}

// Adds the adapters to the sums of `n` columns from `col` on, of `rows` rows from `row` on.
void add_adapters(const Product& product, int32_t gated, int64_t row, int64_t rows, int64_t col,
                  int64_t n, float* acc) noexcept {
  product.args.low_rank->add(product.args.u, {row, rows}, gated, col, n, acc,
                             product.group * kTileRows);
}

// Tiles [begin, end) of one segment, plain product.
void linear_tiles(const Product& product, const WeightSegment& segment, int64_t begin, int64_t end,
                  std::byte* memory) noexcept {
  const Operands& args = product.args;
  float* acc = reinterpret_cast<float*>(memory);
  const int64_t chunk = product.chunk;
  std::byte* scratch =
      memory + static_cast<size_t>(chunk * product.group * kTileRows) * sizeof(float);
  const auto finish =
      product.kernels.linear_float->finish[static_cast<size_t>(args.activation.kind)];
  for (int64_t tile = begin; tile < end; tile += product.group) {
    const int64_t n = std::min(product.group, end - tile);
    const int64_t outputs = std::min(n * kTileRows, segment.rows - tile * kTileRows);
    const int64_t col = segment.first_row + tile * kTileRows;
    for (int64_t row = 0; row < product.rows(); row += chunk) {
      const int64_t rows = std::min(chunk, product.rows() - row);
      sum_tiles(product, segment, tile, n, row, rows, acc, scratch);
      if (args.low_rank != nullptr) add_adapters(product, -1, row, rows, col, outputs, acc);
      for (int64_t t = 0; t < rows; ++t) {
        finish(acc + t * product.group * kTileRows, offset_or_null(args.bias, col),
               residual_at(args, row + t, col), args.y.data + (row + t) * args.y.stride + col,
               outputs, args.activation);
      }
    }
  }
}

// Tiles [begin, end) of gate and up together.
void gated_tiles(const Product& product, int64_t begin, int64_t end, std::byte* memory) noexcept {
  const Operands& args = product.args;
  const WeightSegment& gate = product.weight.segments()[0];
  const WeightSegment& up = product.weight.segments()[1];
  const int64_t chunk = product.chunk;
  float* gate_acc = reinterpret_cast<float*>(memory);
  float* up_acc = gate_acc + chunk * product.group * kTileRows;
  std::byte* scratch = reinterpret_cast<std::byte*>(up_acc + chunk * product.group * kTileRows);
  const auto finish =
      product.kernels.linear_float->finish_gated[static_cast<size_t>(args.activation.kind)];
  for (int64_t tile = begin; tile < end; tile += product.group) {
    const int64_t n = std::min(product.group, end - tile);
    const int64_t col = tile * kTileRows;
    const int64_t outputs = std::min(n * kTileRows, gate.rows - col);
    for (int64_t row = 0; row < product.rows(); row += chunk) {
      const int64_t rows = std::min(chunk, product.rows() - row);
      sum_tiles(product, gate, tile, n, row, rows, gate_acc, scratch);
      sum_tiles(product, up, tile, n, row, rows, up_acc, scratch);
      if (args.low_rank != nullptr) {
        add_adapters(product, 0, row, rows, col, outputs, gate_acc);
        add_adapters(product, 1, row, rows, col, outputs, up_acc);
      }
      for (int64_t t = 0; t < rows; ++t) {
        const int64_t at = t * product.group * kTileRows;
        finish(gate_acc + at, up_acc + at, offset_or_null(args.bias, col),
               offset_or_null(args.bias, gate.rows + col), residual_at(args, row + t, col),
               args.y.data + (row + t) * args.y.stride + col, outputs, args.activation);
      }
    }
  }
}

// The range [begin, end) of the tiles of all segments, numbered in order.
void product_tiles(const Product& product, int64_t begin, int64_t end, std::byte* memory) noexcept {
  if (product.weight.role() == WeightRole::kGated) {
    gated_tiles(product, begin, end, memory);
    return;
  }
  int64_t first = 0;
  for (const WeightSegment& segment : product.weight.segments()) {
    const int64_t from = std::max(begin - first, int64_t{0});
    const int64_t to = std::min(end - first, segment.n_tiles);
    if (from < to) linear_tiles(product, segment, from, to, memory);
    first += segment.n_tiles;
  }
}

}  // namespace

Status run(CpuContext& context, const LinearArgs& args) {
  const auto& weight = static_cast<const CpuWeight&>(*args.weight);
  if (args.y.rows == 0) return {};
  const bool gated = weight.role() == WeightRole::kGated;
  const bool floats = weight.activation_forms() == kActF32;
  const int64_t chunk = std::min(args.y.rows, floats ? kFloatRowChunk : kRowChunk);
  const int64_t group = args.y.rows == 1 ? kTileGroupOfOneRow
                        : floats         ? kFloatTileGroup
                                         : kTileGroup;
  const size_t sums =
      static_cast<size_t>(chunk * group * kTileRows) * (gated ? 2 : 1) * sizeof(float);
  int64_t n_tiles = 0;
  size_t tile_bytes = 0;
  for (const WeightSegment& segment : weight.segments()) {
    n_tiles += segment.n_tiles;
    if (segment.tiles == nullptr)
      tile_bytes = std::max(tile_bytes, round_up_64(segment.tile_bytes));
  }
  const size_t scratch_bytes = sums + tile_bytes + kTileScratchBytes;
  const LowRankView low_rank(context, args.low_rank);
  const Operands operands = {context.at(args.x), context.at(args.bias),
                             args.activation,    context.at(args.residual),
                             context.at(args.y), low_rank.present() ? &low_rank : nullptr,
                             context.at(args.u)};
  const Product product = {
      weight,        operands, context.kernels, packed_row_bytes(args.x.forms, args.x.cols),
      scratch_bytes, chunk,    group,           tile_bytes};
  if (gated) n_tiles /= 2;
  const bool alone = context.pool.size() == 1 ||
                     weight.stream_bytes() < kBytesWorthAThread / static_cast<size_t>(args.y.rows);
  const int32_t threads = alone ? 1 : context.pool.size();

  std::byte* memory = nullptr;
  GEN_TRY(context.stream.scratch(static_cast<size_t>(threads) * scratch_bytes, &memory));
  if (context.dry_run) return {};
  if (alone) {
    product_tiles(product, 0, n_tiles, memory);
    return {};
  }
  context.pool.share([&](int32_t index, int32_t shares) {
    const IndexRange share = split_range(n_tiles, 1, shares, index);
    product_tiles(product, share.begin, share.end,
                  memory + static_cast<size_t>(index) * scratch_bytes);
  });
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// experts: products of rows with the matrices of their experts. Rows are sorted by expert, so that
// a matrix is read once for all of its rows. The tiles of all experts together are split over
// threads by cost. Kernels and epilogues are those of linear.cpp, so a row has the same bits as
// alone.
#include <algorithm>
#include <cstring>

#include "engine/cpu/base/carver.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/linear/weight.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu/weight/weight_layout.h"

namespace gen::engine::cpu {
namespace {

// Rows that are gathered for a kernel, and tiles per kernel call.
constexpr int64_t kExpertRows = 64;
constexpr int64_t kExpertTiles = 8;
// A single row needs few sums, and each start of a kernel waits for memory.
constexpr int64_t kExpertTilesOfOneRow = 64;
// Reading a tile of weights costs as much as multiplying it with this many rows.
constexpr int64_t kRowsWorthATile = 4;
// With fewer bytes of weights times rows, waking the pool costs more than it saves.
constexpr size_t kBytesWorthThreads = 32768;

/// The places of each expert in ascending order; place t * n_used + s is the s-th expert of row t.
struct Order {
  int64_t* first;   // [E + 1]: where an expert's begin in `places`
  int32_t* places;  // [T * n_used]
};

Order carve_order(Carver& carver, int64_t experts, int64_t places) noexcept {
  return {carver.take<int64_t>(experts + 1), carver.take<int32_t>(places)};
}

void put_in_order(const int32_t* routes, const ConstRoutes& of, int64_t experts, Order* order) {
  std::fill_n(order->first, experts + 1, 0);
  for (int64_t t = 0; t < of.rows; ++t) {
    for (int32_t s = 0; s < of.n_used; ++s) ++order->first[routes[t * of.stride + s] + 1];
  }
  for (int64_t e = 0; e < experts; ++e) order->first[e + 1] += order->first[e];
  // Storing a place increments its expert's begin, which ends at the begin of the next expert.
  for (int64_t t = 0; t < of.rows; ++t) {
    for (int32_t s = 0; s < of.n_used; ++s) {
      order->places[order->first[routes[t * of.stride + s]]++] =
          static_cast<int32_t>(t * of.n_used + s);
    }
  }
  for (int64_t e = experts; e > 0; --e) order->first[e] = order->first[e - 1];
  order->first[0] = 0;
}

/// Scratch of a thread.
struct ExpertScratch {
  float* sums;      // [rows][tiles * 16] of a kernel's call
  float* up_sums;   // the same, of gated products
  std::byte* tile;  // a tile that is packed on use
  std::byte* rows;  // [kExpertRows] rows of x
  std::byte* kernel;
};

class Experts {
 public:
  Experts(const CpuContext& context, const ExpertsArgs& args)
      : weight_(static_cast<const CpuWeight&>(*args.weight)),
        kernels_(context.kernels),
        args_(args),
        x_(context.at(args.x)),
        y_(context.at(args.y)),
        bias_(context.at(args.bias)),
        scales_(context.at(args.scales)),
        low_rank_(context, args.low_rank, args.routes.n_used),
        u_(context.at(args.u)),
        x_stride_(packed_row_bytes(args.x.forms, args.x.cols)),
        divisor_(args.x.rows == args.y.rows ? 1 : args.routes.n_used),
        gated_(weight_.role() == WeightRole::kGated) {
    for (const WeightSegment& segment : weight_.segments()) {
      tiles_ += segment.n_tiles;
      if (segment.tiles == nullptr) tile_bytes_ = std::max(tile_bytes_, segment.tile_bytes);
    }
    if (gated_) tiles_ /= 2;
  }

  ExpertScratch carve(Carver& carver) const noexcept {
    const int64_t sums = std::max(chunk() * kExpertTiles, kExpertTilesOfOneRow) * kTileRows;
    return {carver.take<float>(sums), carver.take<float>(gated_ ? sums : 0),
            carver.take<std::byte>(static_cast<int64_t>(tile_bytes_)),
            carver.take<std::byte>(chunk() * static_cast<int64_t>(x_stride_)),
            carver.take<std::byte>(int64_t{kTileScratchBytes})};
  }

  /// The cost of a tile of an expert with this many rows.
  static int64_t tile_cost(int64_t rows) noexcept { return rows > 0 ? rows + kRowsWorthATile : 0; }

  /// Processes a share of the total cost.
  void run(const Order& order, int32_t index, int32_t shares, const ExpertScratch& scratch) const {
    int64_t all = 0;
    for (int64_t e = 0; e < weight_.count(); ++e) {
      all += tiles_ * tile_cost(order.first[e + 1] - order.first[e]);
    }
    const int64_t from = all / shares * index + all % shares * index / shares;
    const int64_t to = all / shares * (index + 1) + all % shares * (index + 1) / shares;
    int64_t before = 0;
    for (int64_t e = 0; e < weight_.count() && before < to; ++e) {
      const int64_t rows = order.first[e + 1] - order.first[e];
      const int64_t cost = tile_cost(rows);
      if (cost == 0) continue;
      // A tile belongs to the share in which its cost begins.
      const auto tile_at = [&](int64_t limit) {
        return std::clamp<int64_t>((limit - before + cost - 1) / cost, 0, tiles_);
      };
      const int64_t begin = tile_at(std::max(from, before));
      const int64_t end = tile_at(to);
      if (begin < end) run_expert(e, order.places + order.first[e], rows, begin, end, scratch);
      before += tiles_ * cost;
    }
  }

 private:
  [[nodiscard]] int64_t chunk() const noexcept { return std::min(args_.y.rows, kExpertRows); }
  [[nodiscard]] const std::byte* row(int32_t place) const noexcept {
    return x_.data + static_cast<size_t>(place / divisor_) * x_stride_;
  }

  void run_expert(int64_t expert, const int32_t* places, int64_t rows, int64_t begin, int64_t end,
                  const ExpertScratch& scratch) const {
    for (int64_t first = 0; first < rows; first += kExpertRows) {
      const int64_t n = std::min(kExpertRows, rows - first);
      const std::byte* x = row(places[first]);
      if (n > 1) {
        for (int64_t i = 0; i < n; ++i) {
          std::memcpy(scratch.rows + static_cast<size_t>(i) * x_stride_, row(places[first + i]),
                      x_stride_);
        }
        x = scratch.rows;
      }
      run_tiles({expert, places + first, n, x}, begin, end, scratch);
    }
  }

  /// Gathered rows of one expert.
  struct Group {
    int64_t expert;
    const int32_t* places;  // [rows] of y
    int64_t rows;
    const std::byte* x;

    /// In one kernel call.
    [[nodiscard]] int64_t tiles() const noexcept {
      return rows == 1 ? kExpertTilesOfOneRow : kExpertTiles;
    }
  };

  void run_tiles(const Group& group, int64_t begin, int64_t end,
                 const ExpertScratch& scratch) const {
    if (gated_) {
      const WeightSegment gate = weight_.segments()[0].matrix(group.expert);
      const WeightSegment up = weight_.segments()[1].matrix(group.expert);
      for (int64_t tile = begin; tile < end; tile += group.tiles()) {
        const int64_t n = std::min(group.tiles(), end - tile);
        sum(group, gate, tile, n, scratch.sums, scratch);
        sum(group, up, tile, n, scratch.up_sums, scratch);
        finish(group, gate, tile, n, scratch);
      }
      return;
    }
    int64_t first = 0;
    for (const WeightSegment& of_all : weight_.segments()) {
      const WeightSegment segment = of_all.matrix(group.expert);
      const int64_t to = std::min(end - first, segment.n_tiles);
      for (int64_t tile = std::max(begin - first, int64_t{0}); tile < to; tile += group.tiles()) {
        const int64_t n = std::min(group.tiles(), to - tile);
        sum(group, segment, tile, n, scratch.sums, scratch);
        finish(group, segment, tile, n, scratch);
      }
      first += segment.n_tiles;
    }
  }

  void sum(const Group& group, const WeightSegment& segment, int64_t tile, int64_t n, float* acc,
           const ExpertScratch& scratch) const {
    const TileKernel kernel = find_tile_kernel(kernels_, segment.type);
    TileJob job;
    job.tile_bytes = segment.tile_bytes;
    job.n_tiles = n;
    job.cols = weight_.in_features();
    job.x =
        group.x + packed_form_offset(x_.forms, activation_form(kernels_, segment.type), x_.cols);
    job.x_stride = x_stride_;
    job.rows = group.rows;
    job.acc = acc;
    job.acc_stride = group.tiles() * kTileRows;
    job.scratch = scratch.kernel;
    if (segment.tiles != nullptr) {
      job.tiles = segment.tiles + static_cast<size_t>(tile) * segment.tile_bytes;
      kernel(job);
      return;
    }
    job.n_tiles = 1;
    job.tiles = scratch.tile;
    for (int64_t i = 0; i < n; ++i, job.acc += kTileRows) {
      pack_tile(segment.type, segment.source, segment.rows, job.cols, tile + i, scratch.tile);
      kernel(job);
    }
  }

  static void scale_row(float* sums, float scale, int64_t n) noexcept {
    for (int64_t i = 0; i < n; ++i) sums[i] *= scale;
  }

  void finish(const Group& group, const WeightSegment& segment, int64_t tile, int64_t n,
              const ExpertScratch& scratch) const {
    const FloatKernels& kernels = *kernels_.linear_float;
    const auto act = static_cast<size_t>(args_.activation.kind);
    const int64_t col = segment.first_row + tile * kTileRows;
    const int64_t outputs = std::min(n * kTileRows, segment.rows - tile * kTileRows);
    const float* bias = nullptr;
    const float* up_bias = nullptr;
    if (bias_ != nullptr) {
      bias = bias_ + group.expert * weight_.out_features() + col;
      up_bias = bias + weight_.count() * weight_.out_features();
    }
    const int64_t stride = group.tiles() * kTileRows;
    for (int64_t i = 0; i < group.rows && scales_ != nullptr; ++i) {
      scale_row(scratch.sums + i * stride, scales_[group.expert], outputs);
      if (!gated_) continue;
      scale_row(scratch.up_sums + i * stride, scales_[weight_.count() + group.expert], outputs);
    }
    if (low_rank_.present()) {
      const LowRankView::Group rows = {0, group.rows, group.places, group.expert};
      low_rank_.add(u_, rows, gated_ ? 0 : -1, col, outputs, scratch.sums, stride);
      if (gated_) low_rank_.add(u_, rows, 1, col, outputs, scratch.up_sums, stride);
    }
    for (int64_t i = 0; i < group.rows; ++i) {
      const int64_t at = i * stride;
      float* const y = y_.row(group.places[i]) + col;
      if (gated_) {
        kernels.finish_gated[act](scratch.sums + at, scratch.up_sums + at, bias, up_bias, nullptr,
                                  y, outputs, args_.activation);
      } else {
        kernels.finish[act](scratch.sums + at, bias, nullptr, y, outputs, args_.activation);
      }
    }
  }

  const CpuWeight& weight_;
  const KernelTable& kernels_;
  const ExpertsArgs& args_;
  PackedView x_;
  Rows y_;
  const float* bias_;
  const float* scales_;
  LowRankView low_rank_;
  ConstRows u_;
  size_t x_stride_;
  int64_t divisor_;  // places that share a row of x
  bool gated_;
  int64_t tiles_ = 0;  // per expert; pairs of tiles in gated products
  size_t tile_bytes_ = 0;
};

}  // namespace

Status run(CpuContext& context, const ExpertsArgs& args) {
  if (args.y.rows == 0) return {};
  const Experts experts(context, args);
  Carver order_bytes(nullptr);
  carve_order(order_bytes, args.weight->count(), args.y.rows);
  Carver thread_bytes(nullptr);
  experts.carve(thread_bytes);
  const auto one = args.weight->stream_bytes() / static_cast<size_t>(args.weight->count());
  const bool alone =
      context.pool.size() == 1 || one < kBytesWorthThreads / static_cast<size_t>(args.y.rows);
  const auto threads = static_cast<size_t>(alone ? 1 : context.pool.size());
  std::byte* memory = nullptr;
  GEN_TRY(context.stream.scratch(order_bytes.used() + threads * thread_bytes.used(), &memory));
  if (context.dry_run) return {};
  Carver carver(memory);
  Order order = carve_order(carver, args.weight->count(), args.y.rows);
  put_in_order(context.at(args.routes.data), args.routes, args.weight->count(), &order);
  const auto part = [&](int32_t index, int32_t shares) {
    Carver own(memory + order_bytes.used() + static_cast<size_t>(index) * thread_bytes.used());
    experts.run(order, index, shares, experts.carve(own));
  };
  if (alone) {
    part(0, 1);
    return {};
  }
  context.pool.share(part);
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// experts: products of rows with the matrices of their experts. With few rows each place, a row and
// one of its experts, reads the matrix on its own, as here; with many they are sorted by expert
// first (group_experts.cu, experts_rows.cuh). Only the device knows the chosen experts, so one grid
// covers all places. Sums and bits are those of linear_quant.cuh and linear_floats.cu.
//   Work    Quantised: a block is a tile of eight outputs of a row's expert. Floats: a warp is an
//           output of a row's expert.
//   Bytes   the chosen experts' matrices once for each row.
#include "cuda/ops/experts/experts.cuh"
#include "cuda/ops/linear/linear_floats.cuh"
#include "cuda/ops/linear/linear_quant.cuh"
#include "cuda/ops/linear/quant_segment.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kFloatThreads = 128;
constexpr int32_t kFloatWarps = kFloatThreads / 32;

/// A row and one of its experts.
struct ExpertRow {
  int64_t row;  // of y
  int64_t expert;
  const uint8_t* x;
};
GEN_DEVICE ExpertRow expert_row_of(const ExpertsView& of, int64_t row) {
  const int64_t t = row / of.used;
  const int32_t expert = of.routes[t * of.stride + row % of.used];
  return {row, expert, of.x.data + static_cast<size_t>(of.slots ? row : t) * of.x.at.bytes};
}

/// A step of a tile where the device has it.
struct StepOfTile {
  const uint8_t* step;
  [[nodiscard]] GEN_DEVICE device::UInt4 load16(int32_t i) const {
    return device::load16(step + i);
  }
  [[nodiscard]] GEN_DEVICE device::UInt2 load8(int32_t i) const { return device::load8(step + i); }
  [[nodiscard]] GEN_DEVICE uint32_t load4(int32_t i) const {
    return *reinterpret_cast<const uint32_t*>(step + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load2(int32_t i) const {
    return *reinterpret_cast<const uint16_t*>(step + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load1(int32_t i) const { return step[i]; }
};

/// The steps of a tile, as sum_tile() asks for them.
template <Traits t>
struct StepsOfTile {
  const uint8_t* tile;
  GEN_DEVICE void operator()(int32_t step, LaneStep<t>* lane) const {
    lane->load(StepOfTile{tile + static_cast<size_t>(step) * step_bytes(t)}, lane_of_warp());
  }
};

/// The `begin` of sum_tile() that does nothing.
struct Nothing {
  GEN_DEVICE void operator()() const {}
};

template <size_t kIndex>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kQuantThreads)
    experts_quant_kernel(ExpertsView of, size_t tile_bytes, int32_t n_tiles, int32_t n_steps,
                         int32_t n_blocks) {
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr int32_t kTerms = kTermBuffers * round_terms(t);
  GEN_SHARED(Term, scaled, kTerms);
  GEN_SHARED(Term, minima, t.minima ? kTerms : 1);
  after_predecessor();
  const ExpertRow place = expert_row_of(of, block_x() / n_tiles);
  const int32_t tile = block_x() % n_tiles;
  QuantView row = {of.x, n_steps, n_blocks};
  row.x.data = const_cast<uint8_t*>(place.x);
  const auto sum_of = [&](const uint8_t* stack) {
    const uint8_t* const from = stack + static_cast<size_t>(place.expert) * of.pitch +
                                static_cast<size_t>(tile) * tile_bytes;
    return sum_tile<t>(row, StepsOfTile<t>{from}, scaled, minima, Nothing());
  };
  const float sum = sum_of(of.data);
  float up = 0.0F;
  if (of.up_data != nullptr) {
    sync_threads();  // the last terms have been added
    up = sum_of(of.up_data);
  }
  const int64_t output = int64_t{tile} * kTileOutputs + thread_x();
  if (thread_x() < kTileOutputs && output < of.end.rows) {
    finish_place(of, place.expert, place.row, output, sum, up);
  }
}

template <typename Type>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kFloatThreads)
    experts_float_kernel(ExpertsView of, int32_t blocks_of_place) {
  constexpr int32_t kElements = Type::kElements;
  after_predecessor();
  const int64_t output = int64_t{block_x() % blocks_of_place} * kFloatWarps + warp_of_block();
  if (output >= of.end.rows) return;
  const ExpertRow place = expert_row_of(of, block_x() / blocks_of_place);
  const auto* const x = reinterpret_cast<const float*>(place.x);
  const auto cols = static_cast<int32_t>(of.x.cols);
  const auto sum_of = [&](const uint8_t* stack) {
    const uint8_t* const from = stack + static_cast<size_t>(place.expert) * of.pitch +
                                static_cast<size_t>(output) * of.row_bytes;
    float sums[1] = {};
    for (int32_t piece = lane_of_warp(); piece * kElements < cols; piece += 32) {
      float w[static_cast<size_t>(kElements)];
      float values[static_cast<size_t>(kElements)];
      Type::decode(device::load16(from + static_cast<size_t>(piece) * 16), w);
      load_elements<kElements>(x + piece * kElements, cols - piece * kElements, values);
      sums[0] = add_products(values, w, sums[0]);
    }
    return sum_lanes(sums);
  };
  const float sum = sum_of(of.data);
  const float up = of.up_data != nullptr ? sum_of(of.up_data) : sum;
  if (lane_of_warp() == 0) finish_place(of, place.expert, place.row, output, sum, up);
}

LinearEnd experts_end(const engine::ExpertsArgs& args) noexcept {
  LinearEnd end = {};
  end.gated = args.weight->role() == engine::WeightRole::kGated;
  end.bias = pointer(args.bias);
  if (end.gated && end.bias != nullptr) {
    end.up_bias = end.bias + args.weight->count() * args.y.cols;
  }
  end.activation = args.activation;
  end.y = view(args.y);
  return end;
}

template <typename Type>
Status launch_floats(const OpContext& context, const ExpertsView& of) {
  const auto blocks = static_cast<int32_t>((of.end.rows + kFloatWarps - 1) / kFloatWarps);
  const device::Dim3 grid = {static_cast<unsigned>(of.end.y.rows * blocks), 1, 1};
  return run_kernel(context, "experts", experts_float_kernel<Type>, grid, kFloatThreads, 0, of,
                    blocks);
}

Status run_grouped(const OpContext& context, const ExpertsView& of, const ExpertGroups& groups,
                   const WeightSegment& segment) {
  const quant::Traits* const traits = quant::find_traits(segment.type);
  if (traits == nullptr) return experts_rows_of_floats(context, of, groups, segment);
  if (traits->block == 256) return experts_rows_of_256(context, of, groups, segment);
  return experts_rows_of_32(context, of, groups, segment);
}

Status run_segment(const OpContext& context, const ExpertsView& of, const WeightSegment& segment) {
  if (segment.type == DType::kF32) return launch_floats<WeightF32>(context, of);
  if (segment.type == DType::kF16) return launch_floats<WeightF16>(context, of);
  if (segment.type == DType::kBF16) return launch_floats<WeightBF16>(context, of);
  const auto launch = [&]<size_t kIndex>(const QuantSegment& quant) {
    const device::Dim3 grid = {static_cast<unsigned>(of.end.y.rows * quant.n_tiles), 1, 1};
    return run_kernel(context, "experts", experts_quant_kernel<kIndex>, grid, kQuantThreads, 0, of,
                      quant.tile_bytes, quant.n_tiles, quant.n_steps, quant.n_blocks);
  };
  const quant::Traits* const traits = quant::find_traits(segment.type);
  if (traits != nullptr && traits->block == 256) {
    return launch_segment<256>(of.x, of.end, segment, nullptr, launch);
  }
  return launch_segment<32>(of.x, of.end, segment, nullptr, launch);
}

}  // namespace

Status run(const OpContext& context, const engine::ExpertsArgs& args) {
  const auto& segments = static_cast<const DeviceWeight&>(*args.weight).segments();
  ExpertsView of = {packed_rows(args.x),
                    experts_end(args),
                    pointer(args.scales),
                    pointer(args.routes.data),
                    args.routes.stride,
                    args.routes.n_used,
                    args.weight->count(),
                    args.x.rows == args.y.rows,
                    nullptr,
                    nullptr,
                    0,
                    0};
  const bool grouped = experts_grouped(of);
  ExpertGroups groups;
  if (grouped) GEN_TRY(group_experts(context, of, &groups));
  for (size_t i = 0; i < segments.size(); i += of.end.gated ? 2 : 1) {
    of.data = segments[i].data;
    of.up_data = of.end.gated ? segments[i + 1].data : nullptr;
    of.pitch = segments[i].pitch;
    of.row_bytes = segments[i].row_bytes;
    of.end.rows = segments[i].rows;
    of.end.first_row = segments[i].first_row;
    GEN_TRY(grouped ? run_grouped(context, of, groups, segments[i])
                    : run_segment(context, of, segments[i]));
  }
  return {};
}

}  // namespace gen::cuda

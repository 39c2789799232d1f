// SPDX-License-Identifier: Apache-2.0
// Products of float weights for groups of rows of an expert, with the order and the bits of
// linear_floats.cu.
//   Work    A warp is four outputs of an expert, of a gated product two and their gates, by up to
//           eight rows of one of its groups.
//   Bytes   an expert's matrix once for every eight of its rows; x from the L1 cache, once for the
//           outputs of a warp.
#include "cuda/ops/experts/experts.cuh"
#include "cuda/ops/linear/linear_floats.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;
constexpr int32_t kSlots = 4;  // rows of weights per warp

template <typename Type>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    experts_float_rows_kernel(ExpertsView of, ExpertGroups groups) {
  constexpr int32_t kElements = Type::kElements;
  constexpr int32_t kRows = kMatvecRows;
  after_predecessor();
  const GroupPart part = part_of_groups<kRows>(groups, block_x());
  if (part.n <= 0) return;
  const bool gated = of.end.gated;
  const int32_t outputs = gated ? kSlots / 2 : kSlots;
  const int64_t first_output = (int64_t{block_y()} * kWarps + warp_of_block()) * outputs;
  if (first_output >= of.end.rows) return;
  const uint8_t* from[static_cast<size_t>(kSlots)];
  GEN_UNROLL
  for (int32_t slot = 0; slot < kSlots; ++slot) {
    int64_t output = first_output + (gated ? slot / 2 : slot);
    if (output >= of.end.rows) output = first_output;  // its sum is not used
    from[slot] = (gated && slot % 2 != 0 ? of.up_data : of.data) +
                 static_cast<size_t>(part.expert) * of.pitch +
                 static_cast<size_t>(output) * of.row_bytes;
  }
  const float* rows[static_cast<size_t>(kRows)];
  GEN_UNROLL
  for (int32_t j = 0; j < kRows; ++j) {
    // Missing rows repeat the first one.
    const int32_t row = x_row_of(of, part.places[j < part.n ? j : 0]);
    rows[j] = reinterpret_cast<const float*>(of.x.data + static_cast<size_t>(row) * of.x.at.bytes);
  }
  const auto cols = static_cast<int32_t>(of.x.cols);
  float sums[static_cast<size_t>(kRows * kSlots)] = {};
  for (int32_t piece = lane_of_warp(); piece * kElements < cols; piece += 32) {
    float w[static_cast<size_t>(kSlots)][static_cast<size_t>(kElements)];
    GEN_UNROLL
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      Type::decode(device::load16(from[slot] + static_cast<size_t>(piece) * 16), w[slot]);
    }
    GEN_UNROLL
    for (int32_t j = 0; j < kRows; ++j) {
      float values[static_cast<size_t>(kElements)];
      load_elements<kElements>(rows[j] + piece * kElements, cols - piece * kElements, values);
      GEN_UNROLL
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        float& sum = sums[j * kSlots + slot];
        sum = add_products(values, w[slot], sum);
      }
    }
  }
  const float sum = sum_lanes(sums);  // a lane has the sum of its number
  static_assert(kRows * kSlots == 32);
  const float up = shuffle_xor(sum, 1);
  const int32_t row = lane_of_warp() / kSlots;
  const int32_t slot = lane_of_warp() % kSlots;
  const int64_t output = first_output + (gated ? slot / 2 : slot);
  if (row >= part.n || output >= of.end.rows) return;
  if (gated && slot % 2 != 0) return;
  finish_place(of, part.expert, part.places[row], output, sum, up);
}

template <typename Type>
Status launch_floats(const OpContext& context, const ExpertsView& of, const ExpertGroups& groups) {
  static_assert(kExpertGroup / 2 % kMatvecRows == 0);
  const int32_t outputs = kWarps * kSlots / (of.end.gated ? 2 : 1);
  const device::Dim3 grid = {static_cast<unsigned>(groups.count * (groups.size / kMatvecRows)),
                             static_cast<unsigned>((of.end.rows + outputs - 1) / outputs), 1};
  return run_kernel(context, "experts_rows", experts_float_rows_kernel<Type>, grid, kThreads, 0, of,
                    groups);
}

}  // namespace

Status experts_rows_of_floats(const OpContext& context, const ExpertsView& of,
                              const ExpertGroups& groups, const WeightSegment& segment) {
  switch (segment.type) {
    case DType::kF32:
      return launch_floats<WeightF32>(context, of, groups);
    case DType::kF16:
      return launch_floats<WeightF16>(context, of, groups);
    case DType::kBF16:
      return launch_floats<WeightBF16>(context, of, groups);
    default:
      return error(Code::kUnsupported, "weights of type %s have no kernel",
                   dtype_name(segment.type));
  }
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// mass[t, p] is the sum of exp((logit - max) / temperature) over the tokens of slice p of row t
// that are allowed, with the row's largest logit as max, in double precision and in the order of
// base/mass_slices.h: the bits are the CPU engine's. A block is a slice of a row: all its threads
// weigh tokens, then sixteen add up a lane each, and one of them adds the lanes.
//   Error: exp below 2 ulp, with the series and constants of base/portable_math.h.
#include "base/exp_series.h"
#include "base/mass_slices.h"
#include "cuda/ops/logits/best.cuh"
#include "cuda/ops/logits/mass.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

/// exp(x) for x <= 0, -inf included; subnormal results are flushed to 0.
GEN_DEVICE double weight_of(double x) {
  if (!(x >= kExpLowest)) return 0.0;
  const double rounded = x * kExpLog2E + kExpRound;
  const double p = exp_series(exp_rest(x, rounded - kExpRound));
  return p * device::double_from_bits((device::double_bits(rounded) << 52) + 0x3FF0000000000000U);
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1)
    mass_kernel(RowsView x, const engine::BestRow* rows, int32_t k, const int32_t* tokens,
                const float* values, int32_t slices, double* mass) {
  after_predecessor();
  GEN_SHARED(double, weights, kMassSlice);
  GEN_SHARED(double, lanes, kMassLanes);
  const int64_t t = block_y();
  const double temperature = rows[t].temperature;
  const float max = values[t * k];
  if (!(temperature > 0.0) || tokens[t * k] < 0 || max == minus_infinity()) return;
  const LogitRow row = {x.data + t * x.stride, 0, static_cast<int32_t>(x.cols), at(rows[t].mask),
                        rows[t].mask_words};
  const int32_t slice = block_x();
  const int32_t first = slice * kMassSlice;
  for (int32_t i = thread_x(); i < kMassSlice; i += kThreads) {
    double weight = 0.0;
    if (first + i < row.to) {
      const double below = static_cast<double>(row.at(first + i)) - static_cast<double>(max);
      weight = weight_of(below / temperature);
    }
    weights[i] = weight;
  }
  sync_threads();
  if (thread_x() < kMassLanes) {
    double sum = 0.0;
    for (int32_t i = thread_x(); i < kMassSlice; i += kMassLanes) sum += weights[i];
    lanes[thread_x()] = sum;
  }
  sync_threads();
  if (thread_x() != 0) return;
  for (int32_t half = kMassLanes / 2; half > 0; half /= 2) {
    for (int32_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  mass[t * slices + slice] = lanes[0];
}

/// The slice of a row in which its place lies: one thread adds the sums, in their order.
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1)
    slice_kernel(RowsView x, const engine::BestRow* rows, int32_t k, const int32_t* tokens,
                 const float* values, int32_t slices, const double* mass, float* slice) {
  after_predecessor();
  GEN_SHARED(int32_t, found, 1);
  const int64_t t = block_x();
  const double place = rows[t].place;
  if (!(rows[t].temperature > 0.0) || !(place >= 0.0) || tokens[t * k] < 0 ||
      values[t * k] == minus_infinity()) {
    return;
  }
  if (thread_x() == 0) {
    const double* const sums = mass + t * slices;
    double total = 0.0;
    for (int32_t i = 0; i < slices; ++i) total += sums[i];
    const double target = place * total;
    double before = 0.0;
    int32_t at = 0;
    while (at < slices && !(before + sums[at] > target)) before += sums[at++];
    found[0] = at;
  }
  sync_threads();
  const int32_t at_slice = found[0];
  if (at_slice == slices) return;
  const LogitRow row = {x.data + t * x.stride, 0, static_cast<int32_t>(x.cols), at(rows[t].mask),
                        rows[t].mask_words};
  for (int32_t i = thread_x(); i < kMassSlice; i += kThreads) {
    const int32_t token = at_slice * kMassSlice + i;
    slice[t * kMassSlice + i] = token < row.to ? row.at(token) : minus_infinity();
  }
}

}  // namespace

Status weigh(const OpContext& context, const engine::BestArgs& args) {
  const auto slices = static_cast<int32_t>(mass_slices(static_cast<size_t>(args.x.cols)));
  const device::Dim3 grid = {static_cast<unsigned>(slices), static_cast<unsigned>(args.x.rows), 1};
  GEN_TRY(run_kernel(context, "mass", mass_kernel, grid, kThreads, 0, view(args.x),
                     pointer(args.rows), args.k, pointer(args.tokens), pointer(args.values), slices,
                     pointer(args.mass)));
  if (!args.slice) return {};
  const device::Dim3 each = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "mass_slice", slice_kernel, each, kThreads, 0, view(args.x),
                    pointer(args.rows), args.k, pointer(args.tokens), pointer(args.values), slices,
                    pointer(args.mass), pointer(args.slice));
}

}  // namespace gen::cuda

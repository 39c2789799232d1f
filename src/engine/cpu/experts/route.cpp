// SPDX-License-Identifier: Apache-2.0
// route: rows are split over threads. Exponentials use kernels, the rest is plain C++ in the order
// of experts. Each choice of an expert is one pass over all of them.
#include "engine/cpu/experts/route.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/experts/route-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/experts/route-inl.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/cpu/base/carver.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Scratch of a thread.
struct Scratch {
  float* p;       // [E]
  float* score;   // [E]
  bool* taken;    // [E]
  float* chosen;  // [n_used], or [n_groups] where these are chosen
};

Scratch carve(Carver& carver, const Routing& of) noexcept {
  return {carver.take<float>(of.n_experts), carver.take<float>(of.n_experts),
          carver.take<bool>(of.n_experts), carver.take<float>(std::max(of.n_used, of.n_groups))};
}

float largest(const float* x, int64_t n) noexcept {
  float most = kLowest;
  for (int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

/// y = softmax(x); y may be x.
void softmax(const RouteKernels& kernels, const float* x, float* y, int64_t n) noexcept {
  kernels.exps(x, largest(x, n), y, n);
  float sum = 0.0F;
  for (int64_t i = 0; i < n; ++i) sum += y[i];
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

/// The best in [begin, end) that is not taken, the lowest among equal ones; -1 if all are taken.
int32_t best_of(const Scratch& of, int32_t begin, int32_t end) noexcept {
  int32_t best = -1;
  for (int32_t e = begin; e < end; ++e) {
    if (!of.taken[e] && (best < 0 || of.score[e] > of.score[best])) best = e;
  }
  return best;
}

/// Marks the experts of all groups but the best as taken.
void take_groups(const Routing& routing, const Scratch& of) noexcept {
  const int32_t size = routing.n_experts / routing.n_groups;
  for (int32_t g = 0; g < routing.n_groups; ++g) {
    const int32_t first = best_of(of, g * size, (g + 1) * size);
    of.taken[first] = true;
    const int32_t second = best_of(of, g * size, (g + 1) * size);
    of.taken[first] = false;
    of.chosen[g] = second < 0 ? of.score[first] : of.score[first] + of.score[second];
  }
  std::fill_n(of.taken, routing.n_experts, true);
  for (int32_t i = 0; i < routing.n_groups_used; ++i) {
    int32_t best = -1;
    for (int32_t g = 0; g < routing.n_groups; ++g) {
      if (of.taken[g * size] && (best < 0 || of.chosen[g] > of.chosen[best])) best = g;
    }
    std::fill_n(of.taken + best * size, size, false);
  }
}

void route_row(const RouteKernels& kernels, const Routing& routing, const float* logits,
               const float* bias, const Scratch& of, int32_t* y) noexcept {
  const int32_t n = routing.n_experts;
  const bool raw = routing.gating == Gating::kSoftmaxChosen;
  if (routing.gating == Gating::kSoftmax) {
    softmax(kernels, logits, of.p, n);
  } else if (routing.gating == Gating::kSigmoid) {
    kernels.sigmoids(logits, of.p, n);
  } else if (routing.gating == Gating::kRootSoftplus) {
    kernels.softpluses(logits, of.p, n);
    for (int32_t e = 0; e < n; ++e) of.p[e] = std::sqrt(of.p[e]);
  }
  const float* const p = raw ? logits : of.p;
  // Logits may differ where rounding has made p equal.
  const bool by_logits = bias == nullptr && routing.n_groups == 1;
  for (int32_t e = 0; e < n; ++e) {
    const float score = by_logits ? logits[e] : bias != nullptr ? p[e] + bias[e] : p[e];
    of.score[e] = std::isnan(score) ? kLowest : score;
    of.taken[e] = false;
  }
  if (routing.n_groups > 1) take_groups(routing, of);
  for (int32_t s = 0; s < routing.n_used; ++s) {
    y[s] = best_of(of, 0, n);
    of.taken[y[s]] = true;
    of.chosen[s] = p[y[s]];
  }
  if (raw) softmax(kernels, of.chosen, of.chosen, routing.n_used);
  if (routing.normalise) {
    float sum = 0.0F;
    for (int32_t s = 0; s < routing.n_used; ++s) sum += of.chosen[s];
    sum = sum < kLeastWeightSum ? kLeastWeightSum : sum;
    for (int32_t s = 0; s < routing.n_used; ++s) of.chosen[s] /= sum;
  }
  for (int32_t s = 0; s < routing.n_used; ++s) {
    y[routing.n_used + s] = std::bit_cast<int32_t>(of.chosen[s] * routing.scale);
  }
}

}  // namespace

const RouteKernels* route_kernels(CpuLevel level) noexcept { return GEN_LANES_PICK(level, kRoute); }

Status run(CpuContext& context, const RouteArgs& args) {
  const int64_t rows = args.y.rows;
  const int64_t work = int64_t{args.routing.n_experts} * (args.routing.n_used + 8);
  const int32_t threads = threads_for_rows(context, rows, work);
  Carver counter(nullptr);
  carve(counter, args.routing);
  std::byte* memory = nullptr;
  GEN_TRY(context.stream.scratch(static_cast<size_t>(threads) * counter.used(), &memory));
  if (context.dry_run) return {};
  const ConstRows logits = context.at(args.logits);
  const float* const bias = context.at(args.bias);
  int32_t* const y = context.at(args.y.data);
  parallel_rows(context, rows, work, [&](int64_t begin, int64_t end, int32_t index) {
    Carver carver(memory + static_cast<size_t>(index) * counter.used());
    const Scratch scratch = carve(carver, args.routing);
    for (int64_t t = begin; t < end; ++t) {
      route_row(*context.kernels.route, args.routing, logits.row(t), bias, scratch,
                y + t * args.y.stride);
    }
  });
  return {};
}

Status run(CpuContext& context, const CombineArgs& args) {
  if (context.dry_run) return {};
  const RouteKernels& kernels = *context.kernels.route;
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const int32_t* const routes = context.at(args.routes.data);
  const int64_t used = args.routes.n_used;
  parallel_rows(context, y.rows, y.cols * used, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* const weights = routes + t * args.routes.stride + used;
      kernels.scale(x.row(t * used), std::bit_cast<float>(weights[0]), y.row(t), y.cols);
      for (int64_t s = 1; s < used; ++s) {
        kernels.add_scaled(x.row(t * used + s), std::bit_cast<float>(weights[s]), y.row(t), y.cols);
      }
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// route and combine. A block is a row of logits: its threads compute exponentials, then one of them
// adds and chooses in the order of the experts, with the bits of the CPU engine. A thread of
// combine is an element.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 64;
constexpr int32_t kCombineThreads = 256;

struct RoutesView {
  const int32_t* words;
  int64_t stride;
  int32_t used;
};
RoutesView routes_view(const engine::ConstRoutes& of) noexcept {
  return {pointer(of.data), of.stride, of.n_used};
}

/// Shared memory of a row's choice.
struct Choice {
  Shared<float> p;
  Shared<float> score;
  Shared<float> groups;
  Shared<int32_t> taken;

  /// The best in [begin, end) that is not taken, the lowest among equal ones; -1 if all are taken.
  [[nodiscard]] GEN_DEVICE int32_t best(int32_t begin, int32_t end) const {
    int32_t found = -1;
    float most = 0.0F;
    for (int32_t e = begin; e < end; ++e) {
      if (taken[e] != 0) continue;
      const float here = score[e];
      if (found >= 0 && !(here > most)) continue;
      found = e;
      most = here;
    }
    return found;
  }
  /// Marks the experts of all groups but the best as taken.
  GEN_DEVICE void take_groups(const engine::Routing& routing) const {
    const int32_t size = routing.n_experts / routing.n_groups;
    for (int32_t g = 0; g < routing.n_groups; ++g) {
      const int32_t first = best(g * size, (g + 1) * size);
      taken[first] = 1;
      const int32_t second = best(g * size, (g + 1) * size);
      taken[first] = 0;
      float sum = score[first];
      if (second >= 0) sum = sum + score[second];
      groups[g] = sum;
    }
    for (int32_t e = 0; e < routing.n_experts; ++e) taken[e] = 1;
    for (int32_t i = 0; i < routing.n_groups_used; ++i) {
      int32_t found = -1;
      float most = 0.0F;
      for (int32_t g = 0; g < routing.n_groups; ++g) {
        if (taken[g * size] == 0) continue;
        const float here = groups[g];
        if (found >= 0 && !(here > most)) continue;
        found = g;
        most = here;
      }
      for (int32_t e = found * size; e < (found + 1) * size; ++e) taken[e] = 0;
    }
  }
};

GEN_DEVICE float weight_at(const int32_t* words, int32_t i) {
  return float_from_bits(static_cast<uint32_t>(words[i]));
}
GEN_DEVICE int32_t word_of(float weight) { return static_cast<int32_t>(float_bits(weight)); }

/// The softmax of the n weights.
GEN_DEVICE void softmax(int32_t* weights, int32_t n) {
  float most = minus_infinity();
  for (int32_t i = 0; i < n; ++i) most = max_of(weight_at(weights, i), most);
  float sum = 0.0F;
  for (int32_t i = 0; i < n; ++i) {
    const float one = exp_of(weight_at(weights, i) - most);
    weights[i] = word_of(one);
    sum = sum + one;
  }
  for (int32_t i = 0; i < n; ++i) weights[i] = word_of(weight_at(weights, i) / sum);
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    route_kernel(ConstRowsView logits, const float* bias, engine::Routing routing, int32_t* routes,
                 int64_t stride) {
  after_predecessor();
  const int32_t n = routing.n_experts;
  const int32_t used = routing.n_used;
  const auto count = static_cast<size_t>(n);
  const Choice choice = {dynamic_shared<float>(0, count),
                         dynamic_shared<float>(count * sizeof(float), count),
                         dynamic_shared<float>(2 * count * sizeof(float), count),
                         dynamic_shared<int32_t>(3 * count * sizeof(float), count)};
  const float* const x = logits.data + int64_t{block_x()} * logits.stride;
  GEN_SHARED(float, ends, 2);  // the largest logit, the sum of all terms
  if (thread_x() == 0) {
    float most = minus_infinity();
    for (int32_t e = 0; e < n; ++e) most = max_of(x[e], most);
    ends[0] = most;
  }
  sync_threads();
  for (int32_t e = thread_x(); e < n; e += kThreads) {
    float p = x[e];
    if (routing.gating == engine::Gating::kSoftmax) p = exp_of(p - ends[0]);
    if (routing.gating == engine::Gating::kSigmoid) p = 1.0F / (1.0F + exp_of(0.0F - p));
    if (routing.gating == engine::Gating::kRootSoftplus) p = device::square_root(softplus(p));
    choice.p[e] = p;
  }
  sync_threads();
  if (routing.gating == engine::Gating::kSoftmax) {
    if (thread_x() == 0) {
      float sum = 0.0F;
      for (int32_t e = 0; e < n; ++e) sum = sum + choice.p[e];
      ends[1] = sum;
    }
    sync_threads();
  }
  const bool by_logits = bias == nullptr && routing.n_groups == 1;
  for (int32_t e = thread_x(); e < n; e += kThreads) {
    float p = choice.p[e];
    if (routing.gating == engine::Gating::kSoftmax) p = p / ends[1];
    choice.p[e] = p;
    float score = p;
    if (by_logits) score = x[e];
    if (bias != nullptr) score = score + bias[e];
    choice.score[e] = score == score ? score : minus_infinity();
    choice.taken[e] = 0;
  }
  sync_threads();
  if (thread_x() != 0) return;
  int32_t* const y = routes + int64_t{block_x()} * stride;
  if (routing.n_groups > 1) choice.take_groups(routing);
  for (int32_t s = 0; s < used; ++s) {
    const int32_t e = choice.best(0, n);
    choice.taken[e] = 1;
    y[s] = e;
    y[used + s] = word_of(choice.p[e]);
  }
  int32_t* const weights = y + used;
  if (routing.gating == engine::Gating::kSoftmaxChosen) softmax(weights, used);
  if (routing.normalise) {
    float sum = 0.0F;
    for (int32_t s = 0; s < used; ++s) sum = sum + weight_at(weights, s);
    sum = sum < engine::kLeastWeightSum ? engine::kLeastWeightSum : sum;
    for (int32_t s = 0; s < used; ++s) weights[s] = word_of(weight_at(weights, s) / sum);
  }
  for (int32_t s = 0; s < used; ++s) {
    weights[s] = word_of(weight_at(weights, s) * routing.scale);
  }
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kCombineThreads)
    combine_kernel(ConstRowsView x, RoutesView routes, RowsView y) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kCombineThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t t = i / y.cols;
  const int64_t d = i % y.cols;
  const int32_t* const weights = routes.words + t * routes.stride + routes.used;
  const float* const first = x.data + t * routes.used * x.stride + d;
  float sum = weight_at(weights, 0) * first[0];
  for (int32_t s = 1; s < routes.used; ++s) {
    sum = sum + weight_at(weights, s) * first[s * x.stride];
  }
  y.data[t * y.stride + d] = sum;
}

}  // namespace

Status run(const OpContext& context, const engine::RouteArgs& args) {
  const size_t shared = static_cast<size_t>(args.routing.n_experts) * 4 * sizeof(float);
  return run_kernel(context, "route", route_kernel, {static_cast<unsigned>(args.y.rows), 1, 1},
                    kThreads, shared, view(args.logits), pointer(args.bias), args.routing,
                    pointer(args.y.data), args.y.stride);
}

Status run(const OpContext& context, const engine::CombineArgs& args) {
  return run_kernel(context, "combine", combine_kernel,
                    grid_of(args.y.rows * args.y.cols, kCombineThreads), kCombineThreads, 0,
                    view(args.x), routes_view(args.routes), view(args.y));
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// best: tokens[t, :] are the k tokens with the largest logits of row t after edits and mask, of
// equal ones the lower first (engine/ops.h). A block is a row. One pass looks for what is not a
// number or +inf; then each of the k is the largest that comes after the one before it in that
// order, a pass and a tree of comparisons each, so no list is kept and the order of threads does
// not show.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
constexpr int32_t kNone = 0x7FFFFFFF;

/// Whether (value, token) goes before (other, its token).
GEN_DEVICE bool goes_before(float value, int32_t token, float other, int32_t other_token) {
  if (token == kNone) return false;
  if (other_token == kNone) return true;
  return value > other || (value == other && token < other_token);
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1) best_kernel(RowsView x, const engine::BestRow* rows,
                                                      int32_t k, int32_t* tokens, float* values) {
  after_predecessor();
  GEN_SHARED(float, best_value, kThreads);
  GEN_SHARED(int32_t, best_token, kThreads);
  const int64_t t = block_x();
  float* const row = x.data + t * x.stride;
  const auto cols = static_cast<int32_t>(x.cols);
  // The first logit that is none.
  int32_t bad = kNone;
  for (int32_t i = thread_x(); i < cols && bad == kNone; i += kThreads) {
    if (!(row[i] < float_from_bits(0x7F800000U))) bad = i;
  }
  best_token[thread_x()] = bad;
  sync_threads();
  for (int32_t half = kThreads / 2; half > 0; half /= 2) {
    if (thread_x() < half) {
      const int32_t other = best_token[thread_x() + half];
      const int32_t own = best_token[thread_x()];
      best_token[thread_x()] = other < own ? other : own;
    }
    sync_threads();
  }
  bad = best_token[0];
  sync_threads();
  if (bad != kNone) {
    for (int32_t i = thread_x(); i < k; i += kThreads) {
      tokens[t * k + i] = -1 - bad;
      values[t * k + i] = row[bad];
    }
    return;
  }
  const uint32_t* mask = nullptr;
  int32_t mask_words = 0;
  if (rows != nullptr) {
    const engine::BestRow& with = rows[t];
    mask = at(with.mask);
    mask_words = with.mask_words;
    const engine::LogitEdit* const edits = at(with.edits);
    // In order, since several may be of one token.
    for (int32_t i = 0; thread_x() == 0 && i < with.n_edits; ++i) {
      row[edits[i].token] += edits[i].add;
    }
  }
  sync_threads();
  float last_value = 0.0F;
  int32_t last = kNone;
  for (int32_t n = 0; n < k; ++n) {
    float value = 0.0F;
    int32_t token = kNone;
    for (int32_t i = thread_x(); i < cols; i += kThreads) {
      const bool allowed =
          mask == nullptr || (i / 32 < mask_words && (mask[i / 32] >> (i % 32) & 1U) != 0);
      const float logit = allowed ? row[i] : minus_infinity();
      const bool after = last == kNone || goes_before(last_value, last, logit, i);
      if (after && goes_before(logit, i, value, token)) {
        value = logit;
        token = i;
      }
    }
    best_value[thread_x()] = value;
    best_token[thread_x()] = token;
    sync_threads();
    for (int32_t half = kThreads / 2; half > 0; half /= 2) {
      if (thread_x() < half) {
        const float other = best_value[thread_x() + half];
        const int32_t other_token = best_token[thread_x() + half];
        if (goes_before(other, other_token, best_value[thread_x()], best_token[thread_x()])) {
          best_value[thread_x()] = other;
          best_token[thread_x()] = other_token;
        }
      }
      sync_threads();
    }
    last_value = best_value[0];
    last = best_token[0];
    sync_threads();
    if (thread_x() == 0) {
      tokens[t * k + n] = last == kNone ? 0 : last;
      values[t * k + n] = last == kNone ? minus_infinity() : last_value;
    }
  }
}

}  // namespace

Status run(const OpContext& context, const engine::BestArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "best", best_kernel, grid, kThreads, 0, view(args.x),
                    pointer(args.rows), args.k, pointer(args.tokens), pointer(args.values));
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// best: tokens[t, :] are the k tokens with the largest logits of row t after edits and mask, of
// equal ones the lower first (engine/ops.h). A block is a row. One pass looks for what is not a
// number or +inf; then each of the k is the largest that comes after the one before it in that
// order, a pass and a tree of comparisons each, so no list is kept and the order of threads does
// not show. That is for one; a few more have a kernel of their own (best_many.cu), and more than
// that nobody has asked for yet.
#include "cuda/ops/best.cuh"
#include "cuda/ops/best_many.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1) best_kernel(RowsView x, const engine::BestRow* rows,
                                                      int32_t k, int32_t* tokens, float* values) {
  after_predecessor();
  GEN_SHARED(float, best_value, kThreads);
  GEN_SHARED(int32_t, best_token, kThreads);
  const int64_t t = block_x();
  LogitRow row = {x.data + t * x.stride, static_cast<int32_t>(x.cols)};
  const int32_t bad = first_bad(row, best_token, kThreads);
  if (bad != kNoToken) {
    report_bad(row, bad, k, kThreads, tokens + t * k, values + t * k);
    return;
  }
  apply(rows != nullptr ? rows + t : nullptr, &row);
  float last_value = 0.0F;
  int32_t last = kNoToken;
  for (int32_t n = 0; n < k; ++n) {
    float value = 0.0F;
    int32_t token = kNoToken;
    for (int32_t i = thread_x(); i < row.cols; i += kThreads) {
      const float logit = row.at(i);
      const bool after = last == kNoToken || goes_before(last_value, last, logit, i);
      if (after && goes_before(logit, i, value, token)) {
        value = logit;
        token = i;
      }
    }
    best_of_block(best_value, best_token, kThreads, value, token);
    last_value = best_value[0];
    last = best_token[0];
    sync_threads();
    if (thread_x() == 0) {
      tokens[t * k + n] = last == kNoToken ? 0 : last;
      values[t * k + n] = last == kNoToken ? minus_infinity() : last_value;
    }
  }
}

}  // namespace

Status run(const OpContext& context, const engine::BestArgs& args) {
  if (args.k > 1 && args.k <= kBestMany) return best_many(context, args);
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "best", best_kernel, grid, kThreads, 0, view(args.x),
                    pointer(args.rows), args.k, pointer(args.tokens), pointer(args.values));
}

}  // namespace gen::cuda

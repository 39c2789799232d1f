// SPDX-License-Identifier: Apache-2.0
// best: tokens[t, :] are the k tokens with the largest logits of row t of those that are allowed
// and not aside, the lower first among equal logits (engine/ops.h). A row is divided into parts of
// 2048 tokens, a block each; another kernel takes the best of the parts. Logit and token are
// combined into one number, so no two are equal, and the result does not depend on the order of
// threads and parts. This file has the kernels for k = 1 and those shared by all k. best_many.cu
// has kernels for k up to 128. Larger k, which is rare, searches once for each token, for the
// largest after the one before.
//   Bytes   a row once; twice if tokens may be aside, since a row with a NaN must not be changed
#include "cuda/ops/logits/best.cuh"

#include "cuda/ops/logits/best_many.h"
#include "cuda/ops/logits/mass.h"

namespace gen::cuda {
namespace {

constexpr int32_t kWarps = kPartWarps;
constexpr int32_t kThreads = 32 * kWarps;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) best_bad_kernel(RowsView x, BestParts parts) {
  after_predecessor();
  find_bad(x, parts, block_y(), block_x());
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    best_part_kernel(RowsView x, const engine::BestRow* rows, BestParts parts) {
  after_predecessor();
  find_best(x, rows, parts, block_y(), block_x());
}

constexpr int32_t kMergeThreads = 64;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kMergeThreads)
    best_merge_kernel(RowsView x, const engine::BestRow* rows, BestParts parts, int32_t* tokens,
                      float* values) {
  after_predecessor();
  merge_best<kMergeThreads / 32>(x, rows, parts, block_x(), tokens, values);
}

/// Any k: one pass for each token. A block is a row.
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1)
    best_all_kernel(RowsView x, const engine::BestRow* rows, int32_t k, int32_t* tokens,
                    float* values) {
  after_predecessor();
  GEN_SHARED(int32_t, each, kWarps);
  GEN_SHARED(uint64_t, ranks, kWarps);
  const int64_t t = block_x();
  LogitRow row = {x.data + t * x.stride, 0, static_cast<int32_t>(x.cols)};
  const int32_t bad = first_bad(row, each);
  if (bad != kNoToken) {
    report_bad(row.logits, bad, k, tokens + t * k, values + t * k);
    return;
  }
  if (rows != nullptr) apply(rows[t], &row);
  sync_threads();
  uint64_t last = ~uint64_t{0};
  for (int32_t n = 0; n < k; ++n) {
    uint64_t rank = 0;
    for (int32_t i = thread_x(); i < row.to; i += kThreads) {
      const uint64_t own = rank_of(row.at(i), i);
      if (own < last && own > rank) rank = own;
    }
    rank = largest_of_warp_rank(rank);
    if (lane_of_warp() == 0) ranks[warp_of_block()] = rank;
    sync_threads();
    last = 0;
    for (int32_t i = 0; i < kWarps; ++i) {
      const uint64_t other = ranks[i];
      last = other > last ? other : last;
    }
    sync_threads();
    if (thread_x() == 0) {
      const int32_t token = token_of(last);
      tokens[t * k + n] = token;
      values[t * k + n] = row.at(token);
    }
  }
}

}  // namespace

Status begin_parts(const OpContext& context, const engine::BestArgs& args, BestParts* parts) {
  parts->parts = parts_of(args.x.cols);
  const auto all = static_cast<size_t>(args.x.rows) * static_cast<size_t>(parts->parts);
  const size_t ranks = all * static_cast<size_t>(args.k) * sizeof(uint64_t);
  uint8_t* scratch = nullptr;
  GEN_TRY(context.scratch->take_scratch(ranks + all * sizeof(int32_t), &scratch));
  parts->ranks = reinterpret_cast<uint64_t*>(scratch);
  parts->bads = reinterpret_cast<int32_t*>(scratch + ranks);
  if (!args.rows) return {};
  const device::Dim3 grid = {static_cast<unsigned>(parts->parts),
                             static_cast<unsigned>(args.x.rows), 1};
  return run_kernel(context, "best_bad", best_bad_kernel, grid, kThreads, 0, view(args.x), *parts);
}

namespace {

Status find_best(const OpContext& context, const engine::BestArgs& args) {
  const auto rows = static_cast<unsigned>(args.x.rows);
  if (args.k > kBestMany) {
    return run_kernel(context, "best", best_all_kernel, {rows, 1, 1}, kThreads, 0, view(args.x),
                      pointer(args.rows), args.k, pointer(args.tokens), pointer(args.values));
  }
  BestParts parts = {};
  GEN_TRY(begin_parts(context, args, &parts));
  if (args.k > 1) return best_many(context, args, parts);
  const device::Dim3 grid = {static_cast<unsigned>(parts.parts), rows, 1};
  GEN_TRY(run_kernel(context, "best_part", best_part_kernel, grid, kThreads, 0, view(args.x),
                     pointer(args.rows), parts));
  return run_kernel(context, "best_merge", best_merge_kernel, {rows, 1, 1}, kMergeThreads, 0,
                    view(args.x), pointer(args.rows), parts, pointer(args.tokens),
                    pointer(args.values));
}

}  // namespace

Status run(const OpContext& context, const engine::BestArgs& args) {
  if (args.x.rows == 0) return {};
  GEN_TRY(find_best(context, args));
  return args.mass ? weigh(context, args) : Status();
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// rope_append: normalises and rotates heads of q in place, and heads of k for the key form of the
// cache; stores k and v in any format, byte for byte as the CPU.
//   A block is a row of the batch and four heads of q, or all of k or of v. It looks up the row's
//   sequence in the records of the step while its heads are being loaded. A warp processes a head
//   at a time: squares over sixteen virtual lanes, rotation with separate multiplications and
//   additions, Hadamard butterflies.
//   Many rows whose heads are only rotated have a kernel of their own: a block is a row, a thread
//   some pairs, without shared memory.
//   Shared memory: the row of k or v, or a head of q for each warp; for q3 what the fit needs.
#include "cuda/ops/sequence/rope_append.cuh"

#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1) rope_append_kernel(AppendView of, int32_t q_blocks) {
  after_predecessor();
  const int64_t t = block_x();
  if (block_y() < q_blocks) {
    rope_query(of, t, block_y() * kWarps + warp_of_block());
  } else {
    append_side(of, t, block_y() == q_blocks);
  }
}

/// The number of rows from which on that kernel is used.
constexpr int64_t kManyRows = 16;
constexpr int32_t kRotateThreads = 256;
constexpr int32_t kPairs = 4;  // of a thread, at once

GEN_KERNEL GEN_LAUNCH_BOUNDS(kRotateThreads) rotate_queries_kernel(AppendView of) {
  after_predecessor();
  const int64_t t = block_x();
  if (sequence_of(of.sequences, of.n_sequences, static_cast<int32_t>(t)) < 0) return;
  const bool adjacent = of.rope == engine::RopeKind::kAdjacent;
  const int32_t pairs = of.rope_dims / 2;
  const int32_t all = of.n_heads * pairs;
  const int32_t apart = adjacent ? 1 : pairs;
  const float* const cs = of.cs.data + t * of.cs.stride;
  float* const row = of.q.data + t * of.q.stride;
  for (int32_t begin = thread_x(); begin < all; begin += kPairs * kRotateThreads) {
    float* at[kPairs] = {};
    float x[kPairs] = {};
    float y[kPairs] = {};
    float cosine[kPairs] = {};
    float sine[kPairs] = {};
    GEN_UNROLL
    for (int32_t k = 0; k < kPairs; ++k) {
      const int32_t i = begin + k * kRotateThreads;
      if (i >= all) continue;
      const int32_t pair = i % pairs;
      at[k] = row + int64_t{i / pairs} * of.k_dim + (adjacent ? 2 * pair : pair);
      x[k] = at[k][0];
      y[k] = at[k][apart];
      cosine[k] = cs[2 * pair];
      sine[k] = cs[2 * pair + 1];
    }
    GEN_UNROLL
    for (int32_t k = 0; k < kPairs; ++k) {
      if (at[k] == nullptr) continue;
      at[k][0] = x[k] * cosine[k] - y[k] * sine[k];
      at[k][apart] = x[k] * sine[k] + y[k] * cosine[k];
    }
  }
}

bool rotates_only(const AppendView& of) noexcept {
  return of.q_norm == nullptr && of.rope != engine::RopeKind::kNone && of.rope_dims >= 2 &&
         of.layer.key_form != engine::KeyForm::kHadamard;
}

}  // namespace

Status run(const OpContext& context, const engine::RopeAppendArgs& args) {
  AppendView of = append_view(args);
  const size_t shared = append_shared(&of, 0, kWarps);
  int32_t q_blocks = (args.n_heads + kWarps - 1) / kWarps;
  if (args.q.rows >= kManyRows && rotates_only(of)) {
    GEN_TRY(run_kernel(context, "rotate_queries", rotate_queries_kernel,
                       {static_cast<unsigned>(args.q.rows), 1, 1}, kRotateThreads, 0, of));
    q_blocks = 0;
  }
  const device::Dim3 grid = {static_cast<unsigned>(args.q.rows),
                             static_cast<unsigned>(q_blocks + (args.k.data ? 2 : 0)), 1};
  return run_kernel(context, "rope_append", rope_append_kernel, grid, kThreads, shared, of,
                    q_blocks);
}

}  // namespace gen::cuda

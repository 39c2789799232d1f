// SPDX-License-Identifier: Apache-2.0
// rope_append: normalises and rotates heads of q in place, and of k on their way into the cache, as
// its key form wants them; stores k and v as an entry of every format, byte for byte as the CPU.
//   A block is a row of the batch and four heads of q, or all of k or of v; it finds the row's
//   sequence among the records of the step, while what it turns is on its way. A warp works on a
//   head at a time: squares over sixteen virtual lanes, rotation with separate multiplications and
//   additions, Hadamard butterflies.
//   Shared memory: the row of k or v, or a head of q for each warp; for q3 what the fit needs.
#include "cuda/ops/rope_append.cuh"

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

}  // namespace

Status run(const OpContext& context, const engine::RopeAppendArgs& args) {
  if (args.layer.key_form == engine::KeyForm::kUnrotated) {
    return error(Code::kUnsupported, "the cuda engine does not store keys of form %d",
                 static_cast<int>(args.layer.key_form));
  }
  AppendView of = append_view(args);
  const size_t shared = append_shared(&of, 0, kWarps);
  const int32_t q_blocks = (args.n_heads + kWarps - 1) / kWarps;
  const device::Dim3 grid = {static_cast<unsigned>(args.q.rows),
                             static_cast<unsigned>(q_blocks + (args.k.data ? 2 : 0)), 1};
  return run_kernel(context, "rope_append", rope_append_kernel, grid, kThreads, shared, of,
                    q_blocks);
}

}  // namespace gen::cuda

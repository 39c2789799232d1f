// SPDX-License-Identifier: Apache-2.0
// attention for a few rows with long contexts: each chunk of 256 positions has a block of its own.
//   partial[t, h, c] = (max, sum of weights, sum of weights times values) over chunk c of row t
//   out[t, h, :] = the partials of t and h, merged in the order of chunks
//   The operations and their order are those of attention.cu, where one block processes all chunks,
//   so both give the same bits. Nothing depends on the batch.
//
//   attention_split
//           For formats with scales or codes; float32 and float16 use attention_plain.cu. A block
//           is a chunk, a kv head, and up to eight of the query heads that share it, of one row.
//           Blocks beyond a row's last chunk exit at once, so the host needs only an upper bound on
//           their number. For the dot products a thread is a slot: an element of a key is read once
//           for all heads. Then a warp is a head for maximum, weights and sum, and a thread is an
//           element of the values for some of the heads.
//   attention_merge
//           A block is a row and a query head.
//   Bytes   keys and values once for every eight query heads of a group, and 4 (D + 2) bytes for
//           each partial, written and read: 1 in 64 of float16 keys and values of one query head.
//   Shared  q of eight heads, 14 KiB for scores and places.
#include "cuda/ops/attention/attention_chunk.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kMergeThreads = 128;
constexpr size_t kMaxScratch = size_t{64} << 20;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kSplitThreads) attention_split_kernel(SplitView view) {
  after_predecessor();
  attention_chunk(view, block_z(), block_x(), kSplitHeads, block_y());
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kMergeThreads) attention_merge_kernel(SplitView view) {
  after_predecessor();
  const int64_t t = block_x();
  RowWalk walk;
  int32_t s = 0;
  if (!begin_walk(view.of, t, &walk, &s)) return;
  const int32_t n = walk.n_chunks();
  for (int32_t d = thread_x(); d < view.of.v_dim; d += kMergeThreads) {
    merge_element<16>(view, t, block_y(), n, d);
  }
}

}  // namespace

int32_t attention_slots(const OpContext& context, const AttentionView& of, int32_t chunks) {
  if (chunks < 1 || of.n_kv_heads == 0) return 0;
  const bool plain = attention_plain_can(context, of);
  if (chunks < 2 && !plain) return 0;
  // Not if the rows fill the device without splitting, or if a sequence has enough rows for the
  // tile kernels, which share reads.
  const bool shared = of.q.rows > of.n_sequences;
  if (of.q.rows * of.n_kv_heads > 2 * int64_t{context.processors} && (shared || !plain)) return 0;
  const size_t bytes = static_cast<size_t>(of.q.rows) * static_cast<size_t>(of.n_heads) *
                       static_cast<size_t>(chunks) * static_cast<size_t>(of.v_dim + 2) *
                       sizeof(float);
  return bytes <= kMaxScratch ? chunks : 0;
}

Status attention_split(const OpContext& context, const AttentionView& of, int32_t slots,
                       const AppendView* append) {
  SplitView view = {of, nullptr, slots};
  const bool plain = attention_plain_can(context, of);
  if (plain && slots == 1) return attention_plain(context, view, append);
  uint8_t* scratch = nullptr;
  const auto partials = static_cast<size_t>(of.q.rows) * static_cast<size_t>(of.n_heads * slots);
  GEN_TRY(context.scratch->take_scratch(
      partials * static_cast<size_t>(view.partial_floats()) * sizeof(float), &scratch));
  view.partials = reinterpret_cast<float*>(scratch);
  const device::Dim3 merges = {static_cast<unsigned>(of.q.rows), static_cast<unsigned>(of.n_heads),
                               1};
  if (plain) {
    const bool at_once = attention_plain_merges(context, view);
    if (at_once) view.counters = context.scratch->counters();
    GEN_TRY(attention_plain(context, view, append));
    if (at_once) return {};
    return run_kernel(context, "attention_merge", attention_merge_kernel, merges, kMergeThreads, 0,
                      view);
  }
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t batches = (group + kSplitHeads - 1) / kSplitHeads;
  const device::Dim3 grid = {static_cast<unsigned>(slots),
                             static_cast<unsigned>(of.n_kv_heads * batches),
                             static_cast<unsigned>(of.q.rows)};
  const size_t shared = split_shared(group < kSplitHeads ? group : kSplitHeads, of.k_dim);
  GEN_TRY(run_kernel(context, "attention_split", attention_split_kernel, grid, kSplitThreads,
                     shared, view));
  return run_kernel(context, "attention_merge", attention_merge_kernel, merges, kMergeThreads, 0,
                    view);
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// attention_split of attention_split.cu for keys and values in float32 and float16: the same
// partials in the same order of operations, so the same bits.
//
//   Work    A block is a chunk, a head of keys, and two, four or eight of the query heads that
//           share it, of one row. Keys and values are staged in shared memory in their stored form
//           (attention_stage.cuh), four pieces ahead. For the dot products of all heads a thread
//           has two adjacent slots (one if values have more than 128 elements); for maximum,
//           weights and sum a warp is a head; for the values a thread is an element for some of the
//           heads. With one chunk the block writes the result; with few chunks the last block to
//           finish merges the partials of its heads.
//   Bytes   keys and values once for the heads of a block.
//   Shared  42.5 KiB of pieces (more where 16 values are more than 8.5 KiB), 1 KiB of weights and
//           up to 1 KiB of q for each head: four blocks per multiprocessor of 228 KiB, so that some
//           compute while others wait for memory.
//   Append  The same kernel can also rotate and store the row: attention_append.cuh.
//   Bound   Of 12 instructions for an element of the keys of two slots and four heads 8 are
//           multiply-adds, of 7 for an element of a value 4.
#include <algorithm>

#include "cuda/ops/attention/attention_append.cuh"
#include "cuda/ops/attention/attention_merged.cuh"

namespace gen::cuda {
namespace {

using device::UInt2;
using device::UInt4;

constexpr int32_t kStages = 5;
constexpr int32_t kMaxDim = 256;
constexpr int32_t kFewThreads = 128;  // for values of up to 128 elements

/// Bytes of the pieces, the weights and the queries.
constexpr size_t plain_shared(int32_t k_dim, int32_t heads, size_t piece) noexcept {
  return kStages * piece + static_cast<size_t>((kChunk + k_dim) * heads) * sizeof(float);
}

/// A thread's weights of a slot: those of kOwn of the kHeads heads.
template <int32_t kOwn>
GEN_DEVICE void load_weights(const Shared<float>& weights, int32_t at,
                             float (&own)[static_cast<size_t>(kOwn)]) {
  if constexpr (kOwn >= 4) {
    GEN_UNROLL
    for (int32_t i = 0; i < kOwn; i += 4) {
      const UInt4 four = weights.as<UInt4>()[(at + i) / 4];
      own[i] = float_from_bits(four.x);
      own[i + 1] = float_from_bits(four.y);
      own[i + 2] = float_from_bits(four.z);
      own[i + 3] = float_from_bits(four.w);
    }
  } else if constexpr (kOwn == 2) {
    const UInt2 two = weights.as<UInt2>()[at / 2];
    own[0] = float_from_bits(two.x);
    own[1] = float_from_bits(two.y);
  } else {
    own[0] = weights[at];
  }
}

/// The keys of a thread's slots, of one element.
template <typename T>
GEN_DEVICE void keys_at(const Shared<T>& keys, int32_t d, float (&own)[1]) {
  const T bits = keys[d * kKeyStride + thread_x()];
  own[0] = widened<T>(bits);
}
template <typename T>
GEN_DEVICE void keys_at(const Shared<T>& keys, int32_t d, float (&own)[2]) {
  two_at(keys, d * (kKeyStride / 2) + thread_x(), &own[0], &own[1]);
}

/// Adds n elements of the keys, from `first` on, times those of kHeads queries.
template <typename T, int32_t kHeads, size_t kSlots>
GEN_DEVICE void add_keys(const Shared<float>& q, const Shared<T>& keys, int32_t first, int32_t n,
                         float (&scores)[kSlots][static_cast<size_t>(kHeads)]) {
  const auto add = [&](int32_t d) {
    float key[kSlots];
    keys_at(keys, d, key);
    float query[static_cast<size_t>(kHeads)];
    load_weights<kHeads>(q, (first + d) * kHeads, query);
    GEN_UNROLL
    for (int32_t h = 0; h < kHeads; ++h) {
      GEN_UNROLL
      for (size_t i = 0; i < kSlots; ++i) {
        scores[i][h] = multiply_add(query[h], key[i], scores[i][h]);
      }
    }
  };
  constexpr int32_t kElements = piece_elements<T>();
  if (n == kElements) {
    GEN_UNROLL
    for (int32_t d = 0; d < kElements; ++d) add(d);
  } else {
    GEN_NO_UNROLL
    for (int32_t d = 0; d < n; ++d) add(d);
  }
}

/// Adds element d of the values of slots [from, to), times the weights of kOwn heads from `head`
/// on; slot `first` is the piece's first.
template <typename T, int32_t kHeads, int32_t kOwn>
GEN_DEVICE void add_values(const Shared<float>& weights, const Shared<T>& values, int32_t first,
                           const Slots& seen, int32_t dim, int32_t d, int32_t head,
                           float (&sums)[static_cast<size_t>(kHeads)]) {
  const auto add = [&](int32_t slot) {
    const T bits = values[(slot - first) * dim + d];
    const float value = widened<T>(bits);
    float own[static_cast<size_t>(kOwn)];
    load_weights<kOwn>(weights, slot * kHeads + head, own);
    GEN_UNROLL
    for (int32_t k = 0; k < kOwn; ++k) sums[k] = multiply_add(own[k], value, sums[k]);
  };
  constexpr int32_t kAtOnce = 8;
  int32_t slot = seen.from;
  for (; slot + kAtOnce <= seen.to; slot += kAtOnce) {
    GEN_UNROLL
    for (int32_t i = 0; i < kAtOnce; ++i) add(slot + i);
  }
  GEN_NO_UNROLL
  for (; slot < seen.to; ++slot) add(slot);
}

/// If `append` is set, the row has neither been rotated nor stored. This is tested outside of all
/// loops, so it needs no separate kernel.
template <typename T, int32_t kHeads, int32_t kThreads>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, kThreads == kFewThreads ? 4 : 2)
    attention_plain_kernel(SplitView view, AppendView append) {
  constexpr int32_t kWarps = kThreads / 32;
  constexpr auto kSlots = static_cast<size_t>(kChunk / kThreads);  // of a thread
  after_predecessor();
  GEN_SHARED(uint64_t, tiles, 2 * kChunkTiles);
  GEN_SHARED(float, results, 2 * kHeads);
  const AttentionView& of = view.of;
  const int64_t t = block_z();
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t batches = (group + kHeads - 1) / kHeads;
  const int32_t kv_head = block_y() / batches;
  const int32_t within = block_y() % batches * kHeads;
  const int32_t n = group - within < kHeads ? group - within : kHeads;
  const int32_t first_head = kv_head * group + within;
  const size_t piece = piece_bytes(of.v_dim, sizeof(T));
  const bool appends = append.q.data != nullptr;
  const OwnRow<T, kHeads, kWarps> own_row(append, appends, t, kv_head, first_head, n,
                                          plain_shared(of.k_dim, kHeads, piece));
  RowWalk walk;
  int32_t s = 0;
  if (!begin_walk(of, t, &walk, &s)) return;
  int32_t base = 0;
  Slots seen = {};
  if (!walk.chunk_at(block_x(), &base, &seen.from, &seen.to)) return;
  const engine::KvRows& rows = of.sequences[s];
  // The own entry is the last one of a row; it may not be stored yet, unlike all others.
  const int32_t own_slot = appends ? walk.own_entry() - base : kChunk;
  const Slots stored = {seen.from, seen.has(own_slot) ? own_slot : seen.to};
  const StagedChunk chunk = {of.layer, blocks_of(of.layer, rows), kv_head, base, stored, tiles};

  const Shared<float> weights =
      dynamic_shared<float>(kStages * piece, static_cast<size_t>(kChunk * kHeads));
  const Shared<float> q =
      dynamic_shared<float>(kStages * piece + static_cast<size_t>(kChunk * kHeads) * sizeof(float),
                            static_cast<size_t>(of.k_dim * kHeads));
  const float* const own = of.q.data + t * of.q.stride + int64_t{first_head} * of.k_dim;
  uint64_t tile = 0;
  if (warp_of_block() == 0) tile = chunk.own_tile();  // the block table and q come together
  if (appends) {
    own_row.put_queries(q);
    if (seen.has(own_slot)) own_row.put_entry();
  }
  if (warp_of_block() == 0) {
    tiles[thread_x()] = tile;
  } else if (!appends) {
    for (int32_t i = thread_x() - 32; i < of.k_dim * kHeads; i += kThreads - 32) {
      const int32_t head = i % kHeads;
      q[i] = head < n ? own[head * of.k_dim + i / kHeads] : 0.0F;
    }
  }
  sync_threads();

  constexpr int32_t kElements = piece_elements<T>();
  const int32_t slots = piece_slots<T>(of.v_dim);
  const int32_t key_pieces = (of.k_dim + kElements - 1) / kElements;
  const int32_t first_value = stored.from / slots;
  const int32_t value_pieces = (stored.to + slots - 1) / slots - first_value;
  const auto stage = [&](int32_t i) {
    return dynamic_shared<T>(static_cast<size_t>(i % kStages) * piece, piece / sizeof(T));
  };
  const auto start = [&](int32_t i) {
    if (i < key_pieces) {
      const int32_t left = of.k_dim - i * kElements;
      chunk.copy_keys<kWarps>(i * kElements, left < kElements ? left : kElements, stage(i));
    } else if (i < key_pieces + value_pieces) {
      const int32_t first = (first_value + i - key_pieces) * slots;
      chunk.copy_values<kWarps>(first, kChunk - first < slots ? kChunk - first : slots, stage(i));
    }
    device::commit_copies();
  };
  GEN_NO_UNROLL
  for (int32_t i = 0; i < kStages - 1; ++i) start(i);
  const bool has_own = appends && seen.has(own_slot);
  float own_score = 0.0F;
  if (has_own) {
    if (thread_x() < n) own_score = own_row.score(q, thread_x());
    if (within == 0) own_row.store(chunk.blocks, walk.own_entry());
  }
  const auto next = [&](int32_t i) {
    device::wait_copies<kStages - 2>();
    sync_threads();  // all have used the piece before, so it may be overwritten
    start(i + kStages - 1);
  };

  float scores[kSlots][static_cast<size_t>(kHeads)] = {};
  for (int32_t i = 0; i < key_pieces; ++i) {
    next(i);
    const int32_t left = of.k_dim - i * kElements;
    add_keys<T, kHeads>(q, stage(i), i * kElements, left < kElements ? left : kElements, scores);
  }
  GEN_UNROLL
  for (size_t i = 0; i < kSlots; ++i) {
    const int32_t slot = thread_x() * static_cast<int32_t>(kSlots) + static_cast<int32_t>(i);
    GEN_UNROLL
    for (int32_t h = 0; h < kHeads; ++h) {
      if (slot != own_slot) weights[slot * kHeads + h] = stored.has(slot) ? scores[i][h] : 0.0F;
    }
  }
  if (has_own && thread_x() < kHeads) weights[own_slot * kHeads + thread_x()] = own_score;
  sync_threads();
  for (int32_t head = warp_of_block(); head < n; head += kWarps) {
    const Weighed made =
        make_weights(of, at(rows.log_weights), base, seen.from, seen.to,
                     weights.subspan(head, static_cast<size_t>(kChunk * kHeads - head)), kHeads);
    if (lane_of_warp() == 0) {
      results[2 * head] = made.max;
      results[2 * head + 1] = made.sum;
    }
  }

  // Columns of threads: an element each; the heads are divided over the columns.
  const int32_t width = (of.v_dim + 31) / 32 * 32;
  int32_t columns = 1;
  while (2 * columns <= kHeads && 2 * columns * width <= kThreads) columns *= 2;
  const int32_t mine = kHeads / columns;
  const int32_t head = thread_x() / width * mine;
  const int32_t d = thread_x() % width;
  const bool works = head < kHeads && d < of.v_dim;
  float sums[static_cast<size_t>(kHeads)] = {};
  for (int32_t i = 0; i < value_pieces; ++i) {
    next(key_pieces + i);
    const int32_t first = (first_value + i) * slots;
    const Slots here = {stored.from > first ? stored.from : first,
                        stored.to < first + slots ? stored.to : first + slots};
    if (!works) continue;
    const Shared<T> values = stage(key_pieces + i);
    if (mine == 1) {
      add_values<T, kHeads, 1>(weights, values, first, here, of.v_dim, d, head, sums);
    } else if (mine == 2) {
      add_values<T, kHeads, 2>(weights, values, first, here, of.v_dim, d, head, sums);
    } else if constexpr (kHeads >= 4) {
      if (mine == 4) {
        add_values<T, kHeads, 4>(weights, values, first, here, of.v_dim, d, head, sums);
      } else if constexpr (kHeads >= 8) {
        add_values<T, kHeads, 8>(weights, values, first, here, of.v_dim, d, head, sums);
      }
    }
  }
  if (appends && value_pieces == 0) sync_threads();  // no piece has been waited for
  if (works && has_own) {
    const float value = own_row.value(d);
    GEN_UNROLL
    for (int32_t k = 0; k < kHeads; ++k) {
      if (k >= mine) continue;
      const float weight = weights[own_slot * kHeads + head + k];
      sums[k] = multiply_add(weight, value, sums[k]);
    }
  }
  GEN_UNROLL
  for (int32_t k = 0; k < kHeads; ++k) {
    if (!works || k >= mine || head + k >= n) continue;
    const float partial_max = results[2 * (head + k)];
    const float partial_sum = results[2 * (head + k) + 1];
    if (view.slots == 1) {
      Merged merged(before_chunks(of, first_head + head + k));
      merged.add(partial_max, partial_sum, sums[k]);
      merged.put(of, t, first_head + head + k, d);
      continue;
    }
    float* const partial = view.partial(t, first_head + head + k, block_x());
    partial[2 + d] = sums[k];
    if (d < 2) partial[d] = d == 0 ? partial_max : partial_sum;
    if (of.v_dim == 1) partial[1] = partial_sum;
  }
  if (view.counters == nullptr) return;
  const auto place =
      static_cast<int32_t>(t) * static_cast<int32_t>(device::grid_size().y) + block_y();
  merge_if_last(view, t, first_head, n, walk.n_chunks(), place);
}

size_t shared_bytes(const AttentionView& of, int32_t heads, size_t element, bool appends) {
  const int32_t warps = (of.v_dim > kFewThreads ? kChunk : kFewThreads) / 32;
  return plain_shared(of.k_dim, heads, piece_bytes(of.v_dim, element)) +
         (appends ? own_row_bytes(of.k_dim, of.v_dim, warps) : 0);
}

/// Query heads per block: those of a group, or fewer if the blocks would not fill the device.
int32_t heads_of_block(const OpContext& context, const SplitView& view) {
  const int32_t group = view.of.n_heads / view.of.n_kv_heads;
  if (view.of.v_dim > kFewThreads) return 4;
  int32_t heads = group > 4 ? 8 : group > 2 ? 4 : 2;
  const auto blocks = [&](int32_t each) {
    return view.of.q.rows * view.slots * view.of.n_kv_heads * ((group + each - 1) / each);
  };
  while (heads > 2 && blocks(heads / 2) <= context.processors) heads /= 2;
  return heads;
}

template <typename T>
Status launch_plain(const OpContext& context, const SplitView& view, const AppendView* append) {
  const int32_t heads = heads_of_block(context, view);
  const int32_t group = view.of.n_heads / view.of.n_kv_heads;
  const device::Dim3 grid = {
      static_cast<unsigned>(view.slots),
      static_cast<unsigned>(view.of.n_kv_heads * ((group + heads - 1) / heads)),
      static_cast<unsigned>(view.of.q.rows)};
  const auto launch = [&](auto* kernel, int32_t threads) {
    return run_kernel(context, "attention_split", kernel, grid, threads,
                      shared_bytes(view.of, heads, sizeof(T), append != nullptr), view,
                      append != nullptr ? *append : AppendView{});
  };
  if (view.of.v_dim > kFewThreads) {
    return launch(attention_plain_kernel<T, 4, kChunk>, kChunk);
  }
  constexpr int32_t kThreads = kFewThreads;
  if (heads == 8) return launch(attention_plain_kernel<T, 8, kThreads>, kThreads);
  if (heads == 4) return launch(attention_plain_kernel<T, 4, kThreads>, kThreads);
  return launch(attention_plain_kernel<T, 2, kThreads>, kThreads);
}

}  // namespace

bool attention_plain_can(const OpContext& context, const AttentionView& of, bool appends) {
  const bool f32 = plain_layer<float>(of.layer);
  if (!f32 && !plain_layer<uint16_t>(of.layer)) return false;
  if (of.k_dim > kMaxDim || of.v_dim > kMaxDim || of.q.rows == 0) return false;
  return shared_bytes(of, 8, f32 ? sizeof(float) : sizeof(uint16_t), appends) <=
         context.shared_bytes;
}

bool attention_plain_merges(const OpContext& context, const SplitView& view) {
  const int32_t heads = heads_of_block(context, view);
  const int32_t group = view.of.n_heads / view.of.n_kv_heads;
  const int32_t threads = view.of.v_dim > kFewThreads ? kChunk : kFewThreads;
  const int32_t each = (std::min(heads, group) * view.of.v_dim + threads - 1) / threads;
  const int64_t counters = view.of.q.rows * view.of.n_kv_heads * ((group + heads - 1) / heads);
  return each * view.slots <= kMaxOwnPartials && counters <= kCounters;
}

Status attention_plain(const OpContext& context, const SplitView& view, const AppendView* append) {
  if (plain_layer<float>(view.of.layer)) return launch_plain<float>(context, view, append);
  return launch_plain<uint16_t>(context, view, append);
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// attention: out[t, h, :] = softmax_e(scale * q[t, h, :] . k[e, g, :]) v[e, g, :] over the entries
// that the row attends to, read in place from caches of any format.
//   A block is a row and a query head. A few rows with long contexts are split over more blocks
//   (attention_split.cu); many rows of a sequence share blocks (attention_tile.cu). A block
//   processes the sequence in chunks of 256 positions. For the dot products a thread is a slot
//   (elements ascending; levels of fp8 and q4 are summed per scale). Then 2^x of the scores minus
//   the chunk's maximum, and sums over sixteen virtual lanes. For the weighted values a thread is
//   an element (entries ascending). Chunks are merged in order. The order of operations and the
//   bits are those of engine/cpu/attention/attention-inl.h. They do not depend on the batch, on
//   block tables or on cells. Shared memory: q, running sums, scores, and the addresses of a
//   chunk's keys and values.
#include "cuda/ops/attention/attention_merged.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"
#include "cuda/ops/pairs.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kLanes = 16;

/// q . key, in the order of sums of the format.
template <KvFormat kFormat>
GEN_DEVICE float dot_key(const Shared<float>& q, const KvPlace& place, int32_t dim) {
  if constexpr (kFormat == KvFormat::kFp8 || kFormat == KvFormat::kQ4) {
    float score = 0.0F;
    const int32_t group = scale_group(kFormat, dim);
    for (int32_t g = 0, d = 0; d < dim; ++g) {
      float sum = 0.0F;
      const int32_t end = d + group < dim ? d + group : dim;
      for (; d < end; ++d) {
        const float element = q[d];
        sum = multiply_add(element, level<kFormat, KvOrder::kKeys>(place, dim, d), sum);
      }
      const float scale = scale_at(kFormat, place, g);
      score = g == 0 ? sum * scale : multiply_add(sum, scale, score);
    }
    return score;
  } else {
    float sum = 0.0F;
    for (int32_t d = 0; d < dim; ++d) {
      const float element = q[d];
      sum = multiply_add(element, level<kFormat, KvOrder::kKeys>(place, dim, d), sum);
    }
    return sum;
  }
}

GEN_DEVICE float dot_any(KvFormat format, const Shared<float>& q, const KvPlace& place,
                         int32_t dim) {
  switch (format) {
    case KvFormat::kF32:
      return dot_key<KvFormat::kF32>(q, place, dim);
    case KvFormat::kF16:
      return dot_key<KvFormat::kF16>(q, place, dim);
    case KvFormat::kFp8:
      return dot_key<KvFormat::kFp8>(q, place, dim);
    case KvFormat::kQ4:
      return dot_key<KvFormat::kQ4>(q, place, dim);
    case KvFormat::kQ3:
      break;
  }
  return dot_key<KvFormat::kQ3>(q, place, dim);
}

/// sum of weights times element d of the values of slots [from, to), slots ascending.
template <KvFormat kFormat>
GEN_DEVICE float weigh(const Shared<float>& weights, const Shared<int32_t>& entries,
                       const Shared<KvPlace>& places, int32_t from, int32_t to, int32_t dim,
                       int32_t d) {
  float sum = 0.0F;
  for (int32_t i = from; i < to; ++i) {
    const int32_t entry = entries[i];
    if (entry < 0) continue;
    const KvPlace place = places[i];
    float weight = weights[i];
    if constexpr (kFormat == KvFormat::kFp8 || kFormat == KvFormat::kQ4) {
      weight = weight * scale_at(kFormat, place, d / scale_group(kFormat, dim));
    }
    sum = multiply_add(weight, level<kFormat, KvOrder::kValues>(place, dim, d), sum);
  }
  return sum;
}

GEN_DEVICE float weigh_any(KvFormat format, const Shared<float>& weights,
                           const Shared<int32_t>& entries, const Shared<KvPlace>& places,
                           int32_t from, int32_t to, int32_t dim, int32_t d) {
  switch (format) {
    case KvFormat::kF32:
      return weigh<KvFormat::kF32>(weights, entries, places, from, to, dim, d);
    case KvFormat::kF16:
      return weigh<KvFormat::kF16>(weights, entries, places, from, to, dim, d);
    case KvFormat::kFp8:
      return weigh<KvFormat::kFp8>(weights, entries, places, from, to, dim, d);
    case KvFormat::kQ4:
      return weigh<KvFormat::kQ4>(weights, entries, places, from, to, dim, d);
    case KvFormat::kQ3:
      break;
  }
  return weigh<KvFormat::kQ3>(weights, entries, places, from, to, dim, d);
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1) attention_kernel(AttentionView of) {
  after_predecessor();
  GEN_SHARED(int32_t, entries, kChunk);
  GEN_SHARED(int32_t, range, 2);
  GEN_SHARED(float, scores, kChunk);
  GEN_SHARED(KvPlace, values, kChunk);
  GEN_SHARED(float, lanes, kThreads);
  const int64_t t = block_x();
  const int32_t head = block_y();
  const int32_t s = sequence_of(of.sequences, of.n_sequences, static_cast<int32_t>(t));
  if (s < 0) return;
  const engine::KvRows& rows = of.sequences[s];
  const int32_t kv_head = head / (of.n_heads / of.n_kv_heads);
  const Blocks blocks = blocks_of(of.layer, rows);
  const float* const log_weights = at(rows.log_weights);

  const Shared<float> q = dynamic_shared<float>(0, static_cast<size_t>(of.k_dim));
  const Shared<float> sums = dynamic_shared<float>(static_cast<size_t>(of.k_dim) * sizeof(float),
                                                   static_cast<size_t>(of.v_dim));
  for (int32_t d = thread_x(); d < of.k_dim; d += kThreads) {
    q[d] = of.q.data[t * of.q.stride + int64_t{head} * of.k_dim + d];
  }
  for (int32_t d = thread_x(); d < of.v_dim; d += kThreads) sums[d] = 0.0F;
  float state_max = before_chunks(of, head).max;
  float state_sum = before_chunks(of, head).sum;
  RowWalk walk;
  walk.begin(of.layer, rows, static_cast<int32_t>(t) - rows.first_row);
  sync_threads();

  int32_t from = 0;
  int32_t to = 0;
  while (walk.next(entries, range, &from, &to)) {
    // Raw scores, and the maximum after the rule.
    float largest = minus_infinity();
    for (int32_t i = thread_x(); i < kChunk; i += kThreads) {
      const int32_t entry = i >= from && i < to ? static_cast<int32_t>(entries[i]) : -1;
      if (entry < 0) {
        scores[i] = 0.0F;
        continue;
      }
      const KvPlace key = head_place(of.layer.k, place_of(of.layer.k, blocks, entry), kv_head);
      values[i] = head_place(of.layer.v, place_of(of.layer.v, blocks, entry), kv_head);
      const float raw = dot_any(of.layer.k.format, q, key, of.k_dim);
      scores[i] = raw;
      const float weight = log_weights != nullptr ? log_weights[entry] : 0.0F;
      largest = max_of(ruled(of, raw, weight, 0.0F), largest);
    }
    lanes[thread_x()] = largest;
    sync_threads();
    for (int32_t half = kThreads / 2; half > 0; half /= 2) {
      if (thread_x() < half) {
        const float own = lanes[thread_x()];
        const float other = lanes[thread_x() + half];
        lanes[thread_x()] = max_of(own, other);
      }
      sync_threads();
    }
    largest = lanes[0];
    const float shift = largest == minus_infinity() ? 0.0F : largest;
    for (int32_t i = thread_x(); i < kChunk; i += kThreads) {
      const int32_t entry = i >= from && i < to ? static_cast<int32_t>(entries[i]) : -1;
      if (entry < 0) continue;
      const float weight = log_weights != nullptr ? log_weights[entry] : 0.0F;
      const float raw = scores[i];
      scores[i] = exp2_weight(ruled(of, raw, weight, shift));
    }
    sync_threads();
    if (thread_x() < kLanes) {
      float sum = 0.0F;
      for (int32_t i = thread_x(); i < kChunk; i += kLanes) sum = sum + scores[i];
      lanes[thread_x()] = sum;
    }
    sync_threads();
    // Lanes (i, i + 8), (i, i + 4), (i, i + 2), (i, i + 1), by each thread for itself.
    const auto eight = [&](int32_t i) -> float { return lanes[i] + lanes[i + 8]; };
    const auto four = [&](int32_t i) -> float { return eight(i) + eight(i + 4); };
    const float partial_sum = (four(0) + four(2)) + (four(1) + four(3));
    const float partial_max =
        largest == minus_infinity() && partial_sum != 0.0F ? partial_sum : largest;
    // The merge. A chunk whose scores are all -infinity adds nothing.
    if (partial_max != minus_infinity()) {
      const float most = state_max > partial_max ? state_max : partial_max;
      const float old_factor = exp2_weight(state_max - most);
      const float new_factor = exp2_weight(partial_max - most);
      const bool fresh = state_max == minus_infinity();
      state_sum = multiply_add(fresh ? 0.0F : state_sum, old_factor, partial_sum * new_factor);
      state_max = most;
      for (int32_t d = thread_x(); d < of.v_dim; d += kThreads) {
        const float partial =
            weigh_any(of.layer.v.format, scores, entries, values, from, to, of.v_dim, d);
        const float sum = sums[d];
        sums[d] = multiply_add(fresh ? 0.0F : sum, old_factor, partial * new_factor);
      }
    }
    sync_threads();
  }
  const bool nothing = state_max == minus_infinity();
  const float factor = 1.0F / state_sum;
  for (int32_t d = thread_x(); d < of.v_dim; d += kThreads) {
    const float sum = sums[d];
    put_result(of, t, head, d, nothing ? 0.0F : sum * factor);
  }
}

/// Whether two memory ranges overlap.
bool overlap(const void* a, size_t n, const void* b, size_t m) {
  const auto* const from = static_cast<const uint8_t*>(a);
  const auto* const other = static_cast<const uint8_t*>(b);
  return from != nullptr && other != nullptr && from < other + m && other < from + n;
}
bool overlap(const ConstRowsView& a, const void* b, size_t m) {
  return overlap(a.data, static_cast<size_t>(a.cols) * sizeof(float), b, m);
}

}  // namespace

bool append_pairs(const OpContext& context, const engine::RopeAppendArgs& append,
                  const engine::AttentionArgs& attention) {
  const bool same = append.q.rows == 1 && attention.q.rows == 1 &&
                    append.q.data == attention.q.data && append.n_heads == attention.n_heads &&
                    append.n_kv_heads == attention.n_kv_heads && append.k_dim == attention.k_dim &&
                    append.v_dim == attention.v_dim && append.layer == attention.layer &&
                    append.sequences == attention.sequences &&
                    append.n_sequences == attention.n_sequences;
  if (!same || !append.k.data || !append.v.data) return false;
  // Blocks write results while others still read the row.
  const RowLayout layout = row_layout(attention.packed.forms, attention.packed.cols);
  for (const ConstRowsView& read :
       {view(attention.q), view(append.k), view(append.v), view(append.cs)}) {
    if (overlap(read, pointer(attention.packed.data), layout.bytes) ||
        overlap(read, pointer(attention.out.data),
                static_cast<size_t>(attention.out.cols) * sizeof(float))) {
      return false;
    }
  }
  const AttentionView of = attention_view(attention);
  return attention_slots(context, of, attention.max_chunks) > 0 &&
         attention_plain_can(context, of, true);
}

Status run_pair(const OpContext& context, const engine::RopeAppendArgs& append,
                const engine::AttentionArgs& attention) {
  const AttentionView of = attention_view(attention);
  const AppendView own = append_view(append);
  GEN_TRY(attention_split(context, of, attention_slots(context, of, attention.max_chunks), &own));
  return attention.packed.data ? pack_in_place(context, attention.packed) : Status();
}

Status run(const OpContext& context, const engine::AttentionArgs& args) {
  const AttentionView of = attention_view(args);
  if (const int32_t slots = attention_slots(context, of, args.max_chunks); slots > 0) {
    GEN_TRY(attention_split(context, of, slots));
    return args.packed.data ? pack_in_place(context, args.packed) : Status();
  }
  if (const int32_t slab = attention_tiles(context, of, args.max_chunks); slab > 0) {
    GEN_TRY(attention_tile(context, of, slab));
    return args.packed.data ? pack_in_place(context, args.packed) : Status();
  }
  const size_t shared = static_cast<size_t>(args.k_dim + args.v_dim) * sizeof(float);
  const device::Dim3 grid = {static_cast<unsigned>(args.q.rows),
                             static_cast<unsigned>(args.n_heads), 1};
  GEN_TRY(run_kernel(context, "attention", attention_kernel, grid, kThreads, shared, of));
  return args.packed.data ? pack_in_place(context, args.packed) : Status();
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// Code shared by the kernels with a block per chunk of a row's context: the memory of partial
// results, and their merge.
#pragma once

#include "cuda/device/memory.cuh"
#include "cuda/ops/attention/attention_view.cuh"
#include "cuda/ops/sequence/rope_append.cuh"

namespace gen::cuda {

struct SplitView {
  AttentionView of;
  float* partials;  // [rows][heads][slots][v_dim + 2]
  int32_t slots;
  size_t shared_offset = 0;  // of q in dynamic shared memory
  /// Arrival counters, if the last block of a row's heads merges their partials.
  uint32_t* counters = nullptr;

  [[nodiscard]] GEN_HOST_DEVICE int32_t partial_floats() const { return of.v_dim + 2; }
  [[nodiscard]] GEN_DEVICE float* partial(int64_t row, int32_t head, int32_t slot) const {
    return partials + ((row * of.n_heads + head) * slots + slot) * partial_floats();
  }
};

/// The row's walk; false for a row without a sequence.
GEN_DEVICE bool begin_walk(const AttentionView& of, int64_t t, RowWalk* walk, int32_t* sequence) {
  *sequence = sequence_of(of.sequences, of.n_sequences, static_cast<int32_t>(t));
  if (*sequence < 0) return false;
  const engine::KvRows& rows = of.sequences[*sequence];
  walk->begin(of.layer, rows, static_cast<int32_t>(t) - rows.first_row);
  return true;
}

struct Weighed {
  float max = 0.0F;  // as a partial has it
  float sum = 0.0F;
};

GEN_DEVICE float largest_of_warp(float x) {
  for (uint32_t lanes = 16; lanes > 0; lanes /= 2) x = max_of(x, shuffle_xor(x, lanes));
  return x;
}

/// The maximum of the scores of slots [from, to), slot i at i * apart; scores are replaced by
/// weights. Called by a warp. Rules without caps and log-weights are unrolled over slots, to hide
/// latency.
GEN_DEVICE float weigh_plain(const AttentionView& of, int32_t from, int32_t to,
                             const Shared<float>& scores, int32_t apart) {
  constexpr int32_t kEach = kChunk / 32;
  const int32_t first = from + lane_of_warp();
  const auto rule = [&](float x, float shift) {
    return multiply_add(x, of.scale * kLog2E, 0.0F - shift);
  };
  float raw[kEach];
  GEN_UNROLL
  for (int32_t k = 0; k < kEach; ++k) {
    raw[k] = 0.0F;
    if (first + 32 * k < to) raw[k] = scores[(first + 32 * k) * apart];
  }
  float largest = minus_infinity();
  GEN_UNROLL
  for (int32_t k = 0; k < kEach; ++k) {
    if (first + 32 * k < to) largest = max_of(rule(raw[k], 0.0F), largest);
  }
  largest = largest_of_warp(largest);
  const float shift = largest == minus_infinity() ? 0.0F : largest;
  GEN_UNROLL
  for (int32_t k = 0; k < kEach; ++k) {
    const float weight = exp2_weight(rule(raw[k], shift));
    if (first + 32 * k < to) scores[(first + 32 * k) * apart] = weight;
  }
  return largest;
}
GEN_DEVICE float weigh_by_rule(const AttentionView& of, const float* log_weights, int32_t base,
                               int32_t from, int32_t to, const Shared<float>& scores,
                               int32_t apart) {
  const auto weight_of = [&](int32_t slot) {
    return log_weights != nullptr ? log_weights[base + slot] : 0.0F;
  };
  float largest = minus_infinity();
  for (int32_t i = from + lane_of_warp(); i < to; i += 32) {
    const float raw = scores[i * apart];
    largest = max_of(ruled(of, raw, weight_of(i), 0.0F), largest);
  }
  largest = largest_of_warp(largest);
  const float shift = largest == minus_infinity() ? 0.0F : largest;
  for (int32_t i = from + lane_of_warp(); i < to; i += 32) {
    const float raw = scores[i * apart];
    scores[i * apart] = exp2_weight(ruled(of, raw, weight_of(i), shift));
  }
  return largest;
}

/// Replaces the scores of a head's slots [from, to) of a chunk by weights, slot i at i * apart;
/// those of other slots become 0. Called by a warp; the result is valid in lane 0.
GEN_DEVICE Weighed make_weights(const AttentionView& of, const float* log_weights, int32_t base,
                                int32_t from, int32_t to, const Shared<float>& scores,
                                int32_t apart) {
  const int32_t lane = lane_of_warp();
  const float largest = of.soft_cap == 0.0F && log_weights == nullptr
                            ? weigh_plain(of, from, to, scores, apart)
                            : weigh_by_rule(of, log_weights, base, from, to, scores, apart);
  sync_warp();
  float sum = 0.0F;
  if (lane < 16) {
    GEN_UNROLL
    for (int32_t i = 0; i < kChunk; i += 16) sum = sum + scores[(i + lane) * apart];
  }
  sum = sum_sixteen(sum);
  return {largest == minus_infinity() && sum != 0.0F ? sum : largest, sum};
}

/// The running merge of the partials of a row and head.
struct Merged {
  float max;
  float sum;
  float value = 0.0F;

  GEN_DEVICE explicit Merged(const SoftmaxState& begin) : max(begin.max), sum(begin.sum) {}
  /// A chunk whose scores are all -infinity adds nothing.
  GEN_DEVICE void add(float partial_max, float partial_sum, float partial_value) {
    if (partial_max == minus_infinity()) return;
    const float most = max > partial_max ? max : partial_max;
    const float old_factor = exp2_weight(max - most);
    const float new_factor = exp2_weight(partial_max - most);
    const bool fresh = max == minus_infinity();
    sum = multiply_add(fresh ? 0.0F : sum, old_factor, partial_sum * new_factor);
    value = multiply_add(fresh ? 0.0F : value, old_factor, partial_value * new_factor);
    max = most;
  }
  GEN_DEVICE void put(const AttentionView& of, int64_t t, int32_t head, int32_t d) const {
    const float factor = 1.0F / sum;
    put_result(of, t, head, d, max == minus_infinity() ? 0.0F : value * factor);
  }
};

/// Element d of head `head` of row t, from the `n` chunks of the row. Several partials are loaded
/// at once.
template <int32_t kPartialsAtOnce>
GEN_DEVICE void merge_element(const SplitView& view, int64_t t, int32_t head, int32_t n,
                              int32_t d) {
  Merged merged(before_chunks(view.of, head));
  for (int32_t first = 0; first < n; first += kPartialsAtOnce) {
    float maxima[static_cast<size_t>(kPartialsAtOnce)];
    float sums[static_cast<size_t>(kPartialsAtOnce)];
    float values[static_cast<size_t>(kPartialsAtOnce)];
    GEN_UNROLL
    for (int32_t i = 0; i < kPartialsAtOnce; ++i) {
      if (first + i >= n) continue;
      const float* const partial = view.partial(t, head, first + i);
      maxima[i] = partial[0];
      sums[i] = partial[1];
      values[i] = partial[2 + d];
    }
    GEN_UNROLL
    for (int32_t i = 0; i < kPartialsAtOnce; ++i) {
      if (first + i < n) merged.add(maxima[i], sums[i], values[i]);
    }
  }
  merged.put(view.of, t, head, d);
}

/// The largest number of partials per thread if a block merges those of its heads itself. With more
/// a separate kernel is faster.
constexpr int32_t kMaxOwnPartials = 16;

/// Writes the results of heads [first, first + n) of row t in the last of the `n_chunks` blocks
/// that made their partials, as counted by counter `place`. Called by all threads of a block.
GEN_DEVICE void merge_if_last(const SplitView& view, int64_t t, int32_t first, int32_t n,
                              int32_t n_chunks, int32_t place) {
  GEN_SHARED(uint32_t, before, 1);
  device::fence_device();
  sync_threads();  // all have put their partials
  if (thread_x() == 0) before[0] = device::add_acquire_release(view.counters + place, 1);
  sync_threads();
  if (before[0] + 1 != static_cast<uint32_t>(n_chunks)) return;
  if (thread_x() == 0) view.counters[place] = 0;  // for the next kernel
  for (int32_t i = thread_x(); i < n * view.of.v_dim; i += block_threads()) {
    merge_element<8>(view, t, first + i / view.of.v_dim, n_chunks, i % view.of.v_dim);
  }
}

/// The partials of all chunks, or the result if there is one chunk. For float32 and float16 caches
/// (attention_plain.cu), if the device has enough shared memory. With `append` it also rotates the
/// row and stores it in the cache.
bool attention_plain_can(const OpContext& context, const AttentionView& of, bool appends = false);
Status attention_plain(const OpContext& context, const SplitView& view, const AppendView* append);
/// Whether its blocks should merge the partials as well.
bool attention_plain_merges(const OpContext& context, const SplitView& view);

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// attention for few rows that look far back: each chunk of 256 positions has a block of its own.
//   part[t, h, c] = (max, sum of weights, sum of weights times values) over chunk c of row t
//   out[t, h, :] = the parts of t and h, merged in the order of chunks
//   The operations, and their order, are those of attention.cu, where one block goes through all
//   chunks; so the bits do not tell which of them was taken. Nothing of it depends on the batch.
//
//   attention_part   A block is a chunk, a head of keys, and up to eight of the query heads that
//           share it, of one row; blocks beyond a row's last chunk end at once, so the host says
//           only how many there are at most. A thread is a slot for dot products: an element of a
//           key is read once for all heads. Then a warp is a head for maximum, weights and sum,
//           and a thread is an element of the values, of some of the heads.
//   attention_merge  A block is a row and a query head.
//   Bytes   keys and values once for every eight query heads of a group, and 4 (D + 2) bytes for
//           each part, written and read: 1 in 64 of float16 keys and values of one query head.
//   Shared  q of eight heads, 14 KiB for scores and places.
//   Tried   nothing on a device yet.
#include "cuda/ops/attention_view.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = kChunk;
constexpr int32_t kHeads = 8;
constexpr int32_t kMergeThreads = 128;
constexpr size_t kMostScratch = size_t{64} << 20;

struct SplitView {
  AttentionView of;
  float* parts;  // [rows][heads][slots][v_dim + 2]
  int32_t slots;

  [[nodiscard]] GEN_HOST_DEVICE int32_t part_floats() const { return of.v_dim + 2; }
  [[nodiscard]] GEN_DEVICE float* part(int64_t row, int32_t head, int32_t slot) const {
    return parts + ((row * of.n_heads + head) * slots + slot) * part_floats();
  }
};

/// The row's walk; false for a row that no sequence has.
GEN_DEVICE bool begin_walk(const AttentionView& of, int64_t t, RowWalk* walk, int32_t* sequence) {
  *sequence = sequence_of(of.sequences, of.n_sequences, static_cast<int32_t>(t));
  if (*sequence < 0) return false;
  const engine::KvRows& rows = of.sequences[*sequence];
  walk->begin(of.layer, rows, static_cast<int32_t>(t) - rows.first_row);
  return true;
}

/// q . key for n heads, in the order of sums of the format; see dot_key() in attention.cu.
template <KvFormat kFormat>
GEN_DEVICE void dot_heads(const Shared<float>& q, const Place& place, int32_t dim, int32_t n,
                          float (&scores)[kHeads]) {
  const int32_t group = scaled_format(kFormat) ? scale_group(kFormat, dim) : dim;
  for (int32_t g = 0, d = 0; d < dim; ++g) {
    float sums[kHeads] = {};
    const int32_t end = d + group < dim ? d + group : dim;
    for (; d < end; ++d) {
      const float key = level<kFormat, KvOrder::kKeys>(place, dim, d);
      GEN_UNROLL
      for (int32_t h = 0; h < kHeads; ++h) {
        if (h >= n) continue;
        const float element = q[h * dim + d];
        sums[h] = multiply_add(element, key, sums[h]);
      }
    }
    float scale = 1.0F;
    if constexpr (scaled_format(kFormat)) scale = scale_at(kFormat, place, g);
    GEN_UNROLL
    for (int32_t h = 0; h < kHeads; ++h) {
      if constexpr (scaled_format(kFormat)) {
        scores[h] = g == 0 ? sums[h] * scale : multiply_add(sums[h], scale, scores[h]);
      } else {
        scores[h] = sums[h];
      }
    }
  }
}

/// Sums over slots [from, to) of weights times element d of the values, for heads first, first +
/// apart, … of n; see weigh() in attention.cu.
template <KvFormat kFormat>
GEN_DEVICE void weigh_heads(const Shared<float>& weights, const Shared<Place>& places, int32_t from,
                            int32_t to, int32_t dim, int32_t d, int32_t first, int32_t apart,
                            int32_t n, float (&sums)[kHeads]) {
  for (int32_t i = from; i < to; ++i) {
    const Place place = places[i];
    const float value = level<kFormat, KvOrder::kValues>(place, dim, d);
    float scale = 1.0F;
    if constexpr (scaled_format(kFormat)) {
      scale = scale_at(kFormat, place, d / scale_group(kFormat, dim));
    }
    GEN_UNROLL
    for (int32_t k = 0; k < kHeads; ++k) {
      const int32_t head = first + k * apart;
      if (head >= n) continue;
      float weight = weights[head * kChunk + i];
      if constexpr (scaled_format(kFormat)) weight = weight * scale;
      sums[k] = multiply_add(weight, value, sums[k]);
    }
  }
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) attention_part_kernel(SplitView view) {
  after_predecessor();
  GEN_SHARED(float, scores, kHeads* kChunk);
  GEN_SHARED(Place, values, kChunk);
  const AttentionView& of = view.of;
  const int64_t t = block_z();
  RowWalk walk;
  int32_t s = 0;
  if (!begin_walk(of, t, &walk, &s)) return;
  int32_t base = 0;
  int32_t from = 0;
  int32_t to = 0;
  if (!walk.chunk_at(block_x(), &base, &from, &to)) return;
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t batches = (group + kHeads - 1) / kHeads;
  const int32_t kv_head = block_y() / batches;
  const int32_t within = block_y() % batches * kHeads;
  const int32_t n = group - within < kHeads ? group - within : kHeads;
  const int32_t first_head = kv_head * group + within;
  const engine::KvRows& rows = of.sequences[s];
  const Blocks blocks = blocks_of(of.layer, rows);
  const float* const log_weights = at(rows.log_weights);

  const Shared<float> q = dynamic_shared<float>(0, static_cast<size_t>(n * of.k_dim));
  const float* const own = of.q.data + t * of.q.stride + int64_t{first_head} * of.k_dim;
  for (int32_t i = thread_x(); i < n * of.k_dim; i += kThreads) q[i] = own[i];
  sync_threads();

  const int32_t slot = thread_x();
  if (slot >= from && slot < to) {
    const int32_t entry = base + slot;
    const Place key = head_place(of.layer.k, place_of(of.layer.k, blocks, entry), kv_head);
    values[slot] = head_place(of.layer.v, place_of(of.layer.v, blocks, entry), kv_head);
    float raw[kHeads] = {};
    for_format(of.layer.k.format, [&](auto format) {
      dot_heads<decltype(format)::kFormat>(q, key, of.k_dim, n, raw);
    });
    GEN_UNROLL
    for (int32_t h = 0; h < kHeads; ++h) {
      if (h < n) scores[h * kChunk + slot] = raw[h];
    }
  } else {
    for (int32_t h = 0; h < n; ++h) scores[h * kChunk + slot] = 0.0F;
  }
  sync_threads();

  if (warp_of_block() < n) {
    const int32_t head = warp_of_block();
    const int32_t lane = lane_of_warp();
    const Shared<float> row = scores.part(head * kChunk, kChunk);
    float largest = minus_infinity();
    for (int32_t i = from + lane; i < to; i += 32) {
      const float weight = log_weights != nullptr ? log_weights[base + i] : 0.0F;
      largest = max_of(ruled(of, row[i], weight, 0.0F), largest);
    }
    for (uint32_t apart = 16; apart > 0; apart /= 2) {
      largest = max_of(largest, shuffle_xor(largest, apart));
    }
    const float shift = largest == minus_infinity() ? 0.0F : largest;
    for (int32_t i = from + lane; i < to; i += 32) {
      const float weight = log_weights != nullptr ? log_weights[base + i] : 0.0F;
      const float raw = row[i];
      row[i] = exp2_weight(ruled(of, raw, weight, shift));
    }
    sync_warp();
    float sum = 0.0F;
    if (lane < 16) {
      for (int32_t i = lane; i < kChunk; i += 16) sum = sum + row[i];
    }
    sum = sum_sixteen(sum);
    if (lane == 0) {
      float* const part = view.part(t, first_head + head, block_x());
      part[0] = largest == minus_infinity() && sum != 0.0F ? sum : largest;
      part[1] = sum;
    }
  }
  sync_threads();

  const int32_t width = of.v_dim < kThreads ? (of.v_dim + 31) / 32 * 32 : kThreads;
  const int32_t apart = kThreads / width;
  const int32_t first = thread_x() / width;
  if (first >= apart) return;
  for (int32_t d = thread_x() % width; d < of.v_dim; d += width) {
    float sums[kHeads] = {};
    for_format(of.layer.v.format, [&](auto format) {
      weigh_heads<decltype(format)::kFormat>(scores, values, from, to, of.v_dim, d, first, apart, n,
                                             sums);
    });
    GEN_UNROLL
    for (int32_t k = 0; k < kHeads; ++k) {
      const int32_t head = first + k * apart;
      if (head < n) view.part(t, first_head + head, block_x())[2 + d] = sums[k];
    }
  }
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kMergeThreads) attention_merge_kernel(SplitView view) {
  after_predecessor();
  const AttentionView& of = view.of;
  const int64_t t = block_x();
  const int32_t head = block_y();
  RowWalk walk;
  int32_t s = 0;
  if (!begin_walk(of, t, &walk, &s)) return;
  const int32_t n = walk.n_chunks();
  for (int32_t d = thread_x(); d < of.v_dim; d += kMergeThreads) {
    float state_max = minus_infinity();
    float state_sum = 0.0F;
    float sum = 0.0F;
    for (int32_t slot = 0; slot < n; ++slot) {
      const float* const part = view.part(t, head, slot);
      // A chunk whose scores are all -infinity adds nothing.
      if (part[0] == minus_infinity()) continue;
      const float most = state_max > part[0] ? state_max : part[0];
      const float old_factor = exp2_weight(state_max - most);
      const float new_factor = exp2_weight(part[0] - most);
      const bool fresh = state_max == minus_infinity();
      state_sum = multiply_add(fresh ? 0.0F : state_sum, old_factor, part[1] * new_factor);
      sum = multiply_add(fresh ? 0.0F : sum, old_factor, part[2 + d] * new_factor);
      state_max = most;
    }
    const bool nothing = state_max == minus_infinity();
    const float factor = 1.0F / state_sum;
    const float value = nothing ? 0.0F : sum * factor;
    const int64_t column = int64_t{head} * of.v_dim + d;
    if (of.out.data != nullptr) of.out.data[t * of.out.stride + column] = value;
    if (of.packed.data != nullptr) of.packed.data[t * of.packed.stride + column] = value;
  }
}

}  // namespace

int32_t attention_slots(const OpContext& context, const AttentionView& of, int32_t chunks) {
  if (chunks < 2 || of.n_kv_heads == 0) return 0;
  // Rows enough to fill the device without.
  if (of.q.rows * of.n_kv_heads > 2 * int64_t{context.processors}) return 0;
  const size_t bytes = static_cast<size_t>(of.q.rows) * static_cast<size_t>(of.n_heads) *
                       static_cast<size_t>(chunks) * static_cast<size_t>(of.v_dim + 2) *
                       sizeof(float);
  return bytes <= kMostScratch ? chunks : 0;
}

Status attention_split(const OpContext& context, const AttentionView& of, int32_t slots) {
  SplitView view = {of, nullptr, slots};
  uint8_t* scratch = nullptr;
  const auto parts = static_cast<size_t>(of.q.rows) * static_cast<size_t>(of.n_heads * slots);
  GEN_TRY(context.scratch->take_scratch(
      parts * static_cast<size_t>(view.part_floats()) * sizeof(float), &scratch));
  view.parts = reinterpret_cast<float*>(scratch);
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t batches = (group + kHeads - 1) / kHeads;
  const device::Dim3 grid = {static_cast<unsigned>(slots),
                             static_cast<unsigned>(of.n_kv_heads * batches),
                             static_cast<unsigned>(of.q.rows)};
  const size_t shared = static_cast<size_t>(group < kHeads ? group : kHeads) *
                        static_cast<size_t>(of.k_dim) * sizeof(float);
  GEN_TRY(
      run_kernel(context, "attention_part", attention_part_kernel, grid, kThreads, shared, view));
  const device::Dim3 merges = {static_cast<unsigned>(of.q.rows), static_cast<unsigned>(of.n_heads),
                               1};
  return run_kernel(context, "attention_merge", attention_merge_kernel, merges, kMergeThreads, 0,
                    view);
}

}  // namespace gen::cuda

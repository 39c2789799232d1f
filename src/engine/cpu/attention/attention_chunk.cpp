// SPDX-License-Identifier: Apache-2.0
// See attention_chunk.h.
#include "engine/cpu/attention/attention_chunk.h"

#include <algorithm>
#include <cstring>

namespace gen::engine::cpu {
namespace {

/// Tiles that are unpacked at a time: enough for the kernels' tiling, few enough to stay in the L1
/// cache.
constexpr int32_t kUnpackTiles = 4;

/// Prefetches to the L2 cache; see kFetchLevel in attention_read-inl.h.
void fetch(const std::byte* from, size_t bytes) noexcept {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
}

}  // namespace

ChunkAttention::ChunkAttention(const AttendArgs& args, const AttentionKernels& kernels) noexcept
    : args_(args),
      kernels_(kernels),
      group_(args.n_heads / args.n_kv_heads),
      v_stride_(padded_floats(args.v_dim)) {}

ChunkSpace ChunkAttention::take_space(Carver& carver, int64_t item_queries) const noexcept {
  ChunkSpace space;
  space.chunk = carver.take<AttentionChunk>(1);
  space.next_chunk = carver.take<AttentionChunk>(1);
  space.unpacked = carver.take<float>(unpacked_floats());
  space.queries = carver.take<const float*>(item_queries);
  space.seen = carver.take<SlotRange>(item_queries);
  space.scores = carver.take<float>(item_queries * kAttentionChunk);
  return space;
}

void ChunkAttention::begin(const AttentionItem& item, SoftmaxPartial* states,
                           float* sums) const noexcept {
  const int32_t n = queries(item);
  std::fill_n(states, n, kNothingSeen);
  for (int32_t j = 0; args_.sinks != nullptr && j < n; ++j) {
    states[j] = {args_.sinks[item.kv_head * group_ + j % group_] * kLog2E, 1.0F};
    std::fill_n(sums + j * v_stride_, args_.v_dim, 0.0F);
  }
}

void ChunkAttention::pack_queries(const AttentionItem& item, const float** queries,
                                  float* packed) const noexcept {
  for (int32_t r = 0; r < item.rows; ++r) {
    const int64_t row = int64_t{item.sequence->first_row} + item.row + r;
    const float* q = args_.q.data + row * args_.q.stride;
    for (int32_t h = 0; h < group_; ++h) {
      queries[r * group_ + h] = q + (int64_t{item.kv_head} * group_ + h) * args_.k_dim;
    }
  }
  kernels_.pack(queries, item.rows * group_, args_.k_dim, packed);
}

float* ChunkAttention::out_row(const AttentionItem& item, int32_t query) const noexcept {
  const int64_t row = int64_t{item.sequence->first_row} + item.row + query / group_;
  const int64_t head = int64_t{item.kv_head} * group_ + query % group_;
  return out_.data + row * out_.stride + head * args_.v_dim;
}

int64_t ChunkAttention::unpacked_floats() const noexcept {
  const bool needed =
      std::any_of(args_.sequences.begin(), args_.sequences.end(), [&](const auto& sequence) {
        const auto packed = [&](const KvSide& side) {
          return kernels_.unpack[static_cast<size_t>(side.format)][0] != nullptr;
        };
        return packed(sequence.view.k) || packed(sequence.view.v);
      });
  if (!needed) return 0;
  return kUnpackTiles * unpacked_tile_floats(std::max(args_.k_dim, args_.v_dim));
}

template <typename Use>
void ChunkAttention::readable(const KvSide& side, const KvRun& run, int32_t n_queries,
                              float* unpacked, Use use) const noexcept {
  const auto format = static_cast<size_t>(side.format);
  const auto unpack = kernels_.unpack[format][static_cast<size_t>(side.order)];
  const bool direct = unpack == nullptr ||
                      (kernels_.dots[format] != nullptr && n_queries <= kernels_.direct_queries);
  if (direct) {
    use(kernels_.dots[format], kernels_.weighted[format], run, side.tile_stride);
    return;
  }
  const int64_t tile_floats = unpacked_tile_floats(side.head_dim);
  for (int32_t done = 0; done < run.count;) {
    const KvRun left = clip(run, {run.slot + done, run.slot + run.count}, side.tile_stride);
    const int32_t count = std::min(left.count, kUnpackTiles * kKvTile - left.lane);
    const auto tiles = static_cast<size_t>((left.lane + count + kKvTile - 1) / kKvTile);
    for (size_t t = 0; t < tiles; ++t) {
      fetch(left.tile + t * side.tile_stride + run.ahead, side.tile_stride);
      unpack(left.tile + t * side.tile_stride,
             left.shared != nullptr ? left.shared + t * side.shared_stride : nullptr, side.head_dim,
             unpacked + static_cast<int64_t>(t) * tile_floats);
    }
    const KvRun piece = {reinterpret_cast<const std::byte*>(unpacked), nullptr, left.lane,
                         left.slot, count};
    use(kernels_.unpacked_dots[format], kernels_.unpacked_weighted[format], piece,
        static_cast<size_t>(tile_floats) * sizeof(float));
    done += count;
  }
}

void ChunkAttention::partial(const AttentionItem& item, const RowWalk& walk, const float* packed,
                             ChunkSpace& space, SoftmaxPartial* partials,
                             float* partial_sums) const noexcept {
  const KvView& view = item.sequence->view;
  const AttentionChunk& chunk = *space.chunk;
  const int32_t n_queries = item.rows * group_;
  if (chunk.has_gaps) {
    std::memset(space.scores, 0, static_cast<size_t>(n_queries * kAttentionChunk) * sizeof(float));
  }
  for (int32_t i = 0; i < chunk.n_key_runs; ++i) {
    readable(view.k, chunk.key_runs[i], n_queries, space.unpacked,
             [&](auto dots, auto, const KvRun& run, size_t stride) {
               dots(packed, n_queries, args_.k_dim, run, stride, space.scores);
             });
  }
  for (int32_t r = 0; r < item.rows; ++r) {
    std::fill_n(space.seen + r * group_, group_, walk.slots(chunk, r));
  }
  const ScoreRule rule = {args_.scale, args_.soft_cap, chunk.has_weights ? chunk.weights : nullptr};
  kernels_.softmax(space.scores, space.seen, n_queries, rule, partials);
  weighted_sums(item, space, partial_sums);
}

void ChunkAttention::weighted_sums(const AttentionItem& item, const ChunkSpace& space,
                                   float* partial_sums) const noexcept {
  const KvView& view = item.sequence->view;
  const AttentionChunk& chunk = *space.chunk;
  const int32_t n_queries = item.rows * group_;
  std::memset(partial_sums, 0, static_cast<size_t>(n_queries * v_stride_) * sizeof(float));
  const auto tile_sums = [&](auto weighted, const KvRun& whole, size_t stride, int32_t j,
                             int32_t n) {
    const auto over = [&](int32_t first, int32_t rows, SlotRange range) {
      if (range.begin >= range.end) return;
      const KvRun run = clip(whole, range, stride);
      if (run.count == 0) return;
      weighted(space.scores + first * kAttentionChunk, rows, args_.v_dim, run, stride,
               partial_sums + first * v_stride_, v_stride_);
    };
    SlotRange shared = {0, kAttentionChunk};
    for (int32_t i = j; i < j + n; ++i) {
      shared = {std::max(shared.begin, space.seen[i].begin),
                std::min(shared.end, space.seen[i].end)};
    }
    if (shared.begin >= shared.end) shared = {kAttentionChunk, kAttentionChunk};
    // A query must not read an entry that it does not attend to. Before and after the slots that
    // all rows of a tile share, each row is processed alone.
    for (int32_t i = j; i < j + n; ++i) {
      over(i, 1, {space.seen[i].begin, std::min(space.seen[i].end, shared.begin)});
    }
    over(j, n, shared);
    for (int32_t i = j; i < j + n; ++i) {
      over(i, 1, {std::max(space.seen[i].begin, shared.end), space.seen[i].end});
    }
  };
  const int32_t tile = kernels_.tile_queries;
  for (int32_t i = 0; i < chunk.n_value_runs; ++i) {
    readable(view.v, chunk.value_runs[i], n_queries, space.unpacked,
             [&](auto, auto weighted, const KvRun& run, size_t stride) {
               for (int32_t j = 0; j < n_queries; j += tile) {
                 tile_sums(weighted, run, stride, j, std::min(tile, n_queries - j));
               }
             });
  }
}

}  // namespace gen::engine::cpu

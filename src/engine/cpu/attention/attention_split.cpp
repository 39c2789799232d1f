// SPDX-License-Identifier: Apache-2.0
// See attention_split.h.
#include "engine/cpu/attention/attention_split.h"

namespace gen::engine::cpu {
namespace {

/// Size of the partial sums of a round, in floats, which bounds the scratch. A round has at least
/// kLeastRoundChunks chunks.
constexpr int64_t kRoundFloats = int64_t{1} << 17;
constexpr int64_t kLeastRoundChunks = 16;

}  // namespace

SplitAttention::SplitAttention(const ChunkAttention& work, int32_t heads, int64_t n_items,
                               int64_t item_queries) noexcept
    : work_(work),
      heads_(heads),
      n_items_(n_items),
      item_queries_(item_queries),
      round_chunks_(
          std::max(kLeastRoundChunks, kRoundFloats / (n_items * item_queries * work.v_stride()))) {}

void SplitAttention::take_memory(Carver& carver) noexcept {
  const int64_t queries = n_items_ * item_queries_;
  packed_ = carver.take<float>(queries * work_.k_dim());
  chunks_left_ = carver.take<int32_t>(n_items_);
  partials_ = carver.take<SoftmaxPartial>(queries * round_chunks_);
  partial_sums_ = carver.take<float>(queries * round_chunks_ * work_.v_stride());
  states_ = carver.take<SoftmaxPartial>(queries);
  sums_ = carver.take<float>(queries * work_.v_stride());
}

SplitAttention::Turns SplitAttention::turns_of(int64_t round, int32_t threads) const noexcept {
  Turns turns = {round, 0, 0};
  for (int64_t i = 0; i < n_items_; i += heads_) turns.all += round_chunks(i, round);
  // The heads of a chunk are adjacent in memory, so a thread takes all of them in turn. The last
  // chunks are taken head by head, so that threads finish together.
  const int64_t last = int64_t{2} * threads;
  turns.whole = turns.all < 2 * last ? 0 : turns.all - last;
  return turns;
}

bool SplitAttention::take(const Turns& turns, std::atomic<int64_t>& taken,
                          Unit* unit) const noexcept {
  if (unit->left > 0) {
    ++unit->item;
    --unit->left;
    return true;
  }
  const int64_t ticket = taken.fetch_add(1, std::memory_order_relaxed);
  const int64_t single = ticket - turns.whole;
  int64_t turn = single < 0 ? ticket : turns.whole + single / heads_;
  if (turn >= turns.all) return false;
  for (int64_t first = 0;; first += heads_) {
    const int64_t chunks = round_chunks(first, turns.round);
    if (turn < chunks) {
      const int64_t item = first + (single < 0 ? 0 : single % heads_);
      *unit = {item, turn, single < 0 ? heads_ - 1 : 0, item};
      return true;
    }
    turn -= chunks;
  }
}

void SplitAttention::merge_round(int64_t item_index, int64_t round) const noexcept {
  const AttentionItem& item = items_[static_cast<size_t>(item_index)];
  const int64_t stride = work_.v_stride();
  SoftmaxPartial* states = states_ + item_index * item_queries_;
  float* sums = sums_ + item_index * item_queries_ * stride;
  for (int64_t chunk = 0; chunk < round_chunks(item_index, round); ++chunk) {
    const int64_t at = (item_index * round_chunks_ + chunk) * item_queries_;
    work_.kernels().merge(states, sums, partials_ + at, partial_sums_ + at * stride, stride,
                          work_.queries(item), work_.v_dim());
  }
  if ((round + 1) * round_chunks_ < ChunkAttention::walk_of(item).n_chunks()) return;
  for (int32_t j = 0; j < work_.queries(item); ++j) {
    work_.kernels().finish(states[j], sums + j * stride, work_.out_row(item, j), work_.v_dim());
  }
}

void SplitAttention::run_round(ThreadPool& pool, const Turns& turns,
                               ChunkSpace* const* spaces) noexcept {
  for (int64_t i = 0; i < n_items_; ++i) {
    chunks_left_[i] = static_cast<int32_t>(round_chunks(i, turns.round));
  }
  std::atomic<int64_t> taken{0};
  pool.share([&](int32_t index, int32_t) {
    ChunkSpace& space = *spaces[index];
    Unit unit = {};
    // A thread takes its next chunk before it processes the current one, to prefetch it meanwhile.
    const auto next = [&](AttentionChunk* chunk) {
      if (!take(turns, taken, &unit)) return false;
      ChunkAttention::walk_of(items_[static_cast<size_t>(unit.item)])
          .chunk(turns.round * round_chunks_ + unit.chunk, chunk);
      return true;
    };
    for (bool more = next(space.chunk); more; std::swap(space.chunk, space.next_chunk)) {
      const Unit now = unit;
      const AttentionItem& item = items_[static_cast<size_t>(now.item)];
      const int64_t at = (now.item * round_chunks_ + now.chunk) * item_queries_;
      more = next(space.next_chunk);
      if (more) look_ahead(space.chunk, *space.next_chunk);
      work_.partial(item, ChunkAttention::walk_of(item), packed(now.item), space, partials_ + at,
                    partial_sums_ + at * work_.v_stride());
      if (now.left > 0) continue;
      // The thread that finishes an item's last chunk must see the results of the others. The
      // counters are updated once for all heads, since the atomics wait for pending stores.
      for (int64_t i = now.first_item; i <= now.item; ++i) {
        const std::atomic_ref<int32_t> left(chunks_left_[i]);
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) merge_round(i, turns.round);
      }
    }
  });
}

void SplitAttention::run(ThreadPool& pool, std::span<const AttentionItem> items,
                         ChunkSpace* const* spaces) noexcept {
  items_ = items;
  for (int64_t i = 0; i < n_items_; ++i) {
    const AttentionItem& item = items[static_cast<size_t>(i)];
    work_.begin(item, states_ + i * item_queries_, sums_ + i * item_queries_ * work_.v_stride());
    work_.pack_queries(item, spaces[0]->queries, packed(i));
  }
  for (int64_t round = 0;; ++round) {
    const Turns turns = turns_of(round, pool.size());
    if (turns.all == 0) return;
    run_round(pool, turns, spaces);
  }
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// attention. Work is split into items of (block of rows of one sequence, kv head). An item has all
// query heads that share the kv head, so its keys and values are read once for all of them. It
// processes its chunks in order: dot products, softmax of the chunk, weighted sum of values
// (attention_chunk.h), merge into the running softmax. The heads of a chunk are adjacent in memory,
// so with enough items a thread processes several heads together, chunk by chunk. With few items
// (one row, long context) threads take single chunks instead (attention_split.h). All of these give
// the same bits.
// Read next: attention_walk.h (which entries a row sees), attention-inl.h (the kernels).
#include "engine/cpu/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "engine/cpu/attention/attention_chunk.h"
#include "engine/cpu/attention/attention_split.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/cpu/pack/activations.h"

namespace gen::engine::cpu {
namespace {

/// Queries per item: enough to reuse a chunk from the L1 cache, few enough that their scores and
/// sums stay in the L2 cache.
constexpr int32_t kBlockQueries = 32;
/// The largest number of queries for which chunks are split over threads; bounds the scratch.
constexpr int64_t kMaxSplitQueries = 256;
/// The largest number of queries in a band, which is the heads that a thread processes together:
/// their sums stay in the L2 cache beside two chunks.
constexpr int64_t kBandQueries = 64;
/// Multiply-adds below which the pool is not woken.
constexpr int64_t kSerialWork = 100000;

/// Scratch of a thread, sized for the largest item and band.
struct Workspace {
  ChunkSpace chunks;
  float* packed;             // [band, queries, k_dim]
  float* partial_sums;       // [queries, v_stride]
  SoftmaxPartial* partials;  // [queries]
  float* sums;               // [band, queries, v_stride]
  SoftmaxPartial* states;    // [band, queries]
};

class Attention {
 public:
  Attention(CpuContext& context, const AttendArgs& args) noexcept
      : context_(context), args_(args), work_(args, *context.kernels.attention) {}

  Status run();

 private:
  void choose_blocks() noexcept;
  void carve(Carver& carver) noexcept;
  void list_items() noexcept;
  void run_items() noexcept;
  void pack() noexcept;
  /// One item, or a band: with implied positions, `n` items that are heads of the same rows, chunk
  /// by chunk.
  void whole_item(const AttentionItem& item, Workspace& space) const noexcept;
  void whole_band(const AttentionItem* items, int32_t n, Workspace& space) const noexcept;
  [[nodiscard]] int64_t multiply_adds() const noexcept;

  CpuContext& context_;
  const AttendArgs& args_;
  ChunkAttention work_;
  std::optional<SplitAttention> split_;

  int32_t block_rows_ = 1;
  int64_t n_items_ = 0;
  int64_t item_queries_ = 1;  // largest number of queries per item
  int32_t band_ = 1;          // items (heads of the same rows) that are processed together
  bool heads_first_ = false;  // items of the same rows are adjacent
  AttentionItem* items_ = nullptr;
  Workspace* spaces_ = nullptr;
  ChunkSpace** chunk_spaces_ = nullptr;
  Rows out_;
};

int64_t Attention::multiply_adds() const noexcept {
  int64_t total = 0;
  for (const SequenceRows& sequence : args_.sequences) {
    total += int64_t{sequence.n_rows} * (sequence.first_entry + sequence.n_rows);
  }
  return total * args_.n_heads * (args_.k_dim + args_.v_dim);
}

void Attention::choose_blocks() noexcept {
  const int32_t threads = context_.pool.size();
  int64_t rows = 0;
  int32_t max_rows = 0;
  bool plain = true;
  for (const SequenceRows& sequence : args_.sequences) {
    rows += sequence.n_rows;
    max_rows = std::max(max_rows, sequence.n_rows);
    plain = plain && implied_positions(sequence);
  }
  const auto count = [&](int32_t block) {
    int64_t items = 0;
    for (const SequenceRows& sequence : args_.sequences) {
      const int32_t own = implied_positions(sequence) ? block : 1;
      items += (sequence.n_rows + own - 1) / own;
    }
    return items * args_.n_kv_heads;
  };
  block_rows_ = std::clamp(kBlockQueries / work_.group(), 1, std::max(max_rows, 1));
  while (block_rows_ > 1 && count(block_rows_) < int64_t{4} * threads) {
    block_rows_ = (block_rows_ + 1) / 2;
  }
  n_items_ = count(block_rows_);
  item_queries_ = int64_t{block_rows_} * work_.group();
  if (plain && threads > 1 && n_items_ < int64_t{4} * threads &&
      rows * args_.n_heads <= kMaxSplitQueries) {
    heads_first_ = true;
    split_.emplace(work_, args_.n_kv_heads, n_items_, item_queries_);
    return;
  }
  // The heads of a chunk are adjacent in memory, so a band has as many as leave enough bands for
  // each thread. Several blocks of rows process one head after another instead.
  for (int32_t heads = 2; max_rows <= block_rows_ && heads * item_queries_ <= kBandQueries;
       ++heads) {
    if (args_.n_kv_heads % heads == 0 && n_items_ / heads >= int64_t{2} * threads) band_ = heads;
  }
  heads_first_ = band_ > 1;
}

void Attention::list_items() noexcept {
  AttentionItem* next = items_;
  for (const SequenceRows& sequence : args_.sequences) {
    const int32_t block = implied_positions(sequence) ? block_rows_ : 1;
    const int32_t blocks = (sequence.n_rows + block - 1) / block;
    for (int32_t i = 0; i < blocks * args_.n_kv_heads; ++i) {
      const int32_t row = (heads_first_ ? i / args_.n_kv_heads : i % blocks) * block;
      const int32_t head = heads_first_ ? i % args_.n_kv_heads : i / blocks;
      *next++ = {&sequence, row, std::min(block, sequence.n_rows - row), head};
    }
  }
}

void Attention::whole_item(const AttentionItem& item, Workspace& space) const noexcept {
  const int32_t n_queries = work_.queries(item);
  ChunkSpace& chunks = space.chunks;
  work_.pack_queries(item, chunks.queries, space.packed);
  work_.begin(item, space.states, space.sums);
  RowWalk walk = ChunkAttention::walk_of(item);
  for (bool more = walk.next(chunks.chunk); more; std::swap(chunks.chunk, chunks.next_chunk)) {
    more = walk.next(chunks.next_chunk);
    if (more) look_ahead(chunks.chunk, *chunks.next_chunk);
    work_.partial(item, walk, space.packed, chunks, space.partials, space.partial_sums);
    work_.kernels().merge(space.states, space.sums, space.partials, space.partial_sums,
                          work_.v_stride(), n_queries, args_.v_dim);
  }
  for (int32_t j = 0; j < n_queries; ++j) {
    work_.kernels().finish(space.states[j], space.sums + j * work_.v_stride(),
                           work_.out_row(item, j), args_.v_dim);
  }
}

void Attention::whole_band(const AttentionItem* items, int32_t n, Workspace& space) const noexcept {
  const AttentionItem& first = items[0];
  ChunkSpace& chunks = space.chunks;
  const int32_t n_queries = work_.queries(first);
  const int64_t packed_floats = int64_t{n_queries} * args_.k_dim;
  for (int32_t i = 0; i < n; ++i) {
    work_.begin(items[i], space.states + i * n_queries,
                space.sums + i * n_queries * work_.v_stride());
    work_.pack_queries(items[i], chunks.queries, space.packed + i * packed_floats);
  }
  RowWalk walk = ChunkAttention::walk_of(first);
  const int64_t units = walk.n_chunks() * n;
  const auto chunk_of = [&](int64_t unit, AttentionChunk* chunk) {
    walk.turn_to(items[unit % n].kv_head);
    walk.chunk(unit / n, chunk);
  };
  chunk_of(0, chunks.chunk);
  for (int64_t unit = 0; unit < units; ++unit, std::swap(chunks.chunk, chunks.next_chunk)) {
    if (unit + 1 < units) {
      chunk_of(unit + 1, chunks.next_chunk);
      look_ahead(chunks.chunk, *chunks.next_chunk);
    }
    const int64_t at = unit % n;
    work_.partial(items[at], walk, space.packed + at * packed_floats, chunks, space.partials,
                  space.partial_sums);
    work_.kernels().merge(space.states + at * n_queries,
                          space.sums + at * n_queries * work_.v_stride(), space.partials,
                          space.partial_sums, work_.v_stride(), n_queries, args_.v_dim);
  }
  for (int32_t j = 0; j < n * n_queries; ++j) {
    work_.kernels().finish(space.states[j], space.sums + j * work_.v_stride(),
                           work_.out_row(items[j / n_queries], j % n_queries), args_.v_dim);
  }
}

void Attention::run_items() noexcept {
  const int64_t n_bands = n_items_ / band_;
  const auto whole = [&](int64_t band, Workspace& space) {
    const AttentionItem& first = items_[band * band_];
    if (implied_positions(*first.sequence)) {
      whole_band(&first, band_, space);
    } else {
      for (int32_t i = 0; i < band_; ++i) whole_item((&first)[i], space);
    }
  };
  if (context_.pool.size() == 1 || n_bands == 1 || multiply_adds() < kSerialWork) {
    for (int64_t i = 0; i < n_bands; ++i) whole(i, spaces_[0]);
    return;
  }
  std::atomic<int64_t> taken{0};
  context_.pool.share([&](int32_t index, int32_t) {
    for (;;) {
      const int64_t i = n_bands - 1 - taken.fetch_add(1, std::memory_order_relaxed);
      if (i < 0) return;
      whole(i, spaces_[index]);
    }
  });
}

void Attention::carve(Carver& carver) noexcept {
  const int32_t threads = context_.pool.size();
  items_ = carver.take<AttentionItem>(n_items_);
  out_ = args_.out;
  if (out_.data == nullptr) {
    const int64_t rows = args_.q.rows;
    const int64_t cols = int64_t{args_.n_heads} * args_.v_dim;
    out_ = {carver.take<float>(rows * padded_floats(cols)), rows, cols, padded_floats(cols)};
  }
  work_.set_out(out_);
  spaces_ = carver.take<Workspace>(threads);
  chunk_spaces_ = carver.take<ChunkSpace*>(threads);
  const int64_t queries = band_ * item_queries_;
  for (int32_t thread = 0; thread < threads; ++thread) {
    Workspace space;
    space.chunks = work_.take_space(carver, item_queries_);
    space.packed = carver.take<float>(queries * args_.k_dim);
    space.partial_sums = carver.take<float>(item_queries_ * work_.v_stride());
    space.partials = carver.take<SoftmaxPartial>(item_queries_);
    space.sums = carver.take<float>(queries * work_.v_stride());
    space.states = carver.take<SoftmaxPartial>(queries);
    if (carver.counts_only()) continue;
    spaces_[thread] = space;
    chunk_spaces_[thread] = &spaces_[thread].chunks;
  }
  if (split_) split_->take_memory(carver);
}

void Attention::pack() noexcept {
  const auto pack_range = [&](int64_t first, int64_t n) {
    parallel_rows(context_, n, args_.packed.cols, [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t t = first + begin; t < first + end; ++t) {
        pack_row(context_.kernels, out_.row(t), args_.packed, t);
      }
    });
  };
  // Adjacent rows form one range, so that many sequences of one row are split over threads.
  int64_t first = 0;
  int64_t n = 0;
  for (const SequenceRows& sequence : args_.sequences) {
    if (sequence.first_row != first + n) {
      pack_range(first, n);
      first = sequence.first_row;
      n = 0;
    }
    n += sequence.n_rows;
  }
  pack_range(first, n);
}

Status Attention::run() {
  choose_blocks();
  Carver count(nullptr);
  carve(count);
  std::byte* memory = nullptr;
  GEN_TRY(context_.stream.scratch(count.used(), &memory));
  if (context_.dry_run) return {};
  Carver carver(memory);
  carve(carver);
  list_items();

  if (split_ && multiply_adds() >= kSerialWork) {
    split_->run(context_.pool, {items_, static_cast<size_t>(n_items_)}, chunk_spaces_);
  } else {
    run_items();
  }
  if (args_.packed.data != nullptr) pack();
  return {};
}

}  // namespace

Status run(CpuContext& context, const AttentionArgs& args) {
  AttendArgs own;
  own.q = context.at(args.q);
  own.out = context.at(args.out);
  own.packed = context.at(args.packed);
  own.n_heads = args.n_heads;
  own.n_kv_heads = args.n_kv_heads;
  own.k_dim = args.k_dim;
  own.v_dim = args.v_dim;
  own.scale = args.scale;
  own.soft_cap = args.soft_cap;
  own.sinks = context.at(args.sinks);
  own.sequences = context.sequences(args.layer, args.sequences, args.n_sequences);
  return attend(context, own);
}

Status attend(CpuContext& context, const AttendArgs& args) {
  for (const SequenceRows& sequence : args.sequences) {
    GEN_ASSERT(sequence.view.kv_heads == args.n_kv_heads);
    GEN_ASSERT(sequence.first_entry + sequence.n_rows <= sequence.view.entries);
  }
  GEN_ASSERT(args.n_kv_heads > 0 && args.n_heads % args.n_kv_heads == 0);
  return Attention(context, args).run();
}

}  // namespace gen::engine::cpu

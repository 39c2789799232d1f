// SPDX-License-Identifier: Apache-2.0
// run_attention. Work is cut into items of (block of rows of one sequence, kv head); all query
// heads that share the kv head take part, so its keys and values are read once for them. An item
// walks its chunks in order: dot products, softmax of the chunk, weighted sum of values, merge into
// the running softmax. Heads of the same rows lie side by side in memory, so where there are enough
// items a thread walks several of them chunk by chunk. With few items (one row, long context)
// threads take single chunks instead and whoever finishes an item merges its parts in chunk order.
// All of this gives the same bits.
// Read next: attention_walk.h (which entries a row sees), attention-inl.h (the kernels).
#include "engine/cpu/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/attention-inl.h"
#include "engine/cpu/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/attention-inl.h"

#include <algorithm>
#include <atomic>

#include "engine/cpu/activations.h"
#include "engine/cpu/attention_walk.h"
#include "engine/cpu/ops_run.h"
#include "engine/cpu/parallel_rows.h"

namespace gen::engine::cpu {

const AttentionKernels* attention_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kAttention);
}

namespace {

/// Queries of an item: enough to reuse a chunk from the first-level cache, few enough that their
/// scores and sums stay in the second.
constexpr int32_t kBlockQueries = 32;
/// Sums that a round of split work holds, in floats: it bounds the scratch. A round has at least
/// kLeastRoundChunks chunks.
constexpr int64_t kRoundFloats = int64_t{1} << 17;
constexpr int64_t kLeastRoundChunks = 16;
constexpr int64_t kMostSplitQueries = 256;
/// Tiles that are unpacked at a time: enough for the kernels' tiles, few enough that they stay in
/// the first-level cache.
constexpr int32_t kUnpackTiles = 4;
/// Most queries of a band, heads whose chunks a thread takes in turn: their sums stay in the
/// second-level cache beside two chunks.
constexpr int64_t kBandQueries = 64;
/// Multiply-adds below which the pool is not woken.
constexpr int64_t kSerialWork = 100000;

struct Item {
  const SequenceRows* sequence;
  int32_t row;   // first row within the sequence
  int32_t rows;  // of this item
  int32_t kv_head;
};

constexpr int64_t padded(int64_t floats) { return (floats + kLanes - 1) / kLanes * kLanes; }

/// Hands out 64-byte aligned pieces of one block of scratch; without a block it only counts.
class Carver {
 public:
  explicit Carver(std::byte* memory) noexcept : memory_(memory) {}
  template <typename T>
  T* take(int64_t count) noexcept {
    auto* piece = memory_ != nullptr ? reinterpret_cast<T*>(memory_ + used_) : nullptr;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
  [[nodiscard]] size_t used() const noexcept { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

/// What a thread works in; sizes are for the largest item.
struct Workspace {
  AttentionChunk* chunk;
  AttentionChunk* next_chunk;
  float* unpacked;        // kUnpackTiles tiles
  const float** queries;  // [queries]
  float* packed;          // [band, queries, k_dim]
  SlotRange* seen;        // [queries] of a chunk
  float* scores;          // [queries, kAttentionChunk]
  float* part_sums;       // [queries, padded v_dim]
  SoftmaxPart* parts;     // [queries]
  float* sums;            // [queries, padded v_dim]
  SoftmaxPart* states;    // [queries]
};

/// Asks the second-level cache for what is needed next; see kFetchLevel in attention-inl.h.
void fetch(const std::byte* from, size_t bytes) noexcept {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
}

class Attention {
 public:
  Attention(CpuContext& context, const AttentionArgs& args) noexcept
      : context_(context),
        args_(args),
        kernels_(*context.kernels.attention),
        group_(args.n_heads / args.n_kv_heads),
        v_stride_(padded(args.v_dim)) {}

  Status run();

 private:
  void choose_blocks() noexcept;
  void list_items() noexcept;
  void run_items() noexcept;
  void run_split() noexcept;

  /// Item by item, or where positions are implied chunk by chunk over all `n` items, the heads of
  /// the same rows.
  void whole_item(const Item& item, Workspace& space) const noexcept;
  void whole_band(const Item* items, int32_t n, Workspace& space) const noexcept;
  /// Scores, softmax and weighted sums of one chunk for all queries of the item.
  void chunk_part(const Item& item, const RowWalk& walk, const float* packed, Workspace& space,
                  SoftmaxPart* parts, float* part_sums) const noexcept;
  void weighted_sums(const Item& item, const Workspace& space, float* part_sums) const noexcept;
  /// Calls use(dots, weighted, run, stride), the kernels and what they can read of a run: the run
  /// itself, or pieces of it unpacked one after another.
  template <typename Use>
  void readable(const KvSide& side, const KvRun& run, int32_t n_queries, float* unpacked,
                Use use) const noexcept;
  [[nodiscard]] int64_t unpacked_floats() const noexcept;
  void pack_queries(const Item& item, const float** queries, float* packed) const noexcept;
  /// Split work: chunks of a round, for heads [first, n_kv_heads) of the same rows.
  struct Turns {
    int64_t round;
    int64_t all;
    int64_t whole;  // so many are taken with all their heads, the others head by head
  };
  struct Unit {
    int64_t item;
    int64_t chunk;       // of the round
    int32_t left;        // heads that follow
    int64_t first_item;  // of those that were taken together
  };
  [[nodiscard]] Turns turns_of(int64_t round) const noexcept;
  /// The thread's next unit, or false.
  bool take(const Turns& turns, std::atomic<int64_t>& taken, Unit* unit) const noexcept;
  void merge_round(int64_t item_index, int64_t round) const noexcept;
  [[nodiscard]] int64_t round_chunks(int64_t item_index, int64_t round) const noexcept {
    const int64_t left = walk_of(items_[item_index]).n_chunks() - round * round_chunks_;
    return std::clamp<int64_t>(left, 0, round_chunks_);
  }
  [[nodiscard]] float* item_packed(int64_t item_index) const noexcept {
    return items_packed_ + item_index * item_queries_ * args_.k_dim;
  }
  static RowWalk walk_of(const Item& item) noexcept {
    return {*item.sequence, item.row, item.rows, item.kv_head};
  }
  [[nodiscard]] float* out_row(const Item& item, int32_t query) const noexcept;
  [[nodiscard]] int64_t multiply_adds() const noexcept;

  CpuContext& context_;
  const AttentionArgs& args_;
  const AttentionKernels& kernels_;
  const int32_t group_;     // query heads of a kv head
  const int64_t v_stride_;  // floats of a row of sums

  int32_t block_rows_ = 1;
  int64_t n_items_ = 0;
  int64_t item_queries_ = 1;  // most queries of an item
  int32_t band_ = 1;          // items, heads of the same rows, that are worked on together
  bool heads_first_ = false;  // items of the same rows follow one another
  bool split_ = false;
  Item* items_ = nullptr;
  Workspace* spaces_ = nullptr;
  MatrixView out_;
  int64_t round_chunks_ = 0;
  float* items_packed_ = nullptr;   // [items, queries, k_dim]
  int32_t* chunks_left_ = nullptr;  // [items] of the round
  // Split work: per item, chunk of the round and query.
  SoftmaxPart* round_parts_ = nullptr;
  float* round_sums_ = nullptr;
  SoftmaxPart* item_states_ = nullptr;
  float* item_sums_ = nullptr;
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
  int32_t most_rows = 0;
  bool plain = true;
  for (const SequenceRows& sequence : args_.sequences) {
    rows += sequence.n_rows;
    most_rows = std::max(most_rows, sequence.n_rows);
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
  block_rows_ = std::clamp(kBlockQueries / group_, 1, std::max(most_rows, 1));
  while (block_rows_ > 1 && count(block_rows_) < int64_t{4} * threads) {
    block_rows_ = (block_rows_ + 1) / 2;
  }
  n_items_ = count(block_rows_);
  item_queries_ = int64_t{block_rows_} * group_;
  split_ = plain && threads > 1 && n_items_ < int64_t{4} * threads &&
           rows * args_.n_heads <= kMostSplitQueries;
  if (split_) {
    heads_first_ = true;
    round_chunks_ = std::max(kLeastRoundChunks, kRoundFloats / (n_items_ * item_queries_ * v_stride_));
    return;
  }
  // Heads of the same rows lie side by side in memory; as many together as leave each thread
  // enough bands. Several blocks of rows go one after another through a head instead.
  for (int32_t heads = 2; most_rows <= block_rows_ && heads * item_queries_ <= kBandQueries;
       ++heads) {
    if (args_.n_kv_heads % heads == 0 && n_items_ / heads >= int64_t{2} * threads) band_ = heads;
  }
  heads_first_ = band_ > 1;
}

void Attention::list_items() noexcept {
  Item* next = items_;
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

void Attention::pack_queries(const Item& item, const float** queries,
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

float* Attention::out_row(const Item& item, int32_t query) const noexcept {
  const int64_t row = int64_t{item.sequence->first_row} + item.row + query / group_;
  const int64_t head = int64_t{item.kv_head} * group_ + query % group_;
  return out_.data + row * out_.stride + head * args_.v_dim;
}

int64_t Attention::unpacked_floats() const noexcept {
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
void Attention::readable(const KvSide& side, const KvRun& run, int32_t n_queries, float* unpacked,
                         Use use) const noexcept {
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

void Attention::chunk_part(const Item& item, const RowWalk& walk, const float* packed,
                           Workspace& space, SoftmaxPart* parts, float* part_sums) const noexcept {
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
  kernels_.softmax(space.scores, space.seen, n_queries, rule, parts);
  weighted_sums(item, space, part_sums);
}

void Attention::weighted_sums(const Item& item, const Workspace& space,
                              float* part_sums) const noexcept {
  const KvView& view = item.sequence->view;
  const AttentionChunk& chunk = *space.chunk;
  const int32_t n_queries = item.rows * group_;
  std::memset(part_sums, 0, static_cast<size_t>(n_queries * v_stride_) * sizeof(float));
  const auto tile_sums = [&](auto weighted, const KvRun& whole, size_t stride, int32_t j,
                             int32_t n) {
    const auto over = [&](int32_t first, int32_t rows, SlotRange range) {
      const KvRun run = clip(whole, range, stride);
      if (run.count == 0) return;
      weighted(space.scores + first * kAttentionChunk, rows, args_.v_dim, run, stride,
               part_sums + first * v_stride_, v_stride_);
    };
    SlotRange shared = {0, kAttentionChunk};
    for (int32_t i = j; i < j + n; ++i) {
      shared = {std::max(shared.begin, space.seen[i].begin),
                std::min(shared.end, space.seen[i].end)};
    }
    if (shared.begin >= shared.end) shared = {kAttentionChunk, kAttentionChunk};
    // A query never touches an entry it does not see, whatever lies there; so where the rows of a
    // tile differ, each goes alone, before and after the slots they share.
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

void Attention::whole_item(const Item& item, Workspace& space) const noexcept {
  const int32_t n_queries = item.rows * group_;
  pack_queries(item, space.queries, space.packed);
  for (int32_t j = 0; j < n_queries; ++j) {
    space.states[j] = {-std::numeric_limits<float>::infinity(), 0.0F};
  }
  RowWalk walk = walk_of(item);
  for (bool more = walk.next(space.chunk); more; std::swap(space.chunk, space.next_chunk)) {
    more = walk.next(space.next_chunk);
    if (more) look_ahead(space.chunk, *space.next_chunk);
    chunk_part(item, walk, space.packed, space, space.parts, space.part_sums);
    for (int32_t j = 0; j < n_queries; ++j) {
      kernels_.merge(&space.states[j], space.sums + j * v_stride_, space.parts + j, 0,
                     space.part_sums + j * v_stride_, 0, 1, args_.v_dim);
    }
  }
  for (int32_t j = 0; j < n_queries; ++j) {
    kernels_.finish(space.states[j], space.sums + j * v_stride_, out_row(item, j), args_.v_dim);
  }
}

void Attention::whole_band(const Item* items, int32_t n, Workspace& space) const noexcept {
  const Item& first = items[0];
  const int32_t n_queries = first.rows * group_;
  for (int32_t j = 0; j < n * n_queries; ++j) {
    space.states[j] = {-std::numeric_limits<float>::infinity(), 0.0F};
  }
  const int64_t packed_floats = int64_t{n_queries} * args_.k_dim;
  for (int32_t i = 0; i < n; ++i) {
    pack_queries(items[i], space.queries, space.packed + i * packed_floats);
  }
  RowWalk walk = walk_of(first);
  const int64_t units = walk.n_chunks() * n;
  const auto chunk_of = [&](int64_t unit, AttentionChunk* chunk) {
    walk.turn_to(items[unit % n].kv_head);
    walk.chunk(unit / n, chunk);
  };
  chunk_of(0, space.chunk);
  for (int64_t unit = 0; unit < units; ++unit, std::swap(space.chunk, space.next_chunk)) {
    if (unit + 1 < units) {
      chunk_of(unit + 1, space.next_chunk);
      look_ahead(space.chunk, *space.next_chunk);
    }
    const auto at = static_cast<int32_t>(unit % n);
    chunk_part(items[at], walk, space.packed + at * packed_floats, space, space.parts,
               space.part_sums);
    for (int32_t j = 0; j < n_queries; ++j) {
      const int64_t state = int64_t{at} * n_queries + j;
      kernels_.merge(&space.states[state], space.sums + state * v_stride_, space.parts + j, 0,
                     space.part_sums + j * v_stride_, 0, 1, args_.v_dim);
    }
  }
  for (int32_t j = 0; j < n * n_queries; ++j) {
    kernels_.finish(space.states[j], space.sums + j * v_stride_,
                    out_row(items[j / n_queries], j % n_queries), args_.v_dim);
  }
}

void Attention::run_items() noexcept {
  const int64_t n_bands = n_items_ / band_;
  const auto whole = [&](int64_t band, Workspace& space) {
    const Item& first = items_[band * band_];
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
  context_.pool.run([&](int32_t thread) {
    for (;;) {
      const int64_t i = n_bands - 1 - taken.fetch_add(1, std::memory_order_relaxed);
      if (i < 0) return;
      whole(i, spaces_[thread]);
    }
  });
}

Attention::Turns Attention::turns_of(int64_t round) const noexcept {
  Turns turns = {round, 0, 0};
  for (int64_t i = 0; i < n_items_; i += args_.n_kv_heads) turns.all += round_chunks(i, round);
  // Heads of a chunk lie side by side, so a thread takes all of them in turn, but for the last
  // chunks, so that threads finish together.
  const int64_t last = int64_t{2} * context_.pool.size();
  turns.whole = turns.all < 2 * last ? 0 : turns.all - last;
  return turns;
}

bool Attention::take(const Turns& turns, std::atomic<int64_t>& taken, Unit* unit) const noexcept {
  const int32_t heads = args_.n_kv_heads;
  if (unit->left > 0) {
    ++unit->item;
    --unit->left;
    return true;
  }
  const int64_t ticket = taken.fetch_add(1, std::memory_order_relaxed);
  const int64_t single = ticket - turns.whole;
  int64_t turn = single < 0 ? ticket : turns.whole + single / heads;
  if (turn >= turns.all) return false;
  for (int64_t first = 0;; first += heads) {
    const int64_t chunks = round_chunks(first, turns.round);
    if (turn < chunks) {
      const int64_t item = first + (single < 0 ? 0 : single % heads);
      *unit = {item, turn, single < 0 ? heads - 1 : 0, item};
      return true;
    }
    turn -= chunks;
  }
}

void Attention::merge_round(int64_t item_index, int64_t round) const noexcept {
  const Item& item = items_[item_index];
  const bool last = (round + 1) * round_chunks_ >= walk_of(item).n_chunks();
  for (int32_t j = 0; j < item.rows * group_; ++j) {
    const int64_t state = item_index * item_queries_ + j;
    const int64_t part = item_index * round_chunks_ * item_queries_ + j;
    float* sums = item_sums_ + state * v_stride_;
    kernels_.merge(&item_states_[state], sums, round_parts_ + part, item_queries_,
                   round_sums_ + part * v_stride_, item_queries_ * v_stride_,
                   static_cast<int32_t>(round_chunks(item_index, round)), args_.v_dim);
    if (last) kernels_.finish(item_states_[state], sums, out_row(item, j), args_.v_dim);
  }
}

void Attention::run_split() noexcept {
  for (int64_t i = 0; i < n_items_; ++i) {
    pack_queries(items_[i], spaces_[0].queries, item_packed(i));
  }
  for (int64_t i = 0; i < n_items_ * item_queries_; ++i) {
    item_states_[i] = {-std::numeric_limits<float>::infinity(), 0.0F};
  }
  for (int64_t round = 0;; ++round) {
    const Turns turns = turns_of(round);
    if (turns.all == 0) return;
    for (int64_t i = 0; i < n_items_; ++i) {
      chunks_left_[i] = static_cast<int32_t>(round_chunks(i, round));
    }
    std::atomic<int64_t> taken{0};
    context_.pool.run([&](int32_t thread) {
      Workspace& space = spaces_[thread];
      Unit unit = {};
      // A thread knows its next chunk before it works on one, so that it can ask for it meanwhile.
      const auto next = [&](AttentionChunk* chunk) {
        if (!take(turns, taken, &unit)) return false;
        walk_of(items_[unit.item]).chunk(round * round_chunks_ + unit.chunk, chunk);
        return true;
      };
      for (bool more = next(space.chunk); more; std::swap(space.chunk, space.next_chunk)) {
        const Unit now = unit;
        const Item& item = items_[now.item];
        const int64_t part = (now.item * round_chunks_ + now.chunk) * item_queries_;
        more = next(space.next_chunk);
        if (more) look_ahead(space.chunk, *space.next_chunk);
        chunk_part(item, walk_of(item), item_packed(now.item), space, round_parts_ + part,
                   round_sums_ + part * v_stride_);
        if (now.left > 0) continue;
        // Whoever finishes an item's last chunk sees what the others wrote. Once for all heads,
        // since a thread waits here for what it has under way.
        for (int64_t i = now.first_item; i <= now.item; ++i) {
          const std::atomic_ref<int32_t> left(chunks_left_[i]);
          if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) merge_round(i, round);
        }
      }
    });
  }
}

Status Attention::run() {
  choose_blocks();
  const int32_t threads = context_.pool.size();
  const auto carve = [&](Carver& carver) {
    items_ = carver.take<Item>(n_items_);
    out_ = args_.out;
    if (out_.data == nullptr) {
      const int64_t rows = args_.q.rows;
      const int64_t cols = int64_t{args_.n_heads} * args_.v_dim;
      out_ = {carver.take<float>(rows * padded(cols)), rows, cols, padded(cols)};
    }
    spaces_ = carver.take<Workspace>(threads);
    for (int32_t thread = 0; thread < threads; ++thread) {
      Workspace space;
      space.chunk = carver.take<AttentionChunk>(1);
      space.next_chunk = carver.take<AttentionChunk>(1);
      space.unpacked = carver.take<float>(unpacked_floats());
      space.queries = carver.take<const float*>(item_queries_);
      space.packed = carver.take<float>(band_ * item_queries_ * args_.k_dim);
      space.seen = carver.take<SlotRange>(item_queries_);
      space.scores = carver.take<float>(item_queries_ * kAttentionChunk);
      space.part_sums = carver.take<float>(item_queries_ * v_stride_);
      space.parts = carver.take<SoftmaxPart>(item_queries_);
      space.sums = carver.take<float>(band_ * item_queries_ * v_stride_);
      space.states = carver.take<SoftmaxPart>(band_ * item_queries_);
      if (spaces_ != nullptr) spaces_[thread] = space;
    }
    if (split_) {
      const int64_t parts = n_items_ * round_chunks_ * item_queries_;
      items_packed_ = carver.take<float>(n_items_ * item_queries_ * args_.k_dim);
      chunks_left_ = carver.take<int32_t>(n_items_);
      round_parts_ = carver.take<SoftmaxPart>(parts);
      round_sums_ = carver.take<float>(parts * v_stride_);
      item_states_ = carver.take<SoftmaxPart>(n_items_ * item_queries_);
      item_sums_ = carver.take<float>(n_items_ * item_queries_ * v_stride_);
    }
  };
  Carver count(nullptr);
  carve(count);
  std::byte* memory = nullptr;
  GEN_TRY(context_.stream.scratch(count.used(), &memory));
  if (context_.dry_run) return {};
  Carver carver(memory);
  carve(carver);
  list_items();

  if (split_ && multiply_adds() >= kSerialWork) {
    run_split();
  } else {
    run_items();
  }
  if (args_.packed.data != nullptr) {
    parallel_rows(context_, args_.packed.rows, args_.packed.cols,
                  [&](int64_t begin, int64_t end, int32_t) {
                    for (int64_t t = begin; t < end; ++t) {
                      pack_row(context_.kernels, out_.data + t * out_.stride, args_.packed, t);
                    }
                  });
  }
  return {};
}

}  // namespace

Status run_attention(CpuContext& context, const AttentionArgs& args) {
  for (const SequenceRows& sequence : args.sequences) {
    if (sequence.view.key_form == KeyForm::kUnrotated) {
      return error(Code::kUnsupported, "the CPU engine does not read keys of form %d",
                   static_cast<int>(sequence.view.key_form));
    }
    GEN_ASSERT(sequence.view.kv_heads == args.n_kv_heads);
    GEN_ASSERT(sequence.first_entry + sequence.n_rows <= sequence.view.entries);
  }
  GEN_ASSERT(args.n_kv_heads > 0 && args.n_heads % args.n_kv_heads == 0);
  return Attention(context, args).run();
}

}  // namespace gen::engine::cpu

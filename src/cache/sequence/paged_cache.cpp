// SPDX-License-Identifier: Apache-2.0
// See paged_cache.h. A plan allocates all blocks that it needs before anything is written, and
// copies the last block if other sequences hold it. A dropped plan leaves its blocks to the next
// one, which uses or releases them.
#include "cache/sequence/paged_cache.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "cache/sequence/layer_bins.h"
#include "cache/sequence/path_moves.h"
#include "cache/sequence/window_cache.h"
#include "cache/state/snapshot_list.h"

namespace gen::cache {
namespace {

/// Bytes of a block of a model without keys and values. Its blocks only say which tokens a sequence
/// has; prefix caches keep snapshots of states beside them. About as much as the pool's own record
/// of a block takes, so that a budget bounds their number.
constexpr size_t kEmptyBlockBytes = 64;

/// The blocks of windows that a row after length() sees, so that a sequence can be cut back to
/// there. A sequence may write on in its last block: entries after length() do not count.
class WindowPoint final : public StateSnapshot {
 public:
  struct Held {
    size_t index;  // piece * bins + bin
    Block* block;
  };

  /// Takes a reference to each block.
  WindowPoint(std::shared_ptr<CachePool> pool, int32_t length)
      : pool_(std::move(pool)), length_(length), from_(pool_->reaches().size()) {}
  WindowPoint(const WindowPoint&) = delete;
  WindowPoint& operator=(const WindowPoint&) = delete;
  ~WindowPoint() override {
    for (const Held& held : blocks_) {
      const Status released = pool_->blocks().release(held.block);
      GEN_ASSERT(released.ok());
    }
  }
  /// The first entry of a bin that its blocks have: a restored state may begin within a block.
  [[nodiscard]] int32_t from(size_t bin) const noexcept { return from_[bin]; }
  void set_from(size_t bin, int32_t entry) noexcept { from_[bin] = entry; }
  /// std::bad_alloc.
  void hold(size_t index, Block* block) {
    blocks_.push_back({index, block});
    const Status retained = pool_->blocks().retain(block);
    GEN_ASSERT(retained.ok());
  }
  [[nodiscard]] std::span<const Held> blocks() const noexcept { return blocks_; }
  [[nodiscard]] bool holds(size_t index, const Block* block) const noexcept {
    const auto same = [&](const Held& held) { return held.index == index && held.block == block; };
    return std::any_of(blocks_.begin(), blocks_.end(), same);
  }

  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  /// As one, so that a budget is a number of points.
  [[nodiscard]] size_t bytes() const noexcept override { return 1; }
  [[nodiscard]] const void* memory() const noexcept override { return this; }

 private:
  std::shared_ptr<CachePool> pool_;
  int32_t length_;
  std::vector<int32_t> from_;  // by bin
  std::vector<Held> blocks_;   // ascending
};

/// Invariant: blocks_ hold at least the committed entries; tables_ have the addresses of their
/// bytes. Blocks that no row will see are null, and come before all others of their bin.
class PagedCache final : public KvCache, public SharesBlocks {
 public:
  PagedCache(std::shared_ptr<CachePool> pool, int32_t capacity)
      : pool_(std::move(pool)),
        capacity_(capacity),
        bins_(pool_->reaches().size()),
        parts_(pool_->blocks().parts()),
        moves_(pool_->tables()),
        tables_(pool_->tables()),
        held_from_(bins_) {
    for (const int32_t reach : pool_->reaches()) windows_ = windows_ || reach >= 0;
    points_.set_budget(static_cast<size_t>(pool_->window_points()));
    traits_.kind = pool_->format().name();
    traits_.lossy = pool_->format().lossy();
    traits_.layout = "paged";
    traits_.pooled = true;
    traits_.keeps_paths = true;
    traits_.cuts_exactly = !windows_;
    traits_.bytes_per_entry = pool_->bytes_per_entry();
  }
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;
  ~PagedCache() override { keep_pieces(0); }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return pool_->layers();
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }

  [[nodiscard]] int32_t keeps_behind(int32_t layer) const noexcept override {
    const int32_t reach = reach_of(bin_of_layer(layer));
    return reach < 0 ? kAllEntries : reach;
  }
  [[nodiscard]] int32_t first_held(int32_t layer) const noexcept override {
    return std::min(held_from_[bin_of_layer(layer)], length());
  }
  [[nodiscard]] int32_t saves_from(int32_t layer) const noexcept override {
    const size_t bin = bin_of_layer(layer);
    if (reach_of(bin) < 0) return 0;
    // As any cache of windows needs it, if it is there.
    const int32_t reach = window_reach(layers()[static_cast<size_t>(layer)]);
    const int32_t from = first_kept(length(), reach + engine::kKvTile - 1);
    return from >= held_from_[bin] ? from : first_seen(bin, length());
  }
  void set_first_held(int32_t layer, int32_t entry) noexcept override {
    const size_t bin = bin_of_layer(layer);
    if (reach_of(bin) < 0) return;
    give_back(bin, entry);
    held_from_[bin] = std::max(held_from_[bin], entry);
  }

  void keep_all() noexcept override {
    GEN_ASSERT(length() == 0 && blocks_.empty());
    windows_ = false;
    traits_.cuts_exactly = true;
  }
  [[nodiscard]] bool wants_points() const noexcept override {
    return windows_ && pool_->window_points() > 0;
  }
  void remember(int32_t n, SnapshotPlace place) noexcept override {
    if (!wants_points() || n < 1 || n > length() || !settled() || !sees_all(n)) return;
    const auto known = points_.entries();
    if (!known.empty() && known.back().snapshot->length() > n) return;
    try {
      points_.reserve(1);
      auto point = std::make_shared<WindowPoint>(pool_, n);
      const int32_t from = std::max(n - std::max(pool_->rewind(), size()), 0);
      for (size_t bin = 0; bin < bins_; ++bin) {
        if (reach_of(bin) < 0) continue;
        const int32_t first = std::max(first_seen(bin, from) / size() * size(), held_from_[bin]);
        point->set_from(bin, first);
        for (auto piece = static_cast<size_t>(first / size()); piece < pieces_of(n); ++piece) {
          point->hold(piece * bins_ + bin, blocks_[piece * bins_ + bin]);
        }
      }
      points_.add(std::move(point), place);
    } catch (...) {  // no memory: a cut evaluates more again
    }
  }

  [[nodiscard]] int32_t room() const noexcept override {
    const size_t more = pool_->blocks().obtainable();
    const size_t copies = this->copies(1);
    if (more < copies) return 0;
    const size_t blocks = more - copies + held_blocks();
    return room_while([&](size_t pieces) { return blocks_for(pieces) <= blocks; });
  }
  [[nodiscard]] bool has_all_room() const noexcept override {
    BlockPool& pool = pool_->blocks();
    return copies(1) == 0 && pool.obtainable() + held_blocks() + blocks_beside() >= pool.capacity();
  }
  [[nodiscard]] bool copies_next() const noexcept override { return copies(1) > 0; }
  /// One bin may need all of them.
  [[nodiscard]] int64_t most_freed() const noexcept override {
    return static_cast<int64_t>(held_blocks() + blocks_beside()) * size();
  }
  [[nodiscard]] bool has_free(int32_t n) const noexcept override {
    const size_t needed = std::max(pieces_of(length() + n), pieces());
    return (needed - pieces()) * bins_ + copies(n) <= pool_->blocks().available();
  }
  [[nodiscard]] int32_t most_room() const noexcept override {
    return room_while([&](size_t pieces) {
      size_t least = 0;
      for (size_t bin = 0; bin < bins_; ++bin) {
        const int32_t reach = reach_of(bin);
        least += reach < 0 ? pieces : std::min(pieces, static_cast<size_t>(reach) / block_size());
      }
      return least <= pool_->blocks().capacity();
    });
  }
  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity_ - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity_, n);
    }
    GEN_TRY(settle());
    const size_t needed = pieces_of(length() + n);
    if (needed < pieces()) keep_pieces(needed);
    std::vector<size_t> shared;  // blocks that other sequences hold and n more entries start in
    if (copies(n) > 0) {
      const size_t last = static_cast<size_t>(length()) / block_size() * bins_;
      for (size_t i = last; i < last + bins_; ++i) {
        if (is_shared(i)) shared.push_back(i);
      }
    }
    std::vector<Block*> fresh((needed - pieces()) * bins_ + shared.size());
    reserve(needed);
    if (fresh.size() > pool_->blocks().available() &&
        fresh.size() > pool_->blocks().obtainable() + given_back_at_most()) {
      return error(Code::kPoolExhausted, "the pool has %zu of %zu blocks free, %zu wanted",
                   pool_->blocks().available(), pool_->blocks().capacity(), fresh.size());
    }
    if (windows_ && n > 0) give_back_unseen(length());
    Status taken = pool_->blocks().allocate(fresh);
    if (taken.code() == Code::kPoolExhausted && !points_.entries().empty()) {
      points_.cut(0);
      taken = pool_->blocks().allocate(fresh);
    }
    GEN_TRY(taken);
    if (!shared.empty()) {
      GivenBack undo(this, fresh);
      GEN_TRY(replace(shared, std::span(fresh).last(shared.size())));
      undo.blocks = {};
      for (size_t i = 0; i < shared.size(); ++i) {
        release(fresh.back());
        fresh.pop_back();
      }
    }
    for (size_t i = 0; i < fresh.size(); ++i) {
      pool_->blocks().set_group(*fresh[i], pool_->group_of(i % bins_));
      push(fresh[i]);
    }
    return CachePlan{length(), n};
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return pool_->kv_layers();
  }
  [[nodiscard]] int32_t parts() const noexcept override {
    return static_cast<int32_t>(pool_->tables());
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t part) const noexcept override {
    return memory_of(static_cast<size_t>(part));
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) override {
    const size_t held = pieces_of(plan.start + plan.count);
    GEN_ASSERT(plan.start == length() && held <= pieces());
    return engine::KvTables{std::span(tables_[static_cast<size_t>(part)]).first(held)};
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(plan.start == length() && pieces_of(plan.start + plan.count) <= pieces());
    for (PathMoves& moves : moves_) moves.note(plan, kept);
    const int32_t end = plan.start + kept.n;
    for (size_t piece = static_cast<size_t>(plan.start) / block_size(); piece < pieces_of(end);
         ++piece) {
      const int32_t written = std::min(end - static_cast<int32_t>(piece) * size(), size());
      for (Block* const block : piece_of(piece)) {
        if (block != nullptr) pool_->blocks().raise_used(*block, written);
      }
    }
    length_ = end;
    if (kept.n < plan.count && settled()) keep_pieces(pieces_of(end));
    if (windows_) give_back_unseen(plan.start);  // remember() may come for any of the pass's rows
  }

  Status truncate(int32_t n) override {
    if (n >= length()) {
      if (settled()) keep_pieces(pieces_of(length()));  // without those of a plan that was dropped
      return {};
    }
    n = std::max(n, 0);
    const bool there = sees_all(n);
    const WindowPoint* const point = there ? nullptr : point_for(n);
    if (!there) n = point != nullptr ? std::min(n, point->length()) : 0;
    if (n > 0) GEN_TRY(settle_before(n));
    for (PathMoves& moves : moves_) moves.clear();
    if (point != nullptr) bring_back(*point);
    length_ = n;
    keep_pieces(pieces_of(length()));
    points_.cut(n);
    const int32_t rest = length() % size();
    if (rest == 0) return {};
    for (Block* const block : piece_of(pieces() - 1)) {
      if (block != nullptr && block->references() == 1) pool_->blocks().set_used(*block, rest);
    }
    return {};
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse use;
    use.resident = (held_blocks() + blocks_beside()) * pool_->blocks().block_bytes();
    use.payload = 0;
    for (size_t table = 0; table < tables_.size(); ++table) {
      const size_t bin = bin_of_table(table);
      const int32_t held = length() - std::min(length(), held_from_[bin]);
      use.payload += static_cast<size_t>(held) * pool_->layout(table).bytes_per_entry();
    }
    use.metadata = sizeof(*this) + blocks_.capacity() * sizeof(blocks_[0]);
    for (const Table& table : tables_) use.metadata += table.capacity() * sizeof(table[0]);
    return use;
  }

  /// With all of its points, before a pass gives blocks back.
  [[nodiscard]] size_t max_resident() const noexcept override {
    if (!windows_) return memory().resident;
    const BlockPool& pool = pool_->blocks();
    size_t blocks = blocks_for(pieces());
    for (const int32_t reach : pool_->reaches()) {
      const auto points = static_cast<size_t>(pool_->window_points());
      if (reach >= 0) blocks += points * std::min(pieces(), window_blocks(reach, 0));
    }
    return std::min(blocks, pool.capacity()) * pool.block_bytes();
  }
  [[nodiscard]] size_t on_device() const noexcept override {
    return memory().resident / pool_->blocks().block_bytes() * bytes_of_block(false);
  }
  [[nodiscard]] size_t max_on_device() const noexcept override {
    return max_resident() / pool_->blocks().block_bytes() * bytes_of_block(false);
  }
  /// Of one sequence and those that hold the same text, such as a prefix cache.
  [[nodiscard]] Taken taken(bool in_host) const noexcept override {
    const BlockPool& pool = pool_->blocks();
    const size_t used = pool.capacity() - pool.available();
    const size_t own = memory().resident / pool.block_bytes();
    const size_t most = used - own + max_resident() / pool.block_bytes();
    const size_t of_text = std::max(pieces() * bins_, used);
    const size_t bytes = bytes_of_block(in_host);
    return {pool.made() * bytes,
            std::max(pool.made(), pool.made_for(std::min(most, of_text))) * bytes};
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_TRY(settle());
    auto copy = std::make_unique<PagedCache>(pool_, capacity_);
    if (!windows_) copy->keep_all();
    const size_t held = pieces_of(length()) * bins_;
    copy->reserve(pieces_of(length()));
    for (size_t i = 0; i < held; ++i) {
      if (blocks_[i] != nullptr) GEN_TRY(pool_->blocks().retain(blocks_[i]));
      copy->push(blocks_[i]);
    }
    copy->held_from_ = held_from_;
    copy->points_ = points_;
    copy->length_ = length();
    return std::unique_ptr<KvCache>(std::move(copy));
  }

  [[nodiscard]] SharesBlocks* sharing() noexcept override { return this; }
  [[nodiscard]] std::span<Block* const> blocks() const noexcept override {
    int32_t settled = length();
    for (const PathMoves& moves : moves_) settled = std::min(settled, moves.settled(length()));
    const size_t pieces =
        settled == length() ? pieces_of(settled) : static_cast<size_t>(settled) / block_size();
    return std::span(blocks_).first(pieces * bins_);
  }

  void forget_points() noexcept override { points_.cut(0); }
  Status adopt(std::span<Block* const> blocks, int32_t positions) override {
    if (positions <= length() || positions > capacity_ ||
        blocks.size() != pieces_of(positions) * bins_) {
      return error(Code::kInvalidArgument,
                   "%zu blocks with %d entries for a cache of %d that holds %d", blocks.size(),
                   positions, capacity_, length());
    }
    std::vector<int32_t> held_from(bins_);
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] == nullptr) {
        held_from[i % bins_] = static_cast<int32_t>(i / bins_ + 1) * size();
      } else if (&blocks[i]->pool() != &pool_->blocks()) {
        return {Code::kState, "a block is not one of the cache's pool"};
      }
    }
    for (size_t bin = 0; bin < bins_; ++bin) {
      if (held_from[bin] <= first_seen(bin, positions)) continue;
      return error(Code::kInvalidArgument, "a block that the rows after %d entries see is missing",
                   positions);
    }
    const std::vector<Block*> taken(blocks.begin(), blocks.end());  // may be the cache's own
    reserve(taken.size() / bins_);
    keep_pieces(0);
    for (PathMoves& moves : moves_) moves.clear();
    for (Block* block : taken) push(block);
    for (size_t bin = 0; bin < bins_; ++bin) give_back(bin, held_from[bin]);  // those before a gap
    length_ = positions;
    return {};
  }

 private:
  /// Releases the blocks when it goes out of scope.
  struct GivenBack {
    GivenBack(PagedCache* cache, std::span<Block* const> taken) noexcept
        : own(cache), blocks(taken) {}
    GivenBack(const GivenBack&) = delete;
    GivenBack& operator=(const GivenBack&) = delete;
    ~GivenBack() {
      for (Block* block : blocks) own->release(block);
    }
    PagedCache* own;
    std::span<Block* const> blocks;
  };

  using Table = std::vector<engine::EnginePtr<std::byte>>;

  /// Those in host memory, or on devices.
  [[nodiscard]] size_t bytes_of_block(bool in_host) const noexcept {
    const BlockPool& pool = pool_->blocks();
    size_t bytes = 0;
    for (size_t part = 0; part < parts_; ++part) {
      if (pool.memory(part).in_host() == in_host) bytes += pool.part_bytes(part);
    }
    return bytes;
  }
  [[nodiscard]] size_t bin_of_table(size_t table) const noexcept { return table / parts_; }
  [[nodiscard]] size_t part_of_table(size_t table) const noexcept { return table % parts_; }
  /// Negative: rows see all.
  [[nodiscard]] int32_t reach_of(size_t bin) const noexcept {
    return windows_ ? pool_->reaches()[bin] : -1;
  }
  [[nodiscard]] size_t bin_of_layer(int32_t layer) const noexcept {
    return bin_of_table(static_cast<size_t>(pool_->kv_layers()[static_cast<size_t>(layer)].part));
  }
  [[nodiscard]] engine::EngineMemory& memory_of(size_t table) const noexcept {
    return pool_->blocks().memory(part_of_table(table));
  }
  /// The entries of a table's layers.
  [[nodiscard]] engine::KvEntries entries_of(size_t table) const noexcept {
    return {pool_->layout(table).kv_layers(), {tables_[table]}};
  }
  [[nodiscard]] bool settled() const noexcept {
    return std::all_of(moves_.begin(), moves_.end(), [](const auto& each) { return each.empty(); });
  }
  /// Finishes pending moves. A table that has been moved is not moved again if another one fails.
  Status settle() {
    for (size_t table = 0; table < tables_.size(); ++table) {
      GEN_TRY(moves_[table].move(memory_of(table), entries_of(table)));
      moves_[table].clear();
    }
    return {};
  }
  void reserve(size_t pieces) {
    blocks_.reserve(pieces * bins_);
    for (Table& table : tables_) table.reserve(pieces);
  }
  void set_address(size_t i) noexcept {
    for (size_t part = 0; part < parts_; ++part) {
      tables_[i % bins_ * parts_ + part][i / bins_] =
          blocks_[i] != nullptr ? blocks_[i]->data(part) : nullptr;
    }
  }
  /// The block after the last one, null if no row will see it. Memory for it must be reserved.
  void push(Block* block) noexcept {
    blocks_.push_back(block);
    const size_t i = blocks_.size() - 1;
    for (size_t part = 0; part < parts_; ++part) {
      tables_[i % bins_ * parts_ + part].emplace_back();
    }
    set_address(i);
  }
  /// How many blocks of the last piece other sequences hold, if `n` more entries start in it.
  [[nodiscard]] size_t copies(int32_t n) const noexcept {
    const size_t last = static_cast<size_t>(length()) / block_size();
    if (n <= 0 || last >= pieces()) return 0;
    size_t shared = 0;
    for (size_t i = last * bins_; i < (last + 1) * bins_; ++i)
      shared += is_shared(i) ? size_t{1} : 0;
    return shared;
  }
  /// Whether anybody else holds a block. The sequence's own points do not read what it writes after
  /// them.
  [[nodiscard]] bool is_shared(size_t i) const noexcept {
    if (blocks_[i] == nullptr) return false;
    int32_t own = 1;
    for (size_t k = 0; k < points_.entries().size(); ++k) {
      if (point(k).holds(i, blocks_[i])) ++own;
    }
    return blocks_[i]->references() > own;
  }
  [[nodiscard]] const WindowPoint& point(size_t i) const noexcept {
    return static_cast<const WindowPoint&>(*points_.entries()[i].snapshot);
  }
  /// Finishes moves out of blocks that a cut to `n` entries releases.
  Status settle_before(int32_t n) {
    if (moves_.size() > 1) return settle();  // all tables, so that none fails alone
    PathMoves left = moves_[0];
    left.cut(n);
    return left.move(engine_memory(0), entries_of(0));
  }
  /// The point that has the windows of as many of the first `n` positions as possible; null if none
  /// has any.
  [[nodiscard]] const WindowPoint* point_for(int32_t n) const noexcept {
    const WindowPoint* best = nullptr;
    int32_t most = 0;
    for (size_t i = 0; i < points_.entries().size(); ++i) {
      const int32_t has = std::min(n, point(i).length());
      if (has > most && sees_all(has, point(i))) {
        best = &point(i);
        most = has;
      }
    }
    return best;
  }
  void bring_back(const WindowPoint& point) noexcept {
    for (size_t bin = 0; bin < bins_; ++bin) {
      if (reach_of(bin) >= 0) held_from_[bin] = point.from(bin);
    }
    for (const WindowPoint::Held& held : point.blocks()) {
      Block*& own = blocks_[held.index];
      if (own != nullptr) continue;
      const Status retained = pool_->blocks().retain(held.block);
      GEN_ASSERT(retained.ok());
      own = held.block;
      set_address(held.index);
    }
  }
  [[nodiscard]] bool sees_all(int32_t n, const WindowPoint& point) const noexcept {
    for (size_t bin = 0; bin < bins_; ++bin) {
      if (reach_of(bin) >= 0 && first_seen(bin, n) < point.from(bin)) return false;
    }
    return true;
  }
  /// Puts copies of blocks of the last piece in their place, and these into `fresh`.
  Status replace(std::span<const size_t> shared, std::span<Block*> fresh) {
    BlockPool& pool = pool_->blocks();
    for (size_t n = 0; n < shared.size(); ++n) {
      for (size_t part = 0; part < pool.parts(); ++part) {
        GEN_TRY(pool.memory(part).copy(fresh[n]->data(part), blocks_[shared[n]]->data(part),
                                       pool.part_bytes(part)));
      }
    }
    for (size_t n = 0; n < shared.size(); ++n) {
      pool.set_group(*fresh[n], pool_->group_of(shared[n] % bins_));
      pool.set_used(*fresh[n], length() % size());
      std::swap(blocks_[shared[n]], fresh[n]);
      set_address(shared[n]);
    }
    return {};
  }
  /// The first entry of a bin that the row after `n` entries sees, down to whole tiles.
  [[nodiscard]] int32_t first_seen(size_t bin, int32_t n) const noexcept {
    const int32_t reach = reach_of(bin);
    return reach < 0 ? 0 : first_kept(n, reach);
  }
  [[nodiscard]] bool sees_all(int32_t n) const noexcept {
    for (size_t bin = 0; bin < bins_; ++bin) {
      if (held_from_[bin] > first_seen(bin, n)) return false;
    }
    return true;
  }
  /// What of its own a plan may give back, or a little more.
  [[nodiscard]] size_t given_back_at_most() const noexcept {
    if (!windows_) return 0;
    size_t blocks = 0;
    for (size_t bin = 0; bin < bins_; ++bin) {
      if (reach_of(bin) < 0) continue;
      const auto end = static_cast<size_t>(first_seen(bin, length())) / block_size();
      const auto begin = static_cast<size_t>(held_from_[bin]) / block_size();
      blocks += end > begin ? end - begin : 0;
    }
    for (size_t i = 0; i < points_.entries().size(); ++i) blocks += point(i).blocks().size();
    return blocks;
  }
  void give_back_unseen(int32_t n) noexcept {
    const int32_t from = std::max(n - std::max(pool_->rewind(), size()), 0);
    for (size_t bin = 0; bin < bins_; ++bin) give_back(bin, first_seen(bin, from));
  }
  /// Releases a bin's blocks that lie before an entry.
  void give_back(size_t bin, int32_t entry) noexcept {
    const size_t end = std::min(static_cast<size_t>(entry) / block_size(), pieces());
    for (size_t piece = static_cast<size_t>(held_from_[bin]) / block_size(); piece < end; ++piece) {
      Block*& block = blocks_[piece * bins_ + bin];
      if (block == nullptr) continue;
      release(block);
      block = nullptr;
      set_address(piece * bins_ + bin);
    }
    held_from_[bin] = std::max(held_from_[bin], static_cast<int32_t>(end) * size());
  }
  [[nodiscard]] std::span<Block* const> piece_of(size_t piece) const noexcept {
    return std::span(blocks_).subspan(piece * bins_, bins_);
  }
  [[nodiscard]] size_t held_blocks() const noexcept {
    return static_cast<size_t>(
        std::count_if(blocks_.begin(), blocks_.end(), [](const Block* b) { return b != nullptr; }));
  }
  /// Blocks that only points hold.
  [[nodiscard]] size_t blocks_beside() const noexcept {
    size_t beside = 0;
    for (size_t i = 0; i < points_.entries().size(); ++i) {
      for (const WindowPoint::Held& held : point(i).blocks()) {
        bool counted = held.index < blocks_.size() && blocks_[held.index] == held.block;
        for (size_t k = 0; k < i; ++k) counted = counted || point(k).holds(held.index, held.block);
        beside += counted ? size_t{0} : size_t{1};
      }
    }
    return beside;
  }
  /// The most blocks of a bin with a window while `rows` more are evaluated.
  [[nodiscard]] size_t window_blocks(int32_t reach, int32_t rows) const noexcept {
    const int64_t entries =
        int64_t{reach} + (engine::kKvTile - 1) + std::max(pool_->rewind(), size()) + rows;
    // The first and the last one may be used in part.
    return (static_cast<size_t>(entries) + block_size() - 2) / block_size() + 1;
  }
  /// The entries that can be added while `fits` is true of the number of pieces.
  template <class Fits>
  [[nodiscard]] int32_t room_while(Fits fits) const noexcept {
    size_t least = pieces();  // surely there
    size_t most = pieces_of(capacity_) + 1;
    while (most - least > 1) {
      const size_t middle = least + (most - least) / 2;
      (fits(middle) ? least : most) = middle;
    }
    const auto left = static_cast<size_t>(capacity_ - length());
    return static_cast<int32_t>(
        std::min(left, least * block_size() - static_cast<size_t>(length())));
  }
  /// The most blocks that it holds at a time until it has so many pieces.
  [[nodiscard]] size_t blocks_for(size_t pieces) const noexcept {
    size_t sum = 0;
    for (size_t bin = 0; bin < bins_; ++bin) {
      const int32_t reach = reach_of(bin);
      sum += reach < 0 ? pieces : std::min(pieces, window_blocks(reach, pool_->window_rows()));
    }
    return sum;
  }
  [[nodiscard]] int32_t size() const noexcept { return pool_->layout().block_size(); }
  [[nodiscard]] size_t block_size() const noexcept { return static_cast<size_t>(size()); }
  [[nodiscard]] size_t pieces() const noexcept { return blocks_.size() / bins_; }
  [[nodiscard]] size_t pieces_of(int32_t entries) const noexcept {
    return (static_cast<size_t>(entries) + block_size() - 1) / block_size();
  }
  void release(Block* block) noexcept {
    const Status released = pool_->blocks().release(block);
    GEN_ASSERT(released.ok());
  }
  void keep_pieces(size_t n) noexcept {
    while (blocks_.size() > n * bins_) {
      if (blocks_.back() != nullptr) release(blocks_.back());
      blocks_.pop_back();
    }
    for (Table& table : tables_) {
      while (table.size() > n) table.pop_back();
    }
    for (int32_t& from : held_from_) from = std::min(from, static_cast<int32_t>(n) * size());
  }

  std::shared_ptr<CachePool> pool_;
  int32_t capacity_;
  size_t bins_;   // blocks of a piece, a stretch of block_size() positions
  size_t parts_;  // of a block
  bool windows_ = false;
  std::vector<PathMoves> moves_;  // by table
  std::vector<Block*> blocks_;    // [piece][bin]
  std::vector<Table> tables_;
  std::vector<int32_t> held_from_;   // by bin: the first entry that is there
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
  SnapshotList points_;
  CacheTraits traits_;
};

}  // namespace

struct CachePool::Tables {
  std::vector<TileLayout> layouts;
  std::vector<int32_t> table_of_layer;
  std::vector<int32_t> reaches;  // by bin
};

CachePool::CachePool(Tables tables, std::span<const BlockPart> parts, size_t count,
                     const PoolWindows& windows)
    : layouts_(std::move(tables.layouts)),
      reaches_(std::move(tables.reaches)),
      windows_(windows),
      blocks_(parts, layouts_[0].block_size(), count) {
  std::vector<int32_t> seen;  // reaches in the order of the groups
  for (const int32_t reach : reaches_) {
    const auto at = std::find(seen.begin(), seen.end(), reach);
    groups_.push_back(std::min(static_cast<size_t>(at - seen.begin()), kMaxBlockGroups - 1));
    if (at == seen.end()) seen.push_back(reach);
  }
  std::vector<size_t> next(layouts_.size());
  for (const int32_t table : tables.table_of_layer) {
    const auto t = static_cast<size_t>(table);
    shapes_.push_back(layouts_[t].layers()[next[t]]);
    kv_layers_.push_back(layouts_[t].kv_layers()[next[t]++]);
    kv_layers_.back().part = table;
  }
}

Result<std::shared_ptr<CachePool>> CachePool::create(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t block_size, int32_t max_memory_mb,
                                                     LayerMemories memories,
                                                     PoolWindows of_windows) {
  GEN_ASSIGN(const CacheFormat parsed, parse_cache_format(format));
  if (block_size < 1 || max_memory_mb < 1) {
    return error(Code::kInvalidArgument, "a pool of %d MiB in blocks of %d: both must be 1 or more",
                 max_memory_mb, block_size);
  }
  GEN_TRY(check_layers(parsed, layers));
  MemoryGroups of = group_layers(layers, memories);
  if (of.groups.empty()) of.groups.push_back({memories[0], {}});
  if (of.groups.size() > kMaxBlockParts) {
    return error(Code::kUnsupported, "a pool in %zu memories, of at most %zu", of.groups.size(),
                 kMaxBlockParts);
  }
  const bool windows = of_windows.rewind >= 0 &&
                       std::any_of(layers.begin(), layers.end(),
                                   [](const auto& layer) { return window_reach(layer) >= 0; });
  LayerBins bins{std::vector<int32_t>(layers.size()), {-1}};
  if (windows) {
    GEN_ASSIGN(bins, bin_layers(parsed, layers, of.group_of_layer, of.groups.size(), block_size));
    // Attention reads whole tiles, and a block begins with one: where blocks are no multiple of
    // tiles, it reads up to a tile more than KvCache::first_kept() says.
    for (int32_t& reach : bins.reaches) {
      if (reach >= 0 && block_size % engine::kKvTile != 0) reach += engine::kKvTile - 1;
    }
  }
  std::vector<BlockPart> parts;
  for (const MemoryGroups::Group& group : of.groups) {
    parts.push_back({group.layers.empty() ? kEmptyBlockBytes : 1, group.memory});
  }
  Tables tables;
  for (size_t bin = 0; bin < bins.reaches.size(); ++bin) {
    for (size_t part = 0; part < parts.size(); ++part) {
      std::vector<LayerShape> own;
      for (size_t i = 0; i < layers.size(); ++i) {
        if (static_cast<size_t>(bins.bin_of_layer[i]) != bin) continue;
        if (static_cast<size_t>(of.group_of_layer[i]) == part) own.push_back(layers[i]);
      }
      GEN_ASSIGN(TileLayout layout, TileLayout::create(parsed, own, block_size));
      parts[part].bytes = std::max(parts[part].bytes, layout.block_bytes());
      tables.layouts.push_back(std::move(layout));
    }
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    tables.table_of_layer.push_back(bins.bin_of_layer[i] * static_cast<int32_t>(parts.size()) +
                                    of.group_of_layer[i]);
  }
  tables.reaches = std::move(bins.reaches);
  size_t bytes = 0;
  for (const BlockPart& part : parts) {
    if (checked_add(bytes, part.bytes, &bytes)) continue;
    return error(Code::kOutOfMemory, "a block of %d positions overflows a size", block_size);
  }
  const auto budget = static_cast<uint64_t>(max_memory_mb) << 20;
  const size_t least = tables.reaches.size();
  if (budget / least < bytes) {
    return error(Code::kInvalidArgument,
                 "a pool of %d MiB: %s takes %.6g MiB, and the pool must be at least that large",
                 max_memory_mb, least > 1 ? "one block of each kind of layers" : "one block",
                 static_cast<double>(bytes) * static_cast<double>(least) / (1 << 20));
  }
  const auto count = static_cast<size_t>(budget / bytes);
  return std::shared_ptr<CachePool>(new CachePool(std::move(tables), parts, count, of_windows));
}

Result<std::shared_ptr<CachePool>> CachePool::create(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t block_size, int32_t max_memory_mb,
                                                     engine::EngineMemory& memory,
                                                     PoolWindows windows) {
  const std::vector<engine::EngineMemory*> memories(std::max<size_t>(layers.size(), 1), &memory);
  return create(format, layers, block_size, max_memory_mb, memories, windows);
}

size_t CachePool::bytes_per_entry() const noexcept {
  size_t sum = 0;
  for (const TileLayout& layout : layouts_) sum += layout.bytes_per_entry();
  return sum;
}

Result<std::unique_ptr<KvCache>> make_paged_cache(std::shared_ptr<CachePool> pool,
                                                  int32_t capacity) {
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  return std::unique_ptr<KvCache>(std::make_unique<PagedCache>(std::move(pool), capacity));
}

}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// See paged_cache.h. A plan allocates all blocks that it needs before anything is written, and
// copies the last block if other sequences hold it. A dropped plan leaves its blocks to the next
// one, which uses or releases them.
#include "cache/sequence/paged_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "cache/sequence/path_moves.h"

namespace gen::cache {
namespace {

/// Bytes of a block of a model without keys and values. Its blocks only say which tokens a sequence
/// has; prefix caches keep snapshots of states beside them. About as much as the pool's own record
/// of a block takes, so that a budget bounds their number.
constexpr size_t kEmptyBlockBytes = 64;

/// Invariant: blocks_ hold at least the committed entries; tables_ have the addresses of their
/// bytes, by part.
class PagedCache final : public KvCache, public SharesBlocks {
 public:
  PagedCache(std::shared_ptr<CachePool> pool, int32_t capacity)
      : pool_(std::move(pool)), capacity_(capacity) {
    traits_.kind = pool_->format().name();
    traits_.lossy = pool_->format().lossy();
    traits_.layout = "paged";
    traits_.pooled = true;
    traits_.keeps_paths = true;
    traits_.bytes_per_entry = pool_->bytes_per_entry();
  }
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;
  ~PagedCache() override { keep_blocks(0); }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return pool_->layers();
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }

  [[nodiscard]] int32_t room() const noexcept override {
    size_t more = pool_->blocks().obtainable();
    size_t own = blocks_.size() * block_size() - static_cast<size_t>(length());
    if (copies(1)) {
      if (more == 0) return 0;
      --more;
    }
    const auto left = static_cast<size_t>(capacity_ - length());
    // Compared in blocks, which cannot overflow.
    if (own >= left || more >= (left - own + block_size() - 1) / block_size()) {
      return static_cast<int32_t>(left);
    }
    return static_cast<int32_t>(own + more * block_size());
  }
  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity_ - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity_, n);
    }
    GEN_TRY(settle());
    const size_t needed = blocks_of(length() + n);
    if (needed < blocks_.size()) keep_blocks(needed);
    const size_t last = static_cast<size_t>(length()) / block_size();
    const bool copies = this->copies(n);
    std::vector<Block*> fresh(needed - blocks_.size() + (copies ? 1 : 0));
    reserve(needed);
    GEN_TRY(pool_->blocks().allocate(fresh));
    if (copies) {
      GivenBack undo(this, fresh);
      BlockPool& pool = pool_->blocks();
      for (size_t part = 0; part < pool.parts(); ++part) {
        GEN_TRY(pool.memory(part).copy(fresh.back()->data(part), blocks_[last]->data(part),
                                       pool.part_bytes(part)));
      }
      undo.blocks = {};
      std::swap(blocks_[last], fresh.back());
      for (size_t part = 0; part < pool.parts(); ++part) {
        tables_[part][last] = blocks_[last]->data(part);
      }
      release(fresh.back());
      fresh.pop_back();
      pool_->blocks().set_used(*blocks_[last], length() % static_cast<int32_t>(block_size()));
    }
    for (Block* block : fresh) push(block);
    return CachePlan{length(), n};
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return pool_->kv_layers();
  }
  [[nodiscard]] int32_t parts() const noexcept override {
    return static_cast<int32_t>(pool_->blocks().parts());
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t part) const noexcept override {
    return pool_->blocks().memory(static_cast<size_t>(part));
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) override {
    const size_t held = blocks_of(plan.start + plan.count);
    GEN_ASSERT(plan.start == length() && held <= blocks_.size());
    return engine::KvTables{std::span(tables_[static_cast<size_t>(part)]).first(held)};
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(plan.start == length() && blocks_of(plan.start + plan.count) <= blocks_.size());
    for (size_t part = 0; part < pool_->blocks().parts(); ++part) moves_[part].note(plan, kept);
    const int32_t end = plan.start + kept.n;
    const auto size = static_cast<int32_t>(block_size());
    for (size_t i = static_cast<size_t>(plan.start) / block_size(); i < blocks_of(end); ++i) {
      pool_->blocks().raise_used(*blocks_[i], std::min(end - static_cast<int32_t>(i) * size, size));
    }
    length_ = end;
    if (kept.n < plan.count && settled()) keep_blocks(blocks_of(end));
  }

  Status truncate(int32_t n) override {
    if (n >= length()) return {};
    n = std::max(n, 0);
    if (pool_->blocks().parts() > 1) GEN_TRY(settle());  // all parts, so that none fails alone
    PathMoves left = moves_[0];
    left.cut(n);
    GEN_TRY(left.move(engine_memory(0), entries_of(0)));  // out of blocks that are released below
    moves_[0].clear();
    length_ = n;
    keep_blocks(blocks_of(length()));
    const int32_t rest = length() % static_cast<int32_t>(block_size());
    if (rest != 0 && blocks_.back()->references() == 1) {
      pool_->blocks().set_used(*blocks_.back(), rest);
    }
    return {};
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse use;
    use.resident = blocks_.size() * pool_->blocks().block_bytes();
    use.payload = static_cast<size_t>(length()) * traits_.bytes_per_entry;
    use.metadata = sizeof(*this) + blocks_.capacity() * sizeof(blocks_[0]);
    for (const Table& table : tables_) use.metadata += table.capacity() * sizeof(table[0]);
    return use;
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_TRY(settle());
    auto copy = std::make_unique<PagedCache>(pool_, capacity_);
    const size_t held = blocks_of(length());
    copy->reserve(held);
    for (size_t i = 0; i < held; ++i) {
      GEN_TRY(pool_->blocks().retain(blocks_[i]));
      copy->push(blocks_[i]);
    }
    copy->length_ = length();
    return std::unique_ptr<KvCache>(std::move(copy));
  }

  [[nodiscard]] SharesBlocks* sharing() noexcept override { return this; }
  [[nodiscard]] std::span<Block* const> blocks() const noexcept override {
    int32_t settled = length();
    for (const PathMoves& moves : moves_) settled = std::min(settled, moves.settled(length()));
    return std::span(blocks_).first(
        settled == length() ? blocks_of(settled) : static_cast<size_t>(settled) / block_size());
  }

  Status adopt(std::span<Block* const> blocks, int32_t positions) override {
    if (positions <= length() || positions > capacity_ || blocks.size() != blocks_of(positions)) {
      return error(Code::kInvalidArgument,
                   "%zu blocks with %d entries for a cache of %d that holds %d", blocks.size(),
                   positions, capacity_, length());
    }
    for (const Block* block : blocks) {
      if (&block->pool() != &pool_->blocks()) {
        return {Code::kState, "a block is not one of the cache's pool"};
      }
    }
    const std::vector<Block*> taken(blocks.begin(), blocks.end());  // may be the cache's own
    reserve(taken.size());
    keep_blocks(0);
    for (PathMoves& moves : moves_) moves.clear();
    for (Block* block : taken) push(block);
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

  /// The entries of the layers in a part.
  [[nodiscard]] engine::KvEntries entries_of(size_t part) const noexcept {
    return {pool_->layout(part).kv_layers(), {tables_[part]}};
  }
  [[nodiscard]] bool settled() const noexcept {
    return std::all_of(moves_.begin(), moves_.end(), [](const auto& each) { return each.empty(); });
  }
  /// Finishes pending moves. A part that has been moved is not moved again if another one fails.
  Status settle() {
    for (size_t part = 0; part < pool_->blocks().parts(); ++part) {
      GEN_TRY(moves_[part].move(pool_->blocks().memory(part), entries_of(part)));
      moves_[part].clear();
    }
    return {};
  }
  void reserve(size_t blocks) {
    blocks_.reserve(blocks);
    for (size_t part = 0; part < pool_->blocks().parts(); ++part) tables_[part].reserve(blocks);
  }
  /// Memory for it must be reserved.
  void push(Block* block) noexcept {
    blocks_.push_back(block);
    for (size_t part = 0; part < pool_->blocks().parts(); ++part) {
      tables_[part].push_back(block->data(part));
    }
  }
  /// Whether `n` more entries start in a block that other sequences hold.
  [[nodiscard]] bool copies(int32_t n) const noexcept {
    const size_t last = static_cast<size_t>(length()) / block_size();
    return n > 0 && last < blocks_.size() && blocks_[last]->references() > 1;
  }
  [[nodiscard]] size_t block_size() const noexcept {
    return static_cast<size_t>(pool_->layout().block_size());
  }
  [[nodiscard]] size_t blocks_of(int32_t entries) const noexcept {
    return (static_cast<size_t>(entries) + block_size() - 1) / block_size();
  }
  void release(Block* block) noexcept {
    const Status released = pool_->blocks().release(block);
    GEN_ASSERT(released.ok());
  }
  void keep_blocks(size_t n) noexcept {
    while (blocks_.size() > n) {
      release(blocks_.back());
      blocks_.pop_back();
      for (size_t part = 0; part < pool_->blocks().parts(); ++part) tables_[part].pop_back();
    }
  }

  std::shared_ptr<CachePool> pool_;
  int32_t capacity_;
  std::array<PathMoves, kMaxBlockParts> moves_;
  std::vector<Block*> blocks_;
  std::array<Table, kMaxBlockParts> tables_;
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
  CacheTraits traits_;
};

}  // namespace

Result<std::shared_ptr<CachePool>> CachePool::create(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t block_size, int32_t max_memory_mb,
                                                     LayerMemories memories) {
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
  std::vector<TileLayout> layouts;
  std::vector<BlockPart> parts;
  size_t bytes = 0;
  for (const MemoryGroups::Group& group : of.groups) {
    GEN_ASSIGN(TileLayout layout, TileLayout::create(parsed, group.layers, block_size));
    parts.push_back({group.layers.empty() ? kEmptyBlockBytes : layout.block_bytes(), group.memory});
    if (!checked_add(bytes, parts.back().bytes, &bytes)) {
      return error(Code::kOutOfMemory, "a block of %d positions overflows a size", block_size);
    }
    layouts.push_back(std::move(layout));
  }
  const auto budget = static_cast<uint64_t>(max_memory_mb) << 20;
  if (budget < bytes) {
    return error(Code::kInvalidArgument, "a pool of %d MiB: one block takes %zu bytes",
                 max_memory_mb, bytes);
  }
  const auto count = static_cast<size_t>(budget / bytes);
  std::shared_ptr<CachePool> pool(new CachePool(std::move(layouts), parts, count));
  std::vector<size_t> next(of.groups.size());
  for (const int32_t group : of.group_of_layer) {
    const auto part = static_cast<size_t>(group);
    const TileLayout& layout = pool->layouts_[part];
    pool->shapes_.push_back(layout.layers()[next[part]]);
    pool->kv_layers_.push_back(layout.kv_layers()[next[part]++]);
    pool->kv_layers_.back().part = group;
  }
  return pool;
}

Result<std::shared_ptr<CachePool>> CachePool::create(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t block_size, int32_t max_memory_mb,
                                                     engine::EngineMemory& memory) {
  const std::vector<engine::EngineMemory*> memories(std::max<size_t>(layers.size(), 1), &memory);
  return create(format, layers, block_size, max_memory_mb, memories);
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

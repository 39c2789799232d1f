// SPDX-License-Identifier: Apache-2.0
// See tiered_cache.h. Blocks move in plan() only. Before anything is written it spills the oldest
// blocks, reads the block that is written next back from the file, copies it if forks hold it too,
// and allocates new ones. The content of the cache is intact after every step.
#include "cache/sequence/tiered_cache.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/layer_stager.h"
#include "cache/sequence/path_moves.h"
#include "cache/sequence/spill_file.h"
#include "cache/sequence/tile_layout.h"

namespace gen::cache {
namespace {

/// Computes the memory of a number of blocks, some of them cold.
struct Budget {
  size_t hot_bytes = 0;
  size_t block = 0;   // of all layers
  size_t staged = 0;  // buffers to read a block of the layers that are read at once
  size_t newest = 0;  // blocks kept in memory; 0: as many as fit

  [[nodiscard]] size_t resident(size_t blocks, size_t cold) const noexcept {
    return (blocks - cold) * block + cold * staged;
  }
  /// The least number of `blocks` that must be cold.
  [[nodiscard]] size_t cold_of(size_t blocks) const noexcept {
    if (newest > 0) return blocks - std::min(blocks, newest);
    if (blocks * block <= hot_bytes) return 0;
    if (block <= staged) return blocks;
    const size_t over = blocks * block - hot_bytes;
    return std::min(blocks, (over + block - staged - 1) / (block - staged));
  }
};

/// A block in memory that forks share until one of them writes to it. Unlike a shared_ptr it lets a
/// writer know that the other holders have finished reading.
class HotBlock {
 public:
  HotBlock() noexcept = default;
  HotBlock(const HotBlock& other) noexcept : shared_(other.shared_) {
    if (shared_ != nullptr) shared_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  HotBlock(HotBlock&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  HotBlock& operator=(HotBlock other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~HotBlock() {
    if (shared_ == nullptr) return;
    if (shared_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
  }

  static Result<HotBlock> allocate(engine::EngineMemory& memory, size_t bytes) {
    HotBlock block;
    block.shared_ = new Shared;
    GEN_ASSIGN(block.shared_->buffer, memory.allocate(bytes));
    return block;
  }
  [[nodiscard]] const engine::EngineBuffer& buffer() const noexcept { return shared_->buffer; }
  [[nodiscard]] engine::EnginePtr<std::byte> data() const noexcept { return buffer().data(); }
  [[nodiscard]] bool alone() const noexcept {
    return shared_->holders.load(std::memory_order_acquire) == 1;
  }

 private:
  struct Shared {
    engine::EngineBuffer buffer;
    std::atomic<int32_t> holders{1};
  };
  Shared* shared_ = nullptr;
};

/// Invariant: each layer has held_ blocks, cold_ of them in the file followed by hot ones. They
/// hold at least the committed entries.
class TieredCache final : public KvCache {
 public:
  struct Shared {
    std::vector<LayerShape> shapes;
    std::vector<TileLayout> layouts;  // by layer
    std::vector<engine::KvLayer> kv_layers;
    Budget budget;
    size_t max_block = 0;  // size of the largest block of a layer, in bytes
    int32_t rooms = 1;     // layers that have a read buffer
    int32_t block_size = 0;
    int32_t capacity = 0;
    size_t table_bytes = 0;
    std::shared_ptr<TierCounts> counts;
  };

  TieredCache(std::shared_ptr<const Shared> shared, std::shared_ptr<SpillFile> file,
              engine::EngineMemory& memory)
      : shared_(std::move(shared)),
        file_(std::move(file)),
        memory_(memory),
        layers_(shared_->layouts.size()),
        stager_(shared_->rooms, shared_->max_block, memory, shared_->counts->bytes_read) {
    if (!shared_->layouts.empty()) {
      traits_.kind = shared_->layouts[0].format().name();
      traits_.lossy = shared_->layouts[0].format().lossy();
    }
    traits_.layout = "tiered";
    traits_.keeps_paths = true;
    for (const TileLayout& layout : shared_->layouts) {
      traits_.bytes_per_entry += layout.bytes_per_entry();
    }
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return shared_->shapes;
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return shared_->capacity; }

  /// So a plan spans at most two blocks, which the budget relies on.
  [[nodiscard]] int32_t plan_limit() const noexcept override { return shared_->block_size; }
  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity() - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity(), n);
    }
    if (n > plan_limit()) {
      return error(Code::kInvalidArgument, "a plan for %d entries, over %d pass the budget", n,
                   plan_limit());
    }
    GEN_TRY(settle());  // before anything is spilled
    if (n > 0) {
      const size_t needed = blocks_of(length() + n);
      const size_t first = block_of(length());  // the first block that is written
      if (needed < held_) keep_blocks(needed);  // drops blocks of an abandoned plan
      if (first < cold_) {
        GEN_TRY(fetch());
      } else {
        GEN_TRY(spill(std::min(shared_->budget.cold_of(needed), first)));
      }
      if (first < held_) GEN_TRY(make_own(first));
      GEN_TRY(take_blocks(needed));
    }
    return CachePlan{length(), n};
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return shared_->kv_layers;
  }
  /// Each layer is a part.
  [[nodiscard]] int32_t parts() const noexcept override {
    return static_cast<int32_t>(layers_.size());
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t /*part*/) const noexcept override {
    return memory_;
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t layer, const CachePlan& plan) override {
    const size_t held = blocks_of(plan.start + plan.count);
    GEN_ASSERT(plan.start == length() && held <= held_);
    Layer& own = layers_[static_cast<size_t>(layer)];
    const size_t seen = cold_blocks(layer, plan).size();
    if (seen > 0) GEN_TRY(stager_.places(layer, std::span(own.table).subspan(cold_ - seen, seen)));
    // Blocks that no row of the plan sees are not read; their table entries only need a valid
    // address.
    for (size_t i = 0; i < cold_ - seen; ++i) own.table[i] = own.table.back();
    return engine::KvTables{std::span<const engine::EnginePtr<std::byte>>(own.table).first(held)};
  }
  Status stage(int32_t layer, const CachePlan& plan) override {
    const auto blocks = cold_blocks(layer, plan);
    if (!blocks.empty()) {
      size_t read = 0;
      GEN_TRY(stager_.need(layer, blocks, &read));
      shared_->counts->cold_hits += read;
      shared_->counts->warm_hits += blocks.size() - read;
    }
    prepare_next(layer, plan);
    return {};
  }
  [[nodiscard]] bool stages(const CachePlan& /*plan*/) const noexcept override { return cold_ > 0; }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(plan.start == length() && blocks_of(plan.start + plan.count) <= held_);
    moves_.note(plan, kept);
    length_ = plan.start + kept.n;
  }

  Status truncate(int32_t n) override {
    if (n >= length()) return {};
    n = std::max(n, 0);
    PathMoves left = moves_;
    left.cut(n);
    if (!left.empty()) GEN_TRY(settle());  // out of blocks that are released below
    drop_moves();
    length_ = n;
    keep_blocks(blocks_of(length()));
    return {};
  }

  [[nodiscard]] size_t max_resident() const noexcept override {
    const auto size = static_cast<size_t>(shared_->block_size);
    const size_t blocks = (static_cast<size_t>(capacity()) + size - 1) / size;
    size_t most = 0;
    for (size_t n = 1; n <= blocks; ++n) {
      most = std::max(most, shared_->budget.resident(n, shared_->budget.cold_of(n)));
    }
    return most;
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse use;
    use.resident = (held_ - cold_) * shared_->budget.block + stager_.bytes();
    use.payload = static_cast<size_t>(length()) * traits_.bytes_per_entry;
    use.metadata = sizeof(*this) + shared_->table_bytes;
    for (const Layer& layer : layers_) {
      use.metadata += sizeof(layer) + layer.hot.capacity() * sizeof(layer.hot[0]) +
                      layer.cold.capacity() * (sizeof(layer.cold[0]) + sizeof(SpilledBlock)) +
                      layer.table.capacity() * sizeof(layer.table[0]);
    }
    return use;
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_TRY(settle());
    auto copy = std::make_unique<TieredCache>(shared_, file_, memory_);
    const auto held = static_cast<std::ptrdiff_t>(blocks_of(length()));
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& from = layers_[i];
      Layer& to = copy->layers_[i];
      to.hot.assign(from.hot.begin(), from.hot.begin() + held);
      to.table.assign(from.table.begin(), from.table.begin() + held);
      to.cold = from.cold;
    }
    copy->held_ = static_cast<size_t>(held);
    copy->cold_ = cold_;
    copy->length_ = length();
    return std::unique_ptr<KvCache>(std::move(copy));
  }

 private:
  struct Layer {
    std::vector<HotBlock> hot;                              // [held_], null for cold blocks
    std::vector<std::shared_ptr<const SpilledBlock>> cold;  // [cold_]
    std::vector<engine::EnginePtr<std::byte>> table;  // [held_], addresses that attention reads
  };

  /// Finishes pending moves; the blocks that a plan wrote stay in memory until the next plan. After
  /// a failure it continues with the layer that failed, because moving entries twice would move
  /// wrong ones.
  Status settle() {
    const std::span<const engine::KvLayer> layers = shared_->kv_layers;
    for (; !moves_.empty() && moved_ < layers_.size(); ++moved_) {
      GEN_TRY(moves_.move(memory_, {layers.subspan(moved_, 1), {layers_[moved_].table}}));
    }
    drop_moves();
    return {};
  }
  void drop_moves() noexcept {
    moves_.clear();
    moved_ = 0;
  }
  [[nodiscard]] size_t block_of(int32_t entry) const noexcept {
    return static_cast<size_t>(entry) / static_cast<size_t>(shared_->block_size);
  }
  [[nodiscard]] size_t blocks_of(int32_t entries) const noexcept {
    return block_of(entries) + (entries % shared_->block_size != 0 ? 1 : 0);
  }

  /// Cold blocks of a layer that the rows of a plan see; with plan(0) all of them.
  [[nodiscard]] LayerStager::Blocks cold_blocks(int32_t layer,
                                                const CachePlan& plan) const noexcept {
    const LayerShape& shape = shared_->shapes[static_cast<size_t>(layer)];
    size_t first = 0;
    if (shape.window > 0 && plan.count > 0) {
      first = std::min(block_of(std::max(plan.start + 1 - shape.window, 0)), cold_);
    }
    return LayerStager::Blocks(layers_[static_cast<size_t>(layer)].cold).subspan(first);
  }

  /// Starts reading the layers after `layer`: by the stager's thread, or at least into the page
  /// cache.
  void prepare_next(int32_t layer, const CachePlan& plan) {
    if (cold_ == 0) return;
    const auto count = static_cast<int32_t>(layers_.size());
    for (int32_t ahead = 1; ahead < shared_->rooms; ++ahead) {
      const int32_t next = (layer + ahead) % count;
      stager_.start(next, cold_blocks(next, plan));
    }
    if (shared_->rooms > 1) return;
    for (const auto& block : cold_blocks((layer + 1) % count, plan)) block->announce();
  }

  Result<HotBlock> allocate(size_t layer) {
    return HotBlock::allocate(memory_, shared_->layouts[layer].block_bytes());
  }

  /// Writes blocks [cold_, target) to the file, then frees their memory.
  Status spill(size_t target) {
    if (target <= cold_) return {};
    std::vector<std::shared_ptr<const SpilledBlock>> written;
    written.reserve((target - cold_) * layers_.size());
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (size_t block = cold_; block < target; ++block) {
        const HotBlock& from = layers_[i].hot[block];
        GEN_ASSIGN(auto to, file_->put(memory_, from.buffer()));
        written.push_back(std::move(to));
      }
      layers_[i].cold.reserve(target);
    }
    GEN_TRY(file_->sync());
    auto next = written.begin();
    for (Layer& layer : layers_) {
      for (size_t block = cold_; block < target; ++block) {
        layer.cold.push_back(std::move(*next++));
        layer.hot[block] = {};
      }
    }
    shared_->counts->demotions += target - cold_;
    shared_->counts->bytes_written += (target - cold_) * shared_->budget.block;
    cold_ = target;
    return {};
  }

  /// Reads the last cold block, which is the last block of the sequence, back into memory.
  Status fetch() {
    GEN_ASSERT(cold_ == held_);
    stager_.forget();  // frees its buffers first, for the budget
    std::vector<HotBlock> blocks(layers_.size());
    for (size_t i = 0; i < layers_.size(); ++i) {
      GEN_ASSIGN(blocks[i], allocate(i));
      GEN_TRY(layers_[i].cold.back()->read(memory_, blocks[i].data()));
    }
    ++shared_->counts->promotions;
    shared_->counts->bytes_read += shared_->budget.block;
    --cold_;
    for (size_t i = 0; i < layers_.size(); ++i) {
      layers_[i].table[cold_] = blocks[i].data();
      layers_[i].hot[cold_] = std::move(blocks[i]);
      layers_[i].cold.pop_back();
    }
    return {};
  }

  /// Copies a block that forks share, so that they do not see writes to it.
  Status make_own(size_t block) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      HotBlock& held = layers_[i].hot[block];
      if (held.alone()) continue;
      GEN_ASSIGN(HotBlock copy, allocate(i));
      GEN_TRY(memory_.copy(copy.data(), held.data(), held.buffer().size()));
      held = std::move(copy);
      layers_[i].table[block] = held.data();
    }
    return {};
  }

  Status take_blocks(size_t needed) {
    for (Layer& layer : layers_) {
      layer.hot.reserve(needed);
      layer.table.reserve(needed);
    }
    std::vector<HotBlock> blocks(layers_.size());
    while (held_ < needed) {
      for (size_t i = 0; i < layers_.size(); ++i) {
        GEN_ASSIGN(blocks[i], allocate(i));
      }
      for (size_t i = 0; i < layers_.size(); ++i) {
        layers_[i].table.push_back(blocks[i].data());
        layers_[i].hot.push_back(std::move(blocks[i]));
      }
      ++held_;
    }
    return {};
  }

  void keep_blocks(size_t count) noexcept {
    if (count >= held_) return;
    for (Layer& layer : layers_) {
      layer.hot.resize(count);
      layer.table.resize(count);
      layer.cold.resize(std::min(count, cold_));
    }
    if (count < cold_) stager_.forget();
    held_ = count;
    cold_ = std::min(count, cold_);
  }

  std::shared_ptr<const Shared> shared_;
  std::shared_ptr<SpillFile> file_;
  engine::EngineMemory& memory_;
  std::vector<Layer> layers_;
  PathMoves moves_;
  size_t moved_ = 0;  // number of layers whose entries have been moved
  size_t held_ = 0;
  size_t cold_ = 0;
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
  CacheTraits traits_;
  LayerStager stager_;
};

Status lanes_too_large(int32_t capacity, size_t layers) {
  return error(Code::kOutOfMemory, "a cache of %d entries of %zu layers overflows %zu bits",
               capacity, layers, 8 * sizeof(size_t));
}

/// The budget must allow for a full context.
Status check_budget(const Budget& budget, size_t blocks, int32_t capacity) {
  if (budget.newest > 0) return {};
  constexpr size_t kMebibyte = size_t{1} << 20;
  const size_t fewest_hot = std::min<size_t>(blocks, 2);  // a full one and the next
  const size_t least =
      std::min(budget.resident(blocks, 0), budget.resident(blocks, blocks - fewest_hot));
  if (least <= budget.hot_bytes) return {};
  return error(Code::kInvalidArgument,
               "%zu MiB of hot memory: a context of %d takes at least %zu MiB with what is read "
               "back at once",
               budget.hot_bytes / kMebibyte, capacity, (least + kMebibyte - 1) / kMebibyte);
}

}  // namespace

Result<std::unique_ptr<KvCache>> make_tiered_cache(const TieredCacheOptions& options,
                                                   std::span<const LayerShape> layers,
                                                   int32_t capacity, engine::EngineMemory& memory) {
  GEN_ASSIGN(const CacheFormat format, parse_cache_format(options.format));
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  if (options.block_size < 1 || options.hot_blocks < 0 || options.prefetch_layers < 0) {
    return error(Code::kInvalidArgument,
                 "blocks of %d, %d of them hot, %d layers ahead: below 1, 0 and 0",
                 options.block_size, options.hot_blocks, options.prefetch_layers);
  }
  GEN_TRY(check_layers(format, layers));
  auto shared = std::make_shared<TieredCache::Shared>();
  shared->counts = options.counts != nullptr ? options.counts : std::make_shared<TierCounts>();
  shared->shapes.assign(layers.begin(), layers.end());
  shared->block_size = options.block_size;
  shared->capacity = capacity;
  const auto max_rooms = static_cast<int32_t>(std::max<size_t>(layers.size(), 1));
  shared->rooms = 1 + std::min(options.prefetch_layers, max_rooms - 1);
  shared->budget.hot_bytes = options.hot_bytes;
  shared->budget.newest = static_cast<size_t>(options.hot_blocks);
  const size_t blocks =
      (static_cast<size_t>(capacity) + static_cast<size_t>(options.block_size) - 1) /
      static_cast<size_t>(options.block_size);
  for (size_t i = 0; i < layers.size(); ++i) {
    auto layout = TileLayout::create(format, layers.subspan(i, 1), options.block_size);
    if (!layout.ok()) return lanes_too_large(capacity, layers.size());
    shared->max_block = std::max(shared->max_block, layout->block_bytes());
    shared->table_bytes += layout->table_bytes();
    if (!checked_add(shared->budget.block, layout->block_bytes(), &shared->budget.block)) {
      return lanes_too_large(capacity, layers.size());
    }
    shared->kv_layers.push_back(layout->kv_layers()[0]);
    shared->kv_layers.back().part = static_cast<int32_t>(i);
    shared->layouts.push_back(std::move(*layout));
  }
  size_t whole = 0;
  if (!checked_mul(shared->max_block, static_cast<size_t>(shared->rooms), &shared->budget.staged) ||
      !checked_mul(std::max(shared->budget.block, shared->budget.staged), blocks, &whole)) {
    return lanes_too_large(capacity, layers.size());
  }
  GEN_TRY(check_budget(shared->budget, blocks, capacity));
  FileOps& files = options.files != nullptr ? *options.files : system_files();
  GEN_ASSIGN(auto file, SpillFile::create(files, options.cold_dir, shared->max_block));
  return std::unique_ptr<KvCache>(
      std::make_unique<TieredCache>(std::move(shared), std::move(file), memory));
}

}  // namespace gen::cache

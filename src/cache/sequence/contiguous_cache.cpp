// SPDX-License-Identifier: Apache-2.0
// One buffer for all layers, in segments of up to 256 positions laid out as in tile_layout.h. The
// whole capacity is reserved at once but not initialised: growing neither moves nor allocates, and
// the kernel provides pages when entries are written.
#include "cache/sequence/contiguous_cache.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/checked.h"
#include "cache/sequence/path_moves.h"
#include "cache/sequence/shift_entries.h"
#include "cache/sequence/tile_layout.h"

namespace gen::cache {
namespace {

constexpr int32_t divide_up(int32_t a, int32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Positions per segment, the unit that a chunk of attention reads: the fewest segments that hold
/// the capacity, of sizes as equal as tiles allow.
int32_t segment_size(int32_t capacity) {
  const int32_t tiles = divide_up(capacity, engine::kKvTile);
  const int32_t segments = divide_up(tiles, engine::kKvChunk / engine::kKvTile);
  return divide_up(tiles, segments) * engine::kKvTile;
}

Status too_large(int32_t capacity, size_t layers) {
  return error(Code::kOutOfMemory, "a cache of %d entries of %zu layers overflows %zu bits",
               capacity, layers, 8 * sizeof(size_t));
}

/// Invariant: 0 <= length_ <= capacity_.
class ContiguousCache final : public KvCache, public Shifts {
 public:
  ContiguousCache(TileLayout layout, int32_t capacity, engine::EngineMemory& memory)
      : layout_(std::move(layout)),
        capacity_(capacity),
        memory_(memory),
        segments_(static_cast<size_t>(divide_up(capacity, layout_.block_size()))) {
    traits_.kind = layout_.format().name();
    traits_.lossy = layout_.format().lossy();
    traits_.keeps_paths = true;
    traits_.bytes_per_entry = layout_.bytes_per_entry();
  }

  Status reserve() {
    const size_t segment = layout_.block_bytes();
    size_t bytes = 0;
    if (!checked_mul(segment, segments_.size(), &bytes)) {
      return too_large(capacity_, layout_.layers().size());
    }
    if (bytes == 0) return {};
    GEN_ASSIGN(buffer_, memory_.allocate(bytes));
    for (size_t i = 0; i < segments_.size(); ++i) {
      segments_[i] = buffer_.data() + static_cast<std::ptrdiff_t>(i * segment);
    }
    return {};
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return layout_.layers();
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }

  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity_ - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity_, n);
    }
    GEN_TRY(settle());
    return CachePlan{length(), n};
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return layout_.kv_layers();
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t /*part*/) const noexcept override {
    return memory_;
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t /*part*/, const CachePlan& plan) override {
    GEN_ASSERT(plan.start == length() && plan.count <= capacity_ - length());
    const auto held = static_cast<size_t>(divide_up(plan.start + plan.count, layout_.block_size()));
    return engine::KvTables{std::span(segments_).first(held)};
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(plan.start == length() && plan.count <= capacity_ - length());
    moves_.note(plan, kept);
    length_ = plan.start + kept.n;
  }

  Status truncate(int32_t n) override {
    length_ = std::min(length(), std::max(n, 0));
    moves_.cut(length());
    return {};
  }

  [[nodiscard]] Shifts* shifting() noexcept override {
    return can_shift_entries(layout_.format(), layers()) ? this : nullptr;
  }
  Status shift(int32_t first, int32_t n) override {
    if (first < 0 || first > length() || n < 0 || n > length() - first) {
      return error(Code::kInvalidArgument, "cannot drop %d positions from %d on of %d", n, first,
                   length());
    }
    if (n == 0) return {};
    const std::vector<const engine::RopeTable*> ropes = turning_tables(layers());
    GEN_TRY(settle());
    GEN_TRY(memory_.run(engine::KvShiftArgs{all(), ropes, first, n, length(), n}));
    length_ -= n;
    return {};
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_TRY(settle());
    auto copy = std::make_unique<ContiguousCache>(layout_, capacity_, memory_);
    GEN_TRY(copy->reserve());
    const engine::KvRun run{0, 0, length()};
    GEN_TRY(memory_.run(engine::KvCopyArgs{all(), copy->all(), {&run, 1}}));
    copy->length_ = length();
    return std::unique_ptr<KvCache>(std::move(copy));
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse use;
    use.resident = buffer_.size();
    use.payload = static_cast<size_t>(length()) * traits_.bytes_per_entry;
    use.metadata = sizeof(*this) + layout_.table_bytes() + segments_.size() * sizeof(segments_[0]);
    return use;
  }

 private:
  [[nodiscard]] engine::KvEntries all() const noexcept {
    return {layout_.kv_layers(), {segments_}};
  }
  Status settle() {
    GEN_TRY(moves_.move(memory_, all()));
    moves_.clear();
    return {};
  }

  TileLayout layout_;
  int32_t capacity_;
  engine::EngineMemory& memory_;
  PathMoves moves_;
  std::vector<engine::EnginePtr<std::byte>> segments_;
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
  CacheTraits traits_;
  engine::EngineBuffer buffer_;
};

}  // namespace

Result<std::unique_ptr<KvCache>> create_contiguous_cache(const CacheFormat& format,
                                                         std::span<const LayerShape> layers,
                                                         int32_t capacity,
                                                         engine::EngineMemory& memory) {
  auto layout = TileLayout::create(format, layers, segment_size(capacity));
  if (!layout.ok()) return too_large(capacity, layers.size());
  auto cache = std::make_unique<ContiguousCache>(std::move(*layout), capacity, memory);
  GEN_TRY(cache->reserve());
  return std::unique_ptr<KvCache>(std::move(cache));
}

}  // namespace gen::cache

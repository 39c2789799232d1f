// SPDX-License-Identifier: Apache-2.0
// See lane_store.h. Every group opens and closes the same sequences in the same order, so a
// sequence has the same slot in all of them.
#include "cache/sequence/lane_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/to_size.h"
#include "base/checked.h"

namespace gen::cache {
namespace {

/// What a group keeps: the window of its layers and `rewind` more positions.
CausalRules rules_of(const LayerShape& shape, int32_t rewind) {
  CausalRules rules;
  // With window w a row sees w - 1 earlier positions, and so does the last row of a chunk of w. The
  // rules do not support a window of 0.
  if (shape.window > 0) rules.window = std::max(shape.window - 1, 1);
  if (shape.chunk > 0) rules.window = std::min(rules.window, std::max(shape.chunk - 1, 1));
  if (rules.window == kNoLimit) return rules;
  rules.chunk = shape.chunk;
  rules.memory = rules.window > kNoLimit - rewind ? kNoLimit : rules.window + rewind;
  return rules;
}

}  // namespace

/// One sequence. Invariant: the entries of its groups end at position length_ - 1.
class Lane final : public KvCache {
 public:
  explicit Lane(std::shared_ptr<LaneStore> store) : store_(std::move(store)) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() override {
    if (slot_ < 0) return;
    const std::lock_guard lock(store_->mutex_);
    for (LaneStore::Group& group : store_->groups_) group.cells.close(slot_);
    store_->lanes_[to_size(slot_)] = nullptr;
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return store_->traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return store_->layers_;
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return store_->limits_.capacity; }
  [[nodiscard]] int32_t plan_limit() const noexcept override { return store_->limits_.max_batch; }
  [[nodiscard]] int32_t room() const noexcept override {
    int32_t room = capacity() - length();
    const std::lock_guard lock(store_->mutex_);
    for (const LaneStore::Group& group : store_->groups_) {
      room = std::min(room, group.cells.room(slot_));
    }
    return room;
  }

  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity() - length()) {
      return error(Code::kCacheFull, "the lane holds %d of %d entries, no room for %d more",
                   length(), capacity(), n);
    }
    const std::lock_guard lock(store_->mutex_);
    Unplanned undo(this);  // also if there is no memory for a list
    for (LaneStore::Group& group : store_->groups_) {
      GEN_TRY(group.cells.plan_more(slot_, length(), n));
    }
    undo.lane = nullptr;
    return CachePlan{length(), n};
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return store_->kv_layers_;
  }
  [[nodiscard]] int32_t parts() const noexcept override {
    return static_cast<int32_t>(store_->groups_.size());
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t /*part*/) const noexcept override {
    return store_->memory_;
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) override {
    const std::lock_guard lock(store_->mutex_);
    const LaneStore::Group& group = store_->groups_[to_size(part)];
    GEN_ASSERT(plan.start == length() && plan.count <= group.cells.map().planned(slot_));
    const auto positions = group.cells.map().positions(slot_);
    engine::KvTables tables;
    tables.blocks = group.segments;
    tables.cells = group.cells.map().cells(slot_);
    tables.first_cell = positions.empty() ? plan.start : positions[0];
    return tables;
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(plan.start == length() && kept.rows == nullptr);
    const std::lock_guard lock(store_->mutex_);
    for (LaneStore::Group& group : store_->groups_) {
      group.cells.commit_planned(slot_, plan.start);
      if (kept.n < plan.count) group.cells.cut(slot_, plan.start + kept.n);
    }
    length_ = plan.start + kept.n;
  }

  Status truncate(int32_t n) override {
    const int32_t keep = std::max(n, 0);
    if (keep >= length()) return {};
    const std::lock_guard lock(store_->mutex_);
    for (LaneStore::Group& group : store_->groups_) {
      if (group.cells.holds_past_of(slot_, keep)) continue;
      return error(Code::kUnsupported, "position %d sees positions that its window has dropped",
                   keep);
    }
    for (LaneStore::Group& group : store_->groups_) group.cells.cut(slot_, keep);
    length_ = keep;
    return {};
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    const std::lock_guard lock(store_->mutex_);
    MemoryUse use;
    for (const LaneStore::Group& group : store_->groups_) {
      const size_t held = group.cells.map().cells(slot_).size();
      use.resident += held * group.layout.bytes_per_entry();
      use.payload += to_size(group.cells.map().size(slot_)) * group.layout.bytes_per_entry();
      use.metadata += held * 2 * sizeof(int32_t);
    }
    use.metadata += sizeof(*this);
    return use;
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    int32_t number = LaneStore::kAnyNumber;
    GEN_ASSIGN(auto made, store_->make_lane(&number));
    GEN_TRY(store_->copy_prefix(sequence_, number, length()));
    return made;
  }

 private:
  friend class LaneStore;

  /// Drops the plan when it goes out of scope, unless it is kept.
  struct Unplanned {
    explicit Unplanned(Lane* own) noexcept : lane(own) {}
    Unplanned(const Unplanned&) = delete;
    Unplanned& operator=(const Unplanned&) = delete;
    ~Unplanned() {
      if (lane == nullptr) return;
      for (LaneStore::Group& group : lane->store_->groups_) group.cells.drop_planned(lane->slot_);
    }

    Lane* lane;
  };

  std::shared_ptr<LaneStore> store_;
  int32_t sequence_ = 0;
  int32_t slot_ = -1;                // negative: not open
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
};

LaneStore::LaneStore(const CacheFormat& format, std::span<const LayerShape> layers,
                     const LaneLimits& limits, engine::EngineMemory& memory)
    : format_(format), layers_(layers.begin(), layers.end()), limits_(limits), memory_(memory) {
  traits_.kind = format_.name();
  traits_.lossy = format_.lossy();
  traits_.layout = "lane";
}

Result<std::shared_ptr<LaneStore>> LaneStore::create(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     const LaneLimits& limits,
                                                     engine::EngineMemory& memory) {
  GEN_ASSIGN(const CacheFormat parsed, parse_cache_format(format));
  GEN_TRY(check_layers(parsed, layers));
  if (limits.rewind < 0 || limits.quota < 0) {
    return error(Code::kInvalidArgument, "a rewind of %d, a quota of %d: below 0", limits.rewind,
                 limits.quota);
  }
  std::shared_ptr<LaneStore> store(new LaneStore(parsed, layers, limits, memory));
  std::vector<std::vector<LayerShape>> groups;
  for (const LayerShape& shape : layers) {
    const auto same = [&](const std::vector<LayerShape>& group) {
      return group[0].window == shape.window && group[0].chunk == shape.chunk;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->push_back(shape);
    store->places_.push_back(
        {static_cast<size_t>(group - groups.begin()), static_cast<int32_t>(group->size()) - 1});
  }
  for (const auto& group : groups) GEN_TRY(store->add_group(group, limits));
  for (const LayerPlace& place : store->places_) {
    store->kv_layers_.push_back(store->groups_[place.group].layout.kv_layers()[to_size(place.layer)]);
    store->kv_layers_.back().part = static_cast<int32_t>(place.group);
  }
  if (limits.max_sequences > 0) store->lanes_.resize(to_size(limits.max_sequences));
  return store;
}

Status LaneStore::add_group(std::span<const LayerShape> layers, const LaneLimits& limits) {
  GEN_ASSIGN(CausalCells cells,
             CausalCells::create(rules_of(layers[0], limits.rewind),
                                 {limits.max_sequences, limits.capacity, limits.max_batch, 1}));
  cells.set_quota(limits.quota);
  const int32_t n_cells = cells.n_cells();
  const int32_t size = std::min(
      engine::kKvChunk, (n_cells + engine::kKvTile - 1) / engine::kKvTile * engine::kKvTile);
  GEN_ASSIGN(TileLayout layout, TileLayout::create(format_, layers, size));
  const size_t n_segments = to_size((n_cells + size - 1) / size);
  size_t bytes = 0;
  if (!checked_mul(layout.block_bytes(), n_segments, &bytes)) {
    return error(Code::kOutOfMemory, "%d cells of %zu layers overflow %zu bits", n_cells,
                 layers.size(), 8 * sizeof(size_t));
  }
  Group group = {std::move(cells),
                 std::move(layout),
                 {},
                 std::vector<engine::EnginePtr<std::byte>>(n_segments)};
  GEN_ASSIGN(group.buffer, memory_.allocate(bytes));
  for (size_t i = 0; i < n_segments; ++i) {
    group.segments[i] =
        group.buffer.data() + static_cast<std::ptrdiff_t>(i * group.layout.block_bytes());
  }
  traits_.bytes_per_entry += group.layout.bytes_per_entry();
  groups_.push_back(std::move(group));
  return {};
}

Result<std::unique_ptr<KvCache>> LaneStore::lane(int32_t sequence) {
  if (sequence < 0) return error(Code::kInvalidArgument, "sequence %d is below 0", sequence);
  return make_lane(&sequence);
}

Result<std::unique_ptr<KvCache>> LaneStore::make_lane(int32_t* sequence) {
  if (groups_.empty()) return error(Code::kInvalidArgument, "lanes of a store without layers");
  // Outside the lock, which the destructor of a lane takes.
  auto made = std::make_unique<Lane>(shared_from_this());
  const std::lock_guard lock(mutex_);
  const CellMap& map = groups_[0].cells.map();
  if (*sequence == kAnyNumber) {
    const int32_t last = map.sequences().empty() ? -1 : map.sequences().back().id;
    *sequence = last == kNoLimit ? 0 : last + 1;
  }
  if (map.find(*sequence) >= 0) return error(Code::kState, "sequence %d is open", *sequence);
  if (map.next_slot(0) < 0) {
    return error(Code::kCacheFull, "no room for sequence %d beside %zu of %d", *sequence,
                 map.sequences().size(), map.max_sequences());
  }
  for (Group& group : groups_) made->slot_ = group.cells.open(*sequence);
  made->sequence_ = *sequence;
  lanes_[to_size(made->slot_)] = made.get();
  return std::unique_ptr<KvCache>(std::move(made));
}

Status LaneStore::copy_prefix(int32_t src, int32_t dst, int32_t length) {
  const std::lock_guard lock(mutex_);
  if (groups_.empty()) return error(Code::kState, "a store without layers");
  const int32_t from = groups_[0].cells.map().find(src);
  const int32_t to = groups_[0].cells.map().find(dst);
  if (from < 0 || to < 0) {
    return error(Code::kState, "sequence %d is not open", from < 0 ? src : dst);
  }
  if (length < 0 || length > lanes_[to_size(from)]->length()) {
    return error(Code::kOutOfRange, "a prefix of %d of sequence %d, which holds %d", length, src,
                 lanes_[to_size(from)]->length());
  }
  for (const Group& group : groups_) {
    if (group.cells.holds_past_of(from, length)) continue;
    return error(Code::kUnsupported, "position %d sees positions that its window has dropped",
                 length);
  }
  for (Group& group : groups_) {
    if (from != to) group.cells.plan_share(from, to, length);
  }
  for (Group& group : groups_) {
    if (from == to) {
      group.cells.cut(to, length);
    } else {
      group.cells.share(from, to, length);
    }
  }
  lanes_[to_size(to)]->length_ = length;
  return {};
}

Status LaneStore::move_rows(const Group& group, std::span<const CellMove> moves) {
  std::vector<engine::KvRun> runs;
  runs.reserve(moves.size());
  for (const CellMove& move : moves) runs.push_back({move.from, move.to});
  const engine::KvEntries entries{group.layout.kv_layers(), {group.segments}};
  return memory_.run(engine::KvCopyArgs{entries, entries, runs});
}

Result<int32_t> LaneStore::compact(int32_t budget) {
  if (budget < 0) return error(Code::kInvalidArgument, "a budget of %d moves", budget);
  const std::lock_guard lock(mutex_);
  int32_t moved = 0;
  for (Group& group : groups_) {
    const std::vector<CellMove> moves = group.cells.plan_compact(budget - moved);
    GEN_TRY(move_rows(group, moves));
    group.cells.compact(moves);
    moved += static_cast<int32_t>(moves.size());
  }
  return moved;
}

int32_t LaneStore::free_cells(size_t group) {
  const std::lock_guard lock(mutex_);
  return groups_[group].cells.map().free_cells().count();
}

MemoryUse LaneStore::memory() {
  const std::lock_guard lock(mutex_);
  MemoryUse use;
  use.metadata = sizeof(*this) + lanes_.size() * sizeof(lanes_[0]);
  for (const Group& group : groups_) {
    const int32_t held = group.cells.n_cells() - group.cells.map().free_cells().count();
    use.resident += group.buffer.size();
    use.payload += to_size(held) * group.layout.bytes_per_entry();
    use.metadata += group.cells.bytes() + group.layout.table_bytes() +
                    group.segments.size() * sizeof(group.segments[0]);
  }
  return use;
}

}  // namespace gen::cache

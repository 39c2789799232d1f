// SPDX-License-Identifier: Apache-2.0
// See window_cache.h. Entry e lies in segment e / size of the block table, which is segment
// (e / size + offset) % n of the ring: writing it takes the place of the entry that is n segments
// before it. Entries move to other positions by whole segments when the offset changes.
#include "cache/sequence/window_cache.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "cache/sequence/contiguous_cache.h"
#include "cache/sequence/path_moves.h"
#include "cache/sequence/shift_entries.h"
#include "cache/sequence/split_cache.h"
#include "cache/sequence/tile_layout.h"
#include "cache/state/snapshot_list.h"

namespace gen::cache {
namespace {

constexpr int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Entries of a segment. Attention reads kKvChunk of them at once where it can; with short windows
/// smaller segments waste less.
int32_t segment_of(int32_t reach) {
  int32_t size = engine::kKvChunk;
  while (size > engine::kKvTile && size > reach / 4) size /= 2;
  return size;
}

/// Entries [from(), length()) as they were at that length. They lie in the ring until make(), and
/// take no bytes. Immutable from then on.
class WindowCopy final : public StateSnapshot {
 public:
  WindowCopy(int32_t from, int32_t length, size_t bytes) noexcept
      : from_(from), length_(length), bytes_(bytes) {}

  /// Copies them out of the ring; entry `from()` becomes the first. kOutOfMemory and the like.
  Status make(int32_t segments, const engine::KvEntries& ring, engine::EngineMemory& memory) {
    GEN_ASSIGN(buffer_, memory.allocate(bytes_));
    const size_t segment = bytes_ / static_cast<size_t>(segments);
    for (int32_t i = 0; i < segments; ++i) {
      table_.push_back(buffer_.data() +
                       static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * segment));
    }
    const engine::KvRun run{from_, 0, length_ - from_};
    return memory.run(engine::KvCopyArgs{ring, {ring.layers, {table_}}, {&run, 1}});
  }
  /// Copies those before `end` back.
  Status restore(int32_t end, const engine::KvEntries& ring, engine::EngineMemory& memory) const {
    const engine::KvRun run{0, from_, end - from_};
    return memory.run(engine::KvCopyArgs{{ring.layers, {table_}}, ring, {&run, 1}});
  }

  [[nodiscard]] int32_t from() const noexcept { return from_; }
  [[nodiscard]] bool made() const noexcept { return bytes_ > 0; }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] size_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] const void* memory() const noexcept override { return this; }

 private:
  int32_t from_;
  int32_t length_;
  size_t bytes_;  // 0: it is in the ring
  std::vector<engine::EnginePtr<std::byte>> table_;
  engine::EngineBuffer buffer_;
};

/// The numbers of a ring and its copies.
struct WindowSize {
  int32_t reach = 0;
  int32_t rewind = 0;
  int32_t segments = 0;
  int32_t copies = 0;
  int32_t copy_segments = 0;
  bool shifts = false;
  /// What is kept for the next row: a shift by less than a tile moves the beginning of a window to
  /// another place in its tile, and it must have a whole one there, too.
  [[nodiscard]] int32_t kept() const noexcept { return reach + (shifts ? engine::kKvTile - 1 : 0); }
};

/// Invariant: entries [held_from_, length_) lie in the ring, and those that a row at length_ sees
/// are among them, in whole tiles. So do those of points without a copy.
class WindowCache final : public KvCache, public Shifts {
 public:
  WindowCache(TileLayout layout, int32_t capacity, const WindowSize& size,
              engine::EngineMemory& memory)
      : layout_(std::move(layout)),
        capacity_(capacity),
        size_(size),
        memory_(memory),
        table_(static_cast<size_t>(divide_up(capacity, layout_.block_size()))) {
    traits_.kind = layout_.format().name();
    traits_.lossy = layout_.format().lossy();
    traits_.layout = "window";
    traits_.keeps_paths = true;
    traits_.cuts_exactly = false;
    traits_.bytes_per_entry = layout_.bytes_per_entry();
    points_.set_budget(static_cast<size_t>(size.copies) * copy_bytes());
  }

  Status reserve() {
    size_t bytes = 0;
    if (!checked_mul(layout_.block_bytes(), static_cast<size_t>(size_.segments), &bytes)) {
      return error(Code::kOutOfMemory, "a window of %d entries of %zu layers overflows %zu bits",
                   ring(), layout_.layers().size(), 8 * sizeof(size_t));
    }
    GEN_ASSIGN(buffer_, memory_.allocate(bytes));
    lay_out();
    return {};
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return layout_.layers();
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }
  [[nodiscard]] int32_t plan_limit() const noexcept override {
    return ring() - size_.kept() - (engine::kKvTile - 1);
  }
  [[nodiscard]] int32_t keeps_behind(int32_t /*layer*/) const noexcept override {
    return size_.reach;
  }
  [[nodiscard]] int32_t first_held(int32_t /*layer*/) const noexcept override {
    return std::min(held_from_, length());
  }
  /// What any cache of windows needs, if it is there: those that shift, and pools of blocks that
  /// are no multiple of a tile, keep up to a tile more.
  [[nodiscard]] int32_t saves_from(int32_t /*layer*/) const noexcept override {
    const int32_t from = first_kept(length(), size_.reach + engine::kKvTile - 1);
    return from >= held_from_ ? from : first_kept(length(), size_.reach);
  }
  [[nodiscard]] bool wants_points() const noexcept override { return size_.copies > 0; }
  void remember(int32_t n, SnapshotPlace place) noexcept override {
    if (!wants_points() || n < 1 || n > length() || first_kept(n, size_.kept()) < held_from_)
      return;
    const auto known = points_.entries();
    if (!known.empty() && known.back().snapshot->length() > n) return;
    // Less than the rewind where a part of it is gone.
    const int32_t held = (held_from_ + engine::kKvTile - 1) / engine::kKvTile * engine::kKvTile;
    const int32_t from = std::max(first_kept(n, size_.kept() + size_.rewind), held);
    try {
      points_.reserve(1);
      points_.add(std::make_shared<WindowCopy>(from, n, 0), place);
    } catch (...) {  // no memory: a cut evaluates more again
    }
    drop_waiting();
  }
  void set_first_held(int32_t /*layer*/, int32_t entry) noexcept override {
    held_from_ = std::max(held_from_, entry);
  }

  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0 || n > plan_limit()) {
      return error(Code::kInvalidArgument, "a plan for %d entries of a window's, at most %d", n,
                   plan_limit());
    }
    if (n > capacity_ - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity_, n);
    }
    GEN_TRY(settle());
    const int32_t held = std::max(held_from_, length() + n - ring());
    copy_points(held);
    held_from_ = held;  // the rows may be written at any time
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
    return engine::KvTables{std::span(table_).first(held)};
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(plan.start == length() && plan.count <= capacity_ - length());
    moves_.note(plan, kept);
    length_ = plan.start + kept.n;
  }

  Status truncate(int32_t n) override {
    if (n >= length()) return {};
    n = std::max(n, 0);
    if (n > 0 && first_kept(n, size_.kept()) < held_from_) n = restore(n);
    if (n == 0) held_from_ = 0;
    length_ = n;
    moves_.cut(n);
    points_.cut(n);
    return {};
  }

  [[nodiscard]] Shifts* shifting() noexcept override { return size_.shifts ? this : nullptr; }
  Status shift(int32_t first, int32_t n) override {
    if (first < 0 || first > length() || n < 0 || n > length() - first) {
      return error(Code::kInvalidArgument, "cannot drop %d positions from %d on of %d", n, first,
                   length());
    }
    if (n == 0) return {};
    int32_t from = std::max(held_from_, first + n);  // of those that stay
    const int32_t segment = layout_.block_size();
    // Where the ring holds all that moves and all places that it moves to, it moves as in a cache
    // that keeps everything. Otherwise it moves by whole segments with the table, and by the rest
    // of n in the ring, whose oldest entries go if it is full.
    const bool by_table = length() - (from - n) > ring();
    const int32_t rest = by_table ? n % segment : n;
    if (by_table) from = std::max(from, length() - ring() + rest);
    const int32_t left = length() - n;
    const int32_t held = held_from_ <= first ? held_from_ : from - n;
    if (held > first_kept(left, size_.reach)) {
      return error(Code::kUnsupported,
                   "the window of %d positions holds none before %d, %d are needed", left, held,
                   first_kept(left, size_.reach));
    }
    const std::vector<const engine::RopeTable*> ropes = turning_tables(layers());
    GEN_TRY(settle());
    const int32_t offset = offset_;
    const int32_t whole = n - rest;
    offset_ = (offset_ + whole / segment) % size_.segments;
    lay_out();
    const auto move = [&] {
      return memory_.run(engine::KvShiftArgs{all(), ropes, from - n, rest, length() - whole, n});
    };
    Status moved;
    try {
      moved = move();
    } catch (...) {
      offset_ = offset;
      lay_out();
      throw;
    }
    if (!moved.ok()) {
      offset_ = offset;
      lay_out();
      return moved;
    }
    points_.cut(first);
    held_from_ = held;
    length_ = left;
    return {};
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_TRY(settle());
    auto copy = std::make_unique<WindowCache>(layout_, capacity_, size_, memory_);
    copy->offset_ = offset_;
    GEN_TRY(copy->reserve());
    const int32_t from = std::max(held_from_, length() - ring());
    const engine::KvRun run{from, from, length() - from};
    GEN_TRY(memory_.run(engine::KvCopyArgs{all(), copy->all(), {&run, 1}}));
    copy->length_ = length();
    copy->held_from_ = held_from_;
    copy->points_ = points_;
    return std::unique_ptr<KvCache>(std::move(copy));
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse use;
    use.resident = buffer_.size() + points_.bytes();
    use.payload =
        static_cast<size_t>(std::min(length(), size_.reach + 1)) * traits_.bytes_per_entry;
    use.metadata = sizeof(*this) + layout_.table_bytes() + table_.size() * sizeof(table_[0]);
    return use;
  }
  [[nodiscard]] size_t max_resident() const noexcept override {
    return buffer_.size() + points_.budget();
  }

 private:
  /// Entries of the ring.
  [[nodiscard]] int32_t ring() const noexcept { return size_.segments * layout_.block_size(); }
  void lay_out() noexcept {
    for (size_t i = 0; i < table_.size(); ++i) {
      const size_t place = (i + static_cast<size_t>(offset_)) % static_cast<size_t>(size_.segments);
      table_[i] = buffer_.data() + static_cast<std::ptrdiff_t>(place * layout_.block_bytes());
    }
  }
  [[nodiscard]] size_t copy_bytes() const noexcept {
    return static_cast<size_t>(size_.copy_segments) * layout_.block_bytes();
  }
  static const WindowCopy& copy_of(const SnapshotList::Entry& point) noexcept {
    return static_cast<const WindowCopy&>(*point.snapshot);
  }
  /// Copies the points that have entries before `held`, which are about to be written over. What
  /// the copies of others must go for goes first, or the point itself.
  void copy_points(int32_t held) noexcept {
    const auto is_due = [held](const SnapshotList::Entry& point) {
      return !copy_of(point).made() && copy_of(point).from() < held;
    };
    for (;;) {
      const auto points = points_.entries();
      const auto due = std::find_if(points.begin(), points.end(), is_due);
      if (due == points.end()) return;
      const auto at = static_cast<size_t>(due - points.begin());
      std::shared_ptr<WindowCopy> copy;
      try {
        copy = std::make_shared<WindowCopy>(copy_of(*due).from(), copy_of(*due).length(),
                                            copy_bytes());
      } catch (...) {  // no memory: a cut evaluates more again
      }
      points_.replace(at, copy);
      const auto left = points_.entries();
      const auto kept = std::find_if(left.begin(), left.end(),
                                     [&](const auto& point) { return point.snapshot == copy; });
      if (copy == nullptr || kept == left.end()) continue;
      bool made = false;
      try {
        made = copy->make(size_.copy_segments, all(), memory_).ok();
      } catch (...) {  // the same
      }
      if (!made) points_.replace(static_cast<size_t>(kept - left.begin()), nullptr);
    }
  }
  /// Of too many points in the ring, lets the one go that is the closest behind another.
  void drop_waiting() noexcept {
    constexpr int32_t kMost = 16;
    const auto points = points_.entries();
    int32_t waiting = 0;
    size_t closest = 0;
    int32_t least = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < points.size(); ++i) {
      if (copy_of(points[i]).made()) continue;
      ++waiting;
      const int32_t before = i > 0 ? points[i - 1].snapshot->length() : 0;
      const int32_t gap = points[i].snapshot->length() - before;
      if (i + 1 == points.size() || gap >= least) continue;
      least = gap;
      closest = i;
    }
    if (waiting > kMost) points_.replace(closest, nullptr);
  }
  /// Brings back the window of as many of the first `n` positions as a copy has; their number.
  int32_t restore(int32_t n) noexcept {
    const WindowCopy* best = nullptr;
    int32_t most = 0;
    for (const SnapshotList::Entry& point : points_.entries()) {
      const WindowCopy& copy = copy_of(point);
      const int32_t has = std::min(n, copy.length());
      if (!copy.made() || has <= most || first_kept(has, size_.kept()) < copy.from()) continue;
      best = &copy;
      most = has;
    }
    if (best == nullptr) return 0;
    try {
      if (!best->restore(most, all(), memory_).ok()) return 0;
    } catch (...) {
      return 0;
    }
    held_from_ = best->from();
    return most;
  }
  [[nodiscard]] engine::KvEntries all() const noexcept { return {layout_.kv_layers(), {table_}}; }
  Status settle() {
    GEN_TRY(moves_.move(memory_, all()));
    moves_.clear();
    return {};
  }

  TileLayout layout_;
  int32_t capacity_;
  WindowSize size_;
  engine::EngineMemory& memory_;
  PathMoves moves_;
  std::vector<engine::EnginePtr<std::byte>> table_;
  int32_t offset_ = 0;  // below size_.segments
  int32_t held_from_ = 0;
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
  SnapshotList points_;
  CacheTraits traits_;
  engine::EngineBuffer buffer_;
};

}  // namespace

int32_t window_reach(const LayerShape& layer) noexcept {
  int32_t reach = -1;
  if (layer.window > 0) reach = layer.window - 1;
  if (layer.chunk > 0 && (reach < 0 || layer.chunk - 1 < reach)) reach = layer.chunk - 1;
  return std::min(reach, std::numeric_limits<int32_t>::max() - 4 * engine::kKvTile);
}

bool window_slides(const LayerShape& layer, int32_t capacity, int32_t lead) noexcept {
  const int64_t reach = window_reach(layer);
  return reach >= 0 && int64_t{capacity} - lead >= 2 * (reach + engine::kKvTile - 1);
}

Result<std::unique_ptr<KvCache>> create_window_cache(const CacheFormat& format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t capacity, const WindowRoom& room,
                                                     engine::EngineMemory& memory) {
  const int32_t reach = window_reach(layers[0]);
  GEN_ASSERT(reach >= 0 && room.rows > 0 && room.rewind >= 0 && room.copies >= 0);
  const int32_t size = segment_of(reach);
  WindowSize numbers;
  numbers.reach = reach;
  numbers.rewind = room.rewind;
  numbers.copies = room.copies;
  numbers.shifts = room.lead.has_value() && can_shift_entries(format, layers);
  const int64_t kept = int64_t{numbers.kept()} + engine::kKvTile - 1 + room.rewind;
  // A shift takes the room of less than a segment.
  const int32_t rows = numbers.shifts ? std::max(room.rows, size) : room.rows;
  const int64_t segments = divide_up(kept + rows, size);
  const int64_t copy_segments = divide_up(kept, size);
  if ((numbers.shifts && !window_slides(layers[0], capacity, *room.lead)) ||
      segments + room.copies * copy_segments >= divide_up(capacity, size)) {
    return create_contiguous_cache(format, layers, capacity, memory);
  }
  GEN_ASSIGN(TileLayout layout, TileLayout::create(format, layers, size));
  numbers.segments = static_cast<int32_t>(segments);
  numbers.copy_segments = static_cast<int32_t>(copy_segments);
  auto cache = std::make_unique<WindowCache>(std::move(layout), capacity, numbers, memory);
  GEN_TRY(cache->reserve());
  return std::unique_ptr<KvCache>(std::move(cache));
}

Result<std::unique_ptr<KvCache>> make_windowed_cache(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t capacity, const WindowRoom& room,
                                                     engine::EngineMemory& memory) {
  GEN_ASSIGN(const CacheFormat parsed, parse_cache_format(format));
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  GEN_TRY(check_layers(parsed, layers));
  std::vector<std::vector<LayerShape>> groups;
  std::vector<int32_t> group_of_layer;
  for (const LayerShape& layer : layers) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return window_reach(group[0]) == window_reach(layer);
    });
    group_of_layer.push_back(static_cast<int32_t>(same - groups.begin()));
    if (same != groups.end()) {
      same->push_back(layer);
    } else {
      groups.push_back({layer});
    }
  }
  const auto make = [&](std::span<const LayerShape> group) {
    return !group.empty() && window_reach(group[0]) >= 0
               ? create_window_cache(parsed, group, capacity, room, memory)
               : create_contiguous_cache(parsed, group, capacity, memory);
  };
  if (groups.size() < 2) return make(layers);
  std::vector<std::unique_ptr<KvCache>> caches;
  for (const auto& group : groups) {
    GEN_ASSIGN(auto made, make(group));
    caches.push_back(std::move(made));
  }
  return make_split_cache(std::move(caches), group_of_layer);
}

}  // namespace gen::cache

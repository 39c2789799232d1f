// SPDX-License-Identifier: Apache-2.0
// Many sequences in one memory, each seen as a cache of its own, a lane, that a batch takes like
// any other (kv_cache.h). Cells hold tiles as tile_layout.h says, in any cache format. Layers with
// the same window and chunk share a group of cells, as the children of a wrapper do: a group with a
// window holds no more positions than it needs. A view lists the cells of its sequence, so results
// are those of a cache alone, bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/batch/causal_cells.h"
#include "cache/sequence/kv_cache.h"
#include "cache/sequence/tile_layout.h"

namespace gen::cache {

struct LaneLimits {
  int32_t max_sequences = 1;
  int32_t capacity = 1;   // positions of a lane, on average where there is no window: a common pool
  int32_t max_batch = 1;  // rows that lanes may plan at once, over all of them
  int32_t rewind = 0;     // positions beyond the window that truncate may surely go back
  int32_t quota = 0;      // most positions that a lane may hold in a group; 0 for no limit
};

/// Threads: lanes of one store may be planned, committed and cut by different threads; each lane by
/// one at a time. compact() and copy_prefix() are for between passes.
class LaneStore : public std::enable_shared_from_this<LaneStore> {
 public:
  /// All memory is taken now, but touched as it is written. `memory` must outlive the store and
  /// its lanes. kInvalidArgument as make_cache and CausalCells::create; kOutOfMemory.
  static Result<std::shared_ptr<LaneStore>> create(std::string_view format,
                                                   std::span<const LayerShape> layers,
                                                   const LaneLimits& limits,
                                                   engine::EngineMemory& memory);

  /// An empty lane, which keeps the store alive and gives its cells back when it ends. Its plan()
  /// fails with kCacheFull if cells are short, and nothing has changed then. A plan that is dropped
  /// keeps its cells until the lane next plans, is cut or ends. truncate() is kUnsupported where a
  /// window would reach positions that are gone. fork() shares all cells. Errors: kInvalidArgument
  /// for a number below 0, kState if the sequence is open, kCacheFull for more than max_sequences.
  Result<std::unique_ptr<KvCache>> lane(int32_t sequence);

  /// An open lane becomes the first `length` positions of another, by reference. kState if one is
  /// not open, kOutOfRange if src is shorter, kUnsupported if it does not hold what the windows see
  /// from there.
  Status copy_prefix(int32_t src, int32_t dst, int32_t length);
  /// Moves at most `budget` cells in all, from the end into holes; how many it moved.
  Result<int32_t> compact(int32_t budget);

  [[nodiscard]] size_t groups() const noexcept { return groups_.size(); }
  /// Of one group, in the order in which layers first name it.
  [[nodiscard]] int32_t cells(size_t group) const noexcept {
    return groups_[group].cells.n_cells();
  }
  [[nodiscard]] int32_t free_cells(size_t group);
  [[nodiscard]] MemoryUse memory();

 private:
  friend class Lane;

  /// Layers of one window and chunk.
  struct Group {
    CausalCells cells;
    TileLayout layout;
    engine::EngineBuffer buffer;
    std::vector<engine::EnginePtr<std::byte>> segments;
  };
  struct LayerPlace {
    size_t group;
    int32_t layer;  // in the group
  };

  LaneStore(const CacheFormat& format, std::span<const LayerShape> layers, const LaneLimits& limits,
            engine::EngineMemory& memory);
  Status add_group(std::span<const LayerShape> layers, const LaneLimits& limits);
  static constexpr int32_t kAnyNumber = -1;
  /// kAnyNumber becomes one that is not open.
  Result<std::unique_ptr<KvCache>> make_lane(int32_t* sequence);
  Status move_rows(const Group& group, std::span<const CellMove> moves);

  CacheFormat format_;
  std::vector<LayerShape> layers_;
  std::vector<LayerPlace> places_;  // of each layer
  std::vector<engine::KvLayer> kv_layers_;
  LaneLimits limits_;
  engine::EngineMemory& memory_;
  CacheTraits traits_;
  std::mutex mutex_;  // over all below but the rows
  std::vector<Group> groups_;
  std::vector<class Lane*> lanes_;  // by slot, which is the same in every group
};

}  // namespace gen::cache

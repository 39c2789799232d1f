// SPDX-License-Identifier: Apache-2.0
// A fixed number of equal blocks of raw bytes with reference counts, shared by the sequences of
// paged caches: forks, prefixes and beams hold the same block instead of copies. The users of a
// block define its contents; the pool only knows how many positions are written.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/memory.h"

namespace gen::cache {

class BlockPool;

/// Memories that a block may lie in: an engine's, and that of the engine for the layers beside it.
inline constexpr size_t kMaxBlockParts = 2;

/// What a block is used for, where a pool's users tell groups apart: 0 for those that do not.
inline constexpr size_t kMaxBlockGroups = 4;

/// The bytes of a block in one memory, which outlives the pool.
struct BlockPart {
  size_t bytes = 0;
  engine::EngineMemory* memory = nullptr;
};

/// One block, identified by its address while its pool lives. The holder of the only reference may
/// write; a block with several references is read-only.
class Block {
 public:
  /// pool().part_bytes(part) bytes of pool().memory(part). Undefined after an allocation.
  [[nodiscard]] engine::EnginePtr<std::byte> data(size_t part = 0) const noexcept {
    return data_[part];
  }
  /// Positions written, as its users report.
  [[nodiscard]] int32_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// 0 for a free block. A holder that sees 1 is the only one, and everything that others did with
  /// the block happened before.
  [[nodiscard]] int32_t references() const noexcept {
    return references_.load(std::memory_order_acquire);
  }
  [[nodiscard]] const BlockPool& pool() const noexcept { return *pool_; }
  /// Below kMaxBlockGroups.
  [[nodiscard]] size_t group() const noexcept { return group_; }

 private:
  friend class BlockPool;
  const BlockPool* pool_ = nullptr;
  std::array<engine::EnginePtr<std::byte>, kMaxBlockParts> data_;
  Block* next_free_ = nullptr;
  std::atomic<int32_t> references_ = 0;
  std::atomic<int32_t> used_ = 0;
  uint8_t group_ = 0;  // written before the block has users
};

/// A holder that keeps blocks only for later reuse, and gives them up before a pool runs out.
/// Called by the thread that needs blocks, one such call at a time, while the pool itself is not
/// locked.
class BlockSaver {
 public:
  /// Blocks that only this saver holds.
  [[nodiscard]] virtual size_t spare() const noexcept = 0;
  /// Releases as many of these as are wanted, or all, and returns the number.
  virtual size_t give_up(size_t wanted) noexcept = 0;

 protected:
  ~BlockSaver() = default;
};

/// Storage: blocks lie in segments of about a megabyte, taken from the memory when the first of
/// their blocks is; free blocks are reused in the order last freed, first used, and segments are
/// kept. In debug builds the bytes of a freed block are set to kPoison, which reads as NaN in
/// float32, binary16 and E4M3.
/// Threads: any, at the same time.
class BlockPool {
 public:
#ifdef NDEBUG
  static constexpr bool kPoisons = false;
#else
  static constexpr bool kPoisons = true;
#endif
  static constexpr unsigned char kPoison = 0xFF;

  /// `count` blocks of `block_bytes` for `block_size` positions each, all at least 1; their product
  /// must fit a size. `memory` must outlive the pool.
  BlockPool(size_t block_bytes, int32_t block_size, size_t count, engine::EngineMemory& memory,
            bool holds_tensors = false) noexcept;
  /// The same in one to kMaxBlockParts parts of at least a byte.
  BlockPool(std::span<const BlockPart> parts, int32_t block_size, size_t count) noexcept;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// A block with one reference. kPoolExhausted; kOutOfMemory.
  Result<Block*> allocate();
  /// Fills `out` or, on failure, takes none. Savers give up blocks if that is enough.
  Status allocate(std::span<Block*> out);
  /// Moves a block of one reference, without written positions, to a group.
  void set_group(Block& block, size_t group) noexcept;
  /// What allocate() would return now for that many blocks, not counting memory.
  [[nodiscard]] Status make_available(size_t wanted);
  /// Adds a reference. kState unless the block is allocated and this pool's.
  Status retain(Block* block) { return retain(std::span(&block, 1)); }
  /// Adds a reference to each of them, or to none.
  Status retain(std::span<Block* const> blocks);
  /// Removes a reference; without references the block is free. kState for null, a block of another
  /// pool and a block that is free already.
  Status release(Block* block);
  /// Sets the number of written positions, in [0, block_size]. The caller is the only holder.
  void set_used(Block& block, int32_t positions) noexcept;
  /// The same, unless at least that many are written already; also for a shared block.
  void raise_used(Block& block, int32_t positions) noexcept;
  /// Whether `block` is this pool's and allocated.
  [[nodiscard]] bool holds(const Block* block) const;

  /// Whether blocks lie as BlockShape of paged_store.h says, which who is shown them may read.
  [[nodiscard]] bool holds_tensors() const noexcept { return holds_tensors_; }
  /// Blocks in all; free blocks; positions and bytes of a block.
  [[nodiscard]] size_t capacity() const noexcept { return count_; }
  [[nodiscard]] size_t available() const noexcept;
  /// Free blocks, and those that savers would give up.
  [[nodiscard]] size_t obtainable();
  [[nodiscard]] int32_t block_size() const noexcept { return block_size_; }
  [[nodiscard]] size_t block_bytes() const noexcept { return block_bytes_; }
  [[nodiscard]] size_t parts() const noexcept { return parts_; }
  [[nodiscard]] size_t part_bytes(size_t part = 0) const noexcept { return part_bytes_[part]; }
  /// Positions of allocated blocks that are not written, as a share of all of theirs; 0 if none is
  /// allocated.
  [[nodiscard]] double fragmentation() const noexcept;
  /// The same of a group's blocks, and their number.
  [[nodiscard]] double fragmentation(size_t group) const noexcept;
  [[nodiscard]] size_t allocated(size_t group) const noexcept { return groups_[group].allocated; }
  /// Bytes taken from the memory.
  [[nodiscard]] size_t resident_bytes() const noexcept;
  /// Blocks in segments, free ones too; and how many there would be once so many are in use.
  [[nodiscard]] size_t made() const noexcept { return made_; }
  [[nodiscard]] size_t made_for(size_t used) const noexcept;

  /// A saver must be removed before its lifetime ends, and not while it is locked.
  void add_saver(BlockSaver& saver);
  void remove_saver(const BlockSaver& saver) noexcept;

  /// Of a pool with one part. kState once a block has been allocated.
  Status set_memory(engine::EngineMemory& memory);
  /// Where blocks lie.
  [[nodiscard]] engine::EngineMemory& memory(size_t part = 0) const noexcept {
    return *memories_[part];
  }

 private:
  struct Segment {
    std::array<engine::EngineBuffer, kMaxBlockParts> data;
    std::unique_ptr<Block[]> blocks;
    size_t count = 0;
  };

  [[nodiscard]] Status check_free(size_t wanted) const;  // mutex_ held
  Status take(std::span<Block*> out);                    // mutex_ held; they are free
  /// Whether savers have given up some of the blocks that are missing for `wanted`. No lock is
  /// held.
  bool reclaim(size_t wanted);
  [[nodiscard]] Block* find(const Block* block) const;  // mutex_ held; null if not this pool's
  Status add_segment();                                 // mutex_ held
  [[nodiscard]] size_t segment_blocks() const noexcept;
  void put_back(Block* block) noexcept;  // mutex_ held
  [[nodiscard]] double unused_share(size_t allocated, int64_t used) const noexcept;

  const size_t parts_;
  std::array<size_t, kMaxBlockParts> part_bytes_{};
  const size_t block_bytes_;
  const int32_t block_size_;
  const size_t count_;
  bool holds_tensors_ = false;
  mutable std::mutex mutex_;
  /// By part; changes before the first block only.
  std::array<std::atomic<engine::EngineMemory*>, kMaxBlockParts> memories_{};
  std::map<const Block*, Segment> segments_;  // by the first block
  Block* free_ = nullptr;                     // latest first
  // Changed under the mutex; read by anybody, in an allocator's callback, too.
  std::atomic<size_t> made_ = 0;  // blocks in segments
  std::atomic<size_t> allocated_ = 0;
  struct GroupUse {
    std::atomic<size_t> allocated = 0;
    std::atomic<int64_t> used = 0;  // positions of allocated blocks
  };
  std::array<GroupUse, kMaxBlockGroups> groups_;

  std::mutex savers_mutex_;  // locked before a saver's own and before mutex_
  std::vector<BlockSaver*> savers_;
};

}  // namespace gen::cache

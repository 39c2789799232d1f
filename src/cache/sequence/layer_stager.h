// SPDX-License-Identifier: Apache-2.0
// Loads spilled blocks back into memory, layer by layer in the order of a forward pass: the caller
// needs one layer now, while a separate thread reads the next ones. There is room for a few layers;
// the rest must be read again each time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "cache/sequence/spill_file.h"
#include "engine/memory.h"

namespace gen::cache {

/// With one room nothing is read ahead, and the thread only helps.
/// A copy is identified by its source blocks, which it keeps alive, so that it can never be
/// mistaken for a copy of later blocks.
/// Threads: one caller.
class LayerStager {
 public:
  using Blocks = std::span<const std::shared_ptr<const SpilledBlock>>;

  /// Room for `rooms` layers, 1 and up, of blocks of up to block_bytes. `bytes_read` grows by what
  /// is read, and must outlive the stager.
  LayerStager(int32_t rooms, size_t block_bytes, engine::EngineMemory& memory,
              std::atomic<uint64_t>& bytes_read)
      : block_bytes_(block_bytes),
        memory_(memory),
        bytes_read_(bytes_read),
        rooms_(static_cast<size_t>(rooms)) {}
  ~LayerStager();
  LayerStager(const LayerStager&) = delete;
  LayerStager& operator=(const LayerStager&) = delete;

  /// Where blocks of a layer will be read to: its room is layer % rooms. Valid until forget().
  /// kOutOfMemory.
  Status places(int32_t layer, std::span<engine::EnginePtr<std::byte>> out);
  /// Brings a layer's blocks to places(), until the next layer of the same room is needed. Reads
  /// what is not there yet, with the thread's help, and tells how many blocks it began to read.
  /// After a failure it may be called again. kOutOfMemory, and what SpilledBlock::read says.
  Status need(int32_t layer, Blocks blocks, size_t* begun);
  /// Has the thread read a layer in its room, unless that is the current layer's; never waits for
  /// it. What fails is left to need().
  void start(int32_t layer, Blocks blocks);
  /// Drops all copies and their memory.
  void forget() noexcept;
  /// Bytes taken from the memory.
  [[nodiscard]] size_t bytes() const noexcept;

 private:
  struct Room {
    int32_t layer = -1;
    uint64_t used = 0;  // the larger, the later
    std::vector<std::shared_ptr<const SpilledBlock>> blocks;
    std::vector<engine::EngineBuffer> buffers;  // at least one a block
    size_t next = 0;                            // the first block that nobody has begun to read
    size_t reading = 0;                         // blocks being read
    Status failure;                             // of the first read that failed
  };

  [[nodiscard]] Room& room_of(int32_t layer) noexcept {
    return rooms_[static_cast<size_t>(layer) % rooms_.size()];
  }
  /// At least so many buffers.
  Status grow(Room& room, size_t buffers);
  [[nodiscard]] static bool holds(const Room& room, Blocks blocks) noexcept;
  [[nodiscard]] static bool pending(const Room& room) noexcept {
    return room.failure.ok() && room.next < room.blocks.size();
  }
  /// Makes a room without running reads one for these blocks, keeping those it has.
  Status prepare(Room& room, int32_t layer, Blocks blocks);
  /// No more reads begin; returns when none is running.
  void settle(Room& room, std::unique_lock<std::mutex>& lock);
  Status read_block(const SpilledBlock& block, engine::EnginePtr<std::byte> to) const noexcept;
  void read_next(Room& room, std::unique_lock<std::mutex>& lock);
  /// The thread, unless it runs or the system gives none. mutex_ held.
  void begin_thread();
  void serve() noexcept;

  const size_t block_bytes_;
  engine::EngineMemory& memory_;
  std::atomic<uint64_t>& bytes_read_;
  mutable std::mutex mutex_;
  std::condition_variable work_;  // for the thread
  std::condition_variable done_;  // a read has ended
  std::vector<Room> rooms_;
  Room* current_ = nullptr;  // of the last need()
  uint64_t uses_ = 0;
  bool stop_ = false;
  bool no_thread_ = false;  // the system gave none
  Thread thread_;
};

}  // namespace gen::cache

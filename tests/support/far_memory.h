// SPDX-License-Identifier: Apache-2.0
// FarMemory: engine memory that host code cannot access. It is mapped twice: addresses are in an
// inaccessible mapping, and operations use the other one. Its operations are lazy: they run when it
// is read or an engine begins to work. Freed memory is filled with NaNs and never reused.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "engine/access.h"
#include "engine/kv/memory_ops_run.h"
#include "engine/memory.h"

namespace gen::test {

class FarMemory final : public engine::EngineMemory {
 public:
  explicit FarMemory(size_t bytes = size_t{256} << 20) : bytes_(bytes) {
    const int file = memfd_create("far", 0);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    near_ = map(file, PROT_READ | PROT_WRITE);
    far_ = map(file, PROT_NONE);
    close(file);
  }
  ~FarMemory() {
    settle();
    EXPECT_EQ(live_, 0U) << "bytes that were not given back";
    munmap(near_, bytes_);
    munmap(far_, bytes_);
  }
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  /// From addresses to bytes.
  [[nodiscard]] std::ptrdiff_t distance() const { return near_ - far_; }

  [[nodiscard]] size_t live_bytes() {
    const std::lock_guard lock(mutex_);
    return live_;
  }

  /// Runs all pending operations.
  void settle() {
    const std::lock_guard lock(mutex_);
    for (const auto& work : std::exchange(queue_, {})) work();
  }

  Status run(const engine::MemoryOp& op) override {
    enqueue([this, kept = Kept(op)] { EXPECT_TRUE(run_memory_op(kept.op(), distance()).ok()); });
    return {};
  }
  Status write(engine::EnginePtr<std::byte> to, const void* from, size_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(from);
    enqueue([this, to, taken = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(engine::Access::pointer(to, distance()), taken.data(), taken.size());
    });
    return {};
  }
  Status read(void* to, engine::EnginePtr<const std::byte> from, size_t bytes) override {
    settle();
    std::memcpy(to, engine::Access::pointer(from, distance()), bytes);
    return {};
  }

 protected:
  Status take(size_t bytes, engine::EnginePtr<std::byte>* out) override {
    const std::lock_guard lock(mutex_);
    const size_t at = (used_ + 63) / 64 * 64;
    if (bytes > bytes_ || at > bytes_ - bytes) {
      return error(Code::kOutOfMemory, "far memory has no %zu bytes", bytes);
    }
    used_ = at + bytes;
    live_ += bytes;
    *out = engine::engine_ptr(far_ + at);
    return {};
  }
  void give_back(engine::EnginePtr<std::byte> at, size_t bytes) noexcept override {
    enqueue(
        [this, at, bytes] { std::memset(engine::Access::pointer(at, distance()), 0xFF, bytes); });
    const std::lock_guard lock(mutex_);
    live_ -= bytes;
  }

 private:
  /// An operation with lists of its own.
  class Kept {
   public:
    explicit Kept(const engine::MemoryOp& op) : op_(op) {
      std::visit([this](const auto& args) { take(args); }, op_);
    }
    /// The lists may have moved with this object.
    [[nodiscard]] engine::MemoryOp op() const {
      engine::MemoryOp op = op_;
      if (auto* copy = std::get_if<engine::KvCopyArgs>(&op)) {
        copy->from = lists_[0].entries();
        copy->to = lists_[1].entries();
        copy->runs = runs_;
      } else if (auto* shift = std::get_if<engine::KvShiftArgs>(&op)) {
        shift->entries = lists_[0].entries();
        shift->ropes = ropes_;
      } else if (auto* pool = std::get_if<engine::KvPoolArgs>(&op)) {
        pool->entries = lists_[0].entries();
        pool->ropes = ropes_;
      }
      return op;
    }

   private:
    struct Lists {
      explicit Lists(const engine::KvEntries& from)
          : layers(from.layers.begin(), from.layers.end()),
            blocks(from.tables.blocks.begin(), from.tables.blocks.end()),
            cells(from.tables.cells.begin(), from.tables.cells.end()),
            first_cell(from.tables.first_cell) {}
      [[nodiscard]] engine::KvEntries entries() const {
        return {layers, {blocks, cells, first_cell}};
      }
      std::vector<engine::KvLayer> layers;
      std::vector<engine::EnginePtr<std::byte>> blocks;
      std::vector<int32_t> cells;
      int32_t first_cell;
    };
    void take(const engine::CopyArgs&) {}
    void take(const engine::FillArgs&) {}
    void take(const engine::KvCopyArgs& args) {
      lists_.emplace_back(args.from);
      lists_.emplace_back(args.to);
      runs_.assign(args.runs.begin(), args.runs.end());
    }
    template <typename Args>
    void take(const Args& args) {
      lists_.emplace_back(args.entries);
      ropes_.assign(args.ropes.begin(), args.ropes.end());
    }

    engine::MemoryOp op_;
    std::vector<Lists> lists_;
    std::vector<engine::KvRun> runs_;
    std::vector<const engine::RopeTable*> ropes_;
  };

  std::byte* map(int file, int protection) const {
    return static_cast<std::byte*>(mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0));
  }
  void enqueue(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }

  size_t bytes_;
  std::byte* near_ = nullptr;
  std::byte* far_ = nullptr;
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
  size_t used_ = 0;
  size_t live_ = 0;
};

/// From addresses to bytes of any memory; what was asked of it is done.
inline std::ptrdiff_t distance_of(engine::EngineMemory& memory) {
  auto* const far = dynamic_cast<FarMemory*>(&memory);
  if (far == nullptr) return 0;
  far->settle();
  return far->distance();
}

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// FarEngine: the CPU engine behind a wall, to prove without a device what holds for one. Its memory
// is mapped twice. Everybody sees the mapping that may not be touched; the engine's operations go
// to the other. Nothing is done when it is asked for: each stream is played when it is finished.
// Memory that is given back is filled with NaNs and never handed out again.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/allocator.h"
#include "engine/access.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "support/cpu_engine.h"

namespace gen::test {

/// Also an allocator, for caches.
class FarMemory final : public engine::EngineMemory, public Allocator {
 public:
  explicit FarMemory(size_t bytes = size_t{256} << 20) : bytes_(bytes) {
    const int file = memfd_create("far", 0);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    near_ = map(file, PROT_READ | PROT_WRITE);
    far_ = map(file, PROT_NONE);
    close(file);
  }
  ~FarMemory() override {
    EXPECT_EQ(live_, 0U) << "bytes that were not given back";
    munmap(near_, bytes_);
    munmap(far_, bytes_);
  }
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  /// From addresses to bytes.
  [[nodiscard]] std::ptrdiff_t distance() const { return near_ - far_; }

  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    const std::lock_guard lock(mutex_);
    const size_t at = (used_ + align - 1) / align * align;
    if (bytes > bytes_ || at > bytes_ - bytes) {
      return error(Code::kOutOfMemory, "far memory has no %zu bytes", bytes);
    }
    used_ = at + bytes;
    live_ += bytes;
    *out = far_ + at;
    return {};
  }
  void release(void* pointer, size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    live_ -= bytes;
    std::memset(static_cast<std::byte*>(pointer) + distance(), 0xFF, bytes);
  }
  using EngineMemory::allocate;

 protected:
  Status take(size_t bytes, engine::EnginePtr<std::byte>* out) override {
    void* pointer = nullptr;
    GEN_TRY(allocate(bytes, 64, &pointer));
    *out = engine::engine_ptr(static_cast<std::byte*>(pointer));
    return {};
  }
  void give_back(engine::EnginePtr<std::byte> at, size_t bytes) noexcept override {
    release(engine::Access::pointer(at), bytes);
  }

 private:
  std::byte* map(int file, int protection) const {
    return static_cast<std::byte*>(mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0));
  }

  size_t bytes_;
  std::byte* near_ = nullptr;
  std::byte* far_ = nullptr;
  std::mutex mutex_;
  size_t used_ = 0;
  size_t live_ = 0;
};

class FarEngine final : public engine::Engine {
 public:
  explicit FarEngine(FarMemory& memory, int32_t threads = 1) : memory_(memory) {
    engine::EngineOptions options;
    options.pool = ThreadPool::create(threads).value();
    options.cpu_level = detect_cpu_level();
    options.memory = &memory;
    options.distance = memory.distance();
    inner_ = engine::create_engine("cpu", options).value();
  }

  [[nodiscard]] const char* name() const noexcept override { return "far"; }
  [[nodiscard]] engine::EngineMemory& memory() noexcept override { return memory_; }
  Result<std::unique_ptr<engine::Weight>> prepare(
      engine::WeightRole role, std::span<const engine::WeightSource> sources,
      const std::shared_ptr<engine::WeightMemory>& memory) override {
    return inner_->prepare(role, sources, memory);
  }
  [[nodiscard]] size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept override {
    return inner_->activation_bytes(forms, cols);
  }
  Result<std::unique_ptr<engine::Stream>> new_stream() override {
    auto stream = std::make_unique<FarStream>();
    GEN_ASSIGN(stream->inner, inner_->new_stream());
    return std::unique_ptr<engine::Stream>(std::move(stream));
  }
  [[nodiscard]] bool can(engine::Op op) const noexcept override { return inner_->can(op); }

  Status run(engine::Stream& stream, const engine::OpArgs& args) override {
    return enqueue(stream, [this, args](engine::Stream& own) { return inner_->run(own, args); });
  }
  Status upload(engine::Stream& stream, engine::EnginePtr<std::byte> to, const void* from,
                size_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(from);
    std::vector<std::byte> taken(begin, begin + bytes);
    return enqueue(stream, [this, to, taken = std::move(taken)](engine::Stream& own) {
      return inner_->upload(own, to, taken.data(), taken.size());
    });
  }
  Status download(engine::Stream& stream, void* to, engine::EnginePtr<const std::byte> from,
                  size_t bytes) override {
    return enqueue(stream, [this, to, from, bytes](engine::Stream& own) {
      return inner_->download(own, to, from, bytes);
    });
  }
  Status finish(engine::Stream& stream) override {
    auto& far = static_cast<FarStream&>(stream);
    Status first;
    for (const Work& work : std::exchange(far.queue, {})) {
      Status status = work(*far.inner);
      if (first.ok()) first = std::move(status);
    }
    return first;
  }

 private:
  using Work = std::function<Status(engine::Stream& inner)>;
  struct FarStream final : engine::Stream {
    std::unique_ptr<engine::Stream> inner;
    std::vector<Work> queue;
  };
  static Status enqueue(engine::Stream& stream, Work work) {
    static_cast<FarStream&>(stream).queue.push_back(std::move(work));
    return {};
  }

  FarMemory& memory_;
  std::shared_ptr<engine::Engine> inner_;
};

}  // namespace gen::test

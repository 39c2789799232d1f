// SPDX-License-Identifier: Apache-2.0
// DeviceQueue: the one ordered queue of a device that an engine's streams and its memory share, and
// the device memory behind it. Operations between steps are therefore ordered with the steps. Freed
// memory is released when the device has completed all work enqueued before. After a sticky error
// every call except freeing fails with that error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "cuda/device/runtime.h"
#include "cuda/engine/device_guard.h"
#include "cuda/engine/staging.h"
#include "cuda/ops/context.h"
#include "engine/memory/gpu_allocator.h"

namespace gen::cuda {

/// Threads: any; a thread must hold a Turn to enqueue.
class DeviceQueue : private ScratchMemory {
 public:
  /// `table` and its allocator outlive the queue. A dry run allocates all memory, launches nothing
  /// and never accesses device memory.
  static Result<std::shared_ptr<DeviceQueue>> create(int32_t device, const engine::GpuTable& table,
                                                     bool dry_run = false);
  ~DeviceQueue() override;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// The exclusive right to enqueue, with the device as the thread's current one.
  class Turn {
   public:
    explicit Turn(DeviceQueue& queue) : lock_(queue.mutex_) {
      if (!queue.dry_run_) guard_.emplace(queue.device_);
    }

   private:
    std::lock_guard<std::mutex> lock_;
    std::optional<DeviceGuard> guard_;  // a dry run needs no context
  };

  [[nodiscard]] const engine::GpuTable& table() const noexcept { return table_; }
  [[nodiscard]] const device::DeviceProperties& properties() const noexcept { return properties_; }

  /// Device memory aligned to 64. kOutOfMemory only after all freed memory has been released.
  Status take(size_t bytes, void** out);
  /// Frees the memory once all work enqueued before has run.
  void give_back(void* at) noexcept;

  // With a turn held.
  Status take_held(size_t bytes, void** out);
  void give_back_held(void* at) noexcept;
  [[nodiscard]] OpContext context() noexcept {
    return {stream_,  shared_bytes_,        properties_.sm_count,
            compute_, programmatic_,        properties_.cooperative,
            this,     products_.get(),      dry_run_,
            pairs_,   properties_.l2_bytes, capturing_};
  }
  [[nodiscard]] bool dry_run() const noexcept { return dry_run_; }
  /// The device's free memory.
  Result<size_t> free_bytes();
  /// kDevice once the device is lost.
  [[nodiscard]] Status usable() const;
  /// Records a sticky error; returns `failed` as a status.
  Status note(device::Error failed, const char* what);
  Status note(Status status);
  Status copy_up(void* to, const void* pinned, size_t bytes);
  Status copy_down(void* pinned, const void* from, size_t bytes);
  Status copy(void* to, const void* from, size_t bytes);
  Status fill(void* at, int32_t value, size_t bytes);
  /// Copies host bytes through pinned memory; the source may be freed when it returns.
  Status write(void* to, const void* from, size_t bytes);
  /// Copies host bytes of any size through two alternating pinned buffers.
  Status write_large(void* to, const void* from, size_t bytes);
  /// A source of `n` pieces of `bytes` each; fill(first, n, at) writes some of them to pinned
  /// memory and must not throw.
  struct Pieces {
    size_t bytes = 0;
    size_t n = 0;
    std::function<void(size_t first, size_t n, std::byte* at)> fill;
  };
  /// The same for pieces, written directly to the pinned buffers: one is filled while the other is
  /// copied. The pinned bytes are never read by the host. The threads of a pool, if there is one,
  /// fill them.
  Status write_pieces(void* to, const Pieces& pieces, ThreadPool* pool = nullptr);
  /// Enqueues the work that reads some of the pieces from pinned memory.
  using Send = std::function<Status(size_t first, size_t n, const std::byte* pinned)>;
  /// The same with `send` instead of a copy.
  Status send_pieces(const Pieces& pieces, const Send& send, ThreadPool* pool = nullptr);
  /// Lists for one operation: `bytes` of pinned memory to fill, which commit_lists() copies to
  /// *device. The device bytes are valid for work enqueued before the next lists.
  Status take_lists(size_t bytes, std::byte** pinned, uint8_t** device);
  Status commit_lists(const std::byte* pinned, uint8_t* device, size_t bytes);
  /// Waits for all enqueued work.
  Status finish();
  /// The same, ignoring failures.
  void wait() noexcept {
    if (stream_ != nullptr) static_cast<void>(device::stream_synchronize(stream_));
  }
  /// While it lives, enqueued work is captured, and memory shared by operations does not move.
  class Capture {
   public:
    explicit Capture(DeviceQueue& queue) noexcept : queue_(queue) { queue.capturing_ = true; }
    ~Capture() { queue_.capturing_ = false; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

   private:
    DeviceQueue& queue_;
  };
  /// A new number for each call.
  uint64_t next_weight() noexcept { return ++weights_; }

 private:
  DeviceQueue(int32_t device, const engine::GpuTable& table, bool dry_run) noexcept
      : device_(device),
        table_(table),
        dry_run_(dry_run),
        staging_(table),
        halves_{Staging(table), Staging(table)} {}
  Status open();
  /// The next buffer of send_pieces(), with room for `bytes`.
  Status take_half(size_t half, size_t bytes, std::byte** out);
  /// Enqueues the work that reads the buffer; the buffer is free again when that is done.
  Status send_half(size_t half, size_t first, size_t n, const std::byte* pinned, const Send& send);
  /// send_pieces() with the pool's threads filling and the calling thread sending.
  Status send_shared(const Pieces& pieces, size_t together, const Send& send, ThreadPool& pool);
  Status take_scratch(size_t bytes, uint8_t** out) override;
  uint32_t* counters() noexcept override { return reinterpret_cast<uint32_t*>(scratch_); }
  Status read_back(const void* from, size_t bytes, void* to) override;
  /// Grows `at` to at least `bytes`; its contents are lost.
  Status grow(size_t bytes, uint8_t** at, size_t* size);
  /// Releases freed memory that the device no longer uses; with `wait`, all of it.
  void release_passed(bool wait) noexcept;

  struct GivenBack {
    void* at = nullptr;
    device::Event passed = nullptr;
  };

  DeviceContext device_;
  const engine::GpuTable& table_;
  const bool dry_run_;
  device::DeviceProperties properties_;
  std::mutex mutex_;
  device::Stream stream_ = nullptr;  // none in a dry run
  size_t shared_bytes_ = 0;
  int32_t compute_ = 0;  // of the device or of the kernels, whichever is older
  bool programmatic_ = false;
  bool pairs_ = true;
  std::unique_ptr<MatrixProducts> products_;
  Staging staging_;    // of write() and lists
  Staging halves_[2];  // of send_pieces()
  device::Event half_free_[2] = {nullptr, nullptr};
  size_t next_half_ = 0;
  uint8_t* lists_ = nullptr;
  size_t lists_bytes_ = 0;
  uint8_t* scratch_ = nullptr;  // the counters, then so many bytes
  size_t scratch_bytes_ = 0;
  std::vector<uint8_t*> outgrown_;  // earlier scratch, which graphs may still use
  uint64_t weights_ = 0;
  bool capturing_ = false;
  std::vector<GivenBack> given_back_;
  std::vector<device::Event> spare_events_;
  device::Error lost_;
};

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// DeviceQueue: the one ordered queue of a device that an engine's streams and its memory share, and
// the device memory behind it. All that is done between steps is so in order with them. Memory that
// is given back is released when the device has passed what was asked for before. After an error
// that the device does not recover from, everything but giving back fails with it.
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

/// Threads: any; whoever enqueues holds a Turn.
class DeviceQueue : private ScratchMemory {
 public:
  /// `table` and what is behind it outlive the queue. A dry run takes all memory, starts nothing
  /// and touches device memory nowhere.
  static Result<std::shared_ptr<DeviceQueue>> create(int32_t device, const engine::GpuTable& table,
                                                     bool dry_run = false);
  ~DeviceQueue() override;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// The right to enqueue, with the device as the thread's own.
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

  /// Device memory on a multiple of 64. kOutOfMemory after what can be released has been.
  Status take(size_t bytes, void** out);
  /// Takes effect when what was enqueued before has run.
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
  /// Bytes that the device has left, whoever asks for them.
  Result<size_t> free_bytes();
  /// kDevice once the device is lost.
  [[nodiscard]] Status usable() const;
  /// Notes an error the device does not recover from; gives `failed` as a status.
  Status note(device::Error failed, const char* what);
  Status note(Status status);
  Status copy_up(void* to, const void* pinned, size_t bytes);
  Status copy_down(void* pinned, const void* from, size_t bytes);
  Status copy(void* to, const void* from, size_t bytes);
  Status fill(void* at, int32_t value, size_t bytes);
  /// Host bytes, which may go when it returns, by way of pinned memory.
  Status write(void* to, const void* from, size_t bytes);
  /// Host bytes of any size by way of two pinned buffers in turn.
  Status write_large(void* to, const void* from, size_t bytes);
  /// `n` pieces of `bytes` each, of which fill(first, n, at) writes some to pinned memory; it does
  /// not throw.
  struct Pieces {
    size_t bytes = 0;
    size_t n = 0;
    std::function<void(size_t first, size_t n, std::byte* at)> fill;
  };
  /// The same for pieces, written right into those buffers: one is filled while the other is
  /// copied. The pinned bytes are not read. Where there is a pool its threads fill them.
  Status write_pieces(void* to, const Pieces& pieces, ThreadPool* pool = nullptr);
  /// Enqueues what takes some of the pieces from pinned memory.
  using Send = std::function<Status(size_t first, size_t n, const std::byte* pinned)>;
  /// The same where `send` takes them.
  Status send_pieces(const Pieces& pieces, const Send& send, ThreadPool* pool = nullptr);
  /// Lists for one operation: `bytes` of pinned memory to be filled, which go to *device with
  /// commit_lists(). The device bytes are valid for what is enqueued before the next lists.
  Status take_lists(size_t bytes, std::byte** pinned, uint8_t** device);
  Status commit_lists(const std::byte* pinned, uint8_t* device, size_t bytes);
  /// Waits for everything enqueued.
  Status finish();
  /// The same where nothing is to be said of it.
  void wait() noexcept {
    if (stream_ != nullptr) static_cast<void>(device::stream_synchronize(stream_));
  }
  /// While it lives what is enqueued is captured, and memory that operations share does not move.
  class Capture {
   public:
    explicit Capture(DeviceQueue& queue) noexcept : queue_(queue) { queue.capturing_ = true; }
    ~Capture() { queue_.capturing_ = false; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

   private:
    DeviceQueue& queue_;
  };
  /// Another one each time.
  uint64_t next_weight() noexcept { return ++weights_; }

 private:
  DeviceQueue(int32_t device, const engine::GpuTable& table, bool dry_run) noexcept
      : device_(device),
        table_(table),
        dry_run_(dry_run),
        staging_(table),
        halves_{Staging(table), Staging(table)} {}
  Status open();
  /// The buffer of send_pieces() whose turn it is, with room for `bytes`.
  Status take_half(size_t half, size_t bytes, std::byte** out);
  /// Has it taken; it is free again when that is done.
  Status send_half(size_t half, size_t first, size_t n, const std::byte* pinned, const Send& send);
  /// send_pieces() where the pool's threads fill what the calling one sends.
  Status send_shared(const Pieces& pieces, size_t together, const Send& send, ThreadPool& pool);
  Status take_scratch(size_t bytes, uint8_t** out) override;
  uint32_t* counters() noexcept override { return reinterpret_cast<uint32_t*>(scratch_); }
  Status read_back(const void* from, size_t bytes, void* to) override;
  /// Makes `at` at least `bytes` large; what it held is lost.
  Status grow(size_t bytes, uint8_t** at, size_t* size);
  /// Releases what the device has passed; all of it where `wait`.
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
  std::vector<uint8_t*> outgrown_;  // scratch of before, which graphs may still use
  uint64_t weights_ = 0;
  bool capturing_ = false;
  std::vector<GivenBack> given_back_;
  std::vector<device::Event> spare_events_;
  device::Error lost_;
};

}  // namespace gen::cuda

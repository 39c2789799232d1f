// SPDX-License-Identifier: Apache-2.0
// Uploads of DeviceQueue through two pinned buffers: the host fills one while the device reads the
// other. With several threads the caller enqueues copies and the others fill. Threads are woken
// once per upload, since waking them for each buffer takes as long as filling it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "cuda/engine/device_queue.h"

namespace gen::cuda {
namespace {

/// Size of each of the two buffers.
constexpr size_t kHalfBytes = size_t{8} << 20;
/// Bytes that a thread fills at once.
constexpr size_t kShareBytes = size_t{512} << 10;
/// Size from which on waking several threads pays.
constexpr size_t kLeastShared = size_t{1} << 20;

/// Pieces in upload order. They are divided into halves, each of which fits a buffer, and halves
/// into shares.
class SharedPieces {
 public:
  SharedPieces(const DeviceQueue::Pieces& pieces, size_t together)
      : pieces_(pieces),
        together_(together),
        share_(std::clamp(kShareBytes / pieces.bytes, size_t{1}, together)),
        shares_each_(shares_of(together)) {}

  [[nodiscard]] size_t halves() const noexcept { return (pieces_.n + together_ - 1) / together_; }
  [[nodiscard]] size_t first(size_t half) const noexcept { return half * together_; }
  /// Pieces of a half.
  [[nodiscard]] size_t count(size_t half) const noexcept {
    return std::min(together_, pieces_.n - first(half));
  }

  // For the thread that enqueues copies.
  /// Allows the next half to be filled, into `buffer`.
  void allow(size_t half, std::byte* buffer) noexcept {
    buffers_[half % 2] = buffer;
    filled_[half % 2].store(0, std::memory_order_relaxed);
    writable_.store(half + 1, std::memory_order_release);
  }
  void wait_for(size_t half) const noexcept {
    while (filled_[half % 2].load(std::memory_order_acquire) < shares_of(count(half))) {
      std::this_thread::yield();
    }
  }
  /// Stops: no further half is sent.
  void end() noexcept { ended_.store(true, std::memory_order_release); }

  /// For the other threads: fills shares until none are left.
  void fill() noexcept {
    for (;;) {
      const size_t at = next_.fetch_add(1, std::memory_order_relaxed);
      const size_t half = at / shares_each_;
      const size_t begin = at % shares_each_ * share_;
      if (half >= halves() || begin >= count(half)) return;
      while (writable_.load(std::memory_order_acquire) <= half) {
        if (ended_.load(std::memory_order_acquire)) return;
        std::this_thread::yield();
      }
      pieces_.fill(first(half) + begin, std::min(share_, count(half) - begin),
                   buffers_[half % 2] + begin * pieces_.bytes);
      filled_[half % 2].fetch_add(1, std::memory_order_release);
    }
  }

 private:
  [[nodiscard]] size_t shares_of(size_t n) const noexcept { return (n + share_ - 1) / share_; }

  const DeviceQueue::Pieces& pieces_;
  const size_t together_;     // pieces of a half
  const size_t share_;        // and of a share
  const size_t shares_each_;  // of a half that is full
  std::byte* buffers_[2] = {nullptr, nullptr};
  std::atomic<size_t> next_{0};      // the next share to fill
  std::atomic<size_t> writable_{0};  // halves that may be filled
  std::atomic<size_t> filled_[2] = {0, 0};
  std::atomic<bool> ended_{false};
};

}  // namespace

Status DeviceQueue::take_half(size_t half, size_t bytes, std::byte** out) {
  // An event that was never recorded counts as completed.
  if (!dry_run_) {
    GEN_TRY(note(device::event_synchronize(half_free_[half]), "waiting for a copy"));
  }
  halves_[half].reset();
  return halves_[half].take(bytes, out);
}

Status DeviceQueue::write_large(void* to, const void* from, size_t bytes) {
  const auto* const source = static_cast<const std::byte*>(from);
  return write_pieces(to, {1, bytes, [&](size_t first, size_t n, std::byte* at) {
                             std::memcpy(at, source + first, n);
                           }});
}

Status DeviceQueue::write_pieces(void* to, const Pieces& pieces, ThreadPool* pool) {
  auto* const target = static_cast<std::byte*>(to);
  return send_pieces(
      pieces,
      [&](size_t first, size_t n, const std::byte* pinned) {
        return copy_up(target + first * pieces.bytes, pinned, n * pieces.bytes);
      },
      pool);
}

Status DeviceQueue::send_half(size_t half, size_t first, size_t n, const std::byte* pinned,
                              const Send& send) {
  // After a failure, enqueued work may still read the buffer, and no event tells when it is done.
  struct Wait {
    DeviceQueue* queue;
    ~Wait() {
      if (queue != nullptr) queue->wait();
    }
  } wait_on_failure{this};
  GEN_TRY(send(first, n, pinned));
  if (!dry_run_) {
    GEN_TRY(note(device::event_record(half_free_[half], stream_), "recording an event"));
  }
  wait_on_failure.queue = nullptr;
  return {};
}

Status DeviceQueue::send_pieces(const Pieces& pieces, const Send& send, ThreadPool* pool) {
  GEN_TRY(usable());
  if (pieces.bytes == 0) return {};
  const size_t together = std::max<size_t>(1, kHalfBytes / pieces.bytes);
  if (pool != nullptr && pool->size() > 1 && pieces.n * pieces.bytes >= kLeastShared && !dry_run_) {
    return send_shared(pieces, together, send, *pool);
  }
  for (size_t first = 0; first < pieces.n; first += together) {
    const size_t n = std::min(pieces.n - first, together);
    const size_t half = next_half_;
    next_half_ = 1 - half;
    std::byte* pinned = nullptr;
    GEN_TRY(take_half(half, n * pieces.bytes, &pinned));
    if (!dry_run_) pieces.fill(first, n, pinned);
    GEN_TRY(send_half(half, first, n, pinned, send));
  }
  return {};
}

Status DeviceQueue::send_shared(const Pieces& pieces, size_t together, const Send& send,
                                ThreadPool& pool) {
  SharedPieces shared(pieces, together);
  const size_t halves = shared.halves();
  const auto buffer_of = [&](size_t half) { return (next_half_ + half) % 2; };
  std::byte* pinned[2] = {nullptr, nullptr};
  const auto allow = [&](size_t half) -> Status {
    if (half >= halves) return {};
    const size_t bytes = shared.count(half) * pieces.bytes;
    GEN_TRY(take_half(buffer_of(half), bytes, &pinned[half % 2]));
    shared.allow(half, pinned[half % 2]);
    return {};
  };
  const auto send_all = [&]() -> Status {
    GEN_TRY(allow(0));
    GEN_TRY(allow(1));
    for (size_t half = 0; half < halves; ++half) {
      shared.wait_for(half);
      GEN_TRY(send_half(buffer_of(half), shared.first(half), shared.count(half), pinned[half % 2],
                        send));
      GEN_TRY(allow(half + 2));
    }
    return {};
  };
  Status status;
  std::exception_ptr thrown;
  pool.run([&](int32_t index) {
    if (index != 0) return shared.fill();
    try {
      status = send_all();
    } catch (...) {
      thrown = std::current_exception();
    }
    shared.end();
  });
  next_half_ = buffer_of(halves);
  if (thrown) std::rethrow_exception(thrown);
  return status;
}

}  // namespace gen::cuda

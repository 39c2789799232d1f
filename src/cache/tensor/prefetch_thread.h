// SPDX-License-Identifier: Apache-2.0
// A thread that fetches layers of a store ahead of their use, first asked for first.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread.h"

namespace gen::cache {

/// Threads: any, but start() and the destructor.
class PrefetchThread {
 public:
  /// What it throws leaves the layer as it was.
  using Fetch = void (*)(void* store, int32_t layer);

  /// Room for `n` layers that wait.
  explicit PrefetchThread(int32_t n);
  ~PrefetchThread() { stop(); }
  PrefetchThread(const PrefetchThread&) = delete;
  PrefetchThread& operator=(const PrefetchThread&) = delete;

  /// Once, after which fetch(store, layer) is called in the thread until stop(). kOutOfMemory.
  Status start(Fetch fetch, void* store);

  /// Adds those of `layers` for which wanted(layer) holds. Never waits: what waits already or has
  /// no room is left out.
  template <typename Wanted>
  void add(std::span<const int32_t> layers, const Wanted& wanted) {
    bool added = false;
    {
      const std::lock_guard lock(mutex_);
      for (const int32_t layer : layers) {
        if (stop_ || queue_.size() == queue_.capacity()) break;
        if (!wanted(layer)) continue;
        if (std::find(queue_.begin(), queue_.end(), layer) != queue_.end()) continue;
        queue_.push_back(layer);  // there is room
        added = true;
      }
    }
    if (added) changed_.notify_all();
  }
  /// Forgets what waits.
  void clear();
  /// Waits until nothing waits and nothing is being fetched, or it is stopped.
  void finish();
  /// Forgets what waits and ends the thread. May be called again.
  void stop();
  [[nodiscard]] size_t queue_bytes() const noexcept { return queue_.capacity() * sizeof(int32_t); }

 private:
  void serve() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int32_t> queue_;  // first to serve first
  bool busy_ = false;
  bool stop_ = false;
  Fetch fetch_ = nullptr;
  void* store_ = nullptr;
  Thread thread_;
};

}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// See prefetch_thread.h.
#include "cache/tensor/prefetch_thread.h"

#include <utility>

#include "base/to_size.h"

namespace gen::cache {

PrefetchThread::PrefetchThread(int32_t n) { queue_.reserve(to_size(n)); }

Status PrefetchThread::start(Fetch fetch, void* store) {
  fetch_ = fetch;
  store_ = store;
  GEN_ASSIGN(thread_, Thread::start(
                          [](void* self) -> void* {
                            static_cast<PrefetchThread*>(self)->serve();
                            return nullptr;
                          },
                          this));
  return {};
}

void PrefetchThread::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const int32_t layer = queue_.front();
    queue_.erase(queue_.begin());
    busy_ = true;
    lock.unlock();
    try {
      fetch_(store_, layer);
    } catch (...) {  // the reader of the layer meets the same failure and reports it
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void PrefetchThread::clear() {
  const std::lock_guard lock(mutex_);
  queue_.clear();
}

void PrefetchThread::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || (queue_.empty() && !busy_); });
}

void PrefetchThread::stop() {
  Thread thread;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    queue_.clear();
    thread = std::move(thread_);
  }
  changed_.notify_all();
  thread.join();
}

}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// The fork-join pool. A job is published by raising `generation_`; a worker that has seen it runs
// its share and lowers `pending_`. Both sides spin for a moment, because the next job of a forward
// pass comes within microseconds, then sleep on a condition variable. See thread_pool.h.
//
// No wake-up is lost: a sleeper announces itself, then looks at the awaited value once more; the
// other side changes the value, then looks for sleepers. All four are sequentially consistent, so
// at least one of them sees the other, and the announcement is made under the mutex that the waker
// takes.
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <new>
#include <vector>

#include "base/cpu_quota.h"
#include "base/thread.h"

namespace gen {
namespace {

constexpr std::chrono::microseconds kSpinTime{40};
constexpr int kPausesPerClockRead = 64;

inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// Polls `ready` for kSpinTime; false if it did not come true.
template <typename Ready>
bool spin_until(Ready ready) noexcept {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (ready()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

// The CPUs of the affinity mask, ascending; empty if the system does not tell.
std::vector<int32_t> affinity_cpus() {
  std::vector<int32_t> cpus;
#if defined(__linux__)
  // The kernel rejects a mask smaller than its own, so grow until it fits.
  for (int limit = 1024; limit <= 65536; limit *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(limit));
    if (mask == nullptr) throw std::bad_alloc();
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(limit));
    const bool known = sched_getaffinity(0, bytes, mask) == 0;
    if (known) {
      try {
        for (int cpu = 0; cpu < limit; ++cpu) {
          if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, mask)) cpus.push_back(cpu);
        }
      } catch (...) {
        CPU_FREE(mask);
        throw;
      }
    }
    CPU_FREE(mask);
    if (known) break;
  }
#endif
  return cpus;
}

}  // namespace

struct ThreadPool::Impl {
  struct Worker {
    Impl* pool;
    int32_t index;
    Thread thread;
  };

  // A value that one side changes and the other waits for, and the sleepers on it.
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<int32_t> sleepers{0};

    template <typename Ready>
    void wait(bool spin_first, Ready ready) {
      if (spin_first ? spin_until(ready) : ready()) return;
      std::unique_lock lock(mutex);
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      changed.wait(lock, ready);
      sleepers.fetch_sub(1, std::memory_order_relaxed);
    }

    void wake() {
      if (sleepers.load(std::memory_order_seq_cst) == 0) return;
      { std::lock_guard lock(mutex); }
      changed.notify_all();
    }
  };

  std::mutex turn;  // held by the caller whose job runs
  void (*work)(void*, int32_t) = nullptr;
  void* context = nullptr;
  bool stop = false;  // written before the last generation
  bool spin = true;
  int32_t size = 1;

  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<int32_t> pending{0};
  Gate job_gate;   // workers wait here for a generation
  Gate done_gate;  // the caller waits here for pending == 0

  std::vector<Worker> workers;  // only those that were started

  ~Impl() {
    stop = true;
    publish();
    for (Worker& worker : workers) worker.thread.join();
  }

  void publish() {
    generation.fetch_add(1, std::memory_order_seq_cst);
    job_gate.wake();
  }

  void serve(int32_t index) {
    uint32_t seen = 0;
    while (true) {
      job_gate.wait(spin,
                    [this, seen] { return generation.load(std::memory_order_seq_cst) != seen; });
      ++seen;  // a generation cannot be missed: the next one waits for this worker's share
      if (stop) return;
      work(context, index);
      if (pending.fetch_sub(1, std::memory_order_seq_cst) == 1) done_gate.wake();
    }
  }

  Status start(int32_t index, std::span<const int32_t> cpus);
};

namespace {

// A thread's mask, made before the thread, which is then there for certain.
class Pin {
 public:
  explicit Pin(int32_t cpu) {
#if defined(__linux__)
    if (cpu < 0) return;
    mask_ = CPU_ALLOC(static_cast<size_t>(cpu) + 1);
    if (mask_ == nullptr) throw std::bad_alloc();
    bytes_ = CPU_ALLOC_SIZE(static_cast<size_t>(cpu) + 1);
    CPU_ZERO_S(bytes_, mask_);
    CPU_SET_S(static_cast<size_t>(cpu), bytes_, mask_);
#else
    static_cast<void>(cpu);
#endif
  }
  ~Pin() {
#if defined(__linux__)
    CPU_FREE(mask_);
#endif
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  void apply(pthread_t thread) const noexcept {
#if defined(__linux__)
    if (mask_ != nullptr) pthread_setaffinity_np(thread, bytes_, mask_);
#else
    static_cast<void>(thread);
#endif
  }

 private:
#if defined(__linux__)
  cpu_set_t* mask_ = nullptr;
  size_t bytes_ = 0;
#endif
};

}  // namespace

Status ThreadPool::Impl::start(int32_t index, std::span<const int32_t> cpus) {
  const Pin pin(cpus.empty() ? -1 : cpus[static_cast<size_t>(index) % cpus.size()]);
  workers.push_back({this, index, {}});  // capacity was reserved, so the address stays
  Worker& worker = workers.back();
  auto started = Thread::start(
      [](void* argument) -> void* {
        const Worker* self = static_cast<Worker*>(argument);
        self->pool->serve(self->index);
        return nullptr;
      },
      &worker);
  if (!started.ok()) {
    workers.pop_back();
    return error(Code::kOutOfMemory, "thread %d of %d: %s", index + 1, size,
                 started.status().message());
  }
  worker.thread = std::move(started).value();
  pin.apply(worker.thread.handle());
  return {};
}

ThreadPool::ThreadPool(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ThreadPool::~ThreadPool() {
  // There is nobody to tell, and a lock of theirs may be held for ever.
  if (!home_.here()) static_cast<void>(impl_.release());
}

Result<std::shared_ptr<ThreadPool>> ThreadPool::create(int32_t threads,
                                                       std::span<const int32_t> cpus) {
  if (threads < 0 || threads > kMostThreads) {
    return error(Code::kInvalidArgument, "%d threads outside 0 to %d", threads, kMostThreads);
  }
  if (!cpus.empty()) {
    const std::vector<int32_t> allowed = affinity_cpus();
    for (const int32_t cpu : cpus) {
      if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) {
        return error(Code::kInvalidArgument, "cpu %d is not among the %zu this process may use",
                     cpu, allowed.size());
      }
    }
  }
  const int32_t usable = usable_cpus();
  auto impl = std::make_unique<Impl>();
  impl->size = threads == 0 ? std::min(usable, kMostThreads) : threads;
  // With more threads than CPUs a spinning one would keep a working one from running.
  impl->spin = impl->size <= usable;
  impl->workers.reserve(static_cast<size_t>(impl->size) - 1);
  for (int32_t index = 1; index < impl->size; ++index) GEN_TRY(impl->start(index, cpus));
  return std::shared_ptr<ThreadPool>(new ThreadPool(std::move(impl)));
}

int32_t ThreadPool::size() const noexcept { return impl_->size; }

void ThreadPool::run(void (*work)(void* context, int32_t index), void* context) noexcept {
  Impl& pool = *impl_;
  const std::lock_guard turn(pool.turn);
  if (pool.size == 1) {
    work(context, 0);
    return;
  }
  pool.work = work;
  pool.context = context;
  pool.pending.store(pool.size - 1, std::memory_order_relaxed);
  pool.publish();
  work(context, 0);
  pool.done_gate.wait(pool.spin,
                      [&pool] { return pool.pending.load(std::memory_order_seq_cst) == 0; });
}

int32_t usable_cpus() {
  int32_t cpus = std::max(1, static_cast<int32_t>(affinity_cpus().size()));
  const double quota = cgroup_cpu_quota();
  // A quota of 1.5 CPUs keeps two threads busy; rounding down would waste the half.
  if (quota > 0.0 && quota < cpus) cpus = std::max(1, static_cast<int32_t>(std::ceil(quota)));
  return cpus;
}

IndexRange split_range(int64_t count, int64_t grain, int32_t parts, int32_t part) noexcept {
  GEN_ASSERT(count >= 0 && grain > 0 && parts > 0 && part >= 0 && part < parts);
  const int64_t grains = count / grain + (count % grain != 0 ? 1 : 0);
  const int64_t each = grains / parts;
  const int64_t extra = grains % parts;  // the first `extra` parts take one grain more
  const auto border = [=](int64_t index) {
    const int64_t at = index * each + std::min(index, extra);
    return at == grains ? count : at * grain;
  };
  return {border(part), border(int64_t{part} + 1)};
}

}  // namespace gen

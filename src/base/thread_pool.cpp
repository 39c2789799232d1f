// SPDX-License-Identifier: Apache-2.0
// The fork-join pool. Each worker has one atomic word: the number of a job and the progress of the
// worker's share of it. The caller offers shares. A worker begins its own share, unless the caller,
// once it is free, has taken it first; the caller waits for shares that were begun. Both sides spin
// for a moment, because the next job of a forward pass comes within microseconds, then sleep on a
// condition variable. See thread_pool.h.
//
// No wake-up is lost: a sleeper announces itself, then looks at the awaited value once more; the
// other side changes the value, then looks for sleepers. All four are sequentially consistent, so
// at least one of them sees the other, and the announcement is made under the mutex that the waker
// takes.
//
// A worker that was away for long cannot begin what is over: the word it has read names the job,
// and it is another one by then. What it has begun keeps the job from being over.
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
#include "base/threads_in_use.h"

namespace gen {
namespace {

constexpr std::chrono::microseconds kSpinTime{40};
constexpr int kPausesPerClockRead = 64;
constexpr int kPausesWithoutClock = 16;

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
  std::chrono::steady_clock::time_point end;
  for (bool first = true;; first = false) {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (ready()) return true;
      pause_cpu();
    }
    const auto now = std::chrono::steady_clock::now();
    if (first) end = now + kSpinTime;
    if (now >= end) return ready();
  }
}

int64_t steady_now(void* /*user*/) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How far a share is; in the low bits of a worker's word, the number of its job above them.
constexpr int kPhaseBits = 2;
constexpr uint64_t kPhaseMask = (1 << kPhaseBits) - 1;
constexpr uint64_t kOffered = 0;
constexpr uint64_t kBegun = 1;
constexpr uint64_t kDone = 2;

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

  struct alignas(64) Worker {
    std::atomic<uint64_t> word{kDone};
    Gate gate;  // it waits here for an offer
    Impl* pool = nullptr;
    int32_t index = 0;
    Thread thread;
  };

  Impl(int32_t threads, const ThreadPoolHooks& given) : hooks(given), size(threads), in_use(size) {
    if (hooks.now == nullptr) hooks.now = steady_now;
  }

  ThreadPoolHooks hooks;
  std::mutex turn;  // held by the caller whose job runs
  Work work;        // of the job, and how many shares it has
  int32_t shares = 1;
  uint64_t job = 0;
  std::atomic<bool> stop{false};
  bool spin = true;
  int32_t size;
  ThreadsInUse in_use;

  alignas(64) Gate done_gate;  // the caller waits here for workers
  std::vector<std::unique_ptr<Worker>>
      workers;  // of indexes from 1 on; only those that were started

  ~Impl() {
    stop.store(true, std::memory_order_seq_cst);
    for (const auto& worker : workers) worker->gate.wake();
    for (const auto& worker : workers) worker->thread.join();
  }

  std::atomic<uint64_t>& word(int32_t index) {
    return workers[static_cast<size_t>(index) - 1]->word;
  }

  // Claims the share that was offered when its word was `seen`; false if it is taken.
  static bool begin(std::atomic<uint64_t>& word, uint64_t seen) {
    return word.compare_exchange_strong(seen, seen + kBegun, std::memory_order_seq_cst);
  }

  void offer(Work given, int32_t n) {
    work = given;
    shares = n;
    ++job;
    for (int32_t index = 1; index < n; ++index) {
      word(index).store(job << kPhaseBits | kOffered, std::memory_order_seq_cst);
      workers[static_cast<size_t>(index) - 1]->gate.wake();
    }
  }

  // Whether workers have done the shares before *next, which it moves on, up to all.
  bool done(int32_t* next) {
    const uint64_t wanted = job << kPhaseBits | kDone;
    while (*next < shares && word(*next).load(std::memory_order_seq_cst) == wanted) ++*next;
    return *next == shares;
  }

  void wait_for_all() {
    int32_t next = 1;
    done_gate.wait(spin, [this, &next] { return done(&next); });
  }

  // Does what no worker has begun; whether there was anything.
  bool take_over() {
    const uint64_t offered = job << kPhaseBits | kOffered;
    bool any = false;
    for (int32_t index = 1; index < shares; ++index) {
      std::atomic<uint64_t>& its = word(index);
      if (its.load(std::memory_order_relaxed) != offered || !begin(its, offered)) continue;
      work.call(work.context, index, shares);
      its.store(job << kPhaseBits | kDone, std::memory_order_seq_cst);
      any = true;
    }
    return any;
  }

  void serve(Worker& worker) {
    for (;;) {
      uint64_t seen = 0;
      worker.gate.wait(spin, [&] {
        seen = worker.word.load(std::memory_order_seq_cst);
        return (seen & kPhaseMask) == kOffered || stop.load(std::memory_order_seq_cst);
      });
      if ((seen & kPhaseMask) != kOffered) return;
      if (hooks.arrives != nullptr) hooks.arrives(hooks.user, worker.index);
      if (!begin(worker.word, seen)) continue;
      work.call(work.context, worker.index, shares);
      worker.word.store(seen + kDone, std::memory_order_seq_cst);
      done_gate.wake();
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
  workers.push_back(std::make_unique<Worker>());
  Worker& worker = *workers.back();
  worker.pool = this;
  worker.index = index;
  auto started = Thread::start(
      [](void* argument) -> void* {
        Worker* const self = static_cast<Worker*>(argument);
        self->pool->serve(*self);
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
                                                       std::span<const int32_t> cpus,
                                                       const ThreadPoolHooks& hooks) {
  if (threads < 0 || threads > kMaxThreads) {
    return error(Code::kInvalidArgument, "%d threads outside 0 to %d", threads, kMaxThreads);
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
  auto impl = std::make_unique<Impl>(threads == 0 ? std::min(usable, kMaxThreads) : threads, hooks);
  // With more threads than CPUs a spinning one would keep a working one from running.
  impl->spin = impl->size <= usable;
  impl->workers.reserve(static_cast<size_t>(impl->size) - 1);
  for (int32_t index = 1; index < impl->size; ++index) GEN_TRY(impl->start(index, cpus));
  return std::shared_ptr<ThreadPool>(new ThreadPool(std::move(impl)));
}

int32_t ThreadPool::size() const noexcept { return impl_->size; }

void ThreadPool::run(Work work) noexcept {
  Impl& pool = *impl_;
  const std::lock_guard turn(pool.turn);
  pool.offer(work, pool.size);
  work.call(work.context, 0, pool.size);
  pool.wait_for_all();
}

void ThreadPool::share(Work work) noexcept {
  Impl& pool = *impl_;
  const std::lock_guard turn(pool.turn);
  const auto now = [&pool] { return pool.hooks.now(pool.hooks.user); };
  const int64_t begun = pool.size == 1 ? 0 : now();
  const int32_t shares = pool.size == 1 ? 1 : pool.in_use.begin(begun);
  if (shares == 1) return work.call(work.context, 0, 1);
  pool.offer(work, shares);
  work.call(work.context, 0, shares);
  // Workers are as good as done, mostly, and need no clock.
  int32_t next = 1;
  for (int i = 0; i < kPausesWithoutClock; ++i) {
    if (pool.done(&next)) return;
    pause_cpu();
  }
  const int64_t own = now();
  const int64_t free = pool.take_over() ? now() : own;
  pool.wait_for_all();
  const int64_t end = now();
  pool.in_use.note(own - begun, end - free, end);
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

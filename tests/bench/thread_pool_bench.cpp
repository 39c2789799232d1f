// SPDX-License-Identifier: Apache-2.0
// How long a job of the thread pool takes that does nothing, for one thread up to all usable CPUs:
// the cost that every operation of a forward pass pays. Back to back the workers are found
// spinning, after a pause asleep.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace {

using Clock = std::chrono::steady_clock;

double run_once(gen::ThreadPool& pool, std::vector<int>& calls) {
  const auto begin = Clock::now();
  pool.share([&calls](int32_t index, int32_t) { ++calls[static_cast<size_t>(index) * 16]; });
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void measure(gen::ThreadPool& pool, int runs, std::chrono::microseconds pause, const char* name) {
  std::vector<int> calls(static_cast<size_t>(pool.size()) * 16);
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    if (pause.count() != 0) std::this_thread::sleep_for(pause);
    times.push_back(run_once(pool, calls));
  }
  if (calls[0] != runs) std::printf("WRONG RESULT ");
  std::sort(times.begin(), times.end());
  std::printf("%d threads, %s: median %.2f us, 99th percentile %.2f us\n", pool.size(), name,
              times[times.size() / 2], times[times.size() * 99 / 100]);
}

}  // namespace

int main() {
  for (int32_t threads = 1; threads <= gen::usable_cpus(); threads *= 2) {
    auto pool = gen::ThreadPool::create(threads);
    if (!pool.ok()) {
      std::printf("%s\n", pool.status().message());
      return 1;
    }
    measure(**pool, 20000, std::chrono::microseconds(0), "back to back");
    measure(**pool, 500, std::chrono::milliseconds(1), "after a pause");
  }
}

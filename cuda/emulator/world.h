// SPDX-License-Identifier: Apache-2.0
// World: all that one process emulates. Its functions are called with its mutex held.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda/emulator/device_memory.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/queues.h"

namespace gen::cuda::emulator {

class World {
 public:
  World();

  std::recursive_mutex mutex;
  Options options;
  DeviceMemory memory;
  std::map<const std::byte*, std::vector<std::byte>> pinned;
  std::vector<device::Stream> streams;
  device::Error lost;  // sticky
  bool watched = false;
  std::string failure;
  uint64_t kernels = 0;
  uint64_t waits = 0;
  uintptr_t counted_from = 0;  // reads of these addresses are counted
  size_t counted_size = 0;
  uint64_t counted_bytes = 0;
  uint64_t drawn = 0;
  KernelTime kernel_time;  // where time is what kernels take
  std::chrono::steady_clock::time_point time;
  std::set<int> contexts;  // devices that have one
  device::Error failing;   // of the call to come that fails
  uint64_t calls_before = 0;
  uint64_t threads = 0;  // that have asked for a stream of their own
  /// Default streams by device and thread, 0 for the legacy one. They are among the streams, too.
  std::map<std::pair<int, uint64_t>, std::unique_ptr<device::StreamHandle>> defaults;

  uint64_t random(uint64_t below);
  [[nodiscard]] bool knows(device::Stream stream) const;
  [[nodiscard]] bool is_legacy(device::Stream stream) const;
  /// Whether a blocking stream of the device is being captured.
  [[nodiscard]] bool captures_blocking(int device) const;
  /// The stream that a handle stands for: a default one of the device and the thread, or itself.
  device::Stream named(device::Stream handle, int device, uint64_t thread);
  [[nodiscard]] bool is_pinned(const void* at, size_t bytes) const;

  /// Work for a stream, or a node of what it captures.
  void enqueue(device::Stream stream, Work work);
  /// Runs until `done` says so or the stream is empty.
  template <typename Done>
  void run(device::Stream stream, Done done) {
    memory.open();
    wander();
    while (!done() && step(*stream)) {
    }
    finish_begun();
    memory.close();
  }
  void run_all();
  /// One piece of work of the stream, with what it waits for.
  void run_one(device::Stream stream);
  /// The line goes to the watch, or ends the process.
  void report(const std::string& line);
  /// The same, after which no call works.
  void lose(const std::string& line);
  /// No call works any more, for want of memory for what runs, of which nothing is said.
  void starve();

 private:
  /// What is enqueued next waits for what is in the other stream now.
  static void wait_for(device::Stream stream, device::Stream other);
  /// A legacy stream and the blocking streams of its device wait for one another.
  void order(device::Stream stream);
  bool step(device::StreamHandle& stream);
  void run_kernel(device::StreamHandle& stream, const Launch& launch, std::unique_ptr<Grid> grid);
  void wander();
  void finish_begun();
  void lose(const Grid& grid);
};

World& world();

}  // namespace gen::cuda::emulator

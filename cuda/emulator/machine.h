// SPDX-License-Identifier: Apache-2.0
// A grid as it runs: blocks, warps, threads, and what threads wait for. All of a grid runs on the
// host thread that calls run(). A thread runs straight on until it has to wait; only then the stack
// it is on becomes its own, and another fiber goes on with the next thread. Who goes on is drawn by
// the seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device/dim3.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/launch.h"
#include "cuda/emulator/shared_memory.h"

namespace gen::cuda::emulator {

using device::Dim3;
class Grid;
struct Block;
struct Thread;

[[noreturn]] void called_by_host();

/// A place of the source.
struct Site {
  const char* file = "";
  int line = 0;
};

/// A copy from global to shared memory that has not been waited for.
struct PendingCopy {
  size_t to = 0;
  const void* from = nullptr;  // null: zeros
  size_t bytes = 0;
  unsigned group = 0;
  bool early = false;  // begun before the predecessor has ended, it reads what is there then
  std::byte bytes_then[16] = {};
};

struct Thread {
  enum class State : uint8_t {
    kFresh,
    kRuns,
    kReady,
    kWarp,
    kBarrier,
    kGrid,
    kPredecessor,
    kExited
  };

  Block* block = nullptr;
  Dim3 index;
  unsigned linear = 0;
  State state = State::kFresh;
  Fiber* fiber = nullptr;  // null until it had to wait
  // What it waits at.
  const char* what = "";
  Site site;
  unsigned mask = 0;
  void* payload = nullptr;
  void (*work_out)(void* const*, unsigned) = nullptr;
  int vote = 0;
  int result = 0;
  std::vector<PendingCopy> copies;
  unsigned copy_group = 0;

  [[nodiscard]] unsigned lane() const { return linear % 32; }
  [[nodiscard]] unsigned warp() const { return linear / 32; }
};

struct Warp {
  unsigned live = 0;  // lanes that have not exited
  unsigned waiting = 0;
  uint32_t epoch = 0;  // operations completed
};

struct Barrier {
  std::vector<Thread*> arrived;
  unsigned expected = 0;  // of sync_some()
};

struct Block {
  Grid* grid = nullptr;
  Dim3 index;
  unsigned live = 0;
  uint32_t epoch = 0;  // barriers completed
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  SharedMemory shared;
};

/// Works out a warp operation: the lanes' payloads, null where a lane takes no part.
using WarpResult = void (*)(void* const* payloads, unsigned lanes);

class Grid {
 public:
  /// What fibers do: threads, one after another.
  static void run_threads();

  Grid(const Launch& launch, uint64_t seed);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  /// Runs what a programmatic launch may run before its predecessor has ended: some blocks, until
  /// all of their threads wait for it.
  bool run_ahead();
  /// Runs the rest. False: it failed, failure() says how.
  bool run();
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// It failed since the host had no memory for it, which is no mistake of the kernel.
  [[nodiscard]] bool starved() const { return starved_; }
  [[nodiscard]] const Launch& launch() const { return launch_; }

  // For threads.
  void warp_operation(const char* what, unsigned mask, void* payload, WarpResult result, Site site);
  void barrier(unsigned number, unsigned expected, int vote, const char* what, Site site);
  void grid_barrier(Site site);
  void wait_for_predecessor(Site site);
  [[nodiscard]] bool predecessor_done() const { return predecessor_done_; }
  void spin();
  [[noreturn]] void fail(const char* text);

 private:
  void start_block();
  void go();
  Thread* pick();
  void wait(Thread& thread, Thread::State state, const char* what, Site site);
  void resume(Thread& thread);
  bool complete(Block& block, unsigned warp, unsigned mask, const Thread& who);
  void release(Block& block, Barrier& barrier);
  bool stuck();
  void exit(Thread& thread);
  uint64_t random(uint64_t below);

  const Launch& launch_;
  uint64_t random_;
  std::vector<uint64_t> order_;  // of blocks, drawn from the end
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Block*> free_blocks_;
  std::vector<Thread*> ready_;
  std::vector<Thread*> fresh_;
  std::vector<Thread*> at_grid_barrier_;
  std::vector<Thread*> for_predecessor_;
  size_t live_threads_ = 0;
  uint64_t spins_ = 0;
  bool predecessor_done_ = true;
  std::string failure_;
  bool starved_ = false;
};

/// Who runs on this host thread; null outside kernels.
inline constinit thread_local Thread* current_thread = nullptr;
/// The same inside kernels; ends the process outside.
inline Thread& self() {
  if (current_thread == nullptr) [[unlikely]]
    called_by_host();
  return *current_thread;
}

/// Ends the kernel that runs, with a line that begins with its name, block and thread.
[[noreturn]] [[gnu::format(printf, 1, 2)]] void fail(const char* format, ...);
/// Where a signal handler returns to, at the top of the fiber's stack, which is given up: fails
/// with fault_text().
[[noreturn]] void fail_after_fault();
/// The top of the stack of the fiber that runs.
std::byte* current_stack();

}  // namespace gen::cuda::emulator

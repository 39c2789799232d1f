// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulator/machine.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "cuda/emulator/device_memory.h"

namespace gen::cuda::emulator {
namespace {

/// Rounds of spinning in which nobody gets anywhere before it is for ever.
constexpr uint64_t kSpinRounds = 20000;

/// What belongs to the host thread that runs grids.
struct Processor {
  FiberPool fibers{&Grid::run_threads};
  Fiber host;
  Fiber* running = nullptr;
  std::vector<std::unique_ptr<Block>> blocks;  // of grids that have ended
};
thread_local Processor processor;

/// Text without memory of its own: who holds it may be on a fiber that is given up.
struct Text {
  char characters[160];
  [[nodiscard]] const char* get() const { return characters; }
};
Text place(Dim3 at) {
  Text text;
  std::snprintf(text.characters, sizeof text.characters, "(%u,%u,%u)", at.x, at.y, at.z);
  return text;
}
Text place(Site site) {
  const char* const slash = std::strrchr(site.file, '/');
  Text text;
  std::snprintf(text.characters, sizeof text.characters, "%.100s:%d",
                slash != nullptr ? slash + 1 : site.file, site.line);
  return text;
}
Text doing(const Thread& thread) {
  Text text;
  if (thread.state == Thread::State::kExited) {
    std::snprintf(text.characters, sizeof text.characters, "thread %.40s has exited",
                  place(thread.index).get());
  } else {
    std::snprintf(text.characters, sizeof text.characters, "thread %.40s waits at %.30s, %.70s",
                  place(thread.index).get(), thread.what, place(thread.site).get());
  }
  return text;
}

}  // namespace

void called_by_host() {
  std::fputs("emulator: the host calls a function of the device\n", stderr);
  std::abort();
}

std::byte* current_stack() {
  return processor.running != nullptr ? processor.running->top() : nullptr;
}

void fail_after_fault() { fail("%s", fault_text()); }

void fail(const char* format, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  self().block->grid->fail(text);
}

Grid::Grid(const Launch& launch, uint64_t seed) : launch_(launch), random_(seed) {
  const Dim3 grid = launch.grid;
  order_.resize(size_t{grid.x} * grid.y * grid.z);
  for (size_t i = 0; i < order_.size(); ++i) {
    order_[i] = i;
    std::swap(order_[i], order_[random(i + 1)]);
  }
  predecessor_done_ = !launch.programmatic;
}

Grid::~Grid() {
  for (auto& block : blocks_) processor.blocks.push_back(std::move(block));
  if (live_threads_ != 0) processor.fibers.restart_all();
}

uint64_t Grid::random(uint64_t below) {  // splitmix64
  uint64_t z = (random_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return ((z ^ (z >> 31)) >> 32) * below >> 32;  // below 2^32
}

bool Grid::run_ahead() {
  const size_t ahead = launch_.cooperative ? order_.size() : std::min<size_t>(order_.size(), 2);
  for (size_t i = 0; i < ahead; ++i) start_block();
  go();
  return failure_.empty();
}

bool Grid::run() {
  predecessor_done_ = true;
  for (Thread* thread : for_predecessor_) resume(*thread);
  for_predecessor_.clear();
  for (;;) {
    if (!ready_.empty() || !fresh_.empty()) {
      go();
      if (!failure_.empty()) return false;
    } else if (live_threads_ != 0) {
      return stuck();
    } else if (order_.empty()) {
      return true;
    }
    do {
      if (order_.empty()) break;
      start_block();
    } while (launch_.cooperative);
  }
}

void Grid::start_block() {
  if (free_blocks_.empty()) {
    if (processor.blocks.empty()) processor.blocks.push_back(std::make_unique<Block>());
    blocks_.push_back(std::move(processor.blocks.back()));
    processor.blocks.pop_back();
    free_blocks_.push_back(blocks_.back().get());
  }
  Block& block = *free_blocks_.back();
  free_blocks_.pop_back();
  const uint64_t number = order_.back();
  order_.pop_back();
  block.grid = this;
  block.index.x = static_cast<unsigned>(number % launch_.grid.x);
  block.index.y = static_cast<unsigned>(number / launch_.grid.x % launch_.grid.y);
  block.index.z = static_cast<unsigned>(number / launch_.grid.x / launch_.grid.y);
  const Dim3 size = launch_.block;
  const unsigned count = size.x * size.y * size.z;
  block.live = count;
  block.epoch = 0;
  block.threads.resize(count);
  block.warps.assign((count + 31) / 32, Warp());
  for (Barrier& barrier : block.barriers) barrier = Barrier();
  block.shared.reset(launch_.dynamic_shared_bytes);
  for (unsigned i = 0; i < count; ++i) {
    Thread& thread = block.threads[i];
    thread.block = &block;
    thread.linear = i;
    thread.state = Thread::State::kFresh;
    thread.fiber = nullptr;
    thread.site = {};
    thread.mask = 0;
    thread.copies.clear();
    thread.copy_group = 0;
    thread.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    block.warps[i / 32].live |= 1u << (i % 32);
    fresh_.push_back(&thread);
  }
  live_threads_ += count;
}

/// Lets threads run until all wait or have exited.
void Grid::go() {
  Thread* const next = pick();
  if (next == nullptr) return;
  Fiber* const to = next->fiber != nullptr ? next->fiber : processor.fibers.take();
  current_thread = next;
  processor.running = to;
  Fiber::change(processor.host, *to);
  current_thread = nullptr;
  processor.running = nullptr;
}

Thread* Grid::pick() {
  const size_t count = ready_.size() + fresh_.size();
  if (count == 0) return nullptr;
  size_t at = random(count);
  std::vector<Thread*>& list = at < ready_.size() ? ready_ : fresh_;
  if (at >= ready_.size()) at -= ready_.size();
  Thread* const thread = list[at];
  list[at] = list.back();
  list.pop_back();
  thread->state = Thread::State::kRuns;
  return thread;
}

void Grid::run_threads() {
  for (;;) {
    Grid& grid = *current_thread->block->grid;
    bool starved = false;
    try {
      grid.launch_.body();
      grid.exit(*current_thread);
    } catch (const std::bad_alloc&) {
      starved = true;  // an exception that is being handled keeps its fiber
    }
    if (starved) {
      grid.starved_ = true;
      grid.fail("");
    }
    Thread* const next = grid.pick();
    current_thread = next;
    if (next != nullptr && next->fiber == nullptr) continue;
    Fiber* const mine = processor.running;
    processor.fibers.give_back(mine);
    processor.running = next != nullptr ? next->fiber : &processor.host;
    Fiber::change(*mine, *processor.running);
  }
}

void Grid::wait(Thread& thread, Thread::State state, const char* what, Site site) {
  thread.state = state;
  thread.what = what;
  thread.site = site;
  if (state == Thread::State::kReady) ready_.push_back(&thread);
  thread.fiber = processor.running;
  Thread* const next = pick();
  if (next == &thread) return;
  Fiber* to = &processor.host;
  if (next != nullptr) to = next->fiber != nullptr ? next->fiber : processor.fibers.take();
  current_thread = next;
  processor.running = to;
  Fiber::change(*thread.fiber, *to);
}

void Grid::resume(Thread& thread) {
  thread.state = Thread::State::kReady;
  ready_.push_back(&thread);
  spins_ = 0;
}

void Grid::exit(Thread& thread) {
  thread.state = Thread::State::kExited;
  Block& block = *thread.block;
  Warp& warp = block.warps[thread.warp()];
  warp.live &= ~(1u << thread.lane());
  --live_threads_;
  spins_ = 0;
  if (--block.live == 0) {
    free_blocks_.push_back(&block);
    return;
  }
  // Lanes may have waited for nobody but this one.
  for (unsigned lane = 0; lane < 32 && warp.waiting != 0; ++lane) {
    if ((warp.waiting >> lane & 1) == 0) continue;
    const Thread& other = block.threads[thread.warp() * 32 + lane];
    complete(block, thread.warp(), other.mask, other);
  }
}

/// Completes the operation that `who` is at if all of its lanes are. `who` may be running.
bool Grid::complete(Block& block, unsigned number, unsigned mask, const Thread& who) {
  Warp& warp = block.warps[number];
  const unsigned lanes = mask & warp.live;
  if ((lanes & ~warp.waiting) != 0) return false;
  void* payloads[32] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    Thread& thread = block.threads[number * 32 + lane];
    // Barriers of a warp may stand at different places, what exchanges values may not.
    const bool same = thread.mask == mask && thread.work_out == who.work_out &&
                      std::strcmp(thread.what, who.what) == 0 &&
                      (who.payload == nullptr ||
                       (thread.site.line == who.site.line && thread.site.file == who.site.file));
    if (!same) {
      if ((thread.mask >> who.lane() & 1) == 0) return false;  // it can come here yet
      emulator::fail("divergent warp: %s, %s, with mask %08x, while lane %u with mask %08x %s",
                     who.what, place(who.site).get(), mask, lane, thread.mask, doing(thread).get());
    }
    payloads[lane] = thread.payload;
  }
  if (who.work_out != nullptr) who.work_out(payloads, lanes);
  warp.waiting &= ~lanes;
  ++warp.epoch;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    Thread& thread = block.threads[number * 32 + lane];
    if (thread.state == Thread::State::kWarp) resume(thread);
  }
  return true;
}

void Grid::warp_operation(const char* what, unsigned mask, void* payload, WarpResult result,
                          Site site) {
  Thread& thread = self();
  if ((mask >> thread.lane() & 1) == 0) {
    emulator::fail("%s at %s with mask %08x, which lacks its own lane", what, place(site).get(),
                   mask);
  }
  thread.what = what;
  thread.site = site;
  thread.mask = mask;
  thread.payload = payload;
  thread.work_out = result;
  Warp& warp = thread.block->warps[thread.warp()];
  warp.waiting |= 1u << thread.lane();
  if (!complete(*thread.block, thread.warp(), mask, thread)) {
    wait(thread, Thread::State::kWarp, what, site);
  }
}

void Grid::barrier(unsigned number, unsigned expected, int vote, const char* what, Site site) {
  Thread& thread = self();
  Block& block = *thread.block;
  if (number >= block.barriers.size()) emulator::fail("%s: no barrier %u", what, number);
  Barrier& barrier = block.barriers[number];
  thread.vote = vote;
  if (!barrier.arrived.empty()) {
    const Thread& first = *barrier.arrived.front();
    const bool same_place = first.site.line == site.line && first.site.file == site.file;
    if (barrier.expected != expected || (number == 0 && !same_place)) {
      emulator::fail("divergent barrier: at %s, %s, while %s", what, place(site).get(),
                     doing(first).get());
    }
  }
  barrier.expected = expected;
  barrier.arrived.push_back(&thread);
  thread.what = what;
  thread.site = site;
  const size_t all = expected != 0 ? expected : block.threads.size();
  if (barrier.arrived.size() == all) {
    release(block, barrier);
  } else {
    wait(thread, Thread::State::kBarrier, what, site);
  }
}

void Grid::release(Block& block, Barrier& barrier) {
  int votes = 0;
  for (const Thread* thread : barrier.arrived) votes += thread->vote;
  ++block.epoch;
  for (Thread* thread : barrier.arrived) {
    thread->result = votes;
    if (thread->state == Thread::State::kBarrier) resume(*thread);
  }
  barrier.arrived.clear();
}

void Grid::grid_barrier(Site site) {
  if (!launch_.cooperative)
    emulator::fail("sync_grid at %s without `cooperative`", place(site).get());
  at_grid_barrier_.push_back(&self());
  if (at_grid_barrier_.size() < live_threads_ || !order_.empty()) {
    wait(self(), Thread::State::kGrid, "sync_grid", site);
    return;
  }
  for (Thread* thread : std::exchange(at_grid_barrier_, {})) {
    ++thread->block->epoch;
    if (thread->state == Thread::State::kGrid) resume(*thread);
  }
}

void Grid::wait_for_predecessor(Site site) {
  if (predecessor_done_) return;
  for_predecessor_.push_back(&self());
  wait(self(), Thread::State::kPredecessor, "wait_for_predecessor", site);
}

void Grid::spin() {
  if (++spins_ > kSpinRounds * live_threads_) emulator::fail("spins for ever");
  wait(self(), Thread::State::kReady, "spin_pause", {});
}

/// Nobody can go on: says who waits, and who is elsewhere.
bool Grid::stuck() {
  const Thread* waits = nullptr;
  const Thread* elsewhere = nullptr;
  for (const auto& block : blocks_) {
    if (block->live == 0) continue;
    for (const Thread& thread : block->threads) {
      if (waits == nullptr && thread.state != Thread::State::kExited) waits = &thread;
    }
    for (const Thread& thread : block->threads) {
      const bool other =
          waits != nullptr && (thread.state != waits->state ||
                               thread.site.line != waits->site.line || thread.mask != waits->mask);
      if (elsewhere == nullptr && other) elsewhere = &thread;
    }
    if (elsewhere != nullptr) break;
  }
  failure_ = "kernel " + launch_.name + ", block " + place(waits->block->index).get() + ": " +
             doing(*waits).get() + " for ever";
  if (elsewhere != nullptr) failure_ += std::string(", while ") + doing(*elsewhere).get();
  return false;
}

void Grid::fail(const char* text) {
  const Thread& thread = self();
  failure_ = "kernel " + launch_.name + ", block " + place(thread.block->index).get() +
             ", thread " + place(thread.index).get() + ": " + text;
  Fiber::change(*processor.running, processor.host);
  std::abort();
}

}  // namespace gen::cuda::emulator

// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulator/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "cuda/device/memory.cuh"

namespace gen::cuda::emulator {

World& world() {
  static World one;
  return one;
}

World::World() {
  const char* const seed = std::getenv("GEN_EMULATOR_SEED");
  options.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
  const char* const driver = std::getenv("GEN_EMULATOR_DRIVER");
  if (driver != nullptr) options.driver_version = std::atoi(driver);
  options.finds_unwritten = std::getenv("GEN_EMULATOR_UNWRITTEN") != nullptr;
  const char* const lost_after = std::getenv("GEN_EMULATOR_LOST_AFTER");
  if (lost_after != nullptr) options.lost_after = std::strtoull(lost_after, nullptr, 10);
}

uint64_t World::random(uint64_t below) {
  drawn = (drawn + options.seed) * 0x5851F42D4C957F2Du + 0x14057B7EF767814Fu;
  return (drawn ^ (drawn >> 33)) % below;
}

bool World::knows(device::Stream stream) const {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

bool World::is_legacy(device::Stream stream) const {
  const auto legacy = defaults.find({stream->device, 0});
  return legacy != defaults.end() && legacy->second.get() == stream;
}

bool World::captures_blocking(int device) const {
  return std::any_of(streams.begin(), streams.end(), [device](device::Stream stream) {
    return stream->blocking && stream->device == device && stream->capture != nullptr;
  });
}

device::Stream World::named(device::Stream handle, int device, uint64_t thread) {
  const bool legacy = handle == legacy_stream();
  if (!legacy && handle != stream_of_thread()) return handle;
  std::unique_ptr<device::StreamHandle>& one = defaults[{device, legacy ? 0 : thread}];
  if (one == nullptr) {
    auto made = std::make_unique<device::StreamHandle>();
    made->device = device;
    made->blocking = !legacy;
    streams.push_back(made.get());
    contexts.insert(device);
    one = std::move(made);
  }
  return one.get();
}

bool World::is_pinned(const void* at, size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(at);
  const auto above = pinned.upper_bound(first);
  if (above == pinned.begin()) return false;
  const auto& [start, block] = *std::prev(above);
  const auto offset = static_cast<size_t>(first - start);
  return offset <= block.size() && bytes <= block.size() - offset;
}

void World::enqueue(device::Stream stream, Work work) {
  if (stream->capture == nullptr) {
    order(stream);
    stream->queue.push_back(std::move(work));
    return;
  }
  std::vector<Node>& nodes = stream->capture->nodes;
  nodes.push_back({std::move(work), std::exchange(stream->tails, {nodes.size()})});
}

void World::wait_for(device::Stream stream, device::Stream other) {
  if (other->queue.empty()) return;
  Work record;
  record.kind = Work::Kind::kRecord;
  record.event = std::make_shared<EventState>();
  record.ticket = record.event->recorded = 1;
  Work wait = record;
  wait.kind = Work::Kind::kWait;
  wait.source = other;
  other->queue.push_back(std::move(record));
  stream->queue.push_back(std::move(wait));
}

void World::order(device::Stream stream) {
  if (stream->blocking) {
    const auto legacy = defaults.find({stream->device, 0});
    if (legacy != defaults.end()) wait_for(stream, legacy->second.get());
  } else if (is_legacy(stream)) {
    for (device::Stream other : streams) {
      if (other->blocking && other->device == stream->device) wait_for(stream, other);
    }
  }
}

bool World::step(device::StreamHandle& stream) {
  if (stream.queue.empty()) return false;
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  switch (work.kind) {
    case Work::Kind::kCall:
      work.call();
      break;
    case Work::Kind::kKernel:
      run_kernel(stream, *work.launch, std::move(stream.ahead));
      break;
    case Work::Kind::kRecord:
      work.event->done = std::max(work.event->done, work.ticket);
      work.event->time = kernel_time ? time : std::chrono::steady_clock::now();
      break;
    case Work::Kind::kWait:
      while (work.event->done < work.ticket && step(*work.source)) {
      }
      break;
  }
  return true;
}

void World::run_kernel(device::StreamHandle& stream, const Launch& launch,
                       std::unique_ptr<Grid> grid) {
  if (grid == nullptr) grid = std::make_unique<Grid>(launch, random(~uint64_t{0}));
  if (options.lost_after != 0 && kernels >= options.lost_after) {
    lost = device::kEccUncorrectable;
    for (device::Stream each : streams) {
      each->queue.clear();
      each->ahead.reset();
    }
    return;
  }
  ++kernels;
  // What may start early does, as early as can be. Events hold nothing up.
  const auto next = std::find_if(stream.queue.begin(), stream.queue.end(),
                                 [](const Work& work) { return work.kind != Work::Kind::kRecord; });
  if (next != stream.queue.end() && next->kind == Work::Kind::kKernel &&
      next->launch->programmatic) {
    stream.ahead = std::make_unique<Grid>(*next->launch, random(~uint64_t{0}));
    if (!stream.ahead->run_ahead()) {
      lose(*stream.ahead);
      return;
    }
  }
  if (!grid->run()) {
    lose(*grid);
    return;
  }
  if (kernel_time) {
    const std::chrono::duration<double, std::micro> taken(kernel_time(launch.name));
    time += std::chrono::duration_cast<std::chrono::steady_clock::duration>(taken);
  }
  const std::string overrun = memory.overrun();
  if (!overrun.empty()) lose("kernel " + launch.name + ": " + overrun);
}

/// Other streams get as far as the seed says.
void World::wander() {
  for (device::Stream other : streams) {
    if (random(2) == 0) continue;
    for (uint64_t n = random(other->queue.size() + 1); n != 0; --n) step(*other);
  }
}

/// A kernel that has begun ahead of its predecessor ends before the host goes on.
void World::finish_begun() {
  for (device::Stream stream : streams) {
    while (stream->ahead != nullptr && step(*stream)) {
    }
  }
}

void World::run_all() {
  memory.open();
  wander();
  for (bool any = true; any;) {
    any = false;
    for (device::Stream stream : streams) {
      while (step(*stream)) any = true;
    }
  }
  memory.close();
}

void World::run_one(device::Stream stream) {
  memory.open();
  step(*stream);
  finish_begun();
  memory.close();
}

void World::report(const std::string& line) {
  if (watched) {
    if (failure.empty()) failure = line;
    return;
  }
  std::fprintf(stderr, "emulator: %s (seed %llu)\n", line.c_str(),
               static_cast<unsigned long long>(options.seed));
  std::abort();
}

void World::lose(const std::string& line) {
  report(line);
  starve();
}

void World::lose(const Grid& grid) {
  if (grid.starved()) return starve();
  lose(std::string(grid.failure()));  // the grid may go with the stream's work
}

void World::starve() {
  lost = device::kLaunchFailure;
  for (device::Stream stream : streams) {
    stream->queue.clear();
    stream->ahead.reset();
  }
}

void check_access(const void* at, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(at) % bytes != 0) {
    fail("misaligned: %zu bytes at %p", bytes, at);
  }
  const World& here = world();
  if (here.memory.holds(at, bytes) || here.is_pinned(at, bytes)) return;
  char place[160];
  here.memory.describe(at, place, sizeof place);
  fail("out of bounds: %zu bytes at %s", bytes, place);
}

bool finds_unwritten() { return world().options.finds_unwritten; }

bool is_unwritten(uintptr_t at, uint32_t word) { return world().memory.is_unwritten(at, word); }

void count_read(const void* at, size_t bytes) {
  World& here = world();
  const auto address = reinterpret_cast<uintptr_t>(at);
  if (address - here.counted_from < here.counted_size) here.counted_bytes += bytes;
}

void check_read(const void* at, size_t bytes) {
  check_access(at, bytes);
  count_read(at, bytes);
  const World& here = world();
  if (!here.options.finds_unwritten) return;
  const void* const unwritten = here.memory.find_unwritten(at, bytes);
  if (unwritten == nullptr) return;
  char place[160];
  here.memory.describe(unwritten, place, sizeof place);
  fail("reads what nobody has written: %s", place);
}

void configure(const Options& options) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  // Nobody gives default streams back.
  for (const auto& [whose, stream] : here.defaults) {
    if (stream->queue.empty()) std::erase(here.streams, stream.get());
  }
  if (!here.streams.empty() || live_device_bytes() != 0) {
    std::fprintf(stderr, "emulator: configure() with %zu streams and %zu bytes alive\n",
                 here.streams.size(), live_device_bytes());
    std::abort();
  }
  here.defaults.clear();
  const uint64_t seed = options.seed != 0 ? options.seed : here.options.seed;
  here.options = options;
  here.options.seed = seed;
  here.lost = device::kSuccess;
  here.drawn = 0;
  here.contexts.clear();
  here.failing = device::kSuccess;
  here.kernel_time = nullptr;
}

void time_kernels(KernelTime microseconds) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.kernel_time = std::move(microseconds);
}

FailureWatch::FailureWatch() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.watched = true;
  here.failure.clear();
}

FailureWatch::~FailureWatch() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.watched = false;
  here.lost = device::kSuccess;
}

std::string FailureWatch::text() const {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return here.failure;
}

void break_device(device::Error error) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.lost = error;
}

size_t live_device_bytes() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  size_t sum = 0;
  for (int device = 0; device < here.options.devices; ++device) {
    sum += here.memory.used_bytes(device);
  }
  return sum;
}

bool has_context(int device) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return here.contexts.count(device) != 0;
}

void fail_call(uint64_t after, device::Error error) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.failing = error;
  here.calls_before = after;
}
bool forget_failing_call() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return !std::exchange(here.failing, device::kSuccess).ok();
}

uint64_t kernels_run() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return here.kernels;
}

void count_reads(const void* from, size_t bytes) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.counted_from = reinterpret_cast<uintptr_t>(from);
  here.counted_size = bytes;
  here.counted_bytes = 0;
}

uint64_t counted_bytes() {
  const std::lock_guard lock(world().mutex);
  return world().counted_bytes;
}

uint64_t host_waits() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return here.waits;
}

}  // namespace gen::cuda::emulator

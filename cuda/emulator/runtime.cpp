// SPDX-License-Identifier: Apache-2.0
// The functions of cuda/device/runtime.h and launch.h over the emulator.
#include "cuda/device/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "cuda/device/launch.h"
#include "cuda/emulator/world.h"

namespace gen::cuda::device {
namespace {

using emulator::Work;
using emulator::World;

thread_local int device_of_thread = 0;
thread_local std::vector<int> contexts_of_thread;  // devices whose contexts were pushed

int current() { return contexts_of_thread.empty() ? device_of_thread : contexts_of_thread.back(); }
/// A context is a device's number and one.
Context context_of(int device) {
  return reinterpret_cast<Context>(static_cast<uintptr_t>(device) + 1);
}
thread_local Error last_of_thread;
thread_local uint64_t number_of_thread = 0;  // from 1

Error failed(Error error) {
  last_of_thread = error;
  return error;
}

/// What most calls do: nothing once the device is lost.
template <typename Call>
Error guarded(Call call) {
  World& world = emulator::world();
  const std::lock_guard lock(world.mutex);
  if (!world.lost.ok()) return failed(world.lost);
  Error error;
  try {
    error = call(world);
  } catch (const std::bad_alloc&) {
    // The emulator itself lacks memory: nothing has been enqueued, or what ran cannot go on.
    if (!world.memory.is_open()) return failed(kOutOfMemory);
    world.memory.close();
    world.starve();
    return failed(world.lost);
  }
  if (!error.ok()) return failed(error);
  return world.lost.ok() ? kSuccess : failed(world.lost);
}

/// `stream` becomes what it stands for.
template <typename Call>
Error with_known_stream(Stream& stream, Call call) {
  return guarded([&](World& world) -> Error {
    if (number_of_thread == 0) number_of_thread = ++world.threads;
    stream = world.named(stream, current(), number_of_thread);
    if (!world.knows(stream)) {
      world.report(stream == nullptr ? "a call uses the default stream"
                                     : "a call uses a stream that does not exist");
      return kInvalidHandle;
    }
    return call(world);
  });
}
/// The same for calls that may be the one to fail; all but the end of a capture, which ends it
/// then, too.
template <typename Call>
Error with_stream(Stream& stream, Call call) {
  return with_known_stream(stream, [&](World& world) -> Error {
    if (!world.failing.ok() && world.calls_before-- == 0) {
      return std::exchange(world.failing, kSuccess);
    }
    if (world.is_legacy(stream) && world.captures_blocking(stream->device)) {
      return kCaptureImplicit;
    }
    return call(world);
  });
}

/// The same for calls that wait, which a capture forbids.
template <typename Call>
Error with_idle_stream(Stream& stream, Call call) {
  return with_stream(stream, [&](World& world) -> Error {
    return stream->capture != nullptr ? kCaptureUnsupported : call(world);
  });
}

Stream new_stream(World& world, bool blocking) {
  world.contexts.insert(current());
  auto made = std::make_unique<StreamHandle>();
  made->device = current();
  made->blocking = blocking;
  world.streams.push_back(made.get());
  return made.release();
}

Work call_work(std::function<void()> call) {
  Work work;
  work.call = std::move(call);
  return work;
}

struct Name {
  Error error;
  const char* name;
  const char* message;
};
constexpr Name kNames[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kDriverTooOld, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {kNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kEccUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kNotReady, "cudaErrorNotReady", "device not ready"},
    {kIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {kMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {kLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {kCooperativeTooLarge, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {kCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};
const Name* find_name(Error error) {
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames),
                                         [&](const Name& one) { return one.error == error; });
  return found != std::end(kNames) ? found : nullptr;
}

constexpr int kThreadsPerSm = 2048;
constexpr int kBlocksPerSm = 32;
constexpr size_t kSmSharedBytes = size_t{228} << 10;

int fitting_blocks(unsigned threads, size_t dynamic_shared_bytes) {
  const unsigned whole_warps = (threads + 31) / 32 * 32;
  const auto by_shared = kSmSharedBytes / (dynamic_shared_bytes + 1024);  // the system's own
  return std::min({kThreadsPerSm / static_cast<int>(std::max(whole_warps, 32u)), kBlocksPerSm,
                   static_cast<int>(by_shared)});
}

}  // namespace

bool Error::sticky() const noexcept {
  const Error lost[] = {kEccUncorrectable, kIllegalAddress, kMisalignedAddress, kLaunchFailure};
  return std::find(std::begin(lost), std::end(lost), *this) != std::end(lost);
}
const char* Error::name() const noexcept {
  const Name* const found = find_name(*this);
  return found != nullptr ? found->name : "cudaErrorUnknown";
}
const char* Error::message() const noexcept {
  const Name* const found = find_name(*this);
  return found != nullptr ? found->message : "unknown error";
}

Error driver_version(int* out) noexcept {
  *out = emulator::world().options.driver_version;
  return kSuccess;
}
Error runtime_version(int* out) noexcept {
  *out = emulator::world().options.runtime_version;
  return kSuccess;
}
Error device_count(int* out) noexcept {
  return guarded([&](World& world) -> Error {
    if (world.options.driver_version < world.options.runtime_version) return kDriverTooOld;
    if (world.options.devices == 0) return kNoDevice;
    *out = world.options.devices;
    return kSuccess;
  });
}
Error device_properties(int device, DeviceProperties* out) noexcept {
  return guarded([&](World& world) -> Error {
    if (device < 0 || device >= world.options.devices) return kInvalidDevice;
    DeviceProperties properties;
    std::snprintf(properties.name, sizeof properties.name, "emulated device %d", device);
    properties.major = world.options.major;
    properties.minor = world.options.minor;
    properties.sm_count = world.options.sm_count;
    properties.max_threads_per_block = 1024;
    properties.max_threads_per_sm = kThreadsPerSm;
    properties.pci_bus = device;
    properties.total_bytes = world.options.device_bytes;
    properties.l2_bytes = world.options.l2_bytes;
    properties.shared_bytes_per_block = emulator::kStaticSharedBytes;
    properties.shared_bytes_per_block_optin = emulator::kSharedBytes;
    properties.shared_bytes_per_sm = kSmSharedBytes;
    properties.cooperative = true;
    properties.pools = true;
    *out = properties;
    return kSuccess;
  });
}
Error set_device(int device) noexcept {
  return guarded([&](World& world) -> Error {
    if (device < 0 || device >= world.options.devices) return kInvalidDevice;
    device_of_thread = device;
    if (!contexts_of_thread.empty()) contexts_of_thread.back() = device;
    world.contexts.insert(device);
    return kSuccess;
  });
}
Error current_device(int* out) noexcept {
  *out = current();
  return kSuccess;
}
Error primary_context(int device, Context* out) noexcept {
  return guarded([&](World& world) -> Error {
    if (device < 0 || device >= world.options.devices) return kInvalidDevice;
    world.contexts.insert(device);
    *out = context_of(device);
    return kSuccess;
  });
}
Error release_primary_context(int device) noexcept {
  // Others hold it as long as a test runs.
  return guarded([&](World& world) -> Error {
    return device < 0 || device >= world.options.devices ? kInvalidDevice : kSuccess;
  });
}
Error push_context(Context context) noexcept {
  return guarded([&](World&) -> Error {
    contexts_of_thread.push_back(static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1);
    return kSuccess;
  });
}
Error pop_context() noexcept {
  if (contexts_of_thread.empty()) return failed(kInvalidHandle);
  contexts_of_thread.pop_back();  // of a device that is lost, too
  return kSuccess;
}
Error device_synchronize() noexcept {
  return guarded([](World& world) -> Error {
    const bool capturing = std::any_of(world.streams.begin(), world.streams.end(),
                                       [](Stream stream) { return stream->capture != nullptr; });
    if (capturing) return kCaptureUnsupported;
    ++world.waits;
    world.run_all();
    return kSuccess;
  });
}
Error memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  return guarded([&](World& world) -> Error {
    world.contexts.insert(current());
    *total_bytes = world.options.device_bytes;
    *free_bytes = *total_bytes - world.memory.used_bytes(current());
    return kSuccess;
  });
}
Error last_error() noexcept {
  const Error last = last_of_thread;
  if (!last.sticky()) last_of_thread = kSuccess;
  return last;
}

Error pool_create(size_t, Pool* out) noexcept {
  return guarded([&](World& world) -> Error {
    world.contexts.insert(current());
    *out = new PoolHandle{current()};
    return kSuccess;
  });
}
Error pool_destroy(Pool pool) noexcept {
  delete pool;
  return guarded([](World&) { return kSuccess; });
}
Error pool_trim(Pool pool, size_t) noexcept {
  return guarded([&](World&) { return pool != nullptr ? kSuccess : kInvalidValue; });
}
Error malloc_async(size_t bytes, Pool pool, Stream stream, void** out) noexcept {
  return with_idle_stream(stream, [&](World& world) -> Error {
    if (pool == nullptr || bytes == 0) return kInvalidValue;
    const size_t used = world.memory.used_bytes(pool->device);
    if (bytes > world.options.device_bytes - std::min(used, world.options.device_bytes)) {
      return kOutOfMemory;
    }
    void* const pointer = world.memory.reserve(bytes, pool->device);
    if (pointer == nullptr) return kOutOfMemory;
    world.enqueue(stream, call_work([&world, pointer] { world.memory.make_live(pointer); }));
    *out = pointer;
    return kSuccess;
  });
}
Error free_async(void* pointer, Stream stream) noexcept {
  World& world = emulator::world();
  const std::lock_guard lock(world.mutex);
  if (!world.lost.ok()) {
    if (world.memory.reserved(pointer)) world.memory.retire(pointer);
    return failed(world.lost);
  }
  return with_idle_stream(stream, [&](World&) -> Error {
    if (!world.memory.reserved(pointer)) {
      world.report("free_async of what is not allocated");
      return kInvalidValue;
    }
    world.enqueue(stream, call_work([&world, pointer] {
                    if (world.memory.reserved(pointer)) {
                      world.memory.retire(pointer);
                    } else {
                      world.lose("free_async of what has been freed");
                    }
                  }));
    return kSuccess;
  });
}
Error host_malloc(size_t bytes, void** out) noexcept {
  return guarded([&](World& world) -> Error {
    if (bytes == 0) return kInvalidValue;
    world.contexts.insert(current());
    std::vector<std::byte> memory(bytes, std::byte{0xFF});
    std::byte* const begin = memory.data();
    world.pinned[begin] = std::move(memory);
    *out = begin;
    return kSuccess;
  });
}
Error host_free(void* pointer) noexcept {
  World& world = emulator::world();
  const std::lock_guard lock(world.mutex);
  const auto* const key = static_cast<const std::byte*>(pointer);
  if (world.pinned.erase(key) == 0) return failed(kInvalidValue);
  return world.lost.ok() ? kSuccess : failed(world.lost);
}

Error copy_async(void* to, const void* from, size_t bytes, CopyKind kind, Stream stream) noexcept {
  return with_stream(stream, [&](World& world) -> Error {
    const bool up = kind == CopyKind::kHostToDevice;
    const bool down = kind == CopyKind::kDeviceToHost;
    const void* const host = up ? from : to;
    const bool pinned = (up || down) && world.is_pinned(host, bytes);
    // Pageable memory is read before the call returns, pinned memory when the copy runs.
    std::vector<std::byte> taken;
    if (up && !pinned && stream->capture == nullptr) {
      const auto* const begin = static_cast<const std::byte*>(from);
      taken.assign(begin, begin + bytes);
    }
    world.enqueue(
        stream, call_work([=, &world, taken = std::move(taken)] {
          const bool far_to = down || world.memory.holds(to, bytes);
          const bool far_from = up || world.memory.holds(from, bytes);
          if (bytes != 0 && (!far_to || !far_from)) {
            char place[160];
            world.memory.describe(far_to ? from : to, place, sizeof place);
            world.lose("a copy of " + std::to_string(bytes) + " bytes " +
                       (far_to ? "from " : "to ") + place);
          } else if (pinned && !world.is_pinned(host, bytes)) {
            world.lose("a copy of " + std::to_string(bytes) +
                       " bytes with pinned memory that has been freed");
          } else {
            const void* const unwritten = world.options.finds_unwritten && down
                                              ? world.memory.find_unwritten(from, bytes)
                                              : nullptr;
            if (unwritten != nullptr) {
              char place[160];
              world.memory.describe(unwritten, place, sizeof place);
              world.lose("a copy to the host of what nobody has written: " + std::string(place));
              return;
            }
            std::memcpy(to, taken.empty() ? from : taken.data(), bytes);
            if (!down && world.options.finds_unwritten) world.memory.note_written(to, bytes);
          }
        }));
    return kSuccess;
  });
}
Error memset_async(void* to, int value, size_t bytes, Stream stream) noexcept {
  return with_stream(stream, [&](World& world) -> Error {
    world.enqueue(stream, call_work([=, &world] {
                    if (world.memory.holds(to, bytes)) {
                      std::memset(to, value, bytes);
                      if (world.options.finds_unwritten) world.memory.note_written(to, bytes);
                      return;
                    }
                    char place[160];
                    world.memory.describe(to, place, sizeof place);
                    world.lose("a fill of " + std::to_string(bytes) + " bytes at " + place);
                  }));
    return kSuccess;
  });
}

Error stream_create(Stream* out, int) noexcept {
  return guarded([&](World& world) -> Error {
    *out = new_stream(world, false);
    return kSuccess;
  });
}
Error stream_destroy(Stream stream) noexcept {
  World& world = emulator::world();
  const std::lock_guard lock(world.mutex);
  if (!world.knows(stream)) return failed(kInvalidHandle);
  if (world.lost.ok()) world.run(stream, [] { return false; });
  std::erase(world.streams, stream);
  delete stream;
  return world.lost.ok() ? kSuccess : failed(world.lost);
}
Error stream_synchronize(Stream stream) noexcept {
  return with_idle_stream(stream, [&](World& world) {
    ++world.waits;
    world.run(stream, [] { return false; });
    return kSuccess;
  });
}
Error stream_query(Stream stream) noexcept {
  return with_idle_stream(stream, [&](World& world) {
    if (stream->queue.empty()) return kSuccess;
    world.run_one(stream);  // so that who asks again and again gets there
    return kNotReady;
  });
}
Error stream_wait(Stream stream, Event event) noexcept {
  return with_stream(stream, [&](World& world) -> Error {
    const emulator::EventState& state = *event->state;
    if (state.capture != nullptr) {
      if (world.is_legacy(stream)) return kCaptureUnsupported;
      if (stream->capture == nullptr) stream->capture = state.capture;
      if (stream->capture != state.capture) return kCaptureInvalidated;
      stream->tails.insert(stream->tails.end(), state.nodes.begin(), state.nodes.end());
      return kSuccess;
    }
    if (stream->capture != nullptr) return kCaptureInvalidated;
    if (state.recorded == state.done) return kSuccess;
    Work work;
    work.kind = Work::Kind::kWait;
    work.event = event->state;
    work.ticket = state.recorded;
    work.source = state.stream;
    world.enqueue(stream, std::move(work));
    return kSuccess;
  });
}

Error event_create(Event* out, bool timed) noexcept {
  return guarded([&](World& world) -> Error {
    world.contexts.insert(current());
    *out = new EventHandle{std::make_shared<emulator::EventState>(), timed};
    return kSuccess;
  });
}
Error event_destroy(Event event) noexcept {
  delete event;
  return guarded([](World&) { return kSuccess; });
}
Error event_record(Event event, Stream stream) noexcept {
  return with_stream(stream, [&](World& world) -> Error {
    emulator::EventState& state = *event->state;
    state.capture = stream->capture;
    if (state.capture != nullptr) {
      state.nodes = stream->tails;
      return kSuccess;
    }
    state.stream = stream;
    Work work;
    work.kind = Work::Kind::kRecord;
    work.event = event->state;
    work.ticket = ++state.recorded;
    world.enqueue(stream, std::move(work));
    return kSuccess;
  });
}
Error event_query(Event event) noexcept {
  return guarded([&](World& world) -> Error {
    const emulator::EventState& state = *event->state;
    if (state.capture != nullptr) return kCaptureUnsupported;
    if (state.done == state.recorded) return kSuccess;
    world.run_one(state.stream);
    return kNotReady;
  });
}
Error event_synchronize(Event event) noexcept {
  return guarded([&](World& world) -> Error {
    const emulator::EventState& state = *event->state;
    if (state.capture != nullptr) return kCaptureUnsupported;
    if (state.done == state.recorded) return kSuccess;
    ++world.waits;
    world.run(state.stream, [&] { return state.done == state.recorded; });
    return kSuccess;
  });
}
Error event_elapsed_ms(Event begin, Event end, float* out) noexcept {
  return guarded([&](World&) -> Error {
    if (!begin->timed || !end->timed) return kInvalidHandle;
    for (const Event event : {begin, end}) {
      if (event->state->recorded == 0) return kInvalidHandle;
      if (event->state->done != event->state->recorded) return kNotReady;
    }
    *out = std::chrono::duration<float, std::milli>(end->state->time - begin->state->time).count();
    return kSuccess;
  });
}

Error capture_begin(Stream stream) noexcept {
  return with_idle_stream(stream, [&](World& world) -> Error {
    if (world.is_legacy(stream)) return kCaptureUnsupported;
    stream->capture = std::make_shared<emulator::Capture>();
    stream->capture->origin = stream;
    stream->tails.clear();
    return kSuccess;
  });
}
Error capture_end(Stream stream, Graph* out) noexcept {
  return with_known_stream(stream, [&](World& world) -> Error {
    const std::shared_ptr<emulator::Capture> capture = stream->capture;
    if (capture == nullptr || capture->origin != stream) return kInvalidValue;
    std::vector<emulator::Node>& nodes = capture->nodes;
    // All that was captured on other streams has to come before the end of this one.
    std::vector<bool> before(nodes.size(), false);
    for (const size_t tail : stream->tails) before[tail] = true;
    for (size_t i = nodes.size(); i-- != 0;) {
      if (!before[i]) continue;
      for (const size_t earlier : nodes[i].after) before[earlier] = true;
    }
    for (const Stream each : world.streams) {
      if (each->capture != capture) continue;
      each->capture = nullptr;
      each->tails.clear();
    }
    if (std::find(before.begin(), before.end(), false) != before.end()) return kCaptureInvalidated;
    *out = new GraphHandle{std::move(nodes)};
    return kSuccess;
  });
}
Error graph_node_count(Graph graph, size_t* out) noexcept {
  *out = graph->nodes.size();
  return kSuccess;
}
Error graph_destroy(Graph graph) noexcept {
  delete graph;
  return kSuccess;
}
Error graph_instantiate(Graph graph, GraphExec* out) noexcept {
  return guarded([&](World&) -> Error {
    *out = new GraphExecHandle{graph->nodes};
    return kSuccess;
  });
}
Error graph_upload(GraphExec exec, Stream stream) noexcept {
  return with_idle_stream(stream,
                          [&](World&) { return exec != nullptr ? kSuccess : kInvalidValue; });
}
Error graph_launch(GraphExec exec, Stream stream) noexcept {
  return with_idle_stream(stream, [&](World& world) -> Error {
    // Any order that the nodes allow.
    std::vector<size_t> left(exec->nodes.size());
    for (size_t i = 0; i < left.size(); ++i) left[i] = i;
    std::vector<bool> done(left.size(), false);
    const auto may_run = [&](size_t node) {
      const std::vector<size_t>& after = exec->nodes[node].after;
      return std::all_of(after.begin(), after.end(), [&](size_t one) { return done[one]; });
    };
    while (!left.empty()) {
      std::vector<size_t> ready;
      std::copy_if(left.begin(), left.end(), std::back_inserter(ready), may_run);
      const size_t next = ready[world.random(ready.size())];
      world.enqueue(stream, exec->nodes[next].work);
      done[next] = true;
      std::erase(left, next);
    }
    return kSuccess;
  });
}
Error graph_exec_destroy(GraphExec exec) noexcept {
  delete exec;
  return kSuccess;
}

Error emulated_occupancy(int threads, size_t dynamic_shared_bytes, int* out) noexcept {
  if (threads <= 0) return failed(kInvalidValue);
  *out = fitting_blocks(static_cast<unsigned>(threads), dynamic_shared_bytes);
  return kSuccess;
}

int emulated_compiled_for() noexcept {
  const emulator::Options& options = emulator::world().options;
  return options.compiled_for != 0 ? options.compiled_for : options.major * 10 + options.minor;
}

Error launch_emulated(emulator::KernelBody body, const LaunchConfig& config) noexcept {
  Stream stream = config.stream;
  return with_stream(stream, [&](World& world) -> Error {
    const Dim3 grid = config.grid;
    const Dim3 block = config.block;
    const auto refuse = [&](const std::string& what, Error error) {
      world.report("kernel " + std::string(config.name) + ": launched with " + what);
      return error;
    };
    const auto of = [](Dim3 size) {
      return "(" + std::to_string(size.x) + "," + std::to_string(size.y) + "," +
             std::to_string(size.z) + ")";
    };
    if (stream->device != current()) {
      return refuse("a stream of device " + std::to_string(stream->device) + ", the thread's is " +
                        std::to_string(current()),
                    kInvalidHandle);
    }
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    if (threads == 0 || threads > 1024 || block.z > 64) {
      return refuse("blocks of " + of(block) + " threads, over 1024 or none",
                    kInvalidConfiguration);
    }
    const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
    if (blocks == 0 || grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535) {
      return refuse("a grid of " + of(grid) + " blocks, over (2147483647,65535,65535) or none",
                    kInvalidConfiguration);
    }
    if (config.dynamic_shared_bytes > emulator::kSharedBytes) {
      return refuse(std::to_string(config.dynamic_shared_bytes) + " bytes of shared memory, over " +
                        std::to_string(emulator::kSharedBytes),
                    kInvalidValue);
    }
    const auto resident = static_cast<uint64_t>(world.options.sm_count) *
                          static_cast<uint64_t>(fitting_blocks(static_cast<unsigned>(threads),
                                                               config.dynamic_shared_bytes));
    if (config.cooperative && blocks > resident) {
      return refuse(std::to_string(blocks) + " cooperative blocks, over the " +
                        std::to_string(resident) + " that fit at once",
                    kCooperativeTooLarge);
    }
    Work work;
    work.kind = Work::Kind::kKernel;
    work.launch = std::make_shared<const emulator::Launch>(
        emulator::Launch{std::move(body), config.name, grid, block, config.dynamic_shared_bytes,
                         config.cooperative, config.programmatic});
    world.enqueue(stream, std::move(work));
    return kSuccess;
  });
}

}  // namespace gen::cuda::device

namespace gen::cuda::emulator {

device::Error blocking_stream_create(device::Stream* out) {
  return device::guarded([&](World& world) -> device::Error {
    *out = device::new_stream(world, true);
    return device::kSuccess;
  });
}

}  // namespace gen::cuda::emulator

// SPDX-License-Identifier: Apache-2.0
// The host interface of a device: memory, streams, events, graphs. It has two implementations:
// runtime.cpp over the CUDA runtime, and cuda/emulator for machines without a device. It uses no
// header of the toolkit, so host code compiles the same for both.
//
// Everything that takes a stream is asynchronous. There is no default stream: a null stream is an
// error. Functions set *out only when they succeed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::cuda::device {

/// The result of a call, an error code of the CUDA runtime.
struct [[nodiscard]] Error {
  int code = 0;

  [[nodiscard]] bool ok() const noexcept { return code == 0; }
  /// The device is lost: every later call on it fails as well, until the process ends.
  [[nodiscard]] bool sticky() const noexcept;
  /// The name in the toolkit's headers, such as "cudaErrorMemoryAllocation".
  [[nodiscard]] const char* name() const noexcept;
  /// A sentence.
  [[nodiscard]] const char* message() const noexcept;

  friend bool operator==(Error a, Error b) noexcept { return a.code == b.code; }
};

inline constexpr Error kSuccess{0};
inline constexpr Error kInvalidValue{1};
inline constexpr Error kOutOfMemory{2};
inline constexpr Error kInvalidConfiguration{9};
inline constexpr Error kDriverTooOld{35};
inline constexpr Error kNoDevice{100};
inline constexpr Error kInvalidDevice{101};
inline constexpr Error kNoKernelImage{209};
inline constexpr Error kEccUncorrectable{214};
inline constexpr Error kInvalidHandle{400};
inline constexpr Error kNotReady{600};
inline constexpr Error kIllegalAddress{700};
inline constexpr Error kMisalignedAddress{716};
inline constexpr Error kLaunchFailure{719};
inline constexpr Error kCooperativeTooLarge{720};
inline constexpr Error kCaptureUnsupported{900};
inline constexpr Error kCaptureInvalidated{901};
inline constexpr Error kCaptureImplicit{906};

/// Handles; null means none.
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;
using Pool = struct PoolHandle*;

struct DeviceProperties {
  char name[256] = {};
  int major = 0;  // compute capability
  int minor = 0;
  int sm_count = 0;
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  int pci_domain = 0;
  int pci_bus = 0;
  int pci_device = 0;
  size_t total_bytes = 0;
  size_t l2_bytes = 0;
  size_t shared_bytes_per_block = 0;        // the default limit
  size_t shared_bytes_per_block_optin = 0;  // the limit with opt-in, see launch()
  size_t shared_bytes_per_sm = 0;
  bool cooperative = false;
  bool pools = false;  // malloc_async works
};

/// Versions as 1000 * major + 10 * minor; a driver version of 0 means that there is no driver.
Error driver_version(int* out) noexcept;
Error runtime_version(int* out) noexcept;

Error device_count(int* out) noexcept;
Error device_properties(int device, DeviceProperties* out) noexcept;
/// The calling thread's device; set_device() creates the device's context if there is none.
Error set_device(int device) noexcept;
Error current_device(int* out) noexcept;
/// The primary context of a device, created if there is none. It is reference-counted: it stays
/// until every retain has been released.
Error primary_context(int device, Context* out) noexcept;
Error release_primary_context(int device) noexcept;
/// Makes the device of the context current for this thread, independently of set_device(), until
/// pop_context() restores the previous context, if there was one.
Error push_context(Context context) noexcept;
Error pop_context() noexcept;
Error device_synchronize() noexcept;
Error memory_info(size_t* free_bytes, size_t* total_bytes) noexcept;
/// The last error of this thread; cleared by the call unless it is sticky.
Error last_error() noexcept;

/// A memory pool of the current device. It caches up to `keep_bytes` of freed memory.
Error pool_create(size_t keep_bytes, Pool* out) noexcept;
Error pool_destroy(Pool pool) noexcept;
Error pool_trim(Pool pool, size_t keep_bytes) noexcept;
/// Stream-ordered allocation, aligned to 256 bytes; usable by later work on `stream`.
Error malloc_async(size_t bytes, Pool pool, Stream stream, void** out) noexcept;
Error free_async(void* pointer, Stream stream) noexcept;

/// Pinned host memory: asynchronous copies access it when they run, not when they are enqueued.
Error host_malloc(size_t bytes, void** out) noexcept;
Error host_free(void* pointer) noexcept;

enum class CopyKind { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };
Error copy_async(void* to, const void* from, size_t bytes, CopyKind kind, Stream stream) noexcept;
Error memset_async(void* to, int value, size_t bytes, Stream stream) noexcept;

/// Streams do not synchronise with the default stream. Smaller numbers have priority; 0 is the
/// lowest priority.
Error stream_create(Stream* out, int priority = 0) noexcept;
Error stream_destroy(Stream stream) noexcept;
Error stream_synchronize(Stream stream) noexcept;
/// kNotReady while there is unfinished work.
Error stream_query(Stream stream) noexcept;
/// Later work on `stream` waits for the event's last record, if there is one.
Error stream_wait(Stream stream, Event event) noexcept;

Error event_create(Event* out, bool timed = false) noexcept;
Error event_destroy(Event event) noexcept;
Error event_record(Event event, Stream stream) noexcept;
Error event_query(Event event) noexcept;
Error event_synchronize(Event event) noexcept;
/// The time between two timed events that have completed.
Error event_elapsed_ms(Event begin, Event end, float* out) noexcept;

/// From capture_begin() on, work for the stream is captured into a graph. The rules of capture
/// apply to calls of this thread only.
Error capture_begin(Stream stream) noexcept;
Error capture_end(Stream stream, Graph* out) noexcept;
Error graph_node_count(Graph graph, size_t* out) noexcept;
Error graph_destroy(Graph graph) noexcept;
Error graph_instantiate(Graph graph, GraphExec* out) noexcept;
Error graph_upload(GraphExec exec, Stream stream) noexcept;
Error graph_launch(GraphExec exec, Stream stream) noexcept;
Error graph_exec_destroy(GraphExec exec) noexcept;

}  // namespace gen::cuda::device

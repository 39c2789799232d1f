// SPDX-License-Identifier: Apache-2.0
// What tests ask of the emulator beside cuda/device/runtime.h: which machine it poses as, in which
// order things happen, and what went wrong. A mistake of a kernel or of its caller ends the process
// with one line, "emulator: kernel …, block …, thread …: what"; under a FailureWatch it is kept
// instead, and the device is lost as after a failure of hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cuda/device/runtime.h"

namespace gen::cuda::emulator {

struct Options {
  /// Orders of lanes, blocks and streams; 0: GEN_EMULATOR_SEED, or 1.
  uint64_t seed = 0;
  int devices = 1;
  size_t device_bytes = size_t{1} << 30;
  int major = 9;
  int minor = 0;
  int compiled_for = 0;  // what kernels say they were compiled for; 0: this device
  int sm_count = 4;
  size_t l2_bytes = size_t{4} << 20;
  int driver_version = 13000;  // at first GEN_EMULATOR_DRIVER, for programs that cannot configure()
  int runtime_version = 13000;
  /// After so many kernels the device is lost; 0: never. At first GEN_EMULATOR_LOST_AFTER.
  uint64_t lost_after = 0;
  /// Device memory that nobody has written may not be read by vectors, by atomic operations, from
  /// copies of it in shared memory, nor be copied to the host. Kernels that read what they then do
  /// not use do not stand that. At first whether there is GEN_EMULATOR_UNWRITTEN.
  bool finds_unwritten = false;
};

/// Another machine from here on. Streams and memory of the last one must have been given back.
void configure(const Options& options);

/// From here on, until configure(), time is what kernels take, the microseconds that this says of
/// one's name, and stands still between them. Events tell it.
using KernelTime = std::function<double(const std::string& kernel)>;
void time_kernels(KernelTime microseconds);

class FailureWatch {
 public:
  FailureWatch();
  /// The device works again.
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// The first failure since; empty when there was none.
  [[nodiscard]] std::string text() const;
};

/// Handles of the default streams, as the toolkit's headers have them: cudaStreamLegacy and
/// cudaStreamPerThread.
inline device::Stream legacy_stream() noexcept {
  return reinterpret_cast<device::Stream>(uintptr_t{1});
}
inline device::Stream stream_of_thread() noexcept {
  return reinterpret_cast<device::Stream>(uintptr_t{2});
}
/// A stream that waits for the legacy default stream and is waited for by it, as those of programs
/// that do not ask for another. For stream_destroy().
device::Error blocking_stream_create(device::Stream* out);

/// Every call returns `error` from here on, until configure().
void break_device(device::Error error);

/// Reserved and not yet freed, on all devices.
size_t live_device_bytes();
/// Whether a device has had a context since configure(). As with CUDA, one is made by choosing the
/// device and by whatever needs one.
bool has_context(int device);
/// Call number `after` from here on (0: the next one) of those that take a stream fails with
/// `error`, which is not sticky, and does nothing.
void fail_call(uint64_t after, device::Error error);
/// Whether that call is still to come; it is not to come any more afterwards.
bool forget_failing_call();
/// Kernels run so far.
uint64_t kernels_run();
/// Bytes within [from, from + bytes) that kernels read from here on, by vectors and by copies to
/// shared memory, are counted; each read counts.
void count_reads(const void* from, size_t bytes);
uint64_t counted_bytes();
/// Calls so far by which the host waited for a device.
uint64_t host_waits();

}  // namespace gen::cuda::emulator

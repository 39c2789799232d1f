// SPDX-License-Identifier: Apache-2.0
// See device_queue.h.
#include "cuda/engine/device_queue.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda/engine/matrix_library.h"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

/// Pinned bytes that may be in flight before write() waits for them.
constexpr size_t kMaxStaged = size_t{8} << 20;
constexpr uintptr_t kPinnedAlign = 64;
/// Static shared memory of kernels, in addition to their dynamic shared memory.
constexpr size_t kStaticShared = 16 << 10;
constexpr size_t kCounterBytes = size_t{kCounters} * sizeof(uint32_t);

}  // namespace

Result<std::shared_ptr<DeviceQueue>> DeviceQueue::create(int32_t device,
                                                         const engine::GpuTable& table,
                                                         bool dry_run) {
  if (!engine::gpu_allocator_complete(table)) {
    return error(Code::kInvalidArgument, "the device allocator lacks a function");
  }
  std::shared_ptr<DeviceQueue> queue(new DeviceQueue(device, table, dry_run));
  GEN_TRY(queue->open());
  return queue;
}

Status DeviceQueue::open() {
  int count = 0;
  GEN_TRY(note(device::device_count(&count), "counting devices"));
  if (device_.device() < 0 || device_.device() >= count) {
    return error(Code::kInvalidArgument, "device %d of %d", device_.device(), count);
  }
  GEN_TRY(note(device::device_properties(device_.device(), &properties_), "asking for a device"));
  const size_t most =
      std::max(properties_.shared_bytes_per_block_optin, properties_.shared_bytes_per_block);
  shared_bytes_ = most > kStaticShared ? most - kStaticShared : 0;
  compute_ = properties_.major * 10 + properties_.minor;
  products_ = std::make_unique<MatrixLibrary>();
  const char* const pairs = std::getenv("GEN_PAIRS");
  pairs_ = pairs == nullptr || std::strcmp(pairs, "off") != 0;
  if (dry_run_) return {};
  const Turn turn(*this);
  // A newer device may run kernels compiled for an older one, which lack newer instructions.
  if (const int32_t compiled = kernels_compiled_for(); compiled > 0) {
    compute_ = std::min(compute_, compiled);
  } else {
    static_cast<void>(device::last_error());
  }
  programmatic_ = compute_ >= 90;
  GEN_TRY(note(device::stream_create(&stream_), "making a stream"));
  for (device::Event& event : half_free_) {
    GEN_TRY(note(device::event_create(&event), "making an event"));
  }
  return {};
}

DeviceQueue::~DeviceQueue() {
  std::optional<DeviceGuard> guard;
  if (!dry_run_) guard.emplace(device_);
  if (stream_ != nullptr) static_cast<void>(device::stream_synchronize(stream_));
  release_passed(true);
  products_.reset();
  for (uint8_t* at : outgrown_) static_cast<void>(table_.release(table_.user, at));
  for (uint8_t* at : {lists_, scratch_}) {
    if (at != nullptr) static_cast<void>(table_.release(table_.user, at));
  }
  for (device::Event event : spare_events_) static_cast<void>(device::event_destroy(event));
  for (device::Event event : half_free_) {
    if (event != nullptr) static_cast<void>(device::event_destroy(event));
  }
  if (stream_ != nullptr) static_cast<void>(device::stream_destroy(stream_));
}

Status DeviceQueue::usable() const {
  if (lost_.ok()) return {};
  return error(Code::kDevice, "device %d is lost: %s (%s)", device_.device(), lost_.message(),
               lost_.name());
}

Status DeviceQueue::note(device::Error failed, const char* what) {
  if (failed.ok()) return {};
  if (failed.sticky() && lost_.ok()) lost_ = failed;
  return device_status(failed, what);
}

Status DeviceQueue::note(Status status) {
  if (status.code() != Code::kDevice || !lost_.ok()) return status;
  const device::Error failed = device::last_error();
  if (failed.sticky()) lost_ = failed;
  return status;
}

Result<size_t> DeviceQueue::free_bytes() {
  const Turn turn(*this);
  GEN_TRY(usable());
  const DeviceGuard guard(device_);  // in a dry run, too
  size_t free = 0;
  size_t total = 0;
  GEN_TRY(note(device::memory_info(&free, &total), "asking for a device's memory"));
  return free;
}

void DeviceQueue::release_passed(bool wait) noexcept {
  size_t kept = 0;
  for (GivenBack& each : given_back_) {
    const bool passed = !lost_.ok() || each.passed == nullptr ||
                        (wait ? device::event_synchronize(each.passed)
                              : device::event_query(each.passed)) != device::kNotReady;
    if (!passed) {
      given_back_[kept++] = each;
      continue;
    }
    static_cast<void>(table_.release(table_.user, each.at));
    if (each.passed == nullptr) continue;
    if (spare_events_.size() < spare_events_.capacity()) {
      spare_events_.push_back(each.passed);
    } else {
      static_cast<void>(device::event_destroy(each.passed));
    }
  }
  given_back_.resize(kept);
}

Status DeviceQueue::take(size_t bytes, void** out) {
  const Turn turn(*this);
  return take_held(bytes, out);
}

Status DeviceQueue::take_held(size_t bytes, void** out) {
  GEN_TRY(usable());
  // Reserve room for giving it back first, so that giving back cannot fail.
  given_back_.reserve(given_back_.size() + 1);
  release_passed(false);
  void* made = nullptr;
  int32_t code = table_.allocate(table_.user, bytes, &made);
  if (code == static_cast<int32_t>(Code::kOutOfMemory) && !given_back_.empty()) {
    release_passed(true);
    code = table_.allocate(table_.user, bytes, &made);
  }
  if (code == 0 && made == nullptr) code = static_cast<int32_t>(Code::kOutOfMemory);
  if (code != 0) {
    const bool known = code < 0 && code >= static_cast<int32_t>(Code::kInternal);
    return error(known ? static_cast<Code>(code) : Code::kDevice,
                 "the device allocator has no %zu bytes", bytes);
  }
  if (reinterpret_cast<uintptr_t>(made) % kPinnedAlign != 0) {
    static_cast<void>(table_.release(table_.user, made));
    return error(Code::kDevice, "the device allocator gave %zu bytes on no multiple of 64", bytes);
  }
  *out = made;
  return {};
}

void DeviceQueue::give_back(void* at) noexcept {
  const Turn turn(*this);
  give_back_held(at);
}

void DeviceQueue::give_back_held(void* at) noexcept {
  GivenBack back = {at, nullptr};
  if (lost_.ok() && !dry_run_) {
    if (!spare_events_.empty()) {
      back.passed = spare_events_.back();
      spare_events_.pop_back();
    } else if (!device::event_create(&back.passed).ok()) {
      back.passed = nullptr;
    }
    if (back.passed == nullptr || !device::event_record(back.passed, stream_).ok()) {
      static_cast<void>(device::stream_synchronize(stream_));
    }
  }
  try {
    spare_events_.reserve(given_back_.size() + 1);
    given_back_.push_back(back);  // the last step that can fail, so nothing needs to be undone
  } catch (const std::bad_alloc&) {
    wait();
    static_cast<void>(table_.release(table_.user, at));
    if (back.passed != nullptr) static_cast<void>(device::event_destroy(back.passed));
  }
  release_passed(false);
}

Status DeviceQueue::copy_up(void* to, const void* pinned, size_t bytes) {
  if (bytes == 0 || dry_run_) return {};
  GEN_TRY(usable());
  return note(device::copy_async(to, pinned, bytes, device::CopyKind::kHostToDevice, stream_),
              "a copy to the device");
}

Status DeviceQueue::copy_down(void* pinned, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  if (dry_run_) {
    std::memset(pinned, 0, bytes);
    return {};
  }
  GEN_TRY(usable());
  return note(device::copy_async(pinned, from, bytes, device::CopyKind::kDeviceToHost, stream_),
              "a copy from the device");
}

Status DeviceQueue::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || dry_run_) return {};
  GEN_TRY(usable());
  return note(device::copy_async(to, from, bytes, device::CopyKind::kDeviceToDevice, stream_),
              "a copy on the device");
}

Status DeviceQueue::fill(void* at, int32_t value, size_t bytes) {
  if (bytes == 0 || dry_run_) return {};
  GEN_TRY(usable());
  return note(device::memset_async(at, value, bytes, stream_), "filling device memory");
}

Status DeviceQueue::write(void* to, const void* from, size_t bytes) {
  if (bytes > kMaxStaged / 2) return write_large(to, from, bytes);
  GEN_TRY(usable());
  if (staging_.used() + bytes > kMaxStaged) GEN_TRY(finish());
  std::byte* pinned = nullptr;
  GEN_TRY(staging_.take(bytes, &pinned));
  if (bytes > 0) std::memcpy(pinned, from, bytes);
  return copy_up(to, pinned, bytes);
}

Status DeviceQueue::take_lists(size_t bytes, std::byte** pinned, uint8_t** device) {
  GEN_TRY(usable());
  if (staging_.used() + bytes > kMaxStaged) GEN_TRY(finish());
  GEN_TRY(grow(bytes, &lists_, &lists_bytes_));
  GEN_TRY(staging_.take(bytes, pinned));
  *device = lists_;
  return {};
}

Status DeviceQueue::take_scratch(size_t bytes, uint8_t** out) {
  if (bytes > scratch_bytes_) {
    if (capturing_) return error(Code::kInternal, "scratch memory grows in a capture");
    // It doubles, so all outgrown memory together is no larger than the current one.
    outgrown_.reserve(outgrown_.size() + 1);
    void* made = nullptr;
    const size_t more = std::max(bytes, 2 * scratch_bytes_);
    GEN_TRY(take_held(kCounterBytes + more, &made));
    if (Status cleared = fill(made, 0, kCounterBytes); !cleared.ok()) {
      give_back_held(made);
      return cleared;
    }
    if (scratch_ != nullptr) outgrown_.push_back(scratch_);
    scratch_ = static_cast<uint8_t*>(made);
    scratch_bytes_ = more;
  }
  *out = scratch_ + kCounterBytes;
  return {};
}

Status DeviceQueue::read_back(const void* from, size_t bytes, void* to) {
  if (capturing_) return error(Code::kInternal, "nothing is read back in a capture");
  if (staging_.used() + bytes > kMaxStaged) GEN_TRY(finish());
  std::byte* pinned = nullptr;
  GEN_TRY(staging_.take(bytes, &pinned));
  GEN_TRY(copy_down(pinned, from, bytes));
  if (!dry_run_) GEN_TRY(note(device::stream_synchronize(stream_), "waiting for the device"));
  std::memcpy(to, pinned, bytes);
  return {};
}

Status DeviceQueue::grow(size_t bytes, uint8_t** at, size_t* size) {
  if (bytes <= *size) return {};
  void* made = nullptr;
  const size_t more = std::max(bytes, 2 * *size);
  GEN_TRY(take_held(more, &made));
  if (*at != nullptr) {
    // Rare; work in flight may still read the old memory.
    wait();
    static_cast<void>(table_.release(table_.user, *at));
  }
  *at = static_cast<uint8_t*>(made);
  *size = more;
  return {};
}

Status DeviceQueue::commit_lists(const std::byte* pinned, uint8_t* device, size_t bytes) {
  return copy_up(device, pinned, bytes);
}

Status DeviceQueue::finish() {
  GEN_TRY(usable());
  if (!dry_run_) {
    Status waited = note(device::stream_synchronize(stream_), "waiting for the device");
    if (!waited.ok()) {
      wait();  // the caller frees pinned memory after the failure, which copies in flight may use
      return waited;
    }
  }
  staging_.reset();
  release_passed(false);
  return {};
}

}  // namespace gen::cuda

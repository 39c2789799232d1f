// SPDX-License-Identifier: Apache-2.0
// Makes a device the calling thread's for a while, then restores the caller's. Restoring with
// cudaSetDevice would create a context of hundreds of megabytes if the caller's device had none, so
// the context of our device is pushed and popped instead.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/device/runtime.h"

namespace gen::cuda {

/// A device and, once a thread has switched to it from another device, its primary context.
/// Threads: any.
class DeviceContext {
 public:
  explicit DeviceContext(int32_t device) noexcept : device_(device) {}

  [[nodiscard]] int32_t device() const noexcept { return device_; }
  /// Null where the driver gives none.
  [[nodiscard]] device::Context get() noexcept {
    device::Context context = context_.load();
    if (context != nullptr) return context;
    if (!device::primary_context(device_, &context).ok()) return nullptr;
    context_.store(context);
    return context;
  }
  /// Releases the context, for an object of short life. No guard of it may exist.
  void give_back() noexcept {
    if (context_.exchange(nullptr) == nullptr) return;
    static_cast<void>(device::release_primary_context(device_));
  }

 private:
  const int32_t device_;
  std::atomic<device::Context> context_{nullptr};
};

/// Makes a device the calling thread's, and leaves the thread as it was when it ends. Ends in the
/// reverse order.
class DeviceGuard {
 public:
  explicit DeviceGuard(DeviceContext& of) noexcept {
    if (!device::current_device(&before_).ok()) before_ = -1;
    if (before_ == of.device()) {
      before_ = -1;
      return;
    }
    const device::Context context = of.get();
    pushed_ = context != nullptr && device::push_context(context).ok();
    if (!pushed_) static_cast<void>(device::set_device(of.device()));
  }
  ~DeviceGuard() {
    if (pushed_) {
      static_cast<void>(device::pop_context());
    } else if (before_ >= 0) {
      static_cast<void>(device::set_device(before_));
    }
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;
  bool pushed_ = false;
};

}  // namespace gen::cuda

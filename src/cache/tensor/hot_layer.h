// SPDX-License-Identifier: Apache-2.0
// The memory of one hot layer of a tiered store: the host's, or a device's that copies reach.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include "base/allocator.h"
#include "base/status.h"
#include "engine/memory/gpu_memory.h"

namespace gen::cache {

/// Places and lengths are in floats. Threads: one at a time.
class HotLayer {
 public:
  /// At least `bytes`, which then hold anything; what is large enough stays. On `device` if it is
  /// given, which must outlive this. On failure nothing has changed.
  Status reserve(size_t bytes, Allocator& host, engine::GpuAllocator* device) {
    if (bytes <= size()) return {};
    if (device == nullptr) {
      GEN_ASSIGN(host_, Buffer::allocate(host, bytes));
      return {};
    }
    GEN_ASSIGN(there_, engine::GpuBuffer::allocate(*device, bytes));
    device_ = device;
    return {};
  }
  void reset() noexcept {
    host_.reset();
    there_ = engine::GpuBuffer();
  }
  [[nodiscard]] size_t size() const noexcept { return host_.size() + there_.size(); }
  /// Null on a device.
  [[nodiscard]] float* host() const noexcept {
    return there_.size() > 0 ? nullptr : host_.as<float>();
  }

  /// kDevice.
  Status write(size_t at, const void* from, size_t n) const {
    if (float* const to = host(); to != nullptr) {
      std::memcpy(to + at, from, n * sizeof(float));
      return {};
    }
    return device_->copy_up(there_.at(at * sizeof(float)), from, n * sizeof(float));
  }
  Status read(size_t at, float* to, size_t n) const {
    if (const float* const from = host(); from != nullptr) {
      std::memcpy(to, from + at, n * sizeof(float));
      return {};
    }
    return device_->copy_down(to, there_.at(at * sizeof(float)), n * sizeof(float));
  }

 private:
  Buffer host_;
  engine::GpuBuffer there_;
  engine::GpuAllocator* device_ = nullptr;
};

}  // namespace gen::cache

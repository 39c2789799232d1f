// SPDX-License-Identifier: Apache-2.0
// TestGpuAllocator: a device allocator that counts, puts guard bytes around each allocation and
// checks them when it is freed, fills memory with NaNs before and after use, and refuses on demand.
// The memory comes from another table.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "engine/memory/gpu_allocator.h"

namespace gen::test {

class TestGpuAllocator {
 public:
  explicit TestGpuAllocator(const engine::GpuTable& behind) : behind_(behind), table_(behind) {
    table_.struct_size = sizeof(engine::GpuTable);
    table_.user = this;
    table_.allocate = allocate;
    table_.release = release;
    table_.copy = copy;
    table_.allocate_pinned = allocate_pinned;
    table_.release_pinned = release_pinned;
  }
  ~TestGpuAllocator() {
    EXPECT_EQ(live_.size(), 0U) << "pieces of device memory that did not come back";
    EXPECT_EQ(pinned_.size(), 0U) << "pieces of pinned memory that did not come back";
  }
  TestGpuAllocator(const TestGpuAllocator&) = delete;
  TestGpuAllocator& operator=(const TestGpuAllocator&) = delete;

  [[nodiscard]] const engine::GpuTable& table() const { return table_; }
  [[nodiscard]] size_t live_bytes() {
    const std::lock_guard lock(mutex_);
    size_t bytes = 0;
    for (const auto& [at, size] : live_) bytes += size;
    return bytes;
  }

  static constexpr size_t kNone = ~size_t{0};
  size_t calls = 0;        // of allocate and allocate_pinned
  size_t refused = kNone;  // index of the one that there is no memory for

 private:
  static constexpr int32_t kOutOfMemory = -2;
  static constexpr size_t kZone = 256;
  static constexpr uint8_t kAround = 0xC3;
  static constexpr uint8_t kPoison = 0xFF;

  static TestGpuAllocator& self(void* user) { return *static_cast<TestGpuAllocator*>(user); }
  int32_t fill(void* at, uint8_t value, size_t bytes) {
    const std::vector<uint8_t> values(bytes, value);
    return behind_.copy(behind_.user, at, values.data(), bytes, 0);
  }
  bool holds(const void* at, uint8_t value, size_t bytes) {
    std::vector<uint8_t> values(bytes);
    if (behind_.copy(behind_.user, values.data(), at, bytes, 1) != 0) return true;  // it is lost
    for (const uint8_t each : values) {
      if (each != value) return false;
    }
    return true;
  }

  static int32_t allocate(void* user, size_t bytes, void** out) {
    TestGpuAllocator& own = self(user);
    const std::lock_guard lock(own.mutex_);
    if (own.calls++ == own.refused) return kOutOfMemory;
    void* made = nullptr;
    const int32_t code = own.behind_.allocate(own.behind_.user, bytes + 2 * kZone, &made);
    if (code != 0) return code;
    auto* const at = static_cast<uint8_t*>(made) + kZone;
    EXPECT_EQ(own.fill(made, kAround, kZone), 0);
    EXPECT_EQ(own.fill(at, kPoison, bytes), 0);
    EXPECT_EQ(own.fill(at + bytes, kAround, kZone), 0);
    own.live_[at] = bytes;
    *out = at;
    return 0;
  }
  static int32_t release(void* user, void* ptr) {
    TestGpuAllocator& own = self(user);
    const std::lock_guard lock(own.mutex_);
    auto* const at = static_cast<uint8_t*>(ptr);
    const auto found = own.live_.find(at);
    if (found == own.live_.end()) {
      ADD_FAILURE() << "memory came back that was not given";
      return -1;
    }
    EXPECT_TRUE(own.holds(at - kZone, kAround, kZone)) << "bytes before a piece were written";
    EXPECT_TRUE(own.holds(at + found->second, kAround, kZone))
        << "bytes after a piece were written";
    static_cast<void>(own.fill(at, kPoison, found->second));
    own.live_.erase(found);
    return own.behind_.release(own.behind_.user, at - kZone);
  }
  static int32_t copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
    return self(user).behind_.copy(self(user).behind_.user, to, from, bytes, kind);
  }
  static int32_t allocate_pinned(void* user, size_t bytes, void** out) {
    TestGpuAllocator& own = self(user);
    const std::lock_guard lock(own.mutex_);
    if (own.calls++ == own.refused) return kOutOfMemory;
    const int32_t code = own.behind_.allocate_pinned(own.behind_.user, bytes, out);
    if (code == 0) {
      std::memset(*out, kPoison, bytes);
      own.pinned_[*out] = bytes;
    }
    return code;
  }
  static int32_t release_pinned(void* user, void* ptr) {
    TestGpuAllocator& own = self(user);
    const std::lock_guard lock(own.mutex_);
    EXPECT_EQ(own.pinned_.erase(ptr), 1U) << "pinned memory came back that was not given";
    return own.behind_.release_pinned(own.behind_.user, ptr);
  }

  const engine::GpuTable& behind_;
  engine::GpuTable table_;
  std::mutex mutex_;
  std::map<uint8_t*, size_t> live_;
  std::map<void*, size_t> pinned_;
};

}  // namespace gen::test

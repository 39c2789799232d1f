// SPDX-License-Identifier: Apache-2.0
// Proves alignment, ownership and failure of Buffer with the system's allocator and a counting one.
#include "base/allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace gen {
namespace {

class CountingAllocator final : public Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    if (fail) return error(Code::kOutOfMemory, "cannot allocate %zu bytes", bytes);
    GEN_TRY(system_allocator().allocate(bytes, align, out));
    live += bytes;
    return {};
  }
  void release(void* pointer, size_t bytes) noexcept override {
    live -= bytes;
    system_allocator().release(pointer, bytes);
  }
  bool fail = false;
  size_t live = 0;
};

TEST(Buffer, AlignsAndOwns) {
  for (size_t align : {1U, 2U, 8U, 64U, 4096U}) {
    for (size_t bytes : {0U, 1U, 63U, 4097U}) {
      auto buffer = Buffer::allocate(system_allocator(), bytes, align);
      ASSERT_TRUE(buffer.ok());
      EXPECT_EQ(buffer->size(), bytes);
      ASSERT_NE(buffer->data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % align, 0U);
      std::memset(buffer->data(), 0x5A, bytes);
    }
  }
}

TEST(Buffer, ReturnsItsBytesOnce) {
  CountingAllocator allocator;
  {
    auto first = Buffer::allocate(allocator, 100);
    auto second = Buffer::allocate(allocator, 50);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(allocator.live, 150U);
    Buffer moved(std::move(first).value());
    EXPECT_EQ(first->data(), nullptr);
    EXPECT_EQ(allocator.live, 150U);
    moved = std::move(second).value();
    EXPECT_EQ(moved.size(), 50U);
    EXPECT_EQ(allocator.live, 50U);
    moved.reset();
    moved.reset();
    EXPECT_EQ(allocator.live, 0U);
  }
  EXPECT_EQ(allocator.live, 0U);
}

TEST(Buffer, ReportsFailureNamingTheSize) {
  CountingAllocator allocator;
  allocator.fail = true;
  auto buffer = Buffer::allocate(allocator, 1234);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), Code::kOutOfMemory);
  EXPECT_NE(std::string(buffer.status().message()).find("1234"), std::string::npos);
}

}  // namespace
}  // namespace gen

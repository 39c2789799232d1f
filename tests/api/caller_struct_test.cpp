// SPDX-License-Identifier: Apache-2.0
// Proves what becomes of a caller's struct of any size: a struct of ours that has grown since, since
// no public one has yet. struct_size_test.c goes through the public ones.
// Compiled alone: a specialisation names what is in the unnamed namespace.
#include "api/boundary/caller_struct.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "status_record.h"

namespace gen::api {
namespace {

struct Grown {
  uint32_t struct_size;
  int32_t first;
  int64_t second;
  int64_t third;  // not in version 0.1
};

}  // namespace

template <>
struct CallerStruct<Grown> {
  static constexpr const char* kName = "grown";
  static constexpr size_t kFirstSize = offsetof(Grown, second) + sizeof(int64_t);
};

namespace {

constexpr auto kRubbish = std::byte{0xA5};

/// The beginning of a Grown in a block of exactly `size` bytes, rubbish behind it.
std::unique_ptr<std::byte, decltype(&std::free)> block_of(size_t size) {
  const Grown whole{static_cast<uint32_t>(size), 1, 2, 3};
  auto* bytes = static_cast<std::byte*>(std::malloc(size));
  std::fill_n(bytes, size, kRubbish);
  std::memcpy(bytes, &whole, std::min(size, sizeof whole));
  return {bytes, &std::free};
}

TEST(CallerStruct, WhatIsMissingIsZeroAndWhatIsUnknownIsIgnored) {
  for (size_t size = CallerStruct<Grown>::kFirstSize; size <= sizeof(Grown) + 9; ++size) {
    const auto block = block_of(size);
    auto ours = read_struct(*reinterpret_cast<const Grown*>(block.get()));
    ASSERT_TRUE(ours.ok());
    EXPECT_EQ(ours->struct_size, sizeof(Grown));
    EXPECT_EQ(ours->first, 1);
    EXPECT_EQ(ours->second, 2);
    if (size <= offsetof(Grown, third)) {
      EXPECT_EQ(ours->third, 0);
    }
    if (size >= sizeof(Grown)) {
      EXPECT_EQ(ours->third, 3);
    }
  }
}

TEST(CallerStruct, NothingIsWrittenBehindItsEnd) {
  for (size_t size = CallerStruct<Grown>::kFirstSize; size <= sizeof(Grown) + 9; ++size) {
    const auto block = block_of(size);
    write_struct(Grown{0, 7, 8, 9}, reinterpret_cast<Grown*>(block.get()));
    const Grown wanted{static_cast<uint32_t>(size), 7, 8, 9};
    const size_t known = std::min(size, sizeof wanted);
    EXPECT_EQ(std::memcmp(block.get(), &wanted, known), 0);
    for (size_t i = known; i < size; ++i) EXPECT_EQ(block.get()[i], kRubbish);
  }
}

TEST(CallerStruct, LessThanTheFirstVersionIsRefused) {
  for (size_t size = sizeof(uint32_t); size < CallerStruct<Grown>::kFirstSize; ++size) {
    const auto block = block_of(size);
    const Status status = check_struct(*reinterpret_cast<const Grown*>(block.get()));
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find("struct_size of grown is"), std::string::npos);
  }
}

}  // namespace
}  // namespace gen::api

// SPDX-License-Identifier: Apache-2.0
// Proves the recurrent state: memory that stays where it is, snapshots against plain copies in
// random order, and that a failing allocation changes nothing.
#include "cache/state/ssm_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/counting_allocator.h"

namespace gen::cache {
namespace {

TEST(SsmState, ChecksItsCreation) {
  const auto status = [](int32_t layers, int32_t batch, int32_t d_inner, int32_t d_state) {
    return SsmState::create(layers, batch, d_inner, d_state, system_allocator()).status();
  };
  EXPECT_STREQ(status(-1, 1, 1, 1).message(), "-1 layers are outside [0, 65536]");
  EXPECT_EQ(status(1, 0, 1, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(status(1, 1, 0, 1).code(), Code::kInvalidArgument);
  EXPECT_STREQ(status(1, 1, 1, 0).message(),
               "a state of batch 1, d_inner 1 and d_state 0: each must be at least 1");
  EXPECT_EQ(status(65536, INT32_MAX, INT32_MAX, INT32_MAX).code(), Code::kOutOfMemory);
  auto none = SsmState::create(0, 1, 4, 4, system_allocator());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ((*none)->bytes(), 0u);
  EXPECT_EQ((*none)->layer(0).status().code(), Code::kOutOfRange);
  ASSERT_TRUE((*none)->snapshot().ok());
  EXPECT_TRUE((*none)->restore(1).ok());
}

TEST(SsmState, ResetKeepsTheMemory) {
  test::CountingAllocator allocator;
  auto made = SsmState::create(24, 1, 1536, 16, allocator);
  ASSERT_TRUE(made.ok());
  SsmState& state = **made;
  EXPECT_EQ(state.bytes(), 2359296u);  // the published number
  EXPECT_EQ(allocator.live_bytes, 2359296u);
  const auto layer = state.layer(23);
  ASSERT_TRUE(layer.ok());
  ASSERT_EQ(layer.value().size(), 1536u * 16);
  EXPECT_TRUE(std::all_of(layer.value().begin(), layer.value().end(),
                          [](float value) { return value == 0.0F; }));
  std::fill(layer.value().begin(), layer.value().end(), 3.0F);
  state.reset();
  EXPECT_EQ(state.layer(23).value().data(), layer.value().data());
  EXPECT_EQ(layer.value().back(), 0.0F);
  EXPECT_EQ(allocator.calls, 1u);
}

TEST(SsmState, SnapshotsAgreeWithCopies) {
  auto made = SsmState::create(3, 2, 5, 4, system_allocator());
  ASSERT_TRUE(made.ok());
  SsmState& state = **made;
  std::mt19937 random(12);
  std::vector<float> model(3 * 2 * 5 * 4, 0.0F);
  std::map<int64_t, std::vector<float>> copies;
  for (int step = 0; step < 10000; ++step) {
    const auto pick = random() % 8;
    if (pick < 3) {
      const auto index = static_cast<int32_t>(random() % 3);
      auto layer = state.layer(index);
      ASSERT_TRUE(layer.ok());
      const size_t element = random() % 40;
      layer.value()[element] = model[static_cast<size_t>(index) * 40 + element] =
          static_cast<float>(step);
    } else if (pick < 5) {
      auto number = state.snapshot();
      ASSERT_TRUE(number.ok());
      ASSERT_EQ(*number, static_cast<int64_t>(copies.size()) + 1);
      copies[*number] = model;
    } else if (pick < 7) {
      const auto last = static_cast<int64_t>(copies.size());
      const auto number = last + 3 - static_cast<int64_t>(random() % 24);
      const bool kept = number >= 1 && number <= last && number > last - SsmState::kSnapshots;
      ASSERT_EQ(state.restore(number).code(), kept ? Code::kOk : Code::kOutOfRange);
      if (kept) model = copies[number];
    } else if (random() % 8 == 0) {
      state.reset();
      std::fill(model.begin(), model.end(), 0.0F);
    }
    for (int32_t index = 0; index < 3; ++index) {
      const auto layer = state.layer(index);
      ASSERT_TRUE(
          std::equal(layer.value().begin(), layer.value().end(), model.begin() + index * 40));
    }
  }
}

TEST(SsmState, AFailingAllocationChangesNothing) {
  test::CountingAllocator allocator;
  allocator.fail_at = 0;
  EXPECT_EQ(SsmState::create(1, 1, 2, 2, allocator).status().code(), Code::kOutOfMemory);
  auto made = SsmState::create(1, 1, 2, 2, allocator);
  ASSERT_TRUE(made.ok());
  auto layer = made.value()->layer(0);
  layer.value()[3] = 5.0F;
  ASSERT_TRUE(made.value()->snapshot().ok());
  allocator.fail_at = allocator.calls;
  EXPECT_EQ(made.value()->snapshot().status().code(), Code::kOutOfMemory);
  EXPECT_EQ(made.value()->restore(2).code(), Code::kOutOfRange);
  made.value()->reset();
  ASSERT_TRUE(made.value()->restore(1).ok());
  EXPECT_EQ(layer.value()[3], 5.0F);
  auto second = made.value()->snapshot();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*second, 2);
  made.value().reset();
  EXPECT_EQ(allocator.live_blocks, 0u);
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Proves what a pool gains where layers with windows give their blocks back: longer texts fit,
// other sessions find a beginning of which only the windows' ends are left, and texts are those of
// caches that keep everything.
#include <gtest/gtest.h>

#include <vector>

#include "generate/prefix_world.h"

namespace gen::generate {
namespace {

constexpr int32_t kWindow = 9;
constexpr int32_t kSize = 4;

PrefixOptions windowed(int32_t capacity) {
  PrefixOptions options;
  options.window = kWindow;
  options.block_size = kSize;
  options.capacity = capacity;
  return options;
}

Said alone(const Tokens& prompt, int32_t n) {
  PrefixWorld world(windowed(0));
  return say(world, prompt, n);
}

/// The blocks that a sequence of n positions holds between steps: one layer keeps all, and two what
/// a block before their window begins, in whole tiles.
size_t held(int32_t n) {
  const int32_t before = n - kSize - (kWindow - 1) - (engine::kKvTile - 1);
  const int32_t first = std::max(before, 0) / engine::kKvTile * engine::kKvTile;
  const int32_t all = (n + kSize - 1) / kSize;
  return static_cast<size_t>(all + 2 * (all - first / kSize));
}

TEST(PoolWindows, ALongTextTakesFewBlocks) {
  const Tokens prompt = text_of(1, 100);
  const Said want = alone(prompt, 20);
  PrefixWorld world(windowed(0));
  ASSERT_EQ(world.pool->reaches().size(), 3U);
  const size_t all = world.pool->blocks().available();
  {
    const auto session = world.session();
    EXPECT_EQ(say(*session, prompt, 20), want);
    EXPECT_EQ(all - world.pool->blocks().available(), held(119));
  }
  EXPECT_EQ(world.pool->blocks().available(), all);
  // A layer of 120 positions, and two of 8 + 30 + 4 + 16 and two blocks used in part: a window in
  // whole tiles, a block before it, and a pass. Caches that keep all would need three times thirty.
  world.leave_free(30 + 2 * 16);
  EXPECT_EQ(say(world, prompt, 20), want);
}

TEST(PoolWindows, ABeginningIsFoundWhereItsWindowsEnd) {
  const Tokens prompt = text_of(1, 96);
  Tokens other = prompt;
  other.resize(80);
  const Tokens rest = text_of(2, 10);
  other.insert(other.end(), rest.begin(), rest.end());
  const Said want = alone(other, 8);

  PrefixWorld world(windowed(200));
  EXPECT_EQ(say(world, prompt, 8), alone(prompt, 8));
  const Said again = say(world, other, 8);
  EXPECT_EQ(again, want);
  EXPECT_EQ(again.cached, 80);
  // Its own text, too, and no more rows than must run.
  const Said third = say(world, other, 8);
  EXPECT_EQ(third, want);
  EXPECT_EQ(third.cached, 89);
}

// What was reserved for rows that then did not run is nobody's.
TEST(PoolWindows, APassThatFailsLeavesNoBlocks) {
  PrefixWorld world(windowed(0));
  const size_t all = world.pool->blocks().available();
  world.model->after_forward = [] { return Status(Code::kModel, "injected"); };
  const auto session = world.session();
  EXPECT_EQ(say(*session, text_of(1, 30), 3).status.code(), Code::kModel);
  EXPECT_EQ(world.pool->blocks().available(), all);
  world.model->after_forward = nullptr;
  EXPECT_EQ(say(*session, text_of(1, 30), 3), alone(text_of(1, 30), 3));
}

// Where the pool is short of blocks, the middle of the text loses its windows, and its end does
// not.
TEST(PoolWindows, UnderPressureTheEndsStay) {
  const Tokens prompt = text_of(1, 96);
  PrefixWorld world(windowed(200));
  EXPECT_EQ(say(world, prompt, 1), alone(prompt, 1));
  const size_t kept = world.pool->blocks().capacity() - world.pool->blocks().available();
  EXPECT_EQ(kept, 3U * 24);
  // Takes all that are free, and windows of 16 stretches, a block of each of two layers.
  std::vector<cache::Block*> taken(world.pool->blocks().available() + 32);
  ASSERT_TRUE(world.pool->blocks().allocate(taken).ok());
  std::vector<cache::Block*> back(taken.begin() + 32, taken.end());
  for (cache::Block* block : back) ASSERT_TRUE(world.pool->blocks().release(block).ok());
  const Said again = say(world, prompt, 1);
  EXPECT_EQ(again, alone(prompt, 1));
  EXPECT_EQ(again.cached, 95);
  // In its middle nothing can be continued any more.
  Tokens middle(prompt.begin(), prompt.begin() + 40);
  middle.push_back(49);
  const Said anew = say(world, middle, 1);
  EXPECT_EQ(anew, alone(middle, 1));
  EXPECT_EQ(anew.cached, 0);
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Proves the block pool: order of blocks, every misuse that it can see, reference counts, lazy
// memory, poison, and that all counters are exact when sixteen threads use it.
#include "cache/prefix/block_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "engine/memory/host_memory.h"
#include "support/counting_allocator.h"
#include "support/host_view.h"

namespace gen::cache {
namespace {

Block* take(BlockPool& pool) {
  auto block = pool.allocate();
  EXPECT_TRUE(block.ok()) << block.status().message();
  return block.ok() ? *block : nullptr;
}

TEST(BlockPool, GivesBlocksInOrderAndLastFreedFirst) {
  BlockPool pool(4096, 16, 300, engine::system_memory());
  EXPECT_EQ(pool.capacity(), 300u);
  EXPECT_EQ(pool.available(), 300u);
  EXPECT_EQ(pool.block_size(), 16);
  EXPECT_EQ(pool.block_bytes(), 4096u);
  Block* first = take(pool);
  Block* second = take(pool);
  Block* third = take(pool);
  EXPECT_EQ(second->data(), first->data() + 4096);
  EXPECT_EQ(third->data(), second->data() + 4096);
  EXPECT_EQ(first->used(), 0);
  EXPECT_EQ(first->references(), 1);
  EXPECT_EQ(&first->pool(), &pool);
  EXPECT_EQ(pool.available(), 297u);
  EXPECT_TRUE(pool.release(first).ok());
  EXPECT_TRUE(pool.release(third).ok());
  EXPECT_EQ(take(pool), third);
  EXPECT_EQ(take(pool), first);
}

TEST(BlockPool, ExhaustionTakesNothing) {
  BlockPool pool(64, 4, 5, engine::system_memory());
  std::vector<Block*> blocks(3);
  ASSERT_TRUE(pool.allocate(blocks).ok());
  std::vector<Block*> more(3);
  const Status status = pool.allocate(more);
  EXPECT_EQ(status.code(), Code::kPoolExhausted);
  EXPECT_STREQ(status.message(), "the pool has 2 of 5 blocks free, 3 wanted");
  EXPECT_EQ(pool.available(), 2u);
  more.resize(2);
  ASSERT_TRUE(pool.allocate(more).ok());
  EXPECT_EQ(pool.allocate().status().code(), Code::kPoolExhausted);
  ASSERT_TRUE(pool.release(more[1]).ok());
  EXPECT_EQ(take(pool), more[1]);
}

TEST(BlockPool, MisuseIsRefused) {
  BlockPool pool(64, 4, 5, engine::system_memory());
  BlockPool other(64, 4, 5, engine::system_memory());
  Block* block = take(pool);
  Block* foreign = take(other);
  const auto refused = [&](Status status, const char* why) {
    EXPECT_EQ(status.code(), Code::kState);
    EXPECT_STREQ(status.message(), why);
    EXPECT_EQ(pool.available(), 4u);
    EXPECT_EQ(other.available(), 4u);
  };
  refused(pool.release(nullptr), "the block is not one of this pool's");
  refused(pool.release(foreign), "the block is not one of this pool's");
  refused(other.release(block), "the block is not one of this pool's");
  refused(pool.retain(foreign), "the block is not one of this pool's");
  // Within the pool's table, but no block.
  auto* inside = reinterpret_cast<Block*>(reinterpret_cast<std::byte*>(block) + 8);
  refused(pool.release(inside), "the block is not one of this pool's");
  EXPECT_FALSE(pool.holds(foreign));
  EXPECT_FALSE(pool.holds(nullptr));
  EXPECT_TRUE(pool.holds(block));
  ASSERT_TRUE(pool.release(block).ok());
  EXPECT_EQ(pool.available(), 5u);
  const Status twice = pool.release(block);
  EXPECT_EQ(twice.code(), Code::kState);
  EXPECT_STREQ(twice.message(), "the block is free already");
  EXPECT_EQ(pool.retain(block).code(), Code::kState);
  EXPECT_FALSE(pool.holds(block));
  EXPECT_EQ(pool.available(), 5u);
  EXPECT_NE(take(pool), take(pool));  // it is not on the list twice
}

TEST(BlockPool, TheLastHolderFrees) {
  BlockPool pool(64, 4, 2, engine::system_memory());
  Block* block = take(pool);
  ASSERT_TRUE(pool.retain(block).ok());
  ASSERT_TRUE(pool.retain(block).ok());
  EXPECT_EQ(block->references(), 3);
  pool.set_used(*block, 3);
  ASSERT_TRUE(pool.release(block).ok());
  ASSERT_TRUE(pool.release(block).ok());
  EXPECT_EQ(pool.available(), 1u);
  EXPECT_EQ(block->used(), 3);
  ASSERT_TRUE(pool.release(block).ok());
  EXPECT_EQ(pool.available(), 2u);
  EXPECT_EQ(block->used(), 0);
}

TEST(BlockPool, FragmentationCountsUnwrittenPositions) {
  BlockPool pool(64, 4, 10, engine::system_memory());
  EXPECT_EQ(pool.fragmentation(), 0.0);
  Block* first = take(pool);
  EXPECT_EQ(pool.fragmentation(), 1.0);
  pool.set_used(*first, 4);
  EXPECT_EQ(pool.fragmentation(), 0.0);
  Block* second = take(pool);
  pool.set_used(*second, 1);
  EXPECT_EQ(pool.fragmentation(), 1 - 5.0 / 8);
  pool.raise_used(*second, 3);
  pool.raise_used(*second, 2);
  EXPECT_EQ(second->used(), 3);
  EXPECT_EQ(pool.fragmentation(), 1 - 7.0 / 8);
  ASSERT_TRUE(pool.release(first).ok());
  EXPECT_EQ(pool.fragmentation(), 1 - 3.0 / 4);
  ASSERT_TRUE(pool.release(second).ok());
  EXPECT_EQ(pool.fragmentation(), 0.0);
}

TEST(BlockPool, MemoryComesAsBlocksAreTaken) {
  test::CountingAllocator allocator;
  {
    BlockPool pool(600 << 10, 16, 1000, allocator);  // one block a segment
    EXPECT_EQ(allocator.live_bytes, 0u);
    Block* block = take(pool);
    EXPECT_EQ(allocator.live_bytes, size_t{600} << 10);
    ASSERT_TRUE(pool.release(block).ok());
    EXPECT_EQ(take(pool), block);
    take(pool);
    EXPECT_EQ(allocator.live_bytes, size_t{1200} << 10);
    EXPECT_EQ(pool.resident_bytes(), allocator.live_bytes);
    EXPECT_EQ(pool.set_memory(engine::system_memory()).code(), Code::kState);
  }
  EXPECT_EQ(allocator.live_bytes, 0u);
  BlockPool small(100, 1, 7, allocator);  // a segment is never larger than the pool
  ASSERT_TRUE(small.set_memory(allocator).ok());
  take(small);
  EXPECT_EQ(allocator.live_bytes, 700u);
}

TEST(BlockPool, OutOfMemoryTakesNothing) {
  test::CountingAllocator allocator;
  BlockPool pool(1 << 20, 16, 4, allocator);
  std::vector<Block*> blocks(3);
  for (size_t fail = 0; fail < 3; ++fail) {
    allocator.fail_at = allocator.calls + (fail == 0 ? 0 : 1);  // at once, or after one segment
    EXPECT_EQ(pool.allocate(blocks).code(), Code::kOutOfMemory);
    EXPECT_EQ(pool.available(), 4u);
  }
  allocator.fail_at = ~size_t{0};
  ASSERT_TRUE(pool.allocate(blocks).ok());
  EXPECT_EQ(pool.available(), 1u);
  EXPECT_EQ(pool.resident_bytes(), allocator.live_bytes);
}

TEST(BlockPool, FreedBlocksArePoisonedInDebugBuilds) {
  BlockPool pool(64, 4, 2, engine::system_memory());
  Block* block = take(pool);
  std::memset(host_bytes(*block), 7, 64);
  ASSERT_TRUE(pool.release(block).ok());
  ASSERT_EQ(take(pool), block);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(std::to_integer<int>(host_bytes(*block)[i]), BlockPool::kPoisons ? 0xFF : 7);
  }
}

TEST(BlockPool, CountersAreExactUnderSixteenThreads) {
  constexpr size_t kBlocks = 100;
  constexpr int kThreads = 16;
  BlockPool pool(1 << 16, 8, kBlocks, engine::system_memory());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&pool, &wrong, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::vector<Block*> held;
      for (int step = 0; step < 3000; ++step) {
        if (held.size() < 10 && random() % 2 == 0) {
          auto block = pool.allocate();
          if (!block.ok()) {
            if (block.status().code() != Code::kPoolExhausted) ++wrong;
            continue;
          }
          if ((*block)->used() != 0 || (*block)->references() != 1) ++wrong;
          std::memset(host_bytes(**block), t, 64);
          held.push_back(*block);
        } else if (!held.empty()) {
          const size_t i = random() % held.size();
          for (int byte = 0; byte < 64; ++byte) {  // nobody else writes what a thread holds
            if (std::to_integer<int>(host_bytes(*held[i])[byte]) != t) ++wrong;
          }
          pool.set_used(*held[i], static_cast<int32_t>(random() % 9));
          if (random() % 3 == 0 && pool.retain(held[i]).ok()) {
            if (!pool.release(held[i]).ok()) ++wrong;
          }
          if (random() % 2 == 0) {
            if (!pool.release(held[i]).ok()) ++wrong;
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
          }
        }
      }
      for (Block* block : held) {
        if (!pool.release(block).ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool.available(), kBlocks);
  EXPECT_EQ(pool.fragmentation(), 0.0);
  Block* block = take(pool);
  pool.set_used(*block, 8);
  EXPECT_EQ(pool.fragmentation(), 0.0);  // the sum of written positions came back to nothing
  std::vector<Block*> rest(kBlocks - 1);
  EXPECT_TRUE(pool.allocate(rest).ok());
}

}  // namespace
}  // namespace gen::cache

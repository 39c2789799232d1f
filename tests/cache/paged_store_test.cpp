// SPDX-License-Identifier: Apache-2.0
// Proves paged tensors: published layouts, copy on write against a checksum of what others hold,
// blocks that come and go with the positions, injection, exhaustion, fragmentation, and random
// forks and cuts of many sequences over one small pool against plain lists.
#include "cache/tensor/paged_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/counting_allocator.h"
#include "tensor/half.h"
#include "support/host_view.h"

namespace gen::cache {
namespace {

std::shared_ptr<TensorPool> make_pool(const BlockShape& shape, int32_t mb = 1) {
  auto pool = TensorPool::create(shape, mb, system_allocator());
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

std::unique_ptr<PagedStore> make_store(const std::shared_ptr<TensorPool>& pool, int32_t layers) {
  auto store = PagedStore::create(pool, layers);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return std::move(store).value();
}

std::unique_ptr<PagedStore> fork(const PagedStore& store) {
  auto copy = store.clone();
  EXPECT_TRUE(copy.ok());
  return std::unique_ptr<PagedStore>(static_cast<PagedStore*>(std::move(copy).value().release()));
}

std::vector<float> count_from(float first, size_t n) {
  std::vector<float> x(n);
  std::iota(x.begin(), x.end(), first);
  return x;
}

std::vector<float> keys(const TensorProvider& store, int32_t layer) {
  const TensorShape shape = store.shape(layer);
  std::vector<float> k(static_cast<size_t>(shape.batch * shape.seq * shape.dim));
  EXPECT_TRUE(store.get(layer, k.data(), nullptr).ok());
  return k;
}

TEST(TensorPool, HasThePublishedNumberOfBlocks) {
  EXPECT_EQ(make_pool({2, 16, 64, DType::kF32})->blocks().capacity(), 64u);
  EXPECT_EQ(make_pool({2, 16, 64, DType::kF32})->blocks().block_bytes(), 16384u);
  EXPECT_EQ(make_pool({2, 16, 64, DType::kF16})->blocks().capacity(), 128u);
}

TEST(TensorPool, ChecksItsCreation) {
  const auto message = [](const BlockShape& shape, int32_t mb) {
    const auto pool = TensorPool::create(shape, mb, system_allocator());
    EXPECT_EQ(pool.status().code(), Code::kInvalidArgument);
    return std::string(pool.status().message());
  };
  EXPECT_EQ(
      message({0, 16, 64}, 1),
      "a pool of 0 layers, blocks of 16 positions, rows of 64 elements and 1 MiB: each must be "
      "at least 1");
  message({1, 0, 64}, 1);
  message({1, 16, -1}, 1);
  message({1, 16, 64}, 0);
  EXPECT_EQ(message({1, 16, 64, DType::kQ8_0}, 1), "a pool cannot hold elements of type Q8_0");
  EXPECT_EQ(message({100, 100, 100}, 1),
            "a block takes 8000000 bytes, more than the 1 MiB of the pool");
  EXPECT_NE(message({INT32_MAX, INT32_MAX, INT32_MAX}, INT32_MAX).find("overflows"),
            std::string::npos);
  EXPECT_STREQ(PagedStore::create(make_pool({2, 4, 6}), 3).status().message(),
               "3 layers are outside [1, 2], the pool's");
  EXPECT_FALSE(PagedStore::create(make_pool({2, 4, 6}), 0).ok());
}

TEST(PagedStore, KeepsThePublishedLayout) {
  auto pool = make_pool({1, 4, 6});
  auto store = make_store(pool, 1);
  const auto first = count_from(1, 12);
  const auto second = count_from(13, 6);
  ASSERT_TRUE(store->update(0, first.data(), first.data(), {2, 2, 3}).ok());
  ASSERT_TRUE(store->update(0, second.data(), second.data(), {2, 1, 3}).ok());
  EXPECT_EQ(keys(*store, 0),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 13, 14, 15, 7, 8, 9, 10, 11, 12, 16, 17, 18}));
  // In the block a position's row holds its channels one after the other.
  const auto* k = reinterpret_cast<const float*>(host_bytes(*store->block_table()[0]));
  EXPECT_EQ(std::vector<float>(k, k + 18),
            (std::vector<float>{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  const auto* v = reinterpret_cast<const float*>(host_bytes(*store->block_table()[0]) + 96);
  EXPECT_EQ(v[3], 7);
}

TEST(PagedStore, BlocksComeAndGoWithThePositions) {
  auto pool = make_pool({2, 4, 6});
  auto store = make_store(pool, 2);
  const size_t all = pool->blocks().capacity();
  const auto x = count_from(0, 36);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 6, 6}).ok());
  EXPECT_EQ(pool->blocks().available(), all - 2);
  ASSERT_TRUE(store->update(1, x.data(), x.data(), {1, 6, 6}).ok());  // the same blocks
  EXPECT_EQ(pool->blocks().available(), all - 2);
  EXPECT_EQ(store->block_table()[0]->used(), 4);
  EXPECT_EQ(store->block_table()[1]->used(), 2);
  EXPECT_EQ(pool->blocks().fragmentation(), 1 - 6.0 / 8);
  ASSERT_TRUE(store->truncate(9).ok());
  EXPECT_EQ(store->seq_len(), 6);
  ASSERT_TRUE(store->truncate(3).ok());
  EXPECT_EQ(pool->blocks().available(), all - 1);
  EXPECT_EQ(store->block_table()[0]->used(), 3);
  EXPECT_EQ(keys(*store, 1), count_from(0, 18));
  EXPECT_EQ(store->memory().resident, pool->blocks().block_bytes());
  EXPECT_EQ(store->memory().payload, 2u * 2 * 3 * 6 * sizeof(float));
  ASSERT_TRUE(store->reset().ok());
  ASSERT_TRUE(store->reset().ok());
  EXPECT_EQ(pool->blocks().available(), all);
  // Empty, it takes another layout of the same rows.
  ASSERT_TRUE(store->update(1, x.data(), x.data(), {3, 1, 2}).ok());
  store.reset();
  EXPECT_EQ(pool->blocks().available(), all);
}

TEST(PagedStore, ChecksInOrderAndChangesNothing) {
  auto pool = make_pool({2, 4, 6});
  auto store = make_store(pool, 2);
  const auto x = count_from(0, 64);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 3, 3}).ok());
  const auto update = [&](int32_t layer, const TensorShape& shape) {
    return store->update(layer, x.data(), x.data(), shape);
  };
  EXPECT_EQ(update(2, {0, -1, 0}).code(), Code::kOutOfRange);
  EXPECT_STREQ(update(0, {0, 1, 3}).message(), "shape [0, 1, 3] is not [batch, seq, dim]");
  EXPECT_STREQ(update(1, {2, 1, 4}).message(), "batch 2, dim 4 do not make a row of the pool's 6");
  // The same product is not the same layout; layers share it.
  EXPECT_STREQ(update(1, {3, 1, 2}).message(),
               "layer 0 holds batch 2, dim 3; the update has batch 3, dim 2");
  EXPECT_EQ(update(0, {6, 1, 1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(update(0, {2, INT32_MAX, 3}).code(), Code::kCacheFull);
  EXPECT_EQ(update(0, {2, INT32_MAX - 3, 3}).code(), Code::kPoolExhausted);
  ASSERT_TRUE(store->update(1, nullptr, nullptr, {2, 0, 3}).ok());
  EXPECT_EQ(store->layer_seq_len(0), 3);
  EXPECT_EQ(store->layer_seq_len(1), 0);
  EXPECT_EQ(store->block_table().size(), 1u);
}

TEST(PagedStore, ForksShareBlocksUntilOneWrites) {
  auto pool = make_pool({2, 4, 6});
  auto parent = make_store(pool, 2);
  const auto x = count_from(0, 60);
  for (int32_t layer : {0, 1}) {
    ASSERT_TRUE(parent->update(layer, x.data(), x.data(), {2, 5, 6 / 2}).ok());
  }
  const size_t before = pool->blocks().available();
  auto child = fork(*parent);
  EXPECT_EQ(pool->blocks().available(), before);
  EXPECT_EQ(child->block_table()[1], parent->block_table()[1]);
  EXPECT_EQ(child->block_table()[1]->references(), 2);
  const std::vector<float> held = keys(*parent, 1);
  const auto y = count_from(900, 12);
  ASSERT_TRUE(child->update(0, y.data(), y.data(), {2, 2, 3}).ok());
  // Only the block that is written was copied, once for all layers.
  EXPECT_EQ(pool->blocks().available(), before - 1);
  EXPECT_EQ(child->block_table()[0], parent->block_table()[0]);
  EXPECT_NE(child->block_table()[1], parent->block_table()[1]);
  EXPECT_EQ(child->block_table()[1]->used(), 3);
  EXPECT_EQ(parent->block_table()[1]->used(), 1);
  ASSERT_TRUE(child->update(1, y.data(), y.data(), {2, 2, 3}).ok());
  EXPECT_EQ(pool->blocks().available(), before - 1);
  EXPECT_EQ(keys(*parent, 0), held);
  EXPECT_EQ(keys(*parent, 1), held);
  // A cut into a shared block says nothing of the other's positions.
  auto third = fork(*parent);
  ASSERT_TRUE(third->truncate(2).ok());
  EXPECT_EQ(parent->block_table()[0]->used(), 4);
  ASSERT_TRUE(third->update(0, y.data(), y.data(), {2, 1, 3}).ok());
  EXPECT_EQ(third->block_table()[0]->used(), 3);
  EXPECT_EQ(keys(*parent, 0), held);
  parent.reset();
  EXPECT_EQ(child->block_table()[0]->references(), 1);
  EXPECT_EQ(keys(*child, 0)[0], 0);
  child.reset();
  third.reset();
  EXPECT_EQ(pool->blocks().available(), pool->blocks().capacity());
}

TEST(PagedStore, AnExhaustedPoolLeavesTheSequence) {
  auto pool = make_pool({1, 4, 16384});  // 512 KiB a block
  auto store = make_store(pool, 1);
  ASSERT_EQ(pool->blocks().capacity(), 2u);
  const std::vector<float> x(10 * 16384, 1.5F);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 6, 16384}).ok());
  EXPECT_EQ(store->update(0, x.data(), x.data(), {1, 3, 16384}).code(), Code::kPoolExhausted);
  EXPECT_EQ(store->layer_seq_len(0), 6);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 2, 16384}).ok());
  auto copy = fork(*store);
  ASSERT_TRUE(copy->truncate(7).ok());
  // Writing would need a copy of the shared block.
  EXPECT_EQ(copy->update(0, x.data(), x.data(), {1, 1, 16384}).code(), Code::kPoolExhausted);
  EXPECT_EQ(copy->layer_seq_len(0), 7);
  EXPECT_EQ(keys(*copy, 0), std::vector<float>(7 * 16384, 1.5F));
  store.reset();
  ASSERT_TRUE(copy->update(0, x.data(), x.data(), {1, 1, 16384}).ok());
}

TEST(PagedStore, InjectedBlocksAreReadAtOnce) {
  auto pool = make_pool({2, 4, 6});
  auto parent = make_store(pool, 2);
  const auto x = count_from(0, 60);
  for (int32_t layer : {0, 1}) {
    ASSERT_TRUE(parent->update(layer, x.data(), x.data(), {2, 7, 3}).ok());
  }
  std::vector<Block*> blocks(parent->block_table().begin(), parent->block_table().end());
  for (Block* block : blocks) ASSERT_TRUE(pool->blocks().retain(block).ok());
  auto store = make_store(pool, 2);
  EXPECT_STREQ(store->inject(blocks, 9, 2, 3).message(), "2 blocks of 4 positions do not hold 9");
  EXPECT_EQ(store->inject(blocks, 0, 2, 3).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->inject(blocks, 7, 2, 4).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->inject(blocks, 7, -2, -3).code(), Code::kInvalidArgument);
  EXPECT_EQ(parent->inject(blocks, 7, 2, 3).code(), Code::kState);
  Block* const twice[] = {blocks[0], blocks[0]};
  EXPECT_STREQ(store->inject(twice, 7, 2, 3).message(), "a block is given twice");
  auto other = make_pool({2, 4, 6});
  auto foreign = other->blocks().allocate();
  Block* const mixed[] = {blocks[0], *foreign};
  EXPECT_STREQ(store->inject(mixed, 7, 2, 3).message(),
               "block 1 is not an allocated one of the cache's pool");
  EXPECT_EQ(store->layer_seq_len(0), 0);
  ASSERT_TRUE(store->inject(blocks, 6, 2, 3).ok());
  EXPECT_EQ(store->seq_len(), 6);
  EXPECT_EQ(store->layer_seq_len(1), 6);
  std::vector<float> want;
  for (size_t channel : {size_t{0}, size_t{1}}) {
    want.insert(want.end(), x.begin() + static_cast<std::ptrdiff_t>(channel * 21),
                x.begin() + static_cast<std::ptrdiff_t>(channel * 21 + 18));
  }
  EXPECT_EQ(keys(*store, 1), want);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 1, 3}).ok());  // copies the second block
  EXPECT_EQ(keys(*parent, 0)[18], 18);
  parent.reset();
  store.reset();
  EXPECT_EQ(pool->blocks().available(), pool->blocks().capacity());
}

TEST(PagedStore, HalvesTakeHalfTheRoom) {
  auto pool = make_pool({1, 4, 6, DType::kF16});
  auto store = make_store(pool, 1);
  EXPECT_TRUE(store->traits().lossy);
  std::vector<float> x = {0.1F, -2.0F, 65520.0F, 1e-8F, 3.0F, 0.3F};
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 1, 6}).ok());
  const std::vector<float> got = keys(*store, 0);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got[i], f16_to_f32(f32_to_f16(x[i])));
}

TEST(PagedStore, WastesLittle) {
  // 64 sequences of 50 to 2000 positions in blocks of 16: published systems without paging waste 60
  // to 80 percent; a block's unwritten end must stay below 4.
  auto pool = make_pool({1, 16, 4}, 64);
  std::mt19937 random(64);
  std::vector<std::unique_ptr<PagedStore>> stores;
  const std::vector<float> x(2000 * 4);
  for (int i = 0; i < 64; ++i) {
    stores.push_back(make_store(pool, 1));
    const auto length = static_cast<int32_t>(50 + random() % 1951);
    ASSERT_TRUE(stores.back()->update(0, x.data(), x.data(), {1, length, 4}).ok());
  }
  EXPECT_LE(pool->blocks().fragmentation(), 0.04);
  EXPECT_GT(pool->blocks().fragmentation(), 0.0);
}

/// A sequence as a list of the numbers that its positions were written with, per layer.
struct Sequence {
  std::unique_ptr<PagedStore> store;
  std::vector<std::vector<float>> layers;
};

TEST(PagedStore, RandomForksAndCutsAgreeWithLists) {
  constexpr int32_t kLayers = 3;
  auto pool = make_pool({kLayers, 4, 2048});  // 196608 bytes a block: 5 of them
  ASSERT_EQ(pool->blocks().capacity(), 5u);
  std::mt19937 random(7);
  std::vector<Sequence> sequences;
  float next = 1;
  int refused = 0;
  for (int step = 0; step < 4000; ++step) {
    const auto pick = random() % 8;
    if (sequences.empty() || (pick == 0 && sequences.size() < 6)) {
      sequences.push_back({make_store(pool, kLayers), std::vector<std::vector<float>>(kLayers)});
      continue;
    }
    Sequence& sequence = sequences[random() % sequences.size()];
    if (pick == 1 && sequences.size() < 6) {
      Sequence copy{fork(*sequence.store), sequence.layers};
      sequences.push_back(std::move(copy));
    } else if (pick == 2) {
      std::swap(sequence, sequences.back());
      sequences.pop_back();
    } else if (pick == 3) {
      const auto n = static_cast<int32_t>(random() % 10);
      ASSERT_TRUE(sequence.store->truncate(n).ok());
      for (auto& layer : sequence.layers) {
        layer.resize(std::min(layer.size(), static_cast<size_t>(n)));
      }
    } else {
      const auto layer = static_cast<int32_t>(random() % kLayers);
      const auto seq = static_cast<int32_t>(random() % 6);
      std::vector<float> x;
      for (int32_t p = 0; p < seq; ++p) x.insert(x.end(), 2048, next + static_cast<float>(p));
      const Status status = sequence.store->update(layer, x.data(), x.data(), {1, seq, 2048});
      if (!status.ok()) {
        ASSERT_EQ(status.code(), Code::kPoolExhausted);
        ++refused;
      } else {
        for (int32_t p = 0; p < seq; ++p) {
          sequence.layers[static_cast<size_t>(layer)].push_back(next++);
        }
      }
    }
    size_t held = 0;
    std::vector<const Block*> blocks;
    for (const Sequence& each : sequences) {
      for (const Block* block : each.store->block_table()) blocks.push_back(block);
      if (step % 50 != 0) continue;
      for (int32_t layer = 0; layer < kLayers; ++layer) {
        const std::vector<float>& want = each.layers[static_cast<size_t>(layer)];
        const std::vector<float> got = keys(*each.store, layer);
        ASSERT_EQ(got.size(), want.size() * 2048);
        for (size_t p = 0; p < want.size(); ++p) {
          ASSERT_EQ(got[p * 2048], want[p]);
          ASSERT_EQ(got[p * 2048 + 2047], want[p]);
        }
      }
    }
    std::sort(blocks.begin(), blocks.end());
    held = static_cast<size_t>(std::unique(blocks.begin(), blocks.end()) - blocks.begin());
    ASSERT_EQ(pool->blocks().available(), 5 - held);
  }
  EXPECT_GT(refused, 100);
  sequences.clear();
  EXPECT_EQ(pool->blocks().available(), 5u);
}

TEST(PagedStore, SixteenThreadsShareOnePrefix) {
  constexpr int32_t kDim = 64;
  auto pool = make_pool({1, 4, kDim}, 4);
  auto prefix = make_store(pool, 1);
  const auto x = count_from(0, 10 * kDim);
  ASSERT_TRUE(prefix->update(0, x.data(), x.data(), {1, 10, kDim}).ok());
  std::vector<std::unique_ptr<PagedStore>> forks;
  for (int i = 0; i < 16; ++i) forks.push_back(fork(*prefix));
  prefix.reset();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < forks.size(); ++t) {
    threads.emplace_back([&, t] {
      PagedStore& own = *forks[t];
      for (int round = 0; round < 50; ++round) {
        const std::vector<float> y(7 * kDim, static_cast<float>(t));
        if (!own.update(0, y.data(), y.data(), {1, 7, kDim}).ok()) ++wrong;
        const std::vector<float> got = keys(own, 0);
        if (!std::equal(x.begin(), x.end(), got.begin())) ++wrong;
        if (!std::equal(y.begin(), y.end(), got.begin() + 10 * kDim)) ++wrong;
        if (!own.truncate(10).ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  forks.clear();
  EXPECT_EQ(pool->blocks().available(), pool->blocks().capacity());
  EXPECT_EQ(pool->blocks().fragmentation(), 0.0);
}

TEST(PagedStore, EveryFailingAllocationLeavesItAsItWas) {
  for (size_t fail = 0;; ++fail) {
    test::CountingAllocator allocator;
    auto pool = TensorPool::create({1, 4, 65536}, 16, allocator);  // 2 MiB a block
    ASSERT_TRUE(pool.ok());
    auto store = make_store(*pool, 1);
    const std::vector<float> x(9 * 65536, 2.0F);
    allocator.fail_at = fail;
    const Status status = store->update(0, x.data(), x.data(), {1, 9, 65536});
    if (status.ok()) {
      EXPECT_EQ(fail, 3u);
      break;
    }
    EXPECT_EQ(status.code(), Code::kOutOfMemory);
    EXPECT_EQ(store->layer_seq_len(0), 0);
    EXPECT_EQ(store->block_table().size(), 0u);
    EXPECT_EQ((*pool)->blocks().available(), 8u);
    EXPECT_EQ((*pool)->blocks().resident_bytes(), allocator.live_bytes);
    ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 9, 65536}).ok());
    store.reset();
    pool.value().reset();
    EXPECT_EQ(allocator.live_bytes, 0u);
  }
}

}  // namespace
}  // namespace gen::cache

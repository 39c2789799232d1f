// SPDX-License-Identifier: Apache-2.0
// Proves what a tiered store promises beyond tensor_conformance_test: the rules by which layers
// move, that memory goes with them, what each warm form may be off by, that prefetched copies are
// never old, and that threads see whole layers. Read next: tiered_store_files_test.cpp for folders
// and files, tiered_store_failures_test.cpp for calls that fail.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "cache/tiered_store_fixture.h"
#include "support/counting_allocator.h"
#include "support/sanitized.h"

namespace gen::cache {
namespace {

using test::CountingAllocator;

TEST(TieredStore, ChecksItsOptions) {
  FailingFiles files;
  TierOptions options = options_for(files);
  options.num_layers = 0;
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(),
            Code::kInvalidArgument);
  options = options_for(files);
  options.max_seq_len = 0;
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(),
            Code::kInvalidArgument);
  options = options_for(files);
  options.warm = "zip";
  const Status unknown = TieredStore::create(options, system_allocator()).status();
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_STREQ(unknown.message(),
               "unknown warm form \"zip\", known are fp32, fp16, fp8, q4, q3, mean");
  options = options_for(files, "/nowhere/at/all");
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(), Code::kIo);
  options = options_for(files);
  options.store_id = "../x";
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(files.open_files, 0);
}

TEST(TieredStore, LayersMoveByUse) {
  FailingFiles files;
  auto store = make(options_for(files));
  EXPECT_STREQ(store->traits().kind, "tiered");
  EXPECT_FALSE(store->traits().lossy);
  EXPECT_EQ(store->tier(0), Tier::kHot);
  EXPECT_EQ(store->tier(77), Tier::kHot);
  EXPECT_EQ(store->access_count(77), 0);
  ASSERT_TRUE(append(*store, 0, 3, 1).ok());
  EXPECT_EQ(store->access_count(0), 1);
  ASSERT_TRUE(append(*store, 1, 3, 3).ok());
  expect_layer(*store, 1, 3, 3, 3);
  expect_layer(*store, 1, 3, 3, 3);
  EXPECT_EQ(store->access_count(1), 3);
  ASSERT_TRUE(store->manage().ok());
  EXPECT_EQ(store->tier(0), Tier::kWarm);  // one use is below two
  EXPECT_EQ(store->tier(1), Tier::kHot);
  EXPECT_EQ(store->tier(2), Tier::kWarm);  // none, and empty
  EXPECT_EQ(store->access_count(1), 0);
  for (int i = 0; i < 5; ++i) expect_layer(*store, 0, 3, 1, 3);
  EXPECT_EQ(store->tier(0), Tier::kWarm);  // reading moves nothing
  ASSERT_TRUE(store->manage().ok());
  EXPECT_EQ(store->tier(0), Tier::kHot);
  EXPECT_EQ(store->tier(1), Tier::kWarm);
  EXPECT_EQ(store->tier(2), Tier::kCold);
  ASSERT_TRUE(store->demote(2).ok());  // at the end already
  ASSERT_TRUE(store->promote(0).ok());
  EXPECT_EQ(store->demote(kLayers).code(), Code::kOutOfRange);
  EXPECT_EQ(store->promote(-1).code(), Code::kOutOfRange);
  ASSERT_TRUE(append(*store, 2, 2, 9).ok());
  EXPECT_EQ(store->tier(2), Tier::kHot);
  expect_layer(*store, 2, 2, 9, 2);
}

TEST(TieredStore, MemoryGoesDownWithALayer) {
  FailingFiles files;
  CountingAllocator allocator;
  auto store = make(options_for(files), allocator);
  ASSERT_TRUE(append(*store, 0, 5, 1).ok());
  EXPECT_EQ(allocator.live_bytes, 2 * 1280U);  // [2, 32, 5] floats twice
  EXPECT_EQ(store->memory().resident, allocator.live_bytes);
  ASSERT_TRUE(store->demote(0).ok());
  EXPECT_EQ(allocator.live_bytes, 4 * 128U);  // four lanes of 25 floats to lines of 64
  EXPECT_EQ(store->memory().resident, allocator.live_bytes);
  ASSERT_TRUE(store->demote(0).ok());
  EXPECT_EQ(allocator.live_bytes, 0U);
  EXPECT_EQ(bytes_of(store->folder() + "/layer_0.bin").size(), 96U + 4 * 128U);
  ASSERT_TRUE(store->promote(0).ok());
  EXPECT_FALSE(std::filesystem::exists(store->folder() + "/layer_0.bin"));
  ASSERT_TRUE(store->promote(0).ok());
  expect_layer(*store, 0, 5, 1, 5);
}

TEST(TieredStore, WarmFormsAreOffByTheirFormula) {
  FailingFiles files;
  struct Row {
    const char* name;
    double (*bound)(double most, double x);
  };
  const Row rows[] = {
      {"fp32", [](double, double) { return 0.0; }},
      {"fp16", [](double, double x) { return std::max(x * 0x1p-11, 0x1p-25); }},
      {"fp8", [](double most, double x) { return std::max(x / 16, most / 448 / 1024) * 1.0001; }},
      {"q4", [](double most, double) { return most / 14 * 1.0001; }},
  };
  for (const Row& row : rows) {
    TierOptions options = options_for(files);
    options.warm = row.name;
    auto store = make(options);
    ASSERT_TRUE(append(*store, 1, 30, 5).ok());
    EXPECT_EQ(store->traits().lossy, std::string(row.name) != "fp32");
    EXPECT_FALSE(store->is_lossy(1));
    const std::vector<float> want = numbers(30, 5);
    double most = 0;
    for (const float x : want) most = std::max(most, std::fabs(static_cast<double>(x)));
    std::vector<float> first;
    for (int step = 0; step < 2; ++step) {  // warm, then cold: the same bytes
      ASSERT_TRUE(store->demote(1).ok());
      EXPECT_EQ(store->is_lossy(1), store->traits().lossy);
      std::vector<float> k(want.size());
      ASSERT_TRUE(store->get(1, k.data(), nullptr).ok());
      for (size_t i = 0; i < k.size(); ++i) {
        ASSERT_LE(std::fabs(static_cast<double>(k[i]) - static_cast<double>(want[i])),
                  row.bound(most, std::fabs(static_cast<double>(want[i]))))
            << row.name << " " << i;
      }
      if (step == 0) first = k;
      EXPECT_EQ(k, first);
    }
    ASSERT_TRUE(store->promote(1).ok());
    ASSERT_TRUE(store->promote(1).ok());
    std::vector<float> k(want.size());
    ASSERT_TRUE(store->get(1, k.data(), nullptr).ok());
    EXPECT_EQ(k, first);
    ASSERT_TRUE(store->truncate(0).ok());
    EXPECT_FALSE(store->is_lossy(1));
  }
}

TEST(TieredStore, MeansKeepTheCountAndAreMadeOnce) {
  FailingFiles files;
  TierOptions options = options_for(files);
  options.warm = "mean";
  options.chunk_size = 2;
  auto store = make(options);
  const float x[5] = {1, 3, 5, 9, 4};
  ASSERT_TRUE(store->update(0, x, x, {1, 5, 1}).ok());
  for (int round = 0; round < 2; ++round) {  // no mean of means
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(store->demote(0).ok());
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(store->promote(0).ok());
    ASSERT_EQ(store->layer_seq_len(0), 5);
    std::vector<float> k(5);
    ASSERT_TRUE(store->get(0, k.data(), nullptr).ok());
    EXPECT_EQ(k, (std::vector<float>{2, 2, 7, 7, 4}));
  }
  EXPECT_TRUE(store->is_lossy(0));
}

TEST(TieredStore, ElementsWithoutACodeStayWhereTheyAre) {
  FailingFiles files;
  TierOptions options = options_for(files);
  options.warm = "q4";
  auto store = make(options);
  const float x[2] = {1, std::numeric_limits<float>::infinity()};
  ASSERT_TRUE(store->update(0, x, x, {1, 2, 1}).ok());
  EXPECT_EQ(store->demote(0).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->tier(0), Tier::kHot);
  float got[2];
  ASSERT_TRUE(store->get(0, got, nullptr).ok());
  EXPECT_EQ(got[1], x[1]);
}

TEST(TieredStore, PrefetchedCopiesAreNeverOld) {
  FailingFiles files;
  auto store = make(options_for(files));
  TensorShape shape;
  std::vector<float> k(1000);
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(append(*store, layer, 6, 10 * static_cast<uint32_t>(layer)).ok());
    for (int i = 0; i < layer; ++i) ASSERT_TRUE(store->demote(layer).ok());
  }
  const int32_t all[] = {0, 1, 2, 1, -4, 99};
  EXPECT_TRUE(store->prefetch(all).ok());
  store->finish_prefetch();
  ASSERT_TRUE(store->take_prefetched(0, k.data(), k.size(), nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);  // hot layers need none
  ASSERT_TRUE(store->take_prefetched(1, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 6);  // asking leaves it
  EXPECT_EQ(store->take_prefetched(1, k.data(), 59, nullptr, 0, &shape).code(), Code::kOutOfRange);
  ASSERT_TRUE(store->take_prefetched(1, k.data(), 60, nullptr, 0, &shape).ok());
  EXPECT_TRUE(std::equal(k.begin(), k.begin() + 60, numbers(6, 10).begin()));
  ASSERT_TRUE(store->take_prefetched(1, k.data(), 60, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);  // taken
  ASSERT_TRUE(store->take_prefetched(-1, nullptr, 0, nullptr, 0, &shape).ok());

  // A read takes the copy instead of the file.
  const size_t before = files.calls;
  expect_layer(*store, 2, 6, 20, 6);
  EXPECT_EQ(files.calls, before);
  expect_layer(*store, 2, 6, 20, 6);
  EXPECT_GT(files.calls, before);

  EXPECT_TRUE(store->prefetch(all).ok());
  store->finish_prefetch();
  ASSERT_TRUE(store->truncate(2).ok());
  ASSERT_TRUE(store->take_prefetched(2, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);
  expect_layer(*store, 2, 6, 20, 2);
  EXPECT_TRUE(store->prefetch(all).ok());
  store->finish_prefetch();
  ASSERT_TRUE(append(*store, 1, 1, 90).ok());
  ASSERT_TRUE(store->take_prefetched(1, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);
  ASSERT_TRUE(store->reset().ok());
  ASSERT_TRUE(store->take_prefetched(2, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);
}

TEST(TieredStore, ManyThreadsSeeWholeLayers) {
  // Each layer belongs to a writer, whose rows all hold one number; readers must never see two.
  FailingFiles files;
  auto store = make(options_for(files));
  const int steps = test::kSanitized ? 500 : 5000;
  std::atomic<int> reading = 3;
  std::atomic<int> bad = 0;
  std::vector<std::thread> threads;
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    threads.emplace_back([&, layer] {
      const std::vector<float> x(static_cast<size_t>(kBatch * kDim), static_cast<float>(layer));
      for (int32_t i = 0; reading > 0; ++i) {
        if (store->layer_seq_len(layer) == kMost) bad += !store->truncate(i % kMost).ok();
        const Status status = store->update(layer, x.data(), x.data(), {kBatch, 1, kDim});
        bad += !status.ok();
        std::this_thread::yield();
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::vector<float> k(static_cast<size_t>(kBatch * kMost * kDim));
      for (int i = 0; i < steps; ++i) {
        const auto layer = static_cast<int32_t>(random() % kLayers);
        const int32_t all[] = {0, 1, 2};
        std::fill(k.begin(), k.end(), static_cast<float>(layer));
        TensorShape shape;
        switch (random() % 8) {
          case 0:
            bad += !store->demote(layer).ok();
            break;
          case 1:
            bad += !store->promote(layer).ok();
            break;
          case 2:
            bad += !store->manage().ok();
            break;
          case 3:
            EXPECT_TRUE(store->prefetch(all).ok());
            break;
          case 4:
            bad += !store->take_prefetched(layer, k.data(), k.size(), nullptr, 0, &shape).ok();
            break;
          case 5:
            bad += store->memory().metadata == 0;
            break;
          case 6:
            bad += store->seq_len() > kMost || store->shape(layer).seq > kMost;
            break;
          default:
            bad += !store->get(layer, k.data(), nullptr).ok();
        }
        for (const float x : k) bad += x != static_cast<float>(layer);
      }
      --reading;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  // Closing may come at any time.
  std::thread reader([&] {
    std::vector<float> k(static_cast<size_t>(kBatch * kMost * kDim));
    for (;;) {
      if (store->get(0, k.data(), nullptr).code() == Code::kState) return;
    }
  });
  EXPECT_TRUE(store->close().ok());
  reader.join();
  store.reset();
  EXPECT_EQ(files.open_files, 0);
}

}  // namespace
}  // namespace gen::cache

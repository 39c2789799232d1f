// SPDX-License-Identifier: Apache-2.0
// Proves chunk-wise means: the published examples, lanes that never mix, cuts by the stated rule,
// views that survive growth, and random operations against lists of positions in double precision.
#include "cache/tensor/compressed_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "support/counting_allocator.h"

namespace gen::cache {
namespace {

std::unique_ptr<CompressedStore> make(int32_t layers, int32_t chunk,
                                      Allocator& allocator = system_allocator()) {
  auto made = CompressedStore::create(layers, chunk, allocator);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

std::vector<float> keys(const TensorProvider& store, int32_t layer) {
  const TensorShape shape = store.shape(layer);
  std::vector<float> k(static_cast<size_t>(shape.batch * shape.seq * shape.dim));
  EXPECT_TRUE(store.get(layer, k.data(), nullptr).ok());
  return k;
}

TEST(CompressedStore, HasThePublishedMeans) {
  auto store = make(1, 2);
  const std::vector<float> first = {1, 2, 5, 8};
  const std::vector<float> third = {10, 20};
  ASSERT_TRUE(store->update(0, first.data(), first.data(), {1, 2, 2}).ok());
  EXPECT_EQ(keys(*store, 0), (std::vector<float>{3, 5}));
  ASSERT_TRUE(store->update(0, third.data(), third.data(), {1, 1, 2}).ok());
  EXPECT_EQ(keys(*store, 0), (std::vector<float>{3, 5, 10, 20}));
  EXPECT_EQ(store->seq_len(), 3);
  EXPECT_EQ(store->kv_len(0), 2);
  auto long_one = make(1, 64);
  const std::vector<float> x(128 * 4, 1.0F);
  ASSERT_TRUE(long_one->update(0, x.data(), x.data(), {1, 128, 4}).ok());
  EXPECT_EQ(long_one->shape(0).seq, 2);
  EXPECT_EQ(long_one->layer_seq_len(0), 128);
}

TEST(CompressedStore, CutsByTheStatedRule) {
  auto store = make(1, 2);
  const std::vector<float> x = {1, 2, 3, 4, 5};
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 5, 1}).ok());
  ASSERT_TRUE(store->truncate(3).ok());  // into the second mean
  EXPECT_EQ(store->seq_len(), 2);
  EXPECT_EQ(keys(*store, 0), (std::vector<float>{1.5F}));
  auto other = make(1, 4);
  ASSERT_TRUE(other->update(0, x.data(), x.data(), {1, 5, 1}).ok());
  ASSERT_TRUE(other->update(0, x.data(), x.data(), {1, 2, 1}).ok());
  ASSERT_TRUE(other->truncate(8).ok());  // nothing to cut
  EXPECT_EQ(other->seq_len(), 7);
  ASSERT_TRUE(other->truncate(6).ok());  // within what is kept as written
  EXPECT_EQ(other->seq_len(), 6);
  EXPECT_EQ(keys(*other, 0), (std::vector<float>{2.5F, 5, 1}));
  ASSERT_TRUE(other->truncate(-1).ok());
  EXPECT_EQ(other->seq_len(), 0);
  EXPECT_EQ(other->shape(0).batch, 0);
}

TEST(CompressedStore, LayersOfDifferentLengthsAgreeOnTheShortest) {
  auto store = make(2, 4);
  const std::vector<float> x(9, 1.0F);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 7, 1}).ok());
  ASSERT_TRUE(store->update(1, x.data(), x.data(), {1, 7, 1}).ok());
  ASSERT_TRUE(store->update(1, x.data(), x.data(), {1, 2, 1}).ok());
  EXPECT_EQ(store->seq_len(), 7);
  ASSERT_TRUE(store->truncate(6).ok());
  EXPECT_EQ(store->layer_seq_len(0), 6);
  EXPECT_EQ(store->layer_seq_len(1), 4);
  EXPECT_EQ(store->seq_len(), 4);
}

TEST(CompressedStore, EntriesTellTheirPositions) {
  auto store = make(1, 3);
  const std::vector<float> x(8, 1.0F);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 8, 1}).ok());
  int32_t first = 0;
  EXPECT_EQ(store->entry_positions(0, 1, &first), 3);
  EXPECT_EQ(first, 3);
  EXPECT_EQ(store->entry_positions(0, 3, &first), 1);
  EXPECT_EQ(first, 7);
  EXPECT_EQ(store->entry_positions(0, 4, &first), 0);
  EXPECT_EQ(store->entry_positions(0, -1, &first), 0);
  EXPECT_EQ(store->entry_positions(1, 0, &first), 0);
}

TEST(CompressedStore, ViewsStayReadableWhileItGrows) {
  test::CountingAllocator allocator;
  auto store = make(1, 2, allocator);
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 3, 1}).ok());
  const TensorSpan span = store->view(0);
  EXPECT_EQ(span.shape.seq, 2);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 3, 1}).ok());
    ASSERT_EQ(store->memory().resident, allocator.live_bytes);
  }
  const auto* lane = reinterpret_cast<const float*>(span.k + span.batch_stride);
  EXPECT_EQ(lane[0], 4.5F);
  EXPECT_NE(store->view(0).k, span.k);
  // 451 means a lane: the room doubles from 16 to 512, and all that was outgrown is less than that.
  EXPECT_LT(allocator.live_bytes, 2u * 512 * 2 * 2 * sizeof(float));
  EXPECT_LT(allocator.calls, 10u);
  // A new shape gives outgrown memory back, or goes into what there is.
  ASSERT_TRUE(store->reset().ok());
  const size_t calls = allocator.calls;
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 2, 3}).ok());
  EXPECT_EQ(allocator.calls, calls);
  EXPECT_EQ(keys(*store, 0), (std::vector<float>{2.5F, 3.5F, 4.5F}));
}

TEST(CompressedStore, ChecksAndChangesNothing) {
  EXPECT_STREQ(CompressedStore::create(1, 0, system_allocator()).status().message(),
               "chunk_size 0 is below 1");
  EXPECT_EQ(CompressedStore::create(-1, 1, system_allocator()).status().code(),
            Code::kInvalidArgument);
  auto store = make(1, 2);
  const std::vector<float> x(12, 1.0F);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 3, 2}).ok());
  EXPECT_EQ(store->update(1, x.data(), x.data(), {2, 1, 2}).code(), Code::kOutOfRange);
  EXPECT_EQ(store->update(0, x.data(), x.data(), {2, 1, 3}).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->update(0, x.data(), x.data(), {2, INT32_MAX, 2}).code(), Code::kCacheFull);
  ASSERT_TRUE(store->update(0, nullptr, nullptr, {2, 0, 2}).ok());
  EXPECT_EQ(store->seq_len(), 3);
  auto empty = make(1, INT32_MAX);
  EXPECT_EQ(empty->update(0, nullptr, nullptr, {INT32_MAX, INT32_MAX, INT32_MAX}).code(),
            Code::kOutOfMemory);
}

/// A layer as lists: closed means and open positions, each a row of every lane.
struct Model {
  size_t chunk = 1;
  std::vector<std::vector<double>> means;
  std::vector<std::vector<double>> open;

  void append(const std::vector<double>& row) {
    open.push_back(row);
    if (open.size() < chunk) return;
    std::vector<double> mean(row.size(), 0);
    for (const auto& each : open) {
      for (size_t i = 0; i < row.size(); ++i) mean[i] += each[i] / static_cast<double>(chunk);
    }
    means.push_back(mean);
    open.clear();
  }
  [[nodiscard]] size_t length() const { return means.size() * chunk + open.size(); }
  void truncate(size_t n) {
    if (n >= length()) return;
    if (n / chunk < means.size()) {
      means.resize(n / chunk);
      open.clear();
    } else {
      open.resize(n % chunk);
    }
  }
};

/// Ten thousand, or as many as GEN_TRIALS says.
uint64_t trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10000;
}

TEST(CompressedStore, RandomOperationsAgreeWithLists) {
  constexpr int32_t kBatch = 3;
  constexpr int32_t kDim = 4;
  std::mt19937 random(8);
  for (const size_t chunk : {size_t{1}, size_t{2}, size_t{5}, size_t{64}}) {
    test::CountingAllocator allocator;
    std::unique_ptr<TensorProvider> store = make(1, static_cast<int32_t>(chunk), allocator);
    Model model{chunk, {}, {}};
    for (uint64_t step = 0; step < trials() / 4; ++step) {
      const auto pick = random() % 16;
      if (pick < 10) {
        const auto seq = static_cast<int32_t>(random() % 20);
        if (model.length() > 1000) {
          ASSERT_TRUE(store->truncate(100).ok());
          model.truncate(100);
        }
        std::vector<float> x(static_cast<size_t>(kBatch * seq * kDim));
        for (float& value : x) value = static_cast<float>(random() % 4096) / 256 - 8;
        ASSERT_TRUE(store->update(0, x.data(), x.data(), {kBatch, seq, kDim}).ok());
        for (int32_t p = 0; p < seq; ++p) {
          std::vector<double> row;
          for (int32_t i = 0; i < kBatch * kDim; ++i) {
            row.push_back(static_cast<double>(
                x[static_cast<size_t>((i / kDim * seq + p) * kDim + i % kDim)]));
          }
          model.append(row);
        }
      } else if (pick < 13) {
        const size_t n = random() % (model.length() + 3);
        ASSERT_TRUE(store->truncate(static_cast<int32_t>(n)).ok());
        model.truncate(n);
      } else if (pick == 14) {
        const auto contents = [&store](StateWriter& to) { return store->save(to); };
        std::vector<std::byte> state(state_size(contents).value());
        ASSERT_TRUE(save_state(StateKind::kTensors, contents, state).ok());
        std::unique_ptr<TensorProvider> other = make(1, static_cast<int32_t>(chunk), allocator);
        auto reader = StateReader::open(state);
        ASSERT_TRUE(reader.ok());
        ASSERT_TRUE(other->restore(*reader).ok());
        store = std::move(other);
      } else if (pick == 13) {
        auto copy = store->copies()->clone();
        ASSERT_TRUE(copy.ok());
        std::swap(store, *copy);
        ASSERT_TRUE((*copy)->reset().ok());
      } else {
        std::vector<std::vector<double>> want = model.means;
        want.insert(want.end(), model.open.begin(), model.open.end());
        const std::vector<float> got = keys(*store, 0);
        ASSERT_EQ(got.size(), want.size() * kBatch * kDim);
        for (size_t i = 0; i < got.size(); ++i) {
          const size_t lane = i / (want.size() * kDim);
          const size_t entry = i / kDim % want.size();
          const double value = want[entry][lane * kDim + i % kDim];
          // One rounding to float32 of a sum in double precision.
          ASSERT_NEAR(static_cast<double>(got[i]), value, std::fabs(value) * 0x1p-24 + 1e-12);
        }
      }
      ASSERT_EQ(store->layer_seq_len(0), static_cast<int32_t>(model.length()));
      ASSERT_EQ(store->kv_len(0), static_cast<int32_t>(model.means.size() + model.open.size()));
      ASSERT_EQ(store->memory().resident, allocator.live_bytes);
    }
    store.reset();
    EXPECT_EQ(allocator.live_blocks, 0u);
  }
}

TEST(CompressedStore, EveryFailingAllocationLeavesItAsItWas) {
  for (size_t fail = 0;; ++fail) {
    test::CountingAllocator allocator;
    auto store = make(1, 4, allocator);
    std::vector<float> x(30 * 2);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 30, 1}).ok());
    const std::vector<float> before = keys(*store, 0);
    allocator.fail_at = allocator.calls + fail;
    int failures = 0;
    auto copy = store->clone();
    failures += copy.ok() ? 0 : 1;
    for (int i = 0; i < 20; ++i) {
      const int32_t length = store->layer_seq_len(0);
      if (store->update(0, x.data(), x.data(), {2, 30, 1}).ok()) continue;
      ++failures;
      ASSERT_EQ(store->layer_seq_len(0), length);
      const std::vector<float> now = keys(*store, 0);
      ASSERT_TRUE(std::equal(before.begin(), before.begin() + 7, now.begin()));
    }
    ASSERT_EQ(store->memory().resident + (copy.ok() ? (*copy)->memory().resident : 0),
              allocator.live_bytes);
    if (failures == 0) break;
    ASSERT_EQ(failures, 1);
    ASSERT_LT(fail, 20u);
  }
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Proves the per-layer cache against a naive list of positions: appends, cursors, checks in their
// order, views, truncation, shapes that may change while a layer is empty, memory and clones.
#include "cache/tensor/tensor_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cache/guard_allocator.h"
#include "tensor/half.h"

namespace gen::cache {
namespace {

class TensorStoreTest : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<TensorStore> make(int32_t layers, int32_t max_seq_len) {
    auto made = TensorStore::create(GetParam(), layers, max_seq_len, allocator_);
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  /// A value that both formats hold exactly, different for every element.
  static float value(int32_t b, int32_t p, int32_t d, bool is_v) {
    return static_cast<float>(b * 100 + p * 8 + d) * (is_v ? -0.5F : 1.0F);
  }
  static std::vector<float> rows(int32_t batch, int32_t start, int32_t seq, int32_t dim,
                                 bool is_v) {
    std::vector<float> out;
    for (int32_t b = 0; b < batch; ++b) {
      for (int32_t p = start; p < start + seq; ++p) {
        for (int32_t d = 0; d < dim; ++d) out.push_back(value(b, p, d, is_v));
      }
    }
    return out;
  }
  static Status append(TensorProvider& store, int32_t layer, int32_t batch, int32_t seq,
                       int32_t dim) {
    const int32_t start = store.layer_seq_len(layer);
    return store.update(layer, rows(batch, start, seq, dim, false).data(),
                        rows(batch, start, seq, dim, true).data(), {batch, seq, dim});
  }
  static void expect_rows(const TensorProvider& store, int32_t layer, int32_t batch, int32_t seq,
                          int32_t dim) {
    const TensorShape shape = store.shape(layer);
    ASSERT_EQ(shape.batch, batch);
    ASSERT_EQ(shape.seq, seq);
    ASSERT_EQ(shape.dim, dim);
    std::vector<float> k(static_cast<size_t>(batch * seq * dim));
    std::vector<float> v(k.size());
    ASSERT_TRUE(store.get(layer, k.data(), v.data()).ok());
    EXPECT_EQ(k, rows(batch, 0, seq, dim, false));
    EXPECT_EQ(v, rows(batch, 0, seq, dim, true));
  }

  GuardAllocator allocator_;
};

INSTANTIATE_TEST_SUITE_P(Formats, TensorStoreTest, ::testing::Values(DType::kF32, DType::kF16),
                         [](const auto& row) {
                           return row.param == DType::kF32 ? "fp32" : "fp16";
                         });

TEST_P(TensorStoreTest, AppendsAndReadsBack) {
  auto store = make(2, 10);
  EXPECT_EQ(allocator_.total(), 0);  // no buffer yet
  ASSERT_TRUE(append(*store, 0, 3, 4, 5).ok());
  ASSERT_TRUE(append(*store, 0, 3, 1, 5).ok());
  ASSERT_TRUE(append(*store, 0, 3, 5, 5).ok());  // exactly full
  expect_rows(*store, 0, 3, 10, 5);
  EXPECT_EQ(store->shape(1).seq, 0);
  EXPECT_EQ(allocator_.total(), 1);  // nothing after a layer's first write
}

TEST_P(TensorStoreTest, LayersAdvanceOnTheirOwn) {
  auto store = make(3, 10);
  EXPECT_EQ(store->seq_len(), 0);
  for (int32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(store->layer_seq_len(layer), 0);
    ASSERT_TRUE(append(*store, layer, 1, 4, 2).ok());
    EXPECT_EQ(store->layer_seq_len(layer), 4);
    EXPECT_EQ(store->seq_len(), layer == 2 ? 4 : 0);
  }
  ASSERT_TRUE(append(*store, 0, 1, 2, 2).ok());
  EXPECT_EQ(store->seq_len(), 4);
  EXPECT_TRUE(store->truncate(4).ok());  // gives the unfinished pass up
  EXPECT_EQ(store->layer_seq_len(0), 4);
  EXPECT_EQ(store->seq_len(), 4);
  EXPECT_EQ(store->layer_seq_len(-1), 0);
  EXPECT_EQ(store->layer_seq_len(3), 0);
}

TEST_P(TensorStoreTest, ChecksInOrderAndChangesNothing) {
  auto store = make(2, 6);
  ASSERT_TRUE(append(*store, 0, 2, 4, 3).ok());
  const std::vector<float> x(1000, 9.0F);
  const auto update = [&](int32_t layer, TensorShape shape) {
    return store->update(layer, x.data(), x.data(), shape);
  };
  // Each call is wrong in all that comes later too.
  EXPECT_STREQ(update(2, {0, 9, 0}).message(), "layer 2 outside a cache of 2 layers");
  EXPECT_EQ(update(-1, {2, 1, 3}).code(), Code::kOutOfRange);
  EXPECT_STREQ(update(0, {0, 9, 3}).message(), "shape [0, 9, 3] is not [batch, seq, dim]");
  EXPECT_EQ(update(0, {2, -1, 3}).code(), Code::kInvalidArgument);
  EXPECT_EQ(update(0, {2, 1, 0}).code(), Code::kInvalidArgument);
  EXPECT_STREQ(update(0, {1, 9, 3}).message(),
               "layer 0 holds batch 2, dim 3; the update has batch 1, dim 3");
  EXPECT_EQ(update(0, {2, 9, 4}).code(), Code::kInvalidArgument);
  EXPECT_STREQ(update(0, {2, 3, 3}).message(),
               "layer 0 holds 4 of 6 positions, no room for 3 more");
  EXPECT_EQ(update(0, {2, 3, 3}).code(), Code::kCacheFull);
  EXPECT_EQ(update(1, {2, INT32_MAX, 3}).code(), Code::kCacheFull);
  expect_rows(*store, 0, 2, 4, 3);
  // A first update that fails leaves the layer free for another shape.
  EXPECT_EQ(update(1, {7, 7, 7}).code(), Code::kCacheFull);
  ASSERT_TRUE(append(*store, 1, 1, 2, 4).ok());
  expect_rows(*store, 1, 1, 2, 4);
}

TEST_P(TensorStoreTest, NothingToAppendIsNoUpdate) {
  auto store = make(1, 6);
  EXPECT_TRUE(store->update(0, nullptr, nullptr, {2, 0, 3}).ok());
  EXPECT_EQ(store->shape(0).batch, 0);
  EXPECT_EQ(allocator_.total(), 0);
  ASSERT_TRUE(append(*store, 0, 1, 6, 4).ok());  // no shape was kept
  EXPECT_TRUE(store->update(0, nullptr, nullptr, {1, 0, 4}).ok());
  EXPECT_EQ(store->update(0, nullptr, nullptr, {2, 0, 4}).code(), Code::kInvalidArgument);
  expect_rows(*store, 0, 1, 6, 4);
}

TEST_P(TensorStoreTest, OutOfMemoryLeavesTheLayerAsItWas) {
  auto store = make(1, 6);
  allocator_.fail_after(0);
  EXPECT_EQ(append(*store, 0, 2, 2, 3).code(), Code::kOutOfMemory);
  EXPECT_EQ(store->layer_seq_len(0), 0);
  EXPECT_EQ(store->update(0, nullptr, nullptr, {INT32_MAX, 1, INT32_MAX}).code(),
            Code::kOutOfMemory);  // overflows before the data is looked at
  allocator_.fail_after(-1);
  ASSERT_TRUE(append(*store, 0, 2, 2, 3).ok());
  expect_rows(*store, 0, 2, 2, 3);
  // A larger shape that cannot be had leaves the old buffer for the old shape.
  EXPECT_TRUE(store->reset().ok());
  allocator_.fail_after(0);
  EXPECT_EQ(append(*store, 0, 64, 2, 64).code(), Code::kOutOfMemory);
  ASSERT_TRUE(append(*store, 0, 2, 2, 3).ok());
  expect_rows(*store, 0, 2, 2, 3);
}

TEST_P(TensorStoreTest, ResetKeepsTheMemory) {
  auto store = make(1, 6);
  ASSERT_TRUE(append(*store, 0, 2, 5, 4).ok());
  const std::byte* before = store->view(0).k;
  EXPECT_TRUE(store->reset().ok());
  EXPECT_EQ(store->layer_seq_len(0), 0);
  EXPECT_EQ(store->seq_len(), 0);
  EXPECT_EQ(store->view(0).k, nullptr);
  ASSERT_TRUE(append(*store, 0, 2, 3, 4).ok());
  EXPECT_EQ(store->view(0).k, before);
  expect_rows(*store, 0, 2, 3, 4);
  // An empty layer takes another shape: in place if it fits, with more memory if not.
  EXPECT_TRUE(store->truncate(0).ok());
  ASSERT_TRUE(append(*store, 0, 1, 3, 7).ok());
  EXPECT_EQ(store->view(0).k, before);
  EXPECT_EQ(allocator_.total(), 1);
  expect_rows(*store, 0, 1, 3, 7);
  EXPECT_TRUE(store->reset().ok());
  ASSERT_TRUE(append(*store, 0, 9, 6, 64).ok());
  EXPECT_EQ(allocator_.total(), 2);
  EXPECT_EQ(allocator_.live_blocks(), 1u);
  expect_rows(*store, 0, 9, 6, 64);
}

TEST_P(TensorStoreTest, ViewsStrideOverTheReservedPositions) {
  auto store = make(1, 6);
  ASSERT_TRUE(append(*store, 0, 3, 4, 5).ok());
  const TensorSpan span = store->view(0);
  const size_t bytes = GetParam() == DType::kF32 ? 4 : 2;
  EXPECT_EQ(span.seq_stride, 5 * bytes);
  EXPECT_EQ(span.batch_stride, 6 * 5 * bytes);
  for (int32_t b = 0; b < 3; ++b) {
    for (int32_t p = 0; p < 4; ++p) {
      for (int32_t d = 0; d < 5; ++d) {
        const size_t offset =
            static_cast<size_t>(b) * span.batch_stride + static_cast<size_t>(p) * span.seq_stride;
        const auto at = [&](const std::byte* base) {
          if (GetParam() == DType::kF32) return reinterpret_cast<const float*>(base + offset)[d];
          return f16_to_f32(reinterpret_cast<const uint16_t*>(base + offset)[d]);
        };
        EXPECT_EQ(at(span.k), value(b, p, d, false));
        EXPECT_EQ(at(span.v), value(b, p, d, true));
      }
    }
  }
  EXPECT_EQ(store->view(1).k, nullptr);
  EXPECT_EQ(store->view(-1).v, nullptr);
}

TEST_P(TensorStoreTest, FullBuffersKeepTheirShape) {
  auto store = make(2, 6);
  EXPECT_EQ(store->full_buffer(0).k, nullptr);  // never written
  ASSERT_TRUE(append(*store, 0, 3, 1, 5).ok());
  const size_t bytes = GetParam() == DType::kF32 ? 4 : 2;
  const TensorSpan first = store->full_buffer(0);
  for (int32_t step = 0; step < 6; ++step) {
    const TensorSpan span = store->full_buffer(0);
    EXPECT_EQ(span.k, first.k);
    EXPECT_EQ(span.v, first.v);
    EXPECT_EQ(span.type, GetParam());
    EXPECT_EQ(span.shape.batch, 3);
    EXPECT_EQ(span.shape.seq, 6);
    EXPECT_EQ(span.shape.dim, 5);
    EXPECT_EQ(span.seq_stride, 5 * bytes);
    EXPECT_EQ(span.batch_stride, 6 * 5 * bytes);
    if (step < 5) {
      ASSERT_TRUE(append(*store, 0, 3, 1, 5).ok());
    }
  }
  // All of it belongs to the caller to read: six positions of three lanes, keys before values.
  EXPECT_GE(first.v - first.k, static_cast<ptrdiff_t>(3 * 6 * 5 * bytes));
  EXPECT_EQ(store->full_buffer(1).k, nullptr);
  EXPECT_EQ(store->full_buffer(-1).k, nullptr);
  EXPECT_EQ(store->full_buffer(2).k, nullptr);
  ASSERT_TRUE(store->reset().ok());
  EXPECT_EQ(store->full_buffer(0).k, first.k);  // for what comes next
  auto copy = store->clone();
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy.value()->buffers()->full_buffer(0).k, nullptr);  // nothing was copied
  ASSERT_TRUE(append(*store, 0, 1, 2, 7).ok());
  EXPECT_EQ(store->full_buffer(0).shape.dim, 7);
  EXPECT_EQ(store->full_buffer(0).batch_stride, 6 * 7 * bytes);
}

TEST_P(TensorStoreTest, TruncateClamps) {
  auto store = make(2, 8);
  ASSERT_TRUE(append(*store, 0, 1, 6, 2).ok());
  ASSERT_TRUE(append(*store, 1, 1, 3, 2).ok());
  EXPECT_TRUE(store->truncate(100).ok());
  EXPECT_EQ(store->layer_seq_len(0), 6);
  EXPECT_TRUE(store->truncate(4).ok());
  EXPECT_EQ(store->layer_seq_len(0), 4);
  EXPECT_EQ(store->layer_seq_len(1), 3);
  ASSERT_TRUE(append(*store, 0, 1, 2, 2).ok());
  expect_rows(*store, 0, 1, 6, 2);
  EXPECT_TRUE(store->truncate(-1).ok());
  EXPECT_EQ(store->layer_seq_len(0), 0);
  EXPECT_EQ(store->layer_seq_len(1), 0);
  ASSERT_TRUE(append(*store, 0, 1, 8, 2).ok());
  expect_rows(*store, 0, 1, 8, 2);
}

TEST_P(TensorStoreTest, MemoryFiguresAreTrue) {
  auto store = make(2, 8);
  EXPECT_EQ(store->memory().resident, 0u);
  ASSERT_TRUE(append(*store, 0, 2, 3, 16).ok());
  const size_t bytes = GetParam() == DType::kF32 ? 4 : 2;
  EXPECT_EQ(store->memory().payload, 2 * 2 * 3 * 16 * bytes);
  EXPECT_EQ(store->memory().resident, allocator_.live_bytes());
  EXPECT_GT(store->memory().metadata, 0u);
}

TEST_P(TensorStoreTest, ClonesAreIndependent) {
  auto store = make(3, 8);
  ASSERT_TRUE(append(*store, 0, 2, 5, 3).ok());
  ASSERT_TRUE(append(*store, 2, 1, 1, 9).ok());
  for (int succeed = 0; succeed < 2; ++succeed) {
    allocator_.fail_after(succeed);
    EXPECT_EQ(store->clone().status().code(), Code::kOutOfMemory);
    EXPECT_EQ(allocator_.live_blocks(), 2u);
  }
  allocator_.fail_after(-1);
  auto copy = store->clone();
  ASSERT_TRUE(copy.ok());
  EXPECT_TRUE(store->reset().ok());
  ASSERT_TRUE(store
                  ->update(0, std::vector<float>(6, 1.0F).data(),
                           std::vector<float>(6, 1.0F).data(), {2, 1, 3})
                  .ok());
  expect_rows(**copy, 0, 2, 5, 3);
  expect_rows(**copy, 2, 1, 1, 9);
  ASSERT_TRUE(append(**copy, 0, 2, 3, 3).ok());
  expect_rows(**copy, 0, 2, 8, 3);
}

TEST_P(TensorStoreTest, RandomStepsAgreeWithAList) {
  std::mt19937 random(5);
  auto store = make(4, 20);
  int32_t cursors[4] = {};
  for (int step = 0; step < 2000; ++step) {
    const auto layer = static_cast<int32_t>(random() % 4);
    const auto n = static_cast<int32_t>(random() % 9);
    if (random() % 8 == 0) {
      EXPECT_TRUE(store->truncate(n * 2).ok());
      for (int32_t& cursor : cursors) cursor = std::min(cursor, n * 2);
    } else {
      const bool fits = cursors[layer] + n <= 20;
      ASSERT_EQ(append(*store, layer, 2, n, 3).ok(), fits);
      if (fits) cursors[layer] += n;
    }
    for (int32_t i = 0; i < 4; ++i) ASSERT_EQ(store->layer_seq_len(i), cursors[i]);
  }
  for (int32_t i = 0; i < 4; ++i) {
    if (cursors[i] > 0) expect_rows(*store, i, 2, cursors[i], 3);
  }
}

TEST(TensorStore, ChecksItsCreation) {
  EXPECT_STREQ(TensorStore::create(DType::kF32, -1, 4, system_allocator()).status().message(),
               "-1 layers are outside [0, 65536]");
  EXPECT_STREQ(TensorStore::create(DType::kF32, 1, 0, system_allocator()).status().message(),
               "max_seq_len 0 is below 1");
  auto none = TensorStore::create(DType::kF32, 0, 1, system_allocator());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none.value()->seq_len(), 0);
  EXPECT_EQ(none.value()->shape(0).seq, 0);
}

TEST(TensorStore, HalvesHaveTheSpecifiedBits) {
  const float inf = std::numeric_limits<float>::infinity();
  const float in[] = {1.0F,     -2.0F,    65504.0F, 65519.996F,
                      65520.0F, 0x1p-24F, 0x1p-25F, 0.1F,
                      -0.0F,    inf,      -inf,     std::numeric_limits<float>::quiet_NaN()};
  const uint16_t want[] = {0x3C00, 0xC000, 0x7BFF, 0x7BFF, 0x7C00, 0x0001,
                           0x0000, 0x2E66, 0x8000, 0x7C00, 0xFC00, 0x7E00};
  auto store = TensorStore::create(DType::kF16, 1, 1, system_allocator());
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(store.value()->update(0, in, in, {1, 1, 12}).ok());
  uint16_t got[12];
  std::memcpy(got, store.value()->view(0).k, sizeof(got));
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(got[i], want[i]) << in[i];
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Once a tensor store has its memory, appending to it takes none: what is written over and over,
// position by position, causes no allocation in any kind of store, in either memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cache/tensor/compressed_store.h"
#include "cache/tensor/device_store.h"
#include "cache/tensor/paged_store.h"
#include "cache/tensor/tensor_kinds.h"
#include "cache/tensor/tensor_store.h"
#include "engine/backend/registry.h"
#include "support/counting_new.h"

namespace gen::cache {
namespace {

constexpr int32_t kLayers = 4;
constexpr int32_t kMost = 128;
constexpr int32_t kBatch = 2;
constexpr int32_t kDim = 64;

/// A device's memory, which is the host's.
class DeviceMemory final : public engine::GpuAllocator {
 public:
  Status allocate(size_t bytes, void** out) override {
    *out = std::malloc(bytes);
    return {};
  }
  void release(void* at) noexcept override { std::free(at); }
  Status copy_up(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
  Status copy_down(void* to, const void* from, size_t bytes) override {
    return copy_up(to, from, bytes);
  }
  Status copy_across(void* to, const void* from, size_t bytes) override {
    return copy_up(to, from, bytes);
  }
  Status append(const engine::CountedAppend& append, void* stream) override {
    return engine::append_on_device(-1, append, stream);
  }
};

/// Positions [0, kMost) of all layers, the first `at_once` of a layer in one update.
void fill(TensorProvider& store, int32_t at_once, const std::vector<float>& x) {
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(store.update(layer, x.data(), x.data(), {kBatch, at_once, kDim}).ok());
  }
  for (int32_t position = at_once; position < kMost; ++position) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      ASSERT_TRUE(store.update(layer, x.data(), x.data(), {kBatch, 1, kDim}).ok());
    }
  }
}

/// What appends take after the first one of each layer, and what they take the second time.
void expect_none(TensorProvider& store, const char* name, size_t at_first = 0) {
  const std::vector<float> x(size_t{kBatch} * kMost * kDim, 0.5F);
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(store.update(layer, x.data(), x.data(), {kBatch, 1, kDim}).ok()) << name;
  }
  const size_t before = test::news;
  for (int32_t position = 1; position < kMost; ++position) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      ASSERT_TRUE(store.update(layer, x.data(), x.data(), {kBatch, 1, kDim}).ok()) << name;
    }
  }
  EXPECT_LE(test::news - before, at_first) << name << " as it grows";
  ASSERT_TRUE(store.truncate(0).ok());
  fill(store, 50, x);
  ASSERT_TRUE(store.truncate(0).ok());
  const size_t again = test::news;
  fill(store, 50, x);
  EXPECT_EQ(test::news - again, 0U) << name << " once more";
}

TEST(UpdateAllocations, OfHostStores) {
  for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    auto made = find_tensor_kind(kind)->create(kLayers, kMost, system_allocator());
    ASSERT_TRUE(made.ok());
    expect_none(**made, kind);
  }
  // Its room doubles: 16, 32 and 64 entries, each with the list of what views may still show.
  auto compressed = CompressedStore::create(kLayers, 2, system_allocator());
  ASSERT_TRUE(compressed.ok());
  expect_none(**compressed, "compressed", 3 * 2 * kLayers);
}

TEST(UpdateAllocations, OfStoresOnADevice) {
  for (const DType type : DeviceStore::kTypes) {
    auto made = DeviceStore::create(type, kLayers, kMost, std::make_shared<DeviceMemory>());
    ASSERT_TRUE(made.ok());
    expect_none(**made, dtype_name(type));
  }
}

/// From the device, where binary16 comes to the host and goes back.
TEST(UpdateAllocations, OfAppendsOnADevice) {
  for (const DType type : DeviceStore::kTypes) {
    auto made =
        DeviceStore::create_fixed(type, kLayers, kMost, kDim, std::make_shared<DeviceMemory>());
    ASSERT_TRUE(made.ok());
    const std::vector<float> x(kDim, 0.5F);
    size_t before = 0;
    for (int32_t position = 0; position < kMost; ++position) {
      if (position == 1) before = test::news;
      for (int32_t layer = 0; layer < kLayers; ++layer) {
        ASSERT_TRUE((*made)->append_device(layer, x.data(), x.data()).ok());
      }
    }
    EXPECT_EQ(test::news - before, 0U) << dtype_name(type);
  }
}

TEST(UpdateAllocations, OfPagedStores) {
  constexpr int32_t kBlock = 4;
  for (const DType type : TensorPool::kTypes) {
    for (const bool on_device : {false, true}) {
      auto pool =
          TensorPool::create({kLayers, kBlock, kBatch * kDim, type}, 16, system_allocator());
      ASSERT_TRUE(pool.ok());
      if (on_device) {
        ASSERT_TRUE((*pool)->set_gpu_allocator(std::make_shared<DeviceMemory>()).ok());
      }
      {  // the pool takes its memory
        std::vector<Block*> all(kMost / kBlock);
        ASSERT_TRUE((*pool)->blocks().allocate(all).ok());
        for (Block* block : all) ASSERT_TRUE((*pool)->blocks().release(block).ok());
      }
      auto made = PagedStore::create(*pool, kLayers);
      ASSERT_TRUE(made.ok());
      // The list of blocks doubles: 1, 2, 4, 8, 16 and 32 of them.
      expect_none(**made, on_device ? "paged on a device" : "paged", 6);
    }
  }
}

}  // namespace
}  // namespace gen::cache

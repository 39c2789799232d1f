// SPDX-License-Identifier: Apache-2.0
// kv_cache_free on one thread while another is in a call on the cache: the handle ends with that
// call, and a tracing cache that shares its contents ends alone. What is freed when is read from
// the allocator's count.
#include <generate/generate.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "status_record.h"

namespace gen::api {
namespace {

constexpr int32_t kLayers = 2;
constexpr int32_t kSeq = 3;
constexpr int32_t kDim = 8;

/// An allocator that counts blocks and runs `during`, once, inside a request.
struct Host {
  std::atomic<int> live{0};
  std::function<void()> during;

  static gen_status allocate(void* user, size_t bytes, size_t align, void** out) {
    auto* const host = static_cast<Host*>(user);
    const auto during = std::exchange(host->during, nullptr);
    if (during) during();
    *out = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    if (*out == nullptr) return GEN_ERROR_OUT_OF_MEMORY;
    ++host->live;
    return GEN_OK;
  }
  static void release(void* user, void* pointer, size_t) {
    --static_cast<Host*>(user)->live;
    std::free(pointer);
  }
  gen_allocator table() { return {sizeof(gen_allocator), this, allocate, release}; }
};

class FreeInUse : public testing::Test {
 protected:
  FreeInUse() {
    const gen_allocator table = host_.table();
    EXPECT_EQ(kv_cache_new(kLayers, 64, &cache_, nullptr), GEN_OK);
    EXPECT_EQ(kv_cache_set_allocator(cache_, &table, nullptr), GEN_OK);
  }
  gen_status update(int32_t layer) {
    const std::vector<float> rows(size_t{kSeq} * kDim, 1.0F);
    return kv_cache_update(cache_, layer, rows.data(), rows.data(), 1, kSeq, kDim, nullptr);
  }
  static void free_elsewhere(kv_cache* cache) { std::thread([cache] { kv_cache_free(cache); }).join(); }

  Host host_;
  kv_cache* cache_ = nullptr;
};

TEST_F(FreeInUse, ACacheEndsWithTheCallOnIt) {
  ASSERT_EQ(update(0), GEN_OK);
  const int held = host_.live;
  ASSERT_GT(held, 0);
  int then = 0;
  host_.during = [&] {
    free_elsewhere(cache_);
    then = host_.live;
  };
  EXPECT_EQ(update(1), GEN_OK);
  EXPECT_EQ(then, held);
  EXPECT_EQ(host_.live, 0);
}

TEST_F(FreeInUse, ATracingCacheEndsWithoutTheOneItGoesOver) {
  gen_tracer* tracer = nullptr;
  kv_cache* traced = nullptr;
  ASSERT_EQ(gen_tracer_new(&tracer, nullptr), GEN_OK);
  ASSERT_EQ(kv_cache_tracing_new(cache_, tracer, &traced, nullptr), GEN_OK);
  bool asked = false;
  host_.during = [&] {
    asked = true;
    free_elsewhere(traced);
  };
  EXPECT_EQ(update(0), GEN_OK);
  EXPECT_TRUE(asked);
  ASSERT_GT(host_.live, 0);
  EXPECT_EQ(kv_cache_layer_seq_len(cache_, 0), kSeq);
  kv_cache_free(cache_);
  EXPECT_EQ(host_.live, 0);
  gen_tracer_free(tracer);
}

}  // namespace
}  // namespace gen::api

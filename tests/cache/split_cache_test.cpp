// SPDX-License-Identifier: Apache-2.0
// Which caches make one sequence of layers in several memories, and which are refused; what they do
// together is the conformance suite's.
#include "cache/sequence/split_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/registry.h"
#include "engine/memory/host_memory.h"

namespace gen::cache {
namespace {

constexpr int32_t kCapacity = 32;

std::vector<LayerShape> shapes(size_t n) {
  LayerShape shape;
  shape.kv_heads = 2;
  shape.k_dim = 8;
  shape.v_dim = 8;
  return std::vector<LayerShape>(n, shape);
}

/// Of two caches, with one layer and with two.
Status made(std::vector<int32_t> cache_of_layer) {
  std::vector<std::unique_ptr<KvCache>> caches;
  for (const size_t n : {1U, 2U}) {
    caches.push_back(make_cache("fp32", shapes(n), kCapacity, engine::system_memory()).value());
  }
  return make_split_cache(std::move(caches), cache_of_layer).status();
}

TEST(SplitCache, LayersAreThoseOfTheCaches) {
  EXPECT_TRUE(made({0, 1, 1}).ok());
  EXPECT_TRUE(made({1, 0, 1}).ok());
  EXPECT_STREQ(made({0, 1, 1, 1}).message(), "layer 3 is in cache 1 of 2, which lacks it");
  EXPECT_STREQ(made({0, 2, 1}).message(), "layer 1 is in cache 2 of 2, which lacks it");
  EXPECT_STREQ(made({-1, 1, 1}).message(), "layer 0 is in cache -1 of 2, which lacks it");
  EXPECT_STREQ(made({0, 1}).message(), "cache 1 has 2 layers, 1 are named");
  EXPECT_STREQ(make_split_cache({}, {}).status().message(), "a split cache of no caches");
}

TEST(SplitCache, CachesThatCutElsewhereAreRefused) {
  std::vector<std::unique_ptr<KvCache>> caches;
  caches.push_back(make_cache("fp32", shapes(1), kCapacity, engine::system_memory()).value());
  caches.push_back(make_compressed_cache(shapes(1), kCapacity, 4, engine::system_memory()).value());
  const std::vector<int32_t> layers = {0, 1};
  const Status status = make_split_cache(std::move(caches), layers).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(
      status.message(),
      "a split cache of compressed caches, which do not always cut where they are told to");
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of tiered stores: a small store whose files can fail, layers with contents
// determined by a seed, and files as bytes.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/tensor/tiered_store.h"
#include "support/failing_file_ops.h"

namespace gen::cache {

using test::FailingFiles;
using test::TestFolder;

constexpr int32_t kLayers = 3;
constexpr int32_t kMost = 32;
constexpr int32_t kBatch = 2;
constexpr int32_t kDim = 5;

inline std::vector<float> numbers(int32_t seq, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(kBatch * seq * kDim));
  for (float& value : x) value = static_cast<float>(random()) / 0x1p32F - 0.4F;
  return x;
}

inline TierOptions options_for(FailingFiles& files, const std::string& folder = {}) {
  TierOptions options;
  options.num_layers = kLayers;
  options.max_seq_len = kMost;
  options.chunk_size = 4;
  options.cold_dir = folder;
  options.files = &files;
  return options;
}

inline std::unique_ptr<TieredStore> make(const TierOptions& options,
                                         Allocator& allocator = system_allocator()) {
  auto made = TieredStore::create(options, allocator);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

inline Status append(TieredStore& store, int32_t layer, int32_t seq, uint32_t seed) {
  return store.update(layer, numbers(seq, seed).data(), numbers(seq, seed + 1).data(),
                      {kBatch, seq, kDim});
}

/// A layer written by one append of `seq` and cut to `kept`.
inline void expect_layer(const TieredStore& store, int32_t layer, int32_t seq, uint32_t seed,
                         int32_t kept) {
  ASSERT_EQ(store.layer_seq_len(layer), kept);
  const size_t count = static_cast<size_t>(kBatch * kept * kDim);
  std::vector<float> k(count);
  std::vector<float> v(count);
  ASSERT_TRUE(store.get(layer, k.data(), v.data()).ok());
  const std::vector<float> keys = numbers(seq, seed);
  const std::vector<float> values = numbers(seq, seed + 1);
  for (size_t b = 0; b < kBatch; ++b) {
    const size_t lane = static_cast<size_t>(kept * kDim);
    const size_t whole = b * static_cast<size_t>(seq * kDim);
    for (size_t i = 0; i < lane; ++i) {
      ASSERT_EQ(k[b * lane + i], keys[whole + i]) << "layer " << layer << " element " << i;
      ASSERT_EQ(v[b * lane + i], values[whole + i]) << "layer " << layer << " element " << i;
    }
  }
}

inline std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void put_bytes(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace gen::cache

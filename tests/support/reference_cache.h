// SPDX-License-Identifier: Apache-2.0
// ReferenceCache: the plainest KvCache, float32 entries one after another, for tests that need some
// cache and not a particular one. Room for all entries is taken at the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cache/sequence/kv_cache.h"

namespace gen::test {

class ReferenceCache final : public cache::KvCache {
 public:
  ReferenceCache(std::span<const cache::LayerShape> layers, int32_t capacity)
      : layers_(layers.begin(), layers.end()), capacity_(capacity) {
    traits_.kind = "reference";
    for (const cache::LayerShape& layer : layers_) {
      const auto heads = static_cast<size_t>(layer.kv_heads);
      const auto entries = static_cast<size_t>((capacity + 15) / 16 * 16);
      keys_.emplace_back(entries * heads * static_cast<size_t>(layer.k_dim));
      values_.emplace_back(entries * heads * static_cast<size_t>(layer.v_dim));
    }
  }

  [[nodiscard]] const cache::CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const cache::LayerShape> layers() const noexcept override {
    return layers_;
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }

  Result<cache::CachePlan> plan(int32_t n) override {
    if (n > capacity_ - length_) {
      return error(Code::kCacheFull, "%d entries beside %d of %d", n, length_, capacity_);
    }
    return cache::CachePlan{length_, n};
  }
  Result<engine::KvView> view(int32_t layer, const cache::CachePlan& plan) override {
    const auto index = static_cast<size_t>(layer);
    const cache::LayerShape& shape = layers_[index];
    engine::KvView view;
    view.k = side(keys_[index], engine::KvOrder::kKeys, shape.kv_heads, shape.k_dim);
    view.v = side(values_[index], engine::KvOrder::kValues, shape.kv_heads, shape.v_dim);
    view.kv_heads = shape.kv_heads;
    view.entries = plan.start + plan.count;
    view.window = shape.window;
    return view;
  }
  void commit(const cache::CachePlan& plan) noexcept override { length_ = plan.start + plan.count; }
  Status truncate(int32_t n) override {
    length_ = std::min(length_, std::max(n, 0));
    return {};
  }
  [[nodiscard]] cache::MemoryUse memory() const noexcept override { return {}; }

  [[nodiscard]] const std::vector<float>& keys(size_t layer) const { return keys_[layer]; }

 private:
  static engine::KvSide side(std::vector<float>& data, engine::KvOrder order, int32_t heads,
                             int32_t dim) {
    engine::KvSide side;
    side.order = order;
    side.base = reinterpret_cast<std::byte*>(data.data());
    side.head_stride = 16 * static_cast<size_t>(dim) * sizeof(float);
    side.tile_stride = side.head_stride * static_cast<size_t>(heads);
    side.head_dim = dim;
    return side;
  }

  cache::CacheTraits traits_;
  std::vector<cache::LayerShape> layers_;
  int32_t capacity_;
  int32_t length_ = 0;
  std::vector<std::vector<float>> keys_;
  std::vector<std::vector<float>> values_;
};

}  // namespace gen::test

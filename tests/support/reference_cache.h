// SPDX-License-Identifier: Apache-2.0
// ReferenceCache: the plainest KvCache, float32 entries one after another, for tests that need some
// cache and not a particular one. Room for all entries is taken at the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cache/sequence/kv_cache.h"
#include "engine/access.h"
#include "engine/memory/host_memory.h"

namespace gen::test {

class ReferenceCache final : public cache::KvCache {
 public:
  ReferenceCache(std::span<const cache::LayerShape> layers, int32_t capacity)
      : layers_(layers.begin(), layers.end()), capacity_(capacity) {
    traits_.kind = "reference";
    for (const cache::LayerShape& shape : layers_) {
      const auto entries = static_cast<size_t>((capacity + 15) / 16 * 16);
      const auto heads = static_cast<size_t>(shape.kv_heads);
      const size_t keys = entries * heads * static_cast<size_t>(shape.k_dim);
      const size_t values = entries * heads * static_cast<size_t>(shape.v_dim);
      engine::KvLayer layer;
      layer.k = form(engine::KvOrder::kKeys, shape.kv_heads, shape.k_dim, 0);
      layer.v = form(engine::KvOrder::kValues, shape.kv_heads, shape.v_dim, keys * sizeof(float));
      layer.kv_heads = shape.kv_heads;
      layer.block_size = static_cast<int32_t>(entries);
      layer.window = shape.window;
      layer.part = static_cast<int32_t>(kv_layers_.size());
      kv_layers_.push_back(layer);
      n_keys_.push_back(keys);
      memory_.emplace_back(keys + values);
      blocks_.push_back(engine::engine_ptr(reinterpret_cast<std::byte*>(memory_.back().data())));
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
  std::span<const engine::KvLayer> kv_layers() const noexcept override { return kv_layers_; }
  int32_t parts() const noexcept override { return static_cast<int32_t>(kv_layers_.size()); }
  engine::EngineMemory& engine_memory(int32_t) const noexcept override {
    return engine::system_memory();
  }
  Result<engine::KvTables> tables(int32_t part, const cache::CachePlan&) override {
    return engine::KvTables{std::span(blocks_).subspan(static_cast<size_t>(part), 1)};
  }
  using KvCache::commit;
  void commit(const cache::CachePlan& plan, cache::Kept kept) noexcept override {
    GEN_ASSERT(kept.rows == nullptr);
    length_ = plan.start + kept.n;
  }
  Status truncate(int32_t n) override {
    length_ = std::min(length_, std::max(n, 0));
    return {};
  }
  Result<std::unique_ptr<cache::KvCache>> fork() override {
    return error(Code::kUnsupported, "a reference cache does not fork");
  }
  [[nodiscard]] cache::MemoryUse memory() const noexcept override { return {}; }

  [[nodiscard]] std::vector<float> keys(size_t layer) const {
    const auto begin = memory_[layer].begin();
    return {begin, begin + static_cast<std::ptrdiff_t>(n_keys_[layer])};
  }

 private:
  static engine::KvSideForm form(engine::KvOrder order, int32_t heads, int32_t dim, size_t offset) {
    engine::KvSideForm form;
    form.order = order;
    form.head_dim = dim;
    form.block_offset = offset;
    form.head_stride = 16 * static_cast<size_t>(dim) * sizeof(float);
    form.tile_stride = form.head_stride * static_cast<size_t>(heads);
    return form;
  }

  cache::CacheTraits traits_;
  std::vector<cache::LayerShape> layers_;
  int32_t capacity_;
  int32_t length_ = 0;
  std::vector<engine::KvLayer> kv_layers_;
  std::vector<std::vector<float>> memory_;  // of a layer: keys, then values
  std::vector<size_t> n_keys_;
  std::vector<engine::EnginePtr<std::byte>> blocks_;  // one of each layer
};

}  // namespace gen::test

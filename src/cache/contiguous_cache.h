// SPDX-License-Identifier: Apache-2.0
// ContiguousCache: keys and values of one sequence in one buffer for each layer, as float32 or
// binary16.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/allocator.h"
#include "cache/kv_cache.h"

namespace gen::cache {

/// Storage: for each layer keys as [entry][kv_head][k_dim], then values as [entry][kv_head][v_dim],
/// `capacity` entries of each, 64-byte aligned; entry e is position e. Everything is reserved at
/// creation, but a page of the system's memory is taken only when it is first written. Invariant: 0
/// <= length() <= capacity(). Threads: not synchronised; whoever leads the current step is the only
/// writer.
class ContiguousCache final : public KvCache {
 public:
  static Result<std::unique_ptr<KvCache>> create_fp32(std::span<const LayerShape> layers,
                                                      int32_t capacity, Allocator& allocator);
  static Result<std::unique_ptr<KvCache>> create_fp16(std::span<const LayerShape> layers,
                                                      int32_t capacity, Allocator& allocator);

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override { return layers_; }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }
  [[nodiscard]] Result<CachePlan> plan(int32_t n) override;
  [[nodiscard]] engine::KvView view(int32_t layer, const CachePlan& plan) override;
  void commit(const CachePlan& plan) noexcept override;
  Status truncate(int32_t n) override;
  [[nodiscard]] MemoryUse memory() const noexcept override;

 private:
  struct Layer {
    Buffer buffer;
    size_t k_entry_bytes = 0;
    size_t v_entry_bytes = 0;
    size_t v_offset = 0;  // of the values in the buffer
  };

  ContiguousCache(std::span<const LayerShape> layers, int32_t capacity, engine::KvFormat format,
                  const char* kind);
  static Result<std::unique_ptr<KvCache>> create(std::span<const LayerShape> layers,
                                                 int32_t capacity, Allocator& allocator,
                                                 engine::KvFormat format, const char* kind);

  std::vector<LayerShape> layers_;
  std::vector<Layer> storage_;
  CacheTraits traits_;
  engine::KvFormat format_;
  int32_t capacity_;
  int32_t length_ = 0;
};

}  // namespace gen::cache

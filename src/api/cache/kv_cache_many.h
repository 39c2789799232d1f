// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache handles with many sequences, see kv_cache_body.h.
#pragma once

#include <memory>
#include <utility>

#include "api/cache/kv_cache_handle.h"
#include "cache/batch/sequence_store.h"
#include "cache/element_type.h"

namespace gen::api {

class ManySequences final : public CacheBody {
 public:
  using Store = std::shared_ptr<cache::SequenceStore>;

  /// Takes the kind from the store and the rest of the label from `label`.
  explicit ManySequences(Store store, const CacheLabel& label = before_init()) noexcept
      : CacheBody(label), store_(std::move(store)) {
    label_.traits.kind = store_->kind();
  }

  [[nodiscard]] ManySequences* many_sequences() noexcept override { return this; }
  [[nodiscard]] CacheName name() const noexcept override { return {"", label_.traits.kind}; }
  [[nodiscard]] cache::MemoryUse memory() const noexcept override {
    return store_ != nullptr ? store_->memory() : cache::MemoryUse();
  }
  [[nodiscard]] uint32_t capabilities() const noexcept override { return 0; }
  [[nodiscard]] size_t underlying() const noexcept override {
    return store_ != nullptr ? store_->layer_types()->layer_type() : 0;
  }
  [[nodiscard]] Status takes_allocator() const override {
    GEN_TRY(there());
    if (!store_->begun()) return {};
    return {Code::kState, "the cache is initialised; its allocator is set before that"};
  }

  /// kState if the store has been given away.
  [[nodiscard]] Status there() const {
    if (store_ != nullptr) return {};
    return {Code::kState, "the cache has become part of a wrapper"};
  }
  [[nodiscard]] cache::SequenceStore& store() const noexcept { return *store_; }
  [[nodiscard]] const Store& shared_store() const noexcept { return store_; }
  void give_store_away() noexcept { store_ = nullptr; }
  /// Records the element type that kv_cache_init has set.
  void note_type(DType type) noexcept {
    label_.traits.lossy = type != DType::kF32;
    label_.traits.dtype = cache::element_type_name(type);
  }

 private:
  static CacheLabel before_init() noexcept {
    return {{.dtype = nullptr, .can_clone = false}, 0, 0};
  }

  Store store_;  // null once it is part of a wrapper
};

/// kState, naming `call`, for a cache of one sequence or one that is part of a wrapper.
Result<ManySequences*> many_sequences(const kv_cache& cache, const char* call);

}  // namespace gen::api

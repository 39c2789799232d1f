// SPDX-License-Identifier: Apache-2.0
// The body of a kv_cache handle. Each kind of cache has a file with a class that derives from
// OneSequence or CacheBody and overrides the members for what it supports, and with the public
// functions that make it or are specific to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "api/cache/kv_cache_form.h"
#include "base/allocator.h"
#include "base/callbacks.h"
#include "base/in_use.h"
#include "base/status.h"
#include "cache/memory_use.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/sequence_state.h"
#include "cache/tensor/tensor_provider.h"
#include "engine/memory/host_memory.h"

struct gen_gpu_allocator;

namespace gen::cache {
class Block;
class DeviceStore;
class PagedStore;
class TieredStore;
}  // namespace gen::cache

namespace gen::api {

class ManySequences;
class OneSequence;

/// Properties of a cache that can be read without a call on it.
struct CacheLabel {
  cache::TensorTraits traits;  // only kind, dtype and lossy for a model's cache
  int32_t num_layers = 0;
  int32_t max_seq_len = 0;
};

/// Capability: a cache that can use a device's memory.
class TakesGpuMemory {
 public:
  /// Adds the device's functions to `callbacks`.
  virtual Status take_gpu(const gen_gpu_allocator* allocator, SharedCallbacks* callbacks) = 0;

 protected:
  ~TakesGpuMemory() = default;
};

class CacheBody {
 public:
  explicit CacheBody(const CacheLabel& label) noexcept : label_(label) {}
  virtual ~CacheBody() = default;
  CacheBody(const CacheBody&) = delete;
  CacheBody& operator=(const CacheBody&) = delete;

  [[nodiscard]] const CacheLabel& label() const noexcept { return label_; }
  /// The in-use flag of the body; all handles of this body share it.
  [[nodiscard]] InUseFlag& in_use() noexcept { return in_use_; }
  /// Why no call may change the cache, if it is lent out; else null.
  [[nodiscard]] virtual const char* read_only() const noexcept { return nullptr; }
  [[nodiscard]] virtual CacheName name() const noexcept = 0;
  [[nodiscard]] virtual cache::MemoryUse memory() const noexcept = 0;
  /// Bits of kv_cache_capabilities, for a cache that may be changed.
  [[nodiscard]] virtual uint32_t capabilities() const noexcept = 0;
  /// Index of the underlying cache that the next call uses.
  [[nodiscard]] virtual size_t underlying() const noexcept { return 0; }

  /// The allocator that was set, or the system's.
  [[nodiscard]] Allocator& allocator() const noexcept {
    return allocator_ != nullptr ? *allocator_ : system_allocator();
  }
  /// kState if an allocator can no longer be set.
  [[nodiscard]] virtual Status takes_allocator() const = 0;
  /// Null: the system's.
  void use_allocator(std::shared_ptr<Allocator> given) {
    memory_ = given != nullptr ? std::make_shared<engine::HostMemory>(*given) : nullptr;
    allocator_ = std::move(given);
  }

  // The family of the cache; one of these is not null.
  [[nodiscard]] virtual OneSequence* one_sequence() noexcept { return nullptr; }
  [[nodiscard]] virtual ManySequences* many_sequences() noexcept { return nullptr; }
  // Capabilities of some kinds; null or false for the others.
  [[nodiscard]] virtual TakesGpuMemory* takes_gpu() noexcept { return nullptr; }
  [[nodiscard]] virtual cache::DeviceStore* gpu_rows() noexcept { return nullptr; }
  [[nodiscard]] virtual cache::PagedStore* takes_blocks() noexcept { return nullptr; }
  [[nodiscard]] virtual std::optional<std::span<cache::Block* const>> block_table() const noexcept {
    return std::nullopt;
  }
  /// May be called from any thread.
  [[nodiscard]] virtual cache::TieredStore* tiers() noexcept { return nullptr; }
  /// Whether an entry may be the mean of several positions.
  [[nodiscard]] virtual bool has_means() const noexcept { return false; }

 protected:
  /// The memory of the allocator that was set; null: the process heap.
  [[nodiscard]] engine::HostMemory* host_memory() const noexcept { return memory_.get(); }
  void share_allocator(const CacheBody& other) {
    allocator_ = other.allocator_;
    memory_ = other.memory_;
  }
  CacheLabel label_;

 private:
  std::shared_ptr<Allocator> allocator_;
  std::shared_ptr<engine::HostMemory> memory_;  // memory of `allocator_`; null if that is
  InUseFlag in_use_;
};

/// A cache of one sequence. If it has no form yet, its first write decides: kv_cache_update makes
/// it a cache of tensors, a model's pass makes it the model's cache. It keeps that form.
class OneSequence : public CacheBody {
 public:
  using Store = std::unique_ptr<cache::TensorProvider>;
  using ModelCache = std::unique_ptr<cache::KvCache>;

  using CacheBody::CacheBody;

  [[nodiscard]] OneSequence* one_sequence() noexcept final { return this; }
  [[nodiscard]] CacheName name() const noexcept override { return form().name(label_); }
  [[nodiscard]] cache::MemoryUse memory() const noexcept override { return form().memory(); }
  [[nodiscard]] uint32_t capabilities() const noexcept override;
  [[nodiscard]] Status takes_allocator() const override;
  /// The block table, if the form has one.
  [[nodiscard]] std::optional<std::span<cache::Block* const>> block_table() const noexcept override;

  /// May be called from any thread.
  [[nodiscard]] CacheForm& form() const noexcept { return *form_.load(std::memory_order_acquire); }
  [[nodiscard]] bool shaped() const noexcept { return &form() != &none_; }
  /// Sets the form. Call it once.
  void take(std::unique_ptr<CacheForm> form) noexcept {
    own_form_ = std::move(form);
    form_.store(own_form_.get(), std::memory_order_release);
  }
  /// What the model that wrote the cache keeps beside it; null for most. Of the positions of the
  /// last pass, which may be more than the cache still has.
  [[nodiscard]] cache::SequenceState* state() const noexcept { return state_.get(); }
  /// The model that it is of.
  [[nodiscard]] const void* state_of() const noexcept { return state_of_.get(); }
  /// Keeps a state, and alive what it depends on.
  void take_state(std::shared_ptr<const void> model,
                  std::unique_ptr<cache::SequenceState> state) noexcept {
    state_ = std::move(state);
    state_of_ = std::move(model);
  }
  /// Keeps alive what the form depends on.
  void keep(std::shared_ptr<const void> what) noexcept { keeps_ = std::move(what); }

  /// Makes the tensor store for the first write of a cache without form.
  [[nodiscard]] virtual Result<Store> make_store(Allocator& memory) const;
  /// Makes the model's cache for a first pass of a model.
  [[nodiscard]] virtual Result<ModelCache> make_model_cache(
      std::span<const cache::LayerShape> layers, int32_t capacity,
      engine::EngineMemory& memory) const;
  /// Makes it in the cache's own memory.
  [[nodiscard]] Result<ModelCache> make_own_model_cache(std::span<const cache::LayerShape> layers,
                                                        int32_t capacity) const;

  /// Positions that are pooled into one mean, 0 where nothing is pooled. A model with a shorter
  /// context lowers it.
  [[nodiscard]] virtual int32_t chunk() const noexcept { return 0; }
  /// A cache of the same kind with a copy of the content.
  [[nodiscard]] virtual Result<std::shared_ptr<CacheBody>> clone() const = 0;
  /// Why no model can write this cache, and what to use instead.
  [[nodiscard]] virtual const char* tensors_only() const noexcept {
    return "the cache holds tensors since kv_cache_update or kv_cache_tracing_new";
  }

 protected:
  /// True if the form came with its memory, so that no allocator can be set.
  [[nodiscard]] virtual bool brought_memory() const noexcept { return false; }
  /// For clone(): copies everything except the form.
  void share_settings(const OneSequence& other) {
    share_allocator(other);
    keeps_ = other.keeps_;
  }
  /// For clone(): the same, and a copy of the form.
  Status copy(const OneSequence& other);
  /// Uses a form with another owner; it must outlive this object.
  void lend(CacheForm* form) noexcept { form_.store(form, std::memory_order_release); }

 private:
  std::shared_ptr<const void> keeps_;
  std::shared_ptr<const void> state_of_;
  std::unique_ptr<cache::SequenceState> state_;
  CacheForm none_;
  std::unique_ptr<CacheForm> own_form_;  // null before the first write
  std::atomic<CacheForm*> form_{&none_};
};

/// The label of a cache that has a store from the start.
CacheLabel label_of(const cache::TensorProvider& store, int32_t max_seq_len);
/// The label of a model's cache.
CacheLabel label_of(const cache::KvCache& cache);

/// Base of the kinds that have a store from the start.
template <typename Kind>
class StoredCache : public OneSequence {
 public:
  StoredCache(std::unique_ptr<Kind> store, int32_t max_seq_len)
      : OneSequence(label_of(*store, max_seq_len)), store_(*store) {
    take(std::make_unique<TensorForm>(std::move(store)));
  }

 protected:
  [[nodiscard]] Kind& store() const noexcept { return store_; }
  [[nodiscard]] bool brought_memory() const noexcept override { return true; }

 private:
  Kind& store_;
};

/// A model's cache: a generator's, or a clone of one that a session lends.
class ModelCacheBody final : public OneSequence {
 public:
  ModelCacheBody(const CacheLabel& label, std::unique_ptr<cache::KvCache> cache)
      : OneSequence(label) {
    take(std::make_unique<OwnedForm>(std::move(cache)));
  }
  /// Empty, for copy().
  explicit ModelCacheBody(const OneSequence& other) : OneSequence(other.label()) {}
  [[nodiscard]] bool has_means() const noexcept override {
    return form().model_cache()->traits().has_means;
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override { return copy_of(*this); }
  /// A copy of a model's cache.
  static Result<std::shared_ptr<CacheBody>> copy_of(const OneSequence& other) {
    auto copy = std::make_shared<ModelCacheBody>(other);
    GEN_TRY(copy->copy(other));
    return std::shared_ptr<CacheBody>(std::move(copy));
  }
};

}  // namespace gen::api

// SPDX-License-Identifier: Apache-2.0
// What a kv_cache handle owns. A kind of cache is a file with a class that derives from OneSequence
// or CacheBody and says what it can do by overriding members here, and with the public functions
// that make it or are for it alone.
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

/// What a cache tells of itself outside of calls on it.
struct CacheLabel {
  cache::TensorTraits traits;  // of a model's cache kind, dtype and lossy
  int32_t num_layers = 0;
  int32_t max_seq_len = 0;
};

/// Of a cache that can be given a device's memory.
class TakesGpuMemory {
 public:
  /// Adds those of the device's functions to `callbacks`.
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
  /// Of what the body holds; handles that share this share the flag.
  [[nodiscard]] InUseFlag& in_use() noexcept { return in_use_; }
  /// Why no call may change the cache, of one that is lent out; else null.
  [[nodiscard]] virtual const char* read_only() const noexcept { return nullptr; }
  [[nodiscard]] virtual CacheName name() const noexcept = 0;
  [[nodiscard]] virtual cache::MemoryUse memory() const noexcept = 0;
  /// Bits of kv_cache_capabilities for a cache that may be changed.
  [[nodiscard]] virtual uint32_t capabilities() const noexcept = 0;
  /// Which of a handle's underlying caches the next call is about.
  [[nodiscard]] virtual size_t underlying() const noexcept { return 0; }

  /// The system's unless one was given.
  [[nodiscard]] Allocator& allocator() const noexcept {
    return allocator_ != nullptr ? *allocator_ : system_allocator();
  }
  /// kState unless an allocator may still be given.
  [[nodiscard]] virtual Status takes_allocator() const = 0;
  /// Null: the system's.
  void use_allocator(std::shared_ptr<Allocator> given) {
    memory_ = given != nullptr ? std::make_shared<engine::HostMemory>(*given) : nullptr;
    allocator_ = std::move(given);
  }

  // The family that the cache is of, one of these.
  [[nodiscard]] virtual OneSequence* one_sequence() noexcept { return nullptr; }
  [[nodiscard]] virtual ManySequences* many_sequences() noexcept { return nullptr; }
  // What only some kinds can do; null, or false, for the others.
  [[nodiscard]] virtual TakesGpuMemory* takes_gpu() noexcept { return nullptr; }
  [[nodiscard]] virtual cache::DeviceStore* gpu_rows() noexcept { return nullptr; }
  [[nodiscard]] virtual cache::PagedStore* takes_blocks() noexcept { return nullptr; }
  [[nodiscard]] virtual std::optional<std::span<cache::Block* const>> block_table() const noexcept {
    return std::nullopt;
  }
  /// From any thread.
  [[nodiscard]] virtual cache::TieredStore* tiers() noexcept { return nullptr; }
  /// Whether entries may be means of positions.
  [[nodiscard]] virtual bool has_means() const noexcept { return false; }

 protected:
  /// Of a cache with a given allocator; null: the process' heap.
  [[nodiscard]] engine::HostMemory* host_memory() const noexcept { return memory_.get(); }
  void share_allocator(const CacheBody& other) {
    allocator_ = other.allocator_;
    memory_ = other.memory_;
  }
  CacheLabel label_;

 private:
  std::shared_ptr<Allocator> allocator_;
  std::shared_ptr<engine::HostMemory> memory_;  // of `allocator_`, null with it
  InUseFlag in_use_;
};

/// A cache of one sequence. One without a form takes it from its first write: kv_cache_update makes
/// tensors of it, a model's pass a model's cache. It keeps that form for good.
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
  /// Of those that have one in their form.
  [[nodiscard]] std::optional<std::span<cache::Block* const>> block_table() const noexcept override;

  /// From any thread.
  [[nodiscard]] CacheForm& form() const noexcept { return *form_.load(std::memory_order_acquire); }
  [[nodiscard]] bool shaped() const noexcept { return &form() != &none_; }
  /// Once.
  void take(std::unique_ptr<CacheForm> form) noexcept {
    own_form_ = std::move(form);
    form_.store(own_form_.get(), std::memory_order_release);
  }
  /// Keeps what the form is made of.
  void keep(std::shared_ptr<const void> what) noexcept { keeps_ = std::move(what); }

  /// What the first write makes, of a cache that can be without form.
  [[nodiscard]] virtual Result<Store> make_store(Allocator& memory) const;
  /// The same of a model's pass.
  [[nodiscard]] virtual Result<ModelCache> make_model_cache(
      std::span<const cache::LayerShape> layers, int32_t capacity,
      engine::EngineMemory& memory) const;
  /// In the cache's own memory.
  [[nodiscard]] Result<ModelCache> make_own_model_cache(std::span<const cache::LayerShape> layers,
                                                        int32_t capacity) const;

  /// Positions of a mean, of a cache that has them before it has a form; a small model may make it
  /// fewer.
  [[nodiscard]] virtual int32_t chunk() const noexcept { return 0; }
  /// The same kind with the same content.
  [[nodiscard]] virtual Result<std::shared_ptr<CacheBody>> clone() const = 0;
  /// Why no model can write this cache of tensors, and what to do about it.
  [[nodiscard]] virtual const char* tensors_only() const noexcept {
    return "the cache holds tensors since kv_cache_update or kv_cache_tracing_new";
  }

 protected:
  /// Whether the form's memory came with it, so that no allocator can be set.
  [[nodiscard]] virtual bool brought_memory() const noexcept { return false; }
  /// For clone(): what the other has beside its form.
  void share_settings(const OneSequence& other) {
    share_allocator(other);
    keeps_ = other.keeps_;
  }
  /// For clone(): that, and a copy of the form.
  Status copy(const OneSequence& other);
  /// A form that somebody else owns, and that must stay.
  void lend(CacheForm* form) noexcept { form_.store(form, std::memory_order_release); }

 private:
  std::shared_ptr<const void> keeps_;
  CacheForm none_;
  std::unique_ptr<CacheForm> own_form_;  // null before the first write
  std::atomic<CacheForm*> form_{&none_};
};

/// The label of a cache whose store is there from the start.
CacheLabel label_of(const cache::TensorProvider& store, int32_t max_seq_len);
/// What a handle says of a model's cache.
CacheLabel label_of(const cache::KvCache& cache);

/// A cache whose store is there from the start: the base of such kinds.
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

/// One that a model made: a generator's, and clones of what a session lends.
class ModelCacheBody final : public OneSequence {
 public:
  ModelCacheBody(const CacheLabel& label, std::unique_ptr<cache::KvCache> cache)
      : OneSequence(label) {
    take(std::make_unique<OwnedForm>(std::move(cache)));
  }
  /// Without content, for copy().
  explicit ModelCacheBody(const OneSequence& other) : OneSequence(other.label()) {}
  [[nodiscard]] bool has_means() const noexcept override {
    return form().model_cache()->traits().has_means;
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override { return copy_of(*this); }
  /// A copy of any model's cache.
  static Result<std::shared_ptr<CacheBody>> copy_of(const OneSequence& other) {
    auto copy = std::make_shared<ModelCacheBody>(other);
    GEN_TRY(copy->copy(other));
    return std::shared_ptr<CacheBody>(std::move(copy));
  }
};

}  // namespace gen::api

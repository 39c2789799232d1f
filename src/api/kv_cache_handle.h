// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache. A cache made from C has no shape until its first write, and takes its
// layout from it: kv_cache_update makes a tensor store, gen_model_forward an engine cache. Some
// kinds have their store from the start. A session's cache is lent through the same handle, for
// reading.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/boundary.h"
#include "api/entry.h"
#include "base/allocator.h"
#include "base/home_process.h"
#include "base/in_use.h"
#include "base/status.h"
#include "cache/sequence/cache_trial.h"
#include "cache/sequence/kv_cache.h"
#include "cache/batch/sequence_store.h"
#include "cache/tensor/tensor_provider.h"
#include "engine/memory/host_memory.h"
#include <generate/kv_cache.h>

/// Exactly one of `store`, `owned` and `lent` is set once the cache has its shape; none before.
/// Caches of many sequences have `sequences` instead from the start, unless they went into a
/// wrapper.
struct kv_cache : gen::Postponed {
  gen::cache::TensorTraits traits;      // of the store, made or not; of a lent cache kind and lossy
  const char* engine_format = nullptr;  // what a model's pass makes of it; null: as traits.kind
  int32_t num_layers = 0;
  int32_t max_seq_len = 0;
  std::shared_ptr<gen::Allocator> allocator;        // null: the system's
  std::shared_ptr<gen::engine::HostMemory> memory;  // of `allocator`, null with it
  gen::SharedCallbacks callbacks;                   // of it, and of a pool's
  std::shared_ptr<const void> keeps;                // what `owned` was made of

  using Store = std::unique_ptr<gen::cache::TensorProvider>;
  /// What the first kv_cache_update calls; null where the store is there from the start.
  std::function<gen::Result<Store>(gen::Allocator&)> make_store;
  /// What a model's first pass calls; null where it makes a plain cache of format().
  std::function<gen::Result<std::unique_ptr<gen::cache::KvCache>>(
      std::span<const gen::cache::LayerShape>, int32_t capacity, gen::engine::EngineMemory&)>
      make_engine;
  std::shared_ptr<gen::cache::TensorProvider> store;  // shared with tracing caches around it
  std::unique_ptr<gen::cache::KvCache> owned;
  /// `store` and `owned` as the length getters see them, from any thread; set once.
  std::atomic<const gen::cache::TensorProvider*> seen_store{nullptr};
  std::atomic<const gen::cache::KvCache*> seen_owned{nullptr};
  /// A session may put a new cache in place of its own, so it is asked each time.
  std::function<gen::cache::KvCache*()> lent;
  /// Of a cache lent to a forward function: what its step has planned, which must stay.
  const gen::cache::CachePlan* step = nullptr;
  /// Belongs to what lends it out: for reading only, and not for kv_cache_free.
  bool borrowed = false;
  kv_cache* whole = nullptr;  // what a part shares its in-use flag with
  /// What a tracing cache or a wrapper (in the order of layer types) goes over, lent out.
  std::vector<std::unique_ptr<kv_cache>> underlying;

  std::shared_ptr<gen::cache::SequenceStore> sequences;
  bool in_wrapper = false;
  [[nodiscard]] bool of_many() const { return sequences != nullptr || in_wrapper; }

  gen::HomeProcess home;
  gen::InUseFlag in_call;  // this handle is, which kv_cache_free asks
  /// What it holds is; tracing caches share it with those they go over.
  std::shared_ptr<gen::InUseFlag> own_flag = std::make_shared<gen::InUseFlag>();
  gen::InUseFlag* in_use = own_flag.get();  // a session's flag for a lent cache

  void use_allocator(std::shared_ptr<gen::Allocator> given) {
    callbacks = gen::api::joined({given != nullptr ? given->callbacks() : nullptr});
    memory = given != nullptr ? std::make_shared<gen::engine::HostMemory>(*given) : nullptr;
    allocator = std::move(given);
  }
  [[nodiscard]] gen::cache::KvCache* engine() const {
    return lent != nullptr ? lent() : owned.get();
  }
  /// The name of an engine cache that keeps elements as this one does.
  [[nodiscard]] const char* format() const {
    return engine_format != nullptr ? engine_format : traits.kind;
  }
};

namespace gen::api {

/// A cache during a call on it.
class HeldCache {
 public:
  explicit HeldCache(const kv_cache* cache)
      : whole_(cache->whole != nullptr ? cache->whole : const_cast<kv_cache*>(cache)),
        entry_(whole_->callbacks),
        inside_(entry_.entered("the cache")),
        call_(whole_, &whole_->in_call, end),
        use_(cache->in_use) {}
  [[nodiscard]] Status entered(const char* what) const noexcept {
    GEN_TRY(call_.entered(what));
    GEN_TRY(use_.entered(what));
    return inside_;
  }

 private:
  static void end(kv_cache* cache) { end_handle(cache, cache->callbacks); }

  kv_cache* whole_;
  Entry entry_;
  Status inside_;
  HeldHandle<kv_cache> call_;
  InUseGuard use_;
};

/// What every call on a cache checks first; `body` runs while the cache is held.
template <typename Cache, typename F>
gen_status with_cache(Cache* cache, gen_error* error, F&& body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(cache, "cache"));
    const HeldCache held(cache);
    GEN_TRY(held.entered("the cache"));
    return body(*cache);
  });
}

/// kState for a cache that is lent or borrowed.
Status own(const kv_cache& cache);
/// The child that kv_cache_underlying tells; null where there is none.
const kv_cache* underlying(const kv_cache& cache) noexcept;
/// A handle that a cache lends out, for a part of it that shares its in-use flag.
std::unique_ptr<kv_cache> part_of(const kv_cache& whole);
/// Makes `handle` lend an engine cache within a step that has planned `step`; both must stay.
void lend_in_step(cache::KvCache* cache, const cache::CachePlan* step, kv_cache* handle);

/// kState for a cache of many sequences, which `call` is not for.
Status one_sequence(const kv_cache& cache, const char* call);
/// `call` is for `family`, and this cache is another.
Status other_family(Code code, const char* call, const char* family, const kv_cache& cache);

struct ModelParts;

/// A model in a call that has entered it, whose handle may be freed meanwhile.
struct ModelInCall {
  std::shared_ptr<const ModelParts> parts;
  SharedCallbacks callbacks;
};

/// What a model with these layers makes of a cache without shape, in memory of its allocator or, if
/// it has none, of the process' heap.
Result<std::unique_ptr<cache::KvCache>> make_engine(const kv_cache& cache,
                                                    std::span<const cache::LayerShape> layers,
                                                    int32_t capacity);
/// What the first kv_cache_update makes; the handle keeps it when that has succeeded.
Result<kv_cache::Store> make_store(const kv_cache& cache);

/// kInvalidArgument for a span that cannot be filled.
Status check_span(const kv_cache_span* span);
/// As C sees it, but for struct_size; all zero for a miss.
kv_cache_span span_of(const cache::TensorSpan& from);

/// A handle around a store that is there from the start.
std::unique_ptr<kv_cache> handle_of(kv_cache::Store store, int32_t max_seq_len);

/// The engine form of a cache for one forward pass of a model, made now if the cache has no shape
/// yet, in memory of the model's device if it is on one: then it is the handle's from keep_trial()
/// on. kState for a cache of tensors or of many sequences, kInvalidArgument if it was shaped for
/// other layers. The caller holds the in-use flag for as long as the trial lives.
Result<cache::CacheTrial> open_trial(kv_cache& handle, const ModelInCall& model);
/// What a cache holds on to that got its shape in this pass: nothing, unless it lies on a device.
struct ShapedBy {
  std::shared_ptr<const ModelParts> model;
  SharedCallbacks callbacks;
};
ShapedBy shaped_by(const kv_cache& handle, const ModelInCall& model);
/// The pass has succeeded: the cache keeps its shape and what is in it.
void keep_trial(kv_cache& handle, ShapedBy by, cache::CacheTrial& trial) noexcept;

}  // namespace gen::api

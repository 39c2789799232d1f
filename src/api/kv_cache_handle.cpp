// SPDX-License-Identifier: Apache-2.0
// The engine's side of kv_cache handles. See kv_cache_handle.h; the public functions are in
// kv_cache.cpp.
#include "api/kv_cache_handle.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/caller_struct.h"
#include "api/handles.h"
#include "api/model_handle.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"
#include "cache/tensor/paged_store.h"
#include "cache/tensor/tiered_store.h"
#include "cache/tensor/tracing_store.h"

namespace gen::api {
namespace {

void describe_engine_cache(const cache::KvCache& cache, kv_cache* handle) {
  const cache::CacheTraits& traits = cache.traits();
  // Those that are no format of their own keep float32.
  const bool format = cache::parse_cache_format(traits.kind).ok();
  const bool contiguous = std::string_view(traits.layout) == cache::CacheTraits().layout;
  handle->traits = {.kind = contiguous ? traits.kind : traits.layout,
                    .dtype = format ? traits.kind : "fp32",
                    .lossy = traits.lossy};
  handle->num_layers = static_cast<int32_t>(cache.layers().size());
  handle->max_seq_len = cache.capacity();
}

/// Its engine cannot reach what lies in the host's memory.
bool on_device(const ModelParts& parts) {
  return parts.engine != nullptr && !parts.engine->memory().in_host();
}

Result<std::unique_ptr<cache::KvCache>> make_in(const kv_cache& cache,
                                                std::span<const cache::LayerShape> layers,
                                                int32_t capacity, engine::EngineMemory& memory) {
  if (cache.make_engine != nullptr) return cache.make_engine(layers, capacity, memory);
  return cache::make_cache(cache.format(), layers, capacity, memory);
}

/// Where the model computes.
Result<std::unique_ptr<cache::KvCache>> make_for(const kv_cache& cache, const ModelParts& parts) {
  const model::Model& model = *parts.loaded->model;
  const int32_t capacity = std::min(cache.max_seq_len, model.traits().max_seq_len);
  if (!on_device(parts)) return make_engine(cache, model.layer_shapes(), capacity);
  return cache::make_in_memories(
      model.layer_shapes(), model::memories_of_layers(model, parts.engine->memory()),
      [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
        return make_in(cache, layers, capacity, memory);
      });
}

bool same_shape(const cache::LayerShape& a, const cache::LayerShape& b) {
  return !cache::shape_difference(a, b);
}

/// Why no model can write a cache of tensors, and what to do about it.
Status tensors_only(const kv_cache& handle) {
  constexpr struct {
    std::string_view kind;
    const char* message;
  } kinds[] = {
      {cache::kPagedTraits.kind,
       "a cache of kv_cache_paged_new holds tensors; gen_options_set_paged_kv and "
       "kv_cache_generator_new make a paged one for models"},
      {cache::TieredStore::kKind,
       "a cache of kv_cache_tiered_new holds tensors; gen_options_set_tiered_kv and "
       "kv_cache_generator_new make a tiered one for models"},
      {cache::TracingStore::kKind,
       "a tracing cache records tensors; gen_options_set_tracer records the passes of a model"},
  };
  for (const auto& each : kinds) {
    if (handle.traits.kind == each.kind) return {Code::kState, each.message};
  }
  return {Code::kState, "the cache holds tensors since kv_cache_update or kv_cache_tracing_new"};
}

}  // namespace

Status own(const kv_cache& cache) {
  if (cache.step != nullptr) return {Code::kState, "a cache within a step is for reading only"};
  if (cache.lent != nullptr) return {Code::kState, "a session's cache is for reading only"};
  if (cache.borrowed) return {Code::kState, "a borrowed cache is for reading only"};
  return {};
}

const kv_cache* underlying(const kv_cache& cache) noexcept {
  if (cache.underlying.empty()) return nullptr;
  size_t which = 0;
  if (cache.sequences != nullptr) {
    which = cache.sequences->layer_types()->layer_type();
  }
  return cache.underlying[which].get();
}

std::unique_ptr<kv_cache> part_of(const kv_cache& whole) {
  auto made = std::make_unique<kv_cache>();
  made->borrowed = true;
  made->whole = const_cast<kv_cache*>(&whole);
  made->in_use = whole.in_use;
  return made;
}

void lend_in_step(cache::KvCache* cache, const cache::CachePlan* step, kv_cache* handle) {
  describe_engine_cache(*cache, handle);
  handle->traits.can_clone = false;
  handle->lent = [cache] { return cache; };
  handle->step = step;
  handle->borrowed = true;
}

Status one_sequence(const kv_cache& cache, const char* call) {
  if (!cache.of_many()) return {};
  return other_family(Code::kState, call, "caches of one sequence (fp32, paged, ...)", cache);
}

Status other_family(Code code, const char* call, const char* family, const kv_cache& cache) {
  const char* whose = cache.lent != nullptr ? "session's " : "";
  const char* kind = cache.traits.kind;
  // Also where the cache is not held.
  if (const auto* engine = cache.seen_owned.load(std::memory_order_acquire); engine != nullptr) {
    whose = "model's ";
    kind = engine->traits().layout;
  }
  return error(code, "%s is for %s; this is a %s%s cache", call, family, whose, kind);
}

Result<kv_cache::Store> make_store(const kv_cache& cache) {
  return cache.make_store(cache.allocator != nullptr ? *cache.allocator : system_allocator());
}

Result<std::unique_ptr<cache::KvCache>> make_engine(const kv_cache& cache,
                                                    std::span<const cache::LayerShape> layers,
                                                    int32_t capacity) {
  return make_in(cache, layers, capacity,
                 cache.memory != nullptr ? *cache.memory : engine::system_memory());
}

Status check_span(const kv_cache_span* span) {
  GEN_TRY(not_null(span, "span"));
  return check_struct(*span);
}

kv_cache_span span_of(const cache::TensorSpan& from) {
  kv_cache_span span = {};
  if (from.k == nullptr) return span;
  span.type = from.type == DType::kF32 ? KV_CACHE_TYPE_F32 : KV_CACHE_TYPE_F16;
  span.k = from.k;
  span.v = from.v;
  span.batch = from.shape.batch;
  span.seq = from.shape.seq;
  span.k_dim = span.v_dim = from.shape.dim;
  span.k_batch_stride = span.v_batch_stride = from.batch_stride;
  span.k_seq_stride = span.v_seq_stride = from.seq_stride;
  return span;
}

std::unique_ptr<kv_cache> handle_of(kv_cache::Store store, int32_t max_seq_len) {
  auto made = std::make_unique<kv_cache>();
  made->traits = store->traits();
  made->num_layers = store->num_layers();
  made->max_seq_len = max_seq_len;
  made->seen_store = store.get();
  made->store = std::move(store);
  return made;
}

Result<cache::CacheTrial> open_trial(kv_cache& handle, const ModelInCall& model) {
  const auto layers = model.parts->loaded->model->layer_shapes();
  GEN_TRY(one_sequence(handle, "gen_model_forward"));
  if (handle.store != nullptr) return tensors_only(handle);
  if (static_cast<size_t>(handle.num_layers) != layers.size()) {
    return error(Code::kInvalidArgument, "a cache of %d layers for a model of %zu layers",
                 handle.num_layers, layers.size());
  }
  cache::KvCache* const engine = handle.engine();
  if (engine == nullptr) {
    GEN_ASSIGN(auto made, make_for(handle, *model.parts));
    return cache::CacheTrial(std::move(made));
  }
  const auto held = engine->layers();
  if (!std::equal(held.begin(), held.end(), layers.begin(), layers.end(), same_shape)) {
    return Status(Code::kInvalidArgument, "the cache was shaped by another model's layers");
  }
  // Caches of a C handle can always be cut, see KV_CACHE_CAN_TRUNCATE.
  return cache::CacheTrial(*engine);
}

ShapedBy shaped_by(const kv_cache& handle, const ModelInCall& model) {
  if (handle.owned != nullptr || !on_device(*model.parts)) return {};
  CallbackList all;
  for (const SharedCallbacks& some : {handle.callbacks, model.callbacks}) {
    if (some != nullptr) all.insert(all.end(), some->begin(), some->end());
  }
  return {model.parts, all.empty() ? nullptr : std::make_shared<const CallbackList>(all)};
}

void keep_trial(kv_cache& handle, ShapedBy by, cache::CacheTrial& trial) noexcept {
  auto made = trial.keep();
  if (made == nullptr) return;
  if (by.model != nullptr) {
    handle.keeps = std::move(by.model);
    handle.callbacks = std::move(by.callbacks);
  }
  handle.owned = std::move(made);
  handle.seen_owned.store(handle.owned.get(), std::memory_order_release);
}

void describe_engine_cache(const generate::Generator& generator, const cache::KvCache& cache,
                           kv_cache* handle) {
  describe_engine_cache(cache, handle);
  handle->keeps = generator.shared_from_this();
}

void lend_cache(generate::Session& session, kv_cache* handle) {
  describe_engine_cache(session.generator(), session.cache(), handle);
  // Readers get a const kv_cache; the functions that write refuse a lent one.
  handle->lent = [&session] { return const_cast<cache::KvCache*>(&session.cache()); };
  handle->in_use = &session.in_use();
}

}  // namespace gen::api

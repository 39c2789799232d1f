// SPDX-License-Identifier: Apache-2.0
// kv_cache.h of the C API. A cache is in one of three states, see kv_cache_handle.h: without shape,
// a tensor store, or an engine cache (its own or a session's); reading works on all of them.
#include <generate/kv_cache.h>

#include <optional>
#include <string_view>
#include <utility>

#include "api/boundary.h"
#include "api/c_allocator.h"
#include "api/caller_struct.h"
#include "api/kv_cache_handle.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/staged_entries.h"
#include "cache/tensor/compressed_store.h"
#include "cache/tensor/layered_store.h"
#include "cache/tensor/quant_store.h"
#include "cache/tensor/tensor_kinds.h"
#include "cache/tensor/tensor_store.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::one_sequence;
using gen::api::own;
using gen::api::with_cache;
using gen::cache::CachePlan;
using gen::cache::CompressedStore;
using gen::cache::KvCache;
using gen::cache::TensorProvider;
using gen::cache::TensorShape;
using gen::engine::KvOrder;

gen_status make(const gen::cache::TensorTraits& traits, int32_t layers, int32_t max_seq_len,
                kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(gen::cache::LayeredStore::check(layers, max_seq_len));
    const gen::cache::TensorKind& row = *gen::cache::find_tensor_kind(traits.kind);
    auto made = std::make_unique<kv_cache>();
    made->traits = row.traits;
    made->num_layers = layers;
    made->max_seq_len = max_seq_len;
    made->make_store = [create = row.create, layers, max_seq_len](gen::Allocator& allocator) {
      return create(layers, max_seq_len, allocator);
    };
    *out = made.release();
    return {};
  });
}

/// The committed entries of an engine cache; nothing for a layer that it does not have, or an empty
/// one.
Result<std::optional<CachePlan>> held_entries(const kv_cache& cache, int32_t layer) {
  KvCache& engine = *cache.engine();
  const bool there = layer >= 0 && static_cast<size_t>(layer) < engine.layers().size();
  if (!there || engine.length() == 0) return std::optional<CachePlan>();
  if (cache.step != nullptr) return std::optional(*cache.step);  // any other would end the step's
  GEN_ASSIGN(const CachePlan plan, engine.plan(0));
  return std::optional(plan);
}

struct Shapes {
  TensorShape k;
  TensorShape v;
};

Result<Shapes> shapes_of(const kv_cache& cache, int32_t layer) {
  if (cache.store != nullptr) return Shapes{cache.store->shape(layer), cache.store->shape(layer)};
  if (cache.engine() == nullptr) return Shapes();
  GEN_ASSIGN(const auto held, held_entries(cache, layer));
  if (!held.has_value()) return Shapes();
  const gen::cache::LayerShape& shape = cache.engine()->layers()[static_cast<size_t>(layer)];
  return Shapes{{shape.kv_heads, held->start, shape.k_dim},
                {shape.kv_heads, held->start, shape.v_dim}};
}

size_t elements(const TensorShape& shape) {
  return static_cast<size_t>(shape.batch) * static_cast<size_t>(shape.seq) *
         static_cast<size_t>(shape.dim);
}

void write_shape(const TensorShape& shape, int32_t* out) {
  if (out == nullptr) return;
  out[0] = shape.batch;
  out[1] = shape.seq;
  out[2] = shape.dim;
}

Status fill_span(const kv_cache& cache, int32_t layer, kv_cache_span* span) {
  if (cache.store == nullptr) {
    if (cache.engine() == nullptr) return {};
    GEN_ASSIGN(const auto held, held_entries(cache, layer));
    if (!held.has_value()) return {};
    return gen::error(Code::kUnsupported,
                      "layer %d was written by a model and has no strides; kv_cache_get copies it",
                      layer);
  }
  const gen::cache::TensorViews* const views = cache.store->views();
  if (views == nullptr) {
    return gen::error(Code::kUnsupported, "a %s cache has no strides; kv_cache_get copies it",
                      cache.traits.kind);
  }
  *span = gen::api::span_of(views->view(layer));
  return {};
}

Status truncate(kv_cache& cache, int32_t n, const char* call) {
  GEN_TRY(own(cache));
  GEN_TRY(one_sequence(cache, call));
  if (cache.store != nullptr) return cache.store->truncate(n);
  return cache.owned != nullptr ? cache.owned->truncate(n) : Status();
}

/// Length of an engine cache as the getters may ask for it; -1 if it is none.
int32_t engine_length(const kv_cache& cache) {
  if (cache.lent != nullptr) return cache.lent()->length();
  const KvCache* owned = cache.seen_owned.load(std::memory_order_acquire);
  return owned != nullptr ? owned->length() : -1;
}

Status clone(const kv_cache& cache, kv_cache* copy) {
  copy->traits = cache.traits;
  copy->engine_format = cache.engine_format;
  copy->num_layers = cache.num_layers;
  copy->max_seq_len = cache.max_seq_len;
  copy->allocator = cache.allocator;
  copy->memory = cache.memory;
  copy->callbacks = cache.callbacks;
  copy->keeps = cache.keeps;
  copy->make_store = cache.make_store;
  copy->make_engine = cache.make_engine;
  if (cache.store != nullptr) {
    const gen::cache::TensorCopies* const copies = cache.store->copies();
    if (copies == nullptr) {
      return gen::error(Code::kUnsupported, "a %s cache has no clone; what it wraps may have",
                        cache.traits.kind);
    }
    GEN_ASSIGN(copy->store, copies->clone());
  } else if (KvCache* engine = cache.engine(); engine != nullptr) {
    GEN_ASSIGN(copy->owned, engine->fork());
  }
  copy->seen_store = copy->store.get();
  copy->seen_owned = copy->owned.get();
  return {};
}

}  // namespace

gen_status kv_cache_new(int32_t layers, int32_t max_seq_len, kv_cache** out, gen_error* error) {
  return make(gen::cache::kFp32Traits, layers, max_seq_len, out, error);
}

gen_status kv_cache_fp16_new(int32_t layers, int32_t max_seq_len, kv_cache** out,
                             gen_error* error) {
  return make(gen::cache::kFp16Traits, layers, max_seq_len, out, error);
}

gen_status kv_cache_fp8_new(int32_t layers, int32_t max_seq_len, kv_cache** out, gen_error* error) {
  return make(gen::cache::kFp8Traits, layers, max_seq_len, out, error);
}

gen_status kv_cache_q4_new(int32_t layers, int32_t max_seq_len, kv_cache** out, gen_error* error) {
  return make(gen::cache::kQ4Traits, layers, max_seq_len, out, error);
}

gen_status kv_cache_q3_new(int32_t layers, int32_t max_seq_len, kv_cache** out, gen_error* error) {
  return make(gen::cache::kQ3Traits, layers, max_seq_len, out, error);
}

gen_status kv_cache_compressed_new(int32_t layers, int32_t heads, int32_t dim, int32_t chunk_size,
                                   kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    if (heads < 0 || dim < 0) {
      return gen::error(Code::kInvalidArgument, "%d heads of %d elements: hints are 0 and up",
                        heads, dim);
    }
    // An empty store is cheap, and checks the rest.
    GEN_TRY(CompressedStore::create(layers, chunk_size, gen::system_allocator()).status());
    auto made = std::make_unique<kv_cache>();
    made->traits = gen::cache::kCompressedTraits;
    made->num_layers = layers;
    made->max_seq_len = INT32_MAX;
    made->make_store = [layers,
                        chunk_size](gen::Allocator& allocator) -> gen::Result<kv_cache::Store> {
      GEN_ASSIGN(auto store, CompressedStore::create(layers, chunk_size, allocator));
      return kv_cache::Store(std::move(store));
    };
    made->make_engine = [chunk_size](std::span<const gen::cache::LayerShape> shapes,
                                     int32_t capacity, gen::engine::EngineMemory& memory) {
      return gen::cache::make_compressed_cache(shapes, capacity, chunk_size, memory);
    };
    *out = made.release();
    return {};
  });
}

gen_status kv_cache_compressed_entry(const kv_cache* cache, int32_t layer, int32_t entry,
                                     int32_t* first, int32_t* positions, gen_error* error) {
  for (int32_t* number : {first, positions}) {
    if (number != nullptr) *number = 0;
  }
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    const char* kind = c.store != nullptr ? c.store->bare().traits().kind : c.traits.kind;
    if (std::string_view(kind) != gen::cache::kCompressedTraits.kind) {
      return gen::api::other_family(Code::kInvalidArgument, "kv_cache_compressed_entry",
                                    "compressed caches", c);
    }
    gen::cache::EntryPositions found = {0, 0};
    if (c.store != nullptr) {
      const auto& store = static_cast<const CompressedStore&>(c.store->bare());
      found.count = store.entry_positions(layer, entry, &found.first);
    } else if (const KvCache* engine = c.engine(); engine != nullptr && layer >= 0 &&
                                                   layer < c.num_layers && entry >= 0 &&
                                                   entry < engine->entries()) {
      found = engine->positions_of(entry);
    }
    if (found.count == 0) {
      return gen::error(Code::kOutOfRange, "layer %d has no entry %d", layer, entry);
    }
    if (first != nullptr) *first = found.first;
    if (positions != nullptr) *positions = found.count;
    return {};
  });
}

gen_status kv_cache_set_allocator(kv_cache* cache, const gen_allocator* allocator,
                                  gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    if (c.store != nullptr && c.make_store == nullptr) {
      return {Code::kState, "the cache's memory is not its own, see how it was made"};
    }
    if (c.in_wrapper) return {Code::kState, "the cache has become part of a wrapper"};
    if (c.sequences != nullptr && c.sequences->begun()) {
      return {Code::kState, "the cache is initialised; its allocator is set before that"};
    }
    if (c.store != nullptr || c.owned != nullptr) {
      return {Code::kState, "the cache has been written to; its allocator is set before that"};
    }
    std::shared_ptr<gen::Allocator> wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::wrap_allocator(*allocator));
    }
    c.use_allocator(std::move(wrapped));
    return {};
  });
}

gen_status kv_cache_update(kv_cache* cache, int32_t layer, const float* k, const float* v,
                           int32_t batch, int32_t seq, int32_t dim, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    GEN_TRY(one_sequence(c, "kv_cache_update"));
    if (c.owned != nullptr) {
      return {Code::kState, "the cache was filled by gen_model_forward"};
    }
    if (layer < 0 || layer >= c.num_layers) {
      return gen::error(Code::kOutOfRange, "layer %d outside a cache of %d layers", layer,
                        c.num_layers);
    }
    if (seq != 0) {
      GEN_TRY(not_null(k, "k"));
      GEN_TRY(not_null(v, "v"));
    }
    const TensorShape shape = {batch, seq, dim};
    if (c.store != nullptr) return c.store->update(layer, k, v, shape);
    // The first write: a store that takes it becomes the cache's shape, any other is dropped.
    GEN_ASSIGN(auto store, gen::api::make_store(c));
    GEN_TRY(store->update(layer, k, v, shape));
    if (seq == 0) return {};
    c.store = std::move(store);
    c.seen_store.store(c.store.get(), std::memory_order_release);
    return {};
  });
}

gen_status kv_cache_get(const kv_cache* cache, int32_t layer, float* k, size_t k_capacity, float* v,
                        size_t v_capacity, int32_t k_shape[3], int32_t v_shape[3],
                        gen_error* error) {
  write_shape({}, k_shape);
  write_shape({}, v_shape);
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(one_sequence(c, "kv_cache_get"));
    GEN_ASSIGN(const Shapes shapes, shapes_of(c, layer));
    write_shape(shapes.k, k_shape);
    write_shape(shapes.v, v_shape);
    if (k != nullptr && elements(shapes.k) > k_capacity) {
      return gen::error(Code::kOutOfRange, "%zu keys do not fit a buffer of %zu",
                        elements(shapes.k), k_capacity);
    }
    if (v != nullptr && elements(shapes.v) > v_capacity) {
      return gen::error(Code::kOutOfRange, "%zu values do not fit a buffer of %zu",
                        elements(shapes.v), v_capacity);
    }
    if (c.store != nullptr) {
      const Status read = c.store->get(layer, k, v);
      if (!read.ok()) {
        write_shape({}, k_shape);
        write_shape({}, v_shape);
      }
      return read;
    }
    if (elements(shapes.k) > 0) {
      GEN_ASSIGN(const auto held, held_entries(c, layer));
      if (!held.has_value()) return {};
      if (k != nullptr) {
        GEN_TRY(gen::cache::decode_entries(*c.engine(), layer, *held, KvOrder::kKeys, k));
      }
      if (v != nullptr) {
        GEN_TRY(gen::cache::decode_entries(*c.engine(), layer, *held, KvOrder::kValues, v));
      }
    }
    return {};
  });
}

gen_status kv_cache_view(const kv_cache* cache, int32_t layer, kv_cache_span* span,
                         gen_error* error) {
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(gen::api::check_span(span));
    GEN_TRY(one_sequence(c, "kv_cache_view"));
    kv_cache_span filled = {};
    GEN_TRY(fill_span(c, layer, &filled));
    gen::api::write_struct(filled, span);
    return {};
  });
}

int32_t kv_cache_seq_len(const kv_cache* cache) {
  if (cache == nullptr) return 0;
  const TensorProvider* store = cache->seen_store.load(std::memory_order_acquire);
  if (store != nullptr) return store->seq_len();
  const int32_t length = engine_length(*cache);
  return length > 0 ? length : 0;
}

int32_t kv_cache_layer_seq_len(const kv_cache* cache, int32_t layer) {
  if (cache == nullptr || layer < 0 || layer >= cache->num_layers) return 0;
  const TensorProvider* store = cache->seen_store.load(std::memory_order_acquire);
  if (store != nullptr) return store->layer_seq_len(layer);
  const int32_t length = engine_length(*cache);
  return length > 0 ? length : 0;
}

int32_t kv_cache_kv_len(const kv_cache* cache, int32_t layer) {
  if (cache == nullptr) return 0;
  const TensorProvider* store = cache->seen_store.load(std::memory_order_acquire);
  if (store != nullptr) return store->kv_len(layer);
  if (layer < 0 || layer >= cache->num_layers) return 0;
  const KvCache* engine =
      cache->lent != nullptr ? cache->lent() : cache->seen_owned.load(std::memory_order_acquire);
  return engine != nullptr ? engine->entries() : 0;
}

int32_t kv_cache_num_layers(const kv_cache* cache) {
  return cache != nullptr ? cache->num_layers : 0;
}

int32_t kv_cache_max_seq_len(const kv_cache* cache) {
  if (cache == nullptr) return 0;
  const KvCache* owned = cache->seen_owned.load(std::memory_order_acquire);
  return owned != nullptr ? owned->capacity() : cache->max_seq_len;
}

gen_status kv_cache_truncate(kv_cache* cache, int32_t n, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) { return truncate(c, n, "kv_cache_truncate"); });
}

gen_status kv_cache_reset(kv_cache* cache, gen_error* error) {
  return with_cache(cache, error, [](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    if (c.store != nullptr) return c.store->reset();
    return truncate(c, 0, "kv_cache_reset");
  });
}

gen_status kv_cache_memory_bytes(const kv_cache* cache, size_t* resident, size_t* payload,
                                 size_t* metadata, gen_error* error) {
  for (size_t* out : {resident, payload, metadata}) {
    if (out != nullptr) *out = 0;
  }
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    gen::cache::MemoryUse use;
    if (c.sequences != nullptr) {
      use = c.sequences->memory();
    } else if (c.store != nullptr) {
      use = c.store->memory();
    } else if (const KvCache* engine = c.engine(); engine != nullptr) {
      use = engine->memory();
    }
    if (resident != nullptr) *resident = use.resident;
    if (payload != nullptr) *payload = use.payload;
    if (metadata != nullptr) *metadata = use.metadata + sizeof(kv_cache);
    return {};
  });
}

const char* kv_cache_kind(const kv_cache* cache) {
  return cache != nullptr ? cache->traits.kind : nullptr;
}

const char* kv_cache_dtype(const kv_cache* cache) {
  return cache != nullptr ? cache->traits.dtype : nullptr;
}

const kv_cache* kv_cache_underlying(const kv_cache* cache) {
  return cache != nullptr ? gen::api::underlying(*cache) : nullptr;
}

uint32_t kv_cache_capabilities(const kv_cache* cache) {
  if (cache == nullptr || cache->of_many()) return 0;
  const gen::cache::TensorTraits& traits = cache->traits;
  uint32_t bits = cache->lent != nullptr || cache->borrowed ? 0 : KV_CACHE_CAN_TRUNCATE;
  if (traits.can_clone) bits |= KV_CACHE_CAN_CLONE;
  const bool is_tensors = cache->lent == nullptr && cache->seen_owned.load() == nullptr;
  if (traits.can_view && is_tensors) bits |= KV_CACHE_CAN_VIEW;
  if (traits.has_full_buffer && is_tensors) bits |= KV_CACHE_HAS_FULL_BUFFER;
  if (traits.one_row_one_result) bits |= KV_CACHE_ONE_ROW_ONE_RESULT;
  return bits;
}

int32_t kv_cache_is_lossy(const kv_cache* cache) {
  return cache != nullptr && cache->traits.lossy ? 1 : 0;
}

gen_status kv_cache_clone(const kv_cache* cache, kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(one_sequence(c, "kv_cache_clone"));
    if (c.step != nullptr) return {Code::kUnsupported, "a cache within a step has no clone"};
    auto copy = std::make_unique<kv_cache>();
    GEN_TRY(clone(c, copy.get()));
    *out = copy.release();
    return {};
  });
}

void kv_cache_free(kv_cache* cache) {
  if (!gen::api::usable(cache) || cache->lent != nullptr || cache->borrowed) return;
  if (cache->in_call.retire()) gen::api::end_handle(cache, cache->callbacks);
}

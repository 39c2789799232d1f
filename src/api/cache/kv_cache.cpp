// SPDX-License-Identifier: Apache-2.0
// Functions of kv_cache.h for caches of any kind. The functions that make caches are in the files
// of their kinds.
#include <generate/kv_cache.h>

#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/c_allocator.h"
#include "api/boundary/caller_struct.h"
#include "api/cache/kv_cache_handle.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::CacheForm;
using gen::api::LayerShapes;
using gen::api::not_null;
using gen::api::one_sequence;
using gen::api::OneSequence;
using gen::api::own;
using gen::api::with_cache;
using gen::cache::TensorShape;

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

/// May be called from any thread. Null if the cache is not of one sequence.
const CacheForm* form_of(const kv_cache* cache) {
  OneSequence* const body = cache != nullptr ? cache->body->one_sequence() : nullptr;
  return body != nullptr ? &body->form() : nullptr;
}

/// The same; null if the cache does not have the layer.
const CacheForm* form_of(const kv_cache* cache, int32_t layer) {
  const CacheForm* const form = form_of(cache);
  return form != nullptr && layer >= 0 && layer < cache->body->label().num_layers ? form : nullptr;
}

}  // namespace

gen_status kv_cache_set_allocator(kv_cache* cache, const gen_allocator* allocator,
                                  gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    GEN_TRY(c.body->takes_allocator());
    std::shared_ptr<gen::Allocator> wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::wrap_allocator(*allocator));
    }
    auto callbacks = gen::api::joined({wrapped != nullptr ? wrapped->callbacks() : nullptr});
    c.body->use_allocator(std::move(wrapped));
    c.callbacks = std::move(callbacks);
    return {};
  });
}

gen_status kv_cache_update(kv_cache* cache, int32_t layer, const float* k, const float* v,
                           int32_t batch, int32_t seq, int32_t dim, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    GEN_ASSIGN(OneSequence* const body, one_sequence(c, "kv_cache_update"));
    GEN_TRY(body->form().takes_rows());
    const int32_t layers = body->label().num_layers;
    if (layer < 0 || layer >= layers) {
      return gen::error(Code::kOutOfRange, "layer %d outside a cache of %d layers", layer, layers);
    }
    if (seq != 0) {
      GEN_TRY(not_null(k, "k"));
      GEN_TRY(not_null(v, "v"));
    }
    const TensorShape shape = {batch, seq, dim};
    if (body->shaped()) return body->form().tensors()->update(layer, k, v, shape);
    // The first write: if the store accepts it, it becomes the cache's form, otherwise it is
    // dropped.
    GEN_ASSIGN(auto store, body->make_store(body->allocator()));
    auto form = std::make_unique<gen::api::TensorForm>(std::move(store));
    GEN_TRY(form->tensors()->update(layer, k, v, shape));
    if (seq != 0) body->take(std::move(form));
    return {};
  });
}

gen_status kv_cache_get(const kv_cache* cache, int32_t layer, float* k, size_t k_capacity, float* v,
                        size_t v_capacity, int32_t k_shape[3], int32_t v_shape[3],
                        gen_error* error) {
  write_shape({}, k_shape);
  write_shape({}, v_shape);
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_ASSIGN(const OneSequence* const body, one_sequence(c, "kv_cache_get"));
    const CacheForm& form = body->form();
    GEN_ASSIGN(const LayerShapes shapes, form.shapes(layer));
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
    const Status read = form.get(layer, k, v);
    if (!read.ok()) {
      write_shape({}, k_shape);
      write_shape({}, v_shape);
    }
    return read;
  });
}

gen_status kv_cache_view(const kv_cache* cache, int32_t layer, kv_cache_span* span,
                         gen_error* error) {
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(gen::api::check_span(span));
    GEN_ASSIGN(const OneSequence* const body, one_sequence(c, "kv_cache_view"));
    GEN_ASSIGN(const auto view, body->form().view(layer));
    gen::api::write_struct(gen::api::span_of(view), span);
    return {};
  });
}

int32_t kv_cache_seq_len(const kv_cache* cache) {
  const CacheForm* const form = form_of(cache);
  return form != nullptr ? form->seq_len() : 0;
}

int32_t kv_cache_layer_seq_len(const kv_cache* cache, int32_t layer) {
  const CacheForm* const form = form_of(cache, layer);
  return form != nullptr ? form->layer_seq_len(layer) : 0;
}

int32_t kv_cache_kv_len(const kv_cache* cache, int32_t layer) {
  const CacheForm* const form = form_of(cache, layer);
  return form != nullptr ? form->kv_len(layer) : 0;
}

int32_t kv_cache_num_layers(const kv_cache* cache) {
  return cache != nullptr ? cache->body->label().num_layers : 0;
}

int32_t kv_cache_max_seq_len(const kv_cache* cache) {
  const CacheForm* const form = form_of(cache);
  return form != nullptr ? form->max_seq_len(cache->body->label()) : 0;
}

gen_status kv_cache_truncate(kv_cache* cache, int32_t n, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    GEN_ASSIGN(OneSequence* const body, one_sequence(c, "kv_cache_truncate"));
    GEN_TRY(body->form().truncate(n));
    if (!body->form().holds_positions()) body->take_state(nullptr, nullptr);
    return {};
  });
}

gen_status kv_cache_reset(kv_cache* cache, gen_error* error) {
  return with_cache(cache, error, [](kv_cache& c) -> Status {
    GEN_TRY(own(c));
    GEN_ASSIGN(OneSequence* const body, one_sequence(c, "kv_cache_reset"));
    GEN_TRY(body->form().reset());
    body->take_state(nullptr, nullptr);
    return {};
  });
}

gen_status kv_cache_memory_bytes(const kv_cache* cache, size_t* resident, size_t* payload,
                                 size_t* metadata, gen_error* error) {
  for (size_t* out : {resident, payload, metadata}) {
    if (out != nullptr) *out = 0;
  }
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    const gen::cache::MemoryUse use = c.body->memory();
    if (resident != nullptr) *resident = use.resident;
    if (payload != nullptr) *payload = use.payload;
    if (metadata != nullptr) *metadata = use.metadata + sizeof(kv_cache) + sizeof(OneSequence);
    return {};
  });
}

const char* kv_cache_kind(const kv_cache* cache) {
  return cache != nullptr ? cache->body->label().traits.kind : nullptr;
}

const char* kv_cache_dtype(const kv_cache* cache) {
  return cache != nullptr ? cache->body->label().traits.dtype : nullptr;
}

const kv_cache* kv_cache_underlying(const kv_cache* cache) {
  if (cache == nullptr || cache->underlying.empty()) return nullptr;
  return cache->underlying[cache->body->underlying()].get();
}

uint32_t kv_cache_capabilities(const kv_cache* cache) {
  if (cache == nullptr) return 0;
  const uint32_t bits = cache->body->capabilities();
  return cache->borrowed ? bits & ~uint32_t{KV_CACHE_CAN_TRUNCATE} : bits;
}

int32_t kv_cache_is_lossy(const kv_cache* cache) {
  return cache != nullptr && cache->body->label().traits.lossy ? 1 : 0;
}

gen_status kv_cache_clone(const kv_cache* cache, kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const OneSequence* const body, one_sequence(c, "kv_cache_clone"));
    GEN_ASSIGN(auto copy, body->clone());
    auto made = gen::api::handle_of(std::move(copy));
    made->callbacks = (c.whole != nullptr ? *c.whole : c).callbacks;
    *out = made.release();
    return {};
  });
}

void kv_cache_free(kv_cache* cache) {
  if (!gen::api::usable(cache) || cache->borrowed) return;
  if (cache->in_call.retire()) gen::api::end_handle(cache, cache->callbacks);
}

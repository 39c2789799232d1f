// SPDX-License-Identifier: Apache-2.0
// kv_cache_tensor.h of the C API. No engine of this build has a device, so tensor caches are tensor
// stores on the host whatever model they are for, and have no counters.
#include <generate/kv_cache_tensor.h>

#include <memory>
#include <utility>

#include "api/boundary.h"
#include "api/caller_struct.h"
#include "api/kv_cache_handle.h"
#include "api/model_handle.h"
#include "cache/element_type.h"
#include "cache/tensor/tensor_store.h"

namespace {

using gen::Code;
using gen::DType;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::one_sequence;
using gen::api::with_cache;
using gen::cache::TensorStore;
using gen::cache::TensorTraits;

/// NULL is the first of those that a tensor store keeps.
Result<DType> find_type(const char* dtype) {
  if (dtype == nullptr) return TensorStore::kTypes[0];
  return gen::cache::find_element_type(dtype, TensorStore::kTypes, "a tensor cache");
}

Status fill_full(const kv_cache& cache, int32_t layer, kv_cache_span* span) {
  gen::cache::TensorSpan found;
  if (const gen::cache::KvCache* engine = cache.engine(); engine != nullptr) {
    if (engine->length() > 0 && layer >= 0 && layer < cache.num_layers) {
      return gen::error(Code::kUnsupported,
                        "layer %d was written by a model and is no tensor; kv_cache_get copies it",
                        layer);
    }
  } else if (!cache.traits.has_full_buffer) {
    return gen::error(Code::kUnsupported, "a %s cache has no buffers of a fixed shape",
                      cache.traits.kind);
  } else if (cache.store != nullptr) {
    found = cache.store->buffers()->full_buffer(layer);
  }
  gen::api::write_struct(gen::api::span_of(found), span);
  return {};
}

}  // namespace

gen_status kv_cache_tensor_new(const gen_model* model, int32_t layers, int32_t max_seq_len,
                               const char* dtype, kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    const int32_t own = model != nullptr ? model->config.cache_layers : layers;
    const int32_t wanted = model != nullptr && layers == 0 ? own : layers;
    GEN_TRY(TensorStore::check(wanted, max_seq_len));
    if (wanted != own) {
      return gen::error(Code::kInvalidArgument, "a cache of %d layers for a model of %d", wanted,
                        own);
    }
    GEN_ASSIGN(const DType type, find_type(dtype));
    const TensorTraits& traits = TensorStore::device_traits(type);
    auto made = std::make_unique<kv_cache>();
    made->traits = traits;
    made->engine_format = gen::cache::element_type_name(type);
    made->num_layers = wanted;
    made->max_seq_len = max_seq_len;
    made->make_store = [type, &traits, wanted,
                        max_seq_len](gen::Allocator& allocator) -> Result<kv_cache::Store> {
      GEN_ASSIGN(auto store, TensorStore::create(type, wanted, max_seq_len, allocator, &traits));
      return kv_cache::Store(std::move(store));
    };
    *out = made.release();
    return {};
  });
}

gen_status kv_cache_full_buffer(const kv_cache* cache, int32_t layer, kv_cache_span* span,
                                gen_error* error) {
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(gen::api::check_span(span));
    GEN_TRY(one_sequence(c, "kv_cache_full_buffer"));
    return fill_full(c, layer, span);
  });
}

const int32_t* kv_cache_seq_len_device_ptr(const kv_cache* /*cache*/) { return nullptr; }

const int32_t* kv_cache_counter_device_ptr(const kv_cache* /*cache*/) { return nullptr; }

gen_status kv_cache_sync_counter(kv_cache* cache, gen_error* error) {
  return with_cache(cache, error, [](kv_cache& c) -> Status {
    GEN_TRY(gen::api::own(c));
    return gen::error(Code::kState, "a %s cache has no counter on a device", c.traits.kind);
  });
}

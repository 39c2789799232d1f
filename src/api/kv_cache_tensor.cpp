// SPDX-License-Identifier: Apache-2.0
// kv_cache_tensor.h of the C API. Tensor caches are tensor stores on the host, whatever model they
// are for, until they are given a device's memory.
#include <generate/kv_cache_tensor.h>

#include <memory>
#include <string_view>
#include <utility>

#include "api/boundary.h"
#include "api/c_gpu_allocator.h"
#include "api/caller_struct.h"
#include "api/kv_cache_handle.h"
#include "api/model_handle.h"
#include "cache/element_type.h"
#include "cache/tensor/device_store.h"
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
using gen::cache::DeviceStore;
using gen::cache::TensorCounters;
using gen::cache::TensorStore;
using gen::cache::TensorTraits;

Result<DType> find_type(const char* dtype) {
  return gen::cache::element_type_or_first(dtype, TensorStore::kTypes, "a tensor cache");
}

/// Null without a device.
const TensorCounters* counters_of(const kv_cache* cache) {
  const gen::cache::TensorProvider* const store =
      cache != nullptr ? cache->seen_store.load(std::memory_order_acquire) : nullptr;
  return store != nullptr ? store->counters() : nullptr;
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

gen_status kv_cache_tensor_set_gpu_allocator(kv_cache* cache, const gen_gpu_allocator* allocator,
                                             gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(gen::api::own(c));
    const std::string_view kind = c.traits.kind;
    if (kind != gen::cache::kTensorFp32Traits.kind) {
      return gen::api::other_family(Code::kInvalidArgument, "kv_cache_tensor_set_gpu_allocator",
                                    "tensor caches", c);
    }
    if (c.store != nullptr || c.owned != nullptr) {
      return {Code::kState, "the cache has its memory already"};
    }
    GEN_ASSIGN(auto memory, gen::api::wrap_gpu_allocator(allocator));
    GEN_ASSIGN(const DType type, find_type(c.traits.dtype));
    GEN_ASSIGN(auto store, DeviceStore::create(type, c.num_layers, c.max_seq_len, memory));
    c.callbacks = gen::api::joined({memory->callbacks()}, c.callbacks);
    c.traits = store->traits();
    c.make_store = nullptr;
    c.store = std::move(store);
    c.seen_store.store(c.store.get(), std::memory_order_release);
    return {};
  });
}

const int32_t* kv_cache_seq_len_device_ptr(const kv_cache* cache) {
  const TensorCounters* const counters = counters_of(cache);
  return counters != nullptr ? counters->length_counter() : nullptr;
}

const int32_t* kv_cache_counter_device_ptr(const kv_cache* cache) {
  const TensorCounters* const counters = counters_of(cache);
  return counters != nullptr ? counters->position_counter() : nullptr;
}

gen_status kv_cache_sync_counter(kv_cache* cache, gen_error* error) {
  return with_cache(cache, error, [](kv_cache& c) -> Status {
    GEN_TRY(gen::api::own(c));
    TensorCounters* const counters = c.store != nullptr ? c.store->counters() : nullptr;
    if (counters != nullptr) return counters->sync_counter();
    return gen::error(Code::kState, "a %s cache has no counter on a device", c.traits.kind);
  });
}

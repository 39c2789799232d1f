// SPDX-License-Identifier: Apache-2.0
// kv_cache_batch.h of the C API: caches of many sequences. kv_cache_wrapper.cpp makes the wrapper.
#include <generate/kv_cache_batch.h>

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/boundary/host_call.h"
#include "api/cache/kv_cache_many.h"
#include "cache/batch/causal_store.h"
#include "cache/batch/encoder_store.h"
#include "cache/batch/row_codec.h"
#include "cache/element_type.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::ManySequences;
using gen::api::not_null;
using gen::api::with_cache;
using gen::cache::CausalStore;
using gen::cache::element_type_or_first;
using gen::cache::HistoryShape;
using gen::cache::SequenceStore;

/// The checks of every call on these caches.
template <typename Cache, typename F>
gen_status with_sequences(Cache* cache, const char* call, gen_error* error, F&& body) {
  return with_cache(cache, error, [&](Cache& c) -> Status {
    GEN_ASSIGN(ManySequences* const many, gen::api::many_sequences(c, call));
    if constexpr (!std::is_const_v<Cache>) GEN_TRY(gen::api::own(c));
    return body(many->store());
  });
}

/// `create` returns the store, or the error in its numbers.
template <typename F>
gen_status make(kv_cache** out, gen_error* error, F&& create) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(auto store, create());
    *out = gen::api::handle_of(std::make_shared<ManySequences>(std::move(store))).release();
    return {};
  });
}

template <size_t kSize>
size_t elements(const int32_t (&shape)[kSize]) {
  size_t count = 1;
  for (const int32_t extent : shape) count *= static_cast<size_t>(extent);
  return count;
}

template <size_t kSize>
void write_shape(const int32_t (&shape)[kSize], int32_t* out) {
  if (out != nullptr) std::copy(shape, shape + kSize, out);
}

}  // namespace

gen_status kv_cache_causal_new(kv_cache** out, gen_error* error) {
  return make(out, error, [] { return CausalStore::full(); });
}

gen_status kv_cache_swa_new(int32_t window, kv_cache** out, gen_error* error) {
  return make(out, error, [&] { return CausalStore::sliding(window); });
}

gen_status kv_cache_swa_mem_new(int32_t window, int32_t memory, kv_cache** out, gen_error* error) {
  return make(out, error, [&] { return CausalStore::sliding_with_memory(window, memory); });
}

gen_status kv_cache_chunked_new(int32_t chunk, kv_cache** out, gen_error* error) {
  return make(out, error, [&] { return CausalStore::chunked(chunk); });
}

gen_status kv_cache_encoder_new(kv_cache** out, gen_error* error) {
  return make(out, error, []() -> Result<std::shared_ptr<SequenceStore>> {
    return std::shared_ptr<SequenceStore>(std::make_shared<gen::cache::EncoderStore>());
  });
}

gen_status kv_cache_set_config(kv_cache* cache, int32_t padding, int32_t permuted_v,
                               const char* mask_dtype, gen_error* error) {
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    gen::cache::SequenceConfig config;
    GEN_ASSIGN(config.mask_type,
               element_type_or_first(mask_dtype, gen::cache::kMaskTypes, "masks"));
    config.padding = padding;
    config.permuted_v = permuted_v != 0;
    return store.configure(config);
  });
}

gen_status kv_cache_set_shift(kv_cache* cache, kv_cache_shift_fn shift, void* user,
                              gen_error* error) {
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    if (shift == nullptr) return {Code::kInvalidArgument, "shift is NULL"};
    return store.set_shift([shift, user](int32_t layer, float* keys, int32_t dim, int32_t heads,
                                         int32_t n, const int32_t* offsets) -> Status {
      gen_status status = GEN_OK;
      try {
        status = shift(user, layer, keys, dim, heads, n, offsets);
      } catch (...) {
        return gen::api::thrown_by("the shift function");
      }
      if (status == GEN_OK) return {};
      const bool known = status < 0 && status >= GEN_ERROR_INTERNAL;
      return gen::error(known ? static_cast<Code>(status) : Code::kModel,
                        "the shift function returned %d for layer %d", status, layer);
    });
  });
}

gen_status kv_cache_set_quota(kv_cache* cache, int32_t entries, gen_error* error) {
  return with_sequences(cache, __func__, error,
                        [&](SequenceStore& store) { return store.set_quota(entries); });
}

gen_status kv_cache_init(kv_cache* cache, const char* dtype, int32_t max_sequences,
                         int32_t capacity, int32_t max_batch, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_ASSIGN(ManySequences* const many, gen::api::many_sequences(c, "kv_cache_init"));
    GEN_TRY(gen::api::own(c));
    gen::cache::SequenceLimits limits;
    GEN_ASSIGN(limits.type, element_type_or_first(dtype, gen::cache::kRowTypes, "rows"));
    limits.max_sequences = max_sequences;
    limits.capacity = capacity;
    limits.max_batch = max_batch;
    GEN_TRY(many->store().init(limits, many->allocator()));
    many->note_type(limits.type);
    for (const auto& part : c.underlying) part->body->many_sequences()->note_type(limits.type);
    return {};
  });
}

gen_status kv_cache_set_layer(kv_cache* cache, int32_t layer, gen_error* error) {
  return with_sequences(cache, __func__, error,
                        [&](SequenceStore& store) { return store.set_layer(layer); });
}

gen_status kv_cache_set_layer_type(kv_cache* cache, int32_t type, gen_error* error) {
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    gen::cache::LayerTypes* const types = store.layer_types();
    if (types != nullptr) return types->set_layer_type(type);
    return gen::error(Code::kUnsupported, "a %s cache has no layer types", store.kind());
  });
}

gen_status kv_cache_start_forward(kv_cache* cache, const int32_t* positions, const int32_t* seqs,
                                  size_t n, int32_t reserve, const int32_t* multimodal,
                                  size_t n_multimodal, gen_error* error) {
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    GEN_TRY(not_null(positions, "positions"));
    GEN_TRY(not_null(seqs, "seqs"));
    if (n_multimodal > 0) GEN_TRY(not_null(multimodal, "multimodal"));
    return store.start_forward(
        {{positions, n}, {seqs, n}, {multimodal, n_multimodal}, reserve != 0});
  });
}

gen_status kv_cache_put(kv_cache* cache, const float* k, int32_t k_heads, int32_t k_dim,
                        const float* v, int32_t v_heads, int32_t v_dim, int32_t n,
                        gen_error* error) {
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) {
    return store.put({k, k_heads, k_dim}, {v, v_heads, v_dim}, n);
  });
}

gen_status kv_cache_get_masked(kv_cache* cache, float* k, size_t k_capacity, float* v,
                               size_t v_capacity, void* mask, size_t mask_capacity,
                               int32_t k_shape[3], int32_t v_shape[3], int32_t mask_shape[2],
                               gen_error* error) {
  const auto write = [&](const HistoryShape& shape) {
    write_shape(shape.k, k_shape);
    write_shape(shape.v, v_shape);
    write_shape(shape.mask, mask_shape);
  };
  write({});
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    GEN_ASSIGN(const HistoryShape shape, store.shape());
    write(shape);
    const auto fits = [](const void* buffer, size_t wanted, size_t capacity, const char* what) {
      if (buffer == nullptr || wanted <= capacity) return Status();
      return gen::error(Code::kOutOfRange, "%zu %s do not fit a buffer of %zu", wanted, what,
                        capacity);
    };
    GEN_TRY(fits(k, elements(shape.k), k_capacity, "keys"));
    GEN_TRY(fits(v, elements(shape.v), v_capacity, "values"));
    GEN_TRY(fits(mask, elements(shape.mask), mask_capacity, "elements of the mask"));
    const Status status = store.get(k, v, elements(shape.mask) > 0 ? mask : nullptr);
    if (!status.ok()) write({});
    return status;
  });
}

gen_status kv_cache_set_causal(kv_cache* cache, const int32_t* except, size_t n_except,
                               gen_error* error) {
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    if (n_except > 0) GEN_TRY(not_null(except, "except"));
    return store.set_causal({except, n_except});
  });
}

gen_status kv_cache_copy_prefix(kv_cache* cache, int32_t src, int32_t dst, int32_t length,
                                gen_error* error) {
  return with_sequences(cache, __func__, error,
                        [&](SequenceStore& store) { return store.copy_prefix(src, dst, length); });
}

gen_status kv_cache_can_resume(const kv_cache* cache, int32_t seq, int32_t position, int32_t* can,
                               gen_error* error) {
  if (can != nullptr) *can = 0;
  return with_sequences(cache, __func__, error, [&](const SequenceStore& store) -> Status {
    GEN_TRY(not_null(can, "can"));
    GEN_ASSIGN(const bool answer, store.can_resume(seq, position));
    *can = answer ? 1 : 0;
    return {};
  });
}

gen_status kv_cache_remove(kv_cache* cache, int32_t seq, int32_t begin, int32_t end,
                           gen_error* error) {
  return with_sequences(cache, __func__, error,
                        [&](SequenceStore& store) { return store.remove(seq, begin, end); });
}

gen_status kv_cache_compact(kv_cache* cache, int32_t budget, int32_t* moved, gen_error* error) {
  if (moved != nullptr) *moved = 0;
  return with_sequences(cache, __func__, error, [&](SequenceStore& store) -> Status {
    GEN_ASSIGN(const int32_t done, store.compact(budget));
    if (moved != nullptr) *moved = done;
    return {};
  });
}

gen_status kv_cache_encoder_cached(const kv_cache* cache, int32_t seq, int32_t* cached,
                                   gen_error* error) {
  if (cached != nullptr) *cached = 0;
  return with_sequences(cache, __func__, error, [&](const SequenceStore& store) -> Status {
    GEN_TRY(not_null(cached, "cached"));
    const gen::cache::EncoderItems* const items = store.encoder_items();
    if (items == nullptr) {
      return gen::error(Code::kUnsupported, "a %s cache keeps no encoder output%s", store.kind(),
                        !cache->underlying.empty() ? ": none of its caches does" : "");
    }
    GEN_ASSIGN(const bool answer, items->encoder_cached(seq));
    *cached = answer ? 1 : 0;
    return {};
  });
}

gen_status kv_cache_close(kv_cache* cache, gen_error* error) {
  return with_sequences(cache, __func__, error, [](SequenceStore& store) -> Status {
    store.close();
    return {};
  });
}

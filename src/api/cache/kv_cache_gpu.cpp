// SPDX-License-Identifier: Apache-2.0
// kv_cache_gpu.h of the C API: a device store of a fixed shape behind the common handle.
#include <generate/kv_cache_gpu.h>

#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/c_gpu_allocator.h"
#include "api/cache/kv_cache_handle.h"
#include "cache/element_type.h"
#include "cache/limits.h"
#include "cache/tensor/device_store.h"

namespace {

using gen::Code;
using gen::DType;
using gen::Result;
using gen::Status;
using gen::api::CacheBody;
using gen::api::guard;
using gen::api::not_null;
using gen::api::with_cache;
using gen::cache::DeviceStore;

class GpuCache final : public gen::api::StoredCache<DeviceStore> {
 public:
  using StoredCache::StoredCache;
  [[nodiscard]] DeviceStore* gpu_rows() noexcept override { return &store(); }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    GEN_ASSIGN(auto copy, store().copied());
    auto made = std::make_shared<GpuCache>(std::move(copy), label_.max_seq_len);
    made->share_settings(*this);
    return std::shared_ptr<CacheBody>(std::move(made));
  }
};

/// kInvalidArgument for a cache of another kind.
Result<DeviceStore*> gpu_store(const kv_cache& cache, const char* call) {
  if (DeviceStore* const store = cache.body->gpu_rows(); store != nullptr) return store;
  return gen::api::other_family(Code::kInvalidArgument, call, "GPU caches", cache);
}

Status check_sizes(int32_t layers, int32_t heads, int32_t head_dim) {
  if (layers < 1 || layers > gen::cache::kMaxLayers) {
    return gen::error(Code::kInvalidArgument, "%d layers are outside [1, %d]", layers,
                      gen::cache::kMaxLayers);
  }
  if (heads < 1 || head_dim < 1) {
    return gen::error(Code::kInvalidArgument, "%d heads of %d elements: both must be at least 1",
                      heads, head_dim);
  }
  if (heads > INT32_MAX / head_dim) {
    return gen::error(Code::kInvalidArgument, "%d heads of %d elements: a position has at most %d",
                      heads, head_dim, INT32_MAX);
  }
  return {};
}

}  // namespace

gen_status kv_cache_gpu_new(const gen_gpu_allocator* allocator, int32_t layers, int32_t max_seq_len,
                            int32_t heads, int32_t head_dim, kv_cache** out, gen_error* error) {
  return kv_cache_gpu_new_typed(allocator, layers, max_seq_len, heads, head_dim, nullptr, out,
                                error);
}

gen_status kv_cache_gpu_new_typed(const gen_gpu_allocator* allocator, int32_t layers,
                                  int32_t max_seq_len, int32_t heads, int32_t head_dim,
                                  const char* dtype, kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(check_sizes(layers, heads, head_dim));
    GEN_ASSIGN(const DType type,
               gen::cache::element_type_or_first(dtype, DeviceStore::kTypes, "a GPU cache"));
    GEN_ASSIGN(auto memory, gen::api::wrap_gpu_allocator(allocator));
    GEN_ASSIGN(auto store,
               DeviceStore::create_fixed(type, layers, max_seq_len, heads * head_dim, memory));
    auto made = gen::api::handle_of(std::make_shared<GpuCache>(std::move(store), max_seq_len));
    made->callbacks = gen::api::joined({memory->callbacks()});
    *out = made.release();
    return {};
  });
}

gen_status kv_cache_gpu_append(kv_cache* cache, int32_t layer, const float* k, const float* v,
                               int32_t position, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(k, "k"));
    GEN_TRY(not_null(v, "v"));
    GEN_ASSIGN(DeviceStore* const store, gpu_store(c, "kv_cache_gpu_append"));
    return store->append(layer, k, v, position);
  });
}

gen_status kv_cache_gpu_append_device(kv_cache* cache, int32_t layer, const void* k, const void* v,
                                      gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(k, "k"));
    GEN_TRY(not_null(v, "v"));
    GEN_ASSIGN(DeviceStore* const store, gpu_store(c, "kv_cache_gpu_append_device"));
    return store->append_device(layer, k, v);
  });
}

gen_status kv_cache_gpu_append_stream(kv_cache* cache, int32_t layer, const void* k, const void* v,
                                      void* stream, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(k, "k"));
    GEN_TRY(not_null(v, "v"));
    GEN_ASSIGN(DeviceStore* const store, gpu_store(c, "kv_cache_gpu_append_stream"));
    return store->append_stream(layer, k, v, stream);
  });
}

gen_status kv_cache_gpu_pointers(const kv_cache* cache, int32_t layer, const void** k,
                                 const void** v, int32_t* length, gen_error* error) {
  if (k != nullptr) *k = nullptr;
  if (v != nullptr) *v = nullptr;
  if (length != nullptr) *length = 0;
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_ASSIGN(const DeviceStore* const store, gpu_store(c, "kv_cache_gpu_pointers"));
    const gen::cache::TensorSpan span = store->full_buffer(layer);
    if (span.k == nullptr) return {};
    if (k != nullptr) *k = span.k;
    if (v != nullptr) *v = span.v;
    if (length != nullptr) *length = store->seq_len();
    return {};
  });
}

gen_status kv_cache_gpu_pointer_arrays(kv_cache* cache, const void** k, const void** v,
                                       gen_error* error) {
  if (k != nullptr) *k = nullptr;
  if (v != nullptr) *v = nullptr;
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(k, "k"));
    GEN_TRY(not_null(v, "v"));
    GEN_ASSIGN(DeviceStore* const store, gpu_store(c, "kv_cache_gpu_pointer_arrays"));
    return store->pointer_arrays(k, v);
  });
}

const int32_t* kv_cache_gpu_counter_ptr(const kv_cache* cache) {
  const DeviceStore* const store = cache != nullptr ? cache->body->gpu_rows() : nullptr;
  return store != nullptr ? store->position_counter() : nullptr;
}

gen_status kv_cache_gpu_sync_counter(kv_cache* cache, gen_error* error) {
  return with_cache(cache, error, [](kv_cache& c) -> Status {
    GEN_ASSIGN(DeviceStore* const store, gpu_store(c, "kv_cache_gpu_sync_counter"));
    return store->sync_counter();
  });
}

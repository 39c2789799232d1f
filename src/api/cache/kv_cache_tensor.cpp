// SPDX-License-Identifier: Apache-2.0
// kv_cache_tensor.h of the C API. Tensor caches are stores on the host, whatever their model, until
// they are given a device's memory.
#include <generate/kv_cache_tensor.h>

#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/c_gpu_allocator.h"
#include "api/boundary/caller_struct.h"
#include "api/cache/kv_cache_handle.h"
#include "api/model/model_handle.h"
#include "cache/element_type.h"
#include "cache/sequence/registry.h"
#include "cache/tensor/device_store.h"
#include "cache/tensor/tensor_store.h"

namespace {

using gen::Code;
using gen::DType;
using gen::Result;
using gen::Status;
using gen::api::CacheBody;
using gen::api::CacheLabel;
using gen::api::guard;
using gen::api::not_null;
using gen::api::one_sequence;
using gen::api::OneSequence;
using gen::api::TakesGpuMemory;
using gen::api::with_cache;
using gen::cache::DeviceStore;
using gen::cache::TensorCounters;
using gen::cache::TensorStore;

Result<DType> find_type(const char* dtype) {
  return gen::cache::element_type_or_first(dtype, TensorStore::kTypes, "a tensor cache");
}

class TensorCache final : public OneSequence, private TakesGpuMemory {
 public:
  TensorCache(DType type, const CacheLabel& label) : OneSequence(label), type_(type) {}

  [[nodiscard]] TakesGpuMemory* takes_gpu() noexcept override { return this; }
  [[nodiscard]] Result<Store> make_store(gen::Allocator& memory) const override {
    GEN_ASSIGN(Store store, TensorStore::create(type_, label_.num_layers, label_.max_seq_len,
                                                memory, &TensorStore::device_traits(type_)));
    return store;
  }
  [[nodiscard]] Result<ModelCache> make_model_cache(
      std::span<const gen::cache::LayerShape> layers, int32_t capacity,
      gen::engine::EngineMemory& memory) const override {
    return gen::cache::make_cache(gen::cache::element_type_name(type_), layers, capacity, memory);
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    auto made = std::make_shared<TensorCache>(type_, label_);
    made->on_device_ = on_device_;
    GEN_TRY(made->copy(*this));
    return std::shared_ptr<CacheBody>(std::move(made));
  }

 protected:
  [[nodiscard]] bool brought_memory() const noexcept override { return on_device_; }

 private:
  Status take_gpu(const gen_gpu_allocator* allocator, gen::SharedCallbacks* callbacks) override {
    if (shaped()) return {Code::kState, "the cache has its memory already"};
    GEN_ASSIGN(auto memory, gen::api::wrap_gpu_allocator(allocator));
    GEN_ASSIGN(auto store,
               DeviceStore::create(type_, label_.num_layers, label_.max_seq_len, memory));
    auto form = std::make_unique<gen::api::TensorForm>(std::move(store));
    *callbacks = gen::api::joined({memory->callbacks()}, *callbacks);
    label_.traits = form->tensors()->traits();
    on_device_ = true;
    take(std::move(form));
    return {};
  }

  const DType type_;
  bool on_device_ = false;
};

/// Null without a device. May be called from any thread.
TensorCounters* counters_of(const kv_cache& cache) {
  OneSequence* const body = cache.body->one_sequence();
  gen::cache::TensorProvider* const store = body != nullptr ? body->form().tensors() : nullptr;
  return store != nullptr ? store->counters() : nullptr;
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
    const CacheLabel label = {TensorStore::device_traits(type), wanted, max_seq_len};
    *out = gen::api::handle_of(std::make_shared<TensorCache>(type, label)).release();
    return {};
  });
}

gen_status kv_cache_full_buffer(const kv_cache* cache, int32_t layer, kv_cache_span* span,
                                gen_error* error) {
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(gen::api::check_span(span));
    GEN_ASSIGN(const OneSequence* const body, one_sequence(c, "kv_cache_full_buffer"));
    GEN_ASSIGN(const auto found, body->form().full_buffer(layer, body->label()));
    gen::api::write_struct(gen::api::span_of(found), span);
    return {};
  });
}

gen_status kv_cache_tensor_set_gpu_allocator(kv_cache* cache, const gen_gpu_allocator* allocator,
                                             gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(gen::api::own(c));
    TakesGpuMemory* const body = c.body->takes_gpu();
    if (body == nullptr) {
      return gen::api::other_family(Code::kInvalidArgument, "kv_cache_tensor_set_gpu_allocator",
                                    "tensor caches", c);
    }
    return body->take_gpu(allocator, &c.callbacks);
  });
}

const int32_t* kv_cache_seq_len_device_ptr(const kv_cache* cache) {
  const TensorCounters* const counters = cache != nullptr ? counters_of(*cache) : nullptr;
  return counters != nullptr ? counters->length_counter() : nullptr;
}

const int32_t* kv_cache_counter_device_ptr(const kv_cache* cache) {
  const TensorCounters* const counters = cache != nullptr ? counters_of(*cache) : nullptr;
  return counters != nullptr ? counters->position_counter() : nullptr;
}

gen_status kv_cache_sync_counter(kv_cache* cache, gen_error* error) {
  return with_cache(cache, error, [](kv_cache& c) -> Status {
    GEN_TRY(gen::api::own(c));
    TensorCounters* const counters = counters_of(c);
    if (counters != nullptr) return counters->sync_counter();
    return gen::error(Code::kState, "a %s cache has no counter on a device",
                      c.body->label().traits.kind);
  });
}

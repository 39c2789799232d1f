// SPDX-License-Identifier: Apache-2.0
// Caches of kv_cache.h that are made from a number of layers and a length. Their first write
// decides their form.
#include <generate/kv_cache.h>

#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "cache/tensor/layered_store.h"
#include "cache/tensor/quant_store.h"
#include "cache/tensor/tensor_kinds.h"
#include "cache/tensor/tensor_store.h"

namespace {

using gen::Result;
using gen::Status;
using gen::api::CacheBody;
using gen::api::CacheLabel;
using gen::api::OneSequence;

class PlainCache final : public OneSequence {
 public:
  PlainCache(const gen::cache::TensorKind& kind, const CacheLabel& label)
      : OneSequence(label), kind_(kind) {}

  [[nodiscard]] Result<Store> make_store(gen::Allocator& memory) const override {
    return kind_.create(label_.num_layers, label_.max_seq_len, memory);
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    auto made = std::make_shared<PlainCache>(kind_, label_);
    GEN_TRY(made->copy(*this));
    return std::shared_ptr<CacheBody>(std::move(made));
  }

 private:
  const gen::cache::TensorKind& kind_;
};

gen_status make(const gen::cache::TensorTraits& traits, int32_t layers, int32_t max_seq_len,
                kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(gen::api::not_null(out, "out"));
    GEN_TRY(gen::cache::LayeredStore::check(layers, max_seq_len));
    const gen::cache::TensorKind& kind = *gen::cache::find_tensor_kind(traits.kind);
    const CacheLabel label = {kind.traits, layers, max_seq_len};
    *out = gen::api::handle_of(std::make_shared<PlainCache>(kind, label)).release();
    return {};
  });
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

// SPDX-License-Identifier: Apache-2.0
// Compressed caches of kv_cache.h, whose entries may be means of several positions.
#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/tensor/compressed_store.h"
#include <generate/kv_cache.h>

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::CacheBody;
using gen::api::CacheLabel;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OneSequence;
using gen::cache::CompressedStore;

class CompressedCache final : public OneSequence {
 public:
  CompressedCache(const CacheLabel& label, int32_t chunk) : OneSequence(label), chunk_(chunk) {}

  [[nodiscard]] bool has_means() const noexcept override { return true; }
  [[nodiscard]] int32_t chunk() const noexcept override { return chunk_; }
  [[nodiscard]] Result<Store> make_store(gen::Allocator& memory) const override {
    GEN_ASSIGN(Store store, CompressedStore::create(label_.num_layers, chunk_, memory));
    return store;
  }
  [[nodiscard]] Result<ModelCache> make_model_cache(
      std::span<const gen::cache::LayerShape> layers, int32_t capacity,
      gen::engine::EngineMemory& memory) const override {
    return gen::cache::make_compressed_cache(layers, capacity, chunk_, memory);
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    auto made = std::make_shared<CompressedCache>(label_, chunk_);
    GEN_TRY(made->copy(*this));
    return std::shared_ptr<CacheBody>(std::move(made));
  }

 private:
  const int32_t chunk_;
};

}  // namespace

gen_status kv_cache_compressed_new(int32_t layers, int32_t heads, int32_t dim, int32_t chunk_size,
                                   kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    if (heads < 0 || dim < 0) {
      return gen::error(Code::kInvalidArgument,
                        "%d heads of %d elements: hints must not be negative", heads, dim);
    }
    // Making an empty store is cheap and checks the other arguments.
    GEN_TRY(CompressedStore::create(layers, chunk_size, gen::system_allocator()).status());
    const CacheLabel label = {gen::cache::kCompressedTraits, layers, INT32_MAX};
    *out = gen::api::handle_of(std::make_shared<CompressedCache>(label, chunk_size)).release();
    return {};
  });
}

gen_status kv_cache_compressed_entry(const kv_cache* cache, int32_t layer, int32_t entry,
                                     int32_t* first, int32_t* positions, gen_error* error) {
  for (int32_t* number : {first, positions}) {
    if (number != nullptr) *number = 0;
  }
  return gen::api::with_cache(cache, error, [&](const kv_cache& c) -> Status {
    if (!c.body->has_means()) {
      return gen::api::other_family(Code::kInvalidArgument, "kv_cache_compressed_entry",
                                    "compressed caches", c);
    }
    const auto found = c.body->one_sequence()->form().positions_of(layer, entry);
    if (found.count == 0) {
      return gen::error(Code::kOutOfRange, "layer %d has no entry %d", layer, entry);
    }
    if (first != nullptr) *first = found.first;
    if (positions != nullptr) *positions = found.count;
    return {};
  });
}

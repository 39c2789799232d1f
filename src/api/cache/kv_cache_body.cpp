// SPDX-License-Identifier: Apache-2.0
// See kv_cache_body.h.
#include "api/cache/kv_cache_body.h"

#include <string_view>

#include <generate/kv_cache.h>
#include "cache/sequence/cache_format.h"
#include "cache/sequence/registry.h"

namespace gen::api {

uint32_t OneSequence::capabilities() const noexcept {
  const cache::TensorTraits& traits = label_.traits;
  const bool is_tensors = form().model_cache() == nullptr;
  uint32_t bits = KV_CACHE_CAN_TRUNCATE;
  if (traits.can_clone) bits |= KV_CACHE_CAN_CLONE;
  if (traits.can_view && is_tensors) bits |= KV_CACHE_CAN_VIEW;
  if (traits.has_full_buffer && is_tensors) bits |= KV_CACHE_HAS_FULL_BUFFER;
  if (traits.one_row_one_result) bits |= KV_CACHE_ONE_ROW_ONE_RESULT;
  return bits;
}

Status OneSequence::takes_allocator() const {
  if (!shaped()) return {};
  if (brought_memory()) {
    return {Code::kState, "the cache's memory is not its own, see how it was made"};
  }
  return {Code::kState, "the cache has been written to; its allocator is set before that"};
}

std::optional<std::span<cache::Block* const>> OneSequence::block_table() const noexcept {
  cache::KvCache* const cache = form().model_cache();
  const cache::SharesBlocks* const sharing = cache != nullptr ? cache->sharing() : nullptr;
  return sharing != nullptr ? std::optional(sharing->blocks()) : std::nullopt;
}

Result<OneSequence::Store> OneSequence::make_store(Allocator& /*memory*/) const {
  return Status(Code::kState, "the cache has its form from the start");
}

Result<OneSequence::ModelCache> OneSequence::make_model_cache(
    std::span<const cache::LayerShape> layers, int32_t capacity,
    engine::EngineMemory& memory) const {
  return cache::make_cache(label_.traits.kind, layers, capacity, memory);
}

Result<OneSequence::ModelCache> OneSequence::make_own_model_cache(
    std::span<const cache::LayerShape> layers, int32_t capacity) const {
  engine::HostMemory* const own = host_memory();
  return make_model_cache(layers, capacity, own != nullptr ? *own : engine::system_memory());
}

Status OneSequence::copy(const OneSequence& other) {
  share_settings(other);
  if (!other.shaped()) return {};
  if (other.state_ != nullptr) {
    cache::StateCopies* const copies = other.state_->copies();
    if (copies == nullptr) {
      return {Code::kUnsupported, "the model's state beside the cache cannot be copied"};
    }
    GEN_ASSIGN(state_, copies->fork());
    state_of_ = other.state_of_;
  }
  GEN_ASSIGN(auto form, other.form().clone());
  take(std::move(form));
  return {};
}

CacheLabel label_of(const cache::TensorProvider& store, int32_t max_seq_len) {
  return {store.traits(), store.num_layers(), max_seq_len};
}

CacheLabel label_of(const cache::KvCache& cache) {
  const cache::CacheTraits& traits = cache.traits();
  // Kinds that are not formats keep float32.
  const bool format = cache::parse_cache_format(traits.kind).ok();
  const bool contiguous = std::string_view(traits.layout) == cache::CacheTraits().layout;
  return {{.kind = contiguous ? traits.kind : traits.layout,
           .dtype = format ? traits.kind : "fp32",
           .lossy = traits.lossy},
          static_cast<int32_t>(cache.layers().size()),
          cache.capacity()};
}

}  // namespace gen::api

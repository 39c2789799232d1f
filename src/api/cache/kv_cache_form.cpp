// SPDX-License-Identifier: Apache-2.0
// See kv_cache_form.h.
#include "api/cache/kv_cache_form.h"

#include "api/cache/kv_cache_body.h"
#include "cache/sequence/staged_entries.h"

namespace gen::api {

using cache::EntryPositions;
using cache::KvCache;
using cache::StateKind;
using cache::StateWriter;
using cache::TensorSpan;

int32_t CacheForm::max_seq_len(const CacheLabel& label) const noexcept { return label.max_seq_len; }

CacheName CacheForm::name(const CacheLabel& label) const noexcept {
  return {"", label.traits.kind};
}

Result<TensorSpan> CacheForm::full_buffer(int32_t /*layer*/, const CacheLabel& label) const {
  if (label.traits.has_full_buffer) return TensorSpan();
  return error(Code::kUnsupported, "a %s cache has no buffers of a fixed shape", label.traits.kind);
}

Result<TensorSpan> TensorForm::view(int32_t layer) const {
  const cache::TensorViews* const views = store_->views();
  if (views == nullptr) {
    return error(Code::kUnsupported, "a %s cache has no strides; kv_cache_get copies it",
                 store_->traits().kind);
  }
  return views->view(layer);
}

Result<TensorSpan> TensorForm::full_buffer(int32_t layer, const CacheLabel& label) const {
  const cache::TensorBuffers* const buffers = store_->buffers();
  return buffers != nullptr ? buffers->full_buffer(layer) : CacheForm::full_buffer(layer, label);
}

EntryPositions TensorForm::positions_of(int32_t layer, int32_t entry) const {
  EntryPositions found = {0, 0};
  found.count = store_->entry_positions(layer, entry, &found.first);
  return found;
}

bool TensorForm::holds_positions() const noexcept {
  for (int32_t layer = 0; layer < store_->num_layers(); ++layer) {
    if (store_->layer_seq_len(layer) > 0) return true;
  }
  return false;
}

Result<std::unique_ptr<CacheForm>> TensorForm::clone() const {
  const cache::TensorCopies* const copies = store_->copies();
  if (copies == nullptr) {
    return error(Code::kUnsupported,
                 "a %s cache has no clone; the cache that it wraps may have one",
                 store_->traits().kind);
  }
  GEN_ASSIGN(auto copy, copies->clone());
  return std::unique_ptr<CacheForm>(std::make_unique<TensorForm>(std::move(copy)));
}

Result<SavedForm> TensorForm::saved() const {
  const cache::TensorProvider& store = *store_;
  return SavedForm{StateKind::kTensors, [&store](StateWriter& to) { return store.save(to); }};
}

Status TensorForm::takes_model_cache() const {
  return {Code::kState, "the state is a model's, and the cache is one for kv_cache_update"};
}

bool ModelForm::holds(int32_t layer) const noexcept {
  const KvCache& cache = *model_cache();
  return layer >= 0 && static_cast<size_t>(layer) < cache.layers().size() && cache.length() > 0;
}

Result<LayerShapes> ModelForm::shapes(int32_t layer) const {
  if (!holds(layer)) return LayerShapes();
  GEN_ASSIGN(const cache::CachePlan held, committed());
  const cache::LayerShape& shape = model_cache()->layers()[static_cast<size_t>(layer)];
  return LayerShapes{{shape.kv_heads, held.start, shape.k_dim},
                     {shape.kv_heads, held.start, shape.v_dim}};
}

Status ModelForm::get(int32_t layer, float* k, float* v) const {
  if (!holds(layer)) return {};
  GEN_ASSIGN(const cache::CachePlan held, committed());
  KvCache& cache = *model_cache();
  if (k != nullptr) {
    GEN_TRY(cache::decode_entries(cache, layer, held, engine::KvOrder::kKeys, k));
  }
  if (v != nullptr) {
    GEN_TRY(cache::decode_entries(cache, layer, held, engine::KvOrder::kValues, v));
  }
  return {};
}

Result<TensorSpan> ModelForm::view(int32_t layer) const {
  if (!holds(layer)) return TensorSpan();
  GEN_TRY(committed());
  return error(Code::kUnsupported,
               "layer %d was written by a model and has no strides; kv_cache_get copies it", layer);
}

Result<TensorSpan> ModelForm::full_buffer(int32_t layer, const CacheLabel& /*label*/) const {
  if (!holds(layer)) return TensorSpan();
  return error(Code::kUnsupported,
               "layer %d was written by a model and is not a tensor; kv_cache_get copies it",
               layer);
}

EntryPositions ModelForm::positions_of(int32_t layer, int32_t entry) const {
  const KvCache& cache = *model_cache();
  const bool there = layer >= 0 && static_cast<size_t>(layer) < cache.layers().size() &&
                     entry >= 0 && entry < cache.entries();
  return there ? cache.positions_of(entry) : EntryPositions{0, 0};
}

Result<std::unique_ptr<CacheForm>> ModelForm::clone() const {
  GEN_ASSIGN(auto copy, model_cache()->fork());
  return std::unique_ptr<CacheForm>(std::make_unique<OwnedForm>(std::move(copy), grows()));
}

Result<SavedForm> ModelForm::saved() const {
  KvCache& cache = *model_cache();
  return SavedForm{StateKind::kModelCache, [&cache](StateWriter& to) { return cache.save(to); }};
}

Status ModelForm::takes_rows() const {
  return {Code::kState, "the cache was filled by gen_model_forward"};
}

Status ModelForm::takes_tensors() const {
  return {Code::kState, "the state is of kv_cache_update, and a model shaped the cache"};
}

int32_t OwnedForm::max_seq_len(const CacheLabel& label) const noexcept {
  return grows_ ? label.max_seq_len : model_cache()->capacity();
}

CacheName OwnedForm::name(const CacheLabel& /*label*/) const noexcept {
  return {"model's ", model_cache()->traits().layout};
}

}  // namespace gen::api

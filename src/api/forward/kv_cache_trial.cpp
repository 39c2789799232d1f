// SPDX-License-Identifier: Apache-2.0
// See kv_cache_trial.h.
#include "api/forward/kv_cache_trial.h"

#include <algorithm>
#include <utility>

#include "cache/sequence/layer_memories.h"
#include "cache/sequence/restored_cache.h"

namespace gen::api {
namespace {

/// True if its engine cannot access host memory.
bool on_device(const ModelParts& parts) {
  return parts.engine != nullptr && !parts.engine->memory().in_host();
}

int32_t capacity_for(const OneSequence& cache, const model::Model& model) {
  return std::min(cache.label().max_seq_len, model.traits().max_seq_len);
}

/// Makes a cache in the memory where the model computes.
Result<std::unique_ptr<cache::KvCache>> make_for(const OneSequence& cache,
                                                 const ModelParts& parts) {
  const model::Model& model = *parts.loaded->model;
  const int32_t capacity = capacity_for(cache, model);
  if (!on_device(parts)) return cache.make_own_model_cache(model.layer_shapes(), capacity);
  return cache::make_in_memories(
      model.layer_shapes(), model::memories_of_layers(model, parts.engine->memory()),
      [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
        return cache.make_model_cache(layers, capacity, memory);
      });
}

bool same_shape(const cache::LayerShape& a, const cache::LayerShape& b) {
  return !cache::shape_difference(a, b);
}

}  // namespace

Result<cache::CacheTrial> open_trial(const kv_cache& handle, const ModelInCall& model) {
  const auto layers = model.parts->loaded->model->layer_shapes();
  GEN_ASSIGN(const OneSequence* const body, one_sequence(handle, "gen_model_forward"));
  if (body->form().tensors() != nullptr) return Status(Code::kState, body->tensors_only());
  if (static_cast<size_t>(body->label().num_layers) != layers.size()) {
    return error(Code::kInvalidArgument, "a cache of %d layers for a model of %zu layers",
                 body->label().num_layers, layers.size());
  }
  cache::KvCache* const held = body->form().model_cache();
  if (held == nullptr) {
    GEN_ASSIGN(auto made, make_for(*body, *model.parts));
    return cache::CacheTrial(std::move(made));
  }
  const auto own = held->layers();
  if (!std::equal(own.begin(), own.end(), layers.begin(), layers.end(), same_shape)) {
    return Status(Code::kInvalidArgument, "the cache was shaped by another model's layers");
  }
  const bool short_of_context = body->form().grows() && !on_device(*model.parts) &&
                                held->capacity() < capacity_for(*body, *model.parts->loaded->model);
  if (short_of_context) {
    GEN_ASSIGN(auto larger, make_for(*body, *model.parts));
    GEN_TRY(cache::copy_content(*held, *larger));
    return cache::CacheTrial(std::move(larger));
  }
  // Every cache of a C handle can be cut, see KV_CACHE_CAN_TRUNCATE.
  return cache::CacheTrial(*held);
}

ShapedBy shaped_by(const kv_cache& handle, const ModelInCall& model) {
  if (handle.body->one_sequence()->shaped()) return {};
  ShapedBy by;
  by.form = std::make_unique<OwnedForm>(nullptr);
  if (!on_device(*model.parts)) return by;
  CallbackList all;
  for (const SharedCallbacks& some : {handle.callbacks, model.callbacks}) {
    if (some != nullptr) all.insert(all.end(), some->begin(), some->end());
  }
  by.model = model.parts;
  if (!all.empty()) by.callbacks = std::make_shared<const CallbackList>(std::move(all));
  return by;
}

void keep_trial(kv_cache& handle, ShapedBy by, cache::CacheTrial& trial) noexcept {
  auto made = trial.keep();
  if (made == nullptr) return;
  OneSequence& body = *handle.body->one_sequence();
  if (by.form == nullptr) return body.form().replace(std::move(made));
  if (by.model != nullptr) {
    body.keep(std::move(by.model));
    handle.callbacks = std::move(by.callbacks);
  }
  by.form->replace(std::move(made));
  body.take(std::move(by.form));
}

}  // namespace gen::api

// SPDX-License-Identifier: Apache-2.0
// A drafter for the models of cache_forms.h: the model itself, which is right wherever the best
// token is drawn, or another one with the same vocabulary.
#pragma once

#include <memory>

#include "engine/memory/host_memory.h"
#include "generate/cache_forms.h"
#include "generate/draft/model_drafter.h"

namespace gen::generate {

inline std::shared_ptr<const model::Model> small_model(bool same) {
  test::TinyModelSpec spec;
  spec.context = kFormsContext;
  spec.vocab = kFormsVocab;
  static const test::LoadedTiny alike{test::TinyModel(spec)};
  spec.seed = 9;
  spec.layers = 1;
  spec.context = 80;
  static const test::LoadedTiny other{test::TinyModel(spec)};
  return {std::shared_ptr<void>(), same ? &alike.model() : &other.model()};
}

inline std::shared_ptr<ModelDrafter> small_drafter(
    int32_t most, bool same, int32_t prompt_rows = 8,
    engine::EngineMemory& memory = engine::system_memory()) {
  ModelDrafter::Options options;
  options.most = most;
  options.vocab = kFormsVocab;
  options.context = kFormsContext;
  options.prompt_rows = prompt_rows;
  options.memory = &memory;
  return ModelDrafter::create(small_model(same), options).value();
}

}  // namespace gen::generate

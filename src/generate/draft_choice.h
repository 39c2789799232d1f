// SPDX-License-Identifier: Apache-2.0
// Which drafters the sessions of a generator have: lookups in texts, a model, the first
// layers of the same one, or nothing. Each is asked where those before it have no guess: first the
// suffix lookup, which knows more than the one by n-grams, and models last, since they alone cost
// anything.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "engine/memory.h"
#include "generate/cache_choice.h"
#include "generate/draft/drafter.h"
#include "generate/loop/generator.h"

namespace gen::generate {

constexpr int32_t kDefaultDraftLength = 4;
constexpr int32_t kDefaultLookupLength = 8;
constexpr int32_t kMaxDraftLength = kMaxDraftRows - 1;

struct DraftChoice {
  int32_t ngram = 0;                             // tokens looked for in the text; 0: none are
  int32_t ngram_length = kDefaultLookupLength;   // tokens of a guess
  int32_t suffix_length = 0;                     // the same of suffix lookup; 0: none
  int32_t suffix_recent = 0;                     // tokens of ended texts that it keeps
  ModelInUse draft = {};                         // its model is null: none
  engine::EngineMemory* draft_memory = nullptr;  // for its caches; null: the process' heap
  int32_t draft_length = kDefaultDraftLength;
  int32_t self_layers = 0;  // first layers that draft for all; 0: none
  int32_t self_length = kDefaultDraftLength;
};

/// For a generator over `target` with these caches and options. Null where nothing is chosen.
/// Errors as common_vocabulary, ModelDrafter::create and Model::first_layers; kUnsupported for a
/// target with a state that can neither go back nor be copied.
Result<std::shared_ptr<Drafter>> make_drafter(const DraftChoice& choice, const ModelInUse& target,
                                              const CacheChoice& caches,
                                              const GeneratorOptions& options);

}  // namespace gen::generate

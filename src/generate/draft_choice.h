// SPDX-License-Identifier: Apache-2.0
// The drafters of a generator's sessions: lookups in texts, a head, a model, the first layers of
// the target, or none. Each is asked where those before it found nothing: suffix lookup first,
// because it knows more than n-gram lookup, and models last, because only they cost time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/memory.h"
#include "generate/cache_choice.h"
#include "generate/draft/drafter.h"
#include "generate/loop/generator.h"
#include "model/draft_head.h"

namespace gen::generate {

constexpr int32_t kDefaultDraftLength = 4;
constexpr int32_t kDefaultLookupLength = 8;
constexpr int32_t kMaxDraftLength = kMaxDraftRows - 1;

/// Whether the head in the model's file drafts.
enum class UseHeads : uint8_t {
  kAuto,  // unless a model or first layers do, or it cannot be used
  kOn,    // it is an error if there is none
  kOff,
};

struct DraftChoice {
  UseHeads heads = UseHeads::kAuto;
  int32_t heads_length = kDefaultDraftLength;
  bool off = false;                                        // nothing drafts
  std::shared_ptr<const model::DraftHead> head = nullptr;  // in the place of the file's own
  std::string head_file;                                   // of `head`
  int32_t ngram = 0;                             // n-gram length of the lookup in the text; 0: off
  int32_t ngram_length = kDefaultLookupLength;   // draft tokens at a time
  int32_t suffix_length = 0;                     // draft tokens of suffix lookup; 0: off
  int32_t suffix_recent = 0;                     // tokens of ended texts that suffix lookup keeps
  ModelInUse draft = {};                         // draft model; its model is null: none
  engine::EngineMemory* draft_memory = nullptr;  // for its caches; null: the process heap
  int32_t draft_length = kDefaultDraftLength;
  int32_t self_layers = 0;  // first layers of the target that draft; 0: off
  int32_t self_length = kDefaultDraftLength;
};

/// The head that drafts, of a file beside the model's or of its own; null if none does. Errors of
/// Model::draft_head if it is an error that there is none.
Result<std::shared_ptr<const model::DraftHead>> chosen_head(const DraftChoice& choice,
                                                            const ModelInUse& target);

/// Makes the drafter of that head alone; null without one, or if the head is of the model's own
/// file and cannot have these caches though it need not draft. kInvalidArgument for caches that it
/// cannot have, naming its file.
Result<std::shared_ptr<Drafter>> make_head_drafter(
    const DraftChoice& choice, const std::shared_ptr<const model::DraftHead>& head,
    const ModelInUse& target, const CacheChoice& caches, const GeneratorOptions& options);

/// Makes the drafter for a generator over `target` with these caches and options. Null if none is
/// chosen. Errors as common_vocabulary, ModelDrafter::create, Model::first_layers and
/// Model::draft_head; kUnsupported for a target whose state can be neither cut nor copied.
Result<std::shared_ptr<Drafter>> make_drafter(const DraftChoice& choice, const ModelInUse& target,
                                              const CacheChoice& caches,
                                              const GeneratorOptions& options);

}  // namespace gen::generate

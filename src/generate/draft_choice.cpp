// SPDX-License-Identifier: Apache-2.0
// See draft_choice.h.
#include "generate/draft_choice.h"

#include <algorithm>
#include <utility>

#include "engine/memory/host_memory.h"
#include "generate/draft/draft_vocabulary.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/model_drafter.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"

namespace gen::generate {

Result<std::shared_ptr<Drafter>> make_drafter(const DraftChoice& choice, const ModelInUse& target,
                                              const CacheChoice& caches,
                                              const GeneratorOptions& options) {
  std::shared_ptr<Drafter> made;
  const auto behind = [&made](std::shared_ptr<Drafter> next) {
    made = made == nullptr ? std::move(next)
                           : std::make_shared<DrafterList>(std::move(made), std::move(next));
  };
  if (choice.suffix_length > 0) {
    SuffixLookup::Options suffix;
    suffix.most = choice.suffix_length;
    suffix.recent = choice.suffix_recent;
    // After new tokens a model drafts better.
    if (choice.draft.model != nullptr || choice.self_layers > 0) suffix.gap = 0;
    behind(std::make_shared<SuffixLookup>(suffix));
  }
  if (choice.ngram > 0) {
    behind(std::make_shared<NgramLookup>(choice.ngram, choice.ngram_length));
  }
  ModelDrafter::Options own;
  own.context = options.max_seq_len > 0 ? options.max_seq_len : target.model->traits().max_seq_len;
  own.prompt_rows = prefill_rows(options.prefill_chunk, target.model->traits());
  own.kv_dtype = caches.format.name();
  const auto memory = [](engine::EngineMemory* chosen) {
    return chosen != nullptr ? chosen : &engine::system_memory();
  };
  if (choice.draft.model != nullptr) {
    GEN_ASSIGN(own.vocab, common_vocabulary(*choice.draft.model, choice.draft.tokenizer.get(),
                                            *target.model, target.tokenizer.get()));
    own.most = choice.draft_length;
    own.memory = memory(choice.draft_memory);
    GEN_ASSIGN(auto drafter, ModelDrafter::create(choice.draft.model, own));
    behind(std::move(drafter));
  }
  if (choice.self_layers > 0) {
    auto layers = target.model->first_layers(choice.self_layers);
    if (layers.status().code() == Code::kInvalidArgument) {
      return error(Code::kInvalidArgument, "self_draft: %.400s", layers.status().message());
    }
    GEN_ASSIGN(auto exit, std::move(layers));
    own.vocab = exit->traits().vocab_size;
    if (target.tokenizer != nullptr)
      own.vocab = std::min(own.vocab, target.tokenizer->vocab_size());
    own.most = choice.self_length;
    own.memory = memory(options.memory);
    GEN_ASSIGN(auto drafter, ModelDrafter::create(std::move(exit), own));
    behind(std::move(drafter));
  }
  const model::ModelTraits& traits = target.model->traits();
  if (made != nullptr && !traits.can_keep_some) {
    return error(Code::kUnsupported,
                 "no drafts for the model %.40s: its state can neither go back nor be copied",
                 traits.architecture.c_str());
  }
  return made;
}

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// See draft_choice.h.
#include "generate/draft_choice.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/memory/host_memory.h"
#include "generate/draft/draft_vocabulary.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/head_drafter.h"
#include "generate/draft/model_drafter.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"

namespace gen::generate {

Result<std::shared_ptr<const model::DraftHead>> chosen_head(const DraftChoice& choice,
                                                            const ModelInUse& target) {
  std::shared_ptr<const model::DraftHead> none;
  if (choice.off) return none;
  if (choice.head != nullptr) return choice.head;
  const bool others = choice.draft.model != nullptr || choice.self_layers > 0;
  const bool wanted = choice.heads == UseHeads::kOn;
  if (choice.heads == UseHeads::kOff || (others && !wanted)) return none;
  if (!wanted && !target.model->traits().can_keep_some) return none;
  auto head = target.model->draft_head();
  if (!head.ok() && head.status().code() != Code::kOutOfMemory && !wanted) {
    log(LogLevel::kWarning, "the model's head cannot draft: %s", head.status().message());
    return none;
  }
  if (head.ok() && head.value() == nullptr && wanted) {
    return error(Code::kUnsupported, "the file of the model %.40s has no head that drafts",
                 target.model->traits().architecture.c_str());
  }
  return head;
}

Result<std::shared_ptr<Drafter>> make_head_drafter(
    const DraftChoice& choice, const std::shared_ptr<const model::DraftHead>& head,
    const ModelInUse& target, const CacheChoice& caches, const GeneratorOptions& options) {
  std::shared_ptr<Drafter> none;
  if (head == nullptr) return none;
  const model::ModelTraits& traits = target.model->traits();
  HeadDrafter::Options own;
  own.most = choice.heads_length;
  own.vocab = traits.vocab_size;
  if (target.tokenizer != nullptr) own.vocab = std::min(own.vocab, target.tokenizer->vocab_size());
  own.context = options.max_seq_len > 0 ? options.max_seq_len : traits.max_seq_len;
  own.kv_dtype = caches.format.name();
  own.memory = options.memory != nullptr ? options.memory : &engine::system_memory();
  auto drafter = HeadDrafter::create(head, std::move(own));
  if (drafter.ok()) return std::shared_ptr<Drafter>(std::move(drafter).value());
  if (choice.head != nullptr) {
    return error(drafter.status().code(), "the head of %.400s: %.400s", choice.head_file.c_str(),
                 drafter.status().message());
  }
  if (choice.heads == UseHeads::kOn || drafter.status().code() == Code::kOutOfMemory) {
    return error(drafter.status().code(), "the model's head: %.400s", drafter.status().message());
  }
  log(LogLevel::kWarning, "the model's head cannot draft: %s", drafter.status().message());
  return none;
}

Result<std::shared_ptr<Drafter>> make_drafter(const DraftChoice& choice, const ModelInUse& target,
                                              const CacheChoice& caches,
                                              const GeneratorOptions& options) {
  std::shared_ptr<Drafter> made;
  if (choice.off) return made;
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
  GEN_ASSIGN(auto head, chosen_head(choice, target));
  GEN_ASSIGN(auto of_head, make_head_drafter(choice, head, target, caches, options));
  if (of_head != nullptr) behind(std::move(of_head));
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
    if (!check_draft_model(*exit).ok()) {
      return error(
          Code::kUnsupported,
          "self_draft: the model %.40s has a state that cannot go back to what was accepted",
          exit->traits().architecture.c_str());
    }
    own.vocab = exit->traits().vocab_size;
    if (target.tokenizer != nullptr)
      own.vocab = std::min(own.vocab, target.tokenizer->vocab_size());
    own.most = choice.self_length;
    own.name = "layers";
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

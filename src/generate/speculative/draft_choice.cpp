// SPDX-License-Identifier: Apache-2.0
// See draft_choice.h.
#include "generate/speculative/draft_choice.h"

#include "generate/speculative/drafter_chain.h"
#include "generate/speculative/ngram_lookup.h"
#include "generate/speculative/suffix_lookup.h"

namespace gen::generate {

Result<std::shared_ptr<Drafter>> make_drafter(const DraftChoice& choice) {
  std::shared_ptr<Drafter> made;
  const auto behind = [&made](std::shared_ptr<Drafter> next) {
    made = made == nullptr ? std::move(next)
                           : std::make_shared<DrafterChain>(std::move(made), std::move(next));
  };
  if (choice.suffix_length > 0) {
    SuffixLookup::Options options;
    options.most = choice.suffix_length;
    options.recent = choice.suffix_recent;
    behind(std::make_shared<SuffixLookup>(options));
  }
  if (choice.ngram > 0) {
    behind(std::make_shared<NgramLookup>(choice.ngram, choice.ngram_length));
  }
  return made;
}

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Which drafters the sessions of a generator have: lookup in texts, or nothing. Of the lookups that
// are chosen the suffix one is asked first, as it knows more.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "generate/drafter.h"

namespace gen::generate {

constexpr int32_t kDefaultDraftLength = 4;
constexpr int32_t kDefaultLookupLength = 8;
constexpr int32_t kMostDraftLength = kMostDraftRows - 1;

struct DraftChoice {
  int32_t ngram = 0;                            // tokens looked for in the text; 0: none are
  int32_t ngram_length = kDefaultLookupLength;  // tokens of a guess
  int32_t suffix_length = 0;                    // the same of suffix lookup; 0: none
  int32_t suffix_recent = 0;                    // tokens of ended texts that it keeps
};

/// Null where nothing is chosen. std::bad_alloc.
Result<std::shared_ptr<Drafter>> make_drafter(const DraftChoice& choice);

}  // namespace gen::generate

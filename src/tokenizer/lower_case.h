// SPDX-License-Identifier: Apache-2.0
// One letter in lower case.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tokenizer/letter_data.h"

namespace gen::tokenizer {

/// `character` itself if it has no lower case.
inline uint32_t lower_case(uint32_t character) noexcept {
  const auto all = cases();
  const auto after =
      std::upper_bound(all.begin(), all.end(), character,
                       [](uint32_t wanted, const CaseRun& run) { return wanted < run.first; });
  if (after == all.begin()) return character;
  const CaseRun& run = *(after - 1);
  if (character > run.last || (character - run.first) % run.step != 0) return character;
  return character + static_cast<uint32_t>(run.delta);
}

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// See barred.h.
#include "sampling/barred.h"

#include <cstddef>
#include <limits>

namespace gen::sampling {

void apply_barred(std::span<const int32_t> tokens, std::span<float> logits, RowPeaks* peaks,
                  std::vector<LogitEdit>* edits) {
  constexpr float kOut = -std::numeric_limits<float>::infinity();
  const size_t before = edits->size();
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(token)];
    edits->push_back({token, logit});
    logit = kOut;
    peaks->touch(static_cast<size_t>(token));
  }
  peaks->refresh(logits);
  if (peaks->max() != kOut) return;
  // Backwards, because a token may occur twice.
  while (edits->size() > before) {
    const LogitEdit& edit = edits->back();
    logits[static_cast<size_t>(edit.token)] = edit.before;
    peaks->touch(static_cast<size_t>(edit.token));
    edits->pop_back();
  }
  peaks->refresh(logits);
}

}  // namespace gen::sampling

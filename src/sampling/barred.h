// SPDX-License-Identifier: Apache-2.0
// The stage that suppresses tokens for now: those that end a text before its minimum length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/penalties.h"
#include "sampling/row_peaks.h"

namespace gen::sampling {

/// Sets the logits of `tokens` to -inf and records them in `edits`, unless no token would be left:
/// then nothing changes. Tokens outside the row are ignored; `peaks` are those of the row, before
/// and after.
void apply_barred(std::span<const int32_t> tokens, std::span<float> logits, RowPeaks* peaks,
                  std::vector<LogitEdit>* edits);

}  // namespace gen::sampling

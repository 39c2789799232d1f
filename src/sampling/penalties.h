// SPDX-License-Identifier: Apache-2.0
// Stages that change single logits in place: the bias and the repetition penalty. What they change
// is noted, because log-probabilities are those of the raw logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/params.h"

namespace gen::sampling {

/// A changed logit and what it was before; the first entry of a token is the raw one.
struct LogitEdit {
  int32_t token = 0;
  float before = 0.0F;
};

/// logits[token] += bias. Tokens outside the row are ignored.
void apply_bias(std::span<const LogitBias> bias, std::span<float> logits,
                std::vector<LogitEdit>* edits);

/// Once per distinct token of the last `window` (0: all) of `generated`: a positive logit is
/// divided by `penalty`, any other multiplied. `seen` and `epoch` mark the tokens done, without
/// clearing V marks at every step.
void apply_repetition_penalty(std::span<const int32_t> generated, double penalty, int32_t window,
                              std::span<float> logits, std::vector<uint32_t>* seen, uint32_t* epoch,
                              std::vector<LogitEdit>* edits);

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// See logits_check.h.
#include "model/logits_check.h"

#include <cmath>
#include <limits>

namespace gen::model {

using graph::kWantsBest;
using graph::kWantsLogits;

namespace {

bool usable(float logit) { return logit <= std::numeric_limits<float>::max(); }

Status not_finite(size_t row, float logit, size_t token) {
  return error(Code::kModel, "logits of row %zu are not finite: %g at token %zu", row,
               static_cast<double>(logit), token);
}

}  // namespace

Status check_rows(const graph::Batch& batch, size_t width) {
  const float* row = batch.logits;
  for (size_t t = 0; t < batch.wants.size(); ++t) {
    if (batch.wants[t] != kWantsLogits) continue;
    for (size_t i = 0; i < width; ++i) {
      if (std::isfinite(row[i])) continue;
      return error(Code::kModel, "what row %zu answers with is not finite: %g at %zu", t,
                   static_cast<double>(row[i]), i);
    }
    row += width;
  }
  return {};
}

Status check_logits(const graph::Batch& batch, size_t vocab) {
  const float* row = batch.logits;
  size_t best = 0;  // index into the best tokens of rows
  for (size_t t = 0; t < batch.wants.size(); ++t) {
    if (batch.wants[t] == kWantsBest) {
      if (batch.best.tokens[best] < 0) [[unlikely]] {
        return not_finite(t, batch.best.logits[best],
                          static_cast<size_t>(-1 - batch.best.tokens[best]));
      }
      best += static_cast<size_t>(batch.best.k);
    }
    if (batch.wants[t] != kWantsLogits) continue;
    bool all = true;
    for (size_t i = 0; i < vocab; ++i) all &= usable(row[i]);
    if (!all) [[unlikely]] {
      size_t token = 0;
      while (usable(row[token])) ++token;
      return not_finite(t, row[token], token);
    }
    row += vocab;
  }
  return {};
}

}  // namespace gen::model

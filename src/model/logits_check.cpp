// SPDX-License-Identifier: Apache-2.0
// See logits_check.h.
#include "model/logits_check.h"

#include <limits>

namespace gen::model {
namespace {

bool usable(float logit) { return logit <= std::numeric_limits<float>::max(); }

}  // namespace

Status check_logits(const graph::Batch& batch, size_t vocab) {
  const float* row = batch.logits;
  for (size_t t = 0; t < batch.wants_logits.size(); ++t) {
    if (batch.wants_logits[t] == 0) continue;
    bool all = true;
    for (size_t i = 0; i < vocab; ++i) all &= usable(row[i]);
    if (!all) [[unlikely]] {
      size_t token = 0;
      while (usable(row[token])) ++token;
      return error(Code::kModel, "logits of row %zu are not finite: %g at token %zu", t,
                   static_cast<double>(row[token]), token);
    }
    row += vocab;
  }
  return {};
}

}  // namespace gen::model

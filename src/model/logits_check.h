// SPDX-License-Identifier: Apache-2.0
// What every model looks at before it hands out logits.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "graph/batch.h"

namespace gen::model {

/// kModel naming row and token for NaN or +inf in the logits of a batch that has run. -inf is a
/// token that is never drawn.
Status check_logits(const graph::Batch& batch, size_t vocab);

}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// The check of every model before it returns logits.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "graph/batch.h"

namespace gen::model {

/// kModel naming row and token for NaN or +inf in the logits of a batch that has run. -inf is a
/// token that is never sampled.
Status check_logits(const graph::Batch& batch, size_t vocab);

/// The same for rows of `width` numbers that are not logits; -inf is not allowed in them either.
Status check_rows(const graph::Batch& batch, size_t width);

}  // namespace gen::model

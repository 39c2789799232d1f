// SPDX-License-Identifier: Apache-2.0
// See sequence_store.h.
#include "cache/batch/sequence_store.h"

#include <limits>

namespace gen::cache {

Status check_batch(const SequenceBatch& batch, int32_t max_batch) {
  const size_t n = batch.positions.size();
  if (n == 0 || n > static_cast<size_t>(max_batch) || batch.sequences.size() != n) {
    return error(Code::kInvalidArgument, "a batch of %zu tokens, outside [1, %d]", n, max_batch);
  }
  for (size_t i = 0; i < n; ++i) {
    // The last position must have a successor.
    if (batch.positions[i] < 0 || batch.sequences[i] < 0 ||
        batch.positions[i] == std::numeric_limits<int32_t>::max()) {
      return error(Code::kInvalidArgument, "token %zu is at position %d of sequence %d", i,
                   batch.positions[i], batch.sequences[i]);
    }
  }
  for (const int32_t token : batch.multimodal) {
    if (token >= 0 && static_cast<size_t>(token) < n) continue;
    return error(Code::kOutOfRange, "multimodal token %d outside a batch of %zu", token, n);
  }
  return {};
}

}  // namespace gen::cache

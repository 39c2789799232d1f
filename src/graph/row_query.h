// SPDX-License-Identifier: Apache-2.0
// The outputs requested for a row of a batch, and where they are written. The caller fills in a
// RowQuery, which is passed down with the rows of one sequence. A batch of several sequences has
// the same fields for all of its rows. All memory is host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace gen::graph {

/// The outputs of a row.
enum Wants : uint8_t { kWantsNothing, kWantsLogits, kWantsBest };

/// The output buffers of rows that want best, see engine::BestArgs.
struct BestRows {
  int32_t k = 1;              // best tokens of each row
  int32_t* tokens = nullptr;  // [rows that want best, k]
  float* logits = nullptr;
  size_t rows = 0;         // capacity in rows
  double* mass = nullptr;  // [rows that want best, mass_slices]; for rows that want their mass
  size_t mass_slices = 0;  // of a row of logits (base/mass_slices.h)
  float* slice = nullptr;  // [rows that want best, kMassSlice]; for rows that want a slice
  float* aside_logits = nullptr;  // of all tokens aside, row after row
};

/// Parameters of a row that wants best; all empty if it has none.
struct RowExtras {
  int32_t row = 0;  // of the batch
  /// The token mask: token t is allowed if bit t % 32 of mask[t / 32] is set. Empty: all are.
  std::span<const uint32_t> mask = {};
  /// Tokens excluded from the best; their original logits are returned. May contain duplicates.
  std::span<const int32_t> aside = {};
  double temperature = 0.0;  // of the mass that it wants, see engine::BestArgs; 0: none
  double place = -1.0;       // of the slice that it wants with it; below 0: none
  [[nodiscard]] bool empty() const noexcept {
    return mask.empty() && aside.empty() && temperature == 0.0;
  }
};

/// A caller's own work while a pass runs. A failure fails the pass.
struct During {
  Status (*call)(void* context) noexcept = nullptr;  // null: none
  void* context = nullptr;
};

/// Of the rows of one sequence.
struct RowQuery {
  float* logits = nullptr;  // [rows that want logits, V]
  BestRows best;
  RowExtras extras;  // of the last row, where it is the only one that wants best
  During during;     // writes extras.mask, or does nothing

  [[nodiscard]] Wants wants() const noexcept {
    if (logits != nullptr) return kWantsLogits;
    return best.tokens != nullptr ? kWantsBest : kWantsNothing;
  }
  /// The same for the rows behind the first `rows`, of `vocab` logits each.
  [[nodiscard]] RowQuery behind(size_t rows, size_t vocab) const noexcept {
    RowQuery rest = *this;
    if (logits != nullptr) rest.logits += rows * vocab;
    if (best.tokens != nullptr) {
      rest.best.tokens += rows * static_cast<size_t>(best.k);
      rest.best.logits += rows * static_cast<size_t>(best.k);
    }
    return rest;
  }
};

}  // namespace gen::graph

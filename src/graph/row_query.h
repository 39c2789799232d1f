// SPDX-License-Identifier: Apache-2.0
// What a row of a batch answers with, and where the answer goes. Who asks fills in a RowQuery; it
// goes down with the rows of one sequence as it is, and a batch of several has the same pieces for
// all of its rows. All memory is the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace gen::graph {

/// What a row answers with.
enum Wants : uint8_t { kWantsNothing, kWantsLogits, kWantsBest };

/// Where the answers of rows that want best go, see engine::BestArgs.
struct BestRows {
  int32_t k = 1;              // best tokens of each row
  int32_t* tokens = nullptr;  // [rows that want best, k]
  float* logits = nullptr;
  size_t rows = 0;         // capacity in rows
  double* mass = nullptr;  // [rows that want best, mass_parts]; for rows that want their mass
  size_t mass_parts = 0;   // of a row of logits (base/mass_parts.h)
  float* part = nullptr;   // [rows that want best, kMassPart]; for those that want a part
  float* aside_logits = nullptr;  // of all tokens aside, row after row
};

/// What comes with a row that wants best; all is empty where nothing does.
struct RowExtras {
  int32_t row = 0;  // of the batch
  /// The tokens that it may answer with: token t if bit t % 32 of mask[t / 32] is set. Empty: all.
  std::span<const uint32_t> mask = {};
  /// Tokens that its best are not: their logits, as they came, come back instead. One may be there
  /// twice.
  std::span<const int32_t> aside = {};
  double temperature = 0.0;  // of the mass that it wants, see engine::BestArgs; 0: none
  double place = -1.0;       // of the part that it wants with it; below 0: none
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

// SPDX-License-Identifier: Apache-2.0
// The pending moves after a commit of rows that are not the first of their plan (Kept::rows):
// entries that move down to their places. Noting them takes no memory and cannot fail.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"

namespace gen::cache {

/// Moves of one plan's entries; a cache settles them before it makes the next.
class PathMoves {
 public:
  /// Entries plan.start + kept.rows[i] become plan.start + i.
  void note(const CachePlan& plan, Kept kept) noexcept {
    GEN_ASSERT(n_ == 0 && kept.n <= plan.count);
    if (kept.rows == nullptr) return;
    int32_t first = 0;  // that is not where it belongs
    while (first < kept.n && kept.rows[first] == first) ++first;
    if (first == kept.n) return;
    GEN_ASSERT(kept.rows[kept.n - 1] < std::min(plan.count, kMaxTreeRows));
    start_ = plan.start;
    first_ = first;
    n_ = kept.n;
    for (int32_t i = first; i < kept.n; ++i) rows_[i] = static_cast<uint8_t>(kept.rows[i]);
  }
  [[nodiscard]] bool empty() const noexcept { return n_ == 0; }
  /// Of `length` entries, those before the first that is to move.
  [[nodiscard]] int32_t settled(int32_t length) const noexcept {
    return empty() ? length : std::min(length, start_ + first_);
  }
  /// Entries from `length` on are gone.
  void cut(int32_t length) noexcept {
    if (empty()) return;
    n_ = std::min(n_, length - start_);
    if (n_ <= first_) n_ = 0;
  }
  void clear() noexcept { n_ = 0; }

  /// Moves them in layers that lie as `entries` says. Entries go down, in ascending order, so none
  /// is written before it was read.
  Status move(engine::EngineMemory& memory, const engine::KvEntries& entries) const {
    if (empty()) return {};
    engine::KvRun runs[kMaxTreeRows];
    size_t n = 0;
    for (int32_t i = first_; i < n_; ++i) runs[n++] = {start_ + rows_[i], start_ + i};
    return memory.run(engine::KvCopyArgs{entries, entries, {runs, n}});
  }

 private:
  int32_t start_ = 0;
  int32_t first_ = 0;
  int32_t n_ = 0;  // rows [first_, n_) of the path move; 0: none
  uint8_t rows_[kMaxTreeRows] = {};
};
static_assert(kMaxTreeRows <= 256, "a row is a byte");

}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// A point that a sequence's state can come back to (state/sequence_state.h), as what keeps it
// beside blocks sees it (prefix/prefix_cache.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::cache {

/// What a state was after so many positions. Immutable; shared by all that may come back to it.
class StateSnapshot {
 public:
  virtual ~StateSnapshot() = default;
  [[nodiscard]] virtual int32_t length() const noexcept = 0;
  /// Bytes that it keeps from being freed, and what identifies them: snapshots of one pass may
  /// share their memory.
  [[nodiscard]] virtual size_t bytes() const noexcept = 0;
  [[nodiscard]] virtual const void* memory() const noexcept = 0;
};

}  // namespace gen::cache

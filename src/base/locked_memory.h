// SPDX-License-Identifier: Apache-2.0
// Memory that the system may not page out or drop.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"

namespace gen {

/// Holds pages in memory until it goes, which must be before they do. Movable only.
class LockedMemory {
 public:
  using Part = std::span<const std::byte>;

  LockedMemory() noexcept = default;
  LockedMemory(LockedMemory&& other) noexcept;
  LockedMemory& operator=(LockedMemory&& other) noexcept;
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;
  ~LockedMemory();

  /// Locks the pages that any of `parts` lie on, and loads those that are not resident yet.
  /// kOutOfMemory naming the limit if the system refuses some of them; then none are locked.
  static Result<LockedMemory> lock(std::vector<Part> parts);

 private:
  std::vector<Part> held_;  // whole pages
};

}  // namespace gen

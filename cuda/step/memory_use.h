// SPDX-License-Identifier: Apache-2.0
// The address ranges that operations read and write. They determine the dependencies of operations
// and whether a list of operations may run twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace gen::cuda {

struct MemoryRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  [[nodiscard]] bool overlaps(const MemoryRange& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
};
inline MemoryRange range_of(const void* at, size_t bytes) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  return {begin, begin + (at != nullptr ? bytes : 0)};
}
/// Stands for all caches, since addresses of entries are known on the device only.
inline constexpr MemoryRange kCaches = {1, 2};

struct MemoryUse {
  std::vector<MemoryRange> reads;
  std::vector<MemoryRange> writes;

  /// Whether it must run after `earlier`.
  [[nodiscard]] bool follows(const MemoryUse& earlier) const noexcept;
};

/// A union of ranges.
class RangeSet {
 public:
  void add(MemoryRange range);
  void remove(const MemoryRange& range);
  [[nodiscard]] bool covers(const MemoryRange& range) const noexcept;
  [[nodiscard]] bool overlaps(const MemoryRange& range) const noexcept;
  [[nodiscard]] std::vector<MemoryRange> all() const;

 private:
  std::map<uintptr_t, uintptr_t> ends_;  // by begin; neither overlapping nor touching
};

/// Whether a list gives the same results when it runs again: it writes none of its inputs. Caches
/// are assumed to be written alike.
bool repeatable(const std::vector<MemoryUse>& list);

/// The direct dependencies of each operation of a list, without those implied by others.
std::vector<std::vector<int32_t>> waits_of(const std::vector<MemoryUse>& list);

}  // namespace gen::cuda

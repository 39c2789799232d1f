// SPDX-License-Identifier: Apache-2.0
// Which memory operations read and write, as ranges of addresses: what has to come before what, and
// whether a list of operations may run twice.
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
/// Stands for all caches: where entries lie is known on the device only.
inline constexpr MemoryRange kCaches = {1, 2};

struct MemoryUse {
  std::vector<MemoryRange> reads;
  std::vector<MemoryRange> writes;

  /// Whether it has to come after `earlier`.
  [[nodiscard]] bool follows(const MemoryUse& earlier) const noexcept;
};

/// Ranges united.
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

/// Whether a list of such uses does the same when it runs again: nothing that it reads from before
/// itself is written by it. Caches count as written alike.
bool repeatable(const std::vector<MemoryUse>& list);

/// For each of a list those before it that it has to wait for; what these wait for goes without
/// saying.
std::vector<std::vector<int32_t>> waits_of(const std::vector<MemoryUse>& list);

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// See memory_use.h.
#include "cuda/step/memory_use.h"

#include <algorithm>
#include <iterator>

namespace gen::cuda {
namespace {

bool any_overlap(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) noexcept {
  return std::any_of(a.begin(), a.end(), [&](const MemoryRange& x) {
    return std::any_of(b.begin(), b.end(), [&](const MemoryRange& y) { return x.overlaps(y); });
  });
}

bool of_caches(const MemoryRange& range) noexcept { return range.overlaps(kCaches); }

}  // namespace

bool MemoryUse::follows(const MemoryUse& earlier) const noexcept {
  return any_overlap(reads, earlier.writes) || any_overlap(writes, earlier.writes) ||
         any_overlap(writes, earlier.reads);
}

void RangeSet::add(MemoryRange range) {
  if (range.begin >= range.end) return;
  auto at = ends_.upper_bound(range.begin);
  if (at != ends_.begin() && std::prev(at)->second >= range.begin) --at;
  while (at != ends_.end() && at->first <= range.end) {
    range.begin = std::min(range.begin, at->first);
    range.end = std::max(range.end, at->second);
    at = ends_.erase(at);
  }
  ends_[range.begin] = range.end;
}

void RangeSet::remove(const MemoryRange& range) {
  if (range.begin >= range.end) return;
  auto at = ends_.lower_bound(range.begin);
  if (at != ends_.begin() && std::prev(at)->second > range.begin) --at;
  while (at != ends_.end() && at->first < range.end) {
    const auto [begin, end] = *at;
    at = ends_.erase(at);
    if (begin < range.begin) ends_[begin] = range.begin;
    if (end > range.end) ends_[range.end] = end;
  }
}

bool RangeSet::covers(const MemoryRange& range) const noexcept {
  if (range.begin >= range.end) return true;
  const auto after = ends_.upper_bound(range.begin);
  return after != ends_.begin() && std::prev(after)->second >= range.end;
}

bool RangeSet::overlaps(const MemoryRange& range) const noexcept {
  if (range.begin >= range.end) return false;
  const auto after = ends_.lower_bound(range.end);
  return after != ends_.begin() && std::prev(after)->second > range.begin;
}

std::vector<MemoryRange> RangeSet::all() const {
  std::vector<MemoryRange> ranges;
  ranges.reserve(ends_.size());
  for (const auto& [begin, end] : ends_) ranges.push_back({begin, end});
  return ranges;
}

bool repeatable(const std::vector<MemoryUse>& list) {
  RangeSet written;
  std::vector<MemoryRange> from_before;
  for (const MemoryUse& use : list) {
    for (const MemoryRange& range : use.reads) {
      if (!of_caches(range) && !written.covers(range)) from_before.push_back(range);
    }
    for (const MemoryRange& range : use.writes) written.add(range);
  }
  return std::none_of(from_before.begin(), from_before.end(),
                      [&](const MemoryRange& range) { return written.overlaps(range); });
}

std::vector<std::vector<int32_t>> waits_of(const std::vector<MemoryUse>& list) {
  std::vector<std::vector<int32_t>> waits(list.size());
  std::vector<std::vector<bool>> before(list.size());  // all direct and indirect dependencies
  for (size_t i = 0; i < list.size(); ++i) {
    before[i].assign(list.size(), false);
    for (size_t j = i; j-- > 0;) {
      if (before[i][j] || !list[i].follows(list[j])) continue;
      waits[i].push_back(static_cast<int32_t>(j));
      before[i][j] = true;
      for (size_t k = 0; k < j; ++k) {
        if (before[j][k]) before[i][k] = true;
      }
    }
  }
  return waits;
}

}  // namespace gen::cuda

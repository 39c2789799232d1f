// SPDX-License-Identifier: Apache-2.0
// See snapshot_list.h.
#include "cache/state/snapshot_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gen::cache {

SnapshotList::Snapshot SnapshotList::at_most(int32_t n) const noexcept {
  for (size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].snapshot->length() <= n) return entries_[i].snapshot;
  }
  return nullptr;
}

SnapshotList::Snapshot SnapshotList::at(int32_t n) const noexcept {
  Snapshot found = at_most(n);
  return found != nullptr && found->length() == n ? found : nullptr;
}

void SnapshotList::set_budget(size_t bytes) noexcept {
  budget_ = bytes;
  fit();
}

void SnapshotList::reserve(size_t more) {
  const size_t wanted = entries_.size() + more;
  if (wanted > entries_.capacity()) entries_.reserve(std::max(wanted, 2 * entries_.capacity()));
}

void SnapshotList::add(Snapshot snapshot, SnapshotPlace place) noexcept {
  if (!entries_.empty() && entries_.back().snapshot->length() == snapshot->length()) {
    if (place == SnapshotPlace::kBorder) entries_.back().place = place;
    return;
  }
  entries_.push_back({std::move(snapshot), place});
  fit();
}

void SnapshotList::insert(const SnapshotList& others) {
  const int32_t first =
      entries_.empty() ? std::numeric_limits<int32_t>::max() : entries_.front().snapshot->length();
  auto end = others.entries_.begin();
  while (end != others.entries_.end() && end->snapshot->length() < first) ++end;
  entries_.insert(entries_.begin(), others.entries_.begin(), end);
  fit();
}

void SnapshotList::cut(int32_t n) noexcept {
  while (!entries_.empty() && entries_.back().snapshot->length() > n) entries_.pop_back();
  count();
}

void SnapshotList::replace(size_t i, Snapshot by) noexcept {
  if (by != nullptr) {
    entries_[i].snapshot = std::move(by);
  } else {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  fit();
}

SnapshotList::Run SnapshotList::run_from(size_t first) const noexcept {
  size_t end = first + 1;
  const void* const memory = entries_[first].snapshot->memory();
  while (end < entries_.size() && entries_[end].snapshot->memory() == memory) ++end;
  return {first, end};
}

void SnapshotList::count() noexcept {
  bytes_ = 0;
  for (size_t i = 0; i < entries_.size(); i = run_from(i).end) {
    bytes_ += entries_[i].snapshot->bytes();
  }
}

// The density of cuts at a distance d from the end is taken as 1/d, so its integral is a logarithm.
double SnapshotList::loss(const Run& run) const noexcept {
  const int32_t end = entries_.back().snapshot->length() + 1;
  const int32_t before = run.first > 0 ? entries_[run.first - 1].snapshot->length() : 0;
  double borders = 0;  // from this one to the end
  for (size_t i = run.end; i < entries_.size(); ++i) {
    if (entries_[i].place == SnapshotPlace::kBorder) ++borders;
  }
  double sum = 0;
  for (size_t i = run.end; i-- > run.first;) {
    const int32_t at = entries_[i].snapshot->length();
    const int32_t next = i + 1 < entries_.size() ? entries_[i + 1].snapshot->length() : end - 1;
    double cuts = std::log(static_cast<double>(end - at) / (end - next));
    if (entries_[i].place == SnapshotPlace::kBorder) cuts += 1 / ++borders;
    sum += static_cast<double>(at - before) * cuts;
  }
  return sum;
}

SnapshotList::Run SnapshotList::victim() const noexcept {
  // The entries that go last, the most useful first.
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  size_t last[] = {kNone, entries_.size() - 1, kNone};
  for (size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].place != SnapshotPlace::kBorder) continue;
    if (last[0] == kNone) {
      last[0] = i;
    } else {
      last[2] = i;
      break;
    }
  }
  const auto holds = [](const Run& run, size_t i) { return i >= run.first && i < run.end; };
  const auto frees = [this](const Run& run) { return entries_[run.first].snapshot->bytes() > 0; };
  Run least;
  double least_loss = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < entries_.size();) {
    const Run run = run_from(i);
    i = run.end;
    if (holds(run, last[0]) || holds(run, last[1]) || holds(run, last[2])) continue;
    if (!frees(run)) continue;
    const double lost = loss(run);
    if (lost >= least_loss) continue;
    least = run;
    least_loss = lost;
  }
  for (size_t rank = 3; least.end == 0 && rank-- > 0;) {
    if (last[rank] == kNone) continue;
    size_t first = last[rank];
    while (first > 0 && holds(run_from(first - 1), last[rank])) --first;
    const Run run = run_from(first);
    if (!frees(run)) continue;
    bool better = false;
    for (size_t other = 0; other < rank; ++other) better = better || holds(run, last[other]);
    if (!better) least = run;
  }
  return least;
}

void SnapshotList::fit() noexcept {
  count();
  while (bytes_ > budget_ && !entries_.empty()) {
    const Run run = victim();
    const auto at = [this](size_t i) { return entries_.begin() + static_cast<std::ptrdiff_t>(i); };
    entries_.erase(at(run.first), at(run.end));
    count();
  }
}

}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Where a sequence takes snapshots of its state: docs/decisions/0015-snapshots-of-states.md. At the
// borders among these places windows are kept, too. See sequence.h.
#include <algorithm>
#include <limits>
#include <utility>

#include "cache/prefix/prefix_cache.h"
#include "generate/loop/generator.h"
#include "generate/loop/sequence.h"

namespace gen::generate {
namespace {

using cache::SnapshotPlace;

// So many tokens may be evaluated again rather than that a pass ends for them alone.
constexpr int32_t kNear = 16;

constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

}  // namespace

void Sequence::remember_here(SnapshotPlace place) noexcept {
  if (stale_ || evaluated() == 0) return;
  try {
    // A point is of entries that lie where they belong.
    if (keeps_windows_ && cache_->plan(0).ok()) cache_->remember(evaluated(), place);
    if (!keeps_snapshots() || state_->length() != evaluated()) return;
    (void)state_->snapshots()->snapshot(cache::StateSnapshots::kNow, place);
  } catch (...) {  // no memory for a snapshot: going back takes longer
  }
}

void Sequence::choose_stops() {
  const int32_t begin = evaluated();
  const int32_t quiet = quiet_end();
  if (end_ - begin <= 1 || quiet <= begin) return;
  remember_here(SnapshotPlace::kBorder);
  const int32_t free = end_ - most_kept();
  for (const int32_t border : borders_) {
    if (border <= begin || border > quiet) continue;
    if (border >= free || border - begin >= kNear) {
      stops_.push_back({border, true, SnapshotPlace::kBorder});
    }
  }
  // The last row runs again for another answer. A message's end shortly before it serves that, too.
  if (quiet - (stops_.empty() ? begin : stops_.back().at) >= kNear) {
    stops_.push_back({quiet, true, SnapshotPlace::kBorder});
  }
  const cache::PrefixCache* const prefixes = this->prefixes();
  if (prefixes == nullptr) return;
  // Other sequences begin at the ends of blocks.
  const int32_t size = prefixes->pool().block_size();
  for (size_t i = stops_.size(); i-- > 0;) {
    stops_.push_back({stops_[i].at / size * size});
  }
  stops_.push_back({quiet / size * size});
  std::stable_sort(stops_.begin(), stops_.end(),
                   [](const Stop& a, const Stop& b) { return a.at < b.at; });
}

Sequence::Stop Sequence::stop_after(int32_t at) const noexcept {
  Stop next{kNever};
  const auto add = [&next, at](const Stop& stop) {
    if (stop.at <= at || stop.at > next.at) return;
    if (stop.at < next.at) {
      next = stop;
      return;
    }
    next.listed = next.listed || stop.listed;
    if (stop.place == SnapshotPlace::kBorder) next.place = stop.place;
  };
  for (const Stop& stop : stops_) add(stop);
  const cache::PrefixCache* const prefixes = this->prefixes();
  const int64_t size = prefixes != nullptr ? prefixes->pool().block_size() : 1;
  if (prefixes != nullptr && genuine_) add({parting_});
  const int64_t every = generator_->options().snapshot_every;
  if (every == 0) return next;
  for (int64_t multiple = at / every * every;; multiple += every) {
    const int64_t place = multiple / size * size;
    if (place > generator_->max_seq_len()) return next;
    if (place <= at) continue;
    add({static_cast<int32_t>(place), true});
    return next;
  }
}

int32_t Sequence::most_kept() const noexcept {
  return keeps_snapshots() && state_->keeps_some() ? state_->snapshots()->most_kept() : 0;
}

int32_t Sequence::pass_end(int32_t at, int32_t* kept_from) const noexcept {
  if (end_ - at == 1) return end_;
  const Stop next = stop_after(at);
  if (next.at >= end_) return end_;
  const int32_t most = std::min(generator_->prefill_chunk(), cache_->plan_limit());
  if (end_ - at > most || end_ - next.at > most_kept()) return next.at;
  *kept_from = next.at;
  return end_;
}

// A ring has the windows of all places within its last pass.
void Sequence::remember_windows(int32_t before) noexcept {
  if (!keeps_windows_ || stale_) return;
  for (const Stop& stop : stops_) {
    if (stop.listed && stop.at > before && stop.at <= evaluated()) {
      cache_->remember(stop.at, stop.place);
    }
  }
}

void Sequence::remember_states(int32_t before) noexcept {
  const int32_t now = evaluated();
  if (!keeps_snapshots() || stale_ || now <= before || state_->length() != now) return;
  try {
    cache::StateSnapshots& snapshots = *state_->snapshots();
    cache::PrefixCache* const prefixes = genuine_ ? this->prefixes() : nullptr;
    const int32_t size = prefixes != nullptr ? prefixes->pool().block_size() : 1;
    const int32_t earliest = std::max(snapshots.earliest(), before + 1);
    int32_t shared = 0;
    for (Stop stop = stop_after(before); stop.at <= now; stop = stop_after(stop.at)) {
      if (stop.at < earliest) continue;
      if (stop.listed) (void)snapshots.snapshot(stop.at, stop.place);
      if (prefixes == nullptr || stop.at % size != 0) continue;
      share_state(*prefixes, stop.at, false);
      shared = stop.at;
    }
    // Of an answer the last end of a block is shared, so that the next turn of another session
    // begins there.
    const int32_t last = now / size * size;
    if (prefixes != nullptr && last >= earliest && last > shared && done()) {
      share_state(*prefixes, last, true);
    }
  } catch (...) {  // no memory for a snapshot: going back takes longer
  }
}

void Sequence::share_state(cache::PrefixCache& prefixes, int32_t n, bool passes) {
  if (shareable(n) < n) return;
  const size_t count = static_cast<size_t>(n / prefixes.pool().block_size());
  const size_t wanted = count * prefixes.bins();
  const auto blocks = cache_->sharing()->blocks();
  if (blocks.size() < wanted) return;
  auto made = state_->snapshots()->share(n);
  if (!made.ok()) return;
  const cache::SnapshotTerms terms = {.budget = kSharedSnapshotBudgets * snapshot_budget_,
                                      .passes = passes,
                                      .instead_of = static_cast<size_t>(passing_)};
  const Status kept = prefixes.insert(prefix_domain(), tokens().first(static_cast<size_t>(n)),
                                      blocks.first(wanted), std::move(made).value(), terms);
  if (!kept.ok()) return;
  passing_ = passes ? n : 0;
  remembered_ = std::max(remembered_, static_cast<int32_t>(count));
}

}  // namespace gen::generate

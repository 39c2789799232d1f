// SPDX-License-Identifier: Apache-2.0
// See suffix_lookup.h.
#include "generate/speculative/suffix_lookup.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "generate/speculative/followed_text.h"

namespace gen::generate {
namespace {

constexpr size_t kPlacesOfText = 16;  // of the text, and as many of others

SuffixLookup::Options checked(SuffixLookup::Options options) noexcept {
  options.most = std::clamp(options.most, 0, kMostDraftRows - 1);
  options.recent = std::max(options.recent, 0);
  return options;
}

/// A place that still agrees with the guess.
struct Voter {
  int64_t next = 0;
  int32_t length = 0;
  bool own = false;
};

}  // namespace

/// The drafter may be gone before it, with the sessions' generator.
struct SuffixLookup::State final : DraftState {
  State(SuffixLookup* owner, int32_t key) noexcept : drafter(owner), text(key) {}
  void ended(std::span<const int32_t> said) noexcept override {
    // Another text than before, or cut: what others know of it may come twice.
    if (given > said.size()) given = 0;
    if (drafter->options_.recent == 0 || given == said.size()) return;
    const auto before = static_cast<size_t>(drafter->options_.depth);
    drafter->remember(said.subspan(given - std::min(given, before)));
    given = said.size();
  }
  [[nodiscard]] std::unique_ptr<DraftState> fork() const override {
    return std::make_unique<State>(*this);
  }

  SuffixLookup* const drafter;
  FollowedText text;
  size_t given = 0;  // tokens of the text that the drafter remembers
};

SuffixLookup::SuffixLookup(const Options& options) noexcept
    : options_(checked(options)), recent_(2, static_cast<size_t>(options_.recent)) {}

std::unique_ptr<DraftState> SuffixLookup::begin() { return std::make_unique<State>(this, 2); }

size_t SuffixLookup::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recent_.memory();
}

// Without memory there is nothing to remember.
void SuffixLookup::remember(std::span<const int32_t> text) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    recent_.part();
    recent_.add(text);
  } catch (...) {
  }
}

void SuffixLookup::look_up(std::span<DraftJob* const> jobs) {
  for (DraftJob* const job : jobs) {
    auto& state = *static_cast<State*>(job->state);
    state.text.follow(job->tokens);
    guess(job);
    cut_to_rule(job);
  }
}

void SuffixLookup::guess(DraftJob* job) {
  const FollowedText& text = static_cast<State*>(job->state)->text;
  std::array<TextIndex::Match, kPlacesOfText> places;
  std::array<Voter, 2 * kPlacesOfText> voters;
  size_t count = 0;
  int32_t longest = 0;
  const auto take = [&](size_t found, bool own) {
    for (size_t i = 0; i < found; ++i) {
      voters[count++] = {places[i].next, places[i].length, own};
      longest = std::max(longest, places[i].length);
    }
  };
  take(text.index().find(job->tokens, options_.depth, places), true);
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (options_.recent > 0) {
    lock.lock();
    take(recent_.find(job->tokens, options_.depth, places), false);
  }
  if (longest < options_.least_depth) return;
  const auto end = voters.begin() + static_cast<std::ptrdiff_t>(count);
  count = static_cast<size_t>(
      std::remove_if(voters.begin(), end, [&](const Voter& v) { return v.length < longest; }) -
      voters.begin());

  // An agreement that is short promises a short continuation.
  const int32_t most = std::min({job->most, options_.most, 2 * longest});
  const auto all = static_cast<double>(count);
  std::array<int32_t, 2 * kPlacesOfText> said;
  for (int32_t row = 0; row < most && count > 0; ++row) {
    size_t best = 0;
    size_t votes = 0;
    for (size_t i = 0; i < count; ++i) {
      said[i] = voters[i].own
                    ? text.at(voters[i].next + row, job->tree)
                    : (recent_.holds(voters[i].next + row) ? recent_.at(voters[i].next + row)
                                                           : TextIndex::kGap);
    }
    for (size_t i = 0; i < count; ++i) {
      const auto same = static_cast<size_t>(
          std::count(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(count), said[i]));
      if (said[i] >= 0 && same > votes) {
        votes = same;
        best = i;
      }
    }
    if (votes == 0 || static_cast<double>(votes) < options_.least_share * all) return;
    const int32_t token = said[best];
    job->tree.add(token, row, FollowedText::grade(longest, static_cast<double>(votes) / all));
    size_t left = 0;
    for (size_t i = 0; i < count; ++i) {
      if (said[i] == token) voters[left++] = voters[i];
    }
    count = left;
  }
}

}  // namespace gen::generate

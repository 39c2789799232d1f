// SPDX-License-Identifier: Apache-2.0
// See suffix_lookup.h.
#include "generate/draft/suffix_lookup.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "generate/draft/followed_text.h"

namespace gen::generate {
namespace {

constexpr size_t kPlacesOfText = 16;  // in the session's own text, and as many in others
// Lookup across a gap of new tokens.
constexpr size_t kPlacesOfGap = 6;  // places for each length of the gap
constexpr int32_t kMaxGap = 3;
constexpr int32_t kLeastBefore = 4;  // matching tokens before the gap
constexpr double kGapShare = 0.1;    // as least_share; lower, since other places vote as well
constexpr size_t kMaxVoters = kPlacesOfGap * kMaxGap * kMaxGap;
static_assert(kMaxVoters >= 2 * kPlacesOfText);

SuffixLookup::Options checked(SuffixLookup::Options options) noexcept {
  options.most = std::clamp(options.most, 0, kMaxDraftRows - 1);
  options.recent = std::max(options.recent, 0);
  options.gap = std::clamp(options.gap, 0, kMaxGap);
  return options;
}

}  // namespace

/// Places that match the text and the tokens drafted so far.
class SuffixLookup::Voters {
 public:
  /// Adds a place before which `length` tokens match, in the session's own text or in another one.
  void add(int64_t next, int32_t length, bool own) noexcept {
    voters_[count_++] = {next, length, own};
    longest_ = std::max(longest_, length);
  }
  [[nodiscard]] int32_t longest() const noexcept { return longest_; }
  void drop_shorter(int32_t length) noexcept {
    keep([length](const Voter& voter) { return voter.length >= length; });
  }
  /// Adds the tokens with the most votes to the job's tree, while they have at least `share` of all
  /// voters. `graded` turns the share into a grade.
  template <typename Graded>
  void guess(DraftJob* job, const FollowedText& text, const TextIndex& others, int32_t most,
             double share, const Graded& graded) {
    const auto all = static_cast<double>(count_);
    for (int32_t row = 0; row < most && count_ > 0; ++row) {
      for (size_t i = 0; i < count_; ++i) {
        Voter& voter = voters_[i];
        const int64_t place = voter.next + row;
        voter.says = voter.own             ? text.at(place, job->tree)
                     : others.holds(place) ? others.at(place)
                                           : TextIndex::kGap;
      }
      size_t votes = 0;
      int32_t token = -1;
      for (size_t i = 0; i < count_; ++i) {
        const int32_t says = voters_[i].says;
        if (says < 0) continue;
        const auto same = static_cast<size_t>(
            std::count_if(voters_.begin(), voters_.begin() + static_cast<std::ptrdiff_t>(count_),
                          [says](const Voter& voter) { return voter.says == says; }));
        if (same <= votes) continue;
        votes = same;
        token = says;
      }
      if (votes == 0 || static_cast<double>(votes) < share * all) return;
      job->tree.add(token, row, graded(static_cast<double>(votes) / all));
      keep([token](const Voter& voter) { return voter.says == token; });
    }
  }

 private:
  struct Voter {
    int64_t next = 0;
    int32_t length = 0;
    bool own = false;
    int32_t says = -1;
  };
  template <typename Keeps>
  void keep(const Keeps& keeps) noexcept {
    size_t left = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (keeps(voters_[i])) voters_[left++] = voters_[i];
    }
    count_ = left;
  }

  std::array<Voter, kMaxVoters> voters_;
  size_t count_ = 0;
  int32_t longest_ = 0;
};

/// It may outlive the drafter, which goes with the generator.
struct SuffixLookup::State final : DraftState {
  State(SuffixLookup* owner, int32_t key) noexcept : drafter(owner), text(key) {}
  void ended(std::span<const int32_t> said) noexcept override {
    // The text was replaced or cut. Parts of it may then be remembered twice.
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
  size_t given = 0;  // tokens of the text that the drafter has stored
};

SuffixLookup::SuffixLookup(const Options& options) noexcept
    : options_(checked(options)), recent_(2, static_cast<size_t>(options_.recent)) {}

std::unique_ptr<DraftState> SuffixLookup::begin() { return std::make_unique<State>(this, 2); }

size_t SuffixLookup::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recent_.memory();
}

// Does nothing if memory runs out.
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
  Voters voters;
  const auto take = [&](size_t found, bool own) {
    for (size_t i = 0; i < found; ++i) voters.add(places[i].next, places[i].length, own);
  };
  take(text.index().find(job->tokens, options_.depth, places), true);
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (options_.recent > 0) {
    lock.lock();
    take(recent_.find(job->tokens, options_.depth, places), false);
  }
  const int32_t longest = voters.longest();
  if (longest < options_.least_depth) return guess_behind_gap(job);
  voters.drop_shorter(longest);
  // A short match predicts a short continuation.
  voters.guess(job, text, recent_, std::min({job->most, options_.most, 2 * longest}),
               options_.least_share,
               [longest](double share) { return FollowedText::grade(longest, share); });
}

// The tokens that stood at the place of the new ones may have been fewer or more. All lengths are
// tried: where the alignment is right the places agree, elsewhere they hardly do, so the vote
// decides.
void SuffixLookup::guess_behind_gap(DraftJob* job) const {
  const FollowedText& text = static_cast<State*>(job->state)->text;
  const auto n = static_cast<int64_t>(job->tokens.size());
  std::array<TextIndex::Match, kPlacesOfGap + 1> places;  // the gap itself is one of them
  Voters voters;
  for (int32_t gap = 1; gap <= options_.gap && gap < n; ++gap) {
    const auto before = job->tokens.first(static_cast<size_t>(n - gap));
    const size_t found = text.index().find(before, options_.depth, places);
    size_t taken = 0;
    for (size_t i = 0; i < found && taken < kPlacesOfGap; ++i) {
      if (places[i].next == n - gap || places[i].length < kLeastBefore) continue;
      ++taken;
      for (int32_t stood = 1; stood <= options_.gap; ++stood) {
        voters.add(places[i].next + stood, places[i].length, true);
      }
    }
  }
  voters.drop_shorter(voters.longest() / 2);
  voters.guess(job, text, recent_, std::min(job->most, options_.most), kGapShare,
               [](double) { return FollowedText::kGapGrade; });
}

}  // namespace gen::generate

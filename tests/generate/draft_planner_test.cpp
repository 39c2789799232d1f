// SPDX-License-Identifier: Apache-2.0
// How much is guessed: the rule of a window of outcomes, against one written out; times of passes;
// the account of what guesses cost and bring, against sums; and the number of rows, against the
// best of all numbers by the formula of what they bring. No clock but one that the tests set.
#include "generate/step/draft_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "generate/draft/accept_tracker.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/fake_world.h"
#include "support/counting_new.h"

namespace gen::generate {
namespace {

double drawn(uint64_t n) { return uniform_double(11, 0, n); }

TEST(AcceptTracker, IsTheRuleOfThirtyTwoOutcomes) {
  uint64_t draw = 0;
  for (int32_t trial = 0; trial < 300; ++trial) {
    const int32_t start = static_cast<int32_t>(drawn(draw++) * 12) - 1;
    const double p = drawn(draw++);
    AcceptTracker tracker(start);
    std::deque<bool> last;
    int32_t length = std::min(std::max(start, 1), 8);
    EXPECT_EQ(tracker.rate(), 1.0);
    for (int32_t step = 0; step < 60; ++step) {
      EXPECT_EQ(tracker.length(), length);
      int32_t right = 0;
      while (right < length && drawn(draw++) < p) ++right;
      tracker.record(right, length);
      for (int32_t i = 0; i < length; ++i) last.push_back(i < right);
      while (last.size() > 32) last.pop_front();
      const double rate = static_cast<double>(std::count(last.begin(), last.end(), true)) /
                          static_cast<double>(last.size());
      EXPECT_DOUBLE_EQ(tracker.rate(), rate);
      EXPECT_EQ(tracker.count(), static_cast<int32_t>(last.size()));
      if (last.size() < 16) continue;
      if (rate > 0.8) length = std::min(length + 1, 8);
      if (rate < 0.4) length = std::max(length - 1, 1);
    }
  }
}

TEST(StepCosts, LieBetweenWhatWasMeasured) {
  StepCosts costs;
  EXPECT_EQ(costs.seconds(3), 0);
  EXPECT_FALSE(costs.knows(1));
  costs.note(1, 9.0);
  EXPECT_FALSE(costs.knows(1));
  costs.note(1, 2.0);  // the first made room
  EXPECT_TRUE(costs.knows(1));
  EXPECT_EQ(costs.seconds(1), 2.0);
  EXPECT_EQ(costs.seconds(50), 2.0);
  costs.note(5, 4.0);
  EXPECT_EQ(costs.max_known(), 5);
  EXPECT_DOUBLE_EQ(costs.seconds(3), 3.0);
  EXPECT_DOUBLE_EQ(costs.seconds(5), 4.0);
  costs.note(8, 3.0);  // so fewer do not take more
  EXPECT_DOUBLE_EQ(costs.seconds(8), 3.0);
  EXPECT_DOUBLE_EQ(costs.seconds(5), 3.0);
  EXPECT_DOUBLE_EQ(costs.seconds(3), 2.5);
  EXPECT_DOUBLE_EQ(costs.seconds(1), 2.0);
  costs.note(8, -1.0);
  costs.note(8, std::nan(""));
  EXPECT_DOUBLE_EQ(costs.seconds(8), 3.0);
  for (int32_t rows = 1; rows < 600; ++rows) {
    StepCosts one;
    one.note(rows, 1.5);
    EXPECT_FALSE(one.knows(rows));
    one.note(rows, 1.5);
    EXPECT_TRUE(one.knows(rows));
    EXPECT_DOUBLE_EQ(one.seconds(rows), 1.5);
    EXPECT_EQ(one.knows(rows + 1), rows >= 8 && one.knows(rows + 1));
    costs.note(rows, 0.1 * rows);
  }
  for (int32_t rows = 2; rows < 600; ++rows)
    EXPECT_GE(costs.seconds(rows), costs.seconds(rows - 1));
  // Above what was measured a few rows add nothing, many half of what they have added so far.
  StepCosts few;
  few.note(1, 1.0);
  few.note(4, 2.0);
  EXPECT_DOUBLE_EQ(few.seconds(9), 2.0);
  StepCosts many;
  many.note(4, 2.0);
  EXPECT_DOUBLE_EQ(many.seconds(20), 2.0);
  many.note(8, 3.0);
  many.note(16, 8.0);
  EXPECT_DOUBLE_EQ(many.seconds(16), 8.0);
  EXPECT_DOUBLE_EQ(many.seconds(26), 8.0 + 10 * 0.5 * (8.0 - 2.0) / (16 - 4));
  EXPECT_DOUBLE_EQ(many.seconds(12), 5.5);
  EXPECT_DOUBLE_EQ(many.seconds(2), 2.0);
  // What happens once changes little, what stays is believed.
  StepCosts steady;
  steady.note(1, 1.0);
  steady.note(1, 1000.0);
  EXPECT_LE(steady.seconds(1), 1.2);
  for (int32_t i = 0; i < 200; ++i) steady.note(1, 3.0);
  EXPECT_NEAR(steady.seconds(1), 3.0, 0.01);
}

// Whatever guesses cost and bring, what is lost is what was allowed, and one step more; and where
// they bring more than they cost they are hardly ever held back.
TEST(DraftLedger, BoundsWhatIsLost) {
  uint64_t draw = 500000;
  for (int32_t trial = 0; trial < 200; ++trial) {
    const double costs = 0.05 + 3 * drawn(draw++);
    const double chance = drawn(draw++);
    const double brings = 8 * drawn(draw++);
    DraftLedger ledger;
    double lost = 0;
    double dearest = 0;
    int32_t guessed = 0;
    constexpr int32_t kSteps = 3000;
    for (int32_t step = 0; step < kSteps; ++step) {
      if (!ledger.allows()) {
        ledger.note_step(0);
        continue;
      }
      ++guessed;
      const double cost = costs * (0.5 + drawn(draw++));
      const double right = drawn(draw++) < chance ? brings : 0;
      ledger.note_step(cost);
      ledger.note_right(right);
      lost += cost - right;
      dearest = std::max(dearest, cost);
      EXPECT_LE(lost, 0.5 + 0.01 * (step + 1) + dearest);
    }
    if (chance * brings > 3 * costs && chance > 0.6) {
      EXPECT_GE(guessed, kSteps * 0.9) << costs;
    }
    if (chance * brings < 0.7 * costs) {
      EXPECT_LE(guessed, 0.2 * kSteps + 60) << costs;
    }
    // Won once, and then only lost.
    const double before = lost;
    for (int32_t step = 0; step < 1000; ++step) {
      const double cost = ledger.allows() ? costs : 0;
      ledger.note_step(cost);
      lost += cost;
    }
    EXPECT_LE(lost - before, 4 * (1 + std::max(dearest, costs)) + 10 + costs);
  }
  DraftLedger ledger;
  EXPECT_TRUE(ledger.allows());
  ledger.note_step(1e9);  // the machine did something else
  int32_t waits = 0;
  for (; !ledger.allows() && waits < 3000; ++waits) ledger.note_step(0);
  EXPECT_LT(waits, 2000);
}

/// Sequences whose guesses are right with a chance each, over passes that take what `seconds` says.
class Steps {
 public:
  Steps(std::vector<double> chances, int32_t most, std::function<double(int32_t)> seconds,
        double drafting = 0)
      : chances_(std::move(chances)),
        most_(most),
        seconds_(std::move(seconds)),
        drafting_(drafting),
        grade_(chances_.size()),
        jobs_(chances_.size()),
        requests_(chances_.size()) {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      jobs_[i].tree.begin(0);
      requests_[i].draft = &jobs_[i];
    }
  }
  /// Tokens of one step; rows and time are added up.
  double step() {
    std::vector<StepPlan::Slice> slices;
    for (StepRequest& request : requests_) slices.push_back({&request, 1, most_});
    news = test::news;
    const bool looks = planner_.begin(slices);
    if (looks) {
      for (size_t i = 0; finds && i < jobs_.size(); ++i) {
        const Found found = finds(i);
        jobs_[i].tree.begin(0);
        for (int32_t row = 0; row < found.rows; ++row) jobs_[i].tree.add(1, row, found.grade);
        grade_[i] = found.grade;
        if (found.chance >= 0) chances_[i] = found.chance;
      }
      planner_.limit(slices, finds ? 0 : most_);
      planner_.note_looking(looking);
    } else {
      for (StepPlan::Slice& slice : slices) slice.drafts = 0;
    }
    news = test::news - news;
    int32_t rows = 0;
    int32_t depth = 0;
    double said = 0;
    rows_.clear();
    for (size_t i = 0; i < slices.size(); ++i) {
      const int32_t n = slices[i].drafts;
      EXPECT_LE(n, most_);
      rows_.push_back(n);
      rows += 1 + n;
      depth = std::max(depth, n);
      int32_t right = 0;
      while (right < n && drawn(draw_++) < chances_[i]) ++right;
      jobs_[i].record.grades.fill(static_cast<uint8_t>(grade_[i]));
      jobs_[i].record.proposed = n;
      jobs_[i].record.accepted = right;
      said += 1 + right;
    }
    drafts = rows - static_cast<int32_t>(slices.size());
    const double takes = seconds_(rows) * (guessed_ ? after_guesses : 1);
    guessed_ = drafts > 0;
    if (looks) {
      time += looking;
      clock_ += looking;
    }
    if (depth > 0) planner_.note_proposing(depth, told(depth * drafting_));
    clock_ += depth * drafting_ + (disturb ? takes * disturb() : takes);
    planner_.end(rows);
    const double after = host * said + (drafts > 0 ? accepting : 0);
    clock_ += after;
    time += takes + depth * drafting_ + after;
    tokens += said;
    return said;
  }
  void run(int32_t n) {
    for (int32_t i = 0; i < n; ++i) step();
  }
  /// Tokens a second with so many drafts each time, where all have one chance.
  [[nodiscard]] double expected(int32_t n) const {
    const double p = chances_[0];
    const double brings = p == 1 ? n + 1 : (1 - std::pow(p, n + 1)) / (1 - p);
    return brings / (seconds_(1 + n) + n * drafting_);
  }
  void set_chance(double p) { std::fill(chances_.begin(), chances_.end(), p); }

  /// What a lookup finds for a sequence; null: there is none, and a drafter proposes.
  struct Found {
    int32_t rows = 0;
    int32_t grade = 1;
    double chance = -1;  // that a guess is right; below 0: as before
  };
  std::function<Found(size_t)> finds;
  double looking = 0;                   // seconds that it takes
  double host = 0;                      // seconds that sessions take for each token
  double accepting = 0;                 // and for the guesses of a step
  double after_guesses = 1;             // times that a pass takes behind a step with guesses
  std::function<double()> disturb;      // how much longer a pass seems than it is
  std::function<double(double)> wrong;  // what a clock says instead of a time
  double time = 0;
  double tokens = 0;
  int32_t drafts = 0;          // of the last step
  size_t news = 0;             // allocations of the last plan
  std::vector<int32_t> rows_;  // of the last step, by sequence

 private:
  std::vector<double> chances_;
  int32_t most_;
  std::function<double(int32_t)> seconds_;
  double drafting_;
  std::vector<int32_t> grade_;
  bool guessed_ = false;  // in the last step
  std::vector<DraftJob> jobs_;
  std::vector<StepRequest> requests_;
  DraftPlanner planner_{
      {.kind = DraftPolicy::Kind::kAuto, .clock = [this] { return told(clock_); }}};
  [[nodiscard]] double told(double seconds) const { return wrong ? wrong(seconds) : seconds; }
  double clock_ = 0;
  uint64_t draw_ = 0;
};

TEST(DraftPlanner, ComesNearTheBestNumberOfRows) {
  for (const double slope : {0.0, 0.02, 0.1, 0.3, 0.6, 1.0}) {
    for (const double p : {0.05, 0.3, 0.6, 0.8, 0.95}) {
      for (const double drafting : {0.0, 0.05, 0.3}) {
        SCOPED_TRACE(testing::Message() << slope << " a row, chance " << p << ", c " << drafting);
        const auto seconds = [slope](int32_t rows) { return 1 + slope * (rows - 1); };
        Steps steps({p}, 12, seconds, drafting);
        steps.run(500);
        steps.time = steps.tokens = 0;
        steps.run(4000);
        double best = 0;
        for (int32_t n = 0; n <= 12; ++n) best = std::max(best, steps.expected(n));
        EXPECT_GE(steps.tokens / steps.time, 0.93 * best);
        EXPECT_GE(steps.tokens / steps.time, 0.97 * steps.expected(0));
      }
    }
  }
}

// From the first step on, what does not pay costs nearly nothing.
TEST(DraftPlanner, LosesNothingWhereNothingPays) {
  for (const size_t sessions : {size_t{1}, size_t{2}, size_t{8}, size_t{32}}) {
    const auto seconds = [](int32_t rows) { return static_cast<double>(rows); };
    Steps steps(std::vector<double>(sessions, 0.3), 6, seconds, 0.1);
    steps.run(2000);
    const double plain = static_cast<double>(sessions) / seconds(static_cast<int32_t>(sessions));
    EXPECT_GE(steps.tokens / steps.time, 0.97 * plain) << sessions;
  }
}

TEST(DraftPlanner, CountsTheRowsThatWereFound) {
  constexpr int32_t kMost = 6;
  constexpr double kChance = 0.95;
  const auto seconds = [](int32_t rows) { return 1 + 0.1 * (rows - 1); };
  Steps steps(std::vector<double>(8, kChance), kMost, seconds);
  steps.finds = [](size_t i) { return Steps::Found{i < 2 ? kMost : 0, 2}; };
  steps.run(300);
  steps.time = steps.tokens = 0;
  for (int32_t i = 0; i < 1000; ++i) {
    steps.step();
    for (size_t j = 2; j < 8; ++j) ASSERT_EQ(steps.rows_[j], 0);
  }
  double best = 0;
  double brings = 8;
  for (int32_t n = 1; n <= kMost; ++n) {
    brings += 2 * std::pow(kChance, n);
    best = std::max(best, brings / seconds(8 + 2 * n));
  }
  EXPECT_GT(best, 1.1 * 8 / seconds(8));
  EXPECT_GE(steps.tokens / steps.time, 0.96 * best);
}

// Guesses of one grade are wrong and of another right: those come on, and these no more.
TEST(DraftPlanner, TellsGradesApart) {
  Steps steps({0.5}, 5, [](int32_t rows) { return 1 + 0.25 * (rows - 1); });
  bool good = false;
  steps.finds = [&](size_t) { return good ? Steps::Found{5, 3, 0.97} : Steps::Found{5, 1, 0.02}; };
  int32_t tried[2] = {};
  for (int32_t i = 0; i < 1200; ++i) {
    good = drawn(static_cast<uint64_t>(i) + 7000000) < 0.5;
    steps.step();
    if (i >= 200 && steps.drafts > 0) ++tried[good ? 1 : 0];
  }
  EXPECT_LE(tried[0], 20);
  EXPECT_GE(tried[1], 420);
}

// What looking up takes, and what passes take longer after guesses, no estimate of a pass knows.
TEST(DraftPlanner, LosesLittleThatItDoesNotForesee) {
  const auto seconds = [](int32_t rows) { return 1 + 0.1 * (rows - 1); };
  for (const size_t sessions : {size_t{1}, size_t{8}}) {
    const double plain = static_cast<double>(sessions) / seconds(static_cast<int32_t>(sessions));
    Steps slow(std::vector<double>(sessions, 0.9), 4, seconds);
    slow.looking = 0.3 * seconds(static_cast<int32_t>(sessions));
    slow.finds = [](size_t) { return Steps::Found{}; };
    slow.run(1000);
    EXPECT_GE(slow.tokens / slow.time, 0.97 * plain) << sessions;
    Steps sleepy(std::vector<double>(sessions, 0.5), 4, seconds);
    sleepy.after_guesses = 4;
    sleepy.run(1000);
    EXPECT_GE(sleepy.tokens / sleepy.time, 0.94 * plain) << sessions;
  }
}

// What sessions do with guesses between two steps is no pass, and what they do with tokens comes
// with and without guesses.
TEST(DraftPlanner, CountsWhatComesBetweenSteps) {
  const auto seconds = [](int32_t rows) { return 1 + 0.05 * (rows - 1); };
  for (const size_t sessions : {size_t{1}, size_t{8}}) {
    const auto n = static_cast<double>(sessions);
    const double pass = seconds(static_cast<int32_t>(sessions));
    Steps slow(std::vector<double>(sessions, 0.5), 4, seconds);
    slow.accepting = 1.5 * pass;
    slow.run(2000);
    EXPECT_GE(slow.tokens / slow.time, 0.97 * n / pass) << sessions;
    Steps busy(std::vector<double>(sessions, 0.9), 4, seconds);
    busy.host = pass / n;
    busy.run(2000);
    Steps alone(std::vector<double>(sessions, 0.9), 4, seconds);
    alone.run(2000);
    // As many tokens for as many passes.
    EXPECT_NEAR(busy.tokens / (busy.time - busy.host * busy.tokens), alone.tokens / alone.time,
                0.1 * alone.tokens / alone.time)
        << sessions;
    EXPECT_GE(alone.tokens / alone.time, 1.3 * n / pass) << sessions;
  }
}

// A clock that says what no clock should is forgotten once it goes well again.
TEST(DraftPlanner, ForgetsAClockThatWasWrong) {
  constexpr double kHuge = 1e300;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  uint64_t draw = 20000000;
  const auto one_of = [&draw](std::vector<double> all) {
    return all[static_cast<size_t>(drawn(draw++) * static_cast<double>(all.size()))];
  };
  const std::function<double(double)> clocks[] = {
      [](double) { return std::nan(""); },
      [](double) { return 0.0; },
      [](double now) { return -now; },
      [&](double) {
        return one_of({kNever, 0, -kNever});
      },
      [&](double) {
        return one_of({kHuge, 0, -kHuge});
      },
      [&](double now) {
        return drawn(draw++) < 0.3 ? one_of({kHuge, kNever, std::nan("")}) : now;
      },
      [&](double now) { return now + 100 * drawn(draw++); }};
  for (size_t i = 0; i < std::size(clocks); ++i) {
    for (const double p : {0.0, 0.9}) {
      for (const int32_t before : {0, 200}) {
        SCOPED_TRACE(testing::Message() << "clock " << i << ", " << p << ", " << before);
        Steps steps(
            {p}, 6, [](int32_t rows) { return 1 + 0.1 * (rows - 1); }, 0.02);
        steps.run(before);
        steps.wrong = clocks[i];
        steps.run(100);
        steps.wrong = nullptr;
        steps.run(6000);  // the ledger takes its time
        steps.time = steps.tokens = 0;
        steps.run(1000);
        EXPECT_GE(steps.tokens / steps.time, 0.97 * steps.expected(0));
        if (p > 0) {
          EXPECT_GE(steps.tokens / steps.time, 0.9 * steps.expected(6));
        }
      }
    }
  }
}

// Nor does it count where a session was away, or others came.
TEST(DraftPlanner, CountsNoIdleTime) {
  double clock = 0;
  DraftPlanner planner({.kind = DraftPolicy::Kind::kAuto, .clock = [&clock] { return clock; }});
  std::vector<DraftJob> jobs(2);
  std::vector<StepRequest> requests(2);
  for (size_t i = 0; i < 2; ++i) {
    jobs[i].tree.begin(0);
    requests[i].draft = &jobs[i];
  }
  // With a little work between steps, away for long after every fifth, and with another session
  // after it every tenth.
  int32_t drafted = 0;
  for (int32_t step = 0; step < 400; ++step) {
    std::vector<StepPlan::Slice> slices{{&requests[0], 1, 4}};
    if (step % 10 == 9) slices.push_back({&requests[1], 1, 4});
    if (planner.begin(slices)) {
      planner.limit(slices, 4);
    } else {
      for (StepPlan::Slice& slice : slices) slice.drafts = 0;
    }
    int32_t rows = 0;
    for (const StepPlan::Slice& slice : slices) {
      rows += 1 + slice.drafts;
      slice.request->draft->record.proposed = slice.drafts;
      slice.request->draft->record.accepted = slice.drafts;  // all are right
    }
    if (step >= 100 && step % 10 != 9 && rows > 2) ++drafted;
    clock += 1 + 0.05 * (rows - 1);
    planner.end(rows);
    clock += step % 5 == 4 ? 1000 : 0.1;
  }
  EXPECT_GE(drafted, 230);  // of 270
}

// A generator that is new, in texts where some guesses are right and rows cost much.
TEST(DraftPlanner, LosesLittleAtFirst) {
  std::vector<double> shares;
  for (uint64_t run = 0; run < 40; ++run) {
    uint64_t draw = 9000000 + run * 100000;
    const auto seconds = [](int32_t rows) { return 0.1 + 0.12 * rows; };
    Steps steps(std::vector<double>(16, 0.5), 8, seconds);
    steps.finds = [&draw](size_t) {
      const int32_t grade = 1 + static_cast<int32_t>(3 * drawn(draw++));
      return Steps::Found{drawn(draw++) < 0.5 ? 8 : 0, grade, 0.2 + 0.2 * grade};
    };
    bool first = true;
    steps.disturb = [&draw, &first] {
      return std::exchange(first, false) ? 5 : 1 + 0.2 * drawn(draw++);
    };
    steps.run(80);
    shares.push_back(steps.tokens / steps.time / (16 / seconds(16)));
  }
  std::sort(shares.begin(), shares.end());
  EXPECT_GE(shares[shares.size() / 2], 0.97);
  EXPECT_GE(shares.front(), 0.97);
}

// Wherever a disturbed pass comes, among the first ones above all, it costs little: the median and
// the worst of many runs.
TEST(DraftPlanner, LosesLittleToDisturbances) {
  for (const size_t sessions : {size_t{1}, size_t{4}, size_t{16}}) {
    for (const double p : {0.0, 0.1}) {
      std::vector<double> shares;
      for (uint64_t run = 0; run < 60; ++run) {
        uint64_t draw = run * 10000;
        const auto seconds = [](int32_t rows) { return 1.2 + 0.06 * rows; };
        Steps steps(std::vector<double>(sessions, p), 4, seconds, 1e-4);
        steps.disturb = [&draw] {
          const double jitter = 1 + 0.1 * drawn(draw++);
          return drawn(draw++) < 0.05 ? 2 * jitter : jitter;
        };
        steps.run(200);
        const auto n = static_cast<double>(sessions);
        shares.push_back(steps.tokens / steps.time / (n / seconds(static_cast<int32_t>(sessions))));
      }
      std::sort(shares.begin(), shares.end());
      EXPECT_GE(shares[shares.size() / 2], 0.98) << sessions << ", " << p;
      EXPECT_GE(shares.front(), 0.88) << sessions << ", " << p;
    }
  }
}

TEST(DraftPlanner, NoticesWhenItPaysAgain) {
  Steps steps({0.02}, 8, [](int32_t rows) { return 1 + 0.2 * (rows - 1); });
  steps.run(600);
  int32_t drafted = 0;
  for (int32_t i = 0; i < 300; ++i) {
    steps.step();
    if (steps.drafts > 0) ++drafted;
  }
  EXPECT_LE(drafted, 6);
  steps.set_chance(0.95);
  steps.run(6000);
  drafted = 0;
  for (int32_t i = 0; i < 300; ++i) {
    steps.step();
    if (steps.drafts > 2) ++drafted;
  }
  EXPECT_GE(drafted, 280);
}

// Who is right more often has more rows.
TEST(DraftPlanner, GivesRowsToThoseWhoAreRight) {
  Steps steps({0.1, 0.9, 0.5, 0.9}, 6, [](int32_t rows) { return 2 + 0.05 * (rows - 1); });
  steps.run(500);
  std::vector<int32_t> rows(4);
  for (int32_t i = 0; i < 200; ++i) {
    steps.step();
    for (size_t j = 0; j < rows.size(); ++j) rows[j] += steps.rows_[j];
  }
  EXPECT_LT(rows[0], rows[2]);
  EXPECT_LT(rows[2], rows[1]);
  EXPECT_LT(rows[2], rows[3]);
  EXPECT_GT(rows[1], 200);
}

// Nothing is allocated once the sequences are there, however many rows turn out to pay.
TEST(DraftPlanner, AllocatesWhenSequencesJoinAlone) {
  Steps steps(std::vector<double>(20, 0.95), 8, [](int32_t) { return 1.0; });
  steps.step();
  EXPECT_EQ(steps.drafts, 0);
  for (int32_t i = 0; i < 200; ++i) {
    steps.step();
    EXPECT_EQ(steps.news, 0) << i;
  }
  EXPECT_GE(steps.drafts, 100);
}

// Through the whole of it: where rows cost as much as passes, few are guessed; where they cost
// nothing, many; text is the same.
TEST(DraftPolicies, ShowInTheNumberOfGuesses) {
  const auto told = [](const DraftPolicy::Kind kind, double slope, double fall_back) {
    World world(64, 16);
    double now = 0;
    world.options.drafter = std::make_shared<NgramLookup>(1, 6);
    world.options.draft_policy.kind = kind;
    world.options.draft_policy.fall_back = fall_back;
    world.options.draft_policy.clock = [&now] { return now; };
    world.model->before_forward = [&now, slope](const graph::Batch& batch) -> Status {
      now += 1 + slope * static_cast<double>(batch.rows() - 1);
      return {};
    };
    const auto session = world.session();
    CallParams params = greedy(50);
    params.stops.ignore_eos = true;
    params.sampling.temperature = 3.0;  // guesses are as good as chance
    return generate(*session, text("foo ba"), params).result.value();
  };
  const GenResult always = told(DraftPolicy::Kind::kAlways, 1, 0.4);
  const GenResult cheap = told(DraftPolicy::Kind::kAuto, 0, 0.4);
  const GenResult costly = told(DraftPolicy::Kind::kAuto, 1, 0.4);
  const GenResult adaptive = told(DraftPolicy::Kind::kAdaptive, 1, 0);
  const GenResult falls = told(DraftPolicy::Kind::kAdaptive, 1, 0.4);
  for (const GenResult* each : {&cheap, &costly, &adaptive, &falls}) {
    EXPECT_EQ(each->tokens, always.tokens);
    EXPECT_EQ(each->text, always.text);
  }
  EXPECT_GT(cheap.usage.drafted, 3 * costly.usage.drafted);
  EXPECT_LT(adaptive.usage.drafted, always.usage.drafted);
  EXPECT_GT(adaptive.usage.drafted, falls.usage.drafted);
  EXPECT_GE(falls.usage.drafted, 8);
  EXPECT_LE(falls.usage.drafted, 8 + 6);  // then no more
}

}  // namespace
}  // namespace gen::generate

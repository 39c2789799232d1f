// SPDX-License-Identifier: Apache-2.0
// Proves that DRY finds what comparing every place of a text with its end finds, that penalties
// grow as they should and never end in infinity, and that a long text of one token is no trouble.
#include "sampling/dry.h"

#include <gtest/gtest.h>

#include <limits>

#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();
constexpr size_t kVocab = 32;

SamplingParams dry(double multiplier = 0.8, double base = 1.75, int32_t allowed = 2,
                   int32_t window = 0) {
  SamplingParams params;
  params.dry_multiplier = multiplier;
  params.dry_base = base;
  params.dry_allowed_length = allowed;
  params.dry_window = window;
  return params;
}

std::map<int32_t, double> found(const std::vector<int32_t>& text, const SamplingParams& params,
                                size_t unbroken = kAll, size_t vocab = kVocab) {
  Dry stage;
  std::map<int32_t, double> all;
  for (const TokenPenalty& one : stage.find(text, unbroken, params, vocab)) {
    EXPECT_TRUE(all.emplace(one.token, one.amount).second) << one.token;  // each token once
  }
  return all;
}

using Found = std::map<int32_t, double>;

TEST(Dry, PenalisesWhatWouldGoOn) {
  // 5 6 7 5 6: the 5 6 at the end were followed by 7.
  EXPECT_EQ(found({5, 6, 7, 5, 6}, dry(3.0, 2.0)), (Found{{7, 3.0}}));
  EXPECT_EQ(found({4, 5, 6, 7, 4, 5, 6}, dry(3.0, 2.0)), (Found{{7, 6.0}}));
  EXPECT_EQ(found({3, 4, 5, 6, 7, 3, 4, 5, 6}, dry(3.0, 2.0)), (Found{{7, 12.0}}));
  EXPECT_EQ(found({6, 7, 5, 6}, dry()), Found());  // 6 alone is allowed
  EXPECT_EQ(found({6, 7, 5, 6}, dry(3.0, 2.0, 1)), (Found{{7, 3.0}}));
  // Of two ways to the same token the longer repetition counts; others are penalised beside it.
  EXPECT_EQ(found({1, 2, 9, 8, 0, 1, 2, 9, 1, 2, 7, 0, 1, 2}, dry(1.0, 2.0)),
            (Found{{7, 1.0}, {9, 2.0}}));
  // It may overlap with itself.
  EXPECT_EQ(found({4, 4, 4, 4}, dry(1.0, 2.0)), (Found{{4, 2.0}}));
}

TEST(Dry, NothingIsSeenOverABreakOrBeforeTheWindow) {
  const std::vector<int32_t> text{3, 4, 5, 6, 7, 3, 4, 5, 6};
  EXPECT_EQ(found(text, dry(3.0, 2.0), 3), (Found{{7, 6.0}}));
  EXPECT_EQ(found(text, dry(3.0, 2.0), 2), (Found{{7, 3.0}}));
  EXPECT_EQ(found(text, dry(3.0, 2.0), 1), Found());
  EXPECT_EQ(found(text, dry(3.0, 2.0), 0), Found());
  EXPECT_EQ(found(text, dry(3.0, 2.0, 2, 9)), (Found{{7, 12.0}}));
  EXPECT_EQ(found(text, dry(3.0, 2.0, 2, 7)), (Found{{7, 3.0}}));
  EXPECT_EQ(found(text, dry(3.0, 2.0, 2, 6)), Found());
  EXPECT_EQ(found(text, dry(3.0, 2.0, 2, 1)), Found());
  EXPECT_EQ(found(text, dry(3.0, 2.0), kAll, 7), Found());  // there is no token 7
}

TEST(Dry, TextsWithoutARoomForARepetition) {
  for (const int32_t allowed : {1, 2, std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(found({}, dry(1, 1, allowed)), Found());
    EXPECT_EQ(found({1}, dry(1, 1, allowed)), Found());
  }
  EXPECT_EQ(found({0, 0}, dry(1, 1, 1), kAll, 1), (Found{{0, 1.0}}));  // a vocabulary of one
  EXPECT_EQ(found({0, 0}, dry(1, 1, 2), kAll, 1), Found());
  EXPECT_EQ(found({-1, -5, 40, -1, -5}, dry(), kAll, 40), Found());
  // By hand only: a length below 1 reads as 1.
  EXPECT_EQ(found({6, 7, 5, 6}, dry(3.0, 2.0, -4)), (Found{{7, 3.0}}));
}

TEST(Dry, EqualsComparingEveryPlace) {
  int64_t penalties = 0;
  Dry used;
  for (uint64_t round = 0; round < 4000; ++round) {
    uint64_t counter = 0;
    const auto below = [&](size_t n) {
      return static_cast<size_t>(uniform_double(round, 3, counter++) * static_cast<double>(n));
    };
    const size_t alphabet = 1 + below(4);
    std::vector<int32_t> text(below(60));
    for (int32_t& token : text) token = static_cast<int32_t>(below(alphabet));
    const SamplingParams params =
        dry(0.1 + 2.0 * uniform_double(round, 4, 0), 1.0 + uniform_double(round, 4, 1),
            1 + static_cast<int32_t>(below(4)), static_cast<int32_t>(below(2) * below(70)));
    const size_t unbroken = below(2) == 0 ? kAll : below(40);
    const size_t vocab = alphabet - below(2) * below(alphabet);
    const auto want = naive_dry(text, unbroken, params, vocab);
    const auto got = found(text, params, unbroken, vocab);
    ASSERT_EQ(got.size(), want.size()) << round;
    for (const auto& [token, penalty] : want) {
      ASSERT_TRUE(got.contains(token)) << round;
      ASSERT_NEAR(got.at(token) / penalty, 1.0, 1e-12) << round;
    }
    penalties += static_cast<int64_t>(want.size());
    // Scratch of other texts does not show.
    const auto again = used.find(text, unbroken, params, vocab);
    ASSERT_EQ(again.size(), got.size()) << round;
    for (const TokenPenalty& one : again) ASSERT_EQ(one.amount, got.at(one.token));
  }
  EXPECT_GT(penalties, 3000);
}

TEST(Dry, PenaltiesGrowToABound) {
  for (const double base : {1.0, 1.0001, 1.75, 100.0}) {
    for (const size_t beyond : {0U, 1U, 2U, 3U, 10U, 63U, 1000U, 2147483646U}) {
      const double want = std::min(1e6, 0.8 * std::pow(base, static_cast<double>(beyond)));
      const double got = dry_penalty(beyond + 5, 5, 0.8, base);
      EXPECT_LE(got, 1e6);
      // Squaring doubles an error at each of up to 31 times.
      EXPECT_NEAR(got / want, 1.0, 1e-6) << base << " to " << beyond;
    }
  }
  EXPECT_EQ(dry_penalty(3, 3, 100.0, 100.0), 100.0);
}

// Looking at every place of it with everything before would be 10^12 comparisons.
TEST(Dry, ALongTextOfOneTokenIsNoTrouble) {
  const std::vector<int32_t> text(1 << 21, 1);
  EXPECT_EQ(found(text, dry()), (Found{{1, 1e6}}));
}

TEST(Dry, IsOffUnlessItsNumbersAreNumbers) {
  EXPECT_FALSE(Dry::is_on(SamplingParams()));
  EXPECT_TRUE(Dry::is_on(dry()));
  const double nan = std::nan("");
  for (const SamplingParams& params :
       {dry(0.0), dry(-1.0), dry(nan), dry(1e9), dry(1.0, 0.9), dry(1.0, nan), dry(1.0, 1e9)}) {
    EXPECT_FALSE(Dry::is_on(params));
  }
}

}  // namespace
}  // namespace gen::sampling

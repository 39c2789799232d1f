// SPDX-License-Identifier: Apache-2.0
// Proves that speculative sampling by rejection leaves the target's distribution, whatever proposes
// (chi-square against the probabilities themselves), that it accepts as often as the two
// distributions overlap, and what it does at its edges. GEN_TRIALS sets the number of draws.
#include "sampling/acceptance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "sampling/chain.h"

namespace gen::sampling {
namespace {

using Tokens = std::vector<int32_t>;

int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::atoi(wanted) : 30000;
}

/// Whether counts may come from these probabilities: the statistic is below what one of a million
/// draws of that many degrees of freedom exceeds (Wilson and Hilferty's approximation).
void expect_distribution(const std::vector<int>& counts, const std::vector<double>& p) {
  double n = 0;
  for (const int count : counts) n += count;
  double statistic = 0;
  int degrees = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0.0) {
      EXPECT_EQ(counts[i], 0) << "token " << i;
      continue;
    }
    const double expected = n * p[i];
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++degrees;
  }
  const double d = degrees;
  const double bound = d * std::pow(1 - 2 / (9 * d) + 4.75 * std::sqrt(2 / (9 * d)), 3);
  EXPECT_LT(statistic, bound) << degrees << " degrees, " << n << " draws";
}

std::vector<double> random_row(std::mt19937& random, size_t n, double sharpness, bool holes) {
  std::vector<double> row(n);
  double sum = 0;
  for (double& p : row) {
    p = std::exp(sharpness * std::uniform_real_distribution<double>(-1, 1)(random));
    if (holes && random() % 4 == 0) p = 0;
    sum += p;
  }
  if (sum == 0) row[0] = sum = 1;
  for (double& p : row) p /= sum;
  return row;
}

std::vector<float> floats(const std::vector<std::vector<double>>& rows, double scale) {
  std::vector<float> all;
  for (const auto& row : rows) {
    for (const double p : row) all.push_back(static_cast<float>(p * scale));
  }
  return all;
}

TEST(Acceptance, LeavesTheTargetsDistribution) {
  constexpr size_t kVocab = 11;
  constexpr size_t kGuesses = 3;
  std::mt19937 random(7);
  for (int round = 0; round < 6; ++round) {
    std::vector<std::vector<double>> p;
    std::vector<std::vector<double>> q;
    for (size_t i = 0; i <= kGuesses; ++i) {
      p.push_back(random_row(random, kVocab, 1.5, round % 2 == 1));
      q.push_back(random_row(random, kVocab, round < 3 ? 1.0 : 2.5, round >= 4));
    }
    q.pop_back();
    // Rows need not add up to 1.
    const std::vector<float> targets = floats(p, round == 2 ? 3.0 : 1.0);
    const std::vector<float> drafts = floats(q, round == 2 ? 0.25 : 1.0);
    std::vector<std::vector<int>> counts(kGuesses + 1, std::vector<int>(kVocab));
    double kept = 0;
    for (int trial = 0; trial < trials(); ++trial) {
      Tokens guesses;
      for (const auto& row : q) {
        guesses.push_back(std::discrete_distribution<int32_t>(row.begin(), row.end())(random));
      }
      const AcceptanceDraws draws{static_cast<uint64_t>(trial), 5};
      Tokens said;
      size_t accepted = 0;
      ASSERT_TRUE(accept_tokens(guesses, drafts, targets, kVocab, &draws, &said, &accepted).ok());
      ASSERT_EQ(said.size(), accepted + 1);
      ASSERT_TRUE(std::equal(said.begin(), said.end() - 1, guesses.begin()));
      for (size_t i = 0; i < said.size(); ++i) ++counts[i][static_cast<size_t>(said[i])];
      kept += accepted > 0 ? 1 : 0;
    }
    double overlap = 0;
    for (size_t i = 0; i < kVocab; ++i) overlap += std::min(p[0][i], q[0][i]);
    const double n = trials();
    EXPECT_NEAR(kept / n, overlap, 5 * std::sqrt(overlap * (1 - overlap) / n));
    for (size_t i = 0; i <= kGuesses; ++i) expect_distribution(counts[i], p[i]);
  }
}

// In the chain: a draft's draw as proposal, and one that was certain.
TEST(Acceptance, OfAProposalLeavesTheChainsDistribution) {
  constexpr size_t kVocab = 13;
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    SamplingParams params;
    params.temperature = round % 2 == 0 ? 1.0 : 0.7;
    params.top_k = round % 2 == 0 ? 0 : 6;
    std::vector<float> p(kVocab);
    std::vector<float> q(kVocab);
    for (size_t i = 0; i < kVocab; ++i) {
      p[i] = std::normal_distribution<float>(0, 1.5F)(random);
      q[i] = p[i] + std::normal_distribution<float>(0, 1.0F)(random);
    }
    std::vector<double> expected(kVocab);
    std::vector<float> sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    const float least = params.top_k > 0 ? sorted[static_cast<size_t>(params.top_k) - 1] : -1e9F;
    double sum = 0;
    for (size_t i = 0; i < kVocab; ++i) {
      expected[i] = p[i] >= least ? std::exp(double{p[i]} / params.temperature) : 0.0;
      sum += expected[i];
    }
    for (double& one : expected) one /= sum;
    std::vector<int> counts(kVocab);
    for (int trial = 0; trial < trials(); ++trial) {
      params.seed = static_cast<uint64_t>(trial);
      Proposal proposal{.token = 4, .from = {}};
      std::vector<Candidate> from;
      if (round < 2) {
        Chain draft(params);
        std::vector<float> row = q;
        Further own;
        own.draw_stream = kDraftStream;
        proposal.token = draft.sample(row, {}, 2, 0, nullptr, own).value().token;
        from.assign(draft.candidates().begin(), draft.candidates().end());
        std::sort(from.begin(), from.end(),
                  [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
        proposal.from = from;
      }
      Chain target(params);
      std::vector<float> row = p;
      Further further;
      further.proposal = &proposal;
      const Choice choice = target.sample(row, {}, 2, 0, nullptr, further).value();
      ++counts[static_cast<size_t>(choice.token)];
    }
    expect_distribution(counts, expected);
  }
}

// What is equal is always kept; what the target never says never is.
TEST(Acceptance, KeepsAllOrNothingAtTheEdges) {
  const std::vector<float> same = {0.25F, 0.0F, 0.75F};
  const std::vector<float> two = {0.25F, 0.0F, 0.75F, 0.0F, 1.0F, 0.0F};
  const std::vector<float> other = {0.0F, 1.0F, 0.0F};
  Tokens said;
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const AcceptanceDraws draws{seed, 0};
    ASSERT_TRUE(accept_tokens(Tokens{2}, same, two, 3, &draws, &said, &accepted).ok());
    EXPECT_EQ(said, (Tokens{2, 1}));
    ASSERT_TRUE(accept_tokens(Tokens{1}, other, two, 3, &draws, &said, &accepted).ok());
    EXPECT_EQ(accepted, 0U);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_NE(said[0], 1);
    // A guess that its draft would never have made.
    ASSERT_TRUE(accept_tokens(Tokens{2}, other, two, 3, &draws, &said, &accepted).ok());
    EXPECT_EQ(accepted, 0U);
  }
}

TEST(Acceptance, WithoutDrawsTakesTheLargest) {
  const std::vector<float> targets = {0.1F, 0.6F, 0.3F, 0.4F, 0.2F, 0.4F, 0.0F, 0.1F, 0.9F};
  Tokens said;
  size_t accepted = 9;
  const auto ask = [&](const Tokens& guesses) {
    const auto n = (guesses.size() + 1) * 3;
    return accept_tokens(guesses, {}, std::span(targets).first(n), 3, nullptr, &said, &accepted);
  };
  ASSERT_TRUE(ask({1, 0}).ok());
  EXPECT_EQ(said, (Tokens{1, 0, 2}));
  EXPECT_EQ(accepted, 2U);
  ASSERT_TRUE(ask({1, 2}).ok());  // of equal ones the first
  EXPECT_EQ(said, (Tokens{1, 0}));
  EXPECT_EQ(accepted, 1U);
  ASSERT_TRUE(ask({0, 0}).ok());
  EXPECT_EQ(said, (Tokens{1}));
  ASSERT_TRUE(ask({}).ok());
  EXPECT_EQ(said, Tokens{});
  EXPECT_EQ(accepted, 0U);
}

TEST(Acceptance, RefusesWhatIsNoProbability) {
  const AcceptanceDraws draws{};
  Tokens said;
  size_t accepted = 0;
  const auto code = [&](const Tokens& guesses, std::vector<float> q, std::vector<float> p) {
    return accept_tokens(guesses, q, p, 2, &draws, &said, &accepted).code();
  };
  EXPECT_EQ(code({1}, {0.5F, 0.5F}, {0.5F, 0.5F, 1.0F, 0.0F}), Code::kOk);
  EXPECT_EQ(code({2}, {0.5F, 0.5F}, {0.5F, 0.5F, 1.0F, 0.0F}), Code::kOutOfRange);
  EXPECT_EQ(code({-1}, {0.5F, 0.5F}, {0.5F, 0.5F, 1.0F, 0.0F}), Code::kOutOfRange);
  EXPECT_EQ(code({1}, {-0.5F, 0.5F}, {0.5F, 0.5F, 1.0F, 0.0F}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {0.5F, 0.5F}, {0.0F, 0.0F, 1.0F, 0.0F}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {0.5F, 0.5F}, {1.0F, 0.0F, NAN, 0.0F}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {std::numeric_limits<float>::infinity(), 0.5F}, {1.0F, 0.0F, 1.0F, 0.0F}),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace gen::sampling

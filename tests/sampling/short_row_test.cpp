// SPDX-License-Identifier: Apache-2.0
// Proves that the largest logits of a row give the token that the whole row gives, with every stage
// that looks at no others, also where many are equal; that a row is told to be too short where more
// logits survive top-k than it holds; and which settings need the whole row.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "base/portable_math.h"
#include "sampling/chain.h"
#include "support/sanitized.h"

namespace gen::sampling {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr size_t kVocab = 1100;  // of three slices

struct Best {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  std::vector<int32_t> aside;
  std::vector<float> aside_logits;
  std::vector<double> mass;
  std::vector<float> slice;
  [[nodiscard]] ShortRow row() const { return {tokens, logits, aside, aside_logits, mass, slice}; }
};

/// As base/mass_slices.h has it: lanes by token, then their sum by halves.
std::vector<double> mass_of(const std::vector<float>& row, double temperature) {
  const auto top = static_cast<double>(*std::max_element(row.begin(), row.end()));
  std::vector<double> slices;
  for (size_t begin = 0; begin < row.size(); begin += 512) {
    std::vector<double> lanes(16, 0.0);
    for (size_t i = begin; i < std::min(row.size(), begin + 512); ++i) {
      const double below = (static_cast<double>(row[i]) - top) / temperature;
      lanes[i % 16] += portable_exp(below);
    }
    for (; lanes.size() > 1; lanes.resize(lanes.size() / 2)) {
      for (size_t i = 0; i < lanes.size() / 2; ++i) lanes[i] += lanes[i + lanes.size() / 2];
    }
    slices.push_back(lanes[0]);
  }
  return slices;
}

Best best_of(const std::vector<float>& row, ShortRowNeed need, std::vector<int32_t> aside = {},
             const TokenMask* mask = nullptr, double place = -1.0) {
  Best best;
  std::vector<float> left = row;
  for (const int32_t token : aside) {
    best.aside_logits.push_back(row[static_cast<size_t>(token)]);
    left[static_cast<size_t>(token)] = kNothing;
  }
  best.aside = std::move(aside);
  if (mask != nullptr) apply_mask(*mask, left);
  best.tokens.resize(row.size());
  std::iota(best.tokens.begin(), best.tokens.end(), 0);
  std::stable_sort(best.tokens.begin(), best.tokens.end(), [&](int32_t a, int32_t b) {
    return left[static_cast<size_t>(a)] > left[static_cast<size_t>(b)];
  });
  best.tokens.resize(static_cast<size_t>(need.k));
  for (const int32_t token : best.tokens) best.logits.push_back(left[static_cast<size_t>(token)]);
  if (need.temperature > 0.0) best.mass = mass_of(left, need.temperature);
  if (!need.slice) return best;
  const double target = place * std::accumulate(best.mass.begin(), best.mass.end(), 0.0);
  size_t at = 0;
  for (double sum = 0.0; at < best.mass.size() && !((sum += best.mass[at]) > target);) ++at;
  best.slice.assign(512, kNothing);
  for (size_t i = 512 * at; i < std::min(left.size(), 512 * (at + 1)); ++i) {
    best.slice[i - 512 * at] = left[i];
  }
  return best;
}

/// `steps`: into how many values logits are rounded per unit; fewer make more of them equal.
std::vector<float> row_of(std::mt19937& random, float steps, double impossible) {
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::uniform_real_distribution<double> share;
  std::vector<float> row(kVocab);
  for (float& logit : row) {
    logit = share(random) < impossible ? kNothing : std::round(normal(random) * steps) / steps;
  }
  return row;
}

SamplingParams params_of(std::mt19937& random) {
  SamplingParams params;
  params.temperature = random() % 5 == 0 ? 0.0 : 0.3 + static_cast<double>(random() % 20) / 10.0;
  params.top_k = 1 + static_cast<int32_t>(random() % (kShortRow - 1));
  params.seed = random();
  if (random() % 2 == 0) params.top_p = 0.8;
  if (random() % 3 == 0) params.typical_p = 0.7;
  if (random() % 3 == 0) params.min_p = 0.05;
  if (random() % 3 == 0) params.gumbel = true;
  if (random() % 3 == 0) params.xtc_probability = 0.5;
  if (random() % 3 == 0) params.mirostat_tau = 2.0;
  if (random() % 4 == 0) {  // min-p alone
    params.top_k = random() % 2 == 0 ? 0 : 600;
    params.top_p = params.typical_p = 1.0;
    params.min_p = std::array{0.3, 0.05, 0.001, 1.5}[random() % 4];
  }
  if (random() % 3 == 0) {  // top-p of the whole row
    params.top_k = 0;
    params.typical_p = 1.0;
    params.top_p = std::array{0.95, 0.5, 0.1, 0.999}[random() % 4];
  }
  if (random() % 5 == 0) {  // no cut at all
    params = {};
    params.seed = random();
    params.temperature = std::array{1.0, 0.3, 3.0}[random() % 3];
  }
  if (random() % 4 == 0) {
    params.logprobs = std::array{0, 1, 5, kMaxLogprobs}[random() % 4];
    if (random() % 2 == 0 && params.temperature > 0.0) params.temperature = 1.0;
  }
  return params;
}

/// Adds what changes logits.
void add_edits(std::mt19937& random, SamplingParams* params) {
  if (random() % 2 == 0) params->repetition_penalty = random() % 4 == 0 ? 0.5 : 1.3;
  if (random() % 3 == 0) params->compound_penalty = true;
  if (random() % 2 == 0) params->frequency_penalty = 0.7;
  if (random() % 2 == 0) params->presence_penalty = -0.4;
  if (random() % 4 == 0) params->penalty_window = 20;
  for (auto i = random() % 6; i > 0; --i) {
    const float bias = std::array{kNothing, 3.0F, 11.0F, -2.5F}[random() % 4];
    ASSERT_TRUE(params->set_logit_bias(static_cast<int32_t>(random() % kVocab), bias).ok());
  }
}

/// What comes with a step: tokens said, DRY's penalties, barred tokens, a mask; often none.
struct Beside {
  Beside(std::mt19937& random, const std::vector<float>& row, bool edits, bool masks_alone) {
    const auto token = [&] { return static_cast<int32_t>(random() % kVocab); };
    if (!edits) return;
    const Best best = best_of(row, {.k = 40});
    for (auto i = random() % 300; i > 0; --i) {
      said.push_back(random() % 2 == 0 ? token() : best.tokens[random() % 40]);
    }
    for (auto i = masks_alone ? 0 : random() % 5; i > 0; --i) {
      penalties.push_back(
          {random() % 2 == 0 ? token() : best.tokens[0], 0.5 * static_cast<double>(i)});
    }
    if (!masks_alone && random() % 3 == 0) barred = {best.tokens[0], -1, token(), 1 << 20};
    further.penalties = penalties;
    further.barred = barred;
    if (random() % 2 == 0) return;
    const auto density = random() % 3;
    for (size_t i = 0; i < (kVocab + 31) / 32 - random() % 2; ++i) {
      const auto word = static_cast<uint32_t>(random());
      bits.push_back(density == 0   ? word
                     : density == 1 ? word & static_cast<uint32_t>(random()) & 0x11111111U
                                    : 0);
    }
    bits[2] |= 0x10U;
    mask.bits = bits;
    use = &mask;
  }
  std::vector<int32_t> said;
  std::vector<TokenPenalty> penalties;
  std::vector<int32_t> barred;
  Further further;
  std::vector<uint32_t> bits;
  TokenMask mask;
  const TokenMask* use = nullptr;
};

void expect_same_candidates(const Chain& got, const Chain& want) {
  ASSERT_EQ(got.candidates().size(), want.candidates().size());
  for (size_t i = 0; i < want.candidates().size(); ++i) {
    ASSERT_EQ(got.candidates()[i].token, want.candidates()[i].token);
    ASSERT_EQ(got.candidates()[i].weight, want.candidates()[i].weight);
  }
}

void expect_same_report(const Choice& got, const Choice& want) {
  EXPECT_EQ(got.logprob, want.logprob);
  ASSERT_EQ(got.top.size(), want.top.size());
  for (size_t i = 0; i < want.top.size(); ++i) {
    ASSERT_EQ(got.top[i].token, want.top[i].token);
    ASSERT_EQ(got.top[i].logprob, want.top[i].logprob);
  }
}

/// How often a short row was enough, and too short, in rounds of several steps, as mirostat learns
/// from one to the next.
struct Counts {
  int enough = 0;
  int with_mass = 0;
  int slices = 0;
  int reports = 0;
  int too_short = 0;
};
Counts compare(int rounds, bool edits) {
  Counts counts;
  std::mt19937 random(edits ? 12 : 11);
  for (int round = 0; round < rounds; ++round) {
    const float steps = std::array{1000.0F, 16.0F, 2.0F, 0.5F}[random() % 4];
    const double impossible = std::array{0.0, 0.1, 0.9, 0.995}[random() % 4];
    SamplingParams params = params_of(random);
    const bool masks_alone = random() % 4 == 0;
    if (edits && !masks_alone) add_edits(random, &params);
    Chain whole(params);
    Chain of_best(params);
    for (uint64_t step = 0; step < 3 && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", step " << step);
      std::vector<float> row = row_of(random, steps, impossible);
      row[random() % kVocab] = 1.0F;
      const Beside beside(random, row, edits, masks_alone);
      std::vector<int32_t> aside;
      of_best.list_edited(beside.said, kVocab, beside.further, &aside);
      EXPECT_TRUE(edits || aside.empty());
      const bool edited = of_best.edits() || !beside.penalties.empty() || !beside.barred.empty();
      const ShortRowNeed need = of_best.short_row(edited, beside.use != nullptr);
      if (need.k == 0) break;
      const Best best = best_of(row, need, aside, beside.use, of_best.draw_place(step));
      const auto got = of_best.sample_short(best.row(), kVocab, beside.said, step, 5, beside.use,
                                            beside.further);
      const auto want = whole.sample(row, beside.said, step, 5, beside.use, beside.further);
      if (!got.ok()) {
        EXPECT_STREQ(got.status().message(), want.status().message());
        break;
      }
      if (got.value().token < 0) {
        ++counts.too_short;
        const float last = best.logits.back();
        const bool some_left = params.temperature > 0.0 && last > kNothing;
        EXPECT_TRUE(some_left || !want.ok() || !beside.barred.empty());
        break;
      }
      ++counts.enough;
      EXPECT_TRUE(want.ok());
      if (!want.ok()) break;
      EXPECT_EQ(got.value().token, want.value().token);
      if (need.temperature > 0.0) ++counts.with_mass;
      if (params.logprobs >= 0) ++counts.reports;
      expect_same_report(got.value(), want.value());
      counts.slices += need.slice ? 1 : 0;
      if (params.temperature > 0.0 && !need.slice) expect_same_candidates(of_best, whole);
    }
  }
  return counts;
}

/// Of the rounds, under a sanitizer.
constexpr int kShare = test::kSanitized ? 5 : 1;

TEST(ShortRow, GivesWhatTheRowGives) {
  const Counts counts = compare(4000 / kShare, false);
  EXPECT_GT(counts.enough, 5000 / kShare);
  EXPECT_GT(counts.with_mass, 1000 / kShare);
  EXPECT_GT(counts.slices, 1000 / kShare);
  EXPECT_GT(counts.reports, 500 / kShare);
  EXPECT_GT(counts.too_short, 200 / kShare);
  EXPECT_LT(counts.too_short, 1000 / kShare);
}

TEST(ShortRow, GivesWhatTheRowGivesWithItsEdits) {
  const Counts counts = compare(6000 / kShare, true);
  EXPECT_GT(counts.enough, 7000 / kShare);
  EXPECT_GT(counts.with_mass, 100 / kShare);
  EXPECT_GT(counts.slices, 50 / kShare);
  EXPECT_GT(counts.too_short, 200 / kShare);
  EXPECT_LT(counts.too_short, 1500 / kShare);
}

TEST(ShortRow, KeepsOrReplacesAProposal) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    SamplingParams params;
    params.top_k = 20;
    params.seed = random();
    Chain whole(params);
    Chain of_best(params);
    std::vector<float> row = row_of(random, 1000.0F, 0.0);
    const Best best = best_of(row, {.k = kShortRow});
    // Now and then one that top-k has taken out.
    std::vector<Candidate> guesses;
    for (int32_t i = 0; i < 4; ++i)
      guesses.push_back({best.tokens[static_cast<size_t>(7 * i)], 0, 1});
    std::sort(guesses.begin(), guesses.end(),
              [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
    Proposal proposal;
    proposal.token = guesses[random() % 4].token;
    proposal.from = guesses;
    Further further;
    further.proposal = &proposal;
    const auto got = of_best.sample_short(best.row(), kVocab, {}, 3, 0, nullptr, further);
    const auto want = whole.sample(row, {}, 3, 0, nullptr, further);
    ASSERT_TRUE(got.ok() && want.ok());
    ASSERT_EQ(got.value().token, want.value().token) << round;
  }
}

TEST(ShortRow, IsToldWhereNothingIsPossible) {
  SamplingParams params;
  params.top_k = 3;
  Chain chain(params);
  std::vector<float> row(kVocab, kNothing);
  const Best best = best_of(row, {.k = kShortRow});
  const auto got = chain.sample_short(best.row(), kVocab, {}, 0, 9);
  const auto want = chain.sample(row, {}, 0, 9);
  EXPECT_EQ(got.status().code(), Code::kModel);
  EXPECT_STREQ(got.status().message(), want.status().message());
}

TEST(ShortRow, IsAsLongAsTheCallLooks) {
  const auto need = [](void (*change)(SamplingParams&), bool edited = false, bool masked = false) {
    SamplingParams params;
    params.top_k = 40;
    change(params);
    const ShortRowNeed found = Chain(params).short_row(edited, masked);
    return std::pair(found.k, found.temperature);
  };
  const std::pair whole(0, 0.0);
  const std::pair most(kShortRow, 0.0);
  const std::pair one(1, 0.0);
  EXPECT_EQ(need([](SamplingParams&) {}), most);
  EXPECT_EQ(need([](SamplingParams&) {}, true, true), most);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = kShortRow - 1; }), most);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = kShortRow; }), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0, p.temperature = 0.3; }), std::pair(1, 0.3));
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0; }, false, true), std::pair(1, 1.0));
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0; }, true, false), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0, p.gumbel = true; }), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0, p.xtc_probability = 0.5; }), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0, p.mirostat_tau = 5.0; }), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0, p.logprobs = 5; }),
            std::pair(kShortRow, 1.0));
  EXPECT_EQ(need([](SamplingParams& p) { p.top_k = 0, p.min_p = 0.1; }, true, true), most);
  EXPECT_EQ(need([](SamplingParams& p) { p.temperature = 0.0; }, true, true), one);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_n_sigma = 1.0; }), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.top_n_sigma = 1.0, p.temperature = 0.0; }), one);
  EXPECT_EQ(need([](SamplingParams& p) { p.typical_p = 0.5, p.top_k = 0; }), whole);
  // Top-p of all tokens takes what they weigh, and so do log-probabilities, of the model's logits.
  const auto by_mass = [](SamplingParams& p) { p.top_k = 0, p.top_p = 0.9, p.temperature = 0.7; };
  EXPECT_EQ(need(by_mass), std::pair(kShortRow, 0.7));
  EXPECT_EQ(need(by_mass, false, true), std::pair(kShortRow, 0.7));
  EXPECT_EQ(need(by_mass, true, false), whole);
  const auto reports = [](SamplingParams& p) { p.logprobs = 0; };
  EXPECT_EQ(need(reports), std::pair(kShortRow, 1.0));
  EXPECT_EQ(need(reports, true, false), whole);
  EXPECT_EQ(need(reports, false, true), whole);
  EXPECT_EQ(need([](SamplingParams& p) { p.logprobs = 1, p.temperature = 0.0; }),
            std::pair(1, 1.0));
  EXPECT_EQ(need([](SamplingParams& p) { p.logprobs = 2, p.temperature = 0.0; }),
            std::pair(kShortRow, 1.0));
  EXPECT_EQ(need([](SamplingParams& p) { p.logprobs = 2, p.top_k = 0, p.top_p = 0.9; }),
            std::pair(kShortRow, 1.0));
  EXPECT_EQ(need([](SamplingParams& p) {
              p.logprobs = 2, p.top_k = 0, p.top_p = 0.9, p.temperature = 0.7;
            }),
            whole);
}

}  // namespace
}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// Gumbel-max draws against their definition in the C library's logarithms; that what a filter
// leaves out matters only where it would have been drawn; that similar distributions draw alike.
#include "sampling/gumbel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "sampling/chain.h"
#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

// Philox's stream for a token, as streams.h has it.
double noise(uint64_t seed, uint64_t step, int32_t token) {
  const double u = uniform_double(seed, (static_cast<uint64_t>(token) << 32) + 2, step);
  return -std::log(-std::log1p(-u));
}

TEST(Gumbel, IsTheLargestSumOfLogWeightAndNoise) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::vector<Candidate> candidates;
    double most = -1e300;
    int32_t expected = -1;
    for (int32_t i = 0; i < 1 + static_cast<int32_t>(seed % 90); ++i) {
      const int32_t token = i * 37 % 4001;
      const double weight = std::exp(-12 * uniform_double(seed, 77, static_cast<uint64_t>(i)));
      candidates.push_back({token, 0.0F, i % 11 == 5 ? 0.0 : weight});
      const double sum = std::log(candidates.back().weight) + noise(seed, seed % 7, token);
      if (sum > most) {
        most = sum;
        expected = token;
      }
    }
    ASSERT_EQ(draw_gumbel(candidates, seed, seed % 7), expected) << seed;
    std::reverse(candidates.begin(), candidates.end());
    ASSERT_EQ(draw_gumbel(candidates, seed, seed % 7), expected) << seed;
  }
}

TEST(Gumbel, WeightsNearNothingAreDrawnToo) {
  const std::vector<Candidate> one = {{3, 0.0F, 0.0}, {5, 0.0F, 5e-324}, {9, 0.0F, 0.0}};
  for (uint64_t step = 0; step < 50; ++step) EXPECT_EQ(draw_gumbel(one, 1, step), 5);
}

int32_t drawn(const std::vector<float>& row, const SamplingParams& params, uint64_t step) {
  std::vector<float> logits = row;
  Chain chain(params);
  return chain.sample(logits, {}, step, 0).value().token;
}

// Cuts take tokens out, and where the one that was drawn stays it is drawn still.
TEST(Gumbel, CutsLeaveDrawsAsTheyWere) {
  SamplingParams all;
  all.gumbel = true;
  SamplingParams cut = all;
  cut.top_k = 12;
  cut.top_p = 0.9;
  const std::vector<float> row = random_row(500, 3, 6.0);
  const std::vector<double> left = naive_distribution(row, cut, {}, nullptr, {});
  int same = 0;
  int other = 0;
  for (uint64_t step = 0; step < 600; ++step) {
    const int32_t token = drawn(row, all, step);
    const int32_t of_cut = drawn(row, cut, step);
    if (left[static_cast<size_t>(token)] > 0) {
      ASSERT_EQ(of_cut, token) << step;
      ++same;
    } else {
      ASSERT_GT(left[static_cast<size_t>(of_cut)], 0) << step;
      ++other;
    }
  }
  EXPECT_GT(same, 50);
  EXPECT_GT(other, 20);
}

// With p and q the two draw the same token at least with the probability (1 - d) / (1 + d), d half
// the sum of |p - q| (Daliri, Musco, Suresh, 2024); independent draws far less often.
TEST(Gumbel, SimilarRowsDrawAlike) {
  SamplingParams params;
  params.gumbel = true;
  const std::vector<float> row = random_row(300, 8, 4.0);
  const std::vector<float> shift = random_row(300, 9, 0.6);
  std::vector<float> near = row;
  for (size_t i = 0; i < near.size(); ++i) near[i] += shift[i];
  const std::vector<double> p = naive_distribution(row, params, {}, nullptr, {});
  const std::vector<double> q = naive_distribution(near, params, {}, nullptr, {});
  double distance = 0;
  double chance = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    distance += std::abs(p[i] - q[i]) / 2;
    chance += p[i] * q[i];
  }
  constexpr int kSteps = 4000;
  int same = 0;
  for (uint64_t step = 0; step < kSteps; ++step) {
    same += drawn(row, params, step) == drawn(near, params, step) ? 1 : 0;
  }
  const double bound = (1 - distance) / (1 + distance);
  ASSERT_GT(bound, chance + 0.2);
  EXPECT_GT(same, (bound - 4 * std::sqrt(0.25 / kSteps)) * kSteps);
}

}  // namespace
}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// Proves that sums of weights are right, that they have the same bits whether all tokens come or
// those alone that weigh something, one by one or by slices, and that the order is the one that
// mass_slices.h says.
#include "base/mass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gen {
namespace {

/// The order, as written.
double by_hand(const std::vector<double>& weights) {
  double total = 0.0;
  for (size_t begin = 0; begin < weights.size(); begin += 512) {
    double lanes[16] = {};
    for (size_t i = begin; i < std::min(weights.size(), begin + 512); ++i) {
      lanes[i % 16] += weights[i];
    }
    double eight[8];
    for (int i = 0; i < 8; ++i) eight[i] = lanes[i] + lanes[i + 8];
    const double two[] = {(eight[0] + eight[4]) + (eight[2] + eight[6]),
                          (eight[1] + eight[5]) + (eight[3] + eight[7])};
    total += two[0] + two[1];
  }
  return total;
}

TEST(Mass, OneOrderForAll) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 6.0F);
  for (const size_t n : std::initializer_list<size_t>{1, 15, 16, 127, 129, 511, 512, 513, 7000}) {
    for (const double temperature : {1.0, 0.3, 5.0}) {
      std::vector<float> logits(n);
      for (float& logit : logits) {
        logit = random() % 4 == 0 ? -INFINITY : normal(random);
      }
      logits[n / 2] = 20.0F;
      std::vector<double> weights(n);
      long double sum = 0.0L;
      MassSum sparse;
      for (size_t i = 0; i < n; ++i) {
        const double below = static_cast<double>(logits[i]) - 20.0;
        weights[i] = portable_exp(below / temperature);
        sum += std::exp(static_cast<long double>(below) / static_cast<long double>(temperature));
        if (weights[i] > 0.0) sparse.add(static_cast<int32_t>(i), weights[i]);
      }
      std::vector<double> slices(mass_slices(n));
      weigh_slices(
          n, [&](size_t i) { return logits[i]; }, 20.0F, temperature, slices);
      const double want = by_hand(weights);
      EXPECT_EQ(mass_total(slices), want) << n;
      EXPECT_EQ(sparse.total(), want) << n;
      EXPECT_NEAR(want, static_cast<double>(sum), 1e-14 * want * std::sqrt(static_cast<double>(n)))
          << n;
    }
  }
}

TEST(Mass, ThePlaceOfATarget) {
  const std::vector<double> slices = {1.0, 0.0, 2.0, 0.0};
  const auto place = [&](double target) {
    const MassPlace found = mass_place(slices, target);
    return std::pair(found.slice, found.before);
  };
  EXPECT_EQ(place(0.0), (std::pair<size_t, double>(0, 0.0)));
  EXPECT_EQ(place(0.99), (std::pair<size_t, double>(0, 0.0)));
  EXPECT_EQ(place(1.0), (std::pair<size_t, double>(2, 1.0)));
  EXPECT_EQ(place(2.99), (std::pair<size_t, double>(2, 1.0)));
  EXPECT_EQ(place(3.0), (std::pair<size_t, double>(4, 3.0)));
}

}  // namespace
}  // namespace gen

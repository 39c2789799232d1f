// SPDX-License-Identifier: Apache-2.0
// Proves the encoders that search: errors close to the least that a search over scales in double
// precision finds, blocks that a type can hold come back, and what importance does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "quant/encode_reference.h"

namespace gen::quant {
namespace {

double error_of(const std::vector<float>& x, const std::vector<float>& y,
                const std::vector<float>& shares) {
  double sum = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double miss = double{x[i]} - double{y[i]};
    sum += double{shares[i]} * miss * miss;
  }
  return sum;
}

// From 0.001 to 1, as differ those of activations.
std::vector<float> importances(uint64_t seed, size_t n) {
  std::vector<float> all(n);
  for (size_t i = 0; i < n; ++i) {
    all[i] = static_cast<float>(std::pow(10.0, -3.0 * uniform_double(seed, 5, i)));
  }
  return all;
}

std::vector<float> part(const std::vector<float>& all, size_t first, size_t n) {
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {from, from + static_cast<std::ptrdiff_t>(n)};
}

// What types below 3 bits count in a block, as shares.h has it.
std::vector<float> by_size(DType type, const std::vector<float>& x, std::vector<float> shares) {
  const DTypeInfo& info = *dtype_info(type);
  if (!test::is_low_bit(type) || info.block_bytes * 8 >= info.block_elements * 3) return shares;
  double mean = 0.0;
  for (const float one : x) mean += double{one} * double{one} / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    shares[i] *= static_cast<float>(mean + double{x[i]} * double{x[i]});
  }
  return shares;
}

std::vector<double> levels_of(DType type) {
  const Traits& traits = *find_traits(type);
  std::vector<double> levels;
  for (int code = 0; code < 1 << traits.bits; ++code) {
    if ((type == DType::kTQ1_0 || type == DType::kTQ2_0) && code == 3) continue;
    const uint8_t* const table = table_values(traits.table);
    levels.push_back((table != nullptr ? table[code] : code) - traits.zero);
  }
  return levels;
}

TEST(Encode, CodebooksAreSearchedAsWellAsByTryingAllEntriesAndManyScales) {
  for (const DType type : test::kLowBitTypes) {
    if (codebook_of(type).entries == 0) continue;
    const auto entries = entries_of(type);
    std::vector<float> x = random_floats(21, 512, 0.7F);
    x[300] = 4.0F;  // an outlier
    for (const bool weighted : {false, true}) {
      const std::vector<float> shares =
          weighted ? importances(22, 512) : std::vector<float>(512, 1.0F);
      for (size_t block = 0; block < 2; ++block) {
        const std::vector<float> weights = part(x, 256 * block, 256);
        const std::vector<float> importance = part(shares, 256 * block, 256);
        const std::vector<std::byte> bytes =
            weighted ? encode(type, weights, importance) : encode(type, weights);
        const std::vector<float> here = by_size(type, weights, importance);
        const double got = error_of(weights, decode(type, bytes, 256), here);
        const double least = least_error(type, entries, weights.data(), here.data());
        EXPECT_LE(got, 1.05 * least) << dtype_name(type) << ' ' << weighted << ' ' << block;
        EXPECT_GE(got, 0.9 * least) << dtype_name(type) << ' ' << weighted << ' ' << block;
      }
    }
  }
}

TEST(Encode, ScalesOfLevelsAreSearched) {
  struct Case {
    DType type;
    bool alike;  // also without importances: the others round then, with the extreme as it is
  };
  for (const Case& test :
       {Case{DType::kTQ1_0, true}, Case{DType::kTQ2_0, true}, Case{DType::kQ2_0, true},
        Case{DType::kQ1_0, true}, Case{DType::kIQ4_NL, false}, Case{DType::kQ4_0, false},
        Case{DType::kQ5_0, false}}) {
    const size_t n = dtype_info(test.type)->block_elements;
    const std::vector<double> levels = levels_of(test.type);
    std::vector<float> x = random_floats(23, static_cast<int64_t>(4 * n), 0.7F);
    x[n + 1] = 5.0F;
    for (const bool weighted : {false, true}) {
      if (!weighted && !test.alike) continue;
      const std::vector<float> shares =
          weighted ? importances(24, 4 * n) : std::vector<float>(4 * n, 1.0F);
      for (size_t block = 0; block < 4; ++block) {
        const std::vector<float> weights = part(x, n * block, n);
        const std::vector<float> importance = part(shares, n * block, n);
        const std::vector<std::byte> bytes =
            weighted ? encode(test.type, weights, importance) : encode(test.type, weights);
        const std::vector<float> here = by_size(test.type, weights, importance);
        const double got = error_of(weights, decode(test.type, bytes, n), here);
        const double least = least_error(levels, weights.data(), here.data(), static_cast<int>(n));
        EXPECT_LE(got, 1.05 * least) << dtype_name(test.type) << ' ' << weighted << ' ' << block;
      }
    }
  }
}

TEST(Encode, Nvfp4AndMxfp4HaveTheBestScale) {
  const double magnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (const DType type : {DType::kNVFP4, DType::kMXFP4}) {
    const size_t run = type == DType::kNVFP4 ? 16 : 32;
    std::vector<double> scales;
    for (int e = -6; type == DType::kMXFP4 && e < 8; ++e) scales.push_back(std::ldexp(1.0, e));
    for (int bits = 1; type == DType::kNVFP4 && bits < 0x7F; ++bits) {
      const int exponent = bits >> 3;
      scales.push_back(exponent == 0 ? std::ldexp(bits & 7, -9)
                                     : std::ldexp(8 + (bits & 7), exponent - 10));
    }
    for (const bool weighted : {false, true}) {
      std::vector<float> x = random_floats(25, 256, 3.0F);
      x[17] = 40.0F;
      const std::vector<float> shares =
          weighted ? importances(26, 256) : std::vector<float>(256, 1.0F);
      const std::vector<std::byte> bytes = weighted ? encode(type, x, shares) : encode(type, x);
      const std::vector<float> y = decode(type, bytes, 256);
      for (size_t first = 0; first < 256; first += run) {
        double least = 1e30;
        for (const double scale : scales) {
          double sum = 0.0;
          for (size_t i = first; i < first + run; ++i) {
            double best = 1e30;
            for (const double magnitude : magnitudes) {
              best = std::min(best, std::fabs(magnitude * scale - std::fabs(double{x[i]})));
            }
            sum += double{shares[i]} * best * best;
          }
          least = std::min(least, sum);
        }
        const double got =
            error_of(part(x, first, run), part(y, first, run), part(shares, first, run));
        EXPECT_LE(got, 1.0001 * least) << dtype_name(type) << ' ' << weighted << ' ' << first;
      }
    }
  }
}

TEST(Encode, WhatATypeCanHoldComesBack) {
  for (const DType type : test::kLowBitTypes) {
    const size_t n = dtype_info(type)->block_elements;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const float d = std::ldexp(1.0F + static_cast<float>(seed) / 32.0F, -5);
      std::vector<std::byte> block = random_block(type, 100 + seed, d);
      if (type == DType::kTQ2_0) {  // not codes of 3
        for (size_t i = 0; i < 64; ++i) {
          const int byte = std::to_integer<int>(block[i]);
          block[i] = static_cast<std::byte>(byte & ~(((byte >> 1) & byte) & 0x55));
        }
      }
      const std::vector<float> x = decode(type, block, n);
      EXPECT_EQ(decode(type, encode(type, x), n), x) << dtype_name(type) << ' ' << seed;
      EXPECT_EQ(decode(type, encode(type, x, importances(seed, n)), n), x)
          << dtype_name(type) << ' ' << seed;
    }
  }
}

TEST(Encode, ImportanceMovesErrorsToWhatCountsLess) {
  const std::vector<float> x = random_floats(27, 256 * 8, 0.7F);
  const std::vector<float> shares = importances(28, x.size());
  for (const Traits& traits : kTraits) {
    const double with =
        error_of(x, decode(traits.type, encode(traits.type, x, shares), x.size()), shares);
    const double without =
        error_of(x, decode(traits.type, encode(traits.type, x), x.size()), shares);
    EXPECT_LT(with, without) << dtype_name(traits.type);
  }
}

TEST(Encode, EqualWeightsComeBackFromTypesWithAMinimum) {
  for (const DType type : {DType::kQ4_1, DType::kQ5_1}) {
    for (const float value : {0.75F, -0.75F, 0.0F}) {
      const std::vector<float> x(32, value);
      EXPECT_EQ(decode(type, encode(type, x, importances(3, 32)), 32), x) << dtype_name(type);
      EXPECT_EQ(decode(type, encode(type, x), 32), x) << dtype_name(type);
    }
  }
}

// Of each block, not only of all.
TEST(Encode, Q8_0WithImportanceIsNoWorseThanWithout) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const std::vector<float> x = random_floats(1000 + seed, 32, 0.7F);
    const std::vector<float> shares =
        seed % 2 == 0 ? std::vector<float>(32, 1.0F) : importances(seed, 32);
    const auto error = [&](const std::vector<std::byte>& block) {
      return error_of(x, decode(DType::kQ8_0, block, 32), shares);
    };
    EXPECT_LE(error(encode(DType::kQ8_0, x, shares)), error(encode(DType::kQ8_0, x))) << seed;
  }
}

// Only proportions within a block matter.
TEST(Encode, EqualImportancesChangeNothingInTypesThatSearchAnyway) {
  const std::vector<float> x = random_floats(29, 512, 0.7F);
  for (const DType type : test::kLowBitTypes) {
    for (const float all : {1.0F, 1e-30F, 7e20F}) {
      EXPECT_EQ(encode(type, x, std::vector<float>(512, all)), encode(type, x))
          << dtype_name(type) << ' ' << all;
    }
  }
}

}  // namespace
}  // namespace gen::quant

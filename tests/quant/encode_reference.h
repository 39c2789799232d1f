// SPDX-License-Identifier: Apache-2.0
// The least squared error that a search over scales finds for a block of a type of few bits, in
// double precision. Entries of codebooks are those that the decoder makes of random blocks.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "quant/codec_cases.h"
#include "support/weight_blocks.h"

namespace gen::quant {

/// What a type with a codebook is made of.
struct Codebook {
  int unit = 8;         // weights of an entry
  bool signs = false;   // entries are magnitudes
  bool even = false;    // of eight signs
  int entries = 0;      // that there are
  int top = 15;         // the largest s of the scales 2 * s + 1
  bool shared = false;  // all of a run are moved the same way
};

inline Codebook codebook_of(DType type) {
  switch (type) {
    case DType::kIQ2_XXS:
      return {8, true, true, 256};
    case DType::kIQ2_XS:
      return {8, true, true, 512};
    case DType::kIQ2_S:
      return {8, true, false, 1024};
    case DType::kIQ3_XXS:
      return {4, true, true, 256};
    case DType::kIQ3_S:
      return {4, true, false, 512};
    case DType::kIQ1_S:
      return {8, false, false, 4096, 7, true};
    case DType::kIQ1_M:
      return {8, false, false, 4096, 7, false};
    default:
      return {};
  }
}

/// A random block with the scale d.
inline std::vector<std::byte> random_block(DType type, uint64_t seed, float d) {
  std::vector<std::byte> block = random_bytes(seed, dtype_info(type)->block_bytes);
  test::put_block_scale(type, f32_to_f16(d), block.data());
  return block;
}

/// Values of all entries with the scale 1.
inline std::vector<std::vector<double>> entries_of(DType type) {
  const Codebook book = codebook_of(type);
  const Traits& traits = *find_traits(type);
  std::set<std::vector<double>> found;
  for (uint64_t seed = 0; std::ssize(found) < book.entries && seed < 20000; ++seed) {
    const std::vector<std::byte> block = random_block(type, seed, 1.0F);
    BlockParts parts;
    find_format(type)->unpack(block.data(), parts);
    const std::vector<float> y = decode(type, block, 256);
    for (int first = 0; first < 256; first += book.unit) {
      double scale = parts.scales[first / traits.run];
      if (type == DType::kIQ1_S) scale /= 8.0;
      std::vector<double> entry;
      for (int i = first; i < first + book.unit; ++i) {
        const double value = static_cast<double>(y[static_cast<size_t>(i)]) / scale;
        entry.push_back(book.signs ? std::fabs(value) : value);
      }
      found.insert(entry);
    }
  }
  EXPECT_EQ(std::ssize(found), book.entries) << dtype_name(type);
  return {found.begin(), found.end()};
}

/// The least weighted squared error of 256 weights that 40 scales of the block leave.
inline double least_error(DType type, const std::vector<std::vector<double>>& entries,
                          const float* x, const float* shares) {
  struct Point {
    double dot;
    double square;
  };
  const Codebook book = codebook_of(type);
  const int run = find_traits(type)->run;
  const int units = 256 / book.unit;
  double energy = 0.0;
  double largest = 0.0;
  // [unit] with the right signs, and with one turned; [2]: moved up and down.
  std::vector<std::array<std::vector<Point>, 2>> right(static_cast<size_t>(units));
  std::vector<std::vector<Point>> turned(static_cast<size_t>(units));
  double most = 0.0;
  for (int unit = 0; unit < units; ++unit) {
    for (const std::vector<double>& entry : entries) {
      Point point = {};
      for (int i = 0; i < book.unit; ++i) {
        const auto at = static_cast<size_t>(unit * book.unit + i);
        const double value = book.signs ? std::fabs(double{x[at]}) : double{x[at]};
        const double level = entry[static_cast<size_t>(i)];
        point.dot += double{shares[at]} * value * level;
        point.square += double{shares[at]} * level * level;
        most = std::max(most, std::fabs(level));
      }
      const double eighths = entry[0] * 8.0;
      const bool down = book.shared && (eighths == -9.0 || eighths == -1.0 || eighths == 7.0);
      right[static_cast<size_t>(unit)][down ? 1 : 0].push_back(point);
      if (!book.even) continue;
      for (int i = 0; i < book.unit; ++i) {
        const auto at = static_cast<size_t>(unit * book.unit + i);
        turned[static_cast<size_t>(unit)].push_back(
            {point.dot - 2.0 * double{shares[at]} * std::fabs(double{x[at]}) *
                             entry[static_cast<size_t>(i)],
             point.square});
      }
    }
  }
  for (int i = 0; i < 256; ++i) {
    energy += double{shares[i]} * double{x[i]} * double{x[i]};
    largest = std::max(largest, std::fabs(double{x[i]}));
  }
  const auto least_of = [](const std::vector<Point>& points, double scale) {
    double least = std::numeric_limits<double>::infinity();
    for (const Point& p : points) least = std::min(least, scale * (scale * p.square - 2.0 * p.dot));
    return least;
  };
  const auto of_run = [&](int first, double scale) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t moved = 0; moved < (book.shared ? 2U : 1U); ++moved) {
      double sum = 0.0;
      for (int at = first; at < first + run; at += 8) {
        int negative = 0;
        for (int i = at; i < at + 8; ++i) negative += x[i] < 0.0F ? 1 : 0;
        const bool odd = book.even && negative % 2 != 0;
        double all = 0.0;
        double gain = std::numeric_limits<double>::infinity();
        for (int unit = at / book.unit; unit < (at + 8) / book.unit; ++unit) {
          const double here = least_of(right[static_cast<size_t>(unit)][moved], scale);
          all += here;
          if (odd) gain = std::min(gain, least_of(turned[static_cast<size_t>(unit)], scale) - here);
        }
        sum += all + (odd ? gain : 0.0);
      }
      best = std::min(best, sum);
    }
    return best;
  };
  double best = std::numeric_limits<double>::infinity();
  for (int step = 0; step < 40; ++step) {
    const double reach = largest * 0.25 * std::pow(8.0, step / 39.0);
    const double d = reach / most / (2 * book.top + 1);
    double sum = 0.0;
    for (int first = 0; first < 256; first += run) {
      double least = std::numeric_limits<double>::infinity();
      for (int s = 0; s <= book.top; ++s) least = std::min(least, of_run(first, d * (2 * s + 1)));
      sum += least;
    }
    best = std::min(best, sum);
  }
  return energy + best;
}

/// The same for n weights with one scale of either sign and any of `levels` for each.
inline double least_error(const std::vector<double>& levels, const float* x, const float* shares,
                          int n) {
  double largest = 0.0;
  double most = 0.0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(double{x[i]}));
  for (const double level : levels) most = std::max(most, std::fabs(level));
  double best = std::numeric_limits<double>::infinity();
  for (int step = 0; step < 1500; ++step) {
    for (const double sign : {1.0, -1.0}) {
      const double d = sign * largest / most * 0.02 * std::pow(200.0, step / 1499.0);
      double sum = 0.0;
      for (int i = 0; i < n; ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (const double level : levels) {
          least = std::min(least, std::fabs(d * level - double{x[i]}));
        }
        sum += double{shares[i]} * least * least;
      }
      best = std::min(best, sum);
    }
  }
  return best;
}

}  // namespace gen::quant

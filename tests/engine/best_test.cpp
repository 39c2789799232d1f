// SPDX-License-Identifier: Apache-2.0
// Proves that the best tokens of rows are those that sorting finds: any width and k, ties, masks
// shorter than a row, tokens aside, what tokens weigh, strides and threads; that rows with NaN or
// +inf say so; and that nothing is written beside the results.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/access.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"
#include "support/reference_engine.h"

namespace gen::engine::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Rows with what comes with them, and what they answer.
struct Rows {
  Rows(int64_t n_rows, int64_t n_cols, int32_t n_best)
      : n(n_rows),
        cols(n_cols),
        k(n_best),
        logits(static_cast<size_t>(n * (cols + 3)), 100.0F),
        with(static_cast<size_t>(n)),
        tokens(static_cast<size_t>(n * k + 1), -77),
        values(static_cast<size_t>(n * k + 1), -77.0F),
        mass(static_cast<size_t>(n) * mass_slices(static_cast<size_t>(cols)) + 1, -77.0),
        slice(static_cast<size_t>(n) * kMassSlice + 1, -77.0F) {}

  /// Few distinct values, so that ties are everywhere, and some -inf.
  void fill(std::mt19937& bits) {
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t i = 0; i < cols; ++i) {
        const auto level = static_cast<float>(bits() % 9);
        at(t, i) = level == 0.0F ? -kInf : level * 0.3F - 1.7F;
      }
    }
  }
  float& at(int64_t t, int64_t i) { return logits[static_cast<size_t>(t * (cols + 3) + i)]; }
  void mask(int64_t t, std::vector<uint32_t> words) {
    masks.push_back(std::move(words));
    with[static_cast<size_t>(t)].mask = engine_ptr(std::as_const(masks.back()).data());
    with[static_cast<size_t>(t)].mask_words = static_cast<int32_t>(masks.back().size());
  }
  void aside(int64_t t, std::vector<int32_t> of) {
    aside_logits.emplace_back(of.size(), -77.0F);
    asides.push_back(std::move(of));
    BestRow& row = with[static_cast<size_t>(t)];
    row.aside = engine_ptr(std::as_const(asides.back()).data());
    row.aside_logits = engine_ptr(aside_logits.back().data());
    row.n_aside = static_cast<int32_t>(asides.back().size());
  }
  BestArgs args(bool plain = false) {
    BestArgs made;
    made.x = {engine_ptr(logits.data()), n, cols, cols + 3};
    if (!plain) made.rows = engine_ptr(std::as_const(with).data());
    made.k = k;
    made.tokens = engine_ptr(tokens.data());
    made.values = engine_ptr(values.data());
    if (!plain) made.mass = engine_ptr(mass.data());
    if (!plain) made.slice = engine_ptr(slice.data());
    return made;
  }

  int64_t n, cols;
  int32_t k;
  std::vector<float> logits;
  std::vector<BestRow> with;
  std::vector<int32_t> tokens;
  std::vector<float> values;
  std::vector<double> mass;
  std::vector<float> slice;
  std::vector<std::vector<uint32_t>> masks;
  std::vector<std::vector<int32_t>> asides;
  std::vector<std::vector<float>> aside_logits;
};

/// Runs both engines on copies and compares.
void expect_as_sorted(Rows& rows, int32_t threads, bool plain) {
  Rows want = rows;
  test::ReferenceEngine reference;
  ASSERT_TRUE(reference.run_one(want.args(plain)).ok());
  const auto aside = rows.aside_logits;  // where copies write, too
  for (auto& logits : rows.aside_logits) std::fill(logits.begin(), logits.end(), -77.0F);
  Rows got = rows;
  CpuBench bench(detect_cpu_level(), threads);
  ASSERT_TRUE(run(*bench, got.args(plain)).ok());
  EXPECT_EQ(rows.aside_logits, aside);
  EXPECT_EQ(got.tokens, want.tokens) << got.n << " x " << got.cols << ", " << got.k;
  EXPECT_TRUE(same_bits(got.values, want.values)) << got.n << " x " << got.cols << ", " << got.k;
  EXPECT_EQ(got.tokens.back(), -77);
  EXPECT_TRUE(same_bits(got.slice, want.slice)) << got.n << " x " << got.cols << ", " << got.k;
  for (size_t i = 0; i < want.mass.size(); ++i) {
    EXPECT_NEAR(got.mass[i], want.mass[i], 1e-12 * std::abs(want.mass[i])) << i;
  }
}

TEST(Best, IsWhatSortingFinds) {
  std::mt19937 bits(1);
  for (const int64_t cols : {1, 2, 31, 32, 33, 127, 128, 129, 300, 1000}) {
    for (const int32_t k : {1, 2, 5, 40, 1000}) {
      if (k > cols) continue;
      Rows rows(5, cols, k);
      rows.fill(bits);
      expect_as_sorted(rows, 1, true);
      const auto token = [&] { return static_cast<int32_t>(bits() % static_cast<uint32_t>(cols)); };
      std::vector<uint32_t> words(static_cast<size_t>((cols + 31) / 32));
      for (uint32_t& word : words) word = static_cast<uint32_t>(bits());
      rows.masks.reserve(5);
      rows.asides.reserve(5);
      rows.aside_logits.reserve(5);
      rows.mask(0, words);
      rows.aside(1, {token(), token(), 0, 0});
      rows.mask(2, {words.begin(), words.end() - 1});
      rows.aside(2, {token()});
      rows.mask(3, {});
      for (const int t : {0, 2, 3, 4}) {
        rows.with[static_cast<size_t>(t)].temperature = 0.01 + t * t;
        rows.with[static_cast<size_t>(t)].place = 0.3 * t - 0.1;
      }
      expect_as_sorted(rows, 1, false);
    }
  }
}

TEST(Best, ThreadsDoNotShow) {
  std::mt19937 bits(2);
  Rows rows(7, 9000, 3);
  rows.fill(bits);
  expect_as_sorted(rows, 3, true);
  rows.masks.reserve(1);
  rows.mask(4, std::vector<uint32_t>(200, 0x10010U));
  for (BestRow& row : rows.with) {
    row.temperature = 0.5;
    row.place = 0.6;
  }
  expect_as_sorted(rows, 3, false);
}

TEST(Best, RowsThatCannotBeChosenFromSayWhere) {
  for (const float bad : {kNan, kInf}) {
    for (const int32_t k : {1, 3}) {
      Rows rows(3, 200, k);
      std::mt19937 bits(3);
      rows.fill(bits);
      rows.at(1, 150) = bad;
      rows.at(1, 170) = kNan;
      rows.masks.reserve(2);
      rows.mask(1, {1});  // also where the mask leaves it out
      rows.asides.reserve(2);
      rows.aside_logits.reserve(2);
      rows.aside(1, {150});
      rows.with[1].temperature = 1.0;  // of nothing
      expect_as_sorted(rows, 1, false);
      CpuBench bench;
      ASSERT_TRUE(run(*bench, rows.args()).ok());
      for (int32_t i = 0; i < k; ++i) {
        const auto at = static_cast<size_t>(k + i);
        EXPECT_EQ(rows.tokens[at], -151);
        EXPECT_TRUE(same_bits(rows.values[at], bad));
      }
      EXPECT_GE(rows.tokens[0], 0);
      EXPECT_GE(rows.tokens[static_cast<size_t>(2 * k)], 0);
    }
  }
  // Nothing that is possible is not a failure here.
  Rows none(1, 70, 2);
  std::fill(none.logits.begin(), none.logits.end(), -kInf);
  CpuBench bench;
  ASSERT_TRUE(run(*bench, none.args()).ok());
  EXPECT_EQ(none.tokens, (std::vector<int32_t>{0, 1, -77}));
  EXPECT_EQ(none.values[0], -kInf);
}

}  // namespace
}  // namespace gen::engine::cpu

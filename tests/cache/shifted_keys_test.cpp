// SPDX-License-Identifier: Apache-2.0
// Keys that were turned for their positions, then shifted a hundred times: each must be what its
// position now asks for, as far off as its type rounds once. Only a part of each head is turned,
// and the angles are computed here, in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cache/batch/causal_store.h"
#include "support/counting_allocator.h"
#include "tensor/dtype.h"

namespace gen::cache {
namespace {

constexpr int32_t kHeads = 2;
constexpr int32_t kDim = 24;
constexpr int32_t kTurned = 8;  // elements of a head, in pairs of i and i + kTurned / 2
constexpr int32_t kShifts = 100;
constexpr int32_t kLeft = 12;
constexpr size_t kRow = kHeads * kDim;

/// A row as it is at a position `by` later.
std::vector<double> turned(std::vector<double> row, int32_t by) {
  for (size_t head = 0; head < kHeads; ++head) {
    for (size_t i = 0; i < kTurned / 2; ++i) {
      const double angle = by * std::pow(100.0, -2.0 * static_cast<double>(i) / kTurned);
      double& a = row[head * kDim + i];
      double& b = row[head * kDim + i + kTurned / 2];
      const double x = a;
      const double y = b;
      a = x * std::cos(angle) - y * std::sin(angle);
      b = x * std::sin(angle) + y * std::cos(angle);
    }
  }
  return row;
}

std::vector<float> rounded(const std::vector<double>& row) { return {row.begin(), row.end()}; }

class ShiftedKeys : public ::testing::TestWithParam<DType> {
 protected:
  ShiftedKeys() {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> draw(-0.7, 0.7);
    raw_.resize(kShifts + kLeft);
    for (auto& row : raw_) {
      row.resize(kRow);
      for (double& x : row) x = draw(random);
    }
  }
  /// All rows at positions 0 and up.
  void fill(CausalStore& store) {
    const auto n = static_cast<int32_t>(raw_.size());
    ASSERT_TRUE(store.configure({}).ok());
    ASSERT_TRUE(store.init({GetParam(), 1, n + 8, n}, allocator_).ok());
    ASSERT_TRUE(store
                    .set_shift([](int32_t, float* keys, int32_t dim, int32_t heads, int32_t rows,
                                  const int32_t* offsets) -> Status {
                      EXPECT_EQ(dim, kDim);
                      EXPECT_EQ(heads, kHeads);
                      for (int32_t i = 0; i < rows; ++i, keys += kRow) {
                        const auto now = turned({keys, keys + kRow}, offsets[i]);
                        std::copy(now.begin(), now.end(), keys);
                      }
                      return {};
                    })
                    .ok());
    std::vector<int32_t> positions;
    std::vector<float> keys;
    for (int32_t p = 0; p < n; ++p) {
      positions.push_back(p);
      for (const float x : rounded(turned(raw_[static_cast<size_t>(p)], p))) keys.push_back(x);
    }
    const std::vector<int32_t> sequences(raw_.size(), 0);
    ASSERT_TRUE(store.start_forward({positions, sequences, {}, false}).ok());
    const PutRows rows = {keys.data(), kHeads, kDim};
    ASSERT_TRUE(store.put(rows, rows, n).ok());
  }
  /// The last kLeft of them, read at their positions of now.
  static std::vector<float> last_keys(CausalStore& store) {
    const int32_t position[] = {kLeft};
    const int32_t sequence[] = {0};
    EXPECT_TRUE(store.start_forward({position, sequence, {}, false}).ok());
    const std::vector<float> zeros(kRow);
    const PutRows row = {zeros.data(), kHeads, kDim};
    EXPECT_TRUE(store.put(row, row, 1).ok());
    const HistoryShape shape = store.shape().value();
    std::vector<float> keys(kRow * static_cast<size_t>(shape.k[2]));
    EXPECT_TRUE(store.get(keys.data(), nullptr, nullptr).ok());
    EXPECT_EQ(shape.k[2], kShifts + kLeft);  // the new row took the first cell
    return {keys.begin() + kShifts * kRow, keys.end()};
  }

  test::CountingAllocator allocator_;
  std::vector<std::vector<double>> raw_;
};

INSTANTIATE_TEST_SUITE_P(Types, ShiftedKeys,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kQ8_0, DType::kQ4_0),
                         [](const auto& row) { return std::string(dtype_name(row.param)); });

TEST_P(ShiftedKeys, AreThoseOfTheirNewPositions) {
  CausalStore store("causal", {});
  fill(store);
  for (int i = 0; i < kShifts; ++i) ASSERT_TRUE(store.remove(0, 0, 1).ok());
  const std::vector<float> got = last_keys(store);
  // Elements are below 1 once turned; an error of a pair is turned with it.
  const double once = GetParam() == DType::kF32    ? 0x1p-22
                      : GetParam() == DType::kF16  ? 0x1p-12
                      : GetParam() == DType::kQ8_0 ? 0.5 / 127 + 0x1p-10
                                                   : 1.0 / 8 + 0x1p-9;
  double most = 0;
  for (int32_t p = 0; p < kLeft; ++p) {
    const auto want = turned(raw_[static_cast<size_t>(p + kShifts)], p);
    for (size_t e = 0; e < kRow; ++e) {
      const double off = std::fabs(got[static_cast<size_t>(p) * kRow + e] - want[e]);
      EXPECT_LE(off, once * std::sqrt(2.0) + 0x1p-22) << "position " << p << " element " << e;
      most = std::max(most, off);
    }
  }
  RecordProperty("most", std::to_string(most));
}

TEST_P(ShiftedKeys, AreTheSameInOneStepOrAHundred) {
  CausalStore one("causal", {});
  CausalStore hundred("causal", {});
  fill(one);
  fill(hundred);
  ASSERT_TRUE(one.remove(0, 0, kShifts).ok());
  for (int i = 0; i < kShifts; ++i) ASSERT_TRUE(hundred.remove(0, 0, 1).ok());
  EXPECT_EQ(last_keys(hundred), last_keys(one));
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Proves attention against a plain double-precision softmax, over shapes, windows, caps, weights,
// positions and trees, and that a row never touches what it does not see.
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/attention_case.h"

namespace gen::engine::cpu {
namespace {

using Case = AttentionCase;
using Shape = AttentionShape;

class AttentionTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, AttentionTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(AttentionTest, MatchesDoublePrecision) {
  for (KvFormat format : kEveryFormat) {
    for (int32_t entries : {1, 2, 5, 16, 17, 127, 128, 255, 256, 257}) {
      const Case c({4, 2, 32, 32, format}, entries, std::min(entries, 3));
      expect_near_reference(c, c.run(GetParam()));
    }
    const Case deep({4, 1, 64, 64, format}, 1000, 2);
    expect_near_reference(deep, deep.run(GetParam()));
  }
}

TEST_P(AttentionTest, TakesAnyShape) {
  const Shape shapes[] = {{1, 1, 1, 1},   {3, 3, 5, 7},   {8, 1, 16, 17},  {5, 5, 33, 15},
                          {6, 2, 31, 48}, {7, 1, 80, 96}, {2, 2, 128, 64}, {9, 3, 20, 20}};
  for (Shape shape : shapes) {
    for (KvFormat format : kEveryFormat) {
      shape.format = format;
      const Case c(shape, 37, 19);
      expect_near_reference(c, c.run(GetParam()));
    }
  }
}

TEST_P(AttentionTest, WindowsCapsAndWeights) {
  for (int32_t window : {1, 5, 128, 255, 256, 257}) {
    Case c({4, 2, 16, 16}, 300, 40);
    c.window = window;
    expect_near_reference(c, c.run(GetParam()));
    c.first_position = 77;
    expect_near_reference(c, c.run(GetParam()));
  }
  Case capped({4, 4, 16, 16}, 150, 7);
  capped.soft_cap = 1.5F;
  capped.scale = 0.7F;
  expect_near_reference(capped, capped.run(GetParam()));
  Case weighted({4, 2, 16, 16}, 150, 7);
  weighted.log_weights = random_floats(150, 9, 3.0F);
  expect_near_reference(weighted, weighted.run(GetParam()));
}

// Sinks that are small, about as large as scores, and so large that little else is left.
TEST_P(AttentionTest, SinksAreScoresWithoutValues) {
  for (const float size : {-90.0F, 1.0F, 30.0F}) {
    for (const int32_t window : {0, 5, 256}) {
      Case c({6, 2, 16, 16}, 300, 40);
      c.sinks = random_floats(6, 9, 2.0F);
      for (float& sink : c.sinks) sink += size;
      c.window = window;
      expect_near_reference(c, c.run(GetParam()));
      c.soft_cap = 1.5F;
      expect_near_reference(c, c.run(GetParam(), 3));
      Case one({4, 2, 16, 16}, 600, 1);  // chunks over threads
      one.sinks = {size, size + 1.0F, size - 1.0F, 0.0F};
      one.window = window;
      expect_near_reference(one, one.run(GetParam(), 3));
    }
  }
}

// What a score is compared with is itself scaled: here raw scores are thousands.
TEST_P(AttentionTest, LargeRawScoresOfASmallScale) {
  for (const float scale : {0.0003F, -0.0003F}) {
    Case c({}, 300, 3);
    for (float& x : c.q) x *= 4000.0F;
    c.scale = scale;
    expect_near_reference(c, c.run(GetParam()));
  }
}

TEST_P(AttentionTest, ListedPositions) {
  Case c({4, 2, 16, 16}, 200, 3);
  c.positions.resize(200);
  for (size_t i = 0; i < 200; ++i) c.positions[i] = static_cast<int32_t>(3 * i + 5);
  expect_near_reference(c, c.run(GetParam()));
  for (int32_t window : {50, 51, 52}) {  // 51 ends on an entry
    c.window = window;
    expect_near_reference(c, c.run(GetParam()));
  }
  // Positions that repeat or fall only start new chunks.
  Case odd({2, 1, 16, 16}, 40, 2);
  for (int32_t i = 0; i < 40; ++i) odd.positions.push_back(i / 3 * (i % 2 == 0 ? 1 : 2));
  expect_near_reference(odd, odd.run(GetParam()));
}

TEST_P(AttentionTest, TreesSeeTheirBranch) {
  // Rows 0 - 1 - 3 and 0 - 2 - 4, and a row that sees nothing but itself and the past.
  Case c({4, 2, 16, 16}, 135, 6);
  c.visible = {0b1, 0b11, 0b101, 0b1011, 0b10101, 0b100000};
  expect_near_reference(c, c.run(GetParam()));
  // Bit for bit as if each branch had come alone.
  const std::vector<float> tree = c.run(GetParam());
  const size_t cols = c.out_cols();
  const int32_t branches[][3] = {{0, 1, 3}, {0, 2, 4}};
  for (const auto& branch : branches) {
    Case plain({4, 2, 16, 16}, 132, 3);
    const size_t width = 2 * 16;
    for (int32_t e = 0; e < 129; ++e) {
      plain.k.put(e, c.k.values.data() + static_cast<size_t>(e) * width, width);
      plain.v.put(e, c.v.values.data() + static_cast<size_t>(e) * width, width);
    }
    for (int32_t i = 0; i < 3; ++i) {
      const auto from = static_cast<size_t>(129 + branch[i]) * width;
      plain.k.put(129 + i, c.k.values.data() + from, width);
      plain.v.put(129 + i, c.v.values.data() + from, width);
      std::copy_n(c.q.data() + branch[i] * 64, 64, plain.q.data() + i * 64);
    }
    const std::vector<float> alone = plain.run(GetParam());
    for (int32_t i = 0; i < 3; ++i) {
      for (size_t d = 0; d < cols; ++d) {
        ASSERT_TRUE(same_bits(alone[static_cast<size_t>(i) * cols + d],
                              tree[static_cast<size_t>(branch[i]) * cols + d]));
      }
    }
  }
}

TEST_P(AttentionTest, ATreeThatIsACausalChainIsNoTree) {
  for (int32_t rows : {63, 64, 65, 70, 130}) {  // one, two and three words a row
    for (int32_t window : {0, 20}) {
      Case c({2, 1, 16, 16}, rows + 90, rows);
      c.window = window;
      const std::vector<float> want = c.run(GetParam());
      const int32_t words = (rows + 63) / 64;
      c.visible.assign(static_cast<size_t>(rows * words), 0);
      for (int32_t i = 0; i < rows; ++i) {
        for (int32_t j = 0; j <= i; ++j) {
          c.visible[static_cast<size_t>(i * words + j / 64)] |= uint64_t{1} << (j % 64);
        }
      }
      EXPECT_TRUE(same_bits(c.run(GetParam()), want)) << rows << ' ' << window;
    }
  }
}

TEST_P(AttentionTest, ChunksHideWhatCameBefore) {
  for (int32_t chunk : {1, 7, 64, 256, 300}) {
    Case c({4, 2, 16, 16}, 300, 40);
    c.chunk = chunk;
    expect_near_reference(c, c.run(GetParam()));
    c.first_position = 77;
    expect_near_reference(c, c.run(GetParam()));
    c.window = 9;
    expect_near_reference(c, c.run(GetParam()));
    Case listed({4, 2, 16, 16}, 100, 3);
    for (int32_t i = 0; i < 100; ++i) listed.positions.push_back(2 * i + 1);
    listed.chunk = chunk;
    expect_near_reference(listed, listed.run(GetParam()));
  }
}

TEST_P(AttentionTest, NeverTouchesWhatARowDoesNotSee) {
  // The last row's key and value are poison; rows before it must not notice.
  Case c({2, 1, 16, 16}, 140, 12);
  const std::vector<float> clean = c.run(GetParam());
  const std::vector<float> poison(16, kNan);
  c.k.put(139, poison.data(), 16);
  c.v.put(139, poison.data(), 16);
  const std::vector<float> got = c.run(GetParam());
  const size_t cols = c.out_cols();
  for (size_t i = 0; i < 11 * cols; ++i) ASSERT_TRUE(same_bits(got[i], clean[i]));
  for (size_t i = 11 * cols; i < 12 * cols; ++i) ASSERT_TRUE(std::isnan(got[i]));
  // An entry that fell out of the window neither.
  Case w({2, 1, 16, 16}, 140, 1);
  w.window = 5;
  const std::vector<float> before = w.run(GetParam());
  w.k.put(134, poison.data(), 16);
  w.v.put(134, poison.data(), 16);
  EXPECT_TRUE(same_bits(w.run(GetParam()), before));
}

TEST_P(AttentionTest, ScoresOfMinusInfinityAndNan) {
  Case c({1, 1, 16, 16}, 3, 1);
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  c.log_weights = {minus_infinity, 0.0F, minus_infinity};
  const std::vector<float> got = c.run(GetParam());
  for (size_t d = 0; d < 16; ++d) EXPECT_EQ(got[d], c.v.values[16 + d]);
  c.log_weights.assign(3, minus_infinity);
  for (float value : c.run(GetParam())) EXPECT_EQ(value, 0.0F);
  c.log_weights[0] = kNan;
  for (float value : c.run(GetParam())) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves attention against a plain double-precision softmax, with a tolerance derived below, and
// that its bits depend on the row alone: not on the level, on how rows are batched, on threads,
// block tables, chunk borders, or on whether a row came as a branch of a tree.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/cpu/attention.h"
#include "engine/cpu/ops_run.h"
#include "engine/cpu_fixture.h"
#include "support/kv_side.h"
#include "support/sanitized.h"
#include "tensor/half.h"

namespace gen::engine::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t k_dim = 16;
  int32_t v_dim = 16;
  KvFormat format = KvFormat::kF32;
};

constexpr KvFormat kFormats[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kFp8, KvFormat::kQ4,
                                 KvFormat::kQ3};

/// Keys or values of `entries` entries, as floats and as stored.
struct Side {
  test::KvMemory memory;
  int32_t kv_heads;
  std::vector<float> values;  // as decoded, [entries, kv_heads, dim]

  Side(const Shape& shape, KvOrder order, int32_t dim, int32_t entries, uint32_t seed,
       int32_t block_size)
      : memory(shape.format, order, shape.kv_heads, dim, entries, block_size),
        kv_heads(shape.kv_heads) {
    const size_t row = static_cast<size_t>(shape.kv_heads) * static_cast<size_t>(dim);
    values = random_floats(static_cast<size_t>(entries) * row, seed);
    for (int32_t e = 0; e < entries; ++e) put(e, values.data() + static_cast<size_t>(e) * row, row);
  }

  /// Writes a row and keeps in `values` what can be read back.
  void put(int32_t e, const float* row, size_t n) {
    const auto dim = static_cast<size_t>(memory.side.head_dim);
    if (memory.side.format != KvFormat::kF32 && memory.side.format != KvFormat::kF16) {
      kv_put(memory.side, e, kv_heads, row);
      for (int32_t head = 0; head < kv_heads; ++head) {
        kv_get(memory.side, e, head,
               values.data() + static_cast<size_t>(e) * n + static_cast<size_t>(head) * dim);
      }
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      const auto head = static_cast<int32_t>(i / dim);
      const auto d = static_cast<int32_t>(i % dim);
      test::kv_write(memory.side, e, head, d, row[i]);
      values[static_cast<size_t>(e) * n + i] = test::kv_read(memory.side, e, head, d);
    }
  }
};

/// A sequence in a cache with queries for its last `rows` entries.
struct Case {
  Shape shape;
  int32_t entries;
  int32_t rows;
  Side k;
  Side v;
  std::vector<float> q;
  float scale = 0.25F;
  float soft_cap = 0.0F;
  int32_t window = 0;
  int32_t chunk = 0;
  int32_t first_position = 0;
  std::vector<int32_t> cells;  // of entries from first_cell on, or empty
  int32_t first_cell = 0;
  std::vector<int32_t> positions;
  std::vector<float> log_weights;
  std::vector<uint64_t> visible;

  Case(const Shape& s, int32_t n_entries, int32_t n_rows, int32_t block_size = 0)
      : shape(s),
        entries(n_entries),
        rows(n_rows),
        k(s, KvOrder::kKeys, s.k_dim, n_entries, 1, block_size),
        v(s, KvOrder::kValues, s.v_dim, n_entries, 2, block_size),
        q(random_floats(static_cast<size_t>(n_rows * s.heads * s.k_dim), 3, 2.0F)) {}

  [[nodiscard]] SequenceRows sequence(int32_t first, int32_t n) const {
    SequenceRows result;
    result.n_rows = n;
    result.first_entry = entries - rows + first;
    result.view.k = k.memory.side;
    result.view.v = v.memory.side;
    result.view.kv_heads = shape.kv_heads;
    result.view.entries = result.first_entry + n;
    result.view.window = window;
    result.view.chunk = chunk;
    for (KvSide* side : {&result.view.k, &result.view.v}) {
      side->cells = cells.empty() ? nullptr : cells.data() + first_cell;
      side->first_cell = first_cell;
    }
    result.view.first_position = first_position;
    result.view.positions = positions.empty() ? nullptr : positions.data();
    result.view.log_weights = log_weights.empty() ? nullptr : log_weights.data();
    result.visible = visible.empty() ? nullptr : visible.data();
    return result;
  }

  [[nodiscard]] size_t out_cols() const { return static_cast<size_t>(shape.heads * shape.v_dim); }

  /// Rows [first, first + n) in one call.
  std::vector<float> run(CpuContext& context, int32_t first, int32_t n) const {
    std::vector<float> out(static_cast<size_t>(n) * out_cols(), kNan);
    const SequenceRows rows_of_call = sequence(first, n);
    AttentionArgs args;
    const int64_t q_cols = shape.heads * shape.k_dim;
    args.q = {q.data() + first * q_cols, n, q_cols, q_cols};
    const auto cols = static_cast<int64_t>(out_cols());
    args.out = {out.data(), n, cols, cols};
    args.n_heads = shape.heads;
    args.n_kv_heads = shape.kv_heads;
    args.k_dim = shape.k_dim;
    args.v_dim = shape.v_dim;
    args.scale = scale;
    args.soft_cap = soft_cap;
    args.sequences = {&rows_of_call, 1};
    EXPECT_TRUE(run_attention(context, args).ok());
    return out;
  }
  std::vector<float> run(CpuLevel level, int32_t threads = 1) const {
    CpuBench bench(level, threads);
    return run(*bench, 0, rows);
  }

  [[nodiscard]] bool sees(int32_t row, int32_t entry) const {
    const int32_t own = entries - rows + row;
    const int32_t column = entry - (entries - rows);
    if (visible.empty() || column < 0) {
      if (entry > own) return false;
    } else if (((visible[static_cast<size_t>(row)] >> column) & 1u) == 0) {
      return false;
    }
    const auto at = [&](int32_t e) {
      return positions.empty() ? first_position + e : positions[static_cast<size_t>(e)];
    };
    if (chunk != 0 && at(entry) / chunk < at(own) / chunk) return false;
    if (window == 0) return true;
    if (!positions.empty()) {
      return positions[static_cast<size_t>(entry)] > positions[static_cast<size_t>(own)] - window;
    }
    return entry > own - window;
  }
};

// Where the float result may be: a score is a sum of k_dim products with |q| <= 2, |k| <= 1, so its
// rounding error is at most (k_dim + 1) eps * sum|q k| * scale, plus the cap's few ulp; an
// error d of a score changes weights by a factor e^d; the rest (exp 2 ulp, sums over lanes and
// chunks, normalisation) is relative to sum p |v|.
void expect_near_reference(const Case& c, const std::vector<float>& got) {
  constexpr double kEps = 0x1p-24;
  const auto k_dim = static_cast<size_t>(c.shape.k_dim);
  const auto v_dim = static_cast<size_t>(c.shape.v_dim);
  const auto kv_heads = static_cast<size_t>(c.shape.kv_heads);
  const auto group = static_cast<size_t>(c.shape.heads) / kv_heads;
  for (int32_t row = 0; row < c.rows; ++row) {
    for (size_t h = 0; h < static_cast<size_t>(c.shape.heads); ++h) {
      const size_t g = h / group;
      const float* q = c.q.data() + (static_cast<size_t>(row * c.shape.heads) + h) * k_dim;
      std::vector<double> scores;
      std::vector<size_t> seen;
      double score_error = 0.0;
      for (int32_t e = 0; e < c.entries; ++e) {
        if (!c.sees(row, e)) continue;
        const float* key = c.k.values.data() + (static_cast<size_t>(e) * kv_heads + g) * k_dim;
        double dot = 0.0;
        double size = 0.0;
        for (size_t d = 0; d < k_dim; ++d) {
          dot += static_cast<double>(q[d]) * key[d];
          size += std::fabs(static_cast<double>(q[d]) * key[d]);
        }
        double score = dot * c.scale;
        score_error = std::max(score_error,
                               size * std::fabs(c.scale) * (static_cast<double>(k_dim) + 2) * kEps);
        if (c.soft_cap != 0.0F) {
          score = c.soft_cap * std::tanh(score / c.soft_cap);
          score_error += 6 * kEps * c.soft_cap;
        }
        if (!c.log_weights.empty()) score += c.log_weights[static_cast<size_t>(e)];
        score_error = std::max(score_error, 2 * kEps * std::fabs(score));
        scores.push_back(score);
        seen.push_back(static_cast<size_t>(e));
      }
      const double largest = scores.empty() ? 0.0 : *std::max_element(scores.begin(), scores.end());
      double sum = 0.0;
      for (double& s : scores) sum += (s = std::exp(s - largest));
      const auto n = static_cast<double>(scores.size());
      const double relative =
          2 * std::expm1(2 * score_error) + (std::min(n, 256.0) + n / 256 * 8 + 32) * kEps;
      for (size_t d = 0; d < v_dim; ++d) {
        double want = 0.0;
        double size = 0.0;
        for (size_t i = 0; i < seen.size(); ++i) {
          const double value = c.v.values[(seen[i] * kv_heads + g) * v_dim + d];
          want += scores[i] / sum * value;
          size += scores[i] / sum * std::fabs(value);
        }
        const float out = got[(static_cast<size_t>(row * c.shape.heads) + h) * v_dim + d];
        ASSERT_NEAR(out, want, relative * size + 1e-30)
            << "row " << row << " head " << h << " element " << d;
      }
    }
  }
}

class AttentionTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, AttentionTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(AttentionTest, MatchesDoublePrecision) {
  for (KvFormat format : kFormats) {
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
    for (KvFormat format : kFormats) {
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

TEST_P(AttentionTest, HasTheBitsOfTheScalarLevel) {
  if (GetParam() == CpuLevel::kScalar) return;
  const int32_t rows = test::kSanitized ? 5 : 21;
  for (KvFormat format : kFormats) {
    for (const Shape& shape : {Shape{8, 2, 64, 64, format}, Shape{3, 3, 20, 33, format},
                               Shape{5, 1, 32, 16, format}, Shape{4, 2, 96, 80, format}}) {
      Case c(shape, 290, rows);
      EXPECT_TRUE(same_bits(c.run(GetParam()), c.run(CpuLevel::kScalar)));
      c.window = 130;
      c.soft_cap = 2.0F;
      EXPECT_TRUE(same_bits(c.run(GetParam()), c.run(CpuLevel::kScalar)));
    }
  }
}

TEST_P(AttentionTest, OneRowOneResult) {
  for (const Shape& shape :
       {Shape{8, 2, 32, 32, KvFormat::kF16}, Shape{3, 3, 16, 24},
        Shape{4, 2, 48, 16, KvFormat::kFp8}, Shape{2, 1, 64, 40, KvFormat::kQ4},
        Shape{9, 1, 40, 70, KvFormat::kQ4}, Shape{12, 1, 64, 32, KvFormat::kFp8},
        Shape{4, 4, 24, 32, KvFormat::kQ3}}) {
    for (int32_t window : {0, 100}) {
      constexpr int32_t kRows = test::kSanitized ? 9 : 45;
      Case c(shape, 300, kRows);
      c.window = window;
      CpuBench bench(GetParam());
      const std::vector<float> together = c.run(*bench, 0, kRows);
      std::vector<float> alone;
      for (int32_t row = 0; row < kRows; ++row) {
        const std::vector<float> one = c.run(*bench, row, 1);
        alone.insert(alone.end(), one.begin(), one.end());
      }
      EXPECT_TRUE(same_bits(together, alone));
      std::vector<float> parts;
      for (int32_t row = 0; row < kRows; row += kRows / 3) {
        const std::vector<float> some = c.run(*bench, row, kRows / 3);
        parts.insert(parts.end(), some.begin(), some.end());
      }
      EXPECT_TRUE(same_bits(together, parts));
    }
  }
}

TEST_P(AttentionTest, ThreadsDoNotShow) {
  for (int32_t rows : {1, 2, 7, 33}) {
    for (int32_t entries : {64, 1000, 9000}) {
      if (test::kSanitized && entries > 1000 && rows > 1) continue;  // the same code, slowly
      Case c({4, 1, 32, 32, KvFormat::kF16}, entries, rows);
      const std::vector<float> want = c.run(GetParam(), 1);
      for (int32_t threads : {2, 3, 4}) {
        EXPECT_TRUE(same_bits(c.run(GetParam(), threads), want)) << threads;
      }
      if (entries > 1000 && rows > 2) continue;
      c.window = 700;
      EXPECT_TRUE(same_bits(c.run(GetParam(), 4), c.run(GetParam(), 1)));
    }
  }
}

// Sums of so many queries take rounds of 16 chunks: one round that is full, and one more chunk.
TEST_P(AttentionTest, RoundsDoNotShow) {
  for (int32_t entries : {16 * kAttentionChunk, 16 * kAttentionChunk + 1, 33 * kAttentionChunk}) {
    if (test::kSanitized && entries > 17 * kAttentionChunk) continue;
    const Case c({32, 4, 8, 256, KvFormat::kF16}, entries, 1);
    EXPECT_TRUE(same_bits(c.run(GetParam(), 2), c.run(GetParam(), 1))) << entries;
  }
}

// How many heads a thread takes through a chunk depends on threads and heads.
TEST_P(AttentionTest, HeadsWorkedOnTogetherDoNotShow) {
  for (const KvFormat format : kFormats) {
    for (int32_t entries : {300, 2500}) {
      if (test::kSanitized && entries > 300) continue;  // the same code, slowly
      Case c({16, 8, 24, 40, format}, entries, 1);
      c.first_position = 5;
      const std::vector<float> want = c.run(GetParam(), 1);
      expect_near_reference(c, want);
      for (int32_t threads : {2, 3, 4}) {
        EXPECT_TRUE(same_bits(c.run(GetParam(), threads), want)) << threads;
      }
      c.window = 290;
      expect_near_reference(c, c.run(GetParam(), 1));
    }
  }
}

TEST_P(AttentionTest, BlockTablesDoNotShow) {
  for (int32_t block_size : {1, 7, 16, 100, 256, 1000}) {
    if (test::kSanitized && (block_size == 1 || block_size == 100)) continue;
    for (KvFormat format : kFormats) {
      const Shape shape = {4, 2, 32, 48, format};
      const Case plain(shape, 333, 5);
      const Case paged(shape, 333, 5, block_size);
      EXPECT_TRUE(same_bits(plain.run(GetParam()), paged.run(GetParam()))) << block_size;
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

TEST_P(AttentionTest, CellsDoNotShow) {
  // The same rows scattered over a larger memory: some in runs, some alone, some in falling order.
  for (int32_t block_size : {0, 7, 64}) {
    for (KvFormat format : kFormats) {
      const Shape shape = {4, 2, 32, 48, format};
      Case plain(shape, 333, 5);
      Case scattered(shape, 333, 5);
      Case memory(shape, 700, 5, block_size);
      for (int32_t e = 0; e < 333; ++e) {
        scattered.cells.push_back(e < 100 ? 50 + e : e < 200 ? 680 - 2 * e : 2 * e - 39);
      }
      const auto width = [](const Side& side) {
        return static_cast<size_t>(side.kv_heads * side.memory.side.head_dim);
      };
      const auto move = [&](const Side& from, Side& to) {
        const size_t n = width(from);
        const std::vector<float> rows = random_floats(333 * n, n == width(plain.v) ? 2 : 1);
        for (int32_t e = 0; e < 333; ++e) {
          to.put(scattered.cells[static_cast<size_t>(e)], rows.data() + static_cast<size_t>(e) * n,
                 n);
        }
      };
      move(plain.k, memory.k);
      move(plain.v, memory.v);
      scattered.k.memory.side = memory.k.memory.side;
      scattered.v.memory.side = memory.v.memory.side;
      EXPECT_TRUE(same_bits(plain.run(GetParam()), scattered.run(GetParam())));
      // Entries that no row sees need no cell.
      plain.window = scattered.window = 100;
      scattered.first_cell = 333 - 5 - 99;
      std::fill_n(scattered.cells.begin(), scattered.first_cell, -1000000);
      EXPECT_TRUE(same_bits(plain.run(GetParam()), scattered.run(GetParam())));
    }
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

TEST(Attention, RefusesOtherKeyForms) {
  Case c({1, 1, 16, 16}, 3, 1);
  SequenceRows rows = c.sequence(0, 1);
  rows.view.key_form = KeyForm::kUnrotated;
  AttentionArgs args;
  args.n_heads = args.n_kv_heads = 1;
  args.sequences = {&rows, 1};
  CpuBench bench;
  const Status status = run_attention(*bench, args);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(status.message(), "the CPU engine does not read keys of form 1");
}

TEST(Attention, SequencesOfABatchAreIndependent) {
  const Case a({4, 2, 32, 32}, 200, 1);
  const Case b({4, 2, 32, 32}, 77, 3);
  CpuBench bench(levels_here().back(), 3);
  std::vector<float> q = a.q;
  q.insert(q.end(), b.q.begin(), b.q.end());
  SequenceRows sequences[2] = {a.sequence(0, 1), b.sequence(0, 3)};
  sequences[1].first_row = 1;
  std::vector<float> out(4 * a.out_cols());
  AttentionArgs args;
  args.q = {q.data(), 4, 128, 128};
  args.out = {out.data(), 4, 128, 128};
  args.n_heads = 4;
  args.n_kv_heads = 2;
  args.k_dim = args.v_dim = 32;
  args.scale = a.scale;
  args.sequences = sequences;
  ASSERT_TRUE(run_attention(*bench, args).ok());
  std::vector<float> want = a.run(CpuLevel::kScalar);
  const std::vector<float> rest = b.run(CpuLevel::kScalar);
  want.insert(want.end(), rest.begin(), rest.end());
  EXPECT_TRUE(same_bits(out, want));
}

}  // namespace
}  // namespace gen::engine::cpu

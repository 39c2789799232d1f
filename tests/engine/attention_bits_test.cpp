// SPDX-License-Identifier: Apache-2.0
// Proves that the bits of attention depend on the row alone: not on the level, on how rows are
// batched, on threads, rounds, bands of heads, block tables or cells.
#include <cstring>
#include <numeric>

#include "engine/attention_case.h"
#include "support/sanitized.h"

namespace gen::engine::cpu {
namespace {

using Case = AttentionCase;
using Shape = AttentionShape;

class AttentionBitsTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, AttentionBitsTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(AttentionBitsTest, HasTheBitsOfTheScalarLevel) {
  if (GetParam() == CpuLevel::kScalar) return;
  const int32_t rows = test::kSanitized ? 5 : 21;
  for (KvFormat format : kEveryFormat) {
    for (const Shape& shape : {Shape{8, 2, 64, 64, format}, Shape{3, 3, 20, 33, format},
                               Shape{5, 1, 32, 16, format}, Shape{4, 2, 96, 80, format}}) {
      Case c(shape, 290, rows);
      EXPECT_TRUE(same_bits(c.run(GetParam()), c.run(CpuLevel::kScalar)));
      c.window = 130;
      c.soft_cap = 2.0F;
      c.sinks = random_floats(static_cast<uint64_t>(shape.heads), 5, 2.0F);
      EXPECT_TRUE(same_bits(c.run(GetParam()), c.run(CpuLevel::kScalar)));
    }
  }
}

TEST_P(AttentionBitsTest, OneRowOneResult) {
  for (const Shape& shape :
       {Shape{8, 2, 32, 32, KvFormat::kF16}, Shape{3, 3, 16, 24},
        Shape{4, 2, 48, 16, KvFormat::kFp8}, Shape{2, 1, 64, 40, KvFormat::kQ4},
        Shape{9, 1, 40, 70, KvFormat::kQ4}, Shape{12, 1, 64, 32, KvFormat::kFp8},
        Shape{4, 4, 24, 32, KvFormat::kQ3}}) {
    for (int32_t window : {0, 100}) {
      constexpr int32_t kRows = test::kSanitized ? 9 : 45;
      Case c(shape, 300, kRows);
      c.window = window;
      if (window > 0) c.sinks = random_floats(static_cast<uint64_t>(shape.heads), 5, 2.0F);
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

TEST_P(AttentionBitsTest, ThreadsDoNotShow) {
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
TEST_P(AttentionBitsTest, RoundsDoNotShow) {
  for (int32_t entries : {16 * kAttentionChunk, 16 * kAttentionChunk + 1, 33 * kAttentionChunk}) {
    if (test::kSanitized && (entries % kAttentionChunk == 0 || GetParam() == CpuLevel::kScalar)) {
      continue;  // the same code, slowly
    }
    const Case c({32, 4, 8, 256, KvFormat::kF16}, entries, 1);
    EXPECT_TRUE(same_bits(c.run(GetParam(), 2), c.run(GetParam(), 1))) << entries;
  }
}

// How many heads a thread takes through a chunk depends on threads and heads.
TEST_P(AttentionBitsTest, HeadsWorkedOnTogetherDoNotShow) {
  for (const KvFormat format : kEveryFormat) {
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

TEST_P(AttentionBitsTest, BlockTablesDoNotShow) {
  for (int32_t block_size : {1, 7, 16, 100, 256, 1000}) {
    if (test::kSanitized && (block_size == 1 || block_size == 100)) continue;
    for (KvFormat format : kEveryFormat) {
      const Shape shape = {4, 2, 32, 48, format};
      const Case plain(shape, 333, 5);
      const Case paged(shape, 333, 5, block_size);
      EXPECT_TRUE(same_bits(plain.run(GetParam()), paged.run(GetParam()))) << block_size;
    }
  }
}

TEST_P(AttentionBitsTest, CellsDoNotShow) {
  // The same rows scattered over a larger memory: some in runs, some alone, some in falling order.
  for (int32_t block_size : {0, 7, 64}) {
    for (KvFormat format : kEveryFormat) {
      const Shape shape = {4, 2, 32, 48, format};
      Case plain(shape, 333, 5);
      Case scattered(shape, 333, 5);
      Case memory(shape, 700, 5, block_size);
      for (int32_t e = 0; e < 333; ++e) {
        scattered.cells.push_back(e < 100 ? 50 + e : e < 200 ? 680 - 2 * e : 2 * e - 39);
      }
      const auto width = [](const AttentionSide& side) {
        return static_cast<size_t>(side.kv_heads * side.memory.side.head_dim);
      };
      const auto move = [&](const AttentionSide& from, AttentionSide& to) {
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

TEST(AttentionBits, SequencesOfABatchAreIndependent) {
  const Case a({4, 2, 32, 32}, 200, 1);
  const Case b({4, 2, 32, 32}, 77, 3);
  CpuBench bench(levels_here().back(), 3);
  std::vector<float> q = a.q;
  q.insert(q.end(), b.q.begin(), b.q.end());
  SequenceRows sequences[2] = {a.sequence(0, 1), b.sequence(0, 3)};
  sequences[1].first_row = 1;
  std::vector<float> out(4 * a.out_cols());
  AttendArgs args;
  args.q = {q.data(), 4, 128, 128};
  args.out = {out.data(), 4, 128, 128};
  args.n_heads = 4;
  args.n_kv_heads = 2;
  args.k_dim = args.v_dim = 32;
  args.scale = a.scale;
  args.sequences = sequences;
  ASSERT_TRUE(attend(*bench, args).ok());
  std::vector<float> want = a.run(CpuLevel::kScalar);
  const std::vector<float> rest = b.run(CpuLevel::kScalar);
  want.insert(want.end(), rest.begin(), rest.end());
  EXPECT_TRUE(same_bits(out, want));
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves attention of the CUDA engine to the bit against the CPU engine, which is proven against
// double precision: every pair of formats, odd sizes, block tables and cells, windows and chunks,
// listed positions, log-weights, trees, soft cap, turned keys, several sequences in a step, chunks
// of positions that begin anywhere; with a block for a row or one for each chunk; and that a row's
// bits do not depend on the rows beside it.
#include <cmath>
#include <limits>
#include <utility>

#include "cuda/engine/kv_bench.h"
#include "tensor/half.h"

namespace gen::test {
namespace {

using engine::KeyForm;
using engine::KvFormat;

struct AttentionCase {
  KvShape shape;
  int32_t entries = 40;
  int32_t rows = 3;  // the last ones attend
  int32_t group = 2;
  float scale = 0.3F;
  float soft_cap = 0.0F;
  float q_scale = 2.0F;
  bool sinks = false;
  int32_t first_position = 0;
  bool cells = false;
  bool positions = false;  // with gaps, and two that go back
  bool log_weights = false;
  bool tree = false;
  bool split = false;                  // chunks may have blocks of their own, rows may share one
  int32_t spare_chunks = 1;            // that `split` has more than there are
  bool any_bits = false;               // tensor cores may be used
  bool bf16 = false;                   // packed rows are, and checked
  bool last_is_none = false;           // key and value of the last entry are no numbers
  std::vector<std::byte> stored = {};  // the whole cache; empty: it is appended to
};

/// `store` gets the cache byte for byte.
std::vector<float> attend(OpBench& bench, const AttentionCase& c, int32_t first = 0, int32_t n = -1,
                          std::vector<std::byte>* store = nullptr) {
  const KvShape& shape = c.shape;
  const int32_t per_block = shape.block_size;
  const int32_t n_blocks = (c.entries + per_block - 1) / per_block + 1;
  KvBench kv(bench, {shape}, n_blocks % 7 == 0 ? n_blocks + 1 : n_blocks);
  engine::KvRows all = kv.rows(0, c.entries, 0);
  if (c.cells) {
    std::vector<int32_t> cells;
    for (int32_t e = 0; e < c.entries; ++e) cells.push_back(e ^ 1);
    if (c.entries % 2 != 0) cells.back() = c.entries;
    all.cells = bench.put(cells);
  }
  AppendOptions options;
  options.n_heads = shape.kv_heads * c.group;
  options.scale = 1.5F;
  if (!c.stored.empty()) {
    kv.set_bytes(c.stored);
  } else {
    append_rows(bench, shape, kv.layers[0], {all}, c.entries, options);
    if (c.last_is_none) {
      options.scale = std::numeric_limits<float>::quiet_NaN();
      append_rows(bench, shape, kv.layers[0], {kv.rows(0, 1, c.entries - 1)}, 1, options);
    }
  }
  if (store != nullptr) *store = kv.bytes();

  if (n < 0) n = c.rows - first;
  engine::KvRows rows = all;
  rows.first_row = 1;
  rows.n_rows = n;
  rows.first_entry = c.entries - c.rows + first;
  rows.entries = rows.first_entry + n;
  rows.first_position = c.first_position;
  if (c.positions) {
    std::vector<int32_t> positions;
    for (int32_t e = 0; e < c.entries; ++e) {
      positions.push_back(e * 2 + (e > 11 ? 300 : 0) - (e == 20 || e == 21 ? 30 : 0));
    }
    rows.positions = bench.put(positions);
  }
  if (c.log_weights) {
    rows.log_weights = bench.put(random_row(static_cast<size_t>(c.entries), 77, 3.0F));
  }
  if (c.tree) {
    const auto words = static_cast<size_t>((n + 63) / 64);
    std::vector<uint64_t> visible(words * static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) {
      // The parent of row i is i / 2.
      for (int32_t j = i;; j = j / 2) {
        visible[static_cast<size_t>(i) * words + static_cast<size_t>(j / 64)] |= uint64_t{1}
                                                                                 << (j % 64);
        if (j == 0) break;
      }
    }
    rows.visible = bench.put(visible);
  }
  const int32_t heads = shape.kv_heads * c.group;
  const int32_t q_cols = heads * shape.k_dim;
  const int32_t cols = heads * shape.v_dim;
  const auto q = random_row(static_cast<size_t>(c.rows * q_cols), 9, c.q_scale);
  std::vector<float> own(q.begin() + int64_t{first} * q_cols,
                         q.begin() + int64_t{first + n} * q_cols);
  own.insert(own.begin(), static_cast<size_t>(q_cols), 1.0F);  // a row that is nobody's
  engine::AttentionArgs args;
  args.q = {bench.put(own), n + 1, q_cols, q_cols};
  args.out = {bench.room((n + 1) * int64_t{cols + 5}), n + 1, cols, cols + 5};
  args.n_heads = heads;
  args.n_kv_heads = shape.kv_heads;
  args.k_dim = shape.k_dim;
  args.v_dim = shape.v_dim;
  args.scale = c.scale;
  args.soft_cap = c.soft_cap;
  if (c.sinks) args.sinks = bench.put(random_row(static_cast<size_t>(heads), 13, 3.0F));
  args.layer = kv.layers[0];
  args.any_bits = c.any_bits;
  args.sequences = bench.put(std::vector<engine::KvRows>{rows});
  args.n_sequences = 1;
  if (c.split) {
    args.max_chunks = (c.entries + c.first_position % 256 + 255) / 256 + c.spare_chunks;
  }
  const auto apart = static_cast<int64_t>(bench.engine().activation_bytes(engine::kActF32, cols));
  if (c.bf16) {
    const auto packed = bench.room((n + 1) * apart / 4).as<std::byte>();
    args.packed = {packed, engine::kActF32, n + 1, cols, true};
  }
  bench.run(args);
  const auto out = bench.get(args.out.data, (n + 1) * int64_t{cols + 5});
  if (c.bf16) {
    const auto packed = bench.get(args.packed.data.as<uint16_t>(), (n + 1) * apart / 2);
    for (int32_t i = cols; i < (n + 1) * cols; ++i) {  // the first row is nobody's
      const auto at = static_cast<size_t>(i / cols * apart / 2 + i % cols);
      EXPECT_EQ(packed[at],
                f32_to_bf16(out[static_cast<size_t>(i / cols * (cols + 5) + i % cols)]));
    }
  }
  return out;
}

std::vector<float> attend_on_device(const AttentionCase& c, int processors) {
  const Processors configured(processors);
  OpBench cuda(cuda_engine());
  return attend(cuda, c);
}

/// With a block for each row and head, for each chunk, or for 32 queries: the last two where the
/// device is large or small beside the rows. The device gets the CPU's cache, since filling one
/// there costs more than attention does; append_test.cpp compares the bytes.
void expect_same_attention(AttentionCase c, bool only_tiled = false) {
  OpBench cpu(cpu_engine());
  std::vector<std::byte> stored;
  const auto want = attend(cpu, c, 0, -1, &stored);
  ASSERT_FALSE(want.empty());
  c.stored = std::move(stored);
  const auto expect = [&](const char* how, bool split, int processors) {
    SCOPED_TRACE(how);
    c.split = split;
    EXPECT_TRUE(same_bits(attend_on_device(c, processors), want));
  };
  if (!only_tiled) expect("whole", false, 4);
  if (c.positions || c.tree) return;
  if (!only_tiled) expect("split", true, 1000);
  if (c.rows > 1) expect("tiled", true, 0);
  c.spare_chunks = 0;
  if (!only_tiled) expect("split without more", true, 8);
}

/// By every kernel.
TEST(CudaAttention, RowsInBFloat16) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kQ4}) {
    AttentionCase c;
    c.shape.k_format = c.shape.v_format = format;
    c.shape.k_dim = c.shape.v_dim = c.shape.block_size = 48;
    c.rows = 20;
    c.bf16 = true;
    attend_on_device(c, 4);
    c.split = true;
    for (const int processors : {0, 1000}) {
      for (const bool any_bits : {false, true}) {
        c.any_bits = any_bits;
        attend_on_device(c, processors);
      }
    }
  }
}

TEST(CudaAttention, EveryPairOfFormats) {
  for (const KvFormat k : kEveryFormat) {
    for (const KvFormat v : kEveryFormat) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(k) << ", " << static_cast<int>(v));
      AttentionCase c;
      c.shape.k_format = k;
      c.shape.v_format = v;
      c.shape.k_dim = 40;
      c.shape.v_dim = 33;
      c.shape.block_size = 24;
      expect_same_attention(c);
    }
  }
}

TEST(CudaAttention, OddSizes) {
  for (const KvFormat format : kEveryFormat) {
    for (const auto& [k_dim, v_dim, heads, group] :
         {std::tuple(8, 8, 1, 1), std::tuple(19, 35, 3, 1), std::tuple(128, 128, 2, 3),
          std::tuple(300, 260, 1, 2), std::tuple(24, 16, 1, 11)}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(format) << ", " << k_dim);
      AttentionCase c;
      c.shape.k_format = c.shape.v_format = format;
      c.shape.k_dim = k_dim;
      c.shape.v_dim = v_dim;
      c.shape.kv_heads = heads;
      c.group = group;
      c.shape.block_size = 32;
      c.shape.gap = k_dim == 24 ? 12 : 16;  // with 16 tiles of sixteen are copied whole
      c.entries = 37;
      c.rows = 2;
      expect_same_attention(c);
    }
  }
}

TEST(CudaAttention, ChunksOfPositions) {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ4}) {
    for (const int32_t entries : {1, 255, 256, 257, 520}) {
      if (format != KvFormat::kF32 && entries != 257) continue;
      for (const int32_t first_position : {0, 250, 240}) {
        SCOPED_TRACE(testing::Message() << entries << " from " << first_position);
        AttentionCase c;
        c.shape.k_format = c.shape.v_format = format;
        c.shape.kv_heads = 1;
        c.entries = entries;
        c.sinks = entries != 520;
        c.rows = std::min(entries, 3);
        c.first_position = first_position;
        c.shape.block_size = first_position > 0 ? 256 : 48;
        c.shape.gap = 16;
        expect_same_attention(c);
      }
    }
  }
}

TEST(CudaAttention, WindowsAndChunks) {
  for (const auto& [window, chunk] : {std::pair(1, 0), std::pair(7, 0), std::pair(300, 0),
                                      std::pair(0, 8), std::pair(0, 300), std::pair(20, 64)}) {
    for (const bool lists : {false, true}) {
      SCOPED_TRACE(testing::Message() << window << ", " << chunk << (lists ? ", lists" : ""));
      AttentionCase c;
      c.shape.kv_heads = 1;
      c.shape.window = window;
      c.shape.chunk = chunk;
      c.shape.block_size = 16;
      c.shape.gap = 16;
      c.entries = 320;
      c.positions = lists;
      expect_same_attention(c);
    }
  }
}

TEST(CudaAttention, ListsTreesAndRules) {
  for (int32_t bits = 0; bits < 32; ++bits) {
    SCOPED_TRACE(bits);
    AttentionCase c;
    c.cells = (bits & 1) != 0;
    c.positions = (bits & 2) != 0;
    c.log_weights = (bits & 4) != 0;
    c.tree = (bits & 8) != 0;
    c.soft_cap = (bits & 16) != 0 ? 2.5F : 0.0F;
    c.sinks = bits % 7 < 3;
    c.shape.kv_heads = 1;
    c.shape.window = bits % 3 == 0 ? 30 : 0;
    c.shape.block_size = 48;
    c.shape.gap = 16;
    c.entries = 61;
    c.rows = 9;
    expect_same_attention(c);
  }
}

TEST(CudaAttention, LargeTreesTurnedKeysAndOddScales) {
  AttentionCase c;
  c.tree = true;
  c.entries = 290;
  c.rows = 70;
  c.shape.kv_heads = 1;
  expect_same_attention(c);
  c.tree = false;
  c.rows = 2;
  c.scale = -0.7F;
  c.shape.key_form = KeyForm::kHadamard;
  c.shape.k_dim = 48;
  expect_same_attention(c);
  c.scale = 40.0F;  // one entry has all of the weight
  expect_same_attention(c);
}

/// Tiles of 32 queries: rows that fill several, rows whose heads two tiles share, and heads of more
/// than 128 values.
TEST(CudaAttention, TilesOfQueries) {
  for (const auto& [rows, heads, group, dim] :
       {std::tuple(40, 1, 1, 40), std::tuple(23, 2, 3, 20), std::tuple(5, 1, 33, 8),
        std::tuple(9, 1, 4, 160)}) {
    for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ4}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << group << " heads of " << dim);
      AttentionCase c;
      c.shape.k_format = c.shape.v_format = format;
      c.shape.k_dim = c.shape.v_dim = dim;
      c.shape.kv_heads = heads;
      c.group = group;
      c.rows = rows;
      c.entries = rows + 230;  // some rows see one chunk, others two
      c.first_position = format == KvFormat::kF32 ? 16 : 3;
      c.shape.block_size = 64;
      c.shape.gap = 16;
      c.shape.window = format == KvFormat::kQ4 ? 17 : 0;
      c.sinks = format != KvFormat::kF32;
      expect_same_attention(c, true);
    }
  }
}

/// What later rows store, be it no number, does not reach the rows before them in a tile.
TEST(CudaAttention, LaterEntriesDoNotShowInATile) {
  AttentionCase c;
  c.shape.block_size = 32;
  c.shape.gap = 16;
  c.entries = 40;
  c.rows = 12;
  c.split = true;
  c.shape.kv_heads = 1;
  c.last_is_none = true;
  OpBench cpu(cpu_engine());
  const auto got = attend_on_device(c, 0);
  EXPECT_TRUE(same_bits(got, attend(cpu, c)));
  const size_t stride = got.size() / 13;
  for (size_t i = stride; i < stride * 12; ++i) ASSERT_EQ(got[i], got[i]) << i;
}

/// The largest difference from the CPU engine's results, in units of what the tensor cores' factors
/// may be off by: 2^-12 of float16, of a score by what its products are off by at random, and 2^-16
/// of what is float32 in two parts.
double tensor_core_error(AttentionCase c) {
  OpBench cpu(cpu_engine());
  std::vector<std::byte> stored;
  const auto want = attend(cpu, c, 0, -1, &stored);
  c.stored = std::move(stored);
  c.split = c.any_bits = true;
  const auto got = attend_on_device(c, 0);
  EXPECT_EQ(got.size(), want.size());
  // With half as many queries in a block, a row has the same bits.
  EXPECT_TRUE(same_bits(attend_on_device(c, 7), got));
  double worst = 0.0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double apart = std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    if (!(apart <= worst) && worst == worst) worst = apart;  // NaN is the worst
  }
  c.any_bits = false;
  EXPECT_TRUE(same_bits(attend_on_device(c, 0), want));
  // Elements of q are below q_scale, of keys and values below 1.5.
  const double score = std::fabs(static_cast<double>(c.scale)) * static_cast<double>(c.q_scale) *
                       0.5 * std::sqrt(static_cast<double>(c.shape.k_dim));
  const double unit = c.shape.k_format == KvFormat::kF16 ? 0x1p-12 : 0x1p-16;
  return worst / (unit * (score + 1.0) * 1.5);
}

/// Fewer rows than these for each two multiprocessors are split over blocks of another kernel.
#ifdef GEN_ON_DEVICE
constexpr int32_t kMoreRows = 512;
#else
constexpr int32_t kMoreRows = 0;
#endif

TEST(CudaAttention, TensorCoresAreWithinTheirBound) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    for (const auto& [rows, heads, group, k_dim, v_dim] :
         {std::tuple(40, 1, 1, 64, 64), std::tuple(70, 2, 4, 128, 128),
          std::tuple(16, 1, 3, 16, 48), std::tuple(20, 1, 2, 80, 112)}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(format) << ", " << rows << " rows, "
                                      << group << " heads of " << k_dim);
      AttentionCase c;
      c.shape.k_format = c.shape.v_format = format;
      c.shape.k_dim = k_dim;
      c.shape.v_dim = v_dim;
      c.shape.kv_heads = heads;
      c.shape.block_size = rows == 40 ? 16 : 48;
      c.shape.gap = 16;
      c.group = group;
      c.rows = rows + kMoreRows;
      c.entries = c.rows + (rows == 70 ? 150 : 25);
      c.scale = 0.15F;
      const double error = tensor_core_error(c);
      EXPECT_LT(error, 1.0);
      EXPECT_GT(error, 1e-3);  // they are not the CPU engine's bits, so the kernel was another one
    }
  }
}

TEST(CudaAttention, TensorCoresFollowEveryRule) {
  for (int32_t bits = 0; bits < 32; ++bits) {
    SCOPED_TRACE(bits);
    AttentionCase c;
    c.cells = (bits & 1) != 0;
    c.log_weights = (bits & 2) != 0;
    c.soft_cap = (bits & 4) != 0 ? 2.5F : 0.0F;
    c.sinks = bits % 7 < 3;
    c.shape.window = (bits & 8) != 0 ? 70 : 0;
    c.shape.chunk = (bits & 16) != 0 ? 40 : 0;
    c.first_position = bits % 3 * 20;
    c.shape.k_format = c.shape.v_format = bits % 5 < 2 ? KvFormat::kF16 : KvFormat::kF32;
    c.shape.k_dim = c.shape.v_dim = 32;
    c.shape.kv_heads = 1;
    c.shape.block_size = 48;
    c.shape.gap = 16;
    c.entries = 170 + kMoreRows;
    c.rows = 70 + kMoreRows;
    const double error = tensor_core_error(c);
    EXPECT_LT(error, 1.0);
    EXPECT_GT(error, 1e-3);
  }
}

/// A power of two comes out of them before they are rounded to float16.
TEST(CudaAttention, TensorCoresTakeLargeQueries) {
  AttentionCase c;
  c.shape.k_format = c.shape.v_format = KvFormat::kF16;
  c.shape.k_dim = c.shape.v_dim = 32;
  c.shape.kv_heads = 1;
  c.shape.block_size = 32;
  c.shape.gap = 16;
  c.rows = 16;
  c.q_scale = 0x1p70F;
  c.scale = 0x1p-72F;
  const double error = tensor_core_error(c);
  EXPECT_LT(error, 1.0);
}

TEST(CudaAttention, RowsBesideDoNotShow) {
  AttentionCase c;
  c.shape.k_format = KvFormat::kF16;
  c.shape.v_format = KvFormat::kFp8;
  c.entries = 300;
  c.rows = 5;
  OpBench together(cuda_engine());
  const auto whole = attend(together, c);
  const size_t stride = whole.size() / 6;
  for (int32_t row = 0; row < 5; ++row) {
    OpBench alone(cuda_engine());
    const auto one = attend(alone, c, row, 1);
    const auto at = whole.begin() + static_cast<int64_t>(stride) * (row + 1);
    EXPECT_TRUE(same_bits(std::vector<float>(one.begin() + static_cast<int64_t>(stride), one.end()),
                          std::vector<float>(at, at + static_cast<int64_t>(stride))))
        << "row " << row;
  }
}

}  // namespace
}  // namespace gen::test

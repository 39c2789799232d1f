// SPDX-License-Identifier: Apache-2.0
// Proves that operations of a list which one kernel does (cuda/ops/pairs.h) leave in memory, to the
// bit, what they leave there one by one; which of them are done so; and that lists in which that
// would not do are left as they are.
#include "cuda/engine/kv_bench.h"
#include "cuda/engine/linear_case.h"

namespace gen::test {
namespace {

#ifdef GEN_ON_DEVICE
constexpr bool kCountsKernels = false;
uint64_t kernels_run() { return 0; }
#else
constexpr bool kCountsKernels = true;
uint64_t kernels_run() { return cuda::emulator::kernels_run(); }
#endif

/// A norm and a product of its row.
struct NormCase {
  DType type = DType::kBF16;
  int64_t cols = 96;
  int64_t outputs = 20;
  int64_t rows = 1;
  WeightRole role = WeightRole::kLinear;
  bool apart = false;  // two weights of which each is a product of its own
  bool ends = false;   // bias, activation, residual
  bool deterministic = false;
  bool plain_rows = false;  // the norm writes float rows, too
  int64_t x_off = 0;        // elements by which the row is off a multiple of 64 bytes
  bool over_x = false;      // the product overwrites the norm's input
};

/// All that the list writes.
std::vector<float> norm_and_product(const NormCase& c, bool as_list, uint64_t* kernels) {
  const uint64_t before = kernels_run();  // weights are packed when the device gets to it
  OpBench bench(cuda_engine());
  const int64_t factor = c.role == WeightRole::kGated || c.apart ? 2 : 1;
  const Matrix first(c.type, c.outputs, c.cols, 1);
  // With a length that is no multiple of 256 bytes the second one lies apart.
  const Matrix second(c.type, c.outputs, c.cols, 2);
  std::vector<WeightSource> sources = {first.source()};
  if (factor == 2) sources.push_back(second.source());
  auto weight = bench.engine().prepare(c.role, sources, nullptr);
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  const uint32_t forms = weight.value()->activation_forms();
  const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(forms, c.cols));
  const int64_t n = weight.value()->out_features();

  engine::RmsNormArgs norm;
  const int64_t stride = (c.cols + 15) / 16 * 16;
  const int64_t room = std::max(c.rows * stride, n) + c.x_off;
  const auto x = bench.put(random_row(static_cast<size_t>(room), 3, 3.0F));
  norm.x = {x + c.x_off, c.rows, c.cols, stride};
  norm.w = bench.put(random_row(static_cast<size_t>(c.cols), 4));
  norm.eps = 1e-5F;
  const auto packed = bench.put(std::vector<float>(static_cast<size_t>(c.rows * bytes / 4), 7.0F));
  norm.packed = {packed.as<std::byte>(), forms, c.rows, c.cols};
  if (c.plain_rows) norm.y = {bench.room(c.rows * c.cols), c.rows, c.cols, c.cols};
  engine::LinearArgs linear;
  linear.weight = weight.value().get();
  linear.x = norm.packed;
  linear.deterministic = c.deterministic;
  const auto y = c.over_x ? x : bench.put(random_row(static_cast<size_t>(c.rows * n), 5));
  linear.y = {y, c.rows, n, n};
  if (c.ends) {
    linear.bias = bench.put(random_row(static_cast<size_t>(c.outputs * factor), 6));
    linear.activation.kind = engine::Act::kSilu;
    linear.residual = {bench.put(random_row(static_cast<size_t>(c.rows * n), 7)), c.rows, n, n};
  }
  if (as_list) {
    EXPECT_TRUE(bench.run_all({norm, linear}).ok());
  } else {
    bench.run(norm);
    bench.run(linear);
  }
  *kernels = kernels_run() - before;
  auto seen = bench.get(linear.y.data, c.rows * n);
  const auto normed = bench.get(packed, c.rows * bytes / 4);
  seen.insert(seen.end(), normed.begin(), normed.end());
  const auto after = bench.get(x, room);
  seen.insert(seen.end(), after.begin(), after.end());
  return seen;
}

/// `saved`: how many kernels fewer the list takes.
void expect_same_product(const NormCase& c, uint64_t saved) {
  uint64_t kernels[2] = {};
  const auto want = norm_and_product(c, false, &kernels[0]);
  const auto got = norm_and_product(c, true, &kernels[1]);
  EXPECT_TRUE(same_bits(got, want));
  if (kCountsKernels) {
    EXPECT_EQ(kernels[0] - kernels[1], saved);
  }
}

TEST(CudaPairs, NormAndProduct) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    // More columns than a thread has weights of, and those that end within a round of lanes.
    for (const int64_t cols : {8, 24, 96, 1000, 2048, 4096 + 40}) {
      for (const int64_t outputs : {1, 20, 130}) {
        if (outputs == 130 && cols > 1000) continue;
        SCOPED_TRACE(testing::Message() << dtype_name(type) << ", " << cols << " to " << outputs);
        NormCase c;
        c.type = type;
        c.cols = cols;
        c.outputs = outputs;
        for (const bool deterministic : {false, true}) {
          c.deterministic = deterministic;
          c.ends = false;
          c.role = WeightRole::kLinear;
          expect_same_product(c, 1);
          c.ends = true;
          c.role = WeightRole::kGated;
          expect_same_product(c, 1);
        }
      }
    }
  }
}

TEST(CudaPairs, ProductsOfSeveralWeights) {
  for (const int64_t outputs : {5, 64}) {
    SCOPED_TRACE(outputs);
    NormCase c;
    c.apart = true;
    c.outputs = outputs;
    expect_same_product(c, 1);
    c.deterministic = true;
    expect_same_product(c, 1);
  }
}

TEST(CudaPairs, ProductsThatTakeARowThatHasBeenNormed) {
  const NormCase fits;
  const auto expect_two = [](const char* what, const NormCase& c) {
    SCOPED_TRACE(what);
    expect_same_product(c, 0);
  };
  NormCase c = fits;
  c.type = DType::kF32;
  expect_two("float32", c);
  c.type = DType::kQ8_0;
  expect_two("quantised", c);
  c = fits;
  c.cols = 100;
  expect_two("a part of a piece", c);
  c = fits;
  c.rows = 2;
  expect_two("two rows", c);
  c = fits;
  c.plain_rows = true;
  expect_two("float rows", c);
  c = fits;
  c.x_off = 1;
  expect_two("an odd place", c);
  c = fits;
  c.over_x = true;
  expect_two("in place", c);
  c = fits;
  c.cols = 64 * 1024 / 4 + 8;
  c.outputs = 3;
  expect_two("a row that is too long", c);
  c.deterministic = true;
  c.cols = 32 * 1024;
  expect_two("a row that is too long for one result", c);
}

/// A row's rotation and append, and attention.
struct AppendCase {
  KvShape shape = {.k_format = engine::KvFormat::kF16,
                   .v_format = engine::KvFormat::kF16,
                   .block_size = 48,
                   .gap = 16};
  int32_t group = 2;
  int32_t entries = 40;  // the row's own is the last
  int32_t first_position = 0;
  engine::RopeKind rope = engine::RopeKind::kAdjacent;
  int32_t rope_dims = 8;
  bool norms = false;
  bool cells = false;
  bool log_weights = false;
  float soft_cap = 0.0F;
  int32_t rows = 1;
  bool store = true;    // there are keys and values
  bool no_list = true;  // how far rows look is known
  bool over_k = false;  // results take the place of keys
  uint32_t forms = 0;   // of packed results; 0: they are plain
  int32_t nobodys = 0;  // rows before the row, of no sequence
  int processors = 1000;
  bool twice = false;  // the list is run before, with another q
};

/// Results, and the cache byte for byte.
std::vector<float> append_and_attend(const AppendCase& c, bool as_list, uint64_t* kernels) {
  const Processors configured(c.processors);
  OpBench bench(cuda_engine());
  const KvShape& shape = c.shape;
  const int32_t n_blocks = (c.entries + shape.block_size - 1) / shape.block_size + 1;
  KvBench kv(bench, {shape}, n_blocks % 7 == 0 ? n_blocks + 1 : n_blocks);
  const int32_t heads = shape.kv_heads * c.group;
  AppendOptions options;
  options.n_heads = heads;
  options.rope_dims = std::min(8, shape.k_dim);
  const int32_t before = c.entries - c.rows;
  engine::KvRows all = kv.rows(0, before, 0);
  engine::EnginePtr<int32_t> cells;
  if (c.cells) {
    std::vector<int32_t> places;
    for (int32_t e = 0; e < c.entries; ++e) places.push_back(e ^ 1);
    if (c.entries % 2 != 0) places.back() = c.entries;
    all.cells = cells = bench.put(places);
  }
  if (before > 0) append_rows(bench, shape, kv.layers[0], {all}, before, options);

  engine::KvRows rows = all;
  rows.n_rows = c.rows;
  rows.first_row = c.nobodys;
  rows.first_entry = before;
  rows.entries = c.entries;
  rows.first_position = c.first_position;
  if (c.log_weights) {
    rows.log_weights = bench.put(random_row(static_cast<size_t>(c.entries), 77, 3.0F));
  }
  const int64_t q_cols = int64_t{heads} * shape.k_dim;
  const int64_t k_cols = int64_t{shape.kv_heads} * shape.k_dim;
  const int64_t v_cols = int64_t{shape.kv_heads} * shape.v_dim;
  const int64_t cols = int64_t{heads} * shape.v_dim;
  const auto matrix = [&](int64_t n, uint32_t seed) {
    return bench.put(random_row(static_cast<size_t>(c.rows * (n + 3)), seed, 2.0F));
  };
  engine::RopeAppendArgs append;
  append.q = {matrix(q_cols, 31), c.rows, q_cols, q_cols + 3};
  const auto k = matrix(std::max(k_cols, cols), 32);
  if (c.store) {
    append.k = {k, c.rows, k_cols, k_cols + 3};
    append.v = {matrix(v_cols, 33), c.rows, v_cols, v_cols + 3};
  }
  append.n_heads = heads;
  append.n_kv_heads = shape.kv_heads;
  append.k_dim = shape.k_dim;
  append.v_dim = shape.v_dim;
  if (c.norms) {
    append.q_norm = bench.put(random_row(static_cast<size_t>(shape.k_dim), 34));
    append.k_norm = bench.put(random_row(static_cast<size_t>(shape.k_dim), 35));
    append.norm_eps = 1e-5F;
  }
  append.rope = c.rope;
  append.rope_dims = c.rope_dims;
  if (c.rope != engine::RopeKind::kNone) {
    append.cs = {bench.put(random_row(static_cast<size_t>(c.rows * c.rope_dims), 36)), c.rows,
                 c.rope_dims, c.rope_dims};
  }
  append.layer = kv.layers[0];
  append.sequences = bench.put(std::vector<engine::KvRows>{rows});
  append.n_sequences = 1;
  engine::AttentionArgs attention;
  attention.q = {append.q.data, c.rows, q_cols, q_cols + 3};
  const auto out = c.over_k ? k : bench.room(c.rows * (cols + 5));
  attention.out = {out, c.rows, cols, cols + 5};
  int64_t floats = 0;
  if (c.forms != 0) {
    floats = static_cast<int64_t>(bench.engine().activation_bytes(c.forms, cols)) / 4 * c.rows;
    attention.packed = {
        bench.put(std::vector<float>(static_cast<size_t>(floats), 7.0F)).as<std::byte>(), c.forms,
        c.rows, cols};
  }
  attention.n_heads = heads;
  attention.n_kv_heads = shape.kv_heads;
  attention.k_dim = shape.k_dim;
  attention.v_dim = shape.v_dim;
  attention.scale = 0.3F;
  attention.soft_cap = c.soft_cap;
  attention.layer = append.layer;
  attention.sequences = append.sequences;
  attention.n_sequences = 1;
  if (c.no_list) attention.max_chunks = (c.entries + c.first_position % 256 + 255) / 256;
  if (as_list && c.twice) {
    engine::RopeAppendArgs other = append;
    engine::AttentionArgs behind = attention;
    behind.q.data = other.q.data = matrix(q_cols, 41);
    EXPECT_TRUE(bench.run_all({other, behind}).ok());
  }
  const uint64_t start = kernels_run();
  if (as_list) {
    EXPECT_TRUE(bench.run_all({append, attention}).ok());
  } else {
    bench.run(append);
    bench.run(attention);
  }
  *kernels = kernels_run() - start;
  auto seen = bench.get(attention.out.data, c.rows * cols);
  if (floats > 0) {
    const auto packed = bench.get(attention.packed.data.as<float>(), floats);
    seen.insert(seen.end(), packed.begin(), packed.end());
  }
  const auto bytes = kv.bytes_as_floats();
  seen.insert(seen.end(), bytes.begin(), bytes.end());
  return seen;
}

void expect_same_attention(const AppendCase& c, uint64_t saved = 1) {
  uint64_t kernels[2] = {};
  const auto want = append_and_attend(c, false, &kernels[0]);
  const auto got = append_and_attend(c, true, &kernels[1]);
  EXPECT_TRUE(same_bits(got, want));
  if (kCountsKernels) {
    EXPECT_EQ(kernels[0] - kernels[1], saved);
  }
}

TEST(CudaPairs, AppendAndAttention) {
  for (const auto format : {engine::KvFormat::kF16, engine::KvFormat::kF32}) {
    for (const auto& [k_dim, v_dim, heads, group] :
         {std::tuple(20, 12, 2, 2), std::tuple(64, 64, 1, 8), std::tuple(128, 128, 2, 3),
          std::tuple(48, 160, 1, 5), std::tuple(256, 256, 1, 4), std::tuple(8, 1, 3, 1)}) {
      for (const int processors : {1, 1000}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(format) << ", " << group << " heads of "
                                        << k_dim << " on " << processors);
        AppendCase c;
        c.shape.k_format = c.shape.v_format = format;
        c.shape.k_dim = k_dim;
        c.shape.v_dim = v_dim;
        c.shape.kv_heads = heads;
        c.group = group;
        c.processors = processors;
        expect_same_attention(c);
      }
    }
  }
}

TEST(CudaPairs, TextsOfEveryLength) {
  for (const int32_t entries : {1, 2, 16, 17, 33, 255, 256, 257, 273, 520}) {
    for (const int32_t first_position : {0, 16, 250}) {
      SCOPED_TRACE(testing::Message() << entries << " from " << first_position);
      AppendCase c;
      c.shape.kv_heads = 1;
      c.entries = entries;
      c.first_position = first_position;
      expect_same_attention(c);
    }
  }
}

// Of few parts the last block makes the result, whoever that is; the next kernel finds the counters
// as this one did.
TEST(CudaPairs, PartsThatTheLastBlockMerges) {
  for (const bool many : {false, true}) {
    AppendCase c;
    c.entries = 600;
    c.first_position = 3;
    c.twice = true;
    if (many) {
      c.shape.k_dim = 16;
      c.shape.v_dim = 128;
      c.group = 8;
      c.processors = 1;  // all eight heads in a block
    }
    uint64_t kernels[2] = {};
    const auto want = append_and_attend(c, false, &kernels[0]);
    EXPECT_TRUE(same_bits(append_and_attend(c, true, &kernels[1]), want));
    if (!kCountsKernels) continue;
    EXPECT_EQ(kernels[0], many ? 3U : 2U);
    EXPECT_EQ(kernels[1], many ? 2U : 1U);
  }
}

TEST(CudaPairs, AppendAndAttentionByEveryRule) {
  for (int32_t bits = 0; bits < 64; ++bits) {
    SCOPED_TRACE(bits);
    AppendCase c;
    c.shape.kv_heads = 1;
    c.norms = (bits & 1) != 0;
    c.cells = (bits & 2) != 0;
    c.log_weights = (bits & 4) != 0;
    c.soft_cap = (bits & 8) != 0 ? 2.5F : 0.0F;
    c.shape.window = (bits & 16) != 0 ? 1 + bits % 3 * 15 : 0;
    c.shape.chunk = (bits & 32) != 0 ? 10 : 0;
    c.shape.key_form = bits % 5 == 0 ? engine::KeyForm::kHadamard : engine::KeyForm::kRotated;
    c.rope = bits % 3 == 0   ? engine::RopeKind::kHalves
             : bits % 3 == 1 ? engine::RopeKind::kAdjacent
                             : engine::RopeKind::kNone;
    c.rope_dims = bits % 2 == 0 ? 20 : 6;
    c.entries = 40 + bits;
    c.first_position = bits % 4 * 20;
    if (bits % 7 == 0) c.forms = engine::kActF32;
    expect_same_attention(c);
  }
}

TEST(CudaPairs, AttentionBehindARowThatHasBeenStored) {
  const AppendCase fits;
  const auto expect_two = [](const char* what, const AppendCase& c) {
    SCOPED_TRACE(what);
    expect_same_attention(c, 0);
  };
  AppendCase c = fits;
  c.shape.v_format = engine::KvFormat::kQ4;
  expect_two("another format", c);
  c = fits;
  c.rows = 2;
  expect_two("two rows", c);
  c = fits;
  c.store = false;
  expect_two("nothing to store", c);
  c = fits;
  c.no_list = false;
  expect_two("rows that may look anywhere", c);
  c = fits;
  c.over_k = true;
  expect_two("in place of keys", c);
}

// A step is filled up with rows that no sequence has: nothing is stored, nothing is written.
TEST(CudaPairs, ARowThatIsNobodys) {
  AppendCase c;
  c.nobodys = 1;
  expect_same_attention(c);
}

TEST(CudaPairs, NoneWhereTheyAreOff) {
  ASSERT_EQ(setenv("GEN_PAIRS", "off", 1), 0);
  expect_same_product({}, 0);
  expect_same_attention({}, 0);
  ASSERT_EQ(unsetenv("GEN_PAIRS"), 0);
}

}  // namespace
}  // namespace gen::test

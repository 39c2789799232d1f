// SPDX-License-Identifier: Apache-2.0
// Proves products of the CUDA engine: float formats against double precision, every quantised one
// to the bit against the CPU engine, on odd sizes; stacked sources of different types, gates,
// biases, activations, residuals in place, adapters; rows beside a row do not show; what is
// refused, by name.
#include <cmath>
#include <limits>
#include <tuple>

#include "cuda/emulator/emulator.h"
#include "cuda/engine/linear_case.h"
#include "cuda/ops/weight/device_type.h"

namespace gen::test {
namespace {

using engine::Act;

TEST(CudaLinear, FloatFormats) {
  OpBench bench(cuda_engine());
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const auto& [outputs, cols, rows] :
         {std::tuple(6, 75, 1), std::tuple(6, 320, 9), std::tuple(75, 75, 140)}) {
      SCOPED_TRACE(testing::Message() << dtype_name(type) << ", " << cols << ", " << rows);
      const Matrix w(type, outputs, cols, 1);
      LinearCase c;
      c.weights = {&w};
      c.rows = rows;
      auto x = random_row(static_cast<size_t>(rows * w.cols), 2, 2.0F);
      // Rows beyond what a float16 holds, and below.
      for (int64_t i = 0; i < cols; ++i) {
        if (rows > 8) x[static_cast<size_t>(i)] *= 1e20F;
        if (rows > 8) x[static_cast<size_t>(cols + i)] *= 1e-20F;
      }
      expect_near_exact(w, rows, x, run(bench, c, x), rows > 8 && type != DType::kF32);
    }
  }
}

/// Up to eight rows of float weights have one result each, whatever is beside them; outputs that
/// fill no warp, gates, a row that ends within a piece of 16 bytes, rounds ahead of the first ones.
TEST(CudaLinear, FewRowsOfFloats) {
  OpBench bench(cuda_engine());
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool gated : {false, true}) {
      // A few outputs of rows of several rounds, more than there are warps on the device, and as
      // many as are eight or four for each warp.
      for (const auto& [outputs, cols] : {std::pair<int64_t, int64_t>(7, 75),
                                          {7, 1400},
                                          {7, 4700},
                                          {300, 40},
                                          {250, 1003},
                                          {117, 600}}) {
        const Matrix w(type, outputs, cols, 1);
        const Matrix up(type, outputs, cols, 2);
        LinearCase c;
        c.weights = {&w};
        if (gated) {
          c.weights.push_back(&up);
          c.role = WeightRole::kGated;
        }
        c.activation.kind = gated ? Act::kSilu : Act::kNone;
        c.rows = 8;
        const auto x = random_row(static_cast<size_t>(8 * cols), 2);
        const auto together = run(bench, c, x);
        if (!gated) expect_near_exact(w, 8, x, together, false);
        for (const int64_t n : {1, 2, 4, 5}) {
          c.rows = n;
          const int64_t first = 8 - n;
          const auto alone = run(bench, c, {x.begin() + first * cols, x.end()});
          for (int64_t t = 0; t < n; ++t) {
            for (int64_t o = 0; o < outputs; ++o) {
              const int64_t stride = outputs + 2;
              ASSERT_EQ(alone[static_cast<size_t>(t * stride + o)],
                        together[static_cast<size_t>((first + t) * stride + o)])
                  << dtype_name(type) << ", " << n << " rows, row " << t << " output " << o;
            }
          }
        }
      }
    }
  }
}

/// One row of float weights and what it is added to, of outputs of which a warp has several.
TEST(CudaLinear, ARowOfFloatsIsAddedToWhatWasThere) {
  OpBench bench(cuda_engine());
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const Matrix w(type, 300, 40, 1);
    LinearCase c;
    c.weights = {&w};
    c.rows = 1;
    const auto x = random_row(40, 2);
    const auto alone = run(bench, c, x);
    c.residual = true;
    const auto got = run(bench, c, x);
    const auto before = random_row(302, 22);  // of run()
    for (size_t i = 0; i < 300; ++i) ASSERT_EQ(got[i], alone[i] + before[i]) << i;
  }
}

/// Gates, and what comes after a sum, for many rows of float weights: as for few, within what
/// rounded inputs allow.
TEST(CudaLinear, GatesOfFloatsForManyRows) {
  OpBench cpu(cpu_engine());
  OpBench bench(cuda_engine());
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const Matrix gate(type, 43, 96, 1);
    const Matrix up(type, 43, 96, 2);
    LinearCase c;
    c.weights = {&gate, &up};
    c.role = WeightRole::kGated;
    c.rows = 35;
    c.bias = c.residual = true;
    c.activation = {Act::kSilu};
    const auto x = random_row(35 * 96, 4);
    const auto want = run(cpu, c, x);
    const auto got = run(bench, c, x);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 0.02F * (1.0F + std::fabs(want[i]))) << i;
    }
  }
}

/// With `deterministic` a row has one result in batches of 1, 8, 64 and more, for every format; of
/// 16-bit weights few rows take another kernel, in steps of 128 columns, more than it has room for.
TEST(CudaLinear, DeterministicRows) {
  OpBench bench(cuda_engine());
  struct Shape {
    DType type;
    int64_t cols;
    bool gated;
  };
  for (const Shape& shape :
       {Shape{DType::kF32, 96, false}, Shape{DType::kF16, 600, false}, Shape{DType::kF16, 96, true},
        Shape{DType::kBF16, 40, false}, Shape{DType::kBF16, 1300, true},
        Shape{DType::kF16, 21, false}, Shape{DType::kBF16, 1024, false},
        Shape{DType::kQ8_0, 96, false}, Shape{DType::kQ4_K, 256, false}}) {
    SCOPED_TRACE(testing::Message() << dtype_name(shape.type) << (shape.gated ? ", gated" : ""));
    const int64_t cols = shape.cols;
    const int64_t outputs = 43;
    const Matrix w(shape.type, outputs, cols, 1);
    const Matrix up(shape.type, outputs, cols, 2);
    LinearCase c;
    c.weights = {&w};
    if (shape.gated) {
      c.weights.push_back(&up);
      c.role = WeightRole::kGated;
    }
    c.deterministic = true;
    c.rows = 70;
    const auto x = random_row(static_cast<size_t>(c.rows * cols), 2);
    const auto together = run(bench, c, x);
    for (const int64_t n : {1, 3, 8, 20}) {
      c.rows = n;
      for (const int64_t first : {int64_t{0}, 70 - n}) {
        const auto alone =
            run(bench, c, {x.begin() + first * cols, x.begin() + (first + n) * cols});
        for (int64_t t = 0; t < n; ++t) {
          for (int64_t o = 0; o < outputs; ++o) {
            ASSERT_EQ(alone[static_cast<size_t>(t * (outputs + 2) + o)],
                      together[static_cast<size_t>((first + t) * (outputs + 2) + o)])
                << n << " rows from " << first << ", row " << t << " output " << o;
          }
        }
      }
    }
  }
}

/// Products of quantised weights are the CPU engine's to the bit: outputs that no tile divides,
/// more steps than warps and fewer, blocks that fill no step, one row, a few, more than the kernel
/// of few rows takes, more than a block of threads takes.
TEST(CudaLinear, QuantisedFormatsAsOnTheCpu) {
  OpBench cpu(cpu_engine());
  OpBench bench(cuda_engine());
  for (const quant::Format& format : quant::formats()) {
    const auto block = static_cast<int64_t>(dtype_info(format.type)->block_elements);
    if (block == 1 || cuda::device_type(format.type) == DType::kF16) continue;
    struct Shape {
      int64_t outputs;
      int64_t cols;
      int64_t rows;
    };
    const int64_t long_row = block == 32 ? 1024 + 96 : 9 * 256;
    for (const Shape& shape : {Shape{9, block == 32 ? 160 : 512, 11}, Shape{3, long_row, 1},
                               Shape{8, long_row, 3}, Shape{75, block == 32 ? 288 : 256, 70}}) {
      SCOPED_TRACE(testing::Message() << dtype_name(format.type) << ", " << shape.outputs << " x "
                                      << shape.cols << ", " << shape.rows << " rows");
      const Matrix w(format.type, shape.outputs, shape.cols, 1);
      LinearCase c;
      c.weights = {&w};
      c.rows = shape.rows;
      const auto x = random_row(static_cast<size_t>(shape.rows * shape.cols), 2, 2.0F);
      ASSERT_TRUE(same_bits(run(bench, c, x), run(cpu, c, x)));
    }
  }
}

/// Blocks of NVFP4 are F16 on a device, which has all their values: the products are those of F16.
TEST(CudaLinear, Nvfp4IsF16) {
  OpBench bench(cuda_engine());
  const Matrix w(DType::kNVFP4, 75, 320, 1);
  Matrix f16(DType::kF16, 75, 320, 1);
  quant::find_format(DType::kF16)->encode(w.values.data(), f16.bytes.data(), 75 * 320);
  std::vector<float> values(w.values.size());
  quant::find_format(DType::kF16)->decode(f16.bytes.data(), values.data(), 75 * 320);
  ASSERT_EQ(values, w.values);
  for (const int64_t rows : {1, 3, 20}) {
    const auto x = random_row(static_cast<size_t>(rows * 320), 2, 2.0F);
    LinearCase of_nvfp4;
    LinearCase of_f16;
    of_nvfp4.weights = {&w};
    of_f16.weights = {&f16};
    of_nvfp4.rows = of_f16.rows = rows;
    EXPECT_TRUE(same_bits(run(bench, of_nvfp4, x), run(bench, of_f16, x))) << rows;
  }
}

/// The same on a device so small that many rows fill it: blocks then have more rows. Gates, too.
#ifndef GEN_ON_DEVICE
TEST(CudaLinear, QuantisedFormatsWithWideWarps) {
  cuda::emulator::configure({.sm_count = 1});
  {
    OpBench cpu(cpu_engine());
    OpBench bench(cuda_engine());
    for (const quant::Format& format : quant::formats()) {
      const auto block = static_cast<int64_t>(dtype_info(format.type)->block_elements);
      if (block == 1 || cuda::device_type(format.type) == DType::kF16) continue;
      const int64_t cols = block == 32 ? 288 : 512;
      const Matrix w(format.type, 75, cols, 1);
      const Matrix up(format.type, 75, cols, 2);
      for (const bool gated : {false, true}) {
        if (gated && format.type != DType::kQ8_0 && format.type != DType::kQ4_K) continue;
        SCOPED_TRACE(testing::Message() << dtype_name(format.type) << (gated ? ", gated" : ""));
        LinearCase c;
        c.weights = {&w};
        if (gated) {
          c.weights.push_back(&up);
          c.role = WeightRole::kGated;
          c.activation.kind = Act::kSilu;
        }
        for (const int64_t rows : {40, 70}) {
          c.rows = rows;
          const auto x = random_row(static_cast<size_t>(c.rows * cols), 2, 2.0F);
          EXPECT_TRUE(same_bits(run(bench, c, x), run(cpu, c, x))) << rows << " rows";
        }
      }
    }
  }
  cuda::emulator::configure({});
}

/// Large tiles of float weights have the bits of small ones, and of the kernel of few rows.
TEST(CudaLinear, DeterministicRowsInLargeTiles) {
  cuda::emulator::configure({.sm_count = 1});
  {
    OpBench bench(cuda_engine());
    for (const bool gated : {false, true}) {
      const Matrix w(DType::kBF16, 139, 200, 1);
      const Matrix up(DType::kBF16, 139, 200, 2);
      LinearCase c;
      c.weights = {&w};
      if (gated) {
        c.weights.push_back(&up);
        c.role = WeightRole::kGated;
        c.activation.kind = Act::kSilu;
      }
      c.deterministic = true;
      c.rows = 140;
      const auto x = random_row(static_cast<size_t>(c.rows * 200), 2);
      const auto together = run(bench, c, x);
      if (!gated) expect_near_exact(w, c.rows, x, together, true);
      for (const int64_t n : {1, 3, 8, 30, 60}) {
        c.rows = n;
        const auto alone = run(bench, c, {x.end() - n * 200, x.end()});
        for (int64_t t = 0; t < n; ++t) {
          for (int64_t o = 0; o < 139; ++o) {
            ASSERT_EQ(alone[static_cast<size_t>(t * 141 + o)],
                      together[static_cast<size_t>((140 - n + t) * 141 + o)])
                << n << " rows, row " << t << " output " << o;
          }
        }
      }
    }
  }
  cuda::emulator::configure({});
}
#endif

#ifdef GEN_ON_DEVICE
/// The same of sizes that a library likes, and that take the emulator long: it is tried first, and
/// makes the sums after that, if it has the bits.
TEST(CudaLinear, DeterministicRowsOfLargeProducts) {
  OpBench bench(cuda_engine());
  for (const DType type : {DType::kBF16, DType::kF16}) {
    constexpr int64_t kOutputs = 1026;  // two more between rows are a multiple of 16 bytes
    constexpr int64_t kCols = 2048;
    const Matrix w(type, kOutputs, kCols, 1);
    LinearCase c;
    c.weights = {&w};
    c.deterministic = true;
    const auto x = random_row(512 * kCols, 2);
    std::vector<float> alone;
    for (int64_t t = 0; t < 512; t += 8) {
      c.rows = 8;
      const auto eight = run(bench, c, {x.begin() + t * kCols, x.begin() + (t + 8) * kCols});
      alone.insert(alone.end(), eight.begin(), eight.end());
    }
    for (const int64_t rows : {16, 23, 64, 96, 200, 256, 300, 512}) {
      for (int32_t i = 0; i < 3; ++i) {
        SCOPED_TRACE(testing::Message() << dtype_name(type) << ", " << rows << " rows, " << i);
        c.rows = rows;
        const auto got = run(bench, c, {x.begin(), x.begin() + rows * kCols});
        for (int64_t t = 0; t < rows; ++t) {
          const auto at = static_cast<size_t>(t * (kOutputs + 2));
          ASSERT_EQ(std::memcmp(&got[at], &alone[at], kOutputs * sizeof(float)), 0) << "row " << t;
        }
      }
    }
  }
}
#endif

/// Rows of zeros, of large and tiny numbers, of what is none.
TEST(CudaLinear, OddActivationsAsOnTheCpu) {
  OpBench cpu(cpu_engine());
  OpBench bench(cuda_engine());
  for (const DType type : {DType::kQ4_1, DType::kQ4_K}) {
    const Matrix w(type, 5, 512, 1);
    LinearCase c;
    c.weights = {&w};
    c.rows = 7;
    auto x = random_row(7 * 512, 2);
    const float factors[] = {0.0F, 1e30F, 1e-30F, 1e-42F, 1.0F, 1.0F, 3e-6F};
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factors[i / 512];
    x[4 * 512 + 300] = std::numeric_limits<float>::infinity();
    x[5 * 512 + 3] = std::numeric_limits<float>::quiet_NaN();
    ASSERT_TRUE(same_bits(run(bench, c, x), run(cpu, c, x)));
  }
}

TEST(CudaLinear, StacksBiasesActivationsAndResiduals) {
  const Matrix a(DType::kQ4_K, 7, 512, 1);
  const Matrix b(DType::kQ5_0, 5, 512, 2);
  const Matrix d(DType::kQ6_K, 9, 512, 3);
  const Matrix e(DType::kF16, 3, 512, 4);
  OpBench cpu(cpu_engine());
  OpBench bench(cuda_engine());
  for (const Act act :
       {Act::kNone, Act::kSilu, Act::kGelu, Act::kRelu2, Act::kScaled, Act::kSoftCapped,
        Act::kSigmoid, Act::kGeluErf, Act::kXielu, Act::kSoftplus}) {
    for (const bool ends : {false, true}) {
      LinearCase c;
      c.weights = {&a, &b, &d, &e};
      c.bias = c.residual = ends;
      c.activation = {act, 0.6F, 5.0F, 0.5F, 1.3F};
      const auto x = random_row(3 * 512, 4);
      const auto got = run(bench, c, x);
      const auto want = run(cpu, c, x);
      for (size_t i = 0; i < want.size(); ++i) {
        // Sums of floats have an order of their own.
        if (i % 26 < 21 || i % 26 >= 24) {
          ASSERT_EQ(got[i], want[i]) << i;
        } else {
          ASSERT_NEAR(got[i], want[i], 1e-4F * (1.0F + std::fabs(want[i]))) << i;
        }
      }
    }
  }
}

/// Sources of one type that lie in memory as one are one product; those whose last tile is not full
/// are not, and neither are those with padding between them.
TEST(CudaLinear, StacksOfOneType) {
  OpBench cpu(cpu_engine());
  OpBench bench(cuda_engine());
  const Matrix whole(DType::kQ8_0, 8, 512, 1);  // 17 times 256 bytes on the device
  const Matrix part(DType::kQ8_0, 5, 512, 2);
  const Matrix last(DType::kQ8_0, 3, 512, 3);
  const Matrix padded(DType::kQ8_0, 8, 96, 4);
  const Matrix behind(DType::kQ8_0, 3, 96, 5);
  const Matrix floats(DType::kF32, 2, 512, 6);
  const Matrix more_floats(DType::kF32, 3, 512, 7);
  using Stack = std::vector<const Matrix*>;
  for (const Stack& stack : {Stack{&whole, &part, &last}, Stack{&part, &whole},
                             Stack{&padded, &behind}, Stack{&floats, &more_floats, &part}}) {
    for (const int64_t rows : {1, 20}) {
      LinearCase c;
      c.weights = stack;
      c.rows = rows;
      c.bias = true;
      const int64_t cols = stack[0]->cols;
      const auto x = random_row(static_cast<size_t>(rows * cols), 4);
      const auto got = run(bench, c, x);
      const auto want = run(cpu, c, x);
      const int64_t in_floats = stack[0] == &floats ? 5 : 0;
      const auto width = static_cast<int64_t>(want.size()) / rows;
      for (size_t i = 0; i < want.size(); ++i) {
        if (static_cast<int64_t>(i) % width >= in_floats) {
          ASSERT_EQ(got[i], want[i]) << i;
        } else {
          ASSERT_NEAR(got[i], want[i], 1e-4F * (1.0F + std::fabs(want[i]))) << i;
        }
      }
    }
  }
}

TEST(CudaLinear, Gates) {
  const Matrix gate(DType::kQ8_0, 11, 96, 1);
  const Matrix up(DType::kQ8_0, 11, 96, 2);
  OpBench cpu(cpu_engine());
  OpBench bench(cuda_engine());
  for (int32_t act = 0; act < engine::kActs; ++act) {
    for (const bool ends : {false, true}) {
      LinearCase c;
      c.weights = {&gate, &up};
      c.role = WeightRole::kGated;
      c.rows = ends ? 1 : act % 2 == 0 ? 3 : 18;
      c.bias = c.residual = ends;
      c.activation = {static_cast<Act>(act), 1.7F, 1.1F};
      const auto x = random_row(static_cast<size_t>(c.rows * 96), 4);
      ASSERT_TRUE(same_bits(run(bench, c, x), run(cpu, c, x)));
    }
  }
}

TEST(CudaLinear, RowsBesideDoNotShow) {
  const Matrix w(DType::kQ5_1, 10, 160, 1);
  OpBench bench(cuda_engine());
  LinearCase c;
  c.weights = {&w};
  c.rows = 19;
  const auto x = random_row(19 * 160, 2);
  const auto together = run(bench, c, x);
  for (int64_t n : {1, 2, 7, 8, 9}) {
    c.rows = n;
    for (int64_t first = 0; first + n <= 19; first += 5) {
      const auto alone = run(bench, c, {x.begin() + first * 160, x.begin() + (first + n) * 160});
      for (int64_t t = 0; t < n; ++t) {
        for (int64_t o = 0; o < 10; ++o) {
          ASSERT_EQ(alone[static_cast<size_t>(t * 12 + o)],
                    together[static_cast<size_t>((first + t) * 12 + o)]);
        }
      }
    }
  }
}

/// Both engines' sums differ by their order only; what adapters add is larger by far.
TEST(CudaLinear, Adapters) {
  for (const bool gated : {false, true}) {
    const Matrix first(DType::kF32, 6, 40, 1);
    const Matrix second(DType::kF32, gated ? 6 : 4, 40, 2);
    const auto scenario = [&](OpBench& bench) {
      const WeightSource sources[] = {first.source(), second.source()};
      auto weight = bench.engine().prepare(gated ? WeightRole::kGated : WeightRole::kLinear,
                                           sources, nullptr);
      EXPECT_TRUE(weight.ok());
      engine::LinearArgs args;
      args.weight = weight.value().get();
      const int64_t outputs = weight.value()->out_features();
      const uint32_t forms = weight.value()->activation_forms();
      const auto stride = static_cast<int64_t>(bench.engine().activation_bytes(forms, 40));
      args.x = {bench.room(4 * stride / 4).as<std::byte>(), forms, 4, 40};
      const auto x = bench.put(random_row(4 * 40, 3));
      bench.run(engine::PackArgs{{x, 4, 40, 40}, args.x});
      args.activation.kind = gated ? Act::kSilu : Act::kNone;
      args.y = {bench.room(4 * outputs), 4, outputs, outputs};
      std::vector<engine::LowRankMix> table(4);
      const auto add = [&](size_t at, int32_t rank, int64_t cols, uint32_t seed) {
        table[at].parts[table[at].n++] = {
            nullptr, bench.put(random_row(static_cast<size_t>(rank * cols), seed, 20.0F)), rank,
            1.0F};
      };
      add(0, 3, 6, 5);
      add(1, 2, second.rows, 6);
      add(1, 1, second.rows, 7);
      add(2, 2, 6, 8);
      args.low_rank.table = bench.put(table);
      args.low_rank.stride = 2;
      args.low_rank.mixes = bench.put(std::vector<int32_t>{1, -1, 0, 1});
      args.low_rank.sites = bench.put(
          std::vector<engine::LowRankSite>{{0, 6, 0, 0}, {gated ? 0 : 6, second.rows, 1, 3}});
      args.low_rank.n_sites = 2;
      args.u = {bench.put(random_row(4 * 6, 9)), 4, 6, 6};
      bench.run(args);
      return bench.get(args.y.data, 4 * outputs);
    };
    OpBench cpu(cpu_engine());
    OpBench cuda(cuda_engine());
    const auto want = scenario(cpu);
    const auto got = scenario(cuda);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-5F * (1.0F + std::fabs(want[i]))) << i;
    }
  }
}

TEST(CudaLinear, RefusesByName) {
  OpBench bench(cuda_engine());
  const auto refusal = [&](WeightRole role, std::vector<WeightSource> sources) {
    auto made = bench.engine().prepare(role, sources, nullptr);
    EXPECT_FALSE(made.ok());
    EXPECT_EQ(bench.engine().weight_bytes(role, sources), 0U);
    return made.status();
  };
  const Matrix a(DType::kQ8_0, 4, 64, 1);
  const Matrix b(DType::kQ4_0, 4, 64, 1);
  Status status = refusal(WeightRole::kGated, {a.source(), b.source()});
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("Q8_0 and Q4_0"), std::string::npos);
  WeightSource odd = a.source();
  odd.type = DType::kQ8_1;
  status = refusal(WeightRole::kLinear, {odd});
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("Q8_1"), std::string::npos);
  odd = a.source();
  odd.rows = 5;
  EXPECT_EQ(refusal(WeightRole::kLinear, {odd}).code(), Code::kFormat);
  EXPECT_EQ(
      refusal(WeightRole::kLinear, {a.source(), Matrix(DType::kQ8_0, 4, 96, 1).source()}).code(),
      Code::kFormat);
}

TEST(CudaLinear, WeightsSideBySide) {
  OpBench bench(cuda_engine());
  const Matrix a(DType::kQ8_0, 4, 64, 1);
  const Matrix b(DType::kF32, 3, 17, 2);
  const std::vector<WeightSource> first = {a.source()};
  const std::vector<WeightSource> second = {b.source()};
  const size_t bytes = bench.engine().weight_bytes(WeightRole::kLinear, first) +
                       bench.engine().weight_bytes(WeightRole::kLinear, second);
  auto memory = bench.engine().new_weight_memory(bytes);
  ASSERT_TRUE(memory.ok());
  auto one = bench.engine().prepare(WeightRole::kLinear, first, memory.value());
  auto two = bench.engine().prepare(WeightRole::kLinear, second, memory.value());
  auto more = bench.engine().prepare(WeightRole::kLinear, second, memory.value());  // it is full
  ASSERT_TRUE(one.ok() && two.ok() && more.ok());
  EXPECT_EQ(one.value()->resident_bytes() + two.value()->resident_bytes(), bytes);
}

}  // namespace
}  // namespace gen::test

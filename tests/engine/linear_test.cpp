// SPDX-License-Identifier: Apache-2.0
// Proves run_linear: every weight format at every CPU level against double precision, and the
// engine's promise that a row's bits depend on the row alone: not on the level (except BF16 at
// avx512_bf16), the number of rows, or the number of threads.
#include <gtest/gtest.h>

#include "engine/cpu/elementwise/elementwise.h"
#include "engine/cpu/kernel_table.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/linear/weight.h"
#include "engine/cpu/weight/weight_layout.h"
#include "engine/linear_cases.h"
#include "support/reference_engine.h"
#include "support/low_bit_types.h"
#include "support/sanitized.h"
#include "support/weight_blocks.h"

namespace gen::engine {
namespace {

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

std::vector<DType> quant_types() {
  std::vector<DType> types;
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  return types;
}

constexpr float kUntouched = -12345.0F;

// y of a product, tightly packed; checks that nothing beside it was written.
std::vector<float> run(Engine& engine, const Weight& weight, const Activations& x,
                       const std::vector<float>* bias = nullptr,
                       const std::vector<float>* residual = nullptr, Activation activation = {}) {
  auto stream = std::move(engine.new_stream()).value();
  const int64_t n = weight.out_features();
  const int64_t stride = n + 3;
  std::vector<float> padded(static_cast<size_t>(x.rows * stride) + 1, kUntouched);
  LinearArgs args;
  args.weight = &weight;
  args.x = x;
  if (bias != nullptr) args.bias = engine_ptr(bias->data());
  args.activation = activation;
  if (residual != nullptr) args.residual = {engine_ptr(residual->data()), x.rows, n, n};
  args.y = {engine_ptr(padded.data() + 1), x.rows, n, stride};
  const Status status = engine.run(*stream, args);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(engine.finish(*stream).ok());
  std::vector<float> y;
  EXPECT_EQ(padded[0], kUntouched);
  for (int64_t t = 0; t < x.rows; ++t) {
    const auto row = padded.begin() + 1 + t * stride;
    y.insert(y.end(), row, row + n);
    for (int64_t c = n; c < stride; ++c) EXPECT_EQ(row[c], kUntouched);
  }
  return y;
}

// Each float operation of the order errs by 2^-24 of what it handles; a column takes part in at
// most one per column of a float product, a handful per block of a quantised one.
double rounding_bound(DType type, int64_t cols, double size) {
  const uint32_t form = cpu::activation_form(cpu::kernel_table(CpuLevel::kScalar), type);
  const int64_t steps = form == kActF32  ? cols
                        : form == kActQ8 ? cols / 32 + 4
                                         : cols / 256 * 2 + 24;
  return size * 0x1p-24 * static_cast<double>(steps + 2) + 1e-30;
}

// Minima cancel against the scaled part, so the error is measured by both.
double cancelling_size(const TestMatrix& w, const Reference& sum, const std::vector<double>& x) {
  const quant::Traits* traits = quant::find_traits(w.type);
  if (traits == nullptr || !traits->minima) return sum.size;
  double total = 0.0;
  for (const double value : x) total += std::fabs(value);
  return sum.size + 3.0 * w.largest() * total;
}

void check_against_reference(const TestMatrix& w, int64_t rows) {
  const DType type = w.type;
  const int64_t n = w.rows;
  const int64_t cols = w.cols;
  const std::string shape = std::string(dtype_name(type)) + ' ' + std::to_string(n) + 'x' +
                            std::to_string(cols) + " rows " + std::to_string(rows);
  const std::vector<float> x = random_floats(static_cast<uint64_t>(rows), rows * cols);
  const uint32_t scalar_form = cpu::activation_form(cpu::kernel_table(CpuLevel::kScalar), type);
  std::vector<float> scalar;
  for (const CpuLevel level : levels_here()) {
    const uint32_t form = cpu::activation_form(cpu::kernel_table(level), type);
    Engine& engine = shared_engine(level, 2);
    const auto weight = prepare(engine, WeightRole::kLinear, {w.source()});
    ASSERT_EQ(weight->activation_forms(), form);
    const PackedRows packed(engine, form, x, rows, cols);
    const std::vector<float> y = run(engine, *weight, packed.view);
    if (level == CpuLevel::kScalar) scalar = y;
    if (level == CpuLevel::kScalar || form != scalar_form) {
      // The sums in double precision are slow under a sanitizer, which is there for other errors.
      for (int64_t t = 0; t < rows; t += test::kSanitized && rows > 9 ? 5 : 1) {
        const std::vector<double> row = packed.values(form, t);
        for (int64_t r = 0; r < n; ++r) {
          const Reference sum = reference_dot(w, r, row);
          ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(t * n + r)]), sum.value,
                      rounding_bound(type, cols, cancelling_size(w, sum, row)))
              << shape << " at row " << t << " output " << r;
        }
      }
    }
    // The packed rows, and so the products, have the same bits on all levels of a form.
    if (form != scalar_form) continue;
    ASSERT_TRUE(same_bits(y, scalar)) << shape << ' ' << cpu_level_name(level);
  }
}

TEST(Linear, FloatWeightsAtOddSizes) {
  test::Thinned thinned(4);
  for (const DType type : kFloatTypes) {
    for (const int64_t n : {1, 15, 16, 17, 33, 80, 150}) {
      for (const int64_t cols : {1, 3, 16, 31, 65}) {
        if (thinned.skips()) continue;
        const TestMatrix w(type, n, cols, static_cast<uint64_t>(n * 1000 + cols));
        for (const int64_t rows : {1, 2, 5, 9}) check_against_reference(w, rows);
      }
    }
  }
}

TEST(Linear, QuantisedWeightsAtOddSizes) {
  test::Thinned thinned(4);
  for (const DType type : quant_types()) {
    const int64_t block = dtype_info(type)->block_elements;
    for (const int64_t n : {1, 15, 16, 17, 33, 80, 150}) {
      for (const int64_t blocks : {1, 2, 3}) {
        if (thinned.skips()) continue;
        const TestMatrix w(type, n, blocks * block, static_cast<uint64_t>(n * 1000 + blocks));
        for (const int64_t rows : {1, 2, 5, 9}) check_against_reference(w, rows);
      }
    }
  }
}

TEST(Linear, ManyRowsAndColumns) {
  for (const DType type : kFloatTypes) check_against_reference(TestMatrix(type, 150, 301, 1), 131);
  test::Thinned thinned(3);
  for (const DType type : quant_types()) {
    if (thinned.skips()) continue;
    check_against_reference(TestMatrix(type, 40, 1280, 2), 131);
  }
}

// The order of float products, spelled out: one fused multiply-add per column, ascending.
TEST(Linear, FloatProductsAreFusedAndInOrder) {
  const int64_t cols = 333;
  const int64_t n = 70;
  for (const DType type : kFloatTypes) {
    const TestMatrix w(type, n, cols, 8);
    const std::vector<float> x = random_floats(9, 11 * cols);
    for (const CpuLevel level : levels_here()) {
      if (cpu::activation_form(cpu::kernel_table(level), type) != kActF32) continue;
      Engine& engine = shared_engine(level, 2);
      const auto weight = prepare(engine, WeightRole::kLinear, {w.source()});
      const PackedRows packed(engine, kActF32, x, 11, cols);
      const std::vector<float> y = run(engine, *weight, packed.view);
      for (size_t i = 0; i < y.size(); ++i) {
        const float* weights = w.values.data() + i % 70 * 333;
        const float* row = x.data() + i / 70 * 333;
        float sum = 0.0F;
        for (size_t c = 0; c < 333; ++c) sum = std::fma(weights[c], row[c], sum);
        ASSERT_EQ(y[i], sum) << dtype_name(type) << ' ' << cpu_level_name(level) << ' ' << i;
      }
    }
  }
}

// Small integers have exact products and sums, in whatever order, so nothing hides a column that is
// left out, taken twice or meets another's weight.
TEST(Linear, Bf16ProductsOfIntegersAreExact) {
  for (const int64_t cols : {1, 2, 31, 256, 257, 777}) {
    for (const int64_t rows : {1, 2, 7, 8, 9, 21, 40}) {
      const int64_t n = 70;
      TestMatrix w(DType::kBF16, n, cols, 1);
      for (size_t i = 0; i < w.values.size(); ++i) {
        w.values[i] = static_cast<float>(static_cast<int>(i * 7 % 255) - 127);
        const uint16_t bits = f32_to_bf16(w.values[i]);
        std::memcpy(w.bytes.data() + 1 + i * 2, &bits, sizeof(bits));
      }
      std::vector<float> x(static_cast<size_t>(rows * cols));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(static_cast<int>(i * 11 % 63) - 31);
      for (const CpuLevel level : levels_here()) {
        Engine& engine = shared_engine(level, 2);
        const auto weight = prepare(engine, WeightRole::kLinear, {w.source()});
        const PackedRows packed(engine, weight->activation_forms(), x, rows, cols);
        const std::vector<float> y = run(engine, *weight, packed.view);
        for (size_t i = 0; i < y.size(); ++i) {
          const size_t t = i / 70;
          const size_t r = i % 70;
          int64_t sum = 0;
          for (size_t c = 0; c < static_cast<size_t>(cols); ++c) {
            sum += static_cast<int64_t>(w.values[r * static_cast<size_t>(cols) + c]) *
                   static_cast<int64_t>(x[t * static_cast<size_t>(cols) + c]);
          }
          ASSERT_EQ(y[i], static_cast<float>(sum))
              << cols << " columns, row " << t << ", output " << r << ' ' << cpu_level_name(level);
        }
      }
    }
  }
}

// Weights and activations at the ends of their ranges: integer sums must not wrap.
TEST(Linear, ExtremeIntegers) {
  for (const DType type : quant_types()) {
    const int64_t cols = 512;
    std::vector<float> x(static_cast<size_t>(2 * cols));
    for (size_t i = 0; i < x.size(); ++i) x[i] = i < 512 ? 1.0F : (i % 2 == 0 ? 1.0F : -1.0F);
    TestMatrix w(type, 17, cols, 3);
    std::vector<float> steep(w.values.size());
    for (size_t i = 0; i < steep.size(); ++i) {
      steep[i] = i / 512 % 3 == 0 ? -1.0F : i / 512 % 3 == 1 ? 1.0F : (i % 2 == 0 ? 1.0F : -1.0F);
    }
    const quant::Format* format = quant::find_format(type);
    test::write_weights(type, steep.data(), w.bytes.data() + 1, 17 * cols);
    // Q8_0 files may hold -128 although encoders do not write it.
    if (type == DType::kQ8_0) {
      for (size_t i = 0; i < w.bytes.size() - 1; ++i) {
        if (i % 34 >= 2 && i / 34 / 16 % 3 == 0) w.bytes[i + 1] = std::byte{0x80};
      }
    }
    format->decode(w.bytes.data() + 1, w.values.data(), 17 * cols);
    std::vector<float> scalar;
    for (const CpuLevel level : levels_here()) {
      const auto engine = make_engine(level, 1);
      const auto weight = prepare(*engine, WeightRole::kLinear, {w.source()});
      const PackedRows packed(*engine, weight->activation_forms(), x, 2, cols);
      const std::vector<float> y = run(*engine, *weight, packed.view);
      if (level == CpuLevel::kScalar) scalar = y;
      ASSERT_TRUE(same_bits(y, scalar)) << dtype_name(type) << ' ' << cpu_level_name(level);
      for (int64_t t = 0; t < 2; ++t) {
        const std::vector<double> row = packed.values(weight->activation_forms(), t);
        for (int64_t r = 0; r < 17; ++r) {
          const Reference sum = reference_dot(w, r, row);
          ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(t * 17 + r)]), sum.value,
                      rounding_bound(type, cols, cancelling_size(w, sum, row)))
              << dtype_name(type) << " row " << t << " output " << r;
        }
      }
    }
  }
}

// Where the upper byte of each binary16 of a block lies.
std::vector<size_t> high_bytes_of_scales(DType type) {
  switch (type) {
    case DType::kMXFP4:
    case DType::kNVFP4:
      return {};
    case DType::kIQ1_M:
      return {55};
    case DType::kTQ1_0:
      return {53};
    case DType::kTQ2_0:
      return {65};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {1, 3};
    case DType::kQ2_K:
      return {81, 83};
    case DType::kQ3_K:
      return {109};
    case DType::kQ6_K:
      return {209};
    default:
      return {1};
  }
}

// Raw bytes of a file, every field at random: unlike encoders, files may hold anything.
TEST(Linear, RandomBlocks) {
  for (const DType type : quant_types()) {
    const int64_t cols = 768;
    TestMatrix w(type, 32, cols, 4);
    const uint32_t block_bytes = dtype_info(type)->block_bytes;
    for (size_t i = 0; i + 1 < w.bytes.size(); ++i) {
      w.bytes[i + 1] = static_cast<std::byte>(static_cast<int>(uniform_double(5, 0, i) * 256.0));
    }
    // Scales stay finite and of one size: binary16 exponents of at most 15, 2^-65 to 2^-2 in MXFP4.
    for (size_t b = 1; b + block_bytes <= w.bytes.size(); b += block_bytes) {
      if (type == DType::kMXFP4) w.bytes[b] = (w.bytes[b] & std::byte{0x3F}) | std::byte{0x40};
      for (const size_t high : high_bytes_of_scales(type)) w.bytes[b + high] &= std::byte{0xBF};
    }
    quant::find_format(type)->decode(w.bytes.data() + 1, w.values.data(), 32 * cols);
    const std::vector<float> x = random_floats(6, 3 * cols);
    std::vector<float> scalar;
    for (const CpuLevel level : levels_here()) {
      const auto engine = make_engine(level, 1);
      const auto weight = prepare(*engine, WeightRole::kLinear, {w.source()});
      const PackedRows packed(*engine, weight->activation_forms(), x, 3, cols);
      const std::vector<float> y = run(*engine, *weight, packed.view);
      if (level == CpuLevel::kScalar) scalar = y;
      ASSERT_TRUE(same_bits(y, scalar)) << dtype_name(type) << ' ' << cpu_level_name(level);
      for (int64_t t = 0; t < 3; ++t) {
        const std::vector<double> row = packed.values(weight->activation_forms(), t);
        for (int64_t r = 0; r < 32; ++r) {
          const Reference sum = reference_dot(w, r, row);
          ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(t * 32 + r)]), sum.value,
                      rounding_bound(type, cols, cancelling_size(w, sum, row)))
              << dtype_name(type);
        }
      }
    }
  }
}

TEST(Linear, OneRowOneResult) {
  std::vector<DType> types(std::begin(kFloatTypes), std::end(kFloatTypes));
  for (const DType type : quant_types()) types.push_back(type);
  const int64_t cols = 512;
  const int64_t n = 130;
  const int64_t rows = test::kSanitized ? 21 : 37;
  for (const DType type : types) {
    const TestMatrix w(type, n, cols, 11);
    const std::vector<float> x = random_floats(12, rows * cols);
    for (const CpuLevel level : levels_here()) {
      const auto one_thread = make_engine(level, 1);
      const auto weight = prepare(*one_thread, WeightRole::kLinear, {w.source()});
      const PackedRows all(*one_thread, weight->activation_forms(), x, rows, cols);
      const std::vector<float> expected = run(*one_thread, *weight, all.view);
      const size_t row_bytes = one_thread->activation_bytes(weight->activation_forms(), cols);
      for (const int32_t threads : {1, 2, 3, 5}) {
        Engine& engine = shared_engine(level, threads);
        // Threads share out tiles, steps are of rows: a sanitizer need not see all pairs.
        const bool all_steps = threads == 2 || !test::kSanitized;
        for (const int64_t step : {int64_t{7}, int64_t{1}, int64_t{2}, int64_t{8}, rows}) {
          if (step != 7 && !all_steps) continue;
          std::vector<float> y;
          for (int64_t t = 0; t < rows; t += step) {
            Activations part = all.view;
            part.data = part.data + t * static_cast<std::ptrdiff_t>(row_bytes);
            part.rows = std::min(step, rows - t);
            const std::vector<float> some = run(engine, *weight, part);
            y.insert(y.end(), some.begin(), some.end());
          }
          ASSERT_TRUE(same_bits(y, expected)) << dtype_name(type) << ' ' << cpu_level_name(level)
                                              << " threads " << threads << " step " << step;
        }
      }
    }
  }
}

TEST(Linear, WeightsLeftInTheFileGiveTheSameBits) {
  const int64_t cols = 512;
  std::vector<DType> types(std::begin(kFloatTypes), std::end(kFloatTypes));
  for (const DType type : quant_types()) types.push_back(type);
  EngineOptions options;
  options.pool = std::move(ThreadPool::create(2)).value();
  options.cpu_level = detect_cpu_level();
  options.repack = false;
  const auto leaving = std::move(create_engine("cpu", options)).value();
  for (const DType type : types) {
    const TestMatrix gate(type, 150, cols, 1);
    const TestMatrix up(type, 150, cols, 2);
    std::vector<WeightSource> sources = {gate.source(), up.source()};
    for (WeightSource& source : sources) source.lasting = true;
    for (const WeightRole role : {WeightRole::kLinear, WeightRole::kGated}) {
      const auto left = prepare(*leaving, role, sources);
      const auto packed = prepare(shared_engine(options.cpu_level, 2), role, sources);
      EXPECT_EQ(left->resident_bytes(), 0U);
      EXPECT_EQ(left->stream_bytes(), 2 * sources[0].data.size());
      for (const int64_t rows : {1, test::kSanitized ? 20 : 140}) {
        const PackedRows x(*leaving, left->activation_forms(), random_floats(3, rows * cols), rows,
                           cols);
        ASSERT_TRUE(same_bits(run(*leaving, *left, x.view),
                              run(shared_engine(options.cpu_level, 2), *packed, x.view)))
            << dtype_name(type) << " rows " << rows;
      }
    }
    // What does not last is copied all the same.
    EXPECT_GT(prepare(*leaving, WeightRole::kLinear, {gate.source()})->resident_bytes(), 0U);
  }
}

TEST(Linear, StackedSourcesOfSeveralTypes) {
  const int64_t cols = 256;
  const TestMatrix q(DType::kQ4_K, 40, cols, 1);
  const TestMatrix k(DType::kQ6_K, 17, cols, 2);
  const TestMatrix v(DType::kQ8_0, 9, cols, 3);
  const TestMatrix f(DType::kF16, 5, cols, 4);
  const TestMatrix b(DType::kBF16, 20, cols, 6);
  const std::vector<float> x = random_floats(5, 3 * cols);
  for (const CpuLevel level : levels_here()) {
    const auto engine = make_engine(level, 2);
    const auto stacked = prepare(*engine, WeightRole::kLinear,
                                 {q.source(), k.source(), v.source(), f.source(), b.source()});
    EXPECT_EQ(stacked->out_features(), 91);
    EXPECT_EQ(
        stacked->activation_forms(),
        kActF32 | kActQ8 | kActQ8K | cpu::activation_form(cpu::kernel_table(level), DType::kBF16));
    const PackedRows packed(*engine, stacked->activation_forms(), x, 3, cols);
    const std::vector<float> y = run(*engine, *stacked, packed.view);
    int64_t first = 0;
    for (const TestMatrix* one : {&q, &k, &v, &f, &b}) {
      const auto alone = prepare(*engine, WeightRole::kLinear, {one->source()});
      // The same packed rows serve: a product finds its form among the others.
      const std::vector<float> expected = run(*engine, *alone, packed.view);
      for (int64_t t = 0; t < 3; ++t) {
        for (int64_t r = 0; r < one->rows; ++r) {
          ASSERT_EQ(y[static_cast<size_t>(t * 91 + first + r)],
                    expected[static_cast<size_t>(t * one->rows + r)]);
        }
      }
      first += one->rows;
    }
  }
}

TEST(Linear, BiasAndResidual) {
  const int64_t cols = 64;
  const int64_t n = 150;  // more than one kernel call takes
  const int64_t rows = 3;
  const TestMatrix w(DType::kQ8_0, n, cols, 1);
  const std::vector<float> x = random_floats(2, rows * cols);
  const std::vector<float> bias = random_floats(3, n);
  const std::vector<float> residual = random_floats(4, rows * n);
  for (const CpuLevel level : levels_here()) {
    const auto engine = make_engine(level, 2);
    const auto weight = prepare(*engine, WeightRole::kLinear, {w.source()});
    const PackedRows packed(*engine, weight->activation_forms(), x, rows, cols);
    const std::vector<float> plain = run(*engine, *weight, packed.view);
    const std::vector<float> y = run(*engine, *weight, packed.view, &bias, &residual);
    for (size_t i = 0; i < y.size(); ++i) {
      const float expected = (plain[i] + bias[i % static_cast<size_t>(n)]) + residual[i];
      ASSERT_EQ(y[i], expected) << i;
    }
    // Between the bias and the residual comes the activation.
    const Activation relu2 = {Act::kRelu2};
    const std::vector<float> squares = run(*engine, *weight, packed.view, &bias, &residual, relu2);
    for (size_t i = 0; i < y.size(); ++i) {
      const float positive = std::max(plain[i] + bias[i % static_cast<size_t>(n)], 0.0F);
      ASSERT_EQ(squares[i], positive * positive + residual[i]) << i;
    }
    // The residual may be the output.
    std::vector<float> in_place = residual;
    auto stream = std::move(engine->new_stream()).value();
    LinearArgs args;
    args.weight = weight.get();
    args.x = packed.view;
    args.bias = engine_ptr(bias.data());
    args.residual = {engine_ptr(in_place.data()), rows, n, n};
    args.y = {engine_ptr(in_place.data()), rows, n, n};
    ASSERT_TRUE(engine->run(*stream, args).ok());
    ASSERT_TRUE(same_bits(in_place, y));
  }
}

TEST(Linear, GateUp) {
  const int64_t cols = 256;
  const int64_t n = 150;
  const int64_t rows = 5;
  const std::vector<float> x = random_floats(2, rows * cols);
  const std::vector<float> bias = random_floats(3, 2 * n, 0.2F);
  const std::vector<float> residual = random_floats(4, rows * n);
  // Mixed types, too, also those that read different forms of x.
  constexpr std::pair<DType, DType> kPairs[] = {{DType::kF32, DType::kF32},
                                                {DType::kQ8_0, DType::kQ8_0},
                                                {DType::kQ4_K, DType::kQ6_K},
                                                {DType::kIQ2_XXS, DType::kNVFP4},
                                                {DType::kQ2_0, DType::kIQ1_M}};
  for (const auto& [type, up_type] : kPairs) {
    const TestMatrix gate(type, n, cols, 21);
    const TestMatrix up(up_type, n, cols, 22);
    std::vector<float> scalar;
    for (const CpuLevel level : levels_here()) {
      const auto engine = make_engine(level, 2);
      const auto fused = prepare(*engine, WeightRole::kGated, {gate.source(), up.source()});
      const auto g = prepare(*engine, WeightRole::kLinear, {gate.source()});
      const auto u = prepare(*engine, WeightRole::kLinear, {up.source()});
      EXPECT_EQ(fused->out_features(), n);
      const PackedRows packed(*engine, fused->activation_forms(), x, rows, cols);
      const std::vector<float> gate_bias(bias.begin(), bias.begin() + n);
      const std::vector<float> up_bias(bias.begin() + n, bias.end());
      const std::vector<float> gates = run(*engine, *g, packed.view, &gate_bias);
      const std::vector<float> ups = run(*engine, *u, packed.view, &up_bias);
      for (const Activation activation :
           {Activation{Act::kGelu}, Activation{Act::kClampedSwiglu, 1.702F, 0.5F},
            Activation{Act::kCutSwiglu, 1.0F, 0.3F}}) {
        const std::vector<float> other =
            run(*engine, *fused, packed.view, &bias, nullptr, activation);
        std::vector<float> apart(other.size());
        cpu::elementwise_kernels(level)->gated[static_cast<size_t>(activation.kind)](
            gates.data(), ups.data(), apart.data(), static_cast<int64_t>(apart.size()), activation);
        ASSERT_TRUE(same_bits(other, apart)) << cpu_level_name(level);
      }
      const Activation silu = {Act::kSilu};
      const std::vector<float> y = run(*engine, *fused, packed.view, &bias, nullptr, silu);
      for (size_t i = 0; i < y.size(); ++i) {
        const double expected = test::reference_gated(silu, gates[i], ups[i]);
        ASSERT_NEAR(static_cast<double>(y[i]), expected, std::fabs(expected) * 0x1p-20) << i;
      }
      if (level == CpuLevel::kScalar) scalar = y;
      ASSERT_TRUE(same_bits(y, scalar)) << cpu_level_name(level);
      const std::vector<float> sum = run(*engine, *fused, packed.view, &bias, &residual, silu);
      for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(sum[i], y[i] + residual[i]) << i;
    }
  }
}

TEST(Linear, NaNsStayInTheirRow) {
  const int64_t cols = 256;
  std::vector<DType> types = quant_types();
  types.push_back(DType::kF32);
  types.push_back(DType::kBF16);
  for (const DType type : types) {
    const TestMatrix w(type, 20, cols, 1);
    std::vector<float> x = random_floats(2, 3 * cols);
    x[256 + 17] = std::nanf("");
    for (const CpuLevel level : levels_here()) {
      const auto engine = make_engine(level, 1);
      const auto weight = prepare(*engine, WeightRole::kLinear, {w.source()});
      const PackedRows packed(*engine, weight->activation_forms(), x, 3, cols);
      const std::vector<float> y = run(*engine, *weight, packed.view);
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(std::isnan(y[i]), i / 20 == 1) << dtype_name(type) << ' ' << i;
      }
    }
  }
}

// Counts what is handed out and fails from the n-th request on.
class CountingAllocator final : public Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    if (requests_++ >= fail_at)
      return error(Code::kOutOfMemory, "cannot allocate %zu bytes", bytes);
    GEN_TRY(system_allocator().allocate(bytes, align, out));
    live += bytes;
    return {};
  }
  void release(void* pointer, size_t bytes) noexcept override {
    live -= bytes;
    system_allocator().release(pointer, bytes);
  }
  int fail_at = 1 << 30;
  size_t live = 0;
  [[nodiscard]] int requests() const noexcept { return requests_; }

 private:
  int requests_ = 0;
};

TEST(Linear, MemoryComesFromTheAllocatorAndFailuresLeaveNothing) {
  const TestMatrix w(DType::kQ8_0, 33, 64, 1);
  CountingAllocator allocator;
  const auto engine = make_engine(CpuLevel::kScalar, 2, &allocator);
  const int requests = allocator.requests();
  EXPECT_TRUE(engine->memory().allocate(64).ok());
  EXPECT_EQ(allocator.requests(), requests + 1);
  {
    const auto weight = prepare(*engine, WeightRole::kLinear, {w.source()});
    EXPECT_EQ(weight->resident_bytes(), allocator.live);
    // Three tiles of 16 rows of 34-byte blocks.
    EXPECT_EQ(allocator.live, size_t{3 * 16 * 2 * 34});
    EXPECT_EQ(weight->stream_bytes(), allocator.live);
  }
  EXPECT_EQ(allocator.live, 0U);
  allocator.fail_at = allocator.requests();
  const auto failed = engine->prepare(WeightRole::kLinear, std::vector{w.source()}, nullptr);
  EXPECT_EQ(failed.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(allocator.live, 0U);
}

TEST(Linear, WeightsOfOnePlanLieSideBySide) {
  const TestMatrix w(DType::kQ8_0, 33, 64, 1);
  CountingAllocator allocator;
  const auto engine = make_engine(CpuLevel::kScalar, 2, &allocator);
  const std::vector<WeightSource> sources = {w.source()};
  const size_t each = engine->weight_bytes(WeightRole::kLinear, sources);
  EXPECT_EQ(each, size_t{3 * 16 * 2 * 34});
  EXPECT_EQ(engine->weight_bytes(WeightRole::kEmbedding, sources), 0U);
  auto memory = std::move(engine->new_weight_memory(2 * each)).value();
  EXPECT_EQ(allocator.live, 2 * each);
  const auto first = engine->prepare(WeightRole::kLinear, sources, memory);
  const auto second = engine->prepare(WeightRole::kLinear, sources, memory);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(allocator.live, 2 * each);
  const auto tiles = [](const Weight& weight) {
    return static_cast<const cpu::CpuWeight&>(weight).segments()[0].tiles;
  };
  EXPECT_EQ(tiles(*second.value()) - tiles(*first.value()), static_cast<ptrdiff_t>(each));
  // A third finds no room and takes memory of its own.
  auto third = engine->prepare(WeightRole::kLinear, sources, memory);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(allocator.live, 3 * each);
  memory.reset();
  third = error(Code::kInternal, "freed");
  EXPECT_EQ(allocator.live, 2 * each);
}

// Types of few bits stand in tiles as levels with signs, not as entries of codebooks.
TEST(Linear, TilesTakeAtMostFourPercentMoreThanTheFile) {
  for (const quant::Traits& traits : quant::kTraits) {
    const int64_t cols = 2048;
    uint64_t row_bytes = 0;
    ASSERT_TRUE(dtype_row_bytes(traits.type, static_cast<uint64_t>(cols), &row_bytes));
    EXPECT_LE(
        static_cast<double>(cpu::tile_bytes(traits.type, cols)),
        static_cast<double>(row_bytes) * 16 * (gen::test::is_low_bit(traits.type) ? 2.04 : 1.04))
        << dtype_name(traits.type);
  }
}

// Tiles are packed into memory that held others: nothing of those may be left.
TEST(Linear, APackedTileHasNoByteOfWhatWasThereBefore) {
  std::vector<DType> types(std::begin(kFloatTypes), std::end(kFloatTypes));
  for (const DType type : quant_types()) types.push_back(type);
  for (const DType type : types) {
    const int64_t block = dtype_info(type)->block_elements;
    for (const int64_t rows : {3, 16, 21}) {
      for (const int64_t blocks : {1, 3}) {
        const TestMatrix w(type, rows, blocks * block, 1);
        const size_t bytes = cpu::tile_bytes(type, w.cols);
        Buffer tiles[2];
        for (int i = 0; i < 2; ++i) {
          tiles[i] = std::move(Buffer::allocate(system_allocator(), bytes)).value();
          std::memset(tiles[i].data(), i == 0 ? 0 : 255, bytes);
          cpu::pack_tile(type, w.bytes.data() + 1, rows, w.cols, (rows - 1) / 16, tiles[i].data());
        }
        ASSERT_EQ(std::memcmp(tiles[0].data(), tiles[1].data(), bytes), 0)
            << dtype_name(type) << " rows " << rows;
      }
    }
  }
}

TEST(Linear, ARepeatedProductAllocatesNothing) {
  const TestMatrix w(DType::kQ8_0, 640, 64, 1);
  CountingAllocator allocator;
  const auto engine = make_engine(CpuLevel::kScalar, 2, &allocator);
  const auto weight = prepare(*engine, WeightRole::kLinear, {w.source()});
  const PackedRows packed(*engine, weight->activation_forms(), random_floats(1, 64), 1, 64);
  auto stream = std::move(engine->new_stream()).value();
  std::vector<float> y(640);
  LinearArgs args;
  args.weight = weight.get();
  args.x = packed.view;
  args.y = {engine_ptr(y.data()), 1, 640, 640};
  ASSERT_TRUE(engine->run(*stream, args).ok());
  const int before = allocator.requests();
  ASSERT_TRUE(engine->run(*stream, args).ok());
  EXPECT_EQ(allocator.requests(), before);
  // A stream that finds no memory says so and recovers.
  auto poor = std::move(engine->new_stream()).value();
  allocator.fail_at = 0;
  EXPECT_EQ(engine->run(*poor, args).code(), Code::kOutOfMemory);
  allocator.fail_at = 1 << 30;
  EXPECT_TRUE(engine->run(*poor, args).ok());
}

TEST(Prepare, RefusesWhatDoesNotFit) {
  const auto engine = make_engine(CpuLevel::kScalar, 1);
  const TestMatrix w(DType::kQ8_0, 4, 64, 1);
  const TestMatrix narrow(DType::kQ8_0, 4, 32, 1);
  const auto code = [&](WeightRole role, std::vector<WeightSource> sources, const char* part) {
    const auto weight = engine->prepare(role, sources, nullptr);
    EXPECT_FALSE(weight.ok());
    EXPECT_NE(std::string(weight.status().message()).find(part), std::string::npos)
        << weight.status().message();
    return weight.status().code();
  };
  WeightSource unknown = w.source("blk.0.attn_q.weight");
  unknown.type = DType::kQ8_1;
  EXPECT_EQ(code(WeightRole::kLinear, {unknown}, "Q8_1"), Code::kUnsupported);
  EXPECT_EQ(code(WeightRole::kLinear, {unknown}, "blk.0.attn_q.weight"), Code::kUnsupported);
  EXPECT_EQ(code(WeightRole::kEmbedding, {unknown}, "Q8_1"), Code::kUnsupported);
  WeightSource shorter = w.source("short");
  shorter.data = shorter.data.first(shorter.data.size() - 1);
  EXPECT_EQ(code(WeightRole::kLinear, {shorter}, "short"), Code::kFormat);
  WeightSource ragged = w.source("ragged");
  ragged.cols = 63;
  EXPECT_EQ(code(WeightRole::kLinear, {ragged}, "63"), Code::kFormat);
  WeightSource empty = w.source("empty");
  empty.rows = 0;
  EXPECT_EQ(code(WeightRole::kLinear, {empty}, "empty"), Code::kFormat);
  WeightSource huge = w.source("huge");
  huge.rows = INT64_MAX;
  EXPECT_EQ(code(WeightRole::kLinear, {huge}, "huge"), Code::kFormat);
  EXPECT_EQ(code(WeightRole::kLinear, {w.source(), narrow.source("narrow")}, "narrow"),
            Code::kFormat);
  EXPECT_EQ(code(WeightRole::kGated, {w.source()}, "1"), Code::kInternal);
}

TEST(Registry, NamesAndReasons) {
  EXPECT_STREQ(engine_rows()[0].name, "cpu");
  EXPECT_STREQ(engine_rows()[1].name, "cuda");
  EngineOptions options;
  EXPECT_EQ(create_engine("cpu", options).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(create_engine("gpu", options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace gen::engine

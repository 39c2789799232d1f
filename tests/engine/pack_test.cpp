// SPDX-License-Identifier: Apache-2.0
// Proves run_pack: what the packed forms stand for, how far they are from the floats, and that all
// CPU levels write the same bytes.
#include <gtest/gtest.h>

#include <limits>

#include "engine/access.h"
#include "engine/linear_cases.h"
#include "tensor/half.h"

namespace gen::engine {
namespace {

constexpr uint32_t kAllForms = kActF32 | kActQ8 | kActQ8K | kActBF16;

const cpu::ActQ8Block* q8_blocks(const PackedRows& rows, int64_t t) {
  const auto& view = rows.view;
  return reinterpret_cast<const cpu::ActQ8Block*>(
      rows.memory.data() + static_cast<size_t>(t) * cpu::packed_row_bytes(view.forms, view.cols) +
      cpu::packed_form_offset(view.forms, kActQ8, view.cols));
}

const cpu::ActQ8KBlock* q8k_blocks(const PackedRows& rows, int64_t t) {
  const auto& view = rows.view;
  return reinterpret_cast<const cpu::ActQ8KBlock*>(
      rows.memory.data() + static_cast<size_t>(t) * cpu::packed_row_bytes(view.forms, view.cols) +
      cpu::packed_form_offset(view.forms, kActQ8K, view.cols));
}

TEST(Pack, RowsAreWholeCacheLinesAndFormsDoNotOverlap) {
  const auto engine = make_engine(CpuLevel::kScalar, 1);
  for (const int64_t cols : {1, 16, 17, 32, 256, 1280, 2048, 4096}) {
    for (uint32_t forms = 1; forms <= kAllForms; ++forms) {
      const size_t bytes = engine->activation_bytes(forms, cols);
      EXPECT_EQ(bytes % 64, 0U);
      const auto n = static_cast<size_t>(cols);
      const size_t needed = ((forms & kActF32) != 0 ? n * 4 : 0) +
                            ((forms & kActQ8) != 0 ? n / 32 * 40 : 0) +
                            ((forms & kActQ8K) != 0 ? n / 256 * 384 : 0) +
                            ((forms & kActBF16) != 0 ? (n + 1) / 2 * 4 : 0);
      EXPECT_GE(bytes, needed);
      EXPECT_LT(bytes, needed + 4 * 64 + 512);
      // Rows at multiples of a page's half would share places in a cache.
      EXPECT_NE(bytes % 2048, 0U);
    }
    EXPECT_GE(cpu::packed_form_offset(kAllForms, kActQ8, cols), static_cast<size_t>(cols) * 4);
  }
}

TEST(Pack, ValuesAreWithinHalfAStep) {
  const int64_t cols = 768;
  const int64_t rows = 4;
  std::vector<float> x = random_floats(1, rows * cols, 2.0F);
  // One row of large, one of tiny values.
  for (int64_t c = 0; c < cols; ++c) x[static_cast<size_t>(cols + c)] *= 1e4F;
  for (int64_t c = 0; c < cols; ++c) x[static_cast<size_t>(2 * cols + c)] *= 1e-2F;
  for (const CpuLevel level : levels_here()) {
    const auto engine = make_engine(level, 2);
    const PackedRows packed(*engine, kAllForms, x, rows, cols);
    for (int64_t t = 0; t < rows; ++t) {
      const float* row = x.data() + t * cols;
      const std::vector<double> exact = packed.values(kActF32, t);
      const std::vector<double> q8 = packed.values(kActQ8, t);
      const std::vector<double> q8k = packed.values(kActQ8K, t);
      for (const int64_t block : {32, 256}) {
        for (int64_t start = 0; start < cols; start += block) {
          double amax = 0.0;
          for (int64_t c = start; c < start + block; ++c) {
            amax = std::max(amax, std::fabs(static_cast<double>(row[c])));
          }
          // Half a step; the binary16 scale may be 2^-11 short, which the largest value feels
          // 127 times.
          const double step = amax / 127.0;
          const double bound =
              block == 32 ? step * (0.5 + 127.0 * 0x1p-11) * 1.001 : step * 0.5 * 1.001;
          for (int64_t c = start; c < start + block; ++c) {
            const auto i = static_cast<size_t>(c);
            EXPECT_EQ(exact[i], static_cast<double>(row[c]));
            EXPECT_NEAR((block == 32 ? q8 : q8k)[i], static_cast<double>(row[c]), bound)
                << cpu_level_name(level) << " row " << t << " column " << c;
          }
        }
      }
    }
  }
}

TEST(Pack, Bf16IsRoundedToNearestEvenAndPadded) {
  // The value, and the upper half of its float32 once rounded.
  const struct {
    uint32_t value;
    uint16_t expected;
  } cases[] = {
      {0x3F800000, 0x3F80},                        // 1
      {0x3F807FFF, 0x3F80},                        // below the half
      {0x3F808000, 0x3F80},                        // the half goes to the even one: down
      {0x3F808001, 0x3F81},                        // above the half
      {0x3F818000, 0x3F82},                        // the half goes to the even one: up
      {0xBF818000, 0xBF82}, {0x7F7FFFFF, 0x7F80},  // to infinity
      {0xFF800000, 0xFF80}, {0x00000001, 0x0000}, {0x80018000, 0x8002},
      {0x7F800001, 0x7FC0}, {0xFFFFFFFF, 0xFFFF}, {0x80000000, 0x8000},
  };
  for (const int64_t cols : {1, 16, 17, 33, 200}) {
    std::vector<float> x;
    for (size_t i = 0; i < static_cast<size_t>(cols); ++i) {
      x.push_back(std::bit_cast<float>(cases[i % std::size(cases)].value));
    }
    for (const CpuLevel level : levels_here()) {
      const auto engine = make_engine(level, 1);
      const PackedRows packed(*engine, kActBF16, x, 1, cols);
      const auto* out = reinterpret_cast<const uint16_t*>(packed.memory.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(out[i], cases[i % std::size(cases)].expected)
            << cpu_level_name(level) << ' ' << i;
      }
      if (cols % 2 != 0) {
        EXPECT_EQ(out[cols], 0);
      }
    }
  }
}

TEST(Pack, SumsAreThoseOfTheIntegers) {
  const int64_t cols = 512;
  const std::vector<float> x = random_floats(2, cols);
  for (const CpuLevel level : levels_here()) {
    const auto engine = make_engine(level, 1);
    const PackedRows packed(*engine, kAllForms, x, 1, cols);
    for (int64_t b = 0; b < cols / 32; ++b) {
      const cpu::ActQ8Block& block = q8_blocks(packed, 0)[b];
      int sum = 0;
      for (const int8_t q : block.q) sum += q;
      EXPECT_EQ(block.minus_128_sum, -128 * sum);
      EXPECT_EQ(block.scale, f16_to_f32(f32_to_f16(block.scale))) << "a binary16 value";
    }
    for (int64_t b = 0; b < cols / 256; ++b) {
      const cpu::ActQ8KBlock& block = q8k_blocks(packed, 0)[b];
      for (int s = 0; s < 16; ++s) {
        int sum = 0;
        for (int i = 0; i < 16; ++i) sum += block.q[s * 16 + i];
        EXPECT_EQ(block.minus_32_sum[s], -32 * sum);
        EXPECT_EQ(block.sum16[s], sum);
      }
      for (int s = 0; s < 8; ++s) {
        int sum = 0;
        for (int i = 0; i < 32; ++i) sum += block.q[s * 32 + i];
        EXPECT_EQ(block.sum32[s], sum);
      }
    }
  }
}

TEST(Pack, KnownBlock) {
  std::vector<float> x(256, 0.0F);
  x[0] = 254.0F;  // scale 2
  x[1] = -254.0F;
  x[2] = 5.0F;  // 2.5 goes to the even 2
  x[3] = 7.0F;  // 3.5 goes to the even 4
  x[4] = -5.0F;
  x[5] = 6.2F;
  for (const CpuLevel level : levels_here()) {
    const auto engine = make_engine(level, 1);
    const PackedRows packed(*engine, kAllForms, x, 1, 256);
    const int8_t expected[] = {127, -127, 2, 4, -2, 3, 0};
    EXPECT_EQ(q8_blocks(packed, 0)[0].scale, 2.0F);
    EXPECT_EQ(q8k_blocks(packed, 0)[0].scale, 2.0F);
    for (size_t i = 0; i < std::size(expected); ++i) {
      EXPECT_EQ(q8_blocks(packed, 0)[0].q[i], expected[i]) << i;
      EXPECT_EQ(q8k_blocks(packed, 0)[0].q[i], expected[i]) << i;
    }
    EXPECT_EQ(q8_blocks(packed, 0)[1].scale, 0.0F);
  }
}

TEST(Pack, AllLevelsWriteTheSameBytes) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t cols : {32, 256, 1024}) {
    const int64_t rows = 12;
    std::vector<float> x = random_floats(3, rows * cols);
    const auto set = [&](int64_t row, float factor) {
      for (int64_t c = 0; c < cols; ++c) x[static_cast<size_t>(row * cols + c)] *= factor;
    };
    set(1, 1e-5F);
    set(2, 1e-30F);
    set(3, 1e-38F);
    set(4, 1e30F);
    set(5, 0.0F);
    x[static_cast<size_t>(6 * cols + 7)] = kNaN;
    x[static_cast<size_t>(7 * cols + 8)] = -kInfinity;
    x[static_cast<size_t>(8 * cols)] = std::numeric_limits<float>::max();
    x[static_cast<size_t>(9 * cols)] = std::numeric_limits<float>::denorm_min();
    // Every tie there is.
    for (int64_t c = 0; c < cols; ++c) {
      x[static_cast<size_t>(10 * cols + c)] = static_cast<float>(c % 32) - 15.5F;
    }
    x[static_cast<size_t>(10 * cols)] = 127.0F;
    uint32_t forms = kActF32 | kActQ8 | kActBF16;
    if (cols % 256 == 0) forms |= kActQ8K;
    std::vector<std::byte> scalar;
    for (const CpuLevel level : levels_here()) {
      const auto engine = make_engine(level, 2);
      const size_t bytes = engine->activation_bytes(forms, cols) * static_cast<size_t>(rows);
      // Padding is left as it was, so the memory starts as zeros.
      Buffer memory = std::move(Buffer::allocate(system_allocator(), bytes)).value();
      std::memset(memory.data(), 0, bytes);
      auto stream = std::move(engine->new_stream()).value();
      // From an odd start: rows of floats need no alignment.
      std::vector<float> shifted(x.size() + 1);
      std::copy(x.begin(), x.end(), shifted.begin() + 1);
      PackArgs args;
      args.x = {engine_ptr(shifted.data() + 1), rows, cols, cols};
      args.y = {engine_ptr(memory.data()), forms, rows, cols};
      ASSERT_TRUE(engine->run(*stream, args).ok());
      const std::vector<std::byte> out(memory.data(), memory.data() + bytes);
      if (level == CpuLevel::kScalar) scalar = out;
      EXPECT_EQ(out, scalar) << cpu_level_name(level) << ' ' << cols;
    }
  }
}

TEST(Pack, WhatIsNotFiniteGivesNaNAndTheRestStays) {
  std::vector<float> x = random_floats(4, 512);
  x[3] = std::numeric_limits<float>::infinity();
  const auto engine = make_engine(detect_cpu_level(), 1);
  const PackedRows packed(*engine, kAllForms, x, 1, 512);
  EXPECT_TRUE(std::isnan(q8_blocks(packed, 0)[0].scale));
  EXPECT_FALSE(std::isnan(q8_blocks(packed, 0)[1].scale));
  EXPECT_TRUE(std::isnan(q8k_blocks(packed, 0)[0].scale));
  EXPECT_FALSE(std::isnan(q8k_blocks(packed, 0)[1].scale));
  for (const int8_t q : q8_blocks(packed, 0)[0].q) EXPECT_EQ(q, 0);
}

}  // namespace
}  // namespace gen::engine

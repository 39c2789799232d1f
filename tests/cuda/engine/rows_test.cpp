// SPDX-License-Identifier: Apache-2.0
// Proves operations over whole rows of the CUDA engine, to the bit against the CPU engine: embed in
// every format, rms_norm, best with masks and edits, scan with rows that stay and go, adapter_in,
// mean_rows, position_scale.
#include <cmath>
#include <limits>

#include "base/mass_slices.h"
#include "cuda/engine/op_bench.h"
#include "tensor/half.h"
#include "quant/format.h"
#include "support/weight_blocks.h"

namespace gen::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> encoded(const quant::Format& format, int64_t n, uint32_t seed) {
  const DTypeInfo* info = dtype_info(format.type);
  const auto x = random_row(static_cast<size_t>(n), seed, 0.4F);
  std::vector<std::byte> bytes(static_cast<size_t>(n) / info->block_elements * info->block_bytes);
  write_weights(format.type, x.data(), bytes.data(), n);
  return bytes;
}

TEST(CudaEmbed, EveryFormat) {
  for (const quant::Format& format : quant::formats()) {
    SCOPED_TRACE(dtype_name(format.type));
    const bool plain = dtype_info(format.type)->block_elements == 1;
    const int64_t cols = plain ? 37 : 512;
    const auto bytes = encoded(format, 5 * cols, 11);
    expect_same([&](OpBench& bench) {
      std::vector<float> seen;
      for (const float scale : {1.0F, 0.3F}) {
        const engine::WeightSource source = {"w", format.type, 5, cols, bytes, false};
        auto weight = bench.engine().prepare(engine::WeightRole::kEmbedding, {&source, 1}, nullptr);
        EXPECT_TRUE(weight.ok()) << weight.status().message();
        engine::EmbedArgs args;
        args.weight = weight.value().get();
        args.ids = bench.put(std::vector<int32_t>{4, -1, 0, 2, 4});
        args.scale = scale;
        args.y = {bench.room(5 * (cols + 3)), 5, cols, cols + 3};
        bench.run(args);
        const auto got = bench.get(args.y.data, 5 * (cols + 3));
        seen.insert(seen.end(), got.begin(), got.end());
      }
      return seen;
    });
  }
}

TEST(CudaEmbed, Adapters) {
  const quant::Format& format = *quant::find_format(DType::kQ8_0);
  constexpr int64_t kCols = 320;
  const auto bytes = encoded(format, 5 * kCols, 12);
  expect_same([&](OpBench& bench) {
    const engine::WeightSource source = {"w", format.type, 5, kCols, bytes, false};
    auto weight = bench.engine().prepare(engine::WeightRole::kEmbedding, {&source, 1}, nullptr);
    EXPECT_TRUE(weight.ok()) << weight.status().message();
    std::vector<engine::LowRankMix> table(3);
    const auto add = [&](size_t mix, int32_t rank, uint32_t seed, float scale) {
      const auto matrix = [&](int64_t n, uint32_t which) {
        return bench.put(random_row(static_cast<size_t>(rank * n), 2 * seed + which));
      };
      table[mix].parts[table[mix].n++] = {matrix(5, 0), matrix(kCols, 1), rank, scale};
    };
    add(0, 3, 1, 0.5F);
    add(1, 130, 2, -0.25F);
    add(1, 64, 3, 1.5F);
    engine::EmbedArgs args;
    args.weight = weight.value().get();
    args.ids = bench.put(std::vector<int32_t>{4, -1, 0, 2, 4, 1});
    args.scale = 0.3F;
    args.y = {bench.room(6 * kCols), 6, kCols, kCols};
    args.low_rank.table = bench.put(table);
    args.low_rank.stride = 1;
    args.low_rank.mixes = bench.put(std::vector<int32_t>{1, 0, -1, 0, 0, 2});
    args.low_rank.sites = bench.put(std::vector<engine::LowRankSite>{{0, kCols, 0, 0}});
    args.low_rank.n_sites = 1;
    bench.run(args);
    return bench.get(args.y.data, 6 * kCols);
  });
}

TEST(CudaRmsNorm, Rows) {
  for (const int64_t cols : {1, 15, 16, 17, 96, 1000, 3000, 8192 + 37}) {
    SCOPED_TRACE(cols);
    expect_same([&](OpBench& bench) {
      const int64_t stride = cols + 5;
      constexpr int64_t kRows = 12;  // a sum in another order may still give the same mean
      engine::RmsNormArgs args;
      args.x = {bench.put(random_row(static_cast<size_t>(kRows * stride), 1, 3.0F)), kRows, cols,
                stride};
      args.w = bench.put(random_row(static_cast<size_t>(cols), 2));
      args.eps = 1e-5F;
      args.y = {bench.room(kRows * stride), kRows, cols, stride};
      const auto bytes =
          static_cast<int64_t>(bench.engine().activation_bytes(engine::kActF32, cols));
      args.packed = {bench.room(kRows * bytes / 4).as<std::byte>(), engine::kActF32, kRows, cols};
      bench.run(args);
      auto seen = bench.get(args.y.data, kRows * stride);
      // Packed rows are the same floats, wherever an engine has them begin.
      const auto packed = bench.get(args.packed.data.as<float>(), kRows * bytes / 4);
      for (int64_t t = 0; t < kRows; ++t) {
        for (int64_t c = 0; c < cols; ++c) {
          seen.push_back(packed[static_cast<size_t>(t * bytes / 4 + c)]);
        }
      }
      return seen;
    });
  }
}

/// Of rows that do not fit shared memory, too; whole ones and groups, with weight, bias and mean
/// and without.
TEST(CudaLayerNorm, Rows) {
  struct Case {
    int64_t cols;
    int32_t groups;
  };
  for (const Case& of : {Case{1, 1}, Case{15, 1}, Case{17, 1}, Case{96, 3}, Case{100, 20},
                         Case{1000, 1}, Case{8192 + 37, 1}, Case{8192 + 512, 17}}) {
    const int64_t cols = of.cols;
    for (const int32_t which : {0, 1, 2, 3, 4, 5}) {
      SCOPED_TRACE(testing::Message() << cols << ' ' << of.groups << ' ' << which);
      expect_same([&](OpBench& bench) {
        const int64_t stride = cols + 5;
        constexpr int64_t kRows = 5;
        engine::LayerNormArgs args;
        std::vector<float> x = random_row(static_cast<size_t>(kRows * stride), 1, 3.0F);
        for (float& value : x) value += 1.0F;
        args.x = {bench.put(x), kRows, cols, stride};
        if (which % 2 != 0) args.w = bench.put(random_row(static_cast<size_t>(cols), 2));
        if (which == 2 || which == 3) args.b = bench.put(random_row(static_cast<size_t>(cols), 3));
        args.eps = 1e-5F;
        args.groups = of.groups;
        args.centred = which < 4;
        args.y = {bench.room(kRows * stride), kRows, cols, stride};
        bench.run(args);
        return bench.get(args.y.data, kRows * stride);
      });
    }
  }
}

/// Its packed rows are what pack makes of its float rows, in every form and in bfloat16.
TEST(CudaLayerNorm, Forms) {
  constexpr uint32_t kForms = engine::kActF32 | engine::kActQ8 | engine::kActQ8K;
  for (const int64_t cols : {256, 8192 + 512}) {
    for (const bool bf16 : {false, true}) {
      OpBench bench(cuda_engine());
      const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(kForms, cols));
      engine::LayerNormArgs args;
      args.x = {bench.put(random_row(static_cast<size_t>(2 * cols), 1, 3.0F)), 2, cols, cols};
      args.b = bench.put(random_row(static_cast<size_t>(cols), 2));
      args.groups = 2;
      args.y = {bench.room(2 * cols), 2, cols, cols};
      const std::vector<float> before(static_cast<size_t>(bytes / 2), 7.0F);
      args.packed = {bench.put(before).as<std::byte>(), kForms, 2, cols, bf16};
      bench.run(args);
      const engine::Activations packed = {bench.put(before).as<std::byte>(), kForms, 2, cols, bf16};
      bench.run(engine::PackArgs{{args.y.data, 2, cols, cols}, packed});
      const auto got = bench.get(args.packed.data.as<float>(), bytes / 2);
      EXPECT_TRUE(same_bits(got, bench.get(packed.data.as<float>(), bytes / 2)));
      args.y = {};
      args.packed.data = bench.put(before).as<std::byte>();
      bench.run(args);
      EXPECT_TRUE(same_bits(bench.get(args.packed.data.as<float>(), bytes / 2), got));
    }
  }
}

/// Its packed rows are what pack makes of its float rows, in every form, of rows that do not fit
/// the registers of a block, too.
TEST(CudaRmsNorm, Forms) {
  constexpr uint32_t kForms = engine::kActF32 | engine::kActQ8 | engine::kActQ8K;
  for (const int64_t cols : {256, 8192 + 512}) {
    OpBench bench(cuda_engine());
    const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(kForms, cols));
    engine::RmsNormArgs args;
    args.x = {bench.put(random_row(static_cast<size_t>(2 * cols), 1, 3.0F)), 2, cols, cols};
    args.w = bench.put(random_row(static_cast<size_t>(cols), 2));
    args.y = {bench.room(2 * cols), 2, cols, cols};
    const std::vector<float> before(static_cast<size_t>(bytes / 2), 7.0F);
    args.packed = {bench.put(before).as<std::byte>(), kForms, 2, cols};
    bench.run(args);
    const engine::Activations packed = {bench.put(before).as<std::byte>(), kForms, 2, cols};
    bench.run(engine::PackArgs{{args.y.data, 2, cols, cols}, packed});
    EXPECT_TRUE(same_bits(bench.get(args.packed.data.as<float>(), bytes / 2),
                          bench.get(packed.data.as<float>(), bytes / 2)));
  }
}

/// Rows in bfloat16 are the float rows, rounded; those of a norm and those that are packed.
TEST(CudaRmsNorm, RowsInBFloat16) {
  for (const int64_t cols : {int64_t{256}, int64_t{8192 + 512}}) {
    OpBench bench(cuda_engine());
    const uint32_t forms = engine::kActF32 | engine::kActQ8K;
    const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(forms, cols));
    engine::RmsNormArgs args;
    args.x = {bench.put(random_row(static_cast<size_t>(2 * cols), 1, 3.0F)), 2, cols, cols};
    args.w = bench.put(random_row(static_cast<size_t>(cols), 2));
    args.y = {bench.room(2 * cols), 2, cols, cols};
    const std::vector<float> before(static_cast<size_t>(bytes / 2), 7.0F);
    args.packed = {bench.put(before).as<std::byte>(), forms, 2, cols, true};
    bench.run(args);
    const engine::Activations packed = {bench.put(before).as<std::byte>(), forms, 2, cols, true};
    bench.run(engine::PackArgs{{args.y.data, 2, cols, cols}, packed});
    const auto rows = bench.get(args.y.data, 2 * cols);
    for (const auto& of : {args.packed, packed}) {
      const auto found = bench.get(of.data.as<uint16_t>(), bytes);
      for (int64_t i = 0; i < 2 * cols; ++i) {
        ASSERT_EQ(found[static_cast<size_t>(i / cols * bytes / 2 + i % cols)],
                  f32_to_bf16(rows[static_cast<size_t>(i)]))
            << i;
      }
      // And nothing behind them.
      const auto rest = bench.get(of.data.as<float>(), bytes / 2);
      for (int64_t i = cols / 2; i < bytes / 4; ++i) ASSERT_EQ(rest[static_cast<size_t>(i)], 7.0F);
    }
  }
}

TEST(CudaMeanRows, OfRunsOfRows) {
  for (const int64_t cols : {1, 63, 64, 300}) {
    SCOPED_TRACE(cols);
    expect_same([&](OpBench& bench) {
      const int64_t stride = cols + 5;
      engine::MeanRowsArgs args;
      args.x = {bench.put(random_row(static_cast<size_t>(20 * stride), 1, 3.0F)), 20, cols, stride};
      args.first = bench.put(std::vector<int32_t>{0, 3, 3, 19, 0});
      args.last = bench.put(std::vector<int32_t>{0, 3, 11, 19, 19});
      args.y = {bench.room(5 * (cols + 2)), 5, cols, cols + 2};
      bench.run(args);
      return bench.get(args.y.data, 5 * (cols + 2));
    });
  }
}

TEST(CudaPositionScale, Rows) {
  for (const int64_t cols : {1, 63, 300}) {
    SCOPED_TRACE(cols);
    expect_same([&](OpBench& bench) {
      const int64_t stride = cols + 5;
      engine::PositionScaleArgs args;
      args.x = {bench.put(random_row(static_cast<size_t>(7 * stride), 1, 3.0F)), 7, cols, stride};
      args.positions = bench.put(std::vector<int32_t>{0, 6, 7, 20, 21, 500, 2147483647});
      args.factors = bench.put(std::vector<float>{1.0F, 1.3F, 1.7F});
      args.n_factors = 3;
      args.every = 7;
      args.y = {bench.room(7 * (cols + 2)), 7, cols, cols + 2};
      bench.run(args);
      return bench.get(args.y.data, 7 * (cols + 2));
    });
  }
}

struct BestCase {
  int64_t cols = 70;
  int32_t k = 1;
  bool masks = false;
  bool aside = false;
  uint32_t seed = 1;
  float steps = 8.0F;  // into how many values a logit falls per unit: few make many of them equal
  float offset = 1.0F;
  double temperature = 0.0;  // of the mass of some rows; 0: it is not wanted
};

std::vector<float> best(OpBench& bench, const BestCase& c) {
  constexpr int64_t kRows = 4;
  auto x = random_row(static_cast<size_t>(kRows * c.cols), c.seed);
  for (float& value : x) value = std::round(value * c.steps) / c.steps + c.offset;
  if (c.cols > 5) {
    x[static_cast<size_t>(c.cols) + 3] = -kInfinity;
    x[static_cast<size_t>(2 * c.cols) + 4] = NAN;
    x[static_cast<size_t>(2 * c.cols) + 5] = kInfinity;
  }
  engine::BestArgs args;
  args.x = {bench.put(x), kRows, c.cols, c.cols};
  std::vector<engine::BestRow> rows(kRows);
  std::mt19937 random(c.seed);
  for (engine::BestRow& row : rows) {
    if (c.masks) {
      std::vector<uint32_t> words;
      for (int64_t w = 0; w < (c.cols + 31) / 32; ++w)
        words.push_back(static_cast<uint32_t>(random()));
      words.back() |= 1U;
      row.mask = bench.put(words);
      // Those beyond are not allowed.
      row.mask_words = static_cast<int32_t>(words.size()) - (&row == &rows[3] && c.cols > 64);
    }
    if (c.aside) {
      // More than a block has threads, some of them several times.
      std::vector<int32_t> tokens(&row == &rows[3] ? 700 : 6);
      for (int32_t& token : tokens) {
        token = static_cast<int32_t>(random() % static_cast<uint64_t>(c.cols));
      }
      row.aside = bench.put(tokens);
      row.n_aside = static_cast<int32_t>(tokens.size());
      row.aside_logits = bench.put(std::vector<float>(tokens.size(), -77.0F));
    }
  }
  const int64_t n_mass = kRows * static_cast<int64_t>(mass_slices(static_cast<size_t>(c.cols)));
  if (c.temperature > 0.0) {
    rows[0].temperature = rows[2].temperature = c.temperature;
    rows[3].temperature = 1.0;
    args.mass = bench.put(std::vector<double>(static_cast<size_t>(n_mass), -77.0));
    args.slice = bench.room(kRows * kMassSlice);
    rows[0].place = 0.3;
    rows[1].place = 0.4;  // of nothing
    rows[3].place = c.seed % 3 == 0 ? 0.999999 : 0.0;
  }
  if (c.masks || c.aside || args.mass) args.rows = bench.put(rows);
  args.k = c.k;
  args.tokens = bench.put(std::vector<int32_t>(static_cast<size_t>(kRows * c.k), -77));
  args.values = bench.room(kRows * c.k);
  bench.run(args);
  auto seen = bench.get(args.values, kRows * c.k);
  for (const engine::BestRow& row : rows) {
    if (row.n_aside == 0) continue;
    const auto logits = bench.get(row.aside_logits, row.n_aside);
    seen.insert(seen.end(), logits.begin(), logits.end());
  }
  for (const int32_t token : bench.get(args.tokens, kRows * c.k)) {
    seen.push_back(static_cast<float>(token));
  }
  for (const double mass : args.mass ? bench.get(args.mass, n_mass) : std::vector<double>()) {
    float halves[2];
    std::memcpy(halves, &mass, sizeof halves);
    seen.insert(seen.end(), halves, halves + 2);
  }
  for (const float logit :
       args.slice ? bench.get(args.slice, kRows * kMassSlice) : std::vector<float>()) {
    seen.push_back(logit);
  }
  const auto changed = bench.get(args.x.data, kRows * c.cols);
  seen.insert(seen.end(), changed.begin(), changed.end());
  return seen;
}

TEST(CudaBest, MasksTokensAsideAndTies) {
  uint32_t seed = 1;
  for (const int64_t cols : {1, 31, 70, 700}) {
    for (const int32_t k : {1, 2, 5, 128, 130}) {
      for (const bool masks : {false, true}) {
        for (const bool aside : {false, true}) {
          BestCase c = {cols, std::min(k, static_cast<int32_t>(cols)), masks, aside, ++seed};
          SCOPED_TRACE(testing::Message() << cols << " tokens, " << k << " best, seed " << seed);
          expect_same([&](OpBench& bench) { return best(bench, c); });
        }
      }
    }
  }
}

// Rows of several parts, the last of which is not full.
TEST(CudaBest, Parts) {
  uint32_t seed = 100;
  for (const int64_t cols : {2048, 2049, 5000}) {
    for (const int32_t k : {1, 2, 128}) {
      for (const bool edits : {false, true}) {
        for (const float steps : {2.0F, 1000.0F}) {
          BestCase c = {cols, k, edits, edits, ++seed, steps};
          SCOPED_TRACE(testing::Message() << cols << " tokens, " << k << " best, seed " << seed);
          expect_same([&](OpBench& bench) { return best(bench, c); });
        }
      }
    }
  }
}

// Sums of exponentials in double precision, of parts of rows, down to those that are nothing.
TEST(CudaBest, WhatTokensWeigh) {
  uint32_t seed = 70;
  for (const int64_t cols : {5, 511, 512, 513, 5000}) {
    for (const double temperature : {1.0, 0.7, 1e-3, 40.0}) {
      BestCase c = {cols, seed % 2 == 0 ? 1 : 5, seed % 3 == 0, seed % 5 == 0, ++seed};
      c.temperature = temperature;
      SCOPED_TRACE(testing::Message() << cols << " tokens at " << temperature);
      expect_same([&](OpBench& bench) { return best(bench, c); });
    }
  }
}

// Logits that agree in more and more of their leading bits, up to all of them.
TEST(CudaBest, ManyOfRowsThatAreNearlyEqual) {
  uint32_t seed = 40;
  for (const float steps : {0.1F, 1.0F, 64.0F, 4096.0F, 262144.0F}) {
    for (const int32_t k : {2, 40, 128}) {
      const BestCase c = {3000, k, false, false, ++seed, steps, -0.0F};  // zeros of both signs
      SCOPED_TRACE(testing::Message() << steps << " steps, " << k << " best");
      expect_same([&](OpBench& bench) { return best(bench, c); });
    }
  }
}

TEST(CudaScan, RowsThatStayAndGo) {
  expect_same([](OpBench& bench) {
    constexpr int64_t kChannels = 70;
    constexpr int64_t kRows = 6;
    constexpr int64_t kKept = 2 * kChannels + 9;
    const auto values = [&](uint32_t seed, size_t n) { return bench.put(random_row(n, seed)); };
    const auto state = bench.room(2 * (kChannels + 4));
    const auto keep = bench.room(4 * kKept);
    std::vector<engine::StateRows> sequences(3);
    sequences[0].first_row = 0;
    sequences[0].n_rows = 2;
    sequences[0].certain = 1;
    sequences[0].keep = keep + 3 * kKept;
    sequences[0].write = state;
    sequences[1].first_row = 2;
    sequences[1].n_rows = 3;
    sequences[1].unsettled = 2;
    sequences[1].read = values(1, kChannels + 4);
    sequences[1].kept = values(2, 2 * kKept);
    sequences[1].keep = keep;
    sequences[1].write = state + (kChannels + 4);
    sequences[2].first_row = 5;
    sequences[2].n_rows = 1;
    sequences[2].read = values(3, kChannels + 4);
    const auto own = bench.room(kChannels + 4);
    sequences[2].write = own;
    const auto in = [&](uint32_t seed) {
      return engine::ConstMatrixView{values(seed, kRows * 80), kRows, kChannels, 80};
    };
    engine::ScanArgs args;
    args.a = in(4);
    args.b = in(5);
    args.x = in(6);
    args.y = {bench.room(kRows * 77), kRows, kChannels, 77};
    args.layer = {4, 3, kKept};
    args.sequences = bench.put(sequences);
    args.n_sequences = 3;
    bench.run(args);
    auto seen = bench.get(args.y.data, kRows * 77);
    for (const auto& [at, n] : {std::pair(state, 2 * (kChannels + 4)), std::pair(keep, 4 * kKept),
                                std::pair(own, kChannels + 4)}) {
      const auto more = bench.get(at, n);
      seen.insert(seen.end(), more.begin(), more.end());
    }
    return seen;
  });
}

TEST(CudaAdapterIn, MixesOfRows) {
  expect_same([](OpBench& bench) {
    constexpr int64_t kCols = 45;
    const auto matrix = [&](int32_t rank, uint32_t seed) {
      return bench.put(random_row(static_cast<size_t>(rank * kCols), seed));
    };
    // Two mixes of two sites each.
    std::vector<engine::LowRankMix> table(4);
    const auto add = [&](size_t at, int32_t rank, uint32_t seed) {
      table[at].parts[table[at].n++] = {matrix(rank, seed), nullptr, rank, 0.5F};
    };
    add(0, 3, 1);
    add(1, 2, 2);
    add(1, 4, 3);
    add(3, 5, 4);
    engine::AdapterInArgs args;
    args.x = {bench.put(random_row(5 * 50, 5)), 5, kCols, 50};
    args.low_rank.table = bench.put(table);
    args.low_rank.stride = 2;
    args.low_rank.mixes = bench.put(std::vector<int32_t>{1, -1, 0, 0});
    args.low_rank.rows = bench.put(std::vector<int32_t>{0, 1, 2, 3, 0});
    args.low_rank.sites = bench.put(std::vector<engine::LowRankSite>{{0, 7, 0, 0}, {7, 9, 1, 6}});
    args.low_rank.n_sites = 2;
    args.u = {bench.room(5 * 14), 5, 14, 14};
    bench.run(args);
    return bench.get(args.u.data, 5 * 14);
  });
}

}  // namespace
}  // namespace gen::test

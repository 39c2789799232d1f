// SPDX-License-Identifier: Apache-2.0
// Proves that every cache format keeps what its formula says, in the bytes it says, whatever the
// order in which entries come, and that the kernels of every level unpack exactly what codecs read.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/cpu/attention/attention.h"
#include "engine/cpu_fixture.h"
#include "quant/kv_q3.h"
#include "support/kv_side.h"

namespace gen::engine {
namespace {

using cpu::random_floats;
using cpu::same_bits;

constexpr KvFormat kFormats[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kFp8, KvFormat::kQ4,
                                 KvFormat::kQ3};
constexpr KvOrder kOrders[] = {KvOrder::kKeys, KvOrder::kValues};

struct Rows {
  int32_t heads;
  int32_t dim;
  int32_t entries;
  std::vector<float> x;  // [entries, heads, dim]

  Rows(int32_t n_heads, int32_t head_dim, int32_t n_entries, uint32_t seed)
      : heads(n_heads),
        dim(head_dim),
        entries(n_entries),
        x(random_floats(static_cast<size_t>(n_entries * n_heads * head_dim), seed, 3.0F)) {
    // Rows of different sizes, so that a scale taken from another entry shows.
    for (size_t i = 0; i < x.size(); ++i) x[i] *= 1.0F + static_cast<float>(i / row_size() % 7);
  }
  [[nodiscard]] size_t row_size() const { return static_cast<size_t>(heads * dim); }
  [[nodiscard]] const float* row(int32_t e) const {
    return x.data() + static_cast<size_t>(e) * row_size();
  }
};

test::KvMemory store(const Rows& rows, KvFormat format, KvOrder order,
                     const std::vector<int32_t>& entries, int32_t block_size = 0) {
  test::KvMemory memory(format, order, rows.heads, rows.dim, rows.entries, block_size);
  for (int32_t e : entries) kv_put(memory.side, e, rows.heads, rows.row(e));
  return memory;
}

std::vector<int32_t> all_entries(int32_t n) {
  std::vector<int32_t> entries(static_cast<size_t>(n));
  std::iota(entries.begin(), entries.end(), 0);
  return entries;
}

std::vector<float> read(const test::KvMemory& memory, int32_t entry, int32_t heads) {
  const auto dim = static_cast<size_t>(memory.side.head_dim);
  std::vector<float> row(static_cast<size_t>(heads) * dim);
  for (int32_t h = 0; h < heads; ++h) {
    kv_get(memory.side, entry, h, row.data() + static_cast<size_t>(h) * dim);
  }
  return row;
}

TEST(KvCodec, TakesTheBitsItSays) {
  const auto bits = [](KvFormat format, KvOrder order, size_t heads, size_t dim) {
    const KvCodec& codec = kv_codec(format);
    const size_t shared = codec.shared_bytes != nullptr ? codec.shared_bytes(heads, dim) : 0;
    return static_cast<double>(8 * (heads * codec.tile_bytes(order, dim) + shared)) /
           static_cast<double>(16 * heads * dim);
  };
  for (KvOrder order : kOrders) {
    EXPECT_EQ(bits(KvFormat::kF32, order, 4, 64), 32.0);
    EXPECT_EQ(bits(KvFormat::kF16, order, 4, 64), 16.0);
    EXPECT_EQ(bits(KvFormat::kFp8, order, 4, 64), 8.5);
    EXPECT_EQ(bits(KvFormat::kFp8, order, 4, 128), 8.25);
    for (const size_t dim : std::initializer_list<size_t>{32, 64, 96, 128, 256}) {
      EXPECT_EQ(bits(KvFormat::kQ4, order, 4, dim), 4.5) << dim;
    }
    EXPECT_EQ(bits(KvFormat::kQ3, order, 4, 64), 3.5);
    EXPECT_EQ(bits(KvFormat::kQ3, order, 2, 64), 4.0);  // a group of 128
    EXPECT_EQ(bits(KvFormat::kQ3, order, 8, 128), 3.5);
    EXPECT_EQ(bits(KvFormat::kQ3, order, 2, 512), 3.5);
  }
}

TEST(KvCodec, BytesDoNotDependOnTheOrderOfEntries) {
  for (KvFormat format : kFormats) {
    for (KvOrder order : kOrders) {
      for (int32_t dim : {1, 7, 16, 33, 64, 100, 300}) {
        const Rows rows(3, dim, 21, 5);
        std::vector<int32_t> entries = all_entries(21);
        test::KvMemory forward = store(rows, format, order, entries);
        std::reverse(entries.begin(), entries.end());
        entries.insert(entries.begin(), {3, 19, 3, 0});
        const test::KvMemory backward = store(rows, format, order, entries);
        for (int32_t e = 0; e < 21; ++e) {
          EXPECT_TRUE(same_bits(read(forward, e, 3), read(backward, e, 3)));
        }
        // Another entry's row does not touch this one.
        const std::vector<float> before = read(forward, 5, 3);
        kv_put(forward.side, 4, 3, rows.row(20));
        kv_put(forward.side, 6, 3, rows.row(0));
        EXPECT_TRUE(same_bits(read(forward, 5, 3), before));
      }
    }
  }
}

TEST(KvCodec, Fp8IsWithinItsFormula) {
  const Rows rows(2, 72, 40, 8);
  for (KvOrder order : kOrders) {
    const test::KvMemory memory = store(rows, KvFormat::kFp8, order, all_entries(40), 24);
    for (int32_t e = 0; e < 40; ++e) {
      const std::vector<float> got = read(memory, e, 2);
      for (size_t h = 0; h < 2; ++h) {
        double largest = 0;
        for (size_t d = 0; d < 72; ++d) {
          largest = std::max(largest, std::fabs(static_cast<double>(rows.row(e)[h * 72 + d])));
        }
        for (size_t d = 0; d < 72; ++d) {
          const double want = rows.row(e)[h * 72 + d];
          // Half a step of 3 bits, or of the subnormals; and the scale's rounding.
          const double bound = std::max(std::fabs(want) / 16, largest / 448 / 1024) * (1 + 0x1p-20);
          ASSERT_NEAR(got[h * 72 + d], want, bound);
        }
      }
    }
  }
}

TEST(KvCodec, Q4TakesTheNearestOfSixteenLevels) {
  const Rows rows(2, 80, 33, 9);
  for (KvOrder order : kOrders) {
    const test::KvMemory memory = store(rows, KvFormat::kQ4, order, all_entries(33));
    for (int32_t e = 0; e < 33; ++e) {
      const std::vector<float> got = read(memory, e, 2);
      for (size_t h = 0; h < 2; ++h) {
        for (size_t g = 0; g < 80; g += 32) {
          const float* x = rows.row(e) + h * 80 + g;
          const size_t n = std::min<size_t>(32, 80 - g);
          const float top = *std::max_element(
              x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
          const double scale = f16_to_f32(f32_to_f16(top / -8.0F));
          for (size_t i = 0; i < n; ++i) {
            double nearest = -8 * scale;
            for (int level = -8; level <= 7; ++level) {
              if (std::fabs(level * scale - x[i]) < std::fabs(nearest - x[i])) {
                nearest = level * scale;
              }
            }
            // Halfway cases may go either way.
            ASSERT_NEAR(std::fabs(got[h * 80 + g + i] - x[i]), std::fabs(nearest - x[i]),
                        std::fabs(scale) * 1e-5);
          }
        }
      }
    }
  }
}

TEST(KvCodec, Q3GroupsAreThoseOfItsFit) {
  // Heads of 100: two to a group; of 300: two groups to a head.
  for (int32_t dim : {64, 100, 300}) {
    const Rows rows(3, dim, 18, 10);
    for (KvOrder order : kOrders) {
      const test::KvMemory memory = store(rows, KvFormat::kQ3, order, all_entries(18), 5);
      for (int32_t e = 0; e < 18; ++e) {
        std::vector<float> want(rows.row_size());
        const size_t d = static_cast<size_t>(dim);
        std::vector<std::pair<size_t, size_t>> groups;  // begin, length
        if (dim == 64) groups = {{0, 192}};
        if (dim == 100) groups = {{0, 200}, {200, 100}};
        for (size_t h = 0; dim == 300 && h < 3; ++h) {
          groups.push_back({h * d, 256});
          groups.push_back({h * d + 256, 44});
        }
        for (const auto& [begin, n] : groups) {
          uint16_t centroids[quant::kKvQ3Centroids];
          uint8_t codes[quant::kv_q3_bytes(quant::kKvQ3Group)];
          quant::kv_q3_encode(rows.row(e) + begin, n, centroids, codes);
          quant::kv_q3_decode(centroids, codes, n, want.data() + begin);
        }
        EXPECT_TRUE(same_bits(read(memory, e, 3), want)) << dim << ' ' << e;
      }
    }
  }
}

TEST(KvCodec, WhatIsNotANumberStaysOne) {
  for (KvFormat format : kFormats) {
    Rows rows(1, 64, 1, 11);
    rows.x[40] = std::numeric_limits<float>::quiet_NaN();
    const test::KvMemory memory = store(rows, format, KvOrder::kKeys, {0});
    const std::vector<float> got = read(memory, 0, 1);
    EXPECT_TRUE(std::any_of(got.begin(), got.end(), [](float v) { return std::isnan(v); }))
        << static_cast<int>(format);
  }
}

TEST(KvCodec, CopiesOnlyTheEntriesAskedFor) {
  for (KvFormat format : kFormats) {
    for (KvOrder order : kOrders) {
      for (const auto& [from_block, to_block] :
           {std::pair{0, 0}, std::pair{16, 5}, std::pair{5, 32}, std::pair{7, 0}}) {
        for (const auto& [first, to_first, count] :
             {std::array{0, 0, 37}, std::array{0, 0, 16}, std::array{3, 20, 17},
              std::array{31, 0, 6}, std::array{5, 5, 0}}) {
          SCOPED_TRACE(testing::Message() << "format " << static_cast<int>(format) << " from "
                                          << first << " to " << to_first);
          const Rows rows(3, 27, 37, 12);
          const Rows others(3, 27, 37, 13);
          const test::KvMemory from = store(rows, format, order, all_entries(37), from_block);
          test::KvMemory to = store(others, format, order, all_entries(37), to_block);
          const test::KvMemory before = store(others, format, order, all_entries(37), to_block);
          kv_copy(from.side, first, to.side, to_first, 3, count);
          for (int32_t e = 0; e < 37; ++e) {
            const bool copied = e >= to_first && e < to_first + count;
            ASSERT_TRUE(same_bits(
                read(to, e, 3), copied ? read(from, e - to_first + first, 3) : read(before, e, 3)))
                << "entry " << e;
          }
        }
      }
    }
  }
}

TEST(KvCodec, StripesMakeUpATile) {
  for (KvFormat format : kFormats) {
    for (KvOrder order : kOrders) {
      for (const size_t dim : std::initializer_list<size_t>{1, 16, 27, 64, 300}) {
        const KvCodec& codec = kv_codec(format);
        size_t bytes = 0;
        for (const KvStripe& stripe : codec.stripes(order, dim).of) {
          bytes += stripe.count * 16 * stripe.bytes;
        }
        EXPECT_EQ(bytes, codec.tile_bytes(order, dim)) << static_cast<int>(format) << " " << dim;
      }
    }
  }
}

TEST(KvCodec, HadamardKeepsDotProductsAndTurnsBack) {
  for (int32_t n : {16, 48, 64, 80, 128}) {
    const std::vector<float> a = random_floats(static_cast<size_t>(n), 13);
    const std::vector<float> b = random_floats(static_cast<size_t>(n), 14);
    std::vector<float> ta = a;
    std::vector<float> tb = b;
    kv_hadamard(ta.data(), n);
    kv_hadamard(tb.data(), n);
    EXPECT_FALSE(same_bits(ta, a));
    const auto dot = [](const std::vector<float>& x, const std::vector<float>& y) {
      return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    };
    EXPECT_NEAR(dot(ta, tb), dot(a, b), 1e-5);
    kv_hadamard(ta.data(), n);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(ta[i], a[i], 1e-6);
  }
  // The first element of a turned unit vector: 1 / sqrt(n), everywhere.
  std::vector<float> unit(64, 0.0F);
  unit[0] = 1.0F;
  kv_hadamard(unit.data(), 64);
  for (float x : unit) EXPECT_EQ(x, 0.125F);
}

/// An element of an unpacked tile, times its scale where the format has one: scales of sixteen
/// entries come first, one for all elements of a head (fp8) or for every 32 (q4).
float unpacked(const std::vector<float>& tile, KvFormat format, KvOrder order, int32_t dim,
               int32_t entry, int32_t d) {
  const int32_t at = order == KvOrder::kKeys ? d * 16 + entry : entry * dim + d;
  if (format == KvFormat::kQ3) return tile[static_cast<size_t>(at)];
  const int32_t groups = format == KvFormat::kFp8 ? 1 : (dim + 31) / 32;
  const int32_t group = format == KvFormat::kFp8 ? 0 : d / 32;
  return tile[static_cast<size_t>(groups * 16 + at)] *
         tile[static_cast<size_t>(group * 16 + entry)];
}

TEST(KvUnpack, EveryLevelReadsWhatCodecsRead) {
  for (const CpuLevel level : cpu::levels_here()) {
    const cpu::AttentionKernels& kernels = *cpu::attention_kernels(level);
    for (KvFormat format : {KvFormat::kFp8, KvFormat::kQ4, KvFormat::kQ3}) {
      for (KvOrder order : kOrders) {
        for (int32_t dim : {1, 5, 8, 16, 31, 32, 33, 64, 80, 128, 300}) {
          const Rows rows(2, dim, 16, 15);
          const test::KvMemory memory = store(rows, format, order, all_entries(16));
          const KvPlace place = memory.side.place(0);
          const auto size = static_cast<size_t>(cpu::unpacked_tile_floats(dim));
          std::vector<float> got(size + 16, 77.0F);
          kernels.unpack[static_cast<size_t>(format)][static_cast<size_t>(order)](
              kv_tile(memory.side, place, 1), kv_shared(memory.side, place, 1), dim, got.data());
          for (size_t i = size; i < got.size(); ++i) ASSERT_EQ(got[i], 77.0F);
          for (int32_t e = 0; e < 16; ++e) {
            const std::vector<float> row = read(memory, e, 2);
            for (int32_t d = 0; d < dim; ++d) {
              // Levels times scales are exact or rounded once, as the codec's; a zero may differ in
              // its sign.
              ASSERT_EQ(unpacked(got, format, order, dim, e, d), row[static_cast<size_t>(dim + d)])
                  << cpu_level_name(level) << " format " << static_cast<int>(format) << " dim "
                  << dim << " entry " << e << " element " << d;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gen::engine

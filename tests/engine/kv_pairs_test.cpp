// SPDX-License-Identifier: Apache-2.0
// Attention over every pair of a kind of keys and a kind of values, at the head sizes of models and
// at every level, against a softmax in double precision over what the entries decode to; over
// entries whose numbers are large or small; over thousands of entries of which one is asked for;
// and beside memory that holds NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/cpu/attention/attention.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/cpu_fixture.h"
#include "support/kv_side.h"
#include "support/sanitized.h"

namespace gen::engine::cpu {
namespace {

constexpr KvFormat kFormats[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kFp8, KvFormat::kQ4,
                                 KvFormat::kQ3};
constexpr int32_t kHeads = 4;
constexpr int32_t kKvHeads = 2;

/// Keys or values, as they came and as they lie.
struct Entries {
  std::vector<float> rows;  // [entries, kKvHeads, dim]
  test::KvMemory memory;

  Entries(KvFormat format, KvOrder order, int32_t dim, std::vector<float> data,
          std::byte fill = std::byte{0x7F})
      : rows(std::move(data)), memory(format, order, kKvHeads, dim, count(dim), 0, fill) {
    for (int32_t e = 0; e < count(dim); ++e) {
      kv_put(memory.side, e, kKvHeads, rows.data() + static_cast<size_t>(e * kKvHeads * dim));
    }
  }
  [[nodiscard]] int32_t count(int32_t dim) const {
    return static_cast<int32_t>(rows.size()) / (kKvHeads * dim);
  }
};

/// One row after all entries, of which it is the last.
std::vector<float> attend(CpuLevel level, const std::vector<float>& q, const Entries& k,
                          const Entries& v, float scale) {
  const int32_t k_dim = k.memory.side.head_dim;
  const int32_t v_dim = v.memory.side.head_dim;
  SequenceRows rows;
  rows.n_rows = 1;
  rows.first_entry = k.count(k_dim) - 1;
  rows.view.k = k.memory.side;
  rows.view.v = v.memory.side;
  rows.view.kv_heads = kKvHeads;
  rows.view.entries = k.count(k_dim);
  std::vector<float> out(static_cast<size_t>(kHeads * v_dim));
  AttendArgs args;
  args.q = {q.data(), 1, kHeads * k_dim, kHeads * k_dim};
  args.out = {out.data(), 1, kHeads * v_dim, kHeads * v_dim};
  args.n_heads = kHeads;
  args.n_kv_heads = kKvHeads;
  args.k_dim = k_dim;
  args.v_dim = v_dim;
  args.scale = scale;
  args.sequences = {&rows, 1};
  CpuBench bench(level);
  EXPECT_TRUE(attend(*bench, args).ok());
  return out;
}

/// The same in double precision, over the entries as they are read or, if so asked, as they came.
std::vector<double> reference(const std::vector<float>& q, const Entries& k, const Entries& v,
                              double scale, bool as_they_came = false) {
  const auto k_dim = static_cast<size_t>(k.memory.side.head_dim);
  const auto v_dim = static_cast<size_t>(v.memory.side.head_dim);
  const auto n = static_cast<size_t>(k.count(k.memory.side.head_dim));
  const auto row = [&](const Entries& of, size_t dim, size_t e, size_t g) {
    std::vector<float> values(
        of.rows.begin() + static_cast<std::ptrdiff_t>((e * kKvHeads + g) * dim),
        of.rows.begin() + static_cast<std::ptrdiff_t>((e * kKvHeads + g + 1) * dim));
    if (!as_they_came) {
      kv_get(of.memory.side, static_cast<int64_t>(e), static_cast<int32_t>(g), values.data());
    }
    return values;
  };
  std::vector<double> out(kHeads * v_dim);
  for (size_t h = 0; h < kHeads; ++h) {
    const size_t g = h / (kHeads / kKvHeads);
    std::vector<double> weights(n);
    double largest = -INFINITY;
    for (size_t e = 0; e < n; ++e) {
      const std::vector<float> key = row(k, k_dim, e, g);
      for (size_t d = 0; d < k_dim; ++d) weights[e] += scale * q[h * k_dim + d] * key[d];
      largest = std::max(largest, weights[e]);
    }
    double sum = 0;
    for (double& w : weights) sum += w = std::exp(w - largest);
    for (size_t e = 0; e < n; ++e) {
      const std::vector<float> value = row(v, v_dim, e, g);
      for (size_t d = 0; d < v_dim; ++d) out[h * v_dim + d] += weights[e] / sum * value[d];
    }
  }
  return out;
}

/// |a - b| over |b|, as norms of the whole.
double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  double off = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(off / size);
}

std::vector<float> draw(int32_t entries, int32_t dim, uint32_t seed, float scale = 1.0F) {
  return random_floats(static_cast<size_t>(entries * kKvHeads * dim), seed, scale);
}

class KvPairs : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, KvPairs, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(KvPairs, AgreeWithWhatTheyDecodeTo) {
  for (const int32_t dim : {64, 96, 128, 256}) {
    const std::vector<float> q = random_floats(static_cast<size_t>(kHeads * dim), 3, 2.0F);
    for (const KvFormat keys : kFormats) {
      const Entries k(keys, KvOrder::kKeys, dim, draw(37, dim, 1));
      for (const KvFormat values : kFormats) {
        const Entries v(values, KvOrder::kValues, dim, draw(37, dim, 2));
        const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
        // Scores of at most a few, each off by dim float roundings.
        EXPECT_LT(relative_error(attend(GetParam(), q, k, v, scale), reference(q, k, v, scale)),
                  256 * 0x1p-23)
            << static_cast<int>(keys) << '/' << static_cast<int>(values) << " of " << dim;
      }
    }
  }
}

TEST_P(KvPairs, ScalesComeWithTheEntries) {
  // What quantising changes is the same part of large numbers, of small ones and of a mixture.
  const int32_t dim = 64;
  const std::vector<float> q = random_floats(kHeads * 64, 3, 2.0F);
  const auto off = [&](KvFormat format, float by, bool mixed) {
    std::vector<float> keys = draw(100, dim, 1);
    std::vector<float> values = draw(100, dim, 2);
    for (float& x : keys) x *= by;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool second_head = i / static_cast<size_t>(dim) % 2 == 1;
      values[i] *= mixed && second_head ? 1.0F / by : by;
    }
    const Entries k(format, KvOrder::kKeys, dim, std::move(keys));
    const Entries v(format, KvOrder::kValues, dim, std::move(values));
    const float scale = 0.125F / by;
    std::vector<float> got = attend(GetParam(), q, k, v, scale);
    std::vector<double> want = reference(q, k, v, scale, true);
    for (size_t i = 0; i < got.size() && mixed; ++i) {  // so that both heads count
      const float back = i < got.size() / 2 ? 1.0F : by * by;
      got[i] *= back;
      want[i] *= back;
    }
    return relative_error(got, want);
  };
  for (const KvFormat format : {KvFormat::kFp8, KvFormat::kQ4, KvFormat::kQ3}) {
    const double plain = off(format, 1.0F, false);
    EXPECT_LT(plain, format == KvFormat::kFp8 ? 0.05 : format == KvFormat::kQ4 ? 0.12 : 0.25);
    for (const float by : {100.0F, 0.01F}) {
      EXPECT_NEAR(off(format, by, false), plain, plain / 4) << by;
      // A group of q3 goes over heads, so that a head beside a far larger one is lost; not so here.
      if (format != KvFormat::kQ3) {
        EXPECT_NEAR(off(format, by, true), plain, plain / 4) << by;
      }
    }
  }
}

TEST_P(KvPairs, LanesThatNobodySeesMayHoldAnything) {
  const int32_t dim = 64;
  const std::vector<float> q = random_floats(kHeads * 64, 3, 2.0F);
  for (const KvFormat format : kFormats) {
    for (const int32_t n : {1, 15, 17, 37}) {
      std::vector<std::vector<float>> got;
      for (const int fill : {0x00, 0xFF, 0x7F}) {  // zeros, NaN, huge
        const Entries k(format, KvOrder::kKeys, dim, draw(n, dim, 1), static_cast<std::byte>(fill));
        const Entries v(format, KvOrder::kValues, dim, draw(n, dim, 2),
                        static_cast<std::byte>(fill));
        got.push_back(attend(GetParam(), q, k, v, 0.125F));
      }
      EXPECT_TRUE(same_bits(got[1], got[0])) << static_cast<int>(format) << ' ' << n;
      EXPECT_TRUE(same_bits(got[2], got[0])) << static_cast<int>(format) << ' ' << n;
    }
  }
}

TEST(KvBits, NothingIsKeptOfWhatLayThereBefore) {
  // What is copied out, as into a saved state, is the same whatever the memory held: also the bits
  // of elements that fill up a group.
  for (const KvFormat format : kFormats) {
    for (const KvOrder order : {KvOrder::kKeys, KvOrder::kValues}) {
      for (const int32_t dim : {1, 5, 7, 16, 33, 64, 80, 100, 300}) {
        std::vector<std::vector<std::byte>> copies;
        for (const int fill : {0x00, 0xFF}) {
          const Entries source(format, order, dim, draw(16, dim, 1), static_cast<std::byte>(fill));
          test::KvMemory copy(format, order, kKvHeads, dim, 16, 0, std::byte{0});
          kv_copy(source.memory.side, 0, copy.side, 0, kKvHeads, 16);
          copies.push_back(copy.bytes);
        }
        EXPECT_EQ(copies[0], copies[1]) << static_cast<int>(format) << " of " << dim;
      }
    }
  }
}

TEST(KvDepth, OneOfThousandsIsFound) {
  // At one level: all have the same bits (attention_test). The query of each head is near one key
  // far back among 8191 others; its value is what comes out.
  const int32_t dim = 64;
  const int32_t n = test::kSanitized ? 1024 : 8192;
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kFp8, KvFormat::kQ4, KvFormat::kQ3}) {
    const Entries k(format, KvOrder::kKeys, dim, draw(n, dim, 1));
    const Entries v(format, KvOrder::kValues, dim, draw(n, dim, 2));
    for (const int32_t at : {0, 1, n / 2 - 1, n - 2}) {
      std::vector<float> q;
      for (int32_t h = 0; h < kHeads; ++h) {
        const auto key = k.rows.begin() + (at * kKvHeads + h / 2) * dim;
        q.insert(q.end(), key, key + dim);
      }
      // The key's own score is about 64 / 3, those of others about 2.7 times a normal variable: the
      // sum of their weights is 8192 exp(2.7^2 / 2), and its share e^-8.5. Up to e^4 more where the
      // key is a short one or its score is off.
      const std::vector<float> got = attend(levels_here().back(), q, k, v, 1.0F);
      std::vector<float> value(got.size());
      for (int32_t h = 0; h < kHeads; ++h) {
        kv_get(v.memory.side, at, h / 2, value.data() + h * dim);
      }
      EXPECT_LT(relative_error(got, {value.begin(), value.end()}), 1e-2)
          << static_cast<int>(format) << " at " << at;
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves rope: sines and cosines against long double, rotation of both kinds against the formula in
// double, head norms, what lands in the cache (float32, binary16, block tables), and that bits do
// not depend on level, batching or threads.
#include <cmath>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/cpu_fixture.h"
#include "engine/rope/rope_sincos.h"
#include "support/kv_side.h"
#include "tensor/half.h"

namespace gen::engine::cpu {
namespace {

TEST(RopeSinCos, IsAccurate) {
  std::mt19937_64 random(1);
  double worst = 0.0;
  const auto check = [&](double x) {
    double s = 0.0;
    double c = 0.0;
    rope_sincos(x, &s, &c);
    const long double wide = x;
    worst = std::max(worst, static_cast<double>(std::fabs(s - std::sin(wide))));
    worst = std::max(worst, static_cast<double>(std::fabs(c - std::cos(wide))));
  };
  for (int i = 0; i < 200000; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    check(unit);
    check(unit * 1e3 - 500.0);
    check(unit * 1e6);
    check(unit * -4294967296.0);
  }
  for (int i = 0; i <= 1000; ++i) check(i * 0.78539816339744831);  // quadrant borders
  for (int i = 0; i <= 1000000; i += 7) check(i);                  // positions of frequency 1
  EXPECT_LT(worst, 3e-16);
}

TEST(RopeSinCos, Ends) {
  double s = 1.0;
  double c = 0.0;
  rope_sincos(0.0, &s, &c);
  EXPECT_EQ(s, 0.0);
  EXPECT_EQ(c, 1.0);
  for (double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e300, 4294967297.0}) {
    rope_sincos(bad, &s, &c);
    EXPECT_TRUE(std::isnan(s) && std::isnan(c));
  }
}

// A frequency table as models have it: base^(-2 i / n).
std::vector<float> frequencies(int32_t dims, double base) {
  std::vector<float> table;
  for (int32_t i = 0; i < dims / 2; ++i) {
    table.push_back(static_cast<float>(std::pow(base, -2.0 * i / dims)));
  }
  return table;
}

std::vector<float> angles(CpuContext& context, const std::vector<float>& inv_freq,
                          std::span<const int32_t> positions, float magnitude) {
  const auto n_dims = static_cast<int64_t>(inv_freq.size()) * 2;
  const auto rows = static_cast<int64_t>(positions.size());
  std::vector<float> cs(positions.size() * inv_freq.size() * 2);
  RopeAnglesArgs args;
  args.inv_freq = engine_ptr(inv_freq.data());
  args.magnitude = magnitude;
  args.positions = engine_ptr(positions.data());
  args.cs = {engine_ptr(cs.data()), rows, n_dims, n_dims};
  EXPECT_TRUE(run(context, args).ok());
  return cs;
}

TEST(RopeAngles, MatchLongDouble) {
  const std::vector<float> inv_freq = frequencies(64, 10000.0);
  const std::vector<int32_t> positions = {0, 1, 2, 1023, 131071, 999999};
  CpuBench bench;
  const std::vector<float> cs = angles(*bench, inv_freq, positions, 1.25F);
  for (size_t t = 0; t < positions.size(); ++t) {
    for (size_t i = 0; i < inv_freq.size(); ++i) {
      const long double angle = static_cast<long double>(positions[t]) * inv_freq[i];
      // Half an ulp of a float up to 1.25, and the error of the double angle.
      ASSERT_NEAR(cs[(t * 32 + i) * 2], static_cast<double>(1.25L * std::cos(angle)), 7e-8);
      ASSERT_NEAR(cs[(t * 32 + i) * 2 + 1], static_cast<double>(1.25L * std::sin(angle)), 7e-8);
    }
  }
  EXPECT_EQ(cs[0], 1.25F);
  EXPECT_EQ(cs[1], 0.0F);
}

TEST(RopeAngles, ThreadsDoNotShow) {
  const std::vector<float> inv_freq = frequencies(128, 1e6);
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < 300; ++i) positions.push_back(i * 37);
  CpuBench one;
  CpuBench four(CpuLevel::kScalar, 4);
  EXPECT_TRUE(
      same_bits(angles(*one, inv_freq, positions, 1.0F), angles(*four, inv_freq, positions, 1.0F)));
}

struct AppendCase {
  int32_t rows = 5;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t k_dim = 20;
  int32_t v_dim = 12;
  RopeKind kind = RopeKind::kHalves;
  int32_t rope_dims = 16;
  bool norms = false;
  bool norm_last = false;
  KvFormat format = KvFormat::kF32;
  int32_t block_size = 0;
  int32_t first_entry = 3;

  // Results.
  std::vector<float> q;
  std::vector<float> k;  // as read back from the cache, [rows, kv_heads, k_dim]
  std::vector<float> v;

  [[nodiscard]] std::vector<float> q_in() const {
    return random_floats(static_cast<size_t>(rows * heads * k_dim), 1);
  }
  [[nodiscard]] std::vector<float> k_in() const {
    return random_floats(static_cast<size_t>(rows * kv_heads * k_dim), 2);
  }
  [[nodiscard]] std::vector<float> v_in() const {
    return random_floats(static_cast<size_t>(rows * kv_heads * v_dim), 3);
  }
  [[nodiscard]] std::vector<float> q_norm() const {
    return random_floats(static_cast<size_t>(k_dim), 4);
  }
  [[nodiscard]] std::vector<float> k_norm() const {
    return random_floats(static_cast<size_t>(k_dim), 5);
  }
  [[nodiscard]] std::vector<float> cs(CpuContext& context) const {
    std::vector<int32_t> positions;
    for (int32_t t = 0; t < rows; ++t) positions.push_back(first_entry + t);
    return angles(context, frequencies(rope_dims, 100.0), positions, 1.0F);
  }

  [[nodiscard]] std::vector<float> read(const KvSide& side) const {
    std::vector<float> out;
    for (int32_t e = first_entry; e < first_entry + rows; ++e) {
      for (int32_t g = 0; g < kv_heads; ++g) {
        for (int32_t d = 0; d < side.head_dim; ++d) out.push_back(test::kv_read(side, e, g, d));
      }
    }
    return out;
  }

  /// All rows in calls of `step` rows.
  void run(CpuLevel level, int32_t threads, int32_t step) {
    CpuBench bench(level, threads);
    q = q_in();
    const std::vector<float> keys = k_in();
    const std::vector<float> values = v_in();
    const std::vector<float> weights_q = q_norm();
    const std::vector<float> weights_k = k_norm();
    const std::vector<float> cosines = cs(*bench);
    const int32_t entries = first_entry + rows;
    test::KvMemory k_memory(format, KvOrder::kKeys, kv_heads, k_dim, entries, block_size);
    test::KvMemory v_memory(format, KvOrder::kValues, kv_heads, v_dim, entries, block_size);
    for (int32_t first = 0; first < rows; first += step) {
      const int32_t n = std::min(step, rows - first);
      SequenceRows sequence;
      sequence.n_rows = n;
      sequence.first_entry = first_entry + first;
      sequence.view.k = k_memory.side;
      sequence.view.v = v_memory.side;
      sequence.view.kv_heads = kv_heads;
      sequence.view.entries = sequence.first_entry + n;
      AppendArgs args;
      const int64_t q_cols = heads * k_dim;
      const int64_t k_cols = kv_heads * k_dim;
      const int64_t v_cols = kv_heads * v_dim;
      args.q = {q.data() + first * q_cols, n, q_cols, q_cols};
      args.k = {keys.data() + first * k_cols, n, k_cols, k_cols};
      args.v = {values.data() + first * v_cols, n, v_cols, v_cols};
      args.n_heads = heads;
      args.n_kv_heads = kv_heads;
      args.k_dim = k_dim;
      args.v_dim = v_dim;
      if (norms) {
        args.q_norm = weights_q.data();
        args.k_norm = weights_k.data();
        args.norm_eps = 1e-6F;
        args.norm_last = norm_last;
      }
      args.rope = kind;
      args.rope_dims = kind == RopeKind::kNone ? 0 : rope_dims;
      args.cs = {cosines.data() + first * rope_dims, n, rope_dims, rope_dims};
      args.sequences = {&sequence, 1};
      ASSERT_TRUE(append(*bench, args).ok());
    }
    k = read(k_memory.side);
    v = read(v_memory.side);
  }

  /// What heads should be, in double.
  [[nodiscard]] std::vector<double> reference(const std::vector<float>& in, int32_t n_heads,
                                              const std::vector<float>& norm) const {
    std::vector<double> out;
    const std::vector<float> inv_freq = frequencies(rope_dims, 100.0);
    for (int32_t t = 0; t < rows; ++t) {
      for (int32_t h = 0; h < n_heads; ++h) {
        std::vector<double> head;
        double squares = 0.0;
        for (int32_t d = 0; d < k_dim; ++d) {
          head.push_back(in[static_cast<size_t>((t * n_heads + h) * k_dim + d)]);
          squares += head.back() * head.back();
        }
        // Rotation keeps the sum of squares.
        const double factor = 1.0 / std::sqrt(squares / k_dim + 1e-6F);
        const auto normalise = [&] {
          for (size_t d = 0; d < head.size(); ++d) head[d] *= factor * norm[d];
        };
        if (norms && !norm_last) normalise();
        const int32_t pairs = kind == RopeKind::kNone ? 0 : rope_dims / 2;
        for (int32_t i = 0; i < pairs; ++i) {
          const bool adjacent = kind == RopeKind::kAdjacent;
          double& x = head[static_cast<size_t>(adjacent ? 2 * i : i)];
          double& y = head[static_cast<size_t>(adjacent ? 2 * i + 1 : i + pairs)];
          const double angle =
              static_cast<double>(first_entry + t) * inv_freq[static_cast<size_t>(i)];
          const double turned = x * std::cos(angle) - y * std::sin(angle);
          y = x * std::sin(angle) + y * std::cos(angle);
          x = turned;
        }
        if (norms && norm_last) normalise();
        out.insert(out.end(), head.begin(), head.end());
      }
    }
    return out;
  }
};

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
}

class RopeAppendTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, RopeAppendTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(RopeAppendTest, RotatesAndStores) {
  for (RopeKind kind : {RopeKind::kNone, RopeKind::kAdjacent, RopeKind::kHalves}) {
    for (int32_t rope_dims : {2, 16, 20}) {
      for (const int norms : {0, 1, 2}) {
        for (KvFormat format : {KvFormat::kF32, KvFormat::kF16}) {
          AppendCase c;
          c.kind = kind;
          c.rope_dims = rope_dims;
          c.norms = norms > 0;
          c.norm_last = norms == 2;
          c.format = format;
          c.run(GetParam(), 1, c.rows);
          // Values up to 5 after a norm: a handful of float roundings, and half's own.
          const double exact = 5.0 * 8 * 0x1p-24;
          const double stored = format == KvFormat::kF32 ? exact : 5.0 * 0x1p-11;
          expect_near(c.q, c.reference(c.q_in(), c.heads, c.q_norm()), exact);
          expect_near(c.k, c.reference(c.k_in(), c.kv_heads, c.k_norm()), stored);
          const std::vector<float> v = c.v_in();
          for (size_t i = 0; i < v.size(); ++i) {
            const float want = format == KvFormat::kF32 ? v[i] : f16_to_f32(f32_to_f16(v[i]));
            ASSERT_EQ(c.v[i], want);
          }
        }
      }
    }
  }
}

TEST_P(RopeAppendTest, BitsDependOnTheRowAlone) {
  for (KvFormat format : {KvFormat::kF32, KvFormat::kF16}) {
    AppendCase want;
    want.rows = 41;
    want.heads = 12;
    want.k_dim = 64;
    want.rope_dims = 48;
    want.norms = true;
    want.format = format;
    AppendCase got = want;
    want.run(CpuLevel::kScalar, 1, 41);
    for (int32_t threads = 1; threads <= 4; ++threads) {
      for (int32_t step : {1, 7, 41}) {
        for (int32_t block_size : {0, 1, 5, 64}) {
          got.block_size = block_size;
          got.run(GetParam(), threads, step);
          ASSERT_TRUE(same_bits(got.q, want.q));
          ASSERT_TRUE(same_bits(got.k, want.k));
          ASSERT_TRUE(same_bits(got.v, want.v));
        }
      }
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

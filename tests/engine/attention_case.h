// SPDX-License-Identifier: Apache-2.0
// A sequence in a cache of any format with queries for its last rows, and the plain softmax in
// double precision that its attention is compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/cpu/attention/attention.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/cpu_fixture.h"
#include "support/kv_side.h"
#include "tensor/half.h"

namespace gen::engine::cpu {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct AttentionShape {
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t k_dim = 16;
  int32_t v_dim = 16;
  KvFormat format = KvFormat::kF32;
};

constexpr KvFormat kEveryFormat[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kFp8, KvFormat::kQ4,
                                     KvFormat::kQ3};

/// Keys or values of `entries` entries, as floats and as stored.
struct AttentionSide {
  test::KvMemory memory;
  int32_t kv_heads;
  std::vector<float> values;  // as decoded, [entries, kv_heads, dim]

  AttentionSide(const AttentionShape& shape, KvOrder order, int32_t dim, int32_t entries,
                uint32_t seed, int32_t block_size)
      : memory(shape.format, order, shape.kv_heads, dim, entries, block_size),
        kv_heads(shape.kv_heads) {
    const size_t row = static_cast<size_t>(shape.kv_heads) * static_cast<size_t>(dim);
    values = random_floats(static_cast<size_t>(entries) * row, seed);
    for (int32_t e = 0; e < entries; ++e) put(e, values.data() + static_cast<size_t>(e) * row, row);
  }

  /// Writes a row and keeps in `values` what can be read back.
  void put(int32_t e, const float* row, size_t n) {
    const auto dim = static_cast<size_t>(memory.side.head_dim);
    if (memory.side.format != KvFormat::kF32 && memory.side.format != KvFormat::kF16) {
      kv_put(memory.side, e, kv_heads, row);
      for (int32_t head = 0; head < kv_heads; ++head) {
        kv_get(memory.side, e, head,
               values.data() + static_cast<size_t>(e) * n + static_cast<size_t>(head) * dim);
      }
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      const auto head = static_cast<int32_t>(i / dim);
      const auto d = static_cast<int32_t>(i % dim);
      test::kv_write(memory.side, e, head, d, row[i]);
      values[static_cast<size_t>(e) * n + i] = test::kv_read(memory.side, e, head, d);
    }
  }
};

/// A sequence in a cache with queries for its last `rows` entries.
struct AttentionCase {
  AttentionShape shape;
  int32_t entries;
  int32_t rows;
  AttentionSide k;
  AttentionSide v;
  std::vector<float> q;
  float scale = 0.25F;
  float soft_cap = 0.0F;
  std::vector<float> sinks;  // of heads, or empty
  int32_t window = 0;
  int32_t chunk = 0;
  int32_t first_position = 0;
  std::vector<int32_t> cells;  // of entries from first_cell on, or empty
  int32_t first_cell = 0;
  std::vector<int32_t> positions;
  std::vector<float> log_weights;
  std::vector<uint64_t> visible;

  AttentionCase(const AttentionShape& s, int32_t n_entries, int32_t n_rows, int32_t block_size = 0)
      : shape(s),
        entries(n_entries),
        rows(n_rows),
        k(s, KvOrder::kKeys, s.k_dim, n_entries, 1, block_size),
        v(s, KvOrder::kValues, s.v_dim, n_entries, 2, block_size),
        q(random_floats(static_cast<size_t>(n_rows * s.heads * s.k_dim), 3, 2.0F)) {}

  [[nodiscard]] SequenceRows sequence(int32_t first, int32_t n) const {
    SequenceRows result;
    result.n_rows = n;
    result.first_entry = entries - rows + first;
    result.view.k = k.memory.side;
    result.view.v = v.memory.side;
    result.view.kv_heads = shape.kv_heads;
    result.view.entries = result.first_entry + n;
    result.view.window = window;
    result.view.chunk = chunk;
    for (KvSide* side : {&result.view.k, &result.view.v}) {
      side->cells = cells.empty() ? nullptr : cells.data() + first_cell;
      side->first_cell = first_cell;
    }
    result.view.first_position = first_position;
    result.view.positions = positions.empty() ? nullptr : positions.data();
    result.view.log_weights = log_weights.empty() ? nullptr : log_weights.data();
    result.visible = visible.empty() ? nullptr : visible.data();
    return result;
  }

  [[nodiscard]] size_t out_cols() const { return static_cast<size_t>(shape.heads * shape.v_dim); }

  /// Rows [first, first + n) in one call.
  std::vector<float> run(CpuContext& context, int32_t first, int32_t n) const {
    std::vector<float> out(static_cast<size_t>(n) * out_cols(), kNan);
    const SequenceRows rows_of_call = sequence(first, n);
    AttendArgs args;
    const int64_t q_cols = shape.heads * shape.k_dim;
    args.q = {q.data() + first * q_cols, n, q_cols, q_cols};
    const auto cols = static_cast<int64_t>(out_cols());
    args.out = {out.data(), n, cols, cols};
    args.n_heads = shape.heads;
    args.n_kv_heads = shape.kv_heads;
    args.k_dim = shape.k_dim;
    args.v_dim = shape.v_dim;
    args.scale = scale;
    args.soft_cap = soft_cap;
    args.sinks = sinks.empty() ? nullptr : sinks.data();
    args.sequences = {&rows_of_call, 1};
    EXPECT_TRUE(attend(context, args).ok());
    return out;
  }
  std::vector<float> run(CpuLevel level, int32_t threads = 1) const {
    CpuBench bench(level, threads);
    return run(*bench, 0, rows);
  }

  [[nodiscard]] bool sees(int32_t row, int32_t entry) const {
    const int32_t own = entries - rows + row;
    const int32_t column = entry - (entries - rows);
    if (visible.empty() || column < 0) {
      if (entry > own) return false;
    } else if (((visible[static_cast<size_t>(row)] >> column) & 1u) == 0) {
      return false;
    }
    const auto at = [&](int32_t e) {
      return positions.empty() ? first_position + e : positions[static_cast<size_t>(e)];
    };
    if (chunk != 0 && at(entry) / chunk < at(own) / chunk) return false;
    if (window == 0) return true;
    if (!positions.empty()) {
      return positions[static_cast<size_t>(entry)] > positions[static_cast<size_t>(own)] - window;
    }
    return entry > own - window;
  }
};

// The error bound of the float result: a score is a sum of k_dim products with |q| <= 2, |k| <= 1,
// so its rounding error is at most (k_dim + 1) eps * sum|q k| * scale, plus the cap's few ulp; an
// error d of a score changes weights by a factor e^d; the rest (exp 2.5 ulp, sums over lanes and
// chunks, normalisation) is relative to sum p |v|.
inline void expect_near_reference(const AttentionCase& c, const std::vector<float>& got) {
  constexpr double kEps = 0x1p-24;
  const auto k_dim = static_cast<size_t>(c.shape.k_dim);
  const auto v_dim = static_cast<size_t>(c.shape.v_dim);
  const auto kv_heads = static_cast<size_t>(c.shape.kv_heads);
  const auto group = static_cast<size_t>(c.shape.heads) / kv_heads;
  for (int32_t row = 0; row < c.rows; ++row) {
    for (size_t h = 0; h < static_cast<size_t>(c.shape.heads); ++h) {
      const size_t g = h / group;
      const float* q = c.q.data() + (static_cast<size_t>(row * c.shape.heads) + h) * k_dim;
      std::vector<double> scores;
      std::vector<size_t> seen;
      double score_error = 0.0;
      for (int32_t e = 0; e < c.entries; ++e) {
        if (!c.sees(row, e)) continue;
        const float* key = c.k.values.data() + (static_cast<size_t>(e) * kv_heads + g) * k_dim;
        double dot = 0.0;
        double size = 0.0;
        for (size_t d = 0; d < k_dim; ++d) {
          dot += static_cast<double>(q[d]) * key[d];
          size += std::fabs(static_cast<double>(q[d]) * key[d]);
        }
        double score = dot * c.scale;
        score_error = std::max(score_error,
                               size * std::fabs(c.scale) * (static_cast<double>(k_dim) + 2) * kEps);
        if (c.soft_cap != 0.0F) {
          score = c.soft_cap * std::tanh(score / c.soft_cap);
          score_error += 6 * kEps * c.soft_cap;
        }
        if (!c.log_weights.empty()) score += c.log_weights[static_cast<size_t>(e)];
        score_error = std::max(score_error, 2 * kEps * std::fabs(score));
        scores.push_back(score);
        seen.push_back(static_cast<size_t>(e));
      }
      if (!c.sinks.empty()) {
        scores.push_back(c.sinks[h]);  // the last score, without a value
        score_error = std::max(score_error, 2 * kEps * std::fabs(scores.back()));
      }
      const double largest = scores.empty() ? 0.0 : *std::max_element(scores.begin(), scores.end());
      double sum = 0.0;
      for (double& s : scores) sum += (s = std::exp(s - largest));
      const auto n = static_cast<double>(scores.size());
      const double relative =
          2 * std::expm1(2 * score_error) + (std::min(n, 256.0) + n / 256 * 8 + 32) * kEps;
      for (size_t d = 0; d < v_dim; ++d) {
        double want = 0.0;
        double size = 0.0;
        for (size_t i = 0; i < seen.size(); ++i) {
          const double value = c.v.values[(seen[i] * kv_heads + g) * v_dim + d];
          want += scores[i] / sum * value;
          size += scores[i] / sum * std::fabs(value);
        }
        const float out = got[(static_cast<size_t>(row * c.shape.heads) + h) * v_dim + d];
        ASSERT_NEAR(out, want, relative * size + 1e-30)
            << "row " << row << " head " << h << " element " << d;
      }
    }
  }
}

}  // namespace gen::engine::cpu

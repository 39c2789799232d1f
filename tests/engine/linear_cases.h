// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of products, packing and look-ups: random weights in any format, engines of
// every level this machine runs, rows in engine memory, and references in double precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "engine/access.h"
#include "engine/backend/registry.h"
#include "engine/cpu/pack/activations.h"
#include "quant/format.h"
#include "tensor/half.h"
#include "support/weight_blocks.h"

namespace gen::engine {

inline std::vector<CpuLevel> levels_here() {
  std::vector<CpuLevel> levels;
  for (const NamedCpuLevel& row : kCpuLevels) {
    if (cpu_level_runs(row.level, detect_cpu_level())) levels.push_back(row.level);
  }
  return levels;
}

inline std::shared_ptr<Engine> make_engine(CpuLevel level, int32_t threads,
                                           Allocator* allocator = &system_allocator()) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool.ok());
  EngineOptions options;
  options.pool = pool.value();
  options.allocator = allocator;
  options.cpu_level = level;
  auto engine = create_engine("cpu", options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

/// As make_engine, but cached: starting threads again and again costs more than the tests.
inline Engine& shared_engine(CpuLevel level, int32_t threads) {
  static std::map<std::pair<uint32_t, int32_t>, std::shared_ptr<Engine>> engines;
  std::shared_ptr<Engine>& engine = engines[{level.features, threads}];
  if (engine == nullptr) engine = make_engine(level, threads);
  return *engine;
}

/// Approximately normally distributed, as weights and activations are.
inline std::vector<float> random_floats(uint64_t seed, int64_t n, float size = 1.0F) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = uniform_double(seed, 1, i) + uniform_double(seed, 2, i);
    const double b = uniform_double(seed, 3, i) + uniform_double(seed, 4, i);
    x[i] = static_cast<float>(a - b) * size;
  }
  return x;
}

/// A matrix as in a file, starting at an odd address, and its values. Encoding is slow, so large
/// quantised ones repeat their blocks; by a prime number of them, so that rows nearby differ.
struct TestMatrix {
  DType type;
  int64_t rows;
  int64_t cols;
  std::vector<std::byte> bytes;  // one byte too long
  std::vector<float> values;

  TestMatrix(DType type_in, int64_t rows_in, int64_t cols_in, uint64_t seed)
      : type(type_in), rows(rows_in), cols(cols_in) {
    constexpr int64_t kDifferentBlocks = 61;
    const int64_t block = dtype_info(type)->block_elements;
    const int64_t encoded =
        block == 1 ? rows * cols : std::min(rows * cols, kDifferentBlocks * block);
    const std::vector<float> x = random_floats(seed, encoded, 0.3F);
    uint64_t row_bytes = 0;
    uint64_t encoded_bytes = 0;
    EXPECT_TRUE(dtype_row_bytes(type, static_cast<uint64_t>(cols), &row_bytes));
    EXPECT_TRUE(dtype_row_bytes(type, static_cast<uint64_t>(encoded), &encoded_bytes));
    bytes.resize(row_bytes * static_cast<uint64_t>(rows) + 1);
    values.resize(static_cast<size_t>(rows * cols));
    const quant::Format* format = quant::find_format(type);
    test::write_weights(type, x.data(), bytes.data() + 1, encoded);
    for (size_t i = encoded_bytes + 1; i < bytes.size(); ++i) bytes[i] = bytes[i - encoded_bytes];
    format->decode(bytes.data() + 1, values.data(), rows * cols);
  }

  /// The largest magnitude of `values`, which a test may have changed until it first asks.
  [[nodiscard]] double largest() const {
    if (largest_ < 0.0) {
      for (const float value : values) {
        largest_ = std::max(largest_, std::fabs(static_cast<double>(value)));
      }
    }
    return largest_;
  }

  [[nodiscard]] WeightSource source(const char* name = "w") const {
    WeightSource s;
    s.name = name;
    s.type = type;
    s.rows = rows;
    s.cols = cols;
    s.data = std::span<const std::byte>(bytes).subspan(1);
    return s;
  }

 private:
  mutable double largest_ = -1.0;
};

inline std::unique_ptr<Weight> prepare(Engine& engine, WeightRole role,
                                       std::vector<WeightSource> sources) {
  auto weight = engine.prepare(role, sources, nullptr);
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  return std::move(weight).value();
}

/// Rows in engine memory in all forms of a weight.
struct PackedRows {
  Buffer memory;
  Activations view;

  PackedRows(Engine& engine, uint32_t forms, const std::vector<float>& x, int64_t rows,
             int64_t cols) {
    const size_t bytes = engine.activation_bytes(forms, cols) * static_cast<size_t>(rows);
    memory = std::move(Buffer::allocate(system_allocator(), bytes)).value();
    view = {engine_ptr(memory.data()), forms, rows, cols};
    auto stream = std::move(engine.new_stream()).value();
    PackArgs args;
    args.x = {engine_ptr(x.data()), rows, cols, cols};
    args.y = view;
    EXPECT_TRUE(engine.run(*stream, args).ok());
  }

  /// The values that row t represents in `form`.
  [[nodiscard]] std::vector<double> values(uint32_t form, int64_t t) const {
    std::vector<double> x(static_cast<size_t>(view.cols));
    const std::byte* row = memory.data() +
                           static_cast<size_t>(t) * cpu::packed_row_bytes(view.forms, view.cols) +
                           cpu::packed_form_offset(view.forms, form, view.cols);
    for (size_t c = 0; c < x.size(); ++c) {
      if (form == kActF32) {
        float value;
        std::memcpy(&value, row + c * sizeof(float), sizeof(float));
        x[c] = static_cast<double>(value);
      } else if (form == kActBF16) {
        uint16_t bits;
        std::memcpy(&bits, row + c * sizeof(bits), sizeof(bits));
        x[c] = static_cast<double>(bf16_to_f32(bits));
      } else if (form == kActQ8) {
        const auto& block = reinterpret_cast<const cpu::ActQ8Block*>(row)[c / 32];
        x[c] = static_cast<double>(block.scale) * block.q[c % 32];
      } else {
        const auto& block = reinterpret_cast<const cpu::ActQ8KBlock*>(row)[c / 256];
        x[c] = static_cast<double>(block.scale) * block.q[c % 256];
      }
    }
    return x;
  }
};

/// A product and the sum of magnitudes that its error is measured by.
struct Reference {
  double value;
  double size;
};

inline Reference reference_dot(const TestMatrix& w, int64_t row, const std::vector<double>& x) {
  Reference sum = {0.0, 0.0};
  for (size_t c = 0; c < x.size(); ++c) {
    const auto at = static_cast<size_t>(row * w.cols) + c;
    const double product = static_cast<double>(w.values[at]) * x[c];
    sum.value += product;
    sum.size += std::fabs(product);
  }
  return sum;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace gen::engine

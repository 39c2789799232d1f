// SPDX-License-Identifier: Apache-2.0
// Proves the CUDA engine's operations on recurrent states, to the bit against the CPU engine: a
// sequence that begins and keeps its last row, one with kept rows before and behind, and one that
// goes on.
#include "cuda/engine/op_bench.h"

namespace gen::test {
namespace {

/// Three sequences of 2, 3 and 1 rows over a layer of that shape.
struct Sequences {
  static constexpr int64_t kRows = 6;
  static constexpr int64_t kBefore = 4;  // floats of another layer

  Sequences(OpBench& bench_in, int64_t cells_in, int64_t inputs)
      : bench(bench_in), cells(cells_in + kBefore), kept(inputs + 9) {
    const auto values = [&](uint32_t seed, int64_t n) {
      return bench.put(random_row(static_cast<size_t>(n), seed, 0.5F));
    };
    for (auto& write : writes) write = bench.room(cells);
    keep = bench.room(4 * kept);
    std::vector<engine::StateRows> rows(3);
    rows[0].n_rows = 2;
    rows[0].certain = 1;
    rows[0].keep = keep + 3 * kept;
    rows[1].first_row = 2;
    rows[1].n_rows = 3;
    rows[1].unsettled = 2;
    rows[1].read = values(1, cells);
    rows[1].kept = values(2, 2 * kept);
    rows[1].keep = keep;
    rows[2].first_row = 5;
    rows[2].n_rows = 1;
    rows[2].read = values(3, cells);
    for (size_t i = 0; i < 3; ++i) rows[i].write = writes[i];
    records = bench.put(rows);
  }
  /// Runs the operation; y, states and kept rows.
  template <typename Args>
  std::vector<float> run(Args args, int64_t width) {
    args.y = {bench.room(kRows * (width + 7)), kRows, width, width + 7};
    args.layer = {kBefore, 3, kept};
    args.sequences = records;
    args.n_sequences = 3;
    bench.run(args);
    auto seen = bench.get(args.y.data, kRows * (width + 7));
    const auto add = [&](const auto& at, int64_t n) {
      const auto more = bench.get(at, n);
      seen.insert(seen.end(), more.begin(), more.end());
    };
    for (const auto& write : writes) add(write, cells);
    add(keep, 4 * kept);
    return seen;
  }
  engine::ConstMatrixView rows(uint32_t seed, int64_t cols) {
    return {bench.put(random_row(static_cast<size_t>(kRows * (cols + 5)), seed, 2.0F)), kRows, cols,
            cols + 5};
  }

  OpBench& bench;
  int64_t cells;
  int64_t kept;
  engine::EnginePtr<float> writes[3];
  engine::EnginePtr<float> keep;
  engine::EnginePtr<const engine::StateRows> records;
};

TEST(CudaStates, CausalConv) {
  for (const auto& [taps, act] :
       {std::pair(4, engine::Act::kSilu), std::pair(3, engine::Act::kNone)}) {
    expect_same([&, taps = taps, act = act](OpBench& bench) {
      constexpr int64_t kChannels = 70;
      Sequences sequences(bench, (taps - 1) * kChannels, kChannels);
      engine::CausalConvArgs args;
      args.x = sequences.rows(4, kChannels);
      args.w = bench.put(random_row(static_cast<size_t>(taps * kChannels), 5));
      if (act == engine::Act::kSilu) args.b = bench.put(random_row(kChannels, 6));
      args.taps = taps;
      args.act = act;
      return sequences.run(args, kChannels);
    });
  }
}

TEST(CudaStates, DeltaNet) {
  for (const engine::DeltaShape& shape : {engine::DeltaShape{2, 4, 32, 48, 1e-6F, false},
                                          engine::DeltaShape{2, 6, 16, 16, 1e-6F, true},
                                          engine::DeltaShape{1, 1, 128, 128, 1e-6F, false}}) {
    expect_same([&](OpBench& bench) {
      const int64_t heads = shape.v_heads;
      Sequences sequences(bench, shape.v_cols() * shape.k_dim,
                          shape.k_cols() + shape.v_cols() + 2 * heads);
      engine::DeltaNetArgs args;
      args.qkv = sequences.rows(4, 2 * shape.k_cols() + shape.v_cols());
      args.alpha = sequences.rows(5, heads);
      args.beta = sequences.rows(6, heads);
      args.dt = bench.put(random_row(static_cast<size_t>(heads), 7));
      args.a = bench.put(random_row(static_cast<size_t>(heads), 8));
      args.shape = shape;
      return sequences.run(args, shape.v_cols());
    });
  }
}

TEST(CudaStates, SelectiveScan) {
  struct Shape {
    int64_t heads, channels, groups, size;
  };
  for (const Shape& shape : {Shape{4, 20, 2, 128}, Shape{3, 7, 1, 33}, Shape{2, 16, 1, 200},
                             Shape{70, 1, 1, 16}, Shape{20, 1, 2, 40}}) {
    expect_same([&](OpBench& bench) {
      const int64_t all = shape.heads * shape.channels;
      const int64_t shared = shape.groups * shape.size;
      Sequences sequences(bench, all * shape.size, all + shape.heads + shared);
      const auto vector = [&](uint32_t seed, int64_t n) {
        return bench.put(random_row(static_cast<size_t>(n), seed));
      };
      engine::SelectiveScanArgs args;
      args.x = sequences.rows(4, all);
      args.dt = sequences.rows(5, shape.heads);
      args.b = sequences.rows(6, shared);
      args.c = sequences.rows(7, shared);
      args.n_groups = static_cast<int32_t>(shape.groups);
      args.dt_bias = vector(8, shape.heads);
      args.a = vector(9, shape.channels == 1 ? all * shape.size : shape.heads);
      args.d = vector(10, shape.heads);
      return sequences.run(args, all);
    });
  }
}

}  // namespace
}  // namespace gen::test

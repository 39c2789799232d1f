// SPDX-License-Identifier: Apache-2.0
// Proves add, gated, activate, pack, select_rows and rope_angles of the CUDA engine: the bits of
// the CPU engine on odd sizes, strides and in place, for every activation, also of what is no
// number; nothing is written beside rows.
#include <cmath>
#include <limits>

#include "cuda/engine/op_bench.h"

namespace gen::test {
namespace {

using engine::Act;
using engine::Activation;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Rows a stride apart, of widths that are no multiples of anything; ends of the range among them.
struct Shape {
  int64_t rows = 3;
  int64_t cols = 83;
  int64_t stride = 91;
};

std::vector<float> inputs(const Shape& shape, uint32_t seed, float scale = 4.0F) {
  auto x = random_row(static_cast<size_t>(shape.rows * shape.stride), seed, scale);
  const float ends[] = {0.0F,    -0.0F, 1e-40F,    -1e-40F,    88.5F, -88.5F, 104.5F,
                        -104.5F, 1e30F, kInfinity, -kInfinity, NAN,   -1e30F, 0.625F};
  for (size_t i = 0; i < std::size(ends); ++i) x[5 * i + 1] = ends[i];
  return x;
}

engine::ConstMatrixView in(OpBench& bench, const Shape& shape, const std::vector<float>& x) {
  return {bench.put(x), shape.rows, shape.cols, shape.stride};
}
engine::MatrixView out(OpBench& bench, const Shape& shape) {
  return {bench.room(shape.rows * shape.stride), shape.rows, shape.cols, shape.stride};
}
std::vector<float> all(OpBench& bench, const engine::MatrixView& y) {
  return bench.get(y.data, y.rows * y.stride);
}

TEST(CudaElementwise, Add) {
  expect_same([](OpBench& bench) {
    const Shape shape;
    engine::AddArgs args = {in(bench, shape, inputs(shape, 1)), in(bench, shape, inputs(shape, 2)),
                            out(bench, shape)};
    bench.run(args);
    auto seen = all(bench, args.y);
    args.a = {args.y.data, shape.rows, shape.cols, shape.stride};  // in place
    bench.run(args);
    const auto more = all(bench, args.y);
    seen.insert(seen.end(), more.begin(), more.end());
    return seen;
  });
}

TEST(CudaElementwise, EveryActivation) {
  for (int32_t act = 0; act < engine::kActs; ++act) {
    SCOPED_TRACE(act);
    const Activation activation = {static_cast<Act>(act), 1.7F, 7.0F, 0.5F, 1.3F};
    expect_same([&](OpBench& bench) {
      const Shape shape = {4, 129, 129};
      const engine::GatedArgs args = {in(bench, shape, inputs(shape, 3, 9.0F)),
                                      in(bench, shape, inputs(shape, 4)), out(bench, shape),
                                      activation};
      bench.run(args);
      return all(bench, args.y);
    });
    if (engine::is_gated_only(activation.kind)) continue;
    expect_same([&](OpBench& bench) {
      const Shape shape;
      engine::ActivateArgs args = {in(bench, shape, inputs(shape, 5, 20.0F)), out(bench, shape),
                                   activation};
      bench.run(args);
      return all(bench, args.y);
    });
  }
}

TEST(CudaElementwise, GatesOfRuns) {
  for (const Act act : {Act::kSigmoid, Act::kSoftplus}) {
    for (const int64_t run : {1, 3, 32, 65}) {
      expect_same([&](OpBench& bench) {
        const Shape narrow = {4, 21, 23};
        const Shape wide = {4, 21 * run, 21 * run + 2};
        const engine::GatedArgs args = {in(bench, narrow, inputs(narrow, 8, 9.0F)),
                                        in(bench, wide, inputs(wide, 9)),
                                        out(bench, wide),
                                        {.kind = act}};
        bench.run(args);
        return all(bench, args.y);
      });
    }
  }
}

TEST(CudaElementwise, SelectedRows) {
  expect_same([](OpBench& bench) {
    const Shape shape = {7, 33, 40};
    const engine::SelectRowsArgs args = {in(bench, shape, inputs(shape, 6)),
                                         bench.put(std::vector<int32_t>{6, 0, 3, 3, 1}),
                                         out(bench, {5, 33, 35})};
    bench.run(args);
    return all(bench, args.y);
  });
}

TEST(CudaElementwise, PackedRowsAreRows) {
  OpBench bench(cuda_engine());
  const Shape shape = {5, 37, 41};
  const auto x = inputs(shape, 7);
  const size_t bytes = bench.engine().activation_bytes(engine::kActF32, shape.cols);
  EXPECT_EQ(bytes, 192U);
  const auto packed = bench.room(static_cast<int64_t>(bytes) / 4 * shape.rows);
  bench.run(engine::PackArgs{in(bench, shape, x),
                             {packed.as<std::byte>(), engine::kActF32, shape.rows, shape.cols}});
  const auto got = bench.get(packed, static_cast<int64_t>(bytes) / 4 * shape.rows);
  for (size_t t = 0; t < 5; ++t) {
    const std::vector<float> row(got.begin() + static_cast<int64_t>(t * bytes / 4),
                                 got.begin() + static_cast<int64_t>(t * bytes / 4) + shape.cols);
    const std::vector<float> want(x.begin() + static_cast<int64_t>(t) * shape.stride,
                                  x.begin() + static_cast<int64_t>(t) * shape.stride + shape.cols);
    EXPECT_TRUE(same_bits(row, want)) << "row " << t;
  }
}

TEST(CudaElementwise, Angles) {
  expect_same([](OpBench& bench) {
    std::vector<float> frequencies;
    for (int32_t i = 0; i < 21; ++i) {
      frequencies.push_back(static_cast<float>(std::pow(10000.0, -i / 21.0)));
    }
    const std::vector<int32_t> positions = {0, 1, 2, 3, 1023, 131071, 999999, 2147483647, -5};
    const Shape shape = {9, 42, 50};
    const engine::RopeAnglesArgs args = {bench.put(frequencies), 1.25F, bench.put(positions),
                                         out(bench, shape)};
    bench.run(args);
    return all(bench, args.cs);
  });
}

}  // namespace
}  // namespace gen::test

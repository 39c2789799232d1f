// SPDX-License-Identifier: Apache-2.0
// Proves route, experts and combine on the CUDA engine: routes and sums with the CPU engine's bits,
// experts of quantised weights too, and of float weights with those of a product of one row.
#include <string>

#include "cuda/engine/op_bench.h"
#include "quant/format.h"
#include "quant/traits.h"

namespace gen::test {
namespace {

using engine::Gating;
using engine::Routing;
using engine::WeightRole;
using engine::WeightSource;

std::vector<float> as_floats(const std::vector<int32_t>& words) {
  std::vector<float> all;
  for (const int32_t word : words) {
    all.push_back(static_cast<float>(word >> 16));
    all.push_back(static_cast<float>(word & 0xFFFF));
  }
  return all;
}

engine::Routes route(OpBench& bench, const Routing& routing, const std::vector<float>& logits,
                     bool bias) {
  const int64_t n = routing.n_experts;
  const auto rows = static_cast<int64_t>(logits.size()) / n;
  const int64_t stride = 2 * routing.n_used + 2;
  engine::RouteArgs args;
  args.logits = {bench.put(logits), rows, n, n};
  if (bias) args.bias = bench.put(random_row(static_cast<size_t>(n), 8, 0.3F));
  args.routing = routing;
  args.y = {bench.put(std::vector<int32_t>(static_cast<size_t>(rows * stride), -3)), rows,
            routing.n_used, stride};
  bench.run(args);
  return args.y;
}

TEST(CudaExperts, RoutesHaveTheCpuBits) {
  for (const Gating gating :
       {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxChosen, Gating::kRootSoftplus}) {
    for (const int32_t variant : {0, 1, 2, 3}) {
      Routing routing = {gating, variant == 1 ? 100 : 8, variant == 1 ? 7 : 3};
      routing.normalise = variant >= 1;
      routing.scale = variant >= 2 ? 2.5F : 1.0F;
      if (variant == 3) routing.n_groups = 4;
      if (variant == 3) routing.n_groups_used = 2;
      std::vector<float> logits = random_row(static_cast<size_t>(routing.n_experts) * 5, 3, 4.0F);
      logits[2] = logits[1] = 9.0F;
      logits[static_cast<size_t>(routing.n_experts) + 1] = std::nanf("");
      expect_same([&](OpBench& bench) {
        const engine::Routes y = route(bench, routing, logits, variant >= 2);
        return as_floats(bench.get(y.data, y.rows * y.stride));
      });
    }
  }
}

TEST(CudaExperts, SumsHaveTheCpuBits) {
  const Routing routing = {Gating::kSigmoid, 8, 3};
  for (const int64_t cols : {1, 40, 300}) {
    expect_same([&](OpBench& bench) {
      const engine::Routes y = route(bench, routing, random_row(8 * 5, 3, 2.0F), false);
      engine::CombineArgs args;
      args.x = {bench.put(random_row(static_cast<size_t>(15 * cols), 4)), 15, cols, cols};
      args.routes = {y.data, y.rows, y.n_used, y.stride};
      args.y = {bench.room(5 * cols), 5, cols, cols};
      bench.run(args);
      return bench.get(args.y.data, 5 * cols);
    });
  }
}

/// A stack of matrices of random blocks.
struct Stack {
  Stack(DType type_in, int64_t count_in, int64_t rows_in, int64_t cols_in, uint32_t seed)
      : type(type_in), count(count_in), rows(rows_in), cols(cols_in) {
    const auto n = static_cast<size_t>(count * rows * cols);
    const DTypeInfo* info = dtype_info(type);
    bytes.resize(n / info->block_elements * info->block_bytes);
    quant::find_format(type)->encode(random_row(n, seed, 0.4F).data(), bytes.data(),
                                     static_cast<int64_t>(n));
  }
  [[nodiscard]] WeightSource source() const {
    WeightSource all = {"w", type, rows, cols, bytes, false};
    all.count = count;
    all.pitch = count > 1 ? bytes.size() / static_cast<size_t>(count) : 0;
    return all;
  }

  DType type;
  int64_t count;
  int64_t rows;
  int64_t cols;
  std::vector<std::byte> bytes;
};

struct Case {
  int64_t rows;
  int64_t cols;
  bool gated;
  bool slots;
};

engine::Activations packed(OpBench& bench, uint32_t forms, const std::vector<float>& x,
                           int64_t cols) {
  const auto rows = static_cast<int64_t>(x.size()) / cols;
  const auto stride = static_cast<int64_t>(bench.engine().activation_bytes(forms, cols));
  const std::vector<float> nothing(static_cast<size_t>(rows * stride / 4), std::nanf(""));
  const engine::Activations to = {bench.put(nothing).as<std::byte>(), forms, rows, cols};
  bench.run(engine::PackArgs{{bench.put(x), rows, cols, cols}, to});
  return to;
}

constexpr int64_t kCount = 4;
constexpr int32_t kUsed = 2;
constexpr int64_t kTokens = 3;

std::vector<float> experts(OpBench& bench, DType type, const Case& of, bool each_alone,
                           bool scaled = false) {
  const Stack gate(type, kCount, of.rows, of.cols, 5);
  const Stack up(type, kCount, of.rows, of.cols, 6);
  std::vector<WeightSource> sources = {gate.source()};
  if (of.gated) sources.push_back(up.source());
  const WeightRole role = of.gated ? WeightRole::kGated : WeightRole::kLinear;
  auto weight = bench.engine().prepare(role, sources, nullptr);
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight.value()->count(), kCount);
  const engine::Routes routes =
      route(bench, {Gating::kSoftmax, kCount, kUsed}, random_row(kCount * kTokens, 9, 2.0F), false);
  const int64_t x_rows = of.slots ? kTokens * kUsed : kTokens;
  const std::vector<float> x = random_row(static_cast<size_t>(x_rows * of.cols), 7);
  const uint32_t forms = weight.value()->activation_forms();
  const std::vector<float> bias =
      random_row(static_cast<size_t>(kCount * of.rows * (of.gated ? 2 : 1)), 11);
  const engine::Activation act = {of.gated ? engine::Act::kSilu : engine::Act::kRelu2};
  if (!each_alone) {
    engine::ExpertsArgs args;
    args.weight = weight.value().get();
    args.x = packed(bench, forms, x, of.cols);
    args.routes = {routes.data, routes.rows, routes.n_used, routes.stride};
    args.bias = bench.put(bias);
    if (scaled) args.scales = bench.put(random_row(of.gated ? 2 * kCount : kCount, 21, 3.0F));
    args.activation = act;
    const int64_t all = kTokens * kUsed * (of.rows + 1);
    args.y = {bench.room(all), kTokens * kUsed, of.rows, of.rows + 1};
    bench.run(args);
    return bench.get(args.y.data, all);
  }
  const std::vector<int32_t> words = bench.get(routes.data, routes.rows * routes.stride);
  std::vector<float> y;
  for (int64_t place = 0; place < kTokens * kUsed; ++place) {
    const int64_t t = place / kUsed;
    const int64_t e = words[static_cast<size_t>(t * routes.stride + place % kUsed)];
    std::vector<WeightSource> own;
    for (const WeightSource& source : sources) own.push_back(source.matrix(e));
    auto alone = std::move(bench.engine().prepare(role, own, nullptr)).value();
    std::vector<float> own_bias;
    for (int64_t half = 0; half < (of.gated ? 2 : 1); ++half) {
      const auto from = bias.begin() + (half * kCount + e) * of.rows;
      own_bias.insert(own_bias.end(), from, from + of.rows);
    }
    const auto row = x.begin() + (of.slots ? place : t) * of.cols;
    engine::LinearArgs args;
    args.weight = alone.get();
    args.x = packed(bench, forms, {row, row + of.cols}, of.cols);
    args.bias = bench.put(own_bias);
    args.activation = act;
    args.y = {bench.room(of.rows), 1, of.rows, of.rows};
    bench.run(args);
    const auto one = bench.get(args.y.data, of.rows);
    y.insert(y.end(), one.begin(), one.end());
    y.push_back(7.25F);
  }
  return y;
}

TEST(CudaExperts, ARowHasTheBitsOfItsMatrixAlone) {
  std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16};
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  for (const DType type : types) {
    SCOPED_TRACE(dtype_name(type));
    const bool floats = quant::find_traits(type) == nullptr;
    for (const Case& of : {Case{19, 256, true, false}, {9, 512, false, true}}) {
      OpBench cuda(cuda_engine());
      const std::vector<float> want = experts(cuda, type, of, true);
      const std::vector<float> got = experts(cuda, type, of, false);
      EXPECT_TRUE(same_bits(got, want));
      if (floats) continue;
      OpBench cpu(cpu_engine());
      EXPECT_TRUE(same_bits(got, experts(cpu, type, of, false)));
      const std::vector<float> scaled = experts(cuda, type, of, false, true);
      EXPECT_TRUE(same_bits(scaled, experts(cpu, type, of, false, true)));
      EXPECT_FALSE(same_bits(scaled, got));
    }
  }
  OpBench cuda(cuda_engine());
  const Case odd = {5, 35, true, false};  // columns that are no whole pieces
  EXPECT_TRUE(
      same_bits(experts(cuda, DType::kF32, odd, false), experts(cuda, DType::kF32, odd, true)));
}

}  // namespace
}  // namespace gen::test

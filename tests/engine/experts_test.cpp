// SPDX-License-Identifier: Apache-2.0
// Proves route, experts and combine: choices and weights against double precision, equal logits and
// such as are not numbers, and that a row of experts has the bits of its expert's matrix alone,
// whatever is beside it, in every weight format, on every level and number of threads.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <set>

#include "engine/linear_cases.h"
#include "engine/trace/op_cost.h"
#include "support/reference_engine.h"
#include "support/sanitized.h"

namespace gen::engine {
namespace {

constexpr int32_t kUntouched = 0x7A7A7A7A;

std::vector<DType> all_types() {
  std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16};
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  return types;
}

/// Rows of 2 n_used words, `stride` apart.
struct RouteRows {
  RouteRows(int64_t rows_in, int32_t used_in)
      : rows(rows_in), used(used_in), words(static_cast<size_t>(rows * stride()), kUntouched) {}
  [[nodiscard]] int64_t stride() const { return 2 * used + 3; }
  [[nodiscard]] ConstRoutes view() const {
    return {engine_ptr(words.data()), rows, used, stride()};
  }
  [[nodiscard]] int32_t id(int64_t t, int32_t s) const {
    return words[static_cast<size_t>(t * stride() + s)];
  }
  [[nodiscard]] float weight(int64_t t, int32_t s) const {
    return std::bit_cast<float>(id(t, used + s));
  }

  int64_t rows;
  int32_t used;
  std::vector<int32_t> words;
};

RouteRows route(Engine& engine, const Routing& routing, const std::vector<float>& logits,
                const std::vector<float>* bias = nullptr) {
  const auto n = static_cast<int64_t>(routing.n_experts);
  const int64_t rows = static_cast<int64_t>(logits.size()) / n;
  RouteRows made(rows, routing.n_used);
  auto stream = std::move(engine.new_stream()).value();
  RouteArgs args;
  args.logits = {engine_ptr(logits.data()), rows, n, n};
  if (bias != nullptr) args.bias = engine_ptr(bias->data());
  args.routing = routing;
  args.y = {engine_ptr(made.words.data()), rows, routing.n_used, made.stride()};
  EXPECT_TRUE(engine.run(*stream, args).ok());
  for (int64_t t = 0; t < rows; ++t) {
    for (int32_t i = 2 * routing.n_used; i < made.stride(); ++i) {
      EXPECT_EQ(made.id(t, i), kUntouched);
    }
  }
  return made;
}

std::vector<Routing> routings(int32_t n, int32_t used) {
  std::vector<Routing> all;
  for (const Gating gating :
       {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxChosen, Gating::kRootSoftplus}) {
    for (const bool normalise : {false, true}) {
      Routing of = {gating, n, used};
      of.normalise = normalise;
      if (normalise) of.scale = 2.5F;
      all.push_back(of);
      for (const int32_t groups : {2, 4, n}) {
        of.n_groups = groups;
        of.n_groups_used = groups - groups / 2;
        const bool whole = n % groups == 0 && groups > 1;
        if (whole && n / groups * of.n_groups_used >= used) all.push_back(of);
      }
    }
  }
  return all;
}

TEST(Experts, RoutesAreThoseOfTheFormula) {
  test::ReferenceEngine reference;
  for (const auto& [n, used] : {std::pair{1, 1}, {2, 1}, {8, 2}, {60, 4}, {128, 8}, {20, 20}}) {
    const std::vector<float> logits =
        random_floats(static_cast<uint64_t>(n), int64_t{n} * 33, 4.0F);
    const std::vector<float> bias = random_floats(7, n, 0.3F);
    for (const Routing& routing : routings(n, used)) {
      for (const std::vector<float>* with :
           {static_cast<const std::vector<float>*>(nullptr), &bias}) {
        const RouteRows want = route(reference, routing, logits, with);
        for (const CpuLevel level : levels_here()) {
          for (const int32_t threads : {1, 3}) {
            const RouteRows got = route(shared_engine(level, threads), routing, logits, with);
            for (int64_t t = 0; t < want.rows; ++t) {
              for (int32_t s = 0; s < used; ++s) {
                ASSERT_EQ(got.id(t, s), want.id(t, s)) << n << ' ' << t << ' ' << s;
                ASSERT_NEAR(got.weight(t, s), want.weight(t, s),
                            2e-6F * want.weight(t, s) + 1e-30F);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Experts, RoutesAreTheSameOnAllLevels) {
  const std::vector<float> logits = random_floats(3, 64 * 100, 3.0F);
  for (const Routing& routing : routings(100, 6)) {
    const RouteRows want = route(shared_engine(CpuLevel::kScalar, 1), routing, logits);
    for (const CpuLevel level : levels_here()) {
      EXPECT_EQ(route(shared_engine(level, 3), routing, logits).words, want.words);
    }
  }
}

TEST(Experts, EqualLogitsGoToTheLowest) {
  const int32_t n = 24;
  for (const Routing& routing : routings(n, 5)) {
    for (const CpuLevel level : levels_here()) {
      const RouteRows made = route(shared_engine(level, 1), routing, std::vector<float>(24, 0.25F));
      for (int32_t s = 0; s < 5; ++s) EXPECT_EQ(made.id(0, s), s);
    }
  }
}

TEST(Experts, WhateverTheLogitsExpertsAreThere) {
  const int32_t n = 12;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> logits;
  for (const float one : {nan, inf, -inf, 3e38F, -3e38F}) {
    logits.insert(logits.end(), 12, one);  // all, then one of them
    std::vector<float> some = random_floats(5, n);
    some[7] = one;
    logits.insert(logits.end(), some.begin(), some.end());
  }
  for (const Routing& routing : routings(n, 5)) {
    for (const CpuLevel level : levels_here()) {
      const RouteRows made = route(shared_engine(level, 1), routing, logits);
      for (int64_t t = 0; t < made.rows; ++t) {
        std::set<int32_t> seen;
        for (int32_t s = 0; s < 5; ++s) {
          ASSERT_GE(made.id(t, s), 0);
          ASSERT_LT(made.id(t, s), n);
          ASSERT_TRUE(seen.insert(made.id(t, s)).second);
        }
        if (t == 1 && routing.n_groups == 1) {
          EXPECT_EQ(seen.count(7), 0U) << "a NaN is smallest";
        }
      }
    }
  }
}

/// A stack of `count` matrices; of a fused one `rows` of every `total`, from `first` on.
WeightSource stack_of(const TestMatrix& all, int64_t count, int64_t first, int64_t rows,
                      bool lasting) {
  WeightSource source = all.source();
  const int64_t total = all.rows / count;
  const size_t row = source.data.size() / static_cast<size_t>(all.rows);
  source.rows = rows;
  source.count = count;
  source.pitch = static_cast<size_t>(total) * row;
  source.data = source.data.subspan(static_cast<size_t>(first) * row,
                                    static_cast<size_t>((count - 1) * total + rows) * row);
  source.lasting = lasting;
  return source;
}

std::shared_ptr<Engine> leaving_engine(CpuLevel level) {
  EngineOptions options;
  options.pool = std::move(ThreadPool::create(2)).value();
  options.cpu_level = level;
  options.repack = false;
  return std::move(create_engine("cpu", options)).value();
}

/// Rows of `x` through their experts; y tightly packed.
std::vector<float> experts(Engine& engine, const Weight& weight, const Activations& x,
                           const RouteRows& routes, const std::vector<float>* bias,
                           Activation activation, const std::vector<float>* scales = nullptr) {
  const int64_t n = weight.out_features();
  const int64_t rows = routes.rows * routes.used;
  std::vector<float> y(static_cast<size_t>(rows * n) + 1, -1.0F);
  ExpertsArgs args;
  args.weight = &weight;
  args.x = x;
  args.routes = routes.view();
  if (bias != nullptr) args.bias = engine_ptr(bias->data());
  if (scales != nullptr) args.scales = engine_ptr(scales->data());
  args.activation = activation;
  args.y = {engine_ptr(y.data()), rows, n, n};
  auto stream = std::move(engine.new_stream()).value();
  EXPECT_TRUE(engine.run(*stream, args).ok());
  EXPECT_EQ(y.back(), -1.0F);
  y.pop_back();
  return y;
}

std::vector<float> linear(Engine& engine, const Weight& weight, const Activations& x,
                          const float* bias, Activation activation) {
  std::vector<float> y(static_cast<size_t>(weight.out_features()));
  LinearArgs args;
  args.weight = &weight;
  args.x = x;
  if (bias != nullptr) args.bias = engine_ptr(bias);
  args.activation = activation;
  args.y = {engine_ptr(y.data()), 1, weight.out_features(), weight.out_features()};
  auto stream = std::move(engine.new_stream()).value();
  EXPECT_TRUE(engine.run(*stream, args).ok());
  return y;
}

struct Case {
  DType type;
  int64_t count;
  int64_t rows;
  int64_t cols;
  int64_t tokens;
  int32_t used;
  bool gated;
  bool slots;  // x has a row for each expert of a row
};

void check(Engine& engine, const Case& of, bool lasting) {
  const int64_t total = of.gated ? 2 * of.rows : of.rows;
  const TestMatrix all(of.type, of.count * total, of.cols, 11);
  std::vector<WeightSource> sources;
  for (int64_t i = 0; i < (of.gated ? 2 : 1); ++i) {
    sources.push_back(stack_of(all, of.count, i * of.rows, of.rows, lasting));
  }
  const WeightRole role = of.gated ? WeightRole::kGated : WeightRole::kLinear;
  const Activation act = {of.gated ? Act::kSilu : Act::kRelu2};
  const auto weight = prepare(engine, role, sources);
  ASSERT_EQ(weight->count(), of.count);
  ASSERT_EQ(weight->out_features(), of.rows);
  const std::vector<float> bias = random_floats(5, of.count * of.rows * (of.gated ? 2 : 1));
  Routing routing = {Gating::kSoftmax, static_cast<int32_t>(of.count), of.used};
  const RouteRows routes = route(engine, routing, random_floats(9, of.tokens * of.count, 2.0F));
  const int64_t x_rows = of.slots ? of.tokens * of.used : of.tokens;
  const uint32_t forms = weight->activation_forms();
  const std::vector<float> x = random_floats(4, x_rows * of.cols);
  const PackedRows packed(engine, forms, x, x_rows, of.cols);
  const std::vector<float> y = experts(engine, *weight, packed.view, routes, &bias, act);
  std::vector<std::unique_ptr<Weight>> alone;
  for (int64_t e = 0; e < of.count; ++e) {
    std::vector<WeightSource> own;
    for (const WeightSource& source : sources) own.push_back(source.matrix(e));
    alone.push_back(prepare(engine, role, own));
  }
  for (int64_t t = 0; t < of.tokens; ++t) {
    for (int32_t s = 0; s < of.used; ++s) {
      const int64_t e = routes.id(t, s);
      const int64_t row = of.slots ? t * of.used + s : t;
      const std::vector<float> one(x.begin() + row * of.cols, x.begin() + (row + 1) * of.cols);
      const PackedRows packed_one(engine, forms, one, 1, of.cols);
      std::vector<float> own_bias;
      for (int64_t i = 0; i < (of.gated ? 2 : 1); ++i) {
        const auto from = bias.begin() + (i * of.count + e) * of.rows;
        own_bias.insert(own_bias.end(), from, from + of.rows);
      }
      const auto at = y.begin() + (t * of.used + s) * of.rows;
      ASSERT_TRUE(same_bits(
          std::vector<float>(at, at + of.rows),
          linear(engine, *alone[static_cast<size_t>(e)], packed_one.view, own_bias.data(), act)))
          << dtype_name(of.type) << " row " << t << " expert " << e << " of " << of.count;
    }
  }
}

TEST(Experts, ARowHasTheBitsOfItsMatrixAlone) {
  const int64_t many = test::kSanitized ? 7 : 70;  // ShapesDoNotShow has more than a kernel's rows
  test::Thinned thinned(3);
  for (const DType type : all_types()) {
    for (const CpuLevel level : levels_here()) {
      if (thinned.skips()) continue;
      check(shared_engine(level, 3), {type, 5, 19, 256, 9, 2, true, false}, false);
      check(shared_engine(level, 1), {type, 3, 37, 512, many, 1, false, true}, false);
      check(*leaving_engine(level), {type, 4, 33, 256, 5, 3, true, false}, true);
    }
  }
}

TEST(Experts, ShapesDoNotShow) {
  Engine& engine = shared_engine(levels_here().back(), 3);
  test::Thinned thinned(2);
  for (const int64_t count : {1, 2, 64}) {
    for (const int64_t rows : {1, 16, 150}) {
      for (const int64_t tokens : {1, 2, 150}) {
        if (thinned.skips()) continue;
        const auto used = static_cast<int32_t>(std::min<int64_t>(count, 4));
        check(engine, {DType::kF32, count, rows, 33, tokens, used, false, tokens == 2}, false);
        check(engine, {DType::kQ8_0, count, rows, 64, tokens, used, true, tokens == 2}, false);
      }
    }
  }
}

TEST(Experts, ScalesMultiplySumsAndNoBias) {
  const int64_t count = 5;
  const int64_t n = 37;
  const int64_t tokens = 9;
  const TestMatrix all(DType::kQ8_0, count * 2 * n, 64, 11);
  const std::vector<float> bias = random_floats(5, count * n * 2);
  const std::vector<float> scales = random_floats(6, count * 2, 3.0F);
  const std::vector<float> x = random_floats(4, tokens * 64);
  for (const CpuLevel level : levels_here()) {
    Engine& engine = shared_engine(level, 3);
    const RouteRows routes =
        route(engine, {Gating::kSoftmax, count, 2}, random_floats(9, tokens * count, 2.0F));
    std::vector<WeightSource> sources;
    std::vector<std::vector<float>> sums;
    const PackedRows packed(
        engine,
        prepare(engine, WeightRole::kLinear, {stack_of(all, count, 0, n, false)})
            ->activation_forms(),
        x, tokens, 64);
    for (int64_t i = 0; i < 2; ++i) {
      sources.push_back(stack_of(all, count, i * n, n, false));
      const auto plain = prepare(engine, WeightRole::kLinear, {sources.back()});
      sums.push_back(experts(engine, *plain, packed.view, routes, nullptr, {}));
      const std::vector<float> own(scales.begin() + i * count, scales.begin() + (i + 1) * count);
      const std::vector<float> scaled =
          experts(engine, *plain, packed.view, routes, nullptr, {}, &own);
      for (size_t at = 0; at < scaled.size(); ++at) {
        const int64_t row = static_cast<int64_t>(at) / n;
        const auto e = static_cast<size_t>(routes.id(row / 2, static_cast<int32_t>(row % 2)));
        sums.back()[at] *= own[e];
        ASSERT_EQ(scaled[at], sums.back()[at]);
        sums.back()[at] += bias[(static_cast<size_t>(i * count) + e) * static_cast<size_t>(n) +
                                at % static_cast<size_t>(n)];
      }
    }
    const auto gated = prepare(engine, WeightRole::kGated, sources);
    const std::vector<float> got = experts(engine, *gated, packed.view, routes, &bias, {}, &scales);
    for (size_t at = 0; at < got.size(); ++at) {
      ASSERT_NEAR(got[at], sums[0][at] * sums[1][at], 1e-6F * std::fabs(got[at]) + 1e-6F);
    }
  }
}

TEST(Experts, SumsAreThoseOfTheFormula) {
  test::ReferenceEngine reference;
  for (const CpuLevel level : levels_here()) {
    for (const int32_t threads : {1, 3}) {
      Engine& engine = shared_engine(level, threads);
      for (const int64_t cols : {1, 16, 300}) {
        const RouteRows routes =
            route(engine, {Gating::kSigmoid, 9, 4}, random_floats(2, 9 * 70, 2.0F));
        const std::vector<float> x = random_floats(3, 70 * 4 * cols);
        const auto combine = [&](Engine& by) {
          std::vector<float> y(static_cast<size_t>(70 * cols));
          CombineArgs args;
          args.x = {engine_ptr(x.data()), 70 * 4, cols, cols};
          args.routes = routes.view();
          args.y = {engine_ptr(y.data()), 70, cols, cols};
          auto stream = std::move(by.new_stream()).value();
          EXPECT_TRUE(by.run(*stream, args).ok());
          return y;
        };
        const std::vector<float> want = combine(reference);
        const std::vector<float> got = combine(engine);
        for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6F);
        EXPECT_TRUE(same_bits(got, combine(shared_engine(CpuLevel::kScalar, 1))));
      }
    }
  }
}

TEST(Experts, CostIsThatOfTheExpertsThatAreRead) {
  Engine& engine = shared_engine(CpuLevel::kScalar, 1);
  const TestMatrix all(DType::kF32, 6 * 32, 16, 1);
  const auto weight = prepare(engine, WeightRole::kGated,
                              {stack_of(all, 6, 0, 16, false), stack_of(all, 6, 16, 16, false)});
  for (const int64_t tokens : {1, 2, 5}) {
    ExpertsArgs args;
    args.weight = weight.get();
    args.y.rows = tokens * 2;
    const OpCost cost = op_cost(args);
    EXPECT_EQ(cost.products, tokens * 2 * 2 * 16 * 16);
    EXPECT_EQ(cost.bytes, std::min<int64_t>(tokens * 2, 6) * 2 * 16 * 16 * 4);
  }
}

TEST(Experts, StacksThatDoNotFitAreRefused) {
  Engine& engine = shared_engine(CpuLevel::kScalar, 1);
  const TestMatrix all(DType::kF32, 12, 8, 1);
  const WeightSource good = stack_of(all, 3, 0, 4, false);
  const auto refused = [&](WeightRole role, std::vector<WeightSource> sources) {
    return std::string(engine.prepare(role, sources, nullptr).status().message());
  };
  WeightSource bad = good;
  bad.count = 4;
  EXPECT_EQ(refused(WeightRole::kLinear, {bad}),
            "tensor w has 384 bytes, but 4 of 4 by 8 of F32 do not");
  bad = good;
  bad.pitch = 16;
  EXPECT_NE(refused(WeightRole::kLinear, {bad}), "");
  bad = good;
  bad.count = 0;
  EXPECT_EQ(refused(WeightRole::kLinear, {bad}), "tensor w has 0 matrices");
  EXPECT_EQ(refused(WeightRole::kGated, {good, good.matrix(0)}),
            "tensor w of 1 matrices does not fit tensor w of 3");
  EXPECT_EQ(refused(WeightRole::kEmbedding, {good}),
            "tensor w of 3 matrices does not fit tensor w of 1");
}

}  // namespace
}  // namespace gen::engine

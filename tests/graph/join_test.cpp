// SPDX-License-Identifier: Apache-2.0
// Proves that a joined value is the columns of its parts one after another, whatever operations
// make these and however a plan is made: to the bit what products with copies of them give, and for
// norms and features what plain arithmetic in double precision says; and that features are those of
// the caller's rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cache/sequence/registry.h"
#include "cache/state/recurrent_state.h"
#include "support/cpu_engine.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

using engine::Op;
using Floats = std::vector<float>;

constexpr int64_t kWidth = 24;  // no multiple of 16, so that strides differ from widths
constexpr int64_t kResult = 2 * kWidth;
constexpr int32_t kContext = 32;
constexpr int32_t kVocab = 20;

/// What a part of a joined value is made by.
enum class Part : int32_t {
  kFeatures,
  kRmsNorm,
  kNormOfSum,
  kNormOfFeatures,
  kLayerNorm,
  kNormInGroups,
  kEmbedTokens,
  kEmbedPositions,
  kEmbedRow,
  kActivate,
  kActivatedProduct,
  kGated,
  kGatedProducts,
  kAdd,
  kResidual,
  kPositionScale,
  kAttention,
  kScan,
  kCausalConv,
  kSelectiveScan,
  kExperts,
};
constexpr auto kLastPart = static_cast<int32_t>(Part::kExperts);

bool has_features(Part part) { return part == Part::kFeatures || part == Part::kNormOfFeatures; }

class JoinedGraph {
 public:
  /// `joins`: the head reads a joined value; otherwise sums of products with ones and zeros, which
  /// are the same columns.
  JoinedGraph(Part first, Part second, bool joins) {
    GraphBuilder b;
    x_ = b.embed(matrix("table", kVocab, kWidth));
    b.begin_block(0);
    const ValueId one = part(b, first);
    const ValueId two = part(b, second);
    b.begin_block(1);  // where another engine may be
    ValueId both;
    if (joins) {
      both = b.linear(b.join(one, two), columns("copy", 0, kResult), {}, -1);
    } else {
      both = b.add(b.linear(one, columns("left", 0, kWidth), {}, -1),
                   b.linear(two, columns("right", kWidth, kWidth), {}, -1));
    }
    b.begin_block(2);
    b.result(b.select_rows(both));
    auto made = b.finish();
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made.ok()) graph_ = std::move(made).value();
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  /// Values of the n-th tensor that was made.
  [[nodiscard]] const Floats& values(size_t n) const { return held_[n]; }

 private:
  ValueId part(GraphBuilder& b, Part of) {
    const ValueId x = x_;
    switch (of) {
      case Part::kFeatures:
        return b.features(kWidth);
      case Part::kNormOfFeatures:
        return b.rms_norm(b.features(kWidth), vector(kWidth), 1e-5F);
      case Part::kRmsNorm:
        return b.rms_norm(x, vector(kWidth), 1e-5F);
      case Part::kNormOfSum:
        return b.rms_norm(b.add(x, positions(b)), vector(kWidth), 1e-5F);
      case Part::kLayerNorm:
        return b.layer_norm(x, vector(kWidth), vector(kWidth), 1e-5F);
      case Part::kNormInGroups:
        return b.rms_norm_in_groups(x, vector(kWidth), 1e-5F, 3);
      case Part::kEmbedTokens:
        return b.embed(matrix("again", kVocab, kWidth), 0.5F);
      case Part::kEmbedPositions:
        return positions(b);
      case Part::kEmbedRow:
        return b.embed_row(matrix("types", 3, kWidth), 2);
      case Part::kActivate:
        return b.apply(Op::kActivate, {x}, {engine::Act::kGelu});
      case Part::kActivatedProduct:
        return b.apply(Op::kActivate, {product(b, x)}, {engine::Act::kSilu});
      case Part::kGated:
        return b.apply(Op::kGated, {x, positions(b)}, {engine::Act::kSilu});
      case Part::kGatedProducts:
        return b.apply(Op::kGated, {product(b, x), product(b, x)}, {engine::Act::kSilu});
      case Part::kAdd:
        return b.add(x, positions(b));
      case Part::kResidual:
        return b.add(x, product(b, x));
      case Part::kPositionScale:
        return b.position_scale(x, Floats{1.0F, 3.0F}, 4);
      case Part::kAttention:
        return attention(b);
      case Part::kScan:
        return b.scan(product(b, x), positions(b), x);
      case Part::kCausalConv:
        return b.causal_conv(x, vector(kWidth * 3), {}, engine::Act::kSilu);
      case Part::kSelectiveScan: {
        const Floats rates = {-0.4F, -1.5F};
        return b.selective_scan(product(b, x), b.slice(x, 3, 2), b.slice(x, 5, 6),
                                b.slice(x, 11, 6), {2, rates, rates, rates});
      }
      case Part::kExperts:
        return experts(b);
    }
    return {};
  }
  ValueId positions(GraphBuilder& b) {
    return b.embed(matrix("places", kContext, kWidth), 0.5F, Lookup::kPositions);
  }
  ValueId product(GraphBuilder& b, ValueId x) {
    return b.linear(x, matrix("product", kWidth, kWidth), {}, -1);
  }
  ValueId attention(GraphBuilder& b) {
    AttentionSpec spec;
    spec.n_heads = spec.n_kv_heads = 2;
    spec.k_dim = spec.v_dim = kWidth / 2;
    spec.rope = b.rope_table({engine::RopeKind::kHalves, 4, {1.0F, 0.1F}, 1.0F});
    const ValueId q = product(b, x_);
    return b.attention(b.rope_append(q, product(b, x_), product(b, x_), 0, spec), 0);
  }
  ValueId experts(GraphBuilder& b) {
    engine::Routing routing = {engine::Gating::kSoftmax, 4, 2};
    const ValueId routes = b.route(b.linear(x_, matrix("router", 4, kWidth), {}, -1), routing, {});
    engine::WeightSource stack = matrix("experts", 4 * kWidth, kWidth);
    stack.rows = kWidth;
    stack.count = 4;
    stack.pitch = stack.data.size() / 4;
    return b.combine(b.experts(x_, routes, stack), routes);
  }

  Floats vector(int64_t n) {
    Floats values(static_cast<size_t>(n));
    for (float& value : values) value = static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F;
    held_.push_back(values);
    return values;
  }
  engine::WeightSource source(const char* name, int64_t cols) {
    const auto rows = static_cast<int64_t>(held_.back().size()) / cols;
    return {name, DType::kF32, rows, cols, std::as_bytes(std::span(held_.back())), true};
  }
  engine::WeightSource matrix(const char* name, int64_t rows, int64_t cols) {
    vector(rows * cols);
    return source(name, cols);
  }
  /// Makes the columns [first, first + n) of the result.
  engine::WeightSource columns(const char* name, int64_t first, int64_t n) {
    Floats chosen(static_cast<size_t>(kResult * n));
    for (int64_t i = 0; i < n; ++i) chosen[static_cast<size_t>((first + i) * n + i)] = 1.0F;
    held_.push_back(std::move(chosen));
    return source(name, n);
  }

  std::mt19937 random_{11};
  std::deque<Floats> held_;
  ValueId x_;
  Graph graph_;
};

Floats drawn(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Floats values(n);
  for (float& value : values) value = static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F;
  return values;
}

struct Row {
  int32_t token, position;
  const float* features;
};

/// A prompt and rows after it, beside a sequence of its own in each step. `ran`: the rows, if
/// asked.
Floats run(const ExecutionPlan& plan, const Floats& features, std::vector<Row>* ran = nullptr) {
  engine::EngineMemory& memory = plan.engines()[0]->memory();
  const auto new_cache = [&] {
    return cache::make_cache("fp32", plan.cache_layers(), kContext, memory).value();
  };
  const bool stateful = plan.states() != nullptr;
  const auto cache = new_cache();
  const auto new_state = [&] {
    return stateful ? std::make_unique<cache::RecurrentState>(plan.states(), plan.state_memory())
                    : nullptr;
  };
  const auto state = new_state();
  const auto workspace = Workspace::create(plan.engines()).value();
  Floats all;
  size_t used = 0;
  for (const std::vector<int32_t>& tokens : {std::vector{1, 17, 3, 4, 9, 0, 12}, {6}, {2, 19}}) {
    const auto other = new_cache();
    const auto beside = new_state();
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*other, std::vector{5, 6, 7}, true, beside.get()).ok());
    EXPECT_TRUE(batch.add(*cache, tokens, true, state.get()).ok());
    batch.finish(kResult);
    if (plan.limits().features > 0) {
      const size_t n = batch.tokens.size() * static_cast<size_t>(plan.limits().features);
      batch.batch.features = std::span(features).subspan(used, n);
      for (size_t t = 0; ran != nullptr && t < batch.tokens.size(); ++t) {
        ran->push_back({batch.tokens[t], batch.positions[t],
                        features.data() + used + t * static_cast<size_t>(kWidth)});
      }
      used += n;
    }
    const Status status = plan.run(batch.batch, *workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const Floats results = batch.results(kResult);
    all.insert(all.end(), results.begin(), results.end());
  }
  return all;
}

std::vector<std::shared_ptr<engine::Engine>> engines() {
  return {test::cpu_engine(), test::cpu_engine({.threads = 3}),
          test::cpu_engine({.level = CpuLevel::kScalar}),
          std::make_shared<test::ReferenceEngine>()};
}

CompileOptions fused(int32_t bits) {
  const auto on = [bits](int32_t i) { return (bits >> i & 1) != 0; };
  CompileOptions options;
  options.max_seq_len = kContext;
  options.fusion = {on(0), on(1), on(2), on(3), on(4), on(5)};
  return options;
}

void expect_copies(Part first, Part second, const std::vector<int32_t>& fusions) {
  SCOPED_TRACE(testing::Message() << "parts " << static_cast<int32_t>(first) << " and "
                                  << static_cast<int32_t>(second));
  const Floats features = drawn(1000, 3);
  const JoinedGraph joined(first, second, true);
  const JoinedGraph copied(first, second, false);
  for (const auto& engine : engines()) {
    const Floats want = run(*compile(copied.graph(), engine, fused(0)).value(), features);
    for (const int32_t bits : fusions) {
      const Floats got = run(*compile(joined.graph(), engine, fused(bits)).value(), features);
      EXPECT_EQ(got, want) << engine->name() << " " << bits;
    }
  }
}

TEST(Join, IsTheColumnsOfItsParts) {
  for (int32_t i = 0; i <= kLastPart; ++i) {
    const auto part = static_cast<Part>(i);
    expect_copies(part, Part::kRmsNorm, {0, 63});
    expect_copies(Part::kLayerNorm, part, {0, 63});
    if (has_features(part)) continue;
    expect_copies(part, Part::kFeatures, {0, 63});
    expect_copies(Part::kNormOfFeatures, part, {0, 63});
  }
}

TEST(Join, IsTheSameOnTwoEngines) {
  const Floats features = drawn(1000, 3);
  const auto cpu = test::cpu_engine();
  for (const auto& [first, second] : {std::pair{Part::kRmsNorm, Part::kNormOfFeatures},
                                      {Part::kFeatures, Part::kResidual},
                                      {Part::kGatedProducts, Part::kFeatures}}) {
    const JoinedGraph joined(first, second, true);
    const Floats want = run(*compile(joined.graph(), cpu, fused(0)).value(), features);
    for (const std::vector<int32_t>& blocks : {std::vector{0, 1, 1}, {0, 1, 0}, {0, 0, 1}}) {
      const auto plan = compile(joined.graph(), {cpu, cpu}, blocks, fused(63)).value();
      EXPECT_EQ(run(*plan, features), want) << blocks[1] << blocks[2];
    }
  }
}

TEST(Join, IsTheSameInEveryFusion) {
  std::vector<int32_t> all(64);
  for (int32_t bits = 0; bits < 64; ++bits) all[static_cast<size_t>(bits)] = bits;
  expect_copies(Part::kRmsNorm, Part::kNormOfFeatures, all);
  expect_copies(Part::kResidual, Part::kGatedProducts, all);
}

/// Of a row of 24 with the weight of a norm, in double precision.
std::vector<double> norm(const std::vector<double>& x, const Floats& weight) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  const double size = std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] / size * double{weight[i]});
  return y;
}

std::vector<double> doubles(const float* x) { return {x, x + kWidth}; }

TEST(Join, OfNormsIsWhatArithmeticSays) {
  const Floats features = drawn(1000, 8);
  const JoinedGraph joined(Part::kRmsNorm, Part::kNormOfFeatures, true);
  // Made one after another: the table, and the weights of the two norms.
  const Floats& table = joined.values(0);
  for (const auto& engine : engines()) {
    std::vector<Row> rows;
    const auto plan = compile(joined.graph(), engine, fused(63)).value();
    const Floats got = run(*plan, features, &rows);
    ASSERT_EQ(got.size(), rows.size() * kResult);
    for (size_t t = 0; t < rows.size(); ++t) {
      const auto token = norm(doubles(table.data() + rows[t].token * kWidth), joined.values(1));
      const auto given = norm(doubles(rows[t].features), joined.values(2));
      for (size_t i = 0; i < kWidth; ++i) {
        EXPECT_NEAR(got[t * kResult + i], token[i], 1e-5) << t << " " << i;
        EXPECT_NEAR(got[t * kResult + kWidth + i], given[i], 1e-5) << t << " " << i;
      }
    }
  }
}

TEST(Join, FeaturesAreTheCallers) {
  const Floats features = drawn(1000, 9);
  const JoinedGraph joined(Part::kFeatures, Part::kEmbedTokens, true);
  for (const auto& engine : engines()) {
    std::vector<Row> rows;
    const auto plan = compile(joined.graph(), engine, fused(63)).value();
    const Floats got = run(*plan, features, &rows);
    for (size_t t = 0; t < rows.size(); ++t) {
      for (size_t i = 0; i < kWidth; ++i) {
        EXPECT_EQ(got[t * kResult + i], rows[t].features[i]) << t << " " << i;
      }
    }
  }
}

// A product reads both parts where they lie: no operation moves them.
TEST(Join, CostsNoInstruction) {
  const JoinedGraph joined(Part::kRmsNorm, Part::kNormOfFeatures, true);
  const auto plan = compile(joined.graph(), test::cpu_engine(), fused(63)).value();
  size_t features = 0;
  for (const Instruction& in : plan->instructions()) {
    EXPECT_NE(in.op, Op::kJoin);
    features += in.op == Op::kFeatures ? 1U : 0U;
  }
  EXPECT_EQ(features, 1U);
  EXPECT_EQ(plan->limits().features, kWidth);
}

}  // namespace
}  // namespace gen::graph

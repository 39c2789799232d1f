// SPDX-License-Identifier: Apache-2.0
// Proves which instructions a decoder becomes, and that no fusion and no way around a missing
// kernel changes a bit of the logits.
#include "graph/fusion.h"

#include <gtest/gtest.h>

#include <string>

#include "base/to_size.h"
#include "support/reference_cache.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr FusionOptions kPlain = {false, false, false, false, false};

std::string ops(const Program& program) {
  std::string text;
  for (const Instruction& instruction : program.instructions) {
    text += text.empty() ? "" : " ";
    text += engine::op_info(instruction.op).name;
  }
  return text;
}

TEST(Fusion, OneLayerIsFewOperations) {
  test::TinyShape shape;
  shape.layers = 1;
  const test::TinyGraph tiny(shape);
  EXPECT_EQ(ops(fuse(tiny.graph())),
            "rope_angles embed tap "
            "rms_norm linear rope_append attention "
            "select_rows select_rows pack linear rms_norm linear pack linear tap "
            "rms_norm linear best logits");
}

TEST(Fusion, OffIsOneInstructionForEachNode) {
  test::TinyShape shape;
  shape.layers = 1;
  const test::TinyGraph tiny(shape);
  EXPECT_EQ(ops(fuse(tiny.graph(), kPlain)),
            "rope_angles embed tap "
            "rms_norm pack linear linear linear rope_append attention pack linear add "
            "rms_norm pack linear linear gated pack linear add tap "
            "select_rows rms_norm pack linear best logits");
}

TEST(Fusion, StackHoldsQKVWithTheirSitesAndBiases) {
  const test::TinyGraph tiny;
  const Program program = fuse(tiny.graph());
  const Instruction& stack = program.instructions[4];
  ASSERT_EQ(stack.op, Op::kLinear);
  const Product& product = program.products[static_cast<size_t>(stack.product)];
  ASSERT_EQ(product.sources.size(), 3U);
  EXPECT_EQ(
      std::string(product.sources[0].name) + product.sources[1].name + product.sources[2].name,
      "qkv");
  // q 4 * 6, k 2 * 6, v 2 * 10
  EXPECT_EQ(stack.y.cols, 24 + 12 + 20);
  ASSERT_EQ(product.sites.size(), 3U);
  EXPECT_EQ(product.sites[1].site, site_id(0, SiteKind::kK));
  EXPECT_EQ(product.sites[1].first, 24);
  EXPECT_EQ(product.sites[2].first, 36);
  const std::vector<float>& bias = program.vectors[static_cast<size_t>(stack.vector)];
  ASSERT_EQ(bias.size(), 56U);
  for (size_t i = 24; i < 36; ++i) EXPECT_EQ(bias[i], 0.0F);  // k has none
  EXPECT_NE(bias[0], 0.0F);
  EXPECT_NE(bias[36], 0.0F);
  const Instruction& rope = program.instructions[5];
  EXPECT_EQ(rope.x[0].value, stack.y.value);
  EXPECT_EQ(rope.x[2].first, 36);
}

TEST(Fusion, NormReadByOthersKeepsItsFloats) {
  GraphBuilder builder;
  const ValueId x = builder.embed({"e", DType::kF32, 4, 16, {}, false});
  const ValueId norm = builder.rms_norm(x, std::vector<float>(16, 1.0F), 1e-5F);
  const ValueId w = builder.linear(norm, {"w", DType::kF32, 16, 16, {}, false}, {}, 0);
  const ValueId sum = builder.add(norm, w);
  builder.logits(
      builder.linear(builder.select_rows(sum), {"h", DType::kF32, 4, 16, {}, false}, {}, 1));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Program program = fuse(graph.value(), {true, true, true, true, false});
  const Instruction& first = program.instructions[1];
  ASSERT_EQ(first.op, Op::kRmsNorm);
  EXPECT_TRUE(first.y.present());
  EXPECT_TRUE(first.packed.present());
}

/// Both halves read one packed norm, and each is added where its last product ends.
TEST(Fusion, HalvesBesideEachOtherShareALayerNorm) {
  const auto weight = [](const char* name) {
    return engine::WeightSource{name, DType::kF32, 16, 16, {}, false};
  };
  GraphBuilder builder;
  const ValueId x = builder.select_rows(builder.embed(weight("e")));
  const ValueId norm = builder.layer_norm(x, std::vector<float>(16, 1.0F), {}, 1e-5F, 2);
  const ValueId one = builder.linear(norm, weight("one"), {}, 0);
  const ValueId sum = builder.add(x, builder.linear(one, weight("out"), {}, 1));
  const ValueId gate = builder.linear(norm, weight("gate"), {}, 2);
  const ValueId up = builder.linear(norm, weight("up"), {}, 3);
  const ValueId gated = builder.apply(Op::kGated, {gate, up}, {engine::Act::kSilu});
  const ValueId both = builder.add(sum, builder.linear(gated, weight("down"), {}, 4));
  builder.logits(builder.linear(both, weight("h"), {}, 5));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Program program = fuse(graph.value());
  EXPECT_EQ(ops(program),
            "embed select_rows layer_norm linear pack linear linear pack linear pack linear best "
            "logits");
  const Instruction& first = program.instructions[2];
  EXPECT_TRUE(first.packed.present());
  EXPECT_FALSE(first.y.present());
  EXPECT_EQ(first.groups, 2);
  EXPECT_TRUE(program.instructions[5].x[1].present());
  EXPECT_EQ(program.instructions[6].x[0].value, first.packed.value);
  EXPECT_TRUE(program.instructions[8].x[1].present());
}

TEST(Fusion, AGateOfRunsStaysAProductOfItsOwn) {
  const auto weight = [](const char* name, int64_t rows) {
    return engine::WeightSource{name, DType::kF32, rows, 16, {}, false};
  };
  GraphBuilder builder;
  const ValueId x = builder.select_rows(builder.embed(weight("e", 16)));
  const ValueId gate = builder.linear(x, weight("gate", 4), {}, 0);
  const ValueId up = builder.linear(x, weight("up", 16), {}, 1);
  const ValueId gated = builder.apply(Op::kGated, {gate, up}, {engine::Act::kSigmoid});
  builder.logits(builder.linear(gated, weight("h", 16), {}, 2));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Program program = fuse(graph.value());
  const auto found = std::find_if(program.instructions.begin(), program.instructions.end(),
                                  [](const Instruction& each) { return each.op == Op::kGated; });
  ASSERT_NE(found, program.instructions.end());
  EXPECT_EQ(found->x[0].cols, 4);
  EXPECT_EQ(found->x[1].cols, 16);
  EXPECT_EQ(found->y.cols, 16);
}

TEST(Fusion, AGateThatOthersReadStaysAProductOfItsOwn) {
  const auto weight = [](const char* name) {
    return engine::WeightSource{name, DType::kF32, 16, 16, {}, false};
  };
  GraphBuilder builder;
  const ValueId x = builder.select_rows(builder.embed(weight("e")));
  const ValueId gate = builder.linear(x, weight("gate"), {}, 0);
  const ValueId up = builder.linear(x, weight("up"), {}, 1);
  const ValueId sum =
      builder.add(gate, builder.apply(Op::kGated, {gate, up}, {engine::Act::kSilu}));
  builder.logits(builder.linear(sum, weight("h"), {}, 2));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(ops(fuse(graph.value())),
            "embed select_rows pack linear gated add pack linear best logits");
}

TEST(Fusion, AnActivationEndsItsProduct) {
  const auto weight = [](const char* name) {
    return engine::WeightSource{name, DType::kF32, 16, 16, {}, false};
  };
  GraphBuilder builder;
  const ValueId x = builder.select_rows(builder.embed(weight("e")));
  const ValueId up = builder.linear(x, weight("up"), {}, 0);
  const ValueId squared = builder.apply(Op::kActivate, {up}, {engine::Act::kRelu2});
  const ValueId down = builder.linear(squared, weight("down"), {}, 1);
  builder.logits(builder.linear(builder.add(x, down), weight("h"), {}, 2));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Program fused = fuse(graph.value());
  EXPECT_EQ(ops(fused), "embed select_rows pack linear pack linear pack linear best logits");
  EXPECT_EQ(fused.instructions[3].activation.kind, engine::Act::kRelu2);
  EXPECT_FALSE(fused.instructions[3].x[1].present());
  EXPECT_EQ(fused.instructions[5].activation.kind, engine::Act::kNone);
  EXPECT_TRUE(fused.instructions[5].x[1].present());
  FusionOptions apart;
  apart.activate = false;
  EXPECT_EQ(ops(fuse(graph.value(), apart)),
            "embed select_rows pack linear activate pack linear pack linear best logits");
}

TEST(Fusion, AFactorAndTheResidualEndAProduct) {
  const auto weight = [](const char* name) {
    return engine::WeightSource{name, DType::kF32, 16, 16, {}, false};
  };
  for (const bool read_twice : {false, true}) {
    GraphBuilder builder;
    const ValueId x = builder.select_rows(builder.embed(weight("e")));
    const ValueId scaled = builder.apply(Op::kActivate, {builder.linear(x, weight("w"), {}, 0)},
                                         {.kind = engine::Act::kScaled, .alpha = 0.5F});
    ValueId sum = builder.add(x, scaled);
    if (read_twice) sum = builder.add(sum, scaled);
    builder.logits(builder.linear(sum, weight("h"), {}, 1));
    const auto graph = builder.finish();
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Program fused = fuse(graph.value());
    EXPECT_EQ(ops(fused), read_twice
                              ? "embed select_rows pack linear add add pack linear best logits"
                              : "embed select_rows pack linear pack linear best logits");
    const Instruction& product = fused.instructions[3];
    EXPECT_EQ(product.activation.kind, engine::Act::kScaled);
    EXPECT_EQ(product.activation.alpha, 0.5F);
    EXPECT_EQ(product.x[1].present(), !read_twice);
  }
}

/// Logits of a prompt and one more token, all rows.
std::vector<float> run(const test::TinyGraph& tiny, const FusionOptions& fusion,
                       test::ReferenceEngine::Options engine_options) {
  auto engine = std::make_shared<test::ReferenceEngine>(engine_options);
  CompileOptions options;
  options.max_seq_len = 32;
  options.fusion = fusion;
  auto plan = compile(tiny.graph(), engine, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return {};
  WorkspacePool pool(engine);
  auto workspace = pool.borrow();
  EXPECT_TRUE(workspace.ok());
  const auto shapes = tiny.layer_shapes();
  test::ReferenceCache cache(shapes, 32);
  std::vector<float> all;
  for (const std::vector<int32_t>& tokens : {std::vector<int32_t>{3, 1, 4, 1, 5}, {9}}) {
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache, tokens).ok());
    const Status status = (*plan)->run(batch.finish(tiny.shape().vocab), **workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const auto results = batch.results(tiny.shape().vocab);
    all.insert(all.end(), results.begin(), results.end());
  }
  return all;
}

TEST(Fusion, ChangesNoBit) {
  for (const int32_t experts : {0, 5}) {
    test::TinyShape shape;
    shape.experts = experts;
    const test::TinyGraph tiny(shape);
    const std::vector<float> plain = run(tiny, kPlain, {});
    ASSERT_EQ(plain.size(), 6U * 30);
    for (unsigned mask = 1; mask < 64; ++mask) {
      const FusionOptions fusion = {(mask & 1) != 0, (mask & 2) != 0,  (mask & 4) != 0,
                                    (mask & 8) != 0, (mask & 16) != 0, (mask & 32) != 0};
      EXPECT_EQ(run(tiny, fusion, {}), plain) << experts << " experts, fusion " << mask;
    }
  }
}

TEST(Fusion, ExpertsAreARouterAndTwoProducts) {
  test::TinyShape shape;
  shape.layers = 1;
  shape.experts = 5;
  const test::TinyGraph tiny(shape);
  const Program program = fuse(tiny.graph());
  std::string names;
  for (const Instruction& each : program.instructions) {
    names += std::string(names.empty() ? "" : " ") + engine::op_info(each.op).name;
    if (each.op == Op::kRoute) {
      EXPECT_TRUE(program.values[to_size(each.y.value)].index);
    }
    if (each.op == Op::kExperts) {
      EXPECT_EQ(program.values[to_size(each.y.value)].slots, 2);
    }
  }
  EXPECT_NE(names.find("linear route experts pack experts combine add"), std::string::npos)
      << names;
}

TEST(Fusion, WaysAroundMissingKernelsChangeNoBit) {
  test::TinyShape shape;
  shape.v_type = DType::kBF16;
  const test::TinyGraph tiny(shape);
  const std::vector<float> plain = run(tiny, kPlain, {});
  ASSERT_FALSE(plain.empty());
  for (unsigned mask = 0; mask < 8; ++mask) {
    test::ReferenceEngine::Options engine;
    engine.gate_up = (mask & 1) == 0;
    engine.mixed_stacks = (mask & 2) == 0;
    engine.stacks = (mask & 4) == 0;
    EXPECT_EQ(run(tiny, {}, engine), plain) << "engine " << mask;
  }
  shape.experts = 5;
  shape.expert_up_type = DType::kBF16;
  const test::TinyGraph experts(shape);
  test::ReferenceEngine::Options engine;
  engine.gate_up = false;
  EXPECT_EQ(run(experts, {}, engine), run(experts, kPlain, {}));
}

TEST(Fusion, MissingKernelsSplitWhatTheyMust) {
  test::TinyShape shape;
  shape.layers = 1;
  shape.v_type = DType::kF16;
  const test::TinyGraph tiny(shape);
  CompileOptions options;
  options.max_seq_len = 8;
  options.fusion.select_early = false;
  test::ReferenceEngine::Options picky;
  picky.gate_up = false;
  picky.mixed_stacks = false;
  const auto plan = compile(tiny.graph(), std::make_shared<test::ReferenceEngine>(picky), options);
  ASSERT_TRUE(plan.ok());
  std::string text;
  std::vector<SiteSlice> sites;
  for (const Instruction& instruction : plan.value()->instructions()) {
    text += std::string(engine::op_info(instruction.op).name) + " ";
    const auto slices = plan.value()->sites(instruction);
    sites.insert(sites.end(), slices.begin(), slices.end());
  }
  EXPECT_EQ(text,
            "rope_angles embed tap rms_norm linear linear linear rope_append attention linear "
            "rms_norm linear gated pack linear tap select_rows rms_norm linear best logits ");
  // Each site is named once, wherever its product went: 7 of the layer, the logits, the embedding.
  EXPECT_EQ(sites.size(), 9U);
}

}  // namespace
}  // namespace gen::graph

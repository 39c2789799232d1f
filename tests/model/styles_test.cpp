// SPDX-License-Identifier: Apache-2.0
// Proves that what a style can say and no family of the library's table says yet computes what its
// definition says: gates on what attends, norms without weight, blocks beside each other with two
// norms, activations. The families are made up here, a DenseStyle each.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/arch/registry.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

using arch::Architecture;
using arch::AttentionGate;
using arch::Bias;
using arch::DenseStyle;
using arch::FeedForward;
using arch::HeadNorms;
using arch::NormStyle;
using arch::Parallel;

constexpr RopeParams kHalves = {.kind = engine::RopeKind::kHalves};
constexpr NormStyle kLayer = {.kind = NormStyle::Kind::kLayer};

constexpr Architecture kStyles[] = {
    {"gated_attention",
     {.rope = kHalves, .input_bias = Bias::kOptional, .attention_gate = AttentionGate::kOwn}},
    {"gated_between_norms",
     {.rope = kHalves,
      .norm_before = false,
      .norm_after = true,
      .head_norms = HeadNorms::kEachHead,
      .attention_gate = AttentionGate::kOwn}},
    {"gates_in_q",
     {.rope = kHalves,
      .head_norms = HeadNorms::kEachHead,
      .input_bias = Bias::kOptional,
      .attention_gate = AttentionGate::kInQ}},
    {"layer_norms_of_all_heads",
     {.rope = kHalves, .norms = kLayer, .head_norms = HeadNorms::kAllHeads}},
    {"bare_layer_norms",
     {.rope = kHalves, .norms = {.kind = NormStyle::Kind::kLayer, .weight = false}}},
    {"only_biases",
     {.rope = kHalves,
      .norms = {.kind = NormStyle::Kind::kLayer, .weight = false, .bias = Bias::kRequired}}},
    {"bare_rms_norms", {.rope = kHalves, .norms = {.weight = false}}},
    {"parallel_two_norms",
     {.rope = kHalves,
      .norms = kLayer,
      .parallel = Parallel::kTwoNorms,
      .feed_forward = FeedForward::kPlain,
      .activation = engine::Act::kGeluErf}},
    {"parallel_one_rms_norm",
     {.rope = kHalves, .parallel = Parallel::kOneNorm, .norm_after = true}},
    {"gelu_erf", {.rope = kHalves, .activation = engine::Act::kGeluErf}},
    {"gated_xielu", {.rope = kHalves, .activation = engine::Act::kXielu}},
    {"sigmoid", {.rope = kHalves, .activation = engine::Act::kSigmoid}},
    {"clamped",
     {.rope = kHalves,
      .activation = engine::Act::kClampedSwiglu,
      .activation_alpha = 1.702F,
      .activation_limit = 0.5F}},
    {"logit_factor", {.rope = kHalves, .logit_factor = true}},
    {"softplus_gate_of_heads",
     {.rope = kHalves,
      .attention_gate = AttentionGate::kOwn,
      .gate_activation = engine::Act::kSoftplus}},
    {"half_rotated", {.rope = kHalves, .head_norms = HeadNorms::kMayBeEach, .global_half = true}},
    {"norms_of_either_kind",
     {.rope = kHalves,
      .norms = {.kind = NormStyle::Kind::kEither},
      .parallel = Parallel::kOneNorm}},
};

class Styles : public testing::TestWithParam<const Architecture*> {};

const std::vector<int32_t> kTokens = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43, 0};

test::TinyModelSpec spec_of(const Architecture& family, DType type) {
  test::TinyModelSpec spec;
  spec.architecture = family.name;
  spec.style = family.style;
  spec.type = type;
  spec.layers = 3;
  spec.biases = true;
  spec.gate_by_head = family.style.gate_activation == engine::Act::kSoftplus;
  return spec;
}

TEST_P(Styles, AreWhatTheySay) {
  const Architecture* const family = GetParam();
  const test::TinyModel tiny(spec_of(*family, DType::kF32));
  const std::vector<double> want = tiny.logits(kTokens);
  for (const CpuLevel level : {CpuLevel::kScalar, detect_cpu_level()}) {
    test::TinyEngineOptions options;
    options.level = level;
    options.architectures = {&family, 1};
    const test::LoadedTiny model(tiny, options);
    const auto cache = model.cache();
    const std::vector<float> got = model.feed(*cache, kTokens);
    ASSERT_EQ(got.size(), want.size());
    double difference = 0.0;
    double size = 0.0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - want[i], 2.0);
      size += want[i] * want[i];
    }
    EXPECT_LT(std::sqrt(difference / size), 2e-5) << cpu_level_name(level);
  }
}

/// At every level and however the rows come.
TEST_P(Styles, HaveOneResult) {
  const Architecture* const family = GetParam();
  for (const DType type : {DType::kF32, DType::kQ8_0}) {
    const test::TinyModel tiny(spec_of(*family, type));
    std::vector<float> want;
    for (const CpuLevel level : {CpuLevel::kScalar, CpuLevel::kAvx2, detect_cpu_level()}) {
      if (!cpu_level_runs(level, detect_cpu_level())) continue;
      for (const size_t step : {kTokens.size(), size_t{1}, size_t{5}}) {
        test::TinyEngineOptions options;
        options.level = level;
        options.threads = step == 5 ? 3 : 1;
        options.architectures = {&family, 1};
        const test::LoadedTiny model(tiny, options);
        const auto cache = model.cache();
        std::vector<float> got;
        for (size_t at = 0; at < kTokens.size(); at += step) {
          const size_t n = std::min(step, kTokens.size() - at);
          const auto part = model.feed(*cache, std::span(kTokens).subspan(at, n));
          got.insert(got.end(), part.begin(), part.end());
        }
        if (want.empty()) want = got;
        EXPECT_EQ(got, want) << cpu_level_name(level) << ", steps of " << step;
      }
    }
  }
}

std::vector<const Architecture*> all_styles() {
  std::vector<const Architecture*> all;
  for (const Architecture& each : kStyles) all.push_back(&each);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Styles, testing::ValuesIn(all_styles()),
                         [](const auto& each) { return std::string(each.param->name); });

}  // namespace
}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Proves that models of every architecture and weight format compute what their definition says (a
// separate forward pass in double precision), and that on the CPU engine a row's bits depend on its
// own sequence only: not on chunks, neighbours, threads, level, or other forwards at the same time.
#include "engine/memory/host_memory.h"
#include "model/plan_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "support/counting_allocator.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

using test::LoadedTiny;
using test::TinyModel;
using test::TinyModelSpec;

const std::vector<int32_t> kPrompt = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43, 0};

// ---- Values ----

/// |a - b| over |b|, as norms of the whole.
double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

struct ValueCase {
  std::string name;
  TinyModelSpec spec;
  double tolerance;
};

TinyModelSpec spec_of(const char* architecture, DType type = DType::kF32) {
  TinyModelSpec spec;
  spec.architecture = architecture;
  spec.type = type;
  return spec;
}

std::vector<ValueCase> value_cases() {
  // float32 sums of a few hundred terms over two layers.
  constexpr double kFloat = 2e-5;
  // Activations rounded to 8 bits per block of 32 (1/254 of the block's largest) before each of 8
  // products, whose errors partly cancel.
  constexpr double kQuantised = 4e-2;
  std::vector<ValueCase> cases = {
      {"f16", spec_of("llama", DType::kF16), kFloat},
      {"bf16", spec_of("qwen2", DType::kBF16), kFloat},
      {"q8_0", spec_of("llama", DType::kQ8_0), kQuantised},
      {"q4_0", spec_of("qwen3", DType::kQ4_0), kQuantised},
  };
  TinyModelSpec biases = spec_of("llama");
  biases.biases = true;
  cases.push_back({"biases", biases, kFloat});
  TinyModelSpec tied = spec_of("llama", DType::kF16);
  tied.tied = true;
  cases.push_back({"tied", tied, kFloat});
  TinyModelSpec factors = spec_of("llama");
  factors.freq_factors = {1.0F, 1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 8.0F};
  cases.push_back({"freq_factors", factors, kFloat});
  TinyModelSpec linear = spec_of("qwen2");
  linear.linear_factor = 4.0F;
  linear.rope_base = 500000.0F;
  cases.push_back({"linear_scaling", linear, kFloat});
  TinyModelSpec window = spec_of("llama");
  window.window = 5;
  cases.push_back({"window", window, kFloat});
  window.local = {0, 1};
  cases.push_back({"one_window", window, kFloat});
  TinyModelSpec chunk = spec_of("qwen3");
  chunk.chunk = 3;
  cases.push_back({"chunks", chunk, kFloat});
  chunk.local = {1, 0};
  chunk.window = 2;
  cases.push_back({"one_chunked_window", chunk, kFloat});
  TinyModelSpec heads = spec_of("qwen3");
  heads.head_dim = 32;  // not hidden / heads
  heads.kv_heads = 1;
  cases.push_back({"wide_heads", heads, kFloat});
  TinyModelSpec uneven = spec_of("llama");
  uneven.layer_kv_heads = {4, 1};
  uneven.layer_feed_forward = {64, 128};
  cases.push_back({"uneven_layers", uneven, kFloat});
  for (const arch::Architecture* family : arch::architectures()) {
    if (family->style.experts.has == arch::Experts::kRequired) continue;
    TinyModelSpec plain = spec_of(family->name);
    plain.layers = 5;
    std::string name = std::string("plain_") + family->name;
    std::replace(name.begin(), name.end(), '-', '_');
    cases.push_back({name, plain, kFloat});
  }
  TinyModelSpec gemma = spec_of("gemma2");
  gemma.layers = 3;
  gemma.window = 4;
  gemma.tied = true;
  cases.push_back({"gemma2_window", gemma, kFloat});
  TinyModelSpec gemma3 = spec_of("gemma3");
  gemma3.layers = 7;
  gemma3.window = 4;
  gemma3.rope_base = 500.0F;
  gemma3.linear_factor = 4.0F;
  cases.push_back({"gemma3_window", gemma3, kFloat});
  TinyModelSpec mistral = spec_of("mistral3");
  mistral.original_context = 5;
  cases.push_back({"mistral3_temperature", mistral, kFloat});
  TinyModelSpec gemma4 = spec_of("gemma4");
  gemma4.layers = 12;
  gemma4.window = 4;
  gemma4.shared_layers = 6;
  gemma4.head_dim = 24;
  gemma4.local_head_dim = 16;
  gemma4.freq_factors.assign(12, 3.0F);
  gemma4.rope_base = 500.0F;
  gemma4.keys_as_values = true;
  cases.push_back({"gemma4_shared", gemma4, kFloat});
  gemma4.shared_layers = 0;
  gemma4.layer_input = 0;
  cases.push_back({"gemma4_large", gemma4, kFloat});
  TinyModelSpec muse = spec_of("muse-glimmer");
  muse.layers = 5;
  muse.window = 4;
  cases.push_back({"muse_glimmer_window", muse, kFloat});
  TinyModelSpec qwen35 = spec_of("qwen35");
  qwen35.layers = 7;
  qwen35.attention_every = 4;
  qwen35.taps = 4;
  qwen35.state_size = 32;
  qwen35.state_groups = 1;
  qwen35.draft_layers = 1;
  cases.push_back({"qwen35_more", qwen35, kFloat});
  TinyModelSpec mamba = spec_of("mamba");
  mamba.part_norms = true;
  mamba.taps = 4;
  mamba.inner = 96;
  mamba.state_size = 7;
  cases.push_back({"mamba_part_norms", mamba, kFloat});
  TinyModelSpec mamba2 = spec_of("mamba2");
  mamba2.taps = 2;
  mamba2.inner = 120;
  mamba2.state_size = 40;
  mamba2.state_heads = 6;
  mamba2.state_groups = 3;
  cases.push_back({"mamba2_groups", mamba2, kFloat});
  TinyModelSpec granite = spec_of("granite");
  granite.attention_scale = 0.4F;
  granite.biases = true;
  granite.unrotated = true;
  cases.push_back({"granite_unrotated", granite, kFloat});
  TinyModelSpec hybrid = spec_of("granitehybrid");
  hybrid.layers = 4;
  hybrid.experts = 6;
  hybrid.unrotated = true;
  hybrid.biases = true;
  cases.push_back({"granitehybrid_experts", hybrid, kFloat});
  hybrid.shared_width = 0;
  cases.push_back({"granitehybrid_unshared", hybrid, kFloat});
  TinyModelSpec jamba = spec_of("jamba");
  jamba.layers = 4;
  jamba.experts = 6;
  cases.push_back({"jamba_experts", jamba, kFloat});
  TinyModelSpec nano = spec_of("nemotron_h_moe");
  nano.layers = 6;
  nano.choice_bias = true;
  nano.expert_scale = 2.5F;
  cases.push_back({"nemotron_h_latent", nano, kFloat});
  nano.latent = 0;
  nano.biases = true;
  cases.push_back({"nemotron_h_experts", nano, kFloat});
  for (const char* family : {"qwen35moe", "qwen3next"}) {
    TinyModelSpec delta = spec_of(family);
    delta.layers = 7;
    delta.attention_every = 4;
    delta.draft_layers = 1;
    cases.push_back({family, delta, kFloat});
  }
  TinyModelSpec glm = spec_of("glm4moe");
  glm.layers = 3;
  glm.dense_layers = 1;
  glm.draft_layers = 1;
  glm.choice_bias = true;
  glm.expert_scale = 2.5F;
  cases.push_back({"glm4moe", glm, kFloat});
  glm.biases = true;
  cases.push_back({"glm4moe_head_norms", glm, kFloat});
  TinyModelSpec lfm = spec_of("lfm2moe");
  lfm.layers = 4;
  lfm.dense_layers = 2;
  lfm.choice_bias = true;
  cases.push_back({"lfm2moe", lfm, kFloat});
  TinyModelSpec granites = spec_of("granitemoe");
  cases.push_back({"granitemoe", granites, kFloat});
  granites.shared_width = 0;
  granites.unrotated = true;
  cases.push_back({"granitemoe_unshared", granites, kFloat});
  TinyModelSpec ernie = spec_of("ernie4_5-moe");
  ernie.layers = 6;
  ernie.dense_layers = 2;
  ernie.expert_step = 2;
  ernie.choice_bias = true;
  cases.push_back({"ernie4_5_moe", ernie, kFloat});
  ernie.shared_width = 0;
  cases.push_back({"ernie4_5_moe_unshared", ernie, kFloat});
  TinyModelSpec deepseek = spec_of("deepseek");
  deepseek.dense_layers = 1;
  deepseek.expert_scale = 1.5F;
  cases.push_back({"deepseek", deepseek, kFloat});
  TinyModelSpec minimax = spec_of("minimax-m2");
  minimax.choice_bias = true;
  cases.push_back({"minimax_m2", minimax, kFloat});
  TinyModelSpec cohere = spec_of("cohere2moe");
  cohere.layers = 6;
  cohere.window = 4;
  cohere.dense_layers = 1;
  cohere.draft_layers = 1;
  cases.push_back({"cohere2moe", cohere, kFloat});
  cohere.rms_norms = true;
  cohere.shared_width = 0;
  cohere.dense_layers = 0;
  cases.push_back({"cohere2moe_rms", cohere, kFloat});
  TinyModelSpec laguna = spec_of("laguna");
  laguna.layers = 6;
  laguna.dense_layers = 1;
  laguna.choice_bias = true;
  laguna.expert_scale = 2.5F;
  cases.push_back({"laguna", laguna, kFloat});
  laguna.window = 4;
  laguna.gate_by_head = true;
  laguna.linear_factor = 4.0F;
  laguna.local_head_dim = 8;
  cases.push_back({"laguna_window", laguna, kFloat});
  TinyModelSpec step = spec_of("step35");
  step.layers = 6;
  step.window = 4;
  step.draft_layers = 1;
  step.choice_bias = true;
  step.gate_by_head = true;
  step.biases = true;
  step.freq_factors = {1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 9.0F, 9.0F};
  step.expert_limits = {0.0F, 0.2F, 0.0F, 0.1F, 0.0F, 0.0F};
  step.swiglu_limits = {0.2F, 0.0F, 0.0F, 0.1F, 0.0F, 0.3F};
  cases.push_back({"step35", step, kFloat});
  step.no_gate = true;
  step.biases = false;
  step.local = {1, 1, 0, 0, 1, 0};
  step.expert_limits.clear();
  cases.push_back({"step35_no_gate", step, kFloat});
  TinyModelSpec olmo = spec_of("olmo2");
  olmo.layers = 5;
  olmo.window = 4;
  olmo.linear_factor = 4.0F;
  cases.push_back({"olmo2_window", olmo, kFloat});
  for (const char* family : {"qwen3moe", "qwen2moe", "olmoe"}) {
    cases.push_back({family, spec_of(family), kFloat});
  }
  TinyModelSpec mixtral = spec_of("llama");
  mixtral.experts = 8;
  cases.push_back({"llama_experts", mixtral, kFloat});
  mixtral.fused_experts = true;
  cases.push_back({"fused_experts", mixtral, kFloat});
  mixtral.fused_experts = false;
  mixtral.expert_biases = true;
  mixtral.gating = 3;
  cases.push_back({"expert_biases", mixtral, kFloat});
  mixtral.expert_scales = true;
  mixtral.gating = 4;
  cases.push_back({"expert_scales", mixtral, kFloat});
  mixtral.expert_biases = false;
  mixtral.fused_experts = true;
  cases.push_back({"scales_of_both", mixtral, kFloat});
  TinyModelSpec harmony = spec_of("gpt-oss");
  harmony.layers = 3;
  harmony.window = 4;
  harmony.biases = true;
  harmony.expert_biases = true;
  cases.push_back({"gpt_oss", harmony, kFloat});
  TinyModelSpec beside = spec_of("gemma4");
  beside.layers = 3;
  beside.window = 4;
  beside.experts = 6;
  beside.layer_input = 0;
  beside.dense_layers = 1;
  beside.fused_experts = true;
  beside.expert_scales = true;
  cases.push_back({"gemma4_experts", beside, kFloat});
  TinyModelSpec grouped = spec_of("qwen3moe");
  grouped.layers = 3;
  grouped.dense_layers = 1;
  grouped.experts = 12;
  grouped.experts_used = 3;
  grouped.expert_groups = 4;
  grouped.gating = 2;
  grouped.choice_bias = true;
  grouped.expert_scale = 2.5F;
  cases.push_back({"expert_groups", grouped, kFloat});
  TinyModelSpec every = spec_of("olmoe");
  every.experts_used = every.experts = 5;
  cases.push_back({"all_experts", every, kFloat});
  for (const int32_t used : {1, 300}) {
    TinyModelSpec many = spec_of("qwen3moe");
    many.experts = 300;
    many.experts_used = used;
    many.expert_width = 16;
    cases.push_back({used == 1 ? "one_of_many" : "all_of_many", many, kFloat});
  }
  TinyModelSpec single = spec_of("qwen3moe");
  single.experts_used = single.experts = 1;
  cases.push_back({"one_expert", single, kFloat});
  TinyModelSpec fused = spec_of("qwen2");
  fused.fused_qkv = true;
  fused.kv_heads = 1;
  cases.push_back({"fused_qkv", fused, kFloat});
  TinyModelSpec factored = spec_of("phi3");
  factored.fused_qkv = true;
  factored.long_factors = {1.0F, 1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 8.0F};
  factored.short_factors = {1.0F, 1.25F, 1.5F, 1.5F, 1.5F, 1.75F, 2.0F, 2.0F};
  for (const int32_t original : {64, 128}) {
    factored.original_context = original;
    cases.push_back({original == 64 ? "long_factors" : "short_factors", factored, kFloat});
  }
  TinyModelSpec sequential = spec_of("gptneox");
  sequential.sequential = true;
  sequential.fused_qkv = true;
  cases.push_back({"gptneox_sequential", sequential, kFloat});
  for (const char* family : {"commandr", "cohere2", "starcoder2", "nemotron", "stablelm"}) {
    // With norms of heads, where there may be such, and windows.
    TinyModelSpec more = spec_of(std::string(family) == "commandr" ? "command-r" : family);
    more.layers = 5;
    more.biases = true;
    more.window = 4;
    cases.push_back({std::string(family) + "_more", more, kFloat});
  }
  for (const auto& [name, family] : {std::pair{"gemma2_q8_0", "gemma2"},
                                     {"commandr_q8_0", "command-r"},
                                     {"apertus_q8_0", "apertus"},
                                     {"granite_q8_0", "granite"},
                                     {"olmo2_q8_0", "olmo2"},
                                     {"glm4_q8_0", "glm4"},
                                     {"qwen3moe_q8_0", "qwen3moe"},
                                     {"qwen2moe_q8_0", "qwen2moe"},
                                     {"mamba_q8_0", "mamba"},
                                     {"falcon_h1_q8_0", "falcon-h1"},
                                     {"arcee_q8_0", "arcee"}}) {
    TinyModelSpec quantised = spec_of(family, DType::kQ8_0);
    quantised.v_type = DType::kQ5_0;
    cases.push_back({name, quantised, kQuantised});
  }
  TinyModelSpec k_quant = spec_of("llama", DType::kQ4_K);
  k_quant.v_type = DType::kQ6_K;  // as Q4_K_M files mix them
  k_quant.hidden = 256;
  k_quant.heads = 4;
  k_quant.kv_heads = 2;
  k_quant.head_dim = 64;
  k_quant.feed_forward = 512;
  cases.push_back({"q4_k_m", k_quant, kQuantised});
  return cases;
}

class Values : public testing::TestWithParam<ValueCase> {};

TEST_P(Values, AreThoseOfTheDefinition) {
  const TinyModel tiny(GetParam().spec);
  const std::vector<double> expected = tiny.logits(kPrompt);
  for (const CpuLevel level : {CpuLevel::kScalar, detect_cpu_level()}) {
    test::TinyEngineOptions options;
    options.level = level;
    const LoadedTiny loaded(tiny, options);
    const auto cache = loaded.cache();
    const auto state = loaded.state();
    const double found = relative_error(loaded.feed(*cache, kPrompt, state.get()), expected);
    RecordProperty(cpu_level_name(level), std::to_string(found));
    // At this level inputs of BF16 weights are rounded to 8 bits, by up to 2^-9 of each, before
    // each of 8 products, whose errors partly cancel.
    const bool rounded =
        GetParam().spec.type == DType::kBF16 && cpu_level_runs(CpuLevel::kAvx512Bf16, level);
    EXPECT_LT(found, rounded ? 8e-3 : GetParam().tolerance) << cpu_level_name(level);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Values, testing::ValuesIn(value_cases()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(PlanModel, DefinitionsDiffer) {
  // What makes the comparisons above mean something: the variants are not all the same numbers.
  const auto last = [](const TinyModelSpec& spec) {
    const std::vector<double> all = TinyModel(spec).logits(kPrompt);
    return std::vector<float>(all.end() - spec.vocab, all.end());
  };
  const TinyModelSpec plain = spec_of("llama");
  const std::vector<double> base = TinyModel(plain).logits(kPrompt);
  const std::vector<double> reference(base.end() - plain.vocab, base.end());
  TinyModelSpec window = plain;
  window.window = 5;
  TinyModelSpec factors = plain;
  factors.freq_factors = std::vector<float>(8, 2.0F);
  TinyModelSpec linear = plain;
  linear.linear_factor = 4.0F;
  TinyModelSpec one = window;
  one.local = {0, 1};
  TinyModelSpec chunk = plain;
  chunk.chunk = 3;
  for (const TinyModelSpec& other : {window, one, chunk, factors, linear}) {
    EXPECT_GT(relative_error(last(other), reference), 1e-2);
  }
  // And each factor and cap of a family counts.
  for (float TinyModelSpec::*const number :
       {&TinyModelSpec::embedding_factor, &TinyModelSpec::residual_factor,
        &TinyModelSpec::logit_scale, &TinyModelSpec::score_cap, &TinyModelSpec::logit_cap,
        &TinyModelSpec::attention_scale}) {
    const bool cap = number == &TinyModelSpec::score_cap || number == &TinyModelSpec::logit_cap;
    TinyModelSpec spec = spec_of(cap ? "gemma2" : "granite");
    const std::vector<float> with = last(spec);
    spec.*number = cap ? 1000.0F : 1.0F;
    EXPECT_GT(relative_error(last(spec), {with.begin(), with.end()}), 1e-2);
  }
}

// ---- Bits ----

std::vector<TinyModelSpec> bit_specs() {
  std::vector<TinyModelSpec> specs = {spec_of("llama"), spec_of("qwen2", DType::kF16),
                                      spec_of("qwen3", DType::kQ8_0),
                                      spec_of("llama", DType::kQ4_0)};
  specs[1].window = 6;
  for (const char* family : {"gemma2", "granite", "olmo2", "qwen3moe", "qwen2moe", "gpt-oss"}) {
    for (const DType type : {DType::kF32, DType::kQ8_0}) {
      specs.push_back(spec_of(family, type));
      specs.back().window = 6;
    }
  }
  return specs;
}

TEST(Bits, DoNotDependOnChunks) {
  for (const TinyModelSpec& spec : bit_specs()) {
    const LoadedTiny loaded((TinyModel(spec)));
    for (const char* kind : {"fp32", "fp16"}) {
      const auto whole_cache = loaded.cache(kind);
      const std::vector<float> whole = loaded.feed(*whole_cache, kPrompt);
      for (const size_t chunk : {1U, 2U, 3U, 16U}) {
        const auto cache = loaded.cache(kind);
        std::vector<float> parts;
        for (size_t first = 0; first < kPrompt.size(); first += chunk) {
          const auto results = loaded.feed(
              *cache, std::span(kPrompt).subspan(first, std::min(chunk, kPrompt.size() - first)));
          parts.insert(parts.end(), results.begin(), results.end());
        }
        EXPECT_EQ(parts, whole) << spec.architecture << " " << kind << " chunks of " << chunk;
      }
    }
  }
}

TEST(Bits, DoNotDependOnThreadsOrLevel) {
  for (const TinyModelSpec& spec : bit_specs()) {
    const TinyModel tiny(spec);
    const LoadedTiny one(tiny);
    const auto one_cache = one.cache();
    const std::vector<float> expected = one.feed(*one_cache, kPrompt);
    for (const CpuLevel level : {CpuLevel::kScalar, CpuLevel::kAvx2, detect_cpu_level()}) {
      if (!cpu_level_runs(level, detect_cpu_level())) continue;
      for (const int32_t threads : {1, 2, 3}) {
        test::TinyEngineOptions options;
        options.threads = threads;
        options.level = level;
        const LoadedTiny other(tiny, options);
        const auto cache = other.cache();
        EXPECT_EQ(other.feed(*cache, kPrompt), expected)
            << spec.architecture << " " << cpu_level_name(level) << ", " << threads << " threads";
      }
    }
  }
}

TEST(Bits, DoNotDependOnNeighbours) {
  for (const TinyModelSpec& spec : bit_specs()) {
    const LoadedTiny loaded((TinyModel(spec)));
    const std::vector<int32_t> other = {1, 2, 3, 4, 5};
    const auto alone_a = loaded.cache();
    const auto alone_b = loaded.cache();
    const std::vector<float> a = loaded.feed(*alone_a, kPrompt);
    const std::vector<float> b = loaded.feed(*alone_b, other);
    const auto cache_a = loaded.cache();
    const auto cache_b = loaded.cache();
    // The second half of one sequence beside the whole of another.
    loaded.feed(*cache_a, std::span(kPrompt).first(7));
    test::OwnedBatch batch;
    ASSERT_TRUE(batch.add(*cache_b, other).ok());
    ASSERT_TRUE(batch.add(*cache_a, std::span(kPrompt).subspan(7)).ok());
    ASSERT_TRUE(loaded.model().forward(batch.finish(loaded.vocab())).ok());
    const std::vector<float> both = batch.results(loaded.vocab());
    const auto border = static_cast<std::ptrdiff_t>(b.size());
    EXPECT_EQ(std::vector<float>(both.begin(), both.begin() + border), b);
    const auto seven = static_cast<std::ptrdiff_t>(7 * loaded.vocab());
    EXPECT_EQ(std::vector<float>(both.begin() + border, both.end()),
              std::vector<float>(a.begin() + seven, a.end()));
  }
}

TEST(Bits, OfATreeAreThoseOfItsPaths) {
  for (const TinyModelSpec& spec : bit_specs()) {
    const LoadedTiny loaded((TinyModel(spec)));
    const auto cache = loaded.cache();
    loaded.feed(*cache, kPrompt);
    const int32_t start = cache->length();
    // 7 -> {11 -> 12, 21 -> 22}
    test::OwnedBatch batch;
    ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{7, 11, 12, 21, 22}).ok());
    batch.parents = {-1, 0, 1, 0, 3};
    batch.positions = {start, start + 1, start + 2, start + 1, start + 2};
    ASSERT_TRUE(loaded.model().forward(batch.finish(loaded.vocab())).ok());
    const std::vector<float> rows = batch.results(loaded.vocab());
    for (const auto& [path, row] : {std::pair{std::vector<int32_t>{7, 11, 12}, 2},
                                    std::pair{std::vector<int32_t>{7, 21, 22}, 4}}) {
      const auto chain = loaded.cache();
      loaded.feed(*chain, kPrompt);
      const std::vector<float> expected = loaded.feed(*chain, path);
      const auto row_first = rows.begin() + std::ptrdiff_t{row} * loaded.vocab();
      EXPECT_TRUE(
          std::equal(row_first, row_first + loaded.vocab(), expected.end() - loaded.vocab()))
          << spec.architecture << " row " << row;
    }
  }
}

TEST(Bits, DoNotDependOnForwardsAtTheSameTime) {
  test::TinyEngineOptions options;
  options.threads = 2;
  const LoadedTiny loaded(TinyModel(spec_of("llama", DType::kQ8_0)), options);
  const auto cache = loaded.cache();
  const std::vector<float> expected = loaded.feed(*cache, kPrompt);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        const auto own = loaded.cache();
        if (loaded.feed(*own, kPrompt) != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// ---- Contract of Model ----

TEST(PlanModel, TraitsAndShapes) {
  TinyModelSpec spec = spec_of("qwen3");
  spec.head_dim = 32;
  spec.window = 9;
  const LoadedTiny loaded((TinyModel(spec)));
  const ModelTraits& traits = loaded.model().traits();
  EXPECT_EQ(traits.architecture, "qwen3");
  EXPECT_EQ(traits.vocab_size, 50);
  EXPECT_EQ(traits.max_seq_len, 128);
  EXPECT_EQ(traits.num_layers, 2);
  EXPECT_EQ(traits.num_heads, 4);
  EXPECT_EQ(traits.num_kv_heads, 2);
  EXPECT_EQ(traits.head_dim, 32);
  EXPECT_EQ(traits.hidden, 64);
  EXPECT_EQ(traits.max_batch_rows, 512);
  ASSERT_EQ(loaded.model().layer_shapes().size(), 2U);
  const cache::LayerShape& shape = loaded.model().layer_shapes()[1];
  EXPECT_EQ(shape.kv_heads, 2);
  EXPECT_EQ(shape.k_dim, 32);
  EXPECT_EQ(shape.v_dim, 32);
  EXPECT_EQ(shape.window, 9);
  EXPECT_EQ(shape.chunk, 0);
  EXPECT_EQ(shape.rope, engine::RopeKind::kHalves);
  EXPECT_EQ(shape.rope_dims, 32);
  auto state = loaded.model().new_sequence_state();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state.value(), nullptr);
}

// A weight after the rotation stands between the rotation and a further one.
TEST(PlanModel, KeysWithNormsAfterRotationAreNotShifted) {
  for (const bool last : {false, true}) {
    const LoadedTiny loaded(TinyModel(spec_of(last ? "hunyuan-dense" : "qwen3")));
    EXPECT_EQ(loaded.cache()->shifting() == nullptr, last);
  }
}

TEST(PlanModel, MemoryByKey) {
  const LoadedTiny loaded((TinyModel(spec_of("llama"))));
  EXPECT_GT(loaded.model().memory("weights").value() + loaded.model().memory("mapped").value(),
            size_t{4} * 50 * 64);
  EXPECT_EQ(loaded.model().memory("workspace").value(), 0U);
  const auto cache = loaded.cache();
  loaded.feed(*cache, kPrompt);
  EXPECT_GT(loaded.model().memory("workspace").value(), 0U);
  EXPECT_EQ(loaded.model().memory("socks").status().code(), Code::kInvalidArgument);
}

TEST(PlanModel, RefusesTokensAndPositionsOutside) {
  const LoadedTiny loaded((TinyModel(spec_of("llama"))));
  const auto cache = loaded.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{50}).ok());
  const Status token = loaded.model().forward(batch.finish(50));
  EXPECT_EQ(token.code(), Code::kOutOfRange);
  EXPECT_STREQ(token.message(), "token 50 outside vocabulary of 50");
  batch.tokens[0] = 49;
  batch.positions[0] = 128;
  const Status position = loaded.model().forward(batch.batch);
  EXPECT_EQ(position.code(), Code::kOutOfRange);
  EXPECT_STREQ(position.message(), "position 128 outside context of 128");
  batch.positions[0] = 127;
  EXPECT_TRUE(loaded.model().forward(batch.batch).ok());
}

TEST(PlanModel, CancelsBeforeAnythingRuns) {
  const LoadedTiny loaded((TinyModel(spec_of("llama"))));
  const auto cache = loaded.cache();
  CancelFlag cancel;
  cancel.fire();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(*cache, kPrompt).ok());
  batch.finish(50).cancel = &cancel;
  EXPECT_EQ(loaded.model().forward(batch.batch).code(), Code::kCancelled);
  EXPECT_EQ(cache->length(), 0);
}

TEST(PlanModel, NamesRowAndTokenOfBadLogits) {
  // One output row of the head is NaN: token 17 of every row.
  TinyModel tiny(spec_of("llama"));
  const auto image = tiny.writer().build();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<std::byte> bytes = image.bytes;
    const size_t head = image.at("output.weight.data") + size_t{17} * 64 * sizeof(float);
    for (size_t i = 0; i < 64; ++i) {
      std::memcpy(bytes.data() + head + i * sizeof(float), &bad, sizeof(float));
    }
    auto file = gguf::GgufFile::parse(bytes);
    ASSERT_TRUE(file.ok());
    LoadOptions options;
    options.engine = test::cpu_engine();
    auto loaded = load_model(file.value(), options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const Model& model = *loaded.value()->model;
    auto cache =
        cache::make_cache("fp32", model.layer_shapes(), 8, engine::system_memory()).value();
    test::OwnedBatch batch;
    ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{1, 2, 3}).ok());
    batch.wants = {0, 1, 1};
    const Status status = model.forward(batch.finish(50));
    EXPECT_EQ(status.code(), Code::kModel);
    const std::string message = status.message();
    EXPECT_NE(message.find("row 1"), std::string::npos) << message;
    EXPECT_NE(message.find("token 17"), std::string::npos) << message;
    // Nobody looks at logits that nobody wanted.
    batch.wants = {0, 0, 0};
    EXPECT_TRUE(model.forward(batch.batch).ok());
    // And whoever asks for all tensors to be checked hears of it at once.
    options.check_tensors = true;
    loaded = load_model(file.value(), options);
    EXPECT_EQ(loaded.status().code(), Code::kFormat);
    EXPECT_NE(std::string(loaded.status().message()).find("output.weight"), std::string::npos);
  }
}

TEST(PlanModel, ABadRowDoesNotSpoilThoseBeforeIt) {
  // The embedding of token 3 is NaN.
  TinyModel tiny(spec_of("llama"));
  auto image = tiny.writer().build();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(image.bytes.data() + image.at("token_embd.weight.data") + 3 * 64 * sizeof(float),
              &nan, sizeof nan);
  LoadOptions options;
  options.engine = test::cpu_engine();
  const auto loaded = load_model(gguf::GgufFile::parse(image.bytes).value(), options);
  ASSERT_TRUE(loaded.ok());
  const Model& model = *loaded.value()->model;
  auto cache = cache::make_cache("fp32", model.layer_shapes(), 8, engine::system_memory()).value();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{1, 2, 3}).ok());
  const Status status = model.forward(batch.finish(50));
  EXPECT_EQ(status.code(), Code::kModel);
  EXPECT_NE(std::string(status.message()).find("row 2"), std::string::npos) << status.message();
  batch.wants = {1, 1, 0};
  EXPECT_TRUE(model.forward(batch.batch).ok());
}

TEST(PlanModel, EveryFailedAllocationIsReportedAndNothingLeaks) {
  const TinyModel tiny(spec_of("llama", DType::kQ8_0));
  const std::vector<std::byte> bytes = tiny.bytes();
  test::CountingAllocator allocator;
  test::CpuEngineOptions engine_options;
  engine_options.allocator = &allocator;
  bool succeeded = false;
  size_t n = 0;
  for (; n < 1000 && !succeeded; ++n) {
    allocator.calls = 0;
    allocator.fail_at = n;
    {
      LoadOptions options;
      options.engine = test::cpu_engine(engine_options);
      const auto loaded = load_model(gguf::GgufFile::parse(bytes).value(), options);
      Status status = loaded.status();
      if (status.ok()) {
        const Model& model = *loaded.value()->model;
        auto cache =
            cache::make_cache("fp32", model.layer_shapes(), 32, engine::system_memory()).value();
        test::OwnedBatch batch;
        ASSERT_TRUE(batch.add(*cache, kPrompt).ok());
        status = model.forward(batch.finish(50));
      }
      succeeded = status.ok();
      if (!succeeded) {
        EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
      }
    }
    EXPECT_EQ(allocator.live_blocks, 0U) << "request " << n;
  }
  EXPECT_TRUE(succeeded);
  EXPECT_GT(n, 5U);
}

}  // namespace
}  // namespace gen::model

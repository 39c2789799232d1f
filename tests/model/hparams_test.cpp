// SPDX-License-Identifier: Apache-2.0
// Proves the defaults of hyperparameters and that every value outside its range is refused with a
// message that names key, value and limit.
#include "model/hparams.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/arch/decoder_keys.h"
#include "model/arch/registry.h"
#include "model/gguf/gguf_file.h"
#include "model/hparams_case.h"
#include "support/gguf_writer.h"

namespace gen::model {
namespace {

TEST(HParams, Defaults) {
  const auto h = read([](GgufWriter&) {});
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().architecture, "llama");
  EXPECT_EQ(h.value().context_length, 2048);
  EXPECT_EQ(h.value().n_layers, 3);
  EXPECT_EQ(h.value().hidden, 64);
  EXPECT_FLOAT_EQ(h.value().norm_eps, 1e-5F);
  ASSERT_EQ(h.value().layers.size(), 3U);
  for (const LayerParams& layer : h.value().layers) {
    EXPECT_EQ(layer.mixer, MixerKind::kAttention);
    EXPECT_EQ(layer.feed_forward, 160);
    EXPECT_EQ(layer.attention.n_heads, 4);
    EXPECT_EQ(layer.attention.n_kv_heads, 4);
    EXPECT_EQ(layer.attention.k_dim, 16);
    EXPECT_EQ(layer.attention.v_dim, 16);
    EXPECT_EQ(layer.attention.window, 0);
    EXPECT_EQ(layer.attention.chunk, 0);
    EXPECT_FLOAT_EQ(layer.attention.scale, 0.25F);
    EXPECT_EQ(layer.attention.soft_cap, 0.0F);
    EXPECT_TRUE(layer.attention.causal);
    EXPECT_EQ(layer.attention.use, graph::CacheUse::kOwn);
    EXPECT_EQ(layer.rope.kind, engine::RopeKind::kAdjacent);
    EXPECT_TRUE(layer.rope.freq_factors);
    EXPECT_EQ(layer.rope.n_dims, 16);
    EXPECT_EQ(layer.rope.base, 10000.0);
    EXPECT_EQ(layer.rope.scaling, RopeScaling::kNone);
    EXPECT_EQ(layer.rope.original_context, 2048);
  }
}

TEST(HParams, WhatFilesSay) {
  const auto h = read([](GgufWriter& w) {
    w.set("llama.attention.head_count_kv", uint64_t{2})
        .set("llama.attention.key_length", uint16_t{32})
        .set("llama.attention.value_length", uint8_t{24})
        .set("llama.attention.sliding_window", uint32_t{100})
        .set("llama.attention.chunk_size", uint32_t{64})
        .set("llama.attention.scale", 0.5F)
        .set("llama.rope.dimension_count", uint32_t{8})
        .set("llama.rope.freq_base", 500000.0F)
        .set_string("llama.rope.scaling.type", "yarn")
        .set("llama.rope.scaling.factor", 8.0F)
        .set("llama.rope.scaling.original_context_length", uint32_t{512})
        .set("llama.rope.scaling.attn_factor", 1.25F)
        .set("llama.rope.scaling.yarn_beta_fast", 16.0F);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  for (const LayerParams& layer : h.value().layers) {
    EXPECT_EQ(layer.attention.n_kv_heads, 2);
    EXPECT_EQ(layer.attention.k_dim, 32);
    EXPECT_EQ(layer.attention.v_dim, 24);
    EXPECT_EQ(layer.attention.window, 100);
    EXPECT_EQ(layer.attention.chunk, 64);
    EXPECT_EQ(layer.attention.scale, 0.5F);
  }
  EXPECT_EQ(h.value().layers[2].rope.n_dims, 8);
  EXPECT_EQ(h.value().layers[2].rope.base, 500000.0);
  EXPECT_EQ(h.value().layers[2].rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(h.value().layers[2].rope.factor, 8.0);
  EXPECT_EQ(h.value().layers[2].rope.original_context, 512);
  EXPECT_EQ(h.value().layers[2].rope.attn_factor, 1.25);
  EXPECT_EQ(h.value().layers[2].rope.yarn_beta_fast, 16.0);
  EXPECT_EQ(h.value().layers[2].rope.yarn_beta_slow, 1.0);
}

TEST(HParams, OldAndImplicitScaling) {
  const auto old = read([](GgufWriter& w) { w.set("llama.rope.scale_linear", 4.0F); });
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old.value().layers[0].rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(old.value().layers[0].rope.factor, 4.0);
  const auto zero = read([](GgufWriter& w) { w.set("llama.rope.scaling.factor", 0.0F); });
  ASSERT_TRUE(zero.ok());
  EXPECT_EQ(zero.value().layers[0].rope.scaling, RopeScaling::kNone);
  const auto none = read([](GgufWriter& w) {
    w.set("llama.rope.scaling.factor", 4.0F).set_string("llama.rope.scaling.type", "none");
  });
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none.value().layers[0].rope.scaling, RopeScaling::kNone);
}

TEST(HParams, LayersMayBeListed) {
  const auto widths = read(
      [](GgufWriter& w) {
        w.set_array<int16_t>("llama.attention.head_count_kv", {4, 2, 1, 99})
            .set_array<int32_t>("llama.feed_forward_length", {96, 32, 64});
      },
      "feed_forward_length");
  ASSERT_TRUE(widths.ok()) << widths.status().message();
  EXPECT_EQ(each(widths.value(), &graph::AttentionSpec::n_heads), (Numbers{4, 4, 4}));
  EXPECT_EQ(each(widths.value(), &graph::AttentionSpec::n_kv_heads), (Numbers{4, 2, 1}));
  EXPECT_EQ(widths.value().layers[0].feed_forward, 96);
  EXPECT_EQ(widths.value().layers[1].feed_forward, 32);
  EXPECT_EQ(widths.value().layers[2].feed_forward, 64);

  const auto heads = read(
      [](GgufWriter& w) {
        w.set_array<uint64_t>("llama.attention.head_count", {4, 8, 2});
      },
      "attention.head_count");
  ASSERT_TRUE(heads.ok()) << heads.status().message();
  EXPECT_EQ(each(heads.value(), &graph::AttentionSpec::n_heads), (Numbers{4, 8, 2}));
  EXPECT_EQ(each(heads.value(), &graph::AttentionSpec::n_kv_heads), (Numbers{4, 8, 2}));
  // Even shares of the width, and what follows from them.
  EXPECT_EQ(each(heads.value(), &graph::AttentionSpec::k_dim), (Numbers{16, 8, 32}));
  EXPECT_EQ(each(heads.value(), &graph::AttentionSpec::scale),
            (std::vector<float>{0.25F, static_cast<float>(1 / std::sqrt(8.0)),
                                static_cast<float>(1 / std::sqrt(32.0))}));
  EXPECT_EQ(heads.value().layers[1].rope.n_dims, 8);
  EXPECT_EQ(heads.value().layers[2].rope.n_dims, 32);
}

/// The keys of a family that is made up: blocks may do without attention, one of three sees
/// everything, logits are capped.
Status read_made_up(KeyReader& keys, HParams* h) {
  GEN_TRY(arch::read_model(keys, h));
  GEN_TRY(arch::read_feed_forward(keys, h));
  GEN_TRY(arch::read_heads(keys, true, h));
  GEN_TRY(arch::read_windows(keys, {.window = 0, .pattern = 3}, h));
  GEN_TRY(arch::read_rope(keys, {.kind = engine::RopeKind::kHalves}, h));
  double cap = 0.0;
  return keys.number_or("final_logit_softcapping", 0.0, 0.0, 1e6, &cap);
}

TEST(HParams, ArchitecturesReadTheirOwn) {
  const Change change = [](GgufWriter& w) {
    w.set_array<uint32_t>("llama.attention.head_count_kv", {2, 0, 1})
        .set("llama.attention.sliding_window", uint32_t{7})
        .set("llama.final_logit_softcapping", 30.0F);
  };
  const auto h = read(change, "", read_made_up);
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].mixer, MixerKind::kAttention);
  EXPECT_EQ(h.value().layers[1].mixer, MixerKind::kNone);
  EXPECT_EQ(h.value().layers[2].mixer, MixerKind::kAttention);
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::n_kv_heads), (Numbers{2, 0, 1}));
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{7, 7, 0}));
  EXPECT_EQ(h.value().layers[0].rope.kind, engine::RopeKind::kHalves);
  EXPECT_EQ(h.value().layers[1].rope.kind, engine::RopeKind::kNone);
  // A family that does not know the cap must not pass over it; nor one that has no such blocks.
  const auto other = read([](GgufWriter& w) { w.set("llama.final_logit_softcapping", 30.0F); });
  EXPECT_EQ(other.status().code(), Code::kUnsupported) << other.status().message();
  EXPECT_EQ(read(change).status().message(),
            std::string("llama.attention.head_count_kv[1] is 0, outside [1, 65536]"));
}

TEST(HParams, NeutralValuesChangeNothing) {
  const auto h = read([](GgufWriter& w) {
    w.set("llama.expert_count", uint32_t{0})
        .set("llama.attention.causal", true)
        .set("llama.embedding_scale", 1.0F)
        .set("llama.residual_scale", 0.0F)
        .set("llama.logit_scale", 0.0F);
  });
  EXPECT_TRUE(h.ok()) << h.status().message();
}

struct Bad {
  const char* name;
  const char* without;  // the key that is left out, or ""
  Change change;
  Code code;
  const char* says;
};

class BadHParams : public testing::TestWithParam<Bad> {};

TEST_P(BadHParams, AreRefused) {
  const auto h = read(GetParam().change, GetParam().without);
  ASSERT_FALSE(h.ok());
  EXPECT_EQ(h.status().code(), GetParam().code) << h.status().message();
  EXPECT_NE(std::string(h.status().message()).find(GetParam().says), std::string::npos)
      << h.status().message();
  EXPECT_EQ(std::string(h.status().message()).find('\n'), std::string::npos);
}

constexpr Code kFormat = Code::kFormat;
constexpr Code kUnsupported = Code::kUnsupported;
const Bad kBad[] = {
    {"no_context", "context_length", nothing(), kFormat, "llama.context_length"},
    {"no_layers", "block_count", nothing(), kFormat, "llama.block_count"},
    {"no_width", "embedding_length", nothing(), kFormat, "llama.embedding_length"},
    {"no_feed_forward", "feed_forward_length", nothing(), kFormat, "llama.feed_forward_length"},
    {"no_heads", "attention.head_count", nothing(), kFormat, "llama.attention.head_count"},
    {"no_eps", "attention.layer_norm_rms_epsilon", nothing(), kFormat,
     "llama.attention.layer_norm_rms_epsilon"},
    {"zero_context", "context_length", u32("context_length", 0), kFormat,
     "llama.context_length is 0, outside [1, 1073741824]"},
    {"huge_context", "context_length", u32("context_length", 0xFFFFFFFF), kFormat, "4294967295"},
    {"negative_context", "context_length",
     [](GgufWriter& w) { w.set("llama.context_length", int32_t{-5}); }, kFormat,
     "llama.context_length"},
    {"context_is_text", "context_length", text("context_length", "long"), kFormat,
     "llama.context_length"},
    {"zero_layers", "block_count", u32("block_count", 0), kFormat,
     "llama.block_count is 0, outside [1, 4096]"},
    {"many_layers", "block_count", u32("block_count", 4097), kFormat, "4097"},
    {"zero_width", "embedding_length", u32("embedding_length", 0), kFormat,
     "llama.embedding_length is 0"},
    {"huge_width", "embedding_length", u32("embedding_length", 1U << 25), kFormat, "33554432"},
    {"zero_heads", "attention.head_count", u32("attention.head_count", 0), kFormat,
     "llama.attention.head_count is 0, outside [1, 65536]"},
    {"uneven_heads", "attention.head_count", u32("attention.head_count", 5), kFormat,
     "llama.embedding_length is 64, not a multiple of 5 heads"},
    {"more_heads_than_width", "attention.head_count", u32("attention.head_count", 128), kFormat,
     "not a multiple of 128 heads"},
    {"zero_kv_heads", "", u32("attention.head_count_kv", 0), kFormat,
     "llama.attention.head_count_kv is 0"},
    {"uneven_kv_heads", "", u32("attention.head_count_kv", 3), kFormat,
     "llama.attention.head_count_kv is 3, which does not divide 4 heads"},
    {"uneven_listed_kv_heads", "",
     [](GgufWriter& w) {
       w.set_array<uint32_t>("llama.attention.head_count_kv", {2, 2, 3});
     },
     kFormat, "llama.attention.head_count_kv is 3, which does not divide 4 heads in layer 2"},
    {"zero_width_listed", "feed_forward_length",
     [](GgufWriter& w) {
       w.set_array<uint32_t>("llama.feed_forward_length", {64, 0, 64});
     },
     kFormat, "llama.feed_forward_length[1] is 0, outside [1, 16777216]"},
    {"too_few_layers_listed", "",
     [](GgufWriter& w) {
       w.set_array<uint32_t>("llama.attention.head_count_kv", {2, 2});
     },
     kFormat, "2 values for 3 layers"},
    {"empty_list", "",
     [](GgufWriter& w) { w.set_array<uint32_t>("llama.attention.head_count_kv", {}); }, kFormat,
     "llama.attention.head_count_kv"},
    {"zero_key_length", "", u32("attention.key_length", 0), kFormat,
     "llama.attention.key_length is 0"},
    {"huge_value_length", "", u32("attention.value_length", 65537), kFormat,
     "llama.attention.value_length is 65537, outside [1, 65536]"},
    {"huge_window", "", u32("attention.sliding_window", 0x80000000U), kFormat,
     "llama.attention.sliding_window"},
    {"huge_chunk", "", u32("attention.chunk_size", 0x80000000U), kFormat,
     "llama.attention.chunk_size"},
    {"short_pattern", "",
     [](GgufWriter& w) {
       w.set_array<uint32_t>("llama.attention.sliding_window_pattern", {1, 0});
     },
     kFormat, "2 values for 3 layers"},
    {"zero_pattern", "", u32("attention.sliding_window_pattern", 0), kFormat,
     "llama.attention.sliding_window_pattern is 0"},
    {"pattern_of_text", "", text("attention.sliding_window_pattern", "LLG"), kFormat,
     "llama.attention.sliding_window_pattern"},
    {"zero_eps", "attention.layer_norm_rms_epsilon", f32("attention.layer_norm_rms_epsilon", 0.0F),
     kFormat, "llama.attention.layer_norm_rms_epsilon is 0"},
    {"nan_eps", "attention.layer_norm_rms_epsilon",
     f32("attention.layer_norm_rms_epsilon", std::nanf("")), kFormat,
     "llama.attention.layer_norm_rms_epsilon"},
    {"negative_scale", "", f32("attention.scale", -1.0F), kFormat, "llama.attention.scale is -1"},
    {"wide_rope", "", u32("rope.dimension_count", 18), kFormat,
     "llama.rope.dimension_count is 18, outside [2, 16]"},
    {"odd_rope", "", u32("rope.dimension_count", 7), kFormat,
     "llama.rope.dimension_count is 7, not even"},
    {"base_of_one", "", f32("rope.freq_base", 1.0F), kFormat, "llama.rope.freq_base is 1"},
    {"infinite_base", "", f32("rope.freq_base", std::numeric_limits<float>::infinity()), kFormat,
     "llama.rope.freq_base"},
    {"negative_factor", "", f32("rope.scaling.factor", -2.0F), kFormat,
     "llama.rope.scaling.factor is -2"},
    {"tiny_factor", "", f32("rope.scaling.factor", 1e-9F), kFormat, "llama.rope.scaling.factor"},
    {"unknown_scaling", "", text("rope.scaling.type", "longrope"), kUnsupported,
     "llama.rope.scaling.type \"longrope\""},
    {"scaling_with_line_break", "", text("rope.scaling.type", "a\nb"), kUnsupported,
     "llama.rope.scaling.type"},
    {"zero_original", "", u32("rope.scaling.original_context_length", 0), kFormat,
     "llama.rope.scaling.original_context_length is 0"},
    {"zero_attn_factor", "", f32("rope.scaling.attn_factor", 0.0F), kFormat,
     "llama.rope.scaling.attn_factor is 0"},
    {"llama3_order", "",
     [](GgufWriter& w) {
       w.set_string("llama.rope.scaling.type", "llama3")
           .set("llama.rope.scaling.low_freq_factor", 4.0F)
           .set("llama.rope.scaling.high_freq_factor", 4.0F);
     },
     kFormat, "llama.rope.scaling.high_freq_factor is 4, not above"},
    {"experts_alone", "", u32("expert_count", 8), kFormat, "llama.expert_used_count"},
    {"too_many_experts", "", experts(4000, 2), kFormat,
     "llama.expert_count is 4000, outside [0, 2048]"},
    {"no_experts_used", "", experts(8, 0), kFormat, "llama.expert_used_count is 0, outside [1, 8]"},
    {"more_experts_used", "", experts(8, 9), kFormat,
     "llama.expert_used_count is 9, outside [1, 8]"},
    {"no_expert_width", "", experts(8, 2, u32("expert_feed_forward_length", 0)), kFormat,
     "llama.expert_feed_forward_length is 0, outside [1, 16777216]"},
    {"gating", "", experts(8, 2, u32("expert_gating_func", 5)), kFormat,
     "llama.expert_gating_func is 5, outside [0, 4]"},
    {"expert_scale", "", experts(8, 2, f32("expert_weights_scale", -1.0F)), kFormat,
     "llama.expert_weights_scale is -1"},
    {"dense_blocks", "", experts(8, 2, u32("leading_dense_block_count", 4)), kFormat,
     "llama.leading_dense_block_count is 4, outside [0, 3]"},
    {"uneven_groups", "", experts(8, 2, u32("expert_group_count", 3)), kFormat,
     "llama.expert_group_count is 3"},
    {"small_groups", "",
     experts(8, 3,
             [](GgufWriter& w) {
               u32("expert_group_count", 4)(w);
               u32("expert_group_used_count", 1)(w);
             }),
     kFormat, "but 3 of 8 experts are chosen from 1 groups"},
    {"experts_as_text", "", text("expert_count", "many"), kFormat, "llama.expert_count"},
    {"soft_cap", "", f32("attn_logit_softcapping", 50.0F), kUnsupported,
     "llama.attn_logit_softcapping is 50"},
    {"final_cap", "", f32("final_logit_softcapping", 30.0F), kUnsupported,
     "llama.final_logit_softcapping is 30"},
    {"alibi", "", f32("attention.max_alibi_bias", 8.0F), kUnsupported,
     "llama.attention.max_alibi_bias is 8"},
    {"clamps", "", f32("attention.clamp_kqv", 4.0F), kUnsupported,
     "llama.attention.clamp_kqv is 4"},
    {"temperature", "", f32("attention.temperature_scale", 0.1F), kUnsupported,
     "llama.attention.temperature_scale is 0.1"},
    {"logit_scale", "", f32("logit_scale", 8.0F), kUnsupported, "llama.logit_scale is 8"},
    {"embedding_scale", "", f32("embedding_scale", 12.0F), kUnsupported,
     "llama.embedding_scale is 12"},
    {"residual_scale", "", f32("residual_scale", 0.22F), kUnsupported,
     "llama.residual_scale is 0.22"},
    {"yarn_multiplier", "", f32("rope.scaling.yarn_log_multiplier", 0.1F), kUnsupported,
     "llama.rope.scaling.yarn_log_multiplier is 0.1"},
    {"sections", "",
     [](GgufWriter& w) {
       w.set_array<uint32_t>("llama.rope.dimension_sections", {0, 3, 3, 0});
     },
     kUnsupported, "llama.rope.dimension_sections is 3: rotation by several positions"},
    {"base_of_windows", "", f32("rope.freq_base_swa", 5e5F), kUnsupported,
     "llama.rope.freq_base_swa is 500000"},
    {"drafting_blocks", "", u32("nextn_predict_layers", 99), kFormat,
     "llama.nextn_predict_layers is 99"},
    {"shared_layers", "", u32("attention.shared_kv_layers", 2), kUnsupported,
     "llama.attention.shared_kv_layers is 2"},
    {"not_causal", "", [](GgufWriter& w) { w.set("llama.attention.causal", false); }, kUnsupported,
     "llama.attention.causal is 0: attention to later rows is not supported"},
};

INSTANTIATE_TEST_SUITE_P(All, BadHParams, testing::ValuesIn(kBad),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(HParams, PatternsOfLayers) {
  const auto windows = [](const auto& set) {
    const auto h = read([&](GgufWriter& w) {
      w.set("llama.attention.sliding_window", uint32_t{8});
      set(w);
    });
    EXPECT_TRUE(h.ok()) << h.status().message();
    return h.ok() ? each(h.value(), &graph::AttentionSpec::window) : Numbers();
  };
  constexpr const char* kKey = "llama.attention.sliding_window_pattern";
  EXPECT_EQ(windows([&](GgufWriter& w) {
              w.set_array<uint32_t>(kKey, {1, 0, 5, 0});
            }),
            (Numbers{8, 0, 8}));
  EXPECT_EQ(windows([&](GgufWriter& w) {
              w.set_array<bool>(kKey, {false, true, true});
            }),
            (Numbers{0, 8, 8}));
  EXPECT_EQ(windows([&](GgufWriter& w) { w.set(kKey, uint32_t{2}); }), (Numbers{8, 0, 8}));
  EXPECT_EQ(windows([&](GgufWriter& w) { w.set(kKey, uint32_t{3}); }), (Numbers{8, 8, 0}));
  EXPECT_EQ(windows([&](GgufWriter& w) { w.set(kKey, uint32_t{1}); }), (Numbers{0, 0, 0}));
}

TEST(HParams, NeedAnArchitecture) {
  const std::vector<std::byte> bytes = GgufWriter().build().bytes;
  auto file = gguf::GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok());
  const auto h = read_hparams(file.value()->metadata(), read_llama);
  EXPECT_EQ(h.status().code(), Code::kFormat);
  EXPECT_NE(std::string(h.status().message()).find("general.architecture"), std::string::npos);
}

}  // namespace
}  // namespace gen::model

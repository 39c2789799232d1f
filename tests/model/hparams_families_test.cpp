// SPDX-License-Identifier: Apache-2.0
// Proves what each family makes of its keys: windows, layers without rotation, factors, caps,
// experts, norms and activations.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/arch/decoder_keys.h"
#include "model/arch/registry.h"
#include "model/hparams.h"
#include "model/hparams_case.h"
#include "support/gguf_writer.h"

namespace gen::model {
namespace {

Result<HParams> read_as(const arch::Architecture& row, const Change& change,
                        const std::string& without = "") {
  return read(change, without,
              [&](KeyReader& keys, HParams* h) { return row.read(row.style, keys, h); });
}

TEST(HParams, OfGemma2) {
  auto h = read_as(arch::kGemma2, [](GgufWriter&) {});
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{4096, 0, 4096}));
  EXPECT_EQ(h.value().layers[0].attention.soft_cap, 50.0F);
  EXPECT_EQ(h.value().logit_cap, 30.0F);
  EXPECT_EQ(h.value().embedding_factor, 8.0F);
  EXPECT_EQ(h.value().layers[0].attention.scale, 0.25F);
  // Heads of 64, where a share of the width is 16.
  const auto large = [](uint32_t layers, float scale) {
    return [=](GgufWriter& w) {
      w.set("llama.block_count", layers).set("llama.attention.key_length", uint32_t{64});
      if (scale != 0.0F) w.set("llama.attention.scale", scale);
    };
  };
  EXPECT_EQ(
      read_as(arch::kGemma2, large(45, 0.0F), "block_count").value().layers[0].attention.scale,
      0.125F);
  EXPECT_EQ(
      read_as(arch::kGemma2, large(46, 0.0F), "block_count").value().layers[45].attention.scale,
      0.25F);
  EXPECT_EQ(
      read_as(arch::kGemma2, large(46, 0.5F), "block_count").value().layers[45].attention.scale,
      0.5F);
  h = read_as(arch::kGemma2, [](GgufWriter& w) {
    w.set("llama.attn_logit_softcapping", 0.0F)
        .set("llama.final_logit_softcapping", 2.5F)
        .set("llama.rope.freq_base_swa", 500.0F)
        .set("llama.attention.sliding_window", uint32_t{3});
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].attention.soft_cap, 0.0F);
  EXPECT_EQ(h.value().logit_cap, 2.5F);
  EXPECT_EQ(h.value().layers[0].rope.base, 500.0);
  EXPECT_EQ(h.value().layers[1].rope.base, 10000.0);
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{3, 0, 3}));
  EXPECT_EQ(
      read_as(arch::kGemma2, [](GgufWriter& w) { w.set("llama.final_logit_softcapping", 1e-9F); })
          .status()
          .code(),
      Code::kFormat);
}

TEST(HParams, OfGranite) {
  auto h = read_as(arch::kGranite, [](GgufWriter&) {});
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().embedding_factor, 1.0F);
  EXPECT_EQ(h.value().residual_factor, 1.0F);
  EXPECT_EQ(h.value().logit_factor, 1.0F);
  EXPECT_EQ(h.value().layers[2].rope.kind, engine::RopeKind::kAdjacent);
  h = read_as(arch::kGranite, [](GgufWriter& w) {
    w.set("llama.embedding_scale", 12.0F)
        .set("llama.residual_scale", 0.25F)
        .set("llama.logit_scale", 8.0F)
        .set("llama.attention.scale", 0.0625F)
        .set("llama.rope.scaling.finetuned", false);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().embedding_factor, 12.0F);
  EXPECT_EQ(h.value().residual_factor, 0.25F);
  EXPECT_EQ(h.value().logit_factor, 0.125F);
  EXPECT_EQ(h.value().layers[2].attention.scale, 0.0625F);
  EXPECT_EQ(h.value().layers[2].rope.kind, engine::RopeKind::kNone);
  for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) {
    const auto set = [&](float value) {
      return read_as(arch::kGranite,
                     [&](GgufWriter& w) { w.set(std::string("llama.") + key, value); });
    };
    EXPECT_TRUE(set(0.0F).ok()) << key;  // there is none
    EXPECT_EQ(set(-1.0F).status().code(), Code::kFormat) << key;
    EXPECT_EQ(set(1e-9F).status().code(), Code::kFormat) << key;
    EXPECT_EQ(set(std::numeric_limits<float>::infinity()).status().code(), Code::kFormat) << key;
  }
}

TEST(HParams, OfGemma4) {
  auto h = read_as(arch::kGemma4, [](GgufWriter& w) {
    w.set_array<bool>("llama.attention.sliding_window_pattern", {true, false, true})
        .set("llama.attention.sliding_window", uint32_t{5})
        .set("llama.attention.key_length", uint32_t{32})
        .set("llama.attention.value_length", uint32_t{32})
        .set("llama.attention.key_length_swa", uint32_t{16})
        .set("llama.attention.value_length_swa", uint32_t{16})
        .set("llama.rope.dimension_count_swa", uint32_t{8})
        .set("llama.rope.freq_base", 1e6F)
        .set("llama.rope.freq_base_swa", 500.0F)
        .set("llama.attention.shared_kv_layers", uint32_t{1})
        .set("llama.embedding_length_per_layer_input", uint32_t{24})
        .set("llama.final_logit_softcapping", 30.0F);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{5, 0, 5}));
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::k_dim), (Numbers{16, 32, 16}));
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::v_dim), (Numbers{16, 32, 16}));
  const std::vector<LayerParams>& layers = h.value().layers;
  EXPECT_EQ(layers[0].rope.n_dims, 8);
  EXPECT_EQ(layers[1].rope.n_dims, 32);
  EXPECT_EQ(layers[0].rope.base, 500.0);
  EXPECT_EQ(layers[1].rope.base, 1e6);
  EXPECT_FALSE(layers[0].rope.freq_factors);
  EXPECT_TRUE(layers[1].rope.freq_factors);
  EXPECT_EQ(layers[1].attention.scale, 1.0F);
  EXPECT_EQ(layers[2].attention.use, graph::CacheUse::kShared);
  EXPECT_EQ(layers[2].attention.shared, 0);  // the last one with a window
  EXPECT_EQ(h.value().layer_input, 24);
  EXPECT_EQ(h.value().logit_cap, 30.0F);
  EXPECT_EQ(h.value().embedding_factor, 8.0F);
  // The first layer that shares needs one of its kind before it.
  h = read_as(arch::kGemma4, [](GgufWriter& w) {
    w.set_array<bool>("llama.attention.sliding_window_pattern", {true, false, true})
        .set("llama.attention.sliding_window", uint32_t{5})
        .set("llama.attention.shared_kv_layers", uint32_t{2});
  });
  EXPECT_EQ(std::string(h.status().message()),
            "llama.attention.shared_kv_layers is 2, but layer 1 has no earlier one of its kind");
}

TEST(HParams, OfMistral3) {
  const auto read = [](float temperature) {
    return read_as(arch::kMistral3, [&](GgufWriter& w) {
      w.set("llama.attention.temperature_scale", temperature)
          .set_string("llama.rope.scaling.type", "yarn")
          .set("llama.rope.scaling.factor", 16.0F)
          .set("llama.rope.scaling.yarn_log_multiplier", 1.0F)
          .set("llama.rope.scaling.original_context_length", uint32_t{40});
    });
  };
  auto h = read(0.1F);
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[2].query_temperature, 0.1F);
  EXPECT_EQ(h.value().layers[2].temperature_every, 40);
  EXPECT_EQ(h.value().layers[2].rope.yarn_log_multiplier, 1.0);
  EXPECT_EQ(read(-0.1F).status().code(), Code::kFormat);
  EXPECT_EQ(read_as(arch::kLlama, f32("attention.temperature_scale", 0.1F)).status().code(),
            Code::kUnsupported);
}

TEST(HParams, OfMiniCpm) {
  auto h = read_as(arch::kMiniCpm, [](GgufWriter&) {});
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().embedding_factor, 12.0F);
  EXPECT_FLOAT_EQ(h.value().residual_factor, 1.4F / std::sqrt(3.0F));
  EXPECT_EQ(h.value().logit_factor, 4.0F);  // 256 / 64
  h = read_as(arch::kMiniCpm, [](GgufWriter& w) {
    w.set("llama.embedding_scale", 2.0F)
        .set("llama.residual_scale", 0.25F)
        .set("llama.logit_scale", 8.0F);
  });
  EXPECT_EQ(h.value().embedding_factor, 2.0F);
  EXPECT_EQ(h.value().residual_factor, 0.25F);
  EXPECT_EQ(h.value().logit_factor, 0.125F);
}

TEST(HParams, OfHunyuanDense) {
  auto h = read_as(arch::kHunyuanDense, [](GgufWriter&) {});
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[2].rope.base, 10000.0);
  h = read_as(arch::kHunyuanDense, f32("rope.scaling.alpha", 1000.0F));
  ASSERT_TRUE(h.ok()) << h.status().message();
  // Heads of 16: 1000^(16 / 14) is 2682.7.
  EXPECT_NEAR(h.value().layers[2].rope.base, 26826957.95, 1.0);
  EXPECT_EQ(read_as(arch::kHunyuanDense, f32("rope.scaling.alpha", -1.0F)).status().code(),
            Code::kFormat);
}

TEST(HParams, OfMuseGlimmer) {
  const auto h = read_as(arch::kMuseGlimmer, [](GgufWriter& w) {
    w.set("llama.attention.sliding_window", uint32_t{5}).set("llama.logit_scale", 0.5F);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{5, 5, 5}));
  EXPECT_EQ(h.value().layers[0].rope.kind, engine::RopeKind::kAdjacent);
  EXPECT_EQ(h.value().logit_factor, 0.5F);
  const auto all = read_as(arch::kMuseGlimmer, [](GgufWriter&) {});
  EXPECT_EQ(each(all.value(), &graph::AttentionSpec::window), (Numbers{2048, 2048, 2048}));
  const auto none = read_as(arch::kMuseGlimmer, [](GgufWriter& w) {
    w.set("llama.attention.sliding_window", uint32_t{0});
  });
  EXPECT_EQ(none.value().layers[0].rope.kind, engine::RopeKind::kNone);
}

/// What a file does not say is taken from the family, where all of its models have the same.
TEST(HParams, FamiliesKnowWhatFilesDoNotSay) {
  const auto nothing = [](GgufWriter&) {};
  auto h = read_as(
      arch::kGptOss,
      [](GgufWriter& w) {
        w.set("llama.expert_count", uint32_t{4}).set("llama.expert_used_count", uint32_t{2});
      },
      "attention.layer_norm_rms_epsilon");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().norm_eps, 1e-5F);
  EXPECT_EQ(h.value().layers[0].attention.window, 128);
  EXPECT_EQ(h.value().layers[0].rope.base, 150000.0);
  h = read_as(arch::kOlmo2, nothing, "attention.layer_norm_rms_epsilon");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().norm_eps, 1e-6F);
  EXPECT_EQ(h.value().layers[0].attention.window, 0);
  EXPECT_EQ(h.value().layers[0].rope.base, 500000.0);
  h = read_as(arch::kOlmo2, [](GgufWriter& w) {
    w.set_array<bool>("llama.attention.sliding_window_pattern", {true, false, true});
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{4096, 0, 4096}));
  for (const auto& [layers, window] : {std::pair{26U, 512}, {34U, 1024}, {62U, 1024}}) {
    h = read_as(
        arch::kGemma3, [n = layers](GgufWriter& w) { w.set("llama.block_count", n); },
        "block_count");
    ASSERT_TRUE(h.ok()) << h.status().message();
    EXPECT_EQ(h.value().layers[0].attention.window, window);
    EXPECT_EQ(h.value().layers[5].attention.window, 0);
    EXPECT_EQ(h.value().layers[5].rope.base, 1e6);
  }
  // Windows of several widths.
  for (const arch::Architecture* of : {&arch::kGemma3, &arch::kGemma4}) {
    const Status status = read_as(*of, nothing).status();
    EXPECT_EQ(status.code(), Code::kFormat);
    EXPECT_EQ(std::string(status.message()),
              "llama.attention.sliding_window is missing: models of this architecture have windows "
              "of several widths");
  }
  const Status listed =
      read_as(arch::kLlama, [](GgufWriter& w) {
        w.set_array<bool>("llama.attention.sliding_window_pattern", {true, false, true});
      }).status();
  EXPECT_EQ(std::string(listed.message()),
            "llama.attention.sliding_window is missing, but llama.attention.sliding_window_pattern "
            "says that layers have a window");
  EXPECT_EQ(
      std::string(
          read_as(arch::kQwen3, nothing, "attention.layer_norm_rms_epsilon").status().message()),
      "llama.attention.layer_norm_rms_epsilon is missing");
}

/// Blocks that only draft are left out where the family does not run them.
TEST(HParams, BlocksThatDraftMayBeLeftOut) {
  const auto h = read_as(arch::kLlama,
                         [](GgufWriter& w) { w.set("llama.nextn_predict_layers", uint32_t{1}); });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().n_layers, 2);
  EXPECT_EQ(h.value().layers.size(), 2U);
  EXPECT_EQ(h.value().n_draft_layers, 0);
  EXPECT_TRUE(h.value().draft_layers.empty());
}

TEST(HParams, OfRopeSections) {
  for (const arch::Architecture* row : {&arch::kQwen2Vl, &arch::kQwen3Vl, &arch::kGlm4}) {
    const auto read = [&](const std::vector<uint32_t>& sections) {
      return read_as(
          *row, [&](GgufWriter& w) { w.set_array("llama.rope.dimension_sections", sections); });
    };
    const auto h = read({4, 2, 2, 0});
    ASSERT_TRUE(h.ok()) << h.status().message();
    EXPECT_EQ(h.value().layers[0].rope.kind, engine::RopeKind::kHalves);
    EXPECT_EQ(read({4, 2, 2, 1}).status().code(), Code::kUnsupported);
    EXPECT_EQ(read({4, 0, 2, 0}).status().code(), Code::kUnsupported);
  }
}

TEST(HParams, OfExperts) {
  auto h = read_as(arch::kQwen2Moe, experts(60, 4));
  ASSERT_TRUE(h.ok()) << h.status().message();
  for (const LayerParams& layer : h.value().layers) {
    EXPECT_EQ(layer.experts.routing,
              (engine::Routing{engine::Gating::kSoftmax, 60, 4, 1, 1, false, 1.0F}));
    EXPECT_EQ(layer.experts.feed_forward, 160);
    EXPECT_EQ(layer.experts.shared, 160);
  }
  h = read_as(arch::kQwen2Moe, experts(60, 4, [](GgufWriter& w) {
                u32("expert_feed_forward_length", 24)(w);
                u32("expert_shared_count", 3)(w);
                u32("leading_dense_block_count", 2)(w);
                u32("expert_gating_func", 2)(w);
                u32("expert_group_count", 6)(w);
                u32("expert_group_used_count", 3)(w);
                f32("expert_weights_scale", 2.5F)(w);
                w.set("llama.expert_weights_norm", true);
              }));
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[1].experts.routing.n_experts, 0);
  const ExpertParams& last = h.value().layers[2].experts;
  EXPECT_EQ(last.routing, (engine::Routing{engine::Gating::kSigmoid, 60, 4, 6, 3, true, 2.5F}));
  EXPECT_EQ(last.feed_forward, 24);
  EXPECT_EQ(last.shared, 72);
  // 0 says that there is no scale and are no groups.
  h = read_as(arch::kQwen3Moe, experts(8, 2, [](GgufWriter& w) {
                f32("expert_weights_scale", 0.0F)(w);
                u32("expert_group_count", 0)(w);
                u32("expert_gating_func", 0)(w);
              }));
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].experts.routing,
            (engine::Routing{engine::Gating::kSoftmax, 8, 2, 1, 1, true, 1.0F}));
  h = read_as(arch::kQwen3Moe, u32("expert_count", 0));
  EXPECT_EQ(std::string(h.status().message()), "llama.expert_count is 0, outside [1, 2048]");
  h = read_as(arch::kQwen3, experts(8, 2));
  EXPECT_EQ(h.status().code(), Code::kUnsupported);
}

TEST(HParams, OfGptOss) {
  auto h = read_as(arch::kGptOss, experts(8, 2, [](GgufWriter& w) {
                     u32("attention.sliding_window", 128)(w);
                     u32("expert_feed_forward_length", 24)(w);
                   }));
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{128, 0, 128}));
  for (const LayerParams& layer : h.value().layers) {
    EXPECT_EQ(layer.experts.routing,
              (engine::Routing{engine::Gating::kSoftmaxChosen, 8, 2, 1, 1, false, 1.0F}));
    EXPECT_EQ(layer.experts.feed_forward, 24);
    EXPECT_EQ(layer.activation.alpha, 1.702F);
    EXPECT_EQ(layer.activation.limit, 7.0F);
  }
  h = read_as(arch::kGptOss, experts(8, 2, u32("expert_gating_func", 4)));
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].experts.routing.gating, engine::Gating::kRootSoftplus);
  EXPECT_FALSE(read_as(arch::kGptOss, [](GgufWriter&) {}).ok());
}

/// Of a mixture of 8 experts with 2 chosen, and more.
Result<HParams> read_mixture(const arch::Architecture& row, const Change& more = nothing(),
                             const std::string& without = "") {
  return read_as(row, experts(8, 2, more), without);
}

TEST(HParams, OfFilesWithoutAWidthOfTheFeedForward) {
  const auto h =
      read_mixture(arch::kQwen3Moe, u32("expert_feed_forward_length", 24), "feed_forward_length");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[2].feed_forward, 24);
  EXPECT_EQ(h.value().layers[2].experts.feed_forward, 24);
  EXPECT_EQ(std::string(
                read_mixture(arch::kQwen3Moe, nothing(), "feed_forward_length").status().message()),
            "metadata 'llama.feed_forward_length' is missing (u64 wanted)");
}

/// Without a width of their own experts are as wide as the feed-forward that is in some blocks.
TEST(HParams, OfExpertsInSomeBlocks) {
  const auto h = read_mixture(
      arch::kNemotronHMoe,
      [](GgufWriter& w) {
        for (const char* key :
             {"conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count"}) {
          w.set(std::string("llama.ssm.") + key, 4U);
        }
        w.set_array<uint32_t>("llama.feed_forward_length", {0, 0, 160});
      },
      "feed_forward_length");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].experts.routing.n_experts, 0);
  EXPECT_EQ(h.value().layers[2].experts.routing.n_experts, 8);
  EXPECT_EQ(h.value().layers[2].experts.feed_forward, 160);
}

TEST(HParams, OfQwen35MoeAndQwen3Next) {
  for (const arch::Architecture* row : {&arch::kQwen35Moe, &arch::kQwen3Next}) {
    const auto h = read_mixture(*row, [](GgufWriter& w) {
      for (const auto& [key, value] : {std::pair{"conv_kernel", 4U},
                                       {"inner_size", 128U},
                                       {"state_size", 16U},
                                       {"time_step_rank", 8U},
                                       {"group_count", 2U}}) {
        w.set(std::string("llama.ssm.") + key, value);
      }
      u32("full_attention_interval", 2)(w);
      u32("nextn_predict_layers", 1)(w);
      u32("expert_shared_feed_forward_length", 48)(w);
    });
    ASSERT_TRUE(h.ok()) << h.status().message();
    EXPECT_EQ(h.value().n_layers, 2);
    EXPECT_EQ(h.value().layers[0].mixer, MixerKind::kRecurrent);
    EXPECT_EQ(h.value().layers[1].mixer, MixerKind::kAttention);
    const ExpertParams& of = h.value().layers[1].experts;
    EXPECT_EQ(of.routing, (engine::Routing{engine::Gating::kSoftmax, 8, 2, 1, 1, true, 1.0F}));
    EXPECT_EQ(of.shared, 48);
  }
}

TEST(HParams, OfGlm4Moe) {
  const auto h = read_mixture(arch::kGlm4Moe, [](GgufWriter& w) {
    u32("nextn_predict_layers", 1)(w);
    u32("leading_dense_block_count", 1)(w);
    u32("expert_feed_forward_length", 24)(w);
    u32("expert_shared_count", 2)(w);
    f32("expert_weights_scale", 2.5F)(w);
    w.set("llama.expert_weights_norm", true);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().n_layers, 2);
  EXPECT_EQ(h.value().layers[0].experts.routing.n_experts, 0);
  const ExpertParams& of = h.value().layers[1].experts;
  EXPECT_EQ(of.routing, (engine::Routing{engine::Gating::kSigmoid, 8, 2, 1, 1, true, 2.5F}));
  EXPECT_EQ(of.shared, 48);
  EXPECT_FALSE(read_mixture(arch::kGlm4Moe).value().layers[0].experts.routing.normalise);
}

/// A shared expert only where the file says how wide, or how many.
TEST(HParams, OfSharedExpertsThatMayBeAbsent) {
  for (const arch::Architecture* row :
       {&arch::kGraniteMoe, &arch::kErnie45Moe, &arch::kGraniteHybrid, &arch::kCohere2Moe}) {
    const auto shared = [&](const Change& more) {
      const auto h = read_mixture(*row, [&](GgufWriter& w) {
        if (row == &arch::kGraniteHybrid) {
          for (const char* key :
               {"conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count"}) {
            w.set(std::string("llama.ssm.") + key, 4U);
          }
        }
        more(w);
      });
      EXPECT_TRUE(h.ok()) << h.status().message();
      return h.value().layers[2].experts.shared;
    };
    EXPECT_EQ(shared(nothing()), 0) << row->name;
    EXPECT_EQ(shared(u32("expert_shared_feed_forward_length", 48)), 48) << row->name;
    EXPECT_EQ(shared(u32("expert_shared_count", 2)), 320) << row->name;
  }
}

TEST(HParams, OfExpertsInEveryNthBlock) {
  const auto blocks = [](uint32_t dense, uint32_t step) {
    const auto h = read_as(arch::kErnie45Moe,
                           experts(8, 2,
                                   [&](GgufWriter& w) {
                                     u32("block_count", 7)(w);
                                     u32("leading_dense_block_count", dense)(w);
                                     u32("interleave_moe_layer_step", step)(w);
                                   }),
                           "block_count");
    EXPECT_TRUE(h.ok()) << h.status().message();
    std::string found;
    for (const LayerParams& layer : h.value().layers) {
      found += layer.experts.routing.n_experts > 0 ? 'e' : 'd';
    }
    return found;
  };
  EXPECT_EQ(blocks(0, 1), "eeeeeee");
  EXPECT_EQ(blocks(1, 1), "deeeeee");
  EXPECT_EQ(blocks(0, 2), "dededed");
  EXPECT_EQ(blocks(0, 3), "ddedded");
  EXPECT_EQ(blocks(3, 3), "ddddded");
  EXPECT_EQ(read_mixture(arch::kErnie45Moe, u32("interleave_moe_layer_step", 0)).status().code(),
            Code::kFormat);
}

TEST(HParams, OfLfm2MoeAndMiniMaxM2) {
  for (const arch::Architecture* row : {&arch::kLfm2Moe, &arch::kMiniMaxM2}) {
    const auto h = read_mixture(*row, [&](GgufWriter& w) {
      if (row == &arch::kLfm2Moe) u32("shortconv.l_cache", 3)(w);
    });
    ASSERT_TRUE(h.ok()) << h.status().message();
    const ExpertParams& of = h.value().layers[0].experts;
    EXPECT_EQ(of.routing, (engine::Routing{engine::Gating::kSigmoid, 8, 2, 1, 1, true, 1.0F}));
    EXPECT_EQ(of.shared, 0);
  }
}

Change four_more_layers(const Change& more) {
  return [=](GgufWriter& w) {
    u32("block_count", 7)(w);
    more(w);
  };
}

TEST(HParams, OfCohere2Moe) {
  const auto read = [](const Change& more, const char* without = "block_count") {
    return read_mixture(arch::kCohere2Moe, four_more_layers([&](GgufWriter& w) {
                          u32("leading_dense_block_count", 1)(w);
                          f32("logit_scale", 0.25F)(w);
                          more(w);
                        }),
                        without);
  };
  const auto kinds = [](const HParams& h) {
    std::string found;
    for (const LayerParams& layer : h.layers) {
      found += layer.rope.kind == engine::RopeKind::kNone ? '-' : 'r';
    }
    return found;
  };
  auto h = read(u32("attention.sliding_window", 5));
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{0, 5, 5, 5, 0, 5, 5}));
  EXPECT_EQ(kinds(h.value()), "rrrr-rr");  // the first is dense
  EXPECT_FALSE(h.value().layer_norms);     // by the key that there is
  EXPECT_EQ(h.value().logit_factor, 0.25F);
  EXPECT_EQ(h.value().layers[1].experts.routing.gating, engine::Gating::kSigmoid);
  h = read([](GgufWriter& w) {
    u32("attention.sliding_window", 5)(w);
    u32("attention.sliding_window_pattern", 3)(w);
  });
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{0, 5, 5, 0, 5, 5, 0}));
  h = read([](GgufWriter& w) {
    u32("attention.sliding_window", 5)(w);
    w.set_array<bool>("llama.attention.sliding_window_pattern",
                      {true, false, true, false, true, false, true});
  });
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{5, 0, 5, 0, 5, 0, 5}));
  EXPECT_EQ(kinds(h.value()), "r-r-r-r");
  const auto norms = read_mixture(arch::kCohere2Moe, f32("attention.layer_norm_epsilon", 1e-3F),
                                  "attention.layer_norm_rms_epsilon");
  ASSERT_TRUE(norms.ok()) << norms.status().message();
  EXPECT_TRUE(norms.value().layer_norms);
  EXPECT_FLOAT_EQ(norms.value().norm_eps, 1e-3F);
  EXPECT_EQ(each(norms.value(), &graph::AttentionSpec::window), (Numbers{0, 4096, 4096}));
}

TEST(HParams, OfLaguna) {
  const auto yarn = [](GgufWriter& w) {
    w.set_string("llama.rope.scaling.type", "yarn");
    f32("rope.scaling.factor", 8.0F)(w);
    f32("rope.scaling.attn_factor", 1.25F)(w);
    f32("rope.freq_base", 5e5F)(w);
    f32("rope.freq_base_swa", 1e4F)(w);
    u32("rope.dimension_count", 8)(w);
    u32("rope.dimension_count_swa", 16)(w);
  };
  const auto h = read_mixture(arch::kLaguna, [&](GgufWriter& w) {
    yarn(w);
    u32("attention.sliding_window", 5)(w);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{0, 5, 5}));
  const std::vector<LayerParams>& layers = h.value().layers;
  EXPECT_EQ(layers[0].rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(layers[0].rope.attn_factor, 1.25);
  EXPECT_EQ(layers[0].rope.n_dims, 8);
  EXPECT_EQ(layers[0].rope.base, 5e5);
  EXPECT_EQ(layers[1].rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(layers[1].rope.attn_factor, 1.0);
  EXPECT_EQ(layers[1].rope.n_dims, 16);
  EXPECT_EQ(layers[1].rope.base, 1e4);
  EXPECT_EQ(layers[0].experts.shared, 160);
  EXPECT_EQ(layers[0].experts.routing.gating, engine::Gating::kSigmoid);
  // Without windows all layers are alike.
  const auto global = read_mixture(arch::kLaguna, yarn);
  ASSERT_TRUE(global.ok()) << global.status().message();
  EXPECT_EQ(each(global.value(), &graph::AttentionSpec::window), (Numbers{0, 0, 0}));
  EXPECT_EQ(global.value().layers[1].rope, global.value().layers[0].rope);
}

TEST(HParams, OfStep35) {
  const auto read = [](const Change& more) {
    return read_mixture(arch::kStep35, [&](GgufWriter& w) {
      u32("attention.sliding_window", 5)(w);
      w.set_array<bool>("llama.attention.sliding_window_pattern", {false, true, true});
      more(w);
    });
  };
  auto h = read([](GgufWriter& w) {
    f32("rope.freq_base_swa", 500.0F)(w);
    w.set_array<float>("llama.swiglu_clamp_exp", {0.0F, 7.0F, 0.0F, 1.0F});
    w.set_array<float>("llama.swiglu_clamp_shexp", {16.0F, 0.0F, 0.0F, 1.0F});
    u32("expert_shared_feed_forward_length", 48)(w);
  });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{0, 5, 5}));
  const std::vector<LayerParams>& layers = h.value().layers;
  EXPECT_EQ(layers[0].rope.n_dims, 8);  // half of 16
  EXPECT_EQ(layers[0].rope.factor_dims, 16);
  EXPECT_TRUE(layers[0].rope.freq_factors);
  EXPECT_EQ(layers[1].rope.n_dims, 16);
  EXPECT_FALSE(layers[1].rope.freq_factors);
  EXPECT_EQ(layers[1].rope.base, 500.0);
  EXPECT_EQ(layers[0].rope.base, 10000.0);
  EXPECT_EQ(layers[1].experts.swiglu_limit, 7.0F);
  EXPECT_EQ(layers[1].swiglu_limit, 0.0F);
  EXPECT_EQ(layers[0].swiglu_limit, 16.0F);
  EXPECT_EQ(layers[2].experts.shared, 48);
  EXPECT_EQ(std::string(read(u32("rope.dimension_count", 6)).status().message()),
            "llama.rope.dimension_count is 6, not a multiple of 4");
  EXPECT_EQ(std::string(read([](GgufWriter& w) {
                          w.set_array<float>("llama.swiglu_clamp_exp", {0.0F, 7.0F});
                        })
                            .status()
                            .message()),
            "llama.swiglu_clamp_exp has 2 values for 3 layers");
  EXPECT_EQ(read(f32("swiglu_clamp_shexp", -1.0F)).status().code(), Code::kFormat);
  // Families without such limits refuse them.
  const auto other = [](std::vector<float> limits) {
    return read_mixture(arch::kQwen3Moe,
                        [&](GgufWriter& w) { w.set_array("llama.swiglu_clamp_exp", limits); })
        .status();
  };
  EXPECT_EQ(std::string(other({0.0F, 7.0F, 0.0F}).message()),
            "llama.swiglu_clamp_exp is 7: it is not supported");
  EXPECT_TRUE(other({0.0F, 0.0F, 0.0F}).ok());
}

TEST(HParams, OfOlmo2) {
  auto h = read_as(arch::kOlmo2, [](GgufWriter&) {});
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{0, 0, 0}));
  h = read_as(
      arch::kOlmo2,
      [](GgufWriter& w) {
        w.set("llama.block_count", uint32_t{5})
            .set("llama.attention.sliding_window", uint32_t{7})
            .set_string("llama.rope.scaling.type", "yarn")
            .set("llama.rope.scaling.factor", 8.0F)
            .set("llama.rope.scaling.attn_factor", 1.25F);
      },
      "block_count");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{7, 7, 7, 0, 7}));
  for (size_t i = 0; i < 5; ++i) {
    const RopeParams& rope = h.value().layers[i].rope;
    EXPECT_EQ(rope.scaling, i == 3 ? RopeScaling::kYarn : RopeScaling::kNone) << i;
    EXPECT_EQ(rope.attn_factor, i == 3 ? 1.25 : 1.0) << i;
  }
}

TEST(HParams, OfPhi3AndSmolLm3) {
  auto h = read_as(arch::kPhi3,
                   [](GgufWriter& w) { w.set("llama.attention.sliding_window", uint32_t{7}); });
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(each(h.value(), &graph::AttentionSpec::window), (Numbers{0, 0, 0}));
  h = read_as(
      arch::kSmolLm3, [](GgufWriter& w) { w.set("llama.block_count", uint32_t{9}); },
      "block_count");
  ASSERT_TRUE(h.ok()) << h.status().message();
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(h.value().layers[i].rope.kind == engine::RopeKind::kNone, i == 3 || i == 7) << i;
  }
}

TEST(HParams, OfGlm4WithSections) {
  const auto sections = [](std::vector<uint32_t> pairs) {
    return read_as(arch::kGlm4, [&](GgufWriter& w) {
      w.set_array<uint32_t>("llama.rope.dimension_sections", pairs);
    });
  };
  const auto kind = [](const Result<HParams>& h) { return h.value().layers[2].rope.kind; };
  EXPECT_EQ(kind(read_as(arch::kGlm4, [](GgufWriter&) {})), engine::RopeKind::kAdjacent);
  EXPECT_EQ(kind(sections({})), engine::RopeKind::kAdjacent);
  EXPECT_EQ(kind(sections({0, 0, 0, 0})), engine::RopeKind::kAdjacent);
  EXPECT_EQ(kind(sections({2, 3, 3, 0})), engine::RopeKind::kHalves);
  EXPECT_EQ(kind(sections({2, 3, 3})), engine::RopeKind::kHalves);
  for (const auto& bad : {std::vector<uint32_t>{2, 2, 2, 2}, {8}, {0, 8, 0, 0}, {8, 0, 0, 0}}) {
    const auto h = sections(bad);
    EXPECT_EQ(h.status().code(), Code::kUnsupported);
    EXPECT_NE(std::string(h.status().message()).find("llama.rope.dimension_sections"),
              std::string::npos);
  }
}

TEST(HParams, OfGemma3AndExaone4) {
  const auto layers = [](uint32_t count, uint32_t window) {
    return [=](GgufWriter& w) {
      w.set("llama.block_count", count)
          .set("llama.attention.key_length", uint32_t{64})
          .set("llama.rope.freq_base", 1e6F)
          .set_string("llama.rope.scaling.type", "linear")
          .set("llama.rope.scaling.factor", 8.0F);
      if (window > 0) w.set("llama.attention.sliding_window", window);
    };
  };
  auto h = read_as(arch::kGemma3, layers(62, 7), "block_count");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].attention.scale, 0.25F);
  EXPECT_EQ(h.value().logit_cap, 0.0F);
  for (size_t i = 0; i < 62; ++i) {
    const bool global = i % 6 == 5;
    EXPECT_EQ(h.value().layers[i].attention.window, global ? 0 : 7) << i;
    EXPECT_EQ(h.value().layers[i].rope.base, global ? 1e6 : 1e4) << i;
    EXPECT_EQ(h.value().layers[i].rope.factor, global ? 8.0 : 1.0) << i;
  }
  h = read_as(arch::kExaone4, layers(64, 0), "block_count");
  ASSERT_TRUE(h.ok()) << h.status().message();
  for (size_t i = 0; i < 64; ++i) {
    const bool global = i % 4 == 3;
    EXPECT_EQ(h.value().layers[i].attention.window, global ? 0 : 4096) << i;
    EXPECT_EQ(h.value().layers[i].rope.kind == engine::RopeKind::kNone, global) << i;
  }
  h = read_as(arch::kExaone4, layers(30, 7), "block_count");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_EQ(h.value().layers[0].attention.window, 0);
  EXPECT_EQ(h.value().layers[3].rope.kind, engine::RopeKind::kHalves);
}

TEST(HParams, OfLayerNorms) {
  const auto missing = read_as(arch::kCommandR, [](GgufWriter&) {});
  EXPECT_EQ(missing.status().code(), Code::kFormat);
  EXPECT_EQ(std::string(missing.status().message()),
            "llama.attention.layer_norm_epsilon is missing");
  const auto h = read_as(
      arch::kCohere2,
      [](GgufWriter& w) {
        w.set("llama.attention.layer_norm_epsilon", 1e-3F).set("llama.logit_scale", 0.25F);
      },
      "attention.layer_norm_rms_epsilon");
  ASSERT_TRUE(h.ok()) << h.status().message();
  EXPECT_FLOAT_EQ(h.value().norm_eps, 1e-3F);
  EXPECT_FLOAT_EQ(h.value().logit_factor, 0.25F);
  EXPECT_TRUE(h.value().parallel_blocks);
}

TEST(HParams, OfGptNeoX) {
  for (const bool parallel : {false, true}) {
    const auto h = read_as(arch::kGptNeoX, [&](GgufWriter& w) {
      w.set("llama.attention.layer_norm_epsilon", 1e-5F)
          .set("llama.use_parallel_residual", parallel);
    });
    ASSERT_TRUE(h.ok()) << h.status().message();
    EXPECT_EQ(h.value().parallel_blocks, parallel);
  }
}

TEST(HParams, OfApertus) {
  const auto with = [&](std::vector<float> alpha_n, float eps) {
    return read_as(arch::kApertus, [&](GgufWriter& w) {
      w.set_array("xielu.alpha_n", alpha_n)
          .set("xielu.alpha_p", 0.0F)
          .set_array<float>("xielu.beta", {0.5F, 0.25F, -0.5F, 9.0F})
          .set("xielu.eps", eps);
    });
  };
  const auto h = with({0.0F, 1.0F, -1.0F}, -1e-6F);
  ASSERT_TRUE(h.ok()) << h.status().message();
  const engine::Activation& last = h.value().layers[2].activation;
  EXPECT_FLOAT_EQ(last.alpha, 0.69314718F);          // ln 2
  EXPECT_FLOAT_EQ(last.gamma, -0.5F + 0.31326169F);  // beta + ln(1 + 1 / e)
  EXPECT_FLOAT_EQ(last.beta, -0.5F);
  EXPECT_FLOAT_EQ(last.limit, -1e-6F);
  EXPECT_EQ(std::string(with({0.0F, 1.0F}, -1e-6F).status().message()),
            "xielu.alpha_n has 2 values for 3 layers");
  EXPECT_EQ(std::string(with({0.0F, 81.0F, 0.0F}, -1e-6F).status().message()),
            "xielu.alpha_n[1] is 81, outside [-80, 80]");
  EXPECT_EQ(std::string(with({0.0F, 1.0F, 2.0F}, 1.0F).status().message()),
            "xielu.eps is 1, outside [-80, 0]");
}

/// The keys of a Mamba layer, with one changed.
Change mamba_keys(const char* other = "", uint32_t value = 0) {
  return [=](GgufWriter& w) {
    for (const auto& [key, usual] : {std::pair{"conv_kernel", 4U},
                                     {"inner_size", 128U},
                                     {"state_size", 16U},
                                     {"time_step_rank", 8U},
                                     {"group_count", 2U}}) {
      w.set(std::string("llama.ssm.") + key, std::string(other) == key ? value : usual);
    }
  };
}

TEST(HParams, OfMamba) {
  for (const arch::Architecture* row : {&arch::kMamba, &arch::kMamba2}) {
    const auto h = read_as(*row, mamba_keys(), "feed_forward_length");
    ASSERT_TRUE(h.ok()) << h.status().message();
    for (const LayerParams& layer : h.value().layers) {
      EXPECT_EQ(layer.mixer, MixerKind::kRecurrent);
      EXPECT_EQ(layer.feed_forward, 0);
      EXPECT_EQ(layer.recurrent.taps, 4);
      EXPECT_EQ(layer.recurrent.inner, 128);
      EXPECT_EQ(layer.recurrent.state, 16);
      EXPECT_EQ(layer.recurrent.heads, 8);
      EXPECT_EQ(layer.recurrent.groups, row == &arch::kMamba ? 1 : 2);
      EXPECT_FALSE(layer.recurrent.normalised);
    }
  }
  const auto normed = read_as(arch::kMamba, [](GgufWriter& w) {
    mamba_keys()(w);
    w.set("llama.ssm.dt_b_c_rms", true);
  });
  ASSERT_TRUE(normed.ok()) << normed.status().message();
  EXPECT_TRUE(normed.value().layers[0].recurrent.normalised);
  const auto says = [](const arch::Architecture& row, const char* key, uint32_t value) {
    return std::string(read_as(row, mamba_keys(key, value)).status().message());
  };
  EXPECT_EQ(says(arch::kMamba, "state_size", 257), "llama.ssm.state_size is 257, outside [1, 256]");
  EXPECT_EQ(says(arch::kMamba2, "conv_kernel", 1), "llama.ssm.conv_kernel is 1, outside [2, 64]");
  EXPECT_EQ(says(arch::kMamba2, "group_count", 3),
            "llama.ssm.time_step_rank is 8 and llama.ssm.group_count 3, of which each must divide "
            "the one before it: 128");
  EXPECT_EQ(says(arch::kMamba2, "time_step_rank", 6).substr(0, 30),
            "llama.ssm.time_step_rank is 6 ");
}

TEST(HParams, OfBlocksThatAreOneThingEach) {
  const auto h = read_as(
      arch::kNemotronH,
      [](GgufWriter& w) {
        mamba_keys()(w);
        w.set_array<uint32_t>("llama.attention.head_count_kv", {0, 2, 0})
            .set_array<uint32_t>("llama.feed_forward_length", {0, 0, 96});
      },
      "feed_forward_length");
  ASSERT_TRUE(h.ok()) << h.status().message();
  const std::vector<LayerParams>& layers = h.value().layers;
  EXPECT_EQ(layers[0].mixer, MixerKind::kRecurrent);
  EXPECT_EQ(layers[1].mixer, MixerKind::kAttention);
  EXPECT_EQ(layers[2].mixer, MixerKind::kNone);
  EXPECT_EQ(layers[0].feed_forward, 0);
  EXPECT_EQ(layers[2].feed_forward, 96);
}

TEST(HParams, OfGraniteHybrid) {
  for (const uint32_t shared : {0U, 80U}) {
    const auto h = read_as(arch::kGraniteHybrid, [&](GgufWriter& w) {
      mamba_keys()(w);
      w.set_array<uint32_t>("llama.attention.head_count_kv", {0, 2, 0})
          .set("llama.expert_count", 8U)
          .set("llama.expert_used_count", 2U);
      if (shared > 0) w.set("llama.expert_shared_feed_forward_length", shared);
    });
    ASSERT_TRUE(h.ok()) << h.status().message();
    EXPECT_EQ(h.value().layers[0].mixer, MixerKind::kRecurrent);
    EXPECT_EQ(h.value().layers[1].mixer, MixerKind::kAttention);
    EXPECT_EQ(h.value().layers[0].experts.feed_forward, 160);
    EXPECT_EQ(h.value().layers[0].experts.shared, static_cast<int32_t>(shared));
    EXPECT_TRUE(h.value().layers[0].experts.routing.normalise);
  }
}

}  // namespace
}  // namespace gen::model

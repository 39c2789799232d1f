// SPDX-License-Identifier: Apache-2.0
// Files that were made for ollama's own engine. The random models, renamed backwards into the form
// that its converters wrote, must give the logits of the originals bit for bit; files of llama.cpp
// must come through as they are. The forms are those of ollama's converters and models before
// 2026's change to llama.cpp's form, and of its list of translations (llama/compat).
#include <generate/experimental.h>
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "golden/random_models.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/tokenizer_file.h"
#include "support/gguf_rewrite.h"
#include "support/gguf_writer.h"

namespace gen::test {
namespace {

struct Closer {
  void operator()(gen_model* model) const { gen_model_free(model); }
  void operator()(kv_cache* cache) const { kv_cache_free(cache); }
};

/// What the library said last, of all levels.
class Log {
 public:
  Log() {
    gen_log_set_callback(
        [](void* user, int32_t, const char* message) {
          static_cast<Log*>(user)->lines_ += std::string(message) + "\n";
        },
        this);
    gen_log_set_level(GEN_LOG_DEBUG);
  }
  ~Log() {
    gen_log_set_level(GEN_LOG_OFF);
    gen_log_set_callback(nullptr, nullptr);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  [[nodiscard]] bool says(std::string_view text) const {
    return lines_.find(text) != std::string::npos;
  }
  [[nodiscard]] const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

/// Logits after every token of a short text; the message of a failure in `why`.
std::vector<float> logits_of(const std::vector<std::byte>& bytes, std::string* why) {
  gen_error error = {};
  gen_model* raw = nullptr;
  if (gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &raw, &error) != GEN_OK) {
    *why = error.message;
    return {};
  }
  const std::unique_ptr<gen_model, Closer> model(raw);
  const gen_model_config* const config = gen_model_get_config(raw);
  kv_cache* cache = nullptr;
  EXPECT_EQ(kv_cache_new(gen_model_config_num_cache_layers(config), 64, &cache, &error), GEN_OK);
  const std::unique_ptr<kv_cache, Closer> closes(cache);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 21; ++i) tokens.push_back(7 + i * 5 % 40);
  const auto vocab = static_cast<size_t>(gen_model_config_vocab_size(config));
  std::vector<float> logits(tokens.size() * vocab);
  if (gen_model_forward_batch(raw, tokens.data(), nullptr, nullptr, tokens.size(), &cache, 1,
                              logits.data(), logits.size(), &error) != GEN_OK) {
    *why = error.message;
    return {};
  }
  return logits;
}

void add_media(GgufRewrite& file, const std::string& architecture) {
  file.set(architecture + ".vision.block_count", uint32_t{2});
  file.add_tensor("v.blk.0.attn_out.weight", 64);
  file.add_tensor("v.patch_embd.weight", 64);
  file.add_tensor("mm.input_projection.weight", 64);
}

void sections_of_three(GgufRewrite& file, const std::string& architecture, const char* name) {
  file.drop(architecture + ".rope.dimension_sections");
  file.set(architecture + "." + name, std::vector<uint32_t>{11, 11, 10});
}

void gptoss(GgufRewrite& file) {
  file.set_architecture("gpt-oss", "gptoss");
  file.drop("gptoss.expert_feed_forward_length");
  file.drop("gptoss.rope.scaling.type");
  file.set("tokenizer.ggml.pre", "default");
  file.rename_part(".attn_output.", ".attn_out.");
  file.rename_part(".attn_sinks.weight", ".attn_sinks");
  file.rename_part(".post_attention_norm.", ".ffn_norm.");
}

void olmo3(GgufRewrite& file) { file.set_architecture("olmo2", "olmo3"); }

void qwen25vl(GgufRewrite& file) {
  file.set_architecture("qwen2vl", "qwen25vl");
  sections_of_three(file, "qwen25vl", "rope.mrope_section");
  add_media(file, "qwen25vl");
}

void qwen3vl(GgufRewrite& file) {
  file.drop("qwen3vl.rope.dimension_sections");
  add_media(file, "qwen3vl");
}
void qwen3vl_named(GgufRewrite& file) { sections_of_three(file, "qwen3vl", "rope.mrope_section"); }

void mistral3(GgufRewrite& file) {
  file.rename("mistral3.rope.scaling.yarn_log_multiplier", "mistral3.rope.scaling.mscale_all_dim");
  file.rename("mistral3.attention.temperature_scale", "mistral3.rope.scaling_beta");
  file.set("mistral3.rope.scaling.beta_fast", 32.0F);
  file.set("mistral3.rope.scaling.beta_slow", 1.0F);
  file.drop("tokenizer.ggml.pre");
  add_media(file, "mistral3");
}

void lfm2moe(GgufRewrite& file) {
  file.rename_part("token_embd_norm.weight", "output_norm.weight");
  file.rename_part(".attn_output.", ".attn_out.");
  file.rename_part(".exp_probs_b.bias", ".exp_probs_b");
}
void lfm2(GgufRewrite& file) {
  lfm2moe(file);
  file.set("lfm2.feed_forward_length", uint32_t{999});
}

void laguna(GgufRewrite& file) {
  file.rename("laguna.rope.dimension_count_swa", "laguna.rope.swa.dimension_count");
  file.rename("laguna.rope.freq_base_swa", "laguna.rope.swa.freq_base");
  file.set("laguna.rope.scaling.beta_fast", 32.0F);
  file.set("laguna.rope.scaling.beta_slow", 1.0F);
  file.set("laguna.attention.sink_enabled", false);
  file.rename_part(".attn_gate.", ".attn_g.");
  file.rename_part(".exp_probs_b.bias", ".exp_probs_b");
}

void gemma3(GgufRewrite& file) {
  file.rename("gemma3.rope.freq_base", "gemma3.rope.global.freq_base");
  file.set("gemma3.rope.local.freq_base", 10000.0F);
  file.set("gemma3.mm.tokens_per_image", uint32_t{256});
  file.set("gemma3.attention.key_length", uint32_t{64});
  file.set("gemma3.attention.value_length", uint32_t{64});
  file.extend("tokenizer.ggml.tokens", 2,
              GgufRewrite::text("<image>") + GgufRewrite::text("<other>"));
  file.extend("tokenizer.ggml.scores", 2, GgufRewrite::raw(0.0F) + GgufRewrite::raw(0.0F));
  file.extend("tokenizer.ggml.token_type", 2, GgufRewrite::raw(3) + GgufRewrite::raw(3));
  add_media(file, "gemma3");
}
void gemma3_without_bases(GgufRewrite& file) {
  file.drop("gemma3.rope.freq_base");
  file.set("gemma3.attention.key_length", uint32_t{64});
  file.set("gemma3.attention.value_length", uint32_t{64});
  file.set("tokenizer.ggml.add_padding_token", false);
}

void gemma4(GgufRewrite& file) {
  file.set("tokenizer.ggml.model", "llama");
  file.rename("gemma4.rope.freq_base_swa", "gemma4.rope.local.freq_base");
  file.rename_part(".ffn_down_exps.scale", ".ffn_gate_inp.per_expert_scale");
  file.rename_part(".layer_output_scale.weight", ".layer_scalar");
  file.rename_part(".post_attention_norm.", ".attn_post_norm.");
  file.rename_part(".pre_ffw_norm_2.", ".ffn_pre_norm_2.");
  file.rename_part(".ffn_norm.", ".ffn_pre_norm.");
  file.rename_part(".post_ffw_norm.", ".ffn_post_norm.");
  file.rename_part(".post_ffw_norm_1.", ".ffn_post_norm_1.");
  file.rename_part(".post_ffw_norm_2.", ".ffn_post_norm_2.");
  file.add_tensor("a.blk.0.attn_out.weight", 64);
  add_media(file, "gemma4");
}

void nemotron_h_moe(GgufRewrite& file) {
  file.drop("nemotron_h_moe.moe_latent_size");
  file.rename_part(".ffn_latent_down.", ".ffn_latent_in.");
  file.rename_part(".ffn_latent_up.", ".ffn_latent_out.");
  file.rename_part(".exp_probs_b.bias", ".exp_probs_b");
  file.add_tensor("mtp.layers.0.mixer.experts.0.up_proj.weight", 64);
}
void omni(GgufRewrite& file) {
  file.set_architecture("nemotron_h", "nemotron_h_omni");
  add_media(file, "nemotron_h_omni");
  file.add_tensor("a.blk.0.attn_q.weight", 64);
}
void omni_moe(GgufRewrite& file) {
  nemotron_h_moe(file);
  file.set_architecture("nemotron_h_moe", "nemotron_h_omni");
  add_media(file, "nemotron_h_omni");
}

void glmocr(GgufRewrite& file) {
  file.set_architecture("glm4", "glmocr");
  file.rename_part(".attn_output.", ".attn_out.");
  file.rename_part(".post_attention_norm.", ".post_attn_norm.");
  file.rename_part(".post_ffw_norm.", ".post_ffn_norm.");
  std::vector<GgufRewrite::Tensor> gates;
  for (GgufRewrite::Tensor& each : file.tensors) {
    if (!each.name.ends_with(".ffn_up.weight")) continue;
    GgufRewrite::Tensor& gate = gates.emplace_back(each);
    gate.name = each.name.substr(0, each.name.find("ffn_up")) + "ffn_gate.weight";
    gate.dims[1] = each.dims[1] /= 2;
    const size_t half = each.data.size() / 2;
    gate.data.resize(half);
    each.data.erase(0, half);
  }
  file.tensors.insert(file.tensors.end(), gates.begin(), gates.end());
  add_media(file, "glmocr");
}

void qwen3next(GgufRewrite& file) {
  file.rename_part(".ssm_dt.bias", ".ssm_dt");
  file.set("qwen3next.attention.head_count_kv", std::vector<uint32_t>{0, 2, 0, 2, 2});
}

/// The block behind the others becomes a head of ollama's names.
void legacy_draft(GgufRewrite& file, const std::string& architecture, uint32_t blocks) {
  file.set(architecture + ".block_count", blocks);
  file.drop(architecture + ".nextn_predict_layers");
  const std::string block = "blk." + std::to_string(blocks) + ".";
  for (GgufRewrite::Tensor& each : file.tensors) {
    if (!each.name.starts_with(block)) continue;
    const std::string part = each.name.substr(block.size());
    if (part.ends_with("norm.weight")) {
      for (size_t at = 0; at + 4 <= each.data.size(); at += 4) {
        float value = 0.0F;
        std::memcpy(&value, each.data.data() + at, 4);
        value -= 1.0F;
        std::memcpy(each.data.data() + at, &value, 4);
      }
    }
    each.name = part == "nextn.eh_proj.weight" ? "mtp.fc.weight"
                : part == "nextn.enorm.weight" ? "mtp.pre_fc_norm_embedding.weight"
                : part == "nextn.hnorm.weight" ? "mtp.pre_fc_norm_hidden.weight"
                                               : "mtp.layers.0." + part;
  }
}

void qwen35(GgufRewrite& file) {
  file.rename_part(".ssm_dt.bias", ".ssm_dt");
  file.set("qwen35.attention.head_count_kv", std::vector<uint32_t>{0, 2, 0, 2, 0});
  file.set("qwen35.ssm.v_head_reordered", true);
  sections_of_three(file, "qwen35", "mrope_sections");
  add_media(file, "qwen35");
}
void qwen35_draft(GgufRewrite& file) {
  qwen35(file);
  file.set("qwen35.attention.head_count_kv", uint32_t{2});
  legacy_draft(file, "qwen35", 5);
}
void qwen35moe(GgufRewrite& file) {
  file.rename_part(".ssm_dt.bias", ".ssm_dt");
  file.set("qwen35moe.feed_forward_length", uint32_t{0});
  sections_of_three(file, "qwen35moe", "rope.mrope_section");
  file.set("qwen35moe.image_token_id", uint32_t{9});
  legacy_draft(file, "qwen35moe", 4);
  file.add_tensor("mtp.layers.0.mlp.experts.0.gate_proj.weight", 64);
}

struct Case {
  const char* model;
  const char* family;  // as the log names it
  void (*back)(GgufRewrite& file);
};
constexpr Case kCases[] = {
    {"gpt-oss-f32", "gptoss", gptoss},
    {"olmo2-windows", "olmo3", olmo3},
    {"olmo2-f32", "olmo3", olmo3},
    {"qwen2vl-f32", "qwen25vl", qwen25vl},
    {"qwen3vl-f32", "qwen3vl", qwen3vl},
    {"qwen3vl-f32", "qwen3vl", qwen3vl_named},
    {"mistral3-f32", "mistral3", mistral3},
    {"lfm2-f32", "lfm2", lfm2},
    {"lfm2moe-f32", "lfm2moe", lfm2moe},
    {"laguna-f32", "laguna", laguna},
    {"laguna-elements", "laguna", laguna},
    {"gemma3-f32", "gemma3", gemma3},
    {"gemma3-f32", "gemma3", gemma3_without_bases},
    {"gemma4-f32", "gemma4", gemma4},
    {"gemma4-large", "gemma4", gemma4},
    {"gemma4-experts-f32", "gemma4", gemma4},
    {"nemotron_h_moe-f32", "nemotron_h_moe", nemotron_h_moe},
    {"nemotron_h-f32", "nemotron_h_omni", omni},
    {"nemotron_h_moe-f32", "nemotron_h_omni", omni_moe},
    {"glm4-f32", "glmocr", glmocr},
    {"qwen3next-f32", "qwen3next", qwen3next},
    {"qwen35-f32", "qwen35", qwen35},
    {"qwen35-f32", "qwen35", qwen35_draft},
    {"qwen35moe-f32", "qwen35moe", qwen35moe},
};

class OllamasFiles : public ::testing::TestWithParam<size_t> {};

TEST_P(OllamasFiles, GiveTheSameLogits) {
  const Case& of = kCases[GetParam()];
  const std::vector<std::byte> original = make_random_model(of.model);
  GgufRewrite file(original);
  ASSERT_EQ(file.build(), original);
  of.back(file);
  std::string why;
  const std::vector<float> expected = logits_of(original, &why);
  ASSERT_FALSE(expected.empty()) << why;
  const Log log;
  const std::vector<float> found = logits_of(file.build(), &why);
  ASSERT_FALSE(found.empty()) << why;
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(log.says("made for ollama's own engine (" + std::string(of.family) + ")"))
      << log.lines();
}
std::string case_name(const ::testing::TestParamInfo<size_t>& of) {
  return std::to_string(of.param) + kCases[of.param].family;
}
INSTANTIATE_TEST_SUITE_P(All, OllamasFiles, ::testing::Range(size_t{0}, std::size(kCases)),
                         case_name);

/// What another program's reader would see is what ours does.
void expect_untouched(const std::vector<std::byte>& bytes, const std::string& name) {
  const auto file = gguf::GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << name;
  const GgufRewrite plain(bytes);
  const auto entries = file.value()->metadata().entries();
  ASSERT_EQ(entries.size(), plain.entries.size()) << name;
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].key(), plain.entries[i].key) << name;
    const auto value = entries[i].bytes();
    EXPECT_TRUE(std::string_view(plain.entries[i].typed)
                    .ends_with({reinterpret_cast<const char*>(value.data()), value.size()}))
        << name << " " << plain.entries[i].key;
  }
  const auto tensors = file.value()->tensors();
  ASSERT_EQ(tensors.size(), plain.tensors.size()) << name;
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].name, plain.tensors[i].name) << name;
    EXPECT_EQ(tensors[i].part, 0) << name;
  }
}

TEST(LlamaCppsFiles, ComeThroughAsTheyAre) {
  for (const std::string& name : random_model_names()) {
    expect_untouched(make_random_model(name), name);
    const auto assistant = make_random_assistant(name);
    if (!assistant.empty()) expect_untouched(assistant, name + "-assistant");
  }
}

TEST(OllamasFiles, TheBlockThatDraftsIsTranslated) {
  const std::vector<std::byte> original = make_random_model("qwen35-f32");
  GgufRewrite before(original);
  GgufRewrite legacy(original);
  qwen35_draft(legacy);
  const std::vector<std::byte> bytes = legacy.build();  // which the file refers to
  const auto file = gguf::GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  for (const GgufRewrite::Tensor& each : before.tensors) {
    const gguf::TensorInfo* const found = file.value()->find_tensor(each.name);
    ASSERT_NE(found, nullptr) << each.name;
    for (size_t i = 0; found->type == DType::kF32 && i < found->data.size() / 4; ++i) {
      float value = 0.0F;
      float expected = 0.0F;
      std::memcpy(&value, found->data.data() + 4 * i, 4);
      std::memcpy(&expected, each.data.data() + 4 * i, 4);
      ASSERT_NEAR(value, expected, 1e-6) << each.name;
    }
  }
  EXPECT_EQ(file.value()->metadata().get_u32("qwen35.nextn_predict_layers").value(), 1U);
  EXPECT_EQ(file.value()->metadata().get_u32("qwen35.block_count").value(), 6U);
}

/// What loading says of a file that cannot be loaded.
std::string refusal(const char* model, const std::function<void(GgufRewrite&)>& change) {
  GgufRewrite file(make_random_model(model));
  change(file);
  std::string why = "loaded";
  logits_of(file.build(), &why);
  return why;
}

TEST(OllamasFiles, RefusesWhatCannotBeTranslated) {
  EXPECT_EQ(refusal("gpt-oss-f32",
                    [](GgufRewrite& file) {
                      gptoss(file);
                      file.add_tensor("blk.0.ffn_gate_up_exps.weight", 64);
                    }),
            "made for ollama's own engine: gates and values of experts are alternating rows of "
            "ffn_gate_up_exps");
  EXPECT_EQ(refusal("laguna-f32",
                    [](GgufRewrite& file) {
                      laguna(file);
                      file.set("laguna.attention.sink_enabled", true);
                    }),
            "made for ollama's own engine: attention has sinks");
  EXPECT_EQ(refusal("qwen35-f32",
                    [](GgufRewrite& file) {
                      qwen35(file);
                      file.set("qwen35.ssm.v_head_reordered", false);
                    }),
            "made for ollama's own engine: heads of values are in another order "
            "(ssm.v_head_reordered is false)");
  EXPECT_EQ(refusal("qwen35-f32",
                    [](GgufRewrite& file) {
                      qwen35(file);
                      file.add_tensor("blk.0.attn_q.bias", 32);
                    }),
            "made for ollama's own engine: tensor blk.0.attn_q.bias has no place in this "
            "architecture");
  EXPECT_EQ(refusal("gemma3-f32",
                    [](GgufRewrite& file) {
                      file.add_tensor("dense.0.weight", 64);
                      file.add_tensor("dense.1.weight", 64);
                    }),
            "architecture \"gemma-embedding\" is not supported: it is an encoder, which generates "
            "no text");
  EXPECT_EQ(refusal("llama-f32",
                    [](GgufRewrite& file) { file.set_architecture("llama", "glm4moelite"); }),
            "architecture \"glm4moelite\" is not supported: the file was made for ollama's own "
            "engine, and the model needs latent attention");
}

TEST(OllamasFiles, HostileMetadataIsRefused) {
  const auto says = [](const char* model, const std::function<void(GgufRewrite&)>& change,
                       const std::string& what) {
    const std::string why = refusal(model, change);
    EXPECT_NE(why.find(what), std::string::npos) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  };
  // Values of other types.
  says(
      "gemma3-f32",
      [](GgufRewrite& file) {
        gemma3(file);
        file.set("gemma3.context_length", "long");
      },
      "metadata 'gemma3.context_length': u32 wanted, string found");
  says(
      "qwen2vl-f32",
      [](GgufRewrite& file) {
        qwen25vl(file);
        file.set("qwen25vl.rope.mrope_section", 3.0F);
      },
      "metadata 'qwen25vl.rope.mrope_section': array of i32 wanted, f32 found");
  says(
      "nemotron_h-f32",
      [](GgufRewrite& file) {
        omni(file);
        file.set("nemotron_h_omni.expert_count", "many");
      },
      "expert_count': u32 wanted, string found");
  says(
      "mistral3-f32",
      [](GgufRewrite& file) {
        mistral3(file);
        file.set("mistral3.rope.scaling_beta", "x");
      },
      "metadata 'mistral3.attention.temperature_scale': finite f32 wanted, string found");
  // Absurd numbers.
  says(
      "qwen35-f32",
      [](GgufRewrite& file) {
        qwen35_draft(file);
        file.set("qwen35.block_count", 0xFFFFFFFFU);
      },
      "qwen35.block_count is 4294967295, outside [1, 4096]");
  // Both the old name and the new one.
  says(
      "gpt-oss-f32",
      [](GgufRewrite& file) {
        gptoss(file);
        file.set("gpt-oss.block_count", uint32_t{3});
      },
      "metadata 'gpt-oss.block_count' is there twice");
  says(
      "gpt-oss-f32",
      [](GgufRewrite& file) {
        gptoss(file);
        file.add_tensor("blk.0.attn_output.weight", 64);
      },
      "tensor 'blk.0.attn_output.weight': its name is there twice");
  says(
      "lfm2-f32",
      [](GgufRewrite& file) {
        lfm2(file);
        file.add_tensor("blk.1.attn_output.weight", 64);
      },
      "tensor 'blk.1.attn_output.weight': its name is there twice");
  // A name that becomes too long, and partners that are missing.
  says(
      "gpt-oss-f32",
      [](GgufRewrite& file) {
        gptoss(file);
        file.add_tensor("blk.0." + std::string(46, 'x') + ".attn_sinks", 64);
      },
      "the name that it is translated to is longer than 64 bytes");
  says(
      "glm4-f32",
      [](GgufRewrite& file) {
        glmocr(file);
        std::erase_if(file.tensors, [](const GgufRewrite::Tensor& each) {
          return each.name == "blk.1.ffn_gate.weight";
        });
      },
      "made for ollama's own engine: tensor blk.1.ffn_up.weight is 256 x 512, expected 256 x 1024");
  // Vocabularies whose lists differ in length.
  says(
      "gemma3-f32",
      [](GgufRewrite& file) {
        gemma3(file);
        file.set("tokenizer.ggml.scores", std::vector<uint32_t>{1});
      },
      "tokenizer.ggml.scores");
}

/// Files of Mistral 3 with pictures are known by their tensors alone.
TEST(OllamasFiles, TheTokenizerAloneIsTheModels) {
  const std::string path = ::testing::TempDir() + "ollamas_words_" + std::to_string(::getpid());
  // Digits are words of their own with "tekken", runs of them one word with "default".
  const auto pieces_of_12 = [&](GgufRewrite file) {
    const auto texts = [](std::initializer_list<const char*> all) {
      std::string typed =
          GgufRewrite::raw(9U) + GgufRewrite::raw(8U) + GgufRewrite::raw(uint64_t{all.size()});
      for (const char* one : all) typed += GgufRewrite::text(one);
      return typed;
    };
    file.set("tokenizer.ggml.model", "gpt2");
    file.set("tokenizer.ggml.pre", "default");
    file.set("tokenizer.ggml.tokens", "");
    file.set("tokenizer.ggml.merges", "");
    file.find("tokenizer.ggml.tokens")->typed = texts({"<s>", "</s>", "1", "2", "12"});
    file.find("tokenizer.ggml.merges")->typed = texts({"1 2"});
    for (const char* key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) file.drop(key);
    const std::vector<std::byte> bytes = file.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    const auto made = gguf::load_tokenizer_file(path);
    std::vector<int32_t> ids;
    const Status status = made.ok() ? made.value()->encode("12", 0, &ids) : made.status();
    EXPECT_TRUE(status.ok()) << status.message();
    return ids.size();
  };
  GgufRewrite mistral(make_random_model("mistral3-f32"));
  EXPECT_EQ(pieces_of_12(mistral), 1U);
  mistral.add_tensor("v.blk.0.attn_q.weight", 32);
  EXPECT_EQ(pieces_of_12(mistral), 2U);
  // What nobody can translate has a vocabulary, too.
  GgufRewrite other(make_random_model("qwen35-f32"));
  qwen35(other);
  other.set("qwen35.ssm.v_head_reordered", false);
  EXPECT_EQ(pieces_of_12(other), 1U);
  std::filesystem::remove(path);
}

/// Old files of Llama 3 do not say how words are split.
TEST(OllamasFiles, Llama3sWordsAreSplitAsItsAre) {
  const auto pre_of = [](const char* pre, const char* turn) {
    GgufRewrite file(make_random_model("llama-f32"));
    std::string tokens;
    for (int i = 0; i < 128256; ++i) {
      tokens += GgufRewrite::text(i == 128009 ? turn : "t" + std::to_string(i));
    }
    file.set("general.architecture", "llama");
    file.set("tokenizer.ggml.model", "gpt2");
    file.find("tokenizer.ggml.tokens")->typed =
        GgufRewrite::raw(9U) + GgufRewrite::raw(8U) + GgufRewrite::raw(uint64_t{128256}) + tokens;
    file.drop("tokenizer.ggml.pre");
    if (*pre != '\0') file.set("tokenizer.ggml.pre", pre);
    const auto read = gguf::GgufFile::parse(file.build());
    return read.ok() ? read.value()->metadata().get_string("tokenizer.ggml.pre", "none").value()
                     : std::string(read.status().message());
  };
  EXPECT_EQ(pre_of("", "<|eot_id|>"), "llama-bpe");
  EXPECT_EQ(pre_of("default", "<|eot_id|>"), "llama-bpe");
  EXPECT_EQ(pre_of("tekken", "<|eot_id|>"), "tekken");
  EXPECT_EQ(pre_of("", "<|other|>"), "none");
}

TEST(Skipped, TensorsThatTheTextHasNoUseFor) {
  const std::vector<std::byte> original = make_random_model("llama-f32");
  std::string why;
  const std::vector<float> expected = logits_of(original, &why);
  GgufRewrite file(original);
  for (const char* name : {"v.a.weight", "a.b.weight", "mm.0.weight", "clip.x", "vision.y.weight",
                           "model.vision_tower.z.weight"}) {
    file.add_tensor(name, 32);
  }
  file.add_tensor("blk.7.nextn.eh_proj.weight", 8);
  file.add_tensor("mtp.norm.weight", 8);
  file.add_tensor("something.else", 16);
  const Log log;
  EXPECT_EQ(logits_of(file.build(), &why), expected) << why;
  EXPECT_TRUE(log.says("skipped: 6 tensors of pictures and sound, 768 bytes (v.a.weight, ...)"))
      << log.lines();
  EXPECT_TRUE(
      log.says("skipped: 2 tensors of a head that drafts, which is not used, 64 bytes "
               "(blk.7.nextn.eh_proj.weight, ...)"))
      << log.lines();
  EXPECT_TRUE(
      log.says("skipped: 1 tensor that no model of this architecture has, 64 bytes "
               "(something.else)"))
      << log.lines();
}

std::string written(const std::string& name, const std::vector<std::byte>& bytes) {
  const std::string path =
      ::testing::TempDir() + "ollama_test_" + std::to_string(getpid()) + "_" + name + ".gguf";
  EXPECT_TRUE(write_file(path, bytes));
  return path;
}

TEST(Skipped, EstimatesDoNotCountThem) {
  const std::vector<std::byte> original = make_random_model("llama-f32");
  GgufRewrite file(original);
  constexpr uint64_t kMore = 1 << 20;
  file.add_tensor("v.blk.0.attn_q.weight", kMore / 4);
  const auto estimate = [](const std::string& path, const char* key) {
    gen_error error = {};
    gen_memory_estimate* raw = nullptr;
    EXPECT_EQ(gen_estimate_memory(path.c_str(), nullptr, nullptr, &raw, &error), GEN_OK)
        << error.message;
    size_t bytes = 0;
    EXPECT_EQ(gen_memory_estimate_get(raw, key, &bytes, &error), GEN_OK);
    gen_memory_estimate_free(raw);
    return bytes;
  };
  const std::string plain = written("plain", original);
  const std::string media = written("media", file.build());
  for (const char* key : {"weights", "workspace", "cache", "peak"}) {
    EXPECT_EQ(estimate(media, key), estimate(plain, key)) << key;
  }
  EXPECT_LT(estimate(media, "mapped"), estimate(plain, "mapped") + 4096);
  EXPECT_GE(estimate(media, "file"), estimate(plain, "file") + kMore);
  std::remove(plain.c_str());
  std::remove(media.c_str());
}

/// What reads a file otherwise sees the same: a quantised file is llama.cpp's in form.
TEST(OllamasFiles, AreQuantisedAndTokenizedAsOthers) {
  const std::vector<std::byte> original = make_random_model("gpt-oss-f32");
  GgufRewrite file(original);
  gptoss(file);
  const std::string from = written("from", file.build());
  const std::string to = from + ".q8_0";
  gen_error error = {};
  ASSERT_EQ(gen_model_quantize(from.c_str(), to.c_str(), "q8_0", nullptr, nullptr, &error), GEN_OK)
      << error.message;
  const auto made = gguf::GgufFile::open(to);
  ASSERT_TRUE(made.ok()) << made.status().message();
  GgufRewrite plain(original);
  for (const GgufRewrite::Tensor& each : plain.tensors) {
    EXPECT_NE(made.value()->find_tensor(each.name), nullptr) << each.name;
  }
  EXPECT_EQ(made.value()->metadata().get_string("general.architecture").value(), "gpt-oss");
  EXPECT_EQ(made.value()->metadata().get_u32("gpt-oss.expert_feed_forward_length").value(), 256U);
  EXPECT_FALSE(made.value()->metadata().has("gptoss.block_count"));
  gen_tokenizer* tokenizer = nullptr;
  EXPECT_EQ(gen_tokenizer_load(from.c_str(), &tokenizer, &error), GEN_OK) << error.message;
  gen_tokenizer_free(tokenizer);
  std::remove(from.c_str());
  std::remove(to.c_str());
}

TEST(Skipped, NotWhatWouldChangeTheText) {
  for (const char* name : {"blk.1.attn_k_norm.weight", "output.bias", "token_embd_norm.weight"}) {
    EXPECT_EQ(refusal("llama-f32", [&](GgufRewrite& file) { file.add_tensor(name, 32); }),
              "tensor " + std::string(name) + " has no place in this architecture");
  }
}

}  // namespace
}  // namespace gen::test

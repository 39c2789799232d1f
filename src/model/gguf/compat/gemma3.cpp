// SPDX-License-Identifier: Apache-2.0
// Gemma 3: names of the rotation, keys that are missing since ollama's engine knows them, a
// vocabulary with entries of pictures that the model has no rows for, and EmbeddingGemma, which is
// another architecture elsewhere.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kKeys[] = {
    {"rope.global.freq_base", "rope.freq_base"},
    {"rope.local.freq_base", "rope.freq_base_swa"},
    {"rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast"},
    {"rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow"},
    {"rope.scaling.extrapolation_factor", "rope.scaling.yarn_ext_factor"},
};
constexpr Change kEmbeddingKeys[] = {{"rope.global.freq_base", "rope.freq_base"},
                                     {"rope.local.freq_base", "rope.freq_base_swa"},
                                     {"attention.causal", ""}};
constexpr uint32_t kLongContext = 131072;  // of all sizes but the smallest

bool is_ollamas(const Source& file) {
  return file.has_media() || file.has("gemma3.mm.tokens_per_image") ||
         file.has("gemma3.rope.global.freq_base") || file.has("gemma3.rope.local.freq_base") ||
         file.has("tokenizer.ggml.add_padding_token") ||
         file.has("tokenizer.ggml.add_unknown_token") ||
         !file.has("gemma3.attention.layer_norm_rms_epsilon");
}

void set_absent(Edit& file, const char* name, float value) {
  const std::string key = file.key(name);
  if (!file.has(key)) file.set_f32(key, value);
}

Status adjust(Edit& file) {
  set_absent(file, "attention.layer_norm_rms_epsilon", 1e-6F);
  set_absent(file, "rope.freq_base", 1e6F);
  set_absent(file, "rope.freq_base_swa", 1e4F);
  for (const char* name : {"attention.key_length", "attention.value_length"}) {
    if (!file.has(file.key(name))) file.set_u32(file.key(name), 256);
  }
  // The context was trained as an eighth of what the file says.
  GEN_ASSIGN(const uint32_t context, file.u32(file.key("context_length"), 0));
  if (context >= kLongContext && !file.has(file.key("rope.scaling.type"))) {
    file.set_text(file.key("rope.scaling.type"), "linear");
    set_absent(file, "rope.scaling.factor", 8.0F);
  }
  cut_vocabulary(file);
  return {};
}

bool is_embedding(const Source& file) { return file.begins("dense.0."); }

Status adjust_embedding(Edit& file) {
  file.rename_tensor("dense.0.weight", "dense_2.weight");
  file.rename_tensor("dense.1.weight", "dense_3.weight");
  file.rename_tensor("norm.weight", "output_norm.weight");
  return {};
}

}  // namespace

constinit const Family kEmbeddingGemma = {.name = "gemma3",
                                          .target = "gemma-embedding",
                                          .recognise = is_embedding,
                                          .keys = kEmbeddingKeys,
                                          .adjust = adjust_embedding};
constinit const Family kGemma3 = {
    .name = "gemma3", .recognise = is_ollamas, .keys = kKeys, .adjust = adjust};

}  // namespace gen::gguf::compat

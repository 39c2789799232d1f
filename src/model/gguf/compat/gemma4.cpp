// SPDX-License-Identifier: Apache-2.0
// Gemma 4: a vocabulary under the name of another kind, names of norms and of experts' scales, and
// encoders of pictures and sound in the file.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kKeys[] = {{"rope.local.freq_base", "rope.freq_base_swa"}};
constexpr Change kNames[] = {{".ffn_gate_inp.per_expert_scale", ".ffn_down_exps.scale"},
                             {".layer_scalar", ".layer_output_scale.weight"},
                             {".attn_post_norm.", ".post_attention_norm."},
                             {".ffn_pre_norm.", ".ffn_norm."},
                             {".ffn_pre_norm_2.", ".pre_ffw_norm_2."},
                             {".ffn_post_norm.", ".post_ffw_norm."},
                             {".ffn_post_norm_1.", ".post_ffw_norm_1."},
                             {".ffn_post_norm_2.", ".post_ffw_norm_2."}};

bool is_ollamas(const Source& file) {
  return file.has_media() || file.text("tokenizer.ggml.model") == "llama" ||
         file.ends(kNames[0].from) || file.ends(kNames[1].from);
}

Status adjust(Edit& file) {
  constexpr const char* kModel = "tokenizer.ggml.model";
  if (file.text(kModel) == "llama") file.set_text(kModel, "gemma4");
  cut_vocabulary(file);
  return {};
}

}  // namespace

constinit const Family kGemma4 = {
    .name = "gemma4", .recognise = is_ollamas, .keys = kKeys, .tensors = kNames, .adjust = adjust};

}  // namespace gen::gguf::compat

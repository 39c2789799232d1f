// SPDX-License-Identifier: Apache-2.0
// GLM-OCR: a glm4 under another name, whose feed-forward has gates and values in tensors of their
// own.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kNames[] = {{".attn_out.", ".attn_output."},
                             {".post_attn_norm.", ".post_attention_norm."},
                             {".post_ffn_norm.", ".post_ffw_norm."}};

Status adjust(Edit& file) {
  GEN_TRY(sections_from(file, "rope.mrope_section"));
  const std::string rotated = file.key("rope.dimension_count");
  const std::string width = file.key("attention.key_length");
  if (!file.has(rotated) && file.has(width)) {
    GEN_ASSIGN(const uint32_t all, file.u32(width, 0));
    file.set_u32(rotated, all);
  }
  file.set_text("tokenizer.ggml.pre", "chatglm-bpe");
  return {};
}

}  // namespace

constinit const Family kGlmOcr = {
    .name = "glmocr", .target = "glm4", .tensors = kNames, .adjust = adjust};

}  // namespace gen::gguf::compat

// SPDX-License-Identifier: Apache-2.0
// gpt-oss: another architecture's name, tensors' names, no width of experts, and a pre-tokenizer of
// a general name. Files are not read whose experts have gates and values in alternating rows.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kNames[] = {{".attn_out.", ".attn_output."},
                             {".attn_sinks", ".attn_sinks.weight"},
                             {".ffn_norm.", ".post_attention_norm."}};

Status adjust(Edit& file) {
  for (const TensorInfo& each : file.tensors()) {
    if (each.name.find(".ffn_gate_up_exps.") == std::string::npos) continue;
    return refuse("gates and values of experts are alternating rows of ffn_gate_up_exps");
  }
  const std::string width = file.key("expert_feed_forward_length");
  const TensorInfo* const gates = file.tensor("blk.0.ffn_gate_exps.weight");
  if (!file.has(width) && gates != nullptr) {
    file.set_u32(width, static_cast<uint32_t>(gates->shape[1]));
  }
  const std::string scaling = file.key("rope.scaling.type");
  if (!file.has(scaling)) file.set_text(scaling, "yarn");
  file.set_text("tokenizer.ggml.pre", "gpt-4o");
  return {};
}

}  // namespace

constinit const Family kGptOss = {
    .name = "gptoss", .target = "gpt-oss", .tensors = kNames, .adjust = adjust};

}  // namespace gen::gguf::compat

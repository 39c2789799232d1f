// SPDX-License-Identifier: Apache-2.0
// LFM2: the last norm's name, the pre-tokenizer's, and a width of the feed-forward that is not that
// of the tensors.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kNames[] = {{".attn_out.", ".attn_output."},
                             {".exp_probs_b", ".exp_probs_b.bias"}};

bool is_ollamas(const Source& file) {
  return file.begins("output_norm.") && !file.begins("token_embd_norm.");
}

Status adjust_experts(Edit& file) {
  file.rename_tensor("output_norm.weight", "token_embd_norm.weight");
  file.set_text("tokenizer.ggml.pre", "lfm2");
  return {};
}

Status adjust(Edit& file) {
  GEN_TRY(adjust_experts(file));
  const TensorInfo* const gate = file.tensor("blk.0.ffn_gate.weight");
  if (gate != nullptr) {
    file.set_u32(file.key("feed_forward_length"), static_cast<uint32_t>(gate->shape[1]));
  }
  return {};
}

}  // namespace

constinit const Family kLfm2 = {
    .name = "lfm2", .recognise = is_ollamas, .tensors = kNames, .adjust = adjust};
constinit const Family kLfm2Moe = {
    .name = "lfm2moe", .recognise = is_ollamas, .tensors = kNames, .adjust = adjust_experts};

}  // namespace gen::gguf::compat

// SPDX-License-Identifier: Apache-2.0
// Nemotron-H with experts: names of the products around them, whose width no key states; and the
// models that see and hear, under an architecture of their own.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kNames[] = {{".ffn_latent_in.", ".ffn_latent_down."},
                             {".ffn_latent_out.", ".ffn_latent_up."},
                             {".exp_probs_b", ".exp_probs_b.bias"}};

bool is_ollamas(const Source& file) {
  return file.ends(".ffn_latent_in.weight") || file.begins("mtp.") || file.ends(".exp_probs_b");
}

Status adjust(Edit& file) {
  const std::string width = file.key("moe_latent_size");
  if (file.has(width)) return {};
  for (const TensorInfo& each : file.tensors()) {
    if (!std::string_view(each.name).ends_with(".ffn_latent_down.weight")) continue;
    file.set_u32(width, static_cast<uint32_t>(each.shape[1]));
    break;
  }
  return {};
}

Status adjust_omni(Edit& file) {
  GEN_ASSIGN(const uint32_t experts, file.u32(file.key("expert_count"), 0));
  file.set_architecture(experts > 0 ? "nemotron_h_moe" : "nemotron_h");
  return experts > 0 ? adjust(file) : Status();
}

}  // namespace

constinit const Family kNemotronHMoe = {
    .name = "nemotron_h_moe", .recognise = is_ollamas, .tensors = kNames, .adjust = adjust};
constinit const Family kNemotronHOmni = {
    .name = "nemotron_h_omni", .tensors = kNames, .adjust = adjust_omni};

}  // namespace gen::gguf::compat

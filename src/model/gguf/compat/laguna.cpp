// SPDX-License-Identifier: Apache-2.0
// Laguna: names of the gate of what attends and of the rotation, of which blocks with a window have
// keys of their own.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kKeys[] = {{"rope.swa.dimension_count", "rope.dimension_count_swa"},
                            {"rope.swa.freq_base", "rope.freq_base_swa"},
                            {"rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast"},
                            {"rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow"}};
constexpr Change kNames[] = {{".attn_g.", ".attn_gate."}, {".exp_probs_b", ".exp_probs_b.bias"}};

bool is_ollamas(const Source& file) {
  return file.has("laguna.rope.swa.dimension_count") || file.has("laguna.rope.swa.freq_base") ||
         file.begins("blk.0.attn_g.");
}

Status adjust(Edit& file) {
  const Value* const sinks = file.find(file.key("attention.sink_enabled"));
  if (sinks != nullptr && sinks->text() == "true") return refuse("attention has sinks");
  const std::string type = file.key("rope.scaling.type");
  if (file.has(type) && file.text(type) == "default") file.set_text(type, "none");
  return {};
}

}  // namespace

constinit const Family kLaguna = {
    .name = "laguna", .recognise = is_ollamas, .keys = kKeys, .tensors = kNames, .adjust = adjust};

}  // namespace gen::gguf::compat

// SPDX-License-Identifier: Apache-2.0
// Mistral Small 3.1 to Devstral 2: names of the scaling of the rotation, which files without one
// give a type and factor of nothing; the name of the pre-tokenizer.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kKeys[] = {{"rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast"},
                            {"rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow"},
                            {"rope.scaling.mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
                            {"rope.scaling_beta", "attention.temperature_scale"}};

bool is_ollamas(const Source& file) {
  return file.has_media() || file.has("mistral3.vision.block_count") ||
         file.has("mistral3.rope.scaling.beta_fast") ||
         file.has("mistral3.rope.scaling.mscale_all_dim") || file.has("mistral3.rope.scaling_beta");
}

Status adjust(Edit& file) {
  const std::string type = file.key("rope.scaling.type");
  if (file.has(type) && file.text(type).empty()) {
    for (const char* name : {"rope.scaling.type", "rope.scaling.factor",
                             "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}) {
      file.drop_key(file.key(name));
    }
  }
  constexpr const char* kPre = "tokenizer.ggml.pre";
  const std::string pre = file.text(kPre);
  if (pre.empty() || pre == "default") file.set_text(kPre, "tekken");
  return {};
}

}  // namespace

constinit const Family kMistral3 = {
    .name = "mistral3", .recognise = is_ollamas, .keys = kKeys, .adjust = adjust};

}  // namespace gen::gguf::compat

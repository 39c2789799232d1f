// SPDX-License-Identifier: Apache-2.0
// The table of architectures. See registry.h.
#include "model/arch/registry.h"

#include "model/gguf/clean_name.h"

namespace gen::model::arch {
namespace {

constexpr const Architecture* kArchitectures[] = {
    &kLlama,        &kQwen2,        &kQwen3,         &kGemma2,   &kGranite,   &kOlmo2,
    &kGlm4,         &kPhi3,         &kSmolLm3,       &kArcee,    &kGemma,     &kGemma3,
    &kExaone4,      &kErnie45,      &kSeedOss,       &kCommandR, &kCohere2,   &kStarcoder2,
    &kNemotron,     &kStableLm,     &kApertus,       &kPhi2,     &kGptNeoX,   &kOlmo,
    &kQwen2Vl,      &kQwen3Vl,      &kMuseGlimmer,   &kMiniCpm,  &kMistral3,  &kGemma4,
    &kHunyuanDense, &kQwen3Moe,     &kQwen2Moe,      &kOlmoe,    &kInternLm2, &kQwen35,
    &kLfm2,         &kMamba2,       &kGraniteHybrid, &kMamba,    &kFalconH1,  &kNemotronH,
    &kJamba,        &kNemotronHMoe, &kGptOss,
};

}  // namespace

Architectures architectures() noexcept { return kArchitectures; }

Result<const Architecture*> find_architecture(Architectures known, const std::string& name) {
  std::string names;
  for (const Architecture* row : known) {
    if (name == row->name) return row;
    names += names.empty() ? "" : ", ";
    names += row->name;
  }
  const int shown = gguf::is_clean_name(name) ? gguf::shown_length(name) : 0;
  return error(Code::kUnsupported, "architecture \"%.*s\" is not supported (%s)", shown,
               name.c_str(), names.c_str());
}

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// The table of architectures. See registry.h.
#include "model/arch/registry.h"

#include "model/arch/known_names.h"
#include "model/gguf/clean_name.h"

namespace gen::model::arch {
namespace {

constexpr const Architecture* kArchitectures[] = {
    &kLlama,        &kQwen2,        &kQwen3,         &kGemma2,    &kGranite,    &kOlmo2,
    &kGlm4,         &kPhi3,         &kSmolLm3,       &kArcee,     &kGemma,      &kGemma3,
    &kExaone4,      &kErnie45,      &kSeedOss,       &kCommandR,  &kCohere2,    &kStarcoder2,
    &kNemotron,     &kStableLm,     &kApertus,       &kPhi2,      &kGptNeoX,    &kOlmo,
    &kQwen2Vl,      &kQwen3Vl,      &kMuseGlimmer,   &kMiniCpm,   &kMistral3,   &kGemma4,
    &kHunyuanDense, &kQwen3Moe,     &kQwen2Moe,      &kOlmoe,     &kInternLm2,  &kQwen35,
    &kLfm2,         &kMamba2,       &kGraniteHybrid, &kMamba,     &kFalconH1,   &kNemotronH,
    &kJamba,        &kNemotronHMoe, &kGptOss,        &kQwen35Moe, &kQwen3Next,  &kGlm4Moe,
    &kLfm2Moe,      &kGraniteMoe,   &kErnie45Moe,    &kMiniMaxM2, &kCohere2Moe, &kLaguna,
    &kStep35,       &kDeepSeek,
};

/// Files that are given beside a model.
constexpr const char* kHeads[] = {"eagle3", "eagle", "gemma4-assistant"};

}  // namespace

Architectures architectures() noexcept { return kArchitectures; }

Result<const Architecture*> find_architecture(Architectures known, const std::string& name) {
  const char* nearest = nullptr;
  int least = 0;
  for (const Architecture* row : known) {
    if (name == row->name) return row;
    const int distance = spelling_distance(name, row->name);
    if (distance < 0 || (nearest != nullptr && distance >= least)) continue;
    nearest = row->name;
    least = distance;
  }
  for (const char* const head : kHeads) {
    if (name != head) continue;
    return error(Code::kUnsupported,
                 "\"%s\" is no model but a head that drafts for one, which is given beside it "
                 "(gen_options_set_eagle, --eagle)",
                 head);
  }
  if (const std::string why = why_not_supported(name); !why.empty()) {
    return error(Code::kUnsupported, "architecture \"%s\" is not supported: %s", name.c_str(),
                 why.c_str());
  }
  const int shown = gguf::is_clean_name(name) ? gguf::shown_length(name) : 0;
  if (nearest != nullptr) {
    return error(Code::kUnsupported,
                 "architecture \"%.*s\" is not known: did you mean \"%s\"? (general.architecture)",
                 shown, name.c_str(), nearest);
  }
  return error(Code::kUnsupported, "architecture \"%.*s\" is not known", shown, name.c_str());
}

}  // namespace gen::model::arch

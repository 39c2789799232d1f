// SPDX-License-Identifier: Apache-2.0
// The table of architectures. See registry.h.
#include "model/arch/registry.h"

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

/// Families that files are known of, and what cannot be said of them yet.
struct Lacking {
  const char* name;
  const char* needs;
};
constexpr Lacking kLacking[] = {
    {"deepseek2", "latent attention"},
    {"mistral4", "latent attention"},
    {"deepseek32", "latent attention over entries that an indexer chooses"},
    {"glm-dsa", "latent attention over entries that an indexer chooses"},
    {"deepseek4", "compressed attention and several residual streams"},
    {"hy_v4", "latent attention and several residual streams"},
    {"glm5next", "latent attention, delta nets with a decay of each channel and several streams"},
    {"kimi-linear", "latent attention and delta nets with a decay of each channel"},
    {"kimi-k3", "latent attention"},
    {"qwen4exp", "several residual streams, attention to chosen blocks and embeddings of n-grams"},
    {"minimax-m3", "attention to blocks that an indexer chooses"},
    {"llama4", "experts whose inputs have weights"},
    {"rwkv7", "a recurrence of its own"},
};

/// Files that are given beside a model.
constexpr const char* kHeads[] = {"eagle3", "eagle", "gemma4-assistant"};

}  // namespace

Architectures architectures() noexcept { return kArchitectures; }

Result<const Architecture*> find_architecture(Architectures known, const std::string& name) {
  std::string names;
  for (const Architecture* row : known) {
    if (name == row->name) return row;
    names += names.empty() ? "" : ", ";
    names += row->name;
  }
  for (const char* const head : kHeads) {
    if (name != head) continue;
    return error(Code::kUnsupported,
                 "\"%s\" is no model but a head that drafts for one, which is given beside it "
                 "(gen_options_set_eagle, --eagle)",
                 head);
  }
  for (const Lacking& row : kLacking) {
    if (name != row.name) continue;
    return error(Code::kUnsupported, "architecture \"%s\" is not supported: it needs %s", row.name,
                 row.needs);
  }
  const int shown = gguf::is_clean_name(name) ? gguf::shown_length(name) : 0;
  return error(Code::kUnsupported, "architecture \"%.*s\" is not supported (%s)", shown,
               name.c_str(), names.c_str());
}

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// MiniCPM 1, 2 and 4 (general.architecture "minicpm"): a llama with factors of the embedding, of
// what blocks add and of logits. Early files do not say them, as all such models had the same.
#include <cmath>

#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

Status read_minicpm(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  if (!keys.has("embedding_scale")) h->embedding_factor = 12.0F;
  if (!keys.has("residual_scale")) {
    h->residual_factor = 1.4F / std::sqrt(static_cast<float>(h->n_layers));
  }
  if (!keys.has("logit_scale")) h->logit_factor = 256.0F / static_cast<float>(h->hidden);
  return {};
}

}  // namespace

constinit const Architecture kMiniCpm = {
    "minicpm",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true, .long_factors = true},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .factors = true},
    read_minicpm,
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Gemma 2 (general.architecture "gemma2"): norms around both halves of a block, caps of scores and
// logits, a window in every other layer, the embedding times the root of its length. Files have 1
// added to the weights of norms.
#include <cmath>

#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

/// Scores of the model of 27 billion weights, which its number of layers tells, are divided by the
/// root of a head's share of the width, and not of a head's width; no key says so.
Status read_gemma2(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  if (h->n_layers != 46 || keys.has("attention.scale")) return {};
  for (LayerParams& layer : h->layers) {
    const int32_t share = h->hidden / layer.attention.n_heads;
    if (share > 0) layer.attention.scale = 1.0F / std::sqrt(static_cast<float>(share));
  }
  return {};
}

}  // namespace

constinit const Architecture kGemma2 = {
    "gemma2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norm_after = true,
     .activation = engine::Act::kGelu,
     .window = 4096,
     .global_every = 2,
     .root_embedding = true,
     .score_cap = 50.0F,
     .logit_cap = 30.0F},
    read_gemma2,
};

}  // namespace gen::model::arch

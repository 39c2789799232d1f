// SPDX-License-Identifier: Apache-2.0
// Gemma 4, dense: E2B, E4B, 12B, 31B (general.architecture "gemma4"). A Gemma 3 whose scores have
// no divisor and whose values are normalised; layers without a window have heads of another width
// and divisors of their angles, and may have no values but their keys. In the small ones the last
// layers share earlier ones' keys and values, and each layer has embeddings of its own.
#include "model/arch/decoder_keys.h"
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

Status read_gemma4(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  GEN_TRY(read_local_rope(keys, {}, h));
  for (LayerParams& layer : h->layers) {
    layer.attention.scale = 1.0F;
    if (layer.attention.window > 0) layer.rope.freq_factors = false;
  }
  return {};
}

}  // namespace

constinit const Architecture kGemma4 = {
    "gemma4",
    {.rope = {.kind = engine::RopeKind::kHalves, .freq_factors = true},
     .norm_after = true,
     .head_norms = HeadNorms::kEachHead,
     .activation = engine::Act::kGelu,
     .shared_layers = true,
     .local_heads = true,
     .value_norm = true,
     .layer_inputs = true,
     .layer_scale = true,
     .root_embedding = true,
     .logit_cap = 0.0F},
    read_gemma4,
};

}  // namespace gen::model::arch

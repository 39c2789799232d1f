// SPDX-License-Identifier: Apache-2.0
// Phi-3, Phi-3.5, Phi-4 (general.architecture "phi3"): q, k and v in one tensor, gate and up in
// another, divisors of the rotary frequencies for long contexts and for short ones.
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

/// Ignores windows: converters write windows that the models do not have.
Status read_phi3(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  for (LayerParams& layer : h->layers) layer.attention.window = 0;
  return {};
}

}  // namespace

constinit const Architecture kPhi3 = {
    "phi3",
    {.rope = {.kind = engine::RopeKind::kHalves, .long_factors = true},
     .feed_forward = FeedForward::kFused},
    read_phi3,
};

}  // namespace gen::model::arch

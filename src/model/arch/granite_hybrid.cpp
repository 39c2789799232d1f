// SPDX-License-Identifier: Apache-2.0
// Granite 4 with recurrent blocks, dense and with experts (general.architecture "granitehybrid"): a
// granite of which most blocks, those without heads of keys, have a Mamba-2 in place of attention.
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

/// Without a width there is no shared expert.
Status read_granite_hybrid(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  for (LayerParams& layer : h->layers) {
    if (!keys.has("expert_shared_feed_forward_length")) layer.experts.shared = 0;
  }
  return {};
}

}  // namespace

constinit const Architecture kGraniteHybrid = {
    "granitehybrid",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .rope_switch = true,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .factors = true,
     .recurrence = Recurrence::kMamba2,
     .experts = {.has = Experts::kOptional, .normalise = true, .shared = SharedExpert::kPlain}},
    read_granite_hybrid,
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// EXAONE 4 (general.architecture "exaone4"): norms only after attention and feed-forward, and of
// each head of q and k. The model of 32 billion weights, recognised by its number of layers, has
// windows in three of four layers and no rotary embedding in the others.
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

Status read_exaone4(const DenseStyle& style, KeyReader& keys, HParams* h) {
  DenseStyle windowless = style;
  windowless.window = 0;
  GEN_TRY(read_dense_decoder(windowless, keys, h));
  if (h->n_layers == 64 && !keys.has("attention.sliding_window")) {
    HParams again;
    again.architecture = h->architecture;
    GEN_TRY(read_dense_decoder(style, keys, &again));
    *h = std::move(again);
  }
  for (std::vector<LayerParams>* const layers : {&h->layers, &h->draft_layers}) {
    for (LayerParams& layer : *layers) {
      if (h->n_layers != 64) {
        layer.attention.window = 0;
      } else if (layer.attention.window == 0) {
        layer.rope = {};
      }
    }
  }
  return {};
}

}  // namespace

constinit const Architecture kExaone4 = {
    "exaone4",
    {.rope = {.kind = engine::RopeKind::kHalves, .freq_factors = true},
     .norm_before = false,
     .norm_after = true,
     .head_norms = HeadNorms::kEachHead,
     .window = 4096,
     .global_every = 4,
     .draft_layers = true},
    read_exaone4,
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Gemma 3 (general.architecture "gemma3"): a Gemma 2 without caps, which normalises each head of q
// and k and has windows, with another rotary base, in five of six layers.
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

/// Windows of the sizes that were published, by their layers: 270M and 1B, then 4B, 12B and 27B.
struct SizeWindow {
  int32_t layers;
  int32_t window;
};
constexpr SizeWindow kWindows[] = {{18, 512}, {26, 512}, {34, 1024}, {48, 1024}, {62, 1024}};

Status read_gemma3(const DenseStyle& style, KeyReader& keys, HParams* h) {
  DenseStyle of = style;
  of.window_needed = true;
  int32_t layers = 0;
  if (!keys.has("attention.sliding_window")) {
    GEN_TRY(keys.integer("block_count", 1, 4096, &layers));
  }
  for (const SizeWindow& size : kWindows) {
    if (size.layers != layers) continue;
    of.window = size.window;
    of.window_needed = false;
  }
  return read_dense_decoder(of, keys, h);
}

}  // namespace

constinit const Architecture kGemma3 = {
    "gemma3",
    {.rope = {.kind = engine::RopeKind::kHalves, .base = 1e6},
     .eps = 1e-6,
     .norm_after = true,
     .head_norms = HeadNorms::kEachHead,
     .activation = engine::Act::kGelu,
     .global_every = 6,
     .local_base = 10000.0,
     .local_unscaled = true,
     .root_embedding = true,
     .logit_cap = 0.0F,
     .share_scaled_layers = 62},
    read_gemma3,
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// OLMo 2 and 3 (general.architecture "olmo2"): norms only after attention and feed-forward, and of
// all heads of q and k together. OLMo 3 has windows in three of four layers, whose rotary embedding
// is not scaled.
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

/// Files of OLMo 3 say which layers have a window; its width is the same in all of them.
Status read_olmo2(const DenseStyle& style, KeyReader& keys, HParams* h) {
  DenseStyle of = style;
  if (keys.has("attention.sliding_window_pattern")) of.window = 4096;
  return read_dense_decoder(of, keys, h);
}

}  // namespace

constinit const Architecture kOlmo2 = {
    "olmo2",
    {.rope = {.kind = engine::RopeKind::kHalves, .base = 500000.0},
     .eps = 1e-6,
     .norm_before = false,
     .norm_after = true,
     .head_norms = HeadNorms::kAllHeads,
     .global_every = 4,
     .local_unscaled = true},
    read_olmo2,
};

}  // namespace gen::model::arch

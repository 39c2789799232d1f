// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3.x, Mistral, TinyLlama and their kin (general.architecture "llama"): rotary pairs
// side by side, biases only in some files, Llama 3's frequency factors as a tensor.
#include "model/arch/decoder_builder.h"
#include "model/arch/registry.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

void build_llama(const HParams& h, Weights& weights, graph::GraphBuilder& graph) {
  DecoderBuilder d(h, weights, graph);
  d.set_attention(engine::RopeKind::kAdjacent, /*freq_factors=*/true);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    const ValueId a = d.norm(x, "attn_norm");
    const ValueId q = d.linear(a, "attn_q", d.q_rows(), SiteKind::kQ, Bias::kOptional);
    const ValueId k = d.linear(a, "attn_k", d.k_rows(), SiteKind::kK, Bias::kOptional);
    const ValueId v = d.linear(a, "attn_v", d.v_rows(), SiteKind::kV, Bias::kOptional);
    const ValueId attended = d.attend(q, k, v, /*head_norms=*/false);
    x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, Bias::kOptional));
    x = d.add(x, d.gated_feed_forward(d.norm(x, "ffn_norm"), Bias::kOptional));
    d.end_layer(x);
  }
  d.head(x, Bias::kNone);
}

}  // namespace gen::model::arch

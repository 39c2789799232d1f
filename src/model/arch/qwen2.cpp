// SPDX-License-Identifier: Apache-2.0
// Qwen2 and Qwen2.5 (general.architecture "qwen2"): rotary pairs half a head apart, biases on q, k
// and v.
#include "model/arch/decoder_builder.h"
#include "model/arch/registry.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

void build_qwen2(const HParams& h, Weights& weights, graph::GraphBuilder& graph) {
  DecoderBuilder d(h, weights, graph);
  d.set_attention(engine::RopeKind::kHalves, /*freq_factors=*/false);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    const ValueId a = d.norm(x, "attn_norm");
    const ValueId q = d.linear(a, "attn_q", d.q_rows(), SiteKind::kQ, Bias::kRequired);
    const ValueId k = d.linear(a, "attn_k", d.k_rows(), SiteKind::kK, Bias::kRequired);
    const ValueId v = d.linear(a, "attn_v", d.v_rows(), SiteKind::kV, Bias::kRequired);
    const ValueId attended = d.attend(q, k, v, /*head_norms=*/false);
    x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, Bias::kNone));
    x = d.add(x, d.gated_feed_forward(d.norm(x, "ffn_norm"), Bias::kNone));
    d.end_layer(x);
  }
  d.head(x, Bias::kOptional);
}

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense (general.architecture "qwen3"): like Qwen2 without biases, but each head of q and k
// is normalised before it is rotated, and the head's width is a number of its own.
#include "model/arch/decoder_builder.h"
#include "model/arch/registry.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

void build_qwen3(const HParams& h, Weights& weights, graph::GraphBuilder& graph) {
  DecoderBuilder d(h, weights, graph);
  d.set_attention(engine::RopeKind::kHalves, /*freq_factors=*/false);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    const ValueId a = d.norm(x, "attn_norm");
    const ValueId q = d.linear(a, "attn_q", d.q_rows(), SiteKind::kQ, Bias::kNone);
    const ValueId k = d.linear(a, "attn_k", d.k_rows(), SiteKind::kK, Bias::kNone);
    const ValueId v = d.linear(a, "attn_v", d.v_rows(), SiteKind::kV, Bias::kNone);
    const ValueId attended = d.attend(q, k, v, /*head_norms=*/true);
    x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, Bias::kNone));
    x = d.add(x, d.gated_feed_forward(d.norm(x, "ffn_norm"), Bias::kNone));
    d.end_layer(x);
  }
  d.head(x, Bias::kNone);
}

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// See dense_decoder.h.
#include "model/arch/dense_decoder.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

void build_dense_decoder(const DenseStyle& style, const HParams& h, Weights& weights,
                         graph::GraphBuilder& graph) {
  DecoderBuilder d(h, weights, graph);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    const ValueId a = d.norm(x, "attn_norm");
    const ValueId q = d.linear(a, "attn_q", d.q_rows(), SiteKind::kQ, style.input_bias);
    const ValueId k = d.linear(a, "attn_k", d.k_rows(), SiteKind::kK, style.input_bias);
    const ValueId v = d.linear(a, "attn_v", d.v_rows(), SiteKind::kV, style.input_bias);
    const ValueId attended = d.attend(q, k, v, style.head_norms);
    x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, style.inner_bias));
    x = d.add(x, d.gated_feed_forward(d.norm(x, "ffn_norm"), style.inner_bias));
    d.end_layer(x);
  }
  d.head(x, style.head_bias);
}

}  // namespace gen::model::arch

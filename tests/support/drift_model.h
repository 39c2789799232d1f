// SPDX-License-Identifier: Apache-2.0
// "drift": an architecture made up for tests, whose blocks attend or recur. What recurs takes
// a = mix_a(norm(x)) and b, v of another norm, h = a h + b v, and gives mix_out(h).
#pragma once

#include <string>

#include "model/arch/decoder_builder.h"
#include "model/arch/decoder_keys.h"
#include "support/loaded_tiny.h"

namespace gen::test {

inline Status read_drift(const model::arch::DenseStyle&, model::KeyReader& keys,
                         model::HParams* h) {
  GEN_TRY(model::arch::read_model(keys, h));
  GEN_TRY(model::arch::read_feed_forward(keys, h));
  GEN_TRY(model::arch::read_heads(keys, true, h));
  GEN_TRY(model::arch::read_windows(keys, {}, h));
  return model::arch::read_rope(keys, {.kind = engine::RopeKind::kAdjacent}, h);
}

inline void build_drift(const model::arch::DenseStyle&, const model::HParams& h,
                        model::Weights& weights, graph::GraphBuilder& graph) {
  using graph::SiteKind;
  using graph::ValueId;
  constexpr auto kNoBias = model::arch::Bias::kNone;
  constexpr int32_t kWidth = 40;
  model::arch::DecoderBuilder d(h, weights, graph);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    if (d.layer().mixer == model::MixerKind::kAttention) {
      const ValueId n = d.norm(x, "attn_norm");
      const ValueId q = d.linear(n, "attn_q", d.q_rows(), SiteKind::kQ, kNoBias);
      const ValueId k = d.linear(n, "attn_k", d.k_rows(), SiteKind::kK, kNoBias);
      const ValueId v = d.linear(n, "attn_v", d.v_rows(), SiteKind::kV, kNoBias);
      const ValueId attended = d.attend(q, k, v, model::arch::HeadNorms::kNone);
      x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, kNoBias));
    } else if (weights.has("blk." + std::to_string(layer) + ".mix_norm.weight")) {
      const ValueId n = d.norm(x, "mix_norm");
      const ValueId a = d.linear(d.norm(x, "mix_a_norm"), "mix_a", kWidth, SiteKind::kQ, kNoBias);
      const ValueId b = d.linear(n, "mix_b", kWidth, SiteKind::kK, kNoBias);
      const ValueId v = d.linear(n, "mix_v", kWidth, SiteKind::kV, kNoBias);
      const std::string out = "blk." + std::to_string(layer) + ".mix_out.weight";
      x = d.add(x, graph.linear(graph.scan(a, b, v), weights.matrix(out, h.hidden, kWidth), {},
                                graph::site_id(layer, SiteKind::kAttnOut)));
    }
    x = d.add(x, d.gated_feed_forward(d.norm(x, "ffn_norm"), engine::Act::kSilu, kNoBias));
    d.end_layer(x);
  }
  d.head(x, kNoBias);
}

inline constexpr model::arch::Architecture kDriftRow = {"drift", {}, read_drift, build_drift};
inline constexpr const model::arch::Architecture* kDrift[] = {&kDriftRow};

inline TinyModelSpec drift_spec() {
  TinyModelSpec spec;
  spec.architecture = "drift";
  spec.layers = 4;
  spec.layer_kv_heads = {0, 2, 0, 0};
  spec.recurrent = {1, 0, 1, 1};
  return spec;
}

inline TinyEngineOptions with_drift(CpuLevel level = detect_cpu_level(), int32_t threads = 1) {
  TinyEngineOptions options;
  options.architectures = kDrift;
  options.level = level;
  options.threads = threads;
  return options;
}

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// "drift": an architecture made up for tests, a hybrid whose blocks attend, recur or do neither, as
// a family of real ones would be written: one page, one row of a table. What recurs takes
// a = mix_a(norm(x)) and b, v of another norm, h = a h + b v, and gives mix_out(h).
#pragma once

#include <vector>

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
  std::vector<uint8_t> recurs(h->layers.size());
  GEN_TRY(keys.flags("recurrent", &recurs));
  for (size_t i = 0; i < recurs.size(); ++i) {
    if (recurs[i] != 0) h->layers[i].mixer = model::MixerKind::kRecurrent;
  }
  return model::arch::read_rope(keys, {.kind = engine::RopeKind::kAdjacent}, h);
}

inline void build_drift(const model::arch::DenseStyle&, const model::HParams& h,
                        model::Weights& weights, graph::GraphBuilder& graph) {
  using graph::SiteKind;
  using graph::ValueId;
  using model::MixerKind;
  constexpr auto kNoBias = model::arch::Bias::kNone;
  constexpr int32_t kWidth = 40;
  model::arch::DecoderBuilder d(h, weights, graph);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    if (d.layer().mixer == MixerKind::kAttention) {
      const auto [q, k, v] = d.inputs(d.norm(x, "attn_norm"), kNoBias);
      const ValueId attended = d.attend(q, k, v, model::arch::HeadNorms::kNone);
      x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, kNoBias));
    }
    if (d.layer().mixer == MixerKind::kRecurrent) {
      const ValueId n = d.norm(x, "mix_norm");
      const ValueId a = d.linear(d.norm(x, "mix_a_norm"), "mix_a", kWidth, SiteKind::kQ, kNoBias);
      const ValueId b = d.linear(n, "mix_b", kWidth, SiteKind::kK, kNoBias);
      const ValueId v = d.linear(n, "mix_v", kWidth, SiteKind::kV, kNoBias);
      const ValueId mixed = graph.scan(a, b, v);
      x = d.add(x, d.linear(mixed, "mix_out", h.hidden, kWidth, SiteKind::kAttnOut, kNoBias));
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

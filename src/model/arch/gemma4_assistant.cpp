// SPDX-License-Identifier: Apache-2.0
// See gemma4_assistant.h.
#include "model/arch/gemma4_assistant.h"

#include <cmath>

#include "model/arch/decoder_builder.h"
#include "model/arch/decoder_keys.h"

namespace gen::model::arch {
namespace {

using graph::SiteKind;
using graph::ValueId;

/// The last layer that has a window, or has none; -1 without one.
int32_t last_layer(std::span<const cache::LayerShape> cache, bool window) {
  auto layer = static_cast<int32_t>(cache.size()) - 1;
  while (layer >= 0 && (cache[static_cast<size_t>(layer)].window > 0) != window) --layer;
  return layer;
}

}  // namespace

Status read_gemma4_assistant(KeyReader& keys, AssistantParams* out) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  constexpr int32_t kMaxWidth = 1 << 24;
  HParams* const h = &out->own;
  GEN_TRY(read_model(keys, h));
  int32_t drafts = 0;
  GEN_TRY(keys.integer_or("nextn_predict_layers", h->n_layers, h->n_layers, h->n_layers, &drafts));
  GEN_TRY(keys.integer("embedding_length_out", 1, kMaxWidth, &out->target_hidden));
  GEN_TRY(read_feed_forward(keys, h));
  GEN_TRY(read_heads(keys, false, h));
  if (!keys.has(kPattern)) return error(Code::kFormat, "%s is missing", keys.key(kPattern).c_str());
  GEN_TRY(read_windows(keys, {}, h));
  GEN_TRY(read_rope(keys, {.kind = engine::RopeKind::kHalves, .freq_factors = true}, h));
  GEN_TRY(read_local_rope(keys, {.unscaled = true}, h));
  GEN_TRY(read_local_heads(keys, h));
  for (LayerParams& layer : h->layers) layer.attention.scale = 1.0F;
  // Some files have these from the configuration of the model. A cap changes no order of logits.
  for (const char* name : {"final_logit_softcapping", "attention.shared_kv_layers"}) {
    static_cast<void>(keys.has(name));
  }
  return {};
}

void build_gemma4_assistant(const AssistantParams& params, const engine::WeightSource& embedding,
                            std::span<const cache::LayerShape> cache, Weights& weights,
                            graph::GraphBuilder& graph) {
  HParams h = params.own;
  for (LayerParams& layer : h.layers) {
    layer.attention.use = graph::CacheUse::kGiven;
    layer.attention.shared = last_layer(cache, layer.attention.window > 0);
  }
  DecoderBuilder d(h, weights, graph);
  const int64_t outside = params.target_hidden;
  const ValueId token = graph.embed(embedding, std::sqrt(static_cast<float>(outside)));
  graph.read_cache(cache);
  ValueId x =
      graph.linear(graph.join(token, graph.features(outside)),
                   weights.matrix("nextn.pre_projection.weight", h.hidden, 2 * outside), {}, -1);
  for (int32_t i = 0; i < h.n_layers; ++i) {
    d.begin_layer(i);
    const ValueId q =
        d.linear(d.norm(x, "attn_norm"), "attn_q", d.q_rows(), SiteKind::kQ, Bias::kNone);
    const ValueId y = d.linear(d.attend(q, {}, {}, HeadNorms::kEachHead), "attn_output", h.hidden,
                               SiteKind::kAttnOut, Bias::kNone);
    x = graph.add(x, d.norm(y, "post_attention_norm"));
    const ValueId z = d.gated_feed_forward(d.norm(x, "ffn_norm"), engine::Act::kGelu, Bias::kNone);
    x = d.scale_layer(graph.add(x, d.norm(z, "post_ffw_norm")));
  }
  const ValueId last =
      graph.rms_norm(x, weights.vector("output_norm.weight", h.hidden), h.norm_eps);
  graph.tap(0, graph.linear(last, weights.matrix("nextn.post_projection.weight", outside, h.hidden),
                            {}, -1));
  graph.logits(graph.linear(graph.select_rows(last),
                            weights.matrix("token_embd.weight", h.vocab_size, h.hidden), {}, -1));
  // A shorter way to the best tokens, which may miss them.
  for (const char* name : {"masked_embd_centroids.weight", "masked_embd_ordering"}) {
    weights.ignore(name);
  }
  weights.ignore("rope_freqs.weight");  // unused if all layers have windows
}

}  // namespace gen::model::arch

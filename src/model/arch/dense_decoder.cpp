// SPDX-License-Identifier: Apache-2.0
// See dense_decoder.h.
#include "model/arch/dense_decoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "model/arch/decoder_keys.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

namespace {

ValueId feed_forward(const DenseStyle& style, DecoderBuilder& d, ValueId x) {
  if (d.layer().experts.routing.n_experts > 0 && !style.experts.beside &&
      (!style.experts.some_blocks || d.has("ffn_gate_inp"))) {
    return d.experts(x, style.activation, style.feed_forward != FeedForward::kPlain,
                     style.experts.shared);
  }
  switch (style.feed_forward) {
    case FeedForward::kGated:
      return d.gated_feed_forward(x, style.activation, style.inner_bias);
    case FeedForward::kFused:
      if (d.has("ffn_gate")) return d.gated_feed_forward(x, style.activation, style.inner_bias);
      return d.fused_feed_forward(x, style.activation, style.inner_bias);
    case FeedForward::kPlain:
      return d.plain_feed_forward(x, style.activation, style.inner_bias);
  }
  return {};
}

ValueId attention(const DenseStyle& style, const HParams& h, DecoderBuilder& d, ValueId a) {
  auto [q, k, v] = d.inputs(a, style.input_bias, style.attention_gate, style.value_norm);
  if (style.value_norm) v = d.norm_values(v);
  ValueId attended = d.attend(q, k, v, style.head_norms, style.sinks);
  attended =
      d.gated_attention(attended, a, style.attention_gate, style.gate_activation, style.input_bias);
  return d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, style.inner_bias);
}

ValueId recurrence(const DenseStyle& style, DecoderBuilder& d, ValueId a) {
  switch (style.recurrence) {
    case Recurrence::kDeltaNet:
      return d.delta_net(a);
    case Recurrence::kShortConvolution:
      return d.short_convolution(a, style.inner_bias);
    case Recurrence::kMamba:
      return d.mamba(a, style.recurrent_norms);
    case Recurrence::kMamba2:
      return d.mamba2(a);
    case Recurrence::kNone:
      break;
  }
  return {};
}

/// What blocks consist of, and the sizes of attention and recurrence.
Status read_mixers(const DenseStyle& style, KeyReader& keys, HParams* h) {
  const bool some = style.recurs == Recurs::kInstead || style.recurs == Recurs::kAlone;
  if (style.recurs != Recurs::kOnly) {
    GEN_TRY(read_heads(keys, some && style.recurrence != Recurrence::kNone, h));
  }
  if (style.recurrence == Recurrence::kNone) return {};
  if (some) GEN_TRY(read_recurrent_layers(keys, style.attention_every, h));
  for (LayerParams& layer : h->layers) {
    if (style.recurs == Recurs::kOnly) layer.mixer = MixerKind::kRecurrent;
    if (style.recurs == Recurs::kAlone && layer.feed_forward > 0) layer.mixer = MixerKind::kNone;
  }
  if (style.recurrence == Recurrence::kMamba) return read_mamba(keys, h);
  if (style.recurrence == Recurrence::kShortConvolution) return read_short_convolution(keys, h);
  return read_state_heads(keys, h);
}

/// The first half of a block.
ValueId mixer(const DenseStyle& style, const HParams& h, DecoderBuilder& d,
              graph::GraphBuilder& graph, ValueId a) {
  if (d.layer().mixer == MixerKind::kRecurrent) return recurrence(style, d, a);
  const ValueId y = attention(style, h, d, a);
  return style.recurs == Recurs::kBeside ? graph.add(y, recurrence(style, d, a)) : y;
}

/// The input of a block, the same after attn_norm, and the input plus attention.
struct BlockValues {
  ValueId in, normed, attended;
};

/// The input of the feed-forward.
ValueId feed_forward_input(const DenseStyle& style, const HParams& h, DecoderBuilder& d,
                           const BlockValues& of) {
  const bool without = style.parallel == Parallel::kWithoutNorm && !d.has(style.ffn_norm);
  if (without || style.parallel == Parallel::kOneNorm) return of.normed;
  const bool beside = style.parallel == Parallel::kTwoNorms && h.parallel_blocks;
  const ValueId x = beside ? of.in : of.attended;
  return style.norm_before ? d.norm(x, style.ffn_norm) : x;
}

/// A block, of the layer that the builder is at. `inputs` are the layers' own embeddings, if any.
ValueId block(const DenseStyle& style, const HParams& h, DecoderBuilder& d,
              graph::GraphBuilder& graph, ValueId x, ValueId inputs) {
  BlockValues of = {x, {}, x};
  if (d.layer().mixer != MixerKind::kNone) {
    of.normed = style.norm_before ? d.norm(x, "attn_norm") : x;
    const ValueId y = mixer(style, h, d, graph, of.normed);
    x = d.add(x, style.norm_after ? d.norm(y, "post_attention_norm", style.after_eps) : y);
    of.attended = x;
  }
  if (d.layer().feed_forward > 0) {
    ValueId y = feed_forward(style, d, feed_forward_input(style, h, d, of));
    if (style.experts.beside && d.layer().experts.routing.n_experts > 0 && d.has("ffn_gate_inp")) {
      y = d.experts_beside(y, of.attended, style.activation);
    }
    x = d.add(x, style.norm_after ? d.norm(y, "post_ffw_norm", style.after_eps) : y);
  }
  if (inputs.valid()) x = d.add_layer_input(x, inputs, style.activation);
  return style.layer_scale ? d.scale_layer(x) : x;
}

}  // namespace

Status read_dense_decoder(const DenseStyle& style, KeyReader& keys, HParams* h) {
  h->layer_norms = style.norms.kind == NormStyle::Kind::kLayer ||
                   (style.norms.kind == NormStyle::Kind::kEither &&
                    !keys.has("attention.layer_norm_rms_epsilon"));
  GEN_TRY(read_model(keys, h, h->layer_norms, style.eps));
  GEN_TRY(read_draft_layers(keys, h));
  if (style.recurs != Recurs::kOnly) {
    GEN_TRY(read_feed_forward(keys, h, style.recurs == Recurs::kAlone));
  }
  for (LayerParams& layer : h->layers) {
    layer.activation.alpha = style.activation_alpha;
    layer.activation.limit = style.activation_limit;
  }
  if (style.activation == engine::Act::kXielu) GEN_TRY(read_xielu(keys, h));
  if (const ExpertStyle& of = style.experts; of.has != Experts::kNone) {
    GEN_TRY(read_experts(keys,
                         {of.gating, of.normalise, of.shared != SharedExpert::kNone, of.unshared,
                          of.has == Experts::kRequired},
                         h));
    if (of.latent) GEN_TRY(read_latent_experts(keys, h));
  }
  if (style.swiglu_limits) GEN_TRY(read_swiglu_limits(keys, h));
  GEN_TRY(read_mixers(style, keys, h));
  GEN_TRY(read_windows(
      keys, {style.window, style.global_every, style.global_first, style.window_needed}, h));
  GEN_TRY(read_rope(keys, style.rope, h));
  if (style.global_every > 0)
    GEN_TRY(read_local_rope(keys, {style.local_base, style.local_unscaled}, h));
  if (style.local_heads) GEN_TRY(read_local_heads(keys, h));
  for (LayerParams& layer : h->layers) {
    if (style.undivided_scores && !keys.has("attention.scale")) layer.attention.scale = 1.0F;
  }
  if (style.global_half) GEN_TRY(halve_global_rotation(keys, h));
  if (style.shared_layers) GEN_TRY(read_shared_layers(keys, h));
  if (style.query_temperature) GEN_TRY(read_query_temperature(keys, h));
  if (style.layer_inputs) GEN_TRY(read_layer_inputs(keys, h));
  for (size_t i = 0; style.unrotated_every > 0 && i < h->layers.size(); ++i) {
    const auto every = static_cast<size_t>(style.unrotated_every);
    if (i % every == every - 1) h->layers[i].rope = {};
  }
  for (LayerParams& layer : h->layers) {
    const bool dense = style.rotate_dense && layer.experts.routing.n_experts == 0;
    if (style.rotate_local && layer.attention.window == 0 && !dense) layer.rope = {};
  }
  if (style.rope_sections) GEN_TRY(read_rope_sections(keys, h));
  if (style.share_scaled_layers == h->n_layers && !keys.has("attention.scale")) {
    for (LayerParams& layer : h->layers) {
      const int32_t share = std::max(h->hidden / layer.attention.n_heads, 1);
      layer.attention.scale = 1.0F / std::sqrt(static_cast<float>(share));
    }
  }
  if (style.parallel == Parallel::kTwoNorms) {
    GEN_TRY(keys.flag_or("use_parallel_residual", true, &h->parallel_blocks));
  }
  if (style.rope_switch) GEN_TRY(read_rope_switch(keys, h));
  if (style.root_embedding) h->embedding_factor = std::sqrt(static_cast<float>(h->hidden));
  if (style.factors) GEN_TRY(read_factors(keys, h));
  if (style.logit_factor) GEN_TRY(read_logit_factor(keys, h));
  if (style.score_cap >= 0.0F) GEN_TRY(read_score_cap(keys, style.score_cap, h));
  if (style.logit_cap >= 0.0F) GEN_TRY(read_logit_cap(keys, style.logit_cap, h));
  take_draft_layers(h);
  if (style.draft_layers) return {};
  // They are known and not run: the text model is whole without them.
  h->n_draft_layers = 0;
  h->draft_layers.clear();
  return {};
}

void build_dense_decoder(const DenseStyle& style, const HParams& h, Weights& weights,
                         graph::GraphBuilder& graph) {
  DecoderBuilder d(h, weights, graph, style.norms);
  // Unused if no layer has rotary embedding.
  if (style.rope.freq_factors) weights.ignore("rope_freqs.weight");
  ValueId x = d.embedding(style.norm_embedding);
  const ValueId inputs = h.layer_input > 0 ? d.layer_inputs(x) : ValueId();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    x = block(style, h, d, graph, x, inputs);
    d.end_layer(x);
  }
  for (int32_t i = 0; i < h.n_draft_layers; ++i) {
    weights.ignore_all("blk." + std::to_string(h.n_layers + i) + ".");
  }
  d.head(x, style.head_bias, style.last_norm);
}

void build_dense_draft(const DenseStyle& style, const HParams& h, int32_t index, Weights& weights,
                       graph::GraphBuilder& graph) {
  HParams all = h;
  all.layers.insert(all.layers.end(), h.draft_layers.begin(), h.draft_layers.end());
  DecoderBuilder d(all, weights, graph, style.norms);
  d.begin_layer(h.n_layers + index);
  ValueId x = d.draft_input();
  x = block(style, all, d, graph, x, {});
  d.draft_head(x, style.head_bias, style.last_norm);
  weights.ignore_others("blk." + std::to_string(h.n_layers + index) + ".");
}

}  // namespace gen::model::arch

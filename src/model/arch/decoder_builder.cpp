// SPDX-License-Identifier: Apache-2.0
// The parts of a decoder. See decoder_builder.h.
#include "model/arch/decoder_builder.h"

#include <vector>

#include "model/rope_table.h"

namespace gen::model::arch {

void DecoderBuilder::set_attention(engine::RopeKind rope, bool freq_factors) {
  std::vector<float> factors;
  if (freq_factors) {
    factors = weights_.optional_vector("rope_freqs.weight", h_.rope.n_dims / 2);
  } else {
    weights_.ignore("rope_freqs.weight");
  }
  attention_.n_heads = h_.n_heads;
  attention_.n_kv_heads = h_.n_kv_heads;
  attention_.k_dim = h_.k_dim;
  attention_.v_dim = h_.v_dim;
  attention_.scale = h_.attention_scale;
  attention_.rope = graph_.rope_table(make_rope_table(rope, h_.rope, factors));
}

std::string DecoderBuilder::name(const char* part, const char* suffix) const {
  return "blk." + std::to_string(layer_) + "." + part + suffix;
}

graph::ValueId DecoderBuilder::embedding() {
  const graph::ValueId x =
      graph_.embed(weights_.matrix("token_embd.weight", h_.vocab_size, h_.hidden));
  graph_.tap(0, x);
  return x;
}

graph::ValueId DecoderBuilder::norm(graph::ValueId x, const char* part) {
  return graph_.rms_norm(x, weights_.vector(name(part, ".weight"), h_.hidden), h_.norm_eps);
}

graph::ValueId DecoderBuilder::product(graph::ValueId x, const std::string& weight, int64_t rows,
                                       int64_t cols, const std::string& bias_name, Bias bias,
                                       int32_t site) {
  std::vector<float> values;
  if (bias == Bias::kRequired) values = weights_.vector(bias_name, rows);
  if (bias == Bias::kOptional) values = weights_.optional_vector(bias_name, rows);
  return graph_.linear(x, weights_.matrix(weight, rows, cols), values, site);
}

graph::ValueId DecoderBuilder::linear(graph::ValueId x, const char* part, int64_t rows,
                                      graph::SiteKind kind, Bias bias) {
  int64_t cols = h_.hidden;
  if (kind == graph::SiteKind::kAttnOut) cols = int64_t{h_.n_heads} * h_.v_dim;
  if (kind == graph::SiteKind::kDown) cols = h_.feed_forward;
  return product(x, name(part, ".weight"), rows, cols, name(part, ".bias"), bias,
                 graph::site_id(layer_, kind));
}

graph::ValueId DecoderBuilder::attend(graph::ValueId q, graph::ValueId k, graph::ValueId v,
                                      bool head_norms) {
  std::vector<float> q_norm;
  std::vector<float> k_norm;
  if (head_norms) {
    q_norm = weights_.vector(name("attn_q_norm", ".weight"), h_.k_dim);
    k_norm = weights_.vector(name("attn_k_norm", ".weight"), h_.k_dim);
  }
  graph::AttentionSpec spec = attention_;
  if (h_.local[static_cast<size_t>(layer_)] != 0) {
    spec.window = h_.window;
    spec.chunk = h_.chunk;
  }
  q = graph_.rope_append(q, k, v, layer_, spec, q_norm, k_norm, h_.norm_eps);
  return graph_.attention(q, layer_);
}

graph::ValueId DecoderBuilder::gated_feed_forward(graph::ValueId x, Bias bias) {
  const graph::ValueId gate = linear(x, "ffn_gate", h_.feed_forward, graph::SiteKind::kGate, bias);
  const graph::ValueId up = linear(x, "ffn_up", h_.feed_forward, graph::SiteKind::kUp, bias);
  const graph::ValueId gated = graph_.apply(engine::Op::kGated, {gate, up}, {engine::Act::kSilu});
  return linear(gated, "ffn_down", h_.hidden, graph::SiteKind::kDown, bias);
}

void DecoderBuilder::head(graph::ValueId x, Bias bias) {
  x = graph_.select_rows(x);
  x = graph_.rms_norm(x, weights_.vector("output_norm.weight", h_.hidden), h_.norm_eps);
  const char* weight = weights_.has("output.weight") ? "output.weight" : "token_embd.weight";
  graph_.logits(product(x, weight, h_.vocab_size, h_.hidden, "output.bias", bias,
                        graph::site_id(h_.n_layers, graph::SiteKind::kLogits)));
}

}  // namespace gen::model::arch

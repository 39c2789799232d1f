// SPDX-License-Identifier: Apache-2.0
// The parts of a decoder. See decoder_builder.h.
#include "model/arch/decoder_builder.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "model/rope_table.h"

namespace gen::model::arch {

int32_t DecoderBuilder::rope_table() {
  const RopeParams& rope = layer().rope;
  if (rope.kind == engine::RopeKind::kNone) return -1;
  for (const auto& [params, table] : tables_) {
    if (params == rope) return table;
  }
  std::vector<float> factors;
  if (rope.freq_factors) {
    const int32_t all = std::max(rope.factor_dims, rope.n_dims);
    const std::string own = name("rope_freqs", ".weight");
    factors = weights_.optional_vector(weights_.has(own) ? own : "rope_freqs.weight", all / 2);
    if (!factors.empty()) factors.resize(static_cast<size_t>(rope.n_dims / 2));
  }
  if (rope.long_factors && factors.empty()) {
    const bool longer = h_.context_length > rope.original_context;
    const char* const own = longer ? "rope_factors_long.weight" : "rope_factors_short.weight";
    const char* const other = longer ? "rope_factors_short.weight" : "rope_factors_long.weight";
    // A file has both or none.
    if (weights_.has(own) || weights_.has(other)) factors = weights_.vector(own, rope.n_dims / 2);
    weights_.ignore(other);
  }
  const int32_t table = graph_.rope_table(make_rope_table(rope, factors));
  tables_.emplace_back(rope, table);
  return table;
}

std::string DecoderBuilder::name(const char* part, const char* suffix) const {
  return "blk." + std::to_string(layer_) + "." + part + suffix;
}

graph::ValueId DecoderBuilder::embedding(bool normalised) {
  graph::ValueId x = graph_.embed(weights_.matrix("token_embd.weight", h_.vocab_size, h_.hidden),
                                  h_.embedding_factor, graph::Lookup::kTokens,
                                  graph::site_id(h_.n_layers, graph::SiteKind::kEmbedding));
  if (normalised) {
    x = graph_.rms_norm(x, std::vector(static_cast<size_t>(h_.hidden), 1.0F), h_.norm_eps);
  }
  graph_.tap(0, x);
  return x;
}

graph::ValueId DecoderBuilder::norm(graph::ValueId x, const char* part, float eps) {
  return norm_of(x, name(part, ""), h_.hidden, eps);
}

graph::ValueId DecoderBuilder::norm_of(graph::ValueId x, const std::string& name, int64_t size,
                                       float eps) {
  if (eps == 0.0F) eps = h_.norm_eps;
  std::vector<float> weight;
  if (norms_.weight) {
    // Files of falcon-h1 have a norm whose name has no suffix.
    weight = weights_.vector(weights_.has(name) ? name : name + ".weight", size);
  }
  if (norms_.kind == NormStyle::Kind::kLayer) {
    return graph_.layer_norm(x, weight, bias_values(name + ".bias", size, norms_.bias), eps);
  }
  if (!norms_.weight) weight.assign(static_cast<size_t>(size), 1.0F);
  return graph_.rms_norm(x, weight, eps);
}

graph::ValueId DecoderBuilder::norm_of_each(graph::ValueId heads, const char* part, int32_t n) {
  if (!has(part)) return heads;
  return graph_.layer_norm(heads, weights_.table(name(part, ".weight"), n, spec().k_dim), {},
                           h_.norm_eps, n);
}

graph::ValueId DecoderBuilder::add(graph::ValueId x, graph::ValueId made) {
  if (h_.residual_factor != 1.0F) {
    made = scaled(made, h_.residual_factor);
  }
  return graph_.add(x, made);
}

graph::ValueId DecoderBuilder::product(graph::ValueId x, const std::string& weight, int64_t rows,
                                       int64_t cols, const std::string& bias_name, Bias bias,
                                       int32_t site) {
  const std::vector<float> values = bias_values(bias_name, rows, bias);
  return graph_.linear(x, weights_.matrix(weight, rows, cols), values, site);
}

std::vector<float> DecoderBuilder::bias_values(const std::string& name, int64_t size, Bias bias) {
  if (bias == Bias::kRequired) return weights_.vector(name, size);
  if (bias == Bias::kOptional) return weights_.optional_vector(name, size);
  return {};
}

graph::ValueId DecoderBuilder::piece(graph::ValueId x, const char* part, int64_t total,
                                     int64_t first, int64_t rows, graph::SiteKind kind, Bias bias) {
  std::span<const float> values;
  const std::vector<float> whole = bias_values(name(part, ".bias"), total, bias);
  if (!whole.empty()) {
    values = std::span(whole).subspan(static_cast<size_t>(first), static_cast<size_t>(rows));
  }
  return graph_.linear(x, weights_.rows(name(part, ".weight"), total, first, rows, h_.hidden),
                       values, graph::site_id(layer_, kind));
}

graph::ValueId DecoderBuilder::half_of_q(graph::ValueId x, int64_t first, graph::SiteKind kind,
                                         Bias bias) {
  const int64_t n = spec().n_heads;
  const int64_t size = spec().k_dim;
  const std::vector<float> both = bias_values(name("attn_q", ".bias"), n * 2 * size, bias);
  std::vector<float> values;
  for (int64_t h = 0; h < n && !both.empty(); ++h) {
    const auto from = both.begin() + h * 2 * size + first;
    values.insert(values.end(), from, from + size);
  }
  return graph_.linear(
      x, weights_.rows_of_each(name("attn_q", ".weight"), n, 2 * size, first, size, h_.hidden),
      values, graph::site_id(layer_, kind));
}

graph::ValueId DecoderBuilder::bare(graph::ValueId x, const char* part, int64_t rows, int64_t cols,
                                    graph::SiteKind kind) {
  return product(x, name(part, ".weight"), rows, cols, "", Bias::kNone,
                 graph::site_id(layer_, kind));
}

graph::ValueId DecoderBuilder::scaled(graph::ValueId x, float factor) {
  return graph_.apply(engine::Op::kActivate, {x}, {.kind = engine::Act::kScaled, .alpha = factor});
}

graph::ValueId DecoderBuilder::norm_values(graph::ValueId v) {
  return v.valid() ? graph_.rms_norm_in_groups(v, {}, h_.norm_eps, spec().n_kv_heads) : v;
}

graph::ValueId DecoderBuilder::layer_inputs(graph::ValueId x) {
  const int64_t size = h_.layer_input;
  const int64_t all = size * h_.n_layers;
  const graph::ValueId own =
      graph_.embed(weights_.matrix("per_layer_token_embd.weight", h_.vocab_size, all),
                   std::sqrt(static_cast<float>(size)));
  graph::ValueId y = product(x, "per_layer_model_proj.weight", all, h_.hidden, "", Bias::kNone,
                             graph::site_id(h_.n_layers, graph::SiteKind::kLayerInputs));
  y = scaled(y, 1.0F / std::sqrt(static_cast<float>(h_.hidden)));
  const std::vector<float> weight = weights_.vector("per_layer_proj_norm.weight", size);
  std::vector<float> of_all;
  for (int32_t i = 0; i < h_.n_layers; ++i) {
    of_all.insert(of_all.end(), weight.begin(), weight.end());
  }
  y = graph_.rms_norm_in_groups(y, of_all, h_.norm_eps, h_.n_layers);
  return scaled(graph_.add(y, own), 1.0F / std::sqrt(2.0F));
}

graph::ValueId DecoderBuilder::add_layer_input(graph::ValueId x, graph::ValueId inputs,
                                               engine::Act act) {
  const int64_t size = h_.layer_input;
  const graph::ValueId gate = bare(x, "inp_gate", size, h_.hidden, graph::SiteKind::kInputGate);
  const graph::ValueId gated = graph_.apply(
      engine::Op::kGated, {gate, graph_.slice(inputs, size * layer_, size)}, {.kind = act});
  return graph_.add(
      x, norm(bare(gated, "proj", h_.hidden, size, graph::SiteKind::kInputProj), "post_norm"));
}

graph::ValueId DecoderBuilder::scale_layer(graph::ValueId x) {
  const std::vector<float> scale =
      weights_.optional_vector(name("layer_output_scale", ".weight"), 1);
  return scale.empty() ? x : scaled(x, scale[0]);
}

DecoderBuilder::Inputs DecoderBuilder::inputs(graph::ValueId x, Bias bias, AttentionGate gate,
                                              bool keys_as_values) {
  if (spec().use == graph::CacheUse::kShared) {
    // Files may have what nobody reads.
    for (const char* part : {"attn_k", "attn_v", "attn_k_norm"}) {
      weights_.ignore(name(part, ".weight"));
    }
    return {linear(x, "attn_q", q_rows(), graph::SiteKind::kQ, bias), {}, {}};
  }
  if (keys_as_values && !has("attn_v") && !has("attn_qkv")) {
    const graph::ValueId q = linear(x, "attn_q", q_rows(), graph::SiteKind::kQ, bias);
    const graph::ValueId k = linear(x, "attn_k", k_rows(), graph::SiteKind::kK, bias);
    return {q, k, k};
  }
  if (gate == AttentionGate::kInQ) {
    return {half_of_q(x, 0, graph::SiteKind::kQ, bias),
            linear(x, "attn_k", k_rows(), graph::SiteKind::kK, bias),
            linear(x, "attn_v", v_rows(), graph::SiteKind::kV, bias)};
  }
  if (!weights_.has(name("attn_qkv", ".weight"))) {
    return {linear(x, "attn_q", q_rows(), graph::SiteKind::kQ, bias),
            linear(x, "attn_k", k_rows(), graph::SiteKind::kK, bias),
            linear(x, "attn_v", v_rows(), graph::SiteKind::kV, bias)};
  }
  const int64_t q = q_rows();
  const int64_t k = k_rows();
  const int64_t v = v_rows();
  return {piece(x, "attn_qkv", q + k + v, 0, q, graph::SiteKind::kQ, bias),
          piece(x, "attn_qkv", q + k + v, q, k, graph::SiteKind::kK, bias),
          piece(x, "attn_qkv", q + k + v, q + k, v, graph::SiteKind::kV, bias)};
}

graph::ValueId DecoderBuilder::linear(graph::ValueId x, const char* part, int64_t rows,
                                      graph::SiteKind kind, Bias bias) {
  int64_t cols = h_.hidden;
  if (kind == graph::SiteKind::kAttnOut) cols = int64_t{spec().n_heads} * spec().v_dim;
  if (kind == graph::SiteKind::kDown) cols = layer().feed_forward;
  return linear(x, part, rows, cols, kind, bias);
}

graph::ValueId DecoderBuilder::linear(graph::ValueId x, const char* part, int64_t rows,
                                      int64_t cols, graph::SiteKind kind, Bias bias) {
  return product(x, name(part, ".weight"), rows, cols, name(part, ".bias"), bias,
                 graph::site_id(layer_, kind));
}

std::vector<float> DecoderBuilder::query_factors() const {
  // For contexts beyond the trained one, too, which callers may ask for.
  constexpr int32_t kMaxFactors = 1 << 16;
  const int32_t n = std::min(h_.context_length / layer().temperature_every, kMaxFactors / 16) * 16;
  std::vector<float> factors;
  for (int32_t i = 0; i <= n; ++i) {
    factors.push_back(static_cast<float>(1.0 + static_cast<double>(layer().query_temperature) *
                                                   std::log(1.0 + i)));
  }
  return factors;
}

graph::ValueId DecoderBuilder::attend(graph::ValueId q, graph::ValueId k, graph::ValueId v,
                                      HeadNorms norms, bool sinks) {
  std::vector<float> q_norm;
  std::vector<float> k_norm;
  if (norms == HeadNorms::kEachHead || norms == HeadNorms::kRotated) {
    q_norm = weights_.vector(name("attn_q_norm", ".weight"), spec().k_dim);
    if (k.valid()) k_norm = weights_.vector(name("attn_k_norm", ".weight"), spec().k_dim);
  }
  if (norms == HeadNorms::kMayBeEach) {
    q_norm = weights_.optional_vector(name("attn_q_norm", ".weight"), spec().k_dim);
    k_norm = weights_.optional_vector(name("attn_k_norm", ".weight"), spec().k_dim);
  }
  if (norms == HeadNorms::kAllHeads) {
    q = norm_of(q, name("attn_q_norm", ""), q_rows());
    if (k.valid()) k = norm_of(k, name("attn_k_norm", ""), k_rows());
  }
  if (norms == HeadNorms::kOwnOfEach) {
    q = norm_of_each(q, "attn_q_norm", spec().n_heads);
    if (k.valid()) k = norm_of_each(k, "attn_k_norm", spec().n_kv_heads);
  }
  graph::AttentionSpec attention = spec();
  attention.rope = rope_table();
  attention.norm_last = norms == HeadNorms::kRotated;
  if (layer().query_temperature > 0.0F)
    q = graph_.position_scale(q, query_factors(), layer().temperature_every);
  q = graph_.rope_append(q, k, v, layer_, attention, q_norm, k_norm, h_.norm_eps);
  std::vector<float> of_heads;
  if (sinks) of_heads = weights_.vector(name("attn_sinks", ".weight"), spec().n_heads);
  return graph_.attention(q, layer_, of_heads);
}

graph::ValueId DecoderBuilder::gated_attention(graph::ValueId attended, graph::ValueId x,
                                               AttentionGate gate, engine::Act act, Bias bias) {
  if (gate == AttentionGate::kNone) return attended;
  if (gate == AttentionGate::kMayBeOwn && !has("attn_gate")) return attended;
  constexpr graph::SiteKind kSite = graph::SiteKind::kAttnGate;
  const int64_t heads = spec().n_heads;
  const bool narrow = weights_.outputs(name("attn_gate", ".weight")) == heads;
  const int64_t rows = narrow ? heads : heads * spec().v_dim;
  const graph::ValueId y = gate == AttentionGate::kInQ ? half_of_q(x, spec().k_dim, kSite, bias)
                                                       : linear(x, "attn_gate", rows, kSite, bias);
  return graph_.apply(engine::Op::kGated, {y, attended}, {.kind = act});
}

graph::ValueId DecoderBuilder::gated_feed_forward(graph::ValueId x, engine::Act gate_act,
                                                  Bias bias) {
  const int32_t width = layer().feed_forward;
  const graph::ValueId gate = linear(x, "ffn_gate", width, graph::SiteKind::kGate, bias);
  const graph::ValueId up = linear(x, "ffn_up", width, graph::SiteKind::kUp, bias);
  const graph::ValueId gated =
      graph_.apply(engine::Op::kGated, {gate, up}, gate_activation(gate_act, layer().swiglu_limit));
  return linear(gated, "ffn_down", h_.hidden, graph::SiteKind::kDown, bias);
}

graph::ValueId DecoderBuilder::fused_feed_forward(graph::ValueId x, engine::Act gate_act,
                                                  Bias bias) {
  const int32_t width = layer().feed_forward;
  const graph::ValueId gate =
      piece(x, "ffn_up", 2 * int64_t{width}, 0, width, graph::SiteKind::kGate, bias);
  const graph::ValueId up =
      piece(x, "ffn_up", 2 * int64_t{width}, width, width, graph::SiteKind::kUp, bias);
  const graph::ValueId gated =
      graph_.apply(engine::Op::kGated, {gate, up}, gate_activation(gate_act, layer().swiglu_limit));
  return linear(gated, "ffn_down", h_.hidden, graph::SiteKind::kDown, bias);
}

graph::ValueId DecoderBuilder::plain_feed_forward(graph::ValueId x, engine::Act act, Bias bias) {
  const graph::ValueId up = linear(x, "ffn_up", layer().feed_forward, graph::SiteKind::kUp, bias);
  const graph::ValueId active = graph_.apply(engine::Op::kActivate, {up}, activation(act));
  return linear(active, "ffn_down", h_.hidden, graph::SiteKind::kDown, bias);
}

graph::ValueId DecoderBuilder::experts(graph::ValueId x, engine::Act gate, bool gated,
                                       SharedExpert shared) {
  const graph::ValueId routed = routed_experts(x, x, gate, gated);
  if (layer().experts.shared == 0) return routed;
  const graph::ValueId both =
      graph_.add(routed, shared_expert(x, gate, gated, shared == SharedExpert::kGated));
  return shared == SharedExpert::kAveraged ? scaled(both, 0.5F) : both;
}

graph::ValueId DecoderBuilder::experts_beside(graph::ValueId dense, graph::ValueId x,
                                              engine::Act gate) {
  std::vector<float> scale = weights_.vector(name("ffn_gate_inp", ".scale"), h_.hidden);
  for (float& each : scale) each /= std::sqrt(static_cast<float>(h_.hidden));
  if (scale.empty()) return {};  // an error, which is kept
  const graph::ValueId choosing = graph_.rms_norm(x, scale, h_.norm_eps);
  const graph::ValueId routed = routed_experts(norm(x, "pre_ffw_norm_2"), choosing, gate, true);
  return graph_.add(norm(dense, "post_ffw_norm_1"), norm(routed, "post_ffw_norm_2"));
}

graph::ValueId DecoderBuilder::routed_experts(graph::ValueId x, graph::ValueId choosing,
                                              engine::Act gate_act, bool gated) {
  const engine::Routing& routing = layer().experts.routing;
  const int64_t n = routing.n_experts;
  const int64_t width = layer().experts.feed_forward;
  const int64_t latent = layer().experts.latent;
  const int64_t inputs = latent > 0 ? latent : h_.hidden;
  const graph::ValueId logits = product(choosing, name("ffn_gate_inp", ".weight"), n, h_.hidden,
                                        name("ffn_gate_inp", ".bias"), Bias::kOptional,
                                        graph::site_id(layer_, graph::SiteKind::kRouter));
  const graph::ValueId routes = graph_.route(
      logits, routing, weights_.optional_finite_vector(name("exp_probs_b", ".bias"), n));
  if (latent > 0) {
    x = bare(x, "ffn_latent_down", latent, h_.hidden, graph::SiteKind::kLatentDown);
  }
  const auto scales = [&](const char* part) {
    weights_.ignore(name(part, ".input_scale"));
    return weights_.optional_vector(name(part, ".scale"), n);
  };
  using Kind = graph::SiteKind;
  const auto stack = [&](graph::ValueId rows, const char* part, int64_t outputs, int64_t cols,
                         Kind kind) {
    return graph_.experts(rows, routes, weights_.stack(name(part, ".weight"), n, outputs, cols),
                          weights_.optional_vector(name(part, ".bias"), outputs, n), scales(part),
                          graph::site_id(layer_, kind));
  };
  const engine::Activation act = gate_activation(gate_act, layer().experts.swiglu_limit);
  graph::ValueId inner;
  if (!gated) {
    inner = graph_.apply(engine::Op::kActivate,
                         {stack(x, "ffn_up_exps", width, inputs, Kind::kExpertUps)},
                         activation(gate_act));
  } else if (weights_.has(name("ffn_gate_up_exps", ".weight"))) {
    const std::vector<float> both = scales("ffn_up_exps");
    const auto half = [&](int64_t first, Kind kind) {
      return graph_.experts(x, routes,
                            weights_.stack_rows(name("ffn_gate_up_exps", ".weight"), n, 2 * width,
                                                first, width, inputs),
                            {}, both, graph::site_id(layer_, kind));
    };
    const graph::ValueId gate = half(0, Kind::kExpertGates);
    inner = graph_.apply(engine::Op::kGated, {gate, half(width, Kind::kExpertUps)}, act);
  } else {
    const graph::ValueId gate = stack(x, "ffn_gate_exps", width, inputs, Kind::kExpertGates);
    const graph::ValueId up = stack(x, "ffn_up_exps", width, inputs, Kind::kExpertUps);
    inner = graph_.apply(engine::Op::kGated, {gate, up}, act);
  }
  const graph::ValueId y =
      graph_.combine(stack(inner, "ffn_down_exps", inputs, width, Kind::kExpertDowns), routes);
  if (latent == 0) return y;
  return bare(y, "ffn_latent_up", h_.hidden, latent, graph::SiteKind::kLatentUp);
}

graph::ValueId DecoderBuilder::shared_expert(graph::ValueId x, engine::Act gate_act, bool gated,
                                             bool weighted) {
  const int64_t width = layer().experts.shared;
  const auto up = [&] {
    return bare(x, "ffn_up_shexp", width, h_.hidden, graph::SiteKind::kSharedUp);
  };
  const engine::Activation act = gate_activation(gate_act, layer().swiglu_limit);
  graph::ValueId inner;
  if (gated) {
    const graph::ValueId gate =
        bare(x, "ffn_gate_shexp", width, h_.hidden, graph::SiteKind::kSharedGate);
    inner = graph_.apply(engine::Op::kGated, {gate, up()}, act);
  } else {
    inner = graph_.apply(engine::Op::kActivate, {up()}, activation(gate_act));
  }
  const graph::ValueId y =
      bare(inner, "ffn_down_shexp", h_.hidden, width, graph::SiteKind::kSharedDown);
  if (!weighted) return y;
  // A router of one expert gives its sigmoid.
  const graph::ValueId weight =
      bare(x, "ffn_gate_inp_shexp", 1, h_.hidden, graph::SiteKind::kSharedRouter);
  return graph_.combine(
      y, graph_.route(weight, {.gating = engine::Gating::kSigmoid, .n_experts = 1, .n_used = 1}));
}

void DecoderBuilder::head(graph::ValueId x, Bias bias, const char* norm) {
  graph_.begin_block(h_.n_layers);
  x = norm_of(x, norm, h_.hidden);
  graph_.last_hidden(x);
  logits(x, bias, "", graph::site_id(h_.n_layers, graph::SiteKind::kLogits));
}

void DecoderBuilder::logits(graph::ValueId x, Bias bias, const std::string& own, int32_t site) {
  x = graph_.select_rows(x);
  const bool is_own = !own.empty() && weights_.has(own);
  const bool tied = !is_own && !weights_.has("output.weight");
  x = product(x,
              is_own ? own
              : tied ? "token_embd.weight"
                     : "output.weight",
              h_.vocab_size, h_.hidden, "output.bias", is_own ? Bias::kNone : bias, site);
  engine::Activation end = {.alpha = h_.logit_factor, .limit = h_.logit_cap};
  if (h_.logit_factor != 1.0F) end.kind = engine::Act::kScaled;
  if (h_.logit_cap > 0.0F) end.kind = engine::Act::kSoftCapped;
  if (end.kind != engine::Act::kNone) x = graph_.apply(engine::Op::kActivate, {x}, end);
  graph_.logits(x);
}

}  // namespace gen::model::arch

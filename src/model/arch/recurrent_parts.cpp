// SPDX-License-Identifier: Apache-2.0
// The recurrent parts of a decoder. See decoder_builder.h.
#include <vector>

#include "model/arch/decoder_builder.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

ValueId DecoderBuilder::convolved(ValueId x, int64_t channels) {
  return graph_.causal_conv(
      x, weights_.table(name("ssm_conv1d", ".weight"), channels, layer().recurrent.taps),
      weights_.optional_vector(name("ssm_conv1d", ".bias"), channels), engine::Act::kSilu);
}

ValueId DecoderBuilder::delta_net(ValueId x) {
  const RecurrentParams& of = layer().recurrent;
  engine::DeltaShape shape;
  shape.k_heads = of.groups;
  shape.v_heads = of.heads;
  shape.k_dim = of.state;
  shape.v_dim = of.inner / of.heads;
  shape.eps = h_.norm_eps;
  shape.grouped = weights_.has(name("ssm_ba", ".weight"));
  const int64_t channels = 2 * shape.k_cols() + shape.v_cols();
  const ValueId in = linear(x, "attn_qkv", channels, SiteKind::kMixerIn, Bias::kNone);
  const ValueId gate = linear(x, "attn_gate", shape.v_cols(), SiteKind::kAttnGate, Bias::kNone);
  ValueId alpha;
  ValueId beta;
  if (shape.grouped) {
    const int64_t each = shape.v_heads / shape.k_heads;
    const auto half = [&](int64_t first, SiteKind kind) {
      return graph_.linear(x,
                           weights_.rows_of_each(name("ssm_ba", ".weight"), shape.k_heads, 2 * each,
                                                 first, each, h_.hidden),
                           {}, graph::site_id(layer_, kind));
    };
    beta = half(0, SiteKind::kBeta);
    alpha = half(each, SiteKind::kAlpha);
  } else {
    alpha = linear(x, "ssm_alpha", shape.v_heads, SiteKind::kAlpha, Bias::kNone);
    beta = linear(x, "ssm_beta", shape.v_heads, SiteKind::kBeta, Bias::kNone);
  }
  const ValueId y = graph_.delta_net(convolved(in, channels), alpha, beta,
                                     weights_.vector(name("ssm_dt", ".bias"), of.heads),
                                     weights_.vector(name("ssm_a", ""), of.heads), shape);
  const std::vector<float> norm = weights_.vector(name("ssm_norm", ".weight"), shape.v_dim);
  std::vector<float> of_all;
  for (int32_t i = 0; i < of.heads; ++i) of_all.insert(of_all.end(), norm.begin(), norm.end());
  const ValueId normed = graph_.rms_norm_in_groups(y, of_all, h_.norm_eps, of.heads);
  const ValueId gated =
      graph_.apply(engine::Op::kGated, {gate, normed}, {.kind = engine::Act::kSilu});
  return linear(gated, "ssm_out", h_.hidden, of.inner, SiteKind::kMixerOut, Bias::kNone);
}

ValueId DecoderBuilder::short_convolution(ValueId x, Bias bias) {
  const int64_t cols = h_.hidden;
  const ValueId all = linear(x, "shortconv.in_proj", 3 * cols, SiteKind::kMixerIn, bias);
  const auto third = [&](int64_t i) { return graph_.slice(all, i * cols, cols); };
  const ValueId b = third(0);
  const ValueId c = third(1);
  const ValueId in = graph_.apply(engine::Op::kGated, {b, third(2)});
  const ValueId convolved = graph_.causal_conv(
      in, weights_.table(name("shortconv.conv", ".weight"), cols, layer().recurrent.taps), {},
      engine::Act::kNone);
  const ValueId gated = graph_.apply(engine::Op::kGated, {c, convolved});
  return linear(gated, "shortconv.out_proj", cols, cols, SiteKind::kMixerOut, bias);
}

ValueId DecoderBuilder::mamba(ValueId x, bool norms) {
  const RecurrentParams& of = layer().recurrent;
  const int64_t inner = of.inner;
  const ValueId in = linear(x, "ssm_in", 2 * inner, h_.hidden, SiteKind::kMixerIn, Bias::kNone);
  const ValueId z = graph_.slice(in, inner, inner);
  const ValueId u = convolved(graph_.slice(in, 0, inner), inner);
  const ValueId parts =
      bare(u, "ssm_x", of.heads + 2 * int64_t{of.state}, inner, SiteKind::kMixerParts);
  const auto part = [&](const char* norm, int64_t first, int64_t cols) {
    const ValueId y = graph_.slice(parts, first, cols);
    if (!norms && !of.normalised) return y;
    std::vector<float> weight;
    if (norms) weight = weights_.vector(name(norm, ".weight"), cols);
    return graph_.rms_norm_in_groups(y, weight, h_.norm_eps, 1);
  };
  const ValueId dt =
      bare(part("ssm_dt_norm", 0, of.heads), "ssm_dt", inner, of.heads, SiteKind::kMixerStep);
  const ValueId b = part("ssm_b_norm", of.heads, of.state);
  const ValueId c = part("ssm_c_norm", int64_t{of.heads} + of.state, of.state);
  const std::vector<float> bias = weights_.vector(name("ssm_dt", ".bias"), inner);
  const std::vector<float> a = weights_.table(name("ssm_a", ""), inner, of.state);
  const std::vector<float> d = weights_.vector(name("ssm_d", ""), inner);
  const ValueId y = graph_.selective_scan(u, dt, b, c, {1, bias, a, d});
  const ValueId gated = graph_.apply(engine::Op::kGated, {z, y}, {.kind = engine::Act::kSilu});
  return linear(gated, "ssm_out", h_.hidden, inner, SiteKind::kMixerOut, Bias::kNone);
}

ValueId DecoderBuilder::mamba2(ValueId x) {
  const RecurrentParams& of = layer().recurrent;
  const int64_t inner = of.inner;
  const int64_t shared = int64_t{of.groups} * of.state;  // of b, and of c
  const int64_t channels = inner + 2 * shared;
  const ValueId in =
      linear(x, "ssm_in", inner + channels + of.heads, h_.hidden, SiteKind::kMixerIn, Bias::kNone);
  const ValueId z = graph_.slice(in, 0, inner);
  const ValueId mixed = convolved(graph_.slice(in, inner, channels), channels);
  const ValueId u = graph_.slice(mixed, 0, inner);
  const ValueId b = graph_.slice(mixed, inner, shared);
  const ValueId c = graph_.slice(mixed, inner + shared, shared);
  const ValueId dt = graph_.slice(in, inner + channels, of.heads);
  const std::vector<float> bias = weights_.vector(name("ssm_dt", ".bias"), of.heads);
  const std::vector<float> a = weights_.table(name("ssm_a", ""), of.heads, 1);
  const std::vector<float> d = weights_.table(name("ssm_d", ""), of.heads, 1);
  ValueId y = graph_.selective_scan(u, dt, b, c, {of.groups, bias, a, d});
  y = graph_.apply(engine::Op::kGated, {z, y}, {.kind = engine::Act::kSilu});
  if (has("ssm_norm")) {
    const std::vector<float> norm =
        weights_.table(name("ssm_norm", ".weight"), of.groups, inner / of.groups);
    y = graph_.rms_norm_in_groups(y, norm, h_.norm_eps, of.groups);
  }
  return linear(y, "ssm_out", h_.hidden, inner, SiteKind::kMixerOut, Bias::kNone);
}

}  // namespace gen::model::arch

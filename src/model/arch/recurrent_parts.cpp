// SPDX-License-Identifier: Apache-2.0
// The recurrent parts of a decoder. See decoder_builder.h.
#include <vector>

#include "model/arch/decoder_builder.h"

namespace gen::model::arch {

using graph::SiteKind;
using graph::ValueId;

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
    const auto half = [&](int64_t first) {
      return graph_.linear(x,
                           weights_.rows_of_each(name("ssm_ba", ".weight"), shape.k_heads, 2 * each,
                                                 first, each, h_.hidden),
                           {}, kNoSite);
    };
    beta = half(0);
    alpha = half(each);
  } else {
    alpha = linear(x, "ssm_alpha", shape.v_heads, SiteKind::kAlpha, Bias::kNone);
    beta = linear(x, "ssm_beta", shape.v_heads, SiteKind::kBeta, Bias::kNone);
  }
  const ValueId convolved = graph_.causal_conv(
      in, weights_.table(name("ssm_conv1d", ".weight"), channels, of.taps), {}, engine::Act::kSilu);
  const ValueId y =
      graph_.delta_net(convolved, alpha, beta, weights_.vector(name("ssm_dt", ".bias"), of.heads),
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

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// What tiny models compute, in double precision and by their definition alone.
#include <algorithm>
#include <cmath>
#include <utility>

#include "support/reference_act.h"
#include "support/tiny_model.h"
#include "support/tiny_model_parts.h"

namespace gen::test {

using model::arch::AttentionGate;
using model::arch::FeedForward;
using model::arch::HeadNorms;
using model::arch::Parallel;
using model::arch::Recurrence;
using model::arch::Recurs;
using model::arch::SharedExpert;

namespace {

/// What a gate does where its layer has a limit.
engine::Activation cut(const engine::Activation& act, const std::vector<float>& limits,
                       int32_t index) {
  const size_t at = std::min(static_cast<size_t>(index) + 1, limits.size());
  const float limit = limits.empty() ? 0.0F : limits[at - 1];
  if (limit == 0.0F) return act;
  return {.kind = engine::Act::kCutSwiglu, .limit = limit};
}

}  // namespace

void TinyModel::note(const std::string& tensor, size_t e, size_t count, const Row& x) const {
  Inputs& inputs = inputs_[tensor];
  inputs.squares.resize(count * x.size());
  inputs.rows.resize(count);
  for (size_t c = 0; c < x.size(); ++c) inputs.squares[e * x.size() + c] += x[c] * x[c];
  ++inputs.rows[e];
}

/// "<name>.weight" x + "<name>.bias"
TinyModel::Row TinyModel::product(const std::string& name, const Row& x) const {
  const Row& weight = *find(name + ".weight");
  const Row* bias = find(name + ".bias");
  note(name + ".weight", 0, 1, x);
  Row y(weight.size() / x.size());
  for (size_t n = 0; n < y.size(); ++n) {
    for (size_t c = 0; c < x.size(); ++c) y[n] += weight[n * x.size() + c] * x[c];
    if (bias != nullptr) y[n] += (*bias)[n];
  }
  return y;
}

TinyModel::Row TinyModel::part(const std::string& name, const Row& x, int32_t first,
                               int32_t n) const {
  const Row whole = product(name, x);
  return {whole.begin() + first, whole.begin() + first + n};
}

TinyModel::Row TinyModel::half_of_q(int32_t index, const Row& x, bool gate) const {
  const Row both = product(in_layer(index, "attn_q"), x);
  const auto size = static_cast<size_t>(spec_.head_dim);
  Row half;
  for (size_t i = 0; i < both.size(); ++i) {
    if ((i / size % 2 == 1) == gate) half.push_back(both[i]);
  }
  return half;
}

TinyModel::Row TinyModel::input(int32_t index, const char* name, const Row& x) const {
  if (style_.attention_gate == AttentionGate::kInQ && name == std::string("attn_q")) {
    return half_of_q(index, x, false);
  }
  if (!spec_.fused_qkv) return product(in_layer(index, name), x);
  const int32_t q = spec_.heads * head_dim(index);
  const int32_t kv = kv_heads(index) * head_dim(index);
  const std::string qkv = in_layer(index, "attn_qkv");
  switch (name[5]) {
    case 'q':
      return part(qkv, x, 0, q);
    case 'k':
      return part(qkv, x, q, kv);
    default:
      return part(qkv, x, q + kv, kv);
  }
}

TinyModel::Row TinyModel::norm(const std::string& name, const Row& x, double eps) const {
  Row y = x;
  if (is_layer(style_)) {
    double mean = 0.0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (double& value : y) value -= mean;
  }
  const Row* weight = find(name + ".weight");
  const Row* bias = find(name + ".bias");
  double squares = 0.0;
  for (const double value : y) squares += value * value;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] *= scale;
    if (weight != nullptr) y[i] *= (*weight)[i];
    if (bias != nullptr) y[i] += (*bias)[i];
  }
  return y;
}

int32_t TinyModel::kv_heads(int32_t index) const {
  if (style_.recurrence != Recurrence::kNone && style_.recurs != Recurs::kBeside &&
      (has_recurrence(index) || has_feed_forward_alone(index))) {
    return 0;
  }
  return spec_.layer_kv_heads.empty() ? spec_.kv_heads
                                      : static_cast<int32_t>(of_layer(spec_.layer_kv_heads, index));
}

int32_t TinyModel::feed_forward(int32_t index) const {
  if (style_.recurs == Recurs::kOnly) return 0;
  if (style_.recurs == Recurs::kAlone && !has_feed_forward_alone(index)) return 0;
  return spec_.layer_feed_forward.empty()
             ? spec_.feed_forward
             : static_cast<int32_t>(of_layer(spec_.layer_feed_forward, index));
}

int32_t TinyModel::head_dim(int32_t index) const {
  return has_window(index) && spec_.local_head_dim > 0 ? spec_.local_head_dim : spec_.head_dim;
}

int32_t TinyModel::shared_from(int32_t index) const {
  const int32_t first = spec_.layers - spec_.shared_layers;
  if (index >= first && index < spec_.layers) {
    int32_t from = first - 1;
    while (has_window(from) != has_window(index)) --from;
    return from;
  }
  const bool other = !spec_.shares.empty() && of_layer(spec_.shares, index) != 0;
  return other ? static_cast<int32_t>(of_layer(spec_.shares, index)) - 1 : index;
}

/// Values of a row: normalised, and of keys, where the family has it so.
TinyModel::Row TinyModel::values(int32_t index, const Row& x) const {
  const bool keys = spec_.keys_as_values && !has_window(index);
  Row v = input(index, keys ? "attn_k" : "attn_v", x);
  const auto dim = static_cast<size_t>(head_dim(index));
  for (size_t first = 0; style_.value_norm && first < v.size(); first += dim) {
    const auto begin = v.begin() + static_cast<std::ptrdiff_t>(first);
    const Row head = norm("", Row(begin, begin + static_cast<std::ptrdiff_t>(dim)));
    std::copy(head.begin(), head.end(), begin);
  }
  return v;
}

/// `embeddings`: what went into the first layer.
void TinyModel::add_layer_input(int32_t index, const std::vector<int32_t>& tokens,
                                const std::vector<Row>& embeddings,
                                std::vector<Row>* hidden) const {
  const auto size = static_cast<size_t>(spec_.layer_input);
  const size_t first = size * static_cast<size_t>(index);
  const Row& table = *find("per_layer_token_embd.weight");
  const size_t all = size * static_cast<size_t>(spec_.layers);
  for (size_t t = 0; t < hidden->size(); ++t) {
    const Row projected = product("per_layer_model_proj", embeddings[t]);
    Row own(projected.begin() + static_cast<std::ptrdiff_t>(first),
            projected.begin() + static_cast<std::ptrdiff_t>(first + size));
    for (double& value : own) value /= std::sqrt(static_cast<double>(spec_.hidden));
    own = norm("per_layer_proj_norm", own);
    const size_t row = static_cast<size_t>(tokens[t]) * all + first;
    for (size_t i = 0; i < size; ++i) {
      own[i] += table[row + i] * std::sqrt(static_cast<double>(size));
      own[i] /= std::sqrt(2.0);
    }
    const Row gate = product(in_layer(index, "inp_gate"), (*hidden)[t]);
    for (size_t i = 0; i < size; ++i) {
      own[i] = reference_gated({.kind = style_.activation}, gate[i], own[i]);
    }
    const Row made = norm(in_layer(index, "post_norm"), product(in_layer(index, "proj"), own));
    for (size_t i = 0; i < made.size(); ++i) (*hidden)[t][i] += made[i];
  }
}

bool TinyModel::recurs(int32_t index) const {
  return !spec_.recurrent.empty() && of_layer(spec_.recurrent, index) != 0;
}

/// Of blocks that are parallel only in some models every other one is.
bool TinyModel::one_norm(int32_t index) const {
  return style_.parallel == Parallel::kOneNorm ||
         (style_.parallel == Parallel::kWithoutNorm && index % 2 == 1);
}

bool TinyModel::is_local(int32_t index) const {
  if (!spec_.local.empty()) return of_layer(spec_.local, index) != 0;
  const int32_t of_each = style_.global_first ? index : index + 1;
  return style_.global_every == 0 || of_each % style_.global_every != 0;
}

engine::Activation TinyModel::activation(int32_t index) const {
  engine::Activation act = {style_.activation, style_.activation_alpha, style_.activation_limit};
  if (act.kind != engine::Act::kXielu) return act;
  const XieluKeys keys = xielu(index);
  const auto softplus = [](float x) { return std::log1p(std::exp(static_cast<double>(x))); };
  act.alpha = static_cast<float>(softplus(keys.alpha_p));
  act.gamma = static_cast<float>(static_cast<double>(keys.beta) + softplus(keys.alpha_n));
  act.beta = keys.beta;
  act.limit = keys.eps;
  return act;
}

TinyModel::Row TinyModel::norm_before(int32_t index, const char* name, const Row& x) const {
  return style_.norm_before ? norm(in_layer(index, name), x) : x;
}

TinyModel::Row TinyModel::norm_after(int32_t index, const char* name, const Row& x) const {
  if (!style_.norm_after) return x;
  const float eps = style_.after_eps;
  return eps == 0.0F ? norm(in_layer(index, name), x)
                     : norm(in_layer(index, name), x, static_cast<double>(eps));
}

void TinyModel::add(Row* x, const Row& made) const {
  const double factor =
      spec_.residual_factor != 0.0F ? static_cast<double>(spec_.residual_factor) : 1.0;
  for (size_t i = 0; i < x->size(); ++i) (*x)[i] += factor * made[i];
}

void TinyModel::rotate(double* head, int32_t index, int32_t position) const {
  const int32_t every = style_.unrotated_every;
  const bool local = is_local(index);
  if (style_.rope.kind == engine::RopeKind::kNone) return;
  if (spec_.unrotated || (every > 0 && (index + 1) % every == 0)) return;
  const bool dense = style_.rotate_dense && !has_experts(index);
  if (style_.rotate_local && !(local && spec_.window > 0) && !dense) return;
  auto base = static_cast<double>(spec_.rope_base);
  if (local && spec_.window > 0 && style_.local_base > 0.0) base = style_.local_base;
  if (local && spec_.local_rope_base != 0.0F) base = static_cast<double>(spec_.local_rope_base);
  // The test's local layers without a window are as all others.
  const bool scaled = !(style_.local_unscaled && local && spec_.window > 0);
  const bool part = style_.global_half && !(local && spec_.window > 0);
  const int32_t dims = part ? head_dim(index) / 2 : head_dim(index);
  const int32_t half = dims / 2;
  const bool adjacent = style_.rope.kind == engine::RopeKind::kAdjacent;
  for (int32_t i = 0; i < half; ++i) {
    double angle = position * std::pow(base, -2.0 * i / dims);
    const bool longer = spec_.original_context > 0 && spec_.context > spec_.original_context;
    const std::vector<float>& factors = !spec_.freq_factors.empty() ? spec_.freq_factors
                                        : longer                    ? spec_.long_factors
                                                                    : spec_.short_factors;
    if (scaled && !factors.empty()) angle /= static_cast<double>(factors[static_cast<size_t>(i)]);
    if (scaled) angle /= static_cast<double>(spec_.linear_factor);
    double& a = head[adjacent ? 2 * i : i];
    double& b = head[adjacent ? 2 * i + 1 : i + half];
    const double x = a;
    const double y = b;
    a = x * std::cos(angle) - y * std::sin(angle);
    b = x * std::sin(angle) + y * std::cos(angle);
  }
}

/// Normalises and rotates a row of queries or keys, head by head.
void TinyModel::turn_heads(int32_t index, const char* norm_name, int32_t position,
                           Row* heads) const {
  const auto dim = static_cast<size_t>(head_dim(index));
  if (style_.head_norms == HeadNorms::kAllHeads) *heads = norm(in_layer(index, norm_name), *heads);
  for (size_t first = 0; first < heads->size(); first += dim) {
    Row head(heads->begin() + static_cast<std::ptrdiff_t>(first),
             heads->begin() + static_cast<std::ptrdiff_t>(first + dim));
    const bool may_be = style_.head_norms == HeadNorms::kMayBeEach && spec_.biases;
    if (may_be || style_.head_norms == HeadNorms::kEachHead)
      head = norm(in_layer(index, norm_name), head);
    if (const Row* own = find(in_layer(index, norm_name) + ".weight");
        style_.head_norms == HeadNorms::kOwnOfEach && own != nullptr) {
      head = norm("", head);
      for (size_t i = 0; i < dim; ++i) head[i] *= (*own)[first + i];
    }
    rotate(head.data(), index, position);
    if (style_.head_norms == HeadNorms::kRotated) head = norm(in_layer(index, norm_name), head);
    std::copy(head.begin(), head.end(), heads->begin() + static_cast<std::ptrdiff_t>(first));
  }
}

void TinyModel::attend(int32_t index, std::vector<Kept>* kept, std::vector<Row>* hidden) const {
  const auto dim = static_cast<size_t>(head_dim(index));
  std::vector<Row> queries;
  Kept& own = (*kept)[static_cast<size_t>(index)];
  for (size_t t = 0; t < hidden->size(); ++t) {
    const Row x = norm_before(index, "attn_norm", (*hidden)[t]);
    const auto position = static_cast<int32_t>(t);
    queries.push_back(input(index, "attn_q", x));
    turn_heads(index, "attn_q_norm", position, &queries.back());
    const int32_t every = spec_.original_context > 0 ? spec_.original_context : spec_.context;
    for (double& q : queries.back()) {
      q *= 1.0 + static_cast<double>(spec_.query_temperature) * std::log(1.0 + position / every);
    }
    if (shares(index)) continue;
    own.keys.push_back(input(index, "attn_k", x));
    own.values.push_back(values(index, x));
    turn_heads(index, "attn_k_norm", position, &own.keys.back());
  }
  if (shares(index)) own = (*kept)[static_cast<size_t>(shared_from(index))];
  double scale = spec_.attention_scale != 0.0F ? static_cast<double>(spec_.attention_scale)
                                               : 1.0 / std::sqrt(static_cast<double>(dim));
  if (style_.undivided_scores && spec_.attention_scale == 0.0F) scale = 1.0;
  const auto cap = static_cast<double>(spec_.score_cap);
  const std::vector<Row> in = *hidden;
  for (size_t t = 0; t < hidden->size(); ++t) {
    Row attended(queries[t].size());
    for (size_t h = 0; h < static_cast<size_t>(spec_.heads); ++h) {
      const size_t g = h / static_cast<size_t>(spec_.heads / kv_heads(index));
      Row weights(t + 1);
      const Row* const sinks = find(in_layer(index, "attn_sinks.weight"));
      double total = sinks != nullptr ? std::exp((*sinks)[h]) : 0.0;
      for (size_t e = 0; e <= t; ++e) {
        const bool local = is_local(index);
        if (local && spec_.window > 0 && t - e >= static_cast<size_t>(spec_.window)) continue;
        const auto chunk = static_cast<size_t>(spec_.chunk);
        if (local && chunk > 0 && e / chunk != t / chunk) continue;
        double score = 0.0;
        for (size_t i = 0; i < dim; ++i) {
          score += queries[t][h * dim + i] * own.keys[e][g * dim + i];
        }
        score *= scale;
        if (cap > 0.0) score = cap * std::tanh(score / cap);
        weights[e] = std::exp(score);
        total += weights[e];
      }
      for (size_t i = 0; i < dim; ++i) {
        for (size_t e = 0; e <= t; ++e) {
          attended[h * dim + i] += weights[e] / total * own.values[e][g * dim + i];
        }
      }
    }
    if (style_.attention_gate != AttentionGate::kNone) {
      const Row x = norm_before(index, "attn_norm", in[t]);
      const Row gate = style_.attention_gate == AttentionGate::kInQ
                           ? half_of_q(index, x, true)
                           : product(in_layer(index, "attn_gate"), x);
      const size_t run = attended.size() / gate.size();
      for (size_t i = 0; i < attended.size(); ++i) {
        attended[i] *= reference_act({.kind = style_.gate_activation}, gate[i / run]);
      }
    }
    const Row out = product(in_layer(index, "attn_output"), attended);
    add(&(*hidden)[t], norm_after(index, "post_attention_norm", out));
  }
}

void TinyModel::recur(int32_t index, std::vector<Row>* hidden) const {
  Row h(kMixWidth, 0.0);
  for (Row& x : *hidden) {
    const Row y = norm(in_layer(index, "mix_norm"), x);
    const Row a = product(in_layer(index, "mix_a"), norm(in_layer(index, "mix_a_norm"), x));
    const Row b = product(in_layer(index, "mix_b"), y);
    const Row v = product(in_layer(index, "mix_v"), y);
    for (size_t i = 0; i < h.size(); ++i) h[i] = a[i] * h[i] + b[i] * v[i];
    const Row out = product(in_layer(index, "mix_out"), h);
    for (size_t i = 0; i < x.size(); ++i) x[i] += out[i];
  }
}

void TinyModel::mix(int32_t index, const std::vector<Row>& in, std::vector<Row>* hidden) const {
  for (size_t t = 0; t < hidden->size(); ++t) {
    Row& x = (*hidden)[t];
    const bool beside =
        one_norm(index) || (style_.parallel == Parallel::kTwoNorms && !spec_.sequential);
    const Row y =
        norm_before(index, one_norm(index) ? "attn_norm" : style_.ffn_norm, beside ? in[t] : x);
    const bool beside_experts = has_experts(index) && style_.experts.beside;
    if (has_experts(index) && !beside_experts) {
      add(&x, norm_after(index, "post_ffw_norm", experts(index, y, y)));
      continue;
    }
    const engine::Activation act = cut(activation(index), spec_.swiglu_limits, index);
    Row up = product(in_layer(index, "ffn_up"), y);
    if (style_.feed_forward == FeedForward::kPlain) {
      for (double& value : up) value = reference_act(act, value);
    } else {
      Row gate;
      if (style_.feed_forward == FeedForward::kFused) {
        const auto half = up.begin() + feed_forward(index);
        gate = Row(up.begin(), half);
        up = Row(half, up.end());
      } else {
        gate = product(in_layer(index, "ffn_gate"), y);
      }
      for (size_t i = 0; i < up.size(); ++i) up[i] = reference_gated(act, gate[i], up[i]);
    }
    Row down = product(in_layer(index, "ffn_down"), up);
    if (beside_experts) {
      // Not by norm(): the tensor is the weight of a norm and has another name.
      Row choosing = x;
      double squares = 0.0;
      for (const double value : x) squares += value * value;
      const double size = std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
      const Row& scale = *find(in_layer(index, "ffn_gate_inp.scale"));
      for (size_t i = 0; i < x.size(); ++i) {
        choosing[i] *= scale[i] / size / std::sqrt(static_cast<double>(x.size()));
      }
      down = norm(in_layer(index, "post_ffw_norm_1"), down);
      const Row routed = experts(index, norm(in_layer(index, "pre_ffw_norm_2"), x), choosing);
      const Row more = norm(in_layer(index, "post_ffw_norm_2"), routed);
      for (size_t i = 0; i < down.size(); ++i) down[i] += more[i];
    }
    add(&x, norm_after(index, "post_ffw_norm", down));
  }
}

TinyModel::Row TinyModel::stacked(const std::string& name, int32_t e, const Row& x,
                                  size_t outputs) const {
  const Row& weight = *find(name + ".weight");
  const Row* bias = find(name + ".bias");
  const bool both = name.ends_with("ffn_gate_up_exps");  // have the scale of up
  const Row* scale = find((both ? name.substr(0, name.size() - 12) + "up_exps" : name) + ".scale");
  note(name + ".weight", static_cast<size_t>(e), weight.size() / outputs / x.size(), x);
  Row y(outputs);
  for (size_t n = 0; n < outputs; ++n) {
    const size_t row = static_cast<size_t>(e) * outputs + n;
    for (size_t c = 0; c < x.size(); ++c) y[n] += weight[row * x.size() + c] * x[c];
    if (scale != nullptr) y[n] *= (*scale)[static_cast<size_t>(e)];
    if (bias != nullptr) y[n] += (*bias)[row];
  }
  return y;
}

TinyModel::Row TinyModel::experts(int32_t index, const Row& x, const Row& choosing) const {
  const auto n = static_cast<size_t>(spec_.experts);
  const Row logits = product(in_layer(index, "ffn_gate_inp"), choosing);
  const auto softmax = [](Row of) {
    double sum = 0.0;
    for (double& each : of) sum += each = std::exp(each);
    for (double& each : of) each /= sum;
    return of;
  };
  int32_t gating = spec_.gating;
  if (gating == 0) gating = 1 + static_cast<int32_t>(style_.experts.gating);
  Row p = gating == 1 ? softmax(logits) : logits;
  for (double& each : p) each = gating == 2 ? 1.0 / (1.0 + std::exp(-each)) : each;
  for (double& each : p) each = gating == 4 ? std::sqrt(std::log1p(std::exp(each))) : each;
  Row score = p;
  const Row* choice = find(in_layer(index, "exp_probs_b.bias"));
  for (size_t e = 0; choice != nullptr && e < n; ++e) score[e] += (*choice)[e];
  const auto best = [](const Row& of, size_t count) {
    std::vector<size_t> order;
    for (size_t i = 0; i < of.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return of[a] > of[b]; });
    order.resize(count);
    return order;
  };
  if (spec_.expert_groups > 0) {
    const auto groups = static_cast<size_t>(spec_.expert_groups);
    Row sums;
    for (size_t g = 0; g < groups; ++g) {
      Row own(score.begin() + static_cast<std::ptrdiff_t>(g * n / groups),
              score.begin() + static_cast<std::ptrdiff_t>((g + 1) * n / groups));
      std::sort(own.rbegin(), own.rend());
      sums.push_back(own[0] + own[1]);
    }
    const std::vector<size_t> kept = best(sums, groups / 2);
    for (size_t e = 0; e < n; ++e) {
      if (std::count(kept.begin(), kept.end(), e / (n / groups)) == 0) score[e] = -INFINITY;
    }
  }
  const std::vector<size_t> chosen = best(score, static_cast<size_t>(spec_.experts_used));
  Row weights;
  for (const size_t e : chosen) weights.push_back(p[e]);
  if (gating == 3) weights = softmax(weights);
  double sum = 0.0;
  for (const double each : weights) sum += each;
  const Row in = spec_.latent > 0 ? product(in_layer(index, "ffn_latent_down"), x) : x;
  Row y(in.size());
  const engine::Activation act = cut(activation(index), spec_.expert_limits, index);
  const engine::Activation shared_act = cut(activation(index), spec_.swiglu_limits, index);
  const auto width = static_cast<size_t>(spec_.expert_width);
  for (size_t s = 0; s < chosen.size(); ++s) {
    const auto e = static_cast<int32_t>(chosen[s]);
    double weight = weights[s];
    if (style_.experts.normalise) weight /= sum;
    if (spec_.expert_scale != 0.0F) weight *= static_cast<double>(spec_.expert_scale);
    Row inner;
    if (style_.feed_forward == FeedForward::kPlain) {
      inner = stacked(in_layer(index, "ffn_up_exps"), e, in, width);
      for (double& each : inner) each = reference_act(act, each);
    } else {
      Row gate;
      if (spec_.fused_experts) {
        gate = stacked(in_layer(index, "ffn_gate_up_exps"), e, in, 2 * width);
        const auto half = gate.begin() + static_cast<std::ptrdiff_t>(width);
        inner = Row(half, gate.end());
      } else {
        gate = stacked(in_layer(index, "ffn_gate_exps"), e, in, width);
        inner = stacked(in_layer(index, "ffn_up_exps"), e, in, width);
      }
      for (size_t i = 0; i < width; ++i) inner[i] = reference_gated(act, gate[i], inner[i]);
    }
    const Row down = stacked(in_layer(index, "ffn_down_exps"), e, inner, in.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] += weight * down[i];
  }
  if (spec_.latent > 0) y = product(in_layer(index, "ffn_latent_up"), y);
  if (spec_.shared_width == 0) return y;
  Row inner = product(in_layer(index, "ffn_up_shexp"), x);
  if (style_.feed_forward == FeedForward::kPlain) {
    for (double& each : inner) each = reference_act(act, each);
  } else {
    const Row gate = product(in_layer(index, "ffn_gate_shexp"), x);
    for (size_t i = 0; i < inner.size(); ++i) {
      inner[i] = reference_gated(shared_act, gate[i], inner[i]);
    }
  }
  const Row down = product(in_layer(index, "ffn_down_shexp"), inner);
  double weight = 1.0;
  if (style_.experts.shared == SharedExpert::kGated) {
    weight = 1.0 / (1.0 + std::exp(-product(in_layer(index, "ffn_gate_inp_shexp"), x)[0]));
  }
  for (size_t i = 0; i < y.size(); ++i) y[i] += weight * down[i];
  const double share = style_.experts.shared == SharedExpert::kAveraged ? 0.5 : 1.0;
  for (double& value : y) value *= share;
  return y;
}

TinyModel::Row TinyModel::embedded(const std::string& table, int32_t token) const {
  const auto first = find(table + ".weight")->begin() + std::ptrdiff_t{token} * spec_.hidden;
  Row row(first, first + spec_.hidden);
  double factor =
      spec_.embedding_factor != 0.0F ? static_cast<double>(spec_.embedding_factor) : 1.0;
  if (style_.root_embedding) factor = std::sqrt(static_cast<double>(spec_.hidden));
  for (double& value : row) value *= factor;
  return row;
}

TinyModel::Row TinyModel::scores(const std::string& head, const Row& x) const {
  Row row = product(head, x);
  // product() adds the bias of output itself.
  const Row* const bias = head == "token_embd" ? find("output.bias") : nullptr;
  for (size_t i = 0; bias != nullptr && i < row.size(); ++i) row[i] += (*bias)[i];
  const auto cap = static_cast<double>(spec_.logit_cap);
  const auto scale = static_cast<double>(spec_.logit_scale);
  for (double& logit : row) {
    if (scale != 0.0) logit *= style_.logit_factor ? scale : 1.0 / scale;
    if (cap > 0.0) logit = cap * std::tanh(logit / cap);
  }
  return row;
}

std::vector<TinyModel::Row> TinyModel::run(const std::vector<int32_t>& tokens, int32_t layers,
                                           std::vector<Kept>* kept) const {
  std::vector<Row> hidden;
  for (const int32_t token : tokens) {
    hidden.push_back(embedded("token_embd", token));
    if (style_.norm_embedding) hidden.back() = norm("", hidden.back());
  }
  const std::vector<Row> embeddings = hidden;
  kept->resize(static_cast<size_t>(spec_.layers));
  for (int32_t i = 0; i < layers; ++i) {
    const std::vector<Row> in = hidden;
    if (kv_heads(i) > 0) attend(i, kept, &hidden);
    if (recurs(i)) recur(i, &hidden);
    if (has_recurrence(i)) add_recurrence(i, in, &hidden);
    if (has_feed_forward(i)) mix(i, in, &hidden);
    if (spec_.layer_input > 0) add_layer_input(i, tokens, embeddings, &hidden);
    const Row* factor =
        style_.layer_scale ? find(in_layer(i, "layer_output_scale.weight")) : nullptr;
    for (Row& row : hidden) {
      for (double& value : row) value *= factor != nullptr ? (*factor)[0] : 1.0;
    }
  }
  return hidden;
}

std::vector<double> TinyModel::logits(const std::vector<int32_t>& tokens, int32_t layers) const {
  std::vector<Kept> kept;
  std::vector<double> all;
  for (const Row& x : run(tokens, layers > 0 ? layers : spec_.layers, &kept)) {
    const Row row = scores(spec_.tied ? "token_embd" : "output", norm(style_.last_norm, x));
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace gen::test

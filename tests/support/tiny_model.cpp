// SPDX-License-Identifier: Apache-2.0
// Making tiny models and computing them by hand. See tiny_model.h.
#include "support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "model/arch/registry.h"
#include "quant/format.h"
#include "support/reference_act.h"

namespace gen::test {
namespace {

using model::arch::AttentionGate;
using model::arch::Experts;
using model::arch::FeedForward;
using model::arch::HeadNorms;
using model::arch::NormStyle;
using model::arch::Parallel;
using model::arch::SharedExpert;

constexpr double kEps = 1e-5;
constexpr int32_t kMixWidth = 40;  // no multiple of 16

/// As they lie in the file.
struct XieluKeys {
  float alpha_n;
  float alpha_p;
  float beta;
  float eps;
};
XieluKeys xielu(int32_t index) {
  const auto i = static_cast<float>(index);
  return {0.3F - 0.2F * i, -0.4F + 0.3F * i, 0.5F - 0.1F * i, -1e-6F};
}

std::string in_layer(int32_t index, const char* name) {
  return "blk." + std::to_string(index) + "." + name;
}

/// Of a family that is not in the library's table, what a llama has without biases.
model::arch::DenseStyle style_of(const std::string& architecture) {
  for (const model::arch::Architecture* row : model::arch::architectures()) {
    if (row->name == architecture) return row->style;
  }
  return {.rope = {.kind = engine::RopeKind::kAdjacent}};
}

bool is_layer(const model::arch::DenseStyle& style) {
  return style.norms.kind == NormStyle::Kind::kLayer;
}

bool has(model::arch::Bias bias, bool wanted) {
  return bias == model::arch::Bias::kRequired || (bias == model::arch::Bias::kOptional && wanted);
}

}  // namespace

TinyModel::TinyModel(const TinyModelSpec& spec)
    : spec_(spec),
      style_(spec.style ? *spec.style : style_of(spec.architecture)),
      random_(spec.seed) {
  if (spec.experts < 0) spec_.experts = style_.experts.has == Experts::kRequired ? 6 : 0;
  if (style_.experts.shared == SharedExpert::kNone) spec_.shared_width = 0;
  keys();
  matrix("token_embd.weight", spec.vocab, spec.hidden, spec.type);
  for (int32_t i = 0; i < spec.layers; ++i) block(i);
  norm_tensors("output_norm");
  if (!spec.tied) matrix("output.weight", spec.vocab, spec.hidden, spec.type);
  if (has(style_.head_bias, spec.biases)) vector("output.bias", spec.vocab, 0.0F);
  for (const auto& [name, factors] : {std::pair{"rope_freqs.weight", &spec.freq_factors},
                                      {"rope_factors_long.weight", &spec.long_factors},
                                      {"rope_factors_short.weight", &spec.short_factors}}) {
    if (factors->empty()) continue;
    const auto bytes = std::as_bytes(std::span(*factors));
    writer_.tensor(name, 0, {factors->size()}, {bytes.begin(), bytes.end()});
  }
}

void TinyModel::keys() {
  const std::string a = spec_.architecture + ".";
  const auto u32 = [](int32_t value) { return static_cast<uint32_t>(value); };
  writer_.set_string("general.architecture", spec_.architecture)
      .set(a + "context_length", u32(spec_.context))
      .set(a + "block_count", u32(spec_.layers))
      .set(a + "embedding_length", u32(spec_.hidden))
      .set(a + "attention.head_count", u32(spec_.heads))
      .set(a + "attention.key_length", u32(spec_.head_dim))
      .set(a + "attention.value_length", u32(spec_.head_dim))
      .set(a + (is_layer(style_) ? "attention.layer_norm_epsilon"
                                 : "attention.layer_norm_rms_epsilon"),
           static_cast<float>(kEps))
      .set(a + "rope.freq_base", spec_.rope_base);
  const auto set_layers = [&](const char* key, const std::vector<uint32_t>& each, int32_t all) {
    if (each.empty()) {
      writer_.set(a + key, u32(all));
    } else {
      writer_.set_array<uint32_t>(a + key, each);
    }
  };
  set_layers("feed_forward_length", spec_.layer_feed_forward, spec_.feed_forward);
  set_layers("attention.head_count_kv", spec_.layer_kv_heads, spec_.kv_heads);
  if (!spec_.recurrent.empty()) writer_.set_array<uint32_t>(a + "recurrent", spec_.recurrent);
  if (!spec_.shares.empty()) writer_.set_array<uint32_t>(a + "attention.shares", spec_.shares);
  if (spec_.local_rope_base != 0.0F) writer_.set(a + "rope.local_freq_base", spec_.local_rope_base);
  if (spec_.linear_factor != 1.0F) {
    writer_.set_string(a + "rope.scaling.type", "linear")
        .set(a + "rope.scaling.factor", spec_.linear_factor);
  }
  if (spec_.window > 0) writer_.set(a + "attention.sliding_window", u32(spec_.window));
  if (spec_.chunk > 0) writer_.set(a + "attention.chunk_size", u32(spec_.chunk));
  if (!spec_.local.empty()) {
    writer_.set_array<uint32_t>(a + "attention.sliding_window_pattern", spec_.local);
  }
  const auto set_number = [&](bool known, const char* key, float* value) {
    if (known && *value != 0.0F) writer_.set(a + key, *value);
    if (!known) *value = 0.0F;
  };
  set_number(style_.factors, "embedding_scale", &spec_.embedding_factor);
  set_number(style_.factors, "residual_scale", &spec_.residual_factor);
  set_number(style_.factors || style_.logit_factor, "logit_scale", &spec_.logit_scale);
  set_number(style_.score_cap >= 0.0F, "attn_logit_softcapping", &spec_.score_cap);
  set_number(style_.logit_cap >= 0.0F, "final_logit_softcapping", &spec_.logit_cap);
  set_number(true, "attention.scale", &spec_.attention_scale);
  if (spec_.original_context > 0) {
    writer_.set(a + "rope.scaling.original_context_length", u32(spec_.original_context));
  }
  if (style_.activation == engine::Act::kXielu) {
    for (const auto& [key, member] : {std::pair{"alpha_n", &XieluKeys::alpha_n},
                                      {"alpha_p", &XieluKeys::alpha_p},
                                      {"beta", &XieluKeys::beta},
                                      {"eps", &XieluKeys::eps}}) {
      std::vector<float> each;
      for (int32_t i = 0; i < spec_.layers; ++i) each.push_back(xielu(i).*member);
      writer_.set_array(std::string("xielu.") + key, each);
    }
  }
  if (spec_.sequential) writer_.set(a + "use_parallel_residual", false);
  spec_.unrotated = spec_.unrotated && style_.rope_switch;
  if (spec_.unrotated) writer_.set(a + "rope.scaling.finetuned", false);
  if (spec_.experts > 0) expert_keys();
}

void TinyModel::expert_keys() {
  const auto set = [&](const char* key, int32_t value, bool says = true) {
    if (says) writer_.set(spec_.architecture + "." + key, static_cast<uint32_t>(value));
  };
  set("expert_count", spec_.experts);
  set("expert_used_count", spec_.experts_used);
  set("expert_feed_forward_length", spec_.expert_width);
  set("expert_shared_feed_forward_length", spec_.shared_width, spec_.shared_width > 0);
  set("leading_dense_block_count", spec_.dense_layers, spec_.dense_layers > 0);
  set("expert_group_count", spec_.expert_groups, spec_.expert_groups > 0);
  set("expert_group_used_count", spec_.expert_groups / 2, spec_.expert_groups > 0);
  set("expert_gating_func", spec_.gating, spec_.gating > 0);
  if (spec_.expert_scale != 0.0F) {
    writer_.set(spec_.architecture + ".expert_weights_scale", spec_.expert_scale);
  }
}

void TinyModel::expert_tensors(int32_t i) {
  const TinyModelSpec& spec = spec_;
  const int32_t d = spec.hidden;
  const int32_t n = spec.experts;
  const int32_t width = spec.expert_width;
  const DType v_type = spec.v_type == DType::kF32 ? spec.type : spec.v_type;
  const auto stack = [&](const char* name, int32_t rows, int32_t cols, DType type) {
    matrix(in_layer(i, name) + ".weight", rows, cols, type, n);
    if (spec.expert_biases) vector(in_layer(i, name) + ".bias", rows, 0.0F, n);
  };
  matrix(in_layer(i, "ffn_gate_inp.weight"), n, d, spec.router_type);
  if (spec.expert_biases) vector(in_layer(i, "ffn_gate_inp.bias"), n, 0.0F);
  if (spec.choice_bias) vector(in_layer(i, "exp_probs_b.bias"), n, 0.0F);
  if (spec.fused_experts) {
    matrix(in_layer(i, "ffn_gate_up_exps.weight"), 2 * width, d, spec.type, n);
  } else {
    if (style_.feed_forward != FeedForward::kPlain) stack("ffn_gate_exps", width, d, spec.type);
    stack("ffn_up_exps", width, d, spec.type);
  }
  stack("ffn_down_exps", d, width, v_type);
  if (spec.shared_width == 0) return;
  matrix(in_layer(i, "ffn_gate_shexp.weight"), spec.shared_width, d, spec.type);
  matrix(in_layer(i, "ffn_up_shexp.weight"), spec.shared_width, d, spec.type);
  matrix(in_layer(i, "ffn_down_shexp.weight"), d, spec.shared_width, v_type);
  if (style_.experts.shared == SharedExpert::kGated) {
    matrix(in_layer(i, "ffn_gate_inp_shexp.weight"), 1, d, spec.router_type);
  }
}

void TinyModel::block(int32_t i) {
  const TinyModelSpec& spec = spec_;
  const int32_t d = spec.hidden;
  const int32_t q = spec.heads * spec.head_dim;
  const DType v_type = spec.v_type == DType::kF32 ? spec.type : spec.v_type;
  const bool input_biases = has(style_.input_bias, spec.biases);
  const bool inner_biases = has(style_.inner_bias, spec.biases);
  const int32_t q_tensor = style_.attention_gate == AttentionGate::kInQ ? 2 * q : q;
  const int32_t kv = kv_heads(i) * spec.head_dim;
  const int32_t ff = feed_forward(i);
  const bool stores = kv > 0 && !shares(i);
  const bool gated = style_.feed_forward == FeedForward::kGated;
  const bool fused = style_.feed_forward == FeedForward::kFused;
  if (kv > 0) {
    if (style_.norm_before) norm_tensors(in_layer(i, "attn_norm"));
    matrix(in_layer(i, spec.fused_qkv ? "attn_qkv.weight" : "attn_q.weight"),
           spec.fused_qkv ? q + 2 * kv : q_tensor, d, spec.type);
  }
  if (stores && !spec.fused_qkv) {
    matrix(in_layer(i, "attn_k.weight"), kv, d, spec.type);
    matrix(in_layer(i, "attn_v.weight"), kv, d, v_type);
  }
  if (kv > 0) matrix(in_layer(i, "attn_output.weight"), d, q, spec.type);
  if (input_biases && spec.fused_qkv) {
    vector(in_layer(i, "attn_qkv.bias"), q + 2 * kv, 0.0F);
  } else if (input_biases) {
    vector(in_layer(i, "attn_q.bias"), q_tensor, 0.0F);
    vector(in_layer(i, "attn_k.bias"), kv, 0.0F);
    vector(in_layer(i, "attn_v.bias"), kv, 0.0F);
  }
  if (inner_biases) {
    vector(in_layer(i, "attn_output.bias"), d, 0.0F);
    if (gated && !has_experts(i)) vector(in_layer(i, "ffn_gate.bias"), ff, 0.0F);
    if (!has_experts(i)) vector(in_layer(i, "ffn_up.bias"), ff, 0.0F);
    if (!has_experts(i)) vector(in_layer(i, "ffn_down.bias"), d, 0.0F);
  }
  if (style_.attention_gate == AttentionGate::kOwn && kv > 0) {
    matrix(in_layer(i, "attn_gate.weight"), q, d, spec.type);
    if (input_biases) vector(in_layer(i, "attn_gate.bias"), q, 0.0F);
  }
  if (style_.head_norms == HeadNorms::kOwnOfEach && spec.biases) {
    matrix(in_layer(i, "attn_q_norm.weight"), spec.heads, spec.head_dim, DType::kF32);
    matrix(in_layer(i, "attn_k_norm.weight"), kv_heads(i), spec.head_dim, DType::kF32);
  }
  if (style_.head_norms == HeadNorms::kEachHead || style_.head_norms == HeadNorms::kAllHeads) {
    const bool all = style_.head_norms == HeadNorms::kAllHeads;
    vector(in_layer(i, "attn_q_norm.weight"), all ? q : spec.head_dim, 1.0F);
    vector(in_layer(i, "attn_k_norm.weight"), all ? kv : spec.head_dim, 1.0F);
  }
  if (recurs(i)) {
    vector(in_layer(i, "mix_norm.weight"), d, 1.0F);
    vector(in_layer(i, "mix_a_norm.weight"), d, 0.0F);  // so that most states fade
    for (const char* name : {"mix_a.weight", "mix_b.weight", "mix_v.weight"}) {
      matrix(in_layer(i, name), kMixWidth, d, spec.type);
    }
    matrix(in_layer(i, "mix_out.weight"), d, kMixWidth, spec.type);
  }
  if (style_.norm_after) norm_tensors(in_layer(i, "post_attention_norm"));
  if (style_.norm_before && !one_norm(i)) norm_tensors(in_layer(i, style_.ffn_norm));
  if (has_experts(i)) {
    expert_tensors(i);
  } else {
    if (gated) matrix(in_layer(i, "ffn_gate.weight"), ff, d, spec.type);
    matrix(in_layer(i, "ffn_up.weight"), fused ? 2 * ff : ff, d, spec.type);
    matrix(in_layer(i, "ffn_down.weight"), d, ff, v_type);
  }
  if (style_.norm_after) norm_tensors(in_layer(i, "post_ffw_norm"));
}

void TinyModel::norm_tensors(const std::string& name) {
  if (style_.norms.weight) vector(name + ".weight", spec_.hidden, 1.0F);
  if (has(style_.norms.bias, spec_.biases)) vector(name + ".bias", spec_.hidden, 0.0F);
}

/// In [-0.5, 0.5): a plain scale of the generator's bits, alike on every machine.
float TinyModel::next() { return static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F; }

void TinyModel::matrix(const std::string& name, int32_t rows, int32_t cols, DType type,
                       int32_t matrices) {
  const auto count = static_cast<size_t>(rows) * static_cast<size_t>(cols) *
                     static_cast<size_t>(std::max(matrices, 1));
  std::vector<float> values(count);
  // Large enough that attention and gates are far from their linear range.
  const float scale = 4.0F / std::sqrt(static_cast<float>(cols));
  for (float& value : values) value = next() * scale;
  if (name == "output.weight")
    std::fill(values.end() - int64_t{spec_.even} * cols, values.end(), 0.0F);
  const DTypeInfo* info = dtype_info(type);
  const quant::Format* format = quant::find_format(type);
  std::vector<std::byte> data(count / info->block_elements * info->block_bytes);
  format->encode(values.data(), data.data(), static_cast<int64_t>(count));
  format->decode(data.data(), values.data(), static_cast<int64_t>(count));
  tensors_[name] = Row(values.begin(), values.end());
  std::vector<uint64_t> shape = {static_cast<uint64_t>(cols), static_cast<uint64_t>(rows)};
  if (matrices > 0) shape.push_back(static_cast<uint64_t>(matrices));
  writer_.tensor(name, static_cast<uint32_t>(type), shape, std::move(data));
}

void TinyModel::vector(const std::string& name, int32_t size, float around, int32_t count) {
  std::vector<float> values(static_cast<size_t>(size) * static_cast<size_t>(std::max(count, 1)));
  for (float& value : values) value = around + next();
  tensors_[name] = Row(values.begin(), values.end());
  const auto bytes = std::as_bytes(std::span(values));
  std::vector<uint64_t> shape = {static_cast<uint64_t>(size)};
  if (count > 0) shape.push_back(static_cast<uint64_t>(count));
  writer_.tensor(name, 0, shape, {bytes.begin(), bytes.end()});
}

const TinyModel::Row* TinyModel::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

/// "<name>.weight" x + "<name>.bias"
TinyModel::Row TinyModel::product(const std::string& name, const Row& x) const {
  const Row& weight = *find(name + ".weight");
  const Row* bias = find(name + ".bias");
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
  const int32_t q = spec_.heads * spec_.head_dim;
  const int32_t kv = kv_heads(index) * spec_.head_dim;
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

TinyModel::Row TinyModel::norm(const std::string& name, const Row& x) const {
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
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] *= scale;
    if (weight != nullptr) y[i] *= (*weight)[i];
    if (bias != nullptr) y[i] += (*bias)[i];
  }
  return y;
}

int32_t TinyModel::kv_heads(int32_t index) const {
  const auto i = static_cast<size_t>(index);
  return spec_.layer_kv_heads.empty() ? spec_.kv_heads
                                      : static_cast<int32_t>(spec_.layer_kv_heads[i]);
}

int32_t TinyModel::feed_forward(int32_t index) const {
  const auto i = static_cast<size_t>(index);
  return spec_.layer_feed_forward.empty() ? spec_.feed_forward
                                          : static_cast<int32_t>(spec_.layer_feed_forward[i]);
}

bool TinyModel::shares(int32_t index) const {
  return !spec_.shares.empty() && spec_.shares[static_cast<size_t>(index)] != 0;
}

bool TinyModel::recurs(int32_t index) const {
  return !spec_.recurrent.empty() && spec_.recurrent[static_cast<size_t>(index)] != 0;
}

/// Of blocks that are parallel only in some models every other one is.
bool TinyModel::one_norm(int32_t index) const {
  return style_.parallel == Parallel::kOneNorm ||
         (style_.parallel == Parallel::kWithoutNorm && index % 2 == 1);
}

bool TinyModel::is_local(int32_t index) const {
  if (!spec_.local.empty()) return spec_.local[static_cast<size_t>(index)] != 0;
  return style_.global_every == 0 || (index + 1) % style_.global_every != 0;
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

TinyModel::Row TinyModel::norm_if(bool has, int32_t index, const char* name, const Row& x) const {
  return has ? norm(in_layer(index, name), x) : x;
}

void TinyModel::add(Row* x, const Row& made) const {
  const double factor =
      spec_.residual_factor != 0.0F ? static_cast<double>(spec_.residual_factor) : 1.0;
  for (size_t i = 0; i < x->size(); ++i) (*x)[i] += factor * made[i];
}

void TinyModel::rotate(double* head, int32_t index, int32_t position) const {
  const int32_t every = style_.unrotated_every;
  if (spec_.unrotated || (every > 0 && (index + 1) % every == 0)) return;
  const bool local = is_local(index);
  auto base = static_cast<double>(spec_.rope_base);
  if (local && spec_.window > 0 && style_.local_base > 0.0) base = style_.local_base;
  if (local && spec_.local_rope_base != 0.0F) base = static_cast<double>(spec_.local_rope_base);
  // The test's local layers without a window are as all others.
  const bool scaled = !(style_.local_unscaled && local && spec_.window > 0);
  const int32_t half = spec_.head_dim / 2;
  const bool adjacent = style_.rope.kind == engine::RopeKind::kAdjacent;
  for (int32_t i = 0; i < half; ++i) {
    double angle = position * std::pow(base, -2.0 * i / spec_.head_dim);
    const bool longer = spec_.original_context > 0 && spec_.context > spec_.original_context;
    const std::vector<float>& factors = !spec_.freq_factors.empty() ? spec_.freq_factors
                                        : longer                    ? spec_.long_factors
                                                                    : spec_.short_factors;
    if (!factors.empty()) angle /= static_cast<double>(factors[static_cast<size_t>(i)]);
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
  const auto dim = static_cast<size_t>(spec_.head_dim);
  if (style_.head_norms == HeadNorms::kAllHeads) *heads = norm(in_layer(index, norm_name), *heads);
  for (size_t first = 0; first < heads->size(); first += dim) {
    Row head(heads->begin() + static_cast<std::ptrdiff_t>(first),
             heads->begin() + static_cast<std::ptrdiff_t>(first + dim));
    if (style_.head_norms == HeadNorms::kEachHead) head = norm(in_layer(index, norm_name), head);
    if (const Row* own = find(in_layer(index, norm_name) + ".weight");
        style_.head_norms == HeadNorms::kOwnOfEach && own != nullptr) {
      head = norm("", head);
      for (size_t i = 0; i < dim; ++i) head[i] *= (*own)[first + i];
    }
    rotate(head.data(), index, position);
    std::copy(head.begin(), head.end(), heads->begin() + static_cast<std::ptrdiff_t>(first));
  }
}

void TinyModel::attend(int32_t index, std::vector<Kept>* kept, std::vector<Row>* hidden) const {
  const auto dim = static_cast<size_t>(spec_.head_dim);
  std::vector<Row> queries;
  Kept& own = (*kept)[static_cast<size_t>(index)];
  for (size_t t = 0; t < hidden->size(); ++t) {
    const Row x = norm_if(style_.norm_before, index, "attn_norm", (*hidden)[t]);
    const auto position = static_cast<int32_t>(t);
    queries.push_back(input(index, "attn_q", x));
    turn_heads(index, "attn_q_norm", position, &queries.back());
    if (shares(index)) continue;
    own.keys.push_back(input(index, "attn_k", x));
    own.values.push_back(input(index, "attn_v", x));
    turn_heads(index, "attn_k_norm", position, &own.keys.back());
  }
  if (shares(index)) own = (*kept)[spec_.shares[static_cast<size_t>(index)] - 1];
  const double scale = spec_.attention_scale != 0.0F ? static_cast<double>(spec_.attention_scale)
                                                     : 1.0 / std::sqrt(static_cast<double>(dim));
  const auto cap = static_cast<double>(spec_.score_cap);
  const std::vector<Row> in = *hidden;
  for (size_t t = 0; t < hidden->size(); ++t) {
    Row attended(queries[t].size());
    for (size_t h = 0; h < static_cast<size_t>(spec_.heads); ++h) {
      const size_t g = h / static_cast<size_t>(spec_.heads / kv_heads(index));
      Row weights(t + 1);
      double total = 0.0;
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
      const Row x = norm_if(style_.norm_before, index, "attn_norm", in[t]);
      const Row gate = style_.attention_gate == AttentionGate::kInQ
                           ? half_of_q(index, x, true)
                           : product(in_layer(index, "attn_gate"), x);
      for (size_t i = 0; i < gate.size(); ++i) attended[i] /= 1.0 + std::exp(-gate[i]);
    }
    const Row out = product(in_layer(index, "attn_output"), attended);
    add(&(*hidden)[t], norm_if(style_.norm_after, index, "post_attention_norm", out));
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
    const Row y = norm_if(style_.norm_before, index,
                          one_norm(index) ? "attn_norm" : style_.ffn_norm, beside ? in[t] : x);
    if (has_experts(index)) {
      add(&x, norm_if(style_.norm_after, index, "post_ffw_norm", experts(index, y)));
      continue;
    }
    const engine::Activation act = activation(index);
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
    const Row down = product(in_layer(index, "ffn_down"), up);
    add(&x, norm_if(style_.norm_after, index, "post_ffw_norm", down));
  }
}

TinyModel::Row TinyModel::stacked(const std::string& name, int32_t e, const Row& x,
                                  size_t outputs) const {
  const Row& weight = *find(name + ".weight");
  const Row* bias = find(name + ".bias");
  Row y(outputs);
  for (size_t n = 0; n < outputs; ++n) {
    const size_t row = static_cast<size_t>(e) * outputs + n;
    for (size_t c = 0; c < x.size(); ++c) y[n] += weight[row * x.size() + c] * x[c];
    if (bias != nullptr) y[n] += (*bias)[row];
  }
  return y;
}

TinyModel::Row TinyModel::experts(int32_t index, const Row& x) const {
  const auto n = static_cast<size_t>(spec_.experts);
  const Row logits = product(in_layer(index, "ffn_gate_inp"), x);
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
  Row y(x.size());
  const engine::Activation act = {.kind = style_.activation};
  const auto width = static_cast<size_t>(spec_.expert_width);
  for (size_t s = 0; s < chosen.size(); ++s) {
    const auto e = static_cast<int32_t>(chosen[s]);
    double weight = weights[s];
    if (style_.experts.normalise) weight /= sum;
    if (spec_.expert_scale != 0.0F) weight *= static_cast<double>(spec_.expert_scale);
    Row inner;
    if (style_.feed_forward == FeedForward::kPlain) {
      inner = stacked(in_layer(index, "ffn_up_exps"), e, x, width);
      for (double& each : inner) each = reference_act(act, each);
    } else {
      Row gate;
      if (spec_.fused_experts) {
        gate = stacked(in_layer(index, "ffn_gate_up_exps"), e, x, 2 * width);
        const auto half = gate.begin() + static_cast<std::ptrdiff_t>(width);
        inner = Row(half, gate.end());
      } else {
        gate = stacked(in_layer(index, "ffn_gate_exps"), e, x, width);
        inner = stacked(in_layer(index, "ffn_up_exps"), e, x, width);
      }
      for (size_t i = 0; i < width; ++i) inner[i] = reference_gated(act, gate[i], inner[i]);
    }
    const Row down = stacked(in_layer(index, "ffn_down_exps"), e, inner, x.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] += weight * down[i];
  }
  if (spec_.shared_width == 0) return y;
  const Row gate = product(in_layer(index, "ffn_gate_shexp"), x);
  Row inner = product(in_layer(index, "ffn_up_shexp"), x);
  for (size_t i = 0; i < inner.size(); ++i) inner[i] = reference_gated(act, gate[i], inner[i]);
  const Row down = product(in_layer(index, "ffn_down_shexp"), inner);
  double weight = 1.0;
  if (style_.experts.shared == SharedExpert::kGated) {
    weight = 1.0 / (1.0 + std::exp(-product(in_layer(index, "ffn_gate_inp_shexp"), x)[0]));
  }
  for (size_t i = 0; i < y.size(); ++i) y[i] += weight * down[i];
  return y;
}

std::vector<double> TinyModel::logits(const std::vector<int32_t>& tokens, int32_t layers) const {
  const Row& table = *find("token_embd.weight");
  const auto d = static_cast<size_t>(spec_.hidden);
  std::vector<Row> hidden;
  for (const int32_t token : tokens) {
    const auto first = table.begin() + static_cast<std::ptrdiff_t>(token) * spec_.hidden;
    hidden.emplace_back(first, first + static_cast<std::ptrdiff_t>(d));
    double factor =
        spec_.embedding_factor != 0.0F ? static_cast<double>(spec_.embedding_factor) : 1.0;
    if (style_.root_embedding) factor = std::sqrt(static_cast<double>(spec_.hidden));
    for (double& value : hidden.back()) value *= factor;
  }
  std::vector<Kept> kept(static_cast<size_t>(spec_.layers));
  for (int32_t i = 0; i < (layers > 0 ? layers : spec_.layers); ++i) {
    const std::vector<Row> in = hidden;
    if (kv_heads(i) > 0) attend(i, &kept, &hidden);
    if (recurs(i)) recur(i, &hidden);
    mix(i, in, &hidden);
  }
  std::vector<double> all;
  for (const Row& x : hidden) {
    Row row = product(spec_.tied ? "token_embd" : "output", norm("output_norm", x));
    const auto cap = static_cast<double>(spec_.logit_cap);
    const Row* bias = spec_.tied ? find("output.bias") : nullptr;  // product() adds the other's
    for (size_t i = 0; bias != nullptr && i < row.size(); ++i) row[i] += (*bias)[i];
    for (double& logit : row) {
      const auto scale = static_cast<double>(spec_.logit_scale);
      if (scale != 0.0) logit *= style_.logit_factor ? scale : 1.0 / scale;
      if (cap > 0.0) logit = cap * std::tanh(logit / cap);
    }
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace gen::test

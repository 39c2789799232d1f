// SPDX-License-Identifier: Apache-2.0
// The files of tiny models. See tiny_model.h; what they compute is in tiny_model_values.cpp.
#include "support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "model/arch/registry.h"
#include "quant/format.h"
#include "support/tiny_model_parts.h"
#include "support/weight_blocks.h"

namespace gen::test {
namespace {

using model::arch::AttentionGate;
using model::arch::Experts;
using model::arch::FeedForward;
using model::arch::HeadNorms;
using model::arch::NormStyle;
using model::arch::Recurrence;
using model::arch::Recurs;
using model::arch::SharedExpert;

/// Of a family that is not in the library's table, what a llama has without biases.
model::arch::DenseStyle style_of(const std::string& architecture) {
  for (const model::arch::Architecture* row : model::arch::architectures()) {
    if (row->name == architecture) return row->style;
  }
  return {.rope = {.kind = engine::RopeKind::kAdjacent}};
}

}  // namespace

TinyModel::TinyModel(const TinyModelSpec& spec)
    : spec_(spec),
      style_(spec.style ? *spec.style : style_of(spec.architecture)),
      random_(spec.seed) {
  if (spec.experts < 0) spec_.experts = style_.experts.has == Experts::kRequired ? 6 : 0;
  if (style_.experts.shared == SharedExpert::kNone) spec_.shared_width = 0;
  if (!style_.experts.latent) spec_.latent = 0;
  if (!style_.layer_inputs) spec_.layer_input = 0;
  if (!style_.query_temperature) spec_.query_temperature = 0.0F;
  if (style_.attention_gate == AttentionGate::kInQ) spec_.fused_qkv = false;
  if (style_.norms.kind == NormStyle::Kind::kEither) {
    style_.norms.kind = spec.rms_norms ? NormStyle::Kind::kRms : NormStyle::Kind::kLayer;
  }
  if (style_.attention_gate == AttentionGate::kMayBeOwn) {
    style_.attention_gate = spec.no_gate ? AttentionGate::kNone : AttentionGate::kOwn;
  }
  if (spec.architecture == "qwen3next") spec_.fused_gates = true;
  keys();
  if (spec_.window == 0) spec_.window = style_.window;
  matrix("token_embd.weight", spec.vocab, spec.hidden, spec.type);
  for (int32_t i = 0; i < spec.layers; ++i) block(i);
  for (int32_t i = 0; i < spec.draft_layers && !spec.without_drafts; ++i) {
    block(spec.layers + i);
    draft_tensors(spec.layers + i);
  }
  if (spec_.layer_input > 0) {
    const int32_t all = spec_.layer_input * spec.layers;
    matrix("per_layer_token_embd.weight", spec.vocab, all, spec.type);
    matrix("per_layer_model_proj.weight", all, spec.hidden, spec.type);
    vector("per_layer_proj_norm.weight", spec_.layer_input, 1.0F);
  }
  norm_tensors(style_.last_norm);
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
      .set(a + "block_count", u32(spec_.layers + spec_.draft_layers))
      .set(a + "embedding_length", u32(spec_.hidden))
      .set(a + "attention.head_count", u32(spec_.heads))
      .set(a + "attention.key_length", u32(spec_.head_dim))
      .set(a + "attention.value_length", u32(spec_.head_dim))
      .set(a + (is_layer(style_) ? "attention.layer_norm_epsilon"
                                 : "attention.layer_norm_rms_epsilon"),
           1e-5F)
      .set(a + "rope.freq_base", spec_.rope_base);
  const auto set_layers = [&](const char* key, const std::vector<uint32_t>& each, int32_t all) {
    if (each.empty()) {
      writer_.set(a + key, u32(all));
    } else {
      writer_.set_array<uint32_t>(a + key, each);
    }
  };
  std::vector<uint32_t> widths = spec_.layer_feed_forward;
  for (int32_t i = 0; style_.recurs == Recurs::kAlone && i < spec_.layers; ++i) {
    widths.push_back(u32(feed_forward(i)));
  }
  set_layers("feed_forward_length", widths, feed_forward(0));
  std::vector<uint32_t> kv = spec_.layer_kv_heads;
  if (style_.recurrence != Recurrence::kNone && style_.attention_every == 0) {
    for (int32_t i = 0; i < spec_.layers; ++i) kv.push_back(u32(kv_heads(i)));
  }
  set_layers("attention.head_count_kv", kv, spec_.kv_heads);
  recurrence_keys();
  if (!spec_.recurrent.empty()) writer_.set_array<uint32_t>(a + "recurrent", spec_.recurrent);
  if (!spec_.shares.empty()) writer_.set_array<uint32_t>(a + "attention.shares", spec_.shares);
  if (spec_.local_rope_base != 0.0F) writer_.set(a + "rope.local_freq_base", spec_.local_rope_base);
  if (spec_.linear_factor != 1.0F) {
    writer_.set_string(a + "rope.scaling.type", "linear")
        .set(a + "rope.scaling.factor", spec_.linear_factor);
  }
  // Some families must have the key.
  if (spec_.window > 0 || style_.window_needed || spec_.architecture == "gemma3") {
    writer_.set(a + "attention.sliding_window", u32(spec_.window));
  }
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
  const auto set_positive = [&](const char* key, int32_t value) {
    if (value > 0) writer_.set(a + key, u32(value));
  };
  set_positive("embedding_length_per_layer_input", spec_.layer_input);
  set_positive("attention.shared_kv_layers", spec_.shared_layers);
  set_positive("attention.key_length_swa", spec_.local_head_dim);
  set_positive("attention.value_length_swa", spec_.local_head_dim);
  set_number(true, "attention.temperature_scale", &spec_.query_temperature);
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
  set("moe_latent_size", spec_.latent, spec_.latent > 0);
  set("leading_dense_block_count", spec_.dense_layers, spec_.dense_layers > 0);
  set("interleave_moe_layer_step", spec_.expert_step, spec_.expert_step > 1);
  set("expert_group_count", spec_.expert_groups, spec_.expert_groups > 0);
  set("expert_group_used_count", spec_.expert_groups / 2, spec_.expert_groups > 0);
  set("expert_gating_func", spec_.gating, spec_.gating > 0);
  for (const auto& [key, limits] : {std::pair{".swiglu_clamp_exp", &spec_.expert_limits},
                                    {".swiglu_clamp_shexp", &spec_.swiglu_limits}}) {
    if (!limits->empty()) writer_.set_array<float>(spec_.architecture + key, *limits);
  }
  if (spec_.expert_scale != 0.0F) {
    writer_.set(spec_.architecture + ".expert_weights_scale", spec_.expert_scale);
  }
}

void TinyModel::expert_tensors(int32_t i) {
  const TinyModelSpec& spec = spec_;
  const int32_t d = spec.hidden;
  const int32_t n = spec.experts;
  const int32_t width = spec.expert_width;
  const int32_t in = spec.latent > 0 ? spec.latent : d;
  const DType v_type = spec.v_type == DType::kF32 ? spec.type : spec.v_type;
  const auto stack = [&](const char* name, int32_t rows, int32_t cols, DType type) {
    matrix(in_layer(i, name) + ".weight", rows, cols, type, n);
    if (spec.expert_biases) vector(in_layer(i, name) + ".bias", rows, 0.0F, n);
    if (spec.expert_scales) vector(in_layer(i, name) + ".scale", n, 1.0F);
  };
  matrix(in_layer(i, "ffn_gate_inp.weight"), n, d, spec.router_type);
  if (spec.expert_biases) vector(in_layer(i, "ffn_gate_inp.bias"), n, 0.0F);
  if (spec.choice_bias) vector(in_layer(i, "exp_probs_b.bias"), n, 0.0F);
  if (style_.experts.beside) {
    vector(in_layer(i, "ffn_gate_inp.scale"), d, 1.0F);
    for (const char* name : {"pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"}) {
      norm_tensors(in_layer(i, name));
    }
  }
  if (spec.fused_experts) {
    matrix(in_layer(i, "ffn_gate_up_exps.weight"), 2 * width, in, spec.type, n);
    if (spec.expert_scales) vector(in_layer(i, "ffn_up_exps.scale"), n, 1.0F);
  } else {
    if (style_.feed_forward != FeedForward::kPlain) stack("ffn_gate_exps", width, in, spec.type);
    stack("ffn_up_exps", width, in, spec.type);
  }
  stack("ffn_down_exps", in, width, v_type);
  if (spec.latent > 0) {
    matrix(in_layer(i, "ffn_latent_down.weight"), in, d, spec.type);
    matrix(in_layer(i, "ffn_latent_up.weight"), d, in, spec.type);
  }
  if (spec.shared_width == 0) return;
  if (style_.feed_forward != FeedForward::kPlain) {
    matrix(in_layer(i, "ffn_gate_shexp.weight"), spec.shared_width, d, spec.type);
  }
  matrix(in_layer(i, "ffn_up_shexp.weight"), spec.shared_width, d, spec.type);
  matrix(in_layer(i, "ffn_down_shexp.weight"), d, spec.shared_width, v_type);
  if (style_.experts.shared == SharedExpert::kGated) {
    matrix(in_layer(i, "ffn_gate_inp_shexp.weight"), 1, d, spec.router_type);
  }
}

void TinyModel::block(int32_t i) {
  const TinyModelSpec& spec = spec_;
  const int32_t d = spec.hidden;
  const int32_t q = spec.heads * head_dim(i);
  const DType v_type = spec.v_type == DType::kF32 ? spec.type : spec.v_type;
  const bool input_biases = has(style_.input_bias, spec.biases);
  const bool inner_biases = has(style_.inner_bias, spec.biases);
  const int32_t q_tensor = style_.attention_gate == AttentionGate::kInQ ? 2 * q : q;
  const int32_t kv = kv_heads(i) * head_dim(i);
  const int32_t ff = feed_forward(i);
  const bool stores = kv > 0 && !shares(i);
  const bool gated = style_.feed_forward == FeedForward::kGated;
  const bool fused = style_.feed_forward == FeedForward::kFused;
  if (has_recurrence(i)) recurrence_tensors(i);
  if (kv > 0) {
    if (style_.norm_before) norm_tensors(in_layer(i, "attn_norm"));
    matrix(in_layer(i, spec.fused_qkv ? "attn_qkv.weight" : "attn_q.weight"),
           spec.fused_qkv ? q + 2 * kv : q_tensor, d, spec.type);
  }
  if (stores && !spec.fused_qkv) {
    matrix(in_layer(i, "attn_k.weight"), kv, d, spec.type);
    if (!spec.keys_as_values || has_window(i)) matrix(in_layer(i, "attn_v.weight"), kv, d, v_type);
  }
  if (kv > 0) matrix(in_layer(i, "attn_output.weight"), d, q, spec.type);
  if (kv == 0) {
    // Nothing of attention.
  } else if (input_biases && spec.fused_qkv) {
    vector(in_layer(i, "attn_qkv.bias"), q + 2 * kv, 0.0F);
  } else if (input_biases) {
    vector(in_layer(i, "attn_q.bias"), q_tensor, 0.0F);
    vector(in_layer(i, "attn_k.bias"), kv, 0.0F);
    vector(in_layer(i, "attn_v.bias"), kv, 0.0F);
  }
  if (inner_biases && kv > 0) vector(in_layer(i, "attn_output.bias"), d, 0.0F);
  if (style_.sinks && kv > 0) vector(in_layer(i, "attn_sinks.weight"), spec.heads, 0.5F);
  const bool dense = ff > 0 && (!has_experts(i) || style_.experts.beside);
  if (inner_biases && dense) {
    if (gated) vector(in_layer(i, "ffn_gate.bias"), ff, 0.0F);
    vector(in_layer(i, "ffn_up.bias"), ff, 0.0F);
    vector(in_layer(i, "ffn_down.bias"), d, 0.0F);
  }
  if (style_.attention_gate == AttentionGate::kOwn && kv > 0) {
    const int32_t gates = spec.gate_by_head ? spec.heads : q;
    matrix(in_layer(i, "attn_gate.weight"), gates, d, spec.type);
    if (input_biases) vector(in_layer(i, "attn_gate.bias"), gates, 0.0F);
  }
  if (style_.head_norms == HeadNorms::kOwnOfEach && spec.biases) {
    matrix(in_layer(i, "attn_q_norm.weight"), spec.heads, spec.head_dim, DType::kF32);
    matrix(in_layer(i, "attn_k_norm.weight"), kv_heads(i), spec.head_dim, DType::kF32);
  }
  const bool absent = style_.head_norms == HeadNorms::kMayBeEach && !spec.biases;
  if (kv > 0 && style_.head_norms != HeadNorms::kNone &&
      style_.head_norms != HeadNorms::kOwnOfEach && !absent) {
    const bool all = style_.head_norms == HeadNorms::kAllHeads;
    vector(in_layer(i, "attn_q_norm.weight"), all ? q : head_dim(i), 1.0F);
    vector(in_layer(i, "attn_k_norm.weight"), all ? kv : head_dim(i), 1.0F);
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
  if (ff > 0 && style_.norm_before && !one_norm(i)) norm_tensors(in_layer(i, style_.ffn_norm));
  if (ff > 0 && has_experts(i)) expert_tensors(i);
  if (dense) {
    if (gated) matrix(in_layer(i, "ffn_gate.weight"), ff, d, spec.type);
    matrix(in_layer(i, "ffn_up.weight"), fused ? 2 * ff : ff, d, spec.type);
    matrix(in_layer(i, "ffn_down.weight"), d, ff, v_type);
  }
  if (style_.norm_after) norm_tensors(in_layer(i, "post_ffw_norm"));
  if (style_.layer_scale) vector(in_layer(i, "layer_output_scale.weight"), 1, 1.0F);
  if (spec.layer_input == 0) return;
  matrix(in_layer(i, "inp_gate.weight"), spec.layer_input, d, spec.type);
  matrix(in_layer(i, "proj.weight"), d, spec.layer_input, spec.type);
  norm_tensors(in_layer(i, "post_norm"));
}

void TinyModel::norm_tensors(const std::string& name) {
  if (style_.norms.weight) vector(name + ".weight", spec_.hidden, 1.0F);
  if (has(style_.norms.bias, spec_.biases)) vector(name + ".bias", spec_.hidden, 0.0F);
}

/// In [-0.5, 0.5): a plain scale of the generator's bits, alike on every machine.
float TinyModel::next() { return static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F; }

void TinyModel::matrix(const std::string& name, int32_t rows, int32_t cols, DType type,
                       int32_t matrices) {
  if (static_cast<uint32_t>(cols) % dtype_info(type)->block_elements != 0) type = DType::kF32;
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
  write_weights(type, values.data(), data.data(), static_cast<int64_t>(count));
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

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// See tiny_assistant.h.
#include "support/tiny_assistant.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "quant/format.h"
#include "support/reference_act.h"
#include "support/tiny_model_parts.h"
#include "support/weight_blocks.h"

namespace gen::test {
namespace {

constexpr float kAssistantEps = 1e-6F;

}  // namespace

TinyAssistant::TinyAssistant(const TinyModel& target, TinyAssistantSpec spec)
    : target_(target), spec_(std::move(spec)), random_(spec_.seed) {
  keys();
  const TinyModelSpec& of = target_.spec();
  tensor("token_embd.weight", {spec_.hidden, of.vocab});
  tensor("nextn.pre_projection.weight", {2 * of.hidden, spec_.hidden});
  tensor("nextn.post_projection.weight", {spec_.hidden, of.hidden});
  tensor("output_norm.weight", {spec_.hidden}, true);
  for (size_t i = 0; i < spec_.local.size(); ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    const int32_t dim = target_.head_dim(read_by(i));
    for (const char* name : {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}) {
      tensor(block + name + ".weight", {spec_.hidden}, true);
    }
    tensor(block + "attn_q.weight", {spec_.hidden, spec_.heads * dim});
    tensor(block + "attn_q_norm.weight", {dim}, true);
    tensor(block + "attn_output.weight", {spec_.heads * dim, spec_.hidden});
    tensor(block + "ffn_gate.weight", {spec_.hidden, spec_.feed_forward});
    tensor(block + "ffn_up.weight", {spec_.hidden, spec_.feed_forward});
    tensor(block + "ffn_down.weight", {spec_.feed_forward, spec_.hidden});
    tensor(block + "layer_output_scale.weight", {1}, true);
  }
  if (spec_.centroids) {
    tensor("masked_embd_centroids.weight", {spec_.hidden, 8});
    tensor("masked_embd_ordering", {of.vocab});
  }
  if (!spec_.extra.empty()) tensor(spec_.extra, {4});
  const std::vector<float>& factors =
      spec_.freq_factors.empty() ? of.freq_factors : spec_.freq_factors;
  if (factors.empty() || spec_.without == "rope_freqs.weight") return;
  const auto bytes = std::as_bytes(std::span(factors));
  writer_.tensor("rope_freqs.weight", 0, {factors.size()}, {bytes.begin(), bytes.end()});
}

void TinyAssistant::keys() {
  const TinyModelSpec& of = target_.spec();
  const auto set = [&](const std::string& name, int32_t value) {
    if (name == spec_.without) return;
    const auto other = spec_.other.find(name);
    writer_.set("gemma4-assistant." + name,
                other != spec_.other.end() ? other->second : static_cast<uint32_t>(value));
  };
  const auto n = static_cast<int32_t>(spec_.local.size());
  writer_.set_string("general.architecture", "gemma4-assistant");
  set("context_length", of.context);
  set("block_count", n);
  set("nextn_predict_layers", n);
  set("embedding_length", spec_.hidden);
  set("embedding_length_out", of.hidden);
  set("feed_forward_length", spec_.feed_forward);
  set("attention.head_count", spec_.heads);
  if (of.layer_kv_heads.empty()) {
    set("attention.head_count_kv", of.kv_heads);
  } else {
    std::vector<uint32_t> each;
    for (size_t i = 0; i < spec_.local.size(); ++i) {
      each.push_back(static_cast<uint32_t>(target_.kv_heads(read_by(i))));
    }
    writer_.set_array("gemma4-assistant.attention.head_count_kv", each);
  }
  set("attention.key_length", of.head_dim);
  set("attention.value_length", of.head_dim);
  if (of.local_head_dim > 0) {
    set("attention.key_length_swa", of.local_head_dim);
    set("attention.value_length_swa", of.local_head_dim);
  }
  set("attention.sliding_window", of.window);
  set("attention.shared_kv_layers", n);
  if (spec_.without != "attention.sliding_window_pattern") {
    writer_.set_array("gemma4-assistant.attention.sliding_window_pattern", spec_.local);
  }
  writer_.set("gemma4-assistant.attention.layer_norm_rms_epsilon", kAssistantEps);
  writer_.set("gemma4-assistant.rope.freq_base",
              spec_.rope_base != 0.0F ? spec_.rope_base : of.rope_base);
}

void TinyAssistant::tensor(const std::string& name, std::vector<int32_t> shape, bool norm) {
  if (name == spec_.without) return;
  if (name == spec_.misshapen) ++shape[0];
  names_.push_back(name);
  size_t n = 1;
  for (const int32_t dim : shape) n *= static_cast<size_t>(dim);
  std::vector<float> values(n);
  const float scale = norm ? 1.0F : 4.0F / std::sqrt(static_cast<float>(shape[0]));
  for (float& value : values) {
    value = (static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F) * scale + (norm ? 1.0F : 0.0F);
  }
  if (const auto own = spec_.set.find(name); own != spec_.set.end()) {
    values.assign(n, own->second.empty() ? 0.0F : own->second[0]);
    if (own->second.size() > 1) values = own->second;
  }
  DType type = shape.size() == 2 ? spec_.type : DType::kF32;
  const DTypeInfo* const info = dtype_info(type);
  if (static_cast<uint32_t>(shape[0]) % info->block_elements != 0) type = DType::kF32;
  const quant::Format* const format = quant::find_format(type);
  std::vector<std::byte> data(n / dtype_info(type)->block_elements * dtype_info(type)->block_bytes);
  write_weights(type, values.data(), data.data(), static_cast<int64_t>(n));
  format->decode(data.data(), values.data(), static_cast<int64_t>(n));
  values_[name] = Row(values.begin(), values.end());
  writer_.tensor(name, static_cast<uint32_t>(type), {shape.begin(), shape.end()}, std::move(data));
}

int32_t TinyAssistant::read_by(size_t layer) const {
  int32_t at = target_.spec().layers - 1;
  while (target_.shares(at) || target_.has_window(at) != (spec_.local[layer] != 0)) --at;
  return at;
}

TinyAssistant::Row TinyAssistant::product(const std::string& name, const Row& x) const {
  const Row& weight = find(name + ".weight");
  Row y(weight.size() / x.size());
  for (size_t n = 0; n < y.size(); ++n) {
    for (size_t c = 0; c < x.size(); ++c) y[n] += weight[n * x.size() + c] * x[c];
  }
  return y;
}

TinyAssistant::Row TinyAssistant::norm(const std::string& name, const Row& x) const {
  const Row& weight = find(name + ".weight");
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  const double size =
      std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(kAssistantEps));
  Row y = x;
  for (size_t i = 0; i < y.size(); ++i) y[i] *= weight[i] / size;
  return y;
}

TinyAssistant::Row TinyAssistant::attend(size_t layer, const TinyModel::Kept& kept, const Row& x,
                                         int32_t position) const {
  const std::string block = "blk." + std::to_string(layer) + ".";
  const int32_t from = read_by(layer);
  const auto dim = static_cast<size_t>(target_.head_dim(from));
  const auto heads = static_cast<size_t>(spec_.heads);
  const size_t group = heads / static_cast<size_t>(target_.kv_heads(from));
  const Row q = product(block + "attn_q", x);
  Row all;
  for (size_t h = 0; h < heads; ++h) {
    const auto first = q.begin() + static_cast<std::ptrdiff_t>(h * dim);
    Row head = norm(block + "attn_q_norm", Row(first, first + static_cast<std::ptrdiff_t>(dim)));
    target_.rotate(head.data(), from, position);
    const size_t g = h / group * dim;
    Row attended(dim);
    double total = 0.0;
    for (int32_t e = 0; e < position; ++e) {
      if (target_.has_window(from) && position - e >= target_.spec().window) continue;
      const auto entry = static_cast<size_t>(e);
      double score = 0.0;
      for (size_t i = 0; i < dim; ++i) score += head[i] * kept.keys[entry][g + i];
      total += std::exp(score);
      for (size_t i = 0; i < dim; ++i) attended[i] += std::exp(score) * kept.values[entry][g + i];
    }
    for (const double value : attended) all.push_back(value / total);
  }
  return product(block + "attn_output", all);
}

TinyAssistant::Drafted TinyAssistant::drafted(const std::vector<int32_t>& text, int32_t token,
                                              const std::vector<float>& features) const {
  std::vector<TinyModel::Kept> kept;
  static_cast<void>(target_.run(text, target_.spec().layers, &kept));
  Row both = target_.embedded("token_embd", token);
  both.insert(both.end(), features.begin(), features.end());
  Row x = product("nextn.pre_projection", both);
  const auto add = [&x](const Row& made) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += made[i];
  };
  for (size_t i = 0; i < spec_.local.size(); ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    const TinyModel::Kept& of = kept[static_cast<size_t>(read_by(i))];
    add(norm(block + "post_attention_norm",
             attend(i, of, norm(block + "attn_norm", x), static_cast<int32_t>(text.size()))));
    const Row y = norm(block + "ffn_norm", x);
    const Row gate = product(block + "ffn_gate", y);
    Row up = product(block + "ffn_up", y);
    for (size_t j = 0; j < up.size(); ++j) {
      up[j] = reference_gated({.kind = engine::Act::kGelu}, gate[j], up[j]);
    }
    add(norm(block + "post_ffw_norm", product(block + "ffn_down", up)));
    for (double& value : x) value *= find(block + "layer_output_scale.weight")[0];
  }
  const Row last = norm("output_norm", x);
  return {product("token_embd", last), product("nextn.post_projection", last)};
}

}  // namespace gen::test

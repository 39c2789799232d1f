// SPDX-License-Identifier: Apache-2.0
// Making tiny models and computing them by hand. See tiny_model.h.
#include "support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "quant/format.h"

namespace gen::test {
namespace {

constexpr double kEps = 1e-5;
constexpr int32_t kMixWidth = 40;  // no multiple of 16

std::string in_layer(int32_t index, const char* name) {
  return "blk." + std::to_string(index) + "." + name;
}

}  // namespace

TinyModel::TinyModel(const TinyModelSpec& spec) : spec_(spec), random_(spec.seed) {
  const std::string a = spec.architecture + ".";
  const auto u32 = [](int32_t value) { return static_cast<uint32_t>(value); };
  writer_.set_string("general.architecture", spec.architecture)
      .set(a + "context_length", u32(spec.context))
      .set(a + "block_count", u32(spec.layers))
      .set(a + "embedding_length", u32(spec.hidden))
      .set(a + "attention.head_count", u32(spec.heads))
      .set(a + "attention.key_length", u32(spec.head_dim))
      .set(a + "attention.value_length", u32(spec.head_dim))
      .set(a + "attention.layer_norm_rms_epsilon", static_cast<float>(kEps))
      .set(a + "rope.freq_base", spec.rope_base);
  const auto set_layers = [&](const char* key, const std::vector<uint32_t>& each, int32_t all) {
    if (each.empty()) {
      writer_.set(a + key, u32(all));
    } else {
      writer_.set_array<uint32_t>(a + key, each);
    }
  };
  set_layers("feed_forward_length", spec.layer_feed_forward, spec.feed_forward);
  set_layers("attention.head_count_kv", spec.layer_kv_heads, spec.kv_heads);
  if (!spec.shares.empty()) writer_.set_array<uint32_t>(a + "attention.shares", spec.shares);
  if (spec.local_rope_base != 0.0F) writer_.set(a + "rope.local_freq_base", spec.local_rope_base);
  if (spec.linear_factor != 1.0F) {
    writer_.set_string(a + "rope.scaling.type", "linear")
        .set(a + "rope.scaling.factor", spec.linear_factor);
  }
  if (spec.window > 0) writer_.set(a + "attention.sliding_window", u32(spec.window));
  if (spec.chunk > 0) writer_.set(a + "attention.chunk_size", u32(spec.chunk));
  if (!spec.local.empty()) {
    writer_.set_array<uint32_t>(a + "attention.sliding_window_pattern", spec.local);
  }

  const int32_t d = spec.hidden;
  const int32_t q = spec.heads * spec.head_dim;
  const DType v_type = spec.v_type == DType::kF32 ? spec.type : spec.v_type;
  const bool qkv_biases = spec.biases || spec.architecture == "qwen2";
  matrix("token_embd.weight", spec.vocab, d, spec.type);
  for (int32_t i = 0; i < spec.layers; ++i) {
    const int32_t kv = kv_heads(i) * spec.head_dim;
    const int32_t ff = feed_forward(i);
    const bool stores = kv > 0 && !shares(i);
    if (kv > 0) {
      vector(in_layer(i, "attn_norm.weight"), d, 1.0F);
      matrix(in_layer(i, "attn_q.weight"), q, d, spec.type);
    }
    if (stores) {
      matrix(in_layer(i, "attn_k.weight"), kv, d, spec.type);
      matrix(in_layer(i, "attn_v.weight"), kv, d, v_type);
    }
    if (kv > 0) matrix(in_layer(i, "attn_output.weight"), d, q, spec.type);
    if (qkv_biases) {
      vector(in_layer(i, "attn_q.bias"), q, 0.0F);
      vector(in_layer(i, "attn_k.bias"), kv, 0.0F);
      vector(in_layer(i, "attn_v.bias"), kv, 0.0F);
    }
    if (spec.biases && spec.architecture == "llama") {
      vector(in_layer(i, "attn_output.bias"), d, 0.0F);
      vector(in_layer(i, "ffn_gate.bias"), ff, 0.0F);
      vector(in_layer(i, "ffn_up.bias"), ff, 0.0F);
      vector(in_layer(i, "ffn_down.bias"), d, 0.0F);
    }
    if (spec.architecture == "qwen3") {
      vector(in_layer(i, "attn_q_norm.weight"), spec.head_dim, 1.0F);
      vector(in_layer(i, "attn_k_norm.weight"), spec.head_dim, 1.0F);
    }
    if (recurs(i)) {
      vector(in_layer(i, "mix_norm.weight"), d, 1.0F);
      vector(in_layer(i, "mix_a_norm.weight"), d, 0.0F);  // so that most states fade
      for (const char* name : {"mix_a.weight", "mix_b.weight", "mix_v.weight"}) {
        matrix(in_layer(i, name), kMixWidth, d, spec.type);
      }
      matrix(in_layer(i, "mix_out.weight"), d, kMixWidth, spec.type);
    }
    vector(in_layer(i, "ffn_norm.weight"), d, 1.0F);
    matrix(in_layer(i, "ffn_gate.weight"), ff, d, spec.type);
    matrix(in_layer(i, "ffn_up.weight"), ff, d, spec.type);
    matrix(in_layer(i, "ffn_down.weight"), d, ff, v_type);
  }
  vector("output_norm.weight", d, 1.0F);
  if (!spec.tied) matrix("output.weight", spec.vocab, d, spec.type);
  if (!spec.freq_factors.empty()) {
    const auto bytes = std::as_bytes(std::span(spec.freq_factors));
    writer_.tensor("rope_freqs.weight", 0, {spec.freq_factors.size()},
                   {bytes.begin(), bytes.end()});
  }
}

/// In [-0.5, 0.5): a plain scale of the generator's bits, alike on every machine.
float TinyModel::next() { return static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F; }

void TinyModel::matrix(const std::string& name, int32_t rows, int32_t cols, DType type) {
  const auto count = static_cast<size_t>(rows) * static_cast<size_t>(cols);
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
  writer_.tensor(name, static_cast<uint32_t>(type),
                 {static_cast<uint64_t>(cols), static_cast<uint64_t>(rows)}, std::move(data));
}

void TinyModel::vector(const std::string& name, int32_t size, float around) {
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = around + next();
  tensors_[name] = Row(values.begin(), values.end());
  const auto bytes = std::as_bytes(std::span(values));
  writer_.tensor(name, 0, {static_cast<uint64_t>(size)}, {bytes.begin(), bytes.end()});
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

TinyModel::Row TinyModel::norm(const std::string& name, const Row& x) const {
  const Row& weight = *find(name + ".weight");
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
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

bool TinyModel::is_local(int32_t index) const {
  return spec_.local.empty() || spec_.local[static_cast<size_t>(index)] != 0;
}

void TinyModel::rotate(double* head, int32_t position, double base) const {
  const int32_t half = spec_.head_dim / 2;
  const bool adjacent =
      spec_.architecture == "llama" || spec_.architecture == "toy" || spec_.architecture == "drift";
  for (int32_t i = 0; i < half; ++i) {
    double angle = position * std::pow(base, -2.0 * i / spec_.head_dim);
    if (!spec_.freq_factors.empty()) {
      angle /= static_cast<double>(spec_.freq_factors[static_cast<size_t>(i)]);
    }
    angle /= static_cast<double>(spec_.linear_factor);
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
  const float base =
      is_local(index) && spec_.local_rope_base != 0.0F ? spec_.local_rope_base : spec_.rope_base;
  for (size_t first = 0; first < heads->size(); first += dim) {
    Row head(heads->begin() + static_cast<std::ptrdiff_t>(first),
             heads->begin() + static_cast<std::ptrdiff_t>(first + dim));
    if (spec_.architecture == "qwen3") head = norm(in_layer(index, norm_name), head);
    rotate(head.data(), position, static_cast<double>(base));
    std::copy(head.begin(), head.end(), heads->begin() + static_cast<std::ptrdiff_t>(first));
  }
}

void TinyModel::attend(int32_t index, std::vector<Kept>* kept, std::vector<Row>* hidden) const {
  const auto dim = static_cast<size_t>(spec_.head_dim);
  std::vector<Row> queries;
  Kept& own = (*kept)[static_cast<size_t>(index)];
  for (size_t t = 0; t < hidden->size(); ++t) {
    const Row x = norm(in_layer(index, "attn_norm"), (*hidden)[t]);
    const auto position = static_cast<int32_t>(t);
    queries.push_back(product(in_layer(index, "attn_q"), x));
    turn_heads(index, "attn_q_norm", position, &queries.back());
    if (shares(index)) continue;
    own.keys.push_back(product(in_layer(index, "attn_k"), x));
    own.values.push_back(product(in_layer(index, "attn_v"), x));
    turn_heads(index, "attn_k_norm", position, &own.keys.back());
  }
  if (shares(index)) own = (*kept)[spec_.shares[static_cast<size_t>(index)] - 1];
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
        weights[e] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        total += weights[e];
      }
      for (size_t i = 0; i < dim; ++i) {
        for (size_t e = 0; e <= t; ++e) {
          attended[h * dim + i] += weights[e] / total * own.values[e][g * dim + i];
        }
      }
    }
    Row& x = (*hidden)[t];
    const Row out = product(in_layer(index, "attn_output"), attended);
    for (size_t i = 0; i < x.size(); ++i) x[i] += out[i];
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

void TinyModel::mix(int32_t index, std::vector<Row>* hidden) const {
  for (Row& x : *hidden) {
    const Row y = norm(in_layer(index, "ffn_norm"), x);
    Row gate = product(in_layer(index, "ffn_gate"), y);
    const Row up = product(in_layer(index, "ffn_up"), y);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0 + std::exp(-gate[i]));
    const Row down = product(in_layer(index, "ffn_down"), gate);
    for (size_t i = 0; i < x.size(); ++i) x[i] += down[i];
  }
}

std::vector<double> TinyModel::logits(const std::vector<int32_t>& tokens, int32_t layers) const {
  const Row& table = *find("token_embd.weight");
  const auto d = static_cast<size_t>(spec_.hidden);
  std::vector<Row> hidden;
  for (const int32_t token : tokens) {
    const auto first = table.begin() + static_cast<std::ptrdiff_t>(token) * spec_.hidden;
    hidden.emplace_back(first, first + static_cast<std::ptrdiff_t>(d));
  }
  std::vector<Kept> kept(static_cast<size_t>(spec_.layers));
  for (int32_t i = 0; i < (layers > 0 ? layers : spec_.layers); ++i) {
    if (kv_heads(i) > 0) attend(i, &kept, &hidden);
    if (recurs(i)) recur(i, &hidden);
    mix(i, &hidden);
  }
  std::vector<double> all;
  for (const Row& x : hidden) {
    const Row row = product(spec_.tied ? "token_embd" : "output", norm("output_norm", x));
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace gen::test

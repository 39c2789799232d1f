// SPDX-License-Identifier: Apache-2.0
// Tensors and values of the recurrent blocks of tiny models, in double precision and by their
// definition alone.
#include <cmath>
#include <string>

#include "support/tiny_model.h"
#include "support/tiny_model_parts.h"

namespace gen::test {

using model::arch::Recurrence;

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

}  // namespace

bool TinyModel::has_recurrence(int32_t index) const {
  if (style_.recurrence == Recurrence::kNone) return false;
  const int32_t every = spec_.attention_every;
  return (index + 1) % every != 0;
}

void TinyModel::recurrence_keys() {
  const auto set = [&](const char* key, int32_t value) {
    writer_.set(spec_.architecture + "." + key, static_cast<uint32_t>(value));
  };
  if (spec_.draft_layers > 0) set("nextn_predict_layers", spec_.draft_layers);
  if (style_.attention_every > 0) set("full_attention_interval", spec_.attention_every);
  if (style_.recurrence == Recurrence::kShortConvolution) set("shortconv.l_cache", spec_.taps);
  if (style_.recurrence != Recurrence::kDeltaNet) return;
  set("ssm.conv_kernel", spec_.taps);
  set("ssm.inner_size", spec_.inner);
  set("ssm.state_size", spec_.state_size);
  set("ssm.time_step_rank", spec_.state_heads);
  set("ssm.group_count", spec_.state_groups);
}

void TinyModel::recurrence_tensors(int32_t i) {
  const int32_t d = spec_.hidden;
  const auto product = [&](const char* name, int32_t rows, int32_t cols) {
    matrix(in_layer(i, name), rows, cols, spec_.type);
  };
  const auto weights = [&](const char* name, int32_t channels) {
    matrix(in_layer(i, name), channels, spec_.taps, DType::kF32);
  };
  if (style_.norm_before) norm_tensors(in_layer(i, "attn_norm"));
  if (style_.recurrence == Recurrence::kShortConvolution) {
    product("shortconv.in_proj.weight", 3 * d, d);
    product("shortconv.out_proj.weight", d, d);
    weights("shortconv.conv.weight", d);
    return;
  }
  const int32_t channels = 2 * spec_.state_groups * spec_.state_size + spec_.inner;
  product("attn_qkv.weight", channels, d);
  product("attn_gate.weight", spec_.inner, d);
  product("ssm_alpha.weight", spec_.state_heads, d);
  product("ssm_beta.weight", spec_.state_heads, d);
  product("ssm_out.weight", d, spec_.inner);
  weights("ssm_conv1d.weight", channels);
  vector(in_layer(i, "ssm_dt.bias"), spec_.state_heads, 0.0F);
  vector(in_layer(i, "ssm_a"), spec_.state_heads, -0.6F);
  vector(in_layer(i, "ssm_norm.weight"), spec_.inner / spec_.state_heads, 1.0F);
}

std::vector<TinyModel::Row> TinyModel::convolved(const std::string& name,
                                                 const std::vector<Row>& in) const {
  const Row& weights = *find(name);
  const auto taps = static_cast<size_t>(spec_.taps);
  std::vector<Row> out;
  for (size_t t = 0; t < in.size(); ++t) {
    Row row(in[t].size());
    for (size_t c = 0; c < row.size(); ++c) {
      for (size_t j = 0; j < taps && j <= t; ++j) {
        row[c] += weights[c * taps + taps - 1 - j] * in[t - j][c];
      }
    }
    out.push_back(row);
  }
  return out;
}

std::vector<TinyModel::Row> TinyModel::short_convolution(int32_t index,
                                                         const std::vector<Row>& in) const {
  const auto d = static_cast<size_t>(spec_.hidden);
  std::vector<Row> inner;
  std::vector<Row> gates;
  for (const Row& x : in) {
    const Row all = product(in_layer(index, "shortconv.in_proj"), x);
    Row row(d);
    for (size_t i = 0; i < d; ++i) row[i] = all[i] * all[2 * d + i];
    inner.push_back(row);
    gates.emplace_back(all.begin() + spec_.hidden, all.begin() + 2 * spec_.hidden);
  }
  std::vector<Row> rows = convolved(in_layer(index, "shortconv.conv.weight"), inner);
  for (size_t t = 0; t < rows.size(); ++t) {
    for (size_t i = 0; i < d; ++i) rows[t][i] *= gates[t][i];
    rows[t] = product(in_layer(index, "shortconv.out_proj"), rows[t]);
  }
  return rows;
}

/// Heads of values h take the keys of head h mod groups. The state is [k][v].
std::vector<TinyModel::Row> TinyModel::delta_net(int32_t index, const std::vector<Row>& in) const {
  const auto heads = static_cast<size_t>(spec_.state_heads);
  const auto groups = static_cast<size_t>(spec_.state_groups);
  const auto k_dim = static_cast<size_t>(spec_.state_size);
  const size_t v_dim = static_cast<size_t>(spec_.inner) / heads;
  std::vector<Row> mixed;
  mixed.reserve(in.size());
  for (const Row& x : in) mixed.push_back(product(in_layer(index, "attn_qkv"), x));
  mixed = convolved(in_layer(index, "ssm_conv1d.weight"), mixed);
  std::vector<Row> states(heads, Row(k_dim * v_dim));
  std::vector<Row> out;
  for (size_t t = 0; t < in.size(); ++t) {
    for (double& value : mixed[t]) value = silu(value);
    const Row alpha = product(in_layer(index, "ssm_alpha"), in[t]);
    const Row beta = product(in_layer(index, "ssm_beta"), in[t]);
    const Row gate = product(in_layer(index, "attn_gate"), in[t]);
    Row made;
    for (size_t h = 0; h < heads; ++h) {
      const auto unit = [&](size_t first) {
        Row x(mixed[t].begin() + static_cast<std::ptrdiff_t>(first),
              mixed[t].begin() + static_cast<std::ptrdiff_t>(first + k_dim));
        double squares = 1e-5;
        for (const double value : x) squares += value * value;
        for (double& value : x) value /= std::sqrt(squares);
        return x;
      };
      const Row q = unit(h % groups * k_dim);
      const Row k = unit((groups + h % groups) * k_dim);
      const double open =
          std::log1p(std::exp(alpha[h] + (*find(in_layer(index, "ssm_dt.bias")))[h]));
      const double decay = std::exp((*find(in_layer(index, "ssm_a")))[h] * open);
      Row& s = states[h];
      Row y(v_dim);
      for (size_t j = 0; j < v_dim; ++j) {
        double seen = 0.0;
        for (size_t i = 0; i < k_dim; ++i) seen += decay * s[i * v_dim + j] * k[i];
        const double v = mixed[t][2 * groups * k_dim + h * v_dim + j];
        for (size_t i = 0; i < k_dim; ++i) {
          double& cell = s[i * v_dim + j];
          cell = decay * cell + k[i] * sigmoid(beta[h]) * (v - seen);
          y[j] += cell * q[i] / std::sqrt(static_cast<double>(k_dim));
        }
      }
      y = norm(in_layer(index, "ssm_norm"), y);
      for (size_t j = 0; j < v_dim; ++j) made.push_back(y[j] * silu(gate[h * v_dim + j]));
    }
    out.push_back(product(in_layer(index, "ssm_out"), made));
  }
  return out;
}

void TinyModel::add_recurrence(int32_t index, std::vector<Row>* hidden) const {
  std::vector<Row> in;
  in.reserve(hidden->size());
  for (const Row& x : *hidden) in.push_back(norm_before(index, "attn_norm", x));
  const std::vector<Row> made = style_.recurrence == Recurrence::kDeltaNet
                                    ? delta_net(index, in)
                                    : short_convolution(index, in);
  for (size_t t = 0; t < made.size(); ++t) {
    add(&(*hidden)[t], norm_after(index, "post_attention_norm", made[t]));
  }
}

}  // namespace gen::test

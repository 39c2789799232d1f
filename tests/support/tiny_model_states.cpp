// SPDX-License-Identifier: Apache-2.0
// Tensors and values of the recurrent blocks of tiny models, in double precision and by their
// definition alone.
#include <cmath>
#include <string>

#include "support/tiny_model.h"
#include "support/tiny_model_parts.h"

namespace gen::test {

using model::arch::Recurrence;
using model::arch::Recurs;

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
std::ptrdiff_t at(size_t i) { return static_cast<std::ptrdiff_t>(i); }

}  // namespace

bool TinyModel::has_recurrence(int32_t index) const {
  if (style_.recurrence == Recurrence::kNone) return false;
  if (index >= spec_.layers) return false;  // blocks that draft attend
  switch (style_.recurs) {
    case Recurs::kInstead:
      return (index + 1) % spec_.attention_every != 0;
    case Recurs::kAlone:
      return index % 3 == 0;
    case Recurs::kOnly:
    case Recurs::kBeside:
      break;
  }
  return true;
}

void TinyModel::recurrence_keys() {
  const auto set = [&](const char* key, int32_t value) {
    writer_.set(spec_.architecture + "." + key, static_cast<uint32_t>(value));
  };
  if (spec_.draft_layers > 0) set("nextn_predict_layers", spec_.draft_layers);
  if (style_.attention_every > 0) set("full_attention_interval", spec_.attention_every);
  if (style_.recurrence == Recurrence::kShortConvolution) set("shortconv.l_cache", spec_.taps);
  if (style_.recurrence < Recurrence::kMamba && style_.recurrence != Recurrence::kDeltaNet) return;
  set("ssm.conv_kernel", spec_.taps);
  set("ssm.inner_size", spec_.inner);
  set("ssm.state_size", spec_.state_size);
  set("ssm.time_step_rank", spec_.state_heads);
  if (style_.recurrence != Recurrence::kMamba) set("ssm.group_count", spec_.state_groups);
  if (spec_.part_norms) writer_.set(spec_.architecture + ".ssm.dt_b_c_rms", true);
}

void TinyModel::recurrence_tensors(int32_t i) {
  const int32_t d = spec_.hidden;
  const auto product = [&](const char* name, int32_t rows, int32_t cols) {
    matrix(in_layer(i, name), rows, cols, spec_.type);
  };
  const auto weights = [&](const char* name, int32_t channels) {
    matrix(in_layer(i, name), channels, spec_.taps, DType::kF32);
  };
  if (style_.norm_before && kv_heads(i) == 0) norm_tensors(in_layer(i, "attn_norm"));
  if (style_.recurrence == Recurrence::kMamba || style_.recurrence == Recurrence::kMamba2) {
    mamba_tensors(i);
    return;
  }
  if (style_.recurrence == Recurrence::kShortConvolution) {
    product("shortconv.in_proj.weight", 3 * d, d);
    product("shortconv.out_proj.weight", d, d);
    weights("shortconv.conv.weight", d);
    return;
  }
  const int32_t channels = 2 * spec_.state_groups * spec_.state_size + spec_.inner;
  product("attn_qkv.weight", channels, d);
  product("attn_gate.weight", spec_.inner, d);
  if (spec_.fused_gates) {
    product("ssm_ba.weight", 2 * spec_.state_heads, d);
  } else {
    product("ssm_alpha.weight", spec_.state_heads, d);
    product("ssm_beta.weight", spec_.state_heads, d);
  }
  product("ssm_out.weight", d, spec_.inner);
  weights("ssm_conv1d.weight", channels);
  vector(in_layer(i, "ssm_dt.bias"), spec_.state_heads, 0.0F);
  vector(in_layer(i, "ssm_a"), spec_.state_heads, -0.6F);
  vector(in_layer(i, "ssm_norm.weight"), spec_.inner / spec_.state_heads, 1.0F);
}

void TinyModel::mamba_tensors(int32_t i) {
  const int32_t d = spec_.hidden;
  const int32_t inner = spec_.inner;
  const int32_t n = spec_.state_size;
  const int32_t heads = spec_.state_heads;
  const bool first = style_.recurrence == Recurrence::kMamba;
  const int32_t channels = first ? inner : inner + 2 * spec_.state_groups * n;
  matrix(in_layer(i, "ssm_in.weight"), first ? 2 * inner : inner + channels + heads, d, spec_.type);
  matrix(in_layer(i, "ssm_conv1d.weight"), channels, spec_.taps, DType::kF32);
  vector(in_layer(i, "ssm_conv1d.bias"), channels, 0.0F);
  matrix(in_layer(i, "ssm_out.weight"), d, inner, spec_.type);
  if (first) {
    matrix(in_layer(i, "ssm_x.weight"), heads + 2 * n, inner, spec_.type);
    matrix(in_layer(i, "ssm_dt.weight"), inner, heads, spec_.type);
    vector(in_layer(i, "ssm_dt.bias"), inner, 0.0F);
    vector(in_layer(i, "ssm_a"), n, -0.6F, inner);
    vector(in_layer(i, "ssm_d"), inner, 1.0F);
    if (!style_.recurrent_norms) return;
    vector(in_layer(i, "ssm_dt_norm.weight"), heads, 1.0F);
    vector(in_layer(i, "ssm_b_norm.weight"), n, 1.0F);
    vector(in_layer(i, "ssm_c_norm.weight"), n, 1.0F);
    return;
  }
  vector(in_layer(i, "ssm_dt.bias"), heads, 0.0F);
  vector(in_layer(i, "ssm_a"), 1, -0.6F, heads);
  vector(in_layer(i, "ssm_d"), 1, 1.0F, heads);
  const int32_t groups = spec_.state_groups;
  vector(in_layer(i, "ssm_norm.weight"), inner / groups, 1.0F, groups);
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
  const size_t each = heads / groups;
  std::vector<Row> mixed;
  mixed.reserve(in.size());
  for (const Row& x : in) mixed.push_back(product(in_layer(index, "attn_qkv"), x));
  mixed = convolved(in_layer(index, "ssm_conv1d.weight"), mixed);
  std::vector<Row> states(heads, Row(k_dim * v_dim));
  std::vector<Row> out;
  for (size_t t = 0; t < in.size(); ++t) {
    for (double& value : mixed[t]) value = silu(value);
    Row alpha;
    Row beta;
    if (spec_.fused_gates) {
      // By heads of keys: of each the betas of its heads of values, then their alphas.
      const Row both = product(in_layer(index, "ssm_ba"), in[t]);
      for (size_t h = 0; h < heads; ++h) {
        const size_t first = h / each * 2 * each + h % each;
        beta.push_back(both[first]);
        alpha.push_back(both[first + each]);
      }
    } else {
      alpha = product(in_layer(index, "ssm_alpha"), in[t]);
      beta = product(in_layer(index, "ssm_beta"), in[t]);
    }
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
      const size_t g = spec_.fused_gates ? h / each : h % groups;
      const Row q = unit(g * k_dim);
      const Row k = unit((groups + g) * k_dim);
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
  Row& after = delta_states_[index];
  after.clear();
  for (const Row& state : states) after.insert(after.end(), state.begin(), state.end());
  return out;
}

/// dt, b and c of a row, as the recurrence takes them.
struct TinyModel::MambaRow {
  Row u, z, dt, b, c;
};

/// u and what ssm_x makes of it.
std::vector<TinyModel::MambaRow> TinyModel::mamba_rows(int32_t index,
                                                       const std::vector<Row>& in) const {
  const auto inner = static_cast<size_t>(spec_.inner);
  const auto n = static_cast<size_t>(spec_.state_size);
  const auto heads = static_cast<size_t>(spec_.state_heads);
  const auto groups = static_cast<size_t>(spec_.state_groups);
  const bool first = style_.recurrence == Recurrence::kMamba;
  const auto part = [](const Row& of, size_t from, size_t count) {
    return Row(of.begin() + at(from), of.begin() + at(from + count));
  };
  const size_t channels = first ? inner : inner + 2 * groups * n;
  std::vector<MambaRow> rows(in.size());
  std::vector<Row> mixed;
  for (size_t t = 0; t < in.size(); ++t) {
    const Row all = product(in_layer(index, "ssm_in"), in[t]);
    rows[t].z = part(all, first ? inner : 0, inner);
    mixed.push_back(part(all, first ? 0 : inner, channels));
    if (!first) rows[t].dt = part(all, inner + channels, heads);
  }
  mixed = convolved(in_layer(index, "ssm_conv1d.weight"), mixed);
  const Row& bias = *find(in_layer(index, "ssm_conv1d.bias"));
  for (size_t t = 0; t < in.size(); ++t) {
    MambaRow& row = rows[t];
    for (size_t c = 0; c < channels; ++c) mixed[t][c] = silu(mixed[t][c] + bias[c]);
    row.u = part(mixed[t], 0, inner);
    if (!first) {
      row.b = part(mixed[t], inner, groups * n);
      row.c = part(mixed[t], inner + groups * n, groups * n);
      const Row& open = *find(in_layer(index, "ssm_dt.bias"));
      for (size_t h = 0; h < heads; ++h) row.dt[h] += open[h];
      continue;
    }
    const Row parts = product(in_layer(index, "ssm_x"), row.u);
    const auto normed = [&](const char* name, const Row& of) {
      return spec_.part_norms || style_.recurrent_norms ? norm(in_layer(index, name), of) : of;
    };
    row.b = normed("ssm_b_norm", part(parts, heads, n));
    row.c = normed("ssm_c_norm", part(parts, heads + n, n));
    // With its bias.
    row.dt = product(in_layer(index, "ssm_dt"), normed("ssm_dt_norm", part(parts, 0, heads)));
  }
  return rows;
}

std::vector<TinyModel::Row> TinyModel::mamba(int32_t index, const std::vector<Row>& in) const {
  const auto inner = static_cast<size_t>(spec_.inner);
  const auto n = static_cast<size_t>(spec_.state_size);
  const bool first = style_.recurrence == Recurrence::kMamba;
  const size_t heads = first ? inner : static_cast<size_t>(spec_.state_heads);
  const size_t groups = first ? 1 : static_cast<size_t>(spec_.state_groups);
  const Row& a = *find(in_layer(index, "ssm_a"));
  const Row& d = *find(in_layer(index, "ssm_d"));
  Row state(inner * n);
  std::vector<Row> out;
  for (const MambaRow& row : mamba_rows(index, in)) {
    Row y(inner);
    for (size_t p = 0; p < inner; ++p) {
      const size_t h = p / (inner / heads);
      const size_t group = h / (heads / groups) * n;
      const double delta = std::log1p(std::exp(row.dt[h]));
      for (size_t i = 0; i < n; ++i) {
        double& s = state[p * n + i];
        s = s * std::exp(delta * a[first ? p * n + i : h]) + delta * row.b[group + i] * row.u[p];
        y[p] += s * row.c[group + i];
      }
      y[p] = (y[p] + d[h] * row.u[p]) * silu(row.z[p]);
    }
    if (!first) {
      const Row& weight = *find(in_layer(index, "ssm_norm.weight"));
      const size_t size = inner / groups;
      for (size_t from = 0; from < inner; from += size) {
        const Row normed = norm("", Row(y.begin() + at(from), y.begin() + at(from + size)));
        for (size_t i = 0; i < size; ++i) y[from + i] = normed[i] * weight[from + i];
      }
    }
    out.push_back(product(in_layer(index, "ssm_out"), y));
  }
  return out;
}

std::vector<TinyModel::Row> TinyModel::recurrence(int32_t index, const std::vector<Row>& in) const {
  switch (style_.recurrence) {
    case Recurrence::kDeltaNet:
      return delta_net(index, in);
    case Recurrence::kShortConvolution:
      return short_convolution(index, in);
    case Recurrence::kMamba:
    case Recurrence::kMamba2:
      return mamba(index, in);
    case Recurrence::kNone:
      break;
  }
  return {};
}

void TinyModel::add_recurrence(int32_t index, const std::vector<Row>& in,
                               std::vector<Row>* hidden) const {
  std::vector<Row> normed;
  normed.reserve(in.size());
  for (const Row& x : in) normed.push_back(norm_before(index, "attn_norm", x));
  const std::vector<Row> made = recurrence(index, normed);
  for (size_t t = 0; t < made.size(); ++t) {
    add(&(*hidden)[t], norm_after(index, "post_attention_norm", made[t]));
  }
}

}  // namespace gen::test

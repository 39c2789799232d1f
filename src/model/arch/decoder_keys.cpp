// SPDX-License-Identifier: Apache-2.0
// Reading hyperparameters. One line for each key with its range; see decoder_keys.h.
#include "model/arch/decoder_keys.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/log.h"
#include "model/gguf/clean_name.h"

namespace gen::model::arch {
namespace {

// Far above every known model, and small enough that products of two fit 64 bits.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxHeadDim = 65536;
constexpr int64_t kMaxExperts = 2048;
constexpr int64_t kMaxContext = int64_t{1} << 30;
constexpr int64_t kMaxEntries = std::numeric_limits<int32_t>::max();

/// A key is missing whose value is known, since all models of the family have it.
void warn_of_default(const KeyReader& keys, const char* name, double value) {
  log(LogLevel::kWarning, "%s is missing: it is %g in all models of this architecture",
      keys.key(name).c_str(), value);
}

/// Heads of one block.
Status read_block(KeyReader& keys, const HParams& h, size_t block, graph::AttentionSpec* spec) {
  if (spec->n_heads % spec->n_kv_heads != 0) {
    return error(Code::kFormat, "%s is %d, which does not divide %d heads in layer %zu",
                 keys.key("attention.head_count_kv").c_str(), spec->n_kv_heads, spec->n_heads,
                 block);
  }
  const bool has_k = keys.has("attention.key_length");
  const bool has_v = keys.has("attention.value_length");
  if (!(has_k && has_v) && h.hidden % spec->n_heads != 0) {
    return error(Code::kFormat, "%s is %d, not a multiple of %d heads",
                 keys.key("embedding_length").c_str(), h.hidden, spec->n_heads);
  }
  const int64_t even_share = std::clamp<int64_t>(h.hidden / spec->n_heads, 1, kMaxHeadDim);
  GEN_TRY(keys.integer_or("attention.key_length", even_share, 1, kMaxHeadDim, &spec->k_dim));
  GEN_TRY(keys.integer_or("attention.value_length", even_share, 1, kMaxHeadDim, &spec->v_dim));
  double scale = 0.0;
  GEN_TRY(keys.number_or("attention.scale", 0.0, 0.0, 1e6, &scale));
  if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(spec->k_dim));
  spec->scale = static_cast<float>(scale);
  return {};
}

Status read_scaling(KeyReader& keys, const HParams& h, RopeParams* rope) {
  const char* factor_key =
      keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  GEN_TRY(keys.number_or(factor_key, 1.0, 0.0, 1e6, &rope->factor));
  if (rope->factor == 0.0) rope->factor = 1.0;  // files write 0 for none
  if (rope->factor < 1e-6) {
    return error(Code::kFormat, "%s is %g, outside [1e-06, 1e+06]", keys.key(factor_key).c_str(),
                 rope->factor);
  }
  std::string type;
  GEN_TRY(keys.text_or("rope.scaling.type", "linear", &type));
  if (type == "none") {
    rope->scaling = RopeScaling::kNone;
  } else if (type == "linear") {
    rope->scaling = rope->factor == 1.0 ? RopeScaling::kNone : RopeScaling::kLinear;
  } else if (type == "yarn") {
    rope->scaling = RopeScaling::kYarn;
  } else if (type == "llama3") {
    rope->scaling = RopeScaling::kLlama3;
  } else if (type == "longrope" && rope->long_factors) {
    rope->scaling = RopeScaling::kNone;
  } else {
    const int shown = gguf::is_clean_name(type) ? gguf::shown_length(type) : 0;
    return error(Code::kUnsupported, "%s \"%.*s\" is not supported (none, linear, yarn, llama3)",
                 keys.key("rope.scaling.type").c_str(), shown, type.c_str());
  }
  GEN_TRY(keys.integer_or("rope.scaling.original_context_length", h.context_length, 1, kMaxContext,
                          &rope->original_context));
  GEN_TRY(keys.number_or("rope.scaling.attn_factor", 1.0, 1e-6, 1e6, &rope->attn_factor));
  // A negative number says "by the scaling type" in these files.
  GEN_TRY(keys.number_or("rope.scaling.yarn_ext_factor", 1.0, -1.0, 1e3, &rope->yarn_ext_factor));
  if (rope->yarn_ext_factor < 0.0) rope->yarn_ext_factor = 1.0;
  GEN_TRY(keys.number_or("rope.scaling.yarn_beta_fast", 32.0, 1e-6, 1e6, &rope->yarn_beta_fast));
  GEN_TRY(keys.number_or("rope.scaling.yarn_beta_slow", 1.0, 1e-6, 1e6, &rope->yarn_beta_slow));
  GEN_TRY(keys.number_or("rope.scaling.low_freq_factor", 1.0, 1e-6, 1e6, &rope->low_freq_factor));
  GEN_TRY(keys.number_or("rope.scaling.high_freq_factor", 4.0, 1e-6, 1e6, &rope->high_freq_factor));
  if (rope->scaling == RopeScaling::kLlama3 && rope->high_freq_factor <= rope->low_freq_factor) {
    return error(Code::kFormat, "%s is %g, not above the low factor of %g",
                 keys.key("rope.scaling.high_freq_factor").c_str(), rope->high_freq_factor,
                 rope->low_freq_factor);
  }
  return {};
}

/// Not below 1e-6, so that quotients by it are finite; 0 means 1.
Status read_factor(KeyReader& keys, const char* name, float* out) {
  double value = 0.0;
  GEN_TRY(keys.number_or(name, 1.0, 0.0, 1e6, &value));
  if (value == 0.0) value = 1.0;
  if (value < 1e-6) {
    return error(Code::kFormat, "%s is %g, outside [1e-06, 1e+06]", keys.key(name).c_str(), value);
  }
  *out = static_cast<float>(value);
  return {};
}

Status read_cap(KeyReader& keys, const char* name, float absent, float* out) {
  double value = 0.0;
  GEN_TRY(keys.number_or(name, static_cast<double>(absent), 0.0, 1e6, &value));
  if (value != 0.0 && value < 1e-6) {
    return error(Code::kFormat, "%s is %g, outside [1e-06, 1e+06]", keys.key(name).c_str(), value);
  }
  *out = static_cast<float>(value);
  return {};
}

/// How a router chooses experts, except their number.
Status read_gating(KeyReader& keys, ExpertDefaults absent, engine::Routing* routing) {
  constexpr engine::Gating kGatings[] = {engine::Gating::kSoftmax, engine::Gating::kSigmoid,
                                         engine::Gating::kSoftmaxChosen,
                                         engine::Gating::kRootSoftplus};
  int32_t gating = 0;  // unspecified
  GEN_TRY(keys.integer_or("expert_gating_func", 0, 0, std::size(kGatings), &gating));
  routing->gating = gating == 0 ? absent.gating : kGatings[gating - 1];
  GEN_TRY(keys.flag_or("expert_weights_norm", absent.normalise, &routing->normalise));
  GEN_TRY(read_factor(keys, "expert_weights_scale", &routing->scale));
  int32_t& groups = routing->n_groups;
  int32_t& used = routing->n_groups_used;
  GEN_TRY(keys.integer_or("expert_group_count", 1, 0, routing->n_experts, &groups));
  groups = std::max(groups, 1);
  GEN_TRY(keys.integer_or("expert_group_used_count", groups, 0, groups, &used));
  if (used == 0) used = groups;
  if (routing->n_experts % groups != 0 || routing->n_experts / groups * used < routing->n_used) {
    return error(Code::kFormat, "%s is %d, but %d of %d experts are chosen from %d groups",
                 keys.key("expert_group_count").c_str(), groups, routing->n_used,
                 routing->n_experts, used);
  }
  return {};
}

/// The sizes of a recurrence, except for its heads.
Status read_state(KeyReader& keys, RecurrentParams* of) {
  GEN_TRY(keys.integer("ssm.conv_kernel", 2, engine::kMaxTaps, &of->taps));
  GEN_TRY(keys.integer("ssm.inner_size", 1, kMaxWidth, &of->inner));
  return keys.integer("ssm.state_size", 1, engine::kMaxStateSize, &of->state);
}

}  // namespace

Status read_model(KeyReader& keys, HParams* h, bool layer_norms, double eps) {
  GEN_TRY(keys.integer("context_length", 1, kMaxContext, &h->context_length));
  GEN_TRY(keys.integer("block_count", 1, kMaxLayers, &h->n_layers));
  h->layers.assign(static_cast<size_t>(h->n_layers), LayerParams());
  GEN_TRY(keys.integer("embedding_length", 1, kMaxWidth, &h->hidden));
  const char* const name =
      layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  if (eps > 0.0 && !keys.has(name)) {
    warn_of_default(keys, name, eps);
  } else {
    GEN_TRY(keys.number(name, 1e-20, 1.0, &eps));
  }
  h->norm_eps = static_cast<float>(eps);
  return {};
}

Status read_heads(KeyReader& keys, bool absent, HParams* h) {
  const int64_t least = absent ? 0 : 1;
  std::vector<int32_t> heads(h->layers.size());
  GEN_TRY(keys.per_layer("attention.head_count", least, kMaxHeads, &heads));
  std::vector<int32_t> kv_heads = heads;
  if (keys.has("attention.head_count_kv")) {
    GEN_TRY(keys.per_layer("attention.head_count_kv", least, kMaxHeads, &kv_heads));
  }
  for (size_t i = 0; i < h->layers.size(); ++i) {
    LayerParams& layer = h->layers[i];
    if (heads[i] == 0 || kv_heads[i] == 0) {
      layer.mixer = MixerKind::kNone;
      continue;
    }
    layer.attention.n_heads = heads[i];
    layer.attention.n_kv_heads = kv_heads[i];
    GEN_TRY(read_block(keys, *h, i, &layer.attention));
  }
  return {};
}

Status read_windows(KeyReader& keys, WindowDefaults absent, HParams* h) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  int32_t window = 0;
  int32_t chunk = 0;
  int32_t pattern = absent.pattern;
  constexpr const char* kWindow = "attention.sliding_window";
  if (!keys.has(kWindow)) {
    if (absent.needed) {
      return error(Code::kFormat,
                   "%s is missing: models of this architecture have windows of several widths",
                   keys.key(kWindow).c_str());
    }
    if (absent.window > 0) warn_of_default(keys, kWindow, absent.window);
  }
  GEN_TRY(keys.integer_or(kWindow, absent.window, 0, kMaxEntries, &window));
  GEN_TRY(keys.integer_or("attention.chunk_size", 0, 0, kMaxEntries, &chunk));
  std::vector<uint8_t> local(h->layers.size(), 1);
  if (keys.is_array(kPattern)) {
    GEN_TRY(keys.flags(kPattern, &local));
    if (!keys.has(kWindow) && window == 0 && chunk == 0 &&
        std::count(local.begin(), local.end(), 1) > 0) {
      return error(Code::kFormat, "%s is missing, but %s says that layers have a window",
                   keys.key(kWindow).c_str(), keys.key(kPattern).c_str());
    }
  } else {
    if (keys.has(kPattern)) GEN_TRY(keys.integer(kPattern, 1, kMaxLayers, &pattern));
    for (size_t i = 0; pattern > 0 && i < local.size(); ++i) {
      const auto every = static_cast<size_t>(pattern);
      local[i] = i % every != (absent.first ? 0 : every - 1) ? 1 : 0;
    }
  }
  for (size_t i = 0; i < local.size(); ++i) {
    if (local[i] == 0) continue;
    h->layers[i].attention.window = window;
    h->layers[i].attention.chunk = chunk;
  }
  return {};
}

Status read_rope(KeyReader& keys, const RopeParams& family, HParams* h) {
  RopeParams rope = family;
  // Files of models with the usual base need not say so.
  if (family.base != RopeParams().base && !keys.has("rope.freq_base")) {
    warn_of_default(keys, "rope.freq_base", family.base);
  }
  GEN_TRY(keys.number_or("rope.freq_base", family.base, 1.0 + 1e-6, 1e15, &rope.base));
  GEN_TRY(read_scaling(keys, *h, &rope));
  for (LayerParams& layer : h->layers) {
    if (layer.mixer != MixerKind::kAttention) continue;
    const int32_t k_dim = layer.attention.k_dim;
    GEN_TRY(keys.integer_or("rope.dimension_count", k_dim, 2, k_dim, &rope.n_dims));
    if (rope.n_dims % 2 != 0) {
      return error(Code::kFormat, "%s is %d, not even", keys.key("rope.dimension_count").c_str(),
                   rope.n_dims);
    }
    layer.rope = rope;
  }
  return {};
}

Status read_local_rope(KeyReader& keys, LocalRope family, HParams* h) {
  static_cast<void>(keys.has("rope.freq_base_swa"));  // known, whether or not there are windows
  for (LayerParams& layer : h->layers) {
    if (layer.mixer != MixerKind::kAttention || layer.attention.window == 0) continue;
    RopeParams& rope = layer.rope;
    const double absent = family.base > 0.0 ? family.base : rope.base;
    GEN_TRY(keys.number_or("rope.freq_base_swa", absent, 1.0 + 1e-6, 1e15, &rope.base));
    if (!family.unscaled) continue;
    rope.scaling = RopeScaling::kNone;
    rope.factor = 1.0;
    rope.attn_factor = 1.0;
    rope.freq_factors = false;
  }
  return {};
}

Status read_query_temperature(KeyReader& keys, HParams* h) {
  double temperature = 0.0;
  double multiplier = 0.0;
  GEN_TRY(keys.number_or("attention.temperature_scale", 0.0, 0.0, 1e6, &temperature));
  GEN_TRY(keys.number_or("rope.scaling.yarn_log_multiplier", 0.0, 0.0, 1e3, &multiplier));
  for (LayerParams& layer : h->layers) {
    layer.query_temperature = static_cast<float>(temperature);
    layer.temperature_every = layer.rope.original_context;
    layer.rope.yarn_log_multiplier = multiplier;
  }
  return {};
}

Status read_local_heads(KeyReader& keys, HParams* h) {
  for (LayerParams& layer : h->layers) {
    graph::AttentionSpec& spec = layer.attention;
    int32_t k_dim = spec.k_dim;
    int32_t v_dim = spec.v_dim;
    GEN_TRY(keys.integer_or("attention.key_length_swa", k_dim, 1, kMaxHeadDim, &k_dim));
    GEN_TRY(keys.integer_or("attention.value_length_swa", v_dim, 1, kMaxHeadDim, &v_dim));
    int32_t n_dims = std::min(layer.rope.n_dims, k_dim);
    GEN_TRY(keys.integer_or("rope.dimension_count_swa", n_dims, 2, k_dim, &n_dims));
    if (n_dims % 2 != 0) {
      return error(Code::kFormat, "%s is %d, not even",
                   keys.key("rope.dimension_count_swa").c_str(), n_dims);
    }
    double scale = 0.0;
    GEN_TRY(keys.number_or("attention.scale", 0.0, 0.0, 1e6, &scale));
    if (spec.window == 0) continue;
    spec.k_dim = k_dim;
    spec.v_dim = v_dim;
    if (scale == 0.0) spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(k_dim)));
    layer.rope.n_dims = n_dims;
  }
  return {};
}

Status halve_global_rotation(KeyReader& keys, HParams* h) {
  int32_t most = 0;
  for (const LayerParams& layer : h->layers) most = std::max(most, layer.rope.n_dims);
  for (LayerParams& layer : h->layers) {
    RopeParams& rope = layer.rope;
    if (layer.attention.window != 0) continue;
    if (rope.n_dims % 4 != 0) {
      return error(Code::kFormat, "%s is %d, not a multiple of 4",
                   keys.key("rope.dimension_count").c_str(), rope.n_dims);
    }
    rope.factor_dims = most;
    rope.n_dims /= 2;
  }
  return {};
}

Status read_shared_layers(KeyReader& keys, HParams* h) {
  int32_t shared = 0;
  GEN_TRY(keys.integer_or("attention.shared_kv_layers", 0, 0, h->n_layers, &shared));
  const int32_t first = h->n_layers - shared;
  for (int32_t i = first; i < h->n_layers; ++i) {
    graph::AttentionSpec& spec = h->layers[static_cast<size_t>(i)].attention;
    int32_t from = first - 1;
    const auto window = [&](int32_t of) {
      return h->layers[static_cast<size_t>(of)].attention.window;
    };
    while (from >= 0 && (window(from) == 0) != (spec.window == 0)) --from;
    if (from < 0) {
      return error(Code::kFormat, "%s is %d, but layer %d has no earlier one of its kind",
                   keys.key("attention.shared_kv_layers").c_str(), shared, i);
    }
    spec.use = graph::CacheUse::kShared;
    spec.shared = from;
  }
  return {};
}

Status read_layer_inputs(KeyReader& keys, HParams* h) {
  return keys.integer_or("embedding_length_per_layer_input", 0, 0, kMaxWidth / h->n_layers,
                         &h->layer_input);
}

Status read_rope_switch(KeyReader& keys, HParams* h) {
  bool rotates = true;
  GEN_TRY(keys.flag_or("rope.scaling.finetuned", true, &rotates));
  for (LayerParams& layer : h->layers) {
    if (!rotates) layer.rope = {};
  }
  return {};
}

Status read_rope_sections(KeyReader& keys, HParams* h) {
  constexpr const char* kSections = "rope.dimension_sections";
  std::vector<uint32_t> sections;
  GEN_TRY(keys.list(kSections, &sections));
  if (std::all_of(sections.begin(), sections.end(), [](uint32_t n) { return n == 0; })) return {};
  if (sections.size() < 2 || sections[0] == 0 || sections[1] == 0 ||
      (sections.size() > 3 && sections[3] != 0)) {
    return error(Code::kUnsupported, "%s is not of two or three positions",
                 keys.key(kSections).c_str());
  }
  for (LayerParams& layer : h->layers) layer.rope.kind = engine::RopeKind::kHalves;
  return {};
}

Status read_draft_layers(KeyReader& keys, HParams* h) {
  GEN_TRY(keys.integer_or("nextn_predict_layers", 0, 0, h->n_layers - 1, &h->n_draft_layers));
  h->n_blocks = h->n_layers;
  h->n_layers -= h->n_draft_layers;
  keys.set_draft_layers(h->n_draft_layers);
  return {};
}

void take_draft_layers(HParams* h) {
  const auto first = h->layers.begin() + h->n_layers;
  h->draft_layers.assign(first, h->layers.end());
  h->layers.erase(first, h->layers.end());
}

Status read_recurrent_layers(KeyReader& keys, int32_t interval, HParams* h) {
  constexpr const char* kList = "attention.recurrent_layers";
  std::vector<uint8_t> recurs(h->layers.size());
  for (size_t i = 0; i < recurs.size(); ++i) {
    recurs[i] = h->layers[i].mixer == MixerKind::kNone ? 1 : 0;
  }
  if (interval > 0) {
    GEN_TRY(keys.integer_or("full_attention_interval", interval, 1, kMaxLayers, &interval));
  }
  if (interval > 0 && keys.has(kList)) {
    GEN_TRY(keys.flags(kList, &recurs));
  } else if (interval > 0) {
    const auto every = static_cast<size_t>(interval);
    for (size_t i = 0; i < recurs.size(); ++i) recurs[i] |= (i + 1) % every != 0 ? 1 : 0;
  }
  // Blocks that draft attend.
  if (interval > 0) std::fill(recurs.begin() + h->n_layers, recurs.end(), uint8_t{0});
  for (size_t i = 0; i < recurs.size(); ++i) {
    LayerParams& layer = h->layers[i];
    if (recurs[i] == 0 && layer.mixer == MixerKind::kNone) {
      return error(Code::kFormat, "%s says that layer %zu attends, which has no heads",
                   keys.key(kList).c_str(), i);
    }
    if (recurs[i] != 0) layer.mixer = MixerKind::kRecurrent;
  }
  return {};
}

Status read_state_heads(KeyReader& keys, HParams* h) {
  RecurrentParams of;
  GEN_TRY(read_state(keys, &of));
  GEN_TRY(keys.integer("ssm.time_step_rank", 1, kMaxHeads, &of.heads));
  GEN_TRY(keys.integer("ssm.group_count", 1, kMaxHeads, &of.groups));
  if (of.inner % of.heads != 0 || of.heads % of.groups != 0) {
    return error(Code::kFormat,
                 "%s is %d and %s %d, of which each must divide the one before it: %d",
                 keys.key("ssm.time_step_rank").c_str(), of.heads,
                 keys.key("ssm.group_count").c_str(), of.groups, of.inner);
  }
  for (LayerParams& layer : h->layers) layer.recurrent = of;
  return {};
}

Status read_mamba(KeyReader& keys, HParams* h) {
  RecurrentParams of;
  GEN_TRY(read_state(keys, &of));
  GEN_TRY(keys.integer("ssm.time_step_rank", 1, kMaxWidth, &of.heads));
  of.groups = 1;
  GEN_TRY(keys.flag_or("ssm.dt_b_c_rms", false, &of.normalised));
  for (LayerParams& layer : h->layers) layer.recurrent = of;
  return {};
}

Status read_short_convolution(KeyReader& keys, HParams* h) {
  RecurrentParams of;
  GEN_TRY(keys.integer("shortconv.l_cache", 2, engine::kMaxTaps, &of.taps));
  for (LayerParams& layer : h->layers) layer.recurrent = of;
  return {};
}

Status read_feed_forward(KeyReader& keys, HParams* h, bool absent) {
  // Files of experts alone may leave it out.
  const char* name = "feed_forward_length";
  if (!keys.has(name) && keys.has("expert_feed_forward_length"))
    name = "expert_feed_forward_length";
  std::vector<int32_t> widths(h->layers.size());
  GEN_TRY(keys.per_layer(name, absent ? 0 : 1, kMaxWidth, &widths));
  for (size_t i = 0; i < widths.size(); ++i) h->layers[i].feed_forward = widths[i];
  return {};
}

Status read_xielu(const KeyReader& reader, HParams* h) {
  KeyReader keys = reader.outside();
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  std::vector<double> alpha_n(h->layers.size());
  std::vector<double> alpha_p = alpha_n;
  std::vector<double> beta = alpha_n;
  std::vector<double> eps = alpha_n;
  GEN_TRY(keys.numbers_per_layer("xielu.alpha_n", -80.0, 80.0, &alpha_n));
  GEN_TRY(keys.numbers_per_layer("xielu.alpha_p", -80.0, 80.0, &alpha_p));
  GEN_TRY(keys.numbers_per_layer("xielu.beta", -1e6, 1e6, &beta));
  GEN_TRY(keys.numbers_per_layer("xielu.eps", -80.0, 0.0, &eps));
  for (size_t i = 0; i < h->layers.size(); ++i) {
    engine::Activation& of = h->layers[i].activation;
    of.alpha = static_cast<float>(softplus(alpha_p[i]));
    of.beta = static_cast<float>(beta[i]);
    of.gamma = static_cast<float>(beta[i] + softplus(alpha_n[i]));
    of.limit = static_cast<float>(eps[i]);
  }
  return {};
}

Status read_experts(KeyReader& keys, ExpertDefaults absent, HParams* h) {
  engine::Routing routing;
  if (absent.required) {
    GEN_TRY(keys.integer("expert_count", 1, kMaxExperts, &routing.n_experts));
  } else {
    GEN_TRY(keys.integer_or("expert_count", 0, 0, kMaxExperts, &routing.n_experts));
  }
  if (routing.n_experts == 0) return {};
  GEN_TRY(keys.integer("expert_used_count", 1, routing.n_experts, &routing.n_used));
  GEN_TRY(read_gating(keys, absent, &routing));
  int32_t dense = 0;
  int32_t every = 1;
  GEN_TRY(keys.integer_or("leading_dense_block_count", 0, 0, h->n_layers, &dense));
  GEN_TRY(keys.integer_or("interleave_moe_layer_step", 1, 1, kMaxLayers, &every));
  for (size_t i = static_cast<size_t>(dense); i < h->layers.size(); ++i) {
    if ((i + 1) % static_cast<size_t>(every) != 0) continue;
    LayerParams& layer = h->layers[i];
    if (layer.feed_forward == 0) continue;  // a block of something else
    ExpertParams& of = layer.experts;
    of.routing = routing;
    GEN_TRY(keys.integer_or("expert_feed_forward_length", layer.feed_forward, 1, kMaxWidth,
                            &of.feed_forward));
    if (!absent.shared) continue;
    int32_t count = 0;
    GEN_TRY(keys.integer_or("expert_shared_count", absent.unshared ? 0 : 1, 0,
                            kMaxWidth / of.feed_forward, &count));
    GEN_TRY(keys.integer_or("expert_shared_feed_forward_length", int64_t{count} * of.feed_forward,
                            0, kMaxWidth, &of.shared));
  }
  return {};
}

Status read_swiglu_limits(KeyReader& keys, HParams* h) {
  const auto read = [&](const char* name, float LayerParams::*of, float ExpertParams::*of_experts) {
    std::vector<double> limits(h->layers.size());
    if (keys.has(name)) GEN_TRY(keys.numbers_per_layer(name, 0.0, 1e6, &limits));
    for (size_t i = 0; i < limits.size(); ++i) {
      const auto limit = static_cast<float>(limits[i]);
      if (of != nullptr) h->layers[i].*of = limit;
      if (of_experts != nullptr) h->layers[i].experts.*of_experts = limit;
    }
    return Status();
  };
  GEN_TRY(read("swiglu_clamp_exp", nullptr, &ExpertParams::swiglu_limit));
  return read("swiglu_clamp_shexp", &LayerParams::swiglu_limit, nullptr);
}

Status read_latent_experts(KeyReader& keys, HParams* h) {
  int32_t latent = 0;
  GEN_TRY(keys.integer_or("moe_latent_size", 0, 0, kMaxWidth, &latent));
  for (LayerParams& layer : h->layers) layer.experts.latent = latent;
  return {};
}

Status read_factors(KeyReader& keys, HParams* h) {
  GEN_TRY(read_factor(keys, "embedding_scale", &h->embedding_factor));
  GEN_TRY(read_factor(keys, "residual_scale", &h->residual_factor));
  float divisor = 1.0F;
  GEN_TRY(read_factor(keys, "logit_scale", &divisor));
  h->logit_factor = 1.0F / divisor;
  return {};
}

Status read_logit_factor(KeyReader& keys, HParams* h) {
  return read_factor(keys, "logit_scale", &h->logit_factor);
}

Status read_score_cap(KeyReader& keys, float absent, HParams* h) {
  float cap = 0.0F;
  GEN_TRY(read_cap(keys, "attn_logit_softcapping", absent, &cap));
  for (LayerParams& layer : h->layers) layer.attention.soft_cap = cap;
  return {};
}

Status read_logit_cap(KeyReader& keys, float absent, HParams* h) {
  return read_cap(keys, "final_logit_softcapping", absent, &h->logit_cap);
}

}  // namespace gen::model::arch

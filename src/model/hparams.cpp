// SPDX-License-Identifier: Apache-2.0
// Reading hyperparameters. One line for each key with its range; see hparams.h.
#include "model/hparams.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf/clean_name.h"

namespace gen::model {
namespace {

// Far above every known model, and small enough that products of two fit 64 bits.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxHeadDim = 65536;
constexpr int64_t kMaxContext = int64_t{1} << 30;

/// Reads keys below "<architecture>.".
class KeyReader {
 public:
  KeyReader(const gguf::Metadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  [[nodiscard]] bool has(std::string_view name) const { return metadata_.has(key(name)); }

  Status integer(std::string_view name, int64_t least, int64_t most, int32_t* out) const {
    GEN_ASSIGN(const uint64_t value, metadata_.get_u64(key(name)));
    return in_range(name, value, least, most, out);
  }
  Status integer_or(std::string_view name, int64_t fallback, int64_t least, int64_t most,
                    int32_t* out) const {
    GEN_ASSIGN(const uint64_t value, metadata_.get_u64(key(name), static_cast<uint64_t>(fallback)));
    return in_range(name, value, least, most, out);
  }

  /// A number, or one number for each layer that are all the same.
  Status per_layer(std::string_view name, int32_t n_layers, int64_t most, int32_t* out) const {
    const gguf::Value* value = metadata_.find(key(name));
    if (value == nullptr || value->type() != gguf::ValueType::kArray) {
      return integer(name, 1, most, out);
    }
    GEN_ASSIGN(const std::vector<uint32_t> values, metadata_.get_u32s(key(name)));
    if (values.empty() || std::cmp_less(values.size(), n_layers)) {
      return error(Code::kFormat, "%s has %zu values for %d layers", key(name).c_str(),
                   values.size(), n_layers);
    }
    for (size_t i = 1; i < static_cast<size_t>(n_layers); ++i) {
      if (values[i] != values[0]) {
        return error(Code::kUnsupported, "%s is %u in layer 0 and %u in layer %zu: not supported",
                     key(name).c_str(), values[0], values[i], i);
      }
    }
    return in_range(name, values[0], 1, most, out);
  }

  [[nodiscard]] bool is_array(std::string_view name) const {
    const gguf::Value* value = metadata_.find(key(name));
    return value != nullptr && value->type() == gguf::ValueType::kArray;
  }
  /// One truth value, or number, for each of out's elements; the list may be longer.
  Status flags(std::string_view name, std::vector<uint8_t>* out) const {
    std::vector<uint8_t> values;
    if (metadata_.find(key(name))->element_type() == gguf::ValueType::kBool) {
      GEN_ASSIGN(const std::vector<bool> found, metadata_.get_bools(key(name)));
      values.assign(found.begin(), found.end());
    } else {
      GEN_ASSIGN(const std::vector<uint32_t> found, metadata_.get_u32s(key(name)));
      for (const uint32_t value : found) values.push_back(value != 0 ? 1 : 0);
    }
    if (values.size() < out->size()) {
      return error(Code::kFormat, "%s has %zu values for %zu layers", key(name).c_str(),
                   values.size(), out->size());
    }
    std::copy_n(values.begin(), out->size(), out->begin());
    return {};
  }

  /// A finite number in [least, most].
  Status number_or(std::string_view name, double fallback, double least, double most,
                   double* out) const {
    GEN_ASSIGN(const float value, metadata_.get_f32(key(name), static_cast<float>(fallback)));
    const double wide = metadata_.has(key(name)) ? static_cast<double>(value) : fallback;
    if (!(wide >= least && wide <= most)) {
      return error(Code::kFormat, "%s is %g, outside [%g, %g]", key(name).c_str(), wide, least,
                   most);
    }
    *out = wide;
    return {};
  }

  Status text_or(std::string_view name, std::string_view fallback, std::string* out) const {
    GEN_ASSIGN(*out, metadata_.get_string(key(name), fallback));
    return {};
  }

 private:
  Status in_range(std::string_view name, uint64_t value, int64_t least, int64_t most,
                  int32_t* out) const {
    if (std::cmp_less(value, least) || std::cmp_greater(value, most)) {
      return error(Code::kFormat, "%s is %llu, outside [%lld, %lld]", key(name).c_str(),
                   static_cast<unsigned long long>(value), static_cast<long long>(least),
                   static_cast<long long>(most));
    }
    *out = static_cast<int32_t>(value);
    return {};
  }

  const gguf::Metadata& metadata_;
  std::string prefix_;
};

Status read_heads(const KeyReader& keys, HParams* h) {
  GEN_TRY(keys.per_layer("attention.head_count", h->n_layers, kMaxHeads, &h->n_heads));
  h->n_kv_heads = h->n_heads;
  if (keys.has("attention.head_count_kv")) {
    GEN_TRY(keys.per_layer("attention.head_count_kv", h->n_layers, kMaxHeads, &h->n_kv_heads));
  }
  if (h->n_heads % h->n_kv_heads != 0) {
    return error(Code::kFormat, "%s is %d, which does not divide %d heads",
                 keys.key("attention.head_count_kv").c_str(), h->n_kv_heads, h->n_heads);
  }
  const bool both = keys.has("attention.key_length") && keys.has("attention.value_length");
  if (!both && h->hidden % h->n_heads != 0) {
    return error(Code::kFormat, "%s is %d, not a multiple of %d heads",
                 keys.key("embedding_length").c_str(), h->hidden, h->n_heads);
  }
  const int64_t even_share = std::clamp<int64_t>(h->hidden / h->n_heads, 1, kMaxHeadDim);
  GEN_TRY(keys.integer_or("attention.key_length", even_share, 1, kMaxHeadDim, &h->k_dim));
  return keys.integer_or("attention.value_length", even_share, 1, kMaxHeadDim, &h->v_dim);
}

/// Which layers see only part of the past.
Status read_local_layers(const KeyReader& keys, HParams* h) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  GEN_TRY(keys.integer_or("attention.sliding_window", 0, 0, kMost, &h->window));
  GEN_TRY(keys.integer_or("attention.chunk_size", 0, 0, kMost, &h->chunk));
  h->local.assign(static_cast<size_t>(h->n_layers), 1);
  if (!keys.has(kPattern)) return {};
  if (keys.is_array(kPattern)) return keys.flags(kPattern, &h->local);
  int32_t every = 0;
  GEN_TRY(keys.integer(kPattern, 1, kMaxLayers, &every));
  for (int32_t i = every - 1; i < h->n_layers; i += every) h->local[static_cast<size_t>(i)] = 0;
  return {};
}

Status read_scaling(const KeyReader& keys, const HParams& h, RopeParams* rope) {
  const char* factor_key =
      keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  GEN_TRY(keys.number_or(factor_key, 1.0, 0.0, 1e6, &rope->factor));
  if (rope->factor == 0.0) rope->factor = 1.0;  // what files mean by it
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

Status read_rope(const KeyReader& keys, HParams* h) {
  GEN_TRY(keys.integer_or("rope.dimension_count", h->k_dim, 2, h->k_dim, &h->rope.n_dims));
  if (h->rope.n_dims % 2 != 0) {
    return error(Code::kFormat, "%s is %d, not even", keys.key("rope.dimension_count").c_str(),
                 h->rope.n_dims);
  }
  GEN_TRY(keys.number_or("rope.freq_base", 10000.0, 1.0 + 1e-6, 1e15, &h->rope.base));
  return read_scaling(keys, *h, &h->rope);
}

Status refuse_variants(const KeyReader& keys) {
  int32_t experts = 0;
  GEN_TRY(keys.integer_or("expert_count", 0, 0, std::numeric_limits<int32_t>::max(), &experts));
  if (experts > 0) {
    return error(Code::kUnsupported, "%s is %d: mixtures of experts are not supported",
                 keys.key("expert_count").c_str(), experts);
  }
  for (const char* name : {"attention.max_alibi_bias", "attention.clamp_kqv", "logit_scale",
                           "attn_logit_softcapping", "final_logit_softcapping"}) {
    double value = 0.0;
    GEN_TRY(keys.number_or(name, 0.0, -1e30, 1e30, &value));
    if (value != 0.0) {
      return error(Code::kUnsupported, "%s is %g: not supported", keys.key(name).c_str(), value);
    }
  }
  return {};
}

}  // namespace

Result<HParams> read_hparams(const gguf::Metadata& metadata) {
  HParams h;
  GEN_ASSIGN(h.architecture, metadata.get_string("general.architecture"));
  const KeyReader keys(metadata, h.architecture);
  GEN_TRY(refuse_variants(keys));
  GEN_TRY(keys.integer("context_length", 1, kMaxContext, &h.context_length));
  GEN_TRY(keys.integer("block_count", 1, kMaxLayers, &h.n_layers));
  GEN_TRY(keys.integer("embedding_length", 1, kMaxWidth, &h.hidden));
  GEN_TRY(keys.per_layer("feed_forward_length", h.n_layers, kMaxWidth, &h.feed_forward));
  GEN_TRY(read_heads(keys, &h));
  GEN_TRY(read_local_layers(keys, &h));
  double number = 0.0;
  if (!keys.has("attention.layer_norm_rms_epsilon")) {
    return error(Code::kFormat, "%s is missing",
                 keys.key("attention.layer_norm_rms_epsilon").c_str());
  }
  GEN_TRY(keys.number_or("attention.layer_norm_rms_epsilon", 0.0, 1e-20, 1.0, &number));
  h.norm_eps = static_cast<float>(number);
  GEN_TRY(keys.number_or("attention.scale", 0.0, 0.0, 1e6, &number));
  h.attention_scale = number > 0.0
                          ? static_cast<float>(number)
                          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(h.k_dim)));
  GEN_TRY(read_rope(keys, &h));
  return h;
}

}  // namespace gen::model

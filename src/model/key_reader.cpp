// SPDX-License-Identifier: Apache-2.0
// See key_reader.h.
#include "model/key_reader.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace gen::model {
namespace {

enum class Form { kInteger, kNumber, kFlag, kList, kNumbers };

/// Keys that change what a model computes in every architecture that has them.
struct Refused {
  const char* name;
  Form form;
  double neutral;    // the value that has no effect
  const char* what;  // the unsupported feature
};
constexpr Refused kRefused[] = {
    {"expert_count", Form::kInteger, 0, "mixtures of experts are"},
    {"nextn_predict_layers", Form::kInteger, 0, "blocks that draft are"},
    {"attention.shared_kv_layers", Form::kInteger, 0, "blocks that share keys and values are"},
    {"attention.causal", Form::kFlag, 1, "attention to later rows is"},
    {"attention.max_alibi_bias", Form::kNumber, 0, "it is"},
    {"attention.clamp_kqv", Form::kNumber, 0, "it is"},
    {"attention.temperature_scale", Form::kNumber, 0, "it is"},
    {"attn_logit_softcapping", Form::kNumber, 0, "it is"},
    {"final_logit_softcapping", Form::kNumber, 0, "it is"},
    {"logit_scale", Form::kNumber, 0, "it is"},
    {"embedding_scale", Form::kNumber, 1, "it is"},
    {"residual_scale", Form::kNumber, 1, "it is"},
    {"rope.scaling.yarn_log_multiplier", Form::kNumber, 0, "it is"},
    {"rope.freq_base_swa", Form::kNumber, 0, "a rotation of its own in windows is"},
    {"swiglu_clamp_exp", Form::kNumbers, 0, "it is"},
    {"swiglu_clamp_shexp", Form::kNumbers, 0, "it is"},
    {"moe_latent_size", Form::kInteger, 0, "experts on a part of the width are"},
    {"ssm.dt_b_c_rms", Form::kFlag, 0, "norms of what a recurrence reads are"},
    {"rope.dimension_sections", Form::kList, 0, "rotation by several positions is"},
};

Result<double> value_of(const gguf::Metadata& metadata, const std::string& key, Form form) {
  if (form == Form::kInteger) {
    GEN_ASSIGN(const uint64_t value, metadata.get_u64(key));
    return static_cast<double>(value);
  }
  if (form == Form::kFlag) {
    GEN_ASSIGN(const bool value, metadata.get_bool(key));
    return value ? 1.0 : 0.0;
  }
  if (form == Form::kList) {
    GEN_ASSIGN(const std::vector<uint32_t> values, metadata.get_u32s(key));
    const auto found = std::find_if(values.begin(), values.end(), [](uint32_t n) { return n > 0; });
    return found != values.end() ? static_cast<double>(*found) : 0.0;
  }
  const gguf::Value* const found = metadata.find(key);
  if (form == Form::kNumbers && found->type() == gguf::ValueType::kArray) {
    GEN_ASSIGN(const std::vector<float> values, metadata.get_f32s(key));
    const auto first =
        std::find_if(values.begin(), values.end(), [](float x) { return x != 0.0F; });
    return first != values.end() ? static_cast<double>(*first) : 0.0;
  }
  GEN_ASSIGN(const float value, metadata.get_f32(key));
  return static_cast<double>(value);
}

}  // namespace

const gguf::Value* KeyReader::find(std::string_view name) {
  asked_.emplace(name);
  return metadata_.find(key(name));
}

bool KeyReader::is_array(std::string_view name) {
  const gguf::Value* value = find(name);
  return value != nullptr && value->type() == gguf::ValueType::kArray;
}

Status KeyReader::in_range(const std::string& shown, int64_t least, int64_t most, uint64_t value,
                           int32_t* out) const {
  if (std::cmp_less(value, least) || std::cmp_greater(value, most)) {
    return error(Code::kFormat, "%s is %llu, outside [%lld, %lld]", shown.c_str(),
                 static_cast<unsigned long long>(value), static_cast<long long>(least),
                 static_cast<long long>(most));
  }
  *out = static_cast<int32_t>(value);
  return {};
}

Status KeyReader::integer(std::string_view name, int64_t least, int64_t most, int32_t* out) {
  find(name);
  GEN_ASSIGN(const uint64_t value, metadata_.get_u64(key(name)));
  return in_range(key(name), least, most, value, out);
}

Status KeyReader::integer_or(std::string_view name, int64_t fallback, int64_t least, int64_t most,
                             int32_t* out) {
  find(name);
  GEN_ASSIGN(const uint64_t value, metadata_.get_u64(key(name), static_cast<uint64_t>(fallback)));
  return in_range(key(name), least, most, value, out);
}

Status KeyReader::number(std::string_view name, double least, double most, double* out) {
  if (!has(name)) return error(Code::kFormat, "%s is missing", key(name).c_str());
  return number_or(name, 0.0, least, most, out);
}

Status KeyReader::number_or(std::string_view name, double fallback, double least, double most,
                            double* out) {
  const bool found = has(name);
  GEN_ASSIGN(const float value, metadata_.get_f32(key(name), static_cast<float>(fallback)));
  const double wide = found ? static_cast<double>(value) : fallback;
  if (!(wide >= least && wide <= most)) {
    return error(Code::kFormat, "%s is %g, outside [%g, %g]", key(name).c_str(), wide, least, most);
  }
  *out = wide;
  return {};
}

Status KeyReader::flag_or(std::string_view name, bool fallback, bool* out) {
  find(name);
  GEN_ASSIGN(*out, metadata_.get_bool(key(name), fallback));
  return {};
}

Status KeyReader::text_or(std::string_view name, std::string_view fallback, std::string* out) {
  find(name);
  GEN_ASSIGN(*out, metadata_.get_string(key(name), fallback));
  return {};
}

template <typename T>
Status KeyReader::fill_drafts(std::string_view name, size_t layers, std::vector<T>* values) const {
  const size_t least = layers - std::min(layers, draft_layers_);
  if (values->size() < least || values->empty()) {
    return error(Code::kFormat, "%s has %zu values for %zu layers", key(name).c_str(),
                 values->size(), least);
  }
  if (values->size() < layers) values->resize(layers, T(values->back()));
  return {};
}

Status KeyReader::per_layer(std::string_view name, int64_t least, int64_t most,
                            std::vector<int32_t>* out) {
  if (!is_array(name)) {
    int32_t value = 0;
    GEN_TRY(integer(name, least, most, &value));
    std::fill(out->begin(), out->end(), value);
    return {};
  }
  GEN_ASSIGN(std::vector<uint32_t> values, metadata_.get_u32s(key(name)));
  GEN_TRY(fill_drafts(name, out->size(), &values));
  for (size_t i = 0; i < out->size(); ++i) {
    const std::string shown = key(name) + "[" + std::to_string(i) + "]";
    GEN_TRY(in_range(shown, least, most, values[i], &(*out)[i]));
  }
  return {};
}

Status KeyReader::numbers_per_layer(std::string_view name, double least, double most,
                                    std::vector<double>* out) {
  if (!is_array(name)) {
    double value = 0.0;
    GEN_TRY(number(name, least, most, &value));
    std::fill(out->begin(), out->end(), value);
    return {};
  }
  GEN_ASSIGN(std::vector<float> values, metadata_.get_f32s(key(name)));
  GEN_TRY(fill_drafts(name, out->size(), &values));
  for (size_t i = 0; i < out->size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    if (!(value >= least && value <= most)) {
      return error(Code::kFormat, "%s[%zu] is %g, outside [%g, %g]", key(name).c_str(), i, value,
                   least, most);
    }
    (*out)[i] = value;
  }
  return {};
}

Status KeyReader::flags(std::string_view name, std::vector<uint8_t>* out) {
  std::vector<uint8_t> values;
  const gguf::Value* value = find(name);
  if (value != nullptr && value->element_type() == gguf::ValueType::kBool) {
    GEN_ASSIGN(const std::vector<bool> found, metadata_.get_bools(key(name)));
    values.assign(found.begin(), found.end());
  } else {
    GEN_ASSIGN(const std::vector<uint32_t> found, metadata_.get_u32s(key(name)));
    for (const uint32_t each : found) values.push_back(each != 0 ? 1 : 0);
  }
  GEN_TRY(fill_drafts(name, out->size(), &values));
  std::copy_n(values.begin(), out->size(), out->begin());
  return {};
}

Status KeyReader::list(std::string_view name, std::vector<uint32_t>* out) {
  out->clear();
  if (!has(name)) return {};
  GEN_ASSIGN(*out, metadata_.get_u32s(key(name)));
  return {};
}

Status KeyReader::refuse_unread() const {
  for (const Refused& each : kRefused) {
    if (asked_.contains(each.name) || !metadata_.has(key(each.name))) continue;
    GEN_ASSIGN(const double value, value_of(metadata_, key(each.name), each.form));
    // For a scale, 0 means that there is none.
    if (value == each.neutral || (value == 0.0 && each.form == Form::kNumber)) continue;
    const std::string name = key(each.name);
    if (value == std::floor(value)) {
      return error(Code::kUnsupported, "%s is %.0f: %s not supported", name.c_str(), value,
                   each.what);
    }
    return error(Code::kUnsupported, "%s is %g: %s not supported", name.c_str(), value, each.what);
  }
  return {};
}

}  // namespace gen::model

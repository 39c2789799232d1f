// SPDX-License-Identifier: Apache-2.0
// See inspect_beside.h. Adapters have one of two forms: tensors TENSOR.lora_a and TENSOR.lora_b
// with keys adapter.lora.…, or lora_a.LAYER and lora_b.LAYER with keys lora.….
#include "inspect_beside.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>

namespace cli {
namespace {

using nlohmann::ordered_json;

bool is_half(const std::string& name, const std::string& half) {
  return name.ends_with("." + half) || name.starts_with(half + ".");
}

bool is_adapter(const ordered_json& metadata) {
  return metadata.value("general.type", ordered_json()) == "adapter" ||
         metadata.contains("adapter.type") || metadata.contains("lora.rank");
}

uint64_t weights_of(const GgufHead& head) {
  uint64_t weights = 0;
  for (const GgufHead::Tensor& tensor : head.tensors) weights += tensor.elements;
  return weights;
}

ordered_json value_of(const GgufHead& head, const char* key) {
  return head.metadata.value(key, ordered_json());
}

ordered_json of_type(const char* type, const GgufHead& head) {
  ordered_json out;
  out["type"] = type;
  out["architecture"] = value_of(head, "general.architecture");
  return out;
}

ordered_json describe_adapter(const GgufHead& head) {
  const bool newer = head.metadata.contains("adapter.type");
  std::set<uint64_t> ranks;
  uint64_t pairs = 0;
  uint64_t numbers = 0;
  for (const GgufHead::Tensor& tensor : head.tensors) {
    const bool is_b = is_half(tensor.name, "lora_b");
    if (!is_b && !is_half(tensor.name, "lora_a")) continue;
    numbers += tensor.elements;
    if (!is_b || tensor.dims.empty()) continue;
    ++pairs;
    ranks.insert(tensor.dims[0]);
  }
  ordered_json out = of_type("adapter", head);
  out["adapter"] = value_of(head, "adapter.type");
  out["alpha"] = value_of(head, newer ? "adapter.lora.alpha" : "lora.alpha");
  out["ranks"] = ranks;
  out["pairs"] = pairs;
  out["parameters"] = numbers;
  out["memory"]["file"] = head.size();
  out["memory"]["weights"] = numbers * sizeof(float);
  return out;
}

ordered_json describe_importance(const GgufHead& head) {
  ordered_json out = of_type(kImportanceType, head);
  out["datasets"] = value_of(head, "imatrix.datasets");
  out["chunks"] = value_of(head, "imatrix.chunk_count");
  out["chunk_size"] = value_of(head, "imatrix.chunk_size");
  uint64_t matrices = 0;
  for (const GgufHead::Tensor& tensor : head.tensors) matrices += tensor.name.ends_with(".counts");
  out["matrices"] = matrices;
  out["memory"]["file"] = head.size();
  return out;
}

ordered_json describe_part(const char* type, const GgufHead& head) {
  ordered_json out = of_type(type, head);
  out["parameters"] = weights_of(head);
  out["memory"]["file"] = head.size();
  return out;
}

}  // namespace

bool is_older_importance(const std::string& path) {
  constexpr int32_t kMostEntries = 1 << 20;
  constexpr int32_t kMostName = 255;
  std::ifstream in(path, std::ios::binary);
  int32_t entries = 0;
  int32_t length = 0;
  in.read(reinterpret_cast<char*>(&entries), sizeof entries);
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!in || entries < 1 || entries > kMostEntries || length < 1 || length > kMostName) {
    return false;
  }
  std::string name(static_cast<size_t>(length), '\0');
  in.read(name.data(), length);
  return in && name.find('.') != std::string::npos &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

ordered_json describe_beside(const GgufHead& head) {
  const ordered_json architecture = value_of(head, "general.architecture");
  const ordered_json type = value_of(head, "general.type");
  for (const char* const name : {"eagle3", "eagle", "gemma4-assistant"}) {
    if (architecture == name) return describe_part("head that drafts, for --eagle", head);
  }
  if (is_adapter(head.metadata)) return describe_adapter(head);
  if (type == "imatrix" || architecture == "imatrix") return describe_importance(head);
  if (type == "mmproj" || architecture == "clip") {
    return describe_part("projector of pictures or sound", head);
  }
  const bool has_tensors = head.parts.front().tensors > 0 || head.parts.size() > 1;
  if (!has_tensors && head.metadata.contains("tokenizer.ggml.model")) {
    ordered_json out = describe_part("vocabulary, for generate tokenize", head);
    const ordered_json tokens = value_of(head, "tokenizer.ggml.tokens");
    out["tokenizer"] = value_of(head, "tokenizer.ggml.model");
    out["tokens"] = tokens.is_object() ? tokens["count"] : ordered_json(tokens.size());
    return out;
  }
  return nullptr;
}

}  // namespace cli

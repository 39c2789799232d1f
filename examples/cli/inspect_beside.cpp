// SPDX-License-Identifier: Apache-2.0
// See inspect_beside.h. Adapters have one of two forms: tensors TENSOR.lora_a and TENSOR.lora_b
// with keys adapter.lora.…, or lora_a.LAYER and lora_b.LAYER with keys lora.….
#include "inspect_beside.h"

#include <cstdint>
#include <set>

#include "gguf_head.h"

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

ordered_json describe_draft_head(const GgufHead& head) {
  uint64_t numbers = 0;
  for (const GgufHead::Tensor& tensor : head.tensors) {
    uint64_t size = 1;
    for (const uint64_t dim : tensor.dims) size *= dim;
    numbers += size;
  }
  ordered_json out;
  out["type"] = "head that drafts, for --eagle";
  out["architecture"] = head.metadata.value("general.architecture", ordered_json());
  out["tensors"] = head.tensors.size();
  out["parameters"] = numbers;
  out["memory"]["file"] = head.size;
  out["metadata"] = head.metadata;
  return out;
}

}  // namespace

ordered_json describe_beside(const std::string& path) {
  const auto head = read_gguf_head(path);
  if (!head) return nullptr;
  for (const char* const name : {"eagle3", "eagle", "gemma4-assistant"}) {
    if (head->metadata.value("general.architecture", ordered_json()) == name) {
      return describe_draft_head(*head);
    }
  }
  if (!is_adapter(head->metadata)) return nullptr;
  const auto value = [&](const char* key) { return head->metadata.value(key, ordered_json()); };
  std::set<uint64_t> ranks;
  uint64_t pairs = 0;
  uint64_t numbers = 0;
  for (const GgufHead::Tensor& tensor : head->tensors) {
    const bool is_b = is_half(tensor.name, "lora_b");
    if (!is_b && !is_half(tensor.name, "lora_a")) continue;
    uint64_t size = 1;
    for (const uint64_t dim : tensor.dims) size *= dim;
    numbers += size;
    if (!is_b || tensor.dims.empty()) continue;
    ++pairs;
    ranks.insert(tensor.dims[0]);
  }
  ordered_json out;
  out["type"] = "adapter";
  out["architecture"] = value("general.architecture");
  out["adapter"] = value("adapter.type");
  out["alpha"] =
      value(head->metadata.contains("adapter.type") ? "adapter.lora.alpha" : "lora.alpha");
  out["ranks"] = ranks;
  out["pairs"] = pairs;
  out["parameters"] = numbers;
  out["memory"]["file"] = head->size;
  out["memory"]["weights"] = numbers * sizeof(float);
  out["metadata"] = head->metadata;
  return out;
}

}  // namespace cli

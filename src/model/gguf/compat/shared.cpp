// SPDX-License-Identifier: Apache-2.0
// What several families share. See family.h.
#include <algorithm>

#include "model/gguf/compat/family.h"
#include "model/gguf/tensor_role.h"

namespace gen::gguf::compat {

std::string Source::text(const char* key) const {
  const Value* const value = metadata.find(key);
  if (value == nullptr || value->type() != ValueType::kString) return {};
  const auto read = metadata.get_string(key);
  return read.ok() ? read.value() : std::string();
}

bool Source::begins(std::string_view prefix) const noexcept {
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorInfo& each) {
    return std::string_view(each.name).starts_with(prefix);
  });
}

bool Source::ends(std::string_view suffix) const noexcept {
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorInfo& each) {
    return std::string_view(each.name).ends_with(suffix);
  });
}

bool Source::has_media() const noexcept {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorInfo& each) { return is_media_tensor(each.name); });
}

Status sections_from(Edit& file, std::string_view from) {
  constexpr size_t kSections = 4;
  const std::string key = file.key("rope.dimension_sections");
  file.rename_key(file.key(from), key);
  GEN_ASSIGN(std::vector<int32_t> sections, file.i32s(key));
  if (sections.empty() || sections.size() >= kSections) return {};
  sections.resize(kSections);
  file.set_i32s(key, sections);
  return {};
}

void cut_vocabulary(Edit& file) {
  const TensorInfo* const table = file.tensor("token_embd.weight");
  if (table == nullptr) return;
  const auto rows = static_cast<uint64_t>(table->shape[1]);
  for (const char* key :
       {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    file.cut_array(key, rows);
  }
}

Status refuse(const char* why) {
  return error(Code::kUnsupported, "made for ollama's own engine: %s", why);
}

}  // namespace gen::gguf::compat

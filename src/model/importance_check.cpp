// SPDX-License-Identifier: Apache-2.0
// See importance_check.h.
#include "model/importance_check.h"

#include <algorithm>

#include "quant/format.h"

namespace gen::model {
namespace {

/// "NAME and 3 more tensors", and whether they are several.
struct Named {
  const gguf::TensorInfo* first = nullptr;
  size_t count = 0;

  void add(const gguf::TensorInfo& tensor) {
    if (count++ == 0) first = &tensor;
  }
  [[nodiscard]] std::string text() const {
    constexpr size_t kShown = 200;
    std::string text = first->name.substr(0, kShown);
    if (count == 2) text += " and 1 more tensor";
    if (count > 2) text += " and " + std::to_string(count - 1) + " more tensors";
    return text;
  }
};

/// Whether a tensor of `from` is rounded to codes of `to`.
bool is_rounded(DType from, DType to) noexcept {
  return from != to && quant::find_format(to) != nullptr && quant::find_traits(to) != nullptr;
}

bool below_three_bits(DType type) noexcept {
  const DTypeInfo& info = *dtype_info(type);
  return info.block_bytes * 8 < info.block_elements * 3;
}

}  // namespace

Status check_importance(const Importance& importance, const gguf::GgufFile& file) {
  for (const auto& [name, values] : importance.all()) {
    const gguf::TensorInfo* const tensor = file.find_tensor(name);
    if (tensor == nullptr) {
      return error(Code::kInvalidArgument,
                   "the importance is of another model: it has tensor %.200s", name.c_str());
    }
    const int64_t matrices = tensor->elements() / (tensor->shape[0] * tensor->shape[1]);
    if (values.size() == static_cast<size_t>(tensor->shape[0] * matrices)) continue;
    return error(
        Code::kInvalidArgument,
        "the importance is of another model: of tensor %.200s it has %zu columns, not %lld",
        name.c_str(), values.size(), static_cast<long long>(tensor->shape[0] * matrices));
  }
  return {};
}

std::vector<std::string> importance_lines(const Importance* importance, const gguf::GgufFile& file,
                                          const std::vector<DType>& types) {
  Named low;
  Named unknown;
  const bool tied = file.find_tensor("output.weight") == nullptr;
  for (size_t i = 0; i < types.size(); ++i) {
    const gguf::TensorInfo& tensor = file.tensors()[i];
    if (!is_rounded(tensor.type, types[i])) continue;
    if (importance != nullptr && importance->find(tensor.name) != nullptr) continue;
    if (below_three_bits(types[i])) {
      low.add(tensor);
    } else if (importance != nullptr && (tied || tensor.name != "token_embd.weight")) {
      unknown.add(tensor);  // rows of an embedding are not multiplied
    }
  }
  std::vector<std::string> lines;
  if (low.count > 0) {
    const std::string why = importance == nullptr
                                ? "an importance matrix"
                                : std::string("importance, since the matrix has none for ") +
                                      (low.count > 1 ? "them" : "it");
    lines.push_back(low.text() + (low.count > 1 ? " get" : " gets") +
                    " less than 3 bits a weight without " + why + ": expect large errors");
  }
  if (unknown.count > 0) {
    lines.push_back(unknown.text() + (unknown.count > 1 ? " are" : " is") +
                    " not in the importance matrix: all columns count alike");
  }
  return lines;
}

UnusedImportance unused_importance(const Importance& importance, const gguf::GgufFile& file,
                                   const std::vector<DType>& types) {
  Named unused;
  for (size_t i = 0; i < types.size(); ++i) {
    const gguf::TensorInfo& tensor = file.tensors()[i];
    const bool known = importance.find(tensor.name) != nullptr;
    if (known && !is_rounded(tensor.type, types[i])) unused.add(tensor);
  }
  UnusedImportance found;
  found.is_all = unused.count > 0 && unused.count == importance.all().size();
  if (unused.count == 0) return found;
  const bool several = unused.count > 1;
  found.line = unused.text() + (several ? " are" : " is") + " not quantised: ";
  if (found.is_all) {
    found.line += "the importance matrix changes nothing";
  } else {
    found.line.append(several ? "their" : "its").append(" importance is not used");
  }
  return found;
}

}  // namespace gen::model

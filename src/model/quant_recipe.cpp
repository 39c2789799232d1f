// SPDX-License-Identifier: Apache-2.0
// The recipes, which follow those of llama.cpp. See quant_recipe.h.
#include "model/quant_recipe.h"

#include <algorithm>
#include <charconv>

#include "quant/format.h"

namespace gen::model {
namespace {

constexpr QuantRecipe kRecipes[] = {
    {"F32", DType::kF32, DType::kF32, DType::kF32, 0},
    {"F16", DType::kF16, DType::kF16, DType::kF16, 1},
    {"BF16", DType::kBF16, DType::kBF16, DType::kBF16, 32},
    {"Q8_0", DType::kQ8_0, DType::kQ8_0, DType::kQ8_0, 7},
    {"Q6_K", DType::kQ6_K, DType::kQ6_K, DType::kQ6_K, 18},
    {"Q5_K_M", DType::kQ5_K, DType::kQ6_K, DType::kQ6_K, 17},
    {"Q5_1", DType::kQ5_1, DType::kQ6_K, DType::kQ5_1, 9},
    {"Q5_0", DType::kQ5_0, DType::kQ6_K, DType::kQ5_0, 8},
    {"Q4_K_M", DType::kQ4_K, DType::kQ6_K, DType::kQ6_K, 15},
    {"Q4_1", DType::kQ4_1, DType::kQ6_K, DType::kQ4_1, 3},
    {"Q4_0", DType::kQ4_0, DType::kQ6_K, DType::kQ4_0, 2},
    {"IQ4_NL", DType::kIQ4_NL, DType::kQ6_K, DType::kIQ4_NL, 25},
    {"IQ4_XS", DType::kIQ4_XS, DType::kQ6_K, DType::kIQ4_XS, 30},
};

constexpr size_t kShownName = 200;  // bytes of a tensor's name in messages

/// The N of "blk.N.…", or -1.
int64_t layer_of(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t layer = -1;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  return failure == std::errc() && stop != end && *stop == '.' ? layer : -1;
}

/// The first and last eighth of the layers, and every third between: errors there matter most.
bool matters_more(int64_t layer, int64_t layers) noexcept {
  const int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/// The substitute with blocks of 32 for a type with blocks of 256; it has at least as many bits.
DType smaller_blocks(DType type) noexcept {
  switch (type) {
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kIQ4_XS:
      return DType::kIQ4_NL;
    default:
      return DType::kQ8_0;
  }
}

bool fits(DType type, int64_t row) noexcept {
  return row % static_cast<int64_t>(dtype_info(type)->block_elements) == 0;
}

/// Ignores case, since other programs print q4_k_m.
bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool is_float(DType type) noexcept { return quant::find_format(type) != nullptr; }

}  // namespace

const QuantRecipe* find_recipe(std::string_view name) noexcept {
  for (const QuantRecipe& recipe : kRecipes) {
    if (same_name(recipe.name, name)) return &recipe;
  }
  return nullptr;
}

std::string recipe_names() {
  std::string names;
  for (const QuantRecipe& recipe : kRecipes) {
    names += names.empty() ? "" : ", ";
    names += recipe.name;
  }
  return names;
}

TypeChooser::TypeChooser(const QuantRecipe& recipe, const gguf::GgufFile& file)
    : recipe_(recipe), tied_(file.find_tensor("output.weight") == nullptr) {
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    layers_ = std::max(layers_, layer_of(tensor.name) + 1);
  }
}

DType TypeChooser::choose(const gguf::TensorInfo& tensor) const {
  DType type = wanted(tensor);
  if (!is_float(tensor.type)) return type;
  if (!fits(type, tensor.shape[0])) type = smaller_blocks(type);
  return fits(type, tensor.shape[0]) ? type : DType::kF16;
}

DType TypeChooser::wanted(const gguf::TensorInfo& tensor) const {
  if (!is_float(tensor.type)) return tensor.type;
  const std::string_view name = tensor.name;
  // Only matrices are weights of products; all other tensors are small and need their precision.
  const bool is_vector = tensor.elements() == tensor.shape[0];
  if (is_vector || !name.ends_with(".weight") || name.ends_with("_norm.weight") ||
      name.ends_with("ffn_gate_inp.weight")) {
    return DType::kF32;
  }
  DType type = recipe_.base;
  if (name == "output.weight" || (tied_ && name == "token_embd.weight")) {
    type = recipe_.head;
  } else if (name.find(".attn_v.") != name.npos || name.find(".ffn_down") != name.npos) {
    if (matters_more(layer_of(name), layers_)) type = recipe_.more;
  }
  return type;
}

std::vector<std::string> misfits(const QuantRecipe& recipe, const gguf::GgufFile& file) {
  struct Pair {
    DType wanted;
    DType got;
    const gguf::TensorInfo* first;
    size_t more = 0;
  };
  const TypeChooser chooser(recipe, file);
  std::vector<Pair> pairs;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const DType wanted = chooser.wanted(tensor);
    const DType got = chooser.choose(tensor);
    if (wanted == got) continue;
    const auto same = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) {
      return pair.wanted == wanted && pair.got == got;
    });
    if (same == pairs.end()) {
      pairs.push_back({wanted, got, &tensor});
    } else {
      ++same->more;
    }
  }
  std::vector<std::string> lines;
  for (const Pair& pair : pairs) {
    const DType next = smaller_blocks(pair.wanted);
    const uint32_t block = dtype_info(pair.wanted)->block_elements;
    const uint32_t smaller = dtype_info(next)->block_elements;
    std::string line = pair.first->name.substr(0, kShownName);
    line += pair.more == 0   ? " becomes "
            : pair.more == 1 ? " and 1 more tensor become "
                             : " and " + std::to_string(pair.more) + " more tensors become ";
    line.append(dtype_name(pair.got)).append(", not ").append(dtype_name(pair.wanted));
    line += ": rows of " + std::to_string(pair.first->shape[0]) + " are no multiple of " +
            std::to_string(block);
    if (pair.got != next && smaller != block) line += ", nor of " + std::to_string(smaller);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gen::model

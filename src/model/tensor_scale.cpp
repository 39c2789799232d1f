// SPDX-License-Identifier: Apache-2.0
// See tensor_scale.h.
#include "model/tensor_scale.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "quant/rounding.h"

namespace gen::model {
namespace {

constexpr int64_t kScaledRun = 16;
constexpr std::string_view kWeightSuffix = ".weight";
// Scales of runs, halved, are 2^-10 to 224; from 2^-7 on they have four bits. The largest level
// is 12.
constexpr float kLargestScaled = 12 * 224.0F;
constexpr float kFourBits = 12 * 0x1p-7F;

/// "w" of the scale "w.scale". Gates and ups in one tensor have that of the ups.
std::string own_stem(const gguf::TensorInfo& tensor) {
  constexpr std::string_view kBoth = "ffn_gate_up_exps";
  std::string stem = tensor.name.substr(0, tensor.name.size() - kWeightSuffix.size());
  if (stem.ends_with(kBoth)) stem.replace(stem.size() - kBoth.size(), kBoth.size(), "ffn_up_exps");
  return stem;
}

/// The power of two that brings `largest` just below kLargestScaled.
float scale_for(float largest) noexcept {
  int exponent = 0;
  const double fraction = std::frexp(double{largest} / double{kLargestScaled}, &exponent);
  if (fraction == 0.5) --exponent;
  // Both the factor and its inverse are normal numbers.
  return std::ldexp(1.0F, std::clamp(exponent, -126, 126));
}

}  // namespace

const gguf::TensorInfo* known_scale(const gguf::GgufFile& file, const gguf::TensorInfo& tensor) {
  if (!tensor.name.ends_with(kWeightSuffix)) return nullptr;
  const gguf::TensorInfo* found = nullptr;
  for (const std::string& part : {own_stem(tensor), tensor.name}) {
    const gguf::TensorInfo* const scale = file.find_tensor(part + ".scale");
    if (scale != nullptr && scale->type == DType::kF32 && scale->elements() == tensor.shape[2]) {
      found = scale;
    }
    if (found != nullptr || tensor.shape[2] > 1) break;  // stacks have one spelling only
  }
  return found;
}

bool may_be_scaled(const gguf::GgufFile& file, const gguf::TensorInfo& tensor, DType type) {
  const std::string_view name = tensor.name;
  if (type != DType::kNVFP4 || tensor.type == type) return false;
  // Rows of embeddings are looked up, not multiplied.
  const bool embeds = name.find("embed") != name.npos;
  if (!name.starts_with("blk.") || !name.ends_with(kWeightSuffix) || embeds) return false;
  const std::string stem = own_stem(tensor);
  const bool has_scale = file.find_tensor(stem + ".scale") != nullptr ||
                         file.find_tensor(tensor.name + ".scale") != nullptr;
  if (has_scale && known_scale(file, tensor) == nullptr) return false;
  const bool is_joined = name.ends_with("ffn_gate_up_exps.weight");
  if (is_joined && file.find_tensor(stem + std::string(kWeightSuffix)) != nullptr) return false;
  if (tensor.shape[2] * tensor.shape[3] == 1) return !is_joined;
  const bool experts = stem.ends_with(".ffn_gate_exps") || stem.ends_with(".ffn_up_exps") ||
                       stem.ends_with(".ffn_down_exps");
  return experts && tensor.shape[3] == 1;
}

WeightSizes::WeightSizes(const gguf::TensorInfo& tensor)
    : matrix_(tensor.shape[0] * tensor.shape[1]),
      matrices_(static_cast<size_t>(tensor.elements() / matrix_)) {}

void WeightSizes::add(int64_t first, std::span<const float> weights) noexcept {
  for (int64_t i = 0; i < std::ssize(weights); i += kScaledRun) {
    const float largest = quant::largest_magnitude(weights.data() + i, kScaledRun);
    if (largest == 0.0F) continue;
    Matrix& matrix = matrices_[static_cast<size_t>((first + i) / matrix_)];
    matrix.largest = std::max(matrix.largest, largest);
    ++matrix.runs;
    if (largest < kFourBits) ++matrix.small_runs;
  }
}

std::vector<float> WeightSizes::scales() const {
  std::vector<float> scales;
  scales.reserve(matrices_.size());
  bool any = false;
  for (const Matrix& matrix : matrices_) {
    const bool wanted = matrix.small_runs > matrix.runs / 2 || matrix.largest > kLargestScaled;
    scales.push_back(wanted ? scale_for(matrix.largest) : 1.0F);
    any = any || scales.back() != 1.0F;
  }
  if (!any) scales.clear();
  return scales;
}

gguf::TensorInfo scale_info(const gguf::TensorInfo& tensor, size_t n) {
  gguf::TensorInfo info;
  info.name = own_stem(tensor) + ".scale";
  info.shape[0] = static_cast<int64_t>(n);
  info.n_dims = 1;
  return info;
}

}  // namespace gen::model

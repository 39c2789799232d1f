// SPDX-License-Identifier: Apache-2.0
// Shared by the file of a tiny model and its reference forward pass.
#pragma once

#include <cstdint>
#include <string>

#include "model/arch/dense_decoder.h"

namespace gen::test {

inline constexpr int32_t kMixWidth = 40;  // no multiple of 16

/// As they lie in the file.
struct XieluKeys {
  float alpha_n;
  float alpha_p;
  float beta;
  float eps;
};
inline XieluKeys xielu(int32_t index) {
  const auto i = static_cast<float>(index);
  return {0.3F - 0.2F * i, -0.4F + 0.3F * i, 0.5F - 0.1F * i, -1e-6F};
}

inline std::string in_layer(int32_t index, const char* name) {
  return "blk." + std::to_string(index) + "." + name;
}

inline bool is_layer(const model::arch::DenseStyle& style) {
  return style.norms.kind == model::arch::NormStyle::Kind::kLayer;
}

inline bool has(model::arch::Bias bias, bool wanted) {
  return bias == model::arch::Bias::kRequired || (bias == model::arch::Bias::kOptional && wanted);
}

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// Shapes of tensors in messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gen::model {

/// "256 x 1024": two lengths at least, and no further ones that are all 1.
inline std::string shape_text(const std::array<int64_t, 4>& shape) {
  size_t shown = shape.size();
  while (shown > 2 && shape[shown - 1] == 1) --shown;
  std::string text = std::to_string(shape[0]);
  for (size_t i = 1; i < shown; ++i) text += " x " + std::to_string(shape[i]);
  return text;
}

}  // namespace gen::model

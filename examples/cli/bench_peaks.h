// SPDX-License-Identifier: Apache-2.0
// What speeds are set against: peaks of this machine, measured in the same run, for the products
// that a model's weights need.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "handles.h"

namespace cli {

struct Peaks {
  double bandwidth = 0;         // bytes read per second
  std::string products;         // "dot_i8", "dot_bf16" or "fma_f32": what multiplies the weights
  double operations = 0;        // of those, per second; a product and its sum count two
  double float_operations = 0;  // of fma_f32, which attention uses
  /// Share of `operations` that is left when the scales of blocks are applied; 0 if not known.
  double ceiling = 1;
};

/// `description` is what gen_model_describe says.
Peaks measure_peaks(int32_t threads, const nlohmann::json& description);

/// Share of the dot instructions among all that products of a weight type need, in (0, 1]; 1 for
/// types without blocks, 0 for unknown types. `dot` is how many instructions make up one dot.
double ceiling_of(const std::string& type, int dot);

}  // namespace cli

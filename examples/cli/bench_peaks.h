// SPDX-License-Identifier: Apache-2.0
// Reference figures for speeds: peaks of this machine, measured in the same run, for the products
// that a model's weights need.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "handles.h"

namespace cli {

struct Peaks {
  double bandwidth = 0;         // bytes read per second
  std::string products;         // "dot_i8", "dot_bf16" or "fma_f32": the instruction that
                                // multiplies the weights
  double operations = 0;        // of those, per second; a multiply-and-add counts two
  double float_operations = 0;  // of fma_f32, which attention uses
  /// Share of `operations` that remains when block scales are applied; 0 if unknown.
  double ceiling = 1;
};

/// `description` is the output of gen_model_describe.
Peaks measure_peaks(int32_t threads, const nlohmann::json& description);

/// Share of the dot instructions among all that products of a weight type need, in (0, 1]; 1 for
/// types without blocks, 0 for unknown types. `dot` is how many instructions make up one dot.
double ceiling_of(const std::string& type, int dot);

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// Merging by file names: merge.h from two paths to a third.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "model/quant_recipe.h"

namespace gen::model {

/// Writes `model`, a GGUF file of one or several parts, with `adapter` as `out`, which appears
/// whole or not at all; without a recipe (null) in the model's types. kInvalidArgument for a scale
/// that is not finite and if `out` is one of the files or a part of one; else what opening a file,
/// read_adapter(), merge() and NewFile say. Uses all CPUs.
Status merge_file(const std::string& model, const std::string& adapter, float scale,
                  const std::string& out, const QuantRecipe* recipe,
                  const std::function<bool(double)>& progress);

}  // namespace gen::model

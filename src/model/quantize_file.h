// SPDX-License-Identifier: Apache-2.0
// Quantising by file names: quantize.h from one path to another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/quant_recipe.h"

namespace gen::model {

/// Writes `in`, a GGUF file of one or several parts, as `out`, which appears whole or not at all.
/// `importance` is the path of an importance matrix, empty for none. kInvalidArgument if `out` is
/// one of the files or a part of one; else what opening a file, read_importance(), quantize() and
/// NewFile say. Uses all CPUs.
Status quantize_file(const std::string& in, const std::string& out, const QuantRecipe& recipe,
                     const std::string& importance, std::vector<TypePattern> types,
                     const std::function<bool(double)>& progress);

}  // namespace gen::model

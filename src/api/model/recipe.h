// SPDX-License-Identifier: Apache-2.0
// Names of types, as functions that write models take them.
#pragma once

#include <string>

#include "base/status.h"
#include "model/quant_recipe.h"

namespace gen::api {

/// kInvalidArgument for an unknown name.
inline Result<const model::QuantRecipe*> recipe_of(const char* type) {
  const model::QuantRecipe* const recipe = model::find_recipe(type);
  if (recipe != nullptr) return recipe;
  if (const std::string near = model::recipes_near(type); !near.empty()) {
    return error(Code::kInvalidArgument, "type '%.60s': did you mean %s?", type, near.c_str());
  }
  return error(Code::kInvalidArgument, "type '%.60s' is not one of %s", type,
               model::recipe_names().c_str());
}

}  // namespace gen::api

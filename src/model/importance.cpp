// SPDX-License-Identifier: Apache-2.0
// See importance.h.
#include "model/importance.h"

namespace gen::model {

const std::vector<float>* Importance::find(std::string_view tensor_name) const {
  const auto found = means_.find(std::string(tensor_name));
  return found != means_.end() ? &found->second : nullptr;
}

}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Where a file that is made of others may be written.
#pragma once

#include <string>

#include "base/status.h"

namespace gen::model {

/// kInvalidArgument if `out` is the GGUF file `in`, by whatever path, or a part of it: writing
/// would replace its only copy.
Status check_apart(const std::string& in, const std::string& out);

}  // namespace gen::model

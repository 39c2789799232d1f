// SPDX-License-Identifier: Apache-2.0
// What a file contains that is given beside a model, whichever one: a LoRA adapter, or a head that
// drafts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cli {

/// Architecture, parameters, memory and metadata; of an adapter also alpha, ranks and number of
/// pairs. Null for another file.
nlohmann::ordered_json describe_beside(const std::string& path);

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// What a file with a LoRA adapter contains, whichever model it is for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cli {

/// Architecture, alpha, ranks, number of pairs, memory and metadata. Null for another file.
nlohmann::ordered_json describe_adapter(const std::string& path);

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// What a file contains that is no model by itself: a LoRA adapter, a head that drafts, an
// importance matrix, a projector of pictures or sound, a vocabulary.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gguf_head.h"

namespace cli {

inline constexpr const char* kImportanceType = "importance matrix";

/// "type", "architecture", "parameters" and what that type has: alpha, ranks and number of pairs of
/// an adapter. Null for a model.
nlohmann::ordered_json describe_beside(const GgufHead& head);

/// Whether the file begins as an importance matrix of the older binary form: a number of entries,
/// the length of a name, the name of a tensor.
bool is_older_importance(const std::string& path);

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// The names in a GGUF file of an importance matrix (importance_sums.h).
#pragma once

#include <string_view>

namespace gen::model {

inline constexpr std::string_view kImportanceType = "imatrix";  // general.type
inline constexpr std::string_view kDatasetsKey = "imatrix.datasets";
inline constexpr std::string_view kSquaresSuffix = ".in_sum2";
inline constexpr std::string_view kCountsSuffix = ".counts";

}  // namespace gen::model

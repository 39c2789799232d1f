// SPDX-License-Identifier: Apache-2.0
// Types for tensors by their names, as users write them: "blk.*.attn_v.weight=Q6_K".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace gen::model {

/// In patterns '*' stands for any text and '?' for any byte.
struct TypePattern {
  std::string pattern;
  DType type;
};

/// Reads "PATTERN=TYPE,PATTERN=TYPE"; spaces around parts and case of types are ignored.
/// kInvalidArgument for a part without either, and for a type that is unknown or has no codec.
Result<std::vector<TypePattern>> parse_type_patterns(std::string_view text);

bool matches_pattern(std::string_view pattern, std::string_view text) noexcept;

/// Whether names of types are equal but for case: other programs print q4_k_m.
bool same_type_name(std::string_view a, std::string_view b) noexcept;

}  // namespace gen::model

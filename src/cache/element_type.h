// SPDX-License-Identifier: Apache-2.0
// Element types of caches in host memory, by their names in the C API.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "tensor/dtype.h"

namespace gen::cache {

/// "fp32", "fp16", "q8_0", "q4_0"; null for a type that no such cache has.
const char* element_type_name(DType type) noexcept;
/// The one of `known` that has this name. kInvalidArgument names `what`, which has the type, and
/// all known types.
Result<DType> find_element_type(std::string_view name, std::span<const DType> known,
                                const char* what);
/// The same of a text of the C API, where NULL is the first of `known`.
Result<DType> element_type_or_first(const char* name, std::span<const DType> known,
                                    const char* what);

}  // namespace gen::cache

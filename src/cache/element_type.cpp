// SPDX-License-Identifier: Apache-2.0
// See element_type.h.
#include "cache/element_type.h"

#include <algorithm>
#include <string>

namespace gen::cache {
namespace {

constexpr struct {
  const char* name;
  DType type;
} kNames[] = {
    {"fp32", DType::kF32}, {"fp16", DType::kF16}, {"q8_0", DType::kQ8_0}, {"q4_0", DType::kQ4_0}};

}  // namespace

const char* element_type_name(DType type) noexcept {
  for (const auto& row : kNames) {
    if (row.type == type) return row.name;
  }
  return nullptr;
}

Result<DType> find_element_type(std::string_view name, std::span<const DType> known,
                                const char* what) {
  std::string all;
  for (const DType type : known) {
    const char* const text = element_type_name(type);
    if (name == text) return type;
    all.append(all.empty() ? "" : ", ").append(text);
  }
  return error(Code::kInvalidArgument, "%s of %.*s: known are %s", what,
               static_cast<int>(std::min<size_t>(name.size(), 40)), name.data(), all.c_str());
}

Result<DType> element_type_or_first(const char* name, std::span<const DType> known,
                                    const char* what) {
  if (name == nullptr) return known[0];
  return find_element_type(name, known, what);
}

}  // namespace gen::cache

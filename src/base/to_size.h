// SPDX-License-Identifier: Apache-2.0
// A number that is known not to be negative, as a container's size or index.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen {

constexpr size_t to_size(int32_t n) noexcept { return static_cast<size_t>(n); }

}  // namespace gen

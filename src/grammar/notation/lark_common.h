// SPDX-License-Identifier: Apache-2.0
// The terminals that %import common.NAME offers.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gen::grammar {

/// The number of a terminal; none for unknown names.
std::optional<size_t> lark_common(std::string_view name) noexcept;
/// Its pattern in Rust's syntax.
std::string_view lark_common_pattern(size_t which) noexcept;

}  // namespace gen::grammar

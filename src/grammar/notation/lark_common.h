// SPDX-License-Identifier: Apache-2.0
// The terminals that %import common.NAME offers.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gen::grammar {

/// Which terminal a name is; none for others.
std::optional<size_t> lark_common(std::string_view name) noexcept;
/// As a pattern of Rust.
std::string_view lark_common_pattern(size_t which) noexcept;

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// Tables of builtins by file, and what filters and methods of texts share.
#pragma once

#include <span>
#include <string_view>

#include "template/builtin.h"

namespace gen::templates {

std::span<const Builtin> text_filters() noexcept;
std::span<const Builtin> row_filters() noexcept;
std::span<const Builtin> all_tests() noexcept;
std::span<const Builtin> all_functions() noexcept;
std::span<const Builtin> text_methods() noexcept;
std::span<const Builtin> dict_methods() noexcept;
std::span<const Builtin> sequence_methods() noexcept;

Result<Value> replace_text(const Call& call, const Value& of, const Value& from, const Value& to,
                           int64_t most);
Result<Value> centered(const Call& call, const Value& of, int64_t width, const Text& fill);
/// {key: value} as [(key, value), …], sorted where asked.
Result<Value> dict_items(const Call& call, const Dict& dict, Form form);

}  // namespace gen::templates

// SPDX-License-Identifier: Apache-2.0
// Typed access to the arguments of builtins, and text operations that several of them share.
#pragma once

#include <string>
#include <vector>

#include "template/evaluator.h"

namespace gen::templates {

/// `standard` if it was not given. kInvalidArgument for another type.
Result<int64_t> integer_argument(const Call& call, size_t i, int64_t standard);
Result<bool> truth_argument(const Call& call, size_t i, bool standard);
/// Converts any value to text.
Result<Value> text_argument(const Call& call, size_t i, std::string_view standard = "");
/// Fails unless the argument is a text.
Status need_text(const Call& call, size_t i);

/// Removes characters of `chars` (white space if null) at the ends.
Text strip(const Text& text, const std::string_view* chars, bool left, bool right);
/// The number of characters.
size_t count_characters(std::string_view text) noexcept;
/// Offset of character `count`, or the end.
size_t offset_of(std::string_view text, size_t count) noexcept;
/// Replaces at most `most` occurrences, all if negative.
Text replace(const Text& text, const Text& from, const Text& to, int64_t most);
/// As str.splitlines, without or with the line breaks. The lines are charged, their bytes are not.
Result<std::vector<Text>> split_lines(Heap* heap, const Text& text, bool keep = false);
/// Every character in one case; the writers of the text's parts are kept.
Text in_case(const Text& text, bool upper);
/// The first character in one case, the rest lower.
Text capitalized(const Text& text);

/// `name` in the row of builtins, or null.
/// Where `needle` is in `text`, or npos. Linear.
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
size_t rfind_text(std::string_view text, std::string_view needle);

const Builtin* find_in(std::span<const Builtin> rows, std::string_view name) noexcept;

}  // namespace gen::templates

// SPDX-License-Identifier: Apache-2.0
// Single characters of a pattern: escapes, and classes in brackets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/expression/characters.h"
#include "grammar/regex/regex.h"
#include "grammar/regex/regex_sets.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {

inline constexpr const char* kNoRange = "a set is no end of a range";

class RegexClassReader : protected TextReader {
 protected:
  /// `n_captures` distinguishes backreferences from octal escapes.
  RegexClassReader(std::string_view text, const RegexFlags& flags, RegexSets& sets)
      : TextReader(text), flags_(flags), sets_(sets) {}

  [[nodiscard]] bool rust() const noexcept { return flags_.syntax == RegexSyntax::kRust; }
  /// At a [: up to its ].
  Result<CharSet> char_class();
  /// A character, or none where a set such as \d was added to `set`.
  Result<std::optional<uint32_t>> atom(CharSet* set, bool in_class);
  /// The meaning of `.`.
  [[nodiscard]] CharSet any_but_line_ends() const;
  /// With the flag x: skips white space, and comments outside of classes.
  void skip(bool in_class = false);

  RegexFlags flags_;  // the current flags
  RegexSets& sets_;
  size_t n_captures_ = 0;  // up to which \1 and so on are backreferences
  // For ECMA-262: whether the pattern has something that needs the flag u; and where a set ends a
  // range, which that flag refuses.
  bool needs_flag_u_ = false;
  std::optional<size_t> set_in_range_;

 private:
  Status refuse_in_class() const;
  bool add_named_set(char letter, CharSet* set);
  Status property(size_t begin, CharSet* set);
  Result<uint32_t> digits_escape(size_t begin, bool in_class);
  Result<uint32_t> letter_escape(char c, size_t begin, bool in_class);
  Result<uint32_t> rust_escape(char c, size_t begin);
  Result<uint32_t> unicode();
  Result<uint32_t> in_braces(size_t begin);
  [[nodiscard]] bool hexadecimal_at(size_t ahead) const;
  [[nodiscard]] bool hexadecimal_ahead(size_t digits) const;
};

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// Common terminals, see lark_common.h.
#include "grammar/notation/lark_common.h"

#include <iterator>

namespace gen::grammar {
namespace {

struct Common {
  std::string_view name;
  std::string_view pattern;
};

constexpr Common kCommon[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9A-Fa-f]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", R"([0-9]+\.[0-9]*|\.[0-9]+)"},
    {"_EXP", "[Ee][+-]?[0-9]+"},
    {"FLOAT", R"([0-9]+[Ee][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?)"},
    {"SIGNED_FLOAT", R"([+-]?([0-9]+[Ee][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?))"},
    {"NUMBER", R"(([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee][+-]?[0-9]+)?)"},
    {"SIGNED_NUMBER", R"([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", R"("([^"\\\n]|\\.)*")"},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Z_a-z][0-9A-Z_a-z]*"},
    {"WS_INLINE", R"([ \t]+)"},
    {"WS", R"([ \t\f\r\n]+)"},
    {"CR", R"(\r)"},
    {"LF", R"(\n)"},
    {"NEWLINE", R"((\r?\n)+)"},
    {"SH_COMMENT", R"(\#[^\n]*)"},
    {"CPP_COMMENT", R"(//[^\n]*)"},
    {"C_COMMENT", R"(/\*([^*]|\*+[^*/])*\*+/)"},
    {"SQL_COMMENT", R"(--[^\n]*)"},
};

}  // namespace

std::optional<size_t> lark_common(std::string_view name) noexcept {
  for (size_t i = 0; i < std::size(kCommon); ++i) {
    if (kCommon[i].name == name) return i;
  }
  return std::nullopt;
}

std::string_view lark_common_pattern(size_t which) noexcept { return kCommon[which].pattern; }

}  // namespace gen::grammar

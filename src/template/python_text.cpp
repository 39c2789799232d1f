// SPDX-License-Identifier: Apache-2.0
// Values as Python's repr() writes them; see evaluator.h.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "template/evaluator.h"
#include "template/unicode.h"

namespace gen::templates {
namespace {

constexpr int kDeepestText = 100;

// Quotes and escapes count as written by the template; the rest keeps its writer.
void append_quoted(const Text& text, Text* out) {
  const std::string_view view = text.view();
  const bool single = view.find('\'') != std::string_view::npos;
  const char quote = single && view.find('"') == std::string_view::npos ? '"' : '\'';
  const std::string_view mark(&quote, 1);
  out->append(mark, Writer::kTemplate);
  size_t plain = 0;
  for (size_t at = 0; at < view.size();) {
    const size_t begin = at;
    const uint32_t c = utf8_next(view, &at);
    char escaped[16];
    if (c == '\\' || c == static_cast<uint32_t>(quote)) {
      std::snprintf(escaped, sizeof escaped, "\\%c", static_cast<char>(c));
    } else if (c == '\n' || c == '\r' || c == '\t') {
      std::snprintf(escaped, sizeof escaped, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    } else if (c < 0x80 ? c >= 0x20 && c != 0x7F : !in_class(CharacterClass::kUnprintable, c)) {
      continue;
    } else {
      std::snprintf(escaped, sizeof escaped,
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    c);
    }
    out->append(text, plain, begin);
    out->append(escaped, text.writer_at(begin));
    plain = at;
  }
  out->append(text, plain, view.size());
  out->append(mark, Writer::kTemplate);
}

Status append_dict(Evaluator& evaluator, const Dict& dict, Text* out, int depth) {
  out->append("{", Writer::kTemplate);
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out->append(", ", Writer::kTemplate);
    GEN_TRY(append_repr(evaluator, dict.entries[i].first, out, depth + 1));
    out->append(": ", Writer::kTemplate);
    GEN_TRY(append_repr(evaluator, dict.entries[i].second, out, depth + 1));
  }
  out->append("}", Writer::kTemplate);
  return {};
}

Status append_sequence(Evaluator& evaluator, const Sequence& sequence, Text* out, int depth) {
  static constexpr const char* kOpen[] = {
      "[", "(", "range(", "dict_keys([", "dict_values([", "dict_items(["};  // by Form
  static constexpr const char* kClose[] = {"]", ")", ")", "])", "])", "])"};
  const auto form = static_cast<size_t>(sequence.form);
  if (sequence.form == Form::kGenerator) {
    return error(Code::kInvalidArgument, "a generator has no text; |list makes a list of it");
  }
  out->append(kOpen[form], Writer::kTemplate);
  if (sequence.bounds != nullptr) {
    const RangeBounds& bounds = *sequence.bounds;
    GEN_TRY(append_repr(evaluator, bounds.begin, out, depth + 1));
    out->append(", ", Writer::kTemplate);
    GEN_TRY(append_repr(evaluator, bounds.end, out, depth + 1));
    if (bounds.step.integer != 1) {
      out->append(", ", Writer::kTemplate);
      GEN_TRY(append_repr(evaluator, bounds.step, out, depth + 1));
    }
    out->append(kClose[form], Writer::kTemplate);
    return {};
  }
  for (size_t i = 0; i < sequence.values.size(); ++i) {
    if (i > 0) out->append(", ", Writer::kTemplate);
    GEN_TRY(append_repr(evaluator, sequence.values[i], out, depth + 1));
  }
  if (sequence.form == Form::kTuple && sequence.values.size() == 1) {
    out->append(",", Writer::kTemplate);
  }
  out->append(kClose[form], Writer::kTemplate);
  return {};
}

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  std::string digits;
  std::string out;
  for (const char c : text.substr(0, e)) {
    if (c == '-') {
      out += c;
    } else if (c != '.') {
      digits += c;
    }
  }
  int exponent = 0;
  const char* begin = text.data() + e + 1;
  if (*begin == '+') ++begin;
  std::from_chars(begin, end, exponent);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    char power[16];
    std::snprintf(power, sizeof power, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out + power;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

Status append_repr(Evaluator& evaluator, const Value& value, Text* out, int depth) {
  if (depth > kDeepestText || evaluator.near_stack_end())
    return error(Code::kOutOfRange, "a value is nested too deep");
  GEN_TRY(evaluator.work());
  const Writer writer = value.by_user ? Writer::kUser : Writer::kTemplate;
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
      out->append("Undefined", writer);
      return {};
    case Kind::kNone:
      out->append("None", writer);
      return {};
    case Kind::kBool:
      out->append(value.truth ? "True" : "False", writer);
      return {};
    case Kind::kInt: {
      char digits[24];
      char* const end = std::to_chars(digits, digits + sizeof digits, value.integer).ptr;
      out->append({digits, static_cast<size_t>(end - digits)}, writer);
      return {};
    }
    case Kind::kBigInt:
      GEN_TRY(evaluator.heap().charge(value.view().size()));
      out->append(value.view(), writer);
      return {};
    case Kind::kFloat:
      out->append(float_text(value.number), writer);
      return {};
    case Kind::kString:
      GEN_TRY(evaluator.heap().charge(value.view().size()));
      if (value.string().markup) out->append("Markup(", Writer::kTemplate);
      append_quoted(value.text(), out);
      if (value.string().markup) out->append(")", Writer::kTemplate);
      return {};
    case Kind::kSequence:
      return append_sequence(evaluator, value.sequence(), out, depth);
    case Kind::kDict:
      return append_dict(evaluator, value.dict(), out, depth);
    case Kind::kMacro: {
      const Stmt& stmt = *static_cast<const Macro&>(*value.object).stmt;
      const bool named = stmt.kind == StmtKind::kMacro;
      GEN_TRY(evaluator.heap().charge(stmt.text.size()));
      out->append(named ? "<Macro '" + stmt.text + "'>" : "<Macro anonymous>", Writer::kTemplate);
      return {};
    }
    case Kind::kSelf:
      out->append("<TemplateReference None>", Writer::kTemplate);
      return {};
    case Kind::kLoop: {
      const Loop& loop = static_cast<const Loop&>(*value.object);
      GEN_TRY(evaluator.look_ahead(loop, SIZE_MAX));
      out->append("<LoopContext " + std::to_string(loop.index + 1) + "/" +
                      std::to_string(loop.values.size()) + ">",
                  Writer::kTemplate);
      return {};
    }
    case Kind::kNamespace: {
      const auto& entries = static_cast<const Namespace&>(*value.object).entries;
      out->append("<Namespace {", Writer::kTemplate);
      for (size_t i = 0; i < entries.size(); ++i) {
        if (i > 0) out->append(", ", Writer::kTemplate);
        GEN_TRY(evaluator.heap().charge(entries[i].name.size()));
        append_quoted(Text(entries[i].name, entries[i].writer), out);
        out->append(": ", Writer::kTemplate);
        GEN_TRY(append_repr(evaluator, entries[i].value, out, depth + 1));
      }
      out->append("}>", Writer::kTemplate);
      return {};
    }
    default:
      break;
  }
  return error(Code::kInvalidArgument, "a %s has no text", type_name(value));
}

}  // namespace gen::templates

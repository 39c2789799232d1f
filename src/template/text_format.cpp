// SPDX-License-Identifier: Apache-2.0
// Format strings: "%s of %d" and "{} of {name:>5}". The text between the fields keeps its writer,
// and so do the values.
#include "template/text_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/c_locale.h"
#include "base/utf8.h"
#include "template/arguments.h"

namespace gen::templates {
namespace {

constexpr int64_t kWidest = 100'000;

/// The flags between % or : and the conversion letter.
struct Layout {
  Writer writer = Writer::kTemplate;  // of the format: padding and signs count as written by it
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '\0';   // + or space
  bool alternate = false;
  bool commas = false;
  char comma = ',';
  int64_t width = 0;
  int64_t precision = -1;
  char letter = '\0';
};

Status bad(const char* what) { return error(Code::kInvalidArgument, "format: %s", what); }

void pad(Text body, const Layout& form, char standard, Text* out) {
  const auto size = static_cast<int64_t>(count_characters(body.view()));
  const int64_t missing = std::max<int64_t>(form.width - size, 0);
  const char align = form.align == '\0' ? standard : form.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  size_t head = 0;  // the sign stays before the padding
  if (align == '=' && !body.empty() &&
      std::string_view("+- ").find(body.view()[0]) != std::string_view::npos)
    head = 1;
  if (align == '=' && form.alternate && body.view().substr(head, 1) == "0" &&
      std::string_view("xXob").find(body.view().substr(head + 1, 1)) != std::string_view::npos &&
      body.size() > head + 1)
    head += 2;
  out->append(body, 0, head);
  for (int64_t i = 0; i < left; ++i) out->append(form.fill, form.writer);
  out->append(body, head, body.size());
  for (int64_t i = left; i < missing; ++i) out->append(form.fill, form.writer);
}

/// An integer with group separators after a prefix, padded with zeros to a width.
std::string grouped(const std::string& digits, const Layout& form, int64_t width) {
  const size_t prefix = form.alternate && digits.size() > 1 && digits[0] == '0' &&
                                std::string_view("xXob").find(digits[1]) != std::string_view::npos
                            ? 2
                            : 0;
  const bool tens = std::string_view("xXob").find(form.letter) == std::string_view::npos;
  const size_t size = form.letter == '\0' || tens ? 3 : 4;
  const char* const all = size == 3 ? "0123456789" : "0123456789abcdefABCDEF";
  const size_t end = std::min(digits.find_first_not_of(all, prefix), digits.size());
  std::string whole = digits.substr(prefix, end - prefix);
  const auto missing = [&](size_t count) {
    const size_t commas = (count - 1) / size;
    return width - static_cast<int64_t>(prefix + count + commas + digits.size() - end);
  };
  size_t filled = whole.size();
  while (!whole.empty() && missing(filled) > 0) ++filled;
  whole.insert(0, filled - whole.size(), '0');
  std::string made = digits.substr(0, prefix);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % size == 0) made += form.comma;
    made += whole[i];
  }
  return made + digits.substr(end);
}

Result<std::string> integer_digits(const Value& value, char letter, bool alternate) {
  char buffer[80];
  const uint64_t magnitude = value.integer < 0 ? 0 - static_cast<uint64_t>(value.integer)
                                               : static_cast<uint64_t>(value.integer);
  std::string digits;
  switch (letter) {
    case 'x':
      std::snprintf(buffer, sizeof buffer, "%llx", static_cast<unsigned long long>(magnitude));
      break;
    case 'X':
      std::snprintf(buffer, sizeof buffer, "%llX", static_cast<unsigned long long>(magnitude));
      break;
    case 'o':
      std::snprintf(buffer, sizeof buffer, "%llo", static_cast<unsigned long long>(magnitude));
      break;
    case 'b':
      for (uint64_t rest = magnitude; rest > 0 || digits.empty(); rest >>= 1)
        digits.insert(0, rest % 2 ? "1" : "0");
      return (alternate ? "0b" : "") + digits;
    default:
      std::snprintf(buffer, sizeof buffer, "%llu", static_cast<unsigned long long>(magnitude));
      break;
  }
  if (alternate && letter != 'd')
    digits = letter == 'x' ? "0x" : letter == 'X' ? "0X" : letter == 'o' ? "0o" : "";
  return digits + buffer;
}

Result<std::string> float_digits(double number, const Layout& form) {
  if (form.precision > 300) return bad("more than 300 digits");
  const CLocale numbers;
  std::vector<char> buffer(700);
  const char letter = form.letter == 'F' ? 'f' : form.letter == '%' ? 'f' : form.letter;
  char pattern[8] = {'%', '.', '*', letter, '\0'};
  if (form.alternate) std::snprintf(pattern, sizeof pattern, "%%#.*%c", letter);
  const int precision = form.precision < 0 ? 6 : static_cast<int>(form.precision);
  const double shown = std::fabs(form.letter == '%' ? number * 100 : number);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::snprintf(buffer.data(), buffer.size(), pattern, precision, shown);
#pragma GCC diagnostic pop
  std::string digits = buffer.data();
  if (form.letter == '%') digits += '%';
  return digits;
}

/// A float without conversion letter: as str() writes it, or with a precision and always a point.
std::string plain_digits(double number, int64_t precision, bool alternate) {
  if (precision < 0 || !std::isfinite(number)) {
    std::string shown = float_text(number);
    const size_t power = shown.find('e');
    const bool point = !alternate || power == std::string::npos || shown.find('.') < power;
    if (!point) shown.insert(power, ".");
    return shown;
  }
  const CLocale numbers;
  const int digits = static_cast<int>(std::clamp<int64_t>(precision, 1, 300));
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, number);
  const int exponent = std::atoi(std::strchr(buffer, 'e') + 1);
  if (exponent < -4 || exponent >= digits - 1) {
    std::string mantissa(buffer, std::strchr(buffer, 'e'));
    if (alternate) {
      if (mantissa.find('.') == std::string::npos) mantissa += '.';
    } else if (mantissa.find('.') != std::string::npos) {
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + std::strchr(buffer, 'e');
  }
  std::snprintf(buffer, sizeof buffer, alternate ? "%#.*g" : "%.*g", digits, number);
  std::string made = buffer;
  if (made.find('.') == std::string::npos) made += ".0";
  return made;
}

/// Digits with sign and padding. The padding is charged already.
Status append_digits(Heap& heap, const Value& value, std::string digits, bool negative,
                     const Layout& form, Text* out) {
  GEN_TRY(heap.charge(digits.size()));
  if (form.commas) {
    const bool zeros = form.align == '=' && form.fill == "0";
    digits = grouped(digits, form, zeros ? form.width - (negative || form.sign != '\0') : 0);
  }
  if (negative) {
    digits.insert(0, "-");
  } else if (form.sign != '\0') {
    digits.insert(0, 1, form.sign);
  }
  pad(Text(digits, value.by_user ? Writer::kUser : form.writer), form, '>', out);
  return {};
}

/// A number with a conversion; with `percent`, `d` takes the integer part of a float.
Status append_number(Heap& heap, const Value& value, Layout form, bool percent, Text* out) {
  const bool whole = std::string_view("dxXobn").find(form.letter) != std::string_view::npos;
  Value number = value;
  if (number.is(Kind::kBool)) number = Value::of(int64_t{value.truth});
  if (!number.is_number() || number.is(Kind::kBigInt)) {
    return error(Code::kInvalidArgument, "format: a number is needed, not %s", type_name(value));
  }
  std::string digits;
  bool negative = false;
  if (whole) {
    if (number.is(Kind::kFloat)) {
      if (!percent || form.letter != 'd' || !(std::fabs(number.number) < 9.2e18))
        return bad("an integer is needed");
      number = Value::of(static_cast<int64_t>(number.number));
    }
    negative = number.integer < 0;
    GEN_ASSIGN(digits, integer_digits(number, form.letter, form.alternate));
    if (percent && form.precision > static_cast<int64_t>(digits.size())) {
      if (form.precision > kWidest) return bad("too wide");
      digits.insert(0, static_cast<size_t>(form.precision) - digits.size(), '0');
    }
  } else {
    const double real = as_double(number);
    negative = std::signbit(real) && !std::isnan(real);
    GEN_ASSIGN(digits, float_digits(real, form));
  }
  return append_digits(heap, value, std::move(digits), negative, form, out);
}

/// The character whose code is an integer or a bool.
Result<Text> character_of(const Value& value, const Layout& form) {
  const int64_t code = value.is(Kind::kInt)    ? value.integer
                       : value.is(Kind::kBool) ? value.truth
                                               : -1;
  if (code < 0 || code >= 0x110000 || (code >= 0xD800 && code <= 0xDFFF)) {
    return bad("no character has that number");
  }
  std::string character;
  utf8_append(static_cast<uint32_t>(code), &character);
  return Text(character, value.by_user ? Writer::kUser : form.writer);
}

/// repr() of a value, or ascii(), which is that with escapes.
Status append_shown(Evaluator& evaluator, const Value& value, bool ascii, Text* out) {
  if (!ascii) return append_repr(evaluator, value, out);
  Text shown;
  GEN_TRY(append_repr(evaluator, value, &shown));
  GEN_TRY(evaluator.heap().charge(3 * shown.size()));
  for (size_t at = 0; at < shown.size();) {
    const size_t begin = at;
    const uint32_t c = utf8_next(shown.view(), &at);
    if (c < 0x80) {
      out->append(shown, begin, at);
      continue;
    }
    char escaped[16];
    std::snprintf(escaped, sizeof escaped,
                  c < 0x100     ? "\\x%02x"
                  : c < 0x10000 ? "\\u%04x"
                                : "\\U%08x",
                  c);
    out->append(escaped, shown.writer_at(begin));
  }
  return {};
}

Text shortened(const Text& text, int64_t precision) {
  if (precision < 0) return text;
  return text.slice(0, offset_of(text.view(), static_cast<size_t>(precision)));
}

class Percent {
 public:
  Percent(Evaluator& evaluator, const Value& format, const Value& values)
      : evaluator_(evaluator), format_(format), values_(values) {
    tuple_ = values.is(Kind::kSequence) && values.sequence().form == Form::kTuple;
  }

  Result<Value> run() {
    const std::string_view view = format_.view();
    while (at_ < view.size()) {
      const size_t found = std::min(view.find('%', at_), view.size());
      out_.append(format_.text(), at_, found);
      at_ = found;
      if (at_ == view.size()) break;
      if (++at_ == view.size()) return bad("nothing behind %");
      if (view[at_] == '%') {
        out_.append(format_.text(), at_, at_ + 1);
        ++at_;
        continue;
      }
      GEN_TRY(place());
      GEN_TRY(evaluator_.heap().charge(16));
    }
    const size_t given = tuple_ ? values_.sequence().values.size() : 1;
    const bool all = used_ == given || values_.is(Kind::kDict) || values_.is(Kind::kUndefined) ||
                     (!tuple_ && values_.is(Kind::kSequence));
    if (!all) return bad("not all values are used");
    return evaluator_.heap().string(std::move(out_), format_.string().markup);
  }

 private:
  Result<Value> next() {
    const size_t place = used_++;
    if (tuple_) {
      const auto& values = values_.sequence().values;
      if (place < values.size()) return values[place];
    } else if (place == 0) {
      return values_;
    }
    return bad("not enough values");
  }

  Result<int64_t> number() {
    const std::string_view view = format_.view();
    if (at_ < view.size() && view[at_] == '*') {
      ++at_;
      GEN_ASSIGN(const Value value, next());
      if (!value.is(Kind::kInt)) return bad("* needs an integer");
      if (std::abs(std::clamp<int64_t>(value.integer, -kWidest - 1, kWidest + 1)) > kWidest)
        return bad("too wide");
      return value.integer;
    }
    int64_t made = 0;
    for (; at_ < view.size() && view[at_] >= '0' && view[at_] <= '9'; ++at_) {
      made = made * 10 + (view[at_] - '0');
      if (made > kWidest) return bad("too wide");
    }
    return made;
  }

  Status place() {
    const std::string_view view = format_.view();
    const size_t begin = at_ - 1;  // position of the %
    Layout form;
    Value value;
    bool named = false;
    if (view[at_] == '(') {
      const size_t end = view.find(')', at_);
      if (end == std::string_view::npos || !values_.is(Kind::kDict))
        return bad("a name needs a dict");
      const Value* const found = values_.dict().find(view.substr(at_ + 1, end - at_ - 1));
      if (found == nullptr) return bad("a name is not in the dict");
      value = *found;
      named = true;
      at_ = end + 1;
    }
    for (; at_ < view.size(); ++at_) {
      const char c = view[at_];
      if (c == '-') {
        form.align = '<';
      } else if (c == '0') {
        form.fill = "0";
      } else if (c == '+' || (c == ' ' && form.sign != '+')) {
        form.sign = c;
      } else if (c == '#') {
        form.alternate = true;
      } else if (c != ' ') {
        break;
      }
    }
    GEN_ASSIGN(form.width, number());
    if (form.width < 0) {
      form.align = '<';
      form.width = -form.width;
    }
    if (at_ < view.size() && view[at_] == '.') {
      ++at_;
      GEN_ASSIGN(form.precision, number());
      form.precision = std::max<int64_t>(form.precision, 0);
    }
    while (at_ < view.size() && std::string_view("hlL").find(view[at_]) != std::string_view::npos)
      ++at_;
    if (at_ == view.size()) return bad("a place has no end");
    form.letter = view[at_++];
    form.writer = format_.text().slice(begin, at_).writer_of_all();
    if (!named) {
      GEN_ASSIGN(value, next());
    }
    return fill(value, form);
  }

  Status fill(const Value& value, Layout form) {
    if (form.align == '<') form.fill = " ";
    if (form.fill == "0" && form.align == '\0') form.align = '=';
    GEN_TRY(evaluator_.heap().charge(static_cast<size_t>(form.width)));
    switch (form.letter) {
      case 's': {
        Value text;
        if (format_.string().markup) {
          GEN_ASSIGN(text, escape_html(evaluator_, value));
        } else {
          GEN_ASSIGN(text, evaluator_.to_text(value));
        }
        form.fill = " ";
        if (form.align == '=') form.align = '>';
        GEN_TRY(evaluator_.heap().charge(text.view().size()));
        pad(shortened(text.text(), form.precision), form, '>', &out_);
        return {};
      }
      case 'r':
      case 'a': {
        Text text;
        GEN_TRY(append_shown(evaluator_, value, form.letter == 'a', &text));
        form.fill = " ";
        if (form.align == '=') form.align = '>';
        pad(shortened(text, form.precision), form, '>', &out_);
        return {};
      }
      case 'c': {
        form.fill = " ";
        if (form.align == '=') form.align = '>';
        if (value.is(Kind::kInt) || value.is(Kind::kBool)) {
          GEN_ASSIGN(Text character, character_of(value, form));
          pad(std::move(character), form, '>', &out_);
          return {};
        }
        if (!value.is(Kind::kString) || count_characters(value.view()) != 1)
          return bad("%c needs one character");
        pad(value.text(), form, '>', &out_);
        return {};
      }
      case 'i':
      case 'u':
        form.letter = 'd';
        [[fallthrough]];
      case 'd':
      case 'x':
      case 'X':
      case 'o':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return append_number(evaluator_.heap(), value, form, true, &out_);
      default:
        return bad("an unknown letter");
    }
  }

  Evaluator& evaluator_;
  const Value& format_;
  const Value& values_;
  bool tuple_ = false;
  size_t used_ = 0;
  size_t at_ = 0;
  Text out_;
};

class Braces {
 public:
  explicit Braces(const Call& call) : call_(call), text_(call[0].text()) {}

  Result<Value> run() {
    const std::string_view view = text_.view();
    while (at_ < view.size()) {
      const size_t found = std::min(view.find_first_of("{}", at_), view.size());
      out_.append(text_, at_, found);
      at_ = found;
      if (at_ == view.size()) break;
      if (at_ + 1 < view.size() && view[at_ + 1] == view[at_]) {
        out_.append(text_, at_, at_ + 1);
        at_ += 2;
        continue;
      }
      if (view[at_] == '}') return bad("a single }");
      const size_t end = close_of(at_ + 1);
      if (end == std::string_view::npos) return bad("a single {");
      GEN_TRY(place(view.substr(at_ + 1, end - at_ - 1), text_.slice(at_, end).writer_of_all()));
      GEN_TRY(call_.evaluator.heap().charge(16));
      at_ = end + 1;
    }
    return call_.evaluator.heap().string(std::move(out_), call_[0].string().markup);
  }

 private:
  [[nodiscard]] size_t close_of(size_t from) const noexcept {
    int open = 1;
    for (size_t i = from; i < text_.size(); ++i) {
      if (text_.view()[i] == '{') ++open;
      if (text_.view()[i] == '}' && --open == 0) return i;
    }
    return std::string_view::npos;
  }

  Status place(std::string_view inner, Writer writer) {
    const size_t name_end = std::min(inner.find_first_of("!:"), inner.size());
    GEN_ASSIGN(Value value, field(inner.substr(0, name_end)));
    inner.remove_prefix(name_end);
    char conversion = '\0';
    if (!inner.empty() && inner[0] == '!') {
      if (inner.size() < 2) return bad("nothing behind !");
      conversion = inner[1];
      inner.remove_prefix(2);
    }
    if (conversion == 'r' || conversion == 'a') {
      Text text;
      GEN_TRY(append_shown(call_.evaluator, value, conversion == 'a', &text));
      GEN_ASSIGN(value, call_.evaluator.heap().string(std::move(text)));
    } else if (conversion == 's') {
      GEN_ASSIGN(value, call_.evaluator.to_text(value));
    } else if (conversion != '\0') {
      return bad("an unknown conversion");
    }
    std::string form;
    if (!inner.empty()) {
      if (inner[0] != ':') return bad("expected ':'");
      inner.remove_prefix(1);
      while (!inner.empty()) {  // {:{width}}
        const size_t open = std::min(inner.find('{'), inner.size());
        form += inner.substr(0, open);
        inner.remove_prefix(open);
        if (inner.empty()) break;
        const size_t close = inner.find('}');
        if (close == std::string_view::npos) return bad("a single {");
        GEN_ASSIGN(const Value nested, field(inner.substr(1, close - 1)));
        GEN_ASSIGN(const Value text, call_.evaluator.to_text(nested));
        form += text.view();
        if (!text.view().empty() && text.text().writer_of_all() == Writer::kUser) {
          writer = Writer::kUser;
        }
        inner.remove_prefix(close + 1);
      }
    }
    return fill(value, form, writer);
  }

  Result<Value> field(std::string_view name) {
    const size_t first = std::min(name.find_first_of(".["), name.size());
    const std::string_view head = name.substr(0, first);
    name.remove_prefix(first);
    Value value;
    const bool digits = head.find_first_not_of("0123456789") == std::string_view::npos;
    if (digits) {
      size_t place = next_;
      if (head.empty() ? numbered_ : next_ > 0) return bad("places with and without numbers");
      if (head.empty()) {
        ++next_;
      } else {
        numbered_ = true;
        place =
            head.size() > 6 ? SIZE_MAX : static_cast<size_t>(std::atoi(std::string(head).c_str()));
      }
      if (place >= call_.args.values.size()) return bad("not enough values");
      value = call_.args.values[place];
    } else {
      const auto found = std::find_if(call_.args.named.begin(), call_.args.named.end(),
                                      [&](const NamedArg& one) { return one.name == head; });
      if (found == call_.args.named.end()) return bad("a name is not given");
      value = found->value;
    }
    while (!name.empty()) {
      const bool bracket = name[0] == '[';
      const size_t end =
          bracket ? name.find(']') : std::min(name.find_first_of(".[", 1), name.size());
      if (end == std::string_view::npos) return bad("a single [");
      const std::string part(name.substr(1, end - 1));
      const bool number = bracket && !part.empty() && part.size() < 10 &&
                          part.find_first_not_of("0123456789") == std::string::npos;
      Value key = Value::of(int64_t{number ? std::atoi(part.c_str()) : 0});
      if (!number) {
        GEN_ASSIGN(key, call_.evaluator.heap().string(part, Writer::kTemplate));
      }
      GEN_ASSIGN(value, call_.evaluator.item(value, key));
      name.remove_prefix(bracket ? end + 1 : end);
    }
    return value;
  }

  Status fill(const Value& value, const std::string& text, Writer writer) {
    Layout form;
    form.writer = writer;
    size_t at = 0;
    const size_t first = offset_of(text, 1);
    const auto is_align = [&](size_t i) {
      return i < text.size() && std::string_view("<>^=").find(text[i]) != std::string_view::npos;
    };
    bool fill_given = false;
    if (is_align(first) && !text.empty()) {
      fill_given = true;
      form.fill = text.substr(0, first);
      form.align = text[first];
      at = first + 1;
    } else if (is_align(0)) {
      form.align = text[at++];
    }
    const auto take = [&](char c) { return at < text.size() && text[at] == c && ++at != 0; };
    if (take('+')) {
      form.sign = '+';
    } else if (take(' ')) {
      form.sign = ' ';
    }
    const bool minus = form.sign == '\0' && take('-');
    form.alternate = take('#');
    const bool of_number = value.is_number() && !(value.is(Kind::kBool) && text.empty());
    const bool for_numbers = form.align == '=' || form.sign != '\0' || minus || form.alternate;
    if (!fill_given && take('0')) {
      form.fill = "0";
      if (of_number && form.align == '\0') form.align = '=';
    }
    const auto number = [&](int64_t* out) {
      *out = 0;
      const size_t begin = at;
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && *out <= kWidest; ++at)
        *out = *out * 10 + (text[at] - '0');
      return at > begin;
    };
    number(&form.width);
    if (take(',')) {
      form.commas = true;
    } else if (take('_')) {
      form.commas = true;
      form.comma = '_';
    }
    if (take('.') && !number(&form.precision)) return bad("no precision behind .");
    if (form.width > kWidest || form.precision > kWidest) return bad("too wide");
    if (at < text.size()) form.letter = text[at++];
    if (at != text.size()) return bad("an unknown form");
    Heap& heap = call_.evaluator.heap();
    GEN_TRY(heap.charge(static_cast<size_t>(form.width)));
    if (of_number) {
      GEN_TRY(check_number(value, form, minus));
      if (form.letter == 'c') {
        GEN_ASSIGN(Text character, character_of(value, form));
        pad(std::move(character), form, '>', &out_);
        return {};
      }
      if (form.letter == '\0' && value.is(Kind::kFloat)) {
        return append_digits(heap, value,
                             plain_digits(std::fabs(value.number), form.precision, form.alternate),
                             std::signbit(value.number) && !std::isnan(value.number), form, &out_);
      }
      if (form.letter == 'n') form.letter = value.is(Kind::kFloat) ? 'g' : 'd';
      if (form.letter == '\0') form.letter = 'd';
      return append_number(heap, value, form, false, &out_);
    }
    if (form.letter != '\0' && form.letter != 's') return bad("an unknown letter");
    if (for_numbers || form.commas) return bad("that is for numbers");
    if (!value.is(Kind::kString) && !text.empty()) return bad("that value takes no form");
    GEN_ASSIGN(const Value shown, call_.evaluator.to_text(value));
    GEN_TRY(call_.evaluator.heap().charge(shown.view().size()));
    pad(shortened(shown.text(), form.precision), form, '<', &out_);
    return {};
  }

  // Combinations that Python refuses for a number.
  static Status check_number(const Value& value, const Layout& form, bool minus) {
    const std::string_view whole = "dxXobc";
    const std::string_view letters = value.is(Kind::kFloat) ? "neEfFgG%" : "dxXobcneEfFgG%";
    if (form.letter != '\0' && letters.find(form.letter) == std::string_view::npos)
      return bad("an unknown letter");
    const bool as_whole = !value.is(Kind::kFloat) && (form.letter == '\0' || form.letter == 'n' ||
                                                      whole.find(form.letter) != whole.npos);
    if (as_whole && form.precision >= 0) return bad("an integer has no precision");
    const bool based = std::string_view("xXob").find(form.letter) != std::string_view::npos;
    if (form.commas && (form.letter == 'n' || form.letter == 'c' || (based && form.comma == ',')))
      return bad("groups do not go with that letter");
    if (form.letter != 'c') return {};
    if (form.sign != '\0' || minus || form.alternate) return bad("a character has no sign");
    return {};
  }

  const Call& call_;
  const Text& text_;
  size_t at_ = 0;
  size_t next_ = 0;
  bool numbered_ = false;
  Text out_;
};

}  // namespace

Result<Value> percent_format(Evaluator& evaluator, const Value& format, const Value& values) {
  return Percent(evaluator, format, values).run();
}

Result<Value> brace_format(const Call& call) { return Braces(call).run(); }

}  // namespace gen::templates

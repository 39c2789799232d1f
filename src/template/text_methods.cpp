// SPDX-License-Identifier: Apache-2.0
// Methods of strings, as Python's str has them.
#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "template/arguments.h"
#include "template/lexer.h"
#include "template/text_filters.h"
#include "template/text_format.h"
#include "template/unicode.h"

namespace gen::templates {
namespace {

Result<Value> made(const Call& call, Text text) {
  return call.evaluator.heap().string(std::move(text), call[0].string().markup);
}

Result<Value> list_of(const Call& call, std::vector<Text> texts, Form form = Form::kList) {
  std::vector<Value> values;
  for (Text& text : texts) {
    GEN_ASSIGN(const Value value, made(call, std::move(text)));
    values.push_back(value);
  }
  return call.evaluator.heap().sequence(form, std::move(values));
}

Result<Value> strip_ends(const Call& call, bool left, bool right) {
  if (!call.given(1) || call[1].is(Kind::kNone)) {
    return made(call, strip(call[0].text(), nullptr, left, right));
  }
  GEN_TRY(need_text(call, 1));
  const std::string_view chars = call[1].view();
  GEN_TRY(call.evaluator.work(call[0].view().size() * (1 + chars.size() / 16)));
  return made(call, strip(call[0].text(), &chars, left, right));
}

Result<Value> strip_both(const Call& call) { return strip_ends(call, true, true); }
Result<Value> lstrip(const Call& call) { return strip_ends(call, true, false); }
Result<Value> rstrip(const Call& call) { return strip_ends(call, false, true); }
Result<Value> upper(const Call& call) { return made(call, in_case(call[0].text(), true)); }
Result<Value> lower(const Call& call) { return made(call, in_case(call[0].text(), false)); }
Result<Value> capitalize(const Call& call) { return made(call, capitalized(call[0].text())); }

bool capital(uint32_t c) noexcept {
  return in_class(CharacterClass::kUpper, c) || in_class(CharacterClass::kTitle, c);
}
bool cased(uint32_t c) noexcept { return capital(c) || in_class(CharacterClass::kLower, c); }

Result<Value> title(const Call& call) {
  const Text& text = call[0].text();
  Text out;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    if (!cased(utf8_next(text.view(), &at))) {
      out.append(text, begin, at);
      continue;
    }
    while (at < text.size()) {
      size_t next = at;
      if (!cased(utf8_next(text.view(), &next))) break;
      at = next;
    }
    out.append(capitalized(text.slice(begin, at)));
  }
  return made(call, std::move(out));
}

Result<Value> swapcase(const Call& call) {
  const Text& text = call[0].text();
  Text out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = utf8_next(text.view(), &at);
    const bool down = in_class(CharacterClass::kUpper, c);
    if (down || in_class(CharacterClass::kLower, c)) {
      out.append(in_case(text.slice(begin, at), !down));
    } else {
      out.append(text, begin, at);
    }
  }
  return made(call, std::move(out));
}

/// Parts of a text, charged while they are cut off: each takes more than its bytes, which list_of()
/// charges.
class Parts {
 public:
  explicit Parts(const Call& call) : heap_(call.evaluator.heap()) {}

  Status add(Text part) {
    GEN_TRY(heap_.charge(sizeof(Text)));
    texts_.push_back(std::move(part));
    return {};
  }
  std::vector<Text> take() && { return std::move(texts_); }
  std::vector<Text> take_reversed() && {
    std::reverse(texts_.begin(), texts_.end());
    return std::move(texts_);
  }

 private:
  Heap& heap_;
  std::vector<Text> texts_;
};

// Words separated by white space; splits from the right if `right`.
Result<std::vector<Text>> split_words(const Call& call, int64_t most, bool right) {
  const Text& text = call[0].text();
  Parts words(call);
  const std::string_view view = text.view();
  if (right && most >= 0) {
    size_t end = stripped_end(view);
    while (end > 0) {
      if (most-- == 0) {
        GEN_TRY(words.add(text.slice(0, end)));
        break;
      }
      size_t begin = end;
      while (begin > 0) {
        size_t at = begin - 1;
        while (at > 0 && (view[at] & 0xC0) == 0x80) --at;
        size_t next = at;
        if (is_space(utf8_next(view, &next))) break;
        begin = at;
      }
      GEN_TRY(words.add(text.slice(begin, end)));
      end = stripped_end(view.substr(0, begin));
    }
    return std::move(words).take_reversed();
  }
  for (size_t at = stripped_begin(view); at < view.size();) {
    if (most-- == 0) {
      GEN_TRY(words.add(text.slice(at, view.size())));
      break;
    }
    size_t end = at;
    while (end < view.size()) {
      size_t next = end;
      if (is_space(utf8_next(view, &next))) break;
      end = next;
    }
    GEN_TRY(words.add(text.slice(at, end)));
    at = end + stripped_begin(view.substr(end));
  }
  return std::move(words).take();
}

Result<Value> split_at(const Call& call, bool right) {
  const Text& text = call[0].text();
  GEN_ASSIGN(int64_t most, integer_argument(call, 2, -1));
  if (!call.given(1) || call[1].is(Kind::kNone)) {
    GEN_ASSIGN(auto words, split_words(call, most, right));
    return list_of(call, std::move(words));
  }
  GEN_TRY(need_text(call, 1));
  const std::string_view separator = call[1].view();
  if (separator.empty()) return error(Code::kInvalidArgument, "split at an empty text");
  Parts parts(call);
  const std::string_view view = text.view();
  if (right) {
    size_t end = view.size();
    while (most-- != 0) {
      const size_t found = rfind_text(view.substr(0, end), separator);
      if (found == std::string_view::npos) break;
      GEN_TRY(parts.add(text.slice(found + separator.size(), end)));
      end = found;
    }
    GEN_TRY(parts.add(text.slice(0, end)));
    return list_of(call, std::move(parts).take_reversed());
  }
  size_t begin = 0;
  while (most-- != 0) {
    const size_t found = find_text(view, separator, begin);
    if (found == std::string_view::npos) break;
    GEN_TRY(parts.add(text.slice(begin, found)));
    begin = found + separator.size();
  }
  GEN_TRY(parts.add(text.slice(begin, view.size())));
  return list_of(call, std::move(parts).take());
}

Result<Value> split(const Call& call) { return split_at(call, false); }
Result<Value> rsplit(const Call& call) { return split_at(call, true); }

Result<Value> splitlines(const Call& call) {
  GEN_ASSIGN(const bool keep, truth_argument(call, 1, false));
  GEN_ASSIGN(auto lines, split_lines(&call.evaluator.heap(), call[0].text(), keep));
  return list_of(call, std::move(lines));
}

Result<Value> partition_at(const Call& call, bool right) {
  GEN_TRY(need_text(call, 1));
  const Text& text = call[0].text();
  const std::string_view separator = call[1].view();
  if (separator.empty()) return error(Code::kInvalidArgument, "partition at an empty text");
  const size_t found =
      right ? rfind_text(text.view(), separator) : find_text(text.view(), separator);
  std::vector<Text> parts(3);
  if (found == std::string_view::npos) {
    parts[right ? 2 : 0] = text;
  } else {
    parts[0] = text.slice(0, found);
    parts[1] = text.slice(found, found + separator.size());
    parts[2] = text.slice(found + separator.size(), text.size());
  }
  return list_of(call, std::move(parts), Form::kTuple);
}

Result<Value> partition(const Call& call) { return partition_at(call, false); }
Result<Value> rpartition(const Call& call) { return partition_at(call, true); }

/// The range of the text given by arguments `i` and `i + 1`, as offsets; false if it starts past
/// the end.
Result<bool> part(const Call& call, size_t i, size_t* begin, size_t* end) {
  const std::string_view view = call[0].view();
  const auto size = static_cast<int64_t>(count_characters(view));
  const bool no_begin = call.given(i) && call[i].is(Kind::kNone);
  const bool no_end = call.given(i + 1) && call[i + 1].is(Kind::kNone);
  int64_t from = 0;
  int64_t to = size;
  if (!no_begin) {
    GEN_ASSIGN(from, integer_argument(call, i, 0));
  }
  if (!no_end) {
    GEN_ASSIGN(to, integer_argument(call, i + 1, size));
  }
  if (from < 0) from = std::max<int64_t>(from + size, 0);
  if (to < 0) to = std::max<int64_t>(to + size, 0);
  to = std::min(to, size);
  if (from > to) return false;
  *begin = offset_of(view, static_cast<size_t>(from));
  *end = offset_of(view, static_cast<size_t>(to));
  return true;
}

Result<Value> begins_or_ends(const Call& call, bool end) {
  size_t from = 0;
  size_t to = 0;
  GEN_ASSIGN(const bool there, part(call, 2, &from, &to));
  const std::string_view view = there ? call[0].view().substr(from, to - from) : std::string_view();
  std::vector<Value> one = {call[1]};
  const bool tuple = call[1].is(Kind::kSequence) && call[1].sequence().form == Form::kTuple;
  for (const Value& value : tuple ? call[1].sequence().values : one) {
    if (value.is(Kind::kUndefined)) return undefined_error(value);
    if (!value.is(Kind::kString))
      return error(Code::kInvalidArgument, "a text is needed, not %s", type_name(value));
    if (there && (end ? view.ends_with(value.view()) : view.starts_with(value.view())))
      return Value::of(true);
  }
  return Value::of(false);
}

Result<Value> startswith(const Call& call) { return begins_or_ends(call, false); }
Result<Value> endswith(const Call& call) { return begins_or_ends(call, true); }

Result<Value> find_at(const Call& call, bool right, bool must) {
  GEN_TRY(need_text(call, 1));
  size_t from = 0;
  size_t to = 0;
  GEN_ASSIGN(const bool there, part(call, 2, &from, &to));
  const std::string_view view = call[0].view();
  size_t found = std::string_view::npos;
  if (there) {
    const std::string_view within = view.substr(from, to - from);
    found = right ? rfind_text(within, call[1].view()) : find_text(within, call[1].view());
  }
  if (found != std::string_view::npos) {
    return Value::of(static_cast<int64_t>(count_characters(view.substr(0, from + found))));
  }
  if (must) return error(Code::kInvalidArgument, "the text is not there");
  return Value::of(int64_t{-1});
}

Result<Value> find(const Call& call) { return find_at(call, false, false); }
Result<Value> rfind(const Call& call) { return find_at(call, true, false); }
Result<Value> index(const Call& call) { return find_at(call, false, true); }
Result<Value> rindex(const Call& call) { return find_at(call, true, true); }

Result<Value> count(const Call& call) {
  GEN_TRY(need_text(call, 1));
  size_t from = 0;
  size_t to = 0;
  GEN_ASSIGN(const bool there, part(call, 2, &from, &to));
  if (!there) return Value::of(int64_t{0});
  const std::string_view view = call[0].view().substr(from, to - from);
  const std::string_view what = call[1].view();
  if (what.empty()) return Value::of(static_cast<int64_t>(count_characters(view)) + 1);
  int64_t times = 0;
  for (size_t at = find_text(view, what); at != std::string_view::npos;
       at = find_text(view, what, at + what.size()))
    ++times;
  return Value::of(times);
}

Result<Value> replace_method(const Call& call) {
  GEN_TRY(need_text(call, 1));
  GEN_TRY(need_text(call, 2));
  GEN_ASSIGN(const int64_t most, integer_argument(call, 3, -1));
  return replace_text(call, call[0], call[1], call[2], most);
}

Result<Value> join(const Call& call) {
  std::vector<Value> storage;
  GEN_ASSIGN(const auto values, call.evaluator.items(call[1], &storage));
  Text out;
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (call[0].string().markup) {
      GEN_ASSIGN(value, escape_html(call.evaluator, value));
    } else if (value.is(Kind::kUndefined)) {
      return undefined_error(value);
    } else if (!value.is(Kind::kString)) {
      return error(Code::kInvalidArgument, "%s cannot be joined", type_name(value));
    }
    if (i > 0) GEN_TRY(call.evaluator.append_text(call[0], &out));
    GEN_TRY(call.evaluator.append_text(value, &out));
  }
  return made(call, std::move(out));
}

Result<Value> remove_prefix(const Call& call) {
  GEN_TRY(need_text(call, 1));
  const Text& text = call[0].text();
  const bool there = text.view().starts_with(call[1].view());
  return made(call, text.slice(there ? call[1].view().size() : 0, text.size()));
}

Result<Value> remove_suffix(const Call& call) {
  GEN_TRY(need_text(call, 1));
  const Text& text = call[0].text();
  const bool there = text.view().ends_with(call[1].view());
  return made(call, text.slice(0, text.size() - (there ? call[1].view().size() : 0)));
}

Result<Value> justified(const Call& call, bool left) {
  GEN_ASSIGN(const int64_t width, integer_argument(call, 1, 0));
  GEN_ASSIGN(const Value fill, text_argument(call, 2, " "));
  if (count_characters(fill.view()) != 1)
    return error(Code::kInvalidArgument, "one character fills");
  const auto size = static_cast<int64_t>(count_characters(call[0].view()));
  if (width <= size) return call[0];
  GEN_TRY(call.evaluator.heap().charge(static_cast<size_t>(width), fill.view().size()));
  Text out;
  if (left) out.append(call[0].text());
  for (int64_t i = size; i < width; ++i) out.append(fill.text());
  if (!left) out.append(call[0].text());
  return made(call, std::move(out));
}

Result<Value> ljust(const Call& call) { return justified(call, true); }
Result<Value> rjust(const Call& call) { return justified(call, false); }

Result<Value> center(const Call& call) {
  GEN_ASSIGN(const int64_t width, integer_argument(call, 1, 0));
  GEN_ASSIGN(const Value fill, text_argument(call, 2, " "));
  if (count_characters(fill.view()) != 1)
    return error(Code::kInvalidArgument, "one character fills");
  return centered(call, call[0], width, fill.text());
}

Result<Value> zfill(const Call& call) {
  GEN_ASSIGN(const int64_t width, integer_argument(call, 1, 0));
  const Text& text = call[0].text();
  const auto size = static_cast<int64_t>(count_characters(text.view()));
  if (width <= size) return call[0];
  GEN_TRY(call.evaluator.heap().charge(static_cast<size_t>(width)));
  const bool sign = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
  Text out = text.slice(0, sign ? 1 : 0);
  out.append(std::string(static_cast<size_t>(width - size), '0'), Writer::kTemplate);
  out.append(text, sign ? 1 : 0, text.size());
  return made(call, std::move(out));
}

template <typename Holds>
Result<Value> all(const Call& call, Holds holds) {
  const std::string_view view = call[0].view();
  for (size_t at = 0; at < view.size();) {
    if (!holds(utf8_next(view, &at))) return Value::of(false);
  }
  return Value::of(!view.empty());
}

bool alphabetic(uint32_t c) noexcept { return in_class(CharacterClass::kAlphabetic, c); }
bool numeric(uint32_t c) noexcept {
  return in_class(CharacterClass::kNumeric, c) || in_class(CharacterClass::kDigit, c);
}

Result<Value> isalpha(const Call& call) { return all(call, alphabetic); }
Result<Value> isnumeric(const Call& call) { return all(call, numeric); }
Result<Value> isspace(const Call& call) { return all(call, is_space); }
Result<Value> isdigit(const Call& call) {
  return all(call, [](uint32_t c) { return in_class(CharacterClass::kDigit, c); });
}
Result<Value> isalnum(const Call& call) {
  return all(call, [](uint32_t c) { return alphabetic(c) || numeric(c); });
}
Result<Value> isascii(const Call& call) {
  if (call[0].view().empty()) return Value::of(true);
  return all(call, [](uint32_t c) { return c < 0x80; });
}
Result<Value> isdecimal(const Call& call) {
  return all(call, [](uint32_t c) { return in_class(CharacterClass::kDecimal, c); });
}
Result<Value> isprintable(const Call& call) {
  const auto printable = [](uint32_t c) { return !in_class(CharacterClass::kUnprintable, c); };
  if (call[0].view().empty()) return Value::of(true);
  return all(call, printable);
}
Result<Value> isidentifier(const Call& call) {
  bool first = true;
  return all(call, [&first](uint32_t c) {
    const bool start = std::exchange(first, false);
    return in_class(start ? CharacterClass::kIdentifierStart : CharacterClass::kIdentifierPart, c);
  });
}
// True if every word begins with a capital and has no other.
Result<Value> istitle(const Call& call) {
  bool inside = false;
  bool any = false;
  for (size_t at = 0; at < call[0].view().size();) {
    const uint32_t c = utf8_next(call[0].view(), &at);
    const bool up = capital(c);
    if (up ? inside : in_class(CharacterClass::kLower, c) && !inside) return Value::of(false);
    inside = cased(c);
    any |= inside;
  }
  return Value::of(any);
}
Result<Value> isupper(const Call& call) {
  const Value of = call[0];
  return call.evaluator.invoke(*find_test("upper"), &of, {});
}
Result<Value> islower(const Call& call) {
  const Value of = call[0];
  return call.evaluator.invoke(*find_test("lower"), &of, {});
}

Result<Value> casefold(const Call& call) {
  Text out;
  call[0].text().runs(0, call[0].view().size(), [&out](std::string_view run, Writer writer) {
    std::string folded;
    for (size_t at = 0; at < run.size();) append_in_case(Case::kFold, utf8_next(run, &at), &folded);
    out.append(folded, writer);
  });
  return made(call, std::move(out));
}

// Expands tabs to spaces up to the next multiple of the tab size.
Result<Value> expandtabs(const Call& call) {
  GEN_ASSIGN(const int64_t size, integer_argument(call, 1, 8));
  const Text& text = call[0].text();
  Text out;
  int64_t column = 0;
  size_t plain = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = utf8_next(text.view(), &at);
    if (c != '\t') {
      column = c == '\n' || c == '\r' ? 0 : column + 1;
      continue;
    }
    out.append(text, plain, begin);
    plain = at;
    if (size <= 0) continue;
    const int64_t spaces = size - column % size;
    GEN_TRY(call.evaluator.heap().charge(static_cast<size_t>(spaces)));
    out.append(std::string(static_cast<size_t>(spaces), ' '), text.writer_at(begin));
    column += spaces;
  }
  out.append(text, plain, text.size());
  return made(call, std::move(out));
}

Result<Value> encode(const Call&) {
  return error(Code::kUnsupported, "text.encode makes bytes, which templates here do not have");
}

constexpr Builtin kMethods[] = {
    {"capitalize", capitalize},
    {"casefold", casefold},
    {"center", center, 1, false, {"", ""}},
    {"count", count, 1, false, {"", "", ""}},
    {"encode", encode, 0, true},
    {"endswith", endswith, 1, false, {"", "", ""}},
    {"expandtabs", expandtabs, 0, false, {"tabsize"}},
    {"find", find, 1, false, {"", "", ""}},
    {"format", brace_format, 0, true},
    {"index", index, 1, false, {"", "", ""}},
    {"isalnum", isalnum},
    {"isalpha", isalpha},
    {"isascii", isascii},
    {"isdecimal", isdecimal},
    {"isdigit", isdigit},
    {"isidentifier", isidentifier},
    {"islower", islower},
    {"isnumeric", isnumeric},
    {"isprintable", isprintable},
    {"isspace", isspace},
    {"istitle", istitle},
    {"isupper", isupper},
    {"join", join, 1, false, {""}},
    {"ljust", ljust, 1, false, {"", ""}},
    {"lower", lower},
    {"lstrip", lstrip, 0, false, {""}},
    {"partition", partition, 1, false, {""}},
    {"removeprefix", remove_prefix, 1, false, {""}},
    {"removesuffix", remove_suffix, 1, false, {""}},
    {"replace", replace_method, 2, false, {"", "", ""}},
    {"rfind", rfind, 1, false, {"", "", ""}},
    {"rindex", rindex, 1, false, {"", "", ""}},
    {"rjust", rjust, 1, false, {"", ""}},
    {"rpartition", rpartition, 1, false, {""}},
    {"rsplit", rsplit, 0, false, {"sep", "maxsplit"}},
    {"rstrip", rstrip, 0, false, {""}},
    {"split", split, 0, false, {"sep", "maxsplit"}},
    {"splitlines", splitlines, 0, false, {"keepends"}},
    {"startswith", startswith, 1, false, {"", "", ""}},
    {"strip", strip_both, 0, false, {""}},
    {"swapcase", swapcase},
    {"title", title},
    {"upper", upper},
    {"zfill", zfill, 1, false, {""}},
};

}  // namespace

std::span<const Builtin> text_methods() noexcept { return kMethods; }

const Builtin* find_text_method(std::string_view name) noexcept { return find_in(kMethods, name); }

}  // namespace gen::templates

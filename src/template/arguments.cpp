// SPDX-License-Identifier: Apache-2.0
// See arguments.h.
#include "template/arguments.h"

#include <algorithm>

#include "base/utf8.h"
#include "template/lexer.h"
#include "template/unicode.h"

namespace gen::templates {

namespace {

constexpr size_t kShortNeedle = 32;

// The algorithm of Knuth, Morris and Pratt: linear for all texts.
template <typename Iterator>
size_t find_long(Iterator text, size_t n, Iterator needle, size_t m) {
  if (m > n) return std::string_view::npos;  // or a short text would cost what the needle does
  std::vector<size_t> back(m, 0);            // [i]: longest proper border of the first i + 1
  const auto at = [](Iterator begin, size_t i) { return begin[static_cast<std::ptrdiff_t>(i)]; };
  for (size_t i = 1, k = 0; i < m; ++i) {
    while (k > 0 && at(needle, i) != at(needle, k)) k = back[k - 1];
    if (at(needle, i) == at(needle, k)) ++k;
    back[i] = k;
  }
  for (size_t i = 0, k = 0; i < n; ++i) {
    while (k > 0 && at(text, i) != at(needle, k)) k = back[k - 1];
    if (at(text, i) == at(needle, k)) ++k;
    if (k == m) return i + 1 - m;
  }
  return std::string_view::npos;
}

}  // namespace

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (needle.size() <= kShortNeedle || from > text.size()) return text.find(needle, from);
  const size_t found =
      find_long(text.begin() + from, text.size() - from, needle.begin(), needle.size());
  return found == std::string_view::npos ? found : from + found;
}

size_t rfind_text(std::string_view text, std::string_view needle) {
  if (needle.size() <= kShortNeedle) return text.rfind(needle);
  const size_t found = find_long(text.rbegin(), text.size(), needle.rbegin(), needle.size());
  return found == std::string_view::npos ? found : text.size() - found - needle.size();
}

const Builtin* find_in(std::span<const Builtin> rows, std::string_view name) noexcept {
  for (const Builtin& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Result<int64_t> integer_argument(const Call& call, size_t i, int64_t standard) {
  if (!call.given(i)) return standard;
  const Value& value = call[i];
  if (value.is(Kind::kInt)) return value.integer;
  if (value.is(Kind::kBool)) return int64_t{value.truth};
  if (value.is(Kind::kUndefined)) return undefined_error(value);
  return error(Code::kInvalidArgument, "an integer is needed, not %s", type_name(value));
}

Result<bool> truth_argument(const Call& call, size_t i, bool standard) {
  return call.given(i) ? truthy(call[i]) : standard;
}

Result<Value> text_argument(const Call& call, size_t i, std::string_view standard) {
  if (!call.given(i)) return call.evaluator.heap().string(standard, Writer::kTemplate);
  return call.evaluator.to_text(call[i]);
}

Status need_text(const Call& call, size_t i) {
  if (call[i].is(Kind::kString)) return {};
  if (call[i].is(Kind::kUndefined)) return undefined_error(call[i]);
  return error(Code::kInvalidArgument, "a text is needed, not %s", type_name(call[i]));
}

Text strip(const Text& text, const std::string_view* chars, bool left, bool right) {
  const std::string_view view = text.view();
  size_t begin = 0;
  size_t end = view.size();
  if (chars == nullptr) {
    if (left) begin = stripped_begin(view);
    if (right) end = std::max(begin, stripped_end(view));
    return text.slice(begin, end);
  }
  const auto among = [&](std::string_view one) {
    for (size_t at = 0; at < chars->size();) {
      const size_t from = at;
      utf8_next(*chars, &at);
      if (chars->substr(from, at - from) == one) return true;
    }
    return false;
  };
  while (left && begin < end) {
    size_t at = begin;
    utf8_next(view, &at);
    if (!among(view.substr(begin, at - begin))) break;
    begin = at;
  }
  while (right && begin < end) {
    size_t at = end - 1;
    while (at > begin && (view[at] & 0xC0) == 0x80) --at;
    if (!among(view.substr(at, end - at))) break;
    end = at;
  }
  return text.slice(begin, end);
}

size_t count_characters(std::string_view text) noexcept {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t offset_of(std::string_view text, size_t count) noexcept {
  size_t at = 0;
  while (count-- > 0 && at < text.size()) utf8_next(text, &at);
  return at;
}

Text replace(const Text& text, const Text& from, const Text& to, int64_t most) {
  Text made;
  size_t done = 0;
  const std::string_view view = text.view();
  if (from.empty()) {  // an empty needle matches before every character and at the end
    for (size_t at = 0; most != 0; --most) {
      made.append(to);
      if (at >= view.size()) break;
      const size_t begin = at;
      utf8_next(view, &at);
      made.append(text, begin, at);
      done = at;
    }
    made.append(text, done, view.size());
    return made;
  }
  while (most != 0) {
    const size_t found = find_text(view, from.view(), done);
    if (found == std::string_view::npos) break;
    made.append(text, done, found);
    made.append(to);
    done = found + from.size();
    --most;
  }
  made.append(text, done, view.size());
  return made;
}

Result<std::vector<Text>> split_lines(Heap* heap, const Text& text, bool keep) {
  std::vector<Text> lines;
  const std::string_view view = text.view();
  size_t begin = 0;
  for (size_t at = 0; at < view.size();) {
    const size_t end = at;
    const uint32_t c = utf8_next(view, &at);
    const bool breaks =
        (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && at < view.size() && view[at] == '\n') ++at;
    GEN_TRY(heap->charge(sizeof(Text)));
    lines.push_back(text.slice(begin, keep ? at : end));
    begin = at;
  }
  if (begin < view.size()) lines.push_back(text.slice(begin, view.size()));
  return lines;
}

namespace {

// Python's rule for a capital sigma: ς at the end of a word, else σ.
bool final_sigma(std::string_view view, size_t begin, size_t end) noexcept {
  const auto letter = [](uint32_t c) { return in_class(CharacterClass::kAlphabetic, c); };
  size_t before = begin;
  while (before > 0) {
    size_t from = before - 1;
    while (from > 0 && (view[from] & 0xC0) == 0x80) --from;
    size_t at = from;
    const uint32_t c = utf8_next(view, &at);
    if (c != '\'' && c != 0x00AD && c != 0x2019) {
      if (!letter(c)) return false;
      while (end < view.size()) {
        const uint32_t next = utf8_next(view, &end);
        if (next == '\'' || next == 0x00AD || next == 0x2019) continue;
        return !letter(next);
      }
      return true;
    }
    before = from;
  }
  return false;
}

void append_changed(const Text& text, size_t from, size_t to, Case which, Text* out) {
  const std::string_view view = text.view();
  text.runs(from, to, [&](std::string_view run, Writer writer) {
    std::string changed;
    const auto base = static_cast<size_t>(run.data() - view.data());
    for (size_t at = 0; at < run.size();) {
      const size_t begin = at;
      const uint32_t c = utf8_next(run, &at);
      if (c == 0x3A3 && which == Case::kLower && final_sigma(view, base + begin, base + at)) {
        changed += "\xCF\x82";
      } else {
        append_in_case(which, c, &changed);
      }
    }
    out->append(changed, writer);
  });
}

}  // namespace

Text in_case(const Text& text, bool upper) {
  Text made;
  append_changed(text, 0, text.size(), upper ? Case::kUpper : Case::kLower, &made);
  return made;
}

Text capitalized(const Text& text) {
  Text made;
  const size_t first = offset_of(text.view(), 1);
  append_changed(text, 0, first, Case::kTitle, &made);
  append_changed(text, first, text.size(), Case::kLower, &made);
  return made;
}

}  // namespace gen::templates

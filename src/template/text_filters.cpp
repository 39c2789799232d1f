// SPDX-License-Identifier: Apache-2.0
// Filters that return strings.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/c_locale.h"
#include "base/utf8.h"
#include "template/arguments.h"
#include "template/json.h"
#include "template/layout_filters.h"
#include "template/lexer.h"
#include "template/text_filters.h"
#include "template/unicode.h"

namespace gen::templates {
namespace {

Result<Value> same_kind(const Call& call, Text text, const Value& of) {
  return call.evaluator.heap().string(std::move(text), of.string().markup);
}

Result<Value> upper(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  return same_kind(call, in_case(of.text(), true), of);
}

Result<Value> lower(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  return same_kind(call, in_case(of.text(), false), of);
}

Result<Value> capitalize(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  return same_kind(call, capitalized(of.text()), of);
}

// A word begins after a space, a hyphen or an opening bracket.
Result<Value> title(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  const Text& text = of.text();
  Text made;
  size_t word = 0;
  const auto begins = [&](uint32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  const auto flush = [&](size_t end) {
    if (end == word) return;
    const size_t first = offset_of(text.view().substr(word), 1);
    made.append(in_case(text.slice(word, word + first), true));
    made.append(in_case(text.slice(word + first, end), false));
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!begins(utf8_next(text.view(), &at))) continue;
    flush(begin);
    made.append(text, begin, at);
    word = at;
  }
  flush(text.size());
  return same_kind(call, std::move(made), of);
}

Result<Value> trim(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  if (!call.given(1) || call[1].is(Kind::kNone)) {
    return same_kind(call, strip(of.text(), nullptr, true, true), of);
  }
  GEN_TRY(need_text(call, 1));
  const std::string_view chars = call[1].view();
  GEN_TRY(call.evaluator.work(of.view().size() * chars.size()));
  return same_kind(call, strip(of.text(), &chars, true, true), of);
}

Result<Value> string(const Call& call) { return text_argument(call, 0); }

Result<Value> safe(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  return call.evaluator.heap().string(of.text(), true);
}

Result<Value> escape(const Call& call) { return escape_html(call.evaluator, call[0]); }

Result<Value> force_escape(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  GEN_ASSIGN(const Value plain, call.evaluator.heap().string(of.text()));
  return escape_html(call.evaluator, plain);
}

Result<Value> replace_filter(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  GEN_ASSIGN(const Value from, text_argument(call, 1));
  GEN_ASSIGN(const Value to, text_argument(call, 2));
  int64_t most = -1;
  if (call.given(3) && !call[3].is(Kind::kNone)) {
    GEN_ASSIGN(most, integer_argument(call, 3, -1));
  }
  return replace_text(call, of, from, to, most);
}

Result<Value> indent(const Call& call) {
  GEN_TRY(need_text(call, 0));
  Text indention;
  if (call.given(1) && call[1].is(Kind::kString)) {
    indention = call[1].text();
  } else {
    GEN_ASSIGN(const int64_t width, integer_argument(call, 1, 4));
    const int64_t spaces = std::max<int64_t>(width, 0);
    GEN_TRY(call.evaluator.heap().charge(static_cast<size_t>(spaces)));
    indention = Text(std::string(static_cast<size_t>(spaces), ' '), Writer::kTemplate);
  }
  GEN_ASSIGN(const bool first, truth_argument(call, 2, false));
  GEN_ASSIGN(const bool blank, truth_argument(call, 3, false));
  Text with_end = call[0].text();
  with_end.append("\n", Writer::kTemplate);
  Heap& heap = call.evaluator.heap();
  GEN_ASSIGN(const std::vector<Text> lines, split_lines(&heap, with_end));
  // A line break keeps its writer.
  GEN_ASSIGN(const std::vector<Text> whole, split_lines(&heap, with_end, true));
  GEN_TRY(heap.charge(lines.size() * indention.size() + with_end.size()));
  Text made;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) made.append("\n", whole[i - 1].writer_at(whole[i - 1].size() - 1));
    const bool indented = i == 0 ? first : blank || !lines[i].empty();
    if (indented) made.append(indention);
    made.append(lines[i]);
  }
  return same_kind(call, std::move(made), call[0]);
}

Result<Value> truncate(const Call& call) {
  const Value& of = call[0];
  const bool row =
      of.is(Kind::kDict) || (of.is(Kind::kSequence) && of.sequence().form != Form::kGenerator);
  const bool nothing = of.is(Kind::kUndefined);
  if (!row && !nothing) GEN_TRY(need_text(call, 0));
  GEN_ASSIGN(const int64_t length, integer_argument(call, 1, 255));
  GEN_ASSIGN(const bool kill_words, truth_argument(call, 2, false));
  GEN_ASSIGN(const Value end, text_argument(call, 3, "..."));
  int64_t leeway = 5;
  if (call.given(4) && !call[4].is(Kind::kNone)) {
    GEN_ASSIGN(leeway, integer_argument(call, 4, 5));
  }
  const auto end_size = static_cast<int64_t>(count_characters(end.view()));
  if (length < end_size || leeway < 0 || leeway > INT32_MAX || length > INT32_MAX) {
    return error(Code::kInvalidArgument, "truncate to less than its end, or with a leeway below 0");
  }
  const size_t size = of.is(Kind::kDict)       ? of.dict().entries.size()
                      : of.is(Kind::kSequence) ? of.sequence().values.size()
                      : nothing                ? 0
                                               : count_characters(of.view());
  if (static_cast<int64_t>(size) <= length + leeway) return of;
  if (row) return error(Code::kInvalidArgument, "%s cannot be cut short", type_name(of));
  Text made = of.text().slice(0, offset_of(of.view(), static_cast<size_t>(length - end_size)));
  if (!kill_words) {
    const size_t space = made.view().rfind(' ');
    if (space != std::string_view::npos) made = made.slice(0, space);
  }
  made.append(end.text());
  return same_kind(call, std::move(made), of);
}

// Words of letters, digits and underscores, as the regular expression \w+ matches them.
Result<Value> wordcount(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < of.view().size();) {
    const bool word = is_word(utf8_next(of.view(), &at));
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::of(words);
}

Result<Value> center(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  GEN_ASSIGN(const int64_t width, integer_argument(call, 1, 80));
  return centered(call, of, width, Text(" ", Writer::kTemplate));
}

// Removes comments and tags, collapses white space, decodes entities.
Result<Value> striptags(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  Text text = of.text();
  const auto cut = [&](std::string_view open, std::string_view close) {
    Text made;
    size_t done = 0;
    for (;;) {
      const size_t begin = text.view().find(open, done);
      if (begin == std::string_view::npos) break;
      const size_t end = text.view().find(close, begin);
      if (end == std::string_view::npos) break;
      made.append(text, done, begin);
      done = end + close.size();
    }
    made.append(text, done, text.size());
    text = std::move(made);
  };
  cut("<!--", "-->");
  cut("<", ">");
  Text made;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.view().substr(at);
    const size_t begin = at + stripped_begin(rest);
    size_t end = begin;
    while (end < text.size()) {
      size_t next = end;
      if (is_space(utf8_next(text.view(), &next))) break;
      end = next;
    }
    if (end == begin) break;
    if (!made.empty()) made.append(" ", text.writer_at(begin - 1));
    made.append(text, begin, end);
    at = end;
  }
  static constexpr std::pair<const char*, const char*> kEntities[] = {
      {"&lt;", "<"},    {"&gt;", ">"},  {"&#34;", "\""},
      {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities) {
    made = replace(made, Text(entity, Writer::kUser), Text(character, Writer::kUser), -1);
  }
  return call.evaluator.heap().string(std::move(made));
}

Status append_quoted_url(const Value& value, bool plus, Text* out) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  value.text().runs(0, value.view().size(), [&](std::string_view run, Writer writer) {
    std::string quoted;
    for (const char c : run) {
      const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                         std::string_view("_.-~").find(c) != std::string_view::npos ||
                         (c == '/' && !plus);
      if (plain) {
        quoted += c;
      } else if (c == ' ' && plus) {
        quoted += '+';
      } else {
        quoted += '%';
        quoted += kDigits[static_cast<unsigned char>(c) >> 4];
        quoted += kDigits[c & 15];
      }
    }
    out->append(quoted, writer);
  });
  return {};
}

Result<Value> urlencode(const Call& call) {
  Text made;
  const Value& of = call[0];
  if (!of.is(Kind::kDict) && !of.is(Kind::kSequence)) {
    GEN_ASSIGN(const Value text, text_argument(call, 0));
    GEN_TRY(append_quoted_url(text, false, &made));
    return call.evaluator.heap().string(std::move(made));
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (of.is(Kind::kDict)) {
    pairs = of.dict().entries;
  } else {
    for (const Value& pair : of.sequence().values) {
      std::vector<Value> storage;
      GEN_ASSIGN(const auto both, call.evaluator.items(pair, &storage));
      if (both.size() != 2) return error(Code::kInvalidArgument, "urlencode needs pairs");
      pairs.emplace_back(both[0], both[1]);
    }
  }
  for (const auto& [key, value] : pairs) {
    if (!made.empty()) made.append("&", Writer::kTemplate);
    GEN_ASSIGN(const Value name, call.evaluator.to_text(key));
    GEN_ASSIGN(const Value text, call.evaluator.to_text(value));
    GEN_TRY(append_quoted_url(name, true, &made));
    made.append("=", Writer::kTemplate);
    GEN_TRY(append_quoted_url(text, true, &made));
  }
  return call.evaluator.heap().string(std::move(made));
}

Result<Value> filesizeformat(const Call& call) {
  const CLocale numbers;
  double bytes = 0;
  if (call[0].is_number()) {
    bytes = as_double(call[0]);
  } else {
    GEN_TRY(need_text(call, 0));
    char* end = nullptr;
    const std::string text(call[0].view());
    bytes = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return error(Code::kInvalidArgument, "no number of bytes");
  }
  GEN_ASSIGN(const bool binary, truth_argument(call, 1, false));
  const double base = binary ? 1024 : 1000;
  static constexpr const char* kPrefixes = "kMGTPEZY";
  std::string made;
  char buffer[64];
  if (bytes == 1) {
    made = "1 Byte";
  } else if (bytes < base) {
    if (!std::isfinite(bytes)) return error(Code::kInvalidArgument, "no finite number of bytes");
    // An integer of any size; no minus before a zero.
    char digits[std::numeric_limits<double>::max_exponent10 + 16];
    std::snprintf(digits, sizeof digits, "%.0f Bytes", std::trunc(bytes) + 0.0);
    made = digits;
  } else {
    double unit = base;
    size_t i = 0;
    for (; i < 8; ++i) {
      unit = std::pow(base, static_cast<double>(i + 2));
      if (bytes < unit) break;
    }
    i = std::min<size_t>(i, 7);
    const char prefix = binary && i == 0 ? 'K' : kPrefixes[i];
    std::snprintf(buffer, sizeof buffer, "%.1f %c%s", base * bytes / unit, prefix,
                  binary ? "iB" : "B");
    made = buffer;
  }
  const bool by_user = call[0].is(Kind::kString) || call[0].by_user;
  return call.evaluator.heap().string(made, by_user ? Writer::kUser : Writer::kTemplate);
}

Result<Value> xmlattr(const Call& call) {
  if (!call[0].is(Kind::kDict)) return error(Code::kInvalidArgument, "xmlattr needs a dict");
  Text made;
  for (const auto& [key, value] : call[0].dict().entries) {
    if (value.is(Kind::kNone) || value.is(Kind::kUndefined)) continue;
    if (!key.is(Kind::kString) ||
        key.view().find_first_of(" \t\n\v\f\r/>=") != std::string_view::npos) {
      return error(Code::kInvalidArgument, "a name that no attribute may have");
    }
    GEN_ASSIGN(const Value name, escape_html(call.evaluator, key));
    GEN_ASSIGN(const Value text, escape_html(call.evaluator, value));
    if (!made.empty()) made.append(" ", Writer::kTemplate);
    made.append(name.text());
    made.append("=\"", Writer::kTemplate);
    made.append(text.text());
    made.append("\"", Writer::kTemplate);
  }
  GEN_ASSIGN(const bool space, truth_argument(call, 1, true));
  if (!made.empty() && space) {
    Text spaced(" ", Writer::kTemplate);
    spaced.append(made);
    made = std::move(spaced);
  }
  return call.evaluator.heap().string(std::move(made));
}

Result<Value> format(const Call& call) {
  GEN_ASSIGN(const Value of, text_argument(call, 0));
  Heap& heap = call.evaluator.heap();
  if (call.args.named.empty()) {
    GEN_ASSIGN(const Value values, heap.sequence(Form::kTuple, call.args.values));
    return percent_format(call.evaluator, of, values);
  }
  if (!call.args.values.empty()) {
    return error(Code::kInvalidArgument, "format takes arguments by place or by name");
  }
  Dict* const dict = heap.make<Dict>();
  for (const NamedArg& one : call.args.named) {
    GEN_ASSIGN(const Value key, one.name_as_text(&heap));
    dict->set(key, one.value);
  }
  return percent_format(call.evaluator, of, Value::of(Kind::kDict, dict));
}

Result<Value> tojson(const Call& call) {
  JsonForm form;
  GEN_ASSIGN(form.ascii, truth_argument(call, 1, false));
  if (call.given(2) && !call[2].is(Kind::kNone)) {
    form.indented = true;
    form.item_separator = ",";
    if (call[2].is(Kind::kString)) {
      form.indent = call[2].view();
    } else {
      GEN_ASSIGN(const int64_t width, integer_argument(call, 2, 0));
      form.indent.assign(static_cast<size_t>(std::clamp<int64_t>(width, 0, 1000)), ' ');
    }
  }
  if (call.given(3) && !call[3].is(Kind::kNone)) {
    std::vector<Value> storage;
    GEN_ASSIGN(const auto both, call.evaluator.items(call[3], &storage));
    if (both.size() != 2 || !both[0].is(Kind::kString) || !both[1].is(Kind::kString)) {
      return error(Code::kInvalidArgument, "separators are two texts");
    }
    form.item_separator = both[0].view();
    form.key_separator = both[1].view();
  }
  GEN_ASSIGN(form.sorted, truth_argument(call, 4, false));
  Text made;
  GEN_TRY(write_json(call.evaluator, call[0], form, &made));
  return call.evaluator.heap().string(std::move(made));
}

constexpr Builtin kFilters[] = {
    {"capitalize", capitalize},
    {"center", center, 0, false, {"width"}},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", filesizeformat, 0, false, {"binary"}},
    {"forceescape", force_escape},
    {"format", format, 0, true},
    {"indent", indent, 0, false, {"width", "first", "blank"}},
    {"lower", lower},
    {"pprint", pretty_print},
    {"replace", replace_filter, 2, false, {"old", "new", "count"}},
    {"safe", safe},
    {"string", string},
    {"striptags", striptags},
    {"title", title},
    {"tojson", tojson, 0, false, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"trim", trim, 0, false, {"chars"}},
    {"truncate", truncate, 0, false, {"length", "killwords", "end", "leeway"}},
    {"upper", upper},
    {"urlencode", urlencode},
    {"urlize",
     make_links,
     0,
     false,
     {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}},
    {"wordcount", wordcount},
    {"wordwrap",
     word_wrap,
     0,
     false,
     {"width", "break_long_words", "wrapstring", "break_on_hyphens"}},
    {"xmlattr", xmlattr, 0, false, {"autospace"}},
};

}  // namespace

std::span<const Builtin> text_filters() noexcept { return kFilters; }

Result<Value> escape_html(Evaluator& evaluator, const Value& value) {
  GEN_ASSIGN(const Value text, evaluator.to_text(value));
  if (text.string().markup) return text;
  GEN_TRY(evaluator.heap().charge(6 * text.view().size()));
  Text made;
  text.text().runs(0, text.view().size(), [&](std::string_view run, Writer writer) {
    std::string escaped;
    for (const char c : run) {
      switch (c) {
        case '&':
          escaped += "&amp;";
          break;
        case '<':
          escaped += "&lt;";
          break;
        case '>':
          escaped += "&gt;";
          break;
        case '"':
          escaped += "&#34;";
          break;
        case '\'':
          escaped += "&#39;";
          break;
        default:
          escaped += c;
      }
    }
    made.append(escaped, writer);
  });
  return evaluator.heap().string(std::move(made), true);
}

Result<Value> replace_text(const Call& call, const Value& of, const Value& from, const Value& to,
                           int64_t most) {
  const size_t size = of.view().size();
  // The budget is charged before the text grows.
  const size_t places = from.view().empty() ? size + 1 : size / from.view().size();
  const size_t times = most < 0 ? places : std::min(places, static_cast<size_t>(most));
  size_t grown = 0;
  if (__builtin_mul_overflow(times, to.view().size(), &grown)) grown = SIZE_MAX / 2;
  if (grown > size) {  // only an upper bound: count the occurrences if it matters
    size_t found = from.view().empty() ? places : 0;
    for (size_t at = find_text(of.view(), from.view());
         !from.view().empty() && at != std::string_view::npos;
         at = find_text(of.view(), from.view(), at + from.view().size())) {
      ++found;
    }
    if (__builtin_mul_overflow(std::min(found, times), to.view().size(), &grown))
      grown = SIZE_MAX / 2;
  }
  GEN_TRY(call.evaluator.heap().charge(grown));
  return call.evaluator.heap().string(replace(of.text(), from.text(), to.text(), most),
                                      of.string().markup);
}

Result<Value> centered(const Call& call, const Value& of, int64_t width, const Text& fill) {
  const auto size = static_cast<int64_t>(count_characters(of.view()));
  if (width <= size) return of;
  GEN_TRY(call.evaluator.heap().charge(static_cast<size_t>(width), fill.size()));
  const int64_t margin = width - size;
  const int64_t left = margin / 2 + (margin & width & 1);
  Text made;
  for (int64_t i = 0; i < left; ++i) made.append(fill);
  made.append(of.text());
  for (int64_t i = left; i < margin; ++i) made.append(fill);
  return call.evaluator.heap().string(std::move(made), of.string().markup);
}

}  // namespace gen::templates

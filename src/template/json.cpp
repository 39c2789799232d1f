// SPDX-License-Identifier: Apache-2.0
// See json.h.
#include "template/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/c_locale.h"
#include "base/utf8.h"

namespace gen::templates {
namespace {

constexpr int kDeepestJson = 100;

class Reader {
 public:
  Reader(std::string_view text, Heap* heap, Writer writer)
      : text_(text), heap_(*heap), writer_(writer) {}

  Result<Value> run() {
    if (const size_t valid = utf8_valid_prefix(text_); valid != text_.size()) {
      return error(Code::kInvalidArgument, "JSON is not UTF-8 at byte %zu", valid);
    }
    space();
    GEN_ASSIGN(const Value value, read(0));
    space();
    if (at_ != text_.size()) return fail("text behind the end");
    return value;
  }

 private:
  [[nodiscard]] Status fail(const char* what) const {
    return error(Code::kInvalidArgument, "JSON, byte %zu: %s", at_, what);
  }
  [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() noexcept {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool take(std::string_view word) noexcept {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<Value> read(int depth) {
    if (depth > kDeepestJson) return fail("nested more than 100 deep");
    if (stack_.near_end()) return fail("nested too deep for the thread's stack");
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"': {
        std::string text;
        GEN_TRY(string(&text));
        return heap_.string(text, writer_);
      }
      default:
        break;
    }
    if (take("true")) return Value::of(true);
    if (take("false")) return Value::of(false);
    if (take("null")) return Value::none();
    if (take("NaN")) return of_writer(std::numeric_limits<double>::quiet_NaN());
    if (take("Infinity")) return of_writer(std::numeric_limits<double>::infinity());
    if (take("-Infinity")) return of_writer(-std::numeric_limits<double>::infinity());
    return number();
  }

  [[nodiscard]] Value of_writer(double number) const noexcept {
    Value made = Value::of(number);
    made.by_user = writer_ == Writer::kUser;
    return made;
  }

  Result<Value> object(int depth) {
    GEN_TRY(heap_.charge(sizeof(Dict)));
    Dict* const made = heap_.make<Dict>();
    ++at_;
    space();
    if (take("}")) return Value::of(Kind::kDict, made);
    for (;;) {
      space();
      if (peek() != '"') return fail("expected a key");
      std::string name;
      GEN_TRY(string(&name));
      GEN_ASSIGN(const Value key, heap_.string(name, writer_));
      space();
      if (!take(":")) return fail("expected ':'");
      space();
      GEN_ASSIGN(const Value value, read(depth + 1));
      made->set(key, value);
      space();
      if (take("}")) return Value::of(Kind::kDict, made);
      if (!take(",")) return fail("expected ',' or '}'");
    }
  }

  Result<Value> array(int depth) {
    std::vector<Value> values;
    ++at_;
    space();
    if (take("]")) return heap_.sequence(Form::kList, {});
    for (;;) {
      space();
      GEN_ASSIGN(const Value value, read(depth + 1));
      values.push_back(value);
      space();
      if (take("]")) return heap_.sequence(Form::kList, std::move(values));
      if (!take(",")) return fail("expected ',' or ']'");
    }
  }

  Result<Value> number() {
    const size_t begin = at_;
    bool whole = true;
    const auto digits = [&] {
      const size_t from = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ > from;
    };
    take("-");
    const bool zero = peek() == '0';
    const size_t first = at_;
    if (!digits()) return fail("expected a value");
    if (zero && at_ != first + 1) return fail("a number begins with 0");
    if (take(".")) {
      whole = false;
      if (!digits()) return fail("expected a digit");
    }
    if (take("e") || take("E")) {
      whole = false;
      if (!take("+")) take("-");
      if (!digits()) return fail("expected a digit");
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    Value made;
    if (!whole) {
      const CLocale numbers;
      made = Value::of(std::strtod(std::string(text).c_str(), nullptr));
    } else {
      int64_t value = 0;
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (problem == std::errc()) {
        made = Value::of(value);
      } else {
        GEN_ASSIGN(made, heap_.string(text, writer_));
        made.kind = Kind::kBigInt;
      }
    }
    made.by_user = writer_ == Writer::kUser;
    return made;
  }

  Result<uint32_t> hexadecimal() {
    uint32_t value = 0;
    const char* const begin = text_.data() + at_;
    const size_t there = std::min<size_t>(4, text_.size() - at_);
    const auto [end, problem] = std::from_chars(begin, begin + there, value, 16);
    if (problem != std::errc() || end != begin + 4) return fail("a damaged escape");
    at_ += 4;
    return value;
  }

  Status string(std::string* out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt";
    static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    ++at_;
    for (;;) {
      if (at_ >= text_.size()) return fail("a text has no end");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return {};
      }
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a text");
      if (c != '\\') {
        *out += c;
        ++at_;
        continue;
      }
      ++at_;
      if (const size_t known = kFrom.find(peek());
          at_ < text_.size() && known != std::string_view::npos) {
        *out += kTo[known];
        ++at_;
        continue;
      }
      if (!take("u")) return fail("a damaged escape");
      GEN_ASSIGN(uint32_t code, hexadecimal());
      if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
        GEN_ASSIGN(const uint32_t low, hexadecimal());
        if (low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else {
          utf8_append(code, out);  // a lone surrogate
          code = low;
        }
      }
      utf8_append(code, out);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  Heap& heap_;
  Writer writer_;
  StackBound stack_;
};

void append_quoted(const Text& text, bool ascii, Text* out) {
  static constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
  static constexpr std::string_view kTo = "\"\\nrtfb";
  out->append("\"", Writer::kUser);
  const std::string_view view = text.view();
  size_t plain = 0;
  for (size_t at = 0; at < view.size();) {
    const auto c = static_cast<unsigned char>(view[at]);
    if (c >= 0x20 && c != '"' && c != '\\' && (!ascii || c < 0x7F)) {
      ++at;
      continue;
    }
    out->append(text, plain, at);
    const size_t begin = at;
    const uint32_t code = utf8_next(view, &at);
    char escaped[16];
    if (const size_t known = kFrom.find(view[begin]); known != std::string_view::npos) {
      std::snprintf(escaped, sizeof escaped, "\\%c", kTo[known]);
    } else if (code >= 0x10000) {
      const uint32_t rest = code - 0x10000;
      std::snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", 0xD800 + (rest >> 10),
                    0xDC00 + (rest & 0x3FF));
    } else {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
    }
    out->append(escaped, Writer::kUser);
    plain = at;
  }
  out->append(text, plain, view.size());
  out->append("\"", Writer::kUser);
}

std::string json_float(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return float_text(number);
}

Status line(Evaluator& evaluator, const JsonForm& form, int depth, Text* out) {
  if (!form.indented) return {};
  GEN_TRY(evaluator.heap().charge(static_cast<size_t>(depth), form.indent.size()));
  out->append("\n", Writer::kUser);
  for (int i = 0; i < depth; ++i) out->append(form.indent, Writer::kUser);
  return {};
}

Status write_key(const Value& key, const JsonForm& form, Text* out) {
  std::string text;
  switch (key.kind) {
    case Kind::kString:
      append_quoted(key.text(), form.ascii, out);
      return {};
    case Kind::kNone:
      text = "null";
      break;
    case Kind::kBool:
      text = key.truth ? "true" : "false";
      break;
    case Kind::kInt:
      text = std::to_string(key.integer);
      break;
    case Kind::kBigInt:
      text = key.view();
      break;
    case Kind::kFloat:
      text = json_float(key.number);
      break;
    default:
      return error(Code::kInvalidArgument, "JSON has no keys that are %s", type_name(key));
  }
  out->append("\"" + text + "\"", Writer::kUser);
  return {};
}

Status write_dict(Evaluator& evaluator, const Dict& dict, const JsonForm& form, Text* out,
                  int depth) {
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (form.sorted) {
    for (const auto* entry : entries) {
      GEN_TRY(evaluator.precedes(entries[0]->first, entry->first));
    }
    std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
      auto order = evaluator.precedes(a->first, b->first);
      return order.ok() && *order;
    });
  }
  const size_t separators = form.item_separator.size() + form.key_separator.size();
  GEN_TRY(evaluator.heap().charge(entries.size(), separators));
  out->append("{", Writer::kUser);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out->append(form.item_separator, Writer::kUser);
    GEN_TRY(line(evaluator, form, depth + 1, out));
    const size_t before = out->size();
    GEN_TRY(write_key(entries[i]->first, form, out));
    GEN_TRY(evaluator.heap().charge(out->size() - before));
    out->append(form.key_separator, Writer::kUser);
    GEN_TRY(write_json(evaluator, entries[i]->second, form, out, depth + 1));
  }
  if (!entries.empty()) GEN_TRY(line(evaluator, form, depth, out));
  out->append("}", Writer::kUser);
  return {};
}

}  // namespace

Result<Value> read_json(std::string_view text, Heap* heap, Writer writer) {
  return Reader(text, heap, writer).run();
}

Status write_json(Evaluator& evaluator, const Value& value, const JsonForm& form, Text* out,
                  int depth) {
  if (depth > 2 * kDeepestJson || evaluator.near_stack_end())
    return error(Code::kOutOfRange, "a value is nested too deep");
  const size_t before = out->size();
  switch (value.kind) {
    case Kind::kNone:
      out->append("null", Writer::kUser);
      break;
    case Kind::kBool:
      out->append(value.truth ? "true" : "false", Writer::kUser);
      break;
    case Kind::kInt:
      out->append(std::to_string(value.integer), Writer::kUser);
      break;
    case Kind::kBigInt:
      out->append(value.view(), Writer::kUser);
      break;
    case Kind::kFloat:
      out->append(json_float(value.number), Writer::kUser);
      break;
    case Kind::kString:
      append_quoted(value.text(), form.ascii, out);
      break;
    case Kind::kDict:
      GEN_TRY(write_dict(evaluator, value.dict(), form, out, depth));
      break;
    case Kind::kSequence: {
      const Sequence& sequence = value.sequence();
      if (sequence.form != Form::kList && sequence.form != Form::kTuple) {
        return error(Code::kInvalidArgument, "JSON has no %s", type_name(value));
      }
      GEN_TRY(evaluator.heap().charge(sequence.values.size(), form.item_separator.size()));
      out->append("[", Writer::kUser);
      for (size_t i = 0; i < sequence.values.size(); ++i) {
        if (i > 0) out->append(form.item_separator, Writer::kUser);
        GEN_TRY(line(evaluator, form, depth + 1, out));
        GEN_TRY(write_json(evaluator, sequence.values[i], form, out, depth + 1));
      }
      if (!sequence.values.empty()) GEN_TRY(line(evaluator, form, depth, out));
      out->append("]", Writer::kUser);
      break;
    }
    case Kind::kUndefined:
      return undefined_error(value);
    default:
      return error(Code::kInvalidArgument, "JSON has no %s", type_name(value));
  }
  const bool leaf = !value.is(Kind::kDict) && !value.is(Kind::kSequence);
  GEN_TRY(evaluator.heap().charge(leaf ? out->size() - before : 8));
  return evaluator.work(leaf ? out->size() - before : 0);
}

}  // namespace gen::templates

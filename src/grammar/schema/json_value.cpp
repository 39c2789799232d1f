// SPDX-License-Identifier: Apache-2.0
// JSON values, see json_value.h.
#include "grammar/schema/json_value.h"

#include <algorithm>
#include <unordered_set>

#include "base/utf8.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

constexpr size_t kMany = 32;
constexpr size_t kMaxDepth = 256;  // values are copied and freed level by level
constexpr int64_t kMaxExponent = 1'000'000'000;

constexpr uint64_t kWorkPerValue = 256;  // hundreds of bytes, including its position in the
                                         // document

// No recursion: a caller's stack may be small.
class ValueReader : TextReader {
 public:
  ValueReader(std::string_view text, Building* building) : TextReader(text), building_(building) {}

  Result<JsonValue> run() {
    if (const size_t bad = utf8_valid_prefix(text_); bad != text_.size()) {
      return error_at(text_, bad, "not UTF-8");
    }
    for (;;) {
      if (!goes_on(building_, kWorkPerValue)) return building_->status();
      space();
      JsonValue value;
      if (peek() == '{' || peek() == '[') {
        GEN_ASSIGN(const bool empty, begin(&value));
        if (!empty) continue;
      } else {
        GEN_ASSIGN(value, plain());
      }
      GEN_ASSIGN(const bool whole, end(&value));
      if (!whole) continue;
      if (!done()) return fail("text behind the value");
      return value;
    }
  }

 private:
  // An array or object that is being read.
  struct Open {
    JsonValue value;
    std::string name;  // of the current member
    size_t name_begin = 0;
    std::unordered_set<std::string> names;
  };

  void space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  Result<JsonValue> plain() {
    if (peek() == '"') {
      GEN_ASSIGN(std::string text, string());
      return JsonValue::of_string(std::move(text));
    }
    if (take("null")) return JsonValue();
    if (take("true")) return JsonValue::of_bool(true);
    if (take("false")) return JsonValue::of_bool(false);
    return number();
  }

  static const char* end_of(const JsonValue& value) {
    return value.is(JsonType::kObject) ? "}" : "]";
  }

  // True for an empty container, which is the value; otherwise it is now open.
  Result<bool> begin(JsonValue* value) {
    if (open_.size() >= kMaxDepth) return fail("nested deeper than " + std::to_string(kMaxDepth));
    *value = peek() == '{' ? JsonValue::object() : JsonValue::array();
    ++at_;
    space();
    if (take(end_of(*value))) return true;
    open_.emplace_back().value = std::move(*value);
    GEN_TRY(name());
    return false;
  }

  // Reads the name of the next member, if an object is open.
  Status name() {
    Open& open = open_.back();
    if (!open.value.is(JsonType::kObject)) return {};
    space();
    open.name_begin = at_;
    if (peek() != '"') return fail("expected a name");
    GEN_ASSIGN(open.name, string());
    space();
    return take(":") ? Status() : fail("expected ':'");
  }

  // Stores the value in its container, and closes all containers that end with it; true for the
  // outermost one.
  Result<bool> end(JsonValue* value) {
    for (space(); !open_.empty(); space()) {
      Open& open = open_.back();
      GEN_TRY(put(std::move(*value), &open));
      if (take(",")) {
        GEN_TRY(name());
        return false;
      }
      const std::string end = end_of(open.value);
      if (!take(end)) return fail("expected ',' or '" + end + "'");
      *value = std::move(open.value);
      open_.pop_back();
    }
    return true;
  }

  Status put(JsonValue&& value, Open* open) {
    JsonValue& to = open->value;
    if (to.is(JsonType::kArray)) {
      to.items.push_back(std::move(value));
      return {};
    }
    // If there are many, a table finds duplicates.
    if (to.members.size() == kMany) {
      for (const auto& [known, unused] : to.members) open->names.insert(known);
    }
    const bool twice = to.members.size() < kMany ? to.find(open->name) != nullptr
                                                 : !open->names.insert(open->name).second;
    if (twice) {
      return error_at(text_, open->name_begin, "the name " + quoted(open->name) + " stands twice");
    }
    to.members.emplace_back(std::move(open->name), std::move(value));
    return {};
  }

  Result<JsonValue> number() {
    const size_t begin = at_;
    JsonValue value;
    value.type = JsonType::kNumber;
    take("-");
    if (!take("0")) GEN_TRY(digits());
    if (take(".")) GEN_TRY(digits());
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      GEN_TRY(digits());
    }
    value.text = std::string(text_.substr(begin, at_ - begin));
    return value;
  }

  Status digits() {
    if (!is_digit(peek())) return fail("expected a value");
    while (is_digit(peek())) ++at_;
    return {};
  }

  Result<std::string> string() {
    ++at_;
    std::string out;
    while (!take("\"")) {
      const auto byte = static_cast<unsigned char>(peek());
      if (done() || byte < 0x20) return fail("a string does not end");
      ++at_;
      if (byte != '\\') {
        out.push_back(static_cast<char>(byte));
        continue;
      }
      static constexpr std::string_view kFrom = "\"\\/bfnrt";
      static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
      const char c = peek();
      ++at_;
      if (const size_t place = kFrom.find(c); place != std::string_view::npos) {
        out.push_back(kTo[place]);
      } else if (c == 'u') {
        GEN_ASSIGN(uint32_t code, hexadecimal(4));
        if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
          GEN_ASSIGN(const uint32_t low, hexadecimal(4));
          if (low < 0xDC00 || low > 0xDFFF) return fail("a lone surrogate");
          code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
        } else if (code >= 0xD800 && code < 0xE000) {
          return fail("a lone surrogate");
        }
        utf8_append(code, &out);
      } else {
        return fail("no such escape");
      }
    }
    return out;
  }

  std::vector<Open> open_;  // the innermost one last
  Building* const building_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const noexcept {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

JsonValue JsonValue::of_bool(bool value) {
  JsonValue made;
  made.type = value ? JsonType::kTrue : JsonType::kFalse;
  return made;
}

JsonValue JsonValue::of_string(std::string text) {
  JsonValue made;
  made.type = JsonType::kString;
  made.text = std::move(text);
  return made;
}

JsonValue JsonValue::of_number(size_t number) {
  JsonValue made;
  made.type = JsonType::kNumber;
  made.text = std::to_string(number);
  return made;
}

JsonValue JsonValue::array(std::vector<JsonValue> items) {
  JsonValue made;
  made.type = JsonType::kArray;
  made.items = std::move(items);
  return made;
}

JsonValue JsonValue::object() {
  JsonValue made;
  made.type = JsonType::kObject;
  return made;
}

JsonValue& JsonValue::add(std::string name, JsonValue value) {
  members.emplace_back(std::move(name), std::move(value));
  return *this;
}

Result<JsonValue> read_json(std::string_view text, Building* building) {
  return ValueReader(text, building).run();
}

bool json_equal(const JsonValue& a, const JsonValue& b) {
  std::vector<std::pair<const JsonValue*, const JsonValue*>> open = {{&a, &b}};
  while (!open.empty()) {
    const auto [one, other] = open.back();
    open.pop_back();
    if (one->type != other->type || one->items.size() != other->items.size() ||
        one->members.size() != other->members.size()) {
      return false;
    }
    if (one->is(JsonType::kNumber)) {
      const auto left = decimal_of(one->text);
      const auto right = decimal_of(other->text);
      const bool known = left.ok() && right.ok();
      if (known ? left.value() != right.value() : one->text != other->text) return false;
    } else if (one->text != other->text) {
      return false;
    }
    for (size_t i = 0; i < one->items.size(); ++i) {
      open.emplace_back(&one->items[i], &other->items[i]);
    }
    for (const auto& [name, member] : one->members) {
      const JsonValue* same = other->find(name);
      if (same == nullptr) return false;
      open.emplace_back(&member, same);
    }
  }
  return true;
}

Result<Decimal> decimal_of(std::string_view number) {
  Decimal made;
  size_t i = 0;
  if (i < number.size() && number[i] == '-') {
    made.negative = true;
    ++i;
  }
  bool fraction = false;
  for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
    if (number[i] == '.') {
      fraction = true;
      continue;
    }
    made.digits.push_back(number[i]);
    if (!fraction) ++made.exponent;
  }
  if (i < number.size()) {
    ++i;
    const bool minus = number[i] == '-';
    if (number[i] == '-' || number[i] == '+') ++i;
    int64_t exponent = 0;
    for (; i < number.size(); ++i) {
      exponent = exponent * 10 + (number[i] - '0');
      if (exponent > kMaxExponent) {
        return error(Code::kGrammar, "the exponent of %.40s is above %lld",
                     std::string(number).c_str(), static_cast<long long>(kMaxExponent));
      }
    }
    made.exponent += minus ? -exponent : exponent;
  }
  while (!made.digits.empty() && made.digits.back() == '0') made.digits.pop_back();
  const size_t zeros = std::min(made.digits.find_first_not_of('0'), made.digits.size());
  made.digits.erase(0, zeros);
  made.exponent -= static_cast<int64_t>(zeros);
  if (made.digits.empty()) made = Decimal();
  return made;
}

int compare(const Decimal& a, const Decimal& b) noexcept {
  const auto sign = [](const Decimal& x) { return x.digits.empty() ? 0 : x.negative ? -1 : 1; };
  const int left = sign(a);
  const int right = sign(b);
  if (left != right) return left < right ? -1 : 1;
  if (left == 0) return 0;
  if (a.exponent != b.exponent) return (a.exponent < b.exponent) == (left > 0) ? -1 : 1;
  const int order = a.digits.compare(b.digits);
  if (order == 0) return 0;
  return (order < 0) == (left > 0) ? -1 : 1;
}

}  // namespace gen::grammar

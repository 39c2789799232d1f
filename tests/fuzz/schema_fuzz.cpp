// SPDX-License-Identifier: Apache-2.0
// Texts as JSON Schemas. Nothing may crash, trip a sanitizer or take long; failures are of one
// line; and over what compiles a walk finds masks that are what is accepted, and ends only where a
// JSON text does. The first byte chooses whether the rest is the schema itself or says how one is
// built.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz/grammar_walk.h"
#include "grammar/schema/json_value.h"
#include "support/json_text.h"

namespace {

using namespace gen::grammar;
using namespace gen::grammar::fuzz;

// A schema out of any bytes, so that few of them are wasted on JSON's form.
class Maker {
 public:
  explicit Maker(std::string_view bytes) : bytes_(bytes) {}

  JsonValue schema(int depth) {
    if (below(12) == 0) return JsonValue::of_bool(below(3) != 0);
    JsonValue made = JsonValue::object();
    for (uint32_t i = below(4); i > 0 || made.members.empty(); i -= i > 0 ? 1 : 0) {
      keyword(&made, depth);
      if (bytes_.empty()) break;
    }
    return made;
  }

 private:
  uint32_t below(uint32_t n) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte % n;
  }
  template <size_t N>
  const char* pick(const char* const (&list)[N]) {
    return list[below(N)];
  }
  JsonValue text() {
    static const char* const kTexts[] = {"", "a", "b", "ab", "\xC3\xA9", "a\"b", "x", "date"};
    return JsonValue::of_string(pick(kTexts));
  }
  JsonValue number() {
    static const char* const kNumbers[] = {"0",   "1",     "-1",   "2",
                                           "3.5", "1e2",   "10",   "1e-5",
                                           "0.1", "-0.25", "1e20", "12345678901234567890"};
    JsonValue made = JsonValue::of_number(0);
    made.text = pick(kNumbers);
    return made;
  }
  JsonValue value(int depth) {
    JsonValue made;
    switch (below(depth > 0 ? 7 : 5)) {
      case 0:
        return made;
      case 1:
        return JsonValue::of_bool(below(2) == 0);
      case 2:
        return number();
      case 3:
      case 4:
        return text();
      case 5:
        made = JsonValue::array();
        for (uint32_t i = below(3); i > 0; --i) made.items.push_back(value(depth - 1));
        return made;
      default:
        made = JsonValue::object();
        if (below(3) > 0) made.add("a", value(depth - 1));
        if (below(3) > 0) made.add("b", value(depth - 1));
        return made;
    }
  }
  JsonValue list(int depth) {
    JsonValue made = JsonValue::array();
    for (uint32_t i = 1 + below(3); i > 0; --i) made.items.push_back(schema(depth - 1));
    return made;
  }
  template <size_t N>
  JsonValue by_name(int depth, const char* const (&names)[N]) {
    JsonValue made = JsonValue::object();
    for (const char* name : names) {
      if (below(2) == 0) made.add(name, schema(depth - 1));
    }
    return made;
  }

  void keyword(JsonValue* to, int depth) {
    static const char* const kTypes[] = {"object",  "array",   "string", "number",
                                         "integer", "boolean", "null"};
    static const char* const kPatterns[] = {"^a", "b$", "[0-9]+", "^(?=a).{2}$", "(a|b)*", "\\w"};
    static const char* const kFormats[] = {"date", "ipv4",  "uuid", "email",
                                           "time", "regex", "none"};
    static const char* const kNames[] = {"a", "b", "ab"};
    static const char* const kCounts[] = {"minLength", "maxLength",     "minItems",
                                          "maxItems",  "minProperties", "maxProperties"};
    static const char* const kBounds[] = {"minimum", "maximum", "exclusiveMinimum",
                                          "exclusiveMaximum", "multipleOf"};
    static const char* const kOne[] = {
        "items", "contains", "additionalProperties",  "propertyNames",   "not", "if",
        "then",  "else",     "unevaluatedProperties", "unevaluatedItems"};
    static const char* const kLists[] = {"allOf", "anyOf", "oneOf", "prefixItems"};
    JsonValue names = JsonValue::array();
    const auto add = [&](const char* name, JsonValue value) {
      if (to->find(name) == nullptr) to->add(name, std::move(value));
    };
    switch (below(depth > 0 ? 15 : 9)) {
      case 0:
      case 1:
        return add("type", JsonValue::of_string(pick(kTypes)));
      case 2:
        for (uint32_t i = 1 + below(3); i > 0; --i) names.items.push_back(value(2));
        return add("enum", std::move(names));
      case 3:
        return add("const", value(2));
      case 4:
        return add(pick(kCounts), JsonValue::of_number(below(5)));
      case 5:
        return add(pick(kBounds), number());
      case 6:
        return add("pattern", JsonValue::of_string(pick(kPatterns)));
      case 7:
        return below(3) == 0 ? add("uniqueItems", JsonValue::of_bool(true))
                             : add("format", JsonValue::of_string(pick(kFormats)));
      case 8:
        for (const char* name : kNames) {
          if (below(2) == 0) names.items.push_back(JsonValue::of_string(name));
        }
        return add("required", std::move(names));
      case 9:
      case 10:
        return add("properties", by_name(depth, kNames));
      case 11:
        return add(below(2) == 0 ? "patternProperties" : "dependentSchemas",
                   by_name(depth, kNames));
      case 12:
        return add(pick(kLists), list(depth));
      case 13:
        return add("$ref", JsonValue::of_string("#"));
      default:
        return add(pick(kOne), schema(depth - 1));
    }
  }

  std::string_view bytes_;
};

void read_to_end(Matcher& matcher, std::string_view choices) {
  matcher.reset();
  std::string text;
  int n_longer = 0;
  for (size_t i = 0; i < 400; ++i) {
    if (matcher.is_complete()) {
      const auto value = read_json(text);
      // Of names that no keyword speaks of the grammar does not know which have come.
      require(value.ok() || std::strstr(value.status().message(), "stands twice") != nullptr);
      if (matcher.is_finished()) return;
    }
    const ByteSet valid = matcher.valid_bytes();
    const uint8_t seed = choices.empty() ? 0 : static_cast<uint8_t>(choices[i % choices.size()]);
    const uint64_t left = matcher.min_bytes();
    bool taken = false;
    const auto take = [&](int byte, bool any) {
      const char c = static_cast<char>(byte);
      if (!valid.has(static_cast<uint8_t>(c))) return true;
      const auto read = matcher.accept_bytes({&c, 1});
      if (!read.ok()) return false;
      require(read.value());
      taken = any || matcher.min_bytes() < left || left == 0;
      if (taken) text.push_back(c);
      if (!taken) require(matcher.rollback(1).ok());
      return true;
    };
    for (int k = 0; k < 256 && !taken; ++k) {
      if (!take(i < 40 ? seed + k : k, i < 40)) return;
    }
    // The fewest bytes may be counted with a name that is there already: another one is longer.
    if (!taken) require(++n_longer <= 16);
    for (int k = 0; k < 256 && !taken; ++k) {
      if (!take(k, true)) return;
    }
    require(taken);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string built;
  if (data[0] % 2 == 1) built = test::json_text(Maker(text).schema(3));
  SchemaOptions options;
  options.assert_formats = data[0] % 8 != 0;
  if (data[0] / 8 % 2 == 1) options.style = JsonStyle::of_models();
  options.automata = small().automata;
  options.automata.states = 5'000;
  options.work = 5'000;
  const auto grammar =
      Grammar::from_json_schema(built.empty() ? text : std::string_view(built), options, small());
  if (!grammar.ok()) {
    require(grammar.status().code() == gen::Code::kGrammar);
    require(std::strlen(grammar.status().message()) > 0);
    require(std::strchr(grammar.status().message(), '\n') == nullptr);
    return 0;
  }
  static const auto vocabulary = [] {
    std::vector<std::string> texts = test::all_bytes();
    for (const char* more :
         {"{\"", "\":", "\",\"", "\": ", "a\":", "true", "1}", ", \"", "},", "\\u006", "null,",
          "]}", "e1", "10", ".5", "ab", "\"a\"", "  ", "\xC3\xA9"}) {
      texts.emplace_back(more);
    }
    return test::vocabulary(texts);
  }();
  const auto over = grammar.value()->once_over(vocabulary);
  require(over.ok());
  auto matcher = Matcher::create(over.value());
  if (!matcher.ok()) return 0;
  walk(*matcher, text);
  read_to_end(*matcher, text);
  return 0;
}

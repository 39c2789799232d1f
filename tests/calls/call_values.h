// SPDX-License-Identifier: Apache-2.0
// Random schemas, values for them, and calls with these values as each family writes them: the
// writers share nothing with the library's grammars and readers.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/call_format.h"
#include "calls/tool.h"
#include "grammar/schema/json_value.h"

namespace gen::calls::test {

using grammar::JsonType;
using grammar::JsonValue;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  /// 0 to n - 1.
  size_t below(size_t n) { return engine_() % n; }
  bool one_in(size_t n) { return below(n) == 0; }
  std::string word(size_t most, bool odd) {
    const std::string_view alphabet = odd ? "ab z\"'<{[\n,:]}\\\xC3\xA9" : "abyz";
    std::string made;
    for (size_t n = below(most + 1); made.size() < n;) {
      const size_t at = below(alphabet.size() - (odd ? 1 : 0));
      made += alphabet[at];
      if (alphabet[at] == '\xC3') made += '\xA9';
    }
    return made;
  }

 private:
  std::mt19937 engine_;
};

inline std::string pick(Random& random, std::initializer_list<const char*> all) {
  return *(all.begin() + static_cast<std::ptrdiff_t>(random.below(all.size())));
}

/// The JSON of a schema. References are to "#/$defs/node".
inline std::string random_schema(Random& random, int depth) {
  switch (random.below(depth > 0 ? 13 : 9)) {
    case 0:
      return R"({"type":"string"})";
    case 1:
      return R"({"type":"string","minLength":1,"maxLength":4})";
    case 2:
      return R"({"type":"string","pattern":"^a*b?"})";
    case 3:
      return R"({"type":"integer","minimum":-5,"maximum":20})";
    case 4:
      return R"({"type":"number"})";
    case 5:
      return R"({"type":["boolean","null"]})";
    case 6:
      return R"({"enum":["ab","z y",7,null]})";
    case 7:
      return pick(random, {R"({"type":["string","integer"]})",
                           R"({"type":["string","null"],"maxLength":3})", R"({"const":"ab"})",
                           R"({"const":true})", R"({"allOf":[{"type":"boolean"}]})"});
    case 8:
      return R"({"$ref":"#/$defs/node"})";
    case 9:
    case 10: {
      std::string made = R"({"type":"array")";
      if (random.one_in(2)) {
        made += R"(,"items":)" + random_schema(random, depth - 1);
      } else {
        made += R"(,"prefixItems":[)" + random_schema(random, depth - 1) + "," +
                random_schema(random, depth - 1) + R"(],"items":false)";
      }
      if (random.one_in(2)) made += R"(,"minItems":1)";
      if (random.one_in(2)) made += R"(,"maxItems":2)";
      return made + "}";
    }
    case 11:
      return R"({"anyOf":[)" + random_schema(random, depth - 1) + "," +
             random_schema(random, depth - 1) + "]}";
    default: {
      std::string members;
      std::string required;
      for (const char* name : {"a", "b", "c_d"}) {
        if (random.one_in(4)) continue;
        members += std::string(members.empty() ? "" : ",") + "\"" + name +
                   "\":" + random_schema(random, depth - 1);
        if (random.one_in(2)) {
          required += std::string(required.empty() ? "" : ",") + "\"" + name + "\"";
        }
      }
      return R"({"type":"object","properties":{)" + members + R"(},"required":[)" + required +
             R"(],"additionalProperties":false})";
    }
  }
}

/// Of the arguments of a call.
inline std::string random_parameters(Random& random) {
  std::string members;
  std::string required;
  for (const char* name : {"city", "n", "x-y", "list"}) {
    if (random.one_in(4)) continue;
    members +=
        std::string(members.empty() ? "" : ",") + "\"" + name + "\":" + random_schema(random, 2);
    if (random.one_in(2)) required += std::string(required.empty() ? "" : ",") + "\"" + name + "\"";
  }
  return R"({"type":"object","properties":{)" + members + R"(},"required":[)" + required +
         R"(],"additionalProperties":false,"$defs":{"node":{"type":"object","properties":{)"
         R"("v":{"type":"string"},"next":{"$ref":"#/$defs/node"}},"required":["v"],)"
         R"("additionalProperties":false}}})";
}

inline JsonValue number(int value) {
  JsonValue made;
  made.type = JsonType::kNumber;
  made.text = std::to_string(value);
  return made;
}

inline JsonValue random_scalar(Random& random) {
  switch (random.below(5)) {
    case 0:
      return JsonValue::of_string(random.word(5, false));
    case 1:
      return number(static_cast<int>(random.below(30)) - 8);
    case 2: {
      JsonValue made = number(static_cast<int>(random.below(30)));
      made.text += ".5";
      return made;
    }
    case 3:
      return JsonValue::of_bool(random.one_in(2));
    default:
      return {};
  }
}

/// A value that is usually valid.
inline JsonValue random_value(Random& random, const JsonValue& root, const JsonValue& schema,
                              int depth = 0) {
  const auto within = [&](const JsonValue& one) {
    return random_value(random, root, one, depth + 1);
  };
  if (random.one_in(40) || depth > 12) return random_scalar(random);
  if (const auto* one = schema.find("const")) return *one;
  if (const auto* all = schema.find("enum")) return all->items[random.below(all->items.size())];
  if (schema.find("$ref") != nullptr) return within(*root.find("$defs")->find("node"));
  for (const char* key : {"anyOf", "allOf"}) {
    if (const auto* all = schema.find(key))
      return within(all->items[random.below(all->items.size())]);
  }
  const JsonValue& types = *schema.find("type");
  const std::string& type =
      types.is(JsonType::kString) ? types.text : types.items[random.below(types.items.size())].text;
  if (type == "string") {
    if (schema.find("pattern") != nullptr) return JsonValue::of_string(random.word(3, false));
    const bool sure = types.is(JsonType::kString) && depth == 1;
    return JsonValue::of_string(random.word(6, sure));
  }
  if (type == "integer") return number(static_cast<int>(random.below(28)) - 6);
  if (type == "boolean") return JsonValue::of_bool(random.one_in(2));
  if (type == "number") {
    JsonValue made = number(static_cast<int>(random.below(100)) - 50);
    if (random.one_in(2)) made.text += ".25";
    return made;
  }
  if (type == "null") return {};
  if (type == "array") {
    JsonValue made = JsonValue::array();
    const size_t n = random.below(4);
    const auto* first = schema.find("prefixItems");
    for (size_t i = 0; i < n; ++i) {
      if (first != nullptr && i >= first->items.size()) {
        if (random.one_in(6)) made.items.push_back(random_scalar(random));
        break;
      }
      made.items.push_back(within(first != nullptr ? first->items[i] : *schema.find("items")));
    }
    return made;
  }
  JsonValue made = JsonValue::object();
  const auto* required = schema.find("required");
  for (const auto& [name, one] : schema.find("properties")->members) {
    bool must = false;
    for (const JsonValue& wanted : required->items) must |= wanted.text == name;
    if (must ? random.one_in(30) : random.one_in(2)) continue;
    made.members.emplace_back(name, within(one));
  }
  if (random.one_in(30)) made.members.emplace_back("zz", random_scalar(random));
  return made;
}

/// As models write it: only what has to be escaped is, a line break by its letter.
inline std::string quoted_json(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return made + "\"";
}

/// How a syntax writes values.
struct ValueText {
  std::string words[3] = {"null", "false", "true"};
  std::string separator = ", ";
  std::string colon = ": ";
  std::string quote = {};  // empty: JSON strings
  bool names_in_quotes = true;

  [[nodiscard]] std::string operator()(const JsonValue& value) const {
    switch (value.type) {
      case JsonType::kNull:
        return words[0];
      case JsonType::kFalse:
        return words[1];
      case JsonType::kTrue:
        return words[2];
      case JsonType::kNumber:
        return value.text;
      case JsonType::kString:
        return quote.empty() ? quoted_json(value.text) : quote + value.text + quote;
      case JsonType::kArray: {
        std::string made;
        for (const auto& one : value.items) made += (made.empty() ? "" : separator) + (*this)(one);
        return "[" + made + "]";
      }
      case JsonType::kObject:
        break;
    }
    std::string made;
    for (const auto& [name, one] : value.members) {
      made += (made.empty() ? "" : separator) + (names_in_quotes ? quoted_json(name) : name) +
              colon + (*this)(one);
    }
    return "{" + made + "}";
  }
};

inline std::string nested_text(const std::string& lead, const JsonValue& value) {
  if (value.is(JsonType::kString)) return value.text;
  std::string made;
  for (const auto& one : value.items) {
    made += lead + "<item>" + nested_text(lead, one) + lead + "</item>";
  }
  for (const auto& [name, one] : value.members) {
    made += lead + "<" + name + ">" + nested_text(lead, one) + lead + "</" + name + ">";
  }
  return made.empty() ? ValueText()(value) : made;
}

inline std::string arguments_text(const CallFormat& format, const JsonValue& value) {
  const ArgumentMarks& marks = format.marks;
  std::string made;
  switch (format.syntax) {
    case Syntax::kJson:
      return ValueText()(value);
    case Syntax::kDict: {
      ValueText text;
      text.separator = ",";
      text.colon = ":";
      text.quote = marks.quote;
      text.names_in_quotes = false;
      return text(value);
    }
    case Syntax::kPython: {
      ValueText text;
      text.words[0] = "None";
      text.words[1] = "False";
      text.words[2] = "True";
      for (const auto& [name, one] : value.members) {
        made += (made.empty() ? "" : ", ") + name + "=" + text(one);
      }
      return made;
    }
    case Syntax::kNested:
      for (const auto& [name, one] : value.members) {
        made += marks.lead + "<" + name + ">" + nested_text(marks.lead, one) + marks.lead + "</" +
                name + ">";
      }
      return made;
    case Syntax::kTagged:
      for (const auto& [name, one] : value.members) {
        const bool text = one.is(JsonType::kString);
        std::string middle = text && !marks.text_middle.empty() ? marks.text_middle : marks.middle;
        static const char* const kTypes[] = {"null",   "boolean", "boolean", "number",
                                             "string", "array",   "object"};
        for (const std::string& other : marks.other_middles) {
          if (other.find(kTypes[static_cast<size_t>(one.type)]) != std::string::npos)
            middle = other;
        }
        made += marks.open + name + middle + (text ? one.text : ValueText()(one)) + marks.close;
      }
      return made;
  }
  return made;
}

/// Where the tool says that a member is a string, a raw value is one whatever it looks like.
inline JsonValue as_read(const CallFormat& format, const Tool& tool, JsonValue value) {
  const bool raw = format.syntax == Syntax::kNested ||
                   (format.syntax == Syntax::kTagged && format.marks.text_middle.empty());
  for (auto& [name, one] : value.members) {
    if (!raw || one.is(JsonType::kString) || tool.kind_of(name) != ValueKind::kText) continue;
    one = JsonValue::of_string(
        format.syntax == Syntax::kNested ? nested_text(format.marks.lead, one) : ValueText()(one));
  }
  return value;
}

/// The first call of an answer.
inline std::string call_text(const CallFormat& format, const std::string& name,
                             const JsonValue& value) {
  const std::string arguments = arguments_text(format, value);
  std::string made;
  if (format.messages) {
    made = format.messages->call_header;
    made.replace(made.find("NAME"), 4, name);
    const std::string& start = format.messages->starts[0];  // which the prompt has written
    if (made.starts_with(start)) made.erase(0, start.size());
    if (format.messages->body_is_arguments) return made + arguments + format.messages->call_end;
  }
  made += format.section.open;
  const bool nine = format.ids == IdForm::kNine;
  for (const Part& part : format.call) {
    switch (part.field) {
      case Field::kText:
        made += part.text;
        break;
      case Field::kName:
        made += name;
        break;
      case Field::kIndexedName:
        made += "functions." + name + ":3";
        break;
      case Field::kId:
        made += nine ? "abcdefgh1" : "7";
        break;
      case Field::kArguments:
        made += arguments;
        break;
      case Field::kObject: {
        const Keys& keys = format.keys;
        if (keys.name.empty()) {
          made += "{\"" + name + "\": " + arguments + "}";
          break;
        }
        made +=
            "{\"" + keys.name + "\": \"" + name + "\", \"" + keys.arguments + "\": " + arguments;
        if (!keys.id.empty()) {
          made += ", \"" + keys.id + "\": \"" + (nine ? "abcdefgh1" : "7") + "\"";
        }
        made += "}";
        break;
      }
    }
  }
  made += format.section.close;
  return format.messages ? made + format.messages->call_end : made;
}

}  // namespace gen::calls::test

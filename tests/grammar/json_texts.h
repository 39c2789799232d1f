// SPDX-License-Identifier: Apache-2.0
// Random JSON texts for tests, with many ways to spell them, in which names and items come again;
// and a slow reader that says what is there twice.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace gen::grammar::test {

class JsonTexts {
 public:
  explicit JsonTexts(uint32_t seed) : random_(seed) {}
  uint32_t below(uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random_); }

  std::string space() { return below(6) == 0 ? std::string(1 + below(2), " \n\t"[below(3)]) : ""; }

  /// Characters, each as it is or escaped.
  std::string string(const std::vector<uint32_t>& characters) {
    std::string text = "\"";
    for (const uint32_t c : characters) {
      const bool must = c < 0x20 || c == '"' || c == '\\';
      if (must || below(4) == 0) {
        const auto unit = [&](uint32_t u) {
          char digits[8];
          std::snprintf(digits, sizeof digits, below(2) == 0 ? "\\u%04x" : "\\u%04X", u);
          text += digits;
        };
        if (c == '"' && below(2) == 0) {
          text += "\\\"";
        } else if (c == '\n' && below(2) == 0) {
          text += "\\n";
        } else if (c < 0x10000) {
          unit(c);
        } else {
          unit(0xD800 + ((c - 0x10000) >> 10U));
          unit(0xDC00 + ((c - 0x10000) & 0x3FFU));
        }
      } else if (c < 0x80) {
        text += static_cast<char>(c);
      } else if (c < 0x800) {
        text += static_cast<char>(0xC0U | c >> 6U);
        text += static_cast<char>(0x80U | (c & 0x3FU));
      } else if (c < 0x10000) {
        text += static_cast<char>(0xE0U | c >> 12U);
        text += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
        text += static_cast<char>(0x80U | (c & 0x3FU));
      } else {
        text += static_cast<char>(0xF0U | c >> 18U);
        text += static_cast<char>(0x80U | (c >> 12U & 0x3FU));
        text += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
        text += static_cast<char>(0x80U | (c & 0x3FU));
      }
    }
    return text + "\"";
  }

  std::string some_string() {
    static const std::vector<std::vector<uint32_t>> kFew = {
        {'a'}, {'b'}, {'a', 'b'}, {}, {'a', '"'}, {0xE9}, {0x1F999}, {'\n'}, {'a', 'b', 'c'}};
    return string(kFew[below(static_cast<uint32_t>(kFew.size()))]);
  }

  std::string number() {
    static const char* const kSame[] = {"1",      "1.0", "1e0",  "10e-1", "0.1E+1", "0",   "-0",
                                        "0.0",    "0e5", "10",   "1e1",   "10.0",   "100", "12",
                                        "120e-1", "-1",  "-1.0", "2.5",   "25e-1"};
    return kSame[below(std::size(kSame))];
  }

  std::string value(int depth) {
    switch (below(depth > 0 ? 7 : 4)) {
      case 0:
        return number();
      case 1:
        return below(2) == 0 ? "true" : "null";
      case 2:
      case 3:
        return some_string();
      case 4:
        return object(depth);
      default:
        return array(depth);
    }
  }

  std::string object(int depth) {
    std::string text = "{" + space();
    const uint32_t count = below(4);
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) text += "," + space();
      text += some_string() + space() + ":" + space() + value(depth - 1) + space();
    }
    return text + "}";
  }

  std::string array(int depth) {
    std::string text = "[" + space();
    const uint32_t count = below(4);
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) text += "," + space();
      text += value(depth - 1) + space();
    }
    return text + "]";
  }

  /// Parts of such texts.
  std::vector<std::string> pieces(size_t count) {
    std::set<std::string> made;
    while (made.size() < count) {
      const std::string text = value(3);
      const size_t length = 2 + below(7);
      if (text.size() <= length) continue;
      made.insert(text.substr(below(static_cast<uint32_t>(text.size() - length)), length));
    }
    return {made.begin(), made.end()};
  }

 private:
  std::mt19937 random_;
};

/// Whether an object of a text, or of its beginning, has a name twice.
inline bool has_name_twice(const std::string& text) {
  struct Reader : nlohmann::json_sax<nlohmann::json> {
    std::vector<std::set<std::string>> open;
    bool twice = false;
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(size_t) override {
      open.emplace_back();
      return true;
    }
    bool key(string_t& name) override {
      twice |= !open.back().insert(name).second;
      return !twice;
    }
    bool end_object() override {
      open.pop_back();
      return true;
    }
    bool start_array(size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
      return false;
    }
  } reader;
  nlohmann::json::sax_parse(text, &reader);
  return reader.twice;
}

}  // namespace gen::grammar::test

// SPDX-License-Identifier: Apache-2.0
// Instances for a schema: members by a random walk over the bytes that its grammar allows, and
// values near them, changed in one place. What is valid is for another validator to say.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "grammar/matcher/matcher.h"
#include "grammar/schema/json_value.h"
#include "support/json_text.h"

namespace gen::grammar::test {

/// Names and scalars that a schema speaks of, as JSON texts.
inline void collect_words(const JsonValue& node, std::vector<std::string>* words) {
  if (words->size() >= 400) return;
  for (const auto& [name, value] : node.members) {
    std::string text;
    write_string(name, &text);
    words->push_back(std::move(text));
    collect_words(value, words);
  }
  for (const JsonValue& item : node.items) collect_words(item, words);
  if (node.is(JsonType::kString) && node.text.size() < 80) words->push_back(json_text(node));
  if (node.is(JsonType::kNumber)) words->push_back(json_text(node));
}

class Walker {
 public:
  Walker(uint32_t seed, std::vector<std::string> words) : random_(seed), words_(std::move(words)) {}

  /// A member of about `size` bytes at most; empty if the walk went astray (limits, no way out).
  std::string walk(Matcher& matcher, size_t size) {
    std::string text;
    matcher.reset();
    const size_t most = 1 + random_() % size;
    while (text.size() < 64 * size + 4096) {
      const bool far = text.size() >= most;
      if (matcher.is_finished() || (matcher.is_complete() && (far || random_() % 2 == 0))) {
        return text;
      }
      if (far ? !nearer(matcher, &text) : !further(matcher, &text)) return "";
    }
    return "";
  }

  /// The value with one place changed: a scalar, a member or an item.
  JsonValue changed(const JsonValue& value) {
    JsonValue made = value;
    std::vector<JsonValue*> places;
    list(&made, &places);
    change(places[random_() % places.size()]);
    return made;
  }

 private:
  static void list(JsonValue* node, std::vector<JsonValue*>* places) {
    places->push_back(node);
    for (JsonValue& item : node->items) list(&item, places);
    for (auto& [name, value] : node->members) list(&value, places);
  }

  [[nodiscard]] const std::string& word() { return words_[random_() % words_.size()]; }

  bool take(Matcher& matcher, std::string_view piece, std::string* text) {
    const auto taken = matcher.accept_bytes(piece);
    if (!taken.ok() || !taken.value()) return false;
    *text += piece;
    return true;
  }

  // One byte, or a whole word of the schema; short numbers, mostly letters and digits.
  bool further(Matcher& matcher, std::string* text) {
    const ByteSet valid = matcher.valid_bytes();
    const bool in_number =
        !text->empty() &&
        std::string_view("0123456789.eE+-").find(text->back()) != std::string_view::npos;
    if (!words_.empty() && !in_number && random_() % 4 != 0) {
      for (int tries = 0; tries < 12; ++tries) {
        const std::string& piece = word();
        if (!valid.has(static_cast<uint8_t>(piece[0]))) continue;
        if (take(matcher, piece, text)) return true;
      }
    }
    const size_t digits = text->size() - (text->find_last_not_of("0123456789") + 1);
    std::vector<char> open;
    std::vector<char> rare;
    for (int byte = 0; byte < 256; ++byte) {
      if (!valid.has(static_cast<uint8_t>(byte))) continue;
      const auto c = static_cast<char>(byte);
      const bool digit = c >= '0' && c <= '9';
      const bool mark = std::string_view("{}[]\":,-.").find(c) != std::string_view::npos;
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      // No number beyond what a double holds: an exponent of two digits ends.
      const bool in_exponent =
          digits >= 2 && text->find_last_of("eE") != std::string::npos &&
          text->find_first_not_of("+-", text->find_last_of("eE") + 1) == text->size() - digits;
      if (digit && (digits >= 7 || in_exponent) && valid.count() > 1) continue;
      const bool fine = digit || letter || mark;
      (fine ? open : rare).push_back(c);
      if (fine && (mark || (c | 0x20) != 'e')) open.push_back(c);
    }
    if (open.empty() || (!rare.empty() && random_() % 24 == 0)) open = rare;
    if (open.empty()) return false;
    const char c = open[random_() % open.size()];
    return take(matcher, {&c, 1}, text);
  }

  static bool nearer(Matcher& matcher, std::string* text) {
    const uint64_t left = matcher.min_bytes();
    const ByteSet valid = matcher.valid_bytes();
    for (int byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<char>(byte);
      if (!valid.has(static_cast<uint8_t>(byte))) continue;
      const auto taken = matcher.accept_bytes({&c, 1});
      if (!taken.ok() || !taken.value()) continue;
      if (matcher.min_bytes() < left) {
        text->push_back(c);
        return true;
      }
      if (!matcher.rollback(1).ok()) return false;
    }
    return false;
  }

  JsonValue scalar() {
    if (!words_.empty() && random_() % 2 == 0) {
      auto made = read_json(word());
      if (made.ok()) return std::move(made).value();
    }
    JsonValue made;
    switch (random_() % 8) {
      case 0:
        made.type = JsonType::kNull;
        break;
      case 1:
        made.type = random_() % 2 == 0 ? JsonType::kFalse : JsonType::kTrue;
        break;
      case 2:
      case 3:
        made = JsonValue::of_number(random_() % 100);
        break;
      case 4:
        made = JsonValue::array();
        break;
      case 5:
        made = JsonValue::object();
        break;
      default:
        made = JsonValue::of_string(random_() % 2 == 0 ? "" : "some text");
        break;
    }
    return made;
  }

  void change(JsonValue* node) {
    const auto how = random_() % 6;
    if (how == 0) {
      *node = scalar();
      return;
    }
    switch (node->type) {
      case JsonType::kNumber: {
        static const char* const kEnds[] = {"0", "1", "5", "000"};
        if (how == 1 && node->text[0] == '-') {
          node->text.erase(0, 1);
        } else if (how == 1) {
          node->text.insert(0, "-");
        } else if (how == 2 && node->text.find_first_of(".eE") == std::string::npos) {
          node->text += random_() % 2 == 0 ? ".5" : ".0";
        } else if (node->text.find_first_of("eE") == std::string::npos && node->text != "0" &&
                   node->text != "-0") {
          node->text += kEnds[random_() % 4];
        } else {
          node->text = "1";
        }
        break;
      }
      case JsonType::kString:
        if (how == 1) {
          node->text += 'x';
        } else if (how == 2) {
          node->text.insert(0, " ");
        } else if (how == 3) {
          node->text += node->text;
        } else {
          node->text.clear();
        }
        break;
      case JsonType::kArray:
        if (node->items.empty() || how == 1) {
          node->items.push_back(scalar());
        } else if (how == 2) {
          node->items.push_back(JsonValue(node->items[random_() % node->items.size()]));
        } else {
          node->items.erase(node->items.begin() +
                            static_cast<std::ptrdiff_t>(random_() % node->items.size()));
        }
        break;
      case JsonType::kObject: {
        if (node->members.empty() || how <= 2) {
          auto name =
              words_.empty() ? Result<JsonValue>(JsonValue::of_string("x")) : read_json(word());
          if (!name.ok() || !name.value().is(JsonType::kString)) name = JsonValue::of_string("zz");
          if (node->find(name.value().text) == nullptr) node->add(name.value().text, scalar());
        } else {
          node->members.erase(node->members.begin() +
                              static_cast<std::ptrdiff_t>(random_() % node->members.size()));
        }
        break;
      }
      default:
        *node = scalar();
        break;
    }
  }

  std::mt19937 random_;
  std::vector<std::string> words_;
};

}  // namespace gen::grammar::test

// SPDX-License-Identifier: Apache-2.0
// JsonScanner: checks one JSON object or array byte by byte and says where its values begin and
// end. RFC 8259 without duplicate names, except that strings may hold control characters as they
// are (models write line breaks into strings); who copies the bytes must escape those.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "calls/arguments/argument_reader.h"

namespace gen::calls {

class JsonScanner {
 public:
  using State = ArgumentReader::State;

  /// White space before the first bracket is skipped.
  State take(char byte);
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

  /// Open brackets after the last byte.
  [[nodiscard]] size_t depth() const noexcept { return open_.size(); }
  /// The last byte ended the name of a member; it is name().
  [[nodiscard]] bool name_ended() const noexcept { return name_ended_; }
  /// Of the member that is being read, of the innermost object, decoded.
  [[nodiscard]] const std::string& name() const noexcept { return open_.back().name; }
  /// The last byte is the first of a value.
  [[nodiscard]] bool value_began() const noexcept { return value_began_; }
  /// A string, a number or a word ended: with the last byte (a string) or before it.
  [[nodiscard]] bool scalar_ended() const noexcept { return scalar_ended_; }
  /// Whether the last byte stands inside a string, its quotes included.
  [[nodiscard]] bool in_string() const noexcept { return in_string_; }
  /// Of the innermost bracket.
  [[nodiscard]] bool in_object() const noexcept { return open_.back().object; }

 private:
  enum class At : uint8_t { kStart, kFirst, kName, kColon, kValue, kNext, kString, kScalar };
  struct Level {
    bool object = false;
    std::string name = {};
    std::unordered_set<std::string> names = {};
  };

  State bad(const char* fault) noexcept {
    fault_ = fault;
    return State::kBad;
  }
  State begin_value(char byte);
  State string_byte(char byte);
  State end_bracket(char byte);
  State word_byte(char byte);
  State structure_byte(char byte);

  At at_ = At::kStart;
  bool is_name_ = false;  // the string is a member's name
  uint8_t escape_ = 0;    // 1: behind a backslash; 2 to 5: digits of \u
  uint8_t number_ = 0;    // state of the number; 0: a word
  std::string text_;      // of the name or the word
  std::vector<Level> open_;
  bool name_ended_ = false;
  bool value_began_ = false;
  bool scalar_ended_ = false;
  bool in_string_ = false;
  const char* fault_ = "";
};

/// The text of a JSON string without its quotes, which JsonScanner took. Lone surrogates become
/// U+FFFD.
std::string decode_json_string(std::string_view raw);

/// `byte` as it may stand in a JSON string: control characters are escaped.
void append_string_byte(char byte, std::string* json);

}  // namespace gen::calls

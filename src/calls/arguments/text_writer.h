// SPDX-License-Identifier: Apache-2.0
// Writes the inside of a JSON string byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gen::calls {

class TextWriter {
 public:
  /// The next byte of the text. A character is written once it is complete. False, with nothing
  /// written, for a byte that is not UTF-8 at its place.
  bool put(char byte, std::string* json);
  bool put(std::string_view bytes, std::string* json);
  void put_character(uint32_t code, std::string* json);
  /// Whether no character is incomplete.
  [[nodiscard]] bool whole() const noexcept { return held_.empty(); }

 private:
  std::string held_;  // of an incomplete character
};

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// From which states of a JSON grammar's machines a value can become endlessly many different ones,
// so that it can always become one that an array does not have yet. Only what is sure is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grammar/json/json_text.h"

namespace gen::grammar {

struct Machines;
struct Item;
class ReturnLists;

/// Threads: immutable.
struct Endless {
  /// By state, a bit for each JsonReader::Number that is being read there; the value goes on within
  /// the innermost open object or array, before its next comma.
  std::vector<uint8_t> states;
  /// So are all states behind bytes other than quotation marks and backslashes.
  static constexpr uint8_t kClosed = 0x80;
  /// By loop: it calls characters of strings.
  std::vector<bool> of_characters;

  /// Whether it is so from one of the items. Loops that end count where they leave more values than
  /// `n_taken`.
  [[nodiscard]] bool from(const Machines& machines, const ReturnLists& lists, const Item* items,
                          size_t n_items, JsonReader::Number number,
                          uint32_t n_taken) const noexcept;
  /// In a string: behind so many bytes without a quotation mark or backslash it will still be so.
  [[nodiscard]] uint32_t room(const Machines& machines, const ReturnLists& lists, const Item* items,
                              size_t n_items, uint32_t n_taken) const noexcept;
};

Endless find_endless(const Machines& machines);

}  // namespace gen::grammar

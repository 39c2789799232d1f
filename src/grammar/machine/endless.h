// SPDX-License-Identifier: Apache-2.0
// Marks the states of a JSON grammar's machines from which a value can still become infinitely many
// different ones, so that it can always become one that an array does not contain yet.
// Conservative: only certain cases are marked.
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
  /// By state, a bit for each JsonReader::Number that may be current there; the value grows within
  /// the innermost open object or array, before its next comma.
  std::vector<uint8_t> states;
  /// All states reached by bytes other than quotation marks and backslashes have the property, too.
  static constexpr uint8_t kClosed = 0x80;
  /// By loop: whether it calls string characters.
  std::vector<bool> of_characters;

  /// Whether one of the items has the property. Bounded loops count if they allow more values than
  /// `n_taken`.
  [[nodiscard]] bool from(const Machines& machines, const ReturnLists& lists, const Item* items,
                          size_t n_items, JsonReader::Number number,
                          uint32_t n_taken) const noexcept;
  /// For an item in a string: the number of further bytes, without quotation marks and backslashes,
  /// for which the property still holds.
  [[nodiscard]] uint32_t room(const Machines& machines, const ReturnLists& lists, const Item* items,
                              size_t n_items, uint32_t n_taken) const noexcept;
};

Endless find_endless(const Machines& machines);

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// ItemSearch: enforces items that must differ, and JSON that begins within a text (json_text.h). It
// reads on with the recogniser and the reader together, and determines whether the current items of
// watched arrays can still become new ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/base/byte_set.h"
#include "grammar/json/json_text.h"
#include "grammar/machine/machines.h"
#include "grammar/machine/recogniser.h"
#include "grammar/mask/vocabulary.h"

namespace gen::grammar {

/// Tables that are reused from search to search.
/// Threads: not synchronised.
class ItemSearch {
 public:
  /// `machines` must outlive it; `max_items` of the recogniser at one position.
  ItemSearch(const Machines& machines, size_t max_items)
      : machines_(machines), max_items_(max_items), step_(machines) {}

  /// Whether the text can continue so that all its arrays can be completed, shortest continuations
  /// first. A continuation that needs a search of more than kFuel bytes is not found; the result is
  /// consistent along every continuation that was found, so that no text runs into a dead end.
  /// `lists` and `reader` are unchanged afterwards.
  bool viable(ReturnLists& lists, std::span<const Item> items, JsonReader& reader);
  static constexpr uint64_t kFuel = uint64_t{1} << 16U;

  /// The bytes of `bytes` that are possible; builds on the lists.
  ByteSet possible(const ReturnLists& lists, std::span<const Item> items, JsonReader& reader,
                   const ByteSet& bytes);
  /// Removes impossible tokens from the mask of the grammar.
  void forbid(const Vocabulary& vocabulary, const ReturnLists& lists, std::span<const Item> items,
              JsonReader& reader, std::span<uint64_t> bits);

  /// Passes the signals of the items after a byte to the reader, which has read the byte: that a
  /// value begins there, or that the items of the array that it opened must differ.
  void follow(uint8_t byte, std::span<const Item> items, JsonReader& reader) const noexcept;

 private:
  struct Position {
    JsonState state;
    size_t lists = 0;          // their number at this position
    size_t first = 0;          // of its items in items_; they end where those of the next position
                               // begin
    bool ended = false;        // the whole text may end
    bool escaping = false;     // in an escape that the search has begun
    bool apart = false;        // reads something that the grammar's mask did not
    bool rival_known = false;  // otherwise it is `rival` or an older one
    uint32_t rival = JsonReader::kNewest;  // JsonReader::rival()
    ByteSet open;                          // bytes still to be tried, in a search
    uint32_t node = 0;                     // the next trie node, in a walk
    uint32_t end = 0;
    uint32_t room = 0;
  };
  /// Reads one byte from the last position, to a new one; false if that is impossible.
  bool advance(ReturnLists& lists, JsonReader& reader, uint8_t byte);
  void leave(ReturnLists& lists, JsonReader& reader);
  void begin(const ReturnLists& lists, std::span<const Item> items, const JsonReader& reader);
  [[nodiscard]] std::span<const Item> items_of_last() const noexcept {
    return std::span(items_).subspan(positions_.back().first);
  }
  /// Whether the item is certain to be new.
  [[nodiscard]] bool is_new(JsonReader& reader);
  [[nodiscard]] bool is_endless(const ReturnLists& lists, const JsonReader& reader) const noexcept;
  [[nodiscard]] ByteSet ways_on(const JsonReader& reader) const;
  void limit_number(const JsonReader& reader, ByteSet* ways) const;
  [[nodiscard]] bool comes_in_order(const JsonReader& reader,
                                    const JsonState& start) const noexcept;
  [[nodiscard]] bool is_same(size_t one, size_t other) const noexcept;
  bool search(ReturnLists& lists, JsonReader& reader, size_t from);
  [[nodiscard]] bool can_be_skipped(const Vocabulary& vocabulary, JsonReader& reader,
                                    uint32_t node);
  bool reads(std::string_view token, JsonReader& reader);
  void set_room(const ReturnLists& lists, const JsonReader& reader);

  const Machines& machines_;
  size_t max_items_;
  Step step_;
  ReturnLists lists_;
  std::vector<Position> positions_;
  std::vector<Item> items_;
  uint32_t goal_ = 0;  // the container whose item must end
  uint32_t raw_ = 0;   // bytes read in watched arrays before
};

}  // namespace gen::grammar

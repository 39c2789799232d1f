// SPDX-License-Identifier: Apache-2.0
// See item_search.h. Iterative deepening: each round examines all paths to an end within a number
// of bytes. Where possible it examines one text per value.
#include "grammar/matcher/item_search.h"

#include <algorithm>

#include "grammar/base/byte_kind.h"

namespace gen::grammar {
namespace {

using In = JsonState::In;
using Number = JsonReader::Number;

void remove_from(std::span<uint64_t> bits, std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    bits[static_cast<size_t>(token) / 64] &= ~(uint64_t{1} << (token % 64));
  }
}

bool has_any(std::span<const uint64_t> bits, std::span<const int32_t> tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [&](int32_t token) {
    return (bits[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
  });
}

void add_range(const ByteEdge& edge, ByteSet* to) {
  const unsigned first = edge.low / 64U;
  const unsigned last = edge.high / 64U;
  for (unsigned i = first; i <= last; ++i) {
    uint64_t word = ~uint64_t{0};
    if (i == first) word &= ~uint64_t{0} << (edge.low % 64U);
    if (i == last) word &= ~uint64_t{0} >> (63U - edge.high % 64U);
    to->words[i] |= word;
  }
}

void remove_all(std::string_view bytes, ByteSet* from) {
  for (const char c : bytes) from->remove(static_cast<uint8_t>(c));
}

uint64_t kind_of(char c) { return uint64_t{1} << kByteKinds[static_cast<uint8_t>(c)]; }

}  // namespace

void ItemSearch::follow(uint8_t byte, std::span<const Item> items,
                        JsonReader& reader) const noexcept {
  const auto has_edge_for = [&](uint8_t mark) {
    return std::any_of(items.begin(), items.end(), [&](const Item& item) {
      const auto edges = machines_.bytes(item.state);
      return std::any_of(edges.begin(), edges.end(), [&](const ByteEdge& edge) {
        return edge.low <= mark && edge.high >= mark;
      });
    });
  };
  const JsonState& state = reader.state();
  if (state.off) {
    if (has_edge_for(kBegins)) reader.start();
  } else if (byte == '[' && state.in == In::kNothing && has_edge_for(kDiffers)) {
    reader.watch();
  }
}

void ItemSearch::begin(const ReturnLists& lists, std::span<const Item> items,
                       const JsonReader& reader) {
  positions_.clear();
  items_.assign(items.begin(), items.end());
  Position first;
  first.state = reader.state();
  first.lists = lists.size();
  positions_.push_back(first);
}

bool ItemSearch::advance(ReturnLists& lists, JsonReader& reader, uint8_t byte) {
  const size_t first = items_.size();
  const size_t n_lists = lists.size();
  const Position& from = positions_.back();
  const bool begins_escape = reader.state().in == In::kString && byte == '\\';
  const bool escaping = begins_escape || (from.escaping && reader.state().in != In::kString);
  const int read = reader.read(byte);
  bool alive = read != JsonReader::kRefused;
  if (alive) {
    step_.begin();
    step_.read(lists, std::span(items_).subspan(from.first), static_cast<uint8_t>(read));
    alive = step_.finish(lists, max_items_) && !step_.dead();
  }
  if (!alive) {
    reader.go_back(from.state);
    lists.shrink(n_lists);
    return false;
  }
  follow(byte, step_.items(), reader);
  items_.insert(items_.end(), step_.items().begin(), step_.items().end());
  const JsonState& state = reader.state();
  Position made;
  made.state = state;
  made.lists = lists.size();
  made.first = first;
  made.ended = step_.ended();
  made.escaping = escaping;
  made.apart = from.apart || read != byte;
  // Within one item: there is none between two items of a watched array.
  if (!state.watched || state.item != JsonState::kNone) {
    const bool may_lose_it =
        byte == ',' || byte == ']' || (state.watched && state.in == In::kString);
    made.rival = from.rival;
    made.rival_known = from.rival == JsonState::kNone || (from.rival_known && !may_lose_it);
  }
  positions_.push_back(made);
  return true;
}

void ItemSearch::leave(ReturnLists& lists, JsonReader& reader) {
  items_.resize(positions_.back().first);
  positions_.pop_back();
  lists.shrink(positions_.back().lists);
  reader.go_back(positions_.back().state);
}

bool ItemSearch::is_new(JsonReader& reader) {
  Position& position = positions_.back();
  if (!position.rival_known) position.rival = reader.rival(position.rival);
  position.rival_known = true;
  return position.rival == JsonState::kNone;
}

bool ItemSearch::is_endless(const ReturnLists& lists, const JsonReader& reader) const noexcept {
  const JsonState& state = reader.state();
  const Number number = state.in == In::kNothing ? reader.number().kind : Number::kNone;
  const auto items = items_of_last();
  return machines_.endless.from(machines_, lists, items.data(), items.size(), number, state.n_held);
}

// One text per value: no white space, characters escaped only where necessary, numbers without an
// exponent. A value begun before the search may be completed in any way.
ByteSet ItemSearch::ways_on(const JsonReader& reader) const {
  ByteSet ways;
  for (const Item& item : items_of_last()) {
    for (const ByteEdge& edge : machines_.bytes(item.state)) add_range(edge, &ways);
  }
  const JsonState& state = reader.state();
  ByteSet kept;
  const auto keep = [&](std::string_view bytes) {
    for (const char c : bytes) {
      if (ways.has(static_cast<uint8_t>(c))) kept.add(static_cast<uint8_t>(c));
    }
  };
  switch (state.in) {
    case In::kString:
      return ways;
    case In::kEscape:
    case In::kHex:
      if (!positions_.back().escaping || state.high != 0) return ways;
      if (state.in == In::kEscape) {
        keep("\"\\bfnrtu");
      } else if (state.left > 2) {
        keep("0");
      } else {
        keep(state.left == 2 ? "01" : "0123456789abcdef");
      }
      return kept;
    case In::kNothing:
      break;
  }
  remove_all(" \t\n\r", &ways);
  // The array reads the reader's signals instead.
  if (ways.has(kCommaAgain)) ways.add(static_cast<uint8_t>(','));
  if (ways.has(kEndAgain)) ways.add(static_cast<uint8_t>(']'));
  for (int byte = kFirstSignal; byte < 256; ++byte) ways.remove(static_cast<uint8_t>(byte));
  limit_number(reader, &ways);
  return ways;
}

// Removes continuations of a number that a shorter one expresses as well.
void ItemSearch::limit_number(const JsonReader& reader, ByteSet* ways) const {
  const JsonReader::NumberRead number = reader.number();
  if (number.kind == Number::kNone) return;
  if (number.begin >= raw_ && !reader.rules().short_numbers) {
    remove_all("eE", ways);
    return;
  }
  if (ways->has('e')) ways->remove('E');
  if (number.whole) return;
  const bool exponent =
      number.kind == Number::kZeroWithExponent || number.kind == Number::kOtherWithExponent;
  const bool own = reader.state().n_raw > raw_;  // the search added the last byte
  if (!exponent) {
    // Zeros after the point are redundant, except for one mandatory digit.
    if (own && reader.last() == '0' && reader.last(1) != '.') remove_all("eE", ways);
    return;
  }
  const char last = reader.last();
  if (last == 'e' || last == 'E') {
    if (ways->has('1')) ways->remove('+');
  } else if (own && last == '0' && number.n_exponent == 1) {
    remove_all("0123456789", ways);
  }
}

bool ItemSearch::is_same(size_t one, size_t other) const noexcept {
  const auto all = std::span(items_);
  const auto a =
      all.subspan(positions_[one].first, positions_[other].first - positions_[one].first);
  const auto b = all.subspan(positions_[other].first);
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool ItemSearch::viable(ReturnLists& lists, std::span<const Item> items, JsonReader& reader) {
  if (reader.state().n_held == 0) return true;
  begin(lists, items, reader);
  return search(lists, reader, 0);
}

// From the last position, which has number `from`; it stays.
bool ItemSearch::search(ReturnLists& lists, JsonReader& reader, size_t from) {
  const JsonState start = reader.state();
  if (start.n_held == 0 || is_endless(lists, reader) || is_new(reader)) return true;
  raw_ = start.n_raw;
  positions_.back().escaping = false;
  // The outermost array that has items.
  goal_ = start.container;
  bool watched = start.watched;
  uint32_t n_here = start.n_here;
  for (uint32_t at = start.container; at != 0;) {
    if (watched && n_here > 0) goal_ = at;
    const JsonText::Container& one = reader.container(at - 1);
    at = one.parent;
    watched = one.watched;
    n_here = one.n_here;
  }
  uint64_t bound = shortest(machines_, lists, items_of_last());
  uint64_t steps = 0;
  bool found = false;
  while (!found) {
    uint64_t next = UINT64_MAX;
    positions_.back().open = ways_on(reader);
    while (!found) {
      Position& position = positions_.back();
      if (position.open.empty()) {
        if (positions_.size() == from + 1) break;
        leave(lists, reader);
        continue;
      }
      unsigned byte = 0;
      while (!position.open.has(static_cast<uint8_t>(byte))) ++byte;
      position.open.remove(static_cast<uint8_t>(byte));
      if (++steps > kFuel) break;
      const bool ends = reader.state().in == In::kNothing && reader.state().container == goal_ &&
                        (byte == ',' || byte == ']');
      if (!advance(lists, reader, static_cast<uint8_t>(byte))) continue;
      const size_t depth = positions_.size() - 1;
      uint64_t length = depth - from;
      if (!items_of_last().empty()) length += shortest(machines_, lists, items_of_last());
      if (length > bound) {
        next = std::min(next, length);
        leave(lists, reader);
      } else if (ends || is_endless(lists, reader) || is_new(reader)) {
        found = true;
      } else if (!comes_in_order(reader, start)) {
        leave(lists, reader);
      } else if (byte == '0' && is_same(depth - 1, depth) && !reader.number().whole) {
        leave(lists, reader);  // a redundant zero
      } else {
        positions_.back().open = ways_on(reader);
      }
    }
    while (positions_.size() > from + 1) leave(lists, reader);
    if (found || steps > kFuel || next == UINT64_MAX) break;
    bound = next;
  }
  return found;
}

// Names that the search adds to one object come in the order of their bytes: of all possible orders
// one is enough.
bool ItemSearch::comes_in_order(const JsonReader& reader, const JsonState& start) const noexcept {
  const JsonState& state = reader.state();
  const JsonState& before = positions_[positions_.size() - 2].state;
  if (reader.rules().in_order || state.n_entries == before.n_entries || !state.object) return true;
  const uint32_t earlier = reader.entry(state.newest).before;
  if (earlier == JsonState::kNone || earlier < start.n_entries) return true;
  // A name begun before the search may come in any place.
  if (start.name && reader.entry(earlier).begin == start.begin) return true;
  return reader.compare(earlier, state.newest) < 0;
}

ByteSet ItemSearch::possible(const ReturnLists& lists, std::span<const Item> items,
                             JsonReader& reader, const ByteSet& bytes) {
  ByteSet made;
  lists_.build_on(lists);
  begin(lists_, items, reader);
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!bytes.has(static_cast<uint8_t>(byte))) continue;
    if (!advance(lists_, reader, static_cast<uint8_t>(byte))) continue;
    if (search(lists_, reader, positions_.size() - 1)) made.add(static_cast<uint8_t>(byte));
    leave(lists_, reader);
  }
  return made;
}

// Whether all tokens below a trie node share the result of the current position.
bool ItemSearch::can_be_skipped(const Vocabulary& vocabulary, JsonReader& reader, uint32_t node) {
  const Position& position = positions_.back();
  // The grammar's mask may come from a schema that is no longer active.
  if (position.apart) return false;
  const Vocabulary::Node& at = vocabulary.trie()[node];
  const uint64_t kinds = vocabulary.kinds_below(node) | uint64_t{1} << kByteKinds[at.byte];
  const JsonState& state = position.state;
  if (state.in != In::kNothing && (kinds & kind_of('"')) == 0) {
    // It stays in the string.
    if (state.n_held == 0) return true;
    const bool endless = (kinds & kind_of('\\')) == 0 && at.height < Vocabulary::kMaxHeight &&
                         uint32_t{at.height} + 1 <= position.room;
    return endless || is_new(reader);
  }
  // Only after the end of an item can the next one be a duplicate.
  if (state.n_held == 0 && (kinds & kind_of(',')) == 0) return true;
  const bool may_end = (kinds & (kind_of(',') | kind_of(']'))) != 0;
  if (state.n_held > 0 && !may_end && is_new(reader)) return true;
  return state.n_watched == 0 && (kinds & kind_of('[')) == 0;
}

void ItemSearch::set_room(const ReturnLists& lists, const JsonReader& reader) {
  const JsonState& state = reader.state();
  if (state.n_held == 0 || state.in == In::kNothing) return;
  const auto items = items_of_last();
  positions_.back().room =
      machines_.endless.room(machines_, lists, items.data(), items.size(), state.n_held);
}

// From the first position, in lists_.
bool ItemSearch::reads(std::string_view token, JsonReader& reader) {
  bool alive = true;
  for (size_t i = 0; i < token.size() && alive; ++i) {
    alive = advance(lists_, reader, static_cast<uint8_t>(token[i]));
  }
  alive = alive && search(lists_, reader, positions_.size() - 1);
  while (positions_.size() > 1) leave(lists_, reader);
  return alive;
}

void ItemSearch::forbid(const Vocabulary& vocabulary, const ReturnLists& lists,
                        std::span<const Item> items, JsonReader& reader, std::span<uint64_t> bits) {
  const auto trie = vocabulary.trie();
  lists_.build_on(lists);
  begin(lists_, items, reader);
  const JsonTokens& tokens = vocabulary.json_tokens();
  const auto read_each = [&](std::span<const int32_t> list) {
    for (const int32_t token : list) {
      const std::span<const int32_t> one(&token, 1);
      if (has_any(bits, one) && !reads(vocabulary.bytes(token), reader)) remove_from(bits, one);
    }
  };
  // A value that begins within a token may have a duplicate name there.
  if (reader.rules().within) read_each(tokens.three());
  if (reader.state().n_watched == 0) {
    // Items that must differ have to begin and to end.
    if (reader.rules().items) read_each(tokens.arrays());
    return;
  }
  set_room(lists_, reader);
  positions_.back().node = 1;
  positions_.back().end = trie[0].skip;
  while (true) {
    Position& position = positions_.back();
    if (position.node >= position.end) {
      if (positions_.size() == 1) return;
      leave(lists_, reader);
      continue;
    }
    const uint32_t node = position.node;
    position.node = trie[node].skip;
    if (can_be_skipped(vocabulary, reader, node)) continue;
    const auto below = vocabulary.tokens_from(node);
    if (!has_any(bits, below)) continue;
    if (!advance(lists_, reader, trie[node].byte)) {
      remove_from(bits, below);
      continue;
    }
    if (trie[node].token >= 0 && !search(lists_, reader, positions_.size() - 1)) {
      remove_from(bits, below);  // nor is any token that begins with it
      leave(lists_, reader);
      continue;
    }
    set_room(lists_, reader);
    positions_.back().node = node + 1;
    positions_.back().end = trie[node].skip;
  }
}

}  // namespace gen::grammar

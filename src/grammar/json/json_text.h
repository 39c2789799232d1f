// SPDX-License-Identifier: Apache-2.0
// The state of a JSON text that is needed for rules beyond any grammar: the names in each open
// object, and the items of open arrays whose items must differ. A reader processes the bytes beside
// the recogniser. The grammar guarantees that the texts are JSON; for other bytes the result is
// unspecified, and the grammar refuses them.
//
// Arrays: reader and grammar communicate through signal bytes that no text contains. An array whose
// items must differ may continue with kDiffers after its bracket; it is then watched. After a
// duplicate item, the grammar receives kCommaAgain instead of the comma, which only arrays that
// allow duplicates accept. Instead of the closing bracket it receives kEndApart if all items
// differ, else kEndAgain. So one array may be watched for one of several schemas that it may still
// match, and not for another.
//
// Tags: where JSON is only a section of a text, the grammar may continue with kBegins where it
// begins. The reader is off until then, and again after the value.
//
// Entries refer only to older ones, so undoing bytes means dropping the newest entries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/json/json_canonical.h"

namespace gen::grammar {

inline constexpr uint8_t kFirstSignal = 0xFB;  // no text contains this byte or a higher one
inline constexpr uint8_t kEndApart = 0xFB;
inline constexpr uint8_t kBegins = 0xFC;
inline constexpr uint8_t kDiffers = 0xFD;
inline constexpr uint8_t kCommaAgain = 0xFE;
inline constexpr uint8_t kEndAgain = 0xFF;

/// The rules that texts follow beside the grammar.
struct JsonRules {
  bool names = false;          // the names of an object differ, by value
  bool items = false;          // likewise the items of arrays that ask for it
  bool in_order = false;       // members come as the schema lists them
  bool short_numbers = false;  // some numbers can only be written with an exponent
  bool within = false;         // JSON begins where the grammar signals it, not with the text
};

/// The reader's state at a position of a text.
struct JsonState {
  enum class In : uint8_t { kNothing, kString, kEscape, kHex };
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t container = 0;     // the innermost open one, 0: none is open
  uint32_t newest = kNone;    // its newest entry
  uint32_t n_containers = 0;  // opened so far
  uint32_t n_entries = 0;
  uint32_t n_bytes = 0;    // stored bytes of names and items
  uint32_t begin = 0;      // of the name that is being read
  uint32_t n_raw = 0;      // bytes read in watched arrays
  uint32_t item = kNone;   // where the current item of this watched array begins in them, kNone
                           // before it does
  uint32_t n_here = 0;     // items of this watched array that are complete
  uint32_t n_held = 0;     // of all open watched arrays
  uint32_t n_watched = 0;  // open watched arrays
  bool watched = false;    // the innermost container is
  bool again = false;      // ... and has had a duplicate item
  bool off = false;        // outside of JSON
  In in = In::kNothing;
  uint8_t left = 0;   // of an escape
  bool name = false;  // the string is a name
  bool object = false;
  bool expects_name = false;
  uint16_t hex = 0;
  uint16_t high = 0;  // the first half of a surrogate pair
  uint64_t hash = 0;  // of the name that is being read
};

/// The names and items of a text so far.
/// Threads: not synchronised.
class JsonText {
 public:
  struct Entry {
    uint32_t container;
    uint32_t before;  // in the same container
    uint32_t begin;   // of its bytes
    uint32_t length;
    uint32_t next;  // in the same hash bucket
    uint64_t hash;
  };
  struct Container {
    uint32_t parent;
    uint32_t newest;  // the parent's newest entry when it was opened
    uint32_t item;
    uint32_t n_here;
    bool object;
    bool watched;
    bool again;
  };

  /// Drops everything after the position.
  void shrink(const JsonState& to) noexcept;
  void append(std::span<const Container> containers, std::span<const Entry> entries,
              std::string_view bytes, std::string_view raw);
  [[nodiscard]] const Entry& entry(uint32_t i) const noexcept { return entries_[i]; }
  [[nodiscard]] const Container& container(uint32_t i) const noexcept { return containers_[i]; }
  [[nodiscard]] char byte(uint32_t i) const noexcept { return bytes_[i]; }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view raw() const noexcept { return raw_; }
  /// The newest entry in the bucket of this hash, kNone if there is none.
  [[nodiscard]] uint32_t first(uint64_t hash) const noexcept {
    return places_.empty() ? JsonState::kNone : places_[hash & (places_.size() - 1)];
  }
  [[nodiscard]] size_t memory() const noexcept {
    return entries_.capacity() * sizeof(Entry) + containers_.capacity() * sizeof(Container) +
           bytes_.capacity() + raw_.capacity() + places_.capacity() * 4;
  }

 private:
  void make_room(size_t entries);
  std::vector<Entry> entries_;
  std::vector<Container> containers_;
  std::string bytes_;
  std::string raw_;
  std::vector<uint32_t> places_;  // buckets; their number is a power of two
};

/// Reads on from a position without changing the text. Reused, so that it allocates nothing once
/// its tables have grown.
/// Threads: not synchronised.
class JsonReader {
 public:
  static constexpr int kRefused = -1;

  /// `text` must not change while the reader continues from it.
  void begin(const JsonText& text, const JsonState& at, JsonRules rules) {
    text_ = &text;
    rules_ = rules;
    state_ = start_ = at;
    entries_.clear();
    containers_.clear();
    bytes_.clear();
    raw_.clear();
  }
  /// The byte that the grammar must read for `byte`. kRefused for the end of a duplicate name, and
  /// for signal bytes; the reader must then begin again.
  int read(uint8_t byte);
  /// A value begins here.
  void start() noexcept { state_.off = false; }
  /// For an array that has just been opened: its items must differ.
  void watch() noexcept {
    state_.watched = true;
    state_.again = false;
    ++state_.n_watched;
  }
  /// Returns to a state that the reader had since it began.
  void go_back(const JsonState& to);
  [[nodiscard]] const JsonState& state() const noexcept { return state_; }
  /// Appends what was read to the text, from which the reader then continues.
  void commit(JsonText* text) {
    text->append(containers_, entries_, bytes_, raw_);
    begin(*text, state_, rules_);
  }
  /// Number of entries that commit() would append.
  [[nodiscard]] size_t pending() const noexcept { return entries_.size() + containers_.size(); }

  /// Whether the current name, if it ended here, would be a duplicate.
  [[nodiscard]] bool name_is_taken() const noexcept {
    return state_.name && state_.in == JsonState::In::kString && state_.high == 0 &&
           has(
               finished(state_.hash), [this](uint32_t i) { return byte_at(state_.begin + i); },
               state_.n_bytes - state_.begin);
  }
  enum class Number : uint8_t { kNone, kZero, kOther, kZeroWithExponent, kOtherWithExponent };
  struct NumberRead {
    Number kind = Number::kNone;
    uint32_t begin = 0;
    bool whole = true;        // no point and no exponent yet
    uint32_t n_exponent = 0;  // digits of the exponent
  };
  /// What has been read of a number in a watched array.
  [[nodiscard]] NumberRead number() const noexcept;
  [[nodiscard]] const JsonText::Container& container(uint32_t i) const noexcept {
    return i < start_.n_containers ? text_->container(i) : containers_[i - start_.n_containers];
  }
  [[nodiscard]] const JsonText::Entry& entry(uint32_t i) const noexcept {
    return i < start_.n_entries ? text_->entry(i) : entries_[i - start_.n_entries];
  }
  /// Compares the bytes of two entries: below 0, 0, above 0.
  [[nodiscard]] int compare(uint32_t one, uint32_t other) const noexcept;
  /// The last byte read in a watched array, or the one `back` before it.
  [[nodiscard]] char last(uint32_t back = 0) const noexcept {
    return raw_at(state_.n_raw - 1 - back);
  }
  /// Searches the items of the only watched array, from `from` on towards older ones, for the first
  /// that its current item may still become equal to: one that begins with the current string, or
  /// that contains all its members or items so far. kNone: the item is certain to be new, whatever
  /// follows. `from` is where the search starts if nothing is known. The result changes only with a
  /// string that is an item, and after commas.
  [[nodiscard]] uint32_t rival(uint32_t from);
  static constexpr uint32_t kNewest = JsonState::kNone - 1;
  [[nodiscard]] const JsonRules& rules() const noexcept { return rules_; }

 private:
  [[nodiscard]] char byte_at(uint32_t i) const noexcept {
    return i < start_.n_bytes ? text_->byte(i) : bytes_[i - start_.n_bytes];
  }
  static uint64_t finished(uint64_t hash) noexcept;
  [[nodiscard]] char raw_at(uint32_t i) const noexcept {
    return i < start_.n_raw ? text_->raw()[i] : raw_[i - start_.n_raw];
  }
  /// Whether the container has an entry of these bytes.
  template <typename ByteOf>
  [[nodiscard]] bool has(uint64_t hash, ByteOf byte_of, uint32_t length) const noexcept;
  void add(uint64_t hash, uint32_t begin);
  void put(uint8_t byte);
  void put_character(uint32_t character);
  int read_between(uint8_t byte);
  int end_item(uint8_t byte);
  void write_form(uint32_t item);
  [[nodiscard]] std::string_view bytes_of(const JsonText::Entry& entry) const noexcept;
  bool read_string(uint8_t byte);
  void read_escape(uint8_t byte);
  void open(bool object);
  void close();

  const JsonText* text_ = nullptr;
  JsonRules rules_;
  JsonState state_;
  JsonState start_;
  std::vector<JsonText::Entry> entries_;
  std::vector<JsonText::Container> containers_;
  std::string bytes_;
  std::string raw_;
  JsonCanonical canonical_;
  std::string item_;  // its text, and its form
  std::string form_;
};

template <typename ByteOf>
bool JsonReader::has(uint64_t hash, ByteOf byte_of, uint32_t length) const noexcept {
  const auto same = [&](const JsonText::Entry& entry) {
    if (entry.container != state_.container || entry.hash != hash || entry.length != length) {
      return false;
    }
    for (uint32_t i = 0; i < length; ++i) {
      if (byte_at(entry.begin + i) != byte_of(i)) return false;
    }
    return true;
  };
  for (uint32_t i = text_->first(hash); i != JsonState::kNone; i = text_->entry(i).next) {
    if (i < start_.n_entries && same(text_->entry(i))) return true;
  }
  return std::any_of(entries_.begin(), entries_.end(), same);
}

}  // namespace gen::grammar

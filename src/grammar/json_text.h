// SPDX-License-Identifier: Apache-2.0
// What has been read of a JSON text, as far as rules need it that no grammar can express: the names
// that each open object has, and, where asked for, the values that each open array has. A reader
// goes over the bytes beside the recogniser. The texts it reads are JSON because the grammar says
// so; of other bytes it makes something or other, which the grammar then refuses.
//
// Entries only refer to older ones: taking bytes back is forgetting the newest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::grammar {

/// Of a value: two are taken for equal if their hashes of 128 bits are.
struct JsonHash {
  uint64_t a = 0;
  uint64_t b = 0;
  bool operator==(const JsonHash&) const = default;
};

/// Which rules a grammar's texts follow beside the grammar.
struct JsonRules {
  bool names = false;  // the names of an object differ, by value
  bool items = false;  // and the reader tells what items are in an array already
};

/// A place in a text.
struct JsonState {
  enum class In : uint8_t { kNothing, kString, kEscape, kHex, kNumber, kWord };
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t container = 0;     // the innermost open one, 0: none
  uint32_t newest = kNone;    // its newest entry
  uint32_t n_containers = 0;  // opened so far
  uint32_t n_entries = 0;
  uint32_t n_bytes = 0;  // of names and items
  uint32_t begin = 0;    // of the string or number that is being read, if it is kept
  In in = In::kNothing;
  uint8_t left = 0;   // of an escape or word
  bool name = false;  // the string is a name
  bool kept = false;  // the string or number is
  bool object = false;
  bool expects_name = false;
  bool has_item = false;  // a value of the array has ended, but not its place
  uint16_t hex = 0;
  uint16_t high = 0;  // the first half of a surrogate pair
  JsonHash hash;      // of the string that is being read
  JsonHash item;      // has_item: the value
  JsonHash member;    // of the newest name
  JsonHash all;       // of the container's values so far
  struct Number {
    JsonHash digits;       // significant ones, without zeros at the end
    uint64_t n_zeros = 0;  // at the end
    int64_t scale = 0;     // digits behind the point, zeros at the end among them
    int64_t exponent = 0;  // as far as it matters
    bool negative = false;
    bool any = false;  // a digit that is not zero
    bool point = false;
    bool in_exponent = false;
    bool minus = false;  // of the exponent
  } number;
};

/// The names and items behind a text.
/// Threads: not synchronised.
class JsonText {
 public:
  struct Entry {
    uint32_t container;
    uint32_t before;  // in the same container
    uint32_t begin;   // of its bytes
    uint32_t length;
    uint32_t next;  // with the same place in the table
    JsonHash hash;
  };
  struct Container {
    uint32_t parent;
    uint32_t newest;  // what the parent had when it was opened
    bool object;
    JsonHash member;
    JsonHash all;
  };

  /// Forgets what came behind the place.
  void shrink(const JsonState& to) noexcept;
  void append(std::span<const Container> containers, std::span<const Entry> entries,
              std::string_view bytes);
  [[nodiscard]] const Entry& entry(uint32_t i) const noexcept { return entries_[i]; }
  [[nodiscard]] const Container& container(uint32_t i) const noexcept { return containers_[i]; }
  [[nodiscard]] char byte(uint32_t i) const noexcept { return bytes_[i]; }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  /// The newest entry whose hash has the same place in the table, kNone if there is none.
  [[nodiscard]] uint32_t first(const JsonHash& hash) const noexcept {
    return places_.empty() ? JsonState::kNone : places_[hash.a & (places_.size() - 1)];
  }
  [[nodiscard]] size_t memory() const noexcept {
    return entries_.capacity() * sizeof(Entry) + containers_.capacity() * sizeof(Container) +
           bytes_.capacity() + places_.capacity() * 4;
  }

 private:
  void make_room(size_t entries);
  std::vector<Entry> entries_;
  std::vector<Container> containers_;
  std::string bytes_;
  std::vector<uint32_t> places_;  // a power of two of them
};

/// Reads on from a place without changing the text. Reused, so that it allocates nothing once its
/// tables have grown.
/// Threads: not synchronised.
class JsonReader {
 public:
  static constexpr int kRefused = -1;
  // What the grammar reads in place of a comma, or of an array's end, behind an item that was in
  // the array before; no byte of UTF-8.
  static constexpr uint8_t kCommaAgain = 0xFE;
  static constexpr uint8_t kEndAgain = 0xFF;

  /// `text` stays as it is while it is read on from.
  void begin(const JsonText& text, const JsonState& at, JsonRules rules) {
    text_ = &text;
    state_ = start_ = at;
    rules_ = rules;
    entries_.clear();
    containers_.clear();
    bytes_.clear();
  }
  /// What the grammar is to read for the next byte, or kRefused; then the reader is to begin anew.
  int read(uint8_t byte);
  [[nodiscard]] const JsonState& state() const noexcept { return state_; }
  /// Puts what was read into the text, which becomes that to read on from.
  void commit(JsonText* text) {
    text->append(containers_, entries_, bytes_);
    begin(*text, state_, rules_);
  }
  /// How much is to be put there.
  [[nodiscard]] size_t pending() const noexcept { return entries_.size() + containers_.size(); }

  /// Whether the name that is being read, at its end here, is in the object already.
  [[nodiscard]] bool name_is_taken() const noexcept {
    return state_.name && state_.in == JsonState::In::kString && state_.high == 0 &&
           has(finished(state_.hash), true);
  }
  /// Whether the item that has ended, or the number that would here, is in the array already.
  [[nodiscard]] bool item_is_taken() const noexcept;
  /// Bytes of the name, or of the item, that is being read, if they are kept.
  [[nodiscard]] uint32_t length() const noexcept { return state_.n_bytes - state_.begin; }

  static JsonHash finished(JsonHash hash) noexcept;

 private:
  [[nodiscard]] const JsonText::Entry& entry(uint32_t i) const noexcept {
    return i < start_.n_entries ? text_->entry(i) : entries_[i - start_.n_entries];
  }
  [[nodiscard]] char byte_at(uint32_t i) const noexcept {
    return i < start_.n_bytes ? text_->byte(i) : bytes_[i - start_.n_bytes];
  }
  [[nodiscard]] bool has(const JsonHash& hash, bool name) const noexcept;
  [[nodiscard]] bool same(const JsonText::Entry& entry, const JsonHash& hash,
                          bool name) const noexcept;
  void add(const JsonHash& hash);
  void put(uint8_t byte);
  void put_character(uint32_t character);
  int read_between(uint8_t byte);
  bool read_string(uint8_t byte);
  void read_escape(uint8_t byte);
  void read_number(uint8_t byte);
  [[nodiscard]] JsonHash number_hash() const noexcept;
  void open(bool object);
  void close();
  void end_value(const JsonHash& hash);
  int end_item(uint8_t byte);

  const JsonText* text_ = nullptr;
  JsonRules rules_;
  JsonState state_;
  JsonState start_;
  std::vector<JsonText::Entry> entries_;
  std::vector<JsonText::Container> containers_;
  std::string bytes_;
};

}  // namespace gen::grammar

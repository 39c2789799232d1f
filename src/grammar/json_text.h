// SPDX-License-Identifier: Apache-2.0
// What has been read of a JSON text, as far as rules need it that no grammar can express: the names
// that each open object has. A reader goes over the bytes beside the recogniser. The texts it reads
// are JSON because the grammar says so; of other bytes it makes something or other, which the
// grammar then refuses.
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

/// Which rules a grammar's texts follow beside the grammar.
struct JsonRules {
  bool names = false;  // the names of an object differ, by value
};

/// A place in a text.
struct JsonState {
  enum class In : uint8_t { kNothing, kString, kEscape, kHex };
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t container = 0;     // the innermost open one, 0: none
  uint32_t newest = kNone;    // its newest entry
  uint32_t n_containers = 0;  // opened so far
  uint32_t n_entries = 0;
  uint32_t n_bytes = 0;  // of names
  uint32_t begin = 0;    // of the name that is being read
  In in = In::kNothing;
  uint8_t left = 0;   // of an escape
  bool name = false;  // the string is a name
  bool object = false;
  bool expects_name = false;
  uint16_t hex = 0;
  uint16_t high = 0;  // the first half of a surrogate pair
  uint64_t hash = 0;  // of the name that is being read
};

/// The names behind a text.
/// Threads: not synchronised.
class JsonText {
 public:
  struct Entry {
    uint32_t container;
    uint32_t before;  // in the same container
    uint32_t begin;   // of its bytes
    uint32_t length;
    uint32_t next;  // with the same place in the table
    uint64_t hash;
  };
  struct Container {
    uint32_t parent;
    uint32_t newest;  // what the parent had when it was opened
    bool object;
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
  [[nodiscard]] uint32_t first(uint64_t hash) const noexcept {
    return places_.empty() ? JsonState::kNone : places_[hash & (places_.size() - 1)];
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

  /// `text` stays as it is while it is read on from.
  void begin(const JsonText& text, const JsonState& at) {
    text_ = &text;
    state_ = start_ = at;
    entries_.clear();
    containers_.clear();
    bytes_.clear();
  }
  /// False for the end of a name that the object has; then the reader is to begin anew.
  bool read(uint8_t byte);
  [[nodiscard]] const JsonState& state() const noexcept { return state_; }
  /// Puts what was read into the text, which becomes that to read on from.
  void commit(JsonText* text) {
    text->append(containers_, entries_, bytes_);
    begin(*text, state_);
  }
  /// How much is to be put there.
  [[nodiscard]] size_t pending() const noexcept { return entries_.size() + containers_.size(); }

  /// Whether the name that is being read, at its end here, is in the object already.
  [[nodiscard]] bool name_is_taken() const noexcept {
    return state_.name && state_.in == JsonState::In::kString && state_.high == 0 &&
           has(finished(state_.hash));
  }

 private:
  [[nodiscard]] char byte_at(uint32_t i) const noexcept {
    return i < start_.n_bytes ? text_->byte(i) : bytes_[i - start_.n_bytes];
  }
  static uint64_t finished(uint64_t hash) noexcept;
  [[nodiscard]] bool has(uint64_t hash) const noexcept;
  [[nodiscard]] bool same(const JsonText::Entry& entry, uint64_t hash) const noexcept;
  void put(uint8_t byte);
  void put_character(uint32_t character);
  void read_between(uint8_t byte);
  bool read_string(uint8_t byte);
  void read_escape(uint8_t byte);
  void open(bool object);
  void close();

  const JsonText* text_ = nullptr;
  JsonState state_;
  JsonState start_;
  std::vector<JsonText::Entry> entries_;
  std::vector<JsonText::Container> containers_;
  std::string bytes_;
};

}  // namespace gen::grammar

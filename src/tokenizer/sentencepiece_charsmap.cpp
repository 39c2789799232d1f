// SPDX-License-Identifier: Apache-2.0
// check_charsmap, see sentencepiece_proto.h. A unit of the trie has 32 bits: the label in bits 0-7
// with bit 31 (set: not a node but a value), bit 8 "a value hangs here", and an offset in bits
// 10-30 that is shifted by 8 if bit 9 is set. From position p, byte c leads to unit p ^ c if that
// has label c, and on to position p ^ c ^ offset; the value of a key is the unit at the position it
// ends in.
#include <algorithm>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece_proto.h"

namespace gen::tokenizer {
namespace {

constexpr size_t kMaxUnits = size_t{1} << 20;  // the largest in use, nmt_nfkc_cf, has some 60,000
constexpr uint32_t kMaxNestedKeys = 32;

uint32_t load_u32(std::string_view text, size_t offset) noexcept {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) {
    value = (value << 8) | static_cast<unsigned char>(text[offset + i]);
  }
  return value;
}

struct Unit {
  uint32_t bits;
  [[nodiscard]] uint32_t label() const noexcept { return bits & 0x800000FFU; }
  [[nodiscard]] bool has_value() const noexcept { return ((bits >> 8) & 1) != 0; }
  [[nodiscard]] size_t offset() const noexcept {
    return size_t{bits >> 10} << ((bits & (1U << 9)) >> 6);
  }
  [[nodiscard]] size_t value() const noexcept { return bits & 0x7FFFFFFFU; }
};

enum class Mark : uint8_t { kNew, kOpen, kDone };

// What is known of a position: the walk's mark, and the most keys that end on any way from here.
struct Known {
  Mark mark = Mark::kNew;
  uint8_t keys = 0;
};

// Visits every position that some text can lead to. Ways may meet (the builder shares equal ends of
// keys) but not go round; a position is left when all its bytes have been tried.
class Walk {
 public:
  Walk(std::string_view trie, size_t text_bytes)
      : trie_(trie), text_bytes_(text_bytes), known_(trie.size() / 4) {}

  /// What is wrong, or null.
  const char* run() {
    if (const char* wrong = enter(unit(0).offset())) return wrong;
    while (!open_.empty()) {
      Place& place = open_.back();
      if (place.byte == 256) {
        if (const char* wrong = leave()) return wrong;
        continue;
      }
      const size_t index = place.position ^ place.byte;
      const bool leads_on = unit(index).label() == place.byte;
      ++place.byte;
      if (!leads_on) continue;
      if (const char* wrong = step(unit(index).has_value(), index ^ unit(index).offset())) {
        return wrong;
      }
    }
    return nullptr;
  }

 private:
  struct Place {
    size_t position;
    size_t byte;       // the next to try
    uint8_t key_here;  // 1 if a key ends where this place was entered
  };

  [[nodiscard]] Unit unit(size_t index) const noexcept { return Unit{load_u32(trie_, index * 4)}; }

  // From the top place to `position`, where a key ends if `has_value`.
  const char* step(bool has_value, size_t position) {
    if (position >= known_.size()) return "trie leads outside";
    if (has_value && unit(position).value() >= text_bytes_) return "text outside";
    const uint8_t key = has_value ? 1 : 0;
    if (known_[position].mark == Mark::kOpen) return "trie has a loop";
    if (known_[position].mark == Mark::kDone) return count(open_.back().position, position, key);
    if (const char* wrong = enter(position)) return wrong;
    open_.back().key_here = key;
    return nullptr;
  }

  const char* enter(size_t position) {
    if ((position | 0xFF) >= known_.size()) return "trie leads outside";
    known_[position].mark = Mark::kOpen;
    open_.push_back({position, 0, 0});
    return nullptr;
  }

  const char* leave() {
    const Place done = open_.back();
    open_.pop_back();
    known_[done.position].mark = Mark::kDone;
    return open_.empty() ? nullptr : count(open_.back().position, done.position, done.key_here);
  }

  // Takes over what is known of `to` into `from`, one step before it.
  const char* count(size_t from, size_t to, uint8_t key) noexcept {
    const auto keys = static_cast<uint8_t>(known_[to].keys + key);
    if (keys > kMaxNestedKeys) return "too many keys begin alike";
    known_[from].keys = std::max(known_[from].keys, keys);
    return nullptr;
  }

  std::string_view trie_;
  size_t text_bytes_;
  std::vector<Known> known_;  // [unit]
  std::vector<Place> open_;
};

}  // namespace

Status check_charsmap(std::string_view charsmap) {
  if (charsmap.empty()) return {};
  const auto broken = [](const char* what) {
    return error(Code::kFormat, "sentencepiece normalizer map: %s", what);
  };
  if (charsmap.size() < 5) return broken("too short");
  const size_t trie_bytes = load_u32(charsmap, 0);
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes >= charsmap.size() - 4) {
    return broken("size of the trie");
  }
  const std::string_view trie = charsmap.substr(4, trie_bytes);
  const std::string_view texts = charsmap.substr(4 + trie_bytes);
  if (texts.back() != '\0') return broken("texts do not end with a zero byte");
  const size_t units = trie_bytes / 4;
  if (units > kMaxUnits) {
    return error(Code::kFormat, "sentencepiece normalizer map of %zu units, limit %zu", units,
                 kMaxUnits);
  }
  if (const char* wrong = Walk(trie, texts.size()).run()) return broken(wrong);
  return {};
}

}  // namespace gen::tokenizer

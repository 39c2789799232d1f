// SPDX-License-Identifier: Apache-2.0
// Charsmap, see sentencepiece_charsmap.h. A unit of the trie has 32 bits: the label in bits 0-7
// with bit 31 (set: not a node but a value), bit 8 "a value hangs here", and an offset in bits
// 10-30 that is shifted by 8 if bit 9 is set. From position p, byte c leads to unit p ^ c if that
// has label c, and on to position p ^ c ^ offset; the value of a key is the unit at the position it
// ends in.
#include "tokenizer/sentencepiece_charsmap.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

constexpr size_t kMaxUnits = size_t{1} << 20;  // the largest in use, nmt_nfkc_cf, has some 60,000

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

// The knowledge about a position: the mark of the walk, and the bytes of the longest path from
// here.
struct Known {
  Mark mark = Mark::kNew;
  uint16_t bytes = 0;
};

// Visits every position that some text can reach. Paths may meet (the builder shares equal suffixes
// of keys) but must not form cycles; a position is left when all its bytes have been tried.
class Walk {
 public:
  Walk(std::span<const uint32_t> units, std::string_view texts)
      : units_(units), texts_(texts), known_(units.size()) {}

  /// The error, or null.
  const char* run() {
    if (const char* wrong = enter(unit(0).offset())) return wrong;
    while (!open_.empty()) {
      SearchFrame& frame = open_.back();
      if (frame.byte == 256) {
        if (const char* wrong = leave()) return wrong;
        continue;
      }
      const size_t index = frame.position ^ frame.byte;
      const bool leads_on = unit(index).label() == frame.byte;
      ++frame.byte;
      if (!leads_on) continue;
      if (const char* wrong = step(unit(index).has_value(), index ^ unit(index).offset())) {
        return wrong;
      }
    }
    return nullptr;
  }

 private:
  struct SearchFrame {
    size_t position;
    size_t byte;  // the next to try
  };

  [[nodiscard]] Unit unit(size_t index) const noexcept { return Unit{units_[index]}; }

  // From the top of the stack to `position`, where a key ends if `has_value`.
  const char* step(bool has_value, size_t position) {
    if (position >= known_.size()) return "trie leads outside";
    if (has_value) {
      const size_t value = unit(position).value();
      if (value >= texts_.size()) return "text outside";
      if (value > 0 && texts_[value - 1] != '\0') return "value in the middle of a text";
    }
    if (known_[position].mark == Mark::kOpen) return "trie has a loop";
    if (known_[position].mark == Mark::kDone) return count(open_.back().position, position);
    return enter(position);
  }

  const char* enter(size_t position) {
    if ((position | 0xFF) >= known_.size()) return "trie leads outside";
    known_[position].mark = Mark::kOpen;
    open_.push_back({position, 0});
    return nullptr;
  }

  const char* leave() {
    const size_t done = open_.back().position;
    open_.pop_back();
    known_[done].mark = Mark::kDone;
    return open_.empty() ? nullptr : count(open_.back().position, done);
  }

  // Propagates the knowledge about `to` to `from`, one step before it.
  const char* count(size_t from, size_t to) noexcept {
    const auto bytes = static_cast<uint16_t>(known_[to].bytes + 1);
    if (bytes > Charsmap::kMaxKeyBytes) return "key too long";
    known_[from].bytes = std::max(known_[from].bytes, bytes);
    return nullptr;
  }

  std::span<const uint32_t> units_;
  std::string_view texts_;
  std::vector<Known> known_;  // [unit]
  std::vector<SearchFrame> open_;
};

// The error in the replacements, or null.
const char* check_texts(std::string_view texts) noexcept {
  if (texts.back() != '\0') return "texts do not end with a zero byte";
  if (!utf8_valid(texts)) return "texts are not utf-8";
  for (size_t begin = 0; begin < texts.size();) {
    const size_t end = texts.find('\0', begin);
    if (end - begin > Charsmap::kMaxReplacementBytes) return "text too long";
    begin = end + 1;
  }
  return nullptr;
}

}  // namespace

Result<Charsmap> Charsmap::create(std::string_view file) {
  Charsmap map;
  if (file.empty()) return map;
  const auto broken = [](const char* what) {
    return error(Code::kFormat, "sentencepiece normalizer map: %s", what);
  };
  if (file.size() < 5) return broken("too short");
  const size_t trie_bytes = load_u32(file, 0);
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes >= file.size() - 4) {
    return broken("size of the trie");
  }
  const std::string_view texts = file.substr(4 + trie_bytes);
  const size_t units = trie_bytes / 4;
  if (units > kMaxUnits) {
    return error(Code::kFormat, "sentencepiece normalizer map of %zu units, limit %zu", units,
                 kMaxUnits);
  }
  if (const char* wrong = check_texts(texts)) return broken(wrong);
  map.texts_.assign(texts);
  map.units_.reserve(units);
  for (size_t i = 0; i < units; ++i) map.units_.push_back(load_u32(file, 4 + i * 4));
  if (const char* wrong = Walk(map.units_, map.texts_).run()) return broken(wrong);
  return map;
}

Charsmap::Match Charsmap::longest(std::string_view text) const noexcept {
  Match match;
  if (units_.empty()) return match;
  size_t value = 0;
  size_t position = Unit{units_[0]}.offset();
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const Unit unit{units_[position ^ byte]};
    if (unit.label() != byte) break;
    position ^= byte ^ unit.offset();
    if (!unit.has_value()) continue;
    match.bytes = i + 1;
    value = Unit{units_[position]}.value();
  }
  if (match.bytes > 0) match.replacement = texts_.c_str() + value;
  return match;
}

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// check_charsmap, see sentencepiece_proto.h. A unit of the trie has 32 bits: the label in bits 0-7
// with bit 31 (set: not a node but a value), bit 8 "a value hangs here", and an offset in bits
// 10-30 that is shifted by 8 if bit 9 is set. From position p, byte c leads to unit p ^ c if that
// has label c, and on to position p ^ c ^ offset; the value of a key is the unit at the position it
// ends in.
#include <array>
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

// A position to walk on from, and how many keys end on the way to it.
struct Place {
  size_t position;
  uint32_t keys;
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
  std::vector<bool> reached(units);
  std::vector<Place> open;
  open.push_back({Unit{load_u32(trie, 0)}.offset(), 0});
  while (!open.empty()) {
    const Place place = open.back();
    open.pop_back();
    if ((place.position | 0xFF) >= units) return broken("trie leads outside");
    for (size_t byte = 0; byte < 256; ++byte) {
      const size_t index = place.position ^ byte;
      const Unit unit{load_u32(trie, index * 4)};
      if (unit.label() != byte) continue;
      if (reached[index]) return broken("trie has a loop");
      reached[index] = true;
      Place next{index ^ unit.offset(), place.keys};
      if (unit.has_value()) {
        if (next.position >= units) return broken("trie leads outside");
        if (Unit{load_u32(trie, next.position * 4)}.value() >= texts.size()) {
          return broken("text outside");
        }
        if (++next.keys > kMaxNestedKeys) return broken("too many keys begin alike");
      }
      open.push_back(next);
    }
  }
  return {};
}

}  // namespace gen::tokenizer

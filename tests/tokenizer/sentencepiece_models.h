// SPDX-License-Identifier: Apache-2.0
// Writes SentencePiece `.model` files for tests: the wire format of ModelProto, by hand.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/sentencepiece_model_file.h"

namespace gen::tokenizer::test {

class WireWriter {
 public:
  void integer(uint32_t number, int32_t value) {
    key(number, 0);
    // Negative numbers are written with their sign stretched to 64 bits.
    varint(static_cast<uint64_t>(int64_t{value}));
  }
  void boolean(uint32_t number, bool value) { integer(number, value ? 1 : 0); }
  void real(uint32_t number, float value) {
    key(number, 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (uint32_t shift = 0; shift < 32; shift += 8) put((bits >> shift) & 0xFF);
  }
  void bytes(uint32_t number, std::string_view value) {
    key(number, 2);
    varint(value.size());
    text_.append(value);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  void clear() noexcept { text_.clear(); }

 private:
  void put(uint32_t byte) { text_.push_back(static_cast<char>(byte)); }
  void key(uint32_t number, uint64_t wire_type) { varint((uint64_t{number} << 3) | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) put(static_cast<uint32_t>(value & 0x7F) | 0x80);
    put(static_cast<uint32_t>(value));
  }

  std::string text_;
};

inline std::string serialize_sp_model(const SpModel& model) {
  WireWriter whole;
  WireWriter part;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    part.clear();
    part.bytes(1, model.pieces[i]);
    part.real(2, model.scores[i]);
    part.integer(3, static_cast<int32_t>(model.types[i]));
    whole.bytes(1, part.text());
  }
  part.clear();
  part.integer(3, static_cast<int32_t>(model.model_type));
  part.integer(4, static_cast<int32_t>(model.pieces.size()));
  part.boolean(24, model.treat_whitespace_as_suffix);
  part.boolean(35, model.byte_fallback);
  part.integer(40, model.unk_id);
  part.integer(41, model.bos_id);
  part.integer(42, model.eos_id);
  part.integer(43, model.pad_id);
  whole.bytes(2, part.text());
  part.clear();
  part.bytes(1, "identity");
  if (!model.charsmap.empty()) part.bytes(2, model.charsmap);
  part.boolean(3, model.add_dummy_prefix);
  part.boolean(4, model.remove_extra_whitespaces);
  part.boolean(5, model.escape_whitespaces);
  whole.bytes(3, part.text());
  return whole.text();
}

}  // namespace gen::tokenizer::test

// SPDX-License-Identifier: Apache-2.0
// The alphabet of byte-level BPE vocabularies, as defined by GPT-2: every byte is written as one
// visible character. Printable bytes of Latin-1 map to themselves, the others to U+0100 and up in
// order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace gen::tokenizer {

/// The characters of the bytes, and the inverse.
class ByteAlphabet {
 public:
  ByteAlphabet() noexcept;
  /// The character of `byte`, below U+0144.
  [[nodiscard]] uint32_t character(uint8_t byte) const noexcept { return characters_[byte]; }
  /// The byte of a character, or -1 if it is not in the alphabet.
  [[nodiscard]] int32_t byte(uint32_t character) const noexcept {
    return character < bytes_.size() ? bytes_[character] : -1;
  }
  /// The bytes of a vocabulary text (UTF-8); characters outside the alphabet map to their own
  /// UTF-8.
  [[nodiscard]] std::string to_bytes(std::string_view text) const;

 private:
  std::array<uint32_t, 256> characters_{};
  std::array<int16_t, 0x144> bytes_{};
};

}  // namespace gen::tokenizer

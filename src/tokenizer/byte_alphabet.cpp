// SPDX-License-Identifier: Apache-2.0
// ByteAlphabet, see byte_alphabet.h.
#include "tokenizer/byte_alphabet.h"

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

constexpr bool stands_for_itself(uint32_t byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

}  // namespace

ByteAlphabet::ByteAlphabet() noexcept {
  bytes_.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t character = stands_for_itself(byte) ? byte : next++;
    characters_[byte] = character;
    bytes_[character] = static_cast<int16_t>(byte);
  }
}

std::string ByteAlphabet::to_bytes(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    const int32_t mapped = byte(utf8_next(text, &offset));
    if (mapped >= 0) {
      out.push_back(static_cast<char>(mapped));
    } else {
      out.append(text.substr(begin, offset - begin));
    }
  }
  return out;
}

}  // namespace gen::tokenizer

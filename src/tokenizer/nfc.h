// SPDX-License-Identifier: Apache-2.0
// Unicode's normalisation form C (NFC): composed characters, with their marks in canonical order,
// so that texts that look alike are equal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gen::tokenizer {

/// The canonical decomposition (NFD) of one character.
struct Decomposed {
  std::array<uint32_t, 4> characters;
  size_t count;
};
Decomposed decompose(uint32_t character) noexcept;

/// `text`, valid UTF-8, in NFC: a view of itself if it already is, else of `*made`. May throw
/// std::bad_alloc. Cost: linear; runs of marks are sorted.
std::string_view to_nfc(std::string_view text, std::string* made);

}  // namespace gen::tokenizer

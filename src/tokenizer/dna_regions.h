// SPDX-License-Identifier: Apache-2.0
// DNA in texts of the kind "hybriddna" (Carbon): what stands between <dna> and </dna> is encoded in
// six bases each, the rest as in any byte-level BPE vocabulary. Source: HybridDNATokenizer, which
// comes with these models.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace gen::tokenizer {

/// The text of a token of six bases, which files mark so that it is not taken for the same letters
/// of the BPE vocabulary. Nothing for another token.
std::optional<std::string_view> bases_of(std::string_view token) noexcept;

class DnaRegions {
 public:
  /// Texts must not be split at the marks before they come here, whatever a file says of them.
  static void make_marks_plain(VocabSpec* spec) noexcept;

  explicit DnaRegions(const VocabSpec& spec);

  /// Whether the vocabulary has the tokens. Without them all text is plain.
  [[nodiscard]] bool usable() const noexcept { return begin_ >= 0 && end_ >= 0 && unknown_ >= 0; }

  /// Takes the plain text in front of the next region, or all text, from the front of `text`.
  static std::string_view take_plain(std::string_view* text) noexcept;
  /// Takes the region that `text` begins with and appends its ids; without </dna> it reaches to the
  /// end of the text.
  void take_region(std::string_view* text, std::vector<int32_t>* out) const;

 private:
  void encode(std::string_view bases, std::vector<int32_t>* out) const;

  int32_t begin_ = -1, end_ = -1, unknown_ = -1;
  std::vector<int32_t> sixes_;  // by bases, two bits each; -1: none
};

}  // namespace gen::tokenizer

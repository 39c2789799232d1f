// SPDX-License-Identifier: Apache-2.0
// Fill-in-the-middle prompts, with the special tokens that code models were trained with: prefix
// mark, prefix, suffix mark, suffix, middle mark (Bavarian et al. 2022, arXiv:2207.14255, "PSM").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// The three marks: those that the file names, else control tokens with one family's texts. -1
/// where there are none.
struct FillMarks {
  int32_t prefix = -1;
  int32_t suffix = -1;
  int32_t middle = -1;
};
FillMarks find_fill_marks(const VocabSpec& spec) noexcept;

/// Appends the ids of such a prompt; names of special tokens are plain text. `flags`: kAddBos.
/// kUnsupported for a vocabulary without the marks, kTokenizer for invalid UTF-8; nothing is
/// appended then.
Status encode_fill_in_middle(const Tokenizer& tokenizer, std::string_view prefix,
                             std::string_view suffix, uint32_t flags, std::vector<int32_t>* out);

}  // namespace gen::tokenizer

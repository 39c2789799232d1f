// SPDX-License-Identifier: Apache-2.0
// See fill_in_middle.h.
#include "tokenizer/fill_in_middle.h"

#include <algorithm>
#include <iterator>

namespace gen::tokenizer {
namespace {

struct MarkTexts {
  std::string_view prefix;
  std::string_view suffix;
  std::string_view middle;
};

constexpr MarkTexts kFamilies[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen, CodeGemma
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder, Granite
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},           // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                             // CodeLlama
    {"<PRE>", "<SUF>", "<MID>"},                                // the same, converted otherwise
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM
    {"<|prefix|>", "<|suffix|>", "<|middle|>"},                 // Falcon H1 Tiny Coder
};

int32_t find_token(const VocabSpec& spec, std::string_view text) noexcept {
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), text);
  if (found == spec.tokens.end()) return -1;
  const auto at = static_cast<size_t>(found - spec.tokens.begin());
  const bool special = !spec.types.empty() && (spec.types[at] == TokenType::kControl ||
                                               spec.types[at] == TokenType::kUserDefined);
  return special ? static_cast<int32_t>(at) : -1;
}

bool complete(const FillMarks& marks) noexcept {
  return marks.prefix >= 0 && marks.suffix >= 0 && marks.middle >= 0;
}

}  // namespace

FillMarks find_fill_marks(const VocabSpec& spec) noexcept {
  const FillMarks named{spec.fim_prefix, spec.fim_suffix, spec.fim_middle};
  if (complete(named)) return named;
  for (const MarkTexts& family : kFamilies) {
    const int32_t prefix = find_token(spec, family.prefix);
    if (prefix < 0) continue;
    const FillMarks found{prefix, find_token(spec, family.suffix), find_token(spec, family.middle)};
    if (complete(found)) return found;
  }
  return {};
}

Status encode_fill_in_middle(const Tokenizer& tokenizer, std::string_view prefix,
                             std::string_view suffix, uint32_t flags, std::vector<int32_t>* out) {
  const FillMarks marks = find_fill_marks(tokenizer.spec());
  if (!complete(marks)) {
    return error(Code::kUnsupported,
                 "the vocabulary has no special tokens for filling in the middle");
  }
  std::vector<int32_t> ids;
  if ((flags & kAddBos) != 0) GEN_TRY(tokenizer.encode("", kAddBos, &ids));
  ids.push_back(marks.prefix);
  GEN_TRY(tokenizer.encode(prefix, 0, &ids, marks.prefix));
  ids.push_back(marks.suffix);
  GEN_TRY(tokenizer.encode(suffix, 0, &ids, marks.suffix));
  ids.push_back(marks.middle);
  out->insert(out->end(), ids.begin(), ids.end());
  return {};
}

}  // namespace gen::tokenizer

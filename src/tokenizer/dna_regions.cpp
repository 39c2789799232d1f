// SPDX-License-Identifier: Apache-2.0
// See dna_regions.h. A </dna> without <dna> ends a region that began where the plain text would.
#include "tokenizer/dna_regions.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/white_space.h"

namespace gen::tokenizer {
namespace {

constexpr std::string_view kBegin = "<dna>";
constexpr std::string_view kEnd = "</dna>";
constexpr std::string_view kMark = "\xEE\x80\x80";  // U+E000
constexpr size_t kBases = 6;                        // of a token

/// 0 to 3, or -1.
int32_t base_of(char c) noexcept {
  switch (c) {
    case 'A':
    case 'a':
      return 0;
    case 'C':
    case 'c':
      return 1;
    case 'G':
    case 'g':
      return 2;
    case 'T':
    case 't':
      return 3;
    default:
      return -1;
  }
}

/// The index of up to six bases, A for those that are missing; -1 for anything else.
int32_t index_of(std::string_view bases) noexcept {
  int32_t index = 0;
  for (size_t i = 0; i < kBases; ++i) {
    const int32_t base = i < bases.size() ? base_of(bases[i]) : 0;
    if (base < 0) return -1;
    index = index * 4 + base;
  }
  return index;
}

std::string_view without_space_around(std::string_view text) noexcept {
  size_t first = text.size();
  size_t last = 0;  // behind the last character
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (is_white_space(utf8_next(text, &at))) continue;
    first = std::min(first, begin);
    last = at;
  }
  return first < last ? text.substr(first, last - first) : std::string_view();
}

}  // namespace

std::optional<std::string_view> bases_of(std::string_view token) noexcept {
  if (token.size() != kBases + kMark.size() || !token.ends_with(kMark)) return std::nullopt;
  return token.substr(0, kBases);
}

void DnaRegions::make_marks_plain(VocabSpec* spec) noexcept {
  for (size_t i = 0; i < spec->tokens.size(); ++i) {
    const std::string& token = spec->tokens[i];
    if (token == kBegin || token == kEnd) spec->types[i] = TokenType::kNormal;
  }
}

DnaRegions::DnaRegions(const VocabSpec& spec) : sixes_(size_t{1} << (2 * kBases), -1) {
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const std::string_view token = spec.tokens[i];
    const auto id = static_cast<int32_t>(i);
    if (token == kBegin) begin_ = id;
    if (token == kEnd) end_ = id;
    if (token == "<oov>") unknown_ = id;
    const auto bases = bases_of(token);
    const int32_t index = bases ? index_of(*bases) : -1;
    if (index >= 0) sixes_[static_cast<size_t>(index)] = id;
  }
}

std::string_view DnaRegions::take_plain(std::string_view* text) noexcept {
  // The first mark of either kind, in one pass: without it, what precedes each of many ends would
  // be searched to the end of the text.
  constexpr std::string_view kBoth = "dna>";
  size_t size = text->size();
  for (size_t at = text->find(kBoth); at != std::string_view::npos;
       at = text->find(kBoth, at + 1)) {
    const std::string_view before = text->substr(0, at);
    if (before.ends_with("</")) size = 0;
    if (before.ends_with('<')) size = at - 1;
    if (size < text->size()) break;
  }
  const std::string_view plain = text->substr(0, size);
  text->remove_prefix(size);
  return plain;
}

void DnaRegions::take_region(std::string_view* text, std::vector<int32_t>* out) const {
  if (text->starts_with(kBegin)) {
    out->push_back(begin_);
    text->remove_prefix(kBegin.size());
  }
  const size_t end = text->find(kEnd);
  encode(without_space_around(text->substr(0, end)), out);
  if (end == std::string_view::npos) {
    *text = {};
    return;
  }
  out->push_back(end_);
  text->remove_prefix(end + kEnd.size());
}

void DnaRegions::encode(std::string_view bases, std::vector<int32_t>* out) const {
  for (size_t at = 0; at < bases.size();) {
    const size_t begin = at;
    for (size_t i = 0; i < kBases && at < bases.size(); ++i) utf8_next(bases, &at);
    const std::string_view six = bases.substr(begin, at - begin);
    const int32_t index = six.size() <= kBases ? index_of(six) : -1;
    const int32_t id = index >= 0 ? sixes_[static_cast<size_t>(index)] : -1;
    out->push_back(id >= 0 ? id : unknown_);
  }
}

}  // namespace gen::tokenizer

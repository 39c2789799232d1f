// SPDX-License-Identifier: Apache-2.0
// SpNormalizer, see sentencepiece_normalizer.h.
#include "tokenizer/sentencepiece_normalizer.h"

#include <cstdint>

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
// Positions in a normalised text are stored in 32 bits.
constexpr size_t kMaxBytes = UINT32_MAX - size_t{Charsmap::kMaxReplacementBytes} * 4;

Status check_size(size_t bytes) {
  if (bytes <= kMaxBytes) return {};
  return error(Code::kInvalidArgument, "normalized text of more than %zu bytes", kMaxBytes);
}

}  // namespace

std::string with_plain_spaces(std::string_view text) {
  std::string out;
  for (size_t found; (found = text.find(kSpaceSign)) != std::string_view::npos;
       text.remove_prefix(found + kSpaceSign.size())) {
    out.append(text.substr(0, found)).push_back(' ');
  }
  return out.append(text);
}

Status SpNormalizer::normalize(std::string_view text, bool goes_on, const SpecialMatcher& kept,
                               std::string* out) const {
  const size_t begin = out->size();
  const bool trims = rules_.remove_extra_whitespaces && !goes_on;
  while (trims && !text.empty()) {
    const Prefix first = prefix(text, kept);
    if (first.becomes != " ") break;
    text.remove_prefix(first.bytes);
  }
  if (text.empty()) return {};
  out->reserve(begin + text.size() + text.size() / 2 + kSpaceSign.size());
  if (rules_.add_dummy_prefix && !goes_on) out->append(space());
  if (map_.empty() && !rules_.remove_extra_whitespaces) {
    add(text, out);
    return check_size(out->size());
  }
  bool after_space = trims;
  while (!text.empty()) {
    Prefix next = prefix(text, kept);
    text.remove_prefix(next.bytes);
    while (after_space && next.becomes.starts_with(' ')) next.becomes.remove_prefix(1);
    if (next.becomes.empty()) continue;
    add(next.becomes, out);
    after_space = rules_.remove_extra_whitespaces && next.becomes.ends_with(' ');
    GEN_TRY(check_size(out->size()));
  }
  while (trims && std::string_view(*out).substr(begin).ends_with(space())) {
    out->resize(out->size() - space().size());
  }
  return {};
}

SpNormalizer::Prefix SpNormalizer::prefix(std::string_view text,
                                          const SpecialMatcher& kept) const noexcept {
  if (const auto match = kept.match_at(text, 0)) return {match->end, text.substr(0, match->end)};
  if (const Charsmap::Match match = map_.longest(text); match.bytes > 0) {
    return {match.bytes, match.replacement};
  }
  size_t bytes = 0;
  const uint32_t character = utf8_next(text, &bytes);
  // A key may end inside a character.
  if (bytes == 1 && character == 0xFFFD) return {1, kReplacement};
  return {bytes, text.substr(0, bytes)};
}

void SpNormalizer::add(std::string_view text, std::string* out) const {
  if (rules_.escape_whitespaces) {
    for (size_t found; (found = text.find(' ')) != std::string_view::npos;
         text.remove_prefix(found + 1)) {
      out->append(text.substr(0, found)).append(kSpaceSign);
    }
  }
  out->append(text);
}

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// See json_tokens.h.
#include "grammar/mask/json_tokens.h"

#include <algorithm>

#include "grammar/json/json_text.h"
#include "grammar/mask/vocabulary.h"

namespace gen::grammar {
namespace {

uint32_t text_hash(std::string_view text) noexcept {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  return hash;
}

}  // namespace

JsonTokens::JsonTokens(const Vocabulary& vocabulary) {
  for (int32_t token = 0; token < vocabulary.size(); ++token) {
    const std::string_view bytes = vocabulary.bytes(token);
    const bool special = std::any_of(
        bytes.begin(), bytes.end(), [](char c) { return static_cast<uint8_t>(c) >= kFirstSignal; });
    if (special) special_.push_back(token);
    const size_t bracket = bytes.find('[');
    if (bracket != std::string_view::npos && bytes.find(',', bracket) != std::string_view::npos) {
      arrays_.push_back(token);
    }
    const auto marks = std::count(bytes.begin(), bytes.end(), '"');
    if (marks == 0) continue;
    quoted_.push_back(token);
    if (marks >= 2) two_.push_back(token);
    if (marks >= 3) three_.push_back(token);
    const std::string_view before = bytes.substr(0, bytes.find('"'));
    if (before.find('\\') != std::string_view::npos) {
      escaped_.push_back(token);
      continue;
    }
    closing_.push_back({text_hash(before), static_cast<uint32_t>(texts_.size()),
                        static_cast<uint32_t>(before.size()), token});
    texts_ += before;
  }
  std::sort(closing_.begin(), closing_.end(),
            [](const Closing& a, const Closing& b) { return a.hash < b.hash; });
}

std::span<const JsonTokens::Closing> JsonTokens::closing(std::string_view text) const noexcept {
  const uint32_t hash = text_hash(text);
  const auto first = std::lower_bound(closing_.begin(), closing_.end(), hash,
                                      [](const Closing& a, uint32_t b) { return a.hash < b; });
  auto last = first;
  while (last != closing_.end() && last->hash == hash) ++last;
  return {first, last};
}

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// See followed_text.h.
#include "generate/draft/followed_text.h"

#include <algorithm>

namespace gen::generate {

bool FollowedText::follow(std::span<const int32_t> text) {
  const int64_t had = index_.size();
  const auto now = static_cast<int64_t>(text.size());
  bool same = had <= now;
  for (int64_t i = 1; same && i <= std::min(kCompared, had); ++i) {
    same = index_.holds(had - i) && index_.at(had - i) == text[static_cast<size_t>(had - i)];
  }
  if (!same) index_.clear();
  index_.add(text.subspan(static_cast<size_t>(index_.size())));
  return !same;
}

int32_t FollowedText::at(int64_t place, const DraftTree& tree) const noexcept {
  if (place < index_.size()) return index_.holds(place) ? index_.at(place) : -1;
  const int64_t row = place - index_.size() + 1;  // row 0 is the last token of the text
  return row < tree.rows() ? tree.tokens()[static_cast<size_t>(row)] : -1;
}

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// See stop_matcher.h.
#include "generate/text/stop_matcher.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gen::generate {
namespace {

// border[i]: length of the longest proper prefix of text[0, i] that is also its suffix; size() + 1
// entries.
std::vector<uint32_t> borders(std::string_view text) {
  std::vector<uint32_t> border(text.size() + 1, 0);
  size_t matched = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (matched > 0 && text[i] != text[matched]) matched = border[matched];
    if (text[i] == text[matched]) ++matched;
    border[i + 1] = static_cast<uint32_t>(matched);
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::span<const std::string> stops) {
  size_t longest = 0;
  for (const std::string& stop : stops) {
    if (!stop.empty()) stops_.push_back({stop, borders(stop), 0});
    longest = std::max(longest, stop.size());
  }
  held_.reserve(longest + kShortPiece);
}

bool StopMatcher::feed(std::string_view piece, std::string* out) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  held_.append(piece);
  const size_t piece_begin = held_.size() - piece.size();
  size_t match_begin = kNone;
  size_t hold = 0;
  for (Stop& stop : stops_) {
    for (size_t i = piece_begin; i < held_.size(); ++i) {
      while (stop.matched > 0 && held_[i] != stop.text[stop.matched]) {
        stop.matched = stop.border[stop.matched];
      }
      if (held_[i] == stop.text[stop.matched]) ++stop.matched;
      if (stop.matched == stop.text.size()) {
        match_begin = std::min(match_begin, i + 1 - stop.text.size());
        break;  // later matches of the same string start later
      }
    }
    hold = std::max(hold, stop.matched);
  }
  if (match_begin != kNone) {
    out->append(held_, 0, match_begin);
    held_.clear();
    return true;
  }
  const size_t free = held_.size() - hold;
  out->append(held_, 0, free);
  held_.erase(0, free);
  return false;
}

void StopMatcher::flush(std::string* out) {
  out->append(held_);
  held_.clear();
  for (Stop& stop : stops_) stop.matched = 0;
}

std::string StopMatcher::take_held() noexcept {
  for (Stop& stop : stops_) stop.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace gen::generate

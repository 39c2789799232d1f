// SPDX-License-Identifier: Apache-2.0
// MarkReader: matches one of a few marks from a place on, byte by byte. White space is optional
// where a mark has some, and skipped before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/text.h"

namespace gen::calls {

class MarkReader {
 public:
  static constexpr int kMore = -1;
  static constexpr int kNone = -2;

  /// Empty marks never match. No mark begins with another one.
  explicit MarkReader(std::vector<std::string> marks);
  /// The number of the mark that this byte completes, kMore or kNone.
  int take(char byte);
  void restart();
  /// Bytes since the last start: white space, and what could be a mark.
  [[nodiscard]] size_t spaces() const noexcept { return spaces_; }
  [[nodiscard]] size_t begun() const noexcept { return begun_; }

 private:
  struct Mark {
    std::string text;
    size_t at = 0;
    bool fits = true;
  };
  std::vector<Mark> marks_;
  size_t spaces_ = 0;
  size_t begun_ = 0;
};

}  // namespace gen::calls

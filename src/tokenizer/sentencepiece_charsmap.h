// SPDX-License-Identifier: Apache-2.0
// Charsmap: a SentencePiece normalizer's precompiled character map, which replaces the longest key
// that a text begins with. The map comes from a file that may be hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gen::tokenizer {

/// Storage: a double-array trie as darts-clone lays it out, and the replacements, each ended by a
/// zero byte.
/// Threads: immutable.
class Charsmap {
 public:
  static constexpr size_t kMaxKeyBytes = 255;
  static constexpr size_t kMaxReplacementBytes = 255;

  struct Match {
    size_t bytes = 0;  // of the key; 0 if there is none
    std::string_view replacement;
  };

  /// Replaces nothing.
  Charsmap() = default;
  /// `file` is the map as stored in a model file; an empty one replaces nothing. kFormat unless the
  /// whole trie is sound: every path stays inside and ends after at most kMaxKeyBytes, every value
  /// is the beginning of a replacement, and replacements are UTF-8 of at most kMaxReplacementBytes.
  static Result<Charsmap> create(std::string_view file);

  [[nodiscard]] bool empty() const noexcept { return units_.empty(); }
  /// The longest key that `text` begins with.
  [[nodiscard]] Match longest(std::string_view text) const noexcept;

 private:
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace gen::tokenizer

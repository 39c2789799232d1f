// SPDX-License-Identifier: Apache-2.0
// DryBreaks: where repetitions end for DRY. A break is a token in which one of some texts ends, at
// whatever token borders, or a control token. Nothing goes on behind a break that was before it,
// and tokens that are breaks by themselves may come as often as they like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

/// Follows one text, token by token. Threads: one at a time.
class DryBreaks {
 public:
  /// `tokenizer` must outlive it; null: there are no breaks. No text is empty.
  DryBreaks(const tokenizer::Tokenizer* tokenizer, std::vector<std::string> texts);

  /// Follows the text to `held`, all that a session holds, the last token of which is new if
  /// it was followed before. kOutOfRange for an id outside the vocabulary.
  Status follow(std::span<const int32_t> held);
  /// Tokens behind the last break.
  [[nodiscard]] size_t unbroken() const noexcept { return unbroken_; }
  /// Whether the token alone is a break.
  Result<bool> breaks(int32_t token);

 private:
  Status feed(int32_t token, int32_t previous);

  const tokenizer::Tokenizer* tokenizer_;
  std::vector<std::string> texts_;
  size_t longest_ = 0;  // bytes of the longest of them
  bool follows_ = false;
  size_t unbroken_ = 0;
  std::string tail_;   // the last bytes that a text may begin in
  std::string piece_;  // of breaks()
};

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// DryBreaks: where DRY stops matching. A break is a control token, or a token in which one of the
// break texts ends, however it is split into tokens. DRY does not match across a break, and a token
// that is a break by itself may repeat freely.
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
  /// `tokenizer` must outlive it; null: there are no breaks. No text may be empty.
  DryBreaks(const tokenizer::Tokenizer* tokenizer, std::vector<std::string> texts);

  /// Advances to `held`, all tokens of the session. After the first call only the last token is
  /// new. kOutOfRange for an id outside the vocabulary.
  Status follow(std::span<const int32_t> held);
  /// Number of tokens after the last break.
  [[nodiscard]] size_t unbroken() const noexcept { return unbroken_; }
  /// Whether the token by itself is a break.
  Result<bool> breaks(int32_t token);

 private:
  Status feed(int32_t token, int32_t previous);

  const tokenizer::Tokenizer* tokenizer_;
  std::vector<std::string> texts_;
  size_t longest_ = 0;  // bytes of the longest of them
  bool follows_ = false;
  size_t unbroken_ = 0;
  std::string tail_;   // last bytes of the text, in which a break text may begin
  std::string piece_;  // scratch of breaks()
};

}  // namespace gen::generate

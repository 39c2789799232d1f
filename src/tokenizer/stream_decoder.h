// SPDX-License-Identifier: Apache-2.0
// StreamDecoder: text from tokens that arrive one by one. A character may be spread over several
// tokens; the output has whole characters only. It does not handle stop strings.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// Holds back at most 3 bytes: an unfinished character. Bytes that cannot become a character become
/// U+FFFD, one each, so the pieces together equal Tokenizer::decode of all tokens. A token without
/// text, such as an end token, completes the text before it. Threads: one at a time; the tokenizer
/// must outlive it.
class StreamDecoder {
 public:
  /// `previous` is the token before the first one fed (the last of the prompt), or -1 at the start
  /// of a text: it determines a leading space, see Tokenizer::append_piece.
  explicit StreamDecoder(const Tokenizer& tokenizer, int32_t previous = -1,
                         bool special_as_text = false)
      : tokenizer_(&tokenizer), previous_(previous), special_as_text_(special_as_text) {}

  /// Starts at the end of `before`, even within its last character if that is unfinished: the
  /// character is then returned whole once tokens complete it. kOutOfRange for an id outside the
  /// vocabulary, with nothing changed.
  Status resume(std::span<const int32_t> before);

  /// Appends the characters that `token` completes, possibly none. kOutOfRange for an id outside
  /// the vocabulary, with nothing changed.
  Status feed(int32_t token, std::string* out);

  /// Appends the held bytes as U+FFFD, at the end of the text. Feeding may continue afterwards.
  void flush(std::string* out);

  /// Bytes held back, 0 to 3.
  [[nodiscard]] size_t held() const noexcept { return held_.size(); }

 private:
  const Tokenizer* tokenizer_;
  int32_t previous_;
  bool special_as_text_;
  std::string held_;
};

}  // namespace gen::tokenizer

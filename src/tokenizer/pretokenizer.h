// SPDX-License-Identifier: Apache-2.0
// Pretokenizer: splits a text into the words within which merges happen, by the family's regular
// expressions (pretokenizer_data.h), run by PCRE2 with its just-in-time compiler where the system
// allows one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/pretokenizer_data.h"

namespace gen::tokenizer {

/// Receives the words of a text in order; together they are the text.
class WordSink {
 public:
  virtual ~WordSink() = default;
  virtual Status word(std::string_view text) = 0;
};

/// Threads: immutable once built; each call brings its own match data.
class Pretokenizer {
 public:
  /// kUnsupported for a name that is not in the table.
  static Result<Pretokenizer> create(std::string_view name);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  /// Whether a word that is itself a token is used without merging.
  [[nodiscard]] bool whole_words_first() const noexcept { return (flags_ & kWholeWordsFirst) != 0; }
  /// Whether texts must be normalised to NFC (nfc.h) before they are split.
  [[nodiscard]] bool wants_form_c() const noexcept { return (flags_ & kFormC) != 0; }

  /// Passes the words of `text` (valid UTF-8) to `sink`. kTokenizer if the expressions exceed the
  /// limits of PCRE2, else the sink's own error.
  Status split(std::string_view text, WordSink* sink) const;

 private:
  class Expression;
  class Run;
  Pretokenizer();

  std::vector<Expression> expressions_;
  uint32_t flags_ = 0;  // of PretokenizerFlag
};

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// JsonTokens: the tokens of a vocabulary that may end a name of a JSON object, and those that may
// begin an array and continue beyond its first item.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::grammar {

class Vocabulary;

/// Threads: immutable.
class JsonTokens {
 public:
  explicit JsonTokens(const Vocabulary& vocabulary);

  /// Tokens that begin with `text` and a quotation mark.
  template <typename F>
  void for_closing(std::string_view text, F&& visit) const {
    for (const Closing& one : closing(text)) {
      if (before_mark(one) == text) visit(one.token);
    }
  }
  /// Tokens with a quotation mark; tokens with another escaped character before the first one.
  [[nodiscard]] std::span<const int32_t> quoted() const noexcept { return quoted_; }
  [[nodiscard]] std::span<const int32_t> escaped() const noexcept { return escaped_; }
  /// Tokens with at least two quotation marks, which may contain a whole name, and with at least
  /// three, which may do so even after the end of a string.
  [[nodiscard]] std::span<const int32_t> two() const noexcept { return two_; }
  [[nodiscard]] std::span<const int32_t> three() const noexcept { return three_; }
  /// Tokens with a bracket that opens an array and a comma after it.
  [[nodiscard]] std::span<const int32_t> arrays() const noexcept { return arrays_; }
  /// Tokens with signal bytes (kFirstSignal and above), which no text has.
  [[nodiscard]] std::span<const int32_t> special() const noexcept { return special_; }

 private:
  struct Closing {
    uint32_t hash;
    uint32_t begin;  // of the text before the mark, in texts_
    uint32_t length;
    int32_t token;
  };
  [[nodiscard]] std::string_view before_mark(const Closing& one) const noexcept {
    return std::string_view(texts_).substr(one.begin, one.length);
  }
  [[nodiscard]] std::span<const Closing> closing(std::string_view text) const noexcept;

  std::string texts_;
  std::vector<Closing> closing_;  // by hash
  std::vector<int32_t> quoted_;
  std::vector<int32_t> escaped_;
  std::vector<int32_t> two_;
  std::vector<int32_t> three_;
  std::vector<int32_t> special_;
  std::vector<int32_t> arrays_;
};

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// VocabTokenizer: the common part of all kinds of tokenizer: special tokens in texts, BOS, the
// bytes of each token. A kind adds the encoding of plain text. See tokenizer.h for the contract.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

/// How a kind differs where plain text and special tokens meet.
struct SpecialRules {
  bool space_prefix = false;  // encode_text inserts a space before its text unless that continues
                              // another
  bool space_after_user_tokens = true;  // also after user-defined tokens, not only control tokens
  bool split_user_tokens = true;  // user-defined tokens are recognised here; otherwise encode_text
                                  // does it
};

class VocabTokenizer : public Tokenizer {
 public:
  Status encode_segments(std::span<const TextSegment> segments, uint32_t flags, int32_t previous,
                         std::vector<int32_t>* out) const final;
  Status append_piece(int32_t id, int32_t previous, bool special_as_text,
                      std::string* out) const final;
  [[nodiscard]] int32_t vocab_size() const noexcept final;
  [[nodiscard]] int32_t special(Special kind) const noexcept final;
  [[nodiscard]] bool is_control(int32_t id) const noexcept final;
  [[nodiscard]] std::span<const int32_t> end_tokens() const noexcept final { return end_tokens_; }
  [[nodiscard]] const VocabSpec& spec() const noexcept final { return spec_; }

 protected:
  /// `spec` has passed check_and_complete.
  VocabTokenizer(VocabSpec spec, SpecialRules rules);

  /// Appends the ids of a stretch without special tokens: not empty, valid UTF-8. If `goes_on`, it
  /// follows text. On failure some ids may have been appended.
  virtual Status encode_text(std::string_view text, bool goes_on,
                             std::vector<int32_t>* out) const = 0;

  /// Called by the constructor of a kind for every id in order, with the token's bytes.
  void add_piece(std::string_view bytes);

 private:
  struct Fragment {
    std::string_view text;
    int32_t token;  // or -1 for text
  };
  [[nodiscard]] std::vector<Fragment> split(std::span<const TextSegment> segments,
                                            int32_t previous) const;
  Status encode_fragments(std::span<const Fragment> fragments, uint32_t flags, int32_t previous,
                          std::vector<int32_t>* out) const;
  [[nodiscard]] bool strips_right(int32_t id) const noexcept;
  [[nodiscard]] bool starts_text(int32_t previous) const noexcept;

  VocabSpec spec_;
  SpecialRules rules_;
  SpecialMatcher user_tokens_;     // user-defined only
  SpecialMatcher special_tokens_;  // user-defined, control and unknown
  std::vector<int32_t> end_tokens_;
  std::string piece_bytes_;          // of all tokens, one after another
  std::vector<size_t> piece_begin_;  // [vocab size + 1]
};

}  // namespace gen::tokenizer

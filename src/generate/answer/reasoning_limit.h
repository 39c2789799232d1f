// SPDX-License-Identifier: Apache-2.0
// ReasoningLimit: ends the reasoning of an answer after a number of tokens, or when another thread
// asks for it: from then on the only tokens that can be drawn are those of a closing message and of
// the mark that ends reasoning.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "generate/answer/answer_reader.h"
#include "generate/request/call_params.h"

namespace gen::generate {

class ReasoningLimit {
 public:
  /// What the calls before had of an answer that was cut.
  struct Progress {
    int64_t spent = 0;               // tokens of reasoning
    bool ended = false;              // the closing message has begun
    std::vector<int32_t> closing{};  // what it lacks
  };

  /// `budget` < 0: no limit. `ask` ends it, too; may be null. `said` is the answer so far.
  /// kTokenizer as Tokenizer::encode.
  static Result<std::shared_ptr<ReasoningLimit>> make(
      const AnswerForm& form, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
      std::string_view opening, const WrittenAnswer& said, const AnswerRules& rules,
      std::shared_ptr<const std::atomic<bool>> ask);

  /// Before the first token of a call that continues an answer.
  void go_on_from(Progress progress);
  /// kUnsupported if the closing has a token that a model of this vocabulary cannot say.
  [[nodiscard]] Status check_vocab(int32_t vocab) const noexcept;
  /// As CallParams::edit_logits; called once or more for each token.
  Status edit(std::span<float> logits, std::span<const int32_t> held, size_t said);
  /// Where the next call of the answer begins, after the `said` tokens of this one.
  Result<Progress> progress(std::span<const int32_t> held, size_t said);

 private:
  ReasoningLimit(const AnswerForm& form, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                 std::string_view opening, const WrittenAnswer& said)
      : tokenizer_(std::move(tokenizer)), reader_(form, *tokenizer_, opening, said) {}
  Status follow(std::span<const int32_t> held, size_t said);

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  AnswerReader reader_;
  std::shared_ptr<const std::atomic<bool>> ask_;
  int64_t budget_ = -1;
  std::vector<int32_t> closing_;    // the message and the mark
  size_t followed_ = 0;             // tokens of this call
  int64_t spent_ = 0;               // of the answer's, reasoning
  std::optional<size_t> ended_at_;  // number of tokens before the closing
  std::string text_;
};

/// `params` with the limit added to what edits its logits already.
CallParams with_limit(CallParams params, std::shared_ptr<ReasoningLimit> limit);

}  // namespace gen::generate

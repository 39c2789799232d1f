// SPDX-License-Identifier: Apache-2.0
// Grammars of calls over a small vocabulary: all bytes, and control tokens.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/call_grammar.h"
#include "grammar/matcher/matcher.h"

namespace gen::calls::test {

inline Tool tool(std::string_view name, std::string_view schema) {
  auto made = make_tool(name, "", schema);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : Tool();
}

class CallReader {
 public:
  explicit CallReader(std::vector<std::string> controls) : controls_(std::move(controls)) {
    std::vector<grammar::TokenText> texts;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      spec_.tokens.push_back(text);
      spec_.types.push_back(tokenizer::TokenType::kNormal);
      texts.push_back({text, ""});
    }
    for (const std::string& control : controls_) {
      spec_.tokens.push_back(control);
      spec_.types.push_back(tokenizer::TokenType::kControl);
      texts.push_back({"", control});
    }
    spec_.tokens.emplace_back("</s>");
    spec_.types.push_back(tokenizer::TokenType::kControl);
    spec_.eos = static_cast<int32_t>(texts.size());
    texts.push_back({"", "</s>"});
    vocabulary_ = grammar::Vocabulary::create(std::move(texts), {&spec_.eos, 1}).value();
  }

  Status make(const CallFormat& format, const std::vector<Tool>& tools,
              const CallGrammarOptions& options = {}) {
    report_ = {};
    auto made = call_grammar(format, tools, spec_, options, &report_);
    if (!made.ok()) return made.status();
    auto over = (*made)->over(vocabulary_);
    if (!over.ok()) return over.status();
    auto matcher = grammar::Matcher::create(*over);
    if (!matcher.ok()) return matcher.status();
    matcher_.emplace(std::move(*matcher));
    return {};
  }

  /// How many bytes the grammar takes; control tokens are taken as such, unless `as_bytes`.
  size_t taken(std::string_view text, bool as_bytes = false) {
    matcher_->reset();
    for (size_t at = 0; at < text.size();) {
      size_t which = SIZE_MAX;
      for (size_t i = 0; i < controls_.size() && !as_bytes; ++i) {
        if (!text.substr(at).starts_with(controls_[i])) continue;
        if (which == SIZE_MAX || controls_[i].size() > controls_[which].size()) which = i;
      }
      if (which != SIZE_MAX) {
        if (!matcher_->accept_token(static_cast<int32_t>(256 + which)).value()) return at;
        at += controls_[which].size();
      } else {
        if (!matcher_->accept_bytes(text.substr(at, 1)).value()) return at;
        ++at;
      }
    }
    return text.size();
  }
  bool operator()(std::string_view text, bool as_bytes = false) {
    return taken(text, as_bytes) == text.size() && matcher_->is_complete();
  }
  /// Where it stopped, for messages.
  std::string stop(std::string_view text) {
    const size_t at = taken(text);
    return std::string(text.substr(0, at)) + "<<HERE>>" + std::string(text.substr(at)) +
           (matcher_->is_complete() ? "" : " incomplete");
  }

  [[nodiscard]] const CallGrammarReport& report() const noexcept { return report_; }
  [[nodiscard]] grammar::Matcher& matcher() noexcept { return *matcher_; }
  [[nodiscard]] const std::vector<std::string>& controls() const noexcept { return controls_; }
  [[nodiscard]] const tokenizer::VocabSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const std::shared_ptr<const grammar::Vocabulary>& vocabulary() const noexcept {
    return vocabulary_;
  }

 private:
  std::vector<std::string> controls_;
  tokenizer::VocabSpec spec_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  std::optional<grammar::Matcher> matcher_;
  CallGrammarReport report_;
};

}  // namespace gen::calls::test

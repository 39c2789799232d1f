// SPDX-License-Identifier: Apache-2.0
// See grammar_rule.h.
#include "generate/text/grammar_rule.h"

#include <algorithm>
#include <utility>

#include "generate/request/call_params.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {
namespace {

void set(std::span<uint64_t> words, int32_t token, bool value) noexcept {
  const uint64_t bit = uint64_t{1} << (static_cast<size_t>(token) % 64);
  uint64_t& word = words[static_cast<size_t>(token) / 64];
  word = value ? word | bit : word & ~bit;
}

}  // namespace

bool ends_text(const grammar::Matcher& matcher, std::span<const int32_t> stops, int32_t token) {
  return matcher.is_complete() && std::find(stops.begin(), stops.end(), token) != stops.end() &&
         !matcher.asks_for(token);
}

void allow_stops(const grammar::Matcher& matcher, std::span<const int32_t> stops,
                 std::span<uint64_t> words) {
  if (!matcher.is_complete()) return;
  const grammar::Vocabulary& vocabulary = matcher.grammar().vocabulary();
  for (const int32_t end : vocabulary.ends()) {
    if (!matcher.asks_for(end)) set(words, end, false);
  }
  for (const int32_t stop : stops) {
    if (stop < vocabulary.size() && !matcher.asks_for(stop)) set(words, stop, true);
  }
}

Result<std::unique_ptr<GrammarRule>> GrammarRule::begin(const CallParams& params,
                                                        const tokenizer::Tokenizer* tokenizer) {
  if (params.grammar == nullptr && params.matcher == nullptr) {
    return std::unique_ptr<GrammarRule>();
  }
  if (tokenizer == nullptr) {
    return error(Code::kInvalidArgument, "a grammar for a generator without a tokenizer");
  }
  const HomeProcess& home =
      params.matcher != nullptr ? params.matcher->grammar().home() : params.grammar->home();
  GEN_TRY(home.check("the call's grammar"));
  GEN_ASSIGN(const auto vocabulary, grammar::Vocabulary::of(*tokenizer));
  std::unique_ptr<GrammarRule> rule;
  if (params.matcher != nullptr) {
    if (&params.matcher->grammar().vocabulary() != vocabulary.get()) {
      return error(Code::kInvalidArgument, "the matcher is over another tokenizer's vocabulary");
    }
    rule = std::make_unique<GrammarRule>(params.matcher->fork());
  } else {
    GEN_ASSIGN(auto over, params.grammar->over(vocabulary));
    GEN_ASSIGN(auto matcher, grammar::Matcher::create(std::move(over)));
    rule = std::make_unique<GrammarRule>(std::move(matcher));
  }
  rule->fits_ = params.stops.fit_grammar;
  rule->names_limits_ = params.names_limits;
  rule->words_.resize(vocabulary->words());
  rule->bits_.resize(2 * vocabulary->words());
  return rule;
}

Status GrammarRule::prepare(int32_t left) {
  if (prepared_) return {};
  if (fits_) {
    GEN_TRY(matcher_.mask_within(static_cast<uint64_t>(left), words_).status());
  } else {
    GEN_TRY(matcher_.mask(words_));
  }
  allow_stops(matcher_, stops_, words_);
  ends_.clear();
  for (const int32_t stop : stops_) {
    if (ends_text(matcher_, stops_, stop)) ends_.push_back(stop);
  }
  uint64_t any = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    bits_[2 * i] = static_cast<uint32_t>(words_[i]);
    bits_[2 * i + 1] = static_cast<uint32_t>(words_[i] >> 32);
    any |= words_[i];
  }
  allows_any_ = any != 0;
  prepared_ = true;
  return {};
}

Result<bool> GrammarRule::accept(int32_t token) {
  if (ends_text(matcher_, stops_, token)) return false;
  GEN_ASSIGN(const bool taken, matcher_.accept_token(token));
  if (!taken) return error(Code::kInternal, "the grammar refuses token %d of its mask", token);
  prepared_ = false;
  return true;
}

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// The handles of grammars and matchers.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/entry.h"
#include "base/home_process.h"
#include "base/in_use.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "tokenizer/tokenizer.h"
#include <generate/base.h>

struct gen_grammar {
  std::shared_ptr<const gen::grammar::Grammar> impl;
  const char* kind;
  std::string notes;  // members of its description, each after a comma
  gen::HomeProcess home;
  bool forced_by_tokenizer = false;
};

struct gen_grammar_matcher {
  gen::grammar::Matcher impl;
  /// Spells forced bytes as tokens; null: only tokens without alternative are forced.
  std::shared_ptr<const gen::tokenizer::Tokenizer> speller;
  gen::HomeProcess home;
  gen::InUseFlag in_use;

  gen_grammar_matcher(gen::grammar::Matcher matcher,
                      std::shared_ptr<const gen::tokenizer::Tokenizer> spells)
      : impl(std::move(matcher)), speller(std::move(spells)) {}
};

namespace gen::api {

/// Runs `body` while the matcher is held.
template <typename F>
Status with_matcher(const gen_grammar_matcher* matcher, F&& body) {
  GEN_TRY(not_null(matcher, "matcher"));
  auto* const own = const_cast<gen_grammar_matcher*>(matcher);  // for its flag only
  const gen::api::HeldHandle<gen_grammar_matcher> held(
      own, &own->in_use, [](gen_grammar_matcher* ended) { end_handle(ended); });
  GEN_TRY(held.entered("the matcher"));
  return body(own->impl);
}

}  // namespace gen::api

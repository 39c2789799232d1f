// SPDX-License-Identifier: Apache-2.0
// Proves that texts of calls with a grammar are its members, whatever the model would rather say,
// that they are the same one by one, together, with drafts and in pieces, and how they end. Who is
// a member is said by std::regex and by a parser of JSON.
#include "generate/text/grammar_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "generate/batch_run.h"
#include "generate/best_of.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/fake_world.h"
#include "generate/knowing_drafter.h"
#include "grammar/grammar.h"
#include "nlohmann/json.hpp"

namespace gen::generate {
namespace {

using grammar::Grammar;
using GrammarPtr = std::shared_ptr<const Grammar>;

const Strings kWords{"0",  "1",    "2",    "7",       "10", "42", "{",    "}",    "[",     "]",
                     ",",  ":",    "\"",   "a",       "b",  "ab", "\"a",  "\":",  "true",  "fal",
                     "se", "null", "-",    ".",       "x",  " ",  "\xC3", "\xA9", "\": {", "\\n",
                     "[[", "0.5",  "\"\"", "{\"a\":", "]]", "},", "word", "end",  "aba"};

GrammarPtr regex_of(const char* pattern) {
  auto made = Grammar::from_regex(pattern);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}
GrammarPtr gbnf_of(const char* text) {
  auto made = Grammar::from_gbnf(text);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

CallParams under(GrammarPtr grammar, int32_t n = 30, double temperature = 0.0, uint64_t seed = 1) {
  CallParams params;
  params.sampling.temperature = temperature;
  params.sampling.seed = seed;
  params.stops.max_new_tokens = n;
  params.grammar = std::move(grammar);
  return params;
}

bool is_end(FinishReason reason) {
  return reason == FinishReason::kGrammarComplete || reason == FinishReason::kStopToken;
}

TEST(GrammarCalls, FinishedTextsAreMembers) {
  World world(128, 8, kWords);
  struct Case {
    GrammarPtr grammar;
    const char* regex;  // null: JSON
  };
  std::vector<Case> cases{{Grammar::any_json().value(), nullptr}};
  for (const char* pattern :
       {"[ab]{3,9}", "(true|false|null)(,(true|false))*", "-?[0-9]+(\\.[0-9]+)?", "\"[^\"\\\\]*\"",
        "(word |end )+end", "a?b?a?b?"}) {
    cases.push_back({regex_of(pattern), pattern});
  }
  for (const Case& one : cases) {
    int32_t finished = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const auto session = world.session();
      CallParams params = under(one.grammar, 40, seed == 0 ? 0.0 : 1.5, seed);
      if (seed % 3 == 0) params.sampling.repetition_penalty = 1.3;
      if (seed % 4 == 0) params.sampling.top_k = 3;
      const Outcome outcome = generate(*session, text("word word"), params);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
      if (!is_end(outcome.result->finish_reason)) continue;
      ++finished;
      const std::string& said = outcome.result->text;
      EXPECT_TRUE(one.regex != nullptr ? std::regex_match(said, std::regex(one.regex))
                                       : nlohmann::json::accept(said))
          << said;
      expect_consistent(world, *session);
    }
    EXPECT_GE(finished, 20) << (one.regex != nullptr ? one.regex : "JSON");
  }
}

TEST(GrammarCalls, EndWhereNothingCanFollow) {
  World world(64, 4, kWords);
  const auto session = world.session();
  const int32_t before = world.model->forwards;
  Outcome outcome = generate(*session, text("word"), under(regex_of("[012]{3}")));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
  EXPECT_EQ(outcome.result->text.size(), 3U);
  EXPECT_EQ(world.model->forwards - before,
            static_cast<int32_t>(outcome.result->tokens.size()));  // no pass for an end token
  // Also where the same token is the last that may come.
  outcome = generate(*session, text("word"), under(regex_of("[ab]{2}"), 1));
  EXPECT_EQ(outcome.result->finish_reason, outcome.result->text.size() == 2
                                               ? FinishReason::kGrammarComplete
                                               : FinishReason::kLength);
  outcome = generate(*session, text("word"), under(regex_of("end"), 1));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
}

TEST(GrammarCalls, TheModelEndsWhatMayEnd) {
  World world(64, 4, kWords);
  const auto digit = world.ids({"7"})[0];
  world.model->next = [&](std::span<const int32_t> history) {
    return history.size() < 6 ? digit : FakeTokenizer::kEos;
  };
  const auto session = world.session();
  Outcome outcome = generate(*session, text("word"), under(regex_of("[0-9]+")));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(outcome.result->text, "7777");
  // An end token may come only where the text is a member, and not at all if it is to be ignored.
  world.model->next = [](std::span<const int32_t>) { return FakeTokenizer::kEos; };
  outcome = generate(*world.session(), text("word"), under(regex_of("7{4,}"), 9));
  EXPECT_EQ(outcome.result->text, "7777");
  CallParams ignoring = under(regex_of("7{4,6}"), 9);
  ignoring.stops.ignore_eos = true;
  outcome = generate(*world.session(), text("word"), ignoring);
  EXPECT_EQ(outcome.result->text, "777777");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
}

TEST(GrammarCalls, OtherEnds) {
  World world(64, 4, kWords);
  Outcome outcome = generate(*world.session(), text("word"), under(regex_of("7*"), 5));
  CallParams params = under(regex_of("(word |end )+"), 20);
  params.stops.strings = {"d w"};
  world.model->next = [&](std::span<const int32_t>) { return world.ids({"word"})[0]; };
  outcome = generate(*world.session(), text("a"), params);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopString);
  EXPECT_EQ(outcome.result->text, "wor");
  params = under(regex_of("7+"), 5);
  params.stops.ignore_eos = true;
  params.stops.fit_grammar = false;
  outcome = generate(*world.session(), text("a"), params);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kLength);
  EXPECT_EQ(outcome.result->text, "77777");
}

// Every text is a member, however few tokens there are, as long as they are enough for some.
TEST(GrammarCalls, FitIntoTheirLength) {
  World world(128, 8, kWords);
  struct Case {
    GrammarPtr grammar;
    const char* regex;  // null: JSON
  };
  const Case cases[] = {{Grammar::any_json().value(), nullptr},
                        {regex_of("[ab]{3,9}"), "[ab]{3,9}"},
                        {regex_of("(word |end )+end"), "(word |end )+end"},
                        {regex_of("(\\[[0-9]*\\])+"), "(\\[[0-9]*\\])+"}};
  for (const Case& one : cases) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      CallParams params = under(one.grammar, 3 + static_cast<int32_t>(seed % 9), 1.5, seed);
      params.stops.fit_grammar = true;
      params.stops.ignore_eos = seed % 2 == 1;
      const Outcome outcome = generate(*world.session(), text("word"), params);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
      const std::string& said = outcome.result->text;
      EXPECT_TRUE(one.regex != nullptr ? std::regex_match(said, std::regex(one.regex))
                                       : nlohmann::json::accept(said))
          << said << " of " << params.stops.max_new_tokens;
      EXPECT_TRUE(is_end(outcome.result->finish_reason))
          << finish_reason_name(outcome.result->finish_reason) << " behind " << said;
    }
  }
}

// The grammar ends what it was made to end, at the last token of the call or of the context.
TEST(GrammarCalls, WhatFitsEndsAtItsLastToken) {
  World world(12, 4, kWords);
  world.model->next = [&](std::span<const int32_t>) { return world.ids({"7"})[0]; };
  CallParams params = under(regex_of("7+"), 5);
  params.stops.fit_grammar = true;
  Outcome outcome = generate(*world.session(), text("word"), params);
  EXPECT_EQ(outcome.result->text, "77777");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
  params.stops.max_new_tokens = 100;
  const auto full = world.session();
  outcome = generate(*full, text("word"), params);
  EXPECT_EQ(full->length(), 12);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
  // Not where even the shortest way is too long, and not before the last token.
  params = under(regex_of("7{9}"), 5);
  params.stops.fit_grammar = true;
  outcome = generate(*world.session(), text("word"), params);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kLength);
  // A stop string ends a text before anything else does.
  params = under(regex_of("7+"), 5);
  params.stops.fit_grammar = true;
  params.stops.strings = {"77777"};
  outcome = generate(*world.session(), text("word"), params);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopString);
}

// Where something else than its grammar ends a text, the result says whether it is a member.
TEST(GrammarCalls, ResultsSayWhetherTheyAreMembers) {
  World world(64, 4, kWords);
  world.model->next = [&](std::span<const int32_t>) { return world.ids({"7"})[0]; };
  const auto ended = [&](const char* pattern, int32_t n) {
    CallParams params = under(pattern != nullptr ? regex_of(pattern) : nullptr, n);
    params.stops.fit_grammar = false;
    const Outcome outcome = generate(*world.session(), text("word"), params);
    return std::pair(outcome.result->finish_reason, outcome.result->grammar_complete);
  };
  EXPECT_EQ(ended("7+", 5), std::pair(FinishReason::kLength, 1));
  EXPECT_EQ(ended("7{2}|7{6}", 2), std::pair(FinishReason::kLength, 1));
  EXPECT_EQ(ended("7{2}|7{6}", 3), std::pair(FinishReason::kLength, 0));
  EXPECT_EQ(ended("7{3}", 3), std::pair(FinishReason::kGrammarComplete, 1));
  EXPECT_EQ(ended(nullptr, 3), std::pair(FinishReason::kLength, -1));
  // A prompt that fills the context leaves the empty text.
  const Tokens full(64, world.ids({"7"})[0]);
  EXPECT_EQ(generate(*world.session(), ids(full), under(regex_of("7*"))).result->grammar_complete, 1);
  EXPECT_EQ(generate(*world.session(), ids(full), under(regex_of("7+"))).result->grammar_complete, 0);
  // Where the model ended it, it was one; where nothing could follow, it was none.
  world.model->next = [](std::span<const int32_t>) { return FakeTokenizer::kEos; };
  EXPECT_EQ(ended("7{2,}", 9), std::pair(FinishReason::kStopToken, 1));
  const Outcome dead = generate(*world.session(), text("word"), under(gbnf_of("root ::= \"a\" \"Q\"")));
  EXPECT_EQ(dead.result->grammar_complete, 0);
}

// A way that takes all of the tokens is not shut off.
TEST(GrammarCalls, UseTheirWholeLength) {
  World world(64, 4, kWords);
  world.model->next = [&](std::span<const int32_t>) { return world.ids({"7"})[0]; };
  CallParams params = under(regex_of("7777|1"), 4);
  params.stops.fit_grammar = true;
  EXPECT_EQ(generate(*world.session(), text("word"), params).result->text, "7777");
  params.stops.max_new_tokens = 3;
  EXPECT_EQ(generate(*world.session(), text("word"), params).result->text, "1");
}

// The session holds what had been said, and can go on.
TEST(GrammarCalls, DeadEnds) {
  World world(64, 4, kWords);
  const auto session = world.session();
  Outcome outcome = generate(*session, text("word"), under(gbnf_of("root ::= \"a\" \"Q\"")));
  EXPECT_EQ(outcome.status.code(), Code::kGrammar);
  EXPECT_STREQ(outcome.status.message(), "no token of the vocabulary can go on after 1 tokens");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarDeadEnd);
  EXPECT_EQ(outcome.result->text, "a");
  expect_consistent(world, *session);
  CallParams biased = under(gbnf_of("root ::= \"a\" \"7\""));
  biased.sampling.logit_bias = {{world.ids({"7"})[0], -std::numeric_limits<float>::infinity()}};
  outcome = generate(*world.session(), text("word"), biased);
  EXPECT_EQ(outcome.status.code(), Code::kGrammar);
  EXPECT_STREQ(outcome.status.message(),
               "biases forbid every token that the grammar allows after 1 tokens");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarDeadEnd);
  EXPECT_EQ(outcome.result->text, "a");
  outcome = generate(*session, text("word"), under(gbnf_of("root ::= \"Q\"")));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarDeadEnd);
  EXPECT_EQ(outcome.result->text, "");
  const Tokens now = held(*session);
  EXPECT_EQ(generate(*session, text("word"), greedy(4)).result->tokens.size(), 4U);
  // What may end there is complete, if no token can end it.
  CallParams params = under(gbnf_of("root ::= \"a\" \"Q\"?"));
  params.stops.ignore_eos = true;
  outcome = generate(*world.session(), text("word"), params);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
}

// Wherever in a guess nothing can follow, the session has run as much as without guesses.
TEST(GrammarCalls, DeadEndsInGuesses) {
  World plain(64, 4, kWords);
  for (const char* rule :
       {"\"Q\"", "\"word\" \"Q\"", "\"word\" \"end\" \"Q\"", "\"word\" \"end\" \"word\" \"7\"",
        "\"word\" \"end\" \"word\" \"end\" \"word\" \"Q\""}) {
    SCOPED_TRACE(rule);
    CallParams params = under(gbnf_of((std::string("root ::= ") + rule).c_str()));
    params.sampling.logit_bias = {{plain.ids({"7"})[0], -std::numeric_limits<float>::infinity()}};
    World drafted(64, 4, kWords);
    drafted.options.drafter = std::make_shared<NgramLookup>(1, 4);
    const Tokens prompt = plain.ids({"word", "end", "word", "end"});
    const auto without = plain.session();
    const auto with = drafted.session();
    const Outcome want = generate(*without, ids(prompt), params);
    const Outcome got = generate(*with, ids(prompt), params);
    EXPECT_EQ(want.result->finish_reason, FinishReason::kGrammarDeadEnd);
    EXPECT_EQ(got.result->finish_reason, FinishReason::kGrammarDeadEnd);
    EXPECT_STREQ(got.status.message(), want.status.message());
    EXPECT_EQ(got.result->tokens, want.result->tokens);
    EXPECT_EQ(held(*with), held(*without));
    EXPECT_EQ(with->cache().length(), without->cache().length());
    EXPECT_EQ(got.result->usage.accepted > 0, want.result->tokens.size() > 1);
    expect_consistent(drafted, *with);
  }
}

TEST(GrammarCalls, GoOnFromAMatcher) {
  World world(64, 4, kWords);
  const GrammarPtr grammar = gbnf_of("root ::= \"{\\\"a\\\":\" [0-9] [0-9] \"}\"");
  const auto vocabulary = grammar::Vocabulary::of(*world.tokenizer).value();
  EXPECT_EQ(vocabulary.get(), grammar::Vocabulary::of(*world.tokenizer).value().get());
  const auto over = grammar->over(vocabulary).value();
  auto matcher = std::make_shared<grammar::Matcher>(grammar::Matcher::create(over).value());
  ASSERT_TRUE(matcher->accept_bytes("{\"a\":4").value());
  CallParams params = under(nullptr);
  params.matcher = matcher;
  for (int32_t i = 0; i < 2; ++i) {
    const Outcome outcome = generate(*world.session(), text("word"), params);
    EXPECT_TRUE(std::regex_match(outcome.result->text, std::regex("[0-9]\\}")))
        << outcome.result->text;
    EXPECT_EQ(matcher->accepted(), 1U);
  }
  World other(64, 4, kWords);
  EXPECT_EQ(generate(*other.session(), text("word"), params).status.code(), Code::kInvalidArgument);
  const auto bare = Generator::create(world.model, nullptr, world.options).value();
  const auto session = bare->new_session().value();
  const Tokens prompt{2, 3};
  EXPECT_EQ(generate(*session, ids(prompt), under(grammar)).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(session->length(), 0);
}

// Of several texts those that failed are among the given ones, as far as there is room.
TEST(GrammarCalls, TheBestOfSeveralHideNoFailure) {
  World world(64, 4, kWords);
  static_cast<void>(world.session());
  CallParams params = under(gbnf_of("root ::= [ab] \"7\" | \"x\" \"Q\""), 9, 9.0);
  params.sampling.logprobs = 0;
  const auto of = [&](int32_t n, int32_t texts) {
    return std::move(best_of(*world.generator, text("word"), params, n, texts)).value();
  };
  const std::vector<GenResult> all = of(12, 12);
  const auto failed = [](const GenResult& one) { return !one.status.ok(); };
  const auto n_failed = static_cast<int32_t>(std::count_if(all.begin(), all.end(), failed));
  ASSERT_GT(n_failed, 1);
  ASSERT_LT(n_failed, 11);
  const auto mean = [](const GenResult& one) {
    double sum = 0;
    for (const float logprob : one.logprobs) sum += logprob;
    return sum / static_cast<double>(one.logprobs.size());
  };
  std::vector<double> means;
  for (const GenResult& one : all) {
    if (one.status.ok()) means.push_back(mean(one));
  }
  std::sort(means.rbegin(), means.rend());
  for (int32_t n = 1; n < 12; ++n) {
    SCOPED_TRACE(n);
    const std::vector<GenResult> best = of(n, 12);
    ASSERT_EQ(best.size(), static_cast<size_t>(n));
    const int32_t good = std::max(n - n_failed, 0);
    for (int32_t i = 0; i < n; ++i) {
      const GenResult& one = best[static_cast<size_t>(i)];
      EXPECT_EQ(one.status.ok(), i < good) << i;
      if (i < good) {
        EXPECT_DOUBLE_EQ(mean(one), means[static_cast<size_t>(i)]) << i;
      }
    }
  }
}

// A grammar that names a token that is not there is refused before anything has changed.
TEST(GrammarCalls, GrammarsThatDoNotFit) {
  World world(64, 4, kWords);
  const auto session = world.session();
  EXPECT_EQ(generate(*session, text("word"), under(gbnf_of("root ::= <nowhere>"))).status.code(),
            Code::kGrammar);
  EXPECT_EQ(session->length(), 0);
}

TEST(GrammarCalls, LogprobsAreTheModels) {
  World world(64, 4, kWords);
  CallParams params = under(regex_of("[0-9]{6}"));
  params.sampling.logprobs = 1;
  const auto session = world.session();
  const Outcome outcome = generate(*session, text("word"), params);
  const Tokens all = held(*session);
  const size_t first = all.size() - outcome.result->tokens.size();
  const auto vocab = static_cast<size_t>(world.tokenizer->vocab_size());
  for (size_t i = 0; i < outcome.result->tokens.size(); ++i) {
    std::vector<float> logits(vocab);
    world.model->write_logits(std::span(all).first(first + i), logits.data());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    const double want =
        static_cast<double>(logits[static_cast<size_t>(all[first + i])]) - std::log(sum);
    EXPECT_NEAR(outcome.result->logprobs[i], want, 1e-5);
  }
}

// One by one, in a batch, with drafts that are right, half right or wrong, and in a stream.
TEST(GrammarCalls, AreTheSameInAnyCompany) {
  const GrammarPtr grammars[] = {Grammar::any_json().value(), regex_of("[ab]{3,20}"), nullptr,
                                 regex_of("(word |end )+end"), gbnf_of("root ::= \"a\" \"Q\"")};
  std::vector<CallParams> calls;
  for (uint64_t i = 0; i < 20; ++i) {
    calls.push_back(under(grammars[i % 5], 25, i % 2 == 0 ? 0.0 : 1.0, i));
    calls.back().sampling.logprobs = 0;
  }
  std::vector<GenResult> want;
  std::vector<Tokens> texts;
  {
    World world(128, 8, kWords);
    for (const CallParams& params : calls) {
      const auto session = world.session();
      want.push_back(std::move(*generate(*session, text("word"), params).result));
      texts.push_back(held(*session));
    }
  }
  const auto same = [](const GenResult& got, const GenResult& alone) {
    EXPECT_EQ(got.tokens, alone.tokens);
    EXPECT_EQ(got.text, alone.text);
    EXPECT_EQ(got.logprobs, alone.logprobs);
    EXPECT_EQ(got.finish_reason, alone.finish_reason);
    EXPECT_EQ(got.status.code(), alone.status.code());
  };
  for (const double p : {-1.0, 0.0, 0.5, 1.0}) {
    SCOPED_TRACE(p);
    World world(128, 8, kWords);
    if (p >= 0) {
      KnowingDrafter::Options options{p, 6, 2, world.tokenizer->vocab_size()};
      const auto drafter = std::make_shared<KnowingDrafter>(options);
      for (const Tokens& said : texts) drafter->learn(said);
      world.options.drafter = drafter;
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      same(*generate(*world.session(), text("word"), calls[i]).result, want[i]);
    }
    std::vector<BatchRequest> requests;
    for (const CallParams& params : calls) requests.push_back({text("word"), params, {}});
    const std::vector<GenResult> together = run_batch(*world.generator, requests, nullptr, nullptr);
    for (size_t i = 0; i < calls.size(); ++i) same(together[i], want[i]);
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto stream = Generation::open(world.session(), text("word"), calls[i]).value();
      while (!stream->ended()) static_cast<void>(stream->poll());
      same(stream->result(), want[i]);
    }
  }
}

}  // namespace
}  // namespace gen::generate

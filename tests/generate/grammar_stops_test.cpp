// SPDX-License-Identifier: Apache-2.0
// Proves what becomes of a token that a grammar asks for and that ends texts as well, of the
// model's or as a stop token of the caller's: it is a part of the text, in every notation, alone,
// in streams, in batches and with drafts; and that a stop token which the grammar does not ask for
// ends only what is a member.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "generate/batch_run.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/fake_world.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/generation.h"
#include "grammar/grammar.h"

namespace gen::generate {
namespace {

using grammar::Grammar;
using GrammarPtr = std::shared_ptr<const Grammar>;

constexpr int32_t kEos = FakeTokenizer::kEos;
const Strings kWords{"hi", "yo", "7", " ", "a", "b", "c", "stop", "\xC3", "\xA9", "st", "op"};

GrammarPtr gbnf_of(const std::string& text) {
  auto made = Grammar::from_gbnf(text);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

CallParams under(GrammarPtr grammar, int32_t n = 30) {
  CallParams params = greedy(n);
  params.grammar = std::move(grammar);
  params.stops.fit_grammar = false;  // but where a test says so
  return params;
}

void expect_said(const Outcome& outcome, const Tokens& tokens, const std::string& text,
                 FinishReason reason) {
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.result->tokens, tokens);
  EXPECT_EQ(outcome.result->text, text);
  EXPECT_STREQ(finish_reason_name(outcome.result->finish_reason), finish_reason_name(reason));
}

TEST(GrammarStops, WhatIsAskedForIsAPartOfTheText) {
  const GrammarPtr grammars[] = {
      gbnf_of("root ::= \"hi\" <[1]> \"yo\""),
      Grammar::from_lark("start: \"hi\" <[1]> \"yo\"").value(),
      Grammar::from_tags(R"({"tags": [{"begin": "hi", "regex": "", "end_token": "</s>"},
                                      {"begin": "yo", "regex": ""}],
                             "free_text": false, "at_least_one": true})")
          .value()};
  World world(64, 4, kWords);
  const Tokens hi_yo{world.ids({"hi"})[0], kEos, world.ids({"yo"})[0]};
  world.script(2, hi_yo);
  for (const GrammarPtr& grammar : grammars) {
    const bool tags = grammar == grammars[2];  // it can go on with further ones
    const auto session = world.session();
    const Outcome outcome = generate(*session, text("7"), under(grammar));
    expect_said(outcome, hi_yo, "hiyo",
                tags ? FinishReason::kStopToken : FinishReason::kGrammarComplete);
    expect_consistent(world, *session);
    // The session holds it, and what comes next is what comes behind it.
    Tokens now{0, world.ids({"7"})[0], hi_yo[0], kEos, hi_yo[2]};
    if (tags) now.push_back(kEos);  // the one that ended it
    EXPECT_EQ(held(*session), now);
    world.model->next = nullptr;
    CallParams more = greedy(5);
    more.stops.ignore_eos = true;
    const Tokens then = generate(*session, text("a"), more).result->tokens;
    now.push_back(world.ids({"a"})[0]);
    EXPECT_EQ(then, fresh_continuation(world, now, 5));
    world.script(2, hi_yo);
  }
}

// Each event is that of a token; the control token has no text, and finishes a character.
TEST(GrammarStops, PiecesLeaveControlTokensOut) {
  World world(64, 4, kWords);
  world.script(2, world.ids({"\xC3", "</s>", "yo"}));
  const auto grammar = gbnf_of("root ::= <[10]> <[1]> \"yo\"");
  const Outcome outcome = generate(*world.session(), text("7"), under(grammar));
  expect_said(outcome, world.ids({"\xC3", "</s>", "yo"}), "\xEF\xBF\xBDyo",
              FinishReason::kGrammarComplete);
  EXPECT_EQ(outcome.pieces, (Strings{"\xEF\xBF\xBD", "yo"}));
}

TEST(GrammarStops, AsTheLastTokenItCompletesTheGrammar) {
  World world(64, 4, kWords);
  world.script(2, world.ids({"hi", "</s>"}));
  const auto session = world.session();
  const Outcome outcome = generate(*session, text("7"), under(gbnf_of("root ::= \"hi\" <[1]>")));
  expect_said(outcome, world.ids({"hi", "</s>"}), "hi", FinishReason::kGrammarComplete);
  EXPECT_EQ(held(*session).back(), kEos);
}

// Where it could be either, it is a part of the text; behind it the text is over or goes on.
TEST(GrammarStops, WhatCouldBeBothGoesOn) {
  World world(64, 4, kWords);
  world.script(2, world.ids({"hi", "</s>", "yo"}));
  const auto grammar = gbnf_of("root ::= \"hi\" (<[1]> \"yo\")*");
  expect_said(generate(*world.session(), text("7"), under(grammar, 3)),
              world.ids({"hi", "</s>", "yo"}), "hiyo", FinishReason::kLength);
  world.script(2, world.ids({"hi", "</s>", "</s>"}));
  const auto twice = gbnf_of("root ::= \"hi\" <[1]>? ");
  expect_said(generate(*world.session(), text("7"), under(twice)), world.ids({"hi", "</s>"}), "hi",
              FinishReason::kGrammarComplete);
  // Any token but some is no name of it.
  const auto other = gbnf_of("root ::= \"hi\" !<[0]>*");
  expect_said(generate(*world.session(), text("7"), under(other)), world.ids({"hi"}), "hi",
              FinishReason::kStopToken);
}

TEST(GrammarStops, WithEndsThatAreIgnored) {
  World world(64, 4, kWords);
  world.script(2, world.ids({"hi", "</s>", "yo"}));
  CallParams params = under(gbnf_of("root ::= \"hi\" <[1]> \"yo\""));
  params.stops.ignore_eos = true;
  expect_said(generate(*world.session(), text("7"), params), world.ids({"hi", "</s>", "yo"}),
              "hiyo", FinishReason::kGrammarComplete);
  // One that is not asked for does not come at all.
  world.model->next = [](std::span<const int32_t>) { return kEos; };
  params = under(gbnf_of("root ::= \"7\"+"), 4);
  params.stops.ignore_eos = true;
  expect_said(generate(*world.session(), text("7"), params), world.ids({"7", "7", "7", "7"}),
              "7777", FinishReason::kLength);
}

// A floor holds back what would end the text, not what the grammar asks for.
TEST(GrammarStops, WithAFloor) {
  World world(64, 4, kWords);
  world.script(2, world.ids({"hi", "</s>", "yo", "</s>", "yo", "</s>"}));
  for (const bool penalised : {false, true}) {
    CallParams params = under(gbnf_of("root ::= \"hi\" (<[1]> | \"a\") \"yo\" (\"b\" | \"c\")*"));
    params.stops.min_new_tokens = 5;
    params.stops.max_new_tokens = 8;
    if (penalised) params.sampling.repetition_penalty = 1.0001;
    const Outcome outcome = generate(*world.session(), text("7"), params);
    ASSERT_GE(outcome.result->tokens.size(), 5U);
    EXPECT_EQ(outcome.result->tokens[1], kEos);
    EXPECT_NE(outcome.result->tokens[3], kEos);
    EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
    EXPECT_EQ(outcome.result->tokens.size(), 5U);
  }
}

TEST(GrammarStops, FitIntoTheirLength) {
  World world(64, 4, kWords);
  world.model->next = [](std::span<const int32_t>) { return kEos; };
  const auto grammar = gbnf_of("root ::= \"hi\" (<[1]> \"a\" \"b\" \"a\" | \"c\")?");
  const auto said = [&](int32_t n, bool ignore) {
    CallParams params = under(grammar, n);
    params.stops.fit_grammar = true;
    params.stops.ignore_eos = ignore;
    return generate(*world.session(), text("7"), params);
  };
  for (const bool ignore : {false, true}) {
    for (int32_t n = 1; n < 8; ++n) {
      const Outcome outcome = said(n, ignore);
      EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete) << n;
      EXPECT_EQ(outcome.result->grammar_complete, 1) << n;
      EXPECT_EQ(outcome.result->text, n >= 5 ? "hiaba" : n == 1 ? "hi" : "hic") << n;
    }
  }
  // Where nothing but that token could come, and it is too late for it, the text is over.
  const auto only = gbnf_of("root ::= \"hi\" (<[1]> \"yo\" \"yo\")?");
  CallParams params = under(only, 3);
  params.stops.fit_grammar = true;
  expect_said(generate(*world.session(), text("7"), params), world.ids({"hi"}), "hi",
              FinishReason::kGrammarComplete);
}

// By name they are parts of the text; spelt by their bytes they end what is a member, and nothing
// else; and where the grammar has no use for them, they end a member as well.
TEST(GrammarStops, StopTokensOfTheCaller) {
  World world(64, 4, kWords);
  const int32_t stop = world.ids({"stop"})[0];
  world.script(2, world.ids({"hi", "stop", "yo"}));
  const auto said = [&](const char* grammar) {
    CallParams params = under(gbnf_of(grammar), 9);
    params.stops.tokens = {stop};
    const auto session = world.session();
    Outcome outcome = generate(*session, text("7"), params);
    expect_consistent(world, *session);
    return outcome;
  };
  const Tokens all = world.ids({"hi", "stop", "yo"});
  expect_said(said("root ::= \"hi\" <[9]> \"yo\""), all, "histopyo",
              FinishReason::kGrammarComplete);
  expect_said(said("root ::= \"hi\" (<[9]> \"yo\")*"), all, "histopyo", FinishReason::kStopToken);
  expect_said(said("root ::= \"histopyo\""), all, "histopyo", FinishReason::kGrammarComplete);
  expect_said(said("root ::= \"hi\" \"stopyo\"?"), {all[0]}, "hi", FinishReason::kStopToken);
  expect_said(said("root ::= [a-z]+"), {all[0]}, "hi", FinishReason::kStopToken);
  expect_said(said("root ::= \"hi\" \"7\"*"), {all[0]}, "hi", FinishReason::kStopToken);
  // Not before it is one.
  const Outcome late = said("root ::= \"hi\" \"7\"{2} \"7\"*");
  EXPECT_EQ(late.result->text.substr(0, 4), "hi77");
}

// The model's own end where the tokenizer has it as text.
TEST(GrammarStops, EndsOfTheModelAlone) {
  World world(64, 4, kWords);
  world.model->mutable_traits().eos = world.ids({"stop"})[0];
  world.script(2, world.ids({"hi", "stop", "yo"}));
  expect_said(generate(*world.session(), text("7"), under(gbnf_of("root ::= [a-z]+"))),
              world.ids({"hi"}), "hi", FinishReason::kStopToken);
  expect_said(generate(*world.session(), text("7"), under(gbnf_of("root ::= \"hi\" <[9]> \"yo\""))),
              world.ids({"hi", "stop", "yo"}), "histopyo", FinishReason::kGrammarComplete);
}

// Without a grammar nothing is asked for.
TEST(GrammarStops, OnlyInAGrammar) {
  World world(64, 4, kWords);
  world.script(2, world.ids({"hi", "stop", "yo"}));
  CallParams params = greedy(9);
  params.stops.tokens = world.ids({"stop"});
  expect_said(generate(*world.session(), text("7"), params), world.ids({"hi"}), "hi",
              FinishReason::kStopToken);
}

// One by one, in a batch, in a stream, and with guesses, which are right behind such a token, too.
TEST(GrammarStops, AreTheSameInAnyCompany) {
  const char* const rules[] = {"\"hi\" (<[1]> \"yo\" (\"a\" | \"b\"))+ \"7\"",
                               "(\"a\" | \"b\" | <[1]> | <[9]>){12}", "\"hi\" ([abc]+ <[1]>)* ",
                               "[a-c]+ (\"stop\" [a-c]+){3}", "(\"a\" <[1]>?)*"};
  std::vector<CallParams> calls;
  for (uint64_t i = 0; i < 40; ++i) {
    calls.push_back(under(gbnf_of(std::string("root ::= ") + rules[i % 5]), 24));
    calls.back().sampling.temperature = i % 2 == 0 ? 0.0 : 1.2;
    calls.back().sampling.seed = i;
    calls.back().stops.ignore_eos = i % 3 == 0;
    calls.back().stops.fit_grammar = i % 4 == 1;
    calls.back().stops.min_new_tokens = i % 7 == 2 ? 9 : 0;
    if (i % 5 != 2) calls.back().stops.tokens = {9};
  }
  std::vector<GenResult> want;
  std::vector<Tokens> texts;
  size_t inside = 0;  // ends of texts that were a part of one
  {
    World world(128, 8, kWords);
    for (const CallParams& params : calls) {
      const auto session = world.session();
      want.push_back(std::move(*generate(*session, text("a a"), params).result));
      texts.push_back(held(*session));
      for (const int32_t token : want.back().tokens) inside += token == kEos || token == 9;
    }
  }
  EXPECT_GT(inside, 40U);
  const auto same = [](const GenResult& got, const GenResult& alone) {
    EXPECT_EQ(got.tokens, alone.tokens);
    EXPECT_EQ(got.text, alone.text);
    EXPECT_EQ(got.finish_reason, alone.finish_reason);
    EXPECT_EQ(got.grammar_complete, alone.grammar_complete);
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
      same(*generate(*world.session(), text("a a"), calls[i]).result, want[i]);
    }
    std::vector<BatchRequest> requests;
    for (const CallParams& params : calls) requests.push_back({text("a a"), params, {}});
    const std::vector<GenResult> together = run_batch(*world.generator, requests, nullptr, nullptr);
    for (size_t i = 0; i < calls.size(); ++i) same(together[i], want[i]);
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto stream = Generation::open(world.session(), text("a a"), calls[i]).value();
      while (!stream->ended()) static_cast<void>(stream->poll());
      same(stream->result(), want[i]);
    }
  }
}

// A guess is not cut at a token that the grammar asks for.
TEST(GrammarStops, GuessesGoOnBehindThem) {
  World world(64, 8, kWords);
  const auto drafter = std::make_shared<KnowingDrafter>(
      KnowingDrafter::Options{1.0, 6, 1, world.tokenizer->vocab_size()});
  const Tokens said = world.ids({"hi", "</s>", "yo", "</s>", "yo", "stop", "yo"});
  world.script(2, said);
  Tokens all{0, world.ids({"7"})[0]};
  all.insert(all.end(), said.begin(), said.end());
  drafter->learn(all);
  world.options.drafter = drafter;
  CallParams params = under(gbnf_of("root ::= \"hi\" (<[1]> \"yo\"){2} <[9]> \"yo\""));
  params.stops.tokens = world.ids({"stop"});
  const Outcome outcome = generate(*world.session(), text("7"), params);
  expect_said(outcome, said, "hiyoyostopyo", FinishReason::kGrammarComplete);
  EXPECT_EQ(outcome.result->usage.drafted, outcome.result->usage.accepted);
  EXPECT_EQ(outcome.result->usage.accepted, 6);  // in one step behind the first token
}

}  // namespace
}  // namespace gen::generate

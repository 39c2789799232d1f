// SPDX-License-Identifier: Apache-2.0
// Proves how the decode loop ends a text: stop tokens, stop strings, lengths, and that what comes
// out by then are whole characters and no byte of a stop string.
#include <gtest/gtest.h>

#include "generate/fake_world.h"
#include "generate/loop/generation.h"

namespace gen::generate {
namespace {

TEST(Generation, ExamplesOfHoldingBack) {
  const auto run_script = [](const Strings& said, const std::string& stop) {
    World world;
    const auto session = world.session();
    world.script(2, world.ids(said));
    CallParams params = greedy(20);
    params.stops.strings = {stop};
    return generate(*session, text("a"), params);
  };
  Outcome outcome = run_script({"foo", " ba", "r x"}, "bar");
  EXPECT_EQ(outcome.pieces, (Strings{"foo", " "}));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopString);
  EXPECT_EQ(outcome.result->usage.completion, 3);
  outcome = run_script({"ab", "aba", "c"}, "abac");
  EXPECT_EQ(outcome.pieces, (Strings{"ab"}));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopString);
  outcome = run_script({"ab", "aba"}, "abac");
  EXPECT_EQ(outcome.pieces, (Strings{"ab", "aba"}));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
}

TEST(Generation, PiecesAreWholeCharacters) {
  World world;
  const auto session = world.session();
  world.script(2, world.ids({"\xF0", "\x9F", "\x98", "\x80", "\xC3", "a", "\xC3", "\xA9", "\xF0"}));
  const Outcome outcome = generate(*session, text("a"), greedy(20));
  EXPECT_EQ(outcome.pieces, (Strings{"\xF0\x9F\x98\x80",
                                     "\xEF\xBF\xBD"
                                     "a",
                                     "\xC3\xA9", "\xEF\xBF\xBD"}));
}

// Wherever a limit cuts, the calls together say what one call says.
TEST(Generation, ACharacterCutByALimitComesWithTheNextCall) {
  const Strings said{"\xF0", "\x9F", "\x98", "\x80", "a", "\xC3", "\xA9", "\xF0", "b"};
  const std::string whole =
      "\xF0\x9F\x98\x80"
      "a\xC3\xA9\xEF\xBF\xBD"
      "b";
  for (int32_t cut = 1; cut < 9; ++cut) {
    World world;
    const auto session = world.session();
    world.script(2, world.ids(said));
    const Outcome first = generate(*session, text("a"), greedy(cut));
    EXPECT_EQ(first.result->finish_reason, FinishReason::kLength);
    const Outcome rest = generate(*session, text(""), greedy(20));
    EXPECT_EQ(first.result->text + rest.result->text, whole) << cut;
  }
  World world;
  const auto session = world.session();
  world.script(2, world.ids(said));
  std::string joined = generate(*session, text("a"), greedy(1)).result->text;
  for (int i = 0; i < 8; ++i) joined += generate(*session, text(""), greedy(1)).result->text;
  EXPECT_EQ(joined, whole);
}

TEST(Generation, ACutCharacterIsGivenUpWhereTheTextEndsOrAPromptFollows) {
  World world;
  auto session = world.session();
  world.script(2, {world.ids({"\xC3"})[0], FakeTokenizer::kEos, world.ids({"\xA9"})[0]});
  EXPECT_EQ(generate(*session, text("a"), greedy(5)).result->text, "\xEF\xBF\xBD");
  EXPECT_EQ(generate(*session, text(""), greedy(1)).result->text, "\xEF\xBF\xBD");
  session = world.session();
  world.script(2, world.ids({"\xC3", "b", "\xA9"}));
  EXPECT_EQ(generate(*session, text("a"), greedy(1)).result->text, "");
  EXPECT_EQ(generate(*session, text("b"), greedy(1)).result->text, "\xEF\xBF\xBD");
}

// Wherever a callback stops, or a stream is closed, its pieces are its text, and all calls together
// say what one says, stop strings that begin in one and end in the next included.
TEST(Generation, WhatIsHeldBackAtACallbacksStopComesWithTheNextCall) {
  const Strings said{"foo", "a", "b", "c", " ba", "ab", "aba", "c", "b", "r x", "a"};
  for (const Strings& stops : {Strings{"abab"}, Strings{"abac", "r xb"}, Strings{"c ba", "bab"},
                               Strings{"foo"}, Strings{}}) {
    CallParams params = greedy(20);
    params.stops.strings = stops;
    World world;
    world.script(2, world.ids(said));
    const Outcome whole = generate(*world.session(), text("a"), params);
    const auto all = static_cast<int32_t>(whole.result->tokens.size());
    for (int32_t at = 0; at < all; ++at) {
      for (int how = 0; how < 4; ++how) {
        const auto session = world.session();
        std::string pieces;
        if (how < 2) {
          struct Listener {
            int32_t at;
            bool throws;
            std::string pieces = {};
          } listener{at, how == 1};
          const auto hear = [](void* user, const Event& event) -> int32_t {
            auto& own = *static_cast<Listener*>(user);
            own.pieces += event.text;
            if (event.index == own.at && own.throws) throw 1;
            return event.index == own.at ? 1 : 0;
          };
          std::optional<GenResult> result;
          static_cast<void>(session->generate(text("a"), params, hear, &listener, &result));
          EXPECT_EQ(result->text, listener.pieces);
          if (how == 0) pieces = listener.pieces;
        } else {
          auto stream = session->open(text("a"), params).value();
          for (int32_t i = 0; i <= at; ++i) pieces += stream->next().value()->text;
        }
        if (how == 3) {  // and nothing was said in between
          session->cancel();
          const Outcome none = generate(*session, text(""), params);
          EXPECT_EQ(none.status.code(), Code::kCancelled);
          EXPECT_EQ(none.result->text, "");
        }
        if (at + 1 == all && whole.result->finish_reason == FinishReason::kStopString) {
          EXPECT_EQ(pieces, how == 1 ? "" : whole.result->text);
          continue;
        }
        const Outcome rest = generate(*session, text(how == 1 ? "a" : ""), params);
        EXPECT_EQ(pieces + rest.result->text, whole.result->text) << at << " " << how;
        EXPECT_EQ(rest.result->finish_reason, whole.result->finish_reason);
      }
    }
  }
}

// What goes on elsewhere has nothing to do with it.
TEST(Generation, WhatIsHeldBackGoesWithItsText) {
  World world;
  world.script(2, world.ids({"foo", "a", "b", "c", "c", "c", "c", "c"}));
  CallParams params = greedy(20);
  params.stops.strings = {"abac"};
  const auto go_on_after = [&](auto between) {
    const auto session = world.session();
    {
      auto stream = session->open(text("a"), params).value();
      for (int32_t i = 0; i < 2; ++i) EXPECT_FALSE(stream->next().value()->done);
    }
    between(*session);
    return generate(*session, text(""), greedy(1)).result->text;
  };
  EXPECT_EQ(go_on_after([](Session&) {}), "ab");
  EXPECT_EQ(go_on_after([](Session& one) { EXPECT_TRUE(one.truncate(4).ok()); }), "ab");
  EXPECT_EQ(go_on_after([](Session& one) { EXPECT_TRUE(one.truncate(3).ok()); }), "a");
  EXPECT_EQ(go_on_after([](Session& one) { EXPECT_TRUE(one.append(text("c")).ok()); }), "c");
  EXPECT_EQ(go_on_after([&](Session& one) {
              EXPECT_TRUE(one.truncate(3).ok());
              EXPECT_TRUE(one.append(text("c")).ok());
            }),
            "b");
  EXPECT_EQ(go_on_after([&](Session& one) {
              const Outcome said = generate(one, text(""), greedy(1));
              EXPECT_EQ(said.result->text, "ab");
            }),
            "c");
}

TEST(Generation, StopTokenStaysInTheSessionNotInTheText) {
  World world;
  const auto session = world.session();
  world.script(2, world.ids({"a", "b"}));
  const Outcome outcome = generate(*session, text("c"), greedy(20));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.result->text, "ab");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(outcome.result->usage.prompt, 2);  // BOS and "c"
  EXPECT_EQ(outcome.result->usage.completion, 2);
  EXPECT_EQ(held(*session), (Tokens{0, 4, 2, 3, 1}));
  expect_consistent(world, *session);
}

TEST(Generation, StopTokensOfTheCallerAndIgnoreEos) {
  World world;
  world.script(2, {2, 1, 3, 4});
  CallParams params = greedy(20);
  params.stops.ignore_eos = true;
  params.stops.tokens = {4};
  auto session = world.session();
  const Outcome outcome = generate(*session, text("a"), params);
  EXPECT_EQ(outcome.result->tokens, (Tokens{2, 1, 3}));
  EXPECT_EQ(outcome.result->text, "ab");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  params.stops.ignore_eos = false;
  session = world.session();
  EXPECT_EQ(generate(*session, text("a"), params).result->tokens, (Tokens{2}));
}

TEST(Generation, TheDoneEventNamesNoToken) {
  World world;
  world.script(2, {2});
  const auto session = world.session();
  auto generation = std::move(session->open(text("a"), greedy(5))).value();
  const Event first = *generation->next().value();
  EXPECT_EQ(first.token, 2);
  EXPECT_FALSE(first.done);
  EXPECT_FALSE(generation->ended());
  const Event* const last = generation->next().value();
  EXPECT_TRUE(last->done);
  EXPECT_TRUE(generation->ended());
  EXPECT_EQ(last->token, -1);  // not the stop token, which is no part of the text
  EXPECT_EQ(last->index, 1);
  EXPECT_EQ(last->finish_reason, FinishReason::kStopToken);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(generation->next().value(), nullptr);
}

TEST(Generation, LengthAndContext) {
  World world(10);
  world.script(2, Tokens(50, 2));
  auto session = world.session();
  Outcome outcome = generate(*session, text("a"), greedy(8));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kLength);  // both at once: length
  EXPECT_EQ(outcome.result->tokens.size(), 8U);
  session = world.session();
  outcome = generate(*session, text("a"), greedy(9));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kContextFull);
  EXPECT_EQ(outcome.result->tokens.size(), 8U);
  EXPECT_EQ(session->length(), 10);
  // Going on is legal and ends at once.
  outcome = generate(*session, text(""), greedy(9));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kContextFull);
  EXPECT_TRUE(outcome.result->tokens.empty());
}

// Random scripts over pieces that split characters and stops; the whole text is computed at once.
TEST(Generation, NoByteOfAStopStringEverComesOut) {
  const Strings pieces{"a",
                       "b",
                       "ab",
                       "ba",
                       "\xC3",
                       "\xA9",
                       "\xC3\xA9",
                       "a\xC3",
                       "\xA9"
                       "b",
                       ""};
  const Strings alphabet{"a", "b", "\xC3\xA9"};
  int stopped = 0;
  for (uint64_t round = 0; round < 1500; ++round) {
    uint64_t counter = 0;
    const auto below = [&](size_t n) {
      return static_cast<size_t>(uniform_double(round, 2, counter++) * static_cast<double>(n));
    };
    World world(64, 8, pieces);
    Tokens said;
    for (size_t i = 1 + below(16); i-- > 0;) said.push_back(static_cast<int32_t>(2 + below(10)));
    world.script(1, said);
    CallParams params = greedy(static_cast<int32_t>(said.size()));
    for (size_t i = below(4); i-- > 0;) {
      std::string stop;
      for (size_t n = below(5); n-- > 0;) stop += alphabet[below(3)];
      params.stops.strings.push_back(stop);
    }
    const auto session = world.session();
    const Tokens prompt{0};
    const Outcome outcome = generate(*session, ids(prompt), params);

    // Token by token, searching all text decoded so far.
    std::string expected;
    size_t used = 0;
    bool hit = false;
    while (used < said.size() && !hit) {
      ++used;
      expected.clear();
      tokenizer::StreamDecoder decoder(*world.tokenizer, 0);
      for (size_t i = 0; i < used; ++i) ASSERT_TRUE(decoder.feed(said[i], &expected).ok());
      size_t first = std::string::npos;
      for (const std::string& stop : params.stops.strings) {
        if (!stop.empty()) first = std::min(first, expected.find(stop));
      }
      hit = first != std::string::npos;
      if (hit) expected.resize(first);
    }
    ASSERT_EQ(outcome.result->text, expected) << round;
    ASSERT_EQ(outcome.result->tokens.size(), used) << round;
    ASSERT_EQ(outcome.result->finish_reason,
              hit ? FinishReason::kStopString : FinishReason::kLength);
    ASSERT_EQ(session->length(), static_cast<int32_t>(1 + used));
    stopped += hit ? 1 : 0;
  }
  EXPECT_GT(stopped, 300);
}

}  // namespace
}  // namespace gen::generate

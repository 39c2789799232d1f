// SPDX-License-Identifier: Apache-2.0
// Sessions whose layers keep only their windows, against sessions that keep everything: random
// programs of prompts, answers, drafts, cuts, forks, files and calls side by side say the same, to
// the bit. And what is evaluated again: where a copy of a window lies, nothing that lies before it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "generate/chat_talk.h"
#include "generate/chat_world.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/watched_model.h"

namespace gen::generate {
namespace {

constexpr int32_t kContext = 1024;
constexpr int32_t kNear = 16;  // there is no point for fewer tokens

// An answer before the last one is another: what a template makes of one with thoughts.
constexpr const char* kForgets =
    "{% for m in messages %}{{ m.role }}:"
    "{% if m.role == 'assistant' and not loop.last %}-{% else %}{{ m.content }}{% endif %}"
    "</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

struct Windows {
  explicit Windows(int32_t window, bool recurrent = false, int32_t threads = 1)
      : tiny(test::TinyModel(spec(window, recurrent)),
             recurrent ? test::with_drift(detect_cpu_level(), threads)
                       : test::TinyEngineOptions{.threads = threads}),
        model(std::make_shared<WatchedModel>(tiny.model())) {}
  static test::TinyModelSpec spec(int32_t window, bool recurrent) {
    test::TinyModelSpec made;
    made.layers = 3;
    made.local = {1, 0, 1};
    if (recurrent) {
      made = test::drift_spec();
      made.layer_kv_heads = {0, 2, 2, 0};
      made.recurrent = {1, 0, 0, 1};
      made.local = {1, 1, 0, 1};
    }
    made.context = kContext;
    made.vocab = kFormsVocab;
    made.window = window;
    return made;
  }
  [[nodiscard]] std::shared_ptr<const Generator> generator(GeneratorOptions options) const {
    return Generator::create(model, std::make_shared<FakeTokenizer>(pieces()), std::move(options))
        .value();
  }
  [[nodiscard]] std::shared_ptr<const Generator> full() const {
    GeneratorOptions options;
    options.window_rewind = -1;
    return generator(std::move(options));
  }

  test::LoadedTiny tiny;
  std::shared_ptr<WatchedModel> model;
};

GeneratorOptions options_of(int32_t chunk, int32_t rewind, int32_t copies) {
  GeneratorOptions options;
  options.prefill_chunk = chunk;
  options.window_rewind = rewind;
  options.window_copies = copies;
  return options;
}

struct Pair {
  std::shared_ptr<Session> windowed;
  std::shared_ptr<Session> full;
};

class WindowSessions : public testing::TestWithParam<int32_t> {};

INSTANTIATE_TEST_SUITE_P(Windows, WindowSessions, testing::Values(7, 32, 33, 100));

TEST_P(WindowSessions, SayWhatFullOnesSay) {
  const char* const trials = std::getenv("GEN_TRIALS");
  const int n_trials = trials != nullptr ? std::atoi(trials) : 8;
  const int32_t window = GetParam();
  const Windows one(window);
  const Windows two(window, false, 2);
  int rings = 0;
  for (int trial = 0; trial < n_trials; ++trial) {
    SCOPED_TRACE(testing::Message() << "trial " << trial);
    std::mt19937 random(static_cast<uint32_t>(trial * 101 + window));
    const auto draw = [&](int32_t least, int32_t most) {
      return std::uniform_int_distribution<int32_t>(least, most)(random);
    };
    const Windows& world = draw(0, 3) == 0 ? two : one;
    constexpr const char* kKinds[] = {"fp32", "fp32", "fp16", "fp8", "q4", "q3"};
    GeneratorOptions options =
        options_of(draw(0, 1) == 0 ? draw(1, 12) : draw(13, 80), draw(0, 40), draw(0, 3));
    options.kv_dtype = kKinds[draw(0, 5)];
    options.max_sequences = draw(1, 3);
    GeneratorOptions plain;
    plain.window_rewind = -1;
    plain.kv_dtype = options.kv_dtype;
    if (draw(0, 1) == 0) options.drafter = std::make_shared<NgramLookup>(2, draw(1, 8));
    const auto windowed = world.generator(options);
    const auto full = world.generator(plain);
    std::vector<Pair> pairs;
    pairs.push_back({windowed->new_session().value(), full->new_session().value()});
    rings += pairs[0].windowed->cache().traits().cuts_exactly ? 0 : 1;
    for (int step = 0; step < 30; ++step) {
      Pair& pair = pairs[static_cast<size_t>(draw(0, static_cast<int32_t>(pairs.size()) - 1))];
      const int32_t length = pair.full->length();
      ASSERT_EQ(pair.windowed->length(), length);
      const int32_t room = kContext - length;
      switch (draw(0, 7)) {
        case 0:
        case 1: {  // a cut, near or far
          if (length == 0) break;
          const int32_t n = draw(std::max(0, length - draw(1, 6) * window), length);
          ASSERT_TRUE(pair.windowed->truncate(n).ok());
          ASSERT_TRUE(pair.full->truncate(n).ok());
          break;
        }
        case 2: {
          if (pairs.size() > 2) pairs.erase(pairs.begin() + draw(0, 2));
          const Pair& from = pairs.back();
          pairs.push_back({from.windowed->fork().value(), from.full->fork().value()});
          break;
        }
        case 3: {  // a file, of one that keeps all or not
          const auto loaded = windowed->new_session().value();
          ASSERT_TRUE(loaded->load(state_of(draw(0, 1) == 0 ? *pair.full : *pair.windowed)).ok());
          pair.windowed = loaded;
          break;
        }
        case 4: {  // a prompt with borders
          const Tokens prompt =
              text_of(static_cast<uint32_t>(draw(0, 99)),
                      static_cast<size_t>(std::min(room, draw(1, draw(1, 4) * window))));
          if (prompt.empty()) break;
          std::vector<int32_t> borders;
          for (int32_t at = draw(0, 40); at < std::ssize(prompt); at += draw(1, 60)) {
            borders.push_back(at);
          }
          const Prompt given{.text = {}, .tokens = prompt, .borders = borders};
          ASSERT_TRUE(pair.windowed->append(given).ok());
          ASSERT_TRUE(pair.full->append(given).ok());
          break;
        }
        case 5: {  // calls side by side
          std::vector<Said> said(pairs.size());
          const int32_t n = draw(1, 12);
          bool fits = true;
          for (const Pair& each : pairs) fits = fits && kContext - each.full->length() > 20;
          if (!fits) break;
          std::vector<std::thread> threads;
          for (size_t i = 0; i < pairs.size(); ++i) {
            threads.emplace_back([&, i] {
              said[i] = say(*pairs[i].windowed, text_of(static_cast<uint32_t>(i), 5), n);
            });
          }
          for (std::thread& thread : threads) thread.join();
          for (size_t i = 0; i < pairs.size(); ++i) {
            ASSERT_EQ(said[i], say(*pairs[i].full, text_of(static_cast<uint32_t>(i), 5), n));
          }
          break;
        }
        default: {
          if (room < 2) break;
          const auto n = static_cast<size_t>(std::min(room - 1, draw(1, 2 * window)));
          const Tokens prompt = text_of(static_cast<uint32_t>(draw(0, 99)), n);
          const int32_t more = draw(1, 2 * window);
          ASSERT_EQ(say(*pair.windowed, prompt, more), say(*pair.full, prompt, more));
        }
      }
    }
  }
  EXPECT_GE(rings, n_trials / 2);
}

// A full context drops its older half again and again. Cuts go back no further than windows were
// kept: behind a shift what is evaluated again is not what was moved.
TEST_P(WindowSessions, ShiftAsFullOnesDo) {
  const char* const trials = std::getenv("GEN_TRIALS");
  const int n_trials = trials != nullptr ? std::atoi(trials) : 8;
  const int32_t window = GetParam();
  const Windows world(window);
  int64_t dropped = 0;
  for (int trial = 0; trial < n_trials; ++trial) {
    SCOPED_TRACE(testing::Message() << "trial " << trial);
    std::mt19937 random(static_cast<uint32_t>(trial * 103 + window));
    const auto draw = [&](int32_t least, int32_t most) {
      return std::uniform_int_distribution<int32_t>(least, most)(random);
    };
    GeneratorOptions options = options_of(draw(1, 40), draw(0, 20), draw(0, 2));
    options.shift_context = true;
    options.context_keep = draw(0, 6);
    options.max_seq_len = draw(3 * window + 200, 1000);
    options.kv_dtype = draw(0, 2) == 0 ? "fp16" : "fp32";
    GeneratorOptions plain = options;
    plain.window_rewind = -1;
    plain.prefill_chunk = 0;
    if (draw(0, 1) == 0) options.drafter = std::make_shared<NgramLookup>(2, draw(1, 8));
    const auto windowed = world.generator(options);
    Pair pair{windowed->new_session().value(), world.generator(plain)->new_session().value()};
    ASSERT_FALSE(pair.windowed->cache().traits().cuts_exactly);
    int64_t loaded = 0;  // a state of a ring has no more than the next row sees
    for (int step = 0; step < 30; ++step) {
      const int32_t length = pair.full->length();
      ASSERT_EQ(pair.windowed->length(), length);
      switch (draw(0, 7)) {
        case 0: {
          const auto least = static_cast<int32_t>(loaded);
          const int32_t n = std::max(least, length - draw(0, *options.window_rewind));
          ASSERT_TRUE(pair.windowed->truncate(n).ok());
          ASSERT_TRUE(pair.full->truncate(n).ok());
          break;
        }
        case 1: {
          pair = {pair.windowed->fork().value(), pair.full->fork().value()};
          break;
        }
        case 2: {
          const auto other = windowed->new_session().value();
          const bool whole = draw(0, 1) == 0;
          ASSERT_TRUE(other->load(state_of(whole ? *pair.full : *pair.windowed)).ok());
          pair.windowed = other;
          loaded = whole ? loaded : length;
          break;
        }
        default: {
          const int32_t most = options.max_seq_len - options.context_keep - 1;
          const auto n = static_cast<size_t>(draw(1, draw(0, 3) == 0 ? most : window));
          const Tokens prompt = text_of(static_cast<uint32_t>(draw(0, 99)), n);
          const Said said = say(*pair.windowed, prompt, draw(1, 3 * window));
          ASSERT_EQ(said, say(*pair.full, prompt, static_cast<int32_t>(said.tokens.size())));
          const int64_t given = length + std::ssize(prompt) + std::ssize(said.tokens);
          const int64_t gone = given - pair.full->length();
          loaded = std::max<int64_t>(0, loaded - gone);
          dropped += gone;
        }
      }
    }
  }
  EXPECT_GT(dropped, 200 * n_trials);
}

// A length of the text of about a window, in prompts of every kind, and a cut to anywhere.
TEST_P(WindowSessions, CutsToAnywhere) {
  const int32_t window = GetParam();
  const Windows world(window);
  const auto full = world.full();
  for (const int32_t chunk : {5, 64}) {
    const auto generator = world.generator(options_of(chunk, 3, 2));
    for (const int32_t length : {window - 1, window, window + 1, 2 * window, 4 * window + 60}) {
      const Tokens text = text_of(3, static_cast<size_t>(length));
      const auto session = generator->new_session().value();
      const auto other = full->new_session().value();
      ASSERT_EQ(say(*session, text, 5), say(*other, text, 5));
      for (int32_t cut = length; cut > 0; cut -= 1 + length / 7) {
        SCOPED_TRACE(testing::Message() << chunk << " " << length << " " << cut);
        const auto fork = session->fork().value();
        const auto other_fork = other->fork().value();
        ASSERT_TRUE(fork->truncate(cut).ok());
        ASSERT_TRUE(other_fork->truncate(cut).ok());
        ASSERT_EQ(say(*fork, {4, 7}, 6), say(*other_fork, {4, 7}, 6));
      }
    }
  }
}

// Thoughts of hundreds of tokens, none of which the next turn has: what it evaluates is itself, as
// usage says, if there is a copy, else everything.
TEST(WindowChats, ATurnEvaluatesOnlyItself) {
  constexpr int32_t kThought = 100;
  constexpr int32_t kTurn = 1 + 1 + 5 + 20 + 1 + 10;  // -</s>user:xxx</s>assistant:
  for (const bool recurrent : {false, true}) {
    const Windows world(9, recurrent);
    for (const int32_t chunk : {8, 31}) {
      for (const int32_t copies : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << recurrent << " " << chunk << " " << copies);
        ChatTalk talk(world.generator(options_of(chunk, 5, copies)), kForgets, 200);
        ChatTalk full(world.full(), kForgets, 200);
        for (int turn = 0; turn < 6; ++turn) {
          const std::string message(20, static_cast<char>('a' + turn));
          const int64_t before = world.model->rows;
          const GenResult said = talk.send(message, kThought);
          const int64_t rows = world.model->rows - before - (kThought - 1);
          EXPECT_EQ(said.tokens, full.send(message, kThought).tokens);
          EXPECT_EQ(rows, said.usage.prompt_evaluated);
          EXPECT_EQ(said.usage.prompt_cached, 0);
          if (turn == 0) continue;
          if (copies > 0) {
            EXPECT_GE(rows, kTurn) << turn;
            EXPECT_LE(rows, kTurn + kNear) << turn;
          } else {
            EXPECT_GE(rows, 200 + turn * kTurn) << turn;
          }
        }
        // The message once more, edited.
        ASSERT_TRUE(talk.chat->conversation.truncate(-2).ok());
        const GenResult said = talk.send("another message", 3);
        if (copies == 2) {
          EXPECT_LE(said.usage.prompt_evaluated, 16 + 16 + 1 + 10 + kNear);
        }
      }
    }
  }
}

// A long question, and calls of tools with thoughts that stay until the next question: then all of
// these go, so the end of the question is worth more than places between the calls.
TEST(WindowChats, AQuestionBeforeManyCalls) {
  const Windows world(9);
  const auto full = world.full();
  const auto plain = [](uint32_t seed, size_t n) {  // no message ends in it
    Tokens tokens = text_of(seed, n);
    for (int32_t& token : tokens) token = 2 + token % 40;
    return tokens;
  };
  for (const int32_t copies : {3, 8}) {
    for (const size_t result : {3U, 20U, 40U}) {
      SCOPED_TRACE(testing::Message() << copies << " " << result);
      const auto session = world.generator(options_of(8, 5, copies))->new_session().value();
      const auto other = full->new_session().value();
      const Tokens question = plain(1, 600);
      ASSERT_EQ(say(*session, question, 40), say(*other, question, 40));
      for (uint32_t call = 2; call < 7; ++call) {
        ASSERT_EQ(say(*session, plain(call, result), 20), say(*other, plain(call, result), 20));
      }
      ASSERT_TRUE(session->truncate(600).ok());
      ASSERT_TRUE(other->truncate(600).ok());
      const int64_t before = world.model->rows;
      const Said said = say(*session, plain(9, 30), 1);
      EXPECT_LE(world.model->rows - before, 30 + kNear);
      EXPECT_EQ(said, say(*other, plain(9, 30), 1));
    }
  }
}

// By default windows are kept, where they are smaller than what there is to keep.
TEST(WindowChats, ByDefault) {
  test::TinyModelSpec spec = Windows::spec(16, false);
  spec.context = 8192;
  const test::LoadedTiny tiny{test::TinyModel(spec)};
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(), &tiny.model());
  const auto cache_of = [&](GeneratorOptions options) {
    return Generator::create(model, nullptr, std::move(options)).value()->make_cache(8192).value();
  };
  GeneratorOptions all;
  all.window_rewind = -1;
  const size_t full = cache_of(all)->memory().resident;
  const auto cache = cache_of({});
  EXPECT_TRUE(cache->wants_points());
  EXPECT_LT(cache->memory().resident, full / 2);
  EXPECT_LT(cache->max_resident(), full / 2);
  GeneratorOptions short_text;
  short_text.max_seq_len = 512;
  const auto of_short = Generator::create(model, nullptr, short_text).value();
  EXPECT_TRUE(of_short->make_cache(512).value()->traits().cuts_exactly);
  GeneratorOptions shifts;
  shifts.shift_context = true;
  EXPECT_NE(cache_of(shifts)->shifting(), nullptr);
  EXPECT_LT(cache_of(shifts)->memory().resident, full / 2);
  shifts.kv_dtype = "q4";  // evaluates again
  EXPECT_TRUE(cache_of(shifts)->wants_points());
}

}  // namespace
}  // namespace gen::generate

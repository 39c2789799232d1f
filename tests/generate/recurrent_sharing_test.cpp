// SPDX-License-Identifier: Apache-2.0
// Sessions of a model with recurrent layers over a pool of blocks: they go on from others' blocks
// where a snapshot of the state lies beside them, give their blocks up when the pool is too small
// and guess meanwhile, and say what a fresh session says that is alone, to the bit. The same as
// random programs is in session_property_test.cpp, and in threads in prefix_concurrency_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/metrics_memory.h"
#include "generate/batch_run.h"
#include "generate/knowing_drafter.h"
#include "generate/prefix_world.h"
#include "generate/request/metric_names.h"
#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

PrefixOptions recurrent(PrefixOptions options) {
  options.recurrent = true;
  return options;
}
/// Nothing to share, and room for all.
PrefixOptions alone(PrefixOptions options = {}) {
  options.capacity = 0;
  return recurrent(options);
}

/// The last border of blocks at or before `n`.
size_t border(size_t n, int32_t size) {
  return n / static_cast<size_t>(size) * static_cast<size_t>(size);
}

TEST(RecurrentSharing, EveryLengthInCommonGivesTheSameBits) {
  const Tokens base = text_of(1, 45);
  for (const auto& [kind, size, chunk] :
       {std::tuple{"fp32", 16, 16}, std::tuple{"fp32", 5, 5}, std::tuple{"fp32", 1, 16},
        std::tuple{"q4", 16, 16}, std::tuple{"fp32", 7, 16}, std::tuple{"fp8", 16, 128}}) {
    PrefixOptions options{.kind = kind, .block_size = size, .chunk = chunk};
    if (size == chunk) options.every = size;
    PrefixWorld plain(alone(options));
    PrefixWorld world(recurrent(options));
    const bool everywhere = size == chunk || size == 1;  // snapshots are taken at all
    for (size_t n = 1; n <= base.size(); n += test::kSanitized ? 5 : 1) {
      SCOPED_TRACE(testing::Message() << kind << " " << size << " " << chunk << " " << n);
      world.clear();
      const Said said = say(world, base, 6);
      EXPECT_EQ(said.cached, 0);
      const Tokens held = first(join(base, said.tokens), base.size() + said.tokens.size() - 1);
      const Tokens prompt = join(first(base, n), {(base[n % base.size()] + 1) % 50, 3, 4, 5});
      const size_t common = static_cast<size_t>(
          std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first -
          held.begin());
      const size_t most = border(std::min({common, prompt.size() - 1, held.size()}), size);
      const int64_t before = world.model->rows;
      const Said warm = say(world, prompt, 5);
      EXPECT_LE(warm.cached, static_cast<int32_t>(most));
      if (everywhere && size > 1) {
        EXPECT_EQ(warm.cached, static_cast<int32_t>(most));
      }
      EXPECT_EQ(world.model->rows - before, static_cast<int64_t>(prompt.size()) - warm.cached + 4);
      EXPECT_EQ(warm, say(plain, prompt, 5));
      // Where the two part there is a snapshot from then on.
      const Tokens third = join(first(base, n), {(base[n % base.size()] + 2) % 50, 6});
      const Said again = say(world, third, 5);
      EXPECT_EQ(again.cached, static_cast<int32_t>(border(n, size)));
      EXPECT_EQ(again, say(plain, third, 5));
    }
  }
}

TEST(RecurrentSharing, APromptThatComesAgainIsAdoptedToItsLastBorder) {
  for (const int32_t size : {16, 5}) {
    for (const int32_t chunk : {128, 16, 3}) {
      const PrefixOptions options{.block_size = size, .chunk = chunk};
      PrefixWorld plain(alone(options));
      PrefixWorld world(recurrent(options));
      for (size_t n = 1; n <= 50; ++n) {
        SCOPED_TRACE(testing::Message() << size << " " << chunk << " " << n);
        const Tokens prompt = text_of(static_cast<uint32_t>(n), n);
        const Said cold = say(world, prompt, 1);
        const Said warm = say(world, prompt, 4);
        EXPECT_EQ(warm.cached, static_cast<int32_t>(border(n - 1, size)));
        const Said want = say(plain, prompt, 4);
        EXPECT_EQ(warm, want);
        EXPECT_EQ(cold.tokens, first(want.tokens, 1));
      }
    }
  }
}

TEST(RecurrentSharing, TheNextTurnOfANewSessionComputesOnlyItself) {
  PrefixWorld world(recurrent({.block_size = 4}));
  PrefixWorld plain(alone({.block_size = 4}));
  Tokens talk = text_of(2, 21);
  for (int turn = 0; turn < 4; ++turn) {
    const Said said = say(world, talk, 7);
    EXPECT_EQ(said, say(plain, talk, 7)) << turn;
    if (turn > 0) {
      // All but the new turn of 5 tokens, and what was not in a full block or never evaluated.
      EXPECT_EQ(said.cached, static_cast<int32_t>(border(talk.size() - 6, 4))) << turn;
    }
    talk = join(join(talk, said.tokens), text_of(30 + static_cast<uint32_t>(turn), 5));
  }
}

// Going back costs no more beside a prefix cache: to the end of the prompt, and to what others
// have.
TEST(RecurrentSharing, CutsAfterAHit) {
  PrefixWorld world(recurrent({.block_size = 8, .chunk = 8, .every = 8}));
  PrefixWorld plain(alone({.block_size = 8}));
  const Tokens all = text_of(3, 25);
  say(world, all, 2);
  for (const int32_t cut : {1, 7, 8, 9, 16, 23, 24, 25, 26, 31, 40, 64}) {
    SCOPED_TRACE(cut);
    const auto session = world.session();
    EXPECT_EQ(say(*session, all, 40).cached, 24);
    const auto fork = session->fork().value();
    ASSERT_TRUE(session->truncate(cut).ok());
    const Tokens other = text_of(6, 9);
    const int64_t before = world.model->rows;
    const Said said = say(*session, other, 6);
    const auto at = static_cast<int64_t>(cut);
    const int64_t from = at / 8 * 8;  // what lies before it must be run again from there
    EXPECT_LE(world.model->rows - before, at - from + 9 + 5);
    EXPECT_EQ(said,
              say(plain, join(first(fork->tokens().value(), static_cast<size_t>(cut)), other), 6));
    const Tokens held = fork->tokens().value();
    EXPECT_EQ(say(*fork, other, 6), say(plain, join(held, other), 6));
  }
}

/// The borders of blocks at which others may begin.
Tokens shared_places(PrefixWorld& world, const Tokens& text) {
  Tokens places;
  for (size_t n = 1; n <= text.size(); ++n) {
    const cache::PrefixHit hit = world.options.prefix_cache->match(
        world.generator()->prefix_domain(), first(text, n), true);
    if (hit.tokens() == n) places.push_back(static_cast<int32_t>(n));
  }
  return places;
}

// An answer passes its snapshots: of its blocks only the last has one. Those of prompts stay.
TEST(RecurrentSharing, AnAnswerLeavesOneSnapshot) {
  PrefixWorld world(recurrent({.block_size = 4, .every = 0}));
  const auto session = world.session();
  say(*session, text_of(14, 22), 30);
  const Tokens all = session->tokens().value();
  ASSERT_EQ(all.size(), 52U);  // of which 51 have run
  EXPECT_EQ(shared_places(world, all), (Tokens{20, 48}));
  // The next prompt begins behind 51 tokens and ends before its last one.
  say(*session, text_of(15, 9), 10);
  EXPECT_EQ(shared_places(world, session->tokens().value()), (Tokens{20, 48, 60, 68}));
}

// Within a prompt others may begin every so many tokens, at the ends of blocks before these.
TEST(RecurrentSharing, EverySoManyTokens) {
  for (const int32_t chunk : {128, 16, 5}) {
    PrefixWorld world(recurrent({.block_size = 4, .chunk = chunk, .every = 18}));
    const Tokens prompt = text_of(16, 80);
    say(world, prompt, 1);
    EXPECT_EQ(shared_places(world, prompt), (Tokens{16, 36, 52, 72, 76, 80})) << chunk;
  }
}

// And where messages begin and end: at the ends of blocks before these.
TEST(RecurrentSharing, BordersOfMessages) {
  for (const int32_t chunk : {128, 16, 5}) {
    PrefixWorld world(recurrent({.block_size = 4, .chunk = chunk, .every = 0}));
    const Tokens prompt = text_of(18, 62);
    const std::vector<int32_t> borders = {33, 50};
    const auto session = world.session();
    std::optional<GenResult> result;
    ASSERT_TRUE(session
                    ->generate({.text = {}, .tokens = prompt, .borders = borders}, params_of(1),
                               nullptr, nullptr, &result)
                    .ok());
    EXPECT_EQ(result->usage.prompt_evaluated, 62);
    EXPECT_EQ(shared_places(world, prompt), (Tokens{32, 48, 60})) << chunk;
    for (const int32_t border : borders) {
      const auto fork = session->fork().value();
      ASSERT_TRUE(fork->truncate(border + 2).ok());
      ASSERT_TRUE(fork->generate({.text = {}, .tokens = first(prompt, 7)}, params_of(1), nullptr,
                                 nullptr, &result)
                      .ok());
      EXPECT_EQ(result->usage.prompt, 7);
      EXPECT_EQ(result->usage.prompt_evaluated, 2 + 7) << chunk;
    }
  }
}

// Who goes on from another's blocks keeps its own snapshots of what lies before.
TEST(RecurrentSharing, WhoAdoptsKeepsItsOwn) {
  PrefixWorld world(recurrent({.block_size = 8, .chunk = 128, .every = 0}));
  PrefixWorld plain(alone({.block_size = 8}));
  const Tokens all = text_of(17, 60);
  say(world, all, 2);
  const auto session = world.session();
  ASSERT_TRUE(session->append({.text = {}, .tokens = first(all, 30)}).ok());
  const int64_t begin = world.model->rows;
  ASSERT_TRUE(session->append({.text = {}, .tokens = Tokens(all.begin() + 30, all.end())}).ok());
  EXPECT_EQ(world.model->rows - begin, 3);  // from 56 on, without the last token
  ASSERT_TRUE(session->truncate(31).ok());
  const int64_t before = world.model->rows;
  EXPECT_EQ(say(*session, {9}, 1), say(plain, join(first(all, 31), {9}), 1));
  EXPECT_EQ(world.model->rows - before, 31 - 29 + 1);
}

// Where a text parted from another is of no account once it is another text.
TEST(RecurrentSharing, ScoresAfterACut) {
  const Tokens base = text_of(4, 41);
  const Tokens tail = text_of(5, 5);
  PrefixWorld plain(alone());
  PrefixWorld world(recurrent({.block_size = 4, .chunk = 128}));
  say(world, base, 1);
  std::vector<std::vector<float>> scores;
  for (PrefixWorld* one : {&plain, &world}) {
    const auto session = one->session();
    ASSERT_TRUE(session->append({.text = {}, .tokens = first(base, 9)}).ok());
    ASSERT_TRUE(
        session->append({.text = {}, .tokens = Tokens(base.begin() + 9, base.begin() + 30)}).ok());
    ASSERT_TRUE(session->truncate(9).ok());
    const int64_t before = one->model->rows;
    scores.emplace_back();
    ASSERT_TRUE(session->score({.text = {}, .tokens = tail}, &scores.back(), nullptr).ok());
    EXPECT_EQ(one->model->rows - before, 5);
  }
  EXPECT_EQ(scores[0], scores[1]);
}

// A session that was cut into a block which the prefix cache has, too, and finds no other to copy
// it to, steps back.
TEST(RecurrentSharing, StepsBackFromASharedBlock) {
  PrefixWorld plain(alone());
  for (const int32_t first_prompt : {5, 14, 17}) {
    PrefixWorld world(recurrent({.block_size = 8}));
    // It waits for nobody.
    world.options.max_starving = world.options.least_starving = std::chrono::hours(1);
    const auto session = world.session();
    const Tokens prompt = text_of(6, 22);
    const auto at = static_cast<size_t>(first_prompt);
    ASSERT_TRUE(session->append({.text = {}, .tokens = first(prompt, at)}).ok());
    say(*session, Tokens(prompt.begin() + first_prompt, prompt.end()), 8);
    ASSERT_TRUE(session->truncate(23).ok());
    world.leave_free(0);
    const Tokens held = session->tokens().value();
    const Said said = say(*session, {9}, 1);
    EXPECT_TRUE(said.status.ok()) << said.status.message();
    EXPECT_EQ(said, say(plain, join(held, {9}), 1)) << first_prompt;
  }
}

struct Order {
  Tokens prompt;
  int32_t n;
  int32_t priority;
};

std::vector<Order> orders(uint32_t seed) {
  std::vector<Order> made;
  for (uint32_t i = 0; i < 7; ++i) {
    const uint32_t kind = seed * 31 + i;
    made.push_back({join(first(text_of(kind % 3, 40), 5 + 7 * kind % 30), text_of(kind, i % 4)),
                    10 + static_cast<int32_t>(5 * kind % 20), static_cast<int32_t>(kind % 3)});
  }
  return made;
}

// A batch that does not fit takes turns: with and without guesses and a prefix cache, in passes of
// any size.
TEST(RecurrentSharing, WhoGivesBlocksUpComesBackTheSame) {
  double preempted = 0;
  double adopted = 0;
  int64_t accepted = 0;
  PrefixWorld plain(alone());
  uint32_t seed = 0;
  for (const int32_t capacity : {0, 30}) {
    for (const int32_t chunk : {1, 3, 5, 7, 16, 128}) {
      for (const double right : {-1.0, 0.5, 1.0}) {
        SCOPED_TRACE(testing::Message() << capacity << " " << chunk << " " << right);
        PrefixWorld world(recurrent(
            {.block_size = 4, .capacity = std::max(capacity, 0), .chunk = chunk, .sequences = 5}));
        world.leave_free(24);
        const auto metrics = std::make_shared<MetricsMemory>();
        world.options.metrics = metrics;
        const auto drafter = std::make_shared<KnowingDrafter>(
            KnowingDrafter::Options{.p = std::max(right, 0.0), .rows = 4});
        if (right >= 0) world.options.drafter = drafter;
        const std::vector<Order> all = orders(++seed);
        std::vector<Said> want;
        std::vector<BatchRequest> requests;
        for (const Order& order : all) {
          want.push_back(say(plain, order.prompt, order.n));
          drafter->learn(join(order.prompt, want.back().tokens));
          BatchRequest request;
          request.prompt.tokens = order.prompt;
          request.params = params_of(order.n);
          request.urgency.priority = order.priority;
          requests.push_back(request);
        }
        const auto results = run_batch(*world.generator(), requests, nullptr, nullptr);
        for (size_t i = 0; i < results.size(); ++i) {
          EXPECT_TRUE(results[i].status.ok()) << results[i].status.message();
          EXPECT_EQ((Said{results[i].status, results[i].tokens, results[i].logprobs}), want[i])
              << i;
        }
        const auto held =
            capacity > 0 ? static_cast<size_t>(world.options.prefix_cache->size()) : size_t{0};
        EXPECT_EQ(world.pool->blocks().available() + held, 24U);
        preempted += metrics->snapshot().value(metric::kPreemptions);
        adopted += metrics->snapshot().value(metric::kPromptCachedTokens);
        accepted += drafter->accepted;
      }
    }
  }
  EXPECT_GT(preempted, 30);
  EXPECT_GT(adopted, 40);
  EXPECT_GT(accepted, 300);
}

// Whose blocks are taken in the middle of its text, wherever that is, catches up in passes that end
// at borders; only what comes behind all of it is guessed.
TEST(RecurrentSharing, ACallThatGivesBlocksUpCatchesUp) {
  PrefixWorld plain(alone());
  const Tokens prompt = text_of(21, 6);
  const Tokens other = text_of(22, 20);
  const Said want = say(plain, prompt, 24);
  const Said want_other = say(plain, other, 9);
  double preempted = 0;
  for (const int32_t chunk : {2, 3, 5, 16}) {
    for (int32_t length = 7; length < 29; ++length) {
      SCOPED_TRACE(testing::Message() << chunk << " " << length);
      PrefixWorld world(recurrent({.block_size = 4, .chunk = chunk}));
      world.leave_free(9);
      const auto metrics = std::make_shared<MetricsMemory>();
      world.options.metrics = metrics;
      const auto drafter = std::make_shared<KnowingDrafter>(KnowingDrafter::Options{.rows = 1});
      drafter->learn(join(prompt, want.tokens));
      world.options.drafter = drafter;
      const auto first = world.session();
      auto low = first->open({.text = {}, .tokens = prompt}, params_of(24)).value();
      while (first->length() < length) ASSERT_TRUE(low->next().ok());
      const auto second = world.session();
      auto urgent =
          Generation::open(second, {.text = {}, .tokens = other}, params_of(9), {.priority = 5})
              .value();
      while (low != nullptr || urgent != nullptr) {
        for (auto& [stream, said] : {std::tie(low, want), std::tie(urgent, want_other)}) {
          if (stream == nullptr || (static_cast<void>(stream->poll()), !stream->ended())) continue;
          const GenResult& result = stream->result();
          EXPECT_EQ((Said{result.status, result.tokens, result.logprobs}), said);
          stream.reset();
        }
      }
      preempted += metrics->snapshot().value(metric::kPreemptions);
    }
  }
  EXPECT_GT(preempted, 20);
}

// A stream whose blocks were taken is closed before it has noticed, and any allocation fails there.
TEST(RecurrentSharing, ClosedWithoutMemoryForANewState) {
  PrefixWorld plain(alone());
  const Tokens prompt = text_of(21, 6);
  const Tokens more = {1, 2, 3};
  for (size_t nth = 0;; ++nth) {
    PrefixWorld world(alone({.block_size = 4}));
    world.leave_free(9);
    const auto session = world.session();
    auto stream = session->open({.text = {}, .tokens = prompt}, params_of(24)).value();
    while (session->length() < 15) ASSERT_TRUE(stream->next().ok());
    const auto other = world.session();
    auto urgent = Generation::open(other, {.text = {}, .tokens = text_of(22, 20)}, params_of(9),
                                   {.priority = 5})
                      .value();
    do {
      static_cast<void>(stream->poll());
      ASSERT_FALSE(stream->ended());
      static_cast<void>(urgent->poll());
    } while (session->cache().length() > 0);
    const size_t before = test::news;
    test::fail_new_at = before + nth;
    stream.reset();
    test::fail_new_at = ~size_t{0};
    const bool reached = test::news - before > nth;
    urgent.reset();
    const Tokens text = session->tokens().value();
    EXPECT_GE(text.size(), 15U);
    EXPECT_EQ(say(*session, more, 6), say(plain, join(text, more), 6)) << nth;
    if (!reached) break;
  }
}

// An idle session's blocks go to who needs them; forked, saved or gone on with, it is what it was.
TEST(RecurrentSharing, IdleSessionsGiveWay) {
  PrefixWorld plain(alone());
  const Tokens prompt = text_of(8, 20);
  const Tokens more = text_of(9, 5);
  for (int use = 0; use < 4; ++use) {
    SCOPED_TRACE(use);
    PrefixWorld world(alone({.block_size = 4}));
    world.leave_free(12);
    const auto session = world.session();
    const Said said = say(*session, prompt, 10);
    ASSERT_TRUE(said.status.ok());
    const Tokens held = session->tokens().value();
    {
      const auto newcomer = world.session();
      EXPECT_EQ(say(*newcomer, text_of(10, 30), 10), say(plain, text_of(10, 30), 10));
      EXPECT_EQ(session->cache().length(), 0);
    }
    EXPECT_EQ(session->tokens().value(), held);
    auto other = session;
    Tokens text = held;
    if (use == 1) other = session->fork().value();
    if (use == 2) {
      other = world.session();
      ASSERT_TRUE(other->load(state_of(*session)).ok());
    }
    if (use == 3) {
      ASSERT_TRUE(other->truncate(13).ok());
      text = first(held, 13);
    }
    const int64_t before = world.model->rows;
    EXPECT_EQ(say(*other, more, 6), say(plain, join(text, more), 6));
    EXPECT_EQ(world.model->rows - before, static_cast<int64_t>(text.size()) + 5 + 5);
  }
}

TEST(RecurrentSharing, UnderPressureTheSameBits) {
  for (const int32_t size : {16, 5}) {
    const PrefixOptions options{.block_size = size};
    PrefixWorld plain(alone(options));
    PrefixWorld world(recurrent(options));
    const auto need = static_cast<size_t>((60 + size - 1) / size);
    world.leave_free(need);
    int32_t cached = 0;
    for (uint32_t round = 0; round < (test::kSanitized ? 16 : 60); ++round) {
      const Tokens prompt =
          join(first(text_of(40 + round / 4 % 3, 50), 10 + 7 * round % 41), text_of(round, 3));
      const auto n = static_cast<int32_t>(61 - prompt.size());
      const Said said = say(world, prompt, n);
      ASSERT_EQ(said, say(plain, prompt, n)) << size << " " << round;
      cached += said.cached;
      ASSERT_EQ(world.pool->blocks().available() +
                    static_cast<size_t>(world.options.prefix_cache->size()),
                need);
    }
    EXPECT_GT(cached, test::kSanitized ? 20 : 100);
  }
}

TEST(RecurrentSharing, EveryAllocationMayFail) {
  const Tokens all = text_of(12, 40);
  const Tokens prompt = join(first(all, 29), {1, 2, 3});
  PrefixWorld plain(alone({.block_size = 8}));
  const Said want = say(plain, prompt, 10);
  PrefixWorld world(recurrent({.block_size = 8}));
  int kept = 0;
  for (size_t nth = 0;; ++nth) {
    world.clear();
    say(world, all, 2);
    const auto session = world.session();
    Status status;
    std::optional<GenResult> result;
    bool threw = false;
    const CallParams params = params_of(10);
    const size_t before = test::news;
    test::fail_new_at = before + nth;
    try {
      status = session->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
    } catch (const std::bad_alloc&) {
      threw = true;  // before generation began
    }
    test::fail_new_at = ~size_t{0};
    const bool reached = test::news - before > nth;
    if (threw || !status.ok()) {
      EXPECT_TRUE(threw || status.code() == Code::kOutOfMemory) << status.message();
      EXPECT_EQ(session->length(), 0);
    } else {
      EXPECT_EQ((Said{status, result->tokens, result->logprobs}), want) << nth;
      ++kept;
    }
    EXPECT_EQ(say(world, prompt, 10), want) << nth;
    ASSERT_TRUE(session->reset().ok());
    EXPECT_EQ(say(*session, prompt, 10), want) << nth;
    if (!reached) break;
  }
  EXPECT_GT(kept, 3);  // lists and snapshots that could not be made only cost the hit
  world.clear();
  EXPECT_EQ(world.pool->blocks().available(), world.pool->blocks().capacity());
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Proves that a session which goes on from others' blocks says the same, bit for bit, as one that
// computes everything: for every length in common and kind of cache, after forks and cuts, with
// models beside each other, under pressure, and with every allocation failing; and that it computes
// only what is new.
#include <gtest/gtest.h>

#include <algorithm>

#include "cache/sequence/cache_state.h"
#include "generate/batch_run.h"
#include "generate/prefix_world.h"
#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

Said cold(const PrefixOptions& like, const Tokens& prompt, int32_t n) {
  PrefixOptions options = like;
  options.capacity = 0;
  PrefixWorld world(options);
  return say(world, prompt, n);
}

TEST(PrefixReuse, EveryLengthInCommonGivesTheSameBits) {
  const Tokens base = text_of(1, 45);
  for (const auto& [kind, size] :
       {std::pair{"fp32", 16}, std::pair{"fp32", 5}, std::pair{"fp32", 1}, std::pair{"fp16", 16},
        std::pair{"fp8", 16}, std::pair{"q4", 16}, std::pair{"q4", 7}, std::pair{"q3", 16},
        std::pair{"fp8/q4", 16}, std::pair{"q4:rotated", 16}}) {
    const PrefixOptions options{.kind = kind, .block_size = size};
    PrefixWorld plain({.kind = kind, .block_size = size, .capacity = 0});
    PrefixWorld world(options);
    for (size_t n = 1; n <= base.size(); n += (n < 36 && n > 14) || size < 16 ? 1 : 4) {
      if (test::kSanitized && n % 5 > 1 && n != 17 && n != 32) continue;
      SCOPED_TRACE(testing::Message() << kind << " " << size << " " << n);
      world.clear();
      const Said said = say(world, base, 6);
      EXPECT_EQ(said.cached, 0);
      // What the first has evaluated, as far as its blocks are full.
      const Tokens held = first(join(base, said.tokens), base.size() + said.tokens.size() - 1);
      const size_t kept = held.size() / static_cast<size_t>(size) * static_cast<size_t>(size);
      const Tokens prompt = join(first(base, n), {(base[n % base.size()] + 1) % 50, 3, 4, 5});
      const size_t common = static_cast<size_t>(
          std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first -
          held.begin());
      const int64_t before = world.model->rows;
      const Said warm = say(world, prompt, 5);
      const size_t cached = std::min({common, kept, prompt.size() - 1});
      EXPECT_EQ(warm.cached, static_cast<int32_t>(cached));
      EXPECT_EQ(world.model->rows - before, static_cast<int64_t>(prompt.size() - cached + 4));
      EXPECT_TRUE(warm == say(plain, prompt, 5));
      // The beginning alone: its last token is evaluated, so that there are logits.
      const Said again = say(world, first(base, n), 3);
      EXPECT_EQ(again.cached, static_cast<int32_t>(std::min(n - 1, kept)));
      EXPECT_TRUE(again == say(plain, first(base, n), 3));
    }
  }
}

TEST(PrefixReuse, TheNextTurnOfANewSessionComputesOnlyItself) {
  const PrefixOptions options{.block_size = 4};
  PrefixWorld world(options);
  PrefixWorld plain({.block_size = 4, .capacity = 0});
  Tokens talk = text_of(2, 21);
  for (int turn = 0; turn < 4; ++turn) {
    const Said said = say(world, talk, 7);
    const Said alone = say(plain, talk, 7);
    EXPECT_TRUE(said == alone) << turn;
    if (turn > 0) {
      // All but the new turn of 5 tokens, and what was not in a full block or never evaluated.
      const auto before = static_cast<int32_t>(talk.size()) - 5;
      EXPECT_EQ(said.cached, (before - 1) / 4 * 4) << turn;
    }
    talk = join(join(talk, said.tokens), text_of(30 + static_cast<uint32_t>(turn), 5));
  }
}

TEST(PrefixReuse, OnlyWhatIsAskedSinceTheLastCallCounts) {
  PrefixWorld world({.block_size = 4});
  const Tokens all = text_of(3, 30);
  say(world, all, 2);
  const auto session = world.session();
  ASSERT_TRUE(session->append({.text = {}, .tokens = first(all, 10)}).ok());
  EXPECT_EQ(world.model->rows, 31);  // append found its 9 tokens
  const Tokens rest(all.begin() + 10, all.begin() + 25);
  const Said said = say(*session, rest, 2);
  EXPECT_EQ(said.cached, 9 + 14);  // what was appended is of the prompt
  EXPECT_TRUE(said == cold({.block_size = 4}, first(all, 25), 2));
  // What is already held is not counted, nor is what a shorter session can make use of.
  const Said more = say(*session, text_of(4, 3), 2);
  EXPECT_EQ(more.cached, 0);
  // Nor is what was appended and cut off again.
  const auto other = world.session();
  ASSERT_TRUE(other->append({.text = {}, .tokens = first(all, 10)}).ok());
  ASSERT_TRUE(other->truncate(4).ok());
  EXPECT_EQ(say(*other, text_of(5, 15), 2).cached, 4);
}

TEST(PrefixReuse, ForksCutsAndStatesAfterAHit) {
  const PrefixOptions options{.block_size = 8};
  const Tokens all = text_of(5, 40);
  PrefixWorld world(options);
  PrefixWorld plain({.block_size = 8, .capacity = 0});
  say(world, all, 2);
  for (const int32_t cut : {1, 7, 8, 9, 13, 16, 23, 24, 25, 31}) {
    SCOPED_TRACE(cut);
    const auto session = world.session();
    EXPECT_EQ(say(*session, first(all, 30), 3).cached, 29);
    const auto fork = session->fork().value();
    ASSERT_TRUE(session->truncate(cut).ok());
    const Tokens other = text_of(6, 9);
    const Said expected = say(plain, join(session->tokens().value(), other), 6);
    EXPECT_TRUE(say(*session, other, 6) == expected);
    const Tokens held = fork->tokens().value();
    EXPECT_TRUE(say(*fork, other, 6) == say(plain, join(held, other), 6));
    ASSERT_TRUE(fork->reset().ok());
    EXPECT_TRUE(say(*fork, first(all, 35), 4) == say(plain, first(all, 35), 4));
    // Nobody has written into what is kept.
    const Said again = say(world, all, 5);
    EXPECT_EQ(again.cached, 39);
    EXPECT_TRUE(again == say(plain, all, 5));
  }
  const auto session = world.session();
  say(*session, first(all, 30), 3);
  const Tokens held = session->tokens().value();
  std::vector<std::byte> state;
  ASSERT_TRUE(session
                  ->save([&](const cache::StateContents& contents) -> Status {
                    GEN_ASSIGN(const size_t size, cache::state_size(contents));
                    state.resize(size);
                    return cache::save_state(cache::StateKind::kSession, contents, state);
                  })
                  .ok());
  const auto restored = world.session();
  ASSERT_TRUE(restored->load(state).ok());
  EXPECT_TRUE(say(*restored, {1, 2, 3}, 6) == say(plain, join(held, {1, 2, 3}), 6));
}

// A session whose context has shifted holds what no evaluation of its tokens gives; saved and
// loaded where others share, it keeps that to itself.
TEST(PrefixReuse, WhatWasMovedOrLoadedIsNotShared) {
  PrefixWorld shifting({.capacity = 0});
  shifting.options.cache_factory = nullptr;
  shifting.options.shift_context = true;
  const auto session = shifting.session();
  say(*session, text_of(20, 120), 20);
  const Tokens held = session->tokens().value();
  ASSERT_LT(held.size(), 120U);
  std::vector<std::byte> state;
  ASSERT_TRUE(session
                  ->save([&](const cache::StateContents& contents) -> Status {
                    GEN_ASSIGN(const size_t size, cache::state_size(contents));
                    state.resize(size);
                    return cache::save_state(cache::StateKind::kSession, contents, state);
                  })
                  .ok());
  PrefixWorld world;
  PrefixWorld plain({.capacity = 0});
  const auto loaded = world.session();
  ASSERT_TRUE(loaded->load(state).ok());
  EXPECT_EQ(say(*loaded, {1, 2, 3}, 20).cached, 0);
  const auto fork = loaded->fork().value();
  say(*fork, {4}, 3);
  EXPECT_EQ(world.options.prefix_cache->size(), 0);
  EXPECT_TRUE(say(world, held, 5) == say(plain, held, 5));
  // What it computes anew, or takes from others, is as good as anybody's.
  ASSERT_TRUE(loaded->reset().ok());
  EXPECT_GT(say(*loaded, join(held, {1}), 2).cached, 0);
  say(*loaded, text_of(21, 30), 2);
  EXPECT_GT(world.options.prefix_cache->size(), static_cast<int32_t>(held.size() / 16));
}

TEST(PrefixReuse, ScoresAreTheSame) {
  const Tokens all = text_of(7, 50);
  PrefixWorld world;
  PrefixWorld plain({.capacity = 0});
  say(world, all, 2);
  std::vector<std::vector<float>> scores;
  for (PrefixWorld* one : {&plain, &world}) {
    const auto session = one->session();
    ASSERT_TRUE(session->append({.text = {}, .tokens = first(all, 33)}).ok());
    scores.emplace_back();
    ASSERT_TRUE(session
                    ->score({.text = {}, .tokens = Tokens(all.begin() + 33, all.end())},
                            &scores.back(), nullptr)
                    .ok());
  }
  EXPECT_EQ(scores[0].size(), 17U);
  EXPECT_EQ(scores[0], scores[1]);
  EXPECT_EQ(world.model->rows, 50 + 1 + 17);  // appending 33 took 32 that were there
}

TEST(PrefixReuse, ModelsAndFormatsNeverShare) {
  const Tokens all = text_of(8, 40);
  PrefixWorld one({}, 1);
  PrefixWorld two({}, 2);
  // The same tree and pool for both, which only their names keep apart.
  two.pool = one.pool;
  two.options.prefix_cache = one.options.prefix_cache;
  EXPECT_NE(one.model->traits().fingerprint, two.model->traits().fingerprint);
  say(one, all, 3);
  const Said said = say(two, all, 3);
  EXPECT_EQ(said.cached, 0);
  PrefixWorld plain({.capacity = 0}, 2);
  EXPECT_TRUE(said == say(plain, all, 3));
  EXPECT_EQ(say(two, all, 3).cached, 32);
  EXPECT_EQ(say(one, all, 3).cached, 32);
  EXPECT_EQ(one.options.prefix_cache->size(), 4);

  // Another name of a format is another domain, and blocks of another pool are never taken.
  PrefixWorld three({.kind = "fp16"}, 1);
  three.options.prefix_cache = one.options.prefix_cache;
  EXPECT_EQ(say(three, all, 3).cached, 0);
  PrefixWorld four({}, 1);
  four.options.prefix_cache = one.options.prefix_cache;
  const Said foreign = say(four, all, 3);
  EXPECT_EQ(foreign.cached, 0);
  EXPECT_TRUE(foreign == cold({}, all, 3));
  EXPECT_EQ(one.options.prefix_cache->size(), 4);
}

// A pool that is just large enough for one session holds what earlier ones left, and gives it up
// block by block.
TEST(PrefixReuse, UnderPressureTheSameBits) {
  for (const int32_t size : {16, 5}) {
    const PrefixOptions options{.block_size = size};
    PrefixWorld plain({.block_size = size, .capacity = 0});
    PrefixWorld world(options);
    const size_t need = static_cast<size_t>((60 + size - 1) / size);
    world.leave_free(need);
    int32_t cached = 0;
    for (uint32_t round = 0; round < (test::kSanitized ? 16 : 60); ++round) {
      // Families of texts that have a beginning in common, of all lengths.
      const Tokens prompt =
          join(first(text_of(40 + round / 4 % 3, 50), 10 + 7 * round % 41), text_of(round, 3));
      const auto n = static_cast<int32_t>(61 - prompt.size());
      const Said said = say(world, prompt, n);
      ASSERT_TRUE(said == say(plain, prompt, n)) << size << " " << round;
      cached += said.cached;
      ASSERT_EQ(world.pool->blocks().available() +
                    static_cast<size_t>(world.options.prefix_cache->size()),
                need);
    }
    EXPECT_GT(cached, test::kSanitized ? 20 : 100);
    // One more than there is room for, and everything is as before.
    const auto session = world.session();
    const Said full = say(*session, text_of(99, need * static_cast<size_t>(size) + 1), 1);
    EXPECT_EQ(full.status.code(), Code::kPoolExhausted);
    EXPECT_EQ(session->length(), 0);
    EXPECT_TRUE(say(*session, text_of(98, 20), 5) == say(plain, text_of(98, 20), 5));
  }
}

// Sessions that share a beginning; one of them is stopped before each of its passes.
TEST(PrefixReuse, CancelAtEveryStepDisturbsNoSibling) {
  const Tokens all = text_of(9, 50);
  const Tokens tail = text_of(10, 6);
  PrefixWorld plain({.block_size = 4, .capacity = 0, .chunk = 7});
  const Tokens prompt = join(first(all, 30), tail);
  const Said alone = say(plain, prompt, 8);
  for (int step = 0; step < 16; ++step) {
    for (const bool warm : {true, false}) {
      PrefixWorld world({.block_size = 4, .chunk = 7});
      const auto sibling = world.session();
      const Said first_half = say(*sibling, warm ? first(all, 40) : first(all, 17), 3);
      const auto victim = world.session();
      int countdown = step;
      world.model->before_forward = [&] {
        if (countdown-- == 0) victim->cancel();
      };
      const Said said = say(*victim, prompt, 8);
      world.model->before_forward = nullptr;
      const bool stopped = said.status.code() == Code::kCancelled;
      ASSERT_TRUE(stopped || said.status.ok());
      EXPECT_TRUE(stopped || said == alone);
      // It goes on from where it was left, so does its sibling, and a new one starts from both.
      const Tokens held = victim->tokens().value();
      ASSERT_EQ(held, first(join(prompt, alone.tokens), held.size()));
      if (!held.empty()) {
        EXPECT_TRUE(say(*victim, tail, 4) == say(plain, join(held, tail), 4)) << step;
      }
      const Tokens siblings = sibling->tokens().value();
      EXPECT_TRUE(say(*sibling, tail, 4) == say(plain, join(siblings, tail), 4)) << step;
      EXPECT_TRUE(say(world, prompt, 8) == alone) << step;
    }
  }
}

TEST(PrefixReuse, BatchesFindWhatOthersHaveJustComputed) {
  const Tokens system = text_of(11, 60);
  PrefixWorld plain({.block_size = 8, .capacity = 0});
  PrefixWorld world({.block_size = 8});
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 9; ++i) prompts.push_back(join(system, text_of(50 + i, 1 + i)));
  std::vector<BatchRequest> requests;
  for (const Tokens& prompt : prompts) {
    BatchRequest request;
    request.prompt.tokens = prompt;
    request.params = params_of(5);
    requests.push_back(request);
  }
  const std::vector<GenResult> results = run_batch(*world.generator(), requests, nullptr, nullptr);
  int32_t cached = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].status.ok()) << results[i].status.message();
    const Said said{{}, results[i].tokens, results[i].logprobs, 0};
    EXPECT_TRUE(said == say(plain, prompts[i], 5)) << i;
    cached += results[i].usage.prompt_cached;
  }
  EXPECT_GE(cached, 5 * 56);  // at least those that began after the first were done
  EXPECT_LT(world.model->rows, plain.model->rows);
}

TEST(PrefixReuse, EveryAllocationMayFail) {
  const Tokens all = text_of(12, 40);
  const Tokens prompt = join(first(all, 29), {1, 2, 3});
  PrefixWorld plain({.block_size = 8, .capacity = 0});
  const Said alone = say(plain, prompt, 6);
  PrefixWorld world({.block_size = 8});
  int kept = 0;
  for (size_t nth = 0;; ++nth) {
    world.clear();
    say(world, all, 2);
    const auto session = world.session();
    Status status;
    std::optional<GenResult> result;
    bool threw = false;
    const CallParams params = params_of(6);
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
      EXPECT_TRUE((Said{status, result->tokens, result->logprobs} == alone)) << nth;
      ++kept;
    }
    EXPECT_TRUE(say(world, prompt, 6) == alone) << nth;
    ASSERT_TRUE(session->reset().ok());
    EXPECT_TRUE(say(*session, prompt, 6) == alone) << nth;
    if (!reached) break;
  }
  EXPECT_GT(kept, 1);  // lists that could not be made only cost the hit
  world.clear();
  EXPECT_EQ(world.pool->blocks().available(), world.pool->blocks().capacity());
}

}  // namespace
}  // namespace gen::generate

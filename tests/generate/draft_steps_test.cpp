// SPDX-License-Identifier: Apache-2.0
// Steps with drafts: they allocate nothing once they have run for a while, whatever guesses;
// sessions that are polled share them;
// without memory for a drafter a call says the same text, and the metric counts; and 64 sessions of
// every drafter together, each in a thread of its own, say what each says alone. Under the thread
// sanitizer the last one looks for races.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics_memory.h"
#include "generate/cache_forms.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/run.h"
#include "generate/request/metric_names.h"
#include "generate/small_drafter.h"
#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

std::shared_ptr<Drafter> layers_drafter(int32_t most) {
  ModelDrafter::Options options;
  options.most = most;
  options.vocab = kFormsVocab;
  options.context = kFormsContext;
  options.prompt_rows = 64;
  options.memory = &engine::system_memory();
  return ModelDrafter::create(forms_place(false).model.first_layers(1).value(), options).value();
}

std::vector<std::pair<const char*, std::shared_ptr<Drafter>>> all_drafters() {
  const auto suffix = [] {
    return std::make_shared<SuffixLookup>(SuffixLookup::Options{.most = 5, .recent = 2000});
  };
  return {{"none", nullptr},
          {"n-gram", std::make_shared<NgramLookup>(2, 5)},
          {"suffix", suffix()},
          {"the model", small_drafter(4, true, 64)},
          {"another model", small_drafter(4, false, 64)},
          {"first layers", layers_drafter(3)},
          {"suffix, then a model",
           std::make_shared<DrafterList>(suffix(), small_drafter(3, false, 64))}};
}

std::shared_ptr<const Generator> generator_with(std::shared_ptr<Drafter> drafter,
                                                DraftPolicy policy = {},
                                                std::shared_ptr<Metrics> metrics = nullptr) {
  GeneratorOptions options;
  options.drafter = std::move(drafter);
  options.draft_policy = policy;
  options.metrics = std::move(metrics);
  options.max_sequences = 64;
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < kFormsVocab - 2; ++i) {
    pieces.push_back(std::string(1, static_cast<char>('a' + i % 26)));
  }
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(),
                                                  &forms_place(false).model);
  return Generator::create(model, std::make_shared<test::FakeTokenizer>(pieces), options).value();
}

CallParams params_for(int32_t n, int32_t which) {
  CallParams params;
  params.stops.max_new_tokens = n;
  params.stops.ignore_eos = true;
  params.sampling.seed = static_cast<uint64_t>(which);
  params.sampling.temperature = which % 3 == 0 ? 0.0 : 0.8;
  params.sampling.gumbel = which % 3 == 2;
  params.sampling.repetition_penalty = which % 4 == 1 ? 1.2 : 1.0;
  params.sampling.penalty_window = 16;  // else what counts them grows with the text
  return params;
}

/// Has each call say `n` tokens, steps being for all that are not that far.
void say(std::span<const std::unique_ptr<Generation>> calls, std::vector<int32_t>* said,
         int32_t n) {
  for (bool behind = true; behind;) {
    behind = false;
    for (size_t i = 0; i < calls.size(); ++i) {
      if ((*said)[i] == n) continue;
      behind = true;
      if (calls[i]->poll() != nullptr) ++(*said)[i];
    }
  }
}

/// Allocations of 20 tokens in the middle of texts, on a generator that has run before. What holds
/// a text doubles before and behind them, and what a drafter needs for a session is made before, as
/// everything is guessed at first.
size_t allocations(std::shared_ptr<Drafter> drafter, DraftPolicy policy, int32_t which,
                   size_t sessions) {
  const auto all = std::make_shared<std::atomic<bool>>(true);
  policy.fixed = all;
  const auto generator = generator_with(std::move(drafter), policy);
  size_t count = 0;
  for (int32_t round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<Session>> open;
    std::vector<std::unique_ptr<Generation>> calls;
    for (uint32_t id = 0; id < sessions; ++id) {
      const Tokens prompt = text_of(1 + id, 40);
      open.push_back(generator->new_session().value());
      calls.push_back(
          open.back()->open({.text = {}, .tokens = prompt}, params_for(50, which)).value());
    }
    std::vector<int32_t> said(sessions);
    *all = true;
    say(calls, &said, 20);
    *all = false;
    say(calls, &said, 28);
    const size_t before = test::news;
    say(calls, &said, 48);
    count = test::news - before;
  }
  return count;
}

/// Each draft policy. No real clock is used: with that of kAuto a pass takes as long as a draft, so
/// that all drafts pay, and only its plain steps have none.
std::vector<DraftPolicy> all_policies() {
  std::vector<DraftPolicy> all(3);
  all[0].kind = DraftPolicy::Kind::kAlways;
  all[1].kind = DraftPolicy::Kind::kAdaptive;
  all[2].kind = DraftPolicy::Kind::kAuto;
  all[2].clock = [ticks = std::make_shared<double>(0)] { return ++*ticks; };
  return all;
}

TEST(DraftSteps, AllocateNothingInTheLongRun) {
  test::Thinned thinned(5);
  for (int32_t which = 0; which < 6; ++which) {
    for (DraftPolicy policy : all_policies()) {
      policy.rejects = which >= 3;
      for (const auto& [name, drafter] : all_drafters()) {
        for (const size_t sessions : {size_t{1}, size_t{3}}) {
          if (thinned.skips()) continue;
          EXPECT_EQ(allocations(drafter, policy, which, sessions), 0)
              << name << ", " << which << ", policy " << static_cast<int32_t>(policy.kind) << ", "
              << sessions;
        }
      }
    }
  }
}

/// What comes of a call for each allocation that fails behind its first token: texts that are the
/// one that is wanted, or ended for want of memory; and drafts that the metric has.
struct Swept {
  int32_t ended = 0;
  double failed_drafts = 0;
};

Swept sweep(const std::shared_ptr<Drafter>& drafter, const Tokens& want) {
  Swept swept;
  for (size_t at = 0; at < 60; ++at) {
    const auto metrics = std::make_shared<MetricsMemory>();
    const auto session = generator_with(drafter, {}, metrics)->new_session().value();
    const Tokens prompt = text_of(2, 9);
    auto call = session->open({.text = {}, .tokens = prompt}, params_for(30, 1));
    EXPECT_TRUE(call.ok());
    EXPECT_TRUE((*call)->next().ok());
    test::fail_new_at = test::news + at;
    while (!(*call)->ended() && (*call)->next().ok()) {
    }
    test::fail_new_at = ~size_t{0};
    const GenResult& result = (*call)->result();
    if (result.status.ok()) {
      EXPECT_EQ(result.tokens, want) << at;
    } else {
      EXPECT_EQ(result.status.code(), Code::kOutOfMemory) << at;
      ++swept.ended;
    }
    swept.failed_drafts += metrics->snapshot().value(metric::kDraftsFailed);
  }
  return swept;
}

// A drafter's allocations fail with all others, in turn; none ends more calls than the call's own
// allocations do.
TEST(DraftSteps, WithoutMemorySayTheSame) {
  std::optional<GenResult> result;
  const Tokens prompt = text_of(2, 9);
  const auto session = generator_with(nullptr)->new_session().value();
  ASSERT_TRUE(
      session
          ->generate({.text = {}, .tokens = prompt}, params_for(30, 1), nullptr, nullptr, &result)
          .ok());
  const int32_t own = sweep(nullptr, result->tokens).ended;
  for (const auto& [name, drafter] : all_drafters()) {
    SCOPED_TRACE(name);
    const Swept swept = sweep(drafter, result->tokens);
    EXPECT_LE(swept.ended, own);
    if (drafter != nullptr && std::string(name) != "n-gram") {
      EXPECT_GT(swept.failed_drafts, 0);
    }
  }
}

// One thread that polls sessions in turn, a token of each: those that have guessed right wait for
// the others, so that there are as many steps as the one takes that needs most.
TEST(DraftSteps, OfPolledSessionsAreShared) {
  constexpr uint32_t kSessions = 5;
  constexpr int32_t kTokens = 40;
  const auto drafter =
      std::make_shared<KnowingDrafter>(KnowingDrafter::Options{0.6, 4, 1, kFormsVocab});
  const auto metrics = std::make_shared<MetricsMemory>();
  const auto begin_all = [](const Generator& generator) {
    std::vector<std::unique_ptr<Generation>> calls;
    for (uint32_t id = 0; id < kSessions; ++id) {
      const Tokens prompt = text_of(1 + id, 20);
      const auto session = generator.new_session().value();
      calls.push_back(
          session->open({.text = {}, .tokens = prompt}, params_for(kTokens, 0)).value());
    }
    return calls;
  };
  const auto plain = begin_all(*generator_with(nullptr));
  for (uint32_t id = 0; id < kSessions; ++id) {
    EXPECT_TRUE(pull_all(plain[id].get(), nullptr, nullptr).ok());
    Tokens text = text_of(1 + id, 20);
    const Tokens& said = plain[id]->result().tokens;
    text.insert(text.end(), said.begin(), said.end());
    drafter->learn(std::move(text));
  }
  const auto calls = begin_all(*generator_with(drafter, {}, metrics));
  std::vector<int32_t> said(kSessions);
  say(calls, &said, kTokens);
  int64_t most = 0;
  for (const auto& call : calls) {
    most = std::max(most, kTokens - call->result().usage.accepted);
  }
  EXPECT_LT(most, kTokens / 2 + kTokens / 4);
  EXPECT_EQ(metrics->snapshot().value(metric::kSteps), static_cast<double>(most));
}

// However a call ends that has guessed tokens left, and though its stream stays open, those that
// are polled do not wait for it.
TEST(DraftSteps, AreNotLeftToCallsThatHaveEnded) {
  const Tokens prompt = text_of(1, 20);
  const auto plain = generator_with(nullptr)->new_session().value();
  const auto begin = [&prompt](Session& session) {
    return session.open({.text = {}, .tokens = prompt}, params_for(12, 0)).value();
  };
  const auto whole = begin(*plain);
  EXPECT_TRUE(pull_all(whole.get(), nullptr, nullptr).ok());
  const auto drafter =
      std::make_shared<KnowingDrafter>(KnowingDrafter::Options{1.0, 5, 1, kFormsVocab});
  drafter->learn(join(prompt, whole->result().tokens));
  const std::function<void(Generation*)> ends[] = {
      [](Generation* call) { call->stop(1); },
      [](Generation* call) {
        call->break_off({Code::kInternal, "for a test"});
      },
      [](Generation* call) { EXPECT_TRUE(pull_all(call, nullptr, nullptr).ok()); },
      [](Generation* call) {
        while (!call->ended()) static_cast<void>(call->poll());
      }};
  for (const auto& end : ends) {
    const auto generator = generator_with(drafter);
    const auto first = generator->new_session().value();
    const auto second = generator->new_session().value();
    const auto rich = begin(*first);
    for (int32_t said = 0; said < 8;) said += rich->poll() != nullptr ? 1 : 0;
    end(rich.get());
    EXPECT_GT(rich->result().usage.accepted, 0);
    const auto other = begin(*second);
    EXPECT_EQ(other->poll(), nullptr);
    EXPECT_NE(other->poll(), nullptr);
  }
}

TEST(DraftSteps, OfManySessionsTogetherAreThoseOfEachAlone) {
  constexpr int32_t kSessions = 64;
  const auto plain = generator_with(nullptr);
  std::vector<Tokens> alone(kSessions);
  const auto say_it = [](const Generator& generator, int32_t id) {
    std::optional<GenResult> result;
    const Tokens prompt = text_of(static_cast<uint32_t>(id), 3 + static_cast<size_t>(id) % 11);
    const auto session = generator.new_session().value();
    const Status status = session->generate({.text = {}, .tokens = prompt}, params_for(20, id),
                                            nullptr, nullptr, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    return result->tokens;
  };
  for (int32_t id = 0; id < kSessions; ++id) {
    alone[static_cast<size_t>(id)] = say_it(*plain, id);
  }
  // Sessions of a drafter meet in steps, and all of them on the model.
  std::vector<std::shared_ptr<const Generator>> generators;
  DraftPolicy policy;
  for (const auto& [name, drafter] : all_drafters()) {
    policy.kind = policy.kind == DraftPolicy::Kind::kAlways ? DraftPolicy::Kind::kAuto
                                                            : DraftPolicy::Kind::kAlways;
    generators.push_back(generator_with(drafter, policy));
  }
  std::vector<Tokens> said(kSessions);
  std::vector<std::thread> threads;
  for (int32_t id = 0; id < kSessions; ++id) {
    threads.emplace_back([&, id] {
      said[static_cast<size_t>(id)] =
          say_it(*generators[static_cast<size_t>(id) % generators.size()], id);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(said, alone);
}

}  // namespace
}  // namespace gen::generate

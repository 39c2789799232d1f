// SPDX-License-Identifier: Apache-2.0
// A caller's own model in passes of many sequences: each says what a loop says for it alone, one
// that fails does not disturb the others, and running out of memory anywhere leaves no state
// behind. This program counts through its own operator new.
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "model/custom_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>

#include "generate/batch_run.h"
#include "generate/digest_tokens.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/session.h"
#include "graph/plan_trace.h"
#include "support/counting_new.h"

namespace gen::generate {
namespace {

using model::CustomForward;
using model::CustomModel;
using model::CustomStates;

/// Says the token after all that its state has seen.
class Automaton final : public CustomForward {
 public:
  ~Automaton() override { EXPECT_EQ(live, 0); }

  Status forward(const graph::Batch& batch, std::span<void* const> states, float* features,
                 model::CustomAttention* attention) const override {
    EXPECT_EQ(features, nullptr);
    EXPECT_EQ(attention, nullptr);
    EXPECT_EQ(states.size(), batch.sequences.size());
    const auto several = static_cast<int32_t>(batch.sequences.size());
    if (several > max_sequences) max_sequences = several;
    float* row = batch.logits;
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const graph::BatchSequence& sequence = batch.sequences[i];
      auto& seen = *static_cast<Tokens*>(states[i]);
      const auto first = static_cast<size_t>(sequence.first_row);
      for (size_t t = first; t < first + static_cast<size_t>(sequence.n_rows); ++t) {
        EXPECT_EQ(static_cast<size_t>(batch.positions[t]), seen.size());
        seen.push_back(batch.tokens[t]);
        if (fails && fails(batch.tokens[t])) return error(Code::kDevice, "no such luck");
        if (batch.wants[t] == 0) continue;
        std::fill_n(row, kVocab, -std::numeric_limits<float>::infinity());
        row[after(seen)] = 1.0F;
        row += kVocab;
      }
    }
    return {};
  }
  Result<void*> new_state() const override {
    auto* const made = new Tokens;
    ++live;
    return static_cast<void*>(made);
  }
  Result<void*> clone_state(const void* state) const override {
    auto* const made = new Tokens(*static_cast<const Tokens*>(state));
    ++live;
    return static_cast<void*>(made);
  }
  Status truncate_state(void* state, int32_t n) const override {
    if (refuses_to_go_back) return error(Code::kIo, "never look back");
    auto& seen = *static_cast<Tokens*>(state);
    if (seen.size() > static_cast<size_t>(n)) seen.resize(static_cast<size_t>(n));
    return {};
  }
  void free_state(void* state) const noexcept override {
    --live;
    delete static_cast<Tokens*>(state);
  }

  std::function<bool(int32_t token)> fails;
  bool refuses_to_go_back = false;
  mutable std::atomic<int32_t> live{0};
  mutable std::atomic<int32_t> max_sequences{0};
};

std::shared_ptr<const CustomModel> make_model(const std::shared_ptr<Automaton>& automaton,
                                              bool goes_back = true) {
  model::ModelTraits traits;
  traits.architecture = "automaton";
  traits.vocab_size = kVocab;
  traits.max_seq_len = 300;
  return std::move(CustomModel::create(automaton, traits, {true, true, goes_back})).value();
}

std::shared_ptr<const Generator> make_generator(const std::shared_ptr<Automaton>& automaton,
                                                bool goes_back = true,
                                                std::shared_ptr<engine::Tracer> tracer = nullptr) {
  GeneratorOptions options;
  options.tracer = std::move(tracer);
  options.max_sequences = 8;
  options.prefill_chunk = 5;
  return std::move(Generator::create(make_model(automaton, goes_back), nullptr, options)).value();
}

CallParams greedy(int32_t n) {
  CallParams params;
  params.sampling.temperature = 0;
  params.stops.max_new_tokens = n;
  return params;
}

Tokens prompt_of(int32_t i) {
  Tokens tokens(static_cast<size_t>(3 + 4 * i));
  std::iota(tokens.begin(), tokens.end(), i);
  for (int32_t& token : tokens) token = token * 7 % kPoison;
  return tokens;
}

TEST(CustomModel, ManySequencesInOnePass) {
  const auto automaton = std::make_shared<Automaton>();
  const auto generator = make_generator(automaton);
  std::vector<Tokens> prompts;
  for (int32_t i = 0; i < 11; ++i) prompts.push_back(prompt_of(i));
  std::vector<BatchRequest> requests;
  for (int32_t i = 0; i < 11; ++i) {
    requests.push_back(
        {{.text = {}, .tokens = prompts[static_cast<size_t>(i)]}, greedy(10 + 3 * i), {}});
  }
  const auto results = run_batch(*generator, requests, nullptr, nullptr);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(results[i].status.ok()) << results[i].status.message();
    EXPECT_EQ(results[i].tokens, expected(prompts[i], 10 + 3 * static_cast<int32_t>(i)));
  }
  EXPECT_GT(automaton->max_sequences, 2);
}

// One that cannot go back runs its sequences one at a time, else a failure would be everybody's.
TEST(CustomModel, OneThatFailsDisturbsNobody) {
  for (const bool goes_back : {true, false}) {
    const auto automaton = std::make_shared<Automaton>();
    automaton->fails = [](int32_t token) { return token == kPoison; };
    const auto generator = make_generator(automaton, goes_back);
    std::vector<Tokens> prompts;
    for (int32_t i = 0; i < 8; ++i) prompts.push_back(prompt_of(i));
    prompts[2].push_back(kPoison);
    prompts[5][7] = kPoison;
    std::vector<BatchRequest> requests;
    for (const Tokens& prompt : prompts) {
      requests.push_back({{.text = {}, .tokens = prompt}, greedy(30), {}});
    }
    const auto results = run_batch(*generator, requests, nullptr, nullptr);
    for (size_t i = 0; i < results.size(); ++i) {
      if (i == 2 || i == 5) {
        EXPECT_EQ(results[i].status.code(), Code::kDevice);
        EXPECT_STREQ(results[i].status.message(), "no such luck");
      } else {
        EXPECT_TRUE(results[i].status.ok()) << results[i].status.message();
        EXPECT_EQ(results[i].tokens, expected(prompts[i], 30));
      }
    }
    EXPECT_EQ(automaton->max_sequences > 1, goes_back);
  }
}

// Rows of drafts that the text does not say are taken back from the caller's state.
TEST(CustomModel, DraftsShowInNoResult) {
  const Tokens prompt = prompt_of(2);
  const Tokens want = expected(prompt, 40);
  Tokens all = prompt;
  all.insert(all.end(), want.begin(), want.end());
  for (const bool goes_back : {true, false}) {
    const auto automaton = std::make_shared<Automaton>();
    const auto drafter =
        std::make_shared<KnowingDrafter>(KnowingDrafter::Options{0.6, 4, 3, kPoison});
    drafter->learn(all);
    GeneratorOptions options;
    options.drafter = drafter;
    const auto generator =
        std::move(Generator::create(make_model(automaton, goes_back), nullptr, options)).value();
    const auto session = std::move(generator->new_session()).value();
    std::optional<GenResult> result;
    ASSERT_TRUE(
        session->generate({.text = {}, .tokens = prompt}, greedy(40), nullptr, nullptr, &result)
            .ok());
    EXPECT_EQ(result->tokens, want);
    EXPECT_GT(drafter->accepted, 0);
    EXPECT_EQ(drafter->branched, 0);
  }
}

TEST(CustomModel, SessionsOnManyThreads) {
  const auto automaton = std::make_shared<Automaton>();
  std::atomic<uint32_t> calls{0};
  // Now and then a pass fails that succeeds when it is tried without the others; poison always
  // does.
  automaton->fails = [&calls](int32_t token) {
    return token == kPoison || calls.fetch_add(1) % 97 == 96;
  };
  const auto generator = make_generator(automaton);
  std::atomic<int32_t> failures{0};
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto session = std::move(generator->new_session()).value();
      for (int32_t round = 0; round < 100; ++round) {
        Tokens more = prompt_of((i + round) % 3);
        const bool poisoned = (i + round) % 10 == 9;
        if (poisoned) more.push_back(kPoison);
        const Tokens before = std::move(session->tokens()).value();
        std::optional<GenResult> result;
        const Status status =
            session->generate({.text = {}, .tokens = more}, greedy(7), nullptr, nullptr, &result);
        Tokens all = before;
        all.insert(all.end(), more.begin(), more.end());
        if (status.ok()) {
          EXPECT_FALSE(poisoned);
          EXPECT_EQ(result->tokens, expected(all, 7));
        } else {
          EXPECT_EQ(status.code(), Code::kDevice);
          EXPECT_EQ(std::move(session->tokens()).value(), before);
          ++failures;
        }
        if (round % 3 != 2) continue;
        EXPECT_TRUE(session->truncate(session->length() / 2).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(failures, 80);  // the poisoned tenth
}

// The rows of one sequence or two, by hand.
struct Rows {
  explicit Rows(std::vector<std::pair<cache::SequenceState*, Tokens>> sequences, int32_t position) {
    for (const auto& [state, more] : sequences) {
      graph::BatchSequence sequence;
      sequence.state = state;
      sequence.first_row = static_cast<int32_t>(tokens.size());
      sequence.n_rows = static_cast<int32_t>(more.size());
      if (state != nullptr) {
        const auto plan = state->plan(sequence.n_rows, cache::Keep::kAll);
        planned = plan.ok() ? planned : plan.status();
        if (plan.ok()) sequence.state_plan = plan.value();
      }
      parts.push_back(sequence);
      tokens.insert(tokens.end(), more.begin(), more.end());
      for (size_t i = 0; i < more.size(); ++i) {
        positions.push_back(position + static_cast<int32_t>(i));
        wants.push_back(i + 1 == more.size() ? 1 : 0);
      }
    }
    logits.resize(parts.size() * kVocab);
    batch.tokens = tokens;
    batch.positions = positions;
    batch.wants = wants;
    batch.sequences = parts;
    batch.logits = logits.data();
    batch.logits_rows = parts.size();
  }
  /// What its owner does with a pass.
  Status run(const CustomModel& model) const {
    GEN_TRY(Status(planned));
    const Status status = model.forward(batch);
    for (const graph::BatchSequence& part : parts) {
      if (part.state == nullptr) continue;
      if (status.ok()) {
        part.state->commit(part.state_plan, {part.n_rows});
      } else {
        part.state->drop(part.state_plan);
      }
    }
    return status;
  }
  Status planned;
  Tokens tokens;
  Tokens positions;
  std::vector<uint8_t> wants;
  std::vector<graph::BatchSequence> parts;
  std::vector<float> logits;
  graph::Batch batch;
};

TEST(CustomModel, AFailedPassIsTakenBack) {
  const auto automaton = std::make_shared<Automaton>();
  automaton->fails = [](int32_t token) { return token == kPoison; };
  const auto model = make_model(automaton);
  const auto one = std::move(model->new_sequence_state()).value();
  const auto two = std::move(model->new_sequence_state()).value();
  ASSERT_TRUE(Rows({{one.get(), {1, 2}}, {two.get(), {3, 4}}}, 0).run(*model).ok());
  const Rows bad({{one.get(), {5, 6}}, {two.get(), {kPoison}}}, 2);
  EXPECT_EQ(bad.run(*model).code(), Code::kDevice);
  const Rows good({{one.get(), {5, 6}}, {two.get(), {7}}}, 2);
  ASSERT_TRUE(good.run(*model).ok());
  EXPECT_EQ(good.logits[static_cast<size_t>(after(Tokens{1, 2, 5, 6}))], 1.0F);
  EXPECT_EQ(good.logits[static_cast<size_t>(kVocab + after(Tokens{3, 4, 7}))], 1.0F);
  // Rows that do not go on where a state ends are our own fault, and said to be.
  EXPECT_EQ(Rows({{one.get(), {5}}}, 3).run(*model).code(), Code::kInternal);

  automaton->refuses_to_go_back = true;
  const Rows worse({{one.get(), {5, kPoison}}}, 4);
  EXPECT_EQ(worse.run(*model).code(), Code::kDevice);
  EXPECT_TRUE(one->lost());
  EXPECT_FALSE(two->lost());
  EXPECT_EQ(automaton->live, 1);
  EXPECT_EQ(Rows({{one.get(), {5}}}, 4).run(*model).code(), Code::kState);
  EXPECT_EQ(one->copies(), nullptr);
  EXPECT_EQ(one->rewind(1).status().code(), Code::kState);
}

TEST(CustomModel, WhatItDoesNotTake) {
  const auto automaton = std::make_shared<Automaton>();
  const auto model = make_model(automaton);
  const auto state = std::move(model->new_sequence_state()).value();
  EXPECT_EQ(Rows({{nullptr, {1}}}, 0).run(*model).code(), Code::kUnsupported);
  Rows tree({{state.get(), {1, 2}}}, 0);
  const Tokens parents{-1, 0};
  tree.batch.parents = parents;
  EXPECT_EQ(tree.run(*model).code(), Code::kUnsupported);
  Rows embedded({{state.get(), {1}}}, 0);
  const float embedding[1]{};
  embedded.batch.embeddings = embedding;
  EXPECT_EQ(embedded.run(*model).code(), Code::kUnsupported);
  EXPECT_EQ(Rows({{state.get(), {kVocab}}}, 0).run(*model).code(), Code::kOutOfRange);
  EXPECT_EQ(Rows({{state.get(), {1}}}, 300).run(*model).code(), Code::kOutOfRange);
}

// Everything that one session does, with its nth allocation failing.
Status live_through_it(const std::shared_ptr<const Generator>& generator, Tokens* said) {
  GEN_ASSIGN(const auto session, generator->new_session());
  std::optional<GenResult> result;
  const Tokens prompt = prompt_of(1);
  GEN_TRY(session->generate({.text = {}, .tokens = prompt}, greedy(6), nullptr, nullptr, &result));
  GEN_TRY(session->truncate(9));
  GEN_ASSIGN(const auto fork, session->fork());
  GEN_TRY(fork->generate({}, greedy(9), nullptr, nullptr, &result));
  *said = result->tokens;
  return {};
}

void fail_every_allocation(const std::shared_ptr<engine::Tracer>& tracer) {
  const auto automaton = std::make_shared<Automaton>();
  const auto generator = make_generator(automaton, /*goes_back=*/true, tracer);
  Tokens all = prompt_of(1);
  const Tokens more = expected(all, 2);
  all.insert(all.end(), more.begin(), more.end());
  const Tokens wanted = expected(all, 9);
  for (size_t nth = 0;; ++nth) {
    Status status;
    Tokens said;
    test::news = 0;
    test::fail_new_at = nth;
    try {
      status = live_through_it(generator, &said);
    } catch (const std::bad_alloc&) {
      status = {Code::kOutOfMemory, ""};
    }
    const bool reached = test::news > nth;
    test::fail_new_at = ~size_t{0};
    EXPECT_EQ(automaton->live, 0) << nth;
    if (status.ok()) {
      EXPECT_EQ(said, wanted) << nth;
    } else {
      EXPECT_EQ(status.code(), Code::kOutOfMemory) << nth;
    }
    if (reached) continue;
    EXPECT_TRUE(status.ok());
    EXPECT_GT(nth, 20U);
    break;
  }
}

TEST(CustomModel, EveryAllocationFailsOnce) { fail_every_allocation(nullptr); }

TEST(CustomModel, EveryAllocationFailsOnceWhileTraced) {
  const auto log = std::make_shared<engine::TraceLog>();
  fail_every_allocation(std::make_shared<graph::PlanTrace>(log));
  EXPECT_TRUE(log->incomplete());
  for (const engine::TracedOp& op : log->ops()) {
    EXPECT_STREQ(op.name, "forward");
    ASSERT_EQ(op.inputs.size(), 1U);
    EXPECT_GE(log->shape(op.inputs[0]).seq, 1);
  }
}

}  // namespace
}  // namespace gen::generate

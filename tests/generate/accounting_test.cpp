// SPDX-License-Identifier: Apache-2.0
// Proves what is told of calls: the progress of prompts, the tokens of usage, metrics of failures,
// and who is counted in a generator's queue.
#include <gtest/gtest.h>

#include <thread>

#include "base/metrics_memory.h"
#include "generate/cache_forms.h"
#include "generate/fake_world.h"

namespace gen::generate {
namespace {

int32_t prompt_usage(Session& session, const Prompt& prompt, int32_t n = 2) {
  CallParams params = greedy(n);
  params.stops.ignore_eos = true;
  const Outcome outcome = generate(session, prompt, params);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  return outcome.result.has_value() ? outcome.result->usage.prompt : -1;
}

// One where no prompt is being run, whatever became of the last one.
TEST(Accounting, ProgressIsOneBetweenPrompts) {
  World world;
  const auto session = world.session();
  EXPECT_EQ(session->progress(), 1.0F);
  auto generation = session->open(ids(Tokens{2, 3, 4, 5, 6, 7, 8, 9}), greedy(3)).value();
  EXPECT_EQ(session->progress(), 0.0F);
  (void)generation->poll();
  (void)generation->poll();
  EXPECT_EQ(session->progress(), 0.5F);
  generation.reset();
  EXPECT_EQ(session->progress(), 1.0F);
  world.model->before_forward = [](const graph::Batch&) { return error(Code::kModel, "no"); };
  EXPECT_EQ(session->append(text("abcabc")).code(), Code::kModel);
  EXPECT_EQ(session->progress(), 1.0F);
  EXPECT_EQ(generate(*session, text("abcabc"), greedy(3)).status.code(), Code::kModel);
  EXPECT_EQ(session->progress(), 1.0F);
  world.model->before_forward = nullptr;
  const auto cancel = std::make_shared<CancelFlag>();
  cancel->fire();
  ASSERT_TRUE(session->set_cancel(cancel).ok());
  EXPECT_EQ(session->append(text("abcabc")).code(), Code::kCancelled);
  EXPECT_EQ(session->progress(), 1.0F);
  ASSERT_TRUE(session->set_cancel(nullptr).ok());
  ASSERT_TRUE(session->reset().ok());
  EXPECT_EQ(session->progress(), 1.0F);
}

// What was appended since the last generating call is part of the prompt that the next one answers.
TEST(Accounting, AppendedTokensAreOfThePrompt) {
  World world;
  const auto session = world.session();
  ASSERT_TRUE(session->append(ids(Tokens{2, 3, 4})).ok());
  ASSERT_TRUE(session->append(ids(Tokens{5, 6})).ok());
  EXPECT_EQ(prompt_usage(*session, {}), 5);
  EXPECT_EQ(prompt_usage(*session, {}), 0);
  EXPECT_EQ(prompt_usage(*session, ids(Tokens{2, 3})), 2);
  ASSERT_TRUE(session->append(ids(Tokens{7, 8, 9})).ok());
  EXPECT_EQ(prompt_usage(*session, ids(Tokens{2})), 4);

  // What is cut is not answered, and a score is no prompt.
  ASSERT_TRUE(session->append(ids(Tokens{7, 8, 9})).ok());
  ASSERT_TRUE(session->truncate(session->length() - 2).ok());
  std::vector<float> scores;
  ASSERT_TRUE(session->score(ids(Tokens{4, 5}), &scores, nullptr).ok());
  EXPECT_EQ(prompt_usage(*session, {}), 1);
  ASSERT_TRUE(session->truncate(3).ok());
  ASSERT_TRUE(session->append(ids(Tokens{7, 8})).ok());
  EXPECT_EQ(prompt_usage(*session, {}), 2);
  ASSERT_TRUE(session->reset().ok());
  EXPECT_EQ(prompt_usage(*session, text("ab")), 2);  // with BOS

  // A call that fails answers nothing.
  ASSERT_TRUE(session->append(ids(Tokens{7, 8, 9})).ok());
  world.model->before_forward = [](const graph::Batch&) { return error(Code::kModel, "no"); };
  const Outcome failed = generate(*session, ids(Tokens{2}), greedy(3));
  ASSERT_TRUE(failed.result.has_value());
  EXPECT_EQ(failed.result->usage.prompt, 4);
  world.model->before_forward = nullptr;
  // Nor does one whose end its host could not take.
  const auto throws = [](void*, const Event& event) -> int32_t {
    if (event.done) throw 7;
    return 0;
  };
  std::optional<GenResult> result;
  EXPECT_EQ(session->generate(ids(Tokens{2, 3}), greedy(3), throws, nullptr, &result).code(),
            Code::kInternal);
  EXPECT_EQ(prompt_usage(*session, {}), 3);
}

// A fork is asked what the other one was; a session that is loaded was asked nothing. What a prefix
// cache had of the appended tokens is counted with them.
TEST(Accounting, OfForksAndLoadedSessions) {
  const auto generator = generator_of(
      {.layout = CacheForm::Layout::kPaged, .block_size = 8, .prefix_blocks = 40});
  const auto session = generator->new_session().value();
  const Tokens prompt = text_of(4, 24);
  ASSERT_TRUE(session->append(ids(prompt)).ok());
  EXPECT_EQ(prompt_usage(*session->fork().value(), {}), 24);
  EXPECT_EQ(prompt_usage(*session->fork().value(), ids(Tokens{2})), 25);
  const auto loaded = generator->new_session().value();
  ASSERT_TRUE(loaded->load(state_of(*session)).ok());
  EXPECT_EQ(prompt_usage(*loaded, ids(Tokens{2, 3})), 2);

  const auto second = generator->new_session().value();
  ASSERT_TRUE(second->append(ids(prompt)).ok());
  const auto third = second->fork().value();
  const int32_t at_once = say(*generator->new_session().value(), prompt, 3).cached;
  EXPECT_GE(at_once, 16);
  EXPECT_EQ(say(*second, {}, 3).cached, at_once);
  EXPECT_EQ(say(*second, {}, 3).cached, 0);
  ASSERT_TRUE(third->truncate(10).ok());
  EXPECT_EQ(say(*third, {}, 3).cached, 10);
}

TEST(Accounting, WhereAContextShifts) {
  World world(20);
  world.options.shift_context = true;
  world.cache_can_shift = true;
  world.model->mutable_traits().can_shift = true;
  const auto session = world.session();
  EXPECT_EQ(prompt_usage(*session, ids(Tokens(12, 2)), 3), 12);
  // 15 tokens are held. 5 of them make room for 8, then 6 more and one of the 8 for the last 3: half
  // of what is not kept each time.
  ASSERT_TRUE(session->append(ids(Tokens(8, 3))).ok());
  EXPECT_EQ(session->length(), 15 - 5 + 8);
  EXPECT_EQ(prompt_usage(*session, ids(Tokens(3, 4)), 3), 7 + 3);
}

double counter(const MetricsMemory& metrics, const char* name) {
  const MetricsSnapshot snapshot = metrics.snapshot();
  const auto found = snapshot.counters.find(name);
  return found != snapshot.counters.end() ? found->second : 0;
}

TEST(Accounting, RefusalsOfEveryCallAreCounted) {
  World world;
  const auto metrics = std::make_shared<MetricsMemory>();
  world.options.metrics = metrics;
  const auto session = world.session();
  const Tokens outside{1000};
  std::vector<float> scores;
  EXPECT_EQ(session->append(ids(outside)).code(), Code::kOutOfRange);
  EXPECT_EQ(session->score(ids(outside), &scores, nullptr).code(), Code::kOutOfRange);
  EXPECT_EQ(generate(*session, ids(outside), greedy(2)).status.code(), Code::kOutOfRange);
  EXPECT_EQ(counter(*metrics, "errors_out_of_range"), 3);
  EXPECT_EQ(session->append(text("?")).code(), Code::kTokenizer);
  EXPECT_EQ(session->score(text("?"), &scores, nullptr).code(), Code::kTokenizer);
  EXPECT_EQ(counter(*metrics, "errors_tokenizer"), 2);
  world.model->before_forward = [](const graph::Batch&) { return error(Code::kModel, "no"); };
  EXPECT_EQ(session->append(text("abc")).code(), Code::kModel);
  EXPECT_EQ(session->score(text("abc"), &scores, nullptr).code(), Code::kModel);
  EXPECT_EQ(counter(*metrics, "errors_model"), 2);
  world.model->before_forward = nullptr;
  const auto open = session->open(text("abc"), greedy(2)).value();
  EXPECT_EQ(session->append(text("abc")).code(), Code::kBusy);
  EXPECT_EQ(session->score(text("abc"), &scores, nullptr).code(), Code::kBusy);
  EXPECT_EQ(session->open(text("abc"), greedy(2)).status().code(), Code::kBusy);
  EXPECT_EQ(counter(*metrics, "errors_busy"), 3);
  // Prompts are counted once, wherever they came.
  const double before = counter(*metrics, "prompt_tokens");
  const auto other = world.session();
  ASSERT_TRUE(other->append(ids(Tokens{2, 3, 4})).ok());
  EXPECT_EQ(prompt_usage(*other, ids(Tokens{5})), 4);
  EXPECT_EQ(counter(*metrics, "prompt_tokens"), before + 4);
}

// A step in which somebody is cancelled has not failed.
TEST(Accounting, CancelsAreNoFailures) {
  World world;
  const auto metrics = std::make_shared<MetricsMemory>();
  world.options.metrics = metrics;
  const auto session = world.session();
  world.model->before_forward = [&](const graph::Batch&) {
    session->cancel();
    return Status();
  };
  EXPECT_EQ(generate(*session, text("ab"), greedy(3)).status.code(), Code::kCancelled);
  EXPECT_EQ(session->append(text("abc")).code(), Code::kCancelled);
  EXPECT_EQ(counter(*metrics, "steps"), 2);
  EXPECT_EQ(counter(*metrics, "steps_failed"), 0);
  EXPECT_EQ(counter(*metrics, "errors_cancelled"), 0);
  world.model->before_forward = [](const graph::Batch&) { return error(Code::kModel, "no"); };
  EXPECT_EQ(session->append(text("abc")).code(), Code::kModel);
  EXPECT_EQ(counter(*metrics, "steps_failed"), 1);
}

// Who is refused takes no place meanwhile: when a place becomes free, one of two who want it gets it.
TEST(Accounting, ARefusalRefusesNobodyElse) {
  World world;
  world.options.max_sequences = 1;
  world.options.max_queue = 1;
  (void)world.session();
  std::optional<OpenCall> kept;
  ASSERT_TRUE(OpenCall::enter(*world.generator, &kept).ok());
  for (int round = 0; round < 100; ++round) {
    std::optional<OpenCall> first;
    ASSERT_TRUE(OpenCall::enter(*world.generator, &first).ok());
    std::atomic<bool> knocked{false};
    std::atomic<bool> over{false};
    std::optional<OpenCall> theirs;
    std::thread other([&] {
      while (!over && !theirs.has_value()) {
        (void)OpenCall::enter(*world.generator, &theirs);
        knocked = true;
      }
    });
    while (!knocked) std::this_thread::yield();
    std::optional<OpenCall> ours;
    first->end();
    const Status status = OpenCall::enter(*world.generator, &ours);
    over = true;
    other.join();
    ASSERT_TRUE(status.ok() || theirs.has_value()) << "round " << round;
  }
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Requests with adapters: what one says is what a fresh session with the same adapters says alone,
// to the bit, whatever ran before it on the same session or the same prefix, and whatever runs
// beside it. The products themselves are tested in graph and model.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "generate/cache_forms.h"
#include "generate/loop/generator.h"
#include "generate/passing_model.h"
#include "model/plan_model.h"
#include "support/adapter_values.h"

namespace gen::generate {
namespace {

using Choices = std::vector<model::AdapterChoice>;

/// A model with the adapters "a" and "b", and generators over it.
struct World {
  explicit World(const CacheForm& form = {}) : place(forms_place(form.far, form.recurrent)) {
    const auto& plan = dynamic_cast<const model::PlanModel&>(place.model).plan();
    for (uint64_t i = 1; i <= 2; ++i) {
      model::LoadedAdapter made;
      made.matrices = test::drawn_adapter(plan, static_cast<int32_t>(2 + i), i);
      made.content = i;
      EXPECT_TRUE(place.model.adapters()
                      ->put(i == 1 ? "a" : "b", 0.5F,
                            std::make_shared<const model::LoadedAdapter>(std::move(made)))
                      .ok());
    }
    set_caches(&options, form, place.model.layer_shapes(), place.memory);
    options.prefill_chunk = 16;
    options.max_sequences = 4;
  }
  std::shared_ptr<const Generator> generator() {
    return Generator::create(std::make_shared<PassingModel>(place.model), nullptr, options).value();
  }

  FormsPlace place;
  GeneratorOptions options;
};

Said say_with(Session& session, const Tokens& prompt, int32_t n, const Choices& adapters) {
  CallParams params = params_of(n);
  params.adapters = adapters;
  Said said;
  std::optional<GenResult> result;
  said.status = session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  if (!result.has_value()) return said;
  said.tokens = result->tokens;
  said.logprobs = result->logprobs;
  said.cached = result->usage.prompt_cached;
  EXPECT_TRUE(said.status.ok()) << said.status.message();
  return said;
}

Said alone(World& world, const Tokens& prompt, int32_t n, const Choices& adapters) {
  GeneratorOptions options = world.options;
  options.prefix_cache.reset();
  const auto generator =
      Generator::create(std::make_shared<PassingModel>(world.place.model), nullptr, options)
          .value();
  return say_with(*generator->new_session().value(), prompt, n, adapters);
}

const std::vector<Choices> kMixes = {
    {}, {{"a", 1}}, {{"b", 1}}, {{"a", -0.5F}}, {{"b", 0.3F}, {"a", 1}}};

class Adapted : public testing::TestWithParam<CacheForm> {};

TEST_P(Adapted, OnOnePrefixAndInOneSession) {
  World world(GetParam());
  const Tokens prompt = text_of(1, 37);
  std::vector<Said> want;
  for (const Choices& mix : kMixes) want.push_back(alone(world, prompt, 6, mix));
  for (size_t i = 1; i < want.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(want[i], want[j]) << i << " " << j;
  }
  // Sessions on one prefix, twice, so that each finds its own blocks and those of all others.
  const auto generator = world.generator();
  for (int32_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < want.size(); ++i) {
      const Said said = say_with(*generator->new_session().value(), prompt, 6, kMixes[i]);
      EXPECT_EQ(said, want[i]) << round << " " << i;
      if (world.options.prefix_cache == nullptr) continue;
      EXPECT_EQ(said.cached > 0, round == 1) << i;
    }
  }
  // One session that changes its adapters: all that it holds is evaluated with the new ones.
  const auto session = generator->new_session().value();
  Tokens held;
  for (const size_t i : {1U, 0U, 2U, 2U, 4U, 3U, 0U}) {
    const Tokens more = text_of(static_cast<uint32_t>(i + 9), 5);
    const Said said = say_with(*session, more, 3, kMixes[i]);
    EXPECT_EQ(said, alone(world, join(held, more), 3, kMixes[i])) << i;
    held = session->tokens().value();
  }
}

TEST_P(Adapted, ForkedSavedAndAppended) {
  World world(GetParam());
  const auto generator = world.generator();
  const Tokens prompt = text_of(3, 21);
  const auto session = generator->new_session().value();
  const Said first = say_with(*session, prompt, 4, kMixes[1]);
  EXPECT_EQ(first, alone(world, prompt, 4, kMixes[1]));
  const Tokens held = session->tokens().value();
  const auto saved = state_of(*session);
  const Tokens more = text_of(5, 3);
  for (const size_t i : {1U, 2U, 0U}) {
    const Said want = alone(world, join(held, more), 4, kMixes[i]);
    if (const auto fork = session->fork(); fork.ok()) {
      EXPECT_EQ(say_with(*fork.value(), more, 4, kMixes[i]), want) << i;
    }
    const auto loaded = generator->new_session().value();
    ASSERT_TRUE(loaded->load(saved).ok());
    // What the file has is used again only by its own adapters.
    EXPECT_EQ(loaded->evaluated(), static_cast<int32_t>(held.size()) - 1);
    EXPECT_EQ(say_with(*loaded, more, 4, kMixes[i]), want) << i;
    const auto appended = generator->new_session().value();
    ASSERT_TRUE(appended->load(saved).ok());
    ASSERT_TRUE(appended->append({.text = {}, .tokens = more}).ok());
    EXPECT_EQ(say_with(*appended, {}, 4, kMixes[i]), want) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Adapted, testing::ValuesIn(all_forms_and_recurrent()));

TEST(AdapterRequests, RunBesideOthers) {
  World world({.layout = CacheForm::Layout::kPaged, .block_size = 8, .prefix_blocks = 40});
  std::vector<Said> want;
  for (size_t i = 0; i < kMixes.size(); ++i) {
    want.push_back(alone(world, text_of(static_cast<uint32_t>(i), 30), 12, kMixes[i]));
  }
  const auto generator = world.generator();
  std::vector<Said> said(2 * want.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < said.size(); ++i) {
    threads.emplace_back([&, i] {
      const size_t of = i % want.size();
      said[i] = say_with(*generator->new_session().value(), text_of(static_cast<uint32_t>(of), 30),
                         12, kMixes[of]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], want[i % want.size()]) << i;
}

TEST(AdapterRequests, KeepWhatTheyBeganWith) {
  World world;
  const auto generator = world.generator();
  const Tokens prompt = text_of(1, 9);
  const Said want = alone(world, prompt, 8, kMixes[1]);
  const auto session = generator->new_session().value();
  CallParams params = params_of(8);
  params.adapters = kMixes[1];
  auto generation = session->open({.text = {}, .tokens = prompt}, params).value();
  ASSERT_TRUE(generation->next().ok());
  ASSERT_TRUE(world.place.model.adapters()->remove("a").ok());
  while (!generation->ended()) ASSERT_TRUE(generation->next().ok());
  EXPECT_EQ(generation->result().tokens, want.tokens);
  generation.reset();
  // Refused before anything changes.
  const Tokens held = session->tokens().value();
  std::optional<GenResult> result;
  const Status status =
      session->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_STREQ(status.message(), "no adapter is named \"a\"");
  EXPECT_EQ(session->tokens().value(), held);
}

/// Fails once when told to.
class Failing : public PassingModel {
 public:
  using PassingModel::PassingModel;
  Result<std::shared_ptr<const graph::AdapterTable>> adapter_table(
      std::span<const std::vector<graph::AdapterUse>> mixes) const override {
    if (std::exchange(table, false)) throw std::bad_alloc();
    return PassingModel::adapter_table(mixes);
  }
  Status forward(const graph::Batch& batch) const override {
    if (std::exchange(step, false)) return error(Code::kModel, "no step");
    return PassingModel::forward(batch);
  }
  mutable bool table = false;
  mutable bool step = false;
};

Status status_of(Session& session, const Choices& adapters) {
  CallParams params = params_of(3);
  params.adapters = adapters;
  std::optional<GenResult> result;
  return session.generate({.text = {}, .tokens = text_of(9, 4)}, params, nullptr, nullptr, &result);
}

TEST(AdapterRequests, AFailureLeavesNothing) {
  World world;
  const auto model = std::make_shared<Failing>(world.place.model);
  const auto generator = Generator::create(model, nullptr, world.options).value();
  const auto session = generator->new_session().value();
  const Tokens prompt = text_of(1, 9);
  EXPECT_EQ(say_with(*session, prompt, 4, {}), alone(world, prompt, 4, {}));
  std::vector<float> before;
  ASSERT_TRUE(session->score({.text = {}, .tokens = text_of(2, 5)}, &before, nullptr).ok());
  const auto expect_as_before = [&] {
    std::vector<float> after;
    ASSERT_TRUE(session->score({.text = {}, .tokens = text_of(2, 5)}, &after, nullptr).ok());
    EXPECT_EQ(after, before);
  };
  model->table = true;
  EXPECT_EQ(status_of(*session, kMixes[1]).code(), Code::kOutOfMemory);
  EXPECT_TRUE(status_of(*generator->new_session().value(), kMixes[1]).ok());
  expect_as_before();
  model->step = true;
  EXPECT_EQ(status_of(*session, kMixes[1]).code(), Code::kModel);
  expect_as_before();
  // The adapter works as ever.
  const auto other = generator->new_session().value();
  EXPECT_EQ(say_with(*other, prompt, 4, kMixes[1]), alone(world, prompt, 4, kMixes[1]));
  // A session that was reset is as a new one.
  ASSERT_TRUE(other->reset().ok());
  std::vector<float> fresh;
  std::vector<float> reset;
  const auto another = generator->new_session().value();
  ASSERT_TRUE(another->score({.text = {}, .tokens = text_of(2, 5)}, &fresh, nullptr).ok());
  ASSERT_TRUE(other->score({.text = {}, .tokens = text_of(2, 5)}, &reset, nullptr).ok());
  EXPECT_EQ(reset, fresh);
}

TEST(AdapterRequests, EntriesOfOthersAreNotShifted) {
  World world;
  world.options.shift_context = true;
  const auto generator = world.generator();
  const Tokens prompt = text_of(1, static_cast<size_t>(generator->max_seq_len()) - 4);
  for (const auto& [before, after] : {std::pair(1, 0), std::pair(0, 1), std::pair(1, 2)}) {
    const auto session = generator->new_session().value();
    (void)say_with(*session, prompt, 4, kMixes[static_cast<size_t>(before)]);
    const Tokens held = session->tokens().value();
    ASSERT_EQ(std::ssize(held), generator->max_seq_len());
    const Choices& mix = kMixes[static_cast<size_t>(after)];
    EXPECT_EQ(say_with(*session, {}, 4, mix), alone(world, held, 4, mix)) << before << after;
  }
}

TEST(AdapterRequests, AreRefusedByModelsWithout) {
  const test::FakeModel model(50);
  const auto generator =
      Generator::create(std::make_shared<PassingModel>(model), nullptr, {}).value();
  CallParams params = params_of(1);
  params.adapters = {{"a", 1}};
  std::optional<GenResult> result;
  const Status status =
      generator->generate({.text = {}, .tokens = text_of(1, 2)}, params, nullptr, nullptr, &result);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(status.message(), "this model takes no adapters");
}

}  // namespace
}  // namespace gen::generate

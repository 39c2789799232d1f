// SPDX-License-Identifier: Apache-2.0
// Activated adapters: the rows from the last occurrence of the invocation tokens on have the
// adapter, those before are the base's and are shared with it. The reference runs the model's two
// parts of a text by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "cache/sequence/registry.h"
#include "generate/cache_forms.h"
#include "generate/loop/generator.h"
#include "generate/passing_model.h"
#include "model/plan_model.h"
#include "support/adapter_values.h"
#include "support/tiny_graph.h"

namespace gen::generate {
namespace {

const Tokens kInvocation = {7, 8, 7};

/// A model with the activated adapter "a", and "p", which is for all rows.
struct World {
  explicit World(const CacheForm& form = {}) : place(forms_place(form.far, form.recurrent)) {
    const auto& plan = dynamic_cast<const model::PlanModel&>(place.model).plan();
    for (uint64_t i = 1; i <= 2; ++i) {
      model::LoadedAdapter made;
      made.matrices = test::drawn_adapter(plan, 3, i);
      made.content = i;
      if (i == 1) made.invocation_tokens = kInvocation;
      EXPECT_TRUE(place.model.adapters()
                      ->put(i == 1 ? "a" : "p", 0.5F,
                            std::make_shared<const model::LoadedAdapter>(std::move(made)))
                      .ok());
    }
    set_caches(&options, form, place.model.layer_shapes(), place.memory);
    options.prefill_chunk = 16;
  }
  [[nodiscard]] std::shared_ptr<const Generator> generator(bool prefixes = true) const {
    GeneratorOptions of = options;
    if (!prefixes) of.prefix_cache.reset();
    return Generator::create(std::make_shared<PassingModel>(place.model), nullptr, of).value();
  }

  FormsPlace place;
  GeneratorOptions options;
};

Said say(Session& session, const Tokens& prompt, int32_t n, const char* adapter) {
  CallParams params = params_of(n);
  if (adapter != nullptr) params.adapters = {{adapter, 1}};
  Said said;
  std::optional<GenResult> result;
  said.status = session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_TRUE(said.status.ok()) << said.status.message();
  if (!result.has_value()) return said;
  said.tokens = result->tokens;
  said.logprobs = result->logprobs;
  said.cached = result->usage.prompt_cached;
  return said;
}

Said alone(const World& world, const Tokens& prompt, int32_t n, const char* adapter) {
  return say(*world.generator(false)->new_session().value(), prompt, n, adapter);
}

/// Logits of the last row of a text whose rows from `from` on have the first mix.
std::vector<float> by_hand(const World& world, const Tokens& text, size_t from) {
  const model::Model& model = world.place.model;
  const auto choice = std::vector<model::AdapterChoice>{{"a", 1}};
  const auto mix = world.place.model.adapters()->mix(choice).value();
  const std::vector<graph::AdapterUse> mixes[] = {mix->uses};
  const auto table = model.adapter_table(mixes).value();
  const auto cache =
      cache::make_cache("fp32", model.layer_shapes(), 100, engine::system_memory()).value();
  std::vector<float> last;
  for (const bool adapted : {false, true}) {
    const auto rows = adapted ? std::span(text).subspan(from) : std::span(text).first(from);
    if (rows.empty()) continue;
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, rows).ok());
    if (adapted) batch.sequences.back().adapter = 0;
    batch.finish(model.traits().vocab_size);
    batch.batch.adapters = table.get();
    EXPECT_TRUE(model.forward(batch.batch).ok());
    batch.commit();
    const auto all = batch.results(model.traits().vocab_size);
    last.assign(all.end() - model.traits().vocab_size, all.end());
  }
  return last;
}

TEST(ActivatedAdapter, IsForTheRowsFromItsInvocationOn) {
  const World world;
  for (const size_t before : {0U, 1U, 9U, 20U, 33U}) {
    SCOPED_TRACE(before);
    // An earlier occurrence does not count.
    const Tokens first = join(text_of(1, 6), kInvocation);
    const Tokens text = join(
        join(before > 9 ? join(first, text_of(2, before - 9)) : text_of(2, before), kInvocation),
        text_of(3, 5));
    const auto want = by_hand(world, text, before);
    const Said said = alone(world, text, 1, "a");
    ASSERT_EQ(said.tokens.size(), 1U);
    double sum = 0.0;
    for (const float logit : want)
      sum += std::exp(double{logit} - double{want[static_cast<size_t>(said.tokens[0])]});
    ASSERT_EQ(said.logprobs.size(), 1U);
    EXPECT_NEAR(double{said.logprobs[0]}, -std::log(sum), 1e-5);
    EXPECT_NE(said, alone(world, text, 1, nullptr));
  }
  const Tokens without = text_of(4, 20);
  EXPECT_EQ(alone(world, without, 5, "a"), alone(world, without, 5, nullptr));
}

class Activated : public testing::TestWithParam<CacheForm> {};

TEST_P(Activated, SharesTheBaseBeforeIt) {
  const World world(GetParam());
  const auto generator = world.generator();
  const Tokens base = text_of(5, 37);
  const Tokens text = join(join(base, kInvocation), text_of(6, 4));
  const Said want = alone(world, text, 6, "a");
  EXPECT_NE(want, alone(world, text, 6, nullptr));
  EXPECT_EQ(say(*generator->new_session().value(), base, 4, nullptr),
            alone(world, base, 4, nullptr));
  for (int32_t round = 0; round < 2; ++round) {
    const Said said = say(*generator->new_session().value(), text, 6, "a");
    EXPECT_EQ(said, want) << round;
    if (world.options.prefix_cache != nullptr) {
      EXPECT_GT(said.cached, 0);
      EXPECT_LE(said.cached, 37);
    }
    // What it made is not the base's, nor another adapter's.
    EXPECT_EQ(say(*generator->new_session().value(), text, 6, nullptr),
              alone(world, text, 6, nullptr));
    EXPECT_EQ(say(*generator->new_session().value(), text, 6, "p"), alone(world, text, 6, "p"));
  }
}

TEST_P(Activated, InOneSession) {
  const World world(GetParam());
  const auto generator = world.generator();
  const auto session = generator->new_session().value();
  Tokens held;
  const auto turn = [&](const Tokens& more, const char* adapter) {
    const Said want = alone(world, join(held, more), 3, adapter);
    if (const auto fork = session->fork(); fork.ok()) {
      EXPECT_EQ(say(*fork.value(), more, 3, adapter), want);
    }
    const auto loaded = generator->new_session().value();
    if (!held.empty()) {
      ASSERT_TRUE(loaded->load(state_of(*session)).ok());
    }
    EXPECT_EQ(say(*loaded, more, 3, adapter), want);
    EXPECT_EQ(say(*session, more, 3, adapter), want);
    held = session->tokens().value();
  };
  turn(text_of(7, 9), nullptr);
  turn(join(kInvocation, text_of(8, 4)), "a");
  turn(text_of(9, 5), "a");                      // from the same row on
  turn(join(kInvocation, text_of(10, 2)), "a");  // the rows since the last one are the base's now
  turn(text_of(11, 3), nullptr);
  turn(text_of(12, 3), "p");
  turn(text_of(13, 3), "a");
}

INSTANTIATE_TEST_SUITE_P(Forms, Activated, testing::ValuesIn(all_forms_and_recurrent()));

TEST(ActivatedAdapter, IsFoundInTheTextThatIsScored) {
  const World world;
  const auto generator = world.generator();
  const auto score = [](Session& session) {
    std::vector<float> scores;
    EXPECT_TRUE(session.score({.text = {}, .tokens = text_of(3, 6)}, &scores, nullptr).ok());
    return scores;
  };
  const auto append = [](Session& session, const Tokens& more) {
    EXPECT_TRUE(session.append({.text = {}, .tokens = more}).ok());
  };
  const Tokens base = text_of(1, 8);
  const auto session = generator->new_session().value();
  (void)say(*session, join(base, kInvocation), 2, "a");
  // One more moves the first row.
  append(*session, join(text_of(2, 4), kInvocation));
  const auto again = generator->new_session().value();
  (void)say(*again, session->tokens().value(), 1, "a");
  ASSERT_TRUE(again->truncate(session->length()).ok());
  EXPECT_EQ(score(*session), score(*again));
  // Without any, all rows are the base's.
  ASSERT_TRUE(session->truncate(8).ok());
  append(*session, text_of(2, 9));
  const auto plain = generator->new_session().value();
  append(*plain, join(base, text_of(2, 9)));
  EXPECT_EQ(score(*session), score(*plain));
}

// Where reading the state runs rows again, they are those that the session has.
TEST(ActivatedAdapter, MayBeCutOffBeforeTheStateIsRead) {
  World world({.recurrent = true});
  world.options.snapshot_every = 1;
  const auto generator = world.generator();
  const Tokens first = join(join(text_of(1, 9), kInvocation), text_of(2, 7));
  const Tokens text = join(join(first, kInvocation), text_of(3, 6));
  const Said want = alone(world, text, 4, "a");
  const Said base = alone(world, text, 4, nullptr);
  const auto whole = generator->new_session().value();
  (void)say(*whole, text, 1, "a");
  for (size_t n = 1; n < text.size(); ++n) {
    SCOPED_TRACE(n);
    const auto session = whole->fork().value();
    ASSERT_TRUE(session->truncate(static_cast<int32_t>(n)).ok());
    // A session that is loaded has no adapters, but their entries.
    const auto loaded = generator->new_session().value();
    ASSERT_TRUE(loaded->load(state_of(*session)).ok());
    const auto cut = loaded->fork().value();
    for (Session* const each : {session.get(), loaded.get(), cut.get()}) {
      std::array<int32_t, 3> dims = {};
      std::vector<float> state(1 << 12);
      ASSERT_TRUE(each->read_state(0, &dims, state.data(), state.size()).ok());
    }
    const auto rest = [&](size_t from) {
      return Tokens(text.begin() + static_cast<std::ptrdiff_t>(from), text.end());
    };
    EXPECT_EQ(say(*session, rest(n), 4, "a"), want);
    EXPECT_EQ(say(*loaded, rest(n), 4, "a"), want);
    ASSERT_TRUE(cut->truncate(static_cast<int32_t>(n - 1)).ok());
    EXPECT_EQ(say(*cut, rest(n - 1), 4, nullptr), base);
  }
}

// What a shift keeps of rows with the adapter is still the adapter's: a call without it evaluates
// them again, behind the entries of the base that were shifted. The reference is shifted without
// ever having had the adapter, and then cut.
TEST(ActivatedAdapter, HasItsRowsAfterAShift) {
  World world;
  world.options.shift_context = true;
  world.options.context_keep = 8;
  const auto generator = world.generator();
  const int32_t context = generator->max_seq_len();
  const Tokens more = text_of(6, 9);
  const int32_t dropped = (context - 8) / 2;
  for (const int32_t first : {3, 8, 20, 8 + dropped, 70}) {
    SCOPED_TRACE(first);
    const Tokens before = join(text_of(4, static_cast<size_t>(first)), kInvocation);
    const Tokens text = join(before, text_of(5, static_cast<size_t>(context) - before.size() - 1));
    const auto session = generator->new_session().value();
    (void)say(*session, text, 1, "a");
    ASSERT_EQ(session->length(), context);
    const Said said = say(*session, more, 6, nullptr);

    const auto plain = generator->new_session().value();
    Tokens whole = text;
    whole.push_back(alone(world, text, 1, "a").tokens.at(0));
    ASSERT_TRUE(plain->append({.text = {}, .tokens = whole}).ok());
    ASSERT_TRUE(plain->append({.text = {}, .tokens = more}).ok());
    const Tokens held = plain->tokens().value();
    ASSERT_EQ(held.size(), whole.size() - static_cast<size_t>(dropped) + more.size());
    const int32_t cut = first < 8 ? first : std::max(first - dropped, 8);
    ASSERT_TRUE(plain->truncate(cut).ok());
    EXPECT_EQ(said, say(*plain, Tokens(held.begin() + cut, held.end()), 6, nullptr));
  }
}

TEST(ActivatedAdapter, IsNotMixed) {
  const World world;
  const std::vector<model::AdapterChoice> both = {{"p", 1}, {"a", 1}};
  const auto refused = world.place.model.adapters()->mix(both);
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_STREQ(
      refused.status().message(),
      "adapter \"a\" is activated by its invocation tokens and cannot be mixed with others");
  const std::vector<model::AdapterChoice> off = {{"p", 0}, {"a", 1}};
  EXPECT_TRUE(world.place.model.adapters()->mix(off).ok());
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Sessions of a model with recurrent layers: what they say depends neither on drafts, which are
// chains for such a model, nor on steps, on others, on being forked or on having gone back.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "generate/batch_run.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/generator.h"
#include "generate/said.h"
#include "generate/watched_model.h"
#include "support/drift_model.h"

namespace gen::generate {
namespace {

class RecurrentSessions : public ::testing::Test {
 protected:
  std::shared_ptr<const Generator> generator(std::shared_ptr<Drafter> drafter = nullptr,
                                             int32_t chunk = 8) {
    GeneratorOptions options;
    options.prefill_chunk = chunk;
    options.max_sequences = 8;
    options.drafter = std::move(drafter);
    model = std::make_shared<WatchedModel>(tiny.model());
    return Generator::create(model, nullptr, options).value();
  }
  /// What a session says that has never been anything else.
  Said fresh(const Tokens& text, int32_t n) {
    return say(*generator()->new_session().value(), text, n);
  }

  const test::LoadedTiny tiny{test::TinyModel(test::drift_spec()), test::with_drift()};
  std::shared_ptr<WatchedModel> model;
};

TEST_F(RecurrentSessions, DraftsShowInNoResult) {
  const Tokens prompt = text_of(1, 11);
  const Tokens more = text_of(2, 5);
  const auto plain = generator()->new_session().value();
  const Said want = say(*plain, prompt, 30);
  const Said want_more = say(*plain, more, 30);
  ASSERT_TRUE(want_more.status.ok()) << want_more.status.message();
  for (const double p : {0.0, 0.5, 1.0}) {
    for (const int32_t rows : {1, 4, 13}) {
      SCOPED_TRACE(testing::Message() << p << " " << rows);
      const auto drafter =
          std::make_shared<KnowingDrafter>(KnowingDrafter::Options{p, rows, 3, 50});
      drafter->learn(plain->tokens().value());
      const auto session = generator(drafter)->new_session().value();
      EXPECT_EQ(say(*session, prompt, 30), want);
      EXPECT_EQ(say(*session, more, 30), want_more);
      EXPECT_EQ(session->tokens().value(), plain->tokens().value());
      EXPECT_GT(drafter->proposals, 0);
      EXPECT_EQ(drafter->branched, 0);  // a state has no branches
      if (p > 0.0) {
        EXPECT_GT(drafter->accepted, 0);
      }
    }
  }
}

TEST_F(RecurrentSessions, ManyAtOnce) {
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 9; ++i) prompts.push_back(text_of(i, 3 + 4 * i));
  const auto drafter = std::make_shared<KnowingDrafter>(KnowingDrafter::Options{0.5, 4, 1, 50});
  std::vector<Said> want;
  for (const Tokens& prompt : prompts) {
    want.push_back(fresh(prompt, 20));
    drafter->learn(join(prompt, want.back().tokens));
  }
  std::vector<BatchRequest> requests;
  for (const Tokens& prompt : prompts) {
    requests.push_back({{.text = {}, .tokens = prompt}, params_of(20), {}});
  }
  for (const bool drafts : {false, true}) {
    const auto made = generator(drafts ? drafter : nullptr, 5);
    const auto results = run_batch(*made, requests, nullptr, nullptr);
    for (size_t i = 0; i < results.size(); ++i) {
      const Said got = {results[i].status, results[i].tokens, results[i].logprobs, 0};
      EXPECT_EQ(got, want[i]) << i;
    }
  }
}

TEST_F(RecurrentSessions, ForksAndCuts) {
  const Tokens prompt = text_of(3, 20);
  const auto drafter = std::make_shared<KnowingDrafter>(KnowingDrafter::Options{0.6, 4, 1, 50});
  for (const bool drafts : {false, true}) {
    const auto made = generator(drafts ? drafter : nullptr);
    const auto session = made->new_session().value();
    const Tokens said = say(*session, prompt, 15).tokens;
    const Tokens all = session->tokens().value();
    const auto fork = session->fork().value();
    const Tokens end = text_of(4, 6);
    EXPECT_EQ(say(*fork, end, 9), fresh(join(all, end), 9));
    EXPECT_EQ(say(*session, {7}, 9), fresh(join(all, {7}), 9));

    ASSERT_TRUE(session->truncate(23).ok());
    EXPECT_EQ(say(*session, {9}, 1), fresh(join(first(all, 23), {9}), 1));
    ASSERT_TRUE(session->truncate(8).ok());
    EXPECT_EQ(session->tokens().value(), first(all, 8));
    EXPECT_EQ(say(*session, end, 5), fresh(join(first(all, 8), end), 5));
  }
}

TEST_F(RecurrentSessions, SnapshotsSaveRows) {
  const auto session = generator()->new_session().value();
  const WatchedModel& watched = *model;
  const Tokens prompt = text_of(3, 20);
  say(*session, prompt, 15);
  const auto cost = [&](int32_t n) {
    EXPECT_TRUE(session->truncate(n).ok());
    const int64_t before = watched.rows;
    EXPECT_TRUE(say(*session, {9}, 1).status.ok());
    return watched.rows - before;
  };
  EXPECT_EQ(cost(23), 5);  // three of the text after the prompt, its last one, and the new one
  EXPECT_EQ(cost(20), 2);
  EXPECT_EQ(cost(19), 1);
  EXPECT_EQ(cost(18), 19);
}

TEST_F(RecurrentSessions, AreSavedAndLoaded) {
  const Tokens prompt = text_of(6, 9);
  const auto plain = generator()->new_session().value();
  say(*plain, prompt, 30);
  const auto drafter = std::make_shared<KnowingDrafter>(KnowingDrafter::Options{0.8, 4, 1, 50});
  drafter->learn(plain->tokens().value());
  for (int32_t n = 1; n < 12; ++n) {  // rows of drafts are left over after some of them
    const auto made = generator(drafter);
    const auto session = made->new_session().value();
    say(*session, prompt, n);
    const std::vector<std::byte> state = state_of(*session);
    const auto loaded = made->new_session().value();
    ASSERT_TRUE(loaded->load(state).ok());
    const int64_t before = model->rows;
    const Said got = say(*loaded, {3, 1}, 6);
    EXPECT_EQ(got, say(*session, {3, 1}, 6)) << n;
    EXPECT_LT(model->rows - before, 2 * 40);  // the text is not run again
    // Without the section, and with another length in it.
    for (const size_t offset : {size_t{24}, state.size() / 2}) {
      std::vector<std::byte> damaged = state;
      damaged[offset] ^= std::byte{1};
      const auto other = made->new_session().value();
      EXPECT_EQ(other->load(damaged).code(), Code::kFormat);
      EXPECT_EQ(other->length(), 0);
    }
  }
  test::TinyModelSpec spec = test::drift_spec();
  spec.recurrent = {0, 0, 0, 0};
  const test::LoadedTiny without(test::TinyModel(spec), test::with_drift());
  GeneratorOptions options;
  const auto other =
      Generator::create(std::make_shared<WatchedModel>(without.model()), nullptr, options).value();
  EXPECT_EQ(other->new_session().value()->load(state_of(*plain)).code(), Code::kInvalidArgument);
}

TEST_F(RecurrentSessions, AFailedPassIsAsIfItHadNotBeen) {
  const Tokens prompt = text_of(5, 20);
  const Said want = fresh(prompt, 12);
  const Tokens more = {1, 2, 3};
  for (int32_t failing = 1; failing < 20; failing += 3) {
    const auto drafter = std::make_shared<KnowingDrafter>(KnowingDrafter::Options{0.5, 4, 1, 50});
    drafter->learn(join(prompt, want.tokens));
    const auto made = generator(drafter);
    model->after_forward = [failing, passes = 0]() mutable {
      return ++passes == failing ? error(Code::kDevice, "no such luck") : Status();
    };
    const auto session = made->new_session().value();
    Said got = say(*session, prompt, 12);
    if (!got.status.ok()) {
      EXPECT_EQ(got.status.code(), Code::kDevice);
      EXPECT_EQ(session->length(), 0);
      got = say(*session, prompt, 12);
    }
    EXPECT_EQ(got, want) << failing;
    EXPECT_EQ(say(*session, more, 4), fresh(join(join(prompt, want.tokens), more), 4));
  }
}

}  // namespace
}  // namespace gen::generate

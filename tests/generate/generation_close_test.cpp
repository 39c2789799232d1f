// SPDX-License-Identifier: Apache-2.0
// Proves that a generation may be closed at any moment, its request not yet queued, queued, or run
// by somebody else's step: what the session then holds is a prefix of a text, its cache holds no
// more than that, and it goes on, forks, saves, loads, is cut and emptied like a session that never
// had a stream, in every form of cache; others find nothing wrong in the prefix cache.
#include <gtest/gtest.h>

#include "generate/cache_forms.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

const Tokens kMore = {9, 8, 7};

void goes_on(Session& session, const Generator&, const FreshSessions& fresh) {
  const Tokens tokens = tokens_of(session);
  EXPECT_EQ(say(session, kMore, 5), fresh.say(join(tokens, kMore), 5));
}

void is_emptied(Session& session, const Generator&, const FreshSessions& fresh) {
  ASSERT_TRUE(session.reset().ok());
  EXPECT_EQ(session.cache().length(), 0);
  EXPECT_EQ(say(session, kMore, 12), fresh.say(kMore, 12));
}

void is_cut(Session& session, const Generator&, const FreshSessions& fresh) {
  Tokens tokens = tokens_of(session);
  tokens.resize(tokens.size() / 2);
  ASSERT_TRUE(session.truncate(static_cast<int32_t>(tokens.size())).ok());
  EXPECT_EQ(say(session, kMore, 5), fresh.say(join(tokens, kMore), 5));
}

void is_forked(Session& session, const Generator&, const FreshSessions& fresh) {
  const Tokens tokens = tokens_of(session);
  const auto fork = session.fork().value();
  EXPECT_EQ(say(*fork, kMore, 5), fresh.say(join(tokens, kMore), 5));
  EXPECT_EQ(say(session, kMore, 5), fresh.say(join(tokens, kMore), 5));
}

void is_saved(Session& session, const Generator& generator, const FreshSessions& fresh) {
  const Tokens tokens = tokens_of(session);
  const auto loaded = generator.new_session().value();
  const Status status = loaded->load(state_of(session));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(tokens_of(*loaded), tokens);
  EXPECT_EQ(say(*loaded, kMore, 5), fresh.say(join(tokens, kMore), 5));
}

void is_scored(Session& session, const Generator&, const FreshSessions& fresh) {
  const Tokens tokens = tokens_of(session);
  std::vector<float> scores;
  ASSERT_TRUE(session.score({.tokens = kMore}, &scores, nullptr).ok());
  EXPECT_EQ(tokens_of(session), tokens);
  ASSERT_TRUE(session.append({.tokens = kMore}).ok());
  EXPECT_EQ(say(session, {}, 5), fresh.say(join(tokens, kMore), 5));
}

/// Blocks of a text that is appended get into the prefix cache; another session finds them.
void teaches_others(Session& session, const Generator& generator, const FreshSessions& fresh) {
  const Tokens lesson = text_of(3, 24);
  ASSERT_TRUE(session.append({.tokens = lesson}).ok());
  const Tokens tokens = tokens_of(session);
  EXPECT_EQ(say(*generator.new_session().value(), tokens, 5), fresh.say(tokens, 5));
}

/// What is done with a session whose stream was closed.
struct After {
  const char* name;
  void (*check)(Session& session, const Generator& generator, const FreshSessions& fresh);
};
constexpr After kAfter[] = {{"goes on", goes_on},     {"is emptied", is_emptied},
                            {"is cut", is_cut},       {"is forked", is_forked},
                            {"is saved", is_saved},   {"is scored", is_scored},
                            {"teaches others", teaches_others}};

class GenerationClose : public testing::TestWithParam<CacheForm> {};

TEST_P(GenerationClose, AtEveryMoment) {
  const FreshSessions fresh(GetParam());
  const Tokens prompt = text_of(1, 21);  // three chunks
  int done_by_others = 0;
  test::Thinned thinned(3);
  for (const After& after : kAfter) {
    for (int polls = 0; polls <= 9; ++polls) {
      for (const bool step_of_another : {false, true}) {
        if (thinned.skips()) continue;
        SCOPED_TRACE(testing::Message() << "after " << polls << " polls, "
                                        << (step_of_another ? "run by another" : "not run")
                                        << ", then " << after.name);
        const auto generator = generator_of(GetParam());
        const auto session = generator->new_session().value();
        const auto other = generator->new_session().value();
        ASSERT_TRUE(other->append({.tokens = text_of(2, 10)}).ok());
        auto stream = session->open({.tokens = prompt}, params_of(20)).value();
        auto neighbour = other->open({}, params_of(20)).value();
        Tokens given;
        for (int i = 0; i < polls; ++i) {
          const Event* const event = stream->poll();
          if (event != nullptr) given.push_back(event->token);
        }
        const int32_t before = session->cache().length();
        if (step_of_another) {
          (void)neighbour->poll();
          (void)neighbour->poll();
          // What has run is its owner's to commit.
          EXPECT_EQ(session->cache().length(), before);
        }
        stream.reset();
        if (session->cache().length() > before) ++done_by_others;
        neighbour.reset();

        // A part of the prompt, or all of it and what was given.
        const Tokens tokens = tokens_of(*session);
        const Tokens whole = join(prompt, given);
        ASSERT_LE(tokens.size(), whole.size());
        EXPECT_EQ(tokens, Tokens(whole.begin(), whole.begin() + std::ssize(tokens)));
        EXPECT_EQ(session->length(), static_cast<int32_t>(tokens.size()));
        EXPECT_LE(session->cache().length(), session->length());
        after.check(*session, *generator, fresh);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(done_by_others, 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, GenerationClose, testing::ValuesIn(all_cache_forms()));

}  // namespace
}  // namespace gen::generate

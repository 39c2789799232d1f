// SPDX-License-Identifier: Apache-2.0
// gen_ssm_state_restore of a session's state: the session goes on from a snapshot with the same
// bits, and answers, held back text and what came from a file are what they were then.
#include "session_state_world.h"

namespace gen {
namespace {

TEST_P(SessionState, SessionsGoBack) {
  ASSERT_EQ(gen_options_set(options, "state_snapshot_every", "4", &error), GEN_OK);
  for (const bool paged : {false, true}) {
    SCOPED_TRACE(paged);
    if (paged && !attends()) continue;
    if (paged) {
      ASSERT_EQ(gen_options_set_paged_kv(options, 1, 16, &error), GEN_OK);
    }
    open();
    std::map<size_t, int64_t> snapshots;
    std::map<size_t, std::vector<Floats>> states;
    size_t done = 0;
    for (const size_t n : {size_t{1}, size_t{10}, size_t{24}, size_t{100}}) {
      append(session, done, n - done);
      ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshots[n], &error), GEN_OK) << error.message;
      states[n] = by_steps(n - 1);
      done = n;
    }
    for (const size_t n : {size_t{100}, size_t{24}, size_t{10}, size_t{1}}) {
      SCOPED_TRACE(n);
      gen_session* const other = fresh();
      append(other, 0, n);
      const std::vector<float> want = say(other);
      gen_session_free(other);
      for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(gen_ssm_state_restore(view, snapshots[n], &error), GEN_OK) << error.message;
        EXPECT_EQ(gen_session_length(session), static_cast<int32_t>(n));
        EXPECT_EQ(gen_ssm_state_position(view), static_cast<int32_t>(n) - 1);
        if (round == 1) {
          EXPECT_EQ(all(view), states[n]);
        }
        EXPECT_EQ(say(session), want);
      }
    }
  }
}

TEST_P(SessionState, NotToAnotherText) {
  append(session, 0, 20);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  ASSERT_EQ(gen_session_truncate(session, 10, &error), GEN_OK);
  EXPECT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_ERROR_STATE);
  append(session, 50, 30);
  const std::vector<Floats> before = all(view);
  EXPECT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_ERROR_STATE);
  EXPECT_STREQ(error.message,
               "the text begins with 10 of the 19 tokens that the snapshot was taken after");
  EXPECT_EQ(gen_session_length(session), 40);
  EXPECT_EQ(all(view), before);
  // The same tokens again are the same text.
  ASSERT_EQ(gen_session_truncate(session, 10, &error), GEN_OK);
  append(session, 10, 60);
  ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_session_length(session), 20);
  EXPECT_EQ(all(view), by_steps(19));
}

// Where the last answer ended is part of what is restored: what follows it is the next prompt.
TEST_P(SessionState, AnswersEndWhereTheyDid) {
  append(session, 0, 10);
  say(session);
  append(session, 10, 8);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  int64_t prompt = 0;
  const std::vector<float> want = say(session, &prompt);
  EXPECT_EQ(prompt, 8);
  ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK) << error.message;
  EXPECT_EQ(say(session, &prompt), want);
  EXPECT_EQ(prompt, 8);
}

// So is text that was held back as the possible begin of a stop string.
TEST_P(SessionState, TextThatIsHeldBackStays) {
  append(session, 0, 12);
  gen_session* fork = nullptr;
  ASSERT_EQ(gen_session_fork(session, &fork, &error), GEN_OK);
  const std::string text = text_of(fork, 12);
  gen_session_free(fork);
  ASSERT_GT(text.size(), 3U);
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_temperature(sampling, 0, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_add_stop_string(sampling, text.data(), text.size(), &error), GEN_OK)
      << error.message;
  gen_stream* stream = nullptr;
  ASSERT_EQ(gen_stream_open(session, "", 0, sampling, &stream, &error), GEN_OK) << error.message;
  for (int i = 0; i < 1000 && gen_session_length(session) < 15; ++i) {
    const gen_token* token = nullptr;
    int32_t state = 0;
    ASSERT_EQ(gen_stream_poll(stream, &token, &state, &error), GEN_OK);
  }
  gen_stream_close(stream);
  gen_sampling_free(sampling);
  const int32_t held = gen_session_length(session);
  ASSERT_GE(held, 15);
  ASSERT_LT(held, 24);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(text_of(session, 24 - held), text) << round;
    ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK);
  }
}

// A file may hold any numbers. A session that goes back to them shares nothing of what follows.
TEST_P(SessionState, WhatCameFromAFileIsNotShared) {
  for (const auto& [key, value] :
       {std::pair{"paged_kv", "16,4"}, {"prefix_cache", "1000"}, {"state_snapshot_every", "4"}}) {
    ASSERT_EQ(gen_options_set(options, key, value, &error), GEN_OK) << error.message;
  }
  open();
  append(session, 0, 61);
  const std::vector<float> want = say(session);
  open();
  append(session, 0, 39);
  append(session, 39, 1);  // alone, so that no rows are kept beside the state
  std::vector<std::byte> saved = changed_state(session);
  open();  // with nothing to share
  ASSERT_EQ(gen_session_load_buffer(session, saved.data(), saved.size(), &error), GEN_OK)
      << error.message;
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  ASSERT_EQ(gen_session_reset(session, &error), GEN_OK);
  append(session, 0, 40);
  const std::vector<Floats> own = all(view);
  ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK) << error.message;
  EXPECT_FALSE(all(view) == own);
  append(session, 40, 21);
  gen_session* const other = fresh();
  append(other, 0, 61);
  EXPECT_EQ(say(other), want);
  gen_session_free(other);
}

INSTANTIATE_TEST_SUITE_P(Families, SessionState,
                         ::testing::Values("qwen35", "mamba", "mamba2", "lfm2"));

}  // namespace
}  // namespace gen

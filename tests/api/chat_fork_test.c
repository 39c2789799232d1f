/* SPDX-License-Identifier: Apache-2.0 */
/* Two continuations of one chat: a conversation with the same messages, and the first one's session
 * loaded into its own. What was drawn stays as it was drawn, which a session made anew may split
 * otherwise. */
#include "chat_calls.h"

/* Draws tokens that the tokenizer would seldom choose. */
static gen_sampling* wild(void) {
  gen_sampling* sampling = greedy(60);
  assert_ok(gen_sampling_set(sampling, "temperature", "3", &error), error);
  assert_ok(gen_sampling_set(sampling, "seed", "7", &error), error);
  return sampling;
}

static gen_chat_session* talk_of(gen_generator* generator, gen_chat* chat) {
  gen_chat_session* talk = NULL;
  assert_ok(gen_chat_session_new(generator, chat, &talk, &error), error);
  return talk;
}

/* Sends the message and returns how many tokens ran for it. */
static size_t sent(gen_chat_session* talk, const char* text, char* said, size_t capacity) {
  gen_sampling* sampling = greedy(12);
  gen_result* result = NULL;
  assert_ok(gen_chat_session_send(talk, text, N, sampling, &result, &error), error);
  snprintf(said, capacity, "%s", gen_result_text(result, NULL));
  const size_t evaluated = usage(result, "prompt_evaluated");
  gen_result_free(result);
  gen_sampling_free(sampling);
  return evaluated;
}

static void a_fork_goes_on_with_what_was_drawn(void** state) {
  (void)state;
  gen_generator* generator = new_generator("stop", 0);
  gen_chat* chat = new_chat();
  gen_chat_session* talk = talk_of(generator, chat);
  gen_sampling* sampling = wild();
  gen_result* result = NULL;
  assert_ok(gen_chat_session_send(talk, "A story!", N, sampling, &result, &error), error);
  gen_chat* others[2] = {new_chat(), new_chat()};
  for (int i = 0; i < 2; ++i) {
    add(others[i], "user", "A story!");
    add(others[i], "assistant", gen_result_text(result, NULL));
  }
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session* session = gen_chat_session_session(talk);
  int32_t drawn[MANY];
  int32_t now[MANY];
  const size_t n_drawn = held(session, drawn);
  size_t size = 0;
  assert_ok(gen_session_save_buffer(session, NULL, 0, &size, &error), error);
  unsigned char* const saved = malloc(size);
  assert_non_null(saved);
  assert_ok(gen_session_save_buffer(session, saved, size, &size, &error), error);

  gen_chat_session* fork = talk_of(generator, others[0]);
  gen_session* forked = gen_chat_session_session(fork);
  assert_ok(gen_session_load_buffer(forked, saved, size, &error), error);
  free(saved);
  char said[2][512];
  const size_t evaluated = sent(fork, "And then?", said[0], sizeof said[0]);
  assert_true(evaluated < n_drawn);
  assert_true(held(forked, now) > n_drawn);
  assert_memory_equal(now, drawn, n_drawn * sizeof *drawn);
  /* The first one notices nothing of it, and says the same. */
  assert_int_equal(held(session, now), n_drawn);
  assert_int_equal(sent(talk, "And then?", said[1], sizeof said[1]), evaluated);
  assert_string_equal(said[0], said[1]);

  /* One that is made anew encodes the text. */
  gen_chat_session* fresh = talk_of(generator, others[1]);
  assert_true(sent(fresh, "And then?", said[1], sizeof said[1]) > evaluated);
  assert_true(held(gen_chat_session_session(fresh), now) > 0);
  assert_memory_not_equal(now, drawn, n_drawn * sizeof *drawn);
  gen_chat_session_free(fresh);
  gen_chat_session_free(fork);
  gen_chat_session_free(talk);
  for (int i = 0; i < 2; ++i) gen_chat_free(others[i]);
  gen_chat_free(chat);
  gen_free(generator);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_fork_goes_on_with_what_was_drawn)};
  return cmocka_run_group_tests(tests, load, unload);
}

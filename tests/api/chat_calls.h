/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of chat.h: a model and its special tokens, conversations, and the contents of
 * sessions. */
#ifndef GENERATE_TESTS_CHAT_CALLS_H
#define GENERATE_TESTS_CHAT_CALLS_H

#include "api_test.h"

#include <unistd.h>

#define N GEN_NUL_TERMINATED
#define MANY 4096

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static gen_model* model;
static int32_t im_start;
static int32_t im_end;

static inline int load(void** state) {
  (void)state;
  model = load_draft();
  im_end = gen_tokenizer_special(gen_model_tokenizer(model), GEN_SPECIAL_EOT);
  size_t n = 0;
  return gen_tokenizer_encode(gen_model_tokenizer(model), "<|im_start|>", N,
                              GEN_ENCODE_PARSE_SPECIAL, &im_start, 1, &n, &error) == GEN_OK
             ? 0
             : -1;
}

static inline int unload(void** state) {
  (void)state;
  gen_model_free(model);
  return 0;
}

static inline gen_chat* new_chat(void) {
  gen_chat* chat = NULL;
  assert_ok(gen_chat_new(&chat, &error), error);
  return chat;
}

static inline void add(gen_chat* chat, const char* role, const char* text) {
  assert_ok(gen_chat_add(chat, role, text, N, &error), error);
}

static inline const char* formatted(const gen_chat* chat, int32_t opening) {
  static char text[8192];
  size_t n = 0;
  assert_ok(gen_chat_format(model, chat, opening, text, sizeof text, &n, &error), error);
  assert_int_equal(n, strlen(text));
  return text;
}

static inline size_t encoded(const gen_chat* chat, int32_t opening, int32_t* ids) {
  size_t n = 0;
  assert_ok(gen_chat_encode(model, chat, opening, ids, MANY, &n, &error), error);
  return n;
}

static inline size_t count(const int32_t* ids, size_t n, int32_t id) {
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) found += ids[i] == id;
  return found;
}

static inline gen_generator* new_generator(const char* policy, int32_t keep) {
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_context_policy(options, policy, keep, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  return generator;
}

static inline size_t held(const gen_session* session, int32_t* ids) {
  size_t n = 0;
  assert_ok(gen_session_tokens(session, ids, MANY, &n, &error), error);
  return n;
}

static inline size_t usage(const gen_result* result, const char* key) {
  int64_t value = -1;
  assert_ok(gen_result_usage(result, key, &value, &error), error);
  return (size_t)value;
}

#endif

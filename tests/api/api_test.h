/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the C tests: cmocka with the headers that it needs, checks of status and message, and
 * the bundled draft model, which loads in milliseconds. GEN_TEST_SOURCE_DIR is the source tree.
 */
#ifndef TESTS_API_API_TEST_H
#define TESTS_API_API_TEST_H

/* For strdup, setenv, threads and signals beside plain C11. */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <generate/experimental.h>
#include <generate/generate.h>

#include "status_record.h"

/* The error of a test's calls; each test program has its own copy. */
static gen_error error __attribute__((unused));

#define DRAFT_MODEL GEN_TEST_SOURCE_DIR "/examples/demo_model/draft.gguf"

/* The call succeeded; its message is printed if not. `error` must be the gen_error given to it. */
#define assert_ok(call, error)                                         \
  do {                                                                 \
    const gen_status status_ = (call);                                 \
    if (status_ != GEN_OK) fail_msg("%s: %s", #call, (error).message); \
  } while (0)

/* The call failed with `code`, said so in the error, and its one-line message holds `part`. */
#define assert_fails(call, wanted, part, error)                                             \
  do {                                                                                      \
    memset(&(error), 0, sizeof(error));                                                     \
    const gen_status status_ = (call);                                                      \
    if (status_ != (wanted)) {                                                              \
      fail_msg("%s gave %s (%s), not %s", #call, gen_status_name(status_), (error).message, \
               gen_status_name(wanted));                                                    \
    }                                                                                       \
    assert_int_equal((error).code, (wanted));                                               \
    if (strstr((error).message, (part)) == NULL) {                                          \
      fail_msg("%s: message \"%s\" lacks \"%s\"", #call, (error).message, (part));          \
    }                                                                                       \
    assert_null(strchr((error).message, '\n'));                                             \
  } while (0)

/* The contents of a file; free() it. */
static inline unsigned char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char* bytes = malloc(*size + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

/* The draft model with two threads. */
static inline gen_model* load_draft(void) {
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set_threads(options, 2, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, options, &model, &error), error);
  gen_model_options_free(options);
  return model;
}

/* A generator of the draft model as a test's state: cmocka_unit_test_setup_teardown(test,
 * make_draft_generator, free_draft_generator). */
static inline int make_draft_generator(void** state) {
  gen_model* model = load_draft();
  gen_generator* generator = NULL;
  if (gen_create(model, NULL, &generator, &error) != GEN_OK) return -1;
  gen_model_free(model); /* the generator keeps it */
  *state = generator;
  return 0;
}
static inline int free_draft_generator(void** state) {
  gen_free(*state);
  return 0;
}

/* Sampling settings: greedy, at most `tokens`. */
static inline gen_sampling* greedy(int32_t tokens) {
  gen_sampling* sampling = NULL;
  assert_ok(gen_sampling_new(&sampling, &error), error);
  assert_ok(gen_sampling_set_temperature(sampling, 0, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(sampling, tokens, &error), error);
  return sampling;
}

#endif /* TESTS_API_API_TEST_H */

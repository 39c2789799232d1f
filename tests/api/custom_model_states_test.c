/* SPDX-License-Identifier: Apache-2.0 */
/* custom_model.h: that a toy model's states are made, copied, taken back and freed in balance, what
 * happens when they cannot be, and what sessions without a state can do instead. */
#include "toy_model.h"

#include <unistd.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t prompt[] = {3, 14, 15, 9, 26, 5, 35};
enum { PROMPT = sizeof prompt / sizeof prompt[0], MORE = 20 };

static void sessions_are_cut(void** state) {
  (void)state;
  for (int kind = 0; kind < KINDS; ++kind) {
    struct toy toy = {.at = -1};
    const gen_forward table = table_of(&toy, kind);
    gen_generator* generator = toy_generator(&table, NULL);
    gen_session* session = open_session(generator);
    assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
    assert_goes_on(session, &toy, MORE);
    if (kind != STATELESS) { /* the cache is not all of it */
      assert_fails(kv_cache_save(gen_session_cache(session), "nowhere", &error),
                   GEN_ERROR_UNSUPPORTED, "a state beside the cache", error);
    }
    for (int32_t n = PROMPT + 4; n > 0; n -= 3) {
      if (kind == ONE_WAY) {
        assert_fails(gen_session_truncate(session, n, &error), GEN_ERROR_UNSUPPORTED, "go back",
                     error);
      } else {
        assert_ok(gen_session_truncate(session, n, &error), error);
        assert_int_equal(gen_session_length(session), n);
        assert_ok(gen_session_append_tokens(session, prompt + 1, 2, &error), error);
      }
      assert_goes_on(session, &toy, 5);
    }
    assert_int_equal(toy.news, kind != STATELESS); /* cut, never made anew */
    assert_ok(gen_session_reset(session, &error), error);
    assert_ok(gen_session_append_tokens(session, prompt + 2, 3, &error), error);
    assert_goes_on(session, &toy, 5);
    gen_session_free(session);
    gen_free(generator);
    assert_balanced(&toy);
  }
}

static void sessions_are_forked(void** state) {
  (void)state;
  for (int kind = 0; kind < KINDS; ++kind) {
    struct toy toy = {.at = -1};
    const gen_forward table = table_of(&toy, kind);
    gen_generator* generator = toy_generator(&table, NULL);
    gen_session* session = open_session(generator);
    gen_session* fork = NULL;
    assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
    assert_goes_on(session, &toy, 4);
    assert_ok(gen_session_fork(session, &fork, &error), error);
    assert_int_equal(toy.clones, kind != STATELESS);
    assert_ok(gen_session_append_tokens(fork, prompt, 2, &error), error);
    assert_goes_on(fork, &toy, MORE);
    assert_goes_on(session, &toy, MORE);
    gen_session_free(session);
    assert_goes_on(fork, &toy, 3);
    gen_session_free(fork);
    gen_free(generator);
    assert_balanced(&toy);
  }
  struct toy toy = {.at = -1};
  gen_forward table = table_of(&toy, WITH_STATE);
  table.state_clone = NULL;
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = open_session(generator);
  gen_session* fork = session;
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_fails(gen_session_fork(session, &fork, &error), GEN_ERROR_UNSUPPORTED, "copied", error);
  assert_null(fork);
  assert_goes_on(session, &toy, 4);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
}

/* Not even a file of a session without state is taken. */
static void sessions_with_a_state_are_not_saved(void** state) {
  (void)state;
  const gen_status unsupported = GEN_ERROR_UNSUPPORTED;
  char path[] = "/tmp/custom-model-test-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0 && close(file) == 0);
  for (int kind = STATELESS; kind >= 0; --kind) {
    struct toy toy = {.at = -1};
    const gen_forward table = table_of(&toy, kind);
    gen_generator* generator = toy_generator(&table, NULL);
    gen_session* session = open_session(generator);
    gen_free(generator);
    if (kind == STATELESS) {
      assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
      assert_ok(gen_session_save(session, path, &error), error);
    } else {
      size_t size = 0;
      unsigned char* bytes = read_file(path, &size);
      assert_fails(gen_session_load(session, path, &error), unsupported, "saved", error);
      assert_fails(gen_session_load_buffer(session, bytes, size, &error), unsupported, "saved",
                   error);
      char none[sizeof path + 3];
      (void)snprintf(none, sizeof none, "%s-no", path);
      assert_fails(gen_session_save(session, none, &error), unsupported, "saved", error);
      assert_int_equal(access(none, F_OK), -1);
      free(bytes);
    }
    gen_session_free(session);
    assert_balanced(&toy);
  }
  assert_int_equal(unlink(path), 0);
}

static void sessions_without_state_are_saved(void** state) {
  (void)state;
  for (int kind = 0; kind < KINDS; ++kind) {
    struct toy toy = {.at = -1};
    const gen_forward table = table_of(&toy, kind);
    gen_generator* generator = toy_generator(&table, NULL);
    gen_session* session = open_session(generator);
    assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
    assert_goes_on(session, &toy, 4);
    size_t n = 0;
    if (kind != STATELESS) {
      assert_fails(gen_session_save_buffer(session, NULL, 0, &n, &error), GEN_ERROR_UNSUPPORTED,
                   "saved", error);
    } else {
      assert_ok(gen_session_save_buffer(session, NULL, 0, &n, &error), error);
      unsigned char* bytes = malloc(n);
      assert_ok(gen_session_save_buffer(session, bytes, n, &n, &error), error);
      gen_session* other = open_session(generator);
      assert_ok(gen_session_load_buffer(other, bytes, n, &error), error);
      assert_int_equal(gen_session_length(other), gen_session_length(session));
      assert_goes_on(other, &toy, MORE);
      gen_session_free(other);
      free(bytes);
    }
    gen_session_free(session);
    gen_free(generator);
    assert_balanced(&toy);
  }
}

/* Functions on states that refuse. */
static void states_that_fail(void** state) {
  (void)state;
  struct toy toy = {.at = -1, .status = GEN_ERROR_DEVICE, .message = "no state"};
  const gen_forward table = table_of(&toy, WITH_STATE);
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = NULL;
  gen_session* fork = NULL;
  toy.refuse_new = 1;
  assert_fails(gen_session_new(generator, &session, &error), GEN_ERROR_DEVICE, "no state", error);
  assert_null(session);
  toy.refuse_new = 0;
  session = open_session(generator);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  toy.refuse_clone = 1;
  toy.message = NULL;
  assert_fails(gen_session_fork(session, &fork, &error), GEN_ERROR_DEVICE,
               "the model's state_clone gave GEN_ERROR_DEVICE", error);
  toy.status = 12;
  assert_fails(gen_session_fork(session, &fork, &error), GEN_ERROR_MODEL, "state_clone gave 12",
               error);
  assert_null(fork);
  assert_goes_on(session, &toy, 4);
  /* One that does not go back is made anew, and costs no more than time. */
  toy.refuse_truncate = 1;
  assert_ok(gen_session_truncate(session, 5, &error), error);
  assert_int_equal(toy.news, 1);
  assert_goes_on(session, &toy, 4);
  assert_int_equal(toy.news, 2);
  /* After a failed step, too. */
  toy.at = toy.calls + 2;
  toy.fault = TOY_STATUS;
  toy.status = GEN_ERROR_IO;
  assert_fails_and_goes_on(session, &toy, GEN_ERROR_IO, "");
  assert_int_equal(toy.news, 3);
  /* And where making one fails, the next call tries again. */
  toy.refuse_new = 1;
  assert_ok(gen_session_truncate(session, 5, &error), error);
  assert_fails(gen_session_append_tokens(session, prompt, 2, &error), GEN_ERROR_IO, "state_new",
               error);
  assert_int_equal(gen_session_length(session), 5);
  toy.refuse_new = 0;
  assert_goes_on(session, &toy, 4);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
}

/* There is nothing to page, pool or put into files, which is no error; and raw passes are for
 * models without state. */
static void caches_hold_nothing(void** state) {
  (void)state;
  for (int kind = WITH_STATE; kind <= KINDS; ++kind) {
    struct toy toy = {.at = -1};
    const int copied = kind != KINDS; /* the last time round with a state that cannot be */
    gen_forward table = table_of(&toy, copied ? kind : WITH_STATE);
    if (!copied) table.state_clone = NULL;
    gen_model* model = toy_model(&table);
    gen_generator* generator = NULL;
    const char* settings[][2] = {
        {"compressed_kv", "8"}, {"tiered_kv", "16"}, {"paged_kv", "16"}, {"prefix_cache", "9"}};
    gen_options* chosen = NULL;
    for (int i = 0; i < 4; ++i) {
      if (i < 3) assert_ok(gen_options_new(&chosen, &error), error);
      assert_ok(gen_options_set(chosen, settings[i][0], settings[i][1], &error), error);
      assert_ok(gen_create(model, chosen, &generator, &error), error);
      if (i != 2) gen_options_free(chosen); /* a prefix cache needs the pool */
      for (int j = 0; j < 2; ++j) {
        gen_session* session = open_session(generator);
        assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
        assert_goes_on(session, &toy, MORE);
        gen_session_free(session);
      }
      if (i >= 2 && copied) { /* its blocks count tokens */
        kv_cache* counts = NULL;
        float row[TOY_VOCAB];
        size_t blocks = 0;
        assert_ok(kv_cache_generator_new(generator, 0, &counts, &error), error);
        assert_ok(gen_model_forward(model, prompt, PROMPT, counts, row, TOY_VOCAB, &error), error);
        assert_int_equal(kv_cache_seq_len(counts), PROMPT);
        assert_ok(kv_cache_block_table(counts, NULL, 0, &blocks, &error), error);
        assert_int_equal(blocks, 1);
        kv_cache_free(counts);
      }
      gen_free(generator);
    }
    const char* kinds[] = {"fp16", "q4", "fp8/q3"};
    for (int i = 0; i < 3; ++i) {
      gen_options* options = NULL;
      assert_ok(gen_options_new(&options, &error), error);
      assert_ok(gen_options_set_kv_dtype(options, kinds[i], &error), error);
      assert_ok(gen_create(model, options, &generator, &error), error);
      gen_options_free(options);
      gen_session* session = open_session(generator);
      assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
      assert_goes_on(session, &toy, 5);
      gen_session_free(session);
      if (i < 2) gen_free(generator);
    }
    kv_cache* cache = NULL;
    float logits[TOY_VOCAB];
    float expected[TOY_VOCAB];
    assert_ok(kv_cache_generator_new(generator, 0, &cache, &error), error);
    if (copied) {
      /* In two calls: a state stays with its cache. */
      assert_ok(gen_model_forward(model, prompt, 1, cache, logits, TOY_VOCAB, &error), error);
      assert_ok(gen_model_forward(model, prompt + 1, PROMPT - 1, cache, logits, TOY_VOCAB, &error),
                error);
      assert_int_equal(kv_cache_seq_len(cache), PROMPT);
      toy_write(expected, toy_next(prompt, PROMPT, toy.stateless));
      assert_memory_equal(logits, expected, sizeof logits);
      kv_cache* copy = NULL;
      assert_ok(kv_cache_clone(cache, &copy, &error), error);
      assert_ok(gen_model_forward(model, prompt, 1, cache, logits, TOY_VOCAB, &error), error);
      memcpy(expected, logits, sizeof logits);
      assert_ok(gen_model_forward(model, prompt, 1, copy, logits, TOY_VOCAB, &error), error);
      assert_memory_equal(logits, expected, sizeof logits);
      kv_cache_free(copy);
      if (kind != STATELESS) {
        assert_fails(kv_cache_save(cache, "nowhere", &error), GEN_ERROR_UNSUPPORTED, "session",
                     error);
        size_t n = 0;
        assert_fails(kv_cache_save_buffer(cache, NULL, 0, &n, &error), GEN_ERROR_UNSUPPORTED,
                     "session", error);
      }
      /* Another model's cache, which a state of its own goes with. */
      struct toy other_toy = {.at = -1};
      const gen_forward other_table = table_of(&other_toy, STATELESS);
      gen_model* other = toy_model(&other_table);
      if (kind != STATELESS) {
        assert_fails(gen_model_forward(other, prompt, 1, cache, logits, TOY_VOCAB, &error), bad,
                     "another model's state", error);
        assert_ok(kv_cache_reset(cache, &error), error);
        assert_ok(gen_model_forward(other, prompt, PROMPT, cache, logits, TOY_VOCAB, &error),
                  error);
        assert_fails(gen_model_forward(model, prompt, 1, cache, logits, TOY_VOCAB, &error),
                     GEN_ERROR_STATE, "cannot be", error);
      }
      /* An emptied cache has no state. */
      size_t bytes = 0;
      assert_ok(kv_cache_reset(cache, &error), error);
      assert_ok(gen_model_forward(model, prompt, PROMPT, cache, logits, TOY_VOCAB, &error), error);
      assert_ok(kv_cache_reset(cache, &error), error);
      assert_ok(kv_cache_save_buffer(cache, NULL, 0, &bytes, &error), error);
      assert_ok(gen_model_forward(model, prompt, PROMPT, cache, logits, TOY_VOCAB, &error), error);
      assert_ok(kv_cache_truncate(cache, -1, &error), error);
      assert_ok(kv_cache_save_buffer(cache, NULL, 0, &bytes, &error), error);
      gen_model_free(other);
      assert_ok(kv_cache_reset(cache, &error), error);
      assert_ok(gen_model_forward(model, prompt, PROMPT, cache, logits, TOY_VOCAB, &error), error);
      toy_write(expected, toy_next(prompt, PROMPT, toy.stateless));
      assert_memory_equal(logits, expected, sizeof logits);
    } else {
      assert_fails(gen_model_forward(model, prompt, PROMPT, cache, logits, TOY_VOCAB, &error),
                   GEN_ERROR_UNSUPPORTED, "sessions", error);
    }
    kv_cache_free(cache);
    gen_free(generator);
    gen_model_free(model);
    assert_balanced(&toy);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sessions_are_cut),
      cmocka_unit_test(sessions_are_forked),
      cmocka_unit_test(sessions_with_a_state_are_not_saved),
      cmocka_unit_test(sessions_without_state_are_saved),
      cmocka_unit_test(states_that_fail),
      cmocka_unit_test(caches_hold_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

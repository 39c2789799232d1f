/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call that runs a model, and what may go wrong under it for real: weights that are no
 * numbers, a pool too small, a file of tiers that cannot be written, is cut or is changed between
 * two steps. Nothing has changed after a failure, and when the trouble is over the same call
 * succeeds.
 */
#include "damage_files.h"

#include <sys/resource.h>

enum { TOKENS = 120, VOCAB = 4096, MORE = 20 };
static int32_t tokens[TOKENS];
static char text[TOKENS * 4];
static float logits[2 * VOCAB];

/* --- the calls */

static int go_on(void* user, const gen_token* token) {
  (void)user;
  (void)token;
  return 0;
}

/* Sessions are kept from the call, and must be as before it. */
static gen_session* session;
static gen_model* model;

static gen_status in_session(gen_generator* generator, gen_status (*call)(void)) {
  assert_ok(gen_session_new(generator, &session, &error), error);
  const gen_status status = call();
  if (status != GEN_OK) assert_int_equal(gen_session_length(session), 0);
  gen_session_free(session);
  return status;
}

static gen_status generate(gen_generator* generator) {
  gen_result* result = NULL;
  gen_sampling* sampling = greedy(MORE);
  const gen_status status =
      gen_generate(generator, text, GEN_NUL_TERMINATED, sampling, &result, &error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  return status;
}

static gen_status generate_stream(gen_generator* generator) {
  gen_sampling* sampling = greedy(MORE);
  const gen_status status =
      gen_generate_stream(generator, text, GEN_NUL_TERMINATED, sampling, go_on, NULL, NULL, &error);
  gen_sampling_free(sampling);
  return status;
}

static gen_status call_generate(void) {
  gen_sampling* sampling = greedy(MORE);
  const gen_status status =
      gen_session_generate(session, text, GEN_NUL_TERMINATED, sampling, NULL, &error);
  gen_sampling_free(sampling);
  return status;
}
static gen_status session_generate(gen_generator* generator) {
  return in_session(generator, call_generate);
}

static gen_status call_generate_stream(void) {
  gen_sampling* sampling = greedy(MORE);
  const gen_status status = gen_session_generate_stream(session, text, GEN_NUL_TERMINATED, sampling,
                                                        go_on, NULL, NULL, &error);
  gen_sampling_free(sampling);
  return status;
}
static gen_status session_generate_stream(gen_generator* generator) {
  return in_session(generator, call_generate_stream);
}

static gen_status call_stream(int polls) {
  gen_sampling* sampling = greedy(MORE);
  gen_stream* stream = NULL;
  const gen_token* token = NULL;
  int32_t state = GEN_STREAM_PENDING;
  gen_status status = gen_stream_open(session, text, GEN_NUL_TERMINATED, sampling, &stream, &error);
  while (status == GEN_OK && state != GEN_STREAM_END) {
    status = polls ? gen_stream_poll(stream, &token, &state, &error)
                   : gen_stream_next(stream, &token, &error);
    if (!polls && token == NULL) state = GEN_STREAM_END;
  }
  gen_stream_close(stream);
  gen_sampling_free(sampling);
  return status;
}
static gen_status call_next(void) { return call_stream(0); }
static gen_status call_poll(void) { return call_stream(1); }
static gen_status stream_next(gen_generator* generator) { return in_session(generator, call_next); }
static gen_status stream_poll(gen_generator* generator) { return in_session(generator, call_poll); }

static gen_status call_append(void) {
  return gen_session_append(session, text, GEN_NUL_TERMINATED, &error);
}
static gen_status session_append(gen_generator* generator) {
  return in_session(generator, call_append);
}

static gen_status call_append_tokens(void) {
  return gen_session_append_tokens(session, tokens, TOKENS, &error);
}
static gen_status session_append_tokens(gen_generator* generator) {
  return in_session(generator, call_append_tokens);
}

static gen_status call_score(void) {
  static float logprobs[10 * TOKENS];
  size_t n = 0;
  return gen_session_score(session, text, GEN_NUL_TERMINATED, logprobs, 10 * TOKENS, &n, &error);
}
static gen_status session_score(gen_generator* generator) {
  return in_session(generator, call_score);
}

static char folder[] = "/tmp/steps-fail-XXXXXX";
static int damages_between;

/* Of tokens twice, so that the second pass finds files of the first. */
enum pass { ALONE, BATCH, PROFILED, HIDDEN };
static gen_status pass(gen_generator* generator, enum pass kind) {
  kv_cache* cache = NULL;
  gen_profile* profile = NULL;
  gen_status status = GEN_OK;
  assert_ok(kv_cache_generator_new(generator, 2 * TOKENS, &cache, &error), error);
  assert_ok(gen_profile_new(&profile, &error), error);
  uint8_t wants[TOKENS] = {0};
  wants[TOKENS - 1] = 1;
  for (int i = 0; i < 2 && status == GEN_OK; ++i) {
    const int32_t before = kv_cache_seq_len(cache);
    if (i > 0 && damages_between) damage_files(folder, CHANGED);
    if (kind == ALONE) {
      status = gen_model_forward(model, tokens, TOKENS, cache, logits, VOCAB, &error);
    } else if (kind == BATCH) {
      status = gen_model_forward_batch(model, tokens, NULL, wants, TOKENS, &cache, 1, logits, VOCAB,
                                       &error);
    } else if (kind == HIDDEN) {
      static float hidden[TOKENS * 1024];
      const int32_t layer = 1;
      status = gen_model_forward_hidden(model, tokens, TOKENS, cache, &layer, 1, hidden,
                                        sizeof hidden / sizeof *hidden, &error);
    } else {
      status = gen_model_forward_profiled(model, tokens, NULL, wants, TOKENS, &cache, 1, logits,
                                          VOCAB, profile, &error);
    }
    assert_int_equal(kv_cache_seq_len(cache), before + (status == GEN_OK ? TOKENS : 0));
  }
  gen_profile_free(profile);
  kv_cache_free(cache);
  return status;
}
static gen_status forward(gen_generator* generator) { return pass(generator, ALONE); }
static gen_status forward_batch(gen_generator* generator) { return pass(generator, BATCH); }
static gen_status forward_profiled(gen_generator* generator) { return pass(generator, PROFILED); }
static gen_status forward_hidden(gen_generator* generator) { return pass(generator, HIDDEN); }

static const struct call {
  const char* name;
  gen_status (*run)(gen_generator* generator);
  int needs_logits; /* fails where these are no numbers */
  int is_pass;      /* tells nobody of its steps */
} calls[] = {
    {"gen_generate", generate, 1, 0},
    {"gen_generate_stream", generate_stream, 1, 0},
    {"gen_session_generate", session_generate, 1, 0},
    {"gen_session_generate_stream", session_generate_stream, 1, 0},
    {"gen_stream_next", stream_next, 1, 0},
    {"gen_stream_poll", stream_poll, 1, 0},
    {"gen_session_append", session_append, 0, 0},
    {"gen_session_append_tokens", session_append_tokens, 0, 0},
    {"gen_session_score", session_score, 1, 0},
    {"gen_model_forward", forward, 1, 1},
    {"gen_model_forward_batch", forward_batch, 1, 1},
    {"gen_model_forward_profiled", forward_profiled, 1, 1},
    {"gen_model_forward_hidden", forward_hidden, 0, 1},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void expect_status(const struct call* call, gen_generator* generator, gen_status wanted,
                          const char* part) {
  memset(&error, 0, sizeof error);
  const gen_status status = call->run(generator);
  if (status != wanted || strstr(error.message, part) == NULL) {
    fail_msg("%s gave %s (%s), not %s (%s)", call->name, gen_status_name(status), error.message,
             gen_status_name(wanted), part);
  }
}

/* --- the troubles */

static void weights_that_are_no_numbers(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  memset(bytes + size - 4096, 0xFF, 4096);
  assert_ok(gen_model_load_memory(bytes, size, NULL, &model, &error), error);
  free(bytes);
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  for (int i = 0; i < CALLS; ++i) {
    if (calls[i].needs_logits) expect_status(&calls[i], generator, GEN_ERROR_MODEL, "");
  }
  gen_free(generator);
  gen_model_free(model);
}

static gen_status refuse(void* user, const gen_forward_batch* batch, float* row, float* features,
                         gen_error* said) {
  (void)user;
  (void)batch;
  (void)row;
  (void)features;
  (void)said;
  return GEN_ERROR_MODEL;
}

/* A model of one's own that fails where no numbers are wanted either. */
static void a_function_that_fails(void** state) {
  (void)state;
  const gen_forward table = {.struct_size = sizeof table, .forward = refuse};
  gen_tokenizer* tokenizer = NULL;
  gen_model_config* config = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_tokenizer_load(DRAFT_MODEL, &tokenizer, &error), error);
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, VOCAB, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 1024, &error), error);
  assert_ok(gen_model_new_custom(&table, config, tokenizer, &model, &error), error);
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  for (int i = 0; i < CALLS; ++i) {
    if (!calls[i].is_pass) expect_status(&calls[i], generator, GEN_ERROR_MODEL, "");
  }
  gen_free(generator);
  gen_model_free(model);
  gen_model_config_free(config);
  gen_tokenizer_free(tokenizer);
}

static void a_pool_too_small(void** state) {
  (void)state;
  model = load_draft();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_paged_kv(options, 1, 16, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  /* Caches that take all blocks but two. */
  kv_cache* cache[16] = {NULL};
  int n_caches = 0;
  gen_status status = GEN_OK;
  while (status != GEN_ERROR_POOL_EXHAUSTED) {
    if (status == GEN_OK) {
      assert_true(n_caches < 16);
      assert_ok(kv_cache_generator_new(generator, 1024, &cache[n_caches++], &error), error);
    }
    do {
      status = gen_model_forward(model, tokens, 16, cache[n_caches - 1], logits, VOCAB, &error);
    } while (status == GEN_OK);
    if (status == GEN_ERROR_CONTEXT_FULL) status = GEN_OK;
  }
  assert_ok(kv_cache_truncate(cache[0], kv_cache_seq_len(cache[0]) - 32, &error), error);
  for (int i = 0; i < CALLS; ++i) {
    expect_status(&calls[i], generator, GEN_ERROR_POOL_EXHAUSTED, "");
  }
  /* What was saved elsewhere has no room either. */
  gen_generator* plain = NULL;
  gen_session* saved = NULL;
  gen_session* empty = NULL;
  size_t n = 0;
  size_t n_cache = 0;
  assert_ok(gen_create(model, NULL, &plain, &error), error);
  assert_ok(gen_session_new(plain, &saved, &error), error);
  assert_ok(gen_session_append_tokens(saved, tokens, TOKENS, &error), error);
  assert_ok(gen_session_save_buffer(saved, NULL, 0, &n, &error), error);
  unsigned char* bytes = malloc(n);
  assert_ok(gen_session_save_buffer(saved, bytes, n, &n, &error), error);
  assert_ok(gen_session_new(generator, &empty, &error), error);
  assert_fails(gen_session_load_buffer(empty, bytes, n, &error), GEN_ERROR_POOL_EXHAUSTED, "free",
               error);
  assert_int_equal(gen_session_length(empty), 0);
  kv_cache* other = NULL;
  kv_cache* small = NULL;
  assert_ok(kv_cache_generator_new(plain, 1024, &other, &error), error);
  assert_ok(gen_model_forward(model, tokens, TOKENS, other, logits, VOCAB, &error), error);
  assert_ok(kv_cache_save_buffer(other, NULL, 0, &n_cache, &error), error);
  unsigned char* cache_bytes = malloc(n_cache);
  assert_ok(kv_cache_save_buffer(other, cache_bytes, n_cache, &n_cache, &error), error);
  assert_ok(kv_cache_generator_new(generator, 1024, &small, &error), error);
  assert_fails(kv_cache_load_buffer(small, cache_bytes, n_cache, &error), GEN_ERROR_POOL_EXHAUSTED,
               "free", error);
  char path[] = "/tmp/steps-fail-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0 && close(file) == 0);
  assert_ok(kv_cache_save(other, path, &error), error);
  assert_fails(kv_cache_load(small, path, &error), GEN_ERROR_POOL_EXHAUSTED, "free", error);
  assert_int_equal(kv_cache_seq_len(small), 0);

  while (n_caches > 0) kv_cache_free(cache[--n_caches]); /* there is room now */
  for (int i = 0; i < CALLS; ++i) expect_status(&calls[i], generator, GEN_OK, "");
  assert_ok(gen_session_load_buffer(empty, bytes, n, &error), error);
  assert_ok(kv_cache_load(small, path, &error), error);
  assert_int_equal(unlink(path), 0);
  kv_cache_free(small);
  assert_ok(kv_cache_generator_new(generator, TOKENS - 1, &small, &error), error);
  assert_fails(kv_cache_load_buffer(small, cache_bytes, n_cache, &error), GEN_ERROR_CACHE_FULL,
               "120", error);
  kv_cache_free(small);
  kv_cache_free(other);
  free(cache_bytes);
  free(bytes);
  gen_session_free(empty);
  gen_session_free(saved);
  gen_free(plain);
  gen_free(generator);
  gen_options_free(options);
  gen_model_free(model);
}

/* A metrics sink that damages them after so many steps. */
static int steps_to_go;
static void count_step(void* user, const char* name, double value) {
  (void)user;
  (void)value;
  if (strcmp(name, "steps") == 0 && steps_to_go > 0 && --steps_to_go == 0)
    damage_files(folder, CHANGED);
}
static void drop(void* user, const char* name, double value) {
  (void)user;
  (void)name;
  (void)value;
}

static gen_generator* in_tiers(void) {
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  kv_cache_tier_config* config = NULL;
  const gen_metrics_sink sink = {sizeof sink, NULL, count_step, drop, drop};
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_cold_dir(config, folder, &error), error);
  assert_ok(kv_cache_tier_config_set_block_size(config, 16, &error), error);
  assert_ok(kv_cache_tier_config_set_hot_blocks(config, 1, &error), error);
  assert_ok(gen_options_set_tiered_kv(options, config, &error), error);
  assert_ok(gen_options_set_prefill_chunk(options, 16, &error), error);
  assert_ok(gen_options_set_metrics(options, &sink, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  kv_cache_tier_config_free(config);
  return generator;
}

static void files_of_tiers(void** state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  model = load_draft();
  gen_generator* generator = in_tiers();
  for (int i = 0; i < CALLS; ++i) {
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit none = {0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    expect_status(&calls[i], generator, GEN_ERROR_IO, folder);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    damages_between = calls[i].is_pass;
    steps_to_go = 4;
    expect_status(&calls[i], generator, GEN_ERROR_FORMAT, folder);
    damages_between = steps_to_go = 0;
    expect_status(&calls[i], generator, GEN_OK, "");
  }
  gen_free(generator);
  gen_model_free(model);
  assert_int_equal(rmdir(folder), 0);
}

/* Saving reads what is in files, loading writes them. */
static void states_in_tiers(void** state) {
  (void)state;
  strcpy(folder, "/tmp/steps-fail-XXXXXX");
  assert_non_null(mkdtemp(folder));
  char path[] = "/tmp/steps-fail-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0 && close(file) == 0);
  model = load_draft();
  gen_generator* generator = in_tiers();
  gen_session* full = NULL;
  gen_session* empty = NULL;
  kv_cache* cache = NULL;
  kv_cache* other = NULL;
  size_t n = 0;
  size_t n_cache = 0;
  assert_ok(gen_session_new(generator, &full, &error), error);
  assert_ok(gen_session_new(generator, &empty, &error), error);
  assert_ok(kv_cache_generator_new(generator, 2 * TOKENS, &cache, &error), error);
  assert_ok(kv_cache_generator_new(generator, 2 * TOKENS, &other, &error), error);
  assert_ok(gen_session_append_tokens(full, tokens, TOKENS, &error), error);
  assert_ok(gen_model_forward(model, tokens, TOKENS, cache, logits, VOCAB, &error), error);
  assert_ok(gen_session_save_buffer(full, NULL, 0, &n, &error), error);
  assert_ok(kv_cache_save_buffer(cache, NULL, 0, &n_cache, &error), error);
  void* bytes = malloc(n);
  void* cache_bytes = malloc(n_cache);
  assert_ok(gen_session_save_buffer(full, bytes, n, &n, &error), error);
  assert_ok(kv_cache_save_buffer(cache, cache_bytes, n_cache, &n_cache, &error), error);
  struct rlimit before;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit none = {0, before.rlim_max};
  const gen_status io = GEN_ERROR_IO;
  assert_ok(gen_session_save(full, path, &error), error);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  assert_fails(gen_session_load(empty, path, &error), io, folder, error);
  assert_fails(gen_session_load_buffer(empty, bytes, n, &error), io, folder, error);
  assert_fails(kv_cache_load_buffer(other, cache_bytes, n_cache, &error), io, folder, error);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(gen_session_length(empty), 0);
  assert_int_equal(kv_cache_seq_len(other), 0);
  damage_files(folder, CHANGED);
  const gen_status format = GEN_ERROR_FORMAT;
  size_t got = 0;
  assert_fails(gen_session_save(full, path, &error), format, folder, error);
  assert_fails(gen_session_save_buffer(full, bytes, n, &got, &error), format, folder, error);
  assert_fails(kv_cache_save(cache, path, &error), format, folder, error);
  assert_fails(kv_cache_save_buffer(cache, cache_bytes, n_cache, &got, &error), format, folder,
               error);
  assert_ok(gen_session_load(empty, path, &error), error); /* is still what was saved there */
  damage_files(folder, CUT);
  assert_fails(gen_session_save(full, path, &error), io, folder, error);
  assert_fails(gen_session_save_buffer(full, bytes, n, &got, &error), io, folder, error);
  gen_session_free(full);
  gen_session_free(empty);
  kv_cache_free(cache);
  kv_cache_free(other);
  gen_free(generator);
  gen_model_free(model);
  free(bytes);
  free(cache_bytes);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
}

static int begin(void** state) {
  (void)state;
  for (int32_t i = 0; i < TOKENS; ++i) tokens[i] = 300 + 7 * i;
  while (strlen(text) + 19 < sizeof text) strcat(text, "a dog and a house ");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_that_are_no_numbers),
      cmocka_unit_test(a_function_that_fails),
      cmocka_unit_test(a_pool_too_small),
      cmocka_unit_test(files_of_tiers),
      cmocka_unit_test(states_in_tiers),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}

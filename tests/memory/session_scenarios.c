/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and streams over caches of every kind. After a refused call the session holds what it
 * held. */
#include <stdio.h>
#include <stdlib.h>

#include "sweep.h"

static gen_model* model;
static gen_generator* generator;
static gen_sampling* lively;

static const char head[] = "Once upon a time there was";
static const char prompt[] = " another thing in the";

#define SETUP(call)                                                         \
  do {                                                                      \
    if ((call) != GEN_OK) sweep_fail(__FILE__, __LINE__, "%s", E->message); \
  } while (0)

/* with: pairs of option and value, then NULL. */
static void begin(const void* with) {
  gen_options* options = NULL;
  model = sweep_load();
  SETUP(gen_options_new(&options, E));
  SETUP(gen_options_set_prefill_chunk(options, 5, E));
  for (const char* const* option = with; option != NULL && *option != NULL; option += 2) {
    if (strcmp(option[0], "draft") == 0) {
      SETUP(gen_options_set_speculative_draft(options, model, atoi(option[1]), E));
      continue;
    }
    if (strcmp(option[0], "hot_blocks") != 0) {
      SETUP(gen_options_set(options, option[0], option[1], E));
      continue;
    }
    kv_cache_tier_config* tiers = NULL;
    SETUP(kv_cache_tier_config_new(&tiers, E));
    SETUP(kv_cache_tier_config_set_hot_blocks(tiers, atoi(option[1]), E));
    SETUP(kv_cache_tier_config_set_block_size(tiers, 8, E));
    SETUP(kv_cache_tier_config_set_prefetch_layers(tiers, 1, E));
    SETUP(gen_options_set_tiered_kv(options, tiers, E));
    kv_cache_tier_config_free(tiers);
  }
  SETUP(gen_create(model, options, &generator, E));
  gen_options_free(options);
  SETUP(gen_sampling_new(&lively, E));
  SETUP(gen_sampling_set_max_new_tokens(lively, 9, E));
  SETUP(gen_sampling_set_ignore_eos(lively, 1, E));
  SETUP(gen_sampling_set_seed(lively, 7, E));
  SETUP(gen_sampling_set_top_k(lively, 40, E));
  SETUP(gen_sampling_set_top_p(lively, 0.95, E));
  SETUP(gen_sampling_set_repetition_penalty(lively, 1.1, E));
  SETUP(gen_sampling_set_logprobs(lively, 2, E));
  SETUP(gen_sampling_add_stop_string(lively, "a string that does not come", GEN_NUL_TERMINATED, E));
}

static void end(const void* with) {
  (void)with;
  gen_sampling_free(lively);
  gen_free(generator);
  gen_model_free(model);
}

static void same_tokens(const gen_session* session) {
  int32_t ids[200];
  size_t n = 0;
  TRY(gen_session_tokens(session, ids, 200, &n, E));
  SAME(ids, n * sizeof *ids);
}

static void same_result(const gen_result* result) {
  size_t n = 0;
  CHECK(result != NULL && gen_result_error(result) == NULL);
  SAME_TEXT(gen_result_text(result, NULL));
  const int32_t* tokens = gen_result_tokens(result, &n);
  SAME(tokens, n * sizeof *tokens);
  const float* logprobs = gen_result_logprobs(result, &n);
  SAME(logprobs, n * sizeof *logprobs);
  int64_t used = 0;
  double seconds = 0;
  TRY(gen_result_usage(result, "completion", &used, E));
  TRY(gen_result_timings(result, "total", &seconds, E));
}

/* The session holds the same as before a call that was refused. */
#define KEEPS(session, length, call) \
  TRY_KEEPING(call, CHECK(gen_session_length(session) == (length)))

static void generate(gen_session* session, const char* more) {
  const int32_t length = gen_session_length(session);
  gen_result* result = NULL;
  KEEPS(session, length,
        (gen_result_free(result), result = NULL,
         gen_session_generate(session, more, GEN_NUL_TERMINATED, lively, &result, E)));
  same_result(result);
  FREE(gen_result_free(result));
  same_tokens(session);
}

static void session(const void* with) {
  (void)with;
  gen_session* one = NULL;
  gen_session* other = NULL;
  const int32_t more[] = {1, 2, 3};
  float logprobs[40];
  size_t n = 0;
  MAKE(one, gen_session_new(generator, &one, E));
  KEEPS(one, 0, gen_session_append(one, head, GEN_NUL_TERMINATED, E));
  generate(one, prompt);
  const int32_t length = gen_session_length(one);
  KEEPS(one, length, gen_session_score(one, " the other", GEN_NUL_TERMINATED, logprobs, 40, &n, E));
  SAME(logprobs, n * sizeof *logprobs);
  KEEPS(one, length, gen_session_append_tokens(one, more, 3, E));
  MAKE(other, gen_session_fork(one, &other, E));
  generate(other, "");
  TRY_KEEPING(gen_session_truncate(other, 20, E), CHECK(gen_session_length(other) > 20));
  generate(other, "");
  TRY(gen_session_reset(other, E));
  generate(other, head);
  same_tokens(one);
  FREE(gen_session_free(one));
  FREE(gen_session_free(other));
}

static void save(const void* with) {
  (void)with;
  gen_session* one = NULL;
  gen_session* other = NULL;
  static char state[1 << 18];
  size_t n = 0;
  MAKE(one, gen_session_new(generator, &one, E));
  KEEPS(one, 0, gen_session_append(one, head, GEN_NUL_TERMINATED, E));
  KEEPS(one, gen_session_length(one), gen_session_save_buffer(one, state, sizeof state, &n, E));
  const char* path = scratch("state");
  TRY(gen_session_save(one, path, E));
  MAKE(other, gen_session_new(generator, &other, E));
  KEEPS(other, 0, gen_session_load(other, path, E));
  remove(path);
  generate(one, prompt);
  generate(other, prompt);
  TRY(gen_session_reset(other, E));
  KEEPS(other, 0, gen_session_load_buffer(other, state, n, E));
  generate(other, "");
  FREE(gen_session_free(other));
  FREE(gen_session_free(one));
}

struct pieces {
  char text[1000];
  int done;
};

static void collect(struct pieces* pieces, const gen_token* token) {
  if (token->text_len > 0)
    strncat(pieces->text, token->text, sizeof pieces->text - strlen(pieces->text) - 1);
  pieces->done += token->done != 0;
}

static int on_token(void* user, const gen_token* token) {
  collect(user, token);
  return 0;
}

static void callback(const void* with) {
  (void)with;
  gen_session* one = NULL;
  MAKE(one, gen_session_new(generator, &one, E));
  KEEPS(one, 0, gen_session_append(one, head, GEN_NUL_TERMINATED, E));
  const int32_t length = gen_session_length(one);
  struct pieces pieces;
  gen_result* result = NULL;
  KEEPS(one, length,
        (gen_result_free(result), result = NULL, memset(&pieces, 0, sizeof pieces),
         gen_session_generate_stream(one, prompt, GEN_NUL_TERMINATED, lively, on_token, &pieces,
                                     &result, E)));
  CHECK(pieces.done == 1);
  SAME_TEXT(pieces.text);
  same_result(result);
  FREE(gen_result_free(result));
  result = NULL;
  FREE(gen_session_free(one));
  for (int i = 0; i < 2; ++i) {
    TRY((gen_result_free(result), result = NULL, memset(&pieces, 0, sizeof pieces),
         gen_generate_stream(generator, head, GEN_NUL_TERMINATED, lively, on_token, &pieces,
                             &result, E)));
    CHECK(pieces.done == 1);
    same_result(result);
    FREE(gen_result_free(result));
    result = NULL;
    TRY((gen_result_free(result), result = NULL,
         gen_generate(generator, prompt, GEN_NUL_TERMINATED, lively, &result, E)));
    same_result(result);
    FREE(gen_result_free(result));
    result = NULL;
  }
}

/* A stream from its begin to its end; 0 if it was refused, which it then tells in the end as often
 * as asked. */
static int pull(gen_session* one, gen_stream* stream, int32_t length, int polls) {
  struct pieces pieces = {.done = 0};
  const gen_token* token = NULL;
  gen_result* result = NULL;
  int failed = 0;
  for (;;) {
    int32_t state = GEN_STREAM_TOKEN;
    sweep_error.code = GEN_OK;
    const gen_status status =
        polls ? gen_stream_poll(stream, &token, &state, E) : gen_stream_next(stream, &token, E);
    if (status != GEN_OK) {
      CHECK(token == NULL);
      if (failed++ == 0) sweep_refused(__FILE__, __LINE__, "gen_stream_next", status);
      CHECK(status == GEN_ERROR_OUT_OF_MEMORY);
      if (failed == 3) break; /* it says so for ever */
      continue;
    }
    if (token == NULL && polls && state == GEN_STREAM_PENDING) continue;
    if (token == NULL) break;
    collect(&pieces, token);
    const int32_t* ids = NULL;
    const size_t n = gen_stream_alternatives(stream, &ids, NULL);
    CHECK((n > 0) == (ids != NULL));
  }
  CHECK(pieces.done == 1);
  TRY(gen_stream_result(stream, &result, E));
  CHECK((gen_result_error(result) != NULL) == (failed > 0));
  CHECK(strcmp(gen_result_text(result, NULL), pieces.text) == 0);
  if (failed == 0) {
    SAME_TEXT(pieces.text);
    same_result(result);
  }
  FREE(gen_result_free(result));
  FREE(gen_stream_close(stream));
  if (failed > 0) CHECK(gen_session_length(one) == length);
  return failed == 0;
}

static void stream(const void* with) {
  (void)with;
  gen_session* one = NULL;
  gen_stream* opened = NULL;
  MAKE(one, gen_session_new(generator, &one, E));
  for (int polls = 0; polls < 2; ++polls) {
    const int32_t length = gen_session_length(one);
    do {
      MAKE(opened,
           gen_stream_open(one, polls ? prompt : head, GEN_NUL_TERMINATED, lively, &opened, E));
    } while (!pull(one, opened, length, polls));
    same_tokens(one);
  }
  /* One that is closed after a piece, and one that never ran. */
  const gen_token* token = NULL;
  MAKE(opened, gen_stream_open(one, prompt, GEN_NUL_TERMINATED, lively, &opened, E));
  sweep_error.code = GEN_OK;
  const gen_status status = gen_stream_next(opened, &token, E);
  if (status != GEN_OK) sweep_refused(__FILE__, __LINE__, "gen_stream_next", status);
  FREE(gen_stream_close(opened));
  MAKE(opened, gen_stream_open(one, prompt, GEN_NUL_TERMINATED, lively, &opened, E));
  FREE(gen_stream_close(opened));
  TRY(gen_session_reset(one, E));
  generate(one, head);
  FREE(gen_session_free(one));
}

/* More than the context holds, so that the oldest tokens go. */
static void shift_context(const void* with) {
  (void)with;
  gen_sampling* many = NULL;
  gen_session* one = NULL;
  gen_result* result = NULL;
  MAKE(many, gen_sampling_new(&many, E));
  TRY(gen_sampling_set_max_new_tokens(many, 90, E));
  TRY(gen_sampling_set_ignore_eos(many, 1, E));
  MAKE(one, gen_session_new(generator, &one, E));
  TRY((gen_result_free(result), result = NULL,
       gen_session_generate(one, head, GEN_NUL_TERMINATED, many, &result, E)));
  same_result(result);
  int64_t dropped = 0;
  TRY(gen_result_usage(result, "dropped", &dropped, E));
  CHECK(dropped > 0);
  FREE(gen_result_free(result));
  generate(one, prompt); /* may drop some of what it held, which no failure gives back */
  FREE(gen_session_free(one));
  FREE(gen_sampling_free(many));
}

static void prefixes(const void* with) {
  callback(with);
  int64_t blocks = 0;
  TRY(gen_generator_prefix_stats(generator, "blocks", &blocks, E));
  TRY(gen_generator_prefix_clear(generator, E));
  TRY(gen_generator_prefix_stats(generator, "blocks", &blocks, E));
  CHECK(blocks == 0);
}

static void create(const void* with) {
  gen_options* options = NULL;
  gen_generator* made = NULL;
  gen_session* one = NULL;
  MAKE(options, gen_options_new(&options, E));
  for (const char* const* option = with; *option != NULL; option += 2)
    TRY(gen_options_set(options, option[0], option[1], E));
  MAKE(made, gen_create(model, options, &made, E));
  FREE(gen_options_free(options));
  MAKE(one, gen_session_new(made, &one, E));
  kv_cache* copy = NULL;
  MAKE(copy, kv_cache_generator_new(made, 20, &copy, E));
  FREE(kv_cache_free(copy));
  FREE(gen_free(made));
  generate(one, head);
  MAKE(copy, kv_cache_clone(gen_session_cache(one), &copy, E));
  FREE(gen_session_free(one));
  FREE(kv_cache_free(copy));
}

static void begin_model(const void* with) { begin(with); }

static const char *const
    q4[] = {"kv_dtype", "q4", NULL},
    *const q3[] = {"kv_dtype", "q3/fp16", NULL}, *const paged[] = {"paged_kv", "4,8", NULL},
    *const prefix[] = {"paged_kv", "4,8", "prefix_cache", "32", NULL},
    *const tiered[] = {"hot_blocks", "1", NULL}, *const tiered_mb[] = {"tiered_kv", "1", NULL},
    *const compressed[] = {"compressed_kv", "4", NULL},
    *const shift[] = {"context_policy", "shift,4", NULL};

static const char* const looked_up[] = {"prompt_lookup", "2,5", "suffix_lookup", "6,300",
                                        "draft_policy", "always", NULL};
static const char* const drafted[] = {"draft", "3", "draft_policy", "always", NULL};
static const char* const measured[] = {"prompt_lookup", "1,4", "draft", "3", NULL};

const scenario session_scenarios[] = {{"session", begin, session, end, NULL},
                                      {"session looked up", begin, session, end, looked_up},
                                      {"session drafted", begin, session, end, drafted},
                                      {"stream measured", begin, stream, end, measured},
                                      {"session q4", begin, session, end, q4},
                                      {"session q3/fp16", begin, session, end, q3},
                                      {"session paged", begin, session, end, paged},
                                      {"session prefix", begin, session, end, prefix},
                                      {"session tiered", begin, session, end, tiered},
                                      {"session shift", begin, session, end, shift},
                                      {"shift", begin, shift_context, end, shift},
                                      {"save", begin, save, end, NULL},
                                      {"save q4", begin, save, end, q4},
                                      {"save paged", begin, save, end, paged},
                                      {"save prefix", begin, save, end, prefix},
                                      {"save tiered", begin, save, end, tiered},
                                      {"callback", begin, callback, end, NULL},
                                      {"callback prefix", begin, prefixes, end, prefix},
                                      {"callback tiered", begin, callback, end, tiered},
                                      {"callback compressed", begin, callback, end, compressed},
                                      {"stream", begin, stream, end, NULL},
                                      {"stream prefix", begin, stream, end, prefix},
                                      {"stream tiered", begin, stream, end, tiered},
                                      {"create", begin_model, create, end, q4},
                                      {"create prefix", begin_model, create, end, prefix},
                                      {"create tiered", begin_model, create, end, tiered_mb},
                                      {"create compressed", begin_model, create, end, compressed},
                                      {0}};

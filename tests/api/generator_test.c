/* SPDX-License-Identifier: Apache-2.0 */
/* generator.h and result.h: options, one-shot generation, streaming by callback, stops, cancels. */
#include "api_test.h"

#include <math.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static void options_check_and_describe(void** state) {
  (void)state;
  gen_options* o = NULL;
  char text[8192];
  size_t n = 0;
  assert_ok(gen_options_new(&o, &error), error);
  assert_fails(gen_options_set_kv_dtype(o, "fp7", &error), bad, "fp7", error);
  assert_fails(gen_options_set_kv_dtype(o, NULL, &error), bad, "name", error);
  assert_fails(gen_options_set_prefill_chunk(o, -1, &error), bad, "prefill_chunk", error);
  assert_fails(gen_options_set_prefill_chunk(o, 2049, &error), bad, "2048", error);
  assert_fails(gen_options_set_context_policy(o, "slide", 4, &error), bad, "slide", error);
  assert_fails(gen_options_set_context_policy(o, NULL, 4, &error), bad, "policy", error);
  assert_fails(gen_options_set_context_policy(o, "shift", -1, &error), bad, "-1", error);
  assert_fails(gen_options_set(o, "context_policy", "shift,many", &error), bad, "many", error);
  assert_fails(gen_options_set(o, "context_policy", "", &error), bad, "context_policy", error);
  assert_ok(gen_options_set(o, "context_policy", "shift", &error), error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"shift,4\""));
  assert_ok(gen_options_set_context_policy(o, "shift", 9, &error), error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"shift,9\""));
  assert_ok(gen_options_set(o, "context_policy", "stop", &error), error);
  assert_fails(gen_options_set(o, "warp", "9", &error), bad, "warp", error);
  assert_fails(gen_options_set(o, "prefill_chunk", "x", &error), bad, "x", error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"fp32\""));
  assert_non_null(strstr(text, "\"0 to 2048\""));
  assert_ok(gen_options_set(o, "kv_dtype", "fp16", &error), error);
  assert_ok(gen_options_set(o, "prefill_chunk", "512", &error), error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"fp16\""));
  assert_fails(gen_options_describe(o, text, n, &n, &error), GEN_ERROR_OUT_OF_RANGE, "do not fit",
               error);
  assert_ok(gen_options_set_kv_types(o, "fp8", "q4", &error), error);
  assert_ok(gen_options_set_kv_key_form(o, "hadamard", &error), error);
  assert_fails(gen_options_set_kv_types(o, "fp8", "q5", &error), bad, "q5", error);
  assert_fails(gen_options_set_kv_types(o, NULL, "q4", &error), bad, "keys", error);
  assert_fails(gen_options_set_kv_types(o, "q4", NULL, &error), bad, "values", error);
  assert_fails(gen_options_set_kv_key_form(o, "twisted", &error), bad, "twisted", error);
  assert_fails(gen_options_set_kv_key_form(o, NULL, &error), bad, "name", error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"fp8/q4\""));
  assert_non_null(strstr(text, "\"value\":\"hadamard\""));
  assert_ok(gen_options_set(o, "kv_dtype", "q4", &error), error); /* the form stays */
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"hadamard\""));
  assert_ok(gen_kv_kind_describe(text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"name\":\"fp16\""));
  assert_fails(gen_kv_kind_describe(text, sizeof text, NULL, &error), bad, "n is NULL", error);
  gen_options_free(o);
  gen_options_free(NULL);
  assert_int_equal(gen_options_new(NULL, NULL), bad);
  assert_int_equal(gen_options_set_kv_dtype(NULL, "fp32", NULL), bad);
  assert_int_equal(gen_options_set_kv_types(NULL, "fp32", "q4", NULL), bad);
  assert_int_equal(gen_options_set_kv_key_form(NULL, "best", NULL), bad);
  assert_int_equal(gen_options_set_context_policy(NULL, "stop", 0, NULL), bad);
  assert_int_equal(gen_options_set_prefill_chunk(NULL, 1, NULL), bad);
  assert_int_equal(gen_options_set_deterministic(NULL, 1, NULL), bad);
  assert_int_equal(gen_options_set(NULL, "kv_dtype", "fp32", NULL), bad);
  assert_int_equal(gen_options_describe(NULL, text, sizeof text, &n, NULL), bad);
}

/* A pool of blocks changes no token; one that is too small says so and hurts nobody. */
static void pages_do_not_show(void** state) {
  gen_generator* plain = *state;
  gen_model* model = load_draft();
  gen_sampling* s = NULL;
  assert_ok(gen_sampling_new(&s, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(s, 40, &error), error);
  assert_ok(gen_sampling_set_seed(s, 5, &error), error);
  gen_result* want = NULL;
  assert_ok(gen_generate(plain, "Once upon a time", GEN_NUL_TERMINATED, s, &want, &error), error);
  const char* const kinds[] = {"0,16", "4,16", "4,7", "4,100"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    gen_options* o = NULL;
    gen_generator* g = NULL;
    gen_result* got = NULL;
    assert_ok(gen_options_new(&o, &error), error);
    assert_ok(gen_options_set(o, "paged_kv", kinds[i], &error), error);
    assert_ok(gen_create(model, o, &g, &error), error);
    for (int round = 0; round < 3; ++round) { /* blocks come back */
      assert_ok(gen_generate(g, "Once upon a time", GEN_NUL_TERMINATED, s, &got, &error), error);
      assert_string_equal(gen_result_text(got, NULL), gen_result_text(want, NULL));
      gen_result_free(got);
    }
    gen_free(g);
    gen_options_free(o);
  }
  gen_result_free(want);

  gen_options* o = NULL;
  gen_generator* g = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_fails(gen_options_set_paged_kv(o, -1, 16, &error), bad, "-1", error);
  assert_fails(gen_options_set_paged_kv(o, 1, 0, &error), bad, "blocks of 0", error);
  assert_fails(gen_options_set_paged_kv(NULL, 1, 16, &error), bad, "options", error);
  assert_fails(gen_options_set(o, "paged_kv", "1,x", &error), bad, "x", error);
  assert_ok(gen_options_set_paged_kv(o, 1, 1 << 20, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "one block takes", error);
  gen_options_free(o);
  gen_sampling_free(s);
  gen_model_free(model);
}

static int64_t used(const gen_result* result, const char* key) {
  int64_t value = -1;
  assert_ok(gen_result_usage(result, key, &value, &error), error);
  return value;
}

/* What an earlier call computed is not computed again, in one-shot calls, sessions and streams, and
 * changes no token. */
static void prefixes_do_not_show(void** state) {
  gen_generator* plain = *state;
  gen_model* model = load_draft();
  gen_options* o = NULL;
  gen_generator* g = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_fails(gen_options_set_prefix_cache(NULL, 1, &error), bad, "options", error);
  assert_fails(gen_options_set_prefix_cache(o, -1, &error), bad, "-1", error);
  assert_fails(gen_options_set(o, "prefix_cache", "x", &error), bad, "x", error);
  assert_fails(gen_options_set(o, "prefix_cache", "9999999999", &error), bad, "9999999999", error);
  assert_ok(gen_options_set_prefix_cache(o, 100, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "paged_kv", error);
  assert_null(g);
  assert_ok(gen_options_set_paged_kv(o, 8, 4, &error), error);
  char described[8000];
  assert_ok(gen_options_describe(o, described, sizeof described, &(size_t){0}, &error), error);
  assert_non_null(strstr(described, "\"prefix_cache\""));
  assert_non_null(strstr(described, "\"value\":\"100\""));
  assert_ok(gen_options_set(o, "prefix_cache", "64", &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  gen_options_free(o);

  gen_sampling* s = NULL;
  assert_ok(gen_sampling_new(&s, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(s, 20, &error), error);
  assert_ok(gen_sampling_set_seed(s, 5, &error), error);
  const char* const text = "Once upon a time there was a little girl who lived by the sea.";
  gen_result* want = NULL;
  gen_result* got = NULL;
  assert_ok(gen_generate(plain, text, GEN_NUL_TERMINATED, s, &want, &error), error);
  const int64_t prompt = used(want, "prompt");
  assert_int_equal(used(want, "prompt_cached"), 0);
  assert_ok(gen_generate(g, text, GEN_NUL_TERMINATED, s, &got, &error), error);
  assert_string_equal(gen_result_text(got, NULL), gen_result_text(want, NULL));
  assert_int_equal(used(got, "prompt_cached"), 0);
  gen_result_free(got);
  assert_ok(gen_generate(g, text, GEN_NUL_TERMINATED, s, &got, &error), error);
  assert_string_equal(gen_result_text(got, NULL), gen_result_text(want, NULL));
  assert_int_equal(used(got, "prompt"), prompt);
  assert_int_equal(used(got, "prompt_cached"), prompt - 1); /* the last one gives the logits */
  gen_result_free(got);

  gen_session* session = NULL;
  gen_stream* stream = NULL;
  const gen_token* token = NULL;
  assert_ok(gen_session_new(g, &session, &error), error);
  assert_ok(gen_stream_open(session, text, GEN_NUL_TERMINATED, s, &stream, &error), error);
  do {
    assert_ok(gen_stream_next(stream, &token, &error), error);
  } while (token != NULL);
  assert_ok(gen_stream_result(stream, &got, &error), error);
  assert_string_equal(gen_result_text(got, NULL), gen_result_text(want, NULL));
  assert_int_equal(used(got, "prompt_cached"), prompt - 1);
  gen_result_free(got);
  gen_stream_close(stream);
  gen_session_free(session);
  gen_result_free(want);
  gen_sampling_free(s);
  gen_free(g);
  gen_model_free(model);
}

static char* continued(gen_generator* g, const char* first, int32_t cut, const char* second) {
  gen_session* session = NULL;
  gen_sampling* s = NULL;
  gen_result* result = NULL;
  assert_ok(gen_session_new(g, &session, &error), error);
  assert_ok(gen_sampling_new(&s, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(s, 30, &error), error);
  assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
  if (cut >= 0) {
    assert_ok(gen_session_generate(session, first, GEN_NUL_TERMINATED, s, &result, &error), error);
    gen_result_free(result);
    assert_ok(gen_session_truncate(session, cut, &error), error);
    assert_int_equal(gen_session_length(session), cut);
  }
  assert_ok(gen_session_generate(session, second, GEN_NUL_TERMINATED, s, &result, &error), error);
  char* text = strdup(gen_result_text(result, NULL));
  gen_result_free(result);
  gen_sampling_free(s);
  gen_session_free(session);
  return text;
}

static gen_generator* compressed(const gen_model* model, const char* chunk, const char* prefill) {
  gen_options* o = NULL;
  gen_generator* g = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set(o, "compressed_kv", chunk, &error), error);
  assert_ok(gen_options_set(o, "prefill_chunk", prefill, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  gen_options_free(o);
  return g;
}

/* Chunks longer than the text change nothing; shorter ones give the same whatever the steps, and
 * after any truncation what a session gives that came there at once. */
static void chunks_are_pooled(void** state) {
  gen_generator* plain = *state;
  gen_model* model = load_draft();
  const char* story =
      "Once upon a time there was a little boat that wanted to see the whole wide sea";
  char* want = continued(plain, "", -1, story);
  gen_generator* g = compressed(model, "1000", "256");
  char* got = continued(g, "", -1, story);
  assert_string_equal(got, want);
  free(got);
  gen_free(g);
  free(want);

  g = compressed(model, "8", "256");
  want = continued(g, "", -1, story);
  const char* const prefills[] = {"1", "5", "8", "13"};
  for (size_t i = 0; i < sizeof prefills / sizeof prefills[0]; ++i) {
    gen_generator* other = compressed(model, "8", prefills[i]);
    got = continued(other, "", -1, story);
    assert_string_equal(got, want);
    free(got);
    gen_free(other);
  }
  /* cut to nothing, and to what "Once upon a time" leaves after every kind of cut */
  got = continued(g, "Once upon a time there", 0, story);
  assert_string_equal(got, want);
  free(got);
  free(want);
  gen_session* session = NULL;
  gen_sampling* s = NULL;
  assert_ok(gen_sampling_new(&s, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(s, 20, &error), error);
  assert_ok(gen_session_new(g, &session, &error), error);
  for (int32_t cut = 1; cut < 30; ++cut) {
    gen_result* a = NULL;
    gen_result* b = NULL;
    gen_session* fresh = NULL;
    int32_t held[64];
    size_t length = 0;
    assert_ok(gen_session_append(session, story, GEN_NUL_TERMINATED, &error), error);
    assert_ok(gen_session_generate(session, "", 0, s, &a, &error), error);
    gen_result_free(a);
    assert_ok(gen_session_truncate(session, cut, &error), error);
    assert_ok(gen_session_tokens(session, held, 64, &length, &error), error);
    assert_int_equal(length, cut);
    assert_ok(gen_session_new(g, &fresh, &error), error);
    assert_ok(gen_session_append_tokens(fresh, held, length, &error), error);
    assert_ok(gen_session_generate(fresh, "", 0, s, &b, &error), error);
    assert_ok(gen_session_generate(session, "", 0, s, &a, &error), error);
    assert_string_equal(gen_result_text(a, NULL), gen_result_text(b, NULL));
    gen_result_free(a);
    gen_result_free(b);
    gen_session_free(fresh);
    assert_ok(gen_session_truncate(session, cut / 2, &error), error);
  }
  gen_session_free(session);
  gen_sampling_free(s);
  gen_free(g);

  gen_options* o = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_fails(gen_options_set_compressed_kv(o, -1, &error), bad, "-1", error);
  assert_fails(gen_options_set_compressed_kv(NULL, 1, &error), bad, "options", error);
  assert_ok(gen_options_set_compressed_kv(o, 8, &error), error);
  assert_ok(gen_options_set_kv_dtype(o, "fp16", &error), error);
  g = plain;
  assert_fails(gen_create(model, o, &g, &error), bad, "kv_dtype", error);
  assert_null(g);
  assert_ok(gen_options_set_kv_dtype(o, "fp32", &error), error);
  assert_ok(gen_options_set_paged_kv(o, 1, 16, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "paged_kv", error);
  gen_options_free(o);
  gen_model_free(model);
}

/* A cache as sessions have one gives what their model gives, and outlives its generator. */
static void caches_of_a_generator(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t tokens[] = {1, 300, 301, 302, 5};
  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(model));
  float* want = malloc(vocab * sizeof *want);
  float* got = malloc(vocab * sizeof *got);
  kv_cache* plain = NULL;
  assert_ok(kv_cache_fp16_new(gen_model_config_num_layers(gen_model_get_config(model)), 64, &plain,
                              &error),
            error);
  assert_ok(gen_model_forward(model, tokens, 5, plain, want, vocab, &error), error);
  const char* const pools[] = {"0", "1,7"};
  for (size_t i = 0; i < 2; ++i) {
    gen_options* o = NULL;
    gen_generator* g = NULL;
    kv_cache* cache = NULL;
    kv_cache* copy = NULL;
    assert_ok(gen_options_new(&o, &error), error);
    assert_ok(gen_options_set_kv_dtype(o, "fp16", &error), error);
    assert_ok(gen_options_set(o, "paged_kv", pools[i], &error), error);
    assert_ok(gen_create(model, o, &g, &error), error);
    gen_options_free(o);
    assert_ok(kv_cache_generator_new(g, 5, &cache, &error), error);
    assert_string_equal(kv_cache_kind(cache), i == 0 ? "fp16" : "paged");
    assert_ok(gen_model_forward(model, tokens, 3, cache, got, vocab, &error), error);
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    const int32_t most = gen_model_config_max_seq_len(gen_model_get_config(model));
    kv_cache* refused = cache;
    assert_fails(kv_cache_generator_new(g, most + 1, &refused, &error), bad, "max_seq_len", error);
    assert_null(refused);
    assert_fails(kv_cache_generator_new(g, -1, &refused, &error), bad, "-1", error);
    assert_fails(kv_cache_generator_new(g, 5, NULL, &error), bad, "out", error);
    gen_free(g);
    kv_cache_free(cache);
    assert_ok(gen_model_forward(model, tokens + 3, 2, copy, got, vocab, &error), error);
    assert_memory_equal(got, want, vocab * sizeof *want);
    assert_fails(gen_model_forward(model, tokens, 1, copy, got, vocab, &error),
                 GEN_ERROR_CACHE_FULL, "cache of 5", error);
    float row[4] = {0};
    assert_fails(kv_cache_update(copy, 0, row, row, 1, 1, 4, &error), GEN_ERROR_STATE, "model",
                 error);
    kv_cache_free(copy);
  }
  kv_cache* none = plain;
  assert_fails(kv_cache_generator_new(NULL, 5, &none, &error), bad, "generator", error);
  assert_null(none);
  kv_cache_free(plain);
  free(want);
  free(got);
  gen_model_free(model);
}

static void nulls(void** state) {
  gen_generator* g = *state;
  gen_result* result = (gen_result*)&error;
  gen_generator* none = (gen_generator*)&error;
  assert_fails(gen_create(NULL, NULL, &none, &error), bad, "model", error);
  assert_null(none);
  assert_fails(gen_generate(NULL, "a", 1, NULL, &result, &error), bad, "generator", error);
  assert_null(result);
  assert_fails(gen_generate(g, NULL, 5, NULL, &result, &error), bad, "prompt", error);
  assert_fails(gen_generate(g, "\xff\xfe", 2, NULL, &result, &error), GEN_ERROR_TOKENIZER, "0",
               error);
  assert_null(result);
  assert_fails(gen_generate_stream(g, "a", 1, NULL, NULL, NULL, &result, &error), bad, "callback",
               error);
  gen_free(NULL);
  gen_result_free(NULL);
  assert_null(gen_result_text(NULL, NULL));
  size_t n = 5;
  assert_null(gen_result_tokens(NULL, &n));
  assert_int_equal(n, 0);
  assert_null(gen_result_logprobs(NULL, &n));
  assert_int_equal(gen_result_finish_reason(NULL), GEN_FINISH_NONE);
  assert_null(gen_result_error(NULL));
  assert_int_equal(gen_result_user_code(NULL), 0);
  assert_int_equal(gen_result_top_logprobs(NULL, 0, NULL, NULL), 0);
  int64_t value = 1;
  assert_fails(gen_result_usage(NULL, "prompt", &value, &error), bad, "result", error);
  assert_int_equal(value, 0);
  double seconds = 1;
  assert_fails(gen_result_timings(NULL, "decode", &seconds, &error), bad, "result", error);
}

typedef struct {
  char text[4096];
  size_t length;
  int pieces;
  int done;
  int stop_after; /* pieces; 0 never */
  int code;
} Collected;

static int collect(void* user, const gen_token* token) {
  Collected* c = user;
  assert_int_equal(token->struct_size, sizeof(gen_token));
  assert_int_equal(token->text[token->text_len], '\0');
  assert_false(c->done);
  memcpy(c->text + c->length, token->text, token->text_len);
  c->length += token->text_len;
  ++c->pieces;
  if (token->done) {
    c->done = 1;
    assert_int_not_equal(token->finish_reason, GEN_FINISH_NONE);
  } else {
    assert_int_equal(token->finish_reason, GEN_FINISH_NONE);
  }
  return c->stop_after > 0 && c->pieces == c->stop_after ? c->code : 0;
}

static int64_t usage(const gen_result* result, const char* key) {
  int64_t value = -1;
  assert_ok(gen_result_usage(result, key, &value, &error), error);
  return value;
}

static void stream_equals_generate(void** state) {
  gen_generator* g = *state;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    gen_sampling* s = NULL;
    assert_ok(gen_sampling_new(&s, &error), error);
    assert_ok(gen_sampling_set_seed(s, seed, &error), error);
    assert_ok(gen_sampling_set_max_new_tokens(s, 40, &error), error);
    assert_ok(gen_sampling_set_temperature(s, seed == 0 ? 0 : 1.5, &error), error);
    gen_result* whole = NULL;
    gen_result* streamed = NULL;
    static Collected c;
    memset(&c, 0, sizeof c);
    assert_ok(gen_generate(g, "Once upon a time", GEN_NUL_TERMINATED, s, &whole, &error), error);
    assert_ok(gen_generate_stream(g, "Once upon a time", 16, s, collect, &c, &streamed, &error),
              error);
    size_t n = 0;
    const char* text = gen_result_text(whole, &n);
    assert_int_equal(strlen(text), n);
    assert_string_equal(text, gen_result_text(streamed, NULL));
    c.text[c.length] = '\0';
    assert_string_equal(c.text, text);
    assert_true(c.done);
    size_t tokens = 0;
    gen_result_tokens(whole, &tokens);
    assert_int_equal(usage(whole, "completion"), tokens);
    assert_int_equal(usage(whole, "prompt_cached"), 0);
    assert_true(usage(whole, "prompt") > 1);
    assert_null(gen_result_logprobs(whole, &n));
    assert_null(gen_result_error(whole));
    assert_fails(gen_result_usage(whole, "luck", &(int64_t){0}, &error), bad, "luck", error);
    assert_fails(gen_result_timings(whole, "luck", &(double){0}, &error), bad, "luck", error);
    double seconds = -1;
    assert_ok(gen_result_timings(whole, "total", &seconds, &error), error);
    assert_true(seconds > 0);
    gen_result_free(whole);
    gen_result_free(streamed);
    gen_sampling_free(s);
  }
}

static void seeds_decide(void** state) {
  gen_generator* g = *state;
  char texts[3][2048];
  for (int i = 0; i < 3; ++i) {
    gen_sampling* s = NULL;
    gen_result* result = NULL;
    assert_ok(gen_sampling_new(&s, &error), error);
    assert_ok(gen_sampling_set_seed(s, i == 2 ? 12 : 11, &error), error);
    assert_ok(gen_sampling_set_max_new_tokens(s, 40, &error), error);
    assert_ok(gen_sampling_set_temperature(s, 1.2, &error), error);
    assert_ok(gen_generate(g, "The dog", 7, s, &result, &error), error);
    snprintf(texts[i], sizeof texts[i], "%s", gen_result_text(result, NULL));
    gen_result_free(result);
    gen_sampling_free(s);
  }
  assert_string_equal(texts[0], texts[1]);
  assert_string_not_equal(texts[0], texts[2]);
}

static void logprobs_when_asked(void** state) {
  gen_generator* g = *state;
  gen_sampling* s = greedy(8);
  gen_result* result = NULL;
  assert_ok(gen_sampling_set_logprobs(s, 3, &error), error);
  assert_ok(gen_generate(g, "Once upon", 9, s, &result, &error), error);
  size_t n = 0;
  size_t tokens = 0;
  const int32_t* ids = gen_result_tokens(result, &tokens);
  const float* logprobs = gen_result_logprobs(result, &n);
  assert_int_equal(n, tokens);
  for (size_t i = 0; i < n; ++i) {
    const int32_t* top = NULL;
    const float* values = NULL;
    assert_int_equal(gen_result_top_logprobs(result, i, &top, &values), 3);
    assert_int_equal(top[0], ids[i]); /* greedy takes the best */
    assert_true(values[0] == logprobs[i]);
    assert_true(values[0] >= values[1] && values[1] >= values[2]);
    assert_true(exp(values[0]) + exp(values[1]) + exp(values[2]) < 1.0001);
    assert_true(values[0] <= 0);
  }
  assert_int_equal(gen_result_top_logprobs(result, n, NULL, NULL), 0);

  /* Asked for without alternatives, the same values come alone. */
  gen_result* alone = NULL;
  assert_ok(gen_sampling_set_logprobs(s, 0, &error), error);
  assert_ok(gen_generate(g, "Once upon", 9, s, &alone, &error), error);
  const float* same = gen_result_logprobs(alone, &n);
  assert_int_equal(n, tokens);
  assert_memory_equal(same, logprobs, n * sizeof(float));
  assert_int_equal(gen_result_top_logprobs(alone, 0, NULL, NULL), 0);
  gen_result_free(alone);
  gen_result_free(result);
  gen_sampling_free(s);
}

static void a_stop_string_never_shows(void** state) {
  gen_generator* g = *state;
  gen_sampling* s = greedy(60);
  gen_result* plain = NULL;
  assert_ok(gen_generate(g, "Once upon a time", 16, s, &plain, &error), error);
  size_t n = 0;
  const char* text = gen_result_text(plain, &n);
  assert_true(n > 24);
  /* Every run of five bytes of the text, as a stop string, ends the text where it first occurs. */
  for (size_t at = 1; at + 5 < n && at < 60; at += 7) {
    char stop[6];
    memcpy(stop, text + at, 5);
    stop[5] = '\0';
    gen_sampling* with_stop = greedy(60);
    if (gen_sampling_add_stop_string(with_stop, stop, 5, &error) != GEN_OK) {
      gen_sampling_free(with_stop); /* cut through a character */
      continue;
    }
    static Collected c;
    memset(&c, 0, sizeof c);
    gen_result* result = NULL;
    assert_ok(
        gen_generate_stream(g, "Once upon a time", 16, with_stop, collect, &c, &result, &error),
        error);
    const size_t expected = (size_t)(strstr(text, stop) - text);
    assert_int_equal(c.length, expected);
    assert_memory_equal(c.text, text, expected);
    assert_int_equal(strlen(gen_result_text(result, NULL)), expected);
    assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_STOP_STRING);
    gen_result_free(result);
    gen_sampling_free(with_stop);
  }
  gen_result_free(plain);
  gen_sampling_free(s);
}

static void stop_tokens_and_bias(void** state) {
  gen_generator* g = *state;
  gen_sampling* s = greedy(10);
  gen_result* result = NULL;
  assert_ok(gen_generate(g, "Once upon", 9, s, &result, &error), error);
  size_t n = 0;
  const int32_t first = gen_result_tokens(result, &n)[0];
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_LENGTH);
  assert_int_equal(n, 10);
  gen_result_free(result);

  assert_ok(gen_sampling_add_stop_token(s, first, &error), error);
  assert_ok(gen_generate(g, "Once upon", 9, s, &result, &error), error);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_STOP_TOKEN);
  assert_string_equal(gen_result_text(result, NULL), "");
  assert_int_equal(usage(result, "completion"), 0);
  gen_result_free(result);

  assert_ok(gen_sampling_set_logit_bias(s, first, -INFINITY, &error), error);
  assert_ok(gen_generate(g, "Once upon", 9, s, &result, &error), error);
  const int32_t* ids = gen_result_tokens(result, &n);
  for (size_t i = 0; i < n; ++i) assert_int_not_equal(ids[i], first);
  gen_result_free(result);

  assert_ok(gen_sampling_add_stop_token(s, 4096, &error), error);
  result = (gen_result*)&error;
  assert_fails(gen_generate(g, "Once upon", 9, s, &result, &error), GEN_ERROR_OUT_OF_RANGE, "4096",
               error);
  assert_null(result);
  gen_sampling_free(s);
}

static void a_callback_stops_cleanly(void** state) {
  gen_generator* g = *state;
  gen_sampling* s = greedy(30);
  static Collected c;
  memset(&c, 0, sizeof c);
  c.stop_after = 4;
  c.code = 77;
  gen_result* result = NULL;
  assert_fails(gen_generate_stream(g, "Once upon", 9, s, collect, &c, &result, &error),
               GEN_ERROR_CANCELLED, "", error);
  assert_non_null(result);
  assert_int_equal(c.pieces, 4);
  assert_int_equal(gen_result_user_code(result), 77);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CALLBACK);
  assert_non_null(gen_result_error(result));
  assert_int_equal(gen_result_error(result)->code, GEN_ERROR_CANCELLED);
  gen_result_free(result);
  gen_sampling_free(s);
}

static void a_cancel_flag_stops_with_what_there_is(void** state) {
  gen_generator* g = *state;
  gen_sampling* s = greedy(30);
  gen_cancel* cancel = NULL;
  gen_result* result = NULL;
  assert_ok(gen_cancel_new(&cancel, &error), error);
  assert_ok(gen_sampling_set_cancel(s, cancel, &error), error);
  gen_cancel_fire(cancel);
  assert_fails(gen_generate(g, "Once upon", 9, s, &result, &error), GEN_ERROR_CANCELLED, "", error);
  assert_non_null(result);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CANCELLED);
  gen_result_free(result);
  gen_cancel_reset(cancel);
  assert_ok(gen_generate(g, "Once upon", 9, s, &result, &error), error);
  gen_result_free(result);
  gen_sampling_free(s);
  gen_cancel_free(cancel);
}

static void the_context_is_a_limit(void** state) {
  (void)state;
  gen_model_options* mo = NULL;
  gen_model* model = NULL;
  gen_generator* g = NULL;
  assert_ok(gen_model_options_new(&mo, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(mo, 16, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, mo, &model, &error), error);
  gen_model_options_free(mo);
  assert_ok(gen_create(model, NULL, &g, &error), error);
  gen_sampling* s = greedy(100);
  assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
  gen_result* result = NULL;
  assert_ok(gen_generate(g, "Once upon", 9, s, &result, &error), error);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CONTEXT_FULL);
  assert_true(usage(result, "completion") > 0);
  assert_true(usage(result, "prompt") + usage(result, "completion") <= 17);
  gen_result_free(result);
  const char* longer = "one two three four five six seven eight nine ten eleven twelve thirteen";
  assert_fails(gen_generate(g, longer, GEN_NUL_TERMINATED, s, &result, &error),
               GEN_ERROR_CONTEXT_FULL, "16", error);
  assert_null(result);

  /* A prompt that fills the context to the last token fits, and leaves room for nothing. */
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model);
  char filling[96] = "one";
  size_t n = 0;
  while (n < 16) {
    assert_true(strlen(filling) + 6 < sizeof filling);
    strcat(filling, " and");
    assert_ok(gen_tokenizer_encode(tokenizer, filling, GEN_NUL_TERMINATED, GEN_ENCODE_ADD_BOS, NULL,
                                   0, &n, &error),
              error);
  }
  assert_int_equal(n, 16);
  assert_ok(gen_generate(g, filling, GEN_NUL_TERMINATED, s, &result, &error), error);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CONTEXT_FULL);
  assert_int_equal(usage(result, "prompt"), 16);
  assert_int_equal(usage(result, "completion"), 0);
  gen_result_free(result);
  gen_model_free(model);
  gen_sampling_free(s);
  gen_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_check_and_describe),
      cmocka_unit_test(pages_do_not_show),
      cmocka_unit_test(prefixes_do_not_show),
      cmocka_unit_test(chunks_are_pooled),
      cmocka_unit_test(caches_of_a_generator),
      cmocka_unit_test(nulls),
      cmocka_unit_test(stream_equals_generate),
      cmocka_unit_test(seeds_decide),
      cmocka_unit_test(logprobs_when_asked),
      cmocka_unit_test(a_stop_string_never_shows),
      cmocka_unit_test(stop_tokens_and_bias),
      cmocka_unit_test(a_callback_stops_cleanly),
      cmocka_unit_test(a_cancel_flag_stops_with_what_there_is),
      cmocka_unit_test(the_context_is_a_limit),
  };
  return cmocka_run_group_tests(tests, make_draft_generator, free_draft_generator);
}

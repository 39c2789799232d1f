/* SPDX-License-Identifier: Apache-2.0 */
/* memory_estimate.h: over the grid of options, what is foretold is what an allocator then counts.
 */
#include "api_test.h"
#include "counting_allocator.h"

#define STORY GEN_TEST_SOURCE_DIR "/examples/demo_model/story.gguf"
#define EAGLE3 GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle3.gguf"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static size_t figure(const gen_memory_estimate* estimate, const char* key) {
  size_t bytes = 0;
  assert_ok(gen_memory_estimate_get(estimate, key, &bytes, &error), error);
  return bytes;
}

/* Within 2 %, and a little for what is too small to be foretold. */
static void expect_close(size_t foretold, size_t counted, const char* what) {
  const double most = 0.02 * (double)counted + 4096.0;
  const double off = (double)foretold - (double)counted;
  if (off < -most || off > most) fail_msg("%s: foretold %zu, counted %zu", what, foretold, counted);
}

/* Loads with the options, fills a session's context, or what a pool holds of it, and compares. */
static void compare(gen_model_options* load, gen_options* o, int32_t most) {
  gen_memory_estimate* estimate = NULL;
  assert_ok(gen_estimate_memory(DRAFT_MODEL, load, o, &estimate, &error), error);
  struct counting counts = {0};
  const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
  gen_model* model = NULL;
  gen_generator* g = NULL;
  gen_session* session = NULL;
  gen_sampling* s = NULL;
  gen_result* result = NULL;
  assert_ok(gen_model_options_set_allocator(load, &table, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, load, &model, &error), error);
  assert_ok(gen_model_options_set_allocator(load, NULL, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  expect_close(figure(estimate, "weights"), counts.live, "weights");
  int32_t context = gen_model_config_max_seq_len(gen_model_get_config(model));
  if (context > most) context = most;
  int32_t* tokens = calloc((size_t)context, sizeof *tokens);
  for (int32_t i = 0; i < context - 1; ++i) tokens[i] = 300 + i % 50;
  assert_ok(gen_session_new(g, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, (size_t)context - 1, &error), error);
  assert_ok(gen_sampling_new(&s, &error), error);
  assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(s, 1, &error), error);
  assert_ok(gen_session_generate(session, "", 0, s, &result, &error), error);
  assert_int_equal(gen_session_length(session), context);
  size_t cache = 0;
  assert_ok(kv_cache_memory_bytes(gen_session_cache(session), &cache, NULL, NULL, &error), error);
  expect_close(figure(estimate, "cache"), cache, "cache");
  expect_close(figure(estimate, "peak"), counts.peak, "peak");
  const size_t workspace = counts.live - figure(estimate, "weights") - figure(estimate, "cache");
  if (strcmp(kv_cache_kind(gen_session_cache(session)), "paged") != 0) {
    expect_close(figure(estimate, "workspace"), workspace, "workspace");
  } else { /* but for blocks that are free: a pool takes a MiB at a time */
    const size_t most_free = 1 << 20;
    assert_in_range(figure(estimate, "workspace") + most_free, workspace,
                    workspace + most_free + 4096);
  }
  size_t mapped = 1;
  assert_ok(gen_model_memory(model, "mapped", &mapped, &error), error);
  assert_int_equal(figure(estimate, "mapped"), mapped);
  free(tokens);
  gen_result_free(result);
  gen_sampling_free(s);
  gen_session_free(session);
  gen_free(g);
  gen_model_free(model);
  assert_int_equal(counts.live, 0);
  gen_memory_estimate_free(estimate);
}

static void the_grid(void** state) {
  (void)state;
  const char* const kinds[][2] = {
      {"kv_dtype", "fp32"},   {"kv_dtype", "fp16"},   {"kv_dtype", "q4"},
      {"kv_dtype", "q3/fp8"}, {"paged_kv", "64,16"},  {"paged_kv", "64,100"},
      {"compressed_kv", "8"}, {"prefill_chunk", "7"}, {"tiered_kv", "4"}};
  const char* const loads[][3] = {{"1", "1", "0"}, {"2", "1", "100"}, {"3", "0", "300"}};
  for (size_t l = 0; l < sizeof loads / sizeof loads[0]; ++l) {
    gen_model_options* load = NULL;
    assert_ok(gen_model_options_new(&load, &error), error);
    assert_ok(gen_model_options_set(load, "threads", loads[l][0], &error), error);
    assert_ok(gen_model_options_set(load, "repack", loads[l][1], &error), error);
    assert_ok(gen_model_options_set(load, "max_seq_len", loads[l][2], &error), error);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
      gen_options* o = NULL;
      assert_ok(gen_options_new(&o, &error), error);
      assert_ok(gen_options_set(o, kinds[k][0], kinds[k][1], &error), error);
      compare(load, o, INT32_MAX);
      gen_options_free(o);
    }
    gen_model_options_free(load);
  }
}

/* Of a pool that holds less than a context. */
static void a_small_pool(void** state) {
  (void)state;
  gen_model_options* load = NULL;
  gen_options* o = NULL;
  gen_memory_estimate* whole = NULL;
  assert_ok(gen_model_options_new(&load, &error), error);
  assert_ok(gen_model_options_set(load, "max_seq_len", "1024", &error), error);
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set(o, "paged_kv", "64,100", &error), error);
  assert_ok(gen_estimate_memory(DRAFT_MODEL, load, o, &whole, &error), error);
  const size_t of_context = 11; /* blocks */
  const size_t blocks = (1 << 20) / (figure(whole, "cache") / of_context);
  assert_in_range(blocks, 1, of_context - 2);
  gen_memory_estimate_free(whole);
  assert_ok(gen_options_set(o, "paged_kv", "1,100", &error), error);
  compare(load, o, (int32_t)blocks * 100);
  gen_options_free(o);
  gen_model_options_free(load);
}

/* An answer that samples nothing asks passes for other results than one that samples. */
static void without_sampling(void** state) {
  (void)state;
  enum { CONTEXT = 100 };
  for (int chunk = 3; chunk <= 256; chunk += 253) {
    struct counting counts = {0};
    const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
    gen_model_options* load = NULL;
    gen_options* o = NULL;
    gen_memory_estimate* estimate = NULL;
    gen_model* model = NULL;
    gen_generator* g = NULL;
    gen_session* session = NULL;
    gen_sampling* s = NULL;
    gen_result* result = NULL;
    assert_ok(gen_model_options_new(&load, &error), error);
    assert_ok(gen_model_options_set(load, "threads", "1", &error), error);
    assert_ok(gen_model_options_set_max_seq_len(load, CONTEXT, &error), error);
    assert_ok(gen_options_new(&o, &error), error);
    assert_ok(gen_options_set_prefill_chunk(o, chunk, &error), error);
    assert_ok(gen_estimate_memory(STORY, load, o, &estimate, &error), error);
    assert_ok(gen_model_options_set_allocator(load, &table, &error), error);
    assert_ok(gen_model_load(STORY, load, &model, &error), error);
    assert_ok(gen_create(model, o, &g, &error), error);
    assert_ok(gen_session_new(g, &session, &error), error);
    /* Each word is a token behind two first ones. */
    char text[4 * CONTEXT + 1] = "";
    for (int32_t i = 2; i < CONTEXT - 2; ++i) memcpy(text + 4 * (i - 2), " dog", 5);
    assert_ok(gen_sampling_new(&s, &error), error);
    assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
    assert_ok(gen_sampling_set_max_new_tokens(s, 2, &error), error);
    assert_ok(gen_sampling_set_temperature(s, 0, &error), error);
    assert_ok(gen_session_generate(session, text, strlen(text), s, &result, &error), error);
    assert_int_equal(gen_session_length(session), CONTEXT);
    assert_int_equal(figure(estimate, "peak"), counts.peak);
    gen_result_free(result);
    gen_sampling_free(s);
    gen_session_free(session);
    gen_free(g);
    gen_model_free(model);
    gen_memory_estimate_free(estimate);
    gen_options_free(o);
    gen_model_options_free(load);
  }
}

/* The cache of a head: 2 heads of keys and of values, 64 floats each, for a context. */
static void a_head_of_a_file(void** state) {
  (void)state;
  enum { CONTEXT = 1024, HEAD = 2 * 2 * 64 * (int)sizeof(float) };
  for (int32_t context = 112; context <= CONTEXT; context += CONTEXT - 112) {
    struct counting counts = {0};
    const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
    gen_model_options* load = NULL;
    gen_options* o = NULL;
    gen_memory_estimate* estimate = NULL;
    gen_memory_estimate* without = NULL;
    assert_ok(gen_model_options_new(&load, &error), error);
    assert_ok(gen_model_options_set(load, "threads", "1", &error), error);
    assert_ok(gen_model_options_set_max_seq_len(load, context, &error), error);
    assert_ok(gen_options_new(&o, &error), error);
    assert_ok(gen_estimate_memory(STORY, load, o, &without, &error), error);
    assert_ok(gen_options_set_eagle(o, EAGLE3, &error), error);
    assert_ok(gen_options_set(o, "draft_policy", "always", &error), error);
    assert_ok(gen_estimate_memory(STORY, load, o, &estimate, &error), error);
    assert_int_equal(figure(estimate, "cache") - figure(without, "cache"), context * HEAD);

    gen_model* model = NULL;
    gen_generator* g = NULL;
    gen_session* session = NULL;
    gen_sampling* s = NULL;
    gen_result* result = NULL;
    assert_ok(gen_model_options_set_allocator(load, &table, &error), error);
    assert_ok(gen_model_load(STORY, load, &model, &error), error);
    assert_ok(gen_create(model, o, &g, &error), error);
    assert_int_equal(figure(estimate, "weights"), counts.live);
    size_t weights = 0;
    assert_ok(gen_model_memory(model, "weights", &weights, &error), error);
    assert_int_equal(weights, counts.live);
    assert_ok(gen_sampling_new(&s, &error), error);
    assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
    assert_ok(gen_sampling_set_temperature(s, 0, &error), error);
    /* By a prompt; then a token, a draft of 4 and one behind it, and the last one alone. */
    for (int32_t last = 2; last <= 7; last += 5) {
      gen_result_free(result);
      gen_session_free(session);
      assert_ok(gen_session_new(g, &session, &error), error);
      /* A head sees what generating calls evaluate. Each word is a token behind two first ones. */
      char text[4 * CONTEXT + 1] = "";
      for (int32_t i = 2; i < context - last; ++i) memcpy(text + 4 * (i - 2), " dog", 5);
      assert_ok(gen_sampling_set_max_new_tokens(s, last, &error), error);
      assert_ok(gen_session_generate(session, text, strlen(text), s, &result, &error), error);
      assert_int_equal(gen_session_length(session), context);
    }
    /* Buffers for the results of drafts depend on what is drafted. */
    expect_close(figure(estimate, "workspace"),
                 counts.live - figure(estimate, "weights") - figure(estimate, "cache"),
                 "workspace");
    expect_close(figure(estimate, "peak"), counts.peak, "peak");
    gen_result_free(result);
    gen_sampling_free(s);
    gen_session_free(session);
    gen_free(g);
    assert_ok(gen_model_memory(model, "weights", &weights, &error), error);
    assert_int_equal(weights, figure(without, "weights")); /* without the head */
    gen_model_free(model);
    assert_int_equal(counts.live, 0);

    /* Nothing of it with drafts off. */
    gen_memory_estimate* off = NULL;
    assert_ok(gen_options_set(o, "draft_policy", "off", &error), error);
    assert_ok(gen_estimate_memory(STORY, load, o, &off, &error), error);
    const char* const keys[] = {"weights", "cache", "workspace", "peak"};
    for (size_t i = 0; i < 4; ++i) assert_int_equal(figure(off, keys[i]), figure(without, keys[i]));
    gen_memory_estimate_free(off);
    gen_memory_estimate_free(without);
    gen_memory_estimate_free(estimate);
    gen_options_free(o);
    gen_model_options_free(load);
  }
}

static void bad_input(void** state) {
  (void)state;
  gen_memory_estimate* e = (gen_memory_estimate*)&error;
  assert_fails(gen_estimate_memory(NULL, NULL, NULL, &e, &error), bad, "path", error);
  assert_null(e);
  assert_fails(gen_estimate_memory(DRAFT_MODEL, NULL, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_estimate_memory("nowhere.gguf", NULL, NULL, &e, &error), GEN_ERROR_IO,
               "nowhere.gguf", error);
  gen_options* o = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set_paged_kv(o, 1, 1 << 20, &error), error);
  assert_fails(gen_estimate_memory(DRAFT_MODEL, NULL, o, &e, &error), bad, "one block takes",
               error);
  assert_null(e);
  gen_options_free(o);
  assert_ok(gen_estimate_memory(DRAFT_MODEL, NULL, NULL, &e, &error), error);
  size_t bytes = 7;
  assert_fails(gen_memory_estimate_get(e, "soul", &bytes, &error), bad, "soul", error);
  assert_int_equal(bytes, 0);
  assert_fails(gen_memory_estimate_get(NULL, "peak", &bytes, &error), bad, "estimate", error);
  assert_fails(gen_memory_estimate_get(e, NULL, &bytes, &error), bad, "key", error);
  assert_fails(gen_memory_estimate_get(e, "peak", NULL, &error), bad, "bytes", error);
  assert_true(figure(e, "peak") >=
              figure(e, "weights") + figure(e, "cache") + figure(e, "workspace"));
  gen_memory_estimate_free(e);
  gen_memory_estimate_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_grid), cmocka_unit_test(a_small_pool),
                                     cmocka_unit_test(without_sampling),
                                     cmocka_unit_test(a_head_of_a_file),
                                     cmocka_unit_test(bad_input)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

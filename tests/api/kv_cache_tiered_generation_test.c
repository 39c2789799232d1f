/* SPDX-License-Identifier: Apache-2.0 */
/* Generation with nearly everything in a file: the same bits, what is measured, and the options. */
#include "tiered_caches.h"

/* A counter of a snapshot; -1 if it is not there. */
static double value_of(const char* text, const char* name) {
  char key[64];
  snprintf(key, sizeof key, "\"%s\":", name);
  const char* at = strstr(text, key);
  return at != NULL ? strtod(at + strlen(key), NULL) : -1;
}

/* With one block of sixteen positions in memory each step of sixteen rows writes a block to the
 * file and reads those before it, layer by layer. */
static void moves_are_measured(void** state) {
  (void)state;
  enum { TOKENS = 100, BLOCK = 16 };
  gen_model* model = load_draft();
  gen_metrics_memory* memory = NULL;
  gen_options* o = NULL;
  gen_generator* g = NULL;
  gen_session* session = NULL;
  kv_cache_tier_config* c = NULL;
  assert_ok(gen_metrics_memory_new(&memory, &error), error);
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_ok(kv_cache_tier_config_set_hot_blocks(c, 1, &error), error);
  assert_ok(kv_cache_tier_config_set_block_size(c, BLOCK, &error), error);
  assert_ok(kv_cache_tier_config_set_prefetch_layers(c, 0, &error), error);
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(gen_options_set_metrics(o, gen_metrics_memory_sink(memory), &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  assert_ok(gen_session_new(g, &session, &error), error);
  int32_t tokens[TOKENS];
  for (int i = 0; i < TOKENS; ++i) tokens[i] = 100 + i;
  assert_ok(gen_session_append_tokens(session, tokens, TOKENS, &error), error);
  const kv_cache* cache = gen_session_cache(session);
  const double layers = kv_cache_num_layers(cache);
  const double cold = (kv_cache_seq_len(cache) + BLOCK - 1) / BLOCK - 1;
  char text[16384];
  size_t n = 0;
  assert_true(cold > 3 && layers > 1);
  assert_ok(gen_metrics_memory_snapshot(memory, text, sizeof text, &n, &error), error);
  assert_true(value_of(text, "tier_demotions") == cold);
  assert_true(value_of(text, "tier_promotions") == 0);
  assert_true(value_of(text, "tier_cold_hits") == layers * cold * (cold + 1) / 2);
  assert_true(value_of(text, "tier_warm_hits") == 0);
  const double written = value_of(text, "tier_bytes_written");
  assert_true(written > 0);
  assert_true(value_of(text, "tier_bytes_read") * cold == written * cold * (cold + 1) / 2);
  /* Back into the file: the block that is gone on in comes back. */
  assert_ok(gen_session_truncate(session, BLOCK + 3, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, 5, &error), error);
  assert_ok(gen_metrics_memory_snapshot(memory, text, sizeof text, &n, &error), error);
  assert_true(value_of(text, "tier_promotions") == 1);
  gen_session_free(session);
  gen_free(g);
  gen_options_free(o);
  kv_cache_tier_config_free(c);
  gen_metrics_memory_free(memory);
  gen_model_free(model);
}

enum { kKept = 64, kRoom = 4096 }; /* logits of a step that are compared */

/* What a session gives for prompts and cuts, and caches of its kind for forks. */
static size_t script(gen_model* model, gen_generator* generator, float* out) {
  gen_session* s = NULL;
  gen_session* fork = NULL;
  gen_sampling* sampling = greedy(30);
  gen_result* result = NULL;
  size_t count = 0;
  size_t n = 0;
  const char* const text = "the little dog went to the big park and saw a red ball";
  assert_ok(gen_session_new(generator, &s, &error), error);
  for (int round = 0; round < 4; ++round) {
    const char* const prompt = round == 0 ? "Once upon a time" : "and then";
    assert_ok(gen_session_generate(s, prompt, GEN_NUL_TERMINATED, sampling, &result, &error),
              error);
    gen_result_free(result);
    assert_ok(gen_session_score(s, text, GEN_NUL_TERMINATED, out + count, 64, &n, &error), error);
    count += n;
    assert_ok(gen_session_fork(s, &fork, &error), error);
    assert_ok(gen_session_truncate(s, 24 - 5 * round, &error), error);
    assert_ok(gen_session_generate(fork, "but", GEN_NUL_TERMINATED, sampling, &result, &error),
              error);
    gen_result_free(result);
    assert_ok(gen_session_score(fork, text, GEN_NUL_TERMINATED, out + count, 64, &n, &error),
              error);
    count += n;
    gen_session_free(fork);
  }
  gen_session_free(s);
  gen_sampling_free(sampling);

  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(model));
  float* logits = malloc(vocab * sizeof *logits);
  kv_cache* caches[2] = {NULL, NULL};
  int32_t tokens[40];
  for (int i = 0; i < 40; ++i) tokens[i] = 300 + 7 * i;
  assert_ok(kv_cache_generator_new(generator, 200, &caches[0], &error), error);
  assert_ok(gen_model_forward(model, tokens, 40, caches[0], logits, vocab, &error), error);
  for (int round = 0; round < 4; ++round) {
    kv_cache_free(caches[1]);
    caches[1] = NULL;
    assert_ok(kv_cache_clone(caches[0], &caches[1], &error), error);
    assert_ok(kv_cache_truncate(caches[0], 30 - 7 * round, &error), error);
    for (int step = 0; step < 12; ++step) {
      const int32_t* next = tokens + (step * 3 + round) % 30;
      const int which = step % 2;
      assert_ok(gen_model_forward(model, next, (size_t)(1 + step % 5), caches[which], logits, vocab,
                                  &error),
                error);
      memcpy(out + count, logits, kKept * sizeof *logits);
      count += kKept;
    }
  }
  kv_cache_free(caches[0]);
  kv_cache_free(caches[1]);
  free(logits);
  return count;
}

static void tiers_do_not_show_in_generation(void** state) {
  (void)state;
  gen_model* model = load_draft();
  float* want = malloc(kRoom * sizeof *want);
  float* got = malloc(kRoom * sizeof *got);
  char folder[64];
  make_folder(folder);
  const char* const kinds[] = {"fp32", "fp16", "q3"};
  for (size_t kind = 0; kind < 3; ++kind) {
    gen_options* o = NULL;
    gen_generator* g = NULL;
    assert_ok(gen_options_new(&o, &error), error);
    assert_ok(gen_options_set_kv_dtype(o, kinds[kind], &error), error);
    assert_ok(gen_create(model, o, &g, &error), error);
    const size_t n = script(model, g, want);
    assert_true(n > 0 && n <= kRoom);
    gen_free(g);
    const int32_t blocks[][3] = {{16, 1, 1}, {7, 2, -1}, {32, 1, 9}}; /* size, hot, ahead */
    for (size_t i = 0; i < 3; ++i) {
      kv_cache_tier_config* c = NULL;
      assert_ok(kv_cache_tier_config_new(&c, &error), error);
      assert_ok(kv_cache_tier_config_set_cold_dir(c, i == 0 ? folder : "", &error), error);
      assert_ok(kv_cache_tier_config_set_block_size(c, blocks[i][0], &error), error);
      assert_ok(kv_cache_tier_config_set_hot_blocks(c, blocks[i][1], &error), error);
      assert_ok(kv_cache_tier_config_set_prefetch_layers(c, blocks[i][2], &error), error);
      assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
      kv_cache_tier_config_free(c);
      assert_ok(gen_create(model, o, &g, &error), error);
      assert_int_equal(script(model, g, got), n);
      assert_memory_equal(got, want, n * sizeof *got);
      gen_free(g);
    }
    gen_options_free(o);
  }
  assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
  free(want);
  free(got);
  gen_model_free(model);
}

static void options_for_generation(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_options* o = NULL;
  gen_generator* g = NULL;
  kv_cache_tier_config* c = NULL;
  char text[8192];
  size_t n = 0;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_fails(gen_options_set_tiered_kv(NULL, c, &error), bad, "options", error);
  assert_ok(gen_options_set(o, "tiered_kv", "/a,b,77", &error), error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"/a,b,77\""));
  assert_fails(gen_create(model, o, &g, &error), GEN_ERROR_IO, "/a,b", error);
  assert_fails(gen_options_set(o, "tiered_kv", "/tmp,0", &error), bad, "hot_memory 0", error);
  assert_fails(gen_options_set(o, "tiered_kv", "/tmp", &error), bad, "/tmp", error);
  assert_ok(gen_options_set(o, "tiered_kv", "", &error), error);
  assert_ok(gen_options_set(o, "tiered_kv", "0", &error), error);

  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(gen_options_set(o, "paged_kv", "4", &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "does not go with", error);
  assert_ok(gen_options_set(o, "paged_kv", "0", &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(c, 99, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "99 layers", error);
  assert_ok(kv_cache_tier_config_set_num_layers(c, 0, &error), error);
  const int32_t context = gen_model_config_max_seq_len(gen_model_get_config(model));
  assert_ok(kv_cache_tier_config_set_max_seq_len(c, context + 1, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "max_seq_len", error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(c, 10, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  gen_session* s = NULL;
  assert_ok(gen_session_new(g, &s, &error), error);
  assert_fails(gen_session_append(s, "one two three four five six seven eight nine ten eleven",
                                  GEN_NUL_TERMINATED, &error),
               GEN_ERROR_CONTEXT_FULL, "the context only 10", error);
  gen_session_free(s);
  gen_free(g);
  assert_ok(gen_options_set_tiered_kv(o, NULL, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  gen_free(g);
  gen_options_free(o);
  kv_cache_tier_config_free(c);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moves_are_measured),
      cmocka_unit_test(tiers_do_not_show_in_generation),
      cmocka_unit_test(options_for_generation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

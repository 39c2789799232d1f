/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of kv_cache say to calls of each other's families: a model's pass takes every
 * empty cache that it can write and names what the others are for; a compressed cache of a model
 * counts its entries as that of kv_cache_update does; a tracing cache and what it wraps are one
 * object. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

enum { CHUNK = 4, TOKENS = 10 };
static const int32_t tokens[TOKENS] = {1, 300, 301, 302, 5, 40, 41, 300, 7, 9};

typedef struct world {
  gen_model* model;
  int32_t layers;
  size_t vocab;
  float* logits;
} world;

static int setup(void** state) {
  world* w = calloc(1, sizeof(*w));
  w->model = load_draft();
  w->layers = gen_model_config_num_layers(gen_model_get_config(w->model));
  w->vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(w->model));
  w->logits = malloc(2 * w->vocab * sizeof(float));
  *state = w;
  return 0;
}

static int teardown(void** state) {
  world* w = *state;
  free(w->logits);
  gen_model_free(w->model);
  free(w);
  return 0;
}

static gen_status forward(world* w, kv_cache* cache, int from, int n, float* logits) {
  return gen_model_forward(w->model, tokens + from, (size_t)n, cache, logits, w->vocab, &error);
}

static gen_generator* generator(const world* w, const char* option, const char* value) {
  gen_options* o = NULL;
  gen_generator* g = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set(o, option, value, &error), error);
  assert_ok(gen_create(w->model, o, &g, &error), error);
  gen_options_free(o);
  return g;
}

/* A cache as sessions of a generator with an option have it. */
static kv_cache* cache_of(const world* w, const char* option, const char* value) {
  gen_generator* g = generator(w, option, value);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_generator_new(g, 64, &cache, &error), error);
  gen_free(g);
  return cache;
}

static void models_write_empty_caches_of_every_kind(void** state) {
  world* w = *state;
  float* want = w->logits;
  float* got = w->logits + w->vocab;
  typedef gen_status (*maker)(int32_t, int32_t, kv_cache**, gen_error*);
  const maker makers[] = {kv_cache_new, kv_cache_fp16_new, kv_cache_fp8_new, kv_cache_q4_new,
                          kv_cache_q3_new};
  const char* const kinds[] = {"fp32", "fp16", "fp8", "q4", "q3"};
  kv_cache* cache = NULL;
  kv_cache* plain = NULL;
  for (size_t i = 0; i < 5; ++i) {
    plain = cache_of(w, "kv_dtype", kinds[i]);
    assert_ok(forward(w, plain, 0, TOKENS, want), error);
    assert_ok(makers[i](w->layers, 64, &cache, &error), error);
    assert_ok(forward(w, cache, 0, TOKENS, got), error);
    assert_memory_equal(got, want, w->vocab * sizeof(float));
    kv_cache_free(cache);
    kv_cache_free(plain);
  }
  /* Means of chunks, which the generator's caches pool by the same rules. */
  plain = cache_of(w, "compressed_kv", "4");
  assert_ok(forward(w, plain, 0, TOKENS, want), error);
  assert_ok(kv_cache_compressed_new(w->layers, 0, 0, CHUNK, &cache, &error), error);
  assert_ok(forward(w, cache, 0, 7, got), error);
  assert_string_equal(kv_cache_kind(cache), "compressed");
  assert_int_equal(kv_cache_seq_len(cache), 7);
  kv_cache* copy = NULL;
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_ok(forward(w, cache, 0, 1, got), error);
  kv_cache_free(cache);
  assert_ok(forward(w, copy, 7, TOKENS - 7, got), error);
  assert_memory_equal(got, want, w->vocab * sizeof(float));
  const float x[4] = {1, 2, 3, 4};
  assert_fails(kv_cache_update(copy, 0, x, x, 1, 1, 4, &error), GEN_ERROR_STATE,
               "gen_model_forward", error);
  kv_cache_free(copy);
  kv_cache_free(plain);
}

static void a_pool_may_have_no_block_left(void** state) {
  world* w = *state;
  gen_generator* g = generator(w, "paged_kv", "1,16");
  kv_cache* caches[400] = {NULL};
  gen_status status = GEN_OK;
  int n = 0;
  for (; status == GEN_OK && n < 400; ++n) {
    assert_ok(kv_cache_generator_new(g, 64, &caches[n], &error), error);
    status = forward(w, caches[n], 0, TOKENS, w->logits);
  }
  assert_int_equal(status, GEN_ERROR_POOL_EXHAUSTED);
  assert_int_equal(kv_cache_seq_len(caches[n - 1]), 0);
  assert_int_equal(kv_cache_seq_len(caches[0]), TOKENS);
  while (n > 0) kv_cache_free(caches[--n]);
  gen_free(g);
}

/* Ten positions in blocks of four; a fork has the same blocks until it writes. */
static void a_sessions_paged_cache_has_a_block_table(void** state) {
  world* w = *state;
  gen_generator* g = generator(w, "paged_kv", "1,4");
  gen_session* session = NULL;
  gen_session* fork = NULL;
  kv_cache_block* own[3] = {NULL};
  kv_cache_block* forks[4] = {NULL};
  size_t n = 7;
  assert_ok(gen_session_new(g, &session, &error), error);
  assert_ok(kv_cache_block_table(gen_session_cache(session), own, 3, &n, &error), error);
  assert_int_equal(n, 0);
  assert_ok(gen_session_append_tokens(session, tokens, TOKENS, &error), error);
  const kv_cache* cache = gen_session_cache(session);
  assert_ok(kv_cache_block_table(cache, NULL, 0, &n, &error), error);
  assert_int_equal(n, 3);
  assert_fails(kv_cache_block_table(cache, own, 2, &n, &error), GEN_ERROR_OUT_OF_RANGE, "3 blocks",
               error);
  assert_ok(kv_cache_block_table(cache, own, 3, &n, &error), error);
  const int32_t length = kv_cache_seq_len(cache); /* the last token may be still to come */
  assert_in_range(length, TOKENS - 1, TOKENS);
  for (int32_t i = 0; i < 3; ++i) {
    assert_int_equal(kv_cache_block_used(own[i]), i < 2 ? 4 : length - 8);
    /* Their rows lie in tiles, which these cannot describe. */
    assert_null(kv_cache_block_k(own[i]));
    assert_null(kv_cache_block_v(own[i]));
  }
  assert_ok(gen_session_fork(session, &fork, &error), error);
  assert_ok(kv_cache_block_table(gen_session_cache(fork), forks, 4, &n, &error), error);
  assert_int_equal(n, 3);
  assert_memory_equal(forks, own, sizeof own);
  assert_ok(gen_session_append_tokens(fork, tokens, 5, &error), error);
  assert_ok(kv_cache_block_table(gen_session_cache(fork), forks, 4, &n, &error), error);
  assert_int_equal(n, 4);
  assert_ptr_equal(forks[0], own[0]);
  assert_ptr_equal(forks[1], own[1]);
  assert_ptr_not_equal(forks[2], own[2]);
  gen_session_free(fork);
  gen_session_free(session);
  gen_free(g);

  kv_cache* made = cache_of(w, "paged_kv", "1,4");
  assert_ok(forward(w, made, 0, 5, w->logits), error);
  assert_ok(kv_cache_block_table(made, own, 3, &n, &error), error);
  assert_int_equal(n, 2);
  assert_fails(kv_cache_inject_blocks(made, own, 1, 1, 1, 1, &error), bad, "kv_cache_paged_new",
               error);
  kv_cache_free(made);
  made = cache_of(w, "kv_dtype", "fp16");
  assert_ok(forward(w, made, 0, 5, w->logits), error);
  assert_fails(kv_cache_block_table(made, own, 3, &n, &error), bad, "is for paged caches", error);
  kv_cache_free(made);
}

static void models_name_what_other_kinds_are_for(void** state) {
  world* w = *state;
  float* got = w->logits;
  for (size_t i = 0; i < w->vocab; ++i) got[i] = 7;
  kv_cache_pool* pool = NULL;
  kv_cache_tier_config* config = NULL;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_pool_new(w->layers, 16, 64, 1, "fp32", &pool, &error), error);
  assert_ok(kv_cache_paged_new(pool, w->layers, &cache, &error), error);
  assert_fails(forward(w, cache, 0, 3, got), GEN_ERROR_STATE, "gen_options_set_paged_kv", error);
  assert_int_equal(kv_cache_seq_len(cache), 0);
  kv_cache_free(cache);
  kv_cache_pool_free(pool);

  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, w->layers, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, 64, &error), error);
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  assert_fails(forward(w, cache, 0, 3, got), GEN_ERROR_STATE, "gen_options_set_tiered_kv", error);
  kv_cache_free(cache);
  kv_cache_tier_config_free(config);

  gen_tracer* tracer = NULL;
  kv_cache* traced = NULL;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_new(w->layers, 64, &cache, &error), error);
  assert_ok(kv_cache_tracing_new(cache, tracer, &traced, &error), error);
  assert_fails(forward(w, traced, 0, 3, got), GEN_ERROR_STATE, "gen_options_set_tracer", error);
  assert_fails(forward(w, cache, 0, 3, got), GEN_ERROR_STATE, "kv_cache_update", error);
  kv_cache_free(traced);
  kv_cache_free(cache);
  gen_tracer_free(tracer);

  assert_ok(kv_cache_causal_new(&cache, &error), error);
  assert_fails(
      forward(w, cache, 0, 3, got), GEN_ERROR_STATE,
      "gen_model_forward is for caches of one sequence (fp32, paged, ...); this is a causal "
      "cache",
      error);
  kv_cache_free(cache);
  for (size_t i = 0; i < w->vocab; ++i) assert_true(got[i] == 7);
}

/* Ten positions in chunks of four: two means and two rows. */
static void entries_of_a_models_compressed_cache(void** state) {
  world* w = *state;
  gen_generator* g = generator(w, "compressed_kv", "4");
  gen_session* session = NULL;
  gen_result* result = NULL;
  assert_ok(gen_session_new(g, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, TOKENS, &error), error);
  kv_cache* own = NULL;
  assert_ok(kv_cache_generator_new(g, 64, &own, &error), error);
  assert_ok(forward(w, own, 0, TOKENS, w->logits), error);
  const kv_cache* const both[2] = {gen_session_cache(session), own};
  for (int i = 0; i < 2; ++i) {
    const kv_cache* cache = both[i];
    int32_t k_shape[3];
    const int32_t length = kv_cache_seq_len(cache);
    assert_int_equal(length, i == 0 ? kv_cache_seq_len(cache) : TOKENS);
    assert_true(length >= TOKENS - 1); /* a session's last token is evaluated when it is needed */
    assert_int_equal(kv_cache_layer_seq_len(cache, 1), length);
    const int32_t entries = length / CHUNK + length % CHUNK;
    assert_int_equal(kv_cache_kv_len(cache, 1), entries);
    assert_int_equal(kv_cache_kv_len(cache, w->layers), 0);
    assert_ok(kv_cache_get(cache, 1, NULL, 0, NULL, 0, k_shape, NULL, &error), error);
    assert_int_equal(k_shape[1], entries);
    for (int32_t e = 0; e < entries; ++e) {
      int32_t first = -1;
      int32_t count = -1;
      const int is_mean = e < length / CHUNK;
      assert_ok(kv_cache_compressed_entry(cache, 1, e, &first, &count, &error), error);
      assert_int_equal(first, is_mean ? CHUNK * e : length / CHUNK * CHUNK + e - length / CHUNK);
      assert_int_equal(count, is_mean ? CHUNK : 1);
    }
    assert_fails(kv_cache_compressed_entry(cache, 1, entries, NULL, NULL, &error),
                 GEN_ERROR_OUT_OF_RANGE, "no entry", error);
    assert_fails(kv_cache_compressed_entry(cache, w->layers, 0, NULL, NULL, &error),
                 GEN_ERROR_OUT_OF_RANGE, "layer", error);
  }
  /* The chunk closed last can be cut within; a cut into an older one drops it. */
  const int32_t cuts[4][2] = {{9, 9}, {6, 6}, {5, 5}, {2, 0}};
  for (int i = 0; i < 4; ++i) {
    kv_cache* copy = NULL;
    assert_ok(kv_cache_clone(own, &copy, &error), error);
    assert_ok(kv_cache_truncate(copy, cuts[i][0], &error), error);
    assert_int_equal(kv_cache_seq_len(copy), cuts[i][1]);
    assert_int_equal(kv_cache_kv_len(copy, 0), cuts[i][1] / CHUNK + cuts[i][1] % CHUNK);
    /* What is left goes on as if it had never been more. */
    kv_cache* fresh = NULL;
    assert_ok(kv_cache_generator_new(g, 64, &fresh, &error), error);
    if (cuts[i][1] > 0) assert_ok(forward(w, fresh, 0, cuts[i][1], w->logits), error);
    assert_ok(forward(w, fresh, cuts[i][1], 1, w->logits), error);
    assert_ok(forward(w, copy, cuts[i][1], 1, w->logits + w->vocab), error);
    assert_memory_equal(w->logits, w->logits + w->vocab, w->vocab * sizeof(float));
    kv_cache_free(fresh);
    kv_cache_free(copy);
  }
  kv_cache_free(own);
  gen_result_free(result);
  gen_session_free(session);
  gen_free(g);
}

/* An allocator that reads a cache while another handle of it is being written. */
struct meeting {
  const kv_cache* other;
  int calls;
};
static gen_status meeting_allocate(void* user, size_t bytes, size_t align, void** out) {
  struct meeting* m = user;
  gen_error inner;
  float x = 1;
  if (m->other != NULL) {
    assert_fails(kv_cache_get(m->other, 0, &x, 1, NULL, 0, NULL, NULL, &inner), GEN_ERROR_BUSY, "",
                 inner);
    assert_fails(kv_cache_truncate((kv_cache*)m->other, 0, &inner), GEN_ERROR_BUSY, "", inner);
  }
  ++m->calls;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  return GEN_OK;
}
static void meeting_release(void* user, void* ptr, size_t bytes) {
  (void)user;
  (void)bytes;
  free(ptr);
}

static void a_tracing_cache_and_its_inner_are_one(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  for (int which = 0; which < 2; ++which) {
    struct meeting m = {0};
    const gen_allocator table = {sizeof(table), &m, meeting_allocate, meeting_release};
    kv_cache* pair[3] = {NULL};
    assert_ok(kv_cache_new(1, 4, &pair[0], &error), error);
    assert_ok(kv_cache_set_allocator(pair[0], &table, &error), error);
    assert_ok(kv_cache_tracing_new(pair[0], tracer, &pair[1], &error), error);
    assert_ok(kv_cache_tracing_new(pair[1], tracer, &pair[2], &error), error);
    const float x[2] = {1, 2};
    m.other = pair[which == 0 ? 2 : 0];
    assert_ok(kv_cache_update(pair[which == 0 ? 0 : 2], 0, x, x, 1, 1, 2, &error), error);
    assert_true(m.calls > 0);
    m.other = NULL;
    kv_cache_free(pair[which]);
    float k[2];
    assert_ok(kv_cache_get(pair[1 - which], 0, k, 2, NULL, 0, NULL, NULL, &error), error);
    assert_true(k[1] == 2);
    kv_cache_free(pair[1 - which]);
    kv_cache_free(pair[2]);
  }
  gen_tracer_free(tracer);
}

static void tracing_caches_tell_what_they_wrap(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* traced = NULL;
  kv_cache* twice = NULL;
  kv_cache_pool* pool = NULL;
  const float x[5] = {1, 2, 3, 4, 5};
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_compressed_new(1, 0, 0, 2, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &traced, &error), error);
  assert_ok(kv_cache_tracing_new(traced, tracer, &twice, &error), error);
  assert_ok(kv_cache_update(twice, 0, x, x, 1, 5, 1, &error), error);
  int32_t first = 0;
  int32_t count = 0;
  assert_ok(kv_cache_compressed_entry(twice, 0, 1, &first, &count, &error), error);
  assert_int_equal(first, 2);
  assert_int_equal(count, 2);
  kv_cache_free(twice);
  kv_cache_free(traced);
  kv_cache_free(inner);

  assert_ok(kv_cache_pool_new(1, 2, 1, 1, "fp32", &pool, &error), error);
  assert_ok(kv_cache_paged_new(pool, 1, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &traced, &error), error);
  assert_ok(kv_cache_update(traced, 0, x, x, 1, 5, 1, &error), error);
  kv_cache_block* blocks[3];
  kv_cache_block* seen[3];
  size_t n = 0;
  assert_ok(kv_cache_block_table(inner, blocks, 3, &n, &error), error);
  assert_ok(kv_cache_block_table(traced, seen, 3, &n, &error), error);
  assert_int_equal(n, 3);
  assert_memory_equal(seen, blocks, sizeof(seen));
  kv_cache_free(traced);
  kv_cache_free(inner);
  kv_cache_pool_free(pool);
  gen_tracer_free(tracer);
}

/* The record after what it cannot see: each content of a layer has a number of its own. */
static void contents_have_numbers_of_their_own(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* traced = NULL;
  const float x[4] = {1, 2, 3, 4};
  float k[4];
  char before[200];
  char after[200];
  size_t n = 0;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_new(1, 4, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &traced, &error), error);
  assert_ok(kv_cache_update(inner, 0, x, x, 1, 2, 2, &error), error);
  assert_ok(kv_cache_get(traced, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_ok(gen_tracer_op(tracer, 0, before, 200, &n, &error), error);
  *strstr(before, ",\"outputs\"") = 0;
  /* Cut and filled again to the same length, with another content. */
  assert_ok(kv_cache_truncate(inner, 1, &error), error);
  assert_ok(kv_cache_update(inner, 0, x, x, 1, 1, 2, &error), error);
  assert_ok(kv_cache_get(traced, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_ok(gen_tracer_op(tracer, 1, after, 200, &n, &error), error);
  *strstr(after, ",\"outputs\"") = 0;
  assert_string_not_equal(before, after);
  /* What has not changed keeps its number. */
  assert_ok(kv_cache_get(traced, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_ok(gen_tracer_op(tracer, 2, before, 200, &n, &error), error);
  *strstr(before, ",\"outputs\"") = 0;
  assert_string_equal(before, after);
  kv_cache_free(traced);
  kv_cache_free(inner);
  gen_tracer_free(tracer);
}

static void calls_name_their_family(void** state) {
  (void)state;
  kv_cache* one = NULL;
  kv_cache* many = NULL;
  const float x[2] = {1, 2};
  int32_t number = 0;
  size_t n = 0;
  assert_ok(kv_cache_new(1, 4, &one, &error), error);
  assert_ok(kv_cache_swa_new(4, &many, &error), error);
  assert_fails(kv_cache_put(one, x, 1, 2, x, 1, 2, 1, &error), GEN_ERROR_STATE,
               "kv_cache_put is for the batch family (causal, swa, ...); this is a fp32 cache",
               error);
  assert_fails(kv_cache_set_quota(one, 1, &error), GEN_ERROR_STATE,
               "kv_cache_set_quota is for the batch family", error);
  assert_fails(
      kv_cache_update(many, 0, x, x, 1, 1, 2, &error), GEN_ERROR_STATE,
      "kv_cache_update is for caches of one sequence (fp32, paged, ...); this is a swa cache",
      error);
  assert_fails(kv_cache_truncate(many, 0, &error), GEN_ERROR_STATE, "kv_cache_truncate is for",
               error);
  assert_fails(kv_cache_save_buffer(many, NULL, 0, &n, &error), GEN_ERROR_STATE,
               "kv_cache_save is for", error);
  assert_fails(kv_cache_compressed_entry(many, 0, 0, &number, NULL, &error), bad,
               "kv_cache_compressed_entry is for compressed caches; this is a swa cache", error);
  assert_fails(kv_cache_block_table(one, NULL, 0, &n, &error), bad,
               "kv_cache_block_table is for paged caches; this is a fp32 cache", error);
  assert_fails(kv_cache_tiered_promote(one, 0, &error), bad,
               "kv_cache_tiered_promote is for caches of kv_cache_tiered_new; this is a fp32 cache",
               error);
  kv_cache_free(one);
  kv_cache_free(many);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_write_empty_caches_of_every_kind),
      cmocka_unit_test(a_pool_may_have_no_block_left),
      cmocka_unit_test(a_sessions_paged_cache_has_a_block_table),
      cmocka_unit_test(models_name_what_other_kinds_are_for),
      cmocka_unit_test(entries_of_a_models_compressed_cache),
      cmocka_unit_test(a_tracing_cache_and_its_inner_are_one),
      cmocka_unit_test(tracing_caches_tell_what_they_wrap),
      cmocka_unit_test(contents_have_numbers_of_their_own),
      cmocka_unit_test(calls_name_their_family),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}

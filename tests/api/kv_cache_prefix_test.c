/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_prefix.h: every function's good case, each documented error, that a failed call changes
 * nothing, and the way a program uses it with paged caches. */
#include "api_test.h"
#include "counting_allocator.h"

#include <pthread.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t text[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

enum { kBlockSize = 4, kDim = 2 };

static kv_cache_pool* make_pool(void) {
  kv_cache_pool* pool = NULL;
  assert_ok(kv_cache_pool_new(1, kBlockSize, kDim, 1, "fp32", &pool, &error), error);
  return pool;
}

static kv_cache_prefix* make_prefix(const kv_cache_pool* pool, int32_t capacity) {
  kv_cache_prefix* prefix = NULL;
  assert_ok(kv_cache_prefix_new(capacity, pool, &prefix, &error), error);
  assert_non_null(prefix);
  return prefix;
}

/* What a model would make of tokens [from, n): rows that depend on all before. */
static gen_status compute(kv_cache* cache, const int32_t* tokens, int from, int n) {
  float rows[64 * kDim];
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum = sum * 0.5F + (float)tokens[i];
    if (i >= from) rows[(i - from) * kDim] = rows[(i - from) * kDim + 1] = sum;
  }
  return kv_cache_update(cache, 0, rows, rows, 1, n - from, kDim, NULL);
}

static int same(kv_cache* cache, const int32_t* tokens, int n) {
  float rows[64 * kDim];
  float sum = 0;
  int32_t shape[3];
  if (kv_cache_get(cache, 0, rows, 64 * kDim, NULL, 0, shape, NULL, NULL) != GEN_OK) return 0;
  if (shape[1] != n) return 0;
  for (int i = 0; i < n; ++i) {
    sum = sum * 0.5F + (float)tokens[i];
    if (rows[i * kDim] != sum || rows[i * kDim + 1] != sum) return 0;
  }
  return 1;
}

/* Goes on from what is known, keeps the result; the tokens that were known, or -1. */
static int prompt(const kv_cache_pool* pool, const kv_cache_prefix* prefix, const int32_t* tokens,
                  int n) {
  kv_cache* cache = NULL;
  kv_cache_block* blocks[16];
  size_t found = 0;
  size_t matched = 0;
  int good = kv_cache_paged_new(pool, 1, &cache, NULL) == GEN_OK &&
             kv_cache_prefix_match(prefix, 0, tokens, (size_t)n - 1, blocks, 16, &found, &matched,
                                   NULL) == GEN_OK;
  if (good && found > 0) {
    good = kv_cache_inject_blocks(cache, blocks, found, (int32_t)matched, 1, kDim, NULL) == GEN_OK;
  }
  good = good && compute(cache, tokens, (int)matched, n) == GEN_OK && same(cache, tokens, n) &&
         kv_cache_block_table(cache, blocks, 16, &found, NULL) == GEN_OK &&
         kv_cache_prefix_insert(prefix, 0, tokens, (size_t)n, blocks, found, NULL) == GEN_OK;
  kv_cache_free(cache);
  return good ? (int)matched : -1;
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool();
  kv_cache_prefix* prefix = (kv_cache_prefix*)&error;
  assert_fails(kv_cache_prefix_new(0, pool, &prefix, &error), bad, "0 blocks", error);
  assert_null(prefix);
  assert_fails(kv_cache_prefix_new(1, NULL, &prefix, &error), bad, "pool", error);
  assert_fails(kv_cache_prefix_new(1, pool, NULL, &error), bad, "out", error);
  kv_cache_prefix_free(NULL);
  assert_int_equal(kv_cache_prefix_size(NULL), 0);
  kv_cache_pool_free(pool);
}

static void prompts_go_on_from_each_other(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool();
  kv_cache_prefix* prefix = make_prefix(pool, 100);
  const size_t all = kv_cache_pool_cap(pool);
  assert_int_equal(prompt(pool, prefix, text, 10), 0);
  assert_int_equal(kv_cache_prefix_size(prefix), 3);
  assert_int_equal(kv_cache_pool_available(pool), all - 3);
  assert_int_equal(prompt(pool, prefix, text, 10), 9); /* the last one is computed */
  const int32_t other[9] = {1, 2, 3, 4, 5, 6, 0, 0, 0};
  assert_int_equal(prompt(pool, prefix, other, 9), 6);
  assert_int_equal(kv_cache_prefix_size(prefix), 5);
  assert_int_equal(prompt(pool, prefix, other, 9), 8);
  assert_int_equal(prompt(pool, prefix, text, 10), 9);
  kv_cache_pool_free(pool); /* the prefix cache keeps it */
  kv_cache_prefix_free(prefix);
}

static void arguments_are_checked(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool();
  kv_cache_pool* stranger = make_pool();
  kv_cache_prefix* prefix = make_prefix(pool, 100);
  kv_cache* cache = NULL;
  kv_cache_block* blocks[3];
  size_t n = 0;
  size_t matched = 0;
  assert_ok(kv_cache_paged_new(pool, 1, &cache, &error), error);
  assert_int_equal(compute(cache, text, 0, 10), GEN_OK);
  assert_ok(kv_cache_block_table(cache, blocks, 3, &n, &error), error);

  assert_fails(kv_cache_prefix_insert(NULL, 0, text, 10, blocks, 3, &error), bad, "prefix", error);
  assert_fails(kv_cache_prefix_insert(prefix, 0, NULL, 10, blocks, 3, &error), bad, "tokens",
               error);
  assert_fails(kv_cache_prefix_insert(prefix, 0, text, 10, NULL, 3, &error), bad, "blocks", error);
  assert_fails(kv_cache_prefix_insert(prefix, 0, text, 10, blocks, 2, &error), bad, "2 blocks",
               error);
  const int32_t longer[11] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  assert_fails(kv_cache_prefix_insert(prefix, 0, longer, 11, blocks, 3, &error), bad,
               "2 written positions for 3", error);
  kv_cache_block* foreign[3] = {blocks[0], blocks[1], NULL};
  assert_fails(kv_cache_prefix_insert(prefix, 0, text, 10, foreign, 3, &error), GEN_ERROR_STATE,
               "pool", error);
  assert_ok(kv_cache_pool_alloc(stranger, &foreign[2], &error), error);
  assert_fails(kv_cache_prefix_insert(prefix, 0, text, 10, foreign, 3, &error), GEN_ERROR_STATE,
               "pool", error);
  assert_int_equal(kv_cache_prefix_size(prefix), 0);
  assert_ok(kv_cache_prefix_insert(prefix, 0, text, 0, blocks, 3, &error), error);
  assert_ok(kv_cache_prefix_insert(prefix, 0, text, 10, NULL, 0, &error), error);
  assert_int_equal(kv_cache_prefix_size(prefix), 0);
  assert_ok(kv_cache_prefix_insert(prefix, 0, text, 10, blocks, 3, &error), error);
  assert_int_equal(kv_cache_prefix_size(prefix), 3);

  kv_cache_block* found[3] = {NULL, NULL, NULL};
  n = matched = 9;
  assert_fails(kv_cache_prefix_match(NULL, 0, text, 10, found, 3, &n, &matched, &error), bad,
               "prefix", error);
  assert_int_equal(n + matched, 0);
  assert_fails(kv_cache_prefix_match(prefix, 0, NULL, 10, found, 3, &n, &matched, &error), bad,
               "tokens", error);
  assert_fails(kv_cache_prefix_match(prefix, 0, text, 10, found, 3, NULL, &matched, &error), bad,
               "n_blocks", error);
  assert_fails(kv_cache_prefix_match(prefix, 0, text, 10, found, 3, &n, NULL, &error), bad,
               "matched", error);
  assert_fails(kv_cache_prefix_match(prefix, 0, text, 10, found, 2, &n, &matched, &error),
               GEN_ERROR_OUT_OF_RANGE, "3 blocks", error);
  assert_int_equal(n, 3);
  assert_int_equal(matched, 0);
  assert_null(found[0]);
  assert_ok(kv_cache_prefix_match(prefix, 1, text, 10, found, 3, &n, &matched, &error), error);
  assert_int_equal(n + matched, 0); /* another domain */
  assert_ok(kv_cache_prefix_match(prefix, 0, text, 10, NULL, 0, &n, &matched, &error), error);
  assert_int_equal(n, 3);
  assert_int_equal(matched, 10);
  kv_cache_free(cache);
  const size_t kept = kv_cache_pool_available(pool);
  assert_ok(kv_cache_prefix_match(prefix, 0, text, 5, found, 3, &n, &matched, &error), error);
  assert_int_equal(n, 2);
  assert_int_equal(matched, 5);
  assert_memory_equal(found, blocks, 2 * sizeof blocks[0]);
  kv_cache_prefix_free(prefix);
  assert_int_equal(kv_cache_pool_available(pool), kept + 1); /* two are the caller's */
  for (size_t i = 0; i < n; ++i) {
    assert_ok(kv_cache_pool_free_block(pool, found[i], &error), error);
  }
  assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
  kv_cache_pool_free(pool);
  kv_cache_pool_free(stranger);
}

/* 8 blocks of 128 KiB: each prompt takes 3. */
static void an_empty_pool_gets_blocks_back(void** state) {
  (void)state;
  struct counting counts = {0};
  gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
  kv_cache_pool* pool = NULL;
  assert_ok(kv_cache_pool_new(1, kBlockSize, 4096, 1, "fp32", &pool, &error), error);
  assert_ok(kv_cache_pool_set_allocator(pool, &table, &error), error);
  assert_int_equal(kv_cache_pool_cap(pool), 8);
  kv_cache_prefix* prefix = make_prefix(pool, 8);
  float* rows = calloc(3 * kBlockSize * 4096, sizeof *rows);
  for (int32_t i = 0; i < 20; ++i) {
    kv_cache* cache = NULL;
    kv_cache_block* blocks[3];
    size_t n = 0;
    int32_t tokens[3 * kBlockSize];
    for (int j = 0; j < 3 * kBlockSize; ++j) tokens[j] = i;
    assert_ok(kv_cache_paged_new(pool, 1, &cache, &error), error);
    assert_ok(kv_cache_update(cache, 0, rows, rows, 1, 3 * kBlockSize, 4096, &error), error);
    assert_ok(kv_cache_block_table(cache, blocks, 3, &n, &error), error);
    assert_ok(kv_cache_prefix_insert(prefix, 0, tokens, 3 * kBlockSize, blocks, n, &error), error);
    kv_cache_free(cache);
    assert_int_equal((size_t)kv_cache_prefix_size(prefix) + kv_cache_pool_available(pool), 8);
  }
  assert_true(kv_cache_prefix_size(prefix) >= 6);
  free(rows);
  kv_cache_pool_free(pool);
  assert_true(counts.live > 0);
  kv_cache_prefix_free(prefix);
  assert_int_equal(counts.live, 0);
}

struct shared {
  const kv_cache_pool* pool;
  const kv_cache_prefix* prefix;
};

static void* use_prefix(void* argument) {
  const struct shared* shared = argument;
  for (int32_t round = 0; round < 200; ++round) {
    int32_t tokens[12];
    for (int32_t i = 0; i < 12; ++i) tokens[i] = (round >> i) % 2;
    if (prompt(shared->pool, shared->prefix, tokens, 2 + round % 11) < 0) return argument;
  }
  return NULL;
}

static void eight_threads_share_prefixes(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool();
  kv_cache_prefix* prefix = make_prefix(pool, 20);
  struct shared shared = {pool, prefix};
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, use_prefix, &shared), 0);
  for (int i = 0; i < 8; ++i) {
    void* failed = pool;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  kv_cache_prefix_free(prefix);
  assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
  kv_cache_pool_free(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(prompts_go_on_from_each_other),
      cmocka_unit_test(arguments_are_checked),
      cmocka_unit_test(an_empty_pool_gets_blocks_back),
      cmocka_unit_test(eight_threads_share_prefixes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

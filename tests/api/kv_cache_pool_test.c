/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_pool.h: every function's good case, each documented error, sharing, and that a failed
 * call changes nothing. */
#include "api_test.h"
#include "counting_allocator.h"

#include <pthread.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static kv_cache_pool* make_pool(int32_t layers, int32_t block_size, int32_t row_dim) {
  kv_cache_pool* pool = NULL;
  assert_ok(kv_cache_pool_new(layers, block_size, row_dim, 1, "fp32", &pool, &error), error);
  assert_non_null(pool);
  return pool;
}

static kv_cache* make_cache(const kv_cache_pool* pool, int32_t layers) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_paged_new(pool, layers, &cache, &error), error);
  assert_non_null(cache);
  return cache;
}

/* [batch, seq, dim] counting up from `first`. */
static gen_status append(kv_cache* cache, int layer, float first, int batch, int seq, int dim) {
  float x[1024];
  for (int i = 0; i < batch * seq * dim; ++i) x[i] = first + (float)i;
  return kv_cache_update(cache, layer, x, x, batch, seq, dim, &error);
}

static void pool_new_checks_its_arguments(void** state) {
  (void)state;
  kv_cache_pool* pool = (kv_cache_pool*)&error;
  assert_fails(kv_cache_pool_new(0, 16, 64, 1, "fp32", &pool, &error), bad, "0 layers", error);
  assert_null(pool);
  assert_fails(kv_cache_pool_new(2, 0, 64, 1, "fp32", &pool, &error), bad, "0 positions", error);
  assert_fails(kv_cache_pool_new(2, 16, -1, 1, "fp32", &pool, &error), bad, "-1 elements", error);
  assert_fails(kv_cache_pool_new(2, 16, 64, 0, "fp32", &pool, &error), bad, "0 MiB", error);
  assert_fails(kv_cache_pool_new(2, 16, 64, 1, "fp33", &pool, &error), bad, "fp33", error);
  assert_fails(kv_cache_pool_new(2, 16, 64, 1, NULL, &pool, &error), bad, "dtype", error);
  assert_fails(kv_cache_pool_new(2, 16, 64, 1, "fp32", NULL, &error), bad, "out", error);
  assert_fails(kv_cache_pool_new(100, 100, 100, 1, "fp32", &pool, &error), bad, "8000000 bytes",
               error);
  assert_fails(kv_cache_pool_new(INT32_MAX, INT32_MAX, INT32_MAX, 1, "fp32", &pool, &error), bad,
               "overflows", error);
  /* The published number of blocks, and twice as many of half the size. */
  assert_ok(kv_cache_pool_new(2, 16, 64, 1, "fp32", &pool, &error), error);
  assert_int_equal(kv_cache_pool_cap(pool), 64);
  assert_int_equal(kv_cache_pool_available(pool), 64);
  assert_int_equal(kv_cache_pool_block_size(pool), 16);
  assert_true(kv_cache_pool_fragmentation(pool) == 0.0);
  assert_int_equal(kv_cache_pool_resident_bytes(pool), 0);
  kv_cache_pool_free(pool);
  assert_ok(kv_cache_pool_new(2, 16, 64, 1, "fp16", &pool, &error), error);
  assert_int_equal(kv_cache_pool_cap(pool), 128);
  kv_cache_pool_free(pool);
  kv_cache_pool_free(NULL);
}

static void getters_take_null(void** state) {
  (void)state;
  assert_int_equal(kv_cache_pool_cap(NULL), 0);
  assert_int_equal(kv_cache_pool_available(NULL), 0);
  assert_int_equal(kv_cache_pool_block_size(NULL), 0);
  assert_true(kv_cache_pool_fragmentation(NULL) == 0.0);
  assert_int_equal(kv_cache_pool_resident_bytes(NULL), 0);
  assert_null(kv_cache_block_k(NULL));
  assert_null(kv_cache_block_v(NULL));
  assert_int_equal(kv_cache_block_used(NULL), 0);
}

static void blocks_are_taken_and_given_back(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool(2, 16, 64);
  kv_cache_pool* other = make_pool(2, 16, 64);
  kv_cache_block* block = NULL;
  kv_cache_block* foreign = NULL;
  assert_ok(kv_cache_pool_alloc(pool, &block, &error), error);
  assert_ok(kv_cache_pool_alloc(other, &foreign, &error), error);
  assert_int_equal(kv_cache_block_used(block), 0);
  assert_int_equal((char*)kv_cache_block_v(block) - (char*)kv_cache_block_k(block), 8192);
  memset(kv_cache_block_k(block), 1, 8192);
  memset(kv_cache_block_v(block), 2, 8192);
  assert_true(kv_cache_pool_fragmentation(pool) == 1.0);
  assert_int_equal(kv_cache_pool_available(pool), 63);

  kv_cache_block* out = block;
  assert_fails(kv_cache_pool_alloc(NULL, &out, &error), bad, "pool", error);
  assert_null(out);
  assert_fails(kv_cache_pool_alloc(pool, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_pool_free_block(NULL, block, &error), bad, "pool", error);
  assert_fails(kv_cache_pool_free_block(pool, NULL, &error), GEN_ERROR_STATE, "block", error);
  assert_fails(kv_cache_pool_free_block(pool, foreign, &error), GEN_ERROR_STATE, "pool's", error);
  assert_fails(kv_cache_pool_free_block(pool, (kv_cache_block*)&error, &error), GEN_ERROR_STATE,
               "pool's", error);
  assert_fails(kv_cache_pool_retain_block(NULL, block, &error), bad, "pool", error);
  assert_fails(kv_cache_pool_retain_block(pool, foreign, &error), GEN_ERROR_STATE, "pool's", error);
  assert_fails(kv_cache_pool_retain_block(pool, NULL, &error), GEN_ERROR_STATE, "block", error);
  assert_int_equal(kv_cache_pool_available(pool), 63);

  assert_ok(kv_cache_pool_retain_block(pool, block, &error), error);
  assert_ok(kv_cache_pool_free_block(pool, block, &error), error);
  assert_int_equal(kv_cache_pool_available(pool), 63);
  assert_ok(kv_cache_pool_free_block(pool, block, &error), error);
  assert_int_equal(kv_cache_pool_available(pool), 64);
  assert_fails(kv_cache_pool_free_block(pool, block, &error), GEN_ERROR_STATE, "free", error);
  assert_fails(kv_cache_pool_retain_block(pool, block, &error), GEN_ERROR_STATE, "free", error);
  assert_int_equal(kv_cache_pool_available(pool), 64);

  kv_cache_block* all[64];
  for (int i = 0; i < 64; ++i) assert_ok(kv_cache_pool_alloc(pool, &all[i], &error), error);
  assert_ptr_equal(all[0], block); /* last freed, first taken */
  assert_fails(kv_cache_pool_alloc(pool, &out, &error), GEN_ERROR_POOL_EXHAUSTED, "0 of 64", error);
  assert_null(out);
  kv_cache_pool_free(pool);
  kv_cache_pool_free(other);
}

static void paged_caches_behave_as_caches(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool(2, 4, 6);
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(kv_cache_paged_new(NULL, 1, &cache, &error), bad, "pool", error);
  assert_null(cache);
  assert_fails(kv_cache_paged_new(pool, 3, &cache, &error), bad, "3 layers", error);
  assert_fails(kv_cache_paged_new(pool, 0, &cache, &error), bad, "0 layers", error);
  assert_fails(kv_cache_paged_new(pool, 1, NULL, &error), bad, "out", error);
  cache = make_cache(pool, 2);
  const size_t all = kv_cache_pool_cap(pool);
  assert_string_equal(kv_cache_kind(cache), "paged");
  assert_int_equal(kv_cache_is_lossy(cache), 0);
  assert_int_equal(kv_cache_num_layers(cache), 2);
  assert_int_equal(kv_cache_max_seq_len(cache), all * 4);
  assert_int_equal(kv_cache_capabilities(cache),
                   KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_ONE_ROW_ONE_RESULT);
  /* The published example: two channels of three. */
  assert_int_equal(append(cache, 0, 1, 2, 2, 3), GEN_OK);
  assert_int_equal(append(cache, 0, 13, 2, 1, 3), GEN_OK);
  float k[18];
  float v[18];
  int32_t shape[3];
  const int32_t want_shape[3] = {2, 3, 3};
  const float want[18] = {1, 2, 3, 4, 5, 6, 13, 14, 15, 7, 8, 9, 10, 11, 12, 16, 17, 18};
  assert_ok(kv_cache_get(cache, 0, k, 18, v, 18, shape, NULL, &error), error);
  assert_memory_equal(shape, want_shape, sizeof(shape));
  assert_memory_equal(k, want, sizeof(want));
  assert_memory_equal(v, want, sizeof(want));
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 3);
  assert_int_equal(kv_cache_seq_len(cache), 0);

  assert_fails(kv_cache_update(cache, 1, k, v, 2, 1, 4, &error), bad, "row of the pool's 6", error);
  assert_fails(kv_cache_update(cache, 1, k, v, 3, 1, 2, &error), bad, "batch 2, dim 3", error);
  assert_fails(kv_cache_update(cache, 2, k, v, 2, 1, 3, &error), GEN_ERROR_OUT_OF_RANGE, "layer 2",
               error);
  kv_cache_span span = {0};
  span.struct_size = sizeof(span);
  assert_fails(kv_cache_view(cache, 0, &span, &error), GEN_ERROR_UNSUPPORTED, "paged", error);
  assert_fails(kv_cache_set_allocator(cache, NULL, &error), GEN_ERROR_STATE, "memory", error);

  /* Six positions are two blocks; a cut to three gives one back. */
  assert_int_equal(append(cache, 1, 0, 2, 6, 3), GEN_OK);
  assert_int_equal(kv_cache_pool_available(pool), all - 2);
  size_t resident = 0;
  size_t payload = 0;
  assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, NULL, &error), error);
  assert_int_equal(resident, 2 * 2 * 2 * 4 * 6 * sizeof(float));
  assert_int_equal(payload, 2 * 9 * 6 * sizeof(float));
  assert_ok(kv_cache_truncate(cache, 3, &error), error);
  assert_int_equal(kv_cache_pool_available(pool), all - 1);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(kv_cache_pool_available(pool), all);
  assert_int_equal(append(cache, 0, 1, 1, 1, 6), GEN_OK);
  kv_cache_pool_free(pool); /* the cache keeps it */
  assert_int_equal(append(cache, 0, 1, 1, 5, 6), GEN_OK);
  kv_cache_free(cache);
}

static void an_exhausted_pool_leaves_the_cache(void** state) {
  (void)state;
  kv_cache_pool* pool = NULL;
  assert_ok(kv_cache_pool_new(1, 2, 32768, 1, "fp32", &pool, &error), error);
  assert_int_equal(kv_cache_pool_cap(pool), 2);
  kv_cache* cache = make_cache(pool, 1);
  float* x = calloc(5 * 32768, sizeof(float));
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 3, 32768, &error), error);
  assert_fails(kv_cache_update(cache, 0, x, x, 1, 2, 32768, &error), GEN_ERROR_POOL_EXHAUSTED,
               "the pool has 0 of 2 blocks free, 1 wanted", error);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 3);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 1, 32768, &error), error);
  free(x);
  kv_cache_free(cache);
  assert_int_equal(kv_cache_pool_available(pool), 2);
  kv_cache_pool_free(pool);
}

static void clones_share_blocks(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool(1, 4, 6);
  kv_cache* parent = make_cache(pool, 1);
  assert_int_equal(append(parent, 0, 0, 1, 6, 6), GEN_OK);
  const size_t before = kv_cache_pool_available(pool);
  kv_cache* child = NULL;
  assert_ok(kv_cache_clone(parent, &child, &error), error);
  assert_int_equal(kv_cache_pool_available(pool), before);
  kv_cache_block* parents[2];
  kv_cache_block* childs[2];
  size_t n = 0;
  assert_ok(kv_cache_block_table(parent, parents, 2, &n, &error), error);
  assert_int_equal(n, 2);
  assert_ok(kv_cache_block_table(child, childs, 2, &n, &error), error);
  assert_memory_equal(parents, childs, sizeof(parents));
  unsigned char held[192];
  memcpy(held, kv_cache_block_k(parents[1]), sizeof(held) / 2);
  assert_int_equal(append(child, 0, 500, 1, 1, 6), GEN_OK);
  assert_memory_equal(held, kv_cache_block_k(parents[1]), sizeof(held) / 2);
  assert_ok(kv_cache_block_table(child, childs, 2, &n, &error), error);
  assert_ptr_equal(childs[0], parents[0]);
  assert_ptr_not_equal(childs[1], parents[1]);
  assert_int_equal(kv_cache_block_used(childs[1]), 3);
  assert_int_equal(kv_cache_block_used(parents[1]), 2);

  assert_fails(kv_cache_block_table(NULL, childs, 2, &n, &error), bad, "cache", error);
  assert_int_equal(n, 0);
  assert_fails(kv_cache_block_table(child, childs, 2, NULL, &error), bad, "n is NULL", error);
  assert_fails(kv_cache_block_table(child, childs, 1, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "2 blocks", error);
  assert_int_equal(n, 2);
  assert_ok(kv_cache_block_table(child, NULL, 0, &n, &error), error);
  assert_int_equal(n, 2);
  kv_cache* plain = NULL;
  assert_ok(kv_cache_new(1, 4, &plain, &error), error);
  assert_fails(kv_cache_block_table(plain, childs, 2, &n, &error), bad, "fp32", error);
  kv_cache_free(plain);
  kv_cache_free(parent);
  kv_cache_free(child);
  assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
  kv_cache_pool_free(pool);
}

static void blocks_can_be_injected(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool(2, 4, 6);
  kv_cache* cache = make_cache(pool, 2);
  kv_cache_block* blocks[2];
  for (int i = 0; i < 2; ++i) {
    assert_ok(kv_cache_pool_alloc(pool, &blocks[i], &error), error);
    for (int e = 0; e < 2 * 4 * 6; ++e) {
      ((float*)kv_cache_block_k(blocks[i]))[e] = (float)(100 * i + e);
      ((float*)kv_cache_block_v(blocks[i]))[e] = (float)(100 * i - e);
    }
  }
  kv_cache_block* twice[2] = {blocks[0], blocks[0]};
  kv_cache_block* none[2] = {blocks[0], NULL};
  assert_fails(kv_cache_inject_blocks(NULL, blocks, 2, 5, 1, 6, &error), bad, "cache", error);
  assert_fails(kv_cache_inject_blocks(cache, NULL, 2, 5, 1, 6, &error), bad, "blocks", error);
  assert_fails(kv_cache_inject_blocks(cache, blocks, 2, 9, 1, 6, &error), bad, "do not hold 9",
               error);
  assert_fails(kv_cache_inject_blocks(cache, blocks, 2, 0, 1, 6, &error), bad, "0 positions",
               error);
  assert_fails(kv_cache_inject_blocks(cache, blocks, 2, 5, 1, 7, &error), bad, "dim 7", error);
  assert_fails(kv_cache_inject_blocks(cache, twice, 2, 5, 1, 6, &error), bad, "twice", error);
  assert_fails(kv_cache_inject_blocks(cache, none, 2, 5, 1, 6, &error), GEN_ERROR_STATE, "block 1",
               error);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 0);
  assert_ok(kv_cache_inject_blocks(cache, blocks, 2, 5, 2, 3, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), 5);
  assert_int_equal(kv_cache_block_used(blocks[0]), 4);
  assert_int_equal(kv_cache_block_used(blocks[1]), 1);
  float k[30];
  assert_ok(kv_cache_get(cache, 1, k, 30, NULL, 0, NULL, NULL, &error), error);
  assert_true(k[0] == 24 && k[2] == 26 && k[3] == 30 && k[12] == 124 && k[15] == 27);
  assert_fails(kv_cache_inject_blocks(cache, blocks, 2, 5, 2, 3, &error), GEN_ERROR_STATE, "empty",
               error);
  kv_cache* plain = NULL;
  assert_ok(kv_cache_new(2, 8, &plain, &error), error);
  assert_fails(kv_cache_inject_blocks(plain, blocks, 2, 5, 2, 3, &error), bad, "fp32", error);
  kv_cache_free(plain);
  kv_cache_free(cache);
  assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
  kv_cache_pool_free(pool);
}

static void memory_is_what_the_allocator_counted(void** state) {
  (void)state;
  struct counting counts = {0};
  counts.refuse = 1;
  gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
  kv_cache_pool* pool = make_pool(2, 4, 6);
  assert_fails(kv_cache_pool_set_allocator(NULL, &table, &error), bad, "pool", error);
  gen_allocator wrong = table;
  wrong.struct_size = 4;
  assert_fails(kv_cache_pool_set_allocator(pool, &wrong, &error), bad, "struct_size", error);
  wrong = table;
  wrong.allocate = NULL;
  assert_fails(kv_cache_pool_set_allocator(pool, &wrong, &error), bad, "allocate", error);
  assert_ok(kv_cache_pool_set_allocator(pool, &table, &error), error);
  kv_cache* cache = make_cache(pool, 2);
  assert_int_equal(append(cache, 0, 1, 2, 2, 3), GEN_ERROR_OUT_OF_MEMORY);
  assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
  assert_ok(kv_cache_pool_set_allocator(pool, NULL, &error), error); /* none taken yet */
  assert_ok(kv_cache_pool_set_allocator(pool, &table, &error), error);
  counts.refuse = 0;
  assert_int_equal(append(cache, 0, 1, 2, 2, 3), GEN_OK);
  assert_true(counts.live > 0);
  assert_int_equal(kv_cache_pool_resident_bytes(pool), counts.live);
  assert_fails(kv_cache_pool_set_allocator(pool, NULL, &error), GEN_ERROR_STATE, "allocator",
               error);
  kv_cache_pool_free(pool);
  assert_int_equal(append(cache, 1, 1, 2, 2, 3), GEN_OK);
  kv_cache_free(cache);
  assert_int_equal(counts.live, 0);
}

/* One cache a thread over one pool. */
static void* use_pool(void* argument) {
  const kv_cache_pool* pool = argument;
  gen_error own;
  float x[60];
  float got[120];
  for (int i = 0; i < 60; ++i) x[i] = (float)i;
  for (int round = 0; round < 100; ++round) {
    kv_cache* cache = NULL;
    kv_cache* copy = NULL;
    if (kv_cache_paged_new(pool, 1, &cache, &own) != GEN_OK) return argument;
    if (kv_cache_update(cache, 0, x, x, 1, 10, 6, &own) != GEN_OK) return argument;
    if (kv_cache_clone(cache, &copy, &own) != GEN_OK) return argument;
    if (kv_cache_update(copy, 0, x, x, 1, 10, 6, &own) != GEN_OK) return argument;
    if (kv_cache_get(copy, 0, got, 120, NULL, 0, NULL, NULL, &own) != GEN_OK) return argument;
    if (memcmp(got, x, sizeof(x)) != 0 || memcmp(got + 60, x, sizeof(x)) != 0) return argument;
    kv_cache_free(cache);
    kv_cache_free(copy);
  }
  return NULL;
}

static void sixteen_threads_share_a_pool(void** state) {
  (void)state;
  kv_cache_pool* pool = make_pool(1, 4, 6);
  pthread_t threads[16];
  for (int i = 0; i < 16; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, use_pool, pool), 0);
  for (int i = 0; i < 16; ++i) {
    void* failed = pool;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
  assert_true(kv_cache_pool_fragmentation(pool) == 0.0);
  kv_cache_pool_free(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pool_new_checks_its_arguments),
      cmocka_unit_test(getters_take_null),
      cmocka_unit_test(blocks_are_taken_and_given_back),
      cmocka_unit_test(paged_caches_behave_as_caches),
      cmocka_unit_test(an_exhausted_pool_leaves_the_cache),
      cmocka_unit_test(clones_share_blocks),
      cmocka_unit_test(blocks_can_be_injected),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
      cmocka_unit_test(sixteen_threads_share_a_pool),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

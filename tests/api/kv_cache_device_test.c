/* SPDX-License-Identifier: Apache-2.0 */
/* Paged and tiered caches in the memory of a device through C: random programs over one on a device
 * and a twin on the host, which hold the same bits after every step; a call of the device's
 * allocator that fails leaves the cache as it was; states go from one memory to the other; what
 * lies in a device's blocks is what lies in the host's. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "api_test.h"

#include "gpu_allocator.h"

#include <stdlib.h>

enum { LAYERS = 2, ROOM = 24, BATCH = 2, DIM = 3, BLOCK = 4, MOST = BATCH * ROOM * DIM };

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

/* Debug builds overwrite blocks that are given back; that this may fail concerns nobody. */
#ifdef NDEBUG
static const int poisons = 0;
#else
static const int poisons = 1;
#endif

static uint32_t drawn;
static int below(int n) {
  drawn = drawn * 1664525u + 1013904223u;
  return (int)((drawn >> 8) % (uint32_t)n);
}

/* On the device if `gpu` is given; NULL for `form` is a paged cache of float32. */
struct kind {
  const char* pool;
  const char* warm;
};

static kv_cache* make(const struct kind* kind, struct gpu_memory* gpu, kv_cache_pool** pool) {
  kv_cache* cache = NULL;
  const gen_gpu_allocator table = gpu != NULL ? gpu_table(gpu) : (gen_gpu_allocator){0};
  if (kind->pool != NULL) {
    assert_ok(kv_cache_pool_new(LAYERS, BLOCK, BATCH * DIM, 1, kind->pool, pool, &error), error);
    if (gpu != NULL) assert_ok(kv_cache_pool_set_gpu_allocator(*pool, &table, &error), error);
    assert_ok(kv_cache_paged_new(*pool, LAYERS, &cache, &error), error);
    return cache;
  }
  kv_cache_tier_config* c = NULL;
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(c, LAYERS, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(c, ROOM, &error), error);
  assert_ok(kv_cache_tier_config_set_warm_form(c, kind->warm, &error), error);
  if (gpu != NULL) assert_ok(kv_cache_tier_config_set_gpu_allocator(c, &table, &error), error);
  assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
  kv_cache_tier_config_free(c);
  return cache;
}

static void assert_same(const kv_cache* a, const kv_cache* b) {
  float k[2][MOST], v[2][MOST];
  int32_t shape[2][3];
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    const kv_cache* both[] = {a, b};
    for (int i = 0; i < 2; ++i) {
      memset(k[i], 0, sizeof k[i]);
      memset(v[i], 0, sizeof v[i]);
      assert_ok(kv_cache_get(both[i], layer, k[i], MOST, v[i], MOST, shape[i], NULL, &error),
                error);
    }
    assert_memory_equal(shape[0], shape[1], sizeof shape[0]);
    assert_memory_equal(k[0], k[1], sizeof k[0]);
    assert_memory_equal(v[0], v[1], sizeof v[0]);
  }
}

static gen_status step(kv_cache* cache, int what, int32_t layer, int32_t n, const float* rows) {
  if (what < 5) return kv_cache_update(cache, layer, rows, rows + MOST, BATCH, n, DIM, &error);
  if (what == 5) return kv_cache_truncate(cache, n * 2, &error);
  if (what == 6) return kv_cache_tiered_demote(cache, layer, &error);
  return kv_cache_tiered_promote(cache, layer, &error);
}

static void program(const struct kind* kind, uint32_t seed) {
  struct gpu_memory gpu = {0};
  kv_cache_pool *there = NULL, *here = NULL;
  kv_cache* device = make(kind, &gpu, &there);
  kv_cache* host = make(kind, NULL, &here);
  gpu.fail_with = GEN_ERROR_DEVICE;
  drawn = seed;
  float rows[2 * MOST];
  for (int i = 0; i < 60; ++i) {
    const int what = below(kind->pool != NULL ? 6 : 8);
    const int32_t layer = below(LAYERS);
    const int32_t n = 1 + below(5);
    if (what < 5 && kv_cache_layer_seq_len(host, layer) + n > ROOM) continue;
    for (int at = 0; at < 2 * MOST; ++at) rows[at] = (float)(below(4001) - 2000) / 64.0f;
    if (below(3) == 0) {
      gpu.fail_at = gpu.calls + 1 + below(4);
      const gen_status status = step(device, what, layer, n, rows);
      const int failed = gpu.fail_at <= gpu.calls && !(poisons && what == 5 && status == GEN_OK);
      gpu.fail_at = 0;
      assert_int_equal(status, failed ? GEN_ERROR_DEVICE : GEN_OK);
      if (failed) {
        assert_same(device, host); /* as it was */
        assert_ok(step(device, what, layer, n, rows), error);
      }
    } else {
      assert_ok(step(device, what, layer, n, rows), error);
    }
    assert_ok(step(host, what, layer, n, rows), error);
    if (i % 5 == 4) assert_same(device, host);
    if (i % 20 != 19) continue;
    /* A clone goes its own way, and a state goes to the other memory. */
    kv_cache* clone = NULL;
    assert_ok(kv_cache_clone(device, &clone, &error), error);
    assert_same(clone, host);
    if (kv_cache_layer_seq_len(clone, 0) < ROOM) {
      assert_ok(kv_cache_update(clone, 0, rows, rows + MOST, BATCH, 1, DIM, &error), error);
    }
    assert_same(device, host);
    static char states[2][1 << 14];
    size_t sizes[2];
    assert_ok(kv_cache_save_buffer(device, states[0], sizeof states[0], &sizes[0], &error), error);
    assert_ok(kv_cache_save_buffer(host, states[1], sizeof states[1], &sizes[1], &error), error);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(states[0], states[1], sizes[0]);
    kv_cache_free(clone);
    assert_ok(kv_cache_reset(host, &error), error);
    assert_ok(kv_cache_reset(device, &error), error);
    assert_ok(kv_cache_load_buffer(host, states[0], sizes[0], &error), error);
    assert_ok(kv_cache_load_buffer(device, states[1], sizes[1], &error), error);
    assert_same(device, host);
  }
  kv_cache_free(device);
  kv_cache_free(host);
  kv_cache_pool_free(there);
  kv_cache_pool_free(here);
  assert_int_equal(gpu.live, 0);
  assert_int_equal(gpu.mistakes, 0);
}

static void a_device_holds_what_the_host_holds(void** state) {
  (void)state;
  const struct kind kinds[] = {
      {"fp32", NULL}, {"fp16", NULL}, {NULL, "fp32"}, {NULL, "q4"}, {NULL, "mean"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    for (uint32_t seed = 1; seed <= 4; ++seed) program(&kinds[i], seed);
  }
}

static void blocks_lie_on_the_device(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  const struct kind kind = {"fp16", NULL};
  kv_cache_pool *there = NULL, *here = NULL;
  kv_cache* device = make(&kind, &gpu, &there);
  kv_cache* host = make(&kind, NULL, &here);
  float rows[2 * MOST];
  for (int at = 0; at < 2 * MOST; ++at) rows[at] = (float)at;
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    assert_ok(step(device, 0, layer, BLOCK * 2, rows), error);
    assert_ok(step(host, 0, layer, BLOCK * 2, rows), error);
  }
  kv_cache_block *far[2], *near[2];
  size_t n = 0;
  assert_ok(kv_cache_block_table(device, far, 2, &n, &error), error);
  assert_int_equal(n, 2);
  assert_ok(kv_cache_block_table(host, near, 2, &n, &error), error);
  uint16_t found[LAYERS * BLOCK * BATCH * DIM];
  for (int i = 0; i < 2; ++i) {
    gpu_read(&gpu, found, kv_cache_block_k(far[i]), sizeof found);
    assert_memory_equal(found, kv_cache_block_k(near[i]), sizeof found);
    gpu_read(&gpu, found, kv_cache_block_v(far[i]), sizeof found);
    assert_memory_equal(found, kv_cache_block_v(near[i]), sizeof found);
  }
  kv_cache_free(device);
  kv_cache_free(host);
  kv_cache_pool_free(there);
  kv_cache_pool_free(here);
}

static void tiers_take_and_give_back(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  const struct kind kind = {NULL, "fp32"};
  kv_cache_pool* none = NULL;
  kv_cache* cache = make(&kind, &gpu, &none);
  assert_int_equal(gpu.live, 0);
  float rows[2 * MOST] = {1};
  assert_ok(step(cache, 0, 0, 2, rows), error);
  assert_int_equal(gpu.live, 1);
  for (int tier = KV_CACHE_TIER_WARM; tier <= KV_CACHE_TIER_COLD; ++tier) {
    assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
    assert_int_equal(kv_cache_tiered_tier(cache, 0), tier);
    assert_int_equal(gpu.live, 0); /* in the host's memory, then in a file */
  }
  assert_ok(step(cache, 0, 0, 1, rows), error); /* from the file to the device */
  assert_int_equal(gpu.live, 1);
  kv_cache_free(cache);
  assert_int_equal(gpu.live, 0);
}

static void bad_input(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  const gen_gpu_allocator table = gpu_table(&gpu);
  gen_gpu_allocator wrong = table;
  wrong.struct_size = 4;
  gen_gpu_allocator lacking = table;
  lacking.copy = NULL;
  kv_cache_pool* pool = NULL;
  assert_ok(kv_cache_pool_new(1, 4, 4, 1, "fp32", &pool, &error), error);
  assert_fails(kv_cache_pool_set_gpu_allocator(NULL, &table, &error), bad, "pool", error);
  assert_fails(kv_cache_pool_set_gpu_allocator(pool, NULL, &error), bad, "allocator", error);
  assert_fails(kv_cache_pool_set_gpu_allocator(pool, &wrong, &error), bad, "struct_size", error);
  assert_fails(kv_cache_pool_set_gpu_allocator(pool, &lacking, &error), bad, "lacks", error);
  assert_ok(kv_cache_pool_set_gpu_allocator(pool, &table, &error), error);
  assert_ok(kv_cache_pool_set_allocator(pool, NULL, &error), error); /* the host's again */
  kv_cache_block* block = NULL;
  assert_ok(kv_cache_pool_alloc(pool, &block, &error), error);
  assert_int_equal(gpu.calls, 0);
  assert_fails(kv_cache_pool_set_gpu_allocator(pool, &table, &error), GEN_ERROR_STATE, "blocks",
               error);
  kv_cache_pool_free(pool);
  kv_cache_tier_config* c = NULL;
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_fails(kv_cache_tier_config_set_gpu_allocator(NULL, &table, &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_gpu_allocator(c, &wrong, &error), bad, "struct_size",
               error);
  assert_fails(kv_cache_tier_config_set_gpu_allocator(c, &lacking, &error), bad, "lacks", error);
  gen_options* o = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(kv_cache_tier_config_set_cold_dir(c, "cold", &error), error);
  assert_ok(kv_cache_tier_config_set_gpu_allocator(c, &table, &error), error);
  assert_fails(gen_options_set_tiered_kv(o, c, &error), bad, "GPU allocator", error);
  assert_ok(kv_cache_tier_config_set_gpu_allocator(c, NULL, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  gen_options_free(o);
  kv_cache_tier_config_free(c);
}

/* Whichever call on the device fails while a shared block is copied and written: no block is lost, none is kept for what
 * was not written, and both caches hold what they held. */
static void a_copy_that_fails_loses_no_block(void** state) {
  (void)state;
  enum { NEW = 2 * BLOCK }; /* positions: the rest of the shared block and two more */
  float rows[2 * MOST];
  for (int i = 0; i < 2 * MOST; ++i) rows[i] = (float)i / 8.0f;
  for (int fail = 1, failed = 1; failed; ++fail) {
    struct gpu_memory gpu = {0};
    const gen_gpu_allocator table = gpu_table(&gpu);
    kv_cache_pool* pool = NULL;
    kv_cache *first = NULL, *copy = NULL, *same = NULL;
    assert_ok(kv_cache_pool_new(LAYERS, BLOCK, BATCH * DIM, 1, "fp32", &pool, &error), error);
    assert_ok(kv_cache_pool_set_gpu_allocator(pool, &table, &error), error);
    gpu.fail_with = GEN_ERROR_DEVICE;
    assert_ok(kv_cache_paged_new(pool, LAYERS, &first, &error), error);
    for (int32_t layer = 0; layer < LAYERS; ++layer) {
      assert_ok(kv_cache_update(first, layer, rows, rows + MOST, BATCH, BLOCK + 1, DIM, &error), error);
    }
    assert_ok(kv_cache_clone(first, &copy, &error), error);
    assert_ok(kv_cache_clone(first, &same, &error), error);
    const size_t available = kv_cache_pool_available(pool);
    assert_int_equal(available, kv_cache_pool_cap(pool) - 2);
    gpu.fail_at = gpu.calls + fail;
    failed = kv_cache_update(copy, 0, rows, rows + MOST, BATCH, NEW, DIM, &error) != GEN_OK;
    gpu.fail_at = 0;
    if (failed) {
      assert_same(copy, same);
      assert_true(kv_cache_pool_available(pool) >= available - 1); /* the copy may be its own by now */
    } else {
      assert_true(fail > 3); /* the copy, and rows of keys and of values */
      assert_int_equal(kv_cache_pool_available(pool), available - 3);
    }
    assert_same(first, same);
    kv_cache_free(copy);
    assert_int_equal(kv_cache_pool_available(pool), available);
    kv_cache_free(same);
    kv_cache_free(first);
    assert_int_equal(kv_cache_pool_available(pool), kv_cache_pool_cap(pool));
    assert_int_equal(gpu.mistakes, 0);
    kv_cache_pool_free(pool);
  }
}

/* Every call that takes a table refuses one whose device is below -1, or whose pinned memory has only one of its
 * functions, and what it was for is as it was. */
static void tables_are_checked(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  const gen_gpu_allocator table = gpu_table(&gpu);
  gen_gpu_allocator tables[4] = {table, table, table, table};
  tables[0].device = -2;
  tables[1].device = INT32_MIN;
  tables[2].allocate_pinned = gpu_allocate;
  tables[3].release_pinned = gpu_release;
  const char* const said[4] = {"gen_gpu_allocator has device -2, below -1",
                               "gen_gpu_allocator has device -2147483648, below -1",
                               "gen_gpu_allocator has allocate_pinned without release_pinned",
                               "gen_gpu_allocator has release_pinned without allocate_pinned"};
  kv_cache_pool* pool = NULL;
  kv_cache* tensor = NULL;
  kv_cache_tier_config* tiers = NULL;
  gen_model_options* load = NULL;
  assert_ok(kv_cache_pool_new(1, 4, 4, 1, "fp32", &pool, &error), error);
  assert_ok(kv_cache_tensor_new(NULL, 2, 8, "fp16", &tensor, &error), error);
  assert_ok(kv_cache_tier_config_new(&tiers, &error), error);
  assert_ok(gen_model_options_new(&load, &error), error);
  for (int i = 0; i < 4; ++i) {
    kv_cache* made = (kv_cache*)&error;
    assert_fails(kv_cache_gpu_new(&tables[i], 1, 1, 1, 1, &made, &error), bad, said[i], error);
    assert_null(made);
    assert_fails(kv_cache_pool_set_gpu_allocator(pool, &tables[i], &error), bad, said[i], error);
    assert_fails(kv_cache_tensor_set_gpu_allocator(tensor, &tables[i], &error), bad, said[i],
                 error);
    assert_fails(kv_cache_tier_config_set_gpu_allocator(tiers, &tables[i], &error), bad, said[i],
                 error);
    assert_fails(gen_model_options_set_gpu_allocator(load, &tables[i], &error), bad, said[i],
                 error);
    size_t bytes = 1;
    assert_fails(gen_gpu_allocator_counters(&tables[i], NULL, &bytes, NULL, &error), bad, "",
                 error);
    assert_int_equal(bytes, 0);
  }
  /* They are where they were: on the host. */
  kv_cache_block* block = NULL;
  assert_ok(kv_cache_pool_alloc(pool, &block, &error), error);
  assert_ok(kv_cache_pool_free_block(pool, block, &error), error);
  const float x[2] = {1, 2};
  assert_null(kv_cache_counter_device_ptr(tensor));
  assert_ok(kv_cache_update(tensor, 0, x, x, 1, 1, 2, &error), error);
  gen_options* o = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(kv_cache_tier_config_set_cold_dir(tiers, "cold", &error), error);
  assert_ok(gen_options_set_tiered_kv(o, tiers, &error), error);
  assert_int_equal(gpu.calls, 0);
  /* What is right is taken still. */
  gen_gpu_allocator both = table;
  both.device = -1;
  both.allocate_pinned = gpu_allocate;
  both.release_pinned = gpu_release;
  kv_cache* made = NULL;
  assert_ok(kv_cache_gpu_new(&both, 1, 1, 1, 1, &made, &error), error);
  kv_cache_free(made);
  assert_ok(gen_model_options_set_gpu_allocator(load, &both, &error), error);
  gen_options_free(o);
  gen_model_options_free(load);
  kv_cache_tier_config_free(tiers);
  kv_cache_free(tensor);
  kv_cache_pool_free(pool);
  assert_int_equal(gpu.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_holds_what_the_host_holds),
      cmocka_unit_test(blocks_lie_on_the_device),
      cmocka_unit_test(tiers_take_and_give_back),
      cmocka_unit_test(bad_input),
      cmocka_unit_test(a_copy_that_fails_loses_no_block),
      cmocka_unit_test(tables_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

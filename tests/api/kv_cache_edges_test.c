/* SPDX-License-Identifier: Apache-2.0 */
/* Caches at their edges, through C: numbers near the limits of each form, encoders that reserve,
 * permute and keep other rows than float32, wrappers in wrappers, blocks beyond what is injected,
 * and arguments that are checked in passes that store nothing. */
#include "api_test.h"

#include <float.h>
#include <math.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const gen_status range = GEN_ERROR_OUT_OF_RANGE;

/* --- encoders and wrappers */

static gen_status start(kv_cache* cache, const int32_t* positions, const int32_t* seqs, size_t n,
                        int reserve, const int32_t* items, size_t n_items) {
  return kv_cache_start_forward(cache, positions, seqs, n, reserve, items, n_items, &error);
}

static kv_cache* encoder(const char* dtype, int permuted, const char* mask) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_encoder_new(&cache, &error), error);
  assert_ok(kv_cache_set_config(cache, 1, permuted, mask, &error), error);
  assert_ok(kv_cache_init(cache, dtype, 4, 8, 8, &error), error);
  return cache;
}

/* Element e of head h of row r of an item: exact in binary16. */
static float item_element(int item, int r, int h, int e) {
  return (float)(item * 256 + r * 64 + h * 32 + e) / 4;
}
static void fill_item(float* x, int item, int rows, int heads, int dim) {
  for (int i = 0; i < rows * heads * dim; ++i) {
    x[i] = item_element(item, i / (heads * dim), i / dim % heads, i % dim);
  }
}

static void items_of_sequences_may_differ(void** state) {
  (void)state;
  float x[64];
  float k[64];
  int32_t k_shape[3];
  const int32_t here[2] = {0, 0};
  const int32_t seqs[2] = {0, 1};
  const int32_t both[2] = {0, 1};
  kv_cache* cache = encoder("fp32", 0, NULL);
  fill_item(x, 1, 2, 2, 4);
  assert_ok(start(cache, here, seqs, 1, 0, both, 1), error);
  assert_ok(kv_cache_put(cache, x, 2, 4, x, 2, 4, 2, &error), error);
  /* Another sequence may bring other heads; the same one may not. */
  assert_ok(start(cache, here, seqs + 1, 1, 0, both, 1), error);
  assert_ok(kv_cache_put(cache, x, 1, 8, x, 1, 8, 1, &error), error);
  assert_ok(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
            error);
  assert_int_equal(k_shape[0], 8);
  assert_int_equal(k_shape[1], 1);
  assert_int_equal(k_shape[2], 1);
  const int32_t later = 5;
  assert_ok(start(cache, &later, seqs + 1, 1, 0, both, 1), error);
  assert_fails(kv_cache_put(cache, x, 2, 4, x, 2, 4, 2, &error), bad, "1 of 8", error);
  /* A pass that reads both has no one shape. */
  assert_ok(start(cache, here, seqs, 2, 0, NULL, 0), error);
  assert_fails(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
               bad, "1 of 8", error);
  assert_int_equal(k_shape[2], 0);
  assert_ok(start(cache, here, seqs, 1, 0, NULL, 0), error);
  assert_ok(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
            error);
  assert_int_equal(k_shape[2], 2);
  assert_memory_equal(k, x, 16 * sizeof(float));
  kv_cache_free(cache);
}

static void encoders_reserve(void** state) {
  (void)state;
  float x[64];
  float k[64];
  int32_t k_shape[3];
  int32_t cached = 7;
  size_t before = 0;
  size_t resident = 0;
  const int32_t positions[2] = {0, 1};
  const int32_t seqs[2] = {0, 0};
  const int32_t items[2] = {0, 1};
  kv_cache* cache = encoder("fp32", 0, NULL);
  fill_item(x, 0, 4, 2, 4);
  assert_ok(kv_cache_memory_bytes(cache, &before, NULL, NULL, &error), error);
  assert_ok(start(cache, positions, seqs, 2, 1, items, 2), error);
  assert_ok(kv_cache_put(cache, x, 2, 4, x, 2, 4, 3, &error), error);
  assert_ok(kv_cache_put(cache, x, 2, 4, x, 2, 4, 1, &error), error);
  assert_ok(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
            error);
  assert_int_equal(k_shape[2], 4); /* as if both were there */
  assert_ok(kv_cache_encoder_cached(cache, 0, &cached, &error), error);
  assert_int_equal(cached, 0);
  /* Items of different heads in one reservation are no more readable than others. */
  assert_ok(start(cache, positions, seqs, 2, 1, items, 2), error);
  assert_ok(kv_cache_put(cache, x, 1, 4, x, 1, 4, 1, &error), error);
  const gen_status second = kv_cache_put(cache, x, 2, 8, x, 2, 8, 2, &error);
  assert_true(second == GEN_OK || second == bad);
  if (second == GEN_OK) {
    assert_fails(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
                 bad, "heads", error);
  }
  /* The next pass gives everything back. */
  assert_ok(start(cache, positions, seqs, 2, 0, NULL, 0), error);
  assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
  assert_int_equal(resident, before);
  kv_cache_free(cache);
}

/* Permuted values, masks of binary16, and rows of every type against the formula. */
static void encoders_hand_out_as_they_are_told(void** state) {
  (void)state;
  enum { ROWS = 3, HEADS = 2, DIM = 32, N = ROWS * HEADS * DIM };
  static float x[N], k[N], v[N];
  uint16_t mask[2 * ROWS];
  const char* const types[] = {"fp32", "fp16", "q8_0", "q4_0"};
  const float share[] = {0, 0, 1.0f / 254 + 1.0f / 2048, 1.0f / 14 + 1.0f / 1024};
  const int32_t positions[2] = {0, 5};
  const int32_t seqs[2] = {0, 0};
  const int32_t item = 1;
  fill_item(x, 1, ROWS, HEADS, DIM);
  for (int t = 0; t < 4; ++t) {
    kv_cache* cache = encoder(types[t], 1, "fp16");
    int32_t k_shape[3], v_shape[3], mask_shape[2];
    assert_ok(start(cache, positions, seqs, 2, 0, &item, 1), error);
    assert_ok(kv_cache_put(cache, x, HEADS, DIM, x, HEADS, DIM, ROWS, &error), error);
    assert_ok(kv_cache_get_masked(cache, k, N, v, N, mask, 2 * ROWS, k_shape, v_shape, mask_shape,
                                  &error),
              error);
    const int32_t want_k[3] = {DIM, HEADS, ROWS};
    const int32_t want_v[3] = {ROWS, DIM, HEADS};
    const int32_t want_mask[2] = {ROWS, 2};
    assert_memory_equal(k_shape, want_k, sizeof(want_k));
    assert_memory_equal(v_shape, want_v, sizeof(want_v));
    assert_memory_equal(mask_shape, want_mask, sizeof(want_mask));
    for (int i = 0; i < N; ++i) {
      const int row = i / (HEADS * DIM);
      const float most =
          item_element(1, row, HEADS - 1, DIM - 1); /* at least the block's largest */
      assert_true(fabsf(k[i] - x[i]) <= share[t] * most);
      assert_true(v[i % (HEADS * DIM) * ROWS + row] == k[i]); /* the same row, kept alike */
    }
    for (int r = 0; r < ROWS; ++r) {
      assert_int_equal(mask[r], 0xFC00); /* the first token comes before the item */
      assert_int_equal(mask[ROWS + r], 0);
    }
    kv_cache_free(cache);
  }
}

static void passes_that_store_nothing_check_their_arguments(void** state) {
  (void)state;
  typedef gen_status (*maker)(kv_cache**, gen_error*);
  const maker makers[2] = {kv_cache_causal_new, kv_cache_encoder_new};
  const int32_t good[2] = {0, 1};
  const int32_t zeros[2] = {0, 0};
  const int32_t negative[2] = {0, -1};
  const int32_t last[2] = {0, INT32_MAX};
  const int32_t far_away = 99;
  for (int m = 0; m < 2; ++m) {
    kv_cache* cache = NULL;
    assert_ok(makers[m](&cache, &error), error);
    assert_ok(kv_cache_init(cache, "fp32", 2, 8, 4, &error), error);
    for (int reserve = 0; reserve < 2; ++reserve) {
      assert_fails(start(cache, negative, zeros, 2, reserve, NULL, 0), bad, "position -1", error);
      assert_fails(start(cache, good, negative, 2, reserve, NULL, 0), bad, "sequence -1", error);
      assert_fails(start(cache, last, zeros, 2, reserve, NULL, 0), bad, "2147483647", error);
      assert_fails(start(cache, good, zeros, 2, reserve, &far_away, 1), range, "99", error);
      assert_fails(start(cache, good, zeros, 0, reserve, NULL, 0), bad, "0 tokens", error);
      assert_fails(start(cache, good, zeros, 5, reserve, NULL, 0), bad, "5 tokens", error);
      assert_ok(start(cache, good, zeros, 2, reserve, good, 2), error);
    }
    assert_fails(kv_cache_set_quota(cache, -5, &error), bad, "-5", error);
    assert_ok(kv_cache_set_quota(cache, 5, &error), error);
    kv_cache_free(cache);
  }
}

static kv_cache* wrap(kv_cache* a, kv_cache* b) {
  kv_cache* parts[2] = {a, b};
  kv_cache* wrapper = NULL;
  assert_ok(kv_cache_wrapper_new(parts, 2, &wrapper, &error), error);
  kv_cache_free(a);
  kv_cache_free(b);
  return wrapper;
}

static kv_cache* causal(void) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_causal_new(&cache, &error), error);
  return cache;
}

static void wrappers_are_configured_once_and_before(void** state) {
  (void)state;
  const gen_status late = GEN_ERROR_STATE;
  kv_cache* plain = NULL;
  assert_ok(kv_cache_encoder_new(&plain, &error), error);
  kv_cache* cache = wrap(plain, causal());
  assert_fails(kv_cache_set_quota(cache, -5, &error), bad, "-5", error);
  assert_fails(kv_cache_set_config(cache, -1, 0, NULL, &error), bad, "-1", error);
  assert_ok(kv_cache_init(cache, "fp32", 1, 8, 4, &error), error);
  assert_fails(kv_cache_set_config(cache, 1, 0, NULL, &error), late, "wrapper", error);
  kv_cache_free(cache);
  cache = wrap(causal(), causal());
  assert_ok(kv_cache_close(cache, &error), error);
  assert_fails(kv_cache_set_config(cache, 1, 0, NULL, &error), late, "wrapper", error);
  kv_cache_free(cache);
  /* Caches that were told themselves do not make a wrapper one that was not begun. */
  kv_cache* told[2] = {causal(), causal()};
  for (int i = 0; i < 2; ++i) assert_ok(kv_cache_set_config(told[i], 2, 0, NULL, &error), error);
  cache = wrap(told[0], told[1]);
  assert_ok(kv_cache_init(cache, "fp32", 1, 8, 4, &error), error);
  assert_fails(kv_cache_set_config(cache, 1, 0, NULL, &error), late, "wrapper", error);
  kv_cache_free(cache);
}

/* Padding is for the causal cache; the encoder beside it has as many rows as came. Then the whole
 * once more as a part of another wrapper, whose types reach its first cache. */
static void wrappers_pad_and_nest(void** state) {
  (void)state;
  float x[24];
  float k[64];
  int32_t k_shape[3];
  fill_item(x, 0, 3, 2, 4);
  const int32_t positions[3] = {0, 1, 2};
  const int32_t zeros[3] = {0, 0, 0};
  const int32_t item = 1;
  for (int nested = 0; nested < 2; ++nested) {
    kv_cache* images = NULL;
    assert_ok(kv_cache_encoder_new(&images, &error), error);
    kv_cache* cache = nested ? wrap(wrap(causal(), causal()), images) : wrap(causal(), images);
    assert_ok(kv_cache_set_config(cache, 4, 0, NULL, &error), error);
    assert_ok(kv_cache_init(cache, "fp32", 1, 8, 4, &error), error);
    assert_ok(start(cache, positions, zeros, 3, 0, &item, 1), error);
    assert_ok(kv_cache_put(cache, x, 2, 4, x, 2, 4, 3, &error), error);
    assert_ok(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
              error);
    assert_int_equal(k_shape[2], 4);
    assert_memory_equal(k, x, sizeof(x));
    assert_ok(kv_cache_set_layer_type(cache, 1, &error), error);
    assert_ok(kv_cache_put(cache, x, 2, 4, x, 2, 4, 3, &error), error);
    assert_ok(kv_cache_get_masked(cache, k, 64, NULL, 0, NULL, 0, k_shape, NULL, NULL, &error),
              error);
    assert_int_equal(k_shape[2], 3);
    assert_memory_equal(k, x, sizeof(x));
    assert_fails(kv_cache_set_layer_type(cache, 2, &error), range, "2", error);
    /* All of them go back together. */
    int32_t can = 0;
    int32_t cached = 0;
    assert_ok(kv_cache_encoder_cached(cache, 0, &cached, &error), error);
    assert_int_equal(cached, 1);
    assert_ok(kv_cache_remove(cache, 0, 1, KV_CACHE_TO_THE_END, &error), error);
    assert_ok(kv_cache_encoder_cached(cache, 0, &cached, &error), error);
    assert_int_equal(cached, 0);
    assert_ok(kv_cache_can_resume(cache, 0, 1, &can, &error), error);
    assert_int_equal(can, 1);
    kv_cache_free(cache);
  }
}

/* --- tensors */

/* More blocks than the positions need: they are the cache's, and what is appended goes there. */
static void spare_blocks_are_used(void** state) {
  (void)state;
  kv_cache_pool* pool = NULL;
  kv_cache* cache = NULL;
  kv_cache_block* blocks[4];
  kv_cache_block* table[4];
  size_t n = 0;
  float x[8];
  float k[8];
  assert_ok(kv_cache_pool_new(1, 2, 1, 1, "fp32", &pool, &error), error);
  for (int i = 0; i < 4; ++i) assert_ok(kv_cache_pool_alloc(pool, &blocks[i], &error), error);
  const size_t free_blocks = kv_cache_pool_available(pool);
  for (int i = 0; i < 8; ++i) x[i] = (float)i;
  memcpy(kv_cache_block_k(blocks[0]), x, 2 * sizeof(float));
  memcpy(kv_cache_block_v(blocks[0]), x, 2 * sizeof(float));
  memcpy(kv_cache_block_k(blocks[1]), x + 2, sizeof(float));
  memcpy(kv_cache_block_v(blocks[1]), x + 2, sizeof(float));
  assert_ok(kv_cache_paged_new(pool, 1, &cache, &error), error);
  assert_ok(kv_cache_inject_blocks(cache, blocks, 4, 3, 1, 1, &error), error);
  assert_ok(kv_cache_update(cache, 0, x + 3, x + 3, 1, 5, 1, &error), error);
  assert_int_equal(kv_cache_pool_available(pool), free_blocks);
  assert_ok(kv_cache_get(cache, 0, k, 8, NULL, 0, NULL, NULL, &error), error);
  assert_memory_equal(k, x, sizeof(x));
  assert_ok(kv_cache_block_table(cache, table, 4, &n, &error), error);
  assert_int_equal(n, 4);
  assert_memory_equal(table, blocks, sizeof(table));
  for (int i = 0; i < 4; ++i) assert_int_equal(kv_cache_block_used(blocks[i]), 2);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 1, 1, &error), error); /* and on into a new one */
  assert_int_equal(kv_cache_pool_available(pool), free_blocks - 1);
  kv_cache_free(cache);
  assert_int_equal(kv_cache_pool_available(pool), free_blocks + 4);
  kv_cache_pool_free(pool);
}

typedef gen_status (*maker)(int32_t, int32_t, kv_cache**, gen_error*);

/* What a cache of 128 elements in one row gives back. */
static void there_and_back(maker make, const float* x, float* got) {
  kv_cache* cache = NULL;
  assert_ok(make(1, 2, &cache, &error), error);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 1, 128, &error), error);
  assert_ok(kv_cache_get(cache, 0, got, 128, NULL, 0, NULL, NULL, &error), error);
  kv_cache_free(cache);
}

static void magnitudes_near_the_limits(void** state) {
  (void)state;
  float x[128];
  float got[128];
  /* binary16: to nearest even, above 65519 infinity. */
  const float halves[][2] = {{65504, 65504},      {65519, 65504},         {65520, INFINITY},
                             {FLT_MAX, INFINITY}, {-FLT_MAX, -INFINITY},  {0x1p-24f, 0x1p-24f},
                             {0x1p-25f, 0},       {0x1.8p-25f, 0x1p-24f}, {FLT_MIN, 0}};
  for (int i = 0; i < 128; ++i) x[i] = halves[i % 9][0];
  there_and_back(kv_cache_fp16_new, x, got);
  for (int i = 0; i < 128; ++i) assert_true(got[i] == halves[i % 9][1]);

  const float largest[] = {FLT_MAX, FLT_MAX / 3, 1e30f, 1.0f, 1e-30f, FLT_MIN, 0x1p-140f};
  for (size_t m = 0; m < sizeof(largest) / sizeof(largest[0]); ++m) {
    for (int i = 0; i < 128; ++i) {
      x[i] =
          (float)(largest[m] * (double)((i * 37) % 129 - 64) / 64); /* the largest is among them */
    }
    /* Scales below the normal numbers have fewer bits: one step more is allowed there. */
    const double coarse = largest[m] < 1e-30f ? 0x1p-149 * 448 : 0;
    there_and_back(kv_cache_fp8_new, x, got);
    for (int i = 0; i < 128; ++i) {
      const double bound = fmax(fabs((double)x[i]) / 16, (double)largest[m] / 448 / 1024);
      assert_true(isfinite(got[i]));
      assert_true(fabs((double)got[i] - (double)x[i]) <= bound * 1.000001 + coarse);
    }
    there_and_back(kv_cache_q4_new, x, got);
    for (int i = 0; i < 128; ++i) {
      assert_true(isfinite(got[i]));
      assert_true(fabs((double)got[i] - (double)x[i]) <=
                  (double)largest[m] / 14 * 1.000001 + coarse);
    }
  }
  /* Centroids are binary16: what is larger is kept as 65504. */
  for (int i = 0; i < 128; ++i) x[i] = (i % 2 == 0 ? 1.0f : -1.0f) * (i < 64 ? FLT_MAX : 65504.0f);
  there_and_back(kv_cache_q3_new, x, got);
  for (int i = 0; i < 128; ++i) assert_true(got[i] == (i % 2 == 0 ? 65504.0f : -65504.0f));
}

/* A warm layer of three bits holds what a q3 cache of the same rows gives, group by group. */
static void warm_forms_round_as_the_caches_do(void** state) {
  (void)state;
  enum { SEQ = 5, DIM = 64, N = SEQ * DIM };
  static float x[N], want[N], got[N];
  const char* const forms[] = {"fp16", "fp8", "q4", "q3"};
  const maker makers[] = {kv_cache_fp16_new, kv_cache_fp8_new, kv_cache_q4_new, kv_cache_q3_new};
  for (int i = 0; i < N; ++i) x[i] = sinf((float)i * 1.7f) * (float)(1 + i % 7);
  for (int f = 0; f < 4; ++f) {
    kv_cache_tier_config* c = NULL;
    kv_cache* tiered = NULL;
    kv_cache* plain = NULL;
    assert_ok(kv_cache_tier_config_new(&c, &error), error);
    assert_ok(kv_cache_tier_config_set_num_layers(c, 1, &error), error);
    assert_ok(kv_cache_tier_config_set_max_seq_len(c, 8, &error), error);
    assert_ok(kv_cache_tier_config_set_warm_form(c, forms[f], &error), error);
    assert_ok(kv_cache_tiered_new(c, &tiered, &error), error);
    kv_cache_tier_config_free(c);
    assert_ok(makers[f](1, 8, &plain, &error), error);
    assert_ok(kv_cache_update(tiered, 0, x, x, 1, SEQ, DIM, &error), error);
    assert_ok(kv_cache_update(plain, 0, x, x, 1, SEQ, DIM, &error), error);
    assert_ok(kv_cache_get(plain, 0, want, N, NULL, 0, NULL, NULL, &error), error);
    for (int tier = 0; tier < 2; ++tier) { /* warm, then cold */
      assert_ok(kv_cache_tiered_demote(tiered, 0, &error), error);
      assert_ok(kv_cache_get(tiered, 0, got, N, NULL, 0, NULL, NULL, &error), error);
      assert_memory_equal(got, want, sizeof(want));
    }
    kv_cache_free(tiered);
    kv_cache_free(plain);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_of_sequences_may_differ),
      cmocka_unit_test(encoders_reserve),
      cmocka_unit_test(encoders_hand_out_as_they_are_told),
      cmocka_unit_test(passes_that_store_nothing_check_their_arguments),
      cmocka_unit_test(wrappers_are_configured_once_and_before),
      cmocka_unit_test(wrappers_pad_and_nest),
      cmocka_unit_test(spare_blocks_are_used),
      cmocka_unit_test(magnitudes_near_the_limits),
      cmocka_unit_test(warm_forms_round_as_the_caches_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

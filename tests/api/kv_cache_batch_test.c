/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_batch.h: every function's good case, each documented error, and that a failed call
 * changes nothing. What the caches compute is proven in tests/cache. */
#include <math.h>

#include "api_test.h"
#include "counting_allocator.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const gen_status state = GEN_ERROR_STATE;
static const gen_status range = GEN_ERROR_OUT_OF_RANGE;

static const int32_t kPositions[4] = {0, 1, 2, 3};
static const int32_t kZeros[4] = {0, 0, 0, 0};

static kv_cache* make_causal(int32_t sequences, int32_t capacity, int32_t batch) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_causal_new(&cache, &error), error);
  assert_ok(kv_cache_init(cache, "fp32", sequences, capacity, batch, &error), error);
  return cache;
}

static gen_status start(kv_cache* cache, const int32_t* seqs, const int32_t* positions, size_t n) {
  return kv_cache_start_forward(cache, positions, seqs, n, 0, NULL, 0, &error);
}

/* One head of one element; values are keys times ten. */
static gen_status put(kv_cache* cache, const float* k, int32_t n) {
  float v[16];
  for (int32_t i = 0; i < n; ++i) v[i] = 10 * k[i];
  return kv_cache_put(cache, k, 1, 1, v, 1, 1, n, &error);
}

static void assert_keys(kv_cache* cache, const float* want, int32_t n) {
  float k[16];
  int32_t shape[3] = {0, 0, 0};
  assert_ok(kv_cache_get_masked(cache, k, 16, NULL, 0, NULL, 0, shape, NULL, NULL, &error), error);
  assert_int_equal(shape[2], n);
  for (int32_t i = 0; i < n; ++i) assert_true(k[i] == want[i]);
}

static void new_checks_its_arguments(void** test) {
  (void)test;
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(kv_cache_causal_new(NULL, &error), bad, "out", error);
  assert_fails(kv_cache_swa_new(0, &cache, &error), bad, "window of 0", error);
  assert_null(cache);
  assert_fails(kv_cache_swa_new(2, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_swa_mem_new(4, 3, &cache, &error), bad, "memory of 3", error);
  assert_fails(kv_cache_swa_mem_new(4, 5, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_chunked_new(0, &cache, &error), bad, "chunk of 0", error);
  assert_fails(kv_cache_chunked_new(1, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_encoder_new(NULL, &error), bad, "out", error);
  static const char* const kinds[] = {"causal", "swa", "swa_mem", "chunked", "encoder"};
  for (int i = 0; i < 5; ++i) {
    assert_ok(i == 0   ? kv_cache_causal_new(&cache, &error)
              : i == 1 ? kv_cache_swa_new(3, &cache, &error)
              : i == 2 ? kv_cache_swa_mem_new(3, 4, &cache, &error)
              : i == 3 ? kv_cache_chunked_new(3, &cache, &error)
                       : kv_cache_encoder_new(&cache, &error),
              error);
    assert_string_equal(kv_cache_kind(cache), kinds[i]);
    assert_int_equal(kv_cache_capabilities(cache), 0);
    assert_int_equal(kv_cache_seq_len(cache), 0);
    kv_cache_free(cache);
  }
}

static void init_is_called_once(void** test) {
  (void)test;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_causal_new(&cache, &error), error);
  assert_fails(kv_cache_set_config(NULL, 1, 0, NULL, &error), bad, "cache", error);
  assert_fails(kv_cache_set_config(cache, -1, 0, NULL, &error), bad, "padding of -1", error);
  assert_fails(kv_cache_set_config(cache, 1, 0, "q4_0", &error), bad, "known are fp32, fp16",
               error);
  assert_fails(kv_cache_init(NULL, NULL, 1, 1, 1, &error), bad, "cache", error);
  assert_fails(kv_cache_init(cache, "q6_K", 1, 1, 1, &error), bad, "q6_K", error);
  assert_fails(kv_cache_init(cache, NULL, 0, 4, 4, &error), bad, "0 sequences", error);
  assert_fails(kv_cache_init(cache, NULL, 1, 0, 4, &error), bad, "0 entries", error);
  assert_fails(kv_cache_init(cache, NULL, 1, 4, 0, &error), bad, "batches of 0", error);
  assert_fails(kv_cache_init(cache, NULL, 65536, 65536, 1, &error), bad, "too many cells", error);
  assert_ok(kv_cache_set_config(cache, 4, 1, "fp16", &error), error);
  assert_fails(kv_cache_set_config(cache, 4, 1, "fp16", &error), state, "already", error);
  assert_fails(kv_cache_set_layer(cache, 0, &error), state, "not initialised", error);
  assert_fails(start(cache, kZeros, kPositions, 1), state, "not initialised", error);
  assert_int_equal(kv_cache_is_lossy(cache), 0);
  assert_ok(kv_cache_init(cache, NULL, 1, 8, 4, &error), error);
  assert_int_equal(kv_cache_is_lossy(cache), 1);
  assert_fails(kv_cache_init(cache, NULL, 1, 8, 4, &error), state, "before", error);
  assert_fails(kv_cache_set_allocator(cache, NULL, &error), state, "initialised", error);
  kv_cache_free(cache);
  static const char* const dtypes[] = {"fp16", "fp32", "q8_0", "q4_0"};
  for (int i = 0; i < 4; ++i) {
    assert_ok(kv_cache_swa_new(2, &cache, &error), error);
    assert_ok(kv_cache_init(cache, dtypes[i], 2, 8, 4, &error), error);
    assert_fails(kv_cache_set_config(cache, 1, 0, NULL, &error), state, "already", error);
    assert_int_equal(kv_cache_is_lossy(cache), i != 1);
    kv_cache_free(cache);
  }
}

static void a_pass_is_written_and_read(void** test) {
  (void)test;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_causal_new(&cache, &error), error);
  assert_ok(kv_cache_set_config(cache, 4, 1, NULL, &error), error);
  assert_ok(kv_cache_init(cache, "fp32", 2, 8, 4, &error), error);
  float x[12];
  for (int i = 0; i < 12; ++i) x[i] = (float)i;
  assert_fails(kv_cache_put(cache, x, 2, 3, x, 2, 2, 2, &error), state, "no pass", error);
  assert_fails(kv_cache_get_masked(cache, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, &error),
               state, "no pass", error);
  assert_fails(kv_cache_set_causal(cache, NULL, 0, &error), state, "no pass", error);
  assert_fails(start(NULL, kZeros, kPositions, 2), bad, "cache", error);
  assert_fails(start(cache, NULL, kPositions, 2), bad, "seqs", error);
  assert_fails(start(cache, kZeros, NULL, 2), bad, "positions", error);
  assert_fails(start(cache, kZeros, kPositions, 0), bad, "0 tokens", error);
  assert_fails(start(cache, kZeros, kPositions, 5), bad, "5 tokens", error);
  assert_fails(start(cache, kZeros, kPositions, SIZE_MAX), bad, "outside [1, 4]", error);
  assert_fails(kv_cache_start_forward(cache, kPositions, kZeros, SIZE_MAX, 1, NULL, 0, &error), bad,
               "outside [1, 4]", error);
  assert_fails(kv_cache_start_forward(cache, kPositions, kZeros, 2, 0, NULL, 1, &error), bad,
               "multimodal", error);
  assert_ok(kv_cache_set_layer(cache, 2, &error), error);
  assert_fails(kv_cache_set_layer(cache, -1, &error), range, "-1", error);
  assert_fails(kv_cache_set_layer(cache, 65536, &error), range, "65536", error);
  assert_fails(kv_cache_set_layer(NULL, 0, &error), bad, "cache", error);
  assert_fails(kv_cache_set_layer_type(cache, 0, &error), GEN_ERROR_UNSUPPORTED, "layer types",
               error);
  assert_ok(start(cache, kZeros, kPositions, 2), error);
  assert_fails(kv_cache_get_masked(cache, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, &error),
               state, "nothing was put into layer 2", error);
  assert_fails(kv_cache_put(cache, NULL, 2, 3, x, 2, 2, 2, &error), bad, "NULL", error);
  assert_fails(kv_cache_put(cache, x, 2, 3, NULL, 2, 2, 2, &error), bad, "NULL", error);
  assert_fails(kv_cache_put(cache, x, 0, 3, x, 2, 2, 2, &error), bad, "0 heads", error);
  assert_fails(kv_cache_put(cache, x, 2, 3, x, 2, 2, 1, &error), bad, "1 tokens in a pass of 2",
               error);
  assert_fails(kv_cache_put(cache, x, INT32_MAX, INT32_MAX, x, 2, 2, 2, &error),
               GEN_ERROR_OUT_OF_MEMORY, "overflow", error);
  assert_ok(kv_cache_put(cache, x, 2, 3, x, 2, 2, 2, &error), error);
  assert_fails(kv_cache_put(cache, x, 3, 2, x, 2, 2, 2, &error), bad, "layer of 2 heads of 3",
               error);

  float k[24];
  float v[16];
  float mask[8];
  int32_t ks[3], vs[3], ms[2];
  for (int i = 0; i < 24; ++i) k[i] = 77;
  assert_fails(kv_cache_get_masked(cache, k, 23, v, 16, mask, 8, ks, vs, ms, &error), range,
               "24 keys do not fit a buffer of 23", error);
  assert_true(ks[0] == 3 && ks[1] == 2 && ks[2] == 4 && k[0] == 77);
  assert_fails(kv_cache_get_masked(cache, k, 24, v, 15, mask, 8, ks, vs, ms, &error), range,
               "16 values", error);
  assert_fails(kv_cache_get_masked(cache, k, 24, v, 16, mask, 7, ks, vs, ms, &error), range, "mask",
               error);
  assert_true(k[0] == 77);
  assert_ok(kv_cache_get_masked(cache, k, 24, v, 16, mask, 8, ks, vs, ms, &error), error);
  for (int i = 0; i < 12; ++i) assert_true(k[i] == (float)i);
  assert_true(vs[0] == 4 && vs[1] == 2 && vs[2] == 2 && ms[0] == 4 && ms[1] == 2);
  for (int token = 0; token < 2; ++token) {
    for (int e = 0; e < 4; ++e) assert_true(v[e * 4 + token] == (float)(token * 4 + e));
    for (int cell = 0; cell < 4; ++cell) {
      assert_true(mask[token * 4 + cell] == (cell <= token ? 0.0f : -INFINITY));
    }
  }
  const int32_t except[1] = {0};
  const int32_t wrong[1] = {2};
  assert_fails(kv_cache_set_causal(NULL, except, 1, &error), bad, "cache", error);
  assert_fails(kv_cache_set_causal(cache, NULL, 1, &error), bad, "except", error);
  assert_fails(kv_cache_set_causal(cache, wrong, 1, &error), range, "token 2", error);
  assert_ok(kv_cache_set_causal(cache, except, 1, &error), error);
  assert_ok(kv_cache_get_masked(cache, NULL, 0, NULL, 0, mask, 8, NULL, NULL, NULL, &error), error);
  assert_true(mask[1] == 0.0f && mask[2] == -INFINITY);
  assert_fails(kv_cache_get_masked(NULL, k, 24, v, 16, mask, 8, ks, vs, ms, &error), bad, "cache",
               error);
  assert_true(ks[0] == 0 && vs[2] == 0 && ms[1] == 0);
  kv_cache_free(cache);
}

static void reserving_takes_memory_only(void** test) {
  (void)test;
  struct counting counts = {0};
  gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
  kv_cache* cache = NULL;
  assert_ok(kv_cache_swa_new(2, &cache, &error), error);
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  assert_ok(kv_cache_init(cache, "fp32", 1, 100, 4, &error), error);
  assert_ok(kv_cache_start_forward(cache, kPositions, kZeros, 4, 1, NULL, 0, &error), error);
  const float x[4] = {1, 2, 3, 4};
  counts.refuse = 1;
  assert_fails(put(cache, x, 4), GEN_ERROR_OUT_OF_MEMORY, "", error);
  counts.refuse = 0;
  assert_ok(put(cache, x, 4), error);
  assert_int_equal(counts.live, 2 * 6 * 4); /* window + batch cells of keys and values */
  size_t resident = 0, payload = 0, metadata = 0;
  assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, &metadata, &error), error);
  assert_int_equal(resident, counts.live);
  assert_int_equal(payload, 0);
  assert_true(metadata > 0);
  int32_t shape[3], can = 7;
  assert_ok(kv_cache_get_masked(cache, NULL, 0, NULL, 0, NULL, 0, shape, NULL, NULL, &error),
            error);
  assert_int_equal(shape[2], 6);
  assert_ok(kv_cache_can_resume(cache, 0, 0, &can, &error), error);
  assert_int_equal(can, 0);
  assert_ok(kv_cache_close(cache, &error), error);
  assert_int_equal(counts.live, 0);
  kv_cache_free(cache);
}

static gen_status add_offsets(void* user, int32_t layer, float* keys, int32_t k_dim,
                              int32_t kv_heads, int32_t n, const int32_t* offsets) {
  int* calls = user;
  assert_true(layer == 0 && k_dim == 1 && kv_heads == 1);
  if (++*calls == 2) return GEN_ERROR_DEVICE;
  if (*calls == 3) return 5;
  for (int32_t i = 0; i < n; ++i) keys[i] += (float)offsets[i];
  return GEN_OK;
}

/* What another sequence has as well must be copied before it moves. */
static void shared_cells_need_room_to_move(void** test) {
  (void)test;
  kv_cache* cache = make_causal(2, 2, 4);
  int calls = 9;
  const float x[4] = {1, 2, 3, 4};
  assert_ok(kv_cache_set_shift(cache, add_offsets, &calls, &error), error);
  assert_ok(start(cache, kZeros, kPositions, 4), error);
  assert_ok(put(cache, x, 4), error);
  assert_ok(kv_cache_copy_prefix(cache, 0, 1, 4, &error), error);
  assert_fails(kv_cache_remove(cache, 0, 0, 1, &error), GEN_ERROR_CACHE_FULL,
               "are shared and need copies, 0 of 4 cells are free", error);
  assert_ok(kv_cache_remove(cache, 1, 0, KV_CACHE_TO_THE_END, &error), error);
  assert_ok(kv_cache_remove(cache, 0, 0, 1, &error), error);
  kv_cache_free(cache);
}

static void sequences_are_cut_shifted_and_copied(void** test) {
  (void)test;
  kv_cache* cache = make_causal(2, 4, 4);
  int calls = 0;
  const float x[4] = {1, 2, 3, 4};
  assert_ok(start(cache, kZeros, kPositions, 4), error);
  assert_ok(put(cache, x, 4), error);
  assert_fails(kv_cache_remove(NULL, 0, 0, 1, &error), bad, "cache", error);
  assert_fails(kv_cache_set_layer_type(NULL, 0, &error), bad, "cache", error);
  assert_fails(kv_cache_remove(cache, 0, -1, 1, &error), bad, "[-1, 1)", error);
  assert_fails(kv_cache_remove(cache, 0, 2, 1, &error), bad, "[2, 1)", error);
  assert_fails(kv_cache_remove(cache, 0, 0, 1, &error), GEN_ERROR_UNSUPPORTED, "shifted", error);
  assert_ok(kv_cache_remove(cache, 0, 3, 4, &error), error); /* nothing behind it */
  assert_ok(kv_cache_remove(cache, 9, 0, 1, &error), error); /* nothing at all */
  assert_fails(kv_cache_set_shift(NULL, add_offsets, &calls, &error), bad, "cache", error);
  assert_fails(kv_cache_set_shift(cache, NULL, &calls, &error), bad, "shift is NULL", error);
  assert_ok(kv_cache_set_shift(cache, add_offsets, &calls, &error), error);
  assert_ok(kv_cache_remove(cache, 0, 0, 1, &error), error);
  assert_fails(kv_cache_get_masked(cache, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, &error),
               state, "no pass", error);
  assert_int_equal(calls, 0);
  const int32_t two[1] = {2};
  const float y[1] = {9};
  assert_ok(start(cache, kZeros, two, 1), error);
  assert_ok(put(cache, y, 1), error);
  const float want[3] = {9, 1, 2};
  assert_keys(cache, want, 3);
  float k[3];
  assert_fails(kv_cache_get_masked(cache, k, 3, NULL, 0, NULL, 0, NULL, NULL, NULL, &error),
               GEN_ERROR_DEVICE, "shift function", error);
  assert_fails(kv_cache_get_masked(cache, k, 3, NULL, 0, NULL, 0, NULL, NULL, NULL, &error),
               GEN_ERROR_MODEL, "returned 5", error);
  assert_keys(cache, want, 3);

  assert_fails(kv_cache_copy_prefix(NULL, 0, 1, 2, &error), bad, "cache", error);
  assert_fails(kv_cache_copy_prefix(cache, -1, 1, 2, &error), bad, "-1", error);
  assert_fails(kv_cache_copy_prefix(cache, 0, 1, -2, &error), bad, "-2", error);
  assert_ok(kv_cache_copy_prefix(cache, 0, 1, 2, &error), error);
  assert_fails(kv_cache_copy_prefix(cache, 0, 2, 2, &error), GEN_ERROR_CACHE_FULL, "sequence 2",
               error);
  const int32_t ones[1] = {1};
  assert_ok(start(cache, ones, two, 1), error);
  assert_ok(put(cache, y, 1), error);
  const float copied[3] = {1, 2, 9};
  assert_keys(cache, copied, 3);

  int32_t can = 7;
  assert_fails(kv_cache_can_resume(NULL, 0, 0, &can, &error), bad, "cache", error);
  assert_int_equal(can, 0);
  assert_fails(kv_cache_can_resume(cache, 0, 0, NULL, &error), bad, "can is NULL", error);
  assert_ok(kv_cache_can_resume(cache, 5, 3, &can, &error), error);
  assert_int_equal(can, 1);

  int32_t moved = 7;
  assert_ok(kv_cache_remove(cache, 0, 0, KV_CACHE_TO_THE_END, &error), error);
  assert_fails(kv_cache_compact(NULL, 1, &moved, &error), bad, "cache", error);
  assert_int_equal(moved, 0);
  assert_fails(kv_cache_compact(cache, -1, &moved, &error), bad, "-1", error);
  assert_ok(kv_cache_compact(cache, 100, &moved, &error), error);
  assert_int_equal(moved, 1);
  assert_ok(kv_cache_compact(cache, 100, NULL, &error), error);
  kv_cache_free(cache);
}

static void full_caches_stay_as_they_were(void** test) {
  (void)test;
  kv_cache* cache = make_causal(1, 4, 4);
  const float x[4] = {1, 2, 3, 4};
  assert_ok(start(cache, kZeros, kPositions, 4), error);
  assert_ok(put(cache, x, 4), error);
  const int32_t next[1] = {4};
  assert_fails(start(cache, kZeros, next, 1), GEN_ERROR_CACHE_FULL,
               "batch of 1 in 4 cells, 0 are free", error);
  assert_keys(cache, x, 4);
  assert_ok(kv_cache_remove(cache, 0, 2, KV_CACHE_TO_THE_END, &error), error);
  assert_fails(kv_cache_set_quota(NULL, 2, &error), bad, "cache", error);
  assert_fails(kv_cache_set_quota(cache, -2, &error), bad, "-2", error);
  assert_ok(kv_cache_set_quota(cache, 2, &error), error);
  assert_fails(start(cache, kZeros, kPositions + 2, 1), GEN_ERROR_CACHE_FULL, "quota of 2", error);
  assert_ok(kv_cache_set_quota(cache, 0, &error), error);
  assert_ok(start(cache, kZeros, kPositions + 2, 1), error);
  kv_cache_free(cache);
}

static void quantised_rows_must_be_finite(void** test) {
  (void)test;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_causal_new(&cache, &error), error);
  assert_ok(kv_cache_init(cache, "q8_0", 1, 4, 4, &error), error);
  assert_ok(start(cache, kZeros, kPositions, 2), error);
  const float x[2] = {1, NAN};
  assert_fails(kv_cache_put(cache, x, 1, 1, x, 1, 1, 2, &error), bad, "element 1 of the keys",
               error);
  kv_cache_free(cache);
}

static void encoders_keep_items(void** test) {
  (void)test;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_encoder_new(&cache, &error), error);
  assert_fails(kv_cache_set_config(cache, 2, 0, NULL, &error), GEN_ERROR_UNSUPPORTED,
               "padding of 2", error);
  assert_ok(kv_cache_set_config(cache, 0, 0, NULL, &error), error);
  assert_ok(kv_cache_init(cache, "fp32", 2, 1, 4, &error), error);
  int32_t cached = 7;
  assert_fails(kv_cache_encoder_cached(NULL, 0, &cached, &error), bad, "cache", error);
  assert_fails(kv_cache_encoder_cached(cache, 0, NULL, &error), bad, "cached is NULL", error);
  assert_ok(kv_cache_encoder_cached(cache, 0, &cached, &error), error);
  assert_int_equal(cached, 0);
  const int32_t image[1] = {1};
  const int32_t wrong[1] = {4};
  assert_fails(kv_cache_start_forward(cache, kPositions, kZeros, 4, 0, wrong, 1, &error), range,
               "token 4", error);
  assert_ok(kv_cache_start_forward(cache, kPositions, kZeros, 4, 0, image, 1, &error), error);
  int32_t shape[3] = {1, 1, 1}, mask_shape[2];
  assert_ok(kv_cache_get_masked(cache, NULL, 0, NULL, 0, NULL, 0, shape, NULL, NULL, &error),
            error);
  assert_int_equal(shape[2], 0);
  const float x[6] = {1, 2, 3, 4, 5, 6};
  assert_ok(kv_cache_put(cache, x, 1, 2, x, 2, 1, 3, &error), error);
  assert_fails(kv_cache_put(cache, x, 1, 2, x, 2, 1, 3, &error), state, "1 multimodal tokens",
               error);
  float k[6], mask[12];
  assert_ok(kv_cache_get_masked(cache, k, 6, NULL, 0, mask, 12, shape, NULL, mask_shape, &error),
            error);
  assert_memory_equal(k, x, sizeof(x));
  assert_true(mask_shape[0] == 3 && mask_shape[1] == 4); /* token 0 comes before the image */
  assert_true(mask[0] == -INFINITY && mask[3] == 0.0f && mask[11] == 0.0f);
  assert_ok(kv_cache_encoder_cached(cache, 0, &cached, &error), error);
  assert_int_equal(cached, 1);
  const int32_t five[1] = {5};
  assert_ok(start(cache, kZeros, five, 1), error);
  assert_ok(kv_cache_get_masked(cache, k, 6, NULL, 0, mask, 12, shape, NULL, mask_shape, &error),
            error);
  assert_true(shape[2] == 3 && mask_shape[0] == 0); /* nothing is hidden */
  assert_ok(kv_cache_remove(cache, 0, 1, 2, &error), error);
  assert_ok(kv_cache_encoder_cached(cache, 0, &cached, &error), error);
  assert_int_equal(cached, 0);
  kv_cache_free(cache);
  cache = make_causal(1, 1, 1);
  assert_fails(kv_cache_encoder_cached(cache, 0, &cached, &error), GEN_ERROR_UNSUPPORTED, "causal",
               error);
  kv_cache_free(cache);
}

static void wrappers_drive_their_caches(void** test) {
  (void)test;
  kv_cache* parts[2] = {NULL, NULL};
  kv_cache* wrapper = (kv_cache*)&error;
  assert_ok(kv_cache_swa_new(1, &parts[0], &error), error);
  assert_fails(kv_cache_wrapper_new(parts, 0, &wrapper, &error), bad, "0 caches", error);
  assert_null(wrapper);
  assert_fails(kv_cache_wrapper_new(NULL, 1, &wrapper, &error), bad, "caches", error);
  assert_fails(kv_cache_wrapper_new(parts, 1, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_wrapper_new(parts, 2, &wrapper, &error), bad, "NULL", error);
  parts[1] = parts[0];
  assert_fails(kv_cache_wrapper_new(parts, 2, &wrapper, &error), bad, "twice", error);
  parts[1] = make_causal(1, 1, 1);
  assert_fails(kv_cache_wrapper_new(parts, 2, &wrapper, &error), state, "cache 1", error);
  kv_cache_free(parts[1]);
  assert_ok(kv_cache_new(1, 4, &parts[1], &error), error);
  assert_fails(kv_cache_wrapper_new(parts, 2, &wrapper, &error), state, "batch family", error);
  kv_cache_free(parts[1]);
  assert_ok(kv_cache_causal_new(&parts[1], &error), error);
  assert_ok(kv_cache_wrapper_new(parts, 2, &wrapper, &error), error);
  assert_string_equal(kv_cache_kind(wrapper), "wrapper");
  assert_fails(kv_cache_init(parts[0], NULL, 1, 1, 1, &error), state, "part of a wrapper", error);
  assert_fails(kv_cache_close(parts[0], &error), state, "part of a wrapper", error);
  assert_fails(kv_cache_set_allocator(parts[0], NULL, &error), state, "part of a wrapper", error);
  kv_cache* again = NULL;
  assert_fails(kv_cache_wrapper_new(parts, 1, &again, &error), state, "part of a wrapper", error);
  kv_cache_free(parts[0]);
  kv_cache_free(parts[1]);
  assert_ok(kv_cache_init(wrapper, "fp32", 1, 6, 4, &error), error);
  const float x[4] = {1, 2, 3, 4};
  assert_ok(start(wrapper, kZeros, kPositions, 4), error);
  assert_ok(put(wrapper, x, 4), error);
  assert_ok(kv_cache_set_layer_type(wrapper, 1, &error), error);
  assert_fails(kv_cache_set_layer_type(wrapper, 2, &error), range, "type 2", error);
  assert_fails(kv_cache_set_layer_type(wrapper, -1, &error), range, "type -1", error);
  assert_ok(put(wrapper, x, 4), error);
  /* The window has room for three more, the other for two: neither begins. */
  const int32_t later[3] = {4, 5, 6};
  assert_fails(start(wrapper, kZeros, later, 3), GEN_ERROR_CACHE_FULL, "6 cells, 2 are free",
               error);
  assert_keys(wrapper, x, 4); /* the pass goes on */
  assert_ok(start(wrapper, kZeros, later, 1), error);
  assert_ok(put(wrapper, x, 1), error);
  const float want[4] = {1, 2, 3, 4};
  assert_keys(wrapper, want, 4); /* cells 0 to 3, of which 0 was taken again */
  int32_t can = 0;
  assert_ok(kv_cache_can_resume(wrapper, 0, 3, &can, &error), error);
  assert_int_equal(can, 0); /* for the window */
  assert_ok(kv_cache_can_resume(wrapper, 0, 5, &can, &error), error);
  assert_int_equal(can, 1);
  assert_fails(kv_cache_encoder_cached(wrapper, 0, &can, &error), GEN_ERROR_UNSUPPORTED, "none",
               error);
  assert_fails(kv_cache_remove(wrapper, 0, 0, 1, &error), GEN_ERROR_UNSUPPORTED, "", error);
  kv_cache_free(wrapper);
}

static void families_do_not_mix(void** test) {
  (void)test;
  kv_cache* many = make_causal(1, 4, 4);
  kv_cache* one = NULL;
  kv_cache* copy = (kv_cache*)&error;
  assert_ok(kv_cache_new(1, 4, &one, &error), error);
  float x[1] = {1};
  const char* hint = "is for caches of one sequence (fp32, paged, ...); this is a causal cache";
  assert_fails(kv_cache_update(many, 0, x, x, 1, 1, 1, &error), state, hint, error);
  assert_fails(kv_cache_get(many, 0, x, 1, x, 1, NULL, NULL, &error), state, hint, error);
  kv_cache_span span = {0};
  span.struct_size = sizeof(span);
  assert_fails(kv_cache_view(many, 0, &span, &error), state, hint, error);
  assert_fails(kv_cache_truncate(many, 0, &error), state, hint, error);
  assert_fails(kv_cache_reset(many, &error), state, hint, error);
  assert_fails(kv_cache_clone(many, &copy, &error), state, hint, error);
  assert_null(copy);
  assert_fails(kv_cache_save(many, "unused.state", &error), state, hint, error);
  assert_fails(kv_cache_load(many, "unused.state", &error), GEN_ERROR_IO, "unused.state", error);
  size_t size = 0;
  assert_fails(kv_cache_save_buffer(many, NULL, 0, &size, &error), state, hint, error);
  gen_tracer* tracer = NULL;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_fails(kv_cache_tracing_new(many, tracer, &copy, &error), state, hint, error);
  gen_tracer_free(tracer);
  gen_model* model = load_draft();
  const int32_t token = 1;
  static float logits[4096];
  assert_fails(gen_model_forward(model, &token, 1, many, logits, 4096, &error), state, hint, error);
  gen_model_free(model);

  int32_t number = 7;
  hint = "is for the batch family (causal, swa, ...); this is a fp32 cache";
  assert_fails(kv_cache_set_config(one, 1, 0, NULL, &error), state, hint, error);
  assert_fails(kv_cache_set_shift(one, add_offsets, NULL, &error), state, hint, error);
  assert_fails(kv_cache_set_quota(one, 1, &error), state, hint, error);
  assert_fails(kv_cache_init(one, NULL, 1, 1, 1, &error), state, hint, error);
  assert_fails(kv_cache_set_layer(one, 0, &error), state, hint, error);
  assert_fails(kv_cache_set_layer_type(one, 0, &error), state, hint, error);
  assert_fails(start(one, kZeros, kPositions, 1), state, hint, error);
  assert_fails(kv_cache_put(one, x, 1, 1, x, 1, 1, 1, &error), state, hint, error);
  assert_fails(kv_cache_get_masked(one, x, 1, NULL, 0, NULL, 0, NULL, NULL, NULL, &error), state,
               hint, error);
  assert_fails(kv_cache_set_causal(one, NULL, 0, &error), state, hint, error);
  assert_fails(kv_cache_copy_prefix(one, 0, 1, 1, &error), state, hint, error);
  assert_fails(kv_cache_can_resume(one, 0, 0, &number, &error), state, hint, error);
  assert_fails(kv_cache_remove(one, 0, 0, 1, &error), state, hint, error);
  assert_fails(kv_cache_compact(one, 1, &number, &error), state, hint, error);
  assert_fails(kv_cache_encoder_cached(one, 0, &number, &error), state, hint, error);
  assert_fails(kv_cache_close(one, &error), state, hint, error);
  kv_cache_free(one);
  kv_cache_free(many);
}

static void closed_caches_are_for_freeing(void** test) {
  (void)test;
  kv_cache* cache = make_causal(1, 4, 4);
  assert_fails(kv_cache_close(NULL, &error), bad, "cache", error);
  assert_ok(kv_cache_close(cache, &error), error);
  assert_ok(kv_cache_close(cache, &error), error);
  const char* hint = "is closed";
  int32_t number = 0;
  assert_fails(start(cache, kZeros, kPositions, 1), state, hint, error);
  assert_fails(kv_cache_set_layer(cache, 0, &error), state, hint, error);
  assert_fails(kv_cache_set_shift(cache, add_offsets, NULL, &error), state, hint, error);
  assert_fails(kv_cache_set_quota(cache, 0, &error), state, hint, error);
  assert_fails(kv_cache_remove(cache, 0, 0, 1, &error), state, hint, error);
  assert_fails(kv_cache_copy_prefix(cache, 0, 1, 1, &error), state, hint, error);
  assert_fails(kv_cache_can_resume(cache, 0, 1, &number, &error), state, hint, error);
  assert_fails(kv_cache_compact(cache, 1, NULL, &error), state, hint, error);
  assert_fails(kv_cache_init(cache, NULL, 1, 4, 4, &error), state, "before", error);
  assert_fails(kv_cache_set_config(cache, 1, 0, NULL, &error), state, "already", error);
  assert_string_equal(kv_cache_kind(cache), "causal");
  kv_cache_free(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(init_is_called_once),
      cmocka_unit_test(a_pass_is_written_and_read),
      cmocka_unit_test(reserving_takes_memory_only),
      cmocka_unit_test(sequences_are_cut_shifted_and_copied),
      cmocka_unit_test(shared_cells_need_room_to_move),
      cmocka_unit_test(full_caches_stay_as_they_were),
      cmocka_unit_test(quantised_rows_must_be_finite),
      cmocka_unit_test(encoders_keep_items),
      cmocka_unit_test(wrappers_drive_their_caches),
      cmocka_unit_test(families_do_not_mix),
      cmocka_unit_test(closed_caches_are_for_freeing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of chunk-wise means, through C: the published examples, each documented error, memory
 * as the caller's allocator counts it, and that a failed call changes nothing. */
#include "api_test.h"
#include "counting_allocator.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static kv_cache* make(int32_t layers, int32_t chunk) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_compressed_new(layers, 0, 0, chunk, &cache, &error), error);
  assert_non_null(cache);
  return cache;
}

static gen_status append(kv_cache* cache, int layer, const float* x, int batch, int seq, int dim) {
  return kv_cache_update(cache, layer, x, x, batch, seq, dim, &error);
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(kv_cache_compressed_new(-1, 0, 0, 4, &cache, &error), bad, "-1 layers", error);
  assert_null(cache);
  assert_fails(kv_cache_compressed_new(2, -1, 0, 4, &cache, &error), bad, "-1 heads", error);
  assert_fails(kv_cache_compressed_new(2, 0, -2, 4, &cache, &error), bad, "-2 elements", error);
  assert_fails(kv_cache_compressed_new(2, 0, 0, 0, &cache, &error), bad, "chunk_size 0", error);
  assert_fails(kv_cache_compressed_new(2, 0, 0, 4, NULL, &error), bad, "out", error);
  cache = make(3, 4);
  assert_string_equal(kv_cache_kind(cache), "compressed");
  assert_int_equal(kv_cache_is_lossy(cache), 1);
  assert_int_equal(kv_cache_num_layers(cache), 3);
  assert_int_equal(kv_cache_max_seq_len(cache), INT32_MAX);
  assert_int_equal(kv_cache_capabilities(cache),
                   KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_CAN_VIEW);
  kv_cache_free(cache);
}

static void reading_gives_the_published_means(void** state) {
  (void)state;
  const float x[6] = {1, 2, 5, 8, 10, 20};
  const float want[4] = {3, 5, 10, 20};
  float k[4];
  float v[4];
  int32_t shape[3];
  const int32_t want_shape[3] = {1, 2, 2};
  kv_cache* cache = make(1, 2);
  assert_int_equal(append(cache, 0, x, 1, 3, 2), GEN_OK);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 3);
  assert_int_equal(kv_cache_kv_len(cache, 0), 2);
  assert_int_equal(kv_cache_kv_len(cache, 1), 0);
  assert_ok(kv_cache_get(cache, 0, k, 4, v, 4, shape, NULL, &error), error);
  assert_memory_equal(shape, want_shape, sizeof(shape));
  assert_memory_equal(k, want, sizeof(want));
  assert_memory_equal(v, want, sizeof(want));
  kv_cache_span span = {0};
  span.struct_size = sizeof(span);
  assert_ok(kv_cache_view(cache, 0, &span, &error), error);
  assert_int_equal(span.seq, 2);
  assert_memory_equal(span.k, want, sizeof(want));
  assert_fails(append(cache, 1, x, 1, 1, 2), GEN_ERROR_OUT_OF_RANGE, "layer 1", error);
  assert_fails(append(cache, 0, x, 2, 1, 2), bad, "batch 1, dim 2", error);
  assert_fails(append(cache, 0, x, 1, -1, 2), bad, "[1, -1, 2]", error);
  kv_cache_free(cache);
}

static void entries_tell_their_positions(void** state) {
  (void)state;
  const float x[5] = {1, 2, 3, 4, 5};
  kv_cache* cache = make(1, 2);
  int32_t first = 9;
  int32_t positions = 9;
  assert_fails(kv_cache_compressed_entry(cache, 0, 0, &first, &positions, &error),
               GEN_ERROR_OUT_OF_RANGE, "no entry 0", error); /* nothing written yet */
  assert_int_equal(first, 0);
  assert_int_equal(append(cache, 0, x, 1, 5, 1), GEN_OK);
  assert_ok(kv_cache_compressed_entry(cache, 0, 1, &first, &positions, &error), error);
  assert_int_equal(first, 2);
  assert_int_equal(positions, 2);
  assert_ok(kv_cache_compressed_entry(cache, 0, 2, &first, &positions, &error), error);
  assert_int_equal(first, 4);
  assert_int_equal(positions, 1);
  assert_ok(kv_cache_compressed_entry(cache, 0, 2, NULL, NULL, &error), error);
  assert_fails(kv_cache_compressed_entry(cache, 0, 3, &first, &positions, &error),
               GEN_ERROR_OUT_OF_RANGE, "no entry 3", error);
  assert_int_equal(positions, 0);
  assert_fails(kv_cache_compressed_entry(cache, 1, 0, &first, &positions, &error),
               GEN_ERROR_OUT_OF_RANGE, "layer 1", error);
  assert_fails(kv_cache_compressed_entry(NULL, 0, 0, &first, &positions, &error), bad, "cache",
               error);
  kv_cache* plain = NULL;
  assert_ok(kv_cache_new(1, 4, &plain, &error), error);
  assert_fails(kv_cache_compressed_entry(plain, 0, 0, &first, &positions, &error), bad, "fp32",
               error);
  kv_cache_free(plain);
  kv_cache_free(cache);
}

static void truncate_reset_and_clone(void** state) {
  (void)state;
  const float x[5] = {1, 2, 3, 4, 5};
  kv_cache* cache = make(1, 2);
  kv_cache* copy = NULL;
  float k[4];
  assert_int_equal(append(cache, 0, x, 1, 5, 1), GEN_OK);
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  assert_ok(kv_cache_truncate(cache, 3, &error), error); /* a cut into a mean drops it */
  assert_int_equal(kv_cache_seq_len(cache), 2);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(kv_cache_kv_len(cache, 0), 0);
  assert_int_equal(append(cache, 0, x, 1, 1, 5), GEN_OK); /* another shape */
  kv_cache_free(cache);
  assert_ok(kv_cache_get(copy, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_true(k[0] == 1.5f && k[1] == 3.5f && k[2] == 5.0f);
  kv_cache_free(copy);
}

static void memory_is_what_the_allocator_counted(void** state) {
  (void)state;
  struct counting counts = {0};
  const gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
  kv_cache* cache = make(1, 4);
  const float x[6] = {1, 2, 3, 4, 5, 6};
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  counts.refuse = 1;
  assert_int_equal(append(cache, 0, x, 2, 3, 1), GEN_ERROR_OUT_OF_MEMORY);
  counts.refuse = 0;
  size_t resident = 0;
  for (int i = 0; i < 200; ++i) {
    assert_int_equal(append(cache, 0, x, 2, 3, 1), GEN_OK);
    assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
    assert_int_equal(resident, counts.live);
  }
  size_t payload = 0;
  assert_ok(kv_cache_memory_bytes(cache, NULL, &payload, NULL, &error), error);
  assert_int_equal(payload, 2 * 2 * 150 * sizeof(float));
  kv_cache_free(cache);
  assert_int_equal(counts.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(reading_gives_the_published_means),
      cmocka_unit_test(entries_tell_their_positions),
      cmocka_unit_test(truncate_reset_and_clone),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The caches that keep few bits, through C: the published numbers, bounds, refusals of what is not
 * finite, memory as the caller's allocator counts it, and that a failed call changes nothing. */
#include "api_test.h"
#include "counting_allocator.h"

#include <math.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

typedef gen_status (*maker)(int32_t, int32_t, kv_cache**, gen_error*);
static const maker makers[3] = {kv_cache_fp8_new, kv_cache_q4_new, kv_cache_q3_new};
static const char* const names[3] = {"fp8", "q4", "q3"};

static kv_cache* make(int kind, int32_t layers, int32_t max_seq_len) {
  kv_cache* cache = NULL;
  assert_ok(makers[kind](layers, max_seq_len, &cache, &error), error);
  assert_non_null(cache);
  return cache;
}

/* Element i of a tensor: a wave of amplitude 0.5, as the specification's bounds are stated for. */
static float wave(int i) { return 0.5f * sinf((float)i * 0.37f); }

static void fill(float* x, int count, int start) {
  for (int i = 0; i < count; ++i) x[i] = wave(start + i);
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    kv_cache* cache = (kv_cache*)&error;
    assert_fails(makers[kind](-1, 8, &cache, &error), bad, "-1 layers", error);
    assert_null(cache);
    assert_fails(makers[kind](65537, 8, &cache, &error), bad, "65537 layers", error);
    assert_fails(makers[kind](2, 0, &cache, &error), bad, "max_seq_len 0", error);
    assert_fails(makers[kind](2, 8, NULL, &error), bad, "out", error);
    cache = make(kind, 3, 7);
    assert_string_equal(kv_cache_kind(cache), names[kind]);
    assert_int_equal(kv_cache_is_lossy(cache), 1);
    assert_int_equal(kv_cache_num_layers(cache), 3);
    assert_int_equal(kv_cache_max_seq_len(cache), 7);
    uint32_t can = KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE;
    if (kind == 0) can |= KV_CACHE_ONE_ROW_ONE_RESULT;
    assert_int_equal(kv_cache_capabilities(cache), can);
    kv_cache_free(cache);
  }
}

/* Sections 4.3 to 4.5 of the specification. */
static void reading_gives_the_published_numbers(void** state) {
  (void)state;
  const float row[5] = {1.0f, -0.5f, 0.1f, 0.001f, 1e-5f};
  const float row_want[5] = {1.0f, -0.5f, 0.098214291f, 0.0009765625f, 8.7193e-6f};
  const float group[8] = {7.0f, -3.5f, 1.0f, 0.49f, -0.51f, 2.2f, 6.6f, -7.0f};
  const float group_want[8] = {7, -4, 1, 0, -1, 2, 7, -7};
  const float means[12] = {-1.0f, -0.9f, -0.5f, -0.1f, 0.0f, 0.05f,
                           0.1f,  0.3f,  0.55f, 0.6f,  0.8f, 1.0f};
  const float means_want[12] = {-0.9513165f, -0.9513165f, -0.5f,      -0.1f,
                                0.0792731f,  0.0792731f,  0.0792731f, 0.4437952f,
                                0.4437952f,  0.7071788f,  0.7071788f, 1.0f};
  float got[12];
  kv_cache* cache = make(0, 1, 4);
  assert_ok(kv_cache_update(cache, 0, row, row, 1, 1, 5, &error), error);
  assert_ok(kv_cache_get(cache, 0, got, 5, NULL, 0, NULL, NULL, &error), error);
  for (int i = 0; i < 5; ++i)
    assert_true(fabsf(got[i] - row_want[i]) <= 1e-5f * fabsf(row_want[i]));
  kv_cache_free(cache);

  cache = make(1, 1, 4);
  assert_ok(kv_cache_update(cache, 0, group, group, 1, 1, 8, &error), error);
  assert_ok(kv_cache_get(cache, 0, NULL, 0, got, 8, NULL, NULL, &error), error);
  assert_memory_equal(got, group_want, sizeof(group_want));
  kv_cache_free(cache);

  cache = make(2, 1, 4); /* an unfinished group reads as one of its own; centroids are binary16 */
  assert_ok(kv_cache_update(cache, 0, means, means, 1, 1, 12, &error), error);
  assert_ok(kv_cache_get(cache, 0, got, 12, NULL, 0, NULL, NULL, &error), error);
  for (int i = 0; i < 12; ++i) {
    assert_true(fabsf(got[i] - means_want[i]) <= 0x1p-11f * fabsf(means_want[i]) + 1e-7f);
  }
  kv_cache_free(cache);
}

static void errors_stay_within_the_bounds(void** state) {
  (void)state;
  enum { batch = 3, seq = 20, dim = 40, count = batch * seq * dim };
  static float k[count];
  static float v[count];
  static float got_k[count];
  static float got_v[count];
  fill(k, count, 0);
  fill(v, count, 5000);
  enum { lane = seq * dim, group = 128 };
  for (int kind = 0; kind < 3; ++kind) {
    kv_cache* cache = make(kind, 2, 64);
    int32_t shape[3];
    const int32_t want[3] = {batch, seq, dim};
    assert_ok(kv_cache_update(cache, 1, k, v, batch, seq, dim, &error), error);
    assert_ok(kv_cache_get(cache, 1, got_k, count, got_v, count, shape, NULL, &error), error);
    assert_memory_equal(shape, want, sizeof(want));
    int differs = 0;
    for (int i = 0; i < count; ++i) {
      /* What scales an element: its row for fp8, its group of 128 of a lane for the others. */
      const int size = kind == 0 ? dim : group;
      const int first = i / lane * lane + i % lane / size * size;
      const int last = first + size < (i / lane + 1) * lane ? first + size : (i / lane + 1) * lane;
      for (int side = 0; side < 2; ++side) {
        const float* x = side == 0 ? k : v;
        float largest = 0;
        for (int j = first; j < last; ++j) largest = fmaxf(largest, fabsf(x[j]));
        const float bounds[3] = {fmaxf(fabsf(x[i]) / 16, largest / 448 / 1024), largest / 14,
                                 0.15f}; /* the specification's for q3 */
        const float got = side == 0 ? got_k[i] : got_v[i];
        assert_true(fabsf(got - x[i]) <= bounds[kind] * 1.00001f);
      }
      differs += got_k[i] != k[i];
    }
    assert_true(differs > count / 2);
    kv_cache_free(cache);
  }
}

static void what_is_not_finite_is_refused(void** state) {
  (void)state;
  const float wrong[3] = {NAN, INFINITY, -INFINITY};
  for (int kind = 0; kind < 3; ++kind) {
    kv_cache* cache = make(kind, 2, 8);
    float x[64];
    float y[64];
    float before[64];
    float after[64];
    fill(x, 64, 0);
    assert_ok(kv_cache_update(cache, 1, x, x, 2, 2, 16, &error), error);
    assert_ok(kv_cache_get(cache, 1, before, 64, NULL, 0, NULL, NULL, &error), error);
    for (int i = 0; i < 3; ++i) {
      fill(y, 64, 0);
      y[37] = wrong[i];
      assert_fails(kv_cache_update(cache, 1, y, x, 2, 2, 16, &error), bad, "layer 1: k[37]", error);
      assert_fails(kv_cache_update(cache, 1, x, y, 2, 2, 16, &error), bad, "layer 1: v[37]", error);
      assert_fails(kv_cache_update(cache, 0, x, y, 2, 2, 16, &error), bad, "layer 0: v[37]", error);
    }
    assert_int_equal(kv_cache_layer_seq_len(cache, 1), 2);
    assert_int_equal(kv_cache_layer_seq_len(cache, 0), 0);
    assert_ok(kv_cache_get(cache, 1, after, 64, NULL, 0, NULL, NULL, &error), error);
    assert_memory_equal(before, after, sizeof(before));
    kv_cache_free(cache);
  }
}

static void update_fails_without_a_trace(void** state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    kv_cache* cache = make(kind, 2, 6);
    float x[64];
    fill(x, 64, 9);
    assert_fails(kv_cache_update(NULL, 0, x, x, 1, 1, 1, &error), bad, "cache", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 1, 7, 4, &error), GEN_ERROR_CACHE_FULL, "6",
                 error);
    assert_ok(kv_cache_update(cache, 0, x, x, 2, 4, 3, &error), error);
    assert_fails(kv_cache_update(cache, 2, x, x, 2, 1, 3, &error), GEN_ERROR_OUT_OF_RANGE,
                 "layer 2 outside a cache of 2 layers", error);
    assert_fails(kv_cache_update(cache, 0, NULL, x, 2, 1, 3, &error), bad, "k is NULL", error);
    assert_fails(kv_cache_update(cache, 0, x, NULL, 2, 1, 3, &error), bad, "v is NULL", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 1, 1, 3, &error), bad, "batch 2, dim 3", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 2, 1, 4, &error), bad, "batch 2, dim 4", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 2, 3, 3, &error), GEN_ERROR_CACHE_FULL,
                 "layer 0 holds 4 of 6 positions, no room for 3 more", error);
    assert_ok(kv_cache_update(cache, 0, NULL, NULL, 2, 0, 3, &error), error);
    assert_int_equal(kv_cache_layer_seq_len(cache, 0), 4);
    kv_cache_free(cache);
  }
}

static void there_are_no_strides_to_view(void** state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    kv_cache* cache = make(kind, 1, 6);
    kv_cache_span span = {0};
    span.struct_size = sizeof(span);
    span.seq = 77;
    assert_ok(kv_cache_update(cache, 0, (float[4]){1, 2, 3, 4}, (float[4]){0}, 1, 1, 4, &error),
              error);
    assert_fails(kv_cache_view(cache, 0, &span, &error), GEN_ERROR_UNSUPPORTED, names[kind], error);
    assert_int_equal(span.seq, 77);
    kv_cache_free(cache);
  }
}

static void truncate_reset_and_clone(void** state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    kv_cache* cache = make(kind, 1, 40);
    static float x[40 * 16];
    static float got[40 * 16];
    static float other[40 * 16];
    fill(x, 40 * 16, 3);
    assert_ok(kv_cache_update(cache, 0, x, x, 1, 40, 16, &error), error);
    kv_cache* copy = NULL;
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    assert_string_equal(kv_cache_kind(copy), names[kind]);
    assert_ok(kv_cache_truncate(cache, 13, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 13);
    assert_int_equal(kv_cache_seq_len(copy), 40);
    assert_ok(kv_cache_get(cache, 0, got, 40 * 16, NULL, 0, NULL, NULL, &error), error);
    assert_ok(kv_cache_get(copy, 0, other, 40 * 16, NULL, 0, NULL, NULL, &error), error);
    /* Whole groups before the cut do not change. */
    assert_memory_equal(got, other, 128 * sizeof(float));
    for (int i = 0; i < 13 * 16; ++i) assert_true(fabsf(got[i] - x[i]) < 0.2f);
    assert_ok(kv_cache_reset(cache, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 0);
    assert_ok(kv_cache_update(cache, 0, x, x, 2, 10, 32, &error), error);
    kv_cache_free(cache);
    assert_ok(kv_cache_update(copy, 0, NULL, NULL, 1, 0, 16, &error), error);
    kv_cache_free(copy);
  }
}

/* Bits of an element, scales included, as section 4.6 and the kinds' comments have them. */
static void memory_is_what_the_allocator_counted(void** state) {
  (void)state;
  enum { batch = 2, seq = 50, dim = 128, count = batch * seq * dim };
  static float x[count];
  fill(x, count, 1);
  const double bits[3] = {8.25, 4.25, 4.0};
  for (int kind = 0; kind < 3; ++kind) {
    struct counting counts = {0};
    const gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
    kv_cache* cache = make(kind, 1, seq);
    assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
    size_t empty = 0;
    assert_ok(kv_cache_memory_bytes(cache, NULL, NULL, &empty, &error), error);
    counts.refuse = 1;
    assert_fails(kv_cache_update(cache, 0, x, x, batch, seq, dim, &error), GEN_ERROR_OUT_OF_MEMORY,
                 "bytes", error);
    assert_int_equal(kv_cache_layer_seq_len(cache, 0), 0);
    counts.refuse = 0;
    assert_ok(kv_cache_update(cache, 0, x, x, batch, seq, dim, &error), error);
    size_t resident = 0;
    size_t payload = 0;
    size_t metadata = 0;
    assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, &metadata, &error), error);
    assert_int_equal(resident, counts.live);
    assert_true(8.0 * (double)resident <= 2.0 * count * bits[kind] + 8.0 * 64 * 6);
    assert_true(8.0 * (double)payload == 2.0 * count * (kind == 0 ? 8 : kind == 1 ? 4 : 3));
    assert_true(8.0 * (double)(payload + metadata) >= 2.0 * count * bits[kind]);
    assert_true(metadata > empty);
    kv_cache_free(cache);
    assert_int_equal(counts.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(reading_gives_the_published_numbers),
      cmocka_unit_test(errors_stay_within_the_bounds),
      cmocka_unit_test(what_is_not_finite_is_refused),
      cmocka_unit_test(update_fails_without_a_trace),
      cmocka_unit_test(there_are_no_strides_to_view),
      cmocka_unit_test(truncate_reset_and_clone),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

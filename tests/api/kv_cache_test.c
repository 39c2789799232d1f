/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache.h: every function's good case, each documented error, and that a failed call changes
 * nothing. */
#include "api_test.h"
#include "counting_allocator.h"

#include <math.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

/* A value both kinds hold exactly, different for every element of [batch, seq, dim]. */
static float element(int b, int p, int d, int is_v) {
  return (float)(b * 64 + p * 8 + d) * (is_v ? -0.25f : 1.0f);
}

/* Positions [start, start + seq) of a [batch, seq, dim] tensor; free() it. */
static float* rows(int batch, int start, int seq, int dim, int is_v) {
  float* out = malloc(sizeof(float) * (size_t)(batch * seq * dim) + 1);
  assert_non_null(out);
  float* next = out;
  for (int b = 0; b < batch; ++b) {
    for (int p = start; p < start + seq; ++p) {
      for (int d = 0; d < dim; ++d) *next++ = element(b, p, d, is_v);
    }
  }
  return out;
}

static gen_status append(kv_cache* cache, int layer, int batch, int seq, int dim) {
  const int start = kv_cache_layer_seq_len(cache, layer);
  float* k = rows(batch, start, seq, dim, 0);
  float* v = rows(batch, start, seq, dim, 1);
  const gen_status status = kv_cache_update(cache, layer, k, v, batch, seq, dim, &error);
  free(k);
  free(v);
  return status;
}

static void assert_holds(const kv_cache* cache, int layer, int batch, int seq, int dim) {
  int32_t k_shape[3];
  int32_t v_shape[3];
  float k[4096];
  float v[4096];
  assert_ok(kv_cache_get(cache, layer, k, 4096, v, 4096, k_shape, v_shape, &error), error);
  const int32_t want[3] = {batch, seq, dim};
  assert_memory_equal(k_shape, want, sizeof(want));
  assert_memory_equal(v_shape, want, sizeof(want));
  assert_int_equal(kv_cache_layer_seq_len(cache, layer), seq);
  for (int b = 0, i = 0; b < batch; ++b) {
    for (int p = 0; p < seq; ++p) {
      for (int d = 0; d < dim; ++d, ++i) {
        assert_true(k[i] == element(b, p, d, 0));
        assert_true(v[i] == element(b, p, d, 1));
      }
    }
  }
}

typedef gen_status (*maker)(int32_t, int32_t, kv_cache**, gen_error*);
static const maker makers[2] = {kv_cache_new, kv_cache_fp16_new};

static kv_cache* make(int kind, int32_t layers, int32_t max_seq_len) {
  kv_cache* cache = NULL;
  assert_ok(makers[kind](layers, max_seq_len, &cache, &error), error);
  assert_non_null(cache);
  return cache;
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = (kv_cache*)&error;
    assert_fails(makers[kind](-1, 8, &cache, &error), bad, "-1 layers", error);
    assert_null(cache);
    assert_fails(makers[kind](65537, 8, &cache, &error), bad, "65537 layers", error);
    assert_fails(makers[kind](2, 0, &cache, &error), bad, "max_seq_len 0", error);
    assert_fails(makers[kind](2, 8, NULL, &error), bad, "out", error);
    assert_int_equal(makers[kind](2, -8, &cache, NULL), bad);
    cache = make(kind, 0, 1);
    assert_int_equal(kv_cache_num_layers(cache), 0);
    assert_int_equal(kv_cache_seq_len(cache), 0);
    assert_fails(append(cache, 0, 1, 1, 1), GEN_ERROR_OUT_OF_RANGE, "layer 0", error);
    kv_cache_free(cache);
  }
  kv_cache_free(NULL);
}

static void getters_take_null(void** state) {
  (void)state;
  assert_int_equal(kv_cache_seq_len(NULL), 0);
  assert_int_equal(kv_cache_layer_seq_len(NULL, 0), 0);
  assert_int_equal(kv_cache_kv_len(NULL, 0), 0);
  assert_int_equal(kv_cache_num_layers(NULL), 0);
  assert_int_equal(kv_cache_max_seq_len(NULL), 0);
  assert_null(kv_cache_kind(NULL));
  assert_int_equal(kv_cache_capabilities(NULL), 0);
  assert_int_equal(kv_cache_is_lossy(NULL), 0);
}

static void getters_tell_what_it_is(void** state) {
  (void)state;
  kv_cache* full = make(0, 3, 7);
  kv_cache* half = make(1, 2, 9);
  assert_string_equal(kv_cache_kind(full), "fp32");
  assert_string_equal(kv_cache_kind(half), "fp16");
  assert_int_equal(kv_cache_is_lossy(full), 0);
  assert_int_equal(kv_cache_is_lossy(half), 1);
  assert_int_equal(kv_cache_num_layers(full), 3);
  assert_int_equal(kv_cache_max_seq_len(half), 9);
  const uint32_t all = KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_CAN_VIEW |
                       KV_CACHE_ONE_ROW_ONE_RESULT | KV_CACHE_HAS_FULL_BUFFER;
  assert_int_equal(kv_cache_capabilities(full), all);
  assert_int_equal(kv_cache_capabilities(half), all);
  kv_cache_free(full);
  kv_cache_free(half);
}

static void update_and_get(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, 2, 8);
    assert_int_equal(append(cache, 0, 3, 5, 4), GEN_OK);
    assert_int_equal(kv_cache_layer_seq_len(cache, 0), 5);
    assert_int_equal(kv_cache_kv_len(cache, 0), 5);
    assert_int_equal(kv_cache_layer_seq_len(cache, 1), 0);
    assert_int_equal(kv_cache_seq_len(cache), 0); /* layer 1 is still to come */
    assert_int_equal(append(cache, 1, 2, 5, 6), GEN_OK);
    assert_int_equal(kv_cache_seq_len(cache), 5);
    assert_int_equal(append(cache, 0, 3, 2, 4), GEN_OK);
    assert_int_equal(kv_cache_seq_len(cache), 5);
    assert_int_equal(append(cache, 0, 3, 1, 4), GEN_OK); /* exactly full */
    assert_holds(cache, 0, 3, 8, 4);
    assert_holds(cache, 1, 2, 5, 6);
    assert_int_equal(kv_cache_layer_seq_len(cache, -1), 0);
    assert_int_equal(kv_cache_layer_seq_len(cache, 2), 0);
    assert_int_equal(kv_cache_kv_len(cache, 2), 0);
    kv_cache_free(cache);
  }
}

static void update_fails_without_a_trace(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, 2, 6);
    float x[64] = {0};
    assert_fails(kv_cache_update(NULL, 0, x, x, 1, 1, 1, &error), bad, "cache", error);
    /* A failing first write gives no shape. */
    assert_fails(kv_cache_update(cache, 0, x, x, 2, 7, 4, &error), GEN_ERROR_CACHE_FULL, "6",
                 error);
    size_t resident = 1;
    assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
    assert_int_equal(resident, 0);
    assert_ok(kv_cache_set_allocator(cache, NULL, &error), error);

    assert_int_equal(append(cache, 0, 2, 4, 3), GEN_OK);
    assert_fails(kv_cache_update(cache, 2, NULL, x, 0, 9, 0, &error), GEN_ERROR_OUT_OF_RANGE,
                 "layer 2 outside a cache of 2 layers", error);
    assert_fails(kv_cache_update(cache, -1, x, x, 2, 1, 3, &error), GEN_ERROR_OUT_OF_RANGE, "-1",
                 error);
    assert_fails(kv_cache_update(cache, 0, NULL, x, 2, 1, 3, &error), bad, "k is NULL", error);
    assert_fails(kv_cache_update(cache, 0, x, NULL, 2, 1, 3, &error), bad, "v is NULL", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 0, 9, 3, &error), bad, "[0, 9, 3]", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 2, -1, 3, &error), bad, "[2, -1, 3]", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 2, 9, 0, &error), bad, "[2, 9, 0]", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 1, 9, 3, &error), bad, "batch 2, dim 3", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 2, 9, 4, &error), bad, "batch 2, dim 4", error);
    assert_fails(kv_cache_update(cache, 0, x, x, 2, 3, 3, &error), GEN_ERROR_CACHE_FULL,
                 "layer 0 holds 4 of 6 positions, no room for 3 more", error);
    assert_fails(kv_cache_update(cache, 1, x, x, 1, INT32_MAX, 1, &error), GEN_ERROR_CACHE_FULL,
                 "2147483647", error);
    assert_int_equal(kv_cache_update(cache, 0, x, x, 2, 3, 3, NULL), GEN_ERROR_CACHE_FULL);
    assert_ok(kv_cache_update(cache, 0, NULL, NULL, 2, 0, 3, &error), error);
    assert_holds(cache, 0, 2, 4, 3);
    assert_int_equal(kv_cache_layer_seq_len(cache, 1), 0);
    kv_cache_free(cache);
  }
}

static void get_asks_shapes_and_checks_capacity(void** state) {
  (void)state;
  kv_cache* cache = make(1, 2, 6);
  assert_int_equal(append(cache, 0, 2, 4, 3), GEN_OK);
  int32_t k_shape[3] = {9, 9, 9};
  int32_t v_shape[3] = {9, 9, 9};
  const int32_t want[3] = {2, 4, 3};
  const int32_t none[3] = {0, 0, 0};
  assert_ok(kv_cache_get(cache, 0, NULL, 0, NULL, 0, k_shape, v_shape, &error), error);
  assert_memory_equal(k_shape, want, sizeof(want));
  assert_memory_equal(v_shape, want, sizeof(want));

  float k[24];
  float v[24];
  for (int i = 0; i < 24; ++i) k[i] = v[i] = 5.0f;
  memset(k_shape, 9, sizeof(k_shape));
  assert_fails(kv_cache_get(cache, 0, k, 24, v, 23, k_shape, v_shape, &error),
               GEN_ERROR_OUT_OF_RANGE, "24 values do not fit a buffer of 23", error);
  assert_memory_equal(k_shape, want, sizeof(want));
  assert_fails(kv_cache_get(cache, 0, k, 23, v, 24, NULL, NULL, &error), GEN_ERROR_OUT_OF_RANGE,
               "24 keys", error);
  for (int i = 0; i < 24; ++i) assert_true(k[i] == 5.0f && v[i] == 5.0f);
  assert_ok(kv_cache_get(cache, 0, k, 24, NULL, 0, NULL, NULL, &error), error);
  assert_true(k[0] == element(0, 0, 0, 0) && v[0] == 5.0f);
  assert_ok(kv_cache_get(cache, 0, NULL, 0, v, 24, NULL, NULL, &error), error);
  assert_true(v[23] == element(1, 3, 2, 1));

  /* Misses are no errors and copy nothing. */
  const int32_t misses[] = {1, 2, -1};
  for (int i = 0; i < 3; ++i) {
    memset(k_shape, 9, sizeof(k_shape));
    memset(v_shape, 9, sizeof(v_shape));
    k[0] = 7.0f;
    assert_ok(kv_cache_get(cache, misses[i], k, 24, v, 24, k_shape, v_shape, &error), error);
    assert_memory_equal(k_shape, none, sizeof(none));
    assert_memory_equal(v_shape, none, sizeof(none));
    assert_true(k[0] == 7.0f);
  }
  memset(k_shape, 9, sizeof(k_shape));
  assert_fails(kv_cache_get(NULL, 0, k, 24, v, 24, k_shape, v_shape, &error), bad, "cache", error);
  assert_memory_equal(k_shape, none, sizeof(none));
  kv_cache_free(cache);

  cache = make(0, 1, 6);
  memset(k_shape, 9, sizeof(k_shape));
  assert_ok(kv_cache_get(cache, 0, k, 24, v, 24, k_shape, v_shape, &error), error);
  assert_memory_equal(k_shape, none, sizeof(none));
  kv_cache_free(cache);
}

static void views_show_memory_in_place(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, 2, 6);
    kv_cache_span span = {0};
    span.struct_size = sizeof(span);
    assert_ok(kv_cache_view(cache, 0, &span, &error), error); /* nothing yet */
    assert_null(span.k);
    assert_int_equal(append(cache, 0, 3, 4, 5), GEN_OK);
    span.seq = 77;
    assert_ok(kv_cache_view(cache, 0, &span, &error), error);
    const size_t size = kind == 0 ? 4 : 2;
    assert_int_equal(span.type, kind == 0 ? KV_CACHE_TYPE_F32 : KV_CACHE_TYPE_F16);
    assert_int_equal(span.struct_size, sizeof(span));
    assert_int_equal(span.batch, 3);
    assert_int_equal(span.seq, 4);
    assert_int_equal(span.k_dim, 5);
    assert_int_equal(span.v_dim, 5);
    assert_int_equal(span.k_seq_stride, 5 * size);
    assert_int_equal(span.v_batch_stride, 6 * 5 * size);
    if (kind == 0) {
      const char* k = span.k;
      const char* v = span.v;
      for (size_t b = 0; b < 3; ++b) {
        for (size_t p = 0; p < 4; ++p) {
          for (size_t d = 0; d < 5; ++d) {
            float at;
            memcpy(&at, k + b * span.k_batch_stride + p * span.k_seq_stride + d * size, size);
            assert_true(at == element((int)b, (int)p, (int)d, 0));
            memcpy(&at, v + b * span.v_batch_stride + p * span.v_seq_stride + d * size, size);
            assert_true(at == element((int)b, (int)p, (int)d, 1));
          }
        }
      }
    }
    /* Reset keeps the memory where it is. */
    const void* before = span.k;
    assert_ok(kv_cache_reset(cache, &error), error);
    assert_ok(kv_cache_view(cache, 0, &span, &error), error);
    assert_null(span.k);
    assert_int_equal(span.seq, 0);
    assert_int_equal(append(cache, 0, 3, 2, 5), GEN_OK);
    assert_ok(kv_cache_view(cache, 0, &span, &error), error);
    assert_ptr_equal(span.k, before);

    const kv_cache_span kept = span;
    assert_fails(kv_cache_view(NULL, 0, &span, &error), bad, "cache", error);
    assert_fails(kv_cache_view(cache, 0, NULL, &error), bad, "span", error);
    span.struct_size = 3;
    assert_fails(kv_cache_view(cache, 0, &span, &error), bad, "struct_size", error);
    assert_ptr_equal(span.k, kept.k);
    assert_int_equal(span.seq, kept.seq);
    span.struct_size = sizeof(span);
    assert_ok(kv_cache_view(cache, 5, &span, &error), error); /* a miss */
    assert_null(span.v);
    kv_cache_free(cache);
  }
}

static void truncate_and_reset(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, 2, 6);
    assert_ok(kv_cache_truncate(cache, 3, &error), error); /* nothing to cut */
    assert_ok(kv_cache_reset(cache, &error), error);
    assert_int_equal(append(cache, 0, 1, 6, 2), GEN_OK);
    assert_int_equal(append(cache, 1, 1, 5, 2), GEN_OK);
    assert_int_equal(kv_cache_seq_len(cache), 0);
    assert_ok(kv_cache_truncate(cache, 100, &error), error);
    assert_holds(cache, 0, 1, 6, 2);
    assert_ok(kv_cache_truncate(cache, 5, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 5);
    assert_holds(cache, 0, 1, 5, 2);
    assert_ok(kv_cache_truncate(cache, 2, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 2);
    assert_int_equal(append(cache, 1, 1, 1, 2), GEN_OK);
    assert_holds(cache, 1, 1, 3, 2);
    assert_ok(kv_cache_truncate(cache, -1, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 0);
    assert_int_equal(kv_cache_layer_seq_len(cache, 1), 0);
    assert_int_equal(append(cache, 0, 1, 6, 2), GEN_OK);
    assert_ok(kv_cache_reset(cache, &error), error);
    assert_int_equal(kv_cache_layer_seq_len(cache, 0), 0);
    assert_int_equal(append(cache, 0, 4, 2, 3), GEN_OK); /* an empty layer takes another shape */
    assert_holds(cache, 0, 4, 2, 3);
    kv_cache_free(cache);
  }
  assert_fails(kv_cache_truncate(NULL, 0, &error), bad, "cache", error);
  assert_fails(kv_cache_reset(NULL, &error), bad, "cache", error);
}

static void memory_figures(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, 2, 100);
    size_t resident = 1;
    size_t payload = 1;
    size_t metadata = 0;
    assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, &metadata, &error), error);
    assert_int_equal(resident, 0);
    assert_int_equal(payload, 0);
    assert_true(metadata > 0);
    assert_int_equal(append(cache, 0, 2, 4, 8), GEN_OK);
    const size_t size = kind == 0 ? 4 : 2;
    assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, &metadata, &error), error);
    assert_int_equal(resident, 2 * 2 * 100 * 8 * size);
    assert_int_equal(payload, 2 * 2 * 4 * 8 * size);
    assert_ok(kv_cache_memory_bytes(cache, NULL, NULL, NULL, &error), error);
    kv_cache_free(cache);
  }
  size_t resident = 1;
  assert_fails(kv_cache_memory_bytes(NULL, &resident, NULL, NULL, &error), bad, "cache", error);
  assert_fails(kv_cache_describe(NULL, NULL, 0, &resident, &error), bad, "cache", error);
  assert_int_equal(resident, 0);
}

/* The bits of section 4.2: rounding to nearest even, subnormals, infinity, NaN with its sign. */
static void halves_have_the_specified_bits(void** state) {
  (void)state;
  const float in[12] = {1.0f,     -2.0f, 65504.0f, 65519.996f, 65520.0f,  0x1p-24f,
                        0x1p-25f, 0.1f,  -0.0f,    INFINITY,   -INFINITY, NAN};
  const uint16_t want[12] = {0x3C00, 0xC000, 0x7BFF, 0x7BFF, 0x7C00, 0x0001,
                             0x0000, 0x2E66, 0x8000, 0x7C00, 0xFC00, 0x7E00};
  kv_cache* cache = make(1, 1, 2);
  assert_ok(kv_cache_update(cache, 0, in, in, 1, 2, 6, &error), error);
  kv_cache_span span = {0};
  span.struct_size = sizeof(span);
  assert_ok(kv_cache_view(cache, 0, &span, &error), error);
  assert_memory_equal(span.k, want, sizeof(want));
  assert_memory_equal(span.v, want, sizeof(want));
  float out[12];
  assert_ok(kv_cache_get(cache, 0, out, 12, NULL, 0, NULL, NULL, &error), error);
  assert_true(out[3] == 65504.0f && isinf(out[4]) && out[6] == 0.0f && isnan(out[11]));
  assert_true(signbit(out[8]) && out[8] == 0.0f);
  for (int i = 0; i < 3; ++i) assert_true(fabsf(out[i] - in[i]) <= fabsf(in[i]) * 0x1p-11f);
  kv_cache_free(cache);
}

static void memory_comes_from_the_callers_allocator(void** state) {
  (void)state;
  struct counting counts = {0};
  gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
  kv_cache* cache = make(0, 2, 16);
  assert_fails(kv_cache_set_allocator(NULL, &table, &error), bad, "cache", error);
  gen_allocator wrong = table;
  wrong.struct_size = 4;
  assert_fails(kv_cache_set_allocator(cache, &wrong, &error), bad, "struct_size", error);
  wrong = table;
  wrong.release = NULL;
  assert_fails(kv_cache_set_allocator(cache, &wrong, &error), bad, "release", error);
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  memset(&table, 0, sizeof(table)); /* the table was copied */

  counts.refuse = 1;
  assert_int_equal(append(cache, 0, 1, 2, 4), GEN_ERROR_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, "bytes"));
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 0);
  counts.refuse = 0;
  assert_ok(kv_cache_set_allocator(cache, NULL, &error), error); /* still without shape */
  gen_allocator again = {sizeof(again), &counts, counting_allocate, counting_release};
  assert_ok(kv_cache_set_allocator(cache, &again, &error), error);
  assert_int_equal(append(cache, 0, 1, 2, 4), GEN_OK);
  size_t resident = 0;
  assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
  assert_int_equal(counts.live, resident);
  assert_fails(kv_cache_set_allocator(cache, &again, &error), GEN_ERROR_STATE, "allocator", error);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_fails(kv_cache_set_allocator(cache, NULL, &error), GEN_ERROR_STATE, "allocator", error);
  assert_int_equal(append(cache, 0, 1, 2, 4), GEN_OK);

  /* Its overflow is out of memory, too; and so is a clone that cannot be had. */
  const float x = 1;
  assert_fails(kv_cache_update(cache, 1, &x, &x, INT32_MAX, 1, INT32_MAX, &error),
               GEN_ERROR_OUT_OF_MEMORY, "2147483647", error);
  kv_cache* copy = (kv_cache*)&error;
  counts.refuse = 1;
  assert_fails(kv_cache_clone(cache, &copy, &error), GEN_ERROR_OUT_OF_MEMORY, "bytes", error);
  assert_null(copy);
  assert_int_equal(counts.live, resident);
  counts.refuse = 0;
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  assert_int_equal(counts.live, 2 * resident);
  kv_cache_free(cache);
  assert_holds(copy, 0, 1, 2, 4);
  kv_cache_free(copy);
  assert_int_equal(counts.live, 0);
  assert_false(counts.wrong_align);
}

static void clones_are_independent(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, 2, 6);
    kv_cache* empty = NULL;
    assert_ok(kv_cache_clone(cache, &empty, &error), error);
    assert_int_equal(kv_cache_num_layers(empty), 2);
    assert_int_equal(append(empty, 1, 1, 6, 2), GEN_OK);
    assert_int_equal(append(cache, 0, 2, 3, 4), GEN_OK);
    assert_int_equal(append(cache, 1, 1, 3, 5), GEN_OK);
    kv_cache* copy = NULL;
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    assert_int_equal(kv_cache_seq_len(copy), 3);
    assert_string_equal(kv_cache_kind(copy), kv_cache_kind(cache));
    assert_int_equal(append(copy, 0, 2, 3, 4), GEN_OK);
    assert_fails(append(copy, 0, 2, 1, 4), GEN_ERROR_CACHE_FULL, "6", error);
    assert_holds(cache, 0, 2, 3, 4);
    kv_cache_free(cache);
    assert_holds(copy, 0, 2, 6, 4);
    assert_holds(copy, 1, 1, 3, 5);
    assert_holds(empty, 1, 1, 6, 2);
    assert_fails(kv_cache_clone(copy, NULL, &error), bad, "out", error);
    kv_cache_free(copy);
    kv_cache_free(empty);
  }
  kv_cache* out = (kv_cache*)&error;
  assert_fails(kv_cache_clone(NULL, &out, &error), bad, "cache", error);
  assert_null(out);
}

/* An allocator that calls back into the cache it serves: the in-use flag answers BUSY. */
struct reentry {
  kv_cache* cache;
  int calls;
};
static gen_status reentering_allocate(void* user, size_t bytes, size_t align, void** out) {
  struct reentry* r = user;
  gen_error inner;
  float x = 1;
  size_t n = 1;
  kv_cache* copy = NULL;
  kv_cache_span span = {0};
  span.struct_size = sizeof(span);
  assert_fails(kv_cache_update(r->cache, 0, &x, &x, 1, 1, 1, &inner), GEN_ERROR_BUSY, "in use",
               inner);
  assert_fails(kv_cache_get(r->cache, 0, &x, 1, NULL, 0, NULL, NULL, &inner), GEN_ERROR_BUSY, "",
               inner);
  assert_fails(kv_cache_view(r->cache, 0, &span, &inner), GEN_ERROR_BUSY, "", inner);
  assert_fails(kv_cache_truncate(r->cache, 0, &inner), GEN_ERROR_BUSY, "", inner);
  assert_fails(kv_cache_reset(r->cache, &inner), GEN_ERROR_BUSY, "", inner);
  assert_fails(kv_cache_memory_bytes(r->cache, &n, NULL, NULL, &inner), GEN_ERROR_BUSY, "", inner);
  assert_int_equal(n, 0);
  assert_fails(kv_cache_set_allocator(r->cache, NULL, &inner), GEN_ERROR_BUSY, "", inner);
  assert_fails(kv_cache_clone(r->cache, &copy, &inner), GEN_ERROR_BUSY, "", inner);
  assert_int_equal(kv_cache_seq_len(r->cache), 0); /* getters are never busy */
  assert_int_equal(kv_cache_layer_seq_len(r->cache, 0), 0);
  ++r->calls;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  return GEN_OK;
}
static void plain_release(void* user, void* ptr, size_t bytes) {
  (void)user;
  (void)bytes;
  free(ptr);
}

static void a_second_entry_is_busy(void** state) {
  (void)state;
  struct reentry r = {make(0, 1, 4), 0};
  const gen_allocator table = {sizeof(table), &r, reentering_allocate, plain_release};
  assert_ok(kv_cache_set_allocator(r.cache, &table, &error), error);
  assert_int_equal(append(r.cache, 0, 1, 2, 4), GEN_OK);
  assert_int_equal(r.calls, 1);
  assert_holds(r.cache, 0, 1, 2, 4);
  kv_cache_free(r.cache);
}

/* A cache that a model fills: read as [kv_heads, n, head_dim], not to be mixed with updates. */
static void a_models_cache_is_read_the_same_way(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const gen_model_config* config = gen_model_get_config(model);
  const int32_t layers = gen_model_config_num_layers(config);
  const int32_t heads = gen_model_config_num_kv_heads(config);
  const int32_t dim = gen_model_config_head_dim(config);
  const size_t vocab = (size_t)gen_model_config_vocab_size(config);
  const size_t row = (size_t)(heads * dim);
  float* logits = malloc(vocab * sizeof(float));
  const int32_t tokens[5] = {100, 200, 300, 400, 500};
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(kind, layers, 20);
    assert_ok(gen_model_forward(model, tokens, 5, cache, logits, vocab, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 5);
    assert_int_equal(kv_cache_layer_seq_len(cache, layers - 1), 5);
    assert_int_equal(kv_cache_layer_seq_len(cache, layers), 0);
    assert_int_equal(kv_cache_max_seq_len(cache), 20);
    int32_t shape[3];
    const int32_t want[3] = {heads, 5, dim};
    float* k = malloc(5 * row * sizeof(float));
    float* v = malloc(5 * row * sizeof(float));
    assert_fails(kv_cache_get(cache, 0, k, 5 * row - 1, NULL, 0, shape, NULL, &error),
                 GEN_ERROR_OUT_OF_RANGE, "keys", error);
    assert_memory_equal(shape, want, sizeof(want));
    assert_ok(kv_cache_get(cache, 0, k, 5 * row, v, 5 * row, shape, NULL, &error), error);
    assert_memory_equal(shape, want, sizeof(want));
    kv_cache_span span = {0};
    span.struct_size = sizeof(span);
    span.seq = 77;
    assert_fails(kv_cache_view(cache, 0, &span, &error), GEN_ERROR_UNSUPPORTED, "kv_cache_get",
                 error);
    assert_int_equal(span.seq, 77);
    assert_ok(kv_cache_view(cache, layers, &span, &error), error); /* a miss */
    assert_null(span.k);
    const float x[4] = {0};
    assert_fails(kv_cache_update(cache, 0, x, x, 1, 1, 4, &error), GEN_ERROR_STATE,
                 "gen_model_forward", error);

    /* A clone goes on as the original does. */
    kv_cache* copy = NULL;
    float* other = malloc(vocab * sizeof(float));
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    assert_ok(gen_model_forward(model, tokens, 1, cache, logits, vocab, &error), error);
    assert_int_equal(kv_cache_seq_len(copy), 5);
    assert_ok(gen_model_forward(model, tokens, 1, copy, other, vocab, &error), error);
    assert_memory_equal(logits, other, vocab * sizeof(float));
    assert_ok(kv_cache_truncate(copy, 5, &error), error);
    assert_ok(gen_model_forward(model, tokens, 1, copy, other, vocab, &error), error);
    assert_memory_equal(logits, other, vocab * sizeof(float));
    assert_ok(kv_cache_reset(copy, &error), error);
    assert_int_equal(kv_cache_seq_len(copy), 0);
    assert_ok(kv_cache_get(copy, 0, NULL, 0, NULL, 0, shape, NULL, &error), error);
    assert_int_equal(shape[0], 0);
    free(other);
    kv_cache_free(copy);
    free(k);
    free(v);
    kv_cache_free(cache);
  }
  free(logits);
  gen_model_free(model);
}

/* A session lends its cache for reading only. */
static void a_sessions_cache_is_for_reading(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  const int32_t tokens[3] = {100, 200, 300};
  assert_ok(gen_session_append_tokens(session, tokens, 3, &error), error);
  const kv_cache* cache = gen_session_cache(session);
  kv_cache* writable = (kv_cache*)cache;
  assert_string_equal(kv_cache_kind(cache), "fp32");
  assert_int_equal(kv_cache_capabilities(cache) & KV_CACHE_CAN_TRUNCATE, 0);
  const int32_t length = kv_cache_seq_len(cache);
  const float x[4] = {0};
  assert_fails(kv_cache_update(writable, 0, x, x, 1, 1, 4, &error), GEN_ERROR_STATE, "session",
               error);
  assert_fails(kv_cache_truncate(writable, 0, &error), GEN_ERROR_STATE, "session", error);
  assert_fails(kv_cache_reset(writable, &error), GEN_ERROR_STATE, "session", error);
  assert_fails(kv_cache_set_allocator(writable, NULL, &error), GEN_ERROR_STATE, "session", error);
  kv_cache_free(writable);
  assert_int_equal(kv_cache_seq_len(cache), length);
  size_t payload = 0;
  assert_ok(kv_cache_memory_bytes(cache, NULL, &payload, NULL, &error), error);
  int32_t shape[3];
  assert_ok(kv_cache_get(cache, 0, NULL, 0, NULL, 0, shape, NULL, &error), error);
  assert_in_range(length, 2, 3); /* the last token may wait until it is needed */
  assert_int_equal(shape[1], length);
  assert_int_equal(payload, 2 * sizeof(float) * (size_t)kv_cache_num_layers(cache) *
                                (size_t)(shape[0] * shape[1] * shape[2]));
  kv_cache* copy = NULL;
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  gen_session_free(session);
  assert_int_equal(kv_cache_seq_len(copy), length);
  assert_ok(kv_cache_truncate(copy, 1, &error), error);
  kv_cache_free(copy);
  gen_free(generator);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(getters_take_null),
      cmocka_unit_test(getters_tell_what_it_is),
      cmocka_unit_test(update_and_get),
      cmocka_unit_test(update_fails_without_a_trace),
      cmocka_unit_test(get_asks_shapes_and_checks_capacity),
      cmocka_unit_test(views_show_memory_in_place),
      cmocka_unit_test(truncate_and_reset),
      cmocka_unit_test(memory_figures),
      cmocka_unit_test(halves_have_the_specified_bits),
      cmocka_unit_test(memory_comes_from_the_callers_allocator),
      cmocka_unit_test(clones_are_independent),
      cmocka_unit_test(a_second_entry_is_busy),
      cmocka_unit_test(a_models_cache_is_read_the_same_way),
      cmocka_unit_test(a_sessions_cache_is_for_reading),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

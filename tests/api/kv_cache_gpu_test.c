/* SPDX-License-Identifier: Apache-2.0 */
/* GPU caches through C: each documented error of every function, what lies where on the device and
 * what the counters there say after every step, failures at each call of the allocator, the
 * library's own allocator. Caches of float32 and of binary16 go through the same tests, then the
 * roundings of the latter. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "api_test.h"

#include "gpu_allocator.h"

#include "support/nearest_half.h"

#include <unistd.h>

enum { LAYERS = 3, ROOM = 6, HEADS = 2, HEAD_DIM = 5, ROW = HEADS * HEAD_DIM };

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

/* What GPU caches keep in the test that runs. */
static const char* type = "fp32";
static int use_fp32(void** state) {
  (void)state;
  type = "fp32";
  return 0;
}
static int use_fp16(void** state) {
  (void)state;
  type = "fp16";
  return 0;
}
static int is_fp16(void) { return strcmp(type, "fp16") == 0; }
static size_t element_bytes(void) { return is_fp16() ? 2 : 4; }

static gen_status new_gpu(const gen_gpu_allocator* table, kv_cache** cache) {
  return is_fp16()
             ? kv_cache_gpu_new_typed(table, LAYERS, ROOM, HEADS, HEAD_DIM, type, cache, &error)
             : kv_cache_gpu_new(table, LAYERS, ROOM, HEADS, HEAD_DIM, cache, &error);
}

static kv_cache* make_gpu(struct gpu_memory* gpu) {
  const gen_gpu_allocator table = gpu_table(gpu);
  kv_cache* cache = NULL;
  assert_ok(new_gpu(&table, &cache), error);
  return cache;
}

/* Rows on the device, as appends from there want them, and their release. */
static void* put_rows(struct gpu_memory* gpu, const float* rows, size_t n) {
  void* at = NULL;
  const int fail_at = gpu->fail_at;
  gpu->fail_at = 0;
  assert_int_equal(gpu_allocate(gpu, n * sizeof *rows, &at), GEN_OK);
  gpu->fail_at = fail_at;
  gpu_write(gpu, at, rows, n * sizeof *rows);
  return at;
}

static kv_cache* make_tensor(struct gpu_memory* gpu, const char* dtype) {
  const gen_gpu_allocator table = gpu_table(gpu);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tensor_new(NULL, LAYERS, ROOM, dtype, &cache, &error), error);
  assert_ok(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), error);
  return cache;
}

/* A row of a layer at a position: whole numbers that binary16 holds. */
static const float* row(int layer, int position, int is_v) {
  static float values[2][ROW];
  for (int i = 0; i < ROW; ++i)
    values[is_v][i] = (float)(1 + is_v + 2 * (i + ROW * (position + ROOM * layer)));
  return values[is_v];
}

static gen_status append(kv_cache* cache, int layer, int position) {
  return kv_cache_gpu_append(cache, layer, row(layer, position, 0), row(layer, position, 1),
                             position, &error);
}

static void assert_device_row(struct gpu_memory* gpu, kv_cache* cache, int layer, int position) {
  const void* at[2] = {NULL, NULL};
  assert_ok(kv_cache_gpu_pointers(cache, layer, &at[0], &at[1], NULL, &error), error);
  for (int is_v = 0; is_v < 2; ++is_v) {
    unsigned char found[ROW * sizeof(float)];
    const size_t bytes = ROW * element_bytes();
    gpu_read(gpu, found, (const char*)at[is_v] + (size_t)position * bytes, bytes);
    uint16_t halves[ROW];
    for (int i = 0; i < ROW; ++i) halves[i] = nearest_half(row(layer, position, is_v)[i]);
    const void* want = is_fp16() ? (const void*)halves : row(layer, position, is_v);
    assert_memory_equal(found, want, bytes);
  }
}

static void end(struct gpu_memory* gpu, kv_cache* cache) {
  kv_cache_free(cache);
  assert_int_equal(gpu->live, 0);
  assert_int_equal(gpu->mistakes, 0);
}

static void new_takes_what_it_says(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  gen_gpu_allocator table = gpu_table(&gpu);
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(kv_cache_gpu_new(NULL, 1, 1, 1, 1, &cache, &error), bad, "allocator", error);
  assert_null(cache);
  assert_fails(kv_cache_gpu_new(&table, 0, 1, 1, 1, &cache, &error), bad,
               "0 layers are outside [1, 65536]", error);
  assert_fails(kv_cache_gpu_new(&table, 65537, 1, 1, 1, &cache, &error), bad,
               "65537 layers are outside [1, 65536]", error);
  assert_fails(kv_cache_gpu_new(&table, 1, 0, 1, 1, &cache, &error), bad, "max_seq_len 0", error);
  assert_fails(kv_cache_gpu_new(&table, 1, 1, 0, 1, &cache, &error), bad,
               "0 heads of 1 elements: both must be at least 1", error);
  assert_fails(kv_cache_gpu_new(&table, 1, 1, 65536, 65536, &cache, &error), bad,
               "at most 2147483647", error);
  assert_fails(kv_cache_gpu_new(&table, 1, 1, 1, 1, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_gpu_new_typed(&table, 1, 1, 1, 1, type, NULL, &error), bad, "out", error);
  cache = (kv_cache*)&error;
  assert_fails(kv_cache_gpu_new_typed(NULL, 1, 1, 1, 1, type, &cache, &error), bad, "allocator",
               error);
  assert_null(cache);
  assert_fails(kv_cache_gpu_new_typed(&table, 1, 1, 0, 1, type, &cache, &error), bad, "0 heads",
               error);
  static const char* const unknown[] = {"q8_0", "f16", "FP16", ""};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i) {
    char text[64];
    snprintf(text, sizeof text, "a GPU cache of %s: known are fp32, fp16", unknown[i]);
    cache = (kv_cache*)&error;
    assert_fails(kv_cache_gpu_new_typed(&table, 1, 1, 1, 1, unknown[i], &cache, &error), bad, text,
                 error);
    assert_null(cache);
  }
  table.copy = NULL;
  assert_fails(kv_cache_gpu_new(&table, 1, 1, 1, 1, &cache, &error), bad, "copy", error);
  table.struct_size = 8;
  assert_fails(kv_cache_gpu_new(&table, 1, 1, 1, 1, &cache, &error), bad, "struct_size", error);
  assert_int_equal(gpu.calls, 0);

  /* As published: 26 layers of 512 positions of 8 heads of 256. */
  table = gpu_table(&gpu);
  for (int i = 0; i < 3; ++i) { /* kv_cache_gpu_new, no type, the type */
    const int half = i == 2 && is_fp16();
    const int before = gpu.allocations;
    assert_ok(i == 0 ? kv_cache_gpu_new(&table, 26, 512, 8, 256, &cache, &error)
                     : kv_cache_gpu_new_typed(&table, 26, 512, 8, 256, i == 1 ? NULL : type, &cache,
                                              &error),
              error);
    assert_int_equal(gpu.allocations - before, 53);
    int of_buffers = 0, of_counters = 0;
    for (int at = 0; at < GPU_PIECES; ++at) {
      if (gpu.pieces[at].at == NULL) continue;
      of_buffers += gpu.pieces[at].bytes == (half ? 2097152 : 4194304);
      of_counters += gpu.pieces[at].bytes == 12;
    }
    assert_int_equal(of_buffers, 52);
    assert_int_equal(of_counters, 1);
    assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(cache)), 0);
    assert_string_equal(kv_cache_kind(cache), "gpu");
    assert_string_equal(kv_cache_dtype(cache), half ? "fp16" : "fp32");
    assert_int_equal(kv_cache_is_lossy(cache), half);
    assert_int_equal(kv_cache_capabilities(cache) & (KV_CACHE_CAN_VIEW | KV_CACHE_HAS_FULL_BUFFER),
                     KV_CACHE_HAS_FULL_BUFFER);
    end(&gpu, cache);
  }
}

static void figures_tell_the_type(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  size_t resident = 0, payload = 0;
  assert_ok(append(cache, 0, 0), error);
  assert_ok(append(cache, 1, 0), error);
  assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, NULL, &error), error);
  assert_int_equal(resident, 2 * LAYERS * ROOM * ROW * element_bytes() + 12);
  assert_int_equal(payload, 2 * 2 * ROW * element_bytes());
  kv_cache_span span = {.struct_size = sizeof span};
  assert_ok(kv_cache_full_buffer(cache, 2, &span, &error), error);
  assert_int_equal(span.type, is_fp16() ? KV_CACHE_TYPE_F16 : KV_CACHE_TYPE_F32);
  assert_int_equal(span.batch, 1);
  assert_int_equal(span.seq, ROOM);
  assert_int_equal(span.k_dim, ROW);
  assert_int_equal(span.v_dim, ROW);
  assert_int_equal(span.k_seq_stride, ROW * element_bytes());
  assert_int_equal(span.v_seq_stride, ROW * element_bytes());
  assert_int_equal(span.k_batch_stride, ROOM * ROW * element_bytes());
  const void *k = NULL, *v = NULL;
  assert_ok(kv_cache_gpu_pointers(cache, 2, &k, &v, NULL, &error), error);
  assert_ptr_equal(span.k, k);
  assert_ptr_equal(span.v, v);
  end(&gpu, cache);
}

static void appends_come_in_order(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  const int32_t* counter = kv_cache_gpu_counter_ptr(cache);
  assert_ptr_equal(counter, kv_cache_counter_device_ptr(cache));
  assert_ptr_equal(counter, kv_cache_seq_len_device_ptr(cache));
  const float* k = row(0, 0, 0);
  assert_fails(kv_cache_gpu_append(NULL, 0, k, k, 0, &error), bad, "cache", error);
  assert_fails(kv_cache_gpu_append(cache, 0, NULL, k, 0, &error), bad, "k", error);
  assert_fails(kv_cache_gpu_append(cache, 0, k, NULL, 0, &error), bad, "v", error);
  assert_fails(append(cache, LAYERS, 0), GEN_ERROR_OUT_OF_RANGE, "layer 3", error);
  assert_fails(append(cache, -1, 0), GEN_ERROR_OUT_OF_RANGE, "layer -1", error);
  assert_fails(append(cache, 0, 1), GEN_ERROR_SEQUENCE, "position 1", error);
  static const int order[2][LAYERS] = {{0, 1, 2}, {2, 0, 1}};
  for (int p = 0; p < ROOM; ++p) {
    for (int i = 0; i < LAYERS; ++i) {
      const int layer = order[p % 2][i];
      assert_ok(append(cache, layer, p), error);
      assert_device_row(&gpu, cache, layer, p);
      const int32_t length = i + 1 < LAYERS ? p : p + 1;
      assert_int_equal(kv_cache_seq_len(cache), length);
      assert_int_equal(gpu_int32(&gpu, counter), length);
      if (i + 1 < LAYERS) assert_fails(append(cache, layer, p), GEN_ERROR_STATE, "already", error);
    }
  }
  assert_fails(append(cache, 0, ROOM), GEN_ERROR_CACHE_FULL, "6 of 6", error);
  const int32_t shape[3] = {1, ROOM, ROW};
  int32_t found[3];
  float out[ROOM * ROW];
  assert_ok(kv_cache_get(cache, 1, out, ROOM * ROW, NULL, 0, found, NULL, &error), error);
  assert_memory_equal(found, shape, sizeof shape);
  for (int p = 0; p < ROOM; ++p)
    assert_memory_equal(out + p * ROW, row(1, p, 0), ROW * sizeof(float));

  assert_ok(kv_cache_truncate(cache, 9, &error), error); /* nothing is made longer */
  assert_int_equal(gpu_int32(&gpu, counter), ROOM);
  assert_ok(kv_cache_truncate(cache, 2, &error), error);
  assert_int_equal(gpu_int32(&gpu, counter), 2);
  assert_int_equal(kv_cache_seq_len(cache), 2);
  assert_ok(append(cache, 0, 2), error);
  gpu.fail_at = gpu.calls + 1;
  assert_int_equal(kv_cache_reset(cache, &error), GEN_ERROR_DEVICE);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 3);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(gpu_int32(&gpu, counter), 0);
  assert_ok(append(cache, 2, 0), error);
  end(&gpu, cache);
}

static void the_device_appends(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  const void *k = NULL, *v = NULL;
  assert_ok(append(cache, 0, 0), error);
  assert_ok(append(cache, 1, 0), error);
  assert_ok(append(cache, 2, 0), error);
  /* The rows of layer 0 are what layers get at the next position: those in the cache where they are
   * float32. */
  assert_ok(kv_cache_gpu_pointers(cache, 0, &k, &v, NULL, &error), error);
  void* rows[2] = {put_rows(&gpu, row(0, 0, 0), ROW), put_rows(&gpu, row(0, 0, 1), ROW)};
  if (is_fp16()) {
    k = rows[0];
    v = rows[1];
  }
  assert_fails(kv_cache_gpu_append_device(NULL, 0, k, v, &error), bad, "cache", error);
  assert_fails(kv_cache_gpu_append_device(cache, 0, NULL, v, &error), bad, "k", error);
  assert_fails(kv_cache_gpu_append_device(cache, 9, k, v, &error), GEN_ERROR_OUT_OF_RANGE,
               "layer 9", error);
  for (int layer = 0; layer < LAYERS; ++layer) {
    assert_ok(kv_cache_gpu_append_device(cache, layer, k, v, &error), error);
    if (layer == 0)
      assert_fails(kv_cache_gpu_append_device(cache, 0, k, v, &error), GEN_ERROR_STATE, "already",
                   error);
  }
  assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(cache)), 2);
  float out[2 * ROW];
  assert_ok(kv_cache_get(cache, 2, NULL, 0, out, 2 * ROW, NULL, NULL, &error), error);
  assert_memory_equal(out, row(2, 0, 1), ROW * sizeof(float));
  assert_memory_equal(out + ROW, row(0, 0, 1), ROW * sizeof(float));
  assert_ok(kv_cache_gpu_append_device(cache, 0, k, v, &error), error);
  assert_ok(kv_cache_gpu_append_device(cache, 1, k, v, &error), error);
  int failures = 0; /* at each copy: of both tensors, to the host and back where that rounds, and of
                       the counter */
  for (;; ++failures) {
    gpu.fail_at = gpu.calls + 1 + failures;
    gpu.fail_with = failures % 2 == 0 ? GEN_ERROR_OUT_OF_MEMORY : GEN_ERROR_INTERNAL;
    if (kv_cache_gpu_append_device(cache, 2, k, v, &error) == GEN_OK) break;
    assert_int_equal(error.code, GEN_ERROR_DEVICE);
    assert_non_null(strstr(error.message, "copy"));
    assert_int_equal(kv_cache_layer_seq_len(cache, 2), 2);
    assert_int_equal(kv_cache_seq_len(cache), 2);
    float same[2 * ROW];
    assert_ok(kv_cache_get(cache, 2, NULL, 0, same, 2 * ROW, NULL, NULL, &error), error);
    assert_memory_equal(same, out, sizeof out);
  }
  assert_int_equal(failures, is_fp16() ? 5 : 3);
  gpu.fail_at = 0;
  for (int p = 3; p < ROOM; ++p) {
    for (int layer = 0; layer < LAYERS; ++layer)
      assert_ok(kv_cache_gpu_append_device(cache, layer, k, v, &error), error);
  }
  assert_fails(kv_cache_gpu_append_device(cache, 0, k, v, &error), GEN_ERROR_CACHE_FULL, "6 of 6",
               error);
  for (int layer = 0; layer < LAYERS; ++layer) {
    float all[2][ROOM * ROW];
    assert_ok(
        kv_cache_get(cache, layer, all[0], ROOM * ROW, all[1], ROOM * ROW, NULL, NULL, &error),
        error);
    for (int p = 1; p < ROOM; ++p) {
      for (int is_v = 0; is_v < 2; ++is_v)
        assert_memory_equal(all[is_v] + p * ROW, row(0, 0, is_v), ROW * sizeof(float));
    }
  }
  for (int is_v = 0; is_v < 2; ++is_v) assert_int_equal(gpu_release(&gpu, rows[is_v]), GEN_OK);
  end(&gpu, cache);
}

/* A device whose backend is not there has no kernels, and is only told so when all else is right.
 */
static void appends_on_streams_are_checked(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  const void *k = NULL, *v = NULL;
  int stream = 0;
  for (int layer = 0; layer < LAYERS; ++layer) assert_ok(append(cache, layer, 0), error);
  assert_ok(kv_cache_gpu_pointers(cache, 0, &k, &v, NULL, &error), error);
  assert_fails(kv_cache_gpu_append_stream(NULL, 0, k, v, &stream, &error), bad, "cache", error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, NULL, v, &stream, &error), bad, "k", error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, k, NULL, &stream, &error), bad, "v", error);
  assert_fails(kv_cache_gpu_append_stream(cache, LAYERS, k, v, &stream, &error),
               GEN_ERROR_OUT_OF_RANGE, "layer 3", error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, (const char*)k + 1, v, &stream, &error), bad,
               "no multiple of 4", error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, k, v, NULL, &error), bad, "stream of device 3",
               error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, k, v, &stream, &error), GEN_ERROR_UNSUPPORTED,
               "backend cuda", error);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 1);
  assert_ok(append(cache, 0, 1), error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, k, v, &stream, &error), GEN_ERROR_STATE,
               "already", error);
  /* What the counter holds is not known: it is set before. */
  assert_ok(append(cache, 1, 1), error);
  gpu.fail_at = gpu.calls + 3;
  assert_int_equal(append(cache, 2, 1), GEN_ERROR_DEVICE);
  gpu.fail_at = gpu.calls + 1;
  assert_fails(kv_cache_gpu_append_stream(cache, 2, k, v, &stream, &error), GEN_ERROR_DEVICE,
               "copy", error);
  assert_fails(kv_cache_gpu_append_stream(cache, 2, k, v, &stream, &error), GEN_ERROR_UNSUPPORTED,
               "backend cuda", error);
  end(&gpu, cache);
}

/* In host memory that poses as a device it is done at once. */
static void appends_without_a_stream(void** state) {
  (void)state;
  gen_gpu_allocator* table = NULL;
  kv_cache* cache = NULL;
  assert_ok(gen_gpu_allocator_host(&table, &error), error);
  assert_ok(new_gpu(table, &cache), error);
  const int32_t* counter = kv_cache_gpu_counter_ptr(cache);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, row(0, 0, 0), row(0, 0, 1), table, &error), bad,
               "no streams", error);
  for (int p = 0; p < ROOM; ++p) {
    for (int layer = LAYERS - 1; layer >= 0; --layer) {
      if (p % 2 == 1 && layer == 1) { /* between those of the host */
        assert_ok(append(cache, layer, p), error);
      } else {
        const float *k = row(layer, p, 0), *v = row(layer, p, 1);
        assert_ok(kv_cache_gpu_append_stream(cache, layer, k, v, NULL, &error), error);
      }
      assert_int_equal(*counter, layer == 0 ? p + 1 : p);
      assert_int_equal(kv_cache_seq_len(cache), *counter);
    }
  }
  assert_fails(kv_cache_gpu_append_stream(cache, 0, row(0, 0, 0), row(0, 0, 1), NULL, &error),
               GEN_ERROR_CACHE_FULL, "6 of 6", error);
  assert_ok(kv_cache_gpu_sync_counter(cache, &error), error);
  float out[2][ROOM * ROW];
  for (int layer = 0; layer < LAYERS; ++layer) {
    assert_ok(
        kv_cache_get(cache, layer, out[0], ROOM * ROW, out[1], ROOM * ROW, NULL, NULL, &error),
        error);
    for (int p = 0; p < ROOM; ++p) {
      for (int is_v = 0; is_v < 2; ++is_v) {
        assert_memory_equal(out[is_v] + p * ROW, row(layer, p, is_v), ROW * sizeof(float));
      }
    }
  }
  /* Somebody else has moved the counter to its end: what is appended is dropped, and that is told
   * once. */
  assert_ok(kv_cache_truncate(cache, 2, &error), error);
  *(int32_t*)(uintptr_t)counter = ROOM;
  for (int layer = 0; layer < LAYERS; ++layer) {
    assert_ok(kv_cache_gpu_append_stream(cache, layer, row(0, 0, 0), row(0, 0, 1), NULL, &error),
              error);
  }
  assert_int_equal(*counter, ROOM);
  assert_fails(kv_cache_gpu_sync_counter(cache, &error), GEN_ERROR_CACHE_FULL, "dropped", error);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_ok(kv_cache_sync_counter(cache, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), ROOM);
  *(int32_t*)(uintptr_t)counter = -1;
  assert_ok(kv_cache_truncate(cache, ROOM - 1, &error), error);
  *(int32_t*)(uintptr_t)counter = -1;
  assert_ok(kv_cache_gpu_append_stream(cache, 0, row(0, 0, 0), row(0, 0, 1), NULL, &error), error);
  *(int32_t*)(uintptr_t)counter = ROOM;
  assert_fails(kv_cache_sync_counter(cache, &error), GEN_ERROR_CACHE_FULL, "dropped", error);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(*counter, 0);
  assert_ok(kv_cache_sync_counter(cache, &error), error);
  /* A state that is loaded is another start, too. */
  unsigned char bytes[4096];
  size_t n = 0;
  assert_ok(kv_cache_save_buffer(cache, bytes, sizeof bytes, &n, &error), error);
  ((int32_t*)(uintptr_t)counter)[0] = 4;
  ((int32_t*)(uintptr_t)counter)[1] = 1;
  assert_ok(kv_cache_load_buffer(cache, bytes, n, &error), error);
  assert_int_equal(*counter, 0);
  assert_ok(kv_cache_sync_counter(cache, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), 0);
  kv_cache_free(cache);
  gen_gpu_allocator_release(table);
}

static void pointers_lead_to_the_layers(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  const void *k = &gpu, *v = &gpu;
  int32_t length = 7;
  assert_ok(kv_cache_gpu_pointers(cache, LAYERS, &k, &v, &length, &error), error);
  assert_null(k);
  assert_null(v);
  assert_int_equal(length, 0);
  assert_fails(kv_cache_gpu_pointers(NULL, 0, &k, &v, &length, &error), bad, "cache", error);
  assert_fails(kv_cache_gpu_pointer_arrays(NULL, &k, &v, &error), bad, "cache", error);
  assert_fails(kv_cache_gpu_pointer_arrays(cache, NULL, &v, &error), bad, "k", error);

  const int before = gpu.live;
  static const struct {
    int call;
    gen_status with, becomes;
  } failures[] = {{1, GEN_ERROR_OUT_OF_MEMORY, GEN_ERROR_OUT_OF_MEMORY},
                  {2, GEN_ERROR_DEVICE, GEN_ERROR_DEVICE},
                  {3, GEN_ERROR_INTERNAL, GEN_ERROR_DEVICE},
                  {4, 77, GEN_ERROR_DEVICE}};
  for (size_t i = 0; i < sizeof failures / sizeof failures[0]; ++i) {
    gpu.fail_at = gpu.calls + failures[i].call;
    gpu.fail_with = failures[i].with;
    assert_int_equal(kv_cache_gpu_pointer_arrays(cache, &k, &v, &error), failures[i].becomes);
    assert_null(k);
    assert_int_equal(gpu.live, before);
  }
  for (int again = 0; again < 2; ++again) {
    assert_ok(kv_cache_gpu_pointer_arrays(cache, &k, &v, &error), error);
    assert_int_equal(gpu.live, before + 2);
    const void* arrays[2] = {k, v};
    for (int is_v = 0; is_v < 2; ++is_v) {
      uint64_t found[LAYERS];
      gpu_read(&gpu, found, arrays[is_v], sizeof found);
      for (int layer = 0; layer < LAYERS; ++layer) {
        const void* at[2];
        assert_ok(kv_cache_gpu_pointers(cache, layer, &at[0], &at[1], NULL, &error), error);
        assert_int_equal(found[layer], (uintptr_t)at[is_v]);
      }
    }
  }
  end(&gpu, cache);
}

static void the_counter_is_believed_within_bounds(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  const int32_t* counter = kv_cache_gpu_counter_ptr(cache);
  const int32_t four = 4, beyond = ROOM + 1, below = -1;
  gpu_write(&gpu, counter, &four, sizeof four);
  assert_ok(kv_cache_gpu_sync_counter(cache, &error), error);
  for (int layer = 0; layer < LAYERS; ++layer)
    assert_int_equal(kv_cache_layer_seq_len(cache, layer), 4);
  assert_int_equal(kv_cache_seq_len(cache), 4);
  gpu_write(&gpu, counter, &beyond, sizeof beyond);
  assert_fails(kv_cache_gpu_sync_counter(cache, &error), GEN_ERROR_DEVICE, "holds 7", error);
  gpu_write(&gpu, counter, &below, sizeof below);
  assert_fails(kv_cache_sync_counter(cache, &error), GEN_ERROR_DEVICE, "holds -1", error);
  gpu_write(&gpu, counter, &four, sizeof four);
  gpu.fail_at = gpu.calls + 1;
  assert_fails(kv_cache_gpu_sync_counter(cache, &error), GEN_ERROR_DEVICE, "copy", error);
  assert_int_equal(kv_cache_seq_len(cache), 4);
  assert_ok(append(cache, 0, 4), error);
  assert_fails(kv_cache_gpu_sync_counter(NULL, &error), bad, "cache", error);
  end(&gpu, cache);
}

static void other_kinds_are_named(void** state) {
  (void)state;
  kv_cache* cache = NULL;
  const void *k = NULL, *v = NULL;
  const float* x = row(0, 0, 0);
  struct gpu_memory gpu = {0};
  const gen_gpu_allocator table = gpu_table(&gpu);
  assert_ok(kv_cache_new(1, 4, &cache, &error), error);
  assert_fails(kv_cache_gpu_append(cache, 0, x, x, 0, &error), bad, "GPU caches", error);
  assert_fails(kv_cache_gpu_append_device(cache, 0, x, x, &error), bad, "GPU caches", error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, x, x, NULL, &error), bad, "GPU caches", error);
  assert_fails(kv_cache_gpu_pointers(cache, 0, &k, &v, NULL, &error), bad, "GPU caches", error);
  assert_fails(kv_cache_gpu_pointer_arrays(cache, &k, &v, &error), bad, "GPU caches", error);
  assert_fails(kv_cache_gpu_sync_counter(cache, &error), bad, "GPU caches", error);
  assert_fails(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), bad, "tensor caches",
               error);
  assert_null(kv_cache_gpu_counter_ptr(cache));
  assert_null(kv_cache_gpu_counter_ptr(NULL));
  kv_cache_free(cache);
}

/* Whichever call of the allocator fails: the status says why, nothing is lost, and the same call
 * works then. */
static void any_call_may_fail(void** state) {
  (void)state;
  static const gen_status causes[] = {GEN_ERROR_OUT_OF_MEMORY, GEN_ERROR_DEVICE,
                                      GEN_ERROR_INTERNAL};
  for (int cause = 0; cause < 3; ++cause) {
    for (int n = 1;; ++n) {
      struct gpu_memory gpu = {0};
      const gen_gpu_allocator table = gpu_table(&gpu);
      gpu.fail_with = causes[cause];
      gpu.fail_at = n;
      kv_cache* cache = NULL;
      gen_status status = new_gpu(&table, &cache);
      if (status != GEN_OK) {
        const int of_copy = n > 2 * LAYERS + 1;
        assert_int_equal(status,
                         of_copy || cause == 1 ? GEN_ERROR_DEVICE : GEN_ERROR_OUT_OF_MEMORY);
        assert_null(cache);
        assert_int_equal(gpu.live, 0);
        continue;
      }
      for (int p = 0; p < 2; ++p) {
        for (int layer = 0; layer < LAYERS; ++layer) {
          if (append(cache, layer, p) == GEN_OK) continue;
          assert_int_equal(error.code, GEN_ERROR_DEVICE);
          assert_int_equal(kv_cache_layer_seq_len(cache, layer), p);
          assert_int_equal(kv_cache_seq_len(cache), p);
          assert_ok(append(cache, layer, p), error);
        }
        assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(cache)), p + 1);
      }
      void* rows = put_rows(&gpu, row(1, 2, 0), ROW);
      for (int layer = 0; layer < LAYERS; ++layer) {
        if (kv_cache_gpu_append_device(cache, layer, rows, rows, &error) == GEN_OK) continue;
        assert_int_equal(error.code, GEN_ERROR_DEVICE);
        assert_int_equal(kv_cache_layer_seq_len(cache, layer), 2);
        assert_device_row(&gpu, cache, layer, 1);
        assert_ok(kv_cache_gpu_append_device(cache, layer, rows, rows, &error), error);
      }
      assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(cache)), 3);
      assert_int_equal(gpu_release(&gpu, rows), GEN_OK);
      if (kv_cache_truncate(cache, 1, &error) != GEN_OK) {
        assert_int_equal(kv_cache_seq_len(cache), 3);
        assert_ok(kv_cache_truncate(cache, 1, &error), error);
      }
      assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(cache)), 1);
      assert_device_row(&gpu, cache, 1, 0);
      const int all = gpu.calls;
      end(&gpu, cache);
      if (n > all) break;
    }
  }
}

/* Keys that have come are not given where the values do not come. */
static void a_get_that_fails_gives_nothing(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  for (int layer = 0; layer < LAYERS; ++layer) assert_ok(append(cache, layer, 0), error);
  int failures = 0;
  for (;; ++failures) {
    float found[2][ROW];
    for (int i = 0; i < 2 * ROW; ++i) found[i / ROW][i % ROW] = -7;
    int32_t shape[3] = {-1, -1, -1};
    gpu.fail_at = gpu.calls + 1 + failures;
    gpu.fail_with = GEN_ERROR_DEVICE;
    if (kv_cache_get(cache, 1, found[0], ROW, found[1], ROW, shape, NULL, &error) == GEN_OK) break;
    assert_int_equal(error.code, GEN_ERROR_DEVICE);
    for (int i = 0; i < 2 * ROW; ++i) assert_true(found[i / ROW][i % ROW] == -7);
    for (int i = 0; i < 3; ++i) assert_int_equal(shape[i], 0);
  }
  assert_int_equal(failures, 2);
  gpu.fail_at = 0;
  end(&gpu, cache);
}

/* Each copy from the device may fail: nothing is given, no file is there, and the cache stays. */
static void clones_and_states_may_fail(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  for (int layer = 0; layer < LAYERS; ++layer) assert_ok(append(cache, layer, 0), error);
  gpu.fail_with = GEN_ERROR_DEVICE;
  char path[64];
  snprintf(path, sizeof path, "/tmp/kv_cache_gpu_test_%d", (int)getpid());
  unsigned char bytes[4096];
  enum { CLONE, SAVE, SAVE_BUFFER, CALLS };
  for (int call = CLONE; call < CALLS; ++call) {
    const int live = gpu.live;
    int failures = 0;
    for (;; ++failures) {
      kv_cache* copy = NULL;
      size_t n = 0;
      gpu.fail_at = gpu.calls + 1 + failures;
      const gen_status got = call == CLONE ? kv_cache_clone(cache, &copy, &error)
                             : call == SAVE
                                 ? kv_cache_save(cache, path, &error)
                                 : kv_cache_save_buffer(cache, bytes, sizeof bytes, &n, &error);
      gpu.fail_at = 0;
      if (got == GEN_OK) {
        kv_cache_free(copy);
        break;
      }
      assert_int_equal(got, GEN_ERROR_DEVICE);
      assert_null(copy);
      assert_int_equal(gpu.live, live);
      assert_int_not_equal(access(path, F_OK), 0);
      for (int layer = 0; layer < LAYERS; ++layer) assert_device_row(&gpu, cache, layer, 0);
      assert_int_equal(kv_cache_seq_len(cache), 1);
    }
    assert_true(failures >= 2 * LAYERS);
    if (call == SAVE) assert_int_equal(remove(path), 0);
  }
  end(&gpu, cache);
}

/* The order in which kv_cache_update lists its errors. */
static void a_shape_is_checked_before_room(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  static const float rows[2 * (ROOM + 1) * (ROW + 1)];
  assert_fails(kv_cache_update(cache, 0, rows, rows, 1, ROOM + 1, ROW + 1, &error), bad, "dim 11",
               error);
  assert_fails(kv_cache_update(cache, 0, rows, rows, 2, ROOM + 1, ROW, &error), bad, "batch 2",
               error);
  assert_fails(kv_cache_update(cache, LAYERS, rows, rows, 2, 1, ROW, &error),
               GEN_ERROR_OUT_OF_RANGE, "layer 3", error);
  assert_fails(kv_cache_update(cache, 0, rows, rows, 1, ROOM + 1, ROW, &error),
               GEN_ERROR_CACHE_FULL, "no room", error);
  assert_ok(kv_cache_update(cache, 0, rows, rows, 1, ROOM, ROW, &error), error);
  end(&gpu, cache);
}

/* A clone and a state hold the same and go on alone; states fit tensor caches of one lane, too. */
static void clones_and_states(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  kv_cache* cache = make_gpu(&gpu);
  kv_cache* copy = NULL;
  unsigned char bytes[4096];
  size_t n = 0;
  for (int p = 0; p < 3; ++p) {
    for (int layer = 0; layer < LAYERS; ++layer) assert_ok(append(cache, layer, p), error);
  }
  assert_ok(kv_cache_save_buffer(cache, bytes, sizeof bytes, &n, &error), error);
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  kv_cache_free(cache);
  assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(copy)), 3);
  assert_device_row(&gpu, copy, 2, 1);
  assert_ok(append(copy, 1, 3), error);
  end(&gpu, copy);
  copy = make_gpu(&gpu);
  gpu.fail_at = gpu.calls + 4;
  assert_int_equal(kv_cache_load_buffer(copy, bytes, n, &error), GEN_ERROR_DEVICE);
  assert_int_equal(kv_cache_seq_len(copy), 0);
  char path[] = "/tmp/kv_cache_gpu_test_XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0 && write(file, bytes, n) == (ssize_t)n && close(file) == 0);
  gpu.fail_at = gpu.calls + 2 * LAYERS + 1; /* the counter */
  assert_int_equal(kv_cache_load(copy, path, &error), GEN_ERROR_DEVICE);
  assert_int_equal(kv_cache_seq_len(copy), 0);
  assert_int_equal(remove(path), 0);
  assert_ok(kv_cache_load_buffer(copy, bytes, n, &error), error);
  assert_int_equal(gpu_int32(&gpu, kv_cache_gpu_counter_ptr(copy)), 3);
  assert_device_row(&gpu, copy, 2, 2);
  end(&gpu, copy);
  copy = make_tensor(&gpu, type);
  assert_ok(kv_cache_load_buffer(copy, bytes, n, &error), error);
  assert_int_equal(gpu_int32(&gpu, kv_cache_counter_device_ptr(copy)), 3);
  assert_int_equal(gpu_int32(&gpu, kv_cache_seq_len_device_ptr(copy)), 3);
  float out[3 * ROW];
  assert_ok(kv_cache_get(copy, 1, out, 3 * ROW, NULL, 0, NULL, NULL, &error), error);
  assert_memory_equal(out + 2 * ROW, row(1, 2, 0), ROW * sizeof(float));
  end(&gpu, copy);
}

/* A state goes between GPU caches and tensor caches of the host that keep the same, and to no
 * other. */
static void states_fit_caches_of_the_host(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    struct gpu_memory gpu = {0};
    kv_cache* host = NULL;
    if (kind == 0) {
      assert_ok(kv_cache_tensor_new(NULL, LAYERS, ROOM, type, &host, &error), error);
    } else {
      assert_ok(is_fp16() ? kv_cache_fp16_new(LAYERS, ROOM, &host, &error)
                          : kv_cache_new(LAYERS, ROOM, &host, &error),
                error);
    }
    for (int p = 0; p < 4; ++p) {
      for (int layer = 0; layer < LAYERS; ++layer) {
        assert_ok(
            kv_cache_update(host, layer, row(layer, p, 0), row(layer, p, 1), 1, 1, ROW, &error),
            error);
      }
    }
    unsigned char bytes[2][4096];
    size_t n[2] = {0, 0};
    assert_ok(kv_cache_save_buffer(host, bytes[0], sizeof bytes[0], &n[0], &error), error);
    kv_cache* cache = make_gpu(&gpu);
    assert_ok(kv_cache_load_buffer(cache, bytes[0], n[0], &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 4);
    for (int layer = 0; layer < LAYERS; ++layer) {
      for (int p = 0; p < 4; ++p) assert_device_row(&gpu, cache, layer, p);
    }
    assert_ok(append(cache, 0, 4), error);
    assert_ok(kv_cache_truncate(cache, 4, &error), error);
    assert_ok(kv_cache_save_buffer(cache, bytes[1], sizeof bytes[1], &n[1], &error), error);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    assert_ok(kv_cache_reset(host, &error), error);
    assert_ok(kv_cache_load_buffer(host, bytes[1], n[1], &error), error);
    float out[4 * ROW];
    assert_ok(kv_cache_get(host, 2, NULL, 0, out, 4 * ROW, NULL, NULL, &error), error);
    assert_memory_equal(out + 3 * ROW, row(2, 3, 1), ROW * sizeof(float));

    const gen_gpu_allocator table = gpu_table(&gpu);
    kv_cache* other = NULL;
    const char* another = is_fp16() ? "fp32" : "fp16";
    assert_ok(
        kv_cache_gpu_new_typed(&table, LAYERS, ROOM, HEADS, HEAD_DIM, another, &other, &error),
        error);
    assert_ok(kv_cache_gpu_append(other, 0, row(0, 0, 0), row(0, 0, 1), 0, &error), error);
    assert_ok(kv_cache_reset(other, &error), error);
    assert_fails(kv_cache_load_buffer(other, bytes[0], n[0], &error), bad,
                 is_fp16() ? "f16" : "f32", error);
    assert_int_equal(kv_cache_seq_len(other), 0);
    kv_cache_free(other);
    kv_cache_free(host);
    end(&gpu, cache);
  }
}

/* Ties, overflow, what is below the normal numbers and NaN, whichever way a row comes. */
static void halves_are_the_nearest(void** state) {
  (void)state;
  enum { WIDE = HARD_FOR_HALF, WAYS = 4 };
  struct gpu_memory gpu = {0};
  const gen_gpu_allocator theirs = gpu_table(&gpu);
  gen_gpu_allocator* host = NULL;
  assert_ok(gen_gpu_allocator_host(&host, &error), error);
  for (int way = 0; way < WAYS; ++way) {
    float rows[2][WIDE];
    hard_row(rows[0], WIDE, 0);
    hard_row(rows[1], WIDE, 11);
    kv_cache* cache = NULL;
    assert_ok(kv_cache_gpu_new_typed(way == 3 ? host : &theirs, 1, 2, 2, WIDE / 2, "fp16", &cache,
                                     &error),
              error);
    void* at[2] = {put_rows(&gpu, rows[0], WIDE), put_rows(&gpu, rows[1], WIDE)};
    for (int p = 0; p < 2; ++p) {
      if (way == 0) assert_ok(kv_cache_gpu_append(cache, 0, rows[0], rows[1], p, &error), error);
      if (way == 1) assert_ok(kv_cache_gpu_append_device(cache, 0, at[0], at[1], &error), error);
      if (way == 2)
        assert_ok(kv_cache_update(cache, 0, rows[0], rows[1], 1, 1, WIDE, &error), error);
      if (way == 3)
        assert_ok(kv_cache_gpu_append_stream(cache, 0, rows[0], rows[1], NULL, &error), error);
    }
    const void* buffers[2] = {NULL, NULL};
    assert_ok(kv_cache_gpu_pointers(cache, 0, &buffers[0], &buffers[1], NULL, &error), error);
    float out[2][2 * WIDE];
    assert_ok(kv_cache_get(cache, 0, out[0], 2 * WIDE, out[1], 2 * WIDE, NULL, NULL, &error),
              error);
    for (int is_v = 0; is_v < 2; ++is_v) {
      uint16_t found[2 * WIDE];
      if (way == 3) {
        memcpy(found, buffers[is_v], sizeof found);
      } else {
        gpu_read(&gpu, found, buffers[is_v], sizeof found);
      }
      for (int i = 0; i < 2 * WIDE; ++i) {
        const uint16_t want = nearest_half(rows[is_v][i % WIDE]);
        assert_int_equal(found[i], want);
        if ((want & 0x7FFF) > 0x7C00) {
          assert_true(isnan(out[is_v][i]));
        } else {
          const float number = half_number(want);
          assert_memory_equal(&out[is_v][i], &number, sizeof number);
        }
      }
      assert_int_equal(gpu_release(&gpu, at[is_v]), GEN_OK);
    }
    kv_cache_free(cache);
  }
  gen_gpu_allocator_release(host);
  assert_int_equal(gpu.live, 0);
  assert_int_equal(gpu.mistakes, 0);
}

static void the_library_s_own_allocator(void** state) {
  (void)state;
  gen_gpu_allocator* table = NULL;
  size_t pieces = 7, bytes = 7, peak = 7;
  assert_fails(gen_gpu_allocator_host(NULL, &error), bad, "out", error);
  assert_ok(gen_gpu_allocator_host(&table, &error), error);
  assert_int_equal(table->struct_size, sizeof *table);
  assert_int_equal(table->device, -1);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_gpu_new(table, 2, 4, 1, 8, &cache, &error), error);
  assert_ok(gen_gpu_allocator_counters(table, &pieces, &bytes, &peak, &error), error);
  assert_int_equal(pieces, 5);
  assert_int_equal(bytes, 4 * 4 * 8 * 4 + 12);
  assert_int_equal(peak, bytes);
  size_t resident = 0;
  assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
  assert_int_equal(resident, bytes);
  void* pinned = NULL;
  assert_int_equal(table->allocate_pinned(table->user, 100, &pinned), GEN_OK);
  assert_int_equal((uintptr_t)pinned % 256, 0);
  assert_int_equal(table->release_pinned(table->user, pinned), GEN_OK);
  assert_int_equal(table->copy(table->user, NULL, NULL, 0, 3), bad);
  assert_int_equal(table->allocate(table->user, SIZE_MAX, &pinned), GEN_ERROR_OUT_OF_MEMORY);
  assert_ok(gen_gpu_allocator_counters(table, NULL, &bytes, &peak, &error), error);
  assert_int_equal(peak, bytes + 100);
  gen_gpu_allocator_release(table); /* the cache keeps it */
  for (int layer = 0; layer < 2; ++layer) assert_ok(append(cache, layer, 0), error);
  kv_cache_free(cache);

  struct gpu_memory gpu = {0};
  gen_gpu_allocator own = gpu_table(&gpu);
  assert_fails(gen_gpu_allocator_counters(NULL, &pieces, &bytes, &peak, &error), bad, "allocator",
               error);
  assert_fails(gen_gpu_allocator_counters(&own, &pieces, &bytes, &peak, &error), bad,
               "of the library", error);
  assert_int_equal(pieces + bytes + peak, 0);
  gen_gpu_allocator_release(&own);
  gen_gpu_allocator_release(NULL);
}

int main(void) {
  const struct CMUnitTest of_a_type[] = {
      cmocka_unit_test(new_takes_what_it_says),
      cmocka_unit_test(figures_tell_the_type),
      cmocka_unit_test(appends_come_in_order),
      cmocka_unit_test(the_device_appends),
      cmocka_unit_test(appends_on_streams_are_checked),
      cmocka_unit_test(appends_without_a_stream),
      cmocka_unit_test(pointers_lead_to_the_layers),
      cmocka_unit_test(the_counter_is_believed_within_bounds),
      cmocka_unit_test(any_call_may_fail),
      cmocka_unit_test(a_get_that_fails_gives_nothing),
      cmocka_unit_test(clones_and_states_may_fail),
      cmocka_unit_test(a_shape_is_checked_before_room),
      cmocka_unit_test(clones_and_states),
      cmocka_unit_test(states_fit_caches_of_the_host),
  };
  const struct CMUnitTest others[] = {
      cmocka_unit_test(halves_are_the_nearest),
      cmocka_unit_test(other_kinds_are_named),
      cmocka_unit_test(the_library_s_own_allocator),
  };
  return cmocka_run_group_tests_name("kv_cache_gpu fp32", of_a_type, use_fp32, NULL) +
         cmocka_run_group_tests_name("kv_cache_gpu fp16", of_a_type, use_fp16, NULL) +
         cmocka_run_group_tests_name("kv_cache_gpu", others, NULL, NULL);
}

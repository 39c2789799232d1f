/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor caches in the memory of a device through C: where rows lie there, what the counters there
 * say after every step, copies and memory that fail, and when a cache can go to a device. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "api_test.h"

#include "gpu_allocator.h"

enum { LAYERS = 3, ROOM = 6 };

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static kv_cache* make_tensor(struct gpu_memory* gpu, const char* dtype) {
  const gen_gpu_allocator table = gpu_table(gpu);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tensor_new(NULL, LAYERS, ROOM, dtype, &cache, &error), error);
  assert_ok(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), error);
  return cache;
}

static void end(struct gpu_memory* gpu, kv_cache* cache) {
  kv_cache_free(cache);
  assert_int_equal(gpu->live, 0);
  assert_int_equal(gpu->mistakes, 0);
}

/* Two lanes of five elements, as many positions as asked for. */
static void rows_of(float* k, int layer, int start, int seq) {
  for (int b = 0, i = 0; b < 2; ++b) {
    for (int p = start; p < start + seq; ++p) {
      for (int d = 0; d < 5; ++d, ++i) k[i] = (float)(1 + d + 8 * (p + 8 * (b + 2 * layer)));
    }
  }
}

static void tensor_caches_lie_on_the_device(void** state) {
  (void)state;
  for (int is_half = 0; is_half < 2; ++is_half) {
    struct gpu_memory gpu = {0};
    kv_cache* cache = make_tensor(&gpu, is_half ? "fp16" : "fp32");
    const int32_t* next = kv_cache_counter_device_ptr(cache);
    const int32_t* length = kv_cache_seq_len_device_ptr(cache);
    assert_non_null(next);
    assert_non_null(length);
    assert_ptr_not_equal(next, length);
    assert_string_equal(kv_cache_kind(cache), "tensor");
    assert_int_equal(kv_cache_is_lossy(cache), is_half);
    assert_int_equal(kv_cache_capabilities(cache) & KV_CACHE_CAN_VIEW, 0);
    int done = 0;
    for (int step = 0; step < 3; ++step) {
      const int seq = step == 0 ? 3 : 1;
      for (int layer = 0; layer < LAYERS; ++layer) {
        float k[2 * 3 * 5];
        rows_of(k, layer, done, seq);
        assert_ok(kv_cache_update(cache, layer, k, k, 2, seq, 5, &error), error);
        const int last = layer + 1 == LAYERS;
        assert_int_equal(gpu_int32(&gpu, next), last ? done + seq : done);
        assert_int_equal(gpu_int32(&gpu, length),
                         done + seq); /* attention of layer 0 reads the new rows */
      }
      done += seq;
    }
    kv_cache_span span = {.struct_size = sizeof span};
    assert_ok(kv_cache_full_buffer(cache, 1, &span, &error), error);
    assert_int_equal(span.type, is_half ? KV_CACHE_TYPE_F16 : KV_CACHE_TYPE_F32);
    assert_int_equal(span.seq, ROOM);
    assert_int_equal(span.k_batch_stride, ROOM * span.k_seq_stride);
    float expected[2 * ROOM * 5], found[2 * ROOM * 5];
    rows_of(expected, 1, 0, done);
    assert_ok(kv_cache_get(cache, 1, found, 2 * ROOM * 5, NULL, 0, NULL, NULL, &error), error);
    assert_memory_equal(found, expected, sizeof(float) * 2 * (size_t)done * 5);
    if (!is_half) { /* batch-major on the device */
      float lane[5];
      gpu_read(&gpu, lane, (const char*)span.k + span.k_batch_stride + 4 * span.k_seq_stride,
               sizeof lane);
      assert_memory_equal(lane, expected + (done + 4) * 5, sizeof lane);
    }
    assert_fails(kv_cache_view(cache, 0, &span, &error), GEN_ERROR_UNSUPPORTED, "strides", error);

    assert_ok(kv_cache_truncate(cache, 7, &error), error);
    assert_int_equal(gpu_int32(&gpu, next), 5);
    assert_ok(kv_cache_truncate(cache, 2, &error), error);
    assert_int_equal(gpu_int32(&gpu, next), 2);
    assert_int_equal(gpu_int32(&gpu, length), 2);
    const int32_t four = 4;
    gpu_write(&gpu, next, &four, sizeof four);
    assert_ok(kv_cache_sync_counter(cache, &error), error);
    assert_int_equal(kv_cache_layer_seq_len(cache, 2), 4);
    assert_int_equal(gpu_int32(&gpu, length), 4);
    assert_ok(kv_cache_reset(cache, &error), error);
    assert_int_equal(gpu_int32(&gpu, next), 0);
    assert_int_equal(gpu_int32(&gpu, length), 0);
    const int buffers = gpu.live;
    float k[2 * 3 * 5];
    rows_of(k, 0, 0, 3);
    gpu.fail_at = gpu.calls + 1;
    gpu.fail_with = GEN_ERROR_INTERNAL;
    assert_fails(kv_cache_update(cache, 0, k, k, 2, 3, 5, &error), GEN_ERROR_DEVICE, "copy", error);
    assert_int_equal(kv_cache_layer_seq_len(cache, 0), 0);
    gpu.fail_at = gpu.calls + 2; /* a larger shape: values find no room */
    float wide[9 * 2];
    for (int i = 0; i < 18; ++i) wide[i] = (float)i;
    assert_int_equal(kv_cache_update(cache, 0, wide, wide, 2, 1, 9, &error),
                     GEN_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpu.live, buffers);
    assert_ok(kv_cache_update(cache, 0, wide, wide, 2, 1, 9, &error), error);
    assert_ok(kv_cache_get(cache, 0, found, 18, NULL, 0, NULL, NULL, &error), error);
    assert_memory_equal(found, wide, sizeof wide);
    end(&gpu, cache);
  }
}

static void set_gpu_allocator_checks(void** state) {
  (void)state;
  struct gpu_memory gpu = {0};
  gen_gpu_allocator table = gpu_table(&gpu);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tensor_new(NULL, 2, 8, "fp16", &cache, &error), error);
  assert_fails(kv_cache_tensor_set_gpu_allocator(NULL, &table, &error), bad, "cache", error);
  assert_fails(kv_cache_tensor_set_gpu_allocator(cache, NULL, &error), bad, "allocator", error);
  gpu.fail_at = 1;
  assert_int_equal(kv_cache_tensor_set_gpu_allocator(cache, &table, &error),
                   GEN_ERROR_OUT_OF_MEMORY);
  gpu.fail_at = gpu.calls + 2;
  assert_int_equal(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), GEN_ERROR_DEVICE);
  assert_null(kv_cache_counter_device_ptr(cache));
  assert_int_equal(gpu.live, 0);
  assert_ok(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), error);
  assert_fails(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), GEN_ERROR_STATE, "already",
               error);
  /* What was never written cannot have a length. */
  const int32_t one = 1;
  gpu_write(&gpu, kv_cache_counter_device_ptr(cache), &one, sizeof one);
  assert_fails(kv_cache_sync_counter(cache, &error), GEN_ERROR_STATE, "never written", error);
  end(&gpu, cache);
  assert_ok(kv_cache_tensor_new(NULL, 1, 8, "fp32", &cache, &error), error);
  const float x[2] = {1, 2};
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 1, 2, &error), error);
  assert_fails(kv_cache_tensor_set_gpu_allocator(cache, &table, &error), GEN_ERROR_STATE, "already",
               error);
  kv_cache_free(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensor_caches_lie_on_the_device),
      cmocka_unit_test(set_gpu_allocator_checks),
  };
  return cmocka_run_group_tests_name("kv_cache_tensor_device", tests, NULL, NULL);
}

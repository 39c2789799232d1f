/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches of one sequence, of every kind, that are filled with tensors: a refused call leaves
 * lengths and content as they were. Also pools, blocks, prefixes, radix trees and the states of
 * layers that are no attention.
 */
#include <stdio.h>

#include "sweep.h"

enum { LAYERS = 3, ROOM = 60, DIM = 16, STEP = 7 };

enum kind { FP32, FP16, FP8, Q4, Q3, COMPRESSED, TENSOR, PAGED, TRACING };
static const enum kind kinds[] = {FP32, FP16, FP8, Q4, Q3, COMPRESSED, TENSOR, PAGED, TRACING};

static float rows[2 * STEP * DIM];
static float out_k[2 * ROOM * DIM], out_v[2 * ROOM * DIM];

static void fill_rows(int from) {
  for (int i = 0; i < 2 * STEP * DIM; ++i) rows[i] = (float)((i + from) % 97) / 50.0F - 1.0F;
}

static void same_layer(const kv_cache* cache, int32_t layer) {
  int32_t k_shape[3], v_shape[3];
  TRY(kv_cache_get(cache, layer, out_k, 2 * ROOM * DIM, out_v, 2 * ROOM * DIM, k_shape, v_shape,
                   E));
  SAME(k_shape, sizeof k_shape);
  SAME(out_k, sizeof(float) * (size_t)(k_shape[0] * k_shape[1] * k_shape[2]));
  SAME(out_v, sizeof(float) * (size_t)(v_shape[0] * v_shape[1] * v_shape[2]));
}

static void one(const void* with) {
  const enum kind kind = *(const enum kind*)with;
  kv_cache* cache = NULL;
  kv_cache* inner = NULL;
  kv_cache* copy = NULL;
  kv_cache_pool* pool = NULL;
  gen_tracer* tracer = NULL;
  static char state[1 << 18];
  size_t n = 0;
  const int32_t batch = kind == PAGED || kind == COMPRESSED ? 1 : 2;
  switch (kind) {
    case FP32:
      MAKE(cache, kv_cache_new(LAYERS, ROOM, &cache, E));
      break;
    case FP16:
      MAKE(cache, kv_cache_fp16_new(LAYERS, ROOM, &cache, E));
      break;
    case FP8:
      MAKE(cache, kv_cache_fp8_new(LAYERS, ROOM, &cache, E));
      break;
    case Q4:
      MAKE(cache, kv_cache_q4_new(LAYERS, ROOM, &cache, E));
      break;
    case Q3:
      MAKE(cache, kv_cache_q3_new(LAYERS, ROOM, &cache, E));
      break;
    case COMPRESSED:
      MAKE(cache, kv_cache_compressed_new(LAYERS, 2, DIM / 2, 4, &cache, E));
      break;
    case TENSOR:
      MAKE(cache, kv_cache_tensor_new(NULL, LAYERS, ROOM, "fp16", &cache, E));
      break;
    case PAGED:
      MAKE(pool, kv_cache_pool_new(LAYERS, 4, DIM, 1, "fp16", &pool, E));
      TRY(kv_cache_pool_set_allocator(pool, &failing_table, E));
      MAKE(cache, kv_cache_paged_new(pool, LAYERS, &cache, E));
      break;
    case TRACING:
      MAKE(tracer, gen_tracer_new(&tracer, E));
      MAKE(inner, kv_cache_new(LAYERS, ROOM, &inner, E));
      MAKE(cache, kv_cache_tracing_new(inner, tracer, &cache, E));
      break;
  }
  if (kind != PAGED && kind != TRACING) TRY(kv_cache_set_allocator(cache, &failing_table, E));
  for (int step = 0; step < 3; ++step) {
    fill_rows(step);
    for (int32_t layer = 0; layer < LAYERS; ++layer) {
      TRY_KEEPING(kv_cache_update(cache, layer, rows, rows, batch, STEP, DIM, E),
                  CHECK(kv_cache_layer_seq_len(cache, layer) == step * STEP));
    }
  }
  for (int32_t layer = 0; layer < LAYERS; ++layer) same_layer(cache, layer);
  size_t bytes[3];
  TRY(kv_cache_memory_bytes(cache, &bytes[0], &bytes[1], &bytes[2], E));
  TRY(kv_cache_describe(cache, NULL, 0, &n, E));
  kv_cache_span span = {.struct_size = sizeof span};
  if (kind == FP32) TRY(kv_cache_view(cache, 1, &span, E));
  if (kind == TENSOR) TRY(kv_cache_full_buffer(cache, 1, &span, E));
  int32_t first = 0;
  int32_t positions = 0;
  if (kind == COMPRESSED) TRY(kv_cache_compressed_entry(cache, 1, 0, &first, &positions, E));
  if (kind != TRACING) {
    const char* path = scratch("cache");
    TRY(kv_cache_save(cache, path, E));
    TRY(kv_cache_save_buffer(cache, state, sizeof state, &n, E));
    MAKE(copy, kv_cache_clone(cache, &copy, E));
    TRY_KEEPING(kv_cache_truncate(copy, STEP + 1, E), CHECK(kv_cache_seq_len(copy) == 3 * STEP));
    same_layer(copy, 1);
    TRY_KEEPING(kv_cache_reset(copy, E), CHECK(kv_cache_seq_len(copy) == STEP + 1));
    TRY_KEEPING(kv_cache_load(copy, path, E), CHECK(kv_cache_seq_len(copy) == 0));
    remove(path);
    same_layer(copy, 2);
    TRY(kv_cache_reset(copy, E));
    TRY_KEEPING(kv_cache_load_buffer(copy, state, n, E), CHECK(kv_cache_seq_len(copy) == 0));
    fill_rows(9);
    TRY_KEEPING(kv_cache_update(copy, 0, rows, rows, batch, STEP, DIM, E),
                CHECK(kv_cache_layer_seq_len(copy, 0) == 3 * STEP));
    same_layer(copy, 0);
    same_layer(cache, 0);
  }
  if (kind == TRACING) {
    static char text[4096];
    const char* path = scratch("trace");
    TRY(gen_tracer_op(tracer, 0, text, sizeof text, &n, E));
    SAME(text, n);
    TRY(gen_tracer_write_dot(tracer, path, E));
    SAME_FILE(path);
  }
  FREE(kv_cache_free(copy));
  FREE(kv_cache_free(cache));
  FREE(kv_cache_free(inner));
  FREE(gen_tracer_free(tracer));
  FREE(kv_cache_pool_free(pool));
}

static void blocks(const void* with) {
  (void)with;
  kv_cache_pool* pool = NULL;
  kv_cache_prefix* prefix = NULL;
  kv_cache* cache = NULL;
  kv_cache* other = NULL;
  kv_cache_block *list[16], *found[16], *own = NULL;
  int32_t tokens[24];
  size_t n = 0, matched = 0;
  for (int32_t i = 0; i < 24; ++i) tokens[i] = i;
  MAKE(pool, kv_cache_pool_new(LAYERS, 4, DIM, 1, "fp32", &pool, E));
  TRY(kv_cache_pool_set_allocator(pool, &failing_table, E));
  MAKE(own, kv_cache_pool_alloc(pool, &own, E));
  TRY(kv_cache_pool_retain_block(pool, own, E));
  TRY(kv_cache_pool_free_block(pool, own, E));
  TRY(kv_cache_pool_free_block(pool, own, E));
  MAKE(cache, kv_cache_paged_new(pool, LAYERS, &cache, E));
  fill_rows(0);
  for (int step = 0; step < 2; ++step)
    for (int32_t layer = 0; layer < LAYERS; ++layer)
      TRY_KEEPING(kv_cache_update(cache, layer, rows, rows, 1, STEP, DIM, E),
                  CHECK(kv_cache_layer_seq_len(cache, layer) == step * STEP));
  TRY(kv_cache_block_table(cache, list, 16, &n, E));
  CHECK(n == 4);
  MAKE(prefix, kv_cache_prefix_new(8, pool, &prefix, E));
  for (uint64_t domain = 0; domain < 3; ++domain)
    TRY_KEEPING(kv_cache_prefix_insert(prefix, domain, tokens, 12, list, 3, E),
                CHECK(kv_cache_prefix_size(prefix) == 3 * (int32_t)(domain < 2 ? domain : 2)));
  TRY(kv_cache_prefix_match(prefix, 2, tokens, 24, found, 16, &n, &matched, E));
  CHECK(n == 3 && matched == 12);
  MAKE(other, kv_cache_paged_new(pool, LAYERS, &other, E));
  TRY_KEEPING(kv_cache_inject_blocks(other, found, 3, 12, 1, DIM, E),
              CHECK(kv_cache_seq_len(other) == 0));
  for (size_t i = 0; i < n; ++i) TRY(kv_cache_pool_free_block(pool, found[i], E));
  FREE(kv_cache_free(cache));
  TRY_KEEPING(kv_cache_update(other, 0, rows, rows, 1, STEP, DIM, E),
              CHECK(kv_cache_layer_seq_len(other, 0) == 12));
  same_layer(other, 0);
  FREE(kv_cache_prefix_free(prefix));
  FREE(kv_cache_free(other));
  FREE(kv_cache_pool_free(pool));
}

static void evicted(void* user, int32_t id) {
  (void)id;
  ++*(int*)user;
}

static void radix(const void* with) {
  (void)with;
  kv_cache_radix* tree = NULL;
  int32_t tokens[80], ids[40];
  size_t n = 0, matched = 0;
  int gone = 0;
  MAKE(tree, kv_cache_radix_new(4, 40, &tree, E));
  TRY(kv_cache_radix_set_evict_callback(tree, evicted, &gone, E));
  for (int32_t round = 0; round < 5; ++round) {
    for (int32_t i = 0; i < 80; ++i) tokens[i] = i < 16 * round ? i : i * (round + 1);
    const int32_t size = kv_cache_radix_size(tree);
    TRY_KEEPING(kv_cache_radix_insert(tree, tokens, 80, ids, 40, &n, E),
                CHECK(kv_cache_radix_size(tree) == size));
    CHECK(n == 20);
    TRY(kv_cache_radix_match(tree, tokens, 60, &matched, ids, 40, &n, E));
    CHECK(matched == 60);
    TRY(kv_cache_radix_pin(tree, tokens, 40, &matched, ids, 40, &n, E));
    TRY(kv_cache_radix_unpin(tree, tokens, matched, E));
  }
  const int32_t size = kv_cache_radix_size(tree);
  TRY_KEEPING(kv_cache_radix_evict(tree, ids, E), CHECK(kv_cache_radix_size(tree) == size));
  TRY_KEEPING(kv_cache_radix_remove(tree, tokens, 40, &n, E),
              CHECK(kv_cache_radix_size(tree) == size - 1));
  uint64_t hits = 0, misses = 0, evictions = 0;
  TRY(kv_cache_radix_stats(tree, &hits, &misses, &evictions, E));
  const int32_t figures[] = {kv_cache_radix_size(tree), gone, (int32_t)n};
  SAME(figures, sizeof figures);
  FREE(kv_cache_radix_free(tree));
}

static void ssm(const void* with) {
  (void)with;
  gen_ssm_state* state = NULL;
  float h[2 * 3 * 4];
  int32_t shape[3];
  int64_t snapshot = 0;
  MAKE(state, gen_ssm_state_new(2, 3, 4, &state, E));
  FREE(gen_ssm_state_free(state));
  MAKE(state, gen_ssm_state_new_batch(2, 2, 3, 4, &state, E));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 24; ++i) h[i] = (float)(i + round);
    TRY(gen_ssm_state_set_layer(state, 1, h, 2, 3, 4, E));
    if (round == 1) TRY(gen_ssm_state_snapshot(state, &snapshot, E));
  }
  TRY(gen_ssm_state_get_layer(state, 1, h, 24, shape, E));
  SAME(h, sizeof h);
  TRY(gen_ssm_state_restore(state, snapshot, E));
  TRY(gen_ssm_state_get_layer(state, 1, h, 24, shape, E));
  SAME(h, sizeof h);
  TRY(gen_ssm_state_reset(state, E));
  FREE(gen_ssm_state_free(state));
}

static void in_tiers_or_blocks(kv_cache* cache) {
  kv_cache* copy = NULL;
  static char state[1 << 16];
  size_t n = 0;
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    TRY_KEEPING(kv_cache_update(cache, layer, rows, rows, 1, STEP, DIM, E),
                CHECK(kv_cache_layer_seq_len(cache, layer) == 0));
    same_layer(cache, layer);
  }
  MAKE(copy, kv_cache_clone(cache, &copy, E));
  TRY_KEEPING(kv_cache_update(copy, 0, rows, rows, 1, 1, DIM, E),
              CHECK(kv_cache_layer_seq_len(copy, 0) == STEP));
  FREE(kv_cache_free(copy));
  TRY(kv_cache_save_buffer(cache, state, sizeof state, &n, E));
  SAME(state, n);
  TRY(kv_cache_reset(cache, E));
  TRY_KEEPING(kv_cache_load_buffer(cache, state, n, E), CHECK(kv_cache_seq_len(cache) == 0));
  same_layer(cache, 1);
}

/* Caches in the memory of a device: that of the host, which fails as everything else does. */
static void on_device(const void* with) {
  (void)with;
  gen_gpu_allocator* gpu = NULL;
  kv_cache_pool* pool = NULL;
  kv_cache_tier_config* config = NULL;
  kv_cache* cache = NULL;
  kv_cache* copy = NULL;
  static char state[1 << 16];
  size_t n = 0, pieces = 0;
  const void *k = NULL, *v = NULL;
  int32_t length = 0;
  /* Where there is a device it may fail as a driver does; without one it says so. */
  if (gen_gpu_allocator_cuda(0, &gpu, E) == GEN_OK) gen_gpu_allocator_release(gpu);
  gpu = NULL;
  MAKE(gpu, gen_gpu_allocator_host(&gpu, E));
  for (int half = 0; half < 2; ++half) {
    if (half) {
      MAKE(cache, kv_cache_gpu_new_typed(gpu, LAYERS, ROOM, 2, DIM / 2, "fp16", &cache, E));
    } else {
      MAKE(cache, kv_cache_gpu_new(gpu, LAYERS, ROOM, 2, DIM / 2, &cache, E));
    }
    for (int32_t p = 0; p < 3; ++p) {
      fill_rows(p);
      for (int32_t layer = 0; layer < LAYERS; ++layer) {
        TRY_KEEPING(kv_cache_gpu_append(cache, layer, rows, rows + DIM, p, E),
                    CHECK(kv_cache_layer_seq_len(cache, layer) == p));
      }
    }
    /* What lies on this device the host can address. */
    for (int32_t layer = 0; layer < LAYERS; ++layer) {
      TRY_KEEPING(kv_cache_gpu_append_device(cache, layer, rows, rows + DIM, E),
                  CHECK(kv_cache_layer_seq_len(cache, layer) == 3));
      same_layer(cache, layer);
    }
    for (int32_t layer = 0; layer < LAYERS; ++layer) {
      TRY(kv_cache_gpu_pointers(cache, layer, &k, &v, &length, E));
      TRY_KEEPING(kv_cache_gpu_append_stream(cache, layer, rows, rows + DIM, NULL, E),
                  CHECK(kv_cache_layer_seq_len(cache, layer) == 4));
      same_layer(cache, layer);
    }
    TRY(kv_cache_gpu_pointer_arrays(cache, &k, &v, E));
    TRY(kv_cache_gpu_sync_counter(cache, E));
    TRY(kv_cache_save_buffer(cache, state, sizeof state, &n, E));
    SAME(state, n);
    MAKE(copy, kv_cache_clone(cache, &copy, E));
    FREE(kv_cache_free(cache));
    FREE(kv_cache_free(copy));
  }
  for (int half = 0; half < 2; ++half) {
    MAKE(cache, kv_cache_tensor_new(NULL, LAYERS, ROOM, half ? "fp16" : "fp32", &cache, E));
    TRY_KEEPING(kv_cache_tensor_set_gpu_allocator(cache, gpu, E),
                CHECK(kv_cache_counter_device_ptr(cache) == NULL));
    for (int32_t layer = 0; layer < LAYERS; ++layer) {
      TRY_KEEPING(kv_cache_update(cache, layer, rows, rows, 2, STEP, DIM, E),
                  CHECK(kv_cache_layer_seq_len(cache, layer) == 0));
      same_layer(cache, layer);
    }
    TRY(kv_cache_sync_counter(cache, E));
    FREE(kv_cache_free(cache));
  }
  MAKE(pool, kv_cache_pool_new(LAYERS, 4, DIM, 1, "fp32", &pool, E));
  TRY(kv_cache_pool_set_gpu_allocator(pool, gpu, E));
  MAKE(cache, kv_cache_paged_new(pool, LAYERS, &cache, E));
  in_tiers_or_blocks(cache);
  FREE(kv_cache_free(cache));
  FREE(kv_cache_pool_free(pool));
  MAKE(config, kv_cache_tier_config_new(&config, E));
  TRY(kv_cache_tier_config_set_num_layers(config, LAYERS, E));
  TRY(kv_cache_tier_config_set_max_seq_len(config, ROOM, E));
  TRY(kv_cache_tier_config_set_gpu_allocator(config, gpu, E));
  MAKE(cache, kv_cache_tiered_new(config, &cache, E));
  FREE(kv_cache_tier_config_free(config));
  in_tiers_or_blocks(cache);
  TRY(kv_cache_tiered_demote(cache, 0, E));
  TRY(kv_cache_tiered_promote(cache, 0, E));
  same_layer(cache, 0);
  FREE(kv_cache_free(cache));
  TRY(gen_gpu_allocator_counters(gpu, &pieces, NULL, NULL, E));
  CHECK(pieces == 0);
  FREE(gen_gpu_allocator_release(gpu));
}

const scenario cache_scenarios[] = {{"cache fp32", NULL, one, NULL, &kinds[FP32]},
                                    {"cache fp16", NULL, one, NULL, &kinds[FP16]},
                                    {"cache fp8", NULL, one, NULL, &kinds[FP8]},
                                    {"cache q4", NULL, one, NULL, &kinds[Q4]},
                                    {"cache q3", NULL, one, NULL, &kinds[Q3]},
                                    {"cache compressed", NULL, one, NULL, &kinds[COMPRESSED]},
                                    {"cache tensor", NULL, one, NULL, &kinds[TENSOR]},
                                    {"cache paged", NULL, one, NULL, &kinds[PAGED]},
                                    {"cache tracing", NULL, one, NULL, &kinds[TRACING]},
                                    {"pool and prefix", NULL, blocks, NULL, NULL},
                                    {"caches on a device", NULL, on_device, NULL, NULL},
                                    {"radix", NULL, radix, NULL, NULL},
                                    {"ssm state", NULL, ssm, NULL, NULL},
                                    {0}};

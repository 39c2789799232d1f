/* SPDX-License-Identifier: Apache-2.0 */
/* Tiered caches of tensors: layers move between memory and files, and a refused move leaves a layer
 * where it was. */
#include <stdio.h>
#include <unistd.h>

#include "sweep.h"

enum { LAYERS = 3, ROOM = 40, DIM = 16, STEP = 7 };

static float rows[STEP * DIM];
static float out_k[ROOM * DIM], out_v[ROOM * DIM];

static void same_layer(const kv_cache* cache, int32_t layer) {
  int32_t k_shape[3], v_shape[3];
  TRY(kv_cache_get(cache, layer, out_k, ROOM * DIM, out_v, ROOM * DIM, k_shape, v_shape, E));
  SAME(k_shape, sizeof k_shape);
  SAME(out_k, sizeof(float) * (size_t)(k_shape[1] * k_shape[2]));
  SAME(out_v, sizeof(float) * (size_t)(k_shape[1] * k_shape[2]));
}

static void update(kv_cache* cache, int32_t layer, int from) {
  for (int i = 0; i < STEP * DIM; ++i) rows[i] = (float)((i + from) % 97) / 50.0F - 1.0F;
  const int32_t before = kv_cache_layer_seq_len(cache, layer);
  TRY_KEEPING(kv_cache_update(cache, layer, rows, rows, 1, STEP, DIM, E),
              CHECK(kv_cache_layer_seq_len(cache, layer) == before));
}

static void demote(const kv_cache* cache, int32_t layer) {
  const int32_t before = kv_cache_tiered_tier(cache, layer);
  TRY_KEEPING(kv_cache_tiered_demote(cache, layer, E),
              CHECK(kv_cache_tiered_tier(cache, layer) == before));
}

static void promote(const kv_cache* cache, int32_t layer) {
  const int32_t before = kv_cache_tiered_tier(cache, layer);
  TRY_KEEPING(kv_cache_tiered_promote(cache, layer, E),
              CHECK(kv_cache_tiered_tier(cache, layer) == before));
}

/* with: the warm form. */
static void tiered(const void* with) {
  kv_cache_tier_config* config = NULL;
  kv_cache* cache = NULL;
  kv_cache* copy = NULL;
  MAKE(config, kv_cache_tier_config_new(&config, E));
  TRY(kv_cache_tier_config_set_num_layers(config, LAYERS, E));
  TRY(kv_cache_tier_config_set_max_seq_len(config, ROOM, E));
  TRY(kv_cache_tier_config_set_chunk_size(config, 4, E));
  TRY(kv_cache_tier_config_set_warm_form(config, with, E));
  TRY(kv_cache_tier_config_set_allocator(config, &failing_table, E));
  MAKE(cache, kv_cache_tiered_new(config, &cache, E));
  FREE(kv_cache_tier_config_free(config));
  for (int32_t layer = 0; layer < LAYERS; ++layer)
    for (int step = 0; step < 2; ++step) update(cache, layer, step);
  demote(cache, 0);
  demote(cache, 1);
  demote(cache, 1);
  for (int32_t layer = 0; layer < LAYERS; ++layer) same_layer(cache, layer);
  const int32_t all[] = {0, 1, 2};
  TRY(kv_cache_tiered_prefetch_async(cache, all, 3, E));
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    int32_t shape[3];
    TRY(kv_cache_tiered_get_prefetched(cache, layer, out_k, ROOM * DIM, out_v, ROOM * DIM, shape,
                                       E));
    same_layer(cache, layer);
  }
  MAKE(copy, kv_cache_clone(cache, &copy, E));
  for (int32_t layer = 0; layer < LAYERS; ++layer) same_layer(copy, layer);
  const char* path = scratch("tiered");
  TRY(kv_cache_save(cache, path, E));
  TRY_KEEPING(kv_cache_truncate(cache, STEP + 2, E), CHECK(kv_cache_seq_len(cache) == 2 * STEP));
  for (int32_t layer = 0; layer < LAYERS; ++layer) same_layer(cache, layer);
  /* Once more it moves other layers: uses are counted from 0 again. Without loss that shows in
   * nothing. */
  if (strcmp(with, "fp32") == 0) TRY(kv_cache_tiered_manage(cache, E));
  promote(cache, 1);
  promote(cache, 1);
  update(cache, 0, 3);
  demote(cache, 1);
  demote(cache, 1);
  update(cache, 1, 3);
  for (int32_t layer = 0; layer < 2; ++layer) same_layer(cache, layer);
  TRY_KEEPING(kv_cache_reset(cache, E), CHECK(kv_cache_layer_seq_len(cache, 2) == STEP + 2));
  TRY_KEEPING(kv_cache_load(cache, path, E), CHECK(kv_cache_seq_len(cache) == 0));
  remove(path);
  for (int32_t layer = 0; layer < LAYERS; ++layer) same_layer(cache, layer);
  demote(cache, 2);
  demote(cache, 2);
  FREE(kv_cache_free(copy));
  FREE(kv_cache_free(cache));
}

/* In a folder of the caller's, where cold layers stay for another cache. */
static void folder(const void* with) {
  (void)with;
  kv_cache_tier_config* config = NULL;
  kv_cache* cache = NULL;
  static char place[300], inside[340];
  snprintf(place, sizeof place, "%s", scratch("."));
  MAKE(config, kv_cache_tier_config_new(&config, E));
  TRY(kv_cache_tier_config_set_num_layers(config, LAYERS, E));
  TRY(kv_cache_tier_config_set_max_seq_len(config, ROOM, E));
  TRY(kv_cache_tier_config_set_cold_dir(config, place, E));
  TRY(kv_cache_tier_config_set_store_id(config, "sweep", E));
  MAKE(cache, kv_cache_tiered_new(config, &cache, E));
  for (int32_t layer = 0; layer < LAYERS; ++layer) update(cache, layer, layer);
  for (int32_t layer = 0; layer < 2; ++layer) {
    demote(cache, layer);
    demote(cache, layer);
  }
  TRY(kv_cache_tiered_close(cache, E));
  FREE(kv_cache_free(cache));
  MAKE(cache, kv_cache_tiered_open(config, &cache, E));
  for (int32_t layer = 0; layer < 2; ++layer) same_layer(cache, layer);
  update(cache, 0, 5);
  same_layer(cache, 0);
  demote(cache, 2);
  FREE(kv_cache_free(cache));
  MAKE(cache, kv_cache_tiered_open(config, &cache, E));
  CHECK(kv_cache_layer_seq_len(cache, 0) == 0 && kv_cache_layer_seq_len(cache, 1) == STEP);
  same_layer(cache, 1);
  promote(cache, 1);
  FREE(kv_cache_free(cache));
  FREE(kv_cache_tier_config_free(config));
  snprintf(inside, sizeof inside, "%s/kv-sweep", sweep_scratch);
  CHECK(access(inside, F_OK) != 0); /* nothing was cold in the end */
}

const scenario tiered_scenarios[] = {{"tiered fp32", NULL, tiered, NULL, "fp32"},
                                     {"tiered q4", NULL, tiered, NULL, "q4"},
                                     {"tiered mean", NULL, tiered, NULL, "mean"},
                                     {"tiered folder", NULL, folder, NULL, NULL},
                                     {0}};

/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of many sequences, of every kind: passes, prefixes, removals and moves of cells. */
#include <stdint.h>

#include "sweep.h"

enum { BATCH = 6, DIM = 16, HEADS = 2, MOST = 300 };
enum kind { CAUSAL, WINDOW, MEMORY, CHUNKED, ENCODER, WRAPPER };
struct form {
  enum kind kind;
  const char* dtype;
};

static float rows[BATCH * DIM * HEADS];
static float out_k[MOST * DIM * HEADS], out_v[MOST * DIM * HEADS];
static float mask[MOST * BATCH];

static gen_status turn(void* user, int32_t layer, float* keys, int32_t k_dim, int32_t kv_heads,
                       int32_t n, const int32_t* offsets) {
  (void)user;
  (void)layer;
  for (int32_t i = 0; i < n; ++i) keys[i * k_dim * kv_heads] += (float)offsets[i];
  return GEN_OK;
}

static void same_histories(kv_cache* cache) {
  int32_t k_shape[3], v_shape[3], m_shape[2];
  TRY(kv_cache_get_masked(cache, out_k, MOST * DIM * HEADS, out_v, MOST * DIM * HEADS, mask,
                          MOST * BATCH, k_shape, v_shape, m_shape, E));
  SAME(k_shape, sizeof k_shape);
  SAME(m_shape, sizeof m_shape);
  /* Which cells tokens got is not told: what they see is. */
  SAME(mask, sizeof(float) * (size_t)(m_shape[0] * m_shape[1]));
  for (int32_t i = 0; i < k_shape[2]; ++i) {
    int seen = m_shape[0] == 0;
    for (int32_t t = 0; t < m_shape[1]; ++t) seen |= mask[t * m_shape[0] + i] == 0;
    if (seen) SAME(out_k + i * DIM * HEADS, sizeof(float) * DIM * HEADS);
  }
}

/* Tokens of sequences 0 and 1 at these positions; all through two layers. */
static void pass(kv_cache* cache, enum kind kind, int32_t first, int step) {
  int32_t positions[BATCH], sequences[BATCH];
  const int32_t image = 1;
  for (int32_t i = 0; i < BATCH; ++i) {
    positions[i] = first + i % 3;
    sequences[i] = i / 3;
  }
  const int items = kind == ENCODER || (kind == WRAPPER && step == 0);
  TRY(kv_cache_start_forward(cache, positions, sequences, BATCH, 0, &image, (size_t)items, E));
  for (int i = 0; i < BATCH * DIM * HEADS; ++i)
    rows[i] = (float)((i + step * 7) % 97) / 50.0F - 1.0F;
  for (int32_t type = 0; type < (kind == WRAPPER ? 2 : 1); ++type) {
    if (kind == WRAPPER) TRY(kv_cache_set_layer_type(cache, type, E));
    for (int32_t layer = 0; layer < 2; ++layer) {
      TRY(kv_cache_set_layer(cache, layer, E));
      TRY(kv_cache_put(cache, rows, HEADS, DIM, rows, HEADS, DIM, kind == ENCODER ? 4 : BATCH, E));
      if (kind != ENCODER) TRY(kv_cache_set_causal(cache, &image, 1, E));
      same_histories(cache);
    }
  }
}

static kv_cache* make(enum kind kind) {
  kv_cache* cache = NULL;
  kv_cache* parts[2] = {NULL, NULL};
  switch (kind) {
    case CAUSAL:
      MAKE(cache, kv_cache_causal_new(&cache, E));
      break;
    case WINDOW:
      MAKE(cache, kv_cache_swa_new(5, &cache, E));
      break;
    case MEMORY:
      MAKE(cache, kv_cache_swa_mem_new(4, 8, &cache, E));
      break;
    case CHUNKED:
      MAKE(cache, kv_cache_chunked_new(8, &cache, E));
      break;
    case ENCODER:
      MAKE(cache, kv_cache_encoder_new(&cache, E));
      break;
    case WRAPPER:
      MAKE(parts[0], kv_cache_causal_new(&parts[0], E));
      MAKE(parts[1], kv_cache_swa_new(5, &parts[1], E));
      MAKE(cache, kv_cache_wrapper_new(parts, 2, &cache, E));
      FREE(kv_cache_free(parts[0]));
      FREE(kv_cache_free(parts[1]));
      break;
  }
  return cache;
}

static void many(const void* with) {
  const struct form form = *(const struct form*)with;
  kv_cache* cache = make(form.kind);
  int32_t flag = 0;
  TRY(kv_cache_set_allocator(cache, &failing_table, E));
  TRY(kv_cache_set_config(cache, form.kind == ENCODER ? 0 : 4, 0, "fp32", E));
  if (form.kind != ENCODER) TRY(kv_cache_set_shift(cache, turn, NULL, E));
  TRY(kv_cache_init(cache, form.dtype, 4, 40, BATCH, E));
  for (int step = 0; step < 3; ++step) pass(cache, form.kind, step * 3, step);
  TRY(kv_cache_copy_prefix(cache, 0, 2, 7, E));
  TRY(kv_cache_can_resume(cache, 2, 7, &flag, E));
  SAME(&flag, sizeof flag);
  if (form.kind == ENCODER) {
    TRY(kv_cache_encoder_cached(cache, 2, &flag, E));
    SAME(&flag, sizeof flag);
    TRY(kv_cache_remove(cache, 1, 0, KV_CACHE_TO_THE_END, E));
  } else {
    if (form.kind == CAUSAL) TRY(kv_cache_remove(cache, 0, 2, 4, E));
    TRY(kv_cache_remove(cache, 1, 7, KV_CACHE_TO_THE_END, E));
    if (form.kind == CAUSAL) TRY(kv_cache_set_quota(cache, 30, E));
    TRY(kv_cache_compact(cache, 20, &flag, E));
    const int32_t positions[] = {form.kind == CAUSAL ? 7 : 9, 7}, sequences[] = {0, 1};
    TRY(kv_cache_start_forward(cache, positions, sequences, 2, 0, NULL, 0, E));
    for (int32_t type = 0; type < (form.kind == WRAPPER ? 2 : 1); ++type) {
      if (form.kind == WRAPPER) TRY(kv_cache_set_layer_type(cache, type, E));
      TRY(kv_cache_set_layer(cache, 1, E));
      TRY(kv_cache_put(cache, rows, HEADS, DIM, rows, HEADS, DIM, 2, E));
      same_histories(cache);
    }
  }
  TRY(kv_cache_close(cache, E));
  FREE(kv_cache_free(cache));
  cache = make(form.kind); /* one that is freed as it is */
  TRY(kv_cache_init(cache, form.dtype, 4, 40, BATCH, E));
  pass(cache, form.kind, 0, 0);
  FREE(kv_cache_free(cache));
}

static const struct form causal = {CAUSAL, "fp32"}, causal_q8 = {CAUSAL, "q8_0"},
                         window = {WINDOW, "fp16"}, memory = {MEMORY, "fp32"},
                         chunked = {CHUNKED, "q4_0"}, encoder = {ENCODER, "fp32"},
                         wrapper = {WRAPPER, "fp16"};

const scenario many_scenarios[] = {{"many causal", NULL, many, NULL, &causal},
                                   {"many causal q8_0", NULL, many, NULL, &causal_q8},
                                   {"many window", NULL, many, NULL, &window},
                                   {"many memory", NULL, many, NULL, &memory},
                                   {"many chunked", NULL, many, NULL, &chunked},
                                   {"many encoder", NULL, many, NULL, &encoder},
                                   {"many wrapper", NULL, many, NULL, &wrapper},
                                   {0}};

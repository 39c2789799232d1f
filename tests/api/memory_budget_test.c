/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said about memory is what the caller's allocator counts: kv_cache_memory_bytes of every
 * kind of cache, a pool's resident bytes, the memory of a generator's pool and of sessions in
 * tiers, which stay within their budget at every moment. The counts are the allocator's own, so
 * nothing here comes from the library's bookkeeping.
 */
#include "api_test.h"
#include "counting_allocator.h"

#define STORY_MODEL GEN_TEST_SOURCE_DIR "/examples/demo_model/story.gguf"

static struct counting counts;
static const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};

enum { LAYERS = 3, DIM = 64, STEP = 48, ROOM = 512 };

static void expect_counted(const kv_cache* cache) {
  size_t resident = 0;
  assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
  assert_int_equal(resident, counts.live);
}

static kv_cache* tiered_cache(void) {
  kv_cache_tier_config* config = NULL;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, LAYERS, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, ROOM, &error), error);
  assert_ok(kv_cache_tier_config_set_warm_form(config, "q4", &error), error);
  assert_ok(kv_cache_tier_config_set_allocator(config, &table, &error), error);
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  kv_cache_tier_config_free(config);
  return cache;
}

enum kind { FP32, FP16, FP8, Q4, Q3, COMPRESSED, TENSOR, TIERED, KINDS };

static kv_cache* cache_of(enum kind kind) {
  kv_cache* cache = NULL;
  switch (kind) {
    case FP32:
      assert_ok(kv_cache_new(LAYERS, ROOM, &cache, &error), error);
      break;
    case FP16:
      assert_ok(kv_cache_fp16_new(LAYERS, ROOM, &cache, &error), error);
      break;
    case FP8:
      assert_ok(kv_cache_fp8_new(LAYERS, ROOM, &cache, &error), error);
      break;
    case Q4:
      assert_ok(kv_cache_q4_new(LAYERS, ROOM, &cache, &error), error);
      break;
    case Q3:
      assert_ok(kv_cache_q3_new(LAYERS, ROOM, &cache, &error), error);
      break;
    case COMPRESSED:
      assert_ok(kv_cache_compressed_new(LAYERS, 2, DIM / 2, 16, &cache, &error), error);
      break;
    case TENSOR:
      assert_ok(kv_cache_tensor_new(NULL, LAYERS, ROOM, "fp16", &cache, &error), error);
      break;
    default:
      return tiered_cache();
  }
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  return cache;
}

static void caches_of_tensors(void** state) {
  (void)state;
  static float rows[STEP * DIM];
  for (int i = 0; i < STEP * DIM; ++i) rows[i] = (float)(i % 89) / 40.0F - 1.0F;
  for (enum kind kind = FP32; kind < KINDS; ++kind) {
    memset(&counts, 0, sizeof counts);
    kv_cache* cache = cache_of(kind);
    expect_counted(cache);
    for (int step = 0; step < 4; ++step) {
      for (int32_t layer = 0; layer < LAYERS; ++layer) {
        assert_ok(kv_cache_update(cache, layer, rows, rows, 1, STEP, DIM, &error), error);
        expect_counted(cache);
      }
    }
    assert_true(counts.live > 0);
    if (kind == TIERED) { /* warm, cold, and back */
      for (int move = 0; move < 2; ++move) {
        assert_ok(kv_cache_tiered_demote(cache, 1, &error), error);
        expect_counted(cache);
      }
      for (int move = 0; move < 2; ++move) {
        assert_ok(kv_cache_tiered_promote(cache, 1, &error), error);
        expect_counted(cache);
      }
    }
    assert_ok(kv_cache_truncate(cache, STEP + 1, &error), error);
    expect_counted(cache);
    assert_ok(kv_cache_reset(cache, &error), error);
    expect_counted(cache);
    kv_cache_free(cache);
    assert_int_equal(counts.live, 0);
  }
}

static void caches_of_many(void** state) {
  (void)state;
  static float rows[8 * DIM];
  for (int kind = 0; kind < 3; ++kind) {
    memset(&counts, 0, sizeof counts);
    kv_cache* cache = NULL;
    if (kind == 0) assert_ok(kv_cache_causal_new(&cache, &error), error);
    if (kind == 1) assert_ok(kv_cache_swa_new(8, &cache, &error), error);
    if (kind == 2) assert_ok(kv_cache_encoder_new(&cache, &error), error);
    assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
    assert_ok(kv_cache_init(cache, "fp16", 3, 64, 8, &error), error);
    for (int32_t pass = 0; pass < 4; ++pass) {
      int32_t positions[8];
      const int32_t seqs[8] = {0, 0, 0, 0, 1, 1, 1, 1};
      const int32_t image = 0;
      for (int32_t i = 0; i < 8; ++i) positions[i] = pass * 4 + i % 4;
      assert_ok(
          kv_cache_start_forward(cache, positions, seqs, 8, 0, &image, kind == 2 ? 1 : 0, &error),
          error);
      for (int32_t layer = 0; layer < 2; ++layer) {
        assert_ok(kv_cache_set_layer(cache, layer, &error), error);
        assert_ok(
            kv_cache_put(cache, rows, 2, DIM / 2, rows, 2, DIM / 2, kind == 2 ? 5 : 8, &error),
            error);
        expect_counted(cache);
      }
    }
    assert_ok(kv_cache_remove(cache, 0, 0, KV_CACHE_TO_THE_END, &error), error);
    expect_counted(cache);
    assert_ok(kv_cache_close(cache, &error), error);
    kv_cache_free(cache);
    assert_int_equal(counts.live, 0);
  }
}

static void a_pool(void** state) {
  (void)state;
  static float rows[16 * DIM];
  memset(&counts, 0, sizeof counts);
  kv_cache_pool* pool = NULL;
  kv_cache* caches[3] = {NULL, NULL, NULL};
  assert_ok(kv_cache_pool_new(LAYERS, 16, DIM, 1, "fp32", &pool, &error), error);
  assert_ok(kv_cache_pool_set_allocator(pool, &table, &error), error);
  gen_status status = GEN_OK;
  for (int i = 0; i < 3; ++i)
    assert_ok(kv_cache_paged_new(pool, LAYERS, &caches[i], &error), error);
  for (int step = 0; status == GEN_OK && step < 10000; ++step) {
    for (int32_t layer = 0; status == GEN_OK && layer < LAYERS; ++layer)
      status = kv_cache_update(caches[step % 3], layer, rows, rows, 1, 16, DIM, &error);
    assert_int_equal(kv_cache_pool_resident_bytes(pool), counts.live);
    assert_true(counts.peak <= (size_t)1 << 20);
  }
  assert_int_equal(status, GEN_ERROR_POOL_EXHAUSTED);
  /* It gave all that a whole number of blocks makes of its budget. */
  const size_t block = (size_t)16 * DIM * LAYERS * 2 * sizeof(float);
  assert_true(counts.live + block > (size_t)1 << 20);
  for (int i = 0; i < 3; ++i) kv_cache_free(caches[i]);
  kv_cache_pool_free(pool);
  assert_int_equal(counts.live, 0);
}

static gen_model* load_story(int32_t context) {
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  memset(&counts, 0, sizeof counts);
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set_threads(options, 2, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(options, context, &error), error);
  assert_ok(gen_model_options_set_allocator(options, &table, &error), error);
  assert_ok(gen_model_load(STORY_MODEL, options, &model, &error), error);
  gen_model_options_free(options);
  return model;
}

static gen_generator* generator_with(const gen_model* model, const char* key, const char* value) {
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set(options, key, value, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  return generator;
}

static size_t memory_of(const gen_model* model, const char* key) {
  size_t bytes = 0;
  assert_ok(gen_model_memory(model, key, &bytes, &error), error);
  return bytes;
}

/* Scratch memory is as large as it becomes: what it takes to grow is not the cache's. */
static void grow_workspace(gen_generator* generator, const int32_t* tokens, size_t n) {
  gen_session* session = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, n, &error), error);
  gen_session_free(session);
}

/* More keys and values than the budget, in one prompt and in many: 4 KiB of each token. */
static void sessions_in_tiers(void** state) {
  (void)state;
  static int32_t tokens[1000];
  for (int32_t i = 0; i < 1000; ++i) tokens[i] = 300 + i % 700;
  const struct {
    int32_t context;
    const char* budget;
    size_t steps[2];
  } cases[] = {{1024, "3", {1000, 37}}, {900, "3", {300, 19}}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    const size_t budget = (size_t)strtoul(cases[c].budget, NULL, 10) << 20;
    const size_t room = (size_t)cases[c].context - 24;
    gen_model* model = load_story(cases[c].context);
    gen_generator* generator = generator_with(model, "tiered_kv", cases[c].budget);
    grow_workspace(generator, tokens, room);
    for (size_t s = 0; s < 2; ++s) {
      const size_t step = cases[c].steps[s];
      gen_session* session = NULL;
      assert_ok(gen_session_new(generator, &session, &error), error);
      const size_t most = room;
      for (size_t at = 0; at < most; at += step) {
        const size_t n = at + step < most ? step : most - at;
        counts.peak = counts.live;
        assert_ok(gen_session_append_tokens(session, tokens + at, n, &error), error);
        const size_t others = memory_of(model, "weights") + memory_of(model, "workspace");
        size_t resident = 0;
        assert_ok(kv_cache_memory_bytes(gen_session_cache(session), &resident, NULL, NULL, &error),
                  error);
        assert_int_equal(resident, counts.live - others);
        assert_true(resident <= budget);
        assert_true(counts.peak <= others + budget);
      }
      gen_session_free(session);
    }
    gen_free(generator);
    gen_model_free(model);
    assert_int_equal(counts.live, 0);
  }
}

static void sessions_of_a_pool(void** state) {
  (void)state;
  static int32_t tokens[64];
  for (int32_t i = 0; i < 64; ++i) tokens[i] = 300 + i;
  gen_model* model = load_story(0);
  gen_generator* generator = generator_with(model, "paged_kv", "1,16");
  grow_workspace(generator, tokens, 64);
  gen_session* sessions[6] = {NULL};
  gen_status status = GEN_OK;
  for (int i = 0; i < 6; ++i) assert_ok(gen_session_new(generator, &sessions[i], &error), error);
  for (int step = 0; status == GEN_OK && step < 40; ++step) {
    counts.peak = counts.live;
    status = gen_session_append_tokens(sessions[step % 6], tokens, 64, &error);
    const size_t others = memory_of(model, "weights") + memory_of(model, "workspace");
    assert_true(counts.peak <= others + ((size_t)1 << 20));
  }
  for (int i = 0; i < 6; ++i) gen_session_free(sessions[i]);
  gen_free(generator);
  gen_model_free(model);
  assert_int_equal(counts.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(caches_of_tensors),
                                     cmocka_unit_test(caches_of_many), cmocka_unit_test(a_pool),
                                     cmocka_unit_test(sessions_in_tiers),
                                     cmocka_unit_test(sessions_of_a_pool)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs with struct_size, for every function that takes one: a caller of version 0.1 gets along
 * with its own sizes, a newer one with members that this library does not know, and less than
 * version 0.1 had is refused. The structs lie in blocks of exactly their size, so that an address
 * sanitizer sees what is touched beside them.
 */
#include "api_test.h"
#include "first_sizes.h"

enum { RUBBISH = 0xA5, TAIL = 40 };

/* `size` bytes that begin with `from` and go on with rubbish; struct_size says `size`. */
static void* sized(const void* from, size_t known, size_t size) {
  unsigned char* made = malloc(size);
  memset(made, RUBBISH, size);
  memcpy(made, from, size < known ? size : known);
  const uint32_t said = (uint32_t)size;
  memcpy(made, &said, sizeof said);
  return made;
}

/* --- tables, which the library reads ------------------------------------------------------------
 */

static int told; /* calls of a table's functions */

static gen_status take(void* user, size_t bytes, size_t align, void** out) {
  ++*(int*)user;
  const size_t most = align > sizeof(void*) ? align : sizeof(void*);
  *out = aligned_alloc(most, (bytes + most - 1) / most * most);
  return *out != NULL ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
}

static void give_back(void* user, void* ptr, size_t bytes) {
  (void)user;
  (void)bytes;
  free(ptr);
}

static void add(void* user, const char* name, double value) {
  (void)name;
  (void)value;
  ++*(int*)user;
}

static gen_status forward(void* user, const gen_forward_batch* batch, float* logits,
                          float* features, gen_error* said) {
  (void)features;
  (void)said;
  ++*(int*)user;
  for (int32_t i = 0; i < batch->n_logits * 4; ++i) logits[i] = (float)(i % 4);
  return GEN_OK;
}

static void release(void* user) { *(int*)user += 1000; }

static void write_one(kv_cache* cache) {
  const float one = 1;
  assert_ok(kv_cache_update(cache, 0, &one, &one, 1, 1, 1, &error), error);
}

static gen_status model_allocator(const void* table) {
  gen_model_options* options = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  const gen_status status = gen_model_options_set_allocator(options, table, &error);
  if (status == GEN_OK) {
    gen_model* model = NULL;
    assert_ok(gen_model_options_set_threads(options, 1, &error), error);
    assert_ok(gen_model_load(DRAFT_MODEL, options, &model, &error), error);
    gen_model_free(model);
  }
  gen_model_options_free(options);
  return status;
}

static gen_status cache_allocator(const void* table) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_new(1, 4, &cache, &error), error);
  const gen_status status = kv_cache_set_allocator(cache, table, &error);
  if (status == GEN_OK) write_one(cache);
  kv_cache_free(cache);
  return status;
}

static gen_status pool_allocator(const void* table) {
  kv_cache_pool* pool = NULL;
  kv_cache_block* block = NULL;
  assert_ok(kv_cache_pool_new(1, 4, 4, 1, "fp32", &pool, &error), error);
  const gen_status status = kv_cache_pool_set_allocator(pool, table, &error);
  if (status == GEN_OK) {
    assert_ok(kv_cache_pool_alloc(pool, &block, &error), error);
    assert_ok(kv_cache_pool_free_block(pool, block, &error), error);
  }
  kv_cache_pool_free(pool);
  return status;
}

static gen_status tier_allocator(const void* table) {
  kv_cache_tier_config* config = NULL;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  const gen_status status = kv_cache_tier_config_set_allocator(config, table, &error);
  if (status == GEN_OK) {
    assert_ok(kv_cache_tier_config_set_num_layers(config, 1, &error), error);
    assert_ok(kv_cache_tier_config_set_max_seq_len(config, 4, &error), error);
    assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
    write_one(cache);
    kv_cache_free(cache);
  }
  kv_cache_tier_config_free(config);
  return status;
}

static gen_status options_metrics(const void* table) {
  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  const gen_status status = gen_options_set_metrics(options, table, &error);
  if (status == GEN_OK) {
    gen_model* model = load_draft();
    gen_generator* generator = NULL;
    gen_session* session = NULL;
    assert_ok(gen_create(model, options, &generator, &error), error);
    assert_ok(gen_session_new(generator, &session, &error), error);
    assert_ok(gen_session_append(session, "Once", 4, &error), error);
    gen_session_free(session);
    gen_free(generator);
    gen_model_free(model);
  }
  gen_options_free(options);
  return status;
}

static gen_status custom_model(const void* table) {
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, 4, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 8, &error), error);
  const gen_status status = gen_model_new_custom(table, config, NULL, &model, &error);
  gen_model_config_free(config);
  if (status == GEN_OK) {
    gen_generator* generator = NULL;
    gen_session* session = NULL;
    const int32_t tokens[2] = {1, 2};
    assert_ok(gen_create(model, NULL, &generator, &error), error);
    assert_ok(gen_session_new(generator, &session, &error), error);
    assert_ok(gen_session_append_tokens(session, tokens, 2, &error), error);
    gen_session_free(session);
    gen_free(generator);
    gen_model_free(model);
    assert_true(told >= 1000); /* `release`, its last member, was called */
  }
  return status;
}

static void tables(void** state) {
  (void)state;
  const gen_allocator allocator = {.user = &told, .allocate = take, .release = give_back};
  const gen_metrics_sink sink = {.user = &told, .counter_add = add};
  const gen_forward functions = {.user = &told, .forward = forward, .release = release};
  const struct {
    const char* name;
    gen_status (*call)(const void* table);
    const void* table;
    size_t today;
    size_t first;
  } all[] = {
      {"gen_allocator", model_allocator, &allocator, sizeof allocator, first_sizes.allocator},
      {"gen_allocator", cache_allocator, &allocator, sizeof allocator, first_sizes.allocator},
      {"gen_allocator", pool_allocator, &allocator, sizeof allocator, first_sizes.allocator},
      {"gen_allocator", tier_allocator, &allocator, sizeof allocator, first_sizes.allocator},
      {"gen_metrics_sink", options_metrics, &sink, sizeof sink, first_sizes.metrics_sink},
      {"gen_forward", custom_model, &functions, sizeof functions, first_sizes.forward},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    const size_t good[] = {all[i].first, all[i].today, all[i].today + 1, all[i].today + TAIL};
    for (size_t j = 0; j < sizeof good / sizeof good[0]; ++j) {
      void* table = sized(all[i].table, all[i].today, good[j]);
      told = 0;
      assert_ok(all[i].call(table), error);
      assert_true(told > 0);
      free(table);
    }
    const size_t bad[] = {sizeof(uint32_t), sizeof(uint32_t) + 4, all[i].first - 1};
    for (size_t j = 0; j < sizeof bad / sizeof bad[0]; ++j) {
      void* table = sized(all[i].table, all[i].today, bad[j]);
      char limit[80];
      snprintf(limit, sizeof limit, "struct_size of %s is %zu, below %zu", all[i].name, bad[j],
               all[i].first);
      assert_fails(all[i].call(table), GEN_ERROR_INVALID_ARGUMENT, limit, error);
      free(table);
    }
  }
}

/* --- views, which the library fills -------------------------------------------------------------
 */

static void views(void** state) {
  (void)state;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_new(1, 4, &cache, &error), error);
  write_one(cache);
  gen_status (*const calls[])(const kv_cache*, int32_t, kv_cache_span*, gen_error*) = {
      kv_cache_view, kv_cache_full_buffer};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    kv_cache_span today = {.struct_size = sizeof today};
    assert_ok(calls[i](cache, 0, &today, &error), error);
    assert_int_equal(today.struct_size, sizeof today);
    assert_float_equal(*(const float*)today.v, 1, 0);
    const size_t good[] = {first_sizes.span, sizeof today, sizeof today + 1, sizeof today + TAIL};
    for (size_t j = 0; j < sizeof good / sizeof good[0]; ++j) {
      for (int32_t layer = 0; layer < 2; ++layer) { /* the second one is a miss */
        const kv_cache_span nothing = {0};
        unsigned char* given = sized(&nothing, 0, good[j]);
        assert_ok(calls[i](cache, layer, (kv_cache_span*)given, &error), error);
        uint32_t said = 0;
        memcpy(&said, given, sizeof said);
        assert_int_equal(said, good[j]);
        const size_t known = good[j] < sizeof today ? good[j] : sizeof today;
        const unsigned char* wanted = (const unsigned char*)(layer == 0 ? &today : &nothing);
        assert_memory_equal(given + sizeof said, wanted + sizeof said, known - sizeof said);
        for (size_t byte = known; byte < good[j]; ++byte) assert_int_equal(given[byte], RUBBISH);
        free(given);
      }
    }
    const size_t bad[] = {sizeof(uint32_t), sizeof(uint32_t) + 4, first_sizes.span - 1};
    for (size_t j = 0; j < sizeof bad / sizeof bad[0]; ++j) {
      unsigned char* given = sized(&today, 0, bad[j]);
      assert_fails(calls[i](cache, 0, (kv_cache_span*)given, &error), GEN_ERROR_INVALID_ARGUMENT,
                   "struct_size of kv_cache_span", error);
      for (size_t byte = sizeof(uint32_t); byte < bad[j]; ++byte) {
        assert_int_equal(given[byte], RUBBISH);
      }
      free(given);
    }
  }
  kv_cache_free(cache);
}

/* What the library hands out itself only ever grows. */
static void own_views(void** state) {
  (void)state;
  assert_true(sizeof(gen_token) >= first_sizes.token);
  assert_true(sizeof(gen_forward_batch) >= first_sizes.forward_batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables),
      cmocka_unit_test(views),
      cmocka_unit_test(own_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

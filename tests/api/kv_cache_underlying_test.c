/* SPDX-License-Identifier: Apache-2.0 */
/* What a cache keeps its elements as, for every kind, and what lies below tracing caches and
 * wrappers. */
#include "api_test.h"

static const gen_status state_error = GEN_ERROR_STATE;

static kv_cache* lend(const kv_cache* cache) { return (kv_cache*)(uintptr_t)cache; }

static void every_kind_has_a_type(void** state) {
  (void)state;
  static const struct {
    gen_status (*make)(int32_t layers, int32_t max_seq_len, kv_cache** out, gen_error* error);
    const char* dtype;
  } plain[] = {{kv_cache_new, "fp32"},
               {kv_cache_fp16_new, "fp16"},
               {kv_cache_fp8_new, "fp8"},
               {kv_cache_q4_new, "q4"},
               {kv_cache_q3_new, "q3"}};
  for (int i = 0; i < 5; ++i) {
    kv_cache* cache = NULL;
    kv_cache* copy = NULL;
    assert_ok(plain[i].make(1, 8, &cache, &error), error);
    assert_string_equal(kv_cache_dtype(cache), plain[i].dtype);
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    assert_string_equal(kv_cache_dtype(copy), plain[i].dtype);
    assert_null(kv_cache_underlying(cache));
    kv_cache_free(copy);
    kv_cache_free(cache);
  }
  for (int i = 0; i < 2; ++i) {
    static const char* const names[] = {"fp32", "fp16"};
    kv_cache* cache = NULL;
    kv_cache_pool* pool = NULL;
    assert_ok(kv_cache_tensor_new(NULL, 1, 8, names[i], &cache, &error), error);
    assert_string_equal(kv_cache_dtype(cache), names[i]);
    kv_cache_free(cache);
    assert_ok(kv_cache_pool_new(1, 4, 8, 1, names[i], &pool, &error), error);
    assert_ok(kv_cache_paged_new(pool, 1, &cache, &error), error);
    assert_string_equal(kv_cache_dtype(cache), names[i]);
    kv_cache_free(cache);
    kv_cache_pool_free(pool);
  }
  kv_cache* cache = NULL;
  assert_ok(kv_cache_compressed_new(1, 0, 0, 4, &cache, &error), error);
  assert_string_equal(kv_cache_dtype(cache), "fp32");
  kv_cache_free(cache);
  kv_cache_tier_config* config = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, 1, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, 8, &error), error);
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  assert_string_equal(kv_cache_dtype(cache), "fp32");
  kv_cache_free(cache);
  kv_cache_tier_config_free(config);
  assert_null(kv_cache_dtype(NULL));
  assert_null(kv_cache_underlying(NULL));
}

static void a_sessions_cache_has_the_generators_type(void** state) {
  (void)state;
  gen_model* model = load_draft();
  static const char* const how[][4] = {{"kv_dtype", "fp32", "fp32", "fp32"},
                                       {"kv_dtype", "fp8/q4", "fp8/q4", "fp8/q4"},
                                       {"paged_kv", "8", "fp32", "paged"},
                                       {"tiered_kv", "8", "fp32", "tiered"},
                                       {"compressed_kv", "4", "fp32", "compressed"}};
  for (int i = 0; i < 5; ++i) {
    gen_options* options = NULL;
    gen_generator* generator = NULL;
    gen_session* session = NULL;
    kv_cache* own = NULL;
    assert_ok(gen_options_new(&options, &error), error);
    assert_ok(gen_options_set(options, how[i][0], how[i][1], &error), error);
    assert_ok(gen_create(model, options, &generator, &error), error);
    assert_ok(gen_session_new(generator, &session, &error), error);
    assert_string_equal(kv_cache_dtype(gen_session_cache(session)), how[i][2]);
    assert_string_equal(kv_cache_kind(gen_session_cache(session)), how[i][3]);
    assert_ok(kv_cache_generator_new(generator, 0, &own, &error), error);
    assert_string_equal(kv_cache_dtype(own), how[i][2]);
    assert_string_equal(kv_cache_kind(own), how[i][3]);
    kv_cache_free(own);
    gen_session_free(session);
    gen_free(generator);
    gen_options_free(options);
  }
  gen_model_free(model);
}

static void below_a_tracing_cache(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* cache = NULL;
  kv_cache* outer = NULL;
  const float x[4] = {1, 2, 3, 4};
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_fp16_new(1, 8, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &cache, &error), error);
  const kv_cache* below = kv_cache_underlying(cache);
  assert_non_null(below);
  assert_string_equal(kv_cache_kind(cache), "tracing");
  assert_string_equal(kv_cache_kind(below), "fp16");
  assert_string_equal(kv_cache_dtype(cache), "fp16");
  assert_string_equal(kv_cache_dtype(below), "fp16");
  assert_null(kv_cache_underlying(below));
  assert_null(kv_cache_underlying(inner));

  assert_ok(kv_cache_update(cache, 0, x, x, 1, 2, 2, &error), error);
  assert_int_equal(gen_tracer_op_count(tracer), 2);
  float k[4] = {0};
  assert_ok(kv_cache_get(below, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_memory_equal(k, x, sizeof x);
  assert_int_equal(kv_cache_seq_len(below), 2);
  assert_int_equal(kv_cache_max_seq_len(below), 8);
  assert_int_equal(kv_cache_num_layers(below), 1);
  assert_int_equal(kv_cache_capabilities(below) & KV_CACHE_CAN_TRUNCATE, 0);
  assert_int_equal(gen_tracer_op_count(tracer), 2); /* not recorded */
  /* A copy of it is its owner's. */
  kv_cache* copy = NULL;
  assert_ok(kv_cache_clone(below, &copy, &error), error);
  assert_ok(kv_cache_truncate(copy, 1, &error), error);
  assert_int_equal(kv_cache_seq_len(below), 2);
  kv_cache_free(copy);
  /* For reading only. */
  assert_fails(kv_cache_update(lend(below), 0, x, x, 1, 1, 2, &error), state_error, "read-only",
               error);
  assert_fails(kv_cache_truncate(lend(below), 0, &error), state_error, "read-only", error);
  assert_fails(kv_cache_reset(lend(below), &error), state_error, "read-only", error);
  assert_fails(kv_cache_set_allocator(lend(below), NULL, &error), state_error, "read-only", error);
  assert_fails(kv_cache_tracing_new(lend(below), tracer, &outer, &error), state_error, "read-only",
               error);
  kv_cache_free(lend(below));
  assert_int_equal(kv_cache_seq_len(below), 2);
  /* It stays when the handle that was wrapped has gone. */
  kv_cache_free(inner);
  assert_ok(kv_cache_get(below, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  /* One within another. */
  assert_ok(kv_cache_tracing_new(cache, tracer, &outer, &error), error);
  assert_string_equal(kv_cache_kind(kv_cache_underlying(outer)), "tracing");
  kv_cache_free(outer);
  kv_cache_free(cache);
  gen_tracer_free(tracer);
}

static void below_a_wrapper(void** state) {
  (void)state;
  kv_cache* parts[3];
  kv_cache* wrapper = NULL;
  static const char* const kinds[] = {"swa", "causal", "encoder"};
  assert_ok(kv_cache_swa_new(2, &parts[0], &error), error);
  assert_ok(kv_cache_causal_new(&parts[1], &error), error);
  assert_ok(kv_cache_encoder_new(&parts[2], &error), error);
  assert_null(kv_cache_dtype(parts[0]));
  assert_ok(kv_cache_wrapper_new(parts, 3, &wrapper, &error), error);
  assert_null(kv_cache_underlying(parts[0]));
  for (int i = 0; i < 3; ++i) kv_cache_free(parts[i]);
  assert_null(kv_cache_dtype(wrapper));
  assert_ok(kv_cache_init(wrapper, "q8_0", 1, 8, 4, &error), error);
  assert_string_equal(kv_cache_dtype(wrapper), "q8_0");
  for (int i = 2; i >= 0; --i) {
    assert_ok(kv_cache_set_layer_type(wrapper, i, &error), error);
    const kv_cache* below = kv_cache_underlying(wrapper);
    assert_string_equal(kv_cache_kind(below), kinds[i]);
    assert_string_equal(kv_cache_dtype(below), "q8_0");
    assert_int_equal(kv_cache_is_lossy(below), 1);
    size_t resident = 1;
    assert_ok(kv_cache_memory_bytes(below, &resident, NULL, NULL, &error), error);
    int32_t can = 7;
    if (i < 2) assert_ok(kv_cache_can_resume(below, 0, 0, &can, &error), error);
    /* Only the wrapper drives it. */
    const int32_t zero = 0;
    assert_fails(kv_cache_init(lend(below), "fp32", 1, 8, 4, &error), state_error, "read-only",
                 error);
    assert_fails(kv_cache_start_forward(lend(below), &zero, &zero, 1, 0, NULL, 0, &error),
                 state_error, "read-only", error);
    assert_fails(kv_cache_remove(lend(below), 0, 0, 1, &error), state_error, "read-only", error);
    assert_fails(kv_cache_close(lend(below), &error), state_error, "read-only", error);
    kv_cache* other = lend(below);
    kv_cache* outer = NULL;
    assert_fails(kv_cache_wrapper_new(&other, 1, &outer, &error), state_error, "read-only", error);
    kv_cache_free(lend(below));
  }
  /* A pass goes back to layer type 0. */
  assert_ok(kv_cache_set_layer_type(wrapper, 1, &error), error);
  const int32_t zero = 0;
  assert_ok(kv_cache_start_forward(wrapper, &zero, &zero, 1, 0, NULL, 0, &error), error);
  assert_string_equal(kv_cache_kind(kv_cache_underlying(wrapper)), "swa");
  kv_cache_free(wrapper);
}

static gen_status take(void* user, size_t bytes, size_t align, void** out) {
  ++*(long*)user;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  return *out != NULL ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
}
static void give_back(void* user, void* ptr, size_t bytes) {
  (void)bytes;
  --*(long*)user;
  free(ptr);
}

/* A copy of what is below has the allocator of the cache above, also when both are gone. */
static void a_copy_of_what_is_below_keeps_the_allocator(void** state) {
  (void)state;
  long live = 0;
  const gen_allocator table = {sizeof table, &live, take, give_back};
  static const float x[16] = {1, 2, 3, 4, 5, 6, 7, 8};
  gen_tracer* tracer = NULL;
  kv_cache* cache = NULL;
  kv_cache* tracing = NULL;
  kv_cache* copy = NULL;
  assert_ok(kv_cache_new(1, 8, &cache, &error), error);
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 2, 4, &error), error);
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_tracing_new(cache, tracer, &tracing, &error), error);
  assert_ok(kv_cache_clone(kv_cache_underlying(tracing), &copy, &error), error);
  kv_cache_free(tracing);
  kv_cache_free(cache);
  gen_tracer_free(tracer);
  assert_true(live > 0);
  assert_ok(kv_cache_reset(copy, &error), error);
  assert_ok(kv_cache_update(copy, 0, x, x, 2, 2, 4, &error), error);
  /* It is of the kind of the cache below. */
  assert_fails(kv_cache_set_allocator(copy, NULL, &error), state_error, "has been written to",
               error);
  kv_cache_free(copy);
  assert_int_equal(live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_has_a_type),
      cmocka_unit_test(a_sessions_cache_has_the_generators_type),
      cmocka_unit_test(below_a_tracing_cache),
      cmocka_unit_test(below_a_wrapper),
      cmocka_unit_test(a_copy_of_what_is_below_keeps_the_allocator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor caches through C: each documented error of every function, buffers read element by element
 * where the header says that they lie, states and clones, and a model's pass over one. */
#include "api_test.h"

#include "counting_allocator.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char* const dtypes[2] = {"fp32", "fp16"};

static kv_cache* make(const char* dtype, int32_t layers, int32_t max_seq_len) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tensor_new(NULL, layers, max_seq_len, dtype, &cache, &error), error);
  assert_non_null(cache);
  return cache;
}

/* Different for every element, and of at most eleven bits, which binary16 holds exactly. */
static int number(int b, int p, int d, int is_v) { return 1 + is_v + 2 * (d + 8 * (p + 8 * b)); }

/* Appends positions of three lanes of five elements. */
static gen_status append(kv_cache* cache, int layer, int seq) {
  float k[3 * 8 * 5];
  float v[3 * 8 * 5];
  const int start = kv_cache_layer_seq_len(cache, layer);
  for (int b = 0, i = 0; b < 3; ++b) {
    for (int p = start; p < start + seq; ++p) {
      for (int d = 0; d < 5; ++d, ++i) {
        k[i] = (float)number(b, p, d, 0);
        v[i] = (float)number(b, p, d, 1);
      }
    }
  }
  return kv_cache_update(cache, layer, k, v, 3, seq, 5, &error);
}

/* The bits of a whole number from 1 up to 2047 as binary16, put together from its definition. */
static uint16_t half_bits(int x) {
  int exponent = 0;
  while (x >> (exponent + 1) != 0) ++exponent;
  const int fraction = (x - (1 << exponent)) << (10 - exponent);
  return (uint16_t)(((exponent + 15) << 10) | fraction);
}

static kv_cache_span full(const kv_cache* cache, int layer) {
  kv_cache_span span;
  memset(&span, 0x5A, sizeof(span));
  span.struct_size = sizeof(span);
  assert_ok(kv_cache_full_buffer(cache, layer, &span, &error), error);
  assert_int_equal(span.struct_size, sizeof(span));
  return span;
}

static void assert_miss(kv_cache_span span) {
  const kv_cache_span none = {.struct_size = sizeof(none)};
  assert_memory_equal(&span, &none, sizeof(none));
}

/* A buffer for eight positions of which `seq` are written, at the places that the layout gives. */
static void assert_buffer(kv_cache_span span, int kind, int seq) {
  const size_t size = kind == 0 ? sizeof(float) : sizeof(uint16_t);
  assert_int_equal(span.type, kind == 0 ? KV_CACHE_TYPE_F32 : KV_CACHE_TYPE_F16);
  assert_int_equal(span.batch, 3);
  assert_int_equal(span.seq, 8);
  assert_int_equal(span.k_dim, 5);
  assert_int_equal(span.v_dim, 5);
  assert_int_equal(span.k_seq_stride, 5 * size);
  assert_int_equal(span.v_seq_stride, 5 * size);
  assert_int_equal(span.k_batch_stride, 8 * 5 * size);
  assert_int_equal(span.v_batch_stride, 8 * 5 * size);
  for (int is_v = 0; is_v < 2; ++is_v) {
    const char* base = is_v ? span.v : span.k;
    for (int b = 0; b < 3; ++b) {
      for (int p = 0; p < seq; ++p) {
        for (int d = 0; d < 5; ++d) {
          const char* at = base + (size_t)(b * 8 * 5 + p * 5 + d) * size;
          const float as_float = (float)number(b, p, d, is_v);
          const uint16_t as_half = half_bits(number(b, p, d, is_v));
          assert_memory_equal(at, kind == 0 ? (const void*)&as_float : &as_half, size);
        }
      }
    }
  }
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(kv_cache_tensor_new(NULL, -1, 8, "fp32", &cache, &error), bad, "-1 layers", error);
  assert_null(cache);
  assert_fails(kv_cache_tensor_new(NULL, 65537, 8, NULL, &cache, &error), bad, "65537", error);
  assert_fails(kv_cache_tensor_new(NULL, 2, 0, NULL, &cache, &error), bad, "max_seq_len 0", error);
  assert_fails(kv_cache_tensor_new(NULL, 2, 8, "q4", &cache, &error), bad, "fp32, fp16", error);
  assert_fails(kv_cache_tensor_new(NULL, 2, 8, "", &cache, &error), bad, "fp32, fp16", error);
  assert_fails(kv_cache_tensor_new(NULL, 2, 8, "FP16", &cache, &error), bad, "FP16", error);
  assert_fails(kv_cache_tensor_new(NULL, 2, 8, "fp32", NULL, &error), bad, "out", error);
  assert_int_equal(kv_cache_tensor_new(NULL, 2, -8, NULL, &cache, NULL), bad);
  cache = make(NULL, 0, 1);
  assert_int_equal(kv_cache_num_layers(cache), 0);
  assert_fails(append(cache, 0, 1), GEN_ERROR_OUT_OF_RANGE, "layer 0", error);
  assert_miss(full(cache, 0));
  kv_cache_free(cache);
}

static void getters_tell_what_it_is(void** state) {
  (void)state;
  const uint32_t all = KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_CAN_VIEW |
                       KV_CACHE_ONE_ROW_ONE_RESULT | KV_CACHE_HAS_FULL_BUFFER;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(dtypes[kind], 3, 8);
    for (int written = 0; written < 2; ++written) {
      assert_string_equal(kv_cache_kind(cache), "tensor");
      assert_int_equal(kv_cache_is_lossy(cache), kind);
      assert_int_equal(kv_cache_num_layers(cache), 3);
      assert_int_equal(kv_cache_max_seq_len(cache), 8);
      assert_int_equal(kv_cache_capabilities(cache), all);
      assert_null(kv_cache_seq_len_device_ptr(cache));
      assert_null(kv_cache_counter_device_ptr(cache));
      assert_int_equal(append(cache, 0, 2), GEN_OK);
    }
    kv_cache_free(cache);
  }
}

static void buffers_lie_as_the_header_says(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(dtypes[kind], 2, 8);
    assert_miss(full(cache, 0)); /* nothing yet */
    assert_int_equal(append(cache, 0, 3), GEN_OK);
    const kv_cache_span before = full(cache, 0);
    assert_buffer(before, kind, 3);
    assert_miss(full(cache, 1));
    assert_miss(full(cache, -1));
    assert_miss(full(cache, 2));
    assert_int_equal(append(cache, 0, 5), GEN_OK);
    assert_buffer(before, kind, 8); /* the same memory, up to the last position */
    kv_cache_span now = full(cache, 0);
    assert_memory_equal(&now, &before, sizeof(now));
    assert_int_equal(append(cache, 0, 1), GEN_ERROR_CACHE_FULL);

    assert_ok(kv_cache_truncate(cache, 2, &error), error);
    now = full(cache, 0);
    assert_memory_equal(&now, &before, sizeof(now));
    assert_ok(kv_cache_reset(cache, &error), error);
    now = full(cache, 0);
    assert_memory_equal(&now, &before, sizeof(now));
    assert_int_equal(append(cache, 0, 2), GEN_OK);
    now = full(cache, 0);
    assert_memory_equal(&now, &before, sizeof(now));
    assert_buffer(now, kind, 2);
    kv_cache_free(cache);
  }
}

static void full_buffer_checks_its_arguments(void** state) {
  (void)state;
  kv_cache* cache = make("fp16", 2, 8);
  assert_int_equal(append(cache, 0, 1), GEN_OK);
  kv_cache_span span = full(cache, 0);
  const kv_cache_span kept = span;
  assert_fails(kv_cache_full_buffer(NULL, 0, &span, &error), bad, "cache", error);
  assert_fails(kv_cache_full_buffer(cache, 0, NULL, &error), bad, "span", error);
  span.struct_size = 3;
  assert_fails(kv_cache_full_buffer(cache, 0, &span, &error), bad, "struct_size", error);
  span.struct_size = sizeof(span);
  assert_memory_equal(&span, &kept, sizeof(span));
  kv_cache_free(cache);
}

/* Other kinds have such buffers, too, or say that they have none. */
static void every_kind_answers(void** state) {
  (void)state;
  kv_cache_pool* pool = NULL;
  kv_cache_tier_config* config = NULL;
  gen_tracer* tracer = NULL;
  assert_ok(kv_cache_pool_new(2, 4, 15, 1, "fp32", &pool, &error), error);
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, 2, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, 8, &error), error);
  assert_ok(gen_tracer_new(&tracer, &error), error);
  kv_cache* caches[9] = {0};
  assert_ok(kv_cache_new(2, 8, &caches[0], &error), error);
  assert_ok(kv_cache_fp16_new(2, 8, &caches[1], &error), error);
  assert_ok(kv_cache_tracing_new(caches[1], tracer, &caches[2], &error), error);
  assert_ok(kv_cache_fp8_new(2, 8, &caches[3], &error), error);
  assert_ok(kv_cache_q4_new(2, 8, &caches[4], &error), error);
  assert_ok(kv_cache_q3_new(2, 8, &caches[5], &error), error);
  assert_ok(kv_cache_compressed_new(2, 0, 0, 4, &caches[6], &error), error);
  assert_ok(kv_cache_paged_new(pool, 2, &caches[7], &error), error);
  assert_ok(kv_cache_tiered_new(config, &caches[8], &error), error);
  for (int i = 0; i < 9; ++i) {
    const uint32_t can = kv_cache_capabilities(caches[i]) & KV_CACHE_HAS_FULL_BUFFER;
    assert_int_equal(can, i < 3 ? KV_CACHE_HAS_FULL_BUFFER : 0);
    kv_cache_span span = {.struct_size = sizeof(span), .seq = 77};
    for (int written = 0; written < 2; ++written) {
      if (i < 3) {
        if (written) assert_buffer(full(caches[i], 0), i > 0, 2);
      } else {
        assert_fails(kv_cache_full_buffer(caches[i], 0, &span, &error), GEN_ERROR_UNSUPPORTED,
                     "fixed shape", error);
        assert_int_equal(span.seq, 77);
      }
      if (i != 2 && !written) assert_int_equal(append(caches[i], 0, 2), GEN_OK);
    }
    const int32_t most = kv_cache_max_seq_len(caches[i]);
    assert_int_equal(most, i == 6 ? INT32_MAX : i == 7 ? kv_cache_pool_cap(pool) * 4 : 8);
    assert_null(kv_cache_seq_len_device_ptr(caches[i]));
    assert_null(kv_cache_counter_device_ptr(caches[i]));
    assert_fails(kv_cache_sync_counter(caches[i], &error), GEN_ERROR_STATE, "no counter", error);
  }
  for (int i = 8; i >= 0; --i) kv_cache_free(caches[i]);
  gen_tracer_free(tracer);
  kv_cache_tier_config_free(config);
  kv_cache_pool_free(pool);

  kv_cache* many = NULL;
  kv_cache_span span = {.struct_size = sizeof(span), .seq = 77};
  assert_ok(kv_cache_causal_new(&many, &error), error);
  assert_int_equal(kv_cache_max_seq_len(many), 0);
  assert_fails(kv_cache_full_buffer(many, 0, &span, &error), GEN_ERROR_STATE, "this is a causal",
               error);
  assert_int_equal(span.seq, 77);
  assert_null(kv_cache_seq_len_device_ptr(many));
  assert_fails(kv_cache_sync_counter(many, &error), GEN_ERROR_STATE, "no counter", error);
  kv_cache_free(many);
}

static void there_are_no_counters(void** state) {
  (void)state;
  kv_cache* cache = make("fp32", 1, 8);
  assert_null(kv_cache_seq_len_device_ptr(NULL));
  assert_null(kv_cache_counter_device_ptr(NULL));
  assert_int_equal(append(cache, 0, 3), GEN_OK);
  assert_fails(kv_cache_sync_counter(NULL, &error), bad, "cache", error);
  assert_fails(kv_cache_sync_counter(cache, &error), GEN_ERROR_STATE, "no counter", error);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_buffer(full(cache, 0), 0, 3);
  kv_cache_free(cache);
}

/* Bit for bit, into another tensor cache or one that keeps elements the same way. */
static void states_and_clones(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* cache = make(dtypes[kind], 2, 8);
    kv_cache* copy = NULL;
    unsigned char bytes[4096];
    size_t n = 0;
    assert_int_equal(append(cache, 0, 5), GEN_OK);
    assert_int_equal(append(cache, 1, 4), GEN_OK);
    assert_ok(kv_cache_save_buffer(cache, bytes, sizeof(bytes), &n, &error), error);
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    kv_cache_free(cache);
    assert_string_equal(kv_cache_kind(copy), "tensor");
    assert_int_equal(kv_cache_max_seq_len(copy), 8);
    assert_buffer(full(copy, 0), kind, 5);
    assert_buffer(full(copy, 1), kind, 4);
    assert_int_equal(append(copy, 0, 3), GEN_OK);
    assert_buffer(full(copy, 0), kind, 8);
    kv_cache_free(copy);

    kv_cache* loaded = make(dtypes[kind], 2, 8);
    assert_ok(kv_cache_load_buffer(loaded, bytes, n, &error), error);
    assert_buffer(full(loaded, 0), kind, 5);
    assert_buffer(full(loaded, 1), kind, 4);
    kv_cache_free(loaded);
    assert_ok((kind == 0 ? kv_cache_new : kv_cache_fp16_new)(2, 8, &loaded, &error), error);
    assert_ok(kv_cache_load_buffer(loaded, bytes, n, &error), error);
    assert_buffer(full(loaded, 0), kind, 5);
    kv_cache_free(loaded);
    loaded = make(dtypes[1 - kind], 2, 8);
    assert_fails(kv_cache_load_buffer(loaded, bytes, n, &error), bad,
                 kind == 0 ? "a state of form f32" : "a state of form f16", error);
    kv_cache_free(loaded);
  }
}

static void memory_is_what_the_allocator_counted(void** state) {
  (void)state;
  for (int kind = 0; kind < 2; ++kind) {
    struct counting counts = {0};
    const gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
    kv_cache* cache = make(dtypes[kind], 1, 8);
    assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
    counts.refuse = 1;
    assert_int_equal(append(cache, 0, 3), GEN_ERROR_OUT_OF_MEMORY);
    assert_miss(full(cache, 0));
    counts.refuse = 0;
    assert_int_equal(append(cache, 0, 3), GEN_OK);
    size_t resident = 0;
    size_t payload = 0;
    assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, NULL, &error), error);
    assert_int_equal(resident, counts.live);
    assert_int_equal(payload, 2 * 3 * 3 * 5 * (kind == 0 ? 4 : 2));
    kv_cache_free(cache);
    assert_int_equal(counts.live, 0);
  }
}

/* What a model makes of it is what it makes of kv_cache_new and kv_cache_fp16_new. */
static void a_model_writes_one(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t layers = gen_model_config_num_layers(gen_model_get_config(model));
  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(model));
  const int32_t tokens[5] = {100, 200, 300, 400, 500};
  float* logits = malloc(vocab * sizeof(float));
  float* want = malloc(vocab * sizeof(float));
  kv_cache* cache = NULL;
  assert_fails(kv_cache_tensor_new(model, layers + 1, 8, NULL, &cache, &error), bad,
               "for a model of", error);
  assert_null(cache);
  assert_fails(kv_cache_tensor_new(model, -1, 8, NULL, &cache, &error), bad, "-1 layers", error);
  for (int kind = 0; kind < 2; ++kind) {
    kv_cache* plain = NULL;
    kv_cache* copy = NULL;
    assert_ok(kv_cache_tensor_new(model, kind == 0 ? 0 : layers, 20, dtypes[kind], &cache, &error),
              error);
    assert_int_equal(kv_cache_num_layers(cache), layers);
    assert_ok((kind == 0 ? kv_cache_new : kv_cache_fp16_new)(layers, 20, &plain, &error), error);
    assert_ok(gen_model_forward(model, tokens, 4, cache, logits, vocab, &error), error);
    assert_ok(gen_model_forward(model, tokens, 4, plain, want, vocab, &error), error);
    assert_memory_equal(logits, want, vocab * sizeof(float));
    assert_string_equal(kv_cache_kind(cache), "tensor");
    assert_int_equal(kv_cache_capabilities(cache) & KV_CACHE_HAS_FULL_BUFFER, 0);
    kv_cache_span span = {.struct_size = sizeof(span), .seq = 77};
    assert_fails(kv_cache_full_buffer(cache, 0, &span, &error), GEN_ERROR_UNSUPPORTED, "a model",
                 error);
    assert_int_equal(span.seq, 77);
    assert_miss(full(cache, layers));

    /* A clone, and a new cache with its state, go on as the original does. */
    size_t n = 0;
    assert_ok(kv_cache_save_buffer(cache, NULL, 0, &n, &error), error);
    unsigned char* bytes = malloc(n);
    assert_ok(kv_cache_save_buffer(cache, bytes, n, &n, &error), error);
    assert_ok(kv_cache_clone(cache, &copy, &error), error);
    kv_cache_free(cache);
    assert_ok(gen_model_forward(model, tokens + 4, 1, plain, want, vocab, &error), error);
    assert_ok(gen_model_forward(model, tokens + 4, 1, copy, logits, vocab, &error), error);
    assert_memory_equal(logits, want, vocab * sizeof(float));
    kv_cache_free(copy);
    kv_cache* empty = NULL;
    assert_ok(kv_cache_tensor_new(model, 0, 20, dtypes[kind], &empty, &error), error);
    assert_ok(kv_cache_clone(empty, &cache, &error), error);
    kv_cache_free(empty);
    assert_ok(kv_cache_load_buffer(cache, bytes, n, &error), error);
    assert_ok(gen_model_forward(model, tokens + 4, 1, cache, logits, vocab, &error), error);
    assert_memory_equal(logits, want, vocab * sizeof(float));
    free(bytes);
    kv_cache_free(cache);
    kv_cache_free(plain);
  }
  free(logits);
  free(want);
  gen_model_free(model);
}

/* A session's cache is read with kv_cache_get; its counters are nobody's to sync. */
static void a_sessions_cache_refuses(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  const int32_t tokens[2] = {100, 200};
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  kv_cache* cache = (kv_cache*)gen_session_cache(session);
  assert_miss(full(cache, 0)); /* still empty */
  assert_ok(gen_session_append_tokens(session, tokens, 2, &error), error);
  kv_cache_span span = {.struct_size = sizeof(span)};
  assert_in_range(kv_cache_seq_len(cache), 1, 2); /* the last token may wait until it is needed */
  assert_fails(kv_cache_full_buffer(cache, 0, &span, &error), GEN_ERROR_UNSUPPORTED, "a model",
               error);
  assert_fails(kv_cache_sync_counter(cache, &error), GEN_ERROR_STATE, "session", error);
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(getters_tell_what_it_is),
      cmocka_unit_test(buffers_lie_as_the_header_says),
      cmocka_unit_test(full_buffer_checks_its_arguments),
      cmocka_unit_test(every_kind_answers),
      cmocka_unit_test(there_are_no_counters),
      cmocka_unit_test(states_and_clones),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
      cmocka_unit_test(a_model_writes_one),
      cmocka_unit_test(a_sessions_cache_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

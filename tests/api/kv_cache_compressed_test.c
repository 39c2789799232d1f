/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of chunk-wise means, through C: the published examples, each documented error, memory
 * as the caller's allocator counts it, and that a failed call changes nothing. */
#include "api_test.h"
#include "counting_allocator.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static kv_cache* make(int32_t layers, int32_t chunk) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_compressed_new(layers, 0, 0, chunk, &cache, &error), error);
  assert_non_null(cache);
  return cache;
}

static gen_status append(kv_cache* cache, int layer, const float* x, int batch, int seq, int dim) {
  return kv_cache_update(cache, layer, x, x, batch, seq, dim, &error);
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(kv_cache_compressed_new(-1, 0, 0, 4, &cache, &error), bad, "-1 layers", error);
  assert_null(cache);
  assert_fails(kv_cache_compressed_new(2, -1, 0, 4, &cache, &error), bad, "-1 heads", error);
  assert_fails(kv_cache_compressed_new(2, 0, -2, 4, &cache, &error), bad, "-2 elements", error);
  assert_fails(kv_cache_compressed_new(2, 0, 0, 0, &cache, &error), bad, "chunk_size 0", error);
  assert_fails(kv_cache_compressed_new(2, 0, 0, 4, NULL, &error), bad, "out", error);
  cache = make(3, 4);
  assert_string_equal(kv_cache_kind(cache), "compressed");
  assert_int_equal(kv_cache_is_lossy(cache), 1);
  assert_int_equal(kv_cache_num_layers(cache), 3);
  assert_int_equal(kv_cache_max_seq_len(cache), INT32_MAX);
  assert_int_equal(kv_cache_capabilities(cache),
                   KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_CAN_VIEW);
  kv_cache_free(cache);
}

static void reading_gives_the_published_means(void** state) {
  (void)state;
  const float x[6] = {1, 2, 5, 8, 10, 20};
  const float want[4] = {3, 5, 10, 20};
  float k[4];
  float v[4];
  int32_t shape[3];
  const int32_t want_shape[3] = {1, 2, 2};
  kv_cache* cache = make(1, 2);
  assert_int_equal(append(cache, 0, x, 1, 3, 2), GEN_OK);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 3);
  assert_int_equal(kv_cache_kv_len(cache, 0), 2);
  assert_int_equal(kv_cache_kv_len(cache, 1), 0);
  assert_ok(kv_cache_get(cache, 0, k, 4, v, 4, shape, NULL, &error), error);
  assert_memory_equal(shape, want_shape, sizeof(shape));
  assert_memory_equal(k, want, sizeof(want));
  assert_memory_equal(v, want, sizeof(want));
  kv_cache_span span = {0};
  span.struct_size = sizeof(span);
  assert_ok(kv_cache_view(cache, 0, &span, &error), error);
  assert_int_equal(span.seq, 2);
  assert_memory_equal(span.k, want, sizeof(want));
  assert_fails(append(cache, 1, x, 1, 1, 2), GEN_ERROR_OUT_OF_RANGE, "layer 1", error);
  assert_fails(append(cache, 0, x, 2, 1, 2), bad, "batch 1, dim 2", error);
  assert_fails(append(cache, 0, x, 1, -1, 2), bad, "[1, -1, 2]", error);
  kv_cache_free(cache);
}

static void entries_tell_their_positions(void** state) {
  (void)state;
  const float x[5] = {1, 2, 3, 4, 5};
  kv_cache* cache = make(1, 2);
  int32_t first = 9;
  int32_t positions = 9;
  assert_fails(kv_cache_compressed_entry(cache, 0, 0, &first, &positions, &error),
               GEN_ERROR_OUT_OF_RANGE, "no entry 0", error); /* nothing written yet */
  assert_int_equal(first, 0);
  assert_int_equal(append(cache, 0, x, 1, 5, 1), GEN_OK);
  assert_ok(kv_cache_compressed_entry(cache, 0, 1, &first, &positions, &error), error);
  assert_int_equal(first, 2);
  assert_int_equal(positions, 2);
  assert_ok(kv_cache_compressed_entry(cache, 0, 2, &first, &positions, &error), error);
  assert_int_equal(first, 4);
  assert_int_equal(positions, 1);
  assert_ok(kv_cache_compressed_entry(cache, 0, 2, NULL, NULL, &error), error);
  assert_fails(kv_cache_compressed_entry(cache, 0, 3, &first, &positions, &error),
               GEN_ERROR_OUT_OF_RANGE, "no entry 3", error);
  assert_int_equal(positions, 0);
  assert_fails(kv_cache_compressed_entry(cache, 1, 0, &first, &positions, &error),
               GEN_ERROR_OUT_OF_RANGE, "layer 1", error);
  assert_fails(kv_cache_compressed_entry(NULL, 0, 0, &first, &positions, &error), bad, "cache",
               error);
  kv_cache* plain = NULL;
  assert_ok(kv_cache_new(1, 4, &plain, &error), error);
  assert_fails(kv_cache_compressed_entry(plain, 0, 0, &first, &positions, &error), bad, "fp32",
               error);
  kv_cache_free(plain);
  kv_cache_free(cache);
}

static void truncate_reset_and_clone(void** state) {
  (void)state;
  const float x[5] = {1, 2, 3, 4, 5};
  kv_cache* cache = make(1, 2);
  kv_cache* copy = NULL;
  float k[4];
  assert_int_equal(append(cache, 0, x, 1, 5, 1), GEN_OK);
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  assert_ok(kv_cache_truncate(cache, 3, &error), error); /* a cut into a mean drops it */
  assert_int_equal(kv_cache_seq_len(cache), 2);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(kv_cache_kv_len(cache, 0), 0);
  assert_int_equal(append(cache, 0, x, 1, 1, 5), GEN_OK); /* another shape */
  kv_cache_free(cache);
  assert_ok(kv_cache_get(copy, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_true(k[0] == 1.5f && k[1] == 3.5f && k[2] == 5.0f);
  kv_cache_free(copy);
}

static void memory_is_what_the_allocator_counted(void** state) {
  (void)state;
  struct counting counts = {0};
  const gen_allocator table = {sizeof(table), &counts, counting_allocate, counting_release};
  kv_cache* cache = make(1, 4);
  const float x[6] = {1, 2, 3, 4, 5, 6};
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  counts.refuse = 1;
  assert_int_equal(append(cache, 0, x, 2, 3, 1), GEN_ERROR_OUT_OF_MEMORY);
  counts.refuse = 0;
  size_t resident = 0;
  for (int i = 0; i < 200; ++i) {
    assert_int_equal(append(cache, 0, x, 2, 3, 1), GEN_OK);
    assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
    assert_int_equal(resident, counts.live);
  }
  size_t payload = 0;
  assert_ok(kv_cache_memory_bytes(cache, NULL, &payload, NULL, &error), error);
  assert_int_equal(payload, 2 * 2 * 150 * sizeof(float));
  kv_cache_free(cache);
  assert_int_equal(counts.live, 0);
}

/* ---- states of a model's cache ---- */

enum { VOCAB = 10, HEADS = 2, HEAD_DIM = 4, MODEL_LAYERS = 2, CONTEXT = 16 };

/* Attends twice and answers what it found, so that logits tell of everything in the cache. */
static gen_status forward(void* user, const gen_forward_batch* batch, float* logits,
                          float* features, gen_error* said) {
  (void)user;
  (void)features;
  float x[CONTEXT * HEADS * HEAD_DIM];
  float out[CONTEXT * HEADS * HEAD_DIM];
  for (int32_t i = 0; i < batch->n_rows * HEADS * HEAD_DIM; ++i) {
    const int32_t row = i / (HEADS * HEAD_DIM);
    x[i] = (float)((batch->tokens[row] * 7 + batch->positions[row] * 3 + i) % 11) * 0.25F;
  }
  for (int layer = 0; layer < MODEL_LAYERS; ++layer) {
    const gen_status status = gen_forward_attention(batch, layer, x, x, x, 1, out, said);
    if (status != GEN_OK) return status;
  }
  const float* last = out + (batch->n_rows - 1) * HEADS * HEAD_DIM;
  for (int32_t i = 0; i < batch->n_logits * VOCAB; ++i) logits[i] = last[i % (HEADS * HEAD_DIM)];
  return GEN_OK;
}

static gen_model* make_model(int32_t context) {
  const gen_forward table = {.struct_size = sizeof table, .forward = forward};
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, VOCAB, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, context, &error), error);
  assert_ok(gen_model_config_set_num_heads(config, HEADS, &error), error);
  assert_ok(gen_model_config_set_num_kv_heads(config, HEADS, &error), error);
  assert_ok(gen_model_config_set_head_dim(config, HEAD_DIM, &error), error);
  assert_ok(gen_model_config_set_kv_layers(config, MODEL_LAYERS, &error), error);
  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

/* Memory of a machine that has little. */
static gen_status little_allocate(void* user, size_t bytes, size_t align, void** out) {
  *out = NULL;
  return bytes > 1 << 20 ? GEN_ERROR_OUT_OF_MEMORY : counting_allocate(user, bytes, align, out);
}

/* A cache without limit: of means, or of rows. */
static kv_cache* unlimited(int32_t chunk, struct counting* counts) {
  kv_cache* cache = NULL;
  const gen_allocator table = {sizeof(table), counts, little_allocate, counting_release};
  if (chunk == 0) assert_ok(kv_cache_new(MODEL_LAYERS, INT32_MAX, &cache, &error), error);
  if (chunk != 0) cache = make(MODEL_LAYERS, chunk);
  assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
  return cache;
}

static void run(gen_model* model, kv_cache* cache, int32_t n, float* logits) {
  static const int32_t tokens[] = {1, 4, 2, 8, 5, 7, 3, 6, 9, 1, 2, 3};
  assert_ok(gen_model_forward(model, tokens + kv_cache_seq_len(cache) % 5, (size_t)n, cache, logits,
                              VOCAB, &error),
            error);
}

struct saved {
  unsigned char bytes[1 << 14];
  size_t n;
};
static void save(const kv_cache* cache, struct saved* to) {
  assert_ok(kv_cache_save_buffer(cache, to->bytes, sizeof to->bytes, &to->n, &error), error);
}

static void assert_same_state(const kv_cache* a, const kv_cache* b) {
  struct saved states[2];
  save(a, &states[0]);
  save(b, &states[1]);
  assert_int_equal(states[0].n, states[1].n);
  assert_memory_equal(states[0].bytes, states[1].bytes, states[0].n);
}

/* A cache without limit and without form takes as much memory as a state needs, and grows to the
 * context of the model that goes on. */
static void a_state_decides_the_memory(void** state) {
  (void)state;
  static const int32_t chunks[] = {0, 1, 3, 5, 40};
  gen_model* model = make_model(CONTEXT);
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; ++i) {
    for (int32_t n = 1; n < 12; ++n) {
      struct counting counts = {0};
      kv_cache* first = unlimited(chunks[i], &counts);
      kv_cache* other = unlimited(chunks[i], &counts);
      kv_cache* copy = NULL;
      float logits[3][VOCAB];
      struct saved shorter, longer;
      run(model, first, n, logits[0]);
      save(first, &shorter);
      assert_ok(kv_cache_load_buffer(other, shorter.bytes, shorter.n, &error), error);
      assert_int_equal(kv_cache_seq_len(other), n);
      assert_int_equal(kv_cache_max_seq_len(other), INT32_MAX);
      assert_same_state(first, other);
      assert_ok(kv_cache_clone(other, &copy, &error), error);
      run(model, first, 4, logits[0]);
      run(model, other, 4, logits[1]);
      run(model, copy, 4, logits[2]);
      assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
      assert_memory_equal(logits[0], logits[2], sizeof logits[0]);
      assert_same_state(first, other);
      assert_same_state(first, copy);
      /* A longer state after a shorter one. */
      save(first, &longer);
      kv_cache* third = unlimited(chunks[i], &counts);
      assert_ok(kv_cache_load_buffer(third, shorter.bytes, shorter.n, &error), error);
      assert_ok(kv_cache_reset(third, &error), error);
      counts.refuse = 1;
      const gen_status refused = kv_cache_load_buffer(third, longer.bytes, longer.n, &error);
      assert_true(refused == GEN_OK || refused == GEN_ERROR_OUT_OF_MEMORY);
      assert_int_equal(kv_cache_seq_len(third), refused == GEN_OK ? n + 4 : 0);
      counts.refuse = 0;
      if (refused != GEN_OK)
        assert_ok(kv_cache_load_buffer(third, longer.bytes, longer.n, &error), error);
      assert_same_state(first, third);
      kv_cache_free(third);
      kv_cache_free(copy);
      kv_cache_free(other);
      kv_cache_free(first);
      assert_int_equal(counts.live, 0);
    }
  }
  gen_model_free(model);
}

/* Growing before a pass can fail; the cache then is as it was. */
static void a_loaded_cache_that_cannot_grow(void** state) {
  (void)state;
  gen_model* model = make_model(CONTEXT);
  struct counting counts = {0};
  kv_cache* first = unlimited(3, &counts);
  kv_cache* other = unlimited(3, &counts);
  float logits[2][VOCAB];
  struct saved saved;
  const int32_t token = 3;
  run(model, first, 7, logits[0]);
  save(first, &saved);
  assert_ok(kv_cache_load_buffer(other, saved.bytes, saved.n, &error), error);
  counts.refuse = 1;
  assert_int_equal(gen_model_forward(model, &token, 1, other, logits[0], VOCAB, &error),
                   GEN_ERROR_OUT_OF_MEMORY);
  counts.refuse = 0;
  assert_same_state(first, other);
  run(model, first, 2, logits[0]);
  run(model, other, 2, logits[1]);
  assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
  assert_same_state(first, other);
  /* One whose context is shorter than the state. */
  gen_model* shorter = make_model(4);
  assert_int_not_equal(gen_model_forward(shorter, &token, 1, other, logits[0], VOCAB, &error),
                       GEN_OK);
  assert_same_state(first, other);
  gen_model_free(shorter);
  kv_cache_free(other);
  kv_cache_free(first);
  gen_model_free(model);
  assert_int_equal(counts.live, 0);
}

/* A state of larger chunks may hold more positions than the cache would have memory for, so it is
 * refused before any is reserved. */
static void a_state_of_larger_chunks_takes_no_memory(void** state) {
  (void)state;
  static const struct {
    int32_t chunk;
    const char* message;
  } others[] = {{0, "the state is of a compressed cache, and this is none"},
                {3, "the state has chunks of 5, the cache of 3"}};
  gen_model* model = make_model(CONTEXT);
  struct counting counts = {0};
  kv_cache* first = unlimited(5, &counts);
  float logits[VOCAB];
  struct saved saved;
  run(model, first, 7, logits);
  save(first, &saved);
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    kv_cache* other = unlimited(others[i].chunk, &counts);
    counts.refuse = 1;
    assert_int_equal(kv_cache_load_buffer(other, saved.bytes, saved.n, &error),
                     GEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(error.message, others[i].message);
    counts.refuse = 0;
    assert_int_equal(kv_cache_seq_len(other), 0);
    kv_cache_free(other);
  }
  kv_cache_free(first);
  gen_model_free(model);
  assert_int_equal(counts.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(reading_gives_the_published_means),
      cmocka_unit_test(entries_tell_their_positions),
      cmocka_unit_test(truncate_reset_and_clone),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
      cmocka_unit_test(a_state_decides_the_memory),
      cmocka_unit_test(a_loaded_cache_that_cannot_grow),
      cmocka_unit_test(a_state_of_larger_chunks_takes_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

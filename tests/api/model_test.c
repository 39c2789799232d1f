/* SPDX-License-Identifier: Apache-2.0 */
/* model.h: questions, forward passes, memory that fails. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

typedef struct {
  int64_t balance;
  int64_t count;
  int64_t fail_at; /* -1: never */
} Counting;

static gen_status count_allocate(void* user, size_t bytes, size_t align, void** out) {
  Counting* c = user;
  /* Called on any thread: the counters are atomic. */
  const int64_t index = __atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
  if (index == c->fail_at) return GEN_ERROR_OUT_OF_MEMORY;
  const size_t rounded = (bytes + align - 1) / align * align;
  *out = aligned_alloc(align, rounded == 0 ? align : rounded);
  if (*out == NULL) return GEN_ERROR_OUT_OF_MEMORY;
  __atomic_fetch_add(&c->balance, (int64_t)bytes, __ATOMIC_RELAXED);
  return GEN_OK;
}

static void count_release(void* user, void* ptr, size_t bytes) {
  Counting* c = user;
  __atomic_fetch_sub(&c->balance, (int64_t)bytes, __ATOMIC_RELAXED);
  free(ptr);
}

/* Loads, generates five tokens and frees, over a counting allocator that fails once. */
static gen_status life_with(Counting* counting) {
  const gen_allocator table = {sizeof table, counting, count_allocate, count_release};
  gen_model_options* o = NULL;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_result* result = NULL;
  gen_sampling* sampling = greedy(5);
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_allocator(o, &table, &error), error);
  assert_ok(gen_model_options_set_threads(o, 2, &error), error);
  gen_status status = gen_model_load(DRAFT_MODEL, o, &model, &error);
  gen_model_options_free(o);
  if (status == GEN_OK) status = gen_create(model, NULL, &generator, &error);
  gen_model_free(model);
  if (status == GEN_OK) status = gen_generate(generator, "Once", 4, sampling, &result, &error);
  gen_result_free(result);
  gen_free(generator);
  gen_sampling_free(sampling);
  return status;
}

static void every_failed_allocation_is_survived(void** state) {
  (void)state;
  Counting all = {0, 0, -1};
  assert_int_equal(life_with(&all), GEN_OK);
  assert_int_equal(all.balance, 0);
  assert_true(all.count > 5);
  for (int64_t at = 0; at < all.count; ++at) {
    Counting one = {0, 0, at};
    assert_int_equal(life_with(&one), GEN_ERROR_OUT_OF_MEMORY);
    assert_int_equal(one.balance, 0);
  }
}

static void questions(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const gen_model_config* config = gen_model_get_config(model);
  assert_int_equal(gen_model_config_vocab_size(config), 4096);
  assert_int_equal(gen_model_config_max_seq_len(config), 1024);
  assert_int_equal(gen_model_config_bos(config), 1);
  assert_int_equal(gen_model_config_eos(config), 2);
  assert_true(gen_model_config_num_layers(config) > 0);
  assert_int_equal(gen_model_config_num_cache_layers(config), gen_model_config_num_layers(config));
  assert_int_equal(gen_model_config_num_heads(config) * gen_model_config_head_dim(config),
                   gen_model_config_hidden(config));
  assert_true(gen_model_config_num_kv_heads(config) > 0);
  assert_int_equal(gen_tokenizer_vocab_size(gen_model_tokenizer(model)), 4096);

  char text[4096];
  size_t n = 0;
  assert_ok(gen_model_describe(model, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"architecture\":\"llama\""));
  assert_non_null(strstr(text, "\"Q8_0\":0.9"));
  assert_fails(gen_model_describe(model, text, 5, &n, &error), GEN_ERROR_OUT_OF_RANGE, "do not fit",
               error);

  const size_t count = gen_model_metadata_count(model);
  assert_true(count > 10);
  int found = 0;
  for (size_t i = 0; i < count; ++i) {
    const char* key = gen_model_metadata_key(model, i);
    assert_non_null(key);
    assert_ok(gen_model_metadata_value(model, key, text, sizeof text, &n, &error), error);
    if (strcmp(key, "general.architecture") == 0) {
      assert_string_equal(text, "llama");
      ++found;
    }
  }
  assert_int_equal(found, 1);
  assert_null(gen_model_metadata_key(model, count));
  assert_fails(gen_model_metadata_value(model, "no.such.key", text, sizeof text, &n, &error), bad,
               "no.such.key", error);
  assert_fails(gen_model_metadata_value(model, "general.architecture", text, 5, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "do not fit", error);
  assert_int_equal(n, strlen("llama"));
  assert_fails(gen_model_metadata_value(model, NULL, text, sizeof text, &n, &error), bad, "key",
               error);

  static const char* const keys[] = {"weights", "workspace", "mapped", "file", "stream"};
  size_t bytes[5];
  for (size_t i = 0; i < 5; ++i) {
    assert_ok(gen_model_memory(model, keys[i], &bytes[i], &error), error);
  }
  size_t size = 0;
  free(read_file(DRAFT_MODEL, &size));
  assert_int_equal(bytes[3], size);
  assert_true(bytes[0] > size / 2 && bytes[0] < 2 * size);
  assert_true(bytes[4] > 0 && bytes[4] <= bytes[0] + size);
  assert_fails(gen_model_memory(model, "soul", &bytes[0], &error), bad, "soul", error);
  assert_int_equal(bytes[0], 0);
  assert_fails(gen_model_memory(model, "file", NULL, &error), bad, "bytes", error);
  gen_model_free(model);

  assert_null(gen_model_get_config(NULL));
  assert_null(gen_model_tokenizer(NULL));
  assert_null(gen_model_metadata_key(NULL, 0));
  assert_int_equal(gen_model_metadata_count(NULL), 0);
  assert_int_equal(gen_model_config_vocab_size(NULL), 0);
  assert_int_equal(gen_model_config_max_seq_len(NULL), 0);
  assert_int_equal(gen_model_config_eos(NULL), -1);
  assert_int_equal(gen_model_config_bos(NULL), -1);
  assert_int_equal(gen_model_config_num_layers(NULL), 0);
  assert_int_equal(gen_model_config_num_cache_layers(NULL), 0);
  assert_int_equal(gen_model_config_num_heads(NULL), 0);
  assert_int_equal(gen_model_config_num_kv_heads(NULL), 0);
  assert_int_equal(gen_model_config_head_dim(NULL), 0);
  assert_int_equal(gen_model_config_hidden(NULL), 0);
  assert_int_equal(gen_model_describe(NULL, NULL, 0, &n, NULL), bad);
  assert_int_equal(gen_model_memory(NULL, "file", &n, NULL), bad);
}

static void forward_refuses_and_changes_nothing(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const gen_model_config* config = gen_model_get_config(model);
  const int32_t layers = gen_model_config_num_cache_layers(config);
  const size_t vocab = (size_t)gen_model_config_vocab_size(config);
  float* logits = calloc(vocab, sizeof(float));
  int32_t tokens[40];
  for (int32_t i = 0; i < 40; ++i) tokens[i] = 100 + i;
  kv_cache* cache = NULL;
  assert_ok(kv_cache_fp16_new(layers, 32, &cache, &error), error);

  assert_fails(gen_model_forward(NULL, tokens, 1, cache, logits, vocab, &error), bad, "model",
               error);
  assert_fails(gen_model_forward(model, NULL, 1, cache, logits, vocab, &error), bad, "tokens",
               error);
  assert_fails(gen_model_forward(model, tokens, 0, cache, logits, vocab, &error), bad, "tokens",
               error);
  assert_fails(gen_model_forward(model, tokens, 1, NULL, logits, vocab, &error), bad, "cache",
               error);
  assert_fails(gen_model_forward(model, tokens, 1, cache, NULL, vocab, &error), bad, "logits",
               error);
  assert_fails(gen_model_forward(model, tokens, 1, cache, logits, vocab - 1, &error),
               GEN_ERROR_OUT_OF_RANGE, "4095", error);
  const int32_t outside[] = {5, 4096};
  assert_fails(gen_model_forward(model, outside, 2, cache, logits, vocab, &error),
               GEN_ERROR_OUT_OF_RANGE, "4096", error);
  const int32_t negative = -1;
  assert_fails(gen_model_forward(model, &negative, 1, cache, logits, vocab, &error),
               GEN_ERROR_OUT_OF_RANGE, "-1", error);
  assert_fails(gen_model_forward(model, tokens, 33, cache, logits, vocab, &error),
               GEN_ERROR_CACHE_FULL, "32", error);
  assert_int_equal(kv_cache_seq_len(cache), 0);
  for (size_t i = 0; i < vocab; ++i) assert_true(logits[i] == 0);

  assert_ok(gen_model_forward(model, tokens, 32, cache, logits, vocab, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), 32);
  assert_fails(gen_model_forward(model, tokens, 1, cache, logits, vocab, &error),
               GEN_ERROR_CACHE_FULL, "32", error);
  assert_ok(kv_cache_truncate(cache, 31, &error), error);
  assert_ok(gen_model_forward(model, tokens, 1, cache, logits, vocab, &error), error);
  kv_cache_free(cache);

  /* A cache for another number of layers, and one that was filled through kv_cache_update. */
  assert_ok(kv_cache_new(layers + 1, 32, &cache, &error), error);
  assert_fails(gen_model_forward(model, tokens, 1, cache, logits, vocab, &error), bad, "layers",
               error);
  kv_cache_free(cache);
  assert_ok(kv_cache_new(layers, 32, &cache, &error), error);
  const float row[4] = {1, 2, 3, 4};
  assert_ok(kv_cache_update(cache, 0, row, row, 1, 1, 4, &error), error);
  assert_fails(gen_model_forward(model, tokens, 1, cache, logits, vocab, &error), GEN_ERROR_STATE,
               "kv_cache_update", error);
  kv_cache_free(cache);
  free(logits);
  gen_model_free(model);
}

/* A cache that a pass failed on is as before: without shape it still takes an allocator and
 * updates. */
static void assert_no_shape(kv_cache* cache, int32_t max_seq_len) {
  size_t payload = 1;
  size_t resident = 1;
  const float row[4] = {1, 2, 3, 4};
  assert_int_equal(kv_cache_seq_len(cache), 0);
  assert_int_equal(kv_cache_max_seq_len(cache), max_seq_len);
  assert_ok(kv_cache_memory_bytes(cache, &resident, &payload, NULL, &error), error);
  assert_int_equal(resident + payload, 0);
  assert_ok(kv_cache_set_allocator(cache, NULL, &error), error);
  assert_ok(kv_cache_update(cache, 0, row, row, 1, 1, 4, &error), error);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 1);
  kv_cache_free(cache);
}

static void a_failed_first_forward_leaves_no_shape(void** state) {
  (void)state;
  Counting counting = {0, 0, -1};
  const gen_allocator table = {sizeof table, &counting, count_allocate, count_release};
  gen_model_options* o = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_allocator(o, &table, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, o, &model, &error), error);
  gen_model_options_free(o);
  const int32_t layers = gen_model_config_num_layers(gen_model_get_config(model));
  float* logits = malloc(sizeof(float) * 4096 * 3);
  int32_t* tokens = calloc(1100, sizeof(int32_t)); /* more than the context, and than one pass */
  kv_cache* cache = NULL;

  assert_ok(kv_cache_new(layers, 32, &cache, &error), error);
  assert_fails(gen_model_forward(model, tokens, 33, cache, logits, 4096, &error),
               GEN_ERROR_CACHE_FULL, "32", error);
  assert_no_shape(cache, 32);
  assert_ok(kv_cache_new(layers, 2000, &cache, &error), error);
  assert_fails(gen_model_forward(model, tokens, 1100, cache, logits, 4096, &error),
               GEN_ERROR_CONTEXT_FULL, "1100", error);
  assert_no_shape(cache, 2000);

  /* In a batch the second cache is at fault, and the first one has its trace removed. */
  const int32_t sequences[3] = {0, 1, 1};
  kv_cache* two[2] = {NULL, NULL};
  assert_ok(kv_cache_new(layers, 32, &two[0], &error), error);
  assert_ok(kv_cache_new(layers, 1, &two[1], &error), error);
  assert_fails(
      gen_model_forward_batch(model, tokens, sequences, NULL, 3, two, 2, logits, 3 * 4096, &error),
      GEN_ERROR_CACHE_FULL, "1", error);
  assert_no_shape(two[0], 32);
  assert_no_shape(two[1], 1);

  /* No memory, at every allocation of the cache and of a model's first pass. */
  int failures = 0;
  for (gen_status status = GEN_ERROR_OUT_OF_MEMORY; status != GEN_OK; ++failures) {
    assert_ok(kv_cache_new(layers, 700, &cache, &error), error);
    assert_ok(kv_cache_set_allocator(cache, &table, &error), error);
    counting.fail_at = counting.count + failures;
    status = gen_model_forward(model, tokens, 600, cache, logits, 4096, &error);
    counting.fail_at = -1;
    if (status != GEN_OK) {
      assert_int_equal(status, GEN_ERROR_OUT_OF_MEMORY);
      assert_no_shape(cache, 700);
    }
  }
  assert_true(failures > 1);
  assert_int_equal(kv_cache_seq_len(cache), 600);
  kv_cache_free(cache);
  gen_model_free(model);
  assert_int_equal(counting.balance, 0);
  free(logits);
  free(tokens);
}

/* No memory at any allocation of a long prompt's passes: what the cache held stays, and no more. */
static void a_failed_forward_keeps_what_the_cache_held(void** state) {
  (void)state;
  Counting counting = {0, 0, -1};
  const gen_allocator table = {sizeof table, &counting, count_allocate, count_release};
  gen_model_options* o = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_allocator(o, &table, &error), error);
  gen_model* first = load_draft();
  float* logits = malloc(sizeof(float) * 4096);
  int32_t* tokens = calloc(600, sizeof(int32_t)); /* two passes */
  kv_cache* cache = NULL;
  assert_ok(
      kv_cache_new(gen_model_config_num_layers(gen_model_get_config(first)), 700, &cache, &error),
      error);
  assert_ok(gen_model_forward(first, tokens, 5, cache, logits, 4096, &error), error);
  gen_model_free(first);
  int failures = 0;
  for (gen_status status = GEN_ERROR_OUT_OF_MEMORY; status != GEN_OK; ++failures) {
    gen_model* model = NULL; /* a new one each time, without the memory of earlier passes */
    assert_ok(gen_model_load(DRAFT_MODEL, o, &model, &error), error);
    counting.fail_at = counting.count + failures;
    status = gen_model_forward(model, tokens, 600, cache, logits, 4096, &error);
    counting.fail_at = -1;
    gen_model_free(model);
    assert_int_equal(kv_cache_seq_len(cache), status == GEN_OK ? 605 : 5);
  }
  assert_true(failures > 1);
  kv_cache_free(cache);
  gen_model_options_free(o);
  free(logits);
  free(tokens);
}

static void chunks_and_threads_do_not_change_a_bit(void** state) {
  (void)state;
  int32_t tokens[48];
  for (int32_t i = 0; i < 48; ++i) tokens[i] = (i * 7919 + 13) % 4000 + 5;
  float* reference = NULL;
  for (int32_t threads = 1; threads <= 3; ++threads) {
    gen_model_options* o = NULL;
    gen_model* model = NULL;
    assert_ok(gen_model_options_new(&o, &error), error);
    assert_ok(gen_model_options_set_threads(o, threads, &error), error);
    assert_ok(gen_model_load(DRAFT_MODEL, o, &model, &error), error);
    gen_model_options_free(o);
    const size_t bytes = sizeof(float) * 4096;
    for (size_t chunk = 1; chunk <= 48; chunk = chunk * 3 + 1) {
      float* logits = malloc(bytes);
      kv_cache* cache = NULL;
      assert_ok(kv_cache_new(gen_model_config_num_layers(gen_model_get_config(model)), 64, &cache,
                             &error),
                error);
      for (size_t at = 0; at < 48; at += chunk) {
        const size_t n = at + chunk <= 48 ? chunk : 48 - at;
        assert_ok(gen_model_forward(model, tokens + at, n, cache, logits, 4096, &error), error);
      }
      kv_cache_free(cache);
      if (reference == NULL) {
        reference = logits;
      } else {
        assert_memory_equal(logits, reference, bytes);
        free(logits);
      }
    }
    gen_model_free(model);
  }
  free(reference);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_failed_allocation_is_survived),
      cmocka_unit_test(questions),
      cmocka_unit_test(forward_refuses_and_changes_nothing),
      cmocka_unit_test(a_failed_first_forward_leaves_no_shape),
      cmocka_unit_test(a_failed_forward_keeps_what_the_cache_held),
      cmocka_unit_test(chunks_and_threads_do_not_change_a_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

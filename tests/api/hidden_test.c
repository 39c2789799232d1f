/* SPDX-License-Identifier: Apache-2.0 */
/* gen_model_forward_hidden: passes of any size give the same states, and the cache goes on as after
 * gen_model_forward; what is refused changes nothing. That states are those of the model's
 * definition is tested by tests/cli/features_test.py. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
enum { WIDTH = 64, LAYERS = 4, LONG = 700, VOCAB = 4096 };

static kv_cache* cache_of(int32_t capacity) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_new(LAYERS, capacity, &cache, &error), error);
  return cache;
}

static void passes_of_any_size_are_one(void** state) {
  (void)state;
  gen_model* model = load_draft();
  assert_int_equal(gen_model_config_hidden(gen_model_get_config(model)), WIDTH);
  int32_t tokens[LONG + 1];
  for (int32_t i = 0; i <= LONG; ++i) tokens[i] = 300 + i * 7 % 1000;
  const int32_t layers[] = {3, GEN_HIDDEN_NORMED, 0, LAYERS};
  const size_t all = (size_t)4 * LONG * WIDTH;
  float* whole = calloc(all, sizeof *whole);
  kv_cache* one = cache_of(LONG + 1);
  assert_ok(gen_model_forward_hidden(model, tokens, LONG, one, layers, 4, whole, all, &error),
            error);
  assert_int_equal(kv_cache_seq_len(one), LONG);
  kv_cache* other = cache_of(LONG + 1);
  const size_t sizes[] = {1, 2, 300, LONG - 303};
  float* part = calloc(all, sizeof *part);
  size_t begin = 0;
  for (size_t p = 0; p < 4; ++p) {
    assert_ok(gen_model_forward_hidden(model, tokens + begin, sizes[p], other, layers, 4, part, all,
                                       &error),
              error);
    for (size_t i = 0; i < 4; ++i)
      assert_memory_equal(part + i * sizes[p] * WIDTH, whole + (i * LONG + begin) * WIDTH,
                          sizes[p] * WIDTH * sizeof *part);
    begin += sizes[p];
  }
  /* Each layer has its own place, whatever is asked for beside it. */
  for (size_t i = 0; i < 4; ++i) {
    assert_ok(kv_cache_truncate(other, 0, &error), error);
    assert_ok(
        gen_model_forward_hidden(model, tokens, LONG, other, layers + i, 1, part, all, &error),
        error);
    assert_memory_equal(part, whole + i * LONG * WIDTH, (size_t)LONG * WIDTH * sizeof *part);
    for (size_t j = 0; j < i; ++j)
      assert_memory_not_equal(part, whole + j * LONG * WIDTH, WIDTH * sizeof *part);
  }
  /* The cache is as after gen_model_forward. */
  float* logits = calloc(2 * VOCAB, sizeof *logits);
  kv_cache* plain = cache_of(LONG + 1);
  assert_ok(gen_model_forward(model, tokens, LONG + 1, plain, logits, VOCAB, &error), error);
  assert_ok(gen_model_forward(model, tokens + LONG, 1, other, logits + VOCAB, VOCAB, &error),
            error);
  assert_memory_equal(logits, logits + VOCAB, VOCAB * sizeof *logits);
  free(whole);
  free(part);
  free(logits);
  kv_cache_free(one);
  kv_cache_free(other);
  kv_cache_free(plain);
  gen_model_free(model);
}

static void what_is_refused_changes_nothing(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t tokens[] = {1, 300, 301}, wrong[] = {1, VOCAB, 2};
  const int32_t good[] = {2, GEN_HIDDEN_NORMED}, beyond[] = {LAYERS + 1}, below[] = {-2};
  const int32_t twice[] = {1, GEN_HIDDEN_NORMED, 1}, huge[] = {INT32_MAX};
  enum { ROOM = 2 * 3 * WIDTH };
  float hidden[ROOM];
  for (int i = 0; i < ROOM; ++i) hidden[i] = 7;
  kv_cache* cache = cache_of(4);
  const gen_status range = GEN_ERROR_OUT_OF_RANGE;
  const struct {
    const gen_model* model;
    const int32_t* tokens;
    size_t n;
    kv_cache* cache;
    const int32_t* layers;
    size_t n_layers;
    float* hidden;
    size_t capacity;
    gen_status status;
    const char* part;
  } cases[] = {{NULL, tokens, 3, cache, good, 2, hidden, ROOM, bad, "model"},
               {model, NULL, 3, cache, good, 2, hidden, ROOM, bad, "tokens"},
               {model, tokens, 3, NULL, good, 2, hidden, ROOM, bad, "cache"},
               {model, tokens, 3, cache, NULL, 2, hidden, ROOM, bad, "layers"},
               {model, tokens, 3, cache, good, 2, NULL, ROOM, bad, "hidden"},
               {model, tokens, 0, cache, good, 2, hidden, ROOM, bad, "no tokens"},
               {model, tokens, 3, cache, good, 0, hidden, ROOM, bad, "no layers"},
               {model, wrong, 3, cache, good, 2, hidden, ROOM, range, "4096"},
               {model, tokens, 3, cache, beyond, 1, hidden, ROOM, range, "5 outside [0, 4]"},
               {model, tokens, 3, cache, below, 1, hidden, ROOM, range, "-2 outside [0, 4]"},
               {model, tokens, 3, cache, huge, 1, hidden, ROOM, range, "outside [0, 4]"},
               {model, tokens, 3, cache, twice, 3, hidden, 3 * ROOM, bad, "entry 2 of the layers"},
               {model, tokens, 3, cache, good, 2, hidden, ROOM - 1, range, "383"},
               {model, tokens, SIZE_MAX / WIDTH, cache, good, 2, hidden, ROOM, range, "buffer"},
               {model, tokens, 3, cache, good, SIZE_MAX / WIDTH, hidden, ROOM, range, "buffer"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    assert_fails(gen_model_forward_hidden(cases[i].model, cases[i].tokens, cases[i].n,
                                          cases[i].cache, cases[i].layers, cases[i].n_layers,
                                          cases[i].hidden, cases[i].capacity, &error),
                 cases[i].status, cases[i].part, error);
  }
  int32_t many[5] = {1, 2, 3, 4, 5};
  float* room = calloc(5 * WIDTH, sizeof *room);
  assert_fails(gen_model_forward_hidden(model, many, 5, cache, good, 1, room, 5 * WIDTH, &error),
               GEN_ERROR_CACHE_FULL, "the cache of 4", error);
  free(room);
  for (int i = 0; i < ROOM; ++i) assert_true(hidden[i] == 7);
  assert_int_equal(kv_cache_seq_len(cache), 0);
  assert_ok(gen_model_forward_hidden(model, tokens, 3, cache, good, 2, hidden, ROOM, &error),
            error);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  kv_cache_free(cache);
  gen_model_free(model);
}

/* ---- A custom model gives the features of its function ---- */

enum { FEATURES = 3 };
static gen_status of_token(void* user, const gen_forward_batch* batch, float* logits,
                           float* features, gen_error* e) {
  (void)user;
  (void)logits;
  (void)e;
  if (batch->tokens[0] == 13) return 77; /* no status */
  if (features == NULL) return GEN_ERROR_INTERNAL;
  for (int32_t row = 0; row < batch->n_rows; ++row)
    for (int i = 0; i < FEATURES; ++i)
      features[row * FEATURES + i] = (float)(10 * batch->tokens[row] + i);
  return GEN_OK;
}

static gen_model* custom(gen_forward* forward, int32_t width) {
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  memset(forward, 0, sizeof *forward);
  forward->struct_size = sizeof *forward;
  forward->forward = of_token;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, 50, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 32, &error), error);
  assert_ok(gen_model_config_set_hidden(config, width, &error), error);
  assert_ok(gen_model_new_custom(forward, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

static void features_of_a_custom_model(void** state) {
  (void)state;
  gen_forward forward;
  gen_model* model = custom(&forward, FEATURES);
  const int32_t last = gen_model_config_num_layers(gen_model_get_config(model));
  const int32_t tokens[] = {4, 9}, normed = GEN_HIDDEN_NORMED;
  float hidden[2 * FEATURES] = {0};
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tensor_new(model, 0, 32, "fp32", &cache, &error), error);
  assert_fails(gen_model_forward_hidden(model, tokens, 2, cache, &normed, 1, hidden, 6, &error),
               GEN_ERROR_UNSUPPORTED, "features of layer", error);
  assert_ok(gen_model_forward_hidden(model, tokens, 2, cache, &last, 1, hidden, 6, &error), error);
  for (int i = 0; i < 2 * FEATURES; ++i)
    assert_true(hidden[i] == (float)(10 * tokens[i / FEATURES] + i % FEATURES));
  const int32_t unlucky = 13;
  assert_fails(gen_model_forward_hidden(model, &unlucky, 1, cache, &last, 1, hidden, 6, &error),
               GEN_ERROR_MODEL, "77", error);
  kv_cache_free(cache);
  gen_model_free(model);

  model = custom(&forward, 0);
  assert_ok(kv_cache_tensor_new(model, 0, 32, "fp32", &cache, &error), error);
  assert_fails(gen_model_forward_hidden(model, tokens, 2, cache, &last, 1, hidden, 6, &error),
               GEN_ERROR_UNSUPPORTED, "no hidden states", error);
  kv_cache_free(cache);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(passes_of_any_size_are_one),
                                     cmocka_unit_test(what_is_refused_changes_nothing),
                                     cmocka_unit_test(features_of_a_custom_model)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

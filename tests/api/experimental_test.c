/* SPDX-License-Identifier: Apache-2.0 */
/* experimental.h: rows of several sequences in one pass equal rows run alone, bit for bit;
 * profiles; peaks. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
enum { kVocab = 4096 };

static kv_cache* cache_for(const gen_model* model) {
  kv_cache* cache = NULL;
  assert_ok(
      kv_cache_new(gen_model_config_num_layers(gen_model_get_config(model)), 64, &cache, &error),
      error);
  return cache;
}

static void rows_together_equal_rows_alone(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t tokens[] = {1, 50, 60, 70, 1, 80, 1, 90, 100, 110, 120};
  const int32_t sequences[] = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2};
  const size_t first[] = {0, 4, 6, 11};
  float* together = malloc(sizeof(float) * 11 * kVocab);
  float* alone = malloc(sizeof(float) * kVocab);
  kv_cache* caches[3] = {cache_for(model), cache_for(model), cache_for(model)};
  assert_ok(gen_model_forward_batch(model, tokens, sequences, NULL, 11, caches, 3, together,
                                    11 * kVocab, &error),
            error);
  for (size_t q = 0; q < 3; ++q) {
    assert_int_equal(kv_cache_seq_len(caches[q]), (int)(first[q + 1] - first[q]));
    kv_cache* own = cache_for(model);
    for (size_t row = first[q]; row < first[q + 1]; ++row) {
      assert_ok(gen_model_forward(model, tokens + row, 1, own, alone, kVocab, &error), error);
      assert_memory_equal(alone, together + row * kVocab, sizeof(float) * kVocab);
    }
    kv_cache_free(own);
  }

  /* Only wanted rows are written, in row order. */
  const uint8_t wants[] = {0, 0, 1, 0, 0, 2};
  const int32_t next[] = {5, 6, 7, 8, 9, 10};
  const int32_t where[] = {0, 0, 0, 1, 1, 2};
  float* two = malloc(sizeof(float) * 2 * kVocab);
  assert_ok(
      gen_model_forward_batch(model, next, where, wants, 6, caches, 3, two, 2 * kVocab, &error),
      error);
  assert_fails(
      gen_model_forward_batch(model, next, where, wants, 6, caches, 3, two, 2 * kVocab - 1, &error),
      GEN_ERROR_OUT_OF_RANGE, "8191", error);
  free(two);
  for (size_t q = 0; q < 3; ++q) kv_cache_free(caches[q]);
  free(together);
  free(alone);
  gen_model_free(model);
}

static void batches_refuse_and_change_nothing(void** state) {
  (void)state;
  gen_model* model = load_draft();
  kv_cache* caches[2] = {cache_for(model), cache_for(model)};
  kv_cache* twice[2] = {caches[0], caches[0]};
  kv_cache* missing[2] = {caches[0], NULL};
  const int32_t tokens[] = {1, 2, 3};
  const int32_t good[] = {0, 0, 1};
  const int32_t backwards[] = {1, 0, 0};
  const int32_t outside[] = {0, 1, 2};
  const int32_t lonely[] = {0, 0, 0};
  const int32_t wrong[] = {1, 2, 5000};
  float* logits = calloc(3 * kVocab, sizeof(float));
  const size_t size = 3 * kVocab;
  assert_fails(
      gen_model_forward_batch(NULL, tokens, good, NULL, 3, caches, 2, logits, size, &error), bad,
      "model", error);
  assert_fails(gen_model_forward_batch(model, NULL, good, NULL, 3, caches, 2, logits, size, &error),
               bad, "tokens", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, good, NULL, 0, caches, 2, logits, size, &error), bad,
      "tokens", error);
  assert_fails(gen_model_forward_batch(model, tokens, good, NULL, 3, NULL, 2, logits, size, &error),
               bad, "caches", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, good, NULL, 3, caches, 0, logits, size, &error), bad,
      "caches", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, NULL, NULL, 3, caches, 2, logits, size, &error), bad,
      "sequences", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, good, NULL, 3, missing, 2, logits, size, &error), bad,
      "NULL", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, good, NULL, 3, twice, 2, logits, size, &error),
      GEN_ERROR_BUSY, "twice", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, backwards, NULL, 3, caches, 2, logits, size, &error),
      bad, "ascend", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, outside, NULL, 3, caches, 2, logits, size, &error),
      GEN_ERROR_OUT_OF_RANGE, "2", error);
  assert_fails(
      gen_model_forward_batch(model, tokens, lonely, NULL, 3, caches, 2, logits, size, &error), bad,
      "no row", error);
  assert_fails(
      gen_model_forward_batch(model, wrong, good, NULL, 3, caches, 2, logits, size, &error),
      GEN_ERROR_OUT_OF_RANGE, "5000", error);
  assert_fails(gen_model_forward_batch(model, tokens, good, NULL, 3, caches, 2, NULL, size, &error),
               bad, "logits", error);
  int32_t* many = calloc(513, sizeof(int32_t));
  assert_fails(
      gen_model_forward_batch(model, many, NULL, NULL, 513, caches, 1, logits, size, &error), bad,
      "513", error);
  free(many);
  assert_int_equal(kv_cache_seq_len(caches[0]), 0);
  assert_int_equal(kv_cache_seq_len(caches[1]), 0);
  for (size_t i = 0; i < size; ++i) assert_true(logits[i] == 0);
  assert_ok(gen_model_forward_batch(model, tokens, good, NULL, 3, caches, 2, logits, size, &error),
            error);
  kv_cache_free(caches[0]);
  kv_cache_free(caches[1]);
  free(logits);
  gen_model_free(model);
}

/* What a profile has of all instructions whose name contains `part`. */
static double profiled(const gen_profile* profile, const char* part, const char* key) {
  double sum = 0;
  for (size_t i = 0; i < gen_profile_count(profile); ++i) {
    const char* name = gen_profile_name(profile, i);
    assert_non_null(name);
    if (strstr(name, part) == NULL) continue;
    double value = 0;
    assert_ok(gen_profile_get(profile, i, key, &value, &error), error);
    sum += value;
  }
  return sum;
}

/* The number behind `key`, from *at on, which then stands behind it. */
static double number_after(const char** at, const char* key) {
  const char* found = strstr(*at, key);
  assert_non_null(found);
  char* end = NULL;
  const double number = strtod(found + strlen(key), &end);
  *at = end;
  return number;
}

/* Every run is an event, one after the other, and together they took what the sums say. */
static void check_trace(const gen_profile* profile) {
  size_t n = 0, needed = 0;
  assert_ok(gen_profile_chrome_trace(profile, NULL, 0, &n, &error), error);
  char* text = malloc(n + 1);
  assert_fails(gen_profile_chrome_trace(profile, text, n, &needed, &error), GEN_ERROR_OUT_OF_RANGE,
               "", error);
  assert_true(needed == n);
  assert_ok(gen_profile_chrome_trace(profile, text, n + 1, &n, &error), error);
  assert_true(needed == n);
  assert_int_equal(strlen(text), n);
  assert_memory_equal(text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{\"name\":\"",
                      strlen("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{\"name\":\""));
  assert_non_null(strstr(text, "{\"name\":\"embed token_embd.weight\",\"ph\":\"X\","));
  assert_string_equal(text + n - 2, "]}");
  double events = 0, seconds = 0, end = 0, rows = 0;
  for (const char* at = text; strstr(at, "\"ph\":\"X\"") != NULL; ++events) {
    const double begin = number_after(&at, "\"ts\":");
    const double took = number_after(&at, "\"dur\":");
    assert_true(begin >= end - 0.002 && took >= 0);
    end = begin + took;
    seconds += took * 1e-6;
    rows += number_after(&at, "\"rows\":");
  }
  free(text);
  assert_true(events == profiled(profile, "", "calls"));
  assert_true(rows == profiled(profile, "", "rows"));
  const double sum = profiled(profile, "", "seconds");
  assert_true(seconds > sum - events * 1e-9 && seconds < sum + events * 1e-9);
}

static void profiles_count_and_change_nothing(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_profile* profile = NULL;
  assert_ok(gen_profile_new(&profile, &error), error);
  assert_int_equal(gen_profile_count(profile), 0);
  const int32_t tokens[] = {1, 50, 60, 70};
  float* plain = malloc(sizeof(float) * kVocab);
  float* seen = malloc(sizeof(float) * kVocab);
  kv_cache* caches[2] = {cache_for(model), cache_for(model)};
  for (size_t row = 0; row < 4; ++row) {
    assert_ok(gen_model_forward_batch(model, tokens + row, NULL, NULL, 1, caches, 1, plain, kVocab,
                                      &error),
              error);
    assert_ok(gen_model_forward_profiled(model, tokens + row, NULL, NULL, 1, caches + 1, 1, seen,
                                         kVocab, profile, &error),
              error);
    assert_memory_equal(plain, seen, sizeof(float) * kVocab);
  }
  const gen_model_config* config = gen_model_get_config(model);
  const double layers = gen_model_config_num_layers(config);
  const double hidden = gen_model_config_hidden(config);
  const double q = gen_model_config_num_heads(config) * gen_model_config_head_dim(config);
  const double kv = gen_model_config_num_kv_heads(config) * gen_model_config_head_dim(config);
  size_t stream = 0;
  assert_ok(gen_model_memory(model, "stream", &stream, &error), error);
  assert_true(profiled(profile, "linear ", "bytes") == 4.0 * (double)stream);
  assert_true(profiled(profile, "linear token_embd", "operations") == 4 * 2 * hidden * kVocab);
  assert_true(profiled(profile, "attention ", "calls") == 4 * layers);
  /* The rows saw 1, 2, 3 and 4 entries: q times k, and weights times v. */
  assert_true(profiled(profile, "attention ", "operations") == 10 * 2 * 2 * q * layers);
  assert_true(profiled(profile, "attention ", "bytes") == 10 * 2 * kv * sizeof(float) * layers);
  assert_true(profiled(profile, "", "seconds") > 0);
  assert_true(profiled(profile, "embed", "rows") == 4);
  check_trace(profile);
  size_t length = 1;
  assert_fails(gen_profile_chrome_trace(NULL, NULL, 0, &length, &error), bad, "profile", error);
  assert_true(length == 0);
  assert_fails(gen_profile_chrome_trace(profile, NULL, 0, NULL, &error), bad, "n is NULL", error);

  double value = 1;
  const size_t count = gen_profile_count(profile);
  assert_null(gen_profile_name(profile, count));
  assert_fails(gen_profile_get(profile, count, "calls", &value, &error), GEN_ERROR_OUT_OF_RANGE,
               "instruction", error);
  assert_true(value == 0);
  assert_fails(gen_profile_get(profile, 0, "sweat", &value, &error), bad, "sweat", error);
  assert_fails(gen_profile_get(profile, 0, NULL, &value, &error), bad, "key", error);
  assert_fails(gen_profile_get(profile, 0, "calls", NULL, &error), bad, "value", error);
  assert_fails(gen_profile_get(NULL, 0, "calls", &value, &error), bad, "profile", error);
  assert_fails(gen_profile_new(NULL, &error), bad, "out", error);
  assert_fails(gen_model_forward_profiled(model, tokens, NULL, NULL, 1, caches, 1, plain, kVocab,
                                          NULL, &error),
               bad, "profile", error);
  gen_model* other = load_draft();
  gen_profile* fresh = NULL; /* it is of the model that it has measured */
  assert_ok(gen_profile_new(&fresh, &error), error);
  assert_fails(
      gen_model_forward_profiled(other, tokens, NULL, NULL, 1, caches, 1, plain, 0, fresh, &error),
      GEN_ERROR_OUT_OF_RANGE, "", error);
  assert_fails(
      gen_model_forward_profiled(model, tokens, NULL, NULL, 1, caches, 1, plain, 0, fresh, &error),
      GEN_ERROR_OUT_OF_RANGE, "", error);
  gen_profile_free(fresh);
  assert_fails(gen_model_forward_profiled(other, tokens, NULL, NULL, 1, caches, 1, plain, kVocab,
                                          profile, &error),
               bad, "another model", error);
  assert_int_equal(kv_cache_seq_len(caches[0]), 4);
  assert_int_equal(gen_profile_count(NULL), 0);
  assert_null(gen_profile_name(NULL, 0));
  gen_profile_free(NULL);
  gen_model_free(other);
  gen_model_free(model);
  gen_profile_free(profile); /* outlives the model */
  kv_cache_free(caches[0]);
  kv_cache_free(caches[1]);
  free(plain);
  free(seen);
}

/* Both forms of a pass of many rows say the same. */
static void passes_that_do_not_fit(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t layers = gen_model_config_num_layers(gen_model_get_config(model));
  gen_profile* profile = NULL;
  kv_cache* small = NULL;
  kv_cache* full = NULL;
  assert_ok(gen_profile_new(&profile, &error), error);
  assert_ok(kv_cache_new(layers, 4, &small, &error), error);
  assert_ok(kv_cache_new(layers, 2000, &full, &error), error);
  static int32_t tokens[512]; /* twice of them is the context */
  static uint8_t wants[512];
  static float logits[kVocab];
  for (int i = 0; i < 2; ++i) {
    assert_ok(gen_model_forward_batch(model, tokens, NULL, wants, 512, &full, 1, NULL, 0, &error),
              error);
  }
  const int32_t outside[] = {kVocab};
  const struct {
    const int32_t* tokens;
    size_t n;
    kv_cache** cache;
    size_t capacity;
    gen_status status;
    const char* part;
  } cases[] = {
      {tokens, 5, &small, kVocab, GEN_ERROR_CACHE_FULL, "4"},
      {tokens, 1, &full, kVocab, GEN_ERROR_CONTEXT_FULL, "1024"},
      {outside, 1, &small, kVocab, GEN_ERROR_OUT_OF_RANGE, "4096"},
      {tokens, 1, &small, kVocab - 1, GEN_ERROR_OUT_OF_RANGE, "4095"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    uint8_t last[5] = {0};
    last[cases[i].n - 1] = 1;
    assert_fails(gen_model_forward_batch(model, cases[i].tokens, NULL, last, cases[i].n,
                                         cases[i].cache, 1, logits, cases[i].capacity, &error),
                 cases[i].status, cases[i].part, error);
    assert_fails(
        gen_model_forward_profiled(model, cases[i].tokens, NULL, last, cases[i].n, cases[i].cache,
                                   1, logits, cases[i].capacity, profile, &error),
        cases[i].status, cases[i].part, error);
    if (cases[i].status != GEN_ERROR_OUT_OF_RANGE) {
      static float hidden[5 * 1024];
      const int32_t layer = 0;
      assert_fails(gen_model_forward_hidden(model, cases[i].tokens, cases[i].n, *cases[i].cache,
                                            &layer, 1, hidden, 5 * 1024, &error),
                   cases[i].status, cases[i].part, error);
    }
    assert_int_equal(kv_cache_seq_len(small), 0);
    assert_int_equal(kv_cache_seq_len(full), 1024);
  }
  kv_cache_free(small);
  kv_cache_free(full);
  gen_profile_free(profile);
  gen_model_free(model);
}

static void peaks_are_plausible(void** state) {
  (void)state;
  static const char* const names[] = {"read_bandwidth", "fma_f32", "dot_i8"};
  for (size_t i = 0; i < 3; ++i) {
    double value = 0;
    assert_ok(gen_measure_peaks(1, names[i], &value, &error), error);
    assert_true(value > 1e6); /* no machine is that slow, and a wrong unit would be */
  }
  double value = 0;
  if (gen_measure_peaks(1, "dot_bf16", &value, &error) == GEN_OK) {
    assert_true(value > 1e6);
  } else {
    assert_fails(gen_measure_peaks(1, "dot_bf16", &value, &error), GEN_ERROR_UNSUPPORTED,
                 "AVX512-BF16", error);
  }
  value = 1;
  assert_fails(gen_measure_peaks(1, "horsepower", &value, &error), bad, "horsepower", error);
  assert_true(value == 0);
  assert_fails(gen_measure_peaks(-1, "fma_f32", &value, &error), bad, "-1", error);
  assert_fails(gen_measure_peaks(1, NULL, &value, &error), bad, "what", error);
  assert_fails(gen_measure_peaks(1, "fma_f32", NULL, &error), bad, "value", error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_together_equal_rows_alone),
      cmocka_unit_test(batches_refuse_and_change_nothing),
      cmocka_unit_test(profiles_count_and_change_nothing),
      cmocka_unit_test(passes_that_do_not_fit),
      cmocka_unit_test(peaks_are_plausible),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

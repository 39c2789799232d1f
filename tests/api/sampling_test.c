/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.h: every setter's range, the named form, and that a refused value changes nothing. */
#include "api_test.h"

#include <math.h>

/* All settings as text; free() it. */
static char* described(const gen_sampling* sampling) {
  size_t n = 0;
  assert_ok(gen_sampling_describe(sampling, NULL, 0, &n, &error), error);
  char* text = malloc(n + 1);
  assert_ok(gen_sampling_describe(sampling, text, n + 1, &n, &error), error);
  return text;
}

static int make(void** state) {
  gen_sampling* sampling = NULL;
  if (gen_sampling_new(&sampling, &error) != GEN_OK) return -1;
  *state = sampling;
  return 0;
}

static int unmake(void** state) {
  gen_sampling_free(*state);
  return 0;
}

static void refused_values_change_nothing(void** state) {
  gen_sampling* s = *state;
  char* before = described(s);
  const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
  assert_fails(gen_sampling_set_temperature(s, 2e6, &error), bad, "temperature", error);
  assert_fails(gen_sampling_set_temperature(s, NAN, &error), bad, "temperature", error);
  assert_fails(gen_sampling_set_temperature(s, INFINITY, &error), bad, "temperature", error);
  assert_fails(gen_sampling_set_top_k(s, -1, &error), bad, "-1", error);
  assert_fails(gen_sampling_set_top_p(s, NAN, &error), bad, "top_p", error);
  assert_fails(gen_sampling_set_top_p(s, -INFINITY, &error), bad, "top_p", error);
  assert_fails(gen_sampling_set_typical_p(s, NAN, &error), bad, "typical_p", error);
  assert_fails(gen_sampling_set_frequency_penalty(s, 100.5, &error), bad, "frequency", error);
  assert_fails(gen_sampling_set_frequency_penalty(s, NAN, &error), bad, "frequency", error);
  assert_fails(gen_sampling_set_presence_penalty(s, -100.5, &error), bad, "presence", error);
  assert_fails(gen_sampling_set_presence_penalty(s, INFINITY, &error), bad, "presence", error);
  assert_fails(gen_sampling_set_min_p(s, -0.1, &error), bad, "min", error);
  assert_fails(gen_sampling_set_min_p(s, 1.1, &error), bad, "min", error);
  assert_fails(gen_sampling_set_repetition_penalty(s, NAN, &error), bad, "penalty", error);
  assert_fails(gen_sampling_set_repetition_penalty(s, 1001, &error), bad, "penalty", error);
  assert_fails(gen_sampling_set_penalty_window(s, -1, &error), bad, "-1", error);
  assert_fails(gen_sampling_set_logprobs(s, -2, &error), bad, "logprobs", error);
  assert_fails(gen_sampling_set_logprobs(s, 101, &error), bad, "logprobs", error);
  assert_fails(gen_sampling_set_logit_bias(s, -1, 0, &error), bad, "-1", error);
  assert_fails(gen_sampling_set_logit_bias(s, 1, NAN, &error), bad, "bias", error);
  assert_fails(gen_sampling_set_logit_bias(s, 1, INFINITY, &error), bad, "bias", error);
  assert_fails(gen_sampling_add_stop_token(s, -1, &error), bad, "-1", error);
  assert_fails(gen_sampling_add_stop_string(s, NULL, 0, &error), bad, "text", error);
  assert_fails(gen_sampling_add_stop_string(s, "\xff", 1, &error), bad, "UTF-8", error);
  assert_fails(gen_sampling_set_top_n_sigma(s, NAN, &error), bad, "top_n_sigma", error);
  assert_fails(gen_sampling_set_top_n_sigma(s, INFINITY, &error), bad, "top_n_sigma", error);
  assert_fails(gen_sampling_set_xtc(s, 1.1, 0.2, &error), bad, "xtc_probability", error);
  assert_fails(gen_sampling_set_xtc(s, NAN, 0.2, &error), bad, "xtc_probability", error);
  assert_fails(gen_sampling_set_xtc(s, 0.5, -0.1, &error), bad, "xtc_threshold", error);
  assert_fails(gen_sampling_set_mirostat(s, -1, 0.1, &error), bad, "mirostat_tau", error);
  assert_fails(gen_sampling_set_mirostat(s, 101, 0.1, &error), bad, "mirostat_tau", error);
  assert_fails(gen_sampling_set_mirostat(s, 5, 1.5, &error), bad, "mirostat_eta", error);
  assert_fails(gen_sampling_set_dry(s, -1, 1.75, 2, 0, &error), bad, "dry_multiplier", error);
  assert_fails(gen_sampling_set_dry(s, 1, 0.5, 2, 0, &error), bad, "dry_base", error);
  assert_fails(gen_sampling_set_dry(s, 1, 1.75, 0, 0, &error), bad, "dry_allowed_length 0", error);
  assert_fails(gen_sampling_set_dry(s, 1, 1.75, 2, -1, &error), bad, "dry_window -1", error);
  assert_fails(gen_sampling_set_min_new_tokens(s, -1, &error), bad, "min_new_tokens -1", error);
  assert_fails(gen_sampling_add_dry_breaker(s, NULL, 0, &error), bad, "text", error);
  assert_fails(gen_sampling_add_dry_breaker(s, "a\xff", 2, &error), bad, "UTF-8", error);
  char* big = malloc(5000);
  memset(big, 'a', 5000);
  assert_fails(gen_sampling_add_stop_string(s, big, 4097, &error), bad, "4096", error);
  assert_fails(gen_sampling_add_dry_breaker(s, big, 257, &error), bad, "256", error);
  free(big);
  assert_fails(gen_sampling_set(s, "heat", "1", &error), bad, "heat", error);
  assert_fails(gen_sampling_set(s, "top_k", "many", &error), bad, "many", error);
  assert_fails(gen_sampling_set(s, "top_k", "5 ", &error), bad, "5 ", error);
  assert_fails(gen_sampling_set(s, "top_k", "", &error), bad, "whole number", error);
  assert_fails(gen_sampling_set(s, "top_k", "99999999999", &error), bad, "99999999999", error);
  assert_fails(gen_sampling_set(s, "temperature", "2e6", &error), bad, "temperature", error);
  assert_fails(gen_sampling_set(s, "seed", "-1", &error), bad, "-1", error);
  assert_fails(gen_sampling_set(s, "ignore_eos", "maybe", &error), bad, "maybe", error);
  assert_fails(gen_sampling_set(s, "compound_penalty", "2", &error), bad, "2", error);
  assert_fails(gen_sampling_set(s, "num_beams", "4", &error), GEN_ERROR_UNSUPPORTED, "num_beams",
               error);
  assert_fails(gen_sampling_set(s, "num_beams", "0", &error), bad, "num_beams", error);
  assert_fails(gen_sampling_set(s, "num_beams", "x", &error), bad, "num_beams", error);
  assert_ok(gen_sampling_set(s, "num_beams", "1", &error), error);
  assert_fails(gen_sampling_set(s, "gumbel", "2", &error), bad, "gumbel", error);
  assert_fails(gen_sampling_set(s, NULL, "1", &error), bad, "key", error);
  assert_fails(gen_sampling_set(s, "top_k", NULL, &error), bad, "value", error);
  char* after = described(s);
  assert_string_equal(after, before);
  free(before);
  free(after);
}

static void accepted_values_are_described(void** state) {
  gen_sampling* s = *state;
  assert_ok(gen_sampling_set_temperature(s, 0.25, &error), error);
  assert_ok(gen_sampling_set_top_k(s, 40, &error), error);
  assert_ok(gen_sampling_set_top_p(s, 1, &error), error);
  assert_ok(gen_sampling_set_min_p(s, 1, &error), error);
  assert_ok(gen_sampling_set_typical_p(s, 0.375, &error), error);
  assert_ok(gen_sampling_set_frequency_penalty(s, -100, &error), error);
  assert_ok(gen_sampling_set_presence_penalty(s, 100, &error), error);
  assert_ok(gen_sampling_set_compound_penalty(s, 1, &error), error);
  assert_ok(gen_sampling_set_penalize_prompt(s, -7, &error), error);
  assert_ok(gen_sampling_set_repetition_penalty(s, 1000, &error), error);
  assert_ok(gen_sampling_set_penalty_window(s, 64, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(s, INT32_MAX, &error), error);
  assert_ok(gen_sampling_set_seed(s, UINT64_MAX, &error), error);
  assert_ok(gen_sampling_set_logprobs(s, 100, &error), error);
  assert_ok(gen_sampling_set_logit_bias(s, 7, -INFINITY, &error), error);
  assert_ok(gen_sampling_set_logit_bias(s, 7, 0, &error), error);
  assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
  assert_ok(gen_sampling_add_stop_token(s, 5, &error), error);
  assert_ok(gen_sampling_add_stop_string(s, "END", GEN_NUL_TERMINATED, &error), error);
  assert_ok(gen_sampling_add_stop_string(s, "ignored", 0, &error), error);
  assert_ok(gen_sampling_set_cancel(s, NULL, &error), error);
  assert_ok(gen_sampling_set(s, "top_p", "0.5", &error), error);
  assert_ok(gen_sampling_set_top_n_sigma(s, 1.625, &error), error);
  assert_ok(gen_sampling_set_xtc(s, 1, 0.0625, &error), error);
  assert_ok(gen_sampling_set_mirostat(s, 96, 0.8125, &error), error);
  assert_ok(gen_sampling_set_dry(s, 0.6875, 1.1875, 77, 78, &error), error);
  assert_ok(gen_sampling_set_min_new_tokens(s, 79, &error), error);
  assert_ok(gen_sampling_set_gumbel(s, 3, &error), error);
  assert_ok(gen_sampling_add_dry_breaker(s, "Human:", GEN_NUL_TERMINATED, &error), error);
  assert_ok(gen_sampling_add_dry_breaker(s, "\"", 1, &error), error);
  assert_ok(gen_sampling_add_dry_breaker(s, "", 0, &error), error);
  char* text = described(s);
  assert_non_null(strstr(text, "\"key\":\"temperature\",\"type\":\"float\""));
  assert_non_null(strstr(text, "\"value\":\"0.25\""));
  assert_non_null(strstr(text, "\"value\":\"0.375\""));
  assert_non_null(strstr(text, "\"value\":\"-100\""));
  assert_non_null(strstr(text, "\"value\":\"100\""));
  assert_non_null(strstr(text, "\"value\":\"0.5\""));
  assert_non_null(strstr(text, "\"value\":\"18446744073709551615\""));
  assert_non_null(strstr(text, "\"value\":\"END\""));
  static const char* const values[] = {"1.625",  "0.0625", "96", "0.8125", "0.6875",
                                       "1.1875", "77",     "78", "79"};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"value\":\"%s\"", values[i]);
    assert_non_null(strstr(text, wanted));
  }
  assert_non_null(strstr(text, "\"value\":\"[\\\"Human:\\\",\\\"\\\\\\\"\\\"]\""));
  assert_null(strstr(text, "ignored"));
  free(text);
}

static void every_described_key_can_be_set(void** state) {
  gen_sampling* s = *state;
  static const char* const pairs[][2] = {{"temperature", "0.5"},
                                         {"top_k", "3"},
                                         {"typical_p", "0.9"},
                                         {"top_p", "0.9"},
                                         {"min_p", "0.1"},
                                         {"top_n_sigma", "1.5"},
                                         {"xtc_probability", "0.5"},
                                         {"xtc_threshold", "0.2"},
                                         {"mirostat_tau", "4"},
                                         {"mirostat_eta", "0.2"},
                                         {"dry_multiplier", "0.8"},
                                         {"dry_base", "1.5"},
                                         {"dry_allowed_length", "3"},
                                         {"dry_window", "64"},
                                         {"dry_breaker", "x"},
                                         {"min_new_tokens", "2"},
                                         {"repetition_penalty", "1.1"},
                                         {"compound_penalty", "1"},
                                         {"frequency_penalty", "0.2"},
                                         {"presence_penalty", "-0.3"},
                                         {"penalize_prompt", "true"},
                                         {"penalty_window", "8"},
                                         {"max_new_tokens", "9"},
                                         {"seed", "1"},
                                         {"gumbel", "true"},
                                         {"logprobs", "0"},
                                         {"ignore_eos", "true"},
                                         {"fit_grammar", "1"},
                                         {"stop_token", "3"},
                                         {"stop_string", "x"},
                                         {"adapter", "a"}};
  char* text = described(s);
  size_t keys = 0;
  for (const char* at = text; (at = strstr(at, "\"key\":")) != NULL; ++at) ++keys;
  assert_int_equal(keys, sizeof pairs / sizeof pairs[0]);
  free(text);
  for (size_t i = 0; i < keys; ++i) {
    assert_ok(gen_sampling_set(s, pairs[i][0], pairs[i][1], &error), error);
  }
}

/* What a stage has as its off values draws what its default draws. */
static void off_values_are_off(void** state) {
  (void)state;
  static const struct {
    const char* key;
    const char* values[5];
  } off[] = {
      {"top_k", {"0", "4096", "2147483647"}},
      {"top_p", {"0", "-1", "-1e300", "1", "7.5"}},
      {"typical_p", {"0", "-1", "-1e300", "1", "7.5"}},
      {"min_p", {"0"}},
      {"repetition_penalty", {"0", "-2", "-1e300", "1"}},
      {"frequency_penalty", {"0"}},
      {"presence_penalty", {"0"}},
      {"penalty_window", {"0"}},
      {"logprobs", {"-1"}},
      {"top_n_sigma", {"0", "-1", "-1e300"}},
      {"xtc_probability", {"0"}},
      {"xtc_threshold", {"0", "0.6", "1"}},
      {"mirostat_tau", {"0"}},
      {"mirostat_eta", {"1"}},
      {"dry_multiplier", {"0"}},
      {"dry_base", {"100"}},
      {"dry_allowed_length", {"1"}},
      {"dry_window", {"0", "9"}},
      {"min_new_tokens", {"0"}},
      {"gumbel", {"0"}},
  };
  gen_model* model = load_draft();
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  for (size_t i = 0; i <= sizeof off / sizeof off[0]; ++i) {
    gen_result* wanted = NULL;
    for (int j = 0; j < 5; ++j) {
      gen_sampling* s = NULL;
      gen_result* result = NULL;
      assert_ok(gen_sampling_new(&s, &error), error);
      assert_ok(gen_sampling_set_max_new_tokens(s, 24, &error), error);
      assert_ok(gen_sampling_set_seed(s, 11, &error), error);
      if (i < sizeof off / sizeof off[0]) {
        if (off[i].values[j] == NULL) {
          gen_sampling_free(s);
          break;
        }
        if (j == 0) {
          assert_ok(gen_generate(generator, "Once", 4, s, &wanted, &error), error);
        }
        assert_ok(gen_sampling_set(s, off[i].key, off[i].values[j], &error), error);
      } else { /* these end in greedy: all of them as 0 */
        static const double cold[5] = {0, -0.0, -0.1, -7, -1e300};
        if (j == 0) {
          gen_sampling* zero = greedy(24);
          assert_ok(gen_generate(generator, "Once", 4, zero, &wanted, &error), error);
          gen_sampling_free(zero);
        }
        assert_ok(gen_sampling_set_temperature(s, cold[j], &error), error);
      }
      assert_ok(gen_generate(generator, "Once", 4, s, &result, &error), error);
      assert_string_equal(gen_result_text(result, NULL), gen_result_text(wanted, NULL));
      gen_result_free(result);
      gen_sampling_free(s);
    }
    gen_result_free(wanted);
  }
  /* 0 or less tokens are the default's 256, or as many as the context holds. */
  static const int32_t few[] = {256, 0, -1, INT32_MIN};
  size_t counts[4];
  for (int i = 0; i < 4; ++i) {
    gen_sampling* s = greedy(1);
    gen_result* result = NULL;
    assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
    assert_ok(gen_sampling_set_max_new_tokens(s, few[i], &error), error);
    assert_ok(gen_generate(generator, "Once", 4, s, &result, &error), error);
    gen_result_tokens(result, &counts[i]);
    assert_int_equal(counts[i], 256);
    gen_result_free(result);
    gen_sampling_free(s);
  }
  gen_free(generator);
  gen_model_free(model);
}

/* What is off is said by the description, too. */
static void off_values_are_described(void** state) {
  char* text = described(*state);
  assert_non_null(
      strstr(text,
             "\"key\":\"top_p\",\"type\":\"float\",\"range\":\"any number\",\"default\":\"1\","
             "\"off\":\"0 or less, 1 or more\",\"help\":"));
  assert_non_null(strstr(text, "\"range\":\"-1 to 100\",\"default\":\"-1\",\"off\":\"-1\""));
  assert_non_null(strstr(text, "\"range\":\"up to 1000\""));
  free(text);
}

static void too_many_stop_strings(void** state) {
  gen_sampling* s = *state;
  char text[16];
  for (int i = 0; i < 256; ++i) {
    snprintf(text, sizeof text, "stop%d", i);
    assert_ok(gen_sampling_add_stop_string(s, text, GEN_NUL_TERMINATED, &error), error);
  }
  assert_fails(gen_sampling_add_stop_string(s, "more", 4, &error), GEN_ERROR_INVALID_ARGUMENT,
               "256", error);
}

static void too_many_dry_breakers(void** state) {
  gen_sampling* s = *state;
  char text[16];
  for (int i = 0; i < 64; ++i) {
    snprintf(text, sizeof text, "text%d", i);
    assert_ok(gen_sampling_add_dry_breaker(s, text, GEN_NUL_TERMINATED, &error), error);
  }
  assert_fails(gen_sampling_add_dry_breaker(s, "more", 4, &error), GEN_ERROR_INVALID_ARGUMENT, "64",
               error);
}

/* Each stage turns a text of the model into another one. */
static void stages_act(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  char texts[5][4096];
  for (int stage = 0; stage < 5; ++stage) {
    gen_sampling* s = NULL;
    gen_result* result = NULL;
    assert_ok(gen_sampling_new(&s, &error), error);
    assert_ok(gen_sampling_set_max_new_tokens(s, 60, &error), error);
    assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
    assert_ok(gen_sampling_set_seed(s, 11, &error), error);
    if (stage == 1) assert_ok(gen_sampling_set_dry(s, 50, 2, 1, 0, &error), error);
    if (stage == 2) assert_ok(gen_sampling_set_xtc(s, 1, 0.05, &error), error);
    if (stage == 3) assert_ok(gen_sampling_set_top_n_sigma(s, 0.5, &error), error);
    if (stage == 4) assert_ok(gen_sampling_set_mirostat(s, 0.5, 0.3, &error), error);
    assert_ok(gen_generate(generator, "Once upon a time", GEN_NUL_TERMINATED, s, &result, &error),
              error);
    snprintf(texts[stage], sizeof texts[stage], "%s", gen_result_text(result, NULL));
    for (int other = 0; other < stage; ++other) {
      assert_string_not_equal(texts[stage], texts[other]);
    }
    gen_result_free(result);
    gen_sampling_free(s);
  }
  /* As many tokens as wanted, before the first stop token of a greedy text may come. */
  gen_sampling* s = greedy(30);
  gen_result* result = NULL;
  size_t n = 0;
  assert_ok(gen_generate(generator, "Once", 4, s, &result, &error), error);
  const int32_t* tokens = gen_result_tokens(result, &n);
  assert_true(n > 0);
  const int32_t stop = tokens[0];
  gen_result_free(result);
  assert_ok(gen_sampling_add_stop_token(s, stop, &error), error);
  assert_ok(gen_generate(generator, "Once", 4, s, &result, &error), error);
  gen_result_tokens(result, &n);
  assert_int_equal(n, 0);
  gen_result_free(result);
  assert_ok(gen_sampling_set_min_new_tokens(s, 8, &error), error);
  assert_ok(gen_generate(generator, "Once", 4, s, &result, &error), error);
  tokens = gen_result_tokens(result, &n);
  assert_true(n >= 8);
  for (size_t i = 0; i < n; ++i) assert_int_not_equal(tokens[i], stop);
  gen_result_free(result);
  gen_sampling_free(s);
  gen_free(generator);
  gen_model_free(model);
}

static void null_objects(void** state) {
  (void)state;
  const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
  size_t n = 0;
  assert_int_equal(gen_sampling_new(NULL, NULL), bad);
  assert_int_equal(gen_sampling_set_logits_callback(NULL, NULL, NULL, NULL), bad);
  assert_int_equal(gen_sampling_set_temperature(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_top_k(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_top_p(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_min_p(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_repetition_penalty(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_typical_p(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_compound_penalty(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_frequency_penalty(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_presence_penalty(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_penalize_prompt(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_penalty_window(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_max_new_tokens(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_min_new_tokens(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_top_n_sigma(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_xtc(NULL, 1, 0, NULL), bad);
  assert_int_equal(gen_sampling_set_mirostat(NULL, 1, 0, NULL), bad);
  assert_int_equal(gen_sampling_set_dry(NULL, 1, 1, 1, 0, NULL), bad);
  assert_int_equal(gen_sampling_add_dry_breaker(NULL, "x", 1, NULL), bad);
  assert_int_equal(gen_sampling_set_seed(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_gumbel(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_logprobs(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_logit_bias(NULL, 1, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_ignore_eos(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_set_fit_grammar(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_add_stop_token(NULL, 1, NULL), bad);
  assert_int_equal(gen_sampling_add_stop_string(NULL, "x", 1, NULL), bad);
  assert_int_equal(gen_sampling_set_cancel(NULL, NULL, NULL), bad);
  assert_int_equal(gen_sampling_set(NULL, "top_k", "1", NULL), bad);
  assert_int_equal(gen_sampling_describe(NULL, NULL, 0, &n, NULL), bad);
  gen_sampling_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(refused_values_change_nothing, make, unmake),
      cmocka_unit_test_setup_teardown(accepted_values_are_described, make, unmake),
      cmocka_unit_test_setup_teardown(every_described_key_can_be_set, make, unmake),
      cmocka_unit_test(off_values_are_off),
      cmocka_unit_test_setup_teardown(off_values_are_described, make, unmake),
      cmocka_unit_test_setup_teardown(too_many_stop_strings, make, unmake),
      cmocka_unit_test_setup_teardown(too_many_dry_breakers, make, unmake),
      cmocka_unit_test(stages_act),
      cmocka_unit_test(null_objects),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

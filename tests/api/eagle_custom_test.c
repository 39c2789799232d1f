/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of tensors over a custom model: one that is right is never refused, one that is wrong
 * changes nothing; what a function is asked for, and what it may leave out; which heads are
 * refused. Heads of files over custom models: eagle_files_test.cpp. */
#include "cycle_model.h"
#include "draft_calls.h"

static gen_tokenizer* tokenizer;

static int begin(void** state) {
  (void)state;
  assert_ok(gen_tokenizer_load(STORY_MODEL, &tokenizer, &error), error);
  return 0;
}
static int end(void** state) {
  (void)state;
  gen_tokenizer_free(tokenizer);
  return 0;
}

static gen_model* model_of(struct cycle* of, enum cycle_kind kind, int32_t hidden) {
  cycle_begin(of, tokenizer);
  gen_model* model = cycle_model(of, kind, hidden, tokenizer, &error);
  assert_non_null(model);
  return model;
}

static gen_eagle* eagle_of(const gen_model* model, const struct cycle* of, int shift) {
  gen_eagle* eagle = NULL;
  gen_options* options = options_new();
  struct cycle_head head;
  cycle_head_begin(&head, of, shift);
  assert_ok(gen_eagle_new_tensors(model, &head.tensors, 4, options, &eagle, &error), error);
  gen_options_free(options);
  memset(head.lm_head, 0xFF, (size_t)of->vocab * CYCLE * sizeof(float)); /* it was copied */
  free(head.lm_head);
  memset(&head, 0xFF, sizeof head);
  return eagle;
}

static double figure(const gen_eagle* eagle, const char* key) {
  double value = -1;
  assert_ok(gen_eagle_stats(eagle, key, &value, &error), error);
  return value;
}

/* Greedy, drawn, and under a grammar that ends the text. */
enum { CALLS = 4 };

static gen_sampling* call_of(int i) {
  gen_sampling* sampling = greedy(50);
  gen_grammar* grammar = NULL;
  static const char kRule[] = "root ::= [a-z]{20,30} \".\"";
  assert_ok(gen_sampling_set_temperature(sampling, i % 2 == 0 ? 0 : 0.7, &error), error);
  assert_ok(gen_sampling_set_logprobs(sampling, 2, &error), error);
  if (i < 2) return sampling;
  assert_ok(gen_grammar_from_gbnf(kRule, strlen(kRule), NULL, &grammar, &error), error);
  assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
  gen_grammar_free(grammar);
  return sampling;
}

/* All calls say what the model says alone. */
static void assert_changes_nothing(gen_eagle* eagle, const gen_model* model, int64_t* drafted,
                                   int64_t* accepted) {
  gen_generator* plain = generator_with(model, NULL);
  *drafted = *accepted = 0;
  for (int i = 0; i < CALLS; ++i) {
    gen_sampling* sampling = call_of(i);
    gen_result* want = said_by(plain, sampling);
    gen_result* got = NULL;
    assert_ok(gen_eagle_generate(eagle, kPrompt, strlen(kPrompt), sampling, &got, &error), error);
    assert_same(got, want);
    *drafted += usage(got, "drafted");
    *accepted += usage(got, "accepted");
    gen_result_free(got);
    gen_result_free(want);
    gen_sampling_free(sampling);
  }
  gen_free(plain);
}

static void the_right_head_is_never_refused(void** state) {
  (void)state;
  for (int kind = CYCLE_STATELESS; kind <= CYCLE_COPIED; ++kind) {
    struct cycle of;
    gen_model* model = model_of(&of, (enum cycle_kind)kind, CYCLE);
    gen_generator* plain = generator_with(model, NULL);
    gen_eagle* eagle = eagle_of(model, &of, 1);
    for (int i = 0; i < 2; ++i) {
      gen_sampling* sampling = call_of(i);
      gen_result* want = said_by(plain, sampling);
      gen_result* got = NULL;
      assert_ok(gen_eagle_generate(eagle, kPrompt, strlen(kPrompt), sampling, &got, &error), error);
      assert_same(got, want);
      assert_int_equal(usage(got, "accepted"), usage(got, "drafted"));
      /* The prompt's pass gives a token, then each pass five. */
      assert_int_equal(usage(got, "drafted"), 49 - 10);
      gen_result_free(got);
      gen_result_free(want);
      gen_sampling_free(sampling);
    }
    assert_true(figure(eagle, "acceptance_rate") == 1);
    assert_true(figure(eagle, "acceptance_at_4") == 1);
    assert_true(figure(eagle, "acceptance_at_5") == 0);
    int64_t drafted = 0, accepted = 0;
    assert_changes_nothing(eagle, model, &drafted, &accepted);
    assert_true(accepted > 60);
    gen_free(plain);
    gen_eagle_free(eagle);
    gen_model_free(model);
    assert_int_equal(of.wrong, 0);
    assert_int_equal(of.states, 0);
    assert_true(of.asks > 0 && of.plain > 0); /* plain generators ask for no features */
  }
}

static void a_wrong_head_changes_nothing(void** state) {
  (void)state;
  for (int kind = CYCLE_STATELESS; kind <= CYCLE_COPIED; ++kind) {
    struct cycle of;
    gen_model* model = model_of(&of, (enum cycle_kind)kind, CYCLE);
    gen_eagle* eagle = eagle_of(model, &of, 2);
    int64_t drafted = 0, accepted = 0;
    assert_changes_nothing(eagle, model, &drafted, &accepted);
    assert_true(drafted > 60);
    assert_true(figure(eagle, "acceptance_at_1") < 0.1); /* a grammar may leave one token */
    gen_eagle_free(eagle);
    gen_model_free(model);
    assert_int_equal(of.wrong, 0);
    assert_int_equal(of.states, 0);
  }
}

/* Rows that are not written, or not finite, have no draft behind them; others have. */
static void features_that_are_missing(void** state) {
  (void)state;
  for (int kind = CYCLE_STATELESS; kind <= CYCLE_COPIED; ++kind) {
    struct cycle of;
    gen_model* model = model_of(&of, (enum cycle_kind)kind, CYCLE);
    gen_eagle* eagle = eagle_of(model, &of, 1);
    int64_t drafted = 0, accepted = 0;
    of.features = CYCLE_NONE;
    assert_changes_nothing(eagle, model, &drafted, &accepted);
    assert_int_equal(drafted, 0);
    of.features = CYCLE_GAPS;
    assert_changes_nothing(eagle, model, &drafted, &accepted);
    assert_true(accepted > 60);
    of.features = CYCLE_ALL;
    int64_t all = 0;
    assert_changes_nothing(eagle, model, &all, &accepted);
    assert_true(all > drafted);
    gen_eagle_free(eagle);
    gen_model_free(model);
    assert_int_equal(of.wrong, 0);
    assert_int_equal(of.states, 0);
  }
}

static int take(void* user, const gen_token* token) {
  *(int*)user += token->done ? 0 : 1;
  return 0;
}
static int refuse(void* user, const gen_token* token) {
  (void)user;
  (void)token;
  return 7;
}

static void streams_and_settings(void** state) {
  (void)state;
  struct cycle of;
  gen_model* model = model_of(&of, CYCLE_GOES_BACK, CYCLE);
  gen_generator* plain = generator_with(model, NULL);
  gen_eagle* eagle = eagle_of(model, &of, 1);
  gen_sampling* sampling = call_of(1);
  gen_result* want = said_by(plain, sampling);
  gen_result* got = NULL;
  int pieces = 0;
  assert_ok(gen_eagle_set_adaptive(eagle, 0, &error), error);
  assert_ok(gen_eagle_generate_stream(eagle, kPrompt, strlen(kPrompt), sampling, take, &pieces,
                                      &got, &error),
            error);
  assert_same(got, want);
  assert_int_equal(pieces, 50);
  gen_result_free(got);
  assert_fails(gen_eagle_generate_stream(eagle, "a", 1, sampling, refuse, NULL, &got, &error),
               GEN_ERROR_CANCELLED, "7", error);
  assert_int_equal(gen_result_user_code(got), 7);
  gen_result_free(got);
  assert_fails(gen_eagle_generate_stream(eagle, "a", 1, NULL, NULL, NULL, &got, &error), bad,
               "callback", error);
  assert_fails(gen_eagle_generate(eagle, "\xff", 1, NULL, &got, &error), GEN_ERROR_TOKENIZER,
               "UTF-8", error);
  assert_null(got);
  assert_fails(gen_eagle_generate(NULL, "a", 1, NULL, &got, &error), bad, "eagle", error);
  assert_fails(gen_eagle_set_adaptive(NULL, 1, &error), bad, "eagle", error);
  double value = 5;
  assert_fails(gen_eagle_stats(NULL, "drafted", &value, &error), bad, "eagle", error);
  assert_true(value == 0);
  assert_fails(gen_eagle_stats(eagle, "rate", &value, &error), bad, "rate", error);
  assert_fails(gen_eagle_stats(eagle, NULL, &value, &error), bad, "key", error);
  gen_result_free(want);
  gen_sampling_free(sampling);
  gen_eagle_free(eagle);
  gen_eagle_free(NULL);
  gen_free(plain);
  gen_model_free(model);
}

struct misfit {
  const char* says;
  int32_t hidden, vocab; /* added to the right ones */
  int without;           /* 1 to 5: a tensor that is NULL */
  int spoiled;           /* 1 to 5: a tensor with a number that is not finite */
};

static void heads_that_do_not_fit(void** state) {
  (void)state;
  static const struct misfit kMisfits[] = {
      {"norm.weight", 1, 0, 0, 0},          {"norm.weight", -1 - CYCLE, 0, 0, 0},
      {"lm_head has", 0, 1, 0, 0},          {"lm_head has -1", 0, -1000000, 0, 0},
      {"norm.weight is NULL", 0, 0, 1, 0},  {"norm.bias is NULL", 0, 0, 2, 0},
      {"fc1.weight is NULL", 0, 0, 3, 0},   {"fc2.weight is NULL", 0, 0, 4, 0},
      {"lm_head is NULL", 0, 0, 5, 0},      {"norm.weight: weight 3", 0, 0, 0, 1},
      {"norm.bias: weight 3", 0, 0, 0, 2},  {"fc1.weight: weight 3", 0, 0, 0, 3},
      {"fc2.weight: weight 3", 0, 0, 0, 4}, {"lm_head: weight 3", 0, 0, 0, 5},
  };
  struct cycle of;
  gen_model* model = model_of(&of, CYCLE_STATELESS, CYCLE);
  gen_eagle* eagle = NULL;
  for (size_t i = 0; i < sizeof kMisfits / sizeof *kMisfits; ++i) {
    const struct misfit* each = &kMisfits[i];
    struct cycle_head head;
    cycle_head_begin(&head, &of, 1);
    gen_eagle_tensors* tensors = &head.tensors;
    const float** all[] = {&tensors->norm_weight, &tensors->norm_bias, &tensors->fc1_weight,
                           &tensors->fc2_weight, &tensors->lm_head};
    float* values[] = {head.norm, head.bias, head.fc1, head.fc2, head.lm_head};
    tensors->hidden += each->hidden;
    tensors->vocab_size = each->vocab < -1 ? -1 : tensors->vocab_size + each->vocab;
    if (each->without > 0) *all[each->without - 1] = NULL;
    if (each->spoiled > 0) values[each->spoiled - 1][3] = i % 2 == 0 ? NAN : INFINITY;
    assert_fails(gen_eagle_new_tensors(model, tensors, 4, NULL, &eagle, &error), bad, each->says,
                 error);
    assert_null(eagle);
    free(head.lm_head);
  }
  struct cycle_head head;
  cycle_head_begin(&head, &of, 1);
  assert_fails(gen_eagle_new_tensors(NULL, &head.tensors, 4, NULL, &eagle, &error), bad, "target",
               error);
  assert_fails(gen_eagle_new_tensors(model, NULL, 4, NULL, &eagle, &error), bad, "tensors", error);
  assert_fails(gen_eagle_new_tensors(model, &head.tensors, 4, NULL, NULL, &error), bad, "out",
               error);
  assert_fails(gen_eagle_new_tensors(model, &head.tensors, 64, NULL, &eagle, &error), bad, "64",
               error);
  gen_eagle_tensors small = head.tensors;
  small.struct_size = sizeof small - 1;
  assert_fails(gen_eagle_new_tensors(model, &small, 4, NULL, &eagle, &error), bad, "struct_size",
               error);
  /* Members that this library does not know. */
  struct {
    gen_eagle_tensors known;
    char unknown[16];
  } large;
  memset(&large, 0xA5, sizeof large);
  large.known = head.tensors;
  large.known.struct_size = sizeof large;
  assert_ok(gen_eagle_new_tensors(model, &large.known, 0, NULL, &eagle, &error), error);
  gen_eagle_free(eagle);
  gen_model_free(model);
  /* Models that can have no head. */
  struct cycle other;
  model = model_of(&other, CYCLE_STATELESS, 0);
  assert_fails(gen_eagle_new_tensors(model, &head.tensors, 4, NULL, &eagle, &error),
               GEN_ERROR_UNSUPPORTED, "hidden size is 0", error);
  assert_fails(gen_eagle_new(model, NULL, 4, NULL, &eagle, &error), GEN_ERROR_UNSUPPORTED,
               "no head", error);
  gen_model_free(model);
  model = model_of(&other, CYCLE_STUCK, CYCLE);
  assert_fails(gen_eagle_new_tensors(model, &head.tensors, 4, NULL, &eagle, &error),
               GEN_ERROR_UNSUPPORTED, "neither go back nor be copied", error);
  assert_null(eagle);
  gen_model_free(model);
  free(head.lm_head);
}

/* Where nothing drafts, the head is not even looked at. */
static void drafts_may_be_off(void** state) {
  (void)state;
  struct cycle of;
  gen_model* model = model_of(&of, CYCLE_STATELESS, CYCLE);
  gen_options* options = NULL;
  gen_eagle* eagle = NULL;
  gen_eagle_tensors none;
  memset(&none, 0, sizeof none);
  none.struct_size = sizeof none;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set(options, "draft_policy", "off", &error), error);
  assert_ok(gen_eagle_new_tensors(model, &none, 4, options, &eagle, &error), error);
  int64_t drafted = 0, accepted = 0;
  assert_changes_nothing(eagle, model, &drafted, &accepted);
  assert_int_equal(drafted, 0);
  assert_int_equal(of.asks, 0);
  gen_eagle_free(eagle);
  gen_options_free(options);
  gen_model_free(model);
}

/* Calls from the function itself would wait for themselves. */
struct nested {
  struct cycle of;
  gen_eagle* eagle;
  gen_status inner[4];
  int armed;
};

static gen_status forward_again(void* user, const gen_forward_batch* batch, float* logits,
                                float* features, gen_error* said) {
  struct nested* all = user;
  if (all->armed) {
    double value = 0;
    int pieces = 0;
    all->armed = 0;
    all->inner[0] = gen_eagle_generate(all->eagle, "a", 1, NULL, NULL, NULL);
    all->inner[1] = gen_eagle_generate_stream(all->eagle, "a", 1, NULL, take, &pieces, NULL, NULL);
    all->inner[2] = gen_eagle_set_adaptive(all->eagle, 1, NULL);
    all->inner[3] = gen_eagle_stats(all->eagle, "drafted", &value, NULL);
  }
  return cycle_forward(&all->of, batch, logits, features, said);
}

static void calls_in_the_function_are_busy(void** state) {
  (void)state;
  struct nested all;
  struct cycle_head head;
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  memset(&all, 0, sizeof all);
  cycle_begin(&all.of, tokenizer);
  cycle_head_begin(&head, &all.of, 1);
  gen_forward table = {.struct_size = sizeof table, .user = &all, .forward = forward_again};
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, all.of.vocab, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, CYCLE_CONTEXT, &error), error);
  assert_ok(gen_model_config_set_hidden(config, CYCLE, &error), error);
  assert_ok(gen_model_new_custom(&table, config, tokenizer, &model, &error), error);
  assert_ok(gen_eagle_new_tensors(model, &head.tensors, 4, NULL, &all.eagle, &error), error);
  all.armed = 1;
  gen_sampling* sampling = greedy(5);
  assert_ok(gen_eagle_generate(all.eagle, "a", 1, sampling, NULL, &error), error);
  for (int i = 0; i < 4; ++i) assert_int_equal(all.inner[i], GEN_ERROR_BUSY);
  gen_sampling_free(sampling);
  gen_eagle_free(all.eagle);
  gen_model_free(model);
  gen_model_config_free(config);
  free(head.lm_head);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_right_head_is_never_refused),
      cmocka_unit_test(a_wrong_head_changes_nothing),
      cmocka_unit_test(features_that_are_missing),
      cmocka_unit_test(streams_and_settings),
      cmocka_unit_test(heads_that_do_not_fit),
      cmocka_unit_test(drafts_may_be_off),
      cmocka_unit_test(calls_in_the_function_are_busy),
  };
  return cmocka_run_group_tests(tests, begin, end);
}

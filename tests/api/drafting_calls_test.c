/* SPDX-License-Identifier: Apache-2.0 */
/* What calls of gen_speculative and gen_eagle may meet: statuses of a step come out of both forms
 * as they are, and so do those of a prompt, of settings and of a queue. */
#include "cycle_model.h"
#include "draft_calls.h"

static gen_status fault;

static gen_status say_five(void* user, const gen_forward_batch* batch, float* logits,
                           float* features, gen_error* e) {
  (void)user;
  (void)e;
  for (int32_t i = 0; features != NULL && i < batch->n_rows * CYCLE; ++i) features[i] = (float)i;
  for (int32_t i = 0; i < batch->n_logits * 4096; ++i) logits[i] = (float)(i % 4096 == 5);
  return fault;
}

/* One of the two. */
struct drafting {
  gen_speculative* speculative;
  gen_eagle* eagle;
};

static gen_status say(const struct drafting* by, const char* prompt, size_t len,
                      const gen_sampling* sampling, gen_error* e) {
  return by->eagle != NULL
             ? gen_eagle_generate(by->eagle, prompt, len, sampling, NULL, e)
             : gen_speculative_generate(by->speculative, prompt, len, sampling, NULL, e);
}

static gen_status stream(const struct drafting* by, const char* prompt, size_t len,
                         const gen_sampling* sampling, gen_token_callback callback, void* user,
                         gen_error* e) {
  return by->eagle != NULL
             ? gen_eagle_generate_stream(by->eagle, prompt, len, sampling, callback, user, NULL, e)
             : gen_speculative_generate_stream(by->speculative, prompt, len, sampling, callback,
                                               user, NULL, e);
}

struct nested {
  const struct drafting* by;
  const gen_sampling* sampling;
  gen_status deepest[2]; /* of the plain form, and of the stream */
};

static int call_again(void* user, const gen_token* token) {
  struct nested* all = user;
  gen_error inner;
  if (token->done || all->deepest[1] != GEN_OK) return 0;
  const gen_status status = stream(all->by, "a", 1, all->sampling, call_again, user, &inner);
  if (status == GEN_ERROR_BUSY) {
    all->deepest[1] = status;
    all->deepest[0] = say(all->by, "a", 1, all->sampling, &inner);
  }
  return 0;
}

static int take(void* user, const gen_token* token) {
  *(int*)user += token->done ? 0 : 1;
  return 0;
}

static void meet_all(const struct drafting* by) {
  static const gen_status statuses[] = {GEN_ERROR_MODEL, GEN_ERROR_IO, GEN_ERROR_FORMAT,
                                        GEN_ERROR_POOL_EXHAUSTED, GEN_ERROR_OUT_OF_MEMORY};
  gen_grammar* grammar = NULL;
  gen_cancel* cancel = NULL;
  gen_sampling* sampling = greedy(3);
  fault = GEN_OK;
  struct nested nested = {by, sampling, {GEN_OK, GEN_OK}};
  assert_ok(stream(by, "a", 1, sampling, call_again, &nested, &error), error);
  assert_int_equal(nested.deepest[0], GEN_ERROR_BUSY);
  assert_int_equal(nested.deepest[1], GEN_ERROR_BUSY);

  char* const much = malloc(6001);
  assert_non_null(much);
  for (int i = 0; i < 6000; i += 3) memcpy(much + i, "ox ", 4);
  gen_sampling* stopped = greedy(3);
  gen_sampling* outside = greedy(3);
  gen_sampling* nowhere = greedy(3);
  assert_ok(gen_cancel_new(&cancel, &error), error);
  assert_ok(gen_sampling_set_cancel(stopped, cancel, &error), error);
  gen_cancel_fire(cancel);
  assert_ok(gen_sampling_add_stop_token(outside, 4096, &error), error);
  assert_ok(gen_grammar_from_gbnf("root ::= <nowhere>", GEN_NUL_TERMINATED, NULL, &grammar, &error),
            error);
  assert_ok(gen_sampling_set_grammar(nowhere, grammar, &error), error);
  const struct {
    const char* prompt;
    size_t len;
    const gen_sampling* sampling;
    gen_status status;
  } cases[] = {{NULL, 3, sampling, GEN_ERROR_INVALID_ARGUMENT},
               {"\xff", 1, sampling, GEN_ERROR_TOKENIZER},
               {much, GEN_NUL_TERMINATED, sampling, GEN_ERROR_CONTEXT_FULL},
               {"a", 1, stopped, GEN_ERROR_CANCELLED},
               {"a", 1, outside, GEN_ERROR_OUT_OF_RANGE},
               {"a", 1, nowhere, GEN_ERROR_GRAMMAR}};
  int pieces = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    assert_fails(say(by, cases[i].prompt, cases[i].len, cases[i].sampling, &error), cases[i].status,
                 "", error);
    assert_fails(
        stream(by, cases[i].prompt, cases[i].len, cases[i].sampling, take, &pieces, &error),
        cases[i].status, "", error);
  }
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; ++i) {
    fault = statuses[i];
    assert_fails(say(by, "a", 1, sampling, &error), fault, "", error);
    assert_fails(stream(by, "a", 1, sampling, take, &pieces, &error), fault, "", error);
  }
  fault = GEN_OK;
  assert_ok(say(by, "a", 1, sampling, &error), error);
  free(much);
  gen_sampling_free(sampling);
  gen_sampling_free(stopped);
  gen_sampling_free(outside);
  gen_sampling_free(nowhere);
  gen_cancel_free(cancel);
  gen_grammar_free(grammar);
}

static void what_calls_may_meet(void** state) {
  (void)state;
  const gen_forward table = {.struct_size = sizeof table, .forward = say_five};
  gen_model* draft = load_draft();
  gen_model_config* config = NULL;
  gen_model* own = NULL;
  gen_options* options = options_new();
  struct drafting both[2];
  struct cycle of;
  struct cycle_head head;
  memset(both, 0, sizeof both);
  cycle_begin(&of, gen_model_tokenizer(draft));
  cycle_head_begin(&head, &of, 1);
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, 4096, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 400, &error), error);
  assert_ok(gen_model_config_set_hidden(config, CYCLE, &error), error);
  assert_ok(gen_model_new_custom(&table, config, gen_model_tokenizer(draft), &own, &error), error);
  assert_ok(gen_options_set_max_batch(options, 1, &error), error);
  assert_ok(gen_options_set_max_queue(options, 1, &error), error);
  assert_ok(gen_speculative_new(draft, own, 2, options, &both[0].speculative, &error), error);
  assert_ok(gen_eagle_new_tensors(own, &head.tensors, 2, options, &both[1].eagle, &error), error);
  for (int i = 0; i < 2; ++i) meet_all(&both[i]);
  gen_speculative_free(both[0].speculative);
  gen_eagle_free(both[1].eagle);
  free(head.lm_head);
  gen_options_free(options);
  gen_model_config_free(config);
  gen_model_free(own);
  gen_model_free(draft);
}

static void caches_that_cannot_be(void** state) {
  (void)state;
  gen_speculative* speculative = NULL;
  gen_eagle* eagle = NULL;
  gen_draft* pair = NULL;
  gen_model* draft = load_draft();
  gen_model* story = NULL;
  gen_options* tiered = options_new();
  assert_ok(gen_options_set(tiered, "tiered_kv", "/nowhere/at/all,64", &error), error);
  assert_ok(gen_model_load(STORY_MODEL, NULL, &story, &error), error);
  assert_fails(gen_speculative_new(draft, draft, 2, tiered, &speculative, &error), GEN_ERROR_IO,
               "nowhere", error);
  assert_fails(gen_draft_new(draft, draft, tiered, &pair, &error), GEN_ERROR_IO, "nowhere", error);
  assert_fails(gen_draft_new_self(story, 1, tiered, &pair, &error), GEN_ERROR_IO, "nowhere", error);
  assert_fails(gen_eagle_new(story, GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle.gguf", 2,
                             tiered, &eagle, &error),
               GEN_ERROR_IO, "nowhere", error);
  const int32_t hidden = gen_model_config_hidden(gen_model_get_config(story));
  float* zeros = calloc((size_t)hidden * (size_t)hidden, sizeof *zeros);
  const gen_eagle_tensors tensors = {.struct_size = sizeof tensors,
                                     .hidden = hidden,
                                     .norm_weight = zeros,
                                     .norm_bias = zeros,
                                     .fc1_weight = zeros,
                                     .fc2_weight = zeros};
  assert_fails(gen_eagle_new_tensors(story, &tensors, 2, tiered, &eagle, &error), GEN_ERROR_IO,
               "nowhere", error);
  assert_true(speculative == NULL && eagle == NULL && pair == NULL);
  free(zeros);
  gen_options_free(tiered);
  gen_model_free(story);
  gen_model_free(draft);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_calls_may_meet),
      cmocka_unit_test(caches_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* custom_model.h: what a toy model says against a loop that says the same, and what happens when it
 * fails, lies or is cancelled at each step. Its states are custom_model_states_test.c's. */
#include "toy_model.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t prompt[] = {3, 14, 15, 9, 26, 5, 35};
enum { PROMPT = sizeof prompt / sizeof prompt[0], MORE = 20 };

static void it_generates(void** state) {
  (void)state;
  for (int kind = 0; kind < KINDS; ++kind) {
    for (int chunk = 1; chunk <= 4; chunk += 3) {
      struct toy toy = {.at = -1};
      const gen_forward table = table_of(&toy, kind);
      gen_options* options = NULL;
      assert_ok(gen_options_new(&options, &error), error);
      assert_ok(gen_options_set_prefill_chunk(options, chunk, &error), error);
      gen_generator* generator = toy_generator(&table, options);
      gen_options_free(options);
      gen_session* session = open_session(generator);
      gen_free(generator);
      assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
      assert_goes_on(session, &toy, MORE);
      assert_goes_on(session, &toy, 3);
      assert_int_equal(toy.rows, PROMPT + MORE + 3 - 1); /* each row once */
      assert_int_equal(toy.releases, 0);
      gen_session_free(session);
      assert_balanced(&toy);
    }
  }
}

static void the_context_ends_it(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  const gen_forward table = table_of(&toy, WITH_STATE);
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = open_session(generator);
  gen_sampling* sampling = greedy(TOY_CONTEXT);
  gen_result* result = NULL;
  size_t n = 0;
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_ok(gen_session_generate(session, "", 0, sampling, &result, &error), error);
  (void)gen_result_tokens(result, &n);
  assert_int_equal(n, TOY_CONTEXT - PROMPT);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CONTEXT_FULL);
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
}

/* The token that the configuration calls the end ends a text, unless it is told not to. */
static void eos_ends_it(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  const gen_forward table = table_of(&toy, WITH_STATE);
  int32_t all[TOY_CONTEXT];
  memcpy(all, prompt, sizeof prompt);
  toy_expect(all, PROMPT, MORE, 0);
  int32_t length = 5; /* up to a token that has not come before */
  for (int32_t i = PROMPT; i < PROMPT + length; ++i) length += all[i] == all[PROMPT + length];
  gen_model_config* config = toy_config();
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_model_config_set_eos(config, all[PROMPT + length], &error), error);
  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  assert_int_equal(gen_model_config_eos(gen_model_get_config(model)), all[PROMPT + length]);
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  gen_sampling* sampling = greedy(MORE);
  for (int ignored = 0; ignored < 2; ++ignored) {
    gen_session* session = open_session(generator);
    gen_result* result = NULL;
    size_t n = 0;
    assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
    assert_ok(gen_sampling_set_ignore_eos(sampling, ignored, &error), error);
    assert_ok(gen_session_generate(session, "", 0, sampling, &result, &error), error);
    (void)gen_result_tokens(result, &n);
    assert_int_equal(n, ignored ? MORE : length);
    assert_int_equal(gen_result_finish_reason(result),
                     ignored ? GEN_FINISH_LENGTH : GEN_FINISH_STOP_TOKEN);
    gen_result_free(result);
    gen_session_free(session);
  }
  gen_sampling_free(sampling);
  gen_model_config_free(config);
  gen_free(generator);
  gen_model_free(model);
  assert_balanced(&toy);
}

static void every_status_at_every_step(void** state) {
  (void)state;
  for (int kind = 0; kind < KINDS; ++kind) {
    for (int step = 0; step < 8; ++step) {
      for (gen_status status = -20; status <= 2; ++status) {
        if (status == GEN_OK || status == GEN_ERROR_CANCELLED) continue;
        struct toy toy = {.at = step + 1, .fault = TOY_STATUS, .status = status};
        const gen_forward table = table_of(&toy, kind);
        gen_generator* generator = toy_generator(&table, NULL);
        gen_session* session = open_session(generator);
        assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
        const int known = status < 0 && status >= GEN_ERROR_INTERNAL;
        char part[40];
        snprintf(part, sizeof part, "gave %d, which is not a status", status);
        if (known) snprintf(part, sizeof part, "%s", gen_status_name(status));
        assert_fails_and_goes_on(session, &toy, known ? status : GEN_ERROR_MODEL, part);
        gen_session_free(session);
        gen_free(generator);
        assert_balanced(&toy);
      }
    }
  }
}

static void messages_are_passed_on(void** state) {
  (void)state;
  char all_of_it[1200];
  memset(all_of_it, 'x', sizeof all_of_it - 1);
  all_of_it[sizeof all_of_it - 1] = '\0';
  const struct {
    gen_status status, wanted;
    const char *said, *part;
  } cases[] = {
      {GEN_ERROR_DEVICE, GEN_ERROR_DEVICE, "the oven is cold", "the oven is cold"},
      {77, GEN_ERROR_MODEL, "the oven is cold", "77, which is not a status: the oven is cold"},
      {GEN_ERROR_IO, GEN_ERROR_IO, "two\nlines", "two lines"},
      {GEN_ERROR_IO, GEN_ERROR_IO, all_of_it, "xxxxxxxxxxxxxxxxxxxxxxxxxx"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    struct toy toy = {.fault = TOY_STATUS, .status = cases[i].status, .message = cases[i].said};
    const gen_forward table = table_of(&toy, WITH_STATE);
    gen_generator* generator = toy_generator(&table, NULL);
    gen_session* session = open_session(generator);
    assert_fails(gen_session_append_tokens(session, prompt, PROMPT, &error), cases[i].wanted,
                 cases[i].part, error);
    assert_int_equal(gen_session_length(session), 0);
    gen_session_free(session);
    gen_free(generator);
    assert_balanced(&toy);
  }
}

static void logits_that_are_none(void** state) {
  (void)state;
  const struct {
    enum toy_fault fault;
    const char* part;
  } cases[] = {{TOY_NAN, "nan at token 5"},
               {TOY_INF, "inf at token 60"},
               {TOY_ALL_MINUS_INF, "all 61 logits are -inf"},
               {TOY_UNWRITTEN, "nan at token 0"}};
  for (int kind = 0; kind < KINDS; ++kind) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
      for (int step = 0; step < 8; ++step) {
        struct toy toy = {.at = step + 1, .fault = cases[i].fault};
        const gen_forward table = table_of(&toy, kind);
        gen_generator* generator = toy_generator(&table, NULL);
        gen_session* session = open_session(generator);
        assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
        assert_fails_and_goes_on(session, &toy, GEN_ERROR_MODEL, cases[i].part);
        gen_session_free(session);
        gen_free(generator);
        assert_balanced(&toy);
      }
    }
  }
}

/* A model that says it was cancelled is believed; what was generated before stays. */
static void it_sees_cancels(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  const gen_forward table = table_of(&toy, WITH_STATE);
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = open_session(generator);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_goes_on(session, &toy, 3);
  toy.cancels = session;
  gen_sampling* sampling = greedy(8);
  gen_result* result = NULL;
  assert_fails(gen_session_generate(session, "", 0, sampling, &result, &error), GEN_ERROR_CANCELLED,
               "", error);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CANCELLED);
  gen_result_free(result);
  gen_sampling_free(sampling);
  toy.cancels = NULL;
  assert_goes_on(session, &toy, 8);
  assert_int_equal(gen_forward_cancelled(NULL), 0);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
}

static void texts_need_a_tokenizer(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  const gen_forward table = table_of(&toy, STATELESS);
  gen_model* model = toy_model(&table);
  gen_generator* generator = NULL;
  gen_result* result = NULL;
  gen_chat* chat = NULL;
  size_t n = 0;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_null(gen_model_tokenizer(model));
  assert_fails(gen_generate(generator, "a", 1, NULL, &result, &error), GEN_ERROR_TOKENIZER,
               "no tokenizer", error);
  assert_null(result);
  assert_fails(gen_generate(generator, "", 0, NULL, &result, &error), bad, "no tokens", error);
  assert_ok(gen_chat_new(&chat, &error), error);
  assert_fails(gen_chat_format(model, chat, 1, NULL, 0, &n, &error), GEN_ERROR_UNSUPPORTED,
               "tokenizer", error);
  gen_chat_free(chat);
  gen_session* session = open_session(generator);
  int32_t outside[] = {1, TOY_VOCAB};
  assert_fails(gen_session_append_tokens(session, outside, 2, &error), GEN_ERROR_OUT_OF_RANGE, "61",
               error);
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
  assert_balanced(&toy);
}

/* Says the tokens of a text, one for each position after the prompt. */
struct script {
  int32_t tokens[32];
  int32_t start;
};

static gen_status say_script(void* user, const gen_forward_batch* batch, float* logits,
                             float* features, gen_error* said) {
  const struct script* script = user;
  (void)features;
  (void)said;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (!batch->wants_logits[row]) continue;
    for (int32_t i = 0; i < 4096; ++i) logits[i] = -INFINITY;
    logits[script->tokens[batch->positions[row] + 1 - script->start]] = 0.0F;
    logits += 4096;
  }
  return GEN_OK;
}

static void texts_come_and_go_with_one(void** state) {
  (void)state;
  gen_model* file = load_draft();
  const gen_tokenizer* tokenizer = gen_model_tokenizer(file);
  struct script script = {.start = 0};
  size_t n = 0;
  static const char said[] = " there was a small fox."; /* encoding puts the space there */
  ;
  assert_ok(
      gen_tokenizer_encode(tokenizer, said + 1, sizeof said - 2, 0, script.tokens, 31, &n, &error),
      error);
  script.tokens[n] = gen_model_config_eos(gen_model_get_config(file));
  int32_t before[16];
  size_t n_before = 0;
  assert_ok(
      gen_tokenizer_encode(tokenizer, "Once", 4, GEN_ENCODE_ADD_BOS, before, 16, &n_before, &error),
      error);
  script.start = (int32_t)n_before;
  const gen_forward table = {.struct_size = sizeof table, .user = &script, .forward = say_script};
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_result* result = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, 4096, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 64, &error), error);
  assert_ok(gen_model_new_custom(&table, config, tokenizer, &model, &error), error);
  const gen_model_config* own = gen_model_get_config(model);
  assert_int_equal(gen_model_config_eos(own), gen_model_config_eos(gen_model_get_config(file)));
  assert_int_equal(gen_model_config_bos(own), gen_model_config_bos(gen_model_get_config(file)));
  gen_model_free(file);
  assert_non_null(gen_model_tokenizer(model));
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  gen_model_free(model);
  gen_model_config_free(config);
  assert_ok(gen_generate(generator, "Once", 4, NULL, &result, &error), error);
  assert_string_equal(gen_result_text(result, NULL), said);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_STOP_TOKEN);
  gen_result_free(result);
  gen_free(generator);
}

/* The draft model, run by this file over caches of its own, says what the draft model says. */
static gen_status around(void* user, const gen_forward_batch* batch, float* logits, float* features,
                         gen_error* said) {
  const gen_model* inner = user;
  const size_t vocab = 4096;
  float* unwanted = malloc(vocab * sizeof *unwanted);
  gen_status status = GEN_OK;
  (void)features;
  for (int32_t row = 0; row < batch->n_rows && status == GEN_OK; ++row) {
    kv_cache* cache = batch->states[batch->sequences[row]];
    float* const to = batch->wants_logits[row] ? logits : unwanted;
    status = gen_model_forward(inner, &batch->tokens[row], 1, cache, to, vocab, said);
    if (batch->wants_logits[row]) logits += vocab;
  }
  free(unwanted);
  return status;
}
static gen_status around_new(void* user, void** state, gen_error* said) {
  return kv_cache_new(gen_model_config_num_layers(gen_model_get_config(user)), 256,
                      (kv_cache**)state, said);
}
static gen_status around_truncate(void* user, void* state, int32_t n, gen_error* said) {
  (void)user;
  return kv_cache_truncate(state, n, said);
}
static void around_free(void* user, void* state) {
  (void)user;
  kv_cache_free(state);
}

static void a_model_around_a_model(void** state) {
  (void)state;
  gen_model* inner = load_draft();
  gen_forward table = {.struct_size = sizeof table, .user = inner, .forward = around};
  table.state_new = around_new;
  table.state_truncate = around_truncate;
  table.state_free = around_free;
  gen_model_config* config = NULL;
  gen_model* outer = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set(config, "vocab_size", "4096", &error), error);
  assert_ok(gen_model_config_set(config, "max_seq_len", "256", &error), error);
  assert_ok(gen_model_new_custom(&table, config, gen_model_tokenizer(inner), &outer, &error),
            error);
  gen_model_config_free(config);
  char* texts[2];
  for (int i = 0; i < 2; ++i) {
    gen_generator* generator = NULL;
    gen_result* result = NULL;
    gen_sampling* sampling = greedy(24);
    assert_ok(gen_sampling_set_temperature(sampling, 0.9, &error), error);
    assert_ok(gen_sampling_set_seed(sampling, 5, &error), error);
    assert_ok(gen_create(i == 0 ? inner : outer, NULL, &generator, &error), error);
    assert_ok(gen_generate(generator, "Once upon a time", 16, sampling, &result, &error), error);
    texts[i] = strdup(gen_result_text(result, NULL));
    gen_result_free(result);
    gen_sampling_free(sampling);
    gen_free(generator);
  }
  assert_true(strlen(texts[0]) > 20);
  assert_string_equal(texts[0], texts[1]);
  free(texts[0]);
  free(texts[1]);
  gen_model_free(outer);
  gen_model_free(inner);
}

/* Eight requests in common steps; two of them meet a token that the model fails at. */
static gen_status fail_at_poison(void* user, const gen_forward_batch* batch, float* logits,
                                 float* features, gen_error* said) {
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (batch->tokens[row] == TOY_VOCAB - 1) return GEN_ERROR_DEVICE;
  }
  return toy_forward(user, batch, logits, features, said);
}

static void batches(void** state) {
  (void)state;
  enum { REQUESTS = 8 };
  for (int kind = 0; kind < KINDS; ++kind) {
    struct toy toy = {.at = -1};
    gen_forward table = table_of(&toy, kind);
    table.forward = fail_at_poison;
    gen_generator* generator = toy_generator(&table, NULL);
    gen_request* requests[REQUESTS];
    gen_result* results[REQUESTS];
    int32_t tokens[REQUESTS][TOY_CONTEXT];
    for (int32_t i = 0; i < REQUESTS; ++i) {
      gen_sampling* sampling = greedy(9 + i);
      /* What it says must not be what it fails at. */
      for (int32_t salt = 0, poisoned = 1; poisoned; ++salt) {
        for (int32_t at = 0; at < 3 + 4 * i; ++at)
          tokens[i][at] = (at * 5 + i + salt) % (TOY_VOCAB - 1);
        toy_expect(tokens[i], 3 + 4 * i, 9 + i, toy.stateless);
        poisoned = 0;
        for (int32_t at = 0; at < 12 + 5 * i; ++at) poisoned |= tokens[i][at] == TOY_VOCAB - 1;
      }
      if (i == 2 || i == 5) tokens[i][2] = TOY_VOCAB - 1;
      assert_ok(gen_request_new(&requests[i], &error), error);
      assert_ok(gen_request_set_sampling(requests[i], sampling, &error), error);
      assert_ok(gen_request_set_prompt_tokens(requests[i], tokens[i], (size_t)(3 + 4 * i), &error),
                error);
      gen_sampling_free(sampling);
    }
    assert_ok(gen_batch_generate(generator, (const gen_request* const*)requests, REQUESTS, results,
                                 &error),
              error);
    for (int32_t i = 0; i < REQUESTS; ++i) {
      size_t n = 0;
      const int32_t* said = gen_result_tokens(results[i], &n);
      if (i == 2 || i == 5) {
        assert_int_equal(gen_result_finish_reason(results[i]), GEN_FINISH_ERROR);
        assert_int_equal(gen_result_error(results[i])->code, GEN_ERROR_DEVICE);
      } else {
        assert_int_equal(n, 9 + i);
        assert_memory_equal(said, tokens[i] + 3 + 4 * i, n * sizeof *said);
      }
      gen_result_free(results[i]);
      gen_request_free(requests[i]);
    }
    if (kind == ONE_WAY) assert_int_equal(toy.max_sequences, 1);
    if (kind != ONE_WAY) assert_true(toy.max_sequences > 2);
    gen_free(generator);
    assert_balanced(&toy);
  }
}

/* A forward function that uses its own generator is told so, and not left waiting for itself.
 * callbacks_test.cpp tries every function. */
struct snake {
  gen_generator* generator;
  gen_session* other;
  gen_status bitten;
};
static gen_status bite(void* user, const gen_forward_batch* batch, float* logits, float* features,
                       gen_error* said) {
  struct snake* snake = user;
  (void)features;
  gen_result* result = NULL;
  snake->bitten = gen_session_generate(snake->other, "", 0, NULL, &result, said);
  assert_null(result);
  gen_session_free(snake->other);
  said->message[0] = '\0';
  for (int32_t i = 0; i < batch->n_logits * TOY_VOCAB; ++i) logits[i] = 0;
  return GEN_OK;
}

static void it_cannot_wait_for_itself(void** state) {
  (void)state;
  struct snake snake = {.generator = NULL};
  const gen_forward table = {.struct_size = sizeof table, .user = &snake, .forward = bite};
  snake.generator = toy_generator(&table, NULL);
  gen_session* session = open_session(snake.generator);
  snake.other = open_session(snake.generator);
  assert_ok(gen_session_append_tokens(snake.other, prompt, 1, &error), error); /* runs nothing */
  assert_ok(gen_session_append_tokens(session, prompt, 3, &error), error);
  assert_int_equal(snake.bitten, GEN_ERROR_BUSY);
  assert_int_equal(gen_session_length(session), 3);
  gen_session_free(session);
  gen_free(snake.generator);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_generates),
      cmocka_unit_test(the_context_ends_it),
      cmocka_unit_test(eos_ends_it),
      cmocka_unit_test(every_status_at_every_step),
      cmocka_unit_test(messages_are_passed_on),
      cmocka_unit_test(logits_that_are_none),
      cmocka_unit_test(it_sees_cancels),
      cmocka_unit_test(texts_need_a_tokenizer),
      cmocka_unit_test(texts_come_and_go_with_one),
      cmocka_unit_test(a_model_around_a_model),
      cmocka_unit_test(batches),
      cmocka_unit_test(it_cannot_wait_for_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

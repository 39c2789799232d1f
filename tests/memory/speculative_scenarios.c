/* SPDX-License-Identifier: Apache-2.0 */
/* Speculative generators and drafters: without memory for drafts the text is still the target's. */
#include <stdio.h>
#include <stdlib.h>

#include "sweep.h"

#define N GEN_NUL_TERMINATED

static gen_model* model;
static gen_sampling* lively;

static void begin_with(gen_model* loaded) {
  model = loaded;
  if (gen_sampling_new(&lively, E) != GEN_OK || gen_sampling_set_seed(lively, 3, E) != GEN_OK ||
      gen_sampling_set_max_new_tokens(lively, 9, E) != GEN_OK ||
      gen_sampling_set_ignore_eos(lively, 1, E) != GEN_OK)
    sweep_fail(__FILE__, __LINE__, "%s", E->message);
}

static void begin(const void* with) {
  (void)with;
  begin_with(sweep_load());
}

/* The model of another family, for its assistant. */
static void begin_gemma(const void* with) {
  char path[512];
  (void)with;
  snprintf(path, sizeof path, "%s.gemma4", sweep_model);
  begin_with(sweep_load_from(path));
}

static void end(const void* with) {
  (void)with;
  gen_sampling_free(lively);
  gen_model_free(model);
}

static int take(void* user, const gen_token* token) {
  *(int*)user += token->done == 0;
  return 0;
}

/* `with` says how guesses are judged. Under rejection the text depends on what was guessed, which
 * depends on what there was memory for. */
static void speculative(const void* with) {
  const int exact = with == NULL;
  gen_speculative* made = NULL;
  gen_options* options = NULL;
  gen_generator* layered = NULL;
  gen_result* result = NULL;
  double value = 0;
  MAKE(options, gen_options_new(&options, E));
  TRY(gen_options_set(options, "draft_acceptance", exact ? "exact" : "distribution", E));
  TRY(gen_options_set(options, "suffix_lookup", "4,64", E));
  MAKE(made, gen_speculative_new(model, model, 3, options, &made, E));
  TRY(gen_speculative_set_adaptive(made, 0, E));
  TRY((gen_result_free(result), result = NULL,
       gen_speculative_generate(made, "The fox and the fox.", N, lively, &result, E)));
  if (exact) SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  int pieces = 0;
  TRY((pieces = 0, gen_speculative_generate_stream(made, "The fox and the fox.", N, lively, take,
                                                   &pieces, NULL, E)));
  SAME(&pieces, sizeof pieces);
  TRY(gen_speculative_stats(made, "tokens_per_pass", &value, E));
  TRY(gen_options_set(options, "self_draft", "1,3", E));
  TRY(gen_options_set(options, "draft_policy", "always", E));
  MAKE(layered, gen_create(model, options, &layered, E));
  result = NULL;
  TRY((gen_result_free(result), result = NULL,
       gen_generate(layered, "The fox and the crow.", N, lively, &result, E)));
  if (exact) SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  TRY(gen_generator_draft_stats(layered, "drafted", &value, E));
  FREE(gen_options_free(options));
  FREE(gen_free(layered));
  FREE(gen_speculative_free(made));
}

static void say(gen_session* session, const char* text) {
  const int32_t length = gen_session_length(session);
  gen_result* result = NULL;
  TRY_KEEPING((gen_result_free(result), result = NULL,
               gen_session_generate(session, text, N, lively, &result, E)),
              CHECK(gen_session_length(session) == length));
  SAME_TEXT(gen_result_text(result, NULL));
  /* A pass that had no memory for its record says so for ever. */
  size_t n = 0;
  const gen_status status = gen_result_drafts(result, NULL, 0, &n, E);
  if (status != GEN_OK && !sweep_was_refused())
    sweep_refused(__FILE__, __LINE__, "gen_result_drafts", status);
  FREE(gen_result_free(result));
}

/* A head of a file beside the model; `with` is how its name ends. */
static void head(const void* with) {
  char path[512];
  char kept[512];
  static unsigned char state[1 << 20];
  size_t n = 0;
  double value = 0;
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  gen_session* one = NULL;
  gen_session* other = NULL;
  snprintf(path, sizeof path, "%s.%s", sweep_model, (const char*)with);
  MAKE(options, gen_options_new(&options, E));
  TRY(gen_options_set(options, "draft_policy", "always", E));
  TRY(gen_options_set_eagle(options, path, E));
  MAKE(generator, gen_create(model, options, &generator, E));
  CHECK(gen_generator_eagle_enabled(generator));
  TRY(gen_generator_eagle_path(generator, kept, sizeof kept, &n, E));
  CHECK(strcmp(kept, path) == 0);
  MAKE(one, gen_session_new(generator, &one, E));
  say(one, "The fox and the fox.");
  MAKE(other, gen_session_fork(one, &other, E));
  say(other, " The crow");
  TRY(gen_session_truncate(one, 6, E));
  say(one, " and the end");
  const int32_t length = gen_session_length(one);
  TRY_KEEPING(gen_session_append(one, " of", N, E), CHECK(gen_session_length(one) == length));
  TRY(gen_session_save_buffer(one, state, sizeof state, &n, E));
  TRY(gen_session_reset(other, E));
  TRY_KEEPING(gen_session_load_buffer(other, state, n, E), CHECK(gen_session_length(other) == 0));
  say(one, " the fox");
  say(other, " the fox");
  TRY(gen_generator_draft_stats(generator, "drafted", &value, E));
  CHECK(value > 0 || sweep_was_refused());
  FREE(gen_session_free(one));
  FREE(gen_session_free(other));
  FREE(gen_free(generator));
  FREE(gen_options_free(options));
}

/* A function with features; `user` is the number of tokens. */
enum { WIDTH = 64, MOST_TOKENS = 1024 };

static gen_status forward(void* user, const gen_forward_batch* batch, float* logits,
                          float* features, gen_error* error) {
  const int32_t vocab = *(const int32_t*)user;
  (void)error;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    for (int32_t i = 0; features != NULL && i < WIDTH; ++i)
      *features++ = (float)((batch->tokens[row] * 5 + batch->positions[row] + i * i) % 13) - 6.0F;
    if (!batch->wants_logits[row]) continue;
    for (int32_t i = 0; i < vocab; ++i)
      *logits++ = (float)((batch->tokens[row] * 7 + batch->positions[row] * 3 + i * 11) % 19);
  }
  return GEN_OK;
}

static void say_by_head(gen_eagle* made) {
  gen_result* result = NULL;
  int pieces = 0;
  double value = 0;
  TRY(gen_eagle_set_adaptive(made, 0, E));
  TRY((gen_result_free(result), result = NULL,
       gen_eagle_generate(made, "The fox and the fox.", N, lively, &result, E)));
  SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  TRY((pieces = 0,
       gen_eagle_generate_stream(made, "The fox and the fox.", N, lively, take, &pieces, NULL, E)));
  SAME(&pieces, sizeof pieces);
  TRY(gen_eagle_stats(made, "drafted", &value, E));
  CHECK(value > 0 || sweep_was_refused());
}

/* A head of tensors, for the model and for a function. */
static void head_of_tensors(const void* with) {
  static float numbers[WIDTH * WIDTH], lm_head[MOST_TOKENS * WIDTH];
  (void)with;
  const gen_tokenizer* const tokenizer = gen_model_tokenizer(model);
  int32_t vocab = gen_tokenizer_vocab_size(tokenizer);
  CHECK(vocab <= MOST_TOKENS);
  for (int32_t i = 0; i < WIDTH * WIDTH; ++i) numbers[i] = (float)(i * i % 31) / 15.0F - 1.0F;
  for (int32_t i = 0; i < vocab * WIDTH; ++i) lm_head[i] = (float)(i * 7 % 29) / 14.0F - 1.0F;
  gen_eagle_tensors tensors = {.struct_size = sizeof tensors,
                               .hidden = WIDTH,
                               .vocab_size = vocab,
                               .norm_weight = numbers,
                               .norm_bias = numbers,
                               .fc1_weight = numbers,
                               .fc2_weight = numbers};
  gen_options* options = NULL;
  gen_eagle* made = NULL;
  gen_model_config* config = NULL;
  gen_model* custom = NULL;
  const gen_forward table = {.struct_size = sizeof table, .user = &vocab, .forward = forward};
  MAKE(options, gen_options_new(&options, E));
  TRY(gen_options_set(options, "draft_policy", "always", E));
  MAKE(made, gen_eagle_new_tensors(model, &tensors, 3, options, &made, E));
  say_by_head(made);
  FREE(gen_eagle_free(made));
  MAKE(config, gen_model_config_new(&config, E));
  TRY(gen_model_config_set_vocab_size(config, vocab, E));
  TRY(gen_model_config_set_max_seq_len(config, 96, E));
  TRY(gen_model_config_set_hidden(config, WIDTH, E));
  MAKE(custom, gen_model_new_custom(&table, config, tokenizer, &custom, E));
  FREE(gen_model_config_free(config));
  tensors.lm_head = lm_head;
  MAKE(made, gen_eagle_new_tensors(custom, &tensors, 3, options, &made, E));
  say_by_head(made);
  FREE(gen_eagle_free(made));
  FREE(gen_model_free(custom));
  FREE(gen_options_free(options));
}

/* One of a file; `with` is how its name ends. */
static void head_of_file(const void* with) {
  char path[512];
  gen_options* options = NULL;
  gen_eagle* made = NULL;
  snprintf(path, sizeof path, "%s.%s", sweep_model, (const char*)with);
  MAKE(options, gen_options_new(&options, E));
  TRY(gen_options_set(options, "draft_policy", "always", E));
  MAKE(made, gen_eagle_new(model, path, 3, options, &made, E));
  say_by_head(made);
  FREE(gen_eagle_free(made));
  FREE(gen_options_free(options));
}

static void drafter(const void* with) {
  (void)with;
  static const int32_t text[] = {5, 9, 7, 9, 7, 9};
  gen_draft* drafts[2] = {NULL, NULL};
  MAKE(drafts[0], gen_draft_new(model, model, NULL, &drafts[0], E));
  MAKE(drafts[1], gen_draft_new_self(model, 1, NULL, &drafts[1], E));
  for (int i = 0; i < 2; ++i) {
    int32_t guesses[4], accepted = 0, correction = 0;
    float logprobs[4];
    size_t n = 0;
    double rate = 0;
    TRY(gen_draft_generate(drafts[i], text, 6, 4, guesses, logprobs, 4, &n, E));
    SAME(guesses, n * sizeof *guesses);
    SAME(logprobs, n * sizeof *logprobs);
    TRY(gen_draft_verify(drafts[i], text, 6, guesses, n, &accepted, &correction, E));
    SAME(&accepted, sizeof accepted);
    SAME(&correction, sizeof correction);
    TRY(gen_draft_acceptance_rate(drafts[i], text, 5, 2, &rate, E));
    SAME(&rate, sizeof rate);
    FREE(gen_draft_free(drafts[i]));
  }
  const float rows[] = {0.5F, 0.25F, 0.25F, 0, 0.5F, 0.5F};
  int32_t said[2];
  size_t n = 0;
  TRY(gen_draft_accept_tokens(&(int32_t){1}, 1, rows, rows, 3, 0, 1, 0, said, 2, &n, NULL, E));
  SAME(said, n * sizeof *said);
}

const scenario speculative_scenarios[] = {{"speculative", begin, speculative, end, NULL},
                                          {"speculative by rejection", begin, speculative, end, ""},
                                          {"drafter", begin, drafter, end, NULL},
                                          {"head eagle3", begin, head, end, "eagle3"},
                                          {"head eagle", begin, head, end, "eagle"},
                                          {"head mlp", begin, head, end, "mlp"},
                                          {"head assistant", begin_gemma, head, end, "assistant"},
                                          {"eagle", begin, head_of_file, end, "eagle3"},
                                          {"eagle tensors", begin, head_of_tensors, end, NULL},
                                          {0}};

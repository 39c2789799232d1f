/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: each request gives its result, one that lacked memory tells so, and the others do not
 * notice. */
#include "sweep.h"

enum { REQUESTS = 4 };
static const char* const prompts[REQUESTS] = {"Once upon a time", "the other thing in the end", "a",
                                              "Once upon a time there was"};

static gen_model* model;
static gen_generator* generator;
static gen_request* requests[REQUESTS];

#define SETUP(call)                                                         \
  do {                                                                      \
    if ((call) != GEN_OK) sweep_fail(__FILE__, __LINE__, "%s", E->message); \
  } while (0)

/* with: pairs of option and value, then NULL. */
static void begin(const void* with) {
  gen_options* options = NULL;
  model = sweep_load();
  SETUP(gen_options_new(&options, E));
  SETUP(gen_options_set_prefill_chunk(options, 5, E));
  for (const char* const* option = with; *option != NULL; option += 2)
    SETUP(gen_options_set(options, option[0], option[1], E));
  SETUP(gen_create(model, options, &generator, E));
  gen_options_free(options);
  for (int i = 0; i < REQUESTS; ++i) {
    gen_sampling* sampling = NULL;
    SETUP(gen_sampling_new(&sampling, E));
    SETUP(gen_sampling_set_max_new_tokens(sampling, 3 + i, E));
    SETUP(gen_sampling_set_ignore_eos(sampling, 1, E));
    SETUP(gen_sampling_set_seed(sampling, (uint64_t)i, E));
    SETUP(gen_sampling_set_logprobs(sampling, i, E));
    SETUP(gen_sampling_add_stop_string(sampling, "a string that does not come", GEN_NUL_TERMINATED,
                                       E));
    SETUP(gen_request_new(&requests[i], E));
    SETUP(gen_request_set_prompt(requests[i], prompts[i], GEN_NUL_TERMINATED, E));
    SETUP(gen_request_set_sampling(requests[i], sampling, E));
    gen_sampling_free(sampling);
  }
}

static void end(const void* with) {
  (void)with;
  for (int i = 0; i < REQUESTS; ++i) gen_request_free(requests[i]);
  gen_free(generator);
  gen_model_free(model);
}

static struct {
  char text[400];
  int done;
} heard[REQUESTS];

static int on_piece(void* user, size_t index, const gen_token* token) {
  (void)user;
  if (heard[index].done == 0 && token->text_len > 0) strcat(heard[index].text, token->text);
  heard[index].done += token->done != 0;
  return 0;
}

static gen_status generate(int stream, gen_result** results) {
  const gen_request* const* all = (const gen_request* const*)requests;
  memset(heard, 0, sizeof heard);
  return stream ? gen_batch_generate_stream(generator, all, REQUESTS, on_piece, NULL, results, E)
                : gen_batch_generate(generator, all, REQUESTS, results, E);
}

/* Whether each of n results is a good one; the others say that there was no memory. */
static int all_well(gen_result* const* results, int n) {
  int good = 1;
  for (int i = 0; i < n; ++i) {
    CHECK(results[i] != NULL);
    const gen_error* error = gen_result_error(results[i]);
    CHECK((gen_result_finish_reason(results[i]) == GEN_FINISH_ERROR) == (error != NULL));
    if (error == NULL) continue;
    *E = *error;
    if (!sweep_was_refused())
      sweep_refused(__FILE__, __LINE__, "one of several texts", error->code);
    CHECK(error->code == GEN_ERROR_OUT_OF_MEMORY);
    good = 0;
  }
  return good;
}

/* All requests at once; whether each has ended well. */
static int batch_once(int stream, gen_result** results) {
  for (int i = 0; i < REQUESTS; ++i) results[i] = (void*)&sweep_error;
  TRY_KEEPING(
      generate(stream, results), for (int i = 0; i < REQUESTS; ++i) {
        CHECK(results[i] == NULL);
        CHECK(heard[i].done == 0 && heard[i].text[0] == '\0'); /* nothing has begun */
      });
  for (int i = 0; stream && i < REQUESTS; ++i)
    CHECK(heard[i].done == 1 && strcmp(heard[i].text, gen_result_text(results[i], NULL)) == 0);
  return all_well(results, REQUESTS);
}

static void batch(const void* with) {
  (void)with;
  for (int stream = 0; stream < 2; ++stream) {
    gen_result* results[REQUESTS];
    while (!batch_once(stream, results))
      for (int i = 0; i < REQUESTS; ++i) FREE(gen_result_free(results[i]));
    for (int i = 0; i < REQUESTS; ++i) {
      size_t n = 0;
      SAME_TEXT(gen_result_text(results[i], NULL));
      const int32_t* tokens = gen_result_tokens(results[i], &n);
      SAME(tokens, n * sizeof *tokens);
      FREE(gen_result_free(results[i]));
    }
  }
}

/* Several texts from one prompt, with none and with one of them left out. */
static void several(const void* with) {
  (void)with;
  enum { TEXTS = 3 };
  gen_sampling* sampling = NULL;
  MAKE(sampling, gen_sampling_new(&sampling, E));
  TRY(gen_sampling_set_max_new_tokens(sampling, 4, E));
  for (int best_of = TEXTS; best_of <= TEXTS + 1; ++best_of) {
    gen_result* results[TEXTS];
    for (;;) {
      for (int i = 0; i < TEXTS; ++i) results[i] = (void*)&sweep_error;
      TRY_KEEPING(gen_generate_n(generator, prompts[1], GEN_NUL_TERMINATED, sampling, TEXTS,
                                 best_of, results, E),
                  for (int i = 0; i < TEXTS; ++i) CHECK(results[i] == NULL););
      if (all_well(results, TEXTS)) break;
      for (int i = 0; i < TEXTS; ++i) FREE(gen_result_free(results[i]));
    }
    for (int i = 0; i < TEXTS; ++i) {
      if (best_of == TEXTS) SAME_TEXT(gen_result_text(results[i], NULL));
      FREE(gen_result_free(results[i]));
    }
  }
  FREE(gen_sampling_free(sampling));
}

static const char *const plain[] = {NULL}, *const narrow[] = {"max_batch", "2", NULL},
                         *const prefix[] = {"paged_kv", "4,8", "prefix_cache", "32", NULL};

const scenario batch_scenarios[] = {{"batch", begin, batch, end, plain},
                                    {"batch of two at a time", begin, batch, end, narrow},
                                    {"batch prefix", begin, batch, end, prefix},
                                    {"several texts", begin, several, end, plain},
                                    {0}};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads generate at once, so that they share steps, with a model of two threads: whoever is
 * refused, both come to an end, nobody waits for ever, and the other's text is right.
 */
#include <pthread.h>

#include "sweep.h"

static gen_model* model;
static gen_generator* generator;

#define SETUP(call)                                                         \
  do {                                                                      \
    if ((call) != GEN_OK) sweep_fail(__FILE__, __LINE__, "%s", E->message); \
  } while (0)

static void begin(const void* with) {
  gen_model_options* load = NULL;
  gen_options* options = NULL;
  SETUP(gen_model_options_new(&load, E));
  SETUP(gen_model_options_set_threads(load, 2, E));
  SETUP(gen_model_options_set_allocator(load, &failing_table, E));
  SETUP(gen_model_load(sweep_model, load, &model, E));
  gen_model_options_free(load);
  SETUP(gen_options_new(&options, E));
  for (const char* const* option = with; *option != NULL; option += 2)
    SETUP(gen_options_set(options, option[0], option[1], E));
  SETUP(gen_create(model, options, &generator, E));
  gen_options_free(options);
}

static void end(const void* with) {
  (void)with;
  gen_free(generator);
  gen_model_free(model);
}

struct call {
  const char* prompt;
  gen_sampling* sampling;
  gen_result* result;
  gen_status status;
  gen_error error;
};

static void* generate(void* argument) {
  struct call* call = argument;
  call->status = gen_generate(generator, call->prompt, GEN_NUL_TERMINATED, call->sampling,
                              &call->result, &call->error);
  return NULL;
}

static void two(const void* with) {
  (void)with;
  gen_sampling* sampling = NULL;
  MAKE(sampling, gen_sampling_new(&sampling, E));
  TRY(gen_sampling_set_max_new_tokens(sampling, 6, E));
  TRY(gen_sampling_set_ignore_eos(sampling, 1, E));
  struct call calls[2] = {{.prompt = "Once upon a time", .sampling = sampling},
                          {.prompt = "in the end", .sampling = sampling}};
  pthread_t other;
  if (pthread_create(&other, NULL, generate, &calls[1]) == 0) {
    generate(&calls[0]);
    pthread_join(other, NULL);
  } else { /* the failure has met this program's own thread */
    generate(&calls[0]);
    generate(&calls[1]);
  }
  for (int i = 0; i < 2; ++i) {
    struct call* call = &calls[i];
    if (call->status != GEN_OK) {
      *E = call->error;
      if (!sweep_was_refused())
        sweep_refused(__FILE__, __LINE__, "gen_generate on a thread", call->status);
      CHECK(call->status == GEN_ERROR_OUT_OF_MEMORY);
      gen_result_free(call->result);
      call->result = NULL;
      TRY(gen_generate(generator, call->prompt, GEN_NUL_TERMINATED, sampling, &call->result, E));
    }
    SAME_TEXT(gen_result_text(call->result, NULL));
    FREE(gen_result_free(call->result));
  }
  FREE(gen_sampling_free(sampling));
}

static const char *const plain[] = {NULL}, *const prefix[] = {"paged_kv", "4,8", "prefix_cache",
                                                              "32", NULL};

const scenario thread_scenarios[] = {
    {"two threads", begin, two, end, plain}, {"two threads prefix", begin, two, end, prefix}, {0}};

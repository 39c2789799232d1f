/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches a generation: metrics and traces. Where memory is missing the text is right all the
 * same. */
#include <stdio.h>

#include "sweep.h"

static gen_model* model;

static void begin(const void* with) {
  (void)with;
  model = sweep_load();
}
static void end(const void* with) {
  (void)with;
  gen_model_free(model);
}

static void generate(gen_generator* generator, const char* prompt) {
  gen_sampling* sampling = NULL;
  gen_result* result = NULL;
  MAKE(sampling, gen_sampling_new(&sampling, E));
  TRY(gen_sampling_set_max_new_tokens(sampling, 4, E));
  TRY(gen_sampling_set_ignore_eos(sampling, 1, E));
  TRY((gen_result_free(result), result = NULL,
       gen_generate(generator, prompt, GEN_NUL_TERMINATED, sampling, &result, E)));
  SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  FREE(gen_sampling_free(sampling));
}

static void tell(void* user, const char* name, double value) {
  (void)user;
  (void)name;
  (void)value;
}
static const gen_metrics_sink nobody = {sizeof nobody, NULL, tell, tell, tell};

static void metrics(const void* with) {
  (void)with;
  gen_options* options = NULL;
  gen_metrics_memory* memory = NULL;
  gen_generator* generator = NULL;
  static char text[16384];
  size_t n = 0;
  MAKE(options, gen_options_new(&options, E));
  MAKE(memory, gen_metrics_memory_new(&memory, E));
  TRY(gen_options_set_metrics(options, &nobody, E));
  TRY(gen_options_set_metrics(options, gen_metrics_memory_sink(memory), E));
  MAKE(generator, gen_create(model, options, &generator, E));
  FREE(gen_options_free(options));
  generate(generator, "Once upon a time");
  TRY(gen_metrics_memory_snapshot(memory, text, sizeof text, &n, E));
  CHECK(n > 0);
  FREE(gen_free(generator));
  FREE(gen_metrics_memory_free(memory));
}

/* with: prompts, one after another. Among those of several lengths any list of the record grows at
 * any moment. */
static void trace(const void* with) {
  gen_options* options = NULL;
  gen_tracer* tracer = NULL;
  gen_generator* generator = NULL;
  static char text[4096];
  size_t n = 0;
  MAKE(options, gen_options_new(&options, E));
  MAKE(tracer, gen_tracer_new(&tracer, E));
  TRY(gen_options_set_tracer(options, tracer, E));
  MAKE(generator, gen_create(model, options, &generator, E));
  FREE(gen_options_free(options));
  for (const char* const* prompt = with; *prompt != NULL; ++prompt) generate(generator, *prompt);
  for (size_t i = 0; i < gen_tracer_op_count(tracer); ++i)
    TRY(gen_tracer_op(tracer, i, text, sizeof text, &n, E));
  const char* path = scratch("trace");
  TRY(gen_tracer_write_json(tracer, path, E));
  remove(path);
  TRY(gen_tracer_write_dot(tracer, path, E));
  remove(path);
  FREE(gen_free(generator));
  FREE(gen_tracer_free(tracer));
}

static const char *const short_first[] = {"a", "bc", "def", NULL},
                         *const long_first[] = {"Once upon a time", "abcd", "e", NULL},
                         *const longer[] = {"ab", "abcde", "abcdefg", NULL};

const scenario report_scenarios[] = {{"metrics", begin, metrics, end, NULL},
                                     {"trace", begin, trace, end, short_first},
                                     {"trace a long prompt", begin, trace, end, long_first},
                                     {"trace more", begin, trace, end, longer},
                                     {0}};

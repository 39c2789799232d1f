/* SPDX-License-Identifier: Apache-2.0 */
/* What scenarios that generate begin with: the sweep's model, a generator, and six greedy tokens. */
#ifndef GENERATE_TESTS_SMALL_GENERATOR_H
#define GENERATE_TESTS_SMALL_GENERATOR_H

#include "sweep.h"

static gen_model* model;
static gen_generator* generator;
static gen_sampling* greedy;

static void begin(const void* with) {
  (void)with;
  model = sweep_load();
  if (gen_create(model, NULL, &generator, E) != GEN_OK || gen_sampling_new(&greedy, E) != GEN_OK ||
      gen_sampling_set_temperature(greedy, 0, E) != GEN_OK ||
      gen_sampling_set_max_new_tokens(greedy, 6, E) != GEN_OK)
    sweep_fail(__FILE__, __LINE__, "%s", E->message);
}

static void end(const void* with) {
  (void)with;
  gen_sampling_free(greedy);
  gen_free(generator);
  gen_model_free(model);
}

#endif

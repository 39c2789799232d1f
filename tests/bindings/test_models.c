/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models in C for the tests of bindings: each is a gen_forward that a language finds by name in this library and passes on.
 * All take the vocabulary of the bundled model, in which byte b is token 5 + b.
 */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <generate/generate.h>

enum { kVocab = 4096, kFirstByte = 5 };

#define EXPORT __attribute__((visibility("default")))

static void choose(float *logits, int32_t token) {
  memset(logits, 0, kVocab * sizeof *logits);
  logits[token] = 1;
}

/* The same token for ever, for nothing: what is measured is all around it. */
static gen_status forward_nothing(void *user, const gen_forward_batch *batch, float *logits, float *features,
                                  gen_error *error) {
  (void)user;
  (void)features;
  (void)error;
  for (int32_t i = 0; i < batch->n_logits; ++i) choose(logits + (size_t)i * kVocab, kFirstByte + 'a');
  return GEN_OK;
}

/* Characters of one to four bytes, a byte a token, from the third position of a sequence on and round again. */
static const char kScript[] = "Gr\xC3\xBC\xC3\x9F" "e, \xE4\xB8\x96\xE7\x95\x8C! \xF0\x9F\x8E\x89 ";

static gen_status forward_script(void *user, const gen_forward_batch *batch, float *logits, float *features,
                                 gen_error *error) {
  (void)user;
  (void)features;
  (void)error;
  const int32_t length = (int32_t)sizeof kScript - 1;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (!batch->wants_logits[row]) continue;
    const int32_t at = (batch->positions[row] + length - 1) % length;
    choose(logits, kFirstByte + (unsigned char)kScript[at]);
    logits += kVocab;
  }
  return GEN_OK;
}

/* As forward_nothing, but 5 ms a step: there is time to cancel. */
static gen_status forward_slow(void *user, const gen_forward_batch *batch, float *logits, float *features,
                               gen_error *error) {
  const struct timespec pause = {0, 5000000};
  nanosleep(&pause, NULL);
  return forward_nothing(user, batch, logits, features, error);
}

/* Fails with the status that `user` is. */
static gen_status forward_failing(void *user, const gen_forward_batch *batch, float *logits, float *features,
                                  gen_error *error) {
  (void)batch;
  (void)logits;
  (void)features;
  strcpy(error->message, "the test model fails, naïvely");
  return (gen_status)(intptr_t)user;
}

/* Its state: in layer 0 the last six tokens, newest first, in layer 1 their number. The next token is their sum as a letter. */
enum { kKept = 6 };
typedef struct {
  float tokens[kKept], number;
} memory;

static gen_status forward_memory(void *user, const gen_forward_batch *batch, float *logits, float *features,
                                 gen_error *error) {
  (void)user;
  (void)features;
  (void)error;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    memory *state = batch->states[batch->sequences[row]];
    memmove(state->tokens + 1, state->tokens, (kKept - 1) * sizeof(float));
    state->tokens[0] = (float)batch->tokens[row];
    ++state->number;
    if (!batch->wants_logits[row]) continue;
    int32_t sum = 0;
    for (int32_t i = 0; i < kKept; ++i) sum += (int32_t)state->tokens[i];
    choose(logits, kFirstByte + 'a' + sum % 26);
    logits += kVocab;
  }
  return GEN_OK;
}

static gen_status new_memory(void *user, void **state, gen_error *error) {
  (void)user;
  (void)error;
  *state = calloc(1, sizeof(memory));
  return *state != NULL ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
}

static gen_status clone_memory(void *user, const void *state, void **out, gen_error *error) {
  const gen_status status = new_memory(user, out, error);
  if (status == GEN_OK) memcpy(*out, state, sizeof(memory));
  return status;
}

static void free_memory(void *user, void *state) {
  (void)user;
  free(state);
}

static gen_status read_memory(void *user, const void *state, int32_t layer, float *h, int32_t shape[3],
                              gen_error *error) {
  (void)user;
  (void)error;
  const memory *from = state;
  shape[0] = 1;
  shape[1] = layer == 0 ? 2 : 1;
  shape[2] = layer == 0 ? 3 : 1;
  if (h == NULL) return GEN_OK;
  if (layer == 0) {
    memcpy(h, from->tokens, sizeof from->tokens);
  } else {
    *h = from->number;
  }
  return GEN_OK;
}

static gen_status read_nothing(void *user, const void *state, int32_t layer, float *h, int32_t shape[3],
                               gen_error *error) {
  (void)user;
  (void)state;
  (void)layer;
  (void)h;
  (void)shape;
  strcpy(error->message, "the test model's state is hidden");
  return GEN_ERROR_IO;
}

EXPORT const gen_forward test_model_memory;
const gen_forward test_model_memory = {.struct_size = sizeof(gen_forward),
                                       .forward = forward_memory,
                                       .state_new = new_memory,
                                       .state_clone = clone_memory,
                                       .state_free = free_memory,
                                       .state_layers = 2,
                                       .state_get_layer = read_memory};

/* The same, but its state can be neither copied nor read. */
EXPORT const gen_forward test_model_hidden;
const gen_forward test_model_hidden = {.struct_size = sizeof(gen_forward),
                                       .forward = forward_memory,
                                       .state_new = new_memory,
                                       .state_free = free_memory,
                                       .state_layers = 2,
                                       .state_get_layer = read_nothing};

#define MODEL(name, function, value)          \
  EXPORT const gen_forward test_model_##name; \
  const gen_forward test_model_##name = {     \
      .struct_size = sizeof(gen_forward), .user = (void *)(intptr_t)(value), .forward = function}

MODEL(nothing, forward_nothing, 0);
MODEL(script, forward_script, 0);
MODEL(slow, forward_slow, 0);
MODEL(fails_1, forward_failing, -1);
MODEL(fails_2, forward_failing, -2);
MODEL(fails_3, forward_failing, -3);
MODEL(fails_4, forward_failing, -4);
MODEL(fails_5, forward_failing, -5);
MODEL(fails_6, forward_failing, -6);
MODEL(fails_7, forward_failing, -7);
MODEL(fails_8, forward_failing, -8);
MODEL(fails_9, forward_failing, -9);
MODEL(fails_10, forward_failing, -10);
MODEL(fails_11, forward_failing, -11);
MODEL(fails_12, forward_failing, -12);
MODEL(fails_13, forward_failing, -13);
MODEL(fails_14, forward_failing, -14);
MODEL(fails_15, forward_failing, -15);
MODEL(fails_16, forward_failing, -16);
MODEL(fails_17, forward_failing, -17);
MODEL(fails_18, forward_failing, -18);
MODEL(fails_77, forward_failing, 77);

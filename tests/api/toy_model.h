/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A toy model for tests of gen_forward: its next token is a function of all tokens so far, which
 * its state remembers, or of the last one alone where it has no state. It counts what is asked of
 * it, and fails or lies on demand. The functions toy_next and toy_expect say what it must answer,
 * by a loop of their own.
 */
#ifndef TESTS_API_TOY_MODEL_H
#define TESTS_API_TOY_MODEL_H

#include "api_test.h"

#include <math.h>
#include <stdatomic.h>

enum { TOY_VOCAB = 61, TOY_CONTEXT = 200 };

/* The fault of a toy at call number `at`. */
enum toy_fault { TOY_GOOD, TOY_STATUS, TOY_NAN, TOY_INF, TOY_ALL_MINUS_INF, TOY_UNWRITTEN };

struct toy {
  atomic_int calls, rows, news, clones, frees, truncates, releases;
  atomic_int max_sequences; /* in one call */
  atomic_int wrong;         /* calls that broke the contract */
  enum toy_fault fault;
  int at;            /* number of the call that goes wrong, from 0 */
  gen_status status; /* of TOY_STATUS, and of the state functions that refuse */
  const char* message;
  int refuse_new, refuse_clone, refuse_truncate;
  int stateless;
  gen_session* cancels; /* a session that forward cancels */
};

struct toy_state {
  int32_t length;
  int32_t tokens[TOY_CONTEXT + 1];
};

/* The token after these. */
static inline int32_t toy_next(const int32_t* tokens, int32_t n, int stateless) {
  uint32_t digest = 7;
  for (int32_t i = stateless ? n - 1 : 0; i < n; ++i)
    digest = digest * 31 + (uint32_t)tokens[i] * 17 + 5;
  return (int32_t)((digest >> 3) % TOY_VOCAB);
}

/* The `more` tokens that follow `n` tokens. */
static inline void toy_expect(int32_t* tokens, int32_t n, int32_t more, int stateless) {
  for (int32_t i = 0; i < more; ++i) tokens[n + i] = toy_next(tokens, n + i, stateless);
}

static inline void toy_write(float* row, int32_t next) {
  for (int32_t i = 0; i < TOY_VOCAB; ++i) row[i] = i == next ? 9.0F : (float)(i % 7) - 3.0F;
}

static inline void toy_spoil(enum toy_fault fault, float* row) {
  if (fault == TOY_NAN) row[5] = NAN;
  if (fault == TOY_INF) row[TOY_VOCAB - 1] = INFINITY;
  if (fault != TOY_ALL_MINUS_INF) return;
  for (int32_t i = 0; i < TOY_VOCAB; ++i) row[i] = -INFINITY;
}

static inline gen_status toy_refuse(const struct toy* toy, gen_error* told) {
  if (toy->message != NULL) snprintf(told->message, sizeof told->message, "%s", toy->message);
  return toy->status;
}

static inline int toy_good_batch(const gen_forward_batch* batch) {
  int32_t wanted = 0;
  int32_t last = 0;
  if (batch->struct_size != sizeof *batch || batch->n_rows < 1 || batch->sequences[0] != 0)
    return 0;
  if (batch->caches != NULL) return 0;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    const int32_t sequence = batch->sequences[row];
    if (sequence < last || sequence > last + 1 || sequence >= batch->n_sequences) return 0;
    if (row > 0 && sequence == last && batch->positions[row] != batch->positions[row - 1] + 1)
      return 0;
    if (batch->tokens[row] < 0 || batch->tokens[row] >= TOY_VOCAB) return 0;
    if (batch->wants_logits[row] > 1) return 0;
    last = sequence;
    wanted += batch->wants_logits[row];
  }
  return last == batch->n_sequences - 1 && wanted == batch->n_logits;
}

static inline gen_status toy_forward(void* user, const gen_forward_batch* batch, float* logits,
                                     float* features, gen_error* told) {
  struct toy* toy = user;
  const int call = toy->calls++;
  toy->rows += batch->n_rows;
  if (batch->n_sequences > toy->max_sequences) toy->max_sequences = batch->n_sequences;
  toy->wrong +=
      !toy_good_batch(batch) || features != NULL || told == NULL || told->message[0] != '\0';
  const enum toy_fault fault = call == toy->at ? toy->fault : TOY_GOOD;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    struct toy_state* state = batch->states[batch->sequences[row]];
    int32_t next = 0;
    if (toy->stateless) {
      toy->wrong += state != NULL;
      next = toy_next(&batch->tokens[row], 1, 1);
    } else {
      toy->wrong += state->length != batch->positions[row];
      state->tokens[state->length++] = batch->tokens[row];
      next = toy_next(state->tokens, state->length, 0);
    }
    /* In the middle, so that states are left half done. */
    if (fault == TOY_STATUS && row == batch->n_rows / 2) return toy_refuse(toy, told);
    if (!batch->wants_logits[row]) continue;
    if (fault != TOY_UNWRITTEN) toy_write(logits, next);
    toy_spoil(fault, logits);
    logits += TOY_VOCAB;
  }
  if (toy->cancels != NULL) {
    toy->wrong += gen_forward_cancelled(batch);
    gen_session_cancel(toy->cancels);
    toy->wrong += !gen_forward_cancelled(batch);
    return GEN_ERROR_CANCELLED;
  }
  return GEN_OK;
}

static inline gen_status toy_state_new(void* user, void** state, gen_error* told) {
  struct toy* toy = user;
  if (toy->refuse_new) return toy_refuse(toy, told);
  *state = calloc(1, sizeof(struct toy_state));
  ++toy->news;
  return GEN_OK;
}

static inline gen_status toy_state_clone(void* user, const void* state, void** out,
                                         gen_error* told) {
  struct toy* toy = user;
  if (toy->refuse_clone) return toy_refuse(toy, told);
  *out = malloc(sizeof(struct toy_state));
  memcpy(*out, state, sizeof(struct toy_state));
  ++toy->clones;
  return GEN_OK;
}

static inline gen_status toy_state_truncate(void* user, void* state, int32_t n, gen_error* told) {
  struct toy* toy = user;
  ++toy->truncates;
  if (toy->refuse_truncate) return toy_refuse(toy, told);
  struct toy_state* own = state;
  if (own->length > n) own->length = n;
  return GEN_OK;
}

static inline void toy_state_free(void* user, void* state) {
  struct toy* toy = user;
  ++toy->frees;
  free(state);
}

static inline void toy_release(void* user) {
  struct toy* toy = user;
  ++toy->releases;
}

/* The table of a toy, complete or without state. */
static inline gen_forward toy_table(struct toy* toy) {
  gen_forward table = {
      .struct_size = sizeof table, .user = toy, .forward = toy_forward, .release = toy_release};
  if (toy->stateless) return table;
  table.state_new = toy_state_new;
  table.state_clone = toy_state_clone;
  table.state_truncate = toy_state_truncate;
  table.state_free = toy_state_free;
  return table;
}

static inline gen_model_config* toy_config(void) {
  gen_model_config* config = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, TOY_VOCAB, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, TOY_CONTEXT, &error), error);
  return config;
}

static inline gen_model* toy_model(const gen_forward* table) {
  gen_model* model = NULL;
  gen_model_config* config = toy_config();
  assert_ok(gen_model_new_custom(table, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

static inline gen_generator* toy_generator(const gen_forward* table, const gen_options* options) {
  gen_generator* generator = NULL;
  gen_model* model = toy_model(table);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_model_free(model);
  return generator;
}

/* A state per sequence, a state that cannot be truncated, no state. */
enum kind { WITH_STATE, ONE_WAY, STATELESS, KINDS };

static inline gen_forward table_of(struct toy* toy, enum kind kind) {
  toy->stateless = kind == STATELESS;
  gen_forward table = toy_table(toy);
  if (kind == ONE_WAY) table.state_truncate = NULL;
  return table;
}

/* Everything that was made has been freed, and no call broke the contract. */
static inline void assert_balanced(struct toy* toy) {
  assert_int_equal(toy->wrong, 0);
  assert_int_equal(toy->news + toy->clones, toy->frees);
  assert_int_equal(toy->releases, 1);
}

static inline gen_session* open_session(gen_generator* generator) {
  gen_session* session = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  return session;
}

/* Generates `more` tokens greedily; they must be what follows all that the session holds. */
static inline void assert_goes_on(gen_session* session, const struct toy* toy, int32_t more) {
  int32_t all[TOY_CONTEXT];
  size_t n = 0;
  size_t said = 0;
  assert_ok(gen_session_tokens(session, all, TOY_CONTEXT, &n, &error), error);
  gen_sampling* sampling = greedy(more);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(session, "", 0, sampling, &result, &error), error);
  const int32_t* tokens = gen_result_tokens(result, &said);
  toy_expect(all, (int32_t)n, more, toy->stateless);
  assert_int_equal(said, more);
  assert_memory_equal(tokens, all + n, said * sizeof(int32_t));
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_LENGTH);
  gen_result_free(result);
  gen_sampling_free(sampling);
}

/* A generation that fails: the session is as before, and later calls continue from there. */
static inline void assert_fails_and_goes_on(gen_session* session, struct toy* toy,
                                            gen_status wanted, const char* part) {
  gen_sampling* sampling = greedy(8);
  gen_result* result = NULL;
  const int32_t before = gen_session_length(session);
  assert_fails(gen_session_generate(session, "", 0, sampling, &result, &error), wanted, part,
               error);
  assert_non_null(result);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_ERROR);
  assert_int_equal(gen_session_length(session), before);
  gen_result_free(result);
  gen_sampling_free(sampling);
  toy->fault = TOY_GOOD;
  assert_goes_on(session, toy, 8);
}

#endif /* TESTS_API_TOY_MODEL_H */

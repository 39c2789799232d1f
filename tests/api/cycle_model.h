/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A custom model whose next token follows from the last one alone, and heads for it: CYCLE tokens
 * follow one another in a fixed order, whatever else was said begins anew behind the last of them.
 * Features of a row are a one at the place of its token. The head that is right multiplies by two
 * permutations, of which the second undoes the shift of the first; a norm and an activation keep
 * one number large and all others equal, so that each guess is the right one. C and C++.
 */
#ifndef GENERATE_TESTS_CYCLE_MODEL_H
#define GENERATE_TESTS_CYCLE_MODEL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <generate/generate.h>

enum { CYCLE = 16, CYCLE_CONTEXT = 256 };

/* What the function writes as features: all of them, none, or not those of every third position. */
enum cycle_features { CYCLE_ALL, CYCLE_NONE, CYCLE_GAPS };

struct cycle {
  int32_t tokens[CYCLE]; /* by place */
  int32_t vocab;
  enum cycle_features features;
  int asks;  /* passes that were asked for features */
  int plain; /* and those that were not */
  int wrong; /* rows at positions that their state does not expect */
  int states;
};

static inline int cycle_after(int place) { return (5 * place + 3) % CYCLE; }

static inline int cycle_place(const struct cycle* of, int32_t token) {
  int place = 0;
  while (place < CYCLE - 1 && of->tokens[place] != token) ++place;
  return place;
}

static inline gen_status cycle_forward(void* user, const gen_forward_batch* batch, float* logits,
                                       float* features, gen_error* error) {
  struct cycle* of = (struct cycle*)user;
  (void)error;
  if (features != NULL) {
    ++of->asks;
  } else {
    ++of->plain;
  }
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    const int place = cycle_place(of, batch->tokens[row]);
    const int32_t position = batch->positions[row];
    if (batch->states != NULL && batch->states[batch->sequences[row]] != NULL) {
      int32_t* length = (int32_t*)batch->states[batch->sequences[row]];
      of->wrong += *length != position;
      *length = position + 1;
    }
    if (features != NULL && of->features != CYCLE_NONE) {
      float* own = features + (size_t)row * CYCLE;
      for (int i = 0; i < CYCLE; ++i) own[i] = (float)(i == place);
      if (of->features == CYCLE_GAPS && position % 3 == 0) own[place] = INFINITY;
    }
    if (!batch->wants_logits[row]) continue;
    memset(logits, 0, (size_t)of->vocab * sizeof *logits);
    logits[of->tokens[cycle_after(place)]] = 50.0F;
    logits += of->vocab;
  }
  return GEN_OK;
}

static inline gen_status cycle_state_new(void* user, void** state, gen_error* error) {
  (void)error;
  ++((struct cycle*)user)->states;
  *state = calloc(1, sizeof(int32_t));
  return GEN_OK;
}
static inline gen_status cycle_state_clone(void* user, const void* state, void** out,
                                           gen_error* error) {
  cycle_state_new(user, out, error);
  memcpy(*out, state, sizeof(int32_t));
  return GEN_OK;
}
static inline gen_status cycle_state_truncate(void* user, void* state, int32_t n,
                                              gen_error* error) {
  int32_t* length = (int32_t*)state;
  (void)user;
  (void)error;
  if (*length > n) *length = n;
  return GEN_OK;
}
static inline void cycle_state_free(void* user, void* state) {
  --((struct cycle*)user)->states;
  free(state);
}

/* Chooses tokens of small letters; the tokenizer is the model's. */
static inline void cycle_begin(struct cycle* of, const gen_tokenizer* tokenizer) {
  int n = 0;
  memset(of, 0, sizeof *of);
  of->vocab = gen_tokenizer_vocab_size(tokenizer);
  for (int32_t token = 0; token < of->vocab && n < CYCLE; ++token) {
    char text[64];
    size_t length = 0;
    if (gen_tokenizer_piece(tokenizer, token, text, sizeof text, &length, NULL) != GEN_OK) continue;
    if (length == 0 || strspn(text, "abcdefghijklmnopqrstuvwxyz") != length) continue;
    of->tokens[n++] = token;
  }
}

/* What a model of it may have beside `forward`: a state that goes back, one that is copied, none.
 */
enum cycle_kind { CYCLE_STATELESS, CYCLE_GOES_BACK, CYCLE_COPIED, CYCLE_STUCK };

/* NULL on a failure, which `error` tells. */
static inline gen_model* cycle_model(struct cycle* of, enum cycle_kind kind, int32_t hidden,
                                     const gen_tokenizer* tokenizer, gen_error* error) {
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  gen_forward table;
  memset(&table, 0, sizeof table);
  table.struct_size = sizeof table;
  table.user = of;
  table.forward = cycle_forward;
  if (kind != CYCLE_STATELESS) {
    table.state_new = cycle_state_new;
    table.state_free = cycle_state_free;
  }
  if (kind == CYCLE_GOES_BACK) table.state_truncate = cycle_state_truncate;
  if (kind == CYCLE_COPIED) table.state_clone = cycle_state_clone;
  if (gen_model_config_new(&config, error) != GEN_OK) return NULL;
  if (gen_model_config_set_vocab_size(config, of->vocab, error) == GEN_OK &&
      gen_model_config_set_max_seq_len(config, CYCLE_CONTEXT, error) == GEN_OK &&
      gen_model_config_set_hidden(config, hidden, error) == GEN_OK) {
    gen_model_new_custom(&table, config, tokenizer, &model, error);
  }
  gen_model_config_free(config);
  return model;
}

/* A head; `shift` 1 is right, and any other one always wrong. */
struct cycle_head {
  float norm[CYCLE], bias[CYCLE], fc1[CYCLE * CYCLE], fc2[CYCLE * CYCLE];
  float* lm_head; /* [vocab, CYCLE], to be freed */
  gen_eagle_tensors tensors;
};

static inline void cycle_head_begin(struct cycle_head* head, const struct cycle* of, int shift) {
  memset(head, 0, sizeof *head);
  head->lm_head = (float*)calloc((size_t)of->vocab * CYCLE, sizeof(float));
  for (int i = 0; i < CYCLE; ++i) {
    head->norm[i] = 1.0F;
    head->fc1[i * CYCLE + (i + shift) % CYCLE] = 10.0F;
    head->fc2[(i + 1) % CYCLE * CYCLE + cycle_after(i)] = 1.0F;
    head->lm_head[(size_t)of->tokens[cycle_after(i)] * CYCLE + (size_t)i] = 1.0F;
  }
  head->tensors.struct_size = sizeof head->tensors;
  head->tensors.hidden = CYCLE;
  head->tensors.vocab_size = of->vocab;
  head->tensors.norm_weight = head->norm;
  head->tensors.norm_bias = head->bias;
  head->tensors.fc1_weight = head->fc1;
  head->tensors.fc2_weight = head->fc2;
  head->tensors.lm_head = head->lm_head;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are functions of the caller's: one with a state of its own, one that uses the
 * library's attention. */
#include <stdlib.h>

#include "sweep.h"

enum { VOCAB = 61, HEADS = 2, KV_HEADS = 1, HEAD = 16, LAYERS = 2, MOST_ROWS = 64 };

static int32_t next_of(int32_t token, int32_t position) {
  return (token * 7 + position * 5 + 3) % VOCAB;
}

static gen_status forward_state(void* user, const gen_forward_batch* batch, float* logits,
                                float* features, gen_error* error) {
  (void)user;
  (void)features;
  (void)error;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    int32_t* sum = batch->states[batch->sequences[row]];
    *sum += batch->tokens[row];
    if (!batch->wants_logits[row]) continue;
    const int32_t best = next_of(*sum, batch->positions[row]);
    for (int32_t i = 0; i < VOCAB; ++i) *logits++ = i == best ? 9.0F : 0.0F;
  }
  return GEN_OK;
}

static gen_status no_memory(gen_error* error) {
  error->code = GEN_ERROR_OUT_OF_MEMORY;
  return GEN_ERROR_OUT_OF_MEMORY;
}

static gen_status state_new(void* user, void** state, gen_error* error) {
  (void)user;
  *state = calloc(1, sizeof(int32_t));
  return *state != NULL ? GEN_OK : no_memory(error);
}

static gen_status state_clone(void* user, const void* state, void** out, gen_error* error) {
  (void)user;
  *out = malloc(sizeof(int32_t));
  if (*out == NULL) return no_memory(error);
  memcpy(*out, state, sizeof(int32_t));
  return GEN_OK;
}

static void state_free(void* user, void* state) {
  (void)user;
  free(state);
}

static gen_status forward_attention(void* user, const gen_forward_batch* batch, float* logits,
                                    float* features, gen_error* error) {
  static float q[MOST_ROWS * HEADS * HEAD], k[MOST_ROWS * HEAD], v[MOST_ROWS * HEAD],
      out[MOST_ROWS * HEADS * HEAD];
  (void)user;
  (void)features;
  if (batch->n_rows > MOST_ROWS) return GEN_ERROR_INTERNAL;
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    for (int32_t i = 0; i < batch->n_rows * HEADS * HEAD; ++i)
      q[i] = (float)((batch->tokens[i / (HEADS * HEAD)] + i + layer) % 13) / 6.0F - 1.0F;
    for (int32_t i = 0; i < batch->n_rows * HEAD; ++i)
      k[i] = v[i] = (float)((batch->tokens[i / HEAD] * 3 + i + layer) % 17) / 8.0F - 1.0F;
    const gen_status status = gen_forward_attention(batch, layer, q, k, v, 0.25F, out, error);
    if (status != GEN_OK) return status;
  }
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (!batch->wants_logits[row]) continue;
    for (int32_t i = 0; i < VOCAB; ++i)
      *logits++ = out[row * HEADS * HEAD + i % (HEADS * HEAD)] * (float)(i % 5 + 1);
  }
  return GEN_OK;
}

static gen_status state_get_layer(void* user, const void* state, int32_t layer, float* h,
                                  int32_t shape[3], gen_error* error) {
  (void)user;
  (void)state;
  (void)layer;
  (void)error;
  for (int i = 0; i < 3; ++i) shape[i] = 1;
  if (h != NULL) *h = 5;
  return GEN_OK;
}

/* with: "state" or "attention", or the latter with another kind of cache. */
static void custom(const void* with) {
  const int stateful = strcmp(with, "state") == 0;
  gen_forward table = {.struct_size = sizeof table, .forward = forward_attention};
  if (stateful) {
    table.forward = forward_state;
    table.state_new = state_new;
    table.state_clone = state_clone;
    table.state_free = state_free;
    table.state_layers = 1;
    table.state_get_layer = state_get_layer;
  }
  static char text[4096];
  size_t n = 0;
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  gen_session* fork = NULL;
  gen_sampling* sampling = NULL;
  gen_options* options = NULL;
  gen_cancel* cancel = NULL;
  MAKE(config, gen_model_config_new(&config, E));
  TRY(gen_model_config_set_vocab_size(config, VOCAB, E));
  TRY(gen_model_config_set_max_seq_len(config, 100, E));
  TRY(gen_model_config_set_name(config, "a name longer than short ones", E));
  TRY(gen_model_config_set_eos(config, 0, E));
  TRY(gen_model_config_set_bos(config, 1, E));
  TRY(gen_model_config_set_num_layers(config, LAYERS, E));
  TRY(gen_model_config_set_num_heads(config, HEADS, E));
  TRY(gen_model_config_set_num_kv_heads(config, KV_HEADS, E));
  TRY(gen_model_config_set_head_dim(config, HEAD, E));
  TRY(gen_model_config_set_hidden(config, HEAD * HEADS, E));
  TRY(gen_model_config_set(config, "num_layers", "2", E));
  if (!stateful) TRY(gen_model_config_set_kv_layers(config, LAYERS, E));
  TRY(gen_model_config_describe(config, text, sizeof text, &n, E));
  SAME(text, n);
  MAKE(model, gen_model_new_custom(&table, config, NULL, &model, E));
  FREE(gen_model_config_free(config));
  MAKE(options, gen_options_new(&options, E));
  TRY(gen_options_set_prefill_chunk(options, 4, E));
  if (stateful) { /* copied before each pass over guesses */
    TRY(gen_options_set_prompt_lookup(options, 1, 3, E));
    TRY(gen_options_set(options, "draft_policy", "always", E));
  }
  if (strstr(with, "paged") != NULL) TRY(gen_options_set_paged_kv(options, 1, 4, E));
  if (strstr(with, "q4") != NULL) TRY(gen_options_set_kv_dtype(options, "q4", E));
  MAKE(generator, gen_create(model, options, &generator, E));
  FREE(gen_options_free(options));
  FREE(gen_model_free(model));
  MAKE(sampling, gen_sampling_new(&sampling, E));
  TRY(gen_sampling_set_max_new_tokens(sampling, 6, E));
  TRY(gen_sampling_set_ignore_eos(sampling, 1, E));
  MAKE(session, gen_session_new(generator, &session, E));
  const int32_t prompt[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  MAKE(cancel, gen_cancel_new(&cancel, E));
  TRY(gen_session_set_cancel(session, cancel, E));
  TRY_KEEPING(gen_session_append_tokens(session, prompt, 9, E),
              CHECK(gen_session_length(session) == 0));
  TRY(gen_session_set_cancel(session, NULL, E));
  FREE(gen_cancel_free(cancel));
  MAKE(fork, gen_session_fork(session, &fork, E));
  for (int i = 0; i < 2; ++i) {
    gen_session* const one = i == 0 ? session : fork;
    gen_result* result = NULL;
    TRY_KEEPING((gen_result_free(result), result = NULL,
                 gen_session_generate(one, "", 0, sampling, &result, E)),
                CHECK(gen_session_length(one) == 9));
    const int32_t* tokens = gen_result_tokens(result, &n);
    SAME(tokens, n * sizeof *tokens);
    FREE(gen_result_free(result));
  }
  gen_ssm_state* const view = gen_session_ssm_state(session);
  if (view != NULL) {
    int64_t snapshot = 0;
    float h[1] = {0};
    int32_t shape[3];
    TRY(gen_ssm_state_snapshot(view, &snapshot, E));
    TRY(gen_session_append_tokens(session, prompt, 9, E));
    TRY_KEEPING(gen_ssm_state_restore(view, snapshot, E), CHECK(gen_session_length(session) == 24));
    CHECK(gen_session_length(session) == 15);
    TRY(gen_ssm_state_get_layer(view, 0, h, 1, shape, E));
    SAME(h, sizeof h);
  }
  FREE(gen_session_free(fork));
  FREE(gen_session_free(session));
  FREE(gen_sampling_free(sampling));
  FREE(gen_free(generator));
}

const scenario custom_scenarios[] = {
    {"custom with a state", NULL, custom, NULL, "state"},
    {"custom with attention", NULL, custom, NULL, "attention"},
    {"custom with attention, paged", NULL, custom, NULL, "attention paged"},
    {"custom with attention, q4", NULL, custom, NULL, "attention q4"},
    {0}};

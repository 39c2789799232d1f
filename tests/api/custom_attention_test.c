/* SPDX-License-Identifier: Apache-2.0 */
/* gen_forward_attention: a toy of two layers whose queries, keys and values are noise made of
 * token, position and layer. What it says is compared with attention written out in double
 * precision, in all kinds of cache, and its sessions are cut, forked, saved and made to fail. */
#include "damage_files.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
  VOCAB = 50,
  CONTEXT = 400,
  LAYERS = 2,
  HEADS = 4,
  KV_HEADS = 2,
  DIM = 16,
  WIDTH = HEADS * DIM
};
static const float kScale = 1.5F;
static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

/* What the function does wrong: nothing, or at its next call one of these. */
enum fault { GOOD, LEAVES_OUT, TWICE, NO_LAYER, NO_NUMBER, NULLS, FAILS_HALFWAY, TWO_THREADS };
struct noise {
  enum fault fault;
  gen_status seen; /* what gen_forward_attention said of it */
  int32_t context; /* 0: CONTEXT */
  int looks;       /* at the batch's caches, before, between and after the layers */
  int looked;
  int lossy;               /* what is kept need not be what was given */
  int32_t tokens[CONTEXT]; /* of the one sequence that is looked at */
};

/* In [-1, 1). */
static float noise(int32_t kind, int32_t layer, int32_t token, int32_t position, int32_t i) {
  uint32_t x = (uint32_t)kind * 0x9E3779B1U + (uint32_t)layer * 0x85EBCA77U +
               (uint32_t)token * 0xC2B2AE3DU + (uint32_t)position * 0x27D4EB2FU +
               (uint32_t)i * 0x165667B1U;
  x ^= x >> 15;
  x *= 0x2C1B3C6DU;
  x ^= x >> 12;
  x *= 0x297A2D39U;
  x ^= x >> 15;
  return (float)(x >> 8) / 8388608.0F - 1.0F;
}
static float weight(int32_t layer, int32_t i, int32_t token) {
  return noise(3, layer, token, 7, i);
}

static void fill(float* to, int32_t kind, int32_t layer, const gen_forward_batch* batch,
                 int32_t width) {
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    for (int32_t i = 0; i < width; ++i)
      *to++ = noise(kind, layer, batch->tokens[row], batch->positions[row], i);
  }
}

/* The cache of the only sequence holds what came before this call, and can be read, but no more. */
static void look(struct noise* toy, const gen_forward_batch* batch) {
  gen_error local;
  if (toy->looks == 0) return;
  ++toy->looked;
  assert_int_equal(batch->n_sequences, 1);
  const kv_cache* cache = batch->caches[0];
  kv_cache* writable = (kv_cache*)(uintptr_t)cache;
  const int32_t held = batch->positions[0];
  for (int32_t row = 0; row < batch->n_rows; ++row) toy->tokens[held + row] = batch->tokens[row];
  assert_int_equal(kv_cache_seq_len(cache), held);
  assert_int_equal(kv_cache_num_layers(cache), LAYERS);
  assert_string_equal(kv_cache_dtype(cache), "fp32");
  assert_int_equal(kv_cache_capabilities(cache) &
                       (KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_CAN_VIEW),
                   0);
  size_t before = 0;
  size_t after = 0;
  assert_ok(kv_cache_memory_bytes(cache, &before, NULL, NULL, &local), local);
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    static float k[KV_HEADS * CONTEXT * DIM];
    static float v[KV_HEADS * CONTEXT * DIM];
    int32_t shape[3];
    const size_t room = sizeof k / sizeof k[0];
    assert_ok(kv_cache_get(cache, layer, k, room, v, room, shape, NULL, &local), local);
    if (toy->lossy) continue;
    assert_int_equal(shape[1], held);
    for (int32_t head = 0; head < KV_HEADS; ++head) {
      for (int32_t e = 0; e < held; ++e) {
        for (int32_t i = 0; i < DIM; ++i) {
          const size_t at = (size_t)((head * held + e) * DIM + i);
          assert_true(k[at] == noise(1, layer, toy->tokens[e], e, head * DIM + i));
          assert_true(v[at] == noise(2, layer, toy->tokens[e], e, head * DIM + i));
        }
      }
    }
  }
  /* What the step has taken for its rows is still there. */
  assert_ok(kv_cache_memory_bytes(cache, &after, NULL, NULL, &local), local);
  assert_int_equal(after, before);
  const gen_status state = GEN_ERROR_STATE;
  const float one[KV_HEADS * DIM] = {1};
  size_t n = 0;
  kv_cache* copy = NULL;
  assert_fails(kv_cache_truncate(writable, 0, &local), state, "read-only", local);
  assert_fails(kv_cache_reset(writable, &local), state, "read-only", local);
  assert_fails(kv_cache_update(writable, 0, one, one, 1, 1, DIM, &local), state, "read-only",
               local);
  assert_fails(kv_cache_load_buffer(writable, one, sizeof one, &local), state, "read-only", local);
  assert_fails(kv_cache_save_buffer(cache, NULL, 0, &n, &local), state, "step", local);
  assert_fails(kv_cache_clone(cache, &copy, &local), GEN_ERROR_UNSUPPORTED, "step", local);
  kv_cache_free(writable); /* it is not theirs to free */
}

/* Two threads with one batch, until a call has met another. */
static atomic_int met;
static void* call_until_met(void* batch) {
  const float row[WIDTH] = {0};
  float out[WIDTH];
  while (!met) {
    const gen_status status = gen_forward_attention(batch, LAYERS, row, row, row, 1, out, NULL);
    if (status == GEN_ERROR_BUSY) met = 1;
    if (status != GEN_ERROR_BUSY && status != GEN_ERROR_OUT_OF_RANGE) return batch;
  }
  return NULL;
}

static gen_status forward(void* user, const gen_forward_batch* batch, float* logits,
                          float* features, gen_error* said) {
  struct noise* toy = user;
  const enum fault fault = toy->fault;
  toy->fault = GOOD;
  const size_t rows = (size_t)batch->n_rows;
  float* q = malloc(rows * WIDTH * sizeof *q);
  float* k = malloc(rows * KV_HEADS * DIM * sizeof *k);
  float* v = malloc(rows * KV_HEADS * DIM * sizeof *v);
  float* out = malloc(rows * WIDTH * sizeof *out);
  gen_status status = GEN_OK;
  (void)features;
  for (int32_t i = 0; i < batch->n_logits * VOCAB; ++i) logits[i] = 0;
  look(toy, batch);
  for (int32_t layer = 0; layer < LAYERS && status == GEN_OK; ++layer) {
    if (layer == 1 && fault == LEAVES_OUT) continue;
    if (layer == 1 && fault == FAILS_HALFWAY) status = GEN_ERROR_DEVICE;
    fill(q, 0, layer, batch, WIDTH);
    fill(k, 1, layer, batch, KV_HEADS * DIM);
    fill(v, 2, layer, batch, KV_HEADS * DIM);
    if (status == GEN_OK) {
      status = gen_forward_attention(batch, layer, q, k, v, kScale, out, said);
      if (status != GEN_OK) toy->seen = status;
    }
    look(toy, batch);
    float* row_logits = logits;
    for (size_t row = 0; row < rows && status == GEN_OK; ++row) {
      if (!batch->wants_logits[row]) continue;
      for (int32_t token = 0; token < VOCAB; ++token) {
        for (int32_t i = 0; i < WIDTH; ++i)
          row_logits[token] += out[row * WIDTH + (size_t)i] * weight(layer, i, token);
      }
      row_logits += VOCAB;
    }
  }
  if (fault == TWO_THREADS) {
    pthread_t other;
    void* failed = NULL;
    void* shared = (void*)(uintptr_t)batch;
    met = 0;
    assert_int_equal(pthread_create(&other, NULL, call_until_met, shared), 0);
    assert_null(call_until_met(shared));
    assert_int_equal(pthread_join(other, &failed), 0);
    assert_null(failed);
  }
  if (fault == TWICE)
    toy->seen = status = gen_forward_attention(batch, 1, q, k, v, kScale, out, said);
  if (fault == NO_LAYER)
    toy->seen = status = gen_forward_attention(batch, LAYERS, q, k, v, kScale, out, said);
  if (fault == NO_NUMBER)
    toy->seen = status = gen_forward_attention(batch, 0, q, k, v, NAN, out, said);
  if (fault == NULLS) {
    assert_int_equal(gen_forward_attention(NULL, 0, q, k, v, 1, out, said), bad);
    assert_int_equal(gen_forward_attention(batch, 0, NULL, k, v, 1, out, said), bad);
    assert_int_equal(gen_forward_attention(batch, 0, q, NULL, v, 1, out, said), bad);
    assert_int_equal(gen_forward_attention(batch, 0, q, k, NULL, 1, out, said), bad);
    assert_int_equal(gen_forward_attention(batch, -1, q, k, v, 1, out, said),
                     GEN_ERROR_OUT_OF_RANGE);
    toy->seen = status = gen_forward_attention(batch, 0, q, k, v, 1, NULL, said);
  }
  free(q);
  free(k);
  free(v);
  free(out);
  return status;
}

/* The logits after n tokens, from the definition. */
static void reference(const int32_t* tokens, int32_t n, double* logits) {
  double scores[CONTEXT];
  for (int32_t token = 0; token < VOCAB; ++token) logits[token] = 0;
  for (int32_t layer = 0; layer < LAYERS; ++layer) {
    for (int32_t head = 0; head < HEADS; ++head) {
      const int32_t from = head / (HEADS / KV_HEADS) * DIM;
      double total = 0;
      for (int32_t e = 0; e < n; ++e) {
        double score = 0;
        for (int32_t i = 0; i < DIM; ++i) {
          score += (double)noise(0, layer, tokens[n - 1], n - 1, head * DIM + i) *
                   noise(1, layer, tokens[e], e, from + i);
        }
        scores[e] = exp(score * (double)kScale);
        total += scores[e];
      }
      for (int32_t i = 0; i < DIM; ++i) {
        double value = 0;
        for (int32_t e = 0; e < n; ++e)
          value += scores[e] / total * noise(2, layer, tokens[e], e, from + i);
        for (int32_t token = 0; token < VOCAB; ++token)
          logits[token] += value * weight(layer, head * DIM + i, token);
      }
    }
  }
}

/* Puts `more` tokens behind n, the most probable each. */
static void reference_goes_on(int32_t* tokens, int32_t n, int32_t more) {
  double logits[VOCAB];
  for (int32_t at = n; at < n + more; ++at) {
    reference(tokens, at, logits);
    tokens[at] = 0;
    for (int32_t token = 1; token < VOCAB; ++token) {
      if (logits[token] > logits[tokens[at]]) tokens[at] = token;
    }
  }
}

static void make_prompt(int32_t* tokens, int32_t n) {
  for (int32_t i = 0; i < n; ++i) tokens[i] = (i * i + 3 * i) % 47;
}

static gen_model_config* make_config(void) {
  gen_model_config* config = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, VOCAB, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, CONTEXT, &error), error);
  assert_ok(gen_model_config_set_num_heads(config, HEADS, &error), error);
  assert_ok(gen_model_config_set_num_kv_heads(config, KV_HEADS, &error), error);
  assert_ok(gen_model_config_set_head_dim(config, DIM, &error), error);
  assert_ok(gen_model_config_set_kv_layers(config, LAYERS, &error), error);
  return config;
}

static gen_model* make_model(struct noise* toy) {
  const gen_forward table = {.struct_size = sizeof table, .user = toy, .forward = forward};
  gen_model_config* config = make_config();
  if (toy->context > 0)
    assert_ok(gen_model_config_set_max_seq_len(config, toy->context, &error), error);
  gen_model* model = NULL;
  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

/* `settings`: keys and values in turn, ended by NULL. */
static gen_generator* make_generator(struct noise* toy, const char* const* settings) {
  gen_model* model = make_model(toy);
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  for (; *settings != NULL; settings += 2)
    assert_ok(gen_options_set(options, settings[0], settings[1], &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  gen_model_free(model);
  return generator;
}

static gen_session* begin(gen_generator* generator, const int32_t* tokens, int32_t n) {
  gen_session* session = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, (size_t)n, &error), error);
  return session;
}

static gen_status say(gen_session* session, int32_t more, int32_t* tokens, float* logprobs) {
  gen_sampling* sampling = greedy(more);
  gen_result* result = NULL;
  size_t n = 0;
  assert_ok(gen_sampling_set_logprobs(sampling, 0, &error), error);
  const gen_status status = gen_session_generate(session, "", 0, sampling, &result, &error);
  const int32_t* said = gen_result_tokens(result, &n);
  for (size_t i = 0; i < n && tokens != NULL; ++i) tokens[i] = said[i];
  const float* found = gen_result_logprobs(result, &n);
  for (size_t i = 0; i < n && logprobs != NULL; ++i) logprobs[i] = found[i];
  gen_result_free(result);
  gen_sampling_free(sampling);
  return status;
}

/* What the session says is what the reference says of all its tokens. */
static void assert_goes_on(gen_session* session, int32_t more) {
  int32_t tokens[CONTEXT];
  int32_t said[CONTEXT];
  size_t n = 0;
  assert_ok(gen_session_tokens(session, tokens, CONTEXT, &n, &error), error);
  assert_ok(say(session, more, said, NULL), error);
  reference_goes_on(tokens, (int32_t)n, more);
  assert_memory_equal(said, tokens + n, (size_t)more * sizeof(int32_t));
}

static void logits_are_those_of_the_definition(void** state) {
  (void)state;
  struct noise toy = {.fault = GOOD};
  gen_model* model = make_model(&toy);
  int32_t tokens[CONTEXT];
  make_prompt(tokens, CONTEXT);
  const struct {
    const char* kind;
    double tolerance;
  } kinds[] = {{"fp32", 2e-5}, {"fp16", 5e-3}, {"fp8", 0.3}, {"q4", 1.0}};
  for (int kind = 0; kind < 4; ++kind) {
    const char* const settings[] = {"kv_dtype", kinds[kind].kind, NULL};
    gen_generator* generator = make_generator(&toy, settings);
    const int32_t lengths[] = {1, 2, 17, 255, 300, 400};
    for (int i = 0; i < 6; ++i) {
      kv_cache* cache = NULL;
      float logits[VOCAB];
      double wanted[VOCAB];
      assert_ok(kv_cache_generator_new(generator, 0, &cache, &error), error);
      assert_int_equal(kv_cache_num_layers(cache), LAYERS);
      assert_ok(gen_model_forward(model, tokens, (size_t)lengths[i], cache, logits, VOCAB, &error),
                error);
      reference(tokens, lengths[i], wanted);
      double worst = 0;
      for (int32_t token = 0; token < VOCAB; ++token)
        worst = fmax(worst, fabs(wanted[token] - (double)logits[token]));
      if (!(worst < kinds[kind].tolerance))
        fail_msg("%s, %d tokens: off by %g", kinds[kind].kind, lengths[i], worst);
      kv_cache_free(cache);
    }
    gen_free(generator);
  }
  gen_model_free(model);
}

static void results_do_not_depend_on_how(void** state) {
  (void)state;
  struct noise toy = {.fault = GOOD};
  int32_t tokens[300];
  make_prompt(tokens, 300);
  for (int kind = 0; kind < 4; ++kind) {
    static const char* const kinds[] = {"fp32", "fp16", "q4", "fp8/q3"};
    static const char* const hows[][2] = {{"prefill_chunk", "256"},
                                          {"prefill_chunk", "3"},
                                          {"paged_kv", "8,16"},
                                          {"paged_kv", "8,5"},
                                          {"tiered_kv", "1"}};
    int32_t said[5][12];
    float logprobs[5][12];
    for (int how = 0; how < 5; ++how) {
      const char* const settings[] = {"kv_dtype", kinds[kind], hows[how][0], hows[how][1], NULL};
      gen_generator* generator = make_generator(&toy, settings);
      gen_session* session = begin(generator, tokens, 300);
      assert_ok(say(session, 12, said[how], logprobs[how]), error);
      assert_memory_equal(said[how], said[0], sizeof said[0]);
      assert_memory_equal(logprobs[how], logprobs[0], sizeof logprobs[0]);
      gen_session_free(session);
      gen_free(generator);
    }
  }
}

static void caches_can_be_read_in_a_step(void** state) {
  (void)state;
  static const char* const hows[][2] = {{"prefill_chunk", "7"},
                                        {"paged_kv", "8,16"},
                                        {"paged_kv", "8,5"},
                                        {"tiered_kv", "1"},
                                        {"compressed_kv", "4"}};
  for (int how = 0; how < 5; ++how) {
    int32_t tokens[60];
    int32_t said[2][12];
    make_prompt(tokens, 60);
    struct noise toy = {.lossy = how == 4};
    const char* const settings[] = {hows[how][0], hows[how][1], NULL};
    gen_generator* generator = make_generator(&toy, settings);
    for (toy.looks = 0; toy.looks < 2; ++toy.looks) {
      gen_session* session = begin(generator, tokens, 51);
      assert_ok(gen_session_append_tokens(session, tokens + 51, 9, &error), error);
      assert_ok(say(session, 12, said[toy.looks], NULL), error);
      gen_session_free(session);
    }
    assert_true(toy.looked >= 3 * 13);
    assert_memory_equal(said[0], said[1], sizeof said[0]); /* looking changes nothing */
    gen_free(generator);
  }
}

static void sessions_are_cut_forked_and_saved(void** state) {
  (void)state;
  static const char* const hows[][2] = {
      {"prefill_chunk", "4"}, {"paged_kv", "8,16"}, {"tiered_kv", "1"}};
  for (int how = 0; how < 3; ++how) {
    struct noise toy = {.fault = GOOD};
    int32_t tokens[40];
    make_prompt(tokens, 40);
    const char* const settings[] = {hows[how][0], hows[how][1], NULL};
    gen_generator* generator = make_generator(&toy, settings);
    gen_session* session = begin(generator, tokens, 40);
    gen_session* fork = NULL;
    assert_goes_on(session, 10);
    assert_ok(gen_session_truncate(session, 33, &error), error);
    assert_goes_on(session, 5);
    assert_ok(gen_session_fork(session, &fork, &error), error);
    assert_ok(gen_session_append_tokens(fork, tokens, 9, &error), error);
    assert_goes_on(fork, 8);
    assert_goes_on(session, 8);
    size_t n = 0;
    assert_ok(gen_session_save_buffer(fork, NULL, 0, &n, &error), error);
    unsigned char* bytes = malloc(n);
    assert_ok(gen_session_save_buffer(fork, bytes, n, &n, &error), error);
    gen_session_free(fork);
    assert_ok(gen_session_new(generator, &fork, &error), error);
    assert_ok(gen_session_load_buffer(fork, bytes, n, &error), error);
    assert_goes_on(fork, 8);
    free(bytes);
    gen_session_free(fork);
    gen_session_free(session);
    gen_free(generator);
  }
}

/* Keys have their old positions in them, so what moves up in a full context is run again. */
static void full_contexts_are_run_again(void** state) {
  (void)state;
  enum { ROOM = 40, KEPT = 4, MORE = 45 };
  struct noise toy = {.context = ROOM};
  int32_t tokens[ROOM];
  int32_t said[MORE];
  double logits[VOCAB];
  const char* const settings[] = {"context_policy", "shift,4", NULL};
  gen_generator* generator = make_generator(&toy, settings);
  int32_t n = 20;
  make_prompt(tokens, n);
  gen_session* session = begin(generator, tokens, n);
  assert_ok(say(session, MORE, said, NULL), error);
  for (int i = 0; i < MORE; ++i) {
    if (n == ROOM) { /* half of what is not kept goes */
      const int32_t gone = (ROOM - KEPT) / 2;
      memmove(tokens + KEPT, tokens + KEPT + gone, (size_t)(n - KEPT - gone) * sizeof *tokens);
      n -= gone;
    }
    reference(tokens, n, logits);
    tokens[n] = 0;
    for (int32_t token = 1; token < VOCAB; ++token) {
      if (logits[token] > logits[tokens[n]]) tokens[n] = token;
    }
    assert_int_equal(said[i], tokens[n]);
    ++n;
  }
  gen_session_free(session);
  gen_free(generator);
}

static void faults_leave_no_trace(void** state) {
  (void)state;
  const struct {
    enum fault fault;
    gen_status status, seen;
    const char* part;
  } cases[] = {
      {LEAVES_OUT, GEN_ERROR_MODEL, GEN_OK, "layer 1 of 2 was given no keys"},
      {TWICE, GEN_ERROR_INVALID_ARGUMENT, GEN_ERROR_INVALID_ARGUMENT, "layer 1 has been run"},
      {NO_LAYER, GEN_ERROR_OUT_OF_RANGE, GEN_ERROR_OUT_OF_RANGE, "layer 2 of 2"},
      {NO_NUMBER, GEN_ERROR_INVALID_ARGUMENT, GEN_ERROR_INVALID_ARGUMENT, "nan"},
      {NULLS, GEN_ERROR_INVALID_ARGUMENT, GEN_ERROR_INVALID_ARGUMENT, "out is NULL"},
      {FAILS_HALFWAY, GEN_ERROR_DEVICE, GEN_OK, "GEN_ERROR_DEVICE"}};
  struct noise toy = {.fault = GOOD};
  int32_t tokens[20];
  make_prompt(tokens, 20);
  const char* const settings[] = {"paged_kv", "8,16", NULL};
  gen_generator* generator = make_generator(&toy, settings);
  for (int i = 0; i < 6; ++i) {
    gen_session* session = begin(generator, tokens, 20);
    toy.seen = GEN_OK;
    toy.fault = cases[i].fault;
    assert_fails(say(session, 4, NULL, NULL), cases[i].status, cases[i].part, error);
    assert_int_equal(toy.seen, cases[i].seen);
    assert_int_equal(gen_session_length(session), 20);
    assert_goes_on(session, 6);
    gen_session_free(session);
  }
  gen_free(generator);
}

/* What a call says of another on the batch, and of a file of tiers that is not as it was. */
static void calls_meet_threads_and_files(void** state) {
  (void)state;
  struct noise toy = {.fault = GOOD};
  int32_t tokens[40];
  make_prompt(tokens, 40);
  const char* const none[] = {NULL};
  gen_generator* generator = make_generator(&toy, none);
  gen_session* session = begin(generator, tokens, 20);
  toy.fault = TWO_THREADS;
  assert_goes_on(session, 3);
  gen_session_free(session);
  gen_free(generator);

  gen_model* model = make_model(&toy);
  gen_options* options = NULL;
  kv_cache_tier_config* config = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  char folder[] = "/tmp/custom-attention-XXXXXX";
  assert_non_null(mkdtemp(folder));
  assert_ok(kv_cache_tier_config_set_cold_dir(config, folder, &error), error);
  assert_ok(kv_cache_tier_config_set_block_size(config, 4, &error), error);
  assert_ok(kv_cache_tier_config_set_hot_blocks(config, 1, &error), error);
  assert_ok(gen_options_set_tiered_kv(options, config, &error), error);
  assert_ok(gen_options_set_prefill_chunk(options, 4, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  const gen_status statuses[] = {GEN_ERROR_IO, GEN_ERROR_FORMAT};
  for (enum damage damage = CUT; damage <= CHANGED; ++damage) {
    session = begin(generator, tokens, 20);
    damage_files(folder, damage);
    toy.seen = GEN_OK;
    assert_fails(gen_session_append_tokens(session, tokens + 20, 1, &error), statuses[damage],
                 folder, error);
    assert_int_equal(toy.seen, statuses[damage]);
    assert_int_equal(gen_session_length(session), 20);
    gen_session_free(session);
  }
  gen_free(generator);
  assert_int_equal(rmdir(folder), 0);
  gen_options_free(options);
  kv_cache_tier_config_free(config);
  gen_model_free(model);
}

static void layers_need_heads(void** state) {
  (void)state;
  struct noise toy = {.fault = GOOD};
  const gen_forward table = {.struct_size = sizeof table, .user = &toy, .forward = forward};
  static const char* const settings[][2] = {
      {"num_heads", "0"}, {"num_kv_heads", "0"}, {"head_dim", "0"}, {"num_kv_heads", "3"}};
  for (int i = 0; i < 4; ++i) {
    gen_model_config* config = make_config();
    gen_model* model = NULL;
    assert_ok(gen_model_config_set(config, settings[i][0], settings[i][1], &error), error);
    assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "heads", error);
    gen_model_config_free(config);
  }
  gen_model_config* config = make_config();
  assert_fails(gen_model_config_set_kv_layers(config, -1, &error), bad, "kv_layers", error);
  assert_fails(gen_model_config_set_kv_layers(config, 65537, &error), bad, "kv_layers", error);
  assert_fails(gen_model_config_set_kv_layers(NULL, 1, &error), bad, "NULL", error);
  assert_fails(gen_model_config_set(config, "kv_layers", "65537", &error), bad, "kv_layers", error);
  /* Without layers there is nothing to attend to. */
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  const int32_t tokens[] = {1, 2};
  assert_ok(gen_model_config_set_kv_layers(config, 0, &error), error);
  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_fails(gen_session_append_tokens(session, tokens, 2, &error), GEN_ERROR_UNSUPPORTED,
               "kv_layers", error);
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
  gen_model_config_free(config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logits_are_those_of_the_definition),
      cmocka_unit_test(results_do_not_depend_on_how),
      cmocka_unit_test(caches_can_be_read_in_a_step),
      cmocka_unit_test(sessions_are_cut_forked_and_saved),
      cmocka_unit_test(faults_leave_no_trace),
      cmocka_unit_test(full_contexts_are_run_again),
      cmocka_unit_test(calls_meet_threads_and_files),
      cmocka_unit_test(layers_need_heads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

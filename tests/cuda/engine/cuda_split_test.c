/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose last layers run on a device and whose first ones run on the CPU, the emulator in the
 * place of a device: however many there are, a text has the same log-probabilities, to the bit;
 * sessions with every kind of cache go from one split to another, with forks, prefixes and drafts;
 * and a device that has too little memory takes as many layers as it has memory for, or none. */
#include "api_test.h"

enum { LAYERS = 4, TOKENS = 2, MOST = 9 };

/* Device memory of which there are `most` bytes, and none at call `fails_at`. */
struct scarce {
  gen_gpu_allocator* behind;
  size_t most, live, peak, calls, fails_at;
  struct {
    void* at;
    size_t bytes;
  } pieces[4096];
};

static gen_status take(void* user, size_t bytes, void** out) {
  struct scarce* s = user;
  if (s->calls++ == s->fails_at || bytes > s->most - s->live) return GEN_ERROR_OUT_OF_MEMORY;
  const gen_status status = s->behind->allocate(s->behind->user, bytes, out);
  if (status != GEN_OK) return status;
  for (size_t i = 0;; ++i) {
    assert_true(i < sizeof s->pieces / sizeof s->pieces[0]);
    if (s->pieces[i].at != NULL) continue;
    s->pieces[i].at = *out;
    s->pieces[i].bytes = bytes;
    break;
  }
  s->live += bytes;
  if (s->live > s->peak) s->peak = s->live;
  return GEN_OK;
}
static gen_status give_back(void* user, void* ptr) {
  struct scarce* s = user;
  for (size_t i = 0; i < sizeof s->pieces / sizeof s->pieces[0]; ++i) {
    if (s->pieces[i].at != ptr) continue;
    s->live -= s->pieces[i].bytes;
    s->pieces[i].at = NULL;
    break;
  }
  return s->behind->release(s->behind->user, ptr);
}
static gen_status copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
  struct scarce* s = user;
  return s->behind->copy(s->behind->user, to, from, bytes, kind);
}

static struct scarce scarce;

static gen_gpu_allocator begin_scarce(size_t most) {
  memset(&scarce, 0, sizeof scarce);
  assert_ok(gen_gpu_allocator_cuda(0, &scarce.behind, &error), error);
  scarce.most = most;
  scarce.fails_at = SIZE_MAX;
  const gen_gpu_allocator table = {.struct_size = sizeof table,
                                   .user = &scarce,
                                   .allocate = take,
                                   .release = give_back,
                                   .copy = copy,
                                   .device = 0};
  return table;
}
static void end_scarce(void) {
  assert_int_equal(scarce.live, 0);
  gen_gpu_allocator_release(scarce.behind);
}

static gen_status load(const char* backend, int32_t layers, const gen_gpu_allocator* allocator,
                       gen_model** out) {
  gen_model_options* options = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set_backend(options, backend, &error), error);
  assert_ok(gen_model_options_set_gpu_layers(options, layers, &error), error);
  assert_ok(gen_model_options_set_threads(options, 1, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(options, 64, &error), error);
  assert_ok(gen_model_options_set_gpu_allocator(options, allocator, &error), error);
  const gen_status status = gen_model_load(DRAFT_MODEL, options, out, &error);
  gen_model_options_free(options);
  return status;
}

static int32_t layers_of(const gen_model* model) {
  char text[2048];
  size_t n = 0;
  assert_ok(gen_model_describe(model, text, sizeof text, &n, &error), error);
  const char* at = strstr(text, "\"gpu_layers\":");
  assert_non_null(at);
  return atoi(at + strlen("\"gpu_layers\":"));
}

/* Log-probabilities of a text's tokens. */
static gen_status score(gen_model* model, float* out) {
  static const char text[] = "Once upon a time";
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  gen_status status = gen_create(model, NULL, &generator, &error);
  if (status == GEN_OK) status = gen_session_new(generator, &session, &error);
  size_t n = 0;
  memset(out, 0, MOST * sizeof *out);
  if (status == GEN_OK) {
    status = gen_session_score(session, text, sizeof text - 1, out, MOST, &n, &error);
  }
  if (status == GEN_OK) assert_true(n > 3 && n <= MOST);
  gen_session_free(session);
  gen_free(generator);
  return status;
}

static void every_split_scores_alike(void** state) {
  (void)state;
  float want[MOST];
  float got[MOST];
  gen_model* model = NULL;
  assert_ok(load("cpu", GEN_GPU_LAYERS_ALL, NULL, &model), error);
  assert_int_equal(layers_of(model), 0);
  assert_ok(score(model, want), error);
  gen_model_free(model);
  const int32_t layers[] = {0, 1, 3, 100, GEN_GPU_LAYERS_ALL};
  for (size_t i = 0; i < sizeof layers / sizeof layers[0]; ++i) {
    const gen_gpu_allocator memory = begin_scarce(SIZE_MAX);
    assert_ok(load("cuda", layers[i], &memory, &model), error);
    const int32_t on_device = layers[i] >= 0 && layers[i] < LAYERS ? layers[i] : LAYERS;
    assert_int_equal(layers_of(model), on_device);
    assert_ok(score(model, got), error);
    assert_memory_equal(got, want, sizeof want);
    assert_true((scarce.peak > 0) == (on_device > 0));
    gen_model_free(model);
    end_scarce();
  }
}

static kv_cache* cache_of_kind(int kind) {
  kv_cache* made = NULL;
  switch (kind) {
    case 0:
      assert_ok(kv_cache_new(LAYERS, 16, &made, &error), error);
      break;
    case 1:
      assert_ok(kv_cache_q4_new(LAYERS, 16, &made, &error), error);
      break;
    case 2:
      assert_ok(kv_cache_tensor_new(NULL, LAYERS, 16, "fp16", &made, &error), error);
      break;
    default:
      assert_ok(kv_cache_compressed_new(LAYERS, 0, 0, 8, &made, &error), error);
      break;
  }
  return made;
}

/* Logits after three tokens, one more, and another one in its place in a copy. */
static void walk(const gen_model* model, kv_cache* cache, float* logits, size_t vocab) {
  const int32_t tokens[] = {1, 50, 7, 300, 20};
  kv_cache* copied = NULL;
  assert_ok(gen_model_forward(model, tokens, 3, cache, logits, vocab, &error), error);
  assert_ok(gen_model_forward(model, tokens + 3, 1, cache, logits + vocab, vocab, &error), error);
  assert_ok(kv_cache_clone(cache, &copied, &error), error);
  assert_ok(kv_cache_truncate(copied, 3, &error), error);
  assert_ok(gen_model_forward(model, tokens + 4, 1, copied, logits + 2 * vocab, vocab, &error),
            error);
  assert_int_equal(kv_cache_seq_len(copied), 4);
  kv_cache_free(copied);
}

/* Caches that know no model get their shape, and their memory, where the first one computes. */
static void caches_go_where_the_model_computes(void** state) {
  (void)state;
  gen_model* cpu = NULL;
  assert_ok(load("cpu", GEN_GPU_LAYERS_ALL, NULL, &cpu), error);
  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(cpu));
  float* want = calloc(3 * vocab, sizeof *want);
  float* got = calloc(3 * vocab, sizeof *got);
  for (int kind = 0; kind < 4; ++kind) {
    kv_cache* cache = cache_of_kind(kind);
    walk(cpu, cache, want, vocab);
    kv_cache_free(cache);
    for (int split = 0; split < 2; ++split) {
      const gen_gpu_allocator memory = begin_scarce(SIZE_MAX);
      gen_model* model = NULL;
      assert_ok(load("cuda", split ? 2 : GEN_GPU_LAYERS_ALL, &memory, &model), error);
      cache = cache_of_kind(kind);
      if (split && kind == 3) {
        assert_fails(gen_model_forward(model, (int32_t[]){1}, 1, cache, got, vocab, &error),
                     GEN_ERROR_UNSUPPORTED, "split", error);
      } else {
        /* One that has failed has no shape yet. */
        scarce.fails_at = scarce.calls;
        assert_fails(gen_model_forward(model, (int32_t[]){1}, 1, cache, got, vocab, &error),
                     GEN_ERROR_OUT_OF_MEMORY, "bytes", error);
        scarce.fails_at = SIZE_MAX;
        assert_int_equal(kv_cache_seq_len(cache), 0);
        walk(model, cache, got, vocab);
        assert_memory_equal(got, want, 3 * vocab * sizeof *got);
      }
      gen_model_free(model); /* goes with the cache */
      kv_cache_free(cache);
      end_scarce();
    }
  }
  free(want);
  free(got);
  gen_model_free(cpu);
}

static gen_generator* generator_of(gen_model* model, const char* key, const char* value) {
  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  if (strcmp(key, "prefix_cache") == 0) {
    assert_ok(gen_options_set(options, "paged_kv", "1,4", &error), error);
  }
  assert_ok(gen_options_set(options, key, value, &error), error);
  gen_generator* made = NULL;
  assert_ok(gen_create(model, options, &made, &error), error);
  gen_options_free(options);
  return made;
}

/* Greedy; the ids go to `said`. */
static void go_on(gen_session* session, const char* prompt, int32_t* said) {
  gen_sampling* sampling = greedy(TOKENS);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(session, prompt, strlen(prompt), sampling, &result, &error),
            error);
  size_t n = 0;
  const int32_t* ids = gen_result_tokens(result, &n);
  assert_int_equal(n, TOKENS);
  memcpy(said, ids, n * sizeof *ids);
  gen_result_free(result);
  gen_sampling_free(sampling);
}

/* What is said before, after a fork, by the fork, and after going back. */
struct talk {
  int32_t said[5][TOKENS];
};

static void talk(gen_generator* generator, gen_session* session, struct talk* out) {
  gen_session* fork = NULL;
  assert_ok(gen_session_fork(session, &fork, &error), error);
  go_on(session, " The dog", out->said[0]);
  go_on(fork, " A bird", out->said[1]);
  assert_ok(gen_session_truncate(session, 6, &error), error);
  go_on(session, " and a cat", out->said[2]);
  gen_session_free(fork);
  gen_session* like = NULL; /* begins as the one before it */
  assert_ok(gen_session_new(generator, &like, &error), error);
  go_on(like, "Once upon a time there was", out->said[3]);
  gen_session_free(like);
  assert_ok(gen_session_new(generator, &like, &error), error);
  go_on(like, "Once upon a time there was", out->said[4]);
  gen_session_free(like);
}

static void sessions_go_from_one_split_to_another(void** state) {
  (void)state;
  enum { SPLITS = 3 };
  const int32_t layers[SPLITS] = {0, 2, LAYERS};
  gen_model* models[SPLITS];
  for (int i = 0; i < SPLITS; ++i) {
    assert_ok(load(i == 0 ? "cpu" : "cuda", layers[i], NULL, &models[i]), error);
  }
  const char* const kinds[][2] = {
      {"prefix_cache", "8"}, {"kv_dtype", "q4"}, {"tiered_kv", "1"}, {"self_draft", "1"}};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
    gen_generator* generators[SPLITS];
    void* saved = NULL;
    size_t size = 0;
    struct talk want;
    const int splits = k == 0 ? SPLITS : 2; /* the emulator takes its time */
    for (int i = 0; i < splits; ++i) {
      generators[i] = generator_of(models[i], kinds[k][0], kinds[k][1]);
      gen_session* session = NULL;
      assert_ok(gen_session_new(generators[i], &session, &error), error);
      int32_t said[TOKENS];
      go_on(session, "Once upon a time", said);
      size_t n = 0;
      assert_ok(gen_session_save_buffer(session, NULL, 0, &n, &error), error);
      void* bytes = malloc(n);
      assert_ok(gen_session_save_buffer(session, bytes, n, &n, &error), error);
      if (i == 0) {
        saved = bytes;
        size = n;
      } else {
        assert_int_equal(n, size);
        assert_memory_equal(bytes, saved, n);
        free(bytes);
        /* Goes on from what the CPU has saved. */
        gen_session_free(session);
        assert_ok(gen_session_new(generators[i], &session, &error), error);
        assert_ok(gen_session_load_buffer(session, saved, size, &error), error);
      }
      struct talk got;
      talk(generators[i], session, i == 0 ? &want : &got);
      if (i > 0) assert_memory_equal(&got, &want, sizeof want);
      gen_session_free(session);
      if (strcmp(kinds[k][0], "prefix_cache") == 0) {
        int64_t hits = 0;
        assert_ok(gen_generator_prefix_stats(generators[i], "hits", &hits, &error), error);
        assert_true(hits > 0);
      }
    }
    for (int i = 0; i < splits; ++i) gen_free(generators[i]);
    free(saved);
  }
  for (int i = 0; i < SPLITS; ++i) gen_model_free(models[i]);
}

static void as_many_layers_as_fit(void** state) {
  (void)state;
  float want[MOST];
  float got[MOST];
  gen_model* model = NULL;
  gen_gpu_allocator memory = begin_scarce(SIZE_MAX);
  assert_ok(load("cuda", GEN_GPU_LAYERS_AUTO, &memory, &model), error);
  assert_int_equal(layers_of(model), LAYERS);
  assert_ok(score(model, want), error);
  gen_model_free(model);
  const size_t enough = scarce.peak;
  end_scarce();
  int32_t last = LAYERS;
  size_t kinds = 1;
  for (int eighths = 7; eighths >= 0; --eighths) {
    memory = begin_scarce(enough / 8 * (size_t)eighths);
    assert_ok(load("cuda", GEN_GPU_LAYERS_AUTO, &memory, &model), error);
    const int32_t layers = layers_of(model);
    assert_true(layers <= last);
    kinds += layers != last;
    last = layers;
    assert_ok(score(model, got), error); /* there is room for it */
    assert_memory_equal(got, want, sizeof want);
    gen_model_free(model);
    end_scarce();
  }
  /* "all" takes what the weights alone need, and no less. */
  memory = begin_scarce(enough / 8);
  assert_fails(load("cuda", GEN_GPU_LAYERS_ALL, &memory, &model), GEN_ERROR_OUT_OF_MEMORY, "bytes",
               error);
  assert_null(model);
  assert_int_equal(scarce.live, 0);
  end_scarce();
  assert_int_equal(last, 0);
  assert_true(kinds > 2); /* some of the layers, too */
}

static void lack_of_memory_at_any_call(void** state) {
  (void)state;
  gen_gpu_allocator memory = begin_scarce(SIZE_MAX);
  gen_model* model = NULL;
  float want[MOST];
  float got[MOST];
  assert_ok(load("cuda", 2, &memory, &model), error);
  const size_t of_load = scarce.calls;
  assert_ok(score(model, want), error);
  const size_t of_both = scarce.calls;
  for (size_t at = 0; at < of_both - of_load; ++at) {
    scarce.fails_at = scarce.calls + at;
    const gen_status status = score(model, got);
    scarce.fails_at = SIZE_MAX;
    if (status == GEN_OK) break; /* what was kept needs fewer */
    assert_int_equal(status, GEN_ERROR_OUT_OF_MEMORY);
  }
  assert_ok(score(model, got), error);
  assert_memory_equal(got, want, sizeof want);
  gen_model_free(model);
  for (size_t at = 0; at < of_load; ++at) {
    scarce.calls = 0;
    scarce.fails_at = at;
    assert_fails(load("cuda", 2, &memory, &model), GEN_ERROR_OUT_OF_MEMORY, "bytes", error);
    assert_null(model);
    assert_int_equal(scarce.live, 0);
  }
  /* A search for what fits ends with a model, whichever call has nothing. */
  for (size_t at = 0; at < 12; ++at) {
    scarce.calls = 0;
    scarce.fails_at = at;
    assert_ok(load("cuda", GEN_GPU_LAYERS_AUTO, &memory, &model), error);
    gen_model_free(model);
  }
  scarce.fails_at = SIZE_MAX;
  end_scarce();
}

static void what_cannot_be_is_refused(void** state) {
  (void)state;
  const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
  gen_model* model = NULL;
  assert_fails(load("cpu", 1, NULL, &model), bad, "gpu_layers is 1", error);
  assert_ok(load("cpu", GEN_GPU_LAYERS_AUTO, NULL, &model), error);
  gen_model_free(model);
  assert_ok(load("cuda", 1, NULL, &model), error);
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set(options, "compressed_kv", "4", &error), error);
  assert_fails(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED, "compressed",
               error);
  gen_options_free(options);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_split_scores_alike),
      cmocka_unit_test(caches_go_where_the_model_computes),
      cmocka_unit_test(sessions_go_from_one_split_to_another),
      cmocka_unit_test(as_many_layers_as_fit),
      cmocka_unit_test(lack_of_memory_at_any_call),
      cmocka_unit_test(what_cannot_be_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

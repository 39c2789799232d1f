/* SPDX-License-Identifier: Apache-2.0 */
/* Saving, loading and forking of session.h and kv_cache.h: another process goes on with the same
 * tokens, every documented error, and that a failed call changes nothing. */
#include "api_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char* program;
static char folder[] = "/tmp/state_test_XXXXXX";
static gen_model* model;

static const char* at(const char* name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* A kv_dtype, or "pooled" for chunks of 8, and a paged_kv. */
static gen_generator* make_generator(const char* kind, const char* paged) {
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  if (strcmp(kind, "pooled") == 0) {
    assert_ok(gen_options_set(options, "compressed_kv", "8", &error), error);
  } else {
    assert_ok(gen_options_set(options, "kv_dtype", kind, &error), error);
  }
  assert_ok(gen_options_set(options, "paged_kv", paged, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  return generator;
}

static gen_session* open_session(const char* kind, const char* paged) {
  gen_generator* generator = make_generator(kind, paged);
  gen_session* session = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  gen_free(generator);
  return session;
}

/* What comes next, 24 tokens of it, as one line of ids; drawn, so that near ties show. */
static void say(gen_session* session, const char* prompt, char* line, size_t capacity) {
  gen_sampling* sampling = NULL;
  gen_result* result = NULL;
  assert_ok(gen_sampling_new(&sampling, &error), error);
  assert_ok(gen_sampling_set_max_new_tokens(sampling, 24, &error), error);
  assert_ok(gen_sampling_set_seed(sampling, 5, &error), error);
  assert_ok(gen_session_generate(session, prompt, GEN_NUL_TERMINATED, sampling, &result, &error),
            error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  int32_t ids[512];
  size_t n = 0;
  assert_ok(gen_session_tokens(session, ids, 512, &n, &error), error);
  size_t used = 0;
  line[0] = '\0';
  for (size_t i = 0; i < n; ++i) {
    used += (size_t)snprintf(line + used, capacity - used, "%d ", (int)ids[i]);
    assert_true(used < capacity);
  }
}

/* The other process: loads a file and goes on. */
static int go_on(const char* kind, const char* paged, const char* path) {
  char line[4096];
  gen_session* session = open_session(kind, paged);
  assert_ok(gen_session_load(session, path, &error), error);
  say(session, "", line, sizeof line);
  puts(line);
  gen_session_free(session);
  return 0;
}

static void another_process_goes_on(void** state) {
  (void)state;
  static const char* const cases[][3] = {
      {"fp32", "0", "0"},  {"fp16", "0", "16"},     {"fp8", "0", "0"},     {"q4", "0", "0"},
      {"q3", "16,5", "0"}, {"fp32", "16", "16,32"}, {"q4/fp8", "0", "16"}, {"pooled", "0", "0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const char* const* c = cases[i];
    gen_session* session = open_session(c[0], c[1]);
    char line[4096];
    say(session, "Once upon a time", line, sizeof line);
    assert_ok(gen_session_save(session, at("session"), &error), error);
    say(session, "", line, sizeof line);
    char command[512];
    snprintf(command, sizeof command, "'%s' %s %s '%s'", program, c[0], c[2], at("session"));
    FILE* other = popen(command, "r");
    assert_non_null(other);
    char said[4096] = "";
    char* read = fgets(said, sizeof said, other);
    assert_int_equal(pclose(other), 0);
    assert_non_null(read);
    said[strcspn(said, "\n")] = '\0';
    assert_string_equal(said, line);
    gen_session_free(session);
  }
}

static void sessions_to_memory(void** state) {
  (void)state;
  gen_session* session = open_session("fp16", "0");
  char line[4096];
  char other_line[4096];
  say(session, "The fox", line, sizeof line);
  size_t n = 0;
  assert_ok(gen_session_save_buffer(session, NULL, 0, &n, &error), error);
  unsigned char* bytes = malloc(n);
  memset(bytes, 0x5A, n);
  size_t needed = 0;
  assert_fails(gen_session_save_buffer(session, bytes, n - 1, &needed, &error),
               GEN_ERROR_OUT_OF_RANGE, "does not fit", error);
  assert_int_equal(needed, n);
  for (size_t i = 0; i < n; ++i) assert_int_equal(bytes[i], 0x5A);
  assert_ok(gen_session_save_buffer(session, bytes, n, &needed, &error), error);
  assert_int_equal(needed, n);
  gen_session* other = open_session("fp16", "16");
  assert_fails(gen_session_load_buffer(other, bytes, n - 1, &error), GEN_ERROR_FORMAT, "of which",
               error);
  bytes[n / 2] ^= 1;
  assert_fails(gen_session_load_buffer(other, bytes, n, &error), GEN_ERROR_FORMAT, "checksum",
               error);
  bytes[n / 2] ^= 1;
  assert_int_equal(gen_session_length(other), 0);
  assert_ok(gen_session_load_buffer(other, bytes, n, &error), error);
  assert_int_equal(gen_session_length(other), gen_session_length(session));
  assert_fails(gen_session_load_buffer(other, bytes, n, &error), GEN_ERROR_STATE, "empty one",
               error);
  say(session, "", line, sizeof line);
  say(other, "", other_line, sizeof other_line);
  assert_string_equal(line, other_line);
  free(bytes);
  gen_session_free(other);
  gen_session_free(session);
}

static void sessions_refuse(void** state) {
  (void)state;
  gen_session* session = open_session("fp32", "0");
  char line[4096];
  size_t n = 7;
  say(session, "The fox", line, sizeof line);
  assert_fails(gen_session_save(NULL, "x", &error), bad, "session is NULL", error);
  assert_fails(gen_session_save(session, NULL, &error), bad, "path is NULL", error);
  assert_fails(gen_session_save(session, at("no/where"), &error), GEN_ERROR_IO, "no/where", error);
  assert_fails(gen_session_save_buffer(NULL, NULL, 0, &n, &error), bad, "session is NULL", error);
  assert_int_equal(n, 0);
  assert_fails(gen_session_save_buffer(session, NULL, 0, NULL, &error), bad, "n is NULL", error);
  gen_session* other = open_session("fp32", "0");
  assert_fails(gen_session_load(NULL, "x", &error), bad, "session is NULL", error);
  assert_fails(gen_session_load(other, NULL, &error), bad, "path is NULL", error);
  assert_fails(gen_session_load(other, at("nothing"), &error), GEN_ERROR_IO, "nothing", error);
  assert_fails(gen_session_load(other, DRAFT_MODEL, &error), GEN_ERROR_FORMAT, "draft.gguf", error);
  assert_fails(gen_session_load_buffer(NULL, "x", 1, &error), bad, "session is NULL", error);
  assert_fails(gen_session_load_buffer(other, NULL, 1, &error), bad, "data is NULL", error);
  assert_fails(gen_session_load_buffer(other, "GENSTATE", 8, &error), GEN_ERROR_FORMAT, "header",
               error);
  assert_fails(gen_session_load_buffer(other, "", 0, &error), GEN_ERROR_FORMAT, "not a saved",
               error);
  /* Another kind of cache, and a cache in place of a session. */
  assert_ok(gen_session_save(session, at("one"), &error), error);
  gen_session* q4 = open_session("q4", "0");
  assert_fails(gen_session_load(q4, at("one"), &error), bad, "key format", error);
  assert_ok(kv_cache_save(gen_session_cache(session), at("two"), &error), error);
  assert_fails(gen_session_load(other, at("two"), &error), bad, "a cache's", error);
  /* A context too short for it. */
  gen_model_options* short_options = NULL;
  gen_model* short_model = NULL;
  gen_generator* short_generator = NULL;
  gen_session* short_session = NULL;
  size_t size = 0;
  assert_ok(gen_model_options_new(&short_options, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(short_options, 4, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, short_options, &short_model, &error), error);
  assert_ok(gen_create(short_model, NULL, &short_generator, &error), error);
  assert_ok(gen_session_new(short_generator, &short_session, &error), error);
  unsigned char* bytes = read_file(at("one"), &size);
  assert_fails(gen_session_load(short_session, at("one"), &error), GEN_ERROR_CONTEXT_FULL,
               "context of 4", error);
  assert_fails(gen_session_load_buffer(short_session, bytes, size, &error), GEN_ERROR_CONTEXT_FULL,
               "context of 4", error);
  float logprobs[64];
  size_t n_scored = 0;
  assert_fails(
      gen_session_score(short_session, "The fox and the crow", 20, logprobs, 64, &n_scored, &error),
      GEN_ERROR_CONTEXT_FULL, "the context only 4", error);
  assert_int_equal(gen_session_length(short_session), 0);
  free(bytes);
  gen_session_free(short_session);
  gen_free(short_generator);
  gen_model_free(short_model);
  gen_model_options_free(short_options);
  /* A pool that many sessions fill. */
  gen_generator* generator = make_generator("fp32", "1,16");
  gen_session* many[256];
  for (int i = 0; i < 256; ++i) { /* the idle lose their blocks */
    assert_ok(gen_session_new(generator, &many[i], &error), error);
    assert_ok(gen_session_load(many[i], at("one"), &error), error);
    assert_int_equal(gen_session_length(many[i]), gen_session_length(session));
  }
  assert_int_equal(kv_cache_seq_len(gen_session_cache(many[0])), 0);
  assert_true(kv_cache_seq_len(gen_session_cache(many[255])) > 0);
  for (int i = 0; i < 256; ++i) gen_session_free(many[i]);
  /* Caches of the caller do not. */
  kv_cache* caches[256] = {NULL};
  float* logits =
      malloc(sizeof *logits * (size_t)gen_model_config_vocab_size(gen_model_get_config(model)));
  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(model));
  const int32_t token = 300;
  int count = 0;
  gen_status status = GEN_OK;
  while (status == GEN_OK && count < 256) {
    assert_ok(kv_cache_generator_new(generator, 64, &caches[count], &error), error);
    status = gen_model_forward(model, &token, 1, caches[count++], logits, vocab, &error);
  }
  assert_int_equal(status, GEN_ERROR_POOL_EXHAUSTED);
  gen_session* last = NULL;
  assert_ok(gen_session_new(generator, &last, &error), error);
  assert_fails(gen_session_load(last, at("one"), &error), GEN_ERROR_POOL_EXHAUSTED, "blocks free",
               error);
  assert_int_equal(gen_session_length(last), 0);
  while (count-- > 0) kv_cache_free(caches[count]);
  assert_ok(gen_session_load(last, at("one"), &error), error);
  gen_session_free(last);
  free(logits);
  gen_free(generator);
  gen_session_free(q4);
  gen_session_free(other);
  gen_session_free(session);
}

static void forks(void** state) {
  (void)state;
  gen_session* out = (gen_session*)&error;
  assert_fails(gen_session_fork(NULL, &out, &error), bad, "session is NULL", error);
  assert_null(out);
  static const char* const paged[] = {"0", "16"};
  for (int i = 0; i < 2; ++i) {
    gen_session* session = open_session("fp16", paged[i]);
    assert_fails(gen_session_fork(session, NULL, &error), bad, "out is NULL", error);
    char first[4096];
    char second[4096];
    say(session, "The fox", first, sizeof first);
    assert_ok(gen_session_fork(session, &out, &error), error);
    say(session, "", first, sizeof first);
    say(out, "", second, sizeof second);
    assert_string_equal(first, second);
    assert_int_equal(kv_cache_seq_len(gen_session_cache(out)),
                     kv_cache_seq_len(gen_session_cache(session)));
    gen_session_free(session);
    say(out, " so", second, sizeof second);
    gen_session_free(out);
  }
}

typedef gen_status (*maker)(int32_t, int32_t, kv_cache**, gen_error*);

static kv_cache* make_cache(maker function) {
  kv_cache* cache = NULL;
  assert_ok(function(2, 64, &cache, &error), error);
  return cache;
}

static gen_status compressed(int32_t layers, int32_t max, kv_cache** out, gen_error* err) {
  (void)max;
  return kv_cache_compressed_new(layers, 0, 0, 4, out, err);
}

static gen_status paged(int32_t layers, int32_t max, kv_cache** out, gen_error* err) {
  (void)max;
  kv_cache_pool* pool = NULL;
  gen_status status = kv_cache_pool_new(layers, 5, 48, 1, "fp32", &pool, err);
  if (status != GEN_OK) return status;
  status = kv_cache_paged_new(pool, layers, out, err);
  kv_cache_pool_free(pool);
  return status;
}

static void fill(kv_cache* cache, int32_t layer, int32_t seq) {
  float x[48 * 64];
  for (int i = 0; i < 48 * seq; ++i) x[i] = (float)((i * 37 + layer * 11) % 101) / 7.0f - 6.0f;
  assert_ok(kv_cache_update(cache, layer, x, x, 2, seq, 24, &error), error);
}

static void assert_same(const kv_cache* a, const kv_cache* b) {
  assert_int_equal(kv_cache_seq_len(a), kv_cache_seq_len(b));
  for (int32_t layer = 0; layer < 2; ++layer) {
    assert_int_equal(kv_cache_layer_seq_len(a, layer), kv_cache_layer_seq_len(b, layer));
    float x[2][48 * 64];
    float y[2][48 * 64];
    int32_t shape[3];
    int32_t other[3];
    assert_ok(kv_cache_get(a, layer, x[0], 48 * 64, x[1], 48 * 64, shape, NULL, &error), error);
    assert_ok(kv_cache_get(b, layer, y[0], 48 * 64, y[1], 48 * 64, other, NULL, &error), error);
    assert_memory_equal(shape, other, sizeof shape);
    const size_t bytes = sizeof(float) * (size_t)(shape[0] * shape[1] * shape[2]);
    assert_memory_equal(x[0], y[0], bytes);
    assert_memory_equal(x[1], y[1], bytes);
  }
}

static void caches_of_tensors(void** state) {
  (void)state;
  static const maker makers[] = {kv_cache_new,
                                 kv_cache_fp16_new,
                                 kv_cache_fp8_new,
                                 kv_cache_q4_new,
                                 kv_cache_q3_new,
                                 compressed,
                                 paged};
  const size_t n_makers = sizeof makers / sizeof *makers;
  for (size_t i = 0; i < n_makers; ++i) {
    kv_cache* cache = make_cache(makers[i]);
    fill(cache, 0, 13);
    fill(cache, 1, 9);
    assert_ok(kv_cache_save(cache, at("cache"), &error), error);
    for (size_t j = 0; j < n_makers; ++j) {
      kv_cache* other = make_cache(makers[j]);
      const int alike = i == j || (makers[i] == paged && makers[j] == kv_cache_new) ||
                        (makers[i] == kv_cache_new && makers[j] == paged);
      if (alike) {
        assert_ok(kv_cache_load(other, at("cache"), &error), error);
        assert_same(cache, other);
        fill(other, 1, 4);
        assert_fails(kv_cache_load(other, at("cache"), &error), GEN_ERROR_STATE, "empty one",
                     error);
      } else {
        assert_fails(kv_cache_load(other, at("cache"), &error), bad, "of form", error);
        assert_int_equal(kv_cache_layer_seq_len(other, 0), 0);
      }
      kv_cache_free(other);
    }
    fill(cache, 1, 4);
    /* A tracing cache passes its state on, and so do a longer and a shorter one. */
    gen_tracer* tracer = NULL;
    kv_cache* inner = make_cache(makers[i]);
    kv_cache* tracing = NULL;
    assert_ok(gen_tracer_new(&tracer, &error), error);
    assert_ok(kv_cache_tracing_new(inner, tracer, &tracing, &error), error);
    assert_ok(kv_cache_save(cache, at("cache"), &error), error);
    assert_ok(kv_cache_load(tracing, at("cache"), &error), error);
    assert_same(cache, tracing);
    assert_same(cache, inner);
    assert_int_equal(kv_cache_seq_len(inner), 13);
    kv_cache_free(tracing);
    kv_cache_free(inner);
    gen_tracer_free(tracer);
    kv_cache_free(cache);
  }
  kv_cache* cache = make_cache(kv_cache_new);
  kv_cache* small = NULL;
  fill(cache, 0, 13);
  assert_ok(kv_cache_save(cache, at("cache"), &error), error);
  assert_ok(kv_cache_new(2, 12, &small, &error), error);
  assert_fails(kv_cache_load(small, at("cache"), &error), GEN_ERROR_CACHE_FULL, "13 positions",
               error);
  kv_cache_free(small);
  assert_ok(kv_cache_new(3, 64, &small, &error), error);
  assert_fails(kv_cache_load(small, at("cache"), &error), bad, "2 layers", error);
  kv_cache_free(small);
  kv_cache_free(cache);
}

static void caches_refuse(void** state) {
  (void)state;
  kv_cache* cache = make_cache(kv_cache_new);
  size_t n = 9;
  assert_fails(kv_cache_save(NULL, "x", &error), bad, "cache is NULL", error);
  assert_fails(kv_cache_save(cache, NULL, &error), bad, "path is NULL", error);
  assert_fails(kv_cache_save(cache, at("x"), &error), GEN_ERROR_STATE, "not been written", error);
  fill(cache, 0, 1);
  assert_fails(kv_cache_save(cache, at("no/where"), &error), GEN_ERROR_IO, "no/where", error);
  kv_cache_free(cache);
  cache = make_cache(kv_cache_new);
  assert_fails(kv_cache_save_buffer(NULL, NULL, 0, &n, &error), bad, "cache is NULL", error);
  assert_int_equal(n, 0);
  assert_fails(kv_cache_save_buffer(cache, NULL, 0, NULL, &error), bad, "n is NULL", error);
  assert_fails(kv_cache_load(NULL, "x", &error), bad, "cache is NULL", error);
  assert_fails(kv_cache_load(cache, NULL, &error), bad, "path is NULL", error);
  assert_fails(kv_cache_load(cache, at("nothing"), &error), GEN_ERROR_IO, "nothing", error);
  assert_fails(kv_cache_load_buffer(NULL, "x", 1, &error), bad, "cache is NULL", error);
  assert_fails(kv_cache_load_buffer(cache, NULL, 1, &error), bad, "data is NULL", error);
  assert_fails(kv_cache_load_buffer(cache, "GENSTATE", 8, &error), GEN_ERROR_FORMAT, "header",
               error);
  gen_session* session = open_session("fp32", "0");
  assert_ok(gen_session_append(session, "The fox", 7, &error), error);
  const kv_cache* lent = gen_session_cache(session);
  assert_ok(gen_session_save(session, at("session"), &error), error);
  assert_fails(kv_cache_load(cache, at("session"), &error), bad, "gen_session_load", error);
  assert_fails(kv_cache_load((kv_cache*)lent, at("session"), &error), GEN_ERROR_STATE, "read-only",
               error);
  gen_session_free(session);
  kv_cache_free(cache);
}

/* A cache that a model wrote. */
static void caches_of_models(void** state) {
  (void)state;
  static const maker makers[] = {kv_cache_new, kv_cache_fp16_new, kv_cache_fp8_new, kv_cache_q4_new,
                                 kv_cache_q3_new};
  const gen_model_config* config = gen_model_get_config(model);
  const int32_t layers = gen_model_config_num_layers(config);
  const size_t vocab = (size_t)gen_model_config_vocab_size(config);
  const int32_t tokens[] = {1, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56};
  float* logits = malloc(2 * vocab * sizeof(float));
  for (size_t i = 0; i < sizeof makers / sizeof *makers; ++i) {
    kv_cache* cache = NULL;
    kv_cache* other = NULL;
    assert_ok(makers[i](layers, 64, &cache, &error), error);
    assert_ok(makers[i](layers, 48, &other, &error), error);
    assert_ok(gen_model_forward(model, tokens, 18, cache, logits, vocab, &error), error);
    size_t n = 0;
    assert_ok(kv_cache_save_buffer(cache, NULL, 0, &n, &error), error);
    void* bytes = malloc(n);
    assert_ok(kv_cache_save_buffer(cache, bytes, n, &n, &error), error);
    assert_ok(kv_cache_load_buffer(other, bytes, n, &error), error);
    assert_int_equal(kv_cache_seq_len(other), 18);
    assert_fails(kv_cache_load_buffer(other, bytes, n, &error), GEN_ERROR_STATE, "empty one",
                 error);
    assert_ok(gen_model_forward(model, tokens + 3, 2, cache, logits, vocab, &error), error);
    assert_ok(gen_model_forward(model, tokens + 3, 2, other, logits + vocab, vocab, &error), error);
    assert_memory_equal(logits, logits + vocab, vocab * sizeof(float));
    /* Neither form goes into a cache of the other. */
    kv_cache* tensors = make_cache(kv_cache_new);
    fill(tensors, 0, 3);
    assert_ok(kv_cache_truncate(tensors, 0, &error), error);
    assert_fails(kv_cache_load_buffer(tensors, bytes, n, &error), GEN_ERROR_STATE,
                 "kv_cache_update", error);
    assert_ok(kv_cache_save(tensors, at("tensors"), &error), error);
    assert_ok(kv_cache_truncate(other, 0, &error), error);
    assert_fails(kv_cache_load(other, at("tensors"), &error), GEN_ERROR_STATE, "shaped", error);
    assert_ok(kv_cache_load_buffer(other, bytes, n, &error), error);
    kv_cache_free(tensors);
    free(bytes);
    kv_cache_free(other);
    kv_cache_free(cache);
  }
  free(logits);
}

static int mode_of(const char* path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return (int)(info.st_mode & 07777);
}

/* What holds a text is this user's alone, unless a file that is there says otherwise. */
static void files_are_private(void** state) {
  (void)state;
  const mode_t before = umask(022);
  gen_session* session = open_session("fp32", "0");
  assert_ok(gen_session_append(session, "The fox", 7, &error), error);
  kv_cache* cache = make_cache(kv_cache_new);
  fill(cache, 0, 3);
  static const int modes[] = {0600, 0600, 0640, 0644};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
    for (int is_cache = 0; is_cache < 2; ++is_cache) {
      const char* path = at("private");
      if (i == 0) {
        assert_int_equal(access(path, F_OK), -1);
      } else {
        FILE* file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
        assert_int_equal(chmod(path, (mode_t)modes[i]), 0);
      }
      assert_ok(is_cache != 0 ? kv_cache_save(cache, path, &error)
                              : gen_session_save(session, path, &error),
                error);
      assert_int_equal(mode_of(path), modes[i]);
      assert_int_equal(unlink(path), 0);
    }
  }
  kv_cache_free(cache);
  gen_session_free(session);
  umask(before);
}

struct writer {
  const unsigned char* bytes;
  size_t size;
  const char* path;
  atomic_int stop;
};

static void* write_again(void* user) {
  struct writer* writer = user;
  while (!atomic_load(&writer->stop)) {
    FILE* file = fopen(writer->path, "wb");
    if (file == NULL || fwrite(writer->bytes, 1, writer->size, file) != writer->size) return user;
    fclose(file);
  }
  return NULL;
}

/* Somebody rewrites the file all the time: a load succeeds or is refused, and never more. */
static void a_file_that_is_rewritten(void** state) {
  (void)state;
  gen_session* session = open_session("fp32", "0");
  for (int i = 0; i < 8; ++i) {
    assert_ok(gen_session_append(session, " and the fox ran away", 21, &error), error);
  }
  struct writer writer = {NULL, 0, at("rewritten"), 0};
  assert_ok(gen_session_save_buffer(session, NULL, 0, &writer.size, &error), error);
  unsigned char* bytes = malloc(writer.size);
  assert_ok(gen_session_save_buffer(session, bytes, writer.size, &writer.size, &error), error);
  writer.bytes = bytes;
  const int32_t length = gen_session_length(session);
  assert_ok(gen_session_save(session, writer.path, &error), error);
  gen_session_free(session);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, write_again, &writer), 0);
  gen_generator* generator = make_generator("fp32", "0");
  assert_ok(gen_session_new(generator, &session, &error), error);
  for (int i = 0; i < 600; ++i) {
    const gen_status status = gen_session_load(session, writer.path, &error);
    assert_int_equal(gen_session_length(session), status == GEN_OK ? length : 0);
    if (status != GEN_OK && status != GEN_ERROR_IO) assert_int_equal(status, GEN_ERROR_FORMAT);
    assert_ok(gen_session_reset(session, &error), error);
  }
  atomic_store(&writer.stop, 1);
  void* failed = NULL;
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  gen_session_free(session);
  gen_free(generator);
  free(bytes);
}

struct cutter {
  const char* path;
  int cuts;
};

/* The load's own first allocation is the moment at which somebody shortens the file. */
static gen_status cut_and_allocate(void* user, size_t bytes, size_t align, void** out) {
  struct cutter* cutter = user;
  if (truncate(cutter->path, 0) == 0) ++cutter->cuts;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  return *out != NULL ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
}

static void release(void* user, void* at, size_t bytes) {
  (void)user, (void)bytes;
  free(at);
}

static void a_file_that_is_cut_while_it_is_loaded(void** state) {
  (void)state;
  struct cutter cutter = {at("cut"), 0};
  const gen_allocator allocator = {sizeof allocator, &cutter, cut_and_allocate, release};
  kv_cache* cache = make_cache(kv_cache_new);
  kv_cache* other = make_cache(kv_cache_new);
  fill(cache, 0, 60);
  assert_ok(kv_cache_save(cache, cutter.path, &error), error);
  assert_ok(kv_cache_set_allocator(other, &allocator, &error), error);
  assert_ok(kv_cache_load(other, cutter.path, &error), error);
  assert_true(cutter.cuts > 0);
  assert_same(cache, other);
  kv_cache_free(other);
  kv_cache_free(cache);
}

static int clean(void** state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

int main(int argc, char** argv) {
  program = argv[0];
  model = load_draft();
  if (argc == 4) return go_on(argv[1], argv[2], argv[3]);
  if (mkdtemp(folder) == NULL) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_process_goes_on),
      cmocka_unit_test(sessions_to_memory),
      cmocka_unit_test(sessions_refuse),
      cmocka_unit_test(forks),
      cmocka_unit_test(caches_of_tensors),
      cmocka_unit_test(caches_refuse),
      cmocka_unit_test(caches_of_models),
      cmocka_unit_test(files_are_private),
      cmocka_unit_test(a_file_that_is_rewritten),
      cmocka_unit_test(a_file_that_is_cut_while_it_is_loaded),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, clean);
  gen_model_free(model);
  return failed;
}

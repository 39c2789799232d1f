/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "cuda" through C, with the emulator in the place of a device: it is found beside the
 * library, models on it say what models on the CPU say, all device memory comes through the
 * allocator that was given and goes back to it, and lack of memory at any call of the allocator
 * leaves everything usable. */
#include "api_test.h"

#include "cuda/engine/emulated_streams.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

enum { TOKENS = 4 };

/* One that asks another for all, and has none left at a call. */
struct failing {
  const gen_gpu_allocator* behind;
  size_t calls, fails_at, live;
};

static gen_status take(void* user, size_t bytes, void** out) {
  struct failing* f = user;
  if (f->calls++ == f->fails_at) return GEN_ERROR_OUT_OF_MEMORY;
  const gen_status status = f->behind->allocate(f->behind->user, bytes, out);
  f->live += status == GEN_OK;
  return status;
}
static gen_status give_back(void* user, void* ptr) {
  struct failing* f = user;
  --f->live;
  return f->behind->release(f->behind->user, ptr);
}
static gen_status copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
  const struct failing* f = user;
  return f->behind->copy(f->behind->user, to, from, bytes, kind);
}

static gen_gpu_allocator table_of(struct failing* f) {
  const gen_gpu_allocator table = {.struct_size = sizeof table,
                                   .user = f,
                                   .allocate = take,
                                   .release = give_back,
                                   .copy = copy,
                                   .device = f->behind->device};
  return table;
}

static gen_gpu_allocator* device_memory(void) {
  gen_gpu_allocator* made = NULL;
  assert_ok(gen_gpu_allocator_cuda(0, &made, &error), error);
  return made;
}

static gen_status load(const char* backend, const gen_gpu_allocator* allocator, gen_model** out) {
  gen_model_options* options = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set_backend(options, backend, &error), error);
  assert_ok(gen_model_options_set_threads(options, 1, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(options, 64, &error), error);
  assert_ok(gen_model_options_set_gpu_allocator(options, allocator, &error), error);
  const gen_status status = gen_model_load(DRAFT_MODEL, options, out, &error);
  gen_model_options_free(options);
  return status;
}

/* Greedy, in a generator and session of its own. The ids go to `said`. */
static gen_status say(gen_model* model, int32_t* said) {
  gen_generator* generator = NULL;
  gen_sampling* sampling = greedy(TOKENS);
  gen_result* result = NULL;
  gen_status status = gen_create(model, NULL, &generator, &error);
  if (status == GEN_OK) status = gen_generate(generator, "Once", 4, sampling, &result, &error);
  if (status == GEN_OK) {
    size_t n = 0;
    const int32_t* ids = gen_result_tokens(result, &n);
    assert_int_equal(n, TOKENS);
    memcpy(said, ids, n * sizeof *ids);
  }
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_free(generator);
  return status;
}

/* Asked in a process of its own, since a library that is loaded stays. */
static void expect_reason(const char* driver, const char* reason) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    gen_model* model = NULL;
    const bool as_told = setenv("GEN_EMULATOR_DRIVER", driver, 1) == 0 &&
                         gen_backend_available("cuda", &error) == GEN_ERROR_UNSUPPORTED &&
                         strcmp(error.message, reason) == 0 && gen_device_count("cuda") == 0 &&
                         gen_model_load(DRAFT_MODEL, NULL, &model, &error) == GEN_OK;
    gen_model_free(model);
    if (!as_told) fprintf(stderr, "driver %s: %s\n", driver, error.message);
    _exit(as_told ? 0 : 1);
  }
  int how = 1;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
}

static void a_machine_without_a_fitting_driver(void** state) {
  (void)state;
  expect_reason(
      "0", "backend cuda: no driver was found, and this build needs one for CUDA 13.0 or newer");
  expect_reason("12040",
                "backend cuda: the driver is for CUDA 12.4, and this build needs one for CUDA 13.0 "
                "or newer");
}

static void the_backend_is_found(void** state) {
  (void)state;
  assert_ok(gen_backend_available("cuda", &error), error);
  assert_int_equal(gen_device_count("cuda"), 1);
  char text[512];
  size_t n = 0;
  assert_ok(gen_device_describe("cuda", 0, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"compute_capability\""));
}

static void allocators_of_a_device(void** state) {
  (void)state;
  gen_gpu_allocator* memory = (gen_gpu_allocator*)&error;
  assert_fails(gen_gpu_allocator_cuda(1, &memory, &error), GEN_ERROR_OUT_OF_RANGE, "device 1",
               error);
  assert_null(memory);
  assert_fails(gen_gpu_allocator_cuda(-1, &memory, &error), GEN_ERROR_OUT_OF_RANGE, "device -1",
               error);
  assert_fails(gen_gpu_allocator_cuda(0, NULL, &error), bad, "out", error);
  memory = device_memory();
  assert_int_equal(memory->device, 0);
  void* at = NULL;
  void* pinned = NULL;
  assert_int_equal(memory->allocate(memory->user, 1000, &at), GEN_OK);
  assert_int_equal(memory->allocate_pinned(memory->user, 24, &pinned), GEN_OK);
  size_t pieces = 0;
  size_t bytes = 0;
  size_t peak = 0;
  assert_ok(gen_gpu_allocator_counters(memory, &pieces, &bytes, &peak, &error), error);
  assert_true(pieces == 2 && bytes == 1024 && peak == 1024);
  memcpy(pinned, "on and off the device..", 24);
  char back[24];
  assert_int_equal(memory->copy(memory->user, at, pinned, 24, GEN_GPU_COPY_TO_DEVICE), GEN_OK);
  assert_int_equal(memory->copy(memory->user, (char*)at + 100, at, 24, GEN_GPU_COPY_ON_DEVICE),
                   GEN_OK);
  assert_int_equal(memory->copy(memory->user, back, (char*)at + 100, 24, GEN_GPU_COPY_TO_HOST),
                   GEN_OK);
  assert_string_equal(back, "on and off the device..");
  assert_int_equal(memory->copy(memory->user, back, at, 1, 3), bad);
  assert_int_equal(memory->allocate(memory->user, (size_t)1 << 50, &at), GEN_ERROR_OUT_OF_MEMORY);
  assert_null(at);
  assert_int_equal(memory->release(memory->user, back), bad); /* none of its */
  assert_int_equal(memory->release_pinned(memory->user, pinned), GEN_OK);
  assert_ok(gen_gpu_allocator_counters(memory, &pieces, &bytes, &peak, &error), error);
  assert_true(pieces == 1 && bytes == 1000 && peak == 1024);

  kv_cache* cache = NULL; /* which keeps the allocator */
  assert_ok(kv_cache_gpu_new(memory, 1, 4, 1, 2, &cache, &error), error);
  gen_gpu_allocator_release(memory);
  const float row[] = {1, 2};
  assert_ok(kv_cache_gpu_append(cache, 0, row, row, 0, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), 1);
  kv_cache_free(cache);
}

static void models_say_what_they_say_on_the_cpu(void** state) {
  (void)state;
  int32_t want[TOKENS];
  int32_t said[TOKENS];
  gen_model* model = NULL;
  assert_ok(load("cpu", NULL, &model), error);
  assert_ok(say(model, want), error);
  gen_model_free(model);

  gen_gpu_allocator* memory = device_memory();
  assert_ok(load("cuda", memory, &model), error);
  size_t bytes = 0;
  assert_ok(gen_gpu_allocator_counters(memory, NULL, &bytes, NULL, &error), error);
  assert_true(bytes > 100000); /* the weights */
  assert_ok(say(model, said), error);
  assert_memory_equal(said, want, sizeof want);
  size_t after = 0;
  size_t peak = 0;
  gen_model_free(model);
  assert_ok(gen_gpu_allocator_counters(memory, NULL, &after, &peak, &error), error);
  assert_int_equal(after, 0);
  assert_true(peak > bytes); /* a cache and a workspace */
  gen_gpu_allocator_release(memory);
}

/* The library is loaded already, or is from here on. */
static const struct emulated_streams* emulated_streams(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/libgenerate-cuda.so", getenv("GEN_BACKEND_PATH"));
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  emulated_streams_fn get = NULL;
  *(void**)&get = dlsym(library, "emulated_streams_get");
  assert_non_null(get);
  return get();
}

enum { APPEND_LAYERS = 2, APPEND_ROOM = 5, APPEND_DIM = 6 };

static int32_t read_counter(const gen_gpu_allocator* memory, const kv_cache* cache) {
  int32_t found = -1;
  assert_int_equal(memory->copy(memory->user, &found, kv_cache_gpu_counter_ptr(cache), sizeof found,
                                GEN_GPU_COPY_TO_HOST),
                   GEN_OK);
  return found;
}

/* A prompt from the host, a step that is enqueued, the same step as a graph until the cache is full
 * and beyond. */
static void appends_on_a_stream(void** state) {
  (void)state;
  gen_gpu_allocator* memory = device_memory();
  const struct emulated_streams* streams = emulated_streams();
  kv_cache* cache = NULL;
  assert_ok(kv_cache_gpu_new(memory, APPEND_LAYERS, APPEND_ROOM, 2, APPEND_DIM / 2, &cache, &error),
            error);
  float prompt[APPEND_DIM], rows[2 * APPEND_DIM], out[2][APPEND_ROOM * APPEND_DIM];
  for (int i = 0; i < APPEND_DIM; ++i) prompt[i] = (float)i - 100;
  for (int i = 0; i < 2 * APPEND_DIM; ++i) rows[i] = (float)i + 1;
  void* at = NULL;
  assert_int_equal(memory->allocate(memory->user, sizeof rows, &at), GEN_OK);
  assert_int_equal(memory->copy(memory->user, at, rows, sizeof rows, GEN_GPU_COPY_TO_DEVICE),
                   GEN_OK);
  const float* k = at;
  const float* v = k + APPEND_DIM;
  for (int layer = 0; layer < APPEND_LAYERS; ++layer) {
    assert_ok(kv_cache_gpu_append(cache, layer, prompt, prompt, 0, &error), error);
  }
  assert_fails(kv_cache_gpu_append_stream(cache, 0, k, v, NULL, &error), bad, "stream of device 0",
               error);
  void* stream = streams->stream_new();
  for (int layer = 0; layer < APPEND_LAYERS; ++layer) {
    assert_ok(kv_cache_gpu_append_stream(cache, layer, k, v, stream, &error), error);
  }
  assert_fails(kv_cache_gpu_append_stream(cache, APPEND_LAYERS, k, v, stream, &error),
               GEN_ERROR_OUT_OF_RANGE, "layer 2", error);
  assert_int_equal(kv_cache_seq_len(cache), 2);
  streams->stream_wait(stream);
  assert_int_equal(read_counter(memory, cache), 2);

  streams->capture_begin(stream);
  for (int layer = 0; layer < APPEND_LAYERS; ++layer) {
    assert_ok(kv_cache_gpu_append_stream(cache, layer, v, k, stream, &error), error);
  }
  void* graph = streams->capture_end(stream);
  assert_non_null(graph);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_int_equal(read_counter(memory, cache), 2);
  for (int i = 0; i < APPEND_ROOM; ++i) streams->replay(graph, stream);
  streams->stream_wait(stream);
  assert_int_equal(read_counter(memory, cache), APPEND_ROOM);
  assert_fails(kv_cache_gpu_sync_counter(cache, &error), GEN_ERROR_CACHE_FULL, "5 of 5", error);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_ok(kv_cache_gpu_sync_counter(cache, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), APPEND_ROOM);
  for (int layer = 0; layer < APPEND_LAYERS; ++layer) {
    const size_t n = APPEND_ROOM * APPEND_DIM;
    assert_ok(kv_cache_get(cache, layer, out[0], n, out[1], n, NULL, NULL, &error), error);
    for (int side = 0; side < 2; ++side) {
      assert_memory_equal(out[side], prompt, sizeof prompt);
      assert_memory_equal(out[side] + APPEND_DIM, rows + side * APPEND_DIM, sizeof prompt);
      for (int p = 2; p < APPEND_ROOM; ++p) {
        assert_memory_equal(out[side] + p * APPEND_DIM, rows + (1 - side) * APPEND_DIM,
                            sizeof prompt);
      }
    }
  }
  /* The graph goes on where the cache is cut. */
  assert_ok(kv_cache_truncate(cache, 1, &error), error);
  streams->replay(graph, stream);
  streams->stream_wait(stream);
  assert_ok(kv_cache_gpu_sync_counter(cache, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), 2);
  streams->graph_free(graph);
  streams->stream_free(stream);

  /* The default streams that have handles: cudaStreamLegacy and, of this thread, cudaStreamPerThread. */
  for (uintptr_t handle = 1; handle <= 2; ++handle) {
    stream = (void*)handle;
    assert_ok(kv_cache_truncate(cache, 1, &error), error);
    for (int layer = 0; layer < APPEND_LAYERS; ++layer) {
      assert_ok(kv_cache_gpu_append_stream(cache, layer, v, k, stream, &error), error);
    }
    streams->stream_wait(stream);
    assert_int_equal(read_counter(memory, cache), 2);
    streams->capture_begin(stream);
    for (int layer = 0; layer < APPEND_LAYERS; ++layer) {
      assert_ok(kv_cache_gpu_append_stream(cache, layer, k, v, stream, &error), error);
    }
    graph = streams->capture_end(stream);
    if (handle == 1) {
      assert_null(graph); /* it cannot be captured, so what was to be has run */
      streams->stream_wait(stream);
    } else {
      assert_int_equal(read_counter(memory, cache), 2);
      streams->replay(graph, stream);
      streams->stream_wait(stream);
      streams->graph_free(graph);
    }
    assert_ok(kv_cache_gpu_sync_counter(cache, &error), error);
    assert_int_equal(kv_cache_seq_len(cache), 3);
    const size_t n = 3 * APPEND_DIM;
    assert_ok(kv_cache_get(cache, 1, out[0], n, out[1], n, NULL, NULL, &error), error);
    for (int side = 0; side < 2; ++side) {
      assert_memory_equal(out[side] + APPEND_DIM, rows + (1 - side) * APPEND_DIM, sizeof prompt);
      assert_memory_equal(out[side] + 2 * APPEND_DIM, rows + side * APPEND_DIM, sizeof prompt);
    }
  }
  kv_cache_free(cache);
  assert_int_equal(memory->release(memory->user, at), GEN_OK);

  /* A device that the backend does not have. */
  struct failing f = {memory, 0, SIZE_MAX, 0};
  gen_gpu_allocator table = table_of(&f);
  table.device = 1;
  assert_ok(kv_cache_gpu_new(&table, 1, 1, 1, 1, &cache, &error), error);
  assert_fails(kv_cache_gpu_append_stream(cache, 0, prompt, prompt, &f, &error),
               GEN_ERROR_UNSUPPORTED, "device 1 of backend cuda, which has 1", error);
  kv_cache_free(cache);
  gen_gpu_allocator_release(memory);
}

/* What a process makes of a device that is lost during a step; 0 if it is what is promised. */
static int lose_the_device(void) {
  gen_model* cpu = NULL;
  gen_model* model = NULL;
  gen_model* late = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  gen_gpu_allocator* memory = NULL;
  int32_t said[2][TOKENS];
  if (setenv("GEN_EMULATOR_LOST_AFTER", "40", 1) != 0) return 1;
  kv_cache* cache = NULL;
  void* stream = NULL;
  const float first[] = {3, 4};
  if (gen_gpu_allocator_cuda(0, &memory, &error) ||
      kv_cache_gpu_new(memory, 1, 4, 1, 2, &cache, &error) ||
      kv_cache_gpu_append(cache, 0, first, first, 0, &error)) {
    return 14;
  }
  stream = emulated_streams()->stream_new();
  gen_gpu_allocator_release(memory);
  if (load("cpu", NULL, &cpu) || say(cpu, said[0])) return 2;
  if (load("cuda", NULL, &model) || gen_create(model, NULL, &generator, &error) ||
      gen_session_new(generator, &session, &error)) {
    return 3;
  }
  for (int i = 0; i < 3; ++i) {
    if (say(model, said[1]) != GEN_ERROR_DEVICE) return 4;
    if (strstr(error.message, "uncorrectable ECC error") == NULL) return 5;
    if (gen_session_append(session, "Once", 4, &error) != GEN_ERROR_DEVICE) return 6;
  }
  if (load("cuda", NULL, &late) != GEN_ERROR_DEVICE || late != NULL) return 7;
  if (gen_gpu_allocator_cuda(0, &memory, &error) != GEN_ERROR_DEVICE) return 8;
  char text[512];
  size_t n = 0;
  if (gen_device_describe("cuda", 0, text, sizeof text, &n, &error) != GEN_ERROR_DEVICE) return 11;
  /* What is on it fails and can be freed. */
  const float row[] = {1, 2};
  if (kv_cache_gpu_append(cache, 0, row, row, 1, &error) != GEN_ERROR_DEVICE) return 12;
  if (kv_cache_gpu_append_stream(cache, 0, row, row, stream, &error) != GEN_ERROR_DEVICE ||
      strstr(error.message, "uncorrectable ECC error") == NULL || kv_cache_seq_len(cache) != 1) {
    return 15;
  }
  if (kv_cache_truncate(cache, 0, &error) != GEN_ERROR_DEVICE || kv_cache_seq_len(cache) != 1)
    return 13;
  kv_cache_free(cache);
  if (say(cpu, said[1]) || memcmp(said[0], said[1], sizeof said[0]) != 0) return 9;
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
  if (say(cpu, said[1]) || memcmp(said[0], said[1], sizeof said[0]) != 0) return 10;
  gen_model_free(cpu);
  return 0;
}

static void a_lost_device_fails_every_call_and_nothing_else(void** state) {
  (void)state;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const int at = lose_the_device();
    if (at != 0) fprintf(stderr, "at %d: %s\n", at, error.message);
    _exit(at);
  }
  int how = 1;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
}

static void lack_of_memory(void** state) {
  (void)state;
  gen_gpu_allocator* memory = device_memory();
  int32_t want[TOKENS];
  int32_t said[TOKENS];
  struct failing f = {memory, 0, SIZE_MAX, 0};
  const gen_gpu_allocator table = table_of(&f);
  gen_model* model = NULL;
  assert_ok(load("cuda", &table, &model), error);
  const size_t of_load = f.calls;
  assert_ok(say(model, want), error);
  const size_t of_both = f.calls;
  assert_true(of_load > 0 && of_both > of_load);
  /* Calls of a generation, on a model that stays; each time it works when there is memory again. */
  for (size_t at = 0; at < of_both - of_load; ++at) {
    f.fails_at = f.calls + at;
    const gen_status status = say(model, said);
    f.fails_at = SIZE_MAX;
    if (status == GEN_OK) break; /* what was kept needs fewer */
    assert_int_equal(status, GEN_ERROR_OUT_OF_MEMORY);
  }
  assert_ok(say(model, said), error);
  assert_memory_equal(said, want, sizeof want);
  gen_model_free(model);
  assert_int_equal(f.live, 0);
  /* The first call of a load, one in the middle, and the last. */
  for (int part = 0; part < 3; ++part) {
    f.calls = 0;
    f.fails_at = part * (of_load - 1) / 2;
    assert_fails(load("cuda", &table, &model), GEN_ERROR_OUT_OF_MEMORY, "bytes", error);
    assert_null(model);
    assert_int_equal(f.live, 0);
  }
  gen_gpu_allocator_release(memory);
}

/* Hidden states come from the device's memory: nearly those of the host, which rounds elsewhere. */
static void hidden_states_of_a_device(void** state) {
  (void)state;
  enum { ROWS = 5, LAYERS = 3 };
  const int32_t tokens[ROWS] = {1, 300, 301, 302, 303};
  const int32_t layers[LAYERS] = {0, 2, GEN_HIDDEN_NORMED};
  const char* const backends[] = {"cpu", "cuda"};
  float* hidden[2];
  size_t of_layer = 0;
  for (int i = 0; i < 2; ++i) {
    gen_model* model = NULL;
    gen_generator* generator = NULL;
    kv_cache* cache = NULL;
    assert_ok(load(backends[i], NULL, &model), error);
    assert_ok(gen_create(model, NULL, &generator, &error), error);
    assert_ok(kv_cache_generator_new(generator, 16, &cache, &error), error);
    of_layer = ROWS * (size_t)gen_model_config_hidden(gen_model_get_config(model));
    hidden[i] = calloc(LAYERS * of_layer, sizeof(float));
    assert_ok(gen_model_forward_hidden(model, tokens, ROWS, cache, layers, LAYERS, hidden[i],
                                       LAYERS * of_layer, &error),
              error);
    assert_int_equal(kv_cache_seq_len(cache), ROWS);
    kv_cache_free(cache);
    gen_free(generator);
    gen_model_free(model);
  }
  for (size_t layer = 0; layer < LAYERS; ++layer) {
    double off = 0, size = 0;
    for (size_t i = layer * of_layer; i < (layer + 1) * of_layer; ++i) {
      const double a = hidden[0][i], b = hidden[1][i];
      off += (a - b) * (a - b);
      size += a * a;
    }
    const double most = layer == 0 ? 1e-6 : 0.03;
    assert_true(size > 0 && off <= most * most * size);
  }
  free(hidden[0]);
  free(hidden[1]);
}

/* Each instruction is waited for, so that clocks see the device's time; results are the same. */
static void profiles_of_a_device(void** state) {
  (void)state;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_profile* profile = NULL;
  kv_cache* caches[2] = {NULL, NULL};
  assert_ok(load("cuda", NULL, &model), error);
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_profile_new(&profile, &error), error);
  const int32_t tokens[] = {1, 50};
  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(model));
  float* logits[2];
  for (int i = 0; i < 2; ++i) {
    logits[i] = calloc(2 * vocab, sizeof(float));
    assert_ok(kv_cache_generator_new(generator, 8, &caches[i], &error), error);
  }
  assert_ok(gen_model_forward_batch(model, tokens, NULL, NULL, 2, caches, 1, logits[0], 2 * vocab,
                                    &error),
            error);
  assert_ok(gen_model_forward_profiled(model, tokens, NULL, NULL, 2, caches + 1, 1, logits[1],
                                       2 * vocab, profile, &error),
            error);
  assert_memory_equal(logits[0], logits[1], 2 * vocab * sizeof(float));
  size_t n = 0;
  assert_ok(gen_profile_chrome_trace(profile, NULL, 0, &n, &error), error);
  char* text = malloc(n + 1);
  assert_ok(gen_profile_chrome_trace(profile, text, n + 1, &n, &error), error);
  size_t events = 0;
  for (const char* at = text; (at = strstr(at, "\"ph\":\"X\"")) != NULL; ++at) ++events;
  double calls = 0;
  for (size_t i = 0; i < gen_profile_count(profile); ++i) {
    double runs = 0, seconds = 0;
    assert_ok(gen_profile_get(profile, i, "calls", &runs, &error), error);
    assert_ok(gen_profile_get(profile, i, "seconds", &seconds, &error), error);
    assert_true(seconds > 0 || runs == 0); /* some are for who asks for them */
    calls += runs;
  }
  assert_true(events > 20 && (double)events == calls);
  assert_non_null(strstr(text, "{\"name\":\"attention 0\""));
  free(text);
  for (int i = 0; i < 2; ++i) {
    free(logits[i]);
    kv_cache_free(caches[i]);
  }
  gen_profile_free(profile);
  gen_free(generator);
  gen_model_free(model);
}

static void allocators_of_another_device(void** state) {
  (void)state;
  gen_gpu_allocator* host = NULL;
  assert_ok(gen_gpu_allocator_host(&host, &error), error);
  gen_model* model = NULL;
  assert_fails(load("cuda", host, &model), bad, "device -1", error);
  assert_null(model);
  assert_ok(load("cpu", host, &model), error); /* which needs none */
  gen_model_free(model);
  gen_gpu_allocator_release(host);
  gen_model_options* options = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set_backend(options, "cuda", &error), error);
  assert_ok(gen_model_options_set_device(options, 1, &error), error);
  assert_fails(gen_model_load(DRAFT_MODEL, options, &model, &error), GEN_ERROR_OUT_OF_RANGE,
               "device 1", error);
  gen_model_options_free(options);
}

static void options_are_checked(void** state) {
  (void)state;
  gen_model_options* options = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  struct failing f = {NULL, 0, SIZE_MAX, 0};
  const gen_gpu_allocator whole = {.struct_size = sizeof whole,
                                   .user = &f,
                                   .allocate = take,
                                   .release = give_back,
                                   .copy = copy};
  assert_fails(gen_model_options_set_gpu_allocator(NULL, &whole, &error), bad, "options", error);
  gen_gpu_allocator lacking = whole;
  lacking.struct_size = 8;
  assert_fails(gen_model_options_set_gpu_allocator(options, &lacking, &error), bad, "struct_size",
               error);
  for (int i = 0; i < 3; ++i) {
    lacking = whole;
    if (i == 0) lacking.allocate = NULL;
    if (i == 1) lacking.release = NULL;
    if (i == 2) lacking.copy = NULL;
    assert_fails(gen_model_options_set_gpu_allocator(options, &lacking, &error), bad, "lacks",
                 error);
  }
  assert_ok(gen_model_options_set_gpu_allocator(options, &whole, &error), error);
  assert_ok(gen_model_options_set_gpu_allocator(options, NULL, &error), error);
  gen_model_options_free(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_machine_without_a_fitting_driver),
      cmocka_unit_test(
          a_lost_device_fails_every_call_and_nothing_else), /* before it is loaded here */
      cmocka_unit_test(the_backend_is_found),
      cmocka_unit_test(allocators_of_a_device),
      cmocka_unit_test(appends_on_a_stream),
      cmocka_unit_test(models_say_what_they_say_on_the_cpu),
      cmocka_unit_test(lack_of_memory),
      cmocka_unit_test(hidden_states_of_a_device),
      cmocka_unit_test(profiles_of_a_device),
      cmocka_unit_test(allocators_of_another_device),
      cmocka_unit_test(options_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* memory_estimate.h for models on a device, which is the emulator here: what is foretold of the
 * host's memory, pinned memory with it, and of the device's is what allocators then count. */
#define _POSIX_C_SOURCE 200809L
#include "api_test.h"
#include "counting_allocator.h"

enum { CONTEXT = 48, LONG_CONTEXT = 264 };

/* How a context is filled: by a prompt, then token by token, with GEN_MEGAKERNEL as said. */
struct filling {
  int32_t context, prompt;
  int sampled;
  const char* megakernel;
};
static const struct filling by_prompt = {CONTEXT, CONTEXT - 1, 0, "off"};

/* Pieces of memory by their addresses. */
struct sizes {
  void* at[4096];
  size_t bytes[4096];
  size_t live, peak;
};
static void note(struct sizes* of, void* at, size_t bytes) {
  for (size_t i = 0; i < sizeof of->at / sizeof of->at[0]; ++i) {
    if (of->at[i] != NULL) continue;
    of->at[i] = at;
    of->bytes[i] = bytes;
    of->live += bytes;
    if (of->live > of->peak) of->peak = of->live;
    return;
  }
  fail_msg("%s", "more pieces than places");
}
static size_t forget(struct sizes* of, void* at) {
  for (size_t i = 0; i < sizeof of->at / sizeof of->at[0]; ++i) {
    if (of->at[i] != at) continue;
    of->at[i] = NULL;
    of->live -= of->bytes[i];
    return of->bytes[i];
  }
  fail_msg("%p was never given", at);
  return 0;
}

static struct {
  const gen_gpu_allocator* behind;
  struct sizes device, pinned;
  struct counting host; /* pinned memory with it */
} seen;

static gen_status take(void* user, size_t bytes, void** out) {
  (void)user;
  const gen_status status = seen.behind->allocate(seen.behind->user, bytes, out);
  if (status == GEN_OK) note(&seen.device, *out, bytes);
  return status;
}
static gen_status give_back(void* user, void* ptr) {
  (void)user;
  forget(&seen.device, ptr);
  return seen.behind->release(seen.behind->user, ptr);
}
static gen_status copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
  (void)user;
  return seen.behind->copy(seen.behind->user, to, from, bytes, kind);
}
static gen_status take_pinned(void* user, size_t bytes, void** out) {
  (void)user;
  const gen_status status = seen.behind->allocate_pinned(seen.behind->user, bytes, out);
  if (status != GEN_OK) return status;
  note(&seen.pinned, *out, bytes);
  seen.host.live += bytes;
  if (seen.host.live > seen.host.peak) seen.host.peak = seen.host.live;
  return status;
}
static gen_status give_back_pinned(void* user, void* ptr) {
  (void)user;
  seen.host.live -= forget(&seen.pinned, ptr);
  return seen.behind->release_pinned(seen.behind->user, ptr);
}

static size_t figure(const gen_memory_estimate* estimate, const char* key) {
  size_t bytes = 0;
  assert_ok(gen_memory_estimate_get(estimate, key, &bytes, &error), error);
  return bytes;
}

static void expect_same(const gen_memory_estimate* estimate, const char* key, size_t counted) {
  const size_t foretold = figure(estimate, key);
  if (foretold != counted) fail_msg("%s: foretold %zu, counted %zu", key, foretold, counted);
}
/* Where it is not sure which steps become one kernel. */
static void expect_no_less(const gen_memory_estimate* estimate, const char* key, size_t counted) {
  const size_t foretold = figure(estimate, key);
  if (foretold < counted) fail_msg("%s: foretold %zu, counted %zu", key, foretold, counted);
}
/* Within 2 %, and a little for what is too small to be foretold. */
static void expect_close(const gen_memory_estimate* estimate, const char* key, size_t counted) {
  const size_t foretold = figure(estimate, key);
  const double off = (double)foretold - (double)counted;
  const double most = 0.02 * (double)counted + 4096.0;
  if (off < -most || off > most) fail_msg("%s: foretold %zu, counted %zu", key, foretold, counted);
}

/* Workspace is also what a pool has taken and has not given to anybody, up to the MiB that it takes at a time. */
static void expect_but_free_blocks(const gen_memory_estimate* estimate, const char* key, size_t counted) {
  const size_t foretold = figure(estimate, key);
  const size_t most_free = 1 << 20;
  if (foretold > counted + 4096 || foretold + most_free < counted) {
    fail_msg("%s: foretold %zu, counted %zu", key, foretold, counted);
  }
}

static gen_model_options* options_of(const char* layers, int32_t context) {
  gen_model_options* load = NULL;
  assert_ok(gen_model_options_new(&load, &error), error);
  assert_ok(gen_model_options_set_backend(load, "cuda", &error), error);
  assert_ok(gen_model_options_set(load, "gpu_layers", layers, &error), error);
  assert_ok(gen_model_options_set_threads(load, 1, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(load, context, &error), error);
  return load;
}

/* Loads, fills a session's context, and compares. A device's figures are met to the byte, whatever the call
 * asks of a step, where it is sure which steps become one kernel. Gives what was foretold of the device. */
static size_t compare_filling(const char* layers, const char* key, const char* value, struct filling how) {
  assert_int_equal(setenv("GEN_MEGAKERNEL", how.megakernel, 1), 0);
  gen_gpu_allocator* memory = NULL;
  assert_ok(gen_gpu_allocator_cuda(0, &memory, &error), error);
  memset(&seen, 0, sizeof seen);
  seen.behind = memory;
  gen_model_options* load = options_of(layers, how.context);
  gen_options* o = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set(o, key, value, &error), error);
  gen_memory_estimate* estimate = NULL;
  assert_ok(gen_estimate_memory(DRAFT_MODEL, load, o, &estimate, &error), error);

  const gen_allocator host = {sizeof host, &seen.host, counting_allocate, counting_release};
  const gen_gpu_allocator device = {.struct_size = sizeof device,
                                    .allocate = take,
                                    .release = give_back,
                                    .copy = copy,
                                    .allocate_pinned = take_pinned,
                                    .release_pinned = give_back_pinned};
  gen_model* model = NULL;
  gen_generator* g = NULL;
  gen_session* session = NULL;
  gen_result* result = NULL;
  assert_ok(gen_model_options_set_allocator(load, &host, &error), error);
  assert_ok(gen_model_options_set_gpu_allocator(load, &device, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, load, &model, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  expect_close(estimate, "weights", seen.host.live);
  expect_close(estimate, "device_weights", seen.device.live);
  int32_t tokens[LONG_CONTEXT];
  for (int32_t i = 0; i < how.prompt; ++i) tokens[i] = 300 + i % 50;
  assert_ok(gen_session_new(g, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, (size_t)how.prompt, &error), error);
  const int32_t left = how.context - how.prompt + 3;
  gen_sampling* s = NULL;
  if (how.sampled) {
    assert_ok(gen_sampling_new(&s, &error), error);
    assert_ok(gen_sampling_set_max_new_tokens(s, left, &error), error);
  } else {
    s = greedy(left);
  }
  assert_ok(gen_sampling_set_ignore_eos(s, 1, &error), error);
  assert_ok(gen_session_generate(session, "", 0, s, &result, &error), error);
  assert_int_equal(gen_session_length(session), how.context);
  size_t cache = 0;
  assert_ok(kv_cache_memory_bytes(gen_session_cache(session), &cache, NULL, NULL, &error), error);
  assert_true(figure(estimate, "cache") + figure(estimate, "device_cache") == cache);
  const int sure = strcmp(how.megakernel, "auto") != 0;
  const size_t workspace = seen.host.live - figure(estimate, "weights") - figure(estimate, "cache");
  const size_t device_workspace =
      seen.device.live - figure(estimate, "device_weights") - figure(estimate, "device_cache");
  (sure ? expect_close : expect_no_less)(estimate, "peak", seen.host.peak);
  /* The largest program counts, which is that of a sampled token; a greedy one needs a little less. */
  const int largest = how.sampled || strcmp(how.megakernel, "off") == 0;
  (sure && largest ? expect_same : expect_no_less)(estimate, "device_peak", seen.device.peak);
  (sure ? expect_close : expect_no_less)(estimate, "workspace", workspace);
  const int pooled = strcmp(key, "paged_kv") == 0;
  (pooled ? expect_but_free_blocks : sure ? expect_close : expect_no_less)(estimate, "device_workspace",
                                                                           device_workspace);
  const size_t foretold = figure(estimate, "device_peak");
  gen_result_free(result);
  gen_sampling_free(s);
  gen_session_free(session);
  gen_free(g);
  gen_model_free(model);
  gen_options_free(o);
  gen_model_options_free(load);
  gen_memory_estimate_free(estimate);
  assert_true(seen.device.live == 0 && seen.host.live == 0);
  gen_gpu_allocator_release(memory);
  assert_int_equal(unsetenv("GEN_MEGAKERNEL"), 0);
  return foretold;
}

static void compare_call(const char* layers, const char* key, const char* value, int sampled) {
  struct filling how = by_prompt;
  how.sampled = sampled;
  compare_filling(layers, key, value, how);
}
static void compare(const char* layers, const char* key, const char* value) {
  compare_call(layers, key, value, 0);
}

static void what_is_foretold_is_counted(void** state) {
  (void)state;
  compare("all", "kv_dtype", "fp32");
  compare("all", "paged_kv", "8,16");
  compare("all", "tiered_kv", "4");
  compare("1", "kv_dtype", "q4");
  compare("0", "kv_dtype", "fp16");
}

/* In steps of a few rows, after which the first token that is chosen needs more than a prompt's. */
static void small_steps_are_foretold(void** state) {
  (void)state;
  const char* const chunks[] = {"7", "8"};
  for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; ++i) {
    compare_call("all", "prefill_chunk", chunks[i], 0);
    compare_call("all", "prefill_chunk", chunks[i], 1);
  }
  compare_call("1", "prefill_chunk", "8", 0);
  compare_call("1", "prefill_chunk", "7", 1);
}

static size_t device_peak(const char* layers, const char* key, const char* value, int32_t context,
                          const char* megakernel) {
  assert_int_equal(setenv("GEN_MEGAKERNEL", megakernel, 1), 0);
  gen_model_options* load = options_of(layers, context);
  gen_options* o = NULL;
  gen_memory_estimate* estimate = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set(o, key, value, &error), error);
  assert_ok(gen_estimate_memory(DRAFT_MODEL, load, o, &estimate, &error), error);
  const size_t bytes = figure(estimate, "device_peak");
  gen_memory_estimate_free(estimate);
  gen_options_free(o);
  gen_model_options_free(load);
  assert_int_equal(unsetenv("GEN_MEGAKERNEL"), 0);
  return bytes;
}

/* A step's program is counted where steps become one kernel, one for each range of lengths; where they may, it is
 * counted as if they did. */
static void step_kernels_are_foretold(void** state) {
  (void)state;
  const struct {
    const char *layers, *key, *value;
    struct filling how;
  } cases[] = {{"all", "kv_dtype", "fp32", {CONTEXT, 36, 0, "on"}},
               {"all", "prefill_chunk", "7", {CONTEXT, 36, 1, "on"}},
               {"all", "kv_dtype", "fp32", {CONTEXT, 36, 1, "auto"}},
               {"all", "kv_dtype", "fp16", {LONG_CONTEXT, 248, 1, "on"}},
               {"1", "kv_dtype", "q4", {CONTEXT, 44, 1, "on"}}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const char *layers = cases[i].layers, *key = cases[i].key, *value = cases[i].value;
    const int32_t context = cases[i].how.context;
    const size_t with = compare_filling(layers, key, value, cases[i].how);
    assert_true(with > device_peak(layers, key, value, context, "off") + 4096);
    assert_int_equal(device_peak(layers, key, value, context, "on"), with);
    assert_int_equal(device_peak(layers, key, value, context, "auto"), with);
  }
}

static void estimates_take_nothing(void** state) {
  (void)state;
  gen_model_options* load = options_of("auto", CONTEXT);
  gen_options* o = NULL;
  gen_memory_estimate* all = NULL;
  gen_memory_estimate* fitting = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_estimate_memory(DRAFT_MODEL, load, o, &fitting, &error), error);
  assert_ok(gen_model_options_set(load, "gpu_layers", "all", &error), error);
  assert_ok(gen_estimate_memory(DRAFT_MODEL, load, NULL, &all, &error), error);
  assert_true(figure(all, "device_weights") > 100000);
  assert_int_equal(figure(all, "device_weights"), figure(fitting, "device_weights"));
  gen_memory_estimate_free(all);
  gen_memory_estimate_free(fitting);
  gen_options_free(o);
  gen_model_options_free(load);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_foretold_is_counted),
                                     cmocka_unit_test(small_steps_are_foretold),
                                     cmocka_unit_test(step_kernels_are_foretold),
                                     cmocka_unit_test(estimates_take_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

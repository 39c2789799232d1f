/* SPDX-License-Identifier: Apache-2.0 */
/* Files and vocabularies: loading, estimating, quantising, encoding, chats, descriptions. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/adapter_file.h"
#include "sweep.h"

static const char text[] =
    "Once upon a time, the other thing: 12 \xC3\xA9t\xC3\xA9s <|begin|> in the end\n\n  done";
static gen_model* model;
enum { MOST_VOCAB = 5000 };

static void begin(const void* with) {
  (void)with;
  model = sweep_load();
}
static void end(const void* with) {
  (void)with;
  gen_model_free(model);
}

static void use(gen_model* loaded) {
  int32_t tokens[] = {1, 2, 3};
  static float logits[MOST_VOCAB];
  kv_cache* cache = NULL;
  const int32_t vocab = gen_model_config_vocab_size(gen_model_get_config(loaded));
  MAKE(cache, kv_cache_tensor_new(loaded, 0, 16, "fp32", &cache, E));
  TRY_KEEPING(gen_model_forward(loaded, tokens, 3, cache, logits, MOST_VOCAB, E),
              CHECK(kv_cache_seq_len(cache) == 0));
  SAME(logits, sizeof(float) * (size_t)vocab);
  FREE(kv_cache_free(cache));
}

/* with: pairs of option and value, then NULL; "table" takes failing_table and "memory" loads from
 * memory. */
static void load(const void* with) {
  gen_model_options* options = NULL;
  gen_model* loaded = NULL;
  static char image[1 << 20];
  size_t size = 0;
  MAKE(options, gen_model_options_new(&options, E));
  for (const char* const* option = with; *option != NULL; option += 2) {
    if (strcmp(option[0], "table") == 0) {
      TRY(gen_model_options_set_allocator(options, &failing_table, E));
    } else if (strcmp(option[0], "memory") == 0) {
      size = 1;
    } else {
      TRY(gen_model_options_set(options, option[0], option[1], E));
    }
  }
  if (size != 0) {
    const long live = failing_live_blocks();
    static size_t n;
    if (n == 0) {
      FILE* file = fopen(sweep_model, "rb");
      n = fread(image, 1, sizeof image, file);
      fclose(file);
    }
    CHECK(n > 0 && failing_live_blocks() == live);
    MAKE(loaded, gen_model_load_memory(image, n, options, &loaded, E));
  } else {
    MAKE(loaded, gen_model_load(sweep_model, options, &loaded, E));
  }
  FREE(gen_model_options_free(options));
  use(loaded);
  FREE(gen_model_free(loaded));
}

static void pool(const void* with) {
  (void)with;
  gen_thread_pool* threads = NULL;
  const int32_t cpu = 0;
  (void)cpu;
  MAKE(threads, gen_thread_pool_new(3, NULL, 0, &threads, E));
  gen_model_options* options = NULL;
  gen_model* loaded = NULL;
  MAKE(options, gen_model_options_new(&options, E));
  TRY(gen_model_options_set_thread_pool(options, threads, E));
  FREE(gen_thread_pool_free(threads));
  MAKE(loaded, gen_model_load(sweep_model, options, &loaded, E));
  FREE(gen_model_options_free(options));
  use(loaded);
  FREE(gen_model_free(loaded));
}

static void encode(const gen_tokenizer* tokenizer) {
  int32_t ids[200];
  char back[400];
  size_t n = 0;
  for (uint32_t flags = 0; flags < 4; ++flags) {
    TRY(gen_tokenizer_encode(tokenizer, text, GEN_NUL_TERMINATED, flags, ids, 200, &n, E));
    SAME(ids, n * sizeof *ids);
    size_t length = 0;
    TRY(gen_tokenizer_decode(tokenizer, ids, n, back, sizeof back, &length, E));
    SAME(back, length);
  }
  /* Not every model of the sweep has tokens for filling in. */
  TRY(gen_tokenizer_encode(tokenizer, "<fim_prefix>", 12, GEN_ENCODE_PARSE_SPECIAL, ids, 200, &n,
                           E));
  if (n == 1) {
    TRY(gen_tokenizer_encode_fim(tokenizer, text, GEN_NUL_TERMINATED, "a", 1, 0, ids, 200, &n, E));
    SAME(ids, n * sizeof *ids);
  }
  TRY(gen_tokenizer_piece(tokenizer, ids[1], back, sizeof back, &n, E));
  SAME(back, n);
}

static void load_tokenizer(const void* with) {
  (void)with;
  gen_tokenizer* tokenizer = NULL;
  gen_model_options* options = NULL;
  MAKE(options, gen_model_options_new(&options, E));
  TRY(gen_model_options_set(options, "pre_tokenizer", "", E));
  MAKE(tokenizer, gen_tokenizer_load_with(sweep_model, options, &tokenizer, E));
  encode(tokenizer);
  FREE(gen_model_options_free(options));
  FREE(gen_tokenizer_free(tokenizer));
}

static void encode_with_model(const void* with) {
  (void)with;
  encode(gen_model_tokenizer(model));
}

static void estimate(const void* with) {
  gen_options* options = NULL;
  gen_memory_estimate* foretold = NULL;
  MAKE(options, gen_options_new(&options, E));
  for (const char* const* option = with; *option != NULL; option += 2)
    TRY(gen_options_set(options, option[0], option[1], E));
  MAKE(foretold, gen_estimate_memory(sweep_model, NULL, options, &foretold, E));
  size_t bytes[4];
  TRY(gen_memory_estimate_get(foretold, "weights", &bytes[0], E));
  TRY(gen_memory_estimate_get(foretold, "cache", &bytes[1], E));
  TRY(gen_memory_estimate_get(foretold, "workspace", &bytes[2], E));
  TRY(gen_memory_estimate_get(foretold, "peak", &bytes[3], E));
  SAME(bytes, sizeof bytes);
  FREE(gen_memory_estimate_free(foretold));
  FREE(gen_options_free(options));
}

static void quantize(const void* with) {
  (void)with;
  const char* path = scratch("quantised.gguf");
  TRY(gen_model_quantize(sweep_model, path, "Q4_0", NULL, NULL, E));
  SAME_FILE(path);
  gen_quantize_options* options = NULL;
  MAKE(options, gen_quantize_options_new(&options, E));
  TRY(gen_quantize_options_set(options, "types", "*attn_v.weight=Q8_0,*=IQ4_NL", E));
  char described[2048];
  size_t n = 0;
  TRY(gen_quantize_options_describe(options, described, sizeof described, &n, E));
  SAME(described, n);
  TRY(gen_model_quantize_with(sweep_model, path, "Q2_0", options, NULL, NULL, E));
  SAME_FILE(path);
  FREE(gen_quantize_options_free(options));
}

static void importance(const void* with) {
  (void)with;
  const int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7};
  const char* path = scratch("importance.gguf");
  TRY(gen_model_importance(model, tokens, 7, 4, "text", path, NULL, NULL, E));
  SAME_FILE(path);
}

/* Outside of the scratch folder, in which nothing may be left. */
static char adapter_path[64];
static void begin_adapters(const void* with) {
  begin(with);
  snprintf(adapter_path, sizeof adapter_path, "/tmp/generate_sweep_%ld.gguf", (long)getpid());
  if (!write_adapter(adapter_path, model, "blk.0.attn_q.weight", 1.0F)) abort();
}
static void end_adapters(const void* with) {
  remove(adapter_path);
  end(with);
}

static void adapters(const void* with) {
  (void)with;
  char name[64];
  size_t n = 0;
  TRY_KEEPING(gen_adapter_load(model, adapter_path,
                               "an adapter whose name is longer than short ones", 1.0F, E),
              CHECK(gen_adapter_count(model) == 0));
  TRY(gen_adapter_name(model, 0, name, sizeof name, &n, E));
  SAME(name, n);
  TRY_KEEPING(gen_adapter_set_budget(model, 1, E), CHECK(gen_adapter_count(model) == 1));
  TRY_KEEPING(gen_adapter_load(model, adapter_path, "another", 1.0F, E),
              CHECK(gen_adapter_count(model) == 1));
  TRY_KEEPING(gen_model_memory(model, "weights", &n, E), CHECK(n == 0));
  SAME(&n, sizeof n);
  TRY(gen_adapter_unload(model, "an adapter whose name is longer than short ones", E));
  TRY(gen_adapter_unload(model, "another", E));
}

static void merge(const void* with) {
  (void)with;
  const char* path = scratch("merged.gguf");
  TRY(gen_adapter_merge(sweep_model, adapter_path, 1.0F, path, NULL, NULL, NULL, E));
  SAME_FILE(path);
  TRY(gen_adapter_merge(sweep_model, adapter_path, 0.5F, path, "Q4_0", NULL, NULL, E));
  SAME_FILE(path);
}

static void describe(const void* with) {
  (void)with;
  static char buf[16384];
  size_t n = 0;
#define DESCRIBE(call) \
  TRY(call);           \
  SAME(buf, n)
  DESCRIBE(gen_model_describe(model, buf, sizeof buf, &n, E));
  DESCRIBE(gen_build_info(buf, sizeof buf, &n, E));
  DESCRIBE(gen_kv_kind_describe(buf, sizeof buf, &n, E));
  DESCRIBE(gen_metrics_describe(buf, sizeof buf, &n, E));
  DESCRIBE(gen_device_describe("cpu", 0, buf, sizeof buf, &n, E));
  DESCRIBE(gen_model_config_describe(gen_model_get_config(model), buf, sizeof buf, &n, E));
  for (size_t i = 0; i < gen_model_metadata_count(model); ++i) {
    const char* key = gen_model_metadata_key(model, i);
    if (strstr(key, "tokenizer") != NULL) continue; /* long */
    DESCRIBE(gen_model_metadata_value(model, key, buf, sizeof buf, &n, E));
  }
  TRY(gen_backend_available("cpu", E));
  CHECK(gen_device_count("cpu") == 1);
  size_t bytes = 0;
  TRY(gen_model_memory(model, "weights", &bytes, E));
  SAME(&bytes, sizeof bytes);
  const int32_t tokens[] = {1, 2, 3, 4, 5};
  const size_t lengths[] = {2, 3};
  int32_t padded[6];
  TRY(gen_pad_left(tokens, lengths, 2, 0, padded, 6, &n, E));
  SAME(padded, sizeof padded);
}

static void profile(const void* with) {
  (void)with;
  const int32_t tokens[] = {1, 2, 3};
  const int32_t sequences[] = {0, 0, 1};
  const uint8_t wants[] = {0, 1, 1};
  static float logits[2 * MOST_VOCAB];
  kv_cache* caches[2];
  gen_profile* times = NULL;
  for (int i = 0; i < 2; ++i) MAKE(caches[i], kv_cache_fp16_new(2, 16, &caches[i], E));
  MAKE(times, gen_profile_new(&times, E));
  TRY_KEEPING(gen_model_forward_batch(model, tokens, sequences, wants, 3, caches, 2, logits,
                                      2 * MOST_VOCAB, E),
              CHECK(kv_cache_seq_len(caches[0]) == 0 && kv_cache_seq_len(caches[1]) == 0));
  SAME(logits,
       sizeof(float) * 2 * (size_t)gen_model_config_vocab_size(gen_model_get_config(model)));
  const int32_t layers[] = {1, GEN_HIDDEN_NORMED};
  static float hidden[2 * 3 * MOST_VOCAB];
  const int32_t before = kv_cache_seq_len(caches[0]);
  TRY_KEEPING(gen_model_forward_hidden(model, tokens, 3, caches[0], layers, 2, hidden,
                                       sizeof hidden / sizeof *hidden, E),
              CHECK(kv_cache_seq_len(caches[0]) == before));
  SAME(hidden,
       sizeof(float) * 2 * 3 * (size_t)gen_model_config_hidden(gen_model_get_config(model)));
  double seconds = 0;
  int complete = 0;
  while (!complete) { /* a profile without memory says so for ever */
    for (int i = 0; i < 2; ++i) TRY(kv_cache_reset(caches[i], E));
    TRY_KEEPING(gen_model_forward_profiled(model, tokens, sequences, wants, 3, caches, 2, logits,
                                           2 * MOST_VOCAB, times, E),
                CHECK(kv_cache_seq_len(caches[0]) == 0 && kv_cache_seq_len(caches[1]) == 0));
    const gen_status status = gen_profile_get(times, 0, "seconds", &seconds, E);
    complete = status == GEN_OK;
    if (complete) break;
    if (!sweep_was_refused()) sweep_refused(__FILE__, __LINE__, "gen_profile_get", status);
    FREE(gen_profile_free(times));
    MAKE(times, gen_profile_new(&times, E));
  }
  SAME(logits,
       sizeof(float) * 2 * (size_t)gen_model_config_vocab_size(gen_model_get_config(model)));
  for (size_t i = 0; i < gen_profile_count(times); ++i)
    TRY(gen_profile_get(times, i, "seconds", &seconds, E));
  size_t length = 0;
  TRY(gen_profile_chrome_trace(times, NULL, 0, &length, E));
  FREE(gen_profile_free(times));
  for (int i = 0; i < 2; ++i) FREE(kv_cache_free(caches[i]));
}

static const char *const plain[] = {NULL}, *const table[] = {"table", "", "threads", "1", NULL},
                         *const copied[] = {"mmap", "0", "threads", "2", "repack", "0", NULL},
                         *const checked[] = {"check_tensors", "1",  "threads", "1",
                                             "max_seq_len",   "40", NULL},
                         *const in_place[] = {"repack", "0", "threads", "1", "table", "", NULL},
                         *const from_memory[] = {"memory", "", "threads", "1", NULL};
static const char *const q4[] = {"kv_dtype", "q4", NULL}, *const paged[] = {"paged_kv", "8,16",
                                                                            "prefix_cache", "64",
                                                                            NULL};

const scenario model_scenarios[] = {{"load", NULL, load, NULL, table},
                                    {"load with as many threads as CPUs", NULL, load, NULL, plain},
                                    {"load without mmap", NULL, load, NULL, copied},
                                    {"load with checks", NULL, load, NULL, checked},
                                    {"load without repacking", NULL, load, NULL, in_place},
                                    {"load from memory", NULL, load, NULL, from_memory},
                                    {"thread pool", NULL, pool, NULL, NULL},
                                    {"load a tokenizer", NULL, load_tokenizer, NULL, NULL},
                                    {"encode", begin, encode_with_model, end, NULL},
                                    {"estimate", NULL, estimate, NULL, plain},
                                    {"estimate q4", NULL, estimate, NULL, q4},
                                    {"estimate paged", NULL, estimate, NULL, paged},
                                    {"quantize", NULL, quantize, NULL, NULL},
                                    {"importance", begin, importance, end, NULL},
                                    {"adapters", begin_adapters, adapters, end_adapters, NULL},
                                    {"merge", begin_adapters, merge, end_adapters, NULL},
                                    {"describe", begin, describe, end, NULL},
                                    {"forward", begin, profile, end, NULL},
                                    {0}};

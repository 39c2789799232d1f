/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the caller's allocator does not count is small: of weights, scratch memory, keys and values
 * nothing comes from the process' own heap, which holds vocabularies, tokens and texts.
 *
 *   memory_uncounted_test MODEL
 */
#include <stdio.h>
#include <stdlib.h>

#include <generate/generate.h>

#include "failing_memory.h"
#include "status_record.h"

static gen_error error;
static int failed;

#define MUST(call)                                       \
  do {                                                   \
    if ((call) != GEN_OK) {                              \
      fprintf(stderr, "%s: %s\n", #call, error.message); \
      exit(1);                                           \
    }                                                    \
  } while (0)

static void expect_at_most(const char* what, long bytes, long most) {
  printf("%s: %ld bytes of the heap, at most %ld\n", what, bytes, most);
  failed |= bytes > most;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IONBF, 0);
  static int32_t tokens[1000];
  for (int32_t i = 0; i < 1000; ++i) tokens[i] = 300 + i % 700;
  const long before = failing_live_bytes();
  failing_peak_bytes();
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  MUST(gen_model_options_new(&options, &error));
  MUST(gen_model_options_set_threads(options, 1, &error));
  MUST(gen_model_options_set_allocator(options, &failing_table, &error));
  MUST(gen_model_load(argv[1], options, &model, &error));
  gen_model_options_free(options);
  const long vocab = gen_model_config_vocab_size(gen_model_get_config(model));
  /* A token's text is there a few times: as the file has it, as bytes, and in tables to find it. */
  const long texts = vocab * 200;
  expect_at_most("loading", failing_peak_bytes() - before, texts);
  expect_at_most("a loaded model", failing_live_bytes() - before, texts);

  static const char* const kinds[][2] = {{"kv_dtype", "fp32"},
                                         {"kv_dtype", "q4"},
                                         {"paged_kv", "16,16"},
                                         {"compressed_kv", "8"},
                                         {"tiered_kv", "3"}};
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; ++kind) {
    gen_options* with = NULL;
    gen_generator* generator = NULL;
    gen_session* session = NULL;
    gen_sampling* sampling = NULL;
    gen_result* result = NULL;
    const long loaded = failing_live_bytes();
    const size_t table = failing_table_bytes();
    failing_peak_bytes();
    MUST(gen_options_new(&with, &error));
    MUST(gen_options_set(with, kinds[kind][0], kinds[kind][1], &error));
    MUST(gen_create(model, with, &generator, &error));
    gen_options_free(with);
    MUST(gen_session_new(generator, &session, &error));
    MUST(gen_session_append_tokens(session, tokens, 1000, &error));
    MUST(gen_sampling_new(&sampling, &error));
    MUST(gen_sampling_set_ignore_eos(sampling, 1, &error));
    MUST(gen_session_generate(session, "", 0, sampling, &result, &error));
    /* Logits, candidates and their order, tokens, tables of blocks and of steps. */
    expect_at_most(kinds[kind][1], failing_peak_bytes() - loaded, vocab * 40 + 200000);
    if (failing_table_bytes() < table + 100000) {
      printf("the allocator has only %zu bytes more\n", failing_table_bytes() - table);
      failed = 1;
    }
    gen_result_free(result);
    gen_sampling_free(sampling);
    gen_session_free(session);
    gen_free(generator);
  }
  gen_model_free(model);

  /* Not counted either: what takes too long for the sweep. */
  double peak = 0;
  failing_arm(SOURCE_HEAP, 1, 1);
  const gen_status status = gen_measure_peaks(1, "dot_i8", &peak, &error);
  failing_disarm();
  failed |= status != GEN_ERROR_OUT_OF_MEMORY;
  return failed;
}

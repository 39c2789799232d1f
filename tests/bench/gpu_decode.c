/* SPDX-License-Identifier: Apache-2.0 */
/* What gpu.sh runs end to end: prefill and decode of a model on a backend, through the C API.
 *   gpu_decode BACKEND MODEL.gguf PROMPT_TOKENS TOKENS RESULTS
 * A line of the table, a line of JSON at the end of RESULTS. Ends with 3 if the machine refuses. */
#include <generate/generate.h>
#include <stdio.h>
#include <stdlib.h>

static gen_error error;

static int refused(const char* what) {
  printf("%-20s refused: %s\n", what, error.message);
  return 3;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fputs("usage: gpu_decode BACKEND MODEL.gguf PROMPT_TOKENS TOKENS RESULTS\n", stderr);
    return 2;
  }
  const int32_t prompt = (int32_t)atoi(argv[3]);
  const int32_t tokens = (int32_t)atoi(argv[4]);
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  gen_sampling* sampling = NULL;
  gen_result* result = NULL;
  int32_t* ids = calloc((size_t)(prompt > 0 ? prompt : 1), sizeof(int32_t));
  if (ids == NULL) return 1;
  for (int32_t i = 0; i < prompt; ++i) ids[i] = 3 + i % 200;
  if (gen_model_options_new(&options, &error) != GEN_OK ||
      gen_model_options_set_backend(options, argv[1], &error) != GEN_OK ||
      gen_model_load(argv[2], options, &model, &error) != GEN_OK) {
    return refused("load");
  }
  if (gen_create(model, NULL, &generator, &error) != GEN_OK || gen_session_new(generator, &session, &error) != GEN_OK ||
      gen_sampling_new(&sampling, &error) != GEN_OK || gen_sampling_set_temperature(sampling, 0.0F, &error) != GEN_OK ||
      gen_sampling_set_ignore_eos(sampling, 1, &error) != GEN_OK ||
      gen_sampling_set_max_new_tokens(sampling, tokens, &error) != GEN_OK) {
    return refused("session");
  }
  /* The first run fills caches of kernels and memory; the second counts. */
  double prefill = 0.0, decode = 0.0;
  for (int round = 0; round < 2; ++round) {
    gen_result_free(result);
    result = NULL;
    if (gen_session_reset(session, &error) != GEN_OK ||
        gen_session_append_tokens(session, ids, (size_t)prompt, &error) != GEN_OK ||
        gen_session_generate(session, "", 0, sampling, &result, &error) != GEN_OK) {
      return refused("generate");
    }
    if (gen_result_timings(result, "prefill", &prefill, &error) != GEN_OK ||
        gen_result_timings(result, "decode", &decode, &error) != GEN_OK) {
      return refused("timings");
    }
  }
  printf("%-20s prefill %9.1f tokens/s   decode %9.1f tokens/s\n", argv[1], prompt / prefill, (tokens - 1) / decode);
  FILE* file = fopen(argv[5], "a");
  if (file != NULL) {
    fprintf(file, "{\"part\":\"generate\",\"model\":\"%s\",\"backend\":\"%s\",\"prompt\":%d,\"tokens\":%d,\"prefill_s\":%.9g,\"decode_s\":%.9g}\n",
            argv[2], argv[1], prompt, tokens, prefill, decode);
    fclose(file);
  }
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
  gen_model_options_free(options);
  free(ids);
  return 0;
}

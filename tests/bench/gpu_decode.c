/* SPDX-License-Identifier: Apache-2.0 */
/* What gpu.sh runs end to end: prefill and decode of a model on a backend, through the C API.
 *   gpu_decode BACKEND MODEL.gguf PROMPT_TOKENS TOKENS RESULTS [TEXTS [deterministic]]
 * The model is loaded twice, since the first time the device is made ready; the second counts. Beside it stands at what
 * rate the file is read, by as many threads as there are CPUs, up to 16.
 * TEXTS, 1 if not said, run side by side; decode counts the tokens of all of them.
 * A line of the table, a line of JSON at the end of RESULTS. Ends with 3 if the machine refuses.
 *   GEN_LOG            environment variable: what the library logs goes to standard error
 *   GEN_MEGAKERNEL, GEN_PAIRS  environment variables: told in the table and in RESULTS
 *   GEN_GPU_READ_RATE  environment variable: bytes a second; the table tells at what share of it one text's tokens read
 *                      the weights */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, pread */
#include <fcntl.h>
#include <generate/generate.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kMaxTexts = 256 };

static gen_error error;

static int refused(const char* what) {
  printf("%-20s refused: %s\n", what, error.message);
  return 3;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

enum { kMaxReaders = 16, kReadBytes = 4 << 20 };

/* A thread that reads every n-th piece of a file. */
typedef struct reader {
  pthread_t thread;
  int file, first, n;
  off_t bytes;
  int failed;
} reader;

static void* read_pieces(void* given) {
  reader* const own = given;
  char* const to = malloc(kReadBytes);
  own->failed = to == NULL;
  for (off_t at = (off_t)own->first * kReadBytes; at < own->bytes && !own->failed; at += (off_t)own->n * kReadBytes) {
    own->failed = pread(own->file, to, kReadBytes, at) <= 0;
  }
  free(to);
  return NULL;
}

/* Bytes a second; 0 if it cannot be read. */
static double read_rate(const char* path) {
  reader readers[kMaxReaders];
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  const int n = cpus < 1 ? 1 : cpus > kMaxReaders ? kMaxReaders : (int)cpus;
  const int file = open(path, O_RDONLY);
  struct stat about;
  if (file < 0) return 0.0;
  int failed = fstat(file, &about) != 0;
  int begun = 0;
  const double begin = now();
  for (; begun < n && !failed; ++begun) {
    readers[begun] = (reader){.file = file, .first = begun, .n = n, .bytes = about.st_size};
    failed = pthread_create(&readers[begun].thread, NULL, read_pieces, &readers[begun]) != 0;
    if (failed) break;
  }
  for (int i = 0; i < begun; ++i) {
    pthread_join(readers[i].thread, NULL);
    failed = failed || readers[i].failed;
  }
  const double seconds = now() - begin;
  close(file);
  return failed ? 0.0 : (double)about.st_size / seconds;
}

/* All texts once; the longest times of any of them. */
static int run(gen_generator* generator, const gen_request* const* requests, size_t texts, double* prefill,
               double* decode) {
  gen_result* results[kMaxTexts];
  if (gen_batch_generate(generator, requests, texts, results, &error) != GEN_OK) return refused("generate");
  *prefill = *decode = 0.0;
  int failed = 0;
  for (size_t i = 0; i < texts; ++i) {
    double seconds = 0.0;
    const gen_error* const why = gen_result_error(results[i]);
    if (why != NULL) {
      error = *why;
      failed = 1;
    }
    if (gen_result_timings(results[i], "prefill", &seconds, NULL) == GEN_OK && seconds > *prefill) *prefill = seconds;
    if (gen_result_timings(results[i], "decode", &seconds, NULL) == GEN_OK && seconds > *decode) *decode = seconds;
    gen_result_free(results[i]);
  }
  return failed ? refused("generate") : 0;
}

static void show(void* user, int32_t level, const char* line) {
  (void)user;
  fprintf(stderr, "%d: %s\n", level, line);
}

int main(int argc, char** argv) {
  if (argc < 6 || argc > 8) {
    fputs("usage: gpu_decode BACKEND MODEL.gguf PROMPT_TOKENS TOKENS RESULTS [TEXTS [deterministic]]\n", stderr);
    return 2;
  }
  const int32_t prompt = (int32_t)atoi(argv[3]);
  const int32_t tokens = (int32_t)atoi(argv[4]);
  const int32_t texts = argc > 6 ? (int32_t)atoi(argv[6]) : 1;
  const int32_t deterministic = argc > 7 && strcmp(argv[7], "deterministic") == 0;
  if (prompt < 1 || tokens < 2 || texts < 1 || texts > kMaxTexts) return 2;
  if (getenv("GEN_LOG") != NULL) {
    gen_log_set_callback(show, NULL);
    gen_log_set_level(GEN_LOG_DEBUG);
  }
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  gen_options* settings = NULL;
  gen_generator* generator = NULL;
  gen_sampling* sampling = NULL;
  gen_request* requests[kMaxTexts] = {NULL};
  int32_t* ids = calloc((size_t)prompt, sizeof(int32_t));
  if (ids == NULL) return 1;
  if (gen_backend_available(argv[1], &error) != GEN_OK) return refused("backend");
  if (gen_model_options_new(&options, &error) != GEN_OK ||
      gen_model_options_set_backend(options, argv[1], &error) != GEN_OK ||
      gen_model_options_set_max_seq_len(options, prompt + tokens, &error) != GEN_OK) {
    return refused("options");
  }
  const double file_rate = read_rate(argv[2]);
  double first_load = 0.0, load = 0.0; /* seconds */
  for (int round = 0; round < 2; ++round) {
    gen_model_free(model);
    const double begin = now();
    if (gen_model_load(argv[2], options, &model, &error) != GEN_OK) return refused("load");
    *(round == 0 ? &first_load : &load) = now() - begin;
  }
  if (gen_options_new(&settings, &error) != GEN_OK || gen_options_set_max_batch(settings, texts, &error) != GEN_OK ||
      gen_options_set_deterministic(settings, deterministic, &error) != GEN_OK ||
      gen_create(model, settings, &generator, &error) != GEN_OK || gen_sampling_new(&sampling, &error) != GEN_OK ||
      gen_sampling_set_temperature(sampling, 0.0F, &error) != GEN_OK ||
      gen_sampling_set_ignore_eos(sampling, 1, &error) != GEN_OK ||
      gen_sampling_set_max_new_tokens(sampling, tokens, &error) != GEN_OK) {
    return refused("generator");
  }
  for (int32_t text = 0; text < texts; ++text) {
    for (int32_t i = 0; i < prompt; ++i) ids[i] = 3 + (i + 17 * text) % 200;
    if (gen_request_new(&requests[text], &error) != GEN_OK ||
        gen_request_set_prompt_tokens(requests[text], ids, (size_t)prompt, &error) != GEN_OK ||
        gen_request_set_sampling(requests[text], sampling, &error) != GEN_OK) {
      return refused("request");
    }
  }
  /* The first run fills caches of kernels and memory; the second counts. */
  double prefill = 0.0, decode = 0.0;
  for (int round = 0; round < 2; ++round) {
    const int status = run(generator, (const gen_request* const*)requests, (size_t)texts, &prefill, &decode);
    if (status != 0) return status;
  }
  size_t weights = 0;   /* bytes that a token reads */
  size_t on_device = 0; /* bytes */
  if (gen_model_memory(model, "stream", &weights, &error) != GEN_OK ||
      gen_model_memory(model, "weights", &on_device, &error) != GEN_OK) {
    return refused("memory");
  }
  printf("%-6s %3d texts%s  load %6.2f GB/s (file %.2f, first %.2f)  prefill %9.1f tokens/s   decode %9.1f tokens/s", argv[1], texts,
         deterministic ? ", deterministic" : "", (double)on_device / load * 1e-9, file_rate * 1e-9,
         (double)on_device / first_load * 1e-9, (double)prompt * texts / prefill,
         (double)(tokens - 1) * texts / decode);
  const char* const megakernel = getenv("GEN_MEGAKERNEL");
  if (megakernel != NULL) printf("  megakernel %s", megakernel);
  const char* const pairs = getenv("GEN_PAIRS");
  if (pairs != NULL) printf("  pairs %s", pairs);
  const char* const most = getenv("GEN_GPU_READ_RATE");
  if (most != NULL && texts == 1) {
    printf(" %4.0f %%", 100.0 * (double)weights * (double)(tokens - 1) / decode / atof(most));
  }
  printf("\n");
  FILE* file = fopen(argv[5], "a");
  if (file != NULL) {
    fprintf(file,
            "{\"part\":\"generate\",\"model\":\"%s\",\"backend\":\"%s\",\"prompt\":%d,\"tokens\":%d,\"texts\":%d,"
            "\"deterministic\":%d,\"megakernel\":\"%s\",\"pairs\":\"%s\",\"weights\":%zu,\"load_bytes\":%zu,\"load_s\":%.9g,"
            "\"first_load_s\":%.9g,\"file_bytes_per_s\":%.9g,"
            "\"prefill_s\":%.9g,\"decode_s\":%.9g}\n",
            argv[2], argv[1], prompt, tokens, texts, deterministic,
            megakernel != NULL ? megakernel : "auto", pairs != NULL ? pairs : "on", weights, on_device, load, first_load, file_rate, prefill,
            decode);
    fclose(file);
  }
  for (int32_t text = 0; text < texts; ++text) gen_request_free(requests[text]);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_options_free(settings);
  gen_model_free(model);
  gen_model_options_free(options);
  free(ids);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of model.h: options, files and memory, what is refused, files that change, progress. */
#define _DEFAULT_SOURCE /* syscall */
#include "api_test.h"
#include <unistd.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

typedef struct {
  double last;
  int calls;
  int falls;
  double stop_at;
} Progress;

static int on_progress(void* user, double share) {
  Progress* p = user;
  if (share < p->last || share < 0 || share > 1) ++p->falls;
  p->last = share;
  ++p->calls;
  return share >= p->stop_at;
}

static void options_check_and_describe(void** state) {
  (void)state;
  gen_model_options* o = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  size_t before = 0;
  size_t after = 0;
  assert_ok(gen_model_options_describe(o, NULL, 0, &before, &error), error);
  assert_fails(gen_model_options_set_backend(o, "abacus", &error), bad, "abacus", error);
  assert_fails(gen_model_options_set_backend(o, NULL, &error), bad, "name", error);
  assert_fails(gen_model_options_set_device(o, -1, &error), bad, "device", error);
  assert_fails(gen_model_options_set_gpu_layers(o, -3, &error), bad, "gpu_layers", error);
  assert_fails(gen_model_options_set_gpu_expert_layers(o, -3, &error), bad, "gpu_expert_layers",
               error);
  assert_fails(gen_model_options_set(o, "gpu_expert_layers", "some", &error), bad,
               "gpu_expert_layers: \"some\" is not all, auto or a whole number from 0", error);
  assert_fails(gen_model_options_set(o, "gpu_layers", "most", &error), bad,
               "gpu_layers: \"most\" is not all, auto or a whole number from 0", error);
  assert_fails(gen_model_options_set(o, "gpu_layers", "-3", &error), bad,
               "gpu_layers: \"-3\" is not all, auto or a whole number from 0", error);
  assert_fails(gen_model_options_set_threads(o, -1, &error), bad, "threads", error);
  assert_fails(gen_model_options_set_threads(o, 1025, &error), bad, "1024", error);
  assert_fails(gen_model_options_set_max_seq_len(o, -1, &error), bad, "max_seq_len", error);
  assert_fails(gen_model_options_set(o, "speed", "9", &error), bad, "speed", error);
  assert_fails(gen_model_options_set(o, "threads", "two", &error), bad, "two", error);
  assert_fails(gen_model_options_set(o, "mmap", "2", &error), bad, "2", error);
  assert_fails(gen_model_options_set(o, NULL, "2", &error), bad, "key", error);
  gen_allocator table = {0};
  assert_fails(gen_model_options_set_allocator(o, &table, &error), bad, "struct_size", error);
  table.struct_size = sizeof table;
  assert_fails(gen_model_options_set_allocator(o, &table, &error), bad, "allocate", error);
  assert_ok(gen_model_options_describe(o, NULL, 0, &after, &error), error);
  assert_int_equal(after, before);

  assert_ok(gen_model_options_set(o, "threads", "3", &error), error);
  assert_ok(gen_model_options_set(o, "backend", "cpu", &error), error);
  assert_ok(gen_model_options_set(o, "device", "0", &error), error);
  assert_ok(gen_model_options_set(o, "gpu_expert_layers", "auto", &error), error);
  assert_ok(gen_model_options_set(o, "gpu_expert_layers", "all", &error), error);
  assert_ok(gen_model_options_set(o, "gpu_layers", "7", &error), error);
  assert_ok(gen_model_options_set(o, "gpu_layers", "all", &error), error);
  assert_ok(gen_model_options_set(o, "gpu_layers", "auto", &error), error);
  assert_ok(gen_model_options_set(o, "mmap", "false", &error), error);
  assert_ok(gen_model_options_set(o, "max_seq_len", "64", &error), error);
  assert_ok(gen_model_options_set(o, "check_tensors", "1", &error), error);
  char text[4096];
  assert_ok(gen_model_options_describe(o, text, sizeof text, &after, &error), error);
  assert_non_null(strstr(text, "\"value\":\"3\""));
  assert_non_null(strstr(text, "\"value\":\"64\""));
  assert_fails(gen_model_options_describe(o, text, 10, &after, &error), GEN_ERROR_OUT_OF_RANGE,
               "do not fit", error);
  gen_model* model = NULL;
  assert_ok(gen_model_load(DRAFT_MODEL, o, &model, &error), error);
  assert_int_equal(gen_model_config_max_seq_len(gen_model_get_config(model)), 64);
  gen_model_free(model);

  assert_int_equal(gen_model_options_new(NULL, NULL), bad);
  assert_int_equal(gen_model_options_set_backend(NULL, "cpu", NULL), bad);
  assert_int_equal(gen_model_options_set_device(NULL, 0, NULL), bad);
  assert_int_equal(gen_model_options_set_gpu_layers(NULL, 1, NULL), bad);
  assert_int_equal(gen_model_options_set_gpu_expert_layers(NULL, 1, NULL), bad);
  assert_int_equal(gen_model_options_set_threads(NULL, 1, NULL), bad);
  assert_int_equal(gen_model_options_set_thread_pool(NULL, NULL, NULL), bad);
  assert_int_equal(gen_model_options_set_allocator(NULL, NULL, NULL), bad);
  assert_int_equal(gen_model_options_set_mmap(NULL, 0, NULL), bad);
  assert_int_equal(gen_model_options_set_mlock(NULL, 1, NULL), bad);
  assert_int_equal(gen_model_options_set_progress(NULL, NULL, NULL, NULL), bad);
  assert_int_equal(gen_model_options_set_max_seq_len(NULL, 0, NULL), bad);
  assert_int_equal(gen_model_options_set_check_tensors(NULL, 0, NULL), bad);
  assert_int_equal(gen_model_options_set(NULL, "threads", "1", NULL), bad);
  assert_int_equal(gen_model_options_describe(NULL, NULL, 0, &after, NULL), bad);
  gen_model_options_free(NULL);
  gen_model_options_free(o);
}

static void load_refuses(void** state) {
  (void)state;
  gen_model* model = (gen_model*)&error;
  assert_fails(gen_model_load("no/such/model.gguf", NULL, &model, &error), GEN_ERROR_IO,
               "no/such/model.gguf", error);
  assert_null(model);
  assert_fails(gen_model_load(GEN_TEST_SOURCE_DIR, NULL, &model, &error), GEN_ERROR_IO, "directory",
               error);
  assert_fails(gen_model_load(GEN_TEST_SOURCE_DIR "/LICENSE", NULL, &model, &error),
               GEN_ERROR_FORMAT, "magic", error);
  assert_fails(gen_model_load(NULL, NULL, &model, &error), bad, "path", error);
  assert_fails(gen_model_load(DRAFT_MODEL, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_model_load_memory(NULL, 1, NULL, &model, &error), bad, "data", error);
  assert_fails(gen_model_load_memory("GG", 2, NULL, &model, &error), GEN_ERROR_FORMAT, "", error);

  gen_model_options* o = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(o, 1 << 20, &error), error);
  assert_fails(gen_model_load(DRAFT_MODEL, o, &model, &error), GEN_ERROR_OUT_OF_RANGE, "1048576",
               error);
  assert_ok(gen_model_options_set_max_seq_len(o, 0, &error), error);
  assert_ok(gen_model_options_set_device(o, 3, &error), error);
  assert_fails(gen_model_load(DRAFT_MODEL, o, &model, &error), GEN_ERROR_OUT_OF_RANGE, "device 3",
               error);
  assert_null(model);
  gen_model_options_free(o);
  gen_model_free(NULL);
}

/* A message that happens to hold the path's letters names the file all the same. */
static void failures_name_the_file(void** state) {
  (void)state;
  char folder[] = "/tmp/gen-model-test-XXXXXX";
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  FILE* file = fopen("t", "wb");
  assert_true(fputs("nothing of use", file) >= 0);
  fclose(file);
  gen_model* model = NULL;
  gen_tokenizer* tokenizer = NULL;
  assert_fails(gen_model_load("t", NULL, &model, &error), GEN_ERROR_FORMAT, "t: magic", error);
  assert_fails(gen_model_quantize("t", "out", "Q8_0", NULL, NULL, &error), GEN_ERROR_FORMAT,
               "t: magic", error);
  assert_fails(gen_tokenizer_load("t", &tokenizer, &error), GEN_ERROR_FORMAT, "t: ", error);
  assert_fails(gen_tokenizer_load_with("t", NULL, &tokenizer, &error), GEN_ERROR_FORMAT,
               "t: ", error);
  gen_memory_estimate* estimate = NULL;
  assert_fails(gen_estimate_memory("t", NULL, NULL, &estimate, &error), GEN_ERROR_FORMAT,
               "t: magic", error);
  assert_int_equal(unlink("t"), 0);
  assert_int_equal(chdir(before), 0);
  assert_int_equal(rmdir(folder), 0);
}

/* Writes the bytes to a file and asks all that read models. */
static void assert_unknown(const unsigned char* bytes, size_t size, const char* part, int to_model,
                           int to_quantize, int to_tokenizer) {
  char path[] = "/tmp/gen-model-test-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, bytes, size), size);
  close(file);
  const gen_status wanted = GEN_ERROR_UNSUPPORTED;
  gen_model* model = NULL;
  gen_tokenizer* tokenizer = NULL;
  gen_memory_estimate* estimate = NULL;
  char out[64];
  snprintf(out, sizeof out, "%s.out", path);
  if (to_model) {
    assert_fails(gen_model_load(path, NULL, &model, &error), wanted, part, error);
    assert_fails(gen_model_load_memory(bytes, size, NULL, &model, &error), wanted, part, error);
    assert_fails(gen_estimate_memory(path, NULL, NULL, &estimate, &error), wanted, part, error);
  }
  if (to_quantize) {
    assert_fails(gen_model_quantize(path, out, "Q4_0", NULL, NULL, &error), wanted, part, error);
    assert_int_equal(access(out, F_OK), -1);
  }
  if (to_tokenizer) {
    assert_fails(gen_tokenizer_load(path, &tokenizer, &error), wanted, part, error);
  }
  assert_true(model == NULL && tokenizer == NULL && estimate == NULL);
  assert_int_equal(unlink(path), 0);
}

static unsigned char* find(unsigned char* bytes, size_t size, const char* text) {
  const size_t length = strlen(text);
  for (size_t i = 0; i + length <= size; ++i) {
    if (memcmp(bytes + i, text, length) == 0) return bytes + i;
  }
  fail_msg("%s is not in the file", text);
  return NULL;
}

static void what_is_not_known_is_named(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  unsigned char* at = find(bytes, size, "tokenizer.ggml.model");
  unsigned char* kind = find(at, size - (size_t)(at - bytes), "llama");
  memcpy(kind, "lambo", 5);
  assert_unknown(bytes, size, "lambo", 1, 0, 1);
  memcpy(kind, "llama", 5);
  /* A tensor's name, two dimensions, its format. */
  at = find(bytes, size, "token_embd.weight") + strlen("token_embd.weight");
  assert_int_equal(at[0], 2);
  at[4 + 2 * 8] = 199;
  assert_unknown(bytes, size, "token_embd.weight", 1, 1, 0);
  free(bytes);
}

/* What options ask for is refused by all that load. */
static void options_that_cannot_be_followed(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  gen_model_options* o = NULL;
  gen_model* model = NULL;
  gen_memory_estimate* estimate = NULL;
  Progress stop = {0, 0, 0, 0};
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_progress(o, on_progress, &stop, &error), error);
  assert_fails(gen_model_load_memory(bytes, size, o, &model, &error), GEN_ERROR_CANCELLED, "",
               error);
  assert_ok(gen_estimate_memory(DRAFT_MODEL, o, NULL, &estimate, &error), error); /* not called */
  gen_memory_estimate_free(estimate);
  assert_ok(gen_model_options_set_progress(o, NULL, NULL, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(o, 1 << 20, &error), error);
  assert_fails(gen_model_load_memory(bytes, size, o, &model, &error), GEN_ERROR_OUT_OF_RANGE,
               "1048576", error);
  assert_fails(gen_estimate_memory(DRAFT_MODEL, o, NULL, &estimate, &error), GEN_ERROR_OUT_OF_RANGE,
               "1048576", error);
  assert_null(estimate);
  assert_ok(gen_model_options_set(o, "max_seq_len", "0", &error), error);
  assert_ok(gen_model_options_set(o, "pre_tokenizer", "qwen2", &error), error);
  assert_fails(gen_model_load_memory(bytes, size, o, &model, &error), GEN_ERROR_INVALID_ARGUMENT,
               "pre-tokenizer 'qwen2' for a vocabulary of kind 'llama', which has none", error);
  assert_fails(gen_estimate_memory(DRAFT_MODEL, o, NULL, &estimate, &error),
               GEN_ERROR_INVALID_ARGUMENT, "pre-tokenizer 'qwen2'", error);
  assert_ok(gen_model_options_set(o, "pre_tokenizer", "", &error), error);
  assert_ok(gen_model_load_memory(bytes, size, o, &model, &error), error);
  gen_model_free(model);
  gen_model_options_free(o);
  free(bytes);
}

static void unknown_architectures_are_named(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  /* The value of general.architecture is the first "llama" of the file. */
  memcpy(find(bytes, size, "llama"), "lambo", 5);
  assert_unknown(bytes, size, "lambo", 1, 0, 0);
  free(bytes);
}

static void every_truncation_is_an_error(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  for (size_t cut = 0; cut < size; cut += cut < 4096 ? 97 : size / 23) {
    /* A copy of the exact size, so that reading past the end is seen by the address sanitizer. */
    unsigned char* part = malloc(cut + (cut == 0));
    memcpy(part, bytes, cut);
    gen_model* model = NULL;
    const gen_status status = gen_model_load_memory(part, cut, NULL, &model, &error);
    assert_int_equal(status, GEN_ERROR_FORMAT);
    assert_null(model);
    free(part);
  }
  free(bytes);
}

/* Greedy continuation of a fixed token through gen_model_forward; [n] ids. */
static void continuation(const gen_model* model, int32_t* ids, size_t n) {
  const gen_model_config* config = gen_model_get_config(model);
  const int32_t vocab = gen_model_config_vocab_size(config);
  float* logits = malloc(sizeof(float) * (size_t)vocab);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_new(gen_model_config_num_layers(config), 64, &cache, &error), error);
  int32_t token = gen_model_config_bos(config);
  for (size_t i = 0; i < n; ++i) {
    assert_ok(gen_model_forward(model, &token, 1, cache, logits, (size_t)vocab, &error), error);
    token = 0;
    for (int32_t id = 1; id < vocab; ++id) {
      if (logits[id] > logits[token]) token = id;
    }
    ids[i] = token;
  }
  assert_int_equal(kv_cache_seq_len(cache), (int)n);
  kv_cache_free(cache);
  free(logits);
}

static void memory_and_read_loads_equal_the_mapped_one(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  gen_model* from_memory = NULL;
  assert_ok(gen_model_load_memory(bytes, size, NULL, &from_memory, &error), error);
  memset(bytes, 0xAB, size); /* needed only during the call */
  free(bytes);
  gen_model_options* o = NULL;
  gen_model* from_read = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_mmap(o, 0, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, o, &from_read, &error), error);
  gen_model* in_place = NULL;
  assert_ok(gen_model_options_set_mmap(o, 1, &error), error);
  assert_ok(gen_model_options_set(o, "repack", "0", &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, o, &in_place, &error), error);
  gen_model_options_free(o);
  gen_model* mapped = load_draft();
  size_t packed_bytes = 0;
  size_t left_bytes = 0;
  assert_ok(gen_model_memory(mapped, "weights", &packed_bytes, &error), error);
  assert_ok(gen_model_memory(in_place, "weights", &left_bytes, &error), error);
  assert_true(left_bytes * 20 < packed_bytes); /* norms are all that is copied */
  int32_t a[24];
  int32_t b[24];
  int32_t c[24];
  int32_t d[24];
  continuation(from_memory, a, 24);
  continuation(mapped, b, 24);
  continuation(from_read, c, 24);
  continuation(in_place, d, 24);
  assert_memory_equal(a, b, sizeof a);
  assert_memory_equal(a, c, sizeof a);
  assert_memory_equal(a, d, sizeof a);
  gen_model_free(from_memory);
  gen_model_free(from_read);
  gen_model_free(in_place);
  gen_model_free(mapped);
}

/* A file of our own that may be spoiled. */
static const char* copy_of_draft(void) {
  static char path[] = "/tmp/gen-model-test-XXXXXX";
  strcpy(path + strlen(path) - 6, "XXXXXX");
  const int file = mkstemp(path);
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  assert_true(file >= 0);
  assert_int_equal(write(file, bytes, size), size);
  close(file);
  free(bytes);
  return path;
}

/* Under sanitizers mlock does nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCKS 0
#endif
#endif
#ifndef LOCKS
#define LOCKS 1
#endif

/* Bytes of the process that the system holds locked, as it tells. */
static size_t locked_bytes(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  size_t kilobytes = 0;
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmLck: %zu", &kilobytes) == 1) break;
  }
  fclose(file);
  return kilobytes << 10;
}

/* A load of the draft model that locks its weights; NULL where it fails. */
static gen_model* load_locked(const char* use_mmap, const char* repack, gen_error* why) {
  gen_model_options* o = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set(o, "mmap", use_mmap, &error), error);
  assert_ok(gen_model_options_set(o, "repack", repack, &error), error);
  assert_ok(gen_model_options_set_mlock(o, 1, &error), error);
  const gen_status status = gen_model_load(DRAFT_MODEL, o, &model, why);
  gen_model_options_free(o);
  assert_int_equal(status == GEN_OK, model != NULL);
  if (model == NULL) assert_int_equal(status, GEN_ERROR_OUT_OF_MEMORY);
  return model;
}

/* Locked are at least the weights, as long as the model lives, wherever they lie. */
static void weights_can_be_locked(void** state) {
  (void)state;
  if (!LOCKS) skip();
  const size_t before = locked_bytes();
  for (int way = 0; way < 4; ++way) {
    gen_model* model = load_locked(way % 2 ? "1" : "0", way / 2 ? "1" : "0", &error);
    if (model == NULL) { /* this process may lock too little */
      assert_non_null(strstr(error.message, "RLIMIT_MEMLOCK"));
      assert_int_equal(locked_bytes(), before);
      continue;
    }
    size_t stream = 0; /* what a step reads of the products */
    assert_ok(gen_model_memory(model, "stream", &stream, &error), error);
    assert_true(locked_bytes() >= before + stream);
    gen_model_free(model);
    assert_int_equal(locked_bytes(), before);
  }
}

/* Without the right to lock the load fails, says how many bytes it wanted and may have, and locks
 * nothing. */
static void what_may_not_be_locked_is_refused(void** state) {
  (void)state;
  if (!LOCKS) skip();
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    const struct rlimit limit = {8192, 8192};
    if (syscall(SYS_capset, &header, none) != 0 || setrlimit(RLIMIT_MEMLOCK, &limit) != 0) _exit(2);
    gen_error why = {0};
    if (load_locked("1", "1", &why) != NULL) _exit(3);
    if (strstr(why.message, "cannot lock ") == NULL) _exit(4);
    if (strstr(why.message, "limit of the process is 8192 bytes (RLIMIT_MEMLOCK") == NULL) _exit(5);
    if (locked_bytes() != 0) _exit(6);
    gen_model* model = load_draft();
    gen_model_free(model);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* With mmap 0 nothing of the file is looked at after the load, repacked or not. */
static void a_file_that_was_read_may_go(void** state) {
  (void)state;
  int32_t want[12];
  int32_t got[12];
  gen_model* reference = load_draft();
  continuation(reference, want, 12);
  gen_model_free(reference);
  for (int way = 0; way < 4; ++way) {
    const char* path = copy_of_draft();
    gen_model_options* o = NULL;
    gen_model* model = NULL;
    assert_ok(gen_model_options_new(&o, &error), error);
    assert_ok(gen_model_options_set_mmap(o, 0, &error), error);
    assert_ok(gen_model_options_set(o, "repack", way % 2 == 0 ? "1" : "0", &error), error);
    assert_ok(gen_model_load(path, o, &model, &error), error);
    gen_model_options_free(o);
    if (way < 2) {
      assert_int_equal(truncate(path, 0), 0);
    } else {
      size_t size = 0;
      free(read_file(path, &size));
      unsigned char* zeros = calloc(1, size);
      FILE* file = fopen(path, "r+b");
      assert_int_equal(fwrite(zeros, 1, size, file), size);
      fclose(file);
      free(zeros);
    }
    continuation(model, got, 12);
    assert_memory_equal(got, want, sizeof want);
    gen_model_free(model);
    assert_int_equal(unlink(path), 0);
  }
}

/* Whoever renames a new file into a mapped one's place does no harm. */
static void a_mapped_file_may_be_replaced(void** state) {
  (void)state;
  int32_t want[12];
  int32_t got[12];
  const char* path = copy_of_draft();
  gen_model* model = NULL;
  char other[128];
  assert_ok(gen_model_load(path, NULL, &model, &error), error);
  continuation(model, want, 12);
  snprintf(other, sizeof other, "%s.new", path);
  FILE* file = fopen(other, "wb");
  assert_int_equal(fputs("not a model", file) < 0, 0);
  fclose(file);
  assert_int_equal(rename(other, path), 0);
  continuation(model, got, 12);
  assert_memory_equal(got, want, sizeof want);
  assert_int_equal(unlink(path), 0);
  continuation(model, got, 12);
  assert_memory_equal(got, want, sizeof want);
  gen_model_free(model);
}

static int write_once(void* user, double share) {
  char** path = user;
  if (*path == NULL || share <= 0) return 0;
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  assert_int_equal(utimensat(AT_FDCWD, *path, times, 0), 0); /* as if it had been written to */
  *path = NULL;
  return 0;
}

static void a_file_that_changes_during_the_load_is_an_error(void** state) {
  (void)state;
  const char* path = copy_of_draft();
  const char* left = path;
  gen_model_options* o = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  assert_ok(gen_model_options_set_progress(o, write_once, &left, &error), error);
  assert_fails(gen_model_load(path, o, &model, &error), GEN_ERROR_IO, "changed meanwhile", error);
  assert_non_null(strstr(error.message, path));
  assert_null(model);
  assert_ok(gen_model_load(path, o, &model, &error), error);
  gen_model_free(model);
  gen_model_options_free(o);
  assert_int_equal(unlink(path), 0);
}

static void progress_rises_and_cancels(void** state) {
  (void)state;
  gen_model_options* o = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_options_new(&o, &error), error);
  Progress p = {0, 0, 0, 2};
  assert_ok(gen_model_options_set_progress(o, on_progress, &p, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, o, &model, &error), error);
  gen_model_free(model);
  assert_true(p.calls >= 2);
  assert_int_equal(p.falls, 0);
  assert_true(p.last == 1);
  for (double at = 0; at < 1; at += 0.3) {
    Progress stop = {0, 0, 0, at};
    assert_ok(gen_model_options_set_progress(o, on_progress, &stop, &error), error);
    assert_fails(gen_model_load(DRAFT_MODEL, o, &model, &error), GEN_ERROR_CANCELLED, "", error);
    assert_null(model);
  }
  gen_model_options_free(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_check_and_describe),
      cmocka_unit_test(load_refuses),
      cmocka_unit_test(failures_name_the_file),
      cmocka_unit_test(unknown_architectures_are_named),
      cmocka_unit_test(what_is_not_known_is_named),
      cmocka_unit_test(options_that_cannot_be_followed),
      cmocka_unit_test(every_truncation_is_an_error),
      cmocka_unit_test(memory_and_read_loads_equal_the_mapped_one),
      cmocka_unit_test(weights_can_be_locked),
      cmocka_unit_test(what_may_not_be_locked_is_refused),
      cmocka_unit_test(a_file_that_was_read_may_go),
      cmocka_unit_test(a_mapped_file_may_be_replaced),
      cmocka_unit_test(a_file_that_changes_during_the_load_is_an_error),
      cmocka_unit_test(progress_rises_and_cancels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

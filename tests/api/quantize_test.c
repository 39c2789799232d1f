/* SPDX-License-Identifier: Apache-2.0 */
/* gen_model_quantize of model.h and quantize.h: every refusal, nothing left behind, a model that
 * runs. */
#include "api_test.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "out_folder.h"
#include "support/written_model.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static void refuses_bad_arguments(void** state) {
  (void)state;
  assert_fails(gen_model_quantize(NULL, out, "Q8_0", NULL, NULL, &error), bad, "in", error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, NULL, "Q8_0", NULL, NULL, &error), bad, "out",
               error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, out, NULL, NULL, NULL, &error), bad, "type", error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, out, "Q7_X", NULL, NULL, &error), bad, "Q4_K_M",
               error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, out, "q8_9", NULL, NULL, &error), bad, "q8_9",
               error);
  assert_int_equal(gen_model_quantize(NULL, NULL, NULL, NULL, NULL, NULL), bad);
  assert_int_equal(files_in(out_folder), 0);
}

static void refuses_to_write_over_what_it_reads(void** state) {
  (void)state;
  char link[sizeof out];
  snprintf(link, sizeof link, "%s/link.gguf", out_folder);
  assert_int_equal(symlink(DRAFT_MODEL, link), 0);
  assert_fails(gen_model_quantize(DRAFT_MODEL, DRAFT_MODEL, "Q4_0", NULL, NULL, &error), bad,
               "draft.gguf", error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, link, "Q4_0", NULL, NULL, &error), bad, "link.gguf",
               error);
  remove(link);
}

static void refuses_bad_files(void** state) {
  (void)state;
  assert_fails(gen_model_quantize("no/such.gguf", out, "Q8_0", NULL, NULL, &error), GEN_ERROR_IO,
               "no/such.gguf", error);
  assert_fails(gen_model_quantize(GEN_TEST_SOURCE_DIR, out, "Q8_0", NULL, NULL, &error),
               GEN_ERROR_IO, "directory", error);
  assert_fails(gen_model_quantize(GEN_TEST_SOURCE_DIR "/LICENSE", out, "Q8_0", NULL, NULL, &error),
               GEN_ERROR_FORMAT, "LICENSE", error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, "no/such/out.gguf", "Q8_0", NULL, NULL, &error),
               GEN_ERROR_IO, "no/such/out.gguf", error);
  assert_fails(gen_model_quantize(DRAFT_MODEL, out_folder, "Q8_0", NULL, NULL, &error),
               GEN_ERROR_IO, "directory", error);
  assert_int_equal(files_in(out_folder), 0);
}

static void a_full_disk_leaves_nothing(void** state) {
  (void)state;
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit low = old;
  low.rlim_cur = 200000; /* stands for the end of the disk, in the middle of the tensors */
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  const gen_status status = gen_model_quantize(DRAFT_MODEL, out, "F32", NULL, NULL, &error);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  assert_int_equal(status, GEN_ERROR_IO);
  assert_non_null(strstr(error.message, "out.gguf"));
  assert_int_equal(files_in(out_folder), 0);
}

static void cancels_at_every_call(void** state) {
  (void)state;
  struct Watch whole = {0, 0, 0.0};
  assert_ok(gen_model_quantize(DRAFT_MODEL, out, "Q4_0", watch_progress, &whole, &error), error);
  assert_true(whole.calls > 5);
  assert_true(whole.last == 1.0);
  assert_int_equal(files_in(out_folder), 1);
  remove(out);
  for (int stop = 1; stop <= whole.calls; ++stop) {
    struct Watch watch = {0, stop, 0.0};
    assert_fails(gen_model_quantize(DRAFT_MODEL, out, "Q4_0", watch_progress, &watch, &error),
                 GEN_ERROR_CANCELLED, "cancelled", error);
    assert_int_equal(watch.calls, stop);
    assert_int_equal(files_in(out_folder), 0);
  }
}

/* Logits after a fixed token. */
static float* logits_of(const gen_model* model, size_t* n) {
  const gen_model_config* config = gen_model_get_config(model);
  *n = (size_t)gen_model_config_vocab_size(config);
  float* logits = malloc(*n * sizeof *logits);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_new(gen_model_config_num_layers(config), 8, &cache, &error), error);
  const int32_t tokens[] = {1, 300, 301};
  assert_ok(gen_model_forward(model, tokens, 3, cache, logits, *n, &error), error);
  kv_cache_free(cache);
  return logits;
}

static void every_type_runs_and_keeps_the_metadata(void** state) {
  (void)state;
  /* The least share of the square of the logits that may be error: much, where bits are few. */
  const struct {
    const char* type;
    double most;
  } rows[] = {{"F32", 1e-3},       {"F16", 1e-3},    {"BF16", 1e-2},  {"Q8_0", 1e-3},
              {"Q6_K", 2e-2},      {"Q5_K_M", 5e-2}, {"Q5_1", 5e-2},  {"Q5_0", 5e-2},
              {"Q4_K_M", 0.2},     {"Q4_1", 0.2},    {"Q4_0", 0.2},   {"IQ4_NL", 0.2},
              {"IQ4_XS", 0.2},     {"Q5_K_S", 5e-2}, {"Q4_K_S", 0.2}, {"NVFP4", 0.2},
              {"MXFP4_MOE", 1e-3}, {"Q3_K_L", 0.3},  {"Q3_K_M", 0.3}, {"Q3_K_S", 0.3},
              {"IQ3_M", 0.3},      {"IQ3_S", 0.3},   {"IQ3_XS", 0.3}, {"IQ3_XXS", 0.5},
              {"Q2_K", 0.5},       {"Q2_K_S", 1.0},  {"IQ2_M", 1.0},  {"IQ2_S", 1.0},
              {"IQ2_XS", 1.0},     {"IQ2_XXS", 1.0}, {"IQ1_M", 1.0},  {"IQ1_S", 1.0},
              {"Q2_0", 1.0},       {"TQ2_0", 1.0},   {"TQ1_0", 1.0},  {"Q1_0", 1.5}};
  gen_model* model = load_draft();
  size_t n = 0;
  float* wanted = logits_of(model, &n);
  double size = 0;
  for (size_t i = 0; i < n; ++i) size += (double)wanted[i] * (double)wanted[i];
  for (size_t row = 0; row < sizeof rows / sizeof *rows; ++row) {
    assert_ok(gen_model_quantize(DRAFT_MODEL, out, rows[row].type, NULL, NULL, &error), error);
    assert_int_equal(files_in(out_folder), 1);
    gen_model* made = NULL;
    assert_ok(gen_model_load(out, NULL, &made, &error), error);
    size_t same = 0;
    float* got = logits_of(made, &same);
    assert_int_equal(same, n);
    double miss = 0;
    for (size_t i = 0; i < n; ++i) miss += pow((double)got[i] - (double)wanted[i], 2);
    if (!(miss <= rows[row].most * size)) {
      fail_msg("%s: error %g of the logits", rows[row].type, miss / size);
    }
    /* All keys of the model, with their values, except the two that are set. */
    for (size_t i = 0; i < gen_model_metadata_count(model); ++i) {
      const char* key = gen_model_metadata_key(model, i);
      char before[512];
      char after[512];
      size_t length = 0;
      assert_ok(gen_model_metadata_value(model, key, before, sizeof before, &length, &error),
                error);
      assert_ok(gen_model_metadata_value(made, key, after, sizeof after, &length, &error), error);
      if (strcmp(key, "general.file_type") != 0 &&
          strcmp(key, "general.quantization_version") != 0) {
        assert_string_equal(after, before);
      }
    }
    free(got);
    gen_model_free(made);
  }
  free(wanted);
  gen_model_free(model);
}

static gen_quantize_options* new_options(void) {
  gen_quantize_options* options = NULL;
  assert_ok(gen_quantize_options_new(&options, &error), error);
  return options;
}

static void set(gen_quantize_options* options, const char* key, const char* value) {
  assert_ok(gen_quantize_options_set(options, key, value, &error), error);
}

static void options_are_set_by_name(void** state) {
  (void)state;
  assert_fails(gen_quantize_options_new(NULL, &error), bad, "out", error);
  gen_quantize_options_free(NULL);
  gen_quantize_options* options = new_options();
  assert_fails(gen_quantize_options_set(NULL, "types", "", &error), bad, "options", error);
  assert_fails(gen_quantize_options_set(options, NULL, "", &error), bad, "key", error);
  assert_fails(gen_quantize_options_set(options, "types", NULL, &error), bad, "value", error);
  assert_fails(gen_quantize_options_set(options, "type", "", &error), bad, "types", error);
  set(options, "types", "*attn_v*=Q8_0");
  set(options, "importance", "some.imatrix");
  for (const char** wrong = (const char*[]){"a", "a=Q4_K_M", "=F32", "a=F32,,", NULL};
       *wrong != NULL; ++wrong) {
    assert_fails(gen_quantize_options_set(options, "types", *wrong, &error), bad, "types", error);
  }
  char text[1024];
  size_t n = 0;
  assert_ok(gen_quantize_options_describe(options, text, sizeof text, &n, &error), error);
  assert_int_equal(n, strlen(text));
  assert_non_null(strstr(text, "\"value\":\"*attn_v*=Q8_0\"")); /* what failed changed nothing */
  assert_non_null(strstr(text, "\"value\":\"some.imatrix\""));
  assert_fails(gen_quantize_options_describe(options, text, 3, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "3", error);
  assert_fails(gen_quantize_options_describe(NULL, text, 3, &n, &error), bad, "options", error);
  gen_quantize_options_free(options);
}

/* The size of the file that a type and options make. */
static size_t made_size(const char* type, const gen_quantize_options* options, uint8_t** bytes) {
  size_t size = 0;
  assert_ok(gen_model_quantize_with(DRAFT_MODEL, out, type, options, NULL, NULL, &error), error);
  uint8_t* all = read_file(out, &size);
  if (bytes != NULL) {
    *bytes = all;
  } else {
    free(all);
  }
  return size;
}

static void types_of_single_tensors(void** state) {
  (void)state;
  gen_quantize_options* options = new_options();
  uint8_t* plain = NULL;
  uint8_t* same = NULL;
  const size_t size = made_size("Q4_0", NULL, &plain);
  assert_int_equal(made_size("Q4_0", options, &same), size);
  assert_memory_equal(plain, same, size);
  free(same);
  assert_ok(gen_model_quantize(DRAFT_MODEL, out, "Q4_0", NULL, NULL, &error), error);
  size_t n = 0;
  same = read_file(out, &n);
  assert_int_equal(n, size);
  assert_memory_equal(plain, same, size);
  free(same);
  free(plain);
  const size_t f16 = made_size("F16", NULL, NULL);
  set(options, "types", "*=F16");
  assert_int_equal(made_size("Q4_0", options, NULL), f16);
  set(options, "types", "blk.0.*=F16");
  const size_t some = made_size("Q4_0", options, NULL);
  assert_true(size < some && some < f16);
  remove(out);
  set(options, "types", "blk.99.*=F16");
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, out, "Q4_0", options, NULL, NULL, &error), bad,
               "blk.99.*", error);
  assert_int_equal(files_in(out_folder), 0);
  gen_quantize_options_free(options);
}

/* An importance matrix of the older form with one tensor, all of whose columns count alike but the
 * first, which counts `first`. */
static void write_importance(const char* path, const char* name, int32_t columns, float first) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  const int32_t head[] = {1, (int32_t)strlen(name)};
  const int32_t then[] = {1, columns};
  fwrite(head, sizeof head, 1, file);
  fwrite(name, strlen(name), 1, file);
  fwrite(then, sizeof then, 1, file);
  for (int32_t i = 0; i < columns; ++i) {
    const float value = i == 0 ? first : 1.0F;
    fwrite(&value, sizeof value, 1, file);
  }
  assert_int_equal(fclose(file), 0);
}

static void importance_of_columns(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t width = gen_model_config_hidden(gen_model_get_config(model));
  gen_model_free(model);
  char path[sizeof out];
  snprintf(path, sizeof path, "%s/importance", out_folder);
  gen_quantize_options* options = new_options();
  set(options, "importance", path);
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, out, "Q4_0", options, NULL, NULL, &error),
               GEN_ERROR_IO, path, error);
  set(options, "importance", GEN_TEST_SOURCE_DIR "/LICENSE");
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, out, "Q4_0", options, NULL, NULL, &error),
               GEN_ERROR_FORMAT, "LICENSE", error);
  set(options, "importance", DRAFT_MODEL);
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, out, "Q4_0", options, NULL, NULL, &error),
               GEN_ERROR_FORMAT, "draft.gguf", error);
  set(options, "importance", path);
  write_importance(path, "blk.77.attn_q.weight", width, 1.0F);
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, out, "Q4_0", options, NULL, NULL, &error), bad,
               "blk.77.attn_q.weight", error);
  write_importance(path, "blk.0.attn_q.weight", width - 1, 1.0F);
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, out, "Q4_0", options, NULL, NULL, &error), bad,
               "columns", error);
  assert_fails(gen_model_quantize_with(DRAFT_MODEL, path, "Q4_0", options, NULL, NULL, &error), bad,
               path, error);
  assert_int_equal(files_in(out_folder), 1);
  uint8_t* alike = NULL;
  uint8_t* other = NULL;
  write_importance(path, "blk.0.attn_q.weight", width, 1.0F);
  const size_t size = made_size("Q4_0", options, &alike);
  write_importance(path, "blk.0.attn_q.weight", width, 1000.0F);
  assert_int_equal(made_size("Q4_0", options, &other), size);
  assert_memory_not_equal(alike, other, size);
  free(alike);
  free(other);
  remove(path);
  gen_quantize_options_free(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_bad_arguments),
      cmocka_unit_test(refuses_to_write_over_what_it_reads),
      cmocka_unit_test(refuses_bad_files),
      cmocka_unit_test(a_full_disk_leaves_nothing),
      cmocka_unit_test(cancels_at_every_call),
      cmocka_unit_test(every_type_runs_and_keeps_the_metadata),
      cmocka_unit_test(options_are_set_by_name),
      cmocka_unit_test(types_of_single_tensors),
      cmocka_unit_test(importance_of_columns),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

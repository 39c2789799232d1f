/* SPDX-License-Identifier: Apache-2.0 */
/* gen_adapter_merge of adapter.h: every refusal, nothing left behind, a model that says what the
 * base says with the adapter. */
#include "api_test.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/adapter_file.h"
#include "support/written_model.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char* const kQuery = "blk.0.attn_q.weight";
static char folder[] = "/tmp/adapter_merge_XXXXXX";
static char adapter[sizeof folder + 32];
static char out[sizeof folder + 32];
static gen_model* model;

static int make_folder(void** state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(adapter, sizeof adapter, "%s/adapter.gguf", folder);
  snprintf(out, sizeof out, "%s/out.gguf", folder);
  model = load_draft();
  return write_adapter(adapter, model, kQuery, 3.0F) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  gen_model_free(model);
  remove(out);
  remove(adapter);
  return rmdir(folder);
}

/* Beside the adapter. */
static int count_files(void) { return files_in(folder) - 1; }

static gen_status merge(const char* of, const char* with, const char* to, const char* type) {
  return gen_adapter_merge(of, with, 1.0F, to, type, NULL, NULL, &error);
}

static void refuses_bad_arguments(void** state) {
  (void)state;
  assert_fails(merge(NULL, adapter, out, NULL), bad, "model", error);
  assert_fails(merge(DRAFT_MODEL, NULL, out, NULL), bad, "adapter", error);
  assert_fails(merge(DRAFT_MODEL, adapter, NULL, NULL), bad, "out", error);
  assert_fails(merge(DRAFT_MODEL, adapter, out, "Q7_X"), bad, "Q4_K_M", error);
  const float scales[] = {1.0F / 0.0F, 0.0F / 0.0F};
  for (int i = 0; i < 2; ++i) {
    assert_fails(gen_adapter_merge(DRAFT_MODEL, adapter, scales[i], out, NULL, NULL, NULL, &error),
                 bad, "not finite", error);
  }
  assert_int_equal(gen_adapter_merge(NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL), bad);
  assert_int_equal(count_files(), 0);
}

static void refuses_to_write_over_what_it_reads(void** state) {
  (void)state;
  char link[sizeof out];
  snprintf(link, sizeof link, "%s/link.gguf", folder);
  const char* const files[] = {DRAFT_MODEL, adapter};
  for (int i = 0; i < 2; ++i) {
    size_t size = 0;
    size_t same = 0;
    unsigned char* before = read_file(files[i], &size);
    assert_fails(merge(DRAFT_MODEL, adapter, files[i], NULL), bad, files[i], error);
    assert_int_equal(symlink(files[i], link), 0);
    assert_fails(merge(DRAFT_MODEL, adapter, link, NULL), bad, "link.gguf", error);
    remove(link);
    unsigned char* after = read_file(files[i], &same);
    assert_int_equal(same, size);
    assert_memory_equal(after, before, size);
    free(before);
    free(after);
  }
}

static void refuses_bad_files(void** state) {
  (void)state;
  assert_fails(merge("no/such.gguf", adapter, out, NULL), GEN_ERROR_IO, "no/such.gguf", error);
  assert_fails(merge(DRAFT_MODEL, "no/such.gguf", out, NULL), GEN_ERROR_IO, "no/such.gguf", error);
  assert_fails(merge(GEN_TEST_SOURCE_DIR "/LICENSE", adapter, out, NULL), GEN_ERROR_FORMAT,
               "LICENSE", error);
  assert_fails(merge(DRAFT_MODEL, GEN_TEST_SOURCE_DIR "/LICENSE", out, NULL), GEN_ERROR_FORMAT,
               "LICENSE", error);
  assert_fails(merge(DRAFT_MODEL, DRAFT_MODEL, out, NULL), GEN_ERROR_FORMAT, "general.type", error);
  assert_fails(merge(DRAFT_MODEL, adapter, "no/such/out.gguf", NULL), GEN_ERROR_IO,
               "no/such/out.gguf", error);
  assert_fails(merge(DRAFT_MODEL, adapter, folder, NULL), GEN_ERROR_IO, "directory", error);
  const char* const names[] = {"blk.0.attn_norm.weight", "blk.99.attn_q.weight",
                               "token_embd.weight"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    assert_true(write_adapter(adapter, model, names[i], 1.0F));
    assert_fails(merge(DRAFT_MODEL, adapter, out, NULL), GEN_ERROR_UNSUPPORTED, names[i], error);
    assert_non_null(strstr(error.message, "adapter.gguf"));
  }
  assert_true(write_adapter(adapter, model, kQuery, 1e19F));
  assert_fails(merge(DRAFT_MODEL, adapter, out, NULL), GEN_ERROR_FORMAT, kQuery, error);
  assert_non_null(strstr(error.message, "too large for Q8_0"));
  assert_true(write_adapter(adapter, model, kQuery, 3.0F));
  assert_int_equal(count_files(), 0);
}

static void a_full_disk_leaves_nothing(void** state) {
  (void)state;
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit low = old;
  low.rlim_cur = 200000; /* stands for the end of the disk, in the middle of the tensors */
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  const gen_status status = merge(DRAFT_MODEL, adapter, out, NULL);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  assert_int_equal(status, GEN_ERROR_IO);
  assert_non_null(strstr(error.message, "out.gguf"));
  assert_int_equal(count_files(), 0);
}

static void cancels_at_every_call(void** state) {
  (void)state;
  struct Watch whole = {0, 0, 0.0};
  assert_ok(gen_adapter_merge(DRAFT_MODEL, adapter, 1, out, NULL, watch_progress, &whole, &error),
            error);
  assert_true(whole.calls > 5);
  assert_true(whole.last == 1.0);
  assert_int_equal(count_files(), 1);
  remove(out);
  for (int stop = 1; stop <= whole.calls; ++stop) {
    struct Watch watch = {0, stop, 0.0};
    assert_fails(
        gen_adapter_merge(DRAFT_MODEL, adapter, 1, out, NULL, watch_progress, &watch, &error),
        GEN_ERROR_CANCELLED, "cancelled while merging", error);
    assert_int_equal(watch.calls, stop);
    assert_int_equal(count_files(), 0);
  }
}

/* A greedy text; free() it. */
static char* text_of(const gen_model* with, const char* name) {
  gen_generator* generator = NULL;
  gen_sampling* sampling = greedy(24);
  gen_result* result = NULL;
  assert_ok(gen_create(with, NULL, &generator, &error), error);
  assert_ok(gen_sampling_set_adapter(sampling, name, &error), error);
  assert_ok(gen_generate(generator, "Once upon", 9, sampling, &result, &error), error);
  char* text = strdup(gen_result_text(result, NULL));
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_free(generator);
  return text;
}

static char* text_of_merged(float scale, const char* type) {
  assert_ok(gen_adapter_merge(DRAFT_MODEL, adapter, scale, out, type, NULL, NULL, &error), error);
  gen_model* made = NULL;
  assert_ok(gen_model_load(out, NULL, &made, &error), error);
  char* text = text_of(made, NULL);
  gen_model_free(made);
  return text;
}

static void says_what_the_base_says_with_the_adapter(void** state) {
  (void)state;
  assert_ok(gen_adapter_load(model, adapter, "a", 1.0F, &error), error);
  char* base = text_of(model, NULL);
  char* with = text_of(model, "a");
  assert_string_not_equal(with, base);
  char* merged = text_of_merged(1.0F, "F32");
  assert_string_equal(merged, with);
  free(merged);
  const char* const kept[] = {NULL, ""};
  for (int i = 0; i < 2; ++i) {
    merged = text_of_merged(0.0F, kept[i]);
    assert_string_equal(merged, base);
    free(merged);
  }
  free(base);
  free(with);
  assert_ok(gen_adapter_unload(model, "a", &error), error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_bad_arguments),
      cmocka_unit_test(refuses_to_write_over_what_it_reads),
      cmocka_unit_test(refuses_bad_files),
      cmocka_unit_test(a_full_disk_leaves_nothing),
      cmocka_unit_test(cancels_at_every_call),
      cmocka_unit_test(says_what_the_base_says_with_the_adapter),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

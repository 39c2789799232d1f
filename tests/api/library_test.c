/* SPDX-License-Identifier: Apache-2.0 */
/* base.h and error.h: versions, build, status names, log, thread pools, cancel flags, backends. */
#include "api_test.h"

static void version_is_that_of_the_headers(void** state) {
  (void)state;
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", GEN_VERSION_MAJOR, GEN_VERSION_MINOR,
           GEN_VERSION_PATCH);
  assert_string_equal(gen_version(), expected);
  assert_int_equal(gen_abi_version(), GEN_ABI_VERSION);
}

static void status_names_are_frozen(void** state) {
  (void)state;
  static const char* const names[] = {
      "OK",         "INVALID_ARGUMENT", "OUT_OF_MEMORY", "IO",       "FORMAT", "UNSUPPORTED",
      "CACHE_FULL", "POOL_EXHAUSTED",   "OUT_OF_RANGE",  "SEQUENCE", "BUSY",   "CANCELLED",
      "GRAMMAR",    "DEVICE",           "CONTEXT_FULL",  "STATE",    "MODEL",  "TOKENIZER",
      "INTERNAL"};
  for (int32_t i = 0; i < (int32_t)(sizeof names / sizeof names[0]); ++i) {
    char expected[64];
    snprintf(expected, sizeof expected, i == 0 ? "GEN_%s" : "GEN_ERROR_%s", names[i]);
    assert_string_equal(gen_status_name(-i), expected);
  }
  assert_string_equal(gen_status_name(1), "GEN_ERROR_UNKNOWN");
  assert_string_equal(gen_status_name(-19), "GEN_ERROR_UNKNOWN");
  assert_string_equal(gen_status_name(INT32_MIN), "GEN_ERROR_UNKNOWN");
  assert_string_equal(gen_status_name(INT32_MAX), "GEN_ERROR_UNKNOWN");
}

static void build_info_follows_the_buffer_rule(void** state) {
  (void)state;
  size_t n = 0;
  assert_ok(gen_build_info(NULL, 0, &n, &error), error);
  assert_true(n > 0);
  char* text = malloc(n + 1);
  size_t again = 0;
  assert_ok(gen_build_info(text, n + 1, &again, &error), error);
  assert_int_equal(again, n);
  assert_int_equal(strlen(text), n);
  assert_non_null(strstr(text, gen_version()));
  assert_non_null(strstr(text, "\"Q4_K\""));
  assert_non_null(strstr(text, "\"qwen3\""));
  assert_non_null(strstr(text, "\"fp16\""));

  /* One byte short: the size is told, the buffer is left alone. */
  text[0] = '#';
  again = 0;
  assert_fails(gen_build_info(text, n, &again, &error), GEN_ERROR_OUT_OF_RANGE, "do not fit",
               error);
  assert_int_equal(again, n);
  assert_int_equal(text[0], '#');
  free(text);
  assert_fails(gen_build_info(NULL, 0, NULL, &error), GEN_ERROR_INVALID_ARGUMENT, "n is NULL",
               error);
  assert_int_equal(gen_build_info(NULL, 0, NULL, NULL), GEN_ERROR_INVALID_ARGUMENT);
}

static void count_line(void* user, int32_t level, const char* line) {
  (void)level;
  (void)line;
  ++*(int*)user;
}

static void log_is_silent_without_a_level(void** state) {
  (void)state;
  int lines = 0;
  gen_log_set_callback(count_line, &lines);
  gen_model_free(load_draft());
  assert_int_equal(lines, 0);
  gen_log_set_level(1000); /* clamped to debug */
  gen_log_set_level(-5);   /* clamped to off */
  gen_model_free(load_draft());
  assert_int_equal(lines, 0);
  gen_log_set_callback(NULL, NULL);
}

static void thread_pool_checks_its_arguments(void** state) {
  (void)state;
  gen_thread_pool* pool = NULL;
  assert_ok(gen_thread_pool_new(2, NULL, 0, &pool, &error), error);
  gen_thread_pool_free(pool);
  assert_ok(gen_thread_pool_new(0, NULL, 0, &pool, &error), error);
  gen_thread_pool_free(pool);
  gen_thread_pool_free(NULL);

  pool = (gen_thread_pool*)&error;
  assert_fails(gen_thread_pool_new(-1, NULL, 0, &pool, &error), GEN_ERROR_INVALID_ARGUMENT, "-1",
               error);
  assert_null(pool);
  assert_fails(gen_thread_pool_new(1025, NULL, 0, &pool, &error), GEN_ERROR_INVALID_ARGUMENT,
               "1024", error);
  const int32_t cpu = 1 << 20;
  assert_fails(gen_thread_pool_new(1, &cpu, 1, &pool, &error), GEN_ERROR_INVALID_ARGUMENT,
               "1048576", error);
  assert_fails(gen_thread_pool_new(1, NULL, 1, &pool, &error), GEN_ERROR_INVALID_ARGUMENT, "cpus",
               error);
  assert_fails(gen_thread_pool_new(1, NULL, 0, NULL, &error), GEN_ERROR_INVALID_ARGUMENT, "out",
               error);
}

static void cancel_takes_null(void** state) {
  (void)state;
  gen_cancel* cancel = NULL;
  assert_ok(gen_cancel_new(&cancel, &error), error);
  gen_cancel_fire(cancel);
  gen_cancel_reset(cancel);
  gen_cancel_free(cancel);
  gen_cancel_fire(NULL);
  gen_cancel_reset(NULL);
  gen_cancel_free(NULL);
  assert_fails(gen_cancel_new(NULL, &error), GEN_ERROR_INVALID_ARGUMENT, "out", error);
}

static void backends_and_devices(void** state) {
  (void)state;
  assert_true(gen_backend_count() >= 1);
  assert_string_equal(gen_backend_name(0), "cpu");
  assert_null(gen_backend_name(-1));
  assert_null(gen_backend_name(gen_backend_count()));
  assert_ok(gen_backend_available("cpu", &error), error);
  assert_fails(gen_backend_available("abacus", &error), GEN_ERROR_INVALID_ARGUMENT, "abacus",
               error);
  assert_fails(gen_backend_available(NULL, &error), GEN_ERROR_INVALID_ARGUMENT, "name", error);
  /* In a folder without the engine's library; it is looked for once. */
  setenv("GEN_BACKEND_PATH", "/nowhere", 1);
  assert_string_equal(gen_backend_name(1), "cuda");
  assert_fails(gen_backend_available("cuda", &error), GEN_ERROR_UNSUPPORTED, "in /nowhere", error);
  assert_int_equal(gen_device_count("cuda"), 0);
  gen_model_options* options = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_fails(gen_model_options_set_backend(options, "cuda", &error), GEN_ERROR_UNSUPPORTED,
               "in /nowhere", error);
  gen_model_options_free(options);
  unsetenv("GEN_BACKEND_PATH");
  assert_int_equal(gen_device_count("cpu"), 1);
  assert_int_equal(gen_device_count("abacus"), 0);
  assert_int_equal(gen_device_count(NULL), 0);
  char text[512];
  size_t n = 0;
  assert_ok(gen_device_describe("cpu", 0, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "usable_cpus"));
  assert_fails(gen_device_describe("cpu", 1, text, sizeof text, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "device 1", error);
  assert_fails(gen_device_describe("cpu", -1, text, sizeof text, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "device -1", error);
  assert_fails(gen_device_describe("abacus", 0, text, sizeof text, &n, &error),
               GEN_ERROR_INVALID_ARGUMENT, "abacus", error);
  assert_fails(gen_device_describe("cpu", 0, text, 3, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "do not fit", error);
}

static void an_unknown_cpu_level_is_an_error(void** state) {
  (void)state;
  const char* before = getenv("GEN_CPU");
  char* kept = before != NULL ? strdup(before) : NULL;
  setenv("GEN_CPU", "pentium", 1);
  size_t n = 0;
  gen_model* model = NULL;
  assert_fails(gen_build_info(NULL, 0, &n, &error), GEN_ERROR_INVALID_ARGUMENT, "pentium", error);
  assert_fails(gen_model_load(DRAFT_MODEL, NULL, &model, &error), GEN_ERROR_INVALID_ARGUMENT,
               "pentium", error);
  assert_null(model);
  if (kept != NULL) {
    setenv("GEN_CPU", kept, 1);
  } else {
    unsetenv("GEN_CPU");
  }
  free(kept);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(version_is_that_of_the_headers),
      cmocka_unit_test(status_names_are_frozen),
      cmocka_unit_test(build_info_follows_the_buffer_rule),
      cmocka_unit_test(log_is_silent_without_a_level),
      cmocka_unit_test(thread_pool_checks_its_arguments),
      cmocka_unit_test(cancel_takes_null),
      cmocka_unit_test(backends_and_devices),
      cmocka_unit_test(an_unknown_cpu_level_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

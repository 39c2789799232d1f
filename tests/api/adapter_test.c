/* SPDX-License-Identifier: Apache-2.0 */
/* adapter.h: files to names, requests by name, and everything that is refused. */
#include "toy_model.h"

#include <unistd.h>

#include "support/adapter_file.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char* const kQuery = "blk.0.attn_q.weight";
static char path[64];
static gen_model* model;
static gen_generator* generator;

static int begin(void** state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/generate_adapter_%ld.gguf", (long)getpid());
  model = load_draft();
  return gen_create(model, NULL, &generator, &error) == GEN_OK ? 0 : -1;
}
static int end(void** state) {
  (void)state;
  gen_free(generator);
  gen_model_free(model);
  unlink(path);
  return 0;
}

static void load(const char* name, float gain) {
  assert_true(write_adapter(path, model, kQuery, gain));
  assert_ok(gen_adapter_load(model, path, name, 1.0F, &error), error);
}

/* The text of a request whose settings have these adapters; free() it. */
static char* text_with(const char* first, const char* second, float scale) {
  gen_sampling* sampling = greedy(12);
  gen_result* result = NULL;
  assert_ok(gen_sampling_set_adapter(sampling, first, &error), error);
  if (second != NULL) {
    assert_ok(gen_sampling_add_adapter(sampling, second, scale, &error), error);
  }
  assert_ok(gen_generate(generator, "Once upon", 9, sampling, &result, &error), error);
  char* text = strdup(gen_result_text(result, NULL));
  gen_result_free(result);
  gen_sampling_free(sampling);
  return text;
}

static void requests_name_them(void** state) {
  (void)state;
  load("a", 1.5F);
  load("b", 3.0F);
  char* base = text_with(NULL, NULL, 0);
  char* a = text_with("a", NULL, 0);
  char* b = text_with("b", NULL, 0);
  assert_string_not_equal(a, base);
  assert_string_not_equal(b, base);
  assert_string_not_equal(b, a);
  struct {
    const char* first;
    const char* second;
    float scale;
    const char* want;
  } same[] = {{"", NULL, 0, base},  {NULL, "a", 1, a}, {"a", "b", 0, a},
              {NULL, "b", 0, base}, {"b", "a", 0, b},  {NULL, "b", 1, b}};
  for (size_t i = 0; i < sizeof same / sizeof same[0]; ++i) {
    char* text = text_with(same[i].first, same[i].second, same[i].scale);
    assert_string_equal(text, same[i].want);
    free(text);
  }
  /* A name that is loaded again stands for the new file. */
  load("a", 3.0F);
  char* again = text_with("a", NULL, 0);
  assert_string_equal(again, b);
  free(again);
  assert_ok(gen_adapter_unload(model, "a", &error), error);
  assert_ok(gen_adapter_unload(model, "b", &error), error);
  free(base);
  free(a);
  free(b);
}

static void names_are_in_order(void** state) {
  (void)state;
  char text[16];
  size_t n = 0;
  assert_int_equal(gen_adapter_count(model), 0);
  load("first", 1);
  load("second", 1);
  assert_int_equal(gen_adapter_count(model), 2);
  assert_ok(gen_adapter_name(model, 1, text, sizeof text, &n, &error), error);
  assert_string_equal(text, "second");
  assert_int_equal(n, 6);
  assert_ok(gen_adapter_name(model, 0, NULL, 0, &n, &error), error);
  assert_int_equal(n, 5);
  assert_fails(gen_adapter_name(model, 0, text, 5, &n, &error), GEN_ERROR_OUT_OF_RANGE, "5", error);
  assert_fails(gen_adapter_name(model, 2, text, sizeof text, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "adapter 2 of 2", error);
  assert_int_equal(n, 0);
  assert_ok(gen_adapter_unload(model, "first", &error), error);
  assert_ok(gen_adapter_name(model, 0, text, sizeof text, &n, &error), error);
  assert_string_equal(text, "second");
  assert_ok(gen_adapter_unload(model, "second", &error), error);
  assert_int_equal(gen_adapter_count(model), 0);
}

static void what_does_not_fit_is_refused(void** state) {
  (void)state;
  size_t n = 0;
  assert_true(write_adapter(path, model, kQuery, 1));
  assert_fails(gen_adapter_load(NULL, path, "a", 1, &error), bad, "model", error);
  assert_fails(gen_adapter_load(model, NULL, "a", 1, &error), bad, "path", error);
  assert_fails(gen_adapter_load(model, path, NULL, 1, &error), bad, "name", error);
  assert_fails(gen_adapter_load(model, path, "", 1, &error), bad, "0 bytes", error);
  assert_fails(gen_adapter_load(model, path, "a", 1.0F / 0.0F, &error), bad, "finite", error);
  assert_fails(gen_adapter_load(model, "/no/such.gguf", "a", 1, &error), GEN_ERROR_IO,
               "/no/such.gguf", error);
  assert_fails(gen_adapter_load(model, DRAFT_MODEL, "a", 1, &error), GEN_ERROR_FORMAT, "draft.gguf",
               error);
  assert_true(write_adapter(path, model, "blk.99.attn_q.weight", 1));
  memset(&error, 0, sizeof error);
  assert_int_not_equal(gen_adapter_load(model, path, "a", 1, &error), GEN_OK);
  assert_non_null(strstr(error.message, "blk.99.attn_q.weight"));
  assert_int_equal(gen_adapter_count(model), 0);
  assert_fails(gen_adapter_unload(model, "a", &error), bad, "\"a\"", error);
  assert_fails(gen_adapter_unload(NULL, "a", &error), bad, "model", error);
  assert_fails(gen_adapter_unload(model, NULL, &error), bad, "name", error);
  assert_fails(gen_adapter_name(NULL, 0, NULL, 0, &n, &error), bad, "model", error);
  assert_int_equal(gen_adapter_count(NULL), 0);
}

static void settings_take_names(void** state) {
  (void)state;
  gen_sampling* sampling = greedy(4);
  gen_result* result = NULL;
  char text[16384];
  char name[32];
  size_t n = 0;
  assert_fails(gen_sampling_set_adapter(NULL, "a", &error), bad, "sampling", error);
  assert_fails(gen_sampling_add_adapter(sampling, NULL, 1, &error), bad, "name", error);
  assert_fails(gen_sampling_add_adapter(sampling, "", 1, &error), bad, "0 bytes", error);
  assert_fails(gen_sampling_add_adapter(sampling, "a", 0.0F / 0.0F, &error), bad, "finite", error);
  assert_ok(gen_sampling_set(sampling, "adapter", "sonnet", &error), error);
  assert_fails(gen_sampling_add_adapter(sampling, "sonnet", 2, &error), bad, "twice", error);
  assert_ok(gen_sampling_add_adapter(sampling, "other", 2, &error), error);
  assert_ok(gen_sampling_describe(sampling, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "sonnet"));
  assert_non_null(strstr(text, "other"));
  assert_fails(gen_generate(generator, "Once", 4, sampling, &result, &error), bad,
               "no adapter is named \"sonnet\"", error);
  assert_null(result);
  assert_ok(gen_sampling_set_adapter(sampling, "last", &error), error);
  assert_ok(gen_sampling_describe(sampling, text, sizeof text, &n, &error), error);
  assert_null(strstr(text, "sonnet"));
  assert_ok(gen_sampling_set_adapter(sampling, NULL, &error), error);
  for (int i = 0; i < 64; ++i) {
    snprintf(name, sizeof name, "adapter %d", i);
    assert_ok(gen_sampling_add_adapter(sampling, name, 1, &error), error);
  }
  assert_fails(gen_sampling_add_adapter(sampling, "one more", 1, &error), bad, "64", error);
  gen_sampling_free(sampling);
}

/* Loads an adapter that takes `kib` KiB. */
static gen_status load_sized(const char* name, uint64_t kib) {
  const gen_model_config* config = gen_model_get_config(model);
  const uint64_t row =
      (uint64_t)(gen_model_config_hidden(config) +
                 gen_model_config_num_heads(config) * gen_model_config_head_dim(config));
  assert_true(write_adapter_of_rank(path, model, kQuery, kib * 1024 / 4 / row, 1));
  return gen_adapter_load(model, path, name, 1.0F, &error);
}

static void assert_names(const char* want) {
  char all[16] = "";
  for (size_t i = 0; i < gen_adapter_count(model); ++i) {
    size_t n = 0;
    const size_t length = strlen(all);
    assert_ok(gen_adapter_name(model, i, all + length, sizeof all - length, &n, &error), error);
  }
  assert_string_equal(all, want);
}

static void a_budget_forgets_names(void** state) {
  (void)state;
  assert_ok(load_sized("a", 400), error);
  assert_ok(load_sized("b", 400), error);
  assert_ok(load_sized("c", 400), error);
  char* a = text_with("a", NULL, 0);
  assert_names("abc");
  assert_ok(gen_adapter_set_budget(model, 1, &error), error);
  assert_names("ac"); /* 800 KiB; "b" was used least recently */
  free(text_with("a", NULL, 0));
  assert_ok(load_sized("d", 400), error);
  assert_names("ad");
  char* again = text_with("a", NULL, 0);
  assert_string_equal(again, a);
  gen_sampling* sampling = greedy(4);
  gen_result* result = NULL;
  assert_ok(gen_sampling_set_adapter(sampling, "c", &error), error);
  assert_fails(gen_generate(generator, "Once", 4, sampling, &result, &error), bad,
               "no adapter is named \"c\"", error);
  gen_sampling_free(sampling);
  assert_fails(load_sized("a", 1200), bad, "1228800 bytes of the adapters' budget of 1048576",
               error);
  assert_names("ad");
  free(again);
  again = text_with("a", NULL, 0);
  assert_string_equal(again, a);
  assert_fails(gen_adapter_set_budget(model, -1, &error), bad, "-1", error);
  assert_fails(gen_adapter_set_budget(NULL, 1, &error), bad, "model", error);
  assert_ok(gen_adapter_set_budget(model, INT32_MAX, &error), error);
  assert_ok(load_sized("e", 1200), error);
  assert_ok(gen_adapter_set_budget(model, 0, &error), error);
  assert_names("ade");
  free(again);
  free(a);
}

static size_t weights(void) {
  size_t bytes = 0;
  assert_ok(gen_model_memory(model, "weights", &bytes, &error), error);
  return bytes;
}

/* Adapters are part of the model's memory, also those that have lost their names in use. */
static void memory_counts_them(void** state) {
  (void)state;
  assert_ok(load_sized("a", 40), error);
  free(text_with("a", NULL, 0)); /* compiles the plan for adapters */
  assert_ok(gen_adapter_unload(model, "a", &error), error);
  free(text_with(NULL, NULL, 0));
  const size_t base = weights();
  assert_ok(load_sized("a", 40), error);
  assert_ok(load_sized("b", 80), error);
  assert_int_equal(weights(), base + 120 * 1024);
  free(text_with("a", NULL, 0));
  assert_ok(gen_adapter_unload(model, "a", &error), error);
  assert_ok(gen_adapter_unload(model, "b", &error), error);
  assert_int_equal(weights(), base + 40 * 1024); /* until the generator runs a step without */
  free(text_with(NULL, NULL, 0));
  assert_int_equal(weights(), base);
}

static void custom_models_have_no_budget(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  const gen_forward table = table_of(&toy, WITH_STATE);
  gen_model_config* config = toy_config();
  gen_model* custom = NULL;
  assert_ok(gen_model_new_custom(&table, config, NULL, &custom, &error), error);
  gen_model_config_free(config);
  assert_fails(gen_adapter_set_budget(custom, 1, &error), GEN_ERROR_UNSUPPORTED, "no adapters",
               error);
  gen_model_free(custom);
}

static size_t weights_of(const gen_model* of) {
  size_t bytes = 0;
  assert_ok(gen_model_memory(of, "weights", &bytes, &error), error);
  return bytes;
}

static size_t foretold(const gen_model_options* options) {
  gen_memory_estimate* estimate = NULL;
  size_t bytes = 0;
  assert_ok(gen_estimate_memory(DRAFT_MODEL, options, NULL, &estimate, &error), error);
  assert_ok(gen_memory_estimate_get(estimate, "weights", &bytes, &error), error);
  gen_memory_estimate_free(estimate);
  return bytes;
}

static void come_with_the_model(void** state) {
  (void)state;
  gen_model_options* options = NULL;
  gen_model* made = NULL;
  gen_memory_estimate* estimate = NULL;
  char name[64];
  size_t n = 0;
  assert_true(write_adapter_of_rank(path, model, kQuery, 64, 1.0F));
  assert_ok(gen_model_options_new(&options, &error), error);
  const size_t alone = foretold(options);
  assert_ok(gen_model_load(DRAFT_MODEL, options, &made, &error), error);
  const size_t plain = weights_of(made);
  gen_model_free(made);
  assert_ok(gen_model_options_set(options, "adapter", path, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, options, &made, &error), error);
  assert_int_equal(gen_adapter_count(made), 1);
  assert_ok(gen_adapter_name(made, 0, name, sizeof name, &n, &error), error);
  assert_string_equal(name, path);
  const gen_model_config* config = gen_model_get_config(made);
  const int32_t in = gen_model_config_hidden(config);
  const int32_t out = gen_model_config_num_heads(config) * gen_model_config_head_dim(config);
  assert_int_equal(weights_of(made) - plain, 4 * 64 * (in + out));
  assert_int_equal(foretold(options) - alone, 4 * 64 * (in + out));
  gen_model_free(made);
  assert_ok(gen_model_options_set(options, "adapter", "/nowhere.gguf", &error), error);
  assert_fails(gen_model_load(DRAFT_MODEL, options, &made, &error), GEN_ERROR_IO, "/nowhere.gguf",
               error);
  assert_null(made);
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  assert_fails(gen_model_load_memory(bytes, size, options, &made, &error), GEN_ERROR_IO,
               "/nowhere.gguf", error);
  assert_null(made);
  free(bytes);
  assert_fails(gen_estimate_memory(DRAFT_MODEL, options, NULL, &estimate, &error), GEN_ERROR_IO,
               "/nowhere.gguf", error);
  assert_ok(gen_model_options_set(options, "adapter", "", &error), error);
  assert_int_equal(foretold(options), alone);
  gen_model_options_free(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(requests_name_them, begin, end),
      cmocka_unit_test_setup_teardown(names_are_in_order, begin, end),
      cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, begin, end),
      cmocka_unit_test_setup_teardown(settings_take_names, begin, end),
      cmocka_unit_test_setup_teardown(a_budget_forgets_names, begin, end),
      cmocka_unit_test_setup_teardown(memory_counts_them, begin, end),
      cmocka_unit_test_setup_teardown(come_with_the_model, begin, end),
      cmocka_unit_test(custom_models_have_no_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

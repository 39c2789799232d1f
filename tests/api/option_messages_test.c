/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings by name, of every object that has them: a value that is none of an option's is refused
 * by a message that names the option and shows the value, and a name that is none is shown with
 * those that are. Options come from the objects' own descriptions, so that a new one is tested,
 * too.
 */
#include "api_test.h"

typedef gen_status (*set_function)(void* object, const char* key, const char* value,
                                   gen_error* error);
typedef gen_status (*describe_function)(const void* object, char* buf, size_t capacity, size_t* n,
                                        gen_error* error);

struct object {
  const char* name;
  void* handle;
  set_function set;
  describe_function describe;
  int least; /* options that are looked at */
};

/* With the handles as void pointers. */
#define BY_NAME(type)                                                                              \
  static gen_status set_##type(void* object, const char* key, const char* value, gen_error* out) { \
    return type##_set(object, key, value, out);                                                    \
  }                                                                                                \
  static gen_status describe_##type(const void* object, char* buf, size_t capacity, size_t* n,     \
                                    gen_error* out) {                                              \
    return type##_describe(object, buf, capacity, n, out);                                         \
  }
BY_NAME(gen_options)
BY_NAME(gen_model_options)
BY_NAME(gen_sampling)
BY_NAME(gen_model_config)
BY_NAME(kv_cache_tier_config)

/* The text of `"name":"…"` in an option's description. */
static void field(const char* option, const char* name, char* out, size_t capacity) {
  char start[32];
  snprintf(start, sizeof start, "\"%s\":\"", name);
  const char* text = strstr(option, start);
  assert_non_null(text);
  text += strlen(start);
  const size_t n = strcspn(text, "\"");
  assert_true(n < capacity);
  memcpy(out, text, n);
  out[n] = '\0';
}

static void values_are_refused_by_name(const struct object* object) {
  static char text[20000];
  size_t n = 0;
  assert_ok(object->describe(object->handle, text, sizeof text, &n, &error), error);
  int seen = 0;
  for (const char* option = strstr(text, "{\"key\""); option != NULL;
       option = strstr(option + 1, "{\"key\"")) {
    char key[64];
    char type[16];
    field(option, "key", key, sizeof key);
    field(option, "type", type, sizeof type);
    if (strcmp(type, "string") == 0) continue; /* some take any text */
    static const char* const values[] = {"o'clock", "", "1x", "1e999", "--1"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
      assert_fails(object->set(object->handle, key, values[i], &error), GEN_ERROR_INVALID_ARGUMENT,
                   key, error);
      char shown[16];
      snprintf(shown, sizeof shown, "\"%s\"", values[i]);
      assert_non_null(strstr(error.message, shown));
    }
    ++seen;
  }
  if (seen < object->least) fail_msg("%s: %d options seen", object->name, seen);
}

static void unknown_names_are_shown(const struct object* object) {
  assert_fails(object->set(object->handle, "o'clock", "1", &error), GEN_ERROR_INVALID_ARGUMENT,
               "unknown option \"o'clock\", known are ", error);
  assert_fails(object->set(object->handle, "", "1", &error), GEN_ERROR_INVALID_ARGUMENT,
               "unknown option \"\", known are ", error);
}

static void messages_name_what_is_wrong(void** state) {
  (void)state;
  gen_options* options;
  gen_model_options* model_options;
  gen_sampling* sampling;
  gen_model_config* config;
  kv_cache_tier_config* tiers;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_model_options_new(&model_options, &error), error);
  assert_ok(gen_sampling_new(&sampling, &error), error);
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_new(&tiers, &error), error);
  const struct object objects[] = {
      {"gen_options", options, set_gen_options, describe_gen_options, 5},
      {"gen_model_options", model_options, set_gen_model_options, describe_gen_model_options, 5},
      {"gen_sampling", sampling, set_gen_sampling, describe_gen_sampling, 14},
      {"gen_model_config", config, set_gen_model_config, describe_gen_model_config, 8},
      {"kv_cache_tier_config", tiers, set_kv_cache_tier_config, describe_kv_cache_tier_config, 8},
  };
  for (size_t i = 0; i < sizeof objects / sizeof objects[0]; ++i) {
    values_are_refused_by_name(&objects[i]);
    unknown_names_are_shown(&objects[i]);
  }
  gen_options_free(options);
  gen_model_options_free(model_options);
  gen_sampling_free(sampling);
  gen_model_config_free(config);
  kv_cache_tier_config_free(tiers);
}

static void other_names_are_shown_with_those_that_are_known(void** state) {
  (void)state;
  const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
  gen_options* options;
  gen_model_options* model_options;
  gen_model* model;
  size_t n = 0;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_model_options_new(&model_options, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, NULL, &model, &error), error);
  assert_fails(gen_options_set_kv_dtype(options, "", &error), bad,
               "unknown cache kind \"\", known are fp32", error);
  assert_fails(gen_options_set_kv_key_form(options, "", &error), bad,
               "unknown key form \"\", known are best", error);
  const char* backend = "unknown backend \"abacus\", known are cpu";
  assert_fails(gen_model_options_set_backend(model_options, "abacus", &error), bad, backend, error);
  assert_fails(gen_backend_available("abacus", &error), bad, backend, error);
  assert_fails(gen_device_describe("abacus", 0, NULL, 0, &n, &error), bad, backend, error);
  /* Each figure that the message names is one, and each that is documented is named. */
  size_t bytes = 0;
  assert_fails(gen_model_memory(model, "rent", &bytes, &error), bad, "\"rent\"", error);
  const char* open = strchr(error.message, '(');
  assert_non_null(open);
  char names[128];
  snprintf(names, sizeof names, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
  for (const char* name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", ")) {
    gen_error other;
    assert_ok(gen_model_memory(model, name, &bytes, &other), other);
  }
  static const char* const documented[] = {"weights", "workspace", "mapped", "file", "stream"};
  for (size_t i = 0; i < sizeof documented / sizeof documented[0]; ++i) {
    assert_fails(gen_model_memory(model, "rent", &bytes, &error), bad, documented[i], error);
  }
  gen_model_free(model);
  gen_model_options_free(model_options);
  gen_options_free(options);
}

static void limits_are_told(void** state) {
  (void)state;
  const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
  gen_request* request;
  kv_cache_pool* pool;
  assert_ok(gen_request_new(&request, &error), error);
  assert_fails(gen_request_set_deadline_ms(request, -3, &error), bad, "-3 ms is below 0", error);
  gen_request_free(request);
  assert_fails(kv_cache_pool_new(2, 16, 8, 0, "fp32", &pool, &error), bad, "0 MiB", error);
  assert_fails(kv_cache_pool_new(2, 1 << 20, 8, 1, "fp32", &pool, &error), bad, "1 MiB", error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_name_what_is_wrong),
      cmocka_unit_test(other_names_are_shown_with_those_that_are_known),
      cmocka_unit_test(limits_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

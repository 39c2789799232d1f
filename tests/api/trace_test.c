/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h: every function's good case, each documented error, and lifetimes in any order. */
#include "api_test.h"

#include <unistd.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static gen_status append(kv_cache* cache, int layer, int seq) {
  const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  return kv_cache_update(cache, layer, x, x, 1, seq, 2, &error);
}

static void operations_are_recorded(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* cache = NULL;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_new(2, 4, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &cache, &error), error);
  assert_string_equal(kv_cache_kind(cache), "tracing");
  assert_int_equal(kv_cache_num_layers(cache), 2);
  assert_int_equal(kv_cache_max_seq_len(cache), 4);
  assert_int_equal(kv_cache_is_lossy(cache), 0);
  assert_int_equal(kv_cache_capabilities(cache), KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_VIEW |
                                                     KV_CACHE_ONE_ROW_ONE_RESULT |
                                                     KV_CACHE_HAS_FULL_BUFFER);
  assert_int_equal(gen_tracer_op_count(tracer), 0);
  assert_int_equal(append(cache, 0, 2), GEN_OK);
  assert_int_equal(gen_tracer_op_count(tracer), 2);
  assert_int_equal(append(cache, 0, 3), GEN_ERROR_CACHE_FULL);
  float k[4];
  assert_ok(kv_cache_get(cache, 1, k, 4, NULL, 0, NULL, NULL, &error), error); /* a miss */
  assert_int_equal(gen_tracer_op_count(tracer), 2);
  assert_ok(kv_cache_get(inner, 0, k, 4, NULL, 0, NULL, NULL, &error), error); /* not traced */
  assert_true(k[3] == 4.0f);
  assert_int_equal(gen_tracer_op_count(tracer), 2);
  assert_ok(kv_cache_get(cache, 0, k, 4, NULL, 0, NULL, NULL, &error), error);
  assert_int_equal(gen_tracer_op_count(tracer), 3);
  assert_int_equal(kv_cache_layer_seq_len(inner, 0), 2);

  char text[256];
  size_t n = 0;
  assert_ok(gen_tracer_op(tracer, 0, NULL, 0, &n, &error), error);
  assert_ok(gen_tracer_op(tracer, 0, text, n + 1, &n, &error), error);
  assert_string_equal(
      text,
      "{\"name\":\"KVCacheAppendK\",\"inputs\":[1],\"outputs\":[3],\"attributes\":{\"layer\":0}}");
  assert_int_equal(n, strlen(text));
  assert_fails(gen_tracer_op(tracer, 0, text, n, &n, &error), GEN_ERROR_OUT_OF_RANGE, "", error);
  assert_int_equal(n, strlen(text));
  assert_fails(gen_tracer_op(tracer, 3, text, 256, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "operation 3: there are 3", error);
  assert_fails(gen_tracer_op(NULL, 0, text, 256, &n, &error), bad, "tracer", error);
  assert_fails(gen_tracer_op(tracer, 0, text, 256, NULL, &error), bad, "n is NULL", error);
  assert_ok(gen_tracer_op(tracer, 2, text, 256, &n, &error), error);
  assert_non_null(strstr(text, "\"KVCacheGetK\",\"inputs\":[3]"));

  assert_ok(kv_cache_truncate(cache, 1, &error), error);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(gen_tracer_op_count(tracer), 3);
  kv_cache* copy = (kv_cache*)&error;
  assert_fails(kv_cache_clone(cache, &copy, &error), GEN_ERROR_UNSUPPORTED, "clone", error);
  assert_null(copy);
  assert_fails(kv_cache_set_allocator(cache, NULL, &error), GEN_ERROR_STATE, "memory", error);
  assert_fails(kv_cache_set_allocator(inner, NULL, &error), GEN_ERROR_STATE, "allocator", error);

  /* In any order. */
  gen_tracer_free(tracer);
  kv_cache_free(inner);
  assert_int_equal(append(cache, 1, 2), GEN_OK);
  kv_cache_free(cache);
}

static void arguments_are_checked(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* cache = (kv_cache*)&error;
  assert_fails(gen_tracer_new(NULL, &error), bad, "out", error);
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_q4_new(1, 4, &inner, &error), error);
  assert_fails(kv_cache_tracing_new(NULL, tracer, &cache, &error), bad, "cache", error);
  assert_null(cache);
  assert_fails(kv_cache_tracing_new(inner, NULL, &cache, &error), bad, "tracer", error);
  assert_fails(kv_cache_tracing_new(inner, tracer, NULL, &error), bad, "out", error);
  assert_ok(kv_cache_set_allocator(inner, NULL, &error), error); /* still without shape */
  assert_int_equal(gen_tracer_op_count(NULL), 0);
  gen_tracer_free(NULL);
  gen_tracer_free(tracer);
  kv_cache_free(inner);
}

static void a_models_cache_is_refused(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const gen_model_config* config = gen_model_get_config(model);
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* cache = NULL;
  const size_t vocab = (size_t)gen_model_config_vocab_size(config);
  float* logits = malloc(vocab * sizeof(float));
  const int32_t token = 100;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_new(gen_model_config_num_layers(config), 4, &inner, &error), error);
  assert_ok(gen_model_forward(model, &token, 1, inner, logits, vocab, &error), error);
  assert_fails(kv_cache_tracing_new(inner, tracer, &cache, &error), GEN_ERROR_STATE,
               "gen_model_forward", error);
  kv_cache_free(inner);
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_fails(kv_cache_tracing_new((kv_cache*)gen_session_cache(session), tracer, &cache, &error),
               GEN_ERROR_STATE, "session", error);
  gen_session_free(session);
  gen_free(generator);
  gen_tracer_free(tracer);
  gen_model_free(model);
  free(logits);
}

static void records_are_written_to_files(void** state) {
  (void)state;
  gen_tracer* tracer = NULL;
  kv_cache* inner = NULL;
  kv_cache* cache = NULL;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_ok(kv_cache_new(1, 4, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &cache, &error), error);
  assert_int_equal(append(cache, 0, 1), GEN_OK);
  char folder[] = "trace_test_XXXXXX";
  assert_non_null(mkdtemp(folder));
  char path[64];
  snprintf(path, sizeof(path), "%s/t", folder);
  assert_ok(gen_tracer_write_json(tracer, path, &error), error);
  size_t size = 0;
  unsigned char* bytes = read_file(path, &size);
  bytes[size] = 0;
  assert_non_null(strstr((char*)bytes, "\"name\":\"KVCacheAppendV\""));
  assert_non_null(strstr((char*)bytes, "{\"id\":1,\"shape\":[1,1,2]}"));
  free(bytes);
  assert_ok(gen_tracer_write_dot(tracer, path, &error), error); /* replaces it */
  bytes = read_file(path, &size);
  bytes[size] = 0;
  assert_non_null(strstr((char*)bytes, "digraph trace {"));
  free(bytes);
  unlink(path);
  assert_fails(gen_tracer_write_json(tracer, "no such folder/t", &error), GEN_ERROR_IO,
               "no such folder", error);
  assert_fails(gen_tracer_write_dot(tracer, "no such folder/t", &error), GEN_ERROR_IO,
               "no such folder", error);
  assert_fails(gen_tracer_write_json(NULL, path, &error), bad, "tracer", error);
  assert_fails(gen_tracer_write_json(tracer, NULL, &error), bad, "path", error);
  assert_fails(gen_tracer_write_dot(NULL, path, &error), bad, "tracer", error);
  assert_fails(gen_tracer_write_dot(tracer, NULL, &error), bad, "path", error);
  rmdir(folder);
  kv_cache_free(cache);
  kv_cache_free(inner);
  gen_tracer_free(tracer);
}

static size_t count_of(const gen_tracer* tracer, const char* part) {
  size_t found = 0;
  for (size_t i = 0; i < gen_tracer_op_count(tracer); ++i) {
    char text[1024];
    size_t n = 0;
    assert_ok(gen_tracer_op(tracer, i, text, sizeof text, &n, &error), error);
    if (strstr(text, part) != NULL) ++found;
  }
  return found;
}

/* Eight tokens after a prompt; free() the text. */
static char* generate(const gen_model* model, const gen_options* options) {
  gen_generator* generator = NULL;
  gen_sampling* sampling = greedy(8);
  gen_result* result = NULL;
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_ok(gen_generate(generator, "The fox", 7, sampling, &result, &error), error);
  char* text = strdup(gen_result_text(result, NULL));
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_free(generator);
  return text;
}

static void generations_are_traced(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t layers = gen_model_config_num_layers(gen_model_get_config(model));
  gen_options* options = NULL;
  gen_tracer* tracer = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_tracer_new(&tracer, &error), error);
  assert_fails(gen_options_set_tracer(NULL, tracer, &error), bad, "options", error);
  char* plain = generate(model, options);
  assert_ok(gen_options_set_tracer(options, tracer, &error), error);
  char* traced = generate(model, options);
  assert_string_equal(plain, traced);
  /* The prompt's pass, and one for each token but the last. */
  const size_t passes = count_of(tracer, "\"name\":\"embed\"");
  assert_int_equal(passes, 8);
  assert_int_equal(count_of(tracer, "\"name\":\"best\""),
                   8); /* greedy: the model finds the token */
  assert_int_equal(count_of(tracer, "\"name\":\"logits\""), 0);
  static const char* const each_layer[] = {"rope_append",    "attention",   "KVCacheAppendK",
                                           "KVCacheAppendV", "KVCacheGetK", "KVCacheGetV"};
  for (size_t i = 0; i < sizeof each_layer / sizeof *each_layer; ++i) {
    char part[64];
    snprintf(part, sizeof part, "\"name\":\"%s\"", each_layer[i]);
    assert_int_equal(count_of(tracer, part), passes * (size_t)layers);
  }
  assert_int_equal(count_of(tracer, "\"layer\":0"), 6 * passes);
  assert_true(count_of(tracer, "\"weight\":\"blk.0.attn_output.weight\"") == passes);
  /* A tracer may go before its generators, and be taken away again. */
  const size_t count = gen_tracer_op_count(tracer);
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_ok(gen_options_set_tracer(options, NULL, &error), error);
  free(traced);
  traced = generate(model, options);
  assert_int_equal(gen_tracer_op_count(tracer), count);
  gen_tracer_free(tracer);
  gen_result* result = NULL;
  gen_sampling* sampling = greedy(3);
  assert_ok(gen_generate(generator, "The fox", 7, sampling, &result, &error), error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_free(generator);
  free(plain);
  free(traced);
  gen_options_free(options);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operations_are_recorded),   cmocka_unit_test(arguments_are_checked),
      cmocka_unit_test(a_models_cache_is_refused), cmocka_unit_test(records_are_written_to_files),
      cmocka_unit_test(generations_are_traced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

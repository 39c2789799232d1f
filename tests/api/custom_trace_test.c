/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded of a model of one's own: its calls and what it does to caches of the library,
 * and what profiles measure of it. The model is a function that attends and always says the same
 * token; the records are written down by hand. */
#include "api_test.h"

#include <unistd.h>

enum { VOCAB = 10, HEADS = 4, KV_HEADS = 2, DIM = 8, MOST_ROWS = 8 };

struct host {
  int layers;
  int backwards;     /* runs its layers from the last one */
  int fails_after;   /* layers at its next call; 0 for never */
  kv_cache* own;     /* a cache of its own, which gets a row at each call */
  int32_t calls[9];  /* rows of each */
  int32_t wanted[9]; /* logits of each */
  int n;
};

static gen_status forward(void* user, const gen_forward_batch* batch, float* logits,
                          float* features, gen_error* said) {
  struct host* host = user;
  (void)features;
  assert_true(batch->n_rows <= MOST_ROWS && host->n < 9);
  host->wanted[host->n] = batch->n_logits;
  host->calls[host->n++] = batch->n_rows;
  for (int32_t i = 0; i < batch->n_logits * VOCAB; ++i) logits[i] = i % VOCAB == 7 ? 1.0F : 0.0F;
  float x[MOST_ROWS * HEADS * DIM];
  float out[MOST_ROWS * HEADS * DIM];
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i) x[i] = 0.5F;
  for (int i = 0; i < host->layers; ++i) {
    const int layer = host->backwards ? host->layers - 1 - i : i;
    const gen_status status = gen_forward_attention(batch, layer, x, x, x, 1, out, said);
    if (status != GEN_OK) return status;
    if (i + 1 != host->fails_after) continue;
    host->fails_after = 0;
    gen_error ignored;
    assert_int_equal(gen_forward_attention(batch, layer, x, x, x, 1, out, &ignored),
                     GEN_ERROR_INVALID_ARGUMENT);
    return GEN_ERROR_DEVICE;
  }
  if (host->own == NULL) return GEN_OK;
  return kv_cache_update(host->own, 0, x, x, 1, 1, 3, said);
}

static gen_model* make_model(struct host* host) {
  const gen_forward table = {.struct_size = sizeof table, .user = host, .forward = forward};
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, VOCAB, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 40, &error), error);
  assert_ok(gen_model_config_set_num_heads(config, HEADS, &error), error);
  assert_ok(gen_model_config_set_num_kv_heads(config, KV_HEADS, &error), error);
  assert_ok(gen_model_config_set_head_dim(config, DIM, &error), error);
  assert_ok(gen_model_config_set_kv_layers(config, host->layers, &error), error);
  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

static gen_generator* make_generator(struct host* host, const gen_tracer* tracer) {
  gen_model* model = make_model(host);
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_tracer(options, tracer, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  gen_model_free(model);
  return generator;
}

static gen_tracer* make_tracer(void) {
  gen_tracer* tracer = NULL;
  assert_ok(gen_tracer_new(&tracer, &error), error);
  return tracer;
}

static gen_status say(gen_session* session, int32_t more) {
  gen_sampling* sampling = greedy(more);
  gen_result* result = NULL;
  const gen_status status = gen_session_generate(session, "", 0, sampling, &result, &error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  return status;
}

/* All of the record is this: "name:layer inputs>outputs", layer only where there is one. */
static void assert_records(const gen_tracer* tracer, const char* const* lines, size_t count) {
  for (size_t i = 0; i < count || i < gen_tracer_op_count(tracer); ++i) {
    char text[512];
    char name[64];
    char inputs[128];
    char outputs[128];
    char attributes[64];
    char line[512];
    size_t n = 0;
    if (i >= count) fail_msg("%zu operations, not %zu", gen_tracer_op_count(tracer), count);
    assert_ok(gen_tracer_op(tracer, i, text, sizeof text, &n, &error), error);
    const int found = sscanf(text,
                             "{\"name\":\"%63[^\"]\",\"inputs\":%127[^]]],\"outputs\":%127[^]]],"
                             "\"attributes\":{%63[^}]",
                             name, inputs, outputs, attributes);
    if (found < 3) fail_msg("%s", text);
    if (found < 4) attributes[0] = '\0';
    const char* layer = strncmp(attributes, "\"layer\":", 8) == 0 ? attributes + 7 : attributes;
    snprintf(line, sizeof line, "%s%s %s>%s", name, layer, inputs + 1, outputs + 1);
    assert_string_equal(line, lines[i]);
  }
}

/* A prompt of three tokens and two more: two rows without logits, then one and one. */
static void calls_and_their_caches_are_recorded(void** state) {
  (void)state;
  static const char* const lines[] = {"rope_append:0 1,2,3>4,5,6",
                                      "KVCacheAppendK:0 5>7",
                                      "KVCacheAppendV:0 6>8",
                                      "KVCacheGetK:0 7>9",
                                      "KVCacheGetV:0 8>10",
                                      "attention:0 4,9,10>11",
                                      "rope_append:1 12,13,14>15,16,17",
                                      "KVCacheAppendK:1 16>18",
                                      "KVCacheAppendV:1 17>19",
                                      "KVCacheGetK:1 18>20",
                                      "KVCacheGetV:1 19>21",
                                      "attention:1 15,20,21>22",
                                      "forward 23,11,22>", /* nobody wants logits yet */
                                      "rope_append:0 24,25,26>27,28,29",
                                      "KVCacheAppendK:0 7,28>30",
                                      "KVCacheAppendV:0 8,29>31",
                                      "KVCacheGetK:0 30>32",
                                      "KVCacheGetV:0 31>33",
                                      "attention:0 27,32,33>34",
                                      "rope_append:1 35,36,37>38,39,40",
                                      "KVCacheAppendK:1 18,39>41",
                                      "KVCacheAppendV:1 19,40>42",
                                      "KVCacheGetK:1 41>43",
                                      "KVCacheGetV:1 42>44",
                                      "attention:1 38,43,44>45",
                                      "forward 46,34,45>47",
                                      "rope_append:0 48,49,50>51,52,53",
                                      "KVCacheAppendK:0 30,52>54",
                                      "KVCacheAppendV:0 31,53>55",
                                      "KVCacheGetK:0 54>56",
                                      "KVCacheGetV:0 55>57",
                                      "attention:0 51,56,57>58",
                                      "rope_append:1 59,60,61>62,63,64",
                                      "KVCacheAppendK:1 41,63>65",
                                      "KVCacheAppendV:1 42,64>66",
                                      "KVCacheGetK:1 65>67",
                                      "KVCacheGetV:1 66>68",
                                      "attention:1 62,67,68>69",
                                      "forward 70,58,69>71"};
  struct host host = {.layers = 2};
  gen_tracer* tracer = make_tracer();
  gen_generator* generator = make_generator(&host, tracer);
  gen_session* session = NULL;
  const int32_t tokens[] = {3, 1, 4};
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, 3, &error), error);
  assert_ok(say(session, 2), error);
  assert_int_equal(host.n, 3);
  assert_int_equal(host.calls[0] * 10 + host.wanted[0], 20);
  assert_int_equal(host.calls[1] * 10 + host.wanted[1], 11);
  assert_records(tracer, lines, sizeof lines / sizeof *lines);

  char folder[] = "custom_trace_XXXXXX";
  char path[64];
  size_t size = 0;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/t", folder);
  assert_ok(gen_tracer_write_json(tracer, path, &error), error);
  char* text = (char*)read_file(path, &size);
  text[size] = '\0';
  /* q, keys and values as given; kept rows and layers; what was read; tokens; logits. */
  static const char* const shapes[] = {
      "{\"id\":1,\"shape\":[1,2,32]}",  "{\"id\":2,\"shape\":[1,2,16]}",
      "{\"id\":4,\"shape\":[1,2,32]}",  "{\"id\":5,\"shape\":[2,2,8]}",
      "{\"id\":7,\"shape\":[2,2,8]}",   "{\"id\":9,\"shape\":[2,2,8]}",
      "{\"id\":11,\"shape\":[1,2,32]}", "{\"id\":23,\"shape\":[1,2,1]}",
      "{\"id\":28,\"shape\":[2,1,8]}",  "{\"id\":30,\"shape\":[2,3,8]}",
      "{\"id\":46,\"shape\":[1,1,1]}",  "{\"id\":47,\"shape\":[1,1,10]}",
      "{\"id\":66,\"shape\":[2,4,8]}",  "{\"id\":71,\"shape\":[1,1,10]}\n]}"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    if (strstr(text, shapes[i]) == NULL) fail_msg("%s is not in %s", shapes[i], text);
  }
  assert_null(strstr(text, "incomplete"));
  free(text);
  assert_ok(gen_tracer_write_dot(tracer, path, &error), error);
  text = (char*)read_file(path, &size);
  text[size] = '\0';
  static const char* const drawn[] = {
      "  op12 [label=\"forward\"];\n  t23 -> op12;\n  t11 -> op12;\n  t22 -> op12;\n  op13 [",
      "  t23 [shape=box,label=\"23: [1,2,1]\"];\n",
      "  op25 [label=\"forward\"];\n  t46 -> op25;\n  t34 -> op25;\n  t45 -> op25;\n",
      "  op25 -> t47;\n", "  op18 [label=\"attention 0\"];\n"};
  for (size_t i = 0; i < sizeof drawn / sizeof *drawn; ++i) {
    if (strstr(text, drawn[i]) == NULL) fail_msg("%s is not in %s", drawn[i], text);
  }
  free(text);
  unlink(path);
  rmdir(folder);
  gen_session_free(session);
  gen_free(generator);
  gen_tracer_free(tracer);
}

/* Layers that the function runs in another order are recorded in that order. */
static void sequences_and_layers_in_any_order(void** state) {
  (void)state;
  static const char* const lines[] = {"rope_append:1 1,2,3>4,5,6",
                                      "KVCacheAppendK:1 5>7",
                                      "KVCacheAppendV:1 6>8",
                                      "KVCacheAppendK:1 5>9",
                                      "KVCacheAppendV:1 6>10",
                                      "KVCacheGetK:1 7>11",
                                      "KVCacheGetV:1 8>12",
                                      "KVCacheGetK:1 9>13",
                                      "KVCacheGetV:1 10>14",
                                      "attention:1 4,11,12,13,14>15",
                                      "rope_append:0 16,17,18>19,20,21",
                                      "KVCacheAppendK:0 20>22",
                                      "KVCacheAppendV:0 21>23",
                                      "KVCacheAppendK:0 20>24",
                                      "KVCacheAppendV:0 21>25",
                                      "KVCacheGetK:0 22>26",
                                      "KVCacheGetV:0 23>27",
                                      "KVCacheGetK:0 24>28",
                                      "KVCacheGetV:0 25>29",
                                      "attention:0 19,26,27,28,29>30",
                                      "forward 31,30,15>32"};
  struct host host = {.layers = 2, .backwards = 1};
  gen_tracer* tracer = make_tracer();
  gen_generator* generator = make_generator(&host, tracer);
  gen_sampling* sampling = greedy(1);
  gen_request* requests[2];
  gen_result* results[2];
  const int32_t tokens[] = {3, 1, 4};
  for (size_t i = 0; i < 2; ++i) {
    assert_ok(gen_request_new(&requests[i], &error), error);
    assert_ok(gen_request_set_prompt_tokens(requests[i], tokens, i + 2, &error), error);
    assert_ok(gen_request_set_sampling(requests[i], sampling, &error), error);
  }
  assert_ok(gen_batch_generate(generator, (const gen_request* const*)requests, 2, results, &error),
            error);
  assert_int_equal(host.n, 1); /* one call for both */
  assert_int_equal(host.calls[0], 5);
  assert_records(tracer, lines, sizeof lines / sizeof *lines);
  for (size_t i = 0; i < 2; ++i) {
    gen_result_free(results[i]);
    gen_request_free(requests[i]);
  }
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_tracer_free(tracer);
}

/* What a call did before it failed is recorded, the call and what failed in it are not. */
static void calls_that_fail_are_not_recorded(void** state) {
  (void)state;
  static const char* const lines[] = {"rope_append:0 1,2,3>4,5,6",
                                      "KVCacheAppendK:0 5>7",
                                      "KVCacheAppendV:0 6>8",
                                      "KVCacheGetK:0 7>9",
                                      "KVCacheGetV:0 8>10",
                                      "attention:0 4,9,10>11",
                                      "rope_append:0 12,13,14>15,16,17",
                                      "KVCacheAppendK:0 16>18",
                                      "KVCacheAppendV:0 17>19",
                                      "KVCacheGetK:0 18>20",
                                      "KVCacheGetV:0 19>21",
                                      "attention:0 15,20,21>22",
                                      "rope_append:1 23,24,25>26,27,28",
                                      "KVCacheAppendK:1 27>29",
                                      "KVCacheAppendV:1 28>30",
                                      "KVCacheGetK:1 29>31",
                                      "KVCacheGetV:1 30>32",
                                      "attention:1 26,31,32>33",
                                      "forward 34,22,33>"};
  struct host host = {.layers = 2, .fails_after = 1};
  gen_tracer* tracer = make_tracer();
  gen_generator* generator = make_generator(&host, tracer);
  gen_session* session = NULL;
  const int32_t tokens[] = {3, 1, 4};
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_fails(gen_session_append_tokens(session, tokens, 3, &error), GEN_ERROR_DEVICE, "", error);
  assert_records(tracer, lines, 6);
  assert_ok(gen_session_append_tokens(session, tokens, 3, &error), error);
  assert_records(tracer, lines, sizeof lines / sizeof *lines);
  gen_session_free(session);
  gen_free(generator);
  gen_tracer_free(tracer);
}

/* Without layers there is the call alone, and what it does to a traced cache of its own. */
static void calls_without_layers_are_recorded(void** state) {
  (void)state;
  static const char* const lines[] = {
      "KVCacheAppendK:0 1>3",   "KVCacheAppendV:0 2>4", "forward 5>",  "KVCacheAppendK:0 3,6>8",
      "KVCacheAppendV:0 4,7>9", "forward 10>11",        "forward 12>", "forward 13>14"};
  struct host host = {.layers = 0};
  gen_tracer* tracer = make_tracer();
  gen_generator* generator = make_generator(&host, tracer);
  gen_session* session = NULL;
  kv_cache* inner = NULL;
  const int32_t tokens[] = {3, 1, 4};
  assert_ok(kv_cache_new(1, 4, &inner, &error), error);
  assert_ok(kv_cache_tracing_new(inner, tracer, &host.own, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, 3, &error), error);
  assert_ok(say(session, 1), error);
  kv_cache_free(host.own);
  host.own = NULL;
  /* The token that was said is run first, for its place in the session. */
  assert_ok(gen_session_append_tokens(session, tokens, 1, &error), error);
  assert_ok(say(session, 1), error);
  assert_records(tracer, lines, sizeof lines / sizeof *lines);
  kv_cache_free(inner);
  gen_session_free(session);
  gen_free(generator);
  gen_tracer_free(tracer);
}

/* Three rows see one, two and three positions, in four heads over two of eight elements. */
static void calls_are_measured(void** state) {
  (void)state;
  static const struct {
    const char* name;
    double rows, bytes, operations;
  } wanted[] = {{"rope_append 0", 3, 0, 0},
                {"attention 0", 3, 3 * 2 * (8 + 8) * 4, 2 * 6 * 4 * (8 + 8)},
                {"rope_append 1", 3, 0, 0},
                {"attention 1", 3, 3 * 2 * (8 + 8) * 4, 2 * 6 * 4 * (8 + 8)},
                {"forward", 3, 0, 0}};
  struct host host = {.layers = 2, .backwards = 1};
  gen_model* model = make_model(&host);
  gen_profile* profile = NULL;
  kv_cache* cache = NULL;
  float logits[3 * VOCAB];
  const int32_t tokens[] = {3, 1, 4};
  assert_ok(kv_cache_new(2, 4, &cache, &error), error);
  assert_ok(gen_profile_new(&profile, &error), error);
  assert_ok(gen_model_forward_profiled(model, tokens, NULL, NULL, 3, &cache, 1, logits, 3 * VOCAB,
                                       profile, &error),
            error);
  assert_int_equal(gen_profile_count(profile), 5);
  for (size_t i = 0; i < 5; ++i) {
    const struct {
      const char* key;
      double value;
    } figures[] = {{"calls", 1},
                   {"rows", wanted[i].rows},
                   {"bytes", wanted[i].bytes},
                   {"operations", wanted[i].operations}};
    double value = 0;
    assert_string_equal(gen_profile_name(profile, i), wanted[i].name);
    for (size_t f = 0; f < 4; ++f) {
      assert_ok(gen_profile_get(profile, i, figures[f].key, &value, &error), error);
      if (value != figures[f].value)
        fail_msg("%s of %s: %g", figures[f].key, wanted[i].name, value);
    }
    assert_ok(gen_profile_get(profile, i, "seconds", &value, &error), error);
    assert_true(value > 0);
  }
  gen_profile_free(profile);
  kv_cache_free(cache);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_and_their_caches_are_recorded),
      cmocka_unit_test(sequences_and_layers_in_any_order),
      cmocka_unit_test(calls_that_fail_are_not_recorded),
      cmocka_unit_test(calls_without_layers_are_recorded),
      cmocka_unit_test(calls_are_measured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

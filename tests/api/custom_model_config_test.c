/* SPDX-License-Identifier: Apache-2.0 */
/* custom_model.h: configurations, tables that are none, and gen_pad_left. What such a model
 * generates is custom_model_test.c's. */
#include "toy_model.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t prompt[] = {3, 14, 15, 9, 26, 5, 35};
enum { PROMPT = sizeof prompt / sizeof prompt[0] };

static void what_it_says_of_itself(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  const gen_forward table = table_of(&toy, STATELESS);
  gen_model_config* config = toy_config();
  gen_model* model = NULL;
  const struct {
    const char* key;
    gen_status (*set)(gen_model_config*, int32_t, gen_error*);
    int32_t (*get)(const gen_model_config*);
    int32_t least;
  } rows[] = {
      {"vocab_size", gen_model_config_set_vocab_size, gen_model_config_vocab_size, 1},
      {"max_seq_len", gen_model_config_set_max_seq_len, gen_model_config_max_seq_len, 1},
      {"eos", gen_model_config_set_eos, gen_model_config_eos, -1},
      {"bos", gen_model_config_set_bos, gen_model_config_bos, -1},
      {"num_layers", gen_model_config_set_num_layers, gen_model_config_num_layers, 0},
      {"num_heads", gen_model_config_set_num_heads, gen_model_config_num_heads, 0},
      {"num_kv_heads", gen_model_config_set_num_kv_heads, gen_model_config_num_kv_heads, 0},
      {"head_dim", gen_model_config_set_head_dim, gen_model_config_head_dim, 0},
      {"hidden", gen_model_config_set_hidden, gen_model_config_hidden, 0},
      {"kv_layers", gen_model_config_set_kv_layers, gen_model_config_num_cache_layers, 0},
  };
  char text[2000];
  char part[80];
  size_t n = 0;
  for (int32_t i = 0; i < 10; ++i) {
    const int32_t before = rows[i].get(config);
    assert_fails(rows[i].set(config, rows[i].least - 1, &error), bad, rows[i].key, error);
    assert_fails(gen_model_config_set(config, rows[i].key, "-7", &error), bad, rows[i].key, error);
    assert_fails(gen_model_config_set(config, rows[i].key, "3000000000", &error), bad, rows[i].key,
                 error);
    assert_fails(gen_model_config_set(config, rows[i].key, "x", &error), bad, "whole number",
                 error);
    assert_fails(rows[i].set(NULL, 1, &error), bad, "NULL", error);
    assert_int_equal(rows[i].get(config), before);
    assert_ok(rows[i].set(config, rows[i].least, &error), error);
    assert_int_equal(rows[i].get(config), rows[i].least);
    snprintf(part, sizeof part, "%d", 100 - i);
    assert_ok(gen_model_config_set(config, rows[i].key, part, &error), error);
    assert_int_equal(rows[i].get(config), 100 - i);
    assert_ok(gen_model_config_describe(config, text, sizeof text, &n, &error), error);
    snprintf(part, sizeof part, "\"value\":\"%d\"", 100 - i);
    assert_non_null(strstr(text, part));
  }
  assert_ok(gen_model_config_set_kv_layers(config, 0, &error), error);
  assert_ok(gen_model_config_set_name(config, "toy", &error), error);
  assert_fails(gen_model_config_set_name(config, "", &error), bad, "0 bytes", error);
  assert_fails(gen_model_config_set_name(config, "a\"b", &error), bad, "quotes", error);
  assert_fails(gen_model_config_set_name(config, "12345678901234567890123456789012", &error), bad,
               "32 bytes", error);
  assert_fails(gen_model_config_set_name(config, NULL, &error), bad, "NULL", error);
  assert_fails(gen_model_config_set(config, "size", "1", &error), bad, "size", error);
  assert_fails(gen_model_config_set(config, NULL, "1", &error), bad, "NULL", error);
  assert_fails(gen_model_config_set(config, "eos", NULL, &error), bad, "NULL", error);
  assert_fails(gen_model_config_set(NULL, "eos", "1", &error), bad, "NULL", error);
  assert_fails(gen_model_config_describe(config, text, 10, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "10", error);
  assert_fails(gen_model_config_describe(config, text, sizeof text, NULL, &error), bad, "NULL",
               error);
  assert_fails(gen_model_config_describe(NULL, text, sizeof text, &n, &error), bad, "NULL", error);
  assert_fails(gen_model_config_new(NULL, &error), bad, "NULL", error);
  gen_model_config_free(NULL);

  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  assert_int_equal(gen_model_config_head_dim(gen_model_get_config(model)), 93);
  assert_ok(gen_model_describe(model, text, sizeof text, &n, &error), error);
  assert_string_equal(
      text,
      "{\"architecture\":\"toy\",\"name\":\"toy\",\"vocab_size\":100,\"max_seq_len\":99,"
      "\"num_layers\":96,\"num_heads\":95,\"num_kv_heads\":94,\"head_dim\":93,\"hidden\":92,"
      "\"backend\":\"custom\"}");
  assert_int_equal(gen_model_metadata_count(model), 0);
  assert_null(gen_model_metadata_key(model, 0));
  assert_fails(gen_model_metadata_value(model, "a", text, sizeof text, &n, &error), bad, "a",
               error);
  size_t bytes = 1;
  const char* keys[] = {"weights", "workspace", "mapped", "stream", "file"};
  for (int i = 0; i < 5; ++i) {
    assert_ok(gen_model_memory(model, keys[i], &bytes, &error), error);
    assert_int_equal(bytes, 0);
  }
  assert_fails(gen_model_memory(model, "size", &bytes, &error), bad, "size", error);
  gen_model_free(model);
  assert_balanced(&toy);
}

static void bad_tables(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  gen_model_config* config = toy_config();
  gen_model* model = NULL;
  const gen_forward good = table_of(&toy, WITH_STATE);
  gen_forward table = good;
  assert_fails(gen_model_new_custom(NULL, config, NULL, &model, &error), bad, "NULL", error);
  assert_fails(gen_model_new_custom(&table, NULL, NULL, &model, &error), bad, "NULL", error);
  assert_fails(gen_model_new_custom(&table, config, NULL, NULL, &error), bad, "NULL", error);
  const uint32_t sizes[] = {0, 1, offsetof(gen_forward, state_layers) - 1,
                            offsetof(gen_forward, release)};
  for (int i = 0; i < 4; ++i) {
    table.struct_size = sizes[i];
    model = (gen_model*)&table;
    assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "struct_size",
                 error);
    assert_null(model);
  }
  table = good;
  table.forward = NULL;
  assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "forward", error);
  for (int i = 0; i < 3; ++i) {
    table = good;
    table.state_new = NULL;
    if (i != 0) table.state_clone = NULL;
    if (i != 1) table.state_truncate = NULL;
    if (i != 2) table.state_free = NULL;
    assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "state_new",
                 error);
  }
  /* Sizes that are none. */
  gen_model_config* empty = NULL;
  assert_ok(gen_model_config_new(&empty, &error), error);
  assert_fails(gen_model_new_custom(&good, empty, NULL, &model, &error), bad, "vocabulary", error);
  assert_ok(gen_model_config_set_vocab_size(empty, 5, &error), error);
  assert_fails(gen_model_new_custom(&good, empty, NULL, &model, &error), bad, "context of 0",
               error);
  assert_ok(gen_model_config_set_max_seq_len(empty, 5, &error), error);
  assert_ok(gen_model_config_set_eos(empty, 5, &error), error);
  assert_fails(gen_model_new_custom(&good, empty, NULL, &model, &error), bad, "eos 5", error);
  assert_ok(gen_model_config_set_eos(empty, 4, &error), error);
  assert_ok(gen_model_config_set_bos(empty, 7, &error), error);
  assert_fails(gen_model_new_custom(&good, empty, NULL, &model, &error), bad, "bos 7", error);
  gen_model_config_free(empty);
  assert_int_equal(toy.releases, 0);

  /* A table of a later version: what this one does not know is not read. */
  struct {
    gen_forward known;
    void (*unknown)(void);
  } later = {.known = good};
  later.known.struct_size = sizeof later;
  memset(&later.unknown, 0xA5, sizeof later.unknown);
  gen_session* session = NULL;
  gen_generator* generator = toy_generator(&later.known, NULL);
  session = open_session(generator);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_goes_on(session, &toy, 5);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
  gen_model_config_free(config);
}

static void rectangles(void** state) {
  (void)state;
  static const int32_t tokens[] = {1, 2, 3, 4, 5, 6};
  static const size_t lengths[] = {2, 0, 3, 1};
  static const int32_t wanted[] = {-9, 1, 2, -9, -9, -9, 3, 4, 5, -9, -9, 6};
  int32_t out[13];
  size_t width = 0;
  assert_ok(gen_pad_left(tokens, lengths, 4, -9, NULL, 0, &width, &error), error);
  assert_int_equal(width, 3);
  out[12] = 77;
  assert_ok(gen_pad_left(tokens, lengths, 4, -9, out, 12, &width, &error), error);
  assert_memory_equal(out, wanted, sizeof wanted);
  assert_int_equal(out[12], 77);
  width = 0;
  out[0] = 77;
  assert_fails(gen_pad_left(tokens, lengths, 4, -9, out, 11, &width, &error),
               GEN_ERROR_OUT_OF_RANGE, "11", error);
  assert_int_equal(width, 3);
  assert_int_equal(out[0], 77);
  static const size_t huge[] = {SIZE_MAX / 2, 0, 0};
  assert_fails(gen_pad_left(tokens, huge, 3, 0, out, 13, &width, &error), GEN_ERROR_OUT_OF_RANGE,
               "13", error);
  assert_ok(gen_pad_left(NULL, NULL, 0, 0, out, 13, &width, &error), error);
  assert_int_equal(width, 0);
  assert_ok(gen_pad_left(NULL, &lengths[1], 1, 0, out, 13, &width, &error), error);
  assert_fails(gen_pad_left(NULL, lengths, 4, 0, out, 13, &width, &error), bad, "NULL", error);
  assert_fails(gen_pad_left(tokens, NULL, 4, 0, out, 13, &width, &error), bad, "NULL", error);
  assert_fails(gen_pad_left(tokens, lengths, 4, 0, out, 13, NULL, &error), bad, "NULL", error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_it_says_of_itself),
      cmocka_unit_test(bad_tables),
      cmocka_unit_test(rectangles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

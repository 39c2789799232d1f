/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h: the tokenizer of the bundled draft model and its chat form. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static int load(void** state) {
  gen_tokenizer* tokenizer = NULL;
  if (gen_tokenizer_load(DRAFT_MODEL, &tokenizer, &error) != GEN_OK) {
    print_error("%s\n", error.message);
    return -1;
  }
  *state = tokenizer;
  return 0;
}

static int unload(void** state) {
  gen_tokenizer_free(*state);
  return 0;
}

static size_t encode(const gen_tokenizer* t, const char* text, uint32_t flags, int32_t* ids,
                     size_t capacity) {
  size_t n = 0;
  assert_ok(gen_tokenizer_encode(t, text, GEN_NUL_TERMINATED, flags, ids, capacity, &n, &error),
            error);
  return n;
}

static void texts_come_back(void** state) {
  const gen_tokenizer* t = *state;
  static const char* const texts[] = {"Once upon a time",
                                      " leading",
                                      "two  spaces",
                                      "line\nbreak\n",
                                      "na\xc3\xafve caf\xc3\xa9 \xf0\x9f\x90\xb8",
                                      "",
                                      "\t"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    int32_t ids[128];
    char text[128];
    size_t n = encode(t, texts[i], 0, ids, 128);
    assert_ok(gen_tokenizer_decode(t, ids, n, text, sizeof text, &n, &error), error);
    assert_string_equal(text, texts[i]);
    assert_int_equal(n, strlen(texts[i]));
  }
}

static void flags_add_bos_and_parse_special(void** state) {
  const gen_tokenizer* t = *state;
  int32_t ids[64];
  const int32_t bos = gen_tokenizer_special(t, GEN_SPECIAL_BOS);
  assert_true(bos >= 0);
  const size_t plain = encode(t, "hello", 0, ids, 64);
  assert_int_not_equal(ids[0], bos);
  assert_int_equal(encode(t, "hello", GEN_ENCODE_ADD_BOS, ids, 64), plain + 1);
  assert_int_equal(ids[0], bos);

  const int32_t eot = gen_tokenizer_special(t, GEN_SPECIAL_EOT);
  assert_true(eot >= 0);
  assert_int_equal(encode(t, "<|im_end|>", GEN_ENCODE_PARSE_SPECIAL, ids, 64), 1);
  assert_int_equal(ids[0], eot);
  assert_true(encode(t, "<|im_end|>", 0, ids, 64) > 1);
  for (size_t i = 0; i < encode(t, "<|im_end|>", 0, ids, 64); ++i)
    assert_int_not_equal(ids[i], eot);
}

static void continued_texts_decode_together(void** state) {
  const gen_tokenizer* t = *state;
  static const char* const rest[] = {"en cat", " sat.", "\n  And", "caf\xc3\xa9", "", " "};
  int32_t ids[256];
  char expected[256] = "The gold";
  char text[256];
  size_t n = encode(t, expected, GEN_ENCODE_ADD_BOS, ids, 256);
  for (size_t i = 0; i < sizeof rest / sizeof rest[0]; ++i) {
    n += encode(t, rest[i], GEN_ENCODE_CONTINUE, ids + n, 256 - n);
    strcat(expected, rest[i]);
    size_t length = 0;
    assert_ok(gen_tokenizer_decode(t, ids, n, text, sizeof text, &length, &error), error);
    assert_string_equal(text, expected);
  }
  /* Without the flag it is another text; where begin-of-sequence comes first, the flag has no
   * effect. */
  int32_t other[64];
  n = encode(t, "en cat", GEN_ENCODE_CONTINUE, ids, 64);
  const size_t m = encode(t, "en cat", 0, other, 64);
  assert_true(n != m || memcmp(ids, other, n * sizeof(int32_t)) != 0);
  n = encode(t, "en cat", GEN_ENCODE_CONTINUE | GEN_ENCODE_ADD_BOS, ids, 64);
  assert_int_equal(n, encode(t, "en cat", GEN_ENCODE_ADD_BOS, other, 64));
  assert_memory_equal(ids, other, n * sizeof(int32_t));
}

static void encode_follows_the_buffer_rule(void** state) {
  const gen_tokenizer* t = *state;
  int32_t ids[16];
  size_t wanted = 0;
  size_t n = 0;
  assert_ok(gen_tokenizer_encode(t, "The cat sat.", 12, 0, NULL, 0, &wanted, &error), error);
  assert_true(wanted > 1 && wanted < 16);
  ids[0] = -7;
  assert_fails(gen_tokenizer_encode(t, "The cat sat.", 12, 0, ids, wanted - 1, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "do not fit", error);
  assert_int_equal(n, wanted);
  assert_int_equal(ids[0], -7);
  assert_ok(gen_tokenizer_encode(t, "The cat sat.", 12, 0, ids, wanted, &n, &error), error);
  assert_int_equal(n, wanted);
}

static void encode_refuses(void** state) {
  const gen_tokenizer* t = *state;
  size_t n = 9;
  assert_fails(gen_tokenizer_encode(t, "ab\xff", 3, 0, NULL, 0, &n, &error), GEN_ERROR_TOKENIZER,
               "2", error);
  assert_int_equal(n, 0);
  assert_fails(gen_tokenizer_encode(t, "a", 1, 8, NULL, 0, &n, &error), bad, "flags", error);
  assert_fails(gen_tokenizer_encode(t, NULL, 3, 0, NULL, 0, &n, &error), bad, "text", error);
  assert_fails(gen_tokenizer_encode(NULL, "a", 1, 0, NULL, 0, &n, &error), bad, "tokenizer", error);
  assert_fails(gen_tokenizer_encode(t, "a", 1, 0, NULL, 0, NULL, &error), bad, "n is NULL", error);
  assert_ok(gen_tokenizer_encode(t, NULL, 0, 0, NULL, 0, &n, &error), error);
  assert_int_equal(n, 0);
}

static void decode_and_piece_refuse(void** state) {
  const gen_tokenizer* t = *state;
  const int32_t vocab = gen_tokenizer_vocab_size(t);
  const int32_t outside[] = {-1, vocab, INT32_MAX, INT32_MIN};
  size_t n = 0;
  char text[64];
  for (size_t i = 0; i < 4; ++i) {
    assert_fails(gen_tokenizer_decode(t, &outside[i], 1, text, sizeof text, &n, &error),
                 GEN_ERROR_OUT_OF_RANGE, "vocabulary", error);
    assert_fails(gen_tokenizer_piece(t, outside[i], text, sizeof text, &n, &error),
                 GEN_ERROR_OUT_OF_RANGE, "vocabulary", error);
  }
  assert_fails(gen_tokenizer_decode(t, NULL, 1, text, sizeof text, &n, &error), bad, "ids", error);
  assert_fails(gen_tokenizer_decode(NULL, outside, 1, text, sizeof text, &n, &error), bad,
               "tokenizer", error);
  assert_fails(gen_tokenizer_piece(NULL, 0, text, sizeof text, &n, &error), bad, "tokenizer",
               error);
  assert_fails(gen_tokenizer_piece(t, 0, text, sizeof text, NULL, &error), bad, "n is NULL", error);
  assert_ok(gen_tokenizer_decode(t, NULL, 0, text, sizeof text, &n, &error), error);
  assert_int_equal(n, 0);
  /* A control token gives its name as a piece and nothing as text. */
  const int32_t eot = gen_tokenizer_special(t, GEN_SPECIAL_EOT);
  assert_ok(gen_tokenizer_piece(t, eot, text, sizeof text, &n, &error), error);
  assert_string_equal(text, "<|im_end|>");
  assert_ok(gen_tokenizer_decode(t, &eot, 1, text, sizeof text, &n, &error), error);
  assert_int_equal(n, 0);
}

static void getters_take_anything(void** state) {
  const gen_tokenizer* t = *state;
  assert_int_equal(gen_tokenizer_vocab_size(t), 4096);
  assert_int_equal(gen_tokenizer_vocab_size(NULL), 0);
  assert_int_equal(gen_tokenizer_special(NULL, GEN_SPECIAL_BOS), -1);
  assert_int_equal(gen_tokenizer_special(t, -1), -1);
  assert_int_equal(gen_tokenizer_special(t, 99), -1);
  gen_tokenizer_free(NULL);
}

static void load_refuses(void** state) {
  (void)state;
  gen_tokenizer* t = (gen_tokenizer*)&error;
  assert_fails(gen_tokenizer_load("no/such/file.gguf", &t, &error), GEN_ERROR_IO,
               "no/such/file.gguf", error);
  assert_null(t);
  assert_fails(gen_tokenizer_load(GEN_TEST_SOURCE_DIR, &t, &error), GEN_ERROR_IO, "directory",
               error);
  assert_fails(gen_tokenizer_load(NULL, &t, &error), bad, "path", error);
  assert_fails(gen_tokenizer_load(DRAFT_MODEL, NULL, &error), bad, "out", error);
  /* This source file is neither GGUF nor SentencePiece. */
  assert_int_not_equal(gen_tokenizer_load(GEN_TEST_SOURCE_DIR "/CMakeLists.txt", &t, &error),
                       GEN_OK);
  assert_null(t);
}

/* Words of another family merge otherwise. */
static void load_with_names_the_pre_tokenizer(void** state) {
  (void)state;
  static const char path[] = GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/byid.gguf";
  static const char text[] = "It's 12345 don't";
  gen_model_options* options = NULL;
  gen_tokenizer* t = NULL;
  int32_t ids[64];
  int32_t own[64];
  size_t n = 0;
  size_t n_own = 0;
  assert_ok(gen_tokenizer_load(path, &t, &error), error);
  assert_ok(gen_tokenizer_encode(t, text, sizeof text - 1, 0, own, 64, &n_own, &error), error);
  gen_tokenizer_free(t);
  assert_ok(gen_tokenizer_load_with(path, NULL, &t, &error), error);
  assert_ok(gen_tokenizer_encode(t, text, sizeof text - 1, 0, ids, 64, &n, &error), error);
  assert_int_equal(n, n_own);
  assert_memory_equal(ids, own, n * sizeof *ids);
  gen_tokenizer_free(t);
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set(options, "pre_tokenizer", "no-such", &error), error);
  assert_fails(gen_tokenizer_load_with(path, options, &t, &error), GEN_ERROR_UNSUPPORTED, "no-such",
               error);
  assert_null(t);
  assert_fails(gen_tokenizer_load_with(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/bpe.model",
                                       options, &t, &error),
               bad,
               "pre-tokenizer 'no-such' for a vocabulary of kind 'SentencePiece', which has none",
               error);
  assert_fails(gen_tokenizer_load_with(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/rwkv.gguf",
                                       options, &t, &error),
               bad, "pre-tokenizer 'no-such' for a vocabulary of kind 'rwkv', which has none",
               error);
  assert_fails(gen_tokenizer_load_with("no/such/file.gguf", options, &t, &error), GEN_ERROR_IO,
               "no/such/file.gguf", error);
  assert_fails(gen_tokenizer_load_with(NULL, options, &t, &error), bad, "path", error);
  assert_fails(gen_tokenizer_load_with(path, options, NULL, &error), bad, "out", error);
  assert_ok(gen_model_options_set(options, "pre_tokenizer", "bloom", &error), error);
  assert_ok(gen_tokenizer_load_with(path, options, &t, &error), error);
  assert_ok(gen_tokenizer_encode(t, text, sizeof text - 1, 0, ids, 64, &n, &error), error);
  assert_true(n != n_own || memcmp(ids, own, n * sizeof *ids) != 0);
  char back[64];
  size_t length = 0;
  assert_ok(gen_tokenizer_decode(t, ids, n, back, sizeof back, &length, &error), error);
  assert_string_equal(back, text);
  gen_tokenizer_free(t);
  gen_model_options_free(options);
}

static void chat_is_laid_out(void** state) {
  (void)state;
  assert_fails(gen_chat_new(NULL, &error), bad, "out", error);
  gen_model* model = load_draft();
  gen_chat* chat = NULL;
  char text[256];
  size_t n = 0;
  assert_ok(gen_chat_new(&chat, &error), error);
  assert_ok(gen_chat_add(chat, "system", "Be kind.", 8, &error), error);
  assert_ok(gen_chat_add(chat, "user", "Hi", GEN_NUL_TERMINATED, &error), error);
  assert_ok(gen_chat_format(model, chat, 1, text, sizeof text, &n, &error), error);
  const char* expected =
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
      "<|im_start|>assistant\n";
  assert_string_equal(text, expected);
  assert_int_equal(n, strlen(expected));
  assert_ok(gen_chat_format(model, chat, 0, text, sizeof text, &n, &error), error);
  assert_null(strstr(text, "assistant"));

  assert_fails(gen_chat_add(chat, "", "x", 1, &error), bad, "role", error);
  assert_fails(gen_chat_add(chat, NULL, "x", 1, &error), bad, "role", error);
  assert_fails(gen_chat_add(chat, "user", "\xc3", 1, &error), bad, "UTF-8", error);
  assert_fails(gen_chat_add(chat, "user", NULL, 1, &error), bad, "text", error);
  assert_fails(gen_chat_add(NULL, "user", "x", 1, &error), bad, "chat", error);
  size_t same = 0;
  assert_ok(gen_chat_format(model, chat, 0, NULL, 0, &same, &error), error);
  assert_int_equal(same, n); /* the refused messages left no trace */

  assert_fails(gen_chat_format(model, chat, 0, text, n, &same, &error), GEN_ERROR_OUT_OF_RANGE,
               "do not fit", error);
  assert_fails(gen_chat_format(NULL, chat, 0, text, sizeof text, &n, &error), bad, "model", error);
  assert_fails(gen_chat_format(model, NULL, 0, text, sizeof text, &n, &error), bad, "chat", error);
  assert_ok(gen_chat_add(chat, "user", "end it <|im_end|> now", GEN_NUL_TERMINATED, &error), error);
  assert_fails(gen_chat_format(model, chat, 0, text, sizeof text, &n, &error), bad, "<|im_end|>",
               error);
  gen_chat_free(chat);
  gen_chat_free(NULL);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_come_back),
      cmocka_unit_test(flags_add_bos_and_parse_special),
      cmocka_unit_test(continued_texts_decode_together),
      cmocka_unit_test(encode_follows_the_buffer_rule),
      cmocka_unit_test(encode_refuses),
      cmocka_unit_test(decode_and_piece_refuse),
      cmocka_unit_test(getters_take_anything),
      cmocka_unit_test(load_refuses),
      cmocka_unit_test(load_with_names_the_pre_tokenizer),
      cmocka_unit_test(chat_is_laid_out),
  };
  return cmocka_run_group_tests(tests, load, unload);
}

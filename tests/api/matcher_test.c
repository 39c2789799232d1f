/* SPDX-License-Identifier: Apache-2.0 */
/* Matchers over the bundled draft model's tokenizer: masks, going back, forks, forced tokens. */
#include "grammar_calls.h"

/* A bit of the mask is set exactly if the token is taken, and that changes nothing by itself. */
static void masks_say_what_is_accepted(void** state) {
  (void)state;
  gen_grammar* grammar = gbnf(kList);
  gen_grammar_matcher* matcher = matcher_of(grammar);
  gen_grammar_free(grammar);
  uint32_t* bits = calloc(words + 2, 4);
  uint32_t* again = calloc(words, 4);
  static const char* const steps[] = {"", "[", "[2", "2,", "1]", "]"};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) {
    accept(matcher, steps[i]);
    bits[words] = bits[words + 1] = 7;
    assert_ok(gen_grammar_matcher_mask(matcher, bits, words + 2, &error), error);
    assert_int_equal(bits[words] | bits[words + 1], 0);
    int allowed = 0;
    for (int32_t id = 0; id < (int32_t)vocab; ++id) {
      const gen_status status = gen_grammar_matcher_accept_token(matcher, id, NULL);
      assert_int_equal(status == GEN_OK, has(bits, id));
      if (status != GEN_OK) continue;
      ++allowed;
      assert_ok(gen_grammar_matcher_rollback(matcher, 1, &error), error);
    }
    assert_true(allowed > 0);
    assert_ok(gen_grammar_matcher_mask(matcher, again, words, &error), error);
    assert_memory_equal(bits, again, words * 4);
    const int32_t eos = gen_tokenizer_special(tokenizer, GEN_SPECIAL_EOS);
    assert_int_equal(has(bits, eos), i == 5);
    assert_int_equal(gen_grammar_matcher_complete(matcher), i == 5 ? 2 : 0);
    if (i == 5) assert_true(allowed >= 1);
  }
  free(bits);
  free(again);
  gen_grammar_matcher_free(matcher);
}

static void matchers_go_back_and_fork(void** state) {
  (void)state;
  gen_grammar* grammar = gbnf(kList);
  gen_grammar_matcher *matcher = matcher_of(grammar), *fork = NULL;
  uint32_t bytes[8];
  int64_t fewest = -1;
  accept(matcher, "[");
  accept(matcher, "22");
  assert_ok(gen_grammar_matcher_valid_bytes(matcher, bytes, &error), error);
  for (int32_t b = 0; b < 256; ++b) assert_int_equal(has(bytes, b), b == ',' || b == ']');
  assert_ok(gen_grammar_matcher_fork(matcher, &fork, &error), error);
  accept(fork, "]");
  assert_int_equal(gen_grammar_matcher_complete(fork), 2);
  assert_int_equal(gen_grammar_matcher_complete(matcher), 0);
  assert_ok(gen_grammar_matcher_min_tokens(matcher, &fewest, &error), error);
  assert_int_equal(fewest, 1);
  assert_ok(gen_grammar_matcher_rollback(matcher, 2, &error), error);
  assert_fails(gen_grammar_matcher_rollback(matcher, 1, &error), GEN_ERROR_OUT_OF_RANGE, "1",
               error);
  assert_fails(gen_grammar_matcher_accept_bytes(matcher, "]", 1, &error), GEN_ERROR_GRAMMAR,
               "']' is not allowed here, byte 0 of 1", error);
  assert_fails(gen_grammar_matcher_accept_bytes(matcher, "[1\n", 3, &error), GEN_ERROR_GRAMMAR,
               "0x0A is not allowed here, byte 2 of 3", error);
  assert_fails(gen_grammar_matcher_rollback(matcher, 1, &error), GEN_ERROR_OUT_OF_RANGE,
               "0 were accepted", error);
  assert_fails(gen_grammar_matcher_accept_token(matcher, (int32_t)vocab, &error),
               GEN_ERROR_OUT_OF_RANGE, "outside", error);
  assert_fails(gen_grammar_matcher_accept_token(matcher, 0, &error), GEN_ERROR_GRAMMAR, "token 0",
               error);
  accept(matcher, "[1");
  assert_ok(gen_grammar_matcher_reset(matcher, &error), error);
  accept(matcher, "[1]");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 2);
  gen_grammar_matcher_free(matcher);
  gen_grammar_matcher_free(fork);
  gen_grammar_free(grammar);
}

static void forced_tokens_spell_what_must_come(void** state) {
  (void)state;
  gen_grammar* grammar = gbnf("root ::= \"once upon a time\" [.!]");
  gen_grammar_matcher* matcher = matcher_of(grammar);
  accept(matcher, "once upon a tim");
  int32_t ids[8];
  size_t n = 9;
  assert_ok(gen_grammar_matcher_forced(matcher, NULL, 0, &n, &error), error);
  assert_true(n <= 1); /* "e", unless a token goes on with the sign */
  assert_ok(gen_grammar_matcher_forced(matcher, ids, 8, &n, &error), error);
  for (size_t i = 0; i < n; ++i)
    assert_ok(gen_grammar_matcher_accept_token(matcher, ids[i], &error), error);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
  grammar = gbnf("root ::= <[5]> <[7]> <[9]> \"a\"?");
  matcher = matcher_of(grammar);
  assert_ok(gen_grammar_matcher_forced(matcher, ids, 8, &n, &error), error);
  assert_int_equal(n, 3);
  assert_int_equal(ids[0], 5);
  assert_int_equal(ids[1], 7);
  assert_int_equal(ids[2], 9);
  assert_fails(gen_grammar_matcher_forced(matcher, ids, 2, &n, &error), GEN_ERROR_OUT_OF_RANGE, "3",
               error);
  assert_int_equal(n, 3);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
}

/* Every byte has a token of its own in this vocabulary, so that no token of a text is the only one.
 * The tokenizer says which of them it would take; the last may be joined by what comes later,
 * unless nothing does. */
static void forced_tokens_are_the_tokenizers_if_asked_for(void** state) {
  (void)state;
  static const char* const texts[] = {"Once upon a time, there was a little dog.",
                                      "The dog \xc3\xa9", "do"};
  gen_grammar_options* options = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_fails(gen_grammar_options_set(options, "forced_tokens", "all", &error), bad,
               "neither only nor tokenizer", error);
  assert_ok(gen_grammar_options_set(options, "forced_tokens", "tokenizer", &error), error);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    for (int goes_on = 0; goes_on < 2; ++goes_on) {
      char source[128];
      snprintf(source, sizeof source, "root ::= \"%s\"%s", texts[i], goes_on ? " [a-z ]*" : "");
      gen_grammar* grammar = NULL;
      gen_grammar_matcher* matcher = NULL;
      gen_grammar_matcher* fork = NULL;
      assert_ok(gen_grammar_from_gbnf(source, GEN_NUL_TERMINATED, options, &grammar, &error),
                error);
      assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
      gen_grammar_free(grammar);
      assert_ok(gen_grammar_matcher_fork(matcher, &fork, &error), error);
      gen_grammar_matcher_free(matcher);
      int32_t wanted[64], ids[64];
      size_t most = 0, n = 0;
      assert_ok(gen_tokenizer_encode(tokenizer, texts[i], GEN_NUL_TERMINATED, GEN_ENCODE_CONTINUE,
                                     wanted, 64, &most, &error),
                error);
      assert_ok(gen_grammar_matcher_forced(fork, ids, 64, &n, &error), error);
      assert_true(goes_on ? n <= most : n == most);
      if (i == 2 && goes_on) assert_int_equal(n, 0); /* "do" may become "dog" */
      assert_memory_equal(ids, wanted, n * sizeof ids[0]);
      if (i == 0) assert_true(n > 5);
      for (size_t k = 0; k < n; ++k)
        assert_ok(gen_grammar_matcher_accept_token(fork, ids[k], &error), error);
      gen_grammar_matcher_free(fork);
    }
  }
  gen_grammar* grammar = NULL; /* a token by its number stands for no bytes */
  gen_grammar_matcher* matcher = NULL;
  assert_ok(gen_grammar_from_gbnf("root ::= <[5]> \"dog\"", GEN_NUL_TERMINATED, options, &grammar,
                                  &error),
            error);
  assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
  int32_t id = -1;
  size_t n = 0;
  assert_ok(gen_grammar_matcher_forced(matcher, &id, 1, &n, &error), error);
  assert_int_equal(n, 1);
  assert_int_equal(id, 5);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
  gen_grammar_options_free(options);
}

static void masks_over_strings_of_ones_own(void** state) {
  (void)state;
  gen_grammar* grammar = gbnf(kList);
  static const char* const strings[] = {"[", "1", "2", "22", "22,", "22,]", "", "]", "[[[1]"};
  static const int allowed[] = {1, 1, 1, 1, 1, 0, 0, 0, 1};
  const size_t lengths[] = {1, 1, 1, 2, 3, 4, 0, 1, 5};
  uint32_t bits[2];
  for (int i = 0; i < 2; ++i) {
    bits[0] = bits[1] = ~0U;
    assert_ok(gen_token_mask(grammar, "[", 1, strings, i == 0 ? NULL : lengths, 9, bits, 2, &error),
              error);
    for (int s = 0; s < 9; ++s) assert_int_equal(has(bits, s), allowed[s]);
    assert_int_equal(bits[0] >> 9 | bits[1], 0);
  }
  assert_fails(gen_token_mask(grammar, "]", 1, strings, NULL, 9, bits, 2, &error),
               GEN_ERROR_GRAMMAR, "cannot become", error);
  assert_fails(gen_token_mask(grammar, "[", 1, strings, NULL, 9, bits, 0, &error),
               GEN_ERROR_OUT_OF_RANGE, "needs 1 words", error);
  assert_fails(gen_token_mask(NULL, "[", 1, strings, NULL, 9, bits, 2, &error), bad, "grammar",
               error);
  assert_fails(gen_token_mask(grammar, NULL, 1, strings, NULL, 9, bits, 2, &error), bad, "text",
               error);
  assert_fails(gen_token_mask(grammar, "[", 1, NULL, NULL, 9, bits, 2, &error), bad, "strings",
               error);
  assert_fails(gen_token_mask(grammar, "[", 1, strings, NULL, 9, NULL, 2, &error), bad, "bits",
               error);
  const char* const missing[] = {"[", NULL};
  assert_fails(gen_token_mask(grammar, "[", 1, missing, NULL, 2, bits, 2, &error), bad, "string",
               error);
  assert_ok(gen_token_mask(grammar, "[", 1, NULL, NULL, 0, bits, 2, &error), error);
  gen_grammar_free(grammar);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(masks_say_what_is_accepted),
      cmocka_unit_test(matchers_go_back_and_fork),
      cmocka_unit_test(forced_tokens_spell_what_must_come),
      cmocka_unit_test(forced_tokens_are_the_tokenizers_if_asked_for),
      cmocka_unit_test(masks_over_strings_of_ones_own),
  };
  return cmocka_run_group_tests(tests, load, unload);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grammars, matchers and texts under them. What is found out about a vocabulary stays with its
 * tokenizer, so each run has one of its own.
 */
#include <stdlib.h>

#include "sweep.h"

static const char kList[] =
    "root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= root | [a-z]{1,3} | \"x\"{2,50}";
static const char kSchema[] =
    "{\"properties\":{\"a\":{\"enum\":[1,\"b\"]},\"c\":{\"type\":\"array\",\"maxItems\":2,\"items\":"
    "{\"pattern\":\"^x\"}}},\"required\":[\"a\"],\"not\":{\"const\":3}}";
enum { WORDS = 4096 };

static void forms(const void* with) {
  (void)with;
  gen_grammar_options* options = NULL;
  gen_grammar* grammar = NULL;
  char text[4096];
  size_t n = 0;
  MAKE(options, gen_grammar_options_new(&options, E));
  TRY(gen_grammar_options_set(options, "regex_match", "search", E));
  TRY(gen_grammar_options_set_cancel(options, NULL, E));
  TRY(gen_grammar_options_describe(options, text, sizeof text, &n, E));
  SAME(text, n);
  MAKE(grammar, gen_grammar_from_gbnf(kList, GEN_NUL_TERMINATED, options, &grammar, E));
  FREE(gen_grammar_free(grammar));
  MAKE(grammar, gen_grammar_from_regex("(?=.a)[ab]+\\b|\\p{Script=Greek}{2}", GEN_NUL_TERMINATED, options,
                                       &grammar, E));
  FREE(gen_grammar_free(grammar));
  MAKE(grammar, gen_grammar_from_tags("{\"tags\":[{\"begin\":\"<a\",\"regex\":\"[0-9]+\",\"end\":\">\"},"
                                      "{\"begin_token\":\"<s>\",\"any_json\":true}],\"triggers\":[\"<\"]}",
                                      GEN_NUL_TERMINATED, options, &grammar, E));
  FREE(gen_grammar_free(grammar));
  MAKE(grammar, gen_grammar_from_lark("start: w \"=\" N (\";\" %json {\"type\": \"boolean\"})? <[3-5]>\n"
                                      "w[stop=\"=\"]: /\\w+/i\nN: ~/0/ & /[0-9]{1,3}/\n%ignore / +/",
                                      GEN_NUL_TERMINATED, options, &grammar, E));
  FREE(gen_grammar_free(grammar));
  TRY(gen_grammar_options_set(options, "json_ignore", "not,minItems", E));
  TRY(gen_grammar_options_add_schema(options, "urn:some", "{\"not\":{}}", GEN_NUL_TERMINATED, E));
  MAKE(grammar, gen_grammar_from_json_schema(kSchema, GEN_NUL_TERMINATED, options, &grammar, E));
  TRY(gen_grammar_describe(grammar, text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_grammar_free(grammar));
  MAKE(grammar, gen_grammar_any_json(options, &grammar, E));
  TRY(gen_grammar_describe(grammar, text, sizeof text, &n, E));
  CHECK(n > 10);
  const char* const strings[] = {"1", "{", "}", "\"a"};
  uint32_t bits = 0;
  TRY(gen_token_mask(grammar, "[", 1, strings, NULL, 4, &bits, 1, E));
  CHECK(bits == 11);
  FREE(gen_grammar_free(grammar));
  FREE(gen_grammar_options_free(options));
}

static void same_mask(gen_grammar_matcher* matcher) {
  static uint32_t bits[WORDS];
  TRY(gen_grammar_matcher_mask(matcher, bits, WORDS, E));
  SAME(bits, sizeof bits);
}

static void match(const void* with) {
  (void)with;
  gen_tokenizer* tokenizer = NULL;
  gen_grammar* grammar = NULL;
  gen_grammar_matcher *matcher = NULL, *fork = NULL;
  MAKE(tokenizer, gen_tokenizer_load(sweep_model, &tokenizer, E));
  MAKE(grammar, gen_grammar_from_gbnf(kList, GEN_NUL_TERMINATED, NULL, &grammar, E));
  MAKE(matcher, gen_grammar_matcher_new(grammar, tokenizer, &matcher, E));
  same_mask(matcher);
  static const char* const steps[] = {"[", "a", ",", "[", "xxxxx", "]"};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) {
    TRY(gen_grammar_matcher_accept_bytes(matcher, steps[i], GEN_NUL_TERMINATED, E));
    same_mask(matcher);
    if (i != 2) continue;
    MAKE(fork, gen_grammar_matcher_fork(matcher, &fork, E));
    TRY(gen_grammar_matcher_accept_bytes(fork, "xx", 2, E));
    same_mask(fork);
    TRY(gen_grammar_matcher_rollback(fork, 1, E));
    same_mask(fork);
  }
  uint32_t bytes[8];
  int32_t ids[16];
  int64_t fewest = 0;
  size_t n = 0;
  TRY(gen_grammar_matcher_valid_bytes(matcher, bytes, E));
  SAME(bytes, sizeof bytes);
  TRY(gen_grammar_matcher_min_tokens(matcher, &fewest, E));
  SAME(&fewest, sizeof fewest);
  TRY(gen_grammar_matcher_reset(fork, E));
  TRY(gen_grammar_matcher_forced(fork, ids, 16, &n, E));
  SAME(ids, n * sizeof *ids);
  for (size_t i = 0; i < n; ++i) TRY(gen_grammar_matcher_accept_token(fork, ids[i], E));
  FREE(gen_grammar_free(grammar));
  FREE(gen_grammar_matcher_free(matcher));
  FREE(gen_tokenizer_free(tokenizer));
  FREE(gen_grammar_matcher_free(fork));
}

/* Tokens that are forced: by their numbers, and as the tokenizer spells bytes. Nothing of a failed call stays. */
static void force(const void* with) {
  (void)with;
  static const char* const sources[] = {"root ::= <[5]> <[7]> <[9]> <[11]> <[13]> [a-c]*",
                                        "root ::= \"abcabcabcabc\" [x-z]*"};
  gen_tokenizer* tokenizer = NULL;
  gen_grammar_options* options = NULL;
  MAKE(tokenizer, gen_tokenizer_load(sweep_model, &tokenizer, E));
  MAKE(options, gen_grammar_options_new(&options, E));
  TRY(gen_grammar_options_set(options, "forced_tokens", "tokenizer", E));
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; ++i) {
    gen_grammar* grammar = NULL;
    gen_grammar_matcher* matcher = NULL;
    MAKE(grammar, gen_grammar_from_gbnf(sources[i], GEN_NUL_TERMINATED, options, &grammar, E));
    MAKE(matcher, gen_grammar_matcher_new(grammar, tokenizer, &matcher, E));
    int32_t ids[16];
    size_t n = 0;
    TRY(gen_grammar_matcher_forced(matcher, ids, 16, &n, E));
    SAME(ids, n * sizeof *ids);
    SAME(&n, sizeof n);
    FREE(gen_grammar_free(grammar));
    FREE(gen_grammar_matcher_free(matcher));
  }
  FREE(gen_grammar_options_free(options));
  FREE(gen_tokenizer_free(tokenizer));
}

/* What a matcher keeps beside the grammar of a schema: reads steps, of which the last leaves `barred` impossible, and
 * goes on in a fork. */
static void watch(const char* schema, const char* const* steps, size_t n_steps, uint8_t barred, const char* more) {
  gen_tokenizer* tokenizer = NULL;
  gen_grammar_options* options = NULL;
  gen_grammar* grammar = NULL;
  gen_grammar_matcher *matcher = NULL, *fork = NULL;
  MAKE(tokenizer, gen_tokenizer_load(sweep_model, &tokenizer, E));
  MAKE(options, gen_grammar_options_new(&options, E));
  TRY(gen_grammar_options_set(options, "json_style", "any", E)); /* with escapes that nothing needs */
  MAKE(grammar, gen_grammar_from_json_schema(schema, GEN_NUL_TERMINATED, options, &grammar, E));
  FREE(gen_grammar_options_free(options));
  MAKE(matcher, gen_grammar_matcher_new(grammar, tokenizer, &matcher, E));
  for (size_t i = 0; i < n_steps; ++i) {
    TRY(gen_grammar_matcher_accept_bytes(matcher, steps[i], GEN_NUL_TERMINATED, E));
    same_mask(matcher);
  }
  uint32_t bytes[8];
  TRY(gen_grammar_matcher_valid_bytes(matcher, bytes, E));
  CHECK((bytes[barred / 32] >> (barred % 32) & 1) == 0);
  MAKE(fork, gen_grammar_matcher_fork(matcher, &fork, E));
  TRY(gen_grammar_matcher_accept_bytes(fork, more, GEN_NUL_TERMINATED, E));
  TRY(gen_grammar_matcher_rollback(fork, 2, E));
  same_mask(fork);
  FREE(gen_grammar_matcher_free(matcher));
  FREE(gen_grammar_matcher_free(fork));
  FREE(gen_grammar_free(grammar));
  FREE(gen_tokenizer_free(tokenizer));
}

/* Names that no keyword speaks of: a quotation mark would end the name abc again. */
static void names(const void* with) {
  (void)with;
  static const char* const steps[] = {"{\"", "ab\\u0063\":{\"a", "\":1},\"", "ab", "c"};
  watch("{\"type\":\"object\"}", steps, sizeof steps / sizeof steps[0], '"', "d\":2,\"e\":3");
}

/* Items that must differ: true would be there again. */
static void items(const void* with) {
  (void)with;
  static const char* const steps[] = {"[1", "0,1,{},", "{\"\\u0061\":true", "},{\"a\":"};
  watch("{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"anyOf\":[{\"type\":\"object\","
        "\"properties\":{\"a\":{\"type\":\"boolean\"}},\"additionalProperties\":false},"
        "{\"type\":\"integer\"}]}}",
        steps, sizeof steps / sizeof steps[0], 't', "false},1.5e1,");
}

static gen_status edit(void* user, float* logits, size_t n, const int32_t* tokens, size_t count,
                       size_t said, gen_error* error) {
  (void)user;
  (void)tokens;
  (void)count;
  (void)said;
  (void)error;
  logits[n - 1] += 1;
  return GEN_OK;
}

static void generate(const void* with) {
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_sampling* sampling = NULL;
  gen_grammar* grammar = NULL;
  gen_grammar_matcher* matcher = NULL;
  gen_result* result = NULL;
  MAKE(model, gen_model_load(sweep_model, NULL, &model, E));
  MAKE(generator, gen_create(model, NULL, &generator, E));
  MAKE(sampling, gen_sampling_new(&sampling, E));
  TRY(gen_sampling_set_max_new_tokens(sampling, 12, E));
  MAKE(grammar, gen_grammar_from_gbnf(kList, GEN_NUL_TERMINATED, NULL, &grammar, E));
  if (with == NULL) {
    TRY(gen_sampling_set_grammar(sampling, grammar, E));
  } else {
    MAKE(matcher, gen_grammar_matcher_new(grammar, gen_model_tokenizer(model), &matcher, E));
    TRY(gen_grammar_matcher_accept_bytes(matcher, "[", 1, E));
    TRY(gen_sampling_set_grammar_matcher(sampling, matcher, E));
    /* And all that a step may have beside it. */
    TRY(gen_sampling_set_logits_callback(sampling, edit, NULL, E));
    TRY(gen_sampling_set_dry(sampling, 0.5, 1.5, 1, 20, E));
    TRY(gen_sampling_add_dry_breaker(sampling, ",", 1, E));
    TRY(gen_sampling_set_mirostat(sampling, 5, 0.2, E));
    TRY(gen_sampling_set_min_new_tokens(sampling, 2, E));
    TRY(gen_sampling_set_logprobs(sampling, 2, E));
  }
  TRY((gen_result_free(result), result = NULL,
       gen_generate(generator, "Once", 4, sampling, &result, E)));
  SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  FREE(gen_grammar_matcher_free(matcher));
  FREE(gen_grammar_free(grammar));
  FREE(gen_sampling_free(sampling));
  FREE(gen_free(generator));
  FREE(gen_model_free(model));
}

const scenario grammar_scenarios[] = {{"grammars", NULL, forms, NULL, NULL},
                                      {"matcher", NULL, match, NULL, NULL},
                                      {"forced tokens", NULL, force, NULL, NULL},
                                      {"names", NULL, names, NULL, NULL},
                                      {"items", NULL, items, NULL, NULL},
                                      {"generate under a grammar", NULL, generate, NULL, NULL},
                                      {"generate from a matcher", NULL, generate, NULL, kList},
                                      {0}};

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of grammar.h: the draft model's tokenizer, grammars and matchers. */
#ifndef GENERATE_TESTS_GRAMMAR_CALLS_H
#define GENERATE_TESTS_GRAMMAR_CALLS_H

#include "api_test.h"

#include <regex.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static gen_model* model;
static const gen_tokenizer* tokenizer;
static size_t vocab, words;

static const char kList[] =
    "root ::= \"[\" item (\",\" item)* \"]\"\n"
    "item ::= root | \"1\" | \"22\"";

static inline int load(void** state) {
  (void)state;
  model = load_draft();
  tokenizer = gen_model_tokenizer(model);
  vocab = (size_t)gen_tokenizer_vocab_size(tokenizer);
  words = (vocab + 31) / 32;
  return 0;
}
static inline int unload(void** state) {
  (void)state;
  gen_model_free(model);
  return 0;
}

static inline gen_grammar* gbnf(const char* text) {
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_from_gbnf(text, GEN_NUL_TERMINATED, NULL, &grammar, &error), error);
  return grammar;
}
static inline gen_grammar* regex(const char* pattern) {
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_from_regex(pattern, GEN_NUL_TERMINATED, NULL, &grammar, &error), error);
  return grammar;
}
static inline gen_grammar_matcher* matcher_of(const gen_grammar* grammar) {
  gen_grammar_matcher* matcher = NULL;
  assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
  return matcher;
}
static inline void accept(gen_grammar_matcher* matcher, const char* text) {
  assert_ok(gen_grammar_matcher_accept_bytes(matcher, text, GEN_NUL_TERMINATED, &error), error);
}
static inline int has(const uint32_t* bits, int32_t at) {
  return (int)(bits[at / 32] >> (at % 32) & 1U);
}

#endif

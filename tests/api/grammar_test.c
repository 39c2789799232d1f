/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.h: grammars, matchers over the bundled draft model's tokenizer, and texts of it under
 * one. */
#include "grammar_calls.h"

static gen_result* say(const gen_sampling* sampling, gen_status wanted) {
  gen_generator* generator = NULL;
  gen_result* result = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  const gen_status status =
      gen_generate(generator, "Once upon a time", 16, sampling, &result, &error);
  if (status != wanted) fail_msg("%s: %s", gen_status_name(status), error.message);
  gen_free(generator);
  return result;
}

/* Who is a member is said by the C library. */
static void texts_are_members(void** state) {
  (void)state;
  static const char* const patterns[] = {"[0-9]{4}-[01][0-9]-[0-3][0-9]",
                                         "(yes|no|maybe)( (yes|no|maybe))*!", "\"[a-z ]{0,12}\"",
                                         "[A-Z][a-z]+ [a-z]+\\."};
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; ++i) {
    gen_grammar* grammar = regex(patterns[i]);
    char whole[128];
    regex_t oracle;
    snprintf(whole, sizeof whole, "^(%s)$", patterns[i]);
    assert_int_equal(regcomp(&oracle, whole, REG_EXTENDED | REG_NOSUB), 0);
    int finished = 0;
    for (uint64_t seed = 0; seed < 25; ++seed) {
      gen_sampling* sampling = NULL;
      assert_ok(gen_sampling_new(&sampling, &error), error);
      assert_ok(gen_sampling_set_seed(sampling, seed, &error), error);
      assert_ok(gen_sampling_set_max_new_tokens(sampling, 40, &error), error);
      assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
      gen_result* result = say(sampling, GEN_OK);
      const int32_t reason = gen_result_finish_reason(result);
      if (reason == GEN_FINISH_GRAMMAR_COMPLETE || reason == GEN_FINISH_STOP_TOKEN) {
        ++finished;
        const char* text = gen_result_text(result, NULL);
        if (regexec(&oracle, text, 0, NULL, 0) != 0) fail_msg("%s is not %s", text, patterns[i]);
      }
      gen_result_free(result);
      gen_sampling_free(sampling);
    }
    assert_true(finished >= 10);
    regfree(&oracle);
    gen_grammar_free(grammar);
  }
}

static int64_t is_member(const gen_result* result) {
  int64_t value = 0;
  assert_ok(gen_result_usage(result, "grammar_complete", &value, &error), error);
  return value;
}

static void results_say_whether_they_are_members(void** state) {
  (void)state;
  gen_sampling* sampling = greedy(4);
  gen_result* result = say(sampling, GEN_OK);
  assert_int_equal(is_member(result), -1);
  gen_result_free(result);
  gen_grammar* grammar = regex("[0-9]+");
  assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
  assert_ok(gen_sampling_set_ignore_eos(sampling, 1, &error), error);
  for (int32_t fit = 0; fit < 2; ++fit) {
    assert_ok(gen_sampling_set_fit_grammar(sampling, fit, &error), error);
    result = say(sampling, GEN_OK);
    assert_int_equal(gen_result_finish_reason(result),
                     fit ? GEN_FINISH_GRAMMAR_COMPLETE : GEN_FINISH_LENGTH);
    assert_int_equal(is_member(result), 1);
    gen_result_free(result);
  }
  gen_grammar_free(grammar);
  grammar = regex("\\([0-9]{9}\\)");
  assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
  result = say(sampling, GEN_OK); /* no member is as short */
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_LENGTH);
  assert_int_equal(is_member(result), 0);
  gen_result_free(result);
  gen_grammar_free(grammar);
  gen_sampling_free(sampling);
}

static void settings_take_one_or_the_other(void** state) {
  (void)state;
  gen_sampling* sampling = greedy(20);
  gen_grammar* grammar = regex("[0-9]{3}");
  gen_result* plain = say(sampling, GEN_OK);
  assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
  gen_result* result = say(sampling, GEN_OK);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_GRAMMAR_COMPLETE);
  assert_int_equal(strlen(gen_result_text(result, NULL)), 3);
  gen_result_free(result);
  gen_grammar_matcher* matcher = matcher_of(grammar);
  accept(matcher, "12");
  assert_ok(gen_sampling_set_grammar_matcher(sampling, matcher, &error), error);
  accept(matcher, "3"); /* the settings have their own */
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
  for (int i = 0; i < 2; ++i) {
    result = say(sampling, GEN_OK);
    assert_int_equal(strlen(gen_result_text(result, NULL)), 1);
    gen_result_free(result);
  }
  assert_ok(gen_sampling_set_grammar(sampling, NULL, &error), error);
  result = say(sampling, GEN_OK);
  assert_string_equal(gen_result_text(result, NULL), gen_result_text(plain, NULL));
  gen_result_free(result);
  gen_result_free(plain);
  gen_sampling_free(sampling);
}

static int32_t no_token(void* user, const gen_token* token) {
  (void)user;
  (void)token;
  return 0;
}

/* Every form of a call refuses it, and changes nothing. */
static void refuse_everywhere(const gen_sampling* sampling) {
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  gen_result* result = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_fails(gen_generate_stream(generator, "Once", 4, sampling, no_token, NULL, &result, &error),
               GEN_ERROR_GRAMMAR, "nowhere", error);
  gen_result_free(result);
  assert_fails(gen_session_generate(session, "Once", 4, sampling, &result, &error),
               GEN_ERROR_GRAMMAR, "nowhere", error);
  gen_result_free(result);
  assert_fails(
      gen_session_generate_stream(session, "Once", 4, sampling, no_token, NULL, &result, &error),
      GEN_ERROR_GRAMMAR, "nowhere", error);
  gen_result_free(result);
  assert_int_equal(gen_session_length(session), 0);
  gen_session_free(session);
  gen_free(generator);
}

static void ends_that_are_failures(void** state) {
  (void)state;
  gen_sampling* sampling = greedy(20);
  gen_grammar* grammar = gbnf("root ::= <nowhere>");
  assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
  refuse_everywhere(sampling);
  gen_result* result = say(sampling, GEN_ERROR_GRAMMAR);
  assert_non_null(strstr(error.message, "nowhere"));
  gen_result_free(result);
  gen_grammar_matcher* matcher = NULL;
  assert_fails(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), GEN_ERROR_GRAMMAR,
               "nowhere", error);
  gen_grammar_free(grammar);
  gen_tokenizer* other = NULL;
  grammar = regex("a+");
  assert_ok(gen_tokenizer_load(DRAFT_MODEL, &other, &error), error);
  assert_ok(gen_grammar_matcher_new(grammar, other, &matcher, &error), error);
  assert_ok(gen_sampling_set_grammar_matcher(sampling, matcher, &error), error);
  result = say(sampling, bad);
  gen_result_free(result);
  gen_grammar_matcher_free(matcher);
  gen_tokenizer_free(other);
  gen_grammar_free(grammar);
  gen_sampling_free(sampling);
}

static void what_is_wrong_is_named(void** state) {
  (void)state;
  gen_grammar* grammar = NULL;
  assert_fails(
      gen_grammar_from_gbnf("root ::= \"a\"\nb ::= (", GEN_NUL_TERMINATED, NULL, &grammar, &error),
      GEN_ERROR_GRAMMAR, "line 2", error);
  assert_null(grammar);
  assert_fails(gen_grammar_from_regex("a(b", GEN_NUL_TERMINATED, NULL, &grammar, &error),
               GEN_ERROR_GRAMMAR, "line 1", error);
  assert_fails(gen_grammar_from_regex("(a)\\1", GEN_NUL_TERMINATED, NULL, &grammar, &error),
               GEN_ERROR_GRAMMAR, "line 1", error);
  gen_grammar_options* options = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_fails(gen_grammar_options_set(options, "nothing", "1", &error), bad, "nothing", error);
  assert_fails(gen_grammar_options_set(options, "max_edges", "0", &error), bad, "max_edges", error);
  assert_fails(gen_grammar_options_set(options, "regex_match", "half", &error), bad, "whole",
               error);
  assert_ok(gen_grammar_options_set(options, "max_edges", "20", &error), error);
  assert_fails(gen_grammar_any_json(options, &grammar, &error), GEN_ERROR_GRAMMAR, "20", error);
  assert_ok(gen_grammar_options_set(options, "max_edges", "100000", &error), error);
  assert_ok(gen_grammar_any_json(options, &grammar, &error), error);
  char text[4096];
  size_t n = 0;
  assert_ok(gen_grammar_describe(grammar, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "{\"kind\":\"any_json\",\"states\":"));
  assert_int_equal(strlen(text), n);
  assert_fails(gen_grammar_describe(grammar, text, 3, &n, &error), GEN_ERROR_OUT_OF_RANGE, "",
               error);
  gen_grammar_free(grammar);
  assert_ok(gen_grammar_options_set(options, "regex_match", "search", &error), error);
  assert_ok(gen_grammar_from_regex("b", 1, options, &grammar, &error), error);
  gen_grammar_matcher* matcher = matcher_of(grammar);
  accept(matcher, "aaabaaa");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 1);
  assert_ok(gen_grammar_options_describe(options, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"search\""));
  assert_fails(gen_grammar_options_describe(options, text, 2, &n, &error), GEN_ERROR_OUT_OF_RANGE,
               "", error);

  uint32_t bits[8];
  int64_t fewest = 0;
  assert_fails(gen_grammar_matcher_mask(matcher, bits, words - 1, &error), GEN_ERROR_OUT_OF_RANGE,
               "needs", error);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
  assert_fails(gen_grammar_options_new(NULL, &error), bad, "out", error);
  assert_fails(gen_grammar_options_set(NULL, "a", "b", &error), bad, "options", error);
  assert_fails(gen_grammar_options_describe(NULL, NULL, 0, &n, &error), bad, "options", error);
  assert_fails(gen_grammar_from_gbnf(NULL, 1, NULL, &grammar, &error), bad, "text", error);
  assert_fails(gen_grammar_from_regex(NULL, 1, NULL, &grammar, &error), bad, "pattern", error);
  assert_fails(gen_grammar_from_gbnf("", 0, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_grammar_any_json(NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_grammar_from_json_schema(NULL, 1, NULL, &grammar, &error), bad, "schema", error);
  assert_fails(gen_grammar_describe(NULL, NULL, 0, &n, &error), bad, "grammar", error);
  assert_fails(gen_grammar_matcher_new(NULL, tokenizer, &matcher, &error), bad, "grammar", error);
  assert_null(matcher);
  assert_fails(gen_grammar_matcher_accept_token(NULL, 1, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_accept_bytes(NULL, "a", 1, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_mask(NULL, bits, 8, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_valid_bytes(NULL, bits, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_rollback(NULL, 1, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_fork(NULL, &matcher, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_reset(NULL, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_forced(NULL, NULL, 0, &n, &error), bad, "matcher", error);
  assert_fails(gen_grammar_matcher_min_tokens(NULL, &fewest, &error), bad, "matcher", error);
  assert_fails(gen_sampling_set_grammar(NULL, NULL, &error), bad, "sampling", error);
  assert_fails(gen_sampling_set_grammar_matcher(NULL, NULL, &error), bad, "sampling", error);
  assert_int_equal(gen_grammar_matcher_complete(NULL), 0);
  gen_grammar_free(NULL);
  gen_grammar_options_free(NULL);
  gen_grammar_matcher_free(NULL);
  gen_grammar_options_free(options);
}

/* Free text with a part that must be a number, and one between tokens. */
static void tags_constrain_parts_of_texts(void** state) {
  (void)state;
  static const char kTags[] =
      "{\"tags\":[{\"begin\":\"<add>\",\"regex\":\"[0-9]+\",\"end\":\"</add>\"},"
      "{\"begin_token\":\"<s>\",\"any_json\":true,\"end_token\":7}],\"stop_after_first\":true}";
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_from_tags(kTags, GEN_NUL_TERMINATED, NULL, &grammar, &error), error);
  gen_grammar_matcher* matcher = matcher_of(grammar);
  accept(matcher, "It <adds>: <add>");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 0);
  uint32_t bytes[8];
  assert_ok(gen_grammar_matcher_valid_bytes(matcher, bytes, &error), error);
  for (int32_t b = 0; b < 256; ++b) assert_int_equal(has(bytes, b), b >= '0' && b <= '9');
  accept(matcher, "41</add>");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 2);
  assert_ok(gen_grammar_matcher_reset(matcher, &error), error);
  accept(matcher, "It ");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 1);
  assert_ok(gen_grammar_matcher_accept_token(
                matcher, gen_tokenizer_special(tokenizer, GEN_SPECIAL_BOS), &error),
            error);
  accept(matcher, "[1]");
  assert_fails(gen_grammar_matcher_accept_bytes(matcher, "x", 1, &error), GEN_ERROR_GRAMMAR,
               "not allowed here", error);
  assert_ok(gen_grammar_matcher_accept_token(matcher, 7, &error), error);
  assert_int_equal(gen_grammar_matcher_complete(matcher), 2);
  gen_grammar_matcher_free(matcher);
  char text[256];
  size_t n = 0;
  assert_ok(gen_grammar_describe(grammar, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "{\"kind\":\"tags\",\"states\":"));
  gen_grammar_free(grammar);
  gen_grammar_options* options = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_ok(gen_grammar_options_set(options, "max_edges", "20", &error), error);
  assert_fails(gen_grammar_from_tags(kTags, GEN_NUL_TERMINATED, options, &grammar, &error),
               GEN_ERROR_GRAMMAR, "20", error);
  gen_grammar_options_free(options);
  assert_fails(gen_grammar_from_tags("{\n\"tags\":1}", GEN_NUL_TERMINATED, NULL, &grammar, &error),
               GEN_ERROR_GRAMMAR, "line 2, column 8: expected an array", error);
  assert_null(grammar);
  assert_fails(gen_grammar_from_tags("{\"tags\":[{\"begin\":\"ab\",\"regex\":\"x\"},"
                                     "{\"begin\":\"b\",\"regex\":\"x\"}]}",
                                     GEN_NUL_TERMINATED, NULL, &grammar, &error),
               GEN_ERROR_GRAMMAR, "holds trigger", error);
  assert_fails(gen_grammar_from_tags(NULL, 1, NULL, &grammar, &error), bad, "text", error);
  assert_fails(gen_grammar_from_tags(kTags, 1, NULL, NULL, &error), bad, "out", error);
}

/* A Lark file with an inserted schema, whose options count. */
static void lark_files_are_read(void** state) {
  (void)state;
  static const char kLark[] =
      "start: \"pay \" SUM note?\nSUM: /[1-9][0-9]*/ \"EUR\"i\n"
      "note: \": \" %json {\"type\": \"string\", \"format\": \"shout\"} <[7]>\n%ignore \" \"\n";
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_from_lark(kLark, GEN_NUL_TERMINATED, NULL, &grammar, &error), error);
  gen_grammar_matcher* matcher = matcher_of(grammar);
  accept(matcher, "pay 12");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 0);
  accept(matcher, "eUr  ");
  assert_int_equal(gen_grammar_matcher_complete(matcher), 1);
  accept(matcher, ": \"late\"");
  assert_fails(gen_grammar_matcher_accept_bytes(matcher, "x", 1, &error), GEN_ERROR_GRAMMAR,
               "not allowed here", error);
  assert_ok(gen_grammar_matcher_accept_token(matcher, 7, &error), error);
  assert_int_equal(gen_grammar_matcher_complete(matcher), 1);
  gen_grammar_matcher_free(matcher);
  char text[256];
  size_t n = 0;
  assert_ok(gen_grammar_describe(grammar, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "{\"kind\":\"lark\",\"states\":"));
  assert_non_null(strstr(text, "\"unknown_formats\":[\"shout\"]"));
  gen_grammar_free(grammar);
  gen_grammar_options* options = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_ok(gen_grammar_options_set(options, "max_edges", "10", &error), error);
  assert_fails(gen_grammar_from_lark(kLark, GEN_NUL_TERMINATED, options, &grammar, &error),
               GEN_ERROR_GRAMMAR, "10", error);
  gen_grammar_options_free(options);
  assert_fails(
      gen_grammar_from_lark("start: a\na: b{2", GEN_NUL_TERMINATED, NULL, &grammar, &error),
      GEN_ERROR_GRAMMAR, "line 2, column 7", error);
  assert_null(grammar);
  assert_fails(gen_grammar_from_lark("start[max_tokens=5]: /a+/", GEN_NUL_TERMINATED, NULL,
                                     &grammar, &error),
               GEN_ERROR_GRAMMAR, "max_tokens", error);
  assert_fails(gen_grammar_from_lark(NULL, 1, NULL, &grammar, &error), bad, "text", error);
  assert_fails(gen_grammar_from_lark(kLark, 1, NULL, NULL, &error), bad, "out", error);
}

/* A stream that has begun tells of it, asked either way; one that cannot begin is not opened. */
static void stream_ends_at_limit(const gen_grammar* above_limits) {
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  gen_stream* stream = NULL;
  const gen_token* token = NULL;
  gen_sampling* sampling = greedy(5);
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_sampling_set_grammar(sampling, above_limits, &error), error);
  for (int polled = 0; polled < 2; ++polled) {
    int32_t state = GEN_STREAM_PENDING;
    assert_ok(gen_stream_open(session, "Once", 4, sampling, &stream, &error), error);
    gen_status status = GEN_OK;
    for (int i = 0; i < 100 && status == GEN_OK; ++i) {
      status = polled ? gen_stream_poll(stream, &token, &state, &error)
                      : gen_stream_next(stream, &token, &error);
    }
    assert_int_equal(status, GEN_ERROR_GRAMMAR);
    assert_non_null(strstr(error.message, "limit of 1"));
    gen_stream_close(stream);
  }
  gen_grammar* nowhere = gbnf("root ::= <nowhere>");
  assert_ok(gen_sampling_set_grammar(sampling, nowhere, &error), error);
  assert_fails(gen_stream_open(session, "Once", 4, sampling, &stream, &error), GEN_ERROR_GRAMMAR,
               "nowhere", error);
  gen_grammar_free(nowhere);
  gen_sampling_free(sampling);
  gen_session_free(session);
  gen_free(generator);
}

static int validates(const char* schema, const char* const* settings, const char* text) {
  gen_grammar_options* options = NULL;
  gen_grammar* grammar = NULL;
  gen_grammar_matcher* matcher = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  for (; settings != NULL && *settings != NULL; settings += 2) {
    assert_ok(gen_grammar_options_set(options, settings[0], settings[1], &error), error);
  }
  assert_ok(gen_grammar_from_json_schema(schema, GEN_NUL_TERMINATED, options, &grammar, &error),
            error);
  assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
  const int taken =
      gen_grammar_matcher_accept_bytes(matcher, text, GEN_NUL_TERMINATED, NULL) == GEN_OK &&
      gen_grammar_matcher_complete(matcher);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
  gen_grammar_options_free(options);
  return taken;
}

static void schemas_are_followed(void** state) {
  (void)state;
  static const char schema[] =
      "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1},\"age\":"
      "{\"type\":\"integer\",\"minimum\":0},\"when\":{\"format\":\"date\"}},\"required\":[\"name\"]"
      ","
      "\"additionalProperties\":false}";
  static const char* const any[] = {"json_style", "any", NULL};
  assert_int_equal(validates(schema, any, "{\"age\": 1.0,\n \"name\": \"\\u0061\"}"), 1);
  assert_int_equal(validates(schema, NULL, "{\"age\": 1.5, \"name\": \"a\"}"), 0);
  assert_int_equal(validates(schema, NULL, "{\"age\": 1}"), 0);
  assert_int_equal(validates(schema, NULL, "{\"name\": \"a\", \"name\": \"a\"}"), 0);
  assert_int_equal(validates(schema, NULL, "{\"name\": \"a\", \"when\": \"2023-02-29\"}"), 0);
  static const char* const loose[] = {"json_formats", "annotate", "json_space", "1", NULL};
  assert_int_equal(validates(schema, loose, "{\"name\": \"a\", \"when\": \"2023-02-29\"}"), 1);
  assert_int_equal(validates(schema, loose, "{\"name\":  \"a\"}"), 0);
  static const char* const digits[] = {"json_style", "any", "json_digits", "3", NULL};
  assert_int_equal(validates(schema, digits, "{\"age\": 999.000e-000, \"name\": \"1234\"}"), 1);
  assert_int_equal(validates(schema, digits, "{\"age\": 1000, \"name\": \"a\"}"), 0);
  assert_int_equal(validates(schema, digits, "{\"age\": 1.0000, \"name\": \"a\"}"), 0);
  assert_int_equal(validates("{}", digits, "[123.456e123, 0]"), 1);
  assert_int_equal(validates("{}", digits, "[1234]"), 0);
  assert_int_equal(validates("{}", digits, "[1.2345]"), 0);
  assert_int_equal(validates("{}", digits, "[1e1234]"), 0);

  gen_grammar_options* options = NULL;
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_fails(gen_grammar_options_set(options, "json_formats", "perhaps", &error), bad, "annotate",
               error);
  gen_grammar_options_free(options);
  assert_ok(gen_grammar_from_json_schema("{\"format\":\"colour\"}", GEN_NUL_TERMINATED, NULL,
                                         &grammar, &error),
            error);
  char text[256];
  size_t n = 0;
  assert_ok(gen_grammar_describe(grammar, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"json_schema\""));
  assert_non_null(strstr(text, "\"unknown_formats\":[\"colour\"]"));
  gen_grammar_free(grammar);
  static const char* const wrong[][2] = {
      {"{\"type\": 1", "line 1"},
      {"{\"properties\":{\"a\":{\"$ref\":\"other.json\"}}}", "/properties/a/$ref"},
      {"{\"properties\":{\"a\":{\"pattern\":\"(\"}}}", "/properties/a/pattern"},
      {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "no value"},
      {"false", "no value"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    assert_fails(
        gen_grammar_from_json_schema(wrong[i][0], GEN_NUL_TERMINATED, NULL, &grammar, &error),
        GEN_ERROR_GRAMMAR, wrong[i][1], error);
    assert_null(grammar);
  }
}

static int takes(const gen_grammar* grammar, const char* text) {
  gen_grammar_matcher* matcher = NULL;
  assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
  const int taken =
      gen_grammar_matcher_accept_bytes(matcher, text, GEN_NUL_TERMINATED, NULL) == GEN_OK &&
      gen_grammar_matcher_complete(matcher);
  gen_grammar_matcher_free(matcher);
  return taken;
}

/* Without options JSON is what programs write, wherever it comes from; json_style gives the rest.
 */
static void json_is_plain_by_default(void** state) {
  (void)state;
  typedef gen_status make(const char*, size_t, const gen_grammar_options*, gen_grammar**,
                          gen_error*);
  static const struct {
    make* from;
    const char* text;
    const char* before;
    const char* behind;
  } forms[] = {{gen_grammar_from_json_schema, "{}", "", ""},
               {gen_grammar_from_lark, "start: \"<\" %json {} \">\"", "<", ">"},
               {gen_grammar_from_tags,
                "{\"tags\":[{\"begin\":\"<\",\"json_schema\":{},\"end\":\">\"}]}", "<", ">"},
               {gen_grammar_from_tags,
                "{\"tags\":[{\"begin\":\"<\",\"any_json\":true,\"end\":\">\"}]}", "<", ">"},
               {NULL, "", "", ""}};
  static const char* const plain[] = {"[1, 2]", " {\"a\": -0.5}", "1e5", "\"\\n\\\"\""};
  static const char* const other[] = {"[1,\n2]", "[1,  2]", "1e999", "\"\\u0061\"", "\"\\/\""};
  gen_grammar_options* options = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
    for (int any = 0; any < 2; ++any) {
      assert_ok(gen_grammar_options_set(options, "json_style", any ? "any" : "plain", &error),
                error);
      const gen_grammar_options* const given = any ? options : NULL;
      gen_grammar* grammar = NULL;
      assert_ok(forms[i].from == NULL
                    ? gen_grammar_any_json(given, &grammar, &error)
                    : forms[i].from(forms[i].text, GEN_NUL_TERMINATED, given, &grammar, &error),
                error);
      char text[64];
      for (size_t k = 0; k < sizeof plain / sizeof plain[0]; ++k) {
        snprintf(text, sizeof text, "%s%s%s", forms[i].before, plain[k], forms[i].behind);
        assert_int_equal(takes(grammar, text), 1);
      }
      for (size_t k = 0; k < sizeof other / sizeof other[0]; ++k) {
        snprintf(text, sizeof text, "%s%s%s", forms[i].before, other[k], forms[i].behind);
        assert_int_equal(takes(grammar, text), any);
      }
      gen_grammar_free(grammar);
    }
  }
  assert_fails(gen_grammar_options_set(options, "json_style", "pretty", &error), bad, "plain",
               error);
  gen_grammar_options_free(options);
  /* What is set beside the style overrides it. */
  static const char* const lines[] = {"json_space", "2", NULL};
  assert_int_equal(validates("{}", lines, "[1,\n 2]\n"), 1);
  static const char* const digits[] = {"json_digits", "2147483647", NULL};
  static const char long_number[] = "12345678901234567890";
  assert_int_equal(validates("{\"type\":\"integer\"}", NULL, long_number), 0);
  assert_int_equal(validates("{\"type\":\"integer\"}", digits, long_number), 1);
}

/* Texts come to their end in the tokens they have, unless that is turned off. */
static void texts_fit_by_default(void** state) {
  (void)state;
  gen_grammar* grammar = NULL;
  static const char schema[] =
      "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":\"array\","
      "\"items\":"
      "{\"type\":\"string\"}}}}";
  assert_ok(gen_grammar_from_json_schema(schema, GEN_NUL_TERMINATED, NULL, &grammar, &error),
            error);
  int cut = 0;
  for (int fit = 0; fit < 2; ++fit) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      gen_sampling* sampling = NULL;
      assert_ok(gen_sampling_new(&sampling, &error), error);
      assert_ok(gen_sampling_set_max_new_tokens(sampling, 24, &error), error);
      assert_ok(gen_sampling_set_temperature(sampling, 1, &error), error);
      assert_ok(gen_sampling_set_seed(sampling, seed, &error), error);
      assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
      if (fit == 0) assert_ok(gen_sampling_set_fit_grammar(sampling, 0, &error), error);
      gen_result* result = say(sampling, GEN_OK);
      const char* const text = gen_result_text(result, NULL);
      if (fit == 0) {
        cut += !takes(grammar, text);
      } else {
        assert_int_equal(takes(grammar, text), 1);
      }
      gen_result_free(result);
      gen_sampling_free(sampling);
    }
  }
  assert_true(cut > 0);
  gen_grammar_free(grammar);
}

/* What options take from a schema, members in order, and documents that it refers to. */
static void schemas_are_relaxed(void** state) {
  (void)state;
  static const char schema[] =
      "{\"type\":\"object\",\"properties\":{\"z\":{\"oneOf\":[{\"minimum\":1},{\"maximum\":5}]},"
      "\"a\":{"
      "\"pattern\":\"^b\"}}}";
  assert_int_equal(validates(schema, NULL, "{\"z\":3}"), 0);
  assert_int_equal(validates(schema, NULL, "{\"a\":\"x\"}"), 0);
  assert_int_equal(validates(schema, NULL, "{\"a\":1,\"z\":9}"), 0);
  static const char* const any_order[] = {"json_order", "any", NULL};
  assert_int_equal(validates(schema, any_order, "{\"a\":1,\"z\":9}"), 1);
  static const char* const loose[] = {
      "json_one_of", "any_of",     "json_ignore", "pattern,minLength",
      "json_order",  "definition", NULL};
  assert_int_equal(validates(schema, loose, "{\"z\":3,\"a\":\"x\"}"), 1);
  assert_int_equal(validates(schema, loose, "{\"a\":1,\"z\":9}"), 0);

  gen_grammar_options* options = NULL;
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  static const char* const wrong[][3] = {{"json_one_of", "all", "any_of"},
                                         {"json_order", "", "definition"},
                                         {"json_ignore", "pattern,$ref", "$ref"},
                                         {"json_ignore", "patern", "patern"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    assert_fails(gen_grammar_options_set(options, wrong[i][0], wrong[i][1], &error), bad,
                 wrong[i][2], error);
  }
  for (int i = 0; loose[i] != NULL; i += 2)
    assert_ok(gen_grammar_options_set(options, loose[i], loose[i + 1], &error), error);
  assert_ok(gen_grammar_from_json_schema(schema, GEN_NUL_TERMINATED, options, &grammar, &error),
            error);
  char text[512];
  size_t n = 0;
  assert_ok(gen_grammar_describe(grammar, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text,
                         "\"relaxed\":[\"/properties/a/pattern: ignored\",\"/properties/z/oneOf: "
                         "as anyOf\"]"));
  gen_grammar_free(grammar);

  assert_fails(gen_grammar_options_add_schema(NULL, "urn:a", "{}", 2, &error), bad, "options",
               error);
  assert_fails(gen_grammar_options_add_schema(options, NULL, "{}", 2, &error), bad, "uri", error);
  assert_fails(gen_grammar_options_add_schema(options, "urn:a", NULL, 2, &error), bad, "text",
               error);
  assert_fails(gen_grammar_options_add_schema(options, "", "{}", 2, &error), bad, "URI", error);
  static const char refers[] = "{\"items\":{\"$ref\":\"urn:a#/$defs/b\"},\"type\":\"array\"}";
  assert_fails(gen_grammar_from_json_schema(refers, GEN_NUL_TERMINATED, options, &grammar, &error),
               GEN_ERROR_GRAMMAR, "/items/$ref: unresolved", error);
  assert_ok(gen_grammar_options_add_schema(options, "urn:a", "false", 5, &error), error);
  assert_ok(
      gen_grammar_options_add_schema(options, "urn:a", "{\"$defs\":{\"b\":{\"type\":\"null\"}}}",
                                     GEN_NUL_TERMINATED, &error),
      error);
  assert_ok(gen_grammar_from_json_schema(refers, GEN_NUL_TERMINATED, options, &grammar, &error),
            error);
  const char* const strings[] = {"null", "1", "]"};
  uint32_t bits = 0;
  assert_ok(gen_token_mask(grammar, "[", 1, strings, NULL, 3, &bits, 1, &error), error);
  assert_int_equal(bits, 5);
  gen_grammar_free(grammar);
  gen_grammar_options_free(options);
}

/* A raised flag stops the making of any grammar, and what has to be prepared for a tokenizer; nothing is made, and
 * lowered it is as if it had never been. */
static void making_can_be_cancelled(void** state) {
  (void)state;
  typedef gen_status (*from_text)(const char*, size_t, const gen_grammar_options*, gen_grammar**,
                                  gen_error*);
  static const struct {
    from_text from;
    const char* text;
  } all[] = {
      {gen_grammar_from_gbnf, "root ::= \"a\""},
      {gen_grammar_from_regex, "a|b"},
      {gen_grammar_from_lark, "start: \"a\""},
      {gen_grammar_from_tags, "{\"tags\":[{\"begin\":\"<\",\"regex\":\"a\"}]}"},
      {gen_grammar_from_json_schema, "{\"enum\":[{\"a\":1}]}"},
  };
  gen_cancel* cancel = NULL;
  gen_grammar_options* options = NULL;
  assert_ok(gen_cancel_new(&cancel, &error), error);
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_fails(gen_grammar_options_set_cancel(NULL, cancel, &error), GEN_ERROR_INVALID_ARGUMENT,
               "options", error);
  assert_ok(gen_grammar_options_set_cancel(options, cancel, &error), error);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    gen_grammar* grammar = (gen_grammar*)&error;
    gen_cancel_fire(cancel);
    assert_fails(all[i].from(all[i].text, GEN_NUL_TERMINATED, options, &grammar, &error),
                 GEN_ERROR_CANCELLED, "cancelled", error);
    assert_null(grammar);
    gen_cancel_reset(cancel);
    assert_ok(all[i].from(all[i].text, GEN_NUL_TERMINATED, options, &grammar, &error), error);
    /* What it needs to be prepared is asked of the grammar's flag ... */
    gen_cancel_fire(cancel);
    gen_grammar_matcher* matcher = (gen_grammar_matcher*)&error;
    assert_fails(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error),
                 GEN_ERROR_CANCELLED, "cancelled", error);
    assert_null(matcher);
    const char* const strings[] = {"a"};
    uint32_t bits = 0;
    assert_fails(gen_token_mask(grammar, "", 0, strings, NULL, 1, &bits, 1, &error),
                 GEN_ERROR_CANCELLED, "cancelled", error);
    gen_cancel_reset(cancel);
    assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
    gen_grammar_matcher_free(matcher);
    /* ... and what is there already is not. */
    gen_cancel_fire(cancel);
    assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
    gen_grammar_matcher_free(matcher);
    gen_grammar_free(grammar);
  }
  gen_grammar* json = (gen_grammar*)&error;
  assert_fails(gen_grammar_any_json(options, &json, &error), GEN_ERROR_CANCELLED, "cancelled",
               error);
  assert_null(json);
  /* The flag lives on with the options. */
  gen_cancel_free(cancel);
  assert_fails(gen_grammar_any_json(options, &json, &error), GEN_ERROR_CANCELLED, "cancelled",
               error);
  assert_ok(gen_grammar_options_set_cancel(options, NULL, &error), error);
  assert_ok(gen_grammar_any_json(options, &json, &error), error);
  gen_grammar_free(json);
  gen_grammar_options_free(options);
}

/* Deep texts, patterns that blow up and limits: an answer, or an error that names the limit. */
static void limits_hold(void** state) {
  (void)state;
  gen_grammar_options* options = NULL;
  gen_grammar* grammar = NULL;
  gen_grammar_matcher* matcher = NULL;
  assert_ok(gen_grammar_options_new(&options, &error), error);
  assert_ok(gen_grammar_options_set(options, "max_items", "10", &error), error);
  assert_ok(gen_grammar_from_gbnf("root ::= a{0,40} a{40}\na ::= \"x\"{1,40}", GEN_NUL_TERMINATED,
                                  options, &grammar, &error),
            error);
  assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
  gen_status status = GEN_OK;
  for (int i = 0; i < 60 && status == GEN_OK; ++i)
    status = gen_grammar_matcher_accept_bytes(matcher, "x", 1, &error);
  assert_int_equal(status, GEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(error.message, "10"));
  assert_fails(gen_grammar_matcher_accept_bytes(matcher, "y", 1, &error), GEN_ERROR_GRAMMAR, "'y'",
               error);
  int32_t x = 0;
  size_t n_x = 0;
  assert_ok(gen_tokenizer_encode(tokenizer, "x", 1, GEN_ENCODE_CONTINUE, &x, 1, &n_x, &error),
            error);
  assert_fails(gen_grammar_matcher_accept_token(matcher, x, &error), GEN_ERROR_UNSUPPORTED, "10",
               error);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
  assert_ok(gen_grammar_options_set(options, "max_states", "50", &error), error);
  assert_fails(gen_grammar_from_regex("(?=.*a.{20})(?=.*b.{20}).*c", GEN_NUL_TERMINATED, options,
                                      &grammar, &error),
               GEN_ERROR_GRAMMAR, "50", error);
  assert_ok(gen_grammar_options_set(options, "max_work", "1", &error), error);
  assert_ok(gen_grammar_any_json(options, &grammar, &error), error);
  assert_ok(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error), error);
  uint32_t* none = calloc(words, 4);
  size_t n = 0;
  assert_fails(gen_grammar_matcher_mask(matcher, none, words, &error), GEN_ERROR_GRAMMAR,
               "limit of 1", error);
  assert_fails(gen_grammar_matcher_forced(matcher, NULL, 0, &n, &error), GEN_ERROR_GRAMMAR,
               "limit of 1", error);
  free(none);
  gen_grammar_matcher_free(matcher);
  stream_ends_at_limit(grammar);
  gen_grammar_free(grammar);
  gen_grammar_options_free(options);
  grammar = gbnf("root ::= \"(\" root \")\" | \"\"");
  matcher = matcher_of(grammar);
  char* deep = malloc(100000);
  memset(deep, '(', 100000);
  assert_ok(gen_grammar_matcher_accept_bytes(matcher, deep, 100000, &error), error);
  uint32_t* bits = calloc(words, 4);
  assert_ok(gen_grammar_matcher_mask(matcher, bits, words, &error), error);
  memset(deep, ')', 100000);
  assert_ok(gen_grammar_matcher_accept_bytes(matcher, deep, 100000, &error), error);
  assert_int_equal(gen_grammar_matcher_complete(matcher), 2);
  free(bits);
  free(deep);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_members),
      cmocka_unit_test(results_say_whether_they_are_members),
      cmocka_unit_test(settings_take_one_or_the_other),
      cmocka_unit_test(ends_that_are_failures),
      cmocka_unit_test(what_is_wrong_is_named),
      cmocka_unit_test(tags_constrain_parts_of_texts),
      cmocka_unit_test(lark_files_are_read),
      cmocka_unit_test(schemas_are_followed),
      cmocka_unit_test(json_is_plain_by_default),
      cmocka_unit_test(texts_fit_by_default),
      cmocka_unit_test(schemas_are_relaxed),
      cmocka_unit_test(making_can_be_cancelled),
      cmocka_unit_test(limits_hold),
  };
  return cmocka_run_group_tests(tests, load, unload);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Heads from files of their own: what is said is what the model says alone, bit for bit, in every
 * form of call. Which files are refused: eagle_files_test.cpp. */
#include "draft_calls.h"

#include <unistd.h>

#define EAGLE3 GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle3.gguf"
#define EAGLE_MLP GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle.gguf"
#define NOWHERE "/no/such/head.gguf"

static const char* const kHeads[] = {EAGLE3, EAGLE_MLP};
enum { HEADS = 2 };
static gen_model* model;
static gen_generator* plain;
static gen_generator* drafting[HEADS];

static gen_generator* generator_of(const char* path) {
  gen_options* options = options_new();
  assert_ok(gen_options_set_eagle(options, path, &error), error);
  return generator_with(model, options);
}

static int begin(void** state) {
  (void)state;
  assert_ok(gen_model_load(STORY_MODEL, NULL, &model, &error), error);
  plain = generator_with(model, NULL);
  for (int i = 0; i < HEADS; ++i) drafting[i] = generator_of(kHeads[i]);
  return 0;
}
static int end(void** state) {
  (void)state;
  gen_free(plain);
  for (int i = 0; i < HEADS; ++i) gen_free(drafting[i]);
  gen_model_free(model);
  return 0;
}

static gen_sampling* settings(int32_t tokens, double temperature) {
  gen_sampling* sampling = greedy(tokens);
  assert_ok(gen_sampling_set_temperature(sampling, temperature, &error), error);
  assert_ok(gen_sampling_set_logprobs(sampling, 2, &error), error);
  return sampling;
}

static void assert_enabled(const gen_generator* generator, int enabled, const char* path) {
  char text[512];
  size_t n = 0;
  assert_int_equal(gen_generator_eagle_enabled(generator), enabled);
  assert_ok(gen_generator_eagle_path(generator, NULL, 0, &n, &error), error);
  assert_int_equal(n, strlen(path));
  assert_ok(gen_generator_eagle_path(generator, text, sizeof text, &n, &error), error);
  assert_string_equal(text, path);
}

static void assert_alike(const gen_sampling* sampling) {
  gen_result* want = said_by(plain, sampling);
  for (int i = 0; i < HEADS; ++i) {
    gen_result* got = said_by(drafting[i], sampling);
    assert_same(got, want);
    assert_true(usage(got, "accepted") > 0);
    assert_true(usage(got, "accepted") <= usage(got, "drafted"));
    gen_result_free(got);
  }
  gen_result_free(want);
}

static void texts_are_the_models(void** state) {
  (void)state;
  for (int t = 0; t < 3; ++t) {
    gen_sampling* sampling = settings(60, 0.5 * t);
    assert_alike(sampling);
    assert_ok(gen_sampling_set_gumbel(sampling, 1, &error), error);
    assert_alike(sampling);
    gen_sampling_free(sampling);
  }
  for (int i = 0; i < HEADS; ++i) {
    double drafted = 0, accepted = 0;
    assert_enabled(drafting[i], 1, kHeads[i]);
    assert_ok(gen_generator_draft_stats(drafting[i], "drafted", &drafted, &error), error);
    assert_ok(gen_generator_draft_stats(drafting[i], "accepted", &accepted, &error), error);
    assert_true(accepted > 0 && accepted <= drafted);
  }
}

static void texts_under_a_grammar(void** state) {
  (void)state;
  gen_grammar* grammar = NULL;
  gen_sampling* sampling = settings(40, 0.7);
  static const char kRule[] = "root ::= (\" \" [a-z]+){3,9} \".\"";
  assert_ok(gen_grammar_from_gbnf(kRule, strlen(kRule), NULL, &grammar, &error), error);
  assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
  assert_alike(sampling);
  gen_grammar_free(grammar);
  gen_sampling_free(sampling);
}

struct pieces {
  char text[2048];
  size_t length;
};

static int keep(void* user, const gen_token* token) {
  struct pieces* all = user;
  assert_true(all->length + token->text_len < sizeof all->text);
  if (token->text_len > 0) memcpy(all->text + all->length, token->text, token->text_len);
  all->length += token->text_len;
  return 0;
}

static void streams(void** state) {
  (void)state;
  gen_sampling* sampling = settings(40, 0.7);
  gen_result* want = said_by(plain, sampling);
  for (int i = 0; i < HEADS; ++i) {
    struct pieces all = {.length = 0};
    gen_result* got = NULL;
    assert_ok(gen_generate_stream(drafting[i], kPrompt, strlen(kPrompt), sampling, keep, &all, &got,
                                  &error),
              error);
    assert_same(got, want);
    all.text[all.length] = '\0';
    assert_string_equal(all.text, gen_result_text(want, NULL));
    gen_result_free(got);
  }
  gen_result_free(want);
  gen_sampling_free(sampling);
}

static void batches(void** state) {
  (void)state;
  enum { TEXTS = 4 };
  static const char* const kTexts[TEXTS] = {"Once", "The dog ran. The dog", "A little girl",
                                            kPrompt};
  gen_request* requests[TEXTS];
  gen_result* want[TEXTS];
  for (int r = 0; r < TEXTS; ++r) {
    gen_sampling* sampling = settings(20 + 5 * r, 0.4 * r);
    const char* text = kTexts[r];
    assert_ok(gen_request_new(&requests[r], &error), error);
    assert_ok(gen_request_set_prompt(requests[r], text, strlen(text), &error), error);
    assert_ok(gen_request_set_sampling(requests[r], sampling, &error), error);
    assert_ok(gen_generate(plain, text, strlen(text), sampling, &want[r], &error), error);
    gen_sampling_free(sampling);
  }
  for (int i = 0; i < HEADS; ++i) {
    gen_result* got[TEXTS];
    int64_t accepted = 0;
    assert_ok(
        gen_batch_generate(drafting[i], (const gen_request* const*)requests, TEXTS, got, &error),
        error);
    for (int r = 0; r < TEXTS; ++r) {
      assert_same(got[r], want[r]);
      accepted += usage(got[r], "accepted");
      gen_result_free(got[r]);
    }
    assert_true(accepted > 0);
  }
  for (int r = 0; r < TEXTS; ++r) {
    gen_result_free(want[r]);
    gen_request_free(requests[r]);
  }
}

/* What a session says with forks, cuts and a state that is saved and read, in this order. */
enum { TURNS = 6 };

static gen_result* turn(gen_session* session, const char* text) {
  gen_sampling* sampling = settings(16, 0.6);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(session, text, strlen(text), sampling, &result, &error), error);
  gen_sampling_free(sampling);
  return result;
}

static void all_turns(gen_generator* generator, const char* path, gen_result* results[TURNS]) {
  gen_session* session = NULL;
  gen_session* fork = NULL;
  gen_session* read = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_new(generator, &read, &error), error);
  results[0] = turn(session, kPrompt);
  assert_ok(gen_session_fork(session, &fork, &error), error);
  results[1] = turn(session, " Then");
  results[2] = turn(fork, " Then");
  assert_ok(gen_session_truncate(session, 11, &error), error);
  results[3] = turn(session, " a cat");
  assert_ok(gen_session_save(session, path, &error), error);
  results[4] = turn(session, " The cat");
  assert_ok(gen_session_load(read, path, &error), error);
  results[5] = turn(read, " The cat");
  gen_session_free(session);
  gen_session_free(fork);
  gen_session_free(read);
  unlink(path);
}

static void sessions(void** state) {
  (void)state;
  char path[64];
  gen_result* want[TURNS];
  snprintf(path, sizeof path, "/tmp/generate_eagle_%ld.state", (long)getpid());
  all_turns(plain, path, want);
  assert_same(want[2], want[1]);
  assert_same(want[5], want[4]);
  for (int i = 0; i < HEADS; ++i) {
    gen_result* got[TURNS];
    all_turns(drafting[i], path, got);
    for (int t = 0; t < TURNS; ++t) {
      assert_same(got[t], want[t]);
      assert_true(usage(got[t], "drafted") > 0);
      gen_result_free(got[t]);
    }
  }
  for (int t = 0; t < TURNS; ++t) gen_result_free(want[t]);
}

static void without_a_file_there_are_no_drafts(void** state) {
  (void)state;
  gen_sampling* sampling = settings(20, 0);
  gen_result* want = said_by(plain, sampling);
  static const char* const kPaths[] = {NOWHERE, "", NULL};
  for (int i = 0; i < 3; ++i) {
    gen_generator* generator = generator_of(kPaths[i]);
    gen_result* got = said_by(generator, sampling);
    assert_enabled(generator, 0, kPaths[i] != NULL ? kPaths[i] : "");
    assert_same(got, want);
    assert_int_equal(usage(got, "drafted"), 0);
    gen_result_free(got);
    gen_free(generator);
  }
  gen_result_free(want);
  gen_sampling_free(sampling);
  /* A path can be taken back. */
  gen_options* options = options_new();
  assert_ok(gen_options_set_eagle(options, EAGLE3, &error), error);
  assert_ok(gen_options_set_eagle(options, NULL, &error), error);
  gen_generator* generator = generator_with(model, options);
  assert_enabled(generator, 0, "");
  gen_free(generator);
}

static void arguments(void** state) {
  (void)state;
  char text[8];
  size_t n = 0;
  gen_generator* generator = NULL;
  gen_options* options = options_new();
  assert_fails(gen_options_set_eagle(NULL, EAGLE3, &error), bad, "options", error);
  assert_int_equal(gen_generator_eagle_enabled(NULL), 0);
  assert_fails(gen_generator_eagle_path(NULL, text, sizeof text, &n, &error), bad, "generator",
               error);
  assert_fails(gen_generator_eagle_path(drafting[0], text, sizeof text, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "8", error);
  assert_int_equal(n, strlen(EAGLE3));
  assert_fails(gen_generator_eagle_path(drafting[0], text, sizeof text, NULL, &error), bad, "n",
               error);
  /* The model's own file has none. */
  assert_ok(gen_options_set_eagle(options, STORY_MODEL, &error), error);
  assert_fails(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED, "story.gguf",
               error);
  assert_null(generator);
  assert_ok(gen_options_set_eagle(options, EAGLE3, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_enabled(generator, 1, EAGLE3);
  gen_free(generator);
  /* The model for which it is has other states. */
  gen_model* small = load_draft();
  memset(&error, 0, sizeof error);
  assert_int_not_equal(gen_create(small, options, &generator, &error), GEN_OK);
  assert_non_null(strstr(error.message, "eagle3.gguf"));
  assert_null(strchr(error.message, '\n'));
  assert_null(generator);
  gen_model_free(small);
  gen_options_free(options);
}

/* The setting as it is described. */
static void assert_value(const gen_options* options, const char* name, const char* value) {
  static char text[32768];
  char key[64];
  char want[512];
  size_t n = 0;
  assert_ok(gen_options_describe(options, text, sizeof text, &n, &error), error);
  snprintf(key, sizeof key, "\"key\":\"%s\"", name);
  const char* at = strstr(text, key);
  assert_non_null(at);
  at = strstr(at, "\"value\":");
  assert_non_null(at);
  snprintf(want, sizeof want, "\"value\":\"%s\"", value);
  if (strncmp(at, want, strlen(want)) != 0) fail_msg("%s is %.60s, not %s", name, at, want);
}

static void settings_by_name(void** state) {
  (void)state;
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_value(options, "eagle", "");
  assert_ok(gen_options_set(options, "eagle", EAGLE_MLP, &error), error);
  assert_value(options, "eagle", EAGLE_MLP);
  assert_ok(gen_options_set(options, "draft_heads", "on,6", &error), error);
  assert_value(options, "draft_heads", "on,6");
  assert_ok(gen_options_set(options, "draft_heads", "off", &error), error);
  assert_value(options, "draft_heads", "off,4");
  assert_ok(gen_options_set(options, "draft_heads", "auto", &error), error);
  assert_value(options, "draft_heads", "auto,4");
  assert_fails(gen_options_set(options, "draft_heads", "most", &error), bad, "most", error);
  assert_fails(gen_options_set(options, "draft_heads", "on,64", &error), bad, "64", error);
  assert_fails(gen_options_set(options, "draft_heads", "on,-1", &error), bad, "-1", error);
  assert_fails(gen_options_set(options, "draft_heads", "on,x", &error), bad, "x", error);
  assert_fails(gen_options_set(options, "draft_heads", "", &error), bad, "draft_heads", error);
  assert_fails(gen_options_set(options, "draft_policy", "of", &error), bad, "of", error);
  assert_value(options, "draft_heads", "auto,4");
  /* Nothing drafts, and no file is opened. */
  assert_ok(gen_options_set(options, "draft_policy", "off", &error), error);
  assert_value(options, "draft_policy", "off");
  assert_ok(gen_options_set(options, "eagle", STORY_MODEL, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_enabled(generator, 0, STORY_MODEL);
  gen_free(generator);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  assert_ok(gen_options_set(options, "eagle", "", &error), error);
  assert_ok(gen_options_set(options, "draft_heads", "on", &error), error);
  assert_fails(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED, "no head",
               error);
  assert_null(generator);
  gen_options_free(options);
}

/* Caches of every kind, and a context that drops its beginning more than once. */
static void caches_of_every_kind(void** state) {
  (void)state;
  enum { CONTEXT = 96, SAID = 160 };
  static const char* const kForms[][4] = {{NULL},
                                          {"kv_dtype", "fp16"},
                                          {"kv_dtype", "q4"},
                                          {"kv_dtype", "q3/fp16"},
                                          {"paged_kv", "8,16", "prefix_cache", "32"}};
  gen_model_options* load = NULL;
  gen_model* small = NULL;
  assert_ok(gen_model_options_new(&load, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(load, CONTEXT, &error), error);
  assert_ok(gen_model_load(STORY_MODEL, load, &small, &error), error);
  gen_model_options_free(load);
  gen_sampling* sampling = settings(SAID, 0.7);
  assert_ok(gen_sampling_set_ignore_eos(sampling, 1, &error), error);
  for (size_t f = 0; f < sizeof kForms / sizeof kForms[0]; ++f) {
    gen_result* want = NULL;
    for (int i = -1; i < HEADS; ++i) {
      gen_options* options = options_new();
      assert_ok(gen_options_set(options, "context_policy", "shift,4", &error), error);
      for (int o = 0; o < 4 && kForms[f][o] != NULL; o += 2) {
        assert_ok(gen_options_set(options, kForms[f][o], kForms[f][o + 1], &error), error);
      }
      if (i >= 0) assert_ok(gen_options_set_eagle(options, kHeads[i], &error), error);
      gen_generator* generator = generator_with(small, options);
      for (int again = 0; again < 2; ++again) { /* the second has the first's prefix */
        gen_result* got = said_by(generator, sampling);
        size_t n = 0;
        gen_result_tokens(got, &n);
        assert_int_equal(n, SAID);
        assert_true(usage(got, "dropped") > 0);
        if (i >= 0) assert_true(usage(got, "accepted") > 0);
        if (want != NULL) assert_same(got, want);
        if (want == NULL) {
          want = got;
        } else {
          gen_result_free(got);
        }
      }
      gen_free(generator);
    }
    gen_result_free(want);
  }
  gen_sampling_free(sampling);
  gen_model_free(small);
}

/* As many guesses a pass as asked, and no more. */
static void drafts_are_as_long_as_asked(void** state) {
  (void)state;
  gen_sampling* sampling = settings(40, 0);
  gen_result* want = said_by(plain, sampling);
  for (int length = 1; length < 8; length += 3) {
    char text[16];
    double at = -1, beyond = -1, drafted = 0, passes = 0;
    char key[32];
    gen_options* options = options_new();
    snprintf(text, sizeof text, "on,%d", length);
    assert_ok(gen_options_set_eagle(options, EAGLE3, &error), error);
    assert_ok(gen_options_set(options, "draft_heads", text, &error), error);
    gen_generator* generator = generator_with(model, options);
    gen_result* got = said_by(generator, sampling);
    assert_same(got, want);
    assert_ok(gen_generator_draft_stats(generator, "drafted", &drafted, &error), error);
    assert_ok(gen_generator_draft_stats(generator, "passes", &passes, &error), error);
    assert_ok(gen_generator_draft_stats(generator, "acceptance_at_1", &at, &error), error);
    snprintf(key, sizeof key, "acceptance_at_%d", length + 1);
    assert_ok(gen_generator_draft_stats(generator, key, &beyond, &error), error);
    assert_true(drafted > 0 && drafted <= passes * length);
    assert_true(at > 0);
    assert_true(beyond == 0);
    gen_result_free(got);
    gen_free(generator);
  }
  gen_result_free(want);
  gen_sampling_free(sampling);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_the_models),
      cmocka_unit_test(texts_under_a_grammar),
      cmocka_unit_test(streams),
      cmocka_unit_test(batches),
      cmocka_unit_test(sessions),
      cmocka_unit_test(without_a_file_there_are_no_drafts),
      cmocka_unit_test(arguments),
      cmocka_unit_test(settings_by_name),
      cmocka_unit_test(caches_of_every_kind),
      cmocka_unit_test(drafts_are_as_long_as_asked),
  };
  return cmocka_run_group_tests(tests, begin, end);
}

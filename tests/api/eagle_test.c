/* SPDX-License-Identifier: Apache-2.0 */
/* Heads from files of their own: what is said is what the model says alone, bit for bit, in every
 * form of call. Which files are refused: eagle_files_test.cpp. */
#include "eagle_calls.h"

#include <unistd.h>

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
    /* A fork's head knows what the session's does. */
    assert_int_equal(usage(got[2], "accepted"), usage(got[1], "accepted"));
    for (int t = 0; t < TURNS; ++t) {
      assert_same(got[t], want[t]);
      assert_true(usage(got[t], "drafted") > 0);
      gen_result_free(got[t]);
    }
  }
  for (int t = 0; t < TURNS; ++t) gen_result_free(want[t]);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_the_models),
      cmocka_unit_test(texts_under_a_grammar),
      cmocka_unit_test(streams),
      cmocka_unit_test(batches),
      cmocka_unit_test(sessions),
      cmocka_unit_test(caches_of_every_kind),
  };
  return cmocka_run_group_tests(tests, begin, end);
}

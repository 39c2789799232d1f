/* SPDX-License-Identifier: Apache-2.0 */
/* gen_session_ssm_state of a toy model: its layers are what state_get_layer gives, sessions go back
 * to snapshots of it where it can be copied, and what a table without these functions has. */
#include "toy_model.h"

#include <sys/wait.h>
#include <unistd.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t prompt[] = {3, 14, 15, 9, 26, 5, 35};
enum { PROMPT = sizeof prompt / sizeof prompt[0] };

/* The answer of toy_get_layer at will: GEN_OK, or what it refuses with. */
static gen_status answer = GEN_OK;
static int32_t height = 2;
static int32_t width = 2;

/* Layer 0: [1, 2, 2] the length and the last token, twice; layer 1: nothing. */
static gen_status toy_get_layer(void* user, const void* state, int32_t layer, float* h,
                                int32_t shape[3], gen_error* told) {
  (void)user;
  (void)told;
  const struct toy_state* own = state;
  shape[0] = layer == 0;
  shape[1] = height;
  shape[2] = width;
  if (answer != GEN_OK) return answer;
  if (h == NULL || layer != 0) return GEN_OK;
  for (int i = 0; i < 4; i += 2) {
    h[i] = (float)own->length;
    h[i + 1] = own->length > 0 ? (float)own->tokens[own->length - 1] : -1.0F;
  }
  return GEN_OK;
}

static gen_forward viewed(struct toy* toy, enum kind kind) {
  gen_forward table = table_of(toy, kind);
  table.state_layers = 2;
  table.state_get_layer = toy_get_layer;
  return table;
}

static void assert_layer(const gen_ssm_state* view, int32_t length, int32_t last) {
  float h[4] = {7, 7, 7, 7};
  int32_t shape[3] = {0, 0, 0};
  const int32_t want[] = {1, 2, 2};
  assert_ok(gen_ssm_state_get_layer(view, 0, h, 4, shape, &error), error);
  assert_memory_equal(shape, want, sizeof want);
  assert_int_equal(gen_ssm_state_position(view), length);
  assert_true(h[0] == (float)length && h[1] == (float)last && h[2] == h[0] && h[3] == h[1]);
}

static void layers_are_the_models(void** test) {
  (void)test;
  struct toy toy = {.at = -1};
  const gen_forward table = viewed(&toy, WITH_STATE);
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = open_session(generator);
  gen_ssm_state* view = gen_session_ssm_state(session);
  assert_non_null(view);
  assert_ptr_equal(view, gen_session_ssm_state(session));
  assert_int_equal(gen_ssm_state_num_layers(view), 2);
  assert_string_equal(gen_ssm_state_layer_kind(view, 1), "custom");
  assert_int_equal(gen_ssm_state_layer_index(view, 1), 1);
  assert_null(gen_ssm_state_layer_kind(view, 2));
  assert_int_equal(gen_ssm_state_layer_index(view, -1), -1);
  assert_int_equal(gen_ssm_state_memory_bytes(view), 0);
  assert_layer(view, 0, -1);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_layer(view, PROMPT - 1, prompt[PROMPT - 2]); /* the last one is pending */

  float h[4] = {7, 7, 7, 7};
  const float untouched[4] = {7, 7, 7, 7};
  int32_t shape[3];
  const gen_status range = GEN_ERROR_OUT_OF_RANGE;
  assert_fails(gen_ssm_state_get_layer(view, 2, h, 4, shape, &error), range, "layer 2", error);
  assert_fails(gen_ssm_state_get_layer(view, 0, h, 3, shape, &error), range, "4 floats", error);
  assert_int_equal(shape[2], 2);
  assert_ok(gen_ssm_state_get_layer(view, 1, h, 0, shape, &error), error);
  assert_int_equal(shape[0], 0);
  width = -1;
  assert_fails(gen_ssm_state_get_layer(view, 0, h, 4, shape, &error), GEN_ERROR_MODEL, "[1, 2, -1]",
               error);
  height = width = 1 << 30; /* no memory is taken for what does not fit */
  assert_fails(gen_ssm_state_get_layer(view, 0, h, 4, shape, &error), range, "buffer of 4", error);
  assert_int_equal(shape[2], width);
  height = width = 2;
  answer = GEN_ERROR_DEVICE;
  assert_fails(gen_ssm_state_get_layer(view, 0, h, 4, shape, &error), GEN_ERROR_DEVICE,
               "state_get_layer", error);
  answer = GEN_OK;
  assert_memory_equal(h, untouched, sizeof h);

  assert_fails(gen_ssm_state_set_layer(view, 0, h, 1, 2, 2, &error), GEN_ERROR_UNSUPPORTED,
               "that of its text: it cannot be set", error);
  assert_fails(gen_ssm_state_reset(view, &error), GEN_ERROR_UNSUPPORTED,
               "that of its text: use gen_session_reset", error);
  gen_ssm_state_free(view); /* nothing */
  assert_layer(view, PROMPT - 1, prompt[PROMPT - 2]);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
}

/* Also where the model itself cannot go back. */
static void sessions_go_back(void** test) {
  (void)test;
  for (int kind = WITH_STATE; kind <= ONE_WAY; ++kind) {
    struct toy toy = {.at = -1};
    const gen_forward table = viewed(&toy, kind);
    gen_generator* generator = toy_generator(&table, NULL);
    gen_session* session = open_session(generator);
    gen_ssm_state* view = gen_session_ssm_state(session);
    int64_t first = 0;
    int64_t second = 0;
    assert_ok(gen_ssm_state_snapshot(view, &first, &error), error);
    assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
    assert_ok(gen_ssm_state_snapshot(view, &second, &error), error);
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
    for (int round = 0; round < 2; ++round) {
      assert_goes_on(session, &toy, 9);
      const int rows = toy.rows;
      assert_ok(gen_ssm_state_restore(view, second, &error), error);
      assert_int_equal(toy.rows, rows);
      assert_int_equal(gen_session_length(session), PROMPT);
      assert_layer(view, PROMPT - 1, prompt[PROMPT - 2]);
    }
    /* Without memory for the copy nothing has changed. */
    toy.refuse_clone = 1;
    toy.status = GEN_ERROR_OUT_OF_MEMORY;
    assert_fails(gen_ssm_state_restore(view, first, &error), GEN_ERROR_OUT_OF_MEMORY, "clone",
                 error);
    assert_fails(gen_ssm_state_snapshot(view, &second, &error), GEN_ERROR_OUT_OF_MEMORY, "clone",
                 error);
    toy.refuse_clone = 0;
    assert_layer(view, PROMPT - 1, prompt[PROMPT - 2]);
    assert_goes_on(session, &toy, 3);
    /* Another text. */
    assert_ok(gen_session_reset(session, &error), error);
    assert_ok(gen_session_append_tokens(session, prompt + 1, PROMPT - 1, &error), error);
    assert_fails(gen_ssm_state_restore(view, 2, &error), GEN_ERROR_STATE,
                 "begins with 0 of the 6 tokens", error);
    assert_layer(view, PROMPT - 2, prompt[PROMPT - 2]);
    assert_ok(gen_ssm_state_restore(view, first, &error), error);
    assert_int_equal(gen_session_length(session), 0);
    assert_layer(view, 0, -1);
    assert_ok(gen_session_append_tokens(session, prompt, 3, &error), error);
    assert_goes_on(session, &toy, 4);
    /* Cut to nothing, a state that cannot be cut is gone until the session goes on. */
    assert_ok(gen_session_truncate(session, 0, &error), error);
    assert_ok(gen_ssm_state_snapshot(view, &first, &error), error);
    assert_ok(gen_session_append_tokens(session, prompt, 4, &error), error);
    assert_goes_on(session, &toy, 3);
    assert_ok(gen_ssm_state_restore(view, first, &error), error);
    assert_int_equal(gen_session_length(session), 0);
    assert_layer(view, 0, -1);
    gen_session_free(session);
    gen_free(generator);
    assert_balanced(&toy);
  }
}

static void tables_may_have_less(void** test) {
  (void)test;
  struct toy toy = {.at = -1};
  gen_forward table = table_of(&toy, STATELESS);
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = open_session(generator);
  assert_null(gen_session_ssm_state(session));
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);

  struct toy other = {.at = -1};
  table = table_of(&other, WITH_STATE);
  table.state_clone = NULL;
  generator = toy_generator(&table, NULL);
  session = open_session(generator);
  gen_ssm_state* view = gen_session_ssm_state(session);
  int64_t snapshot = 5;
  assert_int_equal(gen_ssm_state_num_layers(view), 0);
  assert_fails(gen_ssm_state_get_layer(view, 0, NULL, 0, NULL, &error), GEN_ERROR_OUT_OF_RANGE,
               "a state of 0 layers", error);
  assert_fails(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_ERROR_UNSUPPORTED, "copied",
               error);
  assert_int_equal(snapshot, 0);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&other);

  struct toy last = {.at = -1};
  gen_model_config* config = toy_config();
  gen_model* model = NULL;
  table = viewed(&last, WITH_STATE);
  table.state_layers = -1;
  assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "-1", error);
  table.state_layers = 2;
  table.state_get_layer = NULL;
  assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "state_layers",
               error);
  table = viewed(&last, STATELESS);
  assert_fails(gen_model_new_custom(&table, config, NULL, &model, &error), bad, "state_layers",
               error);
  gen_model_config_free(config);
}

/* As every object that has locks; what is the parent's stays as it is. */
static void a_child_is_refused(void** test) {
  (void)test;
  struct toy toy = {.at = -1};
  const gen_forward table = viewed(&toy, WITH_STATE);
  gen_generator* generator = toy_generator(&table, NULL);
  gen_session* session = open_session(generator);
  gen_ssm_state* view = gen_session_ssm_state(session);
  int64_t snapshot = 0;
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_ok(gen_ssm_state_snapshot(view, &snapshot, &error), error);
  const pid_t child = fork();
  if (child == 0) {
    const gen_status refused = GEN_ERROR_STATE;
    const float h[4] = {0};
    int64_t number = 0;
    alarm(30);
    int failed = gen_ssm_state_get_layer(view, 0, NULL, 0, NULL, NULL) != refused;
    failed += gen_ssm_state_snapshot(view, &number, NULL) != refused;
    failed += gen_ssm_state_restore(view, snapshot, NULL) != refused;
    failed += gen_ssm_state_set_layer(view, 0, h, 1, 2, 2, NULL) != refused;
    failed += gen_ssm_state_reset(view, NULL) != refused;
    gen_ssm_state_free(view);
    _exit(failed);
  }
  int ended = -1;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(ended, 0);
  assert_layer(view, PROMPT - 1, prompt[PROMPT - 2]);
  gen_session_free(session);
  gen_free(generator);
  assert_balanced(&toy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_are_the_models),
      cmocka_unit_test(sessions_go_back),
      cmocka_unit_test(tables_may_have_less),
      cmocka_unit_test(a_child_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

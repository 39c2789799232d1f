/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_state.h: every function's good case, each documented error, and that a failed call changes
 * nothing. */
#include "api_test.h"

#include <pthread.h>
#include <stdatomic.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static void new_checks_its_arguments(void** test) {
  (void)test;
  gen_ssm_state* state = (gen_ssm_state*)&error;
  assert_fails(gen_ssm_state_new(-1, 4, 4, &state, &error), bad, "-1 layers", error);
  assert_null(state);
  assert_fails(gen_ssm_state_new(65537, 4, 4, &state, &error), bad, "65537", error);
  assert_fails(gen_ssm_state_new(2, 0, 4, &state, &error), bad, "d_inner 0", error);
  assert_fails(gen_ssm_state_new(2, 4, -4, &state, &error), bad, "d_state -4", error);
  assert_fails(gen_ssm_state_new(2, 4, 4, NULL, &error), bad, "out", error);
  assert_fails(gen_ssm_state_new_batch(2, 0, 4, 4, &state, &error), bad, "batch 0", error);
  assert_fails(gen_ssm_state_new_batch(65536, INT32_MAX, INT32_MAX, INT32_MAX, &state, &error),
               GEN_ERROR_OUT_OF_MEMORY, "overflow", error);
  assert_null(state);
  assert_ok(gen_ssm_state_new(24, 1536, 16, &state, &error), error);
  assert_int_equal(gen_ssm_state_num_layers(state), 24);
  assert_int_equal(gen_ssm_state_num_layers(NULL), 0);
  assert_int_equal(gen_ssm_state_memory_bytes(state), 2359296); /* the published number */
  gen_ssm_state_free(state);
  assert_int_equal(gen_ssm_state_memory_bytes(NULL), 0);
  gen_ssm_state_free(NULL);
  assert_ok(gen_ssm_state_new(0, 4, 4, &state, &error), error);
  assert_int_equal(gen_ssm_state_num_layers(state), 0);
  assert_int_equal(gen_ssm_state_memory_bytes(state), 0);
  gen_ssm_state_free(state);
}

static void layers_are_set_and_read(void** test) {
  (void)test;
  gen_ssm_state* state = NULL;
  assert_ok(gen_ssm_state_new_batch(2, 2, 3, 2, &state, &error), error);
  float h[12];
  float got[12];
  int32_t shape[3] = {0, 0, 0};
  const int32_t want[3] = {2, 3, 2};
  for (int i = 0; i < 12; ++i) h[i] = (float)i;
  assert_ok(gen_ssm_state_get_layer(state, 1, got, 12, shape, &error), error);
  assert_memory_equal(shape, want, sizeof(want));
  for (int i = 0; i < 12; ++i) assert_true(got[i] == 0.0f);
  assert_ok(gen_ssm_state_set_layer(state, 1, h, 2, 3, 2, &error), error);

  assert_fails(gen_ssm_state_set_layer(NULL, 1, h, 2, 3, 2, &error), bad, "state", error);
  assert_fails(gen_ssm_state_set_layer(state, 2, h, 2, 3, 2, &error), GEN_ERROR_OUT_OF_RANGE,
               "layer 2 outside a state of 2 layers", error);
  assert_fails(gen_ssm_state_set_layer(state, -1, h, 2, 3, 2, &error), GEN_ERROR_OUT_OF_RANGE, "-1",
               error);
  assert_fails(gen_ssm_state_set_layer(state, 0, NULL, 2, 3, 2, &error), bad, "h is NULL", error);
  assert_fails(gen_ssm_state_set_layer(state, 0, h, 1, 3, 2, &error), bad, "[1, 3, 2]", error);
  assert_fails(gen_ssm_state_set_layer(state, 0, h, 2, 2, 3, &error), bad, "[2, 3, 2]", error);
  assert_fails(gen_ssm_state_get_layer(NULL, 0, got, 12, shape, &error), bad, "state", error);
  assert_int_equal(shape[0], 0);
  assert_fails(gen_ssm_state_get_layer(state, 2, got, 12, shape, &error), GEN_ERROR_OUT_OF_RANGE,
               "layer 2", error);
  assert_fails(gen_ssm_state_get_layer(state, 1, got, 11, shape, &error), GEN_ERROR_OUT_OF_RANGE,
               "12 floats do not fit a buffer of 11", error);
  assert_memory_equal(shape, want, sizeof(want));
  assert_true(got[5] == 0.0f);
  assert_ok(gen_ssm_state_get_layer(state, 1, NULL, 0, shape, &error), error);
  assert_ok(gen_ssm_state_get_layer(state, 1, got, 12, NULL, &error), error);
  assert_memory_equal(got, h, sizeof(h));
  assert_ok(gen_ssm_state_get_layer(state, 0, got, 12, NULL, &error), error);
  assert_true(got[11] == 0.0f);
  assert_ok(gen_ssm_state_reset(state, &error), error);
  assert_ok(gen_ssm_state_get_layer(state, 1, got, 12, NULL, &error), error);
  assert_true(got[11] == 0.0f);
  assert_fails(gen_ssm_state_reset(NULL, &error), bad, "state", error);
  gen_ssm_state_free(state);
}

static void snapshots_are_restored(void** test) {
  (void)test;
  gen_ssm_state* state = NULL;
  assert_ok(gen_ssm_state_new(1, 1, 1, &state, &error), error);
  int64_t number = 9;
  assert_fails(gen_ssm_state_snapshot(NULL, &number, &error), bad, "state", error);
  assert_int_equal(number, 0);
  assert_fails(gen_ssm_state_snapshot(state, NULL, &error), bad, "snapshot", error);
  assert_fails(gen_ssm_state_restore(NULL, 1, &error), bad, "state", error);
  assert_fails(gen_ssm_state_restore(state, 1, &error), GEN_ERROR_OUT_OF_RANGE, "snapshot 1",
               error);
  for (int i = 1; i <= 20; ++i) {
    const float h = (float)i;
    assert_ok(gen_ssm_state_set_layer(state, 0, &h, 1, 1, 1, &error), error);
    assert_ok(gen_ssm_state_snapshot(state, &number, &error), error);
    assert_int_equal(number, i);
  }
  float got = 0;
  assert_ok(gen_ssm_state_restore(state, 5, &error), error); /* the oldest of sixteen */
  assert_ok(gen_ssm_state_get_layer(state, 0, &got, 1, NULL, &error), error);
  assert_true(got == 5.0f);
  assert_fails(gen_ssm_state_restore(state, 4, &error), GEN_ERROR_OUT_OF_RANGE, "last 16", error);
  assert_fails(gen_ssm_state_restore(state, 21, &error), GEN_ERROR_OUT_OF_RANGE, "21", error);
  assert_fails(gen_ssm_state_restore(state, 0, &error), GEN_ERROR_OUT_OF_RANGE, "0", error);
  assert_ok(gen_ssm_state_get_layer(state, 0, &got, 1, NULL, &error), error);
  assert_true(got == 5.0f);
  assert_ok(gen_ssm_state_restore(state, 20, &error), error);
  assert_ok(gen_ssm_state_get_layer(state, 0, &got, 1, NULL, &error), error);
  assert_true(got == 20.0f);
  gen_ssm_state_free(state);
}

enum { FUNCTIONS = 5, SIZE = 4096 };
static gen_ssm_state* shared;
static atomic_int busy[FUNCTIONS];

static gen_status call(int function, float* h) {
  int64_t number = 0;
  switch (function) {
    case 0:
      return gen_ssm_state_get_layer(shared, 0, h, SIZE, NULL, NULL);
    case 1:
      return gen_ssm_state_set_layer(shared, 0, h, 1, SIZE, 1, NULL);
    case 2:
      return gen_ssm_state_snapshot(shared, &number, NULL);
    case 3:
      return gen_ssm_state_restore(shared, 1, NULL);
    default:
      return gen_ssm_state_reset(shared, NULL);
  }
}

/* Calls until each function has met another. */
static void* meet(void* unused) {
  (void)unused;
  float h[SIZE] = {0};
  for (int function = 0; function < FUNCTIONS; ++function) {
    while (busy[function] == 0) {
      for (int i = 0; i < FUNCTIONS; ++i) {
        if (call(i, h) == GEN_ERROR_BUSY) busy[i] = 1;
      }
    }
  }
  return NULL;
}

static void a_second_call_is_busy(void** test) {
  (void)test;
  pthread_t other;
  assert_ok(gen_ssm_state_new(1, SIZE, 1, &shared, &error), error);
  assert_int_equal(pthread_create(&other, NULL, meet, NULL), 0);
  meet(NULL);
  assert_int_equal(pthread_join(other, NULL), 0);
  gen_ssm_state_free(shared);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(layers_are_set_and_read),
      cmocka_unit_test(snapshots_are_restored),
      cmocka_unit_test(a_second_call_is_busy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

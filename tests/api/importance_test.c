/* SPDX-License-Identifier: Apache-2.0 */
/* gen_model_importance of model.h: every refusal, nothing left behind, the same file for any number
 * of threads. */
#include "api_test.h"

#include "out_folder.h"
#include "support/written_model.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t tokens[] = {5, 300, 301, 17, 42, 9, 300, 8, 7, 6, 5};
enum { N = sizeof tokens / sizeof *tokens };

static void refuses_bad_arguments(void** state) {
  (void)state;
  gen_model* model = load_draft();
  const int32_t beyond = gen_model_config_vocab_size(gen_model_get_config(model));
  const int32_t most = gen_model_config_max_seq_len(gen_model_get_config(model));
  assert_fails(gen_model_importance(NULL, tokens, N, 0, NULL, out, NULL, NULL, &error), bad,
               "model", error);
  assert_fails(gen_model_importance(model, NULL, N, 0, NULL, out, NULL, NULL, &error), bad,
               "tokens", error);
  assert_fails(gen_model_importance(model, tokens, N, 0, NULL, NULL, NULL, NULL, &error), bad,
               "out", error);
  assert_fails(gen_model_importance(model, tokens, 0, 0, NULL, out, NULL, NULL, &error), bad,
               "no tokens", error);
  assert_fails(gen_model_importance(model, tokens, N, 0, "\xFF", out, NULL, NULL, &error), bad,
               "text_name", error);
  assert_fails(gen_model_importance(model, &beyond, 1, 0, NULL, out, NULL, NULL, &error),
               GEN_ERROR_OUT_OF_RANGE, "vocabulary", error);
  assert_fails(gen_model_importance(model, tokens, N, most + 1, NULL, out, NULL, NULL, &error),
               GEN_ERROR_OUT_OF_RANGE, "window", error);
  assert_fails(gen_model_importance(model, tokens, N, -1, NULL, out, NULL, NULL, &error),
               GEN_ERROR_OUT_OF_RANGE, "window of -1", error);
  assert_fails(gen_model_importance(model, tokens, N, 0, NULL, "no/such/out", NULL, NULL, &error),
               GEN_ERROR_IO, "no/such/out", error);
  assert_fails(gen_model_importance(model, tokens, N, 0, NULL, out_folder, NULL, NULL, &error),
               GEN_ERROR_IO, "directory", error);
  assert_int_equal(gen_model_importance(NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL), bad);
  assert_int_equal(files_in(out_folder), 0);
  gen_model_free(model);
}

static gen_status no_forward(void* user, const gen_forward_batch* batch, float* logits,
                             float* features, gen_error* err) {
  (void)user, (void)batch, (void)logits, (void)features, (void)err;
  return GEN_ERROR_INTERNAL;
}

static void refuses_a_custom_model(void** state) {
  (void)state;
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  const gen_forward forward = {.struct_size = sizeof forward, .forward = no_forward};
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, 1000, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 64, &error), error);
  assert_ok(gen_model_new_custom(&forward, config, NULL, &model, &error), error);
  assert_fails(gen_model_importance(model, tokens, N, 0, NULL, out, NULL, NULL, &error),
               GEN_ERROR_UNSUPPORTED, "no matrices", error);
  assert_int_equal(files_in(out_folder), 0);
  gen_model_free(model);
  gen_model_config_free(config);
}

static void cancels_at_every_call(void** state) {
  (void)state;
  gen_model* model = load_draft();
  struct Watch whole = {0, 0, 0.0};
  assert_ok(gen_model_importance(model, tokens, N, 4, NULL, out, watch_progress, &whole, &error),
            error);
  assert_true(whole.calls >= 3);
  assert_true(whole.last == 1.0);
  assert_int_equal(files_in(out_folder), 1);
  remove(out);
  for (int stop = 1; stop <= whole.calls; ++stop) {
    struct Watch watch = {0, stop, 0.0};
    assert_fails(
        gen_model_importance(model, tokens, N, 4, NULL, out, watch_progress, &watch, &error),
        GEN_ERROR_CANCELLED, "cancelled", error);
    assert_int_equal(watch.calls, stop);
    assert_int_equal(files_in(out_folder), 0);
  }
  gen_model_free(model);
}

static unsigned char* made_with(const char* threads, size_t* size) {
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_model_options_set(options, "threads", threads, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, options, &model, &error), error);
  assert_ok(gen_model_importance(model, tokens, N, 0, "text", out, NULL, NULL, &error), error);
  gen_model_free(model);
  gen_model_options_free(options);
  return read_file(out, size);
}

static void makes_the_same_file_with_any_threads(void** state) {
  (void)state;
  size_t size = 0;
  size_t same = 0;
  unsigned char* one = made_with("1", &size);
  unsigned char* three = made_with("3", &same);
  assert_int_equal(size, same);
  assert_memory_equal(one, three, size);
  gen_model* model = NULL;
  assert_true(gen_model_load(out, NULL, &model, &error) < 0); /* it is no model */
  remove(out);
  free(one);
  free(three);
}

static void refuses_what_is_not_finite(void** state) {
  (void)state;
  size_t size = 0;
  unsigned char* bytes = read_file(DRAFT_MODEL, &size);
  memset(bytes + size - 20000, 0x7F, 20000); /* scales in binary16 become NaN */
  gen_model* model = NULL;
  assert_ok(gen_model_load_memory(bytes, size, NULL, &model, &error), error);
  assert_fails(gen_model_importance(model, tokens, N, 0, NULL, out, NULL, NULL, &error),
               GEN_ERROR_MODEL, "not finite", error);
  assert_int_equal(files_in(out_folder), 0);
  gen_model_free(model);
  free(bytes);
}

static void leaves_the_model_as_it_was(void** state) {
  (void)state;
  gen_model* model = load_draft();
  size_t before = 0;
  size_t after = 0;
  assert_ok(gen_model_memory(model, "weights", &before, &error), error);
  assert_ok(gen_model_importance(model, tokens, N, 0, NULL, out, NULL, NULL, &error), error);
  assert_ok(gen_model_memory(model, "weights", &after, &error), error);
  assert_int_equal(before, after);
  remove(out);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_bad_arguments),
      cmocka_unit_test(refuses_a_custom_model),
      cmocka_unit_test(refuses_what_is_not_finite),
      cmocka_unit_test(cancels_at_every_call),
      cmocka_unit_test(makes_the_same_file_with_any_threads),
      cmocka_unit_test(leaves_the_model_as_it_was),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

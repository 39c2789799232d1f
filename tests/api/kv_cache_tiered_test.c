/* SPDX-License-Identifier: Apache-2.0 */
/* Tiered caches through C: each function with good and bad input, folders that are left and used
 * again, use from several threads, and generation that gives the same bits with nearly everything
 * in a file. */
#include "api_test.h"
#include "counting_allocator.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static gen_error error;
static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const gen_status range = GEN_ERROR_OUT_OF_RANGE;
static const gen_status closed = GEN_ERROR_STATE;

static kv_cache_tier_config* config_of(int32_t layers, int32_t positions) {
  kv_cache_tier_config* config = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, layers, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, positions, &error), error);
  return config;
}

static kv_cache* make(int32_t layers, int32_t positions) {
  kv_cache_tier_config* config = config_of(layers, positions);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  kv_cache_tier_config_free(config);
  return cache;
}

static void expect(const kv_cache* cache, int32_t layer, const float* want, int32_t n) {
  float k[64];
  int32_t shape[3];
  assert_ok(kv_cache_get(cache, layer, k, 64, NULL, 0, shape, NULL, &error), error);
  assert_int_equal(shape[1], n);
  assert_memory_equal(k, want, (size_t)n * sizeof *k);
}

/* A folder of the test's own, with nothing in it. */
static void make_folder(char* path) {
  strcpy(path, "/tmp/gen-tiered-XXXXXX");
  assert_non_null(mkdtemp(path));
}

static int entries_of(const char* path) {
  int count = -2;
  DIR* folder = opendir(path);
  assert_non_null(folder);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

/* A counter of a snapshot; -1 if it is not there. */
static double value_of(const char* text, const char* name) {
  char key[64];
  snprintf(key, sizeof key, "\"%s\":", name);
  const char* at = strstr(text, key);
  return at != NULL ? strtod(at + strlen(key), NULL) : -1;
}

static void configurations(void** state) {
  (void)state;
  kv_cache_tier_config* c = NULL;
  char text[4096];
  size_t n = 0;
  assert_fails(kv_cache_tier_config_new(NULL, &error), bad, "out", error);
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_ok(kv_cache_tier_config_describe(c, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text,
                         "\"key\":\"chunk_size\",\"type\":\"int\",\"range\":\"positions of a "
                         "mean\",\"default\":\"64\",\"value\":\"64\""));
  assert_int_equal(n, strlen(text));
  assert_fails(kv_cache_tier_config_describe(c, text, 3, &n, &error), range, "3", error);
  assert_fails(kv_cache_tier_config_describe(NULL, text, 3, &n, &error), bad, "config", error);

  assert_fails(kv_cache_tier_config_set_num_layers(c, -1, &error), bad, "num_layers -1", error);
  assert_fails(kv_cache_tier_config_set_num_layers(c, 65537, &error), bad, "65537", error);
  assert_fails(kv_cache_tier_config_set_num_layers(NULL, 1, &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_max_seq_len(c, -1, &error), bad, "max_seq_len -1", error);
  assert_fails(kv_cache_tier_config_set_max_seq_len(NULL, 1, &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_chunk_size(c, 7, &error), error);
  assert_fails(kv_cache_tier_config_set_chunk_size(NULL, 1, &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_demote_threshold(c, 3, &error), error);
  assert_fails(kv_cache_tier_config_set_demote_threshold(NULL, 1, &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_promote_threshold(c, 0, &error), error);
  assert_fails(kv_cache_tier_config_set_promote_threshold(NULL, 1, &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_cold_dir(c, "/x,y", &error), error);
  assert_fails(kv_cache_tier_config_set_cold_dir(NULL, "", &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_store_id(c, "mine", &error), error);
  assert_fails(kv_cache_tier_config_set_store_id(NULL, "", &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_warm_form(c, "mean", &error), error);
  assert_fails(kv_cache_tier_config_set_warm_form(c, "q5", &error), bad, "q5, known are fp32",
               error);
  assert_fails(kv_cache_tier_config_set_warm_form(c, NULL, &error), bad, "form", error);
  assert_fails(kv_cache_tier_config_set_warm_form(NULL, "q4", &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_hot_memory(c, 0, &error), bad, "hot_memory 0", error);
  assert_fails(kv_cache_tier_config_set_hot_memory(NULL, 1, &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_hot_blocks(c, -1, &error), bad, "hot_blocks -1", error);
  assert_fails(kv_cache_tier_config_set_hot_blocks(NULL, 1, &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_block_size(c, 0, &error), bad, "block_size 0", error);
  assert_fails(kv_cache_tier_config_set_block_size(NULL, 1, &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_prefetch_layers(c, -2, &error), bad, "-2", error);
  assert_fails(kv_cache_tier_config_set_prefetch_layers(NULL, 1, &error), bad, "config", error);
  const gen_allocator wrong = {0};
  assert_fails(kv_cache_tier_config_set_allocator(c, &wrong, &error), bad, "struct_size", error);
  assert_fails(kv_cache_tier_config_set_allocator(NULL, NULL, &error), bad, "config", error);
  assert_ok(kv_cache_tier_config_set_allocator(c, NULL, &error), error);

  const char* const pairs[][2] = {
      {"num_layers", "3"},       {"max_seq_len", "9"},       {"chunk_size", "-1"},
      {"demote_threshold", "4"}, {"promote_threshold", "9"}, {"cold_dir", "/a"},
      {"store_id", "b"},         {"warm_form", "fp16"},      {"hot_memory", "77"},
      {"hot_blocks", "2"},       {"block_size", "32"},       {"prefetch_layers", "3"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    assert_ok(kv_cache_tier_config_set(c, pairs[i][0], pairs[i][1], &error), error);
  }
  assert_ok(kv_cache_tier_config_describe(c, text, sizeof text, &n, &error), error);
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    char value[64];
    snprintf(value, sizeof value, "\"value\":\"%s\"", i == 2 ? "64" : pairs[i][1]);
    assert_non_null(strstr(strstr(text, pairs[i][0]), value));
  }
  assert_fails(kv_cache_tier_config_set(c, "size", "1", &error), bad, "unknown option size", error);
  assert_fails(kv_cache_tier_config_set(c, "hot_memory", "x", &error), bad, "x", error);
  assert_fails(kv_cache_tier_config_set(c, NULL, "1", &error), bad, "key", error);
  assert_fails(kv_cache_tier_config_set(c, "hot_memory", NULL, &error), bad, "value", error);
  assert_fails(kv_cache_tier_config_set(NULL, "hot_memory", "1", &error), bad, "config", error);
  kv_cache_tier_config_free(c);
  kv_cache_tier_config_free(NULL);
}

static void making(void** state) {
  (void)state;
  kv_cache* cache = (kv_cache*)&error;
  kv_cache_tier_config* c = NULL;
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_fails(kv_cache_tiered_new(c, &cache, &error), bad, "max_seq_len 0", error);
  assert_null(cache);
  assert_ok(kv_cache_tier_config_set_max_seq_len(c, 4, &error), error);
  assert_fails(kv_cache_tiered_new(c, &cache, &error), bad, "0 layers", error);
  assert_ok(kv_cache_tier_config_set_num_layers(c, 2, &error), error);
  assert_fails(kv_cache_tiered_new(NULL, &cache, &error), bad, "config", error);
  assert_fails(kv_cache_tiered_new(c, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_tiered_open(NULL, &cache, &error), bad, "config", error);
  assert_fails(kv_cache_tiered_open(c, NULL, &error), bad, "out", error);
  assert_fails(kv_cache_tiered_open(c, &cache, &error), bad, "no default", error);
  assert_ok(kv_cache_tier_config_set_store_id(c, "a/b", &error), error);
  assert_fails(kv_cache_tiered_new(c, &cache, &error), bad, "a/b", error);
  assert_ok(kv_cache_tier_config_set_store_id(c, NULL, &error), error);
  assert_ok(kv_cache_tier_config_set_cold_dir(c, "/nowhere/at/all", &error), error);
  assert_fails(kv_cache_tiered_new(c, &cache, &error), GEN_ERROR_IO, "/nowhere/at/all", error);
  assert_fails(kv_cache_tiered_open(c, &cache, &error), GEN_ERROR_IO, "/nowhere/at/all", error);
  assert_null(cache);
  kv_cache_tier_config_free(c);
  cache = make(2, 4);
  assert_string_equal(kv_cache_kind(cache), "tiered");
  assert_int_equal(kv_cache_num_layers(cache), 2);
  assert_int_equal(kv_cache_max_seq_len(cache), 4);
  assert_int_equal(kv_cache_is_lossy(cache), 0);
  assert_int_equal(kv_cache_capabilities(cache),
                   KV_CACHE_CAN_TRUNCATE | KV_CACHE_CAN_CLONE | KV_CACHE_ONE_ROW_ONE_RESULT);
  assert_fails(kv_cache_set_allocator(cache, NULL, &error), GEN_ERROR_STATE, "how it was made",
               error);
  kv_cache_free(cache);
}

static void layers_move(void** state) {
  (void)state;
  const float x[3] = {1, 2, 3};
  const float more[4] = {1, 2, 3, 1};
  kv_cache* cache = make(2, 8);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 3, 1, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_HOT);
  assert_int_equal(kv_cache_tiered_access_count(cache, 0), 1);
  assert_ok(kv_cache_tiered_manage(cache, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_WARM);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_COLD);
  expect(cache, 0, x, 3);
  assert_int_equal(kv_cache_tiered_access_count(cache, 0), 1);
  kv_cache* copy = NULL;
  assert_ok(kv_cache_clone(cache, &copy, &error), error);
  assert_ok(kv_cache_tiered_promote(cache, 0, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_WARM);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 1, 1, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_HOT);
  expect(cache, 0, more, 4);
  assert_ok(kv_cache_truncate(cache, 2, &error), error);
  expect(cache, 0, x, 2);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_int_equal(kv_cache_seq_len(cache), 0);
  assert_int_equal(kv_cache_tiered_access_count(cache, 0), 0);
  expect(copy, 0, x, 3);
  assert_int_equal(kv_cache_tiered_tier(copy, 0), KV_CACHE_TIER_COLD);
  kv_cache_span span = {0};
  span.struct_size = sizeof span;
  assert_fails(kv_cache_view(copy, 0, &span, &error), GEN_ERROR_UNSUPPORTED, "tiered", error);
  kv_cache_free(copy);

  assert_fails(kv_cache_tiered_demote(cache, 2, &error), range, "layer 2", error);
  assert_fails(kv_cache_tiered_promote(cache, -1, &error), range, "layer -1", error);
  assert_int_equal(kv_cache_tiered_tier(cache, 2), KV_CACHE_TIER_HOT);
  assert_int_equal(kv_cache_tiered_access_count(cache, 2), 0);
  assert_int_equal(kv_cache_tiered_is_lossy(cache, 2), 0);
  kv_cache_free(cache);

  kv_cache_tier_config* c = config_of(1, 8);
  assert_ok(kv_cache_tier_config_set_warm_form(c, "mean", &error), error);
  assert_ok(kv_cache_tier_config_set_chunk_size(c, 2, &error), error);
  assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
  kv_cache_tier_config_free(c);
  assert_int_equal(kv_cache_is_lossy(cache), 1);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 3, 1, &error), error);
  assert_int_equal(kv_cache_tiered_is_lossy(cache, 0), 0);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  assert_int_equal(kv_cache_tiered_is_lossy(cache, 0), 1);
  const float means[3] = {1.5f, 1.5f, 3};
  expect(cache, 0, means, 3);
  kv_cache_free(cache);
}

static void prefetching(void** state) {
  (void)state;
  const float x[3] = {1, 2, 3};
  const int32_t layers[] = {0, 1, 5};
  float k[3];
  float v[3];
  int32_t shape[3] = {9, 9, 9};
  kv_cache* cache = make(2, 8);
  assert_ok(kv_cache_update(cache, 1, x, x, 1, 3, 1, &error), error);
  assert_ok(kv_cache_tiered_get_prefetched(cache, 1, k, 3, v, 3, shape, &error), error);
  assert_int_equal(shape[1], 0);
  assert_ok(kv_cache_tiered_demote(cache, 1, &error), error);
  assert_ok(kv_cache_tiered_prefetch_async(cache, layers, 3, &error), error);
  for (int tries = 0; shape[1] == 0; ++tries) {
    assert_true(tries < 20000);
    assert_ok(kv_cache_tiered_get_prefetched(cache, 1, NULL, 0, NULL, 0, shape, &error), error);
    nanosleep(&(struct timespec){0, 500000}, NULL);
  }
  assert_fails(kv_cache_tiered_get_prefetched(cache, 1, k, 2, NULL, 0, shape, &error), range,
               "3 elements do not fit a buffer of 2", error);
  assert_int_equal(shape[1], 3);
  assert_ok(kv_cache_tiered_get_prefetched(cache, 1, k, 3, v, 3, NULL, &error), error);
  assert_memory_equal(k, x, sizeof x);
  assert_memory_equal(v, x, sizeof x);
  assert_ok(kv_cache_tiered_get_prefetched(cache, 1, k, 3, v, 3, shape, &error), error);
  assert_int_equal(shape[1], 0);
  assert_ok(kv_cache_tiered_prefetch_async(cache, NULL, 0, &error), error);
  assert_fails(kv_cache_tiered_prefetch_async(cache, NULL, 1, &error), bad, "layers", error);
  kv_cache_free(cache);
}

static void folders_are_left_and_used_again(void** state) {
  (void)state;
  char folder[64];
  make_folder(folder);
  const float x[3] = {1, 2, 3};
  kv_cache* cache = NULL;
  kv_cache* other = NULL;
  kv_cache_tier_config* c = config_of(2, 8);
  assert_ok(kv_cache_tier_config_set_cold_dir(c, folder, &error), error);
  assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
  assert_ok(kv_cache_update(cache, 1, x, x, 1, 3, 1, &error), error);
  assert_ok(kv_cache_tiered_demote(cache, 1, &error), error);
  assert_ok(kv_cache_tiered_demote(cache, 1, &error), error);
  assert_fails(kv_cache_tiered_open(c, &other, &error), GEN_ERROR_BUSY, folder, error);
  kv_cache_free(cache);
  assert_ok(kv_cache_tiered_open(c, &cache, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 1), KV_CACHE_TIER_COLD);
  expect(cache, 1, x, 3);
  assert_ok(kv_cache_reset(cache, &error), error);
  assert_ok(kv_cache_tiered_close(cache, &error), error);
  assert_ok(kv_cache_tiered_close(cache, &error), error);
  float k[3];
  int32_t shape[3];
  assert_int_equal(kv_cache_update(cache, 0, x, x, 1, 1, 1, &error), closed);
  assert_int_equal(kv_cache_get(cache, 0, k, 3, k, 3, NULL, NULL, &error), closed);
  assert_int_equal(kv_cache_truncate(cache, 0, &error), closed);
  assert_int_equal(kv_cache_reset(cache, &error), closed);
  assert_int_equal(kv_cache_clone(cache, &other, &error), closed);
  assert_int_equal(kv_cache_tiered_demote(cache, 0, &error), closed);
  assert_int_equal(kv_cache_tiered_promote(cache, 0, &error), closed);
  assert_fails(kv_cache_tiered_manage(cache, &error), closed, "closed", error);
  assert_int_equal(kv_cache_tiered_get_prefetched(cache, 0, k, 3, k, 3, shape, &error), closed);
  const int32_t first = 0;
  assert_fails(kv_cache_tiered_prefetch_async(cache, &first, 1, &error), closed, "closed", error);
  assert_fails(kv_cache_tiered_prefetch_async(cache, NULL, 0, &error), closed, "closed", error);
  kv_cache_free(cache);
  cache = make(1, 8); /* one that holds something when it is closed */
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 3, 1, &error), error);
  assert_ok(kv_cache_tiered_close(cache, &error), error);
  int32_t v_shape[3] = {9, 9, 9};
  shape[0] = shape[1] = shape[2] = 9;
  assert_fails(kv_cache_get(cache, 0, k, 3, NULL, 0, shape, v_shape, &error), closed, "", error);
  for (int i = 0; i < 3; ++i) assert_int_equal(shape[i] + v_shape[i], 0);
  kv_cache_free(cache);
  assert_int_equal(entries_of(folder), 0);
  assert_fails(kv_cache_tiered_open(c, &cache, &error), GEN_ERROR_IO, "0 stores", error);
  kv_cache_tier_config_free(c);
  assert_int_equal(rmdir(folder), 0);
}

static void damage_is_found(void** state) {
  (void)state;
  char folder[64];
  char path[128];
  make_folder(folder);
  const float x[3] = {1, 2, 3};
  kv_cache* cache = NULL;
  kv_cache_tier_config* c = config_of(1, 8);
  assert_ok(kv_cache_tier_config_set_cold_dir(c, folder, &error), error);
  assert_ok(kv_cache_tier_config_set_store_id(c, "it", &error), error);
  assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
  assert_fails(kv_cache_tiered_new(c, &(kv_cache*){NULL}, &error), GEN_ERROR_IO, "exists", error);
  kv_cache_tier_config_free(c);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 3, 1, &error), error);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  snprintf(path, sizeof path, "%s/kv-it/layer_0.bin", folder);
  assert_int_equal(truncate(path, 100), 0);
  float k[3];
  assert_fails(kv_cache_get(cache, 0, k, 3, NULL, 0, NULL, NULL, &error), GEN_ERROR_FORMAT,
               "layer_0.bin", error);
  assert_fails(kv_cache_tiered_promote(cache, 0, &error), GEN_ERROR_FORMAT, "torn", error);
  assert_int_equal(unlink(path), 0);
  assert_fails(kv_cache_tiered_promote(cache, 0, &error), GEN_ERROR_IO, "no such file", error);
  assert_int_equal(kv_cache_layer_seq_len(cache, 0), 3);
  assert_ok(kv_cache_reset(cache, &error), error);
  kv_cache_free(cache);
  assert_int_equal(rmdir(folder), 0);
}

/* What calls of kv_cache.h say when files fail them; nothing has changed, and when the files are as
 * they were everything goes on. */
static void files_fail_the_calls_of_every_cache(void** state) {
  (void)state;
  char folder[64];
  char home[128];
  char away[128];
  char path[160];
  char other[160];
  make_folder(folder);
  const float x[3] = {1, 2, 3};
  kv_cache* cache = NULL;
  kv_cache* copy = NULL;
  kv_cache_tier_config* c = config_of(1, 8);
  assert_ok(kv_cache_tier_config_set_cold_dir(c, folder, &error), error);
  assert_ok(kv_cache_tier_config_set_store_id(c, "it", &error), error);
  assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
  kv_cache_tier_config_free(c);
  assert_ok(kv_cache_update(cache, 0, x, x, 1, 3, 1, &error), error);
  for (int i = 0; i < 2; ++i) assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  snprintf(home, sizeof home, "%s/kv-it", folder);
  snprintf(away, sizeof away, "%s/away", folder);
  snprintf(path, sizeof path, "%s/layer_0.bin", home);
  snprintf(other, sizeof other, "%s/kept", folder);
  for (int damaged = 0; damaged < 2; ++damaged) {
    const gen_status want = damaged ? GEN_ERROR_FORMAT : GEN_ERROR_IO;
    assert_int_equal(rename(path, other), 0);
    if (damaged) {
      FILE* file = fopen(path, "w");
      assert_non_null(file);
      assert_int_equal(fputs("nothing of ours", file) < 0, 0);
      assert_int_equal(fclose(file), 0);
    }
    float k[3] = {7, 7, 7};
    int32_t shape[3] = {9, 9, 9};
    assert_fails(kv_cache_get(cache, 0, k, 3, NULL, 0, shape, NULL, &error), want, "layer_0.bin",
                 error);
    assert_true(k[0] == 7 && shape[0] == 0);
    assert_fails(kv_cache_update(cache, 0, x, x, 1, 1, 1, &error), want, "layer_0.bin", error);
    assert_fails(kv_cache_clone(cache, &copy, &error), want, "layer_0.bin", error);
    assert_null(copy);
    if (damaged) assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(other, path), 0);
    expect(cache, 0, x, 3);
  }
  assert_int_equal(rename(home, away), 0); /* the manifest cannot be written */
  assert_fails(kv_cache_truncate(cache, 2, &error), GEN_ERROR_IO, home, error);
  assert_fails(kv_cache_reset(cache, &error), GEN_ERROR_IO, home, error);
  assert_int_equal(kv_cache_seq_len(cache), 3);
  assert_int_equal(rename(away, home), 0);
  expect(cache, 0, x, 3);
  assert_ok(kv_cache_truncate(cache, 2, &error), error);
  expect(cache, 0, x, 2);
  assert_ok(kv_cache_reset(cache, &error), error);
  kv_cache_free(cache);
  assert_int_equal(rmdir(folder), 0);
}

/* A field that was given another value than its default and is not for this use is refused. */
static void fields_that_do_not_apply_are_refused(void** state) {
  (void)state;
  const char* const of_sessions[][2] = {
      {"hot_memory", "77"}, {"hot_blocks", "2"}, {"block_size", "32"}, {"prefetch_layers", "0"}};
  const char* const of_stores[][2] = {{"chunk_size", "7"},
                                      {"demote_threshold", "1"},
                                      {"promote_threshold", "9"},
                                      {"store_id", "it"},
                                      {"warm_form", "q4"}};
  gen_options* o = NULL;
  kv_cache* cache = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  for (size_t i = 0; i < 4; ++i) {
    kv_cache_tier_config* c = config_of(1, 8);
    assert_ok(kv_cache_tier_config_set(c, of_sessions[i][0], of_sessions[i][1], &error), error);
    assert_fails(kv_cache_tiered_new(c, &cache, &error), bad, of_sessions[i][0], error);
    assert_null(cache);
    assert_fails(kv_cache_tiered_open(c, &cache, &error), bad, of_sessions[i][0], error);
    assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
    kv_cache_tier_config_free(c);
  }
  for (size_t i = 0; i < 5; ++i) {
    kv_cache_tier_config* c = config_of(1, 8);
    assert_ok(kv_cache_tier_config_set(c, of_stores[i][0], of_stores[i][1], &error), error);
    assert_fails(gen_options_set_tiered_kv(o, c, &error), bad, of_stores[i][0], error);
    assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
    kv_cache_free(cache);
    kv_cache_tier_config_free(c);
  }
  struct counting counts = {0};
  const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
  kv_cache_tier_config* c = config_of(1, 8);
  assert_ok(kv_cache_tier_config_set_allocator(c, &table, &error), error);
  assert_fails(gen_options_set_tiered_kv(o, c, &error), bad, "allocator", error);
  assert_ok(kv_cache_tier_config_set_allocator(c, NULL, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  kv_cache_tier_config_free(c);
  gen_options_free(o);
}

/* With one block of sixteen positions in memory each step of sixteen rows writes a block to the
 * file and reads those before it, layer by layer. */
static void moves_are_measured(void** state) {
  (void)state;
  enum { TOKENS = 100, BLOCK = 16 };
  gen_model* model = load_draft();
  gen_metrics_memory* memory = NULL;
  gen_options* o = NULL;
  gen_generator* g = NULL;
  gen_session* session = NULL;
  kv_cache_tier_config* c = NULL;
  assert_ok(gen_metrics_memory_new(&memory, &error), error);
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_ok(kv_cache_tier_config_set_hot_blocks(c, 1, &error), error);
  assert_ok(kv_cache_tier_config_set_block_size(c, BLOCK, &error), error);
  assert_ok(kv_cache_tier_config_set_prefetch_layers(c, 0, &error), error);
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(gen_options_set_metrics(o, gen_metrics_memory_sink(memory), &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  assert_ok(gen_session_new(g, &session, &error), error);
  int32_t tokens[TOKENS];
  for (int i = 0; i < TOKENS; ++i) tokens[i] = 100 + i;
  assert_ok(gen_session_append_tokens(session, tokens, TOKENS, &error), error);
  const kv_cache* cache = gen_session_cache(session);
  const double layers = kv_cache_num_layers(cache);
  const double cold = (kv_cache_seq_len(cache) + BLOCK - 1) / BLOCK - 1;
  char text[16384];
  size_t n = 0;
  assert_true(cold > 3 && layers > 1);
  assert_ok(gen_metrics_memory_snapshot(memory, text, sizeof text, &n, &error), error);
  assert_true(value_of(text, "tier_demotions") == cold);
  assert_true(value_of(text, "tier_promotions") == 0);
  assert_true(value_of(text, "tier_cold_hits") == layers * cold * (cold + 1) / 2);
  assert_true(value_of(text, "tier_warm_hits") == 0);
  const double written = value_of(text, "tier_bytes_written");
  assert_true(written > 0);
  assert_true(value_of(text, "tier_bytes_read") * cold == written * cold * (cold + 1) / 2);
  /* Back into the file: the block that is gone on in comes back. */
  assert_ok(gen_session_truncate(session, BLOCK + 3, &error), error);
  assert_ok(gen_session_append_tokens(session, tokens, 5, &error), error);
  assert_ok(gen_metrics_memory_snapshot(memory, text, sizeof text, &n, &error), error);
  assert_true(value_of(text, "tier_promotions") == 1);
  gen_session_free(session);
  gen_free(g);
  gen_options_free(o);
  kv_cache_tier_config_free(c);
  gen_metrics_memory_free(memory);
  gen_model_free(model);
}

static void memory_is_what_the_allocator_counted(void** state) {
  (void)state;
  struct counting counts = {0};
  const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
  const float x[30] = {1, 2, 3};
  kv_cache* cache = NULL;
  kv_cache_tier_config* c = config_of(1, 100);
  size_t resident = 0;
  size_t before = 0;
  assert_ok(kv_cache_tier_config_set_allocator(c, &table, &error), error);
  assert_ok(kv_cache_tiered_new(c, &cache, &error), error);
  kv_cache_tier_config_free(c);
  for (int step = 0; step < 3; ++step) {
    if (step == 0) assert_ok(kv_cache_update(cache, 0, x, x, 2, 3, 5, &error), error);
    if (step > 0) assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
    assert_ok(kv_cache_memory_bytes(cache, &resident, NULL, NULL, &error), error);
    assert_int_equal(resident, counts.live);
    assert_true(step == 0 || resident < before);
    before = resident;
  }
  assert_int_equal(resident, 0);
  counts.refuse = 1;
  assert_fails(kv_cache_tiered_promote(cache, 0, &error), GEN_ERROR_OUT_OF_MEMORY, "", error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_COLD);
  counts.refuse = 0;
  expect(cache, 0, x, 3);
  kv_cache_free(cache);
  assert_int_equal(counts.live, 0);
  assert_false(counts.wrong_align);
}

static void caches_without_tiers(void** state) {
  (void)state;
  kv_cache* plain = NULL;
  float k[1];
  int32_t shape[3] = {9, 9, 9};
  const int32_t layer = 0;
  assert_ok(kv_cache_new(1, 4, &plain, &error), error);
  const kv_cache* const caches[] = {plain, NULL};
  const char* const parts[] = {"is for caches of kv_cache_tiered_new", "cache is NULL"};
  for (int i = 0; i < 2; ++i) {
    const kv_cache* c = caches[i];
    assert_fails(kv_cache_tiered_demote(c, 0, &error), bad, parts[i], error);
    assert_fails(kv_cache_tiered_promote(c, 0, &error), bad, parts[i], error);
    assert_fails(kv_cache_tiered_manage(c, &error), bad, parts[i], error);
    assert_fails(kv_cache_tiered_close(c, &error), bad, parts[i], error);
    assert_fails(kv_cache_tiered_prefetch_async(c, &layer, 1, &error), bad, parts[i], error);
    assert_fails(kv_cache_tiered_get_prefetched(c, 0, k, 1, k, 1, shape, &error), bad, parts[i],
                 error);
    assert_int_equal(shape[0], 0);
    assert_int_equal(kv_cache_tiered_tier(c, 0), KV_CACHE_TIER_HOT);
    assert_int_equal(kv_cache_tiered_access_count(c, 0), 0);
    assert_int_equal(kv_cache_tiered_is_lossy(c, 0), 0);
  }
  kv_cache_free(plain);
}

static void* move_about(void* cache) {
  const int32_t layers[] = {0, 1};
  for (int i = 0; i < 200; ++i) {
    const int32_t layer = i % 2;
    if (kv_cache_tiered_demote(cache, layer, NULL) != GEN_OK) return cache;
    if (kv_cache_tiered_prefetch_async(cache, layers, 2, NULL) != GEN_OK) return cache;
    if (kv_cache_tiered_promote(cache, layer, NULL) != GEN_OK) return cache;
    if (i % 20 == 0 && kv_cache_tiered_manage(cache, NULL) != GEN_OK) return cache;
    if (kv_cache_tiered_tier(cache, layer) > KV_CACHE_TIER_COLD) return cache;
  }
  return NULL;
}

static void tiers_may_be_moved_from_any_thread(void** state) {
  (void)state;
  const float x[3] = {1, 2, 3};
  kv_cache* cache = make(2, 8);
  pthread_t threads[3];
  for (int32_t layer = 0; layer < 2; ++layer) {
    assert_ok(kv_cache_update(cache, layer, x, x, 1, 3, 1, &error), error);
  }
  for (int i = 0; i < 3; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, move_about, cache), 0);
  for (int i = 0; i < 100; ++i) expect(cache, i % 2, x, 3);
  for (int i = 0; i < 3; ++i) {
    void* failed = NULL;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  kv_cache_free(cache);
}

enum { kKept = 64, kRoom = 4096 }; /* logits of a step that are compared */

/* What a session gives for prompts and cuts, and caches of its kind for forks. */
static size_t script(gen_model* model, gen_generator* generator, float* out) {
  gen_session* s = NULL;
  gen_session* fork = NULL;
  gen_sampling* sampling = greedy(30);
  gen_result* result = NULL;
  size_t count = 0;
  size_t n = 0;
  const char* const text = "the little dog went to the big park and saw a red ball";
  assert_ok(gen_session_new(generator, &s, &error), error);
  for (int round = 0; round < 4; ++round) {
    const char* const prompt = round == 0 ? "Once upon a time" : "and then";
    assert_ok(gen_session_generate(s, prompt, GEN_NUL_TERMINATED, sampling, &result, &error),
              error);
    gen_result_free(result);
    assert_ok(gen_session_score(s, text, GEN_NUL_TERMINATED, out + count, 64, &n, &error), error);
    count += n;
    assert_ok(gen_session_fork(s, &fork, &error), error);
    assert_ok(gen_session_truncate(s, 24 - 5 * round, &error), error);
    assert_ok(gen_session_generate(fork, "but", GEN_NUL_TERMINATED, sampling, &result, &error),
              error);
    gen_result_free(result);
    assert_ok(gen_session_score(fork, text, GEN_NUL_TERMINATED, out + count, 64, &n, &error),
              error);
    count += n;
    gen_session_free(fork);
  }
  gen_session_free(s);
  gen_sampling_free(sampling);

  const size_t vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(model));
  float* logits = malloc(vocab * sizeof *logits);
  kv_cache* caches[2] = {NULL, NULL};
  int32_t tokens[40];
  for (int i = 0; i < 40; ++i) tokens[i] = 300 + 7 * i;
  assert_ok(kv_cache_generator_new(generator, 200, &caches[0], &error), error);
  assert_ok(gen_model_forward(model, tokens, 40, caches[0], logits, vocab, &error), error);
  for (int round = 0; round < 4; ++round) {
    kv_cache_free(caches[1]);
    caches[1] = NULL;
    assert_ok(kv_cache_clone(caches[0], &caches[1], &error), error);
    assert_ok(kv_cache_truncate(caches[0], 30 - 7 * round, &error), error);
    for (int step = 0; step < 12; ++step) {
      const int32_t* next = tokens + (step * 3 + round) % 30;
      const int which = step % 2;
      assert_ok(gen_model_forward(model, next, (size_t)(1 + step % 5), caches[which], logits, vocab,
                                  &error),
                error);
      memcpy(out + count, logits, kKept * sizeof *logits);
      count += kKept;
    }
  }
  kv_cache_free(caches[0]);
  kv_cache_free(caches[1]);
  free(logits);
  return count;
}

static void tiers_do_not_show_in_generation(void** state) {
  (void)state;
  gen_model* model = load_draft();
  float* want = malloc(kRoom * sizeof *want);
  float* got = malloc(kRoom * sizeof *got);
  char folder[64];
  make_folder(folder);
  const char* const kinds[] = {"fp32", "fp16", "q3"};
  for (size_t kind = 0; kind < 3; ++kind) {
    gen_options* o = NULL;
    gen_generator* g = NULL;
    assert_ok(gen_options_new(&o, &error), error);
    assert_ok(gen_options_set_kv_dtype(o, kinds[kind], &error), error);
    assert_ok(gen_create(model, o, &g, &error), error);
    const size_t n = script(model, g, want);
    assert_true(n > 0 && n <= kRoom);
    gen_free(g);
    const int32_t blocks[][3] = {{16, 1, 1}, {7, 2, -1}, {32, 1, 9}}; /* size, hot, ahead */
    for (size_t i = 0; i < 3; ++i) {
      kv_cache_tier_config* c = NULL;
      assert_ok(kv_cache_tier_config_new(&c, &error), error);
      assert_ok(kv_cache_tier_config_set_cold_dir(c, i == 0 ? folder : "", &error), error);
      assert_ok(kv_cache_tier_config_set_block_size(c, blocks[i][0], &error), error);
      assert_ok(kv_cache_tier_config_set_hot_blocks(c, blocks[i][1], &error), error);
      assert_ok(kv_cache_tier_config_set_prefetch_layers(c, blocks[i][2], &error), error);
      assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
      kv_cache_tier_config_free(c);
      assert_ok(gen_create(model, o, &g, &error), error);
      assert_int_equal(script(model, g, got), n);
      assert_memory_equal(got, want, n * sizeof *got);
      gen_free(g);
    }
    gen_options_free(o);
  }
  assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
  free(want);
  free(got);
  gen_model_free(model);
}

static void options_for_generation(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_options* o = NULL;
  gen_generator* g = NULL;
  kv_cache_tier_config* c = NULL;
  char text[4096];
  size_t n = 0;
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(kv_cache_tier_config_new(&c, &error), error);
  assert_fails(gen_options_set_tiered_kv(NULL, c, &error), bad, "options", error);
  assert_ok(gen_options_set(o, "tiered_kv", "/a,b,77", &error), error);
  assert_ok(gen_options_describe(o, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"/a,b,77\""));
  assert_fails(gen_create(model, o, &g, &error), GEN_ERROR_IO, "/a,b", error);
  assert_fails(gen_options_set(o, "tiered_kv", "/tmp,0", &error), bad, "hot_memory 0", error);
  assert_fails(gen_options_set(o, "tiered_kv", "/tmp", &error), bad, "/tmp", error);
  assert_ok(gen_options_set(o, "tiered_kv", "", &error), error);
  assert_ok(gen_options_set(o, "tiered_kv", "0", &error), error);

  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(gen_options_set(o, "paged_kv", "4", &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "does not go with", error);
  assert_ok(gen_options_set(o, "paged_kv", "0", &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(c, 99, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "99 layers", error);
  assert_ok(kv_cache_tier_config_set_num_layers(c, 0, &error), error);
  const int32_t context = gen_model_config_max_seq_len(gen_model_get_config(model));
  assert_ok(kv_cache_tier_config_set_max_seq_len(c, context + 1, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_fails(gen_create(model, o, &g, &error), bad, "max_seq_len", error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(c, 10, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  gen_session* s = NULL;
  assert_ok(gen_session_new(g, &s, &error), error);
  assert_fails(gen_session_append(s, "one two three four five six seven eight nine ten eleven",
                                  GEN_NUL_TERMINATED, &error),
               GEN_ERROR_CONTEXT_FULL, "context of 10", error);
  gen_session_free(s);
  gen_free(g);
  assert_ok(gen_options_set_tiered_kv(o, NULL, &error), error);
  assert_ok(gen_create(model, o, &g, &error), error);
  gen_free(g);
  gen_options_free(o);
  kv_cache_tier_config_free(c);
  gen_model_free(model);
}

static void links_are_not_followed(void** state) {
  (void)state;
  char folder[64];
  char own[96];
  char moved[96];
  make_folder(folder);
  snprintf(own, sizeof own, "%s/kv-own", folder);
  snprintf(moved, sizeof moved, "%s/moved", folder);
  kv_cache_tier_config* config = config_of(1, 8);
  assert_ok(kv_cache_tier_config_set_cold_dir(config, folder, &error), error);
  assert_ok(kv_cache_tier_config_set_store_id(config, "own", &error), error);
  kv_cache* cache = NULL;
  const float row[2] = {1, 2};
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  assert_ok(kv_cache_update(cache, 0, row, row, 1, 1, 2, &error), error);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  kv_cache_free(cache);
  /* The folder is a link. */
  assert_int_equal(rename(own, moved), 0);
  assert_int_equal(symlink(moved, own), 0);
  assert_fails(kv_cache_tiered_open(config, &cache, &error), GEN_ERROR_IO, "is a symbolic link",
               error);
  assert_int_equal(unlink(own), 0);
  assert_int_equal(rename(moved, own), 0);
  /* A file in it is. */
  char file[128];
  static const char* const names[] = {"manifest.bin", "layer_0.bin"};
  DIR* entries = opendir(own);
  assert_non_null(entries);
  int found = 0;
  for (struct dirent* entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    for (size_t i = 0; i < 2; ++i) found += strcmp(entry->d_name, names[i]) == 0;
  }
  closedir(entries);
  assert_int_equal(found, 2);
  for (size_t i = 0; i < 2; ++i) {
    snprintf(file, sizeof file, "%s/%s", own, names[i]);
    assert_int_equal(rename(file, moved), 0);
    assert_int_equal(symlink(moved, file), 0);
    gen_status status = kv_cache_tiered_open(config, &cache, &error);
    if (status == GEN_OK) {
      status = kv_cache_get(cache, 0, NULL, 0, NULL, 0, NULL, NULL, &error);
      float got[2];
      if (status == GEN_OK) status = kv_cache_get(cache, 0, got, 2, NULL, 0, NULL, NULL, &error);
      assert_ok(kv_cache_tiered_close(cache, &error), error);
      kv_cache_free(cache);
    }
    assert_int_equal(status, GEN_ERROR_IO);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rename(moved, file), 0);
  }
  assert_ok(kv_cache_tiered_open(config, &cache, &error), error);
  expect(cache, 0, row, 2 / 2);
  assert_ok(kv_cache_reset(cache, &error), error);
  kv_cache_free(cache);
  assert_int_equal(rmdir(folder), 0);
  kv_cache_tier_config_free(config);
}

/* All threads of the library that there are: signals go to the host's. */
static void threads_take_no_signals(void** state) {
  (void)state;
  gen_model* model = load_draft();
  kv_cache* cache = make(1, 8);
  kv_cache_tier_config* config = NULL;
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_block_size(config, 4, &error), error);
  assert_ok(kv_cache_tier_config_set_hot_blocks(config, 1, &error), error);
  assert_ok(kv_cache_tier_config_set_prefetch_layers(config, 2, &error), error);
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_tiered_kv(options, config, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_append(session, "One day a fox met a crow and they spoke about it all.",
                               GEN_NUL_TERMINATED, &error),
            error);
  assert_ok(gen_session_append(session, " Then they went home.", GEN_NUL_TERMINATED, &error), error);
  DIR* tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  int others = 0;
  for (struct dirent* entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    const long task = strtol(entry->d_name, NULL, 10);
    if (task == 0 || task == (long)getpid()) continue;
    char path[64];
    char line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", task);
    FILE* file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
      if (strncmp(line, "SigBlk:", 7) == 0) blocked = strtoull(line + 7, NULL, 16);
    }
    fclose(file);
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGPROF};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
      if ((blocked >> (signals[i] - 1) & 1) == 0) {
        fail_msg("a thread takes signal %d: it blocks %llx", signals[i], blocked);
      }
    }
    ++others;
  }
  closedir(tasks);
  assert_true(others >= 3); /* of the pool, of a tiered cache, of a session that reads ahead */
  gen_session_free(session);
  gen_free(generator);
  gen_options_free(options);
  kv_cache_tier_config_free(config);
  kv_cache_free(cache);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(configurations),
      cmocka_unit_test(making),
      cmocka_unit_test(layers_move),
      cmocka_unit_test(prefetching),
      cmocka_unit_test(folders_are_left_and_used_again),
      cmocka_unit_test(damage_is_found),
      cmocka_unit_test(files_fail_the_calls_of_every_cache),
      cmocka_unit_test(fields_that_do_not_apply_are_refused),
      cmocka_unit_test(moves_are_measured),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
      cmocka_unit_test(caches_without_tiers),
      cmocka_unit_test(tiers_may_be_moved_from_any_thread),
      cmocka_unit_test(tiers_do_not_show_in_generation),
      cmocka_unit_test(options_for_generation),
      cmocka_unit_test(links_are_not_followed),
      cmocka_unit_test(threads_take_no_signals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of tiered caches: a configuration, a cache, what it holds, folders. */
#ifndef TESTS_API_TIERED_CACHES_H
#define TESTS_API_TIERED_CACHES_H

#include "api_test.h"

#include <dirent.h>
#include <unistd.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static inline kv_cache_tier_config* config_of(int32_t layers, int32_t positions) {
  kv_cache_tier_config* config = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, layers, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, positions, &error), error);
  return config;
}

static inline void expect(const kv_cache* cache, int32_t layer, const float* want, int32_t n) {
  float k[64];
  int32_t shape[3];
  assert_ok(kv_cache_get(cache, layer, k, 64, NULL, 0, shape, NULL, &error), error);
  assert_int_equal(shape[1], n);
  assert_memory_equal(k, want, (size_t)n * sizeof *k);
}

/* A folder of the test's own, with nothing in it. */
static inline void make_folder(char* path) {
  strcpy(path, "/tmp/gen-tiered-XXXXXX");
  assert_non_null(mkdtemp(path));
}

/* Makes a folder and a configuration of layers of eight positions, whose files lie there under the
 * name `id`, or one of their own for NULL. */
static inline kv_cache_tier_config* config_in(char* folder, int32_t layers, const char* id) {
  make_folder(folder);
  kv_cache_tier_config* config = config_of(layers, 8);
  assert_ok(kv_cache_tier_config_set_cold_dir(config, folder, &error), error);
  if (id != NULL) assert_ok(kv_cache_tier_config_set_store_id(config, id, &error), error);
  return config;
}

/* A new cache whose layer holds `n` positions of one element and has gone down `tiers` tiers; two
 * are to its file. */
static inline kv_cache* make_lower(const kv_cache_tier_config* config, int32_t layer,
                                   const float* x, int32_t n, int tiers) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  assert_ok(kv_cache_update(cache, layer, x, x, 1, n, 1, &error), error);
  for (int i = 0; i < tiers; ++i) assert_ok(kv_cache_tiered_demote(cache, layer, &error), error);
  return cache;
}

static inline int entries_of(const char* path) {
  int count = -2;
  DIR* folder = opendir(path);
  assert_non_null(folder);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

#endif /* TESTS_API_TIERED_CACHES_H */

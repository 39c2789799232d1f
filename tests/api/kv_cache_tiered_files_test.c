/* SPDX-License-Identifier: Apache-2.0 */
/* Tiered caches and their files: folders that are left and used again, files that are damaged, gone
 * or links. */
#include "tiered_caches.h"

#include <sys/stat.h>

static const gen_status closed = GEN_ERROR_STATE;
static const float x[3] = {1, 2, 3};

static kv_cache* make(int32_t layers, int32_t positions) {
  kv_cache_tier_config* config = config_of(layers, positions);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  kv_cache_tier_config_free(config);
  return cache;
}

static void folders_are_left_and_used_again(void** state) {
  (void)state;
  char folder[64];
  kv_cache_tier_config* c = config_in(folder, 2, NULL);
  kv_cache* cache = make_lower(c, 1, x, 3, 2);
  kv_cache* other = NULL;
  assert_fails(kv_cache_tiered_open(c, &other, &error), GEN_ERROR_BUSY, folder, error);
  kv_cache_free(cache);
  assert_ok(kv_cache_tiered_open(c, &cache, &error), error);
  assert_int_equal(kv_cache_tiered_tier(cache, 1), KV_CACHE_TIER_COLD);
  expect(cache, 1, x, 3);
  assert_ok(kv_cache_reset(cache, &error), error);
  char saved[1024]; /* of layers that hold nothing */
  size_t size = 0;
  assert_ok(kv_cache_save_buffer(cache, saved, sizeof saved, &size, &error), error);
  assert_ok(kv_cache_tiered_close(cache, &error), error);
  assert_ok(kv_cache_tiered_close(cache, &error), error);
  size_t n = 0;
  assert_fails(kv_cache_save_buffer(cache, NULL, 0, &n, &error), closed, "closed", error);
  assert_fails(kv_cache_load_buffer(cache, saved, size, &error), closed, "closed", error);
  assert_ok(kv_cache_memory_bytes(cache, NULL, &n, NULL, &error), error);
  assert_int_equal(n, 0);
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
  kv_cache_tier_config* c = config_in(folder, 1, "it");
  kv_cache* cache = make_lower(c, 0, x, 3, 2);
  assert_fails(kv_cache_tiered_new(c, &(kv_cache*){NULL}, &error), GEN_ERROR_IO, "exists", error);
  kv_cache_tier_config_free(c);
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
  kv_cache_tier_config* c = config_in(folder, 1, "it");
  assert_ok(kv_cache_tier_config_set_promote_threshold(c, 1, &error), error);
  kv_cache* cache = make_lower(c, 0, x, 3, 2);
  kv_cache* copy = NULL;
  kv_cache_tier_config_free(c);
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
    char saved[160];
    size_t n = 0;
    unsigned char bytes[4096];
    snprintf(saved, sizeof saved, "%s/saved", folder);
    assert_fails(kv_cache_save(cache, saved, &error), want, "layer_0.bin", error);
    assert_int_equal(access(saved, F_OK), -1);
    assert_fails(kv_cache_save_buffer(cache, bytes, sizeof bytes, &n, &error), want, "layer_0.bin",
                 error);
    assert_fails(kv_cache_tiered_promote(cache, 0, &error), want, "layer_0.bin", error);
    assert_fails(kv_cache_tiered_manage(cache, &error), want, "layer_0.bin", error);
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

/* Layers cannot go down without their folder, and it cannot be opened with another manifest, nor
 * removed with a folder in the manifest's place. */
static void folders_fail_moves_and_ends(void** state) {
  (void)state;
  char folder[64];
  char home[128];
  char away[128];
  char path[160];
  kv_cache_tier_config* c = config_in(folder, 1, "it");
  kv_cache* cache = make_lower(c, 0, x, 3, 1);
  snprintf(home, sizeof home, "%s/kv-it", folder);
  snprintf(away, sizeof away, "%s/away", folder);
  assert_int_equal(rename(home, away), 0);
  assert_fails(kv_cache_tiered_demote(cache, 0, &error), GEN_ERROR_IO, home, error);
  assert_fails(kv_cache_tiered_manage(cache, &error), GEN_ERROR_IO, home, error);
  assert_int_equal(kv_cache_tiered_tier(cache, 0), KV_CACHE_TIER_WARM);
  assert_int_equal(rename(away, home), 0);
  expect(cache, 0, x, 3);
  assert_ok(kv_cache_tiered_demote(cache, 0, &error), error);
  kv_cache_free(cache);

  snprintf(path, sizeof path, "%s/manifest.bin", home);
  assert_int_equal(rename(path, away), 0);
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fprintf(file, "%100s", "nothing of ours"), 100);
  assert_int_equal(fclose(file), 0);
  assert_fails(kv_cache_tiered_open(c, &cache, &error), GEN_ERROR_FORMAT, "manifest.bin", error);
  assert_null(cache);
  assert_int_equal(rename(away, path), 0);
  assert_ok(kv_cache_tiered_open(c, &cache, &error), error);
  expect(cache, 0, x, 3);
  assert_ok(kv_cache_reset(cache, &error), error);

  assert_int_equal(rename(path, away), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_fails(kv_cache_tiered_close(cache, &error), GEN_ERROR_IO, "manifest.bin", error);
  assert_int_equal(rmdir(path), 0);
  assert_int_equal(rename(away, path), 0);
  assert_ok(kv_cache_tiered_close(cache, &error), error);
  kv_cache_free(cache);
  kv_cache_tier_config_free(c);
  assert_int_equal(rmdir(folder), 0);
}

static void links_are_not_followed(void** state) {
  (void)state;
  char folder[64];
  char own[96];
  char moved[96];
  kv_cache_tier_config* config = config_in(folder, 1, "own");
  snprintf(own, sizeof own, "%s/kv-own", folder);
  snprintf(moved, sizeof moved, "%s/moved", folder);
  kv_cache* cache = make_lower(config, 0, x, 3, 2);
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
      float got[3];
      if (status == GEN_OK) status = kv_cache_get(cache, 0, got, 3, NULL, 0, NULL, NULL, &error);
      assert_ok(kv_cache_tiered_close(cache, &error), error);
      kv_cache_free(cache);
    }
    assert_int_equal(status, GEN_ERROR_IO);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rename(moved, file), 0);
  }
  assert_ok(kv_cache_tiered_open(config, &cache, &error), error);
  expect(cache, 0, x, 3);
  assert_ok(kv_cache_reset(cache, &error), error);
  kv_cache_free(cache);
  assert_int_equal(rmdir(folder), 0);
  kv_cache_tier_config_free(config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folders_are_left_and_used_again),
      cmocka_unit_test(damage_is_found),
      cmocka_unit_test(files_fail_the_calls_of_every_cache),
      cmocka_unit_test(folders_fail_moves_and_ends),
      cmocka_unit_test(links_are_not_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

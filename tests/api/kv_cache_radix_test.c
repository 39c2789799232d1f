/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_radix.h: every function's good case, each documented error, and that a failed call
 * changes nothing. */
#include "api_test.h"

#include <pthread.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t counting[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static kv_cache_radix* make_radix(int32_t block_size, int32_t max_blocks) {
  kv_cache_radix* radix = NULL;
  assert_ok(kv_cache_radix_new(block_size, max_blocks, &radix, &error), error);
  assert_non_null(radix);
  return radix;
}

static size_t match(const kv_cache_radix* radix, const int32_t* tokens, size_t n) {
  size_t matched = 99;
  assert_ok(kv_cache_radix_match(radix, tokens, n, &matched, NULL, 0, NULL, &error), error);
  return matched;
}

static void new_checks_its_arguments(void** state) {
  (void)state;
  kv_cache_radix* radix = (kv_cache_radix*)&error;
  assert_fails(kv_cache_radix_new(0, 1, &radix, &error), bad, "0 tokens", error);
  assert_null(radix);
  assert_fails(kv_cache_radix_new(1, -3, &radix, &error), bad, "-3 blocks", error);
  assert_fails(kv_cache_radix_new(1, 1, NULL, &error), bad, "out", error);
  kv_cache_radix_free(NULL);
  assert_int_equal(kv_cache_radix_size(NULL), 0);
}

static void sequences_are_inserted_and_matched(void** state) {
  (void)state;
  kv_cache_radix* radix = make_radix(4, 100);
  int32_t ids[2] = {-1, -1};
  size_t n = 9;
  assert_fails(kv_cache_radix_insert(NULL, counting, 8, ids, 2, &n, &error), bad, "radix", error);
  assert_int_equal(n, 0);
  assert_fails(kv_cache_radix_insert(radix, NULL, 8, ids, 2, &n, &error), bad, "tokens", error);
  assert_fails(kv_cache_radix_insert(radix, counting, 8, ids, 1, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "2 ids", error);
  assert_int_equal(n, 2);
  assert_int_equal(ids[0], -1);
  assert_int_equal(kv_cache_radix_size(radix), 0);
  assert_ok(kv_cache_radix_insert(radix, counting, 8, ids, 2, &n, &error), error);
  assert_int_equal(n, 2);
  assert_int_not_equal(ids[0], ids[1]);
  assert_int_equal(kv_cache_radix_size(radix), 2);
  assert_ok(kv_cache_radix_insert(radix, NULL, 0, ids, 2, &n, NULL), error);
  assert_int_equal(n, 0);
  assert_ok(kv_cache_radix_insert(radix, counting, 8, NULL, 0, NULL, &error), error);

  const int32_t other[8] = {1, 2, 3, 4, 9, 10, 11, 12};
  int32_t found[2] = {-1, -1};
  size_t matched = 7;
  assert_fails(kv_cache_radix_match(NULL, other, 8, &matched, found, 2, &n, &error), bad, "radix",
               error);
  assert_int_equal(matched, 0);
  assert_fails(kv_cache_radix_match(radix, NULL, 8, &matched, found, 2, &n, &error), bad, "tokens",
               error);
  assert_fails(kv_cache_radix_match(radix, other, 8, NULL, found, 2, &n, &error), bad, "matched",
               error);
  assert_fails(kv_cache_radix_match(radix, counting, 8, &matched, found, 1, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "2 ids", error);
  assert_int_equal(n, 2);
  assert_int_equal(matched, 0);
  assert_ok(kv_cache_radix_match(radix, other, 8, &matched, found, 2, &n, &error), error);
  assert_int_equal(matched, 4);
  assert_int_equal(n, 1);
  assert_int_equal(found[0], ids[0]);
  assert_int_equal(found[1], -1);
  assert_int_equal(match(radix, NULL, 0), 0);

  uint64_t hits = 9, misses = 9, evictions = 9;
  assert_fails(kv_cache_radix_stats(NULL, &hits, &misses, &evictions, &error), bad, "radix", error);
  assert_int_equal(hits, 0);
  assert_ok(kv_cache_radix_stats(radix, &hits, &misses, &evictions, &error), error);
  assert_int_equal(hits, 1);
  assert_int_equal(misses, 1);
  assert_int_equal(evictions, 0);
  assert_ok(kv_cache_radix_stats(radix, NULL, NULL, NULL, &error), error);
  kv_cache_radix_free(radix);
}

struct freed {
  kv_cache_radix* radix;
  int32_t ids[8];
  int count;
  gen_status answer;
  int32_t size;
};

static void on_free(void* user, int32_t id) {
  struct freed* freed = user;
  freed->ids[freed->count++ % 8] = id;
  freed->answer = kv_cache_radix_evict(freed->radix, NULL, NULL);
  freed->size = kv_cache_radix_size(freed->radix);
}

static void blocks_go_and_the_callback_is_told(void** state) {
  (void)state;
  kv_cache_radix* radix = make_radix(2, 3);
  struct freed freed = {radix, {0}, 0, GEN_OK, 0};
  assert_fails(kv_cache_radix_set_evict_callback(NULL, on_free, &freed, &error), bad, "radix",
               error);
  assert_ok(kv_cache_radix_set_evict_callback(radix, on_free, &freed, &error), error);
  int32_t ids[4];
  int32_t last = -1;
  assert_ok(kv_cache_radix_insert(radix, counting, 4, ids, 4, NULL, &error), error);
  assert_ok(kv_cache_radix_insert(radix, counting + 4, 2, &last, 1, NULL, &error), error);
  assert_int_equal(match(radix, counting, 4), 4);
  int32_t id = -1;
  assert_ok(kv_cache_radix_insert(radix, counting + 6, 2, &id, 1, NULL, &error), error);
  assert_int_equal(freed.count, 1);
  assert_int_equal(freed.ids[0], last);
  assert_int_equal(id, last); /* given out again */
  assert_int_equal(freed.answer, GEN_ERROR_BUSY);
  assert_int_equal(freed.size, 2);

  assert_fails(kv_cache_radix_evict(NULL, &id, &error), bad, "radix", error);
  assert_ok(kv_cache_radix_evict(radix, &id, &error), error);
  assert_int_equal(id, ids[1]);
  assert_int_equal(freed.count, 2);
  assert_ok(kv_cache_radix_evict(radix, NULL, &error), error);
  assert_int_equal(freed.ids[2], ids[0]); /* which was used before 7, 8 */
  size_t removed = 9;
  assert_fails(kv_cache_radix_remove(NULL, counting, 1, &removed, &error), bad, "radix", error);
  assert_int_equal(removed, 0);
  assert_fails(kv_cache_radix_remove(radix, NULL, 1, &removed, &error), bad, "tokens", error);
  assert_ok(kv_cache_radix_insert(radix, counting + 2, 4, NULL, 0, NULL, &error), error);
  assert_ok(kv_cache_radix_remove(radix, counting + 2, 1, &removed, &error), error);
  assert_int_equal(removed, 2);
  assert_int_equal(freed.count, 5);
  assert_ok(kv_cache_radix_remove(radix, counting, 3, &removed, &error), error);
  assert_int_equal(removed, 0);
  assert_ok(kv_cache_radix_set_evict_callback(radix, NULL, NULL, &error), error);
  assert_ok(kv_cache_radix_remove(radix, NULL, 0, NULL, &error), error);
  assert_int_equal(kv_cache_radix_size(radix), 0);
  assert_int_equal(freed.count, 5);
  assert_ok(kv_cache_radix_evict(radix, &id, &error), error);
  assert_int_equal(id, -1);
  uint64_t evictions = 0;
  assert_ok(kv_cache_radix_stats(radix, NULL, NULL, &evictions, &error), error);
  assert_int_equal(evictions, 3);
  kv_cache_radix_free(radix);
}

static void pinned_blocks_stay(void** state) {
  (void)state;
  kv_cache_radix* radix = make_radix(2, 2);
  assert_ok(kv_cache_radix_insert(radix, counting, 3, NULL, 0, NULL, &error), error);
  size_t matched = 0;
  size_t n = 0;
  int32_t ids[3];
  assert_fails(kv_cache_radix_pin(NULL, counting, 3, &matched, ids, 3, &n, &error), bad, "radix",
               error);
  assert_fails(kv_cache_radix_pin(radix, NULL, 3, &matched, ids, 3, &n, &error), bad, "tokens",
               error);
  assert_fails(kv_cache_radix_pin(radix, counting, 3, NULL, ids, 3, &n, &error), bad, "matched",
               error);
  assert_fails(kv_cache_radix_pin(radix, counting, 3, &matched, ids, 1, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "2 ids", error);
  assert_fails(kv_cache_radix_unpin(radix, counting, 3, &error), GEN_ERROR_STATE, "3 tokens",
               error);
  assert_ok(kv_cache_radix_pin(radix, counting, 3, &matched, ids, 3, &n, &error), error);
  assert_int_equal(matched, 3);
  assert_int_equal(n, 2);
  int32_t id = 0;
  assert_ok(kv_cache_radix_evict(radix, &id, &error), error);
  assert_int_equal(id, -1);
  assert_fails(kv_cache_radix_remove(radix, counting, 2, NULL, &error), GEN_ERROR_BUSY, "pinned",
               error);
  assert_ok(kv_cache_radix_insert(radix, counting + 4, 2, NULL, 0, &n, &error), error);
  assert_int_equal(n, 0); /* no room */
  assert_fails(kv_cache_radix_unpin(NULL, counting, 3, &error), bad, "radix", error);
  assert_fails(kv_cache_radix_unpin(radix, NULL, 3, &error), bad, "tokens", error);
  assert_fails(kv_cache_radix_unpin(radix, counting, 2, &error), GEN_ERROR_STATE, "2 tokens",
               error);
  assert_ok(kv_cache_radix_unpin(radix, counting, 3, &error), error);
  assert_fails(kv_cache_radix_unpin(radix, counting, 3, &error), GEN_ERROR_STATE, "3 tokens",
               error);
  assert_ok(kv_cache_radix_unpin(radix, NULL, 0, &error), error);
  assert_ok(kv_cache_radix_insert(radix, counting + 4, 2, NULL, 0, &n, &error), error);
  assert_int_equal(n, 1);
  kv_cache_radix_free(radix);
}

static void* use_radix(void* argument) {
  const kv_cache_radix* radix = argument;
  for (int32_t round = 0; round < 200; ++round) {
    int32_t tokens[6];
    int32_t ids[3];
    size_t n = 0;
    size_t matched = 0;
    for (int32_t i = 0; i < 6; ++i) tokens[i] = round * i % 4;
    if (kv_cache_radix_insert(radix, tokens, 6, ids, 3, &n, NULL) != GEN_OK) return argument;
    if (kv_cache_radix_pin(radix, tokens, 6, &matched, ids, 3, &n, NULL) != GEN_OK) return argument;
    if (kv_cache_radix_unpin(radix, tokens, matched, NULL) != GEN_OK) return argument;
    if (kv_cache_radix_size(radix) > 10) return argument;
  }
  return NULL;
}

static void sixteen_threads_share_an_index(void** state) {
  (void)state;
  kv_cache_radix* radix = make_radix(2, 10);
  pthread_t threads[16];
  for (int i = 0; i < 16; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, use_radix, radix), 0);
  for (int i = 0; i < 16; ++i) {
    void* failed = radix;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_ok(kv_cache_radix_remove(radix, NULL, 0, NULL, &error), error); /* nothing is pinned */
  kv_cache_radix_free(radix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_checks_its_arguments),
      cmocka_unit_test(sequences_are_inserted_and_matched),
      cmocka_unit_test(blocks_go_and_the_callback_is_told),
      cmocka_unit_test(pinned_blocks_stay),
      cmocka_unit_test(sixteen_threads_share_an_index),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

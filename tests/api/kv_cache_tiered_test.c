/* SPDX-License-Identifier: Apache-2.0 */
/* Tiered caches through C: each function with good and bad input, and use from several threads. */
#include "tiered_caches.h"
#include "counting_allocator.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

static const gen_status range = GEN_ERROR_OUT_OF_RANGE;

static kv_cache* make(int32_t layers, int32_t positions) {
  kv_cache_tier_config* config = config_of(layers, positions);
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tiered_new(config, &cache, &error), error);
  kv_cache_tier_config_free(config);
  return cache;
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
                         "\"key\":\"chunk_size\",\"type\":\"int\",\"range\":\"any number\","
                         "\"default\":\"64\",\"help\":\"positions per mean"));
  assert_int_equal(n, strlen(text));
  assert_fails(kv_cache_tier_config_describe(c, text, 3, &n, &error), range, "3", error);
  assert_fails(kv_cache_tier_config_describe(NULL, text, 3, &n, &error), bad, "config", error);

  assert_fails(kv_cache_tier_config_set_num_layers(c, -1, &error), bad, "num_layers -1", error);
  assert_fails(kv_cache_tier_config_set_num_layers(c, 65537, &error), bad, "65537", error);
  assert_fails(kv_cache_tier_config_set_num_layers(NULL, 1, &error), bad, "config", error);
  assert_fails(kv_cache_tier_config_set_max_seq_len(c, -1, &error), bad, "max_seq_len -1", error);
  assert_fails(kv_cache_tier_config_set_max_seq_len(NULL, 1, &error), bad, "config", error);
  /* Names of files are bytes, JSON is UTF-8. */
  assert_ok(kv_cache_tier_config_set_cold_dir(c, "/a\xff\xc3\xa9\xc3/b\"", &error), error);
  assert_ok(kv_cache_tier_config_describe(c, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"/a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd/b\\\"\""));
  assert_ok(kv_cache_tier_config_set_cold_dir(c, "", &error), error);
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
  assert_fails(kv_cache_tier_config_set_warm_form(c, "q5", &error), bad, "\"q5\", known are fp32",
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
  assert_fails(kv_cache_tier_config_set(c, "size", "1", &error), bad, "unknown option \"size\"",
               error);
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
  while (shape[1] == 0) {
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

/* A field that was given another value than its default and is not for this use is refused. */
static void fields_that_do_not_apply_are_refused(void** state) {
  (void)state;
  const char* const of_sessions[][2] = {
      {"hot_memory", "77"}, {"hot_blocks", "2"}, {"block_size", "32"}, {"prefetch_layers", "0"}};
  const char* const of_stores[][2] = {{"store_id", "it"}, {"warm_form", "q4"}};
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
  for (size_t i = 0; i < 2; ++i) {
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

/* Numbers of the other use that change nothing of what is kept, as one configuration for both has
 * them. */
static void numbers_of_stores_do_sessions_no_harm(void** state) {
  (void)state;
  gen_options* o = NULL;
  kv_cache_tier_config* c = config_of(1, 8);
  assert_ok(gen_options_new(&o, &error), error);
  assert_ok(kv_cache_tier_config_set_chunk_size(c, 32, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(kv_cache_tier_config_set_chunk_size(c, 64, &error), error);
  assert_ok(kv_cache_tier_config_set_demote_threshold(c, 2, &error), error);
  assert_ok(kv_cache_tier_config_set_promote_threshold(c, 8, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  assert_ok(kv_cache_tier_config_set_demote_threshold(c, 7, &error), error);
  assert_ok(gen_options_set_tiered_kv(o, c, &error), error);
  kv_cache_tier_config_free(c);
  gen_options_free(o);
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
      cmocka_unit_test(fields_that_do_not_apply_are_refused),
      cmocka_unit_test(numbers_of_stores_do_sessions_no_harm),
      cmocka_unit_test(memory_is_what_the_allocator_counted),
      cmocka_unit_test(caches_without_tiers),
      cmocka_unit_test(tiers_may_be_moved_from_any_thread),
      cmocka_unit_test(threads_take_no_signals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

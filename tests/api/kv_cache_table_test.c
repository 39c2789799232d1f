/* SPDX-License-Identifier: Apache-2.0 */
/* The table of docs/caches.md, "What fits what": each of its rows is a way to make a cache, each of
 * its columns a call on a fresh one, and it says yes where the call does what it is for. */
#include "api_test.h"

enum { ROW = 64, ROOM = 32, CALLS = 6 };

typedef struct world {
  gen_model* model;
  int32_t layers;
  float* logits;
  size_t vocab;
  /* What stands behind the cache in hand. */
  gen_gpu_allocator* table;
  kv_cache_pool* pool;
  kv_cache_tier_config* config;
  gen_tracer* tracer;
  kv_cache* inner;
  gen_generator* generator;
  gen_session* session;
} world;

static kv_cache* plain(world* w, gen_status (*make)(int32_t, int32_t, kv_cache**, gen_error*)) {
  kv_cache* cache = NULL;
  assert_ok(make(w->layers, ROOM, &cache, &error), error);
  return cache;
}
static kv_cache* make_fp32(world* w) { return plain(w, kv_cache_new); }
static kv_cache* make_fp16(world* w) { return plain(w, kv_cache_fp16_new); }
static kv_cache* make_fp8(world* w) { return plain(w, kv_cache_fp8_new); }
static kv_cache* make_q4(world* w) { return plain(w, kv_cache_q4_new); }
static kv_cache* make_q3(world* w) { return plain(w, kv_cache_q3_new); }
static kv_cache* make_tensor(world* w) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tensor_new(w->model, 0, ROOM, "fp16", &cache, &error), error);
  return cache;
}
static kv_cache* make_device(world* w) {
  kv_cache* cache = make_tensor(w);
  assert_ok(gen_gpu_allocator_host(&w->table, &error), error);
  assert_ok(kv_cache_tensor_set_gpu_allocator(cache, w->table, &error), error);
  return cache;
}
static kv_cache* make_gpu(world* w) {
  kv_cache* cache = NULL;
  assert_ok(gen_gpu_allocator_host(&w->table, &error), error);
  assert_ok(kv_cache_gpu_new(w->table, w->layers, ROOM, 1, ROW, &cache, &error), error);
  return cache;
}
static kv_cache* make_paged(world* w) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_pool_new(w->layers, 16, ROW, 1, "fp32", &w->pool, &error), error);
  assert_ok(kv_cache_paged_new(w->pool, w->layers, &cache, &error), error);
  return cache;
}
static kv_cache* make_compressed(world* w) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_compressed_new(w->layers, 0, 0, 4, &cache, &error), error);
  return cache;
}
static kv_cache* make_tiered(world* w) {
  kv_cache* cache = NULL;
  assert_ok(kv_cache_tier_config_new(&w->config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(w->config, w->layers, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(w->config, ROOM, &error), error);
  assert_ok(kv_cache_tiered_new(w->config, &cache, &error), error);
  return cache;
}
static kv_cache* make_tracing(world* w) {
  kv_cache* cache = NULL;
  w->inner = make_fp32(w);
  assert_ok(gen_tracer_new(&w->tracer, &error), error);
  assert_ok(kv_cache_tracing_new(w->inner, w->tracer, &cache, &error), error);
  return cache;
}
static void start(world* w, const char* option, const char* value) {
  gen_options* o = NULL;
  assert_ok(gen_options_new(&o, &error), error);
  if (option != NULL) assert_ok(gen_options_set(o, option, value, &error), error);
  assert_ok(gen_create(w->model, o, &w->generator, &error), error);
  gen_options_free(o);
}
static kv_cache* of_generator(world* w, const char* option, const char* value) {
  kv_cache* cache = NULL;
  start(w, option, value);
  assert_ok(kv_cache_generator_new(w->generator, ROOM, &cache, &error), error);
  return cache;
}
static kv_cache* make_generators(world* w) { return of_generator(w, NULL, NULL); }
static kv_cache* make_generators_paged(world* w) { return of_generator(w, "paged_kv", "1"); }
static kv_cache* make_generators_tiered(world* w) { return of_generator(w, "tiered_kv", "8"); }
static kv_cache* make_generators_pooled(world* w) { return of_generator(w, "compressed_kv", "4"); }
static kv_cache* of_session(world* w, const char* option, const char* value) {
  start(w, option, value);
  assert_ok(gen_session_new(w->generator, &w->session, &error), error);
  assert_ok(gen_session_append(w->session, "Once", 4, &error), error);
  return (kv_cache*)(uintptr_t)gen_session_cache(w->session);
}
static kv_cache* make_sessions(world* w) { return of_session(w, NULL, NULL); }
static kv_cache* make_sessions_paged(world* w) { return of_session(w, "paged_kv", "1"); }
static kv_cache* make_many(world* w) {
  kv_cache* cache = NULL;
  (void)w;
  assert_ok(kv_cache_causal_new(&cache, &error), error);
  return cache;
}

static const struct row {
  const char* made_by;
  kv_cache* (*make)(world* w);
} rows[] = {
    {"`kv_cache_new`", make_fp32},
    {"`kv_cache_fp16_new`", make_fp16},
    {"`kv_cache_fp8_new`", make_fp8},
    {"`kv_cache_q4_new`", make_q4},
    {"`kv_cache_q3_new`", make_q3},
    {"`kv_cache_tensor_new`", make_tensor},
    {"the same, `kv_cache_tensor_set_gpu_allocator`", make_device},
    {"`kv_cache_gpu_new`", make_gpu},
    {"`kv_cache_paged_new`", make_paged},
    {"`kv_cache_compressed_new`", make_compressed},
    {"`kv_cache_tiered_new`", make_tiered},
    {"`kv_cache_tracing_new`", make_tracing},
    {"`kv_cache_generator_new`", make_generators},
    {"the same, `paged_kv`", make_generators_paged},
    {"the same, `tiered_kv`", make_generators_tiered},
    {"the same, `compressed_kv`", make_generators_pooled},
    {"`gen_session_cache`", make_sessions},
    {"the same, `paged_kv` of the generator", make_sessions_paged},
    {"`kv_cache_causal_new` and others of many sequences", make_many},
};

static void end(world* w, kv_cache* cache) {
  if (w->session == NULL) kv_cache_free(cache);
  gen_session_free(w->session);
  gen_free(w->generator);
  kv_cache_free(w->inner);
  gen_tracer_free(w->tracer);
  kv_cache_pool_free(w->pool);
  kv_cache_tier_config_free(w->config);
  gen_gpu_allocator_release(w->table);
  w->session = NULL;
  w->generator = NULL;
  w->inner = NULL;
  w->tracer = NULL;
  w->pool = NULL;
  w->config = NULL;
  w->table = NULL;
}

static int update(world* w, kv_cache* cache) {
  float x[ROW] = {1};
  (void)w;
  return kv_cache_update(cache, 0, x, x, 1, 1, ROW, &error) == GEN_OK;
}
static int forward(world* w, kv_cache* cache) {
  const int32_t token = 300;
  return gen_model_forward(w->model, &token, 1, cache, w->logits, w->vocab, &error) == GEN_OK;
}
static void write_somehow(world* w, kv_cache* cache) {
  if (w->session == NULL && !update(w, cache)) (void)forward(w, cache);
}
static int view(world* w, kv_cache* cache) {
  kv_cache_span span = {.struct_size = sizeof span};
  write_somehow(w, cache);
  return kv_cache_view(cache, 0, &span, &error) == GEN_OK && span.seq == 1;
}
static int full(world* w, kv_cache* cache) {
  kv_cache_span span = {.struct_size = sizeof span};
  write_somehow(w, cache);
  return kv_cache_full_buffer(cache, 0, &span, &error) == GEN_OK &&
         span.seq == kv_cache_max_seq_len(cache);
}
static int blocks(world* w, kv_cache* cache) {
  kv_cache_block* block = NULL;
  size_t n = 0;
  write_somehow(w, cache);
  return kv_cache_block_table(cache, &block, 1, &n, &error) == GEN_OK && n == 1 && block != NULL;
}
static int copies(world* w, kv_cache* cache) {
  kv_cache* copy = NULL;
  write_somehow(w, cache);
  const int same = kv_cache_clone(cache, &copy, &error) == GEN_OK &&
                   kv_cache_layer_seq_len(copy, 0) == kv_cache_layer_seq_len(cache, 0);
  kv_cache_free(copy);
  return same;
}
static int (*const calls[CALLS])(world* w, kv_cache* cache) = {update, forward, view,
                                                               full,   blocks,  copies};

/* The next cell of a row, without spaces around it; NULL behind the last. */
static char* next_cell(char** rest) {
  char* cell = *rest;
  char* bar = strchr(cell, '|');
  if (bar == NULL) return NULL;
  *rest = bar + 1;
  while (*cell == ' ') ++cell;
  while (bar > cell && bar[-1] == ' ') --bar;
  *bar = '\0';
  return cell;
}

static void the_table_is_true(void** state) {
  (void)state;
  world w = {0};
  w.model = load_draft();
  w.layers = gen_model_config_num_cache_layers(gen_model_get_config(w.model));
  w.vocab = (size_t)gen_model_config_vocab_size(gen_model_get_config(w.model));
  w.logits = malloc(w.vocab * sizeof *w.logits);
  size_t size = 0;
  char* page = (char*)read_file(GEN_TEST_SOURCE_DIR "/docs/caches.md", &size);
  page[size] = '\0';
  char* at = strstr(page, "| made by |");
  assert_non_null(at);
  at = strchr(strchr(at, '\n') + 1, '\n') + 1; /* behind the rule below the heading */
  size_t n = 0;
  int wrong = 0;
  for (; *at == '|'; ++n) {
    char* line = at + 1;
    char* line_end = strchr(at, '\n');
    assert_non_null(line_end);
    at = line_end + 1;
    *line_end = '\0';
    const char* made_by = next_cell(&line);
    assert_true(n < sizeof rows / sizeof rows[0]);
    assert_string_equal(made_by, rows[n].made_by);
    for (int call = 0; call < CALLS; ++call) {
      const char* says = next_cell(&line);
      assert_non_null(says);
      kv_cache* cache = rows[n].make(&w);
      const int can = calls[call](&w, cache);
      if (strcmp(says, can ? "yes" : "no") != 0) {
        print_error("%s, column %d: the page says %s; %s\n", made_by, call + 1, says,
                    can ? "it can" : error.message);
        wrong = 1;
      }
      end(&w, cache);
    }
  }
  assert_int_equal(n, sizeof rows / sizeof rows[0]);
  assert_int_equal(wrong, 0);
  free(page);
  free(w.logits);
  gen_model_free(w.model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_is_true)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

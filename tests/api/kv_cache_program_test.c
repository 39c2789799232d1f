/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs over kv_cache handles of every kind: any call on any cache, also on those it is
 * not for, with allocators that fail and call back. A call that fails must leave what can be seen
 * of the cache as it was, and say why in one line; which calls a kind refuses is told by a table.
 * The same seed always runs the same program: with GEN_TRANSCRIPT set to a path, everything that
 * calls answer is written there, so that two builds of the library can be compared. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "api_test.h"

#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_allocator.h"

enum { SLOTS = 14, LAYERS = 2, MOST = 12, DIM = 4, ROOM = 4096, BLOBS = 4, STEPS = 220 };
enum { VOCAB = 10, HEADS = 2, HEAD_DIM = 4 };

static FILE* transcript;
static uint64_t random_state;

static uint32_t rnd(uint32_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % n;
}
static int once_in(uint32_t n) { return rnd(n) == 0; }

static void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char* format, ...) {
  if (transcript == NULL) return;
  va_list args;
  va_start(args, format);
  vfprintf(transcript, format, args);
  va_end(args);
}

static uint64_t digest(uint64_t seed, const void* bytes, size_t n) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < n; ++i) seed = (seed ^ at[i]) * 1099511628211u;
  return seed;
}

/* ---- the host's functions ---- */

struct host {
  int calls, fail_at; /* of allocate */
  long live;
  kv_cache* asked; /* what allocate calls back into; null: nothing */
  gen_status answer;
  char answered[120];
};

static gen_status host_allocate(void* user, size_t bytes, size_t align, void** out) {
  struct host* host = user;
  if (host->asked != NULL) {
    gen_error told = {0};
    host->answer = kv_cache_truncate(host->asked, 1, &told);
    snprintf(host->answered, sizeof host->answered, "%.100s", told.message);
  }
  if (++host->calls == host->fail_at) return GEN_ERROR_OUT_OF_MEMORY;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (*out == NULL) return GEN_ERROR_OUT_OF_MEMORY;
  memset(*out, 0, bytes);
  ++host->live;
  return GEN_OK;
}
static void host_release(void* user, void* ptr, size_t bytes) {
  (void)bytes;
  if (ptr != NULL) --((struct host*)user)->live;
  free(ptr);
}

static gen_status shift(void* user, int32_t layer, float* keys, int32_t dim, int32_t heads,
                        int32_t n, const int32_t* offsets) {
  (void)user;
  for (int32_t i = 0; i < n * dim * heads; ++i) keys[i] += (float)offsets[0] * 0.125F;
  return layer == 1 && offsets[0] > 3 ? GEN_ERROR_DEVICE : GEN_OK;
}

/* ---- the world ---- */

struct world {
  struct host host;
  gen_allocator allocator;
  struct gpu_memory gpu;
  gen_gpu_allocator gpu_table;
  kv_cache_pool* pool;
  kv_cache_tier_config* tiers;
  gen_tracer* tracer;
  gen_model* model;   /* the draft model */
  gen_model* attends; /* a custom one of LAYERS layers */
  gen_generator* generators[4];
  gen_session* session;
  kv_cache* slots[SLOTS];
  unsigned char* blobs[BLOBS];
  size_t blob_bytes[BLOBS];
  size_t own_metadata; /* of a handle without a store */
  int failed, passed;
};

static void steps(struct world* w, kv_cache* cache, const char* name);

static gen_status forward(void* user, const gen_forward_batch* batch, float* logits,
                          float* features, gen_error* said) {
  struct world* w = user;
  (void)features;
  for (int32_t i = 0; i < batch->n_logits * VOCAB; ++i) logits[i] = i % VOCAB == 7 ? 1.0F : 0.0F;
  float x[16 * HEADS * HEAD_DIM];
  float out[16 * HEADS * HEAD_DIM];
  for (int32_t i = 0; i < batch->n_rows * HEADS * HEAD_DIM; ++i)
    x[i] = (float)(batch->positions[i / (HEADS * HEAD_DIM)] * 3 + i % 5);
  for (int layer = 0; layer < LAYERS; ++layer) {
    const gen_status status = gen_forward_attention(batch, layer, x, x, x, 1, out, said);
    if (status != GEN_OK) return status;
  }
  /* A cache within a step. */
  steps(w, (kv_cache*)(uintptr_t)batch->caches[0], "step");
  return GEN_OK;
}

static gen_model* make_attending(struct world* w) {
  const gen_forward table = {.struct_size = sizeof table, .user = w, .forward = forward};
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, VOCAB, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 16, &error), error);
  assert_ok(gen_model_config_set_num_heads(config, HEADS, &error), error);
  assert_ok(gen_model_config_set_num_kv_heads(config, HEADS, &error), error);
  assert_ok(gen_model_config_set_head_dim(config, HEAD_DIM, &error), error);
  assert_ok(gen_model_config_set_kv_layers(config, LAYERS, &error), error);
  assert_ok(gen_model_new_custom(&table, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

static void make_world(struct world* w, gen_model* draft) {
  memset(w, 0, sizeof *w);
  remove("state");
  w->model = draft;
  w->allocator = (gen_allocator){sizeof w->allocator, &w->host, host_allocate, host_release};
  w->gpu_table = gpu_table(&w->gpu);
  assert_ok(kv_cache_pool_new(LAYERS, 4, DIM, 1, "fp32", &w->pool, &error), error);
  assert_ok(kv_cache_tier_config_new(&w->tiers, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(w->tiers, LAYERS, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(w->tiers, MOST, &error), error);
  assert_ok(kv_cache_tier_config_set_cold_dir(w->tiers, "cold", &error), error);
  if (once_in(2)) {
    assert_ok(kv_cache_tier_config_set_allocator(w->tiers, &w->allocator, &error), error);
    assert_ok(kv_cache_pool_set_allocator(w->pool, &w->allocator, &error), error);
  }
  assert_ok(gen_tracer_new(&w->tracer, &error), error);
  w->attends = make_attending(w);
  for (int i = 0; i < 4; ++i) {
    gen_options* options = NULL;
    assert_ok(gen_options_new(&options, &error), error);
    if (i == 1) assert_ok(gen_options_set(options, "kv_dtype", "fp8", &error), error);
    if (i == 2) assert_ok(gen_options_set_paged_kv(options, 1, 16, &error), error);
    if (i == 3) assert_ok(gen_options_set(options, "compressed_kv", "4", &error), error);
    assert_ok(gen_create(w->attends, options, &w->generators[i], &error), error);
    gen_options_free(options);
  }
  assert_ok(gen_session_new(w->generators[rnd(4)], &w->session, &error), error);
  kv_cache* empty = NULL;
  assert_ok(kv_cache_new(0, 1, &empty, &error), error);
  assert_ok(kv_cache_memory_bytes(empty, NULL, NULL, &w->own_metadata, &error), error);
  kv_cache_free(empty);
}

static void end_world(struct world* w) {
  for (int i = 0; i < SLOTS; ++i) kv_cache_free(w->slots[i]);
  for (int i = 0; i < BLOBS; ++i) free(w->blobs[i]);
  gen_session_free(w->session);
  for (int i = 0; i < 4; ++i) gen_free(w->generators[i]);
  gen_model_free(w->attends);
  gen_tracer_free(w->tracer);
  kv_cache_tier_config_free(w->tiers);
  kv_cache_pool_free(w->pool);
  assert_int_equal(w->host.live, 0);
  assert_int_equal(w->gpu.live, 0);
  assert_int_equal(w->gpu.mistakes, 0);
}

/* ---- what can be seen of a cache ---- */

static uint64_t seen_span(uint64_t seen, const kv_cache_span* span) {
  const size_t element = span->type == KV_CACHE_TYPE_F32 ? 4 : 2;
  const int32_t shape[] = {span->batch, span->seq, span->k_dim, span->v_dim, (int32_t)span->type};
  seen = digest(seen, shape, sizeof shape);
  if (span->k == NULL) return seen;
  for (int32_t b = 0; b < span->batch; ++b) {
    for (int32_t p = 0; p < span->seq; ++p) {
      const size_t at = (size_t)b * span->k_batch_stride + (size_t)p * span->k_seq_stride;
      seen = digest(seen, (const char*)span->k + at, (size_t)span->k_dim * element);
      seen = digest(seen, (const char*)span->v + at, (size_t)span->v_dim * element);
    }
  }
  return seen;
}

/* By calls that cannot change it. Tiers count uses, and so have no look at their content. */
static uint64_t look(const struct world* w, const kv_cache* cache, int deep) {
  if (cache == NULL) return 0;
  uint64_t seen = 14695981039346656037u;
  const char* kind = kv_cache_kind(cache);
  const char* dtype = kv_cache_dtype(cache) != NULL ? kv_cache_dtype(cache) : "none";
  seen = digest(seen, kind, strlen(kind));
  seen = digest(seen, dtype, strlen(dtype));
  const int32_t numbers[] = {(int32_t)kv_cache_capabilities(cache),
                             kv_cache_is_lossy(cache),
                             kv_cache_num_layers(cache),
                             kv_cache_max_seq_len(cache),
                             kv_cache_seq_len(cache),
                             kv_cache_underlying(cache) != NULL};
  seen = digest(seen, numbers, sizeof numbers);
  for (int32_t layer = -1; layer <= LAYERS; ++layer) {
    const int32_t lengths[] = {kv_cache_layer_seq_len(cache, layer), kv_cache_kv_len(cache, layer),
                               kv_cache_tiered_tier(cache, layer),
                               kv_cache_tiered_is_lossy(cache, layer)};
    seen = digest(seen, lengths, sizeof lengths);
  }
  static float k[ROOM], v[ROOM];
  for (int32_t layer = -1; layer <= LAYERS; ++layer) {
    kv_cache_span span = {.struct_size = sizeof span};
    if (kv_cache_view(cache, layer, &span, NULL) == GEN_OK) seen = seen_span(seen, &span);
    int32_t shapes[6];
    const gen_status got = kv_cache_get(cache, layer, k, ROOM, v, ROOM, shapes, shapes + 3, NULL);
    seen = digest(seen, &got, sizeof got);
    seen = digest(seen, shapes, sizeof shapes);
    if (got != GEN_OK) continue;
    seen = digest(seen, k, (size_t)(shapes[0] * shapes[1] * shapes[2]) * sizeof *k);
    seen = digest(seen, v, (size_t)(shapes[3] * shapes[4] * shapes[5]) * sizeof *v);
  }
  /* Last: reading may bring up to date what lies where. */
  size_t bytes[3] = {0};
  if (kv_cache_memory_bytes(cache, bytes, bytes + 1, bytes + 2, NULL) == GEN_OK) {
    bytes[2] -= w->own_metadata;
    if (!deep) bytes[0] = bytes[2] = 0; /* what is held in reserve may grow */
    seen = digest(seen, bytes, sizeof bytes);
  }
  return seen;
}

/* ---- the calls ---- */

static const char* family_of(const kv_cache* cache) {
  static const char* const many[] = {"causal",  "swa",     "swa-mem", "swa_mem",
                                     "chunked", "encoder", "wrapper"};
  const char* kind = kv_cache_kind(cache);
  for (size_t i = 0; i < sizeof many / sizeof *many; ++i)
    if (strcmp(kind, many[i]) == 0) return "many";
  return "one";
}

/* What was answered, held against what every failure must be. */
static void check(struct world* w, const char* call, gen_status status, const gen_error* told) {
  say("  %s: %d %s\n", call, status, status == GEN_OK ? "" : told->message);
  if (status == GEN_OK) {
    ++w->passed;
    return;
  }
  ++w->failed;
  assert_int_equal(told->code, status);
  assert_true(told->message[0] != '\0' && !isupper((unsigned char)told->message[0]));
  assert_null(strchr(told->message, '\n'));
}

static float* values(void) {
  static float x[ROOM];
  const float base = (float)rnd(50) - 20.0F;
  for (int i = 0; i < ROOM; ++i) x[i] = base + (float)((i * 7) % 23) * 0.25F;
  if (once_in(40)) x[rnd(4)] = once_in(2) ? 1.0F / 0.0F : 1e30F;
  return x;
}

static void say_floats(const char* what, const float* x, size_t n) {
  say("    %s %016llx\n", what, (unsigned long long)digest(1, x, n * sizeof *x));
}

enum { CALLS = 44, MANY = 34, STARTS = 38 }; /* from MANY on for caches of many sequences */

/* One random call of all that take a cache; whether a cache of one sequence, or of many, must
 * refuse it is told by `refuses`. */
static gen_status call(struct world* w, kv_cache* cache, uint32_t which, gen_error* told,
                       const char** name, const char** refuses) {
  const int32_t layer = (int32_t)rnd(LAYERS + 2) - (once_in(6) ? 1 : 0);
  float* const x = values();
  static float k[ROOM], v[ROOM];
  int32_t shapes[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const int32_t n = (int32_t)rnd(6) - (once_in(8) ? 1 : 0);
  int32_t out[2] = {-1, -1};
  gen_status status;
#define CALL(f, family, ...) (*name = #f, *refuses = family, f(cache, __VA_ARGS__))
  switch (which) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return CALL(kv_cache_update, "many", once_in(3) ? 0 : layer, x, once_in(20) ? NULL : x + 9,
                  once_in(9) ? 2 : 1, n, once_in(7) ? 2 : DIM, told);
    case 5:
      status = CALL(kv_cache_get, "many", layer, k, rnd(3) * 20, v, ROOM, shapes, shapes + 3, told);
      for (int i = 0; i < 6; ++i) say("    %d", shapes[i]);
      return status;
    case 6: {
      kv_cache_span span = {.struct_size = once_in(9) ? 3 : sizeof span};
      status = CALL(kv_cache_view, "many", layer, &span, told);
      if (status == GEN_OK) say("    span %016llx\n", (unsigned long long)seen_span(1, &span));
      return status;
    }
    case 7: {
      kv_cache_span span = {.struct_size = sizeof span};
      status = CALL(kv_cache_full_buffer, "many", layer, &span, told);
      say("    span %d %d %d %d\n", span.batch, span.seq, span.k_dim, span.k != NULL);
      return status;
    }
    case 8:
      return CALL(kv_cache_truncate, "many", n, told);
    case 9:
      *name = "kv_cache_reset";
      *refuses = "many";
      return kv_cache_reset(cache, told);
    case 10:
    case 11: {
      static unsigned char bytes[1 << 16];
      size_t size = 0;
      const uint32_t blob = rnd(BLOBS);
      status =
          CALL(kv_cache_save_buffer, "many", bytes, once_in(5) ? 10 : sizeof bytes, &size, told);
      say("    %zu %016llx\n", size,
          status == GEN_OK ? (unsigned long long)digest(1, bytes, size) : 0);
      if (status != GEN_OK) return status;
      free(w->blobs[blob]);
      w->blobs[blob] = malloc(size);
      memcpy(w->blobs[blob], bytes, size);
      w->blob_bytes[blob] = size;
      return status;
    }
    case 12:
    case 13: {
      const uint32_t blob = rnd(BLOBS);
      if (w->blobs[blob] != NULL && once_in(8))
        w->blobs[blob][rnd((uint32_t)w->blob_bytes[blob])] ^= 4;
      return CALL(kv_cache_load_buffer, "many", w->blobs[blob], w->blob_bytes[blob], told);
    }
    case 14:
      return CALL(kv_cache_save, "many", once_in(4) ? "no/such/folder" : "state", told);
    case 15:
      return CALL(kv_cache_load, "many", once_in(4) ? "none" : "state", told);
    case 16:
      status = CALL(kv_cache_compressed_entry, "", layer, n, out, out + 1, told);
      say("    %d %d\n", out[0], out[1]);
      return status;
    case 17:
      return CALL(kv_cache_set_allocator, "", once_in(3) ? NULL : &w->allocator, told);
    case 18:
      return CALL(kv_cache_tensor_set_gpu_allocator, "", &w->gpu_table, told);
    case 19: {
      const int32_t* length = kv_cache_seq_len_device_ptr(cache);
      const int32_t* position = kv_cache_counter_device_ptr(cache);
      const int32_t* gpu = kv_cache_gpu_counter_ptr(cache);
      say("    counters %d %d %d\n", length != NULL ? gpu_int32(&w->gpu, length) : -2,
          position != NULL ? gpu_int32(&w->gpu, position) : -2,
          gpu != NULL ? gpu_int32(&w->gpu, gpu) : -2);
      *name = "kv_cache_sync_counter";
      *refuses = "many";
      return kv_cache_sync_counter(cache, told);
    }
    case 20:
    case 21:
    case 22:
      return CALL(kv_cache_gpu_append, "many", layer, x, once_in(20) ? NULL : x + 3,
                  once_in(4) ? n : kv_cache_layer_seq_len(cache, layer), told);
    case 23:
      return CALL(kv_cache_gpu_append_stream, "many", layer, (const void*)4097, (const void*)4096,
                  NULL, told);
    case 24: {
      const void *keys = x, *vals = x;
      status = CALL(kv_cache_gpu_pointers, "many", layer, &keys, &vals, out, told);
      say("    %d %d %d\n", keys != NULL, vals != NULL, out[0]);
      return status;
    }
    case 25: {
      const void *keys = x, *vals = x;
      status = CALL(kv_cache_gpu_pointer_arrays, "many", &keys, &vals, told);
      say("    %d %d\n", keys != NULL, vals != NULL);
      return status;
    }
    case 26:
      *name = "kv_cache_gpu_sync_counter";
      *refuses = "many";
      return kv_cache_gpu_sync_counter(cache, told);
    case 27: {
      kv_cache_block* blocks[64];
      size_t count = 0;
      status =
          CALL(kv_cache_block_table, "many", once_in(3) ? NULL : blocks, rnd(2) * 64, &count, told);
      say("    %zu blocks\n", count);
      return status;
    }
    case 28: {
      kv_cache_block* blocks[2] = {NULL, NULL};
      w->host.asked = NULL; /* it may ask within functions of the pool */
      for (int i = 0; i < 2; ++i)
        if (kv_cache_pool_alloc(w->pool, &blocks[i], NULL) != GEN_OK) blocks[i] = NULL;
      if (blocks[0] != NULL)
        memset(kv_cache_block_k(blocks[0]), 0, 4 * DIM * sizeof(float) * LAYERS);
      if (blocks[0] != NULL)
        memset(kv_cache_block_v(blocks[0]), 0, 4 * DIM * sizeof(float) * LAYERS);
      if (blocks[1] != NULL)
        memset(kv_cache_block_k(blocks[1]), 0, 4 * DIM * sizeof(float) * LAYERS);
      if (blocks[1] != NULL)
        memset(kv_cache_block_v(blocks[1]), 0, 4 * DIM * sizeof(float) * LAYERS);
      status = CALL(kv_cache_inject_blocks, "many", blocks, 2, n + 3, 1, DIM, told);
      for (int i = 0; i < 2; ++i)
        if (status != GEN_OK && blocks[i] != NULL)
          kv_cache_pool_free_block(w->pool, blocks[i], NULL);
      return status;
    }
    case 29:
      return CALL(kv_cache_tiered_promote, "many", layer, told);
    case 30:
      return CALL(kv_cache_tiered_demote, "many", layer, told);
    case 31:
      say("    uses %lld\n", (long long)kv_cache_tiered_access_count(cache, layer));
      *name = "kv_cache_tiered_manage";
      *refuses = "many";
      return kv_cache_tiered_manage(cache, told);
    case 32:
      if (once_in(6)) {
        *name = "kv_cache_tiered_close";
        *refuses = "many";
        return kv_cache_tiered_close(cache, told);
      }
      status = CALL(kv_cache_tiered_get_prefetched, "many", layer, k, ROOM, v, ROOM, shapes, told);
      say("    %d %d %d\n", shapes[0], shapes[1], shapes[2]);
      return status;
    case 33: {
      static float logits[1 << 16];
      const int32_t tokens[] = {1, (int32_t)rnd(9), (int32_t)rnd(9), 2, 3};
      gen_model* model = once_in(9) ? w->model : w->attends;
      *name = "gen_model_forward";
      *refuses = "many";
      status = gen_model_forward(model, tokens, 1 + rnd(4), cache, logits, 1 << 16, told);
      if (status == GEN_OK) say_floats("logits", logits, VOCAB);
      return status;
    }
    case 34:
      return CALL(kv_cache_set_config, "one", n, once_in(3), once_in(3) ? "fp16" : "fp32", told);
    case 35:
      return CALL(kv_cache_set_shift, "one", once_in(9) ? NULL : shift, NULL, told);
    case 36:
      if (once_in(2)) return CALL(kv_cache_set_layer, "one", layer, told);
      if (once_in(2)) return CALL(kv_cache_set_layer_type, "one", (int32_t)rnd(3), told);
      return CALL(kv_cache_set_quota, "one", n * 3, told);
    case 37:
      return CALL(kv_cache_init, "one", once_in(2) ? "fp16" : "fp32", 2, once_in(9) ? 0 : 8, 4,
                  told);
    case 38: {
      const int32_t positions[] = {(int32_t)rnd(4), (int32_t)rnd(4) + 1};
      const int32_t seqs[] = {(int32_t)rnd(2), once_in(6) ? 7 : 1};
      const int32_t rows = 1 + once_in(4);
      status = CALL(kv_cache_start_forward, "one", positions, once_in(20) ? NULL : seqs,
                    (size_t)rows, once_in(4), NULL, 0, told);
      if (status != GEN_OK || once_in(3)) return status;
      return CALL(kv_cache_put, "one", x, 1, DIM, x + 5, 1, DIM, rows, told);
    }
    case 39:
      return CALL(kv_cache_put, "one", x, 1, DIM, x + 5, 1, DIM, 1 + once_in(4), told);
    case 40: {
      static unsigned char mask[ROOM];
      status = CALL(kv_cache_get_masked, "one", k, once_in(5) ? 1 : ROOM, v, ROOM, mask, ROOM,
                    shapes, shapes + 3, shapes + 6, told);
      for (int i = 0; i < 8; ++i) say("    %d", shapes[i]);
      if (status == GEN_OK) say_floats("keys", k, (size_t)(shapes[0] * shapes[1] * shapes[2]));
      if (status == GEN_OK) say_floats("values", v, (size_t)(shapes[3] * shapes[4] * shapes[5]));
      return status;
    }
    case 41:
      if (once_in(2)) return CALL(kv_cache_copy_prefix, "one", 0, (int32_t)rnd(3), n, told);
      if (once_in(2)) return CALL(kv_cache_remove, "one", (int32_t)rnd(2), n, INT32_MAX, told);
      return CALL(kv_cache_set_causal, "one", out, 0, told);
    case 42:
      if (once_in(3))
        status = CALL(kv_cache_can_resume, "one", 0, n, out, told);
      else if (once_in(2))
        status = CALL(kv_cache_compact, "one", n, out, told);
      else
        status = CALL(kv_cache_encoder_cached, "one", 0, out, told);
      say("    %d\n", out[0]);
      return status;
    default:
      if (!once_in(5)) {
        *name = "none";
        *refuses = "";
        return GEN_OK;
      }
      *name = "kv_cache_close";
      *refuses = "one";
      return kv_cache_close(cache, told);
  }
}

/* A call on a cache, and what it changed. Calls of batches fail half way through with a shift
 * function, and a tiered cache may move layers for a call that fails then. */
static void one_call(struct world* w, kv_cache* cache, const char* what) {
  gen_error told = {0};
  const char* name = "";
  const char* refuses = "";
  const int one = cache != NULL && strcmp(family_of(cache), "one") == 0;
  const uint32_t which =
      cache != NULL && !one && !once_in(4) ? MANY + rnd(CALLS - MANY) : rnd(CALLS);
  /* Within a step: what the call around it asked for must not hit a look. */
  w->host.fail_at = w->gpu.fail_at = 0;
  w->host.asked = NULL;
  const uint64_t before = look(w, cache, 0);
  w->host.calls = w->gpu.calls = 0;
  w->host.fail_at = once_in(6) ? 1 + (int)rnd(3) : 0;
  w->gpu.fail_at = once_in(6) ? 1 + (int)rnd(6) : 0;
  w->host.asked = once_in(4) ? cache : NULL;
  w->host.answered[0] = '\0';
  w->host.answer = GEN_OK;
  const gen_status status = call(w, cache, which, &told, &name, &refuses);
  w->host.fail_at = w->gpu.fail_at = 0;
  w->host.asked = NULL;
  say(" %s %s", what, cache != NULL ? kv_cache_kind(cache) : "NULL");
  if (w->host.answered[0] != '\0') say("  [asked: %d %s]", w->host.answer, w->host.answered);
  check(w, name, status, &told);
  if (cache == NULL) {
    if (strcmp(name, "none") != 0) assert_int_not_equal(status, GEN_OK);
    return;
  }
  if (strcmp(refuses, one ? "one" : "many") == 0) {
    if (status == GEN_OK) fail_msg("%s went through on a %s cache", name, kv_cache_kind(cache));
  }
  const uint64_t after = look(w, cache, 0);
  if (status != GEN_OK && before != after && which != STARTS)
    fail_msg("%s failed (%s) and changed a %s cache", name, told.message, kv_cache_kind(cache));
  say("    now %016llx\n", (unsigned long long)look(w, cache, 1));
}

static void steps(struct world* w, kv_cache* cache, const char* name) {
  const int count = 1 + (int)rnd(3);
  for (int i = 0; i < count; ++i) {
    kv_cache* copy = NULL;
    gen_error told = {0};
    if (once_in(5)) check(w, "clone in step", kv_cache_clone(cache, &copy, &told), &told);
    kv_cache_free(copy);
    one_call(w, cache, name);
  }
}

enum { KINDS = 23 };
static gen_status make(struct world* w, uint32_t kind, kv_cache** out, gen_error* told) {
  const int32_t layers = once_in(12) ? -1 : LAYERS;
  kv_cache* some[] = {w->slots[rnd(SLOTS)], w->slots[rnd(SLOTS)]};
  switch (kind) {
    case 0:
      return kv_cache_new(layers, MOST, out, told);
    case 1:
      return kv_cache_fp16_new(layers, MOST, out, told);
    case 2:
      return kv_cache_fp8_new(layers, MOST, out, told);
    case 3:
      return kv_cache_q4_new(layers, MOST, out, told);
    case 4:
      return kv_cache_q3_new(layers, MOST, out, told);
    case 5:
      return kv_cache_compressed_new(layers, 1, DIM, 3, out, told);
    case 6:
      return kv_cache_tensor_new(NULL, layers, MOST, once_in(2) ? "fp16" : NULL, out, told);
    case 7:
      return kv_cache_gpu_new(&w->gpu_table, layers, MOST, 1, DIM, out, told);
    case 8:
      return kv_cache_gpu_new_typed(&w->gpu_table, layers, MOST, 1, DIM, "fp16", out, told);
    case 9:
    case 10:
      return kv_cache_paged_new(w->pool, layers, out, told);
    case 11:
    case 12:
      return kv_cache_tiered_new(w->tiers, out, told);
    case 13:
      return kv_cache_generator_new(w->generators[rnd(4)], (int32_t)rnd(14), out, told);
    case 14:
      return kv_cache_causal_new(out, told);
    case 15:
      return once_in(2) ? kv_cache_swa_new(3, out, told) : kv_cache_swa_mem_new(3, 1, out, told);
    case 16:
      return kv_cache_chunked_new(3, out, told);
    case 17:
      return kv_cache_encoder_new(out, told);
    case 18:
      return kv_cache_wrapper_new(some, 1 + rnd(2), out, told);
    case 19:
    case 20:
      return kv_cache_tracing_new(some[0], w->tracer, out, told);
    case 21:
      return kv_cache_clone(some[0], out, told);
    default:
      return kv_cache_clone(kv_cache_underlying(some[0]), out, told);
  }
}

static void run_program(struct world* w) {
  for (int step = 0; step < STEPS; ++step) {
    const uint32_t slot = rnd(SLOTS);
    gen_error told = {0};
    if (w->slots[slot] == NULL || once_in(25)) {
      if (once_in(2)) {
        kv_cache_free(w->slots[slot]);
        w->slots[slot] = NULL;
      }
      if (w->slots[slot] != NULL) continue;
      const uint32_t kind = rnd(KINDS);
      w->gpu.calls = 0;
      w->gpu.fail_at = once_in(8) ? 1 + (int)rnd(6) : 0;
      kv_cache* made = NULL;
      say("make %u in %u", kind, slot);
      check(w, "make", make(w, kind, &made, &told), &told);
      w->gpu.fail_at = 0;
      w->slots[slot] = made;
      say("    now %016llx\n", (unsigned long long)look(w, made, 1));
      continue;
    }
    if (once_in(30)) {
      const int32_t token = 3;
      check(w, "session", gen_session_append_tokens(w->session, &token, 1, &told), &told);
    }
    kv_cache* cache = w->slots[slot];
    if (once_in(30)) cache = NULL;
    if (once_in(15)) cache = (kv_cache*)(uintptr_t)gen_session_cache(w->session);
    if (cache != NULL && once_in(4) && kv_cache_underlying(cache) != NULL) {
      cache = (kv_cache*)(uintptr_t)kv_cache_underlying(cache);
      kv_cache_free(cache); /* does nothing */
    }
    one_call(w, cache, "on");
  }
}

static void calls_in_any_order(void** state) {
  (void)state;
  const char* trials = getenv("GEN_TRIALS");
  const char* first = getenv("GEN_FIRST_SEED");
  const char* path = getenv("GEN_TRANSCRIPT");
  const unsigned long count = trials != NULL ? strtoul(trials, NULL, 10) : 20;
  const unsigned long start = first != NULL ? strtoul(first, NULL, 10) : 1;
  if (path != NULL) transcript = fopen(path, "w");
  char folder[] = "/tmp/gen-program-XXXXXX";
  char back[1024];
  assert_non_null(getcwd(back, sizeof back));
  assert_non_null(mkdtemp(folder));
  gen_model* draft = load_draft();
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(mkdir("cold", 0700), 0);
  int failed = 0, passed = 0;
  for (unsigned long seed = start; seed < start + count; ++seed) {
    random_state = seed * 2654435761u + 12345;
    struct world* w = malloc(sizeof *w);
    say("seed %lu\n", seed);
    make_world(w, draft);
    run_program(w);
    end_world(w);
    failed += w->failed;
    passed += w->passed;
    free(w);
  }
  if (count >= 20) assert_true(passed > failed / 8); /* programs that only fail prove little */
  gen_model_free(draft);
  assert_int_equal(system("rm -rf state cold"), 0);
  assert_int_equal(chdir(back), 0);
  assert_int_equal(rmdir(folder), 0);
  if (transcript != NULL) fclose(transcript);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_in_any_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

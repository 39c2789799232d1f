/* SPDX-License-Identifier: Apache-2.0 */
/* fork(): in a child every call on an object of the parent that has threads or locks fails with
 * GEN_ERROR_STATE or answers as for NULL, every free returns, and what the child makes itself
 * works; the parent goes on as if nothing had happened. A child that hangs is ended by an alarm,
 * which is how the test knows. */
#include "api_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { LAYERS = 2, POSITIONS = 64, DIM = 4 };

static char folder[] = "/tmp/gen-fork-XXXXXX";
static char saved[64];

static struct {
  gen_thread_pool* threads;
  gen_model_options* model_options; /* with `threads` */
  gen_model* model;
  gen_tracer* tracer;
  gen_metrics_memory* metrics;
  gen_options *traced, *measured; /* with `tracer`, with `metrics` */
  gen_generator* generator;
  gen_session* session;
  gen_chat_session* talk;
  gen_stream* stream; /* of a session of its own, begun */
  gen_session* streaming;
  gen_sampling* sampling;
  gen_request* request;
  gen_grammar* grammar;
  gen_grammar_matcher* matcher;
  gen_profile* profile;
  gen_speculative* speculative;
  gen_eagle* eagle;
  gen_draft* draft;
  gen_tool_registry* tools;
  gen_agent* agent;
  gen_supervisor* supervisor;
  gen_result* result;
  kv_cache *plain, *compressed, *tensor, *gpu, *causal, *encoder, *paged, *tiered, *tracing,
      *parts[2];
  kv_cache_pool* pool;
  kv_cache_block* block;
  kv_cache_prefix* prefix;
  kv_cache_radix* radix;
} it;

static const float kRows[DIM] = {1, 2, 3, 4};
static const int32_t kTokens[4] = {11, 12, 13, 14};
static const int32_t kZeros[4] = {0, 0, 0, 0};
static float numbers[8192];

/* In a child: says what is wrong and ends it. No assertion of the test's may run there. */
static void wrong(const char* what, const char* why) {
  fprintf(stderr, "in the child: %s: %s\n", what, why);
  _exit(1);
}

static void expect_refused(const char* call, gen_status status) {
  if (status != GEN_ERROR_STATE) wrong(call, gen_status_name(status));
  if (strstr(error.message, "after fork()") == NULL) wrong(call, error.message);
  memset(&error, 0, sizeof error);
}
#define REFUSED(call) expect_refused(#call, (call))

static void expect_done(const char* call, gen_status status) {
  if (status != GEN_OK) wrong(call, error.message);
}
#define DONE(call) expect_done(#call, (call))

#define EXPECT(condition)                            \
  do {                                               \
    if (!(condition)) wrong(#condition, "is false"); \
  } while (0)

static int32_t no_token(void* user, const gen_token* token) {
  (void)user;
  (void)token;
  return 0;
}
static int32_t no_batch_token(void* user, size_t index, const gen_token* token) {
  (void)index;
  return no_token(user, token);
}
static void no_eviction(void* user, int32_t id) {
  (void)user;
  (void)id;
}

static void use_model(void) {
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  kv_cache* cache = NULL;
  char text[256];
  size_t n = 0;
  gen_chat* chat = NULL;
  size_t size = 0;
  REFUSED(gen_model_load(DRAFT_MODEL, it.model_options, &model, &error));
  EXPECT(model == NULL);
  unsigned char* bytes = malloc(8);
  memcpy(bytes, "GGUF", 4);
  EXPECT(gen_model_load_memory(bytes, 8, it.model_options, &model, &error) != GEN_OK);
  free(bytes);
  REFUSED(gen_create(it.model, NULL, &generator, &error));
  gen_options* options = NULL;
  DONE(gen_options_new(&options, &error));
  REFUSED(gen_options_set_speculative_draft(options, it.model, 4, &error));
  gen_options_free(options);
  REFUSED(
      gen_model_metadata_value(it.model, "general.architecture", text, sizeof text, &n, &error));
  REFUSED(gen_model_describe(it.model, NULL, 0, &n, &error));
  REFUSED(gen_model_memory(it.model, "workspace", &size, &error));
  REFUSED(gen_adapter_load(it.model, DRAFT_MODEL, "a", 1.0F, &error));
  REFUSED(gen_adapter_unload(it.model, "a", &error));
  REFUSED(gen_adapter_set_budget(it.model, 1, &error));
  REFUSED(gen_adapter_name(it.model, 0, NULL, 0, &n, &error));
  EXPECT(gen_adapter_count(it.model) == 0);
  REFUSED(gen_model_forward(it.model, kTokens, 4, it.plain, numbers, 8192, &error));
  REFUSED(gen_model_forward_batch(it.model, kTokens, NULL, NULL, 4, &it.plain, 1, numbers, 8192,
                                  &error));
  const int32_t layer = 0;
  REFUSED(
      gen_model_forward_hidden(it.model, kTokens, 4, it.plain, &layer, 1, numbers, 8192, &error));
  REFUSED(gen_model_forward_profiled(it.model, kTokens, NULL, NULL, 4, &it.plain, 1, numbers, 8192,
                                     it.profile, &error));
  REFUSED(gen_model_importance(it.model, kTokens, 4, 0, NULL, "/no/such", NULL, NULL, &error));
  DONE(kv_cache_tensor_new(it.model, 0, POSITIONS, "fp32", &cache, &error));
  kv_cache_free(cache);
  DONE(gen_chat_new(&chat, &error));
  DONE(gen_chat_add(chat, "user", "hi", 2, &error));
  DONE(gen_chat_describe(chat, NULL, 0, &n, &error));
  DONE(gen_chat_set(chat, "tool_choice", "none", &error));
  DONE(gen_chat_describe_options(chat, NULL, 0, &n, &error));
  DONE(gen_chat_truncate(chat, 1, &error));
  REFUSED(gen_chat_format(it.model, chat, 1, NULL, 0, &n, &error));
  REFUSED(gen_chat_encode(it.model, chat, 1, NULL, 0, &n, &error));
  REFUSED(gen_session_append_chat(it.session, chat, 1, &error));
  gen_chat_session* talk = NULL;
  REFUSED(gen_chat_session_new(it.generator, chat, &talk, &error));
  REFUSED(gen_chat_session_send(it.talk, "A", 1, it.sampling, NULL, &error));
  gen_stream* answer = NULL;
  REFUSED(gen_chat_session_open_stream(it.talk, "A", 1, it.sampling, &answer, &error));
  EXPECT(answer == NULL);
  REFUSED(gen_chat_session_send_stream(it.talk, "A", 1, it.sampling, no_token, NULL, NULL, &error));
  EXPECT(gen_session_length(gen_chat_session_session(it.talk)) == 0);
  EXPECT(gen_chat_session_end_reasoning(it.talk, &error) == GEN_ERROR_STATE);
  gen_chat_free(chat);
  /* What is only read, and never written after the load. */
  EXPECT(gen_model_config_vocab_size(gen_model_get_config(it.model)) > 0);
  EXPECT(gen_model_metadata_count(it.model) > 0);
  EXPECT(gen_model_metadata_key(it.model, 0) != NULL);
  const gen_tokenizer* tokenizer = gen_model_tokenizer(it.model);
  int32_t ids[16];
  DONE(gen_tokenizer_encode(tokenizer, "a fox", 5, 0, ids, 16, &n, &error));
  EXPECT(gen_tokenizer_encode_fim(tokenizer, "a", 1, "b", 1, 0, ids, 16, &size, &error) ==
         GEN_ERROR_UNSUPPORTED);
  DONE(gen_tokenizer_decode(tokenizer, ids, n, text, sizeof text, &size, &error));
  EXPECT(strcmp(text, "a fox") == 0);
}

/* Those of the parent are refused; its tokenizer and settings serve a grammar of the child's own.
 */
static void use_grammar(void) {
  gen_grammar* grammar = NULL;
  gen_grammar_matcher* matcher = NULL;
  const gen_tokenizer* tokenizer = gen_model_tokenizer(it.model);
  const char* const strings[] = {"1", "x"};
  uint32_t bits[8192];
  int32_t ids[4];
  int64_t fewest = 0;
  size_t n = 0;
  REFUSED(gen_grammar_describe(it.grammar, NULL, 0, &n, &error));
  REFUSED(gen_grammar_matcher_new(it.grammar, tokenizer, &matcher, &error));
  REFUSED(gen_grammar_matcher_accept_token(it.matcher, 5, &error));
  REFUSED(gen_grammar_matcher_accept_bytes(it.matcher, "1", 1, &error));
  REFUSED(gen_grammar_matcher_mask(it.matcher, bits, 8192, &error));
  REFUSED(gen_grammar_matcher_valid_bytes(it.matcher, bits, &error));
  REFUSED(gen_grammar_matcher_rollback(it.matcher, 0, &error));
  REFUSED(gen_grammar_matcher_fork(it.matcher, &matcher, &error));
  REFUSED(gen_grammar_matcher_reset(it.matcher, &error));
  REFUSED(gen_grammar_matcher_forced(it.matcher, ids, 4, &n, &error));
  REFUSED(gen_grammar_matcher_min_tokens(it.matcher, &fewest, &error));
  EXPECT(gen_grammar_matcher_complete(it.matcher) == 0);
  REFUSED(gen_sampling_set_grammar(it.sampling, it.grammar, &error));
  REFUSED(gen_sampling_set_grammar_matcher(it.sampling, it.matcher, &error));
  REFUSED(gen_token_mask(it.grammar, "", 0, strings, NULL, 2, bits, 1, &error));
  DONE(gen_grammar_from_regex("[0-9]+", 6, NULL, &grammar, &error));
  DONE(gen_grammar_matcher_new(grammar, tokenizer, &matcher, &error));
  DONE(gen_grammar_matcher_accept_bytes(matcher, "12", 2, &error));
  DONE(gen_grammar_matcher_mask(matcher, bits, 8192, &error));
  DONE(gen_token_mask(grammar, "", 0, strings, NULL, 2, bits, 1, &error));
  EXPECT(bits[0] == 1);
  gen_grammar_matcher_free(matcher);
  gen_grammar_free(grammar);
}

static void use_generator(void) {
  size_t n = 0;
  gen_result* result = NULL;
  gen_session* session = NULL;
  kv_cache* cache = NULL;
  const gen_request* requests[1] = {it.request};
  REFUSED(gen_generate(it.generator, "A", 1, it.sampling, &result, &error));
  REFUSED(gen_generate_stream(it.generator, "A", 1, it.sampling, no_token, NULL, &result, &error));
  REFUSED(gen_batch_generate(it.generator, requests, 1, &result, &error));
  REFUSED(
      gen_batch_generate_stream(it.generator, requests, 1, no_batch_token, NULL, &result, &error));
  REFUSED(gen_generate_n(it.generator, "A", 1, it.sampling, 1, 1, &result, &error));
  REFUSED(gen_session_new(it.generator, &session, &error));
  REFUSED(kv_cache_generator_new(it.generator, 16, &cache, &error));
  EXPECT(result == NULL && session == NULL && cache == NULL);
  int64_t value = 0;
  REFUSED(gen_generator_prefix_stats(it.generator, "hits", &value, &error));
  REFUSED(gen_generator_prefix_clear(it.generator, &error));
  REFUSED(gen_generator_eagle_path(it.generator, NULL, 0, &n, &error));
  EXPECT(gen_generator_eagle_enabled(it.generator) == 0);
}

static void use_session(gen_session* session) {
  gen_result* result = NULL;
  gen_session* made = NULL;
  gen_stream* stream = NULL;
  gen_cancel* cancel = NULL;
  int32_t ids[64];
  size_t n = 0;
  DONE(gen_cancel_new(&cancel, &error));
  REFUSED(gen_session_generate(session, "A", 1, it.sampling, &result, &error));
  REFUSED(
      gen_session_generate_stream(session, "A", 1, it.sampling, no_token, NULL, &result, &error));
  REFUSED(gen_session_append(session, "A", 1, &error));
  REFUSED(gen_session_append_tokens(session, kTokens, 4, &error));
  REFUSED(gen_session_score(session, "A", 1, numbers, 8192, &n, &error));
  REFUSED(gen_session_tokens(session, ids, 64, &n, &error));
  REFUSED(gen_session_truncate(session, 1, &error));
  REFUSED(gen_session_reset(session, &error));
  REFUSED(gen_session_fork(session, &made, &error));
  REFUSED(gen_session_save(session, saved, &error));
  REFUSED(gen_session_save_buffer(session, NULL, 0, &n, &error));
  REFUSED(gen_session_load(session, saved, &error));
  REFUSED(gen_session_load_buffer(session, kRows, sizeof kRows, &error));
  REFUSED(gen_session_set_cancel(session, cancel, &error));
  REFUSED(gen_stream_open(session, "A", 1, it.sampling, &stream, &error));
  EXPECT(gen_session_length(session) >= 0);
  EXPECT(gen_session_progress(session) >= 0);
  gen_session_cancel(session);
  EXPECT(gen_session_ssm_state(session) == NULL);
  const kv_cache* lent = gen_session_cache(session);
  REFUSED(kv_cache_get(lent, 0, NULL, 0, NULL, 0, NULL, NULL, &error));
  EXPECT(kv_cache_seq_len(lent) >= 0);
  gen_cancel_free(cancel);
}

static void use_stream(void) {
  const gen_token* token = NULL;
  gen_result* result = NULL;
  int32_t state = 0;
  REFUSED(gen_stream_next(it.stream, &token, &error));
  REFUSED(gen_stream_poll(it.stream, &token, &state, &error));
  REFUSED(gen_stream_result(it.stream, &result, &error));
  const int32_t* ids = NULL;
  const float* values = NULL;
  EXPECT(gen_stream_alternatives(it.stream, &ids, &values) == 0);
}

static void use_heads(void) {
  gen_result* result = NULL;
  gen_eagle* eagle = NULL;
  double value = 0;
  const gen_eagle_tensors none = {.struct_size = sizeof none};
  REFUSED(gen_eagle_new(it.model, NULL, 2, NULL, &eagle, &error));
  REFUSED(gen_eagle_new_tensors(it.model, &none, 2, NULL, &eagle, &error));
  REFUSED(gen_eagle_generate(it.eagle, "A", 1, it.sampling, &result, &error));
  REFUSED(
      gen_eagle_generate_stream(it.eagle, "A", 1, it.sampling, no_token, NULL, &result, &error));
  REFUSED(gen_eagle_set_adaptive(it.eagle, 1, &error));
  REFUSED(gen_eagle_stats(it.eagle, "drafted", &value, &error));
  EXPECT(result == NULL && eagle == NULL);
}

static void use_drafts(void) {
  gen_result* result = NULL;
  gen_speculative* speculative = NULL;
  gen_draft* draft = NULL;
  int32_t ids[4];
  int32_t number = 0;
  double value = 0;
  size_t n = 0;
  REFUSED(gen_speculative_new(it.model, it.model, 2, NULL, &speculative, &error));
  REFUSED(gen_speculative_generate(it.speculative, "A", 1, it.sampling, &result, &error));
  REFUSED(gen_speculative_generate_stream(it.speculative, "A", 1, it.sampling, no_token, NULL,
                                          &result, &error));
  REFUSED(gen_speculative_set_adaptive(it.speculative, 1, &error));
  REFUSED(gen_speculative_stats(it.speculative, "drafted", &value, &error));
  REFUSED(gen_generator_draft_stats(it.generator, "drafted", &value, &error));
  REFUSED(gen_draft_new(it.model, NULL, NULL, &draft, &error));
  REFUSED(gen_draft_new_self(it.model, 1, NULL, &draft, &error));
  REFUSED(gen_draft_generate(it.draft, kTokens, 4, 2, ids, NULL, 4, &n, &error));
  REFUSED(gen_draft_verify(it.draft, kTokens, 4, kTokens, 1, &number, &number, &error));
  REFUSED(gen_draft_acceptance_rate(it.draft, kTokens, 4, 1, &value, &error));
  EXPECT(gen_draft_depth(it.draft) >= 0);
  EXPECT(result == NULL && speculative == NULL && draft == NULL);
}

/* Every function of every kind of cache; which kind does not matter, for none is looked at. */
static void use_cache(kv_cache* cache) {
  kv_cache* made = NULL;
  kv_cache_span span = {.struct_size = sizeof span};
  kv_cache_block* blocks[4];
  size_t n = 0;
  size_t bytes[3];
  int32_t number = 0;
  int32_t shape[3];
  REFUSED(kv_cache_compressed_entry(cache, 0, 0, &number, &number, &error));
  REFUSED(kv_cache_set_allocator(cache, NULL, &error));
  REFUSED(kv_cache_update(cache, 0, kRows, kRows, 1, 1, DIM, &error));
  REFUSED(kv_cache_get(cache, 0, numbers, 8192, NULL, 0, NULL, NULL, &error));
  REFUSED(kv_cache_view(cache, 0, &span, &error));
  REFUSED(kv_cache_truncate(cache, 0, &error));
  REFUSED(kv_cache_reset(cache, &error));
  REFUSED(kv_cache_memory_bytes(cache, &bytes[0], &bytes[1], &bytes[2], &error));
  REFUSED(kv_cache_describe(cache, NULL, 0, &n, &error));
  REFUSED(kv_cache_save(cache, saved, &error));
  REFUSED(kv_cache_save_buffer(cache, NULL, 0, &n, &error));
  REFUSED(kv_cache_load(cache, saved, &error));
  REFUSED(kv_cache_load_buffer(cache, kRows, sizeof kRows, &error));
  REFUSED(kv_cache_clone(cache, &made, &error));
  REFUSED(kv_cache_wrapper_new(&cache, 1, &made, &error));
  REFUSED(kv_cache_set_config(cache, 1, 0, NULL, &error));
  REFUSED(kv_cache_set_shift(cache, NULL, NULL, &error));
  REFUSED(kv_cache_set_quota(cache, 8, &error));
  REFUSED(kv_cache_init(cache, "fp32", 1, 8, 8, &error));
  REFUSED(kv_cache_set_layer(cache, 0, &error));
  REFUSED(kv_cache_set_layer_type(cache, 0, &error));
  REFUSED(kv_cache_start_forward(cache, kZeros, kZeros, 1, 0, NULL, 0, &error));
  REFUSED(kv_cache_put(cache, kRows, 1, DIM, kRows, 1, DIM, 1, &error));
  REFUSED(kv_cache_get_masked(cache, numbers, 8192, NULL, 0, NULL, 0, NULL, NULL, NULL, &error));
  REFUSED(kv_cache_set_causal(cache, NULL, 0, &error));
  REFUSED(kv_cache_copy_prefix(cache, 0, 1, 1, &error));
  REFUSED(kv_cache_can_resume(cache, 0, 0, &number, &error));
  REFUSED(kv_cache_remove(cache, 0, 0, 1, &error));
  REFUSED(kv_cache_compact(cache, 1, &number, &error));
  REFUSED(kv_cache_encoder_cached(cache, 0, &number, &error));
  REFUSED(kv_cache_close(cache, &error));
  REFUSED(kv_cache_block_table(cache, blocks, 4, &n, &error));
  REFUSED(kv_cache_inject_blocks(cache, &it.block, 1, 1, 1, DIM, &error));
  REFUSED(kv_cache_full_buffer(cache, 0, &span, &error));
  REFUSED(kv_cache_sync_counter(cache, &error));
  REFUSED(kv_cache_tiered_promote(cache, 0, &error));
  REFUSED(kv_cache_tiered_demote(cache, 0, &error));
  REFUSED(kv_cache_tiered_manage(cache, &error));
  REFUSED(kv_cache_tiered_prefetch_async(cache, kZeros, 1, &error));
  REFUSED(kv_cache_tiered_get_prefetched(cache, 0, numbers, 8192, NULL, 0, shape, &error));
  REFUSED(kv_cache_tiered_close(cache, &error));
  REFUSED(kv_cache_tracing_new(cache, it.tracer, &made, &error));
  EXPECT(made == NULL);
  /* What has no status asks for no lock. */
  EXPECT(kv_cache_kind(cache) != NULL);
  (void)kv_cache_dtype(cache);
  (void)kv_cache_underlying(cache);
  EXPECT(kv_cache_num_layers(cache) >= 0 && kv_cache_max_seq_len(cache) >= 0);
  EXPECT(kv_cache_layer_seq_len(cache, 0) >= 0 && kv_cache_kv_len(cache, 0) >= 0);
  EXPECT(kv_cache_is_lossy(cache) >= 0 && kv_cache_capabilities(cache) < 1024);
  EXPECT(kv_cache_tiered_tier(cache, 0) >= 0 && kv_cache_tiered_access_count(cache, 0) >= 0);
  EXPECT(kv_cache_tiered_is_lossy(cache, 0) >= 0);
  (void)kv_cache_dtype(cache);
  (void)kv_cache_underlying(cache);
  (void)kv_cache_seq_len_device_ptr(cache);
  (void)kv_cache_counter_device_ptr(cache);
}

static void use_pool(void) {
  kv_cache* cache = NULL;
  kv_cache_block* block = NULL;
  kv_cache_prefix* prefix = NULL;
  size_t n = 0;
  size_t matched = 0;
  int32_t ids[4];
  uint64_t counts[3];
  REFUSED(kv_cache_pool_set_allocator(it.pool, NULL, &error));
  REFUSED(kv_cache_pool_alloc(it.pool, &block, &error));
  REFUSED(kv_cache_pool_retain_block(it.pool, it.block, &error));
  REFUSED(kv_cache_pool_free_block(it.pool, it.block, &error));
  REFUSED(kv_cache_paged_new(it.pool, LAYERS, &cache, &error));
  EXPECT(kv_cache_pool_cap(it.pool) > 0 && kv_cache_pool_block_size(it.pool) > 0);
  EXPECT(kv_cache_pool_available(it.pool) == 0 && kv_cache_pool_fragmentation(it.pool) == 0);
  EXPECT(kv_cache_pool_resident_bytes(it.pool) == 0);
  EXPECT(kv_cache_block_k(it.block) != NULL && kv_cache_block_v(it.block) != NULL);
  EXPECT(kv_cache_block_used(it.block) >= 0);
  REFUSED(kv_cache_prefix_new(4, it.pool, &prefix, &error));
  REFUSED(kv_cache_prefix_insert(it.prefix, 0, kTokens, 4, &it.block, 1, &error));
  REFUSED(kv_cache_prefix_match(it.prefix, 0, kTokens, 4, &block, 1, &n, &matched, &error));
  EXPECT(kv_cache_prefix_size(it.prefix) == 0);
  REFUSED(kv_cache_radix_insert(it.radix, kTokens, 4, ids, 4, &n, &error));
  REFUSED(kv_cache_radix_match(it.radix, kTokens, 4, &matched, ids, 4, &n, &error));
  REFUSED(kv_cache_radix_pin(it.radix, kTokens, 4, &matched, ids, 4, &n, &error));
  REFUSED(kv_cache_radix_unpin(it.radix, kTokens, 4, &error));
  REFUSED(kv_cache_radix_evict(it.radix, ids, &error));
  REFUSED(kv_cache_radix_remove(it.radix, kTokens, 4, &matched, &error));
  REFUSED(kv_cache_radix_stats(it.radix, &counts[0], &counts[1], &counts[2], &error));
  REFUSED(kv_cache_radix_set_evict_callback(it.radix, no_eviction, NULL, &error));
  EXPECT(kv_cache_radix_size(it.radix) == 0);
}

static void use_tracer_and_metrics(void) {
  char text[64];
  size_t n = 0;
  double value = 0;
  gen_options* options = NULL;
  DONE(gen_options_new(&options, &error));
  REFUSED(gen_tracer_op(it.tracer, 0, text, sizeof text, &n, &error));
  REFUSED(gen_tracer_write_dot(it.tracer, saved, &error));
  REFUSED(gen_tracer_write_json(it.tracer, saved, &error));
  REFUSED(gen_options_set_tracer(options, it.tracer, &error));
  REFUSED(gen_options_set_speculative_draft(options, it.model, 4, &error));
  EXPECT(gen_tracer_op_count(it.tracer) == 0);
  REFUSED(gen_metrics_memory_snapshot(it.metrics, NULL, 0, &n, &error));
  EXPECT(gen_metrics_memory_value(it.metrics, "steps") == 0);
  EXPECT(gen_metrics_memory_sink(it.metrics) != NULL);
  REFUSED(gen_profile_get(it.profile, 0, "seconds", &value, &error));
  REFUSED(gen_profile_chrome_trace(it.profile, NULL, 0, NULL, &error));
  EXPECT(gen_profile_count(it.profile) == 0 && gen_profile_name(it.profile, 0) == NULL);
  gen_options_free(options);
}

/* A model of the child's own generates, also with a pool of its own, and refuses what is not. */
static void start_anew(void) {
  gen_thread_pool* threads = NULL;
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_result* result = NULL;
  DONE(gen_thread_pool_new(2, NULL, 0, &threads, &error));
  DONE(gen_model_options_new(&options, &error));
  REFUSED(gen_model_options_set_thread_pool(options, it.threads, &error));
  DONE(gen_model_options_set_thread_pool(options, threads, &error));
  DONE(gen_model_load(DRAFT_MODEL, options, &model, &error));
  REFUSED(gen_create(model, it.traced, &generator, &error));
  REFUSED(gen_create(model, it.measured, &generator, &error));
  REFUSED(gen_model_forward(model, kTokens, 4, it.plain, numbers, 8192, &error));
  DONE(gen_create(model, NULL, &generator, &error));
  DONE(gen_generate(generator, "Once upon a time", GEN_NUL_TERMINATED, it.sampling, &result,
                    &error));
  EXPECT(strcmp(gen_result_text(result, NULL), gen_result_text(it.result, NULL)) == 0);
  gen_result_free(result);
  gen_free(generator);
  gen_model_free(model);
  gen_model_options_free(options);
  gen_thread_pool_free(threads);
}

static int no_tool(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  (void)user;
  (void)call;
  (void)reply;
  return 0;
}

/* Those of the parent are refused; what the child makes works, and so do functions without objects.
 */
static void use_agents(void) {
  gen_tool_registry* tools = NULL;
  gen_agent* agent = NULL;
  gen_agent_options* options = NULL;
  char text[512];
  size_t n = 0;
  int32_t finished = 0;
  REFUSED(gen_tool_registry_add(it.tools, "t", "", "", no_tool, NULL, &error));
  REFUSED(gen_tool_registry_remove(it.tools, "t", &error));
  REFUSED(gen_tool_registry_describe(it.tools, NULL, 0, &n, &error));
  REFUSED(gen_tool_registry_get(it.tools, "t", NULL, 0, &n, &error));
  REFUSED(gen_tool_registry_call(it.tools, "", "t", "", 0, text, sizeof text, &n, &error));
  EXPECT(gen_tool_registry_count(it.tools) == 0);
  REFUSED(gen_agent_new(it.generator, it.tools, NULL, &agent, &error));
  REFUSED(gen_agent_run(it.agent, "A", 1, NULL, NULL, NULL, &error));
  REFUSED(gen_agent_step(it.agent, "A", 1, NULL, NULL, &finished, &error));
  REFUSED(gen_agent_describe(it.agent, NULL, 0, &n, &error));
  REFUSED(gen_agent_reset(it.agent, &error));
  REFUSED(gen_agent_set_cancel(it.agent, NULL, &error));
  REFUSED(gen_supervisor_set_cancel(it.supervisor, NULL, &error));
  REFUSED(gen_supervisor_add_agent(it.supervisor, "a", "", it.agent, &error));
  REFUSED(gen_supervisor_set_budget(it.supervisor, 1, &error));
  REFUSED(gen_supervisor_run(it.supervisor, "A", 1, NULL, NULL, NULL, &error));
  REFUSED(gen_supervisor_describe(it.supervisor, NULL, 0, &n, &error));
  gen_agent_cancel(it.agent);
  EXPECT(gen_agent_chat(it.agent) != NULL);
  EXPECT(gen_tool_reply_stopped(NULL) == 0);
  EXPECT(gen_tool_reply_write(NULL, "", 0, &error) == GEN_ERROR_INVALID_ARGUMENT);
  DONE(gen_tool_result_format("", "", 0, 0, text, sizeof text, &n, &error));
  gen_supervisor_cancel(it.supervisor);
  DONE(gen_tool_registry_new(&tools, &error));
  DONE(gen_tool_registry_add(tools, "t", "", "", no_tool, NULL, &error));
  DONE(gen_agent_options_new(&options, &error));
  DONE(gen_agent_options_set(options, "tool_threads", "2", &error));
  DONE(gen_agent_options_set_sampling(options, it.sampling, &error));
  DONE(gen_agent_options_describe(options, NULL, 0, &n, &error));
  REFUSED(gen_agent_new(it.generator, tools, NULL, &agent, &error));
  EXPECT(agent == NULL);
  DONE(gen_agent_new(NULL, tools, options, &agent, &error));
  DONE(gen_agent_step(agent, "{\"name\": \"t\", \"arguments\": {}}", GEN_NUL_TERMINATED, NULL, NULL,
                      &finished, &error));
  DONE(gen_tool_calls_parse(NULL, "{}", 2, text, sizeof text, &n, &error));
  gen_supervisor* supervisor = NULL;
  DONE(gen_supervisor_new(&supervisor, &error));
  gen_supervisor_free(supervisor);
  gen_agent_free(agent);
  gen_agent_options_free(options);
  gen_tool_registry_free(tools);
}

static void free_all(void) {
  gen_stream_close(it.stream);
  gen_session_free(it.streaming);
  gen_session_free(it.session);
  gen_chat_session_free(it.talk);
  gen_speculative_free(it.speculative);
  gen_eagle_free(it.eagle);
  gen_draft_free(it.draft);
  gen_supervisor_free(it.supervisor);
  gen_agent_free(it.agent);
  gen_tool_registry_free(it.tools);
  gen_free(it.generator);
  gen_options_free(it.traced);
  gen_options_free(it.measured);
  gen_tracer_free(it.tracer);
  gen_metrics_memory_free(it.metrics);
  gen_profile_free(it.profile);
  gen_grammar_matcher_free(it.matcher);
  gen_grammar_free(it.grammar);
  gen_model_free(it.model);
  gen_thread_pool_free(it.threads); /* before the options that keep it */
  gen_model_options_free(it.model_options);
  gen_request_free(it.request);
  gen_sampling_free(it.sampling);
  gen_result_free(it.result);
  kv_cache* const caches[] = {it.plain, it.compressed, it.tensor,  it.gpu,   it.causal,
                              it.paged, it.encoder,    it.tracing, it.tiered};
  for (size_t i = 0; i < sizeof caches / sizeof caches[0]; ++i) kv_cache_free(caches[i]);
  kv_cache_prefix_free(it.prefix);
  kv_cache_radix_free(it.radix);
  kv_cache_pool_free(it.pool);
}

static void use_gpu(void) {
  const void *k = NULL, *v = NULL;
  gen_gpu_allocator* gpu = NULL;
  kv_cache* own = NULL;
  REFUSED(kv_cache_gpu_append(it.gpu, 0, kRows, kRows, 1, &error));
  REFUSED(kv_cache_gpu_append_device(it.gpu, 0, kRows, kRows, &error));
  REFUSED(kv_cache_gpu_append_stream(it.gpu, 0, kRows, kRows, NULL, &error));
  REFUSED(kv_cache_gpu_pointers(it.gpu, 0, &k, &v, NULL, &error));
  REFUSED(kv_cache_gpu_pointer_arrays(it.gpu, &k, &v, &error));
  REFUSED(kv_cache_gpu_sync_counter(it.gpu, &error));
  EXPECT(kv_cache_gpu_counter_ptr(it.gpu) != NULL);
  DONE(gen_gpu_allocator_host(&gpu, &error));
  REFUSED(kv_cache_tensor_set_gpu_allocator(it.tensor, gpu, &error));
  REFUSED(kv_cache_pool_set_gpu_allocator(it.pool, gpu, &error));
  DONE(kv_cache_gpu_new(gpu, LAYERS, POSITIONS, 1, DIM, &own, &error));
  kv_cache_free(own);
  DONE(kv_cache_gpu_new_typed(gpu, LAYERS, POSITIONS, 1, DIM, "fp16", &own, &error));
  kv_cache_free(own);
  gen_gpu_allocator_release(gpu);
}

static void everything(void) {
  use_model();
  use_grammar();
  use_generator();
  use_session(it.session);
  use_session(it.streaming);
  use_stream();
  use_drafts();
  use_heads();
  use_agents();
  kv_cache* const caches[] = {it.plain, it.compressed, it.tensor,  it.gpu,   it.causal,
                              it.paged, it.encoder,    it.tracing, it.tiered};
  for (size_t i = 0; i < sizeof caches / sizeof caches[0]; ++i) use_cache(caches[i]);
  use_gpu();
  use_pool();
  use_tracer_and_metrics();
  start_anew();
  free_all();
}

/* Runs `body` in a child that ends by exit(). */
static void in_child(void (*body)(void)) {
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(300);
    body();
    exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("the child was ended by signal %d", WTERMSIG(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static kv_cache* written(kv_cache* cache) {
  for (int32_t layer = 0; layer < kv_cache_num_layers(cache); ++layer) {
    assert_ok(kv_cache_update(cache, layer, kRows, kRows, 1, 1, DIM, &error), error);
  }
  return cache;
}

static int set_up(void** state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(saved, sizeof saved, "%s/saved", folder);
  assert_ok(gen_thread_pool_new(2, NULL, 0, &it.threads, &error), error);
  assert_ok(gen_model_options_new(&it.model_options, &error), error);
  assert_ok(gen_model_options_set_thread_pool(it.model_options, it.threads, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, it.model_options, &it.model, &error), error);
  assert_ok(gen_tracer_new(&it.tracer, &error), error);
  assert_ok(gen_metrics_memory_new(&it.metrics, &error), error);
  assert_ok(gen_profile_new(&it.profile, &error), error);
  assert_ok(gen_options_new(&it.traced, &error), error);
  assert_ok(gen_options_set_tracer(it.traced, it.tracer, &error), error);
  assert_ok(gen_options_new(&it.measured, &error), error);
  assert_ok(gen_options_set_metrics(it.measured, gen_metrics_memory_sink(it.metrics), &error),
            error);
  assert_ok(gen_create(it.model, it.measured, &it.generator, &error), error);
  it.sampling = greedy(24);
  assert_ok(gen_generate(it.generator, "Once upon a time", GEN_NUL_TERMINATED, it.sampling,
                         &it.result, &error),
            error);
  assert_ok(gen_session_new(it.generator, &it.session, &error), error);
  assert_ok(gen_chat_session_new(it.generator, NULL, &it.talk, &error), error);
  assert_ok(gen_speculative_new(it.model, it.model, 2, NULL, &it.speculative, &error), error);
  const int32_t hidden = gen_model_config_hidden(gen_model_get_config(it.model));
  float* zeros = calloc((size_t)hidden * (size_t)hidden, sizeof *zeros);
  const gen_eagle_tensors tensors = {.struct_size = sizeof tensors,
                                     .hidden = hidden,
                                     .norm_weight = zeros,
                                     .norm_bias = zeros,
                                     .fc1_weight = zeros,
                                     .fc2_weight = zeros};
  assert_ok(gen_eagle_new_tensors(it.model, &tensors, 2, NULL, &it.eagle, &error), error);
  free(zeros);
  assert_ok(gen_draft_new(it.model, it.model, NULL, &it.draft, &error), error);
  assert_ok(gen_tool_registry_new(&it.tools, &error), error);
  assert_ok(gen_agent_new(it.generator, it.tools, NULL, &it.agent, &error), error);
  assert_ok(gen_supervisor_new(&it.supervisor, &error), error);
  assert_ok(gen_supervisor_add_agent(it.supervisor, "agent", "", it.agent, &error), error);
  assert_ok(gen_session_append_tokens(it.session, kTokens, 4, &error), error);
  assert_ok(gen_session_new(it.generator, &it.streaming, &error), error);
  assert_ok(gen_stream_open(it.streaming, "A fox", 5, it.sampling, &it.stream, &error), error);
  const gen_token* token = NULL;
  assert_ok(gen_stream_next(it.stream, &token, &error), error);
  assert_ok(gen_grammar_from_regex("[0-9]+", 6, NULL, &it.grammar, &error), error);
  assert_ok(gen_grammar_matcher_new(it.grammar, gen_model_tokenizer(it.model), &it.matcher, &error),
            error);
  assert_ok(gen_request_new(&it.request, &error), error);
  assert_ok(gen_request_set_prompt(it.request, "A", 1, &error), error);

  assert_ok(kv_cache_new(LAYERS, POSITIONS, &it.plain, &error), error);
  assert_ok(kv_cache_compressed_new(LAYERS, 1, DIM, 4, &it.compressed, &error), error);
  assert_ok(kv_cache_tensor_new(NULL, LAYERS, POSITIONS, "fp32", &it.tensor, &error), error);
  gen_gpu_allocator* gpu = NULL;
  assert_ok(gen_gpu_allocator_host(&gpu, &error), error);
  assert_ok(kv_cache_gpu_new(gpu, LAYERS, POSITIONS, 1, DIM, &it.gpu, &error), error);
  gen_gpu_allocator_release(gpu);
  assert_ok(kv_cache_pool_new(LAYERS, 4, DIM, 1, "fp32", &it.pool, &error), error);
  assert_ok(kv_cache_pool_alloc(it.pool, &it.block, &error), error);
  assert_ok(kv_cache_paged_new(it.pool, LAYERS, &it.paged, &error), error);
  assert_ok(kv_cache_prefix_new(4, it.pool, &it.prefix, &error), error);
  assert_ok(kv_cache_radix_new(4, 4, &it.radix, &error), error);
  assert_ok(kv_cache_causal_new(&it.causal, &error), error);
  assert_ok(kv_cache_init(it.causal, "fp32", 1, 8, 8, &error), error);
  assert_ok(kv_cache_encoder_new(&it.encoder, &error), error);
  kv_cache_tier_config* config = NULL;
  assert_ok(kv_cache_tier_config_new(&config, &error), error);
  assert_ok(kv_cache_tier_config_set_num_layers(config, LAYERS, &error), error);
  assert_ok(kv_cache_tier_config_set_max_seq_len(config, POSITIONS, &error), error);
  assert_ok(kv_cache_tier_config_set_cold_dir(config, folder, &error), error);
  assert_ok(kv_cache_tier_config_set_store_id(config, "own", &error), error);
  assert_ok(kv_cache_tiered_new(config, &it.tiered, &error), error);
  kv_cache_tier_config_free(config);
  kv_cache* const caches[] = {it.plain, it.compressed, it.tensor, it.gpu, it.paged, it.tiered};
  for (size_t i = 0; i < sizeof caches / sizeof caches[0]; ++i) written(caches[i]);
  assert_ok(kv_cache_tiered_demote(it.tiered, 0, &error), error);
  assert_ok(kv_cache_tiered_demote(it.tiered, 0, &error), error);
  assert_int_equal(kv_cache_tiered_tier(it.tiered, 0), KV_CACHE_TIER_COLD);
  assert_ok(kv_cache_tracing_new(it.plain, it.tracer, &it.tracing, &error), error);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  const int emptied = kv_cache_reset(it.tiered, NULL) == GEN_OK; /* what is cold would stay */
  free_all();
  return emptied && rmdir(folder) == 0 ? 0 : -1;
}

/* What the parent has is as before: a file of the tiered cache, and texts. */
static void parent_goes_on(void) {
  gen_result* result = NULL;
  assert_ok(gen_generate(it.generator, "Once upon a time", GEN_NUL_TERMINATED, it.sampling, &result,
                         &error),
            error);
  assert_string_equal(gen_result_text(result, NULL), gen_result_text(it.result, NULL));
  gen_result_free(result);
  assert_int_equal(gen_session_length(it.session), 4);
  float k[DIM];
  assert_ok(kv_cache_get(it.tiered, 0, k, DIM, NULL, 0, NULL, NULL, &error), error);
  assert_memory_equal(k, kRows, sizeof kRows);
}

static void a_child_is_refused_and_ends(void** state) {
  (void)state;
  in_child(free_all);
  in_child(everything);
  in_child(free_all);
  in_child(start_anew);
  parent_goes_on();
}

static atomic_int stopping;

static void* generate_on(void* unused) {
  (void)unused;
  while (!atomic_load(&stopping)) {
    gen_result* result = NULL;
    if (gen_generate(it.generator, "A", 1, it.sampling, &result, NULL) != GEN_OK) return &stopping;
    gen_result_free(result);
  }
  return NULL;
}

static void refused_and_freed(void) {
  use_grammar();
  use_generator();
  use_session(it.session);
  use_stream();
  use_tracer_and_metrics();
  free_all();
}

static void children_of_a_parent_that_generates(void** state) {
  (void)state;
  if (SANITIZED) skip(); /* its allocator may be locked by another thread at the fork */
  pthread_t threads[2];
  atomic_store(&stopping, 0);
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, generate_on, NULL), 0);
  }
  for (int i = 0; i < 100; ++i) in_child(refused_and_freed);
  for (int i = 0; i < 3; ++i) in_child(start_anew);
  atomic_store(&stopping, 1);
  for (int i = 0; i < 2; ++i) {
    void* failed = NULL;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  parent_goes_on();
}

/* Those that touch plain memory only, with no threads or locks in it, and the process' own. */
static const char* const kPlain[] = {
    "gen_abi_version",
    "gen_adapter_merge",
    "gen_backend_",
    "gen_build_info",
    "gen_cancel_",
    "gen_chat_add",
    "gen_chat_new",
    "gen_chat_set_",
    "gen_chat_free",
    "gen_device_",
    "gen_draft_accept_tokens",
    "gen_forward_",
    "gen_gpu_allocator_",
    "gen_kv_kind_describe",
    "gen_log_",
    "gen_measure_peaks",
    "gen_memory_estimate_",
    "gen_estimate_memory",
    "gen_metrics_describe",
    "gen_model_config_",
    "gen_model_options_",
    "gen_model_new_custom",
    "gen_model_quantize",
    "gen_grammar_options_",
    "gen_grammar_from_",
    "gen_grammar_any_json",
    "gen_options_",
    "gen_pad_left",
    "gen_quantize_options_",
    "gen_request_",
    "gen_result_",
    "gen_sampling_",
    "gen_ssm_state_",
    "gen_status_name",
    "gen_template_",
    "gen_tokenizer_",
    "gen_version",
    "kv_cache_tier_config_",
    "kv_cache_fp",
    "kv_cache_q3_new",
    "kv_cache_q4_new",
    "kv_cache_swa_",
    "kv_cache_chunked_new",
    "kv_cache_tiered_open",
};

/* A function that is added must be thought of. */
static void no_function_is_forgotten(void** state) {
  (void)state;
  size_t size = 0;
  char* source = (char*)read_file(GEN_TEST_SOURCE_DIR "/tests/api/fork_test.c", &size);
  source[size] = '\0';
  FILE* symbols = fopen(GEN_TEST_SOURCE_DIR "/tests/check/symbols.txt", "r");
  assert_non_null(symbols);
  char line[128];
  int count = 0;
  while (fgets(line, sizeof line, symbols) != NULL) {
    line[strcspn(line, "@\n")] = '\0';
    int known = 0;
    for (size_t i = 0; i < sizeof kPlain / sizeof kPlain[0]; ++i) {
      known = known || strncmp(line, kPlain[i], strlen(kPlain[i])) == 0;
    }
    char call[140];
    snprintf(call, sizeof call, "%s(", line);
    if (!known && strstr(source, call) == NULL) {
      fail_msg("%s is neither called in a child here nor listed as plain", line);
    }
    ++count;
  }
  assert_true(count > 200);
  fclose(symbols);
  free(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_is_refused_and_ends),
      cmocka_unit_test(children_of_a_parent_that_generates),
      cmocka_unit_test(no_function_is_forgotten),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

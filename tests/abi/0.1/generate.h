/* SPDX-License-Identifier: Apache-2.0 */
/* Made by tests/abi/snapshot.py of the public headers as they were; never to be edited. */
#ifndef GENERATE_BASE_H
#define GENERATE_BASE_H
#include <stddef.h>
#include <stdint.h>
#if defined(__GNUC__)
#define GEN_API __attribute__((visibility("default")))
#else
#define GEN_API
#endif
#ifdef __cplusplus
extern "C" {
#endif
#define GEN_VERSION_MAJOR 0
#define GEN_VERSION_MINOR 1
#define GEN_VERSION_PATCH 0
#define GEN_ABI_VERSION 0
#define GEN_NUL_TERMINATED SIZE_MAX
typedef int32_t gen_status;
enum {
  GEN_OK = 0,
  GEN_ERROR_INVALID_ARGUMENT = -1,
  GEN_ERROR_OUT_OF_MEMORY = -2,
  GEN_ERROR_IO = -3,
  GEN_ERROR_FORMAT = -4,
  GEN_ERROR_UNSUPPORTED = -5,
  GEN_ERROR_CACHE_FULL = -6,
  GEN_ERROR_POOL_EXHAUSTED = -7,
  GEN_ERROR_OUT_OF_RANGE = -8,
  GEN_ERROR_SEQUENCE = -9,
  GEN_ERROR_BUSY = -10,
  GEN_ERROR_CANCELLED = -11,
  GEN_ERROR_GRAMMAR = -12,
  GEN_ERROR_DEVICE = -13,
  GEN_ERROR_CONTEXT_FULL = -14,
  GEN_ERROR_STATE = -15,
  GEN_ERROR_MODEL = -16,
  GEN_ERROR_TOKENIZER = -17,
  GEN_ERROR_INTERNAL = -18
};
enum {
  GEN_FINISH_NONE = 0,
  GEN_FINISH_STOP_TOKEN = 1,
  GEN_FINISH_STOP_STRING = 2,
  GEN_FINISH_LENGTH = 3,
  GEN_FINISH_CONTEXT_FULL = 4,
  GEN_FINISH_GRAMMAR_COMPLETE = 5,
  GEN_FINISH_GRAMMAR_DEAD_END = 6,
  GEN_FINISH_CANCELLED = 7,
  GEN_FINISH_CALLBACK = 8,
  GEN_FINISH_ERROR = 9
};
typedef struct gen_error gen_error;
typedef struct gen_thread_pool gen_thread_pool;
typedef struct gen_cancel gen_cancel;
typedef struct gen_model gen_model;
typedef struct gen_model_options gen_model_options;
typedef struct gen_model_config gen_model_config;
typedef struct gen_tokenizer gen_tokenizer;
typedef struct gen_chat gen_chat;
typedef struct gen_options gen_options;
typedef struct gen_generator gen_generator;
typedef struct gen_session gen_session;
typedef struct gen_stream gen_stream;
typedef struct gen_result gen_result;
typedef struct gen_sampling gen_sampling;
typedef struct kv_cache kv_cache;
typedef struct kv_cache_tier_config kv_cache_tier_config;
typedef struct gen_allocator {
  uint32_t struct_size;
  void *user;
  gen_status (*allocate)(void *user, size_t bytes, size_t align, void **out);
  void (*release)(void *user, void *ptr, size_t bytes);
} gen_allocator;
GEN_API const char *gen_version(void);
GEN_API int32_t gen_abi_version(void);
GEN_API gen_status gen_build_info(char *buf, size_t capacity, size_t *n, gen_error *error);
enum {
  GEN_LOG_OFF = 0,
  GEN_LOG_ERROR = 1,
  GEN_LOG_WARNING = 2,
  GEN_LOG_INFO = 3,
  GEN_LOG_DEBUG = 4
};
typedef void (*gen_log_callback)(void *user, int32_t level, const char *line);
GEN_API void gen_log_set_callback(gen_log_callback callback, void *user);
GEN_API void gen_log_set_level(int32_t level);
GEN_API gen_status gen_thread_pool_new(int32_t threads, const int32_t *cpus, size_t n_cpus,
                                       gen_thread_pool **out, gen_error *error);
GEN_API void gen_thread_pool_free(gen_thread_pool *pool);
GEN_API gen_status gen_cancel_new(gen_cancel **out, gen_error *error);
GEN_API void gen_cancel_fire(gen_cancel *cancel);
GEN_API void gen_cancel_reset(gen_cancel *cancel);
GEN_API void gen_cancel_free(gen_cancel *cancel);
GEN_API int32_t gen_backend_count(void);
GEN_API const char *gen_backend_name(int32_t index);
GEN_API gen_status gen_backend_available(const char *name, gen_error *error);
GEN_API int32_t gen_device_count(const char *backend);
GEN_API gen_status gen_device_describe(const char *backend, int32_t device, char *buf,
                                       size_t capacity, size_t *n, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_GENERATOR_H
#define GENERATE_GENERATOR_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_token {
  uint32_t struct_size;
  int32_t id;
  const char *text;
  size_t text_len;
  float logprob;
  int32_t done;
  int32_t finish_reason;
  int32_t index;
} gen_token;
typedef int (*gen_token_callback)(void *user, const gen_token *token);
GEN_API gen_status gen_options_new(gen_options **out, gen_error *error);
GEN_API void gen_options_free(gen_options *options);
GEN_API gen_status gen_options_set_kv_dtype(gen_options *options, const char *name,
                                            gen_error *error);
GEN_API gen_status gen_options_set_kv_types(gen_options *options, const char *keys, const char *values,
                                            gen_error *error);
GEN_API gen_status gen_options_set_kv_key_form(gen_options *options, const char *name, gen_error *error);
GEN_API gen_status gen_options_set_paged_kv(gen_options *options, int32_t max_memory_mb, int32_t block_size,
                                            gen_error *error);
GEN_API gen_status gen_options_set_prefix_cache(gen_options *options, int32_t blocks, gen_error *error);
GEN_API gen_status gen_options_set_compressed_kv(gen_options *options, int32_t chunk, gen_error *error);
GEN_API gen_status gen_options_set_tiered_kv(gen_options *options, const kv_cache_tier_config *config,
                                             gen_error *error);
GEN_API gen_status gen_options_set_context_policy(gen_options *options, const char *policy, int32_t keep,
                                                  gen_error *error);
GEN_API gen_status gen_options_set_prefill_chunk(gen_options *options, int32_t tokens,
                                                 gen_error *error);
GEN_API gen_status gen_options_set_max_batch(gen_options *options, int32_t sequences,
                                             gen_error *error);
GEN_API gen_status gen_options_set_max_queue(gen_options *options, int32_t calls,
                                             gen_error *error);
GEN_API gen_status gen_options_set(gen_options *options, const char *key, const char *value,
                                   gen_error *error);
GEN_API gen_status gen_options_describe(const gen_options *options, char *buf, size_t capacity,
                                        size_t *n, gen_error *error);
GEN_API gen_status gen_kv_kind_describe(char *buf, size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status gen_create(const gen_model *model, const gen_options *options,
                              gen_generator **out, gen_error *error);
GEN_API void gen_free(gen_generator *generator);
GEN_API gen_status gen_generate(gen_generator *generator, const char *prompt, size_t len,
                                const gen_sampling *sampling, gen_result **result,
                                gen_error *error);
GEN_API gen_status gen_generate_stream(gen_generator *generator, const char *prompt, size_t len,
                                       const gen_sampling *sampling, gen_token_callback callback,
                                       void *user, gen_result **result, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_BATCH_H
#define GENERATE_BATCH_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_request gen_request;
typedef int (*gen_batch_callback)(void *user, size_t index, const gen_token *token);
GEN_API gen_status gen_request_new(gen_request **out, gen_error *error);
GEN_API void gen_request_free(gen_request *request);
GEN_API gen_status gen_request_set_prompt(gen_request *request, const char *prompt, size_t len,
                                          gen_error *error);
GEN_API gen_status gen_request_set_prompt_tokens(gen_request *request, const int32_t *tokens,
                                                 size_t count, gen_error *error);
GEN_API gen_status gen_request_set_sampling(gen_request *request, const gen_sampling *sampling,
                                            gen_error *error);
GEN_API gen_status gen_request_set_priority(gen_request *request, int32_t priority,
                                            gen_error *error);
GEN_API gen_status gen_request_set_deadline_ms(gen_request *request, int64_t milliseconds,
                                               gen_error *error);
GEN_API gen_status gen_batch_generate(gen_generator *generator, const gen_request *const *requests,
                                      size_t count, gen_result **results, gen_error *error);
GEN_API gen_status gen_batch_generate_stream(gen_generator *generator,
                                             const gen_request *const *requests, size_t count,
                                             gen_batch_callback callback, void *user,
                                             gen_result **results, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_ERROR_H
#define GENERATE_ERROR_H
#ifdef __cplusplus
extern "C" {
#endif
struct gen_error {
  int32_t code;
  char message[1020];
};
GEN_API const char *gen_status_name(gen_status status);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_CUSTOM_MODEL_H
#define GENERATE_CUSTOM_MODEL_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_forward_call gen_forward_call;
typedef struct gen_forward_batch {
  uint32_t struct_size;
  int32_t n_rows;
  int32_t n_sequences;
  int32_t n_logits;
  const int32_t *tokens;
  const int32_t *positions;
  const int32_t *sequences;
  const uint8_t *wants_logits;
  void *const *states;
  const gen_forward_call *call;
} gen_forward_batch;
typedef struct gen_forward {
  uint32_t struct_size;
  void *user;
  gen_status (*forward)(void *user, const gen_forward_batch *batch, float *logits, float *features,
                        gen_error *error);
  gen_status (*state_new)(void *user, void **state, gen_error *error);
  gen_status (*state_clone)(void *user, const void *state, void **out, gen_error *error);
  gen_status (*state_truncate)(void *user, void *state, int32_t n, gen_error *error);
  void (*state_free)(void *user, void *state);
  void (*release)(void *user);
} gen_forward;
GEN_API gen_status gen_model_config_new(gen_model_config **out, gen_error *error);
GEN_API void gen_model_config_free(gen_model_config *config);
GEN_API gen_status gen_model_config_set_vocab_size(gen_model_config *config, int32_t tokens, gen_error *error);
GEN_API gen_status gen_model_config_set_max_seq_len(gen_model_config *config, int32_t tokens, gen_error *error);
GEN_API gen_status gen_model_config_set_eos(gen_model_config *config, int32_t token, gen_error *error);
GEN_API gen_status gen_model_config_set_bos(gen_model_config *config, int32_t token, gen_error *error);
GEN_API gen_status gen_model_config_set_num_layers(gen_model_config *config, int32_t layers, gen_error *error);
GEN_API gen_status gen_model_config_set_num_heads(gen_model_config *config, int32_t heads, gen_error *error);
GEN_API gen_status gen_model_config_set_num_kv_heads(gen_model_config *config, int32_t heads, gen_error *error);
GEN_API gen_status gen_model_config_set_head_dim(gen_model_config *config, int32_t elements, gen_error *error);
GEN_API gen_status gen_model_config_set_hidden(gen_model_config *config, int32_t elements, gen_error *error);
GEN_API gen_status gen_model_config_set_kv_layers(gen_model_config *config, int32_t layers, gen_error *error);
GEN_API gen_status gen_model_config_set_name(gen_model_config *config, const char *name, gen_error *error);
GEN_API gen_status gen_model_config_set(gen_model_config *config, const char *key, const char *value,
                                        gen_error *error);
GEN_API gen_status gen_model_config_describe(const gen_model_config *config, char *buf, size_t capacity, size_t *n,
                                             gen_error *error);
GEN_API gen_status gen_model_new_custom(const gen_forward *forward, const gen_model_config *config,
                                        const gen_tokenizer *tokenizer, gen_model **out, gen_error *error);
GEN_API gen_status gen_forward_attention(const gen_forward_batch *batch, int32_t layer, const float *q, const float *k,
                                         const float *v, float scale, float *out, gen_error *error);
GEN_API int32_t gen_forward_cancelled(const gen_forward_batch *batch);
GEN_API gen_status gen_pad_left(const int32_t *tokens, const size_t *lengths, size_t count, int32_t pad, int32_t *out,
                                size_t capacity, size_t *width, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_H
#define GENERATE_KV_CACHE_H
#ifdef __cplusplus
extern "C" {
#endif
enum {
  KV_CACHE_TYPE_F32 = 0,
  KV_CACHE_TYPE_F16 = 1
};
enum {
  KV_CACHE_CAN_TRUNCATE = 1 << 0,
  KV_CACHE_CAN_CLONE = 1 << 1,
  KV_CACHE_CAN_VIEW = 1 << 2,
  KV_CACHE_ONE_ROW_ONE_RESULT = 1 << 3,
  KV_CACHE_HAS_FULL_BUFFER = 1 << 4
};
typedef struct kv_cache_span {
  uint32_t struct_size;
  int32_t type;
  const void *k;
  const void *v;
  int32_t batch;
  int32_t seq;
  int32_t k_dim;
  int32_t v_dim;
  size_t k_batch_stride;
  size_t k_seq_stride;
  size_t v_batch_stride;
  size_t v_seq_stride;
} kv_cache_span;
GEN_API gen_status kv_cache_new(int32_t layers, int32_t max_seq_len, kv_cache **out,
                                gen_error *error);
GEN_API gen_status kv_cache_generator_new(const gen_generator *generator, int32_t max_seq_len, kv_cache **out,
                                          gen_error *error);
GEN_API gen_status kv_cache_fp16_new(int32_t layers, int32_t max_seq_len, kv_cache **out,
                                     gen_error *error);
GEN_API gen_status kv_cache_fp8_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_q4_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_q3_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_compressed_new(int32_t layers, int32_t heads, int32_t dim,
                                           int32_t chunk_size, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_compressed_entry(const kv_cache *cache, int32_t layer, int32_t entry,
                                             int32_t *first, int32_t *positions, gen_error *error);
GEN_API gen_status kv_cache_set_allocator(kv_cache *cache, const gen_allocator *allocator,
                                          gen_error *error);
GEN_API gen_status kv_cache_update(kv_cache *cache, int32_t layer, const float *k, const float *v,
                                   int32_t batch, int32_t seq, int32_t dim, gen_error *error);
GEN_API gen_status kv_cache_get(const kv_cache *cache, int32_t layer, float *k, size_t k_capacity,
                                float *v, size_t v_capacity, int32_t k_shape[3],
                                int32_t v_shape[3], gen_error *error);
GEN_API gen_status kv_cache_view(const kv_cache *cache, int32_t layer, kv_cache_span *span,
                                 gen_error *error);
GEN_API int32_t kv_cache_seq_len(const kv_cache *cache);
GEN_API int32_t kv_cache_layer_seq_len(const kv_cache *cache, int32_t layer);
GEN_API int32_t kv_cache_kv_len(const kv_cache *cache, int32_t layer);
GEN_API int32_t kv_cache_num_layers(const kv_cache *cache);
GEN_API int32_t kv_cache_max_seq_len(const kv_cache *cache);
GEN_API gen_status kv_cache_truncate(kv_cache *cache, int32_t n, gen_error *error);
GEN_API gen_status kv_cache_reset(kv_cache *cache, gen_error *error);
GEN_API gen_status kv_cache_memory_bytes(const kv_cache *cache, size_t *resident, size_t *payload,
                                         size_t *metadata, gen_error *error);
GEN_API const char *kv_cache_kind(const kv_cache *cache);
GEN_API uint32_t kv_cache_capabilities(const kv_cache *cache);
GEN_API int32_t kv_cache_is_lossy(const kv_cache *cache);
GEN_API gen_status kv_cache_save(const kv_cache *cache, const char *path, gen_error *error);
GEN_API gen_status kv_cache_save_buffer(const kv_cache *cache, void *buf, size_t capacity,
                                        size_t *n, gen_error *error);
GEN_API gen_status kv_cache_load(kv_cache *cache, const char *path, gen_error *error);
GEN_API gen_status kv_cache_load_buffer(kv_cache *cache, const void *data, size_t size,
                                        gen_error *error);
GEN_API gen_status kv_cache_clone(const kv_cache *cache, kv_cache **out, gen_error *error);
GEN_API void kv_cache_free(kv_cache *cache);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_BATCH_H
#define GENERATE_KV_CACHE_BATCH_H
#ifdef __cplusplus
extern "C" {
#endif
#define KV_CACHE_TO_THE_END INT32_MAX
typedef gen_status (*kv_cache_shift_fn)(void *user, int32_t layer, float *keys, int32_t k_dim,
                                        int32_t kv_heads, int32_t n, const int32_t *offsets);
GEN_API gen_status kv_cache_causal_new(kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_swa_new(int32_t window, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_swa_mem_new(int32_t window, int32_t memory, kv_cache **out,
                                        gen_error *error);
GEN_API gen_status kv_cache_chunked_new(int32_t chunk, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_encoder_new(kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_wrapper_new(kv_cache *const *caches, size_t n_caches, kv_cache **out,
                                        gen_error *error);
GEN_API gen_status kv_cache_set_config(kv_cache *cache, int32_t padding, int32_t permuted_v,
                                       const char *mask_dtype, gen_error *error);
GEN_API gen_status kv_cache_set_shift(kv_cache *cache, kv_cache_shift_fn shift, void *user,
                                      gen_error *error);
GEN_API gen_status kv_cache_set_quota(kv_cache *cache, int32_t entries, gen_error *error);
GEN_API gen_status kv_cache_init(kv_cache *cache, const char *dtype, int32_t max_sequences,
                                 int32_t capacity, int32_t max_batch, gen_error *error);
GEN_API gen_status kv_cache_set_layer(kv_cache *cache, int32_t layer, gen_error *error);
GEN_API gen_status kv_cache_set_layer_type(kv_cache *cache, int32_t type, gen_error *error);
GEN_API gen_status kv_cache_start_forward(kv_cache *cache, const int32_t *positions,
                                          const int32_t *seqs, size_t n, int32_t reserve,
                                          const int32_t *multimodal, size_t n_multimodal,
                                          gen_error *error);
GEN_API gen_status kv_cache_put(kv_cache *cache, const float *k, int32_t k_heads, int32_t k_dim,
                                const float *v, int32_t v_heads, int32_t v_dim, int32_t n,
                                gen_error *error);
GEN_API gen_status kv_cache_get_masked(kv_cache *cache, float *k, size_t k_capacity, float *v,
                                       size_t v_capacity, void *mask, size_t mask_capacity,
                                       int32_t k_shape[3], int32_t v_shape[3],
                                       int32_t mask_shape[2], gen_error *error);
GEN_API gen_status kv_cache_set_causal(kv_cache *cache, const int32_t *except, size_t n_except,
                                       gen_error *error);
GEN_API gen_status kv_cache_copy_prefix(kv_cache *cache, int32_t src, int32_t dst, int32_t length,
                                        gen_error *error);
GEN_API gen_status kv_cache_can_resume(const kv_cache *cache, int32_t seq, int32_t position,
                                       int32_t *can, gen_error *error);
GEN_API gen_status kv_cache_remove(kv_cache *cache, int32_t seq, int32_t begin, int32_t end,
                                   gen_error *error);
GEN_API gen_status kv_cache_compact(kv_cache *cache, int32_t budget, int32_t *moved,
                                    gen_error *error);
GEN_API gen_status kv_cache_encoder_cached(const kv_cache *cache, int32_t seq, int32_t *cached,
                                           gen_error *error);
GEN_API gen_status kv_cache_close(kv_cache *cache, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_POOL_H
#define GENERATE_KV_CACHE_POOL_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct kv_cache_pool kv_cache_pool;
typedef struct kv_cache_block kv_cache_block;
GEN_API gen_status kv_cache_pool_new(int32_t layers, int32_t block_size, int32_t row_dim,
                                     int32_t max_memory_mb, const char *dtype, kv_cache_pool **out,
                                     gen_error *error);
GEN_API gen_status kv_cache_pool_set_allocator(kv_cache_pool *pool, const gen_allocator *allocator,
                                               gen_error *error);
GEN_API gen_status kv_cache_pool_alloc(const kv_cache_pool *pool, kv_cache_block **out,
                                       gen_error *error);
GEN_API gen_status kv_cache_pool_retain_block(const kv_cache_pool *pool, kv_cache_block *block,
                                              gen_error *error);
GEN_API gen_status kv_cache_pool_free_block(const kv_cache_pool *pool, kv_cache_block *block,
                                            gen_error *error);
GEN_API size_t kv_cache_pool_cap(const kv_cache_pool *pool);
GEN_API size_t kv_cache_pool_available(const kv_cache_pool *pool);
GEN_API int32_t kv_cache_pool_block_size(const kv_cache_pool *pool);
GEN_API double kv_cache_pool_fragmentation(const kv_cache_pool *pool);
GEN_API size_t kv_cache_pool_resident_bytes(const kv_cache_pool *pool);
GEN_API void kv_cache_pool_free(kv_cache_pool *pool);
GEN_API void *kv_cache_block_k(const kv_cache_block *block);
GEN_API void *kv_cache_block_v(const kv_cache_block *block);
GEN_API int32_t kv_cache_block_used(const kv_cache_block *block);
GEN_API gen_status kv_cache_paged_new(const kv_cache_pool *pool, int32_t layers, kv_cache **out,
                                      gen_error *error);
GEN_API gen_status kv_cache_block_table(const kv_cache *cache, kv_cache_block **blocks,
                                        size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status kv_cache_inject_blocks(kv_cache *cache, kv_cache_block *const *blocks,
                                          size_t n_blocks, int32_t positions, int32_t batch,
                                          int32_t dim, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_PREFIX_H
#define GENERATE_KV_CACHE_PREFIX_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct kv_cache_prefix kv_cache_prefix;
GEN_API gen_status kv_cache_prefix_new(int32_t capacity, const kv_cache_pool *pool, kv_cache_prefix **out,
                                       gen_error *error);
GEN_API void kv_cache_prefix_free(kv_cache_prefix *prefix);
GEN_API gen_status kv_cache_prefix_insert(const kv_cache_prefix *prefix, uint64_t domain, const int32_t *tokens,
                                          size_t n_tokens, kv_cache_block *const *blocks, size_t n_blocks,
                                          gen_error *error);
GEN_API gen_status kv_cache_prefix_match(const kv_cache_prefix *prefix, uint64_t domain, const int32_t *tokens,
                                         size_t n_tokens, kv_cache_block **blocks, size_t capacity, size_t *n_blocks,
                                         size_t *matched, gen_error *error);
GEN_API int32_t kv_cache_prefix_size(const kv_cache_prefix *prefix);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_RADIX_H
#define GENERATE_KV_CACHE_RADIX_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct kv_cache_radix kv_cache_radix;
typedef void (*kv_cache_radix_evict_callback)(void *user, int32_t id);
GEN_API gen_status kv_cache_radix_new(int32_t block_size, int32_t max_blocks, kv_cache_radix **out,
                                      gen_error *error);
GEN_API void kv_cache_radix_free(kv_cache_radix *radix);
GEN_API gen_status kv_cache_radix_insert(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                         int32_t *ids, size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status kv_cache_radix_match(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                        size_t *matched, int32_t *ids, size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status kv_cache_radix_pin(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                      size_t *matched, int32_t *ids, size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status kv_cache_radix_unpin(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                        gen_error *error);
GEN_API gen_status kv_cache_radix_evict(const kv_cache_radix *radix, int32_t *id, gen_error *error);
GEN_API gen_status kv_cache_radix_remove(const kv_cache_radix *radix, const int32_t *tokens, size_t n_tokens,
                                         size_t *removed, gen_error *error);
GEN_API int32_t kv_cache_radix_size(const kv_cache_radix *radix);
GEN_API gen_status kv_cache_radix_stats(const kv_cache_radix *radix, uint64_t *hits, uint64_t *misses,
                                        uint64_t *evictions, gen_error *error);
GEN_API gen_status kv_cache_radix_set_evict_callback(const kv_cache_radix *radix,
                                                     kv_cache_radix_evict_callback callback, void *user,
                                                     gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_TENSOR_H
#define GENERATE_KV_CACHE_TENSOR_H
#ifdef __cplusplus
extern "C" {
#endif
GEN_API gen_status kv_cache_tensor_new(const gen_model *model, int32_t layers, int32_t max_seq_len,
                                       const char *dtype, kv_cache **out, gen_error *error);
GEN_API gen_status kv_cache_full_buffer(const kv_cache *cache, int32_t layer, kv_cache_span *span,
                                        gen_error *error);
GEN_API const int32_t *kv_cache_seq_len_device_ptr(const kv_cache *cache);
GEN_API const int32_t *kv_cache_counter_device_ptr(const kv_cache *cache);
GEN_API gen_status kv_cache_sync_counter(kv_cache *cache, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_MEMORY_ESTIMATE_H
#define GENERATE_MEMORY_ESTIMATE_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_memory_estimate gen_memory_estimate;
GEN_API gen_status gen_estimate_memory(const char *path, const gen_model_options *model_options,
                                       const gen_options *options, gen_memory_estimate **out, gen_error *error);
GEN_API gen_status gen_memory_estimate_get(const gen_memory_estimate *estimate, const char *key, size_t *bytes,
                                           gen_error *error);
GEN_API void gen_memory_estimate_free(gen_memory_estimate *estimate);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_METRICS_H
#define GENERATE_METRICS_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_metrics_sink {
  uint32_t struct_size;
  void *user;
  void (*counter_add)(void *user, const char *name, double value);
  void (*gauge_set)(void *user, const char *name, double value);
  void (*histogram_observe)(void *user, const char *name, double value);
} gen_metrics_sink;
typedef struct gen_metrics_memory gen_metrics_memory;
GEN_API gen_status gen_options_set_metrics(gen_options *options, const gen_metrics_sink *sink, gen_error *error);
GEN_API gen_status gen_metrics_describe(char *buf, size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status gen_metrics_memory_new(gen_metrics_memory **out, gen_error *error);
GEN_API const gen_metrics_sink *gen_metrics_memory_sink(const gen_metrics_memory *memory);
GEN_API gen_status gen_metrics_memory_snapshot(const gen_metrics_memory *memory, char *buf, size_t capacity, size_t *n,
                                               gen_error *error);
GEN_API double gen_metrics_memory_value(const gen_metrics_memory *memory, const char *name);
GEN_API void gen_metrics_memory_free(gen_metrics_memory *memory);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_KV_CACHE_TIERED_H
#define GENERATE_KV_CACHE_TIERED_H
#ifdef __cplusplus
extern "C" {
#endif
enum {
  KV_CACHE_TIER_HOT = 0,
  KV_CACHE_TIER_WARM = 1,
  KV_CACHE_TIER_COLD = 2
};
GEN_API gen_status kv_cache_tier_config_new(kv_cache_tier_config **out, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_num_layers(kv_cache_tier_config *config, int32_t layers,
                                                       gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_max_seq_len(kv_cache_tier_config *config,
                                                        int32_t max_seq_len, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_chunk_size(kv_cache_tier_config *config,
                                                       int32_t chunk_size, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_demote_threshold(kv_cache_tier_config *config,
                                                             int32_t uses, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_promote_threshold(kv_cache_tier_config *config,
                                                              int32_t uses, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_cold_dir(kv_cache_tier_config *config, const char *path,
                                                     gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_store_id(kv_cache_tier_config *config, const char *id,
                                                     gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_warm_form(kv_cache_tier_config *config,
                                                      const char *form, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_hot_memory(kv_cache_tier_config *config,
                                                       int32_t mebibytes, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_hot_blocks(kv_cache_tier_config *config, int32_t blocks,
                                                       gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_block_size(kv_cache_tier_config *config,
                                                       int32_t positions, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_prefetch_layers(kv_cache_tier_config *config,
                                                            int32_t layers, gen_error *error);
GEN_API gen_status kv_cache_tier_config_set_allocator(kv_cache_tier_config *config,
                                                      const gen_allocator *allocator,
                                                      gen_error *error);
GEN_API gen_status kv_cache_tier_config_set(kv_cache_tier_config *config, const char *key,
                                            const char *value, gen_error *error);
GEN_API gen_status kv_cache_tier_config_describe(const kv_cache_tier_config *config, char *buf,
                                                 size_t capacity, size_t *n, gen_error *error);
GEN_API void kv_cache_tier_config_free(kv_cache_tier_config *config);
GEN_API gen_status kv_cache_tiered_new(const kv_cache_tier_config *config, kv_cache **out,
                                       gen_error *error);
GEN_API gen_status kv_cache_tiered_open(const kv_cache_tier_config *config, kv_cache **out,
                                        gen_error *error);
GEN_API int32_t kv_cache_tiered_tier(const kv_cache *cache, int32_t layer);
GEN_API int64_t kv_cache_tiered_access_count(const kv_cache *cache, int32_t layer);
GEN_API int32_t kv_cache_tiered_is_lossy(const kv_cache *cache, int32_t layer);
GEN_API gen_status kv_cache_tiered_promote(const kv_cache *cache, int32_t layer, gen_error *error);
GEN_API gen_status kv_cache_tiered_demote(const kv_cache *cache, int32_t layer, gen_error *error);
GEN_API gen_status kv_cache_tiered_manage(const kv_cache *cache, gen_error *error);
GEN_API gen_status kv_cache_tiered_prefetch_async(const kv_cache *cache, const int32_t *layers,
                                                  size_t n, gen_error *error);
GEN_API gen_status kv_cache_tiered_get_prefetched(const kv_cache *cache, int32_t layer, float *k,
                                                  size_t k_capacity, float *v, size_t v_capacity,
                                                  int32_t shape[3], gen_error *error);
GEN_API gen_status kv_cache_tiered_close(const kv_cache *cache, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_MODEL_H
#define GENERATE_MODEL_H
#ifdef __cplusplus
extern "C" {
#endif
typedef int (*gen_progress_callback)(void *user, double share);
GEN_API gen_status gen_model_options_new(gen_model_options **out, gen_error *error);
GEN_API void gen_model_options_free(gen_model_options *options);
GEN_API gen_status gen_model_options_set_backend(gen_model_options *options, const char *name,
                                                 gen_error *error);
GEN_API gen_status gen_model_options_set_device(gen_model_options *options, int32_t device,
                                                gen_error *error);
GEN_API gen_status gen_model_options_set_threads(gen_model_options *options, int32_t threads,
                                                 gen_error *error);
GEN_API gen_status gen_model_options_set_thread_pool(gen_model_options *options,
                                                     gen_thread_pool *pool, gen_error *error);
GEN_API gen_status gen_model_options_set_allocator(gen_model_options *options,
                                                   const gen_allocator *allocator,
                                                   gen_error *error);
GEN_API gen_status gen_model_options_set_mmap(gen_model_options *options, int32_t use_mmap,
                                              gen_error *error);
GEN_API gen_status gen_model_options_set_progress(gen_model_options *options,
                                                  gen_progress_callback callback, void *user,
                                                  gen_error *error);
GEN_API gen_status gen_model_options_set_max_seq_len(gen_model_options *options, int32_t tokens,
                                                     gen_error *error);
GEN_API gen_status gen_model_options_set_check_tensors(gen_model_options *options, int32_t check,
                                                       gen_error *error);
GEN_API gen_status gen_model_options_set(gen_model_options *options, const char *key,
                                         const char *value, gen_error *error);
GEN_API gen_status gen_model_options_describe(const gen_model_options *options, char *buf,
                                              size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status gen_model_load(const char *path, const gen_model_options *options,
                                  gen_model **out, gen_error *error);
GEN_API gen_status gen_model_load_memory(const void *data, size_t size,
                                         const gen_model_options *options, gen_model **out,
                                         gen_error *error);
GEN_API gen_status gen_model_quantize(const char *in, const char *out, const char *type,
                                      gen_progress_callback progress, void *user, gen_error *error);
GEN_API void gen_model_free(gen_model *model);
GEN_API const gen_model_config *gen_model_get_config(const gen_model *model);
GEN_API int32_t gen_model_config_vocab_size(const gen_model_config *config);
GEN_API int32_t gen_model_config_max_seq_len(const gen_model_config *config);
GEN_API int32_t gen_model_config_eos(const gen_model_config *config);
GEN_API int32_t gen_model_config_bos(const gen_model_config *config);
GEN_API int32_t gen_model_config_num_layers(const gen_model_config *config);
GEN_API int32_t gen_model_config_num_heads(const gen_model_config *config);
GEN_API int32_t gen_model_config_num_kv_heads(const gen_model_config *config);
GEN_API int32_t gen_model_config_head_dim(const gen_model_config *config);
GEN_API int32_t gen_model_config_hidden(const gen_model_config *config);
GEN_API size_t gen_model_metadata_count(const gen_model *model);
GEN_API const char *gen_model_metadata_key(const gen_model *model, size_t index);
GEN_API gen_status gen_model_metadata_value(const gen_model *model, const char *key, char *buf,
                                            size_t capacity, size_t *n, gen_error *error);
GEN_API gen_status gen_model_describe(const gen_model *model, char *buf, size_t capacity, size_t *n,
                                      gen_error *error);
GEN_API gen_status gen_model_memory(const gen_model *model, const char *key, size_t *bytes,
                                    gen_error *error);
GEN_API const gen_tokenizer *gen_model_tokenizer(const gen_model *model);
GEN_API gen_status gen_model_forward(const gen_model *model, const int32_t *tokens, size_t n,
                                     kv_cache *cache, float *logits, size_t capacity,
                                     gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_RESULT_H
#define GENERATE_RESULT_H
#ifdef __cplusplus
extern "C" {
#endif
GEN_API const char *gen_result_text(const gen_result *result, size_t *n);
GEN_API const int32_t *gen_result_tokens(const gen_result *result, size_t *n);
GEN_API const float *gen_result_logprobs(const gen_result *result, size_t *n);
GEN_API size_t gen_result_top_logprobs(const gen_result *result, size_t index, const int32_t **ids,
                                       const float **logprobs);
GEN_API int32_t gen_result_finish_reason(const gen_result *result);
GEN_API gen_status gen_result_usage(const gen_result *result, const char *key, int64_t *value,
                                    gen_error *error);
GEN_API gen_status gen_result_timings(const gen_result *result, const char *key, double *seconds,
                                      gen_error *error);
GEN_API const gen_error *gen_result_error(const gen_result *result);
GEN_API int32_t gen_result_user_code(const gen_result *result);
GEN_API void gen_result_free(gen_result *result);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_SAMPLING_H
#define GENERATE_SAMPLING_H
#ifdef __cplusplus
extern "C" {
#endif
GEN_API gen_status gen_sampling_new(gen_sampling **out, gen_error *error);
GEN_API void gen_sampling_free(gen_sampling *sampling);
GEN_API gen_status gen_sampling_set_temperature(gen_sampling *sampling, double temperature,
                                                gen_error *error);
GEN_API gen_status gen_sampling_set_top_k(gen_sampling *sampling, int32_t k, gen_error *error);
GEN_API gen_status gen_sampling_set_typical_p(gen_sampling *sampling, double p, gen_error *error);
GEN_API gen_status gen_sampling_set_top_p(gen_sampling *sampling, double p, gen_error *error);
GEN_API gen_status gen_sampling_set_min_p(gen_sampling *sampling, double p, gen_error *error);
GEN_API gen_status gen_sampling_set_repetition_penalty(gen_sampling *sampling, double penalty,
                                                       gen_error *error);
GEN_API gen_status gen_sampling_set_compound_penalty(gen_sampling *sampling, int32_t compound,
                                                     gen_error *error);
GEN_API gen_status gen_sampling_set_frequency_penalty(gen_sampling *sampling, double penalty,
                                                      gen_error *error);
GEN_API gen_status gen_sampling_set_presence_penalty(gen_sampling *sampling, double penalty,
                                                     gen_error *error);
GEN_API gen_status gen_sampling_set_penalize_prompt(gen_sampling *sampling, int32_t penalize,
                                                    gen_error *error);
GEN_API gen_status gen_sampling_set_penalty_window(gen_sampling *sampling, int32_t tokens,
                                                   gen_error *error);
GEN_API gen_status gen_sampling_set_max_new_tokens(gen_sampling *sampling, int32_t tokens,
                                                   gen_error *error);
GEN_API gen_status gen_sampling_set_seed(gen_sampling *sampling, uint64_t seed, gen_error *error);
GEN_API gen_status gen_sampling_set_logprobs(gen_sampling *sampling, int32_t count,
                                             gen_error *error);
GEN_API gen_status gen_sampling_set_logit_bias(gen_sampling *sampling, int32_t token, float bias,
                                               gen_error *error);
GEN_API gen_status gen_sampling_set_ignore_eos(gen_sampling *sampling, int32_t ignore,
                                               gen_error *error);
GEN_API gen_status gen_sampling_add_stop_token(gen_sampling *sampling, int32_t token,
                                               gen_error *error);
GEN_API gen_status gen_sampling_add_stop_string(gen_sampling *sampling, const char *text,
                                                size_t len, gen_error *error);
GEN_API gen_status gen_sampling_set_cancel(gen_sampling *sampling, gen_cancel *cancel,
                                           gen_error *error);
GEN_API gen_status gen_sampling_set(gen_sampling *sampling, const char *key, const char *value,
                                    gen_error *error);
GEN_API gen_status gen_sampling_describe(const gen_sampling *sampling, char *buf, size_t capacity,
                                         size_t *n, gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_SESSION_H
#define GENERATE_SESSION_H
#ifdef __cplusplus
extern "C" {
#endif
GEN_API gen_status gen_session_new(gen_generator *generator, gen_session **out, gen_error *error);
GEN_API gen_status gen_session_generate(gen_session *session, const char *prompt, size_t len,
                                        const gen_sampling *sampling, gen_result **result,
                                        gen_error *error);
GEN_API gen_status gen_session_generate_stream(gen_session *session, const char *prompt, size_t len,
                                               const gen_sampling *sampling,
                                               gen_token_callback callback, void *user,
                                               gen_result **result, gen_error *error);
GEN_API gen_status gen_session_append(gen_session *session, const char *text, size_t len,
                                      gen_error *error);
GEN_API gen_status gen_session_append_tokens(gen_session *session, const int32_t *tokens,
                                             size_t count, gen_error *error);
GEN_API gen_status gen_session_score(gen_session *session, const char *text, size_t len,
                                     float *logprobs, size_t capacity, size_t *n,
                                     gen_error *error);
GEN_API gen_status gen_session_tokens(const gen_session *session, int32_t *ids, size_t capacity,
                                      size_t *n, gen_error *error);
GEN_API int32_t gen_session_length(const gen_session *session);
GEN_API gen_status gen_session_truncate(gen_session *session, int32_t n, gen_error *error);
GEN_API gen_status gen_session_reset(gen_session *session, gen_error *error);
GEN_API gen_status gen_session_fork(const gen_session *session, gen_session **out,
                                    gen_error *error);
GEN_API gen_status gen_session_save(const gen_session *session, const char *path, gen_error *error);
GEN_API gen_status gen_session_save_buffer(const gen_session *session, void *buf, size_t capacity,
                                           size_t *n, gen_error *error);
GEN_API gen_status gen_session_load(gen_session *session, const char *path, gen_error *error);
GEN_API gen_status gen_session_load_buffer(gen_session *session, const void *data, size_t size,
                                           gen_error *error);
GEN_API void gen_session_cancel(gen_session *session);
GEN_API gen_status gen_session_set_cancel(gen_session *session, gen_cancel *cancel, gen_error *error);
GEN_API double gen_session_progress(const gen_session *session);
GEN_API const kv_cache *gen_session_cache(const gen_session *session);
GEN_API void gen_session_free(gen_session *session);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_SSM_STATE_H
#define GENERATE_SSM_STATE_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_ssm_state gen_ssm_state;
GEN_API gen_status gen_ssm_state_new(int32_t layers, int32_t d_inner, int32_t d_state,
                                     gen_ssm_state **out, gen_error *error);
GEN_API gen_status gen_ssm_state_new_batch(int32_t layers, int32_t batch, int32_t d_inner,
                                           int32_t d_state, gen_ssm_state **out, gen_error *error);
GEN_API gen_status gen_ssm_state_get_layer(const gen_ssm_state *state, int32_t layer, float *h,
                                           size_t capacity, int32_t shape[3], gen_error *error);
GEN_API gen_status gen_ssm_state_set_layer(gen_ssm_state *state, int32_t layer, const float *h,
                                           int32_t batch, int32_t d_inner, int32_t d_state,
                                           gen_error *error);
GEN_API gen_status gen_ssm_state_snapshot(gen_ssm_state *state, int64_t *snapshot,
                                          gen_error *error);
GEN_API gen_status gen_ssm_state_restore(gen_ssm_state *state, int64_t snapshot, gen_error *error);
GEN_API gen_status gen_ssm_state_reset(gen_ssm_state *state, gen_error *error);
GEN_API int64_t gen_ssm_state_memory_bytes(const gen_ssm_state *state);
GEN_API void gen_ssm_state_free(gen_ssm_state *state);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_STREAM_H
#define GENERATE_STREAM_H
#ifdef __cplusplus
extern "C" {
#endif
GEN_API gen_status gen_stream_open(gen_session *session, const char *prompt, size_t len,
                                   const gen_sampling *sampling, gen_stream **out,
                                   gen_error *error);
GEN_API gen_status gen_stream_next(gen_stream *stream, const gen_token **token, gen_error *error);
enum {
  GEN_STREAM_PENDING = 0,
  GEN_STREAM_TOKEN = 1,
  GEN_STREAM_END = 2
};
GEN_API gen_status gen_stream_poll(gen_stream *stream, const gen_token **token, int32_t *state,
                                   gen_error *error);
GEN_API gen_status gen_stream_result(gen_stream *stream, gen_result **result, gen_error *error);
GEN_API void gen_stream_close(gen_stream *stream);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_TOKENIZER_H
#define GENERATE_TOKENIZER_H
#ifdef __cplusplus
extern "C" {
#endif
enum {
  GEN_ENCODE_ADD_BOS = 1,
  GEN_ENCODE_PARSE_SPECIAL = 2
};
enum {
  GEN_SPECIAL_BOS = 0,
  GEN_SPECIAL_EOS = 1,
  GEN_SPECIAL_UNK = 2,
  GEN_SPECIAL_PAD = 3,
  GEN_SPECIAL_SEP = 4,
  GEN_SPECIAL_EOT = 5
};
GEN_API gen_status gen_tokenizer_load(const char *path, gen_tokenizer **out, gen_error *error);
GEN_API gen_status gen_tokenizer_encode(const gen_tokenizer *tokenizer, const char *text,
                                        size_t len, uint32_t flags, int32_t *ids, size_t capacity,
                                        size_t *n, gen_error *error);
GEN_API gen_status gen_tokenizer_decode(const gen_tokenizer *tokenizer, const int32_t *ids,
                                        size_t count, char *buf, size_t capacity, size_t *n,
                                        gen_error *error);
GEN_API gen_status gen_tokenizer_piece(const gen_tokenizer *tokenizer, int32_t id, char *buf,
                                       size_t capacity, size_t *n, gen_error *error);
GEN_API int32_t gen_tokenizer_vocab_size(const gen_tokenizer *tokenizer);
GEN_API int32_t gen_tokenizer_special(const gen_tokenizer *tokenizer, int32_t kind);
GEN_API void gen_tokenizer_free(gen_tokenizer *tokenizer);
GEN_API gen_status gen_chat_new(gen_chat **out, gen_error *error);
GEN_API gen_status gen_chat_add(gen_chat *chat, const char *role, const char *text, size_t len,
                                gen_error *error);
GEN_API gen_status gen_chat_format(const gen_model *model, const gen_chat *chat,
                                   int32_t add_generation_prompt, char *buf, size_t capacity,
                                   size_t *n, gen_error *error);
GEN_API void gen_chat_free(gen_chat *chat);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_TRACE_H
#define GENERATE_TRACE_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct gen_tracer gen_tracer;
GEN_API gen_status gen_tracer_new(gen_tracer **out, gen_error *error);
GEN_API size_t gen_tracer_op_count(const gen_tracer *tracer);
GEN_API gen_status gen_tracer_op(const gen_tracer *tracer, size_t index, char *buf, size_t capacity,
                                 size_t *n, gen_error *error);
GEN_API gen_status gen_tracer_write_dot(const gen_tracer *tracer, const char *path,
                                        gen_error *error);
GEN_API gen_status gen_tracer_write_json(const gen_tracer *tracer, const char *path,
                                         gen_error *error);
GEN_API void gen_tracer_free(gen_tracer *tracer);
GEN_API gen_status gen_options_set_tracer(gen_options *options, const gen_tracer *tracer,
                                          gen_error *error);
GEN_API gen_status kv_cache_tracing_new(kv_cache *inner, const gen_tracer *tracer, kv_cache **out,
                                        gen_error *error);
#ifdef __cplusplus
}
#endif
#endif
#ifndef GENERATE_GENERATE_H
#define GENERATE_GENERATE_H
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that hold settings: every setter, and the description afterwards tells that each came
 * through once. */
#include "sweep.h"

static char buf[16384];
static size_t n;

static gen_status no_edit(void* user, float* logits, size_t width, const int32_t* tokens,
                          size_t count, size_t said, gen_error* error) {
  (void)user, (void)logits, (void)width, (void)tokens, (void)count, (void)said, (void)error;
  return GEN_OK;
}

static void sampling(const void* with) {
  (void)with;
  gen_sampling* s = NULL;
  gen_cancel* cancel = NULL;
  MAKE(s, gen_sampling_new(&s, E));
  MAKE(cancel, gen_cancel_new(&cancel, E));
  TRY(gen_sampling_set_temperature(s, 0.5, E));
  TRY(gen_sampling_set_top_k(s, 5, E));
  TRY(gen_sampling_set_typical_p(s, 0.5, E));
  TRY(gen_sampling_set_top_p(s, 0.5, E));
  TRY(gen_sampling_set_min_p(s, 0.01, E));
  TRY(gen_sampling_set_repetition_penalty(s, 1.5, E));
  TRY(gen_sampling_set_compound_penalty(s, 1, E));
  TRY(gen_sampling_set_frequency_penalty(s, 0.5, E));
  TRY(gen_sampling_set_presence_penalty(s, 0.5, E));
  TRY(gen_sampling_set_penalize_prompt(s, 1, E));
  TRY(gen_sampling_set_penalty_window(s, 20, E));
  TRY(gen_sampling_set_max_new_tokens(s, 20, E));
  TRY(gen_sampling_set_top_n_sigma(s, 1.5, E));
  TRY(gen_sampling_set_xtc(s, 0.5, 0.2, E));
  TRY(gen_sampling_set_mirostat(s, 5, 0.2, E));
  TRY(gen_sampling_set_dry(s, 0.5, 1.5, 3, 20, E));
  TRY(gen_sampling_set_min_new_tokens(s, 2, E));
  TRY(gen_sampling_set_gumbel(s, 1, E));
  TRY(gen_sampling_set_logits_callback(s, no_edit, NULL, E));
  TRY(gen_sampling_set_seed(s, 20, E));
  TRY(gen_sampling_set_logprobs(s, 2, E));
  TRY(gen_sampling_set_ignore_eos(s, 1, E));
  TRY(gen_sampling_set_fit_grammar(s, 1, E));
  for (int32_t i = 0; i < 12; ++i) {
    TRY(gen_sampling_set_logit_bias(s, i, 1.0F, E));
    TRY(gen_sampling_add_stop_token(s, i, E));
    TRY(gen_sampling_add_stop_string(s, "a string that is longer than short ones",
                                     GEN_NUL_TERMINATED, E));
  }
  TRY(gen_sampling_add_dry_breaker(s, "a breaker that is longer than short ones",
                                   GEN_NUL_TERMINATED, E));
  TRY(gen_sampling_add_dry_breaker(s, "another breaker that is longer than short ones",
                                   GEN_NUL_TERMINATED, E));
  TRY(gen_sampling_set(s, "stop_string", "another string that is longer than short ones", E));
  TRY(gen_sampling_set_adapter(s, "an adapter whose name is longer than short ones", E));
  TRY(gen_sampling_add_adapter(s, "another adapter whose name is longer than short ones", 0.5F, E));
  TRY(gen_sampling_set(s, "temperature", "0.25", E));
  TRY(gen_sampling_set_cancel(s, cancel, E));
  TRY(gen_sampling_describe(s, buf, sizeof buf, &n, E));
  SAME(buf, n);
  FREE(gen_cancel_free(cancel));
  FREE(gen_sampling_free(s));
}

static void options(const void* with) {
  (void)with;
  gen_options* o = NULL;
  kv_cache_tier_config* tiers = NULL;
  MAKE(o, gen_options_new(&o, E));
  TRY(gen_options_set_kv_dtype(o, "fp16/q4", E));
  TRY(gen_options_set_kv_types(o, "q4", "fp16", E));
  TRY(gen_options_set_kv_key_form(o, "rotated", E));
  TRY(gen_options_set_paged_kv(o, 8, 16, E));
  TRY(gen_options_set_prefix_cache(o, 8, E));
  TRY(gen_options_set_compressed_kv(o, 8, E));
  TRY(gen_options_set_context_policy(o, "shift", 4, E));
  TRY(gen_options_set_state_snapshot_every(o, 64, E));
  TRY(gen_options_set_state_snapshot_budget(o, 8, E));
  TRY(gen_options_set_prefill_chunk(o, 8, E));
  TRY(gen_options_set_max_batch(o, 8, E));
  TRY(gen_options_set_max_queue(o, 8, E));
  TRY(gen_options_set_fairness(o, 8, E));
  TRY(gen_options_set_deterministic(o, 1, E));
  TRY(gen_options_set_prompt_lookup(o, 3, 8, E));
  TRY(gen_options_set_speculative_draft(o, NULL, 4, E));
  TRY(gen_options_set_eagle(o, "a head that is there for nobody, far away", E));
  MAKE(tiers, kv_cache_tier_config_new(&tiers, E));
  TRY(kv_cache_tier_config_set_num_layers(tiers, 3, E));
  TRY(kv_cache_tier_config_set_max_seq_len(tiers, 3, E));
  TRY(kv_cache_tier_config_set_chunk_size(tiers, 3, E));
  TRY(kv_cache_tier_config_set_demote_threshold(tiers, 3, E));
  TRY(kv_cache_tier_config_set_promote_threshold(tiers, 3, E));
  TRY(kv_cache_tier_config_set_cold_dir(tiers, "a folder that is there for nobody, far away", E));
  TRY(kv_cache_tier_config_set_store_id(tiers, "a-name-of-more-than-a-few-letters", E));
  TRY(kv_cache_tier_config_set_warm_form(tiers, "q4", E));
  TRY(kv_cache_tier_config_set_hot_memory(tiers, 3, E));
  TRY(kv_cache_tier_config_set_hot_blocks(tiers, 3, E));
  TRY(kv_cache_tier_config_set_block_size(tiers, 3, E));
  TRY(kv_cache_tier_config_set_prefetch_layers(tiers, 1, E));
  TRY(kv_cache_tier_config_set_allocator(tiers, &failing_table, E));
  TRY(kv_cache_tier_config_set(tiers, "cold_dir", "another folder that is there for nobody", E));
  TRY(kv_cache_tier_config_describe(tiers, buf, sizeof buf, &n, E));
  SAME(buf, n);
  kv_cache_tier_config* session_tiers = NULL;
  MAKE(session_tiers, kv_cache_tier_config_new(&session_tiers, E));
  TRY(kv_cache_tier_config_set_cold_dir(session_tiers,
                                        "a folder that is there for nobody, far away", E));
  TRY(gen_options_set_tiered_kv(o, session_tiers, E));
  TRY(gen_options_set(o, "tiered_kv", "a folder that is there for nobody,12", E));
  TRY(gen_options_describe(o, buf, sizeof buf, &n, E));
  SAME(buf, n);
  FREE(kv_cache_tier_config_free(tiers));
  FREE(kv_cache_tier_config_free(session_tiers));
  FREE(gen_options_free(o));
}

static int go_on(void* user, double share) {
  (void)user;
  (void)share;
  return 0;
}

static void model_options(const void* with) {
  (void)with;
  gen_model_options* o = NULL;
  gen_gpu_allocator* gpu = NULL;
  gen_thread_pool* pool = NULL;
  MAKE(o, gen_model_options_new(&o, E));
  TRY(gen_model_options_set_backend(o, "cpu", E));
  TRY(gen_model_options_set_device(o, 0, E));
  TRY(gen_model_options_set_gpu_layers(o, GEN_GPU_LAYERS_AUTO, E));
  TRY(gen_model_options_set_gpu_expert_layers(o, GEN_GPU_LAYERS_AUTO, E));
  TRY(gen_model_options_set_threads(o, 2, E));
  MAKE(pool, gen_thread_pool_new(2, NULL, 0, &pool, E));
  TRY(gen_model_options_set_thread_pool(o, pool, E));
  TRY(gen_model_options_set_allocator(o, &failing_table, E));
  TRY(gen_model_options_set_allocator(o, NULL, E));
  MAKE(gpu, gen_gpu_allocator_host(&gpu, E));
  TRY(gen_model_options_set_gpu_allocator(o, gpu, E));
  FREE(gen_gpu_allocator_release(gpu));
  TRY(gen_model_options_set_mmap(o, 1, E));
  TRY(gen_model_options_set_mlock(o, 0, E));
  TRY(gen_model_options_set_progress(o, go_on, NULL, E));
  TRY(gen_model_options_set_max_seq_len(o, 8, E));
  TRY(gen_model_options_set_check_tensors(o, 1, E));
  TRY(gen_model_options_set(o, "backend", "cpu", E));
  TRY(gen_model_options_describe(o, buf, sizeof buf, &n, E));
  SAME(buf, n);
  FREE(gen_thread_pool_free(pool));
  FREE(gen_model_options_free(o));
}

static void requests(const void* with) {
  (void)with;
  gen_request* request = NULL;
  gen_sampling* s = NULL;
  const int32_t tokens[] = {1, 2, 3, 4, 5};
  MAKE(request, gen_request_new(&request, E));
  MAKE(s, gen_sampling_new(&s, E));
  TRY(gen_sampling_add_stop_string(s, "a string that is longer than short ones", GEN_NUL_TERMINATED,
                                   E));
  TRY(gen_request_set_prompt(request, "a prompt that is longer than short ones", GEN_NUL_TERMINATED,
                             E));
  TRY(gen_request_set_prompt_tokens(request, tokens, 5, E));
  TRY(gen_request_set_sampling(request, s, E));
  TRY(gen_request_set_priority(request, 1, E));
  TRY(gen_request_set_deadline_ms(request, 1000, E));
  FREE(gen_sampling_free(s));
  FREE(gen_request_free(request));
}

const scenario setter_scenarios[] = {{"sampling", NULL, sampling, NULL, NULL},
                                     {"options", NULL, options, NULL, NULL},
                                     {"model options", NULL, model_options, NULL, NULL},
                                     {"requests", NULL, requests, NULL, NULL},
                                     {0}};

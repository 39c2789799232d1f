// SPDX-License-Identifier: Apache-2.0
// support.h: what borrowed memory looks like in other languages.
%{
#include "support.h"
%}
gen_status gen_binding_stream_next(gen_stream *stream, int64_t *event, void *text, size_t text_capacity, gen_error *error);
gen_status gen_binding_stream_poll(gen_stream *stream, int64_t *event, void *text, size_t text_capacity, gen_error *error);
gen_status gen_binding_eagle_new_tensors(const gen_model *target, int32_t hidden, int32_t vocab_size, const float *norm_weight, const float *norm_bias, const float *fc1_weight, const float *fc2_weight, const float *lm_head, int32_t length, const gen_options *options, gen_eagle **out, gen_error *error);
void gen_binding_piece(int64_t pieces, size_t index, int64_t *event);
void gen_binding_copy(int64_t address, size_t n, void *out);
int32_t gen_binding_result_code(const gen_result *result);
const char *gen_binding_result_message(const gen_result *result);
gen_status gen_binding_view(const kv_cache *cache, int32_t layer, int64_t *fields, gen_error *error);
gen_status gen_binding_gpu_append_device(kv_cache *cache, int32_t layer, int64_t k, int64_t v, gen_error *error);
gen_status gen_binding_gpu_append_stream(kv_cache *cache, int32_t layer, int64_t k, int64_t v, int64_t stream, gen_error *error);
gen_status gen_binding_gpu_pointers(const kv_cache *cache, int32_t layer, int64_t *fields, gen_error *error);
gen_status gen_binding_gpu_pointer_arrays(kv_cache *cache, int64_t *fields, gen_error *error);
gen_status gen_binding_full_buffer(const kv_cache *cache, int32_t layer, int64_t *fields, gen_error *error);
gen_status gen_binding_token_mask(const gen_grammar *grammar, const char *text, size_t len, const uint8_t *strings, const size_t *lengths, size_t count, uint32_t *bits, size_t words, gen_error *error);
gen_status gen_binding_chat_answer(gen_chat_session *chat_session, const gen_sampling *sampling, gen_result **result, gen_error *error);
gen_status gen_binding_chat_open_answer(gen_chat_session *chat_session, const gen_sampling *sampling, gen_stream **out, gen_error *error);
gen_status gen_binding_agent_go_on(gen_agent *agent, gen_agent_callback callback, void *user, gen_result **result, gen_error *error);
gen_status gen_binding_agent_step(gen_agent *agent, gen_agent_callback callback, void *user, int32_t *finished, gen_error *error);
int64_t gen_binding_desk_new(void);
int64_t gen_binding_desk_tool_function(void);
int64_t gen_binding_desk_event_function(void);
void gen_binding_desk_next(int64_t desk, int64_t *fields);
void gen_binding_desk_answer(int64_t matter, const char *text, size_t len, int32_t failed);
int32_t gen_binding_desk_stopped(int64_t matter);
void gen_binding_desk_close(int64_t desk);
gen_status gen_binding_symbol(const char *library, const char *name, int64_t *address, gen_error *error);
int64_t gen_binding_progress_function(void);
int64_t gen_binding_progress_new(void);
void gen_binding_progress_free(int64_t progress);
void gen_binding_progress_stop(int64_t progress);
double gen_binding_progress_share(int64_t progress);
gen_status gen_binding_check(gen_error *error);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_result: the outcome of a generation, including one that was stopped or failed halfway.
 * Immutable; getters return borrowed data, valid until gen_result_free.
 */
#ifndef GENERATE_RESULT_H
#define GENERATE_RESULT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The generated text, NUL-terminated, without prompt, stop token and stop string. Whole characters
 * only; see gen_session_generate for a character that a limit cuts.
 *
 * @param n  receives its length in bytes; may be NULL.
 * @return borrowed text; NULL for NULL.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *gen_result_text(const gen_result *result, size_t *n);

/**
 * The tokens drawn, without a stop token.
 *
 * @param n  receives their number; may be NULL.
 * @return borrowed ids; NULL for NULL or none.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const int32_t *gen_result_tokens(const gen_result *result, size_t *n);

/**
 * Log-probabilities of the tokens drawn, if asked for by gen_sampling_set_logprobs.
 *
 * @param n  receives their number, that of the tokens or 0; may be NULL.
 * @return borrowed values; NULL for NULL or none.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const float *gen_result_logprobs(const gen_result *result, size_t *n);

/**
 * The most probable tokens at a step, if asked for by gen_sampling_set_logprobs with a count.
 *
 * @param index     step, in [0, number of tokens).
 * @param ids       receives borrowed token ids, most probable first.
 * @param logprobs  receives their borrowed log-probabilities.
 * @return their number; 0 for NULL, a step out of range, or none.
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t gen_result_top_logprobs(const gen_result *result, size_t index, const int32_t **ids,
                                       const float **logprobs);

/**
 * Why the generation ended, GEN_FINISH_…; GEN_FINISH_NONE for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_result_finish_reason(const gen_result *result);

/**
 * Token counts: "prompt" (tokens of the call's prompt and those appended to the session since its
 * last generating call, with begin-of-sequence), "prompt_cached" (of these, found in a prefix
 * cache), "prompt_evaluated" (tokens that ran in this call before the first one was drawn: those of
 * the prompt that were not cached or appended before; earlier ones of the session that ran again,
 * because its state went back to a snapshot (gen_options_set_state_snapshot_every), layers no longer
 * had the window that a cut goes back to (the options "window_rewind" and "window_copies"), a context
 * shift kept none of their keys and values, or a pool took its blocks; and, of a session that was not
 * empty, the last token that it held, which runs with what follows it. So it may exceed
 * "prompt", and after a context shift or such a loss even the tokens of the session), "completion",
 * "dropped" (oldest tokens of the session that were dropped to make room, see
 * gen_options_set_context_policy; in a chat session also those of the turns that the call left out and the
 * answer before still had), "drafted" (draft tokens that were verified, see
 * gen_options_set_prompt_lookup), "accepted" (of these, accepted by the model). Not a count:
 * "grammar_complete", 1 if the drawn tokens are a member of the call's grammar (with
 * GEN_FINISH_LENGTH the limit then cut a text that could have continued), 0 if they are only the
 * beginning of one, -1 for a call without a grammar.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; then *value is 0.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_result_usage(const gen_result *result, const char *key, int64_t *value,
                                    gen_error *error);

/**
 * The drafts that were verified, as JSON, one object for each pass that had some:
 * [{"index":3,"drafter":"suffix","tokens":[7,8,9],"parents":[-1,0,1],"grades":[0,0,1],"accepted":[0,1]}].
 * "index" is that of the first drafted token in gen_result_tokens; passes without drafts are not listed. "drafter" is
 * lookup, suffix, head, model or layers. A token follows the one at "parents" in the same list, or the text if that is -1.
 * "grades" are the drafter's own classes of confidence: tokens of one grade are right about equally often. "accepted"
 * lists the tokens that the model confirmed, by their place in "tokens", in order; the last may be a stop token. After
 * the last accepted one follows a token of the model's own.
 *
 * @param buf       [capacity] bytes, receives the text with a NUL; NULL to ask for the size.
 * @param capacity  of buf.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if result or n is NULL;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_OUT_OF_MEMORY, also if a pass had no memory for its record, which is then incomplete.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_result_drafts(const gen_result *result, char *buf, size_t capacity, size_t *n, gen_error *error);

/**
 * What a chat session read in the answer, as JSON:
 * {"text":"…","reasoning":"…","calls":[{"id":"call_0","name":"weather","arguments":{"city":"Oslo"}}],
 *  "faults":[{"at":120,"what":"…"}]}.
 * No other call of the conversation has the same id. Faults say what looked like a call but is none, and at which byte of
 * the answer; its text is part of "text". Of other results, all of the text is "text".
 *
 * @param buf       [capacity] bytes, receives the text with a NUL; NULL to ask for the size.
 * @param capacity  of buf.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if result or n is NULL;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_result_answer(const gen_result *result, char *buf, size_t capacity, size_t *n, gen_error *error);

/**
 * Times in seconds: "prefill", "first_token" (since the call), "decode", "total".
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; then *seconds is 0.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_result_timings(const gen_result *result, const char *key, double *seconds,
                                      gen_error *error);

/**
 * The error that ended the generation, borrowed; NULL if there was none.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API const gen_error *gen_result_error(const gen_result *result);

/**
 * The value with which the token callback stopped the generation; 0 if it did not.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_result_user_code(const gen_result *result);

/**
 * Frees a result; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_result_free(gen_result *result);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_RESULT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_session: one growing sequence with its cache. Each call continues from what the session
 * holds. One thread at a time: a second call while one runs returns GEN_ERROR_BUSY. Only
 * gen_session_cancel, gen_session_progress and gen_session_length may be called at any time.
 * Different sessions run side by side.
 */
#ifndef GENERATE_SESSION_H
#define GENERATE_SESSION_H

#include "base.h"
#include "generator.h"
#include "ssm_state.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes an empty session.
 *
 * @param generator  used and kept alive by the session.
 * @param out        receives the session; free it with gen_session_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    reserves address space for a whole context; pages are allocated as tokens are added. A caller's allocator is
 *          asked for all of it here; with gen_options_set_paged_kv blocks are allocated as tokens are added.
 * Since:   0.1
 */
GEN_API gen_status gen_session_new(gen_generator *generator, gen_session **out, gen_error *error);

/**
 * Adds a prompt and generates. The begin-of-sequence token is put first only when the session is empty.
 *
 * After a stop condition, a cancel or a stop by a callback, the session keeps all committed tokens:
 * also a sampled stop token, and all tokens through the one that completed a stop string. After any
 * other failure it holds what it held before the call.
 *
 * If a limit or a cancel falls between two tokens of one character, the character is left out of
 * the text; the next call returns it whole if it continues with an empty prompt. The same holds for
 * a possible stop string when a callback stops the call or a stream is closed.
 *
 * @param prompt    [len] UTF-8; len may be GEN_NUL_TERMINATED. May be empty when the session is not.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param result    as in gen_generate: may be NULL.
 * @return as gen_generate; GEN_ERROR_BUSY also if the session is in use.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_generate(gen_session *session, const char *prompt, size_t len,
                                        const gen_sampling *sampling, gen_result **result,
                                        gen_error *error);

/**
 * As gen_session_generate, but passes each piece to `callback` as it is generated; see
 * gen_generate_stream.
 *
 * @return as gen_session_generate.
 * Threads: one at a time per session; the callback runs on this thread.
 * Since:   0.1
 */
GEN_API gen_status gen_session_generate_stream(gen_session *session, const char *prompt, size_t len,
                                               const gen_sampling *sampling,
                                               gen_token_callback callback, void *user,
                                               gen_result **result, gen_error *error);

/**
 * Adds text without generating. Begin-of-sequence comes first when the session is empty.
 *
 * Text continues the text before it: "The gold" followed by "en cat" is "The golden cat". It starts
 * afresh where the session is empty or its last token is a special token, such as begin-of-sequence
 * or the end of a turn. Only there do some vocabularies insert a space, which decoding removes, or
 * strip spaces. The same holds for prompts and scored texts.
 *
 * The adapters are those of the session's last generating call; a session that is new,
 * loaded or reset has none.
 *
 * @param text  [len] UTF-8; len may be GEN_NUL_TERMINATED. Empty text does nothing.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_TOKENIZER if the text is not UTF-8;
 *         GEN_ERROR_CONTEXT_FULL if it does not fit; GEN_ERROR_CANCELLED; GEN_ERROR_BUSY; GEN_ERROR_MODEL;
 *         GEN_ERROR_POOL_EXHAUSTED, GEN_ERROR_IO and GEN_ERROR_FORMAT as gen_generate;
 *         GEN_ERROR_OUT_OF_MEMORY. After a cancel, the tokens evaluated so far stay; after any other failure the
 *         session is unchanged.
 * Threads: one at a time per session.
 * Cost:    runs the model over the tokens before returning.
 * Since:   0.1
 */
GEN_API gen_status gen_session_append(gen_session *session, const char *text, size_t len,
                                      gen_error *error);

/**
 * Adds tokens as they are, without begin-of-sequence.
 *
 * @param tokens  [count] token ids, copied; 0 tokens is allowed and does nothing.
 * @return as gen_session_append, without GEN_ERROR_TOKENIZER; GEN_ERROR_OUT_OF_RANGE for an id outside the vocabulary.
 * Threads: one at a time per session.
 * Cost:    runs the model over the tokens before returning.
 * Since:   0.1
 */
GEN_API gen_status gen_session_append_tokens(gen_session *session, const int32_t *tokens,
                                             size_t count, gen_error *error);

/**
 * Log-probabilities of a text's tokens as a continuation of the session's tokens, with the adapters
 * of gen_session_append. The session is unchanged.
 *
 * Begin-of-sequence is put before the text when the session is empty. The first token of a text
 * with nothing before it has no probability; its value is 0.
 *
 * @param text      [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param logprobs  [capacity] receives one value for each token of the text, or NULL to ask their number.
 * @param n         receives the number of tokens; also when the buffer is too small.
 * @return as gen_session_append; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per session.
 * Cost:    runs the model over the tokens. Asking for their number, or a buffer that is too small, only encodes the text.
 * Since:   0.1
 */
GEN_API gen_status gen_session_score(gen_session *session, const char *text, size_t len,
                                     float *logprobs, size_t capacity, size_t *n,
                                     gen_error *error);

/**
 * Copies the tokens that the session holds.
 *
 * @param ids  [capacity] receives the ids, or NULL to ask their number.
 * @param n    receives their number; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_RANGE if the buffer is
 *         too small.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_tokens(const gen_session *session, int32_t *ids, size_t capacity,
                                      size_t *n, gen_error *error);

/**
 * Number of tokens the session holds, begin-of-sequence included; 0 for NULL. May lag a running step.
 *
 * Threads: any, also while the session is in use.
 * Since:   0.1
 */
GEN_API int32_t gen_session_length(const gen_session *session);

/**
 * Keeps the first `n` tokens; does nothing if the session holds no more than that.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative n; GEN_ERROR_BUSY;
 *         GEN_ERROR_UNSUPPORTED for n above 0 and a custom model whose state cannot be rolled back.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_truncate(gen_session *session, int32_t n, gen_error *error);

/**
 * Empties the session and clears a pending cancel. Memory is kept for reuse.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_reset(gen_session *session, gen_error *error);

/**
 * Makes an independent session that continues from the same tokens. With gen_options_set_paged_kv
 * or _tiered_kv the two share their common part until one of them writes to it; otherwise the cache
 * is copied.
 *
 * @param session  unchanged.
 * @param out      receives the new session; free it with gen_session_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY; GEN_ERROR_UNSUPPORTED for a custom
 *         model whose state cannot be copied; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_fork(const gen_session *session, gen_session **out,
                                    gen_error *error);

/**
 * Saves tokens and cache to a file. gen_session_load continues from it without evaluating the
 * tokens again, in this process or another, bit-identically to a session that was never saved.
 * docs/state-format.md describes the format.
 *
 * @param path  of the file; it appears whole or not at all, and replaces an existing one, whose permissions it keeps.
 *              A new file can be read only by this user (mode 0600), because it holds the text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY; GEN_ERROR_IO naming the path;
 *         GEN_ERROR_IO and GEN_ERROR_FORMAT of a tiered cache;
 *         GEN_ERROR_UNSUPPORTED for a custom model with a state; GEN_ERROR_OUT_OF_MEMORY.
 *         The session is unchanged.
 * Threads: one at a time per session.
 * Cost:    writes the tokens and what the cache holds.
 * Since:   0.1
 */
GEN_API gen_status gen_session_save(const gen_session *session, const char *path, gen_error *error);

/**
 * As gen_session_save, but to memory.
 *
 * @param buf  [capacity] bytes, receives the state, or NULL to ask for its size.
 * @param n    receives the size in bytes; also when the buffer is too small.
 * @return as gen_session_save; GEN_ERROR_OUT_OF_RANGE if the buffer is too small, which is then untouched.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_save_buffer(const gen_session *session, void *buf, size_t capacity,
                                           size_t *n, gen_error *error);

/**
 * Restores a saved session. Everything is checked before anything is changed.
 *
 * @param session  an empty one, of a generator with the same model, kv types and key form; how memory is allocated
 *                 (gen_options_set_paged_kv) may differ.
 * @param path     of the file.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, or a state of another model or another kind of cache;
 *         GEN_ERROR_BUSY;
 *         GEN_ERROR_IO naming the path, also if the file changes while it is read, or for the file of a tiered cache;
 *         GEN_ERROR_FORMAT if the file is damaged or is no saved session;
 *         GEN_ERROR_STATE if the session is not empty;
 *         GEN_ERROR_CONTEXT_FULL if the context is too short for it;
 *         GEN_ERROR_POOL_EXHAUSTED, GEN_ERROR_OUT_OF_MEMORY, GEN_ERROR_UNSUPPORTED as gen_session_save.
 *         On any failure the session is as it was.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_load(gen_session *session, const char *path, gen_error *error);

/**
 * As gen_session_load, but from memory.
 *
 * @param data  [size] bytes as gen_session_save_buffer gave them; only read during the call.
 * @return as gen_session_load.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_load_buffer(gen_session *session, const void *data, size_t size,
                                           gen_error *error);

/**
 * Stops the running call: one that generates, appends or scores. If none runs, the next generating
 * call ends at once, whatever is appended or scored before it. One atomic store.
 *
 * Threads: any, also while the session is in use, also from a signal handler. NULL does nothing.
 * Since:   0.1
 */
GEN_API void gen_session_cancel(gen_session *session);

/**
 * Sets a flag that stops gen_session_append, _append_tokens and _score of this session while it is
 * raised. Unlike gen_session_cancel it cannot hit a later call by mistake: set one before a call,
 * and NULL after it. Generating calls have theirs in their sampling, see gen_sampling_set_cancel.
 *
 * @param cancel  shared, may be freed before the session; NULL (the default) for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for a NULL session; GEN_ERROR_BUSY.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_session_set_cancel(gen_session *session, gen_cancel *cancel, gen_error *error);

/**
 * Fraction of the current prompt that has been evaluated, 0 to 1; 1 when none is being evaluated; 0
 * for NULL.
 *
 * Threads: any, also while the session is in use.
 * Since:   0.1
 */
GEN_API double gen_session_progress(const gen_session *session);

/**
 * The session's cache, for reading with kv_cache_get and the getters; it is busy whenever the
 * session is.
 *
 * @return borrowed until the session is freed; NULL for NULL.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API const kv_cache *gen_session_cache(const gen_session *session);

/**
 * The state that the session's model keeps beside keys and values, as ssm_state.h describes it: its
 * layers can be read, and the session can go back to snapshots of it. It is busy whenever the
 * session is. A fork has one of its own, without snapshots.
 *
 * @return borrowed until the session is freed, always the same; NULL for NULL, and for a model without such a state.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_ssm_state *gen_session_ssm_state(gen_session *session);

/**
 * Frees the session. Returns without waiting: a call that still runs on it finishes first, and
 * inside a callback the free takes effect after the callback's call. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_session_free(gen_session *session);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_SESSION_H */

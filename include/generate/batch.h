/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_request: one of many generations that a single call runs together. Each has its own prompt
 * and sampling, and its own result or error; their tokens are computed in shared steps. Requests of
 * several threads and plain gen_generate calls share steps without this header: it serves a program
 * that has many prompts and one thread.
 */
#ifndef GENERATE_BATCH_H
#define GENERATE_BATCH_H

#include "base.h"
#include "generator.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A prompt and how to continue it. */
typedef struct gen_request gen_request;

/**
 * As gen_token_callback, for the request at `index` of the call. Non-zero stops that request alone;
 * an exception fails it alone.
 */
typedef int (*gen_batch_callback)(void *user, size_t index, const gen_token *token);

/**
 * Makes a request with an empty prompt, default sampling, priority 0 and no deadline.
 *
 * @param out  receives the request; free it with gen_request_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_request_new(gen_request **out, gen_error *error);

/**
 * Frees the request; NULL is fine.
 *
 * Threads: one; not while a call that takes it begins. Calls copy requests.
 * Since:   0.1
 */
GEN_API void gen_request_free(gen_request *request);

/**
 * Sets the prompt, replacing any earlier one.
 *
 * @param prompt  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED. Names of special tokens are plain text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_prompt(gen_request *request, const char *prompt, size_t len,
                                          gen_error *error);

/**
 * Sets the prompt as tokens, used as they are: no begin-of-sequence is added.
 *
 * @param tokens  [count] ids, copied.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or none; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_prompt_tokens(gen_request *request, const int32_t *tokens,
                                                 size_t count, gen_error *error);

/**
 * Sets how tokens are chosen.
 *
 * @param sampling  copied, with its gen_cancel shared; NULL for defaults.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for a NULL request; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_sampling(gen_request *request, const gen_sampling *sampling,
                                            gen_error *error);

/**
 * Sets the priority. If not all requests of a generator fit into a step, those of higher priority
 * go first; a lower one still gets its turn every few steps. If a pool has too few blocks for all,
 * higher priorities get them first, and a lower one waits only for a bounded number of later
 * requests. Results do not depend on it.
 *
 * @param priority  any number; 0 is the default, and the priority of calls that are not batches.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_priority(gen_request *request, int32_t priority,
                                            gen_error *error);

/**
 * Ends the request this many milliseconds after the batch call began, with GEN_ERROR_CANCELLED and
 * the partial result.
 *
 * @param milliseconds  0 (the default) for no deadline.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative number.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_deadline_ms(gen_request *request, int64_t milliseconds,
                                               gen_error *error);

/**
 * Runs all requests together. Each result equals that of gen_generate for the request alone, bit
 * for bit.
 *
 * @param requests  [count] requests, none of them NULL; the same one may occur twice.
 * @param results   [count] receives a result for each request, also for one that failed: gen_result_error returns the
 *                  error, and the text is what was generated before it. Free each with gen_result_free. All NULL on
 *                  failure.
 * @return GEN_OK when every request has its result, whatever it is;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY before anything has begun.
 * Threads: any number at once; requests may be shared.
 * Cost:    at most max_batch requests (gen_options_set_max_batch) have a cache at the same time.
 * Since:   0.1
 */
GEN_API gen_status gen_batch_generate(gen_generator *generator, const gen_request *const *requests,
                                      size_t count, gen_result **results, gen_error *error);

/**
 * As gen_batch_generate, but passes each piece to `callback` as it is generated. Each request has
 * exactly one piece with done set, its last, also one that could not begin. Only a request that the
 * callback stops has no piece after that.
 *
 * @param callback  called on this thread.
 * @return as gen_batch_generate.
 * Threads: any number at once; requests may be shared.
 * Since:   0.1
 */
GEN_API gen_status gen_batch_generate_stream(gen_generator *generator,
                                             const gen_request *const *requests, size_t count,
                                             gen_batch_callback callback, void *user,
                                             gen_result **results, gen_error *error);

/**
 * Generates several texts from one prompt, which is evaluated once, and returns the most probable
 * ones. Text i, from 0, equals that of gen_generate for the prompt with the seed of `sampling` + i,
 * bit for bit; without randomness all are equal.
 *
 * @param prompt    [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param n         number of texts to return, at least 1.
 * @param best_of   number of texts to generate, from n to 128. If it is larger than n, the texts with the highest mean
 *                  log-probability of their tokens are returned, best first. Failed ones take the last places, even if
 *                  they displace others: with n = 1 a failure is the result. If it equals n, all are returned in the
 *                  order of their seeds.
 * @param results   [n] receives the results; gen_result_error of each tells whether it failed. Free each with
 *                  gen_result_free. All NULL on failure.
 * @return GEN_OK when there are results, whatever they are; GEN_ERROR_INVALID_ARGUMENT for NULL and unless
 *         1 <= n <= best_of <= 128; for the prompt as gen_session_append; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any number at once.
 * Cost:    at most max_batch texts have a cache at the same time, in addition to the prompt's.
 * Since:   0.1
 */
GEN_API gen_status gen_generate_n(gen_generator *generator, const char *prompt, size_t len,
                                  const gen_sampling *sampling, int32_t n, int32_t best_of,
                                  gen_result **results, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_BATCH_H */

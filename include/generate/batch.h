/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_request: one of many generations that a single call runs together. Each has a prompt, a sampling of its own, and
 * a result or an error of its own; what they need next of the model is computed in common steps. Requests of several
 * threads and plain gen_generate calls share steps, too, without this: it serves a program that has many prompts and
 * one thread.
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
 * As gen_token_callback, for the request at `index` of the call; non-zero stops that request alone, and an exception
 * fails it alone.
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
 * Threads: one; not while a call begins with it. Calls copy requests.
 * Since:   0.1
 */
GEN_API void gen_request_free(gen_request *request);

/**
 * Sets the prompt, in place of any before.
 *
 * @param prompt  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED. Texts of special tokens are plain text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_prompt(gen_request *request, const char *prompt, size_t len,
                                          gen_error *error);

/**
 * Sets the prompt as tokens, taken as they are: nothing is put first.
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
 * Where not all requests of a generator fit into a step, those of higher priority go first; a lower one still gets
 * its turn every few steps. Where a pool has too few blocks for all, they go to higher priorities first, and a lower one
 * waits for a bounded number of those that came later. Results do not depend on it.
 *
 * @param priority  any number; 0 is the default and what calls other than batches have.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_priority(gen_request *request, int32_t priority,
                                            gen_error *error);

/**
 * Ends the request that many milliseconds after the batch call began: GEN_ERROR_CANCELLED with what there is by then.
 *
 * @param milliseconds  0 (the default) for no deadline.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative number.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_request_set_deadline_ms(gen_request *request, int64_t milliseconds,
                                               gen_error *error);

/**
 * Runs all requests together. Each result is what gen_generate gives for the request alone, bit for bit.
 *
 * @param requests  [count] requests, NULL for none of them; one may be there twice.
 * @param results   [count] receives a result for each request, also for one that failed: gen_result_error tells why
 *                  and its text is what there was by then. Free each with gen_result_free. All NULL on failure.
 * @return GEN_OK when every request has its result, whatever that is;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY before anything has begun.
 * Threads: any number at once; requests may be shared.
 * Cost:    at most max_batch requests (gen_options_set_max_batch) have a cache at the same time.
 * Since:   0.1
 */
GEN_API gen_status gen_batch_generate(gen_generator *generator, const gen_request *const *requests,
                                      size_t count, gen_result **results, gen_error *error);

/**
 * The same, with each piece given to `callback` as it comes. Each request has exactly one piece with done set, its
 * last, also one that could not begin; only one that the callback stops has none after that.
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
 * Generates several texts from one prompt, which is run once, and gives the likeliest of them. Text i, from 0, is what
 * gen_generate gives for the prompt with the seed of `sampling` + i, bit for bit; without randomness all are the same.
 *
 * @param prompt    [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param n         texts that are given, at least 1.
 * @param best_of   texts that are generated, from n to 128. With more than n those are given whose tokens have the highest
 *                  mean log-probability, best first, and behind them in the last places all that failed, which leave
 *                  out the others if need be: with n 1 a failure is the result. Else all, in the order of their seeds.
 * @param results   [n] receives the results; gen_result_error of each tells whether it failed. Free each with
 *                  gen_result_free. All NULL on failure.
 * @return GEN_OK when there are results, whatever is in them; GEN_ERROR_INVALID_ARGUMENT for NULL and for numbers that are
 *         not 1 <= n <= best_of <= 128; for the prompt as gen_session_append; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any number at once.
 * Cost:    at most max_batch texts have a cache at the same time, beside the prompt's.
 * Since:   0.1
 */
GEN_API gen_status gen_generate_n(gen_generator *generator, const char *prompt, size_t len,
                                  const gen_sampling *sampling, int32_t n, int32_t best_of,
                                  gen_result **results, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_BATCH_H */

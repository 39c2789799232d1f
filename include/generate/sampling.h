/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_sampling: how the next token is chosen. Stages run in this order: logit bias, mask, penalties,
 * greedy if the temperature is 0, temperature, top-k, typical-p, top-p, min-p, draw. A draw depends on the
 * seed and the number of tokens drawn before, on nothing else, and is the same on every machine.
 * Generating calls copy the object on entry, so one can serve any number of calls.
 */
#ifndef GENERATE_SAMPLING_H
#define GENERATE_SAMPLING_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes sampling settings with their defaults: temperature 1, nothing cut, no penalty, seed 0, 256 tokens.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_new(gen_sampling **out, gen_error *error);

/**
 * Frees the settings; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_sampling_free(gen_sampling *sampling);

/**
 * Divides logits by `temperature`; 0 or less takes the most probable token (the lowest id among equals).
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL or the value is above 1e6 or not finite. On
 *         failure nothing changes, here and in every setter below.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_temperature(gen_sampling *sampling, double temperature,
                                                gen_error *error);

/**
 * Keeps the `k` largest logits (all that equal the k-th); 0 keeps all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if k is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_top_k(gen_sampling *sampling, int32_t k, gen_error *error);

/**
 * Keeps the tokens whose surprise is nearest to the expected one (locally typical sampling): the fewest
 * whose probabilities reach `p`; 0 or less, and 1 or more, keep all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if p is not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_typical_p(gen_sampling *sampling, double p, gen_error *error);

/**
 * Keeps the fewest most probable tokens whose probabilities reach `p`; 0 or less, and 1 or more, keep all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if p is not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_top_p(gen_sampling *sampling, double p, gen_error *error);

/**
 * Keeps tokens at least `p` times as probable as the most probable one that is left; 0 keeps all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if p is outside [0, 1].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_min_p(gen_sampling *sampling, double p, gen_error *error);

/**
 * Divides positive and multiplies negative logits of tokens generated before by `penalty`, once for
 * each distinct token; 1, and 0 or less, are off.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is above 1000 or not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_repetition_penalty(gen_sampling *sampling, double penalty,
                                                       gen_error *error);

/**
 * With a non-zero `compound`, the repetition penalty acts once for each occurrence of a token, not once
 * for each distinct token.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_compound_penalty(gen_sampling *sampling, int32_t compound,
                                                     gen_error *error);

/**
 * Subtracts `penalty` from the logit of a token for each time it was generated before, after the
 * repetition penalty; 0 is off, a negative value is a reward.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is not in [-100, 100].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_frequency_penalty(gen_sampling *sampling, double penalty,
                                                      gen_error *error);

/**
 * Subtracts `penalty` once from the logit of each token that was generated before, after the repetition
 * penalty; 0 is off, a negative value is a reward.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is not in [-100, 100].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_presence_penalty(gen_sampling *sampling, double penalty,
                                                     gen_error *error);

/**
 * With a non-zero `penalize`, all tokens the session holds count for the penalties, the prompt and earlier
 * turns included, not only those that this call has generated.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_penalize_prompt(gen_sampling *sampling, int32_t penalize,
                                                    gen_error *error);

/**
 * Limits the penalties to the last `tokens` tokens that count for them; 0 means all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_penalty_window(gen_sampling *sampling, int32_t tokens,
                                                   gen_error *error);

/**
 * Ends a generation after `tokens` tokens; 0 or less is 256, the default.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_max_new_tokens(gen_sampling *sampling, int32_t tokens,
                                                   gen_error *error);

/**
 * Sets the seed; equal logits and an equal seed give equal text on every machine.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_seed(gen_sampling *sampling, uint64_t seed, gen_error *error);

/**
 * Records log-probabilities (log-softmax of the raw logits) of chosen tokens and, if `count` is above 0, of
 * the `count` most probable ones at each step; -1 records none (the default).
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is outside [-1, 100].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_logprobs(gen_sampling *sampling, int32_t count,
                                             gen_error *error);

/**
 * Adds `bias` to the logit of `token` before everything else; -INFINITY forbids the token, 0 removes a bias.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if token is negative or bias is NaN or +INFINITY. An id outside
 *         the vocabulary is GEN_ERROR_OUT_OF_RANGE from the generating call.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_logit_bias(gen_sampling *sampling, int32_t token, float bias,
                                               gen_error *error);

/**
 * With a non-zero `ignore`, the model's own end tokens no longer end a generation.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_ignore_eos(gen_sampling *sampling, int32_t ignore,
                                               gen_error *error);

/**
 * Ends a generation when `token` is drawn; the token is not part of the text.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if token is negative. An id outside the vocabulary is
 *         GEN_ERROR_OUT_OF_RANGE from the generating call.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_add_stop_token(gen_sampling *sampling, int32_t token,
                                               gen_error *error);

/**
 * Ends a generation when the text holds `text`, at whatever token borders; no byte of it is returned or
 * streamed. Of several matches the one that starts first wins.
 *
 * @param text  [len] UTF-8, copied. Empty text is ignored.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, text above 4096 bytes, more than 256 strings, or bytes
 *         that are not UTF-8.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_add_stop_string(gen_sampling *sampling, const char *text,
                                                size_t len, gen_error *error);

/**
 * Lets `cancel` stop the calls that use these settings; NULL for none. With a timer that fires it a call has a deadline.
 *
 * @param cancel  shared, may be freed before the settings and the calls.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_cancel(gen_sampling *sampling, gen_cancel *cancel,
                                           gen_error *error);

/**
 * Sets one setting by name, for languages and command lines: "temperature" "0.8", "stop_string" "END" …
 *
 * @param key    as listed by gen_sampling_describe.
 * @param value  the value as text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for an unknown key or a value its setter refuses.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set(gen_sampling *sampling, const char *key, const char *value,
                                    gen_error *error);

/**
 * All settings as JSON: an array of {"key","type","range","default","value"}, most with "help", and "off" for values
 * that do nothing.
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_describe(const gen_sampling *sampling, char *buf, size_t capacity,
                                         size_t *n, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_SAMPLING_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_sampling: how the next token is chosen. Stages run in this order: logits callback, logit bias, mask, penalties (the last
 * of them DRY), end tokens that come too early, greedy if the temperature is 0, top-n-sigma, temperature,
 * top-k, typical-p, top-p, min-p, XTC, mirostat, draw. A draw depends on the seed and the number of tokens
 * drawn before, on nothing else, and is the same on every machine. Generating calls copy the object on entry,
 * so one can serve any number of calls.
 *
 * For users of llama.cpp: its stages are here, each off until it is set, and each that is set acts. There the
 * temperature comes last by default, so that the cuts see probabilities at temperature 1; mirostat leaves out
 * every cut; and windows of penalties and of DRY are 64 tokens or the context, where here 0 is all tokens.
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
 * Keeps the tokens whose logits are at most `n` standard deviations below the largest one (top-n-sigma); 0 or
 * less keeps all. The deviation is that of the model's own logits, before bias, mask and penalties. What is
 * kept does not depend on the temperature.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if n is not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_top_n_sigma(gen_sampling *sampling, double n, gen_error *error);

/**
 * Removes the most probable tokens now and then (XTC). At each step, with this probability: where two or more
 * tokens have at least the probability `threshold`, all of them but the least probable one are removed. The
 * random numbers for it depend on the seed and the step like those of the draw, and are others.
 *
 * @param probability  in [0, 1]; 0 is off.
 * @param threshold    in [0, 1], after all stages before; above 0.5 nothing is ever taken out. 0.1 is usual.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if one of the values is outside its range.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_xtc(gen_sampling *sampling, double probability,
                                        double threshold, gen_error *error);

/**
 * Steers the surprise of the drawn tokens, -log2 of their probability, to `tau` bits on average (mirostat 2).
 * Tokens of more surprise than a threshold are cut. The threshold is 2 * `tau` at first, and after each token
 * that is drawn it falls by `eta` * (surprise of the token - `tau`). Every call begins anew. Stages that are set
 * cut before it; does nothing at temperature 0.
 *
 * @param tau  in [0, 100]; 0 is off, 5 is usual.
 * @param eta  in [0, 1]; 0.1 is usual.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if one of the values is outside its range.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_mirostat(gen_sampling *sampling, double tau, double eta,
                                             gen_error *error);

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
 * Penalises tokens that would continue a repetition (DRY). Where the last L tokens of the session, at least
 * `allowed_length` of them, occurred before, `multiplier` * `base`^(L - allowed_length), at most a million, is
 * subtracted from the logit of the token that followed them there; the longest L counts. The session's tokens
 * include its prompts and earlier turns. Repetitions end at breakers, see gen_sampling_add_dry_breaker.
 *
 * @param multiplier      in [0, 100]; 0 is off, 0.8 is usual.
 * @param base            in [1, 100]; 1.75 is usual.
 * @param allowed_length  1 or more; 2 is usual.
 * @param window          looks at so many last tokens, at a cost in proportion; 0 means all.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if one of the values is outside its range.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_dry(gen_sampling *sampling, double multiplier, double base,
                                        int32_t allowed_length, int32_t window, gen_error *error);

/**
 * Adds a text over which DRY sees no repetition, at whatever token borders; a token that holds such a text is
 * never penalised. The first one takes the place of the default ones: line feed, colon, double quote and asterisk;
 * an empty first one leaves none. Control tokens are breakers always. Without a tokenizer there is none.
 *
 * @param text  [len] UTF-8, copied. Empty text adds nothing.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, text above 256 bytes, more than 64 texts, or bytes that
 *         are not UTF-8.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_add_dry_breaker(gen_sampling *sampling, const char *text,
                                                size_t len, gen_error *error);

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
 * Draws no token that ends the text, of the model or added as a stop token, before there are `tokens` tokens; 0
 * is off. Where bias, mask or a grammar leave nothing else, the text ends all the same; so it does at the end
 * of a grammar, at a stop string and after the most tokens.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_min_new_tokens(gen_sampling *sampling, int32_t tokens,
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
 * With a non-zero `gumbel`, tokens are drawn by Gumbel-max: each token that is left gets noise of its own, which depends
 * on the seed, the number of tokens drawn before and the token's id alone, and the one of the largest sum of
 * log-probability and noise is taken. Every token comes with the probability that it has without; texts are others than
 * those of the same seed without. What it is for: calls of one seed whose logits differ a little draw the same tokens
 * mostly, with another adapter, another format of weights, or a draft model beside its target.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Cost:    a random number and a logarithm for each token that the stages before have left.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_gumbel(gen_sampling *sampling, int32_t gumbel, gen_error *error);

/**
 * Edits the logits of a step, [n] of the vocabulary, before all else that these settings do: bias, mask and penalties
 * come after it, and log-probabilities are of what it leaves. -INFINITY forbids a token; NaN and INFINITY are refused as
 * a model's would be (GEN_ERROR_MODEL). `tokens` are all that the session holds, its prompts and earlier turns included,
 * `said` how many of them this call has drawn. It is asked once for each token that is drawn, in their order, on the
 * thread that runs the call. It may call everything, but the session of the call is GEN_ERROR_BUSY.
 *
 * @param logits  [n] to edit; only during the call, as `tokens` are.
 * @param tokens  [count].
 * @param error   may be filled with a message; never NULL.
 * @return GEN_OK; what else it gives, and an exception (GEN_ERROR_INTERNAL), ends the call with that status, and a
 *         session is as before the call. After GEN_ERROR_CANCELLED what was said so far stays. GEN_ERROR_MODEL for a
 *         number that is no status.
 */
typedef gen_status (*gen_logits_callback)(void *user, float *logits, size_t n, const int32_t *tokens, size_t count,
                                          size_t said, gen_error *error);

/**
 * Has `callback` see and edit the logits of each step; NULL for none.
 *
 * @param user  given to the callback; must live as long as the settings and the calls that use them. Calls on several
 *              threads with the same settings call it on all of these.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_logits_callback(gen_sampling *sampling, gen_logits_callback callback, void *user,
                                                    gen_error *error);

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
 * Ends a generation when `token` is drawn; the token is not part of the text. Under a grammar a token ends only a text
 * that is a member, and where the grammar asks for it by its name or id it is a part of the text; the same goes for the
 * model's own end tokens.
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
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for an unknown key or a value its setter refuses; GEN_ERROR_UNSUPPORTED
 *         for "num_beams" above 1: there is no beam search.
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

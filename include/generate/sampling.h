/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_sampling: how the next token is chosen. The stages run in this order: logits callback, logit
 * bias, mask, penalties (DRY last), suppression of end tokens before min_new_tokens, greedy if the
 * temperature is 0, top-n-sigma, temperature, top-k, typical-p, top-p, min-p, XTC, mirostat, draw.
 * A draw depends only on the seed and the number of tokens drawn before, and is the same on every
 * machine. Generating calls copy the object on entry, so one object can serve any number of calls.
 *
 * For users of llama.cpp: its stages are here; each is off until it is set, and each one that is
 * set acts. In llama.cpp the temperature comes last by default, so that the filters see
 * probabilities at temperature 1; mirostat disables every other filter; and the windows of
 * penalties and of DRY are 64 tokens or the context, whereas 0 means all tokens here.
 */
#ifndef GENERATE_SAMPLING_H
#define GENERATE_SAMPLING_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes sampling settings with their defaults: temperature 1, no filters, no penalties, seed 0, 256
 * tokens.
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
 * Keeps the `k` largest logits, including ties with the k-th; 0 keeps all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if k is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_top_k(gen_sampling *sampling, int32_t k, gen_error *error);

/**
 * Keeps the tokens whose surprise is closest to the expected surprise (locally typical sampling):
 * the smallest set whose probabilities sum to at least `p`; 0 or less, and 1 or more, keep all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if p is not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_typical_p(gen_sampling *sampling, double p, gen_error *error);

/**
 * Keeps the smallest set of most probable tokens whose probabilities sum to at least `p`; 0 or
 * less, and 1 or more, keep all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if p is not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_top_p(gen_sampling *sampling, double p, gen_error *error);

/**
 * Keeps tokens at least `p` times as probable as the most probable remaining one; 0 keeps all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if p is outside [0, 1].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_min_p(gen_sampling *sampling, double p, gen_error *error);

/**
 * Keeps the tokens whose logits are at most `n` standard deviations below the largest one
 * (top-n-sigma); 0 or less keeps all. The deviation is that of the model's own logits, before bias,
 * mask and penalties. The set of kept tokens does not depend on the temperature.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if n is not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_top_n_sigma(gen_sampling *sampling, double n, gen_error *error);

/**
 * Sometimes removes the most probable tokens (XTC). With this probability, a step removes all
 * tokens of at least the probability `threshold` except the least probable of them, if there are
 * two or more. Its random numbers depend on the seed and the step, like those of the draw, but are
 * independent of them.
 *
 * @param probability  in [0, 1]; 0 is off.
 * @param threshold    in [0, 1], applied after all earlier stages; above 0.5 nothing is ever removed. 0.1 is usual.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if one of the values is outside its range.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_xtc(gen_sampling *sampling, double probability,
                                        double threshold, gen_error *error);

/**
 * Steers the average surprise of the drawn tokens, -log2 of their probability, towards `tau` bits
 * (mirostat 2). Tokens whose surprise exceeds a threshold are removed. The threshold starts at 2 *
 * `tau`; after each drawn token it falls by `eta` * (surprise of the token - `tau`). Every call
 * starts anew. Other filters that are set act before it; it does nothing at temperature 0.
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
 * Divides the positive logits of tokens generated before by `penalty` and multiplies their negative
 * ones by it, once for each distinct token; 1, and 0 or less, are off.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is above 1000 or not finite.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_repetition_penalty(gen_sampling *sampling, double penalty,
                                                       gen_error *error);

/**
 * With a non-zero `compound`, the repetition penalty is applied once per occurrence of a token
 * instead of once per distinct token.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_compound_penalty(gen_sampling *sampling, int32_t compound,
                                                     gen_error *error);

/**
 * Subtracts `penalty` from the logit of a token for each time it was generated before, after the
 * repetition penalty; 0 is off, and a negative value makes repetition more likely.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is not in [-100, 100].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_frequency_penalty(gen_sampling *sampling, double penalty,
                                                      gen_error *error);

/**
 * Subtracts `penalty` once from the logit of each token that was generated before, after the
 * repetition penalty; 0 is off, and a negative value makes repetition more likely.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is not in [-100, 100].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_presence_penalty(gen_sampling *sampling, double penalty,
                                                     gen_error *error);

/**
 * With a non-zero `penalize`, the penalties count all tokens of the session, including the prompt
 * and earlier turns, instead of only those that this call has generated.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_penalize_prompt(gen_sampling *sampling, int32_t penalize,
                                                    gen_error *error);

/**
 * Limits the penalties to the last `tokens` counted tokens; 0 means all.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_penalty_window(gen_sampling *sampling, int32_t tokens,
                                                   gen_error *error);

/**
 * Penalises tokens that would continue a repetition (DRY). If the last L tokens of the session, at
 * least `allowed_length` of them, occurred before, `multiplier` * `base`^(L - allowed_length), at
 * most a million, is subtracted from the logit of the token that followed them there; the longest L
 * counts. The session's tokens include its prompts and earlier turns. Repetitions end at breakers,
 * see gen_sampling_add_dry_breaker.
 *
 * @param multiplier      in [0, 100]; 0 is off, 0.8 is usual.
 * @param base            in [1, 100]; 1.75 is usual.
 * @param allowed_length  1 or more; 2 is usual.
 * @param window          number of last tokens to search, at a proportional cost; 0 means all.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if one of the values is outside its range.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_dry(gen_sampling *sampling, double multiplier, double base,
                                        int32_t allowed_length, int32_t window, gen_error *error);

/**
 * Adds a text that ends a repetition for DRY, wherever the token boundaries fall; a token that
 * contains such a text is never penalised. The first one replaces the default breakers: line feed,
 * colon, double quote and asterisk; an empty first one removes them. Control tokens are always
 * breakers. Without a tokenizer there are no breakers.
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
 * Suppresses tokens that end the text, the model's own and added stop tokens, before `tokens`
 * tokens have been generated; 0 is off. If bias, mask or a grammar leave nothing else, the text
 * ends all the same; so it does at the end of a grammar, at a stop string and at max_new_tokens.
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
 * With a non-zero `gumbel`, tokens are drawn with the Gumbel-max trick: each remaining token gets
 * its own noise, which depends only on the seed, the number of tokens drawn before and the token's
 * id, and the token with the largest sum of log-probability and noise is chosen. Probabilities are
 * the same as without it, but the texts of a seed differ. Its purpose: calls with the same seed and
 * slightly different logits draw mostly the same tokens, for example with another adapter, another
 * weight format, or a draft model and its target.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Cost:    a random number and a logarithm for each remaining token.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_gumbel(gen_sampling *sampling, int32_t gumbel, gen_error *error);

/**
 * Edits the logits of a step, [n] for the whole vocabulary, before all other stages: bias, mask and
 * penalties follow, and log-probabilities are those of the edited logits. -INFINITY forbids a
 * token; NaN and INFINITY are refused like those of a model (GEN_ERROR_MODEL). `tokens` are all
 * tokens of the session, including its prompts and earlier turns; `said` is the number of them that
 * this call has drawn. It is called once per drawn token, in order, on the thread that runs the
 * call. It may call anything, but the session of the call returns GEN_ERROR_BUSY.
 *
 * @param logits  [n] to edit; only during the call, as `tokens` are.
 * @param tokens  [count].
 * @param error   may be filled with a message; never NULL.
 * @return GEN_OK. Any other status, or an exception (GEN_ERROR_INTERNAL), ends the call with that status and leaves the
 *         session as it was before the call; after GEN_ERROR_CANCELLED the text generated so far stays. A number that is
 *         no status becomes GEN_ERROR_MODEL.
 */
typedef gen_status (*gen_logits_callback)(void *user, float *logits, size_t n, const int32_t *tokens, size_t count,
                                          size_t said, gen_error *error);

/**
 * Lets `callback` see and edit the logits of each step; NULL for none.
 *
 * @param user  passed to the callback; must live as long as the settings and the calls that use them. Calls on several
 *              threads with the same settings invoke the callback on all of these threads.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_logits_callback(gen_sampling *sampling, gen_logits_callback callback, void *user,
                                                    gen_error *error);

/**
 * Records log-probabilities (log-softmax of the raw logits) of the drawn tokens and, if `count` is
 * above 0, of the `count` most probable ones at each step; -1 (the default) records none.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is outside [-1, 100].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_logprobs(gen_sampling *sampling, int32_t count,
                                             gen_error *error);

/**
 * Adds `bias` to the logit of `token` before all other stages; -INFINITY forbids the token, 0
 * removes a bias.
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
 * Ends a generation when `token` is drawn; the token is not part of the text. Under a grammar a
 * token ends the text only if the text is a member. If the grammar asks for the token by its name
 * or id, it is part of the text. The same holds for the model's own end tokens.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if token is negative. An id outside the vocabulary is
 *         GEN_ERROR_OUT_OF_RANGE from the generating call.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_add_stop_token(gen_sampling *sampling, int32_t token,
                                               gen_error *error);

/**
 * Ends a generation when the text contains `text`, wherever the token boundaries fall; none of its
 * bytes are returned or streamed. Of several matches the one that starts first wins.
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
 * Calls use the model's adapter of that name (gen_adapter_load), with scale 1, and no other; NULL or "" for none. A
 * session that goes on with other adapters evaluates its text again.
 *
 * @param name  copied. A name that the model does not have is GEN_ERROR_INVALID_ARGUMENT from the generating call.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL, or for a name above 255 bytes or that is not
 *         UTF-8.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_adapter(gen_sampling *sampling, const char *name, gen_error *error);

/**
 * Adds an adapter to those that calls use, with a scale; what they add to a product is summed. The order does not
 * matter. With scale 0 it has no effect.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, a name that is empty, above 255 bytes or there already, a scale
 *         that is not finite, and more than 64 adapters. More than 4 with a scale other than 0 are
 *         GEN_ERROR_INVALID_ARGUMENT from the generating call.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_add_adapter(gen_sampling *sampling, const char *name, float scale,
                                            gen_error *error);

/**
 * Lets `cancel` stop the calls that use these settings; NULL for none. A timer that fires it gives
 * a call a deadline.
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
 * Describes all settings as JSON: an array of {"key","type","range","default","value"}, most with
 * "help", and with "off" for values that turn a setting off.
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

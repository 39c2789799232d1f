/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speculative decoding with a draft model: a small model guesses a few tokens, and one pass of the large model checks all of
 * them. gen_speculative runs the whole loop: the text is the one that the large model gives alone, sooner. It is a generator
 * with a draft model; for sessions, batches and other drafters, use gen_create with gen_options_set_speculative_draft and its
 * neighbours in generator.h. gen_draft and gen_draft_accept_tokens are the parts of the loop, for programs that write their
 * own. See docs/speculative.md.
 */
#ifndef GENERATE_SPECULATIVE_H
#define GENERATE_SPECULATIVE_H

#include "base.h"
#include "generator.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a target model that a draft model guesses for.
 *
 * @param draft    the small model; kept alive. Its vocabulary is the target's, but for padding at the end of either.
 * @param target   the model whose text it is; kept alive.
 * @param length   most tokens of a guess, up to 63; 4 stands for 0 and less.
 * @param options  as for gen_create, or NULL for defaults; copied. A draft model that is set there is not used; lookups are
 *                 asked before the draft model.
 * @param out      receives the object; free it with gen_speculative_free.
 * @return as gen_create; GEN_ERROR_INVALID_ARGUMENT also for a NULL draft, a length above that, and vocabularies that
 *         differ, naming the first token in which they do; GEN_ERROR_UNSUPPORTED also for a draft model with a state that
 *         cannot go back, and a target with one that can neither go back nor be copied.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_new(const gen_model *draft, const gen_model *target, int32_t length,
                                       const gen_options *options, gen_speculative **out, gen_error *error);

/**
 * Continues a prompt, as gen_generate does with the target alone: text, ids, log-probabilities and finish reason are the
 * same, bit for bit, unless options ask for "draft_acceptance" "distribution".
 *
 * @return as gen_generate.
 * Threads: any number at once; their passes are shared.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_generate(gen_speculative *speculative, const char *prompt, size_t len,
                                            const gen_sampling *sampling, gen_result **result, gen_error *error);

/**
 * The same, with each piece given to `callback` as it comes, as in gen_generate_stream.
 *
 * @return as gen_generate_stream.
 * Threads: any number at once.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_generate_stream(gen_speculative *speculative, const char *prompt, size_t len,
                                                   const gen_sampling *sampling, gen_token_callback callback,
                                                   void *user, gen_result **result, gen_error *error);

/**
 * Whether the number of tokens that are guessed changes with what they bring.
 *
 * @param adaptive  non-zero (the default): by "draft_policy" of the options; 0: always as many as `length` says. Calls that
 *                  run see it at their next pass.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_set_adaptive(gen_speculative *speculative, int32_t adaptive, gen_error *error);

/**
 * What guesses have brought to all calls so far, see gen_generator_draft_stats.
 *
 * @return as gen_generator_draft_stats.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_stats(const gen_speculative *speculative, const char *key, double *value,
                                         gen_error *error);

/**
 * Gives the object up; calls that run on it end first. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_speculative_free(gen_speculative *speculative);

/**
 * What guesses have brought to all calls of a generator so far: "passes" (of one text each, that said something), "tokens"
 * (that these said), "tokens_per_pass", "drafted", "accepted" (guesses, and those that were right), "acceptance_rate"
 * (accepted / drafted), "acceptance_at_1", "acceptance_at_2", … up to 63 (the share that was right of the first guesses, of
 * the second ones where the first was right, and so on). A share of nothing is 0.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key. On failure *value is 0.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_draft_stats(const gen_generator *generator, const char *key, double *value,
                                             gen_error *error);

/**
 * Makes a drafter that the program calls itself: a model that guesses, and optionally one that judges. Both may be custom
 * models (gen_model_new_custom). Each keeps its keys and values between calls, and runs only what is new in a text.
 *
 * @param draft    guesses; kept alive.
 * @param target   judges, or NULL: then gen_draft_verify and gen_draft_acceptance_rate are refused; kept alive.
 * @param options  caches of both, as for gen_create, or NULL for defaults; copied. Drafters and a context_policy set there
 *                 are not used.
 * @param out      receives the object; free it with gen_draft_free.
 * @return as gen_create; GEN_ERROR_INVALID_ARGUMENT also for a NULL draft and for vocabularies that differ.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_new(const gen_model *draft, const gen_model *target, const gen_options *options,
                                 gen_draft **out, gen_error *error);

/**
 * Makes a drafter of a model alone: its first layers and its end guess, all of it judges. The weights are shared. A model
 * that was not trained for such an exit is seldom right there.
 *
 * @param target  guesses and judges; kept alive.
 * @param layers  that guess, at least 1 and fewer than all; any other number stands for half of them, at least 1.
 * @return as gen_draft_new; GEN_ERROR_UNSUPPORTED also for a model of one layer and for a custom one.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_new_self(const gen_model *target, int32_t layers, const gen_options *options,
                                      gen_draft **out, gen_error *error);

/**
 * Layers of the model that guesses; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_draft_depth(const gen_draft *draft);

/**
 * Guesses how tokens go on: the most probable token each time, up to and with one that ends a text.
 *
 * @param tokens    [count] the text; at least one.
 * @param length    most tokens to guess, 1 to 63. Fewer come where the context ends, and where the draft model would say
 *                  padding that the target's vocabulary lacks.
 * @param ids       [capacity] receives the guesses; `capacity` at least `length`.
 * @param logprobs  [capacity] receives the log-probability of each, of the draft model's logits; or NULL.
 * @param n         receives how many there are.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, an empty text or a length outside;
 *         GEN_ERROR_OUT_OF_RANGE if capacity is below `length`, with *n = length, or for a token outside the vocabulary;
 *         GEN_ERROR_CONTEXT_FULL if the text does not fit the draft model's context;
 *         GEN_ERROR_BUSY; GEN_ERROR_MODEL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    a pass over what the text has new, and one for each guess.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_generate(gen_draft *draft, const int32_t *tokens, size_t count, int32_t length, int32_t *ids,
                                      float *logprobs, size_t capacity, size_t *n, gen_error *error);

/**
 * Judges guesses, the first one too: how many of them the target says itself, taking the most probable token each time, and
 * what it says then.
 *
 * @param tokens      [count] the text before the guesses; at least one.
 * @param guesses     [n_guesses] at most 63; may be none.
 * @param accepted    receives how many of the guesses are the target's.
 * @param correction  receives the token after these; -1 where the context is full.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, an empty text or more than 63 guesses;
 *         GEN_ERROR_STATE if there is no target;
 *         GEN_ERROR_OUT_OF_RANGE for a token outside the vocabulary;
 *         GEN_ERROR_CONTEXT_FULL if the text does not fit the target's context;
 *         GEN_ERROR_BUSY; GEN_ERROR_MODEL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    a pass over what the text has new, and one over the guesses if the first was right.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_verify(gen_draft *draft, const int32_t *tokens, size_t count, const int32_t *guesses,
                                    size_t n_guesses, int32_t *accepted, int32_t *correction, gen_error *error);

/**
 * Guesses once and judges that: the share of the guesses that the target says, too.
 *
 * @param tokens  [count] the text; at least one.
 * @param length  most tokens to guess, up to 63; 4 stands for 0 and less.
 * @param rate    receives the share, 0 where nothing could be guessed.
 * @return as gen_draft_verify.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_acceptance_rate(gen_draft *draft, const int32_t *tokens, size_t count, int32_t length,
                                             double *rate, gen_error *error);

/**
 * Gives the drafter up. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_draft_free(gen_draft *draft);

/**
 * Speculative sampling: of tokens that were drawn from a draft model's probabilities, keeps each with the probability
 * min(1, target / draft); the first that is not kept is replaced by a token drawn from what the target has more than the
 * draft, and behind a proposal that is kept whole one more is drawn. What comes out has the target's distribution, whatever
 * the draft is. Rows need not add up to 1.
 *
 * @param tokens         [n_tokens] the proposal, K tokens; K = 0 gives nothing.
 * @param draft_probs    [n_tokens * vocab] what each token was drawn from.
 * @param target_probs   [(n_tokens + 1) * vocab] the target's probabilities at the place of each token, and behind the last.
 * @param vocab          tokens of a row, at least 1.
 * @param greedy         non-zero: no draws: a token is kept while it is the target's most probable one, and what follows is
 *                       that; draft_probs may be NULL then.
 * @param seed           of the draws; each is a function of the seed and a number, step + i for token i.
 * @param step           number of the first draw: the tokens drawn so far with this seed.
 * @param ids            [capacity] receives the tokens that are said; `capacity` at least n_tokens + 1.
 * @param n              receives how many.
 * @param rate           receives the share of the proposal that was kept; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, and for a probability that is negative or not finite or a target row without
 *         a token;
 *         GEN_ERROR_OUT_OF_RANGE for a token outside [0, vocab), and if capacity is too small, with *n = n_tokens + 1;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_accept_tokens(const int32_t *tokens, size_t n_tokens, const float *draft_probs,
                                           const float *target_probs, size_t vocab, int32_t greedy, uint64_t seed,
                                           uint64_t step, int32_t *ids, size_t capacity, size_t *n, double *rate,
                                           gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_SPECULATIVE_H */

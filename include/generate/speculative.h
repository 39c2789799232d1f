/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speculative decoding with a draft model: a small model drafts a few tokens, and one pass of the
 * large model verifies all of them. gen_speculative runs the whole loop: the text is the same as
 * that of the large model alone, but takes less time. It is a generator with a draft model; for
 * sessions, batches and other drafters, use gen_create with gen_options_set_speculative_draft and
 * similar options of generator.h; with a head in place of the small model, gen_eagle_new of eagle.h.
 * gen_draft and gen_draft_accept_tokens are the steps of the loop,
 * for programs that write their own. See docs/speculative.md.
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
 * Combines a target model with a draft model.
 *
 * @param draft    the small model; kept alive. Its vocabulary must equal the target's, except for padding at the end.
 * @param target   the model that defines the text; kept alive.
 * @param length   maximum number of tokens of a draft, at most 63; 0 or less means 4.
 * @param options  as for gen_create, or NULL for defaults; copied. A draft model set there is ignored; lookups are
 *                 tried before the draft model.
 * @param out      receives the object; free it with gen_speculative_free.
 * @return as gen_create; GEN_ERROR_INVALID_ARGUMENT also for a NULL draft, a length above 63, and vocabularies that
 *         differ, naming the first token that differs; GEN_ERROR_UNSUPPORTED also for a draft model whose state cannot be
 *         rolled back, and a target whose state can neither be rolled back nor copied.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_new(const gen_model *draft, const gen_model *target, int32_t length,
                                       const gen_options *options, gen_speculative **out, gen_error *error);

/**
 * Continues a prompt like gen_generate with the target alone: text, ids, log-probabilities and
 * finish reason are the same, bit for bit, unless options set "draft_acceptance" to "distribution".
 *
 * @return as gen_generate.
 * Threads: any number at once; their passes are shared.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_generate(gen_speculative *speculative, const char *prompt, size_t len,
                                            const gen_sampling *sampling, gen_result **result, gen_error *error);

/**
 * As gen_speculative_generate, but passes each piece to `callback` as it is generated, as
 * gen_generate_stream does.
 *
 * @return as gen_generate_stream.
 * Threads: any number at once.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_generate_stream(gen_speculative *speculative, const char *prompt, size_t len,
                                                   const gen_sampling *sampling, gen_token_callback callback,
                                                   void *user, gen_result **result, gen_error *error);

/**
 * Sets whether the draft length adapts to how many drafts are accepted.
 *
 * @param adaptive  non-zero (the default): by "draft_policy" of the options; 0: always the `length` given. Running calls
 *                  notice a change at their next pass.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_set_adaptive(gen_speculative *speculative, int32_t adaptive, gen_error *error);

/**
 * Statistics of drafts over all calls so far, see gen_generator_draft_stats.
 *
 * @return as gen_generator_draft_stats.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_speculative_stats(const gen_speculative *speculative, const char *key, double *value,
                                         gen_error *error);

/**
 * Releases the object; calls that run on it finish first. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_speculative_free(gen_speculative *speculative);

/**
 * Statistics of drafts over all calls of a generator so far: "passes" (per sequence, those that
 * produced a token), "tokens" (produced by these passes), "tokens_per_pass", "drafted" and
 * "accepted" (draft tokens), "acceptance_rate" (accepted / drafted), "acceptance_at_1",
 * "acceptance_at_2", … up to 63 (the acceptance rate of the first draft token, of the second where
 * the first was accepted, and so on). A rate without any drafts is 0.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key. On failure *value is 0.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_draft_stats(const gen_generator *generator, const char *key, double *value,
                                             gen_error *error);

/**
 * Makes a drafter that the program drives itself: a model that drafts, and optionally one that
 * verifies. Both may be custom models (gen_model_new_custom). Each keeps its keys and values
 * between calls, and evaluates only the new tokens of a text.
 *
 * @param draft    drafts; kept alive.
 * @param target   verifies; kept alive. With NULL, gen_draft_verify and gen_draft_acceptance_rate are refused.
 * @param options  caches of both, as for gen_create, or NULL for defaults; copied. Drafters and a context_policy set there
 *                 are ignored.
 * @param out      receives the object; free it with gen_draft_free.
 * @return as gen_create, without GEN_ERROR_FORMAT; GEN_ERROR_UNSUPPORTED also if `draft` has a state that cannot be
 *         rolled back, as models with recurrent layers have, which may only verify; GEN_ERROR_INVALID_ARGUMENT also for a
 *         NULL draft and for vocabularies that differ.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_new(const gen_model *draft, const gen_model *target, const gen_options *options,
                                 gen_draft **out, gen_error *error);

/**
 * Makes a drafter from a single model: its first layers and its output layer draft, and the whole
 * model verifies. The weights are shared. Drafts are seldom accepted unless the model was trained
 * for such an early exit.
 *
 * @param target  drafts and verifies; kept alive.
 * @param layers  number of layers that draft, at least 1 and fewer than all; any other number means half of them, at
 *                least 1.
 * @return as gen_draft_new; GEN_ERROR_UNSUPPORTED also for a model of one layer and for a custom one.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_new_self(const gen_model *target, int32_t layers, const gen_options *options,
                                      gen_draft **out, gen_error *error);

/**
 * Number of layers of the model that drafts; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_draft_depth(const gen_draft *draft);

/**
 * Drafts the next tokens: the most probable one each time, up to and including one that ends a
 * text.
 *
 * @param tokens    [count] the text; at least one.
 * @param length    maximum number of tokens to draft, 1 to 63. There are fewer where the context ends, or where the draft
 *                  model predicts a padding token that the target's vocabulary lacks.
 * @param ids       [capacity] receives the draft; `capacity` must be at least `length`.
 * @param logprobs  [capacity] receives the log-probability of each token under the draft model; or NULL.
 * @param n         receives the number of drafted tokens.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, an empty text or a length outside [1, 63];
 *         GEN_ERROR_OUT_OF_RANGE if capacity is below `length`, with *n = length, or for a token outside the vocabulary;
 *         GEN_ERROR_CONTEXT_FULL if the text does not fit the draft model's context;
 *         GEN_ERROR_BUSY; GEN_ERROR_MODEL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    a pass over the new tokens of the text, and one pass per drafted token.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_generate(gen_draft *draft, const int32_t *tokens, size_t count, int32_t length, int32_t *ids,
                                      float *logprobs, size_t capacity, size_t *n, gen_error *error);

/**
 * Verifies a draft: counts how many of its tokens the target predicts itself, taking the most
 * probable token each time, and returns the target's next token.
 *
 * @param tokens      [count] the text before the draft; at least one token.
 * @param guesses     [n_guesses] the draft, at most 63 tokens; may be empty.
 * @param accepted    receives how many of them the target accepts.
 * @param correction  receives the target's token after these; -1 where the context is full.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, an empty text or more than 63 draft tokens;
 *         GEN_ERROR_STATE if there is no target;
 *         GEN_ERROR_OUT_OF_RANGE for a token outside the vocabulary;
 *         GEN_ERROR_CONTEXT_FULL if the text does not fit the target's context;
 *         GEN_ERROR_BUSY; GEN_ERROR_MODEL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    a pass over the new tokens of the text, and one over the draft if its first token was right.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_verify(gen_draft *draft, const int32_t *tokens, size_t count, const int32_t *guesses,
                                    size_t n_guesses, int32_t *accepted, int32_t *correction, gen_error *error);

/**
 * Drafts once and verifies the draft: returns the acceptance rate.
 *
 * @param tokens  [count] the text; at least one.
 * @param length  maximum number of tokens to draft, at most 63; 0 or less means 4.
 * @param rate    receives the rate; 0 where nothing could be drafted.
 * @return as gen_draft_verify.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_draft_acceptance_rate(gen_draft *draft, const int32_t *tokens, size_t count, int32_t length,
                                             double *rate, gen_error *error);

/**
 * Releases the drafter. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_draft_free(gen_draft *draft);

/**
 * Speculative sampling: accepts each token of a draft, drawn from the draft model's probabilities,
 * with the probability min(1, target / draft). The first rejected token is replaced by one drawn
 * from the positive part of target - draft; after a draft that is accepted whole, one more token is
 * drawn from the target. The output has the target's distribution, whatever the draft. Rows need
 * not sum to 1.
 *
 * @param tokens         [n_tokens] the draft, K tokens; with K = 0 nothing is accepted.
 * @param draft_probs    [n_tokens * vocab] the distribution that each token was drawn from.
 * @param target_probs   [(n_tokens + 1) * vocab] the target's probabilities at the position of each token, and after the last.
 * @param vocab          tokens per row, at least 1.
 * @param greedy         non-zero: nothing is drawn; a token is accepted if it is the target's most probable one, and the
 *                       token that follows is that one, too; draft_probs may then be NULL.
 * @param seed           of the draws; each is a function of the seed and a number, step + i for token i.
 * @param step           number of the first draw: the tokens drawn so far with this seed.
 * @param ids            [capacity] receives the output tokens; `capacity` must be at least n_tokens + 1.
 * @param n              receives their number.
 * @param rate           receives the acceptance rate; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, for a probability that is negative or not finite, and for a target row
 *         without a positive probability;
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

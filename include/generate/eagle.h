/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speculative decoding with a head: a small network that was trained for one model and drafts from
 * its hidden states. gen_eagle runs the whole loop: the text is the same as that of the model
 * alone, but takes less time. It is a generator with a head; for sessions and batches use
 * gen_create with gen_options_set_eagle. See docs/speculative.md.
 *
 * A model of the caller's own functions (custom_model.h) can have a head, too: its forward function
 * then receives `features` to fill. The head needs output weights of its own, since the library has
 * none of the model. gen_eagle takes prompts as text: a model without a tokenizer can only have the
 * head of a file, by gen_options_set_eagle, and sessions that are given tokens.
 */
#ifndef GENERATE_EAGLE_H
#define GENERATE_EAGLE_H

#include "base.h"
#include "generator.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A target model with a head that drafts. Shareable. */
typedef struct gen_eagle gen_eagle;

/**
 * A head of two products: it guesses the hidden state of the next row from that of a row x, as
 * silu(layer_norm(x) W1) W2. The norm subtracts the mean and has an epsilon of 1e-5. A guess is the
 * token of the largest product with a row of lm_head. All arrays are row-major and finite.
 *
 * For a model from a file, x is the state after the last layer but one; for a custom model, what
 * its function gives as features.
 */
typedef struct gen_eagle_tensors {
  uint32_t struct_size;     /**< sizeof(gen_eagle_tensors) */
  int32_t hidden;           /**< width of the target's hidden state: gen_model_config_hidden */
  int32_t vocab_size;       /**< rows of lm_head, as many as the target's vocabulary; ignored without it */
  const float *norm_weight; /**< [hidden] */
  const float *norm_bias;   /**< [hidden] */
  const float *fc1_weight;  /**< [hidden, hidden] W1, inputs by outputs: y = x W1 */
  const float *fc2_weight;  /**< [hidden, hidden] W2, the same */
  const float *lm_head;     /**< [vocab_size, hidden]; NULL for the target's output layer, which custom models lack */
} gen_eagle_tensors;

/**
 * Combines a model with the head of a file.
 *
 * @param target   the model that defines the text; kept alive. Custom models need `hidden` in their configuration; for
 *                 EAGLE-3 their features are the three states beside each other.
 * @param path     a file as for gen_options_set_eagle, which must exist here; NULL or "" for the head in the model's own file.
 * @param length   maximum number of tokens of a draft, at most 63; 0 or less means 4.
 * @param options  as for gen_create, or NULL for defaults; copied. The options "eagle" and "draft_heads" are ignored;
 *                 lookups are tried before the head. With the draft_policy "off" nothing is loaded, and nothing drafts.
 * @param out      receives the object; free it with gen_eagle_free.
 * @return as gen_create; GEN_ERROR_INVALID_ARGUMENT also for a length above 63; GEN_ERROR_IO also for a file that cannot be
 *         read; GEN_ERROR_FORMAT also for a file that is none, and for a head that does not fit the model or lacks
 *         weights, naming the key or the tensor; GEN_ERROR_UNSUPPORTED also where there is no head that drafts, and for
 *         a model without hidden states for heads or whose state can neither be rolled back nor copied.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_eagle_new(const gen_model *target, const char *path, int32_t length,
                                 const gen_options *options, gen_eagle **out, gen_error *error);

/**
 * Combines a model with a head in memory.
 *
 * @param tensors  copied, with all arrays.
 * @return as gen_create, without GEN_ERROR_FORMAT; GEN_ERROR_INVALID_ARGUMENT also for a length above 63, a struct_size below
 *         that of version 0.1, and an array that is NULL, does not fit the model or is not finite, naming the tensor;
 *         GEN_ERROR_UNSUPPORTED also for a model without hidden states for heads, or whose state can neither be rolled
 *         back nor copied.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_eagle_new_tensors(const gen_model *target, const gen_eagle_tensors *tensors, int32_t length,
                                         const gen_options *options, gen_eagle **out, gen_error *error);

/**
 * Continues a prompt like gen_generate with the target alone: text, ids, log-probabilities and
 * finish reason are the same, bit for bit, unless options set "draft_acceptance" to "distribution".
 *
 * @return as gen_generate.
 * Threads: any number at once; their passes are shared.
 * Since:   0.1
 */
GEN_API gen_status gen_eagle_generate(gen_eagle *eagle, const char *prompt, size_t len, const gen_sampling *sampling,
                                      gen_result **result, gen_error *error);

/**
 * As gen_eagle_generate, but passes each piece to `callback` as it is generated, as
 * gen_generate_stream does.
 *
 * @return as gen_generate_stream.
 * Threads: any number at once.
 * Since:   0.1
 */
GEN_API gen_status gen_eagle_generate_stream(gen_eagle *eagle, const char *prompt, size_t len,
                                             const gen_sampling *sampling, gen_token_callback callback, void *user,
                                             gen_result **result, gen_error *error);

/**
 * Sets whether the draft length adapts to how many drafts are accepted.
 *
 * @param adaptive  non-zero (the default): by "draft_policy" of the options; 0: always the `length` given. Running calls
 *                  notice a change at their next pass.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_eagle_set_adaptive(gen_eagle *eagle, int32_t adaptive, gen_error *error);

/**
 * Statistics of drafts over all calls so far, see gen_generator_draft_stats.
 *
 * @return as gen_generator_draft_stats.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_eagle_stats(const gen_eagle *eagle, const char *key, double *value, gen_error *error);

/**
 * Releases the object; calls that run on it finish first. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_eagle_free(gen_eagle *eagle);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_EAGLE_H */

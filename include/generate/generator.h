/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_generator: a model with cache settings and a scheduler. Shareable: calls from many threads run side
 * by side, each with a cache of its own. For a conversation that goes on, take a session (session.h).
 */
#ifndef GENERATE_GENERATOR_H
#define GENERATE_GENERATOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A token with its log-probability. */
typedef struct gen_token_logprob {
  int32_t id;
  float logprob;
} gen_token_logprob;

/** One streamed piece, owned by the library until the callback returns or the stream's next call. */
typedef struct gen_token {
  uint32_t struct_size;  /**< sizeof(gen_token) of the library */
  int32_t id;            /**< the token drawn; -1 on the done event */
  const char *text;      /**< [text_len] whole UTF-8 characters, NUL-terminated; may be empty */
  size_t text_len;       /**< bytes of text without the NUL */
  float logprob;         /**< log-probability of the token if asked for, else 0 */
  int32_t done;          /**< 1 on the last piece of a generation, which always comes */
  int32_t finish_reason; /**< GEN_FINISH_…, set when done */
  int32_t index;         /**< number of tokens drawn before this one */
  /** [top_count] most likely tokens, best first, as many as gen_sampling_set_logprobs asked for; of this piece alone */
  const gen_token_logprob *top;
  int32_t top_count;
} gen_token;

/**
 * Receives pieces on the calling thread; non-zero stops the generation cleanly: no piece follows, and what was held back as
 * a possible stop string is in no piece and not in the result's text. A call on the session that goes on with an empty
 * prompt says it first. It may call everything, but the session of the call is GEN_ERROR_BUSY. An exception fails the call
 * with GEN_ERROR_INTERNAL, and a session is as before the call.
 */
typedef int (*gen_token_callback)(void *user, const gen_token *token);

/**
 * Makes generator options with their defaults: float32 cache, prompts run in chunks of 256 tokens.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_options_new(gen_options **out, gen_error *error);

/**
 * Frees the options; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_options_free(gen_options *options);

/**
 * Chooses what keys and values are stored as: "fp32" (default), "fp16", "fp8", "q4" or "q3"; see
 * gen_kv_kind_describe. "fp8/q4" is short for gen_options_set_kv_types, "q4:rotated" sets the key form too.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name. On failure nothing changes.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_kv_dtype(gen_options *options, const char *name,
                                            gen_error *error);

/**
 * Chooses for keys and values apart, as gen_options_set_kv_dtype does for both: quantised keys cost more quality than
 * quantised values.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name. On failure nothing changes.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_kv_types(gen_options *options, const char *keys, const char *values,
                                            gen_error *error);

/**
 * Chooses the form in which keys are stored: "rotated", as rotary embedding leaves them; "hadamard", each head then
 * turned by a Hadamard matrix, which spreads outliers; or "best" (the default), which is "hadamard" for "q4" and "q3"
 * where a head has a multiple of 16 elements, else "rotated".
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name. gen_create fails with the same for
 *         "hadamard" and a model whose heads have no multiple of 16 elements.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_kv_key_form(gen_options *options, const char *name, gen_error *error);

/**
 * Keeps the keys and values of all sessions of a generator in blocks of one pool, taken as a session grows, instead
 * of memory for a whole context each. Results do not depend on it. Composes with gen_options_set_kv_dtype.
 *
 * @param max_memory_mb  MiB that the pool may take; 0 (the default) for no pool.
 * @param block_size     positions in a block, 16 by default; other than multiples of 16 leave a part of each block
 *                       unused. Where no block is free, sessions between calls give theirs up, least recently used
 *                       first, then the calls that began last; what they held is computed anew when they go on, with
 *                       the same results. A call for which even all blocks are too few, or that streams left open
 *                       keep from them, fails with GEN_ERROR_POOL_EXHAUSTED and its session stays as it was.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, a negative budget or a block size below 1. gen_create fails
 *         with the same if the budget is below one block.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_paged_kv(gen_options *options, int32_t max_memory_mb, int32_t block_size,
                                            gen_error *error);

/**
 * Keeps blocks of the pool when sessions are done with them, and goes on from them when the tokens of a session begin
 * as those of an earlier one did: what they have in common, to a token, is not evaluated again. Nothing is copied; a
 * session that goes on within a block copies that one. Full blocks of prompts and of what was generated are kept, those
 * used longest ago go first, and all that no session uses goes before the pool is exhausted. Results do not depend
 * on it; gen_result_usage tells what it saved as "prompt_cached".
 *
 * @param blocks  most blocks to keep; 0 (the default) for none. Needs gen_options_set_paged_kv: gen_create fails with
 *                GEN_ERROR_INVALID_ARGUMENT otherwise.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative number.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_prefix_cache(gen_options *options, int32_t blocks, gen_error *error);

/**
 * Keeps only the last, unfinished chunk of positions as it is: each full chunk becomes one entry, the means of its keys
 * (as they were before rotary embedding) and values, which attention counts as often as it had positions. Long contexts
 * take little memory and time, and much of what they said is lost. Keeps float32; not with another kv_dtype or with
 * gen_options_set_paged_kv, and not for models with sliding windows: gen_create fails then.
 *
 * @param chunk  positions in a chunk; 0 (the default) pools nothing.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative chunk.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_compressed_kv(gen_options *options, int32_t chunk, gen_error *error);

/**
 * Keeps the newest keys and values of each session in memory and the rest in a file, for contexts beyond memory.
 * Of the configuration counts where files go, the memory, the blocks and how many layers are read ahead. Its chunk size
 * and thresholds say nothing here, and other fields must not be set. The number of layers must be 0 or gen_model_config_num_cache_layers. Positions must be 0 or
 * at most the model's, and then cap the context. The file has no name and is gone with its session. Nothing is lost
 * by it: what is generated stays the same, in any kv dtype. A step that cannot read or write the file fails with
 * GEN_ERROR_IO or GEN_ERROR_FORMAT, and can be made again. Sessions are forked without a copy. gen_create fails with
 * GEN_ERROR_INVALID_ARGUMENT if the memory is too little for the context, telling what it takes, and if there is a
 * paged_kv as well.
 *
 * @param config  copied; NULL goes back to memory alone.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if options is NULL, or naming a field that was set and is not for sessions;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    a session whose context does not fit reads each layer's older part once a step, while others compute.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_tiered_kv(gen_options *options, const kv_cache_tier_config *config,
                                             gen_error *error);

/**
 * Chooses what happens when a session's context is full. "stop" (the default) ends a generation with
 * GEN_FINISH_CONTEXT_FULL. "shift" goes on without the oldest tokens: the first `keep` stay, and of the others the
 * older half goes, or more where a prompt needs the room; gen_result_usage "dropped" counts them, and
 * gen_session_tokens has only what is left. A prompt that does not fit beside the kept tokens is still
 * GEN_ERROR_CONTEXT_FULL, and gen_session_score never drops anything.
 *
 * What the session knows of the tokens that stay depends on the cache. With keys of "fp32" or "fp16" in plain memory,
 * keys are turned to their new positions and values stay, so that a shift costs little, and later tokens still see
 * through them what was dropped. Any other cache, and a model that sees positions in chunks, evaluates the tokens that
 * stay anew, as if the session had begun with them. Either way the result is the same bit for bit for any
 * prefill_chunk, number of threads and other sessions, and whether a prompt was appended before or given to the
 * generating call. A call that fails takes its own tokens back, but not what it dropped.
 *
 * @param keep  first tokens that are never dropped, begin-of-sequence included; models lean on the very first, so it
 *              should not be 0. 4 where an option by name leaves it out. Ignored for "stop".
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown name or a negative keep. gen_create fails with the
 *         same if the context is not at least 2 tokens longer than `keep`.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_context_policy(gen_options *options, const char *policy, int32_t keep,
                                                  gen_error *error);

/**
 * Runs prompts in chunks of at most `tokens`; results do not depend on it. 0, the default: 256 on the CPU, and on a
 * device as many as it takes to occupy it (1024 on an H100). The CPU takes 512 at most.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is outside [0, 2048].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_prefill_chunk(gen_options *options, int32_t tokens,
                                                 gen_error *error);

/**
 * Runs at most `sequences` sessions in one forward pass; more than that take turns. Results do not depend on it.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is outside [1, 512]; 64 is the default.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_max_batch(gen_options *options, int32_t sequences,
                                             gen_error *error);

/**
 * Accepts at most `calls` generating calls beyond max_batch: one more fails with GEN_ERROR_BUSY at once instead of
 * waiting for its turn. A stream is such a call from its opening to its end.
 *
 * @param calls  0 (the default) for no limit.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_max_queue(gen_options *options, int32_t calls,
                                             gen_error *error);

/**
 * Guesses tokens from the text itself: where its last tokens stand in it already, what came then is looked at together
 * with the next token, in one pass of the model, and is said as far as the model says the same. Answers that quote
 * their prompt, edited files and lists take fewer passes. Text, ids, log-probabilities and finish reason are those
 * of plain decoding, bit for bit, whatever was guessed; gen_result_usage tells "drafted" and "accepted". Also
 * "suffix_lookup" of gen_options_set, which looks for longer agreements and in texts of other sessions.
 *
 * "draft_policy" of gen_options_set says how much is guessed: by default what pays, by the times that passes take and
 * the share of guesses that were right.
 *
 * @param ngram   most tokens to look for, up to 64; 0 (the default) guesses nothing. 3 is a good start.
 * @param length  most tokens of a guess, up to 63; 0 stands for 8.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value outside.
 * Threads: one at a time per object.
 * Cost:    microseconds a step, 16 to 32 bytes a token of a session.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_prompt_lookup(gen_options *options, int32_t ngram, int32_t length,
                                                 gen_error *error);

/**
 * Has a smaller model guess how texts go on, where lookups have no guess: it runs a few tokens ahead, and one pass of
 * the generator's model looks at all of them. What is said does not change, see gen_options_set_prompt_lookup. Each
 * session has a cache for the draft model beside its own, in the same kv_dtype; where there is no memory for it the
 * session goes on without drafts, and the metric drafts_failed counts that. Sessions that were forked, cut, loaded or
 * whose context has shifted go on with what the text still has. Under a grammar it guesses what the grammar allows.
 *
 * @param model   the options, and generators made from them, keep it, so that it may be freed at any time; NULL goes
 *                back to none. gen_create refuses vocabularies that differ but for padding at their ends, naming the
 *                first token in which they do, and a model with a state that cannot go back.
 * @param length  most tokens of a guess, up to 63; 4 stands for 0 and less.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL options or a length above that.
 * Threads: one at a time per object.
 * Cost:    a pass of the draft model for each token of a guess.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_speculative_draft(gen_options *options, const gen_model *model,
                                                     int32_t length, gen_error *error);

/**
 * Limits how long a call waits for calls of higher priority (gen_request_set_priority): one that `steps` steps in a row
 * had no room for goes before all others in the next, whatever its priority. Results do not depend on it.
 *
 * @param steps  16 by default; with 0 priorities count for nothing, and calls take turns.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_fairness(gen_options *options, int32_t steps, gen_error *error);

/**
 * With a non-zero `on`, the logits of a token depend on the text before it alone, bit for bit: not on how many texts
 * run in a step, on how a prompt was cut, or on drafts. The CPU engine is always so. On devices it is faster without,
 * and the last bits of steps of few and of many rows then differ: with F16 and BF16 weights from nine rows on, with
 * quantised ones from 256 or more on.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_deterministic(gen_options *options, int32_t on, gen_error *error);

/**
 * Sets one option by name: "kv_dtype" "fp16", "kv_key_form" "rotated", "paged_kv" "512,16",
 * "tiered_kv" "/var/tmp,512", "context_policy" "shift,4", "prefill_chunk" "128".
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown key or a value its setter refuses.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set(gen_options *options, const char *key, const char *value,
                                   gen_error *error);

/**
 * All options as JSON: an array of {"key","type","range","default","value"}.
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_describe(const gen_options *options, char *buf, size_t capacity,
                                        size_t *n, gen_error *error);

/**
 * The cache kinds of this build as JSON: an array of {"name","bits_per_value","lossy"}. The bits include scales, and are
 * those of a model with four key and value heads of 64 elements; docs/caches.md has the formulas.
 *
 * @param buf  as in gen_options_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if n is NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_kv_kind_describe(char *buf, size_t capacity, size_t *n, gen_error *error);

/**
 * Makes a generator.
 *
 * @param model    used and kept alive by the generator.
 * @param options  how, or NULL for defaults; copied.
 * @param out      receives the generator; free it with gen_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL model or out, for options that do not go together, and for those that do
 *         not fit the model: gen_options_set_compressed_kv and its neighbours say which;
 *         GEN_ERROR_UNSUPPORTED for gen_options_set_compressed_kv and a model with windows or chunks, for a draft model
 *         with a state that cannot go back, and for drafts of any kind and a custom model with a state that can neither
 *         go back nor be copied;
 *         GEN_ERROR_IO if there can be no file for a tiered cache;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    small: caches come with sessions.
 * Since:   0.1
 */
GEN_API gen_status gen_create(const gen_model *model, const gen_options *options,
                              gen_generator **out, gen_error *error);

/**
 * Gives the generator up; it lives on while sessions use it. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_free(gen_generator *generator);

/**
 * What gen_options_set_prefix_cache has brought so far: "lookups" (calls that looked for a beginning of theirs), "hits"
 * (those that found one), "tokens" (that need not be evaluated again), "blocks" (held now), "evictions" (blocks that had
 * to go). The first three are metrics, too: prefix_lookups, prefix_hits and prompt_cached_tokens of metrics.h.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; GEN_ERROR_STATE if the generator has no prefix
 *         cache. On failure *value is 0.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_prefix_stats(const gen_generator *generator, const char *key, int64_t *value,
                                              gen_error *error);

/**
 * Gives all blocks of the prefix cache back to the pool, but for those that sessions use, which keep them. Nothing of it
 * shows in what is generated.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_STATE if the generator has no prefix cache.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_prefix_clear(gen_generator *generator, gen_error *error);

/**
 * Continues a prompt and returns the text, without the prompt. To end a call at a deadline, fire the gen_cancel of its
 * sampling from a timer, or use gen_request_set_deadline_ms.
 *
 * @param prompt    [len] UTF-8; len may be GEN_NUL_TERMINATED. Texts of special tokens are plain text.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param result    receives what was generated, also (in part) when generation began and then failed or was
 *                  stopped, else NULL; free it with gen_result_free. May itself be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL or a prompt that gives no token;
 *         GEN_ERROR_TOKENIZER if the prompt is not UTF-8;
 *         GEN_ERROR_CONTEXT_FULL if the prompt does not fit the context; one that fills it to the last token is GEN_OK
 *         with GEN_FINISH_CONTEXT_FULL and no token;
 *         GEN_ERROR_OUT_OF_RANGE for a stop token or bias outside the vocabulary;
 *         GEN_ERROR_BUSY if the generator has accepted as many calls as it takes;
 *         GEN_ERROR_GRAMMAR if a grammar names a token that the model lacks, or allows none where the text is no member,
 *         then with the partial result, or takes more than one of its limits;
 *         GEN_ERROR_CANCELLED with the partial result;
 *         GEN_ERROR_POOL_EXHAUSTED if a pool has too few blocks for it, see gen_options_set_paged_kv;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT if the file of a tiered cache cannot be written or read back;
 *         GEN_ERROR_MODEL, GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any number at once.
 * Since:   0.1
 */
GEN_API gen_status gen_generate(gen_generator *generator, const char *prompt, size_t len,
                                const gen_sampling *sampling, gen_result **result,
                                gen_error *error);

/**
 * The same, with each piece given to `callback` as it comes. The pieces together are the result's text.
 *
 * @param callback  called on this thread; the last call has done set. Non-zero stops: the status is
 *                  GEN_ERROR_CANCELLED and gen_result_user_code gives the value.
 * @return as gen_generate; GEN_ERROR_INVALID_ARGUMENT for a NULL callback.
 * Threads: any number at once.
 * Since:   0.1
 */
GEN_API gen_status gen_generate_stream(gen_generator *generator, const char *prompt, size_t len,
                                       const gen_sampling *sampling, gen_token_callback callback,
                                       void *user, gen_result **result, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_GENERATOR_H */

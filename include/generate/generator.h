/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_generator: a model with cache settings and a scheduler. Shareable: calls from many threads
 * run side by side, each with its own cache. For a conversation that continues, use a session
 * (session.h).
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

/** What a gen_piece is. */
enum {
  GEN_PIECE_TEXT = 0,      /**< text of the answer */
  GEN_PIECE_REASONING = 1, /**< text of the model's reasoning */
  GEN_PIECE_CALL_NAME = 2, /**< a tool call begins; the text is the function's name */
  GEN_PIECE_ARGUMENTS = 3, /**< more of the JSON of the call's arguments */
  GEN_PIECE_CALL_END = 4,  /**< the call is complete; no text */
  GEN_PIECE_CALL_BROKEN = 5 /**< the call is none after all; what was written of it follows as text or reasoning */
};

/** A part of an answer that a chat session has read, see gen_chat_set(). */
typedef struct gen_piece {
  int32_t kind;     /**< GEN_PIECE_… */
  int32_t call;     /**< number of the answer's call, from 0; of text and reasoning that of the next call */
  const char *text; /**< [len], NUL-terminated */
  size_t len;
} gen_piece;

/** One streamed piece, owned by the library until the callback returns or the stream's next call. */
typedef struct gen_token {
  uint32_t struct_size;  /**< sizeof(gen_token) of the library */
  int32_t id;            /**< the token drawn; -1 on the done event */
  const char *text;      /**< [text_len] whole UTF-8 characters, NUL-terminated; may be empty */
  size_t text_len;       /**< bytes of text without the NUL */
  float logprob;         /**< log-probability of the token if asked for, else 0 */
  int32_t done;          /**< 1 on the last piece of a generation; there always is one */
  int32_t finish_reason; /**< GEN_FINISH_…, set when done */
  int32_t index;         /**< number of tokens drawn before this one */
  /** [top_count] most likely tokens, best first, as many as gen_sampling_set_logprobs asked for; of this piece alone */
  const gen_token_logprob *top;
  int32_t top_count;
  int32_t piece_count;
  /** [piece_count] the parts of a chat session's answer that became certain with this token; else none */
  const gen_piece *pieces;
} gen_token;

/**
 * Receives pieces on the calling thread. Non-zero stops the generation cleanly: no further piece
 * follows, and text held back as a possible stop string appears neither in a piece nor in the
 * result's text. A following call on the session with an empty prompt delivers that text first. The
 * callback may call anything, but the session of the call returns GEN_ERROR_BUSY. An exception
 * fails the call with GEN_ERROR_INTERNAL and leaves the session as it was before the call.
 */
typedef int (*gen_token_callback)(void *user, const gen_token *token);

/**
 * Makes generator options with their defaults: float32 cache, prompts processed in chunks of 256
 * tokens.
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
 * Sets the type in which keys and values are stored: "fp32" (default), "fp16", "fp8", "q4" or "q3";
 * see gen_kv_kind_describe. "fp8/q4" is short for gen_options_set_kv_types; "q4:rotated" also sets
 * the key form.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name. On failure nothing changes.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_kv_dtype(gen_options *options, const char *name,
                                            gen_error *error);

/**
 * Sets the types of keys and values separately; gen_options_set_kv_dtype sets both. Quantised keys
 * cost more quality than quantised values.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name. On failure nothing changes.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_kv_types(gen_options *options, const char *keys, const char *values,
                                            gen_error *error);

/**
 * Sets the form in which keys are stored: "rotated", as rotary embedding produces them; "hadamard",
 * each head also multiplied by a Hadamard matrix, which spreads outliers; or "best" (the default),
 * which is "hadamard" for "q4" and "q3" if the head dimension is a multiple of 16, else "rotated".
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name. gen_create fails with the same for
 *         "hadamard" if the head dimension of the model is not a multiple of 16.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_kv_key_form(gen_options *options, const char *name, gen_error *error);

/**
 * Keeps the keys and values of all sessions of a generator in blocks of one pool. Blocks are
 * allocated as a session grows, instead of memory for a whole context per session. Results do not
 * depend on it. It can be combined with gen_options_set_kv_dtype. Where a model has no keys and
 * values, because all of its layers are recurrent, a block takes 64 bytes and only counts tokens,
 * for gen_options_set_prefix_cache.
 *
 * @param max_memory_mb  MiB that the pool may use; 0 (the default) for no pool.
 * @param block_size     positions per block, 16 by default; sizes that are not multiples of 16 waste part of each block.
 *                       When no block is free, idle sessions lose theirs, least recently used first, then the calls that
 *                       began last. Their keys and values are computed again when they continue, with the same results.
 *                       A call whose tokens need more blocks than the pool has fails with GEN_ERROR_POOL_EXHAUSTED, at
 *                       once for those of a prompt; one that open streams leave too few, after a second. Its session
 *                       stays as it was.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, a negative budget or a block size below 1. gen_create fails
 *         with the same if the budget is below one block.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_paged_kv(gen_options *options, int32_t max_memory_mb, int32_t block_size,
                                            gen_error *error);

/**
 * Keeps blocks of the pool after sessions are done with them, and reuses them for a session whose
 * tokens begin like those of an earlier one: the common prefix, counted in tokens, is not evaluated
 * again. Nothing is copied, except a block that a session continues in the middle. Full blocks of
 * prompts and of generated text are kept. Blocks used longest ago are evicted first, and all unused
 * blocks are evicted before the pool counts as exhausted. Results do not depend on it;
 * "prompt_cached" of gen_result_usage counts the tokens that it saved.
 *
 * @param blocks  maximum number of blocks to keep; 0 (the default) for none. Where layers with windows have blocks of
 *                their own (the option "window_rewind"), stretches of block_size positions are counted, each of a block
 *                of each kind of layers that is there. Needs gen_options_set_paged_kv: without it
 *                gen_create fails with GEN_ERROR_INVALID_ARGUMENT.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative number.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_prefix_cache(gen_options *options, int32_t blocks, gen_error *error);

/**
 * Compresses the past: each full chunk of positions becomes one entry, the means of its keys
 * (before rotary embedding) and values, which attention weights by the number of its positions.
 * Only the last, unfinished chunk is kept as it is. Long contexts take little memory and time, but
 * much of their content is lost. Entries are float32. gen_create refuses the combination with
 * another kv_dtype, with gen_options_set_paged_kv, and with models that have sliding windows. It
 * defeats most snapshots of a recurrent state: the cache can be cut only where a chunk ends, so of
 * the snapshots only those there are of use, such as those that
 * gen_options_set_state_snapshot_every takes at multiples of the chunk; without one a session that
 * goes back evaluates its whole text again. A model without keys and values ignores it.
 *
 * @param chunk  positions per chunk; 0 (the default) turns compression off.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative chunk.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_compressed_kv(gen_options *options, int32_t chunk, gen_error *error);

/**
 * Keeps the newest keys and values of each session in memory and the rest in a file, for contexts
 * larger than memory. Of the configuration it uses the folder, the memory, the blocks and the
 * number of layers to read ahead. The chunk size and the thresholds have no effect here; other
 * fields must not be set. The number of layers must be 0 or gen_model_config_num_cache_layers.
 * max_seq_len must be 0 or at most the model's; it then limits the context. The file has no name
 * and disappears with its session. Nothing is lost: the generated text is the same, in any kv
 * dtype. A step that cannot read or write the file fails with GEN_ERROR_IO or GEN_ERROR_FORMAT and
 * can be repeated. Forked sessions share the file without a copy. For a model without keys and
 * values only max_seq_len counts, and nothing is written. gen_create fails with
 * GEN_ERROR_INVALID_ARGUMENT if the memory is too small for the context (the message names what is
 * needed), and if paged_kv is set as well.
 *
 * @param config  copied; NULL keeps everything in memory.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if options is NULL, or a field is set that does not apply to sessions: it is named;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    a session whose context does not fit reads the older part of each layer once per step, while others compute.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_tiered_kv(gen_options *options, const kv_cache_tier_config *config,
                                             gen_error *error);

/**
 * Sets what happens when a session's context is full. "stop" (the default) ends a generation with
 * GEN_FINISH_CONTEXT_FULL. "shift" drops the oldest tokens and continues: the first `keep` tokens
 * stay, and of the others the older half is dropped, or more if a prompt needs the room.
 * gen_result_usage "dropped" counts them, and gen_session_tokens returns only the remaining tokens.
 * A prompt that does not fit beside the kept tokens still fails with GEN_ERROR_CONTEXT_FULL, and
 * gen_session_score never drops anything.
 *
 * What remains of the dropped tokens depends on the cache. With keys of "fp32" or "fp16" in plain
 * memory, keys are rotated to their new positions and values stay, so a shift is cheap and the
 * remaining entries still carry information from the dropped tokens. Any other cache, and a model
 * with chunked attention, evaluates the remaining tokens again, as if the session had begun with
 * them. Either way the result is bit-identical for any prefill_chunk, number of threads and other
 * sessions, and whether a prompt was appended before or passed to the generating call. A failed
 * call removes its own tokens, but does not restore dropped ones.
 *
 * @param keep  number of first tokens that are never dropped, begin-of-sequence included; models depend on the very
 *              first, so it should not be 0. gen_options_set without a number takes 4. Ignored for "stop".
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown name or a negative keep. gen_create fails with the
 *         same if the context is not at least 2 tokens longer than `keep`.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_context_policy(gen_options *options, const char *policy, int32_t keep,
                                                  gen_error *error);

/**
 * Takes a snapshot of the state of a model with recurrent layers every so many tokens of a text.
 * Such a state cannot be cut like keys and values: a session that goes back (an edited message,
 * another answer, gen_session_truncate) restores the nearest snapshot and evaluates what follows
 * it. There always are snapshots where a prompt begins and ends and, in chats, where the user's
 * message and the last message begin and end; these are for cuts anywhere else. Results do not
 * depend on it, and models without a state ignore it.
 *
 * @param tokens  1024 by default; 0 for none within prompts and answers.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative number.
 * Threads: one at a time per object.
 * Cost:    a snapshot copies nothing; the next pass writes to other memory. A pass of a prompt ends where one is taken.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_state_snapshot_every(gen_options *options, int32_t tokens,
                                                        gen_error *error);

/**
 * Limits the memory of the snapshots of a session's state, see
 * gen_options_set_state_snapshot_every. When it is full, the newest snapshot and those of the last
 * message stay, and the older ones thin out, the more the further they lie back. Forks share
 * snapshots, and gen_session_save writes them. With gen_options_set_prefix_cache other sessions
 * begin from snapshots beside its blocks, which take at most four times this much in all. The
 * "snapshots" of gen_memory_estimate_get is what a session's may take. Results do not depend on it,
 * and models without a state ignore it.
 *
 * @param max_memory_mb  MiB; -1 (the default) for the memory of eight snapshots. Less than one, as 0 is, means none: then
 *                       a session that goes back evaluates its whole text again, and prefixes are not shared.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a number below -1.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_state_snapshot_budget(gen_options *options, int32_t max_memory_mb,
                                                         gen_error *error);

/**
 * Processes prompts in chunks of at most `tokens`; results do not depend on it. 0 (the default)
 * means 256 on the CPU, and on a device the number that keeps it busy (1024 on an H100). The CPU
 * takes at most 512.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is outside [0, 2048].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_prefill_chunk(gen_options *options, int32_t tokens,
                                                 gen_error *error);

/**
 * Runs at most `sequences` sessions in one forward pass; any others take turns. Results do not
 * depend on it.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is outside [1, 512]; 64 is the default.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_max_batch(gen_options *options, int32_t sequences,
                                             gen_error *error);

/**
 * Accepts at most `calls` generating calls beyond max_batch; a further one fails at once with
 * GEN_ERROR_BUSY instead of waiting. A stream counts as a call from its opening to its end.
 *
 * @param calls  0 (the default) for no limit.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_max_queue(gen_options *options, int32_t calls,
                                             gen_error *error);

/**
 * Drafts tokens from the text itself (prompt lookup): if the last tokens occurred earlier in the
 * text, the tokens that followed them there are the draft. One pass of the model verifies the draft
 * together with the next token and accepts it as far as the model agrees. Answers that quote their
 * prompt, edited files and lists take fewer passes. Text, ids, log-probabilities and finish reason
 * equal those of plain decoding, bit for bit, whatever was drafted; gen_result_usage returns
 * "drafted" and "accepted". See also "suffix_lookup" of gen_options_set, which finds longer matches
 * and also searches the texts of other sessions.
 *
 * "draft_policy" of gen_options_set controls the length of drafts. By default it is the length that
 * pays off, judged by the measured times of passes and the acceptance rate.
 *
 * @param ngram   maximum number of tokens to match, at most 64; 0 (the default) drafts nothing. 3 is a good start.
 * @param length  maximum number of tokens of a draft, at most 63; 0 means 8.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value outside.
 * Threads: one at a time per object.
 * Cost:    microseconds a step, 16 to 32 bytes a token of a session.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_prompt_lookup(gen_options *options, int32_t ngram, int32_t length,
                                                 gen_error *error);

/**
 * Lets a smaller model draft where lookups find nothing: it runs a few tokens ahead, and one pass
 * of the generator's model verifies all of them. The generated text does not change, see
 * gen_options_set_prompt_lookup. Each session gets a second cache for the draft model, in the same
 * kv_dtype. If there is no memory for it, the session continues without drafts, and the metric
 * drafts_failed counts that. Sessions that were forked, truncated, loaded or shifted draft from the
 * tokens that they still hold. Under a grammar the draft follows the grammar.
 *
 * @param model   kept alive by the options and by generators made from them, so it may be freed at any time; NULL means
 *                none. gen_create refuses vocabularies that differ in more than padding at their ends, naming the first
 *                token that differs, and a draft model whose state cannot be rolled back.
 * @param length  maximum number of tokens of a draft, at most 63; 0 or less means 4.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL options or a length above 63.
 * Threads: one at a time per object.
 * Cost:    one pass of the draft model per drafted token.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_speculative_draft(gen_options *options, const gen_model *model,
                                                     int32_t length, gen_error *error);

/**
 * Lets the head of an EAGLE file draft where lookups find nothing: a small network that guesses
 * from hidden states of the generator's model, for which it was trained. The generated text does
 * not change, see gen_options_set_prompt_lookup. The file is a GGUF file of EAGLE-3
 * (general.architecture "eagle3"), of EAGLE-1 or 2, or of two products ("eagle"); a file of a
 * model's family with the blocks that draft (nextn); or for a model of gemma4 its assistant
 * ("gemma4-assistant"). It is opened by gen_create. Each session keeps one layer of keys and values
 * for it, except for an assistant, which reads the model's. If there is no memory for them, the
 * session continues without drafts, and the metric drafts_failed counts that. "draft_heads" of
 * gen_options_set has the length of drafts; a head in the model's own file is not used then, and
 * "off" there does not turn this one off ("draft_policy" "off" does). For a custom model the file
 * must have all of the head's weights, and `hidden` of its configuration must be set.
 *
 * @param path  copied; NULL or "" means none, and so does a file that does not exist when gen_create is called.
 *              gen_create refuses a file that is none of these or does not fit the model, naming the key or the tensor.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL options.
 * Threads: one at a time per object.
 * Cost:    one pass of the head per drafted token, and one row of it per token of a text.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_eagle(gen_options *options, const char *path, gen_error *error);

/**
 * Limits how long a call waits for calls of higher priority (gen_request_set_priority): a call that
 * found no room in `steps` consecutive steps precedes all others in the next, whatever its
 * priority. Results do not depend on it.
 *
 * @param steps  16 by default; 0 ignores priorities, and calls take turns.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_fairness(gen_options *options, int32_t steps, gen_error *error);

/**
 * With a non-zero `on`, the logits of a token depend only on the text before it, bit for bit: not
 * on the number of sequences in a step, the chunks of a prompt, or drafts. The CPU engine always
 * works so. Devices are faster without it; steps of few and of many rows may then differ in the
 * last bits: with F16 and BF16 weights from nine rows on, with quantised weights from 256 rows or
 * more on.
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
 * These are set by this function alone:
 * - "window_rewind" (positions, 256 by default): layers with a window keep its positions, one chunk of a prompt and this
 *   many before them, so that a session can be cut so far back. A cut further back evaluates the text again, from the
 *   nearest copy or the beginning. -1: these layers keep everything.
 * - "window_copies" (copies, 2 by default): the most copies of its windows that a session keeps for such cuts, at the
 *   borders of messages. 0: none.
 * - others that docs/options.md lists and that have no function here.
 * Results do not depend on the first two; models without windows ignore them.
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
 * Describes the cache kinds of this build as JSON: an array of {"name","bits_per_value","lossy"}.
 * The bits include scales and hold for a model with four key and value heads of 64 elements;
 * docs/caches.md has the formulas.
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
 * @param options  generator options, or NULL for defaults; copied.
 * @param out      receives the generator; free it with gen_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL model or out, for options that exclude each other, and for options that do
 *         not fit the model, as described at each setter;
 *         GEN_ERROR_UNSUPPORTED for gen_options_set_compressed_kv and a model with windows or chunks, for a draft model
 *         whose state cannot be rolled back, and for drafts of any kind with a custom model whose state can neither be
 *         rolled back nor copied, and for a file of gen_options_set_eagle without a head, or a custom model without
 *         features for it;
 *         GEN_ERROR_FORMAT for a head in such a file that does not fit the model;
 *         GEN_ERROR_IO if the file of a tiered cache cannot be made;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    small: caches are made with sessions.
 * Since:   0.1
 */
GEN_API gen_status gen_create(const gen_model *model, const gen_options *options,
                              gen_generator **out, gen_error *error);

/**
 * Releases the generator; it lives on while sessions use it. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_free(gen_generator *generator);

/**
 * Statistics of the prefix cache so far: "lookups" (calls that searched for a cached prefix),
 * "hits" (those that found one), "tokens" (tokens that were not evaluated again), "blocks" (held
 * now), "evictions" (blocks evicted). Where layers with windows have blocks of their own, the last
 * two count stretches of positions, as gen_options_set_prefix_cache does. The first three are also
 * metrics: prefix_lookups, prefix_hits and prompt_cached_tokens of metrics.h.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; GEN_ERROR_STATE if the generator has no prefix
 *         cache. On failure *value is 0.
 * Threads: any; may lag a step.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_prefix_stats(const gen_generator *generator, const char *key, int64_t *value,
                                              gen_error *error);

/**
 * Whether an EAGLE head drafts: 1 if gen_options_set_eagle() named a file that was there when the
 * generator was made, and "draft_policy" was not "off"; otherwise 0, also for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int gen_generator_eagle_enabled(const gen_generator *generator);

/**
 * The path that gen_options_set_eagle() was given; empty if none was.
 *
 * @param buf  [capacity] receives the path with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_eagle_path(const gen_generator *generator, char *buf, size_t capacity, size_t *n,
                                            gen_error *error);

/**
 * Returns all blocks of the prefix cache to the pool, except those that sessions use; these keep
 * them. The generated text does not depend on it.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_STATE if the generator has no prefix cache.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_generator_prefix_clear(gen_generator *generator, gen_error *error);

/**
 * Continues a prompt and returns the generated text without the prompt. To give a call a deadline,
 * fire the gen_cancel of its sampling from a timer, or use gen_request_set_deadline_ms.
 *
 * @param prompt    [len] UTF-8; len may be GEN_NUL_TERMINATED. Names of special tokens are plain text.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param result    receives what was generated; free it with gen_result_free. If generation began and then failed or
 *                  was stopped it receives the partial result, and NULL if it never began. May itself be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL or a prompt without tokens;
 *         GEN_ERROR_TOKENIZER if the prompt is not UTF-8;
 *         GEN_ERROR_CONTEXT_FULL if the prompt does not fit the context; a prompt that fills it exactly is GEN_OK with
 *         GEN_FINISH_CONTEXT_FULL and no token;
 *         GEN_ERROR_OUT_OF_RANGE for a stop token or bias outside the vocabulary;
 *         GEN_ERROR_BUSY if the generator's queue is full (gen_options_set_max_queue);
 *         GEN_ERROR_GRAMMAR if a grammar names a token that the model lacks, exceeds one of its limits, or allows no
 *         token where the text is not yet a member, in this case with the partial result;
 *         GEN_ERROR_CANCELLED with the partial result;
 *         GEN_ERROR_POOL_EXHAUSTED if the pool has too few blocks for it, see gen_options_set_paged_kv;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT if the file of a tiered cache cannot be written or read back;
 *         GEN_ERROR_MODEL, GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any number at once.
 * Since:   0.1
 */
GEN_API gen_status gen_generate(gen_generator *generator, const char *prompt, size_t len,
                                const gen_sampling *sampling, gen_result **result,
                                gen_error *error);

/**
 * As gen_generate, but passes each piece to `callback` as it is generated. The pieces together are
 * the result's text.
 *
 * @param callback  called on this thread; its last call has done set. Non-zero stops: the status is
 *                  GEN_ERROR_CANCELLED, and gen_result_user_code returns the value.
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

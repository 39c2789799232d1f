/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of one's own: gen_model_new_custom makes a gen_model of a function that turns tokens into logits, and
 * everything else works as with a file: generators, sessions, streams, sampling, stop strings, cancelling.
 *
 * A function that needs no more than a row's token and position has no state: leave state_new NULL. Sessions are cut,
 * forked and saved as they like. One that remembers what came before keeps it in a state for each sequence, made by
 * state_new. With state_truncate sessions can be cut, with state_clone forked; a model without state_truncate runs one
 * sequence at a time, and after a step that failed it makes a new state and runs the sequence's tokens again. With either
 * tokens can be guessed (gen_options_set_prompt_lookup and its neighbours); with neither gen_create refuses that. A sequence
 * whose keys and values a pool has given to others begins with a new state, too.
 *
 * A function that attends to what came before may leave keys and values to the library: gen_model_config_set_kv_layers
 * and gen_forward_attention. They lie in the sessions' caches of any kind, in 32 bits or 3, in pools and files, and are
 * cut, forked and saved with them.
 */
#ifndef GENERATE_CUSTOM_MODEL_H
#define GENERATE_CUSTOM_MODEL_H

#include "base.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the library knows of a running forward call. */
typedef struct gen_forward_call gen_forward_call;

/**
 * The rows of one forward call, to be read only, and only until it returns. A row is one token of one sequence; the
 * rows of a sequence follow one another, at ascending positions, right after what its earlier calls had. Rows of
 * several sequences come together where several sessions wait.
 */
typedef struct gen_forward_batch {
  uint32_t struct_size;        /**< sizeof(gen_forward_batch) of the library */
  int32_t n_rows;              /**< at least 1 */
  int32_t n_sequences;         /**< at least 1 */
  int32_t n_logits;            /**< rows that want logits; may be 0 */
  const int32_t *tokens;       /**< [n_rows] in [0, vocab_size) */
  const int32_t *positions;    /**< [n_rows] tokens of the sequence before this row */
  const int32_t *sequences;    /**< [n_rows] in [0, n_sequences), never falling: which one the row is of */
  const uint8_t *wants_logits; /**< [n_rows] 1 for rows whose logits are wanted, else 0 */
  void *const *states;         /**< [n_sequences] as state_new or state_clone gave them; NULL without them */
  const gen_forward_call *call; /**< for gen_forward_cancelled and gen_forward_attention */
  /**
   * [n_sequences] what each sequence held when the call began; NULL without kv_layers. kv_cache_get and the getters of
   * kv_cache.h read it on the thread of the call; what would change, clone or save it fails with GEN_ERROR_STATE or
   * GEN_ERROR_UNSUPPORTED. Not in the first version of this struct: there if struct_size says so.
   */
  const kv_cache *const *caches;
} gen_forward_batch;

/**
 * A model of the caller's. Members that may be NULL are marked; all are given `user`. They are called on any thread
 * that is inside a call of this library, `forward` on several at once if several generators use the model, but never
 * two with the same state. They may use other models of this library; passes of this one and all that is made from it,
 * generators, sessions and streams, answer GEN_ERROR_BUSY, but for getters without a status and gen_session_cancel. What
 * they free goes when the call around them returns. An exception is GEN_ERROR_INTERNAL, and dropped in state_free and
 * release.
 *
 * A status is GEN_OK or one of the library's errors, which the caller of the library gets unchanged; any other number
 * becomes GEN_ERROR_MODEL with the number in the message. `error` is never NULL; a message written there is passed on.
 */
typedef struct gen_forward {
  uint32_t struct_size; /**< sizeof(gen_forward) */
  void *user;           /**< passed to all functions, never dereferenced */
  /**
   * Writes the logits of the rows that want them, and takes the states on past all rows.
   *
   * @param logits    [n_logits, vocab_size] one row after another, in the order of the rows that want them. NaN and
   *                  +inf are GEN_ERROR_MODEL; -inf is a token that is never drawn. A row left unwritten is NaN.
   * @param features  [n_rows, hidden] receives the hidden states of all rows unless it is NULL, which it always is in this
   *                  version: nothing in the library reads them yet.
   */
  gen_status (*forward)(void *user, const gen_forward_batch *batch, float *logits, float *features,
                        gen_error *error);
  /** Makes the state of an empty sequence; any value will do, NULL too. NULL: the model has no state. */
  gen_status (*state_new)(void *user, void **state, gen_error *error);
  /**
   * Makes a copy that goes on by itself: for forks and, without state_truncate, before each pass over guessed tokens, to
   * come back to if not all of them were right. NULL: sessions cannot be forked.
   */
  gen_status (*state_clone)(void *user, const void *state, void **out, gen_error *error);
  /**
   * Takes a state back to its first `n` tokens. Called to cut a sequence, and after a forward call that failed for each
   * of its states, which may or may not have gone further. A state that cannot go back is freed, and made again from
   * the sequence's tokens. NULL: sessions cannot be cut.
   */
  gen_status (*state_truncate)(void *user, void *state, int32_t n, gen_error *error);
  /** Ends a state, once for each that state_new or state_clone made. May be NULL. */
  void (*state_free)(void *user, void *state);
  /** Called once, when the model and all that was made from it are gone. May be NULL. */
  void (*release)(void *user);
} gen_forward;

/**
 * Makes a configuration in which nothing is set: no sizes, no eos, no bos, the name "custom".
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_new(gen_model_config **out, gen_error *error);

/**
 * Frees a configuration that gen_model_config_new made; NULL is fine. Those of models go with them.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_model_config_free(gen_model_config *config);

/**
 * Sets the number of tokens of the vocabulary. Must be set.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value below 1. On failure nothing changes, here and in every
 *         setter below.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_vocab_size(gen_model_config *config, int32_t tokens, gen_error *error);

/**
 * Sets the most tokens that a sequence can hold, prompt included. Must be set.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value below 1.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_max_seq_len(gen_model_config *config, int32_t tokens, gen_error *error);

/**
 * Sets the token that ends a text, beside those that the tokenizer knows; -1 (the default) for no other.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value below -1. A token outside the vocabulary is the same
 *         from gen_model_new_custom.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_eos(gen_model_config *config, int32_t token, gen_error *error);

/**
 * Sets the token that gen_model_config_bos tells of; -1 (the default) for the tokenizer's. What is put before a text is
 * the tokenizer's in any case; prompts of tokens are taken as they are.
 *
 * @return as gen_model_config_set_eos.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_bos(gen_model_config *config, int32_t token, gen_error *error);

/**
 * Sets the number of layers; 0 is the default. This and the next three are for those who ask the model, and the heads for
 * gen_forward_attention.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative value.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_num_layers(gen_model_config *config, int32_t layers, gen_error *error);
/** Sets the query heads of a layer, as gen_model_config_set_num_layers. Threads: one at a time per object. Since: 0.1 */
GEN_API gen_status gen_model_config_set_num_heads(gen_model_config *config, int32_t heads, gen_error *error);
/** Sets the key and value heads, as gen_model_config_set_num_layers. Threads: one at a time per object. Since: 0.1 */
GEN_API gen_status gen_model_config_set_num_kv_heads(gen_model_config *config, int32_t heads, gen_error *error);
/** Sets the elements of a head, as gen_model_config_set_num_layers. Threads: one at a time per object. Since: 0.1 */
GEN_API gen_status gen_model_config_set_head_dim(gen_model_config *config, int32_t elements, gen_error *error);

/**
 * Sets the width of the hidden state, which gen_model_config_hidden tells and the features of gen_forward would have; 0
 * (the default): the model gives no features.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative value.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_hidden(gen_model_config *config, int32_t elements, gen_error *error);

/**
 * Sets in how many layers the function uses gen_forward_attention; 0 (the default): caches of the model hold nothing. Heads
 * and their elements must then be set: num_heads, a multiple of num_kv_heads, and head_dim, else gen_model_new_custom
 * fails with GEN_ERROR_INVALID_ARGUMENT.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value outside [0, 65536].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_kv_layers(gen_model_config *config, int32_t layers, gen_error *error);

/**
 * Sets the name under which gen_model_describe shows the model, and which a saved session must meet again.
 *
 * @param name  [1 to 31 bytes] of printable ASCII without quotes; "custom" is the default.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or another name.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_name(gen_model_config *config, const char *name, gen_error *error);

/**
 * Sets one of these by name: "vocab_size" "64", "eos" "-1", "name" "markov" …
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown key or a value its setter refuses.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set(gen_model_config *config, const char *key, const char *value,
                                        gen_error *error);

/**
 * All of them as JSON: an array of {"key","type","range","default","value"}. Also of a model's own configuration.
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_describe(const gen_model_config *config, char *buf, size_t capacity, size_t *n,
                                             gen_error *error);

/**
 * Makes a model of a function of the caller's.
 *
 * Without kv_layers its caches hold nothing: gen_options_set_paged_kv, _compressed_kv and _tiered_kv are refused by
 * gen_create, other kinds of cache make no difference. gen_model_forward runs models without a state, over a cache of kv_cache_generator_new.
 *
 * @param forward    table, copied; its functions must work as long as the model or anything made from it. On failure
 *                   `release` is not called.
 * @param config     sizes, copied; vocab_size and max_seq_len must be set.
 * @param tokenizer  for texts, kept by the model; NULL if there is none: then prompts are tokens
 *                   (gen_session_append_tokens, then generating with an empty prompt) and texts are empty.
 * @param out        receives the model; free it with gen_model_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL forward, config or out; a struct_size below that of version 0.1, a
 *         missing `forward`, or functions on states without state_new; sizes that are not set, or an eos or bos outside
 *         the vocabulary;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_new_custom(const gen_forward *forward, const gen_model_config *config,
                                        const gen_tokenizer *tokenizer, gen_model **out, gen_error *error);

/**
 * Keeps keys and values of the batch's rows in their sequences' caches, and attends to all that a row may see: itself and
 * what came before it in its sequence. To be called by a forward function, once for each of the kv_layers, in any order.
 * A call that leaves one out is GEN_ERROR_MODEL; what one that fails has kept is dropped. Positions are in the keys and
 * queries as far as the function puts them there.
 *
 * @param batch  as the function was given it.
 * @param layer  in [0, kv_layers).
 * @param q      [n_rows, num_heads, head_dim]
 * @param k      [n_rows, num_kv_heads, head_dim]
 * @param v      [n_rows, num_kv_heads, head_dim]
 * @param scale  factor of the products of queries and keys, before the softmax.
 * @param out    [n_rows, num_heads, head_dim] receives the values, weighted; not part of the inputs.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, a scale that is not finite, or a layer that was run already;
 *         GEN_ERROR_OUT_OF_RANGE for a layer that is none;
 *         GEN_ERROR_UNSUPPORTED for a model without kv_layers;
 *         GEN_ERROR_OUT_OF_MEMORY; GEN_ERROR_IO and GEN_ERROR_FORMAT of a tiered cache. All may be returned by the function.
 *         GEN_ERROR_BUSY  while another call on the batch runs.
 * Threads: the one that the forward function was called on. Works on one thread per usable CPU.
 * Since:   0.1
 */
GEN_API gen_status gen_forward_attention(const gen_forward_batch *batch, int32_t layer, const float *q, const float *k,
                                         const float *v, float scale, float *out, gen_error *error);

/**
 * Whether the call that a batch is of has been cancelled meanwhile, for functions that take long: they may then return
 * GEN_ERROR_CANCELLED. A batch of several sequences is never cancelled as a whole.
 *
 * @return 1 or 0; 0 for NULL.
 * Threads: any, as long as the forward call runs.
 * Since:   0.1
 */
GEN_API int32_t gen_forward_cancelled(const gen_forward_batch *batch);

/**
 * Lays sequences of different lengths out as a rectangle, each at the right end of its row with `pad` before it, for
 * functions that compute in rectangles.
 *
 * @param tokens    all sequences, one after another.
 * @param lengths   [count] tokens of each; 0 is allowed.
 * @param pad       what fills up; any number.
 * @param out       [capacity] receives [count, width], or NULL to ask the width.
 * @param width     receives the longest length; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL width, NULL lengths with a count, or NULL tokens with a length above
 *         0; GEN_ERROR_OUT_OF_RANGE if count times width do not fit the buffer.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_pad_left(const int32_t *tokens, const size_t *lengths, size_t count, int32_t pad, int32_t *out,
                                size_t capacity, size_t *width, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_CUSTOM_MODEL_H */

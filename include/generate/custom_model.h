/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom models: gen_model_new_custom makes a gen_model from a function that turns tokens into
 * logits. Everything else works as with a model file: generators, sessions, streams, sampling, stop
 * strings, cancelling.
 *
 * A function that needs only the token and the position of a row has no state: leave state_new
 * NULL; its sessions can be truncated, forked and saved freely. A function that needs earlier
 * tokens keeps them in a state per sequence, made by state_new. With state_truncate sessions can be
 * truncated, with state_clone forked and taken back to snapshots (ssm_state.h), with
 * state_get_layer their states can be read. A model without state_truncate runs one sequence at a
 * time; after a failed step it makes a new state and evaluates the sequence's tokens again. With
 * either function tokens can be drafted (gen_options_set_prompt_lookup and the other drafters);
 * with neither, gen_create refuses drafters. A sequence whose blocks a pool has given to others
 * also begins with a new state.
 *
 * A function that gives hidden states as features, beside logits, can have a head that drafts from
 * them: eagle.h.
 *
 * A function that uses attention may leave keys and values to the library:
 * gen_model_config_set_kv_layers and gen_forward_attention. They are stored in the sessions'
 * caches, of any kind, in 32 bits or 3, in pools and files, and are truncated, forked and saved
 * with them.
 */
#ifndef GENERATE_CUSTOM_MODEL_H
#define GENERATE_CUSTOM_MODEL_H

#include "base.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Identifies a running forward call. */
typedef struct gen_forward_call gen_forward_call;

/**
 * The rows of one forward call; read-only, and valid only until the call returns. A row is one
 * token of one sequence. The rows of a sequence are consecutive, at ascending positions that
 * continue its earlier calls. If several sessions wait, rows of several sequences come together.
 */
typedef struct gen_forward_batch {
  uint32_t struct_size;        /**< sizeof(gen_forward_batch) of the library */
  int32_t n_rows;              /**< at least 1 */
  int32_t n_sequences;         /**< at least 1 */
  int32_t n_logits;            /**< rows that want logits; may be 0 */
  const int32_t *tokens;       /**< [n_rows] in [0, vocab_size) */
  const int32_t *positions;    /**< [n_rows] number of tokens of the sequence before this row */
  const int32_t *sequences;    /**< [n_rows] in [0, n_sequences), never decreasing: the row's sequence */
  const uint8_t *wants_logits; /**< [n_rows] 1 for rows whose logits are wanted, else 0 */
  void *const *states;         /**< [n_sequences] as state_new or state_clone gave them; NULL without them */
  const gen_forward_call *call; /**< for gen_forward_cancelled and gen_forward_attention */
  /**
   * [n_sequences] what each sequence held when the call began; NULL without kv_layers. kv_cache_get and the getters of
   * kv_cache.h can read it on the thread of the call; functions that would change, clone or save it fail with
   * GEN_ERROR_STATE or GEN_ERROR_UNSUPPORTED. Absent from the first version of this struct: check struct_size.
   */
  const kv_cache *const *caches;
} gen_forward_batch;

/**
 * A custom model. Members that may be NULL are marked; all receive `user`. They are called on any
 * thread that is inside a call of this library; `forward` is called on several at once if several
 * generators use the model, but never on two with the same state. They may use other models of this
 * library. Passes of this model and all objects made from it (generators, sessions and streams)
 * return GEN_ERROR_BUSY in them, except getters without a status and gen_session_cancel. Objects
 * freed in them are destroyed when the surrounding call returns. An exception is
 * GEN_ERROR_INTERNAL; in state_free and release it is dropped.
 *
 * A status is GEN_OK or one of the library's errors, which is returned to the caller of the library
 * unchanged; any other number becomes GEN_ERROR_MODEL, with the number in the message. `error` is
 * never NULL; a message written to it is passed on.
 */
typedef struct gen_forward {
  uint32_t struct_size; /**< sizeof(gen_forward) */
  void *user;           /**< passed to all functions, never dereferenced */
  /**
   * Writes the logits of the rows that want them, and advances the states past all rows.
   *
   * @param logits    [n_logits, vocab_size] one row per row that wants logits, in their order. NaN and +inf are
   *                  GEN_ERROR_MODEL; a token with -inf is never drawn. A row left unwritten counts as NaN.
   * @param features  [n_rows, hidden] receives the hidden states of all rows, whether or not they want logits; NULL unless a
   *                  head drafts from them (eagle.h, gen_options_set_eagle). Which states these are is up to the function:
   *                  those that the head was trained on. For EAGLE-3, they are three, one beside the other. A row left
   *                  unwritten, or with a number that is not finite, has no draft behind it, and changes no text.
   */
  gen_status (*forward)(void *user, const gen_forward_batch *batch, float *logits, float *features,
                        gen_error *error);
  /**
   * Makes the state of an empty sequence; any value is allowed, including NULL. If this member is
   * NULL, the model has no state.
   */
  gen_status (*state_new)(void *user, void **state, gen_error *error);
  /**
   * Makes an independent copy: for forks, for gen_ssm_state_snapshot and _restore of sessions, and, without
   * state_truncate, before each pass over draft tokens, as the state to return to if not all of them are accepted. NULL:
   * sessions can neither be forked nor have snapshots.
   */
  gen_status (*state_clone)(void *user, const void *state, void **out, gen_error *error);
  /**
   * Rolls a state back to its first `n` tokens. Called to truncate a sequence, and for each state of a failed forward
   * call, which may or may not have advanced it. A state that cannot be rolled back is freed and made again from the
   * sequence's tokens. NULL: sessions cannot be truncated.
   */
  gen_status (*state_truncate)(void *user, void *state, int32_t n, gen_error *error);
  /** Frees a state; called once for each one that state_new or state_clone made. May be NULL. */
  void (*state_free)(void *user, void *state);
  /** Called once, when the model and everything made from it have been freed. May be NULL. */
  void (*release)(void *user);
  /**
   * Number of layers that state_get_layer can copy, 0 to 65536. This member and the next are absent from the first
   * version of this struct; they are for gen_session_ssm_state and may be zero and NULL.
   */
  int32_t state_layers;
  /**
   * Tells the shape of a layer of a state, a number of floats in row-major order, and copies it. The shape must be the
   * same for every state of the model.
   *
   * @param layer  in [0, state_layers).
   * @param h      receives the floats; NULL to ask for the shape only.
   * @param shape  receives three sizes of 0 or more.
   */
  gen_status (*state_get_layer)(void *user, const void *state, int32_t layer, float *h, int32_t shape[3],
                                gen_error *error);
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
 * Frees a configuration that gen_model_config_new made; NULL is fine. A model's own configuration
 * is freed with it.
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
 * Sets the maximum number of tokens of a sequence, prompt included. Must be set.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value below 1.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_max_seq_len(gen_model_config *config, int32_t tokens, gen_error *error);

/**
 * Sets a token that ends a text, in addition to the tokenizer's; -1 (the default) for none.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value below -1. For a token outside the vocabulary the same
 *         from gen_model_new_custom.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_eos(gen_model_config *config, int32_t token, gen_error *error);

/**
 * Sets the token that gen_model_config_bos returns; -1 (the default) for the tokenizer's. Texts are
 * always encoded with the tokenizer's own; prompts of tokens are used as they are.
 *
 * @return as gen_model_config_set_eos.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_bos(gen_model_config *config, int32_t token, gen_error *error);

/**
 * Sets the number of layers; 0 is the default. This value and the next three are informative; only
 * gen_forward_attention uses the heads.
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
 * Sets the width of the hidden state, as returned by gen_model_config_hidden, and of the features
 * of gen_forward, for EAGLE-3 of all three together; 0 (the default): the model has no features, and
 * no head.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative value.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_hidden(gen_model_config *config, int32_t elements, gen_error *error);

/**
 * Sets the number of layers in which the function uses gen_forward_attention; 0 (the default):
 * caches of the model stay empty. The heads must then be set: num_heads, a multiple of
 * num_kv_heads, and head_dim, else gen_model_new_custom fails with GEN_ERROR_INVALID_ARGUMENT.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a value outside [0, 65536].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_kv_layers(gen_model_config *config, int32_t layers, gen_error *error);

/**
 * Sets the name that gen_model_describe shows and that a saved session must match.
 *
 * @param name  [1 to 31 bytes] of printable ASCII without quotes; "custom" is the default.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or another name.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set_name(gen_model_config *config, const char *name, gen_error *error);

/**
 * Sets one value by name: "vocab_size" "64", "eos" "-1", "name" "markov" …
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown key or a value its setter refuses.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_config_set(gen_model_config *config, const char *key, const char *value,
                                        gen_error *error);

/**
 * Describes all values as JSON: an array of {"key","type","range","default","value"}. Also works on
 * a model's own configuration.
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
 * Makes a model from a function of the caller.
 *
 * Without kv_layers its caches stay empty, and the options of caches make no difference.
 * gen_model_forward runs models without a state, with a cache of kv_cache_generator_new.
 *
 * @param forward    table, copied; its functions must work as long as the model or anything made from it. On failure
 *                   `release` is not called.
 * @param config     sizes, copied; vocab_size and max_seq_len must be set.
 * @param tokenizer  for texts, kept alive by the model; with NULL, prompts must be tokens
 *                   (gen_session_append_tokens, then generating with an empty prompt) and texts are empty.
 * @param out        receives the model; free it with gen_model_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL forward, config or out; a struct_size below that of version 0.1, a
 *         missing `forward`, or state functions without state_new; state_layers outside its range, or above 0 without
 *         state_new or state_get_layer; sizes that are not set, or an eos or bos outside the vocabulary;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_new_custom(const gen_forward *forward, const gen_model_config *config,
                                        const gen_tokenizer *tokenizer, gen_model **out, gen_error *error);

/**
 * Appends keys and values of the batch's rows to the caches of their sequences, and computes
 * attention over all that a row may see: itself and the earlier positions of its sequence. To be
 * called by a forward function, once for each of the kv_layers, in any order. A forward call that
 * omits a layer is GEN_ERROR_MODEL; entries of a failed call are dropped. Positional encoding of
 * keys and queries is up to the function.
 *
 * @param batch  as passed to the function.
 * @param layer  in [0, kv_layers).
 * @param q      [n_rows, num_heads, head_dim]
 * @param k      [n_rows, num_kv_heads, head_dim]
 * @param v      [n_rows, num_kv_heads, head_dim]
 * @param scale  factor of the products of queries and keys, before the softmax.
 * @param out    [n_rows, num_heads, head_dim] receives the weighted values; must not overlap the inputs.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, a scale that is not finite, or a layer that was run already;
 *         GEN_ERROR_OUT_OF_RANGE for a layer outside [0, kv_layers);
 *         GEN_ERROR_UNSUPPORTED for a model without kv_layers;
 *         GEN_ERROR_OUT_OF_MEMORY; GEN_ERROR_IO and GEN_ERROR_FORMAT of a tiered cache. The function may return any of these.
 *         GEN_ERROR_BUSY  while another call on the batch runs.
 * Threads: the one that the forward function was called on. Works on one thread per usable CPU.
 * Since:   0.1
 */
GEN_API gen_status gen_forward_attention(const gen_forward_batch *batch, int32_t layer, const float *q, const float *k,
                                         const float *v, float scale, float *out, gen_error *error);

/**
 * Whether the call to which a batch belongs has been cancelled, for functions that take long: they
 * may then return GEN_ERROR_CANCELLED. A batch of several sequences is never cancelled as a whole.
 *
 * @return 1 or 0; 0 for NULL.
 * Threads: any, while the forward call runs.
 * Since:   0.1
 */
GEN_API int32_t gen_forward_cancelled(const gen_forward_batch *batch);

/**
 * Arranges sequences of different lengths as a rectangle, each at the right end of its row with
 * `pad` before it, for functions that compute on rectangular batches.
 *
 * @param tokens    all sequences, one after another.
 * @param lengths   [count] tokens of each; 0 is allowed.
 * @param pad       the padding token; any number.
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

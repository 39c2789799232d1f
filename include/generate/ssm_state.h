/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_ssm_state: the state of recurrent layers, three-dimensional float32 for each, of constant size
 * however long the sequence is. Such a state cannot be rolled back to an earlier position; a
 * snapshot taken there can be restored instead. There are two kinds.
 *
 * A host's own: gen_ssm_state_new makes [batch, d_inner, d_state] for each layer, zeros at first. No
 * model uses it.
 *
 * A session's: gen_session_ssm_state lends what the session's model keeps beside keys and values,
 * after the tokens that the session has evaluated, gen_ssm_state_position of them. A sampled token,
 * and the last one of an appended prompt, is evaluated when the session goes on; so are the tokens
 * from the last state to which gen_session_truncate could go back up to where it cut. Each
 * recurrence is a layer of its own; a block of a model may have two. Their kinds, and their shapes
 * in row-major order:
 *   "convolution"     [1, kernel - 1, channels]  the rows that the next one is convolved with, oldest first
 *   "delta net"       [heads, k_dim, v_dim]      the matrix of each value head
 *   "selective scan"  [heads, channels, size]    Mamba; one channel in each head of Mamba-1
 *   "scan"            [1, channels, 1]           a number for each channel
 *   "custom"          as a custom model's state_get_layer says (custom_model.h)
 * The values do not depend on how the tokens came to be evaluated. They are zeros at the beginning.
 * A session's state is that of its text, so it cannot be set; the session can go back to a snapshot.
 */
#ifndef GENERATE_SSM_STATE_H
#define GENERATE_SSM_STATE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The state of one sequence, or of a batch of sequences that advance together. One thread at a time; a session's is busy
 * whenever the session is.
 */
typedef struct gen_ssm_state gen_ssm_state;

/**
 * Makes a state of zeros for one sequence: gen_ssm_state_new_batch with a batch of 1.
 *
 * @param layers   number of layers, 0 to 65536.
 * @param d_inner  channels of a layer, 1 and up.
 * @param d_state  numbers of a channel, 1 and up.
 * @param out      receives the state; free it with gen_ssm_state_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if a number is outside its range or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_new(int32_t layers, int32_t d_inner, int32_t d_state,
                                     gen_ssm_state **out, gen_error *error);

/**
 * Makes a state of zeros for `batch` sequences that advance together.
 *
 * @param layers   number of layers, 0 to 65536.
 * @param batch    sequences, 1 and up.
 * @param d_inner  channels of a layer, 1 and up.
 * @param d_state  numbers of a channel, 1 and up.
 * @param out      receives the state; free it with gen_ssm_state_free.
 * @return as gen_ssm_state_new.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_new_batch(int32_t layers, int32_t batch, int32_t d_inner,
                                           int32_t d_state, gen_ssm_state **out, gen_error *error);

/**
 * Number of layers that the state was made with, or that a session's model has; 0 for NULL, and for
 * a custom model without state_layers.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_ssm_state_num_layers(const gen_ssm_state *state);

/**
 * Number of tokens that a session's state is after; it may lag a running step. 0 for NULL, for a
 * host's own state, and for a session whose cache must be made again: its blocks were given to
 * others, or a cut failed. The state is then read as that of an empty session.
 *
 * Threads: any, also while the session is in use.
 * Since:   0.1
 */
GEN_API int32_t gen_ssm_state_position(const gen_ssm_state *state);

/**
 * What a layer of the state is: one of the kinds above, or "host" for a host's own state.
 *
 * @param layer  in [0, layers).
 * @return a constant text; NULL for NULL, and if there is no such layer.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *gen_ssm_state_layer_kind(const gen_ssm_state *state, int32_t layer);

/**
 * The layer of the model that a layer of the state belongs to, from 0; of a host's own state and of
 * a custom model's it is the same number.
 *
 * @param layer  in [0, layers).
 * @return -1 for NULL, and if there is no such layer.
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_ssm_state_layer_index(const gen_ssm_state *state, int32_t layer);

/**
 * Copies the state of a layer.
 *
 * @param layer     in [0, layers).
 * @param h         [capacity] floats, receives the numbers; NULL to ask for the shape.
 * @param capacity  of h.
 * @param shape     receives the three sizes: batch, d_inner and d_state of a host's own state; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if state is NULL;
 *         GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer, or h is too small; shape then has what is needed;
 *         GEN_ERROR_STATE in a child of fork(), of a session's state;
 *         GEN_ERROR_MODEL; GEN_ERROR_OUT_OF_MEMORY; for a session's state also what its cache returns when it grows.
 *         On any failure h is untouched, and so is the session.
 * Threads: one at a time per state.
 * Cost:    of a session's state, up to 63 tokens that the model keeps beside the state are evaluated again for the first
 *          layer that is read after they came; meanwhile there is a copy of the session's cache as gen_session_fork
 *          makes it. They are there after a short prompt, and after drafts.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_get_layer(const gen_ssm_state *state, int32_t layer, float *h,
                                           size_t capacity, int32_t shape[3], gen_error *error);

/**
 * Replaces the state of a layer.
 *
 * @param layer    in [0, layers).
 * @param h        [batch, d_inner, d_state] float32. Copied.
 * @param batch    as the state was made with; so are d_inner and d_state.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if state or h is NULL, or the shape differs;
 *         GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer;
 *         GEN_ERROR_UNSUPPORTED for a session's state, GEN_ERROR_STATE for it in a child of fork().
 *         On any failure the state is unchanged.
 * Threads: one at a time per state.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_set_layer(gen_ssm_state *state, int32_t layer, const float *h,
                                           int32_t batch, int32_t d_inner, int32_t d_state,
                                           gen_error *error);

/**
 * Keeps a copy of all layers. The last 16 copies are kept; they are numbered 1, 2, 3 and so on.
 *
 * @param snapshot  receives the copy's number.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if state or snapshot is NULL;
 *         GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_STATE in a child of fork(), of a session's state;
 *         GEN_ERROR_UNSUPPORTED for a session of a custom model without state_clone;
 *         GEN_ERROR_OUT_OF_MEMORY. state_clone may fail with other statuses.
 * Threads: one at a time per state.
 * Cost:    copies the state; only the first 16 allocate. Of a session's state nothing is copied but the ids of its
 *          tokens, and a custom model's state: the session's next pass writes to other memory. Until it is replaced, the
 *          snapshot takes gen_ssm_state_memory_bytes, and as much again where tokens are kept beside it.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_snapshot(gen_ssm_state *state, int64_t *snapshot,
                                          gen_error *error);

/**
 * Restores a snapshot. Snapshots stay as they are.
 *
 * A session holds again what it held when the snapshot was taken: the state, the cache's entries and
 * all tokens, also those that were not evaluated. It goes on from there as it would have then. A
 * snapshot from further on in a text can be restored once the session holds that text again. A cache
 * that cannot be cut there, since gen_options_set_compressed_kv made means of the entries, is cut
 * further, and gen_ssm_state_position is lower than it was; so it is where blocks were given to
 * others, and where layers no longer have the window of that place (the options "window_rewind" and
 * "window_copies"). The text behind it runs again. The messages of a chat session stay:
 * gen_chat_truncate removes them.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if state is NULL;
 *         GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there never was such a snapshot, or 16 newer ones replaced it;
 *         GEN_ERROR_STATE if the session's text no longer begins with the tokens that were evaluated then, and of a
 *         session's state in a child of fork();
 *         GEN_ERROR_OUT_OF_MEMORY. state_clone may fail with other statuses.
 *         On any failure the state and the session are unchanged.
 * Threads: one at a time per state.
 * Cost:    copies the state; of a session, only a custom model's. Nothing is evaluated. Tokens that the session's cache
 *          no longer has are evaluated when it goes on.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_restore(gen_ssm_state *state, int64_t snapshot, gen_error *error);

/**
 * Sets all layers to zeros, in the same memory. Snapshots stay.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if state is NULL; GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_UNSUPPORTED for a session's state: gen_session_reset empties the session; GEN_ERROR_STATE for it in a
 *         child of fork().
 * Threads: one at a time per state.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_reset(gen_ssm_state *state, gen_error *error);

/**
 * Bytes of the state: the floats of all layers, for a host's own state layers * batch * d_inner *
 * d_state * 4. Each snapshot of a host's own state takes as many. 0 for NULL, and for a custom model,
 * whose states only its functions know.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int64_t gen_ssm_state_memory_bytes(const gen_ssm_state *state);

/**
 * Frees the state and its snapshots. NULL is fine. A session's state is freed with the session: for
 * one this does nothing.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void gen_ssm_state_free(gen_ssm_state *state);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_SSM_STATE_H */

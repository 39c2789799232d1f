/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_ssm_state: the state of recurrent (Mamba-type) layers, [batch, d_inner, d_state] float32 per
 * layer, of constant size however long the sequence is. Such a state cannot be rolled back to an
 * earlier position; a snapshot taken there can be restored instead.
 */
#ifndef GENERATE_SSM_STATE_H
#define GENERATE_SSM_STATE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The state of one sequence, or of a batch of sequences that advance together. One thread at a time. */
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
 * Number of layers that the state was made with; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_ssm_state_num_layers(const gen_ssm_state *state);

/**
 * Copies the state of a layer.
 *
 * @param layer     in [0, layers).
 * @param h         [capacity] floats, receives [batch, d_inner, d_state]; NULL to ask for the shape.
 * @param capacity  of h.
 * @param shape     receives batch, d_inner and d_state; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if state is NULL;
 *         GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer, or h is too small; shape then has what is needed.
 *         On any failure h is untouched.
 * Threads: one at a time per state.
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
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer.
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
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per state.
 * Cost:    copies the state; only the first 16 allocate.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_snapshot(gen_ssm_state *state, int64_t *snapshot,
                                          gen_error *error);

/**
 * Restores a snapshot. Snapshots stay as they are.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if state is NULL;
 *         GEN_ERROR_BUSY if the state is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there never was such a snapshot, or 16 newer ones replaced it.
 *         On any failure the state is unchanged.
 * Threads: one at a time per state.
 * Cost:    copies the state.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_restore(gen_ssm_state *state, int64_t snapshot, gen_error *error);

/**
 * Sets all layers to zeros, in the same memory. Snapshots stay.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if state is NULL; GEN_ERROR_BUSY if the state is in use.
 * Threads: one at a time per state.
 * Since:   0.1
 */
GEN_API gen_status gen_ssm_state_reset(gen_ssm_state *state, gen_error *error);

/**
 * Bytes of the state, layers * batch * d_inner * d_state * 4; each snapshot takes as many. 0 for
 * NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int64_t gen_ssm_state_memory_bytes(const gen_ssm_state *state);

/**
 * Frees the state and its snapshots. NULL is fine.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void gen_ssm_state_free(gen_ssm_state *state);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_SSM_STATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU caches: keys and values of one sequence as float32 or binary16 buffers on a device, one
 * buffer for keys and one for values per layer, [max_seq_len, heads, head_dim], for the caller's
 * own kernels, which take raw addresses. All memory comes from the caller's allocator (gpu.h) when
 * the cache is made; no engine and no model is needed. Input is float32; a binary16 cache rounds it
 * to nearest even, values from 65520 on to infinity, and a NaN to the quiet NaN with its sign. A
 * counter on the device holds the position to be written next. Everything in kv_cache.h except
 * kv_cache_view and a model's pass works on such a cache, with batch 1 and dim heads * head_dim;
 * kv_cache_full_buffer returns addresses on the device. A truncate or reset also sets the counter.
 */
#ifndef GENERATE_KV_CACHE_GPU_H
#define GENERATE_KV_CACHE_GPU_H

#include "base.h"
#include "gpu.h"
#include "kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes an empty GPU cache of "fp32"; see kv_cache_gpu_new_typed.
 *
 * @return as kv_cache_gpu_new_typed.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_new(const gen_gpu_allocator *allocator, int32_t layers, int32_t max_seq_len, int32_t heads,
                                    int32_t head_dim, kv_cache **out, gen_error *error);

/**
 * Makes an empty GPU cache with all of its memory: 2 * layers buffers of max_seq_len * heads *
 * head_dim elements, of 4 bytes for "fp32" and 2 for "fp16", and one of 12 bytes: the counter and 8
 * bytes of internal use.
 *
 * @param allocator    table, copied; its functions must work until the cache and its clones are freed.
 * @param layers       number of layers, 1 to 65536.
 * @param max_seq_len  maximum number of positions, 1 and up.
 * @param heads        1 and up.
 * @param head_dim     elements of a head, 1 and up; heads * head_dim is at most 2147483647.
 * @param dtype        "fp32", also meant by NULL, or "fp16": binary16 as kv_cache_fp16_new stores it.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if allocator or out is NULL, a number is outside its range, dtype unknown, struct_size
 *         below that of version 0.1, or a function missing;
 *         GEN_ERROR_OUT_OF_MEMORY; GEN_ERROR_DEVICE of the allocator. All memory has then been given back.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_new_typed(const gen_gpu_allocator *allocator, int32_t layers, int32_t max_seq_len,
                                          int32_t heads, int32_t head_dim, const char *dtype, kv_cache **out,
                                          gen_error *error);

/**
 * Appends one position to one layer, from host memory. The cache's length and the counter advance
 * when all layers have it. Errors are checked in the order of the list.
 *
 * @param layer     in [0, layers).
 * @param k         [heads, head_dim] float32 on the host. Copied.
 * @param v         as k.
 * @param position  must be kv_cache_seq_len.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache, k or v is NULL, or the cache is of another kind;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer;
 *         GEN_ERROR_SEQUENCE if position is any other;
 *         GEN_ERROR_CACHE_FULL at max_seq_len;
 *         GEN_ERROR_STATE if the layer has that position already;
 *         GEN_ERROR_OUT_OF_MEMORY if "fp16" finds no host memory for rounding;
 *         GEN_ERROR_DEVICE if a copy fails.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_append(kv_cache *cache, int32_t layer, const float *k, const float *v, int32_t position,
                                       gen_error *error);

/**
 * Appends the next position to one layer, from the device's memory.
 *
 * @param layer  in [0, layers).
 * @param k      address on the device of [heads, head_dim] float32. Only the allocator's copy reads it.
 * @param v      as k.
 * @return as kv_cache_gpu_append, without GEN_ERROR_SEQUENCE.
 * Threads: one at a time per cache.
 * Cost:    complete when it returns. Copies on the device; for "fp16" it copies to the host, which rounds, and back:
 *          kv_cache_gpu_append_stream rounds on the device.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_append_device(kv_cache *cache, int32_t layer, const void *k, const void *v,
                                              gen_error *error);

/**
 * Enqueues the append of the next position to one layer on a CUDA stream, without waiting. One
 * kernel writes k and v at the position that the counter on the device holds when it runs. The
 * kernel of the last layer, once all others have the position, also advances the counter by one. A
 * stream that is being captured records the kernel in the caller's graph: replays append further
 * positions. A kernel that finds the counter outside [0, max_seq_len) writes nothing and leaves the
 * counter as it is; kv_cache_gpu_sync_counter then reports dropped appends.
 *
 * The cache's length advances with each call as for kv_cache_gpu_append_device, also during a
 * capture, when nothing runs. A replay advances only the counter: update the length with
 * kv_cache_gpu_sync_counter after the last one. No other function is ordered with the stream: wait
 * for it (cudaStreamSynchronize) before any that reads or writes the cache's content or counter.
 * Several streams that append to the same cache must be ordered among themselves. The first call on
 * a device loads the kernel, which should not happen during a capture: make one call before
 * capturing. A captured graph is valid until the cache is freed.
 *
 * @param layer   in [0, layers).
 * @param k       address on the device, a multiple of 4, of [heads, head_dim] float32. Read when the kernel runs, and again
 *                by each replay; never by the host.
 * @param v       as k.
 * @param stream  a cudaStream_t of the allocator's device, from the same process. NULL is refused: use cudaStreamLegacy
 *                for the legacy default stream. For an allocator of device -1 it must be NULL, and the append is complete
 *                when the call returns.
 * @return GEN_OK: enqueued. A later failure on the device is GEN_ERROR_DEVICE of a later call;
 *         GEN_ERROR_INVALID_ARGUMENT if cache, k or v is NULL, the cache is of another kind, an address is no multiple
 *         of 4, or stream is NULL on a device or not NULL for device -1;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer;
 *         GEN_ERROR_CACHE_FULL at max_seq_len;
 *         GEN_ERROR_STATE if the layer has that position already;
 *         GEN_ERROR_UNSUPPORTED, with the reason, if the backend "cuda" is not available or has no such device;
 *         GEN_ERROR_DEVICE if the device is lost or refuses the kernel, or a copy fails.
 *         On any failure nothing was enqueued and the cache is unchanged.
 * Threads: one at a time per cache.
 * Cost:    one kernel launch.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_append_stream(kv_cache *cache, int32_t layer, const void *k, const void *v, void *stream,
                                              gen_error *error);

/**
 * Returns where a layer's buffers are on the device. Their element type is that of kv_cache_dtype.
 *
 * @param k       receives the address of the keys; may be NULL.
 * @param v       receives the address of the values; may be NULL.
 * @param length  receives kv_cache_seq_len; may be NULL.
 * @return GEN_OK, also for a layer that does not exist: NULL, NULL and 0;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or of another kind;
 *         GEN_ERROR_BUSY if the cache is in use.
 *         On failure as for such a layer.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_pointers(const kv_cache *cache, int32_t layer, const void **k, const void **v,
                                         int32_t *length, gen_error *error);

/**
 * Returns where arrays of all layers' addresses are on the device, 8 bytes per address. The first
 * call makes them; they stay until the cache is freed.
 *
 * @param k  receives the address of the array of the keys' addresses, [layers].
 * @param v  the same for the values.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache, k or v is NULL, or the cache is of another kind;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_MEMORY, GEN_ERROR_DEVICE: nothing is kept, and a later call may try again.
 *         On failure both are NULL.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_pointer_arrays(kv_cache *cache, const void **k, const void **v, gen_error *error);

/**
 * The address on the device of the int32 counter, the position to be written next; see
 * kv_cache_counter_device_ptr. The 8 bytes after it belong to the library.
 *
 * @return borrowed from the cache, not to be read on the host; NULL for NULL and for a cache of another kind.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const int32_t *kv_cache_gpu_counter_ptr(const kv_cache *cache);

/**
 * Updates the length from the counter, after steps that ran on the device without the host; see
 * kv_cache_sync_counter.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or of another kind;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_DEVICE if a copy fails or the counter is outside [0, max_seq_len];
 *         GEN_ERROR_CACHE_FULL if kv_cache_gpu_append_stream dropped appends since the last truncate, reset or such
 *         failure. It is returned once: the next call updates the length.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_gpu_sync_counter(kv_cache *cache, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_GPU_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor caches: from its first write on, each layer is one buffer of a fixed shape [batch,
 * max_seq_len, dim] for keys and one for values, batch-major. Readers of such a buffer see the same
 * shape and address while a sequence grows; the number of valid positions is kept separately.
 * Everything in kv_cache.h works on a tensor cache.
 *
 * With kv_cache_tensor_set_gpu_allocator the buffers are on a device, and counters there tell
 * kernels how long the sequence is. Otherwise buffers are host memory, there are no counters, and
 * kv_cache.h has the lengths.
 */
#ifndef GENERATE_KV_CACHE_TENSOR_H
#define GENERATE_KV_CACHE_TENSOR_H

#include "base.h"
#include "gpu.h"
#include "kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes an empty tensor cache. Data written by kv_cache_update is on the host, unless
 * kv_cache_tensor_set_gpu_allocator changes that; data written by the model is where the model
 * computes.
 *
 * @param model        may be freed before the cache; NULL for one on the host.
 * @param layers       number of layers, 0 to 65536; with a model 0 or the value of gen_model_config_num_cache_layers.
 * @param max_seq_len  maximum number of positions of a layer, 1 and up.
 * @param dtype        "fp32", also meant by NULL, or "fp16": binary16 as kv_cache_fp16_new stores it.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if layers is outside its range or not the model's, max_seq_len below 1, dtype
 *         unknown, or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    the first write to a layer reserves its memory; pages are allocated as positions are written.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tensor_new(const gen_model *model, int32_t layers, int32_t max_seq_len,
                                       const char *dtype, kv_cache **out, gen_error *error);

/**
 * Moves an empty tensor cache to a device: its buffers, and two counters that exist from then on,
 * come from the caller's allocator, and all writes and reads are copies through it. The cache is
 * then for tensors only, not for a model's pass, and has no kv_cache_view. The first write to a
 * layer allocates its memory, which may stay if that write fails.
 *
 * @param cache      of kv_cache_tensor_new.
 * @param allocator  table, copied; its functions must work until the cache and its clones are freed.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or allocator is NULL, the cache is of another kind, struct_size below that
 *         of version 0.1, or a function missing;
 *         GEN_ERROR_STATE after the first write, on a device already, or for a cache that is borrowed;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_MEMORY; GEN_ERROR_DEVICE of the allocator.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tensor_set_gpu_allocator(kv_cache *cache, const gen_gpu_allocator *allocator,
                                                     gen_error *error);

/**
 * Shows the whole memory of a layer, with seq as max_seq_len, in its stored type. Positions from
 * kv_cache_layer_seq_len on are undefined. A layer that was never written or does not exist is a
 * miss: GEN_OK with all fields 0. A layer that was emptied keeps its buffer; in a clone, or after
 * loading a state, only a layer that holds something has one. For a cache on a device the addresses
 * are the device's, and the host cannot read them.
 *
 * @param span  receives the layer; its struct_size must be set. It can be read until the cache is freed or an empty
 *              layer takes another shape.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or span is NULL or struct_size is below that of version 0.1;
 *         GEN_ERROR_UNSUPPORTED if the cache has no such buffers, see KV_CACHE_HAS_FULL_BUFFER, or a model wrote it;
 *         GEN_ERROR_STATE for a cache of many sequences;
 *         GEN_ERROR_BUSY if the cache is in use.
 *         On any failure the span is untouched.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_full_buffer(const kv_cache *cache, int32_t layer, kv_cache_span *span,
                                        gen_error *error);

/**
 * The address on the device of the number of positions that attention reads.
 *
 * @return borrowed from the cache, not to be read on the host; NULL without a device, and for NULL.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const int32_t *kv_cache_seq_len_device_ptr(const kv_cache *cache);

/**
 * The address on the device of the position to be written next.
 *
 * @return as kv_cache_seq_len_device_ptr.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const int32_t *kv_cache_counter_device_ptr(const kv_cache *cache);

/**
 * Updates the length of every layer from the device, after steps that ran there without the host.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_STATE if the cache has no counter on a device, is a session's, or has a layer that was never written
 *         and the counter is not 0;
 *         GEN_ERROR_DEVICE if a copy fails or the counter is outside [0, max_seq_len];
 *         GEN_ERROR_CACHE_FULL of a GPU cache, as kv_cache_gpu_sync_counter;
 *         GEN_ERROR_BUSY if the cache is in use.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_sync_counter(kv_cache *cache, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_TENSOR_H */

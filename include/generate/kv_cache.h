/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache: keys and values of one sequence, layer by layer, for direct use and for
 * gen_model_forward. A new cache has no shape and holds no memory; its first write decides.
 * kv_cache_update makes it a store of [batch, seq, dim] tensors whose layers get their shapes one
 * by one; gen_model_forward makes it a cache of that model. The two cannot be mixed, not even after
 * a reset. A model's cache resides where the model computes: on a device in memory of the model's
 * gen_gpu_allocator, and kv_cache_set_allocator has no effect. Caches of kv_cache_paged_new,
 * kv_cache_tiered_new and kv_cache_tracing_new are for tensors only; kv_cache_generator_new makes
 * paged and tiered ones for models. Caches of many sequences are in kv_cache_batch.h. A call on a
 * cache of the wrong kind fails with a message that names the right kinds.
 * Read next: gen_model_forward in model.h.
 */
#ifndef GENERATE_KV_CACHE_H
#define GENERATE_KV_CACHE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types of a kv_cache_span. Numbers are frozen. */
enum {
  KV_CACHE_TYPE_F32 = 0, /**< float */
  KV_CACHE_TYPE_F16 = 1  /**< IEEE 754 binary16 in the machine's byte order */
};

/** Capabilities of a cache, as bits of kv_cache_capabilities. Bits are frozen. */
enum {
  KV_CACHE_CAN_TRUNCATE = 1 << 0,
  KV_CACHE_CAN_CLONE = 1 << 1,
  KV_CACHE_CAN_VIEW = 1 << 2, /**< kv_cache_view shows what kv_cache_update wrote */
  /** Results do not depend on how many tokens are written at once. */
  KV_CACHE_ONE_ROW_ONE_RESULT = 1 << 3,
  KV_CACHE_HAS_FULL_BUFFER = 1 << 4 /**< kv_cache_full_buffer of kv_cache_tensor.h works */
};

/**
 * A layer in its own memory. Element d of position p of lane b is at b * batch_stride + p *
 * seq_stride bytes, plus d elements, from k or v. All fields are 0 where nothing is stored.
 */
typedef struct kv_cache_span {
  uint32_t struct_size; /**< set to sizeof(kv_cache_span) by the caller; no byte beyond it is written */
  int32_t type;         /**< KV_CACHE_TYPE_… */
  const void *k;        /**< borrowed, see kv_cache_view */
  const void *v;
  int32_t batch;   /**< lanes: batch of the updates */
  int32_t seq;     /**< positions */
  int32_t k_dim;   /**< elements of a key row */
  int32_t v_dim;   /**< elements of a value row */
  size_t k_batch_stride;
  size_t k_seq_stride;
  size_t v_batch_stride;
  size_t v_seq_stride;
} kv_cache_span;

/**
 * Makes an empty cache that stores float32.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  maximum number of positions of a layer, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if layers is outside its range, max_seq_len below 1, or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    the first write to a layer reserves its memory; pages are allocated as positions are written.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_new(int32_t layers, int32_t max_seq_len, kv_cache **out,
                                gen_error *error);

/**
 * Makes an empty cache of the kind that a generator's sessions have, for gen_model_forward with the
 * generator's model. Layers with windows keep all positions, unless the option "window_rewind" was
 * set: a truncation may then keep fewer positions than it is told to, also after a pass that failed.
 *
 * @param generator    may be freed before the cache.
 * @param max_seq_len  maximum number of positions, 1 up to the model's context; 0 for that of a session.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL or a max_seq_len outside its range;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    as for a session: memory is allocated as positions are written.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_generator_new(const gen_generator *generator, int32_t max_seq_len, kv_cache **out,
                                          gen_error *error);

/**
 * Makes an empty cache that stores binary16: rounded to nearest even, infinity above 65519, NaN as
 * 0x7E00 with its sign. Half the memory; relative error at most 2^-11 for normal values.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  maximum number of positions of a layer, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_fp16_new(int32_t layers, int32_t max_seq_len, kv_cache **out,
                                     gen_error *error);

/**
 * Makes an empty cache that stores E4M3, one byte per element, and one float32 scale per row of dim
 * elements: the row's largest magnitude / 448. The error of an element is at most a sixteenth of
 * itself or scale / 1024, whichever is larger. kv_cache_update refuses elements that are not
 * finite.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  maximum number of positions of a layer, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_fp8_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);

/**
 * Makes an empty cache that stores 4 bits per element and one float32 scale per group of 128
 * consecutive elements of a lane: the group's largest magnitude / 7. The error of an element is at
 * most half a scale. If dim is not a multiple of 128, a group spans positions; the last, unfinished
 * group is stored as float32 and read as if it were complete. A truncate into a finished group
 * opens it again with its decoded values, so its elements are rounded once more. kv_cache_update
 * refuses elements that are not finite.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  maximum number of positions of a layer, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_q4_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);

/**
 * Makes an empty cache that stores 3 bits per element and eight binary16 centroids per group of 128
 * elements, from a k-means weighted by sqrt(|v|) + 1e-4. Magnitudes above 65504 are stored as
 * 65504. Groups are those of kv_cache_q4_new; kv_cache_update refuses elements that are not finite.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  maximum number of positions of a layer, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_q3_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);

/**
 * Makes an empty cache of unlimited length in which each full chunk of positions becomes one entry:
 * their mean, per lane and element. Positions after the last full chunk are stored as written. A
 * long past then costs 1 / chunk_size of its memory, and is an approximation. kv_cache_update
 * averages keys as they are given. Means of rotated keys are of little use beyond short chunks:
 * pass keys before rotary embedding, and rotate an entry by its positions when it is read. A
 * model's pass does so itself, as with gen_options_set_compressed_kv. kv_cache_seq_len and
 * kv_cache_layer_seq_len count positions; kv_cache_kv_len and kv_cache_get count entries. A
 * truncate into a mean drops all of its positions; a cache written by a model keeps the positions
 * of the last closed chunk beside its mean, so that it can be truncated to a position. In a view,
 * means keep their content, and the positions after them become a mean when their chunk is full.
 * kv_cache_memory_bytes includes outgrown memory that views may still show.
 *
 * @param layers      number of layers, 0 to 65536.
 * @param heads       expected kv heads, 0 if unknown; the first write decides.
 * @param dim         expected elements of a head, 0 if unknown.
 * @param chunk_size  positions per mean, 1 and up.
 * @param out         receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if layers is outside its range, heads or dim below 0, chunk_size below 1, or
 *         out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    an update that outgrows a layer's memory moves its entries to a block of twice the size.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_compressed_new(int32_t layers, int32_t heads, int32_t dim,
                                           int32_t chunk_size, kv_cache **out, gen_error *error);

/**
 * Returns which positions an entry of a compressed cache represents, so that attention can weight a
 * mean by their number: add log(positions) to its score. Also works for caches of a generator with
 * gen_options_set_compressed_kv and its sessions, and for a tracing cache around one.
 *
 * @param entry      in [0, kv_cache_kv_len).
 * @param first      receives the first position; may be NULL.
 * @param positions  receives their number: the chunk size, or 1; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or of another kind;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer or entry.
 *         On failure the numbers are 0.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_compressed_entry(const kv_cache *cache, int32_t layer, int32_t entry,
                                             int32_t *first, int32_t *positions, gen_error *error);

/**
 * Takes the cache's memory from the caller's allocator; NULL restores the system's.
 *
 * @param allocator  table, copied; its functions must work until the cache and its clones are freed.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL, struct_size below that of version 0.1, or a function missing;
 *         GEN_ERROR_STATE after the first write, or for a session's cache;
 *         GEN_ERROR_BUSY if the cache is in use.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_set_allocator(kv_cache *cache, const gen_allocator *allocator,
                                          gen_error *error);

/**
 * Appends positions to one layer. Errors are checked in the order of the list.
 *
 * @param layer  in [0, layers).
 * @param k      [batch, seq, dim] float32, row-major. Copied. May be NULL if seq is 0.
 * @param v      as k.
 * @param batch  lanes, 1 and up; must be the layer's unless the layer is empty.
 * @param seq    positions to append; 0 does nothing.
 * @param dim    elements of a row, 1 and up; must be the layer's unless the layer is empty.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE if a model writes this cache, or it is a session's;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer;
 *         GEN_ERROR_INVALID_ARGUMENT if k or v is NULL, or the shape is invalid or not the layer's;
 *         GEN_ERROR_CACHE_FULL if the layer would exceed max_seq_len;
 *         GEN_ERROR_OUT_OF_MEMORY;
 *         GEN_ERROR_INVALID_ARGUMENT, naming the first element that is not finite, if this kind of cache cannot store it;
 *         and depending on the kind: GEN_ERROR_DEVICE on a device; GEN_ERROR_POOL_EXHAUSTED of a paged cache;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT of a tiered one, and GEN_ERROR_STATE when that is closed, see
 *         kv_cache_tiered.h.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Cost:    O(batch * seq * dim); allocates only on the first write of a layer, or of a larger shape.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_update(kv_cache *cache, int32_t layer, const float *k, const float *v,
                                   int32_t batch, int32_t seq, int32_t dim, gen_error *error);

/**
 * Copies the content of a layer as dense float32 [batch, seq, dim]. A layer that is empty or does
 * not exist is a miss: GEN_OK, shapes of 0, 0, 0, and nothing copied. Positions that a layer with a
 * window has let go are 0; kv_cache_describe tells which ones the next token sees.
 *
 * @param k           [k_capacity] floats, or NULL to skip the keys.
 * @param v           [v_capacity] floats, or NULL to skip the values.
 * @param k_shape     receives batch (a model's kv heads), seq and dim of the keys; may be NULL.
 * @param v_shape     the same of the values.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if a buffer is too small; the shapes then have what is needed;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT, GEN_ERROR_STATE and GEN_ERROR_OUT_OF_MEMORY of a tiered cache, see
 *         kv_cache_tiered.h; GEN_ERROR_DEVICE and GEN_ERROR_OUT_OF_MEMORY on a device.
 *         On any failure the buffers are untouched and, except for GEN_ERROR_OUT_OF_RANGE, the shapes are 0, 0, 0.
 * Threads: one at a time per cache.
 * Cost:    O(batch * seq * dim).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_get(const kv_cache *cache, int32_t layer, float *k, size_t k_capacity,
                                float *v, size_t v_capacity, int32_t k_shape[3],
                                int32_t v_shape[3], gen_error *error);

/**
 * Shows a layer in place, without a copy. A miss is GEN_OK with all fields 0.
 *
 * @param span  receives the layer; its struct_size must be set. It can be read until the cache is freed or an empty
 *              layer takes another shape; a row keeps its content until a truncate below it and another write.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or span is NULL or struct_size is below that of version 0.1;
 *         GEN_ERROR_UNSUPPORTED if the cache has no view, see KV_CACHE_CAN_VIEW, or a model wrote it;
 *         GEN_ERROR_BUSY if the cache is in use.
 *         On any failure the span is untouched.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_view(const kv_cache *cache, int32_t layer, kv_cache_span *span,
                                 gen_error *error);

/**
 * Number of positions of the cache as a whole: the last length on which all layers agreed, so it
 * does not change within a forward pass. 0 for NULL.
 *
 * Threads: any; for a session's cache as for the session.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_seq_len(const kv_cache *cache);

/**
 * Number of positions of one layer, the offset for rotary embedding within a pass; 0 for NULL or a
 * layer out of range.
 *
 * Threads: as kv_cache_seq_len.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_layer_seq_len(const kv_cache *cache, int32_t layer);

/**
 * Number of entries of one layer that attention reads: its positions, except in a compressed cache.
 * 0 for NULL or a layer out of range.
 *
 * Threads: as kv_cache_seq_len.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_kv_len(const kv_cache *cache, int32_t layer);

/**
 * Number of layers; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_num_layers(const kv_cache *cache);

/**
 * Maximum number of positions of a layer, INT32_MAX if unlimited; 0 for NULL and for caches of many
 * sequences. A cache that a model wrote first may hold fewer: the model's context.
 *
 * Threads: any; for a session's cache as for the session.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_max_seq_len(const kv_cache *cache);

/**
 * Keeps the first n positions of every layer. Layers that hold fewer stay as they are; n below 0
 * counts as 0. A compressed cache may keep fewer, because it cannot split a mean, and one with
 * windows, because it no longer holds what the next row sees: see kv_cache_compressed_new and
 * kv_cache_generator_new, and check kv_cache_seq_len.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE for a session's cache, see gen_session_truncate, and for a closed tiered one;
 *         GEN_ERROR_IO of a tiered cache, GEN_ERROR_DEVICE on a device: the cache is then unchanged.
 * Threads: one at a time per cache.
 * Cost:    O(layers); a tiered cache that truncates a cold layer rewrites the folder's manifest and waits for the disk.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_truncate(kv_cache *cache, int32_t n, gen_error *error);

/**
 * Removes everything. Memory stays, and the next write of the same shape goes to the same
 * addresses.
 *
 * @return as kv_cache_truncate.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_reset(kv_cache *cache, gen_error *error);

/**
 * Memory of a cache in bytes.
 *
 * @param resident  receives what is allocated, whether or not it has been written; may be NULL.
 * @param payload   receives the size of the stored keys and values; may be NULL.
 * @param metadata  receives the size of their scales, tables and bookkeeping; may be NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if cache is NULL; GEN_ERROR_BUSY if the cache is in use.
 *         On failure the numbers are 0.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_memory_bytes(const kv_cache *cache, size_t *resident, size_t *payload,
                                         size_t *metadata, gen_error *error);

/**
 * Name of the kind, such as "fp32", "q4", "paged", "tiered" or "compressed"; NULL for NULL. A
 * session's cache has the same names, and "window" where some layers keep only their windows;
 * kv_cache_dtype returns its element type.
 *
 * @return a constant string.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *kv_cache_kind(const kv_cache *cache);

/**
 * Describes a cache as a JSON object: "kind", "dtype", "num_layers", "max_seq_len", "seq_len" (of
 * one sequence), "memory_bytes" (as `resident` of kv_cache_memory_bytes), and "windows", an array
 * with an object for all layers that see so many positions, their own included: "window", "first" (that the next row
 * sees, down to a multiple of 16; more may be there) and "layers". Other layers, and all of short contexts, keep all.
 *
 * @param buf       [capacity] bytes, receives the text with a NUL; NULL to ask for the size.
 * @param capacity  of buf.
 * @param n         receives the length without the NUL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if cache or n is NULL; GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if buf is too small; *n is then the required size; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_describe(const kv_cache *cache, char *buf, size_t capacity, size_t *n,
                                     gen_error *error);

/**
 * Type of the stored elements: "fp32", "fp16", "fp8", "q4" or "q3", for a session's cache also a
 * pair such as "fp8/q4"; for caches of many sequences the type given to kv_cache_init, "fp16",
 * "fp32", "q8_0" or "q4_0". A tiered cache returns the type of its layers in memory, a tracing one
 * that of the cache that it wraps.
 *
 * @return a constant string; NULL for NULL, and for a cache of many sequences before kv_cache_init.
 * Threads: any; for a cache of many sequences one at a time.
 * Since:   0.1
 */
GEN_API const char *kv_cache_dtype(const kv_cache *cache);

/**
 * The cache below a tracing cache (kv_cache_tracing_new), or the cache of a wrapper
 * (kv_cache_wrapper_new) that kv_cache_set_layer_type chose, for reading only: functions that
 * change a cache return GEN_ERROR_STATE. Reads through it are not recorded. Both share one in-use
 * flag.
 *
 * @return borrowed until `cache` is freed, not to be passed to kv_cache_free; NULL for NULL and for any other kind.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API const kv_cache *kv_cache_underlying(const kv_cache *cache);

/**
 * Capabilities of the cache, KV_CACHE_… bits; 0 for NULL. A session's cache cannot be truncated
 * through its handle.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API uint32_t kv_cache_capabilities(const kv_cache *cache);

/**
 * 1 if stored values may differ from those written, else 0; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_is_lossy(const kv_cache *cache);

/**
 * Saves the content of the cache to a file, from which kv_cache_load restores the same bits.
 * docs/state-format.md describes the format; the state of a model's cache does not tell which model
 * it was.
 *
 * @param path  of the file; it appears whole or not at all, and replaces an existing one, whose permissions it keeps.
 *              A new file can be read only by this user (mode 0600).
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or path is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE if the cache has never been written to; GEN_ERROR_UNSUPPORTED beside a recurrent state;
 *         GEN_ERROR_IO naming the path; GEN_ERROR_IO and GEN_ERROR_FORMAT of a tiered cache; GEN_ERROR_DEVICE on a
 *         device; GEN_ERROR_OUT_OF_MEMORY.
 *         The cache is unchanged.
 * Threads: one at a time per cache.
 * Cost:    writes the content of the cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_save(const kv_cache *cache, const char *path, gen_error *error);

/**
 * As kv_cache_save, but to memory.
 *
 * @param buf  [capacity] bytes, receives the state, or NULL to ask for its size.
 * @param n    receives the size in bytes; also when the buffer is too small.
 * @return as kv_cache_save; GEN_ERROR_OUT_OF_RANGE if the buffer is too small, which is then untouched.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_save_buffer(const kv_cache *cache, void *buf, size_t capacity,
                                        size_t *n, gen_error *error);

/**
 * Restores what kv_cache_save wrote. Everything is checked before anything is changed.
 *
 * @param cache  an empty one with the same number of layers and the same element types as the saved one; states of paged
 *               and of contiguous caches are interchangeable. A cache without shape takes that of the state; only a
 *               compressed one for a model with rotary embedding must have been used in a pass, and reset.
 * @param path   of the file.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or path is NULL, or for a state of another kind or shape, or a session's;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_IO naming the path, or the file of a tiered cache;
 *         GEN_ERROR_FORMAT if the file is damaged or is no saved cache;
 *         GEN_ERROR_STATE if the cache is not empty, is a session's, or was shaped by kv_cache_update and the saved one by
 *         a model, or the other way round;
 *         GEN_ERROR_CACHE_FULL if it is too small for the state;
 *         GEN_ERROR_POOL_EXHAUSTED; GEN_ERROR_OUT_OF_MEMORY; GEN_ERROR_DEVICE on a device.
 *         On any failure the cache stays empty.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_load(kv_cache *cache, const char *path, gen_error *error);

/**
 * As kv_cache_load, but from memory.
 *
 * @param data  [size] bytes as kv_cache_save_buffer gave them; only read during the call.
 * @return as kv_cache_load.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_load_buffer(kv_cache *cache, const void *data, size_t size,
                                        gen_error *error);

/**
 * Makes an independent copy with the same content, capacity and allocator; also of a session's
 * cache.
 *
 * @param out  receives the copy; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or out is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_UNSUPPORTED if the cache has no KV_CACHE_CAN_CLONE;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT, GEN_ERROR_STATE of a tiered cache, as kv_cache_get;
 *         GEN_ERROR_DEVICE on a device; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    copies the content; for a paged cache only the list of its blocks.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_clone(const kv_cache *cache, kv_cache **out, gen_error *error);

/**
 * Frees the cache. NULL is fine; a session's cache is left to its session.
 *
 * Threads: one. A call that is running on the cache, such as the one whose callback this is, finishes first.
 * Since:   0.1
 */
GEN_API void kv_cache_free(kv_cache *cache);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache: keys and values of one sequence, layer by layer, for direct use and for gen_model_forward. A new
 * cache has no shape and holds no memory. Its first write decides: kv_cache_update makes it a store of
 * [batch, seq, dim] tensors whose layers take their shapes one by one, gen_model_forward a cache of that model.
 * The two do not mix, not even after a reset. A cache of a model lies where the model computes: on a device in memory of
 * the model's gen_gpu_allocator, and kv_cache_set_allocator does not count. Caches of kv_cache_paged_new,
 * kv_cache_tiered_new and kv_cache_tracing_new are for tensors only; kv_cache_generator_new makes paged and tiered ones for
 * models. Caches of many sequences are kv_cache_batch.h. A call that is not for a cache of its kind says which kinds it is
 * for.
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

/** What a cache can do, as bits of kv_cache_capabilities. Bits are frozen. */
enum {
  KV_CACHE_CAN_TRUNCATE = 1 << 0,
  KV_CACHE_CAN_CLONE = 1 << 1,
  KV_CACHE_CAN_VIEW = 1 << 2, /**< kv_cache_view shows what kv_cache_update wrote */
  /** Results do not depend on how many tokens came at once. */
  KV_CACHE_ONE_ROW_ONE_RESULT = 1 << 3,
  KV_CACHE_HAS_FULL_BUFFER = 1 << 4 /**< kv_cache_full_buffer of kv_cache_tensor.h works */
};

/**
 * A layer in place. Element d of position p of lane b lies at b * batch_stride + p * seq_stride bytes, plus d
 * elements, after k or v. All zero where nothing is stored.
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
 * Makes an empty cache that keeps float32.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  most positions a layer can hold, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if layers is outside its range, max_seq_len below 1, or out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    a layer's memory is reserved by its first write, and taken as positions are written.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_new(int32_t layers, int32_t max_seq_len, kv_cache **out,
                                gen_error *error);

/**
 * Makes an empty cache of the kind that sessions of a generator have, for gen_model_forward with the generator's model.
 *
 * @param generator    may be freed before the cache.
 * @param max_seq_len  most positions it can hold, 1 up to the model's context; 0 for as many as a session's.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL or a max_seq_len outside its range;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    as a session's: memory is taken as positions are written.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_generator_new(const gen_generator *generator, int32_t max_seq_len, kv_cache **out,
                                          gen_error *error);

/**
 * Makes an empty cache that keeps binary16: rounded to nearest even, above 65519 infinity, NaN 0x7E00 with
 * its sign. Half the memory; relative error at most 2^-11 for normal values.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  most positions a layer can hold, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_fp16_new(int32_t layers, int32_t max_seq_len, kv_cache **out,
                                     gen_error *error);

/**
 * Makes an empty cache that keeps E4M3, one byte an element, and one float32 scale for each row of dim elements:
 * the row's largest magnitude / 448. An element is off by at most a sixteenth of itself or scale / 1024,
 * whichever is more. kv_cache_update refuses elements that are not finite.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  most positions a layer can hold, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_fp8_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);

/**
 * Makes an empty cache that keeps 4 bits an element and one float32 scale for each group of 128 elements of a
 * lane in order: the group's largest magnitude / 7. An element is off by at most half a scale. Where dim is no
 * multiple of 128 a group spans positions; the last, unfinished one is kept as float32 and read as if it were
 * complete. A truncate into a finished group opens it again with what it decodes to, so that its elements are
 * rounded once more. kv_cache_update refuses elements that are not finite.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  most positions a layer can hold, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_q4_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);

/**
 * Makes an empty cache that keeps 3 bits an element and eight binary16 centroids for each group of 128 elements:
 * those of a k-means weighted by sqrt(|v|) + 1e-4. Magnitudes above 65504 are kept as 65504. Groups as in
 * kv_cache_q4_new; kv_cache_update refuses elements that are not finite.
 *
 * @param layers       number of layers, 0 to 65536.
 * @param max_seq_len  most positions a layer can hold, 1 and up.
 * @param out          receives the cache; free it with kv_cache_free.
 * @return as kv_cache_new.
 * Threads: any.
 * Cost:    as kv_cache_new.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_q3_new(int32_t layers, int32_t max_seq_len, kv_cache **out, gen_error *error);

/**
 * Makes an empty cache of any length of which each full chunk of positions becomes one entry, their mean, lane by
 * lane and element by element; positions after the last full chunk are kept as written. A long past then costs
 * 1 / chunk_size of its memory, and is an approximation. kv_cache_update averages keys as it is given them, and means
 * of rotated keys say little beyond short chunks: give it keys as they are before rotary embedding, and turn an entry
 * by its positions when it is read. A model's pass does that itself, as gen_options_set_compressed_kv.
 * kv_cache_seq_len and kv_cache_layer_seq_len count positions, kv_cache_kv_len and kv_cache_get entries. A truncate
 * into a mean drops all of its positions; where a model writes, the chunk closed last is kept beside its mean and can
 * be cut to the position. In a view means keep their content, and the positions after them become a mean when their
 * chunk is full. kv_cache_memory_bytes includes outgrown memory that views may still show.
 *
 * @param layers      number of layers, 0 to 65536.
 * @param heads       kv heads to expect, 0 if unknown; the first write decides.
 * @param dim         elements of a head to expect, 0 if unknown.
 * @param chunk_size  positions that become a mean, 1 and up.
 * @param out         receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if layers is outside its range, heads or dim below 0, chunk_size below 1, or
 *         out NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    an update that outgrows a layer's memory moves its entries to twice of it.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_compressed_new(int32_t layers, int32_t heads, int32_t dim,
                                           int32_t chunk_size, kv_cache **out, gen_error *error);

/**
 * Tells what an entry of a compressed cache stands for, so that attention can count a mean as its positions:
 * log(positions) added to its score does. Also for those of a generator with gen_options_set_compressed_kv and its
 * sessions, and for a tracing cache around one.
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
 * Takes the cache's memory from the caller's allocator; NULL goes back to the system's.
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
 * Appends positions to one layer. The checks come in the order of the list.
 *
 * @param layer  in [0, layers).
 * @param k      [batch, seq, dim] float32, row-major. Copied. May be NULL if seq is 0.
 * @param v      as k.
 * @param batch  lanes, 1 and up; the layer's own unless the layer is empty.
 * @param seq    positions to append; 0 does nothing.
 * @param dim    elements of a row, 1 and up; the layer's own unless the layer is empty.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE if a model writes this cache, or it is a session's;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such layer;
 *         GEN_ERROR_INVALID_ARGUMENT if k or v is NULL, the shape is none, or not the layer's;
 *         GEN_ERROR_CACHE_FULL if the layer would pass max_seq_len;
 *         GEN_ERROR_OUT_OF_MEMORY;
 *         GEN_ERROR_INVALID_ARGUMENT naming the first element that is not finite, if the kind cannot keep it;
 *         and what the kind adds: GEN_ERROR_DEVICE on a device; GEN_ERROR_POOL_EXHAUSTED of a paged cache;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT of a tiered one, and GEN_ERROR_STATE when that is closed, see
 *         kv_cache_tiered.h.
 *         On any failure the cache is unchanged.
 * Threads: one at a time per cache.
 * Cost:    O(batch * seq * dim); allocates on the first write of a layer, or of a larger shape, only.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_update(kv_cache *cache, int32_t layer, const float *k, const float *v,
                                   int32_t batch, int32_t seq, int32_t dim, gen_error *error);

/**
 * Copies what a layer holds as dense float32 [batch, seq, dim]. A layer that is empty or does not exist is a
 * miss: GEN_OK, shapes of 0, 0, 0, and nothing copied.
 *
 * @param k           [k_capacity] floats, or NULL to leave the keys out.
 * @param v           [v_capacity] floats, or NULL to leave the values out.
 * @param k_shape     receives batch (a model's kv heads), seq and dim of the keys; may be NULL.
 * @param v_shape     the same of the values.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_OUT_OF_RANGE if a buffer is too small; the shapes then tell what is needed;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT, GEN_ERROR_STATE and GEN_ERROR_OUT_OF_MEMORY of a tiered cache, see
 *         kv_cache_tiered.h; GEN_ERROR_DEVICE and GEN_ERROR_OUT_OF_MEMORY on a device.
 *         On any failure the buffers are untouched, and but for GEN_ERROR_OUT_OF_RANGE the shapes 0, 0, 0.
 * Threads: one at a time per cache.
 * Cost:    O(batch * seq * dim).
 * Since:   0.1
 */
GEN_API gen_status kv_cache_get(const kv_cache *cache, int32_t layer, float *k, size_t k_capacity,
                                float *v, size_t v_capacity, int32_t k_shape[3],
                                int32_t v_shape[3], gen_error *error);

/**
 * Shows a layer where it lies, without a copy. A miss is GEN_OK with all fields 0.
 *
 * @param span  receives the layer; its struct_size must be set. Readable until the cache is freed, or an
 *              empty layer takes another shape; a row keeps its content until a truncate below it and a write.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or span is NULL or struct_size is below that of version 0.1;
 *         GEN_ERROR_UNSUPPORTED if the cache cannot show strides, see KV_CACHE_CAN_VIEW, or a model wrote it;
 *         GEN_ERROR_BUSY if the cache is in use.
 *         On any failure the span is untouched.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_view(const kv_cache *cache, int32_t layer, kv_cache_span *span,
                                 gen_error *error);

/**
 * Positions of the cache as a whole: the length on which all layers last agreed, so it does not move within
 * a forward pass. 0 for NULL.
 *
 * Threads: any; for a session's cache as the session.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_seq_len(const kv_cache *cache);

/**
 * Positions of one layer, the offset for rotary embedding within a pass; 0 for NULL or a layer out of range.
 *
 * Threads: as kv_cache_seq_len.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_layer_seq_len(const kv_cache *cache, int32_t layer);

/**
 * Entries of one layer that attention reads: its positions, but for a compressed cache. 0 for NULL or a layer
 * out of range.
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
 * Most positions a layer can hold, INT32_MAX without a limit; 0 for NULL and for caches of many sequences. A cache
 * that a model wrote first may hold fewer, its context.
 *
 * Threads: any; for a session's cache as the session.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_max_seq_len(const kv_cache *cache);

/**
 * Keeps the first n positions of every layer. Layers that hold fewer stay as they are; n below 0 is 0. A compressed
 * cache may keep fewer, for it cannot cut a mean: see kv_cache_compressed_new, and ask kv_cache_seq_len.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE for a session's cache, see gen_session_truncate, and for a closed tiered one;
 *         GEN_ERROR_IO of a tiered cache, GEN_ERROR_DEVICE on a device: the cache is then unchanged.
 * Threads: one at a time per cache.
 * Cost:    O(layers); a tiered cache that cuts a cold layer writes the folder's manifest anew and waits for the disk.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_truncate(kv_cache *cache, int32_t n, gen_error *error);

/**
 * Forgets everything. Memory stays, and the next write of the same shape goes to the same addresses.
 *
 * @return as kv_cache_truncate.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_reset(kv_cache *cache, gen_error *error);

/**
 * Bytes of a cache.
 *
 * @param resident  receives what is allocated, whether or not it has been written; may be NULL.
 * @param payload   receives what the keys and values held take; may be NULL.
 * @param metadata  receives what their scales, and tables and bookkeeping, take; may be NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if cache is NULL; GEN_ERROR_BUSY if the cache is in use.
 *         On failure the numbers are 0.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_memory_bytes(const kv_cache *cache, size_t *resident, size_t *payload,
                                         size_t *metadata, gen_error *error);

/**
 * The kind's name, as "fp32" or "q4", "paged", "tiered" or "compressed"; NULL for NULL. A session's cache has the same
 * names; what it keeps elements as is kv_cache_dtype.
 *
 * @return a constant string.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *kv_cache_kind(const kv_cache *cache);

/**
 * What elements are kept as: "fp32", "fp16", "fp8", "q4" or "q3", for a session's cache also a pair as "fp8/q4"; for
 * caches of many sequences as kv_cache_init said, "fp16", "fp32", "q8_0" or "q4_0". A tiered cache answers for its
 * layers in memory, a tracing one for the cache that it wraps.
 *
 * @return a constant string; NULL for NULL, and for a cache of many sequences before kv_cache_init.
 * Threads: any; for a cache of many sequences one at a time.
 * Since:   0.1
 */
GEN_API const char *kv_cache_dtype(const kv_cache *cache);

/**
 * The cache below a tracing cache (kv_cache_tracing_new), or the one of a wrapper (kv_cache_wrapper_new) that
 * kv_cache_set_layer_type chose, for reading: functions that change a cache answer GEN_ERROR_STATE. What is read from it
 * is not recorded. Both share one in-use flag.
 *
 * @return borrowed, not for kv_cache_free to end, until `cache` is freed; NULL for NULL and for any other kind.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API const kv_cache *kv_cache_underlying(const kv_cache *cache);

/**
 * What the cache can do, KV_CACHE_… bits; 0 for NULL. A session's cache cannot be truncated through its handle.
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
 * Saves what the cache holds to a file, from which kv_cache_load gives the same bits. docs/state-format.md says what
 * the file holds; what a state of a model's cache does not tell is which model it was.
 *
 * @param path  of the file; it appears whole, or not at all, and replaces one that is there, whose permissions it
 *              takes. Else only this user may read it (mode 0600).
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or path is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_STATE if the cache has never been written to;
 *         GEN_ERROR_IO naming the path; GEN_ERROR_IO and GEN_ERROR_FORMAT of a tiered cache; GEN_ERROR_DEVICE on a
 *         device; GEN_ERROR_OUT_OF_MEMORY.
 *         The cache is unchanged.
 * Threads: one at a time per cache.
 * Cost:    writes what the cache holds.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_save(const kv_cache *cache, const char *path, gen_error *error);

/**
 * The same to memory.
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
 * Takes what kv_cache_save wrote. Everything is checked before anything is changed.
 *
 * @param cache  an empty one of the same number of layers that keeps elements as the saved one did; a paged cache and
 *               one that is not may have each other's states. A cache without shape takes that of the state; only a
 *               compressed one for a model with rotary embedding must have been through a pass, and reset.
 * @param path   of the file.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or path is NULL, or for a state of another kind or shape, or a session's;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_IO naming the path, or the file of a tiered cache;
 *         GEN_ERROR_FORMAT if the file is damaged or none of ours;
 *         GEN_ERROR_STATE if the cache holds something, is a session's, or was shaped by kv_cache_update and the saved
 *         one by a model, or the other way round;
 *         GEN_ERROR_CACHE_FULL if it is too small for the state;
 *         GEN_ERROR_POOL_EXHAUSTED; GEN_ERROR_OUT_OF_MEMORY; GEN_ERROR_DEVICE on a device.
 *         On any failure the cache holds what it did, nothing.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_load(kv_cache *cache, const char *path, gen_error *error);

/**
 * The same from memory.
 *
 * @param data  [size] bytes as kv_cache_save_buffer gave them; only read during the call.
 * @return as kv_cache_load.
 * Threads: one at a time per cache.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_load_buffer(kv_cache *cache, const void *data, size_t size,
                                        gen_error *error);

/**
 * Makes an independent copy with the same content, capacity and allocator; of a session's cache too.
 *
 * @param out  receives the copy; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache or out is NULL;
 *         GEN_ERROR_BUSY if the cache is in use;
 *         GEN_ERROR_UNSUPPORTED if the cache has no KV_CACHE_CAN_CLONE;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT, GEN_ERROR_STATE of a tiered cache, as kv_cache_get;
 *         GEN_ERROR_DEVICE on a device; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per cache.
 * Cost:    copies what is held; of a paged cache only its list of blocks.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_clone(const kv_cache *cache, kv_cache **out, gen_error *error);

/**
 * Frees the cache. NULL is fine; a session's cache is left to its session.
 *
 * Threads: one. A call that is running on it, such as the one whose callback this is in, ends first.
 * Since:   0.1
 */
GEN_API void kv_cache_free(kv_cache *cache);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_H */

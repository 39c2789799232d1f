/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiered caches, for contexts larger than memory. A kv_cache made here moves whole layers between
 * three tiers by use: hot (float32 in memory), warm (a compact form in memory) and cold (that form
 * in a file). A layer's tokens are in exactly one tier, and moving them down frees the memory of
 * the tier above. With the default warm form nothing is lost. Files are checked when they are read:
 * a torn, foreign, changed or missing file is an error that names it, never data.
 * Everything in kv_cache.h except kv_cache_view and gen_model_forward works on such a cache.
 * Operations that access a file there (kv_cache_update, kv_cache_get and kv_cache_clone of a cold layer,
 * kv_cache_truncate and kv_cache_reset where one is cut) can also fail with GEN_ERROR_IO, the first three with
 * GEN_ERROR_FORMAT if the file is not what was written, and after kv_cache_tiered_close all of these with
 * GEN_ERROR_STATE; nothing has changed then.
 *
 * A configuration passed to gen_options_set_tiered_kv keeps the newest positions of generating
 * sessions in memory and the rest in a file, see there. Each field documents which of the two uses
 * it applies to: cold_dir, num_layers and max_seq_len apply to both, and sessions ignore chunk_size
 * and the thresholds. Any other field that has a value other than its default where it does not
 * apply is refused.
 */
#ifndef GENERATE_KV_CACHE_TIERED_H
#define GENERATE_KV_CACHE_TIERED_H

#include "base.h"
#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The tier of a layer. Numbers are frozen. */
enum {
  KV_CACHE_TIER_HOT = 0, /**< float32 in memory */
  KV_CACHE_TIER_WARM = 1, /**< the warm form in memory */
  KV_CACHE_TIER_COLD = 2  /**< the warm form in a file */
};

/**
 * Makes a configuration with the defaults.
 *
 * @param out  receives it; free it with kv_cache_tier_config_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_new(kv_cache_tier_config **out, gen_error *error);

/**
 * Sets the number of layers; 0 (the default) means gen_model_config_num_cache_layers where there is
 * a model.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL or layers outside [0, 65536].
 * Threads: one at a time per object; so for all setters.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_num_layers(kv_cache_tier_config *config, int32_t layers,
                                                       gen_error *error);

/**
 * Sets the maximum number of positions of a layer; 0 (the default) means the model's context where
 * there is one.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL or the value negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_max_seq_len(kv_cache_tier_config *config,
                                                        int32_t max_seq_len, gen_error *error);

/**
 * Sets the number of positions per mean of the warm form "mean"; 0 or less means 64. Sessions
 * ignore it.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_chunk_size(kv_cache_tier_config *config,
                                                       int32_t chunk_size, gen_error *error);

/**
 * Sets how often a layer must have been used to escape demotion by kv_cache_tiered_manage; 0 or
 * less means 2. Sessions ignore it and go by age.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_demote_threshold(kv_cache_tier_config *config,
                                                             int32_t uses, gen_error *error);

/**
 * Sets how often a layer must have been used to be promoted by kv_cache_tiered_manage; 0 or less
 * means 5. Sessions ignore it and go by age.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_promote_threshold(kv_cache_tier_config *config,
                                                              int32_t uses, gen_error *error);

/**
 * Sets the folder for files. Each cache makes its own subfolder, which stays with its cold layers
 * when the cache is closed; nothing else in the folder is touched. NULL or "" (the default) means a
 * temporary folder that is removed with the cache.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_cold_dir(kv_cache_tier_config *config, const char *path,
                                                     gen_error *error);

/**
 * Sets the name of the cache within the folder: 1 to 64 letters, digits, '-' and '_'. NULL or ""
 * (the default) means a random name, and for kv_cache_tiered_open the only cache there is. Not for
 * sessions. A name with other characters is refused by kv_cache_tiered_new and
 * kv_cache_tiered_open, not here.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_store_id(kv_cache_tier_config *config, const char *id,
                                                     gen_error *error);

/**
 * Sets the warm form: "fp32" (the default) loses nothing and only drops unused capacity; "fp16",
 * "fp8", "q4" and "q3" round as the caches of those names do; "mean" keeps the mean of each full
 * chunk of positions. Not for sessions.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config or form is NULL or form unknown.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_warm_form(kv_cache_tier_config *config,
                                                      const char *form, gen_error *error);

/**
 * Sets the memory for keys and values of a generating session, including buffers to read back from
 * the file, in units of 2^20 bytes; 1024 is the default. For sessions only.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL or mebibytes below 1.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_hot_memory(kv_cache_tier_config *config,
                                                       int32_t mebibytes, gen_error *error);

/**
 * Sets how many blocks of newest positions a generating session keeps in memory, whatever their
 * size; 0 (the default) goes by the memory. For sessions only.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL or the value negative.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_hot_blocks(kv_cache_tier_config *config, int32_t blocks,
                                                       gen_error *error);

/**
 * Sets the number of positions that a generating session moves at once; 256 is the default, and the
 * fastest for attention. For sessions only.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL or the value outside [1, 65536].
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_block_size(kv_cache_tier_config *config,
                                                       int32_t positions, gen_error *error);

/**
 * Sets how many layers ahead of the computation a thread of a generating session reads. Each layer
 * takes memory for its cold positions, and the thread needs a CPU of its own, otherwise it slows
 * down what it should speed up; with 0 the system is only told what will be read next. -1 (the
 * default) means 1 if the model has fewer threads than there are CPUs, else 0. For sessions only.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if config is NULL or the value below -1.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_prefetch_layers(kv_cache_tier_config *config,
                                                            int32_t layers, gen_error *error);

/**
 * Takes the memory of caches made from this configuration from the caller's allocator; NULL
 * restores the system's. Not for sessions, which use their model's allocator.
 *
 * @param allocator  table, copied; its functions must work until the caches are freed.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if config is NULL, struct_size below that of version 0.1, or a function missing.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_allocator(kv_cache_tier_config *config,
                                                      const gen_allocator *allocator,
                                                      gen_error *error);

/**
 * Stores hot layers of caches made from this configuration in a device's memory, from the caller's
 * allocator; NULL restores host memory. Warm layers stay in host memory and cold ones in files, so
 * a layer moves between device, host and disk; each move, write and read of a hot layer is a copy
 * through the table. Not for sessions (gen_options_set_tiered_kv refuses it): their tiers are where
 * their model computes.
 *
 * @param allocator  table, copied; its functions must work until the caches are freed.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if config is NULL, struct_size below that of version 0.1, or a function missing.
 *         Later calls on the caches can also fail as the allocator does; the content of the layers is then unchanged.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set_gpu_allocator(kv_cache_tier_config *config,
                                                          const gen_gpu_allocator *allocator, gen_error *error);

/**
 * Sets one field by name: "num_layers", "max_seq_len", "chunk_size", "demote_threshold", "promote_threshold",
 * "cold_dir", "store_id", "warm_form", "hot_memory", "hot_blocks", "block_size", "prefetch_layers".
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for an unknown key or a value its setter refuses.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_set(kv_cache_tier_config *config, const char *key,
                                            const char *value, gen_error *error);

/**
 * Describes all fields as JSON: an array of {"key","type","range","default","value"}.
 *
 * @param buf  [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tier_config_describe(const kv_cache_tier_config *config, char *buf,
                                                 size_t capacity, size_t *n, gen_error *error);

/**
 * Frees a configuration; caches made from it are not affected. NULL is fine.
 *
 * Threads: one; no other call may be running on it.
 * Since:   0.1
 */
GEN_API void kv_cache_tier_config_free(kv_cache_tier_config *config);

/**
 * Makes an empty tiered cache: all layers hot. It has a thread for kv_cache_tiered_prefetch_async.
 *
 * @param config  num_layers and max_seq_len must be 1 and up. Copied.
 * @param out     receives the cache; free it with kv_cache_free, which closes it.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if config or out is NULL, num_layers or max_seq_len is below 1, the store id is not
 *         a valid name, or a field is set that is for sessions only;
 *         GEN_ERROR_IO if its folder cannot be made, for example because one of its name exists;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_new(const kv_cache_tier_config *config, kv_cache **out,
                                       gen_error *error);

/**
 * Opens what another tiered cache left in the configured folder: its cold layers; all others are
 * hot and empty. While the new cache lives, nobody else can open them.
 *
 * @param config  num_layers as that cache had, max_seq_len not below its length, a cold_dir.
 * @param out     receives the cache; free it with kv_cache_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT as kv_cache_tiered_new, or without cold_dir;
 *         GEN_ERROR_IO if there is no such cache, or more than one and no store id, or if its folder or a file in it
 *         is a symbolic link;
 *         GEN_ERROR_BUSY if it is in use;
 *         GEN_ERROR_FORMAT if its manifest is damaged or of another shape;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    reads the manifest; layers are read and checked when they are needed.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_open(const kv_cache_tier_config *config, kv_cache **out,
                                        gen_error *error);

/**
 * The tier of a layer, KV_CACHE_TIER_…; hot for NULL, a layer out of range or a cache without tiers.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_tiered_tier(const kv_cache *cache, int32_t layer);

/**
 * How often a layer was written or read since the last kv_cache_tiered_manage or kv_cache_reset; 0 for NULL, a layer
 * out of range or a cache without tiers.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int64_t kv_cache_tiered_access_count(const kv_cache *cache, int32_t layer);

/**
 * 1 if the content of a layer has been through a lossy warm form, else 0.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t kv_cache_tiered_is_lossy(const kv_cache *cache, int32_t layer);

/**
 * Moves a layer one tier up; a hot layer stays.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or has no tiers;
 *         GEN_ERROR_OUT_OF_RANGE for the layer;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT if its file cannot be read or differs from what was written;
 *         GEN_ERROR_STATE after kv_cache_tiered_close;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the layer is where it was.
 * Threads: any; waits for other calls on the same layer.
 * Cost:    the layer's bytes, read from a file if it was cold.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_promote(const kv_cache *cache, int32_t layer, gen_error *error);

/**
 * Moves a layer one tier down; a cold layer stays.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or has no tiers, or the warm form cannot store an element, such as
 *         a NaN in few bits;
 *         GEN_ERROR_OUT_OF_RANGE for the layer;
 *         GEN_ERROR_IO if the file cannot be written, for example because the disk is full;
 *         GEN_ERROR_STATE after kv_cache_tiered_close;
 *         GEN_ERROR_OUT_OF_MEMORY.
 *         On any failure the layer is where it was.
 * Threads: any; waits for other calls on the same layer.
 * Cost:    the layer's bytes; a move to cold waits for the disk.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_demote(const kv_cache *cache, int32_t layer, gen_error *error);

/**
 * Moves each layer one tier down if it was used less often than the demote threshold, or one tier
 * up if it was used at least as often as the promote threshold, and restarts the counts at 0.
 * Layers that cannot be moved stay; the first failure is returned.
 *
 * @return GEN_OK; as kv_cache_tiered_promote and kv_cache_tiered_demote, without GEN_ERROR_OUT_OF_RANGE.
 * Threads: any.
 * Cost:    the bytes of the layers that move.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_manage(const kv_cache *cache, gen_error *error);

/**
 * Starts to copy layers that are not hot, in the background; the next kv_cache_get of a layer takes
 * its copy. A copy is dropped when its layer changes. Layers out of range, already copied, or
 * beyond the cache's number of layers are ignored.
 *
 * @param layers  [n]; may be NULL if n is 0.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if cache is NULL or has no tiers, or layers NULL;
 *         GEN_ERROR_STATE after kv_cache_tiered_close.
 * Threads: any; never waits for a file.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_prefetch_async(const kv_cache *cache, const int32_t *layers,
                                                  size_t n, gen_error *error);

/**
 * Takes the prefetched copy of a layer: float32 [batch, seq, dim], as kv_cache_get. Does not wait
 * for it.
 *
 * @param k, v                    [k_capacity], [v_capacity] floats; either may be NULL. If both are NULL, the copy stays
 *                                and only the shape is returned.
 * @param shape                   receives batch, seq, dim; 0,0,0 if there is no copy. May be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or has no tiers;
 *         GEN_ERROR_OUT_OF_RANGE if a buffer is too small; the copy stays, and shape is set;
 *         GEN_ERROR_STATE after kv_cache_tiered_close.
 * Threads: any; waits for other calls on the same layer.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_get_prefetched(const kv_cache *cache, int32_t layer, float *k,
                                                  size_t k_capacity, float *v, size_t v_capacity,
                                                  int32_t shape[3], gen_error *error);

/**
 * Ends the thread and frees everything in memory. A temporary folder is removed; a configured one
 * keeps the files of cold layers for kv_cache_tiered_open. Every other function except
 * kv_cache_free then returns GEN_ERROR_STATE, and kv_cache_memory_bytes returns what is left.
 * Closing again does nothing, or repeats what failed.
 *
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if cache is NULL or has no tiers;
 *         GEN_ERROR_IO if something cannot be removed or written.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status kv_cache_tiered_close(const kv_cache *cache, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_KV_CACHE_TIERED_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_model: weights and tokenizer of a GGUF file, ready to run. A model is immutable and
 * shareable; any number of generators, sessions and threads may use it. gen_model_free releases the
 * handle; the memory is freed with the last user.
 */
#ifndef GENERATE_MODEL_H
#define GENERATE_MODEL_H

#include "base.h"
#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Receives the fraction of the work done, from 0 to 1, never decreasing; non-zero cancels. Called
 * on the calling thread; it may call anything. An exception fails the call with GEN_ERROR_INTERNAL.
 */
typedef int (*gen_progress_callback)(void *user, double share);

/**
 * Makes load options with their defaults: CPU, one thread per usable CPU, memory-mapped file, the model's
 * own context length.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_new(gen_model_options **out, gen_error *error);

/**
 * Frees the options; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_model_options_free(gen_model_options *options);

/**
 * Chooses the backend by name; "cpu" is the default.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a name this build does not know;
 *         GEN_ERROR_UNSUPPORTED with the reason in `error` for one that cannot be used on this machine. On
 *         failure nothing changes, here and in every setter below.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_backend(gen_model_options *options, const char *name,
                                                 gen_error *error);

/**
 * Chooses the backend's device; 0 is the default.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if device is negative. A device that the backend lacks is
 *         GEN_ERROR_OUT_OF_RANGE from the load.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_device(gen_model_options *options, int32_t device,
                                                gen_error *error);

/** For gen_model_options_set_gpu_layers: all layers; as many as fit into the device's memory. */
#define GEN_GPU_LAYERS_ALL (-1)
#define GEN_GPU_LAYERS_AUTO (-2)

/**
 * Sets how many layers run on the backend's device: the last ones, together with the output layers
 * of the model. The others run on the CPU. Keys and values stay where their layer runs, and rows
 * move to the device once per step.
 *
 * With GEN_GPU_LAYERS_ALL (the default) or a number, a load fails if the device has too little
 * memory. A number above the model's means all layers; 0 leaves the device unused.
 * GEN_GPU_LAYERS_AUTO takes as many layers as leave room on the device for one full context of
 * float32 keys and values and for a step; that may be none. A backend without devices refuses a
 * number above 0 when it loads a model. A split model supports no compressed keys and values. A
 * session saved with one number of layers can be loaded with any other.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL or layers is below GEN_GPU_LAYERS_AUTO.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_gpu_layers(gen_model_options *options, int32_t layers,
                                                    gen_error *error);

/**
 * Sets for how many of the layers on the device the experts are there, too: the last ones. The
 * experts of the others stay in host memory and are computed by the CPU, which is how models with
 * experts run that are larger than the device's memory: attention, norms, routers, shared experts
 * and all keys and values are on the device, and a row of the hidden state goes to the CPU and back
 * for each such layer.
 *
 * GEN_GPU_LAYERS_ALL (the default) and 0 are all of them and none. GEN_GPU_LAYERS_AUTO takes the
 * experts of as many layers as the device has room for beside everything else that
 * gen_model_options_set_gpu_layers puts there, with one full context of float32 keys and values. A
 * number above that of the layers on the device means all of them. For models without experts
 * nothing changes. A backend without devices refuses a number above 0 when it loads a model.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL or layers is below GEN_GPU_LAYERS_AUTO.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_gpu_expert_layers(gen_model_options *options, int32_t layers,
                                                           gen_error *error);

/**
 * Gives the model its own thread pool of `threads` threads, the caller included; 0 (the default)
 * means one per usable CPU.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if threads is below 0 or above 1024.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_threads(gen_model_options *options, int32_t threads,
                                                 gen_error *error);

/**
 * Lets the model use a shared pool instead of its own; NULL restores its own.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL. Together with gen_model_options_set_threads, whose pool
 *         would not be used, it is the same from the load.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_thread_pool(gen_model_options *options,
                                                     gen_thread_pool *pool, gen_error *error);

/**
 * Takes weights, workspaces and caches from the caller's allocator; NULL restores the system's.
 *
 * @param allocator  table, copied; its functions must work as long as the model or anything made from it.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if struct_size is below that of version 0.1 or a function is missing.
 * Threads: one at a time per object; the functions are called on any thread.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_allocator(gen_model_options *options,
                                                   const gen_allocator *allocator,
                                                   gen_error *error);

/**
 * For backends that run on a device: takes all device memory from the caller's allocator; NULL
 * restores the device's own. The backend copies on its own streams, not through the allocator's
 * copy function.
 *
 * @param allocator  table, copied; its functions must work as long as the model or anything made from it. One of
 *                   gen_gpu_allocator_cuda may be released at once. Its device must be that of the options, or the load
 *                   is GEN_ERROR_INVALID_ARGUMENT.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL, struct_size is below that of version 0.1, or allocate,
 *         release or copy is missing.
 * Threads: one at a time per object; the functions are called on any thread.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_gpu_allocator(gen_model_options *options,
                                                       const gen_gpu_allocator *allocator,
                                                       gen_error *error);

/**
 * With 0, the file is read into memory instead of being mapped, and later changes to it do not
 * matter. Mapping is the default: the pages of the file are the memory of the weights, at least of
 * the token embedding table where other weights are repacked. A mapped file must not be written to
 * or shortened while the model lives. Shortening it ends the process with SIGBUS in some later
 * call, which a library cannot prevent; writing to it changes the model. To replace a file, write a
 * new one and rename it over the old one.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_mmap(gen_model_options *options, int32_t use_mmap,
                                              gen_error *error);

/**
 * With a non-zero value, a load ends by locking the weights in memory (mlock), so that the system
 * neither swaps them out nor drops pages of a mapped file, and no call waits for the disk. This
 * covers weights in host memory, mapped or not; caches are not locked. Off by default.
 *
 * The system limits how much memory a process may lock (RLIMIT_MEMLOCK, ulimit -l), often to a few
 * megabytes. A load that needs more fails as if memory had run out; the message names both numbers,
 * and nothing stays locked. Locks do not nest: where the weights of two models share a page,
 * freeing one model unlocks that page for the other.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Cost:    the load reads all weights.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_mlock(gen_model_options *options, int32_t lock,
                                               gen_error *error);

/**
 * Reports the progress of the load and lets it be cancelled.
 *
 * @param callback  called on the loading thread, or NULL for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_progress(gen_model_options *options,
                                                  gen_progress_callback callback, void *user,
                                                  gen_error *error);

/**
 * Limits the context to fewer tokens than the model was trained for; 0 means the model's own limit.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if the value is negative. A value above the model's own
 *         is GEN_ERROR_OUT_OF_RANGE from the load.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_max_seq_len(gen_model_options *options, int32_t tokens,
                                                     gen_error *error);

/**
 * With non-zero, the load reads every weight and refuses NaN and infinity with GEN_ERROR_FORMAT.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set_check_tensors(gen_model_options *options, int32_t check,
                                                       gen_error *error);

/**
 * Sets one option by name: "threads" "4", "max_seq_len" "2048", "mmap" "0" …
 *
 * Available only here: "repack" "0" leaves the weights in the mapped file instead of copying them
 * into the layout that matrix products read fastest. A model may then be as large as memory, but
 * each step rearranges the weights that it reads and takes several times as long. Results are the
 * same. "pre_tokenizer" "qwen2" has texts split as by models of that name in tokenizer.ggml.pre,
 * whatever the file says; the load refuses an unknown name, and any name where the vocabulary does
 * not split texts by one.
 * "adapter" "FILE" has an adapter loaded with the model, as by gen_adapter_load() with FILE,
 * of at most 255 bytes, as its name and a scale of 1; it may be given several times, "" forgets all.
 * gen_estimate_memory() counts it.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for an unknown key or a value its setter refuses.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_set(gen_model_options *options, const char *key,
                                         const char *value, gen_error *error);

/**
 * All options as JSON: an array of {"key","type","range","default","value"}.
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_model_options_describe(const gen_model_options *options, char *buf,
                                              size_t capacity, size_t *n, gen_error *error);

/**
 * Loads a GGUF file (version 2 or 3). For a split file, pass the first part; the others are found
 * by name.
 *
 * @param path     file name, NUL-terminated.
 * @param options  load options, or NULL for defaults; copied.
 * @param out      receives the model; free it with gen_model_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL path or out, or both threads and a thread pool;
 *         GEN_ERROR_IO if a file is missing, a directory, or cannot be read, or if its size or modification time shows
 *         that it changed during the load;
 *         GEN_ERROR_FORMAT if it is not GGUF, or is damaged: the message names the field;
 *         GEN_ERROR_UNSUPPORTED for an unknown architecture, tokenizer or weight format: the message names it;
 *         GEN_ERROR_OUT_OF_RANGE for options that the model or the machine cannot satisfy;
 *         GEN_ERROR_CANCELLED if the progress callback said so;
 *         GEN_ERROR_OUT_OF_MEMORY;
 *         and for the option "adapter" as gen_adapter_load().
 * Threads: any; the pool's threads take part.
 * Cost:    reads the whole file once and arranges the weights for the CPU.
 * Since:   0.1
 */
GEN_API gen_status gen_model_load(const char *path, const gen_model_options *options,
                                  gen_model **out, gen_error *error);

/**
 * Loads a GGUF file that is already in memory.
 *
 * @param data  [size] the file's bytes; needed only during the call.
 * @return as gen_model_load, with an I/O error only for the option "adapter"; a split file is GEN_ERROR_FORMAT.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_load_memory(const void *data, size_t size,
                                         const gen_model_options *options, gen_model **out,
                                         gen_error *error);

/**
 * Converts the weights of a GGUF file to another type and writes the result to a new file.
 *
 * "F32", "F16", "BF16" and "Q8_0" apply to all matrices. "Q6_K", "Q5_K_S", "Q5_1", "Q5_0", "Q4_1",
 * "Q4_0", "Q3_K_S" and "Q1_0" keep the output matrix (or the embedding that serves as one) in Q6_K.
 * "Q5_K_M" and "Q4_K_M" do the same, and also keep attn_v and ffn_down in Q6_K in the first and
 * last eighth of the layers and in every third layer between. The others mix types as those of
 * llama.cpp do: "Q4_K_S", "IQ4_NL", "IQ4_XS", "Q3_K_L", "Q3_K_M", "IQ3_M", "IQ3_S", "IQ3_XS",
 * "IQ3_XXS", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ2_0",
 * "TQ1_0" and "Q2_0"; "NVFP4", with the embedding and the output matrix in Q8_0; and "MXFP4_MOE",
 * with experts in MXFP4 and the rest in Q8_0. Models with eight experts, of 80 layers, or with one
 * matrix for queries, keys and values have matrices of attention in types of more bits. Vectors
 * become F32; tensors of pictures and sound, and small matrices, stay as they are. A row whose length is not a multiple
 * of the type's block is stored in a type with shorter blocks and at least as many bits, or as F16;
 * a warning in the log says so. gen_model_quantize_with of quantize.h takes options.
 * Metadata is kept, with general.file_type and
 * general.quantization_version set; a split model becomes one file. The same model and type give
 * the same bytes on any machine.
 *
 * @param in        GGUF file, NUL-terminated; any part of a split model.
 * @param out       file to write; replaces an existing one. It appears only when it is complete, and not at all on
 *                  failure. Its folder needs room for the old and the new file.
 * @param type      one of the names above.
 * @param progress  called with the share done, or NULL; non-zero cancels.
 * @param user      passed to `progress`.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL in, out or type, an unknown type, or an `out` that is `in` or one of its
 *         parts;
 *         GEN_ERROR_IO if `in` cannot be read or `out` cannot be written (its folder is missing, the disk is
 *         full, …): the message names the file;
 *         GEN_ERROR_FORMAT if `in` is not GGUF, is damaged, or holds weights that are not finite;
 *         GEN_ERROR_UNSUPPORTED for an unknown weight format: the message names it; for an adapter or an importance
 *         matrix;
 *         GEN_ERROR_CANCELLED if the progress callback returned non-zero;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any; works on one thread per usable CPU.
 * Cost:    reads `in` once, for "NVFP4" twice; needs memory for a few million weights, not for the model.
 * Since:   0.1
 */
GEN_API gen_status gen_model_quantize(const char *in, const char *out, const char *type,
                                      gen_progress_callback progress, void *user, gen_error *error);

/**
 * Makes an importance matrix: runs the model over a calibration text and writes how large the
 * inputs of its matrices are, column by column. A quantiser then keeps those weights more exactly
 * that large inputs meet.
 *
 * The tokens are split into windows, each evaluated on its own after the begin-of-sequence token
 * that the model's tokenizer adds, if it adds one. For every matrix that rows are multiplied with,
 * the output matrix included, the file has the squares of the inputs summed over all rows, and the
 * number of rows, for experts one of each by expert. It is GGUF as llama.cpp's llama-imatrix writes
 * it: general.type "imatrix", the tensors NAME.in_sum2 and NAME.counts. The same model, tokens and
 * context give the same bytes for any number of threads.
 *
 * @param model      runs on the CPU; its adapters are not used.
 * @param tokens     [n] ids of the text, without special tokens of its own.
 * @param context    tokens of a window with the one before it; 0 for 512, or the model's maximum if that is less.
 * @param text_name  UTF-8 name of the text, which the file keeps as imatrix.datasets; NULL or "" for none.
 * @param out        file to write; replaces an existing one. It appears only when it is complete, and not at all on
 *                   failure. It should not be the file of the model, which would be gone.
 * @param progress   called with the share done after each window, or NULL; non-zero cancels.
 * @param user       passed to `progress`.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL model, tokens or out, n = 0, or a name that is not UTF-8;
 *         GEN_ERROR_OUT_OF_RANGE for a token outside the vocabulary, or a context above the model's or without room
 *         for a token;
 *         GEN_ERROR_UNSUPPORTED for a custom model, one with layers on a device, and a tensor whose name is longer than
 *         55 bytes;
 *         GEN_ERROR_IO if `out` cannot be written;
 *         GEN_ERROR_MODEL if results of the model or the inputs of a matrix are not finite;
 *         GEN_ERROR_CANCELLED if the progress callback returned non-zero;
 *         GEN_ERROR_BUSY inside a callback that the model may call; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    one forward pass over all tokens, with the output for each; memory for the context's keys and values, and 8
 *          bytes for each input of each matrix, of experts for each expert.
 * Since:   0.1
 */
GEN_API gen_status gen_model_importance(const gen_model *model, const int32_t *tokens, size_t n,
                                        int32_t context, const char *text_name, const char *out,
                                        gen_progress_callback progress, void *user,
                                        gen_error *error);

/**
 * Releases the model; it lives on while a generator, session or other object uses it. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_model_free(gen_model *model);

/**
 * The model's sizes, borrowed from it; NULL for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API const gen_model_config *gen_model_get_config(const gen_model *model);

/** Number of tokens of the vocabulary; 0 for NULL, as in all that follow. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_vocab_size(const gen_model_config *config);
/** Maximum number of tokens of a sequence, prompt included. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_max_seq_len(const gen_model_config *config);
/** End-of-sequence token, or -1 for none or NULL. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_eos(const gen_model_config *config);
/** Begin-of-sequence token, or -1 for none or NULL. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_bos(const gen_model_config *config);
/** Number of layers, including those without keys and values. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_num_layers(const gen_model_config *config);
/**
 * Number of layers of a cache for gen_model_forward, as kv_cache_new takes it. It is less than
 * gen_model_config_num_layers where layers share keys and values or have none. For a custom model
 * it is the value of gen_model_config_set_kv_layers.
 *
 * Threads: any. Since: 0.1
 */
GEN_API int32_t gen_model_config_num_cache_layers(const gen_model_config *config);
/** Query heads of an attention layer. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_num_heads(const gen_model_config *config);
/** Key and value heads of an attention layer. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_num_kv_heads(const gen_model_config *config);
/** Elements of a head. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_head_dim(const gen_model_config *config);
/** Width of the hidden state. Threads: any. Since: 0.1 */
GEN_API int32_t gen_model_config_hidden(const gen_model_config *config);

/**
 * Number of metadata entries of the file; 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t gen_model_metadata_count(const gen_model *model);

/**
 * Key of a metadata entry, borrowed from the model; NULL outside [0, count).
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *gen_model_metadata_key(const gen_model *model, size_t index);

/**
 * Value of a metadata entry as text; long arrays are shortened to their first elements and their length.
 *
 * @param key  the entry's key.
 * @param buf  [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a key the file does not have;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_metadata_value(const gen_model *model, const char *key, char *buf,
                                            size_t capacity, size_t *n, gen_error *error);

/**
 * Describes the model as one JSON object: architecture, name, sizes, parameters, weight formats
 * with their shares, backend, threads. "active_parameters" are those that a token uses: of
 * "num_experts" experts per layer, "num_experts_used". For models without experts both are 0, as is
 * "gpu_expert_layers". "gpu_layers" and "gpu_expert_layers" are the layers on a device and those
 * whose experts are there, too. "unused_tensors" are the names of the file's tensors that the model itself
 * does not need, such as those of a head that only drafts.
 *
 * @param buf  as in gen_model_metadata_value.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_describe(const gen_model *model, char *buf, size_t capacity, size_t *n,
                                      gen_error *error);

/**
 * Memory of the model in bytes: "weights" (as arranged for the backend, with its adapters, those
 * with a name and those that something still uses, and the heads with which generators draft, of
 * its own file or of gen_options_set_eagle), "workspace" (scratch memory of finished and
 * running steps), "mapped" (what is mapped of its files: pages that the system may drop, which are
 * used again only as far as weights are read in place, as rows of the token embedding are), "file"
 * (size of its files), "stream" (weights read per token: of the experts, as many as a token uses).
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown key; then *bytes is 0.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_model_memory(const gen_model *model, const char *key, size_t *bytes,
                                    gen_error *error);

/**
 * The model's tokenizer, borrowed from it; NULL for NULL and for a custom model without one.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API const gen_tokenizer *gen_model_tokenizer(const gen_model *model);

/**
 * Runs the model over tokens that follow the content of `cache`, and appends their keys and values
 * to it. The state of recurrent layers is kept with the cache and copied by kv_cache_clone, but not
 * from a session's cache; such a cache can be cut to 0 positions only, and kv_cache_save refuses it with GEN_ERROR_UNSUPPORTED.
 *
 * @param tokens    [n] token ids.
 * @param cache     grows by n entries; made by one of the kv_cache_…_new functions. Its first use sets its shape.
 * @param logits    [capacity] float32, receives vocab_size logits of the last token.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL, n = 0 or a cache shaped for another model;
 *         GEN_ERROR_OUT_OF_RANGE for a token outside the vocabulary or capacity below vocab_size;
 *         GEN_ERROR_CACHE_FULL or GEN_ERROR_CONTEXT_FULL if n more do not fit;
 *         GEN_ERROR_STATE for a cache that was cut where the state of recurrent layers cannot be, for one that holds
 *         tensors (after kv_cache_update, or made by kv_cache_paged_new, kv_cache_tiered_new or kv_cache_tracing_new),
 *         for a cache of many sequences, and for a session's cache;
 *         GEN_ERROR_UNSUPPORTED if the cache is compressed and the model has windows or chunks or is split, or if another
 *         model or kv_cache_load placed the cache where this model does not compute;
 *         GEN_ERROR_POOL_EXHAUSTED if the cache uses a pool that has no free block;
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT if the cache is tiered and its file cannot be written or read back;
 *         GEN_ERROR_BUSY if the cache is in use; GEN_ERROR_MODEL; GEN_ERROR_OUT_OF_MEMORY.
 *         On failure the cache is unchanged.
 * Threads: any, one at a time per cache.
 * Cost:    one forward pass over n tokens.
 * Since:   0.1
 */
GEN_API gen_status gen_model_forward(const gen_model *model, const int32_t *tokens, size_t n,
                                     kv_cache *cache, float *logits, size_t capacity,
                                     gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_MODEL_H */

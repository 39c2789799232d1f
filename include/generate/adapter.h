/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_adapter_*: low-rank adapters (LoRA) of a model, by request or merged into a file (gen_adapter_merge). An adapter
 * adds scale * B (A x) to the products W x of the model, for the requests that name it (gen_sampling_set_adapter):
 * requests with different adapters, and without, run in one batch, and each has the result that it has alone. Keys and
 * values that one adapter made are used by no other: a session that changes its adapters evaluates its text again, and
 * shared prefixes are kept apart.
 *
 * What a name stands for may change while calls run; a call keeps the adapters that it began with. An adapter takes
 * memory in float32 where the model's weights are, until it is unloaded, no session has it as the adapter of its last
 * generating call, and a generator that used it has run a step without adapters or is freed.
 */
#ifndef GENERATE_ADAPTER_H
#define GENERATE_ADAPTER_H

#include "base.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Loads an adapter from a GGUF file, in the place of one of the same name, if there is one. The file is of the form
 * that converters write: general.type "adapter", the model's general.architecture, adapter.type "lora",
 * adapter.lora.alpha, and for each adapted tensor a pair like blk.0.attn_q.weight.lora_a [in, rank] and .lora_b [rank,
 * out]; or it has lora.rank, lora.alpha, and pairs like lora_a.blk.0.attn_q. What is added is alpha / rank * scale *
 * B (A x); without alpha, or with alpha 0, it is scale * B (A x). An adapter with adapter.alora.invocation_tokens is
 * for the rows from their last occurrence on in the text that a call begins with; the rows before run without it and
 * share the base's keys and values, and so does the whole call if they do not occur.
 *
 * @param path   UTF-8.
 * @param name   1 to 255 bytes of UTF-8, copied: what requests call it.
 * @param scale  finite; multiplies the scale of requests.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, a name or a scale out of range, and an adapter above the budget
 *         (gen_adapter_set_budget()); GEN_ERROR_IO;
 *         GEN_ERROR_FORMAT for a file that is damaged or whose tensors do not fit; GEN_ERROR_UNSUPPORTED for a tensor
 *         that no product of the model reads, another architecture, and models that take no adapters, such as
 *         custom ones;
 *         GEN_ERROR_OUT_OF_MEMORY. On failure nothing changes.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_adapter_load(const gen_model *model, const char *path, const char *name, float scale,
                                    gen_error *error);

/**
 * Forgets a name. Calls that use the adapter go on with it; later ones are refused.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an unknown name.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_adapter_unload(const gen_model *model, const char *name, gen_error *error);

/**
 * Limits the memory of the adapters that have a name. Where a load would exceed it, and where this call lowers it,
 * names are forgotten as by gen_adapter_unload(), the least recently used first; loads and requests that name an
 * adapter use it. An adapter that is larger than the limit is not loaded: GEN_ERROR_INVALID_ARGUMENT. While a file is
 * loaded its adapter is beside the others, and what a call goes on with after its name is forgotten does not count.
 *
 * @param max_memory_mb  MiB, 1 and up; 0, as at first, for no limit.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or a negative number; GEN_ERROR_UNSUPPORTED for custom models,
 *         which take no adapters.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_adapter_set_budget(const gen_model *model, int32_t max_memory_mb, gen_error *error);

/**
 * The number of loaded adapters; 0 for NULL and in a child after fork().
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t gen_adapter_count(const gen_model *model);

/**
 * The name of an adapter, oldest first.
 *
 * @param index  below gen_adapter_count(), which may change meanwhile.
 * @param buf    [capacity] receives the name with its NUL, or NULL to ask the size.
 * @param n      receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT; GEN_ERROR_OUT_OF_RANGE for an index that there is not, or if the buffer
 *         is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_adapter_name(const gen_model *model, size_t index, char *buf, size_t capacity, size_t *n,
                                    gen_error *error);

/**
 * Writes a model with an adapter merged into its weights: W + scale * alpha / rank * B A for each tensor that the
 * adapter has a pair for, so that the model needs no adapter any more. Without `type` every tensor keeps its type:
 * tensors without a pair are copied byte for byte, those with one are decoded, added to in double precision, and
 * encoded again, which in types of few bits loses what is smaller than their steps. With `type` the whole file is
 * written as gen_model_quantize() writes it, and merged weights are rounded once. Metadata is kept; a split model
 * becomes one file. The model is not loaded, and its architecture need not be one that can be run. The same files,
 * scale and type give the same bytes on any machine.
 *
 * @param model     GGUF file, NUL-terminated; any part of a split model.
 * @param adapter   GGUF file, as gen_adapter_load() takes it.
 * @param scale     finite; with 0 no weight changes.
 * @param out       file to write; replaces an existing one. It appears only when it is complete, and not at all on
 *                  failure.
 * @param type      one of gen_model_quantize(), "F32" for example; NULL or "" for the types of the model.
 * @param progress  called with the share done, or NULL; non-zero cancels.
 * @param user      passed to `progress`.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL model, adapter or out, a scale that is not finite, an unknown type, or an
 *         `out` that is one of the files or a part of one;
 *         GEN_ERROR_IO if a file cannot be read or written: the message names it;
 *         GEN_ERROR_FORMAT for a file that is damaged or whose tensors do not fit, and for merged weights that are not
 *         finite or too large for their type: the message names the tensor;
 *         GEN_ERROR_UNSUPPORTED for an adapter of another architecture or that its invocation tokens activate, for a
 *         pair of a tensor that the model does not have or that has one dimension, for one of the head or of the
 *         embedding where they are one tensor, and for an unknown weight format;
 *         GEN_ERROR_CANCELLED if the progress callback returned non-zero;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any; works on one thread per usable CPU.
 * Cost:    reads the model once; needs memory for the adapter in float32 and a few million weights, not for the model.
 * Since:   0.1
 */
GEN_API gen_status gen_adapter_merge(const char *model, const char *adapter, float scale, const char *out,
                                     const char *type, gen_progress_callback progress, void *user, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_ADAPTER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_adapter_*: low-rank adapters (LoRA) of a model. An adapter adds scale * B (A x) to the products W x of the model,
 * for the requests that name it (gen_sampling_set_adapter): requests with different adapters, and without, run in one
 * batch, and each has the result that it has alone. Keys and values that one adapter made are used by no other: a
 * session that changes its adapters evaluates its text again, and shared prefixes are kept apart.
 *
 * What a name stands for may change while calls run; a call keeps the adapters that it began with. An adapter takes
 * memory in float32 where the model's weights are, until it is unloaded, the last call that uses it
 * has ended, and a generator that used it has run a step without it or is freed.
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
 * B (A x); without alpha, or with alpha 0, it is scale * B (A x).
 *
 * @param path   UTF-8.
 * @param name   1 to 255 bytes of UTF-8, copied: what requests call it.
 * @param scale  finite; multiplies the scale of requests.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, a name or a scale out of range; GEN_ERROR_IO;
 *         GEN_ERROR_FORMAT for a file that is damaged or whose tensors do not fit; GEN_ERROR_UNSUPPORTED for a tensor
 *         that no product of the model reads, another architecture, an adapter that its invocation tokens activate, and
 *         models that take no adapters, such as those with layers on several devices;
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

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_ADAPTER_H */

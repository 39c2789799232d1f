/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantising with options: which columns of weights count more, and types for single tensors.
 * Without options it is gen_model_quantize of model.h, which lists the types.
 */
#ifndef GENERATE_QUANTIZE_H
#define GENERATE_QUANTIZE_H

#include "base.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes options with their defaults: all columns count alike, and types are those of the recipe.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_quantize_options_new(gen_quantize_options **out, gen_error *error);

/**
 * Sets one option by name: "importance" "model.imatrix", "types" "blk.*.attn_v.weight=Q6_K" …
 *
 * @param key    as listed by gen_quantize_options_describe.
 * @param value  the value as text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown key or a value that it cannot have.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_quantize_options_set(gen_quantize_options *options, const char *key, const char *value,
                                            gen_error *error);

/**
 * All options as JSON: an array of {"key","type","range","default","value","help"}.
 *
 * @param buf  [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_quantize_options_describe(const gen_quantize_options *options, char *buf, size_t capacity,
                                                 size_t *n, gen_error *error);

/**
 * Frees the options; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_quantize_options_free(gen_quantize_options *options);

/**
 * Converts the weights of a GGUF file to another type, as gen_model_quantize does, with options.
 *
 * With "importance" the squared error of each weight counts by the importance of its column: the
 * mean of the squared inputs that the column was multiplied by on a calibration text. The file is
 * an importance matrix of llama.cpp, GGUF or of the older form. Matrices that it does not name
 * count all columns alike. With "types" each matrix gets the type of the first pattern that matches its name;
 * the others get the recipe's, except that tensors of pictures and sound and small matrices
 * (convolutions, routers of experts) keep what they have; vectors become F32. Nothing else changes a
 * type but rows that the type cannot store. Warnings are written to the log
 * (gen_log_set_callback) about these, about weights of less than 3 bits without importance, and
 * about matrices that an importance matrix lacks, and lines of level info about importance that is
 * not used. Matrices of NVFP4 get a factor beside them, "NAME.scale", where their weights are small.
 * The same files, type and options give the same bytes on any machine.
 *
 * @param in        GGUF file, NUL-terminated; any part of a split model.
 * @param out       file to write, as for gen_model_quantize.
 * @param type      a name that gen_model_quantize takes.
 * @param options   copied by the call; NULL means the defaults.
 * @param progress  called with the share done, or NULL; non-zero cancels.
 * @param user      passed to `progress`.
 * @return as gen_model_quantize, and
 *         GEN_ERROR_INVALID_ARGUMENT for a pattern that matches no matrix, and for an importance matrix of another
 *         model: one with a tensor that this model lacks or that has another number of columns or experts here;
 *         GEN_ERROR_IO if the importance matrix cannot be read;
 *         GEN_ERROR_FORMAT if it is not one, or is damaged. Messages name the file.
 * Threads: any; works on one thread per usable CPU.
 * Cost:    as gen_model_quantize, and the importance matrix in memory. Types with codebooks (IQ1, IQ2, IQ3) take up to a
 *          hundred times as long as others.
 * Since:   0.1
 */
GEN_API gen_status gen_model_quantize_with(const char *in, const char *out, const char *type,
                                           const gen_quantize_options *options,
                                           gen_progress_callback progress, void *user, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_QUANTIZE_H */

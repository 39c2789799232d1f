/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory from the caller: a table of functions through which caches on a device allocate all
 * of their memory and copy, and from which models on a device take their memory. The library
 * provides one for a device's memory and one for host memory that acts as a device, so that caches
 * can be tried without one. Caches: kv_cache_gpu.h, and kv_cache_tensor_set_gpu_allocator in
 * kv_cache_tensor.h; models: gen_model_options_set_gpu_allocator in model.h.
 */
#ifndef GENERATE_GPU_H
#define GENERATE_GPU_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Direction of a copy. Numbers are frozen. */
enum {
  GEN_GPU_COPY_TO_DEVICE = 0,   /**< from the host to the device */
  GEN_GPU_COPY_TO_HOST = 1,     /**< from the device to the host */
  GEN_GPU_COPY_ON_DEVICE = 2    /**< from the device to the device */
};

/**
 * Memory of a device. Set struct_size to sizeof(gen_gpu_allocator). The functions are called on any
 * thread and should not call the library: objects that use this allocator return GEN_ERROR_BUSY in
 * them. An exception counts as a failure. Failures of allocate become GEN_ERROR_OUT_OF_MEMORY,
 * except GEN_ERROR_DEVICE; failures of copy become GEN_ERROR_DEVICE. A call that receives a table
 * with members other than described here returns GEN_ERROR_INVALID_ARGUMENT and changes nothing.
 */
typedef struct gen_gpu_allocator {
  uint32_t struct_size; /**< sizeof(gen_gpu_allocator) */
  void *user;           /**< passed to all functions, never dereferenced */
  /** Allocates `bytes`, 1 and up, at a multiple of 256 into *out; GEN_OK or a failure. */
  gen_status (*allocate)(void *user, size_t bytes, void **out);
  /** Frees what allocate returned. */
  gen_status (*release)(void *user, void *ptr);
  /** Copies bytes; the copy is complete when it returns. kind is GEN_GPU_COPY_…. */
  gen_status (*copy)(void *user, void *dst, const void *src, size_t bytes, int32_t kind);
  int32_t device; /**< the device's number; -1: host memory that acts as a device; lower values are refused */
  /** Allocates pinned host memory, at a multiple of 16. May be NULL: then the heap is used. */
  gen_status (*allocate_pinned)(void *user, size_t bytes, void **out);
  /** Frees what allocate_pinned returned. Both must be NULL or neither. */
  gen_status (*release_pinned)(void *user, void *ptr);
} gen_gpu_allocator;

/**
 * Makes an allocator of host memory that acts as device -1, and counts its allocations.
 *
 * @param out  receives the table; give it back with gen_gpu_allocator_release.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if out is NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_gpu_allocator_host(gen_gpu_allocator **out, gen_error *error);

/**
 * Makes an allocator of a device's memory, with its own pool, and counts its allocations. It is
 * what models of the backend "cuda" use, for caches made without a model and for tables that wrap
 * it.
 *
 * @param device  number of the device, from 0.
 * @param out     receives the table; give it back with gen_gpu_allocator_release.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if out is NULL;
 *         GEN_ERROR_UNSUPPORTED, with the reason, if the backend is not available, or the device has no memory pools;
 *         GEN_ERROR_OUT_OF_RANGE if there is no such device;
 *         GEN_ERROR_DEVICE if it fails;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    the first call on a device initialises it, which takes a fraction of a second.
 * Since:   0.1
 */
GEN_API gen_status gen_gpu_allocator_cuda(int32_t device, gen_gpu_allocator **out, gen_error *error);

/**
 * Counts the current allocations of one of the library's allocators, pinned memory included.
 *
 * @param allocations  receives the number of allocations; may be NULL.
 * @param bytes        receives their bytes; may be NULL.
 * @param peak_bytes   receives the maximum number of bytes held at once; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if allocator is NULL or the caller's own.
 *         On failure the numbers are 0.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_gpu_allocator_counters(const gen_gpu_allocator *allocator, size_t *allocations, size_t *bytes,
                                              size_t *peak_bytes, gen_error *error);

/**
 * Releases one of the library's allocators; the last cache or model that uses it frees it. NULL and
 * the caller's own are left alone.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_gpu_allocator_release(gen_gpu_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_GPU_H */

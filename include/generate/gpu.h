/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory through the caller: a table of functions that caches on a device take all of their memory from and copy
 * by, and models on a device take theirs from. One over a device's memory and one over host memory, which poses as a
 * device, come with the library, so that caches can be tried without one. Which caches: kv_cache_gpu.h, and
 * kv_cache_tensor_set_gpu_allocator in kv_cache_tensor.h; models: gen_model_options_set_gpu_allocator in model.h.
 */
#ifndef GENERATE_GPU_H
#define GENERATE_GPU_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a copy is between. Numbers are frozen. */
enum {
  GEN_GPU_COPY_TO_DEVICE = 0,   /**< from the host to the device */
  GEN_GPU_COPY_TO_HOST = 1,     /**< from the device to the host */
  GEN_GPU_COPY_ON_DEVICE = 2    /**< from the device to the device */
};

/**
 * Memory of a device. Set struct_size to sizeof(gen_gpu_allocator). The functions are called on any thread and should not
 * call the library: what uses this allocator is GEN_ERROR_BUSY in them. An exception is a failure. allocate's failures
 * become GEN_ERROR_OUT_OF_MEMORY but for GEN_ERROR_DEVICE; copy's become GEN_ERROR_DEVICE. Calls that get a table whose
 * members are not as described here return GEN_ERROR_INVALID_ARGUMENT and leave what they were for as it was.
 */
typedef struct gen_gpu_allocator {
  uint32_t struct_size; /**< sizeof(gen_gpu_allocator) */
  void *user;           /**< passed to all functions, never dereferenced */
  /** `bytes`, 1 and up, at a multiple of 256 into *out; GEN_OK or a failure. */
  gen_status (*allocate)(void *user, size_t bytes, void **out);
  /** Gives back what allocate gave. */
  gen_status (*release)(void *user, void *ptr);
  /** Copies bytes and is complete when it returns; kind is GEN_GPU_COPY_…. */
  gen_status (*copy)(void *user, void *dst, const void *src, size_t bytes, int32_t kind);
  int32_t device; /**< the device's number; -1: host memory that poses as one; less is refused */
  /** Host memory that a device reaches without a detour, at a multiple of 16. May be NULL: then the heap's is used. */
  gen_status (*allocate_pinned)(void *user, size_t bytes, void **out);
  /** Gives back what allocate_pinned gave. NULL where that is, and only there: one without the other is refused. */
  gen_status (*release_pinned)(void *user, void *ptr);
} gen_gpu_allocator;

/**
 * Makes an allocator over host memory that poses as device -1 and counts what it gives.
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
 * Makes an allocator of a device's memory, from a pool of its own, that counts what it gives: what models of the backend
 * "cuda" use, for caches without one and for tables that stand before it.
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
 * Cost:    the first call on a device starts it, which takes a part of a second.
 * Since:   0.1
 */
GEN_API gen_status gen_gpu_allocator_cuda(int32_t device, gen_gpu_allocator **out, gen_error *error);

/**
 * What is taken from an allocator of the library now, pinned memory with it.
 *
 * @param allocations  receives the number of pieces; may be NULL.
 * @param bytes        receives their bytes; may be NULL.
 * @param peak_bytes   receives the most bytes that were taken at once; may be NULL.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if allocator is NULL or the caller's own.
 *         On failure the numbers are 0.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_gpu_allocator_counters(const gen_gpu_allocator *allocator, size_t *allocations, size_t *bytes,
                                              size_t *peak_bytes, gen_error *error);

/**
 * Gives up an allocator of the library; NULL and the caller's own are left alone. It goes with the last cache or
 * model that uses it.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_gpu_allocator_release(gen_gpu_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_GPU_H */

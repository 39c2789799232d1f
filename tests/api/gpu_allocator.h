/* SPDX-License-Identifier: Apache-2.0 */
/* A gen_gpu_allocator whose memory no one but its own copies can touch: pages without access, poisoned when they are
 * taken. It counts, checks each copy against the pieces that are live, and fails on the n-th call. */
#ifndef GEN_TESTS_GPU_ALLOCATOR_H_
#define GEN_TESTS_GPU_ALLOCATOR_H_

#include <generate/gpu.h>

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { GPU_PIECES = 256, GPU_POISON = 0xA5, GPU_PAGE = 4096 };

struct gpu_memory {
  struct {
    char* at;
    size_t bytes;
  } pieces[GPU_PIECES];
  int live;
  int allocations; /* ever */
  int calls;       /* of allocate and copy */
  int fail_at;     /* which of them fails, counted from 1; 0: none */
  gen_status fail_with;
  int mistakes; /* copies beyond pieces, wrong kinds, pieces given back twice */
};

static inline size_t gpu_pages(size_t bytes) { return (bytes + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE; }

static inline int gpu_fails(struct gpu_memory* gpu) {
  return ++gpu->calls == gpu->fail_at;
}

/* The pages of the piece that [at, at + bytes) lies in; null if there is none. */
static inline char* gpu_open(struct gpu_memory* gpu, const void* at, size_t bytes, size_t* pages) {
  for (int i = 0; i < GPU_PIECES; ++i) {
    const char* begin = gpu->pieces[i].at;
    if (begin == NULL || (const char*)at < begin || (const char*)at + bytes > begin + gpu->pieces[i].bytes) continue;
    *pages = gpu_pages(gpu->pieces[i].bytes);
    mprotect(gpu->pieces[i].at, *pages, PROT_READ | PROT_WRITE);
    return gpu->pieces[i].at;
  }
  ++gpu->mistakes;
  return NULL;
}

static inline gen_status gpu_allocate(void* user, size_t bytes, void** out) {
  struct gpu_memory* gpu = user;
  if (gpu_fails(gpu)) return gpu->fail_with;
  for (int i = 0; i < GPU_PIECES; ++i) {
    if (gpu->pieces[i].at != NULL) continue;
    char* at = mmap(NULL, gpu_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return GEN_ERROR_OUT_OF_MEMORY;
    memset(at, GPU_POISON, gpu_pages(bytes));
    mprotect(at, gpu_pages(bytes), PROT_NONE);
    gpu->pieces[i].at = at;
    gpu->pieces[i].bytes = bytes;
    ++gpu->live;
    ++gpu->allocations;
    *out = at;
    return GEN_OK;
  }
  return GEN_ERROR_OUT_OF_MEMORY;
}

static inline gen_status gpu_release(void* user, void* ptr) {
  struct gpu_memory* gpu = user;
  for (int i = 0; i < GPU_PIECES; ++i) {
    if (ptr == NULL || gpu->pieces[i].at != ptr) continue;
    munmap(ptr, gpu_pages(gpu->pieces[i].bytes));
    gpu->pieces[i].at = NULL;
    --gpu->live;
    return GEN_OK;
  }
  ++gpu->mistakes;
  return GEN_ERROR_INVALID_ARGUMENT;
}

static inline gen_status gpu_copy(void* user, void* dst, const void* src, size_t bytes, int32_t kind) {
  struct gpu_memory* gpu = user;
  if (gpu_fails(gpu)) return gpu->fail_with;
  size_t to_pages = 0, from_pages = 0;
  char* to = kind != GEN_GPU_COPY_TO_HOST ? gpu_open(gpu, dst, bytes, &to_pages) : NULL;
  char* from = kind != GEN_GPU_COPY_TO_DEVICE ? gpu_open(gpu, src, bytes, &from_pages) : NULL;
  const int known = (to != NULL) == (kind != GEN_GPU_COPY_TO_HOST) &&
                    (from != NULL) == (kind != GEN_GPU_COPY_TO_DEVICE) && kind >= 0 && kind <= 2;
  if (known) memmove(dst, src, bytes);
  if (to != NULL) mprotect(to, to_pages, PROT_NONE);
  if (from != NULL) mprotect(from, from_pages, PROT_NONE);
  return known ? GEN_OK : GEN_ERROR_INVALID_ARGUMENT;
}

static inline gen_gpu_allocator gpu_table(struct gpu_memory* gpu) {
  gpu->fail_with = GEN_ERROR_OUT_OF_MEMORY;
  const gen_gpu_allocator table = {
      .struct_size = sizeof table, .user = gpu, .allocate = gpu_allocate, .release = gpu_release, .copy = gpu_copy, .device = 3};
  return table;
}

/* The contents of device memory. */
static inline void gpu_read(struct gpu_memory* gpu, void* to, const void* from, size_t bytes) {
  const int fail_at = gpu->fail_at;
  gpu->fail_at = 0;
  gpu_copy(gpu, to, from, bytes, GEN_GPU_COPY_TO_HOST);
  gpu->fail_at = fail_at;
}
static inline int32_t gpu_int32(struct gpu_memory* gpu, const int32_t* at) {
  int32_t value = -1;
  gpu_read(gpu, &value, at, sizeof value);
  return value;
}
static inline void gpu_write(struct gpu_memory* gpu, const void* to, const void* from, size_t bytes) {
  const int fail_at = gpu->fail_at;
  gpu->fail_at = 0;
  gpu_copy(gpu, (void*)(uintptr_t)to, from, bytes, GEN_GPU_COPY_TO_DEVICE);
  gpu->fail_at = fail_at;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A gen_allocator that counts what is held and refuses on demand. */
#ifndef GEN_TESTS_COUNTING_ALLOCATOR_H_
#define GEN_TESTS_COUNTING_ALLOCATOR_H_

#include <generate/base.h>

#include <stdlib.h>

struct counting {
  size_t live; /* bytes */
  size_t peak;
  int refuse;
  int wrong_align; /* asked for one that is no power of two */
};

static inline gen_status counting_allocate(void* user, size_t bytes, size_t align, void** out) {
  struct counting* counts = (struct counting*)user;
  *out = NULL;
  if (counts->refuse) return GEN_ERROR_OUT_OF_MEMORY;
  *out = aligned_alloc(align, (bytes + align - 1) / align * align);
  counts->wrong_align |= align == 0 || (align & (align - 1)) != 0;
  counts->live += bytes;
  if (counts->live > counts->peak) counts->peak = counts->live;
  return GEN_OK;
}

static inline void counting_release(void* user, void* ptr, size_t bytes) {
  struct counting* counts = (struct counting*)user;
  counts->live -= bytes;
  free(ptr);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See failing_memory.h. The names defined here are the program's own, so that every library of the
 * process binds to them. They pass on to glibc, or to the address sanitizer's where that is built
 * in, which then still checks all blocks; its own operator new is replaced by failing_new.cpp.
 */
#define _GNU_SOURCE
#include "failing_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef GEN_ADDRESS_SANITIZER
#define REAL(name) __interceptor_##name
int REAL(pthread_create)(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                         void* argument);
#else
#define REAL(name) __libc_##name
#endif

void* REAL(malloc)(size_t bytes);
void* REAL(calloc)(size_t count, size_t bytes);
void* REAL(realloc)(void* block, size_t bytes);
void* REAL(memalign)(size_t align, size_t bytes);
void REAL(free)(void* block);

#define EXPORT __attribute__((visibility("default")))

static atomic_int armed, later_too, all_fail;
static atomic_long wanted, calls, failures, live, live_bytes, peak_bytes;
static atomic_long table_blocks;
static atomic_size_t table_bytes, table_peak;

#ifdef GEN_ADDRESS_SANITIZER
static pthread_t armed_by;
#endif

void failing_arm(int sources, long nth, int later) {
#ifdef GEN_ADDRESS_SANITIZER
  armed_by = pthread_self();
#endif
  armed = 0;
  calls = 0;
  failures = 0;
  wanted = nth;
  later_too = later;
  armed = sources;
}

void failing_disarm(void) { armed = 0; }
void failing_all_begin(void) { all_fail = 1; }
void failing_all_end(void) { all_fail = 0; }
long failing_calls(void) { return calls; }
long failing_failures(void) { return failures; }
long failing_live_blocks(void) { return live; }
long failing_live_bytes(void) { return live_bytes; }
long failing_peak_bytes(void) { return atomic_exchange(&peak_bytes, live_bytes); }
long failing_table_blocks(void) { return table_blocks; }
size_t failing_table_bytes(void) { return table_bytes; }
size_t failing_table_peak(void) { return atomic_exchange(&table_peak, table_bytes); }

static int show = -1;

void failing_show(int file) { show = file; }

static void show_caller(void) {
  void* frames[40];
  const int file = show;
  show = -1; /* what it calls may allocate */
  backtrace_symbols_fd(frames, backtrace(frames, 40), file);
}

static int fails(enum source source) {
#ifdef GEN_ADDRESS_SANITIZER
  /* A thread that starts asks for what the sanitizer cannot do without. */
  if (source == SOURCE_HEAP && (armed || all_fail) && !pthread_equal(pthread_self(), armed_by))
    return 0;
#endif
  if (all_fail) return 1;
  if (!(armed & (int)source)) return 0;
  const long call = ++calls;
  if (later_too ? call < wanted : call != wanted) return 0;
  if (show >= 0) show_caller();
  ++failures;
  return 1;
}

static int no_memory(void) {
  if (!fails(SOURCE_HEAP)) return 0;
  errno = ENOMEM;
  return 1;
}

static size_t usable(void* block) {
#ifdef GEN_ADDRESS_SANITIZER
  (void)block; /* the sanitizer cannot tell before it is ready */
  return 0;
#else
  return malloc_usable_size(block);
#endif
}

static void add_bytes(long bytes) {
  const long now = atomic_fetch_add(&live_bytes, bytes) + bytes;
  long peak = peak_bytes;
  while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {
  }
}

static void* counted(void* block) {
  if (block != NULL) {
    ++live;
    add_bytes((long)usable(block));
  }
  return block;
}

EXPORT void* malloc(size_t bytes) { return no_memory() ? NULL : counted(REAL(malloc)(bytes)); }

EXPORT void* calloc(size_t count, size_t bytes) {
  return no_memory() ? NULL : counted(REAL(calloc)(count, bytes));
}

EXPORT void* realloc(void* block, size_t bytes) {
  if (block == NULL) return malloc(bytes);
  if (bytes == 0) {
    free(block);
    return NULL;
  }
  if (no_memory()) return NULL;
  const long before = (long)usable(block);
  void* moved = REAL(realloc)(block, bytes);
  if (moved != NULL) add_bytes((long)usable(moved) - before);
  return moved;
}

EXPORT void* memalign(size_t align, size_t bytes) {
  return no_memory() ? NULL : counted(REAL(memalign)(align, bytes));
}

EXPORT void* aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }

EXPORT int posix_memalign(void** out, size_t align, size_t bytes) {
  void* block = memalign(align, bytes);
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}

EXPORT void free(void* block) {
  if (block != NULL) {
    --live;
    live_bytes -= (long)usable(block);
  }
  REAL(free)(block);
}

EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument) {
  if (fails(SOURCE_THREAD)) return EAGAIN;
#ifdef GEN_ADDRESS_SANITIZER
  return REAL(pthread_create)(thread, attributes, start, argument);
#else
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, start, argument);
#endif
}

EXPORT void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (fails(SOURCE_MAP)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

static gen_status table_allocate(void* user, size_t bytes, size_t align, void** out) {
  (void)user;
  *out = fails(SOURCE_TABLE) ? NULL
                             : REAL(memalign)(align < sizeof(void*) ? sizeof(void*) : align, bytes);
  if (*out == NULL) return GEN_ERROR_OUT_OF_MEMORY;
  ++table_blocks;
  const size_t now = atomic_fetch_add(&table_bytes, bytes) + bytes;
  size_t peak = table_peak;
  while (now > peak && !atomic_compare_exchange_weak(&table_peak, &peak, now)) {
  }
  return GEN_OK;
}

static void table_release(void* user, void* block, size_t bytes) {
  (void)user;
  if (block == NULL) return;
  --table_blocks;
  table_bytes -= bytes;
  REAL(free)(block);
}

const gen_allocator failing_table = {sizeof failing_table, NULL, table_allocate, table_release};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, threads and mapped files that fail on demand. failing_memory.c defines malloc and its
 * family, pthread_create and mmap for the whole process: the library under test, what it links and
 * libstdc++ call these. While armed, calls of the chosen sources are counted and the chosen ones
 * fail. Blocks that are held are counted at all times.
 */
#ifndef TESTS_MEMORY_FAILING_MEMORY_H
#define TESTS_MEMORY_FAILING_MEMORY_H

#include <generate/base.h>

/* Who fails; may be combined. */
enum source {
  SOURCE_HEAP = 1,   /* malloc and its family, and with it operator new */
  SOURCE_TABLE = 2,  /* failing_table */
  SOURCE_THREAD = 4, /* pthread_create */
  SOURCE_MAP = 8     /* mmap */
};

/* From now on the nth call (from 1) of these sources fails; with `later` not 0 those after it, too.
 */
void failing_arm(int sources, long nth, int later);
/* Nothing fails any more. */
void failing_disarm(void);
/* Between these two calls everything fails and nothing is counted; armed failures stay armed. */
void failing_all_begin(void);
void failing_all_end(void);

/* Of the sources armed last, since then: calls, and those that failed. */
long failing_calls(void);
long failing_failures(void);

/* From now on who makes the first call that fails is written to this file; -1 for none. */
void failing_show(int file);

/* Blocks of malloc and its family that have not been freed. */
long failing_live_blocks(void);
/* Bytes of these; 0 under the address sanitizer. */
long failing_live_bytes(void);
long failing_peak_bytes(void); /* the peak since the last call */

/* An allocator that counts what it holds; its memory is not the heap's. */
extern const gen_allocator failing_table;
long failing_table_blocks(void);
size_t failing_table_bytes(void);
size_t failing_table_peak(void); /* the peak in bytes since the last call */

#endif /* TESTS_MEMORY_FAILING_MEMORY_H */

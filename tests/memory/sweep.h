/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios for the memory sweep (sweep.c): each is run again and again, with another allocation
 * failing each time. A scenario makes its calls through TRY: a call may fail with
 * GEN_ERROR_OUT_OF_MEMORY if an allocation was refused, must then have changed nothing, and must
 * succeed when repeated. Results are compared with those of the first run, whatever failed before.
 * Frees run through FREE, while every allocation fails.
 */
#ifndef TESTS_MEMORY_SWEEP_H
#define TESTS_MEMORY_SWEEP_H

#include <generate/experimental.h>
#include <generate/generate.h>
#include <string.h>

#include "failing_memory.h"
#include "status_record.h"

typedef struct scenario {
  const char* name;
  void (*begin)(const void* with); /* before the runs, once, with memory; may be NULL */
  void (*run)(const void* with);
  void (*end)(const void* with); /* after them; may be NULL */
  const void* with;
} scenario;

/* A list of scenarios that ends with a NULL name; one for each file of them. */
extern const scenario model_scenarios[], setter_scenarios[], session_scenarios[], batch_scenarios[],
    cache_scenarios[], tiered_scenarios[], many_scenarios[], custom_scenarios[], report_scenarios[],
    thread_scenarios[], grammar_scenarios[], chat_scenarios[], speculative_scenarios[], agent_scenarios[];

extern gen_error sweep_error;     /* the gen_error of all calls */
extern const char* sweep_model;   /* a GGUF file that loads fast */
extern const char* sweep_scratch; /* a folder that must be empty after each run */

/* Ends the program with a message and its location. */
_Noreturn void sweep_fail(const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
/* A call has failed: checks that it may, and ends all failing for this run. */
void sweep_refused(const char* file, int line, const char* call, gen_status status);
/* Whether a call of this run has been refused. */
int sweep_was_refused(void);
/* The same bytes as in the first run, by their place in the order of these calls. */
void sweep_same(const char* file, int line, const void* bytes, size_t n);
/* As sweep_same of all of a file, which is then removed. */
void sweep_same_file(const char* file, int line, const char* path);
/* Makes all allocations fail from here to sweep_free_end. */
void sweep_free_begin(void);
void sweep_free_end(void);

#define CHECK(condition) \
  ((condition) ? (void)0 : sweep_fail(__FILE__, __LINE__, "%s", "not so: " #condition))

/* Makes the call, and again if it is refused; `unchanged` is a statement run in between. */
#define TRY_KEEPING(call, unchanged)                                                    \
  do {                                                                                  \
    sweep_error.code = GEN_OK;                                                          \
    gen_status status_ = (call);                                                        \
    if (status_ != GEN_OK) {                                                            \
      sweep_refused(__FILE__, __LINE__, #call, status_);                                \
      unchanged;                                                                        \
      status_ = (call);                                                                 \
      if (status_ != GEN_OK)                                                            \
        sweep_fail(__FILE__, __LINE__, "%s once more: %s", #call, sweep_error.message); \
    }                                                                                   \
  } while (0)
#define TRY(call) TRY_KEEPING(call, (void)0)
/* The same for calls that make an object, which is NULL after a failure. */
#define MAKE(object, call)                      \
  do {                                          \
    (object) = (void*)&sweep_error;             \
    TRY_KEEPING(call, CHECK((object) == NULL)); \
  } while (0)

#define SAME(bytes, n) sweep_same(__FILE__, __LINE__, bytes, n)
#define SAME_TEXT(text) sweep_same(__FILE__, __LINE__, text, strlen(text))
#define SAME_FILE(path) sweep_same_file(__FILE__, __LINE__, path)
#define FREE(call)      \
  do {                  \
    sweep_free_begin(); \
    call;               \
    sweep_free_end();   \
  } while (0)

#define E (&sweep_error)

/* sweep_scratch/name, in static memory until the next call. */
const char* scratch(const char* name);
/* The sweep's model with one thread, and its memory from failing_table. */
gen_model* sweep_load(void);
/* The same of another file. */
gen_model* sweep_load_from(const char* path);

#endif /* TESTS_MEMORY_SWEEP_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every scenario with each of its allocations failing in turn, alone and with all after it;
 * the same for the caller's allocator, for threads that cannot be started and files that cannot be
 * mapped. After each run nothing may be held that was not before, no file be open, nothing be left
 * in the scratch folder, nothing have been printed.
 *
 *   memory_sweep MODEL [--points N] [--from N [--show 1]] [SCENARIO…]
 *
 * At most N points of each kind of failing are tried (spread over all of them; 0 for all), from
 * number --from on, and with --show the stack of the first call that fails is printed.
 */
#define _GNU_SOURCE
#include "sweep.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

gen_error sweep_error;
const char* sweep_model;
const char* sweep_scratch;

static int report = 1; /* where the program's own words go: to what was stdout */
static int printed;    /* and what anybody prints: a file */
static char scratch_folder[256];

/* The point that runs. */
static const scenario* current;
static int current_sources, current_later;
static long current_nth;
static int refused;

/* What the first run gave, in the order of its sweep_same. */
enum { MOST_RECORDS = 512 };
static struct record {
  void* bytes;
  size_t n;
} records[MOST_RECORDS];
static size_t n_records, next_record;
static int recording, frees_fail, shown;

static void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (write(report, line, strlen(line)) < 0) _exit(3);
}

static const char* source_name(int sources) {
  return sources == SOURCE_HEAP    ? "heap"
         : sources == SOURCE_TABLE ? "table"
         : sources == SOURCE_MAP   ? "map"
                                   : "thread";
}

static void say_where(void) {
  say("  in scenario \"%s\", %s %s call %ld\n", current != NULL ? current->name : "none",
      source_name(current_sources), current_later ? "from" : "only", current_nth);
}

static _Noreturn void leave(int status) {
  if (*scratch_folder != '\0') {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_folder);
    if (system(command) != 0) status = status == 0 ? 1 : status;
  }
  _exit(status);
}

void sweep_fail(const char* file, int line, const char* format, ...) {
  failing_disarm();
  failing_all_end();
  char text[800];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say("%s:%d: %s\n", file, line, text);
  say_where();
  leave(1);
}

static void on_signal(int number) {
  failing_disarm();
  failing_all_end();
  say("signal %d%s\n", number, number == SIGALRM ? ": it hangs" : "");
  say_where();
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), report);
  _exit(1);
}

void sweep_refused(const char* file, int line, const char* call, gen_status status) {
  const long failures = failing_failures();
  failing_disarm();
  if (refused)
    sweep_fail(file, line, "%s failed with all memory there: %s", call, sweep_error.message);
  refused = 1;
  if (status != GEN_ERROR_OUT_OF_MEMORY || sweep_error.code != status || failures == 0) {
    sweep_fail(file, line, "%s gave %s (\"%s\") after %ld failures", call, gen_status_name(status),
               sweep_error.message, failures);
  }
  const char* message = sweep_error.message;
  if (*message == '\0' || strchr(message, '\n') != NULL)
    sweep_fail(file, line, "%s has a message of no line or two", call);
}

int sweep_was_refused(void) { return refused; }

void sweep_same(const char* file, int line, const void* bytes, size_t n) {
  if (next_record >= MOST_RECORDS) sweep_fail(file, line, "more results than there is room for");
  struct record* record = &records[next_record++];
  if (recording) {
    record->bytes = malloc(n + 1);
    if (n > 0) memcpy(record->bytes, bytes, n);
    record->n = n;
    n_records = next_record;
    return;
  }
  if (next_record > n_records || n != record->n || (n > 0 && memcmp(bytes, record->bytes, n) != 0))
    sweep_fail(file, line, "result %zu differs from that of a run without failures", next_record);
}

void sweep_same_file(const char* file, int line, const char* path) {
  static char bytes[1 << 20];
  const int opened = open(path, O_RDONLY);
  const ssize_t n = opened < 0 ? -1 : read(opened, bytes, sizeof bytes);
  if (n < 0 || n == sizeof bytes) sweep_fail(file, line, "cannot read %s", path);
  close(opened);
  unlink(path);
  sweep_same(file, line, bytes, (size_t)n);
}

void sweep_free_begin(void) {
  if (frees_fail) failing_all_begin();
}
void sweep_free_end(void) { failing_all_end(); }

const char* scratch(const char* name) {
  static char path[300];
  snprintf(path, sizeof path, "%s/%s", sweep_scratch, name);
  return path;
}

gen_model* sweep_load(void) { return sweep_load_from(sweep_model); }

gen_model* sweep_load_from(const char* path) {
  gen_model_options* options = NULL;
  gen_model* model = NULL;
  if (gen_model_options_new(&options, E) != GEN_OK ||
      gen_model_options_set_threads(options, 1, E) != GEN_OK ||
      gen_model_options_set_allocator(options, &failing_table, E) != GEN_OK ||
      gen_model_load(path, options, &model, E) != GEN_OK)
    sweep_fail(__FILE__, __LINE__, "%s: %s", path, sweep_error.message);
  gen_model_options_free(options);
  return model;
}

static int open_files(void) {
  int n = 0;
  for (int file = 0; file < 64; ++file) n += fcntl(file, F_GETFD) >= 0;
  return n;
}

static void check_clean(void) {
  static int files;
  if (files == 0) files = open_files();
  if (open_files() != files)
    sweep_fail(__FILE__, __LINE__, "%d files are open and were %d", open_files(), files);
  DIR* folder = opendir(sweep_scratch);
  const struct dirent* entry = NULL;
  while (folder != NULL && (entry = readdir(folder)) != NULL)
    if (entry->d_name[0] != '.') sweep_fail(__FILE__, __LINE__, "it left %s behind", entry->d_name);
  closedir(folder);
  struct stat info;
  fstat(printed, &info);
  if (info.st_size > 0) {
    char text[400] = "";
    if (pread(printed, text, sizeof text - 1, 0) < 0) *text = '\0';
    sweep_fail(__FILE__, __LINE__, "it printed \"%s\"", text);
  }
}

static void run_once(void) {
  next_record = 0;
  refused = 0;
  alarm(60);
  current->run(current->with);
  alarm(0);
  failing_disarm();
  if (next_record != n_records)
    sweep_fail(__FILE__, __LINE__, "%zu results, not %zu", next_record, n_records);
}

/* The first allocation of each public function that makes any, in a run without failures; 0: none.
 */
static long first_of[STATUS_RECORD_FUNCTIONS], counted;
static void note_first(int function) {
  const long now = failing_calls();
  if (now > counted && first_of[function] == 0) first_of[function] = counted + 1;
  counted = now;
}

/* Blocks that may come to be held later than in the first run: which threads meet in a step, and so
 * what the library keeps for steps of two, is not the same in all runs, nor is how much is guessed
 * where times decide. */
static long drift;

static void try_point(long nth, long* blocks, long most, long table) {
  current_nth = nth;
  if (shown) failing_show(report);
  failing_arm(current_sources, nth, current_later);
  run_once();
  check_clean();
  /* What the failure has kept from growing may grow in a run without. */
  for (int i = 0; i < 3 && failing_live_blocks() != *blocks; ++i) run_once();
  if (failing_live_blocks() > *blocks && failing_live_blocks() <= most)
    *blocks = failing_live_blocks();
  if (failing_live_blocks() > *blocks || (failing_live_blocks() < *blocks && drift == 0) ||
      failing_table_blocks() != table) {
    sweep_fail(__FILE__, __LINE__,
               "%ld blocks of the heap were held and now %ld, %ld of the table and now %ld",
               *blocks, failing_live_blocks(), table, failing_table_blocks());
  }
}

/* One way of failing: all points, or some of them and where each function begins to allocate. */
static long sweep(int sources, int later, long points, long from) {
  current_sources = sources;
  current_later = later;
  current_nth = 0;
  memset(first_of, 0, sizeof first_of);
  counted = 0;
  failing_arm(sources, -1, 0);
  record_hook = note_first;
  run_once();
  record_hook = NULL;
  const long n = failing_calls();
  long blocks = failing_live_blocks();
  const long most = blocks + drift;
  const long table = failing_table_blocks();
  const long step = points > 0 && n > points ? (n + points - 1) / points : 1;
  long tried = 0;
  for (long nth = from; nth <= n + 2; nth += step, ++tried) try_point(nth, &blocks, most, table);
  if (step == 1 || !later) return tried;
  for (int i = 0; i < STATUS_RECORD_FUNCTIONS; ++i) {
    if (first_of[i] < from || (first_of[i] - from) % step == 0) continue;
    try_point(first_of[i], &blocks, most, table);
    ++tried;
  }
  return tried;
}

static long sweep_scenario(const scenario* one, long points, long from) {
  current = one;
  current_nth = 0;
  n_records = 0;
  check_clean();
  if (one->begin != NULL) one->begin(one->with);
  recording = 1;
  frees_fail = 0;
  run_once();
  check_clean();
  recording = 0;
  run_once(); /* pools and caches of what lives longer are full now */
  frees_fail = 1;
  run_once();
  check_clean();
  long tried[8];
  long sum = 0;
  const int sources[] = {SOURCE_HEAP, SOURCE_TABLE, SOURCE_THREAD, SOURCE_MAP};
  for (int i = 0; i < 8; ++i) sum += tried[i] = sweep(sources[i / 2], i % 2, points, from);
  if (one->end != NULL) one->end(one->with);
  for (size_t i = 0; i < n_records; ++i) free(records[i].bytes);
  say("%-32s %6ld points: heap %ld and %ld, table %ld and %ld, threads %ld, maps %ld\n", one->name,
      sum, tried[0], tried[1], tried[2], tried[3], tried[4] + tried[5], tried[6] + tried[7]);
  return sum;
}

static int is_asked_for(const scenario* one, char** names, int n) {
  for (int i = 0; i < n; ++i)
    if (strstr(one->name, names[i]) != NULL) return 1;
  return n == 0;
}

int main(int argc, char** argv) {
  long points = 0;
  long from = 1;
  int at = 2;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    if (strcmp(argv[at], "--points") == 0) points = atol(argv[at + 1]);
    if (strcmp(argv[at], "--from") == 0) from = atol(argv[at + 1]);
    if (strcmp(argv[at], "--show") == 0) shown = atoi(argv[at + 1]);
  }
  if (argc < 2) return 2;
  sweep_model = argv[1];
  /* In memory, if there is such a place: files are synced thousands of times. */
  strcpy(scratch_folder, "/dev/shm/generate-sweep-XXXXXX");
  if (mkdtemp(scratch_folder) == NULL) {
    const char* temporary = getenv("TMPDIR");
    snprintf(scratch_folder, sizeof scratch_folder, "%.200s/generate-sweep-XXXXXX",
             temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(scratch_folder) == NULL) return 3;
  }
  sweep_scratch = scratch_folder;
  setenv("TMPDIR", scratch_folder, 1);
  report = dup(1);
  printed = memfd_create("printed", 0);
  if (report < 0 || printed < 0 || dup2(printed, 1) < 0) return 3;
#ifndef GEN_ADDRESS_SANITIZER /* which tells there what is wrong */
  if (dup2(printed, 2) < 0) return 3;
#endif
  void* frame[1];
  backtrace(frame, 1); /* loads what it needs while there is memory */
  const int signals[] = {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i) signal(signals[i], on_signal);
  const scenario* const lists[] = {
      model_scenarios,   setter_scenarios, session_scenarios,    batch_scenarios,  cache_scenarios,
      tiered_scenarios,  many_scenarios,   custom_scenarios,     report_scenarios, thread_scenarios,
      grammar_scenarios, chat_scenarios,   speculative_scenarios, agent_scenarios};
  long sum = 0;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) {
    for (const scenario* one = lists[i]; one->name != NULL; ++one) {
      drift = lists[i] == thread_scenarios || strcmp(one->name, "stream measured") == 0 ? 4 : 0;
      if (is_asked_for(one, argv + at, argc - at)) sum += sweep_scenario(one, points, from);
    }
  }
  say("%ld points\n", sum);
  leave(sum > 0 ? 0 : 1);
}

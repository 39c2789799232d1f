/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes which statuses the public functions have returned, for tests/check/statuses.py: into the
 * file that GEN_STATUS_RECORD names, which is mapped, so that children, many threads and ends of
 * any kind lose nothing. Without it nothing is noted.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "status_record.h"

static const char* const names[STATUS_RECORD_FUNCTIONS] = {STATUS_RECORD_NAMES};
enum { NAME = 48, STATUSES = 24 };

/* One for each function, as the file has them. */
static struct row {
  char name[NAME];
  uint8_t seen[STATUSES]; /* by the negated status */
} * rows;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("GEN_STATUS_RECORD");
  if (path == NULL) return;
  const size_t bytes = STATUS_RECORD_FUNCTIONS * sizeof *rows;
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) abort();
  rows = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (rows == MAP_FAILED) abort();
  close(file);
  for (int i = 0; i < STATUS_RECORD_FUNCTIONS; ++i) strncpy(rows[i].name, names[i], NAME - 1);
}

static int nothing;
void record_nothing(int whether) { nothing = whether; }

void (*record_hook)(int function);

gen_status record_status(int function, gen_status status) {
  if (!nothing && rows != NULL && status <= 0 && status > -STATUSES)
    rows[function].seen[-status] = 1;
  if (record_hook != NULL) record_hook(function);
  return status;
}

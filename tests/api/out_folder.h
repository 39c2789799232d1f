/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test program's own, made before its tests and removed behind them, and a file in it
 * to write: what calls that make files leave behind can be counted. */
#ifndef TESTS_API_OUT_FOLDER_H
#define TESTS_API_OUT_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char out_folder[] = "/tmp/generate_XXXXXX";
static char out[sizeof out_folder + 32];

static int make_folder(void** state) {
  (void)state;
  if (mkdtemp(out_folder) == NULL) return -1;
  snprintf(out, sizeof out, "%s/out.gguf", out_folder);
  return 0;
}

static int remove_folder(void** state) {
  (void)state;
  remove(out);
  return rmdir(out_folder);
}

#endif

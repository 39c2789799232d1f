/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of functions that write models share: the files of their folder, and progress. */
#ifndef TESTS_SUPPORT_WRITTEN_MODEL_H
#define TESTS_SUPPORT_WRITTEN_MODEL_H

#include <dirent.h>

#include "api/api_test.h"

static inline int files_in(const char* folder) {
  int count = 0;
  DIR* open_folder = opendir(folder);
  assert_non_null(open_folder);
  while (readdir(open_folder) != NULL) ++count;
  closedir(open_folder);
  return count - 2; /* without . and .. */
}

struct Watch {
  int calls;
  int stop_at; /* the call that cancels, from 1; 0 for none */
  double last;
};

/* Progress that ascends; a gen_progress_callback with a struct Watch. */
static inline int watch_progress(void* user, double share) {
  struct Watch* watch = user;
  assert_true(share >= watch->last && share <= 1.0);
  watch->last = share;
  return ++watch->calls == watch->stop_at;
}

#endif /* TESTS_SUPPORT_WRITTEN_MODEL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* Damage to files that this process has open in a folder, also where they have no name any more. */
#ifndef TESTS_API_DAMAGE_FILES_H
#define TESTS_API_DAMAGE_FILES_H

#include "api_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* CUT leaves nothing of them, CHANGED another byte in 64. */
enum damage { CUT, CHANGED };

static inline void damage_files(const char* folder, enum damage damage) {
  for (int fd = 3; fd < 256; ++fd) {
    char path[64];
    char name[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0) continue;
    name[length] = '\0';
    if (strncmp(name, folder, strlen(folder)) != 0) continue;
    const int file = open(path, O_RDWR);
    struct stat info;
    if (file < 0) continue; /* the folder itself */
    assert_int_equal(fstat(file, &info), 0);
    if (damage == CUT) assert_int_equal(ftruncate(file, 0), 0);
    for (off_t at = 0; damage == CHANGED && at < info.st_size; at += 64) {
      assert_int_equal(pwrite(file, "?", 1, at), 1);
    }
    close(file);
  }
}

#endif /* TESTS_API_DAMAGE_FILES_H */

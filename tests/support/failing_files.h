// SPDX-License-Identifier: Apache-2.0
// Replaces the file calls of the whole program by ones that fail on demand, as a disk does. Include
// in exactly one file of a test program.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace gen::test {

inline int64_t file_calls = 0;
inline int64_t file_call_that_fails = -1;  // its number, -1 for none

/// Counts a call; true if it is the one that fails.
inline bool file_call_fails(int number) {
  if (file_calls++ != file_call_that_fails) return false;
  errno = number;
  return true;
}

}  // namespace gen::test

extern "C" {

[[gnu::noinline]] int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (gen::test::file_call_fails(EACCES)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
[[gnu::noinline]] ssize_t write(int file, const void* bytes, size_t count) {
  if (gen::test::file_call_fails(ENOSPC)) return -1;
  return syscall(SYS_write, file, bytes, count);
}
[[gnu::noinline]] int fsync(int file) {
  if (gen::test::file_call_fails(EIO)) return -1;
  return static_cast<int>(syscall(SYS_fsync, file));
}
[[gnu::noinline]] int close(int file) {
  const bool fails = gen::test::file_call_fails(EIO);
  const auto result = static_cast<int>(syscall(SYS_close, file));
  return fails ? -1 : result;
}
[[gnu::noinline]] int rename(const char* from, const char* to) noexcept {
  if (gen::test::file_call_fails(EIO)) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"

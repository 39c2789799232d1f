// SPDX-License-Identifier: Apache-2.0
// See io_error.h.
#include "base/io_error.h"

#include <cerrno>

namespace gen {
namespace {

// Not strerror: its text depends on the locale and is not thread-safe everywhere.
const char* reason(int number) noexcept {
  switch (number) {
    case ENOENT:
      return "no such file or directory";
    case EACCES:
    case EPERM:
      return "permission denied";
    case ENOTDIR:
      return "a part of the path is not a directory";
    case ELOOP:
      return "too many symbolic links";
    case ENAMETOOLONG:
      return "name too long";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    case EISDIR:
      return "is a directory";
    case ENOSPC:
    case EDQUOT:
      return "no space left";
    case EFBIG:
      return "the file would grow beyond its limit";
    case EROFS:
      return "the file system is read-only";
    case EEXIST:
      return "the file exists";
    case EIO:
      return "input or output error";
    case ENOMEM:
      return "out of memory";
    case ENXIO:
    case ENODEV:
      return "not a regular file";
    default:
      return nullptr;
  }
}

}  // namespace

// The path is shortened so that the reason survives in any message.
Status io_error(const char* verb, const std::string& path, int number) noexcept {
  const Code code = number == ENOMEM ? Code::kOutOfMemory : Code::kIo;
  if (const char* text = reason(number)) {
    return error(code, "cannot %s '%.600s': %s", verb, path.c_str(), text);
  }
  return error(Code::kIo, "cannot %s '%.600s': system error %d", verb, path.c_str(), number);
}

Status in_file(const std::string& path, Status status) noexcept {
  const bool about_content = status.code() == Code::kFormat || status.code() == Code::kUnsupported;
  if (!about_content) return status;
  return error(status.code(), "%.400s: %s", path.c_str(), status.message());
}

}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// Files that options name.
#pragma once

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "handles.h"

namespace cli {

/// The content of a file, or a Failure that names it.
inline std::string text_of_file(const std::string& path) {
  std::string text;
  int reason = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    char part[4096];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
    reason = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
  } else {
    reason = errno;
  }
  if (reason != 0) {
    throw Failure("cannot read '" + path + "': " + std::system_category().message(reason));
  }
  return text;
}

}  // namespace cli

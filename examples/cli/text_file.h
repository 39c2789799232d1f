// SPDX-License-Identifier: Apache-2.0
// Files that options name.
#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "handles.h"

namespace cli {

/// The content of a file, or a Failure that names it.
inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) {
    throw Failure("cannot read " + path + ": " + std::strerror(errno));
  }
  return text;
}

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// See input_files.h.
#include "input_files.h"

#include <filesystem>
#include <system_error>

#include "gguf_head.h"

namespace cli {

std::vector<std::string> files_of(const ModelChoice& choice) {
  std::vector<std::string> files;
  for (const std::string& file :
       {find_file(choice.path, "story.gguf"), draft_file(choice), choice.eagle}) {
    if (file.empty()) continue;
    const std::vector<std::string> parts = parts_of(file);
    files.insert(files.end(), parts.begin(), parts.end());
  }
  return files;
}

void check_apart(const std::string& path, const std::string& option,
                 const std::vector<std::string>& read) {
  std::error_code ignored;
  for (const std::string& in : read) {
    if (in != path && !std::filesystem::equivalent(in, path, ignored)) continue;
    throw Failure(option + " " + path + " is the file to read");
  }
}

}  // namespace cli

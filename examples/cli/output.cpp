// SPDX-License-Identifier: Apache-2.0
// See output.h.
#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "handles.h"

namespace cli {

void keep_standard_streams() {
  // Opened in the wrong direction, so that using it still fails.
  while (true) {
    const int made = ::open("/dev/null", O_RDONLY);
    if (made > STDERR_FILENO || made < 0) {
      if (made >= 0) ::close(made);
      return;
    }
  }
}

void check_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return;
  const std::string reason = errno == 0 ? "" : ": " + std::system_category().message(errno);
  throw Failure("cannot write to standard output" + reason);
}

int print_piece(void*, const gen_token* token) {
  std::fwrite(token->text, 1, token->text_len, stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

void write_file(const std::string& path, const std::string& content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int error = file < 0 ? errno : 0;
  size_t written = 0;
  while (error == 0 && written < content.size()) {
    const ssize_t n = ::write(file, content.data() + written, content.size() - written);
    if (n > 0) {
      written += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      error = n == 0 ? ENOSPC : errno;
    }
  }
  struct stat info = {};
  const bool is_plain = file >= 0 && ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  if (file >= 0 && ::close(file) != 0 && error == 0) error = errno;
  if (error == 0) return;
  if (is_plain) ::unlink(path.c_str());
  throw Failure("cannot write " + path + ": " + std::system_category().message(error));
}

void check_writable(const std::string& path, const std::string& option) {
  namespace fs = std::filesystem;
  const auto refuse = [&](int error) {
    throw Failure(option + " " + (path.empty() ? "''" : path) + ": " +
                  std::system_category().message(error));
  };
  if (path.empty()) refuse(ENOENT);
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) refuse(EISDIR);
  const fs::path parent = fs::path(path).parent_path();
  const std::string place = fs::exists(status) ? path : parent.empty() ? "." : parent.string();
  if (!fs::exists(status) && failure && failure.value() != ENOENT) refuse(failure.value());
  if (::access(place.c_str(), W_OK) != 0) refuse(errno);
}

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// See run_command.h. The input is a file, so that neither side waits for the other.
#include "run_command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

extern char** environ;

namespace cli {
namespace {

constexpr size_t kMostOutput = 65536;

[[noreturn]] void fail(const std::string& what, int reason) {
  throw std::runtime_error(what + ": " + std::system_category().message(reason));
}

}  // namespace

CommandOutput run_command(const std::vector<std::string>& command, const std::string& input) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> given(std::tmpfile(), std::fclose);
  if (given == nullptr || std::fwrite(input.data(), 1, input.size(), given.get()) != input.size() ||
      std::fflush(given.get()) != 0) {
    fail("no file for the arguments", errno);
  }
  std::rewind(given.get());
  int ends[2];
  if (pipe(ends) != 0) fail("no pipe", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(given.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    fail("cannot run '" + command[0] + "'", failed);
  }
  CommandOutput output;
  char part[4096];
  for (;;) {
    const ssize_t n = read(ends[0], part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    output.text.append(part, std::min(static_cast<size_t>(n), kMostOutput - output.text.size()));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace cli

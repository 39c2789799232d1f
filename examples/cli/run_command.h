// SPDX-License-Identifier: Apache-2.0
// Runs a program with a text as its standard input.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct CommandOutput {
  std::string text;  // of its standard output, at most 64 KiB
  int status = 0;    // its exit status, or 128 and the signal that ended it
};

/// No shell is involved. Its standard error is this program's. A std::runtime_error if it cannot be
/// started.
CommandOutput run_command(const std::vector<std::string>& command, const std::string& input);

}  // namespace cli

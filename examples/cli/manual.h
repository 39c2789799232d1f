// SPDX-License-Identifier: Apache-2.0
// A program's manual page and its bash completion, generated from its options, so that both always
// match the program.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cli {

/// In troff, for man. `examples` are lines shown verbatim.
std::string manual_page(const CLI::App& app, const std::string& version,
                        const std::string& examples);
/// Completes commands, options and files.
std::string bash_completion(const CLI::App& app);

/// The two lines on standard error for a command line that the parser refuses: the error after the
/// program's name, and where the options are listed.
std::string parse_failure(const CLI::App* app, const CLI::Error& problem);

/// The command whose name is closest to the typed one; empty if none is close.
std::string nearest_command(const CLI::App& app, const std::string& typed);

}  // namespace cli

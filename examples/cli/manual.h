// SPDX-License-Identifier: Apache-2.0
// A program's manual page and its completion for bash, from its options, so that neither can differ
// from what the program takes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cli {

/// In troff, for man. `examples` are lines to be shown as they are.
std::string manual_page(const CLI::App& app, const std::string& version,
                        const std::string& examples);
/// Completes commands, options and files.
std::string bash_completion(const CLI::App& app);

/// What standard error gets for a command line that the parser refuses: one line that begins with
/// the program's name, and one that says where the options are listed.
std::string parse_failure(const CLI::App* app, const CLI::Error& problem);

/// The command whose name is nearest to what was typed; empty if none is near.
std::string nearest_command(const CLI::App& app, const std::string& typed);

}  // namespace cli

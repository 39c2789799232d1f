// SPDX-License-Identifier: Apache-2.0
// Output: answers to standard output, with error checks, and files, checked before the work for
// them.
#pragma once

#include <generate/generator.h>

#include <string>
#include <vector>

namespace cli {

/// Call before anything is opened: a standard stream that the caller closed must not become one of
/// our files.
void keep_standard_streams();

/// A Failure if something that was printed could not be written.
void check_output();

/// A token callback that prints the text at once, and stops if it cannot.
int print_piece(void* user, const gen_token* token);

/// A Failure that names the option if a file cannot be written at `path`.
void check_writable(const std::string& path, const std::string& option);

/// Writes a whole file. If writing fails, nothing of it is left.
void write_file(const std::string& path, const std::string& content);

}  // namespace cli

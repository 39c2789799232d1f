// SPDX-License-Identifier: Apache-2.0
// printf into a string, for tables.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

/// As printf; lines of up to 1000 characters.
__attribute__((format(printf, 1, 2))) std::string format(const char* form, ...);

/// Text from a file, safe for a terminal: control characters become \n, \t or \xNN, so that they
/// can neither move the cursor nor give commands.
std::string printable(const std::string& text);

/// "12.3 %", or "-" if there is no such figure.
std::string percent(double share);
/// Bytes in units: "612 B", "4.60 GiB".
std::string size_text(uint64_t bytes);
/// A number of weights in units: "612", "8.03 B" (thousand millions).
std::string count_text(uint64_t count);
/// "12.3", or "-".
std::string number(double value);

}  // namespace cli

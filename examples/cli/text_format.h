// SPDX-License-Identifier: Apache-2.0
// printf into a string, for tables.
#pragma once

#include <string>

namespace cli {

/// As printf; lines of up to 1000 characters.
__attribute__((format(printf, 1, 2))) std::string format(const char* form, ...);

/// "12.3 %", or "-" for what has no such figure.
std::string percent(double share);
/// "12.3", or "-".
std::string number(double value);

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// A calculator for models: + - * / and parentheses over decimal numbers.
#pragma once

#include <string>

namespace cli {

/// The value of an expression as text, or a std::invalid_argument that says what is wrong with it.
std::string calculate(const std::string& expression);

}  // namespace cli

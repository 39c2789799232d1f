// SPDX-License-Identifier: Apache-2.0
// Rows about tools in the table of expected results: agents without a generator, given outputs.
#ifndef TESTS_BINDINGS_TOOL_ROWS_H
#define TESTS_BINDINGS_TOOL_ROWS_H

#include <nlohmann/json.hpp>

/// The tools that each language has, and the rows. What is expected of a row is written by hand
/// from docs/agents.md and agent.h; throws if the C API gives anything else.
nlohmann::ordered_json tool_rows();

#endif  // TESTS_BINDINGS_TOOL_ROWS_H

// SPDX-License-Identifier: Apache-2.0
// A gen_result as the program prints it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "handles.h"

namespace cli {

/// "stop_token", "length", …
const char* finish_reason_name(int32_t reason);
int64_t usage_of(const gen_result* result, const char* key);
double timing_of(const gen_result* result, const char* key);
/// {"text","tokens","finish_reason","usage","timings"}
nlohmann::ordered_json result_json(const gen_result* result);
/// "prompt 5 tokens, 120 tokens/s; 200 tokens, 85 tokens/s"
std::string speed_line(const gen_result* result);

/// The statistics of drafts, as one line.
std::string draft_line(const gen_result* result);

}  // namespace cli

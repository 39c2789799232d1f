// SPDX-License-Identifier: Apache-2.0
// See results.h.
#include "results.h"

#include <cstdio>
#include <vector>

namespace cli {
namespace {

double rate(int64_t tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

/// Rate of decoded tokens; the first one comes from the prompt's last step.
double decode_rate(const gen_result* result) {
  return rate(usage_of(result, "completion") - 1, timing_of(result, "decode"));
}

/// Rate over the evaluated part of the prompt.
double prefill_rate(const gen_result* result) {
  return rate(usage_of(result, "prompt_evaluated"), timing_of(result, "prefill"));
}

}  // namespace

const char* finish_reason_name(int32_t reason) {
  constexpr const char* kNames[] = {"none",
                                    "stop_token",
                                    "stop_string",
                                    "length",
                                    "context_full",
                                    "grammar_complete",
                                    "grammar_dead_end",
                                    "cancelled",
                                    "callback",
                                    "error"};
  constexpr int32_t kCount = sizeof kNames / sizeof kNames[0];
  return reason >= 0 && reason < kCount ? kNames[reason] : "unknown";
}

int64_t usage_of(const gen_result* result, const char* key) {
  int64_t value = 0;
  gen_error error;
  check(gen_result_usage(result, key, &value, &error), error);
  return value;
}

double timing_of(const gen_result* result, const char* key) {
  double seconds = 0;
  gen_error error;
  check(gen_result_timings(result, key, &seconds, &error), error);
  return seconds;
}

nlohmann::ordered_json result_json(const gen_result* result) {
  size_t n = 0;
  const char* text = gen_result_text(result, &n);
  nlohmann::ordered_json json;
  json["text"] = std::string(text, n);
  const int32_t* tokens = gen_result_tokens(result, &n);
  json["tokens"] = n > 0 ? std::vector<int32_t>(tokens, tokens + n) : std::vector<int32_t>();
  json["finish_reason"] = finish_reason_name(gen_result_finish_reason(result));
  for (const char* key : {"prompt", "prompt_cached", "prompt_evaluated", "completion", "dropped",
                          "drafted", "accepted", "grammar_complete"}) {
    json["usage"][key] = usage_of(result, key);
  }
  for (const char* key : {"prefill", "first_token", "decode", "total"}) {
    json["timings"][key] = timing_of(result, key);
  }
  json["timings"]["prefill_tps"] = prefill_rate(result);
  json["timings"]["decode_tps"] = decode_rate(result);
  return json;
}

std::string speed_line(const gen_result* result) {
  char line[200];
  std::snprintf(line, sizeof line,
                "prompt: %lld tokens, %lld cached, %lld evaluated, %.1f tokens per second; "
                "answer: %lld tokens, %.1f tokens per second",
                static_cast<long long>(usage_of(result, "prompt")),
                static_cast<long long>(usage_of(result, "prompt_cached")),
                static_cast<long long>(usage_of(result, "prompt_evaluated")), prefill_rate(result),
                static_cast<long long>(usage_of(result, "completion")), decode_rate(result));
  return line;
}

std::string draft_line(const gen_result* result) {
  const auto drafted = static_cast<double>(usage_of(result, "drafted"));
  const auto accepted = static_cast<double>(usage_of(result, "accepted"));
  const auto said = static_cast<double>(usage_of(result, "completion"));
  char line[200];
  std::snprintf(line, sizeof line,
                "drafts: %.0f token%s guessed, %.0f accepted (%.0f %%), %.2f tokens a step",
                drafted, drafted == 1 ? "" : "s", accepted,
                drafted > 0 ? 100 * accepted / drafted : 0.0,
                said > accepted ? said / (said - accepted) : 1.0);
  const bool few = 10 * drafted < said;
  return std::string(line) +
         (few ? "; by default only what pays is drafted, with --draft-policy always more" : "");
}

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// What reading an answer costs (calls/call_parser.h), for every format: answers of calls, of text,
// and of what readers dislike (nested and unclosed openings, halves of marks), whole and byte by
// byte. Prints nanoseconds a byte and how much longer twice the answer takes, worst last.
//   calls_bench [--bytes 1000000] [--only FORMAT]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_parser.h"
#include "calls/format_table.h"

namespace gen::calls {
namespace {

constexpr int kRuns = 3;

// Repeated, each is an answer.
constexpr const char* kUnits[] = {
    "The quick brown fox jumps over the lazy dog. ",
    "   \n",
    "{",
    "[",
    "{\"a\":",
    "{\"name\":[",
    "```json\n{",
    "<",
    "<tool_cal",
    "<tool_call>",
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}\n</tool_call>\n",
    "<function=f>",
    "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>\n",
    "<think>a</think>",
    "[TOOL_CALLS]f[ARGS]{\"a\": \"x\"}",
    "<|channel|>analysis<|message|>x<|end|><|start|>assistant",
    "<|start|>",
    "<|tool_call>call:f{a:<|\"|>x<|\"|>}<tool_call|>",
    "<|tool_call>call:f{a:",
    "<|tool_call_start|>[f(a=\"x\")]<|tool_call_end|>",
    "<|tool_call_start|>[f(a=[",
    "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call>",
    "]<]minimax[>[<a>",
    "<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\">x"};

double seconds(const std::shared_ptr<const CallFormat>& format, std::string_view answer,
               size_t step) {
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    CallParser parser(format, nullptr);
    std::vector<Piece> pieces;
    for (size_t at = 0; at < answer.size(); at += step) {
      pieces.clear();
      parser.feed(answer.substr(at, std::min(step, answer.size() - at)), &pieces);
    }
    parser.finish(&pieces);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

struct Row {
  std::string name;
  double nanoseconds = 0;  // a byte
  double doubled = 0;
};

std::string repeated(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

void run(size_t bytes, std::string_view only) {
  std::vector<Row> rows;
  for (const auto& format : call_formats()) {
    if (!only.empty() && format->name != only) continue;
    for (const char* const unit : kUnits) {
      for (const size_t step : {bytes * 2, size_t{1}}) {
        const std::string once = repeated(unit, bytes);
        const std::string twice = repeated(unit, 2 * bytes);
        const double first = seconds(format, once, step);
        std::string shown = unit;
        std::replace(shown.begin(), shown.end(), '\n', ' ');
        rows.push_back({format->name + (step == 1 ? ", by bytes: " : ": ") + shown.substr(0, 40),
                        first / static_cast<double>(once.size()) * 1e9,
                        seconds(format, twice, step) / first});
      }
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.doubled < b.doubled; });
  const size_t shown = std::min<size_t>(rows.size(), 20);
  for (size_t i = rows.size() - shown; i < rows.size(); ++i) {
    std::printf("%6.1f ns a byte, twice as long: %.2f  %s\n", rows[i].nanoseconds, rows[i].doubled,
                rows[i].name.c_str());
  }
  const auto slowest = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.nanoseconds < b.nanoseconds;
  });
  if (slowest != rows.end())
    std::printf("slowest: %.1f ns a byte, %s\n", slowest->nanoseconds, slowest->name.c_str());
}

}  // namespace
}  // namespace gen::calls

int main(int count, char** arguments) {
  size_t bytes = 1'000'000;
  std::string_view only;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(arguments[i], "--bytes") == 0)
      bytes = std::strtoull(arguments[i + 1], nullptr, 10);
    if (std::strcmp(arguments[i], "--only") == 0) only = arguments[i + 1];
  }
  gen::calls::run(bytes, only);
  return 0;
}

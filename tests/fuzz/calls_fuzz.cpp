// SPDX-License-Identifier: Apache-2.0
// Answers in the format that the first byte chooses, cut into pieces as the second says. Nothing
// may crash or trip a sanitizer; the pieces add up to the answer; arguments are JSON objects; no
// byte comes from nowhere; the cuts change nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_parser.h"
#include "base/utf8.h"
#include "calls/format_table.h"
#include "calls/seen_answer.h"
#include "grammar/schema/json_value.h"

namespace {

using namespace gen::calls;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

const std::shared_ptr<const Tools>& tools() {
  static const auto made = [] {
    auto some = std::make_shared<Tools>();
    auto tool = make_tool("weather", "", R"({"type": "object", "properties": {"city": {"type":
      "string"}, "days": {"type": "integer"}, "on": {"type": ["boolean", "string"]}}})");
    require(tool.ok());
    some->push_back(std::move(*tool));
    return std::shared_ptr<const Tools>(std::move(some));
  }();
  return made;
}

Answer read(const std::shared_ptr<const CallFormat>& format, std::string_view answer, size_t step) {
  CallParser parser(format, tools());
  test::SeenAnswer seen;
  for (size_t at = 0; at < answer.size();) {
    const size_t n = std::min(step, answer.size() - at);
    std::vector<Piece> pieces;
    parser.feed(answer.substr(at, n), &pieces);
    require(seen.take(pieces));
    at += n;
  }
  std::vector<Piece> pieces;
  parser.finish(&pieces);
  require(seen.take(pieces));
  const Answer& got = parser.answer();
  require(seen.agrees(got));
  return got;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const auto formats = call_formats();
  const auto& format = formats[data[0] % formats.size()];
  const std::string_view answer(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Answer whole = read(format, answer, SIZE_MAX);
  const Answer cut = read(format, answer, 1 + data[1] % 7);
  require(whole.text == cut.text && whole.reasoning == cut.reasoning && whole.calls == cut.calls);
  require(whole.faults.size() == cut.faults.size());
  // A line break may be added between two stretches.
  require(whole.text.size() + whole.reasoning.size() <= 2 * answer.size() + 2);
  if (whole.calls.empty() && whole.faults.empty() && whole.reasoning.empty()) {
    require(whole.text.size() <= answer.size());
  }
  for (const Call& call : whole.calls) {
    require(!call.name.empty());
    if (!gen::utf8_valid(call.arguments)) continue;
    auto json = gen::grammar::read_json(call.arguments);
    if (!json.ok())
      require(std::string_view(json.status().message()).find("surrogate") !=
              std::string_view::npos);
    if (json.ok()) require(json->is(gen::grammar::JsonType::kObject));
  }
  return 0;
}

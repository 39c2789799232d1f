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
#include "grammar/schema/json_value.h"

namespace {

using namespace gen::calls;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

struct Seen {
  std::string text, reasoning;
  std::vector<Call> calls;
  bool open = false;

  void take(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      switch (piece.kind) {
        case PieceKind::kText:
          text += piece.text;
          break;
        case PieceKind::kReasoning:
          reasoning += piece.text;
          break;
        case PieceKind::kCallName:
          require(!open && piece.call == calls.size());
          calls.push_back({"", piece.text, ""});
          open = true;
          break;
        case PieceKind::kArguments:
          require(open);
          calls.back().arguments += piece.text;
          break;
        case PieceKind::kCallEnd:
          require(open);
          open = false;
          break;
        case PieceKind::kCallBroken:
          require(open);
          calls.pop_back();
          open = false;
          break;
      }
    }
  }
};

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
  Seen seen;
  for (size_t at = 0; at < answer.size();) {
    const size_t n = std::min(step, answer.size() - at);
    std::vector<Piece> pieces;
    parser.feed(answer.substr(at, n), &pieces);
    seen.take(pieces);
    at += n;
  }
  std::vector<Piece> pieces;
  parser.finish(&pieces);
  seen.take(pieces);
  const Answer& got = parser.answer();
  require(!seen.open);
  require(seen.reasoning == got.reasoning);
  require(std::string_view(seen.text).ends_with(got.text));
  require(seen.calls.size() == got.calls.size());
  for (size_t i = 0; i < got.calls.size(); ++i) {
    require(seen.calls[i].name == got.calls[i].name);
    require(seen.calls[i].arguments == got.calls[i].arguments);
  }
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

// SPDX-License-Identifier: Apache-2.0
// Answers as one value, cut in any way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_parser.h"
#include "calls/seen_answer.h"
#include "grammar/schema/json_value.h"

namespace gen::calls::test {

/// The answer, fed in pieces of `cut` bytes; the pieces that come out agree with it.
inline Answer read_answer(const std::shared_ptr<const CallFormat>& format,
                          const std::shared_ptr<const Tools>& tools, std::string_view answer,
                          size_t cut = SIZE_MAX, std::string_view opening = {}) {
  CallParser parser(format, tools, opening);
  SeenAnswer seen;
  std::vector<Piece> pieces;
  for (size_t at = 0; at < answer.size(); at += std::min(cut, answer.size() - at)) {
    pieces.clear();
    parser.feed(answer.substr(at, cut), &pieces);
    EXPECT_TRUE(seen.take(pieces)) << answer;
  }
  pieces.clear();
  parser.finish(&pieces);
  EXPECT_TRUE(seen.take(pieces)) << answer;
  EXPECT_TRUE(seen.agrees(parser.answer())) << answer;
  return parser.answer();
}

inline bool same_json(std::string_view left, std::string_view right) {
  auto a = grammar::read_json(left);
  auto b = grammar::read_json(right);
  return a.ok() && b.ok() && grammar::json_equal(*a, *b);
}

inline std::shared_ptr<const Tools> tools_of(const std::vector<std::string>& descriptions) {
  auto tools = std::make_shared<Tools>();
  for (const std::string& text : descriptions) {
    auto tool = read_tool(text);
    EXPECT_TRUE(tool.ok()) << tool.status().message();
    if (tool.ok()) tools->push_back(std::move(*tool));
  }
  return tools;
}

}  // namespace gen::calls::test

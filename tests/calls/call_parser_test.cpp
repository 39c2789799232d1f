// SPDX-License-Identifier: Apache-2.0
// The parser of answers: what is text, what is reasoning, what is a call; that no cut changes it,
// and that no byte is lost.
#include "calls/call_parser.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/answers.h"
#include "calls/call_values.h"
#include "calls/format_table.h"

namespace gen::calls {
namespace {

Answer parsed(std::string_view format, std::string_view answer, size_t cut = SIZE_MAX,
              std::string_view opening = {}) {
  return test::read_answer(format_named(format), nullptr, answer, cut, opening);
}

void expect_answer(std::string_view format, std::string_view answer, std::string_view text,
                   const std::vector<Call>& calls, std::string_view reasoning = "",
                   size_t faults = 0) {
  for (const size_t cut : {SIZE_MAX, size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
    const Answer read = parsed(format, answer, cut);
    EXPECT_EQ(read.text, text) << answer << " in pieces of " << cut;
    EXPECT_EQ(read.reasoning, reasoning) << answer << " in pieces of " << cut;
    EXPECT_EQ(read.calls, calls) << answer << " in pieces of " << cut;
    EXPECT_EQ(read.faults.size(), faults) << (read.faults.empty() ? "" : read.faults[0].what);
  }
}

TEST(CallParser, JsonAnywhere) {
  expect_answer("json", R"(Sure. {"name":"F","arguments":{"a":1}} Done.)", "Sure.  Done.",
                {{"", "F", R"({"a":1})"}});
  expect_answer("json", R"({"tool": "t", "parameters": {}})", "", {{"", "t", "{}"}});
  expect_answer("json", R"(a {"b": 1} c )", R"(a {"b": 1} c )", {});
  expect_answer("json", R"({"name": "f", "arguments": null})",
                R"({"name": "f", "arguments": null})", {});
  expect_answer("json", R"({"name": "", "arguments": {}})", R"({"name": "", "arguments": {}})", {});
  expect_answer("json", "  no call ", "  no call ", {});
  expect_answer("json", R"({ {"name": "f", "arguments": {}})", "{", {{"", "f", "{}"}});
  expect_answer("json", R"({"name": "f", "arguments": {"name": "g", "arguments": {}}})", "",
                {{"", "f", R"({"name": "g", "arguments": {}})"}});
  expect_answer("json", R"({"x": {"name": "g", "arguments": {}}})",
                R"({"x": {"name": "g", "arguments": {}}})", {});
  expect_answer("json", R"({"x": {"name": "g", "arguments": {}})", R"({"x":)", {{"", "g", "{}"}});
  expect_answer("json", R"({"name": "a}\"{", "arguments": {"k": "}"}})", "",
                {{"", "a}\"{", R"({"k": "}"})"}});
}

TEST(CallParser, JsonInWrappers) {
  expect_answer(
      "json",
      R"({"tool_calls": [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"x": 2}}]})",
      "", {{"", "f", "{}"}, {"", "g", R"({"x": 2})"}});
  expect_answer("json", R"([{"name": "f", "arguments": {}}])", "", {{"", "f", "{}"}});
  expect_answer(
      "json",
      R"({"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]})",
      "", {{"c1", "f", R"({"a": 1})"}});
  expect_answer("json", "Here:\n```json\n{\"name\": \"f\", \"arguments\": {}}\n```\n",
                "Here:", {{"", "f", "{}"}});
  expect_answer("json", "```json\n{\"a\": 1}\n```", "```json\n{\"a\": 1}\n```", {});
  expect_answer("json", "```\ncode\n``` and `x`", "```\ncode\n``` and `x`", {});
}

TEST(CallParser, Hermes) {
  expect_answer(
      "hermes",
      "<think>\nHm.\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"weather\", "
      "\"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"time\", "
      "\"arguments\": {}}\n</tool_call>",
      "Let me look.", {{"", "weather", R"({"city": "Oslo"})"}, {"", "time", "{}"}}, "Hm.");
  // The reasoning ends by the call; arguments as a text; the name last.
  expect_answer(
      "hermes",
      "<think>a<tool_call>{\"arguments\": \"{\\\"b\\\": [1]}\", \"name\": \"f\"}</tool_call>", "",
      {{"", "f", R"({"b": [1]})"}}, "a");
  // Line breaks in strings.
  expect_answer("hermes",
                "<tool_call>{\"name\": \"f\", \"arguments\": {\"t\": \"a\nb\"}}</tool_call>", "",
                {{"", "f", R"({"t": "a\nb"})"}});
  // Without a close, and with another call behind it.
  expect_answer("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}}", "", {{"", "f", "{}"}});
  expect_answer(
      "hermes",
      "<tool_call>{\"name\": \"f\", \"arguments\": {}}<tool_call>{\"name\": \"g\", \"arguments\": "
      "{}}</tool_call> ok",
      "ok", {{"", "f", "{}"}, {"", "g", "{}"}});
}

TEST(CallParser, BrokenCallsAreText) {
  expect_answer("hermes", "x <tool_call>\n{\"name\": \"f\", \"arg",
                "x <tool_call>\n{\"name\": \"f\", \"arg", {}, "", 1);
  expect_answer("hermes", "<tool_call>none</tool_call>", "<tool_call>none</tool_call>", {}, "", 1);
  expect_answer(
      "hermes",
      "<tool_call>{\"name\": \"f\", <tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"f\",", {{"", "g", "{}"}}, "", 1);
  expect_answer("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
                "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>", {}, "", 1);
  expect_answer("hermes", "a < b <tool", "a < b <tool", {});
  // An index alone is no name.
  const char* const nameless =
      "<|tool_call_begin|>:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
  expect_answer("kimi-k2", nameless, nameless, {}, "", 1);
}

TEST(CallParser, OpenedReasoning) {
  EXPECT_EQ(
      parsed("hermes", "so\n</think>\n\nYes.", 1, "<|im_start|>assistant\n<think>\n").reasoning,
      "so");
  EXPECT_EQ(parsed("hermes", "so\n</think>\n\nYes.", 1, "<|im_start|>assistant\n<think>\n").text,
            "Yes.");
  EXPECT_EQ(parsed("hermes", "Yes.", 1, "<think>\n\n</think>\n\n").text, "Yes.");
}

// The prompt has begun the first header; what is no header is text, and nothing of the prompt.
TEST(CallParser, TextWithoutAHeader) {
  const Answer read = parsed("harmony", "Hello, world!", 1, "<|end|><|start|>assistant");
  EXPECT_EQ(read.text, "Hello, world!");
  const Answer call =
      parsed("harmony", " to=functions.f<|channel|>commentary json<|message|>{\"a\": x", 3,
             "<|end|><|start|>assistant");
  EXPECT_TRUE(call.calls.empty());
  EXPECT_EQ(call.text, "to=functions.f<|channel|>commentary json<|message|>{\"a\": x");
}

// A format without calls, as it is read where there are no tools: what looks like one is text.
TEST(CallParser, WithoutCallsMarksAreText) {
  grammar::JsonValue value = grammar::JsonValue::object();
  value.add("x", grammar::JsonValue::of_string("y"));
  for (const auto& format : call_formats()) {
    auto plain = std::make_shared<CallFormat>(*format);
    plain->call.clear();
    if (plain->messages) plain->messages->names_are_text = true;
    std::vector<std::string> texts = {test::call_text(*format, "f", value)};
    texts.push_back(format->section.open + R"({"name":"f","arguments":{}})" +
                    format->section.close);
    for (const std::string& open : format->openings) {
      texts.push_back(open + R"({"name":"f","arguments":{}})");
      texts.push_back(open + "x");
    }
    for (const std::string& text : texts) {
      for (const size_t cut : {SIZE_MAX, size_t{1}}) {
        const Answer read = test::read_answer(plain, nullptr, text, cut, "");
        EXPECT_TRUE(read.calls.empty()) << format->name << ": " << text;
        EXPECT_TRUE(read.faults.empty()) << format->name << ": " << read.faults[0].what;
      }
    }
  }
}

// Bytes in text, reasoning and calls are those of the answer without marks and white space.
TEST(CallParser, NoTruncationLosesBytes) {
  const std::string whole =
      "<think>\nHm {\n</think>\n\nLook:\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
      "{\"city\": "
      "\"Os}lo\", \"n\": [1, {\"m\": -2.5e3}]}}\n</tool_call> end";
  for (size_t n = 0; n <= whole.size(); ++n) {
    const std::string part = whole.substr(0, n);
    const Answer read = parsed("hermes", part);
    const Answer cut = parsed("hermes", part, 1);
    EXPECT_EQ(read.text, cut.text);
    EXPECT_EQ(read.reasoning, cut.reasoning);
    EXPECT_EQ(read.calls, cut.calls);
    if (read.calls.empty()) {
      EXPECT_LE(part.size(), read.text.size() + read.reasoning.size() + 22) << part;
    }
  }
}

}  // namespace
}  // namespace gen::calls

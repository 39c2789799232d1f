// SPDX-License-Identifier: Apache-2.0
// Grammars of calls have exactly the calls with valid arguments, in every format: random schemas
// and values, of which the schema's own grammar over their JSON says whether they are valid. And
// what a grammar allows, the parser reads as such calls.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "calls/call_grammar_reader.h"
#include "calls/call_parser.h"
#include "calls/call_values.h"
#include "calls/format_table.h"
#include "grammar/schema_validator.h"
#include "support/sanitized.h"

namespace gen::calls {
namespace {

using grammar::JsonValue;
using test::CallReader;

// Marks that are control tokens of some vocabulary.
std::vector<std::string> control_tokens() {
  return {"<|tools_prefix|>",
          "<|tools_suffix|>",
          "<|START_ACTION|>",
          "<|END_ACTION|>",
          "<|START_THINKING|>",
          "<|END_THINKING|>",
          "<|START_TEXT|>",
          "<|END_TEXT|>",
          "<｜tool▁calls▁begin｜>",
          "<｜tool▁calls▁end｜>",
          "<｜tool▁call▁begin｜>",
          "<｜tool▁call▁end｜>",
          "<｜tool▁sep｜>",
          "｜DSML｜",
          "<think>",
          "</think>",
          "<start_function_call>",
          "<end_function_call>",
          "<escape>",
          "<|tool_call>",
          "<tool_call|>",
          "<|\"|>",
          "<|channel>",
          "<channel|>",
          "<|message_sep|>",
          "<|role_sep|>",
          "<tool_call>",
          "</tool_call>",
          "<arg_key>",
          "</arg_key>",
          "<arg_value>",
          "</arg_value>",
          "<|tool_call|>",
          "<|/tool_call|>",
          "<|start|>",
          "<|channel|>",
          "<|message|>",
          "<|end|>",
          "<|call|>",
          "<|constrain|>",
          "<|tool_calls_section_begin|>",
          "<|tool_calls_section_end|>",
          "<|tool_call_begin|>",
          "<|tool_call_argument_begin|>",
          "<|tool_call_end|>",
          "<|tool_call_start|>",
          "]<]minimax[>[",
          "[TOOL_CALLS]",
          "[CALL_ID]",
          "[ARGS]",
          "[THINK]",
          "[/THINK]",
          "<|eom|>",
          "<|open|>",
          "<|close|>",
          "<|sep|>"};
}

std::string json_of(const JsonValue& value) { return test::ValueText()(value); }

// Whether the arguments are valid; null: the schema has no valid value.
std::optional<grammar::test::Validator> validator(const std::string& schema) {
  auto made = grammar::Grammar::from_json_schema(schema, {});
  if (!made.ok()) return {};
  return grammar::test::Validator(**made);
}

class EveryFormat : public testing::TestWithParam<std::string> {};

TEST_P(EveryFormat, HasExactlyTheValidCalls) {
  const CallFormat format = *format_named(GetParam());
  test::Random random(17);
  int valid = 0;
  int invalid = 0;
  gen::test::Thinned thinned(5);
  for (int round = 0; round < 16; ++round) {
    const std::string schema = test::random_parameters(random);
    const Tool tool = test::tool("fetch_it", schema);
    auto is_valid = validator(schema);
    if (!is_valid || thinned.skips()) continue;
    CallReader reads(round % 2 == 0 ? std::vector<std::string>() : control_tokens());
    CallGrammarOptions options;
    options.choice = ToolChoice::kRequired;
    const Status made = reads.make(format, {tool}, options);
    ASSERT_TRUE(made.ok()) << made.message() << "\n" << schema;
    EXPECT_TRUE(reads.report().relaxed.empty()) << reads.report().relaxed[0];
    for (int i = 0; i < 40; ++i) {
      const JsonValue value =
          test::as_read(format, tool, test::random_value(random, tool.schema, tool.schema));
      if (!value.is(grammar::JsonType::kObject)) continue;
      const bool wanted = (*is_valid)(json_of(value));
      ++(wanted ? valid : invalid);
      const std::string text = test::call_text(format, "fetch_it", value);
      const bool got = reads(text);
      if (got != wanted) {
        ADD_FAILURE() << (wanted ? "refused " : "has ") << reads.stop(text) << "\n" << schema;
        return;
      }
    }
  }
  EXPECT_GT(valid, gen::test::fewer(130));
  EXPECT_GT(invalid, gen::test::fewer(40));
}

// A walk through the grammar that draws any allowed token, with a budget of tokens.
std::string random_answer(CallReader& reads, std::mt19937& random) {
  reads.matcher().reset();
  const grammar::Vocabulary& vocabulary = *reads.vocabulary();
  std::vector<uint64_t> mask(vocabulary.words());
  std::string text;
  for (uint64_t left = 400; left > 0; --left) {
    const auto fits = reads.matcher().mask_within(left, mask);
    if (!fits.ok()) return text;
    std::vector<int32_t> allowed;
    std::vector<int32_t> rare;
    for (int32_t token = 0; token < vocabulary.size(); ++token) {
      if (((mask[static_cast<size_t>(token) / 64] >> (token % 64)) & 1) == 0) continue;
      const bool common = token >= 256 || (token >= 32 && token < 127);
      (common ? allowed : rare).push_back(token);
    }
    if (allowed.empty() || (!rare.empty() && random() % 12 == 0)) allowed = rare;
    if (allowed.empty()) break;
    // Brackets and quotes lead to an end.
    std::vector<int32_t> ends;
    for (const int32_t token : allowed) {
      if (token >= 256 || std::string_view("\"'<>]}{[:,/=").find(static_cast<char>(token)) !=
                              std::string_view::npos) {
        ends.push_back(token);
      }
    }
    if (!ends.empty() && random() % 2 == 0) allowed = ends;
    const int32_t token = allowed[random() % allowed.size()];
    EXPECT_TRUE(reads.matcher().accept_token(token).value()) << token;
    if (token == reads.spec().eos) break;
    text += token < 256 ? std::string(1, static_cast<char>(token))
                        : reads.controls()[static_cast<size_t>(token) - 256];
  }
  return text;
}

// Without names or items that only a check beside the grammar keeps apart.
TEST_P(EveryFormat, HasWhatTheParserReads) {
  const auto format = format_named(GetParam());
  test::Random random(5);
  std::mt19937 walk(11);
  int n_calls = 0;
  gen::test::Thinned thinned(5);
  for (int round = 0; round < 12; ++round) {
    const std::string schema = test::random_parameters(random);
    const auto tools =
        std::make_shared<const Tools>(Tools{test::tool("fetch_it", schema), test::tool("b", "")});
    auto is_valid = validator(schema);
    if (!is_valid || thinned.skips()) continue;
    CallReader reads(round % 2 == 0 ? std::vector<std::string>() : control_tokens());
    CallGrammarOptions options;
    options.choice = round % 3 == 0 ? ToolChoice::kAuto : ToolChoice::kRequired;
    if (round % 4 != 0) options.named = "fetch_it";
    ASSERT_TRUE(reads.make(*format, *tools, options).ok());
    for (int i = 0; i < 8; ++i) {
      const std::string text = random_answer(reads, walk);
      const bool whole = reads.matcher().is_complete();
      const Answer answer = parse_answer(format, tools, text);
      SCOPED_TRACE(text);
      if (whole && options.choice == ToolChoice::kRequired) {
        ASSERT_GE(answer.calls.size(), 1U) << (answer.faults.empty() ? "" : answer.faults[0].what);
        ASSERT_TRUE(answer.faults.empty()) << answer.faults[0].what;
      }
      for (const Call& call : answer.calls) {
        ++n_calls;
        ASSERT_TRUE(call.name == "fetch_it" || call.name == "b") << call.name;
        if (call.name == "b") {
          ASSERT_TRUE(call.arguments == "{}" || call.arguments == "{ }") << call.arguments;
        } else {
          ASSERT_TRUE((*is_valid)(call.arguments)) << call.arguments << "\n" << schema;
        }
      }
    }
  }
  EXPECT_GT(n_calls, gen::test::kSanitized ? 3 : 30);
}

// Texts of pieces of marks and calls: whatever of them a grammar takes, the parser finds no call in
// it but those that the grammar checked.
TEST_P(EveryFormat, HasNoOtherCalls) {
  const auto format = format_named(GetParam());
  const auto tools = std::make_shared<const Tools>(Tools{test::tool("b", "")});
  const JsonValue none = JsonValue::object();
  JsonValue some = JsonValue::object();
  some.add("x", JsonValue::of_string("y"));
  std::vector<std::string> pieces = {"<think>", "</think>", "\n", " ", "b", "{", "a: ", "\""};
  for (const auto& [name, value] :
       {std::pair("b", none), std::pair("b", some), std::pair("c", none), std::pair("c", some)}) {
    const std::string text = test::call_text(*format, name, value);
    pieces.push_back(text);
    pieces.push_back(text.substr(1));
    for (const std::string& open : {format->section.open, format->section.close}) {
      if (!open.empty() && text.starts_with(open)) pieces.push_back(text.substr(open.size()));
    }
    for (const std::string& open : format->openings) pieces.push_back(open);
    for (const Part& part : format->call) pieces.push_back(part.text);
    pieces.push_back(text.substr(0, text.size() / 2));
    pieces.push_back(text.substr(text.size() / 2));
    for (const Marks& marks : format->reasoning) pieces.push_back(marks.open);
    for (const Marks& marks : format->reasoning) pieces.push_back(marks.close);
  }
  std::string begin;
  if (format->messages) {
    const Messages& messages = *format->messages;
    const std::string& start = messages.starts[0];
    begin = messages.text_header;
    if (begin.starts_with(start)) begin.erase(0, start.size());
    const bool written = messages.text_header.starts_with(start);
    const std::string next =
        (messages.ends.empty() ? "" : messages.ends[0]) + start + (written ? "" : "assistant");
    pieces.push_back(next);
    for (const char* name : {"b", "c"}) {
      pieces.push_back(next + test::call_text(*format, name, none));
      pieces.push_back(next + test::call_text(*format, name, some));
    }
    for (const std::string& mark : messages.starts) pieces.push_back(mark);
    for (const std::string& mark : messages.ends) pieces.push_back(mark);
    pieces.push_back(messages.header_end);
  }
  std::erase(pieces, "");
  test::Random random(3);
  size_t n_calls = 0;
  for (const ToolChoice choice : {ToolChoice::kNone, ToolChoice::kAuto}) {
    for (const bool controls : {false, true}) {
      CallReader reads(controls ? control_tokens() : std::vector<std::string>());
      CallGrammarOptions options;
      options.choice = choice;
      ASSERT_TRUE(reads.make(*format, *tools, options).ok());
      for (int round = 0; round < 16; ++round) {
        std::string text = begin;
        for (int i = 0; i < 30; ++i) {
          const std::string more = text + pieces[random.below(pieces.size())];
          if (reads.taken(more) == more.size()) text = more;
        }
        const Answer answer = parse_answer(format, tools, text);
        n_calls += answer.calls.size();
        for (const Call& call : answer.calls) {
          ASSERT_EQ(choice, ToolChoice::kAuto) << text;
          ASSERT_EQ(call.name, "b") << text;
          ASSERT_EQ(call.arguments, "{}") << text;
        }
      }
    }
  }
  EXPECT_GT(n_calls, 3U);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& format : call_formats()) all.push_back(format->name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(CallGrammar, EveryFormat, testing::ValuesIn(names()), [](const auto& of) {
  std::string name = of.param;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace gen::calls

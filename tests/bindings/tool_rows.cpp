// SPDX-License-Identifier: Apache-2.0
// See tool_rows.h.
#include "tool_rows.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <generate/generate.hpp>

namespace {

using Json = nlohmann::ordered_json;

// Each language has functions of these names: the sum; a failure, "no"; the text itself; and one
// that cancels the agent, waits until it is told to stop, and answers "told".
struct Tool {
  const char* name;
  const char* schema;
};
const std::vector<Tool> kTools = {
    {"add",
     R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},)"
     R"( "required": ["a", "b"]})"},
    {"fail", ""},
    {"echo",
     R"({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})"},
    {"stop", ""}};

struct ToolCase {
  const char* id;
  const char* name;
  const char* arguments;
  const char* output;
  bool is_error;
};

struct StepCase {
  std::string output;
  const char* text;
  int tokens;  // bytes, since there is no tokenizer
  std::vector<ToolCase> calls;
  std::vector<std::pair<int, const char*>> faults;
};

enum class End { kFinished, kOpen, kCancelled };

struct Row {
  const char* name;
  std::vector<std::pair<const char*, const char*>> options;
  std::vector<StepCase> steps;
  End end;
  const char* stop_reason;
  const char* final_output;
  int total_tokens;
};

const char* const kMarked = "No: <tool_call>\n{\"name\": \"add\", \"arguments\": [}\n</tool_call>";
const char* const kWrong = R"({"name":"gone","arguments":{}}{"name":"add","arguments":{"a":1}})"
                           R"({"name":"add","arguments":{"a":1,"b":"x"}})";
const char* const kStops =
    R"({"name":"stop","arguments":{}}{"name":"echo","arguments":{"text":"x"}})";
const char* const kAdds = R"(Adding. {"name":"add","arguments":{"a":1,"b":1}})";
const char* const kEcho = R"({"name":"echo","arguments":{"text":""}})";

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"one call",
       {},
       {{R"({"name":"add","arguments":{"a":2,"b":3}})",
         "",
         40,
         {{"call_0", "add", R"({"a": 2, "b": 3})", "5", false}},
         {}},
        {"It is 5.", "It is 5.", 8, {}, {}}},
       End::kFinished,
       "no_tools",
       "It is 5.",
       48},
      {"calls of one answer, on threads, in two forms, with text around them, and a failure",
       {{"tool_threads", "2"}},
       {{"Both: {\"name\":\"add\",\"arguments\":{\"a\":-1,\"b\":4}} "
         "{\"tool\":\"echo\",\"parameters\":{\"text\":\"Zo\xC3\xAB \xF0\x9F\x8E\x89\"}} now.",
         "Both:   now.",
         102,
         {{"call_0", "add", R"({"a": -1, "b": 4})", "3", false},
          {"call_1", "echo", "{\"text\": \"Zo\xC3\xAB \xF0\x9F\x8E\x89\"}",
           "Zo\xC3\xAB \xF0\x9F\x8E\x89", false}},
         {}},
        {R"({"name":"fail","arguments":{}}{"name":"echo","arguments":{"text":"on"}})",
         "",
         71,
         {{"call_2", "fail", "{}", "no", true},
          {"call_3", "echo", R"({"text": "on"})", "on", false}},
         {}},
        {"Done.", "Done.", 5, {}, {}}},
       End::kFinished,
       "no_tools",
       "Done.",
       178},
      {"what begins like a call and is none",
       {{"call_format", "hermes"}},
       {{kMarked, kMarked, 60, {}, {{4, "the arguments of a call are no object"}}}},
       End::kFinished,
       "no_tools",
       kMarked,
       60},
      {"an unknown tool and wrong arguments",
       {},
       {{kWrong,
         "",
         106,
         {{"call_0", "gone", "{}", "tool \"gone\" not found", true},
          {"call_1", "add", R"({"a": 1})", "arguments of tool \"add\": \"b\" is missing", true},
          {"call_2", "add", R"({"a": 1, "b": "x"})",
           "arguments of tool \"add\": they do not fit its schema at byte 11, member \"b\": \"x\"}",
           true}},
         {}},
        {"Sorry.", "Sorry.", 6, {}, {}}},
       End::kFinished,
       "no_tools",
       "Sorry.",
       112},
      {"a budget that is spent before the tools of the second answer",
       {{"max_tokens", "60"}},
       {{kEcho, "", 39, {{"call_0", "echo", R"({"text": ""})", "", false}}, {}},
        {kAdds,
         "Adding.",
         48,
         {{"call_1", "add", R"({"a": 1, "b": 1})", "not run: the budget of tokens is spent", true}},
         {}}},
       End::kFinished,
       "max_tokens",
       kAdds,
       87},
      {"a cancel in the second step",
       {},
       {{kEcho, "", 39, {{"call_0", "echo", R"({"text": ""})", "", false}}, {}},
        {kStops,
         "",
         70,
         {{"call_1", "stop", "{}", "told", false},
          {"call_2", "echo", R"({"text": "x"})", "not run: the run was cancelled", true}},
         {}}},
       End::kCancelled,
       "cancelled",
       kStops,
       109},
      {"as many steps as are allowed",
       {{"max_steps", "1"}},
       {{kEcho, "", 39, {{"call_0", "echo", R"({"text": ""})", "", false}}, {}}},
       End::kFinished,
       "max_steps",
       kEcho,
       39},
      {"an error that ends the run",
       {{"stop_on_tool_error", "1"}},
       {{R"({"name":"fail","arguments":{}})", "", 30, {{"call_0", "fail", "{}", "no", true}}, {}}},
       End::kFinished,
       "tool_error",
       R"({"name":"fail","arguments":{}})",
       30},
      {"a run that can go on",
       {},
       {{kEcho, "", 39, {{"call_0", "echo", R"({"text": ""})", "", false}}, {}}},
       End::kOpen,
       "",
       kEcho,
       39}};
  return kRows;
}

Json record_of(const Row& row) {
  Json steps = Json::array();
  for (const StepCase& step : row.steps) {
    Json calls = Json::array();
    Json results = Json::array();
    Json faults = Json::array();
    for (const ToolCase& call : step.calls) {
      calls.push_back(
          {{"id", call.id}, {"name", call.name}, {"arguments", Json::parse(call.arguments)}});
      results.push_back(
          {{"tool_call_id", call.id}, {"output", call.output}, {"is_error", call.is_error}});
    }
    for (const auto& [at, what] : step.faults) faults.push_back({{"at", at}, {"what", what}});
    steps.push_back({{"step", steps.size() + 1},
                     {"model_output", step.output},
                     {"text", step.text},
                     {"reasoning", ""},
                     {"calls", std::move(calls)},
                     {"results", std::move(results)},
                     {"faults", std::move(faults)},
                     {"tokens", step.tokens}});
  }
  return {{"steps", std::move(steps)},
          {"finished", row.end == End::kFinished},
          {"final_output", row.final_output},
          {"total_tokens", row.total_tokens},
          {"stop_reason", row.stop_reason}};
}

// How each step ends: 0 and 1 are what it says of the run, -11 is GEN_ERROR_CANCELLED.
Json steps_of(const Row& row) {
  Json steps = Json::array();
  for (const StepCase& step : row.steps) {
    const bool last = &step == &row.steps.back();
    int ends = last && row.end == End::kFinished ? 1 : 0;
    if (last && row.end == End::kCancelled) ends = GEN_ERROR_CANCELLED;
    steps.push_back({{"output", step.output}, {"ends", ends}});
  }
  return steps;
}

void run(const Json& row) {
  gen::Agent* running = nullptr;
  gen::Tools tools;
  const std::vector<gen::Tools::Function> functions = {
      [](const gen::ToolCall& call) {
        const Json arguments = Json::parse(call.arguments);
        return std::to_string(arguments.at("a").get<int>() + arguments.at("b").get<int>());
      },
      [](const gen::ToolCall&) -> std::string { throw std::runtime_error("no"); },
      [](const gen::ToolCall& call) {
        return Json::parse(call.arguments).at("text").get<std::string>();
      },
      [&](const gen::ToolCall& call) {
        running->cancel();
        while (!call.stopped()) {
        }
        return std::string("told");
      }};
  for (size_t i = 0; i < kTools.size(); ++i) {
    tools.add(kTools[i].name, "", kTools[i].schema, functions[i]);
  }
  gen::AgentOptions options;
  for (const auto& [key, value] : row.at("options").items()) options.set(key, value);
  gen::Agent agent(tools, options);
  running = &agent;
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error("tools, " + row.at("name").get<std::string>() + ": " + what);
  };
  for (const Json& step : row.at("steps")) {
    int ends = 0;
    try {
      ends = agent.step(step.at("output").get<std::string>()) ? 1 : 0;
    } catch (const gen::Error& error) {
      ends = error.code();
    }
    if (ends != step.at("ends")) fail("a step ended with " + std::to_string(ends));
  }
  const Json record = Json::parse(agent.describe());
  if (record != row.at("record")) fail("the record is " + record.dump(1));
}

}  // namespace

nlohmann::ordered_json tool_rows() {
  Json functions = Json::object();
  for (const Tool& tool : kTools) functions[tool.name] = tool.schema;
  Json all = Json::array();
  for (const Row& row : rows()) {
    Json options = Json::object();
    for (const auto& [key, value] : row.options) options[key] = value;
    all.push_back({{"name", row.name},
                   {"options", std::move(options)},
                   {"steps", steps_of(row)},
                   {"record", record_of(row)}});
    run(all.back());
  }
  return {{"functions", std::move(functions)}, {"rows", std::move(all)}};
}

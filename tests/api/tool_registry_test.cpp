// SPDX-License-Identifier: Apache-2.0
// Registries of tools, calls found in texts, and results as JSON. Expected values are those of the
// specification (registry, parser, form of results) or of JSON Schema.
#include <atomic>
#include <thread>

#include "agent_world.h"

namespace gen {
namespace {

const gen_status kBad = GEN_ERROR_INVALID_ARGUMENT;

class ToolRegistry : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(gen_tool_registry_new(&registry_, &error_), GEN_OK);
    tool_.run = [](const gen_tool_call& call, gen_tool_reply* reply) {
      return write(reply, std::string("got ") + call.arguments);
    };
  }
  void TearDown() override { gen_tool_registry_free(registry_); }
  gen_status add(const char* name, const char* schema = "") {
    return gen_tool_registry_add(registry_, name, "what it does", schema, run_tool, &tool_,
                                 &error_);
  }
  json called(const char* name, const std::string& arguments, const char* id = "c1") {
    std::string text(1 << 16, '\0');
    size_t n = 0;
    EXPECT_EQ(gen_tool_registry_call(registry_, id, name, arguments.data(), arguments.size(),
                                     text.data(), text.size(), &n, &error_),
              GEN_OK)
        << error_.message;
    return json::parse(text.substr(0, n));
  }
  static json result(const char* id, const std::string& output, bool is_error) {
    return {{"tool_call_id", id}, {"output", output}, {"is_error", is_error}};
  }
  template <typename F>
  std::string text_of(F call) {
    size_t n = 0;
    EXPECT_EQ(call(nullptr, 0, &n), GEN_OK) << error_.message;
    std::string text(n + 1, '?');
    EXPECT_EQ(call(text.data(), n, &n), GEN_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(call(text.data(), text.size(), &n), GEN_OK) << error_.message;
    text.pop_back();
    return text;
  }
  std::string described() {
    return text_of([&](char* buf, size_t capacity, size_t* n) {
      return gen_tool_registry_describe(registry_, buf, capacity, n, &error_);
    });
  }
  json parsed(const char* format, const std::string& text) {
    return json::parse(text_of([&](char* buf, size_t capacity, size_t* n) {
      return gen_tool_calls_parse(format, text.data(), text.size(), buf, capacity, n, &error_);
    }));
  }

  gen_error error_{};
  gen_tool_registry* registry_ = nullptr;
  TestTool tool_;
};

TEST_F(ToolRegistry, AddsAndDescribes) {
  EXPECT_EQ(described(), "[]");
  ASSERT_EQ(add("weather", kText), GEN_OK) << error_.message;
  ASSERT_EQ(add("clock", nullptr), GEN_OK) << error_.message;
  EXPECT_EQ(gen_tool_registry_count(registry_), 2U);
  const json all = json::parse(described());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("function").at("name"), "clock");  // sorted
  EXPECT_EQ(all[1], json::parse(R"({"type": "function", "function": {"name": "weather",
    "description": "what it does", "parameters": {"type": "object",
    "properties": {"text": {"type": "string"}}, "required": ["text"]}}})"));
  EXPECT_EQ(json::parse(text_of([&](char* buf, size_t capacity, size_t* n) {
              return gen_tool_registry_get(registry_, "weather", buf, capacity, n, &error_);
            })),
            all[1]);
  ASSERT_EQ(gen_tool_registry_remove(registry_, "clock", &error_), GEN_OK);
  EXPECT_EQ(gen_tool_registry_count(registry_), 1U);
  EXPECT_EQ(called("clock", ""), result("c1", "tool \"clock\" not found", true));
}

TEST_F(ToolRegistry, RefusesWhatIsNoTool) {
  ASSERT_EQ(add("known"), GEN_OK);
  const struct {
    const char *name, *schema, *said;
  } cases[] = {
      {"", "", "empty"},
      {"known", "", "\"known\" is there already"},
      {"a b", "", "a b"},
      {"schema", "{", "schema"},
      {"schema", "[]", "schema"},
      {"schema", R"({"type": "objekt"})", "schema"},
      {"schema", R"({"type": "object", "properties": {"a": {"pattern": "("}}})", "/properties/a"},
      {"schema", "{\"a\": \"\xff\"}", "UTF-8"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(add(one.name, one.schema), kBad) << one.schema;
    EXPECT_NE(std::string(error_.message).find(one.said), std::string::npos) << error_.message;
    EXPECT_EQ(std::string(error_.message).find('\n'), std::string::npos) << error_.message;
  }
  EXPECT_EQ(gen_tool_registry_add(registry_, "x", "", "", nullptr, nullptr, &error_), kBad);
  EXPECT_NE(std::string(error_.message).find("\"x\""), std::string::npos) << error_.message;
  EXPECT_EQ(gen_tool_registry_add(nullptr, "x", "", "", run_tool, nullptr, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_add(registry_, nullptr, "", "", run_tool, nullptr, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_count(registry_), 1U);
}

// Schemas that branch at each reference are looked through only so far.
TEST_F(ToolRegistry, BranchingSchemasEnd) {
  const std::string parts = R"("d8": {"type": "object"})";
  for (const char* all : {"allOf", "anyOf"}) {
    std::string definitions = parts;
    for (int i = 7; i >= 0; --i) {
      const std::string one = "{\"$ref\": \"#/$defs/d" + std::to_string(i + 1) + "\"}";
      std::string many = one;
      for (int k = 1; k < 20; ++k) many += ", " + one;
      definitions += ", \"d" + std::to_string(i) + "\": {\"" + all + "\": [" + many + "]}";
    }
    const std::string name = std::string("tool_") + all;
    const gen_status added =
        add(name.c_str(), ("{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": "
                           "\"#/$defs/d0\"}}, \"$defs\": {" +
                           definitions + "}, \"" + all + "\": [{\"$ref\": \"#/$defs/d0\"}]}")
                              .c_str());
    if (added != GEN_OK) continue;  // a grammar's own limit
    EXPECT_EQ(called(name.c_str(), R"({"a": {}})").at("is_error"), false);
  }
}

TEST_F(ToolRegistry, CallsAreResults) {
  ASSERT_EQ(add("say", kText), GEN_OK);
  ASSERT_EQ(add("free"), GEN_OK);
  EXPECT_EQ(called("say", R"({"text": "a"})"), result("c1", R"(got {"text": "a"})", false));
  EXPECT_EQ(called("free", "", nullptr), result("", "got {}", false));
  EXPECT_EQ(tool_.calls.size(), 2U);
  const struct {
    const char *arguments, *said;
  } cases[] = {
      {R"({})", "\"text\" is missing"},
      {R"({"text": 5})", "at byte 9, member \"text\": 5}"},
      {R"({"text": "a", "text": "b"})", "text"},
      {R"({"text": "a")", "arguments of tool \"say\""},
      {R"([1])", "no JSON object"},
      {"no", "arguments of tool \"say\""},
  };
  for (const auto& one : cases) {
    const json given = called("say", one.arguments);
    EXPECT_EQ(given.at("is_error"), true) << one.arguments;
    EXPECT_NE(given.at("output").get<std::string>().find(one.said), std::string::npos) << given;
  }
  EXPECT_EQ(tool_.calls.size(), 2U);
  // Through the references of a schema that a language made.
  ASSERT_EQ(add("refers", R"({"$schema": "http://json-schema.org/draft-04/schema#",
                              "allOf": [{"$ref": "#/definitions/c1"}], "definitions": {"c1": {
                                "type": "object", "properties": {"a": {"type": "integer"}},
                                "required": ["a"]}}})"),
            GEN_OK)
      << error_.message;
  EXPECT_EQ(called("refers", "{}"),
            result("c1", "arguments of tool \"refers\": \"a\" is missing", true));
  EXPECT_EQ(called("refers", R"({"a": 1})").at("is_error"), false);
  EXPECT_EQ(tool_.calls.size(), 3U);
  // Any spelling of JSON, and members in any order.
  EXPECT_EQ(called("say", "{ \"other\" : [ 1e2 ],\n\t\"text\":\"\\u0061\" }").at("is_error"),
            false);
  tool_.run = [](const gen_tool_call&, gen_tool_reply*) { return 1; };
  EXPECT_EQ(called("free", ""), result("c1", "tool \"free\" failed", true));
  tool_.run = [](const gen_tool_call&, gen_tool_reply*) -> int { throw 5; };
  EXPECT_EQ(called("free", ""), result("c1", "tool \"free\" threw: an exception", true));
  tool_.run = [&](const gen_tool_call&, gen_tool_reply* reply) {
    EXPECT_EQ(gen_tool_reply_write(reply, "a\xff", 2, &error_), kBad);
    EXPECT_EQ(gen_tool_reply_write(reply, nullptr, 2, &error_), kBad);
    EXPECT_EQ(gen_tool_reply_write(nullptr, "a", 1, &error_), kBad);
    EXPECT_EQ(gen_tool_reply_stopped(reply), 0);
    EXPECT_EQ(gen_tool_reply_write(reply, "two ", 4, &error_), GEN_OK);
    return gen_tool_reply_write(reply, "parts", GEN_NUL_TERMINATED, &error_) == GEN_OK ? 0 : 1;
  };
  EXPECT_EQ(called("free", ""), result("c1", "two parts", false));
  EXPECT_EQ(gen_tool_reply_stopped(nullptr), 0);
}

TEST_F(ToolRegistry, CallsFromManyThreadsWhileToolsComeAndGo) {
  std::atomic<int> n{0};
  TestTool counts;
  counts.run = [&](const gen_tool_call&, gen_tool_reply* reply) {
    ++n;
    return write(reply, "ok");
  };
  std::vector<std::thread> threads;
  std::atomic<int> found{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "own" + std::to_string(t);
      for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(
            gen_tool_registry_add(registry_, name.c_str(), "", kText, run_tool, &counts, nullptr),
            GEN_OK);
        char text[256];
        size_t length = 0;
        const std::string other = "own" + std::to_string((t + i) % 4);
        ASSERT_EQ(gen_tool_registry_call(registry_, "", other.c_str(), R"({"text":""})",
                                         GEN_NUL_TERMINATED, text, sizeof text, &length, nullptr),
                  GEN_OK);
        found += std::string(text, length).find("\"ok\"") != std::string::npos ? 1 : 0;
        ASSERT_EQ(gen_tool_registry_remove(registry_, name.c_str(), nullptr), GEN_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n, found);
  EXPECT_EQ(gen_tool_registry_count(registry_), 0U);
}

TEST_F(ToolRegistry, FindsCallsInTexts) {
  EXPECT_EQ(parsed(nullptr, R"(Sure. {"name":"F","arguments":{"a":1}} Done.)"),
            json::parse(R"({"text": "Sure.  Done.", "reasoning": "", "faults": [],
              "calls": [{"id": "call_0", "name": "F", "arguments": {"a": 1}}]})"));
  EXPECT_EQ(parsed("json", R"({"tool":"a","parameters":{}} and {"name":"b","arguments":{}})"),
            json::parse(R"({"text": "and", "reasoning": "", "faults": [], "calls": [
              {"id": "call_0", "name": "a", "arguments": {}},
              {"id": "call_1", "name": "b", "arguments": {}}]})"));
  for (const char* const text :
       {" no calls ", "", "{", "{\"a\": {}", R"({"name": "f", "arguments": null})"}) {
    const json given = parsed("", text);
    EXPECT_EQ(given.at("text"), text);
    EXPECT_EQ(given.at("calls"), json::array());
  }
  EXPECT_EQ(parsed("hermes", "<think>\nso\n</think>\n\nyes" + call_of("f", "x")),
            json::parse(R"({"text": "yes", "reasoning": "so", "faults": [], "calls": [
              {"id": "call_0", "name": "f", "arguments": {"text": "x"}}]})"));
  // What begins like a call and is none stays in the text, and a fault says why.
  const std::string broken = "a <tool_call>\n{\"name\": \"f\", \"arguments\": [}\n</tool_call>";
  EXPECT_EQ(parsed("hermes", broken).at("text"), broken);
  EXPECT_EQ(parsed("hermes", broken).at("faults").size(), 1U);
}

TEST_F(ToolRegistry, WritesResults) {
  const auto written = [&](const char* id, const char* output, int32_t is_error) {
    return text_of([&](char* buf, size_t capacity, size_t* n) {
      return gen_tool_result_format(id, output, GEN_NUL_TERMINATED, is_error, buf, capacity, n,
                                    &error_);
    });
  };
  EXPECT_EQ(written("call_0", "a \"b\"", 0),
            R"({"tool_call_id":"call_0","output":"a \"b\"","is_error":false})");
  EXPECT_EQ(written(nullptr, "", 5), R"({"tool_call_id":"","output":"","is_error":true})");
}

TEST_F(ToolRegistry, Arguments) {
  char buf[64];
  size_t n = 0;
  EXPECT_EQ(gen_tool_registry_new(nullptr, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_count(nullptr), 0U);
  EXPECT_EQ(gen_tool_registry_remove(nullptr, "x", &error_), kBad);
  EXPECT_EQ(gen_tool_registry_remove(registry_, nullptr, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_remove(registry_, "x", &error_), kBad);
  EXPECT_STREQ(error_.message, "tool \"x\" not found");
  EXPECT_EQ(gen_tool_registry_describe(nullptr, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_describe(registry_, buf, 64, nullptr, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_get(nullptr, "x", buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_get(registry_, nullptr, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_get(registry_, "x", buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_registry_get(registry_, "x", buf, 64, nullptr, &error_), kBad);
  const auto call = [&](gen_tool_registry* registry, const char* id, const char* name,
                        const char* arguments, size_t len, char* out, size_t capacity, size_t* m) {
    return gen_tool_registry_call(registry, id, name, arguments, len, out, capacity, m, &error_);
  };
  EXPECT_EQ(call(nullptr, "", "x", "", 0, buf, 64, &n), kBad);
  EXPECT_EQ(call(registry_, "", nullptr, "", 0, buf, 64, &n), kBad);
  EXPECT_EQ(call(registry_, "", "x", nullptr, 1, buf, 64, &n), kBad);
  EXPECT_EQ(call(registry_, "", "x", "", 0, nullptr, 0, &n), kBad);
  EXPECT_EQ(call(registry_, "", "x", "", 0, buf, 64, nullptr), kBad);
  EXPECT_EQ(call(registry_, "\xff", "x", "", 0, buf, 64, &n), kBad);
  EXPECT_EQ(call(registry_, "", "x", "\xff", 1, buf, 64, &n), kBad);
  EXPECT_EQ(call(registry_, "", "x", "", 0, buf, 5, &n), GEN_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(gen_tool_calls_parse(nullptr, nullptr, 0, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_calls_parse("no_such", "a", 1, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_calls_parse("", "\xff", 1, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_calls_parse("", "a", 1, buf, 64, nullptr, &error_), kBad);
  EXPECT_EQ(gen_tool_result_format("", nullptr, 0, 0, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_result_format("", "\xff", 1, 0, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_result_format("\xff", "", 0, 0, buf, 64, &n, &error_), kBad);
  EXPECT_EQ(gen_tool_result_format("", "", 0, 0, buf, 64, nullptr, &error_), kBad);
  gen_tool_registry_free(nullptr);

  gen_agent_options* options = nullptr;
  EXPECT_EQ(gen_agent_options_new(nullptr, &error_), kBad);
  ASSERT_EQ(gen_agent_options_new(&options, &error_), GEN_OK);
  EXPECT_EQ(gen_agent_options_set(nullptr, "system", "", &error_), kBad);
  EXPECT_EQ(gen_agent_options_set(options, nullptr, "", &error_), kBad);
  EXPECT_EQ(gen_agent_options_set(options, "system", nullptr, &error_), kBad);
  EXPECT_EQ(gen_agent_options_set(options, "system", "\xff", &error_), kBad);
  EXPECT_EQ(gen_agent_options_set(options, "no_such", "", &error_), kBad);
  EXPECT_EQ(gen_agent_options_set(options, "max_tokens", "-1", &error_), kBad);
  EXPECT_EQ(gen_agent_options_set(options, "tool_threads", "1025", &error_), kBad);
  EXPECT_EQ(gen_agent_options_set_sampling(nullptr, nullptr, &error_), kBad);
  EXPECT_EQ(gen_agent_options_set_sampling(options, nullptr, &error_), GEN_OK);
  EXPECT_EQ(gen_agent_options_describe(nullptr, nullptr, 0, &n, &error_), kBad);
  EXPECT_EQ(gen_agent_options_describe(options, nullptr, 0, nullptr, &error_), kBad);
  EXPECT_EQ(gen_agent_options_describe(options, buf, 64, &n, &error_), GEN_ERROR_OUT_OF_RANGE);
  EXPECT_GT(n, 64U);
  gen_agent_options_free(options);
  gen_agent_options_free(nullptr);
}

}  // namespace
}  // namespace gen

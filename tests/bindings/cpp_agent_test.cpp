// SPDX-License-Identifier: Apache-2.0
// Tools and agents of generate.hpp: functions of the program are kept, their exceptions are told to
// the model, and those of a callback leave the run.
#include <gtest/gtest.h>

#include <generate/generate.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

constexpr const char* kCity =
    R"({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})";

gen::Tools weather() {
  gen::Tools tools;
  std::string sky = "sunny in ";
  tools.add("weather", "The weather of a city.", kCity, [sky](const gen::ToolCall& call) {
    EXPECT_FALSE(call.stopped());
    return sky + std::string(call.arguments);
  });
  tools.add("broken", "", "",
            [](const gen::ToolCall&) -> std::string { throw std::runtime_error("it broke"); });
  return tools;
}

TEST(CppAgent, ToolsAreFunctions) {
  gen::Tools tools = weather();
  EXPECT_EQ(tools.size(), 2U);
  EXPECT_NE(tools.describe("weather").find("The weather of a city."), std::string::npos);
  EXPECT_EQ(tools.call("weather", R"({"city": "Oslo"})", "c1"),
            R"({"tool_call_id":"c1","output":"sunny in {\"city\": \"Oslo\"}","is_error":false})");
  EXPECT_EQ(tools.call("broken", ""), R"({"tool_call_id":"","output":"it broke","is_error":true})");
  EXPECT_THROW(tools.add("weather", "", "", nullptr), gen::Error);
  EXPECT_EQ(tools.remove("broken").size(), 1U);
  EXPECT_EQ(gen::format_tool_result("a", "b"),
            R"({"tool_call_id":"a","output":"b","is_error":false})");
  EXPECT_NE(gen::parse_tool_calls(R"({"name": "f", "arguments": {}})").find("call_0"),
            std::string::npos);
}

TEST(CppAgent, StepsWithGivenOutputs) {
  gen::Agent made = [] {
    const gen::Tools tools = weather();
    return gen::Agent(tools, gen::AgentOptions().set("system", "Be brief."));
  }();
  gen::Agent agent = std::move(made);  // its functions are there as long as it
  agent.chat().add("user", "Is it warm?");
  EXPECT_FALSE(agent.step(R"({"name": "weather", "arguments": {"city": "Rome"}})"));
  EXPECT_TRUE(agent.step("It is sunny."));
  EXPECT_NE(agent.describe().find("sunny in"), std::string::npos);
  EXPECT_NE(agent.chat().describe().find("Be brief."), std::string::npos);
  agent.reset();
  EXPECT_EQ(agent.describe().find("sunny"), std::string::npos);
  EXPECT_THROW(agent.run("No model"), gen::Error);
}

TEST(CppAgent, RunsAndSupervises) {
  const gen::Model model(GEN_SOURCE_DIR "/examples/demo_model/story.gguf");
  const gen::Generator generator(model);
  gen::Tools tools;
  gen::AgentOptions options;
  options.sampling(gen::Sampling().temperature(0).max_new_tokens(4));
  gen::Agent agent(generator, tools, options);
  agent.chat().use_template("chatml");
  int32_t steps = 0;
  const gen::Result result = agent.run(
      "Hi", [&](const gen::AgentEvent& event) { steps += event.kind == GEN_AGENT_STEP_ENDED; });
  EXPECT_EQ(steps, 1);
  EXPECT_FALSE(result.text().empty());
  agent.chat().add("user", "And then?");
  EXPECT_TRUE(agent.step());
  EXPECT_THROW(agent.run("Hi", [](const gen::AgentEvent&) { throw std::logic_error("mine"); }),
               std::logic_error);
  EXPECT_THROW(agent.run("Hi", [](const gen::AgentEvent&) { return false; }), gen::Error);
  agent.cancel();
  EXPECT_THROW(agent.run("Hi"), gen::Error);

  gen::Agent other(generator, tools, options);
  gen::Supervisor supervisor;
  supervisor.add("first", "", agent).budget(100);
  EXPECT_FALSE(supervisor.run("Hi").text().empty());
  EXPECT_NE(supervisor.describe().find("\"budget\":100"), std::string::npos);
  EXPECT_THROW(supervisor.add("first", "", other), gen::Error);
}

}  // namespace

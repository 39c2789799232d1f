// SPDX-License-Identifier: Apache-2.0
// Agents stepped with the outputs of the caller's own model, and the arguments and statuses of all
// functions of agents.
#include "agent_world.h"

namespace gen {
namespace {

class AgentStepTest : public AgentWorld {
 protected:
  int32_t step(const std::string& output) {
    int32_t finished = -1;
    EXPECT_EQ(
        gen_agent_step(agent_, output.data(), output.size(), nullptr, nullptr, &finished, &error_),
        GEN_OK)
        << error_.message;
    return finished;
  }
  void begin_alone() {
    gen_agent_free(agent_);
    ASSERT_EQ(gen_agent_new(nullptr, registry_, options_, &agent_, &error_), GEN_OK);
  }
};

// Expected values are those of the specification: RunStep parses, runs calls in order and finishes
// where there are none.
TEST_F(AgentStepTest, OutputsOfTheCallersModel) {
  begin_alone();
  ASSERT_EQ(gen_chat_add(gen_agent_chat(agent_), "user", "Go", 2, &error_), GEN_OK);
  EXPECT_EQ(step(R"(Sure. {"name":"echo","arguments":{"text":"1"}} Done.)"), 0);
  EXPECT_EQ(step(R"({"tool":"echo","parameters":{"text":"2"}})"
                 R"({"name":"gone","arguments":{}})"),
            0);
  EXPECT_EQ(step(" all {of} it "), 1);
  EXPECT_EQ(echo_.calls, (std::vector<std::string>{R"(echo call_0 {"text":"1"})",
                                                   R"(echo call_1 {"text":"2"})"}));
  const json record = described();
  EXPECT_EQ(record.at("steps").at(0).at("text"), "Sure.  Done.");
  EXPECT_EQ(record.at("steps").at(1).at("results").at(1).at("output"), "tool \"gone\" not found");
  EXPECT_EQ(record.at("steps").at(1).at("results").at(1).at("tool_call_id"), "call_2");
  EXPECT_EQ(record.at("steps").at(2).at("step"), 3);
  EXPECT_EQ(record.at("final_output"), " all {of} it ");
  EXPECT_EQ(record.at("stop_reason"), "no_tools");
  EXPECT_EQ(record.at("steps").at(2).at("tokens"), 13);  // bytes
  EXPECT_EQ(messages().size(), 7U);
  EXPECT_EQ(step("again"), 1);  // a new run
  EXPECT_EQ(described().at("steps").size(), 1U);
}

TEST_F(AgentStepTest, LimitsHoldForSteps) {
  set("max_steps", "2");
  begin_alone();
  const std::string call = R"({"name":"echo","arguments":{"text":""}})";
  EXPECT_EQ(step(call), 0);
  EXPECT_EQ(step(call), 1);
  EXPECT_EQ(described().at("stop_reason"), "max_steps");
  set("stop_on_tool_error", "1");
  begin_alone();
  EXPECT_EQ(step(R"({"name":"echo","arguments":{}})"), 1);
  EXPECT_EQ(described().at("stop_reason"), "tool_error");
  EXPECT_EQ(described().at("steps").at(0).at("results").at(0).at("output"),
            "arguments of tool \"echo\": \"text\" is missing");
  set("max_tokens", "40");
  begin_alone();
  EXPECT_EQ(step(call), 0);  // 39 bytes
  EXPECT_EQ(step("ab"), 1);
  EXPECT_EQ(described().at("stop_reason"), "max_tokens");
  EXPECT_EQ(described().at("total_tokens"), call.size() + 2);
}

TEST_F(AgentStepTest, OutputsAreReadInTheFormatThatIsAsked) {
  set("call_format", "hermes");
  begin_alone();
  EXPECT_EQ(step(R"({"name":"echo","arguments":{"text":""}})"), 1);
  EXPECT_EQ(step(call_of("echo", "a")), 0);
  EXPECT_EQ(gen_agent_options_set(options_, "call_format", "no_such", &error_),
            GEN_ERROR_INVALID_ARGUMENT);
  set("call_format", "auto");
  begin({"Done."});  // with a model, its template's
  EXPECT_EQ(step(call_of("echo", "b")), 0);
  EXPECT_EQ(echo_.calls.size(), 2U);
  int32_t finished = 0;
  ASSERT_EQ(gen_agent_step(agent_, nullptr, 0, nullptr, nullptr, &finished, &error_), GEN_OK)
      << error_.message;
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(described().at("final_output"), "Done.");
}

TEST_F(AgentStepTest, Arguments) {
  gen_agent* none = nullptr;
  size_t n = 0;
  int32_t finished = 0;
  const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
  EXPECT_EQ(gen_agent_new(generator_, nullptr, nullptr, &none, &error_), bad);
  EXPECT_EQ(gen_agent_new(generator_, registry_, nullptr, nullptr, &error_), bad);
  EXPECT_EQ(gen_agent_run(nullptr, "x", 1, nullptr, nullptr, nullptr, &error_), bad);
  EXPECT_EQ(gen_agent_step(nullptr, "x", 1, nullptr, nullptr, &finished, &error_), bad);
  EXPECT_EQ(gen_agent_describe(nullptr, nullptr, 0, &n, &error_), bad);
  EXPECT_EQ(gen_agent_reset(nullptr, &error_), bad);
  EXPECT_EQ(gen_agent_chat(nullptr), nullptr);
  gen_agent_cancel(nullptr);
  gen_agent_free(nullptr);
  begin({"Done."});
  EXPECT_EQ(gen_agent_run(agent_, "\xff", 1, nullptr, nullptr, nullptr, &error_), bad);
  EXPECT_EQ(gen_agent_step(agent_, "\xff", 1, nullptr, nullptr, &finished, &error_), bad);
  EXPECT_EQ(gen_agent_step(agent_, "x", 1, nullptr, nullptr, nullptr, &error_), bad);
  EXPECT_EQ(gen_agent_describe(agent_, nullptr, 0, nullptr, &error_), bad);
  EXPECT_EQ(messages().size(), 0U);
  gen_chat_free(gen_agent_chat(agent_));  // does nothing
  EXPECT_EQ(run("Go"), GEN_OK) << error_.message;
  begin_alone();
  EXPECT_EQ(gen_agent_run(agent_, "x", 1, nullptr, nullptr, nullptr, &error_), GEN_ERROR_STATE);
  EXPECT_EQ(gen_agent_step(agent_, nullptr, 0, nullptr, nullptr, &finished, &error_),
            GEN_ERROR_STATE);
}

// Of a model without a tokenizer there are no conversations.
TEST_F(AgentStepTest, NeedsATokenizer) {
  gen_forward forward{};
  forward.struct_size = sizeof forward;
  forward.forward = [](void*, const gen_forward_batch*, float*, float*, gen_error*) -> gen_status {
    return GEN_OK;
  };
  gen_model_config* config = nullptr;
  gen_model* model = nullptr;
  gen_generator* generator = nullptr;
  gen_agent* agent = nullptr;
  ASSERT_EQ(gen_model_config_new(&config, &error_), GEN_OK);
  ASSERT_EQ(gen_model_config_set_vocab_size(config, 8, &error_), GEN_OK);
  ASSERT_EQ(gen_model_config_set_max_seq_len(config, 64, &error_), GEN_OK);
  ASSERT_EQ(gen_model_new_custom(&forward, config, nullptr, &model, &error_), GEN_OK);
  ASSERT_EQ(gen_create(model, nullptr, &generator, &error_), GEN_OK);
  EXPECT_EQ(gen_agent_new(generator, registry_, nullptr, &agent, &error_), GEN_ERROR_UNSUPPORTED);
  EXPECT_EQ(agent, nullptr);
  gen_free(generator);
  gen_model_free(model);
  gen_model_config_free(config);
}

}  // namespace
}  // namespace gen

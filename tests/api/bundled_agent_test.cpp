// SPDX-License-Identifier: Apache-2.0
// The bundled model with a calculator and a lookup, from the question to the answer. Sums are those
// of this file, and what is looked up is its table.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace gen {
namespace {

using nlohmann::json;

constexpr const char* kModel = GEN_TEST_SOURCE_DIR "/examples/demo_model/story.gguf";
constexpr const char* kExpression = R"({"type": "object",
  "properties": {"expression": {"type": "string"}}, "required": ["expression"]})";
constexpr const char* kName = R"({"type": "object",
  "properties": {"name": {"type": "string"}}, "required": ["name"]})";

const std::map<std::string, std::string>& persons() {
  static const std::map<std::string, std::string> all = {{"Mia", R"({"age": 7})"},
                                                         {"Tom", R"({"city": "Rome"})"}};
  return all;
}

int answer(gen_tool_reply* reply, const std::string& text) {
  return gen_tool_reply_write(reply, text.data(), text.size(), nullptr) == GEN_OK ? 0 : 1;
}

/// Sums, differences and products of two whole numbers.
int calculate(void*, const gen_tool_call* call, gen_tool_reply* reply) {
  int a = 0;
  int b = 0;
  char op = '\0';
  char more = '\0';
  const std::string text = json::parse(call->arguments).at("expression");
  if (std::sscanf(text.c_str(), "%d %c %d%c", &a, &op, &b, &more) != 3) return 1;
  if (op != '+' && op != '-' && op != '*') return 1;
  return answer(reply, std::to_string(op == '+' ? a + b : op == '-' ? a - b : a * b));
}

int look_up(void*, const gen_tool_call* call, gen_tool_reply* reply) {
  const auto found = persons().find(json::parse(call->arguments).at("name"));
  return found == persons().end() ? 1 : answer(reply, found->second);
}

class BundledAgent : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(gen_model_load(kModel, nullptr, &model_, &error_), GEN_OK) << error_.message;
    ASSERT_EQ(gen_create(model_, nullptr, &generator_, &error_), GEN_OK);
    ASSERT_EQ(gen_tool_registry_new(&registry_, &error_), GEN_OK);
    ASSERT_EQ(gen_tool_registry_add(registry_, "calculator", "Computes an expression.", kExpression,
                                    calculate, nullptr, &error_),
              GEN_OK);
    ASSERT_EQ(gen_tool_registry_add(registry_, "lookup", "Looks up a person.", kName, look_up,
                                    nullptr, &error_),
              GEN_OK);
    gen_agent_options* options = nullptr;
    gen_sampling* sampling = nullptr;
    ASSERT_EQ(gen_agent_options_new(&options, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_set_temperature(sampling, 0, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, 100, &error_), GEN_OK);
    ASSERT_EQ(gen_agent_options_set_sampling(options, sampling, &error_), GEN_OK);
    ASSERT_EQ(gen_agent_new(generator_, registry_, options, &agent_, &error_), GEN_OK)
        << error_.message;
    gen_sampling_free(sampling);
    gen_agent_options_free(options);
  }
  void TearDown() override {
    gen_agent_free(agent_);
    gen_tool_registry_free(registry_);
    gen_free(generator_);
    gen_model_free(model_);
  }

  std::string ask(const char* question) {
    gen_result* result = nullptr;
    EXPECT_EQ(
        gen_agent_run(agent_, question, GEN_NUL_TERMINATED, nullptr, nullptr, &result, &error_),
        GEN_OK)
        << question << ": " << error_.message;
    if (result == nullptr) return "";
    std::string said = gen_result_text(result, nullptr);
    gen_result_free(result);
    return said;
  }
  /// Of the last run.
  json steps() { return run().at("steps"); }
  json run() {
    size_t n = 0;
    EXPECT_EQ(gen_agent_describe(agent_, nullptr, 0, &n, &error_), GEN_OK);
    std::string text(n + 1, '\0');
    EXPECT_EQ(gen_agent_describe(agent_, text.data(), text.size(), &n, &error_), GEN_OK);
    text.pop_back();
    return json::parse(text);
  }

  gen_error error_{};
  gen_model* model_ = nullptr;
  gen_generator* generator_ = nullptr;
  gen_tool_registry* registry_ = nullptr;
  gen_agent* agent_ = nullptr;
};

// One conversation: each question has its call, and the answer tells what the tool did.
TEST_F(BundledAgent, CallsToolsAndTellsWhatTheySay) {
  struct Case {
    const char* question;
    const char* tool;
    json arguments;
    const char* value;  // in the tool's output and in the answer
  };
  for (const Case& each : {
           Case{"What is 17 * 23?", "calculator", {{"expression", "17 * 23"}}, "391"},
           Case{"What is 412 plus 89?", "calculator", {{"expression", "412 + 89"}}, "501"},
           Case{"How old is Mia?", "lookup", {{"name", "Mia"}}, "7"},
           Case{"How much is 905 - 38?", "calculator", {{"expression", "905 - 38"}}, "867"},
           Case{"Where does Tom live?", "lookup", {{"name", "Tom"}}, "Rome"},
       }) {
    const std::string said = ask(each.question);
    EXPECT_NE(said.find(each.value), std::string::npos) << each.question << ": " << said;
    const json run = steps();
    ASSERT_EQ(run.size(), 2U) << each.question << ": " << run;
    ASSERT_EQ(run[0].at("calls").size(), 1U) << run;
    EXPECT_EQ(run[0]["calls"][0].at("name"), each.tool);
    EXPECT_EQ(run[0]["calls"][0].at("arguments"), each.arguments);
    const json& result = run[0].at("results").at(0);
    EXPECT_EQ(result.at("is_error"), false);
    EXPECT_NE(result.at("output").get<std::string>().find(each.value), std::string::npos);
    EXPECT_EQ(run[1].value("calls", json::array()), json::array());
  }
}

// What a full context cut is no final answer.
TEST_F(BundledAgent, AFullContextCutsAnAnswer) {
  gen_agent_free(agent_);
  agent_ = nullptr;
  gen_status status = GEN_ERROR_CONTEXT_FULL;
  for (int32_t context = 64; status == GEN_ERROR_CONTEXT_FULL && context < 1024; ++context) {
    gen_agent_free(agent_);
    gen_free(generator_);
    gen_model_free(model_);
    agent_ = nullptr;
    generator_ = nullptr;
    model_ = nullptr;
    gen_model_options* options = nullptr;
    ASSERT_EQ(gen_model_options_new(&options, &error_), GEN_OK);
    ASSERT_EQ(
        gen_model_options_set(options, "max_seq_len", std::to_string(context).c_str(), &error_),
        GEN_OK);
    ASSERT_EQ(gen_model_load(kModel, options, &model_, &error_), GEN_OK) << error_.message;
    gen_model_options_free(options);
    ASSERT_EQ(gen_create(model_, nullptr, &generator_, &error_), GEN_OK) << error_.message;
    ASSERT_EQ(gen_agent_new(generator_, registry_, nullptr, &agent_, &error_), GEN_OK);
    status = gen_agent_run(agent_, "What colour is the sky?", GEN_NUL_TERMINATED, nullptr, nullptr,
                           nullptr, &error_);
  }
  ASSERT_EQ(status, GEN_OK) << error_.message;
  EXPECT_EQ(run().at("stop_reason"), "max_tokens") << run();
}

TEST_F(BundledAgent, CallsNothingWhereNoToolHelps) {
  EXPECT_EQ(ask("What colour is the sky?"), "The sky is blue.");
  EXPECT_EQ(steps().size(), 1U);
}

}  // namespace
}  // namespace gen

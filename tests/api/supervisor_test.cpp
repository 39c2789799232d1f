// SPDX-License-Identifier: Apache-2.0
// Supervisors: the first agent gets the task, the others are its tools, and all share a budget.
#include <atomic>
#include <chrono>
#include <thread>

#include "agent_world.h"

namespace gen {
namespace {

const gen_status kBad = GEN_ERROR_INVALID_ARGUMENT;

std::string task_for(const std::string& agent, const std::string& task) {
  return "<tool_call>\n{\"name\": \"" + agent + "\", \"arguments\": {\"task\": \"" + task +
         "\"}}\n</tool_call>";
}

class SupervisorTest : public AgentWorld {
 protected:
  void SetUp() override {
    AgentWorld::SetUp();
    ASSERT_EQ(gen_supervisor_new(&supervisor_, &error_), GEN_OK);
    ASSERT_EQ(gen_tool_registry_new(&no_tools_, &error_), GEN_OK);
  }
  void TearDown() override {
    gen_supervisor_free(supervisor_);
    gen_agent_free(helper_);
    gen_tool_registry_free(no_tools_);
    AgentWorld::TearDown();
  }
  /// The first agent has no tools of its own, the helper has echo. Only the first one has the time
  /// limit.
  void make_both(const std::vector<std::string>& first, const std::vector<std::string>& helper,
                 const char* timeout_ms = "0") {
    script(&helper_answers_, helper);
    helper_ = make(&helper_answers_);
    set("tool_timeout_ms", timeout_ms);
    std::swap(registry_, no_tools_);
    begin(first);
    std::swap(registry_, no_tools_);
    ASSERT_EQ(gen_supervisor_add_agent(supervisor_, "lead", "", agent_, &error_), GEN_OK)
        << error_.message;
    ASSERT_EQ(gen_supervisor_add_agent(supervisor_, "helper", "It helps.", helper_, &error_),
              GEN_OK)
        << error_.message;
  }
  gen_status run_all(const char* task, Events* events = nullptr) {
    gen_result_free(result_);
    answers_.next = answers_.held = helper_answers_.next = helper_answers_.held = 0;
    return gen_supervisor_run(supervisor_, task, GEN_NUL_TERMINATED,
                              events != nullptr ? see : nullptr, events, &result_, &error_);
  }
  json all() { return filled(gen_supervisor_describe, supervisor_); }

  gen_supervisor* supervisor_ = nullptr;
  gen_tool_registry* no_tools_ = nullptr;
  gen_agent* helper_ = nullptr;
  Answers helper_answers_;
};

TEST_F(SupervisorTest, TheFirstAgentGivesTasksToTheOthers) {
  make_both({"Let me ask." + task_for("helper", "Count."), "It is three."},
            {call_of("echo", "x"), "Three."});
  Events events;
  ASSERT_EQ(run_all("How many?", &events), GEN_OK) << error_.message;
  EXPECT_STREQ(gen_result_text(result_, nullptr), "It is three.");
  EXPECT_EQ(echo_.calls.size(), 1U);
  EXPECT_NE(events.all.find("tool< 1.0 helper call_0"), std::string::npos) << events.all;
  const json record = all();
  EXPECT_EQ(record.at("budget"), 0);
  const json& lead = record.at("agents").at(0).at("agent");
  const json& helper = record.at("agents").at(1).at("agent");
  EXPECT_EQ(lead.at("steps").at(0).at("results").at(0).at("output"), "Three.");
  EXPECT_EQ(helper.at("final_output"), "Three.");
  EXPECT_EQ(record.at("spent"),
            lead.at("total_tokens").get<int>() + helper.at("total_tokens").get<int>());
  const json chat = filled(gen_chat_describe, gen_agent_chat(helper_));
  EXPECT_EQ(chat.at("messages").at(0).at("content"), "Count.");
  const json tools = filled(gen_chat_describe, gen_agent_chat(agent_)).at("tools");
  ASSERT_EQ(tools.size(), 1U);
  EXPECT_EQ(tools.at(0).at("function").at("description"), "It helps.");
  // Each task begins anew for the helper; the first agent remembers.
  ASSERT_EQ(run_all("Again?"), GEN_OK) << error_.message;
  EXPECT_EQ(filled(gen_chat_describe, gen_agent_chat(helper_)).at("messages").size(), 4U);
  EXPECT_EQ(messages().size(), 8U);
}

TEST_F(SupervisorTest, AllShareTheBudget) {
  make_both({task_for("helper", "Count."), "Never said."}, {call_of("echo", "x"), "Three."});
  const size_t first = answers_.tokens[0].size();
  const size_t second = helper_answers_.tokens[0].size();
  ASSERT_EQ(
      gen_supervisor_set_budget(supervisor_, static_cast<int64_t>(first + second) - 1, &error_),
      GEN_OK);
  ASSERT_EQ(run_all("How many?"), GEN_OK) << error_.message;
  EXPECT_TRUE(echo_.calls.empty());  // the helper's call would have been beyond it
  json record = all();
  EXPECT_EQ(record.at("spent"), first + second - 1);
  EXPECT_EQ(record.at("agents").at(0).at("agent").at("stop_reason"), "max_tokens");
  EXPECT_EQ(record.at("agents").at(1).at("agent").at("stop_reason"), "max_tokens");
  // Nor is the first agent's call run if that reaches the budget.
  ASSERT_EQ(gen_agent_reset(helper_, &error_), GEN_OK);
  ASSERT_EQ(gen_supervisor_set_budget(supervisor_, static_cast<int64_t>(first), &error_), GEN_OK);
  ASSERT_EQ(run_all("How many?"), GEN_OK) << error_.message;
  record = all();
  EXPECT_EQ(record.at("agents").at(1).at("agent").at("steps").size(), 0U);
  const json given = record.at("agents").at(0).at("agent").at("steps").at(0).at("results").at(0);
  EXPECT_EQ(given.at("is_error"), true);
  EXPECT_EQ(given.at("output"), "not run: the budget of tokens is spent");
}

TEST_F(SupervisorTest, ARunningAgentRefusesTasks) {
  TestTool nested;
  make_both({task_for("helper", "Go."), "Done."}, {call_of("nested", ""), "Helped."});
  gen_status again = GEN_OK;
  gen_status describing = GEN_OK;
  gen_status more[4] = {};
  nested.run = [&](const gen_tool_call&, gen_tool_reply* reply) {
    size_t n = 0;
    again = gen_supervisor_run(supervisor_, "x", 1, nullptr, nullptr, nullptr, nullptr);
    describing = gen_supervisor_describe(supervisor_, nullptr, 0, &n, nullptr);
    more[0] = gen_supervisor_add_agent(supervisor_, "other", "", helper_, nullptr);
    more[1] = gen_supervisor_set_budget(supervisor_, 1, nullptr);
    more[3] = gen_supervisor_set_cancel(supervisor_, nullptr, nullptr);
    more[2] = gen_agent_run(helper_, "x", 1, nullptr, nullptr, nullptr, nullptr);
    return write(reply, "ok");
  };
  add("nested", &nested);
  ASSERT_EQ(run_all("Go"), GEN_OK) << error_.message;
  EXPECT_EQ(again, GEN_ERROR_BUSY);
  EXPECT_EQ(describing, GEN_ERROR_BUSY);
  for (const gen_status status : more) EXPECT_EQ(status, GEN_ERROR_BUSY);
  EXPECT_EQ(all().at("agents").at(0).at("agent").at("steps").at(0).at("results").at(0).at("output"),
            "Helped.");
}

TEST_F(SupervisorTest, ACancelStopsAllAgents) {
  TestTool canceller;
  make_both({task_for("helper", "Go."), "Done."}, {call_of("cancels", ""), "Helped."});
  canceller.run = [&](const gen_tool_call&, gen_tool_reply* reply) {
    gen_supervisor_cancel(supervisor_);
    EXPECT_EQ(gen_tool_reply_stopped(reply), 1);
    return write(reply, "ok");
  };
  add("cancels", &canceller);
  EXPECT_EQ(run_all("Go"), GEN_ERROR_CANCELLED);
  const json record = all();
  EXPECT_EQ(record.at("agents").at(0).at("agent").at("stop_reason"), "cancelled");
  EXPECT_EQ(record.at("agents").at(1).at("agent").at("stop_reason"), "cancelled");
  EXPECT_EQ(
      record.at("agents").at(0).at("agent").at("steps").at(0).at("results").at(0).at("is_error"),
      true);
  gen_supervisor_cancel(nullptr);
  gen_cancel* cancel = nullptr;
  ASSERT_EQ(gen_cancel_new(&cancel, &error_), GEN_OK);
  ASSERT_EQ(gen_supervisor_set_cancel(supervisor_, cancel, &error_), GEN_OK);
  gen_cancel_fire(cancel);
  EXPECT_EQ(run_all("Go"), GEN_ERROR_CANCELLED);
  gen_cancel_free(cancel);
  EXPECT_EQ(gen_supervisor_set_cancel(nullptr, nullptr, &error_), GEN_ERROR_INVALID_ARGUMENT);
}

TEST_F(SupervisorTest, AnAgentWhoseTimeIsOverStops) {
  std::atomic<bool> over{false};
  echo_.run = [&](const gen_tool_call&, gen_tool_reply* reply) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return write(reply, "so");
  };
  make_both({task_for("helper", "Count."), "Never mind."}, {call_of("echo", "x")}, "1000");
  const gen_status status = run_all("How many?");
  over = true;
  ASSERT_EQ(status, GEN_OK) << error_.message;
  EXPECT_EQ(described().at("steps").at(0).at("results").at(0).at("output"),
            "tool \"helper\" did not answer within 1000 ms");
  // It may not even have begun when its time was over.
  const auto stopped = [&] {
    size_t n = 0;
    if (gen_agent_describe(helper_, nullptr, 0, &n, nullptr) == GEN_ERROR_BUSY) return false;
    std::string text(n + 1, '\0');
    if (gen_agent_describe(helper_, text.data(), text.size(), &n, nullptr) != GEN_OK) return false;
    return json::parse(text.substr(0, n)).at("stop_reason") == "cancelled";
  };
  while (!stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(SupervisorTest, Arguments) {
  EXPECT_EQ(gen_supervisor_new(nullptr, &error_), kBad);
  EXPECT_EQ(run_all("Go"), GEN_ERROR_STATE);
  begin({"Done."});
  gen_agent* alone = nullptr;
  ASSERT_EQ(gen_agent_new(nullptr, registry_, nullptr, &alone, &error_), GEN_OK);
  const auto add_agent = [&](gen_supervisor* to, const char* name, gen_agent* agent) {
    return gen_supervisor_add_agent(to, name, nullptr, agent, &error_);
  };
  EXPECT_EQ(add_agent(nullptr, "a", agent_), kBad);
  EXPECT_EQ(add_agent(supervisor_, nullptr, agent_), kBad);
  EXPECT_EQ(add_agent(supervisor_, "a", nullptr), kBad);
  EXPECT_EQ(add_agent(supervisor_, "a b", agent_), kBad);
  EXPECT_EQ(add_agent(supervisor_, "a", alone), kBad);
  EXPECT_EQ(add_agent(supervisor_, "a", agent_), GEN_OK);
  EXPECT_EQ(add_agent(supervisor_, "b", agent_), kBad);
  script(&helper_answers_, {"Done."});
  helper_ = make(&helper_answers_);
  EXPECT_EQ(add_agent(supervisor_, "a", helper_), kBad);
  EXPECT_EQ(add_agent(supervisor_, "echo", helper_), GEN_OK);
  EXPECT_EQ(run_all("Go"), kBad);  // the first agent has a tool of that name
  EXPECT_EQ(gen_supervisor_set_budget(nullptr, 1, &error_), kBad);
  EXPECT_EQ(gen_supervisor_set_budget(supervisor_, -1, &error_), kBad);
  EXPECT_EQ(gen_supervisor_run(nullptr, "x", 1, nullptr, nullptr, nullptr, &error_), kBad);
  EXPECT_EQ(gen_supervisor_run(supervisor_, nullptr, 0, nullptr, nullptr, nullptr, &error_), kBad);
  size_t n = 0;
  EXPECT_EQ(gen_supervisor_describe(nullptr, nullptr, 0, &n, &error_), kBad);
  EXPECT_EQ(gen_supervisor_describe(supervisor_, nullptr, 0, nullptr, &error_), kBad);
  gen_supervisor_free(nullptr);
  gen_agent_free(alone);
}

// What a step of the first agent meets comes out as it is.
TEST_F(SupervisorTest, Failures) {
  make_both({"Done."}, {"Done."});
  for (const gen_status status :
       {GEN_ERROR_MODEL, GEN_ERROR_IO, GEN_ERROR_FORMAT, GEN_ERROR_POOL_EXHAUSTED,
        GEN_ERROR_GRAMMAR, GEN_ERROR_UNSUPPORTED, GEN_ERROR_OUT_OF_RANGE, GEN_ERROR_CONTEXT_FULL,
        GEN_ERROR_OUT_OF_MEMORY}) {
    answers_.fails = status;
    answers_.fails_at = 0;
    EXPECT_EQ(run_all("Go"), status);
  }
  answers_.fails_at = SIZE_MAX;
  Events events;
  events.inside = [] { throw 5; };
  EXPECT_EQ(run_all("Go", &events), GEN_ERROR_INTERNAL);
  EXPECT_EQ(run_all("Go"), GEN_OK) << error_.message;
}

}  // namespace
}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// For the tests of agent.h: a model that says prescribed answers, one after another, and tools that
// note their calls.
#pragma once

#include <generate/generate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "status_record.h"
#include "tool_template.h"

namespace gen {

using nlohmann::json;

inline constexpr const char* kAgentModel = GEN_TEST_SOURCE_DIR "/examples/demo_model/draft.gguf";

inline constexpr const char* kText =
    R"({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})";

/// An answer with a call of a tool that takes a text.
inline std::string call_of(const std::string& tool, const std::string& text) {
  return "<tool_call>\n{\"name\": \"" + tool + "\", \"arguments\": {\"text\": \"" + text +
         "\"}}\n</tool_call>";
}

/// The answers of a model. One for each agent.
struct Answers {
  std::vector<std::vector<int32_t>> tokens;
  int32_t end = -1;
  size_t next = 0;  // answer
  size_t held = 0;  // when the last one began
  gen_status fails = GEN_OK;
  size_t fails_at = SIZE_MAX;  // answer
};

inline gen_status say(void* user, float* logits, size_t n, const int32_t*, size_t count,
                      size_t said, gen_error*) {
  Answers& answers = *static_cast<Answers*>(user);
  if (said == 0 && count != answers.held) {
    answers.held = count;
    ++answers.next;
  }
  const size_t now = answers.next - 1;
  if (now == answers.fails_at) return answers.fails;
  const auto& tokens = answers.tokens.at(std::min(now, answers.tokens.size() - 1));
  std::fill(logits, logits + n, -100.0F);
  logits[static_cast<size_t>(said < tokens.size() ? tokens[said] : answers.end)] = 100.0F;
  return GEN_OK;
}

/// A tool that answers by a function.
struct TestTool {
  std::function<int(const gen_tool_call& call, gen_tool_reply* reply)> run;
  std::mutex mutex;
  std::vector<std::string> calls;  // name, id and arguments
};

inline int run_tool(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  TestTool& tool = *static_cast<TestTool*>(user);
  {
    const std::lock_guard lock(tool.mutex);
    tool.calls.push_back(std::string(call->name) + " " + call->id + " " +
                         std::string(call->arguments, call->arguments_len));
  }
  return tool.run(*call, reply);
}

inline int write(gen_tool_reply* reply, const std::string& text) {
  return gen_tool_reply_write(reply, text.data(), text.size(), nullptr) == GEN_OK ? 0 : 1;
}

/// Events as one text.
struct Events {
  std::string all;
  std::string said;     // texts of answers
  std::string stop_at;  // an event whose line begins so
  std::function<void()> inside;
};

inline int see(void* user, const gen_agent_event* event) {
  static constexpr const char* kNames[] = {"text",   "reasoning", "name",  "arguments", "call",
                                           "broken", "step>",     "tool>", "tool<",     "step<"};
  Events& events = *static_cast<Events*>(user);
  EXPECT_EQ(event->struct_size, sizeof *event);
  EXPECT_EQ(event->text[event->len], '\0');
  std::string line = kNames[event->kind];
  line += " " + std::to_string(event->step);
  if (event->call >= 0) line += "." + std::to_string(event->call);
  if (event->name[0] != '\0') line.append(" ").append(event->name);
  if (event->id[0] != '\0') line.append(" ").append(event->id);
  if (event->is_error != 0) line += " failed";
  if (event->kind != GEN_AGENT_TEXT && event->kind != GEN_AGENT_ARGUMENTS)
    events.all += line + "\n";
  if (event->kind == GEN_AGENT_TEXT) events.said.append(event->text, event->len);
  if (events.inside) events.inside();
  return !events.stop_at.empty() && line.starts_with(events.stop_at) ? 1 : 0;
}

class AgentWorld : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(gen_model_load(kAgentModel, nullptr, &model_, &error_), GEN_OK);
    ASSERT_EQ(gen_create(model_, nullptr, &generator_, &error_), GEN_OK);
    ASSERT_EQ(gen_tool_registry_new(&registry_, &error_), GEN_OK);
    ASSERT_EQ(gen_agent_options_new(&options_, &error_), GEN_OK);
    echo_.run = [](const gen_tool_call& call, gen_tool_reply* reply) {
      return write(reply, json::parse(call.arguments).at("text").get<std::string>() + "!");
    };
    add("echo", &echo_);
  }
  void TearDown() override {
    gen_result_free(result_);
    gen_agent_free(agent_);
    gen_agent_options_free(options_);
    gen_tool_registry_free(registry_);
    gen_free(generator_);
    gen_model_free(model_);
  }

  void add(const char* name, TestTool* tool) {
    ASSERT_EQ(gen_tool_registry_add(registry_, name, "d", kText, run_tool, tool, &error_), GEN_OK)
        << error_.message;
  }
  void set(const char* key, const char* value) {
    ASSERT_EQ(gen_agent_options_set(options_, key, value, &error_), GEN_OK) << error_.message;
  }
  std::vector<int32_t> encoded(const std::string& text) {
    size_t n = 0;
    std::vector<int32_t> ids(1 << 14);
    EXPECT_EQ(gen_tokenizer_encode(gen_model_tokenizer(model_), text.data(), text.size(), 0,
                                   ids.data(), ids.size(), &n, &error_),
              GEN_OK);
    ids.resize(n);
    return ids;
  }
  /// What the model will say. The vocabulary begins texts with a space, which an answer has not.
  void script(Answers* answers, const std::vector<std::string>& texts) {
    *answers = {};
    for (const std::string& text : texts) {
      std::vector<int32_t> ids = encoded("\n" + text);
      ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(encoded("\n").size()));
      answers->tokens.push_back(std::move(ids));
    }
    answers->end = gen_tokenizer_special(gen_model_tokenizer(model_), GEN_SPECIAL_EOT);
  }
  gen_agent* make(Answers* answers, int32_t max_new_tokens = 256) {
    gen_sampling* sampling = nullptr;
    gen_agent* agent = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, max_new_tokens, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_logits_callback(sampling, say, answers, &error_), GEN_OK);
    EXPECT_EQ(gen_agent_options_set_sampling(options_, sampling, &error_), GEN_OK);
    gen_sampling_free(sampling);
    EXPECT_EQ(gen_agent_new(generator_, registry_, options_, &agent, &error_), GEN_OK)
        << error_.message;
    gen_chat* const chat = gen_agent_chat(agent);
    EXPECT_EQ(gen_chat_set_template(chat, kToolTemplate, GEN_NUL_TERMINATED, &error_), GEN_OK);
    EXPECT_EQ(gen_chat_set(chat, "constrain_calls", "0", &error_), GEN_OK);
    return agent;
  }
  void begin(const std::vector<std::string>& texts) {
    gen_agent_free(agent_);
    script(&answers_, texts);
    agent_ = make(&answers_);
  }
  gen_status run(const char* task, Events* events = nullptr) {
    gen_result_free(result_);
    answers_.next = 0;
    answers_.held = 0;
    return gen_agent_run(agent_, task, task != nullptr ? GEN_NUL_TERMINATED : 0,
                         events != nullptr ? see : nullptr, events, &result_, &error_);
  }
  template <typename F, typename T>
  json filled(F call, const T* object) {
    size_t n = 0;
    EXPECT_EQ(call(object, nullptr, 0, &n, &error_), GEN_OK) << error_.message;
    std::string text(n + 1, '?');
    EXPECT_EQ(call(object, text.data(), n, &n, &error_), GEN_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(call(object, text.data(), text.size(), &n, &error_), GEN_OK);
    text.pop_back();
    return json::parse(text);
  }
  json described() { return filled(gen_agent_describe, agent_); }
  json messages() { return filled(gen_chat_describe, gen_agent_chat(agent_)).at("messages"); }

  gen_error error_{};
  gen_model* model_ = nullptr;
  gen_generator* generator_ = nullptr;
  gen_tool_registry* registry_ = nullptr;
  gen_agent_options* options_ = nullptr;
  gen_agent* agent_ = nullptr;
  gen_result* result_ = nullptr;
  Answers answers_;
  TestTool echo_;
};

}  // namespace gen

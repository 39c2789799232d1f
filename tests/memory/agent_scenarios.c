/* SPDX-License-Identifier: Apache-2.0 */
/* Tools, agents and supervisors. After a refused call an agent is as it was. */
#include <stdio.h>
#include <stdlib.h>

#include "small_generator.h"

#define N GEN_NUL_TERMINATED

static const char form[] =
    "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}";
static const char schema[] =
    "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, "
    "\"required\": [\"text\"]}";
static const char calls[] =
    "First this. {\"name\": \"echo\", \"arguments\": {\"text\": \"a text that is not short\"}} "
    "{\"name\": \"nobody-has-this-one\", \"arguments\": {}} And that.";

static int echo(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  (void)user;
  TRY(gen_tool_reply_write(reply, "an answer to ", N, E));
  TRY(gen_tool_reply_write(reply, call->arguments, call->arguments_len, E));
  return 0;
}

static void registry(const void* with) {
  (void)with;
  static char text[4096];
  size_t n = 0;
  gen_tool_registry* tools = NULL;
  MAKE(tools, gen_tool_registry_new(&tools, E));
  TRY_KEEPING(gen_tool_registry_add(tools, "echo", "says it again", schema, echo, NULL, E),
              CHECK(gen_tool_registry_count(tools) == 0));
  TRY(gen_tool_registry_add(tools, "a-tool-with-a-long-name", "", "", echo, NULL, E));
  TRY(gen_tool_registry_describe(tools, text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_tool_registry_get(tools, "echo", text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_tool_registry_call(tools, "call_0", "echo", "{\"text\": \"a text that is not short\"}", N,
                             text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_tool_registry_call(tools, "call_1", "echo", "{\"text\": [\"a text\"]}", N, text,
                             sizeof text, &n, E));
  SAME(text, n);
  TRY_KEEPING(gen_tool_registry_remove(tools, "echo", E),
              CHECK(gen_tool_registry_count(tools) == 2));
  FREE(gen_tool_registry_free(tools));
  TRY(gen_tool_calls_parse("json", calls, N, text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_tool_result_format("call_0", "an output that is not short", N, 1, text, sizeof text, &n,
                             E));
  SAME(text, n);
}

static size_t described(gen_agent* agent) {
  static char text[1 << 14];
  size_t n = 0;
  TRY(gen_agent_describe(agent, text, sizeof text, &n, E));
  return n;
}

static int ignore(void* user, const gen_agent_event* event) {
  (void)user;
  (void)event;
  return 0;
}

static void agents(const void* with) {
  (void)with;
  static char text[1 << 14];
  size_t n = 0;
  gen_tool_registry* tools = NULL;
  gen_agent_options* options = NULL;
  gen_agent* agent = NULL;
  gen_supervisor* supervisor = NULL;
  gen_result* result = NULL;
  int32_t finished = 0;
  MAKE(tools, gen_tool_registry_new(&tools, E));
  TRY(gen_tool_registry_add(tools, "echo", "", schema, echo, NULL, E));
  MAKE(options, gen_agent_options_new(&options, E));
  TRY(gen_agent_options_set(options, "system", "A long message.", E));
  TRY(gen_agent_options_set_sampling(options, greedy, E));
  TRY(gen_agent_options_describe(options, text, sizeof text, &n, E));
  SAME(text, n);
  /* With outputs that are given. */
  MAKE(agent, gen_agent_new(NULL, tools, options, &agent, E));
  size_t before = described(agent);
  TRY_KEEPING(gen_agent_step(agent, calls, N, ignore, NULL, &finished, E),
              CHECK(described(agent) == before));
  before = described(agent);
  TRY_KEEPING(gen_agent_step(agent, "It is done.", N, NULL, NULL, &finished, E),
              CHECK(described(agent) == before));
  CHECK(finished == 1);
  TRY(gen_agent_describe(agent, text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_chat_describe(gen_agent_chat(agent), text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_agent_free(agent));
  /* And with generated ones; tools would not fit into the context. */
  TRY(gen_tool_registry_remove(tools, "echo", E));
  MAKE(agent, gen_agent_new(generator, tools, options, &agent, E));
  FREE(gen_tool_registry_free(tools));
  FREE(gen_agent_options_free(options));
  TRY(gen_chat_set_template(gen_agent_chat(agent), form, N, E));
  before = described(agent);
  TRY_KEEPING((gen_result_free(result), result = NULL,
               gen_agent_run(agent, "Tell me of the fox.", N, ignore, NULL, &result, E)),
              CHECK(described(agent) == before));
  SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  result = NULL;
  TRY(gen_chat_add(gen_agent_chat(agent), "user", "And then?", N, E));
  TRY(gen_agent_step(agent, NULL, 0, NULL, NULL, &finished, E));
  TRY(gen_agent_reset(agent, E));
  TRY(gen_agent_set_cancel(agent, NULL, E));
  MAKE(supervisor, gen_supervisor_new(&supervisor, E));
  TRY(gen_supervisor_add_agent(supervisor, "an-agent-with-a-long-name", "It does it.", agent, E));
  TRY(gen_supervisor_set_budget(supervisor, 100, E));
  TRY(gen_supervisor_set_cancel(supervisor, NULL, E));
  FREE(gen_agent_free(agent));
  TRY((gen_result_free(result), result = NULL,
       gen_supervisor_run(supervisor, "Tell me of the fox.", N, ignore, NULL, &result, E)));
  SAME_TEXT(gen_result_text(result, NULL));
  FREE(gen_result_free(result));
  TRY(gen_supervisor_describe(supervisor, text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_supervisor_free(supervisor));
}

const scenario agent_scenarios[] = {
    {"tools", begin, registry, end, NULL}, {"agents", begin, agents, end, NULL}, {0}};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools for models, and the loop that runs them. gen_tool_registry: functions of the program that a
 * model may call, each with a JSON Schema of its arguments. gen_agent: a conversation in which a
 * model answers, its calls are run, their results are told to it, and so on until an answer has no
 * calls or a limit is reached. gen_supervisor: several agents on one task. See docs/agents.md.
 *
 * What a model writes cannot end its turn or begin another one by a tool's result: results are
 * data, as all messages are (chat.h).
 */
#ifndef GENERATE_AGENT_H
#define GENERATE_AGENT_H

#include "base.h"
#include "chat.h"
#include "generator.h"
#include "sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Functions that a model may call. Shareable. */
typedef struct gen_tool_registry gen_tool_registry;
/** What a function answers; only valid while it runs, on its thread. */
typedef struct gen_tool_reply gen_tool_reply;
/** How an agent works. One thread at a time. */
typedef struct gen_agent_options gen_agent_options;
/** A conversation with tools. One thread at a time. */
typedef struct gen_agent gen_agent;
/** Several agents on one task. One thread at a time. */
typedef struct gen_supervisor gen_supervisor;

/** A call of a tool, owned by the library until the callback returns. */
typedef struct gen_tool_call {
  uint32_t struct_size;  /**< sizeof(gen_tool_call) of the library */
  const char *id;        /**< unique in the conversation */
  const char *name;      /**< of the tool */
  const char *arguments; /**< [arguments_len] a JSON object, NUL-terminated */
  size_t arguments_len;
} gen_tool_call;

/**
 * Runs a tool. What it writes to `reply` is the output of the call. It runs on the thread of the
 * agent's call, or on another one (options "tool_threads" and "tool_timeout_ms"), without locks: it
 * may call anything, but the agent and its conversation return GEN_ERROR_BUSY. An exception is a
 * failure of the tool, with its message as the output.
 *
 * @return 0; anything else: the call failed, and the output says why. The model is told.
 */
typedef int (*gen_tool_callback)(void *user, const gen_tool_call *call, gen_tool_reply *reply);

/**
 * Appends to the output of a call.
 *
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is not UTF-8.
 * Threads: that of the callback.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_reply_write(gen_tool_reply *reply, const char *text, size_t len, gen_error *error);

/**
 * Whether nobody waits for the output any more: the agent was cancelled, or the call's time is over. A callback that takes
 * long should ask now and then, and return.
 *
 * @return 1 or 0; 0 for NULL.
 * Threads: that of the callback.
 * Since:   0.1
 */
GEN_API int32_t gen_tool_reply_stopped(const gen_tool_reply *reply);

/**
 * Makes an empty registry.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_registry_new(gen_tool_registry **out, gen_error *error);

/**
 * Adds a tool. Agents offer it from their next step on.
 *
 * @param name         1 to 64 letters, digits and _ . -; NUL-terminated, copied.
 * @param description  for the model, NUL-terminated, copied; NULL or empty for none.
 * @param json_schema  of the arguments, which are an object; NUL-terminated, copied; NULL or empty: no arguments.
 * @param callback     runs the tool.
 * @param user         passed to the callback, never dereferenced. It must be valid until the tool is removed, or registry
 *                     and agents are freed, and no call of it runs any more.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, a name that is invalid or taken, and a schema that is invalid or
 *         that a grammar cannot enforce (docs/grammars.md), naming the tool and the place; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    compiles the schema.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_registry_add(gen_tool_registry *registry, const char *name, const char *description,
                                         const char *json_schema, gen_tool_callback callback, void *user,
                                         gen_error *error);

/**
 * Removes a tool. A call of it that runs finishes.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for a tool that is not there.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_registry_remove(gen_tool_registry *registry, const char *name, gen_error *error);

/**
 * The number of tools.
 *
 * @return 0 for NULL.
 * Threads: any.
 * Since:   0.1
 */
GEN_API size_t gen_tool_registry_count(const gen_tool_registry *registry);

/**
 * Describes all tools: a JSON array in the form of OpenAI's API, sorted by name:
 * [{"type": "function", "function": {"name": …, "description": …, "parameters": …}}, …].
 *
 * @param buf       [capacity] bytes, receives the text with a NUL; NULL to ask for the size.
 * @param capacity  of buf.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_registry_describe(const gen_tool_registry *registry, char *buf, size_t capacity, size_t *n,
                                              gen_error *error);

/**
 * Describes one tool, as an element of gen_tool_registry_describe.
 *
 * @param buf  as in gen_tool_registry_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for a tool that is not there; GEN_ERROR_OUT_OF_RANGE if the buffer
 *         is too small; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_registry_get(const gen_tool_registry *registry, const char *name, char *buf, size_t capacity,
                                         size_t *n, gen_error *error);

/**
 * Calls a tool as an agent does, on this thread, and returns {"tool_call_id":…,"output":…,"is_error":…}. An unknown tool,
 * arguments that do not fit its schema (the output says where), and a callback that fails or throws are results with
 * "is_error": true.
 *
 * @param id         of the call, NUL-terminated; NULL or empty if there is none.
 * @param name       of the tool, NUL-terminated.
 * @param arguments  [len] JSON; len may be GEN_NUL_TERMINATED. Empty: {}.
 * @param buf        as in gen_tool_registry_describe, but NULL is refused: the tool runs once per call. Give enough room;
 *                   with too little, the tool has run and its output is lost.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for texts that are not UTF-8; GEN_ERROR_OUT_OF_RANGE if the buffer
 *         is too small; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_registry_call(gen_tool_registry *registry, const char *id, const char *name,
                                          const char *arguments, size_t len, char *buf, size_t capacity, size_t *n,
                                          gen_error *error);

/**
 * Frees a registry; NULL is fine. Agents that use it keep its tools.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_tool_registry_free(gen_tool_registry *registry);

/**
 * Finds the calls in a text that a model wrote: {"text":…,"reasoning":…,"calls":[{"id":…,"name":…,"arguments":{…}}],
 * "faults":[{"at":…,"what":…}]}. What is no call stays in the text; faults say why what began like one is none, and at which
 * byte. Calls without an id get call_0, call_1, … The format "json" finds objects with "name" and "arguments", or "tool"
 * and "parameters", anywhere in the text.
 *
 * @param format  the name of a format (docs/chat.md), NUL-terminated; NULL or empty: "json".
 * @param text    [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param buf     as in gen_tool_registry_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown format, and for what is not UTF-8; GEN_ERROR_OUT_OF_RANGE
 *         if the buffer is too small; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    linear in the text.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_calls_parse(const char *format, const char *text, size_t len, char *buf, size_t capacity,
                                        size_t *n, gen_error *error);

/**
 * Writes a result as {"tool_call_id":…,"output":…,"is_error":…}.
 *
 * @param id      of the call, NUL-terminated; NULL or empty if there is none.
 * @param output  [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param buf     as in gen_tool_registry_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is not UTF-8; GEN_ERROR_OUT_OF_RANGE if the buffer is too
 *         small; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tool_result_format(const char *id, const char *output, size_t len, int32_t is_error, char *buf,
                                          size_t capacity, size_t *n, gen_error *error);

/**
 * Makes options with default values.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_options_new(gen_agent_options **out, gen_error *error);

/**
 * Sets one option by name: "max_steps" "5", "system" "Be brief." … All are in docs/options.md.
 *
 * @param key    as listed by gen_agent_options_describe.
 * @param value  the value as text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown key or a value outside its range. On failure nothing
 *         changes.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_options_set(gen_agent_options *options, const char *key, const char *value,
                                         gen_error *error);

/**
 * Sets how tokens are chosen and what ends an answer. Without it, the defaults of gen_sampling_new, and at most 2048 tokens
 * for an answer.
 *
 * @param sampling  copied; NULL for the defaults.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_options_set_sampling(gen_agent_options *options, const gen_sampling *sampling,
                                                  gen_error *error);

/**
 * Describes all options as JSON, as gen_options_describe.
 *
 * @param buf  as in gen_tool_registry_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_options_describe(const gen_agent_options *options, char *buf, size_t capacity, size_t *n,
                                              gen_error *error);

/**
 * Frees options; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_agent_options_free(gen_agent_options *options);

/** What a gen_agent_event tells. Those up to GEN_AGENT_CALL_BROKEN are as GEN_PIECE_… of generator.h. */
enum {
  GEN_AGENT_TEXT = 0,        /**< text of the answer */
  GEN_AGENT_REASONING = 1,   /**< text of the model's reasoning */
  GEN_AGENT_CALL_NAME = 2,   /**< a call begins; text and name are the tool's name */
  GEN_AGENT_ARGUMENTS = 3,   /**< more of the JSON of its arguments */
  GEN_AGENT_CALL_END = 4,    /**< the call is complete */
  GEN_AGENT_CALL_BROKEN = 5, /**< the call is none after all; what was written of it follows as text or reasoning */
  GEN_AGENT_STEP_BEGAN = 6,
  GEN_AGENT_TOOL_BEGAN = 7,  /**< text is the arguments */
  GEN_AGENT_TOOL_ENDED = 8,  /**< text is the output */
  GEN_AGENT_STEP_ENDED = 9   /**< text is the model's output */
};

/** What happens in a run, owned by the library until the callback returns. */
typedef struct gen_agent_event {
  uint32_t struct_size; /**< sizeof(gen_agent_event) of the library */
  int32_t kind;         /**< GEN_AGENT_… */
  int32_t step;         /**< from 1 */
  int32_t call;         /**< number of the call in its step, from 0; -1 where the event is not about one */
  const char *name;     /**< of the tool; else empty */
  const char *id;       /**< of the call, of events about its running; else empty */
  const char *text;     /**< [len], NUL-terminated */
  size_t len;
  int32_t is_error; /**< of GEN_AGENT_TOOL_ENDED: 1 if the call failed */
} gen_agent_event;

/**
 * Receives events on the thread of the call. Non-zero stops the run as a cancel does; a call that runs finishes first. The
 * callback may call anything, but the agent and its conversation return GEN_ERROR_BUSY. An exception fails the call with
 * GEN_ERROR_INTERNAL.
 */
typedef int (*gen_agent_callback)(void *user, const gen_agent_event *event);

/**
 * Makes an agent.
 *
 * @param generator  writes the answers; kept alive. NULL: each step is given the output of a model of the caller's.
 * @param registry   the tools; kept alive. Tools may be added and removed at any time.
 * @param options    copied; NULL for defaults.
 * @param out        receives the agent; free it with gen_agent_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if registry or out is NULL; GEN_ERROR_UNSUPPORTED if the model has no tokenizer;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_new(gen_generator *generator, gen_tool_registry *registry, const gen_agent_options *options,
                                 gen_agent **out, gen_error *error);

/**
 * Adds a task to the conversation as a message of the user, and runs steps: the model answers, the calls of its answer are
 * run, their results are added. It ends, with the first that holds, when an answer reaches the budget of tokens (its
 * calls are then not run), when an answer has no calls, after a failed call if "stop_on_tool_error" is on, or after
 * "max_steps" steps; gen_agent_describe tells which.
 *
 * A step that fails or is cancelled leaves nothing behind; if it is the first one, neither does the task. Complete steps
 * stay in the conversation and its description, since their tools have run. A cancel while tools run completes the step:
 * calls that have not begun get a result that says so. To go on after a failure, run without a task.
 *
 * @param task      [len] UTF-8, copied; len may be GEN_NUL_TERMINATED. NULL adds no message: the conversation goes on.
 * @param callback  receives what happens; may be NULL.
 * @param user      passed to the callback.
 * @param result    receives the result of the last answer; may be NULL. It is also set if a call fails or is cancelled after
 *                  the first token.
 * @return GEN_OK, whatever ended the run; GEN_ERROR_CANCELLED; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is not UTF-8;
 *         GEN_ERROR_STATE for an agent without a generator, and for NULL where the conversation ends with an answer that
 *         was not cut;
 *         GEN_ERROR_BUSY; GEN_ERROR_CONTEXT_FULL if the conversation leaves no room for an answer;
 *         GEN_ERROR_UNSUPPORTED if the model has no chat template for conversations with tools; GEN_ERROR_OUT_OF_RANGE,
 *         GEN_ERROR_GRAMMAR, GEN_ERROR_MODEL, GEN_ERROR_POOL_EXHAUSTED, GEN_ERROR_IO and GEN_ERROR_FORMAT as gen_generate;
 *         GEN_ERROR_INTERNAL if the callback threw; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per agent and conversation.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_run(gen_agent *agent, const char *task, size_t len, gen_agent_callback callback, void *user,
                                 gen_result **result, gen_error *error);

/**
 * Runs one step. The task is whatever gen_chat_add added to gen_agent_chat. After the last step of a run, a step begins a
 * new one.
 *
 * @param output    [len] UTF-8, the model's output, read as the option "call_format" says; len may be GEN_NUL_TERMINATED.
 *                  NULL: the model generates it. Tokens of a given output are counted by the model's tokenizer, without a
 *                  generator as bytes.
 * @param callback  as in gen_agent_run.
 * @param finished  receives 1 if this was the last step, else 0.
 * @return as gen_agent_run; GEN_ERROR_STATE also for NULL without a generator.
 * Threads: one at a time per agent and conversation.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_step(gen_agent *agent, const char *output, size_t len, gen_agent_callback callback,
                                  void *user, int32_t *finished, gen_error *error);

/**
 * Describes the last run: {"steps":[{"step":1,"model_output":…,"text":…,"reasoning":…,"calls":[{"id":…,"name":…,
 * "arguments":{…}}],"results":[{"tool_call_id":…,"output":…,"is_error":…}],"faults":[{"at":…,"what":…}],"tokens":…}],
 * "finished":…,"final_output":…,"total_tokens":…,"stop_reason":…}. The reason is "no_tools", "max_tokens", "tool_error",
 * "max_steps", "cancelled" or, while the run can go on, "". The final output is the text of the last answer, or all of it
 * if it has calls.
 *
 * @param buf  as in gen_tool_registry_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small; GEN_ERROR_BUSY
 *         while the agent runs; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per agent.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_describe(const gen_agent *agent, char *buf, size_t capacity, size_t *n, gen_error *error);

/**
 * The conversation of an agent, with the calls of the model and their results: to add messages, to read or edit it, or to
 * set options and variables of the template. Its tools are set by the agent. It is busy while the agent runs.
 *
 * @return borrowed until the agent is freed; gen_chat_free does nothing to it. NULL for NULL.
 * Threads: any; what is done with it as chat.h says.
 * Since:   0.1
 */
GEN_API gen_chat *gen_agent_chat(gen_agent *agent);

/**
 * Cancels the running call, or the next one if none runs: generation ends, and no further tool begins. Tools that run are
 * told by gen_tool_reply_stopped, and waited for.
 *
 * Threads: any, also a signal handler. NULL does nothing.
 * Since:   0.1
 */
GEN_API void gen_agent_cancel(gen_agent *agent);

/**
 * Sets a flag that cancels calls of the agent while it is raised. Unlike gen_agent_cancel it cannot hit a later call by
 * mistake: set or reset one before a call.
 *
 * @param cancel  kept alive; NULL for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if agent is NULL; GEN_ERROR_BUSY.
 * Threads: one at a time per agent.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_set_cancel(gen_agent *agent, gen_cancel *cancel, gen_error *error);

/**
 * Empties the conversation, but for the system message of the options, and forgets the last run and a cancel.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per agent and conversation.
 * Since:   0.1
 */
GEN_API gen_status gen_agent_reset(gen_agent *agent, gen_error *error);

/**
 * Frees an agent, without waiting: a call that still runs on it finishes first. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_agent_free(gen_agent *agent);

/**
 * Makes a supervisor without agents.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_supervisor_new(gen_supervisor **out, gen_error *error);

/**
 * Adds an agent. The first one gets the task. The others are tools to it, name({"task": text}), whose output is their final
 * answer; each such task begins with an empty conversation of theirs. An agent that is running refuses another task, so
 * there are no circles.
 *
 * @param name         as in gen_tool_registry_add.
 * @param description  what the agent is good for, NUL-terminated, copied; NULL or empty for none.
 * @param agent        kept alive.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an invalid name, a name or an agent that is there already, and for an
 *         agent without a generator; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per supervisor.
 * Since:   0.1
 */
GEN_API gen_status gen_supervisor_add_agent(gen_supervisor *supervisor, const char *name, const char *description,
                                            gen_agent *agent, gen_error *error);

/**
 * Sets the number of tokens that all agents together may generate in a run, besides the budget of each; 0 (the default):
 * no limit. Agents that run at the same time may exceed it by an answer each.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for a number below 0; GEN_ERROR_BUSY.
 * Threads: one at a time per supervisor.
 * Since:   0.1
 */
GEN_API gen_status gen_supervisor_set_budget(gen_supervisor *supervisor, int64_t tokens, gen_error *error);

/**
 * Gives a task to the first agent, as gen_agent_run. Events are those of the first agent.
 *
 * @param task  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return as gen_agent_run; GEN_ERROR_STATE also for a supervisor without agents; GEN_ERROR_INVALID_ARGUMENT also where the
 *         first agent has a tool with the name of another agent.
 * Threads: one at a time per supervisor.
 * Since:   0.1
 */
GEN_API gen_status gen_supervisor_run(gen_supervisor *supervisor, const char *task, size_t len,
                                      gen_agent_callback callback, void *user, gen_result **result, gen_error *error);

/**
 * Describes the last run: {"budget":…,"spent":…,"agents":[{"name":…,"description":…,"agent":{…}}]}, where `agent` is as
 * gen_agent_describe.
 *
 * @param buf  as in gen_tool_registry_describe.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small; GEN_ERROR_BUSY
 *         while it or one of its agents runs; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per supervisor.
 * Since:   0.1
 */
GEN_API gen_status gen_supervisor_describe(const gen_supervisor *supervisor, char *buf, size_t capacity, size_t *n,
                                           gen_error *error);

/**
 * Cancels the running call and all agents that work for it, or the next call if none runs.
 *
 * Threads: any, also a signal handler. NULL does nothing.
 * Since:   0.1
 */
GEN_API void gen_supervisor_cancel(gen_supervisor *supervisor);

/**
 * Sets a flag that cancels calls of the supervisor while it is raised, as gen_agent_set_cancel.
 *
 * @param cancel  kept alive; NULL for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if supervisor is NULL; GEN_ERROR_BUSY.
 * Threads: one at a time per supervisor.
 * Since:   0.1
 */
GEN_API gen_status gen_supervisor_set_cancel(gen_supervisor *supervisor, gen_cancel *cancel, gen_error *error);

/**
 * Frees a supervisor, without waiting: a call that still runs on it finishes first. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_supervisor_free(gen_supervisor *supervisor);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_AGENT_H */

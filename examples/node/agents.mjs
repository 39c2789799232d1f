// SPDX-License-Identifier: Apache-2.0
// Tools and agents of libgenerate from Node: a tool is a function that takes its arguments as an object.
//
//     const tools = new Tools();
//     tools.add(({ city, days = 1 }) => ({ sky: "clear", celsius: 18 + days }),
//       { name: "weather", description: "The weather of a city.", parameters: { city: "string", "days?": "integer" } });
//     const agent = new Agent(tools, generator);
//     console.log((await agent.run("Do I need a coat in Oslo?")).text);
//
// An agent works on a thread of koffi's, and waits while the main thread runs a tool or hears of an event. Tools may be async
// functions, too: the event loop goes on until their promise is settled.
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";

import { Cancel, Chat, GenerateError, Handle, internals } from "./libgenerate.mjs";
import { toolCallback } from "./tool_callback.mjs";

const { bytesAt, described, fallible, koffi, lib, make, PIECES, samplingOf, taken } = internals;

/** What an event is about. */
export const EVENTS = [...PIECES, "step_began", "tool_began", "tool_ended", "step_ended"];

const NativeEvent = koffi.struct("gen_agent_event", {
  struct_size: "uint32_t", kind: "int32_t", step: "int32_t", call: "int32_t", name: "const char *", id: "const char *",
  text: "void *", len: "size_t", is_error: "int32_t",
});
const EventCallback = koffi.proto("int gen_agent_callback(uintptr_t user, gen_agent_event *event)");

const buffer = "_Out_ uint8_t *buf, size_t capacity, _Out_ size_t *n";
const c = {
  replyStopped: lib.func("int32_t gen_tool_reply_stopped(uintptr_t reply)"),
  registryNew: fallible("gen_tool_registry_new", "_Out_ void **out"),
  registryAdd: fallible("gen_tool_registry_add", "void *registry, const char *name, const char *description, const char *schema, "
    + "uintptr_t callback, uintptr_t user"),
  registryRemove: fallible("gen_tool_registry_remove", "void *registry, const char *name"),
  registryCount: lib.func("size_t gen_tool_registry_count(void *registry)"),
  registryDescribe: fallible("gen_tool_registry_describe", `void *registry, ${buffer}`),
  registryCall: fallible("gen_tool_registry_call",
    `void *registry, const char *id, const char *name, const uint8_t *arguments, size_t len, ${buffer}`),
  registryFree: lib.func("void gen_tool_registry_free(void *registry)"),
  callsParse: fallible("gen_tool_calls_parse", `const char *format, const uint8_t *text, size_t len, ${buffer}`),
  optionsNew: fallible("gen_agent_options_new", "_Out_ void **out"),
  optionsSet: fallible("gen_agent_options_set", "void *options, const char *key, const char *value"),
  optionsSetSampling: fallible("gen_agent_options_set_sampling", "void *options, void *sampling"),
  optionsFree: lib.func("void gen_agent_options_free(void *options)"),
  agentNew: fallible("gen_agent_new", "void *generator, void *registry, void *options, _Out_ void **out"),
  agentRun: fallible("gen_agent_run",
    "void *agent, const uint8_t *task, size_t len, gen_agent_callback *callback, uintptr_t user, _Out_ void **result"),
  agentStep: fallible("gen_agent_step",
    "void *agent, const uint8_t *output, size_t len, gen_agent_callback *callback, uintptr_t user, _Out_ int32_t *finished"),
  agentDescribe: fallible("gen_agent_describe", `void *agent, ${buffer}`),
  agentChat: lib.func("void *gen_agent_chat(void *agent)"),
  agentSetCancel: fallible("gen_agent_set_cancel", "void *agent, void *cancel"),
  agentReset: fallible("gen_agent_reset", "void *agent"),
  agentFree: lib.func("void gen_agent_free(void *agent)"),
};

// C calls one function for all tools and one for all events, and says by a number which of these is meant.
const called = new Map();
let numbers = 0;

function numbered(value) {
  called.set(++numbers, value);
  return numbers;
}

// Calls the function of a tool; what it returns may be a promise.
function started(told) {
  const { number, id, name, text, reply } = told;
  const run = called.get(number);
  if (!run) throw new Error(`tool "${name}" was removed`);
  return run(JSON.parse(text), { id, name, stopped: () => told.over || c.replyStopped(reply) !== 0 });
}

const textOf = (output) => (typeof output === "string" ? output : JSON.stringify(output) ?? "");
const failureOf = (failure) => ({ output: String(failure?.message || failure), failed: true });

const synchronous = toolCallback((told) => {
  try {
    const output = started(told);
    if (typeof output?.then !== "function") return { output: textOf(output), failed: false };
    output.then(null, () => {}); // nobody waits for it
    throw new Error(`tool "${told.name}" returned a promise, but was not added as async`);
  } catch (failure) {
    return failureOf(failure);
  } finally {
    told.over = true; // the reply is C's again
  }
});

async function settled(told) {
  try {
    return { output: textOf(await started(told)), failed: false };
  } catch (failure) {
    return failureOf(failure);
  } finally {
    told.over = true;
  }
}

/** The address of a function for C that waits on a thread of its own; see tool_worker.mjs. */
function waiting() {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const { port1: port, port2 } = new MessageChannel();
  const worker = new Worker(new URL("./tool_worker.mjs", import.meta.url),
    { workerData: { flag, port: port2 }, transferList: [port2] });
  worker.unref();
  if (Atomics.wait(flag, 0, 0, 30000) === "timed-out") throw new Error("there is no thread for asynchronous tools");
  const address = receiveMessageOnPort(port).message;
  port.on("message", async (told) => {
    port.postMessage(await settled(told));
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0);
  });
  port.unref();
  return address;
}

const eventCallback = koffi.register((user, pointer) => {
  const teller = called.get(Number(user));
  try {
    const event = koffi.decode(pointer, NativeEvent);
    return teller.events({
      kind: EVENTS[event.kind], step: event.step, call: event.call, name: event.name, id: event.id,
      text: bytesAt(event.text, event.len).toString(), isError: event.is_error !== 0,
    }) === false ? 1 : 0;
  } catch (failure) {
    teller.thrown = { failure };
    return 1;
  }
}, koffi.pointer(EventCallback));

/**
 * The JSON Schema of arguments: a member is a type of JSON by name, a list of the texts that are allowed, or a schema of its
 * own, and may be left out if its name ends with "?". `{ city: "string", "unit?": ["celsius", "kelvin"] }`
 */
export function schemaOf(parameters) {
  const properties = {};
  const required = [];
  for (const [key, value] of Object.entries(parameters)) {
    const name = key.endsWith("?") ? key.slice(0, -1) : key;
    if (name === key) required.push(name);
    properties[name] = Array.isArray(value) ? { enum: value } : typeof value === "string" ? { type: value } : value;
  }
  return { type: "object", properties, required, additionalProperties: false };
}

/** Functions that a model may call. Any number of agents may use one; calls that come after close() fail. */
export class Tools extends Handle {
  #numbers = new Map();
  #waiting = null;
  constructor() {
    super(make(c.registryNew), (handle) => {
      c.registryFree(handle);
      for (const number of this.#numbers.values()) called.delete(number);
    });
  }
  get size() { return Number(c.registryCount(this.handle)); }
  /**
   * Adds a function with its name, and `schema`, an object, or `parameters` as schemaOf takes them; without either it has no
   * arguments. It is given its arguments and `{ id, name, stopped() }`, and returns a text, or what becomes JSON. An exception
   * is a failure that the model is told.
   *
   * Async functions, and others with `async: true`, return a promise. Those of one set run one after another, and must not wait
   * for an agent with tools of the same set. They have a thread that stays until the program ends.
   */
  add(run, { name = run.name, description = "", parameters = {}, schema = schemaOf(parameters),
    async = run.constructor.name === "AsyncFunction" } = {}) {
    const number = numbered(run);
    try {
      const callback = async ? this.#waiting ??= waiting() : synchronous;
      c.registryAdd(this.handle, name, description, JSON.stringify(schema), callback, number);
    } catch (failure) {
      called.delete(number);
      throw failure;
    }
    this.#numbers.set(name, number);
    return this;
  }
  remove(name) {
    c.registryRemove(this.handle, name);
    called.delete(this.#numbers.get(name));
    this.#numbers.delete(name);
    return this;
  }
  /** All tools in the form of OpenAI's API, sorted by name. */
  describe() { return described(c.registryDescribe, this.handle); }
  /** A promise of the result of a call: tool_call_id, output, is_error. */
  async call(name, args = {}, id = "") {
    const bytes = Buffer.from(JSON.stringify(args));
    const text = Buffer.alloc(1 << 20);
    const n = [0];
    await c.registryCall.later(this.handle, id, name, bytes, bytes.length, text, text.length, n);
    return JSON.parse(text.toString("utf8", 0, Number(n[0])));
  }
}

/** The calls in a text that a model wrote: text, reasoning, calls, faults. Formats are in docs/chat.md. */
export function parseToolCalls(text, format = "json") {
  const bytes = Buffer.from(text);
  return described((name, ...buffer) => c.callsParse(name, bytes, bytes.length, ...buffer), format);
}

/**
 * A conversation in which a model calls tools until it has an answer. Settings are those of docs/options.md and `sampling`;
 * without a generator it is for step() with the outputs of a model of one's own.
 */
export class Agent extends Handle {
  #running = false;
  constructor(tools, generator = null, { sampling = {}, ...settings } = {}) {
    // The library would take a closed one for none at all.
    if (generator && !generator.handle) throw new GenerateError({ code: -15, message: "the generator is closed" });
    const options = new Handle(make(c.optionsNew), c.optionsFree);
    const how = samplingOf(sampling);
    try {
      for (const [key, value] of Object.entries(settings)) {
        c.optionsSet(options.handle, key, String(typeof value === "boolean" ? Number(value) : value));
      }
      if (Object.keys(sampling).length > 0) c.optionsSetSampling(options.handle, how.handle);
      super(make(c.agentNew, generator?.handle ?? null, tools.handle, options.handle), c.agentFree);
    } finally {
      how.close();
      options.close();
    }
    /** The conversation: it is closed with the agent, and busy while that runs. */
    this.chat = new Chat(c.agentChat(this.handle));
  }

  /**
   * A promise of the result of the last answer. Null adds no message: it goes on with the conversation. `events(event)` hears of
   * what happens, and may return false to end the run, or throw; `cancel` is a Cancel or an AbortSignal.
   */
  async run(task = null, { events, cancel } = {}) {
    const bytes = task === null ? null : Buffer.from(task);
    const out = [null];
    try {
      await this.#call(events, cancel, (...told) => c.agentRun.later(this.handle, bytes, bytes?.length ?? 0, ...told, out));
    } catch (failure) {
      const result = out[0] ? taken(out[0]) : undefined;
      if (failure instanceof GenerateError) failure.result = result;
      throw failure;
    }
    return taken(out[0]);
  }

  /** One step, with the output of a model of one's own or a generated one: a promise of whether it was the last. */
  async step(output = null, { events, cancel } = {}) {
    const bytes = output === null ? null : Buffer.from(output);
    const finished = [0];
    await this.#call(events, cancel, (...told) => c.agentStep.later(this.handle, bytes, bytes?.length ?? 0, ...told, finished));
    return finished[0] !== 0;
  }

  async #call(events, cancel, call) {
    // The library does not know yet of a call that waits for a thread.
    if (this.#running) throw new GenerateError({ code: -10, message: "the agent is in use by another call" });
    const signal = cancel instanceof AbortSignal ? cancel : null;
    const flag = signal ? new Cancel() : cancel;
    const fire = () => flag.fire();
    const teller = { events };
    const number = numbered(teller);
    this.#running = true;
    try {
      if (signal?.aborted) fire();
      signal?.addEventListener("abort", fire);
      c.agentSetCancel(this.handle, flag?.handle ?? null);
      await call(events ? eventCallback : null, number);
    } catch (failure) {
      if (!teller.thrown) throw failure;
    } finally {
      this.#running = false;
      called.delete(number);
      signal?.removeEventListener("abort", fire);
      if (signal) flag.close();
    }
    if (teller.thrown) throw teller.thrown.failure;
  }

  /** The last run: steps, finished, final_output, total_tokens, stop_reason. */
  describe() { return described(c.agentDescribe, this.handle); }
  /** Empties the conversation and forgets the last run. */
  reset() { c.agentReset(this.handle); }
  close() {
    this.chat.handle = null;
    super.close();
  }
}

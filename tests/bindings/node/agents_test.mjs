// SPDX-License-Identifier: Apache-2.0
// Tools and agents of examples/node/agents.mjs: functions, schemas, failures, events, cancels. Run in a folder that has koffi and
// a copy of examples/node: agents_test.mjs SOURCE_DIR
import assert from "node:assert/strict";

import { Agent, parseToolCalls, schemaOf, Tools } from "./agents.mjs";
import { Cancel, GenerateError, Generator, Model } from "./libgenerate.mjs";

const root = process.argv[2];
const call = (name, args) => JSON.stringify({ name, arguments: args });
const cancelled = (failure) => failure instanceof GenerateError && failure.code === -11;

function weather({ city, days = 1 }) {
  if (city === "Nowhere") throw new Error("no such city");
  return { city, days };
}
const about = { description: "The weather of a city.", parameters: { city: "string", "days?": "integer" } };
const tools = new Tools().add(weather, about);

assert.deepEqual(schemaOf({ a: "string", "b?": ["x", "y"], c: { type: "array", items: { type: "integer" } } }), {
  type: "object", required: ["a", "c"], additionalProperties: false,
  properties: { a: { type: "string" }, b: { enum: ["x", "y"] }, c: { type: "array", items: { type: "integer" } } },
});

// Tools are functions.
{
  const result = await tools.call("weather", { city: "Zoë" }, "c");
  assert.deepEqual([result.tool_call_id, result.is_error, JSON.parse(result.output)], ["c", false, { city: "Zoë", days: 1 }]);
  for (const [args, said] of [[{}, /"city" is missing/], [{ city: 5 }, /member "city"/], [{ city: "A", days: "x" }, /member "days"/],
    [{ city: "Nowhere" }, /^no such city$/]]) {
    const failed = await tools.call("weather", args);
    assert.ok(failed.is_error);
    assert.match(failed.output, said);
  }
  assert.equal(tools.describe()[0].function.description, "The weather of a city.");
  assert.equal(tools.size, 1);
  assert.throws(() => tools.add(weather, about), (failure) => failure.code === -1 && /"weather"/.test(failure.message));
  assert.throws(() => tools.add(weather, { name: "b", schema: { type: "objekt" } }), (failure) => failure.code === -1);
  tools.add(async () => "later", { name: "later", async: false }).add(() => {}, { name: "nothing" }).add(() => 5n, { name: "no_JSON" });
  assert.match((await tools.call("later")).output, /"later" returned a promise/);
  assert.ok((await tools.call("later")).is_error && (await tools.call("no_JSON")).is_error);
  assert.deepEqual(await tools.call("nothing"), { tool_call_id: "", output: "", is_error: false });
  tools.remove("later").remove("nothing").remove("no_JSON");
  assert.match((await tools.call("later")).output, /not found/);
  assert.throws(() => tools.remove("later"), (failure) => failure.code === -1);
  assert.deepEqual(parseToolCalls(`a ${call("f", {})}`).calls, [{ id: "call_0", name: "f", arguments: {} }]);
  assert.equal(parseToolCalls("<tool_call>\n{\n</tool_call>", "hermes").faults.length, 1);
  assert.throws(() => parseToolCalls("", "no_such"), (failure) => failure.code === -1);
}

// Async functions: the event loop goes on while an agent waits for them.
{
  const slow = new Tools();
  const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  let over;
  slow.add(async ({ ms }, { id, stopped }) => {
    over = stopped;
    await pause(ms);
    return { id, stopped: stopped() };
  }, { name: "waits", parameters: { ms: "integer" } });
  let late;
  slow.add((_, { stopped }) => { late = stopped; throw new Error("at once"); }, { name: "throws" });
  assert.equal((await slow.call("throws")).output, "at once");
  assert.equal(late(), true);
  slow.add(async () => { await pause(1); throw new Error("too slow"); }, { name: "fails" });
  slow.add(() => pause(1).then(() => "promised"), { name: "promises", async: true });
  slow.add(() => 5, { name: "soon" });
  assert.equal((await slow.call("promises")).output, "promised");
  const agent = new Agent(slow, null, { tool_threads: 3 });
  let ticks = 0;
  const clock = setInterval(() => ++ticks, 1);
  assert.equal(await agent.step(call("waits", { ms: 50 }) + call("fails", {}) + call("soon", {}) + call("waits", {})), false);
  clearInterval(clock);
  assert.ok(ticks > 10, `${ticks} ticks`);
  assert.equal(over(), true);
  const results = agent.describe().steps[0].results.map((result) => [result.output, result.is_error]);
  assert.deepEqual(results.slice(0, 3), [['{"id":"call_0","stopped":false}', false], ["too slow", true], ["5", false]]);
  assert.match(results[3][0], /"ms" is missing/);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(agent.step(call("waits", { ms: 60 }) + call("fails", {}), { cancel: controller.signal }), cancelled);
  assert.equal(agent.describe().steps[1].results[0].output, '{"id":"call_4","stopped":true}');

  // An async tool may run an agent with tools of another set.
  const outer = new Tools().add(async () => {
    const inner = new Agent(slow);
    await inner.step(call("waits", { ms: 1 }));
    return inner.describe().steps[0].results[0].output;
  }, { name: "asks" });
  assert.equal((await outer.call("asks")).output, '{"id":"call_0","stopped":false}');
  agent.close();
  outer.close();
  slow.close();
}

// Steps with given outputs; tools of other threads are served, too, and the event loop goes on between them.
{
  const agent = new Agent(tools, null, { system: "Be brief.", tool_threads: 2 });
  agent.chat.add("user", "Is it warm?");
  assert.equal(await agent.step(call("weather", { city: "Rome" }) + call("weather", { city: "Oslo" })), false);
  const seen = [];
  assert.equal(await agent.step("It is.", { events: (event) => { seen.push(event); } }), true);
  assert.deepEqual(seen.map((event) => [event.kind, event.step, event.text]), [["step_began", 2, ""], ["step_ended", 2, "It is."]]);
  const record = agent.describe();
  assert.deepEqual([record.stop_reason, record.final_output], ["no_tools", "It is."]);
  assert.deepEqual(record.steps[0].results.map((result) => JSON.parse(result.output).city), ["Rome", "Oslo"]);
  assert.deepEqual(agent.chat.describe().messages[0], { role: "system", content: "Be brief." });
  await assert.rejects(agent.run("x"), (failure) => failure.code === -15);
  await assert.rejects(agent.step(), (failure) => failure.code === -15);
  agent.reset();
  assert.deepEqual(agent.describe().steps, []);
  agent.close();
  assert.throws(() => agent.describe(), (failure) => failure.code === -1);
  assert.throws(() => new Agent(tools, null, { no_such_option: 1 }), (failure) => failure.code === -1);
}

// Cancels and events that end a run.
{
  const agent = new Agent(tools);
  const began = (event) => event.kind !== "tool_began";
  await assert.rejects(agent.step(call("weather", { city: "Rome" }), { events: began }), cancelled);
  assert.equal(agent.describe().stop_reason, "cancelled");
  await assert.rejects(agent.step("x", { events: () => { throw new RangeError("mine"); } }), RangeError);
  await assert.rejects(agent.step("x", { events: (event) => { if (event.kind === "step_ended") throw new RangeError("last"); } }), /last/);
  await assert.rejects(agent.step("x", { cancel: AbortSignal.abort() }), cancelled);
  assert.equal(await agent.step("x"), true); // that signal was of the call before

  const controller = new AbortController();
  const cancel = new Cancel();
  let stop;
  tools.add((_, { id, stopped }) => {
    const before = stopped();
    stop();
    return `${id} ${before} ${stopped()}`;
  }, { name: "stops" });
  for (const [fire, how] of [[() => controller.abort(), controller.signal], [() => cancel.fire(), cancel]]) {
    stop = fire;
    agent.reset();
    await assert.rejects(agent.step(call("stops", {}) + call("weather", { city: "Rome" }), { cancel: how }), cancelled);
    const [stops, not] = agent.describe().steps[0].results;
    assert.equal(stops.output, "call_0 false true");
    assert.match(not.output, /not run/);
  }
  cancel.close();
  agent.close();
}

// An agent with a model. The event loop goes on while it answers.
{
  const model = new Model(`${root}/examples/demo_model/story.gguf`);
  const generator = new Generator(model);
  const none = new Tools();
  const agent = new Agent(none, generator, { sampling: { temperature: 0, max_new_tokens: 4 } });
  agent.chat.template("chatml");
  const seen = [];
  const result = await agent.run("Hi", { events: (event) => { seen.push(event); } });
  assert.ok(result.text.length > 0 && result.usage.completion === 4);
  assert.equal(seen.filter((event) => event.kind === "text").map((event) => event.text).join(""), result.text);
  assert.deepEqual(seen.filter((event) => event.kind.startsWith("step")).map((event) => event.kind), ["step_began", "step_ended"]);
  assert.equal(agent.describe().final_output, result.text);
  agent.chat.add("user", "And?");
  assert.equal(await agent.step(), true);
  agent.close();

  const long = new Agent(none, generator, { sampling: { ignore_eos: 1, max_new_tokens: 900 } });
  long.chat.template("chatml");
  const controller = new AbortController();
  const running = long.run("Hi", { cancel: controller.signal });
  await assert.rejects(long.run("Hi"), (failure) => failure.code === -10);
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(running, (failure) => cancelled(failure) && failure.result.tokens.length < 900);
  generator.close();
  assert.throws(() => new Agent(tools, generator), (failure) => failure.code === -15);
}
tools.close();
assert.throws(() => tools.add(weather, about), (failure) => failure.code === -1);

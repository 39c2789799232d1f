// SPDX-License-Identifier: Apache-2.0
// The scenarios of tests/bindings/scenarios.json that examples/node covers, and cancelling from the event loop. Run in a folder
// that has koffi and a copy of examples/node: scenarios_test.mjs SOURCE_DIR
import assert from "node:assert/strict";
import fs from "node:fs";

import { writeAdapter } from "./adapter_file.mjs";
import { Agent, Tools } from "./agents.mjs";
import { Cancel, Chat, ChatSession, GenerateError, Generator, Grammar, Matcher, Model, Session } from "./libgenerate.mjs";

const root = process.argv[2];
const table = JSON.parse(fs.readFileSync(`${root}/tests/bindings/scenarios.json`, "utf8"));
const model = new Model(`${root}/examples/demo_model/story.gguf`);

for (const one of table.texts) {
  const generator = new Generator(model, one.options);
  const [result] = await generator.batch([one.prompt], one.sampling);
  assert.deepEqual([result.text, result.tokens, result.finishReason, result.error],
    [one.text, one.tokens, one.finish_reason, null], one.name);
  generator.close();
}

const draft = new Model(`${root}/examples/demo_model/draft.gguf`);
for (const one of table.drafts) {
  const guesses = one.draft_length > 0 ? { draft, draftLength: one.draft_length } : {};
  const drafted = new Generator(model, { ...one.options, ...guesses });
  const [result] = await drafted.batch([one.prompt], one.sampling);
  assert.deepEqual([result.tokens, result.usage.drafted, result.usage.accepted, result.usage.completion],
    [one.tokens, one.drafted, one.accepted, one.tokens.length], one.name);
  const count = (key) => result.drafts.reduce((sum, step) => sum + step[key].length, 0);
  assert.deepEqual([count("tokens"), count("accepted")], [one.drafted, one.accepted], one.name);
  drafted.close();
}
draft.close();

const head = `${root}/examples/demo_model/eagle3.gguf`;
const byHead = new Generator(model, { eagle: head, draft_policy: "always" });
const without = new Generator(model, { eagle: "/no/such/head.gguf" });
assert.deepEqual([byHead.eagleEnabled(), byHead.eaglePath()], [true, head]);
assert.deepEqual([without.eagleEnabled(), without.eaglePath()], [false, "/no/such/head.gguf"]);
const [guessed] = await byHead.batch(["Once upon a time"], { temperature: 0, max_new_tokens: 24 });
const [wanted] = await without.batch(["Once upon a time"], { temperature: 0, max_new_tokens: 24 });
assert.deepEqual(guessed.tokens, wanted.tokens);
assert.ok(guessed.usage.accepted > 0 && wanted.usage.drafted === 0);
byHead.close();
without.close();
assert.throws(() => new Generator(model, { eagle: `${root}/examples/demo_model/story.gguf` }), /story\.gguf/);
assert.throws(() => new Generator(model, { draft }), (failure) => failure.code === -15);
const again = new Model(`${root}/examples/demo_model/story.gguf`, { backend: "cpu", gpu_layers: "auto", threads: 1 });
again.close();
assert.throws(() => new Model(`${root}/examples/demo_model/story.gguf`, { gpu_layers: "most" }),
  (failure) => failure.code === -1 && /most/.test(failure.message));

const generator = new Generator(model);
const session = new Session(generator);
const story = table.streams.find((one) => one.model === "");
const pieces = [];
for await (const { id, text, done } of session.stream(story.prompt, story.sampling)) pieces.push({ id, text, done });
assert.deepEqual(pieces, story.pieces);
session.close();

const sampled = table.texts[1];
await Promise.all(Array.from({ length: 64 }, async () => {
  const own = new Session(generator);
  const tokens = [];
  for await (const token of own.stream(sampled.prompt, sampled.sampling)) tokens.push(token.id);
  assert.deepEqual(tokens.filter((id) => id >= 0).slice(0, sampled.tokens.length), sampled.tokens);
  own.close();
}));

// A conversation: the pieces of a stream together are its text.
{
  const chat = new Chat().template("chatml").add("system", "You tell stories.");
  const session = new ChatSession(generator, chat);
  let [text, pieces] = ["", ""];
  for await (const token of session.stream("A story!", { temperature: 0, max_new_tokens: 12 })) {
    text += token.text;
    pieces += token.pieces.map((piece) => piece.text).join("");
  }
  assert.ok(text.length > 0);
  assert.equal(pieces, text);
  assert.deepEqual(chat.describe().messages.at(-1), { role: "assistant", content: text });
  session.close();
  chat.close();
}

for (const row of table.tools.rows) {
  const cancel = new Cancel();
  const functions = {
    add: ({ a, b }) => String(a + b),
    fail: () => { throw new Error("no"); },
    echo: ({ text }) => text,
    stop: (_, { stopped }) => {
      cancel.fire();
      return stopped() ? "told" : "not told";
    },
  };
  const tools = new Tools();
  for (const [name, schema] of Object.entries(table.tools.functions)) {
    tools.add(functions[name], { name, ...(schema ? { schema: JSON.parse(schema) } : {}) });
  }
  const agent = new Agent(tools, null, row.options);
  for (const { output, ends } of row.steps) {
    const got = await agent.step(output, { cancel }).then(Number, (failure) => failure.code);
    assert.equal(got, ends, `${row.name}: ${output}`);
  }
  assert.deepEqual(agent.describe(), row.record, row.name);
  agent.close();
  tools.close();
  cancel.close();
}

// Settings that can be given several times are lists, and tokens come with the likeliest others.
{
  const text = async (settings) => {
    const session = new Session(generator);
    let said = "";
    for await (const token of session.stream("Once upon a time", { temperature: 0, max_new_tokens: 20, ...settings })) {
      if (settings.logprobs && !token.done) {
        assert.equal(token.top.length, settings.logprobs);
        assert.deepEqual({ ...token.top[0] }, { id: token.id, logprob: token.logprob });
      }
      said += token.text;
    }
    session.close();
    return said;
  };
  const plain = await text({ logprobs: 3 });
  const stops = [plain.slice(9, 12), plain.slice(4, 6)];
  assert.equal(await text({ stop_string: stops }), plain.slice(0, plain.indexOf(stops[1])));
}

// Adapters by name, one or several with scales.
{
  writeAdapter("adapter.gguf", "blk.0.attn_output.weight", 256, 2);
  model.loadAdapter("adapter.gguf", "one");
  model.loadAdapter("adapter.gguf", "hälf", 0.5);
  assert.deepEqual(model.adapters(), ["one", "hälf"]);
  const text = async (settings) => {
    const [result] = await generator.batch(["Once upon"], { temperature: 0, max_new_tokens: 20, ...settings });
    return result.error?.message ?? result.text;
  };
  const [base, one, half] = [await text({}), await text({ adapter: "one" }), await text({ adapter: "hälf" })];
  assert.equal(new Set([base, one, half]).size, 3);
  assert.equal(await text({ adapters: { one: 0.5 } }), half);
  assert.equal(await text({ adapters: { "hälf": 2, one: 0 } }), one);
  model.unloadAdapter("one");
  assert.deepEqual(model.adapters(), ["hälf"]);
  assert.match(await text({ adapter: "one" }), /one/);
  assert.throws(() => model.unloadAdapter("one"), (failure) => failure.code === -1);
  assert.throws(() => model.loadAdapter(`${root}/examples/demo_model/story.gguf`, "one"), /general.type/);
  assert.throws(() => model.setAdapterBudget(-1), (failure) => failure.code === -1);
  model.setAdapterBudget(1);
  assert.deepEqual(model.adapters(), ["hälf"]);
  model.setAdapterBudget(0);
  model.unloadAdapter("hälf");
}

const grammar = Grammar.regex("(The|A) (cat|dog) (ran|sat)\\.");
for (let seed = 0; seed < 8; ++seed) {
  const [result] = await generator.batch(["Once"], { grammar, seed, temperature: 3, max_new_tokens: 40 });
  assert.match(result.text, /^(The|A) (cat|dog) (ran|sat)\.$/);
  assert.equal(result.usage.grammar_complete, 1);
}
assert.equal((await generator.batch(["Once"], { max_new_tokens: 1 }))[0].usage.grammar_complete, -1);
grammar.close();
await assert.rejects(generator.batch(["Once"], { grammar }), (failure) => failure.code === -15);
assert.throws(() => Grammar.gbnf("root ::= a\na ::= (\"b\""),
  (failure) => failure.code === -12 && /line 2, column [0-9]+/.test(failure.message));
assert.throws(() => Grammar.anyJson({ max_edges: 3 }), (failure) => failure.code === -12);
Grammar.anyJson().close();
assert.throws(() => Grammar.lark("start: a\na: (\"b\""),
  (failure) => failure.code === -12 && /line 2, column 4/.test(failure.message));
{
  const sum = Grammar.lark('start: N ("+" N)*\nN: /[0-9]+/\n%ignore " "');
  const matcher = new Matcher(sum, model);
  matcher.accept("12 + 3");
  assert.throws(() => matcher.accept("x"));
  matcher.close();
  sum.close();
}
Grammar.tags({ tags: [{ begin: "<é>", regex: "[0-9]+", end: "." }] }).close();
assert.throws(() => Grammar.tags({ tags: 1 }), (failure) => failure.code === -12);

{
  const yes = Grammar.gbnf('root ::= "yes" | "no"');
  const matcher = new Matcher(yes, model);
  const valid = () => String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte)
    .filter((byte) => Matcher.has(matcher.validBytes(), byte)));
  assert.equal(valid(), "ny");
  matcher.accept("y");
  const fork = matcher.fork();
  fork.accept(Buffer.from("es"));
  assert.deepEqual([fork.complete(), matcher.complete(), valid()], [true, false, "e"]);
  fork.close();
  const mask = matcher.mask();
  assert.ok(mask.some((word) => word !== 0));
  for (let token = 0; token < 4096; ++token) {
    if (Matcher.has(mask, token)) {
      matcher.acceptToken(token);
      matcher.rollback(1);
    } else {
      assert.throws(() => matcher.acceptToken(token), (failure) => failure.code === -12);
    }
  }
  assert.throws(() => matcher.accept("n"), (failure) => failure.code === -12);
  assert.equal(matcher.minTokens(), 1);
  matcher.reset();
  assert.deepEqual([valid(), matcher.forced()], ["ny", []]);
  matcher.accept("ye");
  const [result] = await generator.batch(["Once"], { grammar: matcher, max_new_tokens: 20 });
  assert.equal(result.text, "s");
  matcher.close();
  yes.close();
  assert.throws(() => matcher.mask(), (failure) => failure.code === -1);
  await assert.rejects(generator.batch(["Once"], { grammar: matcher }), (failure) => failure.code === -15);
}

const cancel = new Cancel();
const long = new Session(generator);
setTimeout(() => cancel.fire(), 50);
await assert.rejects(async () => {
  for await (const _ of long.stream("a", { cancel, ignore_eos: 1, max_new_tokens: 900 }));
}, (failure) => failure instanceof GenerateError && failure.code === -11 && failure.result.tokens.length < 900);
cancel.close();
assert.throws(() => new Model("/no/such/file"), (failure) => failure.code === -3 && failure.message.includes("/no/such"));
// Everything else is left open.

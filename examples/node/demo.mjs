#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Streams a story, stops another one after a moment, and runs three at once: demo.mjs MODEL.gguf
import { Cancel, Chat, ChatSession, GenerateError, Generator, Model, Session } from "./libgenerate.mjs";

if (process.argv.length !== 3) {
  console.error("usage: demo.mjs MODEL.gguf");
  process.exit(2);
}
const model = new Model(process.argv[2]);
const generator = new Generator(model);

const session = new Session(generator);
for await (const token of session.stream("Once upon a time", { temperature: 0, max_new_tokens: 40 })) {
  process.stdout.write(token.text);
}
console.log();

const chat = new Chat().add("system", "You tell stories.");
const talk = new ChatSession(generator, chat);
for (const message of ["Tell me of a dog.", "And then?"]) {
  for await (const token of talk.stream(message, { temperature: 0, max_new_tokens: 20 })) process.stdout.write(token.text);
  console.log();
}
talk.close();
chat.close();

const cancel = new Cancel();
setTimeout(() => cancel.fire(), 100);
try {
  for await (const _ of session.stream(" The dog", { cancel, temperature: 0.8, max_new_tokens: 1000, ignore_eos: 1 }));
} catch (stopped) {
  if (!(stopped instanceof GenerateError)) throw stopped;
  console.log(`stopped: ${stopped.message}; ${stopped.result.tokens.length} tokens by then`);
}
cancel.close();
session.close();

const prompts = ["The cat", "A girl", "In the garden"];
for (const result of await generator.batch(prompts, { temperature: 0.7, seed: 1, max_new_tokens: 20 })) {
  console.log(result.error?.message ?? result.text.trim().replaceAll("\n", " "));
}
generator.close();
model.close();

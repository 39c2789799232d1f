// SPDX-License-Identifier: Apache-2.0
// libgenerate from Node through koffi (npm install koffi), with only the C header: enough of it to load a model,
// stream, cancel and run batches. The library is found by GENERATE_LIBRARY or as libgenerate.so.0.
//
// Pieces are awaited: the model runs on koffi's threads, so the event loop goes on and a cancel can come from it.
import koffi from "koffi";

const lib = koffi.load(process.env.GENERATE_LIBRARY ?? "libgenerate.so.0");

const GenError = koffi.struct("gen_error", { code: "int32_t", message: koffi.array("char", 1020) });
const GenToken = koffi.struct("gen_token", {
  struct_size: "uint32_t", id: "int32_t", text: "void *", text_len: "size_t", logprob: "float", done: "int32_t",
  finish_reason: "int32_t", index: "int32_t", top: "void *", top_count: "int32_t", piece_count: "int32_t", pieces: "void *",
});
const GenPiece = koffi.struct("gen_piece", { kind: "int32_t", call: "int32_t", text: "void *", len: "size_t" });
const GenTokenLogprob = koffi.struct("gen_token_logprob", { id: "int32_t", logprob: "float" });

const FINISH = ["none", "stop_token", "stop_string", "length", "context_full", "grammar_complete", "grammar_dead_end",
  "cancelled", "callback", "error"];

/** What a piece of an answer is. */
const PIECES = ["text", "reasoning", "call_name", "arguments", "call_end", "call_broken"];

const USAGE = ["prompt", "prompt_cached", "prompt_evaluated", "completion", "dropped", "drafted", "accepted", "grammar_complete"];

/** A call failed: `code` is its status, `result` what a generation had made until then. */
export class GenerateError extends Error {
  constructor({ code, message }, result) {
    super(message);
    this.code = code;
    this.result = result;
  }
}

/** A function that returns a status and takes a gen_error last, as one that throws; `.later` gives a promise. */
function fallible(name, args) {
  const native = lib.func(`int32_t ${name}(${args}, _Out_ gen_error *error)`);
  const call = (...values) => {
    const error = {};
    if (native(...values, error)) throw new GenerateError(error);
  };
  call.later = (...values) => new Promise((resolve, reject) => {
    const error = {};
    native.async(...values, error, (broken, status) => {
      if (broken || status) reject(broken ?? new GenerateError(error));
      else resolve();
    });
  });
  return call;
}

const c = {
  modelLoad: fallible("gen_model_load", "const char *path, void *options, _Out_ void **out"),
  modelFree: lib.func("void gen_model_free(void *model)"),
  modelOptionsNew: fallible("gen_model_options_new", "_Out_ void **out"),
  modelOptionsSet: fallible("gen_model_options_set", "void *options, const char *key, const char *value"),
  modelOptionsFree: lib.func("void gen_model_options_free(void *options)"),
  adapterLoad: fallible("gen_adapter_load", "void *model, const char *path, const char *name, float scale"),
  adapterUnload: fallible("gen_adapter_unload", "void *model, const char *name"),
  adapterSetBudget: fallible("gen_adapter_set_budget", "void *model, int32_t max_memory_mb"),
  adapterCount: lib.func("size_t gen_adapter_count(void *model)"),
  adapterName: fallible("gen_adapter_name", "void *model, size_t index, _Out_ uint8_t *buf, size_t capacity, _Out_ size_t *n"),
  optionsNew: fallible("gen_options_new", "_Out_ void **out"),
  optionsSet: fallible("gen_options_set", "void *options, const char *key, const char *value"),
  optionsSetDraft: fallible("gen_options_set_speculative_draft", "void *options, void *model, int32_t length"),
  optionsSetEagle: fallible("gen_options_set_eagle", "void *options, const char *path"),
  optionsFree: lib.func("void gen_options_free(void *options)"),
  eagleEnabled: lib.func("int gen_generator_eagle_enabled(void *generator)"),
  eaglePath: fallible("gen_generator_eagle_path", "void *generator, _Out_ uint8_t *buf, size_t capacity, _Out_ size_t *n"),
  create: fallible("gen_create", "void *model, void *options, _Out_ void **out"),
  free: lib.func("void gen_free(void *generator)"),
  sessionNew: fallible("gen_session_new", "void *generator, _Out_ void **out"),
  sessionFree: lib.func("void gen_session_free(void *session)"),
  samplingNew: fallible("gen_sampling_new", "_Out_ void **out"),
  samplingSet: fallible("gen_sampling_set", "void *sampling, const char *key, const char *value"),
  samplingAddAdapter: fallible("gen_sampling_add_adapter", "void *sampling, const char *name, float scale"),
  samplingSetCancel: fallible("gen_sampling_set_cancel", "void *sampling, void *cancel"),
  samplingSetGrammar: fallible("gen_sampling_set_grammar", "void *sampling, void *grammar"),
  samplingSetMatcher: fallible("gen_sampling_set_grammar_matcher", "void *sampling, void *matcher"),
  samplingFree: lib.func("void gen_sampling_free(void *sampling)"),
  grammarOptionsNew: fallible("gen_grammar_options_new", "_Out_ void **out"),
  grammarOptionsSet: fallible("gen_grammar_options_set", "void *options, const char *key, const char *value"),
  grammarOptionsAddSchema: fallible("gen_grammar_options_add_schema",
    "void *options, const char *uri, const char *text, size_t len"),
  grammarOptionsFree: lib.func("void gen_grammar_options_free(void *options)"),
  grammarFromGbnf: fallible("gen_grammar_from_gbnf", "const uint8_t *text, size_t len, void *options, _Out_ void **out"),
  grammarFromLark: fallible("gen_grammar_from_lark", "const uint8_t *text, size_t len, void *options, _Out_ void **out"),
  grammarFromRegex: fallible("gen_grammar_from_regex",
    "const uint8_t *pattern, size_t len, void *options, _Out_ void **out"),
  grammarFromTags: fallible("gen_grammar_from_tags", "const uint8_t *text, size_t len, void *options, _Out_ void **out"),
  grammarFromJsonSchema: fallible("gen_grammar_from_json_schema",
    "const uint8_t *schema, size_t len, void *options, _Out_ void **out"),
  grammarAnyJson: fallible("gen_grammar_any_json", "void *options, _Out_ void **out"),
  grammarFree: lib.func("void gen_grammar_free(void *grammar)"),
  modelTokenizer: lib.func("void *gen_model_tokenizer(void *model)"),
  vocabSize: lib.func("int32_t gen_tokenizer_vocab_size(void *tokenizer)"),
  matcherNew: fallible("gen_grammar_matcher_new", "void *grammar, void *tokenizer, _Out_ void **out"),
  matcherAcceptToken: fallible("gen_grammar_matcher_accept_token", "void *matcher, int32_t token"),
  matcherAcceptBytes: fallible("gen_grammar_matcher_accept_bytes", "void *matcher, const uint8_t *bytes, size_t len"),
  matcherMask: fallible("gen_grammar_matcher_mask", "void *matcher, _Out_ uint32_t *bits, size_t words"),
  matcherValidBytes: fallible("gen_grammar_matcher_valid_bytes", "void *matcher, _Out_ uint32_t *bits"),
  matcherRollback: fallible("gen_grammar_matcher_rollback", "void *matcher, size_t n"),
  matcherFork: fallible("gen_grammar_matcher_fork", "void *matcher, _Out_ void **out"),
  matcherComplete: lib.func("int32_t gen_grammar_matcher_complete(void *matcher)"),
  matcherReset: fallible("gen_grammar_matcher_reset", "void *matcher"),
  matcherForced: fallible("gen_grammar_matcher_forced", "void *matcher, _Out_ int32_t *ids, size_t capacity, _Out_ size_t *n"),
  matcherMinTokens: fallible("gen_grammar_matcher_min_tokens", "void *matcher, _Out_ int64_t *n"),
  matcherFree: lib.func("void gen_grammar_matcher_free(void *matcher)"),
  cancelNew: fallible("gen_cancel_new", "_Out_ void **out"),
  cancelFire: lib.func("void gen_cancel_fire(void *cancel)"),
  cancelFree: lib.func("void gen_cancel_free(void *cancel)"),
  streamOpen: fallible("gen_stream_open",
    "void *session, const uint8_t *prompt, size_t len, void *sampling, _Out_ void **out"),
  chatNew: fallible("gen_chat_new", "_Out_ void **out"),
  chatAdd: fallible("gen_chat_add", "void *chat, const char *role, const uint8_t *text, size_t len"),
  chatAddTool: fallible("gen_chat_add_tool", "void *chat, const uint8_t *text, size_t len"),
  chatAddToolResult: fallible("gen_chat_add_tool_result", "void *chat, const char *id, const char *name, const uint8_t *text, size_t len"),
  chatSet: fallible("gen_chat_set", "void *chat, const char *key, const char *value"),
  chatSetTemplate: fallible("gen_chat_set_template", "void *chat, const uint8_t *text, size_t len"),
  chatDescribe: fallible("gen_chat_describe", "void *chat, _Out_ uint8_t *buf, size_t capacity, _Out_ size_t *n"),
  chatFree: lib.func("void gen_chat_free(void *chat)"),
  chatSessionNew: fallible("gen_chat_session_new", "void *generator, void *chat, _Out_ void **out"),
  chatSessionOpenStream: fallible("gen_chat_session_open_stream",
    "void *session, const uint8_t *text, size_t len, void *sampling, _Out_ void **out"),
  chatSessionEndReasoning: fallible("gen_chat_session_end_reasoning", "void *session"),
  chatSessionFree: lib.func("void gen_chat_session_free(void *session)"),
  streamNext: fallible("gen_stream_next", "void *stream, _Out_ gen_token **token"),
  streamResult: fallible("gen_stream_result", "void *stream, _Out_ void **out"),
  streamClose: lib.func("void gen_stream_close(void *stream)"),
  requestNew: fallible("gen_request_new", "_Out_ void **out"),
  requestSetPrompt: fallible("gen_request_set_prompt", "void *request, const uint8_t *prompt, size_t len"),
  requestSetSampling: fallible("gen_request_set_sampling", "void *request, void *sampling"),
  requestFree: lib.func("void gen_request_free(void *request)"),
  batchGenerate: fallible("gen_batch_generate", "void *generator, void **requests, size_t count, void **results"),
  resultText: lib.func("void *gen_result_text(void *result, _Out_ size_t *n)"),
  resultTokens: lib.func("void *gen_result_tokens(void *result, _Out_ size_t *n)"),
  resultReason: lib.func("int32_t gen_result_finish_reason(void *result)"),
  resultDrafts: fallible("gen_result_drafts", "void *result, _Out_ uint8_t *buf, size_t capacity, _Out_ size_t *n"),
  resultAnswer: fallible("gen_result_answer", "void *result, _Out_ uint8_t *buf, size_t capacity, _Out_ size_t *n"),
  resultUsage: fallible("gen_result_usage", "void *result, const char *key, _Out_ int64_t *value"),
  resultError: lib.func("gen_error *gen_result_error(void *result)"),
  resultFree: lib.func("void gen_result_free(void *result)"),
};

function make(call, ...args) {
  const out = [null];
  call(...args, out);
  return out[0];
}

const bytesAt = (pointer, n) => (n > 0 ? Buffer.from(koffi.decode(pointer, koffi.array("uint8_t", Number(n)))) : Buffer.alloc(0));

/** The JSON that a call fills a buffer with. */
function described(call, handle) {
  const n = [0];
  call(handle, null, 0, n);
  const text = Buffer.alloc(Number(n[0]) + 1);
  call(handle, text, text.length, n);
  return JSON.parse(text.toString("utf8", 0, Number(n[0])));
}

/** Of each pass that had some: index, drafter, tokens, parents, grades, accepted. */
function drafts(handle) {
  try {
    return described(c.resultDrafts, handle);
  } catch (failure) {
    if (failure instanceof GenerateError) return []; // a pass had no memory for its own
    throw failure;
  }
}

/** The content of a gen_result as an object; the handle is freed. */
function taken(handle) {
  const n = [0];
  const text = bytesAt(c.resultText(handle, n), n[0]).toString();
  const ids = c.resultTokens(handle, n);
  const tokens = n[0] > 0 ? [...koffi.decode(ids, koffi.array("int32_t", Number(n[0])))] : [];
  const failure = c.resultError(handle);
  const usage = {};
  for (const key of USAGE) {
    const value = [0];
    c.resultUsage(handle, key, value);
    usage[key] = Number(value[0]);
  }
  const result = {
    text, tokens, finishReason: FINISH[c.resultReason(handle)],
    error: failure ? new GenerateError(koffi.decode(failure, GenError)) : null, usage,
    drafts: usage.drafted > 0 ? drafts(handle) : [],
    // What a chat session read: text, reasoning, calls (id, name, arguments), faults.
    answer: described(c.resultAnswer, handle),
  };
  c.resultFree(handle);
  return result;
}

export class Handle {
  constructor(handle, free) {
    this.handle = handle;
    this.free = free;
  }
  close() {
    const handle = this.handle;
    this.handle = null;
    if (handle) this.free(handle);
  }
}

/**
 * A language of allowed texts, as in `{ grammar: Grammar.regex("[0-9]+") }`; options are those of gen_grammar_options_describe,
 * and `documents`: schemas by URI, to which references in jsonSchema may point.
 */
export class Grammar extends Handle {
  constructor(from, { documents = {}, ...settings } = {}, ...text) {
    const options = new Handle(make(c.grammarOptionsNew), c.grammarOptionsFree);
    try {
      for (const [uri, schema] of Object.entries(documents)) {
        const bytes = Buffer.from(typeof schema === "string" ? schema : JSON.stringify(schema));
        c.grammarOptionsAddSchema(options.handle, uri, bytes, bytes.length);
      }
      for (const [key, value] of Object.entries(settings)) c.grammarOptionsSet(options.handle, key, String(value));
      super(make(from, ...text, options.handle), c.grammarFree);
    } finally {
      options.close();
    }
  }
  static gbnf(text, settings) {
    const bytes = Buffer.from(text);
    return new Grammar(c.grammarFromGbnf, settings, bytes, bytes.length);
  }
  // A Lark file in llguidance's dialect.
  static lark(text, settings) {
    const bytes = Buffer.from(text);
    return new Grammar(c.grammarFromLark, settings, bytes, bytes.length);
  }
  static regex(pattern, settings) {
    const bytes = Buffer.from(pattern);
    return new Grammar(c.grammarFromRegex, settings, bytes, bytes.length);
  }
  // Free text with constrained sections, from an object as for gen_grammar_from_tags of grammar.h.
  static tags(tags, settings) {
    const bytes = Buffer.from(JSON.stringify(tags));
    return new Grammar(c.grammarFromTags, settings, bytes, bytes.length);
  }
  /** `schema`: its text, or an object. */
  static jsonSchema(schema, settings) {
    const bytes = Buffer.from(typeof schema === "string" ? schema : JSON.stringify(schema));
    return new Grammar(c.grammarFromJsonSchema, settings, bytes, bytes.length);
  }
  static anyJson(settings) { return new Grammar(c.grammarAnyJson, settings); }
}

/** The position of a text in a grammar, over the tokens of a model. Sets are Uint32Arrays: see `has`. */
export class Matcher extends Handle {
  #words;
  constructor(grammar, model) {
    if (grammar instanceof Matcher) {
      super(make(c.matcherFork, grammar.handle), c.matcherFree);
      this.#words = grammar.#words;
    } else {
      const tokenizer = c.modelTokenizer(model.handle);
      super(make(c.matcherNew, grammar.handle, tokenizer), c.matcherFree);
      this.#words = Math.ceil(c.vocabSize(tokenizer) / 32);
    }
  }
  acceptToken(token) { c.matcherAcceptToken(this.handle, token); }
  /** Text, or bytes that need not be whole characters. */
  accept(text) {
    const bytes = Buffer.from(text);
    c.matcherAcceptBytes(this.handle, bytes, bytes.length);
  }
  mask() {
    const bits = new Uint32Array(this.#words);
    c.matcherMask(this.handle, bits, bits.length);
    return bits;
  }
  validBytes() {
    const bits = new Uint32Array(8);
    c.matcherValidBytes(this.handle, bits);
    return bits;
  }
  /** Whether a set, of mask() or validBytes(), has a token or byte. */
  static has(bits, n) { return (bits[n >>> 5] >>> (n & 31) & 1) === 1; }
  rollback(n) { c.matcherRollback(this.handle, n); }
  fork() { return new Matcher(this); }
  complete() { return c.matcherComplete(this.handle) > 0; }
  reset() { c.matcherReset(this.handle); }
  /** The next tokens that are each the only one allowed; for a grammar with `forced_tokens: "tokenizer"`, those into which
   * the tokenizer splits the forced bytes. */
  forced() {
    const n = [0];
    const ids = new Int32Array(1024);  // there are never more
    c.matcherForced(this.handle, ids, ids.length, n);
    return [...ids.subarray(0, Number(n[0]))];
  }
  /** Minimum number of tokens until the text may end; -1 if none are known to complete it. */
  minTokens() {
    const n = [0];
    c.matcherMinTokens(this.handle, n);
    return Number(n[0]);
  }
}

function samplingOf({ cancel, grammar, adapters = {}, ...settings }) {
  // The library would take a closed one for none at all.
  if (grammar && !grammar.handle) throw new GenerateError({ code: -15, message: "the grammar is closed" });
  const sampling = new Handle(make(c.samplingNew), c.samplingFree);
  try {
    for (const [key, values] of Object.entries(settings)) {
      for (const value of [values].flat()) c.samplingSet(sampling.handle, key, String(value));
    }
    for (const [name, scale] of Object.entries(adapters)) c.samplingAddAdapter(sampling.handle, name, scale);
    if (grammar instanceof Matcher) c.samplingSetMatcher(sampling.handle, grammar.handle);
    else if (grammar) c.samplingSetGrammar(sampling.handle, grammar.handle);
    if (cancel) c.samplingSetCancel(sampling.handle, cancel.handle);
    return sampling;
  } catch (failure) {
    sampling.close();
    throw failure;
  }
}

export class Cancel extends Handle {
  constructor() { super(make(c.cancelNew), c.cancelFree); }
  fire() { c.cancelFire(this.handle); }
}

export class Model extends Handle {
  /** Settings are those of gen_model_options_describe: new Model("…", { backend: "cuda", gpu_layers: "auto" }). */
  constructor(path, settings = {}) {
    const options = new Handle(make(c.modelOptionsNew), c.modelOptionsFree);
    try {
      for (const [key, value] of Object.entries(settings)) c.modelOptionsSet(options.handle, key, String(value));
      super(make(c.modelLoad, path, options.handle), c.modelFree);
    } finally {
      options.close();
    }
  }

  /** A low-rank adapter (LoRA), a GGUF file, in the place of one of the same name; `scale` multiplies that of calls, which use it
   * by `{ adapter: "name" }`, or several by `{ adapters: { name: 1, other: 0.5 } }`. */
  loadAdapter(path, name, scale = 1) { c.adapterLoad(this.handle, path, name, scale); }
  /** Calls that use it go on with it. */
  unloadAdapter(name) { c.adapterUnload(this.handle, name); }
  /** Limits their memory to MiB, 0 for no limit: the least recently used names are forgotten. */
  setAdapterBudget(maxMemoryMb) { c.adapterSetBudget(this.handle, maxMemoryMb); }
  /** Names of the loaded ones, oldest first. */
  adapters() {
    const names = [];
    for (let index = 0; index < c.adapterCount(this.handle); ++index) {
      const name = Buffer.alloc(256);
      const n = [0];
      c.adapterName(this.handle, index, name, name.length, n);
      names.push(name.toString("utf8", 0, Number(n[0])));
    }
    return names;
  }
}

/**
 * Settings are those of gen_options_describe. `draft`, a smaller Model, drafts up to `draftLength` tokens ahead. Neither that
 * nor `prompt_lookup: "3,8"`, `suffix_lookup: 8` or `eagle`, the path of an EAGLE head (`draft_heads: "auto,8"` for a
 * length other than 4), changes the text; a result's `usage` has `drafted` and `accepted`.
 */
export class Generator extends Handle {
  constructor(model, { draft, draftLength = 4, eagle, ...settings } = {}) {
    const options = new Handle(make(c.optionsNew), c.optionsFree);
    try {
      // The library would take a closed one for none at all.
      if (draft && !draft.handle) throw new GenerateError({ code: -15, message: "the draft model is closed" });
      if (draft) c.optionsSetDraft(options.handle, draft.handle, draftLength);
      if (eagle) c.optionsSetEagle(options.handle, String(eagle));
      for (const [key, value] of Object.entries(settings)) c.optionsSet(options.handle, key, String(value));
      super(make(c.create, model.handle, options.handle), c.free);
    } finally {
      options.close();
    }
  }

  /** Whether the head of `eagle` drafts: its file was there. */
  eagleEnabled() { return c.eagleEnabled(this.handle) !== 0; }
  /** The path that `eagle` was; "" if there was none. */
  eaglePath() {
    const n = [0];
    c.eaglePath(this.handle, null, 0, n);
    const path = Buffer.alloc(Number(n[0]) + 1);
    c.eaglePath(this.handle, path, path.length, n);
    return path.toString("utf8", 0, Number(n[0]));
  }

  /** All prompts together: a promise of a result for each, with its own error. */
  async batch(prompts, settings = {}) {
    const sampling = samplingOf(settings);
    const requests = [];
    try {
      for (const prompt of prompts) {
        requests.push(make(c.requestNew));
        const bytes = Buffer.from(prompt);
        c.requestSetPrompt(requests.at(-1), bytes, bytes.length);
        c.requestSetSampling(requests.at(-1), sampling.handle);
      }
      const results = koffi.alloc("void *", prompts.length);
      try {
        await c.batchGenerate.later(this.handle, requests, prompts.length, results);
        return [...koffi.decode(results, koffi.array("void *", prompts.length))].map(taken);
      } finally {
        koffi.free(results);
      }
    } finally {
      requests.forEach(c.requestFree);
      sampling.close();
    }
  }
}

export class Session extends Handle {
  constructor(generator) { super(make(c.sessionNew, generator.handle), c.sessionFree); }

  /** Tokens as they are generated, for `for await`; leaving the loop ends the generation. Settings are those of gen_sampling_describe: a list sets
   * one that can be given several times, `{ stop_string: ["END", "\n\n"] }`. */
  stream(prompt, settings = {}) { return pulled(c.streamOpen, this, prompt, settings); }
}

/** Messages, rendered by the chat template of a model. */
export class Chat extends Handle {
  constructor(handle = make(c.chatNew)) { super(handle, c.chatFree); }

  add(role, text) {
    const bytes = Buffer.from(text);
    c.chatAdd(this.handle, role, bytes, bytes.length);
    return this;
  }

  /** A tool that the model may call, as an object in the form of OpenAI's API. */
  addTool(tool) {
    const bytes = Buffer.from(JSON.stringify(tool));
    c.chatAddTool(this.handle, bytes, bytes.length);
    return this;
  }

  addToolResult(text, { name = "", id = "" } = {}) {
    const bytes = Buffer.from(text);
    c.chatAddToolResult(this.handle, id, name, bytes, bytes.length);
    return this;
  }

  /** Another template than the model's, or the name of a built-in form. */
  template(text) {
    const bytes = Buffer.from(text);
    c.chatSetTemplate(this.handle, bytes, bytes.length);
    return this;
  }

  /** How a ChatSession deals with answers: { tool_choice: "required", reasoning_budget: 200 }; see docs/options.md. */
  set(options) {
    for (const [key, value] of Object.entries(options)) {
      c.chatSet(this.handle, key, String(typeof value === "boolean" ? Number(value) : value));
    }
    return this;
  }

  /** Messages, tools and variables. */
  describe() { return described(c.chatDescribe, this.handle); }
}

/** A conversation and the session that holds it. */
export class ChatSession extends Handle {
  constructor(generator, chat) { super(make(c.chatSessionNew, generator.handle, chat.handle), c.chatSessionFree); }

  /**
   * Adds a message of the user, and returns tokens of the answer as they are generated; the answer is in the conversation when
   * the loop ends or is left. Null adds no message: it continues an answer that was cut.
   */
  stream(text, settings = {}) { return pulled(c.chatSessionOpenStream, this, text, settings); }

  /** Makes the model end its reasoning and answer, while a stream runs; needs set({ reasoning_control: true }) of its Chat. */
  endReasoning() { c.chatSessionEndReasoning(this.handle); }
}

async function *pulled(open, owner, text, settings) {
  const sampling = samplingOf(settings);
  const bytes = text === null ? null : Buffer.from(text);
  let stream;
  try {
    stream = new Handle(make(open, owner.handle, bytes, bytes?.length ?? 0, sampling.handle), c.streamClose);
    for (;;) {
      const out = [null];
      try {
        await c.streamNext.later(stream.handle, out);
      } catch (failure) {
        if (failure instanceof GenerateError) failure.result = taken(make(c.streamResult, stream.handle));
        throw failure;
      }
      if (!out[0]) return;
      const token = koffi.decode(out[0], GenToken);
      yield {
        id: token.id, text: bytesAt(token.text, token.text_len).toString(), logprob: token.logprob,
        done: token.done !== 0, finishReason: FINISH[token.finish_reason],
        // The most probable tokens here, best first, as many as `logprobs` asks for.
        top: token.top_count === 0 ? [] : [...koffi.decode(token.top, GenTokenLogprob, token.top_count)],
        // Of a chat session: what is text, reasoning or part of a call.
        pieces: token.piece_count === 0 ? [] : koffi.decode(token.pieces, koffi.array(GenPiece, token.piece_count)).map(
          (piece) => ({ kind: PIECES[piece.kind], call: piece.call, text: bytesAt(piece.text, piece.len).toString() })),
      };
    }
  } finally {
    stream?.close();
    sampling.close();
  }
}

/** What agents.mjs calls C with. */
export const internals = { bytesAt, described, fallible, koffi, lib, make, PIECES, samplingOf, taken };

// SPDX-License-Identifier: Apache-2.0
// The C API as C++17 classes: handles that free themselves, failures as exceptions, pieces in a
// range-for. Header only; a program that uses it links the same library. Every class returns its
// handle with get(), for functions that have no method here.
//
//   gen::Model model("model.gguf");
//   gen::Generator generator(model);
//   gen::Session session(generator);
//   for (const gen::Token& token : session.stream("Once upon a time", gen::Sampling().temperature(0.8)))
//     std::cout << token.text << std::flush;
//
// Threads: as for the handles in generate.h. Moved-from objects hold NULL, which functions refuse
// as an argument.
#ifndef GENERATE_GENERATE_HPP
#define GENERATE_GENERATE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "generate.h"

namespace gen {

/// A failed call: a GEN_ERROR_… status and a line that names the value and the limit.
class Error : public std::runtime_error {
 public:
  Error(gen_status code, const char *message, std::shared_ptr<const gen_result> partial = nullptr)
      : std::runtime_error(message), code_(code), partial_(std::move(partial)) {}
  gen_status code() const noexcept { return code_; }
  const char *name() const noexcept { return gen_status_name(code_); }
  /// What a generation had produced when it failed or was cancelled; NULL for other calls. Lives as
  /// long as the error.
  const gen_result *partial() const noexcept { return partial_.get(); }

 private:
  gen_status code_;
  std::shared_ptr<const gen_result> partial_;
};

namespace detail {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T *handle) const noexcept {
    Free(handle);
  }
};

template <class Function, class... Args>
void call(Function function, Args... args) {
  gen_error error;
  if (const gen_status status = function(args..., &error)) throw Error(status, error.message);
}

/// An empty view may have a null address, which the library would refuse.
inline const char *data(std::string_view text) noexcept { return text.data() != nullptr ? text.data() : ""; }

/// The object that a function(args…, T **out, gen_error *) makes.
template <class T, class Function, class... Args>
T *made(Function function, Args... args) {
  T *out = nullptr;
  call(function, args..., &out);
  return out;
}

/// The text that a function(args…, buf, capacity, n, gen_error *) writes.
template <class Buffer, class Function, class... Args>
Buffer filled(Function function, Args... args) {
  Buffer buffer;
  size_t n = 0;
  call(function, args..., nullptr, size_t{0}, &n);
  do {  // the text may grow between the two calls
    const size_t room = n + (std::is_same_v<Buffer, std::string> ? 1 : 0);
    buffer.resize(room);
    gen_error error;
    const gen_status status = function(args..., buffer.data(), room, &n, &error);
    if (status == GEN_OK) break;
    if (status != GEN_ERROR_OUT_OF_RANGE || n < room) throw Error(status, error.message);
  } while (true);
  buffer.resize(n);
  return buffer;
}

/// Owns a handle. Moves, does not copy.
template <class T, auto Free>
class Handle {
 public:
  explicit Handle(T *owned = nullptr) noexcept : owned_(owned) {}
  T *get() const noexcept { return owned_.get(); }

 protected:
  std::unique_ptr<T, Deleter<Free>> owned_;
};

}  // namespace detail

/// A flag that stops, from any thread, the calls whose sampling has it. It may be destroyed before
/// these calls end.
class Cancel : public detail::Handle<gen_cancel, gen_cancel_free> {
 public:
  Cancel() : Handle(detail::made<gen_cancel>(gen_cancel_new)) {}
  void fire() noexcept { gen_cancel_fire(get()); }
  void reset() noexcept { gen_cancel_reset(get()); }
};

/// Text to tokens and back.
class TokenizerView {
 public:
  explicit TokenizerView(const gen_tokenizer *tokenizer) noexcept : tokenizer_(tokenizer) {}
  const gen_tokenizer *get() const noexcept { return tokenizer_; }
  /// `flags`: GEN_ENCODE_….
  std::vector<int32_t> encode(std::string_view text, uint32_t flags = 0) const {
    return detail::filled<std::vector<int32_t>>(gen_tokenizer_encode, get(), detail::data(text), text.size(), flags);
  }
  /// A fill-in-the-middle prompt, for code models.
  std::vector<int32_t> encode_fim(std::string_view prefix, std::string_view suffix, uint32_t flags = GEN_ENCODE_ADD_BOS) const {
    return detail::filled<std::vector<int32_t>>(gen_tokenizer_encode_fim, get(), detail::data(prefix), prefix.size(),
                                                detail::data(suffix), suffix.size(), flags);
  }
  std::string decode(const std::vector<int32_t> &ids) const {
    return detail::filled<std::string>(gen_tokenizer_decode, get(), ids.data(), ids.size());
  }
  std::string piece(int32_t id) const { return detail::filled<std::string>(gen_tokenizer_piece, get(), id); }
  int32_t vocab_size() const noexcept { return gen_tokenizer_vocab_size(get()); }
  /// `kind`: GEN_SPECIAL_…; -1 where the vocabulary has none.
  int32_t special(int32_t kind) const noexcept { return gen_tokenizer_special(get(), kind); }

 private:
  const gen_tokenizer *tokenizer_;
};

/// How to load a model. set() takes the options that gen_model_options_describe lists.
class ModelOptions : public detail::Handle<gen_model_options, gen_model_options_free> {
 public:
  ModelOptions() : Handle(detail::made<gen_model_options>(gen_model_options_new)) {}
  ModelOptions &set(const std::string &key, const std::string &value) {
    detail::call(gen_model_options_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  ModelOptions &threads(int32_t threads) {
    detail::call(gen_model_options_set_threads, get(), threads);
    return *this;
  }
  /// How many layers, the last ones, run on the backend's device; GEN_GPU_LAYERS_AUTO: as many as
  /// fit into its memory.
  ModelOptions &gpu_layers(int32_t layers) {
    detail::call(gen_model_options_set_gpu_layers, get(), layers);
    return *this;
  }
  /// For how many of these layers, the last ones, the experts are on the device, too.
  ModelOptions &gpu_expert_layers(int32_t layers) {
    detail::call(gen_model_options_set_gpu_expert_layers, get(), layers);
    return *this;
  }
  ModelOptions &max_seq_len(int32_t tokens) {
    detail::call(gen_model_options_set_max_seq_len, get(), tokens);
    return *this;
  }
  /// The allocator of all device memory, such as GpuAllocator::cuda(0).get(); NULL for the device's
  /// own.
  ModelOptions &gpu_allocator(const gen_gpu_allocator *allocator) {
    detail::call(gen_model_options_set_gpu_allocator, get(), allocator);
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(gen_model_options_describe, get()); }
};

/// A tokenizer of its own, without a model.
class Tokenizer : public detail::Handle<gen_tokenizer, gen_tokenizer_free> {
 public:
  explicit Tokenizer(const std::string &path)
      : Handle(detail::made<gen_tokenizer>(gen_tokenizer_load, path.c_str())) {}
  /// "pre_tokenizer" counts.
  Tokenizer(const std::string &path, const ModelOptions &options)
      : Handle(detail::made<gen_tokenizer>(gen_tokenizer_load_with, path.c_str(), options.get())) {}
  TokenizerView view() const noexcept { return TokenizerView(get()); }
};

/// A conversation, rendered by a model's template; only what the template itself writes becomes
/// special tokens.
class Chat : public detail::Handle<gen_chat, gen_chat_free> {
 public:
  Chat() : Handle(detail::made<gen_chat>(gen_chat_new)) {}
  /// One that is there: owned, or an agent's.
  explicit Chat(gen_chat *chat) noexcept : Handle(chat) {}
  Chat &add(const std::string &role, std::string_view text) {
    return with(gen_chat_add, role.c_str(), detail::data(text), text.size());
  }
  /// The author of the last message, and the assistant's reasoning before it.
  Chat &name(const std::string &name) { return with(gen_chat_set_name, name.c_str()); }
  Chat &reasoning(std::string_view text) { return with(gen_chat_set_reasoning, detail::data(text), text.size()); }
  /// A tool call of the assistant; `id` may be empty, `arguments` is a JSON object.
  Chat &tool_call(const std::string &id, const std::string &name, std::string_view arguments) {
    return with(gen_chat_add_tool_call, id.c_str(), name.c_str(), detail::data(arguments), arguments.size());
  }
  /// The result of a tool call; `id` and `name` may be empty.
  Chat &tool_result(const std::string &id, const std::string &name, std::string_view text) {
    return with(gen_chat_add_tool_result, id.c_str(), name.c_str(), detail::data(text), text.size());
  }
  /// A tool that the model may call: a JSON object, see gen_chat_add_tool.
  Chat &tool(std::string_view description) {
    return with(gen_chat_add_tool, detail::data(description), description.size());
  }
  /// A variable of the template; `value` is JSON.
  Chat &variable(const std::string &name, std::string_view value) {
    return with(gen_chat_set_variable, name.c_str(), detail::data(value), value.size());
  }
  /// A template other than the model's, or the name of a built-in form; empty for the model's own.
  Chat &use_template(std::string_view text) {
    return with(gen_chat_set_template, detail::data(text), text.size());
  }
  /// Keeps the first n messages; if negative, removes the last -n.
  Chat &truncate(int32_t n) { return with(gen_chat_truncate, n); }
  /// Messages, tools and variables as JSON.
  std::string describe() const { return detail::filled<std::string>(gen_chat_describe, get()); }
  /// An option of answers by name: "tool_choice" "required" …; see gen_chat_set.
  Chat &set(const std::string &key, const std::string &value) { return with(gen_chat_set, key.c_str(), value.c_str()); }
  std::string describe_options() const { return detail::filled<std::string>(gen_chat_describe_options, get()); }
  /// The date that templates write as today's, ISO 8601.
  Chat &time(const std::string &time) { return with(gen_chat_set_time, time.c_str()); }

 private:
  template <class Setter, class... Args>
  Chat &with(Setter setter, Args... args) {
    detail::call(setter, get(), args...);
    return *this;
  }
};

/// A chat template by itself.
class Template : public detail::Handle<gen_template, gen_template_free> {
 public:
  explicit Template(std::string_view text)
      : Handle(detail::made<gen_template>(gen_template_new, detail::data(text), text.size())) {}
  /// The vocabulary's own.
  explicit Template(const TokenizerView &tokenizer)
      : Handle(detail::made<gen_template>(gen_template_from_tokenizer, tokenizer.get())) {}
  /// From JSON to JSON, see gen_template_render.
  std::string render(std::string_view request) const {
    return detail::filled<std::string>(gen_template_render, get(), detail::data(request), request.size());
  }
};

/// A loaded model, or a custom one.
class Model : public detail::Handle<gen_model, gen_model_free> {
 public:
  explicit Model(const std::string &path) : Handle(load(path, nullptr)) {}
  Model(const std::string &path, const ModelOptions &options) : Handle(load(path, options.get())) {}
  /// See gen_model_new_custom.
  Model(const gen_forward &forward, const gen_model_config *config, const TokenizerView &tokenizer)
      : Handle(detail::made<gen_model>(gen_model_new_custom, &forward, config, tokenizer.get())) {}
  TokenizerView tokenizer() const noexcept { return TokenizerView(gen_model_tokenizer(get())); }
  const gen_model_config *config() const noexcept { return gen_model_get_config(get()); }
  std::string describe() const { return detail::filled<std::string>(gen_model_describe, get()); }
  std::string metadata(const std::string &key) const {
    return detail::filled<std::string>(gen_model_metadata_value, get(), key.c_str());
  }
  /// A conversation rendered as text, for display, or as tokens.
  std::string format(const Chat &chat, bool add_generation_prompt = true) const {
    return detail::filled<std::string>(gen_chat_format, get(), chat.get(), add_generation_prompt ? 1 : 0);
  }
  std::vector<int32_t> encode(const Chat &chat, bool add_generation_prompt = true) const {
    return detail::filled<std::vector<int32_t>>(gen_chat_encode, get(), chat.get(), add_generation_prompt ? 1 : 0);
  }
  /// Loads a low-rank adapter (LoRA) from a GGUF file, in the place of one of the same name. `scale`
  /// multiplies that of requests.
  void load_adapter(const std::string &path, const std::string &name, float scale = 1) const {
    detail::call(gen_adapter_load, get(), path.c_str(), name.c_str(), scale);
  }
  /// Forgets a name; calls that use the adapter go on with it.
  void unload_adapter(const std::string &name) const { detail::call(gen_adapter_unload, get(), name.c_str()); }
  /// Limits the memory of adapters to MiB, 0 for no limit: the least recently used names are forgotten.
  void set_adapter_budget(int32_t max_memory_mb) const { detail::call(gen_adapter_set_budget, get(), max_memory_mb); }
  /// Names of the loaded adapters, oldest first.
  std::vector<std::string> adapters() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < gen_adapter_count(get()); ++i) {
      names.push_back(detail::filled<std::string>(gen_adapter_name, get(), i));
    }
    return names;
  }

 private:
  static gen_model *load(const std::string &path, const gen_model_options *options) {
    return detail::made<gen_model>(gen_model_load, path.c_str(), options);
  }
};

/// How to make a grammar. set() takes the options that describe() lists.
class GrammarOptions : public detail::Handle<gen_grammar_options, gen_grammar_options_free> {
 public:
  GrammarOptions() : Handle(detail::made<gen_grammar_options>(gen_grammar_options_new)) {}
  /// Members are texts that contain a match of the regular expression; by default the whole text
  /// must match.
  GrammarOptions &regex_search(bool search = true) { return set("regex_match", search ? "search" : "whole"); }
  GrammarOptions &set(const std::string &key, const std::string &value) {
    detail::call(gen_grammar_options_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  /// A document that "$ref" in schemas may point to.
  GrammarOptions &add_schema(const std::string &uri, std::string_view text) {
    detail::call(gen_grammar_options_add_schema, get(), uri.c_str(), detail::data(text), text.size());
    return *this;
  }
  /// Stops the compilation of grammars with these options; see gen_grammar_options_set_cancel.
  GrammarOptions &cancel(Cancel &cancel) {
    detail::call(gen_grammar_options_set_cancel, get(), cancel.get());
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(gen_grammar_options_describe, get()); }
};

/// A set of tokens, bytes or strings, by number.
struct Mask {
  std::vector<uint32_t> bits;  ///< number i is bit i % 32 of element i / 32
  bool has(size_t i) const noexcept { return i / 32 < bits.size() && (bits[i / 32] >> (i % 32) & 1U) != 0; }
};

/// The position of a text in a grammar, for programs that draw tokens themselves. A call that
/// throws changes nothing.
class GrammarMatcher : public detail::Handle<gen_grammar_matcher, gen_grammar_matcher_free> {
 public:
  GrammarMatcher(const gen_grammar *grammar, const TokenizerView &tokenizer)
      : Handle(detail::made<gen_grammar_matcher>(gen_grammar_matcher_new, grammar, tokenizer.get())),
        vocab_size_(tokenizer.vocab_size()) {}
  void accept_token(int32_t token) { detail::call(gen_grammar_matcher_accept_token, get(), token); }
  void accept_bytes(std::string_view bytes) {
    detail::call(gen_grammar_matcher_accept_bytes, get(), detail::data(bytes), bytes.size());
  }
  /// Which tokens may come next.
  Mask mask() {
    Mask out{std::vector<uint32_t>((static_cast<size_t>(vocab_size_) + 31) / 32)};
    fill(&out);
    return out;
  }
  /// The same, into an existing mask.
  void fill(Mask *mask) { detail::call(gen_grammar_matcher_mask, get(), mask->bits.data(), mask->bits.size()); }
  /// Which bytes may come next.
  Mask valid_bytes() const {
    Mask out{std::vector<uint32_t>(8)};
    detail::call(gen_grammar_matcher_valid_bytes, get(), out.bits.data());
    return out;
  }
  /// Undoes the last `n` accepting calls.
  void rollback(size_t n) { detail::call(gen_grammar_matcher_rollback, get(), n); }
  GrammarMatcher fork() const {
    return GrammarMatcher(detail::made<gen_grammar_matcher>(gen_grammar_matcher_fork, get()), vocab_size_);
  }
  void reset() { detail::call(gen_grammar_matcher_reset, get()); }
  /// Whether the text is a member, and whether it is one that nothing can follow.
  bool complete() const noexcept { return gen_grammar_matcher_complete(get()) > 0; }
  bool finished() const noexcept { return gen_grammar_matcher_complete(get()) > 1; }
  /// Tokens that can be taken without asking a model; see gen_grammar_matcher_forced and its option "forced_tokens".
  std::vector<int32_t> forced() { return detail::filled<std::vector<int32_t>>(gen_grammar_matcher_forced, get()); }
  /// Minimum number of tokens until the text may end; -1 if none are known to complete it. See
  /// gen_grammar_matcher_min_tokens.
  int64_t min_tokens() {
    int64_t n = 0;
    detail::call(gen_grammar_matcher_min_tokens, get(), &n);
    return n;
  }

 private:
  GrammarMatcher(gen_grammar_matcher *owned, int32_t vocab_size) : Handle(owned), vocab_size_(vocab_size) {}
  int32_t vocab_size_;
};

/// A language of allowed texts: Sampling().grammar(Grammar::gbnf("root ::= \"yes\" | \"no\"")).
class Grammar : public detail::Handle<gen_grammar, gen_grammar_free> {
 public:
  /// An error is GEN_ERROR_GRAMMAR and names line and column. Without options the defaults apply.
  static Grammar gbnf(std::string_view text) { return from(gen_grammar_from_gbnf, text, nullptr); }
  static Grammar gbnf(std::string_view text, const GrammarOptions &options) {
    return from(gen_grammar_from_gbnf, text, options.get());
  }
  /// A Lark file in llguidance's dialect: see gen_grammar_from_lark.
  static Grammar lark(std::string_view text) { return from(gen_grammar_from_lark, text, nullptr); }
  static Grammar lark(std::string_view text, const GrammarOptions &options) {
    return from(gen_grammar_from_lark, text, options.get());
  }
  /// A JavaScript regular expression, without slashes and flags.
  static Grammar regex(std::string_view pattern) { return from(gen_grammar_from_regex, pattern, nullptr); }
  static Grammar regex(std::string_view pattern, const GrammarOptions &options) {
    return from(gen_grammar_from_regex, pattern, options.get());
  }
  /// Free text with constrained sections, from a JSON object: see gen_grammar_from_tags.
  static Grammar tags(std::string_view text) { return from(gen_grammar_from_tags, text, nullptr); }
  static Grammar tags(std::string_view text, const GrammarOptions &options) {
    return from(gen_grammar_from_tags, text, options.get());
  }
  /// The JSON texts that are valid under a JSON Schema. A refused schema is GEN_ERROR_GRAMMAR and
  /// names the JSON pointer.
  static Grammar json_schema(std::string_view schema) { return from(gen_grammar_from_json_schema, schema, nullptr); }
  static Grammar json_schema(std::string_view schema, const GrammarOptions &options) {
    return from(gen_grammar_from_json_schema, schema, options.get());
  }
  static Grammar any_json() { return any_json(nullptr); }
  static Grammar any_json(const GrammarOptions &options) { return any_json(options.get()); }
  std::string describe() const { return detail::filled<std::string>(gen_grammar_describe, get()); }
  /// A matcher at the empty text; it keeps alive what it needs of the grammar and the tokenizer.
  GrammarMatcher matcher(const TokenizerView &tokenizer) const { return GrammarMatcher(get(), tokenizer); }
  /// Which of these strings, such as a vocabulary of your own, may follow a text. Meant for a few
  /// positions.
  Mask token_mask(std::string_view text, const std::vector<std::string> &strings) const {
    std::vector<const char *> each;
    std::vector<size_t> lengths;
    for (const std::string &string : strings) {
      each.push_back(string.data());
      lengths.push_back(string.size());
    }
    Mask out{std::vector<uint32_t>(strings.size() / 32 + 1)};  // one word more, so that the address
                                                               // is not null
    detail::call(gen_token_mask, get(), detail::data(text), text.size(), each.data(), lengths.data(), each.size(),
                 out.bits.data(), out.bits.size());
    return out;
  }

 private:
  explicit Grammar(gen_grammar *owned) : Handle(owned) {}
  template <class Maker>
  static Grammar from(Maker maker, std::string_view text, const gen_grammar_options *options) {
    return Grammar(detail::made<gen_grammar>(maker, detail::data(text), text.size(), options));
  }
  static Grammar any_json(const gen_grammar_options *options) {
    return Grammar(detail::made<gen_grammar>(gen_grammar_any_json, options));
  }
};

/// How tokens are chosen; setters return the object, so that they chain.
class Sampling : public detail::Handle<gen_sampling, gen_sampling_free> {
 public:
  Sampling() : Handle(detail::made<gen_sampling>(gen_sampling_new)) {}
  Sampling &temperature(double value) { return apply(gen_sampling_set_temperature, value); }
  Sampling &top_k(int32_t value) { return apply(gen_sampling_set_top_k, value); }
  Sampling &top_p(double value) { return apply(gen_sampling_set_top_p, value); }
  Sampling &min_p(double value) { return apply(gen_sampling_set_min_p, value); }
  Sampling &typical_p(double value) { return apply(gen_sampling_set_typical_p, value); }
  Sampling &repetition_penalty(double value) { return apply(gen_sampling_set_repetition_penalty, value); }
  Sampling &frequency_penalty(double value) { return apply(gen_sampling_set_frequency_penalty, value); }
  Sampling &presence_penalty(double value) { return apply(gen_sampling_set_presence_penalty, value); }
  Sampling &dry(double multiplier, double base = 1.75, int32_t allowed_length = 2, int32_t window = 0) {
    return apply(gen_sampling_set_dry, multiplier, base, allowed_length, window);
  }
  Sampling &dry_breaker(std::string_view text) {
    return apply(gen_sampling_add_dry_breaker, detail::data(text), text.size());
  }
  Sampling &xtc(double probability, double threshold) { return apply(gen_sampling_set_xtc, probability, threshold); }
  Sampling &top_n_sigma(double value) { return apply(gen_sampling_set_top_n_sigma, value); }
  Sampling &mirostat(double tau, double eta) { return apply(gen_sampling_set_mirostat, tau, eta); }
  Sampling &min_new_tokens(int32_t value) { return apply(gen_sampling_set_min_new_tokens, value); }
  Sampling &max_new_tokens(int32_t value) { return apply(gen_sampling_set_max_new_tokens, value); }
  Sampling &seed(uint64_t value) { return apply(gen_sampling_set_seed, value); }
  Sampling &gumbel(bool on = true) { return apply(gen_sampling_set_gumbel, on ? 1 : 0); }
  /// Edits the logits of each step; `user` must live as long as the calls.
  Sampling &logits_callback(gen_logits_callback callback, void *user) {
    return apply(gen_sampling_set_logits_callback, callback, user);
  }
  Sampling &logprobs(int32_t count) { return apply(gen_sampling_set_logprobs, count); }
  Sampling &logit_bias(int32_t token, float bias) { return apply(gen_sampling_set_logit_bias, token, bias); }
  Sampling &ignore_eos(bool ignore = true) { return apply(gen_sampling_set_ignore_eos, ignore ? 1 : 0); }
  Sampling &stop(std::string_view text) {
    return apply(gen_sampling_add_stop_string, detail::data(text), text.size());
  }
  Sampling &stop_token(int32_t token) { return apply(gen_sampling_add_stop_token, token); }
  /// Uses the model's adapter of that name, with scale 1, and no other; "" for none.
  Sampling &adapter(const std::string &name) { return apply(gen_sampling_set_adapter, name.c_str()); }
  /// Uses another one beside those that calls use.
  Sampling &add_adapter(const std::string &name, float scale) {
    return apply(gen_sampling_add_adapter, name.c_str(), scale);
  }
  Sampling &cancel(Cancel &cancel) { return apply(gen_sampling_set_cancel, cancel.get()); }
  /// Restricts texts to members of the grammar, which may be destroyed before the calls end.
  Sampling &grammar(const Grammar &grammar) { return apply(gen_sampling_set_grammar, grammar.get()); }
  /// The same for texts that continue from the current position of a matcher.
  Sampling &grammar(const GrammarMatcher &matcher) { return apply(gen_sampling_set_grammar_matcher, matcher.get()); }
  /// Draws only tokens after which the text can still be completed within max_new_tokens; the
  /// default.
  Sampling &fit_grammar(bool fit = true) { return apply(gen_sampling_set_fit_grammar, fit ? 1 : 0); }
  /// Any setting by name; describe() lists them.
  Sampling &set(const std::string &key, const std::string &value) {
    return apply(gen_sampling_set, key.c_str(), value.c_str());
  }
  std::string describe() const { return detail::filled<std::string>(gen_sampling_describe, get()); }

 private:
  template <class Setter, class... Args>
  Sampling &apply(Setter setter, Args... args) {
    detail::call(setter, get(), args...);
    return *this;
  }
};

/// The outcome of a generation. Its views live as long as it does.
class Result : public detail::Handle<gen_result, gen_result_free> {
 public:
  using Handle::Handle;
  std::string_view text() const noexcept {
    size_t n = 0;
    const char *text = gen_result_text(get(), &n);
    return {text != nullptr ? text : "", n};
  }
  std::vector<int32_t> tokens() const { return copied(gen_result_tokens); }
  std::vector<float> logprobs() const { return copied(gen_result_logprobs); }
  /// The most probable tokens at a step, with their log-probabilities, best first; see Sampling::logprobs.
  std::vector<std::pair<int32_t, float>> top_logprobs(size_t index) const {
    const int32_t *ids = nullptr;
    const float *logprobs = nullptr;
    std::vector<std::pair<int32_t, float>> all(gen_result_top_logprobs(get(), index, &ids, &logprobs));
    for (size_t i = 0; i < all.size(); ++i) all[i] = {ids[i], logprobs[i]};
    return all;
  }
  int32_t finish_reason() const noexcept { return gen_result_finish_reason(get()); }
  /// `key`: "prompt", "prompt_cached", "prompt_evaluated", "completion", …, "grammar_complete"
  int64_t usage(const std::string &key) const {
    int64_t value = 0;
    detail::call(gen_result_usage, get(), key.c_str(), &value);
    return value;
  }
  double seconds(const std::string &key) const {
    double value = 0;
    detail::call(gen_result_timings, get(), key.c_str(), &value);
    return value;
  }
  /// What a chat session read in the answer, as JSON; see gen_result_answer.
  std::string answer() const { return detail::filled<std::string>(gen_result_answer, get()); }
  /// The drafts that were verified, as JSON; see gen_result_drafts.
  std::string drafts() const { return detail::filled<std::string>(gen_result_drafts, get()); }
  /// The error that ended the generation, or NULL.
  const gen_error *error() const noexcept { return gen_result_error(get()); }

 private:
  template <class T>
  std::vector<T> copied(const T *(*getter)(const gen_result *, size_t *)) const {
    size_t n = 0;
    const T *values = getter(get(), &n);
    return n == 0 ? std::vector<T>() : std::vector<T>(values, values + n);
  }
};

/// One piece. `text` is whole characters, valid until the next piece.
struct Token {
  int32_t id;
  std::string_view text;
  float logprob;
  bool done;
  int32_t finish_reason;
  int32_t index;
  const gen_token_logprob *top;  ///< [top_count] the most probable tokens here, best first, see Sampling::logprobs
  int32_t top_count;
  const gen_piece *pieces;  ///< [piece_count] what a chat session read: text, reasoning, calls
  int32_t piece_count;
};

namespace detail {

inline Token view_of(const gen_token &token) noexcept {
  return {token.id,        {token.text != nullptr ? token.text : "", token.text_len}, token.logprob, token.done != 0,
          token.finish_reason, token.index, token.top, token.top_count,
          token.pieces, token.piece_count};
}

/// A function(args…, gen_result **, gen_error *) that generates.
template <class Function, class... Args>
Result generated(Function function, Args... args) {
  gen_error error;
  gen_result *made = nullptr;
  const gen_status status = function(args..., &made, &error);
  if (status == GEN_OK || gen_result_finish_reason(made) == GEN_FINISH_CALLBACK) return Result(made);
  throw Error(status, error.message, std::shared_ptr<gen_result>(made, gen_result_free));
}

/// Calls `Take(token)`, which returns whether to continue; an exception from it leaves the
/// generating call.
template <class Take>
struct Callback {
  Take &take;
  std::exception_ptr thrown;
  static int run(void *user, const gen_token *token) noexcept {
    auto &self = *static_cast<Callback *>(user);
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Take &, const Token &>>) {
        self.take(view_of(*token));
        return 0;
      } else {
        return self.take(view_of(*token)) ? 0 : 1;
      }
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

}  // namespace detail

/// Generator options: caches, batches. set() takes the options that describe() lists.
class Options : public detail::Handle<gen_options, gen_options_free> {
 public:
  Options() : Handle(detail::made<gen_options>(gen_options_new)) {}
  Options &kv_dtype(const std::string &name) { return apply(gen_options_set_kv_dtype, name.c_str()); }
  Options &paged_kv(int32_t max_memory_mb, int32_t block_size = 16) {
    return apply(gen_options_set_paged_kv, max_memory_mb, block_size);
  }
  Options &prefix_cache(int32_t blocks) { return apply(gen_options_set_prefix_cache, blocks); }
  Options &state_snapshot_every(int32_t tokens) {
    return apply(gen_options_set_state_snapshot_every, tokens);
  }
  Options &state_snapshot_budget(int32_t max_memory_mb) {
    return apply(gen_options_set_state_snapshot_budget, max_memory_mb);
  }
  Options &prefill_chunk(int32_t tokens) { return apply(gen_options_set_prefill_chunk, tokens); }
  Options &max_batch(int32_t sequences) { return apply(gen_options_set_max_batch, sequences); }
  Options &max_queue(int32_t calls) { return apply(gen_options_set_max_queue, calls); }
  Options &fairness(int32_t steps) { return apply(gen_options_set_fairness, steps); }
  Options &deterministic(bool on = true) { return apply(gen_options_set_deterministic, on ? 1 : 0); }
  Options &prompt_lookup(int32_t ngram, int32_t length = 0) {
    return apply(gen_options_set_prompt_lookup, ngram, length);
  }
  /// The options, and generators made from them, keep the model alive.
  Options &speculative_draft(const Model &model, int32_t length = 0) {
    return apply(gen_options_set_speculative_draft, model.get(), length);
  }
  /// The head of an EAGLE file drafts where lookups find nothing; "" for none.
  Options &eagle(const std::string &path) { return apply(gen_options_set_eagle, path.c_str()); }
  /// `keep` as for an option by name without a number.
  Options &context_policy(const std::string &policy, int32_t keep = 4) {
    return apply(gen_options_set_context_policy, policy.c_str(), keep);
  }
  Options &metrics(const gen_metrics_sink *sink) { return apply(gen_options_set_metrics, sink); }
  Options &set(const std::string &key, const std::string &value) {
    return apply(gen_options_set, key.c_str(), value.c_str());
  }
  std::string describe() const { return detail::filled<std::string>(gen_options_describe, get()); }

 private:
  template <class Setter, class... Args>
  Options &apply(Setter setter, Args... args) {
    detail::call(setter, get(), args...);
    return *this;
  }
};

/// One of many generations of a batch.
class Request : public detail::Handle<gen_request, gen_request_free> {
 public:
  explicit Request(std::string_view prompt) : Handle(detail::made<gen_request>(gen_request_new)) {
    detail::call(gen_request_set_prompt, get(), detail::data(prompt), prompt.size());
  }
  Request(std::string_view prompt, const Sampling &sampling) : Request(prompt) {
    detail::call(gen_request_set_sampling, get(), sampling.get());
  }
  Request &priority(int32_t priority) {
    detail::call(gen_request_set_priority, get(), priority);
    return *this;
  }
  Request &deadline_ms(int64_t milliseconds) {
    detail::call(gen_request_set_deadline_ms, get(), milliseconds);
    return *this;
  }
};

/// A model with a scheduler, from which sessions are made.
class Generator : public detail::Handle<gen_generator, gen_free> {
 public:
  explicit Generator(const Model &model) : Handle(detail::made<gen_generator>(gen_create, model.get(), nullptr)) {}
  Generator(const Model &model, const Options &options)
      : Handle(detail::made<gen_generator>(gen_create, model.get(), options.get())) {}

  /// "lookups", "hits", "tokens", "blocks" or "evictions" of the prefix cache.
  int64_t prefix_stats(const std::string &key) const {
    int64_t value = 0;
    detail::call(gen_generator_prefix_stats, get(), key.c_str(), &value);
    return value;
  }
  void prefix_clear() const { detail::call(gen_generator_prefix_clear, get()); }
  /// A statistic of drafts, see gen_generator_draft_stats.
  double draft_stats(const std::string &key) const {
    double value = 0;
    detail::call(gen_generator_draft_stats, get(), key.c_str(), &value);
    return value;
  }
  /// Whether the head of Options::eagle() drafts: its file was there.
  bool eagle_enabled() const noexcept { return gen_generator_eagle_enabled(get()) != 0; }
  /// The path that Options::eagle() was given.
  std::string eagle_path() const { return detail::filled<std::string>(gen_generator_eagle_path, get()); }

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) const {
    return detail::generated(gen_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  /// `take(const Token &)` is called for each piece on this thread; false stops, and an exception
  /// from it leaves this call.
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) const {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_generate_stream, get(), detail::data(prompt), prompt.size(), sampling.get(),
                                      &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  /// All together; each result has its own error().
  std::vector<Result> generate(const std::vector<Request> &requests) const {
    std::vector<const gen_request *> handles;
    for (const Request &request : requests) handles.push_back(request.get());
    std::vector<Result> results;
    results.reserve(requests.size());
    std::vector<gen_result *> made(requests.size());
    detail::call(gen_batch_generate, get(), handles.data(), handles.size(), made.data());
    for (gen_result *result : made) results.emplace_back(result);
    return results;
  }
  /// Several texts from one prompt: text i has the seed of `sampling` + i. With `best_of` above n
  /// the most probable n of best_of.
  std::vector<Result> generate(std::string_view prompt, const Sampling &sampling, int32_t n, int32_t best_of) const {
    std::vector<Result> results(n > 0 ? static_cast<size_t>(n) : 0);
    std::vector<gen_result *> made(results.size());
    detail::call(gen_generate_n, get(), detail::data(prompt), prompt.size(), sampling.get(), n, best_of, made.data());
    for (size_t i = 0; i < made.size(); ++i) results[i] = Result(made[i]);
    return results;
  }
};

/// A target model with a smaller draft model.
class Speculative : public detail::Handle<gen_speculative, gen_speculative_free> {
 public:
  Speculative(const Model &draft, const Model &target, int32_t length = 0)
      : Handle(detail::made<gen_speculative>(gen_speculative_new, draft.get(), target.get(), length, nullptr)) {}
  Speculative(const Model &draft, const Model &target, int32_t length, const Options &options)
      : Handle(detail::made<gen_speculative>(gen_speculative_new, draft.get(), target.get(), length, options.get())) {}

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) const {
    return detail::generated(gen_speculative_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) const {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_speculative_generate_stream, get(), detail::data(prompt), prompt.size(),
                                      sampling.get(), &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  void set_adaptive(bool adaptive) const { detail::call(gen_speculative_set_adaptive, get(), adaptive ? 1 : 0); }
  /// See gen_generator_draft_stats.
  double stats(const std::string &key) const {
    double value = 0;
    detail::call(gen_speculative_stats, get(), key.c_str(), &value);
    return value;
  }
};

/// A target model with a head that was trained for it.
class Eagle : public detail::Handle<gen_eagle, gen_eagle_free> {
 public:
  /// The head of a file; "" for that of the model's own file.
  Eagle(const Model &target, const std::string &path, int32_t length = 0)
      : Handle(detail::made<gen_eagle>(gen_eagle_new, target.get(), path.c_str(), length, nullptr)) {}
  Eagle(const Model &target, const std::string &path, int32_t length, const Options &options)
      : Handle(detail::made<gen_eagle>(gen_eagle_new, target.get(), path.c_str(), length, options.get())) {}
  /// A head in memory, which is copied.
  Eagle(const Model &target, const gen_eagle_tensors &tensors, int32_t length = 0)
      : Handle(detail::made<gen_eagle>(gen_eagle_new_tensors, target.get(), &tensors, length, nullptr)) {}
  Eagle(const Model &target, const gen_eagle_tensors &tensors, int32_t length, const Options &options)
      : Handle(detail::made<gen_eagle>(gen_eagle_new_tensors, target.get(), &tensors, length, options.get())) {}

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) const {
    return detail::generated(gen_eagle_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) const {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_eagle_generate_stream, get(), detail::data(prompt), prompt.size(),
                                      sampling.get(), &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  void set_adaptive(bool adaptive) const { detail::call(gen_eagle_set_adaptive, get(), adaptive ? 1 : 0); }
  /// See gen_generator_draft_stats.
  double stats(const std::string &key) const {
    double value = 0;
    detail::call(gen_eagle_stats, get(), key.c_str(), &value);
    return value;
  }
};

/// Drafting and verification as separate steps.
class Draft : public detail::Handle<gen_draft, gen_draft_free> {
 public:
  struct Guesses {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
  };
  struct Verdict {
    int32_t accepted = 0;
    int32_t correction = -1;
  };
  /// Without a target: verification is refused.
  explicit Draft(const Model &draft)
      : Handle(detail::made<gen_draft>(gen_draft_new, draft.get(), nullptr, nullptr)) {}
  Draft(const Model &draft, const Model &target)
      : Handle(detail::made<gen_draft>(gen_draft_new, draft.get(), target.get(), nullptr)) {}
  Draft(const Model &draft, const Model &target, const Options &options)
      : Handle(detail::made<gen_draft>(gen_draft_new, draft.get(), target.get(), options.get())) {}
  /// The model's own first layers draft; 0 for half of them.
  static Draft self(const Model &model, int32_t layers = 0) {
    return Draft(detail::made<gen_draft>(gen_draft_new_self, model.get(), layers, nullptr));
  }

  int32_t depth() const noexcept { return gen_draft_depth(get()); }
  Guesses generate(const std::vector<int32_t> &tokens, int32_t length) const {
    Guesses guesses;
    size_t n = static_cast<size_t>(length > 0 ? length : 0);
    guesses.tokens.resize(n);
    guesses.logprobs.resize(n);
    detail::call(gen_draft_generate, get(), tokens.data(), tokens.size(), length, guesses.tokens.data(),
                 guesses.logprobs.data(), guesses.tokens.size(), &n);
    guesses.tokens.resize(n);
    guesses.logprobs.resize(n);
    return guesses;
  }
  Verdict verify(const std::vector<int32_t> &tokens, const std::vector<int32_t> &guesses) const {
    Verdict verdict;
    detail::call(gen_draft_verify, get(), tokens.data(), tokens.size(), guesses.data(), guesses.size(),
                 &verdict.accepted, &verdict.correction);
    return verdict;
  }
  double acceptance_rate(const std::vector<int32_t> &tokens, int32_t length = 0) const {
    double rate = 0;
    detail::call(gen_draft_acceptance_rate, get(), tokens.data(), tokens.size(), length, &rate);
    return rate;
  }

 private:
  explicit Draft(gen_draft *made) : Handle(made) {}
};

/// One generation pulled piece by piece; a single-pass range. The session must outlive it, and
/// serve no other call meanwhile.
class Stream : public detail::Handle<gen_stream, gen_stream_close> {
 public:
  using Handle::Handle;

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Token;
    using difference_type = std::ptrdiff_t;
    using pointer = const Token *;
    using reference = const Token &;
    iterator() = default;
    explicit iterator(Stream *stream) : stream_(stream) { ++*this; }
    const Token &operator*() const noexcept { return token_; }
    const Token *operator->() const noexcept { return &token_; }
    iterator &operator++() {
      if (!stream_->next(&token_)) stream_ = nullptr;
      return *this;
    }
    bool operator==(const iterator &other) const noexcept { return stream_ == other.stream_; }
    bool operator!=(const iterator &other) const noexcept { return stream_ != other.stream_; }

   private:
    Stream *stream_ = nullptr;
    Token token_{};
  };

  iterator begin() { return iterator(this); }
  iterator end() noexcept { return iterator(); }
  /// False at the end. Throws the error that ends the generation early; result() then has the
  /// partial result.
  bool next(Token *token) {
    const gen_token *piece = nullptr;
    detail::call(gen_stream_next, get(), &piece);
    if (piece == nullptr) return false;
    *token = detail::view_of(*piece);
    return true;
  }
  /// The most probable tokens at the position of the last piece's token, best first, with their
  /// log-probabilities; if asked for by Sampling::logprobs().
  std::vector<std::pair<int32_t, float>> alternatives() {
    const int32_t *ids = nullptr;
    const float *logprobs = nullptr;
    std::vector<std::pair<int32_t, float>> all(gen_stream_alternatives(get(), &ids, &logprobs));
    for (size_t i = 0; i < all.size(); ++i) all[i] = {ids[i], logprobs[i]};
    return all;
  }
  /// At the end only.
  Result result() const { return Result(detail::made<gen_result>(gen_stream_result, get())); }
};

/// One growing sequence with its cache.
class Session : public detail::Handle<gen_session, gen_session_free> {
 public:
  explicit Session(const Generator &generator) : Handle(detail::made<gen_session>(gen_session_new, generator.get())) {}

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) {
    return detail::generated(gen_session_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_session_generate_stream, get(), detail::data(prompt), prompt.size(), sampling.get(),
                                      &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  Stream stream(std::string_view prompt, const Sampling &sampling = Sampling()) {
    return Stream(
        detail::made<gen_stream>(gen_stream_open, get(), detail::data(prompt), prompt.size(), sampling.get()));
  }
  void append(std::string_view text) { detail::call(gen_session_append, get(), detail::data(text), text.size()); }
  void append(const std::vector<int32_t> &tokens) {
    detail::call(gen_session_append_tokens, get(), tokens.data(), tokens.size());
  }
  /// Makes the session hold a conversation, so that generating with an empty prompt answers it.
  void append(const Chat &chat, bool add_generation_prompt = true) {
    detail::call(gen_session_append_chat, get(), chat.get(), add_generation_prompt ? 1 : 0);
  }
  /// Log-probabilities of a text's tokens as a continuation; the session is unchanged.
  std::vector<float> score(std::string_view text) {
    return detail::filled<std::vector<float>>(gen_session_score, get(), detail::data(text), text.size());
  }
  std::vector<int32_t> tokens() const { return detail::filled<std::vector<int32_t>>(gen_session_tokens, get()); }
  int32_t length() const noexcept { return gen_session_length(get()); }
  void truncate(int32_t n) { detail::call(gen_session_truncate, get(), n); }
  void reset() { detail::call(gen_session_reset, get()); }
  Session fork() const { return Session(detail::made<gen_session>(gen_session_fork, get())); }
  /// Any thread.
  void cancel() noexcept { gen_session_cancel(get()); }
  double progress() const noexcept { return gen_session_progress(get()); }
  void save(const std::string &path) const { detail::call(gen_session_save, get(), path.c_str()); }
  void load(const std::string &path) { detail::call(gen_session_load, get(), path.c_str()); }
  std::vector<std::byte> save() const {
    return detail::filled<std::vector<std::byte>>(gen_session_save_buffer, get());
  }
  void load(const std::vector<std::byte> &state) {
    detail::call(gen_session_load_buffer, get(), state.data(), state.size());
  }

 private:
  explicit Session(gen_session *owned) : Handle(owned) {}
};

/// A conversation and a session that holds it. The Chat is shared: tools and their results can be
/// added to it between turns.
class ChatSession : public detail::Handle<gen_chat_session, gen_chat_session_free> {
 public:
  explicit ChatSession(const Generator &generator)
      : Handle(detail::made<gen_chat_session>(gen_chat_session_new, generator.get(), nullptr)) {}
  ChatSession(const Generator &generator, Chat &chat)
      : Handle(detail::made<gen_chat_session>(gen_chat_session_new, generator.get(), chat.get())) {}
  /// The user's message, and the answer to it.
  Result send(std::string_view text, const Sampling &sampling = Sampling()) {
    return detail::generated(gen_chat_session_send, get(), detail::data(text), text.size(), sampling.get());
  }
  template <class Take>
  Result send(std::string_view text, const Sampling &sampling, Take &&take) {
    return streamed(detail::data(text), text.size(), sampling, take);
  }
  /// Answers what the conversation ends with, such as the result of a tool, or continues an answer
  /// that was cut.
  Result answer(const Sampling &sampling = Sampling()) {
    return detail::generated(gen_chat_session_send, get(), nullptr, size_t{0}, sampling.get());
  }
  template <class Take>
  Result answer(const Sampling &sampling, Take &&take) {
    return streamed(nullptr, 0, sampling, take);
  }
  /// Streams the answer, also without a message. While the stream lives, the conversation is in
  /// use.
  Stream stream(std::optional<std::string_view> text, const Sampling &sampling = Sampling()) {
    return Stream(detail::made<gen_stream>(gen_chat_session_open_stream, get(), text ? detail::data(*text) : nullptr,
                                           text ? text->size() : size_t{0}, sampling.get()));
  }
  /// Any thread.
  void cancel() noexcept { gen_session_cancel(gen_chat_session_session(get())); }
  /// Any thread; see gen_chat_session_end_reasoning.
  void end_reasoning() { detail::call(gen_chat_session_end_reasoning, get()); }
  int32_t length() const noexcept { return gen_session_length(gen_chat_session_session(get())); }
  /// Tokens and cache, without messages; see gen_chat_session_session.
  void save(const std::string &path) const {
    detail::call(gen_session_save, gen_chat_session_session(get()), path.c_str());
  }
  void load(const std::string &path) { detail::call(gen_session_load, gen_chat_session_session(get()), path.c_str()); }

 private:
  template <class Take>
  Result streamed(const char *text, size_t length, const Sampling &sampling, Take &take) {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_chat_session_send_stream, get(), text, length, sampling.get(), &callback.run,
                                      static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
};

/// A call of a tool. Its views live while the function runs.
struct ToolCall {
  std::string_view id;
  std::string_view name;
  std::string_view arguments;  ///< JSON
  const gen_tool_reply *reply;
  /// Nobody waits for the output any more.
  bool stopped() const noexcept { return gen_tool_reply_stopped(reply) != 0; }
};

/// Functions that a model may call. A function returns its output; an exception is a failure, of
/// which the model is told. It runs on any thread, and must outlive calls that run past
/// "tool_timeout_ms".
class Tools : public detail::Handle<gen_tool_registry, gen_tool_registry_free> {
 public:
  using Function = std::function<std::string(const ToolCall &)>;

  Tools() : Handle(detail::made<gen_tool_registry>(gen_tool_registry_new)), functions_(std::make_shared<Functions>()) {}
  /// `schema` of the arguments; empty: there are none.
  Tools &add(const std::string &name, const std::string &description, const std::string &schema, Function run) {
    functions_->push_back(std::move(run));
    try {
      detail::call(gen_tool_registry_add, get(), name.c_str(), description.c_str(), schema.c_str(), &Tools::run,
                   static_cast<void *>(&functions_->back()));
    } catch (...) {
      functions_->pop_back();
      throw;
    }
    return *this;
  }
  Tools &remove(const std::string &name) {
    detail::call(gen_tool_registry_remove, get(), name.c_str());
    return *this;
  }
  size_t size() const noexcept { return gen_tool_registry_count(get()); }
  /// JSON in the form of OpenAI's API: all, sorted by name, or one.
  std::string describe() const { return detail::filled<std::string>(gen_tool_registry_describe, get()); }
  std::string describe(const std::string &name) const {
    return detail::filled<std::string>(gen_tool_registry_get, get(), name.c_str());
  }
  /// The result as JSON, of at most `most` bytes; see gen_tool_registry_call.
  std::string call(const std::string &name, std::string_view arguments, const std::string &id = "",
                   size_t most = 1 << 20) const {
    std::string text(most, '\0');
    size_t n = 0;
    detail::call(gen_tool_registry_call, get(), id.c_str(), name.c_str(), detail::data(arguments), arguments.size(),
                 text.data(), text.size(), &n);
    text.resize(n);
    return text;
  }

 private:
  friend class Agent;
  using Functions = std::list<Function>;
  static int run(void *user, const gen_tool_call *call, gen_tool_reply *reply) noexcept {
    int failed = 0;
    std::string output;
    try {
      output = (*static_cast<Function *>(user))({call->id, call->name, {call->arguments, call->arguments_len}, reply});
    } catch (const std::exception &exception) {
      failed = 1;
      static_cast<void>(gen_tool_reply_write(reply, exception.what(), GEN_NUL_TERMINATED, nullptr));
    } catch (...) {
      failed = 1;
    }
    if (failed != 0) return failed;
    return gen_tool_reply_write(reply, output.data(), output.size(), nullptr) == GEN_OK ? 0 : 1;
  }

  std::shared_ptr<Functions> functions_;
};

/// The calls in a text of a model's, as JSON; see gen_tool_calls_parse.
inline std::string parse_tool_calls(std::string_view text, const std::string &format = "json") {
  return detail::filled<std::string>(gen_tool_calls_parse, format.c_str(), detail::data(text), text.size());
}
inline std::string format_tool_result(const std::string &id, std::string_view output, bool is_error = false) {
  return detail::filled<std::string>(gen_tool_result_format, id.c_str(), detail::data(output), output.size(),
                                     int32_t{is_error});
}

/// How an agent works. set() takes the options that describe() lists.
class AgentOptions : public detail::Handle<gen_agent_options, gen_agent_options_free> {
 public:
  AgentOptions() : Handle(detail::made<gen_agent_options>(gen_agent_options_new)) {}
  AgentOptions &set(const std::string &key, const std::string &value) {
    detail::call(gen_agent_options_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  AgentOptions &sampling(const Sampling &sampling) {
    detail::call(gen_agent_options_set_sampling, get(), sampling.get());
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(gen_agent_options_describe, get()); }
};

/// What happens in a run. `kind`: GEN_AGENT_…; views live until the next event.
struct AgentEvent {
  int32_t kind;
  int32_t step;
  int32_t call;
  std::string_view name;
  std::string_view id;
  std::string_view text;
  bool is_error;
};

namespace detail {

/// As Callback, of an agent's events.
template <class Take>
struct AgentCallback {
  Take &take;
  std::exception_ptr thrown;
  static int run(void *user, const gen_agent_event *event) noexcept {
    auto &self = *static_cast<AgentCallback *>(user);
    const AgentEvent view{event->kind, event->step, event->call, event->name, event->id,
                          {event->text, event->len}, event->is_error != 0};
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Take &, const AgentEvent &>>) {
        self.take(view);
        return 0;
      } else {
        return self.take(view) ? 0 : 1;
      }
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

/// A run of `function(args…, callback, user, result, error)`; an exception of the callback leaves it.
template <class Function, class Take, class... Args>
Result agent_run(Function function, Take &take, Args... args) {
  AgentCallback<Take> callback{take, nullptr};
  try {
    return generated(function, args..., &callback.run, static_cast<void *>(&callback));
  } catch (const Error &) {
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    throw;
  }
}

}  // namespace detail

/// A model that calls tools until it has an answer. The tools are shared.
class Agent : public detail::Handle<gen_agent, gen_agent_free> {
 public:
  Agent(const Generator &generator, const Tools &tools, const AgentOptions &options = AgentOptions())
      : Handle(detail::made<gen_agent>(gen_agent_new, generator.get(), tools.get(), options.get())),
        functions_(tools.functions_) {}
  /// For step() with outputs of a model of the caller's.
  explicit Agent(const Tools &tools, const AgentOptions &options = AgentOptions())
      : Handle(detail::made<gen_agent>(gen_agent_new, nullptr, tools.get(), options.get())),
        functions_(tools.functions_) {}
  Agent(Agent &&) noexcept = default;
  Agent &operator=(Agent &&other) noexcept {
    owned_ = std::move(other.owned_);  // before the functions
    functions_ = std::move(other.functions_);
    return *this;
  }
  ~Agent() { owned_.reset(); }

  /// The result of the last answer; describe() tells what was done, and why it ended.
  Result run(std::string_view task) {
    return detail::generated(gen_agent_run, get(), detail::data(task), task.size(), nullptr, nullptr);
  }
  /// take(const AgentEvent &) may return false to stop the run, or throw.
  template <class Take>
  Result run(std::string_view task, Take &&take) {
    return detail::agent_run(gen_agent_run, take, get(), detail::data(task), task.size());
  }
  /// Goes on with the conversation as it is.
  Result go_on() { return detail::generated(gen_agent_run, get(), nullptr, size_t{0}, nullptr, nullptr); }
  /// One step, with a generated answer or a given one: whether it was the last.
  bool step() { return one_step(nullptr, 0); }
  bool step(std::string_view output) { return one_step(detail::data(output), output.size()); }
  /// The last run as JSON; see gen_agent_describe.
  std::string describe() const { return detail::filled<std::string>(gen_agent_describe, get()); }
  /// The conversation; it must not outlive the agent.
  Chat chat() const noexcept { return Chat(gen_agent_chat(get())); }
  /// Any thread.
  void cancel() noexcept { gen_agent_cancel(get()); }
  /// Calls are cancelled while it is raised.
  void set_cancel(const Cancel &cancel) { detail::call(gen_agent_set_cancel, get(), cancel.get()); }
  void reset() { detail::call(gen_agent_reset, get()); }

 private:
  bool one_step(const char *output, size_t length) {
    int32_t finished = 0;
    detail::call(gen_agent_step, get(), output, length, nullptr, nullptr, &finished);
    return finished != 0;
  }

  std::shared_ptr<Tools::Functions> functions_;
};

/// Several agents on one task, which must outlive it.
class Supervisor : public detail::Handle<gen_supervisor, gen_supervisor_free> {
 public:
  Supervisor() : Handle(detail::made<gen_supervisor>(gen_supervisor_new)) {}
  /// The first one gets the task, and the others as tools.
  Supervisor &add(const std::string &name, const std::string &description, const Agent &agent) {
    detail::call(gen_supervisor_add_agent, get(), name.c_str(), description.c_str(), agent.get());
    return *this;
  }
  Supervisor &budget(int64_t tokens) {
    detail::call(gen_supervisor_set_budget, get(), tokens);
    return *this;
  }
  Result run(std::string_view task) {
    return detail::generated(gen_supervisor_run, get(), detail::data(task), task.size(), nullptr, nullptr);
  }
  template <class Take>
  Result run(std::string_view task, Take &&take) {
    return detail::agent_run(gen_supervisor_run, take, get(), detail::data(task), task.size());
  }
  std::string describe() const { return detail::filled<std::string>(gen_supervisor_describe, get()); }
  /// Any thread.
  void cancel() noexcept { gen_supervisor_cancel(get()); }
  void set_cancel(const Cancel &cancel) { detail::call(gen_supervisor_set_cancel, get(), cancel.get()); }
};

/// Dense float32, [batch, seq, dim] for a cache of one sequence; fastest dimension first for one of many.
struct CacheTensor {
  std::vector<float> data;
  std::array<int32_t, 3> shape{};
};

/// A copy of the content of a layer.
struct CacheLayer {
  CacheTensor keys;
  CacheTensor values;
};

/// Memory of a cache in bytes, see kv_cache_memory_bytes.
struct CacheMemory {
  size_t resident = 0;
  size_t payload = 0;
  size_t metadata = 0;
};

namespace detail {

inline void make_room(CacheTensor *tensor) {
  size_t count = 1;
  for (const int32_t extent : tensor->shape) count *= static_cast<size_t>(extent);
  tensor->data.resize(count);
}

/// Through ask(k, k_room, v, v_room, k_shape, v_shape).
template <class Ask>
CacheLayer layer_of(Ask ask) {
  CacheLayer out;
  ask(nullptr, 0, nullptr, 0, out.keys.shape.data(), out.values.shape.data());
  make_room(&out.keys);
  make_room(&out.values);
  ask(out.keys.data.data(), out.keys.data.size(), out.values.data.data(), out.values.data.size(), out.keys.shape.data(),
      out.values.shape.data());
  return out;
}

}  // namespace detail

/// What caches of one and of many sequences have in common.
class AnyCache : public detail::Handle<kv_cache, kv_cache_free> {
 public:
  /// The kind's name, such as "fp32" or "paged".
  std::string kind() const { return kv_cache_kind(get()); }
  /// The type of the stored elements; empty for a cache of many sequences before init().
  std::string dtype() const {
    const char *name = kv_cache_dtype(get());
    return name != nullptr ? name : "";
  }
  bool is_lossy() const noexcept { return kv_cache_is_lossy(get()) != 0; }
  /// JSON of kv_cache_describe.
  std::string describe() const { return detail::filled<std::string>(kv_cache_describe, get()); }
  CacheMemory memory() const {
    CacheMemory use;
    detail::call(kv_cache_memory_bytes, get(), &use.resident, &use.payload, &use.metadata);
    return use;
  }
  /// The cache inside a tracing cache or a wrapper, for reading while this one lives; null for
  /// others.
  const kv_cache *underlying() const noexcept { return kv_cache_underlying(get()); }
  void set_allocator(const gen_allocator *allocator) { detail::call(kv_cache_set_allocator, get(), allocator); }

 protected:
  using Handle::Handle;
};

/// Keys and values for direct use: takes the cache that a kv_cache_…_new function made.
class Cache : public AnyCache {
 public:
  /// Calls a maker with all but its last two arguments: Cache::make(kv_cache_fp16_new, layers, max_seq_len).
  template <class Maker, class... Args>
  static Cache make(Maker maker, Args... args) {
    return Cache(detail::made<kv_cache>(maker, args...));
  }
  explicit Cache(kv_cache *owned) noexcept : AnyCache(owned) {}

  /// k, v: [batch, seq, dim].
  void update(int32_t layer, const float *k, const float *v, int32_t batch, int32_t seq, int32_t dim) {
    detail::call(kv_cache_update, get(), layer, k, v, batch, seq, dim);
  }
  /// A copy of a layer; of shape 0, 0, 0 if it is empty.
  CacheLayer layer(int32_t layer) const {
    return detail::layer_of([&](float *k, size_t k_room, float *v, size_t v_room, int32_t *k_shape, int32_t *v_shape) {
      detail::call(kv_cache_get, get(), layer, k, k_room, v, v_room, k_shape, v_shape);
    });
  }
  kv_cache_span view(int32_t layer) const {
    kv_cache_span span{};
    span.struct_size = sizeof span;
    detail::call(kv_cache_view, get(), layer, &span);
    return span;
  }
  int32_t seq_len() const noexcept { return kv_cache_seq_len(get()); }
  int32_t layer_seq_len(int32_t layer) const noexcept { return kv_cache_layer_seq_len(get(), layer); }
  int32_t kv_len(int32_t layer) const noexcept { return kv_cache_kv_len(get(), layer); }
  int32_t num_layers() const noexcept { return kv_cache_num_layers(get()); }
  int32_t max_seq_len() const noexcept { return kv_cache_max_seq_len(get()); }
  /// KV_CACHE_CAN_… bits.
  uint32_t capabilities() const noexcept { return kv_cache_capabilities(get()); }
  void truncate(int32_t n) { detail::call(kv_cache_truncate, get(), n); }
  void reset() { detail::call(kv_cache_reset, get()); }
  Cache clone() const { return make(kv_cache_clone, get()); }
  void save(const std::string &path) const { detail::call(kv_cache_save, get(), path.c_str()); }
  void load(const std::string &path) { detail::call(kv_cache_load, get(), path.c_str()); }
  std::vector<std::byte> save() const { return detail::filled<std::vector<std::byte>>(kv_cache_save_buffer, get()); }
  void load(const std::vector<std::byte> &state) {
    detail::call(kv_cache_load_buffer, get(), state.data(), state.size());
  }
};

/// Device memory. Cache::make(kv_cache_gpu_new_typed, ...) and kv_cache_gpu_new take any
/// gen_gpu_allocator.
class GpuAllocator : public detail::Handle<gen_gpu_allocator, gen_gpu_allocator_release> {
 public:
  /// Host memory that acts as a device.
  static GpuAllocator host() { return GpuAllocator(detail::made<gen_gpu_allocator>(gen_gpu_allocator_host)); }
  /// Memory of a device of the backend "cuda".
  static GpuAllocator cuda(int32_t device) {
    return GpuAllocator(detail::made<gen_gpu_allocator>(gen_gpu_allocator_cuda, device));
  }
  size_t bytes() const {
    size_t taken = 0;
    detail::call(gen_gpu_allocator_counters, get(), nullptr, &taken, nullptr);
    return taken;
  }

 private:
  explicit GpuAllocator(gen_gpu_allocator *table) : Handle(table) {}
};

/// Blocks that paged caches share.
class BlockPool : public detail::Handle<kv_cache_pool, kv_cache_pool_free> {
 public:
  BlockPool(int32_t layers, int32_t block_size, int32_t row_dim, int32_t max_memory_mb, const std::string &dtype = "fp32")
      : Handle(detail::made<kv_cache_pool>(kv_cache_pool_new, layers, block_size, row_dim, max_memory_mb, dtype.c_str())) {}
  /// Stores blocks in the memory of a device; call it before the first one is allocated.
  BlockPool &gpu_allocator(const gen_gpu_allocator *allocator) {
    detail::call(kv_cache_pool_set_gpu_allocator, get(), allocator);
    return *this;
  }
  /// An empty cache over the pool.
  Cache cache(int32_t layers) const { return Cache::make(kv_cache_paged_new, get(), layers); }
  size_t capacity() const noexcept { return kv_cache_pool_cap(get()); }
  size_t available() const noexcept { return kv_cache_pool_available(get()); }
  int32_t block_size() const noexcept { return kv_cache_pool_block_size(get()); }
  double fragmentation() const noexcept { return kv_cache_pool_fragmentation(get()); }
  size_t resident_bytes() const noexcept { return kv_cache_pool_resident_bytes(get()); }
  /// Allocates a block for the caller, to be passed to free() or inject().
  kv_cache_block *alloc() const { return detail::made<kv_cache_block>(kv_cache_pool_alloc, get()); }
  void retain(kv_cache_block *block) const { detail::call(kv_cache_pool_retain_block, get(), block); }
  void free(kv_cache_block *block) const { detail::call(kv_cache_pool_free_block, get(), block); }
  /// The blocks of a cache over the pool, borrowed until it changes.
  static std::vector<kv_cache_block *> table(const Cache &cache) {
    return detail::filled<std::vector<kv_cache_block *>>(kv_cache_block_table, cache.get());
  }
  /// Makes an empty cache continue from written blocks, of which it takes over one reference each.
  static void inject(Cache &cache, const std::vector<kv_cache_block *> &blocks, int32_t positions, int32_t batch,
                     int32_t dim) {
    detail::call(kv_cache_inject_blocks, cache.get(), blocks.data(), blocks.size(), positions, batch, dim);
  }
};

/// How to make tiered caches. set() takes the options that describe() lists.
class TierConfig : public detail::Handle<kv_cache_tier_config, kv_cache_tier_config_free> {
 public:
  TierConfig() : Handle(detail::made<kv_cache_tier_config>(kv_cache_tier_config_new)) {}
  TierConfig &set(const std::string &key, const std::string &value) {
    detail::call(kv_cache_tier_config_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  /// The allocator of hot layers' device memory; null: host memory.
  TierConfig &gpu_allocator(const gen_gpu_allocator *allocator) {
    detail::call(kv_cache_tier_config_set_gpu_allocator, get(), allocator);
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(kv_cache_tier_config_describe, get()); }
};

/// A cache whose layers move between memory, a compact form and files. Any thread may move them.
class TieredCache : public Cache {
 public:
  explicit TieredCache(const TierConfig &config) : Cache(detail::made<kv_cache>(kv_cache_tiered_new, config.get())) {}
  /// Continues from the files of an earlier one.
  static TieredCache open(const TierConfig &config) {
    return TieredCache(detail::made<kv_cache>(kv_cache_tiered_open, config.get()));
  }
  /// KV_CACHE_TIER_….
  int32_t tier(int32_t layer) const noexcept { return kv_cache_tiered_tier(get(), layer); }
  int64_t access_count(int32_t layer) const noexcept { return kv_cache_tiered_access_count(get(), layer); }
  bool layer_is_lossy(int32_t layer) const noexcept { return kv_cache_tiered_is_lossy(get(), layer) != 0; }
  void promote(int32_t layer) const { detail::call(kv_cache_tiered_promote, get(), layer); }
  void demote(int32_t layer) const { detail::call(kv_cache_tiered_demote, get(), layer); }
  void manage() const { detail::call(kv_cache_tiered_manage, get()); }
  void prefetch(const std::vector<int32_t> &layers) const {
    detail::call(kv_cache_tiered_prefetch_async, get(), layers.data(), layers.size());
  }
  /// As layer(), from the copy that prefetch() has made; of shape 0, 0, 0 if there is none yet.
  CacheLayer prefetched(int32_t layer) const {
    return detail::layer_of([&](float *k, size_t k_room, float *v, size_t v_room, int32_t *k_shape, int32_t *v_shape) {
      detail::call(kv_cache_tiered_get_prefetched, get(), layer, k, k_room, v, v_room, k_shape);
      std::copy(k_shape, k_shape + 3, v_shape);
    });
  }
  void close() const { detail::call(kv_cache_tiered_close, get()); }

 private:
  explicit TieredCache(kv_cache *owned) noexcept : Cache(owned) {}
};

/// Keys and values of many sequences: takes the cache that kv_cache_causal_new or another function
/// of kv_cache_batch.h made. That header has the order of calls.
class BatchCache : public AnyCache {
 public:
  /// BatchCache::make(kv_cache_swa_new, window).
  template <class Maker, class... Args>
  static BatchCache make(Maker maker, Args... args) {
    return BatchCache(detail::made<kv_cache>(maker, args...));
  }
  /// One of several; the index is the layer type.
  static BatchCache wrapper(const std::vector<BatchCache> &caches) {
    std::vector<kv_cache *> handles;
    for (const BatchCache &cache : caches) handles.push_back(cache.get());
    return make(kv_cache_wrapper_new, handles.data(), handles.size());
  }
  explicit BatchCache(kv_cache *owned) noexcept : AnyCache(owned) {}

  void set_config(int32_t padding, bool permuted_v, const std::string &mask_dtype = "fp32") {
    detail::call(kv_cache_set_config, get(), padding, int32_t{permuted_v}, mask_dtype.c_str());
    half_mask_ = mask_dtype == "fp16";
  }
  void set_shift(kv_cache_shift_fn shift, void *user) { detail::call(kv_cache_set_shift, get(), shift, user); }
  void set_quota(int32_t entries) { detail::call(kv_cache_set_quota, get(), entries); }
  void init(const std::string &dtype, int32_t max_sequences, int32_t capacity, int32_t max_batch) {
    detail::call(kv_cache_init, get(), dtype.c_str(), max_sequences, capacity, max_batch);
  }
  void set_layer(int32_t layer) { detail::call(kv_cache_set_layer, get(), layer); }
  void set_layer_type(int32_t type) { detail::call(kv_cache_set_layer_type, get(), type); }
  /// Positions and sequences of a pass's tokens, one of each per token; `multimodal` are indices of
  /// tokens.
  void start_forward(const std::vector<int32_t> &positions, const std::vector<int32_t> &sequences, bool reserve = false,
                     const std::vector<int32_t> &multimodal = {}) {
    if (positions.size() != sequences.size()) {
      throw Error(GEN_ERROR_INVALID_ARGUMENT, "as many positions as sequences");
    }
    detail::call(kv_cache_start_forward, get(), positions.data(), sequences.data(), positions.size(), int32_t{reserve},
                 multimodal.data(), multimodal.size());
  }
  /// k: [k_dim, k_heads, n], v: [v_dim, v_heads, n].
  void put(const float *k, int32_t k_heads, int32_t k_dim, const float *v, int32_t v_heads, int32_t v_dim, int32_t n) {
    detail::call(kv_cache_put, get(), k, k_heads, k_dim, v, v_heads, v_dim, n);
  }
  /// What the tokens of a pass may see; an empty mask hides nothing.
  struct Masked {
    CacheTensor keys;
    CacheTensor values;
    std::vector<std::byte> mask;  ///< [length, n] float, or binary16 if set_config() said so
    std::array<int32_t, 2> mask_shape{};
  };
  Masked get_masked() {
    Masked out;
    const auto ask = [&](float *k, size_t k_room, float *v, size_t v_room, void *mask, size_t mask_room) {
      detail::call(kv_cache_get_masked, get(), k, k_room, v, v_room, mask, mask_room, out.keys.shape.data(),
                   out.values.shape.data(), out.mask_shape.data());
    };
    ask(nullptr, 0, nullptr, 0, nullptr, 0);
    const size_t cells = static_cast<size_t>(out.mask_shape[0]) * static_cast<size_t>(out.mask_shape[1]);
    detail::make_room(&out.keys);
    detail::make_room(&out.values);
    out.mask.resize(cells * (half_mask_ ? 2 : sizeof(float)));
    ask(out.keys.data.data(), out.keys.data.size(), out.values.data.data(), out.values.data.size(),
        cells > 0 ? out.mask.data() : nullptr, cells);
    return out;
  }
  void set_causal(const std::vector<int32_t> &except) {
    detail::call(kv_cache_set_causal, get(), except.data(), except.size());
  }
  void copy_prefix(int32_t src, int32_t dst, int32_t length) {
    detail::call(kv_cache_copy_prefix, get(), src, dst, length);
  }
  bool can_resume(int32_t sequence, int32_t position) const {
    int32_t can = 0;
    detail::call(kv_cache_can_resume, get(), sequence, position, &can);
    return can != 0;
  }
  void remove(int32_t sequence, int32_t begin, int32_t end) {
    detail::call(kv_cache_remove, get(), sequence, begin, end);
  }
  int32_t compact(int32_t budget) {
    int32_t moved = 0;
    detail::call(kv_cache_compact, get(), budget, &moved);
    return moved;
  }
  bool encoder_cached(int32_t sequence) const {
    int32_t cached = 0;
    detail::call(kv_cache_encoder_cached, get(), sequence, &cached);
    return cached != 0;
  }
  void close() { detail::call(kv_cache_close, get()); }

 private:
  bool half_mask_ = false;
};

}  // namespace gen

#endif  // GENERATE_GENERATE_HPP

// SPDX-License-Identifier: Apache-2.0
// Models, tokenizers, chat templates and conversations. See generate.hpp.
#ifndef GENERATE_MODEL_HPP
#define GENERATE_MODEL_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handle.hpp"

namespace gen {

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

}  // namespace gen

#endif  // GENERATE_MODEL_HPP

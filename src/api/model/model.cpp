// SPDX-License-Identifier: Apache-2.0
// model.h of the C API: loading, properties, and a forward pass of one sequence.
#include <generate/model.h>

#include <cstdio>
#include <cstring>
#include <functional>

#include "api/boundary/boundary.h"
#include "api/boundary/host_call.h"
#include "base/c_locale.h"
#include "base/json_text.h"
#include "api/model/model_handle.h"
#include "base/io_error.h"
#include "model/gguf/totals.h"

namespace {

using gen::Code;
using gen::json_quote;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::ModelParts;
using gen::api::not_null;
using gen::gguf::GgufFile;

gen::SharedCallbacks callbacks_of(const gen_model_options& options) {
  return gen::api::joined({options.allocator != nullptr ? options.allocator->callbacks() : nullptr,
                           options.gpu_callbacks});
}

Result<std::string> describe(const GgufFile& file, const ModelParts& parts) {
  const auto& traits = parts.loaded->model->traits();
  GEN_ASSIGN(const std::string name, file.metadata().get_string("general.name", ""));
  const gen::gguf::Totals totals =
      gen::gguf::totals(file, traits.num_layers, traits.num_experts_used, traits.num_experts);
  std::string shares = "{";
  for (const auto& [type, share] : totals.shares) {
    const gen::CLocale numbers;
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", share);
    shares += (shares.size() > 1 ? "," : "") + json_quote(type) + ":" + text;
  }
  std::string unused;
  for (const std::string& tensor : parts.loaded->unused) {
    unused += (unused.empty() ? "" : ",") + json_quote(tensor);
  }
  const auto number = [](const char* key, int64_t value) {
    return ",\"" + std::string(key) + "\":" + std::to_string(value);
  };
  return "{\"architecture\":" + json_quote(traits.architecture) + ",\"name\":" + json_quote(name) +
         number("parameters", totals.parameters) + number("active_parameters", totals.active) +
         number("vocab_size", traits.vocab_size) + number("max_seq_len", traits.max_seq_len) +
         number("num_layers", traits.num_layers) + number("num_heads", traits.num_heads) +
         number("num_kv_heads", traits.num_kv_heads) + number("head_dim", traits.head_dim) +
         number("hidden", traits.hidden) + number("num_experts", traits.num_experts) +
         number("num_experts_used", traits.num_experts_used) + ",\"weight_types\":" + shares + "}" +
         ",\"backend\":" + json_quote(parts.engine->name()) +
         number("gpu_layers", parts.on_device.layers) +
         number("gpu_expert_layers", parts.on_device.experts) +
         number("threads", parts.pool->size()) + number("gguf_version", file.version()) +
         ",\"unused_tensors\":[" + unused + "]}";
}

/// Completes loading once the file is open. `lasting`: its bytes stay valid while it is open.
Result<std::unique_ptr<gen_model>> finish_load(std::shared_ptr<const GgufFile> file,
                                               const gen_model_options& options, bool lasting) {
  auto parts = std::make_shared<ModelParts>();
  gen::model::OpenOptions wanted = options;
  wanted.lasting = lasting;
  gen::api::Progress progress(options.callback, options.callback_user);
  if (options.callback != nullptr) wanted.progress = std::ref(progress);
  const Status opened = gen::model::open_model(file, wanted, parts.get());
  GEN_TRY(progress.thrown());
  GEN_TRY(opened);
  GEN_ASSIGN(parts->description, describe(*file, *parts));
  auto handle = std::make_unique<gen_model>();
  handle->tokenizer.impl = parts->loaded->tokenizer;
  const auto& traits = parts->loaded->model->traits();
  using gen::tokenizer::Special;
  handle->config = {traits.vocab_size,
                    traits.max_seq_len,
                    handle->tokenizer.impl->special(Special::kEos),
                    handle->tokenizer.impl->special(Special::kBos),
                    traits.num_layers,
                    traits.num_heads,
                    traits.num_kv_heads,
                    traits.head_dim,
                    traits.hidden,
                    static_cast<int32_t>(parts->loaded->model->layer_shapes().size()),
                    traits.architecture};
  handle->shared = gen::api::Shared<const ModelParts>(std::move(parts), callbacks_of(options));
  return handle;
}

Status load_adapters(const gen_model& model, const gen_model_options& options) {
  for (const std::string& path : options.adapters) {
    GEN_TRY(gen::api::load_adapter(*model.shared.keep(), path.c_str(), path.c_str(), 1.0F));
  }
  return {};
}

/// A copy, because a callback may free or change the options.
gen_model_options options_or_defaults(const gen_model_options* options) {
  return options != nullptr ? *options : gen_model_options();
}

}  // namespace

Result<std::unique_ptr<gen_model>> gen::api::load_model(const char* path,
                                                        const gen_model_options& options) {
  const auto mode = options.use_mmap ? MappedFile::Mode::kMap : MappedFile::Mode::kRead;
  auto file = GgufFile::open(path, mode);
  if (!file.ok()) return in_file(path, file.status());
  auto model = finish_load(std::move(file).value(), options, true);
  if (!model.ok()) return in_file(path, model.status());
  GEN_TRY(load_adapters(**model, options));
  return model;
}

gen_status gen_model_load(const char* path, const gen_model_options* options, gen_model** out,
                          gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(path, "path"));
    GEN_TRY(not_null(out, "out"));
    const gen_model_options chosen = options_or_defaults(options);
    const gen::api::Entry entry(callbacks_of(chosen));
    GEN_TRY(entry.entered("the allocator"));
    GEN_ASSIGN(auto model, gen::api::load_model(path, chosen));
    *out = model.release();
    return {};
  });
}

gen_status gen_model_load_memory(const void* data, size_t size, const gen_model_options* options,
                                 gen_model** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(data, "data"));
    GEN_TRY(not_null(out, "out"));
    const gen_model_options chosen = options_or_defaults(options);
    const gen::api::Entry entry(callbacks_of(chosen));
    GEN_TRY(entry.entered("the allocator"));
    GEN_ASSIGN(auto file, GgufFile::parse({static_cast<const std::byte*>(data), size}));
    GEN_ASSIGN(auto model, finish_load(std::move(file), chosen, false));
    GEN_TRY(load_adapters(*model, chosen));
    *out = model.release();
    return {};
  });
}

void gen_model_free(gen_model* model) {
  if (model != nullptr) gen::api::end_handle(model, model->shared.callbacks());
}

const gen_model_config* gen_model_get_config(const gen_model* model) {
  return model != nullptr ? &model->config : nullptr;
}

int32_t gen_model_config_vocab_size(const gen_model_config* config) {
  return config != nullptr ? config->vocab_size : 0;
}
int32_t gen_model_config_max_seq_len(const gen_model_config* config) {
  return config != nullptr ? config->max_seq_len : 0;
}
int32_t gen_model_config_eos(const gen_model_config* config) {
  return config != nullptr ? config->eos : -1;
}
int32_t gen_model_config_bos(const gen_model_config* config) {
  return config != nullptr ? config->bos : -1;
}
int32_t gen_model_config_num_layers(const gen_model_config* config) {
  return config != nullptr ? config->num_layers : 0;
}
int32_t gen_model_config_num_cache_layers(const gen_model_config* config) {
  return config != nullptr ? config->cache_layers : 0;
}
int32_t gen_model_config_num_heads(const gen_model_config* config) {
  return config != nullptr ? config->num_heads : 0;
}
int32_t gen_model_config_num_kv_heads(const gen_model_config* config) {
  return config != nullptr ? config->num_kv_heads : 0;
}
int32_t gen_model_config_head_dim(const gen_model_config* config) {
  return config != nullptr ? config->head_dim : 0;
}
int32_t gen_model_config_hidden(const gen_model_config* config) {
  return config != nullptr ? config->hidden : 0;
}

size_t gen_model_metadata_count(const gen_model* model) {
  return model != nullptr ? model->shared.peek().loaded->metadata->entries().size() : 0;
}

const char* gen_model_metadata_key(const gen_model* model, size_t index) {
  if (model == nullptr) return nullptr;
  const auto entries = model->shared.peek().loaded->metadata->entries();
  return index < entries.size() ? entries[index].key().data() : nullptr;
}

gen_status gen_model_metadata_value(const gen_model* model, const char* key, char* buf,
                                    size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(key, "key"));
    const auto parts = model->shared.keep();
    const auto* value = parts->loaded->metadata->find(key);
    if (value == nullptr) {
      return gen::error(Code::kInvalidArgument, "the file has no metadata key \"%.200s\"", key);
    }
    return gen::api::text_out(value->text(), buf, capacity, n);
  });
}

gen_status gen_model_describe(const gen_model* model, char* buf, size_t capacity, size_t* n,
                              gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    return gen::api::text_out(model->shared.keep()->description, buf, capacity, n);
  });
}

gen_status gen_model_memory(const gen_model* model, const char* key, size_t* bytes,
                            gen_error* error) {
  if (bytes != nullptr) *bytes = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(bytes, "bytes"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    if (std::strcmp(key, "file") == 0) {
      *bytes = used->file_bytes;
      return {};
    }
    GEN_ASSIGN(*bytes, used->loaded->model->memory(key));
    return {};
  });
}

const gen_tokenizer* gen_model_tokenizer(const gen_model* model) {
  if (model == nullptr || model->tokenizer.impl == nullptr) return nullptr;
  return &model->tokenizer;
}

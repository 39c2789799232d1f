// SPDX-License-Identifier: Apache-2.0
// The handle gen_model: the loaded model and everything it runs on, shared by all users.
#pragma once

#include <generate/model.h>

#include <memory>
#include <string>
#include <vector>

#include "api/boundary/entry.h"
#include "api/text/text_handles.h"
#include "base/home_process.h"
#include "model/open_model.h"

struct gen_model_config {
  int32_t vocab_size = 0;
  int32_t max_seq_len = 0;
  int32_t eos = -1;
  int32_t bos = -1;
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t hidden = 0;
  int32_t cache_layers = 0;     // layers that keep keys and values in the library's caches
  std::string name = "custom";  // the architecture, or "custom" for a caller's model
};

/// `progress` of the base is set from the callback when a file is loaded.
struct gen_model_options : gen::model::OpenOptions {
  std::shared_ptr<gen::Callbacks> gpu_callbacks;  // of the GPU allocator, or null
  std::vector<std::string> adapters;  // files that are loaded with the model, and their names
  bool use_mmap = true;
  gen_progress_callback callback = nullptr;
  void* callback_user = nullptr;
};

namespace gen::api {

/// A caller's model has a pool and an engine only if it keeps keys and values. Heads for another
/// one have an engine of their own.
struct ModelParts : model::OpenModel {
  std::string description;  // JSON
};

/// The model alone; it keeps all its parts alive.
inline std::shared_ptr<const model::Model> model_of(
    const std::shared_ptr<const ModelParts>& parts) {
  return {parts, parts->loaded->model.get()};
}

}  // namespace gen::api

struct gen_model : gen::Postponed {
  gen::api::Shared<const gen::api::ModelParts> shared;
  gen_tokenizer tokenizer;
  gen_model_config config;
  gen::HomeProcess home;
};

namespace gen::api {

/// gen_adapter_load for callers inside the library.
Status load_adapter(const ModelParts& parts, const char* path, const char* name, float scale);
/// gen_model_load for callers inside the library.
Result<std::unique_ptr<gen_model>> load_model(const char* path, const gen_model_options& options);

}  // namespace gen::api

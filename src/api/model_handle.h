// SPDX-License-Identifier: Apache-2.0
// What gen_model is: the loaded model with everything it runs on, shared by all that use it.
#pragma once

#include <generate/model.h>

#include <memory>
#include <string>

#include "api/entry.h"
#include "api/handles.h"
#include "base/allocator.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "model/loader.h"

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
  int32_t kv_layers = 0;        // of a model of the caller's: those that use the library's caches
  std::string name = "custom";  // of a model of the caller's; else its architecture
};

struct gen_model_options {
  std::string backend = "cpu";
  int32_t device = 0;
  int32_t threads = 0;  // 0: one per usable CPU
  std::shared_ptr<gen::ThreadPool> pool;
  std::shared_ptr<gen::Allocator> allocator;  // null: the system's
  bool use_mmap = true;
  bool repack = true;
  gen_progress_callback progress = nullptr;
  void* progress_user = nullptr;
  int32_t max_seq_len = 0;
  bool check_tensors = false;
  bool dry_run = false;  // for estimates; EngineOptions::dry_run
};

namespace gen::api {

/// Members are destroyed from the bottom up, each before what it stands on. A model of the caller's
/// has a pool and an engine only if it keeps keys and values.
struct ModelParts {
  std::shared_ptr<Allocator> allocator;  // null: the system's
  std::shared_ptr<ThreadPool> pool;
  std::shared_ptr<engine::Engine> engine;
  std::shared_ptr<const model::LoadedModel> loaded;
  std::string description;  // JSON
  size_t file_bytes = 0;

  [[nodiscard]] Allocator& memory() const noexcept {
    return allocator != nullptr ? *allocator : system_allocator();
  }
};

/// The model alone, keeping all its parts.
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

/// What generators are made over, which keeps all the parts.
generate::ModelInUse in_use(const std::shared_ptr<const ModelParts>& parts);
/// Of options as C sees them.
generate::CacheChoice cache_choice(const gen_options& options);

/// gen_model_load and gen_create for what stands behind the border.
Result<std::unique_ptr<gen_model>> load_model(const char* path, const gen_model_options& options);
Result<std::unique_ptr<gen_generator>> create_generator(const gen_model& model,
                                                        const gen_options& options);

}  // namespace gen::api

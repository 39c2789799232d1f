// SPDX-License-Identifier: Apache-2.0
// See open_model.h.
#include "model/open_model.h"

#include <algorithm>
#include <utility>

#include "base/cpu.h"
#include "engine/backend/registry.h"
#include "model/gguf/vocab.h"

namespace gen::model {

Status OpenModel::start(const OpenOptions& options) {
  allocator = options.allocator;
  pool = options.pool;
  if (pool != nullptr && options.threads != 0) {
    return error(Code::kInvalidArgument,
                 "threads %d and a thread_pool, which brings its own: one of the two",
                 options.threads);
  }
  if (pool == nullptr) {
    GEN_ASSIGN(pool, ThreadPool::create(options.threads));
  }
  GEN_TRY(pool->check_home());
  GEN_ASSIGN(const engine::EngineRow* row, engine::engine_row(options.backend));
  // If it is not available, create_engine() reports why.
  const int32_t devices = row->why_not() == nullptr ? row->device_count() : 1;
  if (options.device >= devices) {
    return error(Code::kOutOfRange, "device %d of backend %s, which has %d", options.device,
                 options.backend.c_str(), devices);
  }
  engine::EngineOptions wanted;
  wanted.device = options.device;
  wanted.gpu_allocator = options.gpu_allocator;
  wanted.pool = pool;
  wanted.allocator = &memory();
  wanted.repack = options.repack;
  wanted.dry_run = options.dry_run;
  GEN_ASSIGN(wanted.cpu_level, chosen_cpu_level());
  const bool has_memory = row->gpu_allocator != nullptr;
  const auto no_device = [row](const char* option, int32_t layers) {
    return error(Code::kInvalidArgument, "%s is %d, and backend %s has no device", option, layers,
                 row->name);
  };
  const auto& [layers, experts] = options.on_device;
  if (!has_memory && layers > 0) return no_device("gpu_layers", layers);
  if (!has_memory && experts > 0) return no_device("gpu_expert_layers", experts);
  if (has_memory && !options.on_device.all()) {
    GEN_ASSIGN(host, engine::create_engine(engine::engine_rows().front().name, wanted));
  }
  if (has_memory && options.on_device.layers == 0) {
    engine = std::move(host);
    return {};
  }
  GEN_ASSIGN(engine, engine::create_engine(options.backend, wanted));
  return {};
}

Status open_model(std::shared_ptr<const gguf::GgufFile> file, const OpenOptions& options,
                  OpenModel* out) {
  GEN_TRY(out->start(options));
  LoadOptions load;
  load.engine = out->engine;
  load.host = out->host;
  load.on_device = options.on_device;
  load.max_seq_len = options.max_seq_len;
  load.lock = options.lock;
  load.check_tensors = options.check_tensors;
  load.pre_tokenizer = options.pre_tokenizer;
  load.progress = options.progress;
  load.lasting = options.lasting;
  GEN_ASSIGN(out->loaded, load_model(file, load));
  GEN_TRY(file->check_unchanged());
  if (out->host != nullptr && out->loaded->on_device.layers == 0) out->engine = out->host;
  if (!out->engine->memory().in_host()) out->on_device = out->loaded->on_device;
  if (const int32_t own = out->loaded->model->traits().max_seq_len; options.max_seq_len > own) {
    return error(Code::kOutOfRange, "max_seq_len %d is above the model's context of %d",
                 options.max_seq_len, own);
  }
  if (out->loaded->tokenizer == nullptr) {
    return gguf::no_tokenizer(file->metadata());
  }
  out->file_bytes = file->total_bytes();
  return {};
}

}  // namespace gen::model

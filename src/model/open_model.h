// SPDX-License-Identifier: Apache-2.0
// A model together with its threads, engine and memory. loader.h handles the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/allocator.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/memory/gpu_allocator.h"
#include "model/loader.h"

namespace gen::model {

struct OpenOptions {
  std::string backend = "cpu";
  int32_t device = 0;
  DeviceLayers on_device;                                 // LoadOptions::on_device
  int32_t threads = 0;                                    // 0: one per usable CPU
  std::shared_ptr<ThreadPool> pool;                       // instead of threads of its own
  std::shared_ptr<Allocator> allocator;                   // null: the system's
  std::shared_ptr<const engine::GpuTable> gpu_allocator;  // EngineOptions::gpu_allocator
  bool repack = true;                                     // EngineOptions::repack
  bool dry_run = false;                                   // for estimates; EngineOptions::dry_run
  int32_t max_seq_len = 0;                                // 0: the model's own, which is the
                                                          // maximum
  bool lock = false;                                      // LoadOptions::lock
  bool check_tensors = false;
  std::string pre_tokenizer;             // LoadOptions::pre_tokenizer
  std::function<bool(double)> progress;  // LoadOptions::progress
  bool lasting = true;                   // LoadOptions::lasting
};

/// Members are destroyed from the bottom up, each before those it depends on.
struct OpenModel {
  std::shared_ptr<Allocator> allocator;  // null: the system's
  std::shared_ptr<ThreadPool> pool;
  std::shared_ptr<engine::Engine> engine;
  std::shared_ptr<engine::Engine> host;  // for what is not on the engine; may be null
  std::shared_ptr<const LoadedModel> loaded;
  DeviceLayers on_device = {0, 0};  // numbers; 0 on a backend without devices
  size_t file_bytes = 0;

  [[nodiscard]] Allocator& memory() const noexcept {
    return allocator != nullptr ? *allocator : system_allocator();
  }
  /// Creates the members requested by `options`, except the model and its tokenizer.
  Status start(const OpenOptions& options);
};

/// Loads the file's model and its tokenizer, which it must have. kInvalidArgument for threads
/// together with a pool and for a number of layers on a backend without devices, kOutOfRange
/// for a device that does not exist or a context above the model's, kFormat without a tokenizer;
/// kIo if the file changed meanwhile; the errors of engines and load_model.
Status open_model(std::shared_ptr<const gguf::GgufFile> file, const OpenOptions& options,
                  OpenModel* out);

}  // namespace gen::model

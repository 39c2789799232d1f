// SPDX-License-Identifier: Apache-2.0
// LoadedTiny: a TinyModel loaded on the CPU engine, with caches and steps for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/sequence/registry.h"
#include "engine/memory/host_memory.h"
#include "model/loader.h"
#include "support/cpu_engine.h"
#include "support/tiny_graph.h"
#include "support/tiny_model.h"

namespace gen::test {

struct TinyEngineOptions {
  int32_t threads = 1;
  CpuLevel level = detect_cpu_level();
  Allocator* allocator = &system_allocator();
  bool repack = true;
  std::shared_ptr<engine::Engine> engine = nullptr;  // in place of one by the rows above
  std::shared_ptr<engine::Engine> host = nullptr;    // beside a device's
  model::DeviceLayers on_device = {};
  model::arch::Architectures architectures = model::arch::architectures();
};

class LoadedTiny {
 public:
  explicit LoadedTiny(const TinyModel& tiny, const TinyEngineOptions& options = {})
      : LoadedTiny(tiny.bytes(), options) {}
  /// Of a file's bytes.
  explicit LoadedTiny(std::vector<std::byte> bytes, const TinyEngineOptions& options = {})
      : bytes_(std::move(bytes)) {
    auto file = gguf::GgufFile::parse(bytes_);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return;
    model::LoadOptions load;
    load.engine = options.engine;
    if (load.engine == nullptr) {
      load.engine = cpu_engine({options.threads, options.level, options.allocator, options.repack});
    }
    load.host = options.host;
    load.on_device = options.on_device;
    load.architectures = options.architectures;
    auto loaded = model::load_model(std::move(file).value(), load);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    if (loaded.ok()) model_ = loaded.value()->model;
  }

  [[nodiscard]] const model::Model& model() const { return *model_; }
  /// Lets go of the model; what its weights may point into.
  std::vector<std::byte> release() {
    model_.reset();
    return std::move(bytes_);
  }
  [[nodiscard]] int32_t vocab() const { return model_->traits().vocab_size; }
  [[nodiscard]] std::unique_ptr<cache::KvCache> cache(const char* kind = "fp32",
                                                      int32_t capacity = 128) const {
    return cache::make_cache(kind, model_->layer_shapes(), capacity, engine::system_memory())
        .value();
  }
  /// Of a new sequence; null for models without one.
  [[nodiscard]] std::unique_ptr<cache::SequenceState> state() const {
    return model_->new_sequence_state().value();
  }
  /// One step of one sequence, committed; logits of all rows.
  std::vector<float> feed(cache::KvCache& cache, std::span<const int32_t> tokens,
                          cache::SequenceState* state = nullptr) const {
    OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache, tokens, true, state).ok());
    const Status status = model_->forward(batch.finish(vocab()));
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    return batch.results(vocab());
  }

 private:
  std::vector<std::byte> bytes_;
  std::shared_ptr<const model::Model> model_;
};

}  // namespace gen::test

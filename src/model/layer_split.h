// SPDX-License-Identifier: Apache-2.0
// Splits the layers of a model between a device's engine and the host's. The last layers and the
// head run on the device, so that rows are copied to it once and only results are copied back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/execution_plan.h"

namespace gen::model {

class LayerSplit {
 public:
  /// For a graph with this many blocks, which must outlive this object. Without a host everything
  /// is on the device.
  LayerSplit(const graph::Graph& graph, int32_t blocks, std::shared_ptr<engine::Engine> device,
             std::shared_ptr<engine::Engine> host)
      : graph_(graph), blocks_(blocks), device_(std::move(device)), host_(std::move(host)) {}

  /// Compiles by LoadOptions::device_layers; `*done` is the number of layers on the device. Errors
  /// as graph::compile.
  Result<std::shared_ptr<const graph::ExecutionPlan>> compile(int32_t layers,
                                                              const graph::CompileOptions& options,
                                                              int32_t* done) const;

 private:
  using Plan = std::shared_ptr<const graph::ExecutionPlan>;
  Result<Plan> compile_with(int32_t layers, const graph::CompileOptions& options) const;
  Result<Plan> compile_fitting(const graph::CompileOptions& options, int32_t* done) const;
  /// The engine of each block and of what follows them, of {device, host}.
  [[nodiscard]] std::vector<int32_t> engine_of_block(int32_t layers) const;
  [[nodiscard]] bool fits(int32_t layers, const graph::CompileOptions& options) const;
  /// The size of float32 keys and values of a full context in the last `layers` layers.
  [[nodiscard]] size_t cache_bytes(int32_t layers, int32_t context) const;

  const graph::Graph& graph_;
  int32_t blocks_;
  std::shared_ptr<engine::Engine> device_;
  std::shared_ptr<engine::Engine> host_;
};

}  // namespace gen::model

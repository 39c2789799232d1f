// SPDX-License-Identifier: Apache-2.0
// Which layers of a model run on a device's engine and which on the host's: the last ones and the
// end of the model are on the device, so that rows are copied there once and only results are
// copied back.
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
  /// Of a graph of so many blocks, which outlives this. Without a host everything is on the device.
  LayerSplit(const graph::Graph& graph, int32_t blocks, std::shared_ptr<engine::Engine> device,
             std::shared_ptr<engine::Engine> host)
      : graph_(graph), blocks_(blocks), device_(std::move(device)), host_(std::move(host)) {}

  /// LoadOptions::device_layers says what to do; `*done` is how many are on the device. Errors as
  /// graph::compile.
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
  /// Of keys and values of a full context in float32, in the last `layers`.
  [[nodiscard]] size_t cache_bytes(int32_t layers, int32_t context) const;

  const graph::Graph& graph_;
  int32_t blocks_;
  std::shared_ptr<engine::Engine> device_;
  std::shared_ptr<engine::Engine> host_;
};

}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Splits the layers of a model between a device's engine and the host's. The last layers and the
// head run on the device, so that rows are copied to it once and only results are copied back. The
// experts of some of them, which are most of a model's weights, may be left on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/execution_plan.h"
#include "model/loader.h"

namespace gen::model {

class LayerSplit {
 public:
  /// For a graph with this many blocks, which must outlive this object. Without a host everything
  /// is on the device.
  LayerSplit(const graph::Graph& graph, int32_t blocks, std::shared_ptr<engine::Engine> device,
             std::shared_ptr<engine::Engine> host)
      : graph_(graph), blocks_(blocks), device_(std::move(device)), host_(std::move(host)) {}

  /// Compiles by LoadOptions::on_device; `*done` has the numbers. Errors as graph::compile.
  Result<std::shared_ptr<const graph::ExecutionPlan>> compile(const DeviceLayers& wanted,
                                                              const graph::CompileOptions& options,
                                                              DeviceLayers* done) const;

 private:
  using Plan = std::shared_ptr<const graph::ExecutionPlan>;
  /// The engine of each block and of what follows them, of {device, host}.
  struct Map {
    std::vector<int32_t> blocks;
    std::vector<int32_t> experts;  // empty: they are where their blocks are
    [[nodiscard]] graph::EngineOfBlock view() const noexcept { return {blocks, experts}; }
  };
  [[nodiscard]] Map map_of(const DeviceLayers& on_device) const;
  Result<Plan> compile_with(const DeviceLayers& on_device,
                            const graph::CompileOptions& options) const;
  Result<Plan> compile_fitting(const DeviceLayers& wanted, const graph::CompileOptions& options,
                               DeviceLayers* done) const;
  [[nodiscard]] bool fits(const DeviceLayers& on_device,
                          const graph::CompileOptions& options) const;
  /// The size of float32 keys and values of a full context in the last `layers` layers.
  [[nodiscard]] size_t cache_bytes(int32_t layers, int32_t context) const;

  const graph::Graph& graph_;
  int32_t blocks_;
  std::shared_ptr<engine::Engine> device_;
  std::shared_ptr<engine::Engine> host_;
};

}  // namespace gen::model

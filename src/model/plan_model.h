// SPDX-License-Identifier: Apache-2.0
// A model that is a compiled plan. The loader makes it; see model.h for the contract.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/locked_memory.h"
#include "graph/execution_plan.h"
#include "graph/workspace.h"
#include "model/model.h"

namespace gen::model {

/// Threads: as Model. Each forward borrows a workspace; as many exist as forwards ever ran at once.
class PlanModel final : public Model {
 public:
  /// `source` is what weights point into, kept as long as the model; `mapped_bytes` is its size.
  /// `graph` is what the plan was compiled from.
  PlanModel(std::shared_ptr<const graph::ExecutionPlan> plan, ModelTraits traits,
            std::shared_ptr<const void> source, size_t mapped_bytes,
            std::shared_ptr<const graph::Graph> graph);

  [[nodiscard]] const ModelTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return plan_->cache_layers();
  }
  [[nodiscard]] std::span<engine::EngineMemory* const> layer_memories() const noexcept override {
    return layer_memories_;
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override;
  Status forward(const graph::Batch& batch) const override;
  Result<std::shared_ptr<const Model>> first_layers(int32_t n) const override;
  Result<std::shared_ptr<const Model>> hidden_rows(graph::RowEnd end) const override;
  Result<size_t> memory(std::string_view key) const override;

  /// Keeps the weights in the host's memory from being moved out of it. kOutOfMemory.
  Status lock_weights();

  [[nodiscard]] const graph::ExecutionPlan& plan() const noexcept { return *plan_; }

 private:
  using Plan = std::shared_ptr<const graph::ExecutionPlan>;
  /// Of the same weights.
  [[nodiscard]] graph::CompileOptions on_these_weights() const;
  /// A model of a graph that is made of this one's.
  Result<std::shared_ptr<const Model>> with(graph::Graph graph, ModelTraits traits) const;
  /// For rows with adapters: made when the first adapter is, and again for one of a higher rank.
  Result<Plan> adapter_plan(int32_t rank) const;

  ModelTraits traits_;
  std::shared_ptr<const void> source_;  // outlives plan_
  size_t mapped_bytes_;
  std::shared_ptr<const graph::ExecutionPlan> plan_;
  mutable graph::WorkspacePool workspaces_;  // synchronises itself
  std::shared_ptr<const graph::Graph> graph_;
  std::vector<engine::EngineMemory*> layer_memories_;  // of plans on several engines
  mutable std::mutex mutex_;
  mutable Plan adapter_plan_;
  LockedMemory locked_;  // of plan_, and goes before it
};

}  // namespace gen::model

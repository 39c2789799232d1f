// SPDX-License-Identifier: Apache-2.0
// A model that is a compiled plan. The loader makes it; see model.h for the contract.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/locked_memory.h"
#include "graph/execution_plan.h"
#include "graph/workspace.h"
#include "model/adapter_registry.h"
#include "model/adapter_targets.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace gen::model {

/// Threads: as Model. Each forward borrows a workspace; their number is the largest number of
/// concurrent forwards so far.
class PlanModel final : public Model {
 public:
  /// `source` owns the memory that weights point into and lives as long as the model;
  /// `mapped_bytes` is its size. `graph` is the source of the plan. `targets` are what adapters of
  /// the file may name; null: it takes none.
  PlanModel(std::shared_ptr<const graph::ExecutionPlan> plan, ModelTraits traits,
            std::shared_ptr<const void> source, size_t mapped_bytes,
            std::shared_ptr<const graph::Graph> graph,
            std::shared_ptr<const AdapterTargets> targets = nullptr);

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
  Result<std::shared_ptr<const Model>> observable() const override;
  Result<std::shared_ptr<const LoadedAdapter>> make_adapter(
      const gguf::GgufFile& file) const override;
  Result<std::shared_ptr<const graph::AdapterTable>> adapter_table(
      std::span<const std::vector<graph::AdapterUse>> mixes) const override;
  [[nodiscard]] AdapterRegistry* adapters() const noexcept override { return &adapters_; }
  Result<size_t> memory(std::string_view key) const override;

  Result<std::shared_ptr<const DraftHead>> draft_head() const override;
  Result<HeadTarget> head_target() const override;
  void note_head(const std::shared_ptr<const DraftHead>& head) const override;

  /// Sets where the head of the model's own file comes from. Before the model is shared.
  using LoadHead = std::function<Result<std::shared_ptr<const DraftHead>>(const HeadTarget&)>;
  void set_head(LoadHead load) { load_head_ = std::move(load); }
  /// Loads that head now and keeps it.
  Status keep_head();

  /// Locks the weights in host memory (mlock). kOutOfMemory.
  Status lock_weights();

  [[nodiscard]] const graph::ExecutionPlan& plan() const noexcept { return *plan_; }
  [[nodiscard]] std::shared_ptr<const graph::ExecutionPlan> shared_plan() const noexcept {
    return plan_;
  }

 private:
  using Plan = std::shared_ptr<const graph::ExecutionPlan>;
  /// A model with the same weights.
  [[nodiscard]] graph::CompileOptions on_these_weights() const;
  /// A model of a graph derived from this one's.
  Result<std::shared_ptr<const Model>> with(graph::Graph graph, ModelTraits traits,
                                            bool observed = false) const;
  [[nodiscard]] Status check_takes_adapters() const;
  /// The plan for rows with adapters: compiled with the first adapter, and again for one of a
  /// higher rank.
  Result<Plan> adapter_plan(int32_t rank) const;

  ModelTraits traits_;
  std::shared_ptr<const void> source_;  // outlives plan_
  size_t mapped_bytes_;
  std::shared_ptr<const graph::ExecutionPlan> plan_;
  mutable graph::WorkspacePool workspaces_;  // synchronises itself
  std::shared_ptr<const graph::Graph> graph_;
  std::shared_ptr<const AdapterTargets> targets_;
  std::vector<engine::EngineMemory*> layer_memories_;  // for plans on several engines
  mutable std::mutex mutex_;
  mutable Plan adapter_plan_;
  // Those that memory() counts: with a name, or without one while something runs with them.
  mutable std::vector<std::weak_ptr<const graph::Adapter>> made_;
  LoadHead load_head_;
  mutable std::weak_ptr<const DraftHead> head_;
  mutable std::vector<std::weak_ptr<const DraftHead>> file_heads_;  // of files beside the model's
  std::shared_ptr<const DraftHead> kept_head_;
  mutable AdapterRegistry adapters_;  // synchronises itself
  LockedMemory locked_;               // memory of plan_; destroyed before it
};

}  // namespace gen::model

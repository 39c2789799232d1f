// SPDX-License-Identifier: Apache-2.0
// A compiled graph: weights in the engine's layout, constants, a flat list of instructions, and the
// address of every intermediate value. compile.cpp makes it, plan_runner.cpp executes it.
// Immutable: a run writes only to its Workspace, its caches and its batch's outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "engine/engine.h"
#include "graph/adapter_table.h"
#include "graph/batch.h"
#include "graph/batch_check.h"
#include "graph/fusion.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "graph/workspace.h"

namespace gen::graph {

class ExecutionPlan;

struct CompileOptions {
  int32_t max_rows = kStepRows;  // rows a batch may have
  int32_t max_seq_len = 0;       // positions lie in [0, max_seq_len)
  /// Memory for selected rows (logits are the widest of all rows); larger selections run in chunks.
  size_t selected_arena_bytes = size_t{64} << 20;
  FusionOptions fusion;
  /// Called with the fraction of weight bytes done, ascending, ending with 1; false cancels.
  std::function<bool(double fraction)> progress;
  const CancelFlag* cancel = nullptr;  // polled between weights
  /// Runs may have an observer (product_observer.h): products' inputs keep their float32 rows
  /// beside the forms that products read. Results are the same, to the bit in the CPU engine.
  bool observed = false;
  /// Above 0: rows may have adapters, with at most this total rank at one site.
  int32_t adapter_rank = 0;
  /// A plan of the same graph for the same engine, or of a graph that this one is cut from
  /// (early_exit.h). Its weights are shared; those of the graph are not read.
  std::shared_ptr<const ExecutionPlan> base = nullptr;
  /// The addresses of those sources that are the base's; weights of others are made. Null: all are.
  const std::vector<uintptr_t>* of_base = nullptr;
  /// Called once for a source's bytes when no weight will read them again.
  std::function<void(std::span<const std::byte> data)> release;
};

/// Threads: immutable; run() from any number of threads, each with its own workspace and caches.
class ExecutionPlan {
 public:
  ExecutionPlan(const ExecutionPlan&) = delete;
  ExecutionPlan& operator=(const ExecutionPlan&) = delete;

  /// Runs a batch, see batch.h. Errors: as check_batch; kCancelled; those of caches and the engine.
  /// After a failure logits and taps are undefined, and caches are as uncommitted as before.
  Status run(const Batch& batch, Workspace& workspace) const;

  [[nodiscard]] BatchLimits limits() const noexcept;
  /// The engine of the first block, which is the only engine of most plans.
  [[nodiscard]] const std::shared_ptr<engine::Engine>& engine() const noexcept {
    return engines_.front();
  }
  [[nodiscard]] const Engines& engines() const noexcept { return engines_; }
  /// The engines, and the engine of each block, as given to compile().
  [[nodiscard]] EngineOfBlock engine_of_block() const noexcept {
    return {engine_of_block_, engine_of_experts_};
  }
  /// The engine, by number, whose memory each cache layer must be in.
  [[nodiscard]] std::span<const int32_t> layer_engines() const noexcept { return layer_engines_; }
  /// Bytes that weights and constants keep in engine memory.
  [[nodiscard]] size_t resident_bytes() const noexcept { return resident_bytes_; }
  /// Weight bytes that a decode step reads: all products, without the embedding.
  [[nodiscard]] size_t stream_bytes() const noexcept { return stream_bytes_; }
  /// True if some weight keeps reading the bytes it was made from.
  [[nodiscard]] bool borrows_sources() const noexcept { return borrows_sources_; }
  /// Weights and constants in the host's memory, including their sources where these are still
  /// read.
  [[nodiscard]] std::vector<std::span<const std::byte>> host_bytes() const;
  /// Arena bytes of one row, and of one selected row, in an engine's memory.
  [[nodiscard]] size_t row_bytes(size_t engine = 0) const noexcept { return row_bytes_[engine]; }
  [[nodiscard]] size_t selected_row_bytes(size_t engine = 0) const noexcept {
    return selected_row_bytes_[engine];
  }
  /// The number of selected rows per chunk.
  [[nodiscard]] int64_t selected_chunk() const noexcept { return selected_chunk_; }

  /// The layers of a cache for this plan; none if it reads another's. The plan owns the angles that
  /// they point to.
  [[nodiscard]] std::span<const cache::LayerShape> cache_layers() const noexcept { return layers_; }

  /// The layers of a state for this plan; null if it needs only caches.
  [[nodiscard]] const std::shared_ptr<const cache::StateLayout>& states() const noexcept {
    return states_;
  }
  [[nodiscard]] engine::EngineMemory& state_memory() const noexcept {
    return engines_[static_cast<size_t>(state_engine_)]->memory();
  }

  /// Products that adapters may add to.
  [[nodiscard]] std::span<const SiteShape> site_shapes() const noexcept { return site_shapes_; }
  /// The total rank that a row's adapters may have at one site; 0: rows have no adapters.
  [[nodiscard]] int32_t adapter_rank() const noexcept { return adapter_rank_; }

  // For humans and tools.
  [[nodiscard]] std::span<const Instruction> instructions() const noexcept { return instructions_; }
  [[nodiscard]] std::span<const ProgramValue> values() const noexcept { return values_; }
  [[nodiscard]] std::span<const SiteSlice> sites(const Instruction& instruction) const noexcept;

 private:
  friend class Compiler;
  friend class Binder;
  friend class PlanRunner;
  ExecutionPlan() = default;

  /// A compiled product.
  struct Prepared {
    std::shared_ptr<const engine::Weight> weight;
    std::vector<uintptr_t> sources;    // addresses of its source bytes, which may have been freed
    std::string name;                  // the sources' names joined by '+', for tracers
    std::vector<std::string> tensors;  // ProductInput::tensors
    std::vector<SiteSlice> sites;
    engine::EnginePtr<const engine::LowRankSite> low_rank;  // [sites], where rows have adapters
  };

  Engines engines_;  // first, so that they are destroyed last
  std::vector<int32_t> engine_of_block_;
  std::vector<int32_t> engine_of_experts_;
  std::vector<Instruction> instructions_;
  size_t first_selected_ = 0;     // instructions from here on run over selected rows
  size_t end_selected_taps_ = 0;  // one past the last tap among those; first_selected_ if none
  std::vector<ProgramValue> values_;
  std::vector<Prepared> products_;
  int32_t own_embedding_ = -1;   // the product that looks up the model's tokens
  StepBlock::Lists lists_;       // the lists that its operations read
  bool observed_ = false;        // CompileOptions::observed
  int64_t one_result_rows_ = 0;  // the largest Weight::one_result_rows() of its products
  std::vector<SiteShape> site_shapes_;
  int32_t adapter_rank_ = 0;
  std::vector<engine::EngineBuffer> low_rank_sites_;     // by engine
  std::vector<engine::EngineBuffer> constants_;          // by engine
  std::vector<engine::EnginePtr<const float>> vectors_;  // into them, by Instruction::vector
  /// And by engine and rotary table.
  std::vector<std::vector<engine::EnginePtr<const float>>> inv_freq_;
  std::vector<RopeSpec> ropes_;
  std::vector<engine::RopeTable> tables_;  // point into ropes_
  std::vector<cache::LayerShape> layers_;
  std::vector<int32_t> layer_engines_;
  std::vector<cache::LayerShape> given_;  // Graph::given
  std::vector<int32_t> given_engines_;    // that read them; -1: nobody reads the layer
  std::shared_ptr<const cache::StateLayout> states_;
  int32_t state_engine_ = 0;  // the engine whose memory they are in
  int64_t vocab_ = 0;
  int64_t hidden_ = 0;
  int64_t logits_ = 0;
  bool scores_ = true;
  int32_t n_taps_ = 0;
  bool normed_tap_ = false;  // kNormedTap is offered
  int64_t features_ = 0;     // columns of Batch::features
  int32_t max_rows_ = 0;
  int32_t max_seq_len_ = 0;
  std::vector<size_t> row_bytes_;  // by engine
  std::vector<size_t> selected_row_bytes_;
  int64_t selected_chunk_ = 1;
  size_t resident_bytes_ = 0;
  size_t stream_bytes_ = 0;
  bool borrows_sources_ = false;
};

/// For several engines: engines[engine_of_block[b]] runs block b of the model, see engine_split.h;
/// a value that is read on another engine than it was made on goes through the host. Errors:
/// kUnsupported naming a weight type without a kernel, or a block that shares the cache layer of
/// another engine's; kInvalidArgument for engines that do not exist; kOutOfMemory, kCancelled.
Result<std::shared_ptr<const ExecutionPlan>> compile(const Graph& graph, Engines engines,
                                                     const EngineOfBlock& engine_of_block,
                                                     const CompileOptions& options);
/// For one engine.
Result<std::shared_ptr<const ExecutionPlan>> compile(const Graph& graph,
                                                     std::shared_ptr<engine::Engine> engine,
                                                     const CompileOptions& options);

}  // namespace gen::graph

// SPDX-License-Identifier: Apache-2.0
// A compiled graph: weights in the engine's layout, constants, a flat list of instructions, and
// where every intermediate value lies. compile.cpp makes it, plan_runner.cpp walks it. Immutable:
// everything that a run writes is in its Workspace, its caches and its batch's outputs.
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
#include "graph/batch.h"
#include "graph/batch_check.h"
#include "graph/fusion.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "graph/workspace.h"

namespace gen::graph {

struct CompileOptions {
  int32_t max_rows = 512;   // rows a batch may have
  int32_t max_seq_len = 0;  // positions lie in [0, max_seq_len)
  /// Memory for selected rows (logits are the widest rows of all); what needs more runs in chunks.
  size_t selected_arena_bytes = size_t{64} << 20;
  FusionOptions fusion;
  /// Called with the fraction of weight bytes done, ascending, ending with 1; false cancels.
  std::function<bool(double fraction)> progress;
  const CancelFlag* cancel = nullptr;  // polled between weights
  /// Called once for a source's bytes when no weight will read them again.
  std::function<void(std::span<const std::byte> data)> release;
};

/// Threads: immutable; run() from any number of threads, each with its own workspace and caches.
class ExecutionPlan {
 public:
  ExecutionPlan(const ExecutionPlan&) = delete;
  ExecutionPlan& operator=(const ExecutionPlan&) = delete;

  /// Runs a batch, see batch.h. Errors: as check_batch; kCancelled; what a cache or the engine
  /// reports. After a failure logits and taps hold anything, caches are as uncommitted as before.
  Status run(const Batch& batch, Workspace& workspace) const;

  [[nodiscard]] BatchLimits limits() const noexcept;
  [[nodiscard]] const std::shared_ptr<engine::Engine>& engine() const noexcept { return engine_; }
  /// Bytes that weights and constants keep in engine memory.
  [[nodiscard]] size_t resident_bytes() const noexcept { return resident_bytes_; }
  /// Weight bytes that a decode step reads: all products, without the embedding.
  [[nodiscard]] size_t stream_bytes() const noexcept { return stream_bytes_; }
  /// Some weight goes on reading the bytes it was made from.
  [[nodiscard]] bool borrows_sources() const noexcept { return borrows_sources_; }
  /// Arena bytes of one row, and of one selected row.
  [[nodiscard]] size_t row_bytes() const noexcept { return row_bytes_; }
  [[nodiscard]] size_t selected_row_bytes() const noexcept { return selected_row_bytes_; }
  /// Selected rows that are run at once.
  [[nodiscard]] int64_t selected_chunk() const noexcept { return selected_chunk_; }

  /// What a cache for this plan is made of. The plan owns the angles that they point at.
  [[nodiscard]] std::span<const cache::LayerShape> cache_layers() const noexcept { return layers_; }

  // For people and tools.
  [[nodiscard]] std::span<const Instruction> instructions() const noexcept { return instructions_; }
  [[nodiscard]] std::span<const ProgramValue> values() const noexcept { return values_; }
  [[nodiscard]] std::span<const SiteSlice> sites(const Instruction& instruction) const noexcept;

 private:
  friend class Compiler;
  friend class Binder;
  friend class PlanRunner;
  ExecutionPlan() = default;

  /// A product as it runs.
  struct Prepared {
    std::unique_ptr<engine::Weight> weight;
    std::string name;  // the sources' names joined by '+', for tracers
    std::vector<SiteSlice> sites;
  };

  std::shared_ptr<engine::Engine> engine_;  // first, so that it goes last
  std::vector<Instruction> instructions_;
  size_t first_selected_ = 0;     // instructions from here on run over selected rows
  size_t end_selected_taps_ = 0;  // one past the last tap among those; first_selected_ if none
  std::vector<ProgramValue> values_;
  std::vector<Prepared> products_;
  engine::EngineBuffer constants_;
  std::vector<engine::EnginePtr<const float>> vectors_;   // into it, by Instruction::vector
  std::vector<engine::EnginePtr<const float>> inv_freq_;  // and by rotary table
  std::vector<RopeSpec> ropes_;
  std::vector<engine::RopeTable> tables_;  // point into ropes_
  std::vector<cache::LayerShape> layers_;
  int64_t vocab_ = 0;
  int64_t hidden_ = 0;
  int64_t logits_ = 0;
  int32_t n_taps_ = 0;
  int32_t max_rows_ = 0;
  int32_t max_seq_len_ = 0;
  size_t row_bytes_ = 0;
  size_t selected_row_bytes_ = 0;
  int64_t selected_chunk_ = 1;
  size_t resident_bytes_ = 0;
  size_t stream_bytes_ = 0;
  bool borrows_sources_ = false;
};

/// Errors: kUnsupported naming a weight type without a kernel, kOutOfMemory, kCancelled.
Result<std::shared_ptr<const ExecutionPlan>> compile(const Graph& graph,
                                                     std::shared_ptr<engine::Engine> engine,
                                                     const CompileOptions& options);

}  // namespace gen::graph

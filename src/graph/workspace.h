// SPDX-License-Identifier: Apache-2.0
// What one run of a plan needs for itself: a stream of the engine, the arenas for intermediate
// values, and the step block. Workspaces are borrowed from a pool and come back with their
// memory, so that a steady decode step allocates nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/step_block.h"

namespace gen::graph {

class ExecutionPlan;

/// Threads: one user at a time.
class Workspace {
 public:
  /// `engine` must outlive it.
  static Result<std::unique_ptr<Workspace>> create(engine::Engine& engine);

  /// Makes room; arenas grow and never shrink. After a failure the workspace is still usable.
  Status reserve(size_t row_bytes, size_t selected_bytes);
  /// Fills the step block, see StepBlock::fill().
  Status fill(const Batch& batch, bool all_rows);
  [[nodiscard]] const StepBlock& block() const noexcept { return block_; }
  /// Bytes of both arenas, the step block, and of what operations share. Any thread.
  [[nodiscard]] size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed) + stream_->bytes();
  }

 private:
  friend class Binder;
  friend class PlanRunner;
  explicit Workspace(engine::Engine& engine) : engine_(engine) {}
  Status grow(engine::EngineBuffer* buffer, size_t bytes);

  engine::Engine& engine_;
  std::unique_ptr<engine::Stream> stream_;
  engine::EngineBuffer rows_;      // values of T rows
  engine::EngineBuffer selected_;  // values of selected rows
  StepBlock block_;
  std::atomic<size_t> bytes_{0};  // of all three
};

/// Threads: any.
class WorkspacePool {
 public:
  explicit WorkspacePool(std::shared_ptr<engine::Engine> engine) : engine_(std::move(engine)) {}
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  /// A borrowed workspace; goes back when dropped. The pool must outlive it.
  class Lease {
   public:
    Lease(WorkspacePool& pool, Workspace& workspace) : pool_(&pool), workspace_(&workspace) {}
    Lease(Lease&& other) noexcept
        : pool_(other.pool_), workspace_(std::exchange(other.workspace_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (workspace_ != nullptr) pool_->give_back(*workspace_);
    }
    Workspace& operator*() const noexcept { return *workspace_; }

   private:
    WorkspacePool* pool_;
    Workspace* workspace_;
  };

  /// The workspace used last, or a new one when all are out.
  Result<Lease> borrow();
  /// Of all workspaces, borrowed ones included.
  [[nodiscard]] size_t bytes() const;

 private:
  void give_back(Workspace& workspace) noexcept;

  std::shared_ptr<engine::Engine> engine_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> all_;
  std::vector<Workspace*> idle_;  // capacity for all of all_
};

}  // namespace gen::graph

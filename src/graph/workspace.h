// SPDX-License-Identifier: Apache-2.0
// The working memory of one run of a plan on each of its engines: a stream, the arenas for
// intermediate values, and the step block. Workspaces are borrowed from a pool and keep their
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
#include "graph/engines.h"
#include "graph/step_block.h"

namespace gen::graph {

class ExecutionPlan;

/// Threads: one user at a time.
class Workspace {
 public:
  /// The engines must outlive it.
  static Result<std::unique_ptr<Workspace>> create(const Engines& engines);

  /// The size of an arena. The wanted size is allocated if possible, so that the arena does not
  /// move when more is needed later.
  struct Room {
    size_t needed = 0;
    size_t wanted = 0;
  };
  /// Makes room on an engine; arenas grow and never shrink. After a failure the workspace is still
  /// usable.
  Status reserve(const Room& rows, const Room& selected, size_t engine = 0);
  /// Fills the step blocks, see StepBlock::fill().
  Status fill(const Batch& batch, const StepBlock::Lists& lists, bool padded, bool fed = false);
  [[nodiscard]] const StepBlock& block(size_t engine = 0) const noexcept {
    return sides_[engine].block;
  }
  /// Bytes of arenas and step blocks, and of what operations share. Any thread.
  [[nodiscard]] size_t bytes() const noexcept;

 private:
  friend class Binder;
  friend class PlanRunner;
  friend class MultiStepRunner;

  /// On one engine.
  struct Side {
    engine::Engine* engine = nullptr;
    std::unique_ptr<engine::Stream> stream;
    engine::EngineBuffer rows;      // values of T rows
    engine::EngineBuffer selected;  // values of selected rows
    StepBlock block;
    std::vector<engine::OpArgs> gathered;  // operations to run before any other work
  };
  explicit Workspace(size_t engines) : sides_(engines) {}
  Status grow(engine::Engine& engine, engine::EngineBuffer* buffer, const Room& room);

  std::vector<Side> sides_;      // by engine
  std::vector<float> transfer_;  // rows in transit between engines
  struct Step {
    std::vector<int32_t> tokens;
    std::vector<int32_t> positions;
    std::vector<uint8_t> wants;
    std::vector<BatchSequence> sequences;
  };
  Step step_;                     // of Batch::multi_steps
  std::atomic<size_t> bytes_{0};  // of arenas and step blocks
};

/// Threads: any.
class WorkspacePool {
 public:
  explicit WorkspacePool(std::shared_ptr<engine::Engine> engine) : engines_{std::move(engine)} {}
  explicit WorkspacePool(Engines engines) : engines_(std::move(engines)) {}
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

  /// The most recently used workspace, or a new one if all are borrowed.
  Result<Lease> borrow();
  /// Of all workspaces, borrowed ones included.
  [[nodiscard]] size_t bytes() const;

 private:
  void give_back(Workspace& workspace) noexcept;

  Engines engines_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> all_;
  std::vector<Workspace*> idle_;  // capacity for all of all_
};

}  // namespace gen::graph

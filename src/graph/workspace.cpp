// SPDX-License-Identifier: Apache-2.0
// Arenas and their pool. See workspace.h.
#include "graph/workspace.h"

#include <utility>

namespace gen::graph {

Result<std::unique_ptr<Workspace>> Workspace::create(engine::Engine& engine) {
  std::unique_ptr<Workspace> workspace(new Workspace(engine));
  GEN_ASSIGN(workspace->stream_, engine.new_stream());
  return workspace;
}

Status Workspace::grow(engine::EngineBuffer* buffer, size_t bytes) {
  if (bytes <= buffer->size()) return {};
  // The old contents are of no use, so both need not exist at once.
  bytes_.fetch_sub(buffer->size(), std::memory_order_relaxed);
  buffer->reset();
  GEN_ASSIGN(*buffer, engine_.memory().allocate(bytes));
  bytes_.fetch_add(buffer->size(), std::memory_order_relaxed);
  return {};
}

Status Workspace::fill(const Batch& batch, bool all_rows) {
  const size_t before = block_.bytes();
  const Status status = block_.fill(batch, all_rows, engine_, *stream_);
  bytes_.fetch_add(block_.bytes() - before, std::memory_order_relaxed);  // modulo, if it shrank
  return status;
}

Status Workspace::reserve(size_t row_bytes, size_t selected_bytes) {
  GEN_TRY(grow(&rows_, row_bytes));
  return grow(&selected_, selected_bytes);
}

Result<WorkspacePool::Lease> WorkspacePool::borrow() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Workspace* workspace = idle_.back();
      idle_.pop_back();
      return Lease(*this, *workspace);
    }
  }
  GEN_ASSIGN(std::unique_ptr<Workspace> created, Workspace::create(*engine_));
  const std::lock_guard lock(mutex_);
  all_.reserve(all_.size() + 1);
  idle_.reserve(all_.size() + 1);  // so that giving back cannot fail
  all_.push_back(std::move(created));
  return Lease(*this, *all_.back());
}

void WorkspacePool::give_back(Workspace& workspace) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(&workspace);
}

size_t WorkspacePool::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& workspace : all_) sum += workspace->bytes();
  return sum;
}

}  // namespace gen::graph

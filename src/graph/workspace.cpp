// SPDX-License-Identifier: Apache-2.0
// Arenas and their pool. See workspace.h.
#include "graph/workspace.h"

#include <algorithm>
#include <utility>

namespace gen::graph {

Result<std::unique_ptr<Workspace>> Workspace::create(const Engines& engines) {
  std::unique_ptr<Workspace> workspace(new Workspace(engines.size()));
  for (size_t i = 0; i < engines.size(); ++i) {
    workspace->sides_[i].engine = engines[i].get();
    GEN_ASSIGN(workspace->sides_[i].stream, engines[i]->new_stream());
  }
  return workspace;
}

Status Workspace::grow(engine::Engine& engine, engine::EngineBuffer* buffer, const Room& room) {
  if (room.needed <= buffer->size()) return {};
  // The old contents are of no use, so both need not exist at once.
  bytes_.fetch_sub(buffer->size(), std::memory_order_relaxed);
  buffer->reset();
  auto made = engine.memory().allocate(std::max(room.needed, room.wanted));
  if (!made.ok() && room.wanted > room.needed) made = engine.memory().allocate(room.needed);
  GEN_ASSIGN(*buffer, std::move(made));
  bytes_.fetch_add(buffer->size(), std::memory_order_relaxed);
  return {};
}

Status Workspace::fill(const Batch& batch, const StepBlock::Lists& lists, bool padded, bool fed) {
  for (Side& side : sides_) {
    const size_t before = side.block.bytes();
    Status status = side.block.fill(batch, lists, padded, fed, *side.engine, *side.stream);
    bytes_.fetch_add(side.block.bytes() - before, std::memory_order_relaxed);  // may wrap and back
    GEN_TRY(std::move(status));
  }
  return {};
}

Status Workspace::reserve(const Room& rows, const Room& selected, size_t engine) {
  Side& side = sides_[engine];
  GEN_TRY(grow(*side.engine, &side.rows, rows));
  return grow(*side.engine, &side.selected, selected);
}

size_t Workspace::bytes() const noexcept {
  size_t sum = bytes_.load(std::memory_order_relaxed);
  for (const Side& side : sides_) sum += side.stream->bytes();
  return sum;
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
  GEN_ASSIGN(std::unique_ptr<Workspace> created, Workspace::create(engines_));
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

// SPDX-License-Identifier: Apache-2.0
// Running a plan as a Model. See plan_model.h.
#include "model/plan_model.h"

#include <algorithm>
#include <utility>

#include "model/logits_check.h"

namespace gen::model {
PlanModel::PlanModel(std::shared_ptr<const graph::ExecutionPlan> plan, ModelTraits traits,
                     std::shared_ptr<const void> source, size_t mapped_bytes)
    : traits_(std::move(traits)),
      source_(std::move(source)),
      mapped_bytes_(mapped_bytes),
      plan_(std::move(plan)),
      workspaces_(plan_->engine()) {}

Result<std::unique_ptr<graph::SequenceState>> PlanModel::new_sequence_state() const {
  return std::unique_ptr<graph::SequenceState>();
}

Status PlanModel::forward(const graph::Batch& batch) const {
  GEN_ASSIGN(const graph::WorkspacePool::Lease workspace, workspaces_.borrow());
  GEN_TRY(plan_->run(batch, *workspace));
  return check_logits(batch, static_cast<size_t>(traits_.vocab_size));
}

Result<size_t> PlanModel::memory(std::string_view key) const {
  if (key == "weights") return plan_->resident_bytes();
  if (key == "workspace") return workspaces_.bytes();
  if (key == "mapped") return mapped_bytes_;
  if (key == "stream") return plan_->stream_bytes();
  return error(Code::kInvalidArgument,
               "no memory figure \"%.*s\" (weights, workspace, mapped, file, stream)",
               static_cast<int>(std::min<size_t>(key.size(), 64)), key.data());
}

}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Running a plan as a Model. See plan_model.h.
#include "model/plan_model.h"

#include <cmath>
#include <limits>
#include <utility>

namespace gen::model {
namespace {

/// Sampling can do with -inf (a token that is never drawn), not with NaN or +inf.
bool usable(float logit) { return logit <= std::numeric_limits<float>::max(); }

Status check_logits(const graph::Batch& batch, size_t vocab) {
  const float* row = batch.logits;
  for (size_t t = 0; t < batch.wants_logits.size(); ++t) {
    if (batch.wants_logits[t] == 0) continue;
    bool all = true;
    for (size_t i = 0; i < vocab; ++i) all &= usable(row[i]);
    if (!all) [[unlikely]] {
      size_t token = 0;
      while (usable(row[token])) ++token;
      return error(Code::kModel, "logits of row %zu are not finite: %g at token %zu", t,
                   static_cast<double>(row[token]), token);
    }
    row += vocab;
  }
  return {};
}

}  // namespace

PlanModel::PlanModel(std::shared_ptr<const graph::ExecutionPlan> plan, ModelTraits traits,
                     std::vector<cache::LayerShape> shapes, std::shared_ptr<const void> source,
                     size_t mapped_bytes)
    : traits_(std::move(traits)),
      shapes_(std::move(shapes)),
      source_(std::move(source)),
      mapped_bytes_(mapped_bytes),
      plan_(std::move(plan)),
      workspaces_(plan_->engine()) {
  for (size_t i = 0; i < shapes_.size(); ++i) shapes_[i].rope_table = plan_->rope_table(i);
}

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
               "no memory figure \"%.*s\" (weights, workspace, mapped, stream)",
               static_cast<int>(std::min<size_t>(key.size(), 64)), key.data());
}

}  // namespace gen::model

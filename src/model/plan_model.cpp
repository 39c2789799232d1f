// SPDX-License-Identifier: Apache-2.0
// Running a plan as a Model. See plan_model.h.
#include "model/plan_model.h"

#include <algorithm>
#include <utility>

#include "cache/state/recurrent_state.h"
#include "graph/early_exit.h"
#include "model/adapter_file.h"
#include "model/logits_check.h"

namespace gen::model {
PlanModel::PlanModel(std::shared_ptr<const graph::ExecutionPlan> plan, ModelTraits traits,
                     std::shared_ptr<const void> source, size_t mapped_bytes,
                     std::shared_ptr<const graph::Graph> graph,
                     std::shared_ptr<const AdapterTargets> targets)
    : traits_(std::move(traits)),
      source_(std::move(source)),
      mapped_bytes_(mapped_bytes),
      plan_(std::move(plan)),
      workspaces_(plan_->engines()),
      graph_(std::move(graph)),
      targets_(std::move(targets)) {
  traits_.max_best = 0;
  traits_.rules_best = traits_.multi_step = false;
  traits_.result = graph_->scores ? 0 : static_cast<int32_t>(graph_->logits);
  if (plan_->limits().best) {
    traits_.rules_best = plan_->limits().far_logits;
    traits_.multi_step = traits_.rules_best && plan_->limits().multi_step;
    traits_.max_best = traits_.rules_best ? traits_.vocab_size : 1;
  }
  if (plan_->engines().size() == 1) return;
  for (const int32_t engine : plan_->layer_engines()) {
    layer_memories_.push_back(&plan_->engines()[static_cast<size_t>(engine)]->memory());
  }
}

Result<std::unique_ptr<cache::SequenceState>> PlanModel::new_sequence_state() const {
  if (plan_->states() == nullptr) return std::unique_ptr<cache::SequenceState>();
  return std::unique_ptr<cache::SequenceState>(
      std::make_unique<cache::RecurrentState>(plan_->states(), plan_->state_memory()));
}

Status PlanModel::forward(const graph::Batch& batch) const {
  Plan plan = plan_;
  const bool adapted = std::any_of(batch.sequences.begin(), batch.sequences.end(),
                                   [](const auto& sequence) { return sequence.adapter >= 0; });
  if (adapted && batch.adapters != nullptr) {
    GEN_ASSIGN(plan, adapter_plan(batch.adapters->rank()));
  }
  GEN_ASSIGN(const graph::WorkspacePool::Lease workspace, workspaces_.borrow());
  GEN_TRY(plan->run(batch, *workspace));
  return traits_.result > 0 ? check_rows(batch, static_cast<size_t>(traits_.result))
                            : check_logits(batch, static_cast<size_t>(traits_.vocab_size));
}

graph::CompileOptions PlanModel::on_these_weights() const {
  graph::CompileOptions options;
  options.max_rows = traits_.max_batch_rows;
  options.max_seq_len = traits_.max_seq_len;
  options.base = plan_;
  return options;
}

Result<std::shared_ptr<const Model>> PlanModel::first_layers(int32_t n) const {
  GEN_ASSIGN(graph::Graph cut, graph::early_exit(*graph_, n));
  ModelTraits traits = traits_;
  traits.num_layers = n;
  traits.can_shift = traits.can_branch = cut.states.empty();
  return with(std::move(cut), std::move(traits));
}

Result<std::shared_ptr<const Model>> PlanModel::hidden_rows(graph::RowEnd end) const {
  GEN_ASSIGN(graph::Graph cut, graph::end_rows(*graph_, end));
  return with(std::move(cut), traits_);
}

Result<std::shared_ptr<const Model>> PlanModel::observable() const {
  return with(*graph_, traits_, true);
}

Result<std::shared_ptr<const Model>> PlanModel::with(graph::Graph graph, ModelTraits traits,
                                                     bool observed) const {
  graph::CompileOptions options = on_these_weights();
  options.observed = observed;
  auto compiled = graph::compile(graph, plan_->engines(), plan_->engine_of_block(), options);
  if (!compiled.ok() && compiled.status().code() == Code::kUnsupported) {
    // A product of selected rows may be part of a stack of all rows in the whole model.
    options.fusion.select_early = false;
    compiled = graph::compile(graph, plan_->engines(), plan_->engine_of_block(), options);
  }
  GEN_ASSIGN(Plan plan, std::move(compiled));
  return std::shared_ptr<const Model>(std::make_shared<PlanModel>(
      std::move(plan), std::move(traits), source_, 0,
      std::make_shared<const graph::Graph>(std::move(graph)), targets_));
}

Result<PlanModel::Plan> PlanModel::adapter_plan(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  if (adapter_plan_ == nullptr || adapter_plan_->adapter_rank() < rank) {
    graph::CompileOptions options = on_these_weights();
    options.adapter_rank = std::max(rank, 1);
    GEN_ASSIGN(adapter_plan_,
               graph::compile(*graph_, plan_->engines(), plan_->engine_of_block(), options));
  }
  return Plan(adapter_plan_);
}

Status PlanModel::check_takes_adapters() const {
  if (targets_ == nullptr) return error(Code::kUnsupported, "this model takes no adapters");
  for (const auto& engine : plan_->engines()) {
    if (engine->can(engine::Op::kAdapterIn)) continue;
    return error(Code::kUnsupported, "engine %s has no adapters", engine->name());
  }
  return {};
}

Result<std::shared_ptr<const LoadedAdapter>> PlanModel::make_adapter(
    const gguf::GgufFile& file) const {
  GEN_TRY(check_takes_adapters());
  GEN_ASSIGN(const AdapterFile read, read_adapter(file, *targets_));
  auto made = std::make_shared<LoadedAdapter>();
  GEN_ASSIGN(made->matrices, adapter_of(read, *targets_, plan_->engines(), plan_->site_shapes()));
  made->invocation_tokens = read.invocation_tokens;
  made->content = read.content;
  made->bytes = made->matrices->bytes();
  const std::lock_guard lock(mutex_);
  std::erase_if(made_, [](const auto& adapter) { return adapter.expired(); });
  made_.push_back(made->matrices);
  return std::shared_ptr<const LoadedAdapter>(std::move(made));
}

Result<std::shared_ptr<const graph::AdapterTable>> PlanModel::adapter_table(
    std::span<const std::vector<graph::AdapterUse>> mixes) const {
  GEN_TRY(check_takes_adapters());
  return graph::AdapterTable::create(plan_->engines(), plan_->site_shapes(), mixes);
}

// Heads run where the last layer does.
Result<HeadTarget> PlanModel::head_target() const {
  HeadTarget target;
  target.architecture = traits_.architecture;
  target.engine = plan_->engines()[static_cast<size_t>(plan_->instructions().back().engine)];
  target.plan = plan_;
  target.graph = graph_;
  target.vocab_size = traits_.vocab_size;
  target.hidden = traits_.hidden;
  target.num_layers = traits_.num_layers;
  target.max_seq_len = traits_.max_seq_len;
  target.max_batch_rows = traits_.max_batch_rows;
  return target;
}

Result<std::shared_ptr<const DraftHead>> PlanModel::draft_head() const {
  const std::lock_guard lock(mutex_);
  auto head = head_.lock();
  if (head == nullptr && load_head_ != nullptr) {
    GEN_ASSIGN(const HeadTarget target, head_target());
    GEN_ASSIGN(head, load_head_(target));
    head_ = head;
  }
  return head;
}

void PlanModel::note_head(const std::shared_ptr<const DraftHead>& head) const {
  const std::lock_guard lock(mutex_);
  std::erase_if(file_heads_, [](const auto& one) { return one.expired(); });
  file_heads_.emplace_back(head);
}

Status PlanModel::keep_head() {
  GEN_ASSIGN(kept_head_, draft_head());
  load_head_ = nullptr;
  return {};
}

Status PlanModel::lock_weights() {
  GEN_ASSIGN(locked_, LockedMemory::lock(plan_->host_bytes()));
  return {};
}

Result<size_t> PlanModel::memory(std::string_view key) const {
  if (key == "weights") {
    std::vector<std::shared_ptr<const graph::Adapter>> adapters;  // freed after the lock
    std::vector<std::shared_ptr<const DraftHead>> heads;          // the same
    const std::lock_guard lock(mutex_);
    size_t bytes =
        plan_->resident_bytes() + (adapter_plan_ != nullptr ? adapter_plan_->resident_bytes() : 0);
    adapters.reserve(made_.size());
    for (const auto& made : made_) {
      if (auto adapter = made.lock(); adapter != nullptr) adapters.push_back(std::move(adapter));
    }
    for (const auto& adapter : adapters) bytes += adapter->bytes();
    heads.reserve(file_heads_.size() + 1);
    heads.push_back(head_.lock());
    for (const auto& made : file_heads_) heads.push_back(made.lock());
    for (const auto& head : heads) {
      if (head == nullptr) continue;
      GEN_ASSIGN(const size_t of_first, head->first->memory(key));
      bytes += of_first;
      for (const auto& later : head->later) {
        GEN_ASSIGN(const size_t of_later, later->memory(key));
        bytes += of_later;
      }
      if (head->next == head->first) continue;
      GEN_ASSIGN(const size_t of_next, head->next->memory(key));
      bytes += of_next;
    }
    return bytes;
  }
  if (key == "workspace") return workspaces_.bytes();
  if (key == "mapped") return mapped_bytes_;
  if (key == "stream") return plan_->stream_bytes();
  return error(Code::kInvalidArgument,
               "no memory figure \"%.*s\" (weights, workspace, mapped, file, stream)",
               static_cast<int>(std::min<size_t>(key.size(), 64)), key.data());
}

}  // namespace gen::model

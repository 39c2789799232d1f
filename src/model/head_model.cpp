// SPDX-License-Identifier: Apache-2.0
// See head_model.h.
#include "model/head_model.h"

#include <utility>

#include "graph/execution_plan.h"
#include "model/gguf/gguf_file.h"
#include "model/plan_model.h"

namespace gen::model {
namespace {

/// Where the layers are that the graph reads, or else the target's engine.
Result<std::shared_ptr<engine::Engine>> engine_of(const graph::Graph& graph,
                                                  const HeadTarget& target) {
  if (target.plan == nullptr) return target.engine;
  const graph::ExecutionPlan& plan = *target.plan;
  int32_t number = -1;
  int32_t first = -1;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != engine::Op::kRopeAppend || node.attention.use != graph::CacheUse::kGiven) {
      continue;
    }
    if (first < 0) {
      first = node.layer;
      number = plan.layer_engines()[static_cast<size_t>(first)];
    }
    if (plan.layer_engines()[static_cast<size_t>(node.layer)] == number) continue;
    return error(Code::kUnsupported,
                 "the head reads cache layers %d and %d, which are on two engines", first,
                 node.layer);
  }
  return first < 0 ? target.engine : plan.engines()[static_cast<size_t>(number)];
}

}  // namespace

const engine::WeightSource* embedding_of(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    if (node.op != engine::Op::kEmbed) continue;
    return &graph.weights[static_cast<size_t>(node.weight)];
  }
  return nullptr;
}

Result<std::shared_ptr<const Model>> compile_head(graph::Graph graph, const HeadTarget& target,
                                                  const std::shared_ptr<const gguf::GgufFile>& file,
                                                  const std::vector<uintptr_t>* shared) {
  graph::CompileOptions options;
  options.max_rows = target.max_batch_rows;
  options.max_seq_len = target.max_seq_len;
  options.base = target.plan;
  options.of_base = shared;
  GEN_ASSIGN(auto engine, engine_of(graph, target));
  GEN_ASSIGN(auto plan, graph::compile(graph, std::move(engine), options));
  ModelTraits traits;
  traits.architecture = "head";
  traits.vocab_size = static_cast<int32_t>(graph.logits);
  traits.max_seq_len = target.max_seq_len;
  traits.num_layers = 1;
  traits.hidden = static_cast<int32_t>(graph.hidden);
  traits.max_batch_rows = target.max_batch_rows;
  std::shared_ptr<const void> source;
  if (file != nullptr && plan->borrows_sources()) source = file;
  const size_t mapped = source != nullptr ? static_cast<size_t>(file->total_bytes()) : 0;
  return std::shared_ptr<const Model>(
      std::make_shared<PlanModel>(std::move(plan), traits, std::move(source), mapped,
                                  std::make_shared<const graph::Graph>(std::move(graph))));
}

}  // namespace gen::model

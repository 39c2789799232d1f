// SPDX-License-Identifier: Apache-2.0
// See head_model.h.
#include "model/head_model.h"

#include <utility>

#include "graph/execution_plan.h"
#include "model/gguf/gguf_file.h"
#include "model/plan_model.h"

namespace gen::model {

Result<std::shared_ptr<const Model>> compile_head(graph::Graph graph, const HeadTarget& target,
                                                  const std::shared_ptr<const gguf::GgufFile>& file,
                                                  const std::vector<uintptr_t>* shared) {
  graph::CompileOptions options;
  options.max_rows = target.max_batch_rows;
  options.max_seq_len = target.max_seq_len;
  options.base = target.plan;
  options.of_base = shared;
  GEN_ASSIGN(auto plan, graph::compile(graph, target.engine, options));
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

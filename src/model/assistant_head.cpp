// SPDX-License-Identifier: Apache-2.0
// See assistant_head.h.
#include "model/assistant_head.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/execution_plan.h"
#include "model/arch/gemma4_assistant.h"
#include "model/fingerprint.h"
#include "model/gguf/gguf_file.h"
#include "model/head_model.h"
#include "model/weights.h"

namespace gen::model {
namespace {

/// Whether the model has a layer of the kind that each of the assistant's reads.
Status check_layers(const arch::AssistantParams& params, const HeadTarget& target) {
  const auto layers = target.plan->cache_layers();
  for (size_t i = 0; i < params.own.layers.size(); ++i) {
    const bool window = params.own.layers[i].attention.window > 0;
    const bool found =
        std::any_of(layers.begin(), layers.end(),
                    [&](const cache::LayerShape& layer) { return (layer.window > 0) == window; });
    if (found) continue;
    return error(Code::kFormat, "block %zu reads a layer %s a window, the model has none", i,
                 window ? "with" : "without");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const DraftHead>> load_assistant_head(
    std::shared_ptr<const gguf::GgufFile> file, const HeadTarget& target, bool lasting) {
  if (target.architecture != "gemma4") {
    return error(Code::kUnsupported, "an assistant of gemma4 for a model %.40s",
                 target.architecture.c_str());
  }
  arch::AssistantParams params;
  GEN_ASSIGN(params.own, read_hparams(file->metadata(), [&](KeyReader& keys, HParams* h) {
               GEN_TRY(arch::read_gemma4_assistant(keys, &params));
               *h = params.own;
               return Status();
             }));
  if (params.target_hidden != target.hidden) {
    return error(Code::kFormat, "%s.embedding_length_out is %d, and the model's width is %d",
                 kAssistant, params.target_hidden, target.hidden);
  }
  GEN_TRY(check_layers(params, target));
  params.own.vocab_size = target.vocab_size;
  const engine::WeightSource* const embedding = embedding_of(*target.graph);
  if (embedding == nullptr) {
    return error(Code::kUnsupported, "an assistant for a model without an embedding");
  }
  Weights weights(*file, lasting);
  graph::GraphBuilder builder;
  arch::build_gemma4_assistant(params, *embedding, target.plan->cache_layers(), weights, builder);
  GEN_TRY(weights.finish());
  GEN_ASSIGN(graph::Graph graph, builder.finish());
  const std::vector<uintptr_t> shared = {reinterpret_cast<uintptr_t>(embedding->data.data())};
  auto head = std::make_shared<DraftHead>();
  GEN_ASSIGN(head->first, compile_head(std::move(graph), target, file, &shared));
  head->name = kAssistant;
  head->fingerprint = fingerprint_of(*file, head->name);
  head->taps = {graph::kNormedTap};
  head->next = head->first;
  head->state = 0;
  head->width = head->own_width = target.hidden;
  head->reads_cache = true;
  return std::shared_ptr<const DraftHead>(std::move(head));
}

}  // namespace gen::model

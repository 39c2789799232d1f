// SPDX-License-Identifier: Apache-2.0
// See adapter_targets.h.
#include "model/adapter_targets.h"

#include <utility>

#include "base/to_size.h"

namespace gen::model {
namespace {

constexpr const char* kEmbedding = "token_embd.weight";
constexpr const char* kHead = "output.weight";

/// Why a tensor that a node reads is no target; null: it is one.
const char* refusal_of(const graph::Node& node) {
  if (node.op == engine::Op::kEmbed) return "it is an embedding, whose rows are looked up";
  if (node.op == engine::Op::kExperts) return "it is a stack of experts";
  return node.site < 0 ? "it weighs experts" : nullptr;
}

}  // namespace

AdapterTargets adapter_targets(const graph::Graph& graph, const gguf::GgufFile& file,
                               std::string_view architecture, int32_t vocab_size) {
  AdapterTargets targets;
  targets.architecture = architecture;
  targets.vocab_size = vocab_size;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    targets.tensors[tensor.name] = {tensor.shape[0],
                                    tensor.shape[1],
                                    {},
                                    "no product reads it, and adapters add to products alone"};
  }
  for (const graph::Node& node : graph.nodes) {
    if (node.weight < 0) continue;
    const engine::WeightSource& of = graph.weights[to_size(node.weight)];
    const auto named = targets.tensors.find(of.name);
    if (named == targets.tensors.end()) continue;
    AdapterTarget* target = &named->second;
    const char* const refusal = refusal_of(node);
    if (refusal != nullptr) {
      target->refusal = refusal;
      continue;
    }
    if (named->first == kEmbedding) {
      target = &targets.tensors[kHead];
      target->in = named->second.in;
      target->out = named->second.out;
    }
    target->refusal = nullptr;
    target->products.push_back(
        {node.site, of.rows, of.pieces, of.piece_rows, of.first_row, of.scale});
  }
  return targets;
}

}  // namespace gen::model

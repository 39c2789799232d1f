// SPDX-License-Identifier: Apache-2.0
// See adapter_targets.h.
#include "model/adapter_targets.h"

#include <limits>
#include <utility>

#include "base/to_size.h"
#include "quant/format.h"

namespace gen::model {
namespace {

constexpr const char* kEmbedding = "token_embd.weight";
constexpr const char* kHead = "output.weight";
constexpr const char* kOtherRows = "its rows are not those of tokens alone";

/// Why a tensor that a node reads is no target; null: it is one.
const char* refusal_of(const graph::Node& node) {
  if (node.site >= 0) return nullptr;
  return node.op == engine::Op::kEmbed ? kOtherRows : "adapters leave it alone";
}

/// Why nothing can be merged into a tensor; null: something can.
const char* unmergeable(const gguf::TensorInfo& tensor, bool tied) {
  const std::string_view name = tensor.name;
  // A router of one expert is stored as a vector.
  const bool vector = tensor.n_dims == 1 && !name.ends_with("ffn_gate_inp_shexp.weight");
  if (vector) return "it has one dimension, and adapters add to matrices alone";
  if (!name.ends_with(".weight") || name.ends_with("_norm.weight")) {
    return "no product reads it, and adapters add to products alone";
  }
  if (name == kEmbedding && tied) return "it is the model's head, too, which merging would change";
  if (name != kEmbedding && name.ends_with(kEmbedding)) return kOtherRows;
  if (tensor.shape[3] != 1 || (name == kEmbedding && tensor.shape[2] != 1)) {
    return "it has too many dimensions";
  }
  if (quant::find_format(tensor.type) == nullptr) return "its element type is not supported";
  return nullptr;
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
                                    tensor.shape[2],
                                    false,
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
    if (node.op == engine::Op::kEmbed) {
      target->embedding = true;
    } else if (named->first == kEmbedding) {
      target = &targets.tensors[kHead];
      target->in = named->second.in;
      target->out = named->second.out;
    }
    target->refusal = nullptr;
    // B has a row for each value that it adds.
    const int64_t rows = target->embedding ? of.cols : of.rows;
    target->products.push_back({node.site, rows, of.pieces, of.piece_rows, of.first_row, of.scale});
  }
  return targets;
}

Result<AdapterTargets> merge_targets(const gguf::GgufFile& file) {
  AdapterTargets targets;
  GEN_ASSIGN(targets.architecture, file.metadata().get_string("general.architecture"));
  const gguf::TensorInfo* const embedding = file.find_tensor(kEmbedding);
  const bool tied = embedding != nullptr && file.find_tensor(kHead) == nullptr;
  // Of tokens that activate an adapter, which is refused in any case.
  targets.vocab_size = std::numeric_limits<int32_t>::max();
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    targets.tensors[tensor.name] = {
        tensor.shape[0],          tensor.shape[1], tensor.shape[2], tensor.name == kEmbedding, {},
        unmergeable(tensor, tied)};
  }
  if (tied) {
    AdapterTarget head = targets.tensors[kEmbedding];
    head.embedding = false;
    head.refusal =
        "the model's head is its embedding, token_embd.weight, which merging would change, too";
    targets.tensors[kHead] = std::move(head);
  }
  return targets;
}

}  // namespace gen::model

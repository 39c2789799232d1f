// SPDX-License-Identifier: Apache-2.0
// See eagle_head.h, and draft_head.h for heads of tensors.
#include "model/eagle_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "base/to_size.h"
#include "model/arch/eagle.h"
#include "model/fingerprint.h"
#include "model/gguf/gguf_file.h"
#include "model/head_model.h"
#include "model/plan_model.h"
#include "model/weights.h"

namespace gen::model {
namespace {

using File = std::shared_ptr<const gguf::GgufFile>;
using Head = std::shared_ptr<const DraftHead>;

constexpr const char* kPrefix = "eagle.";
constexpr std::array<const char*, 4> kMlp = {"norm.weight", "norm.bias", "fc1.weight",
                                             "fc2.weight"};

bool has_any(const gguf::GgufFile& file, const std::string& prefix) {
  return std::any_of(kMlp.begin(), kMlp.end(),
                     [&](const char* name) { return file.find_tensor(prefix + name) != nullptr; });
}

/// The weights of the model's graph that heads read, too.
Result<arch::EagleTarget> eagle_target(const HeadTarget& target) {
  arch::EagleTarget out = {target.hidden, target.vocab_size, nullptr, nullptr};
  if (target.plan == nullptr) return out;
  out.embedding = embedding_of(*target.graph);
  for (const graph::Node& node : target.graph->nodes) {
    if (node.weight < 0) continue;
    const engine::WeightSource* const weight = &target.graph->weights[to_size(node.weight)];
    const bool is_head = node.op == engine::Op::kLinear &&
                         node.site == graph::site_id(target.num_layers, graph::SiteKind::kLogits);
    if (is_head) out.head = weight;
  }
  if (out.embedding == nullptr || out.head == nullptr) {
    return error(Code::kUnsupported, "a head for a model without an output layer");
  }
  return out;
}

std::vector<uintptr_t> addresses(const arch::EagleTarget& target) {
  std::vector<uintptr_t> all;
  for (const engine::WeightSource* const weight : {target.embedding, target.head}) {
    if (weight != nullptr) all.push_back(reinterpret_cast<uintptr_t>(weight->data.data()));
  }
  return all;
}

/// The model's token of each of the head's.
Status read_tokens(const gguf::TensorInfo& tensor, int32_t vocab, std::vector<int32_t>* out) {
  if (tensor.type != DType::kI64 || tensor.shape[1] != 1) {
    return error(Code::kFormat, "tensor d2t is no list of 64-bit numbers");
  }
  const auto n = static_cast<size_t>(tensor.shape[0]);
  out->resize(n);
  for (size_t i = 0; i < n; ++i) {
    int64_t token = 0;
    std::memcpy(&token, tensor.data.data() + i * sizeof token, sizeof token);
    if (token < 0 || token >= vocab) {
      return error(Code::kFormat,
                   "tensor d2t: token %lld of entry %zu is outside a vocabulary of %d",
                   static_cast<long long>(token), i, vocab);
    }
    (*out)[i] = static_cast<int32_t>(token);
  }
  return {};
}

/// Compiles what `build` adds to a graph. `all_shared`: the target is the head itself.
template <typename Build>
Result<std::shared_ptr<const Model>> build_head(const HeadTarget& target, const File& file,
                                                const arch::EagleTarget& of, bool lasting,
                                                const Build& build, bool all_shared = false) {
  Weights weights(*file, lasting);
  graph::GraphBuilder builder;
  build(weights, builder);
  GEN_TRY(weights.finish());
  GEN_ASSIGN(graph::Graph graph, builder.finish());
  const std::vector<uintptr_t> shared = addresses(of);
  return compile_head(std::move(graph), target, file, all_shared ? nullptr : &shared);
}

/// A model with a single hidden state gives the three beside each other.
Status check_mixed(const arch::Eagle3Params& params, const HeadTarget& target) {
  const int64_t mixed = 3 * int64_t{params.target_hidden};
  if (target.only_tap >= 0 && mixed != target.hidden) {
    return error(
        Code::kFormat,
        "eagle3.target_hidden_size is %d: the head mixes %lld features, and the model has %d",
        params.target_hidden, static_cast<long long>(mixed), target.hidden);
  }
  if (target.only_tap < 0 && params.target_hidden != target.hidden) {
    return error(Code::kFormat, "eagle3.target_hidden_size is %d, and the model's is %d",
                 params.target_hidden, target.hidden);
  }
  return {};
}

Result<Head> load_eagle3(const File& file, const HeadTarget& target, const arch::EagleTarget& of,
                         bool lasting) {
  arch::Eagle3Params params;
  GEN_ASSIGN(params.layer, read_hparams(file->metadata(), [&](KeyReader& keys, HParams* h) {
               GEN_TRY(arch::read_eagle3(keys, &params));
               *h = params.layer;
               return Status();
             }));
  GEN_TRY(check_mixed(params, target));
  auto head = std::make_shared<DraftHead>();
  head->name = "eagle3";
  head->fingerprint = fingerprint_of(*file, head->name);
  for (const int32_t layer : params.target_layers) {
    if (layer > target.num_layers && target.only_tap < 0) {
      return error(Code::kFormat, "eagle3.target_layers: layer %d of a model of %d", layer,
                   target.num_layers);
    }
    head->taps.push_back(layer);
  }
  int64_t outputs = target.vocab_size;
  if (const gguf::TensorInfo* const tokens = file->find_tensor("d2t"); tokens != nullptr) {
    GEN_TRY(read_tokens(*tokens, target.vocab_size, &head->tokens));
    outputs = static_cast<int64_t>(head->tokens.size());
  }
  const auto build = [&](bool mixes) {
    return [&, mixes](Weights& weights, graph::GraphBuilder& graph) {
      arch::build_eagle3(params, of, mixes, outputs, weights, graph);
    };
  };
  GEN_ASSIGN(head->first, build_head(target, file, of, lasting, build(true)));
  HeadTarget first = target;
  first.plan = static_cast<const PlanModel&>(*head->first).shared_plan();
  GEN_ASSIGN(head->next, build_head(first, file, of, lasting, build(false), true));
  head->state = 0;
  head->width = target.hidden;
  head->own_width = params.layer.hidden;
  return Head(std::move(head));
}

Result<Head> load_eagle1(const File& file, const HeadTarget& target, const arch::EagleTarget& of,
                         bool lasting) {
  GEN_ASSIGN(const HParams params, read_hparams(file->metadata(), arch::read_eagle));
  if (params.hidden != target.hidden) {
    return error(Code::kFormat, "eagle.embedding_length is %d, and the model's is %d",
                 params.hidden, target.hidden);
  }
  auto head = std::make_shared<DraftHead>();
  GEN_ASSIGN(head->first, build_head(target, file, of, lasting,
                                     [&](Weights& weights, graph::GraphBuilder& graph) {
                                       arch::build_eagle(params, of, weights, graph);
                                     }));
  head->name = "eagle";
  head->fingerprint = fingerprint_of(*file, head->name);
  head->taps = {graph::kNormedTap};
  head->next = head->first;
  head->state = 0;
  head->width = head->own_width = target.hidden;
  return Head(std::move(head));
}

/// All but its model.
void complete_mlp(const HeadTarget& target, DraftHead* head) {
  head->name = "mlp";
  head->taps = {target.only_tap >= 0 ? target.only_tap : target.num_layers - 1};
  head->next = head->first;
  head->state = 0;
  head->width = head->own_width = target.hidden;
}

Result<Head> load_mlp(const File& file, const HeadTarget& target, const arch::EagleTarget& of,
                      bool lasting) {
  const std::string prefix = has_any(*file, kPrefix) ? kPrefix : "";
  std::string missing;
  for (const char* name : kMlp) {
    if (file->find_tensor(prefix + name) != nullptr) continue;
    missing += (missing.empty() ? "" : ", ") + prefix + name;
  }
  if (!missing.empty()) {
    return error(Code::kFormat, "the head lacks %.200s", missing.c_str());
  }
  auto head = std::make_shared<DraftHead>();
  GEN_ASSIGN(
      head->first,
      build_head(target, file, of, lasting, [&](Weights& weights, graph::GraphBuilder& graph) {
        arch::build_eagle_mlp(arch::read_eagle_mlp(of, prefix, weights), graph);
        if (!prefix.empty()) weights.ignore_others(prefix);
      }));
  complete_mlp(target, head.get());
  head->fingerprint = fingerprint_of(*file, head->name);
  return Head(std::move(head));
}

/// The tensors of a head in memory: their names, and how many numbers they have.
Status check_tensors(const MlpTensors& tensors, const HeadTarget& target) {
  if (tensors.hidden != target.hidden) {
    return error(Code::kInvalidArgument,
                 "norm.weight, norm.bias, fc1.weight and fc2.weight of width %d for a model with a "
                 "hidden state of %d",
                 tensors.hidden, target.hidden);
  }
  if (tensors.lm_head == nullptr && target.plan == nullptr) {
    return {Code::kInvalidArgument, "lm_head is NULL, and the model has no output layer to share"};
  }
  if (tensors.lm_head != nullptr && tensors.vocab_size != target.vocab_size) {
    return error(Code::kInvalidArgument, "lm_head has %d rows for a vocabulary of %d",
                 tensors.vocab_size, target.vocab_size);
  }
  const auto width = to_size(tensors.hidden);
  const struct {
    const char* name;
    const float* values;
    size_t n;
  } all[] = {{"norm.weight", tensors.norm_weight, width},
             {"norm.bias", tensors.norm_bias, width},
             {"fc1.weight", tensors.fc1_weight, width * width},
             {"fc2.weight", tensors.fc2_weight, width * width},
             {"lm_head", tensors.lm_head, to_size(tensors.vocab_size) * width}};
  for (const auto& [name, values, n] : all) {
    if (values == nullptr && name == all[4].name) continue;
    if (values == nullptr) return error(Code::kInvalidArgument, "%s is NULL", name);
    const float* const end = values + n;
    const float* const found =
        std::find_if(values, end, [](float value) { return !std::isfinite(value); });
    if (found == end) continue;
    return error(Code::kInvalidArgument, "%s: weight %td is not finite", name, found - values);
  }
  return {};
}

engine::WeightSource source_of(const char* name, std::span<const float> values, size_t cols) {
  engine::WeightSource source;
  source.name = name;
  source.rows = static_cast<int64_t>(values.size() / cols);
  source.cols = static_cast<int64_t>(cols);
  source.data = std::as_bytes(values);
  return source;
}

}  // namespace

Result<Head> make_mlp_head(const MlpTensors& tensors, const HeadTarget& target) {
  GEN_TRY(check_tensors(tensors, target));
  GEN_ASSIGN(const arch::EagleTarget of, eagle_target(target));
  const auto width = to_size(tensors.hidden);
  const std::vector<float> fc1 = transpose({tensors.fc1_weight, width * width}, width);
  const std::vector<float> fc2 = transpose({tensors.fc2_weight, width * width}, width);
  arch::EagleMlp mlp;
  mlp.norm.assign(tensors.norm_weight, tensors.norm_weight + width);
  mlp.bias.assign(tensors.norm_bias, tensors.norm_bias + width);
  mlp.fc1 = source_of("fc1.weight", fc1, width);
  mlp.fc2 = source_of("fc2.weight", fc2, width);
  const bool own = tensors.lm_head != nullptr;
  const size_t outputs = own ? to_size(tensors.vocab_size) * width : 0;
  mlp.output = own ? source_of("lm_head", {tensors.lm_head, outputs}, width) : *of.head;
  graph::GraphBuilder builder;
  arch::build_eagle_mlp(mlp, builder);
  GEN_ASSIGN(graph::Graph graph, builder.finish());
  const std::vector<uintptr_t> shared = addresses(of);
  auto head = std::make_shared<DraftHead>();
  GEN_ASSIGN(head->first, compile_head(std::move(graph), target, nullptr, &shared));
  complete_mlp(target, head.get());
  return Head(std::move(head));
}

bool is_eagle(const gguf::GgufFile& file, const std::string& architecture) {
  return architecture == "eagle3" || architecture == "eagle" || has_any(file, kPrefix);
}

Result<Head> load_eagle_head(File file, const HeadTarget& target, bool lasting) {
  GEN_ASSIGN(const std::string name, file->metadata().get_string("general.architecture"));
  GEN_ASSIGN(const arch::EagleTarget of, eagle_target(target));
  if (name == "eagle3") return load_eagle3(file, target, of, lasting);
  if (name == "eagle" && file->find_tensor("fc.weight") != nullptr) {
    return load_eagle1(file, target, of, lasting);
  }
  return load_mlp(file, target, of, lasting);
}

}  // namespace gen::model

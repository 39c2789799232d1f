// SPDX-License-Identifier: Apache-2.0
// Heads of blocks behind a model's layers, and what all heads go through. See draft_head.h.
#include "model/draft_head.h"

#include <algorithm>
#include <utility>

#include "graph/execution_plan.h"
#include "model/arch/registry.h"
#include "model/assistant_head.h"
#include "model/eagle_head.h"
#include "model/fingerprint.h"
#include "model/gguf/gguf_file.h"
#include "model/head_model.h"
#include "model/model.h"
#include "model/plan_model.h"
#include "model/weights.h"

namespace gen::model {
namespace {

using File = std::shared_ptr<const gguf::GgufFile>;

/// Drafts are no longer (kMaxTreeRows).
constexpr int32_t kMostBlocks = 63;

Status check_width(const char* key, int32_t found, int32_t wanted) {
  if (found == wanted) return {};
  return error(Code::kFormat, "a head with %s %d for a model with %d", key, found, wanted);
}

uintptr_t address_of(const File& file, const char* name) {
  const gguf::TensorInfo* const tensor = file->find_tensor(name);
  return tensor != nullptr ? reinterpret_cast<uintptr_t>(tensor->data.data()) : 0;
}

/// Whether the block that drafts the token of that number has the tensor.
bool has_tensor(const gguf::GgufFile& file, const HParams& hparams, int32_t index,
                const char* name) {
  const std::string block = "blk." + std::to_string(hparams.n_layers + index) + ".nextn.";
  return file.find_tensor(block + name + ".weight") != nullptr;
}
bool has_block(const gguf::GgufFile& file, const HParams& hparams, int32_t index) {
  return has_tensor(file, hparams, index, "eh_proj");
}

Result<std::shared_ptr<const DraftHead>> load_blocks(const File& file, const HeadTarget& target,
                                                     const arch::Architecture& architecture,
                                                     HParams hparams, bool own, bool lasting) {
  if (!has_block(*file, hparams, 0)) {
    return std::shared_ptr<const DraftHead>();  // the file has the layers alone
  }
  const gguf::TensorInfo* const table = file->find_tensor("token_embd.weight");
  if (table == nullptr) return error(Code::kFormat, "tensor token_embd.weight is missing");
  hparams.vocab_size = static_cast<int32_t>(table->shape[1]);
  GEN_TRY(check_width("embedding_length", hparams.hidden, target.hidden));
  GEN_TRY(check_width("a vocabulary of", hparams.vocab_size, target.vocab_size));
  std::vector<uintptr_t> shared;
  // On several engines the head has weights of its own.
  if (own && target.plan != nullptr && target.plan->engines().size() == 1) {
    shared = {address_of(file, "token_embd.weight"), address_of(file, "output.weight")};
  }
  auto head = std::make_shared<DraftHead>();
  HeadTarget base = target;
  const int32_t most = std::min(hparams.n_draft_layers, kMostBlocks);
  for (int32_t i = 0; i < most && has_block(*file, hparams, i); ++i) {
    Weights weights(*file, lasting);
    graph::GraphBuilder builder;
    architecture.build_draft(architecture.style, hparams, i, weights, builder);
    GEN_TRY(weights.finish());
    GEN_ASSIGN(graph::Graph graph, builder.finish());
    GEN_ASSIGN(auto model, compile_head(std::move(graph), base, file, &shared));
    if (i > 0) {
      head->later.push_back(std::move(model));
      continue;
    }
    head->first = head->next = std::move(model);
    // The table and the output layer that the first block has made serve the others.
    if (!shared.empty() || has_tensor(*file, hparams, 0, "embed_tokens") ||
        has_tensor(*file, hparams, 0, "shared_head_head")) {
      continue;
    }
    base.plan = static_cast<const PlanModel&>(*head->first).shared_plan();
    shared = {address_of(file, "token_embd.weight"), address_of(file, "output.weight")};
  }
  head->name = "nextn";
  head->fingerprint = fingerprint_of(*file, head->name);
  const bool unnormed = architecture.style.draft_unnormed;
  head->taps = {unnormed ? target.num_layers : graph::kNormedTap};
  head->state = unnormed ? 1 : graph::kNormedTap;
  head->width = head->own_width = target.hidden;
  return std::shared_ptr<const DraftHead>(std::move(head));
}

/// The head as its file describes it.
Result<std::shared_ptr<const DraftHead>> load(File file, const HeadTarget& target, bool own,
                                              bool lasting) {
  GEN_ASSIGN(const std::string name, file->metadata().get_string("general.architecture"));
  if (is_eagle(*file, name)) return load_eagle_head(std::move(file), target, lasting);
  if (name == kAssistant) return load_assistant_head(std::move(file), target, lasting);
  GEN_ASSIGN(const arch::Architecture* const architecture,
             arch::find_architecture(arch::architectures(), name));
  if (!architecture->style.draft_layers) return std::shared_ptr<const DraftHead>();
  GEN_ASSIGN(HParams hparams, read_hparams(file->metadata(), [&](KeyReader& keys, HParams* into) {
               return architecture->read(architecture->style, keys, into);
             }));
  if (hparams.n_draft_layers == 0) return std::shared_ptr<const DraftHead>();
  return load_blocks(file, target, *architecture, std::move(hparams), own, lasting);
}

}  // namespace

Result<HeadTarget> Model::head_target() const {
  return error(Code::kUnsupported, "model %.40s gives no hidden states for heads",
               traits().architecture.c_str());
}

Result<std::shared_ptr<const DraftHead>> load_draft_head(File file, const HeadTarget& target,
                                                         bool own, bool lasting) {
  GEN_ASSIGN(auto head, load(std::move(file), target, own, lasting));
  if (head == nullptr || target.only_tap < 0) return head;
  auto mapped = std::make_shared<DraftHead>(*head);
  mapped->taps = {target.only_tap};
  mapped->width = target.hidden;
  return std::shared_ptr<const DraftHead>(std::move(mapped));
}

}  // namespace gen::model

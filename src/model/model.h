// SPDX-License-Identifier: Apache-2.0
// A model as generation sees it: traits and a forward pass over a batch. A GGUF file compiled into
// a plan (plan_model.h) is one implementation, a caller's own function another (custom_model.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "graph/adapter_table.h"
#include "graph/batch.h"
#include "graph/row_end.h"
#include "model/loaded_adapter.h"

namespace gen::gguf {
class GgufFile;
}

namespace gen::model {

class AdapterRegistry;
struct DraftHead;
struct HeadTarget;

/// Capacity for a model's name, including the trailing 0; limited by the format of saved sessions.
inline constexpr size_t kMaxModelName = 31;

struct ModelTraits {
  std::string architecture;                   // "llama"
  int32_t vocab_size = 0;                     // V
  int32_t max_seq_len = 0;                    // context, as capped by the loader's option
  int32_t num_layers = 0;                     // L
  int32_t num_heads = 0;                      // H, the most of a layer
  int32_t num_kv_heads = 0;                   // G, the most of a layer
  int32_t head_dim = 0;                       // K, the most of a layer
  int32_t hidden = 0;                         // D
  int32_t num_experts = 0;                    // the most of a layer; 0: none
  int32_t num_experts_used = 0;               // by a row, of these
  int32_t result = 0;                         // width of results other than logits; 0: logits
  int32_t max_batch_rows = graph::kStepRows;  // rows a single forward accepts
  int32_t prompt_rows = 0;                    // rows that a pass should preferably have; 0: any
  int32_t max_batch_sequences = std::numeric_limits<int32_t>::max();
  int32_t eos = -1;  // an end token in addition to those of the tokenizer; -1: none
  bool can_truncate = true;
  bool can_keep_some = true;  // states can drop rows of rejected drafts
  bool can_shift = true;      // caches know how keys encode positions
  bool can_branch = true;     // rows may have parents (graph::Batch)
  int32_t max_best = 0;       // best tokens that a row may want, where that is cheaper than all
                              // logits
  bool multi_step = false;    // takes Batch::multi_steps, which avoids waits for the host
  bool rules_best = false;    // rows with best may have masks, excluded tokens and mass
  /// A checksum of the tensors, samples of their weights, and the metadata that the computation
  /// reads: tells whether a saved session belongs to this model.
  uint64_t fingerprint = 0;
};

/// Threads: immutable after load; forward may run on many threads at once.
class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelTraits& traits() const noexcept = 0;
  /// The layers of a cache for this model: one for each block that keeps keys and values, which
  /// need not be all of them.
  [[nodiscard]] virtual std::span<const cache::LayerShape> layer_shapes() const noexcept = 0;
  /// The memory of each of these layers; empty if any memory that the model's engine reaches will
  /// do, which is so unless layers run on several engines.
  [[nodiscard]] virtual std::span<engine::EngineMemory* const> layer_memories() const noexcept {
    return {};
  }
  /// Null for models whose only state is the KV cache.
  virtual Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const = 0;
  /// Runs the rows and writes the results they want, in row order. Caches hold the planned rows but
  /// are not committed, nor are states, whose plans must be dropped after a failure. Errors:
  /// kOutOfRange for a token or position outside the model, kInvalidArgument for an inconsistent
  /// batch, kCancelled, kModel when logits are NaN or +inf (naming row and token).
  virtual Status forward(const graph::Batch& batch) const = 0;
  /// A model of the first `n` layers and the end of this one, which shares its weights and may
  /// outlive it. kInvalidArgument for n outside [1, layers), kUnsupported for models that cannot
  /// leave out layers.
  virtual Result<std::shared_ptr<const Model>> first_layers(int32_t n) const {
    return error(Code::kUnsupported, "model %.40s has no exit after layer %d",
                 traits().architecture.c_str(), n);
  }
  /// A model with the same layers and weights but without a head, whose rows give hidden states or
  /// means of them; it may outlive this one. kUnsupported for models without named hidden states.
  virtual Result<std::shared_ptr<const Model>> hidden_rows(graph::RowEnd) const {
    return error(Code::kUnsupported, "model %.40s gives no hidden states",
                 traits().architecture.c_str());
  }
  /// A model of the same weights whose passes take observers (graph/product_observer.h); it may
  /// outlive this one. kUnsupported for models without matrices of a file and on a device.
  virtual Result<std::shared_ptr<const Model>> observable() const {
    return error(Code::kUnsupported, "model %.40s has no matrices that can be observed",
                 traits().architecture.c_str());
  }
  /// The head of this model's own file that drafts: the same object while somebody keeps it. Null
  /// if there is none; see load_draft_head for errors.
  virtual Result<std::shared_ptr<const DraftHead>> draft_head() const {
    return std::shared_ptr<const DraftHead>();
  }
  /// What the head of a file beside it, or of tensors, needs to know (draft_head.h). kUnsupported
  /// for models without named hidden states.
  virtual Result<HeadTarget> head_target() const;
  /// A head of a file drafts for this model: memory() counts its weights while it lives.
  virtual void note_head(const std::shared_ptr<const DraftHead>& /*head*/) const {}
  /// The adapter that a file holds, for this model's products; see adapter_file.h for the forms.
  /// kFormat and kUnsupported, naming the tensor; kOutOfMemory.
  virtual Result<std::shared_ptr<const LoadedAdapter>> make_adapter(const gguf::GgufFile&) const {
    return error(Code::kUnsupported, "this model takes no adapters");
  }
  /// The table of these mixes, whose adapters are of this model. See AdapterTable::create.
  virtual Result<std::shared_ptr<const graph::AdapterTable>> adapter_table(
      std::span<const std::vector<graph::AdapterUse>>) const {
    return error(Code::kUnsupported, "this model takes no adapters");
  }
  /// Its adapters by name; null for models that take none.
  [[nodiscard]] virtual AdapterRegistry* adapters() const noexcept { return nullptr; }
  /// Memory by key: "weights", "workspace", "mapped"; "stream" is the bytes of weights read per
  /// token.
  virtual Result<size_t> memory(std::string_view key) const = 0;
};

/// The memory of each layer, `otherwise` if the model names none; one element without layers.
inline std::vector<engine::EngineMemory*> memories_of_layers(const Model& model,
                                                             engine::EngineMemory& otherwise) {
  const auto own = model.layer_memories();
  if (!own.empty()) return {own.begin(), own.end()};
  return std::vector<engine::EngineMemory*>(std::max<size_t>(model.layer_shapes().size(), 1),
                                            &otherwise);
}

}  // namespace gen::model

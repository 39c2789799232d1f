// SPDX-License-Identifier: Apache-2.0
// Heads that draft: small networks that guess the tokens after the next one from hidden states of a
// model. They come as blocks behind the layers of a model, or in a file beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/batch.h"

namespace gen::gguf {
class GgufFile;
}

namespace gen::engine {
class Engine;
}

namespace gen::graph {
class ExecutionPlan;
struct Graph;
}  // namespace gen::graph

namespace gen::model {

class Model;

/// A row of a head is a token, and features of the model's row before it: it guesses the token
/// after the row's. After a guess the head's own state takes the place of these features, since the
/// model has not evaluated the row.
struct DraftHead {
  std::string name;          // for people: "nextn", "eagle3"
  uint64_t fingerprint = 0;  // of its file, for saved sessions; 0: nothing of it is saved
  /// Hidden states of the model that are the features, one beside the other (graph::Tap).
  std::vector<int32_t> taps;
  /// Runs rows with features of the model.
  std::shared_ptr<const Model> first;
  /// Runs rows with states of the head; its caches are those of `first`.
  std::shared_ptr<const Model> next;
  /// Heads for the second token of a draft, the third and so on, and for no token behind these;
  /// none: `next` drafts them all. Each runs all rows of the text and of the draft, in a cache of
  /// its own: the state of a row is that of the head that drafted behind it.
  std::vector<std::shared_ptr<const Model>> later;
  int32_t state = graph::kNormedTap;  // the tap of both that is the head's state
  int32_t width = 0;                  // of a tap of the model
  int32_t own_width = 0;              // of the head's state
  /// It attends to the cache of the model's text and has none (GraphBuilder::read_cache): all rows
  /// of a draft are at the position of the first one.
  bool reads_cache = false;
  std::vector<int32_t> tokens;  // the model's token of each of the head's; empty: the same
};

/// What is known of the model that a head is for.
struct HeadTarget {
  std::string architecture;
  std::shared_ptr<engine::Engine> engine;            // that heads run on
  std::shared_ptr<const graph::ExecutionPlan> plan;  // whose weights may be shared; null: there are
                                                     // none
  std::shared_ptr<const graph::Graph> graph;         // of the plan
  /// Not below 0: the model has a single hidden state, this one, and whoever made the model knows
  /// which one the head needs. It takes the place of all taps of the head.
  int32_t only_tap = -1;
  int32_t vocab_size = 0;
  int32_t hidden = 0;
  int32_t num_layers = 0;
  int32_t max_seq_len = 0;
  int32_t max_batch_rows = 0;
};

/// The head of a file. `own`: it is the target's file, whose weights it shares. Null if there is
/// none: no block that drafts, and none of the known heads. kFormat and kUnsupported, naming the
/// key or tensor that is missing or does not fit the target; kOutOfMemory.
Result<std::shared_ptr<const DraftHead>> load_draft_head(std::shared_ptr<const gguf::GgufFile> file,
                                                         const HeadTarget& target, bool own,
                                                         bool lasting);

/// A head of two products (arch/eagle.h) in memory, row by row.
struct MlpTensors {
  int32_t hidden = 0;                  // D
  int32_t vocab_size = 0;              // V, of lm_head
  const float* norm_weight = nullptr;  // [D]
  const float* norm_bias = nullptr;    // [D]
  const float* fc1_weight = nullptr;   // [D, D], inputs by outputs
  const float* fc2_weight = nullptr;   // the same
  const float* lm_head = nullptr;      // [V, D]; null: the target's
};
/// Copies them. kInvalidArgument naming the tensor that is missing, does not fit the target or is
/// not finite; kUnsupported; kOutOfMemory.
Result<std::shared_ptr<const DraftHead>> make_mlp_head(const MlpTensors& tensors,
                                                       const HeadTarget& target);

}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Forward passes over the caller's caches. Rows are planned in every cache, run, and committed in
// all of them or in none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence/cache_trial.h"
#include "cache/state/sequence_state.h"
#include "engine/trace/tracer.h"
#include "graph/product_observer.h"
#include "model/model.h"

namespace gen::generate {

/// kInvalidArgument if there are no tokens, kOutOfRange for one outside the vocabulary.
Status check_tokens(std::span<const int32_t> tokens, int32_t vocab_size);

/// A sequence during a call: its cache and, for models with one, its state. A call that takes one
/// pass commits both or neither; one that may take several does so to copies.
struct TrialSequence {
  cache::CacheTrial cache;
  cache::SequenceState* state = nullptr;  // that the passes run on; null: the model has none
  std::unique_ptr<cache::SequenceState> made = nullptr;  // takes the place of the one before
};

/// A sequence whose cache was written together with the state `before`, which may be null. kState
/// if the model's state cannot be that of the cache's positions; kUnsupported if it cannot be
/// copied.
Result<TrialSequence> try_sequence(const model::Model& model, cache::CacheTrial cache,
                                   cache::SequenceState* before);

/// Evaluates tokens of one sequence in as many passes as needed. Returns the logits [V] of the last
/// token. Errors: kContextFull, kCacheFull, and those of planning and of the model.
Result<std::vector<float>> forward_one(const model::Model& model, std::span<const int32_t> tokens,
                                       TrialSequence& sequence);

/// The same, but returns hidden states of all tokens, [layers, T, D], in the order of `layers`,
/// which are those of graph::Tap. Also kOutOfRange and kInvalidArgument for layers that the model
/// has not or that come twice; kUnsupported for those that it does not give.
Result<std::vector<float>> forward_hidden(const model::Model& model,
                                          std::span<const int32_t> tokens,
                                          std::span<const int32_t> layers, TrialSequence& sequence);

/// Evaluates tokens of one sequence in as many passes as needed, all of whose products, that of the
/// output as well, `observer` sees. `model` is one of Model::observable(). Errors: as forward_one.
Status forward_observed(const model::Model& model, std::span<const int32_t> tokens,
                        graph::ProductObserver& observer, TrialSequence& sequence);

/// Rows of several sequences in one forward pass.
class ForwardRows {
 public:
  /// `sequences` gives the cache of each row, ascending; null for a single cache. `wants_logits`
  /// may be null: all rows. Everything but `tokens` is copied; `tokens` must outlive the object.
  /// Errors: as check_tokens; kInvalidArgument for too many rows, rows out of order and caches
  /// without a row; kOutOfRange for a row's sequence.
  static Result<ForwardRows> create(const model::ModelTraits& traits,
                                    std::span<const int32_t> tokens, const int32_t* sequences,
                                    const uint8_t* wants_logits, size_t n_caches);

  /// Number of rows whose logits run() returns.
  [[nodiscard]] size_t wanted() const noexcept { return wanted_; }
  /// Runs one pass, or as many as caches that compress chunks need. Returns logits [wanted(), V].
  /// `tracer` may be null; it sees the passes.
  Result<std::vector<float>> run(const model::Model& model, std::span<TrialSequence> trials,
                                 engine::Tracer* tracer) const;

 private:
  ForwardRows() = default;

  std::span<const int32_t> tokens_;
  std::vector<uint8_t> wants_;
  std::vector<int32_t> rows_of_;  // number of rows by cache
  size_t wanted_ = 0;
};

}  // namespace gen::generate

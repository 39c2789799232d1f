// SPDX-License-Identifier: Apache-2.0
// Forward passes over caches that belong to the caller: rows are planned in every cache, run, and
// committed in all of them or none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence/cache_trial.h"
#include "engine/trace/tracer.h"
#include "model/model.h"

namespace gen::generate {

/// kInvalidArgument for none, kOutOfRange for one outside the vocabulary.
Status check_tokens(std::span<const int32_t> tokens, int32_t vocab_size);

/// Any number of tokens of one sequence, in as many passes as it takes; the logits [V] of the last
/// one. Errors: kContextFull, kCacheFull, and those of planning and of the model.
Result<std::vector<float>> forward_one(const model::Model& model, std::span<const int32_t> tokens,
                                       cache::CacheTrial& cache);

/// Rows of several sequences that go through the model together.
class ForwardRows {
 public:
  /// `sequences` gives each row its cache, ascending; null for one cache. `wants_logits` may be
  /// null, for all rows. Copies what it is given but `tokens`, which must stay. Errors: as
  /// check_tokens; kInvalidArgument for too many rows, rows out of order and caches without a row;
  /// kOutOfRange for a row's sequence.
  static Result<ForwardRows> create(const model::ModelTraits& traits,
                                    std::span<const int32_t> tokens, const int32_t* sequences,
                                    const uint8_t* wants_logits, size_t n_caches);

  /// Rows of logits that run() will give.
  [[nodiscard]] size_t wanted() const noexcept { return wanted_; }
  /// One pass, or as many as caches that pool chunks need. Logits [wanted(), V]. `tracer` sees the
  /// passes, unless it is null.
  Result<std::vector<float>> run(const model::Model& model, std::span<cache::CacheTrial> caches,
                                 engine::Tracer* tracer) const;

 private:
  ForwardRows() = default;

  std::span<const int32_t> tokens_;
  std::vector<uint8_t> wants_;
  std::vector<int32_t> rows_of_;  // by cache
  size_t wanted_ = 0;
};

}  // namespace gen::generate

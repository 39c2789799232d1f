// SPDX-License-Identifier: Apache-2.0
// The contract of batch.h, one function for each part of it. See batch_check.h.
#include "graph/batch_check.h"

#include <utility>

namespace gen::graph {
namespace {

Status invalid(const char* what, size_t found, int64_t rows) {
  return error(Code::kInvalidArgument, "%s for %zu rows in a batch of %lld", what, found,
               static_cast<long long>(rows));
}

Status check_rows(const Batch& batch, const BatchLimits& limits) {
  const int64_t rows = batch.rows();
  if (rows == 0) return error(Code::kInvalidArgument, "a batch of 0 rows");
  if (rows > limits.max_rows) {
    return error(Code::kInvalidArgument, "a batch of %lld rows, the model takes %d",
                 static_cast<long long>(rows), limits.max_rows);
  }
  if (batch.embeddings == nullptr) {
    if (std::cmp_not_equal(batch.tokens.size(), rows)) {
      return invalid("tokens", batch.tokens.size(), rows);
    }
    for (const int32_t token : batch.tokens) {
      if (token < 0 || token >= limits.vocab) {
        return error(Code::kOutOfRange, "token %d outside vocabulary of %lld", token,
                     static_cast<long long>(limits.vocab));
      }
    }
  } else if (!batch.tokens.empty()) {
    return error(Code::kInvalidArgument, "a batch with both tokens and embeddings");
  }
  for (const int32_t position : batch.positions) {
    if (position < 0 || position >= limits.max_seq_len) {
      return error(Code::kOutOfRange, "position %d outside context of %d", position,
                   limits.max_seq_len);
    }
  }
  return {};
}

Status check_outputs(const Batch& batch, const BatchLimits& limits) {
  if (std::cmp_not_equal(batch.wants_logits.size(), batch.rows())) {
    return invalid("logits flags", batch.wants_logits.size(), batch.rows());
  }
  size_t wanted = 0;
  for (const uint8_t wants : batch.wants_logits) wanted += wants != 0 ? 1U : 0U;
  if (wanted > batch.logits_rows || (wanted > 0 && batch.logits == nullptr)) {
    return error(Code::kInvalidArgument, "%zu rows want logits, there is room for %zu", wanted,
                 batch.logits == nullptr ? size_t{0} : batch.logits_rows);
  }
  for (const Tap& tap : batch.taps) {
    if (tap.layer < 0 || tap.layer >= limits.n_taps || tap.out == nullptr) {
      return error(Code::kInvalidArgument, "tap %d of %d, or nowhere to put it", tap.layer,
                   limits.n_taps);
    }
  }
  return {};
}

Status check_cache(const cache::KvCache& cache, std::span<const cache::LayerShape> layers) {
  const std::span<const cache::LayerShape> shapes = cache.layers();
  if (shapes.size() != layers.size()) {
    return error(Code::kInvalidArgument, "a cache of %zu layers for a model of %zu", shapes.size(),
                 layers.size());
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (const auto found = cache::shape_difference(shapes[i], layers[i])) {
      return error(Code::kInvalidArgument, "cache layer %zu has %s %d, the model needs %d", i,
                   found.what, found.first, found.second);
    }
  }
  return {};
}

Status check_sequences(const Batch& batch, const BatchLimits& limits) {
  int64_t next = 0;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const BatchSequence& sequence = batch.sequences[i];
    if (sequence.first_row != next || sequence.n_rows <= 0 ||
        sequence.n_rows > batch.rows() - next) {
      return error(Code::kInvalidArgument, "sequence %zu has rows %d + %d, expected from row %lld",
                   i, sequence.first_row, sequence.n_rows, static_cast<long long>(next));
    }
    next += sequence.n_rows;
    if (sequence.adapter != -1) {
      return error(Code::kUnsupported, "sequence %zu names adapter %d, none is loaded", i,
                   sequence.adapter);
    }
    if (limits.layers.empty()) continue;
    if (sequence.cache == nullptr) {
      return error(Code::kInvalidArgument, "sequence %zu has no cache", i);
    }
    GEN_TRY(check_cache(*sequence.cache, limits.layers));
    if (sequence.plan.count != sequence.n_rows || sequence.plan.start < 0 ||
        sequence.plan.start > sequence.cache->capacity() - sequence.plan.count) {
      return error(Code::kInvalidArgument,
                   "sequence %zu has %d rows and a plan of %d entries from %d, capacity %d", i,
                   sequence.n_rows, sequence.plan.count, sequence.plan.start,
                   sequence.cache->capacity());
    }
    for (size_t j = 0; j < i; ++j) {
      if (batch.sequences[j].cache == sequence.cache) {
        return error(Code::kInvalidArgument, "sequences %zu and %zu share a cache", j, i);
      }
    }
  }
  if (next != batch.rows()) {
    return error(Code::kInvalidArgument, "sequences cover %lld of %lld rows",
                 static_cast<long long>(next), static_cast<long long>(batch.rows()));
  }
  return {};
}

Status check_parents(const Batch& batch) {
  if (batch.parents.empty()) return {};
  if (std::cmp_not_equal(batch.parents.size(), batch.rows())) {
    return invalid("parents", batch.parents.size(), batch.rows());
  }
  for (const BatchSequence& sequence : batch.sequences) {
    for (int32_t i = 0; i < sequence.n_rows; ++i) {
      const int32_t row = sequence.first_row + i;
      const int32_t parent = batch.parents[static_cast<size_t>(row)];
      if (parent == -1) continue;
      if (parent < sequence.first_row || parent >= row) {
        return error(Code::kInvalidArgument,
                     "row %d looks back at row %d, not an earlier row of its sequence", row,
                     parent);
      }
    }
  }
  return {};
}

}  // namespace

Status check_batch(const Batch& batch, const BatchLimits& limits) {
  GEN_TRY(check_rows(batch, limits));
  GEN_TRY(check_outputs(batch, limits));
  GEN_TRY(check_sequences(batch, limits));
  return check_parents(batch);
}

}  // namespace gen::graph

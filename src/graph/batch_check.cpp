// SPDX-License-Identifier: Apache-2.0
// The contract of batch.h, one function for each part of it. See batch_check.h.
#include "graph/batch_check.h"

#include <algorithm>
#include <utility>

#include "base/mass_slices.h"

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
  if (std::cmp_not_equal(batch.tokens.size(), rows)) {
    return invalid("tokens", batch.tokens.size(), rows);
  }
  const auto width = static_cast<size_t>(limits.hidden);
  const size_t given = width > 0 ? batch.embeddings.size() / width : 0;
  if (given * width != batch.embeddings.size()) {
    return error(Code::kInvalidArgument, "%zu numbers are no embeddings of %zu",
                 batch.embeddings.size(), width);
  }
  if (std::cmp_not_equal(batch.features.size(), rows * limits.features)) {
    return error(Code::kInvalidArgument, "%zu numbers are no features of %lld rows of %lld",
                 batch.features.size(), static_cast<long long>(rows),
                 static_cast<long long>(limits.features));
  }
  for (const int32_t token : batch.tokens) {
    if (token >= 0 ? token < limits.vocab : std::cmp_less(-1 - token, given)) continue;
    if (token < 0 && given > 0) {
      return error(Code::kOutOfRange, "token %d outside %zu given embeddings", token, given);
    }
    return error(Code::kOutOfRange, "token %d outside vocabulary of %lld", token,
                 static_cast<long long>(limits.vocab));
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
  if (std::cmp_not_equal(batch.wants.size(), batch.rows())) {
    return invalid("wants", batch.wants.size(), batch.rows());
  }
  for (size_t row = 0; row < batch.wants.size(); ++row) {
    if (batch.wants[row] <= kWantsBest) continue;
    return error(Code::kInvalidArgument, "row %zu wants %d, which is nothing", row,
                 batch.wants[row]);
  }
  const size_t wanted = batch.wanting(kWantsLogits);
  if (wanted > batch.logits_rows || (wanted > 0 && batch.logits == nullptr)) {
    return error(Code::kInvalidArgument, "%zu rows want logits, there is room for %zu", wanted,
                 batch.logits == nullptr ? size_t{0} : batch.logits_rows);
  }
  for (const Tap& tap : batch.taps) {
    const bool known =
        tap.layer == kNormedTap ? limits.normed_tap : tap.layer >= 0 && tap.layer < limits.n_taps;
    if (!known || (tap.out != nullptr) == static_cast<bool>(tap.at)) {
      return error(Code::kInvalidArgument, "tap %d of %d, or not one place to put it", tap.layer,
                   limits.n_taps);
    }
  }
  return {};
}

/// Checks the extras of one row that wants best; earlier rows with extras were before `first`.
Status check_extras(const Batch& batch, const BatchLimits& limits, int32_t first,
                    const RowExtras& extras) {
  const int32_t row = extras.row;
  const bool there = row >= 0 && row < batch.rows();
  if (!there || row < first || batch.wants[static_cast<size_t>(row)] != kWantsBest) {
    return error(Code::kInvalidArgument,
                 "extras for row %d, at least %d expected: they ascend, and their rows want best",
                 row, first);
  }
  const BestRows& best = batch.best;
  for (const int32_t token : extras.aside) {
    if (token >= 0 && token < limits.logits) continue;
    return error(Code::kOutOfRange, "token %d aside outside %lld logits", token,
                 static_cast<long long>(limits.logits));
  }
  if (!extras.aside.empty() && best.aside_logits == nullptr) {
    return error(Code::kInvalidArgument, "no room for the logits of tokens aside of row %d", row);
  }
  if (extras.temperature == 0.0) return {};
  if (!(extras.temperature > 0.0)) {
    return error(Code::kInvalidArgument, "the mass of row %d at temperature %g", row,
                 extras.temperature);
  }
  const size_t slices = mass_slices(static_cast<size_t>(limits.logits));
  if (best.mass == nullptr || best.mass_slices != slices) {
    return error(Code::kInvalidArgument, "mass in %zu slices, there is room for %zu", slices,
                 best.mass != nullptr ? best.mass_slices : size_t{0});
  }
  if (extras.place >= 0.0 && best.slice == nullptr) {
    return error(Code::kInvalidArgument, "row %d wants a slice, there is no room for it", row);
  }
  return {};
}

Status check_best(const Batch& batch, const BatchLimits& limits) {
  const size_t wanted = batch.wanting(kWantsBest);
  if (wanted > 0 && !limits.best) {
    return error(Code::kUnsupported, "%zu rows want their best tokens, the model gives logits",
                 wanted);
  }
  const BestRows& best = batch.best;
  const bool somewhere = best.tokens != nullptr && best.logits != nullptr;
  if (wanted > 0 && (wanted > best.rows || !somewhere)) {
    return error(Code::kInvalidArgument, "%zu rows want best, there is room for %zu", wanted,
                 somewhere ? best.rows : size_t{0});
  }
  if (wanted > 0 && (best.k < 1 || best.k > limits.logits)) {
    return error(Code::kInvalidArgument, "the best %d tokens of %lld", best.k,
                 static_cast<long long>(limits.logits));
  }
  int32_t first = 0;
  for (const RowExtras& extras : batch.extras) {
    GEN_TRY(check_extras(batch, limits, first, extras));
    first = extras.row + 1;
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

/// Whether engines can address the layers that they work on.
Status check_memories(const cache::KvCache& cache, const BatchLimits& limits, size_t sequence) {
  const auto layers = cache.kv_layers();
  for (size_t i = 0; i < limits.layer_engines.size(); ++i) {
    const bool as_before = i > 0 && layers[i].part == layers[i - 1].part &&
                           limits.layer_engines[i] == limits.layer_engines[i - 1];
    if (as_before || limits.layer_engines[i] < 0) continue;
    engine::Engine& engine = *limits.engines[static_cast<size_t>(limits.layer_engines[i])];
    if (engine.reaches(cache.engine_memory(layers[i].part))) continue;
    return error(Code::kUnsupported,
                 "layer %zu of the %s cache of sequence %zu is in memory that engine %s cannot "
                 "address",
                 i, cache.traits().layout, sequence, engine.name());
  }
  return {};
}

Status check_state(const Batch& batch, size_t i, std::span<const cache::StateShape> states) {
  const BatchSequence& sequence = batch.sequences[i];
  if (sequence.state == nullptr) {
    return {Code::kUnsupported, "the model has a state of its own: it runs in sessions only"};
  }
  const auto shapes = sequence.state->shapes();
  if (!std::equal(shapes.begin(), shapes.end(), states.begin(), states.end())) {
    return error(Code::kInvalidArgument, "sequence %zu has another model's state", i);
  }
  const cache::StatePlan& plan = sequence.state_plan;
  if (plan.count != sequence.n_rows || plan.start != sequence.state->length()) {
    return error(Code::kInvalidArgument,
                 "sequence %zu has %d rows and a plan of %d from %d, its state is after %d", i,
                 sequence.n_rows, plan.count, plan.start, sequence.state->length());
  }
  for (size_t j = 0; j < i; ++j) {
    if (batch.sequences[j].state == sequence.state) {
      return error(Code::kInvalidArgument, "sequences %zu and %zu share a state", j, i);
    }
  }
  return {};
}

Status check_adapter(const Batch& batch, size_t i, const BatchLimits& limits) {
  const int32_t adapter = batch.sequences[i].adapter;
  if (batch.adapters == nullptr || limits.adapter_rank == 0) {
    return error(Code::kUnsupported, "sequence %zu names adapter %d, none is loaded", i, adapter);
  }
  if (adapter < 0 || adapter >= batch.adapters->mixes()) {
    return error(Code::kOutOfRange, "sequence %zu names adapter %d of %d", i, adapter,
                 batch.adapters->mixes());
  }
  if (batch.adapters->rank() > limits.adapter_rank ||
      batch.adapters->stride() != limits.adapter_sites) {
    return error(Code::kInvalidArgument,
                 "adapters of rank %d and %lld sites for a plan of rank %d and %lld",
                 batch.adapters->rank(), static_cast<long long>(batch.adapters->stride()),
                 limits.adapter_rank, static_cast<long long>(limits.adapter_sites));
  }
  return {};
}

/// The plan of rows that are stored, or of a row that only reads.
Status check_plan(const Batch& batch, const BatchLimits& limits, size_t i) {
  const BatchSequence& sequence = batch.sequences[i];
  const cache::CachePlan& plan = sequence.plan;
  const int32_t capacity = sequence.cache->capacity();
  if (limits.reads) {
    if (sequence.n_rows == 1 && plan.count == 0 && plan.start > 0 && plan.start <= capacity) {
      return {};
    }
    return error(Code::kInvalidArgument,
                 "sequence %zu has %d rows and a plan of %d entries from %d: a row reads entries, "
                 "and adds none",
                 i, sequence.n_rows, plan.count, plan.start);
  }
  const bool planned =
      batch.multi_steps > 0 ? sequence.n_rows <= plan.count : sequence.n_rows == plan.count;
  if (planned && plan.start >= 0 && plan.start <= capacity - plan.count) return {};
  return error(Code::kInvalidArgument,
               "sequence %zu has %d rows and a plan of %d entries from %d, capacity %d", i,
               sequence.n_rows, plan.count, plan.start, capacity);
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
    if (sequence.adapter != -1) GEN_TRY(check_adapter(batch, i, limits));
    if (!limits.states.empty()) GEN_TRY(check_state(batch, i, limits.states));
    if (limits.layers.empty()) continue;
    if (sequence.cache == nullptr) {
      return error(Code::kInvalidArgument, "sequence %zu has no cache", i);
    }
    GEN_TRY(check_cache(*sequence.cache, limits.layers));
    GEN_TRY(check_memories(*sequence.cache, limits, i));
    GEN_TRY(check_plan(batch, limits, i));
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

Status check_parents(const Batch& batch, bool chains_only) {
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
      if (chains_only && parent != row - 1) {
        return error(Code::kUnsupported,
                     "row %d looks back at row %d: a state takes rows one after another", row,
                     parent);
      }
    }
  }
  return {};
}

/// A mean covers the rows of this step only.
Status check_means(const Batch& batch, const BatchLimits& limits) {
  if (!limits.means) return {};
  if (!batch.parents.empty()) return error(Code::kUnsupported, "means over trees of rows");
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const BatchSequence& sequence = batch.sequences[i];
    const auto wants = batch.wants.subspan(static_cast<size_t>(sequence.first_row),
                                           static_cast<size_t>(sequence.n_rows));
    const int32_t before = std::max(sequence.cache != nullptr ? sequence.plan.start : 0,
                                    sequence.state != nullptr ? sequence.state_plan.start : 0);
    const bool any =
        std::any_of(wants.begin(), wants.end(), [](uint8_t want) { return want != 0; });
    if (!any || before == 0) continue;
    return error(Code::kUnsupported,
                 "sequence %zu has %d rows before these: a mean is of rows that come in one step",
                 i, before);
  }
  return {};
}

/// The rules of several steps in one batch (Batch::multi_steps).
Status check_multi_steps(const Batch& batch, const BatchLimits& limits) {
  if (batch.multi_steps == 0) return {};
  if (!limits.multi_step) {
    return error(Code::kUnsupported, "chains of %d rows, the model runs rows together",
                 batch.multi_steps);
  }
  const bool plain = batch.parents.empty() && batch.embeddings.empty() && batch.features.empty() &&
                     batch.extras.empty() && batch.taps.empty() && batch.during.call == nullptr &&
                     batch.tracer == nullptr && batch.observer == nullptr && batch.best.k == 1;
  if (!plain || std::cmp_not_equal(batch.wanting(kWantsBest), batch.rows())) {
    return error(Code::kInvalidArgument, "chains of %d rows that want more than the best token",
                 batch.multi_steps);
  }
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    if (batch.sequences[i].n_rows == batch.multi_steps) continue;
    return error(Code::kInvalidArgument, "sequence %zu has %d rows in chains of %d", i,
                 batch.sequences[i].n_rows, batch.multi_steps);
  }
  return {};
}

}  // namespace

Status check_batch(const Batch& batch, const BatchLimits& limits) {
  if (batch.observer != nullptr && !limits.observed) {
    return {Code::kInvalidArgument, "an observer of a plan that was not compiled for one"};
  }
  GEN_TRY(check_multi_steps(batch, limits));
  GEN_TRY(check_rows(batch, limits));
  GEN_TRY(check_outputs(batch, limits));
  GEN_TRY(check_best(batch, limits));
  GEN_TRY(check_sequences(batch, limits));
  GEN_TRY(check_means(batch, limits));
  return check_parents(batch, !limits.states.empty());
}

}  // namespace gen::graph

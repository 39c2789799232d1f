// SPDX-License-Identifier: Apache-2.0
// See forward_call.h. Plans every cache, runs, and commits all of them or none.
#include "api/forward_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "generate/split_rows.h"

namespace gen::api {
namespace {

/// The caches of a call, each held for its duration. Unless kept they end as they began.
class HeldCaches {
 public:
  Status hold(const model::Model& model, std::span<kv_cache* const> handles) {
    held_.reserve(handles.size());
    caches_.reserve(handles.size());
    for (kv_cache* handle : handles) {
      GEN_TRY(not_null(handle, "a cache"));
      if (std::count(handles.begin(), handles.end(), handle) > 1) {
        return {Code::kBusy, "a cache is given twice"};
      }
      held_.emplace_back(handle);
      GEN_TRY(held_.back().entered("a cache"));
      if (handle->lent != nullptr) {
        return {Code::kState, "a session's cache is for reading only"};
      }
      GEN_ASSIGN(EngineCache cache,
                 EngineCache::open(*handle, model.layer_shapes(), model.traits().max_seq_len));
      caches_.push_back(std::move(cache));
    }
    return {};
  }
  HeldCaches() = default;
  HeldCaches(const HeldCaches&) = delete;
  HeldCaches& operator=(const HeldCaches&) = delete;
  [[nodiscard]] cache::KvCache* cache(size_t index) const { return caches_[index].get(); }
  /// Before rows come to a cache: those that take several plans must leave no trace on failure, and
  /// where a cut would leave one they come to a copy.
  Status expect(size_t index, size_t rows) {
    const cache::KvCache& target = *cache(index);
    const bool several = rows > static_cast<size_t>(target.plan_limit());
    return several && !target.traits().cuts_exactly ? caches_[index].work_on_copy() : Status();
  }
  void keep() noexcept {
    for (EngineCache& cache : caches_) cache.keep();
  }

 private:
  std::vector<HeldCache> held_;
  std::vector<EngineCache> caches_;  // end before they are given back
};

/// Rows for one cache after another, with their positions and plans.
struct Step {
  std::vector<int32_t> positions;
  std::vector<uint8_t> wants;
  std::vector<graph::BatchSequence> sequences;

  Status add(const model::ModelTraits& traits, cache::KvCache* cache, int32_t n_rows) {
    const int32_t start = cache->length();
    if (n_rows > traits.max_seq_len - start) {
      return error(Code::kContextFull, "%d tokens after %d do not fit the context of %d", n_rows,
                   start, traits.max_seq_len);
    }
    graph::BatchSequence sequence;
    sequence.cache = cache;
    sequence.first_row = static_cast<int32_t>(positions.size());
    sequence.n_rows = n_rows;
    GEN_ASSIGN(sequence.plan, cache->plan(n_rows));
    for (int32_t i = 0; i < n_rows; ++i) positions.push_back(start + i);
    sequences.push_back(sequence);
    return {};
  }

  Status run(const model::Model& model, std::span<const int32_t> tokens, float* logits,
             size_t logits_rows, engine::Tracer* tracer = nullptr) {
    graph::Batch batch;
    batch.tracer = tracer;
    batch.tokens = tokens;
    batch.positions = positions;
    batch.wants_logits = wants;
    batch.sequences = sequences;
    batch.logits = logits;
    batch.logits_rows = logits_rows;
    GEN_TRY(model.forward(batch));
    for (const graph::BatchSequence& sequence : sequences) {
      sequence.cache->commit(sequence.plan);
    }
    return {};
  }
};

Status check_capacity(size_t rows, int32_t vocab, size_t capacity) {
  const size_t needed = rows * static_cast<size_t>(vocab);
  if (capacity >= needed) return {};
  return error(Code::kOutOfRange, "%zu rows of %d logits need %zu values, the buffer has %zu", rows,
               vocab, needed, capacity);
}

Status check_tokens(std::span<const int32_t> tokens, int32_t vocab) {
  if (tokens.empty()) return {Code::kInvalidArgument, "there are no tokens"};
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab) {
      return error(Code::kOutOfRange, "token %d outside vocabulary of %d", token, vocab);
    }
  }
  return {};
}

}  // namespace

Status forward_one(const model::Model& model, std::span<const int32_t> tokens, kv_cache& cache,
                   float* logits, size_t capacity) {
  const model::ModelTraits& traits = model.traits();
  GEN_TRY(check_tokens(tokens, traits.vocab_size));
  GEN_TRY(check_capacity(1, traits.vocab_size, capacity));
  kv_cache* handles[] = {&cache};
  HeldCaches held;
  GEN_TRY(held.hold(model, handles));
  GEN_TRY(held.expect(0, tokens.size()));
  cache::KvCache* target = held.cache(0);
  const int32_t before = target->length();
  if (tokens.size() > static_cast<size_t>(traits.max_seq_len - before)) {
    return error(Code::kContextFull, "%zu tokens after %d do not fit the context of %d",
                 tokens.size(), before, traits.max_seq_len);
  }
  if (const int32_t room = target->capacity() - before; tokens.size() > static_cast<size_t>(room)) {
    return error(Code::kCacheFull, "%zu tokens after %d do not fit the cache of %d", tokens.size(),
                 before, target->capacity());
  }
  // Logits go to a row of our own first: the caller's buffer stays untouched on failure.
  std::vector<float> row(static_cast<size_t>(traits.vocab_size));
  for (size_t begin = 0, count = 0; begin < tokens.size(); begin += count) {
    count = std::min({tokens.size() - begin, static_cast<size_t>(traits.max_batch_rows),
                      static_cast<size_t>(target->plan_limit())});
    const bool last = begin + count == tokens.size();
    Step step;
    GEN_TRY(step.add(traits, target, static_cast<int32_t>(count)));
    step.wants.assign(count, 0);
    if (last) step.wants.back() = 1;
    GEN_TRY(step.run(model, tokens.subspan(begin, count), row.data(), last ? 1 : 0));
  }
  held.keep();
  std::copy(row.begin(), row.end(), logits);
  return {};
}

Status forward_rows(const model::Model& model, std::span<const int32_t> tokens,
                    const int32_t* sequences, const uint8_t* wants_logits,
                    std::span<kv_cache* const> caches, float* logits, size_t capacity,
                    engine::Tracer* tracer) {
  const model::ModelTraits& traits = model.traits();
  GEN_TRY(check_tokens(tokens, traits.vocab_size));
  if (tokens.size() > static_cast<size_t>(traits.max_batch_rows)) {
    return error(Code::kInvalidArgument, "%zu rows are more than %d", tokens.size(),
                 traits.max_batch_rows);
  }
  if (caches.empty()) return {Code::kInvalidArgument, "there are no caches"};
  if (sequences == nullptr && caches.size() != 1) {
    return error(Code::kInvalidArgument, "sequences is NULL with %zu caches", caches.size());
  }

  std::vector<int32_t> rows_of(caches.size(), 0);
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int32_t sequence = sequences != nullptr ? sequences[row] : 0;
    if (sequence < 0 || static_cast<size_t>(sequence) >= caches.size()) {
      return error(Code::kOutOfRange, "sequence %d of row %zu outside %zu caches", sequence, row,
                   caches.size());
    }
    if (row > 0 && sequences != nullptr && sequence < sequences[row - 1]) {
      return error(Code::kInvalidArgument, "sequence %d of row %zu after %d: rows must ascend",
                   sequence, row, sequences[row - 1]);
    }
    ++rows_of[static_cast<size_t>(sequence)];
  }
  for (size_t i = 0; i < caches.size(); ++i) {
    if (rows_of[i] == 0) return error(Code::kInvalidArgument, "cache %zu has no row", i);
  }

  std::vector<uint8_t> wants(tokens.size(), 1);
  if (wants_logits != nullptr) {
    std::transform(wants_logits, wants_logits + tokens.size(), wants.begin(),
                   [](uint8_t wanted) { return static_cast<uint8_t>(wanted != 0 ? 1 : 0); });
  }
  const auto wanted = static_cast<size_t>(std::count(wants.begin(), wants.end(), uint8_t{1}));
  if (wanted > 0 && logits == nullptr) return {Code::kInvalidArgument, "logits is NULL"};
  GEN_TRY(check_capacity(wanted, traits.vocab_size, capacity));

  HeldCaches held;
  GEN_TRY(held.hold(model, caches));
  for (size_t i = 0; i < caches.size(); ++i) {
    GEN_TRY(held.expect(i, static_cast<size_t>(rows_of[i])));
  }
  SplitRows split(tokens, wants, rows_of, static_cast<size_t>(traits.vocab_size));
  while (split.next([&](size_t i) { return held.cache(i)->plan_limit(); })) {
    Step step;
    step.wants = split.wants();
    for (size_t i = 0; i < caches.size(); ++i) {
      if (split.count(i) > 0) GEN_TRY(step.add(traits, held.cache(i), split.count(i)));
    }
    GEN_TRY(step.run(model, split.tokens(), split.logits(), split.wanted(), tracer));
    split.collect();
  }
  held.keep();
  std::copy(split.all_logits().begin(), split.all_logits().end(), logits);
  return {};
}

}  // namespace gen::api

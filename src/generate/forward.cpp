// SPDX-License-Identifier: Apache-2.0
// See forward.h.
#include "generate/forward.h"

#include <algorithm>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/split_rows.h"
#include "graph/batch.h"

namespace gen::generate {
namespace {

/// Rows of one cache after another, with their positions and plans.
struct Step {
  std::vector<int32_t> positions;
  std::vector<uint8_t> wants;
  std::vector<graph::BatchSequence> sequences;  // planned and not committed

  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    for (const graph::BatchSequence& sequence : sequences) {
      if (sequence.state != nullptr) sequence.state->drop(sequence.state_plan);
    }
  }

  Status add(const model::ModelTraits& traits, const TrialSequence& trial, int32_t n_rows) {
    cache::KvCache* const cache = trial.cache.get();
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
    sequence.state = trial.state;
    if (sequence.state != nullptr) {
      GEN_ASSIGN(sequence.state_plan, sequence.state->plan(n_rows, cache::Keep::kAll));
    }
    for (int32_t i = 0; i < n_rows; ++i) positions.push_back(start + i);
    sequences.push_back(sequence);
    return {};
  }

  Status run(const model::Model& model, std::span<const int32_t> tokens, float* logits,
             size_t logits_rows, engine::Tracer* tracer = nullptr,
             std::span<const graph::Tap> taps = {}) {
    graph::Batch batch;
    batch.tracer = tracer;
    batch.taps = taps;
    batch.logits = logits;
    batch.logits_rows = logits_rows;
    return run(model, tokens, batch);
  }
  /// `batch` says where results go and who watches.
  Status run(const model::Model& model, std::span<const int32_t> tokens, graph::Batch batch) {
    batch.tokens = tokens;
    batch.positions = positions;
    batch.wants = wants;
    batch.sequences = sequences;
    GEN_TRY(model.forward(batch));
    for (const graph::BatchSequence& sequence : sequences) {
      sequence.cache->commit(sequence.plan);
      if (sequence.state == nullptr) continue;
      sequence.state->commit(sequence.state_plan, {sequence.n_rows});
    }
    sequences.clear();
    return {};
  }
};

Status check_hidden(const model::ModelTraits& traits, std::span<const int32_t> layers) {
  if (layers.empty()) return {Code::kInvalidArgument, "there are no layers"};
  if (traits.hidden <= 0) {
    return error(Code::kUnsupported, "model %.40s gives no hidden states",
                 traits.architecture.c_str());
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const int32_t layer = layers[i];
    if (layer != graph::kNormedTap && (layer < 0 || layer > traits.num_layers)) {
      return error(Code::kOutOfRange, "layer %d outside [0, %d]", layer, traits.num_layers);
    }
    if (std::count(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i), layer) > 0) {
      return error(Code::kInvalidArgument, "entry %zu of the layers comes twice", i);
    }
  }
  return {};
}

/// Before several passes, of which a later one may fail.
Status copy_state(TrialSequence* trial) {
  if (trial->state == nullptr || trial->made != nullptr) return {};
  GEN_ASSIGN(trial->made, trial->state->copies()->fork());
  trial->state = trial->made.get();
  return {};
}

/// Evaluates tokens of one sequence in as many passes as needed: `run` of each, planned.
template <typename Run>
Status run_in_parts(const model::Model& model, std::span<const int32_t> tokens,
                    TrialSequence& sequence, Run&& run) {
  const model::ModelTraits& traits = model.traits();
  GEN_TRY(check_tokens(tokens, traits.vocab_size));
  const auto rows = static_cast<size_t>(prefill_rows(0, traits));
  GEN_TRY(sequence.cache.expect(tokens.size(), rows));
  cache::KvCache* target = sequence.cache.get();
  const int32_t before = target->length();
  if (tokens.size() > static_cast<size_t>(traits.max_seq_len - before)) {
    return error(Code::kContextFull, "%zu tokens after %d do not fit the context of %d",
                 tokens.size(), before, traits.max_seq_len);
  }
  if (const int32_t room = target->capacity() - before; tokens.size() > static_cast<size_t>(room)) {
    return error(Code::kCacheFull, "%zu tokens after %d do not fit the cache of %d", tokens.size(),
                 before, target->capacity());
  }
  if (tokens.size() > std::min(rows, static_cast<size_t>(target->plan_limit()))) {
    GEN_TRY(copy_state(&sequence));
  }
  for (size_t begin = 0, count = 0; begin < tokens.size(); begin += count) {
    count = std::min({tokens.size() - begin, rows, static_cast<size_t>(target->plan_limit())});
    Step step;
    GEN_TRY(step.add(traits, sequence, static_cast<int32_t>(count)));
    GEN_TRY(run(step, begin, count));
  }
  return {};
}

}  // namespace

Status check_tokens(std::span<const int32_t> tokens, int32_t vocab_size) {
  if (tokens.empty()) return {Code::kInvalidArgument, "there are no tokens"};
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab_size) {
      return error(Code::kOutOfRange, "token %d outside vocabulary of %d", token, vocab_size);
    }
  }
  return {};
}

Result<TrialSequence> try_sequence(const model::Model& model, cache::CacheTrial cache,
                                   cache::SequenceState* before) {
  const int32_t positions = cache.get()->length();
  TrialSequence trial = {std::move(cache), nullptr, nullptr};
  // A caller's own state may be lost in a pass that fails.
  const bool stays = before != nullptr && !before->shapes().empty();
  if (stays && positions > 0 && before->length() == positions) {
    trial.state = before;
    return trial;
  }
  if (before != nullptr && positions > 0) {
    GEN_ASSIGN(trial.made, before->copies()->fork());
    GEN_TRY(trial.made->rewind(positions));
  } else {
    GEN_ASSIGN(trial.made, model.new_sequence_state());
  }
  trial.state = trial.made.get();
  if (trial.state == nullptr) return trial;
  if (trial.state->copies() == nullptr) {
    return Status(
        Code::kUnsupported,
        "the model has a state of its own that cannot be copied: it runs in sessions only");
  }
  if (trial.state->length() == positions) return trial;
  return error(
      Code::kState,
      "the cache has %d positions, where the model's state cannot be: without a session it "
      "goes back to the beginning only",
      positions);
}

Result<std::vector<float>> forward_one(const model::Model& model, std::span<const int32_t> tokens,
                                       TrialSequence& sequence) {
  std::vector<float> row(static_cast<size_t>(model.traits().vocab_size));
  GEN_TRY(run_in_parts(model, tokens, sequence, [&](Step& step, size_t begin, size_t count) {
    const bool last = begin + count == tokens.size();
    step.wants.assign(count, graph::kWantsNothing);
    if (last) step.wants.back() = graph::kWantsLogits;
    return step.run(model, tokens.subspan(begin, count), row.data(), last ? 1 : 0);
  }));
  return row;
}

Result<std::vector<float>> forward_hidden(const model::Model& model,
                                          std::span<const int32_t> tokens,
                                          std::span<const int32_t> layers,
                                          TrialSequence& sequence) {
  GEN_TRY(check_hidden(model.traits(), layers));
  const auto width = static_cast<size_t>(model.traits().hidden);
  std::vector<float> all;
  GEN_TRY(run_in_parts(model, tokens, sequence, [&](Step& step, size_t begin, size_t count) {
    all.resize(layers.size() * tokens.size() * width);
    step.wants.assign(count, graph::kWantsNothing);
    std::vector<graph::Tap> taps;
    for (size_t i = 0; i < layers.size(); ++i) {
      float* const out = all.data() + (i * tokens.size() + begin) * width;
      taps.push_back({.layer = layers[i], .out = out});
    }
    return step.run(model, tokens.subspan(begin, count), nullptr, 0, nullptr, taps);
  }));
  return all;
}

Status forward_observed(const model::Model& model, std::span<const int32_t> tokens,
                        graph::ProductObserver& observer, TrialSequence& sequence) {
  // Every row wants a result, since only such rows reach the end of the model; the best token is
  // the cheapest.
  const bool best = model.traits().max_best > 0;
  std::vector<int32_t> tokens_out;
  std::vector<float> logits;
  return run_in_parts(model, tokens, sequence, [&](Step& step, size_t begin, size_t count) {
    step.wants.assign(count, best ? graph::kWantsBest : graph::kWantsLogits);
    graph::Batch batch;
    batch.observer = &observer;
    if (best) {
      tokens_out.resize(count);
      logits.resize(count);
      batch.best.tokens = tokens_out.data();
      batch.best.logits = logits.data();
      batch.best.rows = count;
    } else {
      logits.resize(count * static_cast<size_t>(model.traits().vocab_size));
      batch.logits = logits.data();
      batch.logits_rows = count;
    }
    return step.run(model, tokens.subspan(begin, count), batch);
  });
}

Result<ForwardRows> ForwardRows::create(const model::ModelTraits& traits,
                                        std::span<const int32_t> tokens, const int32_t* sequences,
                                        const uint8_t* wants_logits, size_t n_caches) {
  GEN_TRY(check_tokens(tokens, traits.vocab_size));
  const int32_t most = std::min(traits.max_batch_rows, graph::kStepRows);
  if (tokens.size() > static_cast<size_t>(most)) {
    return error(Code::kInvalidArgument, "%zu rows are more than %d", tokens.size(), most);
  }
  if (n_caches == 0) return Status(Code::kInvalidArgument, "there are no caches");
  if (sequences == nullptr && n_caches != 1) {
    return error(Code::kInvalidArgument, "sequences is NULL with %zu caches", n_caches);
  }
  ForwardRows made;
  made.tokens_ = tokens;
  made.rows_of_.resize(n_caches, 0);
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int32_t sequence = sequences != nullptr ? sequences[row] : 0;
    if (sequence < 0 || static_cast<size_t>(sequence) >= n_caches) {
      return error(Code::kOutOfRange, "sequence %d of row %zu outside %zu caches", sequence, row,
                   n_caches);
    }
    if (row > 0 && sequences != nullptr && sequence < sequences[row - 1]) {
      return error(Code::kInvalidArgument, "sequence %d of row %zu after %d: rows must ascend",
                   sequence, row, sequences[row - 1]);
    }
    ++made.rows_of_[static_cast<size_t>(sequence)];
  }
  for (size_t i = 0; i < n_caches; ++i) {
    if (made.rows_of_[i] == 0) return error(Code::kInvalidArgument, "cache %zu has no row", i);
  }
  made.wants_.assign(tokens.size(), 1);
  if (wants_logits != nullptr) {
    std::transform(wants_logits, wants_logits + tokens.size(), made.wants_.begin(),
                   [](uint8_t wanted) { return static_cast<uint8_t>(wanted != 0 ? 1 : 0); });
  }
  made.wanted_ =
      static_cast<size_t>(std::count(made.wants_.begin(), made.wants_.end(), uint8_t{1}));
  return made;
}

Result<std::vector<float>> ForwardRows::run(const model::Model& model,
                                            std::span<TrialSequence> trials,
                                            engine::Tracer* tracer) const {
  const model::ModelTraits& traits = model.traits();
  bool several = false;  // passes
  for (size_t i = 0; i < trials.size(); ++i) {
    const auto rows = static_cast<size_t>(rows_of_[i]);
    GEN_TRY(trials[i].cache.expect(rows, rows));
    several = several || rows_of_[i] > trials[i].cache.get()->plan_limit();
  }
  for (TrialSequence& trial : trials) {
    if (several) GEN_TRY(copy_state(&trial));
  }
  SplitRows split(tokens_, wants_, rows_of_, static_cast<size_t>(traits.vocab_size));
  while (split.next([&](size_t i) { return trials[i].cache.get()->plan_limit(); })) {
    Step step;
    step.wants = split.wants();
    for (size_t i = 0; i < trials.size(); ++i) {
      if (split.count(i) > 0) GEN_TRY(step.add(traits, trials[i], split.count(i)));
    }
    GEN_TRY(step.run(model, split.tokens(), split.logits(), split.wanted(), tracer));
    split.collect();
  }
  return split.take_logits();
}

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// See forward_call.h. generate/forward.h runs the passes; this file opens and holds the handles.
#include "api/forward/forward_call.h"

#include <generate/experimental.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "generate/forward.h"

namespace gen::api {
namespace {

/// Holds the caches of a call for its duration. If the pass fails they are restored.
class HeldCaches {
 public:
  Status hold(const ModelInCall& model, std::span<kv_cache* const> handles) {
    held_.reserve(handles.size());
    trials_.reserve(handles.size());
    by_.reserve(handles.size());
    for (kv_cache* handle : handles) {
      GEN_TRY(not_null(handle, "a cache"));
      if (std::count(handles.begin(), handles.end(), handle) > 1) {
        return {Code::kBusy, "a cache is given twice"};
      }
      held_.emplace_back(handle);
      GEN_TRY(held_.back().entered("a cache"));
      if (handle->body->read_only() != nullptr) {
        return {Code::kState, "a session's cache is read-only"};
      }
      GEN_ASSIGN(cache::CacheTrial cache, open_trial(*handle, model));
      const OneSequence& body = *handle->body->one_sequence();
      if (cache.get()->length() > 0 && body.state() != nullptr &&
          body.state_of() != model.parts.get()) {
        return {Code::kInvalidArgument, "the cache goes with another model's state"};
      }
      GEN_ASSIGN(auto trial, generate::try_sequence(*model.parts->loaded->model, std::move(cache),
                                                    body.state()));
      by_.push_back(shaped_by(*handle, model));
      trials_.push_back(std::move(trial));
    }
    handles_ = handles;
    return {};
  }
  HeldCaches() = default;
  HeldCaches(const HeldCaches&) = delete;
  HeldCaches& operator=(const HeldCaches&) = delete;
  [[nodiscard]] std::span<generate::TrialSequence> trials() noexcept { return trials_; }
  void keep(const ModelInCall& model) noexcept {
    for (size_t i = 0; i < trials_.size(); ++i) {
      keep_trial(*handles_[i], std::move(by_[i]), trials_[i].cache);
      OneSequence& body = *handles_[i]->body->one_sequence();
      if (trials_[i].made != nullptr) {
        body.take_state(model.parts, std::move(trials_[i].made));
      } else if (trials_[i].state == nullptr) {
        body.take_state(nullptr, nullptr);  // what another model left
      }
    }
  }

 private:
  std::span<kv_cache* const> handles_;
  std::vector<HeldCache> held_;
  std::vector<ShapedBy> by_;
  std::vector<generate::TrialSequence> trials_;  // destroyed before the flags are released
};

Status check_capacity(size_t rows, int32_t vocab, size_t capacity) {
  const size_t needed = rows * static_cast<size_t>(vocab);
  if (capacity >= needed) return {};
  return error(Code::kOutOfRange, "%zu rows of %d logits need %zu values, the buffer has %zu", rows,
               vocab, needed, capacity);
}

}  // namespace

Status forward_one(const ModelInCall& of, std::span<const int32_t> tokens, kv_cache& cache,
                   float* logits, size_t capacity) {
  const model::Model& model = *of.parts->loaded->model;
  const int32_t vocab = model.traits().vocab_size;
  GEN_TRY(generate::check_tokens(tokens, vocab));
  GEN_TRY(check_capacity(1, vocab, capacity));
  kv_cache* const handles[] = {&cache};
  HeldCaches held;
  GEN_TRY(held.hold(of, handles));
  GEN_ASSIGN(const std::vector<float> row, generate::forward_one(model, tokens, held.trials()[0]));
  held.keep(of);
  std::copy(row.begin(), row.end(), logits);
  return {};
}

Status forward_hidden(const ModelInCall& of, std::span<const int32_t> tokens, kv_cache& cache,
                      std::span<const int32_t> layers, float* hidden, size_t capacity) {
  const model::Model& model = *of.parts->loaded->model;
  const auto width = static_cast<size_t>(std::max(model.traits().hidden, 1));
  // Divided, because the product of what a caller says may have no number.
  if (!layers.empty() && tokens.size() > capacity / width / layers.size()) {
    return error(Code::kOutOfRange,
                 "%zu layers of %zu rows of %zu values do not fit the buffer of %zu", layers.size(),
                 tokens.size(), width, capacity);
  }
  std::vector<int32_t> taps(layers.begin(), layers.end());
  for (int32_t& layer : taps) {
    if (layer == graph::kNormedTap) {
      return error(Code::kOutOfRange, "layer %d outside [0, %d]", layer, model.traits().num_layers);
    }
    if (layer == GEN_HIDDEN_NORMED) layer = graph::kNormedTap;
  }
  kv_cache* const handles[] = {&cache};
  HeldCaches held;
  GEN_TRY(held.hold(of, handles));
  GEN_ASSIGN(const std::vector<float> all,
             generate::forward_hidden(model, tokens, taps, held.trials()[0]));
  held.keep(of);
  std::copy(all.begin(), all.end(), hidden);
  return {};
}

Status forward_rows(const ModelInCall& of, std::span<const int32_t> tokens,
                    const int32_t* sequences, const uint8_t* wants_logits,
                    std::span<kv_cache* const> caches, float* logits, size_t capacity,
                    engine::Tracer* tracer) {
  const model::Model& model = *of.parts->loaded->model;
  const model::ModelTraits& traits = model.traits();
  GEN_ASSIGN(const auto rows,
             generate::ForwardRows::create(traits, tokens, sequences, wants_logits, caches.size()));
  if (rows.wanted() > 0 && logits == nullptr) return {Code::kInvalidArgument, "logits is NULL"};
  GEN_TRY(check_capacity(rows.wanted(), traits.vocab_size, capacity));
  HeldCaches held;
  GEN_TRY(held.hold(of, caches));
  GEN_ASSIGN(const std::vector<float> all, rows.run(model, held.trials(), tracer));
  held.keep(of);
  std::copy(all.begin(), all.end(), logits);
  return {};
}

}  // namespace gen::api
